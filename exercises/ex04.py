"""Exercises and predictions for lesson 04, Steering the compiler with constraints."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, build_mesh, exercise, run_compiled

hidden = Prediction(
    11_010_048,
    "each device has an eighth of the columns of h, and receives the other seven eighths",
    {
        12_582_912: "a device already has its own eighth",
        1_572_864: "that's a device's own eighth, which goes to the seven other devices",
        5_505_024: "that's 7/8 of x, but h is twice as wide",
        22_020_096: "that would be an all-reduce; a gather doesn't add anything up",
    },
    "bytes",
)
mean_alone = Prediction(
    7,
    "it's an all-reduce of one float32, 4 bytes, among eight devices: 2 · 7/8 · 4",
    {
        4: "an all-reduce among n devices sends 2 (n - 1)/n of each device's input",
        3.5: "an all-reduce has two halves: it adds up, and it distributes",
        8: "a device doesn't send its own eighth",
        28: "a gather sends the 4 bytes to seven devices, but an all-reduce sends less",
        0: "each device has 512 of the 4,096 terms of the mean",
    },
    "bytes",
)
refused = Prediction(
    3,
    "in each line, X splits the tokens and also the columns of the weight, so the result would use X twice",
    {
        0: "what is the type of x[B_X, D] · up[D, F_X]?",
        1: "the columns of down[F, V_X] are split in the same way as those of up[D, F_X]",
        2: "the lookup is refused too: tokens[B_X] select rows of table[V, D_X]",
    },
    "lines",
)
kept_columns = Prediction(
    96,
    "the gradient of up has the type of up: 768 columns over eight devices",
    {
        768: "that's the result in automatic mode; on an explicit mesh the gradient has the type of its weight",
        48: "up has 768 columns",
    },
    "columns",
)
by_hand = Prediction(
    4_128_768,
    "it's a gather of the weights, 2,064,384 bytes, and a reduce-scatter of the gradients, which sends as many",
    {
        6_193_152: "that's the cost with an all-reduce; the gradient of a gather is a reduce-scatter, which sends "
        "half as much",
        2_064_384: "that's only the gather; the gradients have to be added up too",
        8_257_536: "a reduce-scatter sends as much as the gather",
    },
    "bytes",
)
cheapest = Prediction(
    "columns, rows",
    "each device computes the hidden columns that its rows of w2 need, so only the result has to be added up",
    {
        "rows, columns": "relu needs complete sums, so the larger hidden layer is added up",
        "columns, columns": "the second product needs all hidden columns, so they're gathered",
        "rows, rows": "the contracting dimension is split in both products",
    },
)


def _model_cases():
    rng, cases = np.random.default_rng(0), {}
    for data, model in ((2, 4), (4, 2)):
        mesh = build_mesh({"data": data, "model": model})

        def put(array, *spec, mesh=mesh):
            return jax.device_put(array.astype(np.float32), NamedSharding(mesh, P(*spec)))

        params = {
            "table": put(rng.normal(size=(160, 96)), "data", "model"),
            "up": put(rng.normal(size=(96, 320)) / 10, "data", "model"),
            "down": put(rng.normal(size=(320, 160)) / 18, "model", "data"),
        }
        tokens = jax.device_put(rng.integers(160, size=2048, dtype=np.int32), NamedSharding(mesh, P("data")))
        cases[f"params, tokens on {data} x {model}"] = params, tokens
    return cases


def _run_in_mesh(f, *args):
    """Compile and run a function in its arguments' mesh, and make the check ignore its result's sharding."""
    with jax.set_mesh(jax.tree.leaves(args)[0].sharding.mesh):
        observed = run_compiled(f, *args, measure=("bytes_sent", "flops"))
    result = observed[""]
    observed[""] = result if isinstance(result, (tuple, list)) else np.asarray(result)
    return observed


@exercise(
    "Which axis doesn't split the rows of the batch? A tuple of names splits one dimension by both: "
    "P(('data', 'model'), None).",
    cases=_model_cases,
    mistakes=[
        Mistake(
            Edit('("data", "model"), None', '"data", None'),
            "the rows of the batch are split only along data, so activations are added up along model",
        ),
        Mistake(
            Edit('("data", "model"), None', '("model", "data"), None'),
            "a device already has the tokens for its position along data, but with model first it needs different ones",
        ),
        Mistake(
            Edit('params["table"][tokens]', 'params["table"][tokens] * 1.5'),
            "these are different numbers: a constraint doesn't change any value",
        ),
    ],
    run=_run_in_mesh,
)
def all_rows(params, tokens):
    """Return the logits (tokens, vocabulary), with the batch split over both axes."""
    rows = P(("data", "model"), None)
    x = params["table"][tokens]
    x = jax.lax.with_sharding_constraint(x, rows)
    return jax.nn.relu(x @ params["up"]) @ params["down"]


def _cache_cases():
    rng, cases = np.random.default_rng(1), {}
    for axes, names, n, length, width in (({"X": 8}, "X", 24, 40, 12), ({"a": 2, "b": 3}, ("a", "b"), 18, 25, 7)):
        rows = NamedSharding(build_mesh(axes), P(names))
        cache = rng.normal(size=(n, length, width)).astype(np.float32)
        positions = rng.integers(length, size=n, dtype=np.int32)
        cache[1, positions[1], 3] = -np.inf  # a masked element: 0 * -inf is nan
        new = rng.normal(size=(n, width)).astype(np.float32)
        cases[f"cache of {n} sequences"] = tuple(jax.device_put((cache, positions, new), rows))
    return cases


def _write_by_index(cache, positions, new):
    return cache.at[jnp.arange(len(cache)), positions].set(new)


@exercise(
    "Write the program for one sequence: its cache (length, width), its position and its new row. Then apply jax.vmap.",
    cases=_cache_cases,
    mistakes=[
        Mistake(
            _write_by_index,
            "the compiler doesn't see that sequence i writes only into row i, so it gathers the positions "
            "and the new rows",
        ),
        Mistake(
            Edit("cache.at[position].set(new)", "cache.at[position].add(new)"), "the new row should replace the old one"
        ),
        Mistake(
            Edit("cache.at[position].set(new)", "cache.at[position - 1].set(new)"),
            "you write each row one position too early",
        ),
        Mistake(
            Edit("jax.vmap(write)(cache, positions, new)", "cache.at[:, positions].set(new)"),
            "every sequence gets the rows of all the others too",
        ),
    ],
    run=_run_in_mesh,
)
def write_rows(cache, positions, new):
    """Return the cache (n, length, width) with new[i] at positions[i] of sequence i."""

    def write(cache, position, new):
        return cache.at[position].set(new)

    return jax.vmap(write)(cache, positions, new)


def _block_cases():
    rng, cases = np.random.default_rng(2), {}
    for (x, y), (m, k, n) in (((2, 4), (48, 640, 24)), ((2, 2), (20, 960, 12))):
        mesh = build_mesh({"x": x, "y": y}, explicit=True)
        a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((m, k), (k, n)))
        cases[f"{x} x {y} devices, K = {k}"] = jax.device_put((a, b), NamedSharding(mesh, P("x", "y")))
    return cases


def _run_typed(f, a, b):
    with jax.set_mesh(a.sharding.mesh):
        return run_compiled(f, a, b, measure=("bytes_sent", "flops"))


@exercise(
    "The columns of a are already split by y. Use jax.sharding.reshard to split the rows of b by y, too. Then "
    "each device has partial sums of a small product, and out_sharding says how to add them up.",
    cases=_block_cases,
    mistakes=[
        Mistake(
            Edit('jax.sharding.reshard(b, P("y", None))', "b"),
            "rows of a and columns of b are gathered: K is the long dimension, and you send all of it",
        ),
        Mistake(
            Edit('out_sharding=P("x", "y")', 'out_sharding=P("x", None)'), "the product should be split like a and b"
        ),
        MessageHint(
            "ShardingTypeError",
            "the error names the dimensions: you can reshard b so that its rows are split like the columns of a",
        ),
    ],
    run=_run_typed,
)
def distributed_mul(a, b):
    """Return the typed product a @ b, split as P("x", "y") like a and b."""
    rows = jax.sharding.reshard(b, P("y", None))
    return jnp.dot(a, rows, out_sharding=P("x", "y"))
