"""Exercises and predictions for lesson 11, Split the layer: tensor and sequence parallelism."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Bound, Edit, MessageHint, Mistake, Prediction, RunResult, exercise, run_per_device
from utils.compat import pcast

by_rows = Prediction(
    4,
    "relu needs the complete sum, so h has to be all-reduced, and h is four times as wide as y",
    {
        1: "relu needs the complete sum, so h has to be all-reduced, not y",
        8: "both are all-reduces over eight devices, but of which array?",
    },
    "times",
)
sums_a_layer = Prediction(
    4,
    "two sums in the forward pass, and one in the backward pass wherever all devices read the same norm(x)",
    {
        2: "those are the two that you wrote; in the backward pass, the heads' gradients with respect to "
        "norm(x) are added up too",
        3: "both halves start with a norm(x) that all devices read",
        6: "q, k and v come from one product here",
        16: "that's the number in all four layers, but the question is about one",
    },
    "all-reduces",
)
apart = Prediction(
    12,
    "q, k and v each need a sum in the backward pass, instead of one for all three: two more sums, at 2 units each",
    {
        8: "x is now multiplied by three split weights, and each product needs a sum in the backward pass",
        10: "there are two more sums, and an all-reduce is 2 units",
        24: "only the sum at the beginning of the attention happens three times",
        16: "only the sum at the beginning of the attention happens three times",
    },
    "units",
)
in_pieces = Prediction(
    8,
    "it's four gathers and four reduce-scatters, of 1 unit each",
    {
        4: "the backward pass sends too: a reduce-scatter for each gather, and a gather for each reduce-scatter",
        16: "a gather is 1 unit, and so is a reduce-scatter",
        12: "a gather is 1 unit, and so is a reduce-scatter",
    },
    "units",
)
gather_again = Prediction(
    10,
    "each of the two halves gathers once more, at 1 unit each",
    {
        9: "the layer has two halves, and each of them gathers",
        12: "the policy keeps the results of the reduce-scatters",
        8: "anything that isn't kept has to be gathered again for the backward pass",
    },
    "units",
)
farthest = Prediction(
    19.7,
    "4.5 D / (n - 1) = C/W, so n = 1 + 4.5 * 8,192 / 1,970",
    {18.7: "that's n - 1"},
    "chips",
    rel_tol=0.02,
)
lowest = Prediction(
    "wrong",
    mistakes={
        "whole": "the models' sum isn't fitted to anything: each of the eight is fitted to the targets on its own",
        "right": "that would be nice, but each of the eight small models fits the targets by itself",
    },
)


def _matrix_cases():
    """Make matrices q, k and v in which each element encodes its matrix, column and row."""
    return {
        f"q, k, v, {n}": (*(100 * i + np.arange(features) + np.arange(width)[:, None] / 8 for i in (1, 2, 3)), n)
        for width, features, n in ((5, 12, 3), (7, 20, 4))
    }


@exercise(
    "Split each of the three into n pieces along its columns. Put piece 0 of q, of k and of v side "
    "by side, then piece 1 of each, and so on.",
    cases=_matrix_cases,
    mistakes=[
        Mistake(
            Edit("for i in range(n) for three in pieces", "for three in pieces for i in range(n)"),
            "your matrix is all of q, then all of k, then all of v: if it's split into n pieces, the first device "
            "gets only queries",
        ),
        Mistake(
            lambda q, k, v, n: np.concatenate([m[:, i::n] for i in range(n) for m in (q, k, v)], axis=1),
            "piece i consists of neighbouring columns, which are entire heads, not of every n-th column",
        ),
        Mistake(
            lambda q, k, v, n: np.stack([q, k, v], axis=2).reshape(len(q), -1),
            "the devices get the right columns, but in the wrong order: the first third of a piece is q, "
            "then come k and v",
        ),
        Mistake(Edit("side_by_side, axis=1", "side_by_side, axis=0"), "the pieces are side by side, along the columns"),
    ],
    question="Which columns are in piece 0 of your matrix?",
)
def one_matrix(q, k, v, n):
    """Return one matrix (width, 3 * features) that interleaves n pieces of q, k, v."""
    pieces = [np.split(matrix, n, axis=1) for matrix in (q, k, v)]
    side_by_side = [three[i] for i in range(n) for three in pieces]
    return np.concatenate(side_by_side, axis=1)


GATED = {"gate": P(None, "model"), "up": P(None, "model"), "down": P("model"), "bias": P()}


def _run_gated_mlp(f, n):
    """Run f on n devices, and return its result and the gradients of a weighted sum of the result's elements."""
    rng = np.random.default_rng(n)
    tokens, width, hidden = 11, 6, 3 * n
    sizes = {"gate": (width, hidden), "up": (width, hidden), "down": (hidden, width), "bias": (width,)}
    w = {name: np.float32(rng.normal(size=size)) for name, size in sizes.items()}
    x, weights = rng.normal(size=(2, tokens, width)).astype(np.float32)

    def program(w, x):
        def value(w, x):
            result = f(x, w)
            return (result * weights).sum(), result

        return jax.grad(value, argnums=(0, 1), has_aux=True)(w, x)

    specs = {"in_specs": (GATED, P()), "out_specs": ((GATED, P()), P())}
    observed = run_per_device(program, w, x, mesh={"model": n}, **specs)
    (by_w, by_x), result = observed.pop("")
    gradients = {f"the gradient with respect to {name}": gradient for name, gradient in {"x": by_x, **by_w}.items()}
    return RunResult({"": result, **gradients, **observed})


@exercise(
    "`gate` and `up` are split by columns, and `down` by rows. Make x varying once, before both "
    "products, and add the bias after the sum.",
    cases={"on 4 devices": (4,), "on 8 devices": (8,)},
    run=_run_gated_mlp,
    rel_tol=1e-3,
    mistakes=[
        Mistake(
            Edit('h @ w["down"], "model") + w["bias"]', 'h @ w["down"] + w["bias"], "model")'),
            "each device adds the bias to its partial sum, so it's added n times. Where would it be added only once?",
        ),
        Mistake(
            Edit('pcast(x, "model", to="varying")', "x"),
            "x is multiplied by two split weights, and each product needs a sum in the backward pass. How can you make "
            "x varying only once, before both?",
        ),
        Mistake(Edit("jax.lax.psum", "jax.lax.pmean"), "a product is a sum over the hidden features, not a mean"),
        Mistake(
            Edit('jax.lax.psum(h @ w["down"], "model")', 'h @ w["down"]'),
            "according to its type, your result varies between devices. Which part of it isn't summed yet?",
        ),
        Mistake(
            Edit('silu(x @ w["gate"]) * (x @ w["up"])', 'silu(x @ w["up"]) * (x @ w["gate"])'),
            "silu applies to `gate`",
        ),
    ],
    question="The layer is (silu(x @ gate) * (x @ up)) @ down + bias. Which of these products is a partial sum?",
)
def gated_mlp(x, w):
    """Return the full result, given x (tokens, width) and a device's parts of w."""
    x = pcast(x, "model", to="varying")  # once, for both products
    h = jax.nn.silu(x @ w["gate"]) * (x @ w["up"])
    return jax.lax.psum(h @ w["down"], "model") + w["bias"]


@exercise(
    "A token needs 6 * params / n FLOPs and four all-reduces of `width` elements, 2 bytes each: 4 * "
    "2 (n - 1)/n * 2 * width bytes. Both take the same time if FLOPs / bytes = ratio.",
    cases=[(8192, 856e6, 1970), (4096, 218e6, 2199), (12288, 1.8e9, 19_790)],
    mistakes=[
        Mistake(
            Edit("6 * params", "2 * params"),
            "that's only the forward pass: for each product in it, the backward pass has two",
        ),
        Mistake(
            Edit("(4 * 2", "(2 * 2"),
            "a factor of 2 is missing: each of the four all-reduces sends 2 (n - 1)/n of the activations, at "
            "2 bytes each",
        ),
        Mistake(
            Edit("1 +", ""),
            "you forgot that a chip doesn't send its own part: with (n - 1)/n, your result is n - 1, so add 1",
        ),
        Mistake(
            Edit("* ratio)", "/ ratio)"),
            "the more FLOPs a chip computes while it sends a byte, the fewer chips it takes until sending takes longer",
        ),
        Mistake(Edit("* 2 * width", "* 4 * width"), "an element in bfloat16 takes 2 bytes"),
    ],
    question="Set the seconds for a token's FLOPs equal to those for its bytes, and solve for n.",
)
def most_chips(width, params, ratio):
    """Return the (fractional) n at which sends and products take equally long."""
    return 1 + 6 * params / (4 * 2 * 2 * width * ratio)


TOKENS, WORDS = 6, 40


def _run_on_logits(f, n, size):
    """Run f on logits scaled by `size`; return the loss, its gradient, and the elements sent per device and token."""
    rng = np.random.default_rng(11)
    logits = (rng.integers(-12, 13, (TOKENS, WORDS)) / 4 * size).astype(np.float32)
    logits[2] -= 2 * size
    targets = np.array([7, 39, 12, 0, 26, 18], np.int32)
    words = P(None, "model")
    specs: dict[str, Any] = {"in_specs": (words, P()), "out_specs": (P(), words)}
    observed = run_per_device(jax.value_and_grad(f), logits, targets, mesh={"model": n}, **specs)
    (loss, gradient), sent = observed[""], observed["bytes that a device sends"].value
    numbers = Bound(sent / 4 / TOKENS, slack=4, margin=0)
    return RunResult(
        {
            "": loss,
            "the gradient with respect to the logits": gradient,
            "elements that a device sends for a token": numbers,
        }
    )


@exercise(
    "There are three numbers per token, each combined over 'model': the largest logit (pmax of a "
    "stop_gradient), the sum of exp(logits - largest), and the target's logit, which is 0 on all "
    "devices but one.",
    cases={"on 4 devices": (4, 1), "on 8 devices": (8, 1), "on 8 devices, logits in the thousands": (8, 2000)},
    run=_run_on_logits,
    rel_tol=1e-3,
    mistakes=[
        MessageHint(
            "Differentiation rule",
            "`pmax` has no derivative, but the largest logit doesn't need one: put `jax.lax.stop_gradient` "
            "inside the pmax",
        ),
        MessageHint(
            "out_specs",
            "According to its type, your loss varies between devices. Which part isn't combined over 'model' yet?",
        ),
        Mistake(
            Edit(' - jax.lax.axis_index("model") * logits.shape[1]', ""),
            "targets are indices into the full vocabulary; a device's words start at axis_index times its width",
        ),
        Mistake(
            [Edit("jnp.exp(logits - top[:, None])", "jnp.exp(logits)"), Edit("top +", "")],
            "float32 can't represent exp of such logits. Subtract the largest logit of each token, over all "
            "devices, first",
        ),
        Mistake(Edit("psum(jnp.exp", "pmean(jnp.exp"), "the exponentials are added up over the devices, not averaged"),
        Mistake(
            Edit("(top + jnp.log(total) - hit).mean()", "(top + jnp.log(total) - hit).sum()"),
            "the loss is the mean over the tokens",
        ),
        MessageHint(
            "elements that a device sends", "Which collective sends logits? Each token needs only three numbers"
        ),
    ],
    question="The loss of a token is log(sum(exp(logits))) - logits[target], over the words of all devices.",
)
def vocabulary_loss(logits, targets):
    """Return the mean loss, given logits (tokens, words / n) and targets (tokens,)."""
    top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(1)), "model")
    total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(1), "model")
    place = targets - jax.lax.axis_index("model") * logits.shape[1]
    # False everywhere if the word belongs to another device
    mine = place[:, None] == jnp.arange(logits.shape[1])
    hit = jax.lax.psum((mine * logits).sum(1), "model")
    return (top + jnp.log(total) - hit).mean()
