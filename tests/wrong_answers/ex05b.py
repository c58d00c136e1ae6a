"""Wrong and right answers to the exercises of notebook 05b, and wrong guesses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from utils.compat import varying
from utils.exercises import ex05b

RIGHT_PAIRS, LEFT_PAIRS = ([(i, (i + step) % 8) for i in range(8)] for step in (1, -1))


def squares(w, x, y, real):
    return (real * (x @ w - y) ** 2).sum()


def of_loss(loss, after=lambda g: g, own_copy=False):
    def gradient(w, *rest):
        start = varying(w, "i") if own_copy else w
        return after(jax.grad(lambda w: loss(w, *rest))(start))

    return gradient


def psum(value):
    return lax.psum(value, "i")


def pmean(value):
    return lax.pmean(value, "i")


def gathered(*values):
    return [lax.all_gather(value, "i", tiled=True) for value in values]


def right_loss(w, x, y, real):
    return psum(squares(w, x, y, real)) / psum(real.sum())


def part_loss(w, x, y, real):
    return squares(w, x, y, real) / psum(real.sum())


def mean_of_means(w, x, y, real):
    return pmean(squares(w, x, y, real) / real.sum())


def weighted_means(w, x, y, real):
    return psum(real.sum() * (squares(w, x, y, real) / real.sum())) / psum(real.sum())


def by_hand(factor):
    def gradient(w, x, y, real):
        return factor * psum((real * (x @ w - y)) @ x) / psum(real.sum())

    return gradient


def by_vjp(w, x, y, real):
    total, back = jax.vjp(lambda w: right_loss(w, x, y, real), w)
    return back(jnp.ones_like(total))[0]


def masked_late(w, x, y, real):
    rows = jax.vmap(jax.grad(lambda w, x, y: (x @ w - y) ** 2), (None, 0, 0))(w, x, y)
    return (rows * real[:, None]).sum(0) / psum(real.sum())


def two_axes(predict, mean, after=lambda g: g, own_copy=False):
    """The gradient of mean(squares of predict(x @ w) - y)."""

    def gradient(w, x, y):
        start = varying(w, "data") if own_copy else w
        return after(jax.grad(lambda w: mean((predict(x @ w) - y) ** 2))(start))

    return gradient


def over(f, *axes):
    return lambda value: f(value, axes if len(axes) > 1 else axes[0])


def along(mean, *axes):
    return lambda squares: lax.pmean(mean(squares), axes if len(axes) > 1 else axes[0])


BY_MODEL, BY_DATA, BY_BOTH = over(lax.psum, "model"), over(lax.psum, "data"), over(lax.psum, "data", "model")
MEAN = along(jnp.mean, "data")


def two_axes_by_hand(w, x, y):
    off = lax.psum(x @ w, "model") - y
    return 2 * lax.psum(off @ x, "data") / (3 * lax.psum(1, "data"))


def two_axes_gathered(w, x, y):
    """Right values, by all the rows on every device, typed as varying along data."""
    x, y = (lax.all_gather(value, "data", tiled=True) for value in (x, y))
    return jax.grad(lambda w: ((lax.psum(x @ w, "model") - y) ** 2).mean())(varying(w, "data"))


def two_axes_of_all_weights(w, x, y):
    w, x = lax.all_gather(w, "model", tiled=True), lax.all_gather(x, "model", axis=1, tiled=True)
    return jax.grad(lambda w: lax.pmean(((x @ w - y) ** 2).mean(), "data"))(w)


def both_ways(to_right, to_left, right=-1, left=1, own=True, wrap=True):
    """Gather by so many sends to each side; what arrives stands at me + right * step, me + left * step."""

    def gather(block):
        me = lax.axis_index("i")
        out = varying(jnp.zeros((8, *block.shape)), "i").at[me].set(block if own else 0 * block)
        for pairs, steps, sign in ((RIGHT_PAIRS, to_right, right), (LEFT_PAIRS, to_left, left)):

            def send(carry, step, pairs=pairs, sign=sign):
                passing, out = lax.ppermute(carry[0], "i", pairs), carry[1]
                place = me + sign * step
                return (passing, out.at[place % 8 if wrap else place].set(passing)), None

            (_, out), _ = lax.scan(send, (block, out), jnp.arange(1, steps + 1))
        return out.reshape(-1)

    return gather


def middle_twice(block):
    me, right, left = lax.axis_index("i"), block, block
    out = varying(jnp.zeros((8, *block.shape)), "i").at[me].add(block)
    for step in range(1, 5):
        right, left = lax.ppermute(right, "i", RIGHT_PAIRS), lax.ppermute(left, "i", LEFT_PAIRS)
        out = out.at[(me - step) % 8].add(right).at[(me + step) % 8].add(left)
    return out.reshape(-1)


def in_halves(block):
    """The first half of each block to the right, the second to the left, seven sends each."""
    cut = block.size // 2
    me, parts = lax.axis_index("i"), []
    for half, pairs, sign in ((block[:cut], RIGHT_PAIRS, -1), (block[cut:], LEFT_PAIRS, 1)):
        out = jnp.zeros((8, *half.shape)).at[me].set(half)
        for step in range(1, 8):
            half = lax.ppermute(half, "i", pairs)
            out = out.at[(me + sign * step) % 8].set(half)
        parts.append(out)
    return jnp.concatenate(parts, axis=1).reshape(-1)


def by_scan(block):
    me = lax.axis_index("i")

    def step(carry, number):
        right, left, out = carry
        right, left = lax.ppermute(right, "i", RIGHT_PAIRS), lax.ppermute(left, "i", LEFT_PAIRS)
        out = out.at[(me - number) % 8].set(right).at[(me + number) % 8].set(left)
        return (right, left, out), None

    start = varying(jnp.zeros((8, *block.shape)), "i").at[me].set(block)
    (right, _, out), _ = lax.scan(step, (block, block, start), jnp.arange(1, 4))
    return out.at[(me + 4) % 8].set(lax.ppermute(right, "i", RIGHT_PAIRS)).reshape(-1)


def by_roll(block):
    """In the order of arrival, then turned into place."""
    right, left = [block], []
    for _ in range(3):
        right.append(lax.ppermute(right[-1], "i", RIGHT_PAIRS))
    for _ in range(4):
        left.append(lax.ppermute((left or [block])[-1], "i", LEFT_PAIRS))
    stacked = jnp.stack([*right[::-1], *left])  # blocks me - 3 ... me + 4
    return jnp.roll(stacked, lax.axis_index("i") - 3, axis=0).reshape(-1)


def in_order_of_arrival(block):
    right, left = [block], [block]
    for _ in range(4):
        right.append(lax.ppermute(right[-1], "i", RIGHT_PAIRS))
    for _ in range(3):
        left.append(lax.ppermute(left[-1], "i", LEFT_PAIRS))
    return jnp.concatenate([*right, *left[1:]])


def direct_jumps(block):
    me = lax.axis_index("i")
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 8):
        arrived = lax.ppermute(block, "i", [(i, (i - step) % 8) for i in range(8)])
        out = out.at[(me + step) % 8].set(arrived)
    return out.reshape(-1)


def own_each_time(block):
    """Sends its own block again and again."""
    me = lax.axis_index("i")
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 5):
        out = out.at[(me - step) % 8].set(lax.ppermute(block, "i", RIGHT_PAIRS))
    for step in range(1, 4):
        out = out.at[(me + step) % 8].set(lax.ppermute(block, "i", LEFT_PAIRS))
    return out.reshape(-1)


def without_wrap(block):
    me, right, left = lax.axis_index("i"), block, block
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 5):
        right = lax.ppermute(right, "i", [(i, i + 1) for i in range(7)])
        out = out.at[(me - step) % 8].set(right)
        if step < 4:
            left = lax.ppermute(left, "i", [(i, i - 1) for i in range(1, 8)])
            out = out.at[(me + step) % 8].set(left)
    return out.reshape(-1)


def adding(block):
    me, right, left = lax.axis_index("i"), block, block
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 5):
        right = lax.ppermute(right, "i", RIGHT_PAIRS) + block
        out = out.at[(me - step) % 8].set(right)
    for step in range(1, 4):
        left = lax.ppermute(left, "i", LEFT_PAIRS) + block
        out = out.at[(me + step) % 8].set(left)
    return out.reshape(-1)


def way_back(pairs=RIGHT_PAIRS, sign=-1, sends=7, product=lambda g, piece: g @ piece.T, modulo=True, wide=True):
    """Place the slice of each piece that passes."""

    def transposed(g, b):
        me, k = lax.axis_index("i"), b.shape[0]

        def put(out, piece, step):
            place = me + sign * step
            return out.at[:, place % 8 if modulo else place].set(product(g, piece))

        def turn(carry, step):
            out, piece = carry
            return (put(out, piece, step), lax.ppermute(piece, "i", pairs)), None

        start = varying(jnp.zeros((g.shape[0], 8, k)), "i")
        (out, last), _ = lax.scan(turn, (start, b), jnp.arange(sends))
        out = put(out, last, sends)
        return out.reshape(g.shape[0], -1) if wide else out.sum(1)

    return transposed


def way_back_by_scan(g, b):
    me, k = lax.axis_index("i"), b.shape[0]

    def step(carry, number):
        out, piece = carry
        arriving = lax.ppermute(piece, "i", LEFT_PAIRS)
        out = lax.dynamic_update_slice(out, g @ piece.T, (0, (me + number) % 8 * k))
        return (out, arriving), None

    start = varying(jnp.zeros((g.shape[0], 8 * k)), "i")
    (out, last), _ = lax.scan(step, (start, b), jnp.arange(7))
    return lax.dynamic_update_slice(out, g @ last.T, (0, (me + 7) % 8 * k))


def way_back_both_ways(g, b, to_left=3):
    me, k, right, left = lax.axis_index("i"), b.shape[0], b, b
    out = varying(jnp.zeros((8, g.shape[0], k)), "i").at[me].set(g @ b.T)
    for step in range(1, 5):
        right = lax.ppermute(right, "i", RIGHT_PAIRS)
        out = out.at[(me - step) % 8].set(jnp.einsum("rm,km->rk", g, right))
        if step <= to_left:
            left = lax.ppermute(left, "i", LEFT_PAIRS)
            out = out.at[(me + step) % 8].set(jnp.einsum("rm,km->rk", g, left))
    return out.swapaxes(0, 1).reshape(g.shape[0], -1)


def way_back_rolled(g, b):
    slices = [g @ b.T]
    for _ in range(7):
        b = lax.ppermute(b, "i", LEFT_PAIRS)
        slices.append(g @ b.T)
    return jnp.roll(jnp.concatenate(slices, axis=1), lax.axis_index("i") * len(b), axis=1)


def way_back_in_order_of_arrival(g, b):
    slices = [g @ b.T]
    for _ in range(7):
        b = lax.ppermute(b, "i", RIGHT_PAIRS)
        slices.append(g @ b.T)
    return jnp.concatenate(slices, axis=1)


def way_back_of_kept_pieces(g, b):
    """Collect all of b by sends, then one product."""
    me = lax.axis_index("i")
    whole = varying(jnp.zeros((8, *b.shape)), "i").at[me].set(b)
    for step in range(1, 8):
        b = lax.ppermute(b, "i", RIGHT_PAIRS)
        whole = whole.at[(me - step) % 8].set(b)
    return g @ whole.reshape(-1, b.shape[1]).T


def way_back_without_width(g, b):
    me, out = lax.axis_index("i"), jnp.zeros((g.shape[0], 8 * b.shape[0]))
    for step in range(8):
        out = lax.dynamic_update_slice_in_dim(out, g @ b.T, (me - step) % 8, axis=1)
        b = lax.ppermute(b, "i", RIGHT_PAIRS) if step < 7 else b
    return out


def way_back_of_travelling_g(g, b):
    me = lax.axis_index("i")
    out = varying(jnp.zeros((8, g.shape[0], len(b))), "i")
    for step in range(8):
        out = out.at[(me - step) % 8].set(g @ b.T)
        g = lax.ppermute(g, "i", RIGHT_PAIRS) if step < 7 else g
    return out.swapaxes(0, 1).reshape(g.shape[0], -1)


def way_back_with_shared_start(g, b):
    def step(carry, number):
        out, piece = carry
        at = (lax.axis_index("i") - number) % 8 * len(b)
        out = lax.dynamic_update_slice_in_dim(out, g @ piece.T, at, axis=1)
        return (out, lax.ppermute(piece, "i", RIGHT_PAIRS)), None

    return lax.scan(step, (jnp.zeros((g.shape[0], 8 * len(b))), b), jnp.arange(8))[0][0]


def way_back_of_own_piece(g, b):
    me, k = lax.axis_index("i"), b.shape[0]
    out = varying(jnp.zeros((g.shape[0], 8, k)), "i")
    for step in range(8):
        piece = lax.ppermute(b, "i", RIGHT_PAIRS) if step else b
        out = out.at[:, (me - step) % 8].set(g @ piece.T)
    return out.reshape(g.shape[0], -1)


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex05b.masked_gradient: [
        (of_loss(right_loss, after=psum), "8 times too large"),
        (of_loss(part_loss, after=psum), "8 times too large"),
        (of_loss(part_loss, own_copy=True), "of its own rows, divided by the number of all. Nothing adds up the eight"),
        (of_loss(part_loss, after=pmean, own_copy=True), "an eighth of the right one"),
        (of_loss(right_loss, after=pmean, own_copy=True), "an eighth of the right one"),
        (of_loss(mean_of_means), "that of the mean of eight means"),
        (of_loss(lambda *a: squares(*a) / a[3].sum()), "the sum of eight means"),
        (of_loss(lambda *a: squares(*a) / a[3].sum(), own_copy=True), "that of the mean over its own rows"),
        (of_loss(lambda *a: psum(squares(*a)) / 48), "you divide by the number of rows, padding included"),
        (of_loss(lambda *a: pmean(squares(*a) / 6)), "you divide by the number of rows, padding included"),
        (of_loss(lambda *a: squares(*a) / 6), "the number of rows of one device, padding included"),
        (
            of_loss(lambda w, x, y, real: pmean(((x @ w - y) ** 2).mean())),
            "the padding is counted as if it were real",
        ),
        (of_loss(lambda w, x, y, real: ((x @ w - y) ** 2).mean()), "8 times that of the mean over all 48 rows"),
        (
            of_loss(lambda w, x, y, real: psum(((x @ w - y) ** 2).sum()) / psum(real.sum())),
            "without the mask in the squares",
        ),
        (of_loss(lambda *a: psum(squares(*a)) / a[3].sum()), "divided by each device's own count"),
        (of_loss(lambda w, *a: squares(w, *gathered(*a)) / psum(a[2].sum())), "8 times too large"),
        (
            of_loss(lambda w, *a: squares(w, *gathered(*a)) / psum(a[2].sum()), own_copy=True),
            "their type is float32[5]{V:i}",
        ),
        (of_loss(squares), "that of the sum of the squares"),
        (
            of_loss(lambda w, x, y, real: psum(((x @ w - real * y) ** 2).sum()) / psum(real.sum())),
            "with the mask on y alone",
        ),
        (of_loss(lambda w, x, y, real: psum((x @ w - y) @ real) / psum(real.sum())), "that of the differences"),
        (of_loss(lambda *a: psum(squares(*a)) / pmean(a[3].sum())), "or do you divide by the devices' mean count?"),
        (of_loss(lambda *a: pmean(squares(*a)) / psum(a[3].sum())), "Where is a pmean that should be a psum?"),
        (
            of_loss(lambda *a: psum(squares(*a)) / psum(a[3].mean())),
            "6 times too large: you divide by the mean of `real`",
        ),
        (of_loss(lambda *a: psum(squares(*a)) / lax.pmax(a[3].sum(), "i")), "by what is it divided?"),
        (masked_late, "masked too late"),
        (of_loss(lambda w, x, y, real: right_loss(w, x, y, 1 - real)), "that of the padded rows"),
        (
            of_loss(lambda *a: psum(squares(*a[:3], 1 - a[3]).sum()) / psum(a[3].sum())),
            "of the squares of the padded rows",
        ),
        (by_hand(1), "half of the right one"),
        (by_hand(-2), "with its sign turned"),
        (of_loss(lambda w, x, y, real: right_loss(w, x[:4], y[:4], real[:4])), "is it divided"),
        (of_loss(weighted_means), "Where a device has no real row at all, your gradient is nan"),
        (
            of_loss(lambda w, *a: squares(w, *gathered(*a)) / psum(a[2].sum()), after=pmean, own_copy=True),
            "bytes; at most 100 are asked",
        ),
        (lambda w, x, y, real: jax.grad(right_loss)(w, x, y, real) * real, "raised TypeError"),
        (right_loss, "returns an array of shape (); expected (5,)"),
        (lambda w, x, y, real: np.asarray(w), "raised TracerArrayConversionError"),
    ],
    ex05b.two_axis_gradient: [
        (two_axes(lambda p: p, MEAN), "that of partial predictions"),
        (two_axes(lambda p: p, jnp.mean), "that of partial predictions, and too large"),
        (two_axes(BY_DATA, MEAN), "predictions which are added up along `data`"),
        (two_axes(BY_DATA, jnp.mean), "that of predictions which are added up along"),
        (two_axes(BY_BOTH, MEAN), "added up along both axes"),
        (two_axes(BY_BOTH, jnp.mean), "added up along both axes"),
        (two_axes(BY_MODEL, jnp.mean), "too large by the number of devices along `data`"),
        (two_axes(BY_MODEL, MEAN, after=BY_DATA), "too large by the number of devices along `data`"),
        (two_axes(BY_MODEL, jnp.mean, after=BY_DATA), "too large by the number of devices along `data`, squared"),
        (two_axes(BY_MODEL, lambda s: lax.psum(s.mean(), "model")), "too large by the number of all devices"),
        (
            two_axes(BY_MODEL, lambda s: lax.psum(s.mean(), ("data", "model"))),
            "along `model`",
        ),  # 0.7.2 accepts it, 0.10.2 refuses it
        (two_axes(BY_MODEL, lambda s: lax.psum(MEAN(s), "model")), "too large by the number of devices along `model`"),
        (two_axes(over(lax.pmean, "model"), MEAN), "a product is a sum over columns, not a mean"),
        (two_axes(BY_MODEL, MEAN, after=BY_MODEL), "a sum along `model` of gradients by different weights"),
        (two_axes(BY_MODEL, MEAN, after=over(lax.pmean, "model")), "a mean along `model` of gradients"),
        (two_axes(BY_MODEL, jnp.mean, own_copy=True), "along `data` nothing is added up"),
        (
            two_axes(BY_MODEL, MEAN, own_copy=True),
            "divided by the number of all rows: along `data` nothing is added up",
        ),
        (two_axes(BY_MODEL, lambda s: lax.psum(s.sum(), "data")), "that of the sum over all rows, not of the mean"),
        (two_axes(BY_MODEL, lambda s: MEAN(s) / 2), "half of the right one"),
        (two_axes(BY_MODEL, MEAN, after=lambda g: -g), "with its sign turned"),
        (two_axes(BY_MODEL, MEAN, after=over(lax.pmean, "data"), own_copy=True), "you divide by it twice"),
        (two_axes(BY_DATA, along(jnp.mean, "model")), "the two axes have changed places"),
        (two_axes(BY_MODEL, along(jnp.sum, "data")), "3 times too large"),
        (
            lambda w, x, y: jax.grad(lambda w: MEAN(lax.psum(x @ w - y, "model") ** 2))(w),
            "y is subtracted once, from the whole sum",
        ),
        (two_axes(lambda p: p, along(jnp.mean, "data", "model")), "the loss needs nothing there"),
        (two_axes(BY_MODEL, lambda s: s.mean() / 2), "right on the 2 by 4 mesh, and on the 4 by 2 mesh 2 times"),
        (
            two_axes(BY_MODEL, jnp.mean, after=over(lax.pmean, "model"), own_copy=True),
            "and a mean along `model` of gradients by different weights",
        ),
        (two_axes(BY_MODEL, jnp.mean, after=BY_MODEL, own_copy=True), "and a sum along `model` of gradients"),
        (two_axes(BY_MODEL, MEAN, after=BY_BOTH), "along `"),  # 0.7.2 gives a sum, 0.10.2 refuses it
        (two_axes_gathered, "Right values on every device, and their type is float32[5]{V:(data,model)}"),
        (two_axes_of_all_weights, "returns an array of shape"),
        (lambda w, x, y: None, "Does it end with `return`?"),
    ],
    ex05b.gather_both_ways: [
        (both_ways(7, 0), "7 blocks go to the right, 0 to the left; at most 4"),
        (both_ways(4, 4), "a device sends 8 blocks, 4 to the right and 4 to the left; 7 are enough"),
        (both_ways(5, 2), "5 blocks go to the right, 2 to the left"),
        (both_ways(3, 3), "It has 7 of the 8, and block 4 is not among them: it never came"),
        (both_ways(4, 3, right=1, left=-1), "after one send device 0 holds block 7, and you put it at place 1"),
        (both_ways(4, 3, left=-1), "after one send device 0 holds block 1, and you put it at place 7"),
        (both_ways(4, 3, own=False), "On device 0, at place 0, stands nothing (zeros)"),
        (both_ways(4, 3, wrap=False), "or outside of the array"),
        (in_order_of_arrival, "in an order that begins at the device itself"),
        (direct_jumps, "which is no neighbour of it"),
        (own_each_time, "does each step send on what has arrived?"),
        (without_wrap, "No pair sends from device 7 to device 0"),
        (middle_twice, "stands twice block 4"),
        (adding, "is what arrives added up, where it is to be kept?"),
        (lambda block: lax.all_gather(block, "i", tiled=True), "You use all-gather; only sends"),
        (lambda block: lax.all_gather(block, "i"), "shape (8, 6); expected (48,)"),
        (lambda block: in_halves(block).reshape(8, -1), "shape (8, 6); expected (48,)"),
    ],
    ex05b.rotating_transposed: [
        (lambda g, b: g @ lax.all_gather(b, "i", tiled=True).T, "You use all-gather, and then a device holds all of b"),
        (way_back(sign=1), "after one send device 0 holds slice 7, and you put it at place 1"),
        (way_back(pairs=LEFT_PAIRS), "after one send device 0 holds slice 1, and you put it at place 7"),
        (way_back(sends=6), "It has 7 of the 8, and slice 1 is not among them: it never came"),
        (lambda g, b: way_back_both_ways(g, b, 4), "a device sends 8 pieces of b; 7 are enough"),
        (way_back(modulo=False, sign=1, pairs=LEFT_PAIRS), "or outside of the array"),
        (way_back(pairs=[(i, i + 1) for i in range(7)]), "No pair sends from device 7 to device 0"),
        (way_back(wide=False), "returns an array of shape (3, 2); expected (3, 16)"),
        (way_back(product=lambda g, piece: g @ piece), "Your function raised "),
        (way_back_in_order_of_arrival, "in an order that begins at the device itself"),
        (way_back_of_travelling_g, "g travels, where the pieces of b are to"),
        (way_back_with_shared_start, "input carry component"),
        (way_back_without_width, "are they written one over the other?"),
        (way_back_of_own_piece, "does each step send on what has arrived?"),
        (way_back_of_kept_pieces, "pieces of b in between; at most 4 are asked"),
        (way_back(pairs=[(i, (i + 3) % 8) for i in range(8)], sign=-3), "which is no neighbour of it"),
        (lambda g, b: jnp.tile(g @ b.T, 8), "hold its own slice: what arrives is not used"),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex05b.masked_gradient: [
        of_loss(part_loss),
        of_loss(part_loss, after=psum, own_copy=True),
        by_hand(2),
        by_vjp,
        jax.jit(of_loss(right_loss, after=pmean)),
        of_loss(part_loss, after=pmean),
        of_loss(lambda w, x, y, real: psum(jnp.where(real > 0, (x @ w - y) ** 2, 0).sum()) / psum(real).sum()),
        of_loss(lambda w, x, y, real: psum(((real[:, None] * x) @ w - real * y) @ (x @ w - y)) / psum(real.sum())),
        lambda w, x, y, real: jax.value_and_grad(right_loss)(w, x, y, real)[1],
    ],
    ex05b.two_axis_gradient: [
        two_axes_by_hand,
        two_axes(BY_MODEL, lambda s: lax.pmean(MEAN(s), "model")),
        two_axes(BY_MODEL, jnp.mean, after=over(lax.pmean, "data"), own_copy=True),
        two_axes(BY_MODEL, MEAN, after=over(lax.pmean, "data")),
        two_axes(BY_MODEL, lambda s: s.mean() / lax.psum(1, "data")),
        two_axes(BY_MODEL, lambda s: lax.psum(s.sum(), "data") / lax.psum(jnp.ones_like(s).sum(), "data")),
        jax.jit(two_axes(lambda p: lax.all_gather(p, "model").sum(0), along(jnp.mean, "data", "model"))),
    ],
    ex05b.gather_both_ways: [both_ways(4, 3), both_ways(3, 4), in_halves, by_scan, by_roll, jax.jit(both_ways(4, 3))],
    ex05b.rotating_transposed: [
        way_back(),
        way_back(pairs=LEFT_PAIRS, sign=1),
        way_back_by_scan,
        way_back_both_ways,
        way_back_rolled,
        jax.jit(way_back(product=lambda g, piece: lax.dot_general(g, piece, (((1,), (1,)), ((), ()))))),
    ],
}

# exercise: changes of the solution in one place that compute the same
SAME = {
    ex05b.masked_gradient: [
        (
            "return jax.lax.psum(squares, 'i') / jax.lax.psum(real.sum(), 'i') -> "
            "return squares / jax.lax.psum(real.sum(), 'i')",
            "the gradient by a shared w adds up what the devices' own losses give",
        ),
        (
            "squares = (real * (x @ w - y) ** 2).sum() -> squares = (real * (y - x @ w) ** 2).sum()",
            "the square of a difference has no sign",
        ),
    ],
    ex05b.two_axis_gradient: [
        (
            "return jax.lax.pmean(((predicted - y) ** 2).mean(), 'data') -> "
            "return jax.lax.pmean(((y - predicted) ** 2).mean(), 'data')",
            "the square of a difference has no sign",
        ),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex05b.gradient_type: (
        {"by the shared w": "float32[]", "by an own copy": "float32[]{V:i}", "by x": "float32[1]{V:i}"},
        [
            (("float32[]{V:i}", None, None), "with eight gradients it would become eight"),
            ((None, "float32[]", None), "a copy of its own, and so a gradient of its own"),
            ((None, None, "float32[8]"), "sees its part of x"),
            ((None, None, "float32[1]"), "an x of its own"),
        ],
    ),
    ex05b.on_device_2: (  # 0 + 1 + ... + 7 = 28
        {"grad(local)": 28, "grad(psum of local)": 28, "psum(grad(local))": 224, "pmean(grad(local))": 28},
        [
            ((2, None, None, None), "w is shared, so the eight are added up"),
            ((None, 224, None, None), "counts once"),
            ((None, 16, None, None), "both count once"),
            ((None, None, 28, None), "28 is on every device before this psum"),
            ((None, None, None, 3.5), "28 is on every device before this pmean"),
        ],
    ),
    ex05b.all_reduces: (
        {"grad(local)": 1, "grad(psum of local)": 1, "psum(grad(local))": 2, "pmean(grad(local))": 2},
        [
            ((0, None, None, None), "the transpose of pvary is one"),
            ((None, 2, None, None), "nothing needs the first psum"),
            ((None, None, 1, None), "on top of the one that JAX puts in"),
            ((None, None, None, 1), "on top of the one that JAX puts in"),
        ],
    ),
    ex05b.unchecked_on_2: (
        {"grad(local)": 2, "grad(psum of local)": 16, "psum(grad(local))": 28, "pmean(grad(local))": 3.5},
        [
            ((28, None, None, None), "and so no sum"),
            ((None, 2, None, None), "there are eight losses now"),
            ((None, 28, None, None), "w is the device's own now"),
            ((None, None, 224, None), "the device's own now, 0 to 7"),
            ((None, None, None, 28), "the device's own now, 0 to 7"),
            ((None, None, None, 2), "the mean of 0 to 7"),
        ],
    ),
    ex05b.on_top: (
        {
            "mean inside, then pmean": 1,
            "mean of the gathered": 8,
            "local, then pmean": 8,
            "local, then psum": 64,
        },
        [
            ((8, None, None, None), "the mean of eight equal numbers"),
            ((None, 1, None, None), "typed as varying: eight losses"),
            ((None, None, 1, None), "before the pmean it is the sum"),
            ((None, None, None, 8), "before the psum it is the sum"),
        ],
    ),
    ex05b.mean_unchecked: (
        "differs",
        [("right", "nothing adds up the eight gradients"), ("8 times", "nothing adds up"), (8, "expected 'right'")],
    ),
    ex05b.accumulated: (  # 2 x 7/8 x 16 bytes, four times and once
        {"shared w": 112, "own copy": 28},
        [
            ((28, None), "each of the four rounds"),
            ((140, None), "the same on all devices already"),
            ((None, 112), "one all-reduce comes at the end"),
            ((None, 16), "2 x 7/8 of its operand"),
        ],
    ),
    ex05b.naive_bytes: (  # 7 x 4,096
        28_672,
        [
            (32_768, "its own it has"),
            (7_168, "the bound, and also the count of the numbers"),
            (4_096, "one send"),
            (229_376, "you count all eight devices"),
        ],
    ),
    ex05b.other_start: (
        4,
        [(3, "one device further to the left"), (2, "that is the right neighbour"), (7, "count modulo 8")],
    ),
    ex05b.same_copies: (
        {"naive": "no", "ring": "yes", "psum": "yes"},
        [
            (("yes", None, None), "in another order"),
            ((None, "no", None), "finished on one device"),
            ((None, None, "no"), "one value"),
        ],
    ),
    ex05b.sent_back: (  # 2 arrives, 4 comes back
        6,
        [
            (2, "stands in another loss"),
            (4, "in its own loss, too"),
            (3, "its x itself"),
            (28, "two losses, not in all"),
        ],
    ),
    ex05b.through: (
        {"psum": 1, "ring": 8},
        [((8, None), "counts once"), ((None, 1), "JAX cannot know"), ((0.125, None), "nothing divides")],
    ),
    ex05b.more_room: ("rotating", [("gathered", "keeps each piece"), ("the same", "and some more"), (2, "expected")]),
    ex05b.mean_first: (  # 2 x 3/4 x 128 float32
        768,
        [
            (24_576, "of one row now, not of 32"),
            (512, "2 x 3/4 of its operand"),
            (384, "there and back"),
            (192, "you count numbers"),
            (3_072, "128 numbers after the second product"),
        ],
    ),
    ex05b.whole_weights: (0, [(768, "no partial sum"), (24_576, "no partial sum"), (512, "the pmean along x")]),
}
