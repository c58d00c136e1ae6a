"""Test lesson 18's figure: the ring product through two buffers, with a slow device."""

from __future__ import annotations

import re

from tests.site.moving.conftest import cell_of
from tools.site import interactive_figures


def _waits(told: str, device: int) -> str:
    return re.search(rf"device {device} sends 7 times, multiplies 8 times, (waits .*?);", told)[1]


FIGURE = {"kernel": "ring_product, which asks first", "µs of": 60}


def test_the_lessons_figure(hand):
    told = interactive_figures.alt_text(cell_of("18", "free-mended"))
    said = hand("waits").by_label(FIGURE)
    end = re.search(r"everything is done after (\S+) µs", told)[1]
    assert f"device 3 takes 60 µs for a product: all is done after {end} µs." in said
    for device in (2, 4):
        waits = re.search(rf"device {device} sends 7 times, multiplies 8 times, (waits .*?);", told)[1]
        assert f"evice {device} {waits}" in said
    assert "No piece was overwritten too soon, and all end right." in said


def test_any_device_may_be_the_slow_one(hand):
    """The ring is symmetric, so what the lesson's figure says of device 2 beside 3 holds beside any slow device."""
    waits = _waits(interactive_figures.alt_text(cell_of("18", "free-mended")), 2)
    at = hand("waits")
    at.by_label(FIGURE)
    for slow in (0, 6, 7):
        said = at.by_label({"slow device": slow})
        assert f"evice {(slow - 1) % 8} {waits.replace('device 3', f'device {slow}')}" in said


def test_who_ends_wrong_without_free_is_what_the_lesson_prints(hand):
    wrong = re.search(r"wrong on devices ([\d ]+)", interactive_figures.printed_text(cell_of("18", "free-run")))[
        1
    ].split()
    at = hand("waits")
    said = at.by_label({"µs of": 60})
    assert said.endswith(f"wrong in the end: {', '.join(wrong)}.")
    ends = at.page.locator(".moving svg text").all_text_contents()
    assert ends.count("wrong") == len(wrong) and ends.count("right") == 8 - len(wrong)
    # by hand: eight products of the slow one, of 80 µs
    assert "all is done after 640 µs." in at.by_label({"µs of": 80})


def test_a_cross_is_where_a_piece_was_still_to_be_read(hand):
    """By hand: device 2's copy of step 2 begins after two products of 21.80 µs, and arrives 20.97 µs later.

    It arrives in buffer 1, from which device 3 sends its step 1 from 60 to 80.97 µs.
    """
    said = hand("waits").by_label({"µs of": 60})
    assert "the first on device 3 after 64.58 µs" in said
