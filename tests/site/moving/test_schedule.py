"""Test lesson 12's figure, which draws a pipeline's schedule for the numbers that a reader chooses."""

from __future__ import annotations


def test_a_schedule_is_that_of_the_lesson_and_of_the_papers(hand):
    at = hand("schedule")
    assert "33 seconds; the share that a stage idles is 0.2727" in at.set(schedule="GPipe", stages=4, microbatches=8)
    assert "33 seconds; the share that a stage idles is 0.2727. Live at the most, by stage: 4, 3, 2, 1." in at.set(
        schedule="1F1B"
    )
    assert "idles is 0.4146" in at.by_label({"a send": 0.5})  # the number that lesson 12 prints
    assert "idles is 0.3333" in at.set(schedule="GPipe")
    # With p stages and m microbatches, both schedules idle for (p - 1) / (m + p - 1) of the time. On stage s, at most
    # m microbatches are live in GPipe, and at most min(m, p - s) in 1F1B.
    assert "Live at the most, by stage: 24, 24, 24." in at.by_label({"a send": 0, "stages": 3, "microbatches": 24})
    assert f"idles is {2 / 26:.4f}" in at.said()
    assert "Live at the most, by stage: 2, 2, 2, 2, 2, 2, 2, 1." in at.set(schedule="1F1B", stages=8, microbatches=2)
