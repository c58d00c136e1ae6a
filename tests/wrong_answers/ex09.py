"""Wrong answers to the exercises of notebook 09, right ones in unusual forms, and wrong guesses."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise

import jax.numpy as jnp
import numpy as np

from utils.exercises import ex09

COLLECTIVES = ["all-reduce", "all-gather", "all-to-all", "reduce-scatter", "psum", "permute", "pmax", "pmin"]


def has(*words):
    return lambda name: any(word in name.replace("_", "-") for word in words)


def by_pattern(name):
    return bool(re.search(r"all[-_](reduce|gather|to)|reduce[-_]scatter|permute|^p(sum|max|min)", name))


def by_stem(name):
    stem = name.split(".")[0].replace("_", "-").removesuffix("-start").removesuffix("-invariant")
    return np.bool_(stem in {*COLLECTIVES, "collective-permute", "ppermute"})


def own_and_last(events, last=lambda starts: max(starts), arrived=None):
    """(wait of each device at each collective by name)"""
    found = defaultdict(dict)
    for device, name, start, _ in events:
        if name.startswith("all-"):
            found[name][device] = arrived(events, device, start) if arrived else start
    return {name: {d: abs(last(at.values()) - t) for d, t in at.items()} for name, at in found.items()}


def waits(events, **how):
    total = {event[0]: 0.0 for event in events}
    for meeting in own_and_last(events, **how).values():
        for device, wait in meeting.items():
            total[device] += wait
    return total


def length(events):
    return max(e[3] for e in events) - min(e[2] for e in events)


def shares(value, of=length):
    return lambda events: {d: v / of(events) for d, v in value(events).items()}


def bars(events, keep):
    total = {event[0]: 0.0 for event in events}
    for device, name, start, end in events:
        total[device] += (end - start) * keep(name)
    return total


def collective(name):
    return name.startswith("all-")


def compute(name):
    return not collective(name)


def end_of_computing(events, device, start):
    return max(e for d, name, _, e in events if d == device and compute(name) and e <= start)


def one_last_for_all(events):
    last = max(e[2] for e in events if collective(e[1]))
    total = {event[0]: 0.0 for event in events}
    for device, name, start, _ in events:
        total[device] += (last - start) * collective(name)
    return total


def last_of_each_device(events):
    """The one collective that stands last in a dictionary by device."""
    arrival = {d: start for d, name, start, _ in sorted(events, key=lambda e: e[2]) if collective(name)}
    return {d: max(arrival.values()) - at for d, at in arrival.items()}


def first_of_each_device(events):
    arrival = {d: start for d, name, start, _ in sorted(events, key=lambda e: -e[2]) if collective(name)}
    return {d: max(arrival.values()) - at for d, at in arrival.items()}


def own_time(events):
    waited = waits(events)
    times = {d: [t for e in events if e[0] == d for t in e[2:]] for d in waited}
    return {d: wait / (max(times[d]) - min(times[d])) for d, wait in waited.items()}


def of_own_collectives(events):
    own = bars(events, collective)
    return {d: wait / own[d] for d, wait in waits(events).items()}


def before_the_first(events):
    first = {d: min(e[2] for e in events if e[0] == d) for d in waits(events)}
    return {d: wait + first[d] - min(first.values()) for d, wait in waits(events).items()}


def all_but_computing(events):
    return {d: length(events) - busy for d, busy in bars(events, compute).items()}


def by_arrays(events):
    """A row for each device, a column for each collective."""
    devices, names = sorted({e[0] for e in events}), sorted({e[1] for e in events if collective(e[1])})
    at = jnp.array([[next(e[2] for e in events if e[:2] == (d, n)) for n in names] for d in devices], float)
    waited = (at.max(axis=0) - at).sum(axis=1) / length(events)
    return dict(zip(devices, waited, strict=True))


def by_sorting(events):
    total = Counter(dict.fromkeys((e[0] for e in events), 0))
    here = defaultdict(list)
    for device, name, start, _ in sorted(events, key=lambda e: e[2]):
        if not collective(name):
            continue
        for earlier, since in here[name]:
            total[earlier] -= since
            total[earlier] += start
        here[name] = [(d, start) for d, _ in here[name]] + [(device, start)]
    return {np.int64(d): np.float64(wait) / np.float64(length(events)) for d, wait in total.items()}


def by_split(events):
    """As the notebook's picture has it: each bar cut at the last arrival."""
    begin, finish = min(e[2] for e in events), max(e[3] for e in events)
    found = {e[0]: 0 for e in events}
    for device, name, start, _ in events:
        if "all" in name:
            found[device] += max(s for _, n, s, _ in events if n == name) - start
    return {device: found[device] / (finish - begin) for device in sorted(found, reverse=True)}


def table(events):
    """{device: (operations, computing, arrival, first start, longest bar, length of its all-reduce)}"""
    found = {}
    for device in {e[0] for e in events}:
        own = [e for e in events if e[0] == device]
        work = [e for e in own if compute(e[1])]
        [meeting] = [e for e in own if collective(e[1])]
        found[device] = (
            len(work),
            sum(e[3] - e[2] for e in work),
            meeting[2],
            min(e[2] for e in work),
            max(e[3] - e[2] for e in work),
            meeting[3] - meeting[2],
        )
    return found


def cause(events, device, first="data"):
    found = table(events)
    others = [row for d, row in found.items() if d != device]
    more = found[device][0] > max(row[0] for row in others)
    longer = found[device][1] > max(row[1] for row in others)
    if first == "chip" and longer:
        return "chip"
    return "data" if more else "chip" if longer else "start"


def chosen(key):
    def diagnose(events):
        found = table(events)
        device = max(sorted(found), key=lambda d: key(*found[d]))
        return device, cause(events, device)

    return diagnose


def late(why):
    def diagnose(events):
        found = table(events)
        device = max(found, key=lambda d: found[d][2])
        return device, why(events, device, found)

    return diagnose


def by_mean(events, device, found):
    mean = {d: row[1] / row[0] for d, row in found.items()}
    if found[device][0] == max(row[0] for row in found.values()):
        return "data"
    return "chip" if mean[device] == max(mean.values()) else "start"


def last_cause(events):
    return cause(events, max((e for e in events if collective(e[1])), key=lambda e: e[2])[0])


def most_of(events, device, more, longer):
    """The cause, where each is told from the work of all devices: (device's operations -> a number)."""
    rows = {d: [e for e in events if e[0] == d and compute(e[1])] for d in {e[0] for e in events}}
    many, long = ({d: of(row) for d, row in rows.items()} for of in (more, longer))
    for of, word in ((many, "data"), (long, "chip")):
        if of[device] > max(value for d, value in of.items() if d != device):
            return word
    return "start"


def busy(row):
    return sum(e[3] - e[2] for e in row)


def by_order(of):
    """The device with most; among equals the first in the list."""

    def diagnose(events):
        rows = defaultdict(list)
        for e in filter(lambda e: compute(e[1]), events):
            rows[e[0]].append(e)
        return max(rows, key=lambda d: of(rows[d])), last_cause(events)

    return diagnose


def by_longest(events, device, found):
    return most_of(events, device, len, lambda row: max(e[3] - e[2] for e in row))


def by_span(events, device, found):
    return most_of(events, device, len, lambda row: max(e[3] for e in row) - min(e[2] for e in row))


def by_names(events, device, found):
    return most_of(events, device, lambda row: len({e[1] for e in row}), busy)


def above_the_mean(events, device, found):
    many, long = (np.mean([row[i] for row in found.values()]) for i in (0, 1))
    return "data" if found[device][0] > many else "chip" if found[device][1] > long else "start"


def with_the_meeting(events, device, found):
    long = {d: row[1] + row[5] for d, row in found.items()}
    others = [d for d in found if d != device]
    if found[device][0] > max(found[d][0] for d in others):
        return "data"
    return "chip" if long[device] > max(long[d] for d in others) else "start"


def at_least_as_many(events, device, found):
    if found[device][0] >= max(row[0] for row in found.values()):
        return "data"
    return cause(events, device)


def started_last(events, device, found):
    return "start" if found[device][3] == max(row[3] for row in found.values()) else cause(events, device)


def who_comes_last(events):
    found = table(events)
    device = min(found, key=lambda d: -found[d][2])
    return [np.int64(device), np.str_(cause(events, device))]


def end_of_work(events):
    """The all-reduce begins where its own work ends, or later."""
    device = sorted((e for e in events if collective(e[1])), key=lambda e: e[2])[-1][0]
    return float(device), cause(events, device)


def by_counters(events):
    ran = Counter(e[0] for e in events)
    time = Counter()
    for e in events:
        time[e[0]] += (e[3] - e[2]) * compute(e[1])
    device, *_ = max((e for e in events if collective(e[1])), key=lambda e: e[2])
    many, busy = ran.pop(device), time.pop(device)
    return device, ("data" if many > max(ran.values()) else "chip" if busy > max(time.values()) else "start")


def by_arrays_too(events):
    found = table(events)
    devices = np.array(sorted(found))
    rows = np.array([found[d] for d in devices])
    at = rows[:, 2].argmax()
    more, longer = (rows[at, i] > np.delete(rows[:, i], at).max() for i in (0, 1))
    return devices[at], np.select([more, longer], ["data", "chip"], "start").item()


def keys(*kept):
    return lambda calls: len({tuple(call[i] for i in kept) for call in calls})


def typed(*kept):
    """As `keys`, with the rate's type."""
    return lambda calls: len({(type(call[3]), *(call[i] for i in kept)) for call in calls})


def with_shape(of):
    return lambda calls: len({(of(call[0]), call[1], call[2], type(call[3]), call[4]) for call in calls})


def by_comparing(calls):
    rest = [(*call[:3], type(call[3]), call[4]) for call in calls]
    return 1 + sum(a != b for a, b in pairwise(rest))


def with_a_cache(calls):
    cache, compiled = {}, 0
    for shape, dtype, layout, rate, training in calls:
        key = f"{shape} {dtype} {layout} {isinstance(rate, int)} {training}"
        compiled += key not in cache
        cache[key] = True
    return compiled


def unique_rows(calls):
    return np.unique([repr((*call[:3], np.result_type(call[3]), call[4])) for call in calls]).size


def covered(of, *kinds):
    moments = sorted({t for bar in of for t in bar[1:]})
    return [
        (a, b)
        for a, b in pairwise(moments)
        if any(kind in kinds and start <= a and b <= end for kind, start, end in of)
    ]


def total(stretches):
    return sum(b - a for a, b in stretches)


def summed(of, kind):
    return sum(end - start for k, start, end in of if k == kind)


def pairs(of):
    return sum(
        max(0, min(b[2], c[2]) - max(b[1], c[1]))
        for b in of
        for c in of
        if (b[0], c[0]) == ("communication", "compute")
    )


def each_by_itself(of):
    products = [bar for bar in of if bar[0] == "compute"]
    return sum(float(by_counting([gather, *products])) for gather in of if gather[0] == "communication")


def no_product_beside(of):
    return sum(
        end - start
        for kind, start, end in of
        if kind == "communication" and not any(k == "compute" and a < end and start < b for k, a, b in of)
    )


def as_one_product(of):
    products = [bar for bar in of if bar[0] == "compute"]
    whole = [("compute", min(b[1] for b in products), max(b[2] for b in products))] if products else []
    return by_counting([bar for bar in of if bar[0] == "communication"] + whole)


def ends_with_the_last(of):
    """Joins the bars of a kind, and takes the end of the one that begins last."""
    joined = {"communication": [], "compute": []}
    for kind, start, end in sorted(of, key=lambda bar: bar[1]):
        row = joined[kind]
        if row and start <= row[-1][2]:
            row[-1] = (kind, row[-1][1], end)
        else:
            row.append((kind, start, end))
    return by_counting([bar for row in joined.values() for bar in row])


def span(of):
    return max(b[2] for b in of) - min(b[1] for b in of)


def by_halves(of):
    """In steps of half a microsecond: all times here are multiples of it."""
    halves = {kind: {t for k, a, b in of if k == kind for t in range(int(2 * a), int(2 * b))} for kind, *_ in of}
    return len(halves.get("communication", set()) - halves.get("compute", set())) / 2


def by_counting(of):
    """Walk along, with a number for each kind of how many bars are open."""
    changes = sorted([(b[1], 1, b[0]) for b in of] + [(b[2], -1, b[0]) for b in of])
    open_, found, last = Counter(), 0.0, changes[0][0]
    for moment, change, kind in changes:
        if open_["communication"] and not open_["compute"]:
            found += moment - last
        open_[kind] += change
        last = moment
    return np.float32(found)


def by_subtracting(of):
    both = total(covered(of, "compute", "communication"))
    return jnp.float32(both - total(covered(of, "compute")))


def by_grid(of):
    grid = np.arange(0, 75, 0.25) + 0.125
    sends, works = (
        np.any([(a <= grid) & (grid < b) for k, a, b in of if k == kind] + [np.zeros(300, bool)], axis=0)
        for kind in ("communication", "compute")
    )
    return (sends & ~works).sum() * 0.25


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
        (has(*COLLECTIVES, "broadcast"), "'broadcast_in_dim.4': you return True, and it is compute"),
        (has(*COLLECTIVES, "copy", "infeed"), "'copy.5': you return True"),
        (lambda name: any(w in name for w in COLLECTIVES), "with an underscore, the compiler with a hyphen"),
        (has("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "permute", "psum"), "asked for it: pmax"),
        (lambda name: True, "'reduce_sum.9': you return True"),
        (
            lambda name: name.replace("_", "-").startswith(("all-", "reduce-scatter", "collective", "p")),
            "'pad.6': you return True",
        ),
        (lambda name: re.search("reduce|gather", name), "JAX names the all-reduce after the function"),
        (lambda name: name in COLLECTIVES, "'all-reduce.2': you return False"),
        (lambda name: "communication", "expected True or False"),
        (lambda name: None, "on every way through it"),
    ],
    ex09.waiting_share: [
        (shares(lambda ev: bars(ev, collective)), "you count whole collectives"),
        (shares(lambda ev: waits(ev, arrived=end_of_computing)), "it may do nothing in between"),
        (of_own_collectives, "you divide by the device's own collectives"),
        (shares(waits, lambda ev: max(e[3] for e in ev)), "you divide by the last end, 240"),
        (waits, "these are microseconds; divide by the 200"),
        (shares(waits, lambda ev: length(ev) / 100), "these are percent"),
        (shares(lambda ev: waits(ev, last=min)), "you measure from the first arrival"),
        (own_time, "you divide by each device's own time"),
        (shares(before_the_first), "you count the time before a device's first operation"),
        (shares(all_but_computing), "idle time, too"),
        (shares(lambda ev: bars(ev, compute)), "that is the share in which each device computes"),
        (shares(last_of_each_device), "you count one collective, the last"),
        (shares(first_of_each_device), "you count one collective, the first"),
        (shares(one_last_for_all), "you compare arrivals at different collectives"),
        (shares(waits, lambda ev: sum(waits(ev).values())), "each device's part of all waiting"),
        (shares(waits, lambda ev: sum(e[3] - e[2] for e in ev)), "you divide by the bars of all devices, added up"),
        (shares(waits, lambda ev: length(ev) * len(waits(ev))), "you divide by the time of all 3 devices"),
        (
            shares(waits, lambda ev: max(e[2] for e in ev) - min(e[2] for e in ev)),
            "from the first start to the last start",
        ),
        (
            lambda ev: {d: w / sum(e[3] - e[2] for e in ev if e[0] == d) for d, w in waits(ev).items()},
            "you divide by the device's own bars",
        ),
        (lambda ev: {d: round(w / length(ev), 2) for d, w in waits(ev).items()}, "you round; give the share itself"),
        (shares(lambda ev: waits(ev, last=lambda starts: np.mean([*starts]))), "you measure from the mean arrival"),
        (lambda events: {0: 0.2, 1: 0.1, 2: 0.15}, "expected a dictionary with a share for each of the devices [0, 1]"),
        (lambda events: 0.6, "expected a dictionary"),
        (lambda events: [0.2, 0.1, 0.15], "expected a dictionary"),
        (lambda events: {str(d): v for d, v in waits(events).items()}, "expected a dictionary"),
    ],
    ex09.diagnose: [
        (chosen(lambda ran, busy, at, first, bar, met: met), "the longest all-reduce (it came first, and waits)"),
        (chosen(lambda ran, busy, at, first, bar, met: -met), "the shortest all-reduce; they need not end together"),
        (lambda ev: (max(ev, key=lambda e: e[2])[0], last_cause(ev)), "starts the last operation of all"),
        (by_order(lambda row: len(row)), "runs most operations, and others may begin later"),
        (by_order(busy), "computes longest, and others may begin later"),
        (chosen(lambda ran, busy, at, first, bar, met: busy), "computes longest, and others may begin later"),
        (chosen(lambda ran, busy, at, first, bar, met: ran), "runs most operations, and others may begin later"),
        (chosen(lambda ran, busy, at, first, bar, met: first), "begins last, and may have little to do"),
        (chosen(lambda ran, busy, at, first, bar, met: -first), "begins first"),
        (chosen(lambda ran, busy, at, first, bar, met: bar), "has the longest single bar"),
        (chosen(lambda ran, busy, at, first, bar, met: at - first), "takes longest from its first start"),
        (
            late(lambda events, device, found: cause(events, device, "chip")),
            "Device 1 is right; you say 'chip'. It ran 3",
        ),
        (
            late(lambda events, device, found: cause(events, device, "chip")),
            "more operations come first",
        ),
        (late(by_longest), "compare the longest single operations"),
        (late(by_span), "take the time from the first start to the last end"),
        (late(by_names), "an operation that runs four times counts four times"),
        (late(above_the_mean), "compare with the mean"),
        (late(with_the_meeting), "add up the all-reduce, too"),
        (
            late(lambda events, device, found: cause(events, device).replace("chip", "start")),
            "never say 'chip'",
        ),
        (
            late(lambda events, device, found: "start"),
            "Device 1 is right; you say 'start'. It ran 3 operations, 70 µs in all",
        ),
        (late(by_mean), "you say 'data'"),
        (
            late(at_least_as_many),
            "Device 2 is right; you say 'data'. It ran 2 operations, 40 µs in all; the others: 2 (40 µs)",
        ),
        (late(started_last), "Device 4 is right; you say 'start'"),
        (late(lambda events, device, found: "work"), "As the cause you return 'work'"),
        (lambda events: table(events) and 1, 'expected a device and a cause, such as (3, "data")'),
        (lambda events: ("data", 1), "As the device you return 'data'"),
        (lambda events: (9, "data"), "the devices of this step are [0, 1, 2, 3]"),
    ],
    ex09.compilations: [
        (len, "every call counts"),
        (lambda calls: len({(*call, type(call[3])) for call in calls}), "a rate that changes counts"),
        (by_comparing, "a program that comes back counts again"),
        (keys(0, 1, 2, 4), "the rate's value is not in the key, but its dtype is"),
        (keys(1, 2, 4), "the shape is part of the key, and missing; so is the rate's dtype"),
        (typed(1, 2, 4), "the shape is part of the key, and missing"),
        (keys(0, 2, 4), "the dtype is part of the key, and missing"),
        (keys(0, 1, 4), "the layout is part of the key, and missing"),
        (keys(0, 1, 2), "the static argument is part of the key, and missing"),
        (typed(0, 1, 2, 3), "the static argument is part of the key, and missing; the rate is not"),
        (typed(0, 1, 3, 4), "the layout is part of the key, and missing; the rate is not"),
        (keys(0), "only one part of the key counts, the shape"),
        (keys(4), "only one part of the key counts, the static argument"),
        (with_shape(lambda shape: shape[0]), "of the shape only the first number counts"),
        (with_shape(lambda shape: shape[-1]), "of the shape only the last number counts"),
        (with_shape(np.prod), "only the size counts"),
        (with_shape(len), "only the number of axes counts"),
        (lambda calls: len({(c[0][0], c[1], c[2], c[4]) for c in calls}), "and the rate's dtype is missing"),
        (lambda calls: 1, "count the different keys"),
        (lambda calls: 2, "Of 3 calls (the rate differs) you say 2 compile"),
        (lambda calls: None, "expected a whole number, of compilations"),
    ],
    ex09.exposed: [
        (lambda of: summed(of, "communication"), "you add up all sending, also what a product hides"),
        (lambda of: total(covered(of, "communication")), "also beside a product"),
        (lambda of: max(0, summed(of, "communication") - summed(of, "compute")), "you subtract all computing, also"),
        (lambda of: summed(of, "communication") - summed(of, "compute"), "you subtract all computing"),
        (lambda of: summed(of, "communication") - pairs(of), "where two bars of one kind overlap"),
        (lambda of: total(covered(of, "communication")) - pairs(of), "where two products overlap"),
        (lambda of: span(of) - total(covered(of, "compute")), "in which it does nothing, too"),
        (lambda of: span(of) - summed(of, "compute"), "in which it does nothing, too"),
        (pairs, "that is what is hidden"),
        (lambda of: round(float(by_counting(of))), "you count whole microseconds"),
        (lambda of: int(by_counting(of)), "you count whole microseconds"),
        (
            lambda of: float(by_counting([(kind, int(start), int(end)) for kind, start, end in of])),
            "you count whole microseconds",
        ),
        (
            lambda of: total(covered(of, "communication")) - total(covered(of, "compute")),
            "also what has no sending beside it",
        ),
        (each_by_itself, "where two gathers overlap, their time counts twice"),
        (no_product_beside, "you leave out a gather altogether"),
        (as_one_product, "there may be gaps"),
        (ends_with_the_last, "go on to the later of the two ends"),
        (
            lambda of: by_counting(of) if any(bar[0] == "compute" for bar in of) else 0,
            "where nothing is computed all sending is exposed",
        ),
        (
            lambda of: total(covered(of, "compute", "communication")) - total(covered(of, "communication")),
            "in which it only computes",
        ),
        (
            lambda of: by_counting(of) / span(of),
            "that is a share of the whole",
        ),
        (lambda of: [0], "expected a time, in µs"),
        (lambda of: None, "on every way through it"),
    ],
}

RIGHT = {
    ex09.is_communication: [
        by_pattern,
        by_stem,
        lambda name: jnp.any(jnp.array([w in name.replace("_", "-") for w in COLLECTIVES])),
        lambda name: sum(map(name.replace("_", "-").count, COLLECTIVES)) > 0,
        lambda name: re.search("|".join(COLLECTIVES), name.replace("_", "-")),
        lambda name: int(by_pattern(name)),
    ],
    ex09.waiting_share: [by_arrays, by_sorting, by_split, shares(waits)],
    ex09.diagnose: [who_comes_last, end_of_work, by_counters, by_arrays_too],
    ex09.compilations: [
        with_a_cache,
        unique_rows,
        lambda calls: jnp.int32(len({(*call[:3], jnp.asarray(call[3]).dtype, call[4]): 0 for call in calls})),
        lambda calls: float(len(Counter((*call[:3], type(call[3]), *call[4:]) for call in calls))),
    ],
    ex09.exposed: [by_halves, by_counting, by_subtracting, by_grid],
}

WORDS = "words = ('all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all', 'permute', 'psum', 'pmax', 'pmin')"
SWAPPED = WORDS.replace("'all-reduce', 'all-gather'", "'all-gather', 'all-reduce'")
KEY = "return len({(shape, dtype, layout, type(rate), training) for shape, dtype, layout, rate, training in calls})"
MOMENTS = "moments = sorted({moment for kind, start, end in bars for moment in (start, end)})"
SAME = {
    ex09.is_communication: [
        (
            f"{WORDS} -> {SWAPPED}",
            "any word will do, in any order",
        ),
    ],
    ex09.compilations: [
        (f"{KEY} -> {KEY.replace('(shape, dtype,', '(dtype, shape,')}", "another order of the key"),
    ],
    ex09.exposed: [
        (f"{MOMENTS} -> {MOMENTS.replace('(start, end)', '(end, start)')}", "a set has no order"),
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
        {"first call": 1, "second call": 0, "made anew": 1},
        [
            ((8, 0, 1), "one program serves all eight devices"),
            ((0, 0, 1), "`new` is a new function"),
            ((2, 0, 1), "it is compiled once"),
            ((1, 1, 1), "the second call finds it"),
            ((1, 8, 1), "the program is kept"),
            ((2, 2, 1), "the second call finds it"),
            ((1, 0, 0), "shard_map returns a new function each time"),
        ],
    ),
    ex09.paired: (
        {"longest device": 68, "shortest device": 68},
        [
            ((64, None), "the 64 together with the 4"),
            ((124, None), "64 goes with 4"),
            ((72, None), "dealt so that nobody has more"),
            ((96, None), "dealt like cards"),
            ((None, 40), "dealt like cards"),
            ((None, 4), "the 4 together with the 64"),
            ((None, 12), "4 goes with 64"),
            ((None, 20), "that was before"),
            ((34, None), "two documents of 34 words on average"),
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
        {"first rate an integer": 2, "first batch of NumPy": 2, "8, 16, 24 rows, twice": 3, "batch grows by 8 rows": 6},
        [
            ((6, 2, 3, 6), "the value of a traced argument is not part of the key"),
            ((1, 2, 3, 6), "its dtype is: 1 is an int32"),
            ((2, 1, 3, 6), "a NumPy array has no layout"),
            ((2, 6, 3, 6), "only the shape, the dtype and the layout count"),
            ((2, 2, 1, 6), "three shapes are three programs"),
            ((2, 2, 6, 6), "found the second time"),
            ((2, 2, 4, 6), "found the second time"),
            ((2, 2, 5, 6), "found the second time"),
            ((2, 2, 3, 1), "each shape is a program of its own"),
            ((2, 2, 3, 5), "each shape is a program of its own"),
        ],
    ),
    ex09.fills: (
        "waiting",
        [("compute", "few devices compute at once"), ("communication", "most of a collective's bar lies before")],
    ),
    ex09.same_last: ("no", [("yes", "look at the last column"), (4, "expected 'yes' or 'no'")]),
    ex09.ideal: (  # 20 words of 124; 8 * 124 - 544 of 8 * 124
        {"longest all-reduce": 3, "percent": 100 * 448 / 992},
        [
            ((4, None), "that is the straggler"),
            ((None, 0.45), "that is a share"),
            ((None, 55), "the rest is waiting"),
            ((None, 82), "you divide by the words"),
        ],
    ),
    ex09.beside: (  # 73.4 each gather, 87.2 each product
        {"sends alone": 73.4, "the step": 73.4 + 2 * 87.2},
        [
            ((147, None), "beside the first product"),
            ((0, None), "before the first weights"),
            ((59.6, None), "ends before the first product"),
            ((None, 321), "that is one after the other"),
            ((None, 174), "the products alone"),
            ((None, 160.6), "that is one layer"),
            ((None, 146.8), "the gathers alone"),
        ],
    ),
}
