"""Exercises of notebook 09, Read a profile."""

from __future__ import annotations

import math

import numpy as np

from utils.exercises import Prediction, Wrong, exercise, number

# Fabricated, in microseconds: (device, name, start, end). In TALL the longest collective, the first to start and the last
# to start are three devices, and none of them is the straggler.
TALL = [
    (0, "dot.1", 0, 20),
    (0, "all-reduce.2", 30, 100),
    (1, "dot.1", 20, 90),
    (1, "all-reduce.2", 90, 100),
    (2, "dot.1", 60, 80),
    (2, "tanh.3", 80, 95),
    (2, "all-reduce.2", 95, 100),
    (3, "dot.1", 5, 25),
    (3, "all-reduce.2", 25, 100),
]
# Most work comes in two bars, neither of which is the longest; and device 2 is idle between its two.
PIECES = [
    (3, "dot.1", 0, 8),
    (3, "all-reduce.2", 8, 90),
    (1, "dot.1", 2, 52),
    (1, "all-reduce.2", 52, 90),
    (0, "dot.1", 4, 44),
    (0, "tanh.3", 44, 84),
    (0, "all-reduce.2", 84, 90),
    (2, "dot.1", 3, 13),
    (2, "tanh.3", 76, 86),
    (2, "all-reduce.2", 86, 90),
]

# What the lesson asks before its cells count it.
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
        },
        "shortest device": {
            4 / 68: "a device has two documents: the 4 together with the 64",
            12 / 68: "the two shortest are no longer together: 4 goes with 64",
            20 / 68: "that was before; the mend takes from the longest and gives to the shortest",
            1 / 2: "a device has two documents of 34 words on average",
        },
        "sum": {
            1 / 4: "the lengths are 4 times 1, 2, ... 16",
            1 / 8: "that is one device's",
            1 / 2: "there are sixteen documents of 34 words on average",
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
KEPT = "the program for 8 rows is kept, too, and found the second time"
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
        "rate traced": {6: "the value of a traced argument is not part of the key", 0: "the first call compiles"},
        "every third batch 8 rows": {
            1 / 2: "two shapes are two programs",
            2: KEPT,
            3 / 2: KEPT,
            3: "the rate is traced, and a program is kept: the two shapes are what counts",
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
    }
    for name, (want, why) in names.items():
        got = answer(name)
        if not isinstance(got, (bool, np.bool_)):
            raise Wrong(f"For {name!r} you return {got!r}; expected True or False.")
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


def _sums(events, communication):
    """Microseconds of each device in its collectives, or in all else."""
    total = {}
    for device, name, start, end in events:
        total[device] = total.get(device, 0) + (end - start) * (("all-reduce" in name) == communication)
    return total


def _judge_most_work(answer):
    # By hand: device 1 computes 70 of 20, 70, 35, 20; and device 0 computes 80 of 80, 50, 20, 8.
    for events, want in ((TALL, 1), (PIECES, 0)):
        got = number(answer(list(events)), "the number of a device", whole=True)
        if got == want:
            continue
        longest_wait = _sums(events, True)
        computed = _sums(events, False)
        if got not in computed:
            raise Wrong(f"You return {got}; the devices of this trace are {sorted(computed)}.")
        starts = {d: min(s for device, _, s, _ in events if device == d) for d in computed}
        work = [e for e in events if "all-reduce" not in e[1]]
        longest = max(work, key=lambda e: e[3] - e[2])
        if longest_wait[got] == max(longest_wait.values()):
            why = "Its all-reduce has the longest bar: it arrived first and waits for the others. Who has most work waits little or not at all"
        elif starts[got] == min(starts.values()):
            why = "It is the first to start. That says who was scheduled first, not who works longest"
        elif starts[got] == max(starts.values()):
            why = "It started late, and so it arrives late; that is a question for its host, not for its work"
        elif got == longest[0]:
            why = "It has the longest single bar of computing. Another device computes longer, in two bars: add them up"
        elif got == max(starts, key=lambda d: max(end for device, _, _, end in work if device == d) - starts[d]):
            why = "It has the longest stretch from its first start to its all-reduce, and idles within it. Add up the bars alone"
        else:
            why = "Add up its bars, without the all-reduce"
        raise Wrong(f"You return {got}, which computes for {computed[got]} µs. {why}.")


@exercise(
    _judge_most_work,
    "Add up end - start of each device, leaving out the all-reduce; then max(total, key=total.get).",
)
def most_work(events):
    """Return the device that computes longest. Events: (device, name, start, end)."""
    total = {}
    for device, name, start, end in events:
        if "all-reduce" not in name:
            total[device] = total.get(device, 0) + end - start
    return max(total, key=total.get)


def _judge_waiting_share(answer):
    # By hand: all are there at 130, the step lasts from 40 to 140. Device 0 arrives at 90, 1 at 130, 2 at 110.
    events = [
        (0, "dot.1", 40, 90),
        (0, "all-reduce.2", 90, 140),
        (1, "dot.1", 50, 130),
        (1, "all-reduce.2", 130, 140),
        (2, "dot.1", 70, 110),
        (2, "all-reduce.2", 110, 140),
    ]
    want = {0: 0.4, 1: 0.0, 2: 0.2}
    got = answer(list(events))
    if not isinstance(got, dict) or set(got) != set(want):
        raise Wrong(f"You return {got!r}; expected a dictionary with a share for each of the devices 0, 1, 2.")
    said = "For device {} you return"
    got = {d: number(share, "a number from 0 to 1", said=said.format(d)) for d, share in got.items()}

    def close(other):
        return all(math.isclose(got[d], other[d], abs_tol=1e-3) for d in want)

    if close(want):
        return
    if close({0: 0.5, 1: 0.1, 2: 0.3}):
        why = "you count the whole all-reduce. From 130 on all three are there, and what follows is communication"
    elif close({0: 0.8, 1: 0.0, 2: 2 / 3}):
        why = "you divide by the all-reduce; the share of the whole step is asked"
    elif close({0: 40 / 140, 1: 0.0, 2: 20 / 140}):
        why = "you divide by the last end, 140. The step begins at 40"
    elif close({0: 40, 1: 0, 2: 20}):
        why = "these are microseconds, or percent. Divide by the 100 µs that the step lasts"
    elif close({0: 0.0, 1: 0.4, 2: 0.2}):
        why = "you measure from the first arrival. A device waits from its own arrival until the last one"
    elif close({0: 0.4, 1: 0.0, 2: 2 / 7}):
        why = "each device is divided by its own time. The step lasts 100 µs for all, also for the one that starts late"
    elif close({0: 0.4, 1: 0.1, 2: 0.5}):
        why = "you count the time before the first operation too; here only the wait at the collective is asked"
    else:
        why = (
            "the last device arrives at 130; a device waits from its own arrival until then, of the 100 µs of the step"
        )
    raise Wrong(f"You return {dict(sorted(got.items()))}; {why}.")


@exercise(
    _judge_waiting_share,
    "The start of its all-reduce is a device's arrival. The last arrival, less its own, over the step's length.",
)
def waiting_share(events):
    """Return {device: share of the step spent waiting for the last one to arrive}."""
    arrival = {d: start for d, name, start, end in events if "all-reduce" in name}
    begin, finish = min(e[2] for e in events), max(e[3] for e in events)
    last = max(arrival.values())
    return {d: (last - own) / (finish - begin) for d, own in arrival.items()}


def _judge_compilations(answer):
    a, b = (32, 8), (13, 8)
    calls = [
        (b, "float32", 0.5, True),
        (b, "float32", 0.5, True),
        (a, "float32", 0.2, False),
        (a, "int32", 0.6, False),
        (a, "float32", 0.3, True),
        (a, "float32", 0.6, False),
        (b, "float32", 0.2, True),
        (a, "int32", 0.2, False),
        (a, "float32", 0.2, True),
        (b, "float32", 0.4, True),
        (a, "float32", 0.2, False),
        (a, "float32", 0.4, True),
    ]
    # By hand: (13, 8) float32 True; (32, 8) float32 False; (32, 8) int32 False; (32, 8) float32 True.
    got, short = (number(answer(list(part)), "a whole number", whole=True) for part in (calls, calls[:2]))
    if got == 4 and short == 1:
        return
    if got == 4:
        raise Wrong(f"Right for twelve calls; of the first two of them alone you say {short} compile, and it is 1.")
    rate = "the rate counts, and a part of the key is missing. The rate is traced, so its value is not part of the key"
    why = {
        12: "every call counts as a compilation. A program that was compiled is kept and used again",
        11: "a program that comes back counts again, as if only the call before were remembered. Every program is kept",
        10: "a rate that changes counts. It is traced, so its value is not part of the key",
        9: "the rate counts and training does not: it is the other way round",
        **dict.fromkeys((5, 6, 7, 8), rate),
        3: "one part of the key is missing: the shape, the dtype and the static argument all count",
        2: "only one part of the key counts. Shape, dtype and the static argument are all in it",
        1: "one program is to serve all shapes. Each shape is compiled for itself",
    }
    raise Wrong(
        f"Of these 12 calls you say {got} compile: {why.get(int(got), 'count the different keys, each one once')}."
    )


@exercise(
    _judge_compilations,
    "A set holds each thing once. What of a call is in the key: shape, dtype, the static argument; not the rate.",
)
def compilations(calls):
    """Return how many calls compile. A call: (shape, dtype, rate, training).

    The rate is a traced argument, training a static one.
    """
    return len({(shape, dtype, training) for shape, dtype, rate, training in calls})
