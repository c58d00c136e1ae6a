"""Wrong and right answers to the exercises of notebook 05, and wrong guesses."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from utils.compat import varying
from utils.exercises import ex05

RIGHTWARDS = [(i, i + 1) for i in range(7)]
LEFTWARDS = [(i + 1, i) for i in range(7)]
RING = [(i, (i + 1) % 8) for i in range(8)]


def with_neighbour(pairs=RIGHTWARDS, send=lambda x: x[-1:], axis="i", sign=1):
    def differences(x):
        before = lax.ppermute(send(x), axis, pairs)
        return sign * (x - jnp.concatenate([before, x[:-1]]))

    return differences


def first_is_zero(x):
    return with_neighbour()(x).at[0].set(jnp.where(lax.axis_index("i") == 0, 0, with_neighbour()(x)[0]))


def forward(x):
    after = lax.ppermute(x[:1], "i", LEFTWARDS)
    return jnp.concatenate([x[1:], after]) - x


def sends_all(x):
    return x - jnp.concatenate([lax.ppermute(x, "i", RIGHTWARDS)[-1:], x[:-1]])


def gathers_all_first(x):
    whole = lax.all_gather(x, "i", tiled=True)
    return lax.dynamic_slice_in_dim(jnp.diff(whole, prepend=0), lax.axis_index("i") * len(x), len(x))


def by_gathered_lasts(x):
    lasts, me = lax.all_gather(x[-1], "i"), lax.axis_index("i")
    return jnp.diff(x, prepend=jnp.where(me == 0, 0.0, lasts[me - 1]))


def ring_without_the_last(x):
    before = lax.ppermute(x[-1:], "i", RING) * (lax.axis_index("i") > 0)
    return x - jnp.roll(x, 1).at[0].set(before[0])


def by_a_sum(x):
    me = lax.axis_index("i")
    lasts = lax.psum(jnp.zeros(9).at[me + 1].set(x[-1]), "i")
    return jnp.diff(jnp.append(lasts[me], x))


def through_halves(x):
    before = lax.ppermute(x[-1:].astype(jnp.bfloat16), "i", RIGHTWARDS).astype(x.dtype)
    return x - jnp.concatenate([before, x[:-1]])


def e_of(x):
    return jnp.exp(x - lax.pmax(x.max(), "i"))


def shifted_by(largest):
    def softmax(x):
        e = jnp.exp(x - largest(x))
        return e / lax.psum(e.sum(), "i")

    return softmax


def over(below):
    """exp(x - m) over something of it."""
    return lambda x: e_of(x) / below(e_of(x))


def gathers_all(x):
    whole = jax.nn.softmax(lax.all_gather(x, "i", tiled=True))
    return lax.dynamic_slice_in_dim(whole, lax.axis_index("i") * len(x), len(x))


def arrays_first(x):
    e = jnp.exp(x - lax.pmax(x, "i").max())
    return e / lax.psum(e, "i").sum()


def rescaled(x):
    """Each device its own softmax first, then the weights of the devices."""
    own = jax.nn.logsumexp(x)
    return jax.nn.softmax(x) * jax.nn.softmax(lax.all_gather(own, "i"))[lax.axis_index("i")]


def by_logarithm(x):
    m = lax.pmax(jnp.max(x), "i")
    return jnp.exp(x - m - jnp.log(lax.psum(jnp.sum(jnp.exp(x - m)), "i")))


def means(rows=("y",), columns=("x",), grand=("x", "y"), sign=1, reduce=lax.pmean):
    """The centred block, with these axes for the three means; None: without; (): the block's own."""

    def along(value, axes):
        return reduce(value, axes) if axes else value

    def centered(t):
        out = t
        if rows is not None:
            out = out - along(t.mean(axis=1), rows)[:, None]
        if columns is not None:
            out = out - along(t.mean(axis=0), columns)
        if grand is not None:
            out = out + sign * along(t.mean(), grand)
        return out

    return centered


def in_turn(t):
    """First the rows, then the columns of what is left."""
    t = t - lax.pmean(t.mean(axis=1, keepdims=True), "y")
    return t - lax.pmean(t.mean(axis=0, keepdims=True), "x")


def transposed(t):
    return means(("x",), ("y",))(t.T).T


def one_grand(t):
    rows = lax.pmean(t.mean(axis=1), "y")
    return t - rows[:, None] - lax.pmean(t.mean(axis=0), "x") + lax.pmean(rows.mean(), "x")


def by_sums(t):
    height, width = t.shape[0] * lax.psum(1, "x"), t.shape[1] * lax.psum(1, "y")
    rows, columns = lax.psum(t.sum(1), "y") / width, lax.psum(t.sum(0), "x") / height
    return t - rows[:, None] - columns[None, :] + lax.psum(t.sum(), ("y", "x")) / (height * width)


def divided_as_on_the_first_mesh(t):
    rows, columns = lax.psum(t.mean(1), "y") / 4, lax.psum(t.mean(0), "x") / 2
    return t - rows[:, None] - columns + lax.psum(t.mean(), ("x", "y")) / 8


def gathered_means(t):
    rows = lax.all_gather(t.mean(axis=1), "y").mean(axis=0)
    return (t - rows[:, None]) - lax.all_gather((t - rows[:, None]).mean(axis=0), "x").mean(axis=0)


def gathered_table(t):
    whole = lax.all_gather(lax.all_gather(t, "y", axis=1, tiled=True), "x", tiled=True)
    whole = whole - whole.mean(1, keepdims=True) - whole.mean(0) + whole.mean()
    (r, c), x, y = t.shape, lax.axis_index("x"), lax.axis_index("y")
    return lax.dynamic_slice(whole, (x * r, y * c), (r, c))


def whole_blocks(t):
    rows = lax.pmean(t, "y").mean(axis=1)
    return t - rows[:, None] - lax.pmean(t, "x").mean(axis=0) + lax.pmean(t, ("x", "y")).mean()


def following(
    keep=0.5, take=0.3, listen=0.2, agree=lax.pmax, start=None, outputs=None, loop=lax.scan, axis="i", late=False
):
    def follow(readings):
        def step(carry, reading):
            s, level = carry
            new = keep * s + take * reading + listen * level
            after = agree(new, axis)
            given = (new, level if late else after) if outputs is None else outputs((s, level), (new, after))
            return (new, after), given

        begin = start(readings) if start else (jnp.zeros_like(readings[0]), jnp.float32(0))
        return loop(step, begin, readings)[1]

    return follow


def python_loop(step, carry, xs):
    outputs = []
    for x in xs:
        carry, given = step(carry, x)
        outputs.append(given)
    return carry, tuple(map(jnp.stack, zip(*outputs, strict=True)))


def by_fori(readings):
    def step(k, state):
        s, level, every_s, levels = state
        s = 0.5 * s + 0.3 * readings[k] + 0.2 * level
        level = lax.pmax(s, "i")
        return s, level, every_s.at[k].set(s), levels.at[k].set(level)

    zeros = jnp.zeros_like(readings)
    state = zeros[0], lax.pmax(zeros[0], "i"), zeros, lax.pmax(zeros, "i")
    return lax.fori_loop(0, len(readings), step, state)[2:]


def by_while(readings):
    n, zeros = len(readings), jnp.zeros_like(readings)

    def step(state):
        k, s, level, every_s, levels = state
        s = 0.5 * s + 0.3 * readings[k] + 0.2 * level
        level = lax.pmax(s, "i")
        return k + 1, s, level, every_s.at[k].set(s), levels.at[k].set(level)

    state = 0, zeros[0], jnp.float32(0), zeros, jnp.zeros(n)
    return lax.while_loop(lambda state: state[0] < n, step, state)[3:]


def level_outside(readings):
    """Both start varying, and each level goes through a second pmax on its way out."""

    def step(carry, reading):
        s, level = carry
        s = 0.5 * s + 0.3 * reading + 0.2 * level
        level = varying(lax.pmax(s, "i"), "i")
        return (s, level), (s, level)

    zero = jnp.zeros_like(readings[0])
    every_s, levels = lax.scan(step, (zero, zero), readings)[1]
    return every_s, lax.pmax(levels, "i")


def local_level(readings):
    def step(carry, reading):
        s, level = carry
        s = 0.5 * s + 0.3 * reading + 0.2 * level
        return (s, jnp.maximum(level, s)), (s, jnp.maximum(level, s))

    return lax.scan(step, (0 * readings[0], 0 * readings[0]), readings)[1]


def level_of_the_old_s(readings):
    def step(carry, reading):
        s, level = carry
        new = 0.5 * s + 0.3 * reading + 0.2 * level, lax.pmax(s, "i")
        return new, new

    return lax.scan(step, (jnp.zeros_like(readings[0]), 0.0), readings)[1]


def agrees_at_the_end(readings):
    def step(s, reading):
        s = 0.5 * s + 0.3 * reading + 0.2 * s
        return s, s

    every_s = lax.scan(step, jnp.zeros_like(readings[0]), readings)[1]
    return every_s, lax.pmax(every_s, "i")


def gathered_level(readings):
    zero = jnp.zeros_like(readings[0])
    return following(agree=lambda s, axis: lax.all_gather(s, axis).max(), start=lambda r: (zero, zero))(readings)


def with_running_level(readings):
    def step(carry, reading):
        s, level = carry
        s = 0.5 * s + 0.3 * reading + 0.2 * level
        level = jnp.maximum(level, lax.pmax(s, "i"))
        return (s, level), (s, level)

    return lax.scan(step, (jnp.zeros_like(readings[0]), 0.0), readings)[1]


ZERO = jnp.float32

# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex05.differences: [
        (with_neighbour(RING), "the first number of all has device 7's last taken away, as in a ring"),
        (lambda x: jnp.diff(x, prepend=0), "the first number of each part has nothing taken away"),
        (lambda x: jnp.diff(x, prepend=x[:1]), "the first number of each part becomes 0"),
        (lambda x: x - jnp.roll(x, 1), "the last number of its own part"),
        (jnp.diff, "shape (4,); expected (5,)"),
        (with_neighbour(LEFTWARDS), "its right neighbour's last number"),
        (with_neighbour(send=lambda x: x[:1]), "its left neighbour's first number"),
        (with_neighbour(sign=-1), "the signs are the other way round"),
        (first_is_zero, "the first number of all becomes 0; what is before it is 0"),
        (forward, "each number is taken away from the one that comes after it"),
        (lambda x: -forward(x), "the number that comes after is taken away"),
        (lambda x: jnp.diff(x, prepend=lax.psum(x[-1:], "i")), "the sum of all eight last numbers"),
        (sends_all, "each device sends 20 bytes where a part has 5 numbers, 44 where it has 11"),
        (gathers_all_first, "what is sent grows with the vector. Which of a device's numbers"),
        (lambda x: x - lax.ppermute(x, "i", RIGHTWARDS), "the neighbour's number at the same place"),
        (with_neighbour(axis="x"), "Is the name of the axis right? This mesh has 'i'."),
        (with_neighbour(send=lambda x: x[-1]), "Your function raised "),
        (through_halves, "With parts of 5 numbers your result differs"),
        (lambda x: x, "nothing is taken away"),
        (lambda x: None, "Does it end with `return`?"),
    ],
    ex05.part_of_softmax: [
        (over(jnp.sum), "adds up to 8, not to 1: each device divides by the sum of its own part"),
        (jax.nn.softmax, "adds up to 8, not to 1"),
        (over(lambda e: lax.pmean(e.sum(), "i")), "by the mean of the eight sums"),
        (over(lambda e: lax.psum(lax.psum(e.sum(), "i"), "i")), "it adds up to 1/8"),
        (lambda x: jax.nn.softmax(x) / 8, "the softmax of that part alone, over 8"),
        (lambda x: jnp.log(e_of(x) / lax.psum(e_of(x).sum(), "i")), "the logarithm of the softmax"),
        (lambda x: (e := jnp.exp(lax.pmin(x.min(), "i") - x)) / lax.psum(e.sum(), "i"), "the sign is the other way"),
        (lambda x: x, "the scores themselves"),
        (shifted_by(jnp.max), "each device subtracts the largest score of its own part"),
        (shifted_by(lambda x: 0), "With 200 added to every score your result is not a number"),
        (shifted_by(lambda x: lax.pmean(x.max(), "i")), "With 200 added on device 0 alone your result is not a number"),
        (shifted_by(lambda x: lax.psum(x.max(), "i")), "or each of them is 0"),
        (shifted_by(lambda x: lax.pmin(x.min(), "i")), "is not the largest of all scores"),
        (lambda x: jnp.exp(x - jnp.log(lax.psum(jnp.exp(x).sum(), "i"))), "Right for small scores. With 200 added"),
        (shifted_by(lambda x: lax.pmax(jnp.abs(x).max(), "i")), "With 200 taken away"),
        (shifted_by(lambda x: jnp.maximum(lax.pmax(x.max(), "i"), 0)), "With 200 taken away from every score"),
        (shifted_by(lambda x: lax.pmax(x.mean(), "i")), "With 200 added to one score alone"),
        (shifted_by(lambda x: lax.psum(jnp.where(lax.axis_index("i") == 0, x.max(), 0), "i")), "on device 6"),
        (over(lambda e: lax.psum(e, "i")), "works across the devices, place by place"),
        (lambda x: (e := jnp.exp(x - lax.pmax(x, "i"))) / lax.psum(e.sum(), "i"), "another number at each place"),
        (over(lambda e: lax.pmax(e.sum(), "i")), "by the largest of the eight sums"),
        (lambda x: e_of(x) / lax.psum(jnp.exp(x).sum(), "i"), "and not in the sum below"),
        (lambda x: jnp.exp(x) / lax.psum(e_of(x).sum(), "i"), "and not above"),
        (lambda x: lax.psum(e_of(x) / e_of(x).sum(), "i"), "the quotients are added up across the devices"),
        (e_of, "nothing divides it"),
        (arrays_first, "what is sent grows with the vector. Reduce on the device first"),
        (gathers_all, "what is sent grows with the vector. Reduce on the device first"),
        (lambda x: jax.nn.softmax(lax.all_gather(x, "i", tiled=True)), "shape (88,); expected (11,)"),
        (lambda x: e_of(x) / lax.psum(e_of(x).sum(), "x"), "Is the name of the axis right? This mesh has 'i'."),
        (lambda x: None, "Does it end with `return`?"),
    ],
    ex05.centered: [
        (means((), (), ()), "those of the block alone; the mean that is added is that of the block"),
        (means(("x",), ("y",)), "taken along 'x', and the devices that share a row lie along 'y'; the columns' means"),
        (
            means((), ()),
            "the rows' means are those of the block alone; the columns' means are those of the block alone.",
        ),
        (means(rows=("x",)), "the rows' means are taken along 'x'"),
        (means(columns=("y",)), "the columns' means are taken along 'y'"),
        (
            means(("x", "y"), ("x", "y")),
            "over both axes, across different rows; the columns' means are taken over both axes",
        ),
        (means(rows=("x", "y")), "the rows' means are taken over both axes"),
        (means(columns=("x", "y")), "the columns' means are taken over both axes"),
        (means(grand=()), "the mean that is added is that of the block"),
        (means(grand=("x",)), "the mean that is added is taken along 'x' alone"),
        (means(grand=("y",)), "the mean that is added is taken along 'y' alone"),
        (means(grand=None), "the mean of the whole table is not added"),
        (divided_as_on_the_first_mesh, "as on the 2 by 4 mesh, and this one is 4 by 2"),
        (means(reduce=lambda value, axes: lax.psum(value, axes) / 8), "all sums are divided by 8"),
        (means(sign=-1), "the mean of the whole table is taken away, and is to be added"),
        (means(reduce=lax.psum), "the devices' means are added up, not averaged"),
        (lambda t: in_turn(t) + lax.pmean(t.mean(), ("x", "y")), "the whole table is in it once too often"),
        (lambda t: means(grand=None)(t) + lax.psum(t.mean(), ("x", "y")), "the sum of the means of the eight blocks"),
        (
            means(columns=None, grand=None),
            "the columns' means are not taken away; the mean of the whole table is not added",
        ),
        (means(None, grand=None), "the rows' means are not taken away; the mean of the whole table is not added"),
        (gathered_table, "Right values. On the 2 by 4 mesh each device sends"),
        (whole_blocks, "take it on the device first, then across devices"),
        (means(grand=("x", "x")), "one name stands there twice"),
        (means(rows=("i",)), "Is the name of the axis right? This mesh has 'x' and 'y'."),
        (lambda t: t - lax.pmean(t.mean(axis=1), "y"), "Your function raised "),
        (lambda t: None, "Does it end with `return`?"),
    ],
    ex05.follow: [
        (following(start=lambda r: (0.0, 0.0)), "has type float32[] but the corresponding output carry component"),
        (
            following(start=lambda r: (jnp.zeros_like(r[0]), jnp.zeros_like(r[0]))),
            "Which of your carries may differ from device to device after one round",
        ),
        (following(start=lambda r: (varying(ZERO(0), "i"), varying(ZERO(0), "i"))), "Start each one as it goes on"),
        (following(start=lambda r: jnp.zeros(2)), "Your function raised"),
        (following(late=True), "each level that you return is the one before the step"),
        (following(agree=lax.pmean), "your levels are the mean of all s"),
        (following(agree=lax.psum), "your levels are the sum of all s"),
        (following(agree=lax.pmin), "your levels are the smallest of all s"),
        (following(agree=lax.pmean, late=True), "not the largest; each level that you return is the one before"),
        (with_running_level, "the largest s of all steps so far, not of this step"),
        (following(listen=0.0), "the level does not enter the next s"),
        (following(keep=0.3, take=0.5), "0.5 and 0.3 are swapped"),
        (following(keep=0.2, listen=0.5), "0.5 and 0.2 are swapped"),
        (following(take=0.2, listen=0.3), "0.3 and 0.2 are swapped"),
        (following(start=lambda r: (r[0], ZERO(0))), "s begins with the first reading"),
        (following(start=lambda r: (0 * r[0], lax.pmax(r[0], "i"))), "the level begins with the largest first reading"),
        (following(start=lambda r: (0 * r[0] + 1, ZERO(0))), "s begins with 1, not with 0"),
        (following(start=lambda r: (0 * r[0], 1.0)), "the level begins with 1, not with 0"),
        (level_of_the_old_s, "the largest of the s before the step"),
        (following(agree=lambda s, axis: lax.pmax(abs(s), axis)), "the largest s without its sign"),
        (following(agree=lambda s, axis: lax.psum(s * (lax.axis_index(axis) == 0), axis)), "the s of device 0"),
        (agrees_at_the_end, "each device goes on with its own s in the place of the level"),
        (following(loop=python_loop), "Right values, without a loop of JAX"),
        (following(outputs=lambda old, new: new[::-1]), "Your first is the same on all. Every s comes first"),
        (gathered_level, "Which collective makes a number that JAX knows to be the same on all?"),
        (following(outputs=lambda old, new: old), "as they were before it"),
        (following(outputs=lambda old, new: new[0]), "You return an array of shape (7,); expected two"),
        (following(outputs=lambda old, new: (new[0], new[1], new[0])), "You return 3 results; expected two"),
        (local_level, "may differ from device to device, and is to leave under out_specs=P()"),
        (lambda r: tuple(x[-1] for x in following()(r)), "has shape (); expected (7,)"),
        (following(axis="x"), "Is the name of the axis right? This mesh has 'i'."),
        (lambda r: None, "Does the function end with `return`?"),
    ],
}

# exercise: [(a change of the solution that computes the same, why)]
SAME = {
    ex05.follow: [
        (
            "start = (jnp.zeros_like(readings[0]), jnp.float32(0)) -> start = (jnp.zeros_like(readings[1]), jnp.float32(0))",
            "a zero that varies, whatever reading it is made from",
        ),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex05.differences: [
        by_gathered_lasts,
        ring_without_the_last,
        by_a_sum,
        lambda x: jnp.diff(x, prepend=lax.ppermute(x[-1:], "i", RIGHTWARDS)),
        lambda x: x - jnp.append(lax.ppermute(x[-1], "i", RIGHTWARDS), x[:-1]),
        jax.jit(with_neighbour(np.array(RIGHTWARDS).tolist())),
        lambda x: (
            x.at[1:].add(-x[:-1]).at[0].add(-lax.pshuffle(x[-1], "i", [7, *range(7)]) * (lax.axis_index("i") > 0))
        ),
    ],
    ex05.part_of_softmax: [
        shifted_by(lambda x: lax.all_gather(x.max(), "i").max()),
        lambda x: e_of(x) / (8 * lax.pmean(e_of(x).sum(), "i")),
        rescaled,
        by_logarithm,
        jax.jit(shifted_by(lambda x: lax.pmax(jnp.max(x, keepdims=True), "i"))),
        shifted_by(lambda x: -lax.pmin((-x).min(), ("i",))),
        shifted_by(lambda x: lax.stop_gradient(lax.pmax(x.max(), axis_name="i")) + 1),
    ],
    ex05.centered: [
        in_turn,
        one_grand,
        by_sums,
        gathered_means,
        means(grand=("y", "x")),
        lambda t: lax.pmean(t.mean(), ("x", "y")) + means(grand=None)(t),
    ],
    ex05.follow: [
        by_fori,
        by_while,
        level_outside,
        lambda readings: list(following()(readings)),
        following(start=lambda r: (varying(ZERO(0), "i"), 0.0)),
        following(loop=functools.partial(lax.scan, unroll=True)),
        jax.jit(following(agree=lambda s, axis: -lax.pmin(-s, axis))),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex05.inside: (  # 32 / 8 numbers; 0 + 1 + 2 + 3
        {"shape": "(4,)", "first value": 6, "lines": 2},
        [
            (((32,), None, None), "the view from outside"),
            (((8,), None, None), "32 / 8"),
            (("(1,)", None, None), "of what it returns"),
            ((4, None, None), "with brackets"),
            ((None, 0, None), "the first number of the part"),
            ((None, 496, None), "nothing adds up"),
            ((None, 28, None), "four numbers"),
            ((None, None, 1), "traced anew"),
            ((None, None, 3), "finds the program of the first"),
            ((None, None, 8), "one trace is the program of all devices"),
            ((None, None, 16), "one trace is the program of all devices"),
            ((None, None, 24), "one trace is the program of all devices"),
        ],
    ),
    ex05.sums_of_sums: (  # 8 x 1; 8 x 496; 8 x 496 - 496
        {"psum of 1": 8, "psum of the psum": 3968, "psum of the others": 3472},
        [
            ((1, None, None), "each device hands in a 1"),
            ((496, None, None), "not x"),
            ((None, 496, None), "added again"),
            ((None, None, 0), "the 496 counts eight times"),
            ((None, None, 496), "the 496 counts eight times"),
            ((None, None, 3968), "496 in all"),
        ],
    ),
    ex05.at_the_door: (  # one float32 to each of seven
        {"what happens": "moves it", "bytes": 28},
        [
            (("refuses it", None), "in_specs are an order"),
            (("ignores it", None), "the shape that the spec says"),
            ((None, 0), "to see all eight"),
            ((None, 4), "seven other devices"),
            ((None, 7), "4 bytes"),
            ((None, 32), "to itself"),
            ((None, 56), "travels once"),
        ],
    ),
    ex05.to_the_right: (
        {"device 0": 0, "device 1": 3},
        [
            ((6, None), "the pair (7, 0)"),
            ((3, None), "does not stay"),
            ((1, None), "sends to device 2"),
            ((None, 4), "sends to device 3"),
            ((None, 1), "does not stay"),
        ],
    ),
    ex05.shapes: (
        {"tiled": "(16, 3)", "tiled, axis=1": "(2, 24)", "not tiled": "(8, 2, 3)", "varies": "yes"},
        [
            (((8, 2, 3), None, None, None), "joined along an axis that they have"),
            (((2, 24), None, None, None), "the first axis is the default"),
            (((2, 3), None, None, None), "eight of them"),
            ((None, (16, 3), None, None), "along axis 0"),
            ((None, (2, 8, 3), None, None), "without"),
            ((None, None, (16, 3), None), "there is a new axis"),
            ((None, None, (2, 3, 8), None), "comes first"),
            ((None, None, None, "no"), "may differ"),
        ],
    ),
    ex05.tens_and_units: (  # 2 + 12 + ... + 72; the 2 of device 0, then the 12 of device 1
        {"psum_scatter": 296, "all_to_all": 12},
        [
            ((188, None), "own part"),
            ((2464, None), "place by place"),
            ((288, None), "place 1"),
            ((304, None), "place 3"),
            ((None, 21), "sent it to device 1"),
            ((None, 2), "stands at place 0"),
            ((None, 22), "stands at place 2"),
        ],
    ),
    ex05.price: (  # of 32 bytes: 2 x 7/8, 7 times, 7/8
        {"psum": 56, "all_gather": 224, "all_to_all": 28},
        [
            ((14, 56, 7), "a float32 has 4 bytes"),
            ((28, None, None), "handed out"),
            ((64, None, None), "stays where it is"),
            ((224, None, None), "a gather of all parts"),
            ((32, None, None), "to one device"),
            ((None, 32, None), "seven need it"),
            ((None, 256, None), "to itself"),
            ((None, 28, None), "not an eighth"),
            ((None, 448, None), "travels once"),
            ((None, None, 32), "one of the eight numbers stays"),
            ((None, None, 224), "not all"),
            ((None, None, 56), "travels once"),
            ((None, None, 4), "seven are sent"),
        ],
    ),
    ex05.unproved: (
        6,
        [(496, "nothing adds up"), ("an error", "turns off the proof"), (62, "adds them up")],
    ),
    ex05.adds_up_to: (8, [(1, "each device's part"), ("an error", "promises nothing")]),
    ex05.refused: (
        {"column_sums": "yes", "double": "yes", "total": "yes", "relative": "no"},
        [
            (("no", "no", "no", None), "eight devices cannot share 4 rows"),
            ((None, "no", None, None), "x one axis"),
            ((None, None, "no", None), "no axis along which"),
            ((None, None, None, "yes"), "the same everywhere"),
        ],
    ),
    ex05.on_device_5: (  # device 5 holds 18 19 / 26 27; along x comes 2 3 / 10 11; along y 82, 98 and 106
        {"x": 116, "y": 376, "both": 496},
        [
            ((90, 90, 90), "its own block"),
            ((376, 116, None), "along y, with the four devices"),
            ((496, 496, None), "the sum of all blocks"),
            ((None, 120, None), "the other row"),
            ((None, None, 492), "not twice"),
        ],
    ),
    ex05.row_sums: (
        {"P('x')": "yes", "P('y')": "no", "P(('x', 'y'))": "yes", "P()": "no"},
        [
            (("no", None, None, None), "how they are joined"),
            ((None, "yes", None, None), "promises the same along x"),
            ((None, None, "no", None), "four times"),
            ((None, None, None, "yes"), "on all devices"),
        ],
    ),
    ex05.starts: (
        {"0.0": "no", "zeros_like": "yes", "times psum": "no"},
        [
            (("yes", "no", "yes"), "varies after one round"),
            ((None, "no", None), "from a part"),
            ((None, None, "yes"), "0 times it"),
        ],
    ),
    ex05.three_styles: (  # 2 x 7/8 of four float32
        {"bytes": 28, "b inside": "wrong"},
        [
            ((7, None), "a sum of one number"),
            ((14, None), "handed out"),
            ((16, None), "2 · 7/8 of it"),
            ((112, None), "a gather of all"),
            ((None, "an error"), "types and shapes fit"),
            ((None, "right"), "each of the eight devices adds"),
        ],
    ),
}
