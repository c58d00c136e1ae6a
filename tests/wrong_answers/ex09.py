"""Wrong answers to the exercises of notebook 09."""

from __future__ import annotations

from itertools import pairwise

from utils.exercises import ex09


def by_device(events, value, keep=lambda name: True):
    total = {}
    for device, name, start, end in events:
        if keep(name):
            total[device] = total.get(device, 0) + value(start, end)
    return total


def compute(name):
    return "all-reduce" not in name


def longest_collective(events):
    return max((e for e in events if not compute(e[1])), key=lambda e: e[3] - e[2])[0]


def whole_bars(events):
    return {d: (end - start) / 100 for d, name, start, end in events if not compute(name)}


def from_the_first(events):
    arrival = {d: start for d, name, start, end in events if not compute(name)}
    return {d: (own - min(arrival.values())) / 100 for d, own in arrival.items()}


def in_microseconds(events):
    return {d: 100 * share for d, share in ex09.waiting_share.function(events).items()}


def own_time(events):
    first = {}
    for d, _, start, _ in events:
        first.setdefault(d, start)
    return {d: 100 * share / (140 - first[d]) for d, share in ex09.waiting_share.function(events).items()}


def over_the_last_end(events):
    return {d: share * 100 / 140 for d, share in ex09.waiting_share.function(events).items()}


def over_the_bar(events):
    bar = {d: end - start for d, name, start, end in events if not compute(name)}
    return {d: share * 100 / bar[d] for d, share in ex09.waiting_share.function(events).items()}


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex09.is_communication: [
        (lambda name: "reduce" in name or "gather" in name, "JAX names the all-reduce after the function"),
        (lambda name: "all" in name or "psum" in name, "'reduce-scatter.4': you return False"),
        (
            lambda name: any(w in name for w in ("all", "psum", "permute", "reduce-scatter")),
            "it has 'all' in its name by chance",
        ),
        (
            lambda name: any(w in name for w in ("reduce", "gather", "psum", "permute", "all-to")),
            "a sum needs no neighbour unless",
        ),
        (
            lambda name: any(w in name for w in ("all-", "psum", "permute", "gather", "scatter")),
            "an all-gather is another thing",
        ),
        (lambda name: "communication", "expected True or False"),
    ],
    ex09.most_work: [
        (longest_collective, "it arrived first and waits for the others"),
        (lambda events: max(events, key=lambda e: e[3] - e[2])[0], "it arrived first and waits for the others"),
        (lambda events: min(events, key=lambda e: e[2])[0], "It is the first to start"),
        (lambda events: max(events, key=lambda e: e[2])[0], "It started late"),
        (
            lambda events: max((e for e in events if compute(e[1])), key=lambda e: e[3] - e[2])[0],
            "in two bars: add them up",
        ),
        (
            lambda events: max(by_device(events, lambda start, end: end - start).items(), key=lambda kv: kv[1])[0],
            "longest bar: it arrived first",
        ),
        (
            lambda events: max(
                {e[0] for e in events},
                key=lambda d: (
                    next(e[2] for e in events if e[0] == d and not compute(e[1]))
                    - min(e[2] for e in events if e[0] == d)
                ),
            ),
            "and idles within it",
        ),
        (lambda events: 1, "You return 1, which computes for 50"),
        (lambda events: "device 1", "expected the number of a device"),
        (lambda events: 9, "the devices of this trace are [0, 1, 2, 3]"),
    ],
    ex09.waiting_share: [
        (whole_bars, "you count the whole all-reduce"),
        (in_microseconds, "Divide by the 100 µs"),
        (from_the_first, "you measure from the first arrival"),
        (own_time, "each device is divided by its own time"),
        (over_the_last_end, "The step begins at 40"),
        (over_the_bar, "you divide by the all-reduce"),
        (lambda events: 0.6, "expected a dictionary"),
    ],
    ex09.compilations: [
        (len, "every call counts as a compilation"),
        (lambda calls: len({call[0] for call in calls}), "only one part of the key counts"),
        (lambda calls: len({call[:2] for call in calls}), "one part of the key is missing"),
        (lambda calls: len(set(calls)), "a rate that changes counts"),
        (lambda calls: len({call[:3] for call in calls}), "it is the other way round"),
        (lambda calls: len({(call[0], *call[2:]) for call in calls}), "the rate counts, and a part of the key"),
        (lambda calls: len({call[2] for call in calls}), "the rate counts, and a part of the key"),
        (
            lambda calls: 1 + sum((a[0], a[1], a[3]) != (b[0], b[1], b[3]) for a, b in pairwise(calls)),
            "a program that comes back counts again",
        ),
        (lambda calls: 4, "of the first two of them alone"),
        (lambda calls: 1, "Each shape is compiled for itself"),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex09.psums: (
        5,
        [
            (1, "five calls: each is an event of its own"),
            (40, "that is all devices together"),
            (8, "one psum is one event on each device"),
            (10, "the sum of a device's own rows is no communication"),
            (35, "an all-reduce is one event"),
            (70, "an all-reduce is one event"),
            (20, "the psum alone is"),
        ],
    ),
    ex09.cold: (
        {"first call": 1, "second call": 0},
        [
            ((8, 0), "one program serves all eight devices"),
            ((0, 0), "`new` is a new function"),
            ((2, 0), "it is compiled once"),
            ((1, 1), "the second call finds it"),
            ((1, 8), "the program is kept"),
            ((2, 2), "the second call finds it"),
        ],
    ),
    ex09.paired: (
        {"longest device": 68, "shortest device": 68, "sum": 544},
        [
            ((64, None, None), "the 64 together with the 4"),
            ((124, None, None), "64 goes with 4"),
            ((None, 4, None), "the 4 together with the 64"),
            ((None, 12, None), "4 goes with 64"),
            ((None, 20, None), "that was before"),
            ((34, None, None), "two documents of 34 words on average"),
            ((None, None, 136), "4 times 1, 2, ... 16"),
            ((None, None, 68), "that is one device's"),
            ((None, None, 272), "sixteen documents"),
        ],
    ),
    ex09.hidden: (
        {"host to devices": 5, "device to host": 5, "collectives on a device": 0},
        [
            ((0, 5, 0), "JAX puts a NumPy array on the devices in every call"),
            ((1, 5, 0), "JAX puts a NumPy array on the devices in every call"),
            ((10, 5, 0), "the weights are on the devices already"),
            ((6, 5, 0), "the weights are on the devices already"),
            ((40, 5, 0), "one put, or one fetch, is one event"),
            ((5, 0, 0), "float(loss) fetches a number in every step"),
            ((5, 1, 0), "float(loss) fetches a number in every step"),
            ((5, 10, 0), "the new weights stay"),
            ((5, 5, 5), "an array without a layout is not cut"),
            ((5, 5, 10), "an array without a layout is not cut"),
            ((5, 5, 8), "an array without a layout is not cut"),
            ((5, 5, 40), "an array without a layout is not cut"),
        ],
    ),
    ex09.mended: (
        {"host to devices": 1, "device to host": 1, "collectives on a device": 5},
        [
            ((5, 1, 5), "the batch is placed once"),
            ((0, 1, 5), "the batch has to get there, once"),
            ((8, 1, 5), "one device_put is one event"),
            ((1, 5, 5), "the five losses come together"),
            ((1, 0, 5), "the losses have to get here"),
            ((1, 1, 0), "the batch is cut now"),
            ((1, 1, 1), "in every step"),
            ((1, 1, 10), "in one all-reduce"),
            ((1, 1, 40), "on each device, one in each step"),
            ((1, 1, 8), "however many take part, and there are five steps"),
            ((2, 1, 5), "the batch alone is put"),
            ((1, 2, 5), "the losses alone come over"),
            ((1, 6, 5), "the losses alone come over"),
        ],
    ),
    ex09.warm: (
        6,
        [
            (0, "look at what jit is told about the third argument"),
            (1, "differs in each step, too"),
            (2, "differs in each step, too"),
            (12, "the warm-up is not in the trace"),
            (48, "compiled once"),
        ],
    ),
    ex09.suspects: (
        {"one batch for all steps": 6, "one rate for all steps": 1},
        [
            ((1, 1), "each of the six values is a program of its own"),
            ((0, 1), "the cache is empty at first"),
            ((6, 6), "the batches are traced, and only their shape counts"),
            ((6, 0), "the cache is empty at first"),
        ],
    ),
    ex09.loops: (
        {"rate traced": 1, "every third batch 8 rows": 2, "batch grows by 8 rows": 6},
        [
            ((6, 2, 6), "the value of a traced argument is not part of the key"),
            ((0, 2, 6), "the first call compiles"),
            ((1, 1, 6), "two shapes are two programs"),
            ((1, 4, 6), "found the second time"),
            ((1, 3, 6), "found the second time"),
            ((1, 6, 6), "the two shapes are what counts"),
            ((1, 2, 1), "each shape is a program of its own"),
            ((1, 2, 5), "each shape is a program of its own"),
        ],
    ),
}
