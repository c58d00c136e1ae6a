"""Test lesson 07's figure of a collective's steps on a ring."""

from __future__ import annotations

import re


def slots(at):
    """Return the numbers in all slots as [slot][device], by their positions in the figure. An empty slot gives ""."""
    words = at.page.locator(".interactive-figure svg text").evaluate_all(
        "all => all.map((one) => [+one.getAttribute('x'), +one.getAttribute('y'), one.textContent])"
    )
    start = next(i for i, (_, _, word) in enumerate(words) if word == "device") + 1
    n = int(at.place.get_by_label(re.compile("^devices")).input_value())
    devices = {words[start + 2 * i][0]: i for i in range(n)}  # the labels of devices and slots alternate
    height = {round(words[start + 2 * i + 1][1]): i for i in range(n)}
    words_by_position = [[""] * n for _ in range(n)]
    for x, y, word in words[start + 2 * n :]:
        if x in devices and round(y) - 1 in height:
            words_by_position[height[round(y) - 1]][devices[x]] = word
    return words_by_position


def column(at, device):
    return [line[device] for line in slots(at)]


def test_it_opens_before_the_first_step_of_the_lessons_all_reduce(open_figure):
    at = open_figure("ring_collective")
    assert "after step 0 of 14: 0 of 64 slots contain a complete sum. Each device has sent 0 blocks" in at.figure_text()
    assert slots(at) == [["1"] * 8] * 8
    at.place.get_by_role("button", name="Play").click()
    at.place.locator(".caption", has_text="after step 1 of 14").wait_for()


def test_the_gather_is_half_full_after_three_steps(open_figure):
    at = open_figure("ring_collective")
    text = at.set(collective="all-gather, one way", step=3)
    assert "after step 3 of 7: 32 of 64 slots are filled" in text
    assert "3 blocks: 3/8 of the array." in at.figure_text()
    assert column(at, 3) == ["0", "1", "2", "3", "", "", "", ""]
    assert column(at, 1) == ["0", "1", "", "", "", "", "6", "7"]


def test_steps_and_bytes_are_those_by_hand(open_figure):
    at = open_figure("ring_collective")
    assert "7 blocks: 7/8 of the array, which is (n - 1)/n." in at.set(collective="all-gather, one way", step=7)
    # One way, the all-gather takes 7 steps, in which a device sends 7/8 of the array. The short way, it takes 4 steps,
    # in which at most 4/8 of the array go over a wire in one direction.
    text = at.set(collective="all-gather, short way", step=4)
    assert "after step 4 of 4: 64 of 64" in text
    assert "7 blocks, 4 to the right and 3 to the left: 7/8 of the array" in text
    assert "at most 4/8 over a wire in one direction" in text
    assert "after step 7 of 7: 8 of 64 slots are not empty" in at.set(collective="reduce-scatter", step=7)
    assert "7 blocks: 7/8 of the array" in at.figure_text()  # 3,584 of 4,096 bytes
    assert "after step 14 of 14: 64 of 64 slots contain a complete sum" in at.set(collective="all-reduce", step=14)
    assert "14 blocks: 14/8 of the array, which is 2 (n - 1)/n." in at.figure_text()  # 7,168 bytes, twice 3,584
    assert "28 blocks: 28/8 of the array, in bundles of 7, 6, 5, 4, 3, 2, 1." in at.set(
        collective="all-to-all", step=7
    )  # 3.5 * 4,096 = 14,336 bytes, as lesson 07 counts for each wire


def test_the_slots_are_those_of_the_lessons_panels(open_figure):
    at = open_figure("ring_collective")
    # Reduce-scatter: by step 4, each device has sent away four slots, and another slot contains the sum of 5 blocks. In
    # the end, each device has only the complete sum of its own slot.
    assert at.set(collective="reduce-scatter", step=0) and slots(at) == [["1"] * 8] * 8
    at.set(step=4)
    assert column(at, 0) == ["1", "1", "1", "5", "", "", "", ""]
    assert column(at, 6) == ["1", "5", "", "", "", "", "1", "1"]
    at.set(step=7)
    assert [[x for x in line if x] for line in slots(at)] == [["8"]] * 8
    assert all(slots(at)[k][k] == "8" for k in range(8))
    # From those sums, the second half of an all-reduce fills one slot per step, with blocks that travel to the right.
    at.set(collective="all-reduce", step=8)
    assert column(at, 0) == ["8", "", "", "", "", "", "", "8"]
    # The short way fills a slot on either side in each step, except in the last, which fills only one.
    at.set(collective="all-gather, short way", step=3)
    assert column(at, 0) == ["0", "1", "2", "3", "", "5", "6", "7"]
    assert column(at, 5) == ["0", "", "2", "3", "4", "5", "6", "7"]
    # All-to-all: a device's blocks start in one column, all with its number, and then travel to the right. In the end,
    # all blocks in row j are from device j.
    at.set(collective="all-to-all", step=0)
    assert all(column(at, k) == [str(k)] * 8 for k in range(8))
    at.set(step=2)
    # Device 0 keeps one block each from devices 0, 7 and 6, and passes on the other blocks from 6.
    assert column(at, 0) == ["0", "6", "6", "6", "6", "6", "6", "7"]
    # Device 4 keeps one block each from devices 4, 3 and 2, and passes on the other blocks from 2.
    assert column(at, 4) == ["2", "2", "2", "3", "4", "2", "2", "2"]
    at.set(step=7)
    assert slots(at) == [[str(j)] * 8 for j in range(8)]


def test_other_numbers_of_devices_by_hand(open_figure):
    at = open_figure("ring_collective")
    at.set(collective="all-gather, one way")
    assert "after step 4 of 4: 25 of 25" in at.set(devices=5, step=4) and "4 blocks: 4/5" in at.figure_text()
    text = at.set(collective="all-gather, short way", step=2)
    assert "after step 2 of 2: 25 of 25" in text and "2 to the right and 2 to the left" in text
    text = at.set(collective="all-to-all", devices=4, step=3)
    assert "6 blocks: 6/4 of the array, in bundles of 3, 2, 1." in text
    text = at.set(devices=2, step=1)
    assert "4 of 4 blocks are where they belong" in text and "1 block: 1/2 of the array, in one bundle." in text
    assert "after step 1 of 2: 2 of 4 slots contain a complete sum" in at.set(collective="all-reduce", step=1)
    assert "after step 1 of 1: 4 of 4" in at.set(collective="all-gather, short way", step=1)
    assert "1 to the right and 0 to the left" in at.figure_text()
