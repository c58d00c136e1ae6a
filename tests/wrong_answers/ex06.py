"""Wrong answers to the exercises of notebook 06."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from utils.exercises import ex06
from utils.exercises.ex06 import old_step

SPECS = (P(), P(), P("data"), P("data"))


def by_pmap(step=old_step, **axes):
    def port(w, mean, x, y, mesh=None):
        return jax.pmap(step, axis_name="data", **axes)(w, mean, x.reshape(8, -1, 4), y.reshape(8, -1))

    return port


def by_shard_map(step, **options):
    def port(w, mean, x, y, mesh=None):
        mesh = mesh or ex06._mesh()
        return jax.shard_map(step, mesh=mesh, in_specs=SPECS, out_specs=P(), **options)(w, mean, x, y)

    return port


def stacked(w, mean, x, y):
    copies = (jnp.stack([v] * 8) for v in (w, mean))
    step = jax.pmap(old_step, axis_name="data", out_axes=None)
    return step(*copies, x.reshape(8, -1, 4), y.reshape(8, -1))


def kept_first(w, mean, x, y):
    w, mean = by_pmap(in_axes=(None, None, 0, 0))(w, mean, x, y)
    return w[0], mean[0]


def uncut(w, mean, x, y, mesh):
    return jax.shard_map(old_step, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(w, mean, x, y)


def error(w, x, y):
    return ((x @ w - y) ** 2).mean()


def nobody_averages(w, mean, x, y):
    return w - 0.1 * jax.grad(error)(w, x, y), 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")


def own_mean(w, mean, x, y):
    return w - 0.1 * jax.lax.pmean(jax.grad(error)(w, x, y), "data"), 0.9 * mean + 0.1 * x.mean(axis=0)


def summed(w, mean, x, y):
    return w - 0.1 * jax.lax.psum(jax.grad(error)(w, x, y), "data"), old_step(w, mean, x, y)[1]


def plain(w, mean, x, y):
    return w - 0.1 * jax.grad(error)(w, x, y), 0.9 * mean + 0.1 * x.mean(axis=0)


def sum_of_errors(w, mean, x, y):
    return w - 0.1 * jax.grad(lambda w: ((x @ w - y) ** 2).sum() / 8)(w), 0.9 * mean + 0.1 * x.mean(axis=0)


def loss_averaged(w, mean, x, y):
    grad = jax.grad(lambda w: jax.lax.pmean(error(w, x, y), "data"))(w)
    return w - 0.1 * grad, 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")


def keep(key, units, scale=2):
    return jnp.where(jax.random.bernoulli(key, 0.5, units.shape), scale * units, 0)


def folded(key, units):
    return keep(jax.random.fold_in(key, jax.lax.axis_index("data")), units, scale=1)


def one_mask(key, units):
    key = jax.random.fold_in(key, jax.lax.axis_index("data"))
    return jnp.where(jax.random.bernoulli(key, 0.5, units.shape[1:]), 2 * units, 0)


def own_key(key, units):
    return keep(jax.random.fold_in(key, jax.lax.axis_index("data")), units)


def by_row(number):
    """Drop with a key for each row, whose number is made of the rows here and of those before."""

    def drop(key, units):
        rows = units.shape[0]
        numbers = number(jnp.arange(rows), rows, jax.lax.axis_index("data"))
        return jax.vmap(keep)(jax.vmap(lambda n: jax.random.fold_in(key, n))(numbers), units)

    return drop


def number_as_key(key, units):
    return keep(jax.random.key(jax.lax.axis_index("data")), units)


def split_key(key, units):
    return keep(jax.random.split(key, 8)[0], units)


def psum(value):
    return jax.lax.psum(value, "data")


def pmean(value):
    return jax.lax.pmean(value, "data")


def parameters(sizes):
    return sum(a * b + b for a, b in pairwise(sizes))


ring = {"in_axes": (None, None, 0, 0), "out_axes": None}

# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex06.port_1: [
        (by_pmap(in_axes=(None, None, 0, 0)), "still eight copies"),
        (by_pmap(), "without an axis for the devices"),
        (by_pmap(nobody_averages, **ring), "device 0's examples alone. Nobody averaged"),
        (by_pmap(own_mean, **ring), "your mean is that of device 0's examples alone"),
        (by_pmap(summed, **ring), "8 times as far"),
        (plain, "no pmap made them"),
        (stacked, "still has eight copies"),
        (kept_first, "still has eight copies"),
        (by_shard_map(old_step, check_vma=False), "no pmap made them"),
        (lambda w, mean, x, y: w, "expected two arrays"),
    ],
    ex06.port_2: [
        (by_shard_map(old_step), "8 times as far as it should"),
        (by_shard_map(nobody_averages, check_vma=False), "device 0's examples alone. Nobody averaged"),
        (by_shard_map(loss_averaged), "under the default check"),
        (by_pmap(**ring), "and pmap made them"),
        (by_shard_map(summed, check_vma=False), "8 times as far"),
        (uncut, "every device worked on all 64 examples"),
        (lambda w, mean, x, y, mesh: plain(w, mean, x, y), "no shard_map made them"),
    ],
    ex06.port_3: [
        (by_shard_map(old_step), "8 times as far as it should"),
        (by_shard_map(summed), "64 times as far"),
        (by_shard_map(nobody_averages), "8 times as far as it should"),
        (by_shard_map(old_step, check_vma=False), "This step turns the check on"),
        (by_shard_map(plain), "still differs from device to device"),
    ],
    ex06.port_4: [
        (jax.jit(old_step), "no axis to average over"),
        (by_shard_map(loss_averaged), "This step leaves the devices to jit"),
        (jax.jit(sum_of_errors), "8 times as far"),
        (by_pmap(**ring), "pmap made them"),
    ],
    ex06.drop_units: [
        (keep, "Several devices drop the same units"),
        (split_key, "Several devices drop the same units"),
        (one_mask, "Examples of one device drop the same units"),
        (folded, "expected 2 times, so that the sum stays"),
        (number_as_key, "Two keys drop the same units"),
        (lambda key, units: 2 * units, "You keep 1.00 of the units"),
        (lambda key, units: units.sum(), "expected the units of one device, (4, 64)"),
        (own_key, "On 4 devices, example 4 of the batch loses other units than on 8"),
        (by_row(lambda row, rows, device: row), "Several devices drop the same units"),
        (by_row(lambda row, rows, device: 4 * device + row), "On 4 devices, example 8 of the batch loses other units"),
        (by_row(lambda row, rows, device: 100 * device + row), "What number does an example keep"),
    ],
    ex06.padded_accuracy: [
        (lambda right, weights: pmean((right * weights).sum() / weights.sum()), "A mean of the devices' means"),
        (
            lambda right, weights: pmean((right * weights).sum() / jnp.maximum(weights.sum(), 1)),
            "A mean of the devices' means",
        ),
        (lambda right, weights: pmean(right.mean()), "the padding is counted, as examples and as right ones"),
        (lambda right, weights: psum(right.sum()) / psum(weights.sum()), "Multiply by the weights first"),
        (lambda right, weights: psum((right * weights).sum()) / 16, "counted as wrong answers"),
        (lambda right, weights: (right * weights).sum() / weights.sum(), "Device 7 says nan"),
        (
            lambda right, weights: (right * weights).sum() / jnp.maximum(weights.sum(), 1),
            "each counted its own examples",
        ),
        (lambda right, weights: psum((right * weights).sum()) / pmean(weights.sum()), "larger than 1"),
        (lambda right, weights: psum((right * weights.min()).sum()) / psum(2 * weights.min()), "no partner is dropped"),
        (lambda right, weights: right * weights, "expected one number"),
    ],
    ex06.bytes_per_step: [
        (lambda sizes, n: 4 * parameters(sizes), "that is the size of the gradient"),
        (lambda sizes, n: 8 * parameters(sizes), "no device sends to itself"),
        (lambda sizes, n: (n - 1) / n * 4 * parameters(sizes), "half of an all-reduce"),
        (lambda sizes, n: 2 * (n - 1) / n * parameters(sizes), "A float32 takes 4 bytes"),
        (lambda sizes, n: 2 * (n - 1) * 4 * parameters(sizes), "what all the devices send together"),
        (
            lambda sizes, n: 2 * (n - 1) / n * 4 * sum(a * b for a, b in pairwise(sizes)),
            "the biases are missing",
        ),
        (lambda sizes, n: 409_094, "For sizes (64, 32, 10) on 4 devices"),
    ],
    ex06.smallest_batch: [
        (lambda flops, wire, n: 2 * (n - 1) / n * 4 / wire * flops / 2, "That is the forward pass"),
        (lambda flops, wire, n: 2 * 4 / wire * flops / 6, "no device sends to itself"),
        (lambda flops, wire, n: (n - 1) / n * 4 / wire * flops / 6, "half of an all-reduce"),
        (lambda flops, wire, n: 2 * (n - 1) / n / wire * flops / 6, "A float32 has 4"),
        (lambda flops, wire, n: 2 * (n - 1) / n * 4 / wire * flops / 6 * n, "that is the whole batch"),
        (lambda flops, wire, n: 2 * (n - 1) / n * 32 / wire * flops / 6, "you count bits"),
        (lambda flops, wire, n: 6 / flops / (2 * (n - 1) / n * 4 / wire), "that is the inverse"),
    ],
}
