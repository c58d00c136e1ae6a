"""Exercises and predictions of notebook 14, Cut the experts: mixture of experts."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, by_factors, exercise, explained, number, numbers, part, same
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
        None: "an expert with more tokens learns more, serves them better, and gets more; in the end one has all, and "
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
seating = Prediction(
    "percent",
    {
        None: "twice the tokens are twice the work of the experts and, with twice the seats to choose from, four times "
        "the seating",
    },
    within=0.06,
)

# batch, n, experts, k, factor: factors are exact in binary, so that nothing is rounded by accident
CAPACITIES = (640, 8, 16, 2, 1.25), (96, 2, 5, 3, 1.5), (512, 4, 8, 1, 1.25), (56, 4, 32, 1, 0.75), (90, 3, 7, 1, 2.0)


def _seats(batch, n, experts, k, factor, rounded=math.ceil):
    return rounded(factor * k * (batch // n) / experts)


def _nearest(value):
    return math.floor(value + 0.5)


def _seat_slips():
    """What each slip gives for all cases, and its words."""
    return [
        ([wrong(*case) for case in CAPACITIES], words)
        for wrong, words in (
            (lambda b, n, e, k, f: _seats(b, n, e, 1, f), "each token chooses k experts, so it needs k seats"),
            (lambda b, n, e, k, f: _seats(b, 1, e, k, f), "that is for the tokens of all devices; a group has its own"),
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
    """Two cases (expert, gate): gates in eighths, so that some are equal."""
    rng = np.random.default_rng(14)
    return [
        (rng.integers(0, experts, tokens), rng.integers(1, 8, tokens) / np.float32(8))
        for experts, tokens in ((3, 17), (6, 23))
    ]


def _place_slips(expert, gate):
    """By words: the places that a slip gives; under "" the right ones."""
    token = np.arange(len(gate))
    mine = expert[:, None] == expert
    above, equal, earlier = gate > gate[:, None], gate == gate[:, None], token < token[:, None]
    anyone = np.ones_like(mine)
    order = np.lexsort((token, -gate))
    right = (mine & (above | equal & earlier)).sum(1)
    others = mine.sum(1)
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
        "the lengths of the queues, not the places in them": others,
    }


def _judge_places(answer):
    cases = _queues()
    got = [
        numbers(
            answer(expert, gate), gate.shape, f"{len(gate)} whole numbers, the places of {len(gate)} tokens", whole=True
        )
        for expert, gate in cases
    ]
    slips = [_place_slips(*case) for case in cases]
    want = [one[""] for one in slips]
    if all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
        return
    words = explained(
        np.concatenate(got), [(np.concatenate([one[name] for one in slips]), name) for name in slips[0] if name]
    )
    if words:
        raise Wrong(f"Your places are {words}.".replace("?.", "?"))
    case = next(i for i in range(2) if not np.array_equal(got[i], want[i]))
    token = int(np.flatnonzero(got[case] != want[case])[0])
    expert, gate = cases[case]
    queue = [int(t) for t in np.flatnonzero(expert == expert[token])]
    raise Wrong(
        f"Token {token} chose expert {expert[token]}, as did tokens {queue}, whose gates are "
        f"{[float(gate[t]) for t in queue]}. You put it at place {got[case][token]}; how many of these go before it?"
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


def _judge_sent(answer):
    def formula(times, share, seats, width, size):
        return times * share * seats * width * size

    for case in SENT:
        tokens, width, experts, k, factor, n, size = case
        even = factor * k * tokens / experts
        right = {
            "times": 4,
            "share": (n - 1) / n,
            "seats": experts * math.ceil(even),
            "width": width,
            "size": size,
        }
        all_travel = "the seats travel, taken or empty"
        slips = {
            "times": [
                (3, "three is the first layer's number: in a deep network the gradient by the tokens goes back, too"),
                (2, "that is forward alone: the way back goes through both all-to-alls as well"),
                (1, "that is one all-to-all: there are two forward, and as many backward"),
            ],
            "share": [
                (1, "a device keeps what is for its own experts: (n - 1)/n of it is sent"),
                (n - 1, "each device gets another n-th, not all of it: (n - 1)/n is sent"),
                (1 / n, "that is what goes to one device; there are n - 1 others"),
                (2 * (n - 1) / n, "2 (n - 1)/n is an all-reduce's share; an all-to-all sends half of that"),
            ],
            "seats": [
                (k * tokens, f"you count tokens and not seats: {all_travel}"),
                (tokens, f"you count tokens and not seats: {all_travel}"),
                (factor * k * tokens, "each expert's capacity is rounded up"),
                (experts * math.floor(even), "each expert's capacity is rounded up"),
                (experts * math.ceil(even / k), "each token takes k seats"),
                (experts * math.ceil(k * tokens / experts), "the capacity factor is missing"),
                (math.ceil(even), "that is for the seats of one expert"),
                (n * math.ceil(even), "there are more experts than devices"),
                (
                    n * math.ceil(factor * k * tokens / n),
                    "the tokens are divided among the experts, not among the devices",
                ),
                (experts * math.ceil(even / n), "the tokens are those of one device already"),
            ],
            "width": [(1, "a seat holds `width` numbers")],
            "size": [(1, "those are numbers, of `size` bytes each")],
        }
        said = number(answer(*case), "one number, of bytes", said=f"sent_per_step{case} is")
        advice = "count the all-to-alls, the seats of a device, the numbers of a seat, and what stays"
        by_factors(said, f"For {case} ", "bytes", formula, right, slips, advice)


@exercise(
    _judge_sent,
    "Two all-to-alls forward and their transposes backward; each sends (n - 1)/n of experts x capacity seats of `width` "
    "numbers.",
)
def sent_per_step(tokens, width, experts, k, factor, n, size):
    """Return the bytes that a device sends in all-to-alls, forward and backward."""
    seats = experts * math.ceil(factor * k * tokens / experts)
    return 4 * (n - 1) / n * seats * width * size


def _balance_case(tokens, experts, seed):
    """Probabilities and one-hot choices of eight devices: (8 tokens, experts)."""
    scores = np.random.default_rng(seed).normal(size=(8 * tokens, experts)) * 1.5 + np.linspace(1, 0, experts)
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return p.astype(np.float32), np.eye(experts, dtype=np.float32)[p.argmax(1)]


def _balance_slips(p, choice):
    """By words: what each of eight devices would hold, (8,)."""
    experts = p.shape[1]
    p, choice = p.astype(np.float64).reshape(8, -1, experts), choice.astype(np.float64).reshape(8, -1, experts)
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
        "without the number of experts: an even router is to have 1": right / experts,
        "divided by the number of experts, squared: sum over the experts, and multiply by their number": right
        / experts**2,
        "8 times the sum over the experts: 8 is the number of devices, and the experts are as many as p has columns": 8
        * right
        / experts,
        "the right one times the tokens of a device: tokens stand where experts are meant": right * tokens / experts,
        "made of probabilities alone: the share counts choices": experts * (mean_p.mean(0) ** 2).sum(),
        "made of choices alone: nothing could be learned from it, a choice has no derivative": experts
        * (share.mean(0) ** 2).sum(),
        "8 times too large: one of your averages over the devices is a sum": 8 * right,
        "64 times too large: your averages over the devices are sums": 64 * right,
        "made of sums over the tokens, not of means": experts * (choice.sum((0, 1)) * p.sum((0, 1))).sum(),
        "made of sums over a device's tokens, not of means": right * tokens**2,
        "made of one sum over a device's tokens and one mean": right * tokens,
        "the mean of choice * p: the shares and the mean probabilities are two averages, multiplied then": experts
        * (choice * p).sum(2).mean(),
    }
    return {words: np.broadcast_to(value, (8,)) for words, value in slips.items()}


def _judge_whole_balance(answer):
    mesh, got, slips = make_mesh((8,), ("expert",)), [], []
    for tokens, experts, seed in ((6, 5, 0), (3, 4, 1)):
        case = _balance_case(tokens, experts, seed)

        def program(p, choice):
            return part(answer, ())(p, choice)[None]

        f = jax.shard_map(program, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P("expert"))
        got.append(np.asarray(jax.jit(f)(*case), np.float64))
        slips.append(_balance_slips(*case))
    said, want = np.stack(got), np.stack([one[""] for one in slips])
    if np.allclose(said, want, rtol=1e-5):
        return
    words = explained(said, [(np.stack([one[name] for one in slips]), name) for name in slips[0] if name])
    if words:
        raise Wrong(f"What you return is {words}.")
    if not np.allclose(said, said[:, :1], rtol=1e-5):
        raise Wrong(
            f"Your results differ from device to device: {said[0][0]:.4g} on device 0, {said[0][1]:.4g} on device 1. "
            "Which of the two factors is the device's own?"
        )
    raise Wrong(
        f"For 48 tokens and 5 experts you return {said[0][0]:.5g}, expected {want[0][0]:.5g}. Which mean is taken over what?"
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
    """Nine tokens in the order of the batch, some without a seat; width 5."""
    rng = np.random.default_rng(capacity)
    x = (rng.integers(1, 9, (9, 5)) * rng.choice([-0.5, 0.5], (9, 5))).astype(np.float32)
    expert = np.array([0, 1, 0, 1, 0, 1, 1, 2, 0], np.int32)
    place = np.array([(expert[:t] == e).sum() for t, e in enumerate(expert)], np.int32)
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
            got = answer(x, expert, place, capacity, experts)
            if not isinstance(got, (jax.Array, np.ndarray)):
                same(got, want, "Your array of slots")
            return got

        program = jax.jit(slots)
        result = program(*case)
        if getattr(result, "shape", None) != want.shape or result.dtype != want.dtype:
            if getattr(result, "shape", None) == (capacity, experts, 5):
                raise Wrong(f"Your slots have shape {result.shape}; expected {want.shape}: the experts come first.")
            same(result, want, "Your array of slots")
        got.append((np.asarray(result), want, _fill_slips(*case, capacity, experts)))
        flops = flops or cost(program, *case).flops
    for result, want, _ in got:
        if not np.allclose(result, want, atol=1e-5):
            shared = [words for words in got[0][2] if words in got[1][2]]
            named = [words for words in shared if all(np.allclose(result, slips[words]) for result, _, slips in got)]
            if len(named) == 1:
                raise Wrong(f"{named[0]}." if named[0][-1] != "?" else named[0])
            _refuse_slots(result, want)
    if flops:
        raise Wrong(
            f"Right values, with {flops:,} FLOPs in products for nine tokens; 0 are asked. An array can be written at an index."
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
