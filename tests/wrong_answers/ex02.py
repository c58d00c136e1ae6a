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
    ex02.ten_over_four: ("refuses", [("pads", "invent rows"), ("uneven", "one shape")]),
    ex02.padded_mean: (11.25, [(13.5, "divided by twelve"), (16.2, "the sum stays")]),
    ex02.made_in_place: (
        {"result": 262_144, "temporary": 0},
        [
            ((2_097_152, 2_097_152), "whole"),
            ((262_144, 262_144), "its own piece"),
            ((524_288, 0), "both mesh axes cut"),
        ],
    ),
    ex02.callback_calls: (
        {"P('x')": 8, "P()": 1},
        [((2, 1), "which pieces are the same"), ((8, 8), "case of its own")],
    ),
    ex02.idle_receivers: (4, [(8, "the other half"), (0, "needs row 0"), (2, "both halves"), (1, "each device")]),
    ex02.through_the_host: (
        {"device_put": "yes", "compiled": "no"},
        [(("no", "no"), "looks at neither plan"), (("yes", "yes"), "runs on the devices alone")],
    ),
}
