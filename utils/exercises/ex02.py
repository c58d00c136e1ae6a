"""Exercises of notebook 02, Sharding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence, ValuesView

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from utils.compat import spec_text
from utils.devices import started_devices
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, number, numbers, same, shown
from utils.exercises.probes import watch
from utils.mesh import make_mesh

# What the lesson asks before its cells show it.
first_cut = Prediction(
    "",
    {},
    own={
        "rows": {
            2: "nothing would be cut; 'x' deals the 4 rows out to its 2 devices",
            1 / 2: "that is four ways; 'x', the first entry, has 2 devices",
        },
        "columns": {
            2: "that is two ways; 'y', the second entry, has 4 devices",
            4: "nothing would be cut; 'y' deals the 8 columns out to its 4 devices",
        },
        "device of [2, 5]": {
            7 / 6: "the pair of columns that holds column 5 is the third, and the third is number 2",
            5 / 6: "the devices count row by row: the second mesh row begins with device 4",
            2 / 6: "row 2 lies in the lower half, so in the second mesh row",
        },
    },
)
half_cut = Prediction(
    "",
    {},
    own={
        "pieces": {
            2: "that is as many as 'y' would make; the spec names 'x', which has 2",
            4: "only the mesh axes that the spec names cut",
        },
        "devices for each": {
            1 / 2: "that is how many pieces there are; eight devices share them",
            1
            / 4: "each piece would be held once; eight devices hold something, and there are fewer pieces than devices",
            2: "all eight would hold the same",
        },
        "first row on device 5": {
            1 / 2: "the four rows are dealt out in halves, and device 5 stands in the second mesh row",
            0: "device 5 stands in the second mesh row",
        },
    },
)
copies_kept = Prediction(
    "",
    {},
    own={
        "P(None, 'y')": {
            2: "that is the number of pieces; eight devices share them",
            1 / 2: "'x' is not named, so along its two devices the piece is the same",
        },
        "P(None, ('x', 'y'))": {
            8: "that is the number of pieces",
            2: "both mesh axes are named",
            4: "both mesh axes are named",
        },
        "P()": {1 / 8: "nothing is cut, and every device holds something"},
    },
)
bytes_held = Prediction(
    "bytes",
    {1 / 4: "those are numbers; each takes 4 bytes"},
    own={
        "batch only": {
            4: "that is the whole array",
            2: "'batch' has 4 devices, not 2",
            1 / 2: "that is an eighth: 'features' is not named, and cuts nothing",
        },
        "features only": {
            2: "that is the whole array",
            1 / 2: "'features' has 2 devices, not 4",
            1 / 4: "that is an eighth: 'batch' is not named, and cuts nothing",
        },
        "both": {8: "that is the whole array", 4: "both axes cut, not one", 2: "both axes cut, not one"},
    },
)
wired_holder = Prediction(
    "",
    {
        6 / 4: "that is the device in the other mesh; the place is the same, and another device stands there",
        5 / 4: "that device stands at the second row's end here",
        7 / 4: "the third place of the second mesh row is asked, and counting begins with 0",
    },
)
ten_over_four = Choice(
    {
        "uneven": "the pieces of an array that you place have one shape",
        "pads": "an array that you place has the rows that you gave it, and no others",
        "refuses": "",
    }
)
padded_mean = Prediction(
    "",
    {
        13.5 / 11.25: "the sum is that of ten rows, and it is divided by twelve",
        (13.5 * 12 / 10) / 11.25: "more rows make the mean smaller: the sum stays",
    },
)
made_in_place = Prediction(
    "bytes",
    {},
    own={
        "result": {
            8: "that is the whole array",
            4: "both mesh axes cut",
            2: "both mesh axes cut",
            1 / 4: "that is numbers; each takes 4 bytes",
        },
        "temporary": {
            1: "each device computes its own piece, straight into the result",
            8: "no device needs the whole: each computes its own piece",
        },
    },
    within=2e-3,
)
callback_calls = Prediction(
    "calls",
    {},
    own={
        "P('x')": {1 / 4: "JAX does not look which pieces are the same", 1 / 8: "one call cannot make two pieces"},
        "P()": {8: "a sharding that replicates everything is a case of its own"},
    },
)
idle_receivers = Prediction(
    "devices",
    {
        4: "the pieces get finer, and not in place: look at device 1, which column does it hold, which does it need?",
        2: "'x' comes first in the tuple: the single columns go to the devices 0, 1, 2 ... in turn",
        1 / 2: "there is one at each end",
        0: "device 0 holds columns 0 and 1, and needs column 0",
    },
)
through_the_host = Choice(
    {"yes": "", "no": ""},
    own={
        "device_put": {
            "no": "what has to arrive and what is sent are two things; here no device holds just its new piece"
        },
        "compiled": {"yes": "its argument lies on the devices, and what it does to it, it does there"},
    },
)


def _mesh():
    return make_mesh((2, 4), ("x", "y"))


def _judge_holder_of(answer):
    elements = [(row, column) for row in range(8) for column in range(12)]
    got = [
        number(answer(*at), "a whole number, a device's", said=f"For element {list(at)} you return", whole=True)
        for at in elements
    ]

    def table(rule: Callable[[int, int], int]) -> list[int]:
        return [rule(*at) for at in elements]

    # By hand: 8 rows over the 4 devices of 'y', 12 columns over the 2 of 'x': blocks of (2, 6), at y = row // 2, x = column // 6.
    want = table(lambda row, column: 4 * (column // 6) + row // 2)
    if got == want:
        return
    slips = [
        (
            lambda row, column: 4 * (row // 4) + column // 3,
            "You cut the rows by 'x' and the columns by 'y'. A spec's entries stand in the order of the array's axes: its "
            "first, for the rows, is 'y' here.",
        ),
        (
            lambda row, column: 2 * (row // 2) + column // 6,
            "Your blocks are right, and you number them as they lie in the array. Devices are numbered as they lie in the "
            "mesh: along 'y' first, 0 1 2 3, then 4 5 6 7.",
        ),
        (
            lambda row, column: 2 * (row // 4) + column // 3,
            "You cut the rows by 'x' and the columns by 'y', and a mesh row has 4 devices, not 2.",
        ),
        (
            lambda row, column: 2 * (column // 6) + row // 2,
            "The second mesh row does not begin with device 2: a mesh row has 4 devices.",
        ),
        (
            lambda row, column: 4 * (column % 2) + row % 4,
            "You deal rows and columns out in turn. A device holds neighbours: the first rows go to the first device of "
            "'y', the next ones to the second.",
        ),
        (
            lambda row, column: 4 * (column // 2) + row // 4,
            "You divide by the number of devices. Divide by the rows, or the columns, that one device holds.",
        ),
        (lambda row, column: 4 * (column // 6) + row // 2 + 1, "Devices are numbered from 0."),
        (lambda row, column: 4 * (column // 4) + row // 4, "Your blocks are (4, 4); they are (2, 6)."),
        (lambda row, column: 4 * (column // 6), "'x' is right; the rows, which 'y' cuts, do not count with you."),
        (lambda row, column: row // 2, "'y' is right; the columns, which 'x' cuts, do not count with you."),
    ]
    why = explained(got, [(table(rule), words) for rule, words in slips])
    (row, column), said = next((at, said) for at, said, right in zip(elements, got, want, strict=True) if said != right)
    why = why or "A block is (2, 6). Which block row and which block column hold it, and who stands there in the mesh?"
    raise Wrong(f"Element [{row}, {column}]: you say device {said}; it is on another. {why}")


@exercise(
    _judge_holder_of,
    "Four block rows, two block columns: row // 2 and column // 6. Which of them is the place along 'y', and which along 'x'?",
)
def holder_of(row, column):
    """Return the number of the device that holds element [row, column]."""
    return 4 * (column // 6) + row // 2


def _judge_spec_for_batch(answer):
    spec = answer()
    spec = getattr(spec, "spec", spec)  # of a sharding
    if not isinstance(spec, PartitionSpec):
        raise Wrong(f"You return a {type(spec).__name__}, {shown(spec)}; expected a PartitionSpec: P(...).")
    said = spec_text(spec)
    for entry in spec:
        for name in entry if isinstance(entry, (tuple, list)) else [entry]:
            if isinstance(name, int):
                raise Wrong(f"{said}: an entry is no number of pieces. It names the mesh axis that cuts: 'x' or 'y'.")
            if isinstance(name, str) and name not in ("x", "y"):
                raise Wrong(f"{said}: the mesh has no axis {name!r}. A spec has the names of the mesh: 'x' and 'y'.")
    if any(entry is PartitionSpec.UNCONSTRAINED for entry in spec):
        raise Wrong(f"{said}: an UNCONSTRAINED entry promises nothing. An axis that is to stay whole has None.")
    if not all(entry is None or isinstance(entry, (str, tuple, list)) for entry in spec):
        raise Wrong(f"{said}: an entry is a name, a tuple of names, or None.")
    if len(spec) > 3:
        raise Wrong(f"{said} has {len(spec)} entries, and the array has three axes.")
    try:
        shape = NamedSharding(_mesh(), spec).shard_shape((16, 6, 10))
    except Exception as error:
        line = str(error).splitlines()[0]
        names = [name for entry in spec for name in (entry if isinstance(entry, (tuple, list)) else [entry])]
        why = f"JAX says: {line}"
        if any(names.count(name) > 1 for name in ("x", "y")):
            why = "a mesh axis can cut only one axis of the array."
        elif len(spec) == 3 and "y" in (spec[2] or ()):
            why = "the 10 features cannot be cut in 4, and 'y' has 4 devices. Which axis of the mesh has 2?"
        elif len(spec) > 1 and "y" in (spec[1] or ()):
            why = "the length of 6 cannot be cut in 4, and it is to stay whole. Its entry is the second."
        raise Wrong(f"{said} does not fit a (16, 6, 10) array on this mesh: {why}") from error
    if shape == (4, 6, 5):
        return
    examples, length, features = shape
    if length != 6:
        why = "the length is cut; its entry is the second. To leave an axis whole and to cut a later one takes a None"
    elif examples != 4 and features == 5:
        why = "the features are cut as asked; 4 of 16 examples are a quarter, so an axis of 4 devices has to cut them"
    elif features != 5 and examples == 4:
        why = "the examples are cut as asked, and all features are on each device; the third entry can cut them"
    elif (examples, features) == (16, 10):
        why = "a spec without a name cuts nothing"
    elif examples == 2:
        why = "both axes of the mesh cut the examples; one of them is to cut the features"
    elif examples == 8:
        why = "'x' has 2 devices, so each holds half of the examples. A quarter is asked"
    else:
        why = "expected (4, 6, 5)"
    raise Wrong(f"{said}: each device holds {shape}; {why}.")


@exercise(
    _judge_spec_for_batch,
    "4 of 16 examples are a quarter, so the first entry is the axis with 4 devices. The second axis stays whole: None.",
)
def spec_for_batch():
    """Return a spec: of a (16, 6, 10) array each device holds a (4, 6, 5) piece."""
    return PartitionSpec("y", None, "x")


def _judge_rebuild(answer):
    rng = np.random.default_rng(2)
    cases = [  # mesh, spec, shape: with and without copies, of ranks 1 to 3, in and out of the devices' order
        (_mesh(), PartitionSpec("x", "y"), (4, 8)),
        (_mesh(), PartitionSpec("x"), (4, 8)),
        (_mesh(), PartitionSpec("y", "x"), (8, 6)),
        (make_mesh((3, 2), ("x", "y")), PartitionSpec(None, "y"), (5, 4)),
        (_mesh(), PartitionSpec("y"), (12,)),
        (_mesh(), PartitionSpec("x", None, "y"), (2, 3, 8)),
    ]
    for mesh, spec, shape in cases:
        table = rng.normal(size=shape).astype(np.float32) * 5
        array = jax.device_put(table, NamedSharding(mesh, spec))
        shards = [(shard.index, np.asarray(shard.data)) for shard in array.addressable_shards]
        shards = [shards[i] for i in rng.permutation(len(shards))]
        try:
            got = answer(shards, shape)
        except Wrong as wrong:
            if shape == (4, 8):
                raise
            raise Wrong(f"Right for shape (4, 8). For shape {shape} and {spec_text(spec)}: {wrong}") from wrong
        what = f"For shape {shape} and {spec_text(spec)}, your table"
        if not isinstance(got, np.ndarray) or got.dtype.kind not in "fiu":
            kind = "jax.Array" if isinstance(got, jax.Array) else type(got).__name__
            raise Wrong(f"{what} is a {kind}, {shown(got)}; expected a NumPy array of numbers.")
        copies = len(shards) * shards[0][1].size // table.size
        if got.shape == (4, 8) != shape:
            raise Wrong(f"{what} has shape (4, 8), which an earlier one had. Take the shape that you are given.")
        if got.shape == shape:
            why = explained(
                got,
                [
                    (
                        copies * table if copies > 1 else np.full(shape, np.inf),
                        f"is {copies} times too large: with {copies} copies of each piece, you add them up. A copy holds the "
                        "same values; put, not add",
                    ),
                    (
                        copies * table / len(shards),
                        f"is {len(shards) // copies} times too small: you divide by the number of devices, and only copies "
                        "come more than once",
                    ),
                    (np.maximum(table, 0), "has 0 for each negative value. Take what the piece holds, not the larger"),
                    (np.minimum(table, 0), "has 0 for each positive value. Take what the piece holds, not the smaller"),
                    (np.trunc(table), "has lost what stands behind the point: its type holds whole numbers"),
                ],
            )
            if why:
                raise Wrong(f"{what} {why}.")
            right = np.isclose(got, table)
            if not right.all() and not got[~right].any():
                raise Wrong(
                    f"{what} is right in {right.sum()} of {right.size} values, and 0 in the others. Are all shards in it?"
                )
            if not right.all() and np.array_equal(np.sort(got, axis=None), np.sort(table, axis=None)):
                raise Wrong(
                    f"{what} has the right values at the wrong places. Neither the order of the list nor the device says where "
                    "a piece belongs; its index does."
                )
        same(got.astype(np.float32), table, what)


@exercise(
    _judge_rebuild,
    "Start with np.zeros(shape). An index is a tuple of slices, and NumPy takes it as it is: whole[index] = data.",
)
def rebuild(shards, shape):
    """Return the whole NumPy array of that shape, from a list of (index, data)."""
    whole = np.zeros(shape)
    for index, data in shards:
        whole[index] = data
    return whole


def _variance_slips(rows: np.ndarray, cuts: int) -> list[tuple[np.ndarray, str]]:
    """What wrong ways to the variance give, for rows that are cut in so many pieces, padded by any number of rows."""
    n, mean = len(rows), rows.mean(axis=0)
    found = [
        (mean, "that is the mean"),
        (rows.std(axis=0), "that is the standard deviation, the root of the variance"),
        ((rows**2).mean(axis=0), "that is the mean of the squares: nothing is subtracted"),
        (np.zeros_like(mean), "the distances from the mean add up to 0; square them first"),
    ]
    if n > 1:
        found.append((rows.var(axis=0, ddof=1), f"you divide by {n - 1}; the variance of {n} rows divides by {n}"))
    if n > cuts and n % cuts:
        found.append(
            (rows[: n // cuts * cuts].var(axis=0), f"you drop the last {n % cuts} rows; pad, and none is lost")
        )
    for more in range(1, 33):
        padded = np.pad(rows, ((0, more), (0, 0)))
        pieces = np.array_split(padded, cuts)
        off = padded.mean(axis=0)
        counted = f"the {more} rows of padding count as rows"
        found += [
            (padded.var(axis=0), f"{counted}, in the mean and in the squares"),
            (
                ((padded - mean) ** 2).sum(axis=0) / n,
                f"the {more} rows of padding were 0, and are no longer once the mean is subtracted from them",
            ),
            (((padded - mean) ** 2).mean(axis=0), f"{counted} in the mean of the squares, though not in the mean"),
            (
                n / len(padded) * rows.var(axis=0),
                f"you divide by {len(padded)} in the end; {n} rows are real",
            ),
            (((rows - off) ** 2).mean(axis=0), f"{counted} in the mean, though not in the squares"),
            (((padded - off) ** 2).sum(axis=0) / n, f"{counted} in the mean, and in the squares"),
            (np.pad(rows, ((0, more), (0, 0)), mode="edge").var(axis=0), "you pad with rows that count as rows"),
            (
                np.mean([piece.var(axis=0) for piece in pieces], axis=0),
                "the mean of the pieces' variances is not that of all rows",
            ),
        ]
    return found


def _judge_variance_of_rows(answer):
    rng = np.random.default_rng(4)
    cases = [  # rows that lack some, that are fewer than the pieces, that the pieces divide
        (_mesh(), PartitionSpec("y"), 10, 3),
        (_mesh(), PartitionSpec(("x", "y")), 3, 2),
        (make_mesh((3, 2), ("x", "y")), PartitionSpec("x"), 6, 3),
    ]
    for mesh, spec, n, features in cases:
        sharding = NamedSharding(mesh, spec)
        cuts = math.prod(mesh.shape[name] for name in np.ravel(spec[0]))
        rows = (3 * rng.normal(size=(n, features)) - np.arange(2, features + 2)).astype(np.float32)
        rows[1], rows[2, 0] = 0, 0  # real rows may hold zeros: they are no sign of padding
        case = f"{n} rows, {spec_text(spec)} on a {' x '.join(map(str, mesh.devices.shape))} mesh"
        try:
            got = answer(rows, sharding)
        except Wrong as wrong:
            if "divisible" not in str(wrong):
                raise
            raise Wrong(
                f"{case}: the rows are cut in {cuts}, and the number of rows that you place is no multiple of it. {wrong}"
            ) from wrong
        if isinstance(got, (list, tuple, float)):
            got = np.asarray(numbers(got, (features,), f"an array of shape ({features},)"), np.float32)
        want = rows.var(axis=0)
        if (
            hasattr(got, "dtype")
            and got.dtype.kind == "f"
            and got.shape == want.shape
            and not np.allclose(got, want, 1e-4, 1e-4)
        ):
            why = explained(got, _variance_slips(rows, cuts))
            raise Wrong(
                f"{case}: your first variance is {got[0]:.5g}, expected {want[0]:.5g}"
                + (
                    f"; {why}."
                    if why
                    else ". It is the mean of the squared distances from the mean, over the real rows."
                )
            )
        if not (hasattr(got, "dtype") and got.dtype.kind == "f" and got.shape == want.shape):
            said = f"an array of shape {np.shape(got)}" if hasattr(got, "dtype") else shown(got)
            raise Wrong(
                f"{case}: you return {said}; expected an array of shape ({features},), one variance for each feature."
            )

    rows = rng.normal(size=(4001, 8)).astype(np.float32)  # 128 kB: large enough to be seen
    sharding = NamedSharding(_mesh(), PartitionSpec(("x", "y")))
    seen = watch(answer, rows, sharding)
    full = [device for device, held in seen.on_device.items() if held >= rows.nbytes]
    if full:
        which = "every device" if len(full) == 8 else f"device {min(full)}"
        why = (
            "You placed them by a sharding that does not cut, or took a slice of a size that the mesh does not divide, which "
            "JAX copies to all devices."
            if len(full) == 8
            else "A function of jax.numpy makes its array on one device; pad with NumPy, on the host."
        )
        raise Wrong(
            f"Right values; but {which} held {seen.most:,} bytes at one time, and all rows are {rows.nbytes:,}. {why}"
        )
    everywhere = all(seen.on_device[device.id] >= rows.nbytes // 8 for device in sharding.device_set)
    if not everywhere and not any(program.devices == 8 for program in seen.programs):
        raise Wrong("Right values; but the rows are never placed by the sharding: jax.device_put(padded, sharding).")


@exercise(
    _judge_variance_of_rows,
    "Zeros do no harm to a sum, so the mean is sum / n. But 0 less the mean is not 0: count the squares under a mask, with jnp.where.",
)
def variance_of_rows(rows, sharding):
    """Return the variance of each feature over the rows (n, features)."""
    n = len(rows)
    padded = np.pad(rows, ((0, -n % sharding.mesh.size), (0, 0)))
    placed = jax.device_put(padded, sharding)
    mean = placed.sum(axis=0) / n
    real = np.arange(len(padded)) < n
    return jax.numpy.where(real[:, None], (placed - mean) ** 2, 0).sum(axis=0) / n


def _disk(source: np.ndarray, most: int) -> tuple[Callable[[slice], np.ndarray], list[int]]:
    """A function that reads rows, never more than `most` at once, and the list of the rows that were read."""
    rows_read: list[int] = []

    def read(rows):
        if not isinstance(rows, slice):
            raise Wrong(
                f"You call read({shown(rows)}); it takes a slice of rows. A callback's index is a tuple of slices."
            )
        if len(source[rows]) > most:
            raise Wrong(
                f"You read {len(source[rows])} rows at once, and a device's piece has {most}. (Of a callback's index, the first "
                "slice is that of the rows.)"
            )
        rows_read.extend(range(len(source))[rows])
        return source[rows].copy()

    return read, rows_read


def _judge_read_once(answer):
    wired = Mesh(np.array(started_devices())[[5, 0, 3, 6, 1, 7, 2, 4]].reshape(2, 4), ("x", "y"))
    cases = [
        (_mesh(), PartitionSpec(("x", "y")), (48, 3)),
        (_mesh(), PartitionSpec(("y", "x")), (48, 3)),
        (_mesh(), PartitionSpec("y"), (64, 4)),
        (_mesh(), PartitionSpec("x"), (24, 2, 3)),
        (wired, PartitionSpec("y"), (32, 5)),
    ]
    for mesh, spec, shape in cases:
        sharding = NamedSharding(mesh, spec)
        source = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) - 7.5
        piece = sharding.shard_shape(shape)[0]
        copies = mesh.size * piece // shape[0]
        read, rows_read = _disk(source, piece)
        got = answer(read, shape, sharding)
        case = f"{spec_text(spec)}, shape {shape}"
        if isinstance(got, jax.Array) and got.shape == shape and got.sharding.is_equivalent_to(sharding, len(shape)):
            values = np.asarray(got)
            if not np.array_equal(values, source) and np.array_equal(np.sort(values, axis=0), source):
                raise Wrong(
                    f"{case}: your array has the right rows at the wrong places. Which device holds which rows is in the sharding; "
                    "the devices' numbers do not say it."
                )
        same(got, jax.device_put(source, sharding), f"{case}: your array")
        if len(rows_read) > len(source):
            times = len(rows_read) / len(source)
            raise Wrong(
                f"{case}: you read {len(rows_read)} rows in all, each row {times:g} times"
                + (f", once for each of the {copies} devices that hold it. " if times == copies else ". ")
                + "Remember a piece that you have read."
            )
    shape = (64, 4096)  # 1 MiB: large enough to be seen
    sharding = NamedSharding(_mesh(), PartitionSpec("y"))
    source = np.ones(shape, np.float32)
    read, _ = _disk(source, 16)
    seen = watch(answer, read, shape, sharding, whole=source.nbytes)
    advice = "A larger array would run out of memory there; let JAX ask for each piece."
    if seen.most >= source.nbytes:
        device = max(seen.on_device, key=seen.on_device.get)
        raise Wrong(
            f"Right values; but device {device} held all 64 rows at one time, and its own piece has 16. {advice}"
        )
    if seen.on_host >= source.nbytes:
        raise Wrong(f"Right values; but all 64 rows stood in one NumPy array, and a device's piece has 16. {advice}")


@exercise(
    _judge_read_once,
    "jax.make_array_from_callback(shape, sharding, callback), and a dictionary of what was read: its key is where the rows start.",
)
def read_once(read, shape, sharding):
    """Return the array of this shape, laid out by `sharding`; read(rows) reads it."""
    kept = {}

    def piece(index):
        rows = index[0]
        if rows.start not in kept:
            kept[rows.start] = read(rows)
        return kept[rows.start]

    return jax.make_array_from_callback(shape, sharding, piece)


def _arriving(cut: Callable[[int], tuple[Sequence[int], Sequence[int]]]) -> list[int]:
    """The bytes that arrive at each of eight devices, from the rows that `cut` says it holds before and after."""
    before_after = map(cut, range(8))
    return [len(set(after) - set(before)) * 12 * 4 for before, after in before_after]


def _judge_arriving_bytes(answer):
    said = answer()
    said = [said[device] for device in range(8)] if isinstance(said, dict) and set(said) == set(range(8)) else said
    said = list(said) if isinstance(said, (Iterator, ValuesView)) else said
    got = numbers(said, (8,), "eight whole numbers, of bytes, device 0 first", whole=True).tolist()

    def piece(at: int, of: int) -> range:
        return range(32 // of * at, 32 // of * (at + 1))

    # By hand: of 32 rows, device d holds the half x = d // 4 and needs the quarter y = d % 4. The first two quarters are in the
    # first half, so devices 0, 1, 6 and 7 have what they need, and 8 rows of 12 float32 have to arrive at the others.
    want = _arriving(lambda d: (piece(d // 4, 2), piece(d % 4, 4)))
    if got == want:
        return
    slips = [
        (
            _arriving(lambda d: ((), piece(d % 4, 4))),
            "that is the whole new piece, everywhere. Does no device hold it already?",
        ),
        ([384 - bytes_ for bytes_ in want], "so much of its new piece a device holds already. The rest has to arrive."),
        ([bytes_ // 48 for bytes_ in want], "these are numbers of rows. A row has 12 elements of 4 bytes."),
        ([bytes_ // 4 for bytes_ in want], "these are numbers of elements. A float32 takes 4 bytes."),
        (
            [bytes_ * 2 for bytes_ in want],
            "where something arrives, it is half of that. A new piece is (8, 12), a float32 4 bytes.",
        ),
        (
            [bytes_ // 2 for bytes_ in want],
            "where something arrives, it is twice that. A new piece is (8, 12), a float32 4 bytes.",
        ),
        (_arriving(lambda d: (piece(d % 4, 4), piece(d // 4, 2))), "that is the way back, from P('y') to P('x')."),
        (
            _arriving(lambda d: (piece(d % 2, 2), piece(d // 2, 4))),
            "you number the devices down the columns of the mesh. They run along 'y' first: device 1 stands at x = 0, y = 1.",
        ),
        (
            _arriving(lambda d: (piece(d // 2, 4), piece(d % 2, 2))),
            "you cut by 'x' in 4 and by 'y' in 2; the mesh is 2 by 4, so it is the other way round.",
        ),
        (
            [sum(want)] * 8,
            "that is what arrives at all devices together, here as much as the whole array. Give a number for each.",
        ),
        ([sum(want) // 8] * 8, "that is the mean over the devices. Not all of them receive the same."),
        ([768] * 8, "that is what a device holds at first."),
        ([0] * 8, "nothing arrives anywhere? Which rows does device 3 hold, and which does it need?"),
    ]
    why = explained(got, slips)
    wrong = [device for device in range(8) if got[device] != want[device]]
    general = "Which rows does it hold, and which does it need? Bytes that arrive = bytes of the new piece - bytes of its overlap with the old one."
    raise Wrong(f"You say {got}: {why}" if why else f"Device {wrong[0]}: you say {got[wrong[0]]:,} bytes. {general}")


@exercise(
    _judge_arriving_bytes,
    "Device 0 holds rows 0 to 15 and needs rows 0 to 7. Device 3 holds the same, and needs rows 24 to 31. Go on: who is at x = 1?",
)
def arriving_bytes():
    """Return eight numbers: the bytes that have to arrive at devices 0, 1, ... 7."""
    piece = 32 // 4 * 12 * 4
    return [0, 0, piece, piece, piece, piece, 0, 0]
