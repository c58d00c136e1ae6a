"""Exercises and predictions for lesson 05, Writing the per-device program with shard_map."""

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Bound,
    Edit,
    MessageHint,
    Mistake,
    Prediction,
    RunResult,
    build_mesh,
    exercise,
    run_per_device,
)

joined = Prediction(
    40,
    "each of the eight devices returns five numbers, and P('X') concatenates them",
    {
        5: "that's the result of one device, and the results of eight are concatenated",
        8: "each device returns five, not one",
        128_256: "a device returns five numbers, not its entire part",
    },
    "numbers",
)
forgotten = Prediction(
    8,
    "on each device the quotients add up to 1, and there are eight devices",
    {1: "each device divides by the sum of only its own part", 0.125: "e.sum() is about an eighth of the total"},
)
ordered = Prediction(
    448_896,
    "every device has to see all scores: it lacks 7 x 16,032 of them, at 4 bytes each",
    {
        0: "the scores are split, and each device has to see all of them",
        513_024: "a device already has its own eighth",
        64_128: "that's a device's own part, which goes to the seven others",
        175: "no candidates are selected before the scores are sent",
    },
    "bytes",
)
scattered = Prediction(
    296,
    "it's the sum over element 2 of each part: 2 + 12 + 22 + 32 + 42 + 52 + 62 + 72",
    {
        188: "that's the sum of device 2's own part, but the parts are added element by element",
        2464: "that's the sum of all 64 numbers",
        288: "that's the sum over element 1, which device 1 keeps",
        304: "that's the sum over element 3, which device 3 keeps",
        22: "that's only device 2's own number, but eight are added",
    },
)
unproved = Prediction(
    3,
    "nothing is added up: each device keeps its own number, and you see the one on device 0",
    {
        38: "nothing adds up the eight numbers",
        9: "nothing compares the eight numbers",
        6: "that's the copy on device 7",
    },
)
in_groups = Prediction(
    18,
    "three float32 numbers are 12 bytes, and four devices share a sum: 2 · 3/4 · 12",
    {
        21: "four devices share a sum, not all eight",
        12: "there are four devices along model, and two along data",
        9: "an all-reduce sends twice: to add up, and to distribute",
        36: "a device has three tokens, not six",
        6: "a device has three numbers to add",
    },
    "bytes",
)
ring = Prediction(
    7_168,
    "a device sends 1,024 bytes, the size of a piece, seven times",
    {
        8_192: "nothing is sent after the eighth product",
        1_024: "that's one of seven sends",
        57_344: "a device sends one piece at a time, to one neighbour",
    },
    "bytes",
)


def _run_along_x(f, x, n):
    return run_per_device(f, x, mesh={"X": n}, in_specs=P("X"), out_specs=P("X"))


def _long_array_cases():
    rng = np.random.default_rng(0)
    parts = {"40 numbers on 8 devices": (5, 8), "250 numbers on 5 devices": (50, 5)}
    return {name: ((1.37 * rng.permutation(k * n) - 3.3).astype(np.float32), n) for name, (k, n) in parts.items()}


@exercise(
    "A device needs only one number from another device: the last one of its left neighbour. Send x[-1:] with "
    "jax.lax.ppermute. What does device 0 receive if no device sends to it?",
    cases=_long_array_cases,
    mistakes=[
        Mistake(
            Edit("[(i, i + 1) for i in range(n - 1)]", "[(i, (i + 1) % n) for i in range(n)]"),
            "you subtract the last device's last number from the very first number, as in a ring",
        ),
        Mistake(
            Edit('x[-1:], "X"', 'x[:1], "X"'),
            "the number before a part is the left neighbour's last number, not its first",
        ),
        Mistake(Edit("(i, i + 1)", "(i + 1, i)"), "the pairs are (from, to), and the number has to come from the left"),
        Mistake(
            Edit("before, x[:-1]", "0 * before, x[:-1]"),
            "you don't subtract anything from the first number of each part, but that's right only on device 0",
        ),
        Mistake(
            Edit("before, x[:-1]", "x[:1], x[:-1]"),
            "the first number of each part becomes 0, as if it came after itself",
        ),
        MessageHint("bytes that a device sends", "which of a device's numbers does its right neighbour need?"),
    ],
    run=_run_along_x,
)
def differences(x):
    """Return each number in a device's part of x minus the previous one in all of x."""
    n = jax.lax.axis_size("X")
    before = jax.lax.ppermute(x[-1:], "X", [(i, i + 1) for i in range(n - 1)])
    return x - jnp.concatenate([before, x[:-1]])


@exercise(
    "What does a device need to know about the devices to its left? One number from each: "
    "jax.lax.all_gather(x.sum(), 'X'). Then add the sums at indices below jax.lax.axis_index('X').",
    cases=_long_array_cases,
    mistakes=[
        Mistake(
            Edit("before + jnp.cumsum(x)", "jnp.cumsum(x)"),
            "each part starts again at 0: the sum of the parts to its left is missing",
        ),
        Mistake(
            Edit("jnp.arange(sums.size) <", "jnp.arange(sums.size) <="),
            "a device's own sum counts twice, because its running sum includes it",
        ),
        Mistake(
            Edit("jnp.arange(sums.size) < jax", "jnp.arange(sums.size) != jax"),
            "your sum includes the devices to the right as well",
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
            "you add only the left neighbour's sum, but all devices to the left count",
        ),
        MessageHint("bytes that a device sends", "one number from each device is enough"),
    ],
    run=_run_along_x,
)
def running_sum(x):
    """Return the running sum of all of x at the positions of a device's part."""
    sums = jax.lax.all_gather(x.sum(), "X")
    before = jnp.where(jnp.arange(sums.size) < jax.lax.axis_index("X"), sums, 0).sum()
    return before + jnp.cumsum(x)


def _run_on_scores(f, scores, word, n):
    return run_per_device(f, scores, word, mesh={"X": n}, in_specs=(P("X"), P()), out_specs=P())


def _score_cases():
    rng = np.random.default_rng(0)
    small, large = (4 * rng.normal(size=size).astype(np.float32) for size in (40, 250))
    dominated = np.array([200] + [0] * 39, np.float32)  # in float32, the other words' probabilities are 0
    return {
        "40 scores, word 3": (small, np.int32(3), 8),
        "40 scores, word 35": (small, np.int32(35), 8),
        "200 and 39 zeros, word 0": (dominated, np.int32(0), 8),
        "200 and 39 zeros, word 7": (dominated, np.int32(7), 8),
        "250 scores about 200, word 120": (large + 200, np.int32(120), 5),
        "250 scores about -200, word 49": (large - 200, np.int32(49), 5),
    }


@exercise(
    "-log(exp(score - m) / total) is log(total) + m - score. You know how to get two of these "
    "numbers. Only one device has the third, the word's score: let it contribute the score and the "
    "others 0, and add up.",
    cases=_score_cases,
    mistakes=[
        Mistake(
            Edit('jax.lax.pmax(scores.max(), "X")', "0.0"),
            "subtract the largest score of all devices: in float32, exp(200) is infinite and exp(-200) is 0",
        ),
        Mistake(
            Edit('jax.lax.pmax(scores.max(), "X")', 'jax.lax.pmean(scores.max(), "X")'),
            "the mean of the devices' largest scores can be far below the largest one, and then exp of the "
            "difference is infinite",
        ),
        Mistake(
            Edit("jnp.where(mine, scores[place], 0)", "scores[place]"),
            "every device adds a score, but only one has the word",
        ),
        Mistake(
            Edit("log(total) + m - score", "log(total) - score"),
            "whatever you subtract inside exp has to be added after the log",
        ),
        Mistake(
            Edit('word - scores.size * jax.lax.axis_index("X")', "word"),
            "`word` is an index into the full vocabulary, and a device's part starts at scores.size times "
            "its axis index",
        ),
        Mistake(
            Edit("jnp.log(total) + m - score", "jnp.exp(score - m) / total"),
            "that's the probability, but the exercise asks for its -log",
        ),
        MessageHint(
            "require replication",
            "according to its type, your result may differ between devices. Which collectives return the same number "
            "on all of them?",
        ),
        MessageHint("bytes that a device sends", "three numbers are enough"),
    ],
    run=_run_on_scores,
)
def loss(scores, word):
    """Return -log of the probability of `word`, given a device's part of the scores."""
    m = jax.lax.pmax(scores.max(), "X")
    total = jax.lax.psum(jnp.exp(scores - m).sum(), "X")
    place = word - scores.size * jax.lax.axis_index("X")
    mine = (place >= 0) & (place < scores.size)
    score = jax.lax.psum(jnp.where(mine, scores[place], 0), "X")
    return jnp.log(total) + m - score


def _run_on_grid(f, t, data, model):
    spec, mesh = P("data", "model"), {"data": data, "model": model}
    with jax.set_mesh(build_mesh(mesh)):  # the lesson has set a different mesh
        traced = str(jax.make_jaxpr(jax.shard_map(f, in_specs=spec, out_specs=spec))(t))
    for axes in re.findall(r"axes=\((.*?)\)", traced):  # JAX 0.12 aborts the process if an axis appears twice
        if re.search(r"('\w+').*\1", axes):
            raise ValueError(f"a collective names an axis twice: ({axes})")
    observed = run_per_device(f, t, mesh=mesh, in_specs=spec, out_specs=spec)
    label = "bytes that a device sends"  # any cost below the bytes of a block is allowed
    return RunResult(
        {
            **observed,
            label: Bound(observed[label].value, margin=t.nbytes / data / model - observed[label].value * 1.02 - 1),
        }
    )


def _table_cases():
    rng, cases = np.random.default_rng(0), {}
    for data, model, rows, columns in ((2, 4, 6, 10), (4, 2, 11, 5)):
        t = rng.normal(size=(data * rows, model * columns)) + 5 * rng.normal(size=(data * rows, 1))
        t += 7 * rng.normal(size=model * columns)
        cases[f"{t.shape} on a {data} x {model} mesh"] = t.astype(np.float32), data, model
    return cases


@exercise(
    "t.mean(axis=1) has a mean for each row of the block. Which devices hold the rest of these rows? "
    "Use pmean along only that axis. For the columns it's the other axis, and the mean of the full "
    "table needs both.",
    cases=_table_cases,
    mistakes=[
        Mistake(Edit('axis=1), "model"', 'axis=1), "data"'), "the devices that share a row are along model"),
        Mistake(Edit('axis=0), "data"', 'axis=0), "model"'), "the devices that share a column are along data"),
        Mistake(
            Edit('axis=1), "model"', 'axis=1), ("data", "model")'),
            "you average the rows' means over both axes, so you mix different rows",
        ),
        Mistake(
            Edit("+ jax.lax.pmean(t.mean(),", "- jax.lax.pmean(t.mean(),"), "the mean of the full table has to be added"
        ),
        Mistake(Edit('t.mean(), ("data", "model")', 't.mean(), "model"'), "the full table is split along both axes"),
        Mistake(Edit("pmean", "psum", count=3), "means have to be averaged over the devices, not added up"),
        MessageHint(
            "bytes that a device sends",
            "each row of the block has one mean: compute it on the device first, then average across devices",
        ),
    ],
    run=_run_on_grid,
)
def centered(t):
    """Return a device's block, with all row and column means shifted to 0."""
    rows = jax.lax.pmean(t.mean(axis=1), "model")
    columns = jax.lax.pmean(t.mean(axis=0), "data")
    return t - rows[:, None] - columns + jax.lax.pmean(t.mean(), ("data", "model"))
