"""Wrong answers to the exercises of notebook 03."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.exercises import ex03


def weights_then_cut(key, sharding):
    return jax.device_put(jax.random.normal(key, (64, 128)), sharding)


def weights_from_a_callback(key, sharding):
    return jax.make_array_from_callback(
        (64, 128), sharding, lambda index: np.asarray(jax.random.normal(key, (64, 128)))[index]
    )


def weights_anywhere(key, sharding):
    return jax.jit(lambda key: jax.random.normal(key, (64, 128)))(key)


TABLE = ex03.collectives_of_products.function()


def with_row(i, row):
    return lambda: [*TABLE[:i], row, *TABLE[i + 1 :]]


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex03.price_of_sums: [
        (lambda: (2_048, 3_072), "you let a device put in the whole result"),
        (lambda: (512, 2_048), "An all-reduce sends 2 (n - 1) / n times that"),
        (lambda: (512, 1_536), "a reduce-scatter"),
        (lambda: (128, 768), "A float32 takes 4 bytes"),
        (lambda: (896, 3_584), "you took a group of 8"),
        (lambda: (3_072, 512), "Column sums: you say 3,072, 6 times what is sent"),
        (lambda: 512, "expected two numbers"),
    ],
    ex03.collectives_of_products: [
        (with_row(0, ["all-gather"]), "Who cuts the contraction?"),
        (with_row(1, []), "What does a device hold after its own product?"),
        (with_row(3, []), "What does a device lack before it can multiply?"),
        (with_row(5, ["all-reduce"]), "data parallelism"),
        (with_row(7, []), "7 of 8 rows are right"),
        (with_row(2, ["psum"]), "'psum' is not one of"),
        (lambda: [["all-reduce"]] * 7, "a list of eight lists"),
    ],
    ex03.silent_spec: [
        (lambda: P("batch"), "0.25 of the examples, not an eighth"),
        (lambda: P("batch", "features"), "each dot product is in parts"),
        (lambda: P(), "Which axis of the mesh is idle"),
        (lambda: P("batch", "batch"), "does not fit"),
        (lambda: ("batch", "features"), "expected a PartitionSpec"),
    ],
    ex03.make_weights: [
        (weights_then_cut, "on one device and cut them afterwards"),
        (weights_from_a_callback, "you make the whole array first"),
        (weights_anywhere, "laid out as cpu:0; expected P('x', 'y')"),
        (lambda key, sharding: jax.jit(lambda: jnp.zeros((64, 128)), out_shardings=sharding)(), "values; at [0, 0]"),
        (
            lambda key, sharding: jax.jit(lambda k: jax.random.normal(k, (128, 64)), out_shardings=sharding)(key),
            "shape (128, 64)",
        ),
    ],
    ex03.count_programs: [
        (lambda: 7, "that is every call"),
        (lambda: 5, "Do values count?"),
        (lambda: 3, "Shape, dtype and sharding are all part of the key"),
        (lambda: 4.5, "expected a whole number"),
    ],
}
