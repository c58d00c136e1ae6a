"""Exercises and predictions of lesson 05, Writing the per-device program with shard_map."""

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Bound,
    Edit,
    Mistake,
    Observed,
    Prediction,
    WhenMessage,
    build_mesh,
    exercise,
    run_per_device,
)

joined = Prediction(
    40,
    "each of the eight devices returns five numbers, and P('X') joins them",
    {
        5: "that is what one device returns; eight of them are joined",
        8: "each device returns five, not one",
        128_256: "a device returns five numbers, not its whole part",
    },
    "numbers",
)
forgotten = Prediction(
    8,
    "on each device the quotients add up to 1, and there are eight devices",
    {1: "each device divides by the sum of its own part alone", 0.125: "e.sum() is about an eighth of the whole sum"},
)
ordered = Prediction(
    448_896,
    "every device is to see all scores: it lacks 7 x 16,032 of them, at 4 bytes",
    {
        0: "the scores lie split, and each device is to see all of them",
        513_024: "its own eighth need not travel",
        64_128: "that is a device's own part; it goes to seven others",
        175: "nothing picks candidates before the scores travel",
    },
    "bytes",
)
scattered = Prediction(
    296,
    "place 2 of each part: 2 + 12 + 22 + 32 + 42 + 52 + 62 + 72",
    {
        188: "that is the sum of device 2's own part; parts are added place by place",
        2464: "that is the sum of all 64 numbers",
        288: "that is place 1, which device 1 keeps",
        304: "that is place 3, which device 3 keeps",
        22: "that is its own number; eight are added",
    },
)
unproved = Prediction(
    3,
    "nobody adds anything: each device keeps its own number, and you are shown that of device 0",
    {38: "nothing adds up the eight numbers", 9: "nothing compares the eight numbers", 6: "that is device 7's copy"},
)
in_groups = Prediction(
    18,
    "three float32 numbers are 12 bytes, and four devices share a sum: 2 · 3/4 · 12",
    {
        21: "four devices share a sum, not all eight",
        12: "along model there are four devices; two lie along data",
        9: "an all-reduce sends twice: to add up, and to hand out",
        36: "a device has three tokens, not six",
        6: "a device has three numbers to add",
    },
    "bytes",
)
ring = Prediction(
    7_168,
    "seven sends of the 1,024 bytes that a piece has",
    {
        8_192: "after the eighth product nothing is sent",
        1_024: "that is one send of seven",
        57_344: "a device sends one piece at a time, to one neighbour",
    },
    "bytes",
)


def _along_x(f, x, n):
    return run_per_device(f, x, mesh={"X": n}, in_specs=P("X"), out_specs=P("X"))


def _long():
    rng = np.random.default_rng(0)
    parts = {"40 numbers on 8 devices": (5, 8), "250 numbers on 5 devices": (50, 5)}
    return {name: ((1.37 * rng.permutation(k * n) - 3.3).astype(np.float32), n) for name, (k, n) in parts.items()}


@exercise(
    "One number has to come, the left neighbour's last: jax.lax.ppermute of x[-1:]. What does device 0 get, if nobody "
    "sends to it?",
    cases=_long,
    mistakes=[
        Mistake(
            Edit("[(i, i + 1) for i in range(n - 1)]", "[(i, (i + 1) % n) for i in range(n)]"),
            "from the first number of all the last device's last is taken away, as in a ring",
        ),
        Mistake(
            Edit('x[-1:], "X"', 'x[:1], "X"'), "the number before a part is the left neighbour's last, not its first"
        ),
        Mistake(Edit("(i, i + 1)", "(i + 1, i)"), "the pairs are (from, to), and the number has to come from the left"),
        Mistake(
            Edit("before, x[:-1]", "0 * before, x[:-1]"),
            "from the first number of each part nothing is taken away; that holds for the first of all alone",
        ),
        Mistake(
            Edit("before, x[:-1]", "x[:1], x[:-1]"),
            "the first number of each part becomes 0, as if it stood before itself",
        ),
        WhenMessage("bytes that a device sends", "which of a device's numbers does its neighbour need?"),
    ],
    run=_along_x,
)
def differences(x):
    """One device: its part of x -> each number minus the one before it in all of x."""
    n = jax.lax.axis_size("X")
    before = jax.lax.ppermute(x[-1:], "X", [(i, i + 1) for i in range(n - 1)])
    return x - jnp.concatenate([before, x[:-1]])


@exercise(
    "What must a device know of the devices to its left? One number of each: jax.lax.all_gather(x.sum(), 'X'). Then add "
    "those that stand before jax.lax.axis_index('X').",
    cases=_long,
    mistakes=[
        Mistake(
            Edit("before + jnp.cumsum(x)", "jnp.cumsum(x)"),
            "each part begins anew: what stands to the left of it is missing",
        ),
        Mistake(
            Edit("jnp.arange(sums.size) <", "jnp.arange(sums.size) <="),
            "a device's own sum is counted twice; its running sum has it",
        ),
        Mistake(
            Edit("jnp.arange(sums.size) < jax", "jnp.arange(sums.size) != jax"),
            "the sums of the devices to the right are in it, too",
        ),
        Mistake(
            Edit("jnp.arange(sums.size) < jax", "jnp.arange(sums.size) > jax"),
            "you add the sums of the devices to the right",
        ),
        Mistake(
            Edit(
                'jnp.arange(sums.size) < jax.lax.axis_index("X")',
                'jnp.arange(sums.size) == jax.lax.axis_index("X") - 1',
            ),
            "the left neighbour's sum is added alone; all devices to the left count",
        ),
        WhenMessage("bytes that a device sends", "one number of each device is enough"),
    ],
    run=_along_x,
)
def running_sum(x):
    """One device: its part of x -> the running sum of all of x, at the same places."""
    sums = jax.lax.all_gather(x.sum(), "X")
    before = jnp.where(jnp.arange(sums.size) < jax.lax.axis_index("X"), sums, 0).sum()
    return before + jnp.cumsum(x)


def _scored(f, scores, word, n):
    return run_per_device(f, scores, word, mesh={"X": n}, in_specs=(P("X"), P()), out_specs=P())


def _texts():
    rng = np.random.default_rng(0)
    small, large = (4 * rng.normal(size=size).astype(np.float32) for size in (40, 250))
    alone = np.float32([200] + [0] * 39)  # the others' probabilities are too small for float32
    return {
        "40 scores, word 3": (small, np.int32(3), 8),
        "40 scores, word 35": (small, np.int32(35), 8),
        "200 and 39 zeros, word 0": (alone, np.int32(0), 8),
        "200 and 39 zeros, word 7": (alone, np.int32(7), 8),
        "250 scores about 200, word 120": (large + 200, np.int32(120), 5),
        "250 scores about -200, word 49": (large - 200, np.int32(49), 5),
    }


@exercise(
    "-log(exp(score - m) / total) is log(total) + m - score. Two numbers you know how to get. The third, the score of the "
    "word, one device has: let it hand in the score and the others 0, and add up.",
    cases=_texts,
    mistakes=[
        Mistake(
            Edit('jax.lax.pmax(scores.max(), "X")', "0.0"),
            "subtract the largest score of all: in float32 exp(200) is infinite, and exp(-200) is 0",
        ),
        Mistake(
            Edit('jax.lax.pmax(scores.max(), "X")', 'jax.lax.pmean(scores.max(), "X")'),
            "a mean of the devices' largest scores can "
            "lie far below the largest, and exp of the difference is infinite",
        ),
        Mistake(
            Edit("jnp.where(mine, scores[place], 0)", "scores[place]"),
            "every device adds a score; one alone has the word",
        ),
        Mistake(
            Edit("log(total) + m - score", "log(total) - score"),
            "what you subtract inside exp has to be added behind the log",
        ),
        Mistake(
            Edit('word - scores.size * jax.lax.axis_index("X")', "word"),
            "`word` counts in the whole vocabulary; a device's part begins at scores.size times its place on the axis",
        ),
        Mistake(
            Edit("jnp.log(total) + m - score", "jnp.exp(score - m) / total"),
            "that is the probability; -log of it is asked",
        ),
        WhenMessage(
            "require replication",
            "by its type your result may differ from device to device. Which collectives make a number "
            "that is the same on all?",
        ),
        WhenMessage("bytes that a device sends", "three numbers are enough"),
    ],
    run=_scored,
)
def loss(scores, word):
    """One device: its scores, the right word -> -log of the word's probability."""
    m = jax.lax.pmax(scores.max(), "X")
    total = jax.lax.psum(jnp.exp(scores - m).sum(), "X")
    place = word - scores.size * jax.lax.axis_index("X")
    mine = (place >= 0) & (place < scores.size)
    score = jax.lax.psum(jnp.where(mine, scores[place], 0), "X")
    return jnp.log(total) + m - score


def _on_a_grid(f, t, data, model):
    specs, mesh = {"in_specs": P("data", "model"), "out_specs": P("data", "model")}, {"data": data, "model": model}
    traced = str(jax.make_jaxpr(jax.shard_map(f, mesh=build_mesh(mesh), **specs))(t))
    for axes in re.findall(r"axes=\((.*?)\)", traced):  # JAX 0.12 aborts the process where it compiles such a sum
        if re.search(r"('\w+').*\1", axes):
            raise ValueError(f"a collective names an axis twice: ({axes})")
    seen = run_per_device(f, t, mesh=mesh, **specs)
    sent = "bytes that a device sends"  # less than its block takes
    return Observed(
        {**seen, sent: Bound(seen[sent].value, margin=t.nbytes / data / model - seen[sent].value * 1.02 - 1)}
    )


def _tables():
    rng, found = np.random.default_rng(0), {}
    for data, model, rows, columns in ((2, 4, 6, 10), (4, 2, 11, 5)):
        t = rng.normal(size=(data * rows, model * columns)) + 5 * rng.normal(size=(data * rows, 1))
        t += 7 * rng.normal(size=model * columns)
        found[f"{t.shape} on a {data} x {model} mesh"] = t.astype(np.float32), data, model
    return found


@exercise(
    "t.mean(axis=1) has a mean for each row of the block. Which devices hold the rest of these rows? pmean along that axis "
    "alone. For the columns it is the other axis; the mean of all needs both.",
    cases=_tables,
    mistakes=[
        Mistake(Edit('axis=1), "model"', 'axis=1), "data"'), "the devices that share a row lie along model"),
        Mistake(Edit('axis=0), "data"', 'axis=0), "model"'), "the devices that share a column lie along data"),
        Mistake(
            Edit('axis=1), "model"', 'axis=1), ("data", "model")'),
            "the rows' means are taken over both axes, across different rows",
        ),
        Mistake(Edit("+ jax.lax.pmean(t.mean(),", "- jax.lax.pmean(t.mean(),"), "the mean of all is to be added"),
        Mistake(Edit('t.mean(), ("data", "model")', 't.mean(), "model"'), "the whole table lies along both axes"),
        Mistake(Edit("pmean", "psum", count=3), "means have to be averaged over the devices, not added up"),
        WhenMessage(
            "bytes that a device sends",
            "a row of the block has one mean: take it on the device first, then across devices",
        ),
    ],
    run=_on_a_grid,
)
def centered(t):
    """One device: its block -> the block with each row's and column's mean at 0."""
    rows = jax.lax.pmean(t.mean(axis=1), "model")
    columns = jax.lax.pmean(t.mean(axis=0), "data")
    return t - rows[:, None] - columns + jax.lax.pmean(t.mean(), ("data", "model"))
