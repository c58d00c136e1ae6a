"""Test lesson 05's figure of one device's part in a collective."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import alt_text
from tests.site.interactive_figures.conftest import cell_of


@pytest.mark.parametrize(
    "figure, names",
    [
        ("move", {"psum": "psum", "ppermute": "ppermute, 8 pairs", "7 pairs": "ppermute, 7 pairs"}),
        ("move", {"all_gather": "all_gather"}),
        ("eight", {"psum_scatter": "psum_scatter", "all_to_all": "all_to_all"}),
    ],
)
def test_each_device_gets_what_the_lessons_figures_say(open_figure, figure, names):
    at = open_figure("collective_result")
    alt = alt_text(cell_of("05", figure))
    for title, name in names.items():
        band = re.search(rf"{title}: ((?:[^.]|\.\d)*)\.", alt)[1]
        each = re.findall(r"device (\d) holds ([\d ]+)", band)
        holds = dict(each) or dict.fromkeys("01234567", re.fullmatch(r"every device holds (.*)", band)[1])
        assert len(holds) == 8
        for device in "036" if each else "5":
            text = at.set(collective=name, device=int(device))
            assert f"{name}: device {device} gets {holds[device]}." in text


def test_the_mean_and_the_largest_which_the_lesson_does_not_draw(open_figure):
    """Check pmean and pmax of 3 1 4 8 5 9 2 6, whose sum is 38: the mean is 4.75, and the maximum is 9."""
    at = open_figure("collective_result")
    assert "pmean: device 5 gets 4.75." in at.set(collective="pmean", device=5)
    assert "pmax: device 0 gets 9." in at.set(collective="pmax", device=0)


def test_who_enters_and_where_a_number_goes(open_figure):
    at = open_figure("collective_result")
    assert "device 5 gets 5 15 25 35 45 55 65 75." in at.figure_text()
    assert "gets 2 12 22 32 42 52 62 72. The result uses element 2 of each of the eight parts." in at.set(device=2)
    assert dashed(at) == 1 and arrows(at) == 8
    # the 7 pairs are (i, i + 1) for i < 7, and the eighth is (7, 0)
    assert "device 0 gets 0. No number arrives" in at.set(collective="ppermute, 7 pairs", device=0)
    assert arrows(at) == 0
    assert "It uses only the number of device 6." in at.set(device=7)
    assert "It uses only the number of device 7." in at.set(collective="ppermute, 8 pairs", device=0)
    assert arrows(at) == 1 and dashed(at) == 0  # a device doesn't keep its own number
    out = {"arrows": "out of its numbers"}
    assert "the 3 of device 0 goes into the result of device 1 only" in at.set(**out)
    assert "the 6 of device 7 is in no result" in at.set(collective="ppermute, 7 pairs", device=7)
    assert "the 9 of device 5 goes into the results of all eight devices" in at.set(collective="all_gather", device=5)
    assert arrows(at) == 8 and dashed(at) == 1
    text = at.set(collective="psum_scatter", device=3)
    assert "element j of device 3's numbers 30 31 32 33 34 35 36 37 goes into the result of device j" in text
    assert arrows(at) == 8 and strong(at) == ["30", "31", "32", "33", "34", "35", "36", "37"]
    assert strong(at.set(arrows="into its result") and at) == ["3", "13", "23", "33", "43", "53", "63", "73"]


def arrows(at):
    """Count the arrowheads, which are lines with three points."""
    lines = at.page.locator(".interactive-figure polyline").evaluate_all(
        "all => all.map((line) => line.getAttribute('points'))"
    )
    return sum(len(line.split()) == 3 for line in lines)


def dashed(at):
    return at.page.locator(".interactive-figure polyline[stroke-dasharray]").count()


def strong(at):
    """Return the numbers in thick frames in the upper row, which shows the devices before the collective."""
    return at.page.locator(".interactive-figure svg").evaluate(
        """svg => [...svg.querySelectorAll("rect[stroke-width='2']")]
            .filter((box) => Number(box.getAttribute("y")) < 200).map((box) => box.nextSibling.textContent)"""
    )
