"""Wrong answers to the exercises of notebook 14, and right ones in unusual forms."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from utils.exercises import ex14


def pmean(value):
    return jax.lax.pmean(value, "expert")


def psum(value):
    return jax.lax.psum(value, "expert")


def pmax(value):
    return jax.lax.pmax(value, "expert")


def gathered(value):
    return jax.lax.all_gather(value, "expert").mean(axis=0)


def over_data(value):
    return jax.lax.pmean(value, "data")


def queue(key):
    """Places by counting, with another rule for who goes first: key(gate, token) is smaller for those in front."""

    def places(expert, gate):
        found = np.zeros(len(gate), int)
        taken = defaultdict(int)
        for t in sorted(range(len(gate)), key=lambda t: key(gate[t], t)):
            found[t] = taken[expert[t]]
            taken[expert[t]] += 1
        return found

    return places


def by_sorting(expert, gate):
    order = np.lexsort((np.arange(len(gate)), -gate, expert))
    found = np.empty(len(gate), int)
    starts = np.searchsorted(expert[order], expert[order])
    found[order] = np.arange(len(gate)) - starts
    return found


def by_running_sum(expert, gate):
    order = jnp.argsort(-jnp.asarray(gate), stable=True)
    chosen = jax.nn.one_hot(jnp.asarray(expert), 8)[order]
    earlier = ((jnp.cumsum(chosen, axis=0) - chosen) * chosen).sum(axis=1)
    return jnp.zeros(len(gate)).at[order].set(earlier)


def running_sum_unsorted_back(expert, gate):
    order = np.argsort(-gate, kind="stable")
    chosen = np.eye(8)[expert][order]
    return ((np.cumsum(chosen, axis=0) - chosen) * chosen).sum(axis=1).astype(int)


def ranks(expert, gate):
    return np.argsort(np.argsort(-gate, kind="stable"), kind="stable")


def back_by(order):
    """Right places, left in the order of the sorted tokens."""

    def places(expert, gate):
        return by_sorting(expert, gate)[order(expert, gate)]

    return places


def order_within(expert, gate):
    found = np.zeros(len(gate), int)
    for e in np.unique(expert):
        found[expert == e] = np.argsort(-gate[expert == e], kind="stable")
    return found


def by_queue(rank, queues=np.unique):
    """Places queue by queue: rank(gates) of one queue's tokens, in the order of the batch."""

    def places(expert, gate):
        found = np.zeros(len(gate), int)
        for e in queues(expert):
            found[expert == e] = rank(gate[expert == e])
        return found

    return places


def ranked(key, kind="stable"):
    return lambda gate: np.argsort(np.argsort(key(gate), kind=kind), kind="stable")


def stable_if_short(gate):
    """As NumPy's argsort may do it: long queues are mixed where gates are equal."""
    token = np.arange(len(gate)) * (1 if len(gate) < 17 else -1)
    return np.argsort(np.lexsort((token, -gate)))


def larger_gates(gate):
    return np.searchsorted(np.unique(-gate), -gate)


def keys_exchanged(expert, gate):
    column = np.argsort(np.lexsort((expert, -gate)))
    return column - np.array([column[expert == e].min() for e in expert])


def counted(first):
    """Places by comparing all pairs: first(mine, gate, gate[:, None], earlier)."""

    def places(expert, gate):
        token = np.arange(len(gate))
        return first(expert[:, None] == expert, gate, gate[:, None], token < token[:, None]).sum(axis=1)

    return places


def seats_of(tokens, experts, k, factor, n):
    return experts * math.ceil(factor * k * tokens / experts)


def sent(times=4, share=lambda n: (n - 1) / n, seats=seats_of):
    def sent_per_step(tokens, width, experts, k, factor, n, size):
        return times * share(n) * seats(tokens, experts, k, factor, n) * width * size

    return sent_per_step


def balance(outer=lambda v: v, share=lambda v: v, probability=lambda v: v, experts=lambda p: p.shape[1]):
    def whole_balance(p, choice):
        return outer(experts(p) * (share(choice.mean(axis=0)) * probability(p.mean(axis=0))).sum())

    return whole_balance


def gathered_balance(p, choice):
    p, choice = (jax.lax.all_gather(v, "expert", tiled=True) for v in (p, choice))
    return p.shape[1] * (choice.mean(axis=0) * p.mean(axis=0)).sum()


def written(mode, change=lambda e, c, capacity: (e, c)):
    def fill(x, expert, place, capacity, experts):
        slots = jnp.zeros((experts, capacity, x.shape[1]), x.dtype)
        return getattr(slots.at[change(expert, place, capacity)], mode)(x)

    return fill


def in_a_row(method):
    def fill(x, expert, place, capacity, experts):
        slots = jnp.zeros((experts * capacity, x.shape[1]), x.dtype)
        return getattr(slots.at[expert * capacity + place], method)(x).reshape(experts, capacity, -1)

    return fill


def with_minus_one(x, expert, place, capacity, experts):
    row = jnp.where(place < capacity, expert * capacity + place, -1)
    slots = jnp.zeros((experts * capacity, x.shape[1]), x.dtype)
    return slots.at[row].set(x, mode="drop").reshape(experts, capacity, -1)


def asking(x, expert, place, capacity, experts):
    slots = jnp.zeros((experts, capacity, x.shape[1]), x.dtype)
    for t in range(len(x)):
        if place[t] < capacity:
            slots = slots.at[expert[t], place[t]].set(x[t])
    return slots


def by_products(x, expert, place, capacity, experts):
    seats = jax.nn.one_hot(expert, experts)[:, :, None] * jax.nn.one_hot(place, capacity)[:, None]
    return jnp.einsum("txc,td->xcd", seats, x)


def by_arrival(x, expert, place, capacity, experts):
    chosen = jax.nn.one_hot(expert, experts, dtype=int)
    came = ((jnp.cumsum(chosen, axis=0) - chosen) * chosen).sum(axis=1)
    return written("set")(x, expert, came, capacity, experts)


def by_index(x, expert, place, capacity, experts):
    who = jnp.full((experts, capacity), len(x)).at[expert, place].set(jnp.arange(len(x)))
    return jnp.concatenate([x, jnp.zeros_like(x[:1])])[who]


def in_a_longer_row(x, expert, place, capacity, experts):
    row = jnp.where(place < capacity, expert * capacity + place, experts * capacity)
    slots = jnp.zeros((experts * capacity + 1, x.shape[1]), x.dtype).at[row].set(x)
    return slots[:-1].reshape(experts, capacity, x.shape[1])


def by_broadcast(x, expert, place, capacity, experts):
    here = (expert == jnp.arange(experts)[:, None, None]) & (place == jnp.arange(capacity)[:, None])
    return jnp.where(here[..., None], x, 0).sum(axis=2)


def one_by_one(x, expert, place, capacity, experts):
    slots = jnp.zeros((experts, capacity, x.shape[1]))
    for t in range(len(x)):
        here = (jnp.arange(experts) == expert[t])[:, None] & (jnp.arange(capacity) == place[t])
        slots = jnp.where(here[:, :, None], x[t], slots)
    return slots


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex14.seats_per_expert: [
        (lambda b, n, e, k, f: math.ceil(f * b / n / e), "each token chooses k experts"),
        (lambda b, n, e, k, f: math.ceil(f * k * b / e), "that is for the tokens of all devices"),
        (lambda b, n, e, k, f: math.ceil(f * k * b / n / (e / n)), "or for the experts of one"),
        (lambda b, n, e, k, f: n * math.ceil(f * k * b / n / e), "for all groups together"),
        (lambda b, n, e, k, f: int(f * k * b / n / e), "you round down"),
        (lambda b, n, e, k, f: f * k * b // n // e, "you round down"),
        (lambda b, n, e, k, f: round(f * k * b / n / e), "you round to the nearest"),
        (lambda b, n, e, k, f: f * k * b / n / e, "seats are whole; round up"),
        (lambda b, n, e, k, f: math.ceil(k * b / n / e), "the capacity factor is missing"),
        (lambda b, n, e, k, f: math.ceil(f * k * b / n), "the seats of all experts together"),
        (lambda b, n, e, k, f: math.ceil(f * b / n / e / k), "the more experts a token chooses"),
        (lambda b, n, e, k, f: math.ceil(f * math.ceil(k * b / n / e)), "you round up twice"),
        (lambda b, n, e, k, f: f * math.ceil(k * b / n / e), "you round the even share up"),
        (lambda b, n, e, k, f: k * math.ceil(f * b / n / e), "before you multiply by k"),
        (lambda b, n, e, k, f: int(f * k * b / n / e) + 1, "also where nothing had to be rounded"),
        (lambda b, n, e, k, f: math.ceil(f * k * b / n / n), "the number of devices where that of the experts"),
        (lambda b, n, e, k, f: int(f * math.ceil(k * b / n / e)), "and cut the product"),
        (lambda b, n, e, k, f: math.ceil(math.ceil(f) * k * b / n / e), "you round the factor up"),
        (lambda b, n, e, k, f: math.ceil(f) * b * k // n // e, "you round the factor up, and the seats down"),
        (lambda b, n, e, k, f: math.ceil(f * k * b / n / max(1, e // n)), "you count the experts of one device"),
        (lambda b, n, e, k, f: e * math.ceil(f * k * b / n / e), "the seats of all experts together"),
        (lambda b, n, e, k, f: math.ceil(f * k * (b // n // e)), "you round down on the way"),
        (lambda b, n, e, k, f: math.ceil(f * (b * k // n // e)), "you round down on the way"),
        (lambda b, n, e, k, f: math.ceil(f * k * (b // e) / n), "you round down on the way"),
        (lambda b, n, e, k, f: math.ceil(f) * math.ceil(b * k / n / e), "you round the factor up, and the even share"),
        (lambda b, n, e, k, f: min(math.ceil(f * k * b / n / e), b // n), "you stop at the tokens of a group"),
    ],
    ex14.places: [
        (lambda expert, gate: by_sorting(expert, gate) + 1, "counted from 1"),
        (queue(lambda g, t: t), "first come, first seated"),
        (queue(lambda g, t: (g, t)), "begins with the smallest gate"),
        (queue(lambda g, t: (g, -t)), "turned round: the largest gate is last"),
        (queue(lambda g, t: (-g, -t)), "there the later token goes first"),
        (ranks, "one queue of all tokens"),
        (lambda expert, gate: np.argsort(-gate, kind="stable"), "the tokens in the order of the queue"),
        (lambda expert, gate: np.argsort(gate, kind="stable"), "smallest first"),
        (
            lambda expert, gate: ((expert[:, None] == expert) & (gate > gate[:, None])).sum(axis=1),
            "two tokens share a place",
        ),
        (
            lambda expert, gate: ((expert[:, None] == expert) & (gate >= gate[:, None])).sum(axis=1),
            "and each counts itself",
        ),
        (lambda expert, gate: np.bincount(expert)[expert], "the lengths of the queues"),
        (running_sum_unsorted_back, "in the order of the sorted tokens"),
        (back_by(lambda expert, gate: np.lexsort((-gate, expert))), "in the order of the sorted tokens"),
        (lambda expert, gate: np.lexsort((-gate, expert)), "one expert's queue after another's"),
        (lambda expert, gate: np.argsort(np.lexsort((-gate, expert))), "one long row of all queues"),
        (order_within, "who of an expert's tokens is first"),
        (queue(lambda g, t: -t), "last come, first seated"),
        (queue(lambda g, t: (-g, (t * 7) % 17)), "right but for equal gates: there the earlier token goes first"),
        (counted(lambda mine, g, own, earlier: mine & (g >= own) & ~np.eye(len(g), dtype=bool)), "the later place"),
        (counted(lambda mine, g, own, earlier: g > own), "counted among the tokens of all experts"),
        (counted(lambda mine, g, own, earlier: mine & (g > own) & earlier), "among the earlier tokens alone"),
        (counted(lambda mine, g, own, earlier: mine & (g >= own) & earlier), "among the earlier tokens alone"),
        (by_queue(ranked(lambda g: -g, kind=None)), "right but for equal gates"),
        (by_queue(stable_if_short), "in long queues: is your sort stable?"),
        (by_queue(ranked(lambda g: -g, kind="heapsort")), "right but for equal gates"),
        (by_queue(ranked(lambda g: -np.round(g, 2))), "differ by less than a percent"),
        (by_queue(ranked(lambda g: -(g * 100).astype(int))), "differ by less than a percent"),
        (by_queue(ranked(lambda g: -g), lambda expert: range(len(np.unique(expert)))), "nobody chose some expert"),
        (by_queue(larger_gates), "two tokens with one gate are two"),
        (lambda expert, gate: by_sorting(expert, gate)[(o := np.lexsort((-gate, expert)))][o], "picks by the order"),
        (
            lambda expert, gate: running_sum_unsorted_back(expert, gate)[np.argsort(-gate, kind="stable")],
            "picks by the",
        ),
        (keys_exchanged, "`lexsort` sorts by its last key first"),
        (by_queue(lambda g: np.zeros(len(g)), lambda expert: ()), "You put it at place 0"),
        (lambda expert, gate: gate, "expected 17 whole numbers"),
        (lambda expert, gate: by_sorting(expert, gate) + 0.5, "You put token 0 at place"),
    ],
    ex14.sent_per_step: [
        (sent(times=3), "three is the first layer's number"),
        (sent(times=2), "that is forward alone"),
        (sent(times=1), "that is one all-to-all"),
        (sent(share=lambda n: 1), "a device keeps what is for its own experts"),
        (sent(share=lambda n: n - 1), "each device gets another n-th"),
        (sent(share=lambda n: 1 / n), "that is what goes to one device"),
        (sent(times=8), "an all-reduce's share"),
        (sent(seats=lambda t, x, k, f, n: k * t), "you count tokens and not seats"),
        (sent(seats=lambda t, x, k, f, n: f * k * t), "capacity is rounded up"),
        (sent(seats=lambda t, x, k, f, n: x * int(f * k * t / x)), "capacity is rounded up"),
        (sent(seats=lambda t, x, k, f, n: x * round(f * k * t / x)), "rounded up, not to the nearest"),
        (sent(seats=lambda t, x, k, f, n: x * math.ceil(f * t / x)), "each token takes k seats"),
        (sent(seats=lambda t, x, k, f, n: x * math.ceil(k * t / x)), "the capacity factor is missing"),
        (sent(seats=lambda t, x, k, f, n: math.ceil(f * k * t / x)), "the seats of one expert"),
        (sent(seats=lambda t, x, k, f, n: n * math.ceil(f * k * t / x)), "there are more experts than devices"),
        (sent(seats=lambda t, x, k, f, n: n * math.ceil(f * k * t / n)), "among the experts, not among the devices"),
        (sent(seats=lambda t, x, k, f, n: x * math.ceil(f * k * t / n / x)), "those of one device already"),
        (lambda t, d, x, k, f, n, b: sent()(t, 1, x, k, f, n, b), "a seat holds `width` numbers"),
        (lambda t, d, x, k, f, n, b: sent()(t, d, x, k, f, n, 1), "those are numbers"),
        (lambda t, d, x, k, f, n, b: 3 * t * k * d * b * (n - 1) / n, "you count tokens and not seats"),
        (sent(times=6), "that is six all-to-alls"),
        (sent(seats=lambda t, x, k, f, n: k * x * math.ceil(f * t / x)), "before you multiply by k"),
        (sent(seats=lambda t, x, k, f, n: k * x * math.ceil(f * k * t / x)), "k is in your number twice"),
        (sent(seats=lambda t, x, k, f, n: x * math.ceil(f * k * t * n / x)), "a device seats its own tokens"),
        (lambda t, d, x, k, f, n, b: sent()(t, d, x, k, f, n, 4), "you take 4 bytes a number"),
        (lambda t, d, x, k, f, n, b: sent()(t, d, x, k, f, n, 8), "you take 8 bytes a number"),
        (lambda t, d, x, k, f, n, b: 8 * sent()(t, d, x, k, f, n, b), "those are bits"),
        (lambda t, d, x, k, f, n, b: n * sent()(t, d, x, k, f, n, b), "you sum over the devices"),
        (lambda t, d, x, k, f, n, b: sent(share=lambda n: (x - 1) / x)(t, d, x, k, f, n, b), "what stays is one n-th"),
        (sent(share=lambda n: 7 / 8), "7/8 is sent by eight devices"),
    ],
    ex14.whole_balance: [
        (balance(outer=pmean), "the mean of the devices' balances"),
        (balance(outer=psum), "the sum of the devices' balances"),
        (balance(), "the device's own tokens"),
        (balance(share=pmean), "with the probabilities of the device"),
        (balance(probability=pmean), "with the shares of the device"),
        (balance(share=pmean, probability=pmean, experts=lambda p: 1), "the number of experts, which is missing"),
        (lambda p, choice: p.shape[1] * (pmean(choice.mean(0)) * pmean(p.mean(0))).mean(), "divided out by a mean"),
        (balance(share=pmean, probability=pmean, experts=lambda p: 1 / p.shape[1]), "divided by the number of experts"),
        (balance(share=pmean, probability=pmean, experts=lambda p: 8), "8 times the sum over the experts"),
        (balance(share=pmean, probability=pmean, experts=lambda p: p.shape[0]), "tokens stand where experts are meant"),
        (balance(share=pmean, probability=pmean, experts=lambda p: psum(1)), "times the number of devices"),
        (balance(share=lambda v: psum(v) / 8, probability=lambda v: psum(v) / 8), "right on 8 devices alone"),
        (
            balance(share=pmean, probability=lambda v: jax.lax.stop_gradient(pmean(v))),
            "as a loss, nothing could be learned",
        ),
        (lambda p, choice: p.shape[1] * (pmean(p.mean(axis=1)) * pmean(choice.mean(axis=1))).sum(), "over the experts"),
        (
            lambda p, choice: p.shape[1] * (psum(p.sum(axis=0)) @ psum(choice.sum(axis=0))) / psum(len(p)),
            "divided by their number once",
        ),
        (lambda p, choice: p.shape[1] * (psum(p.sum(0)) / 512) @ psum(choice.sum(0)) / 512, "the lesson's 512"),
        (lambda p, choice: p.shape[1] * (pmean(p) * pmean(choice)).sum() / len(p), "token by token"),
        (balance(share=psum, probability=pmean), "one of your averages over the devices is a sum"),
        (balance(share=pmean, probability=pmean, outer=psum), "or the result is summed again"),
        (balance(share=psum, probability=psum), "your averages over the devices are sums"),
        (
            lambda p, choice: p.shape[1] * (pmean(p.mean(axis=0)) ** 2).sum(),
            "made of probabilities alone",
        ),
        (lambda p, choice: p.shape[1] * (pmean(choice.mean(axis=0)) ** 2).sum(), "made of choices alone"),
        (
            lambda p, choice: p.shape[1] * (psum(choice.sum(axis=0)) * psum(p.sum(axis=0))).sum(),
            "made of sums over the tokens",
        ),
        (lambda p, choice: p.shape[1] * pmean((choice * p).mean(axis=0)).sum(), "the mean of choice * p"),
        (
            lambda p, choice: p.shape[1] * pmean(choice.mean(0)) @ pmean((choice * p).mean(0)),
            "in place of the mean of p",
        ),
        (balance(share=pmax, probability=pmax), "the largest of the devices' means"),
        (lambda p, choice: p.shape[1] * (gathered(p) * gathered(choice)).sum(), "all_gather without `tiled`"),
        (lambda p, choice: p.shape[1] * pmean(choice.mean()) * pmean(p.mean()), "means over the experts, too"),
        (lambda p, choice: float(balance(share=pmean, probability=pmean)(p, choice)), "Leave it an array"),
        (balance(share=over_data, probability=over_data), "Does each of your collectives name the axis 'expert'?"),
        (
            lambda p, choice: jax.lax.all_gather(p, "data").mean(),
            "Does each of your collectives name the axis 'expert'?",
        ),
        (lambda p, choice: p.shape[1] * pmean(choice.mean(axis=0)) * pmean(p.mean(axis=0)), "expected ()"),
        (lambda p, choice: None, "None. Does it end with `return`?"),
    ],
    ex14.fill: [
        (written("set", lambda e, c, capacity: (e, jnp.minimum(c, capacity - 1))), "takes the last seat"),
        (written("add", lambda e, c, capacity: (e, jnp.minimum(c, capacity - 1))), "added to the one in the last seat"),
        (in_a_row("add"), "Dropped tokens are added to those in the next expert's first seats"),
        (in_a_row("set"), "Dropped tokens sit in the next expert's seats"),
        (written("set", lambda e, c, capacity: (e, c % capacity)), "at the beginning of its expert's queue again"),
        (written("set", lambda e, c, capacity: (c, e)), "Expert and place are exchanged"),
        (by_products, "FLOPs in products for eleven tokens; 0 are asked"),
        (
            lambda x, expert, place, capacity, experts: by_index(x, expert, place, capacity, experts).swapaxes(0, 1),
            "the experts come first",
        ),
        (lambda x, expert, place, capacity, experts: jnp.zeros((experts, capacity, x.shape[1])), "All is zero"),
        (
            lambda x, expert, place, capacity, experts: -by_index(x, expert, place, capacity, experts),
            "The signs are turned",
        ),
        (
            lambda x, expert, place, capacity, experts: by_index(x, expert, place, capacity, experts)[:, ::-1],
            "from the last one down",
        ),
        (
            lambda x, expert, place, capacity, experts: by_index(x, expert, place, capacity, experts)[::-1],
            "in reverse order",
        ),
        (lambda x, expert, place, capacity, experts: None, "is None. Does the function end with `return`?"),
        (by_arrival, "in the order of the batch"),
        (written("set", lambda e, c, capacity: (e, jnp.where(c < capacity, c, 0))), "takes the first seat"),
        (written("set", lambda e, c, capacity: (e, jnp.where(c == capacity, capacity - 1, c))), "is dropped, too"),
        (written("set", lambda e, c, capacity: (e, c - 1)), "one seat further to the front"),
        (
            lambda x, e, c, capacity, experts: written("set", lambda e, c, capacity: (e, jnp.minimum(c, capacity - 1)))(
                jnp.where((c < capacity)[:, None], x, 0), e, c, capacity, experts
            ),
            "empties the last seat",
        ),
        (
            lambda x, e, c, capacity, experts: (
                jnp.zeros((experts * capacity, x.shape[1]))
                .at[jnp.where(c < capacity, e * experts + c, 99)]
                .set(x)
                .reshape(experts, capacity, -1)
            ),
            "begin at expert * capacity",
        ),
        (with_minus_one, "an index of -1 counts from the end"),
        (
            written("set", lambda e, c, capacity: (jnp.where(c < capacity, e, -1), jnp.minimum(c, capacity - 1))),
            "an index of -1 counts from the end",
        ),
        (
            written("set", lambda e, c, capacity: (e, jnp.where(c < capacity - 1, c, capacity))),
            "last seat of each expert",
        ),
        (asking, "Python's `if`"),
        (lambda x, e, c, capacity, experts: [[0] * capacity][c[0]], "as a Python number"),
        (
            lambda x, e, c, capacity, experts: written("set")(
                x[c < capacity], e[c < capacity], c[c < capacity], capacity, experts
            ),
            "You pick tokens by a mask",
        ),
        (
            lambda x, e, c, capacity, experts: np.zeros((experts, capacity, 5))[np.asarray(e)],
            "You hand a traced array to NumPy",
        ),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex14.seats_per_expert: [
        lambda b, n, e, k, f: np.ceil(f * k * b / n / e),
        lambda b, n, e, k, f: -int(-f * k * b // (n * e)),
        lambda b, n, e, k, f: jnp.ceil(jnp.float32(f) * k * b / n / e),
        lambda b, n, e, k, f: math.ceil(Fraction(f) * k * b / (n * e)),
        lambda b, n, e, k, f: next(s for s in range(10_000) if s * e * n >= f * k * b),
    ],
    ex14.places: [
        queue(lambda g, t: (-g, t)),
        by_sorting,
        by_running_sum,
        lambda expert, gate: queue(lambda g, t: (-g, t))(expert, gate).tolist(),
        lambda expert, gate: [
            sum(expert[u] == expert[t] and (-gate[u], u) < (-gate[t], t) for u in range(len(gate)))
            for t in range(len(gate))
        ],
    ],
    ex14.sent_per_step: [
        lambda t, d, x, k, f, n, b: -int(-f * k * t // x) * x * d * b * 4 * (n - 1) // n,
        lambda t, d, x, k, f, n, b: np.float64(4 * (1 - 1 / n) * x * np.ceil(f * k * t / x) * d * b),
        lambda t, d, x, k, f, n, b: jnp.array(sent()(t, d, x, k, f, n, b)),
        lambda t, d, x, k, f, n, b: 2 * 2 * (n - 1) * (x // n) * math.ceil(Fraction(f) * k * t / x) * d * b,
    ],
    ex14.whole_balance: [
        balance(share=pmean, probability=pmean),
        balance(outer=pmean, share=pmean),
        balance(outer=pmean, probability=pmean),
        gathered_balance,
        lambda p, choice: (
            p.shape[1] * jnp.vdot(psum(choice.sum(axis=0)), psum(p.sum(axis=0))) / (p.shape[0] * psum(1)) ** 2
        ),
        jax.jit(lambda p, choice: pmean(choice.mean(axis=0)) @ pmean(p.mean(axis=0)) * choice.shape[-1]),
    ],
    ex14.fill: [
        written("set"),
        written("add"),
        by_index,
        in_a_longer_row,
        by_broadcast,
        one_by_one,
        jax.jit(
            lambda x, e, p, c, n: written("max")(x, e, p, c, n) + written("min")(x, e, p, c, n), static_argnums=(3, 4)
        ),
    ],
}

# exercise: changes of the solution in one place that compute the same
SAME = {
    ex14.fill: [
        (
            "return empty.at[expert, place].set(x, mode='drop') -> return empty.at[expert, place].set(x)",
            "without a mode, too, what lies outside is left out",
        ),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex14.ungated: (
        "zero",
        [("smaller", "its derivative is 0"), ("about as large", "its derivative is 0"), (0, "expected")],
    ),
    ex14.fair: (  # 8/64 times the mean of what is above 8 of 64 chances of one in eight
        13.05,
        [
            (0, "equal chances do not give equal counts"),
            (1, "the counts differ by chance"),
            (50, "empty seats elsewhere"),
        ],
    ),
    ex14.bytes_by_capacity: (
        {"all-to-alls": 3, "bytes at 64 / at 10": 6.4},
        [
            ((2, None), "grad has to go back through the second"),
            ((4, None), "which are pixels here"),
            ((None, 1.67), "taken or empty"),
            ((None, 1), "taken or empty"),
        ],
    ),
    ex14.forgotten: ("another", [("raises", "einsum broadcasts"), ("the same", "the one expert that lives there")]),
    ex14.other_fate: (188, [(0, "the order of the whole batch"), (6, "the first of each device")]),
    ex14.after_training: (84.375, [(10, "in the end one has all"), (40, "in the end one has all")]),
    ex14.more_right: ("under 10", [("10 to 50", "goes on past the experts"), ("over 50", "goes on past the experts")]),
    ex14.even_start: (5, [(0, "moves them all at once"), (7, "more than one expert"), (6, "is still there")]),
    ex14.seating: (79.6, [(33, "four times the seating"), (50, "four times the seating")]),
}
