"""Exercises of notebook 13, Cut the sequence: long contexts."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, number, numbers, part, several, shown
from utils.mesh import make_mesh

ROOM = {"as much": "", "an eighth": "", "a sixty-fourth": ""}

right_devices = Prediction(
    "devices",
    {
        0: "device 0 begins at token 0, so there both ways to count are the same",
        8: "row 5 of device 3 is token 8 · 3 + 5, and may see more than the six first keys",
        7: "it is the other way round: device 0 alone begins at token 0",
        None: "for which devices is the number of a row also the place of its token?",
    },
    things=True,
)
with_nan = Prediction(
    "pieces",
    {
        0: "a row that has seen no key yet has its largest score at minus infinity, and inf - inf is nan",
        7: "of the other pieces, each begins with the piece before it, all of which it sees",
        8: "a piece of queries that sees a key in its first round has a finite largest score from then on",
        None: "for which pieces of queries is the first round wholly masked?",
    },
    things=True,
)
forward_sent = Prediction(
    "pieces",
    {
        1 / 2: "keys and values travel, two pieces at a time",
        8 / 7: "seven sends; its own it has",
        4 / 7: "seven sends, and two pieces at a time: keys and values",
        8: "each device sends this much; you count all eight devices",
        1 / 7: "that is one round; there are seven",
        1 / 14: "that is one round of the keys alone",
        3 / 2: "the queries stay where they are",
        12 / 7: "the queries stay where they are, and there are seven sends",
    },
)
forward_room = Choice(
    ROOM
    | {
        "as much": "the scores of a round are those of one piece of keys, not of eight",
        "a sixty-fourth": "the queries of a device are the same eighth in both; only the keys come piece by piece",
    }
)
gradient_room = Choice(
    ROOM
    | {
        "an eighth": "the way back needs the probabilities of each round, and `scan` keeps them, round by round",
        "a sixty-fourth": "the way back needs the probabilities of each round, and `scan` keeps them, round by round",
    }
)
own_sent = Prediction(
    "pieces",
    {
        28 / 46: "the gradients by keys and by values travel with them",
        42 / 46: "a gradient has to come home, which takes an eighth send, and in this loop all four travel each time",
        44 / 46: "in this loop all four travel in each of the eight rounds, the last one included",
        32 / 46: "that is the way back; the way forward sends, too",
        14 / 46: "that is the way forward alone",
        30 / 46: "the gradients by keys and by values travel with them",
        48 / 46: "forward there are seven sends, not eight",
        56 / 46: "queries, their gradients and the results stay where they are",
        60 / 46: "queries, their gradients and the results stay where they are",
    },
)
heads_sent = Prediction(
    "pieces",
    {
        4: "each device keeps the part for itself, and sends seven eighths of each of the four arrays",
        8 / 7: "each device keeps the part for itself: seven eighths of each",
        3 / 4: "the result has to go back, too: four arrays, not three",
        6 / 7: "the result goes back, too; and each device keeps the part for itself",
        1 / 4: "that is one array; queries, keys, values and the result are four",
        8: "an all-to-all cuts a piece in eight, and sends each part once; an all-gather would send the piece seven times",
        2: "that is both ways, forward and back",
        16 / 7: "that is both ways, forward and back, and with the part that a device keeps",
    },
)
sends_less = Choice(
    {
        "ring": "",
        "Ulysses": "the ring sends keys and values alone, and those have an eighth of the heads now; Ulysses sends the queries "
        "and the results as well, which have all of them",
    }
)
busiest = Prediction(
    "times the mean",
    {
        2
        / 1.873: "nearly: it would be 2 if device 7's queries saw all keys; its later keys are hidden from its earlier ones",
        15 / 1.873: "that is nearly how device 7 stands to device 0; the mean is in the middle",
        8 / 1.873: "that would be one device which does it all",
        1 / 1.873: "device 7 has the last queries, which see the most keys",
        14.8 / 1.873: "that is how device 7 stands to device 0; the mean is in the middle",
        1.5 / 1.873: "how many keys do the queries of device 7 see, and how many do all queries see on average?",
    },
    within=0.02,
)
half_skipped = Prediction(
    "of the ring's FLOPs",
    {
        0.5
        / 0.53125: "in the first round, with its own piece, a device computes three of the four blocks: two of them lie on the "
        "diagonal, half masked",
        0.5625 / 0.53125: "in the first round, too, one of the four blocks is skipped",
        1 / 0.53125: "two of the four blocks of a round are skipped",
        0.25 / 0.53125: "of the four blocks of a round, two are computed",
    },
    within=0.003,
)


def _close(got, want):
    return np.allclose(got, want, rtol=1e-4, atol=1e-6)


@functools.cache
def _results():
    """Two results for each case, (mean, level), and the name of the case."""
    rng = np.random.default_rng(13)
    cases = []
    for name, shift in (
        ("", (0.0, 0.0)),
        ("Where the levels are near 800, ", (800.0, 799.0)),
        ("Where the levels are near -800, ", (-800.0, -799.0)),
    ):
        pair = [
            (rng.normal(size=(5, 3)).astype(np.float32), (rng.normal(size=5) + by).astype(np.float32)) for by in shift
        ]
        cases.append((name, pair))
    (mean, level), other = ((array.copy() for array in one) for one in cases[0][1])
    mean[1], level[1] = 0, -np.inf
    first = mean, level
    cases.append(("Where the first saw no key, ", [first, tuple(other)]))
    cases.append(("Where the second saw no key, ", [cases[0][1][1], first]))
    return cases


def _merged(pair):
    (mean, level), (other, other_level) = ((m.astype(np.float64), x.astype(np.float64)) for m, x in pair)
    both = np.logaddexp(level, other_level)
    return np.exp(level - both)[:, None] * mean + np.exp(other_level - both)[:, None] * other, both


def _mean_slips(pair):
    (mean, level), (other, other_level) = ((m.astype(np.float64), x.astype(np.float64)) for m, x in pair)
    a, b = np.exp(level)[:, None], np.exp(other_level)[:, None]
    linear, linear_other = level[:, None], other_level[:, None]
    p = a / (a + b)
    larger = np.exp(np.minimum(level - other_level, 0))[:, None], np.exp(np.minimum(other_level - level, 0))[:, None]
    return [
        (
            (mean + other) / 2,
            "the plain mean of the two: the one that has seen more, or larger, scores counts for more",
        ),
        (mean + other, "the sum of the two: each has been divided by its own sum already, so what are the two shares?"),
        (
            (linear * mean + linear_other * other) / (linear + linear_other),
            "weighted with the levels: a level is the log of a sum, and the sums are what weighs",
        ),
        (a * mean + b * other, "weighted with the two sums, and not divided by their sum"),
        (
            larger[0] * mean + larger[1] * other,
            "rescaled to the larger level, and not divided by the sum of the shares",
        ),
        ((1 - p) * mean + p * other, "weighted with each other's share: the two have changed places"),
        (mean, "the first's mean alone"),
        (other, "the second's mean alone"),
        (np.where(level > other_level, mean.T, other.T).T, "that of the larger level alone; the other counts, too"),
    ]


def _level_slips(pair):
    level, other = (x.astype(np.float64) for _, x in pair)
    return [
        (level + other, "the sum of the two levels: levels are logs, and it is the sums behind them that add up"),
        (np.maximum(level, other), "the larger of the two: the sum behind the other one is missing in it"),
        (
            (level + other) / 2,
            "the mean of the two levels: levels are logs, and it is the sums behind them that add up",
        ),
        (np.exp(level) + np.exp(other), "the sum itself; a level is its log"),
        (level, "the first's alone"),
        (other, "the second's alone"),
        (np.logaddexp(level, other) - np.log(2), "the log of half of the sum: the sums add up, they are not averaged"),
        (
            np.logaddexp(level, other) - np.maximum(level, other),
            "that after the larger level was subtracted; add it again",
        ),
    ]


def _judge_merge(answer):
    for name, pair in _results():
        given = [tuple(array.copy() for array in one) for one in pair]
        with np.errstate(all="ignore"):
            got = several(answer(*given), 2, "a pair, the mean and the level")
        try:
            arrays = [np.asarray(value, np.float64) for value in got]
        except (TypeError, ValueError) as error:
            raise Wrong(f"You return {shown(got)}; expected a pair of arrays, the mean and the level.") from error
        mean, level = arrays
        if mean.shape == (5,) and level.shape == (5, 3):
            raise Wrong("You return the level first; expected the mean, and then the level.")
        for array, shape, what in ((mean, (5, 3), "mean"), (level, (5,), "level")):
            if array.shape != shape:
                raise Wrong(f"Your {what} has shape {array.shape}; expected {shape}.")
        want = _merged(pair)
        for what, array, right in (("mean", mean, want[0]), ("level", level, want[1])):
            bad = ~np.isfinite(array)
            if bad.any():
                at = [int(i) for i in np.argwhere(bad)[0]]
                raise Wrong(
                    f"{f'{name}your' if name else 'Your'} {what} at {at} is {array[tuple(at)]}.{_why_no_number(name, pair, array)}"
                )
            if _close(array, right):
                continue
            with np.errstate(all="ignore"):
                words = explained(array, (_mean_slips if what == "mean" else _level_slips)(pair))
            at = tuple(int(i) for i in np.argwhere(~np.isclose(array, right, rtol=1e-4, atol=1e-6))[0])
            begin = f"{name}your" if name else "Your"
            if words:
                raise Wrong(f"{begin} {what} is {words}{'' if words[-1] == '?' else '.'}")
            raise Wrong(
                f"{begin} {what} at {list(at)} is {array[at]:.5g}, expected {right[at]:.5g}. Of each query, the first result stands "
                "for a sum of exp(score), and the second for another: which share of both sums has each?"
            )


def _why_no_number(name, pair, array):
    if "no key" in name:
        return " A level of minus infinity is a sum of 0: its exp is 0, but minus infinity less itself, or times 0, is nan."
    if "-800" in name:
        return (
            " The exp of -800 is 0 in floating point, and so is the sum. Take the larger level off both before the exp."
        )
    if "800" in name:
        return " The exp of 800 is beyond all floating-point numbers. Take the larger level off both before the exp."
    return ""


@exercise(
    _judge_merge,
    "Behind a level stands a sum, exp(level). The sums add up, and each mean counts with its share of both. np.logaddexp(a, b) is "
    "the log of exp(a) + exp(b), without computing either.",
)
def merge(first, second):
    """Merge the (mean (tokens, features), level (tokens,)) of two; return the pair."""
    (mean, level), (other, other_level) = first, second
    both = np.logaddexp(level, other_level)
    share, other_share = np.exp(level - both), np.exp(other_level - both)
    return share[:, None] * mean + other_share[:, None] * other, both


WINDOWS = [
    (48, 6, 1),
    (48, 6, 2),
    (48, 6, 9),
    (48, 6, 10),
    (48, 6, 16),
    (48, 6, 30),
    (48, 6, 48),
    (35, 5, 8),
    (35, 5, 9),
    (40, 4, 22),
    (40, 4, 40),
]


def _judge_sends_for_window(answer):
    said, want = [], []
    for case in WINDOWS:
        text = "For {} tokens on {} devices and a window of {} you say".format(*case)
        said.append(number(answer(*case), "one whole number, of sends", said=text, whole=True))
        tokens, n, window = case
        piece = tokens // n
        want.append(sum(n > step > 0 and step * piece - piece + 1 < window for step in range(n)))
    if said == want:
        return
    cases = np.array(WINDOWS)
    tokens, n, window = cases.T
    piece, most = tokens // n, n - 1
    before = window - 1

    def up(a):
        return -(-a // piece)

    raw = {
        "You count whole pieces in the window. The first query of a piece has all the rest of its window in pieces before "
        "its own": window // piece,
        "You count how many pieces the window is long. The query itself is in it, and its own piece is there without a "
        "send": up(window),
        "You round down, or look at the last query of a piece. The first query looks further back, and for one key the whole "
        "piece has to come": before // piece,
        "You take the device's own piece off. The first query of a piece has nothing of its window there but itself": np.maximum(
            up(before) - 1, 0
        ),
        "Those are the tokens before the query; pieces travel whole": before,
        "You count a send more than is needed: a device has its own piece from the start": up(before) + 1,
        "That is a send for each device, as without a window": most,
    }
    slips = []
    for words, value in raw.items():
        slips += [(value.tolist(), words), (np.minimum(value, most).tolist(), words)]
    more = (
        "For a long window you ask for more sends than there are other pieces: of n pieces, n - 1 come from elsewhere"
    )
    slips.append((up(before).tolist(), more))
    words = explained(said, slips)
    at = next(i for i, (a, b) in enumerate(zip(said, want, strict=True)) if a != b)
    case = "For {} tokens on {} devices and a window of {} you say".format(*WINDOWS[at])
    raise Wrong(
        f"{case} {said[at]}, expected {want[at]}. {words or 'Which is the earliest key that the first query of a piece sees, and in which piece does it lie'}"
        + ("." if words else "?")
    )


@exercise(
    _judge_sends_for_window,
    "The first query of a piece looks furthest back: window - 1 tokens before its piece. How many pieces are those, rounded up? "
    "And how many can there be at most?",
)
def sends_for_window(tokens, n, window):
    """Return how often to send the pieces on; a token sees `window`, itself last."""
    piece = tokens // n
    return min(n - 1, math.ceil((window - 1) / piece))


@functools.cache
def _heads_case(heads):
    """Numbers that name their place: head, token and feature of each key."""
    head, token, feature = np.ogrid[:heads, :24, :5]
    return (100 * head + token + feature / 8 + 1).astype(np.float32)


def _judge_spread(answer):
    mesh = make_mesh((8,), ("seq",))
    for heads in (2, 4):
        x = _heads_case(heads)
        program = jax.shard_map(part(answer, (1, 24, 5)), mesh=mesh, in_specs=P(None, "seq"), out_specs=P("seq"))
        cpu = jax.devices()[0].platform == "cpu"
        options = {"xla_backend_optimization_level": 0} if cpu else None
        compiled = jax.jit(program).lower(x).compile(options)
        got = np.asarray(compiled(x))  # (8, 24, 5), a row for each device
        want = np.repeat(x, 8 // heads, axis=0)
        if not _close(got, want):
            _refuse_heads(got, x, heads)
        sent = cost(compiled).bytes_sent / (3 * 5 * 4)
        if sent > 7.01:
            raise Wrong(
                f"Right values, and with {heads} key heads a device sends {sent:.3g} of its (tokens, features) blocks; at most 7 are "
                "asked, one for each other device. Which devices need a block, and who else gets it from you?"
            )


def _refuse_heads(got, x, heads):
    group = 8 // heads
    device = next(d for d in range(8) if not _close(got[d], x[d // group]))
    holds = [head for head in range(heads) if _close(got[device], x[head])]
    which = f"With {heads} key heads, device {device}, which has query head {device},"
    if holds:
        why = "Which query heads share a key head?"
        if all(_close(got[d], x[d % heads]) for d in range(8)):
            why = f"In your order query heads 0 and {heads} share a key head; it is neighbours that do."
        elif all(_close(got[d], x[holds[0]]) for d in range(8)):
            why = "All devices have the same one."
        raise Wrong(f"{which} has key head {holds[0]}; it needs key head {device // group}. {why}")
    whose = sorted(set((got[device].ravel() - 1).astype(int) // 100))
    tokens = (got[device, :, 0] - 1).astype(int) % 100
    place = int((tokens != np.arange(24)).argmax())
    order = sorted(got[device].ravel()) == sorted(x[device // group].ravel())
    raise Wrong(
        f"{which} has its key head, with the tokens out of order: at place {place} stands token {tokens[place]}."
        if order
        else f"{which} has numbers of key heads {', '.join(map(str, whose[:8]))}; expected all 24 tokens of key head {device // group}, in their order."
    )


@exercise(
    _judge_spread,
    "An all-to-all gives device d block d of each device. How do you get from 2 or 4 blocks to 8, with each block where its "
    "query heads are?",
)
def spread(k):
    """Per device: k (2 or 4 heads, tokens, features) -> (1, 8 * tokens, features)."""
    repeated = jnp.repeat(k, 8 // len(k), axis=0)
    return jax.lax.all_to_all(repeated, "seq", split_axis=0, concat_axis=1, tiled=True)


TRAFFIC = [  # tokens, heads, key heads, features, devices
    (96, 8, 8, 16, 8),
    (48, 64, 8, 10, 8),
    (60, 12, 6, 5, 6),
    (30, 20, 10, 7, 5),
    (64, 16, 2, 6, 8),
    (40, 12, 12, 3, 8),
    (36, 12, 4, 9, 4),
]


def _traffic(tokens, heads, key_heads, features, n):
    block = tokens * features * 4 // n  # bytes of one head's piece
    ring = 2 * (n - 1) * key_heads * block
    fits = heads % n == 0 and key_heads % n == 0
    return ring, 2 * (n - 1) * (heads + key_heads) * block / n if fits else None


def _judge_traffic(answer):
    said, want = [], [_traffic(*case) for case in TRAFFIC]
    names = ["For {} tokens, {} heads, {} key heads, {} features and {} devices".format(*case) for case in TRAFFIC]
    for case, name in zip(TRAFFIC, names, strict=True):
        ring, ulysses = several(
            answer(*case), 2, "a pair, (bytes of the ring, bytes of Ulysses)", said=f"{name} you return"
        )
        ring = number(ring, "one number, of bytes", said=f"{name} your ring sends")
        if ulysses is not None:
            ulysses = number(ulysses, "one number, of bytes, or None", said=f"{name} your Ulysses sends")
        said.append((ring, ulysses))
    tokens, heads, key_heads, features, n = np.array(TRAFFIC, float).T
    block, away = tokens * features * 4 / n, n - 1
    ring = 2 * away * key_heads * block
    _refuse_bytes(
        "ring",
        [pair[0] for pair in said],
        ring,
        names,
        [
            (2 * away * heads * block, "the keys and values that travel have fewer heads than the queries"),
            (2 * n * key_heads * block, "a piece is sent on n - 1 times; its own a device has"),
            (ring / 4, "you count numbers; a float32 takes 4 bytes"),
            (ring / 2, "keys and values travel, both; or you count 2 bytes a number"),
            (ring * n, "you count whole arrays, or all devices; a device sends a piece at a time"),
            (away * (heads + 2 * key_heads) * block, "the queries stay where they are"),
            (2 * away * (heads + key_heads) * block, "the queries stay where they are, and so do the results"),
            (ring / away, "that is one round; a piece is sent on n - 1 times"),
            (away * (heads + key_heads) * block, "keys and values travel, both with the heads of the keys"),
        ],
        "Keys and values, each with its heads, go through n - 1 sends of one piece.",
    )
    for (_, got), (_, right), name, case in zip(said, want, names, TRAFFIC, strict=True):
        _, h, k, _, devices = case
        if right is None and got is not None:
            which = f"{h} heads" if h % devices else f"{k} key heads"
            raise Wrong(
                f"{name} your Ulysses sends {got:,.6g}; expected None. {which} cannot be cut into {devices} equal parts."
            )
        if right is not None and got is None:
            raise Wrong(
                f"{name} your Ulysses is None, and both {h} and {k} heads can be cut into {devices} equal parts."
            )
    fits = np.array([right is not None for _, right in want])
    right = (2 * away * (heads + key_heads) * block / n)[fits]
    keys, all_heads = (2 * away * one * block / n for one in (key_heads, heads))
    _refuse_bytes(
        "Ulysses",
        [got for _, got in said if got is not None],
        right,
        [name for name, fit in zip(names, fits, strict=True) if fit],
        [
            ((2 * all_heads)[fits], "keys and values have fewer heads than the queries"),
            ((2 * keys)[fits], "the queries, and the results, have all the heads"),
            ((all_heads / 2 + keys)[fits], "the results go back in a fourth all-to-all, with all the heads"),
            ((all_heads / 2 + 3 * keys / 2)[fits], "the results have the heads of the queries"),
            ((all_heads + keys / 2)[fits], "keys and values are exchanged, both"),
            ((all_heads / 2 + keys / 2)[fits], "four arrays are exchanged: queries, keys, values and results"),
            (right * (n / away)[fits], "a device keeps 1/n of what it exchanges"),
            (right * n[fits], "in an all-to-all each part is sent once, not n - 1 times; or you count whole arrays"),
            (right / 4, "you count numbers; a float32 takes 4 bytes"),
        ],
        "Four all-to-alls, each of a piece with its heads, of which a device keeps 1/n.",
    )


def _refuse_bytes(which, said, want, names, slips, advice):
    want = [float(one) for one in want]
    if np.allclose(said, want, rtol=1e-6):
        return
    words = explained(said, slips)
    at = next(i for i, (a, b) in enumerate(zip(said, want, strict=True)) if not math.isclose(a, b, rel_tol=1e-6))
    name = "ring" if which == "ring" else "Ulysses"
    raise Wrong(
        f"{names[at]} your {name} sends {said[at]:,.6g} bytes, expected {want[at]:,.6g}: {words or advice.rstrip('.')}."
    )


@exercise(
    _judge_traffic,
    "Count each array that moves with its own heads, and what part of a piece a device keeps. Ring: two arrays, n - 1 whole sends. "
    "Ulysses: four arrays, (n - 1)/n of a piece each.",
)
def bytes_of_both(tokens, heads, key_heads, features, n):
    """Return (ring, Ulysses): the bytes that each device sends, forward, in float32."""
    head = 4 * tokens * features // n  # a device's tokens of one head
    ring = (n - 1) * 2 * key_heads * head
    if heads % n or key_heads % n:
        return ring, None
    return ring, (n - 1) * 2 * (heads + key_heads) * head // n


def _judge_balanced(answer):
    for tokens, n in ((24, 4), (60, 3), (64, 8)):
        name = f"For {tokens} tokens on {n} devices"
        got = answer(tokens, n)
        flat = np.ravel(got) if getattr(got, "size", 0) == tokens else got
        order = numbers(
            flat, (tokens,), f"{tokens} places of tokens, in a list or an array", f"{name} you return", whole=True
        )
        if (missing := sorted(set(range(tokens)) - set(order.tolist()))) or len(order) != tokens:
            twice = sorted({int(one) for one in order if (order == one).sum() > 1})
            outside = sorted({int(one) for one in order if not 0 <= one < tokens})
            what = f"token {twice[0]} is there twice" if twice else f"{outside[0]} is no token"
            raise Wrong(
                f"{name} your order lacks token {missing[0]}, and {what}; expected each of 0 to {tokens - 1} once."
            )
        pairs = (order.reshape(n, -1) + 1).sum(1)  # token t sees t + 1 keys
        if len(set(pairs.tolist())) == 1:
            continue
        in_order, chunks = np.arange(tokens), np.arange(tokens).reshape(2 * n, -1)
        slips = [
            (in_order, "These are the tokens in their own order: the last device has the longest rows"),
            (in_order[::-1], "Backwards it is as unfair, the other way round"),
            (
                in_order.reshape(-1, n).T.ravel(),
                "Dealt out one by one it is nearly fair, but in each round a device has a token later than the device before it",
            ),
            (
                chunks.reshape(2, n, -1).swapaxes(0, 1).ravel(),
                "A chunk of each half is a beginning, but both halves go up: device 0 has the first of both, the last device the last",
            ),
        ]
        words = next((words for other, words in slips if np.array_equal(order, other)), "")
        low, high = int(pairs.argmin()), int(pairs.argmax())
        raise Wrong(
            f"{name} device {low} computes {pairs[low]} pairs and device {high} {pairs[high]}; expected {pairs.mean():g} on each. "
            f"{words or 'Token t has t + 1 pairs. Which token makes up for token 0, if each two that belong together have the same number'}"
            + ("." if words else "?")
        )


@exercise(
    _judge_balanced,
    "Token t has t + 1 pairs, so tokens t and tokens - 1 - t have tokens + 1 together, for every t. Give each device such couples.",
)
def balanced(tokens, n):
    """Return an order of 0 ... tokens - 1, of which n equal parts have equal pairs."""
    chunks = np.arange(tokens).reshape(2 * n, -1)
    return np.concatenate([chunks[[i, 2 * n - 1 - i]].ravel() for i in range(n)])
