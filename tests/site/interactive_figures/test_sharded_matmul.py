"""Test lesson 03's figure, which shows one device's part of each product in the lesson's table."""

from __future__ import annotations

import math
import re

import pytest

from tests.site.interactive_figures.conftest import numbers_of


@pytest.mark.parametrize("row", range(9))
def test_what_a_device_multiplies_takes_the_flops_and_lacks_the_bytes_of_the_table(open_figure, row):
    at = open_figure("sharded_matmul")
    numbers = numbers_of("sharded_matmul")[row]
    at.set(product=row)
    for device in range(8):
        text = at.set(device=device)
        factors, product = re.search(r"of w: ([\d ·]+) = ([\d,]+) FLOPs", text).groups()
        assert f"{math.prod(map(int, factors.split(' · '))):,}" == product == numbers["flops"]
        lacks = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) of [xw]\b(?! by|:)", text)]
        if "gather" in numbers["collectives"]:  # float32: 4 bytes sent for each number that a device lacks
            assert f"{4 * sum(lacks):,}" == numbers["sent"]
        else:
            assert lacks == [] and "It stores all of these" in text
        assert ("Nothing is sent." if numbers["sent"] == "0" else f"sends {numbers['sent']} bytes: ") in text


def test_by_hand(open_figure):
    at = open_figure("sharded_matmul")
    assert "x[B, D_X] · w[D, F_X]: device 5 multiplies [0:64, 0:256] of x by [0:256, 320:384] of w" in at.figure_text()
    assert "doesn't store 14,336 of x, and no other device does the same work." in at.figure_text()
    # x[B, D_X] · w[D, F]: every device gathers x, and all devices do the same work
    assert "x[B, D_X] · w[D, F]: device 5 multiplies [0:64, 0:256] of x by [0:256, 0:512] of w" in at.set(product=6)
    assert "devices 0, 1, 2, 3, 4, 6, 7 do the same work" in at.figure_text()
    assert "doesn't store 14,336 of x, and" in at.figure_text()
    assert at.page.locator(".interactive-figure svg [stroke-dasharray='5 4']").count() == 0
    # D is sharded in both factors, so the result is partial sums.
    assert "[0:64, 160:192] of x by [160:192, 0:512] of w" in at.set(product=7)
    assert at.page.locator(".interactive-figure svg [stroke-dasharray='5 4']").count() == 1
    # Product 3 is data parallelism, and product 4 is FSDP.
    assert "[24:32, 0:256] of x by [0:256, 0:512] of w" in at.set(product=3, device=3)
    assert "It stores all of these, and no other device does the same work. Nothing is sent." in at.figure_text()
    assert "doesn't store 114,688 of w, and" in at.set(product=4)


def test_the_numbers_are_the_lesson_s_nine_rows():
    rows = numbers_of("sharded_matmul")
    assert len(rows) == 9
    assert (rows[6]["a"], rows[6]["b"], rows[6]["sent"]) == ("x[B, D_X]", "w[D, F]", "57,344")
