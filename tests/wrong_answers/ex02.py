"""Wrong answers to the exercises of notebook 02, right ones in unusual forms, and changes that compute the same."""

from __future__ import annotations

import contextlib
import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import device_put as put
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from utils import layout
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


def by_starts(shards, shape):
    whole = np.zeros(shape)
    for index, data in shards:
        whole[tuple(slice(part.start, part.start + n) for part, n in zip(index, data.shape, strict=True))] = data
    return whole


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


def whole_on_all(rows, sharding):
    return put(rows, NamedSharding(sharding.mesh, P())).var(axis=0)


def slices_the_placed(rows, sharding):
    return put(padded(rows, cuts(sharding)), sharding)[: len(rows)].var(axis=0)


def gathers_the_placed(rows, sharding):
    whole = jax.jit(lambda array: array, out_shardings=NamedSharding(sharding.mesh, P()))
    return whole(put(padded(rows, cuts(sharding)), sharding))[: len(rows)].var(axis=0)


def places_twice(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    return put(placed, NamedSharding(sharding.mesh, P()))[: len(rows)].var(axis=0)


def mean_of_all_features(rows, sharding):
    placed, n = put(padded(rows, cuts(sharding)), sharding), len(rows)
    return jnp.where((np.arange(len(placed)) < n)[:, None], (placed - placed.sum() / n) ** 2, 0).sum(axis=0) / n


def root_of_nothing(rows, sharding):
    placed, n = put(padded(rows, cuts(sharding)), sharding), len(rows)
    distances = jnp.where((np.arange(len(placed)) < n)[:, None], placed - placed.sum(axis=0) / n, 0)
    return (distances.sum(axis=0) / n) ** 2


def placed_and_not_used(rows, sharding):
    put(padded(rows, cuts(sharding)), sharding)
    return rows.var(axis=0)


def back_on_the_host(rows, sharding):
    return np.asarray(put(padded(rows, cuts(sharding)), sharding))[: len(rows)].var(axis=0)


def shards_on_the_host(rows, sharding):
    placed = put(padded(rows, cuts(sharding)), sharding)
    pieces = {shard.index[0].start or 0: np.asarray(shard.data) for shard in placed.addressable_shards}
    return np.concatenate([pieces[start] for start in sorted(pieces)])[: len(rows)].var(axis=0)


def squares_on_the_host(rows, sharding):
    mean = np.asarray(put(padded(rows, cuts(sharding)), sharding).sum(axis=0)) / len(rows)
    return ((rows - mean) ** 2).sum(axis=0) / len(rows)


def masked(mask=lambda n, padded: np.arange(padded) < n, pad=padded, by=lambda n, mask: n):
    """The solution with another mask, another padding, another number to divide by."""

    def variance_of_rows(rows, sharding):
        placed, n = put(pad(rows, cuts(sharding)), sharding), len(rows)
        real = mask(n, len(placed))[:, None]
        mean = placed.sum(axis=0) / by(n, real)
        return jnp.where(real, (placed - mean) ** 2, 0).sum(axis=0) / by(n, real)

    return variance_of_rows


def padded_in_front(rows, multiple):
    return np.pad(rows, ((-len(rows) % multiple, 0), (0, 0)))


def mask_of_one_axis(rows, sharding):
    placed, n = put(padded(rows, cuts(sharding)), sharding), len(rows)
    mean = placed.sum(axis=0) / n
    return jnp.where(np.arange(len(placed)) < n, (placed - mean) ** 2, 0).sum(axis=0) / n


def by_sums(rule):
    """What a rule makes of the sum of the rows, that of their squares, their number and the padded number."""

    def variance_of_rows(rows, sharding):
        placed = put(padded(rows, cuts(sharding)), sharding)
        return rule(placed.sum(axis=0), (placed**2).sum(axis=0), len(rows), len(placed))

    return variance_of_rows


def by_products(rows, sharding):
    """The first row is subtracted on the host: near to the mean, the squares do not cancel."""
    placed, n = put(padded(rows - rows[0], cuts(sharding)), sharding), len(rows)
    return jnp.einsum("ij,ij->j", placed, placed) / n - (placed.sum(axis=0) / n) ** 2


def placed_by(spec_of):
    """The solution, placed by another spec on the same mesh."""

    def variance_of_rows(rows, sharding):
        return ex02.variance_of_rows.function(rows, NamedSharding(sharding.mesh, spec_of(sharding.mesh.axis_names)))

    return variance_of_rows


def placed_by_the_page(rows, sharding):
    return ex02.variance_of_rows.function(rows, NamedSharding(make_mesh((2, 4), ("x", "y")), P("y")))


def eight_times(rows, sharding):
    return jnp.var(put(np.tile(rows, (sharding.mesh.size, 1)), sharding), axis=0)


def adds_up_copies(rows, sharding):
    placed, n = put(padded(rows, cuts(sharding)), sharding), len(rows)
    mean, real = np.asarray(placed.sum(axis=0)) / n, np.arange(len(placed)) < n
    pieces = [(real[shard.index[0], None], shard.data) for shard in placed.addressable_shards]
    return sum(np.asarray(jnp.where(mask, (piece - mean) ** 2, 0).sum(axis=0)) for mask, piece in pieces) / n


def shard_by_shard(rows, sharding):
    """Each shard sums on its own device; of copies the first counts."""
    placed, n = put(padded(rows - rows[0], cuts(sharding)), sharding), len(rows)
    firsts = [shard.data for shard in placed.addressable_shards if shard.replica_id == 0]
    total, squares = (sum(np.asarray((piece**power).sum(axis=0)) for piece in firsts) for power in (1, 2))
    return squares / n - (total / n) ** 2


def by_a_per_device_program(rows, sharding):
    names = sharding.spec[0]
    placed, n = put(padded(rows - rows[0], cuts(sharding)), sharding), len(rows)

    def sums(piece):
        return jax.lax.psum((piece.sum(0), (piece * piece).sum(0)), names)

    total, squares = jax.jit(jax.shard_map(sums, mesh=sharding.mesh, in_specs=sharding.spec, out_specs=P()))(placed)
    return squares / n - (total / n) ** 2


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


OF_ALL_CALLS = {}


def remembers_for_ever(key):
    def read_once(read, shape, sharding):
        def callback(index):
            at = key(shape, index[0].start)
            if at not in OF_ALL_CALLS:
                OF_ALL_CALLS[at] = read(index[0])
            return OF_ALL_CALLS[at]

        return jax.make_array_from_callback(shape, sharding, callback)

    return read_once


def in_its_own_defaults(read, shape, sharding, kept={}):  # noqa: B006
    def callback(index):
        if (shape, index[0].start) not in kept:
            kept[shape, index[0].start] = read(index[0])
        return kept[shape, index[0].start]

    return jax.make_array_from_callback(shape, sharding, callback)


def under_one_key(read, shape, sharding):
    kept = {}

    def callback(index):
        if "piece" not in kept:
            kept["piece"] = read(index[0])
        return kept["piece"]

    return jax.make_array_from_callback(shape, sharding, callback)


def callback_without_return(read, shape, sharding):
    kept = {}

    def callback(index):
        kept[index[0].start] = read(index[0])

    return jax.make_array_from_callback(shape, sharding, callback)


def by_another_sharding(spec):
    def read_once(read, shape, sharding):
        return cached(read, shape, NamedSharding(sharding.mesh, spec))

    return read_once


def eighths_and_then(move):
    """Cut by all devices, each row is read once; then the layout is changed."""

    def read_once(read, shape, sharding):
        eighths = NamedSharding(sharding.mesh, P(sharding.mesh.axis_names))
        return move(cached(read, shape, eighths), sharding)

    return read_once


def by_the_compiled(array, sharding):
    return jax.jit(lambda array: array, out_shardings=sharding)(array)


def in_a_list(read, shape, sharding):
    """The pieces under their indices, all read before any is asked for."""
    plan = sharding.devices_indices_map(shape)
    starts = sorted({index[0].indices(shape[0])[:2] for index in plan.values()})
    pieces = {start: read(slice(start, stop)) for start, stop in starts}
    held = [jax.device_put(pieces[index[0].indices(shape[0])[0]], device) for device, index in plan.items()]
    return jax.make_array_from_single_device_arrays(shape, sharding, held)


def in_float32(read, shape, sharding):
    return cached(lambda rows: np.asarray(read(rows), np.float32), shape, sharding)


def keeps_the_last_alone(read, shape, sharding):
    piece = functools.lru_cache(maxsize=1)(lambda start, stop: read(slice(start, stop)))
    return jax.make_array_from_callback(shape, sharding, lambda index: piece(*index[0].indices(shape[0])[:2]))


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


PRICES = [360, 720, 720, 360, 360, 720, 720, 360]


def counted(numbers):
    return lambda: numbers


def by_the_plans():
    """Counted by the course's helper, from two arrays that are never made."""
    names, numbers = ("x", "y"), np.array(started_devices())
    layouts = [
        NamedSharding(Mesh(numbers.reshape(2, 4), names), P("y")),
        NamedSharding(Mesh(numbers.reshape(4, 2).T, names), P("x")),
    ]
    plans = [jax.ShapeDtypeStruct((24, 5, 6), jnp.bfloat16, sharding=sharding) for sharding in layouts]
    return layout.bytes_arriving(*plans)


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
        (lambda row, column: 4 * (column // 4) + row, "as if the array were the table, of shape (4, 8)"),
        (lambda row, column: 4 * (column // 4) + row // 4, "Your blocks are (4, 4)"),
        (lambda row, column: 4 * (column // 6), "the rows, which 'y' cuts, do not count"),
        (lambda row, column: row // 2, "the columns, which 'x' cuts, do not count"),
        (lambda row, column: row, "Element [0, 6]: you say device 0; it is on another. Which entry of the spec"),
        (lambda row, column: 6, "who stands at that place of the mesh?"),
        (lambda row, column: 3 * row, "your devices go from 0 to 21; there are 0 to 7.) Which entry"),
        (lambda row, column: column // 6 + 4 * (row // 2), "Which step passes over a whole mesh row"),
        (lambda row, column: 8 * (column // 6) + row // 2, "You begin the second mesh row with device 8"),
        (lambda row, column: column // 6 + row // 2, "You begin the second mesh row with device 1."),
        (lambda row, column: 4 * column // 6 + row // 2, "multiplies first"),
        (lambda row, column: 4 * (column // 6) + row, "you count rows along 'y' where blocks of rows count"),
        (lambda row, column: 4 * ((column + 1) // 6) + (row + 1) // 2, "Rows and columns are numbered from 0"),
        (lambda row, column: 4 * (row // 2) + column // 2, "You cut the columns in six"),
        (lambda row, column: 4 * (row // 2) + column // 3, "the mesh has 2 rows of 4"),
        (lambda row, column: 4 * (column > 6) + row // 2, "Column 6 is the seventh column"),
        (lambda row, column: 4 * (column // 6) + row // 4, "You deal the rows out four at a time"),
        (lambda row, column: 4 * (column // 6) + row % 4, "you deal the rows out in turn"),
        (lambda row, column: 4 * (column % 2) + row // 2, "you deal the columns out in turn"),
        (lambda row, column: 4 * (column // 3) + row // 2, "you cut the columns in four"),
        (lambda row, column: 4 * (row // 6) + column // 2, "You take the row for the column"),
        (lambda row, column: 4 * round(column / 6) + round(row / 2), "You round to the nearest or up"),
        (lambda row, column: 4 * (column // 6) + round(row / 2), "You round to the nearest or up"),
        (lambda row, column: 4 * -(-column // 6) + -(-row // 2), "You round to the nearest or up"),
        (lambda row, column: 7 - 4 * (column // 6) - row // 2, "from the last to the first"),
        (lambda row, column: 4 * (1 - column // 6) + row // 2, "the two mesh rows in the wrong order"),
        (lambda row, column: 4 * (column // 6) + 3 - row // 2, "along 'y' from its end"),
        (lambda row, column: row / 4, "expected a whole number"),
    ],
    ex02.spec_from_pieces: [
        (
            lambda: P(("a", "c"), None, "b"),
            "device 1 would hold [4:8, 0:6, 0:5], and it holds [8:12, 0:6, 0:5]; the right",
        ),
        (lambda: P(("a", "c"), None, "b"), "In a tuple, the first name cuts in halves"),
        (lambda: P("a", "c", "b"), "you cut the length, by the second entry"),
        (lambda: P(("c", "a"), "b"), "you cut the length, by the second entry"),
        (lambda: P(None, ("c", "a"), "b"), "an axis of the array cannot be cut so often; you cut the length"),
        (lambda: P(("a", "b"), None, "c"), "Devices 0 and 2 differ in b alone: do they hold the same examples?"),
        (lambda: P(("c", "b"), None, "a"), "Devices 0 and 2 differ in b alone: do they hold the same examples?"),
        (lambda: P(("a", "b", "c")), "Devices 0 and 2 differ in b alone"),
        (lambda: P("c", None, "a"), "'a' cuts the features. Devices 0 and 4 differ in a alone"),
        (lambda: P("a", None, "c"), "'c' cuts the features. Devices 0 and 1 differ in c alone"),
        (lambda: P("a", None, ("b", "c")), "cannot be cut so often; 'c' cuts the features"),
        (lambda: P(("c", "a")), "device 0 would hold [0:4, 0:6, 0:10], and it holds [0:4, 0:6, 0:5]"),
        (lambda: P(("c", "a")), "nothing cuts the features, the third axis. Which devices hold other features"),
        (lambda: P("c", None, "b"), "device 0 would hold [0:8, 0:6, 0:5]"),
        (lambda: P("c", None, "b"), "a quarter. How many mesh axes of 2 devices does that take?"),
        (lambda: P(None, None, "b"), "How many mesh axes of 2 devices does that take?"),
        (lambda: P(), "nothing cuts the features"),
        (lambda: P(4, 1, 2), "P(4, 1, 2): an entry is no number of pieces"),
        (lambda: P("x", None, "y"), "the mesh has no axis 'x'"),
        (lambda: P("ca", None, "b"), "the mesh has no axis 'ca'"),
        (lambda: P(("c", "a"), "a", "b"), "names 'a' twice"),
        (lambda: P(("c", "a"), None, "b", None), "has 4 entries"),
        (lambda: P(("c", None, "b")), "stand side by side, without brackets around all"),
        (lambda: P(("c", "a"), P.UNCONSTRAINED, "b"), "promises nothing"),
        (lambda: P(("c", "a"), ..., "b"), "an entry is a name"),
        (lambda: (("c", "a"), None, "b"), "You return a tuple, (('c', 'a'), None, 'b')"),
        (lambda: "P(('c', 'a'), None, 'b')", "leave out the outer quotes"),
        (
            lambda: make_mesh((2, 2, 2), ("a", "b", "c")),
            "You return a Mesh; expected a PartitionSpec: P(...). A mesh says",
        ),
        (lambda: None, "Does the function end with `return`?"),
    ],
    ex02.rebuild: [
        (adds_copies, "4 times too large: with 4 copies of each piece, you add them up"),
        (lambda shards, shape: adds_copies(shards, shape) / len(shards), "you divide by the number of devices"),
        (in_device_order, "right values at the wrong places"),
        (
            lambda shards, shape: np.stack([data for _, data in shards]),
            "shape (8, 2, 2); expected (4, 8). All 8 pieces stand one behind another",
        ),
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
        (lambda shards, shape: ex02.rebuild.function(shards, shape) / 2, "is 2 times too small in each place"),
        (lambda shards, shape: adds_copies(shards, shape) / 2, "is 2 times too small in each place"),
        (put_into(np.zeros, lambda old, data: data[0]), "repeats the first row of each piece"),
        (
            lambda shards, shape: np.vstack([data for _, data in sorted(shards, key=str)]),
            "All 8 pieces stand one behind",
        ),
        (lambda shards, shape: np.array([data for _, data in shards]), "A piece belongs where its index says"),
        (
            lambda shards, shape: ex02.rebuild.function(shards, shape).astype(np.float16),
            "has dtype float16, which rounds",
        ),
        (by_starts, "has start None; its method indices(n) has numbers"),
        (lambda shards, shape: np.zeros(shape), "is 0 everywhere. Is anything put into it?"),
        (lambda shards, shape: None, "Does the function end with `return`?"),
        (lambda shards, shape: ex02.rebuild.function(shards, shape).tolist(), "not its values in lists"),
    ],
    ex02.variance_of_rows: [
        (masks_what_is_zero, "you take what is 0 for padding"),
        (placed_by(lambda names: P(names)), "right values; but the rows are laid out by P(('x', 'y'))"),
        (placed_by(lambda names: P(names[0])), "right values; but the rows are laid out by P('x')"),
        (placed_by(lambda names: P(None, names[0])), "you cut the features"),
        (placed_by_the_page, "P(('x', 'y')) on a 2 x 4 mesh: right values; but the rows are laid out by P('y')"),
        (by_two_sums, "Subtract the mean first, then square"),
        (eight_times, "rows for 4,"),
        (adds_up_copies, "each row lies on 2 devices, and you add up its copies"),
        (masked(lambda n, padded: np.arange(padded) >= n), "your mask is the wrong way round"),
        (by_sums(lambda total, squares, n, padded: squares / n), "nothing is subtracted."),
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
            "A function of jax.numpy makes its array on one device",
        ),
        (whole_on_all, "You placed them, first or later, by a sharding that does not cut"),
        (slices_the_placed, "They were placed in pieces, and a later step sent them to all devices. A slice"),
        (placed_and_not_used, "the rows that you placed are not used"),
        (shards_on_the_host, "the rows that you placed are not used"),
        (back_on_the_host, "the placed rows were copied back to the host"),
        (squares_on_the_host, "The squares are to be summed there, too"),
        (masked(lambda n, padded: np.arange(padded) <= n), "your mask takes 1 row of padding for real, in the squares"),
        (masked(lambda n, padded: np.arange(padded) < n - 1), "the squares lack the last row"),
        (masked(pad=padded_in_front), "the padding stands in front"),
        (masked(by=lambda n, real: 1), "neither the sum of the rows nor that of the squares"),
        (masked(by=lambda n, real: len(real)), "you divide by 16, both times"),
        (gathers_the_placed, "and so does a layout that does not cut"),
        (places_twice, "You placed them, first or later, by a sharding that does not cut"),
        (
            lambda rows, sharding: put(padded(rows, 8), sharding).addressable_shards[0].data.var(0),
            "one device's rows alone",
        ),
        (mean_of_all_features, "sum over the rows alone, axis 0"),
        (root_of_nothing, "the distances from the mean add up to 0"),
        (mask_of_one_axis, "it needs an axis of size 1 beside the rows' features: mask[:, None]"),
        (variance(lambda rows, v: len(rows) * v), "that is the sum of the squares; divide it"),
        (variance(lambda rows, v: np.abs(rows - rows.mean(0)).mean(0)), "the mean of the distances"),
        (
            by_sums(lambda total, squares, n, padded: (squares - (total / n) ** 2) / n),
            "you subtract the square of the mean from the sum",
        ),
        (by_sums(lambda total, squares, n, padded: squares / n - total / n), "it is to be squared first"),
        (by_sums(lambda total, squares, n, padded: (total / n) ** 2 - squares / n), "that is less than 0"),
        (
            by_sums(lambda total, squares, n, padded: squares / n - (total / padded) ** 2),
            "you divide by 16 for the mean",
        ),
        (
            by_sums(lambda total, squares, n, padded: squares / padded - (total / n) ** 2),
            "you divide the squares by 16",
        ),
        (by_sums(lambda total, squares, n, padded: squares), "that is the sum of the rows' squares"),
        (lambda rows, sharding: None, "Does the function end with `return`?"),
    ],
    ex02.read_once: [
        (
            reads_for_each_copy,
            "each row 2 times, once for each of the 2 devices that hold it",
        ),
        (keeps_the_last_alone, "not the last one alone"),
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
            "slice(None) is all of them. Of a callback's index, the first slice is that of the rows",
        ),
        (remembers_for_ever(lambda shape, start: (shape, start)), "The others come from an earlier call"),
        (remembers_for_ever(lambda shape, start: start), "The others come from an earlier call"),
        (in_its_own_defaults, "a dictionary that is made once, outside of the function or as a default argument"),
        (under_one_key, "you read 6 of the 48 rows. One piece alone was read"),
        (lambda read, shape, sharding: put(np.zeros(shape, np.float32), sharding), "you read 0 of the 48 rows."),
        (callback_without_return, "Does your callback return an array, with `return`?"),
        (
            by_another_sharding(P("y")),
            "You read 12 rows at once, and under the sharding a device's piece has 6. Is the array laid out",
        ),
        (by_another_sharding(P("x")), "Is the array laid out by the sharding that you are given?"),
        (by_another_sharding(P()), "You read 48 rows at once"),
        (by_another_sharding(P(("x", "y"))), "laid out as P(('x', 'y')) on a 2 x 4 mesh"),
        (eighths_and_then(put), "was copied from the devices to the host. Did you lay it out in another way first?"),
        (
            eighths_and_then(lambda array, sharding: put(np.asarray(array), sharding)),
            "was copied from the devices to the host",
        ),
    ],
    ex02.arriving_bytes: [
        (counted([720] * 8), "Does no device hold a part of it already?"),
        (counted([360, 0, 0, 360, 360, 0, 0, 360]), "a device holds already. The rest has to arrive"),
        (counted([180, 360, 360, 180, 180, 360, 360, 180]), "numbers of elements. A bfloat16"),
        (counted([6, 12, 12, 6, 6, 12, 12, 6]), "numbers of rows"),
        (counted([720, 1440, 1440, 720, 720, 1440, 1440, 720]), "a float32 4"),
        (counted([2880, 5760, 5760, 2880, 2880, 5760, 5760, 2880]), "these are bits"),
        (counted([-360, -720, -720, -360, -360, -720, -720, -360]), "subtract the overlap from the new piece"),
        (counted([0, 360, 360, 0, 0, 360, 360, 0]), "so much a device drops, or receives on the way back"),
        (counted([360, 360, 720, 720, 720, 720, 360, 360]), "It reads 0 2 4 6 / 1 3 5 7: where does device 1 stand?"),
        (counted([360, 720, 360, 720, 720, 360, 720, 360]), "you take the second mesh for both"),
        (counted([360, 720, 360, 720, 720, 360, 720, 360]), "your numbers stand in the order of the second mesh"),
        (counted([360, 720, 360, 720, 720, 360, 720, 360]), "a mesh row is 0 1 2 3; or: your numbers"),
        (counted([1440, 2880, 2880, 1440, 1440, 2880, 2880, 1440]), "A bfloat16 takes 2 bytes, not 8"),
        (counted([0, 360, 360, 360, 360, 360, 360, 0]), "you take P('y') for both meshes"),
        (counted([4320] * 8), "all devices together"),
        (counted([1, 2, 2, 1, 1, 2, 2, 1]), "numbers of old pieces"),
        (counted([1440] * 8), "that is the whole array"),
        (counted([720, 360, 360, 720, 720, 360, 360, 720]), "Is each device at its place in the second mesh?"),
        (counted([540] * 8), "the mean over the devices"),
        (counted([360] * 8), "so much larger is its new piece"),
        (counted([0] * 8), "nothing arrives anywhere?"),
        (
            counted([360, 720, 720, 360, 360, 720, 360, 720]),
            "Right for 6 of the 8 devices. Device 6: you say 360 bytes. At",
        ),
        (counted([360, 720, 720, 360, 360, 720, 720, -360]), "Device 7: you say -360 bytes. Less than nothing"),
        (counted([0, 0, 0, 0, 360, 360, 360, 360]), "Right for 2 of the 8 devices. Device 0: you say 0 bytes"),
        (counted(360), "expected eight whole numbers"),
        (counted([360, 720, 720, 360]), "expected eight whole numbers"),
        (counted({d: 720 for d in range(8)}), "that is the whole new piece, everywhere"),
    ],
}

# prediction: (the truth, by hand; [(wrong guess, what the reading must say)])
GUESSES = {
    ex02.first_cut: (  # 4 / 2 rows, 8 / 4 columns; row 2 in the second half, column 5 in the third pair: 4 + 2
        {"rows": 2, "columns": 2, "device of [2, 5]": 6},
        [
            ((1, 4, None), "four ways"),
            ((4, None, None), "rows: your guess, 4, should be 2: nothing would be cut"),
            ((3, 5, None), "deals 8 columns out to 4 devices"),
            ((2, 2, 5), "device of [2, 5]: your guess, 5, should be 6: the devices count row by row"),
            ((2, 2, 7), "the third is number 2"),
            ((2, 2, 2), "second mesh row"),
            ((2, 2, 10), "that would be x = 2"),
            ((2, 2, 3), "find x from the row"),
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
            ((2, 4, 5), "that is the device; the rows have"),
            ((2, 4, 4), "which half is dealt out to the second mesh row?"),
        ],
    ),
    ex02.tuple_order: (  # halves of four, and their fourth column; pairs, and the second column of the second pair: 4 + 1
        {"x, then y": 3, "y, then x": 5},
        [
            ((5, 3), "that is under ('y', 'x')"),
            ((1, 1), "device 1 has x = 0"),
            ((3, 6), "columns count from 0"),
            ((4, 2), "'y' each half in single columns"),
            ((3, 7), "'x' deals out each pair"),
        ],
    ),
    ex02.bytes_held: (  # 2,097,152 over 4, over 8; 1024 / 8 examples
        {"P('batch')": 524_288, "P(('batch', 'features'))": 262_144, "whole examples": 128},
        [
            ((2_097_152, 2_097_152, 1024), "whole array"),
            ((1_048_576, 524_288, 256), "has 4 devices, not 2"),
            ((262_144, 1_048_576, 512), "its own name does not matter"),
            ((131_072, 65_536, 0), "takes 4 bytes"),
            ((None, None, 0), "is not cut"),
            ((None, None, 100), "dealt out eight ways"),
        ],
    ),
    ex02.other_mesh: (  # 0 2 4 6 / 1 3 5 7: x = 1, y = 2 is 5; device 4 at y = 2 has the third pair of columns
        {"device of [2, 5]": 5, "first column on device 4": 4},
        [
            ((6, 0), "other mesh"),
            ((7, 6), "begins with 0"),
            ((4, 2), "first mesh row"),
            ((1, 7), "the mesh rows are 0 2 4 6 and 1 3 5 7"),
        ],
    ),
    ex02.ten_over_four: ("refuses", [("pads", "rows that you gave it"), ("uneven", "one shape")]),
    ex02.padded_mean: (
        11.25,
        [(13.5, "divided by twelve"), (16.2, "the sum stays"), (12, "by how many rows is that divided?")],
    ),
    ex02.made_in_place: (
        {"result": 262_144, "temporary": 0},
        [((2_097_152, 8), "whole"), ((262_144, 1), "its own piece"), ((524_288, 0), "both mesh axes cut")],
    ),
    ex02.callback_calls: (
        {"P('x')": 8, "P()": 1},
        [((2, 1), "which pieces are the same"), ((8, 8), "case of its own"), ((4, 2), "every device gets it")],
    ),
    ex02.idle_receivers: (
        2,
        [(8, "not in place"), (0, "needs column 0"), (4, "in turn"), (1, "each end"), (6, "how many receive nothing?")],
    ),
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
    ex02.spec_from_pieces: [
        lambda: P(["c", "a"], None, "b"),
        lambda: P(("c", "a"), None, ("b",)),
        lambda: jax.sharding.PartitionSpec(*[("c", "a"), None, "b"]),
        lambda: NamedSharding(make_mesh((2, 2, 2), ("a", "b", "c")), P(("c", "a"), None, "b")),
        lambda: P(("c", "a"), (), "b"),
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
        rows_and_mask,
        all_in_one_program,
        pads_with_the_mean,
        lambda rows, sharding: np.asarray(ex02.variance_of_rows.function(rows[::-1], sharding)),
        masked(pad=padded_in_front, mask=lambda n, padded: np.arange(padded) >= padded - n),
        by_products,
        shard_by_shard,
        by_a_per_device_program,
    ],
    ex02.read_once: [
        cached,
        piece_by_piece,
        in_the_callback_s_defaults,
        through_an_identity,
        in_a_list,
        in_float32,
        eighths_and_then(by_the_compiled),
    ],
    ex02.arriving_bytes: [
        lambda: dict(zip(range(8), PRICES, strict=True)),
        lambda: (number for number in PRICES),
        counted(tuple(PRICES)),
        counted(np.array(PRICES)),
        by_the_plans,
        lambda: jnp.array(PRICES, float),
        lambda: [360.0, np.float32(720), jnp.int32(720), 360, np.full((), 360), 720.0, 720, 360],
    ],
}

# exercise: [(change of its solution, why it computes the same)]
SAME = {}
