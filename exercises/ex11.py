"""Exercises and predictions of lesson 11, Split the layer: tensor and sequence parallelism."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Bound, Edit, Mistake, Observed, Prediction, WhenMessage, exercise, run_per_device
from utils.compat import varying

by_rows = Prediction(
    4,
    "relu needs the whole sum, so h is added up, and h is four times as wide as y",
    {
        1: "relu needs the whole sum, so h is added up, not y",
        8: "both are all-reduces over eight devices; which array?",
    },
    "times",
)
sums_a_layer = Prediction(
    4,
    "two sums forward, and one in the backward pass wherever all devices read the same norm(x)",
    {
        2: "those are the two that you wrote; in the backward pass the heads' gradients by norm(x) are added up, too",
        3: "both halves begin with a norm(x) that all devices read",
        6: "q, k and v come from one product here",
        16: "that is all four layers; one is asked",
    },
    "all-reduces",
)
apart = Prediction(
    12,
    "q, k and v bring one sum each in the backward pass, where there was one: two more, of 2 units each",
    {
        8: "x meets three split weights now, and each of them brings a sum",
        10: "two sums more, and an all-reduce is 2 units",
        24: "only the sum at the beginning of the attention comes three times",
        16: "only the sum at the beginning of the attention comes three times",
    },
    "units",
)
in_pieces = Prediction(
    8,
    "four gathers and four reduce-scatters, of 1 unit each",
    {
        4: "the backward pass sends, too: a reduce-scatter for each gather, and a gather for each reduce-scatter",
        16: "a gather is 1 unit, and so is a reduce-scatter",
        12: "a gather is 1 unit, and so is a reduce-scatter",
    },
    "units",
)
gather_again = Prediction(
    10,
    "each of the two halves gathers once more, 1 unit each",
    {
        9: "the layer has two halves, and each of them gathers",
        12: "the policy keeps what the reduce-scatters gave",
        8: "what is not kept has to be gathered again for the backward pass",
    },
    "units",
)
farthest = Prediction(
    19.7,
    "4.5 D / (n - 1) = C/W, so n = 1 + 4.5 * 8,192 / 1,970",
    {18.7: "that is n - 1"},
    "chips",
    within=0.02,
)
lowest = Prediction(
    "wrong",
    mistakes={
        "whole": "nobody fits the sum of the eight small models: each is fitted to the targets alone",
        "right": "so one would hope; but each of the eight small models fits the targets by itself",
    },
)


def _matrices():
    """q, k and v as numbers that tell which matrix, which column, which row they are from."""
    return {
        f"q, k, v, {n}": (*(100 * i + np.arange(features) + np.arange(width)[:, None] / 8 for i in (1, 2, 3)), n)
        for width, features, n in ((5, 12, 3), (7, 20, 4))
    }


@exercise(
    "Split each of the three into n pieces along its columns. Then piece 0 of q, of k and of v side by side; then piece 1 "
    "of each, and so on.",
    cases=_matrices,
    mistakes=[
        Mistake(
            Edit("for i in range(n) for three in pieces", "for three in pieces for i in range(n)"),
            "all of q, then all of k, then all of v: split into n pieces, the first device gets queries alone",
        ),
        Mistake(
            lambda q, k, v, n: np.concatenate([m[:, i::n] for i in range(n) for m in (q, k, v)], axis=1),
            "piece i is a run of neighbours, whole heads, not every n-th column",
        ),
        Mistake(
            lambda q, k, v, n: np.stack([q, k, v], axis=2).reshape(len(q), -1),
            "the devices get the right columns, in another order: of a piece, the first third is q, then k, then v",
        ),
        Mistake(
            Edit("side_by_side, axis=1", "side_by_side, axis=0"), "the pieces stand side by side, along the columns"
        ),
    ],
    question="Which columns does piece 0 of your matrix hold?",
)
def one_matrix(q, k, v, n):
    """Three (width, features) -> (width, 3 * features): n pieces of q, k, v each."""
    pieces = [np.split(matrix, n, axis=1) for matrix in (q, k, v)]
    side_by_side = [three[i] for i in range(n) for three in pieces]
    return np.concatenate(side_by_side, axis=1)


GATED = {"gate": P(None, "model"), "up": P(None, "model"), "down": P("model"), "bias": P()}


def _gated(f, n):
    """The result on n devices, and the gradients of a weighted sum of it."""
    rng = np.random.default_rng(n)
    tokens, width, hidden = 11, 6, 3 * n
    sizes = {"gate": (width, hidden), "up": (width, hidden), "down": (hidden, width), "bias": (width,)}
    w = {name: np.float32(rng.normal(size=size)) for name, size in sizes.items()}
    x, weighted = np.float32(rng.normal(size=(2, tokens, width)))

    def program(w, x):
        def value(w, x):
            result = f(x, w)
            return (result * weighted).sum(), result

        return jax.grad(value, argnums=(0, 1), has_aux=True)(w, x)

    specs = {"in_specs": (GATED, P()), "out_specs": ((GATED, P()), P())}
    seen = run_per_device(program, w, x, mesh={"model": n}, **specs)
    (by_w, by_x), result = seen.pop("")
    gradients = {f"the gradient by {name}": gradient for name, gradient in {"x": by_x, **by_w}.items()}
    return Observed({"": result, **gradients, **seen})


@exercise(
    "`gate` and `up` are split by columns, `down` by rows. Type x as varying once, before both products; add the bias behind "
    "the sum.",
    cases={"on 4 devices": (4,), "on 8 devices": (8,)},
    run=_gated,
    within=1e-3,
    mistakes=[
        Mistake(
            Edit('h @ w["down"], "model") + w["bias"]', 'h @ w["down"] + w["bias"], "model")'),
            "each device adds the bias to its partial sum, so it counts once for each device. Where is it added once?",
        ),
        Mistake(
            Edit('varying(x, "model")', "x"),
            "x meets two split weights, and each brings a sum in the backward pass. What makes x varying "
            "once, before both?",
        ),
        Mistake(Edit("jax.lax.psum", "jax.lax.pmean"), "a product is a sum over the hidden features, not a mean"),
        Mistake(
            Edit('jax.lax.psum(h @ w["down"], "model")', 'h @ w["down"]'),
            "by its type, your result differs from device to device. What in it varies and is not added up?",
        ),
        Mistake(
            Edit('silu(x @ w["gate"]) * (x @ w["up"])', 'silu(x @ w["up"]) * (x @ w["gate"])'),
            "silu stands around `gate`",
        ),
    ],
    question="The layer is (silu(x @ gate) * (x @ up)) @ down + bias. Which of these products is a partial sum?",
)
def gated_mlp(x, w):
    """Per device: whole x (tokens, width), its parts of w -> the result, whole."""
    x = varying(x, "model")  # one f for both products
    h = jax.nn.silu(x @ w["gate"]) * (x @ w["up"])
    return jax.lax.psum(h @ w["down"], "model") + w["bias"]


@exercise(
    "Per token: 6 * params / n FLOPs; four all-reduces of width numbers, 2 bytes each: 4 * 2 (n - 1)/n * 2 * width bytes. "
    "FLOPs / bytes = ratio where they take equally long.",
    cases=[(8192, 856e6, 1970), (4096, 218e6, 2199), (12288, 1.8e9, 19_790)],
    mistakes=[
        Mistake(
            Edit("6 * params", "2 * params"),
            "that is the forward pass alone: the backward pass has two products for each of its",
        ),
        Mistake(
            Edit("(4 * 2", "(2 * 2"),
            "a factor of 2 is missing: four all-reduces, each sends 2 (n - 1)/n of the activations, in 2 bytes",
        ),
        Mistake(
            Edit("1 +", ""),
            "the part that a chip need not send is missing: with (n - 1)/n, n - 1 stands where you have n",
        ),
        Mistake(
            Edit("* ratio)", "/ ratio)"), "a chip that computes faster while it sends a byte waits earlier, not later"
        ),
        Mistake(Edit("* 2 * width", "* 4 * width"), "a number in bfloat16 takes 2 bytes"),
    ],
    question="Set the seconds of a token's FLOPs equal to those of its bytes, and solve for n.",
)
def most_chips(width, params, ratio):
    """Return the n, rarely whole, at which sends and products take equally long."""
    return 1 + 6 * params / (4 * 2 * 2 * width * ratio)


TOKENS, WORDS = 6, 40


def _of_vocabulary(f, n, size):
    """The loss and its gradient, of logits of this size, and how many numbers a device sends for a token."""
    rng = np.random.default_rng(11)
    logits = np.float32(rng.integers(-12, 13, (TOKENS, WORDS)) / 4 * size)
    logits[2] -= 2 * size
    targets = np.int32([7, 39, 12, 0, 26, 18])
    words = P(None, "model")
    specs = {"in_specs": (words, P()), "out_specs": (P(), words)}
    seen = run_per_device(jax.value_and_grad(f), logits, targets, mesh={"model": n}, **specs)
    (loss, gradient), sent = seen[""], seen["bytes that a device sends"].value
    numbers = Bound(sent / 4 / TOKENS, slack=4, margin=0)
    return Observed(
        {"": loss, "the gradient by the logits": gradient, "numbers that a device sends for a token": numbers}
    )


@exercise(
    "Three numbers for each token, each brought together over 'model': the largest logit (pmax of a stop_gradient), the sum "
    "of exp(logits - largest), and the target's logit, which is 0 on all devices but one.",
    cases={"on 4 devices": (4, 1), "on 8 devices": (8, 1), "on 8 devices, logits in the thousands": (8, 2000)},
    run=_of_vocabulary,
    within=1e-3,
    mistakes=[
        WhenMessage(
            "Differentiation rule",
            "`pmax` has no derivative. For the largest logit none is needed: put `jax.lax.stop_gradient` "
            "inside of the pmax",
        ),
        WhenMessage(
            "out_specs",
            "Your loss is typed as each device's own. Which of its parts is not yet brought together over 'model'?",
        ),
        Mistake(
            Edit(' - jax.lax.axis_index("model") * logits.shape[1]', ""),
            "targets are numbers in the whole vocabulary; a device's words begin at axis_index times its width",
        ),
        Mistake(
            [Edit("jnp.exp(logits - top[:, None])", "jnp.exp(logits)"), Edit("top +", "")],
            "exp of such logits has no place in float32. Take the largest out first, of each token, over all devices",
        ),
        Mistake(Edit("psum(jnp.exp", "pmean(jnp.exp"), "the exponentials are added up over the devices, not averaged"),
        Mistake(
            Edit("(top + jnp.log(total) - hit).mean()", "(top + jnp.log(total) - hit).sum()"),
            "the loss is the mean over the tokens",
        ),
        WhenMessage("numbers that a device sends", "Which collective carries logits? Each token needs three numbers"),
    ],
    question="The loss of a token is log(sum(exp(logits))) - logits[target], over the words of all devices.",
)
def vocabulary_loss(logits, targets):
    """Per device: logits (tokens, words / n), whole targets (tokens,) -> mean loss."""
    top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(1)), "model")
    total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(1), "model")
    place = targets - jax.lax.axis_index("model") * logits.shape[1]
    mine = place[:, None] == jnp.arange(logits.shape[1])  # nowhere, for another device's word
    hit = jax.lax.psum((mine * logits).sum(1), "model")
    return (top + jnp.log(total) - hit).mean()
