"""Exercises and predictions of lesson 16, Many processes."""

import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, exercise
from utils.devices import started_devices

length = Prediction(
    16,
    "x is one array, and its shape is that of the whole in every process",
    {8: "that is what process 1 holds; the shape is that of the whole array", 4: "that is the number of its shards"},
    "numbers",
)
all_twice = Prediction(
    32,
    "each process's sixteen count as its part, and the parts are put one behind the other",
    {16: "JAX cannot know that each part is already the whole", 8: "both hand in sixteen, not a half"},
    "numbers",
)
whole_copy = Prediction(
    1,
    "nothing is sent and nothing is compared: each process puts what it hands in on its own devices",
    {
        0: "that is what process 0 handed in; nothing goes from one process to the other",
        0.5: "nothing is sent, so nothing is averaged",
    },
)
indexed = Prediction(
    "works",
    "",
    {"raises": "x[12] is a small program that all eight devices run, and its result is whole on each of them"},
)
bystander = Prediction(
    "wait",
    "",
    {"end": "at its end a process waits until all others are at theirs, and process 0 never gets there"},
)
model_first = Prediction(
    5,
    "two groups cross with 983,040 bytes each, in place of four with 98,304",
    {
        10: "a device sends ten times as much along model, but two groups cross in place of four",
        20: "with model first fewer groups cross, not more: two in place of four",
        1: "what a device sends is the same in both orders; who receives it is not",
        0.2: "the other way round: more leaves with model first",
    },
    "times",
)


def _layouts():
    """{words: sharding, shape, a process's own devices}"""
    devices = np.array(started_devices()[:8])
    line, grid = Mesh(devices, ("x",)), Mesh(devices.reshape(2, 4), ("x", "y"))
    back = Mesh(devices[::-1].reshape(2, 4), ("x", "y"))

    def case(mesh, spec, shape, places):
        return NamedSharding(mesh, spec), shape, [devices[place] for place in places]

    return {
        "P('x') on 8, shape (24, 2), devices 6 and 1": case(line, P("x"), (24, 2), [6, 1]),
        "P('y') on 2 x 4, shape (12, 3), devices 0, 1, 4, 5": case(grid, P("y"), (12, 3), [0, 1, 4, 5]),
        "P('y', 'x') on 2 x 4, shape (12, 6), devices 0 to 2": case(grid, P("y", "x"), (12, 6), [0, 1, 2]),
        "P(None, 'x') on 8, shape (5, 16), devices 2 and 3": case(line, P(None, "x"), (5, 16), [2, 3]),
        "P() on 8, shape (3, 5), device 7": case(line, P(), (3, 5), [7]),
        "P(('y', 'x')) on 2 x 4 from the last device on, shape (40,), devices 6, 3, 1": case(
            back, P(("y", "x")), (40,), [6, 3, 1]
        ),
    }


@exercise(
    "`rows = sharding.devices_indices_map(shape)[device][0]` is a slice. Its `indices(shape[0])` gives start, stop and "
    "step, also where it is slice(None). A set keeps each row once.",
    cases=_layouts,
    mistakes=[
        Mistake(
            [Edit("sorted({", "list(["), Edit("})", "])")], "each row once, in rising order: devices may share rows"
        ),
        Mistake(Edit("for device in mine", "for device in mine[:1]"), "these are the rows of the first device alone"),
        Mistake(
            [Edit("[device][0]", "[device][-1]"), Edit("shape[0]", "shape[-1]")],
            "the rows are the first axis, not the last",
        ),
        Mistake(
            Edit("for device in mine", "for device in parts"),
            "these are all rows; a process reads what its own devices hold",
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
    "Every process makes the whole order: numbers are cheap, rows are not. Reshape it to (batches, batch), then take "
    "columns.",
    cases=[(13, 6, 3, 2, 1, 3), (50, 12, 1, 0, 2, 4), (31, 10, 0, 5, 0, 2), (24, 8, 5, 1, 3, 4)],
    mistakes=[
        Mistake(
            Edit("(seed, epoch)", "(seed, epoch, i)"),
            "each process shuffles in an order of its own, so rows come twice or never",
        ),
        Mistake(Edit("(seed, epoch)", "(seed, 0)"), "the epoch does not count: every epoch comes in the same order"),
        Mistake(Edit("(seed, epoch)", "seed + epoch"), "the generator begins with (seed, epoch), not with their sum"),
        Mistake(
            Edit("[:, i * part : (i + 1) * part]", "[:, i::n]"),
            "the parts are to stand one behind the other in the batch",
        ),
        Mistake(
            Edit("[:, i * part : (i + 1) * part]", "[:, :part]"), "that is process 0's part in each: all read the same"
        ),
        Mistake(
            Edit(
                "order[: count * batch].reshape(count, batch)[:, i * part : (i + 1) * part]",
                "order[i * count * part : (i + 1) * count * part].reshape(count, part)",
            ),
            "you give each process a run of the whole order; of each batch it reads a part",
        ),
    ],
)
def epoch_rows(rows, batch, seed, epoch, i, n):
    """Return the rows that process i of n reads: (batches, batch // n)."""
    order = np.random.default_rng((seed, epoch)).permutation(rows)
    count, part = rows // batch, batch // n
    return order[: count * batch].reshape(count, batch)[:, i * part : (i + 1) * part]


@exercise(
    "Count up as long as all logs have a name at that position, and the same one. Whose log goes on from there?",
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
        Mistake(Edit("== 1", ">= 1"), "you compare lengths; programs of different names do not run together"),
        Mistake(
            Edit("len(log) > ran]", "len(log) == ran]"), "these have nothing more in their log; who has begun one more?"
        ),
        Mistake(Edit("return ran,", "return ran + 1,"), "the program in which they wait has not run"),
        Mistake(
            Edit("if len(log) > ran]", "if len(log) > ran and log[ran] != logs[0][min(ran, len(logs[0]) - 1)]]"),
            "the others have begun another program, and wait as well",
        ),
        Mistake(
            Edit("if len(log) > ran]", "if len(log) == max(map(len, logs)) > ran]"),
            "one with a shorter log may wait, too",
        ),
    ],
)
def who_waits(logs):
    """Return the number of programs that ran, and the processes that wait in one."""
    ran = 0
    while all(len(log) > ran for log in logs) and len({log[ran] for log in logs}) == 1:
        ran += 1
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]
