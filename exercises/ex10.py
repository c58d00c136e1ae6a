"""Exercises and predictions for lesson 10, Shard the weights: fully sharded training (FSDP)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Bound,
    Edit,
    MessageHint,
    Mistake,
    Prediction,
    RunResult,
    build_mesh,
    exercise,
    run_compiled,
    run_per_device,
)

_REDUCE_SCATTER = "each device needs only the sum of its own piece, which is a reduce-scatter: one round"
_BACKWARD = "the backward pass multiplies by the weights of every layer, so all of them are kept until then"

stage_1 = Prediction(
    5.5,
    "weights and gradients are replicated, 2 + 2 bytes, and an eighth of the optimizer's 12 bytes is left: 1.5",
    {
        9: "the float32 weights are part of the optimizer's 12 bytes",
        2: "all 16 bytes are sharded only at stage 3",
        3.75: "that's stage 2",
        16: "stage 1 shards the optimizer's 12 bytes",
    },
    "bytes",
)
gather_before_loop = Prediction(
    2,
    f"the weights are gathered, which is one round; {_REDUCE_SCATTER}",
    {3: _REDUCE_SCATTER, 1: "the gradients must be added up too"},
    "rounds",
)
kept = Prediction(
    8,
    _BACKWARD,
    {1: _BACKWARD, 0: _BACKWARD, 16: "a layer has two matrices, but the question is about layers"},
    "layers",
)
regather_and_recompute = Prediction(
    3,
    "there are two gathers and one sum: `checkpoint` runs the layer again, and the gather is part of the layer",
    {4: f"there are two gathers and one sum; {_REDUCE_SCATTER}"},
    "rounds",
    rel_tol=0.01,
)
squares = Prediction(
    64,
    "the gradient is 8 times too large, and `nu` averages its square",
    {1: "the moments scale with the gradient; only Adam's step divides the scale out"},
    "times",
    rel_tol=0.01,
)
hidden_at = Prediction(
    1970,
    "sending takes 3 rounds of 2 bytes and computing takes 6 FLOPs, so T is C/W",
    {3940: "with 2 bytes and 6 FLOPs, 3 * 2 / 6 is 1", 985: "an element in bfloat16 takes 2 bytes"},
    "tokens",
    rel_tol=0.02,
)


@exercise(
    "There are three parts: weights 2, gradients 2, optimizer 12. A stage divides its own part and "
    "those of the earlier stages by n. Add them up.",
    cases=[(numbers, n, stage) for numbers, n in ((7.5e9, 64), (1.3e9, 8), (70e9, 24)) for stage in range(4)],
    mistakes=[
        Mistake(Edit("stage >= 3", "stage >= 2"), "at stage 2 the weights are still replicated, at 2 bytes"),
        Mistake(
            Edit("12", "8", count=2),
            "the float32 copy of the weights is missing: 4 more bytes, sharded with the moments",
        ),
        Mistake(
            Edit(">=", "==", count=3),
            "each stage keeps the sharding of the earlier stages, and you shard only its own part",
        ),
        Mistake(
            [Edit("stage >= 2", "stage >= 1"), Edit("stage >= 3", "stage >= 1")],
            "stage 1 shards only the optimizer's 12 bytes",
        ),
        Mistake(
            [Edit("optimizer = 12", "optimizer = 2"), Edit("gradients = 2", "gradients = 12")],
            "the order is different: the optimizer's 12 bytes come first",
        ),
    ],
    question="Which of the three parts are sharded at this stage, and which are still replicated?",
)
def zero_memory(numbers, n, stage):
    """Return the bytes that each of n chips holds for this many parameters."""
    optimizer = 12 / n if stage >= 1 else 12
    gradients = 2 / n if stage >= 2 else 2
    weights = 2 / n if stage >= 3 else 2
    return numbers * (optimizer + gradients + weights)


DEPTH, WIDTH, HIDDEN = 6, 24, 40
SHARDED = dict.fromkeys("abc", P(None, None, "data"))


def _run_gated_loss(f, n):
    """Compute the loss and, on eight devices, its gradient. The loss alone compiles faster and shows most mistakes."""
    rng = np.random.default_rng(n)
    sizes = {"a": (DEPTH, WIDTH, HIDDEN), "b": (DEPTH, WIDTH, HIDDEN), "c": (DEPTH, HIDDEN, WIDTH)}
    params = {name: np.float32(0.8 * rng.normal(size=s) / s[1] ** 0.5) for name, s in sizes.items()}
    x, y = (np.float32(rng.normal(size=(5 * n, WIDTH))) for _ in range(2))
    y *= np.float32(1 + np.arange(5 * n)[:, None] / (5 * n))  # the last device's loss is the largest
    specs = {"in_specs": (SHARDED, P("data"), P("data")), "out_specs": (P(), SHARDED) if n == 8 else P()}
    f = jax.value_and_grad(f) if n == 8 else f
    observed = run_per_device(f, params, x, y, mesh={"data": n}, measure=("bytes_sent", "largest_array"), **specs)
    label = "bytes of the largest array on a device"  # a layer's three weights may be gathered as one array
    return RunResult({**observed, label: Bound(observed[label].value, slack=3)})


@exercise(
    "As in `regather_and_recompute`: write a layer that gathers its three weights along their last axis (`axis=1` of "
    "a layer's matrix, `tiled=True`), in jax.checkpoint, in a scan; then take the mean, and `pmean` "
    "over 'data'.",
    cases={"of 4 devices": (4,), "of 8 devices, with its gradient": (8,)},
    run=_run_gated_loss,
    rel_tol=1e-3,
    mistakes=[
        Mistake(
            Edit("pmean", "psum"), "psum adds up the devices' means, but the mean over all rows is the mean of them"
        ),
        Mistake(
            Edit('jax.lax.pmean(((x - y) ** 2).mean(), "data")', "((x - y) ** 2).mean()"),
            "each device has a loss of its own. What averages it over 'data', and gives it a shared type?",
        ),
        Mistake(
            Edit("@jax.checkpoint", ""),
            "the full weights of all layers are kept for the backward pass. What gathers them again?",
        ),
        Mistake(
            Edit("axis=1", "axis=0"),
            "gathered along its rows, a weight is too long. Along which axis is it split?",
        ),
        Mistake(Edit("return x +", "return"), "you don't add the layer's input to its result"),
        MessageHint(
            "bytes that a device sends",
            "A step takes three rounds: two gathers, and one sum of which each device keeps its own piece",
        ),
        MessageHint(
            "largest array", "The full weights of all layers exist at the same time. What's inside jax.checkpoint?"
        ),
    ],
    question=(
        "The layer is x + (tanh(x @ a) * (x @ b)) @ c. Which weights does it multiply by, and which rows "
        "is the mean over?"
    ),
)
def gated_loss(params, x, y):
    """Return the loss over all rows, given a device's pieces a, b, c and rows x, y."""

    @jax.checkpoint
    def layer(x, pieces):
        full = {k: jax.lax.all_gather(p, "data", axis=1, tiled=True) for k, p in pieces.items()}
        return x + (jnp.tanh(x @ full["a"]) * (x @ full["b"])) @ full["c"], None

    x, _ = jax.lax.scan(layer, x, params)
    return jax.lax.pmean(((x - y) ** 2).mean(), "data")


BYTE_SIZES = {"embed": (256, 64), "up": (2, 64, 256), "down": (2, 256, 64)}
BYTE_SPECS = {"embed": P("data"), "up": P(None, "data"), "down": P(None, None, "data")}


def _run_byte_model(f):
    """Compute the loss of eight texts and its gradient, which is sharded like the parameters, and measure the costs."""
    rng, mesh = np.random.default_rng(0), build_mesh({"data": 8})
    params = {name: np.float32(rng.normal(size=size) / size[-2] ** 0.5) for name, size in BYTE_SIZES.items()}
    params["embed"] *= 2
    text = rng.integers(256, size=(8, 65), dtype=np.int32)
    shardings = {name: NamedSharding(mesh, spec) for name, spec in BYTE_SPECS.items()}
    with jax.set_mesh(mesh):
        params, text = jax.device_put(params, shardings), jax.device_put(text, NamedSharding(mesh, P("data")))
        options = {"measure": ("bytes_sent", "flops"), "out_shardings": (None, shardings)}
        return run_compiled(jax.value_and_grad(f), params, text, **options)


@exercise(
    "The texts are split over the devices. After the lookup, what decides how x is sharded? "
    'Fix it with jax.lax.with_sharding_constraint(x, P("data")), before the layers.',
    cases={"its loss and its gradient": ()},
    run=_run_byte_model,
    hide_expected=True,
    rel_tol=1e-3,
    mistakes=[
        Mistake(
            Edit('    x = jax.lax.with_sharding_constraint(x, P("data"))\n', ""),
            "no constraint keeps the batch split, so the compiler splits the features and all-reduces the activations",
        ),
        Mistake(
            Edit('(x, P("data"))', "(x, P())"),
            "P() replicates the batch on every device. Which dimension of x should be split?",
        ),
        Mistake(
            Edit('(x, P("data"))', '(x, P(None, "data"))'),
            "that splits the positions of each text, but each device stores full texts. Which dimension is the batch?",
        ),
        MessageHint(
            "bytes that a device sends",
            "The program should send weights and gradients, not activations. Where does the batch enter the network?",
        ),
    ],
    question=(
        "The function should compute the same loss as byte_loss, with one constraint added. What else did you change?"
    ),
)
def keep_batch_split(params, text):
    """Return byte_loss(params, text), with one more sharding constraint."""
    x = params["embed"][text[:, :-1]]
    x = jax.lax.with_sharding_constraint(x, P("data"))

    @jax.checkpoint
    def layer(x, w):
        return x + jax.nn.relu(x @ w["up"]) @ w["down"], None

    x, _ = jax.lax.scan(layer, x, {name: params[name] for name in ("up", "down")})
    logp = jax.nn.log_softmax(x @ params["embed"].T)
    return -jnp.take_along_axis(logp, text[:, 1:, None], axis=-1).mean()


@exercise(
    "For each parameter, sending takes (2 weight_bytes + gradient_bytes) (n - 1)/n / rate seconds, "
    "and computing takes work T / flops.",
    cases=[(197e12, 100e9, 8, 0.5, 4, 7), (989.5e12, 450e9, 64, 1, 4, 6), (459e12, 200e9, 5, 2, 4, 8)],
    mistakes=[
        Mistake(
            Edit("2 * weight_bytes", "weight_bytes"),
            "the weights are gathered twice, in the forward and in the backward pass",
        ),
        Mistake(Edit("+ gradient_bytes", ""), "the gradients are sent too"),
        Mistake(
            Edit("2 * weight_bytes + gradient_bytes", "2 * (weight_bytes + gradient_bytes)"),
            "the gradients are reduce-scattered, which is half of an all-reduce",
        ),
        Mistake(Edit("2 * weight_bytes + gradient_bytes", "3"), "you're counting elements, not bytes"),
        Mistake(Edit("(n - 1) / n", "1"), "a device already has its own n-th in each round: (n - 1)/n"),
        Mistake(
            Edit("/ rate * flops", "* rate / flops"), "a faster chip needs more tokens, and a faster link needs fewer"
        ),
    ],
    question=(
        "Set the seconds for sending one parameter's bytes equal to those for its work on T tokens, and solve for T."
    ),
)
def tokens_to_hide(flops, rate, n, weight_bytes, gradient_bytes, work):
    """Return the tokens per chip at which n chips send for as long as they compute."""
    sent = (2 * weight_bytes + gradient_bytes) * (n - 1) / n  # bytes for each parameter
    return sent / rate * flops / work
