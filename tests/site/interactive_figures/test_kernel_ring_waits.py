"""Test lesson 18's figure, which times a ring product with two buffers per device and one slow device."""

from __future__ import annotations

import re

from tests.cell_outputs import alt_text, printed_text
from tests.site.interactive_figures.conftest import cell_of


def _waits(printed: str, device: int) -> str:
    """Return the part of a figure's description that says how a device waits."""
    return re.search(rf"device {device} sends 7 times, multiplies 8 times, (waits .*?);", printed)[1]


FIGURE = {"kernel": "ring_product, which asks first", "µs of": 240}


def test_the_lessons_figure(open_figure):
    printed = alt_text(cell_of("18", "free-mended"))
    text = open_figure("kernel_ring_waits").by_label(FIGURE)
    end = re.search(r"everything is done after (\S+) µs", printed)[1]
    assert f"device 3 takes 240 µs for a product: all devices finish within {end} µs." in text
    for device in (2, 4):
        waits = re.search(rf"device {device} sends 7 times, multiplies 8 times, (waits .*?);", printed)[1]
        assert f"evice {device} {waits}" in text
    assert "No piece was overwritten too soon, and all results are right." in text


def test_any_device_may_be_the_slow_one(open_figure):
    """Test that the device before a slow device waits as in the lesson's figure, in which device 3 is slow."""
    waits = _waits(alt_text(cell_of("18", "free-mended")), 2)
    at = open_figure("kernel_ring_waits")
    at.by_label(FIGURE)
    for slow in (0, 6, 7):
        text = at.by_label({"slow device": slow})
        assert f"evice {(slow - 1) % 8} {waits.replace('device 3', f'device {slow}')}" in text


def test_who_ends_wrong_without_free_is_what_the_lesson_prints(open_figure):
    wrong = re.search(r"wrong on devices ([\d ]+)", printed_text(cell_of("18", "free-run")))[1].split()
    at = open_figure("kernel_ring_waits")
    text = at.by_label({"µs of": 240})
    assert text.endswith(f"Devices with a wrong result: {', '.join(wrong)}.")
    ends = at.page.locator(".interactive-figure svg text").all_text_contents()
    assert ends.count("wrong") == len(wrong) and ends.count("right") == 8 - len(wrong)
    # the slow device computes eight products of 320 µs each
    assert "all devices finish within 2560 µs." in at.by_label({"µs of": 320})


def test_a_cross_is_where_a_piece_was_still_to_be_read(open_figure):
    """Test when the first cross appears, which marks a piece that's overwritten while it's still being sent.

    Device 2's copy of step 2 begins after two products of 87.21 µs, and takes 83.89 µs. It overwrites buffer 1 of
    device 3, which sends that buffer's content from 240 to 323.9 µs, during its step 1.
    """
    text = open_figure("kernel_ring_waits").by_label({"µs of": 240})
    assert "the first on device 3 after 258.3 µs" in text
