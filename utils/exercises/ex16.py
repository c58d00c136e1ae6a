"""Exercises of notebook 16, Many processes."""

from __future__ import annotations

import itertools

import numpy as np

from utils.exercises import Choice, Prediction, Wrong, exercise, explained, shown

seen = Prediction(
    "",
    {},
    own={
        "length": {8: "that is what process 1 holds; the array is one, and its shape is that of the whole"},
        "addressable shards": {
            8: "there are eight in all, and four of them on devices of this process",
            1: "each of its four devices holds a shard",
            2: "a shard has two numbers; count the shards on four devices",
            16: "those are numbers, two a shard",
        },
        "first number": {
            0: "that is process 0's: the devices of process 1 stand behind it in the mesh",
            2: "device 1 holds 2 and 3, and it is process 0's",
            1: "eight pieces of two numbers, four in each process",
            4: "eight pieces of two numbers: process 0 has four of them",
        },
    },
    things=True,
)
handed_in = Prediction(
    "",
    {},
    own={
        "sum of same half": {
            28: "0 to 7 stand in it twice, once from each process",
            120: "8 to 15 were handed in by nobody",
            92: "8 to 15 were handed in by nobody",
        },
        "length of all": {
            16: "each process hands in a part, so JAX thinks: 16 from each",
            8: "each process hands in 16, and they are put one after the other",
        },
        "P() in process 1": {
            0: "that is what process 0 handed in; the call sends nothing from one process to the other",
            0.5: "nothing is sent, so nothing is averaged",
            2: "nothing is added: each process puts what it hands in on its own devices",
        },
    },
    things=True,
)
bytes_of_a_step = Choice(
    {
        "less": "each of the eight devices still adds its gradients to those of seven others",
        "more": "the same eight devices take part; that some are in other processes changes the way, not the number",
        "the same": "",
    }
)
fetched = Choice(
    {"works": "", "raises": ""},
    own={
        "x.sum()": {"raises": "the sum is a new array, whole on every device"},
        "x": {"works": "half of it is in another process, and a fetch sends nothing between them"},
        "x[12]": {"raises": "x[12] is a program of all eight devices, and its result is whole on each"},
        "x * 2": {"works": "the product is cut as x is, so half of it is elsewhere"},
    },
)
bystander = Choice(
    {"end": "at the end of a process JAX waits until all are at theirs, and process 0 never gets there", "wait": ""}
)
first_axis = Choice(
    {"data": "", "model": ""},
    own={
        "64 rows": {"data": "four groups cross with 98,304 bytes each, where two would with 61,440"},
        "160 rows": {
            "data": "a device sends more along model, but only two groups of model would cross, and four of data do"
        },
        "1024 rows": {"model": "two groups would cross with 983,040 bytes each, where four do with 98,304"},
    },
)


def _shardings():
    """(words, sharding, shape, the places of devices that are a process's own): in each, some slip gives other rows."""
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    from utils.devices import started_devices

    devices = np.array(started_devices()[:8])
    line, grid = Mesh(devices, ("x",)), Mesh(devices.reshape(2, 4), ("x", "y"))
    turned = Mesh(devices[::-1], ("x",))
    turned_grid = Mesh(devices[::-1].reshape(2, 4), ("x", "y"))
    both = NamedSharding(turned_grid, P(("y", "x")))  # places 4, 1, 6 of the mesh hold the parts 1, 2, 5
    return [
        ("P('x') on a line of 8", NamedSharding(line, P("x")), (16,), [4, 5, 6, 7]),
        ("P('x') on a line of 8", NamedSharding(line, P("x")), (24, 2), [6, 1]),
        ("P('y') on a 2 x 4 mesh", NamedSharding(grid, P("y")), (12, 3), [0, 1, 4, 5]),
        ("P('y', 'x') on a 2 x 4 mesh", NamedSharding(grid, P("y", "x")), (12, 6), [0, 1, 2, 3]),
        ("P(None, 'x') on a line of 8", NamedSharding(line, P(None, "x")), (5, 16), [2, 3]),
        ("P() on a line of 8", NamedSharding(line, P()), (3, 5), [7]),
        ("P('x') on a line of 8, from the last device to the first", NamedSharding(turned, P("x")), (16, 2), [0, 2, 1]),
        ("P(('y', 'x')) on a 2 x 4 mesh, from the last device to the first", both, (24, 2), [6, 3, 1]),
    ]


def _rows_of(sharding, shape, mine):
    parts = sharding.devices_indices_map(shape)
    return [parts[device][0].indices(shape[0])[:2] for device in mine]


def _held(parts, devices, length, axis=0):
    return {place for device in devices for place in range(*parts[device][axis].indices(length))}


def _called(answer, case, *args):
    """What the answer returns; where it raises, Wrong, with the case if one is named."""
    try:
        return answer(*args)
    except Wrong as wrong:
        raise Wrong(f"{case}: {wrong}" if case else str(wrong)) from wrong


def _list_of_numbers(got, said):
    """Whole numbers in a list, or Wrong."""
    values = np.asarray(list(got)) if isinstance(got, (list, tuple, range)) else np.asarray(got)
    if isinstance(got, (set, dict)) or values.ndim != 1 or values.dtype.kind not in "iuf":
        more = " Does the function end with `return`?" if got is None else ""
        unordered = " A set has no order; `sorted` makes a list of it." if isinstance(got, set) else ""
        raise Wrong(f"{said} {shown(got)}; expected a list of numbers.{more}{unordered}")
    return [int(value) if value == int(value) else float(value) for value in values.tolist()]


def _judge_rows_to_read(answer):
    from utils.devices import started_devices

    devices = started_devices()
    for k, (words, sharding, shape, places) in enumerate(_shardings()):
        mine = [devices[place] for place in places]
        case = f"For {words}, shape {shape} and the devices {places}"
        said = f"{case} you return"
        got = _list_of_numbers(_called(answer, case * (k > 0), sharding, shape, mine), said)
        spans = _rows_of(sharding, shape, mine)
        want = sorted({row for start, stop in spans for row in range(start, stop)})
        if got == want:
            continue
        every = [row for start, stop in spans for row in range(start, stop)]
        n = 8 // len(mine) or 1
        block = shape[0] // n
        i = places[0] // len(mine)
        slips = [
            (
                sorted(every),
                "a row stands in it more than once: devices that hold other columns of it, or copies, share it",
            ),
            (every, "the rows are in the order of the devices, and one may come twice"),
            (list(dict.fromkeys(every)), "the rows are in the order of the devices; rising order is asked"),
            (want[::-1], "the rows are right, and fall; rising order is asked"),
            (list(range(len(want))), "these are as many rows as expected, counted from row 0"),
            (list(range(*spans[0])), "these are the rows of the first device alone"),
            (sorted({start for start, _ in spans}), "these are the first rows of the devices' parts alone"),
            (
                list(range(min(want), max(want) + 1)),
                "these are all from the first to the last, with rows that none of them holds",
            ),
            (
                list(range(i * block, (i + 1) * block)),
                "that is an equal share of the rows; the layout says which are held",
            ),
            (list(range(shape[0])), "these are all rows; the devices hold a part of them"),
            (
                sorted({row for start, stop in spans for row in range(start, stop + 1)}),
                "the stop of a slice is its end, and is not in it",
            ),
        ]
        parts = sharding.devices_indices_map(shape)
        if any(parts[device][0].start is None for device in mine):
            slips.append(([], "the first slice of these devices is slice(None): all rows"))
        else:
            others = _held(parts, set(parts) - set(mine), shape[0])
            if without := sorted(set(range(shape[0])) - set(want)):
                slips.append((without, "these are the rows that they do not hold"))
            words = "rows of which others, too, hold something are missing; count all of which these hold anything"
            slips.append((sorted(set(want) - others), words))
        if isinstance(sharding.spec[0] if sharding.spec else None, tuple):
            grid = sharding.mesh.devices
            part = shape[0] // grid.size
            at = [list(grid.flat).index(device) for device in mine]
            slips.append(
                (
                    sorted(row for place in at for row in range(place * part, (place + 1) * part)),
                    f"you cut along the last name of {sharding.spec[0]} first; the first name counts most",
                )
            )
        if len(shape) > 1:
            last = _held(parts, mine, shape[-1], -1)
            slips.append((sorted(last), "these are places along the last axis; rows are the first"))
        by_id = {row for place in places for row in range(place * shape[0] // 8, (place + 1) * shape[0] // 8)}
        floor = {row for place in places for row in range(place * (shape[0] // 8), (place + 1) * (shape[0] // 8))}
        if sorted(by_id) not in [wrong for wrong, _ in slips]:
            words = "an eighth of the rows for each device, by its id; the layout says which it holds"
            slips += [(sorted(rows), words) for rows in {frozenset(by_id), frozenset(floor)}]
        if len(every) == len(want):
            slips = [slip for slip in slips if "come twice" not in slip[1]]
        why = explained(got, [slip for slip in slips if len(slip[0]) == len(got)])
        raise Wrong(
            f"{said} {_short(got)}; expected {len(want)} rows. {_sentence(why) or 'Which slice has each device?'}"
        )


def _short(values):
    return str(values) if len(values) <= 10 else f"{str(values[:8])[:-1]}, ...], {len(values)} of them"


def _sentence(why):
    return f"{why[:1].upper()}{why[1:]}{'.' * (not why.endswith('?'))}" if why else ""


@exercise(
    _judge_rows_to_read,
    "The map gives a tuple of slices for each device; the first slice is of rows, and slice.indices(rows) gives its "
    "start and stop, also of slice(None). Two devices may hold the same rows.",
)
def rows_to_read(sharding, shape, mine):
    """The rows of an array of this shape that `mine` hold, rising, each once."""
    parts = sharding.devices_indices_map(shape)
    rows = set()
    for device in mine:
        rows.update(range(*parts[device][0].indices(shape[0])))
    return sorted(rows)


def _order(rows, batch, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(rows)
    return order[: rows // batch * batch].reshape(-1, batch)


def _judge_epoch_rows(answer):
    for rows, batch, seed, epoch, n in ((50, 12, 3, 2, 4), (37, 6, 0, 5, 2), (24, 8, 7, 1, 1), (22, 8, 4, 3, 4)):
        whole = _order(rows, batch, seed, epoch)
        for i in range(n):
            said = f"For epoch_rows({rows}, {batch}, {seed}, {epoch}, {i}, {n})"
            got = answer(rows, batch, seed, epoch, i, n)
            if got is None:
                raise Wrong(f"{said} you return None. Does the function end with `return`?")
            want = np.split(whole, n, axis=1)[i]
            try:
                array = np.asarray(got)
                array.astype(float)
            except (TypeError, ValueError) as error:
                some = isinstance(got, (list, tuple)) and len(got) > len(want)
                why = f" These are {len(got)} batches, and the last is not complete." if some else ""
                raise Wrong(
                    f"{said} you return {shown(got)}; expected row numbers of shape {want.shape}.{why}"
                ) from error
            if array.shape == want.shape and (array == want).all():
                continue
            mine = batch // n
            share = rows // n
            own = np.random.default_rng((seed, epoch, i)).permutation(rows)
            full = range(i * mine, rows - mine + 1, batch)  # where a whole part begins, also of the incomplete batch
            order = np.random.default_rng((seed, epoch)).permutation(rows)
            blocks = order[i * share : (i + 1) * share]
            slips = [
                (whole, "these are whole batches; a process reads batch / n of each"),
                (
                    np.stack([order[at : at + mine] for at in full]),
                    "the incomplete batch has a whole part for this process and none for the last one, which ends sooner; "
                    "all leave it out",
                ),
                (
                    whole[:, i::n],
                    "you take every n-th row of a batch. Put together, one part after the other, these are not one process's batches",
                ),
                (np.split(whole, n, axis=1)[0], "that is process 0's part, again: two that read the same"),
                (
                    _order(rows, batch, seed, 0)[:, i * mine : (i + 1) * mine],
                    "the epoch does not count: every epoch comes in the same order",
                ),
                (_order(rows, batch, epoch, seed)[:, i * mine : (i + 1) * mine], "seed and epoch have changed places"),
                (
                    _single_seed(rows, batch, seed + epoch)[:, i * mine : (i + 1) * mine],
                    "the generator is to begin with (seed, epoch), not with their sum",
                ),
                (
                    own[: len(want) * batch].reshape(-1, batch)[:, i * mine : (i + 1) * mine],
                    "each process shuffles in an order of its own, so rows come twice or never",
                ),
                (
                    own[: len(want) * batch].reshape(-1, batch)[:, :mine],
                    "each process shuffles in an order of its own, so rows come twice or never",
                ),
                (
                    blocks[: share // mine * mine].reshape(-1, mine),
                    "you give each process a run of the whole order; of each batch it reads a part",
                ),
                (
                    np.arange(rows)[: len(want) * batch].reshape(-1, batch)[:, i * mine : (i + 1) * mine],
                    "these rows are in their own order, not shuffled",
                ),
                (
                    whole.reshape(-1)[i * want.size : (i + 1) * want.size].reshape(want.shape),
                    "you give each process a run of the whole order; of each batch it reads a part",
                ),
                (
                    order[rows - want.size * n :].reshape(-1, batch)[:, i * mine : (i + 1) * mine],
                    "the incomplete batch is left out at the end, and you leave it out at the start",
                ),
                (
                    np.split(whole, n, axis=1)[i - 1],
                    f"that is the part of process {(i - 1) % n}: processes are counted from 0",
                ),
                (want[:-1], "the last batch is complete, and you leave it out"),
                (
                    i * share + _order(share, mine, seed, epoch)[: len(want)],
                    "you cut the rows into ranges and shuffle each; one process would shuffle all",
                ),
                (
                    _reshuffled(rows, batch, seed, epoch)[:, i * mine : (i + 1) * mine],
                    "you shuffle anew for each batch, so a row may come twice; an epoch has one order",
                ),
                (want.T, "rows and columns have changed places: one row of the result for each batch"),
                (want.reshape(-1), "these are the right numbers in one line; one row for each batch"),
            ]
            why = next((words for wrong, words in slips if wrong.shape == array.shape and (wrong == array).all()), "")
            if array.shape != want.shape:
                raise Wrong(f"{said} you return shape {array.shape}; expected {want.shape}. {_sentence(why)}".rstrip())
            at = tuple(int(k) for k in np.argwhere(array != want)[0])
            raise Wrong(
                f"{said} you return {array[at]} at {at}, and there stands {want[at]} in one process's batch. "
                f"{_sentence(why) or 'Shuffle as one process would, cut into batches, then take the part.'}"
            )


def _reshuffled(rows, batch, seed, epoch):
    rng = np.random.default_rng((seed, epoch))
    return np.stack([rng.permutation(rows)[:batch] for _ in range(rows // batch)])


def _single_seed(rows, batch, seed):
    order = np.random.default_rng(seed).permutation(rows)
    return order[: rows // batch * batch].reshape(-1, batch)


@exercise(
    _judge_epoch_rows,
    "Every process makes the same order, all of it: numbers are cheap, rows are not. Reshape it to (batches, batch), "
    "then cut columns.",
)
def epoch_rows(rows, batch, seed, epoch, i, n):
    """Row numbers that process i of n reads in an epoch: (batches, batch // n)."""
    order = np.random.default_rng((seed, epoch)).permutation(rows)
    count = rows // batch
    batches = order[: count * batch].reshape(count, batch)
    return np.split(batches, n, axis=1)[i]


LOGS = [
    ([["a", "b"], ["a", "b", "c"]], (2, [1])),
    ([["a", "b", "c", "d"], ["a", "b", "e"], ["a", "x", "c", "d"]], (1, [0, 1, 2])),
    ([["a", "b", "c"], ["a", "b"], ["a", "x", "c"]], (1, [0, 1, 2])),
    ([["a", "b", "c", "d"], ["a", "x", "c"], ["a", "b", "c", "d"]], (1, [0, 1, 2])),
    ([["a", "b"], ["a", "b"]], (2, [])),
    ([["a", "a", "a"], ["a"], ["a", "a"]], (1, [0, 2])),
    ([[], ["a"], [], ["b", "c"]], (0, [1, 3])),
    ([["a", "b", "c"]], (3, [])),
    ([["a", "b", "c"], ["b", "a", "c"]], (0, [0, 1])),
    ([["sum", "max"], ["sum", "mean"]], (1, [0, 1])),
    ([["b", "b", "a", "c"], ["b", "b", "a"], ["b", "b", "a", "c"], ["b", "b", "a", "d"]], (3, [0, 2, 3])),
]


def _who_slips(logs, ran, waiting):
    """What slips give for these logs, and their words."""
    short, long = min(map(len, logs)), max(map(len, logs))
    same = sum(len({log[k] for log in logs}) == 1 for k in range(short))
    ended = [i for i, log in enumerate(logs) if len(log) == ran]
    of_two = _together(logs[0], logs[1 % len(logs)]), min(_together(logs[0], logs[-1]), short)
    apart = len({log[ran] for log in logs if log[ran:]}) > 1
    return [
        (
            (ran, ended or None),
            "these have nothing more in their log: they wait in no program. Who has begun one more?",
        ),
        ((ran, list(range(len(logs)))), "a process whose log is at its end waits in none"),
        ((ran, [i + 1 for i in waiting]), "processes are counted from 0"),
        ((ran * len(logs), waiting), "a program of all processes counts once, not once for each"),
        ((ran - 1, waiting), "that is the place of the last one that ran, counted from 0; the number is one more"),
        (
            (ran, [i for i, log in enumerate(logs) if len(log) == long and long > ran]),
            "one with a shorter log may wait, too",
        ),
        *(
            ((k, [i for i, log in enumerate(logs) if len(log) > k]), "you compare two of the logs; all must agree")
            for k in of_two
        ),
        (
            (short, [i for i, log in enumerate(logs) if len(log) > short]),
            "you compare lengths; programs of different names do not run together",
        ),
        (
            (same, [i for i, log in enumerate(logs) if len(log) > same]),
            "after the first difference none runs, even if names agree again",
        ),
        (
            (ran, []),
            "two that began different programs both wait" if apart else "has none begun a program that did not run?",
        ),
        (
            (ran, [i for i in waiting if logs[i][ran] != logs[0][ran]] if logs[0][ran:] else []),
            "the others have begun another program, and wait as well",
        ),
        ((ran + 1, waiting), "the program in which they wait has not run"),
        ((long, []), "so many the longest log has; a program runs if all begin it"),
    ]


def _together(one, other):
    """How many names two logs have in common before the first difference."""
    pairs = list(zip(one, other, strict=False))
    return next((k for k, names in enumerate(pairs) if len(set(names)) > 1), len(pairs))


def _judge_who_waits(answer):
    for k, (logs, (ran, waiting)) in enumerate(LOGS):
        said = f"For {logs} you return"
        got = _called(answer, f"For {logs}" * (k > 0), [list(log) for log in logs])
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            more = " Does the function end with `return`?" if got is None else ""
            raise Wrong(f"{said} {shown(got)}; expected (a number, a list of processes).{more}")
        try:
            number = int(got[0])
        except (TypeError, ValueError) as error:
            raise Wrong(f"{said} {shown(got)}; the first is to be a number of programs.") from error
        who = _list_of_numbers(got[1], f"{said} {shown(got)}, and in it")
        if number == ran == got[0] and who == waiting:
            continue
        told = [words for wrong, words in _who_slips(logs, ran, waiting) if wrong == (number, who)]
        why = told[0] if told else ""
        if not why and sorted(set(who)) == waiting != who:
            why = "each process once, in rising order"
        if not why and number != ran:
            was = "was" if ran == 1 else "were"
            why = f"{ran} {was} begun by all as the next one; one that is missing in a single log has not run"
        raise Wrong(f"{said} {(number, who)}. {_sentence(why) or 'Who has begun one that not all have begun?'}")


@exercise(
    _judge_who_waits,
    "Go through the positions: as long as every log has a name there, and all names are the same, one more runs. Then "
    "look whose log goes on.",
)
def who_waits(logs):
    """Lists of names -> (number of programs that ran, processes that wait in one)."""
    ran = 0
    while all(len(log) > ran for log in logs) and len({log[ran] for log in logs}) == 1:
        ran += 1
    return ran, [i for i, log in enumerate(logs) if len(log) > ran]


def _judge_mesh_inside(answer):
    import jax

    from utils.devices import started_devices

    devices = started_devices()[:8]
    cases = [  # the order in which they come, each one's machine, size
        ([0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 1, 1, 1, 1], 4),
        ([3, 6, 1, 4, 7, 2, 5, 0], [0, 0, 0, 0, 1, 1, 1, 1], 2),
        ([4, 0, 1, 6, 2, 3, 5, 7], [5, 2, 5, 2, 2, 5, 5, 2], 4),
        ([7, 6, 5, 4, 3, 2, 1, 0], ["b", "a", "d", "c", "a", "b", "c", "d"], 2),
        ([2, 0, 3, 1], [1, 0, 0, 1, 9, 9, 9, 9], 1),
        ([5, 0, 3, 1, 2, 4], [0, 1, 0, 1, 0, 1, 9, 9], 3),
    ]
    for order, machines, size in cases:
        given = [devices[place] for place in order]
        where = {devices[place].id: machines[place] for place in range(8)}
        on = ", ".join(f"{place}: {machines[place]}" for place in order)
        said = f"For devices and their machines {{{on}}} and size {size}"
        got = answer(list(given), lambda device, where=where: where[device.id], size)
        if not isinstance(got, jax.sharding.Mesh):
            more = " Does the function end with `return`?" if got is None else ""
            raise Wrong(f"{said} you return {shown(got)}; expected a jax.sharding.Mesh.{more}")
        if tuple(got.axis_names) != ("data", "model"):
            raise Wrong(f"{said} the axes of your mesh are {tuple(got.axis_names)}; expected ('data', 'model').")
        shape = got.devices.shape
        if shape != (len(order) // size, size):
            turned = " Have the sizes changed places?" if shape[::-1] == (len(order) // size, size) else ""
            machine = {where[device.id] for device in given}
            if shape == (len(machine), len(order) // len(machine)):
                turned = f" A row is a whole machine; a group along model is to have {size}."
            elif got.devices.size > len(order):
                turned = " There are devices in it that you were not given."
            elif got.devices.size < len(order):
                turned = f" It has {got.devices.size} of {len(order)} devices."
            raise Wrong(f"{said} your mesh has the shape {shape}; expected {(len(order) // size, size)}.{turned}")
        ids = [device.id for device in got.devices.flat]
        if sorted(ids) != sorted(device.id for device in given):
            raise Wrong(f"{said} your mesh has the devices {ids}; each of those given is to be in it once.")
        for row in got.devices:
            group = [(device.id, where[device.id]) for device in row]
            if len({machine for _, machine in group}) > 1:
                why = _why_apart(got.devices, given, where, size)
                raise Wrong(
                    f"{said} one group along model has the devices {[i for i, _ in group]}, on the machines "
                    f"{[machine for _, machine in group]}. {why}"
                )


def _why_apart(found, given, where, size):
    ids = [device.id for device in found.flat]
    if ids == [device.id for device in given]:
        return "These are the devices in the order in which they came; which are on one machine?"
    if ids == sorted(ids):
        return "The devices stand in the order of their ids, and an id does not tell the machine."
    turned = found.T.reshape(found.shape)
    if all(len({where[device.id] for device in row}) == 1 for row in turned):
        return "Rows and columns have changed places: a column is what a row is to be."
    if all(where[one.id] != where[other.id] for row in found for one, other in itertools.pairwise(row)):
        return "Neighbours in your rows are on different machines; put devices of one machine side by side."
    return "Put devices of one machine side by side before you cut into groups."


@exercise(
    _judge_mesh_inside,
    "Sort the devices by their machine, and reshape: a row then holds neighbours. (`sorted(devices, key=machine_of)`)",
)
def mesh_inside(devices, machine_of, size):
    """A Mesh ("data", "model"): each group of `size` along model is on one machine."""
    from jax.sharding import Mesh

    together = sorted(devices, key=machine_of)
    return Mesh(np.array(together).reshape(len(devices) // size, size), ("data", "model"))
