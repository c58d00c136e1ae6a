"""Wrong answers to the exercises of notebook 12, and right ones in unusual forms."""

from __future__ import annotations

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from utils.compat import varying
from utils.exercises import ex12


def enough_by_search(p, share):
    m = 1
    while (p - 1) / (m + p - 1) > share:
        m += 1
    return m


def enough_by_halving(p, share):
    low, high = 0, 10**6
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if (p - 1) <= share * (middle + p - 1) else (middle, high)
    return np.int64(high)


def waste_by_table(times, m):
    """Devices by ticks, and what of each tick is work."""
    p, longest = len(times), max(times)
    useful = np.zeros((p, m + p - 1))
    for s, seconds in enumerate(times):
        useful[s, s : s + m] = seconds / longest
    return 1 - useful.mean()


def share_wasted(whole):
    """1 - useful over the whole, which is a function of p, m and the times."""
    return lambda times, m: 1 - m * sum(times) / whole(len(times), m, np.array(times))


def jobs(begin, wait):
    """An order: `begin(s, p, m)` forward passes, then F, B, and the W of `wait(s, p, m)` microbatches ago."""

    def order_of(s, p, m):
        first, lag = min(begin(s, p, m), m), wait(s, p, m)
        found = [("F", i) for i in range(first)]
        for i in range(m):
            found += [("F", first + i)] * (first + i < m) + [("B", i)] + [("W", i - lag)] * (i >= lag)
        return found + [("W", i) for i in range(max(m - lag, 0), m)]

    return order_of


def usual(s, p, m):
    return p - 1 - s


def order_of_all_at_once(s, p, m):
    return [(kind, i) for kind in "FBW" for i in range(m)]


def order_without(kind, microbatch):
    return lambda s, p, m: [job for job in jobs(usual, lambda s, p, m: s)(s, p, m) if job != (kind, microbatch)]


def order_by_room(s, p, m):
    """Greedy: B as soon as it may be there, F while there is room, else W."""
    found, f, b, w = [], 0, 0, 0
    while w < m:
        if f < m and f < p - s + b and f - w < p:
            found.append(("F", f))
            f += 1
        if b < f and f - b >= min(p - s, m - b):
            found.append(("B", b))
            b += 1
        if b - w > s or b == m:
            found.append(("W", w))
            w += 1
    return found


def order_as_arrays(s, p, m):
    return np.array(jobs(usual, lambda s, p, m: s)(s, p, m), dtype=object)


def order_from_last(s, p, m):
    """The stages counted from the wrong end."""
    return jobs(lambda s, p, m: s, lambda s, p, m: p - 1 - s)(s, p, m)


RING = [(s, (s + 1) % 4) for s in range(4)]
LEFT = [(b, a) for a, b in RING]


def rounds_of(pairs=RING, from_x=4, extra=3, keep=-4, collect=3, reduce=lax.psum, start=None, wrap=lambda t: t % 4):
    """`again`, with one thing or another changed."""

    def again(w, x, rounds):
        stage = lax.axis_index("stage")

        def tick(arrived, t):
            h = jnp.tanh(jnp.where((stage == 0) & (t < from_x), x[wrap(t)], arrived) @ w)
            return lax.ppermute(h, "stage", pairs), h

        begin = varying(jnp.zeros_like(x[0]), "stage") if start is None else start(x)
        results = lax.scan(tick, begin, jnp.arange(4 * rounds + extra))[1]
        results = results[keep:][:4] if keep < 0 else results[keep : keep + 4]
        return reduce(jnp.where(stage == collect, results, 0), "stage")

    return again


def unscanned(w, x, rounds):
    """A Python loop, and the results kept in an array."""
    stage = lax.axis_index("stage")
    h, out = varying(jnp.ones_like(x[0]), "stage"), varying(jnp.zeros_like(x), "stage")
    for t in range(4 * rounds + 3):
        if t < 4:
            h = jnp.where(stage == 0, x[t], h)
        h = jnp.tanh(jnp.dot(h, w))
        if t >= 4 * rounds - 1:
            out = out.at[t - (4 * rounds - 1)].set(h)
        h = lax.ppermute(h, "stage", RING)
    return lax.psum(out * (stage == 3), "stage")


def gathered_results(w, x, rounds):
    """The result of the last stage by an all-gather: right, and typed as varying."""
    stage = lax.axis_index("stage")

    def tick(t, carry):
        arrived, out = carry
        h = jnp.tanh(jnp.where((stage == 0) & (t < 4), lax.dynamic_index_in_dim(x, t % 4, keepdims=False), arrived) @ w)
        return lax.ppermute(h, "stage", RING), out.at[(t - 3) % 4].set(h)

    zeros = varying(jnp.zeros_like(x[0]), "stage"), varying(jnp.zeros_like(x), "stage")
    return lax.all_gather(lax.fori_loop(0, 4 * rounds + 3, tick, zeros)[1], "stage")[3]


def all_weights(w, x, rounds):
    """Every device computes all."""
    every = lax.all_gather(w, "stage")

    def once(h, _):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), h, every)[0], None

    return lax.scan(once, varying(x, "stage"), length=rounds)[0]


def round_after_round(w, x, rounds):
    """The line runs empty before the next round begins."""
    for _ in range(rounds):
        x = rounds_of()(w, x, 1)
    return x


def one_at_a_time(w, x, rounds):
    """All four microbatches in one tick, and the others wait: three quarters of the products are garbage."""
    stage, h = lax.axis_index("stage"), varying(x, "stage")
    for _ in range(4 * rounds):
        h = lax.ppermute(jnp.tanh(h @ w), "stage", RING)
    return lax.psum(jnp.where(stage == 0, h, 0), "stage")


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex12.enough: [
        (lambda p, share: math.ceil((p - 1) / share), "that is for (p - 1)/m"),
        (lambda p, share: (p - 1) // share, "that is for (p - 1)/m"),
        (lambda p, share: int((p - 1) * (1 - share) / share), "one microbatch fewer than is enough"),
        (lambda p, share: int((p - 1) * (1 - share) / share) + 2, "one microbatch more than is needed"),
        (lambda p, share: math.ceil((p - 1) * (1 - share) / share) + p - 1, "the number of ticks"),
        (lambda p, share: math.ceil(p * (1 - share) / share), "p - 1 ticks, not p"),
        (lambda p, share: math.ceil((p - 1) / share) - p, "there are m + p - 1 ticks, not m + p"),
        (lambda p, share: math.ceil(2 * (p - 1) * (1 - share) / share), "the way back has a bubble of its own"),
        (lambda p, share: math.ceil((p - 1) * share / (1 - share)), "have changed places"),
        (lambda p, share: round((p - 1) * (1 - share) / share), "rounded to the nearest"),
        (lambda p, share: 4 * p, "a rule of thumb"),
        (lambda p, share: 0, "without a microbatch"),
        (lambda p, share: 40, "would be enough"),
        (lambda p, share: (p - 1) * (1 - share) / share, "expected one whole number"),
        (lambda p, share: 3, "which is more"),
        (lambda p, share: None, "you return None"),
    ],
    ex12.waste: [
        (lambda times, m: (len(times) - 1) / (m + len(times) - 1), "as if all stages took the same time"),
        (share_wasted(lambda p, m, t: p * (m + p - 1) * t.mean()), "as if all stages took the same time"),
        (lambda times, m: 1 - np.mean(times) / np.max(times), "that is the waiting within a tick alone"),
        (lambda times, m: 1 - waste_by_table(times, m), "the share that is useful"),
        (share_wasted(lambda p, m, t: p * (t.sum() + (m - 1) * t.max())), "send as soon as they are done"),
        (
            lambda times, m: (len(times) - 1) / (m + len(times) - 1) + 1 - np.mean(times) / max(times),
            "a part counts twice",
        ),
        (lambda times, m: 1 / (1 - waste_by_table(times, m)) - 1, "over what is useful"),
        (share_wasted(lambda p, m, t: (m + p - 1) * t.max()), "all p devices take the time"),
        (share_wasted(lambda p, m, t: p * (m + p) * t.max()), "not m + p"),
        (share_wasted(lambda p, m, t: m * p * (m + p - 1) * t.max()), "the work for one microbatch"),
        (share_wasted(lambda p, m, t: p * (m + p - 1) * t[-1]), "the last stage is not always the slowest"),
        (share_wasted(lambda p, m, t: p * (m + p - 1) * t[0]), "the first stage is not always the slowest"),
        (share_wasted(lambda p, m, t: p * (m + p - 1) * t.min()), "not as the fastest"),
        (lambda times, m: 100 * waste_by_table(times, m), "at most 1, not 100"),
        (lambda times, m: waste_by_table(times, m) + 0.01, "how long are all ticks together"),
        (lambda times, m: times, "expected one number"),
    ],
    ex12.order_of: [
        (order_of_all_at_once, "as in GPipe"),
        (jobs(usual, lambda s, p, m: 0), "Each W stands right behind its B"),
        (jobs(usual, lambda s, p, m: m), "every W waits until the end"),
        (jobs(usual, lambda s, p, m: p - 1 - s), "how long may a W wait, on this stage?"),
        (jobs(lambda s, p, m: 0, lambda s, p, m: 1), "it could take in others meanwhile"),
        (jobs(lambda s, p, m: p - 1, lambda s, p, m: s), "live ones at a time"),
        (jobs(lambda s, p, m: 2 * (p - 1 - s), lambda s, p, m: s), "live ones at a time"),
        (order_from_last, "turn that round"),
        (jobs(usual, lambda s, p, m: min(s, 1)), "Which W could stand there?"),
        (order_without("W", 3), "('W', 3) in it 0 times"),
        (lambda s, p, m: [("B", 0), *jobs(usual, lambda s, p, m: s)(s, p, m)], "('B', 0) in it 2 times"),
        (lambda s, p, m: jobs(usual, lambda s, p, m: s)(s, p, m)[::-1], "wait for each other"),
        (
            lambda s, p, m: [("W", i) for i in range(m)] + [(k, i) for k in "FB" for i in range(m)],
            "further down in its list",
        ),
        (lambda s, p, m: [f"F{i}" for i in range(m)], "as a job; expected a pair such as"),
        (lambda s, p, m: [(i, "F") for i in range(m)], "as a job; expected a pair such as"),
        (lambda s, p, m: [("F", i + 1) for i in range(m)], "the microbatches 0 to"),
        (lambda s, p, m: None, "a list of pairs"),
    ],
    ex12.again: [
        (rounds_of(pairs=LEFT), "the sends go to the left"),
        (rounds_of(from_x=10**6), "Does stage 0 take x again in each round?"),
        (rounds_of(collect=0), "stage 0"),
        (rounds_of(collect=2), "stage 2"),
        (rounds_of(keep=0), "of ticks 0 to 3"),
        (rounds_of(extra=0), "of ticks 8 to 11"),
        (rounds_of(extra=2), "of ticks 10 to 13"),
        (rounds_of(extra=4), "of ticks 12 to 15"),
        (rounds_of(extra=-1), "has been through the network 2 times, not 3"),
        (rounds_of(extra=7), "has been through the network 4 times, not 3"),
        (rounds_of(from_x=1), "takes x for 1 tick, where"),
        (rounds_of(reduce=lambda out, axis: out), "every device is to return them"),
        (rounds_of(reduce=lax.pmean), "a quarter of the right ones"),
        (rounds_of(start=lambda x: jnp.zeros_like(x[0])), "input carry"),
        (rounds_of(wrap=lambda t: jnp.maximum(3 - t, 0)), "in another order"),
        (rounds_of(wrap=lambda t: (t + 1) % 4), "in another order"),
        (all_weights, "48 products; 15 are asked"),
        (round_after_round, "21 products; 15 are asked"),
        (lambda w, x, rounds: x, "you return x as it came"),
        (rounds_of(from_x=10**6, wrap=lambda t: jnp.minimum(t, 3)), "what comes back from stage 3"),
        (rounds_of(reduce=lambda out, axis: lax.psum(out, axis) + 1), "your results are the same on all devices"),
        (lambda w, x, rounds: rounds_of()(w, x, rounds)[0], "shape (3, 5); expected (4, 3, 5)"),
        (lambda w, x, rounds: None, "Does it end with `return`?"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex12.enough: [
        enough_by_search,
        enough_by_halving,
        lambda p, share: float(math.ceil((p - 1) / share - (p - 1))),
        lambda p, share: jnp.ceil((p - 1) * (1 / share - 1)),
        lambda p, share: -int((p - 1) * (1 - Fraction(share)) // -Fraction(share)),
        lambda p, share: np.array(next(m for m in range(1, 9999) if 1 - m / (m + p - 1) <= share)),
    ],
    ex12.waste: [
        waste_by_table,
        lambda times, m: np.float32(waste_by_table(times, m)),
        lambda times, m: jnp.asarray(waste_by_table(times, m)),
        lambda times, m: float(1 - Fraction(m, m + len(times) - 1) * Fraction(np.mean(times)) / Fraction(max(times))),
        lambda times, m: np.mean([1 - m * t / ((m + len(times) - 1) * sorted(times)[-1]) for t in times]),
    ],
    ex12.order_of: [
        jobs(usual, lambda s, p, m: s),
        order_by_room,
        order_as_arrays,
        lambda s, p, m: [[kind, np.int64(i)] for kind, i in jobs(usual, lambda s, p, m: s)(s, p, m)],
        lambda s, p, m: tuple((kind, float(i)) for kind, i in jobs(usual, lambda s, p, m: s)(s, p, m)),
        lambda s, p, m: [*map(list, dict.fromkeys(jobs(usual, lambda s, p, m: s)(s, p, m)))],
    ],
    ex12.again: [
        rounds_of(),
        rounds_of(start=lambda x: varying(x[2], "stage")),
        unscanned,
        gathered_results,
        jax.jit(rounds_of(), static_argnums=2),
        rounds_of(reduce=lambda out, axis: lax.all_gather(out, axis).sum(0)),
    ],
}

# exercise: changes of the solution in one place that compute the same
SAME = {
    ex12.again: [
        (
            "start = varying(jnp.zeros_like(x[0]), 'stage') -> start = varying(x[0], 'stage')",
            "what arrives in the first ticks is never among the last results",
        ),
        (
            "h = jnp.where((stage == 0) & (t < 4), x[t % 4], arrived) -> h = jnp.where((stage == 0) & (t < 4), x[t % 5], arrived)",
            "of ticks below 4 the remainder is the tick itself, and later ones are not taken",
        ),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex12.bubble: (  # 3/4, 3/11, 7/15
        {"4, 1": 3 / 4, "4, 8": 3 / 11, "8, 8": 7 / 15},
        [
            ((0.25, None, None), "so much of it is work"),
            ((3, None, None), "over the useful time"),
            ((None, 0.375, None), "over the useful time, 3/8"),
            ((None, 0.5, None), "3 ticks of 11"),
            ((None, 0.33, None), "p - 1 ticks, not p"),
            ((None, 8 / 11, None), "so much of it is work"),
            ((None, 27.27, None), "a share of all is at most 1"),
            ((None, None, 0.545), "not twice that of 4 stages"),
            ((None, None, 0.27), "it takes 7 ticks"),
            ((None, None, 0.875), "over the useful time, 7/8"),
        ],
    ),
    ex12.first_tick: ("numbers", [("zeros", "its layers have biases"), ("nothing", "no way to do nothing")]),
    ex12.fill: (
        {"watched": "falls", "true": "rises"},
        [(("rises", None), "right or wrong"), ((None, "falls"), "the labels of another one")],
    ),
    ex12.flops: (  # (8 + 3) / 8
        1.375,
        [
            (1, "only what is useful"),
            (14 / 11, "3/11 is the bubble's share of the whole"),
            (1.5, "it fills for p - 1 ticks"),
            (5.5, "not over a quarter"),
        ],
    ),
    ex12.three_cuts: (
        {"depth cut: pipeline": 1, "weights cut: FSDP": 2, "layers cut: tensor": 3},
        [
            ((3, None, None), "once a tick and way"),
            ((None, 3, 2), "all-reduces the activations"),
            ((2, 1, 3), "three quarters"),
        ],
    ),
    ex12.of_1f1b: ("the same", [("smaller", "stage 0 still has to wait"), ("larger", "none of them later")]),
    ex12.live: (
        {"GPipe, 0": 32, "1F1B, 0": 4, "1F1B, 3": 1},
        [
            ((4, None, None), "takes in all of them"),
            ((None, 32, None), "no more than it gives back"),
            ((None, 3, None), "one more before the first"),
            ((None, 1, None), "to the last stage and back"),
            ((None, None, 4), "nothing stands behind it"),
        ],
    ),
    ex12.passes: (  # 4 x 14/8
        7,
        [(4.125, "GPipe's"), (5.5, "not in 11 ticks"), (5.25, "14 ticks are right"), (4, "without a bubble")],
    ),
    ex12.growth: (
        {"GPipe": 2.7, "GPipe, checkpoint": 1.5, "1F1B": 1.0},
        [((4, None, None), "35 instead of 11"), ((None, 4, None), "keeps little"), ((None, None, 4), "7 places")],
    ),
    ex12.twice_round: (  # 3/19
        3 / 19,
        [
            (0.136, "the whole is shorter, too"),
            (0.273, "a tick is now half as long"),
            (0.1875, "over the useful time"),
            (7 / 23, "the ring is not longer"),
            (7 / 15, "after 3 ticks"),
        ],
    ),
    ex12.picked: ("before", [("inside", "arrays that are there anyway"), ("the same", "a new copy")]),
}
