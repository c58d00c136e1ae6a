"""Exercises and predictions for lesson 16, Many processes."""

import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, exercise
from utils.devices import started_devices

length = Prediction(
    16,
    "x is one array, and every process sees its global shape",
    {
        8: "that's the length of process 1's part, but the shape is that of the global array",
        4: "that's the number of its shards",
    },
    "numbers",
)
all_twice = Prediction(
    32,
    "each process's sixteen elements count as its part, and the parts are concatenated",
    {
        16: "JAX can't know that each part is already the full array",
        8: "each process passes sixteen elements, not half of them",
    },
    "numbers",
)
replicated_copy = Prediction(
    1,
    "nothing is sent or compared: each process puts its own value on its own devices",
    {
        0: "that's the value in process 0, but nothing goes from one process to the other",
        0.5: "nothing is sent, so nothing is averaged",
    },
)
indexed = Prediction(
    "works",
    "",
    {"raises": "x[12] is a small program that all eight devices run, and its result is replicated"},
)
bystander = Prediction(
    "wait",
    "",
    {"end": "at its end, a process waits until all the others have ended, but process 0 never does"},
)
model_first = Prediction(
    5,
    "983,040 bytes leave a node in each of two groups, instead of 98,304 in each of four groups",
    {
        10: "a device sends ten times as much along model, but two groups span both nodes instead of four",
        20: "with model first, fewer groups span both nodes, not more: two instead of four",
        1: "a device sends the same in both orders, but to different receivers",
        0.2: "it's the other way round: more is sent with model first",
    },
    "times",
)


def _sharding_cases():
    """Make cases {label: (sharding, shape, a process's own devices)}."""
    devices = np.array(started_devices()[:8])
    line, grid = Mesh(devices, ("x",)), Mesh(devices.reshape(2, 4), ("x", "y"))
    reversed_grid = Mesh(devices[::-1].reshape(2, 4), ("x", "y"))

    def case(mesh, spec, shape, places):
        return NamedSharding(mesh, spec), shape, [devices[place] for place in places]

    return {
        "P('x') on 8, shape (24, 2), devices 6 and 1": case(line, P("x"), (24, 2), [6, 1]),
        "P('y') on 2 x 4, shape (12, 3), devices 0, 1, 4, 5": case(grid, P("y"), (12, 3), [0, 1, 4, 5]),
        "P('y', 'x') on 2 x 4, shape (12, 6), devices 0 to 2": case(grid, P("y", "x"), (12, 6), [0, 1, 2]),
        "P(None, 'x') on 8, shape (5, 16), devices 2 and 3": case(line, P(None, "x"), (5, 16), [2, 3]),
        "P() on 8, shape (3, 5), device 7": case(line, P(), (3, 5), [7]),
        "P(('y', 'x')) on 2 x 4 in reverse order, shape (40,), devices 6, 3, 1": case(
            reversed_grid, P(("y", "x")), (40,), [6, 3, 1]
        ),
    }


@exercise(
    "`rows = sharding.devices_indices_map(shape)[device][0]` is a slice. Its `indices(shape[0])` "
    "gives start, stop and step, even for slice(None). A set keeps each row only once.",
    cases=_sharding_cases,
    mistakes=[
        Mistake(
            [Edit("sorted({", "list(["), Edit("})", "])")],
            "return each row once, in ascending order: devices may share rows",
        ),
        Mistake(Edit("for device in mine", "for device in mine[:1]"), "these are only the first device's rows"),
        Mistake(
            [Edit("[device][0]", "[device][-1]"), Edit("shape[0]", "shape[-1]")],
            "the rows are the first axis, not the last",
        ),
        Mistake(
            Edit("for device in mine", "for device in parts"),
            "these are all rows, but a process reads only those of its own devices",
        ),
        Mistake(
            Edit("range(*rows.indices(shape[0]))", "range(rows.start or 0, rows.stop or 0)"),
            "slice(None) means all rows",
        ),
    ],
)
def rows_to_read(sharding, shape, mine):
    """Return the rows of an array of this shape that the devices `mine` hold."""
    parts = sharding.devices_indices_map(shape)
    slices = [parts[device][0] for device in mine]
    return sorted({row for rows in slices for row in range(*rows.indices(shape[0]))})


@exercise(
    "Every process makes the full order, because numbers are cheap and rows aren't. Reshape it to "
    "(batches, batch), then take columns.",
    cases=[(13, 6, 3, 2, 1, 3), (50, 12, 1, 0, 2, 4), (31, 10, 0, 5, 0, 2), (24, 8, 5, 1, 3, 4)],
    mistakes=[
        Mistake(
            Edit("(seed, epoch)", "(seed, epoch, i)"),
            "each process shuffles in a different order, so some rows are read twice, and others never",
        ),
        Mistake(Edit("(seed, epoch)", "(seed, 0)"), "you ignore the epoch, so every epoch has the same order"),
        Mistake(Edit("(seed, epoch)", "seed + epoch"), "the seed of the generator is (seed, epoch), not their sum"),
        Mistake(
            Edit("[:, i * part : (i + 1) * part]", "[:, i::n]"),
            "a process's part of the batch should be contiguous",
        ),
        Mistake(
            Edit("[:, i * part : (i + 1) * part]", "[:, :part]"),
            "that's process 0's part in each process, so all of them read the same rows",
        ),
        Mistake(
            Edit(
                "order[: count * batch].reshape(count, batch)[:, i * part : (i + 1) * part]",
                "order[i * count * part : (i + 1) * count * part].reshape(count, part)",
            ),
            "you give each process a run of the full order, but it should read a part of each batch",
        ),
    ],
)
def epoch_rows(rows, batch, seed, epoch, i, n):
    """Return the rows that process i of n reads, as (batches, batch // n)."""
    order = np.random.default_rng((seed, epoch)).permutation(rows)
    count, part = rows // batch, batch // n
    return order[: count * batch].reshape(count, batch)[:, i * part : (i + 1) * part]


@exercise(
    "Count up while all logs have the same name at that position. Which logs continue after that?",
    cases=[
        ([["a", "b"], ["a", "b", "c"]],),
        ([["sum", "max"], ["sum", "mean"], ["sum"]],),
        ([["a", "b", "c", "d"], ["a", "x", "c"], ["a", "b", "c", "d"]],),
        ([["a", "b", "c"], ["a", "b"], ["a", "x", "c"]],),
        ([["a", "b"], ["a", "b"]],),
        ([[], ["a"], [], ["b", "c"]],),
        ([["a", "a", "a"], ["a"], ["a", "a"]],),
    ],
    mistakes=[
        Mistake(Edit("== 1", ">= 1"), "you only compare lengths, but programs with different names don't run together"),
        Mistake(
            Edit("len(log) > ran]", "len(log) == ran]"),
            "these have nothing more in their log; which ones have started another program?",
        ),
        Mistake(Edit("return ran,", "return ran + 1,"), "the program in which they wait hasn't run"),
        Mistake(
            Edit("if len(log) > ran]", "if len(log) > ran and log[ran] != logs[0][min(ran, len(logs[0]) - 1)]]"),
            "the others have started a different program, and wait as well",
        ),
        Mistake(
            Edit("if len(log) > ran]", "if len(log) == max(map(len, logs)) > ran]"),
            "a process with a shorter log may wait too",
        ),
    ],
)
def who_waits(logs):
    """Return the number of programs that ran, and the processes that wait in one."""
    ran = 0
    while all(len(log) > ran for log in logs) and len({log[ran] for log in logs}) == 1:
        ran += 1
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]
