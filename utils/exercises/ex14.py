"""Exercises and predictions of notebook 14, Cut the experts: mixture of experts."""

from __future__ import annotations

import itertools
import math
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, number, numbers, part, same
from utils.exercises.slips import amount, off_by
from utils.mesh import make_mesh

ungated = Choice(
    {
        "smaller": "argmax gives a whole number, and its derivative is 0; what else leads from the router to the loss?",
        "larger": "argmax gives a whole number, and its derivative is 0; what else leads from the router to the loss?",
        "about as large": "argmax gives a whole number, and its derivative is 0; what else leads from the router to the loss?",
        "zero": "",
    }
)
fair = Prediction(
    "percent",
    {
        0: "there is a seat for everybody, but equal chances do not give equal counts",
        None: "the counts differ by chance: 8 on average, give or take 2.6, and empty seats elsewhere do not help",
    },
    within=0.15,
)
bytes_by_capacity = Prediction(
    "",
    {},
    own={
        "all-to-alls": {
            2 / 3: "two go forward, and grad has to go back through the second",
            4 / 3: "the transpose of the first one would bring home the gradient by the tokens, which are pixels here",
            1 / 3: "there and back forward, and grad goes back through the second",
        },
        "bytes at 64 / at 10": {
            None: "what travels is the seats, taken or empty, and they are 64 in place of 10",
        },
    },
    within=0.02,
)
forgotten = Choice(
    {
        "raises": "8 against 1 under one letter: einsum broadcasts, as NumPy does",
        "the same": "the tokens stay where they are, and so meet the one expert that lives there",
        "another": "",
    }
)
other_fate = Prediction(
    "tokens",
    {
        0: "the seats are as many, but a large group fills an expert's seats in the order of the whole batch",
        None: "in one large group the first devices' tokens take the seats, in eight groups the first of each device",
    },
    within=0.25,
    things=True,
)
after_training = Prediction(
    "percent",
    {
        None: "what raises an expert's gate for one token raises it for all that are like it; in the end one has all, and "
        "its 10 seats are for 64 tokens",
    },
    within=0.1,
)
more_right = Choice(
    {
        "under 10": "",
        "10 to 50": "a dropped token goes on past the experts, and the weights behind them learn to read it as it is",
        "over 50": "a dropped token goes on past the experts, and the weights behind them learn to read it as it is",
    }
)
even_start = Prediction(
    "experts",
    {
        0: "the tokens still share a direction, along which the router moves them all at once",
        7: "without the favourites it takes longer, and more than one expert may win",
        None: "the favourites are gone; what the tokens share is still there, and moves them all at once",
    },
    within=0.1,
    things=True,
)
seating = Prediction(
    "percent",
    {
        None: "twice the tokens are twice the work of the experts and, with twice the seats to choose from, four times "
        "the seating",
    },
    within=0.06,
)

# batch, n, experts, k, factor: factors are exact in binary, so that nothing is rounded by accident
CAPACITIES = (
    (640, 8, 16, 2, 1.25),
    (96, 2, 5, 3, 1.5),
    (512, 4, 8, 1, 1.25),
    (56, 4, 32, 1, 0.75),
    (90, 3, 7, 1, 2.0),
    (72, 6, 4, 3, 2.5),  # more seats than a group has tokens
)


def _seats(batch, n, experts, k, factor, rounded=math.ceil):
    return rounded(factor * k * (batch // n) / experts)


def _nearest(value):
    return math.floor(value + 0.5)


_EARLY = "you round down on the way, by //: divide without rounding, and round up once, at the end"


def _seat_slips():
    """What each slip gives for all cases, and its words."""
    return [
        ([wrong(*case) for case in CAPACITIES], words)
        for wrong, words in (
            (lambda b, n, e, k, f: _seats(b, n, e, 1, f), "each token chooses k experts, so it needs k seats"),
            (
                lambda b, n, e, k, f: _seats(b, 1, e, k, f),
                "that is for the tokens of all devices, or for the experts of one: a group has the tokens of one, and seats "
                "at all experts",
            ),
            (lambda b, n, e, k, f: n * _seats(b, n, e, k, f), "those are an expert's seats for all groups together"),
            (partial(_seats, rounded=math.floor), "you round down: a part of a seat is a seat"),
            (partial(_seats, rounded=_nearest), "you round to the nearest: a part of a seat is a seat"),
            (partial(_seats, rounded=round), "you round to the nearest: a part of a seat is a seat"),
            (partial(_seats, rounded=float), "seats are whole; round up"),
            (lambda b, n, e, k, f: _seats(b, n, e, k, 1), "the capacity factor is missing"),
            (lambda b, n, e, k, f: _seats(b, n, 1, k, f), "those are the seats of all experts together"),
            (lambda b, n, e, k, f: _seats(b, n, e, 1 / k, f), "the more experts a token chooses, the more seats"),
            (
                lambda b, n, e, k, f: math.ceil(f * math.ceil(k * (b // n) / e)),
                "you round up twice: round once, at the end",
            ),
            (
                lambda b, n, e, k, f: f * math.ceil(k * (b // n) / e),
                "you round the even share up; the product with the factor is what is to be whole",
            ),
            (
                lambda b, n, e, k, f: k * math.ceil(f * (b // n) / e),
                "you round up before you multiply by k: round once, at the end",
            ),
            (
                lambda b, n, e, k, f: math.floor(_seats(b, n, e, k, f, float)) + 1,
                "you add one to what is rounded down, also where nothing had to be rounded",
            ),
            (
                lambda b, n, e, k, f: _seats(b, n, n, k, f),
                "you divide by the number of devices where that of the experts is meant",
            ),
            (
                lambda b, n, e, k, f: int(f * math.ceil(k * (b // n) / e)),
                "you round the even share up, and cut the product: round once, at the end",
            ),
            (lambda b, n, e, k, f: math.ceil(math.ceil(f) * k * (b // n) / e), "you round the factor up"),
            (lambda b, n, e, k, f: math.ceil(f) * k * b // n // e, "you round the factor up, and the seats down"),
            (
                lambda b, n, e, k, f: _seats(b, n, max(1, e // n), k, f),
                "you count the experts of one device: a device's tokens go to all experts",
            ),
            (lambda b, n, e, k, f: e * _seats(b, n, e, k, f), "those are the seats of all experts together"),
            (lambda b, n, e, k, f: math.ceil(f * k * (b // n // e)), _EARLY),
            (lambda b, n, e, k, f: math.ceil(f * (k * b // n // e)), _EARLY),
            (lambda b, n, e, k, f: math.ceil(f * k * (b // e) / n), _EARLY),
            (
                lambda b, n, e, k, f: math.ceil(f) * math.ceil(k * (b // n) / e),
                "you round the factor up, and the even share: round once, at the end",
            ),
            (
                lambda b, n, e, k, f: min(_seats(b, n, e, k, f), b // n),
                "you stop at the tokens of a group: no more can come, and yet the capacity is `factor` times the even "
                "share",
            ),
        )
    ]


def _judge_seats(answer):
    got = []
    for case in CAPACITIES:
        said = f"seats_per_expert{case} is"
        got.append(number(answer(*case), "one whole number, of seats", said=said))
    want = [_seats(*case) for case in CAPACITIES]
    for case, said, right in zip(CAPACITIES, got, want, strict=True):
        if abs(said - right) > 1e-6:
            words = explained(got, _seat_slips())
            look = "How many tokens has a device, and how many of all choices would each expert get?"
            raise Wrong(
                f"You say seats_per_expert{case} is {said:g}: {words}."
                if words
                else f"seats_per_expert{case} is {said:g}. {look}"
            )


@exercise(
    _judge_seats,
    "A device has batch / n tokens, which make k choices each. Divide them among the experts, multiply, and round last.",
)
def seats_per_expert(batch, n, experts, k, factor):
    """Return the seats that one expert has for the tokens of one device."""
    return math.ceil(factor * k * (batch / n) / experts)


def _queues():
    """Three cases (expert, gate): gates in eighths, so that some are equal; then long queues, where a sort that is not
    stable mixes the equal ones, gates that are close, and experts that nobody chose."""
    rng = np.random.default_rng(14)
    short = [
        (rng.integers(0, experts, tokens), rng.integers(1, 8, tokens) / np.float32(8))
        for experts, tokens in ((3, 17), (6, 23))
    ]
    return [*short, (rng.choice([0, 1, 3, 4, 6, 7], 200), rng.choice(np.float32([0.301, 0.302, 0.701, 0.702]), 200))]


def _place_slips(expert, gate):
    """By words: the places that a slip gives; under "" the right ones."""
    token = np.arange(len(gate))
    mine = expert[:, None] == expert
    above, equal, earlier = gate > gate[:, None], gate == gate[:, None], token < token[:, None]
    anyone = np.ones_like(mine)
    order = np.lexsort((token, -gate))
    queues = np.lexsort((token, -gate, expert))  # one expert's queue after another's
    right = (mine & (above | equal & earlier)).sum(1)
    others = mine.sum(1)
    coarse = np.round(gate, 2)
    coarsely = (coarse > coarse[:, None]) | (coarse == coarse[:, None]) & earlier
    first = ~(mine & equal & earlier).any(1)  # of its gate, in its queue
    column = np.argsort(np.lexsort((token, expert, -gate)))
    begins = np.array([column[expert == e].min() for e in expert])
    within = np.empty(len(gate), int)
    for e in set(expert):
        within[expert == e] = np.argsort(-gate[expert == e], kind="stable")
    unsorted = "the right places in the order of the sorted tokens: each has to go back to its own token"
    early = "counted among the earlier tokens alone: a later one with a larger gate goes first, too"
    picked = (
        "right, and given to other tokens: found[order] = p puts each place back, p[order] picks by the order once more"
    )
    return {
        "": right,
        "counted from 1: the first place is 0": right + 1,
        "those of first come, first seated: the gate is not used": (mine & earlier).sum(1),
        "those of a queue that begins with the smallest gate": (mine & (~above & ~equal | equal & earlier)).sum(1),
        "those of a queue turned round: the largest gate is last": others - 1 - right,
        "places in one queue of all tokens: each expert has a queue of its own": (
            anyone & (above | equal & earlier)
        ).sum(1),
        "not places: they are the tokens in the order of the queue. Where does each token stand in it?": order,
        "the tokens in the order of their gates, smallest first: that is no place, and not the right end": np.argsort(
            gate, kind="stable"
        ),
        "right but for equal gates: there the later token goes first": (
            mine & (above | equal & ~earlier & ~np.eye(len(gate), dtype=bool))
        ).sum(1),
        "right but for equal gates: two tokens share a place": (mine & above).sum(1),
        "right but for equal gates: two tokens share a place, and each counts itself": (mine & (above | equal)).sum(1),
        "right but for equal gates: of two tokens, both stand at the later place": (mine & (above | equal)).sum(1) - 1,
        "the lengths of the queues, not the places in them": others,
        "those of last come, first seated: the gate is not used": (mine & ~earlier).sum(1) - 1,
        "counted among the tokens of all experts: each expert has a queue of its own": (anyone & above).sum(1),
        early: (mine & above & earlier).sum(1),
        f"{early} ": (mine & (above | equal) & earlier).sum(1),
        "places in one long row of all queues: each expert's queue begins at 0": np.argsort(queues),
        "not places: they are the tokens, one expert's queue after another's. Where does each token stand?": queues,
        "not places: they say who of an expert's tokens is first, second, and so on. Where does each token stand?": (
            within
        ),
        unsorted: right[order],
        f"{unsorted} ": right[queues],
        picked: right[order][order],
        f"{picked} ": right[queues][queues],
        "right but for gates that differ by less than a percent: you take them as equal": (mine & coarsely).sum(1),
        "0 for all tokens of the last experts: nobody chose some expert, so there are fewer than their numbers say": (
            np.where(expert < len(set(expert)), right, 0)
        ),
        "the number of larger gates, not of the tokens that go before: two tokens with one gate are two": (
            mine & above & first
        ).sum(1),
        "places with gaps, in one queue of all tokens: `lexsort` sorts by its last key first": column - begins,
    }


def _whole_places(got, tokens):
    expected = f"{tokens} whole numbers, the places of {tokens} tokens"
    places = numbers(got, (tokens,), expected)
    for token in np.flatnonzero(places % 1):
        raise Wrong(f"You put token {token} at place {places[token]:g}; expected {expected}.")
    return places.astype(int)


def _by_gate(expert, gate, places):
    """Whether each queue has each place once, and nobody behind a smaller gate."""
    queues = [(gate[expert == e], places[expert == e]) for e in set(expert)]
    return all(
        np.array_equal(np.sort(said), np.arange(len(said))) and (np.diff(gates[np.argsort(said)]) <= 0).all()
        for gates, said in queues
    )


def _judge_places(answer):
    cases = _queues()
    got = [_whole_places(answer(expert, gate), len(gate)) for expert, gate in cases]
    slips = [_place_slips(*case) for case in cases]
    want = [one[""] for one in slips]
    if all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
        return
    words = explained(
        np.concatenate(got), [(np.concatenate([one[name] for one in slips]), name) for name in slips[0] if name]
    )
    if words:
        raise Wrong(f"Your places are {words.strip()}.".replace("?.", "?"))
    case = next(i for i in range(3) if not np.array_equal(got[i], want[i]))
    if all(_by_gate(*case, said) for case, said in zip(cases, got, strict=True)):
        where = ", in long queues: is your sort stable?" if case == 2 else ": there the earlier token goes first."
        raise Wrong(f"Your places are right but for equal gates{where}")
    token = int(np.flatnonzero(got[case] != want[case])[0])
    expert, gate = cases[case]
    queue = [int(t) for t in np.flatnonzero(expert == expert[token])]
    gates = f"whose gates are {[float(gate[t]) for t in queue]}"
    others = f"tokens {queue}, {gates}" if case < 2 else f"{len(queue) - 1} more of 200; its gate is {gate[token]:g}"
    raise Wrong(
        f"Token {token} chose expert {expert[token]}, as did {others}. You put it at place {got[case][token]}; how many of "
        "these go before it?"
    )


@exercise(
    _judge_places,
    "A token's place is the number of tokens that go before it: the same expert, and a larger gate or an equal one earlier "
    "in the batch. Compare all pairs: gate[:, None] against gate.",
)
def places(expert, gate):
    """Return each token's place in the queue of its expert, largest gate first."""
    token = np.arange(len(gate))
    mine = expert[:, None] == expert
    first = (gate > gate[:, None]) | ((gate == gate[:, None]) & (token < token[:, None]))
    return (mine & first).sum(axis=1)


# tokens of a device, width, experts, k, factor, n, bytes of a number: more experts than devices, capacities not whole
SENT = (100, 40, 24, 2, 1.25, 8, 8), (100, 32, 8, 1, 1.5, 4, 4), (60, 40, 12, 3, 1.25, 6, 4)


def _sent_factors(tokens, width, experts, k, factor, n, size):
    """The right factors, and the slips in each: (its value, words); the words are the same in all cases."""
    even = factor * k * tokens / experts
    right = {
        "times": 4,
        "share": (n - 1) / n,
        "seats": experts * math.ceil(even),
        "width": width,
        "size": size,
    }
    all_travel = "the seats travel, taken or empty"
    return right, {
        "times": [
            (3, "three is the first layer's number: in a deep network the gradient by the tokens goes back, too"),
            (2, "that is forward alone: the way back goes through both all-to-alls as well"),
            (1, "that is one all-to-all: there are two forward, and as many backward"),
            (
                6,
                "that is six all-to-alls: each of the two forward has one transpose, and the weights' gradients need none",
            ),
        ],
        "share": [
            (1, "a device keeps what is for its own experts: (n - 1)/n of it is sent"),
            (n - 1, "each device gets another n-th, not all of it; or you sum over the devices: one sends (n - 1)/n"),
            (1 / n, "that is what goes to one device; there are n - 1 others"),
            (2 * (n - 1) / n, "2 (n - 1)/n is an all-reduce's share; an all-to-all sends half of that"),
            ((experts - 1) / experts, "what stays is one n-th, for all experts of the device, and not one expert's"),
            (7 / 8, "7/8 is sent by eight devices; here are n"),
        ],
        "seats": [
            (k * tokens, f"you count tokens and not seats: {all_travel}"),
            (tokens, f"you count tokens and not seats: {all_travel}"),
            (factor * k * tokens, "each expert's capacity is rounded up"),
            (experts * math.floor(even), "each expert's capacity is rounded up"),
            (experts * round(even), "each expert's capacity is rounded up, not to the nearest"),
            (experts * math.ceil(even / k), "each token takes k seats"),
            (k * experts * math.ceil(even / k), "you round up before you multiply by k: round once"),
            (k * experts * math.ceil(even), "k is in your number twice: it is in the capacity already"),
            (experts * math.ceil(k * tokens / experts), "the capacity factor is missing"),
            (math.ceil(even), "that is for the seats of one expert"),
            (n * math.ceil(even), "there are more experts than devices"),
            (
                n * math.ceil(factor * k * tokens / n),
                "the tokens are divided among the experts, not among the devices",
            ),
            (experts * math.ceil(even / n), "the tokens are those of one device already"),
            (
                experts * math.ceil(even * n),
                "your capacity is for the tokens of all devices, or for the experts of one: a device seats its own "
                "tokens, for all experts",
            ),
        ],
        "width": [(1, "a seat holds `width` numbers")],
        "size": [
            (1, "those are numbers, of `size` bytes each"),
            (4, "you take 4 bytes a number; it is `size`"),
            (8, "you take 8 bytes a number; it is `size`"),
            (8 * size, "those are bits"),
        ],
    }


def _sent_slips():
    """What one slip, or two in two factors, give for all cases, and the words; of two, each in short."""
    cases = [_sent_factors(*case) for case in SENT]
    options = [(name, i) for name, values in cases[0][1].items() for i in range(len(values))]
    found = {1: [], 2: []}
    for chosen in [*itertools.combinations(options, 1), *itertools.combinations(options, 2)]:
        if len({name for name, _ in chosen}) == len(chosen):
            values = [math.prod((right | {f: slips[f][i][0] for f, i in chosen}).values()) for right, slips in cases]
            told = [cases[0][1][f][i][1] for f, i in chosen]
            short = told if len(told) == 1 else [re.split("[:;] ", words)[0] for words in told]
            found[len(chosen)].append((values, ", and ".join(short)))
    return found


def _judge_sent(answer):
    said = [number(answer(*case), "one number, of bytes", said=f"sent_per_step{case} is") for case in SENT]
    want = [math.prod(_sent_factors(*case)[0].values()) for case in SENT]
    wrong = [i for i in range(len(SENT)) if not math.isclose(said[i], want[i], rel_tol=1e-3)]
    if wrong:
        slips, i = _sent_slips(), wrong[0]
        words = explained(said, slips[1], 1e-3) or explained(said, slips[2], 1e-3)
        advice = "count the all-to-alls, the seats of a device, the numbers of a seat, and what stays"
        off = off_by(said[i], want[i])
        raise Wrong(f"For {SENT[i]} you say {amount(said[i])} bytes, {off}: {words or advice}.")


@exercise(
    _judge_sent,
    "Two all-to-alls forward and their transposes backward; each sends (n - 1)/n of experts x capacity seats of `width` "
    "numbers.",
)
def sent_per_step(tokens, width, experts, k, factor, n, size):
    """Return the bytes that a device sends in all-to-alls, forward and backward."""
    seats = experts * math.ceil(factor * k * tokens / experts)
    return 4 * (n - 1) / n * seats * width * size


# devices, tokens of one, experts, seed; the second mesh has another axis, of two, along which all is repeated
BALANCES = (8, 6, 5, 0), (4, 3, 7, 1)


def _balance_case(n, tokens, experts, seed):
    """Probabilities and one-hot choices of n devices: (n tokens, experts)."""
    scores = np.random.default_rng(seed).normal(size=(n * tokens, experts)) * 1.5 + np.linspace(1, 0, experts)
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return p.astype(np.float32), np.eye(experts, dtype=np.float32)[p.argmax(1)]


def _balance_slips(p, choice, n):
    """By words: what each of n devices would hold, (n,)."""
    experts = p.shape[1]
    p, choice = p.astype(np.float64).reshape(n, -1, experts), choice.astype(np.float64).reshape(n, -1, experts)
    mean_p, share = p.mean(1), choice.mean(1)  # (8, experts)
    right = experts * (share.mean(0) * mean_p.mean(0)).sum()
    own = experts * (share * mean_p).sum(1)
    tokens = p.shape[1]
    slips = {
        "": right,
        "the mean of the devices' balances, as in the lesson: average the shares and the probabilities over the devices "
        "first, and multiply then": own.mean(),
        "the sum of the devices' balances: average the shares and the probabilities over the devices first": own.sum(),
        "that of the device's own tokens: nothing is averaged over the devices": own,
        "the product of the shares of all with the probabilities of the device: both are to be those of all": experts
        * (share.mean(0) * mean_p).sum(1),
        "the product of the probabilities of all with the shares of the device: both are to be those of all": experts
        * (share * mean_p.mean(0)).sum(1),
        "too small by the number of experts, which is missing, or divided out by a mean in place of the sum: an even router "
        "is to have 1": right / experts,
        "divided by the number of experts, squared: sum over the experts, and multiply by their number": right
        / experts**2,
        "8 times the sum over the experts: the experts are as many as p has columns": 8 * right / experts,
        "the sum over the experts times the number of devices: the experts are as many as p has columns": n
        * right
        / experts,
        "right on 8 devices alone: on 4 you divide by 8, too": right * (n / 8) ** 2,
        "the right one times the tokens of a device: tokens stand where experts are meant": right * tokens / experts,
        "made of probabilities alone: the share counts choices": experts * (mean_p.mean(0) ** 2).sum(),
        "made of choices alone: nothing could be learned from it, a choice has no derivative": experts
        * (share.mean(0) ** 2).sum(),
        "too large by the number of devices: one of your averages over the devices is a sum, or the result is summed again": (
            n * right
        ),
        "too large by the square of the number of devices: your averages over the devices are sums": n**2 * right,
        "made of sums over the tokens, not of means": experts * (choice.sum((0, 1)) * p.sum((0, 1))).sum(),
        "made of sums over a device's tokens, not of means": right * tokens**2,
        "made of one sum over a device's tokens and one mean": right * tokens,
        "the mean of choice * p: the shares and the mean probabilities are two averages, multiplied then": experts
        * (choice * p).sum(2).mean(),
        "made of means over the experts: the two means are over the tokens": tokens / experts,
        "made of means over the experts, too: the two means are over the tokens": 1 / experts,
        "made of the mean of choice * p in place of the mean of p: the probability counts where nothing was chosen, too": (
            experts * (share.mean(0) * (choice * p).mean((0, 1))).sum()
        ),
        "made of the largest of the devices' means: take the means of them": experts
        * (share.max(0) * mean_p.max(0)).sum(),
        "made of two sums over all tokens, divided by their number once: two means divide twice": right * n * tokens,
        "made of sums divided by the lesson's 512 tokens: here are others": right * (n * tokens / 512) ** 2,
        "made of means over the devices, token by token: take the means over the device's tokens before you multiply": (
            experts * (p.mean(0) * choice.mean(0)).sum(1).mean()
        ),
        "made of means over the devices alone: the tokens of a device are an axis of their own, as in all_gather without "
        "`tiled`": experts * (p.mean(0) * choice.mean(0)).sum(),
    }
    return {words: np.broadcast_to(value, (n,)) for words, value in slips.items()}


UNTRACED = {  # the first that fits
    jax.errors.NonConcreteBooleanIndexError: "You pick tokens by a mask. How many it picks is known when the program runs, "
    "and jit must know all shapes before.",
    jax.errors.TracerArrayConversionError: "You hand a traced array to NumPy. Under jit the work is jax.numpy's.",
    jax.errors.TracerBoolConversionError: "Python's `if` (or `and`, or `while`) asks a traced array for its value, which is "
    "known only when the program runs. Under jit `jnp.where` chooses.",
    jax.errors.TracerIntegerConversionError: "You use a traced array as a Python number: an index of a list, or a count of "
    "rounds. Its value is known only when the program runs.",
    jax.errors.ConcretizationTypeError: "You make a Python number, or a shape, of a traced array, whose value is known only "
    "when the program runs. Leave it an array.",
}


def _in_words(answer, axis=None):
    """The answer; where JAX refuses it, in words of our own. `axis`: the one that its collectives are to name."""

    def call(*args):
        try:
            return answer(*args)
        except Wrong as wrong:
            cause = wrong.__cause__  # what the answer raised
            words = next((words for kind, words in UNTRACED.items() if isinstance(cause, kind)), "")
            unknown = (AssertionError, KeyError, NameError)  # for another axis, each in some version of JAX
            if axis and isinstance(cause, unknown) and "not defined" not in str(cause):
                words = f"{wrong} Does each of your collectives name the axis {axis!r}?"
            raise Wrong(words or str(wrong)) from cause

    return call


def _judge_whole_balance(answer):
    answer = _in_words(answer, "expert")

    def program(p, choice):
        return part(answer, ())(p, choice)[None]

    def gradient(p, choice):
        return jax.grad(lambda p: answer(p, choice))(p)

    parts, said, slips = P("expert"), [], []

    def on(case, program):
        n, *sizes = case
        mesh, case = make_mesh((n, 8 // n), ("expert", "copy")), _balance_case(n, *sizes)
        mapped = jax.shard_map(program, mesh=mesh, in_specs=(parts, parts), out_specs=parts)
        return np.asarray(jax.jit(mapped)(*case), np.float64), _balance_slips(*case, n)

    for case in BALANCES:
        got, found = on(case, program)
        said, slips = np.append(said, got), [*slips, found]
        named = [(np.concatenate([one[words] for one in slips]), words) for words in slips[0]]
        words = explained(said, named, most=1)  # of one slip alone; where more give the same, the second mesh decides
        if words:
            raise Wrong(f"What you return is {words}.")
    want = named[0][0]
    if np.allclose(said, want, rtol=1e-5):
        if not on(BALANCES[0], gradient)[0].any():
            raise Wrong("Right values, whose gradient by p is zero: as a loss, nothing could be learned from it.")
        return
    if not np.allclose(said[:8], said[0], rtol=1e-5):
        raise Wrong(
            f"Your results differ from device to device: {said[0]:.4g} on device 0, {said[1]:.4g} on device 1. "
            "Which of the two factors is the device's own?"
        )
    raise Wrong(
        f"For 48 tokens and 5 experts you return {said[0]:.5g}, expected {want[0]:.5g}. Which mean is taken over what?"
    )


@exercise(
    _judge_whole_balance,
    "The share and the mean probability of each expert are means over the tokens of a device. Average each of them over "
    "the devices, before you multiply.",
)
def whole_balance(p, choice):
    """In shard_map over 'expert': the balance of the tokens of all devices, ()."""
    share = jax.lax.pmean(choice.mean(axis=0), "expert")
    probability = jax.lax.pmean(p.mean(axis=0), "expert")
    return p.shape[1] * (share * probability).sum()


FILLED = ((3, 2), (4, 3))  # experts, capacity


def _fill_case(experts, capacity):
    """Eleven tokens, some without a seat; one expert's queue ends at its last seat; width 5."""
    rng = np.random.default_rng(26 + capacity)  # with these, no two slips give the same in both cases
    x = (rng.integers(1, 9, (11, 5)) * rng.choice([-0.5, 0.5], (11, 5))).astype(np.float32)
    expert = np.array([0, 1, 2, 0, 1, 0, 1, 2, 1, 2, 0], np.int32)
    first = rng.permutation(11)  # the places are not those of the batch's order
    place = np.array([((expert == e) & (first < first[t])).sum() for t, e in enumerate(expert)], np.int32)
    return x, expert, place


def _filled(x, expert, place, capacity, experts, where=None, add=False, backwards=False):
    """The slots, one token after the other; `where` says at which expert and place, None: dropped."""
    slots = np.zeros((experts, capacity, x.shape[1]), np.float32)
    tokens = list(zip(x, expert, place, strict=True))
    for row, e, c in reversed(tokens) if backwards else tokens:
        at = (e, c) if c < capacity else (where(e, c) if where else None)
        if at and at[0] < experts:
            slots[at] = slots[at] + row if add else row
    return slots


def _fill_slips(x, expert, place, capacity, experts):
    case = x, expert, place, capacity, experts
    right = _filled(*case)

    def last(e, c):
        return e, capacity - 1

    def further(e, c):
        return e + c // capacity, c % capacity

    came = np.array([(expert[:t] == e).sum() for t, e in enumerate(expert)])
    emptied, strided = right.copy(), np.zeros((experts * capacity, x.shape[1]), np.float32)
    for row, e, c in zip(x, expert, place, strict=True):
        if c >= capacity - 1:
            emptied[e, -1] = row if c < capacity else 0
        if c < capacity and e * experts + c < len(strided):
            strided[e * experts + c] = row
    unused = right.copy()
    unused[:, -1] = 0
    one_less = np.zeros_like(right)
    for row, e, c in zip(x, expert, place, strict=True):
        if c <= capacity:
            one_less[e, c - 1] = row
    slips = {
        "A dropped token takes the last seat of its expert, from the one who sits there": _filled(*case, where=last),
        "A dropped token is added to the one in the last seat of its expert": _filled(*case, where=last, add=True),
        "Dropped tokens sit in the next expert's seats: in one long row of seats, the place after an expert's last seat "
        "is the next expert's first": _filled(*case, where=further),
        "Dropped tokens are added to those in the next expert's first seats: in one long row of seats, the place after an "
        "expert's last seat is the next expert's first": _filled(*case, where=further, add=True),
        "A dropped token sits at the beginning of its expert's queue again": _filled(
            *case, where=lambda e, c: (e, c % capacity)
        ),
        "The earlier tokens win a seat that the dropped ones also take": _filled(*case, where=further, backwards=True),
        "The seats are filled from the last one down": right[:, ::-1],
        "The experts stand in reverse order": right[::-1],
        "Expert and place are exchanged": np.where(True, _swapped(*case), 0),
        "All is zero: is what `.at[...].set(...)` returns kept?": 0 * right,
        "The signs are turned": -right,
        "The tokens sit in the order of the batch: `place` says where each one sits": _filled(
            x, expert, came, *case[3:]
        ),
        "A dropped token sits in the last seat of the last expert: an index of -1 counts from the end": _filled(
            *case, where=lambda e, c: (experts - 1, capacity - 1)
        ),
        "The last seat of each expert stays empty: the places begin with 0, so it is place `capacity - 1`": unused,
        "A dropped token takes the first seat of its expert": _filled(*case, where=lambda e, c: (e, 0)),
        "A dropped token empties the last seat of its expert": emptied,
        "The token whose place is `capacity` is dropped, too: the places begin with 0": _filled(
            *case, where=lambda e, c: last(e, c) if c == capacity else None
        ),
        "Each token sits one seat further to the front, and the first at the end: the places begin with 0": one_less,
        "In one long row of seats an expert's begin at expert * capacity, and yours elsewhere": strided.reshape(
            right.shape
        ),
    }
    return {words: value for words, value in slips.items() if not np.array_equal(value, right)}


def _swapped(x, expert, place, capacity, experts):
    slots = np.zeros((experts, capacity, x.shape[1]), np.float32)
    for row, e, c in zip(x, expert, place, strict=True):
        if c < experts and e < capacity:
            slots[c, e] = row
    return slots


def _judge_fill(answer):
    got, named, flops = [], [], 0
    for experts, capacity in FILLED:
        case = _fill_case(experts, capacity)
        want = _filled(*case, capacity, experts)

        def slots(x, expert, place, capacity=capacity, experts=experts, want=want):
            got = _in_words(answer)(x, expert, place, capacity, experts)
            if not isinstance(got, (jax.Array, np.ndarray)):
                same(got, want, "Your array of slots")
            return got

        program = jax.jit(slots).lower(*case).compile()
        result = program(*case)
        if getattr(result, "shape", None) != want.shape or result.dtype != want.dtype:
            if getattr(result, "shape", None) == (capacity, experts, 5):
                raise Wrong(f"Your slots have shape {result.shape}; expected {want.shape}: the experts come first.")
            same(result, want, "Your array of slots")
        got.append((np.asarray(result), want, _fill_slips(*case, capacity, experts)))
        flops = flops or cost(program).flops
    for result, want, _ in got:
        if not np.allclose(result, want, atol=1e-5):
            shared = [words for words in got[0][2] if words in got[1][2]]
            named = [words for words in shared if all(np.allclose(result, slips[words]) for result, _, slips in got)]
            if len(named) == 1:
                raise Wrong(f"{named[0]}." if named[0][-1] != "?" else named[0])
            _refuse_slots(result, want)
    if flops:
        raise Wrong(
            f"Right values, with {flops:,} FLOPs in products for eleven tokens; 0 are asked. An array can be written at an index."
        )


def _refuse_slots(result, want):
    expert, place = (int(i) for i in np.argwhere(~np.isclose(result, want, atol=1e-5).all(2))[0])
    empty = not want[expert, place].any()
    raise Wrong(
        f"In slots[{expert}, {place}] stands {result[expert, place].tolist()}, expected "
        + ("zeros: this seat is empty." if empty else f"{want[expert, place].tolist()}.")
        + " Which token sits there, and where does a dropped one go?"
    )


@exercise(
    _judge_fill,
    'zeros.at[rows, columns].set(values, mode="drop") writes each value at its row and column, and leaves out what lies '
    "outside.",
)
def fill(x, expert, place, capacity, experts):
    """Return the slots (experts, capacity, D), each token at its expert and place."""
    empty = jnp.zeros((experts, capacity, x.shape[1]), x.dtype)
    return empty.at[expert, place].set(x, mode="drop")
