"""Exercises and predictions for lesson 13, Split the sequence: long contexts."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, exercise, run_per_device

_FIRST_ROW = "on which devices is the index of a row also the position of its token?"
_RETURN = "a gradient starts from zero on its owner and must return to it: eight sends"

rescaled = Prediction(
    1.5,
    "2 was relative to a largest score of 0. Relative to log 4 it's 2 · exp(0 - log 4), and the new key adds 1",
    {
        3: "the 2 was relative to the old largest score; rescale it",
        6: "that's still relative to 0, but the largest score is now log 4",
    },
)
right_devices = Prediction(
    1,
    _FIRST_ROW,
    {
        0: "device 0 starts at token 0",
        7: f"it's the other way round: {_FIRST_ROW}",
        8: f"nothing fails, but {_FIRST_ROW}",
    },
    "devices",
)
ring_sent = Prediction(
    14,
    "keys and values, which are two pieces, are sent on seven times",
    {
        7: "both keys and values are sent",
        16: "the last piece that a device meets isn't sent on",
        2: "that's one round, but there are seven",
        21: "the queries stay on their devices",
        112: "the question is about one device, but you count all eight",
    },
    "pieces",
)
kept = Prediction(
    500,
    "125,000 queries on this device meet a million keys: 125,000 · 1,000,000 · 4 bytes",
    {
        4000: "that's for all queries, but a device has an eighth of them",
        62.5: "that's one round, but `scan` keeps all eight",
        0.05: "that's one block of 100 keys, but `scan` keeps every block of every round",
        0.4: "that's the forward pass, but `scan` keeps p of every block for the backward pass",
    },
    "GB",
    rel_tol=0.01,
)
own_sent = Prediction(
    46,
    "forward, it's two pieces, seven times: 14. Backward, it's four pieces, eight times: 32",
    {
        32: "that's only the backward pass; the forward pass sends 14 more",
        28: "the gradients of keys and values are sent with them",
        42: _RETURN,
        44: _RETURN,
        48: "in the forward pass, the last piece isn't sent on: 14",
        14: "that's only the forward pass",
    },
    "pieces",
)
hidden_at = Prediction(
    2199,
    "4 T² d FLOPs take as long as 4 T d bytes when T = C/W",
    {
        4398: "keys and values are 2 arrays of 2 bytes per element, so there are 4 bytes for every 4 FLOPs",
        1100: "keys and values are 2 arrays of 2 bytes per element, so there are 4 bytes for every 4 FLOPs",
    },
    "tokens",
    rel_tol=0.02,
)


def _result_cases():
    """Make cases, each with two results (mean, level) for five queries and three features."""
    rng = np.random.default_rng(13)
    means = [rng.normal(size=(5, 3)).astype(np.float32) for _ in range(2)]
    levels = [rng.normal(size=5).astype(np.float32) for _ in range(2)]

    def pair(*shifts):
        return tuple((mean, level + np.float32(by)) for mean, level, by in zip(means, levels, shifts, strict=True))

    apart = [800, -800, 0, 800, -800]
    cases = {"levels near 0": pair(0, 0), "levels near 800": pair(800, 799), "levels near -800": pair(-800, -799)}
    cases["levels near 800 and near -800"] = pair(apart, apart)
    (mean, level), other = pair(0, 0)
    mean, level = mean.copy(), level.copy()
    mean[1], level[1] = 0, -np.inf
    return cases | {
        "the first saw no key of query 1": ((mean, level), other),
        "the second saw no key of query 1": (other, (mean, level)),
    }


def _merge_directly(first, second):
    (mean, level), (other, other_level) = first, second
    with np.errstate(all="ignore"):
        a, b = np.exp(level), np.exp(other_level)
        return (a[:, None] * mean + b[:, None] * other) / (a + b)[:, None], np.log(a + b)


def _merge_by_mean(first, second):
    return (first[0] + second[0]) / 2, np.logaddexp(first[1], second[1])


@exercise(
    "A level stands for a sum, exp(level). The sums add up, and each mean is weighted by its share "
    "of the total. np.logaddexp(a, b) is the log of exp(a) + exp(b), computed without overflow.",
    cases=_result_cases,
    mistakes=[
        Mistake(
            _merge_by_mean,
            "that's the plain mean of both, but the result with the larger sum of exp(score) counts for more",
        ),
        Mistake(
            _merge_directly,
            "exp(800) overflows, and exp(-800) is 0. What can you subtract from both levels first?",
        ),
        Mistake(
            Edit("np.logaddexp", "np.maximum"),
            "each result is rescaled to the larger level, but nothing divides by the sum of both shares",
        ),
        Mistake(Edit("np.logaddexp", "np.add"), "levels are logs: their sums add up, not the levels themselves"),
        Mistake(
            Edit("* other, both", "* other, np.maximum(level, other_level)"),
            "your level contains only the larger of the two sums",
        ),
        Mistake(
            Edit(
                "share[:, None] * mean + other_share[:, None] * other",
                "other_share[:, None] * mean + share[:, None] * other",
            ),
            "you weight each mean by the other one's share",
        ),
    ],
    question="Each result stands for a sum of exp(score). What share of the total does each one have?",
)
def merge(first, second):
    """Merge two pairs of mean (tokens, features) and level (tokens,) into one pair."""
    (mean, level), (other, other_level) = first, second
    both = np.logaddexp(level, other_level)
    share, other_share = np.exp(level - both), np.exp(other_level - both)
    return share[:, None] * mean + other_share[:, None] * other, both


def _run_contrastive(f, n, own, features, size):
    rng = np.random.default_rng(n)
    x, y = (np.float32(size * rng.normal(size=(own * n, features))) for _ in range(2))
    x *= np.float32(1 + np.arange(own * n)[:, None] / (own * n))  # the last device's loss is the largest
    specs = {"in_specs": (P("data"), P("data")), "out_specs": P()}
    return run_per_device(f, x, y, mesh={"data": n}, measure=("bytes_sent", "largest_array"), **specs)


@exercise(
    "For each of its rows, a device keeps a level, the log of the sum of exp so far. Start with its "
    "own y, then send y on n - 1 times; jnp.logaddexp adds the jax.nn.logsumexp of each new piece. "
    "Then take the mean, and `pmean` over 'data'.",
    cases={
        "of 4 devices with 7 rows": (4, 7, 5, 0.7),
        "of 8 devices with 6 rows": (8, 6, 10, 0.7),
        "of 4 devices, products above 100": (4, 7, 5, 8),
    },
    run=_run_contrastive,
    rel_tol=1e-3,
    mistakes=[
        Mistake(
            Edit("pmean", "psum"), "psum adds up the devices' means, but the mean over all rows is the mean of them"
        ),
        Mistake(Edit("length=n - 1", "length=n"), "a device's own y came back and counts twice"),
        Mistake(Edit("length=n - 1", "length=0"), "each row has met only the y of its own device"),
        Mistake(
            Edit("jax.nn.logsumexp(x @ y.T, axis=1)", "jnp.log(jnp.exp(x @ y.T).sum(1))", count=2),
            "exp of a product above 88 is infinite in float32",
        ),
        Mistake(Edit("(x * y).sum(1)", "0"), "you don't subtract the product of each row with its own y"),
        Mistake(
            Edit("(level, _), _", "(level, y), _"),
            "the y that you subtract was sent on, so it belongs to a different device",
        ),
        MessageHint(
            "require replication",
            "each device has a mean of its own. What averages them, and gives the result a shared type?",
        ),
        MessageHint("largest array", "Use one piece of y at a time, and keep one number for each row"),
    ],
    question=(
        "The loss is each row's level, over the y of all devices, minus the row's own x · y, averaged over all rows."
    ),
)
def contrastive(x, y):
    """Return the scalar mean loss over all rows, given own x and y (rows, features)."""
    n = jax.lax.axis_size("data")
    ring = [(i, (i + 1) % n) for i in range(n)]

    def step(carry, _):
        level, y = carry
        y = jax.lax.ppermute(y, "data", ring)
        return (jnp.logaddexp(level, jax.nn.logsumexp(x @ y.T, axis=1)), y), None

    own = jax.nn.logsumexp(x @ y.T, axis=1)
    (level, _), _ = jax.lax.scan(step, (own, y), length=n - 1)
    return jax.lax.pmean((level - (x * y).sum(1)).mean(), "data")


@exercise(
    "The first query of a piece looks back the furthest: window - 1 tokens before its piece. How "
    "many pieces is that, rounded up? And how many sends can there be at most?",
    cases=[(48, 6, window) for window in (1, 2, 9, 10, 16, 30, 48)]
    + [(35, 5, 8), (35, 5, 9), (40, 4, 22), (40, 4, 40)],
    mistakes=[
        Mistake(
            Edit("math.ceil((window - 1) / piece)", "window // piece"),
            "you count the complete pieces in the window, but the first query of a piece has the rest of its "
            "window before its own piece",
        ),
        Mistake(
            Edit("(window - 1) / piece", "window / piece"), "the query itself is in the window, and in its own piece"
        ),
        Mistake(
            Edit("math.ceil((window - 1) / piece)", "(window - 1) // piece"),
            "even for a single key, the full piece has to be sent",
        ),
        Mistake(
            Edit("min(n - 1, math.ceil((window - 1) / piece))", "n - 1"),
            "that's the ring without a window. Where can it stop?",
        ),
        Mistake(
            Edit("math.ceil((window - 1) / piece)", "math.ceil((window - 1) / piece) + 1"),
            "a device already has its own piece",
        ),
    ],
    question="What is the earliest key that the first query of a piece sees, and which piece is it in?",
)
def sends_for_window(tokens, n, window):
    """Return the number of sends; a token sees `window` tokens, including itself."""
    piece = tokens // n
    return min(n - 1, math.ceil((window - 1) / piece))
