"""Wrong answers to the exercises of notebook 02."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.exercises import ex02


def adds_copies(shards, shape):
    whole = np.zeros(shape)
    for index, data in shards:
        whole[index] += data
    return whole


def in_device_order(shards, shape):
    whole = np.concatenate([data.ravel() for _, data in shards])
    return whole[: shape[0] * shape[1]].reshape(shape)


def mean_with_padding(rows, sharding):
    return jax.device_put(np.pad(rows, ((0, -len(rows) % 4), (0, 0))), sharding).mean(axis=0)


def drops_the_rest(rows, sharding):
    keep = len(rows) // 4 * 4
    return jax.device_put(rows[:keep], sharding).mean(axis=0) if keep else rows.mean(axis=0)


def no_padding(rows, sharding):
    return jax.device_put(rows, sharding).mean(axis=0)


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex02.holder_of: [
        (lambda row, column: 4 * (column // 4) + row // 2, "'x' has 2 devices"),
        (lambda row, column: 2 * (column // 2) + row // 4, "the devices count along 'y' first"),
        (lambda row, column: 2 * (row // 4) + column // 2, "A mesh row has 4 devices"),
        (lambda row, column: 6, "Which block row and which block column"),
        (lambda row, column: row / 4, "expected a whole number"),
    ],
    ex02.spec_for_half: [
        (lambda: P("x"), "P('x'): each device holds (4, 8); that is half, but it is the upper or the lower half"),
        (lambda: P(None, "y"), "a quarter: the mesh axis 'y' has 4 devices"),
        (lambda: P(), "cuts nothing"),
        (lambda: P(None, None, "x"), "does not fit an (8, 8) array"),
        (lambda: (None, "x"), "You return a tuple"),
    ],
    ex02.rebuild: [
        (adds_copies, "4 times too large"),
        (in_device_order, "right values at the wrong places"),
        (lambda shards, shape: np.stack([data for _, data in shards]), "shape (8, 2, 2); expected (4, 8)"),
    ],
    ex02.mean_of_rows: [
        (mean_with_padding, "you divide by 12"),
        (drops_the_rest, "you drop the last 2"),
        (no_padding, "Your function raised"),
        (lambda rows, sharding: rows.mean(axis=0), "You never place the rows"),
    ],
    ex02.read_sharded: [
        (lambda read, sharding: jax.device_put(read(slice(0, 64)), sharding), "You had 64 rows in one place"),
        (
            lambda read, sharding: np.concatenate([read(slice(i, i + 8)) for i in range(0, 64, 8)]),
            "expected a jax.Array",
        ),
        (
            lambda read, sharding: jnp.concatenate([jnp.asarray(read(slice(i, i + 8))) for i in range(0, 64, 8)]),
            "laid out as cpu:0; expected P(('x', 'y'))",
        ),
        (
            lambda read, sharding: jax.device_put(
                np.concatenate([read(slice(i, i + 8)) for i in range(0, 64, 8)]), sharding
            ),
            "You had 64 rows in one place",
        ),
        (
            lambda read, sharding: jax.make_array_from_callback((64, 4), sharding, lambda index: read(index)),
            "read takes a slice of rows",
        ),
    ],
    ex02.price_of_change: [
        (lambda: 64 * 32 * 4, "How much of it did the device hold before?"),
        (lambda: 64 * 64 * 4, "that is the whole array"),
        (lambda: 64 * 32 - 16 * 32, "A float32 takes 4 bytes"),
        (lambda: 8 * 6_144, "the sum over eight devices"),
        (lambda: 5, "new piece - bytes of its overlap"),
    ],
}
