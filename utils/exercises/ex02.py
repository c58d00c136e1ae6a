"""Exercises of notebook 02, Sharding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence, ValuesView

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from exercises.kit.probes import Watched, watch
from utils.compat import spec_text
from utils.devices import started_devices
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, number, numbers, same, shown
from utils.exercises.prediction import ended
from utils.layout import where
from utils.mesh import make_mesh

# What the lesson asks before its cells show it.
first_cut = Prediction(
    "",
    {},
    own={
        "rows": {
            4: "nothing would be cut; 'x' deals the 4 rows out to its 2 devices",
            1: "that is four ways; 'x', the first entry, has 2 devices",
            None: "'x', the first entry, deals 4 rows out to 2 devices",
        },
        "columns": {
            4: "that is two ways; 'y', the second entry, has 4 devices",
            8: "nothing would be cut; 'y' deals the 8 columns out to its 4 devices",
            1: "that is eight ways; 'y', the second entry, has 4 devices",
            None: "'y', the second entry, deals 8 columns out to 4 devices",
        },
        "device of [2, 5]": {
            7: "the pair of columns that holds column 5 is the third, and the third is number 2",
            5: "the devices count row by row: the second mesh row begins with device 4",
            2: "row 2 lies in the lower half, so in the second mesh row",
            4: "column 5 lies in the third pair, so the place along 'y' is 2",
            10: "that would be x = 2, and the mesh has x = 0 and 1: row 2 lies in the second of two halves",
            21: "that is the element's value",
            None: "find x from the row and y from the column, then see who stands there in the mesh",
        },
    },
    things=True,
)
half_cut = Prediction(
    "",
    {},
    own={
        "pieces": {
            4: "that is as many as 'y' would make; the spec names 'x', which has 2",
            8: "only the mesh axes that the spec names cut",
            1: "'x' cuts the rows",
            None: "'x', the only name in the spec, has 2 devices",
        },
        "devices for each": {
            2: "that is how many pieces there are; eight devices share them",
            1: "each piece would be held once; eight devices hold something, and there are fewer pieces than devices",
            8: "all eight would hold the same",
            None: "eight devices share the pieces, and each holds one",
        },
        "first row on device 5": {
            1: "the four rows are dealt out in halves, and device 5 stands in the second mesh row",
            0: "device 5 stands in the second mesh row",
            3: "the half has two rows, and this is its last",
            5: "that is the device; the rows have the numbers 0 to 3",
            None: "the table has the rows 0 to 3; which half is dealt out to the second mesh row?",
        },
    },
    things=True,
)
tuple_order = Prediction(
    "",
    {},
    own={
        "x, then y": {
            5: "that is under ('y', 'x')",
            1: "'x' comes first and cuts in halves; column 3 is the last of the first half",
            7: "columns count from 0: column 3 is the last of the first half",
            None: "'x' cuts the eight columns in halves, and 'y' each half in single columns",
        },
        "y, then x": {
            3: "that is under ('x', 'y')",
            1: "device 1 has x = 0, so of its pair the first column",
            6: "columns count from 0: the pairs are 0 1, 2 3, 4 5 and 6 7",
            None: "'y' cuts the eight columns in pairs, and 'x' deals out each pair: the first to x = 0, the second to x = 1",
        },
    },
    things=True,
)
bytes_held = Prediction(
    "",
    {},
    own={
        "P('batch')": {
            4: "that is the whole array",
            2: "'batch' has 4 devices, not 2",
            1 / 2: "that is an eighth: 'features' is not named, and cuts nothing",
            1 / 4: "those are numbers; each takes 4 bytes",
        },
        "P(('batch', 'features'))": {
            8: "that is the whole array",
            4: "a mesh axis cuts whatever array axis names it: its own name does not matter, and both cut here",
            2: "a mesh axis cuts whatever array axis names it: its own name does not matter, and both cut here",
            1 / 4: "those are numbers; each takes 4 bytes",
        },
        "whole examples": {
            2: "that is with 'batch' alone; the tuple cuts eight ways",
            4: "that is with 'features' alone; the tuple cuts eight ways",
            8: "that is all of them",
            0: "only the examples are dealt out; the second array axis has no entry, and is not cut",
            None: "1024 examples are dealt out eight ways, and no example is cut",
        },
    },
)
other_mesh = Prediction(
    "",
    {},
    own={
        "device of [2, 5]": {
            6: "that is the device in the other mesh; the place is the same, and another device stands there",
            7: "the third place of the second mesh row is asked, and counting begins with 0",
            3: "the third place of the second mesh row is asked, and counting begins with 0",
            4: "that device stands in the first mesh row here",
            2: "that device stands in the first mesh row here",
            None: "the place is x = 1, y = 2, as before; the mesh rows are 0 2 4 6 and 1 3 5 7",
        },
        "first column on device 4": {
            0: "that is in the other mesh, where device 4 begins a mesh row",
            2: "device 4 stands third in its mesh row, and the third pair of columns does not begin with 2",
            6: "device 4 stands third in its mesh row: 0 2 4 6",
            None: "device 4 stands at x = 0, y = 2; a device holds two columns",
        },
    },
    things=True,
)
ten_over_four = Choice(
    {
        "uneven": "the pieces of an array that you place have one shape",
        "pads": "an array that you place has the rows that you gave it, and no others",
        "refuses": "",
    }
)
padded_mean = Prediction(
    "",
    {
        13.5 / 11.25: "the sum is that of ten rows, and it is divided by twelve",
        (13.5 * 12 / 10) / 11.25: "more rows make the mean smaller: the sum stays",
        None: "the ten rows add up to 135, and the padding adds nothing; by how many rows is that divided?",
    },
)
made_in_place = Prediction(
    "bytes",
    {},
    own={
        "result": {
            8: "that is the whole array",
            4: "both mesh axes cut",
            2: "both mesh axes cut",
            1 / 4: "that is numbers; each takes 4 bytes",
        },
        "temporary": {
            1: "each device computes its own piece, straight into the result",
            8: "no device needs the whole: each computes its own piece",
        },
    },
    within=2e-3,
)
callback_calls = Prediction(
    "calls",
    {},
    own={
        "P('x')": {
            2: "JAX does not look which pieces are the same",
            1: "one call cannot make two pieces",
            None: "JAX asks for what each device is to hold, whether another holds the same or not",
        },
        "P()": {
            8: "a sharding that replicates everything is a case of its own",
            None: "there is one piece, and every device gets it",
        },
    },
    things=True,
)
idle_receivers = Prediction(
    "devices",
    {
        8: "the pieces get finer, and not in place: look at device 1, which column does it hold, which does it need?",
        4: "'x' comes first in the tuple: the single columns go to the devices 0, 1, 2 ... in turn",
        1: "there is one at each end",
        0: "device 0 holds columns 0 and 1, and needs column 0",
        6: "so many receive something; how many receive nothing?",
        None: "go from device to device: which pair of columns does it hold, and which column does it need?",
    },
    things=True,
)
through_the_host = Choice(
    {"yes": "", "no": ""},
    own={
        "device_put": {
            "no": "what has to arrive and what is sent are two things; here no device holds just its new piece"
        },
        "compiled": {"yes": "its argument lies on the devices, and what it does to it, it does there"},
    },
)


def _mesh():
    return make_mesh((2, 4), ("x", "y"))


def _judge_holder_of(answer):
    elements = [(row, column) for row in range(8) for column in range(12)]
    got = [
        number(answer(*at), "a whole number, a device's", said=f"For element {list(at)} you return", whole=True)
        for at in elements
    ]

    def table(rule: Callable[[int, int], int]) -> list[int]:
        return [rule(*at) for at in elements]

    # By hand: 8 rows over the 4 devices of 'y', 12 columns over the 2 of 'x': blocks of (2, 6), at y = row // 2, x = column // 6.
    want = table(lambda row, column: 4 * (column // 6) + row // 2)
    if got == want:
        return
    slips = [
        (
            lambda row, column: 4 * (row // 4) + column // 3,
            "You cut the rows by 'x' and the columns by 'y'. A spec's entries stand in the order of the array's axes: its "
            "first, for the rows, is 'y' here.",
        ),
        (
            lambda row, column: 2 * (row // 2) + column // 6,
            "Your blocks are right, and you number them as they lie in the array. Devices are numbered as they lie in the "
            "mesh: along 'y' first, 0 1 2 3, then 4 5 6 7.",
        ),
        (
            lambda row, column: 2 * (row // 4) + column // 3,
            "You cut the rows by 'x' and the columns by 'y', and a mesh row has 4 devices, not 2.",
        ),
        (
            lambda row, column: 2 * (column // 6) + row // 2,
            "The second mesh row does not begin with device 2: a mesh row has 4 devices.",
        ),
        (
            lambda row, column: 4 * (column % 2) + row % 4,
            "You deal rows and columns out in turn. A device holds neighbours: the first rows go to the first device of "
            "'y', the next ones to the second.",
        ),
        (
            lambda row, column: 4 * (column // 2) + row // 4,
            "You divide by the number of devices. Divide by the rows, or the columns, that one device holds.",
        ),
        (lambda row, column: 4 * (column // 6) + row // 2 + 1, "Devices are numbered from 0."),
        (lambda row, column: 4 * (column // 4) + row // 4, "Your blocks are (4, 4); they are (2, 6)."),
        (
            lambda row, column: 4 * (column // 4) + row,
            "You cut as if the array were the table, of shape (4, 8); this one has (8, 12).",
        ),
        (lambda row, column: 4 * (column // 6), "'x' is right; the rows, which 'y' cuts, do not count with you."),
        (lambda row, column: row // 2, "'y' is right; the columns, which 'x' cuts, do not count with you."),
        (
            lambda row, column: column // 6 + 4 * (row // 2),
            "You multiply the place along 'y' by 4. Which step passes over a whole mesh row, that is four devices: one along "
            "'x', or one along 'y'?",
        ),
        *(
            (
                lambda row, column, first=first: first * (column // 6) + row // 2,
                f"You begin the second mesh row with device {first}. How many devices stand in the first?",
            )
            for first in (1, 3, 5, 6, 7, 8, 12)
        ),
        (
            lambda row, column: 4 * column // 6 + row // 2,
            "4 * column // 6 multiplies first, and cuts the columns in more than two. Divide in brackets.",
        ),
        (
            lambda row, column: 4 * (column // 6) + row,
            "'x' is right; you count rows along 'y' where blocks of rows count.",
        ),
        (
            lambda row, column: 4 * ((column + 1) // 6) + (row + 1) // 2,
            "Rows and columns are numbered from 0.",
        ),
        (
            lambda row, column: 4 * (row // 2) + column // 2,
            "You cut the columns in six and count mesh rows by table rows. Each axis is cut as often as the mesh axis that "
            "its entry names has devices.",
        ),
        (
            lambda row, column: 4 * (row // 2) + column // 3,
            "You number the devices as for four rows of blocks with four each; the mesh has 2 rows of 4.",
        ),
        (
            lambda row, column: 4 * (column > 6) + row // 2,
            "Column 6 is the seventh column: six columns before it, 0 to 5, are the first half.",
        ),
        (
            lambda row, column: 4 * (column // 6) + row // 4,
            "You deal the rows out four at a time. 'y' cuts them: how many rows does each of its devices get?",
        ),
        (
            lambda row, column: 4 * (column // 6) + row % 4,
            "'x' is right; you deal the rows out in turn, and a device holds neighbours.",
        ),
        (
            lambda row, column: 4 * (column % 2) + row // 2,
            "'y' is right; you deal the columns out in turn, and a device holds neighbours.",
        ),
        (
            lambda row, column: 4 * (column // 3) + row // 2,
            "'y' is right; you cut the columns in four. How many devices has 'x'?",
        ),
        (
            lambda row, column: 4 * (row // 6) + column // 2,
            "You take the row for the column, and the column for the row.",
        ),
        (lambda row, column: 7 - 4 * (column // 6) - row // 2, "You count the devices from the last to the first."),
        (
            lambda row, column: 4 * (1 - column // 6) + row // 2,
            "You take the two mesh rows in the wrong order: the first columns belong to x = 0.",
        ),
        (
            lambda row, column: 4 * (column // 6) + 3 - row // 2,
            "You go along 'y' from its end: the first rows belong to y = 0.",
        ),
        *(
            (
                lambda row, column, rounds=rounds, other=other: 4 * rounds(column / 6) + other(row / 2),
                "You round to the nearest or up. All elements of a block belong to it, the last ones too: round down.",
            )
            for rounds in (round, math.ceil, math.floor)
            for other in (round, math.ceil, math.floor)
            if (rounds, other) != (math.floor, math.floor)
        ),
    ]
    why = explained(got, [(table(rule), words) for rule, words in slips])
    (row, column), said = next((at, said) for at, said, right in zip(elements, got, want, strict=True) if said != right)
    if not why and not 0 <= min(got) <= max(got) < 8:
        why = f"(Of all elements, your devices go from {min(got)} to {max(got)}; there are 0 to 7.) "
    if got and why[:1] in ("", "("):
        why += (
            "Which entry of the spec cuts the rows, which the columns, and each in how many pieces? And who stands at that place "
            "of the mesh?"
        )
    raise Wrong(f"Element [{row}, {column}]: you say device {said}; it is on another. {why}")


@exercise(
    _judge_holder_of,
    "Four block rows, two block columns: row // 2 and column // 6. Which of them is the place along 'y', and which along 'x'?",
)
def holder_of(row, column):
    """Return the number of the device that holds element [row, column]."""
    return 4 * (column // 6) + row // 2


def _judge_spec_from_pieces(answer):
    spec = answer()
    spec = getattr(spec, "spec", spec)  # of a sharding
    if not isinstance(spec, PartitionSpec):
        why = ""
        if isinstance(spec, Mesh):
            why = " A mesh says which device stands where; the spec says what is cut."
        elif isinstance(spec, str):
            why = " That is a text; leave out the outer quotes."
        elif spec is None:
            why = " Does the function end with `return`?"
        kind = "a Mesh" if isinstance(spec, Mesh) else f"a {type(spec).__name__}, {shown(spec)}"
        raise Wrong(f"You return {kind}; expected a PartitionSpec: P(...).{why}")
    said = spec_text(spec)
    entries = [tuple(entry) if isinstance(entry, (tuple, list)) else (entry,) for entry in spec]
    for name in (name for entry in entries for name in entry):
        if isinstance(name, int):
            raise Wrong(f"{said}: an entry is no number of pieces. It names the mesh axes that cut: 'a', 'b', 'c'.")
        if isinstance(name, str) and name not in ("a", "b", "c"):
            raise Wrong(f"{said}: the mesh has no axis {name!r}. A spec has the names of the mesh: 'a', 'b' and 'c'.")
    if any(entry is PartitionSpec.UNCONSTRAINED for entry in spec):
        raise Wrong(f"{said}: an UNCONSTRAINED entry promises nothing. An axis that is to stay whole has None.")
    if any(not isinstance(name, str) for entry in entries if len(entry) > 1 for name in entry):
        raise Wrong(
            f"{said} has one entry, a tuple, and that is for the examples alone. A tuple holds names; the entries of the three "
            "array axes stand side by side, without brackets around all."
        )
    if not all(entry is None or isinstance(entry, (str, tuple, list)) for entry in spec):
        raise Wrong(f"{said}: an entry is a name, a tuple of names, or None.")
    if len(spec) > 3:
        raise Wrong(f"{said} has {len(spec)} entries, and the array has three axes.")
    examples, length, features = (*[tuple(n for n in entry if n) for entry in entries], (), (), ())[:3]
    named = [*examples, *length, *features]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice:
        raise Wrong(f"{said} names {twice!r} twice, and a mesh axis can cut only one axis of the array.")
    held = {}
    if 6 % 2 ** len(length) == 0 and 10 % 2 ** len(features) == 0:
        plan = NamedSharding(make_mesh((2, 2, 2), ("a", "b", "c")), spec).devices_indices_map((16, 6, 10))
        held = {
            device.id: tuple(part.indices(n)[:2] for part, n in zip(index, (16, 6, 10), strict=True))
            for device, index in plan.items()
        }
    # By hand: a step along 'a' is four devices, along 'b' two, along 'c' one. Device 1 holds the third quarter of the examples,
    # device 4 the second: 'c' cuts in halves, and 'a' each half; device 2 holds the other features.
    asked = {0: ((0, 4), (0, 6), (0, 5)), 1: ((8, 12), (0, 6), (0, 5))}
    asked |= {2: ((0, 4), (0, 6), (5, 10)), 4: ((4, 8), (0, 6), (0, 5))}
    wrong = [device for device, piece in asked.items() if held and held[device] != piece]
    if held and not wrong:
        return
    begin = f"{said}: " + (
        f"device {wrong[0]} would hold {where(held[wrong[0]])}, and it holds {where(asked[wrong[0]])}; "
        if held
        else "an axis of the array cannot be cut so often; "
    )
    if length:
        why = "you cut the length, by the second entry, and each device holds it whole. What stands for an axis that stays whole?"
    elif "b" in examples:
        why = "'b' cuts the examples. Devices 0 and 2 differ in b alone: do they hold the same examples?"
    elif "a" in features or "c" in features:
        name, other = ("a", 4) if "a" in features else ("c", 1)
        why = (
            f"'{name}' cuts the features. Devices 0 and {other} differ in {name} alone: do they hold the same features?"
        )
    elif not features:
        why = "nothing cuts the features, the third axis. Which devices hold other features than device 0?"
    elif len(examples) < 2:
        why = "each device holds 4 of the 16 examples, a quarter. How many mesh axes of 2 devices does that take?"
    else:
        why = "the right mesh axes cut each axis. In a tuple, the first name cuts in halves, the second cuts each half: look at devices 1 and 4 again"
    raise Wrong(f"{begin}{ended(why)}")


@exercise(
    _judge_spec_from_pieces,
    "Compare devices that differ in one mesh axis: 0 and 4 in a, 0 and 2 in b, 0 and 1 in c. On which axis of the array does the "
    "piece change, and by how far?",
)
def spec_from_pieces():
    """Return the spec: devices 0, 1, 2 and 4 hold the task's pieces of the array."""
    return PartitionSpec(("c", "a"), None, "b")


def _judge_rebuild(answer):
    rng = np.random.default_rng(2)
    cases = [  # mesh, spec, shape: with and without copies, of ranks 1 to 3, in and out of the devices' order
        (_mesh(), PartitionSpec("x", "y"), (4, 8)),
        (_mesh(), PartitionSpec("x"), (4, 8)),
        (_mesh(), PartitionSpec("y", "x"), (8, 6)),
        (make_mesh((3, 2), ("x", "y")), PartitionSpec(None, "y"), (5, 4)),
        (_mesh(), PartitionSpec("y"), (12,)),
        (_mesh(), PartitionSpec("x", None, "y"), (2, 3, 8)),
    ]
    for mesh, spec, shape in cases:
        table = rng.normal(size=shape).astype(np.float32) * 5
        array = jax.device_put(table, NamedSharding(mesh, spec))
        shards = [(shard.index, np.asarray(shard.data)) for shard in array.addressable_shards]
        shards = [shards[i] for i in rng.permutation(len(shards))]
        try:
            got = answer(shards, shape)
        except Wrong as wrong:
            if "NoneType" in str(wrong):
                raise Wrong(
                    f"{wrong} A slice that takes a whole axis has start None; its method indices(n) has numbers. NumPy takes an "
                    "index as it is."
                ) from wrong
            if shape == (4, 8):
                raise
            raise Wrong(f"Right for shape (4, 8). For shape {shape} and {spec_text(spec)}: {wrong}") from wrong
        what = f"For shape {shape} and {spec_text(spec)}, your table"
        if not isinstance(got, np.ndarray) or got.dtype.kind not in "fiu":
            kind = "jax.Array" if isinstance(got, jax.Array) else type(got).__name__
            why = ""
            if got is None:
                why = " Does the function end with `return`?"
            elif isinstance(got, (list, tuple)):
                why = " Return the array itself, not its values in lists."
            raise Wrong(f"{what} is a {kind}, {shown(got)}; expected a NumPy array of numbers.{why}")
        copies = len(shards) * shards[0][1].size // table.size
        if got.shape == (4, 8) != shape:
            raise Wrong(f"{what} has shape (4, 8), which an earlier one had. Take the shape that you are given.")
        if got.shape != shape and got.size == sum(data.size for _, data in shards):
            raise Wrong(
                f"{what} has shape {got.shape}; expected {shape}. All {len(shards)} pieces stand one behind another in it. A piece "
                "belongs where its index says, and a copy at the same place."
            )
        if got.shape == shape:
            why = explained(
                got,
                [
                    (
                        copies * table if copies > 1 else np.full(shape, np.inf),
                        f"is {copies} times too large: with {copies} copies of each piece, you add them up. A copy holds the "
                        "same values; put, not add",
                    ),
                    (
                        copies * table / len(shards),
                        f"is {len(shards) // copies} times too small: you divide by the number of devices, and only copies "
                        "come more than once",
                    ),
                    (np.maximum(table, 0), "has 0 for each negative value. Take what the piece holds, not the larger"),
                    (np.minimum(table, 0), "has 0 for each positive value. Take what the piece holds, not the smaller"),
                    (np.trunc(table), "has lost what stands behind the point: its type holds whole numbers"),
                    (
                        _with_first_rows(shards, shape),
                        "repeats the first row of each piece: data[0] is a part of the piece, and NumPy spreads it over the place",
                    ),
                ],
            )
            part = got.flat[0] / table.flat[0]
            if not why and not got.any():
                why = "is 0 everywhere. Is anything put into it?"
            if (
                not why
                and got.dtype.kind == "f"
                and np.array_equal(got, table.astype(got.dtype))
                and got.dtype.itemsize < 4
            ):
                why = f"has dtype {got.dtype}, which rounds. The pieces have float32"
            if not why and part > 0 and not np.isclose(part, 1) and np.allclose(got, part * table, 1e-4, 1e-6):
                off = f"{1 / part:.4g} times too small" if part < 1 else f"{part:.4g} times too large"
                why = f"is {off} in each place. Nothing needs to be multiplied or divided: here each piece comes {'once' if copies == 1 else f'{copies} times'}, and a copy holds the same values"
            if why:
                raise Wrong(ended(f"{what} {why}"))
            right = np.isclose(got, table)
            if not right.all() and not got[~right].any():
                raise Wrong(
                    f"{what} is right in {right.sum()} of {right.size} values, and 0 in the others. Are all shards in it?"
                )
            if not right.all() and np.array_equal(np.sort(got, axis=None), np.sort(table, axis=None)):
                raise Wrong(
                    f"{what} has the right values at the wrong places. Neither the order of the list nor the device says where "
                    "a piece belongs; its index does."
                )
        same(got.astype(np.float32), table, what)


def _with_first_rows(shards: list, shape: tuple[int, ...]) -> np.ndarray:
    """What `whole[index] = data[0]` gives; inf where that is right, as for pieces of one row."""
    whole, right = np.zeros(shape), all(len(data) == 1 for _, data in shards)
    for index, data in shards:
        whole[index] = data[0]
    return np.full(shape, np.inf) if right else whole


@exercise(
    _judge_rebuild,
    "Start with np.zeros(shape). An index is a tuple of slices, and NumPy takes it as it is: whole[index] = data.",
)
def rebuild(shards, shape):
    """Return the whole NumPy array of that shape, from a list of (index, data)."""
    whole = np.zeros(shape)
    for index, data in shards:
        whole[index] = data
    return whole


def _variance_slips(rows: np.ndarray, cuts: int, copies: int, pad: int | None) -> list[tuple[np.ndarray, str]]:
    """What wrong ways to the variance give, for rows that are cut in so many pieces, padded by `pad` rows (None: not known)."""
    n, mean = len(rows), rows.mean(axis=0)
    squares = (rows**2).mean(axis=0)
    found = [
        (mean, "that is the mean"),
        (rows.std(axis=0), "that is the standard deviation, the root of the variance"),
        (squares, "that is the mean of the squares: nothing is subtracted"),
        (np.zeros_like(mean), "the distances from the mean add up to 0; square them first"),
        (np.abs(rows - mean).mean(axis=0), "that is the mean of the distances; the mean of their squares is asked"),
        (n * rows.var(axis=0), "that is the sum of the squares; divide it by the number of rows"),
        (n * squares, "that is the sum of the rows' squares: nothing is subtracted, and nothing divided"),
        (mean**2 - squares, "that is less than 0: you subtract the mean of the squares, not from it"),
        (squares - mean, "you subtract the mean from the mean of the squares; it is to be squared first"),
        (
            squares - mean**2 / n,
            "you subtract the square of the mean from the sum of the squares, and divide then: from their mean it goes, or n times from "
            "their sum",
        ),
        (
            ((rows - n * mean) ** 2).sum(axis=0),
            "neither the sum of the rows nor that of the squares is divided by their number",
        ),
        (((rows - mean.mean()) ** 2).mean(axis=0), "you subtract one mean, of all features, from each"),
        (
            ((rows - mean.sum()) ** 2).mean(axis=0),
            "you subtract one number from all features: sum over the rows alone, axis 0",
        ),
        (((rows - n * mean) ** 2).mean(axis=0), "you subtract the sum of the rows; their mean is asked"),
        (
            ((rows[:-1] - mean) ** 2).sum(axis=0) / n,
            "the squares lack the last row: does your mask leave it out?",
        ),
    ]
    zeros = "you take what is 0 for padding; a real row may hold zeros"
    real = rows != 0
    found += [
        (np.array([column[column != 0].var() for column in rows.T]), zeros),
        (rows[real.any(axis=1)].var(axis=0), zeros),
        (np.where(real, (rows - mean) ** 2, 0).mean(axis=0), zeros),
    ]
    if copies > 1:
        found.append((copies * rows.var(axis=0), f"each row lies on {copies} devices, and you add up its copies"))
    if n > 1:
        found.append((rows.var(axis=0, ddof=1), f"you divide by {n - 1}; the variance of {n} rows divides by {n}"))
    if n > cuts and n % cuts:
        found.append(
            (rows[: n // cuts * cuts].var(axis=0), f"you drop the last {n % cuts} rows; pad, and none is lost")
        )
    for more in range(1, 33):
        divisor = f"you divide by {n + more} in the end; {n} rows are real"
        found += [
            (n / (n + more) * rows.var(axis=0), divisor),
            (n / (n + more) * squares - mean**2, f"you divide the squares by {n + more}; {n} rows are real"),
            (squares - (n / (n + more) * mean) ** 2, f"you divide by {n + more} for the mean; {n} rows are real"),
        ]
        if pad is not None and more > pad:
            continue
        padded = np.pad(rows, ((0, more), (0, 0)))
        edge = np.pad(rows, ((0, more), (0, 0)), mode="edge")
        pieces = np.array_split(padded, cuts)
        off = padded.mean(axis=0)
        # Else it is a mask that lets so many rows through.
        fits = len(padded) % cuts == 0 if pad is None else more == pad
        row = f"{more} row" + "s" * (more > 1)
        counted = f"the {row} of padding count as rows" if fits else f"your mask takes {row} of padding for real"
        front = np.concatenate([np.zeros_like(padded[:more]), rows])[:n]  # what the first n rows then are
        found += [
            (padded.var(axis=0), f"{counted}, in the mean and in the squares"),
            (
                ((padded - mean) ** 2).sum(axis=0) / n,
                f"the {row} of padding were 0, and are no longer once the mean is subtracted from them"
                if fits
                else f"{counted}, in the squares",
            ),
            (((padded - mean) ** 2).mean(axis=0), f"{counted} in the mean of the squares, though not in the mean"),
            (((rows - off) ** 2).mean(axis=0), f"{counted} in the mean, though not in the squares"),
            (
                ((rows - off) ** 2).sum(axis=0) / len(padded),
                f"you divide by {len(padded)}, both times; {n} rows are real",
            ),
            (((padded - off) ** 2).sum(axis=0) / n, f"{counted} in the mean, and in the squares"),
            (
                more / n * mean**2 if fits else np.full_like(mean, np.inf),
                "your mask is the wrong way round: it takes the padding and leaves out the rows",
            ),
            (((front - mean) ** 2).sum(axis=0) / n, _IN_FRONT),
            (front.var(axis=0) if more < n else np.full_like(mean, np.inf), _IN_FRONT),
            (edge.var(axis=0), "you pad with rows that count as rows"),
            (((rows - edge.mean(axis=0)) ** 2).mean(axis=0), "you pad with rows that count in the mean"),
            (((rows - edge.sum(axis=0) / n) ** 2).mean(axis=0), "you pad with rows that count in the mean"),
            (
                pieces[0].var(axis=0) if fits else np.full_like(mean, np.inf),
                "that is the variance of one device's rows alone",
            ),
            (
                np.mean([piece.var(axis=0) for piece in pieces], axis=0),
                "the mean of the pieces' variances is not that of all rows",
            ),
        ]
    return found


def _refuse_another_layout(seen: Watched, shape: tuple[int, int], given: NamedSharding, case: str) -> None:
    """Raise Wrong where rows were placed, and never by the sharding given. (What does not cut is told with what it takes.)"""
    laid = [(its, by) for its, by in seen.layouts if its[1:] == shape[1:] and len(by.device_set) > 1]
    rows = [by for its, by in laid if its[0] >= shape[0]]
    if rows and not any(by.is_fully_replicated or by.is_equivalent_to(given, 2) for by in rows):
        other = spec_text(rows[0].spec) if isinstance(rows[0], NamedSharding) else "another layout"
        raise Wrong(
            f"{case}: right values; but the rows are laid out by {other}. Place them by the sharding that you are given."
        )


_IN_FRONT = "the padding stands in front, and you take the first rows for the real ones"
_LARGE = (
    itertools.count()
)  # a size of its own for each check: what ran before is not compiled again, and would not be seen


def _judge_variance_of_rows(answer):
    rng = np.random.default_rng(4)
    cases = [  # rows that lack some, that are fewer than the pieces, that the pieces divide
        (_mesh(), PartitionSpec("y"), 10, 3),
        (_mesh(), PartitionSpec(("x", "y")), 3, 2),
        (make_mesh((3, 2), ("x", "y")), PartitionSpec("x"), 6, 3),
    ]
    for mesh, spec, n, features in cases:
        sharding = NamedSharding(mesh, spec)
        cuts = math.prod(mesh.shape[name] for name in np.ravel(spec[0]))
        rows = (3 * rng.normal(size=(n, features)) - np.arange(2, features + 2)).astype(np.float32)
        rows[1], rows[2, 0] = 0, 0  # real rows may hold zeros: they are no sign of padding
        if n == 6:
            rows[:, 2] += 3000  # where the mean of the squares less the square of the mean loses all digits
        case = f"{n} rows, {spec_text(spec)} on a {' x '.join(map(str, mesh.devices.shape))} mesh"
        try:
            seen = watch(answer, rows, sharding) if n == 10 else Watched(answer(rows, sharding))
            got = seen.result
        except Wrong as wrong:
            if "broadcast" in str(wrong):
                raise Wrong(
                    f"{case}: {wrong} If one of the two is a mask, it needs an axis of size 1 beside the rows' features: mask[:, None]."
                ) from wrong
            if "divisible" not in str(wrong):
                raise
            if "axis 1" in str(wrong) or "dimension 1" in str(wrong):
                raise Wrong(
                    f"{case}: you cut the features; place the rows by the sharding that you are given. {wrong}"
                ) from wrong
            raise Wrong(
                f"{case}: the rows are cut in {cuts}, and the number of rows that you place is no multiple of it. {wrong}"
            ) from wrong
        if isinstance(got, (list, tuple, float)):
            got = np.asarray(numbers(got, (features,), f"an array of shape ({features},)"), np.float32)
        want = rows.astype(np.float64).var(axis=0).astype(np.float32)
        laid = {shape[0]: by for shape, by in seen.layouts if shape[1:] == (features,) and len(by.device_set) > 1}
        pad = max(0, max(laid) - n) if laid else None
        if (
            hasattr(got, "dtype")
            and got.dtype.kind == "f"
            and got.shape == want.shape
            and not np.allclose(got, want, 1e-4, 1e-4)
        ):
            if np.allclose(got[:2], want[:2], 1e-4, 1e-4) and n == 6:
                raise Wrong(
                    f"{case}: your last variance is {got[2]:.5g}, expected {want[2]:.5g}. The mean of that feature is near 3000, and the "
                    "mean of the squares less the square of the mean loses all digits there. Subtract the mean first, then square."
                )
            copies = mesh.size // cuts
            why = explained(np.where(np.abs(got) < 1e-5, 0, got), _variance_slips(rows, cuts, copies, pad))
            raise Wrong(
                f"{case}: your first variance is {got[0]:.5g}, expected {want[0]:.5g}"
                + (
                    f"; {ended(why)}"
                    if why
                    else ". It is the mean of the squared distances from the mean, over the real rows."
                )
            )
        if not (hasattr(got, "dtype") and got.dtype.kind == "f" and got.shape == want.shape):
            said = f"an array of shape {np.shape(got)}" if hasattr(got, "dtype") else shown(got)
            missing = " Does the function end with `return`?" if got is None else ""
            raise Wrong(
                f"{case}: you return {said}; expected an array of shape ({features},), one variance for each feature.{missing}"
            )

        _refuse_another_layout(seen, (n, features), sharding, case)

    rows = rng.normal(size=(4001 + 8 * next(_LARGE), 8)).astype(np.float32)  # 128 kB: large enough to be seen
    sharding = NamedSharding(_mesh(), PartitionSpec(("x", "y")))
    seen = watch(answer, rows, sharding)
    case = f"{len(rows)} rows, P(('x', 'y')) on a 2 x 4 mesh"
    _refuse_another_layout(seen, rows.shape, sharding, case)
    eighth = rows.nbytes // 8
    full = [device for device, held in seen.on_device.items() if held >= rows.nbytes]
    if full:
        which = "every device" if len(full) == 8 else f"device {min(full)}"
        why = "A function of jax.numpy makes its array on one device; pad with NumPy, on the host."
        if len(full) == 8 and sum(seen.sent.values()) >= 7 * eighth:
            why = (
                "They were placed in pieces, and a later step sent them to all devices. A slice of a size that the mesh does not "
                "divide does that, and so does a layout that does not cut: keep the padded rows as they lie, and leave the padding out "
                "with a mask."
            )
        elif len(full) == 8:
            why = "You placed them, first or later, by a sharding that does not cut."
            many = max((shape[0] for shape, _ in seen.layouts if shape[1:] == (8,)), default=0)
            if many >= 2 * len(rows):
                why = f"You place {many:,} rows for {len(rows):,}: pad up to the next multiple only."
        raise Wrong(
            f"Right values; but {which} held {seen.most:,} bytes at one time, and all rows are {rows.nbytes:,}. {why}"
        )
    everywhere = all(seen.on_device[device.id] >= eighth for device in sharding.device_set)
    if not everywhere and not any(program.devices == 8 for program in seen.programs):
        raise Wrong("Right values; but the rows are never placed by the sharding: jax.device_put(padded, sharding).")
    if any(np.prod(shape) >= rows.size for shape in seen.fetched):
        raise Wrong(
            "Right values; but the placed rows were copied back to the host, which np.asarray does. Compute with the placed array, "
            "on the devices; a mask says which of its rows are real."
        )
    if seen.flops < 0.5 * rows.size:
        raise Wrong(
            "Right values; but the rows that you placed are not used: the devices computed next to nothing. Compute with the placed "
            "array, not with the rows on the host, nor with shards that you copy there."
        )
    if seen.flops < 1.5 * rows.size:  # a square and a sum are two for each value
        raise Wrong(
            "Right values; but the devices did no more than one addition for each value, which is the mean, perhaps. The squares are to "
            "be summed there, too."
        )


@exercise(
    _judge_variance_of_rows,
    "Zeros do no harm to a sum, so the mean is sum / n. But 0 less the mean is not 0: count the squares under a mask, with jnp.where.",
)
def variance_of_rows(rows, sharding):
    """Return the variance of each feature over the rows (n, features)."""
    n = len(rows)
    padded = np.pad(rows, ((0, -n % sharding.mesh.size), (0, 0)))
    placed = jax.device_put(padded, sharding)
    mean = placed.sum(axis=0) / n
    real = np.arange(len(padded)) < n
    return jax.numpy.where(real[:, None], (placed - mean) ** 2, 0).sum(axis=0) / n


def _disk(source: np.ndarray, most: int) -> tuple[Callable[[slice], np.ndarray], list[int]]:
    """A function that reads rows, never more than `most` at once, and the list of the rows that were read."""
    rows_read: list[int] = []

    def read(rows):
        if not isinstance(rows, slice):
            raise Wrong(
                f"You call read({shown(rows)}); it takes a slice of rows. A callback's index is a tuple of slices."
            )
        count = len(source[rows])
        if count > most:
            why = ""
            if rows == slice(None):
                why = " (slice(None) is all of them. Of a callback's index, the first slice is that of the rows.)"
            elif count < len(source):
                why = " Is the array laid out by the sharding that you are given?"
            raise Wrong(f"You read {count} rows at once, and under the sharding a device's piece has {most}.{why}")
        rows_read.extend(range(len(source))[rows])
        return source[rows].copy()

    return read, rows_read


def _judge_read_once(answer):
    wired = Mesh(np.array(started_devices())[[5, 0, 3, 6, 1, 7, 2, 4]].reshape(2, 4), ("x", "y"))
    cases = [
        (_mesh(), PartitionSpec(("x", "y")), (48, 3)),
        (_mesh(), PartitionSpec(("y", "x")), (48, 3)),
        (_mesh(), PartitionSpec("y"), (64, 4)),
        (_mesh(), PartitionSpec("x"), (24, 2, 3)),
        (wired, PartitionSpec("y"), (32, 5)),
        (wired, PartitionSpec("y"), (32, 5)),  # the same again, of another file
    ]
    read_before = np.zeros(0)  # of all files before
    for file, (mesh, spec, shape) in enumerate(cases):
        sharding = NamedSharding(mesh, spec)
        source = np.arange(math.prod(shape), dtype=np.float32).reshape(shape) - 7.5 + 1000 * file
        piece = sharding.shard_shape(shape)[0]
        copies = mesh.size * piece // shape[0]
        read, rows_read = _disk(source, piece)
        case = f"{spec_text(spec)}, shape {shape}" + ", another file than before" * (file == len(cases) - 1)
        try:
            got = answer(read, shape, sharding)
        except Wrong as wrong:
            if any(words in str(wrong) for words in ("canonicalize_value", "not a valid JAX type", "NoneType")):
                raise Wrong(f"{case}: {wrong} Does your callback return an array, with `return`?") from wrong
            if "unhashable type: 'slice'" in str(wrong):
                raise Wrong(
                    f"{case}: {wrong} A slice is a key from Python 3.12 on only; take where it starts, rows.start."
                ) from wrong
            raise
        if len(rows_read) < len(source):
            why = ""
            values = np.asarray(got) if getattr(got, "shape", None) == shape else None
            if values is not None and (np.array_equal(values, source) or np.isin(values, read_before).any()):
                why = (
                    " The others come from an earlier call: a dictionary that is made once, outside of the function or as a default "
                    "argument, still holds what it read. Make it anew in each call."
                )
            elif values is not None and len(set(rows_read)) == piece < len(source) and np.isin(values, source).all():
                why = " One piece alone was read, and given to all devices: is the key under which you keep it the same for all?"
            raise Wrong(f"{case}: you read {len(rows_read)} of the {len(source)} rows.{why}")
        read_before = np.append(read_before, source)
        if isinstance(got, jax.Array) and got.shape == shape and got.sharding.is_equivalent_to(sharding, len(shape)):
            values = np.asarray(got)
            if not np.array_equal(values, source) and np.array_equal(np.sort(values, axis=0), source):
                raise Wrong(
                    f"{case}: your array has the right rows at the wrong places. Which device holds which rows is in the sharding; "
                    "the devices' numbers do not say it."
                )
        same(got, jax.device_put(source, sharding), f"{case}: your array")
        if len(rows_read) > len(source):
            times = len(rows_read) / len(source)
            raise Wrong(
                f"{case}: you read {len(rows_read)} rows in all, each row {times:g} times"
                + (f", once for each of the {copies} devices that hold it. " if times == copies else ". ")
                + "Remember each piece that you have read, not the last one alone."
            )
    shape = (64, 4096)  # 1 MiB: large enough to be seen
    sharding = NamedSharding(_mesh(), PartitionSpec("y"))
    source = np.ones(shape, np.float32)
    read, _ = _disk(source, 16)
    seen = watch(answer, read, shape, sharding, whole=source.nbytes)
    advice = "A larger array would run out of memory there; let JAX ask for each piece."
    if seen.most >= source.nbytes:
        device = max(seen.on_device, key=seen.on_device.get)
        raise Wrong(
            f"Right values; but device {device} held all 64 rows at one time, and its own piece has 16. {advice}"
        )
    if shape in seen.fetched:
        raise Wrong(
            f"Right values; but an array of shape {shape}, all 64 rows, was copied from the devices to the host. Did you lay it out "
            "in another way first? jax.device_put from one layout to another takes the whole array through the host, as np.asarray does."
        )
    if seen.on_host >= source.nbytes:
        raise Wrong(f"Right values; but all 64 rows stood in one NumPy array, and a device's piece has 16. {advice}")


@exercise(
    _judge_read_once,
    "jax.make_array_from_callback(shape, sharding, callback), and a dictionary of what was read: its key is where the rows start.",
)
def read_once(read, shape, sharding):
    """Return the array of this shape, laid out by `sharding`; read(rows) reads it."""
    kept = {}

    def piece(index):
        rows = index[0]
        if rows.start not in kept:
            kept[rows.start] = read(rows)
        return kept[rows.start]

    return jax.make_array_from_callback(shape, sharding, piece)


def _arriving(cut: Callable[[int], tuple[Sequence[int], Sequence[int]]]) -> list[int]:
    """The bytes that arrive at each of eight devices, from the rows that `cut` says it holds before and after."""
    before_after = map(cut, range(8))
    return [len(set(after) - set(before)) * 5 * 6 * 2 for before, after in before_after]


def _judge_arriving_bytes(answer):
    said = answer()
    said = [said[device] for device in range(8)] if isinstance(said, dict) and set(said) == set(range(8)) else said
    said = list(said) if isinstance(said, (Iterator, ValuesView)) else said
    got = numbers(said, (8,), "eight whole numbers, of bytes, device 0 first", whole=True).tolist()

    def piece(at: int, of: int) -> range:
        return range(24 // of * at, 24 // of * (at + 1))

    # By hand: of 24 rows, device d holds the quarter y = d % 4. In the second mesh it stands at x = d % 2, and needs that half.
    # Devices 0 and 4 hold the first quarter and need the first half, 3 and 7 the last and the second: 6 rows of 5 x 6 bfloat16
    # arrive, 360 bytes. Devices 1 and 5 hold the second quarter, 2 and 6 the third, and need the other half: 12 rows arrive.
    want = _arriving(lambda d: (piece(d % 4, 4), piece(d % 2, 2)))
    if got == want:
        return
    row_by_row = "you let the devices stand in the second mesh as in the first. It reads 0 2 4 6 / 1 3 5 7: where does device 1 stand?"
    slips = [
        ([720] * 8, "that is the whole new piece, everywhere. Does no device hold a part of it already?"),
        ([720 - bytes_ for bytes_ in want], "so much of its new piece a device holds already. The rest has to arrive."),
        ([bytes_ // 60 for bytes_ in want], "these are numbers of rows. A row has 5 x 6 elements of 2 bytes."),
        ([bytes_ // 2 for bytes_ in want], "these are numbers of elements. A bfloat16 takes 2 bytes."),
        ([bytes_ * 2 for bytes_ in want], "everywhere twice what arrives. A bfloat16 takes 2 bytes, a float32 4."),
        ([bytes_ * 4 for bytes_ in want], "everywhere four times what arrives. A bfloat16 takes 2 bytes, not 8."),
        (
            _arriving(lambda d: (piece(d % 4, 4), piece(d // 2, 4))),
            "you take P('y') for both meshes. On the second it is P('x'), which cuts in halves.",
        ),
        ([bytes_ * 8 for bytes_ in want], "these are bits. A byte has 8."),
        ([bytes_ // 360 for bytes_ in want], "these are numbers of old pieces. How many bytes has one?"),
        ([1440] * 8, "that is the whole array. Which part of it does a device need?"),
        (
            [want[0] + want[1] - bytes_ for bytes_ in want],
            "where 360 arrive you say 720, and where 720 arrive 360. Is each device at its place in the second mesh?",
        ),
        ([-bytes_ for bytes_ in want], "no less than 0 bytes can arrive: subtract the overlap from the new piece."),
        (
            _arriving(lambda d: (piece(d % 2, 2), piece(d % 4, 4))),
            "so much a device drops, or receives on the way back. Asked is what it needs and does not hold.",
        ),
        (_arriving(lambda d: (piece(d % 4, 4), piece(d // 4, 2))), row_by_row),
        (
            _arriving(lambda d: (piece(d // 2, 4), piece(d % 2, 2))),
            "you take the second mesh for both layouts. The array lies on the first, where a mesh row is 0 1 2 3.",
        ),
        (
            [want[d] for d in (0, 2, 4, 6, 1, 3, 5, 7)],
            "your numbers stand in the order of the second mesh, 0 2 4 6 1 3 5 7. Give that of device 0 first, then that of device 1.",
        ),
        (
            [sum(want)] * 8,
            "that is what arrives at all devices together. Give a number for each.",
        ),
        ([sum(want) // 8] * 8, "that is the mean over the devices. Not all of them receive the same."),
        (
            [360] * 8,
            "so much a device held before, and so much larger is its new piece. The overlap of the two is not the same everywhere: which "
            "rows does device 1 hold, and which does it need?",
        ),
        ([0] * 8, "nothing arrives anywhere? Which rows does device 1 hold, and which does it need?"),
    ]
    why = explained(got, [(numbers_, words.rstrip(".")) for numbers_, words in slips])
    if why:
        raise Wrong(f"You say {got}: {ended(why)}")
    wrong = [device for device in range(8) if got[device] != want[device]]
    which = f"Right for {8 - len(wrong)} of the 8 devices. Device {wrong[0]}: you say {got[wrong[0]]:,} bytes. "
    if min(got) < 0:
        which += "Less than nothing cannot arrive. "
    raise Wrong(
        f"{which}At which y does it stand in the first mesh, and at which x in the second? Bytes that arrive = bytes of the new piece - bytes "
        "of its overlap with the old one."
    )


@exercise(
    _judge_arriving_bytes,
    "By 'y' of the first mesh, device 1 holds rows 6 to 11. In the second mesh, 0 2 4 6 / 1 3 5 7, it stands in the second row: x = 1, so it "
    "needs rows 12 to 23. Go on with the others.",
)
def arriving_bytes():
    """Return eight numbers: the bytes that have to arrive at devices 0, 1, ... 7."""
    row = 5 * 6 * 2  # bytes
    held = [range(6 * (d % 4), 6 * (d % 4) + 6) for d in range(8)]
    needed = [range(12 * (d % 2), 12 * (d % 2) + 12) for d in range(8)]
    return [row * len(set(new) - set(old)) for old, new in zip(held, needed, strict=True)]
