"""Check simulated pipeline schedules, and their figure, against a manual schedule and the papers' formulas."""

from __future__ import annotations

import itertools

import pytest

from lesson_helpers.pipelines.drawing import draw_schedules
from lesson_helpers.pipelines.schedule import simulate

pytestmark = pytest.mark.once


def gpipe(s, p, m):
    """Return the jobs of stage s of p in GPipe: all forward jobs, and then all backward jobs in reverse order."""
    return [("F", i) for i in range(m)] + [("B", i) for i in reversed(range(m))]


def one_f_one_b(s, p, m):
    """Return the jobs of stage s of p in 1F1B: some forward jobs, and then forward and backward jobs in turn."""
    ahead, jobs = min(p - 1 - s, m), []
    for i in range(m + ahead):
        jobs += [("F", i)] * (i < m) + [("B", i - ahead)] * (i >= ahead)
    return jobs


def interleaved(v):
    """Return a function like `one_f_one_b` for v parts per stage. Its jobs are (kind, microbatch, part)."""

    def order(s, p, m):
        forward = [("F", j // (p * v) * p + j % p, j // p % v * p + s) for j in range(v * m)]
        backward = [("B", i, (v - 1 - part // p) * p + s) for _, i, part in forward]
        ahead = min(2 * (p - 1 - s) + (v - 1) * p, v * m)
        jobs = forward[:ahead]
        for k in range(v * m):
            jobs += [*forward[ahead + k : ahead + k + 1], backward[k]]
        return jobs

    return order


def test_two_stages_and_two_microbatches():
    played = simulate(one_f_one_b, 2, 2)
    times = {(job.stage, job.kind, job.microbatch): (job.start, job.end) for job in played.jobs}
    assert times == {
        (0, "F", 0): (0, 1), (0, "F", 1): (1, 2), (0, "B", 0): (4, 6), (0, "B", 1): (7, 9),
        (1, "F", 0): (1, 2), (1, "B", 0): (2, 4), (1, "F", 1): (4, 5), (1, "B", 1): (5, 7),
    }  # fmt: skip
    assert played.end == 9 and played.bubble == pytest.approx(1 - 12 / 18) and played.peak_live == [2, 1]


@pytest.mark.parametrize(("p", "m"), [(2, 3), (4, 1), (4, 8), (4, 32), (8, 8), (8, 32)])
def test_bubble_and_memory_match_the_papers(p, m):
    for order in (gpipe, one_f_one_b):
        assert simulate(order, p, m).bubble == pytest.approx((p - 1) / (m + p - 1))
    assert simulate(gpipe, p, m).peak_live == [m] * p
    assert simulate(one_f_one_b, p, m).peak_live == [min(p - s, m) for s in range(p)]


@pytest.mark.parametrize(("p", "m", "v"), [(4, 4, 2), (4, 8, 2), (4, 32, 4), (8, 8, 2), (8, 32, 4)])
def test_interleaving_divides_the_bubble_and_needs_more_memory(p, m, v):
    played = simulate(interleaved(v), p, m, parts_per_stage=v)
    assert played.bubble == pytest.approx((p - 1) / (v * m + p - 1))
    assert played.peak_live[0] == min(m, p * (1 + (p - 1) / (p * v)))  # Korthikanti and others, section 4.2.3


def test_sends_make_1f1b_wait_more_than_gpipe():
    # GPipe takes 33 seconds, plus 3 sends of 0.5 seconds in each direction.
    assert simulate(gpipe, 4, 8, send_time=0.5).end == 36
    assert simulate(one_f_one_b, 4, 8, send_time=0.5).bubble == pytest.approx(0.4146, abs=1e-4)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (lambda s, p, m: gpipe(s, p, m)[1:], "stage 0 of 2, 3 microbatches: ('F', 0) is missing"),
        (lambda s, p, m: [*gpipe(s, p, m), ("B", 1)], "stage 0 of 2, 3 microbatches: ('B', 1) is repeated or unknown"),
        (lambda s, p, m: gpipe(s, p, m)[::-1], "deadlock: stage 0 waits for the input of ('B', 0)"),
    ],
)
def test_an_impossible_order_is_refused(order, says):
    with pytest.raises(ValueError) as error:
        simulate(order, 2, 3)
    assert str(error.value) == says


def test_a_forward_pass_takes_m_plus_p_minus_1_seconds():
    assert simulate(lambda s, p, m: [("F", i) for i in range(m)], 4, 8).end == 11


def test_the_description_of_a_picture():
    drawn = draw_schedules({"1F1B": simulate(one_f_one_b, 2, 2)}, "seconds")
    assert drawn.alt == (
        "Which stage works on which microbatch, in seconds. 1F1B: done at 9, 33% idle; "
        "stage 0 F 0 to 1, idle 2, B 0, idle 1, B 1; stage 1 idle 1, F 0, B 0, F 1, B 1, idle 2."
    )
    boxes = [patch for patch in drawn.figure.axes[0].patches if patch.get_width()]
    assert len(boxes) == 2 + 8  # for each of 2 stages, its idle background and 4 jobs
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_schedules({})


def test_weight_gradients_can_fill_the_bubble():
    # F, B and W take a second each. B waits for the next stage's B, and W only for its own stage's B.
    def order(s, p, m):
        begin, jobs = p - 1 - s, [("F", i) for i in range(p - 1 - s)]
        for i in range(m):
            jobs += [("F", begin + i)] * (begin + i < m) + [("B", i)] + [("W", i - s)] * (i >= s)
        return jobs + [("W", i) for i in range(m - s, m)]

    for p, m in itertools.product((2, 4, 5), (5, 8)):
        played = simulate(order, p, m)
        assert played.end == 3 * m + p - 1 and played.peak_live == [p] * p
