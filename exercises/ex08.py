"""Exercises and predictions of lesson 08, Compile for a TPU pod that you do not have."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, WhenMessage, build_mesh, exercise

given = Prediction(
    5.24,
    "a 64th of x, 4.19 MB, and a 64th of each weight, 0.52 MB",
    {
        335.5: "that is all of x and of the weights; a chip has a 64th",
        71.3: "the weights are cut as well: a chip is given its rows, and gathers the others later",
        10.49: "a number in bfloat16 takes 2 bytes",
        4.19: "the weights' rows count, too",
        4.72: "there are two weights",
    },
    "MB",
    within=0.01,
)
sent = Prediction(
    66.06,
    "it lacks 63/64 of both weights; so much arrives, and on average so much leaves",
    {
        33.03: "there are two weights",
        132.1: "a gather goes around once; 2 (n - 1)/n is the price of an all-reduce",
        67.1: "its own 64th need not travel",
        1.05: "that is its own piece, which goes to 63 others",
    },
    "MB",
    within=0.01,
)
waits = Prediction("sending", "1,024 tokens on a chip; a v5e needs about 2,000 to hide the weights", {"computing": ""})
state = Prediction(
    15.3,
    "three numbers of 4 bytes for each parameter: itself and Adam's two moments",
    {
        5.1: "that is the parameters alone; Adam keeps two moments of each",
        10.2: "Adam keeps two moments of each parameter, not one",
        20.4: "what the step is given is asked; gradients are made later",
        17.85: "what the step is given is asked; gradients are made later",
        0.239: "that is FSDP; here every chip holds all of it",
    },
    "GB",
    within=0.02,
)
by_hand = Prediction(
    4.81,
    "3 (15/16) of a quarter of 2.55 GB, and 2 (3/4) of a sixteenth of 32.2 GB",
    {
        1.79: "that is the weights; the activations are summed as well",
        3.02: "that is the activations; the weights travel as well",
        7.53: "that is FSDP: here a chip's part of the weights is a quarter",
        10.19: "`model` cuts the weights: a chip gathers a quarter of them",
        50.1: "`data` cuts the batch: a chip sums a sixteenth of the activations",
    },
    "GB",
    within=0.03,
)
four_times = Prediction(
    10.7,
    "weights and gradients travel, once for each step, and neither has a batch in its shape",
    {42.8: "only activations grow with the batch; FSDP sends none"},
    "GB",
    within=0.03,
)
fastest = Prediction(
    "FSDP",
    "",
    {
        "tensor": "it sends the activations of four times the batch, over open rows",
        "both": "most of what it sends grew with the batch: 14.4 GB at 50 GB/s take 287 ms, and FSDP's chips compute for 209",
    },
)


def _cases():
    def double(x):
        return 2 * x

    def product(x, w):
        return x @ w

    line, grid = build_mesh({"data": 8}), build_mesh({"data": 2, "model": 4})
    large = 2**20  # of bfloat16, 2**40 numbers are two terabytes
    return {
        "double, 8 devices, (24, 5), P('data')": (double, line, [(24, 5)], [P("data")]),
        "double, 2 x 4 devices, (24, 12), P('model')": (double, grid, [(24, 12)], [P("model")]),
        "x @ w, 8 devices, rows of x cut": (product, line, [(16 * large, large), (large, 3)], [P("data"), P()]),
        "x @ w, 2 x 4 devices, rows of x, columns of w": (
            product,
            grid,
            [(6 * large, large), (large, 12 * large)],
            [P("data"), P(None, "model")],
        ),
    }


def _evenly(f, mesh, shapes, specs):
    whole = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
    result = jax.eval_shape(f, *whole)
    return sum(2 * a.size for a in whole) // mesh.size, 2 * result.size // mesh.size


@exercise(
    "Shapes with a sharding stand for the arrays: `jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=...)`. Lower `jax.jit(f)` "
    "for them, compile, and ask `memory_analysis()` for `argument_size_in_bytes` and `output_size_in_bytes`.",
    cases=_cases,
    mistakes=[
        Mistake(
            Edit(", sharding=NamedSharding(mesh, spec)", ""), "a shape without its sharding is whole on one device"
        ),
        Mistake(Edit("jnp.bfloat16", "jnp.float32"), "a number in bfloat16 takes 2 bytes"),
        Mistake(
            Edit("argument_size_in_bytes, memory.output", "output_size_in_bytes, memory.argument"),
            "what it is given comes first",
        ),
        Mistake(_evenly, "not every mesh axis cuts every array: one that the spec does not name holds copies"),
        Mistake(Edit("output_size", "temp_size"), "what lies in between is another number; its result is asked"),
        WhenMessage("out of memory", "such arrays fit into no machine: hand over their shapes, not numbers"),
    ],
)
def given_and_returned(f, mesh, shapes, specs):
    """Return the bytes that each device is given, and the bytes that it returns."""
    args = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    memory = jax.jit(f).lower(*args).compile().memory_analysis()
    return memory.argument_size_in_bytes, memory.output_size_in_bytes


@exercise(
    "How many bytes have all chips together? Take the weights off, 2 bytes each. A sequence has keys and values, two numbers of "
    "2 bytes, for each layer, each token and each unit of the width.",
    cases=[
        (1000, 3, 5, 7, 4, 1655),  # filled exactly, by 11
        (1_275_068_416, 24, 2048, 1024, 1, 16_000_000_000),
        (70_000_000_000, 80, 8192, 4096, 8, 80_000_000_000),
        (8_000_000_000, 32, 4096, 8192, 3, 32_000_000_000),
        (70_000_000_000, 80, 8192, 4096, 1, 80_000_000_000),
    ],
    mistakes=[
        Mistake(Edit("2 * 2 * layers", "2 * layers"), "keys and values, of 2 bytes each: 4 bytes"),
        Mistake(
            Edit("chips * memory - weights", "memory - weights / chips"), "the sequences are cut over the chips as well"
        ),
        Mistake(
            Edit("weights = 2 *", "weights = 12 *"),
            "12 bytes are of training; to serve takes the bfloat16 weights alone",
        ),
        Mistake(Edit("max(0, total // cache)", "total // cache"), "below 0 nothing fits: 0"),
        Mistake(Edit("total // cache", "total // cache + 1"), "half a sequence is none"),
        Mistake(Edit("layers * width", "width"), "each layer has keys and values of its own"),
    ],
)
def sequences_that_fit(parameters, layers, width, length, chips, memory):
    """Return how many whole sequences fit beside the weights."""
    weights = 2 * parameters
    cache = 2 * 2 * layers * width * length  # of one sequence
    total = chips * memory - weights
    return max(0, total // cache)


@exercise(
    "Let d go through 1, 2, 4 ... n, with m = n / d. Put both rows' prices together: weights along `data`, sums along `model`.",
    cases=[
        (2.55e9, 32.2e9, 64),
        (2.55e9, 129e9, 64),
        (2.55e9, 8.05e9, 16),
        (140e9, 40e9, 128),
        (1e9, 90e9, 8),
        (90e9, 1e9, 8),
        (3e9, 7e9, 4),
    ],
    mistakes=[
        Mistake(Edit("return best", "return best[::-1]"), "`data` comes first"),
        Mistake(Edit("3 *", "2 *"), "the weights travel three times: gathered twice, and their gradients are summed"),
        Mistake(
            Edit("weights / m", "weights"),
            "`model` cuts the weights, and `data` cuts the batch: only an m-th and a d-th travel",
        ),
        Mistake(Edit("2 * (m - 1)", "(m - 1)"), "an all-reduce goes around twice"),
    ],
)
def best_mesh(weights, sums, n):
    """Return (d, m), the mesh of n chips whose chips send the fewest bytes."""
    best, least = None, float("inf")
    for power in range(n.bit_length()):
        d, m = 2**power, n // 2**power
        sent = 3 * (weights / m) * (d - 1) / d + 2 * (m - 1) / m * (sums / d)
        if sent < least:
            best, least = (d, m), sent
    return best
