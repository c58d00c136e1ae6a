"""Test lesson 09's figure of the transfers that are hidden behind matrix products."""

from __future__ import annotations

import re

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


def test_the_lessons_case_is_as_it_prints(open_figure):
    at = open_figure("gather_overlap")
    at.set(rows=2048)
    one_after_the_other, step, exposed = re.findall(r"(\d+) (?:µs|of)", printed_text(cell_of("09", "overlap-draw")))
    assert f"The chip computes nothing during {exposed} of its 147 µs of sending" in at.figure_text()
    assert (
        f"The step takes {step} µs; with gathers and products one after the other, it would take {one_after_the_other}."
        in at.figure_text()
    )
    assert at.figure_text().startswith("A gather takes 73 µs, a product 87.")
    assert "assuming" not in at.figure_text()
    drawn = at.page.locator(".interactive-figure svg text").all_text_contents()
    assert {"gather w1", "gather w2", "x @ w1", "h @ w2", "73 µs", "248 µs"} <= set(drawn)


def test_fewer_rows_hide_less_and_more_rows_hide_no_more(open_figure):
    at = open_figure("gather_overlap")
    # With a quarter of the rows, as in the lesson, a product takes 21.8 µs and hides all but 51.6 of the second
    # gather's 73.4 µs. The exposed time is 73.4 + 51.6 = 125 µs. Two gathers and the last product take
    # 2 · 73.4 + 21.8 = 168.6 µs.
    text = at.figure_text()
    assert (
        "a product 22. The chip computes nothing during 125 of its 147 µs" in text and "The step takes 169 µs;" in text
    )
    assert "52 µs" in at.page.locator(".interactive-figure svg text").all_text_contents()
    # With 3072 rows, a product takes 130.8 µs. The first gather is still exposed, so a step takes 73.4 + 2 · 130.8 µs.
    text = at.set(rows=3072)
    assert (
        "a product 131. The chip computes nothing during 73 of its 147 µs" in text and "The step takes 335 µs;" in text
    )
    assert text.endswith("(An estimate from the data sheet, assuming that the compiler's plan stays the same.)")
    # With 1536 rows, a product takes 65.4 µs and leaves 8 µs of the second gather exposed. With 1792 rows, it takes
    # 76.3 µs and hides all of that gather.
    assert "The chip computes nothing during 81 of its 147 µs" in at.set(rows=1536)
    assert "The chip computes nothing during 73 of its 147 µs" in at.set(rows=1792)


def test_each_further_layer_takes_the_longer_of_its_two(open_figure):
    at = open_figure("gather_overlap")
    # Five layers of 2048 rows take 73.4 + 5 · 87.2 µs. With 512 rows they take 5 · 73.4 + 21.8 µs, of which
    # 73.4 + 4 · 51.6 µs are exposed.
    text = at.set(rows=2048, layers=5)
    assert "The chip computes nothing during 73 of its 367 µs of sending" in text and "The step takes 509 µs;" in text
    text = at.set(rows=512)
    assert (
        "The chip computes nothing during 280 of its 367 µs" in text
        and "The step takes 389 µs; with gathers and products one after the other, it would take 476." in text
    )


def test_one_after_the_other_hides_nothing(open_figure):
    at = open_figure("gather_overlap")
    text = at.set(rows=2048, gathers="one after the other")
    assert "The chip computes nothing during all 147 µs of sending. The step takes 321 µs." in text
    assert "nothing during all 220 µs" in at.set(layers=3)
    assert "The step takes 286 µs." in at.set(rows=512)  # 3 · (73.4 + 21.8) = 285.6
