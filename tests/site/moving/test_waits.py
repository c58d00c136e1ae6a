"""Lesson 18: the ring gather through two buffers, when a device is slow."""

from __future__ import annotations

import ast
import re

from tests.site.moving.conftest import cell_of
from tools import moving


def test_it_opens_with_the_lessons_figure(hand):
    told = moving.alt(cell_of("18", "ring-mend"))
    said = hand("waits").said()
    end = re.search(r"all done at tick (\d+)", told)[1]
    assert f"device 3 takes 8 ticks for a copy inside it: all is done at tick {end}." in said
    for device in (2, 4):
        waits = re.search(rf"device {device} sends 7 x, (waits .*?);", told)[1]
        assert f"evice {device} {waits}" in said
    assert "No piece was overwritten too soon, and all end right." in said


def test_any_device_may_be_the_slow_one(hand):
    """The ring is the same everywhere: what the figure says of devices 2 and 4 around 3 holds around any slow one."""
    told = moving.alt(cell_of("18", "ring-mend"))
    at = hand("waits")
    for slow in (0, 6, 7):
        said = at.by_label({"slow device": slow})
        for device in (2, 4):
            waits = re.search(rf"device {device} sends 7 x, (waits .*?);", told)[1].replace(
                "device 3", f"device {slow}"
            )
            assert f"evice {(device - 3 + slow) % 8} {waits}" in said


def test_who_ends_wrong_without_free_is_what_the_lesson_prints(hand):
    wrong = ast.literal_eval(re.search(r"wrong: (\{.*\})", moving.printed(cell_of("18", "ring-run")))[1])
    assert set(wrong) == {1, 2, 8}
    at = hand("waits")
    for ticks, devices in wrong.items():
        said = at.by_label({"kernel": "two buffers", "ticks of": ticks})
        if devices:
            assert said.endswith(f"wrong in the end: {', '.join(map(str, devices))}.")
            assert "on device 3" in said
        else:
            assert said.endswith("No piece was overwritten too soon in this timing, and all end right.")
        ends = at.page.locator(".moving svg text").all_text_contents()
        assert ends.count("wrong") == len(devices) and ends.count("right") == 8 - len(devices)
    # all devices alike by hand: a signal 1, two copies inside 2, then seven rounds of 4 and 1
    assert "all devices alike: all is done at tick 38." in at.by_label({"ticks of": 1})
    # with free a round has a signal more: 1 + 2 + 7 * 5 + 6 * 1
    assert "all devices alike: all is done at tick 44." in at.set(kernel="two buffers and free")
    # the slow one sets the pace, by hand: 1 + 2 * 8 + 7 * (4 + 8)
    said = at.by_label({"kernel": "two buffers", "ticks of": 8, "slow device": 6})
    assert "all is done at tick 101." in said


def test_a_cross_is_where_a_piece_was_still_to_be_read(hand):
    """By hand, 2 ticks inside device 3: round k of device 2 begins at 3 + 5 k and lands 4 later, in the buffer from
    which device 3 sends in its own round k - 1, until 5 + 6 (k - 1) + 4. That is too soon in rounds 5 and 6."""
    said = hand("waits").by_label({"kernel": "two buffers", "ticks of": 2})
    late = [3 + 5 * k + 4 for k in range(1, 7) if 3 + 5 * k + 4 < 5 + 6 * (k - 1) + 4]
    assert late == [32, 37]
    assert f"{len(late)} pieces were overwritten too soon (crosses), the first on device 3 at tick {late[0]};" in said
