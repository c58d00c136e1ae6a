"""Exercises and predictions of notebook 03, Automatic parallelism with jit."""

from __future__ import annotations

import functools
import gc
import math
import warnings
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from exercises.kit.probes import primitives, watch
from utils.compat import spec_text
from utils.count.cost import cost
from utils.exercises import (
    Choice,
    Prediction,
    Wrong,
    by_factors,
    exercise,
    number,
    numbers,
    same,
    several,
    shown,
    spell,
)
from utils.mesh import make_mesh
from utils.show.logged import logged

disagree = Choice(
    {
        "yes": "each device holds a block of both operands, and that block of the sum is its own",
        "no": "device 5 holds rows 2 and 3 of one operand and row 1 of the other, nothing that it could add",
    }
)
holders = Prediction(
    "",
    {},
    {
        "pieces": {
            2: "the rows are gone, added up; only y cuts what is left",
            2 / 4: "x cut the rows, and these are added up; y cuts the columns",
            1 / 4: "nobody needs all the sums; the columns stay cut",
        },
        "devices": {
            1 / 2: "both devices that add up their halves of a column end with its sum",
            4 / 2: "only the devices that hold parts of the same columns do",
            8 / 2: "only the devices that hold parts of the same columns do",
        },
        "partner": {
            k / 2: "device 6 has rows 2 and 3 of columns 4 and 5; who has the rest of these columns?"
            for k in (0, 1, 3, 4, 5, 6, 7)
        },
    },
    ranks=True,
)
ring = Prediction(
    "times b",
    {
        2: "a half takes n - 1 = 3 steps, and in a step a device sends a part, b/4",
        4: "you count steps; in a step a device sends a part, b/4",
        1 / 2: "that is the first half alone; then the sums are handed on",
        2 / 1.5: "a half takes n - 1 steps, not n: the part that has been all around need not go on",
        1 / 1.5: "a half takes 3 steps of b/4, and there are two halves",
        1.75 / 1.5: "that would be eight devices; here are four",
        12 / 1.5: "a part has b/4 bytes, and there are 6 steps",
    },
)
row_sums = Prediction(
    "bytes",
    {},
    {
        "row sums": {
            8 / 12: "2 (n - 1)/n is 1 for n = 2 alone; the partners of a row lie along y, four of them",
            6 / 12: "that is the first half of the ring alone",
            1 / 4: "a float32 takes 4 bytes",
            2: "a device puts in its two partial sums, 8 bytes, not its whole block",
            4: "a device puts in its own two partial sums, 8 bytes",
            14 / 12: "the group has the four devices along y, not all eight",
            16 / 12: "(n - 1)/n is missing",
            192 / 12: "a device puts in its two partial sums, not the whole table",
        },
        "variances": {
            1 / 2: "a distance needs the mean, so the means go around first",
            24 / 16: "there are two rounds, for the means and for the squares",
            2: "a device puts in two numbers in each round, not its whole block",
            12 / 16: "the partners of a column lie along x, and there are two rounds",
            1 / 4: "a float32 takes 4 bytes",
        },
    },
)
spread = Prediction(
    "bytes",
    {
        1 / 2: "so little would do, but this compiler makes an all-reduce",
        1 / 8: "a float32 takes 4 bytes, and this compiler makes an all-reduce",
        12 / 8: "device 0 keeps a sum that it has: nothing moves after the all-reduce",
        2: "device 0 keeps a sum that it has: nothing moves after the all-reduce",
        0: "half of each column is on another device",
    },
)
inner = Prediction(
    "bytes",
    {},
    {
        "sent": {
            1
            / 2: "a device puts in partial sums of the whole result, 16,384 bytes, times 2 (n - 1)/n, which is 1 for n = 2",
            2: "2 (n - 1)/n is 1 for n = 2",
            1 / 4: "you count numbers, or an eighth of something whole: a device has partial sums of the whole result",
            1.5: "the partners lie along x: n is 2",
            1.75: "the partners lie along x: n is 2",
            0: "each device has only half of every sum",
        },
        "held": {
            factor: "no axis of the result is cut: x is the contraction, and y is not used"
            for factor in (1 / 2, 1 / 4, 1 / 8)
        },
    },
)
products = Choice(
    dict.fromkeys(("nothing", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"), ""),
    {
        "row 2": dict.fromkeys(("nothing", "all-gather"), "y cuts the contraction of both"),
        "row 3": {
            "nothing": "y cuts the contraction of a, so a device has only a stretch of its rows",
            "all-reduce": "y cuts the contraction of one alone. It could be done, and what it costs comes later",
        },
        "row 4": {
            "nothing": "y cuts the contraction of a, and x that of b",
            "all-reduce": "different axes cut the contraction of a and of b: the stretches of a device do not match",
        },
        "row 5": dict.fromkeys(("all-reduce", "all-gather"), "x cuts the rows of a; who cuts the contraction?"),
        "row 6": dict.fromkeys(("all-reduce", "all-gather"), "x cuts the columns of b; who cuts the contraction?"),
        "row 7": {
            "nothing": "x cuts the contraction of b, so a device has only a stretch of its columns",
            "all-reduce": "that comes second. x cuts the contraction of b alone, and first something else is moved",
            "all-gather": "so the second rule says, and it would do; this compiler uses the idle y",
        },
    },
)
turn = Prediction(
    "",
    {},
    {
        "same": {
            1 / 2: "there the gather sends 6,144 bytes, half of what the sum sends",
            2: "set 96 k equal to 192 n",
            4: "set 96 k equal to 192 n",
            1 / 4: "set 96 k equal to 192 n",
        },
        "adds up from": {
            128 / 80: "from there on it would pay; this compiler does not wait so long",
            96 / 80: "at 80 the gather sends 7,680 bytes and the sum 12,288, and this compiler adds up already",
            64 / 80: "there it gathers",
            48 / 80: "there it gathers",
            32 / 80: "there it gathers",
        },
    },
    ranks=True,
)
worth = Prediction(
    "FLOPs in the time of a byte",
    {
        24 / 16: "24 weighs more FLOPs against fewer bytes; if they overlap, only the longer one counts on each side",
        2: "at 32 the gather takes as long to compute as to send, 8,192; the other way still sends 16,384",
        1 / 4: "at 4 the first way takes as long to compute as to send; the gather still computes four times as long",
        1 / 16: "at 1 both ways compute longer than they send, and one computes four times as much",
    },
)
batch = Prediction(
    "bytes",
    {1 / 4: "you count numbers; a float32 takes 4 bytes", 2: "2 (n - 1)/n is 1 for n = 2"},
    {
        "P('batch')": {
            factor: "each dot product is whole on its device"
            for factor in (8, 16, 32, 64, 4, 2, 1, 12, 48, 6, 128, 256)
        },
        "P(None, 'features')": {
            1 / 2: "nobody cuts the batch: a device has parts of all eight products",
            1 / 32: "each dot product is in two parts",
            8: "a device puts in partial sums, not its part of the examples",
            0: "each dot product is in two parts",
        },
        "P('batch', 'features')": {
            4: "the batch is cut in four: a device has parts of two products",
            0: "each dot product is in two parts",
        },
    },
)
doors = Choice(
    dict.fromkeys(("laid out anew", "taken as it is", "refused"), ""),
    {
        "NumPy": dict.fromkeys(("taken as it is", "refused"), "it has no layout yet, so the program gives it one"),
        "nobody": dict.fromkeys(("taken as it is", "refused"), "an uncommitted array may be moved, so it is"),
        "blocks": dict.fromkeys(
            ("laid out anew", "taken as it is"), "a committed array is where somebody has put it; the door checks that"
        ),
    },
)
moved = Prediction(
    "bytes",
    {
        1 / 4: "so much has to arrive; this compiler gathers the whole table, and cuts it",
        0: "of four rows a device holds two",
        96 / 64: "that would be along y; the rows lie along x",
        112 / 64: "the rows are cut in two: what a device lacks of the whole is 64 bytes",
        1 / 2: "not what a device gets, but what it sends; and the compiler gathers more than that",
    },
)
donated = Prediction(
    "bytes",
    {},
    {
        "kept": {
            1 / 2: "there are an argument and a result",
            8: "w is cut into eight",
            4: "w is cut into eight, and there are two",
        },
        "donated": {
            2: "the result lies where the argument was",
            0: "the result has to be somewhere",
            8: "w is cut into eight",
        },
        "for bfloat16": {
            8_192 / 12_288: "there would be room for it in w, but memory is given to a result of one's own dtype alone",
            4_096 / 12_288: "there would be room for it in w, and w would stay as large as it is; but it is not reused",
            16_384 / 12_288: "a number of bfloat16 takes 2 bytes",
        },
        "for P('y')": {
            1 / 3: "a quarter of w does not fit where an eighth was, so nothing is reused",
            2
            / 3: "a quarter of w does not fit where an eighth was, so the argument stays, or: the result is a quarter now",
            4 / 3: "the result is a quarter, 16,384 bytes, the argument an eighth, 8,192",
        },
    },
)
programs = Prediction(
    "",
    {},
    {
        "entries": {
            6 / 5: "the sixth call fits the first entry: values do not count",
            4 / 5: "P('x', None) is written differently from P('x'), or: whether an array is committed counts as well",
            3 / 5: "P('x', None) is written differently from P('x'), and whether an array is committed counts as well",
            1 / 5: "a program is made for a layout",
        },
        "compiled": {
            5 / 4: "P('x', None) means the same as P('x'): an entry more, but no program",
            6 / 4: "values do not count, and P('x', None) means the same as P('x')",
            3 / 4: "an uncommitted table and one committed to the same device are two programs",
            2 / 4: "each layout is compiled for, and an uncommitted table and a committed one are two programs",
            1 / 4: "a program is made for a layout",
        },
    },
)
captured = Prediction(
    "bytes",
    {
        1 / 8: "a constant comes without its layout",
        0: "it is not an argument, so it stands in the program",
        1 / 4: "you count numbers; a float32 takes 4 bytes",
        8: "the program is one, and each device runs it",
        1 / 2: "no axis of a constant is cut, by x or by y",
    },
)


def _judge_bytes_of_sum(answer):
    def sent(passes=2, n=1, steps=-1, held=1, width=4):
        return passes * (n + steps) / n * held * width

    for shape, cuts, axis in (
        ((42, 350), (7, 5), 0),
        ((40, 350), (4, 5), 1),
        ((6, 30, 45), (3, 1, 5), 2),
        ((6, 30, 45), (3, 1, 5), 0),
        ((6, 30, 45), (3, 1, 5), 1),
        ((64,), (8,), 0),
        ((8, 20, 14, 33), (2, 4, 7, 3), 2),
    ):
        case = f"bytes_of_sum({shape}, {cuts}, {axis}): "
        said = number(answer(shape, cuts, axis), "one number, of bytes", said=f"{case}you return")
        own = [size // pieces for size, pieces in zip(shape, cuts, strict=True)]
        n, block = cuts[axis], math.prod(own)
        if n == 1 and said:
            raise Wrong(
                f"{case}you say {said:,.10g} bytes. That axis is in one piece: whom would a device have to ask?"
            )
        if n > 1 and not said:
            raise Wrong(
                f"{case}you say 0 bytes. The parts of each sum are on {n} devices, so something has to be sent. "
                f"(If you divide with //: (n - 1) // n is 0.)"
            )
        others = math.prod(cuts)
        slips = {
            "passes": [
                (1, "the 2 of an all-reduce is missing: the sums are added up, and then handed on"),
                (1, "that is a reduce-scatter: all devices of the group need the result"),
                (n, "that is what an all-gather sends, (n - 1) times what a device puts in"),
                (2 * n, "in a step a device sends an n-th of what it puts in, not all of it"),
                (2 * n, "that is what the whole group sends"),
                (2 / n, "you divide by n once more; of what a device puts in it sends (n - 1)/n, twice"),
                (
                    2 * math.log2(n) * n / max(n - 1, 1),
                    "that is a tree's, all of it in each of log2(n) steps; on a ring a step sends an n-th",
                ),
                (2 * others, f"that is what all {others} devices send together"),
                (
                    n / (n - 1) if n > 1 else 0,
                    "that is what a device puts in: 2 (n - 1)/n is 1 for n = 2, or if // rounds",
                ),
            ],
            "n": [
                (others, "the group has the devices along the axis that you add up, not all of them"),
                *((k, "you took the cuts of another axis") for k in set(cuts) - {n, 1}),
            ],
            "steps": [(0, "(n - 1)/n is missing: of n parts, n - 1 are sent")],
            "held": [
                (block, "that is a device's block; it puts in only its partial sums, which have an axis less"),
                (
                    math.prod(shape) // shape[axis],
                    "that is the whole result; a device puts in the sums of its own block",
                ),
                (math.prod(shape), "that is the whole array; a device puts in the sums of its own block"),
                (own[axis], "you count along the axis that you add up; the other axes are left"),
                (
                    math.prod(shape) // shape[axis] // n,
                    "you cut the result by the axis that is gone; by which is it cut?",
                ),
            ],
            "width": [
                (1, "that counts numbers; a float32 takes 4 bytes"),
                (8, "a float32 takes 4 bytes, not 8"),
            ],
        }
        right = {"passes": 2, "n": n, "steps": -1, "held": block // own[axis], "width": 4}
        if n > 1:
            by_factors(
                said,
                case,
                "bytes",
                sent,
                right,
                slips,
                "compare what a device holds, what of it a device puts in, and how many share the sum",
            )


@exercise(
    _judge_bytes_of_sum,
    "What does one device hold of the array? What is left of that when it has added up along the axis? Times 4 bytes, times 2 (n - 1)/n.",
)
def bytes_of_sum(shape, cuts, axis):
    """Return the bytes that each device sends for the sum along one axis."""
    n, sums = cuts[axis], 1
    for i in range(len(shape)):
        if i != axis:
            sums *= shape[i] // cuts[i]
    return 2 * (n - 1) / n * sums * 4


def _judge_bytes_of_gradients(answer):
    def sent(passes, share, held, width):
        return passes * share * held * width

    for batch_, features, out in ((40, 24, 56), (16, 72, 8)):
        call = f"bytes_of_gradients({batch_}, {features}, {out})"
        said_so = answer(batch_, features, out)
        pairs = isinstance(said_so, (list, tuple)) and [len(pair) if np.ndim(pair) else 0 for pair in said_so] == [2, 2]
        got = numbers(
            [*said_so[0], *said_so[1]] if pairs else said_so,
            (4,),
            "four numbers of bytes: data parallel by w, by x; model parallel by w, by x",
            said=f"{call}: you return",
        )
        weights, examples, products_ = features * out, batch_ * features, batch_ * out
        for said, of, held, silent in (
            (got[0], "data parallel, by w", weights, "In x.T @ r the contraction is the batch: who cuts it?"),
            (got[1], "data parallel, by x", 0, "In r @ w.T the contraction is out; r is cut by rows, w is whole."),
            (
                got[2],
                "model parallel, by w",
                0,
                "In x.T @ r the contraction is the batch; x is whole, r is cut by columns.",
            ),
            (got[3], "model parallel, by x", examples, "In r @ w.T the contraction is out: who cuts it?"),
        ):
            case = f"{call}, {of}: "
            if not said or not held:
                if bool(said) != bool(held):
                    raise Wrong(f"{case}you say {said:,.10g} bytes. {silent}")
                continue
            by = of[-1]
            shapes = {weights: "w", examples: "x", products_: "r"}
            slips = {
                "passes": [
                    (1, "the 2 of an all-reduce is missing: every device needs the gradient"),
                    (4, "there is one all-reduce; the 2 of the gradient changes its values, not their bytes"),
                    (8, "that is what an all-gather sends, (n - 1) times what a device puts in"),
                ],
                "share": [
                    (1, "(n - 1)/n is missing"),
                    (1 / 2, "that is what a device puts in: 2 (n - 1)/n is 1 for n = 2, and n is 8"),
                    (3 / 4, "n is 8, not 4"),
                    (7, "a step sends an n-th, not all"),
                ],
                "held": [
                    *(
                        (size, f"so large is {name}; the gradient has the shape of {by}")
                        for size, name in shapes.items()
                        if size != held
                    ),
                    (held / 8, f"the partial sums are not cut: each device has them for all of {by}"),
                ],
                "width": [(1, "that counts numbers; a float32 takes 4 bytes")],
            }
            right = {"passes": 2, "share": 7 / 8, "held": held, "width": 4}
            by_factors(
                said,
                case,
                "bytes",
                sent,
                right,
                slips,
                "compare the shape of the partial sums, and how many devices add them up",
            )


@exercise(
    _judge_bytes_of_gradients,
    "Write the two products under each other and mark the contraction of each: the batch, or out. Where both operands cut it, a device has partial sums, in the shape of the gradient.",
)
def bytes_of_gradients(batch, features, out):
    """Return four numbers of bytes: data parallel, by w and x; model parallel, too."""
    share = 2 * 7 / 8 * 4  # an all-reduce among eight, of float32
    return share * features * out, 0, 0, share * batch * features


_SHAPE = (4, 6, 16, 32)
_AXES = ("batch", "heads", "positions", "features")


def _judge_silent_spec(answer):
    spec = answer()
    if not isinstance(spec, PartitionSpec):
        raise Wrong(
            f"You return {shown(spec)}, a {type(spec).__name__}; expected a PartitionSpec, which is written P(...)."
        )
    if len(spec) > len(_SHAPE):
        raise Wrong(f"{spec_text(spec)} has {len(spec)} entries; the array has {len(_SHAPE)} axes.")
    try:
        sharding = NamedSharding(make_mesh((2, 4), ("x", "y")), spec)
        shape = sharding.shard_shape(_SHAPE)
    except Exception as error:
        raise Wrong(_unfit(spec, error)) from error
    queries = jax.ShapeDtypeStruct(_SHAPE, jnp.float32, sharding=sharding)
    scores = jax.vmap(jax.vmap(lambda q, k: q @ k.T))
    with logged():
        found = cost(scores, queries, queries)
    cut = [name for name, size, own in zip(_AXES, _SHAPE, shape, strict=True) if own < size]
    reasons = {
        "features": "The features are what each product adds up: a device would have partial sums.",
        "positions": "A score belongs to a position of q and one of k: with one cut for both, a device lacks most of its partners.",
    }
    if found.bytes_sent:
        why = [reasons[name] for name in cut if name in reasons]
        raise Wrong(
            f"{spec_text(spec)} cuts {' and '.join(cut)}; each device sends {found.bytes_sent:,} bytes. {' '.join(why)}"
        )
    share = math.prod(_SHAPE) // math.prod(shape)
    if share != 8:
        idle = [name for name in ("x", "y") if name not in str(spec)]
        raise Wrong(
            f"{spec_text(spec)}: nothing is sent, but each device holds {shape}, {_part(share)}, not an eighth. "
            f"Which axes of the array may {' and '.join(map(repr, idle))} cut?"
        )


def _names(entry):
    return tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)


def _part(share):
    return {1: "all of the array", 2: "half of the array", 4: "a quarter of the array"}.get(
        share, f"1/{share} of the array"
    )


def _unfit(spec, error):
    """What does not fit, in words of our own where JAX speaks of its inside."""
    names = [name for entry in spec for name in _names(entry) if name is not None]
    strangers = [name for name in names if name not in ("x", "y")]
    if strangers:
        return f"{spec_text(spec)} names {strangers[0]!r}. A spec names axes of the mesh, which are 'x' and 'y', in the order of the array's axes."
    if len(set(names)) < len(names):
        return f"{spec_text(spec)} names one mesh axis twice. It can cut one axis of the array."
    for entry, size, axis in zip(spec, _SHAPE, _AXES, strict=False):
        pieces = math.prod({"x": 2, "y": 4}[name] for name in _names(entry) if name)
        if size % pieces:
            return f"{spec_text(spec)} cuts {axis} into {pieces} pieces, and there are {size}. What can cut {axis}?"
    return f"{spec_text(spec)} does not fit the array. JAX says: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


@exercise(
    _judge_silent_spec,
    "Which two axes of the array does each product have for itself, without adding up or comparing along them? Give each of them a mesh axis that divides it.",
)
def silent_spec():
    """Return a spec for queries and keys: an eighth on each device, nothing sent."""
    return PartitionSpec("y", "x")


_LAYER = (64, 128)
_WHOLE = 64 * 128 * 4


def _judge_make_layers(answer):
    for plan, key in (
        ([((2, 4), (None, "y")), ((2, 4), ("x", "y"))], jax.random.key(7, impl="rbg")),  # which compiles faster
        ([((4, 2), (("y", "x"),))], jax.random.key(11)),
    ):
        shardings = [NamedSharding(make_mesh(sizes, ("x", "y")), PartitionSpec(*spec)) for sizes, spec in plan]
        if len(jax.live_arrays()) > 100:  # on 0.7.2 what was read by its shards lives on, and `watch` looks at each
            gc.collect()
        seen = watch(_naming_the_door(answer), key, shardings)
        if len(getattr(seen.result, "shape", ())) == 3:
            raise Wrong(
                f"You return {shown(seen.result)}, which has one layout; expected a list of {len(plan)} arrays, each in its own."
            )
        layers = several(seen.result, len(plan), f"a list of {len(plan)} arrays, one for each sharding")
        for i, layer in enumerate(layers):
            _judge_layer(layer, i, shardings, key, answer)
        own = sum(_WHOLE // 8 * _copies(spec, sizes) for sizes, spec in plan)
        device, held = max(seen.on_device.items(), key=lambda item: item[1])
        if held > own + 1024:  # and some bytes for keys
            whole = "; a whole layer takes 32,768" if held >= _WHOLE else ""
            raise Wrong(
                f"The layers are right, but at one time device {device} held {held:,} bytes{whole}. Its own pieces of all "
                f"{len(plan)} layers take {own:,}. Is something made first, and cut afterwards?"
            )
        if any("f32[64,128]" in text for text in seen.texts):
            raise Wrong(
                "The layers are right, but inside of your program each device makes a whole one, f32[64,128], and keeps its "
                "own piece."
            )


def _copies(spec, sizes):
    """How many devices hold each piece of an array that is laid out by this spec."""
    size = dict(zip("xy", sizes, strict=True))
    used = [name for entry in spec for name in _names(entry) if name]
    return math.prod(sizes) // math.prod(size[name] for name in used)


def _naming_the_door(answer):
    """The answer; what JAX says to in_shardings for the key, of rank 0, says little to a reader."""

    def call(*args):
        try:
            return answer(*args)
        except Wrong as wrong:
            if "structure error" in str(wrong.__cause__):
                raise Wrong(
                    f"Your function raised ValueError: what it makes and its out_shardings are lists of different lengths. "
                    f"In this case there {'is' if len(args[1]) == 1 else 'are'} {len(args[1])} in `shardings`."
                ) from wrong
            if "pjit arguments" in str(wrong) or "in_shardings" in str(wrong):
                raise Wrong(
                    f"{wrong} (in_shardings speaks of what comes in. Here the key does, and it has no axes.)"
                ) from wrong
            raise

    return call


def _made_of(answer, key, shardings):
    """The primitives of what the answer does with a key; none if it cannot be traced."""
    with suppress(Exception):
        return primitives(lambda key: answer(key, shardings), key)
    return ()


def _different(layer):
    """One shard of each piece, as NumPy."""
    return {str(shard.index): np.asarray(shard.data) for shard in layer.addressable_shards}.values()


def _judge_layer(layer, i, shardings, key, answer):
    what, sharding, count = f"Layer {i}", shardings[i], len(shardings)

    def drawn(key):
        return np.asarray(jax.random.normal(key, _LAYER))

    want = drawn(jax.random.fold_in(key, i))
    if isinstance(layer, jax.Array) and layer.shape == _LAYER and layer.dtype == jnp.float32 and not layer.is_deleted():
        values = np.asarray(layer)
        if not np.allclose(values, want, atol=1e-5):
            known = jax.random.key(0, impl=jax.random.key_impl(key))
            others = [(jax.random.fold_in(key, k), f"fold_in(key, {k})") for k in range(count + 1) if k != i]
            others += [
                (
                    functools.reduce(jax.random.fold_in, range(i + 1), key),
                    "a key that was folded in once for each layer",
                ),
                (key, "the key itself"),
                (jax.random.fold_in(known, i), "jax.random.key(0), not of the key that was handed in"),
            ]
            for other, words in others:
                if np.allclose(values, drawn(other), atol=1e-5):
                    raise Wrong(f"{what} holds the numbers of {words}; expected those of fold_in(key, {i}).")
            if np.allclose(values, np.asarray(jax.random.uniform(jax.random.fold_in(key, i), _LAYER)), atol=1e-5):
                raise Wrong(f"{what} holds uniform numbers; expected those of jax.random.normal.")
            if len({piece.tobytes() for piece in _different(layer)}) < len(_different(layer)):
                raise Wrong(
                    f"{what}: two of its blocks hold the same numbers. Does each device draw its piece with one and the same key?"
                )
        if not layer.sharding.is_equivalent_to(sharding, 2):
            why = ""
            if "device_put" in _made_of(answer, key, shardings):
                why = " A jax.device_put inside a compiled program does not bind the layout of its result."
            for k, other in enumerate(shardings):
                if layer.sharding.is_equivalent_to(other, 2):
                    why = f" That is the layout of layer {k}."
            if len(layer.sharding.device_set) == 1:
                why = " It is whole, on one device: nothing lays it out."
            raise Wrong(f"{what} is laid out as {spell(layer.sharding)}; expected {spell(sharding)}.{why}")
    same(layer, jax.device_put(want, sharding), what)


@exercise(
    _judge_make_layers,
    "jax.jit takes a function of the key that returns the whole list, and its out_shardings takes a list of the same form.",
)
def make_layers(key, shardings):
    """Return a list of normal (64, 128) arrays, each made in its sharding's layout."""

    def make(key):
        keys = [jax.random.fold_in(key, i) for i in range(len(shardings))]
        return [jax.random.normal(key, (64, 128)) for key in keys]

    return jax.jit(make, out_shardings=shardings)(key)


def _steps_that_drift():
    """Updates whose result, left to itself, is laid out differently: with w's and x's layout, shapes and mesh."""

    def against_the_slope(w, x):
        return w - 0.125 * (x.T @ (x @ w)) / 16

    def towards_the_mean(w, x):
        return 0.5 * w + 0.25 * x.mean(axis=0)[:, None]

    yield against_the_slope, (2, 4), (None, "y"), (None, "x"), (32, 24), (16, 32)
    yield towards_the_mean, (4, 2), (), (None, "x"), (24, 8), (12, 24)


def _judge_steady(answer):
    rng, layouts = np.random.default_rng(3), []
    for update, sizes, spec_w, spec_x, shape_w, shape_x in _steps_that_drift():
        mesh, calls = make_mesh(sizes, ("x", "y")), []
        layout, of_x = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in (spec_w, spec_x))
        start, x = (rng.normal(size=shape).astype(np.float32) for shape in (shape_w, shape_x))
        layouts.append(spec_text(layout.spec))

        def counted(w, x, update=update, calls=calls, shapes=(shape_w, shape_x)):
            calls.append(isinstance(w, jax.core.Tracer) or isinstance(x, jax.core.Tracer))
            if (np.shape(w), np.shape(x)) == shapes[::-1]:
                raise Wrong(f"`update` gets {shown(w)} as w and {shown(x)} as x: that is update(x, w).")
            return update(w, x)

        counted.__name__ = counted.__qualname__ = "update"  # so it is called in what JAX says
        step = answer(counted, jax.device_put(start, layout))
        if not callable(step):
            raise Wrong(
                f"You return {shown(step)}; expected a function step(w, x). Does it end with `return`, and is it not called yet?"
            )
        w, x, want = jax.device_put(start, layout), jax.device_put(x, of_x), start
        if why := _donated(answer(update, jax.device_put(start, layout)), w, x):
            raise Wrong(why)
        for turn_ in (1, 2, 3):
            before, last = len(calls), want
            x = x if turn_ < 3 else jax.device_put(np.asarray(x) * 0.75, of_x)
            with logged("jax_log_compiles") as heard:
                seen = watch(_stepped, step, w, x, turn_) if turn_ == 2 else None
                w = seen.result if seen else _stepped(step, w, x, turn_)
            if seen and shape_w in seen.fetched:
                raise Wrong(
                    "In step 2 all weights were copied to the host, to be laid out anew from there. What a compiled program "
                    "returns can have its layout at once."
                )
            want = np.asarray(update(want, np.asarray(x)))
            what = f"After step {turn_}, with w laid out by {spec_text(layout.spec)} and x by {spec_text(of_x.spec)}, w"
            if turn_ == 1 and calls and not any(calls):
                raise Wrong(
                    "In step 1 the Python code of `update` ran on the arrays themselves, operation by operation. A compiled "
                    "step is made by jit."
                )
            if turn_ > 1 and len(calls) > before:
                raise Wrong(
                    f"In step {turn_} the Python code of `update` ran again. A compiled step runs it once, when it is traced; "
                    "after that only the program runs. Is there one jit, made before the loop?"
                )
            if isinstance(w, jax.Array) and w.shape == shape_w and not w.is_deleted():
                _judge_step(w, what, last, want, update, np.asarray(x), layout, layouts, turn_)
            same(w, jax.device_put(want, layout), what)
            made = [line.split(" ")[1] for line in heard if line.startswith("Compiling ")]
            if turn_ > 1 and made:
                raise Wrong(f"In step {turn_} JAX compiled again: {', '.join(made)}. What differs from step 1?")
        if not calls:
            raise Wrong("Your step never calls `update`. It is to work for any update, not for this one.")


def _donated(step, w, x):
    """What is wrong with what a step donates, before it runs: 0.10.2 dies where what was donated is handed over again."""
    with suppress(Exception), warnings.catch_warnings():  # what is no jitted function
        warnings.simplefilter("ignore")  # of buffers that cannot be used; the step itself will say so
        info = jax.tree.leaves(step.lower(w, x).args_info, is_leaf=lambda leaf: hasattr(leaf, "donated"))
        if len(info) == 2 and info[1].donated:
            return "Your step donates x, the batch, which the next step may need. What it replaces are the weights."
    with suppress(Exception):  # what cannot be traced
        given: set = set()
        for equation in jax.make_jaxpr(step)(w, x).jaxpr.eqns:
            if given & {var for var in equation.invars if not hasattr(var, "val")}:
                return (
                    "Within one step an array is donated and then used again, after its memory was given away. How often "
                    "does a step call the compiled program?"
                )
            flags = equation.params.get("donated_invars", ())
            given |= {var for var, donated in zip(equation.invars, flags, strict=False) if donated}
    return ""


def _stepped(step, w, x, turn_):
    """The next weights; what JAX refuses at the doors of the reader's program, in words that say which door."""
    try:
        return step(w, x)
    except Wrong:
        raise
    except Exception as error:
        said = str(error)
        why = next((words for part, words in _AT_THE_DOOR.items() if part in said), "")
        line = next(filter(None, said.splitlines()), "").rstrip(".,")
        raise Wrong(f"Step {turn_} raised {type(error).__name__}: {line}.{why}") from error


_AT_THE_DOOR = {
    "non-empty mesh": " (A spec does not say of which mesh it speaks; a sharding does.)",
    "does not match the sharding on the respective arg": " (That is in_shardings: it refuses w or x as they are laid out here.)",
    "explicit output sharding with device ids": " (w and x lie on eight devices, and out_shardings asks for others.)",
}


def _judge_step(w, what, last, want, update, x, layout, layouts, turn_):
    """Name what is wrong with a layout or with values."""
    values = np.asarray(w)
    on = getattr(w.sharding, "mesh", layout.mesh)
    if on != layout.mesh and on.size == layout.mesh.size:
        sizes, own = (" x ".join(map(str, mesh.devices.shape)) for mesh in (on, layout.mesh))
        raise Wrong(f"{what} lies on a {sizes} mesh; it came in on a {own} one. `steady` gets a w, and has to ask it.")
    if not np.allclose(values, want, 1e-5, 1e-5):
        if turn_ > 1 and np.allclose(values, last, 1e-5, 1e-5):
            raise Wrong(f"{what} is what it was after step {turn_ - 1}. Does each step start from the w that it gets?")
        if np.allclose(values, np.asarray(update(want, x)), 1e-5, 1e-5):
            raise Wrong(f"{what} has been updated {turn_ + 1} times. How often does one step call `update`?")
    if not w.sharding.is_equivalent_to(layout, 2):
        laid, why = spec_text(w.sharding.spec) if hasattr(w.sharding, "spec") else "", ""
        drifted = jax.jit(update)(jax.device_put(last, layout), jax.device_put(x, _across(layout))).sharding
        if laid in layouts[:-1]:
            why = " So was the w of an earlier case: `steady` gets a new w, and has to ask it."
        elif w.sharding.is_equivalent_to(drifted, 2):
            why = " So the compiler lays out what `update` returns, where nothing binds it."
        elif w.sharding.is_fully_replicated:
            why = " So each device holds all of it."
        raise Wrong(f"{what} is laid out as {spell(w.sharding)}; expected {spell(layout)}, as it came in.{why}")


def _across(layout):
    """How x is laid out in the cases of `_steps_that_drift`."""
    return NamedSharding(layout.mesh, PartitionSpec(None, "x"))


@exercise(
    _judge_steady,
    "jax.jit(update) is a compiled step. Which argument of jit says how its result is laid out, and where do you find the layout of w?",
)
def steady(update, w):
    """Return a compiled step(w, x) whose result is laid out as `w` is."""
    return jax.jit(update, out_shardings=w.sharding)
