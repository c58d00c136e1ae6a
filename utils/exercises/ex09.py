"""Exercises of notebook 09, Read a profile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from utils.exercises import Choice, Prediction, Wrong, exercise, explained, flag, number, shown

# What the lesson asks before its cells count it.
fills = Choice(
    {
        "compute": "its bars are there, and few devices compute at once: the others wait for a core, or for each other",
        "communication": "once all are there the sum is short; most of a collective's bar lies before",
        "waiting": "here most time goes elsewhere: are there as many free cores as devices?",
    },
    moment=True,
)
same_last = Choice({"yes": "look at the last column", "no": "look at the last column: this once it was"}, moment=True)
ideal = Prediction(
    "",
    {},
    {
        "longest all-reduce": {4 / 3: "that is the straggler: it arrives last, and finds all the others there"},
        "percent": {
            1 / 100: "that is a share, not percent",
            544 / 448: "that is the part in which they read; the rest is waiting",
            992 / 544: "you divide by the words that are read; the time of all eight is eight times the longest",
        },
    },
    within=0.02,
    ranks=True,
)
_GATHER, _PRODUCT = 73.4, 87.2  # µs on a TPU v5e: 7,340,032 bytes at 100 GB/s, 2 * 2048**3 FLOPs at 197 TFLOP/s
beside = Prediction(
    "µs",
    {},
    {
        "sends alone": {
            2: "the second gather runs beside the first product",
            0: "nothing can be computed before the first weights are there",
            (2 * _GATHER - _PRODUCT)
            / _GATHER: "the second gather ends before the first product, and hides no part of the first",
        },
        "the step": {
            2
            * (_GATHER + _PRODUCT)
            / (_GATHER + 2 * _PRODUCT): "that is one after the other; the second gather runs beside the first product",
            2 * _PRODUCT / (_GATHER + 2 * _PRODUCT): "that is the products alone; the first gather runs before them",
            (_GATHER + _PRODUCT) / (_GATHER + 2 * _PRODUCT): "that is one layer; two products follow each other",
            2 * _GATHER / (_GATHER + 2 * _PRODUCT): "that is the gathers alone",
        },
    },
    within=0.01,
)
psums = Prediction(
    "events",
    {
        1 / 5: "one psum, and five calls: each is an event of its own",
        8: "that is all devices together; each device has an eighth",
        8 / 5: "one psum is one event on each device, however many take part",
        2: "the sum of a device's own rows is no communication; the psum alone is",
        4: "the product, the tanh and the sum of a device's own rows are no communication; the psum alone is",
        7: "an all-reduce is one event, whatever steps it is made of",
        14: "an all-reduce is one event, whatever steps it is made of",
    },
)
cold = Prediction(
    "compilations",
    {8: "one program serves all eight devices, and is compiled once"},
    {
        "first call": {
            0: "jit compiles at a function's first call, and `new` is a new function, although it does what `program` did",
            2: "it is compiled once, and then run",
        },
        "second call": dict.fromkeys((1, 2, 8), "the program is kept, and the second call finds it"),
        "made anew": {0: "shard_map returns a new function each time, and for a new function nothing is kept"},
    },
)
paired = Prediction(
    "words",
    {},
    {
        "longest device": {
            64 / 68: "a device has two documents: the 64 together with the 4",
            124 / 68: "the two longest are no longer together: 64 goes with 4",
            120 / 68: "the two longest are no longer together: 64 goes with 4",
            1 / 2: "a device has two documents of 34 words on average",
            72 / 68: "the sum of all is 8 times 68, and it can be dealt so that nobody has more",
            96 / 68: "that is dealt like cards, in their order; 64 goes with 4, not with 32",
        },
        "shortest device": {
            4 / 68: "a device has two documents: the 4 together with the 64",
            40 / 68: "that is dealt like cards, in their order; 4 goes with 64, not with 36",
            12 / 68: "the two shortest are no longer together: 4 goes with 64",
            20 / 68: "that was before; the mend takes from the longest and gives to the shortest",
            1 / 2: "a device has two documents of 34 words on average",
        },
    },
)
EVERY = "JAX puts a NumPy array on the devices in every call, for it stays on the host"
FETCHED = "float(loss) fetches a number in every step"
hidden = Prediction(
    "",
    {8: "one put, or one fetch, is one event, however many devices it concerns"},
    {
        "host to devices": {
            0: EVERY,
            1 / 5: EVERY,
            2: "the weights are on the devices already; the batch alone is put",
            6 / 5: "the weights are on the devices already; the batch alone is put",
        },
        "device to host": {
            0: FETCHED,
            1 / 5: FETCHED,
            2: "the new weights stay on the devices; the loss alone is fetched",
        },
        "collectives on a device": {
            wrong: "an array without a layout is not cut; each device has the whole batch, and needs nobody"
            for wrong in (1, 2, 5, 8, 10, 40)
        },
    },
)
mended = Prediction(
    "",
    {},
    {
        "host to devices": {
            5: "the batch is placed once, before the loop",
            0: "the batch has to get there, once",
            2: "the weights are on the devices already; the batch alone is put",
            8: "one device_put is one event, also where it puts eight parts",
        },
        "device to host": {
            5: "block_until_ready waits, and copies nothing; the five losses come together, at the end",
            0: "the losses have to get here, at the end",
            2: "the weights stay on the devices; the losses alone come over, together",
            6: "the weights stay on the devices; the losses alone come over, together",
        },
        "collectives on a device": {
            0: "the batch is cut now, so the gradient is a sum over the devices",
            1 / 5: "there is a gradient to add up in every step",
            2: "the compiler sends the loss along with the gradient, in one all-reduce",
            8: "on each device, one in each step",
            8 / 5: "one all-reduce is one event on each device, however many take part, and there are five steps",
        },
    },
)
warm = Prediction(
    "compilations",
    {
        0: "the six steps that warm up are other calls: look at what jit is told about the third argument",
        1 / 6: "what differs from the warm-up differs in each step, too",
        1 / 3: "what differs from the warm-up differs in each step, too",
        2: "the warm-up is not in the trace",
        8: "one program serves all eight devices, and is compiled once",
    },
)
STATIC = "a static value is built into the program, so each of the six values is a program of its own"
KEPT = "each program is kept, and found the second time"
SHAPES = "each shape is a program of its own, and here are six"
SAME_RATE = "with one static value there is one program; the batches are traced, and only their shape counts"
suspects = Prediction(
    "compilations",
    {},
    {
        "one batch for all steps": {
            1 / 6: STATIC,
            2 / 6: STATIC,
            0: "the cache is empty at first",
        },
        "one rate for all steps": {6: SAME_RATE, 2: SAME_RATE, 0: "the cache is empty at first"},
    },
)
loops = Prediction(
    "compilations",
    {},
    {
        "first rate an integer": {
            1 / 2: "its value is not part of the key, but its dtype is: 1 is an int32, 0.1 a float32",
            3: "the value of a traced argument is not part of the key, only its dtype",
        },
        "first batch of NumPy": {
            1 / 2: "a NumPy array has no layout, so it needs another program than one that is placed",
            3: "the batches are traced; only the shape, the dtype and the layout count",
        },
        "8, 16, 24 rows, twice": {
            1 / 3: "three shapes are three programs",
            2: KEPT,
            4 / 3: KEPT,
            5 / 3: KEPT,
        },
        "batch grows by 8 rows": {1 / 6: SHAPES, 2 / 6: SHAPES, 5 / 6: SHAPES},
    },
)


def _judge_is_communication(answer):
    # What each name means in lessons 03 and 05, and in the compiled programs of this one.
    names = {
        "all-reduce.2": (True, "that is the collective itself"),
        "psum_invariant.7": (True, "JAX names the all-reduce after the function that asked for it: psum"),
        "all-gather-start.1": (True, "the first half of an all-gather that runs beside other work"),
        "reduce-scatter.4": (True, "that is the collective itself"),
        "collective-permute.9": (True, "one neighbour's value, as in lesson 05"),
        "ppermute.5": (True, "JAX names the collective-permute after the function that asked for it"),
        "all-to-all.1": (True, "that is the collective itself"),
        "reduce_sum.9": (
            False,
            "a device adds up its own numbers: a sum needs no neighbour unless it is an all-reduce",
        ),
        "reduce-window": (False, "a device adds up its own numbers"),
        "gather.3": (False, "a device picks entries of its own array, as in x[index]; an all-gather is another thing"),
        "scatter_add.1": (False, "a device writes into its own array; a reduce-scatter is another thing"),
        "dot_general.3": (False, "a matrix product of the device's own parts"),
        "call.2": (False, "it has 'all' in its name by chance"),
        "all_gather.3": (True, "JAX writes it with an underscore, the compiler with a hyphen"),
        "reduce_scatter.7": (True, "a reduce-scatter, as JAX writes it"),
        "pmax.7": (True, "JAX names the all-reduce after the function that asked for it: pmax"),
        "pmin.3": (True, "JAX names the all-reduce after the function that asked for it: pmin"),
        "broadcast_in_dim.4": (False, "a device repeats its own numbers; nobody sends them"),
        "copy.5": (False, "a device copies its own array to another place of its memory"),
        "pad.6": (False, "a device adds an edge to its own array"),
        "wrapped_tanh": (False, "each number by itself"),
    }
    found = {name: answer(name) for name in names}
    matched = any(isinstance(got, re.Match) for got in found.values())
    for name, (want, why) in names.items():
        got = found[name]
        if matched and (got is None or isinstance(got, re.Match)):  # what re.search gives says yes or no, too
            got = got is not None
        elif isinstance(got, (int, np.integer)) and got in (0, 1):
            got = bool(got)
        got = flag(got, said=f"For {name!r} you return")
        if got != want:
            kind = "communication" if want else "compute"
            raise Wrong(f"{name!r}: you return {got}, and it is {kind}: {why}.")


@exercise(
    _judge_is_communication,
    "A list of the words that name a collective: all-reduce, psum, all-gather, ... and any(word in name for word in ...).",
)
def is_communication(name):
    """Return whether an operation of this name waits for other devices."""
    words = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "permute", "psum", "pmax", "pmin")
    return any(word in name.replace("_", "-") for word in words)


Step = Sequence[tuple[int, str, float, float]]

# Fabricated, in microseconds: (device, name, start, end), in no order, with times in which a device does nothing, and
# collectives that do not end together. By hand, of the first: at the all-gather the last arrives at 130, at the all-reduce at
# 200; device 0 waits 40 + 0, device 1 0 + 20, device 2 20 + 10 of the 200 from 40 on. Of the second: device 1 waits 10 of 30.
MEETINGS: list[tuple[Step, dict[int, float]]] = [
    (
        [
            (1, "all-reduce.2", 180, 236),
            (0, "dot.1", 40, 90),
            (1, "dot.1", 50, 130),
            (2, "dot.1", 70, 110),
            (0, "all-gather.5", 90, 140),
            (1, "all-gather.5", 130, 140),
            (2, "all-gather.5", 110, 142),
            (0, "dot.3", 140, 200),
            (1, "dot.3", 140, 170),
            (2, "dot.3", 150, 185),
            (2, "tanh.4", 185, 190),
            (0, "all-reduce.2", 200, 240),
            (2, "all-reduce.2", 190, 238),
        ],
        {0: 0.2, 1: 0.1, 2: 0.15},
    ),
    (
        [(1, "dot.1", 5, 14), (1, "all-reduce.9", 15, 34), (0, "dot.1", 10, 25), (0, "all-reduce.9", 25, 35)],
        {0: 0.0, 1: 1 / 3},
    ),
]


def _meets(name: str) -> bool:
    return name.startswith("all-")


def _waits(
    events: Step,
    arrived: Callable[[Step, int, str], float] | None = None,
    until: Callable[[list[float]], float] = max,
    only: Callable[[str], bool] = _meets,
) -> dict[int, float]:
    """What each device waits at its collectives, in microseconds; with slips, where they are asked for."""
    devices = sorted({event[0] for event in events})
    waited = dict.fromkeys(devices, 0.0)
    for meeting in sorted({event[1] for event in events if _meets(event[1]) and only(event[1])}):
        arrival = {d: start for d, name, start, _ in events if name == meeting}
        if arrived:
            arrival = {d: arrived(events, d, meeting) for d in devices}
        for device, at in arrival.items():
            waited[device] += abs(until(list(arrival.values())) - at)
    return waited


def _computed_until(events: Step, device: int, meeting: str) -> float:
    at = next(start for d, name, start, _ in events if (d, name) == (device, meeting))
    return max(end for d, name, _, end in events if d == device and not _meets(name) and end <= at)


def _length(events: Step) -> float:
    return max(event[3] for event in events) - min(event[2] for event in events)


def _first_start(events: Step, device: int) -> float:
    return min(event[2] for event in events if event[0] == device)


def _bars(events: Step, device: int, collective: bool) -> float:
    return sum(end - start for d, name, start, end in events if d == device and _meets(name) == collective)


def _waiting_slips(events: Step) -> list[tuple[list[float], str]]:
    waited, length = _waits(events), _length(events)
    devices = sorted(waited)
    end = max(event[3] for event in events)
    arrivals = [event[2] for event in events if _meets(event[1])]
    names = sorted({event[1] for event in events if _meets(event[1])}, key=lambda name: -len(name) or name)
    starts = {name: min(e[2] for e in events if e[1] == name) for name in names}
    order = sorted(names, key=starts.get)

    def shares(value: Callable[[int], float], of: Callable[[int], float] = lambda d: length) -> list[float]:
        return [value(d) / of(d) if of(d) else 0.0 for d in devices]

    def waits(**how) -> Callable[[int], float]:
        return _waits(events, **how).__getitem__

    return [
        (shares(lambda d: _bars(events, d, True)), "you count whole collectives: once all are there, nobody waits"),
        (
            shares(waits(arrived=_computed_until)),
            "you take the end of a device's computing for its arrival; it may do nothing in between",
        ),
        (
            shares(waited.get, lambda d: _bars(events, d, True)),
            "you divide by the device's own collectives; the share of the whole step is asked",
        ),
        (shares(waited.get, lambda d: end), f"you divide by the last end, {end:g}. The step does not begin at 0"),
        (shares(waited.get, lambda d: 1.0), f"these are microseconds; divide by the {length:g} of the step"),
        (shares(lambda d: 100 * waited[d]), "these are percent; a share is from 0 to 1"),
        (shares(waits(until=min)), "you measure from the first arrival; a device waits until the last one"),
        (
            shares(waited.get, lambda d: max(e[3] for e in events if e[0] == d) - _first_start(events, d)),
            "you divide by each device's own time; the step is as long for all, from the first start to the last end",
        ),
        (
            shares(lambda d: waited[d] + _first_start(events, d) - min(e[2] for e in events)),
            "you count the time before a device's first operation, too; it has not begun then, and waits for nobody",
        ),
        (shares(lambda d: length - _bars(events, d, False)), "you count all that is no computing, idle time, too"),
        (
            shares(lambda d: length - _bars(events, d, False) - _bars(events, d, True)),
            "you count the time without any bar; who waits at a collective has a bar",
        ),
        (shares(lambda d: _bars(events, d, False)), "that is the share in which each device computes"),
        (
            shares(waits(only=lambda name: name == order[-1])),
            "you count one collective, the last; a device waits at each",
        ),
        (
            shares(waits(only=lambda name: name == order[0])),
            "you count one collective, the first; a device waits at each",
        ),
        (
            shares(lambda d: sum(max(arrivals) - e[2] for e in events if e[0] == d and _meets(e[1]))),
            "you compare arrivals at different collectives; look at each by its name",
        ),
        (shares(waited.get, lambda d: sum(waited.values())), "that is each device's part of all waiting"),
        (
            shares(waited.get, lambda d: sum(e[3] - e[2] for e in events)),
            "you divide by the bars of all devices, added up; the step is from the first start to the last end",
        ),
        (
            shares(waited.get, lambda d: length * len(devices)),
            f"you divide by the time of all {len(devices)} devices; a device's share is of its own step, {length:g}",
        ),
        (
            shares(waited.get, lambda d: max(e[2] for e in events) - min(e[2] for e in events)),
            "you divide by the time from the first start to the last start; the step lasts to the last end",
        ),
        (
            shares(waited.get, lambda d: _bars(events, d, True) + _bars(events, d, False)),
            "you divide by the device's own bars; the share of the whole step is asked",
        ),
        *(
            ([round(share, digits) for share in shares(waited.get)], "you round; give the share itself")
            for digits in (1, 2, 3)
        ),
        (
            shares(waits(until=np.mean)),
            "you measure from the mean arrival; a device waits until the last one",
        ),
    ]


def _judge_waiting_share(answer):
    found, wanted, slips = [], [], None
    for events, want in MEETINGS:
        got = answer(list(events))
        if not isinstance(got, dict) or set(got) != set(want):
            raise Wrong(
                f"You return {shown(got)}; expected a dictionary with a share for each of the devices {[*want]}."
            )
        found += [number(got[d], "a share, from 0 to 1", said=f"For device {d} you return") for d in sorted(want)]
        wanted += [want[d] for d in sorted(want)]
        told = _waiting_slips(events)
        slips = told if slips is None else [(a + b, words) for (a, words), (b, _) in zip(slips, told, strict=True)]
    if np.allclose(found, wanted, 1e-6, 1e-9):
        return
    at = next(i for i in range(len(found)) if not np.isclose(found[i], wanted[i], 1e-6, 1e-9))
    several = at < len(MEETINGS[0][1])
    case, device = ("two collectives", at) if several else ("one collective", at - len(MEETINGS[0][1]))
    why = (
        explained(found, slips or []) or "for each collective: the last arrival, less its own; then over the whole step"
    )
    raise Wrong(f"In a step with {case} you say of device {device} {found[at]:.4g}: {why}.")


@exercise(
    _judge_waiting_share,
    "For each collective: the starts of its bars are the arrivals; each device waits until the last of them. Add up, divide by the step.",
)
def waiting_share(events):
    """Return {device: share of the step spent waiting for the last one to arrive}."""
    length = max(event[3] for event in events) - min(event[2] for event in events)
    waited = {event[0]: 0 for event in events}
    for meeting in {event[1] for event in events if event[1].startswith("all-")}:
        arrival = {d: start for d, name, start, end in events if name == meeting}
        last = max(arrival.values())
        for device, start in arrival.items():
            waited[device] += last - start
    return {device: wait / length for device, wait in waited.items()}


def _step(**rows: list[tuple[float, ...]]) -> list[tuple[int, str, float, float]]:
    """A step from each device's bars: (start, end) of what it computes, then the start and end of its all-reduce."""
    events = []
    for row, bars in rows.items():
        device = int(row.removeprefix("d"))
        events += [(device, f"dot.{i}", *bar) for i, bar in enumerate(bars[:-1])]
        events.append((device, "all-reduce.7", *bars[-1]))
    return events


# By hand: who arrives last, how many operations it ran and for how long, beside the others.
STEPS = [
    # Device 1 arrives last, at 90: three operations; the others ran two.
    (
        _step(
            d0=[(0, 10), (10, 20), (30, 100)],
            d1=[(20, 40), (40, 70), (70, 90), (90, 100)],
            d2=[(60, 75), (75, 80), (80, 100)],
            d3=[(5, 25), (25, 26), (26, 100)],
        ),
        (1, "data"),
    ),
    # Device 2, at 95: two operations, 40 long, and device 0 computed as long. It began at 55.
    (
        _step(
            d2=[(55, 75), (75, 95), (95, 100)],
            d0=[(0, 20), (20, 40), (40, 100)],
            d1=[(30, 50), (50, 65), (65, 100)],
            d3=[(2, 21), (22, 40), (41, 100)],
        ),
        (2, "start"),
    ),
    # Device 3, at 88: two operations, 80 long; the others two, 40 and 36. Device 1 began last.
    (
        _step(
            d1=[(10, 30), (30, 50), (50, 90)],
            d3=[(8, 45), (45, 88), (88, 90)],
            d0=[(0, 18), (18, 36), (40, 90)],
        ),
        (3, "chip"),
    ),
    # Device 0, at 70: two operations, 30 long; device 2 ran four, 32 long, and device 1 has the longest one.
    (
        _step(
            d0=[(40, 55), (55, 70), (70, 80)],
            d2=[(0, 8), (8, 16), (16, 24), (24, 32), (32, 80)],
            d1=[(4, 30), (30, 33), (33, 80)],
        ),
        (0, "start"),
    ),
    # Device 4, at 64: five operations, 20 long; device 5 two, 30 long.
    (
        _step(
            d5=[(0, 15), (15, 30), (30, 70)],
            d4=[(44, 48), (48, 52), (52, 56), (56, 60), (60, 64), (64, 70)],
        ),
        (4, "data"),
    ),
    # Device 2, at 66: two operations, 35 long; the others 38 and 37. Its first one is the longest of all, and before its
    # second it was held up, so it took longest from its first start on.
    (
        _step(
            d0=[(0, 20), (20, 38), (40, 90)],
            d1=[(3, 22), (22, 40), (44, 90)],
            d2=[(6, 30), (55, 66), (66, 90)],
        ),
        (2, "start"),
    ),
    # Device 6, at 72: one operation, four times, 38 long; the others ran two before and one after. They do not end
    # together: device 7's all-reduce is the shortest, device 5's ends last, and device 5's update starts last of all.
    (
        [
            *((6, "dot.1", *bar) for bar in [(30, 40), (42, 50), (50, 58), (60, 72)]),
            (6, "all-reduce.7", 72, 84),
            *((5, *bar) for bar in [("dot.1", 0, 20), ("dot.2", 20, 39), ("all-reduce.7", 45, 85), ("add.3", 86, 90)]),
            *((7, *bar) for bar in [("all-reduce.7", 71, 82), ("dot.2", 25, 44), ("add.3", 83, 84), ("dot.1", 5, 25)]),
        ],
        (6, "data"),
    ),
]
CAUSES = ("data", "chip", "start")


def _judge_diagnose(answer):
    found = []
    for events, _ in STEPS:
        got = answer(list(events))
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise Wrong(f'You return {shown(got)}; expected a device and a cause, such as (3, "data").')
        devices = sorted({event[0] for event in events})
        device = number(got[0], "the number of a device", said="As the device you return", whole=True)
        if device not in devices:
            raise Wrong(f"You return device {device}; the devices of this step are {devices}.")
        if got[1] not in CAUSES:
            raise Wrong(f'As the cause you return {shown(got[1])}; expected "data", "chip" or "start".')
        found.append((device, str(got[1])))
    wanted = [want for _, want in STEPS]
    if found == wanted:
        return

    def pick(rule: Callable[[Step, int], float], in_order: bool = True) -> list[int]:
        """The device with most; among equals the lowest, or the first in the list."""
        devices = [dict.fromkeys(e[0] for e in events) for events, _ in STEPS]
        chosen = zip(STEPS, devices, strict=True)
        return [max(sorted(d) if in_order else d, key=lambda one: rule(events, one)) for (events, _), d in chosen]

    def own(events: Step, device: int, compute: bool = True) -> list[tuple[float, float]]:
        return [(s, e) for d, name, s, e in events if d == device and ("all-reduce" in name) != compute]

    at = next(i for i, (said, want) in enumerate(zip(found, wanted, strict=True)) if said != want)
    (device, cause), (last, _) = found[at], wanted[at]
    mine = own(STEPS[at][0], device)
    ran = f"it ran {len(mine)} operations, {sum(e - s for s, e in mine):g} µs in all"
    if [said[0] for said in found] != [want[0] for want in wanted]:
        rules: list[tuple[Callable[[Step, int], float], str]] = [
            (
                (lambda ev, d: sum(e - s for s, e in own(ev, d, False))),
                "has the longest all-reduce (it came first, and waits)",
            ),
            (
                (lambda ev, d: -sum(e - s for s, e in own(ev, d, False))),
                "has the shortest all-reduce; they need not end together",
            ),
            (
                (lambda ev, d: own(ev, d, False)[0][1]),
                "ends its all-reduce last, and need not be the last to start it",
            ),
            (
                (lambda ev, d: max(s for s, _ in own(ev, d, False) + own(ev, d))),
                "starts the last operation of all; work may follow the all-reduce",
            ),
            (
                (lambda ev, d: max(e for _, e in own(ev, d, False) + own(ev, d))),
                "ends the last operation of all; work may follow the all-reduce",
            ),
            ((lambda ev, d: sum(e - s for s, e in own(ev, d))), "computes longest, and others may begin later"),
            ((lambda ev, d: len(own(ev, d))), "runs most operations, and others may begin later or be slower"),
            ((lambda ev, d: min(own(ev, d))[0]), "begins last, and may have little to do"),
            ((lambda ev, d: -min(own(ev, d))[0]), "begins first"),
            ((lambda ev, d: max(e - s for s, e in own(ev, d))), "has the longest single bar"),
            ((lambda ev, d: max(e - s for s, e in own(ev, d, False) + own(ev, d))), "has the longest single bar"),
            (
                (lambda ev, d: own(ev, d, False)[0][0] - min(own(ev, d))[0]),
                "takes longest from its first start to its all-reduce, and others may begin later",
            ),
        ]
        slips = [(pick(rule, in_order), words) for rule, words in rules for in_order in (True, False)]
        why = explained([said[0] for said in found], slips, most=4) or "is not the one that the others wait for"
        if device == last:
            raise Wrong(
                f"You return device {device}, which is right, and {cause!r}; {ran}. In another step you name another."
            )
        raise Wrong(f"You return device {device}, which {why}. Who is the last at the all-reduce?")
    others = [own(STEPS[at][0], d) for d in sorted({e[0] for e in STEPS[at][0]}) if d != device]
    beside = ", ".join(f"{len(bars)} ({sum(e - s for s, e in bars):g} µs)" for bars in others)
    why = explained([CAUSES.index(said) for _, said in found], _cause_slips())
    raise Wrong(
        f"Device {device} is right; you say {cause!r}. {ran.capitalize()}; the others: {beside}.{why and f' {why[0].upper()}{why[1:]}.'}"
    )


def _cause_slips() -> list[tuple[list[int], str]]:
    """What a slip in the cause gives for each step, by its place in CAUSES, and what to call it."""

    def causes(
        more: Callable[[float, list[float]], bool] = lambda mine, others: mine > max(others),
        longer: Callable[[float, list[float]], bool] = lambda mine, others: mine > max(others),
        number_of: Callable[[list], float] = len,
        time_of: Callable[[list], float] = lambda bars: sum(e - s for _, s, e in bars),
        all_reduce: bool = False,
        first: int = 0,
    ) -> list[int]:
        found = []
        for events, (last, _) in STEPS:
            rows: dict[int, list] = {event[0]: [] for event in events}
            for device, name, start, end in events:
                if all_reduce or "all-reduce" not in name:
                    rows[device].append((name, start, end))
            met = []
            for of, beats in ((number_of, more), (time_of, longer)):
                mine, *others = (of(rows[d]) for d in sorted(rows, key=lambda d: d != last))
                met.append(beats(mine, others))
            found.append(first if met[first] else 1 - first if met[1 - first] else 2)
        return found

    def most(mine: float, others: list[float]) -> bool:
        return mine >= max(others)

    def above_mean(mine: float, others: list[float]) -> bool:
        return mine > np.mean([mine, *others])

    def some(mine: float, others: list[float]) -> bool:
        return mine > min(others)

    alike = "you let a tie pass; more than any other is asked"
    return [
        (causes(more=most), alike),
        (causes(longer=most), alike),
        (causes(more=most, longer=most), alike),
        (causes(first=1), "you ask for the longer time first; more operations come first"),
        (causes(more=above_mean, longer=above_mean), "you compare with the mean; more than any other is asked"),
        (causes(more=some, longer=some), "you compare with the device that has least; more than any other is asked"),
        (causes(all_reduce=True), "you add up the all-reduce, too"),
        (
            causes(time_of=lambda bars: max(e - s for _, s, e in bars)),
            "you compare the longest single operations; add them up",
        ),
        (
            causes(time_of=lambda bars: sum(e - s for _, s, e in bars) / len(bars)),
            "you compare the mean of the operations; add them up",
        ),
        (
            causes(time_of=lambda bars: max(e for *_, e in bars) - min(s for _, s, _ in bars)),
            "you take the time from the first start to the last end, also that in which nothing runs",
        ),
        (
            causes(number_of=lambda bars: len({name for name, *_ in bars})),
            "you count the names; an operation that runs four times counts four times",
        ),
        (causes(more=lambda mine, others: False), "you never say 'data'"),
        (causes(longer=lambda mine, others: False), "you never say 'chip'"),
        (causes(longer=lambda mine, others: True), "you never say 'start'"),
    ]


@exercise(
    _judge_diagnose,
    "The last to start its all-reduce. Then count its other operations, and add up their times; compare each with the most among the others.",
)
def diagnose(events):
    """Return (device that the others wait for, "data", "chip" or "start")."""
    ran, computed, arrival = Counter(), Counter(), {}
    for device, name, start, end in events:
        if "all-reduce" in name:
            arrival[device] = start
        else:
            ran[device] += 1
            computed[device] += end - start
    last = max(arrival, key=arrival.get)
    others = [device for device in arrival if device != last]
    if ran[last] > max(ran[device] for device in others):
        return last, "data"
    if computed[last] > max(computed[device] for device in others):
        return last, "chip"
    return last, "start"


Call = tuple[tuple[int, ...], str, str, float, bool]
BASE: Call = ((32, 8), "float32", "rows", 0.5, True)
# Two calls or three, of which one thing differs; and by hand how many compile. Then some of them in a row.
CALLS: list[tuple[str, list[Call], int]] = [
    ("the first number of the shape", [BASE, ((13, 8), *BASE[1:])], 2),
    ("the second number of the shape", [BASE, ((32, 5), *BASE[1:])], 2),
    ("the number of axes", [BASE, ((32, 8, 1), *BASE[1:])], 2),
    ("the dtype", [BASE, (*BASE[:1], "int32", *BASE[2:])], 2),
    ("the layout", [BASE, (*BASE[:2], "whole", *BASE[3:])], 2),
    ("the rate", [BASE, (*BASE[:3], 0.4, True), (*BASE[:3], 0.3, True)], 1),
    ("the type of the rate", [BASE, (*BASE[:3], 2, True), (*BASE[:3], 3, True)], 2),
    ("the static argument", [BASE, (*BASE[:4], False)], 2),
    ("nothing", [BASE, BASE, BASE], 1),
    ("the call in between", [BASE, (*BASE[:4], False), BASE], 2),
    ("the order", [((1, 2), *BASE[1:]), ((2, 1), *BASE[1:])], 2),
]


def _judge_compilations(answer):
    cases = [*CALLS, ("all of them in a row", [call for _, calls, _ in CALLS for call in calls], 10)]
    found = [number(answer(list(calls)), "a whole number, of compilations", whole=True) for _, calls, _ in cases]
    if found == [want for *_, want in cases]:
        return

    def count(key: Callable[[Call], object], dtype: bool = True) -> list[int]:
        return [len({(key(call), dtype and type(call[3])) for call in calls}) for _, calls, _ in cases]

    def compare(key: Callable[[Call], object]) -> list[int]:
        return [
            1 + sum((key(a), type(a[3])) != (key(b), type(b[3])) for a, b in pairwise(calls)) for _, calls, _ in cases
        ]

    kept = (0, 1, 2, 4)
    names = ("the shape", "the dtype", "the layout", "the rate", "the static argument")
    slips = [
        (
            [len(calls) for _, calls, _ in cases],
            "every call counts; a program that was compiled is kept and used again",
        ),
        (count(lambda c: c), "a rate that changes counts. It is traced, so its value is not part of the key"),
        (
            count(lambda c: (*c[:3], c[4]), dtype=False),
            "the rate's value is not in the key, but its dtype is: 2 is an int32, 0.5 a float32",
        ),
        (compare(lambda c: (*c[:3], c[4])), "a program that comes back counts again; every program is kept"),
    ]
    of_shape: list[tuple[Callable[[tuple[int, ...]], object], str]] = [
        (lambda shape: shape[0], "of the shape only the first number counts"),
        (lambda shape: shape[-1], "of the shape only the last number counts"),
        (np.prod, "of the shape only the size counts: (1, 2) is not (2, 1)"),
        (lambda shape: tuple(sorted(shape)), "of the shape the order is lost: (1, 2) is not (2, 1)"),
        (len, "of the shape only the number of axes counts"),
    ]
    for of, words in of_shape:
        for dtype, more in ((True, ""), (False, "; and the rate's dtype is missing")):
            slips.append((count(lambda c, of=of: (of(c[0]), *c[1:3], c[4]), dtype), words + more))
    for left_out in kept:
        rest = [i for i in range(5) if i != left_out]
        slips += [
            (
                count(lambda c, k=rest: tuple(c[i] for i in k if i != 3)),
                f"{names[left_out]} is part of the key, and missing",
            ),
            (
                count(lambda c, k=rest: tuple(c[i] for i in k if i != 3), dtype=False),
                f"{names[left_out]} is part of the key, and missing; so is the rate's dtype",
            ),
            (
                count(lambda c, k=rest: tuple(c[i] for i in k)),
                f"{names[left_out]} is part of the key, and missing; the rate is not",
            ),
            (count(lambda c, i=left_out: c[i], dtype=False), f"only one part of the key counts, {names[left_out]}"),
        ]
    at = next(i for i, (_, _, want) in enumerate(cases) if found[i] != want)
    differs, calls, _ = cases[at]
    why = explained(found, slips) or "count the different keys, each one once"
    how = differs if differs.startswith("all") else f"{differs} differs"
    raise Wrong(f"Of {len(calls)} calls ({how}) you say {found[at]} compile: {why}.")


@exercise(
    _judge_compilations,
    "A set holds each thing once. What of a call is in the key: shape, dtype, layout, the static argument; and of the rate, which is traced, what is in the key of every traced argument?",
)
def compilations(calls):
    """Return how many calls compile. A call: (shape, dtype, layout, rate, training).

    The rate is a traced argument, training a static one.
    """
    return len({(shape, dtype, layout, type(rate), training) for shape, dtype, layout, rate, training in calls})


Bars = Sequence[tuple[str, float, float]]
# One device's bars, in no order, in microseconds; and by hand the time in which it sends and does not compute.
OVERLAPS: list[tuple[str, Bars, float]] = [
    (
        "a gather that begins before a product ends",
        [("compute", 20, 40), ("communication", 5, 25), ("compute", 0, 10)],
        10,
    ),
    (
        "two gathers that overlap",
        [("communication", 0, 10), ("compute", 12, 20), ("communication", 5, 15)],
        12,
    ),
    ("a gather beside a long product", [("compute", 0, 30), ("communication", 5, 25)], 0),
    ("two products at once", [("compute", 4, 8), ("communication", 0, 10), ("compute", 2, 6)], 4),
    ("a gap", [("communication", 3.5, 4), ("compute", 6, 10), ("communication", 12, 13)], 1.5),
    ("nothing to send", [("compute", 1, 6)], 0),
    ("a gather that goes on after a product", [("communication", 9, 64), ("compute", 3, 40)], 24),
    ("nothing to compute", [("communication", 2, 9)], 7),
    (
        "short bars inside of long ones",
        [
            ("compute", 30, 50),
            ("communication", 0, 28),
            ("compute", 32, 36),
            ("communication", 4, 9),
            ("communication", 40, 61.5),
        ],
        39.5,
    ),
]


def _covered(bars: Bars, *kinds: str) -> float:
    """The time in which at least one bar of these kinds is there."""
    reached, total = float("-inf"), 0.0
    for _, start, end in sorted((bar for bar in bars if bar[0] in kinds), key=lambda bar: bar[1]):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _judge_exposed(answer):
    found = [number(answer(list(bars)), "a time, in µs") for _, bars, _ in OVERLAPS]
    wanted = [want for *_, want in OVERLAPS]
    if np.allclose(found, wanted, 1e-6, 1e-9):
        return

    def each(rule: Callable[[Bars], float]) -> list[float]:
        return [rule(bars) for _, bars, _ in OVERLAPS]

    def summed(bars: Bars, kind: str) -> float:
        return sum(end - start for k, start, end in bars if k == kind)

    def shared(bars: Bars) -> float:
        """Of each pair of a gather and a product: how long they run together."""
        return sum(
            max(0.0, min(end, until) - max(start, since))
            for k, start, end in bars
            for other, since, until in bars
            if (k, other) == ("communication", "compute")
        )

    def length(bars: Bars) -> float:
        return max(bar[2] for bar in bars) - min(bar[1] for bar in bars)

    def overlap(start: float, end: float, stretches: list[tuple[float, float]]) -> float:
        return sum(max(0.0, min(end, until) - max(start, since)) for since, until in stretches)

    def parts(bars: Bars, kind: str) -> list[tuple[float, float]]:
        return [(start, end) for k, start, end in bars if k == kind]

    def each_gather(bars: Bars) -> float:
        """Each gather by itself, less what any product covers of it."""
        alone = 0.0
        for gather in (bar for bar in bars if bar[0] == "communication"):
            products = [bar for bar in bars if bar[0] == "compute"]
            alone += _covered([gather, *products], *both) - _covered(products, "compute")
        return alone

    def whole(bars: Bars, *kinds: str) -> float:
        return _covered([(kind, int(start), int(end)) for kind, start, end in bars], *kinds)

    def untouched(bars: Bars) -> float:
        products = parts(bars, "compute")
        return sum(end - start for start, end in parts(bars, "communication") if not overlap(start, end, products))

    def hull(bars: Bars) -> float:
        products = parts(bars, "compute") or [(0.0, 0.0)]
        one = [("compute", min(start for start, _ in products), max(end for _, end in products))]
        gathers = [bar for bar in bars if bar[0] == "communication"]
        return _covered([*gathers, *one], *both) - _covered(one, "compute")

    def joined(bars: Bars, order: bool = True, longest: bool = False) -> float:
        """Bars of a kind joined to stretches: in order or not, a short one inside a long one ends it or not."""
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in both}
        for kind in both:
            for start, end in sorted(parts(bars, kind)) if order else parts(bars, kind):
                if found[kind] and found[kind][-1][0] <= start <= found[kind][-1][1]:
                    before = found[kind].pop()
                    start, end = before[0], max(before[1], end) if longest else end
                found[kind].append((start, end))
        return sum(end - start - overlap(start, end, found["compute"]) for start, end in found["communication"])

    both = ("compute", "communication")
    right = each(lambda b: _covered(b, *both) - _covered(b, "compute"))
    slips = [
        *((each_to(right), "you count whole microseconds") for each_to in (np.round, np.floor, np.ceil)),
        (
            each(lambda b: whole(b, *both) - whole(b, "compute")),
            "you count whole microseconds",
        ),
        (
            each(lambda b: _covered(b, "communication") - _covered(b, "compute")),
            "you subtract all computing, also what has no sending beside it",
        ),
        (
            each(lambda b: max(0.0, _covered(b, "communication") - _covered(b, "compute"))),
            "you subtract all computing, also what has no sending beside it",
        ),
        (each(each_gather), "where two gathers overlap, their time counts twice"),
        (each(untouched), "you leave out a gather altogether where a product runs beside a part of it"),
        (each(hull), "you take the products as one, from the first start to the last end; there may be gaps"),
        (each(lambda b: joined(b)), "a short bar inside a long one ends before it; go on to the later of the two ends"),
        (each(lambda b: joined(b, order=False, longest=True)), "you join the bars in the order of the list; sort them"),
        (
            [value if parts(b, "compute") else 0.0 for value, (_, b, _) in zip(right, OVERLAPS, strict=True)],
            "where nothing is computed all sending is exposed",
        ),
        (each(lambda b: summed(b, "communication")), "you add up all sending, also what a product hides"),
        (each(lambda b: _covered(b, "communication")), "you count all time in which it sends, also beside a product"),
        (
            each(lambda b: max(0.0, summed(b, "communication") - summed(b, "compute"))),
            "you subtract all computing, also what has no sending beside it",
        ),
        (each(lambda b: summed(b, "communication") - summed(b, "compute")), "you subtract all computing"),
        (
            each(lambda b: summed(b, "communication") - shared(b)),
            "you subtract pair by pair: where two bars of one kind overlap, their time counts twice",
        ),
        (
            each(lambda b: _covered(b, "communication") - shared(b)),
            "you subtract pair by pair: where two products overlap, their time counts twice",
        ),
        (each(lambda b: length(b) - _covered(b, "compute")), "you count the time in which it does nothing, too"),
        (each(lambda b: length(b) - summed(b, "compute")), "you count the time in which it does nothing, too"),
        (
            each(lambda b: _covered(b, "compute") + _covered(b, "communication") - _covered(b, *both)),
            "that is what is hidden: the time in which it does both",
        ),
        (each(shared), "that is what is hidden: the time in which it does both"),
        (
            each(lambda b: _covered(b, *both) - _covered(b, "communication")),
            "that is the time in which it only computes",
        ),
        (
            each(
                lambda b: (
                    summed(b, "communication")
                    and (_covered(b, *both) - _covered(b, "compute")) / summed(b, "communication")
                )
            ),
            "that is a share of all sending; the time is asked",
        ),
        (
            each(lambda b: (_covered(b, *both) - _covered(b, "compute")) / length(b)),
            "that is a share of the whole; the time is asked",
        ),
    ]
    at = next(i for i in range(len(found)) if not np.isclose(found[i], wanted[i], 1e-6, 1e-9))
    why = explained(found, slips) or "the time in which a gather is under way and no product is"
    raise Wrong(f"With {OVERLAPS[at][0]} you say {found[at]:g} µs: {why}.")


@exercise(
    _judge_exposed,
    "Sort all starts and ends: between two neighbours nothing changes. Which kinds are there, in each such stretch?",
)
def exposed(bars):
    """Return the µs in which a chip sends and does not compute.

    Bars: (kind, start, end).
    """
    total = 0
    moments = sorted({moment for kind, start, end in bars for moment in (start, end)})
    for begin, until in pairwise(moments):
        if {kind for kind, start, end in bars if start <= begin and until <= end} == {"communication"}:
            total += until - begin
    return total
