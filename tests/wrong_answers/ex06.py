"""Wrong answers to the exercises of notebook 06, right ones in unusual forms, and wrong guesses at its predictions."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import shard_map as imported_shard_map
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import ex06
from utils.exercises.ex06 import old_step, pmap

WHOLE = P()
SPECS = (WHOLE, WHOLE, P("data"), P("data"))
RING = {"in_axes": (None, None, 0, 0), "out_axes": None}


def psum(value):
    return jax.lax.psum(value, "data")


def pmean(value):
    return jax.lax.pmean(value, "data")


# --- the ports: one device's step, and who runs it


def error(w, x, y):
    return ((x @ w - y) ** 2).mean()


def step_of(average=pmean, grad=None, rate=0.1, mean=pmean, old=0.9, new=0.1):
    """A device's step: w moves by the `average` of its gradient `grad(w, x, y)`, the mean by the `mean` of its own."""

    def step(w, running, x, y):
        found = average((grad or jax.grad(error))(w, x, y))
        return w - rate * found, old * running + new * mean(x.mean(axis=0))

    return step


def own(value):
    return value


def loss_averaged(w, x, y):
    return jax.grad(lambda w: pmean(error(w, x, y)))(w)


def gathered(w, mean, x, y):  # each device has its part, and fetches the others'
    x, y = (jax.lax.all_gather(v, "data", tiled=True) for v in (x, y))
    return step_of()(w, mean, x, y)


plain = step_of(own, mean=own)


def by_pmap(step=old_step, devices=8, **axes):
    def port(w, mean, x, y, mesh=None):
        return pmap(step, axis_name="data", **axes)(w, mean, x.reshape(devices, -1, 4), y.reshape(devices, -1, 3))

    return port


def by_shard_map(step, specs=SPECS, out=WHOLE, shard_map=jax.shard_map, jit=jax.jit, **options):
    def port(w, mean, x, y, mesh=None):
        mesh = mesh or ex06._mesh()
        return jit(shard_map(step, mesh=mesh, in_specs=specs, out_specs=out, **options))(w, mean, x, y)

    return port


off = functools.partial(by_shard_map, check_vma=False)


def stacked(w, mean, x, y):
    copies = (jnp.stack([v] * 8) for v in (w, mean))
    return by_pmap(out_axes=None)(*copies, x, y)


def kept_first(w, mean, x, y):
    w, mean = by_pmap(in_axes=(None, None, 0, 0))(w, mean, x, y)
    return w[0], mean[0]


def everything_everywhere(w, mean, x, y):
    copies = jnp.stack([x] * 8), jnp.stack([y] * 8)
    return pmap(old_step, axis_name="data", **RING)(w, mean, *copies)


def columns_first(w, mean, x, y):
    return pmap(old_step, axis_name="data", **RING)(w, mean, x.reshape(8, 4, 5), y.reshape(8, 5, 3))


def dealt_apart(x_axis=1, y_axis=0):  # one of the two in blocks of five rows, of the other every eighth
    def port(w, mean, x, y):
        x, y = (a.reshape((5, 8, -1) if axis else (8, 5, -1)) for a, axis in ((x, x_axis), (y, y_axis)))
        return pmap(old_step, axis_name="data", in_axes=(None, None, x_axis, y_axis), out_axes=None)(w, mean, x, y)

    return port


def split_first(w, mean, x, y, mesh):  # as for pmap
    return off(old_step)(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3), mesh)


def stacked_first(w, mean, x, y, mesh):  # as for pmap
    return off(old_step, P("data"))(jnp.stack([w] * 8), jnp.stack([mean] * 8), x, y, mesh)


def loss_summed(w, x, y):
    return jax.grad(lambda w: psum(error(w, x, y)))(w)


def to_device_0(*arrays):
    return jax.jit(plain)(*jax.device_put(arrays, ex06._mesh().devices.flat[0]))


def copied_everywhere(w, mean, x, y):
    return jax.jit(plain)(w, mean, *jax.device_put((x, y), NamedSharding(ex06._mesh(), P())))


def copied_inside(w, mean, x, y):
    @jax.jit
    def step(w, mean, x, y):
        x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(ex06._mesh(), P()))
        return jax.lax.with_sharding_constraint(plain(w, mean, x, y), NamedSharding(ex06._mesh(), P()))

    return step(w, mean, x, y)


def under_vmap(w, mean, x, y):
    return jax.vmap(old_step, axis_name="data", **RING)(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))


def mean_of_copies(w, mean, x, y):
    return tuple(copies.mean(axis=0) for copies in by_pmap(in_axes=(None, None, 0, 0))(w, mean, x, y))


def summed(axes):  # over these axes, where the mean is asked
    return jax.grad(lambda w, x, y: ((x @ w - y) ** 2).sum(axes).mean())


# --- right ports, in unusual forms


def dealt_out(w, mean, x, y):  # device i gets rows i, 8 + i, 16 + i ...
    axes = {"in_axes": (None, None, 1, 1), "out_axes": None}
    return jax.pmap(old_step, axis_name="data", **axes)(w, mean, x.reshape(5, 8, 4), y.reshape(5, 8, 3))


def closed_over(w, mean, x, y):
    step = pmap(lambda x, y: old_step(w, mean, x, y), axis_name="data", out_axes=None)
    return step(x.reshape(8, 5, 4), y.reshape(8, 5, 3))


def in_pairs(w, mean, x, y):
    step = pmap(lambda state, batch: old_step(*state, *batch), axis_name="data", in_axes=(None, 0), out_axes=None)
    return step((w, mean), (jnp.array(jnp.split(x, 8)), jnp.array(jnp.split(y, 8))))


def by_rows_of_one_table(w, mean, x, y):
    step = pmap(
        lambda w, mean, rows: old_step(w, mean, rows[:, :4], rows[:, 4:]),
        axis_name="data",
        in_axes=(None, None, 0),
        out_axes=None,
    )
    return step(w, mean, jnp.concatenate([x, y], axis=1).reshape(8, 5, 7))


def numpy_split(w, mean, x, y):
    step = functools.partial(pmap, axis_name="data", **RING)(lambda *a: old_step(*a))
    return step(w, mean, np.asarray(x).reshape(8, 5, 4), np.stack(np.split(np.asarray(y), 8)))


def stack_of_slices(w, mean, x, y):
    parts = jnp.stack([x[5 * i : 5 * i + 5] for i in range(8)])
    return pmap(old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=(None, None))(
        w, mean, parts, y.reshape(8, 5, 3)
    )


def within_set_mesh(w, mean, x, y, mesh):
    with jax.set_mesh(mesh):
        return jax.jit(jax.shard_map(old_step, in_specs=SPECS, out_specs=P(), check_vma=False))(w, mean, x, y)


def prints(w, mean, x, y, mesh):
    got = off(old_step)(w, mean, x, y, mesh)
    print("moved to", float(got[0][0, 0]))
    return list(got)


def own_copy(w, mean, x, y, mesh):
    from utils.compat import varying

    return by_shard_map(step_of(grad=lambda w, x, y: jax.grad(error)(varying(w, "data"), x, y)))(w, mean, x, y, mesh)


def divides(w, mean, x, y, mesh):
    return by_shard_map(step_of(lambda g: g / jax.lax.axis_size("data"), mean=lambda m: psum(m) / 8))(
        w, mean, x, y, mesh
    )


def from_outside(w, mean, x, y, mesh):
    @jax.jit
    def step(w, mean, x, y):
        specs = SPECS[:1] + SPECS[2:]
        loss = jax.shard_map(lambda w, x, y: pmean(error(w, x, y)), mesh=mesh, in_specs=specs, out_specs=P())
        every = jax.shard_map(lambda x: pmean(x.mean(axis=0)), mesh=mesh, in_specs=P("data"), out_specs=P())
        return w - 0.1 * jax.grad(loss)(w, x, y), 0.9 * mean + 0.1 * every(x)

    return step(w, mean, x, y)


def by_hand(w, mean, x, y):  # no grad at all, sums instead of means
    @jax.jit
    def step(w, mean, x, y):
        return w - x.T @ (x @ w - y) / 600, mean * 0.9 + x.sum(axis=0) / 400

    return step(w, mean, x, y)


def out_shardings(w, mean, x, y):
    whole = NamedSharding(x.sharding.mesh, P())
    return jax.jit(plain, out_shardings=(whole, whole))(w, mean, x, y)


def axis_of_one(w, mean, x, y):  # the old step, with an axis of one "device" that holds all examples
    step = jax.vmap(old_step, in_axes=(None, None, 0, 0), out_axes=None, axis_name="data", axis_size=1)
    return jax.jit(lambda w, mean, x, y: step(w, mean, x[None], y[None]))(w, mean, x, y)


def sums_of_each_device(w, mean, x, y):  # a vmap over eight parts, which jit leaves where they are
    parts = jax.vmap(plain, in_axes=(None, None, 0, 0))(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))
    return jax.tree.map(lambda part: part.mean(axis=0), parts)


def two_programs(w, mean, x, y):
    new_w = jax.jit(lambda w, x, y: w - 0.1 * jax.grad(error)(w, x, y))(w, x, y)
    return new_w, jax.jit(lambda mean, x: 0.9 * mean + 0.1 * x.mean(axis=0))(mean, x)


def gradients_by_hand(w, mean, x, y):
    return w - 0.1 * psum(2 * x.T @ (x @ w - y)) / 120, 0.9 * mean + 0.1 * psum(x.sum(axis=0)) / 40


# --- dropout


def keep(key, units, scale=2):
    return jnp.where(jax.random.bernoulli(key, 0.5, units.shape), scale * units, 0)


def own_key(key):
    return jax.random.fold_in(key, jax.lax.axis_index("data"))


def one_mask(key, units):
    return jnp.where(jax.random.bernoulli(own_key(key), 0.5, units.shape[1:]), 2 * units, 0)


def by_row(number):
    """Drop with a key for each row, whose number is made of the rows here and of those before."""

    def drop(key, units):
        rows = units.shape[0]
        numbers = number(jnp.arange(rows), rows, jax.lax.axis_index("data"))
        return jax.vmap(keep)(jax.vmap(lambda n: jax.random.fold_in(key, n))(numbers), units)

    return drop


def of_all_rows(step):
    """One mask for the whole batch, of which each device takes its rows: `step` after those of the device before."""

    def drop(key, units):
        rows, n = units.shape[0], jax.lax.axis_size("data")
        mask = jax.random.bernoulli(key, 0.5, (n * rows, units.shape[1]))
        here = jax.lax.dynamic_slice_in_dim(mask, step(rows) * jax.lax.axis_index("data"), rows)
        return units * here * 2

    return drop


def numpy_mask(key, units):
    return jnp.where(np.random.default_rng(0).random(units.shape) < 0.5, 2 * units, 0)


def split_keys(key, units):
    rows = units.shape[0]
    keys = jax.random.split(key, rows * jax.lax.axis_size("data")).reshape(-1, rows)[jax.lax.axis_index("data")]
    return jax.vmap(keep)(keys, units)


def each_row(drop):
    """Drop by `drop(key of the example, its units)`, the key made of its number in the whole batch."""

    def drop_units(key, units):
        numbers = units.shape[0] * jax.lax.axis_index("data") + jnp.arange(units.shape[0])
        return jax.vmap(lambda number, row: drop(jax.random.fold_in(key, number), row))(numbers, units)

    return drop_units


def half_exactly(key, row):
    return row * jax.random.permutation(key, jnp.repeat(jnp.array([0.0, 2.0]), 32))


def by_uniform(key, row):
    return jnp.where(jax.random.uniform(key, row.shape) < 0.5, 0, row / 0.5)


def in_a_loop(key, units):
    first = units.shape[0] * jax.lax.axis_index("data")
    return jnp.stack([keep(jax.random.fold_in(key, first + i), row) for i, row in enumerate(units)])


def whole_examples(key, row):
    return jnp.where(jax.random.bernoulli(key), 2 * row, 0)


# --- the share of each digit


def counted(values, labels):
    return jnp.zeros(10).at[labels].add(values)


def shares(hits=lambda right, weights: right * weights, of=lambda weights: weights, up=psum, down=psum):
    def digit_accuracy(right, labels, weights):
        return up(counted(hits(right, weights), labels)) / down(counted(of(weights), labels))

    return digit_accuracy


def own_shares(right, labels, weights):
    return counted(right * weights, labels) / jnp.maximum(counted(weights, labels), 1)


def by_one_hot(right, labels, weights):
    hot = (labels[:, None] == jnp.arange(10)) * weights[:, None]
    hits, real = jax.lax.psum((right @ hot, hot.sum(axis=0)), "data")
    return hits / real


def by_gathering(right, labels, weights):
    right, labels, weights = (jax.lax.all_gather(v, "data", tiled=True) for v in (right, labels, weights))
    of_each = labels == jnp.arange(10)[:, None]
    return (of_each * right * weights).sum(axis=1) / (of_each * weights).sum(axis=1)


def by_segments(right, labels, weights):
    sums = [jax.ops.segment_sum(v, labels, num_segments=10) for v in (weights * right, weights)]
    hits, real = map(pmean, sums)  # the n drops out
    return hits / real


def digit_by_digit(right, labels, weights):
    def share(digit):
        own = weights * (labels == digit)
        return psum((right * own).sum()) / psum(own.sum())

    return jnp.stack([share(digit) for digit in range(10)])


def by_one_array_of_twenty(right, labels, weights):
    sums = psum(jnp.zeros(20).at[labels].add(right * weights).at[labels + 10].add(weights))
    return sums[:10] / sums[10:]


def by_wrong_ones(right, labels, weights):
    return 1 - psum(counted((1 - right) * weights, labels)) / psum(counted(weights, labels))


# --- bytes, devices


def bytes_of(count=lambda a, b: a * b + b, first=0, factor=None):
    """`count` of a layer, from layer frozen + first on, times `factor(n)`, else what an all-reduce sends."""

    def answer(sizes, n, frozen):
        numbers = sum(count(a, b) for a, b in list(pairwise(sizes))[frozen + first :])
        return (factor(n) if factor else 8 * (n - 1) / n) * numbers

    return answer


def devices_of(work=6, one=1, cost=8):
    return lambda batch, flops, wire: one + work * batch * wire / (cost * flops)


def searched(batch, flops, wire):
    """The first whole number of devices at which sending takes longer."""
    n = 1
    while 8 * (n - 1) / n / wire < 6 * batch / n / flops:
        n += 1
    return n


# --- clipping


def clipped(squares, scale=lambda limit, norm: jnp.minimum(1, limit / norm)):
    def clip(gw, gb, limit):
        factor = scale(limit, jnp.sqrt(squares((gw**2).sum(), (gb**2).sum())))
        return factor * gw, factor * gb

    return clip


def over(*axes):
    return lambda value: jax.lax.psum(value, axes)


def rightly(w, b):
    return over("model")(w) + b


def each_on_its_own(gw, gb, limit):
    def scale(squares):
        return jnp.minimum(1, limit / jnp.sqrt(squares))

    return scale(over("model")((gw**2).sum())) * gw, scale((gb**2).sum()) * gb


def compares(gw, gb, limit):
    norm = jnp.sqrt(rightly((gw**2).sum(), (gb**2).sum()))
    return (limit / norm * gw, limit / norm * gb) if norm > limit else (gw, gb)


def by_norm(norm):
    """Clip by `norm(gw, gb)`."""

    def clip(gw, gb, limit):
        scale = jnp.minimum(1, limit / norm(gw, gb))
        return scale * gw, scale * gb

    return clip


def size(g):
    return jnp.sqrt((g**2).sum())


def takes_float(gw, gb, limit):
    return min(1.0, limit / float(size(gw))) * gw, gb


def by_cond(gw, gb, limit):
    norm = jnp.sqrt(rightly((gw**2).sum(), (gb**2).sum()))
    return jax.lax.cond(norm > limit, lambda *g: tuple(limit / norm * v for v in g), lambda *g: g, gw, gb)


def by_leaves(gw, gb, limit):
    norm = jnp.linalg.norm(jnp.append(jax.lax.all_gather(gw, "model").ravel(), gb))
    return [jnp.where(norm > limit, g * (limit / norm), g) for g in (gw, gb)]


def by_all_axes(gw, gb, limit):  # the copies along data, and those of gb along model, counted and divided out
    data, model = (jax.lax.axis_size(name) for name in ("data", "model"))
    squares = jax.lax.psum((gw**2).sum() + (gb**2).sum() / model, ("data", "model")) / data
    return jax.tree.map(lambda g: g / jnp.maximum(1, jnp.sqrt(squares) / limit), (gw, gb))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex06.port_1: [
        (by_pmap(in_axes=(None, None, 0, 0)), "still eight copies"),
        (by_pmap(), "w and mean have no axis for the devices"),
        (
            by_pmap(step_of(own), **RING),
            "device 0's examples alone. Nobody averaged the gradients. A mean of the losses",
        ),
        (by_pmap(step_of(own, loss_averaged), **RING), "A mean of the losses inside grad does not do it here"),
        (by_pmap(step_of(mean=own), **RING), "your mean is that of device 0's examples alone"),
        (by_pmap(step_of(psum), **RING), "8 times as far"),
        (by_pmap(step_of(mean=psum), **RING), "what is new counts 8 times"),
        (by_pmap(step_of(rate=-0.1), **RING), "moved uphill"),
        (by_pmap(step_of(rate=1), **RING), "the rate, 0.1, is missing"),
        (by_pmap(step_of(rate=0.05), **RING), "Your w moved 0.5 times as far as it should"),
        (by_pmap(step_of(old=0.1, new=0.9), **RING), "0.9 and 0.1 the other way round"),
        (by_pmap(lambda *a: old_step(*a)[::-1], **RING), "in the other order"),
        (by_pmap(devices=4, **RING), "4 devices made them; you have 8"),
        (everything_everywhere, "every device worked on all 40 examples: 1,920 FLOPs"),
        (by_pmap(gathered, **RING), "every device worked on all 40 examples"),
        (columns_first, "On a device x should have its own 5 examples, each whole: (5, 4)"),
        (plain, "no pmap made them"),
        (stacked, "still has eight copies"),
        (kept_first, "still has eight copies"),
        (off(old_step), "no pmap made them"),
        (lambda w, mean, x, y: w, "expected two arrays"),
        (under_vmap, "no pmap made them"),
        (mean_of_copies, "still has eight copies"),
        (by_pmap(step_of(mean=own), **RING), "your mean is that of device 0's examples alone"),
        (by_pmap(step_of(rate=-0.1), **RING), "moved uphill"),
        (by_pmap(step_of(rate=1), **RING), "the rate, 0.1, is missing"),
        (by_pmap(step_of(rate=0.2), **RING), "moved 2 times as far as it should."),
        (by_pmap(step_of(grad=summed(1)), **RING), "the mean is that of all the numbers, 3 in each row of y"),
        (by_pmap(step_of(grad=summed((0, 1))), **RING), "a sum over a device's 5 x 3 numbers"),
        (by_pmap(step_of(grad=lambda w, x, y: 0 * w), **RING), "moved nowhere"),
        (by_pmap(in_axes=(None, None, 0, 0), out_axes=(None, 0)), "Your mean has shape (8, 4): still eight copies"),
        (lambda *args: by_pmap(**RING)(*args)[::-1], "You return the two in the other order"),
        (lambda *args: pmap(old_step, axis_name="data", **RING)(*args), "what has to be split?"),
        (dealt_apart(), "you split the two in different ways"),
        (dealt_apart(0, 1), "you split the two in different ways"),
    ],
    ex06.port_2: [
        (by_shard_map(old_step), "8 times as far as it should"),
        (off(step_of(own)), "Nobody averaged the gradients"),
        (off(step_of(own, loss_averaged)), "A mean of the losses inside grad does not do it here"),
        (off(step_of(mean=psum)), "what is new counts 8 times"),
        (off(step_of(psum)), "8 times as far"),
        (by_shard_map(step_of(own, loss_averaged)), "under the default check"),
        (by_pmap(**RING), "You use pmap, or a shard_map of blocks with pmap's axis of eight"),
        (by_shard_map(old_step), "another than under check_vma=False"),
        (
            by_shard_map(old_step, tuple(P(*(["i"] * bool(s))) for s in SPECS), check_vma=False),
            "one axis, called 'data'",
        ),
        (off(old_step, out=(P(), P("data"))), "Your mean has shape (32,): eight copies"),
        (off(step_of(mean=own)), "your mean is that of device 0's examples alone"),
        (lambda *args: filter(None, args), "You return a filter"),
        (lambda *args: (filter(None, args), args[1]), "Your w is a filter"),
        (lambda *args: jax.tree.map(np.asarray, off(old_step)(*args)), "of NumPy; expected a jax.Array"),
        (off(old_step, P()), "every device worked on all 40 examples"),
        (off(old_step, P(), shard_map=imported_shard_map), "every device worked on all 40 examples"),
        (off(gathered), "every device worked on all 40 examples"),
        (off(old_step, out=P("data")), "Your w has shape (32, 3): eight copies, one below the other"),
        (off(old_step, (P(), P(), P(None, "data"), P("data"))), "Which axis of x counts the examples?"),
        (off(old_step, (P(), P(), P("data"), P())), "Which of the two is not cut?"),
        (off(step_of(own, loss_summed)), "a psum inside grad does not average it"),
        (split_first, "Your mean has shape (5, 4): it ran over an axis that is not the examples'"),
        (stacked_first, "Your w has shape (1, 4, 3): a stacked copy"),
        (lambda w, mean, x, y, mesh: jax.jit(plain)(w, mean, x, y), "no shard_map made them"),
    ],
    ex06.port_3: [
        (by_shard_map(old_step), "8 times as far as it should"),
        (by_shard_map(step_of(psum)), "64 times as far"),
        (by_shard_map(step_of(own)), "8 times as far as it should"),
        (by_shard_map(step_of(lambda g: g / 8, loss_averaged)), "an eighth as far"),
        (by_shard_map(step_of(own, loss_averaged, mean=psum)), "what is new counts 8 times"),
        (by_shard_map(step_of(own, loss_averaged, mean=own)), "still differs from device to device"),
        (off(old_step), "This step turns the check on"),
        (by_shard_map(plain), "still differs from device to device"),
        (off(step_of(own, loss_averaged)), "your shard_map has check_vma=False"),
        (by_pmap(step_of(own, loss_averaged), **RING), "You use pmap"),
        (by_shard_map(step_of(own, loss_averaged), out=P("data")), "Your w has shape (32, 3): eight copies"),
        (by_shard_map(step_of(lambda g: g / 64)), "somewhere an 8 is divided by that should not be"),
        (lambda w, mean, x, y, mesh: jax.jit(plain)(w, mean, x, y), "no shard_map made them"),
        (lambda *args: filter(None, args), "You return a filter"),
        (by_shard_map(plain, P(), shard_map=imported_shard_map), "every device worked on all 40 examples"),
    ],
    ex06.port_4: [
        (jax.jit(old_step), "Under jit nothing does: there are no devices in the program"),
        (by_shard_map(step_of(own, loss_averaged)), "shard_map made them. This step leaves the devices to jit"),
        (jax.jit(step_of(own, jax.grad(lambda w, x, y: 8 * error(w, x, y)), mean=own)), "8 times as far"),
        (by_pmap(**RING), "pmap made them"),
        (plain, "each operation ran on its own"),
        (to_device_0, "Your w is right, and lies on cpu:0; expected a copy on every device"),
        (copied_everywhere, "x or y was copied whole to every device first"),
        (copied_inside, "every device worked on all 40 examples"),
        (lambda *args: jax.jit(plain)(*map(np.asarray, args)), "lies on cpu:0; expected a copy on every device"),
        (lambda *args: jax.tree.map(np.asarray, jax.jit(plain)(*args)), "of NumPy; expected a jax.Array"),
        (jax.jit(step_of(lambda g: g / 8, mean=own)), "somewhere an 8 is divided by"),
        (
            lambda *args: jax.jit(plain, in_shardings=NamedSharding(ex06._mesh(), P()))(*args),
            "x and y come laid out; leave them where they are",
        ),
        (jax.jit(step_of(own, mean=lambda m: m / 8)), "your mean counts what is new an eighth"),
        (jax.jit(step_of(own, summed((0, 1)), mean=own)), "a sum over all 40 x 3 numbers"),
        (jax.jit(lambda w, mean, x, y: (w, 0.9 * mean + 0.1 * x.mean(axis=1))), "one for each column"),
        (lambda *args: jax.jit(plain), "expected two arrays: the new w and the new mean"),
        (
            jax.jit(lambda w, mean, x, y: (plain(w, mean, x, y)[0], 0.9 * mean + 0.1 * x.mean())),
            "each of its four columns has a mean of its own",
        ),
    ],
    ex06.drop_units: [
        (keep, "Several devices drop the same units"),
        (one_mask, "Examples of one device drop the same units"),
        (lambda key, units: keep(own_key(key), units, scale=1), "expected 2 times, so that the sum stays"),
        (
            lambda key, units: keep(jax.random.key(jax.lax.axis_index("data")), units),
            "Two keys drop the same units: every step",
        ),
        (numpy_mask, "nothing comes from the key. (NumPy draws once"),
        (lambda key, units: 2 * units, "You keep 1.00 of the units"),
        (lambda key, units: units.sum(), "expected the units of one device, (4, 64)"),
        (
            lambda key, units: keep(own_key(key), units),
            "On 4 devices, example 4 of the batch loses other units than on 8",
        ),
        (
            by_row(lambda row, rows, device: device + row),
            "Examples 1 and 4 of the batch, on devices 0 and 1, drop the same",
        ),
        (by_row(lambda row, rows, device: 4 * device + row), "On 4 devices, example 8 of the batch loses other units"),
        (each_row(whole_examples), "You drop whole examples, all 64 units or none"),
        (
            each_row(lambda key, row: jnp.where(jax.random.bernoulli(key, 0.3), 2 * row, 0)),
            "You drop whole examples, all 64 units or none",
        ),
        (
            lambda key, units: keep(jax.random.split(key, 8)[jax.lax.axis_index("data")], units),
            "On 4 devices, example 4 of the batch loses other units than on 8",
        ),
        (by_row(lambda row, rows, device: 0 * device + row), "Several devices drop the same units"),
        (
            lambda key, units: jax.random.bernoulli(own_key(key), 0.5, units.shape),
            "times what it was; expected 2 times",
        ),
        (lambda key, units: (keep(own_key(key), units), key), "You return a tuple; expected the units"),
        (of_all_rows(lambda rows: rows // 2), "Examples 2 and 4 of the batch, on devices 0 and 1, drop the same units"),
    ],
    ex06.digit_accuracy: [
        (lambda *batch: pmean(own_shares(*batch)), "A mean of the devices' shares"),
        (
            shares(up=own, down=own),
            "each counted its own examples. All of them need the same numbers. (One that has none",
        ),
        (lambda *batch: pmean(shares(up=own, down=own)(*batch)), "And one that has none divides 0 by 0"),
        (own_shares, "each counted its own examples"),
        (lambda *batch: psum(own_shares(*batch)), "The devices' shares are added up"),
        (shares(lambda right, weights: right, jnp.ones_like), "The padding is counted, as examples and as right ones"),
        (shares(lambda right, weights: right), "Multiply by the weights first"),
        (shares(of=jnp.ones_like), "The padding is counted as wrong answers"),
        (shares(lambda right, weights: right - (1 - weights)), "You take the padding for right answers"),
        (lambda right, labels, weights: psum(counted(right * weights, labels)), "That is how many are right"),
        (
            lambda right, labels, weights: psum(counted(right * weights, labels)) / psum(weights.sum()),
            "Divide by those of each digit",
        ),
        (
            lambda right, labels, weights: jnp.full(10, psum((right * weights).sum()) / psum(weights.sum())),
            "the share over all digits",
        ),
        (shares(down=pmean), "One of the two counts runs over the devices"),
        (shares(up=pmean), "One of the two counts runs over the devices"),
        (shares(lambda right, weights: right.mean() * weights), "Which examples did you count"),
        (
            lambda right, labels, weights: psum((right * weights).sum()) / psum(weights.sum()),
            "expected an array of shape (10,)",
        ),
        (lambda *batch: 1 - by_segments(*batch), "the share of wrong answers"),
        (shares(down=lambda own: psum(own) + 1), "one more than there are"),
        (shares(down=lambda own: psum(jnp.maximum(own, 1))), "A device that has none of a digit counts one"),
        (lambda right, labels, weights: psum(counted(weights, labels)), "how many real examples there are of each"),
        (
            lambda *batch: (lambda hits: hits / hits.sum())(psum(counted(batch[0] * batch[2], batch[1]))),
            "Divide by the real",
        ),
        (lambda *batch: 100 * by_segments(*batch), "That is a percentage"),
        (lambda *batch: jnp.floor(by_segments(*batch)), "rounded down to whole numbers"),
        (
            lambda right, labels, weights: by_segments(right, labels, 1.0 * (jnp.arange(len(weights)) < weights.sum())),
            "You take the padding to stand at the end",
        ),
        (
            lambda right, labels, weights: by_segments(right * (labels > 0), labels, weights),
            "Digit 0 loses its real examples",
        ),
        (
            lambda right, labels, weights: by_segments(right, labels, weights * (labels > 0)),
            "Digit 0 loses its real examples",
        ),
        (lambda *batch: [by_segments(*batch)], "You return a list; expected an array of shape (10,)"),
    ],
    ex06.bytes_per_step: [
        (lambda sizes, n, frozen: bytes_of()(sizes, n, 0), "frozen layers have no gradient to send"),
        (
            lambda sizes, n, frozen: bytes_of()(sizes[: len(sizes) - frozen], n, 0),
            "the first layers are frozen, not the last",
        ),
        (lambda sizes, n, frozen: bytes_of()(sizes[-frozen - 1 :], n, 0), "as many layers as are frozen, from the end"),
        (lambda sizes, n, frozen: bytes_of()(sizes[: frozen + 1], n, 0), "those are the frozen layers"),
        (
            lambda sizes, n, frozen: bytes_of(lambda a, b: a * b)(sizes, n, frozen) + 8 * (n - 1) / n * sum(sizes[1:]),
            "the biases of the frozen layers rest, too",
        ),
        (
            lambda sizes, n, frozen: (
                bytes_of(lambda a, b: a * b)(sizes, n, frozen) + 8 * (n - 1) / n * sum(sizes[frozen:])
            ),
            "what goes in first has none",
        ),
        (bytes_of(factor=lambda n: 7), "7/8 is the (n - 1)/n of eight devices"),
        (bytes_of(first=1), "one layer too many is left out"),
        (bytes_of(factor=lambda n: 4), "that is the size of the gradient"),
        (bytes_of(factor=lambda n: 8), "no device sends to itself"),
        (bytes_of(factor=lambda n: 4 * (n - 1) / n), "half of an all-reduce"),
        (bytes_of(factor=lambda n: 2 * (n - 1) / n), "you count numbers"),
        (bytes_of(factor=lambda n: 64 * (n - 1) / n), "you count bits"),
        (bytes_of(factor=lambda n: 16 * (n - 1) / n), "the gradient alone is sent, not the momenta"),
        (bytes_of(factor=lambda n: 8 * (n - 1)), "in each step; a step sends an n-th"),
        (bytes_of(factor=lambda n: 4 * (n - 1)), "every device gets the whole gradient of every other"),
        (bytes_of(factor=lambda n: 8 * (n - 1) / n**2), "you divide by n twice"),
        (bytes_of(lambda a, b: a * b), "the biases are missing"),
        (bytes_of(lambda a, b: a * b + a), "a layer has a bias for each output, not for each input"),
        (bytes_of(lambda a, b: a * b + 1), "a layer has a bias for each output, not one"),
        (
            lambda sizes, n, frozen: 8 * (n - 1) / n * math.prod(sizes),
            "the layers' numbers are added up, not multiplied",
        ),
        (
            bytes_of(lambda a, b: a * b, factor=lambda n: 4 * (n - 1) / n),
            "that is half of an all-reduce, and the biases are missing",
        ),
        (lambda sizes, n, frozen: bytes_of()(sizes, n, max(frozen - 1, 0)), "one frozen layer is counted, too"),
        (bytes_of(lambda a, b: a * b + a + b), "and none for an input"),
        (bytes_of(factor=lambda n: 8 * n / (n - 1)), "(n - 1)/n is upside down"),
        (bytes_of(factor=lambda n: 8 / n), "you count one step of n - 1"),
        (bytes_of(factor=lambda n: 8 * (n - 1)), "all the devices send together"),
        (bytes_of(factor=lambda n: 4 * (n + 1) / n), "look at what each device puts in"),
        (lambda sizes, n, frozen: None, "Does the function end with `return`"),
        (lambda sizes, n, frozen: 292_614, "whatever is handed in"),
    ],
    ex06.most_devices: [
        (devices_of(work=2), "the forward pass"),
        (devices_of(work=4), "the backward pass alone"),
        (devices_of(work=5.4), "those of the small network"),
        (devices_of(work=1), "the 6 FLOPs for each parameter and example are missing"),
        (devices_of(one=0), "the (n - 1)/n of the all-reduce is taken for 1"),
        (devices_of(cost=4), "half of an all-reduce"),
        (devices_of(cost=2), "you count numbers"),
        (devices_of(cost=64), "you count bits"),
        (devices_of(work=1, one=0, cost=1), "solve for n"),
        (lambda batch, flops, wire: 1 + 6 * batch * flops / (8 * wire), "in each other's place"),
        (lambda *case: 1 / devices_of()(*case), "that is upside down"),
        (
            lambda batch, flops, wire: 1 / (1 - 6 * batch * wire / (8 * flops)),
            "a device does not compute the whole batch",
        ),
        (lambda batch, flops, wire: devices_of()(batch, 197e12, 100e9), "by the rates of a TPU v5e"),
        (devices_of(one=-1), "the 1 comes to the other side with a plus"),
        (devices_of(work=3), "a multiplication and an addition each"),
        (devices_of(one=0, cost=7), "7/8 is the (n - 1)/n of eight devices"),
        (lambda *case: 2 * devices_of()(*case), "set 2 (n - 1)/n x 4 / W equal to 6 (batch / n) / F"),
        (lambda batch, flops, wire: 376, "whatever is handed in"),
    ],
    ex06.clip: [
        (clipped(lambda w, b: w + b), "the norm is that of the device's own part"),
        (clipped(lambda w, b: over("model")(w + b)), "gb is added up over 'model'"),
        (
            clipped(lambda w, b: over("data", "model")(w + b)),
            "gw is added up over 'data', and the devices of 'data' hold copies, and gb",
        ),
        (clipped(lambda w, b: over("data", "model")(w) + b), "gw is added up over 'data'"),
        (clipped(lambda w, b: over("data")(rightly(w, b))), "the squares are added up over 'data'"),
        (clipped(lambda w, b: rightly(w, 0)), "gb is not in your norm"),
        (clipped(lambda w, b: b), "gw is not in your norm"),
        (clipped(lambda w, b: jax.lax.pmean(w + b, "model")), "averaged over 'model'"),
        (clipped(lambda w, b: over("model")(jnp.sqrt(w)) ** 2 + b), "the norms of the parts are added up"),
        (clipped(rightly, lambda limit, norm: limit / norm), "longer which is below the limit"),
        (clipped(rightly, lambda limit, norm: jnp.minimum(1, limit / norm**2)), "the root is missing"),
        (clipped(rightly, lambda limit, norm: jnp.minimum(1, norm / limit)), "as it is"),
        (clipped(rightly, lambda limit, norm: 1 / norm), "the limit is missing"),
        (each_on_its_own, "one factor for both"),
        (lambda gw, gb, limit: (jnp.clip(gw, -limit, limit), jnp.clip(gb, -limit, limit)), "so the direction changes"),
        (lambda gw, gb, limit: (gw, gb), "longer than the limit as it is"),
        (compares, "jnp.minimum or jnp.where can compare it"),
        (lambda gw, gb, limit: gw, "expected two arrays"),
        (by_norm(lambda gw, gb: over("model")(size(gw) ** 2) ** 0.5 + size(gb)), "the norms of gw and gb are added up"),
        (by_norm(lambda gw, gb: over("model")(size(gw)) + size(gb)), "the norms of the parts and of gb are added up"),
        (
            by_norm(lambda gw, gb: over("model")(jnp.sqrt(size(gw) ** 2 + size(gb) ** 2))),
            "the norms that the devices of 'model' have are added up",
        ),
        (by_norm(lambda gw, gb: over("model")(abs(gw).sum()) + abs(gb).sum()), "you add up the sizes of the numbers"),
        (
            by_norm(lambda gw, gb: jnp.sqrt(jax.lax.pmax(size(gw) ** 2, "model") + size(gb) ** 2)),
            "you take the largest part of gw",
        ),
        (clipped(lambda w, b: over("data")(w) + b), "its parts lie along 'model'"),
        (clipped(rightly, lambda limit, norm: jnp.maximum(1, limit / norm)), "leaves a gradient longer"),
        (clipped(rightly, lambda limit, norm: jnp.where(norm > limit, norm / limit, 1)), "that is norm / limit"),
        (
            by_norm(lambda gw, gb: jnp.maximum(jax.lax.pmax(abs(gw).max(), "model"), abs(gb).max())),
            "you take the largest number",
        ),
        (
            lambda gw, gb, limit: clipped(rightly)(jax.lax.pmean(gw, "model"), gb, limit),
            "gw is averaged over 'model', where each device has another part of it",
        ),
        (lambda gw, gb, limit: (*clipped(rightly)(gw, gb, limit), limit), "You return a tuple of 3"),
        (takes_float, "Inside the program a norm has no value yet"),
        (lambda gw, gb, limit: clipped(rightly)(gw, gb, limit)[::-1], "expected an array of shape (6, 5), as it came"),
    ],
}

# exercise: right answers as nobody expects them
RIGHT = {
    ex06.port_1: [
        numpy_split,
        stack_of_slices,
        dealt_out,
        closed_over,
        in_pairs,
        by_rows_of_one_table,
        by_pmap(step_of(lambda g: psum(g) / 8, mean=lambda m: psum(m) / jax.lax.axis_size("data")), **RING),
    ],
    ex06.port_2: [
        off(old_step, jit=lambda f: f),
        off(old_step, shard_map=imported_shard_map),
        within_set_mesh,
        prints,
        off(step_of(lambda g: psum(g) / 8)),
        off(gradients_by_hand),
        off(old_step, (P(), P(None), P("data", None), P(("data",))), (P(), P(None))),
    ],
    ex06.port_3: [
        own_copy,
        divides,
        from_outside,
        by_shard_map(gradients_by_hand),
        by_shard_map(step_of(pmean, loss_averaged)),  # a mean of equal numbers is that number
        by_shard_map(step_of(lambda g: pmean(g) / 8)),
    ],
    ex06.port_4: [
        by_hand,
        out_shardings,
        axis_of_one,
        jax.jit(plain),
        jax.jit(sums_of_each_device),
        two_programs,
        lambda *args: jax.jit(plain).lower(*args).compile()(*args),
    ],
    ex06.drop_units: [
        of_all_rows(own),
        split_keys,
        each_row(half_exactly),
        each_row(by_uniform),
        in_a_loop,
        by_row(lambda row, rows, device: 31 - (rows * device + row)),
    ],
    ex06.digit_accuracy: [
        by_one_hot,
        by_gathering,
        by_segments,
        digit_by_digit,
        by_one_array_of_twenty,
        by_wrong_ones,
    ],
    ex06.bytes_per_step: [
        lambda sizes, n, frozen: np.float32(bytes_of()(sizes, n, frozen)),
        lambda sizes, n, frozen: 7 * bytes_of()(sizes, n, frozen) / 7 + 8 * (n - 1) / n,  # and the loss
        lambda sizes, n, frozen: 8 * (n - 1) * sum((a + 1) * b for a, b in pairwise(np.array(sizes)[frozen:])) // n,
        lambda sizes, n, frozen: int(bytes_of()(sizes, n, frozen)),
        lambda sizes, n, frozen: Fraction(8 * (n - 1), n) * sum((a + 1) * b for a, b in pairwise(sizes[frozen:])),
        lambda sizes, n, frozen: sum(
            8 * (n - 1) / n * (sizes[i] + 1) * sizes[i + 1] for i in range(frozen, len(sizes) - 1)
        ),
    ],
    ex06.most_devices: [
        lambda batch, flops, wire: math.floor(devices_of()(batch, flops, wire)),
        lambda batch, flops, wire: jnp.float32(1 + 0.75 * batch * wire / flops),
        searched,
        lambda batch, flops, wire: (8 * flops + 6 * batch * wire) / (8 * flops),
        lambda batch, flops, wire: 1 + Fraction(3 * batch * int(wire), 4 * int(flops)),
    ],
    ex06.clip: [
        by_leaves,
        by_all_axes,
        by_cond,
        clipped(rightly, lambda limit, norm: limit / jnp.maximum(norm, limit)),
        clipped(rightly, lambda limit, norm: jnp.minimum(1, limit / (norm + 1e-6))),
        by_norm(lambda gw, gb: jnp.hypot(size(jax.lax.all_gather(gw, "model", axis=1, tiled=True)), size(gb))),
    ],
}

# exercise: [(change of the solution that computes the same, why)]
UNCOMPILED = "a shard_map is a program of the devices with jit and without"
EVEN = "the square is the same"
SAME = {
    ex06.port_2: [("return jax.jit(step)(w, mean, x, y) -> return step(w, mean, x, y)", UNCOMPILED)],
    ex06.port_3: [
        (
            "return jax.jit(jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P()))(w, mean, x, y) -> "
            "return jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P())(w, mean, x, y)",
            UNCOMPILED,
        ),
        (
            "grad = jax.grad(lambda w: jax.lax.pmean(((x @ w - y) ** 2).mean(), 'data'))(w) -> "
            "grad = jax.grad(lambda w: jax.lax.pmean(((y - x @ w) ** 2).mean(), 'data'))(w)",
            EVEN,
        ),
    ],
    ex06.port_4: [
        (
            "grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w) -> "
            "grad = jax.grad(lambda w: ((y - x @ w) ** 2).mean())(w)",
            EVEN,
        ),
    ],
    ex06.clip: [
        (
            "scale = jnp.minimum(1, limit / jnp.sqrt(squares)) -> scale = jnp.minimum(limit / jnp.sqrt(squares), 1)",
            "the smaller of two, in either order",
        ),
    ],
}

# prediction: (what the cell counts, worked out by hand; [(wrong guess, what it must be told)])
GUESSES = {
    ex06.one_copy: (8, [(1, "out_axes=None checks nothing"), (0, "nothing is refused")]),
    ex06.first_copy: (
        458_752,  # 2 * 7/8 * 4 * 256 * 256
        [
            (0, "its result goes to all eight"),
            (262_144, "that is the size of the array"),
            (1_835_008, "one by one"),
            (229_376, "half of an all-reduce"),
            (524_288, "(n - 1)/n is missing"),
            (114_688, "you count numbers"),
            (65_536, "those are the numbers of one copy"),
            (2_097_152, "the size of all eight copies"),
        ],
    ),
    ex06.silent: (
        2,
        [(0, "eight times a rate of 0.0125"), (1, "there are two"), (3, "this network does not stand that")],
    ),
    ex06.masks: (
        {"one key": 1, "jit": 8},
        [
            ((8, 8), "a key fixes the numbers"),
            ((32, 8), "a key fixes the numbers"),
            ((1, 1), "one program, which draws one mask for all 32 rows"),
            ((1, 32), "there are eight bands"),
        ],
    ),
    ex06.step_bytes: (
        {"right": 409_101, "pasted": 818_195},  # 2 * 7/8 * 4 * 58,442, once and twice, and 7 of the loss
        [
            ((233_768, None), "that is the size of the array"),
            ((467_536, None), "(n - 1)/n is missing"),
            ((102_274, None), "you count numbers"),
            ((204_547, None), "half of an all-reduce"),
            ((3_272_752, None), "all eight send together"),
            ((1_636_376, None), "one by one"),
            ((818_188, None), "you took 8 bytes a number"),
            ((0, None), "has to be averaged"),
            ((409_101, 409_101), "it sums twice"),
        ],
    ),
    ex06.accumulated: (
        {"jit": 4, "by hand": 1, "check on": 5},
        [
            ((1, 1, 5), "each turn of the loop"),
            ((5, 1, 5), "after the loop nothing"),
            ((4, 4, 5), "nothing is sent in the loop"),
            ((4, 1, 1), "arrives summed, in each turn"),
            ((4, 1, 4), "the pmean after the loop is sent, too"),
        ],
    ),
    ex06.chips: (
        1.1163,  # (989.5 / 450) / (197 / 100)
        [
            (5, "you compare one rate alone"),
            (4.5, "you compare one rate alone"),
            (0.2, "you compare one rate alone"),
            (2.5, "two of their four links"),
            (0.6, "do not halve it"),
        ],
    ),
    ex06.meshes: (
        {"8 x 1": 409_101, "4 x 2": 209_794, "2 x 4": 161_004, "1 x 8": 238_336},
        [
            ((467_536, None, None, None), "(n - 1)/n is missing"),
            ((102_274, None, None, None), "you count numbers"),
            ((None, 385_000, None, None), "a device has only its part of the gradients"),
            ((None, 350_659, None, None), "what travels along model is missing"),
            ((None, 175_746, None, None), "what travels along model is missing"),
            ((None, 312_000, None, None), "a device has B / d of the examples"),
            ((None, 193_000, None, None), "backward something is sent, too"),
            ((None, None, 336_000, None), "a device has only its part of the gradients"),
            ((None, None, 58_860, None), "what travels along model is missing"),
            ((None, None, 263_000, None), "a device has B / d of the examples"),
            ((None, None, 112_000, None), "backward something is sent, too"),
            ((None, None, None, 0), "what travels along model is missing"),
            ((None, None, None, 123_648), "backward something is sent, too"),
            ((None, None, None, 409_101), "here no gradient is shared"),
        ],
    ),
}
