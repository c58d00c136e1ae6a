"""Exercises and predictions of lesson 04, Steering the compiler with constraints."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, WhenMessage, build_mesh, exercise, run_compiled

hidden = Prediction(
    11_010_048,
    "a device has an eighth of the columns of h, and the other seven eighths arrive",
    {
        12_582_912: "its own eighth need not travel",
        1_572_864: "that is its eighth; it goes to seven others",
        5_505_024: "that is 7/8 of x; h is twice as wide",
        22_020_096: "that would be an all-reduce; a gather adds nothing up",
    },
    "bytes",
)
same_price = Prediction(
    512,
    "the weights cost the same for any batch, and the activations an eighth for an eighth of the rows",
    {
        4096: "there the activations cost eight times as much",
        32_768: "with more rows the activations cost more; the weights cost the same",
        1024: "there the activations still cost twice as much",
    },
    "rows",
    within=0.02,
)
mean_alone = Prediction(
    7,
    "an all-reduce of one float32, 4 bytes, among eight: 2 · 7/8 · 4",
    {
        4: "an all-reduce among n devices sends 2 (n - 1)/n of what a device puts in",
        3.5: "an all-reduce has two halves: add up, and hand out",
        8: "its own eighth need not travel",
        28: "4 bytes go seven ways in a gather; an all-reduce does better",
        0: "each device has 512 of the 4,096 terms of the mean",
    },
    "bytes",
)
refused = Prediction(
    3,
    "in each line the tokens are split by X, and so are the columns of the weight: the result would use X twice",
    {
        0: "what is the type of x[B_X, D] · up[D, F_X]?",
        1: "down[F, V_X] has its columns split as up[D, F_X] has",
        2: "the lookup, too: tokens[B_X] choose rows of table[V, D_X]",
    },
    "lines",
)
kept_columns = Prediction(
    96,
    "the gradient of up has the type of up: 768 columns over eight devices",
    {768: "that is what automatic mode leaves; here the gradient has the type of its weight", 48: "up has 768 columns"},
    "columns",
)
by_hand = Prediction(
    4_128_768,
    "a gather of the weights, 2,064,384 bytes, and a reduce-scatter of the gradients, which sends the same",
    {
        6_193_152: "that is with an all-reduce; the gradient of a gather is a reduce-scatter, half of it",
        2_064_384: "that is one way; the gradients have to be added up, too",
        8_257_536: "a reduce-scatter sends what the gather sends",
    },
    "bytes",
)
cheapest = Prediction(
    "columns, rows",
    "a device computes the hidden columns that its rows of w2 need; only the result has to be added up",
    {
        "rows, columns": "relu needs whole sums, so the larger hidden layer is added up",
        "columns, columns": "the second product needs all hidden columns, and gathers them",
        "rows, rows": "both products sum over what is split",
    },
)


def _models():
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


def _in_mesh(f, *args):
    """Compiled in the mesh of the arguments; the numbers of the result, wherever they live."""
    with jax.set_mesh(jax.tree.leaves(args)[0].sharding.mesh):
        seen = run_compiled(f, *args, measure=("bytes_sent", "flops"))
    seen[""] = seen[""] if isinstance(seen[""], (tuple, list)) else np.asarray(seen[""])
    return seen


@exercise(
    "Which axis splits no row of the batch? A tuple of names splits one dimension by both: P(('data', 'model'), None).",
    cases=_models,
    mistakes=[
        Mistake(
            Edit('("data", "model"), None', '"data", None'),
            "the rows of the batch are split along data alone, so activations are added up along model",
        ),
        Mistake(
            Edit('("data", "model"), None', '("model", "data"), None'),
            "a device has tokens of its place along data already; with model first it needs others",
        ),
        Mistake(
            Edit('params["table"][tokens]', 'params["table"][tokens] * 1.5'),
            "these are other numbers: a constraint changes no value",
        ),
    ],
    run=_in_mesh,
)
def all_rows(params, tokens):
    """Return the logits (tokens, vocabulary), with the batch split over both axes."""
    rows = P(("data", "model"), None)
    x = params["table"][tokens]
    x = jax.lax.with_sharding_constraint(x, rows)
    return jax.nn.relu(x @ params["up"]) @ params["down"]


def _caches():
    rng, cases = np.random.default_rng(1), {}
    for axes, names, n, length, width in (({"X": 8}, "X", 24, 40, 12), ({"a": 2, "b": 3}, ("a", "b"), 18, 25, 7)):
        rows = NamedSharding(build_mesh(axes), P(names))
        cache = rng.normal(size=(n, length, width)).astype(np.float32)
        positions = rng.integers(length, size=n, dtype=np.int32)
        cache[1, positions[1], 3] = -np.inf  # masked: 0 * -inf is no number
        new = rng.normal(size=(n, width)).astype(np.float32)
        cases[f"cache of {n} sequences"] = tuple(jax.device_put((cache, positions, new), rows))
    return cases


def _by_index(cache, positions, new):
    return cache.at[jnp.arange(len(cache)), positions].set(new)


@exercise(
    "Write the program of one sequence: its cache (length, width), its position, its new row. Then jax.vmap.",
    cases=_caches,
    mistakes=[
        Mistake(
            _by_index,
            "the compiler does not see that sequence i writes into row i alone, and gathers positions and new rows",
        ),
        Mistake(
            Edit("cache.at[position].set(new)", "cache.at[position].add(new)"), "the new row replaces what is there"
        ),
        Mistake(
            Edit("cache.at[position].set(new)", "cache.at[position - 1].set(new)"),
            "each row is written one place too early",
        ),
        Mistake(
            Edit("jax.vmap(write)(cache, positions, new)", "cache.at[:, positions].set(new)"),
            "every sequence gets the rows of all others, too",
        ),
    ],
    run=_in_mesh,
)
def write_rows(cache, positions, new):
    """Return the cache (n, length, width) with new[i] at positions[i] of sequence i."""

    def write(cache, position, new):
        return cache.at[position].set(new)

    return jax.vmap(write)(cache, positions, new)


def _blocks():
    rng, cases = np.random.default_rng(2), {}
    for (x, y), (m, k, n) in (((2, 4), (48, 640, 24)), ((2, 2), (20, 960, 12))):
        mesh = build_mesh({"x": x, "y": y}, explicit=True)
        a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((m, k), (k, n)))
        cases[f"{x} x {y} devices, K = {k}"] = jax.device_put((a, b), NamedSharding(mesh, P("x", "y")))
    return cases


def _typed(f, a, b):
    with jax.set_mesh(a.sharding.mesh):
        return run_compiled(f, a, b, measure=("bytes_sent", "flops"))


@exercise(
    "a is split along K by y already. jax.sharding.reshard gives b rows that match; then each device has partial sums of a "
    "small product, and out_sharding says where they are added up.",
    cases=_blocks,
    mistakes=[
        Mistake(
            Edit('jax.sharding.reshard(b, P("y", None))', "b"),
            "rows of a and columns of b are gathered: K is the long dimension, and it travels",
        ),
        Mistake(
            Edit('out_sharding=P("x", "y")', 'out_sharding=P("x", None)'), "the product is to be split as a and b are"
        ),
        WhenMessage(
            "ShardingTypeError", "the error says which dimensions it got: b can be given rows split as the columns of a"
        ),
    ],
    run=_typed,
)
def distributed_mul(a, b):
    """Return the typed product a @ b, split as P("x", "y") like a and b."""
    rows = jax.sharding.reshard(b, P("y", None))
    return jnp.dot(a, rows, out_sharding=P("x", "y"))
