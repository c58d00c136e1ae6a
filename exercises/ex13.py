"""Exercises and predictions of lesson 13, Split the sequence: long contexts."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, WhenMessage, exercise, run_per_device

_FIRST = "for which devices is the number of a row also the place of its token?"
_HOME = "a gradient starts from zero at its owner and must come home to it: eight sends"

rescaled = Prediction(
    1.5,
    "2 was measured against a largest score of 0. Against log 4 it is 2 · exp(0 - log 4), and the new key adds 1",
    {3: "the 2 was measured against the old largest score; rescale it", 6: "the largest score is log 4 now; rescale"},
)
right_devices = Prediction(
    1,
    _FIRST,
    {
        0: "device 0 begins at token 0",
        7: f"it is the other way round: {_FIRST}",
        8: f"nothing fails, and yet: {_FIRST}",
    },
    "devices",
)
ring_sent = Prediction(
    14,
    "keys and values, two pieces, are sent on seven times",
    {
        7: "keys and values travel, both",
        16: "the last piece that a device meets is not sent on",
        2: "that is one round; there are seven",
        21: "the queries stay where they are",
        112: "one device is asked, and you count all eight",
    },
    "pieces",
)
kept = Prediction(
    500,
    "125,000 queries of this device meet a million keys: 125,000 · 1,000,000 · 4 bytes",
    {
        4000: "that is all queries; a device has an eighth",
        62.5: "that is one round; `scan` keeps all eight",
        0.05: "that is one block of 100 keys; `scan` keeps every block of every round",
        0.4: "that is forward; `scan` keeps p of every block for the backward pass",
    },
    "GB",
    within=0.01,
)
own_sent = Prediction(
    46,
    "forward two pieces, seven times: 14. Back four pieces, eight times: 32",
    {
        32: "that is the way back; the way forward sends 14 more",
        28: "the gradients for keys and values travel with them",
        42: _HOME,
        44: _HOME,
        48: "forward the last piece is not sent on: 14",
        14: "that is the way forward alone",
    },
    "pieces",
)
hidden_at = Prediction(
    2199,
    "4 T² d FLOPs take as long as 4 T d bytes when T = C/W",
    {
        4398: "keys and values are 2 arrays of 2 bytes: 4 bytes stand against 4 FLOPs",
        1100: "keys and values are 2 arrays of 2 bytes: 4 bytes stand against 4 FLOPs",
    },
    "tokens",
    within=0.02,
)


def _results():
    """Two results each, (mean, level), of five queries and three features."""
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
        "the second saw none": (other, (mean, level)),
    }


def _direct(first, second):
    (mean, level), (other, other_level) = first, second
    with np.errstate(all="ignore"):
        a, b = np.exp(level), np.exp(other_level)
        return (a[:, None] * mean + b[:, None] * other) / (a + b)[:, None], np.log(a + b)


def _plain_mean(first, second):
    return (first[0] + second[0]) / 2, np.logaddexp(first[1], second[1])


@exercise(
    "Behind a level stands a sum, exp(level). The sums add up, and each mean counts with its share of both. "
    "np.logaddexp(a, b) is the log of exp(a) + exp(b), without computing either.",
    cases=_results,
    mistakes=[
        Mistake(_plain_mean, "the plain mean of both: the one with the larger sum of exp(score) counts for more"),
        Mistake(
            _direct,
            "the exp of 800 is beyond all numbers, and that of -800 is 0. What can you take off both levels first?",
        ),
        Mistake(
            Edit("np.logaddexp", "np.maximum"),
            "each is rescaled to the larger level; nothing divides by the sum of both shares",
        ),
        Mistake(Edit("np.logaddexp", "np.add"), "levels are logs: the sums behind them add up, not the levels"),
        Mistake(
            Edit("* other, both", "* other, np.maximum(level, other_level)"),
            "of the two sums only the larger is in the level",
        ),
        Mistake(
            Edit(
                "share[:, None] * mean + other_share[:, None] * other",
                "other_share[:, None] * mean + share[:, None] * other",
            ),
            "each mean has the other's share",
        ),
    ],
    question="Each result stands for a sum of exp(score). Which share of both sums has each?",
)
def merge(first, second):
    """Merge the (mean (tokens, features), level (tokens,)) of two; return the pair."""
    (mean, level), (other, other_level) = first, second
    both = np.logaddexp(level, other_level)
    share, other_share = np.exp(level - both), np.exp(other_level - both)
    return share[:, None] * mean + other_share[:, None] * other, both


def _contrast(f, n, own, features, size):
    rng = np.random.default_rng(n)
    x, y = (np.float32(size * rng.normal(size=(own * n, features))) for _ in range(2))
    x *= np.float32(1 + np.arange(own * n)[:, None] / (own * n))  # the last device's loss is the largest
    specs = {"in_specs": (P("data"), P("data")), "out_specs": P()}
    return run_per_device(f, x, y, mesh={"data": n}, measure=("bytes_sent", "largest_array"), **specs)


@exercise(
    "For each own row keep a level, the log of the sum of exp so far. Begin with the own y, then send y on n - 1 times; "
    "jnp.logaddexp adds what jax.nn.logsumexp finds in a piece. Then the mean, and `pmean` over 'data'.",
    cases={
        "of 4 devices with 7 rows": (4, 7, 5, 0.7),
        "of 8 devices with 6 rows": (8, 6, 10, 0.7),
        "of 4 devices, products above 100": (4, 7, 5, 8),
    },
    run=_contrast,
    within=1e-3,
    mistakes=[
        Mistake(Edit("pmean", "psum"), "psum adds up the means of the devices; the mean over all rows is their mean"),
        Mistake(Edit("length=n - 1", "length=n"), "the own y came home and counts twice"),
        Mistake(Edit("length=n - 1", "length=0"), "each row has met the y of its own device alone"),
        Mistake(
            Edit("jax.nn.logsumexp(x @ y.T, axis=1)", "jnp.log(jnp.exp(x @ y.T).sum(1))", count=2),
            "the exp of a product above 88 is infinite in float32",
        ),
        Mistake(Edit("(x * y).sum(1)", "0"), "the product of each row with its own y is not taken off"),
        Mistake(
            Edit("(level, _), _", "(level, y), _"), "the y that is taken off has travelled; it is another device's"
        ),
        WhenMessage(
            "require replication",
            "each device has a mean of its own. What averages them, and types the result as shared?",
        ),
        WhenMessage("largest array", "Meet one piece of y at a time, and keep one number for each row"),
    ],
    question="A level for each own row, over the y of all devices; less x · y of the row itself; the mean of all rows.",
)
def contrastive(x, y):
    """Per device: own rows x, y (rows, features) -> the mean loss over all rows, ()."""
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
    "The first query of a piece looks furthest back: window - 1 tokens before its piece. How many pieces are those, "
    "rounded up? And how many can there be at most?",
    cases=[(48, 6, window) for window in (1, 2, 9, 10, 16, 30, 48)]
    + [(35, 5, 8), (35, 5, 9), (40, 4, 22), (40, 4, 40)],
    mistakes=[
        Mistake(
            Edit("math.ceil((window - 1) / piece)", "window // piece"),
            "whole pieces in the window; the first query of a piece has "
            "all the rest of its window before its own piece",
        ),
        Mistake(
            Edit("(window - 1) / piece", "window / piece"), "the query itself is in the window, and in its own piece"
        ),
        Mistake(
            Edit("math.ceil((window - 1) / piece)", "(window - 1) // piece"),
            "for a single key the whole piece has to come",
        ),
        Mistake(
            Edit("min(n - 1, math.ceil((window - 1) / piece))", "n - 1"),
            "that is the ring without a window. Where does it end?",
        ),
        Mistake(
            Edit("math.ceil((window - 1) / piece)", "math.ceil((window - 1) / piece) + 1"),
            "its own piece a device has without a send",
        ),
    ],
    question="Which is the earliest key that the first query of a piece sees, and in which piece does it lie?",
)
def sends_for_window(tokens, n, window):
    """Return how often to send the pieces on; a token sees `window`, itself last."""
    piece = tokens // n
    return min(n - 1, math.ceil((window - 1) / piece))
