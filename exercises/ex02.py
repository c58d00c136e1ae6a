"""Exercises and predictions for lesson 02, Sharding."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Edit,
    MessageHint,
    Mistake,
    Prediction,
    RunResult,
    as_numpy,
    build_mesh,
    exercise,
    format_value,
    run_traced,
)
from utils.shard_placement import format_piece, pieces_by_device

first_cut = Prediction(
    6,
    "row 2 is in the lower half, so x = 1, and column 5 is in the third pair, so y = 2; the second "
    "mesh row starts with 4",
    {
        7: "column 5 is in the third pair, which is y = 2, because counting starts at 0",
        5: "devices are numbered row by row: the second mesh row starts with device 4",
        2: "row 2 is in the lower half, so the device is in the second mesh row",
        4: "column 5 is in the third pair of columns, so y = 2",
    },
)
half_cut = Prediction(
    2,
    "'x', the only name in the spec, has 2 devices",
    {
        8: "only the mesh axes in the spec split the array; the other devices hold copies",
        4: "'y' would make that many; the spec names 'x', which has 2 devices",
        1: "'x' splits the rows",
    },
    "pieces",
)
tuple_order = Prediction(
    5,
    "'y' splits the columns into pairs, and 'x' splits each pair; column 3 is the second of the pair 2 and 3",
    {
        3: "that's the answer for ('x', 'y'); here 'y' splits first",
        1: "device 1 has x = 0, so it holds the first column of the pair 2 and 3",
        6: "columns count from 0: the pairs are 0 1, 2 3, 4 5 and 6 7",
    },
)
bytes_held = Prediction(
    22.544,
    "'data' has 4 devices, and 'model' isn't in the spec, so it doesn't split anything",
    {
        11.27: "that's an eighth, but 'model' isn't in the spec and doesn't split anything",
        45.09: "'data' has 4 devices, not 2",
        90.18: "that's the full matrix",
    },
    "MB",
    rel_tol=0.01,
)
ten_over_four = Prediction(
    "refuses",
    mistakes={
        "uneven": "all pieces of an array that you place must have the same shape",
        "pads": "an array that you place has only the rows that you gave it",
    },
)
padded_mean = Prediction(
    11.25,
    "the ten rows add up to 135, and the padding adds nothing, but how many rows is the sum divided by?",
    {
        13.5: "the sum over ten rows is divided by twelve",
        16.2: "the sum stays the same, and more rows make the mean smaller",
    },
)
full_leaves = Prediction(
    2.44,
    "0.82 GB are replicated, and each device holds an eighth of the other 12.95 GB",
    {
        1.72: "embed and head are replicated on each device",
        1.62: "embed and head count too, and they're replicated",
        2.54: "0.82 GB of the 13.78 GB aren't split",
        13.78: "that's the full tree",
    },
    "GB",
    rel_tol=0.01,
)


@exercise(
    "There are four block rows and two block columns: row // 2 and column // 6. Which of them is the "
    "position along 'y', and which along 'x'?",
    cases=[(row, column) for row in range(8) for column in range(12)],
    mistakes=[
        Mistake(
            lambda row, column: 4 * (row // 4) + column // 3,
            "you split the rows by 'x' and the columns by 'y'. A spec's entries follow the order of the "
            "array's dimensions, and its first entry, for the rows, is 'y' here",
        ),
        Mistake(
            lambda row, column: 2 * (row // 2) + column // 6,
            "your blocks are right, but you number them in the array's order. Devices are numbered in the "
            "mesh's order: 0 1 2 3, then 4 5 6 7",
        ),
        Mistake(
            lambda row, column: 4 * (column % 2) + row % 4,
            "you assign rows and columns to the devices in turn, but a device holds neighbouring rows and columns",
        ),
        Mistake(
            lambda row, column: 4 * (column // 2) + row // 4,
            "you divide by the number of devices. Divide by the number of rows or columns that one device holds",
        ),
        Mistake([Edit("// 6", "// 4"), Edit("// 2", "// 4")], "your blocks are (4, 4), but they should be (2, 6)"),
        Mistake(
            Edit("4 * (column // 6)", "2 * (column // 6)"),
            "the second mesh row starts with device 4, because a mesh row has 4 devices",
        ),
    ],
    question=(
        "Which entry of the spec splits the rows, which one splits the columns, and into how many "
        "pieces? And which device is at that position in the mesh?"
    ),
)
def holder_of(row, column):
    """Return the number of the device that holds element [row, column]."""
    return 4 * (column // 6) + row // 2


def _observe_pieces(f):
    spec = f()
    sharding = NamedSharding(build_mesh({"a": 2, "b": 2, "c": 2}), getattr(spec, "spec", spec))
    held = pieces_by_device(jax.device_put(np.zeros((16, 6, 10)), sharding))
    return RunResult({f"device {i} holds": format_piece(held[i]) for i in (1, 2, 4, 0)})


@exercise(
    "Compare devices that differ along one mesh axis: 0 and 4 along a, 0 and 2 along b, 0 and 1 "
    "along c. Along which dimension of the array does the piece shift, and how far?",
    run=_observe_pieces,
    hide_expected=False,
    mistakes=[
        Mistake(
            Edit('("c", "a")', '("a", "c")'),
            "in a tuple, the first name splits the dimension into halves, and the second splits each half: "
            "compare devices 1 and 4",
        ),
        Mistake(Edit('None, "b"', '"b"'), "you split the second dimension, but each device holds all of it"),
        Mistake(
            Edit(', "b"', ""),
            "nothing splits the third dimension. Which devices hold parts of it that device 0 doesn't?",
        ),
    ],
    question=(
        "Devices 0 and 4 differ only along a, 0 and 2 only along b, and 0 and 1 only along c. Which "
        "dimension does each of these axes split?"
    ),
)
def spec_from_pieces():
    """Return the spec for which devices 0, 1, 2 and 4 hold the pieces listed above."""
    return P(("c", "a"), None, "b")


def _row_cases():
    rng, cases = np.random.default_rng(4), {}
    grid, other = build_mesh({"x": 2, "y": 4}, explicit=True), build_mesh({"x": 3, "y": 2}, explicit=True)
    for mesh, spec, n, features in (  # only the last array is large enough for measuring costs
        (grid, P("y"), 10, 3), (grid, P(("x", "y")), 3, 2), (other, P("x"), 6, 3), (grid, P(("y", "x")), 4001, 8),
    ):  # fmt: skip
        rows = (3 * rng.normal(size=(n, features)) - np.arange(2, features + 2)).astype(np.float32)
        rows[1], rows[2, 0] = 0, 0  # real rows may contain zeros, too, so zeros don't identify padding
        rows[:, 2:3] += 3000 * (n == 6)  # makes the mean of squares minus the square of the mean lose all digits
        cases[f"{n} rows, {format_value(NamedSharding(mesh, spec))}"] = rows, NamedSharding(mesh, spec)
    return cases


def _run_on_rows(f, rows, sharding):
    with jax.set_mesh(sharding.mesh):  # the lesson has set a different mesh
        if rows.nbytes < 1e5:
            return as_numpy(f(rows, sharding))
        observed, trace = run_traced(f, rows, sharding, measure=("peak_bytes", "elements_fetched", "flops"))
    shardings = [used for shape, used in trace.shardings if shape[1:] == rows.shape[1:] and shape[0] >= len(rows)]
    as_asked = not shardings or any(used.is_equivalent_to(sharding, 2) for used in shardings)
    return RunResult({"": as_numpy(observed.pop("")), "the rows have the requested sharding": as_asked} | observed)


@exercise(
    "Zeros don't change a sum, so the mean is sum / n. But 0 minus the mean isn't 0: sum the squares "
    "under a mask, with jnp.where.",
    cases=_row_cases,
    run=_run_on_rows,
    mistakes=[
        Mistake(
            Edit("placed.sum(axis=0) / n", "placed.mean(axis=0)"),
            "the padding rows count in the mean, though not in the squares",
        ),
        Mistake(
            Edit("jax.numpy.where(real[:, None], (placed - mean) ** 2, 0)", "((placed - mean) ** 2)"),
            "the padding rows were 0, but no longer are once you subtract the mean from them",
        ),
        Mistake(
            Edit(
                "placed = jax.device_put(padded, sharding)", "placed, n = jax.device_put(padded, sharding), len(padded)"
            ),
            "you count the padding rows, both in the mean and in the squares",
        ),
        Mistake(
            Edit("np.arange(len(padded)) < n", "(padded != 0).any(axis=1)"),
            "you treat a row of zeros as padding, but a real row may be all zeros",
        ),
        MessageHint(
            "bytes that one device holds",
            "a jax.numpy function that gets no sharding replicates its array on every device: pad with NumPy. "
            "And leave out the padding with a mask, not with a slice",
        ),
        MessageHint(
            "operations that the devices compute",
            "sum the squares of the placed array on the devices, not on the host",
        ),
    ],
    question="The variance is the mean of the squared distances from the mean. Which rows do you count?",
)
def variance_of_rows(rows, sharding):
    """Return the variance of each feature over the rows (n, features)."""
    n = len(rows)
    padded = np.pad(rows, ((0, -n % sharding.mesh.size), (0, 0)))
    placed = jax.device_put(padded, sharding)
    mean = placed.sum(axis=0) / n
    real = np.arange(len(padded)) < n
    return jax.numpy.where(real[:, None], (placed - mean) ** 2, 0).sum(axis=0) / n


@exercise(
    "Make every entry a tuple of names, and multiply their sizes to get the number of pieces. Keep "
    "the entry if that number divides the dimension.",
    cases=[
        ((50_257, 4096), P("model", "data"), {"data": 4, "model": 2}),
        ((6, 10), P("data", "model"), {"data": 4, "model": 2}),
        ((12, 3, 8), P(("data", "model"), None, "pod"), {"pod": 2, "data": 4, "model": 2}),
        ((24, 9), P(("data", "model")), {"data": 3, "model": 4}),
        ((9, 30), P(None, ("model", "data")), {"data": 2, "model": 15}),
        ((5, 7), P(), {"data": 4}),
    ],
    mistakes=[
        Mistake(
            Edit("pieces *= sizes[name]", "pieces = max(pieces, sizes[name])"),
            "several names in one entry split the dimension one after the other: multiply their sizes",
        ),
        Mistake(
            Edit("None if shape[i] % pieces else entry", "entry if shape[i] >= pieces else None"),
            "a dimension can be larger than the number of pieces without being a multiple of it",
        ),
        Mistake(
            Edit(
                "fitting.append(None if shape[i] % pieces else entry)",
                "fitting += [] if shape[i] % pieces else [entry]",
            ),
            "an entry that's removed has to leave a None; without it, the next entry moves to a different dimension",
        ),
        Mistake(
            Edit("return P(*fitting)", "return spec if fitting == [*spec] else P()"),
            "one entry doesn't fit, but you drop the others too",
        ),
    ],
    question="How many pieces does each entry ask for, and does that number divide its dimension?",
)
def fitting_spec(shape, spec, sizes):
    """Return the spec, with None where an entry's pieces don't divide the dimension."""
    fitting = []
    for i, entry in enumerate(spec):
        pieces = 1
        for name in entry if isinstance(entry, tuple) else (entry,):
            if name is not None:
                pieces *= sizes[name]
        fitting.append(None if shape[i] % pieces else entry)
    return P(*fitting)
