"""Exercises and predictions for lesson 08, Compile for TPUs and GPUs that you do not have."""

# pyright: reportOptionalMemberAccess=false
# (In JAX's type stubs, memory_analysis() may return None, but on every supported platform it returns an analysis.)

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, build_mesh, exercise

sent = Prediction(
    66.06,
    "a chip lacks 63/64 of both weights; it receives that much, so on average it sends that much",
    {
        33.03: "there are two weights",
        132.1: "a gather makes one pass; 2 (n - 1)/n is the cost of an all-reduce",
        67.1: "a chip already has its own 64th",
        1.05: "that's a chip's own piece, which goes to the 63 others",
    },
    "MB",
    rel_tol=0.01,
)
reduced = Prediction(
    469.8,
    "an all-reduce sends as much as a reduce-scatter and an all-gather together, and those two send the same amount",
    {
        939.5: "that's for all-reduces, which also gather the sums again",
        67.1: "that's what each device keeps, but it sends seven pieces of that size",
        234.9: "there are two gradients",
        536.9: "a device doesn't send its own eighth",
    },
    "MB",
    rel_tol=0.01,
)
state = Prediction(
    15.3,
    "it's three numbers of 4 bytes for each parameter: the parameter and Adam's two moments",
    {
        5.1: "that's only the parameters, but Adam keeps two moments of each",
        10.2: "Adam keeps two moments of each parameter, not one",
        20.4: "the question is about the step's inputs, but gradients are computed later",
        17.85: "the question is about the step's inputs, but gradients are computed later",
        0.239: "that would be FSDP; here every chip stores everything",
    },
    "GB",
    rel_tol=0.02,
)
by_hand = Prediction(
    4.81,
    "it's 3 (15/16) of a quarter of 2.55 GB, and 2 (3/4) of a sixteenth of 32.2 GB",
    {
        1.79: "that's only the weights; the activations are summed as well",
        3.02: "that's only the activations; the weights are sent as well",
        7.53: "that's FSDP; here a chip's part of the weights is a quarter",
        10.19: "`model` splits the weights, so a chip gathers only a quarter of them",
        50.1: "`data` splits the batch, so a chip sums only a sixteenth of the activations",
    },
    "GB",
    rel_tol=0.03,
)
four_times = Prediction(
    10.7,
    "only weights and gradients are sent, once in each step, and their shapes don't depend on the batch",
    {42.8: "only activations grow with the batch, and FSDP doesn't send any"},
    "GB",
    rel_tol=0.03,
)
fastest = Prediction(
    "FSDP",
    "",
    {
        "tensor": "tensor parallelism sends the activations of four times the batch, over lines without wraparound",
        "both": "most of the bytes grew with the batch: 14.4 GB at 50 GB/s take 287 ms, while FSDP's chips "
        "compute for 209 ms",
    },
)


def _function_cases():
    def double(x):
        return 2 * x

    def product(x, w):
        return x @ w

    line, grid = build_mesh({"data": 8}), build_mesh({"data": 2, "model": 4})
    large = 2**20  # a matrix of 2**40 bfloat16 elements takes up 2 TiB, so answers have to pass shapes
    return {
        "double, 8 devices, (24, 5), P('data')": (double, line, [(24, 5)], [P("data")]),
        "double, 2 x 4 devices, (24, 12), P('model')": (double, grid, [(24, 12)], [P("model")]),
        "x @ w, 8 devices, x split along axis 0": (product, line, [(16 * large, large), (large, 3)], [P("data"), P()]),
        "x @ w, 2 x 4 devices, x split along axis 0, w along axis 1": (
            product,
            grid,
            [(6 * large, large), (large, 12 * large)],
            [P("data"), P(None, "model")],
        ),
    }


def _split_evenly(f, mesh, shapes, specs):
    arrays = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
    result = jax.eval_shape(f, *arrays)
    return sum(2 * a.size for a in arrays) // mesh.size, 2 * result.size // mesh.size


@exercise(
    "A shape with a sharding stands for an array: `jax.ShapeDtypeStruct(shape, jnp.bfloat16, "
    "sharding=...)`. Lower `jax.jit(f)` for these, compile it, and read `argument_size_in_bytes` and "
    "`output_size_in_bytes` from `memory_analysis()`.",
    cases=_function_cases,
    mistakes=[
        Mistake(
            Edit(", sharding=NamedSharding(mesh, spec)", ""),
            "without its sharding, a shape means a full array on one device",
        ),
        Mistake(Edit("jnp.bfloat16", "jnp.float32"), "an element in bfloat16 takes 2 bytes"),
        Mistake(
            Edit("argument_size_in_bytes, memory.output", "output_size_in_bytes, memory.argument"),
            "the size of the arguments comes first",
        ),
        Mistake(
            _split_evenly,
            "not every mesh axis splits every array: along an axis that isn't in the spec, devices hold copies",
        ),
        Mistake(
            Edit("output_size", "temp_size"), "that's the size of the temporaries, but the exercise asks for the result"
        ),
        MessageHint("out of memory", "no machine has enough memory for such arrays: pass their shapes instead"),
    ],
)
def given_and_returned(f, mesh, shapes, specs):
    """Return the bytes of each device's arguments, and the bytes of its result."""
    args = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    memory = jax.jit(f).lower(*args).compile().memory_analysis()
    return memory.argument_size_in_bytes, memory.output_size_in_bytes


@exercise(
    "How many bytes do all chips have together? Subtract the weights, 2 bytes each. A sequence has "
    "keys and values, two elements of 2 bytes, for each layer, each token and each unit of the "
    "width.",
    cases=[
        (1000, 3, 5, 7, 4, 1655),  # 11 sequences fill the memory exactly
        (1_275_068_416, 24, 2048, 1024, 1, 16_000_000_000),
        (70_000_000_000, 80, 8192, 4096, 8, 80_000_000_000),
        (8_000_000_000, 32, 4096, 8192, 3, 32_000_000_000),
        (70_000_000_000, 80, 8192, 4096, 1, 80_000_000_000),
    ],
    mistakes=[
        Mistake(Edit("2 * 2 * layers", "2 * layers"), "keys and values take 2 bytes each, which makes 4 bytes"),
        Mistake(
            Edit("chips * memory - weights", "memory - weights / chips"),
            "the sequences are split over the chips as well",
        ),
        Mistake(
            Edit("weights = 2 *", "weights = 12 *"),
            "12 bytes are for training; serving needs only the bfloat16 weights",
        ),
        Mistake(
            Edit("max(0, total // cache)", "total // cache"),
            "if even the weights don't fit, the number of sequences is 0, not negative",
        ),
        Mistake(Edit("total // cache", "total // cache + 1"), "only complete sequences count"),
        Mistake(Edit("layers * width", "width"), "each layer has its own keys and values"),
    ],
)
def sequences_that_fit(parameters, layers, width, length, chips, memory):
    """Return how many complete sequences fit in memory next to the weights."""
    weights = 2 * parameters
    cache = 2 * 2 * layers * width * length  # bytes for one sequence
    total = chips * memory - weights
    return max(0, total // cache)


@exercise(
    "Let d be 1, 2, 4 ... n, with m = n / d. Add up the costs in both rows of the table.",
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
        Mistake(
            Edit("3 *", "2 *"), "the weights count three times: they're gathered twice, and their gradients are summed"
        ),
        Mistake(
            Edit("weights / m", "weights"),
            "`model` splits the weights, and `data` splits the batch, so only an m-th and a d-th are sent",
        ),
        Mistake(Edit("2 * (m - 1)", "(m - 1)"), "an all-reduce makes two passes"),
    ],
)
def best_mesh(weights, sums, n):
    """Return (d, m), the mesh of n chips on which each chip sends the fewest bytes."""
    best, least = None, float("inf")
    for power in range(n.bit_length()):
        d, m = 2**power, n // 2**power
        sent = 3 * (weights / m) * (d - 1) / d + 2 * (m - 1) / m * (sums / d)
        if sent < least:
            best, least = (d, m), sent
    return best
