"""Lesson 09: how much of the sending is hidden behind products."""

from __future__ import annotations

import re

from tests.site.moving.conftest import cell_of
from tools.site import interactive_figures


def test_the_lessons_case_is_as_it_prints(hand):
    at = hand("hiding")
    at.set(rows=2048)
    alone, step = re.findall(r": (\d+) µs", interactive_figures.printed_text(cell_of("09", "overlap-draw")))
    assert f"For {alone} of its 147 µs of sending the chip does not compute" in at.said()
    assert f"The step takes {step} µs; one after the other it would be 321." in at.said()  # 321: the lesson's text
    assert at.said().startswith("A gather takes 73 µs, a product 87.")
    assert "as if" not in at.said()
    drawn = at.page.locator(".moving svg text").all_text_contents()
    assert {"gather w1", "gather w2", "x @ w1", "h @ w2", "73 µs", "248 µs"} <= set(drawn)


def test_fewer_rows_hide_less_and_more_rows_hide_no_more(hand):
    at = hand("hiding")
    # The lesson: a quarter of the rows, a product of 22 µs, 52 of the second gather's 73 come out. 73.4 + 51.6 = 125;
    # two gathers and the last product, 2 · 73.4 + 21.8 = 168.6
    said = at.said()
    assert "a product 22. For 125 of its 147 µs" in said and "The step takes 169 µs;" in said
    assert "52 µs" in at.page.locator(".moving svg text").all_text_contents()
    # 3072 rows: 130.8 µs a product; the first gather still stands alone: 73.4 + 2 · 130.8
    said = at.set(rows=3072)
    assert "a product 131. For 73 of its 147 µs" in said and "The step takes 335 µs;" in said
    assert said.endswith("(An estimate by the data sheet, as if the plan stayed the same.)")
    # 1536 rows: 65.4 µs, and 8 of the second gather come out; 1792 rows: 76.3 µs, and none does
    assert "For 81 of its 147 µs" in at.set(rows=1536)
    assert "For 73 of its 147 µs" in at.set(rows=1792)


def test_each_further_layer_takes_the_longer_of_its_two(hand):
    at = hand("hiding")
    # 5 layers, 2048 rows: 73.4 + 5 · 87.2; 512 rows: 5 · 73.4 + 21.8, and 73.4 + 4 · 51.6 alone
    said = at.set(rows=2048, layers=5)
    assert "For 73 of its 367 µs of sending" in said and "The step takes 509 µs;" in said
    said = at.set(rows=512)
    assert "For 280 of its 367 µs" in said and "The step takes 389 µs; one after the other it would be 476." in said


def test_one_after_the_other_hides_nothing(hand):
    at = hand("hiding")
    said = at.set(rows=2048, gathers="one after the other")
    assert "For all of its 147 µs of sending the chip does not compute. The step takes 321 µs." in said
    assert "For all of its 220 µs" in at.set(layers=3)
    assert "The step takes 286 µs." in at.set(rows=512)  # 3 · (73.4 + 21.8)
