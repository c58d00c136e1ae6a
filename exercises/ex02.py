"""Exercises and predictions of lesson 02, Sharding."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Observed, Prediction, as_numpy, build_mesh, exercise, format_value, run_traced
from utils.layout import format_piece, pieces_by_device

first_cut = Prediction(
    6,
    "row 2 lies in the lower half, so x = 1; column 5 in the third pair, so y = 2; the second mesh row begins with 4",
    {
        7: "column 5 lies in the third pair, which is y = 2: counting begins with 0",
        5: "the devices count row by row: the second mesh row begins with device 4",
        2: "row 2 lies in the lower half, so in the second mesh row",
        4: "column 5 lies in the third pair of columns, so y = 2",
    },
)
half_cut = Prediction(
    2,
    "'x', the only name in the spec, has 2 devices",
    {
        8: "only the mesh axes that the spec names split; the other devices hold copies",
        4: "so many would 'y' make; the spec names 'x', which has 2 devices",
        1: "'x' splits the rows",
    },
    "pieces",
)
tuple_order = Prediction(
    5,
    "'y' splits in pairs, and 'x' deals out each pair; column 3 is the second of the pair 2 and 3",
    {
        3: "that is under ('x', 'y'); here 'y' splits first",
        1: "device 1 has x = 0, so of the pair 2 and 3 it holds the first column",
        6: "columns count from 0: the pairs are 0 1, 2 3, 4 5 and 6 7",
    },
)
bytes_held = Prediction(
    22.544,
    "'data' has 4 devices, and 'model' is not named, so it splits nothing",
    {
        11.27: "that is an eighth: 'model' is not named, and splits nothing",
        45.09: "'data' has 4 devices, not 2",
        90.18: "that is the whole matrix",
    },
    "MB",
    within=0.01,
)
ten_over_four = Prediction(
    "refuses",
    mistakes={
        "uneven": "all pieces of an array that you place have one shape",
        "pads": "an array that you place has the rows that you gave it, and no others",
    },
)
padded_mean = Prediction(
    11.25,
    "the ten rows add up to 135, and the padding adds nothing; by how many rows is that divided?",
    {
        13.5: "the sum is that of ten rows, and it is divided by twelve",
        16.2: "the sum stays; more rows make a mean smaller",
    },
)
whole_leaves = Prediction(
    2.44,
    "0.82 GB stay whole, and of the other 12.95 GB there is an eighth",
    {
        1.72: "embed and head are copied whole to each device",
        1.62: "embed and head count, too, and whole",
        2.54: "of the 13.78 GB, the 0.82 GB are not split",
        13.78: "that is the whole tree",
    },
    "GB",
    within=0.01,
)


@exercise(
    "Four block rows, two block columns: row // 2 and column // 6. Which of them is the place along 'y', and which along 'x'?",
    cases=[(row, column) for row in range(8) for column in range(12)],
    mistakes={
        (
            lambda row, column: 4 * (row // 4) + column // 3
        ): "you split the rows by 'x' and the columns by 'y'. A spec's "
        "entries stand in the order of the array's dimensions: its first, for the rows, is 'y' here",
        (
            lambda row, column: 2 * (row // 2) + column // 6
        ): "your blocks are right, and you number them as they lie in the "
        "array. Devices are numbered as they stand in the mesh: 0 1 2 3, then 4 5 6 7",
        (
            lambda row, column: 4 * (column % 2) + row % 4
        ): "you deal rows and columns out in turn. A device holds neighbours",
        (
            lambda row, column: 4 * (column // 2) + row // 4
        ): "you divide by the number of devices. Divide by the rows, or the columns, that one device holds",
        "// 6 -> // 4 ;; // 2 -> // 4": "your blocks are (4, 4); they are (2, 6)",
        "4 * (column // 6) -> 2 * (column // 6)": "the second mesh row begins with device 4: a mesh row has 4 devices",
        None: "Which entry of the spec splits the rows, which the columns, and each in how many pieces? And who stands at "
        "that place of the mesh?",
    },
)
def holder_of(row, column):
    """Return the number of the device that holds element [row, column]."""
    return 4 * (column // 6) + row // 2


def _held(f):
    spec = f()
    sharding = NamedSharding(build_mesh({"a": 2, "b": 2, "c": 2}), getattr(spec, "spec", spec))
    held = pieces_by_device(jax.device_put(np.zeros((16, 6, 10)), sharding))
    return Observed({f"device {i} holds": format_piece(held[i]) for i in (1, 2, 4, 0)})


@exercise(
    "Compare devices that differ in one mesh axis: 0 and 4 in a, 0 and 2 in b, 0 and 1 in c. On which dimension of the "
    "array does the piece change, and by how far?",
    run=_held,
    hide_expected=False,
    mistakes={
        '("c", "a") -> ("a", "c")': "in a tuple, the first name splits in halves, the second splits each half: look at "
        "devices 1 and 4",
        'None, "b" -> "b"': "you split the second dimension, and each device holds it whole",
        ', "b" -> ': "nothing splits the third dimension. Which devices hold other parts of it than device 0?",
        None: "Devices 0 and 4 differ in a alone, 0 and 2 in b, 0 and 1 in c: which dimension does each of them split?",
    },
)
def spec_from_pieces():
    """Return the spec: devices 0, 1, 2 and 4 hold the task's pieces of the array."""
    return P(("c", "a"), None, "b")


def _rows():
    rng, cases = np.random.default_rng(4), {}
    grid, other = build_mesh({"x": 2, "y": 4}), build_mesh({"x": 3, "y": 2})
    for mesh, spec, n, features in (  # the last one is large enough to be watched
        (grid, P("y"), 10, 3), (grid, P(("x", "y")), 3, 2), (other, P("x"), 6, 3), (grid, P(("y", "x")), 4001, 8),
    ):  # fmt: skip
        rows = (3 * rng.normal(size=(n, features)) - np.arange(2, features + 2)).astype(np.float32)
        rows[1], rows[2, 0] = 0, 0  # real rows may hold zeros: they are no sign of padding
        rows[:, 2:3] += 3000 * (n == 6)  # where the mean of the squares less the square of the mean loses all digits
        cases[f"{n} rows, {format_value(NamedSharding(mesh, spec))}"] = rows, NamedSharding(mesh, spec)
    return cases


def _placed(f, rows, sharding):
    if rows.nbytes < 1e5:
        return as_numpy(f(rows, sharding))
    observed, trace = run_traced(f, rows, sharding, measure=("peak_bytes", "elements_fetched", "flops"))
    shardings = [used for shape, used in trace.shardings if shape[1:] == rows.shape[1:] and shape[0] >= len(rows)]
    as_asked = not shardings or any(used.is_equivalent_to(sharding, 2) for used in shardings)
    return Observed({"": as_numpy(observed.pop("")), "the rows are sharded as asked": as_asked} | observed)


@exercise(
    "Zeros do no harm to a sum, so the mean is sum / n. But 0 less the mean is not 0: add up the squares under a mask, "
    "with jnp.where.",
    cases=_rows,
    run=_placed,
    mistakes={
        "placed.sum(axis=0) / n -> placed.mean(axis=0)": "the rows of padding count in the mean, though not in the squares",
        "jax.numpy.where(real[:, None], (placed - mean) ** 2, 0) -> ((placed - mean) ** 2)": "the rows of padding were 0, "
        "and are no longer once the mean is subtracted from them",
        "placed = jax.device_put(padded, sharding) -> placed, n = jax.device_put(padded, sharding), len(padded)": "the rows "
        "of padding count as rows, in the mean and in the squares",
        "np.arange(len(padded)) < n -> (padded != 0).any(axis=1)": "you take what is 0 for padding; a real row may hold zeros",
        "bytes that one device holds": "a function of jax.numpy makes its array on one device: pad with NumPy. And a slice of "
        "a size that the mesh does not divide sends all rows to all devices: leave the padding out with a mask instead",
        "operations that the devices compute": "sum the squares there, with the placed array, not with the rows on the host",
        None: "It is the mean of the squared distances from the mean, over the real rows.",
    },
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
    "Make every entry a tuple of names, and multiply their sizes: so many pieces. Keep the entry if that divides the dimension.",
    cases=[
        ((50_257, 4096), P("model", "data"), {"data": 4, "model": 2}),
        ((6, 10), P("data", "model"), {"data": 4, "model": 2}),
        ((12, 3, 8), P(("data", "model"), None, "pod"), {"pod": 2, "data": 4, "model": 2}),
        ((24, 9), P(("data", "model")), {"data": 3, "model": 4}),
        ((9, 30), P(None, ("model", "data")), {"data": 2, "model": 15}),
        ((5, 7), P(), {"data": 4}),
    ],
    mistakes={
        "pieces *= sizes[name] -> pieces = max(pieces, sizes[name])": "several names in one entry split one after the other: "
        "multiply their sizes",
        "None if shape[i] % pieces else entry -> entry if shape[i] >= pieces else None": "a dimension can be larger than "
        "the number of pieces, and still no multiple of it",
        "fitting.append(None if shape[i] % pieces else entry) -> fitting += [] if shape[i] % pieces else [entry]": "an entry that goes "
        "leaves a None behind; without it, the next entry moves to another dimension",
        "return P(*fitting) -> return spec if fitting == [*spec] else P()": "one entry does not fit, and you drop the others, too",
        None: "How many pieces does each entry ask for, and do they divide its dimension?",
    },
)
def fitting_spec(shape, spec, sizes):
    """Return the spec, with None for each entry that does not divide its dimension."""
    fitting = []
    for i, entry in enumerate(spec):
        pieces = 1
        for name in entry if isinstance(entry, tuple) else (entry,):
            if name is not None:
                pieces *= sizes[name]
        fitting.append(None if shape[i] % pieces else entry)
    return P(*fitting)
