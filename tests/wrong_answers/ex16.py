"""Wrong answers to the exercises of notebook 16, and right ones in unusual forms."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from utils.exercises import ex16


def spans(sharding, shape, mine):
    parts = sharding.devices_indices_map(tuple(shape))
    return [parts[device][0].indices(shape[0])[:2] for device in mine]


def by_marks(sharding, shape, mine):
    held = np.zeros(shape, bool)
    for device, part in sharding.devices_indices_map(shape).items():
        if device in mine:
            held[part] = True
    return np.flatnonzero(held.reshape(shape[0], -1).any(axis=1))


def every(sharding, shape, mine):
    return [row for start, stop in spans(sharding, shape, mine) for row in range(start, stop)]


def none_as_zero(sharding, shape, mine):
    firsts = [sharding.devices_indices_map(shape)[device][0] for device in mine]
    return {row for first in firsts for row in range(first.start or 0, first.stop or 0)}


def last_axis(sharding, shape, mine):
    parts = sharding.devices_indices_map(shape)
    return {k for device in mine for k in range(*parts[device][-1].indices(shape[-1]))}


def by_id(sharding, shape, mine):
    per = shape[0] // 8
    return {row for device in mine for row in range(device.id * per, (device.id + 1) * per)}


def equal_share(sharding, shape, mine):
    per = shape[0] * len(mine) // 8
    start = mine[0].id // len(mine) * per
    return list(range(start, start + per))


def coordinates(sharding, device):
    at = np.argwhere(sharding.mesh.devices == device)[0]
    return dict(zip(sharding.mesh.axis_names, at.tolist(), strict=True))


def one_name(sharding, shape, mine):  # KeyError where the spec has a tuple
    if sharding.spec[:1] in ((), (None,)):
        return list(range(shape[0]))
    name = sharding.spec[0]
    per = shape[0] // sharding.mesh.shape[name]
    firsts = {coordinates(sharding, device)[name] * per for device in mine}
    return sorted(row for first in firsts for row in range(first, first + per))


def last_name_first(sharding, shape, mine):
    names = sharding.spec[0] if sharding.spec else None
    names = names if isinstance(names, tuple) else (names,) if names else ()
    firsts, sizes = set(), sharding.mesh.shape
    per = shape[0] // int(np.prod([sizes[name] for name in names]))
    for device in mine:
        place = 0
        for name in names[::-1]:
            place = place * sizes[name] + coordinates(sharding, device)[name]
        firsts.add(place * per)
    return sorted(row for first in firsts for row in range(first, first + per))


def held_alone(sharding, shape, mine):
    others = [device for device in sharding.mesh.devices.flat if device not in mine]
    return sorted(set(every(sharding, shape, mine)) - set(every(sharding, shape, others)))


def order(rows, batch, *seed):
    found = np.random.default_rng(seed if len(seed) > 1 else seed[0]).permutation(rows)
    return found[: rows // batch * batch].reshape(-1, batch)


def part(batches, i, n):
    return np.split(batches, n, axis=1)[i]


def own_order(rows, batch, seed, epoch, i, n):
    return part(order(rows, batch, seed, epoch, i), i, n)


def run_of_the_order(rows, batch, seed, epoch, i, n):
    whole = order(rows, batch, seed, epoch)
    return np.split(whole.reshape(-1), n)[i].reshape(len(whole), -1)


def every_batch(rows, batch, seed, epoch, i, n):
    mixed = np.random.default_rng((seed, epoch)).permutation(rows).tolist()
    return [mixed[start : start + batch][i * batch // n : (i + 1) * batch // n] for start in range(0, rows, batch)]


def own_range(rows, batch, seed, epoch, i, n):
    own, mine = rows // n, batch // n
    return i * own + order(own, mine, seed, epoch)[: rows // batch]


def shuffled_anew(rows, batch, seed, epoch, i, n):
    rng = np.random.default_rng((seed, epoch))
    return part(np.stack([rng.permutation(rows)[:batch] for _ in range(rows // batch)]), i, n)


def row_by_row(rows, batch, seed, epoch, i, n):
    mixed = np.random.default_rng((seed, epoch)).permutation(rows)
    mine = batch // n
    starts = range(0, rows - batch + 1, batch)
    return [mixed[start + i * mine : start + (i + 1) * mine] for start in starts]


def dealt_in_parts(rows, batch, seed, epoch, i, n):
    mixed, mine = np.random.default_rng((seed, epoch)).permutation(rows), batch // n
    return mixed[: rows // mine * mine].reshape(-1, mine)[i::n]


def parts_that_fit(rows, batch, seed, epoch, i, n):
    mixed, mine = np.random.default_rng((seed, epoch)).permutation(rows), batch // n
    return np.array([mixed[start : start + mine] for start in range(i * mine, rows - mine + 1, batch)])


def whole_parts(rows, batch, seed, epoch, i, n):
    mixed, mine = np.random.default_rng((seed, epoch)).permutation(rows), batch // n
    parts = [mixed[start + i * mine : start + (i + 1) * mine] for start in range(0, rows, batch)]
    return np.array([part for part in parts if len(part) == mine])


def lengths_only(logs):
    short = min(map(len, logs))
    return short, [i for i, log in enumerate(logs) if len(log) > short]


def counted(logs):
    ran = sum(1 for names in zip(*logs, strict=False) if len(set(names)) == 1)
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def until_first(logs):
    return sum(1 for _ in itertools.takewhile(lambda names: len(set(names)) == 1, zip(*logs, strict=False)))


def right_waits(logs):
    ran = until_first(logs)
    return ran, [i for i, log in enumerate(logs) if log[ran:]]


def first_against_last(logs):
    pairs = zip(logs[0], logs[-1], *logs, strict=False)
    ran = sum(1 for _ in itertools.takewhile(lambda names: names[0] == names[1], pairs))
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def joined(logs):
    ran = until_first(["".join(log) for log in logs])  # letters, not names
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def first_two(logs):
    ran = until_first(logs[:2])
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def where_one_has_ended(logs):
    ran, waiting = right_waits(logs)
    return ran, waiting if any(len(log) == ran for log in logs) else []


def past_the_end(logs):
    ran = 0
    while len({tuple(log[ran : ran + 1]) for log in logs}) == 1:
        ran += bool(logs[0][ran])
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def whoever_is_there(logs):
    ran = 0
    while len(names := [log[ran] for log in logs if len(log) > ran]) > 1 and len(set(names)) == 1:
        ran += 1
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def by_recursion(logs):
    if not all(logs) or len({log[0] for log in logs}) > 1:
        return 0, [i for i, log in enumerate(logs) if log]
    ran, waiting = by_recursion([log[1:] for log in logs])
    return ran + 1, waiting


def mesh(grid, names=("data", "model")):
    return Mesh(np.array(grid), names)


def by_machine(devices, machine_of):
    return sorted(devices, key=machine_of)


def in_columns(devices, machine_of, size):
    return mesh(np.array(by_machine(devices, machine_of)).reshape(size, -1).T)


def in_turn(devices, machine_of, size):
    machines = np.array(by_machine(devices, machine_of)).reshape(len({machine_of(d) for d in devices}), -1)
    return mesh(machines.T.reshape(-1, size))


def grouped(devices, machine_of, size):
    machines = {}
    for device in devices:
        machines.setdefault(machine_of(device), []).append(device)
    rows = [some[k : k + size] for some in machines.values() for k in range(0, len(some), size)]
    return mesh(rows)


def by_argsort(devices, machine_of, size):
    names = [str(machine_of(device)) for device in devices]
    return mesh(np.array(devices)[np.argsort(names)].reshape(len(devices) // size, size))


def from_the_last(devices, machine_of, size):
    return mesh(np.array(by_machine(devices, machine_of)[::-1]).reshape(-1, size))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex16.rows_to_read: [
        (equal_share, "equal share of the rows; the layout says which are held"),
        (every, "order of the devices"),
        (lambda *a: list(dict.fromkeys(every(*a))), "rising order is asked"),
        (lambda *a: sorted(every(*a)), "row stands in it more than once"),
        (lambda *a: list(range(*spans(*a)[0])), "rows of the first device alone"),
        (lambda *a: sorted({start for start, _ in spans(*a)}), "first rows of the devices' parts alone"),
        (lambda *a: list(range(min(every(*a)), max(every(*a)) + 1)), "rows that none of them holds"),
        (lambda sharding, shape, mine: list(range(shape[0])), "are all rows"),
        (lambda *a: set(every(*a)), "A set has no order"),
        (lambda *a: sorted({k for a_, b in spans(*a) for k in range(a_, b + 1)}), "is not in it"),
        (lambda *a: sorted(none_as_zero(*a)), "is slice(None): all rows"),
        (lambda *a: sorted(last_axis(*a)), "along the last axis"),
        (lambda *a: sorted(by_id(*a)), "by its id"),
        (lambda *a: None, "Does the function end with `return`?"),
        (lambda s, shape, mine: sorted(set(range(shape[0])) - set(every(s, shape, mine))), "that they do not hold"),
        (lambda *a: sorted(set(every(*a)), reverse=True), "The rows are right, and fall"),
        (lambda s, shape, mine: list(range(shape[0] // 8 * len(mine))), "as many rows as expected, counted from row 0"),
        (held_alone, "count all of which these hold anything"),
        (one_name, "P(('y', 'x')) on a 2 x 4 mesh, from the last device to the first, shape (24, 2)"),
        (last_name_first, "the first name counts most"),
    ],
    ex16.epoch_rows: [
        (lambda r, b, s, e, i, n: order(r, b, s, e), "are whole batches"),
        (lambda r, b, s, e, i, n: order(r, b, s, e)[:, i::n], "take every n-th row of a batch"),
        (lambda r, b, s, e, i, n: part(order(r, b, s, e), 0, n), "two that read the same"),
        (lambda r, b, s, e, i, n: part(order(r, b, s, 0), i, n), "epoch does not count"),
        (lambda r, b, s, e, i, n: part(order(r, b, s), i, n), "epoch does not count"),
        (lambda r, b, s, e, i, n: part(order(r, b, s + e), i, n), "not with their sum"),
        (lambda r, b, s, e, i, n: part(order(r, b, e, s), i, n), "have changed places"),
        (lambda r, b, s, e, i, n: part(order(r, b, s, e), (i - 1) % n, n), "processes are counted from 0"),
        (lambda r, b, s, e, i, n: part(order(r, b, s, e)[: (r - 1) // b], i, n), "you leave it out"),
        (every_batch, "the last is not complete"),
        (dealt_in_parts, "the last one, which ends sooner"),
        (parts_that_fit, "the last one, which ends sooner"),
        (whole_parts, "the last one, which ends sooner"),
        (own_range, "shuffle each"),
        (shuffled_anew, "shuffle anew for each batch"),
        (own_order, "shuffles in an order of its own"),
        (run_of_the_order, "run of the whole order"),
        (lambda r, b, s, e, i, n: part(order(r, b, s, e), i, n).T, "Rows and columns have changed places"),
        (lambda r, b, s, e, i, n: part(order(r, b, s, e), i, n).reshape(-1), "one row for each batch"),
        (lambda r, b, s, e, i, n: part(np.arange(r // b * b).reshape(-1, b), i, n), "not shuffled"),
        (lambda *a: None, "Does the function end with `return`?"),
    ],
    ex16.who_waits: [
        (lengths_only, "of different names do not run together"),
        (counted, "first difference none runs"),
        (lambda logs: (until_first(logs), list(range(len(logs)))), "whose log is at its end waits in none"),
        (
            lambda logs: (until_first(logs), [i for i, log in enumerate(logs) if len(log) == until_first(logs)]),
            "Who has begun one more?",
        ),
        (lambda logs: (until_first(logs) + 1, right_waits(logs)[1]), "has not run"),
        (
            lambda logs: (
                until_first(logs),
                [i for i, log in enumerate(logs) if len(log) == max(map(len, logs)) > until_first(logs)],
            ),
            "with a shorter log may wait, too",
        ),
        (lambda logs: (until_first(logs), []), "Has none begun a program that did not run?"),
        (first_against_last, "all must agree"),
        (first_two, "all must agree"),
        (whoever_is_there, "missing in a single log has not run"),
        (where_one_has_ended, "Two that began different programs both wait"),
        (joined, "[['sum', 'max'], ['sum', 'mean']]"),
        (lambda logs: (until_first(logs) * len(logs), right_waits(logs)[1]), "counts once, not once for each"),
        (lambda logs: (until_first(logs) - 1, right_waits(logs)[1]), "the last one that ran, counted from 0"),
        (lambda logs: (until_first(logs), [i + 1 for i in right_waits(logs)[1]]), "Processes are counted from 0"),
        (past_the_end, "[['a', 'b'], ['a', 'b']]: Your function raised IndexError"),
        (lambda logs: (until_first(logs), right_waits(logs)[1][::-1]), "in rising order"),
        (lambda logs: right_waits(logs)[0], "expected (a number, a list of processes)"),
        (lambda logs: None, "Does the function end with `return`?"),
    ],
    ex16.mesh_inside: [
        (lambda d, m, size: mesh(np.array(d).reshape(-1, size)), "in the order in which they came"),
        (
            lambda d, m, size: mesh(np.array(sorted(d, key=lambda x: x.id)).reshape(-1, size)),
            "in the order of their ids",
        ),
        (in_turn, "Neighbours in your rows are on different machines"),
        (in_columns, "Rows and columns have changed places"),
        (lambda d, m, size: mesh(np.array(by_machine(d, m)).reshape(size, -1)), "Have the sizes changed places?"),
        (
            lambda d, m, size: mesh(np.array(by_machine(d, m)).reshape(-1, size), ("model", "data")),
            "the axes of your mesh are ('model', 'data')",
        ),
        (lambda d, m, size: mesh(np.array(by_machine(d, m)[:size]).reshape(-1, size)), "It has 4 of 8 devices"),
        (lambda d, m, size: mesh(np.array(by_machine(d, m)).reshape(len({m(x) for x in d}), -1)), "a whole machine"),
        (lambda d, m, size: mesh(np.array(jax.devices()).reshape(-1, size)), "in the order of their ids"),
        (lambda d, m, size: np.array(by_machine(d, m)).reshape(-1, size), "expected a jax.sharding.Mesh"),
        (lambda d, m, size: mesh([by_machine(d, m)[:size]] * (len(d) // size)), "is to be in it once"),
        (lambda d, m, size: None, "Does the function end with `return`?"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex16.rows_to_read: [
        by_marks,
        lambda *a: sorted(set(every(*a))),
        lambda *a: tuple(np.unique(every(*a)).astype(float)),
        lambda *a: jnp.unique(jnp.array(every(*a))),
    ],
    ex16.epoch_rows: [
        row_by_row,
        lambda r, b, s, e, i, n: jnp.array(part(order(r, b, s, e), i, n)),
        lambda r, b, s, e, i, n: order(r, b, s, e)[:, i * b // n : (i + 1) * b // n].tolist(),
        lambda r, b, s, e, i, n: order(r, b, s, e).reshape(-1, n, b // n)[:, i].astype(float),
    ],
    ex16.who_waits: [
        right_waits,
        by_recursion,
        lambda logs: [np.int64(right_waits(logs)[0]), tuple(right_waits(logs)[1])],
        lambda logs: (right_waits(logs)[0], np.array(right_waits(logs)[1], int)),
    ],
    ex16.mesh_inside: [grouped, by_argsort, from_the_last, lambda d, m, size: grouped(d[::-1], m, size)],
}

SAME = {}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex16.seen: (
        {"length": 16, "addressable shards": 4, "first number": 8},
        [
            ((8, None, None), "its shape is that of the whole"),
            ((None, 8, None), "on devices of this process"),
            ((None, 2, None), "count the shards"),
            ((None, None, 0), "that is process 0's"),
            ((None, None, 4), "process 0 has four of them"),
        ],
    ),
    ex16.handed_in: (  # 2 x (0 + ... + 7); 2 x 16
        {"sum of same half": 56, "length of all": 32, "P() in process 1": 1},
        [
            ((28, None, None), "once from each process"),
            ((120, None, None), "handed in by nobody"),
            ((None, 16, None), "16 from each"),
            ((None, 8, None), "one after the other"),
            ((None, None, 0), "that is what process 0 handed in"),
            ((None, None, 0.5), "nothing is averaged"),
        ],
    ),
    ex16.bytes_of_a_step: (
        "the same",
        [("less", "still adds its gradients"), ("more", "changes the way, not the number"), (2, "expected")],
    ),
    ex16.fetched: (
        {"x.sum()": "works", "x": "raises", "x[12]": "works", "x * 2": "raises"},
        [
            (("raises", None, None, None), "a new array"),
            ((None, "works", None, None), "in another process"),
            ((None, None, "raises", None), "a program of all eight devices"),
            ((None, None, None, "works"), "cut as x is"),
        ],
    ),
    ex16.bystander: ("wait", [("end", "process 0 never gets there"), (0, "expected")]),
    ex16.first_axis: (
        {"64 rows": "model", "160 rows": "model", "1024 rows": "data"},
        [
            (("data", None, None), "where two would with 61,440"),
            ((None, "data", None), "only two groups of model would cross"),
            ((None, None, "model"), "where four do with 98,304"),
        ],
    ),
}
