"""Exercises and predictions of lesson 12, Split the depth: pipelines."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, WhenMessage, exercise, run_per_device

_FILL = "microbatch 7 enters stage 0 after 7 ticks, and then takes 4 ticks to pass through 4 stages"

ticks = Prediction(
    11,
    _FILL,
    {
        32: "4 stages times 8 microbatches is the work of all; the stages work at the same time",
        8: "after 8 ticks stage 0 is done; the others are not",
        12: "the last microbatch begins in the eighth tick, so it passes its first stage in that tick",
    },
    "ticks",
)
first_tick = Prediction(
    "numbers",
    "each device runs the whole program in every tick: what do its layers, which have biases, make of zeros?",
    {
        "nothing": "a device cannot leave a tick out: all devices run one program",
        "zeros": "it begins with zeros, but its layers have biases",
    },
)
shifted = Prediction(
    "rises",
    "each result is compared with the label of another microbatch; what the network learns for that, it unlearns here",
    {"falls": "each result is compared with the label of another microbatch; does learning that help?"},
)
flops = Prediction(
    1.375,
    "each device computes in all 11 ticks, and 8 of them are useful",
    {
        1: "a device that has nothing useful to do computes all the same",
        1.27: "3/11 is the bubble's share of all ticks; over the 8 useful ones it is 3/8",
        1.5: "a stage has p - 1 ticks too many, not p",
        5.5: "that is over a quarter of a quarter: a device has four of the sixteen layers",
    },
    "times",
)
of_1f1b = Prediction(
    "the same",
    "microbatch 0 still has to reach the last stage and come back before stage 0 can do more than wait",
    {
        "smaller": "follow stage 0: microbatch 0 still has to reach the last stage and come back",
        "larger": "the gaps are in more places; are they longer in all?",
    },
)
live = Prediction(
    4,
    "it starts 3 forward passes ahead, and one more before the first backward pass ends; from then on they take turns",
    {
        32: "that is GPipe: 1F1B takes in a new one only for one that is done",
        3: "it starts 3 ahead; then comes one more forward pass before the first backward pass",
        1: "that is the last stage; on stage 0, microbatch 0 takes a while to come back",
    },
    "microbatches",
)
twice_round = Prediction(
    300 / 19,
    "a tick is half as long: 16 useful ones, and still 3 in which a stage waits",
    {
        300 / 22: "the waiting time is halved, so the total is shorter too",
        300 / 11: "that's the bubble with one part on each device",
        300 / 16: "that's the bubble divided by the useful ticks",
        700 / 23: "eight parts are spread over four devices: the pipeline is full after 3 ticks",
        3 / 19: "that's the share of the time; multiply it by 100",
    },
    "percent",
    within=0.02,
)


@exercise(
    "(p - 1)/(m + p - 1) is to be at most the share. Solve for m, and round up.",
    cases=[(3, 0.3), (6, 0.13), (12, 0.06), (2, 0.035), (5, 0.81), (9, 0.5)],
    mistakes=[
        Mistake(
            Edit("(p - 1) * (1 - share) / share", "(p - 1) / share"),
            "that is the number of ticks, m + p - 1; or you took (p - 1)/m, the bubble over the useful time",
        ),
        Mistake(Edit("math.ceil", "math.floor"), "rounded down, the bubble is larger than the share"),
        Mistake(Edit("math.ceil", "round"), "rounded to the nearest, the bubble may be larger than the share"),
        Mistake(Edit("math.ceil(", "1 + math.floor("), "one fewer is enough where it gives just the share"),
        Mistake(Edit("(1 - share) / share", "share / (1 - share)"), "share and 1 - share have changed places"),
        Mistake(Edit("(p - 1) *", "p *"), "a stage waits p - 1 ticks, not p"),
    ],
    question="What is the bubble with your number of microbatches, and with one fewer?",
)
def enough(p, share):
    """Return the least m with which the bubble of p stages is at most this share."""
    return math.ceil(round((p - 1) * (1 - share) / share, 9))  # 3 * 0.8 / 0.2 is a bit more than 12


@exercise(
    "All: p devices, m + p - 1 ticks, each as long as max(times). Useful: m microbatches through every stage.",
    cases=[([1.0, 1.5, 0.5, 2.0], 6), ([0.3, 0.7, 0.2], 11), ([3.0, 1.0, 2.0, 1.0, 1.25], 2)],
    mistakes=[
        Mistake(
            Edit("m * sum(times)", "m * p * max(times)"), "in each tick the faster stages wait for the slowest, too"
        ),
        Mistake(Edit("(m + p - 1)", "m"), "the ticks that fill and empty the pipeline are missing"),
        Mistake(Edit("1 - m", "m"), "that is the useful share"),
        Mistake(
            Edit("p * (m + p - 1) * max(times)", "p * (sum(times) + (m - 1) * max(times))"),
            "while the pipeline fills, a tick is as long as the slowest stage, too",
        ),
        Mistake(Edit("max(times)", "times[-1]"), "the last stage is not always the slowest"),
        Mistake(Edit("p * (m + p - 1)", "(m + p - 1)"), "the time of all p devices counts"),
    ],
    question="How long are all ticks together, for all devices, and how much of that is work on a microbatch?",
)
def waste(times, m):
    """Return the share of device time that is not useful; times: seconds by stage."""
    p = len(times)
    return 1 - m * sum(times) / (p * (m + p - 1) * max(times))


ROWS, WIDTH = 3, 5


def _again(f, p, rounds):
    rng = np.random.default_rng(p)
    w = np.float32(rng.normal(size=(p * WIDTH, WIDTH)))
    x = np.float32(rng.normal(size=(p, ROWS, WIDTH)))

    def program(w, x):
        return f(w, x, rounds)[None]  # from each device

    specs = {"in_specs": (P("stage"), P()), "out_specs": P("stage")}
    return run_per_device(program, w, x, mesh={"stage": p}, measure=("flops",), **specs)


@exercise(
    "In tick p microbatch 0 comes back to stage 0, when its place is free: stage 0 takes x for p ticks, and then what arrives. "
    "So the sends go round: the last stage sends to stage 0.",
    cases={"of 4 stages, 3 rounds": (4, 3), "of 8 stages, 2 rounds": (8, 2)},
    run=_again,
    mistakes=[
        Mistake(
            Edit("(stage == 0) & (t < p - 1)", "stage == 0"),
            "the results are those of the first round; does stage 0 "
            "take what comes back, and do you return the last results?",
        ),
        Mistake(Edit("range(p)]", "range(p - 1)]"), "the last stage sends nothing to stage 0"),
        Mistake(
            Edit('jax.lax.psum(jnp.where(stage == p - 1, results, 0), "stage")', "results"),
            "each device returns what its own stage computed; the results are in the last one",
        ),
        Mistake(
            Edit("jnp.where(stage == p - 1, results, 0)", "results"),
            "that adds up what all stages computed; the results are in the last",
        ),
        Mistake(
            Edit("[(s, (s + 1) % p)", "[((s + 1) % p, s)"),
            "the sends go to the left: a microbatch meets the stages in the wrong order",
        ),
        WhenMessage(
            "FLOPs of a device's products",
            "Each stage multiplies with its own w alone, and no microbatch waits until all others have "
            "ended their round",
        ),
    ],
    question="Which microbatch is in which stage in tick t, and in which round?",
)
def again(w, x, rounds):
    """Per device: (d, d), (p, b, d), an int -> (p, b, d), the same on all devices."""
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
