"""Exercises and predictions for lesson 03, Automatic parallelism with jit."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Edit,
    MessageHint,
    Mistake,
    Prediction,
    RunResult,
    build_mesh,
    exercise,
    run_compiled,
    run_traced,
)

rows_alone = Prediction(
    0,
    "each device has its own rows of x, and all of w",
    {57_344: "no device needs another device's rows", 458_752: "each device already has all of w"},
    "bytes",
)
both_split = Prediction(
    229_376,
    "each device sends 7/8 of y in each half of the all-reduce",
    {
        114_688: "that's the first half; afterwards, each finished eighth goes to the seven other devices",
        131_072: "a device keeps its own eighth and sends seven eighths, twice",
        262_144: "a device doesn't send its own eighth in either half",
        28_672: "a device has a partial sum of every element of y, not of an eighth of them",
        0: "each device has only an eighth of the terms of each sum",
    },
    "bytes",
)
gathered = Prediction(
    458_752,
    "each device lacks seven eighths of w; it receives that much, so on average it sends that much",
    {
        524_288: "a device already has its own eighth",
        65_536: "that's a device's own eighth, which goes to the seven other devices",
        917_504: "that would be an all-reduce; an all-gather only distributes, and doesn't add anything up",
        57_344: "that's 7/8 of x; here w has to be sent",
    },
    "bytes",
)
fixed = Prediction(
    7_168,
    "a device holds 8,192 bytes of x, keeps an eighth of them and sends the rest",
    {
        8_192: "a device keeps the eighth that belongs to its own rows",
        57_344: "that's 7/8 of all of x, but a device holds only an eighth of x",
        1_024: "that's the part that a device keeps; it sends the rest",
        65_536: "that's all of x",
    },
    "bytes",
)
refused = Prediction(
    2,
    "if D is split in both arrays, y has two possible types, and B_X with F_X would use X twice",
    {
        1: "there are two: one with D split in both arrays, and one with B and F both split by X",
        3: "if D is split in only one of the arrays, the type of y is clear",
        4: "if D is split in only one of the arrays, the type of y is clear",
        0: "what would the type of y be if X split both B and F?",
    },
    "products",
)
gradient = Prediction(
    1.75,
    "each device has partial sums of all of dw, and an all-reduce sends 7/8 of them twice",
    {
        0.875: "an all-reduce sends twice: to add up, and to distribute",
        1: "it sends 7/8 to add up, and 7/8 to distribute",
        2: "a device doesn't send its own eighth, so it's 7/8, twice",
        0: "in xᵀ dy the contracting dimension is B, which is split in both arrays",
    },
    "times",
)
two_axes = Prediction(
    98_304,
    "a device has partial sums of 32 rows of y, 65,536 bytes, and four devices share them: 2 · 3/4",
    {
        229_376: "data splits the rows: a device has partial sums of half of y, and shares them with three others",
        114_688: "the four devices along model share the sum, not all eight: 2 · 3/4",
        196_608: "data splits the rows: a device has partial sums of half of y",
        65_536: "that's the input of each device; an all-reduce among four sends 2 · 3/4 of it",
        49_152: "an all-reduce sends twice: to add up, and to distribute",
    },
    "bytes",
)


def _key_cases():
    keys = jax.random.key(7), jax.random.key(11)
    tall, wide = build_mesh({"X": 8}), build_mesh({"data": 2, "model": 4})
    return {
        "key, P('X', None)": (keys[0], NamedSharding(tall, P("X", None))),
        "key, P('model', 'data')": (keys[1], NamedSharding(wide, P("model", "data"))),
    }


def _run_on_its_mesh(make, key, sharding):
    with jax.set_mesh(sharding.mesh):  # the lesson has set a different mesh
        return run_traced(make, key, sharding)[0]


def _make_on_one_device(key, sharding):
    return jax.device_put(jax.random.normal(key, (256, 512)), sharding)


@exercise(
    "Compile a function whose only argument is the key. One of jax.jit's options sets the sharding of the result.",
    cases=_key_cases,
    mistakes=[
        Mistake(_make_on_one_device, "you make the array on one device, and split it only afterwards"),
        Mistake(
            Edit("jax.jit(draw, out_shardings=sharding)", "jax.jit(draw)"),
            "nothing says how the result should be sharded",
        ),
        Mistake(
            Edit("normal(key,", "normal(jax.random.key(0),", count=2),
            "these are different numbers: draw them from the key that you're given",
        ),
        MessageHint("copied back", "the array went through the host, but it can be made directly on its devices"),
    ],
    run=_run_on_its_mesh,
)
def make_weights(key, sharding):
    """Return jax.random.normal(key, (256, 512)), created in the given sharding."""

    def draw(key):
        return jax.random.normal(key, (256, 512))

    return jax.jit(draw, out_shardings=sharding)(key)


@exercise(
    "Write both products with their subscripts: xᵀ[D, B] · dy[B, F_X] and dy[B, F_X] · wᵀ[F_X, D]. "
    "In which one is the contracting dimension split?",
    cases=[(64, 256, 512, 8), (96, 40, 24, 4), (10, 700, 30, 5)],
    mistakes=[
        Mistake(
            Edit("return 0, sent", "return sent, 0"),
            "for dw the contracting dimension is B, which isn't split; for dx it's F",
        ),
        Mistake(Edit("B * D", "D * F"), "the partial sums have the shape of dx, (B, D)"),
        Mistake(Edit("B * D", "B * F"), "the partial sums have the shape of dx, (B, D)"),
        Mistake(
            Edit("2 * (n - 1)", "(n - 1)"),
            "every device needs all of dx: an all-reduce sends (n - 1)/n to add up and (n - 1)/n to distribute",
        ),
        Mistake(Edit("(n - 1) / n", "(n - 1)"), "a device sends n - 1 of the n blocks, not n - 1 times the full array"),
        Mistake(Edit("* 4", ""), "you're counting elements, and each float32 element takes 4 bytes"),
    ],
)
def backward_bytes(B, D, F, n):
    """Return two numbers: the bytes that each device sends for dw, and for dx."""
    sent = 2 * (n - 1) / n * B * D * 4
    return 0, sent


def _run_attention(answer):
    """Compute attention scores with the answer's spec, and measure the bytes sent and the FLOPs per device."""
    spec = answer()
    mesh, one = build_mesh({"data": 2, "model": 4}), np.arange(4 * 6 * 20 * 32, dtype=np.float32).reshape(4, 6, 20, 32)
    queries, scores = jax.device_put(np.sin(one), NamedSharding(mesh, spec)), lambda q, k: q @ k.T
    with jax.set_mesh(mesh):  # the lesson has set a different mesh
        observed = run_compiled(jax.vmap(jax.vmap(scores)), queries, queries, measure=("bytes_sent", "flops"))
    return RunResult(observed | {"": np.asarray(observed[""])})


@exercise(
    "Which two dimensions does each product treat independently? Give each of them a mesh axis that divides it.",
    cases=[()],
    mistakes=[
        Mistake(
            lambda: P("data", None, None, "model"),
            "the features are the contracting dimension, so each device would have partial sums",
        ),
        Mistake(
            lambda: P("data", None, "model"),
            "each query meets every key: if you split the positions, the keys have to be sent",
        ),
        Mistake(lambda: P("data"), "the devices along model all do the same work"),
    ],
    run=_run_attention,
    hide_expected=True,
)
def silent_spec():
    """Return a spec for both arrays that splits the work in 8 and sends nothing."""
    return P("model", "data")
