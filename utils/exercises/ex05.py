"""Exercises of notebook 05, Writing the per-device program with shard_map."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.kit.probes import primitives
from utils.compat import type_text
from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, part, same, shown
from utils.exercises.program import operations
from utils.mesh import make_mesh

inside = Choice(
    {},
    own={
        "shape": {
            "(32,)": "that is the view from outside",
            "(8,)": "eight devices, and each has 32 / 8 numbers",
            "(1,)": "that is the shape of what it returns",
            "4": "a shape is written with brackets and a comma",
        },
        "first value": {
            "0": "that is the first number of the part; the sum of the part is asked",
            "496": "nothing adds up the eight sums",
            "28": "device 0 has four numbers, 0 to 3",
        },
        "lines": {
            "1": "another shape is traced anew",
            "3": "the second call finds the program of the first, traced and compiled",
            "8": "`print` is Python, which runs while JAX traces, and one trace is the program of all devices",
            "16": "`print` is Python, which runs while JAX traces, and one trace is the program of all devices",
            "24": "`print` is Python, which runs while JAX traces, and one trace is the program of all devices",
        },
    },
    free=True,
)
sums_of_sums = Prediction(
    "",
    {},
    own={
        "psum of 1": {
            1 / 8: "each device hands in a 1, and the eight are added",
            496 / 8: "what is summed is the 1, not x",
        },
        "psum of the psum": {1 / 8: "each device hands in its 496, and the eight are added again"},
        "psum of the others": {
            0: "each device hands in 496 less its own sum; the 496 counts eight times",
            3968 / 3472: "each device takes its own sum away, 496 in all",
            496 / 3472: "each device hands in 496 less its own sum; the 496 counts eight times",
        },
    },
)
at_the_door = Choice(
    {},
    own={
        "what happens": {
            "moves it": "",
            "refuses it": "that is what in_shardings do, of jit; in_specs are an order",
            "ignores it": "inside, the function sees the shape that the spec says",
        },
        "bytes": {
            "0": "each device has one number, and is to see all eight",
            "4": "seven other devices need your number",
            "7": "a float32 has 4 bytes",
            "32": "a device needs not send its number to itself",
            "56": "nothing is added up here, so each number travels once",
        },
    },
    free=True,
)
to_the_right = Prediction(
    "",
    {},
    own={
        "device 0": {
            6: "that would need the pair (7, 0), and the list has none",
            3: "what a device had does not stay; it gets what it is sent",
            1: "that is what device 1 had, and it sends to device 2",
        },
        "device 1": {
            1 / 3: "what a device had does not stay; it gets what it is sent",
            4 / 3: "that is what device 2 had, and it sends to device 3",
        },
    },
    ranks=True,
)
shapes = Choice(
    {},
    own={
        "tiled": {
            "(8, 2, 3)": "that is without `tiled=True`; with it the parts are joined along an axis that they have",
            "(2, 24)": "that is along axis 1; the first axis is the default",
            "(2, 3)": "the part itself; eight of them are collected",
        },
        "tiled, axis=1": {
            "(16, 3)": "that is along axis 0",
            "(2, 8, 3)": "that is without `tiled=True`",
        },
        "not tiled": {
            "(16, 3)": "that is with `tiled=True`; without it there is a new axis",
            "(2, 3, 8)": "the new axis comes first",
        },
        "varies": {"no": "all devices hold the same, and this collective's type says that they may differ"},
    },
    free=True,
)
tens_and_units = Prediction(
    "",
    {},
    own={
        "psum_scatter": {
            188 / 296: "that is the sum of device 2's own part; the parts are added across the devices",
            2464 / 296: "that is the sum of all 64 numbers; they are added place by place",
            288 / 296: "that is place 1, which device 1 keeps",
            304 / 296: "that is place 3, which device 3 keeps",
        },
        "all_to_all": {
            21 / 12: "that is what device 2 had there; it sent it to device 1",
            2 / 12: "that comes from device 0, and stands at place 0",
            22 / 12: "that is its own, and stands at place 2",
        },
    },
)
price = Prediction(
    "bytes",
    {1 / 4: "numbers; a float32 has 4 bytes"},
    own={
        "psum": {
            1 / 2: "that leaves each device with an eighth of the sums; they have to be handed out, too",
            8 / 7: "one eighth stays where it is",
            4: "that is a gather of all parts; sums can be handed out instead",
            4 / 7: "that is one way to one device",
        },
        "all_gather": {
            1 / 7: "that is your part to one device; seven need it",
            8 / 7: "a device needs not send to itself",
            1 / 8: "every other device needs all of your 32 bytes, not an eighth",
            2: "nothing is added up, so each part travels once",
        },
        "all_to_all": {
            8 / 7: "one of the eight numbers stays",
            8: "every other device needs one of your numbers, not all",
            2: "each number travels once",
            1 / 7: "that is one number; seven are sent",
        },
    },
)
unproved = Choice(
    {
        "496": "nothing adds up the eight sums",
        "an error": "the switch turns off the proof, and nothing else looks",
        "62": "nothing adds them up, or divides",
    },
    free=True,
)
adds_up_to = Choice(
    {
        "1": "each device's part adds up to 1",
        "8": "",
        "an error": "`out_specs=P('i')` promises nothing, so nothing is proved",
    },
    free=True,
)
refused = Choice(
    {"yes": "", "no": ""},
    own={
        "column_sums": {"no": "eight devices cannot share 4 rows"},
        "double": {"no": "the spec has two entries, and x one axis"},
        "total": {"no": "a number has no axis along which eight can be joined"},
        "relative": {"yes": "shapes fit, and after `pmax` of the same everywhere the result is the same everywhere"},
    },
)
on_device_5 = Prediction(
    "",
    {},
    own={
        "x": {
            90 / 116: "that is its own block",
            376 / 116: "that is along y, with the four devices of its row of the mesh",
            496 / 116: "that is the sum of all blocks; along x there are two",
        },
        "y": {
            90 / 376: "that is its own block",
            116 / 376: "that is along x, with the device in its column of the mesh",
            496 / 376: "that is the sum of all blocks; along y there are four",
            120 / 376: "that is the other row of the mesh",
        },
        "both": {90 / 496: "that is its own block", 492 / 496: "it has its own block in it once, not twice"},
    },
)
row_sums = Choice(
    {"yes": "", "no": ""},
    own={
        "P('x')": {"no": "the sums vary along x, and that is how they are joined"},
        "P('y')": {"yes": "it promises the same along x, and the sums vary along x"},
        "P(('x', 'y'))": {"no": "nothing is promised, so nothing is refused: each sum comes out four times"},
        "P()": {"yes": "it promises the same on all devices, and the sums vary along x"},
    },
)
starts = Choice(
    {"yes": "", "no": ""},
    own={
        "0.0": {"yes": "it is the same everywhere, and varies after one round"},
        "zeros_like": {"no": "it is made from a part, so it varies from the start"},
        "times psum": {"yes": "a sum over all devices is the same everywhere, and so is 0 times it"},
    },
)
three_styles = Choice(
    {},
    own={
        "bytes": {
            "7": "that is a sum of one number; the layer has 4",
            "14": "the slices of the sum have to be handed out, too",
            "16": "that is the size of the result; an all-reduce sends 2 · 7/8 of it",
            "112": "that is a gather of all partial sums",
        },
        "b inside": {
            "an error": "types and shapes fit",
            "right": "each of the eight devices adds `b`, and the eight are added up",
            "wrong": "",
        },
    },
    free=True,
)


def _on(sizes: tuple[int, ...]) -> Any:
    return make_mesh(sizes, ("i",) if len(sizes) == 1 else ("x", "y"))


def _named(answer: Callable[..., Any], mesh: Any) -> Callable[..., Any]:
    """The answer; where JAX does not know an axis's name, the message says so, since JAX's own is empty or a name."""

    def program(*parts: Any) -> Any:
        try:
            return answer(*parts)
        except Wrong as wrong:
            cause, said = wrong.__cause__, str(wrong)
            empty = isinstance(cause, AssertionError) and not str(cause) and "inside `" in said
            if empty or isinstance(cause, KeyError) or "unbound axis" in said:
                axes = " and ".join(map(repr, mesh.axis_names))
                raise Wrong(f"{said} Is the name of the axis right? This mesh has {axes}.") from wrong
            raise

    return program


def _compiled(program: Callable, mesh: Any, in_specs: Any, out_specs: Any, *args: Any) -> Any:
    """The devices' program, compiled once for these arguments."""
    mapped = jax.shard_map(program, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    traced = jax.jit(mapped).trace(*args)
    for each in operations(traced.jaxpr):
        axes = each.params.get("axes", each.params.get("axis_name"))
        if isinstance(axes, tuple) and len(set(axes)) < len(axes):  # JAX 0.12 does not survive to compile it
            raise Wrong(
                f"A collective (`{each.primitive.name}`) is given the axes {axes}: one name stands there twice."
            )
    return traced.lower().compile()


def _refuse_growth(programs: dict[int, Any], why: str) -> None:
    """Wrong where more is sent of a longer vector. The programs are compiled, by the length of a part."""
    (short, little), (long, much) = ((k, cost(program).bytes_sent) for k, program in programs.items())
    if much > little:
        raise Wrong(
            f"Right values, and each device sends {little} bytes where a part has {short} numbers, {much} where it has {long}: "
            f"what is sent grows with the vector. {why}"
        )


def _joined(arrays: list) -> np.ndarray:
    return np.concatenate([np.ravel(array) for array in arrays])


def _told(got: np.ndarray, want: np.ndarray, slips: Iterable[tuple[np.ndarray, str]]) -> str:
    """The words of the slips that give this, to the rounding of the largest number; '' for what is right, or unknown."""
    if np.allclose(got, want, 1e-5, 1e-5) or not np.isfinite(got).all():
        return ""
    lift = 10 * np.abs(got).max()  # some numbers are near 0
    return explained(got + lift, [(slip + lift, words) for slip, words in slips], within=1e-5)


def _judge_differences(answer):
    rng, mesh, programs = np.random.default_rng(0), _on((8,)), {}
    for k in (5, 11):
        x = (1.37 * rng.permutation(8 * k) - 3.3).astype(np.float32)
        programs[k] = _compiled(part(_named(answer, mesh), (k,)), mesh, P("i"), P("i"), x)
        got, parts = np.asarray(programs[k](x)), x.reshape(8, k)

        def less(before, parts=parts):  # `before`: what is taken away from the first number of each part
            return (parts - np.column_stack([before, parts[:, :-1]])).ravel()

        first, last = parts[:, 0], parts[:, -1]
        want, after = less(np.append(0, last[:-1])), np.append(x[1:], 0)
        slips = [
            (less(np.roll(last, 1)), "the first number of all has device 7's last taken away, as in a ring"),
            (
                less(0 * first),
                "the first number of each part has nothing taken away; only the first of all is to be so",
            ),
            (less(first), "the first number of each part becomes 0, as if it stood before itself"),
            (less(last), "each device takes away the last number of its own part, not its neighbour's"),
            (less(0 * last + last.sum()), "each device takes away the sum of all eight last numbers"),
            (less(np.append(last[1:], 0)), "each device takes away its right neighbour's last number"),
            (less(np.roll(last, -1)), "each device takes away its right neighbour's last number"),
            (less(np.append(0, first[:-1])), "each device takes away its left neighbour's first number"),
            (less(np.roll(first, 1)), "each device takes away its left neighbour's first number"),
            (less(np.append(first[1:], 0)), "each device takes away its right neighbour's first number"),
            (less(np.roll(first, -1)), "each device takes away its right neighbour's first number"),
            (less(np.append(x[0], last[:-1])), "the first number of all becomes 0; what is before it is 0"),
            (-want, "the signs are the other way round"),
            (after - x, "each number is taken away from the one that comes after it"),
            (x - after, "the number that comes after is taken away, not the one before"),
            (x, "nothing is taken away"),
            (
                (parts - np.vstack([0 * parts[:1], parts[:-1]])).ravel(),
                "the neighbour's number at the same place is taken away",
            ),
            ((parts - np.roll(parts, 1, 0)).ravel(), "the neighbour's number at the same place is taken away"),
        ]
        if words := _told(got, want, slips):
            raise Wrong(f"In your result {words}.")
        same(got, want.astype(np.float32), f"With parts of {k} numbers your result")
    _refuse_growth(programs, "Which of a device's numbers does another need?")


@exercise(
    _judge_differences,
    "One number has to come, from the left neighbour: jax.lax.ppermute of x[-1:]. Which device is nobody's right neighbour, "
    "and what does it get?",
)
def differences(x):
    """Per device: a part (k,) -> each number minus the one before it in x, (k,)."""
    before = jax.lax.ppermute(x[-1:], "i", [(i, i + 1) for i in range(7)])
    return x - jnp.concatenate([before, x[:-1]])


def _judge_part_of_softmax(answer):
    rng, mesh, programs = np.random.default_rng(0), _on((8,)), {}
    for k in (11, 5):
        x = rng.normal(size=8 * k).astype(np.float32)
        programs[k] = _compiled(part(_named(answer, mesh), (k,)), mesh, P("i"), P("i"), x)
        got = np.asarray(programs[k](x))
        if words := _told(got, _softmax(x), _no_softmax(x.astype(np.float64).reshape(8, k))):
            raise Wrong(f"Your result is no softmax: {words}.")
        same(got, _softmax(x), f"With parts of {k} scores your result")
    at = np.arange(40)
    for more, where in (
        (200.0 + 0 * at, "200 added to every score"),
        (-200.0 + 0 * at, "200 taken away from every score"),
        (200.0 * (at < 5), "200 added on device 0 alone"),
        (200.0 * (at == 33), "200 added to one score alone, on device 6,"),
        (-200.0 * (at == 12), "200 taken away from one score alone"),
        (-200.0 * (at >= 5), "200 taken away on all devices but one"),
    ):
        y = (x + more).astype(np.float32)
        got = np.asarray(programs[5](y))
        if not np.isfinite(got).all():
            raise Wrong(
                f"Right for small scores. With {where} your result is not a number. So what you subtract is not the largest of "
                "all scores: some exp is infinite, or each of them is 0."
            )
        same(got, _softmax(y), f"Right for small scores. With {where} your result")
    _refuse_growth(dict(sorted(programs.items())), "Reduce on the device first, then across the devices.")


def _no_softmax(x: np.ndarray) -> list[tuple[np.ndarray, str]]:
    """Of scores (8, k): what people compute in its place."""
    e, own, slots = np.exp(x - x.max()), np.exp(x - x.max(1, keepdims=True)), np.exp(x - x.max(0))
    shares = [
        (
            e / e.sum(1, keepdims=True),
            "it adds up to 8, not to 1: each device divides by the sum of its own part",
        ),
        (8 * e / e.sum(), "it adds up to 8: you divide by the mean of the eight sums"),
        (e / e.sum() / 8, "it adds up to 1/8: you divide by eight times the sum, as if it were added up twice"),
        (
            e / e.sum(1, keepdims=True) / 8,
            "it adds up to 1, but each part is the softmax of that part alone, over 8",
        ),
        (np.log(e / e.sum()), "it is the logarithm of the softmax"),
        (1 / e / (1 / e).sum(), "in the exponent the sign is the other way round"),
        (x, "it is the scores themselves"),
        (
            own / own.sum(),
            "it adds up to 1, but the parts do not fit together: each device subtracts the largest score of its own part",
        ),
        (
            e / e.sum(0),
            "it adds up to more than 1: a collective of an array works across the devices, place by place, so you divide by "
            "a sum for each place in the part",
        ),
        (
            slots / slots.sum(),
            "it adds up to 1, but its numbers do not fit together: a collective of an array works place by place, so you "
            "subtract another number at each place in the part",
        ),
        (e, "it is exp(x - m), and nothing divides it"),
        (e / e.sum(1).max(), "you divide by the largest of the eight sums, not by their sum"),
        (e / np.exp(x).sum(), "m is subtracted above, and not in the sum below"),
        (np.exp(x) / e.sum(), "m is subtracted in the sum, and not above"),
        (
            np.tile((e / e.sum(1, keepdims=True)).sum(0), 8),
            "all parts are the same: the quotients are added up across the devices, where the sums were to be",
        ),
        (
            np.tile((e / e.sum()).sum(0), 8),
            "all parts are the same: something else than a sum is added up across devices",
        ),
    ]
    return [(np.ravel(share), words) for share, words in shares]


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max())
    return (e / e.sum()).astype(np.float32)


@exercise(
    _judge_part_of_softmax,
    "Two collectives, each of one number: jax.lax.pmax of the part's largest, jax.lax.psum of the part's sum.",
)
def part_of_softmax(x):
    """Per device: a part (k,) of the scores -> the same part of their softmax, (k,)."""
    e = jnp.exp(x - jax.lax.pmax(x.max(), "i"))
    return e / jax.lax.psum(e.sum(), "i")


def _centered(
    blocks: np.ndarray,
    rows: tuple[int, ...] | None = (1,),
    columns: tuple[int, ...] | None = (0,),
    grand: tuple[int, ...] | None = (0, 1),
    sign: int = 1,
    reduce: Callable = np.mean,
    grand_reduce: Callable | None = None,
) -> np.ndarray:
    """Of blocks (x, y, r, c), with the mean of the rows' means along these mesh axes; (): the block's; None: without."""

    def along(means: np.ndarray, axes: tuple[int, ...], reduce: Callable = reduce) -> np.ndarray:  # what each gets
        return np.broadcast_to(reduce(means, axis=axes, keepdims=True), means.shape) if axes else means

    out = blocks.copy()
    if rows is not None:
        out -= along(blocks.mean(3), rows)[:, :, :, None]
    if columns is not None:
        out -= along(blocks.mean(2), columns)[:, :, None, :]
    if grand is not None:
        out += sign * along(blocks.mean((2, 3)), grand, grand_reduce or reduce)[:, :, None, None]
    return out


ROWS = {  # what people take for the rows' means
    (1,): "",
    (0,): "the rows' means are taken along 'x', and the devices that share a row lie along 'y'",
    (0, 1): "the rows' means are taken over both axes, across different rows",
    (): "the rows' means are those of the block alone",
    None: "the rows' means are not taken away",
}
COLUMNS = {
    (0,): "",
    (1,): "the columns' means are taken along 'y', and the devices that share a column lie along 'x'",
    (0, 1): "the columns' means are taken over both axes, across different columns",
    (): "the columns' means are those of the block alone",
    None: "the columns' means are not taken away",
}
GRAND = {
    ((0, 1), 1): "",
    ((0, 1), -1): "the mean of the whole table is taken away, and is to be added",
    ((0, 1), 2): "the mean of the whole table is in it once too often",
    ((), 1): "the mean that is added is that of the block, not of the whole table",
    ((0,), 1): "the mean that is added is taken along 'x' alone, and the table lies along both axes",
    ((1,), 1): "the mean that is added is taken along 'y' alone, and the table lies along both axes",
    (None, 1): "the mean of the whole table is not added",
}
CENTERED = [  # each combination of these
    (dict(rows=r, columns=c, grand=g, sign=sign), "; ".join(filter(None, words)))
    for r, of_rows in ROWS.items()
    for c, of_columns in COLUMNS.items()
    for (g, sign), of_all in GRAND.items()
    if any(words := (of_rows, of_columns, of_all))
]
CENTERED += [
    (dict(reduce=np.sum), "the devices' means are added up, not averaged"),
    (dict(reduce=np.sum, grand_reduce=np.mean), "the means of rows and columns are added up, not averaged"),
    (dict(grand_reduce=np.sum), "the mean that is added is the sum of the means of the eight blocks"),
    (
        dict(reduce=lambda means, **how: means.sum(**how) / 8),
        "all sums are divided by 8, and fewer devices share a row",
    ),
    (
        dict(reduce=lambda means, axis, **how: means.sum(axis, **how) / {(0,): 2, (1,): 4, (0, 1): 8}[axis]),
        "the sums are divided by 2 along 'x' and by 4 along 'y', as on the 2 by 4 mesh, and this one is 4 by 2",
    ),
]


def _judge_centered(answer):
    rng = np.random.default_rng(0)
    for (rows, columns), (r, c) in (((2, 4), (6, 10)), ((4, 2), (11, 5))):
        mesh = _on((rows, columns))
        t = rng.integers(-9, 10, (rows * r, columns * c)) + 5 * rng.normal(size=(rows * r, 1))
        t = (t + 7 * rng.normal(size=columns * c)).astype(np.float32)
        program = _compiled(part(_named(answer, mesh), (r, c)), mesh, P("x", "y"), P("x", "y"), t)
        got, blocks = np.asarray(program(t)), t.astype(np.float64).reshape(rows, r, columns, c).transpose(0, 2, 1, 3)

        def instead(blocks=blocks, shape=t.shape, **how):
            return _centered(blocks, **how).transpose(0, 2, 1, 3).reshape(shape)

        if words := _told(got, instead(), ((instead(**how), words) for how, words in CENTERED)):
            raise Wrong(f"In your result {words}.")
        on = f"On the {rows} by {columns} mesh"
        same(got, instead().astype(np.float32), f"{on} your result")
        sent, size = cost(program).bytes_sent, 4 * r * c
        if sent >= size:
            raise Wrong(
                f"Right values. {on} each device sends {sent:,} bytes, and its block has {size}. A row of the block has one "
                "mean: take it on the device first, then across devices."
            )


@exercise(
    _judge_centered,
    "t.mean(axis=1) has a mean for each row of the block. Which devices hold the rest of these rows? pmean along that axis "
    "alone. With the columns it is the other axis; the mean of all needs both.",
)
def centered(t):
    """Per device: a block of a table -> the same block of the centred table."""
    rows = jax.lax.pmean(t.mean(axis=1), "y")
    columns = jax.lax.pmean(t.mean(axis=0), "x")
    return t - rows[:, None] - columns + jax.lax.pmean(t.mean(), ("x", "y"))


def _followed(
    readings: np.ndarray,
    weights: tuple[float, float, float] = (0.5, 0.3, 0.2),
    agree: Callable = lambda s, reading, level, before: s.max(),
    late: tuple[bool, bool] = (False, False),
    start: Callable = np.zeros_like,
    first_level: Callable = lambda first: 0.0,
) -> np.ndarray:
    """By a plain loop, of readings (8, n): every s of all devices, then every level, one flat array.

    `weights`: of s, reading and level. `late`: is s, is the level given out as it was before the step? `agree` may give
    each device a level of its own, of which the largest is given out.
    """
    s, level, every = start(readings[:, 0]), first_level(readings[:, 0]), []
    for reading in readings.T:
        before = s, level
        s = np.dot(weights, [s, reading, level + 0 * s])
        level = agree(s, reading, level, before[0])
        every.append([old if is_late else new for old, new, is_late in zip(before, (s, level), late, strict=True)])
    return _joined([np.transpose([s for s, _ in every]), [np.max(level) for _, level in every]])


WEIGHTS = {
    (0.5, 0.3, 0.2): "",
    (0.5, 0.3, 0.0): "the level does not enter the next s",
    (0.0, 0.3, 0.2): "the s before does not enter the next s",
    (0.5, 0.0, 0.2): "the readings do not enter",
    (0.5, 1.0, 0.2): "the readings enter whole, not by 0.3",
    (1.0, 0.3, 0.2): "the s before enters whole, not by 0.5",
    (0.5, 0.3, 1.0): "the level enters whole, not by 0.2",
    (0.3, 0.5, 0.2): "0.5 and 0.3 are swapped",
    (0.2, 0.3, 0.5): "0.5 and 0.2 are swapped",
    (0.5, 0.2, 0.3): "0.3 and 0.2 are swapped",
}
AGREE = {
    "": lambda s, reading, level, before: s.max(),
    "your levels are the mean of all s, not the largest": lambda s, reading, level, before: s.mean(),
    "your levels are the sum of all s, not the largest": lambda s, reading, level, before: s.sum(),
    "your levels are the smallest of all s, not the largest": lambda s, reading, level, before: s.min(),
    "your levels are the largest s of all steps so far, not of this step": (
        lambda s, reading, level, before: max(s.max(), level)
    ),
    "your levels are the largest reading, not the largest s": lambda s, reading, level, before: reading.max(),
    "your levels are the largest of the s before the step": lambda s, reading, level, before: before.max(),
    "your levels are the largest s without its sign": lambda s, reading, level, before: abs(s).max(),
    "your levels are the s of device 0": lambda s, reading, level, before: s[0],
    "each device goes on with its own s in the place of the level": lambda s, reading, level, before: s,
}
LATE = {
    (False, False): "",
    (False, True): "each level that you return is the one before the step",
    (True, False): "each s that you return is the one before the step",
    (True, True): "what you return of each step is s and level as they were before it",
}
FOLLOWED = [  # what people do in its place, one or two things at once
    (dict(weights=weights, agree=agree, late=late), "; ".join(words))
    for weights, of_weights in WEIGHTS.items()
    for of_agree, agree in AGREE.items()
    for late, of_late in LATE.items()
    if 0 < len(words := [*filter(None, (of_weights, of_agree, of_late))]) < 3
]
FOLLOWED += [
    (dict(start=np.copy), "s begins with the first reading, not with 0"),
    (dict(first_level=np.max), "the level begins with the largest first reading, not with 0"),
    (dict(start=np.ones_like), "s begins with 1, not with 0"),
    (dict(first_level=lambda first: 1.0), "the level begins with 1, not with 0"),
]


def _judge_follow(answer):
    rng, mesh, specs = np.random.default_rng(0), _on((8,)), (P("i"), P())
    for n in (7, 12):
        readings = (4 * rng.normal(size=(8, n)) - 0.5).astype(np.float32)
        program = _pair(_named(answer, mesh), n)
        s, levels = map(np.asarray, _compiled(program, mesh, P("i"), specs, readings.ravel())(readings.ravel()))
        exact = readings.astype(np.float64)
        got, want = _joined([s, levels]), _followed(exact).astype(np.float32)
        if words := _told(got, want, ((_followed(exact, **how), words) for how, words in FOLLOWED)):
            raise Wrong(f"In your result {words}.")
        same(s.reshape(8, n), want[: 8 * n].reshape(8, n), "Your first result, every s of each device,")
        same(levels, want[8 * n :], "Your second result, every level,")
    used = primitives(jax.shard_map(program, mesh=mesh, in_specs=P("i"), out_specs=specs), readings.ravel())
    if not used["scan"] and not used["while"]:
        raise Wrong(
            f"Right values, without a loop of JAX: your program has {used.total()} operations for 12 readings, written one "
            "after the other. Python's own loops are unrolled while JAX traces; jax.lax.scan is asked."
        )


def _pair(answer: Callable[..., Any], n: int) -> Callable[..., Any]:
    """The reader's program, which must return two arrays of shape (n,), the second the same on every device."""

    def program(readings: Any) -> Any:
        try:
            got = answer(readings)
        except Wrong as wrong:
            lines = [line for line in str(wrong.__cause__).splitlines() if line.strip()]
            if "carry input" in str(wrong) and len(lines) > 1:
                raise Wrong(
                    f"{str(wrong).removesuffix(', but they differ:')}. {lines[1].strip()} Which of your carries may differ from "
                    "device to device after one round, and which is the same on all? Start each one as it goes on."
                ) from wrong
            raise
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            end = " Does the function end with `return`?" if got is None else ""
            said = f"{len(got)} results" if isinstance(got, (tuple, list)) else shown(got)
            raise Wrong(f"You return {said}; expected two: every s, and every level.{end}")
        for name, one in zip(("first", "second"), got, strict=True):
            if not isinstance(one, jax.Array):
                raise Wrong(f"Your {name} result is a {type(one).__name__}; expected an array of shape ({n},).")
            if one.shape != (n,):
                raise Wrong(
                    f"On each device your {name} result has shape {one.shape}; expected ({n},), one for each reading."
                )
        if "{V" in (text := type_text(got[1])):
            asks = "Which collective makes a number that JAX knows to be the same on all?"
            if "{V" not in type_text(got[0]):
                asks = "Your first is the same on all. Every s comes first, then the levels."
            raise Wrong(
                f"Your second result, the levels, is {text} on each device: by its type it may differ from device to device, "
                f"and is to leave under out_specs=P(). {asks}"
            )
        return tuple(got)

    return program


@exercise(
    _judge_follow,
    "The carry is a pair, (s, level). After a round s varies and level does not, since jax.lax.pmax makes it. Start each of "
    "the two with the type that it keeps; jnp.zeros_like(readings[0]) varies, jnp.float32(0) does not.",
)
def follow(readings):
    """Per device: its readings (n,) -> every s (n,), every level (n,)."""

    def step(carry, reading):
        s, level = carry
        s = 0.5 * s + 0.3 * reading + 0.2 * level
        level = jax.lax.pmax(s, "i")
        return (s, level), (s, level)

    start = jnp.zeros_like(readings[0]), jnp.float32(0)
    return jax.lax.scan(step, start, readings)[1]
