"""Exercises and predictions of lesson 10, Shard the weights: fully sharded training (FSDP)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Bound, Edit, Mistake, Observed, Prediction, WhenMessage, exercise, run_per_device

_SCATTER = "each device needs the sum of its own piece alone: a reduce-scatter, one round"
_PILE = "the backward pass multiplies by the weights of every layer; who keeps them until then?"

stage_1 = Prediction(
    5.5,
    "weights and gradients are whole, 2 + 2 bytes, and an eighth of the optimizer's 12 is left: 1.5",
    {
        9: "the float32 weights belong to the optimizer's 12 bytes",
        2: "all 16 are cut only at stage 3",
        3.75: "that is stage 2",
        16: "stage 1 cuts the optimizer's 12",
    },
    "bytes",
)
before = Prediction(
    2, f"weights are gathered, one round; {_SCATTER}", {3: _SCATTER, 1: "the gradients must be added up, too"}, "rounds"
)
kept = Prediction(8, _PILE, {1: _PILE, 0: _PILE, 16: "a layer has two matrices; layers are asked"}, "layers")
again = Prediction(
    3,
    "two gathers and one sum: `checkpoint` runs the layer again, and the gather is part of the layer",
    {4: f"two gathers and one sum; {_SCATTER}"},
    "rounds",
    within=0.01,
)
squares = Prediction(
    64,
    "the gradient is 8 times too large, and `nu` averages its square",
    {1: "the moments keep the size of the gradient; only Adam's step divides it away"},
    "times",
    within=0.01,
)
hidden_at = Prediction(
    1970,
    "3 rounds of 2 bytes stand against 6 FLOPs, so T is C/W",
    {3940: "2 bytes and 6 FLOPs: 3 * 2 / 6 is 1", 985: "a number in bfloat16 takes 2 bytes"},
    "tokens",
    within=0.02,
)


@exercise(
    "Three parts: weights 2, gradients 2, optimizer 12. A stage divides its part, and those before, by n. Add them up.",
    cases=[(numbers, n, stage) for numbers, n in ((7.5e9, 64), (1.3e9, 8), (70e9, 24)) for stage in range(4)],
    mistakes=[
        Mistake(Edit("stage >= 3", "stage >= 2"), "at stage 2 the weights are still whole, 2 bytes"),
        Mistake(
            Edit("12", "8", count=2), "the float32 copy of the weights is missing: 4 bytes more, cut with the moments"
        ),
        Mistake(Edit(">=", "==", count=3), "each stage cuts its own part alone; it keeps the cuts of those before"),
        Mistake(
            [Edit("stage >= 2", "stage >= 1"), Edit("stage >= 3", "stage >= 1")],
            "stage 1 cuts the optimizer's 12 bytes alone",
        ),
        Mistake(
            [Edit("optimizer = 12", "optimizer = 2"), Edit("gradients = 2", "gradients = 12")],
            "the order is another: first the optimizer, 12 bytes",
        ),
    ],
    question="Which of the three parts is cut at this stage, and what is still whole?",
)
def zero_memory(numbers, n, stage):
    """Return the bytes that each of n chips holds for this many parameters."""
    optimizer = 12 / n if stage >= 1 else 12
    gradients = 2 / n if stage >= 2 else 2
    weights = 2 / n if stage >= 3 else 2
    return numbers * (optimizer + gradients + weights)


DEPTH, WIDTH, HIDDEN = 6, 24, 40
CUT = dict.fromkeys("abc", P(None, None, "data"))


def _gated(f, n):
    """The loss, and on eight devices its gradient: the value shows most slips, and is sooner compiled."""
    rng = np.random.default_rng(n)
    sizes = {"a": (DEPTH, WIDTH, HIDDEN), "b": (DEPTH, WIDTH, HIDDEN), "c": (DEPTH, HIDDEN, WIDTH)}
    params = {name: np.float32(0.8 * rng.normal(size=s) / s[1] ** 0.5) for name, s in sizes.items()}
    x, y = (np.float32(rng.normal(size=(5 * n, WIDTH))) for _ in range(2))
    y *= np.float32(1 + np.arange(5 * n)[:, None] / (5 * n))  # the last device's loss is the largest
    specs = {"in_specs": (CUT, P("data"), P("data")), "out_specs": (P(), CUT) if n == 8 else P()}
    f = jax.value_and_grad(f) if n == 8 else f
    seen = run_per_device(f, params, x, y, mesh={"data": n}, measure=("bytes_sent", "largest_array"), **specs)
    largest = "bytes of the largest array on a device"  # a layer's three weights may be gathered as one
    return Observed({**seen, largest: Bound(seen[largest].value, slack=3)})


@exercise(
    "As `again`: a layer that gathers its three weights along their last axis (`axis=1` of a layer's matrix, "
    "`tiled=True`), in jax.checkpoint, in a scan; then the mean, and `pmean` over 'data'.",
    cases={"of 4 devices": (4,), "of 8 devices, with its gradient": (8,)},
    run=_gated,
    within=1e-3,
    mistakes=[
        Mistake(Edit("pmean", "psum"), "psum adds up the means of the devices; the mean over all rows is their mean"),
        Mistake(
            Edit('jax.lax.pmean(((x - y) ** 2).mean(), "data")', "((x - y) ** 2).mean()"),
            "each device has a loss of its own. What averages it over 'data', and types it as shared?",
        ),
        Mistake(
            Edit("@jax.checkpoint", ""),
            "the whole weights of all layers are kept for the backward pass. What gathers again?",
        ),
        Mistake(
            Edit("axis=1", "axis=0"),
            "gathered along its rows, a weight is too long. Which axis do the pieces lie along?",
        ),
        Mistake(Edit("return x +", "return"), "the layer's input is not added to its result"),
        WhenMessage(
            "bytes that a device sends",
            "A step sends three rounds: two gathers, and one sum of which each device keeps its piece",
        ),
        WhenMessage(
            "largest array", "The weights of all layers are whole at once. What stands inside of jax.checkpoint?"
        ),
    ],
    question="The layer is x + (tanh(x @ a) * (x @ b)) @ c. Which weights does it multiply with, and over which rows is the mean?",
)
def gated_loss(params, x, y):
    """Per device: a dict of pieces a, b, c; own rows x, y -> the loss of all, ()."""

    @jax.checkpoint
    def layer(x, pieces):
        whole = {k: jax.lax.all_gather(p, "data", axis=1, tiled=True) for k, p in pieces.items()}
        return x + (jnp.tanh(x @ whole["a"]) * (x @ whole["b"])) @ whole["c"], None

    x, _ = jax.lax.scan(layer, x, params)
    return jax.lax.pmean(((x - y) ** 2).mean(), "data")


@exercise(
    "For each parameter: (2 weight_bytes + gradient_bytes) (n - 1)/n / rate seconds to send, work T / flops to compute.",
    cases=[(197e12, 100e9, 8, 0.5, 4, 7), (989.5e12, 450e9, 64, 1, 4, 6), (459e12, 200e9, 5, 2, 4, 8)],
    mistakes=[
        Mistake(Edit("2 * weight_bytes", "weight_bytes"), "the weights are gathered twice, forward and backward"),
        Mistake(Edit("+ gradient_bytes", ""), "the gradients travel, too"),
        Mistake(
            Edit("2 * weight_bytes + gradient_bytes", "2 * (weight_bytes + gradient_bytes)"),
            "gradients are reduce-scattered, half of an all-reduce",
        ),
        Mistake(Edit("2 * weight_bytes + gradient_bytes", "3"), "you count numbers, not bytes"),
        Mistake(Edit("(n - 1) / n", "1"), "a device has its own n-th of each round already: (n - 1)/n"),
        Mistake(Edit("/ rate * flops", "* rate / flops"), "a faster chip needs more tokens, and a faster wire fewer"),
    ],
    question="Set the seconds for sending one parameter's bytes equal to those of its work on T tokens, and solve for T.",
)
def tokens_to_hide(flops, rate, n, weight_bytes, gradient_bytes, work):
    """Return the tokens on each of n chips at which sending takes as long as work."""
    sent = (2 * weight_bytes + gradient_bytes) * (n - 1) / n  # bytes for each parameter
    return sent / rate * flops / work
