"""Exercises and predictions for lesson 12, Split the depth: pipelines."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, exercise, run_per_device

_FILL = "microbatch 7 enters stage 0 after 7 ticks, and then takes 4 ticks to pass through 4 stages"

ticks = Prediction(
    11,
    _FILL,
    {
        32: "4 stages times 8 microbatches is the total work, but the stages work at the same time",
        8: "after 8 ticks, stage 0 is done, but the others aren't",
        12: "the last microbatch starts in the eighth tick, so it passes its first stage in that tick",
    },
    "ticks",
)
first_tick = Prediction(
    "numbers",
    "every device runs its layers in every tick, and layers with biases turn zeros into other numbers",
    {
        "nothing": "a device can't skip a tick, because all devices run one program",
        "zeros": "the device starts with zeros, but what do layers with biases turn them into?",
    },
)
shifted = Prediction(
    "rises",
    "each result is compared with a different microbatch's target, so the network learns the wrong pairs",
    {"falls": "each result is compared with a different microbatch's target; does learning that help?"},
)
flops = Prediction(
    1.375,
    "each device computes in all 11 ticks, and 8 of them are useful",
    {
        1: "a device with nothing useful to do still computes",
        1.27: "3/11 is the bubble's share of all ticks; compared with the 8 useful ones, it's 3/8",
        1.5: "a stage has p - 1 extra ticks, not p",
        5.5: "that's relative to the work of one layer, but a device has four of the sixteen layers",
    },
    "times",
)
of_1f1b = Prediction(
    "the same",
    "stage 0 still has to wait while microbatch 0 goes to the last stage and comes back",
    {
        "smaller": "follow stage 0: microbatch 0 still has to reach the last stage and come back",
        "larger": "the gaps are in more places, but is their total longer?",
    },
)
live = Prediction(
    4,
    "stage 0 runs 4 forward passes before its first backward pass, and from then on the two alternate",
    {
        32: "that's GPipe, but 1F1B starts a new microbatch only when another one is finished",
        3: "stage 0 starts with 3 forward passes, but one more comes before the first backward pass",
        1: "that's the last stage; stage 0 runs more forward passes before microbatch 0 comes back",
    },
    "microbatches",
)
twice_round = Prediction(
    300 / 19,
    "a tick is half as long: a stage works for 16 of them, and still waits for 3",
    {
        300 / 22: "the waiting time is halved, so the total is shorter too",
        300 / 11: "that's the bubble with one part on each device",
        300 / 16: "that's the bubble divided by the useful ticks",
        700 / 23: "eight parts are spread over four devices: the pipeline is full after 3 ticks",
        3 / 19: "that's the share of the time; multiply it by 100",
    },
    "percent",
    rel_tol=0.02,
)


@exercise(
    "(p - 1)/(m + p - 1) should be at most the share. Solve for m, and round up.",
    cases=[(3, 0.3), (6, 0.13), (12, 0.06), (2, 0.035), (5, 0.81), (9, 0.5)],
    mistakes=[
        Mistake(
            Edit("(p - 1) * (1 - share) / share", "(p - 1) / share"),
            "that's the number of ticks, m + p - 1; or you used (p - 1)/m, the bubble relative to the useful time",
        ),
        Mistake(Edit("math.ceil", "math.floor"), "rounded down, the bubble is larger than the share"),
        Mistake(Edit("math.ceil", "round"), "rounded to the nearest integer, the bubble may be larger than the share"),
        Mistake(
            Edit("math.ceil(", "1 + math.floor("),
            "if the bubble is exactly the share, one fewer microbatch is enough",
        ),
        Mistake(Edit("(1 - share) / share", "share / (1 - share)"), "you swapped share and 1 - share"),
        Mistake(Edit("(p - 1) *", "p *"), "a stage waits for p - 1 ticks, not p"),
    ],
    question="What is the bubble with your number of microbatches, and with one fewer?",
)
def enough(p, share):
    """Return the smallest m for which the bubble of p stages is at most this share."""
    return math.ceil(
        round((p - 1) * (1 - share) / share, 9)
    )  # in floating point, 3 * 0.8 / 0.2 is slightly more than 12


@exercise(
    "In total there are p devices and m + p - 1 ticks, each as long as max(times). The useful part "
    "is the time that m microbatches spend in the stages.",
    cases=[([1.0, 1.5, 0.5, 2.0], 6), ([0.3, 0.7, 0.2], 11), ([3.0, 1.0, 2.0, 1.0, 1.25], 2)],
    mistakes=[
        Mistake(
            Edit("m * sum(times)", "m * p * max(times)"), "in each tick, the faster stages also wait for the slowest"
        ),
        Mistake(Edit("(m + p - 1)", "m"), "you forgot the ticks that fill and empty the pipeline"),
        Mistake(Edit("1 - m", "m"), "that's the useful share"),
        Mistake(
            Edit("p * (m + p - 1) * max(times)", "p * (sum(times) + (m - 1) * max(times))"),
            "while the pipeline fills, a tick is also as long as the slowest stage",
        ),
        Mistake(Edit("max(times)", "times[-1]"), "the last stage isn't always the slowest"),
        Mistake(Edit("p * (m + p - 1)", "(m + p - 1)"), "count the ticks of all p devices"),
    ],
    question=("How much device time do all ticks take in total, and how much of it is work on a microbatch?"),
)
def waste(times, m):
    """Return the wasted share of device time, given each stage's time in seconds."""
    p = len(times)
    return 1 - m * sum(times) / (p * (m + p - 1) * max(times))


ROWS, WIDTH = 3, 5


def _run_rounds(f, p, rounds):
    rng = np.random.default_rng(p)
    w = np.float32(rng.normal(size=(p * WIDTH, WIDTH)))
    x = np.float32(rng.normal(size=(p, ROWS, WIDTH)))

    def program(w, x):
        return f(w, x, rounds)[None]  # stack the results of all devices

    specs = {"in_specs": (P("stage"), P()), "out_specs": P("stage")}
    return run_per_device(program, w, x, mesh={"stage": p}, measure=("flops",), **specs)


@exercise(
    "In tick p, microbatch 0 returns to stage 0, which is free just then: stage 0 takes x for p ticks, "
    "and then whatever arrives. So the sends form a ring, in which the last stage sends to stage 0.",
    cases={"of 4 stages, 3 rounds": (4, 3), "of 8 stages, 2 rounds": (8, 2)},
    run=_run_rounds,
    mistakes=[
        Mistake(
            Edit("(stage == 0) & (t < p - 1)", "stage == 0"),
            "these are the results of the first round. Does stage 0 take the returning microbatches, and do "
            "you return the last results?",
        ),
        Mistake(Edit("range(p)]", "range(p - 1)]"), "the last stage doesn't send anything to stage 0"),
        Mistake(
            Edit('jax.lax.psum(jnp.where(stage == p - 1, results, 0), "stage")', "results"),
            "each device returns the results of its own stage, but only those of the last stage count",
        ),
        Mistake(
            Edit("jnp.where(stage == p - 1, results, 0)", "results"),
            "you add up the results of all stages, but only those of the last stage count",
        ),
        Mistake(
            Edit("[(s, (s + 1) % p)", "[((s + 1) % p, s)"),
            "you send to the left, so a microbatch passes the stages in the wrong order",
        ),
        MessageHint(
            "FLOPs of a device's products",
            "Each stage multiplies only by its own w, and no microbatch waits until all the others have "
            "finished a round",
        ),
    ],
    question="In tick t, which microbatch is in which stage, and in which round?",
)
def again(w, x, rounds):
    """Return the results (p, b, d) on all devices, given w (d, d) and x (p, b, d)."""
    p, stage = len(x), jax.lax.axis_index("stage")
    ring = [(s, (s + 1) % p) for s in range(p)]

    def tick(h, t):
        h = jnp.tanh(h @ w)
        arrived = jax.lax.ppermute(h, "stage", ring)
        return jnp.where((stage == 0) & (t < p - 1), x[(t + 1) % p], arrived), h

    first = jnp.where(stage == 0, x[0], 0)
    ticks = jnp.arange(rounds * p + p - 1)
    results = jax.lax.scan(tick, first, ticks)[1][-p:]
    return jax.lax.psum(jnp.where(stage == p - 1, results, 0), "stage")
