"""Test lesson 05b's figure, which shows a matrix product while pieces of b are sent around the ring."""

from __future__ import annotations

import re

from tests.cell_outputs import alt_text
from tests.site.interactive_figures.conftest import cell_of


def lines(at):
    """Return the numbers in each row: the device, the slices it multiplied, its pieces of b, and its product count."""
    words = at.page.locator(".interactive-figure svg text").evaluate_all(
        "all => all.map((one) => [+one.getAttribute('x'), Math.floor(+one.getAttribute('y')), one.textContent])"
    )
    words_by_row = {}
    for x, y, word in words:
        if y > 44:
            words_by_row.setdefault((y - 44) // 30, []).append((x, word))
    rows = []
    for row in words_by_row.values():
        device, rest = " ".join(word for _, word in sorted(row)).split(" ", 1)
        slices, rest = rest.split("@")
        pieces, result = rest.split("=")
        rows.append([int(device), *([int(one) for one in part.split()] for part in (slices, pieces, result))])
    return rows


def test_a_step_is_a_row_of_the_lessons_figure(open_figure):
    drawn = alt_text(cell_of("05b", "overlap-draw"))
    assert "in use, step 0 to 7: device 0 holds 0 7 6 5 4 3 2 1; device 1 holds 1 0 7 6 5 4 3 2; " in drawn
    at = open_figure("overlapped_ring_matmul")
    # The pieces that devices 0 to 7 use in the lesson's figure, by step.
    in_use = {0: "01234567", 1: "70123456", 3: "56701234", 7: "12345670"}
    for step, row in in_use.items():
        at.set(step=step)
        assert [line[2][0] for line in lines(at)] == list(map(int, row))
        assert [line[3] for line in lines(at)] == [[step + 1]] * 8
    # At step 3, device 2 has used pieces 2, 1 and 0, uses 7, and receives 6 from device 1.
    text = at.set(step=3)
    assert lines(at)[2] == [2, [0, 1, 2, 7], [7, 6], [4]]
    assert "device 0 multiplies slice 5 of its rows with piece 5, while piece 4 arrives" in text
    assert "contains 4 of 8 products" in text and "it needs memory for 2 pieces; gathering needs memory for 8." in text
    text = at.set(step=7)
    assert "piece 1, and no more pieces arrive. Its result contains 8 of 8 products" in text
    assert lines(at)[2] == [2, list(range(8)), [3], [8]]


def test_gathering_sends_the_same_holds_all_and_multiplies_last(open_figure):
    at = open_figure("overlapped_ring_matmul")
    text = at.set(program="gathered", step=5)
    assert "device 0 has 6 of 8 pieces, and piece 2 arrives. It doesn't multiply yet." in text
    assert lines(at)[3] == [3, [], [0, 1, 2, 3, 5, 6, 7], [0]]  # device 3 has 3, 2, 1, 0, 7 and 6, and receives 5
    text = at.set(step=7)
    assert "8 of 8 pieces, and no more pieces arrive. Now it multiplies." in text
    assert "Besides its own piece, it needs memory for 8 pieces" in text
    assert lines(at)[3] == [3, list(range(8)), list(range(8)), [8]]


def test_other_numbers_of_devices_by_hand(open_figure):
    at = open_figure("overlapped_ring_matmul")
    text = at.set(devices=5, step=2)
    assert re.search(
        r"step 2 of 4: device 0 multiplies slice 3 .* piece 3, while piece 2 arrives\. Its result contains 3 of 5", text
    )
    assert lines(at)[4] == [4, [2, 3, 4], [2, 1], [3]]
    assert "step 1 of 1: device 0 multiplies slice 1" in at.set(devices=2, step=1)
    assert "gathering needs memory for 2." in at.figure_text()
