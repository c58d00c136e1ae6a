"""Exercises of notebook 02, Sharding."""

from __future__ import annotations

from unittest import mock

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from utils.compat import spec_text
from utils.exercises import Choice, Prediction, Wrong, exercise, number, same
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
    "copies",
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
        "pads": "JAX would have to invent rows, and to remember which",
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
            262_144: "each device computes its own piece, straight into the result",
            262_000: "each device computes its own piece, straight into the result",
            2_097_152: "no device needs the whole: each computes its own piece",
            2_097_000: "no device needs the whole: each computes its own piece",
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
        2: "a device keeps what it holds, but half of them need a row of the other half",
        1 / 2: "both halves have two such devices",
        1 / 4: "look at each device: which row does it need, and does it hold that row?",
        0: "device 0 holds rows 0 and 1, and needs row 0",
    },
)
through_the_host = Choice(
    {"yes": "", "no": ""},
    own={
        "device_put": {
            "no": "what has to arrive and what is sent are two things, and device_put looks at neither plan"
        },
        "compiled": {"yes": "a compiled program runs on the devices alone, from start to end"},
    },
)


def _mesh():
    return make_mesh((2, 4), ("x", "y"))


def _judge_holder_of(answer):
    # By hand: 8 rows over 2 mesh rows, 8 columns over 4 mesh columns: blocks of (4, 2), device = 4 (row // 4) + column // 2.
    reasons = {  # of element [6, 4], which tells the usual slips apart
        7: "You cut the rows four ways and the columns two. The first entry of the spec belongs to the rows, and 'x' has 2 devices.",
        5: "The block is right, but the devices count along 'y' first: 0 1 2 3 in the first mesh row, 4 5 6 7 in the second.",
        4: "A mesh row has 4 devices, so the second one begins with device 4.",
    }
    for row, column, device in ((6, 4, 6), (0, 0, 0), (3, 7, 3), (4, 0, 4), (5, 3, 5), (7, 7, 7)):
        said = f"For element [{row}, {column}] you return"
        got = number(answer(row, column), "a whole number, a device's", said=said, whole=True)
        if got != device:
            why = "A block is (4, 2). Which block row and which block column hold the element?"
            why = reasons.get(got, why) if (row, column) == (6, 4) else why
            raise Wrong(f"Element [{row}, {column}]: you say device {got}; it is on another. {why}")


@exercise(
    _judge_holder_of,
    "Block row = row // 4, block column = column // 2. The mesh numbers its devices row by row, four to a row.",
)
def holder_of(row, column):
    """Return the number of the device that holds element [row, column]."""
    return 4 * (row // 4) + column // 2


def _judge_spec_for_half(answer):
    spec = answer()
    if not isinstance(spec, PartitionSpec):
        raise Wrong(f"You return a {type(spec).__name__}, {spec!r}; expected a PartitionSpec: P(...).")
    try:
        shape = NamedSharding(_mesh(), spec).shard_shape((8, 8))
    except Exception as error:
        raise Wrong(
            f"{spec_text(spec)} does not fit an (8, 8) array on this mesh. JAX says: {str(error).splitlines()[0]}"
        ) from error
    if shape == (8, 4):
        return
    if shape == (4, 8):
        why = (
            "that is half, but it is the upper or the lower half. The task cuts columns, the second axis of the array; a spec's "
            "entries stand in the order of the array's axes."
        )
    elif shape == (8, 2):
        why = "a quarter: the mesh axis 'y' has 4 devices. Which axis has 2?"
    elif shape == (8, 8):
        why = "the whole table: a spec without a name cuts nothing."
    else:
        why = "not half of the columns. One mesh axis is enough: the one of 2 devices, in the second entry."
    raise Wrong(f"{spec_text(spec)}: each device holds {shape}; {why}")


@exercise(
    _judge_spec_for_half,
    "Two entries: the first for the rows, which stay whole (None), the second for the columns. Which mesh axis has two devices?",
)
def spec_for_half():
    """Return a spec: half of an (8, 8) array on each device, cut along columns."""
    return PartitionSpec(None, "x")


def _judge_rebuild(answer):
    table = np.arange(1.0, 33.0, dtype=np.float32).reshape(4, 8)
    for spec in (PartitionSpec("x", "y"), PartitionSpec("y", "x"), PartitionSpec("x")):
        array = jax.device_put(table, NamedSharding(_mesh(), spec))
        shards = [(shard.index, np.asarray(shard.data)) for shard in array.addressable_shards]
        got = answer(shards, (4, 8))
        what = f"For {spec_text(spec)}, your table"
        if not isinstance(got, np.ndarray) or got.dtype.kind not in "fiu":
            raise Wrong(f"{what} is a {type(got).__name__}; expected a NumPy array of numbers.")
        if got.shape == (4, 8) and np.array_equal(got, 4 * table):
            raise Wrong(
                f"{what} is 4 times too large: with 4 copies of each piece, you add them up. A copy holds the same values; put, not add."
            )
        if np.array_equal(np.sort(got.ravel()), table.ravel()) and got.shape == (4, 8) and (got != table).any():
            raise Wrong(
                f"{what} has the right values at the wrong places. Devices do not say where a piece belongs; its index does."
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


def _judge_mean_of_rows(answer):
    sharding = NamedSharding(_mesh(), PartitionSpec("y"))
    for n in (10, 4, 1):
        rows = np.arange(1.0, 3.0 * n + 1, dtype=np.float32).reshape(n, 3)
        want = rows.mean(axis=0)
        placed = []

        def device_put(x, device=None, *rest, real=jax.device_put, placed=placed, **options):
            placed.append(device)
            return real(x, device, *rest, **options)

        with mock.patch.object(jax, "device_put", device_put):
            got = answer(rows, sharding)
        if not hasattr(got, "dtype") or got.dtype.kind not in "fiu":
            raise Wrong(f"With {n} rows, you return a {type(got).__name__}; expected an array of shape (3,).")
        if np.shape(got) == (3,):
            padded = -(-n // 4) * 4
            if padded != n and np.allclose(got, rows.sum(axis=0) / padded):
                raise Wrong(
                    f"With {n} rows, you divide by {padded}: the zeros that you padded with are counted as rows. Divide by the "
                    "number of real rows (or let a mask say which rows count)."
                )
            if n > 4 and np.allclose(got, rows[: n // 4 * 4].mean(axis=0)):
                raise Wrong(
                    f"With {n} rows, you drop the last {n % 4}. Pad up to a multiple of 4 instead, so that no row is lost."
                )
        same(np.asarray(got, np.float32), want, f"With {n} rows, your mean")
        # Last, so that a slip in the numbers is named first.
        if sharding not in placed:
            raise Wrong("You never place the rows with the sharding: jax.device_put(padded, sharding).")


@exercise(
    _judge_mean_of_rows,
    "How many rows are missing to the next multiple of 4? -len(rows) % 4. np.pad(rows, ((0, missing), (0, 0))) appends zeros.",
)
def mean_of_rows(rows, sharding):
    """Return the mean over the rows (n, 3), laid out by `sharding`, which cuts in 4."""
    n = len(rows)
    padded = np.pad(rows, ((0, -n % 4), (0, 0)))
    placed = jax.device_put(padded, sharding)
    return placed.sum(axis=0) / n


def _judge_read_sharded(answer):
    sharding = NamedSharding(_mesh(), PartitionSpec(("x", "y")))
    source = np.arange(64 * 4, dtype=np.float32).reshape(64, 4)
    asked = []

    def read(rows):
        if not isinstance(rows, slice):
            raise TypeError(f"read takes a slice of rows, not {rows!r}")
        asked.append(len(source[rows]))
        return source[rows]

    whole = []

    def device_put(x, *rest, real=jax.device_put, **options):
        whole.append(np.shape(x) == (64, 4))
        return real(x, *rest, **options)

    with mock.patch.object(jax, "device_put", device_put):
        got = answer(read, sharding)
    if any(whole) or (asked and max(asked) > 8):
        raise Wrong(
            f"You had {64 if any(whole) else max(asked)} rows in one place; a device holds 8. A larger array would run out of "
            "memory there. Let JAX ask for each piece: jax.make_array_from_callback."
        )
    same(got, jax.device_put(source, sharding))


@exercise(
    _judge_read_sharded,
    "jax.make_array_from_callback(shape, sharding, callback): the callback gets a piece's index, a tuple of slices; the first is `rows`.",
)
def read_sharded(read, sharding):
    """Return the (64, 4) array laid out by `sharding`, each piece read by itself."""
    return jax.make_array_from_callback((64, 4), sharding, lambda index: read(index[0]))


def _judge_price_of_change(answer):
    got = number(answer(), "one number, of bytes")
    want = 6_144
    if got == want:
        return
    reasons = {
        8_192: "that is all that a device holds afterwards. How much of it did the device hold before?",
        16_384: "that is the whole array. A device needs only its own columns.",
        2_048: "that is what a device holds already. The rest has to arrive.",
        49_152: "that is the sum over eight devices. How much arrives at one?",
        1_536: "that counts elements. A float32 takes 4 bytes.",
        4_096: "are the rows cut two ways? 'y' has 4 devices: the device holds a quarter of its new piece, not half.",
    }
    nearest = reasons.get(
        int(got), "bytes that arrive = bytes of the new piece - bytes of its overlap with the old piece."
    )
    raise Wrong(f"You say {got:,.0f}: {nearest}")


@exercise(
    _judge_price_of_change,
    "New piece: all 64 rows, half of the 64 columns. Old piece: 16 rows, all columns. The overlap is 16 rows by 32 columns.",
)
def price_of_change():
    """Return the bytes that arrive at each device: from P('y') to P(None, 'x')."""
    new_piece = 64 * 32 * 4
    overlap = 16 * 32 * 4
    return new_piece - overlap
