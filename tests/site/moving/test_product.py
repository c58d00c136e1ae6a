"""Lesson 03: the table of products, by what one device multiplies."""

from __future__ import annotations

import math
import re

import pytest

from tests.site.moving.conftest import cell_of, numbers_of
from tools.moving import printed


@pytest.mark.parametrize("row", range(8))
def test_what_a_device_multiplies_takes_the_flops_and_lacks_the_bytes_of_the_table(hand, row):
    at = hand("product")
    line = next(line for line in printed(cell_of("03", "table-count")).splitlines() if line.startswith(f"{row} "))
    *_, collectives, sent, flops = re.split(r" {2,}", line.strip())
    at.set(row=row)
    for device in range(8):
        said = at.set(device=device)
        factors, product = re.search(r"of b: ([\d ·]+) = ([\d,]+) FLOPs", said).groups()
        assert f"{math.prod(map(int, factors.split(' · '))):,}" == product == flops
        lacks = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) of [ab]\b(?! by|:)", said)]
        if "gather" in collectives:  # of float32: a gather sends as much as a device lacks
            assert f"{4 * sum(lacks):,}" == sent
        elif row != 7:
            assert lacks == [] and "It holds all of these" in said
        assert ("Nothing is sent." if sent == "0" else f"sends {sent} bytes: {collectives}.") in said


def test_by_hand(hand):
    at = hand("product")
    # row 2: device 5 stands at x = 1, y = 1; y cuts the contraction of both
    assert "Row 2, device 5 multiplies [32:64, 16:32] of a by [16:32, 0:64] of b" in at.said()
    assert "no other device does the same work" in at.said()
    assert at.page.locator(".moving svg [stroke-dasharray='5 4']").count() == 1  # partial sums
    # row 4: of the rows of a it has a quarter of 64 columns, of the columns of b one half of 64 rows
    assert "does not hold 1,536 of a and 512 of b" in at.set(row=4)
    assert at.page.locator(".moving svg [stroke-dasharray='5 4']").count() == 0
    # row 5, data parallelism: b is whole, and the four devices of a mesh row do the same
    assert "devices 4, 6, 7 do the same work. Nothing is sent." in at.set(row=5)
    assert "[0:64, 0:64] of a by [0:64, 0:32] of b" in at.set(row=6, device=3)
    # row 7: device 2 adds up over rows 32 to 47 of b, and has rows 0 to 31; device 1 has its own, 16 to 31
    assert "[0:32, 32:48] of a by [32:48, 0:64] of b" in at.set(row=7, device=2)
    assert "does not hold 1,024 of b, and" in at.said()
    assert "It holds all of these, and" in at.set(device=1)


def test_the_numbers_are_the_lesson_s_eight_rows():
    rows = numbers_of("product")
    assert [row["row"] for row in rows] == list("01234567")
    assert rows[7]["collectives"] == "collective-permute (8 pairs) + all-reduce (y)"
    assert (rows[2]["a"], rows[2]["b"], rows[2]["sent"]) == ("P('x', 'y')", "P('y', None)", "12,288")
