"""Exercises and predictions of lesson 03, Automatic parallelism with jit."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Edit,
    Mistake,
    Observed,
    Prediction,
    WhenMessage,
    build_mesh,
    exercise,
    run_compiled,
    run_traced,
)

rows_alone = Prediction(
    0,
    "each device has its rows of x, and all of w",
    {57_344: "no device needs the rows of another", 458_752: "w is whole on every device already"},
    "bytes",
)
both_split = Prediction(
    229_376,
    "7/8 of y in the first half, and 7/8 of y in the second",
    {
        114_688: "that is one half; then each finished eighth goes to the seven others",
        131_072: "its own eighth stays: it sends seven eighths, twice",
        262_144: "its own eighth need not travel, in either half",
        28_672: "a device has a partial sum of every number of y, not of an eighth",
        0: "each device has only an eighth of each sum",
    },
    "bytes",
)
gathered = Prediction(
    458_752,
    "a device lacks seven eighths of w; that much arrives, and on average that much leaves",
    {
        524_288: "its own eighth need not arrive",
        65_536: "that is its eighth; it goes to seven others",
        917_504: "that would be an all-reduce; a gather adds nothing up, it only hands out",
        57_344: "that is 7/8 of x; here w has to travel",
    },
    "bytes",
)
mended = Prediction(
    7_168,
    "a device holds 8,192 bytes of x, keeps an eighth of them and sends the rest",
    {
        8_192: "the eighth that lies in its own rows stays",
        57_344: "that is 7/8 of all of x; a device holds an eighth of x",
        1_024: "that is what it keeps; it sends the rest",
        65_536: "that is all of x",
    },
    "bytes",
)
refused = Prediction(
    2,
    "D split in both leaves two good types of y, and B_X with F_X would use X twice",
    {
        1: "there are two: one with D split on both sides, one with B and F both split by X",
        3: "where D is split in one matrix alone, the type of y is clear",
        4: "where D is split in one matrix alone, the type of y is clear",
        0: "what is the type of y where X would split both B and F?",
    },
    "pairs",
)
gradient = Prediction(
    1.75,
    "each device has partial sums of all of dw, and an all-reduce sends 7/8 twice",
    {
        0.875: "an all-reduce sends twice: to add up, and to hand out",
        1: "7/8 to add up, and 7/8 to hand out",
        2: "its own eighth need not travel: 7/8, twice",
        0: "in xᵀ dy the dimension summed over is B, and it is split in both",
    },
    "times",
)
two_axes = Prediction(
    98_304,
    "a device has partial sums of 32 rows of y, 65,536 bytes; four devices share them: 2 · 3/4",
    {
        229_376: "data split the rows: a device has partial sums of half of y, and shares them with three others",
        114_688: "the four devices along model share the sum, not all eight: 2 · 3/4",
        196_608: "data split the rows: a device has partial sums of half of y",
        65_536: "that is what a device puts in; an all-reduce among four sends 2 · 3/4 of it",
        49_152: "an all-reduce sends twice: to add up, and to hand out",
    },
    "bytes",
)


def _places():
    keys = jax.random.key(7), jax.random.key(11)
    tall, wide = build_mesh({"X": 8}), build_mesh({"data": 2, "model": 4})
    return {
        "key, P('X', None)": (keys[0], NamedSharding(tall, P("X", None))),
        "key, P('model', 'data')": (keys[1], NamedSharding(wide, P("model", "data"))),
    }


def _held_whole(key, sharding):
    return jax.device_put(jax.random.normal(key, (256, 512)), sharding)


@exercise(
    "Compile a function of the key alone. An argument of jax.jit says how its result is sharded.",
    cases=_places,
    mistakes=[
        Mistake(_held_whole, "the array is made on one device, and only then split"),
        Mistake(
            Edit("jax.jit(draw, out_shardings=sharding)", "jax.jit(draw)"),
            "nothing says how the result is to be sharded",
        ),
        Mistake(
            Edit("normal(key,", "normal(jax.random.key(0),", count=2),
            "these are other numbers: draw them from the key that is handed in",
        ),
        WhenMessage("copied back", "the array went through the host; it can be made where it lives"),
    ],
    run=lambda *args: run_traced(*args)[0],
)
def make_weights(key, sharding):
    """Return jax.random.normal(key, (256, 512)), made in its sharding."""

    def draw(key):
        return jax.random.normal(key, (256, 512))

    return jax.jit(draw, out_shardings=sharding)(key)


@exercise(
    "Write both products with their subscripts: xᵀ[D, B] · dy[B, F_X] and dy[B, F_X] · wᵀ[F_X, D]. In which is the "
    "dimension summed over split?",
    cases=[(64, 256, 512, 8), (96, 40, 24, 4), (10, 700, 30, 5)],
    mistakes=[
        Mistake(
            Edit("return 0, sent", "return sent, 0"), "for dw B is summed over, and nobody split it; for dx it is F"
        ),
        Mistake(Edit("B * D", "D * F"), "what is added up has the shape of dx, B x D"),
        Mistake(Edit("B * D", "B * F"), "what is added up has the shape of dx, B x D"),
        Mistake(
            Edit("2 * (n - 1)", "(n - 1)"),
            "every device needs all of dx: 7/8 to add up and 7/8 to hand out, on eight devices",
        ),
        Mistake(Edit("(n - 1) / n", "(n - 1)"), "a device sends n - 1 of the n blocks, not n - 1 times all"),
        Mistake(Edit("* 4", ""), "these are numbers; a float32 takes 4 bytes"),
    ],
)
def backward_bytes(B, D, F, n):
    """Return two numbers: the bytes that each device sends for dw, and for dx."""
    sent = 2 * (n - 1) / n * B * D * 4
    return 0, sent


def _attention(answer):
    """What the scores are under the answer's spec, and what a device sends and computes for them."""
    spec = answer()
    mesh, one = build_mesh({"data": 2, "model": 4}), np.arange(4 * 6 * 20 * 32, dtype=np.float32).reshape(4, 6, 20, 32)
    queries = jax.device_put(np.sin(one), NamedSharding(mesh, spec))
    seen = run_compiled(jax.vmap(jax.vmap(lambda q, k: q @ k.T)), queries, queries, measure=("bytes_sent", "flops"))
    return Observed(seen | {"": np.asarray(seen[""])})


@exercise(
    "Which two dimensions does each product have for itself? Give each of them a mesh axis that divides it.",
    cases=[()],
    mistakes=[
        Mistake(
            lambda: P("data", None, None, "model"), "the features are summed over: a device would have partial sums"
        ),
        Mistake(
            lambda: P("data", None, "model"),
            "each query meets every key: split the positions, and the keys have to travel",
        ),
        Mistake(lambda: P("data"), "the devices along model do the same work"),
    ],
    run=_attention,
    hide_expected=True,
)
def silent_spec():
    """Return one spec for queries and keys: an eighth of the work each, no sends."""
    return P("model", "data")
