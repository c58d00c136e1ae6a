"""Wrong answers to the exercises of notebook 02, right ones in unusual forms, and changes that compute the same."""

from __future__ import annotations

import contextlib
import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import device_put as put
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from utils.devices import started_devices
from utils.exercises import ex02
from utils.mesh import make_mesh


def by_plan(row, column):
    plan = NamedSharding(make_mesh((2, 4), ("x", "y")), P("y", "x")).devices_indices_map((8, 12))
    [device] = [d.id for d, (rows, columns) in plan.items() if row in range(8)[rows] and column in range(12)[columns]]
    return device


def adds_copies(shards, shape):
    whole = np.zeros(shape)
    for index, data in shards:
        whole[index] += data
    return whole


def in_device_order(shards, shape):
    whole = np.concatenate([data.ravel() for _, data in shards])
    return whole[: np.prod(shape)].reshape(shape)


def put_into(start, write=lambda old, data: data, shape_of=lambda shape: shape):
    def rebuild(shards, shape):
        whole = start(shape_of(shape))
        for index, data in shards:
            whole[index] = write(whole[index], data)
        return whole

    return rebuild


def fits(shards, shape):
    whole = np.zeros(shape)
    for index, data in shards:
        with contextlib.suppress(ValueError, IndexError):
            whole[index] = data
    return whole


def averages_copies(shards, shape):
    total, count = np.zeros(shape), np.zeros(shape)
    for index, data in reversed(shards):
        total[index] += data
        count[index] += 1
    return total / count


def spoils_what_it_gets(shards, shape):
    whole = np.empty(shape, np.float32)
    while shards:
        index, data = shards.pop()
        whole[index] = data
        data[:] = 0
    return whole


def by_elements(shards, shape):
    whole = np.full(shape, np.nan)
    for index, data in shards:
        rows = [range(n)[part] for part, n in zip(index, shape, strict=True)]
        whole[np.ix_(*rows)] = data.astype(float)
    return whole


def padded(rows, multiple, **how):
    return np.pad(rows, ((0, -len(rows) % multiple), (0, 0)), **how)


def cuts(sharding):
    return sharding.mesh.size


def padding_counts(rows, sharding):
    return put(padded(rows, cuts(sharding)), sharding).var(axis=0)


def padding_is_moved(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    return ((placed - placed.sum(axis=0) / len(rows)) ** 2).sum(axis=0) / len(rows)


def padding_in_the_squares(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    return ((placed - placed.sum(axis=0) / len(rows)) ** 2).mean(axis=0)


def padding_in_the_mean(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    real = jnp.arange(len(placed))[:, None] < len(rows)
    return jnp.where(real, (placed - placed.mean(axis=0)) ** 2, 0).sum(axis=0) / len(rows)


def divides_by_padded(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    real = jnp.arange(len(placed))[:, None] < len(rows)
    return jnp.where(real, (placed - placed.sum(axis=0) / len(rows)) ** 2, 0).mean(axis=0)


def drops_the_rest(rows, sharding):
    pieces = sharding.mesh.shape[sharding.spec[0]]
    return put(rows[: len(rows) // pieces * pieces], sharding).var(axis=0)


def always_four(rows, sharding):
    placed = put(padded(rows, 4), sharding)
    real = jnp.arange(len(placed))[:, None] < len(rows)
    return jnp.where(real, (placed - rows.mean(axis=0)) ** 2, 0).sum(axis=0) / len(rows)


def pieces_alone(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    return np.mean([shard.data.var(axis=0) for shard in placed.addressable_shards], axis=0)


def whole_on_one_device(rows, sharding):
    return put(jnp.pad(rows, ((0, -len(rows) % sharding.mesh.size), (0, 0))), sharding)[: len(rows)].var(axis=0)


def whole_on_all(rows, sharding):
    return put(rows, NamedSharding(sharding.mesh, P())).var(axis=0)


def variance(scale):
    return lambda rows, sharding: scale(rows, ex02.variance_of_rows.function(rows, sharding))


def by_two_sums(rows, sharding):
    placed, n = put(padded(rows, cuts(sharding)).astype(np.float64), sharding), len(rows)
    return (placed**2).sum(axis=0) / n - (placed.sum(axis=0) / n) ** 2


def rows_and_mask(rows, sharding):
    p = padded(rows, 24)
    p, mask = put((p, np.arange(len(p)) < len(rows)), (sharding, NamedSharding(sharding.mesh, P(sharding.spec[0]))))
    return jnp.var(p, axis=0, where=mask[:, None])


def all_in_one_program(rows, sharding):
    @partial(jax.jit, in_shardings=(sharding, None))
    def program(p, n):
        real = jnp.arange(len(p))[:, None] < n
        mean = p.sum(0) / n
        return (jnp.where(real, p - mean, 0.0) ** 2).sum(0) / n

    return program(padded(rows, cuts(sharding)), len(rows))


def pads_with_the_mean(rows, sharding):
    """The padding is at no distance from the mean."""
    p = np.concatenate([rows, np.tile(rows.mean(axis=0), (-len(rows) % cuts(sharding), 1))])
    placed = jax.make_array_from_callback(p.shape, sharding, lambda index: p[index])
    return [float(v) for v in placed.var(axis=0) * len(p) / len(rows)]


def reads_for_each_copy(read, shape, sharding):
    return jax.make_array_from_callback(shape, sharding, lambda index: read(index[0]))


def six_at_a_time(read, shape):
    step = 6
    return [read(slice(row, row + step)) for row in range(0, shape[0], step)]


def joined(read, shape, sharding):
    return put(np.concatenate(six_at_a_time(read, shape)), sharding)


def joined_on_a_device(read, shape, sharding):
    pieces = [jnp.asarray(piece) for piece in six_at_a_time(read, shape)]
    return jax.jit(lambda: jnp.concatenate(pieces), out_shardings=sharding)()


def joined_in_place(read, shape, sharding):
    whole, step = np.empty(shape, np.float32), sharding.shard_shape(shape)[0]
    for row in range(0, shape[0], step):
        whole[row : row + step] = read(slice(row, row + step))
    return jax.make_array_from_callback(shape, sharding, lambda index: whole[index])


def in_order_of_devices(read, shape, sharding):
    n = sharding.shard_shape(shape)[0]
    held = [
        put(read(slice(n * i % shape[0], n * i % shape[0] + n)), device) for i, device in enumerate(started_devices())
    ]
    return jax.make_array_from_single_device_arrays(shape, sharding, held)


def one_copy_is_wrong(read, shape, sharding):
    pieces = {}
    for device, index in sharding.devices_indices_map(shape).items():
        start = index[0].start or 0
        known = start in pieces
        pieces.setdefault(start, read(index[0]) if not known else None)
        pieces[device] = put(pieces[start] + known, device)
    held = [pieces[device] for device in sharding.mesh.devices.flat]
    return jax.make_array_from_single_device_arrays(shape, sharding, held)


def remembers_on_device_0(read, shape, sharding):
    @functools.cache
    def piece(start, stop):
        return jnp.asarray(read(slice(start, stop)))

    return jax.make_array_from_callback(shape, sharding, lambda index: np.asarray(piece(index[0].start, index[0].stop)))


def cached(read, shape, sharding):
    piece = functools.cache(lambda start, stop: read(slice(start, stop)))
    return jax.make_array_from_callback(shape, sharding, lambda index: piece(*index[0].indices(shape[0])[:2]))


def piece_by_piece(read, shape, sharding):
    """No list of pieces: each is put on all devices that hold it, and forgotten."""
    holders = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        holders.setdefault((index[0].start, index[0].stop), []).append(device)
    held = []
    for rows, devices in holders.items():
        data = read(slice(*rows))
        held += [jax.device_put(data, SingleDeviceSharding(device)) for device in devices]
    return jax.make_array_from_single_device_arrays(shape, sharding, held)


def in_the_callback_s_defaults(read, shape, sharding):
    def callback(index, kept={}):  # noqa: B006
        [(start, stop)] = [part.indices(n)[:2] for part, n in zip(index[:1], shape, strict=False)]
        if (start, stop, id(read)) not in kept:
            kept[start, stop, id(read)] = np.array(read(slice(start, stop)), np.float32)
        return kept[start, stop, id(read)]

    return jax.make_array_from_callback(tuple(shape), sharding, callback)


def through_an_identity(read, shape, sharding):
    return jax.jit(lambda array: array, out_shardings=sharding)(cached(read, shape, sharding))


PIECE = 32 // 4 * 12 * 4


def counted(numbers):
    return lambda: numbers


# exercise: [(wrong answer, what the message must say)]
def masks_what_is_zero(rows, sharding):
    missing = -len(rows) % sharding.mesh.size
    padded = jax.device_put(np.pad(rows, ((0, missing), (0, 0))), sharding)
    real = padded != 0
    mean = padded.sum(0) / real.sum(0)
    return jnp.where(real, (padded - mean) ** 2, 0).sum(0) / real.sum(0)


WRONG = {
    ex02.holder_of: [
        (lambda row, column: 4 * (row // 4) + column // 3, "its first, for the rows, is 'y' here"),
        (lambda row, column: 2 * (row // 2) + column // 6, "you number them as they lie in the array"),
        (lambda row, column: 2 * (row // 4) + column // 3, "a mesh row has 4 devices, not 2"),
        (lambda row, column: 2 * (column // 6) + row // 2, "The second mesh row does not begin with device 2"),
        (lambda row, column: 4 * (column % 2) + row % 4, "You deal rows and columns out in turn"),
        (lambda row, column: 4 * (column // 2) + row // 4, "You divide by the number of devices"),
        (lambda row, column: 4 * (column // 6) + row // 2 + 1, "Devices are numbered from 0"),
        (lambda row, column: 4 * (column // 4) + row // 4, "Your blocks are (4, 4)"),
        (lambda row, column: 4 * (column // 6), "the rows, which 'y' cuts, do not count"),
        (lambda row, column: row // 2, "the columns, which 'x' cuts, do not count"),
        (lambda row, column: row, "Element [0, 6]: you say device 0; it is on another. A block is (2, 6)"),
        (lambda row, column: 6, "Which block row and which block column"),
        (lambda row, column: row / 4, "expected a whole number"),
    ],
    ex02.spec_for_batch: [
        (lambda: P("y", P.UNCONSTRAINED, "x"), "promises nothing"),
        (lambda: P("y", ..., "x"), "an entry is a name"),
        (lambda: P("x", None, "y"), "the 10 features cannot be cut in 4"),
        (lambda: P("y", "x"), "each device holds (4, 3, 10); the length is cut"),
        (lambda: P("x", "y"), "the length of 6 cannot be cut in 4"),
        (lambda: P("y"), "each device holds (4, 6, 10); the examples are cut as asked, and all features"),
        (lambda: P(None, None, "x"), "the features are cut as asked; 4 of 16 examples are a quarter"),
        (lambda: P("x"), "'x' has 2 devices"),
        (lambda: P(("x", "y")), "both axes of the mesh cut the examples"),
        (lambda: P(), "cuts nothing"),
        (lambda: P(4, None, 2), "P(4, None, 2): an entry is no number of pieces"),
        (lambda: P("batch", None, "features"), "the mesh has no axis 'batch'"),
        (lambda: P("y", None, "y"), "a mesh axis can cut only one axis of the array"),
        (lambda: P("y", None, "x", None), "has 4 entries"),
        (lambda: ("y", None, "x"), "You return a tuple, ('y', None, 'x')"),
    ],
    ex02.rebuild: [
        (adds_copies, "4 times too large: with 4 copies of each piece, you add them up"),
        (lambda shards, shape: adds_copies(shards, shape) / len(shards), "you divide by the number of devices"),
        (in_device_order, "right values at the wrong places"),
        (lambda shards, shape: np.stack([data for _, data in shards]), "shape (8, 2, 2); expected (4, 8)"),
        (put_into(np.zeros, np.maximum), "has 0 for each negative value"),
        (put_into(np.zeros, np.minimum), "has 0 for each positive value"),
        (put_into(np.zeros, shape_of=lambda shape: (4, 8)), "Right for shape (4, 8). For shape (8, 6)"),
        (lambda shards, shape: fits(shards, (4, 8)), "has shape (4, 8), which an earlier one had"),
        (lambda shards, shape: ex02.rebuild.function(shards[:4], shape), "0 in the others. Are all shards in it?"),
        (put_into(partial(np.zeros, dtype=int)), "its type holds whole numbers"),
        (
            lambda shards, shape: jnp.asarray(ex02.rebuild.function(shards, shape)),
            "is a jax.Array, an array of shape (4, 8)",
        ),
        (lambda shards, shape: ex02.rebuild.function(shards, shape).T, "shape (8, 4); expected (4, 8)"),
    ],
    ex02.variance_of_rows: [
        (masks_what_is_zero, "your first variance is"),
        (padding_counts, "the 6 rows of padding count as rows, in the mean and in the squares"),
        (padding_is_moved, "are no longer once the mean is subtracted"),
        (padding_in_the_squares, "count as rows in the mean of the squares, though not in the mean"),
        (padding_in_the_mean, "count as rows in the mean, though not in the squares"),
        (divides_by_padded, "you divide by 16 in the end; 10 rows are real"),
        (drops_the_rest, "you drop the last 2 rows"),
        (always_four, "P(('x', 'y')) on a 2 x 4 mesh: the rows are cut in 8"),
        (
            lambda rows, sharding: put(rows, sharding).var(axis=0),
            "rows that you place is no multiple of it",
        ),
        (lambda rows, sharding: put(padded(rows, 8, mode="edge"), sharding).var(axis=0), "rows that count as rows"),
        (pieces_alone, "the mean of the pieces' variances"),
        (
            variance(lambda rows, v: v * len(rows) / (len(rows) - 1)),
            "you divide by 9; the variance",
        ),
        (variance(lambda rows, v: jnp.sqrt(v)), "that is the standard deviation"),
        (variance(lambda rows, v: rows.mean(axis=0)), "that is the mean"),
        (variance(lambda rows, v: v.sum()), "you return an array of shape ()"),
        (lambda rows, sharding: rows.var(axis=0), "the rows are never placed"),
        (
            lambda rows, sharding: jnp.var(jnp.asarray(rows), axis=0),
            "device 0 held 128,064 bytes at one time, and all rows are 128,032. A function of jax.numpy",
        ),
        (whole_on_one_device, "or took a slice of a size that the mesh does not divide"),
        (whole_on_all, "every device held 128,"),
    ],
    ex02.read_once: [
        (
            reads_for_each_copy,
            "each row 2 times, once for each of the 2 devices that hold it",
        ),
        (lambda read, shape, sharding: put(read(slice(0, shape[0])), sharding), "You read 48 rows at once"),
        (lambda read, shape, sharding: put(read(slice(None)), sharding), "You read 48 rows at once"),
        (joined, "all 64 rows stood in one NumPy array"),
        (joined_in_place, "all 64 rows stood in one NumPy array"),
        (joined_on_a_device, "device 0 held all 64 rows"),
        (remembers_on_device_0, "device 0 held all 64 rows"),
        (in_order_of_devices, "the right rows at the wrong places"),
        (one_copy_is_wrong, "in the copy on device 4, differs"),
        (lambda read, shape, sharding: np.concatenate(six_at_a_time(read, shape)), "expected a jax.Array"),
        (
            lambda read, shape, sharding: jnp.concatenate([jnp.asarray(p) for p in six_at_a_time(read, shape)]),
            "laid out as cpu:0; expected P(('x', 'y'))",
        ),
        (
            lambda read, shape, sharding: jax.make_array_from_callback(shape, sharding, lambda index: read(index)),
            "it takes a slice of rows",
        ),
        (
            lambda read, shape, sharding: jax.make_array_from_callback(shape, sharding, lambda index: read(index[1])),
            "Of a callback's index, the first slice is that of the rows",
        ),
    ],
    ex02.arriving_bytes: [
        (counted([PIECE] * 8), "Does no device hold it already?"),
        (counted([PIECE, PIECE, 0, 0, 0, 0, PIECE, PIECE]), "a device holds already. The rest has to arrive"),
        (counted([0, 0, 96, 96, 96, 96, 0, 0]), "numbers of elements"),
        (counted([0, 0, 8, 8, 8, 8, 0, 0]), "numbers of rows"),
        (counted([0, 0, 768, 768, 768, 768, 0, 0]), "a float32 4 bytes"),
        (counted([0, 0, 192, 192, 192, 192, 0, 0]), "a float32 4 bytes"),
        (counted([384, 384, 768, 768, 768, 768, 384, 384]), "that is the way back"),
        (counted([0, 384, 0, 384, 384, 0, 384, 0]), "you number the devices down the columns"),
        (counted([384, 768, 384, 768, 768, 384, 768, 384]), "the mesh is 2 by 4"),
        (counted([4 * PIECE] * 8), "all devices together"),
        (counted([PIECE // 2] * 8), "the mean over the devices"),
        (counted([0] * 8), "nothing arrives anywhere?"),
        (counted([0, 0, 384, 384, 0, 0, 384, 384]), "Device 4: you say 0 bytes. Which rows does it hold"),
        (counted(PIECE), "expected eight whole numbers"),
        (counted([0, 0, 384, 384]), "expected eight whole numbers"),
        (counted({d: 384 for d in range(8)}), "that is the whole new piece, everywhere"),
    ],
}

# prediction: (the truth, by hand; [(wrong guess, what the reading must say)])
GUESSES = {
    ex02.first_cut: (  # 4 / 2 rows, 8 / 4 columns; row 2 in the second half, column 5 in the third pair: 4 + 2
        {"rows": 2, "columns": 2, "device of [2, 5]": 6},
        [
            ((1, 4, None), "four ways"),
            ((4, None, None), "nothing would be cut"),
            ((2, 2, 5), "row by row"),
            ((2, 2, 7), "the third is number 2"),
            ((2, 2, 2), "second mesh row"),
        ],
    ),
    ex02.half_cut: (
        {"pieces": 2, "devices for each": 4, "first row on device 5": 2},
        [
            ((4, 2, 1), "'y' would make"),
            ((8, 1, None), "only the mesh axes that the spec names cut"),
            ((2, 2, None), "eight devices share them"),
            ((2, 4, 0), "second mesh row"),
            ((2, 4, 1), "dealt out in halves"),
        ],
    ),
    ex02.copies_kept: (
        {"P(None, 'y')": 2, "P(None, ('x', 'y'))": 1, "P()": 8},
        [
            ((4, 1, 8), "number of pieces"),
            ((2, 8, 8), "number of pieces"),
            ((2, 1, 1), "every device"),
            ((1, 1, 8), "'x' is not"),
        ],
    ),
    ex02.bytes_held: (  # 2,097,152 over 4, over 2, over 8
        {"batch only": 524_288, "features only": 1_048_576, "both": 262_144},
        [
            ((2_097_152, 2_097_152, 2_097_152), "whole array"),
            ((1_048_576, 524_288, 262_144), "has 4 devices, not 2"),
            ((262_144, 262_144, 262_144), "is not named"),
            ((131_072, 262_144, 65_536), "takes 4 bytes"),
        ],
    ),
    ex02.wired_holder: (4, [(6, "other mesh"), (5, "row's end"), (7, "begins with 0")]),
    ex02.ten_over_four: ("refuses", [("pads", "rows that you gave it"), ("uneven", "one shape")]),
    ex02.padded_mean: (11.25, [(13.5, "divided by twelve"), (16.2, "the sum stays")]),
    ex02.made_in_place: (
        {"result": 262_144, "temporary": 0},
        [((2_097_152, 8), "whole"), ((262_144, 1), "its own piece"), ((524_288, 0), "both mesh axes cut")],
    ),
    ex02.callback_calls: (
        {"P('x')": 8, "P()": 1},
        [((2, 1), "which pieces are the same"), ((8, 8), "case of its own")],
    ),
    ex02.idle_receivers: (2, [(8, "not in place"), (0, "needs column 0"), (4, "in turn"), (1, "each end")]),
    ex02.through_the_host: (
        {"device_put": "yes", "compiled": "no"},
        [(("no", "no"), "just its new piece"), (("yes", "yes"), "it does there")],
    ),
}

# exercise: [right answer in an unusual form]
RIGHT = {
    ex02.holder_of: [
        by_plan,
        lambda row, column: np.int64(column // 6 * 4) + np.int32(row // 2),
        lambda row, column: float(row // 2 + (4 if column > 5 else 0)),
        lambda row, column: jnp.arange(8).reshape(2, 4)[column // 6, row // 2],
        lambda row, column: np.repeat(np.repeat(np.arange(8).reshape(2, 4).T, 2, axis=0), 6, axis=1)[row, column],
    ],
    ex02.spec_for_batch: [
        lambda: P("y", None, ("x",)),
        lambda: P(("y",), None, "x"),
        lambda: jax.sharding.PartitionSpec(*["y", None, "x"]),
        lambda: NamedSharding(make_mesh((2, 4), ("x", "y")), P("y", None, "x")),
        lambda: P("y", (), "x"),
    ],
    ex02.rebuild: [
        averages_copies,
        spoils_what_it_gets,
        by_elements,
        put_into(np.empty),
        put_into(partial(np.full, fill_value=np.float32(7))),
        lambda shards, shape: np.array(functools.reduce(lambda w, s: w.at[s[0]].set(s[1]), shards, jnp.zeros(shape))),
    ],
    ex02.variance_of_rows: [
        by_two_sums,
        rows_and_mask,
        all_in_one_program,
        pads_with_the_mean,
        lambda rows, sharding: np.asarray(ex02.variance_of_rows.function(rows[::-1], sharding)),
    ],
    ex02.read_once: [
        cached,
        piece_by_piece,
        in_the_callback_s_defaults,
        through_an_identity,
    ],
    ex02.arriving_bytes: [
        lambda: dict(zip(range(8), ex02.arriving_bytes.function(), strict=True)),
        lambda: (number for number in ex02.arriving_bytes.function()),
        counted((0, 0, 384, 384, 384, 384, 0, 0)),
        counted(np.array([0, 0, 384, 384, 384, 384, 0, 0])),
        lambda: jnp.array([0, 0, 384.0, 384, 384, 384, 0, 0]),
        lambda: [0.0, 0.0, np.float32(384), jnp.int32(384), 384.0, 384, np.zeros(()), 0],
    ],
}

# exercise: [(change of its solution, why it computes the same)]
SAME = {}
