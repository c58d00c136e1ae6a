"""Test lesson 01's figure, which compares loops that wait for the device at different times."""

from __future__ import annotations

import re

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


def test_waiting_at_the_end_is_as_the_lesson_prints_and_says(open_figure):
    at = open_figure("async_dispatch")
    assert "A loop that waits in every second step takes 9 ticks" in at.figure_text()
    text = at.set(second="at the end")
    # A load and a step take one tick each. Waiting in every step takes all 12 ticks, and waiting at the end takes 7:
    # six for the loads and one for the last step.
    assert "A loop that waits in every step takes 12 ticks. During 6 ticks of loading, the device works for 0" in text
    assert "A loop that waits at the end takes 7 ticks: the device works for 5 ticks and waits for 1" in text
    assert text.endswith("The first loop takes 1.7 times as long.")
    printed = re.findall(r"during (\d) of 6 loads", printed_text(cell_of("01", "wait-run")))
    assert re.findall(r"works for (\d)", text) == printed == ["0", "5"]


def test_the_longer_of_load_and_step_sets_the_pace(open_figure):
    at = open_figure("async_dispatch")
    at.set(second="at the end")
    # With loads of 3 ticks and steps of 1, waiting at the end takes 6 · 3 + 1 ticks, and the device works during 1 of
    # the 3 ticks of each load but the first. Waiting in every step takes 6 · 4 ticks.
    text = at.set(a_load=3, a_step=1)
    assert (
        "every step takes 24 ticks. During 18 ticks of loading, the device works for 0 ticks and waits for 18" in text
    )
    assert "at the end takes 19 ticks: the device works for 5 ticks and waits for 13, and at most 1 step is" in text
    # With loads of 0.5 ticks and steps of 2, waiting at the end takes 0.5 + 6 · 2 ticks. The steps are enqueued at 0.5,
    # 1, ..., 3 and done at 2.5, 4.5, ..., so at tick 3, one of the six is done.
    text = at.set(a_load=0.5, a_step=2)
    assert "every step takes 15 ticks" in text
    assert (
        "at the end takes 12.5 ticks: the device works for 2.5 ticks and waits for 0.5, and at most 5 steps are" in text
    )
    assert text.endswith("1.2 times as long.")


def test_occasional_waiting(open_figure):
    at = open_figure("async_dispatch")
    # With loads and steps of 1 tick, each of the three groups of two loads and two steps takes 3 ticks. The device
    # works during one load of each group.
    text = at.figure_text()
    assert "A loop that waits in every second step takes 9 ticks: the device works for 3 ticks and waits for 3" in text
    assert text.endswith("1.3 times as long.")
    # Each of the two groups of three loads and three steps takes 4 ticks.
    assert "in every third step takes 8 ticks: the device works for 4 ticks and waits" in at.set(
        second="in every third step"
    )
    # With loads of 1 tick and steps of 3, a group's steps are enqueued at 1, 2 and 3 and done at 4, 7 and 10. Each
    # of the two groups takes 10 ticks, and at tick 3, three steps are unfinished.
    text = at.set(a_step=3)
    assert (
        "in every third step takes 20 ticks: the device works for 4 ticks and waits for 2, and at most 3 steps" in text
    )


def test_the_picture_has_a_bar_for_each_load_and_each_step_and_says_where_the_host_waits(open_figure):
    at = open_figure("async_dispatch")
    at.set(second="at the end")
    words = at.page.locator(".interactive-figure svg text").all_text_contents()
    assert [words.count(str(i)) for i in range(1, 6)] == [4] * 5  # a load and a step in each of two loops
    assert words.count("waits") == 6 + 1
    assert "waits at the end: 7 ticks" in words
