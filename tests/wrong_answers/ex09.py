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
        (
            lambda calls: 1 + sum((a[0], a[1], a[3]) != (b[0], b[1], b[3]) for a, b in pairwise(calls)),
            "a program that comes back counts again",
        ),
        (lambda calls: 4, "of the first two of them alone"),
        (lambda calls: 1, "Each shape is compiled for itself"),
    ],
}
