"""Test lesson 12's figure, which draws a pipeline's schedule for the numbers that a reader chooses."""

from __future__ import annotations

from tools.site import interactive_figures


def test_a_schedule_is_that_of_the_lesson_and_of_the_papers(open_figure):
    at = open_figure("pipeline_schedule")
    gpipe = at.set(schedule="GPipe", stages=4, microbatches=8)
    assert "GPipe with 4 stages and 8 microbatches takes 33 seconds, and each stage is idle for 27.3%" in gpipe
    one_f_one_b = at.set(schedule="1F1B")
    assert "takes 33 seconds, and each stage is idle for 27.3% of the time." in one_f_one_b
    assert "Most live microbatches, by stage: 4, 3, 2, 1." in one_f_one_b
    assert "idle for 41.5%" in at.by_label({"seconds per send": 0.5})  # the number that lesson 12 prints
    assert "idle for 33.3%" in at.set(schedule="GPipe")
    # With p stages and m microbatches, both schedules idle for (p - 1) / (m + p - 1) of the time. On stage s, at most
    # m microbatches are live in GPipe, and at most min(m, p - s) in 1F1B.
    at.by_label({"seconds per send": 0, "stages": 3, "microbatches": 24})
    assert "Most live microbatches, by stage: 24, 24, 24." in at.figure_text()
    assert f"idle for {100 * 2 / 26:.1f}%" in at.figure_text()
    assert "by stage: 2, 2, 2, 2, 2, 2, 2, 1." in at.set(schedule="1F1B", stages=8, microbatches=2)
    assert "1F1B with 8 stages and 1 microbatch takes" in at.set(microbatches=1)


def test_1f1b_can_be_seen_before_its_questions_but_not_their_answers(open_figure):
    at = open_figure("pipeline_schedule")
    numbers, drawn = interactive_figures.question_numbers("12"), at.page.locator(".interactive-figure svg")
    hide = "id => document.body.append(Object.assign(document.createElement('i'), { id }))"
    for name in ("of_1f1b", "live"):
        at.page.evaluate(hide, f"answer-{numbers[name]}")
    # With m microbatches, a complete schedule of 4 stages takes 3 (m + 3) seconds.
    for m in (1, 4, 24):
        figure_text = at.set(schedule="1F1B", stages=4, microbatches=m)
        assert "The first 11 seconds of 1F1B with 4 stages" in figure_text and "guess first" in figure_text
        assert not any(word in figure_text for word in ("takes", "idle for", "Most live"))
        assert (
            drawn.locator("text", has_text="11 s").count() == 1 and drawn.locator("text", has_text="live").count() == 0
        )
    assert at.place.get_by_role("link").get_attribute("href") == f"#question-{numbers['of_1f1b']}"
    at.page.evaluate("id => document.getElementById(id).remove()", f"answer-{numbers['of_1f1b']}")
    figure_text = at.set(microbatches=4)
    assert (
        "takes 21 seconds" in figure_text
        and "Most live" not in figure_text
        and drawn.locator("text", has_text="live").count() == 0
    )
    assert at.place.get_by_role("link").get_attribute("href") == f"#question-{numbers['live']}"
    at.page.evaluate("id => document.getElementById(id).remove()", f"answer-{numbers['live']}")
    assert "Most live microbatches, by stage: 4, 3, 2, 1." in at.set(microbatches=5)
    assert drawn.locator("text", has_text="live").count() == 1 and at.place.get_by_role("link").count() == 0
