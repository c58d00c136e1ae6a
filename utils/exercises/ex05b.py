"""Exercises of notebook 05b, Gradients and rings, by hand."""

from __future__ import annotations

import re
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.compat import type_text
from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, on_eight, part, same
from utils.mesh import make_mesh

YES_NO = {"yes": "", "no": ""}

gradient_type = Choice(
    {},
    own={
        "by the shared w": {"float32[]{V:i}": "there is one w; with eight gradients it would become eight"},
        "by an own copy": {"float32[]": "each device has a copy of its own, and so a gradient of its own"},
        "by x": {
            "float32[1]": "each device has an x of its own, and so a gradient of its own",
            "float32[8]": "inside, a device sees its part of x",
            "float32[8]{V:i}": "inside, a device sees its part of x",
            "float32[]{V:i}": "x has an axis, of length 1",
        },
    },
    free=True,
)
on_device_2 = Prediction(
    "",
    {},
    own={
        "grad(local)": {2 / 28: "that is its own x; w is shared, so the eight are added up"},
        "grad(psum of local)": {
            8: "after the psum the loss is one shared number, and counts once",
            2 / 28: "that is its own x; w is shared, so the eight are added up",
            16 / 28: "w is shared, and so is the loss: both count once",
        },
        "psum(grad(local))": {
            1 / 8: "28 is on every device before this psum",
            2 / 28: "28 is on every device before this psum",
        },
        "pmean(grad(local))": {
            1 / 8: "28 is on every device before this pmean",
            1 / 28: "28 is on every device before this pmean",
            2 / 28: "28 is on every device before this pmean",
        },
    },
)
all_reduces = Prediction(
    "all-reduces",
    {},
    own={
        "grad(local)": {0: "the transpose of pvary is one"},
        "grad(psum of local)": {
            2: "the value of the loss is not asked for, so nothing needs the first psum",
            3: "the value of the loss is not asked for, so nothing needs the first psum",
            0: "the transpose of pvary is one",
        },
        "psum(grad(local))": {0.5: "yours comes on top of the one that JAX puts in"},
        "pmean(grad(local))": {0.5: "yours comes on top of the one that JAX puts in"},
    },
)
unchecked_on_2 = Prediction(
    "",
    {},
    own={
        "grad(local)": {14: "without types there is no pvary, and so no sum"},
        "grad(psum of local)": {
            1 / 8: "there are eight losses now, all equal, and each has this w in it",
            28 / 16: "w is the device's own now",
            14: "w is the device's own now",
        },
        "psum(grad(local))": {
            8: "grad(local) is the device's own now, 0 to 7",
            16 / 28: "0 to 7 are added up, not eight times 2",
        },
        "pmean(grad(local))": {
            8: "grad(local) is the device's own now, 0 to 7",
            2 / 3.5: "the mean of 0 to 7, not of eight times 2",
        },
    },
)
on_top = Prediction(
    "times the right gradient",
    {},
    own={
        "mean inside, then pmean": {
            1 / 8: "the mean of eight equal numbers is that number",
            8: "the mean of eight equal numbers is that number",
        },
        "mean of the gathered": {
            1 / 8: "what all_gather gives is typed as varying: eight losses, each the mean of all"
        },
        "local, then pmean": {
            1 / 8: "before the pmean it is the sum of the eight devices' gradients, on each of them",
            8: "it is the sum of the eight devices' gradients, and pmean leaves it as it is",
        },
        "local, then psum": {
            1 / 8: "before the psum it is the sum of the eight devices' gradients already",
            1 / 64: "before the psum it is the sum of the eight devices' gradients already",
        },
    },
)
mean_unchecked = Choice(
    {
        "right": "w is the device's own now, and nothing adds up the eight gradients",
        "8 times": "the eight losses are equal, each is a mean, and nothing adds up the eight gradients",
        "differs": "",
    }
)
accumulated = Prediction(
    "bytes",
    {},
    own={
        "shared w": {
            1 / 4: "each of the four rounds adds up its gradient over the devices",
            2: "the result is the same on all devices already",
            5 / 4: "the result is the same on all devices already",
        },
        "own copy": {
            4: "the rounds add up their own gradients, and one all-reduce comes at the end",
            5: "the rounds add up their own gradients, and one all-reduce comes at the end",
            16 / 28: "an all-reduce sends 2 x 7/8 of its operand",
        },
    },
)
naive_bytes = Prediction(
    "bytes",
    {
        8 / 7: "seven sends; its own it has",
        1 / 4: "that is the bound, and also the count of the numbers, which have 4 bytes each",
        1 / 7: "that is one send",
        8: "each device sends seven times; you count all eight devices",
        7: "each device sends one array at a time",
    },
)
other_start = Prediction(
    "",
    {
        3 / 4: "each step brings a block that began one device further to the left, seven of them",
        2 / 4: "the last partial sum began seven devices to the left: that is the right neighbour's",
        7 / 4: "count modulo 8 from device 3, not from 0",
    },
    ranks=True,
)
same_copies = Choice(
    YES_NO,
    own={
        "naive": {"yes": "each device adds the eight numbers in another order, and float32 rounds each time"},
        "ring": {"no": "each sum is finished on one device, and handed to the others as it is"},
        "psum": {"no": "its eight copies are one value, and JAX relies on it"},
    },
)
sent_back = Prediction(
    "",
    {
        2 / 6: "that is what arrives, for its own loss; its x was sent on, and stands in another loss, too",
        4 / 6: "that is what comes back from the loss of device 4; its x stands in its own loss, too",
        3 / 6: "that is its x itself: which numbers is it multiplied by?",
        28 / 6: "its x stands in two losses, not in all",
    },
    ranks=True,
)
through = Prediction(
    "",
    {},
    own={
        "psum": {
            8: "the loss after a psum is one shared number, and counts once",
            1 / 8: "nothing divides by eight",
        },
        "ring": {1 / 8: "JAX cannot know that the eight results are equal: it has eight losses here"},
    },
)
more_room = Choice(
    {
        "gathered": "the rotating one keeps each piece that passes, for the way back",
        "rotating": "",
        "the same": "the rotating one keeps each piece that passes, for the way back, and some more",
    }
)
mean_first = Prediction(
    "bytes",
    {
        32: "the partial sums are of one row now, not of 32",
        512 / 768: "a group of four sends 2 x 3/4 of its operand",
        2: "half of that: all-gather or reduce-scatter alone would send 3/4 of the operand, an all-reduce twice that",
        4: "the mean over 32 rows has 128 numbers after the second product, not 512",
        128 / 768: "you count numbers, of 4 bytes each",
        192 / 768: "you count numbers, of 4 bytes each",
        2 / 3: "a group of four sends 2 x 3/4 of its operand",
        1 / 2: "there and back: 2 x 3/4 of the operand",
    },
)
whole_weights = Prediction(
    "bytes",
    {
        768: "that was for weights in quarters: partial sums had to be added; a device with whole weights has no partial sum",
        24_576: "that was for weights in quarters: partial sums had to be added; a device with whole weights has no partial sum",
        512: "that is the pmean along x",
    },
)


def _quickly(lowered):
    """Compile a program that runs once: on the CPU most of the time goes into making it fast."""
    cpu = jax.devices()[0].platform == "cpu"
    return lowered.compile({"xla_backend_optimization_level": 0} if cpu else None)


def _compiled(answer, mesh, shape, specs, axes, args):
    """The answer as a compiled program, with the results of all devices side by side, and its result's type inside."""
    types: list[str] = []

    def program(*parts):
        got = part(answer, shape)(*parts)
        types.append(type_text(got))
        return got.reshape((1,) * len(axes) + shape)

    mapped = jax.jit(jax.shard_map(program, mesh=mesh, in_specs=specs, out_specs=P(*axes)))
    return _quickly(mapped.lower(*args)), types[-1]


def _values(rng, *shape):
    """Halves, exact in float32, none of them 0."""
    return (rng.integers(1, 9, shape) * rng.choice([-0.5, 0.5], shape)).astype(np.float32)


COUNTS = (5, 4, 5, 1, 2, 3, 3, 2), (2, 6, 1, 5, 6, 3, 4, 6), (6, 6, 0, 4, 6, 5, 6, 1)


def _masked_case(counts):
    rng = np.random.default_rng(sum(counts))
    w, x, y = _values(rng, 5), _values(rng, 48, 5), _values(rng, 48)
    return w, x, y, np.concatenate([rng.permutation(np.arange(6) < count) for count in counts]).astype(np.float32)


def _masked_slips(w, x, y, real):
    """By words: what each device would hold, (8, 5)."""
    w, x, y, real = (value.astype(np.float64) for value in (w, x, y, real))
    parts = x.reshape(8, 6, 5)
    off = (x @ w - y).reshape(8, 6)

    def by_device(off):
        return 2 * np.einsum("dr,drf->df", off, parts)

    own, every, counts = by_device(off * real.reshape(8, 6)), by_device(off), real.reshape(8, 6).sum(1)
    counts[counts == 0] = np.nan  # as on the device, which divides 0 by 0
    unmasked = by_device((x @ w - y * real).reshape(8, 6))
    total, n = own.sum(0), real.sum()
    each_row = 2 * (off[..., None] * parts).sum(0)  # (6, 5): of the rows in one place on all devices
    each = own / counts[:, None]
    means = each.sum(0)
    return {
        "": total / n,
        "that of the padded rows: the mask is the wrong way round": (every.sum(0) - total) / (48 - n),
        "that of the squares of the padded rows, divided by the number of real ones: the mask is the wrong way round": (
            every.sum(0) - total
        )
        / n,
        "8 times too large: the gradient by a shared w is summed over the devices already. Do you sum once more, is each "
        "device's loss already that of all, or do you divide by the devices' mean count?": 8 * total / n,
        "64 times too large: the gradient by a shared w is summed over the devices already, your own sum comes on top, "
        "and each device's loss is already that of all": 64 * total / n,
        "an eighth of the right one: the sum over all devices is divided by the number of all real rows, and by eight as "
        "well. Where is a pmean that should be a psum?": total / n / 8,
        "that of the mean of eight means. A device with one real row counts as much as one with six: add up the squares "
        "of all, and divide by the number of all": means / 8,
        "the sum of eight means, because the gradient by a shared w is summed over the devices. Where do you divide by "
        "the number of all real rows?": means,
        "8 times the sum of eight means: you divide by each device's own count, and add up over the devices twice": 8
        * means,
        "that of a mean over 48: you divide by the number of rows, padding included": total / 48,
        "that of a mean over 6: you divide by the number of rows of one device, padding included": total / 6,
        "that of the mean over all 48 rows: the padding is counted as if it were real": every.sum(0) / 48,
        "8 times that of the mean over all 48 rows: the padding is counted as if it were real, and the gradient by a "
        "shared w is summed over the devices already": every.sum(0) / 6,
        "without the mask in the squares: you divide by the number of real rows, and the squares of all rows are added "
        "up": every.sum(0) / n,
        "that of the sum of the squares, not of their mean: divide by the number of all real rows": total,
        "that of the squares of all devices divided by each device's own count, once for each device: divide by the "
        "number of all real rows": total * (1 / counts).sum(),
        "with the mask on y alone: the prediction x @ w of a padded row is not 0": unmasked.sum(0) / n,
        "half of the right one: the derivative of a square is twice its root": total / n / 2,
        "the device's own: of its own rows, divided by the number of all. Nothing adds up the eight": own / n,
        "the device's own: that of the mean over its own rows. Nothing adds up the eight": each,
        "that of rows which are masked too late: by a shared w the gradient of each row is added up over the devices, and "
        "then the mask of one device falls on rows of all": np.einsum("dr,rf->df", real.reshape(8, 6), each_row) / n,
        "6 times too large: you divide by the mean of `real` where its sum is meant": 6 * total / n,
        "that of the differences, not of their squares": (parts * real.reshape(8, 6, 1)).sum((0, 1)) / n,
        "the right one with its sign turned": -total / n,
    }


def _judge_masked_gradient(answer):
    mesh, cases = make_mesh((8,), ("i",)), [_masked_case(counts) for counts in COUNTS]
    program, found = _compiled(answer, mesh, (5,), (P(), P("i"), P("i"), P("i")), ("i",), cases[0])
    got = [np.asarray(program(*case)) for case in cases]
    slips = [
        {words: np.broadcast_to(wrong, (8, 5)) for words, wrong in _masked_slips(*case).items()} for case in cases[:2]
    ]
    right = _masked_slips(*cases[2])[""]  # a device without a real row
    said, want = np.stack(got[:2]), np.stack([each[""] for each in slips])
    if not np.allclose(said, want, rtol=1e-4, atol=1e-6):
        named = [(np.stack([each[words] for each in slips]), words) for words in slips[0] if words]
        _refuse_gradient(said[0], want[0], explained(said, named))
    if np.isnan(got[2]).any():
        raise Wrong("Where a device has no real row at all, your gradient is nan: something is 0 / 0 there.")
    if not np.allclose(got[2], right, rtol=1e-4, atol=1e-6):
        where = "Where a device has no real row at all, your gradient"
        same(got[2][0].astype(np.float32), right.astype(np.float32), where)
        raise Wrong(f"{where} differs from device to device.")
    _refuse_type(found, "i")
    sent = cost(program).bytes_sent
    if sent > 100:
        raise Wrong(
            f"Right values, and each device sends {sent} bytes; at most 100 are asked. Which values does each collective carry?"
        )


def _refuse_gradient(got, want, words):
    """Say what the gradient is, or where it differs."""
    if words:
        raise Wrong(f"Your gradient is {words}." if words[-1] != "?" else f"Your gradient is {words}")
    flat, right = got.reshape(8, -1), np.broadcast_to(want, got.shape).reshape(8, -1)
    device, at = (int(i) for i in np.argwhere(~np.isclose(flat, right, rtol=1e-4, atol=1e-6))[0])
    differs = (
        ""
        if np.allclose(flat, flat[0], rtol=1e-4) or got.ndim > 2
        else " Your eight gradients differ from device to device."
    )
    raise Wrong(
        f"On device {device} value {at} of your gradient is {flat[device, at]:.6g}, expected {right[device, at]:.6g}.{differs} "
        "Compare with the derivative by hand: of which rows does each term come, and by what is it divided?"
    )


def _refuse_type(found, axis):
    """A gradient that is the same along this axis, and is not typed so."""
    if "{" in found and axis in found[found.index("{") :].strip("{}V:()").split(","):
        raise Wrong(
            f"Right values on every device, and their type is {found}: it says that they may differ along {axis!r}, so "
            "out_specs would refuse them. A sum by psum or pmean has the type of a shared value; a gathered one, or one "
            "that was summed by sends, has not."
        )


@exercise(
    _judge_masked_gradient,
    "Write the loss of all devices: the psum of the masked squares, divided by the psum of real. Then differentiate that by w.",
)
def masked_gradient(w, x, y, real):
    """Per device: w (5,) whole; x (6, 5), y (6,), real (6,) -> the gradient (5,)."""

    def loss(w):
        squares = (real * (x @ w - y) ** 2).sum()
        return jax.lax.psum(squares, "i") / jax.lax.psum(real.sum(), "i")

    return jax.grad(loss)(w)


def _two_axis_case(sizes):
    rng = np.random.default_rng(sizes[0])
    return _values(rng, 5 * sizes[1]), _values(rng, 3 * sizes[0], 5 * sizes[1]), _values(rng, 3 * sizes[0])


def _two_axis_slips(sizes, w, x, y):
    """By words: what each device would hold, (along data, along model, 5)."""
    d, m = sizes
    w, x, y = (value.astype(np.float64) for value in (w, x, y))
    parts, weights, targets = x.reshape(d, 3, m, 5), w.reshape(m, 5), y.reshape(d, 3)
    partial = np.einsum("drmf,mf->drm", parts, weights)
    whole = partial.sum(2)

    def own(off):
        """Of its own rows, as a sum: the differences (d, 3) or (d, 3, m)."""
        return 2 * np.einsum("drm,drmf->dmf", np.broadcast_to(off.reshape(d, 3, -1), (d, 3, m)), parts)

    right = own(whole - targets)
    total = right.sum(0)
    alone = own(partial - targets[:, :, None])
    summed = parts.sum(0)  # (3, along model, 5): what a sum along data makes of x

    def mixed(predicted):
        """Where predictions are added up along data, so are the contributions on the way back."""
        return 2 * np.einsum("drm,rmf->mf", predicted - targets[:, :, None], summed)

    by_data, by_both = mixed(partial.sum(0)), mixed(partial.sum((0, 2))[:, None])
    rows = 3 * d
    extra = "along `data` the gradient by these weights is summed already"
    return {
        "": total / rows,
        f"too large by the number of devices along `data`: {extra}. Do you sum once more, or is it the sum of the devices' "
        "means that you differentiate?": total / 3,
        f"too large by the number of devices along `data`, squared: {extra}, your own sum comes on top, and it is the sum of "
        "the devices' means that you differentiate": total / 3 * d,
        "too large by the number of devices along `model`: which of your sums counts the same loss once for each of them?": m
        * total
        / rows,
        f"too large by the number of all devices: {extra}, and along `model` the same loss is counted once for each device": m
        * total
        / 3,
        "that of partial predictions: each device takes its five columns for all of them. A prediction needs a sum along "
        "`model`": alone.sum(0) / rows,
        "that of partial predictions, and too large by the number of devices along `data`": alone.sum(0) / 3,
        "that of partial predictions, divided by the number of devices along `model` as well: a prediction needs a sum along "
        "`model`, and the loss needs nothing there": alone.sum(0) / rows / m,
        "that of predictions which are added up along `data`: the devices along `data` have other rows, those along `model` "
        "the other columns": by_data / rows,
        "that of predictions which are added up along `data`, and of a mean along `model`: the two axes have changed "
        "places": by_data / 3 / m,
        "that of predictions from which each device along `model` takes y away: y is subtracted once, from the whole sum": own(
            whole - m * targets
        ).sum(0)
        / rows,
        "3 times too large: along `data` there is a mean, and the 3 rows of a device are added up": total / d,
        "that of predictions which are added up along `data`, and too large by the number of devices there": by_data
        / 3,
        "that of predictions which are added up along both axes: along `data` the devices have other rows": by_both
        / rows,
        "that of predictions which are added up along both axes, and too large by the number of devices along `data`": (
            by_both / 3
        ),
        "that of a prediction divided by the number of devices along `model`: a product is a sum over columns, not a mean": own(
            whole / m - targets
        ).sum(0)
        / m
        / rows,
        "that of the rows of its own place along `data`: along `data` nothing is added up": right / 3,
        "that of the rows of its own place along `data`, divided by the number of all rows: along `data` nothing is added "
        "up": right / rows,
        "that of the rows of its own place along `data`, and a mean along `model` of gradients by different weights: which "
        "devices have the other rows of a column?": np.broadcast_to(right.mean(1, keepdims=True) / 3, (d, m, 5)),
        "that of the rows of its own place along `data`, and a sum along `model` of gradients by different weights: which "
        "devices have the other rows of a column?": np.broadcast_to(right.sum(1, keepdims=True) / 3, (d, m, 5)),
        "that of the sum over all rows, not of the mean": total,
        "half of the right one: the derivative of a square is twice its root": total / rows / 2,
        "the right one with its sign turned": -total / rows,
        "a sum along `model` of gradients by different weights: each device has its own five": (total / rows).sum(0),
        "a mean along `model` of gradients by different weights: each device has its own five": (total / rows).mean(0),
        "a sum along both axes of gradients: along `model` they are by different weights, and along `data` they are summed "
        "already": d * (total / rows).sum(0),
        "too small by the number of devices along `data`: you divide by it twice": total / rows / d,
        "too small by the number of devices along `model`": total / rows / m,
    }


def _refuse_mixed_axes(said):
    """JAX 0.10 on refuses a sum along two axes of a value that varies along one; say so in this lesson's words."""
    found = re.search(r"can only accept axis_name which .* input type: (\S+), axes: \('(\w+)', '(\w+)'\)", said)
    if found:
        kind, *axes = found.groups()
        shared = [axis for axis in axes if not re.search(rf"\b{axis}\b", kind)]
        raise Wrong(
            f"You sum or average a {kind} along {axes[0]!r} and {axes[1]!r}, and JAX refuses it: along `{shared[0] if shared else axes[0]}` "
            "this value is one shared number. Along which axis do the devices have something to add?"
        )


def _judge_two_axis_gradient(answer):
    specs, axes = (P("model"), P("data", "model"), P("data")), ("data", "model")
    fits = None  # what explains all that is seen so far; "" is the right gradient
    for sizes in ((2, 4), (4, 2)):
        case = _two_axis_case(sizes)
        try:
            program, found = _compiled(answer, make_mesh(sizes, axes), (5,), specs, axes, case)
        except Wrong as error:
            _refuse_mixed_axes(str(error))
            raise
        got, slips = np.asarray(program(*case)), _two_axis_slips(sizes, *case)
        same_ = {words for words, other in slips.items() if np.allclose(got, other, rtol=1e-4, atol=1e-6)}
        before, fits = fits, same_ if fits is None else fits & same_
        if not fits:
            want = np.broadcast_to(slips[""], got.shape)
            times = np.median(got / want)
            if before and "" in before and times > 0 and np.allclose(got, times * want, rtol=1e-4, atol=1e-6):
                raise Wrong(
                    f"Your gradient is right on the 2 by 4 mesh, and on the 4 by 2 mesh {times:.4g} times the right one. Which "
                    "number in your function belongs to the first mesh alone?"
                )
            along, model, at = (int(i) for i in np.argwhere(~np.isclose(got, want, rtol=1e-4, atol=1e-6))[0])
            raise Wrong(
                f"On the {sizes[0]} by {sizes[1]} mesh, on the device at place {along} along `data` and {model} along `model`, "
                f"value {at} of your gradient is {got[along, model, at]:.6g}, expected {want[along, model, at]:.6g}. Compare "
                "with the derivative by hand: which devices have the other columns of a row, and which have the other rows "
                "of a column?"
            )
        if "" not in fits and len(fits) == 1:
            break
    if "" not in fits:
        words = "; or: ".join(sorted(fits))
        raise Wrong(f"Your gradient is {words}{'' if words[-1] == '?' else '.'}")
    _refuse_type(found, "data")


@exercise(
    _judge_two_axis_gradient,
    "The rest of a prediction lies along one axis, the rest of the rows along the other. Write the loss of all, each sum along "
    "the axis that it belongs to, and differentiate that.",
)
def two_axis_gradient(w, x, y):
    """Per device: w (5,) by model; x (3, 5) by data, model; y (3,) by data -> (5,)."""

    def loss(w):
        predicted = jax.lax.psum(x @ w, "model")
        return jax.lax.pmean(((predicted - y) ** 2).mean(), "data")

    return jax.grad(loss)(w)


def _places(rows, blocks):
    """Which block stands at each place of each device: (8, 8) numbers, -1 for zeros, -2 for none of the blocks."""
    found = np.full((8, 8), -2)
    for device in range(8):
        for place in range(8):
            if not rows[device, place].any():
                found[device, place] = -1
            for block in range(8):
                if np.allclose(rows[device, place], blocks[device, block], rtol=1e-5):
                    found[device, place] = block
    return found


def _refuse_places(rows, blocks, thing, pairs):
    """Say which block stands in a wrong place, and what that tells."""
    found = _places(rows, blocks)
    wrong = np.argwhere(found != np.arange(8))
    if not len(wrong):
        return
    device, place = (int(i) for i in wrong[0])
    there = found[device, place]
    what = {-1: "nothing (zeros)", -2: f"something that is no {thing}"}.get(there, f"{thing} {there}")
    if there == -2 and np.allclose(rows[device, place], 2 * blocks[device, place], rtol=1e-5):
        raise Wrong(
            f"On device {device}, at place {place}, stands twice {thing} {place}. Does it arrive from both sides, and is added up?"
        )
    clue = _clue(found, device, thing, pairs)
    raise Wrong(f"On device {device}, at place {place}, stands {what}; {thing} {place} belongs there.{clue}")


def _clue(found, device, thing, pairs):
    """What the places of all devices tell besides, a sentence or nothing."""
    me, got = np.arange(8)[:, None], set(found[device]) - {-1, -2}
    others = found[me != np.arange(8)].reshape(8, 7)  # of each device, the places that are not its own
    for step in (1, -1):
        ring = {(i, (i + step) % 8) for i in range(8)}
        if pairs & ring and ring - pairs:
            source, target = min(ring - pairs)
            return f" No pair sends from device {source} to device {target}, which gets zeros instead."
    if len(got) == 8 and (found != np.arange(8)).any(1).sum() >= 7 and ((found - found[0]) % 8 == me).all():
        order = " ".join(map(str, found[1]))
        return (
            f" Device 1 has them as {order}: in an order that begins at the device itself. On every device {thing} j "
            "belongs at place j."
        )
    if (found == me).all():
        return f" All of its places hold its own {thing}: what arrives is not used."
    if all(set(found[d]) - {-1} <= {d, (d + 1) % 8, (d - 1) % 8} for d in range(8)) and (found >= 0).all():
        return " It has its neighbours' and no others: does each step send on what has arrived?"
    for step, side in ((1, "right"), (-1, "left")):
        if (device, (device + step) % 8) in pairs and found[device, (device + step) % 8] == (device - step) % 8:
            arrived, put = (device - step) % 8, (device + step) % 8
            return (
                f" What is sent to the {side} arrives from the other side: after one send device {device} holds {thing} "
                f"{arrived}, and you put it at place {put}."
            )
    if (others == -2).all():
        return f" No other place holds a {thing}: is what arrives added up, where it is to be kept?"
    if (found[device] < 0).all() and -1 in found[device]:
        return f" No place holds a whole {thing}: are they written one over the other?"
    if -1 in found[device] and len(got) < 8:
        never = min(set(range(8)) - got)
        return (
            f" It has {len(got)} of the 8, and {thing} {never} is not among them: it never came, or was written over, or "
            "outside of the array."
        )
    return ""


def _sends(found, piece):
    """By pair of devices, how many pieces go through; only sends to a neighbour are allowed."""
    if others := sorted({c.kind for c in found} - {"collective-permute"}):
        raise Wrong(f"You use {', '.join(others)}; only sends, jax.lax.ppermute, are allowed.")
    load: Counter[tuple[int, int]] = Counter()
    for c in found:
        for source, target in c.groups:
            if source != target:
                load[source, target] += c.bytes_sent / piece
    for source, target in sorted(load):
        if (target - source) % 8 not in (1, 7):
            raise Wrong(
                f"Device {source} sends to device {target}, which is no neighbour of it: those are {(source - 1) % 8} and {(source + 1) % 8}."
            )
    return load


def _judge_gather_both_ways(answer):
    x = np.arange(1, 49, dtype=np.float32).reshape(8, 6) / 2
    program = _quickly(on_eight(part(answer, (48,)), P("i"), P("i")).lower(x.ravel()))
    rows = np.asarray(program(x.ravel())).reshape(8, 8, 6)
    load = _sends(cost(program), 24)
    _refuse_places(rows, np.broadcast_to(x, (8, 8, 6)), "block", set(load))
    right, left = (max(load[i, (i + step) % 8] for i in range(8)) for step in (1, -1))
    if max(right, left) > 4.01:
        way, other = ("right", "left") if right > left else ("left", "right")
        raise Wrong(
            f"Right values, and {max(right, left):.3g} blocks go to the {way}, {min(right, left):.3g} to the {other}; at most 4 in one direction "
            "are asked. How far from its device does a block have to travel each way?"
        )
    if right + left > 7.01:
        raise Wrong(
            f"Right values, and a device sends {right + left:.3g} blocks, {right:.3g} to the right and {left:.3g} to the left; 7 are enough. "
            "Which block arrives twice?"
        )


@exercise(
    _judge_gather_both_ways,
    "After `step` sends to the left you hold the block that began `step` devices to your right. Four steps to one side and three "
    "to the other meet.",
)
def gather_both_ways(block):
    """Per device: its block (k,) -> all eight, (8 * k,), by sends to both sides."""
    me, left, right = jax.lax.axis_index("i"), block, block
    out = jnp.zeros((8, *block.shape), block.dtype).at[me].set(block)
    for step in range(1, 5):
        right = jax.lax.ppermute(right, "i", [(i, (i + 1) % 8) for i in range(8)])
        out = out.at[(me - step) % 8].set(right)
        if step < 4:
            left = jax.lax.ppermute(left, "i", [(i, (i - 1) % 8) for i in range(8)])
            out = out.at[(me + step) % 8].set(left)
    return out.reshape(-1)


def _judge_rotating_transposed(answer):
    rng = np.random.default_rng(0)
    g, b = _values(rng, 24, 5), _values(rng, 16, 5)
    program = _quickly(on_eight(part(answer, (3, 16)), P("i"), P("i")).lower(g, b))
    rows = np.asarray(program(g, b)).reshape(8, 3, 8, 2).swapaxes(1, 2)
    blocks = np.einsum("drm,pkm->dprk", g.reshape(8, 3, 5), b.reshape(8, 2, 5))
    found = cost(program)
    if any(c.kind == "all-gather" for c in found):
        raise Wrong("You use all-gather, and then a device holds all of b. Let its pieces pass, by jax.lax.ppermute.")
    load = _sends(found, 40)
    if load and np.allclose(rows, np.einsum("prm,dkm->dprk", g.reshape(8, 3, 5), b.reshape(8, 2, 5)), rtol=1e-5):
        raise Wrong(
            "On device 0, at place 1, stand rows of g from device 1 times the piece of b from device 0: g travels, where the "
            "pieces of b are to, and the result is to be of the device's own rows."
        )
    _refuse_places(rows, blocks, "slice", set(load))
    large = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((64, 256), (768, 256))]
    found, piece = cost(_quickly(on_eight(part(answer, (8, 768)), P("i"), P("i")).lower(*large))), 96 * 256 * 4
    sent = found.bytes_sent / piece
    if sent > 7.01:
        raise Wrong(
            f"Right values, and a device sends {sent:.3g} pieces of b; 7 are enough. What does the last send carry?"
        )
    if found.memory.temporaries > 4 * piece:
        room = found.memory.temporaries / piece
        raise Wrong(
            f"Right values, and a device holds {room:.2g} pieces of b in between; at most 4 are asked. Which values do you keep?"
        )


@exercise(
    _judge_rotating_transposed,
    "Each piece of b gives one slice of the result's columns: g @ piece.T. After `step` sends to the right you hold the piece "
    "that began `step` devices to your left.",
)
def rotating_transposed(g, b):
    """Per device: g (r, m) and its piece of b, (k, m) -> g times b.T, (r, 8 * k)."""
    me, k = jax.lax.axis_index("i"), b.shape[0]
    out = jnp.zeros((g.shape[0], 8 * k))
    for step in range(8):
        if step:
            b = jax.lax.ppermute(b, "i", [(i, (i + 1) % 8) for i in range(8)])
        place = (me - step) % 8 * k
        out = jax.lax.dynamic_update_slice_in_dim(out, g @ b.T, place, axis=1)
    return out
