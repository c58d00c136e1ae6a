"""Wrong and right answers to the exercises of notebook 13, and wrong guesses."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from utils.exercises import ex13


def merged(mean=None, level=None):
    """The right answer, with its mean or its level, of (m, x, n, y), exchanged."""

    def answer(first, second):
        (m, x), (n, y) = first, second
        right = ex13.merge.function(first, second)
        return mean(m, x[:, None], n, y[:, None]) if mean else right[0], level(x, y) if level else right[1]

    return answer


def merge_unstable(first, second):
    (m, x), (n, y) = first, second
    a, b = np.exp(x), np.exp(y)
    return (a[:, None] * m + b[:, None] * n) / (a + b)[:, None], np.log(a + b)


def merge_by_difference_of_infinities(first, second):
    """Scales each level by itself before it is compared: inf - inf where no key was seen."""
    (m, x), (n, y) = first, second
    both = x + np.log(np.exp(x - x) + np.exp(y - x))
    return np.exp(x - both)[:, None] * m + np.exp(y - both)[:, None] * n, both


def merge_from_lowest(first, second):
    """Right values, and the log of 0 times a mean of 0 is never asked for."""
    (m, x), (n, y) = first, second
    top = np.maximum(x, y)
    a, b = np.exp(x - top), np.exp(y - top)
    return ((a / (a + b))[:, None] * m + (b / (a + b))[:, None] * n), top + np.log(a + b)


def merge_by_jax(first, second):
    (m, x), (n, y) = first, second
    levels = jnp.stack([x, y])
    shares = jax.nn.softmax(levels, axis=0)
    return jnp.einsum("pt,ptf->tf", shares, jnp.stack([m, n])), jax.nn.logsumexp(levels, axis=0)


def merge_by_sigmoid(first, second):
    (m, x), (n, y) = first, second
    share = jax.nn.sigmoid(x - y)[:, None]
    return [share * m + (1 - share) * n, jnp.logaddexp(x, y)]


def merge_by_rows(first, second):
    means, levels = [], []
    for m, x, n, y in zip(*first, *second, strict=True):
        high = max(x, y)
        a, b = math.exp(x - high), math.exp(y - high)
        means.append(((a * m + b * n) / (a + b)).tolist())
        levels.append(high + math.log(a + b))
    return np.array(means), np.array(levels)


def window_by_places(tokens, n, window):
    """Look at every query and key."""
    piece, most = tokens // n, 0
    for query in range(tokens):
        for key in range(max(0, query - window + 1), query + 1):
            most = max(most, query // piece - key // piece)
    return most


def window_by_last_device(tokens, n, window):
    piece = tokens // n
    first = (n - 1) * piece
    return n - 1 - max(first - window + 1, 0) // piece


def both(ring, ulysses, fits=lambda heads, keys, n: heads % n == 0 and keys % n == 0):
    """In blocks of a device's tokens of one head."""

    def answer(tokens, heads, key_heads, features, n):
        block = tokens // n * features * 4
        right = ulysses(heads, key_heads, n) * block if fits(heads, key_heads, n) else None
        return ring(heads, key_heads, n) * block, right

    return answer


def right_ring(h, k, n):
    return 2 * (n - 1) * k


def right_ulysses(h, k, n):
    return (n - 1) / n * (2 * h + 2 * k)


def both_by_arrays(tokens, heads, key_heads, features, n):
    q, k = (np.zeros((one, tokens // n, features), np.float32).nbytes for one in (heads, key_heads))
    if heads % n or key_heads % n:
        return [np.int64(2 * (n - 1) * k), None]
    return [2 * (n - 1) * k, np.float64((q - q / n) + 2 * (k - k / n) + (q - q / n))]


def both_by_rounds(tokens, heads, key_heads, features, n):
    ring = sum(2 * 4 * key_heads * tokens * features // n for _ in range(n - 1))
    if math.gcd(heads, n) < n or math.gcd(key_heads, n) < n:
        return ring, None
    parts = [tokens / n * features * 4 * one / n for one in (heads, key_heads, key_heads, heads)]
    return ring, sum(parts) * (n - 1)


def numbered(k, split=0, concat=1):
    return lax.all_to_all(k, "seq", split, concat, tiled=True)


def gathered_spread(k):
    whole = lax.all_gather(k, "seq", axis=1, tiled=True)
    head = lax.axis_index("seq") * len(k) // 8
    return lax.dynamic_slice_in_dim(whole, head, 1)


def around_spread(k):
    """The pieces of all heads travel around a ring."""
    me = lax.axis_index("seq")
    head, out = me * len(k) // 8, jnp.zeros((8, *k.shape[1:]))
    for step in range(8):
        out = out.at[(me - step) % 8].set(k[head])
        k = lax.ppermute(k, "seq", [(i, (i + 1) % 8) for i in range(8)])
    return out.reshape(1, -1, k.shape[-1])


def order_of_arrival(k):
    me, out = lax.axis_index("seq"), []
    for step in range(8):
        head = (me + step) % 8 * len(k) // 8
        out.append(lax.ppermute(k[head], "seq", [(i, (i + step) % 8) for i in range(8)]))
    return jnp.concatenate(out)[None]


def by_sends(k):
    """One block to each other device."""
    me, out = lax.axis_index("seq"), jnp.zeros((8, *k.shape[1:]))
    for step in range(8):
        head = (me + step) % 8 * len(k) // 8
        block = k[head] if step == 0 else lax.ppermute(k[head], "seq", [(i, (i + step) % 8) for i in range(8)])
        out = out.at[(me - step) % 8].set(block)
    return out.reshape(1, -1, k.shape[-1])


def untiled(k):
    blocks = k[jnp.arange(8) * len(k) // 8]  # (8, tokens, features)
    return lax.all_to_all(blocks, "seq", 0, 0).reshape(1, -1, k.shape[-1])


def broadcast_first(k):
    group = jnp.broadcast_to(k[:, None], (len(k), 8 // len(k), *k.shape[1:]))
    return numbered(group.reshape(8, *k.shape[1:]))


def deal(tokens, n):
    """There and back, one by one."""
    rows = np.arange(tokens).reshape(-1, n)
    rows[1::2] = rows[1::2, ::-1]
    return rows.T.ravel()


def couples(tokens, n):
    each = [(t, tokens - 1 - t) for t in range(tokens // 2)]
    return [t for pair in each for t in pair]


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex13.merge: [
        (merged(mean=lambda m, x, n, y: (m + n) / 2), "Your mean is the plain mean of the two"),
        (merged(mean=lambda m, x, n, y: m + n), "Your mean is the sum of the two"),
        (merged(mean=lambda m, x, n, y: (x * m + y * n) / (x + y)), "weighted with the levels"),
        (merged(mean=lambda m, x, n, y: np.exp(x) * m + np.exp(y) * n), "not divided by their sum"),
        (
            merged(mean=lambda m, x, n, y: np.exp(x - np.maximum(x, y)) * m + np.exp(y - np.maximum(x, y)) * n),
            "rescaled to the larger level, and not divided",
        ),
        (
            merged(mean=lambda m, x, n, y: (np.exp(y) * m + np.exp(x) * n) / (np.exp(x) + np.exp(y))),
            "the two have changed places",
        ),
        (merged(mean=lambda m, x, n, y: np.where(x > y, m, n)), "that of the larger level alone"),
        (merged(level=lambda x, y: x + y), "Your level is the sum of the two levels"),
        (merged(level=np.maximum), "Your level is the larger of the two"),
        (merged(level=lambda x, y: (x + y) / 2), "Your level is the mean of the two levels"),
        (merged(level=lambda x, y: np.exp(x) + np.exp(y)), "Your level is the sum itself; a level is its log"),
        (merged(level=lambda x, y: x), "Your level is the first's alone"),
        (merge_unstable, "The exp of 800 is beyond all floating-point numbers"),
        (merge_by_difference_of_infinities, "minus infinity less itself"),
        (lambda first, second: ex13.merge.function(first, second)[::-1], "You return the level first"),
        (lambda first, second: ex13.merge.function(first, second)[0], "expected a pair"),
    ],
    ex13.sends_for_window: [
        (lambda tokens, n, window: n - 1, "a send for each device, as without a window"),
        (lambda tokens, n, window: window * n // tokens, "You count whole pieces in the window"),
        (lambda tokens, n, window: min(n - 1, math.ceil(window * n / tokens)), "how many pieces the window is long"),
        (lambda tokens, n, window: (window - 1) * n // tokens, "You round down"),
        (lambda tokens, n, window: math.ceil((window - 1) * n / tokens), "more sends than there are other pieces"),
        (
            lambda tokens, n, window: math.ceil((window - 1) * n / tokens) + 1,
            "a device has its own piece from the start",
        ),
        (lambda tokens, n, window: max(math.ceil((window - 1) * n / tokens) - 1, 0), "take the device's own piece off"),
        (lambda tokens, n, window: min(n, math.ceil((window - 1) * n / tokens)), "n - 1 come from elsewhere"),
        (lambda tokens, n, window: -(-window * n // tokens) - 1, "look at the last query of a piece"),
        (lambda tokens, n, window: window - 1, "pieces travel whole"),
    ],
    ex13.bytes_of_both: [
        (both(lambda h, k, n: 2 * (n - 1) * h, right_ulysses), "travel have fewer heads than the queries"),
        (both(lambda h, k, n: 2 * n * k, right_ulysses), "its own a device has"),
        (both(lambda h, k, n: (n - 1) * k, right_ulysses), "keys and values travel, both"),
        (both(lambda h, k, n: (n - 1) * (h + 2 * k), right_ulysses), "the queries stay where they are"),
        (both(lambda h, k, n: (n - 1) * k / 2, right_ulysses), "you count numbers; a float32 takes 4 bytes"),
        (both(lambda h, k, n: 2 * k, right_ulysses), "that is one round"),
        (both(right_ring, lambda h, k, n: 4 * h * (n - 1) / n), "keys and values have fewer heads"),
        (both(right_ring, lambda h, k, n: 4 * k * (n - 1) / n), "the queries, and the results, have all the heads"),
        (both(right_ring, lambda h, k, n: (h + 2 * k) * (n - 1) / n), "the results go back in a fourth all-to-all"),
        (both(right_ring, lambda h, k, n: 2 * h + 2 * k), "a device keeps 1/n of what it exchanges"),
        (both(right_ring, lambda h, k, n: (n - 1) * (2 * h + 2 * k)), "each part is sent once"),
        (both(right_ring, right_ulysses, lambda h, k, n: True), "2 key heads cannot be cut into 8 equal parts"),
        (both(right_ring, right_ulysses, lambda h, k, n: h % n == 0), "2 key heads cannot be cut"),
        (both(right_ring, right_ulysses, lambda h, k, n: n <= k), "12 heads cannot be cut into 8 equal parts"),
        (both(right_ring, right_ulysses, lambda h, k, n: h == k), "can be cut into"),
        (lambda *case: both(right_ring, right_ulysses)(*case)[::-1], "your ring sends None"),
    ],
    ex13.spread: [
        (lambda k: numbered(jnp.tile(k, (8 // len(k), 1, 1))), "it is neighbours that do"),
        (gathered_spread, "at most 7 are asked"),
        (around_spread, "at most 7 are asked"),
        (lambda k: numbered(k), "raised ValueError"),
        (lambda k: numbered(jnp.repeat(k, 8 // len(k), 0), concat=2), "returns an array of shape"),
        (order_of_arrival, "with the tokens out of order"),
        (lambda k: jnp.tile(k[:1], (1, 8, 1)), "expected all 24 tokens of key head 0"),
        (
            lambda k: lax.all_gather(k[:1], "seq", axis=1, tiled=True),
            "All devices have the same one",
        ),
    ],
    ex13.balanced: [
        (lambda tokens, n: range(tokens), "These are the tokens in their own order"),
        (lambda tokens, n: list(range(tokens))[::-1], "Backwards it is as unfair"),
        (lambda tokens, n: np.arange(tokens).reshape(-1, n).T.ravel(), "in each round a device has a token later"),
        (
            lambda tokens, n: np.arange(tokens).reshape(2, n, -1).swapaxes(0, 1).ravel(),
            "both halves go up",
        ),
        (lambda tokens, n: np.arange(tokens).reshape(2 * n, -1)[::2].ravel().repeat(2), "lacks token"),
        (lambda tokens, n: np.arange(1, tokens + 1), "is no token"),
        (
            lambda tokens, n: np.concatenate([np.arange(tokens // 2), np.arange(tokens // 2, tokens)[::-1]]),
            "Which token makes up for token 0",
        ),
        (lambda tokens, n: [*range(tokens - 1)], "places of tokens, in a list or an array"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex13.merge: [merge_from_lowest, merge_by_jax, merge_by_sigmoid, merge_by_rows],
    ex13.sends_for_window: [
        window_by_places,
        window_by_last_device,
        lambda tokens, n, window: min(n - 1, -(-(window - 1) // (tokens // n))),
        lambda tokens, n, window: np.float64(min(n - 1, (window - 2) // (tokens // n) + 1)),
        lambda tokens, n, window: jnp.minimum(jnp.ceil((window - 1) / (tokens / n)), n - 1),
    ],
    ex13.bytes_of_both: [
        both(right_ring, right_ulysses),
        both_by_arrays,
        both_by_rounds,
        lambda *case: np.array(both(right_ring, right_ulysses)(*case), dtype=object),
    ],
    ex13.spread: [by_sends, untiled, broadcast_first, jax.jit(lambda k: ex13.spread.function(k))],
    ex13.balanced: [
        deal,
        couples,
        lambda tokens, n: jnp.array(couples(tokens, n), jnp.float32),
        lambda tokens, n: np.array(deal(tokens, n)).reshape(n, -1),
        lambda tokens, n: [tokens - 1 - t for t in couples(tokens, n)],
    ],
}

PARTS = "np.concatenate([chunks[[i, 2 * n - 1 - i]].ravel() for i in range(n)])"

# exercise: [(change of the solution, why it computes the same)]
SAME = {
    ex13.merge: [
        (
            "(mean, level), (other, other_level) = (first, second) -> (mean, level), (other, other_level) = (second, first)",
            "it does not matter which is first",
        ),
        ("both = np.logaddexp(level, other_level) -> both = np.logaddexp(other_level, level)", "a sum"),
    ],
    ex13.sends_for_window: [
        (
            "return min(n - 1, math.ceil((window - 1) / piece)) -> return min(math.ceil((window - 1) / piece), n - 1)",
            "the same two",
        ),
    ],
    ex13.spread: [
        (
            "repeated = jnp.repeat(k, 8 // len(k), axis=0) -> repeated = jnp.repeat(k, 9 // len(k), axis=0)",
            "2 and 4 go into 9 as often as into 8",
        ),
    ],
    ex13.balanced: [
        (
            "chunks = np.arange(tokens).reshape(2 * n, -1) -> chunks = np.arange(tokens).reshape(2 * n, -2)",
            "NumPy takes any negative length for the one to find",
        ),
        *(
            (f"return {PARTS} -> return {PARTS.replace(*change)}", why)
            for change, why in (
                ((".ravel()", ""), "two rows of chunks each, in the same order"),
                (("i, 2 * n - 1 - i", "2 * n - 1 - i, i"), "within a part the order is free"),
                (("2 * n - 1", "2 // n - 1"), "2 // n is 0 for n of 3 and more, and chunk -1 is the last"),
            )
        ),
    ],
}

GUESSES = {
    ex13.right_devices: (
        1,
        [
            (0, "device 0 begins at token 0"),
            (8, "row 5 of device 3"),
            (7, "the other way round"),
            (4, "the number of a row"),
        ],
    ),
    ex13.with_nan: (
        1,
        [
            (0, "inf - inf is nan"),
            (7, "begins with the piece before it"),
            (8, "finite largest score"),
            (3, "wholly masked?"),
        ],
    ),
    ex13.forward_sent: (  # 2 (n - 1)
        {"gathered": 14, "ring": 14},
        [
            ((7, None), "keys and values travel"),
            ((None, 7), "keys and values travel"),
            ((None, 16), "its own it has"),
            ((None, 2), "that is one round"),
            ((None, 8), "two pieces at a time"),
            ((112, None), "you count all eight"),
            ((None, 21), "the queries stay"),
        ],
    ),
    ex13.forward_room: (
        "an eighth",
        [
            ("as much", "one piece of keys, not of eight"),
            ("a sixty-fourth", "the same eighth in both"),
            (8, "expected"),
        ],
    ),
    ex13.gradient_room: (
        "as much",
        [("an eighth", "`scan` keeps them"), ("a sixty-fourth", "`scan` keeps them"), (8, "expected")],
    ),
    ex13.own_sent: (  # 2 (n - 1) + 4 n
        46,
        [
            (28, "travel with them"),
            (42, "takes an eighth send"),
            (44, "the last one included"),
            (32, "the way forward sends"),
            (48, "forward there are seven"),
            (14, "the way forward alone"),
        ],
    ),
    ex13.heads_sent: (  # 4 x 7/8
        3.5,
        [
            (4, "keeps the part for itself"),
            (2.625, "four arrays, not three"),
            (0.875, "that is one array"),
            (28, "the piece seven times"),
            (7, "both ways"),
        ],
    ),
    ex13.sends_less: ("ring", [("Ulysses", "an eighth of the heads now"), (3, "expected 'ring' or 'Ulysses'")]),
    ex13.busiest: (  # 30,752 / 16,416
        1.873,
        [
            (2, "nearly"),
            (15, "the mean is in the middle"),
            (8, "one device which does it all"),
            (1, "see the most keys"),
        ],
    ),
    ex13.half_skipped: (  # (3/4 + 7/2) / 8
        0.53125,
        [
            (0.5, "half masked"),
            (0.5625, "in the first round, too"),
            (1, "are skipped"),
            (0.25, "two are computed"),
        ],
    ),
}
