"""Wrong answers to the exercises of notebook 05."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from utils.exercises import ex05


def without_psum(x):
    e = jnp.exp(x - jax.lax.pmax(x.max(), "i"))
    return e / e.sum()


def with_pmean(x):
    e = jnp.exp(x - jax.lax.pmax(x.max(), "i"))
    return e / jax.lax.pmean(e.sum(), "i")


def with_the_parts_largest(x):
    e = jnp.exp(x - x.max())
    return e / jax.lax.psum(e.sum(), "i")


def without_the_largest(x):
    e = jnp.exp(x)
    return e / jax.lax.psum(e.sum(), "i")


def shifted_by(largest):
    def softmax(x):
        e = jnp.exp(x - largest(x))
        return e / jax.lax.psum(e.sum(), "i")

    return softmax


def element_by_element(x):
    e = jnp.exp(x - jax.lax.pmax(x.max(), "i"))
    return e / jax.lax.psum(e, "i")


def gathers_all(x):
    whole = jax.nn.softmax(jax.lax.all_gather(x, "i", tiled=True))
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("i") * len(x), len(x))


def partial_products(x, w):
    mine = jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("i") * 8, 8, axis=1)
    return jax.lax.psum(mine @ w, "i")


SPECS = ex05.mended_specs.function()


def with_pair(i, *pair):
    return lambda: [*SPECS[:i], pair, *SPECS[i + 1 :]]


def smoothing(start, keep=0.5, after=lambda s: s):
    def smooth(series):
        def step(s, value):
            s = keep * s + 0.5 * value
            return s, s

        return after(jax.lax.scan(step, start(series), series)[1])

    return smooth


def delayed(s):
    return jnp.concatenate([jnp.zeros_like(s[:1]), s[:-1]])


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex05.part_of_softmax: [
        (without_psum, "adds up to 8, not to 1: each device divides by the sum of its own part"),
        (jax.nn.softmax, "missing its psum"),
        (with_pmean, "by the mean of the eight sums"),
        (with_the_parts_largest, "All must subtract the same"),
        (without_the_largest, "With 200 added to every score your result is not a number"),
        (
            shifted_by(lambda x: jax.lax.pmean(x.max(), "i")),
            "With 200 added on device 0 alone your result is not a number",
        ),
        (shifted_by(lambda x: jax.lax.psum(x.max(), "i")), "or every one is 0"),
        (element_by_element, "psum of an array adds across devices, element by element"),
        (gathers_all, "Reduce on the device first"),
        (lambda x: jax.nn.softmax(jax.lax.all_gather(x, "i", tiled=True)), "shape (64,); expected (8,)"),
    ],
    ex05.rows_of_product: [
        (lambda x, w: x @ jax.lax.all_gather(w, "i"), "without tiled=True stacks the slices"),
        (lambda x, w: x @ w, "the device lacks the other slices"),
        (lambda x, w: x @ jax.lax.psum(w, "i"), "the device lacks the other slices"),
        (lambda x, w: x @ jax.lax.all_gather(w, "i", axis=1, tiled=True), "side by side, (8, 128)"),
        (lambda x, w: x[:, :8] @ w, "You use 8 of the 64 columns"),
        (partial_products, "psum adds up partial products of different rows"),
        (
            lambda x, w: jax.lax.all_gather(x, "i", tiled=True) @ jax.lax.all_gather(w, "i", tiled=True),
            "shape (32, 16); expected (4, 16)",
        ),
    ],
    ex05.mended_specs: [
        (with_pair(0, P("i"), P("i")), "column_sums: JAX still refuses: was given argument arrays with axis sizes"),
        (with_pair(0, P(), P()), "column_sums: under in_specs=P() every device gets the whole"),
        (
            with_pair(1, P("i", None), P("i")),
            "double: JAX still refuses: was given an in_specs entry which is too long",
        ),
        (with_pair(2, P(), P()), "the psum of eight whole sums is 3,968, 8 times too large"),
        (with_pair(2, P("i"), P("i")), "total_of: JAX still refuses: was given an out_specs entry which is too long"),
        (with_pair(3, P("i"), P()), "relative: JAX still refuses: was given out_specs which require replication"),
        (with_pair(3, P(), P()), "relative: under in_specs=P()"),
        (lambda: P("i"), "expected a list of four pairs"),
        (with_pair(1, "i", "i"), "expected two PartitionSpecs"),
    ],
    ex05.smooth: [
        (smoothing(lambda series: 0.0), "Give the start the type that it will have"),
        (smoothing(lambda series: jnp.zeros(())), "Give the start the type that it will have"),
        (smoothing(lambda series: series[0]), "your carry starts at the first value"),
        (smoothing(lambda series: jnp.zeros_like(series[0]), keep=1.0), "half of the running sums"),
        (smoothing(lambda series: jnp.zeros_like(series[0]), after=lambda s: 2 * s), "the value is to be halved, too"),
        (smoothing(lambda series: jnp.zeros_like(series[0]), after=delayed), "to give the new s as its output"),
        (
            smoothing(lambda series: jnp.zeros_like(series[0]), after=lambda s: jax.lax.pmean(s, "i")),
            "Each has its own; no collective is needed",
        ),
    ],
}
