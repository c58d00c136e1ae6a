"""Wrong answers to the exercises of notebook 10, right ones in unusual forms, and wrong guesses at its predictions."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

from utils.compat import varying
from utils.exercises import ex10


def psum(value):
    return jax.lax.psum(value, "data")


def pmean(value):
    return jax.lax.pmean(value, "data")


# --- zero_memory


def zero(sizes=(12, 2, 2), at=(1, 2, 3), times=1.0):
    """The solution with other sizes, or parts cut at other stages."""

    def zero_memory(numbers, n, stage):
        return times * numbers * sum(b / n if stage >= first else b for b, first in zip(sizes, at, strict=True))

    return zero_memory


def only_its_own(numbers, n, stage):
    return numbers * (16 - {0: 0, 1: 12, 2: 2, 3: 2}[stage] * (1 - 1 / n))


def floored(numbers, n, stage):
    return numbers * sum(b // n if stage >= first else b for b, first in ((12, 1), (2, 2), (2, 3)))


def by_match(numbers, n, stage):
    match stage:
        case 0:
            each = 16
        case 1:
            each = 4 + 12 / n
        case 2:
            each = 2 + 14 / n
        case _:
            each = 16 / n
    return int(numbers) * each


# --- gated_loss


def columns(piece):
    return jax.lax.all_gather(piece, "data", axis=piece.ndim - 1, tiled=True)


def whole(pieces, gather=columns):
    return jax.tree.map(gather, pieces)


def gated(x, w):
    return x + (jnp.tanh(x @ w["a"]) * (x @ w["b"])) @ w["c"], None


def squares(x, y):
    return ((x - y) ** 2).mean()


def gated_by(average=pmean, layer=gated, gather=whole, keep=jax.checkpoint, error=squares):
    """The solution, with another part in one place."""

    def gated_loss(params, x, y):
        one = keep(lambda x, w: layer(x, gather(w)))
        return average(error(jax.lax.scan(one, x, params)[0], y))

    return gated_loss


def gathered_before(params, x, y):
    return pmean(squares(jax.lax.scan(gated, x, whole(params))[0], y))


def rows_instead(piece):
    return jax.lax.all_gather(piece, "data", axis=0, tiled=True)


def read_as_rows(piece):  # (n, rows, columns / n), read as (rows, columns)
    return jax.lax.all_gather(piece, "data").reshape(piece.shape[0], -1)


def side_by_side(piece):  # the same as `columns`
    pieces = jax.lax.all_gather(piece, "data")  # (n, rows, columns / n)
    return jnp.moveaxis(pieces, 0, 1).reshape(piece.shape[0], -1)


def sum_of_zeros(piece):  # whole on every device by an all-reduce: two rounds
    n, me = jax.lax.psum(1, "data"), jax.lax.axis_index("data")
    room = jnp.zeros((*piece.shape[:-1], n * piece.shape[-1]), piece.dtype)
    room = jax.lax.dynamic_update_slice_in_dim(varying(room, "data"), piece, me * piece.shape[-1], piece.ndim - 1)
    return varying(psum(room), "data")


def no_tanh(x, w):
    return x + ((x @ w["a"]) * (x @ w["b"])) @ w["c"], None


def gate_of(act=jnp.tanh, join=jnp.multiply, first="a", second="b", kept=1):
    return lambda x, w: (kept * x + join(act(x @ w[first]), x @ w[second]) @ w["c"], None)


def of_eight(params, x, y):  # right on eight devices alone
    return psum(squares(jax.lax.scan(jax.checkpoint(lambda x, w: gated(x, whole(w))), x, params)[0], y)) / 8


def around_the_loop(params, x, y):  # the gathers of all layers come again, and their results are kept once more
    @jax.checkpoint
    def run(params, x):
        return jax.lax.scan(lambda x, w: gated(x, whole(w)), x, params)[0]

    return pmean(squares(run(params, x), y))


def by_name(params, x, y):
    def named(piece):
        return checkpoint_name(columns(piece), "whole")

    policy = jax.checkpoint_policies.save_anything_except_these_names("whole")
    keep = jax.checkpoint(lambda x, w: gated(x, whole(w, named)), policy=policy)
    return pmean(squares(jax.lax.scan(keep, x, params)[0], y))


def by_policy(params, x, y):
    keep = jax.checkpoint(
        lambda x, w: gated(x, whole(w)), policy=lambda primitive, *_, **__: primitive.name != "all_gather"
    )
    return pmean(squares(jax.lax.scan(keep, x, params)[0], y))


def summed_and_divided(params, x, y):
    def layer(x, w):
        a, b, c = (jax.lax.all_gather(w[k], "data", axis=-1, tiled=True) for k in "abc")
        return x + jnp.einsum("rh,rh,hd->rd", jnp.tanh(x @ a), x @ b, c), None

    x, _ = jax.lax.scan(jax.remat(layer), x, params)
    return psum(jnp.sum((y - x) ** 2)) / psum(x.size)


# --- accumulate


def rows(piece):
    return jax.lax.all_gather(piece, "data", tiled=True)


def scattered(g):
    return jax.lax.psum_scatter(g, "data", tiled=True)


def n_of():
    return jax.lax.psum(1, "data")


def added(of_one, weights, x, y):
    """The gradients of the k small batches, added up, one after the other."""

    def add(total, batch):
        return jax.tree.map(jnp.add, total, jax.grad(of_one)(weights, *batch)), None

    return jax.lax.scan(add, jax.tree.map(lambda w: 0 * w, weights), (x, y))[0]


def accumulated(over):
    """Gather, add up, and then `over(total, k)`."""

    def accumulate(of_one, pieces, x, y):
        total = added(of_one, jax.tree.map(rows, pieces), x, y)
        return jax.tree.map(lambda g: over(g, len(x)), total)

    return accumulate


def one_alone(i):
    def accumulate(of_one, pieces, x, y):
        grads = jax.grad(of_one)(jax.tree.map(rows, pieces), x[i], y[i])
        return jax.tree.map(lambda g: scattered(g) / n_of(), grads)

    return accumulate


def each_in_full(of_one, pieces, x, y):
    def add(total, batch):
        grads = jax.grad(lambda p: pmean(of_one(jax.tree.map(rows, p), *batch)))(pieces)
        return jax.tree.map(jnp.add, total, grads), None

    total, _ = jax.lax.scan(add, jax.tree.map(lambda p: 0 * p, pieces), (x, y))
    return jax.tree.map(lambda g: g / len(x), total)


def own_piece(g):
    size = g.shape[0] // n_of()
    return jax.lax.dynamic_slice_in_dim(varying_once(g), jax.lax.axis_index("data") * size, size)


def varying_once(g):
    return g if "{" in str(jax.typeof(g)) else varying(g, "data")


def of_pieces(of_one, pieces, x, y):
    return jax.grad(lambda w: of_one(w, x[0], y[0]))(pieces)


def all_at_a_time(of_one, pieces, x, y):
    return jax.grad(lambda w: of_one(w, x, y))(jax.tree.map(rows, pieces))


def as_one_batch(of_one, pieces, x, y):
    x, y = (a.reshape(-1, a.shape[-1]) for a in (x, y))
    grads = jax.grad(of_one)(jax.tree.map(rows, pieces), x, y)
    return jax.tree.map(lambda g: scattered(g) / n_of(), grads)


def whole_returned(of_one, pieces, x, y):
    total = added(of_one, jax.tree.map(rows, pieces), x, y)
    return jax.tree.map(lambda g: pmean(g) / len(x), total)


def by_vmap(of_one, pieces, x, y):
    weights = {name: rows(piece) for name, piece in pieces.items()}
    grads = jax.vmap(jax.grad(of_one), in_axes=(None, 0, 0))(weights, x, y)
    return {name: scattered(g.mean(axis=0)) / n_of() for name, g in grads.items()}


def of_the_mean(of_one, pieces, x, y):  # no sum is written: the transposes of the gather and of pmean are both
    def mean_loss(pieces):
        weights = jax.tree.map(rows, pieces)
        return pmean(jax.lax.map(lambda batch: of_one(weights, *batch), (x, y)).mean())

    return jax.grad(mean_loss)(pieces)


def zeros_made_varying(of_one, pieces, x, y):
    weights = jax.tree.map(rows, pieces)

    def add(i, total):
        return jax.tree.map(jnp.add, total, jax.grad(of_one)(weights, x[i], y[i]))

    start = jax.tree.map(lambda w: varying(jnp.zeros(w.shape, w.dtype), "data"), weights)
    total = jax.lax.fori_loop(0, x.shape[0], add, start)
    return jax.tree.map(lambda g: scattered(g / x.shape[0] / n_of()), total)


# --- tokens_to_hide


def tokens(formula):
    def tokens_to_hide(flops, rate, n, weight_bytes, gradient_bytes, work):
        return formula(flops, rate, n, weight_bytes, gradient_bytes, work)

    return tokens_to_hide


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex10.zero_memory: [
        (zero(at=(1, 2, 2)), "at stage 2 the weights are still whole"),
        (zero(at=(1, 1, 2)), "a stage too early"),
        (zero(at=(2, 3, 4)), "a stage too late"),
        (zero(at=(1, 1, 1)), "each stage cuts one part more"),
        (zero(at=(0, 0, 0)), "stage 0 none"),
        (zero(sizes=(8, 4, 4)), "the float32 copy is the optimizer's"),
        (zero(sizes=(8, 2, 2)), "the float32 copy of the weights is missing"),
        (zero(sizes=(8, 2, 4)), "the weights are there twice"),
        (zero(sizes=(4, 2, 2)), "of the optimizer's three numbers you count one"),
        (zero(sizes=(12, 4, 2)), "a gradient is bfloat16, 2 bytes"),
        (zero(sizes=(12, 0, 2)), "the gradients are missing"),
        (zero(at=(3, 2, 1)), "the order is another"),
        (only_its_own, "it keeps the cuts of those before"),
        (zero(times=1e-9), "that is in GB"),
        (lambda numbers, n, stage: zero()(1, n, stage), "that is for one parameter"),
        (lambda numbers, n, stage: zero()(numbers, n, stage) * n, "what all chips hold together"),
        (lambda numbers, n, stage: zero()(numbers, n, stage + 1), "stage 0 cuts nothing"),
        (lambda numbers, n, stage: zero()(numbers, n, min(stage, 2)), "at stage 3 the weights are cut, too"),
        (lambda numbers, n, stage: zero()(numbers, 8, stage), "you divide by 8"),
        (lambda numbers, n, stage: zero()(numbers, 64, stage), "you divide by 64"),
        (floored, "leaves out the fraction"),
        (lambda numbers, n, stage: round(zero()(numbers, n, stage) / 1e9, 1) * 1e9, "that is rounded"),
        (lambda numbers, n, stage: print(numbers), "Does the function end with `return`"),
    ],
    ex10.gated_loss: [
        (gated_by(average=lambda loss: loss), "each device has its own"),
        (gated_by(average=psum), "psum adds up the means of the devices"),
        (gated_by(average=lambda loss: pmean(loss) / n_of()), "divided by the number of devices once too often"),
        (gated_by(error=lambda x, y: ((x - y) ** 2).sum()), "adds up a device's squares"),
        (gated_by(gather=lambda w: whole(w, read_as_rows)), "in another order than they were cut"),
        (gated_by(gather=lambda w: whole(w, rows_instead)), "Which axis do the pieces lie along?"),
        (gated_by(layer=no_tanh), "there is no tanh"),
        (gated_by(layer=gate_of(act=jax.nn.relu)), "relu for tanh"),
        (gated_by(layer=gate_of(join=jnp.add)), "the two products are added"),
        (gated_by(layer=gate_of(first="b", second="a")), "tanh is of the product with b"),
        (gated_by(layer=gate_of(kept=0)), "input is not added"),
        (gated_by(error=lambda x, y: abs(x - y).mean()), "absolute differences"),
        (gated_by(average=lambda loss: jax.lax.pmax(loss, "data")), "the largest of the devices' losses"),
        (of_eight, "you divide by 8; this mesh has 4"),
        (gated_by(gather=lambda w: w), "an n-th of the columns still"),
        (
            gated_by(gather=lambda w: whole(w, lambda p: jax.lax.all_gather(p, "data"))),
            "lie along an axis of their own",
        ),
        (gated_by(gather=jax.checkpoint(whole), keep=lambda layer: layer), "What else must stand in jax.checkpoint?"),
        (around_the_loop, "a layer, or all of them?"),
        (by_name, "What does your policy say"),
        (gated_by(keep=lambda layer: layer), "sends 2 rounds, not three: the whole weights of all layers are kept"),
        (gathered_before, "brings the weights of"),
        (gated_by(gather=lambda w: whole(w, sum_of_zeros)), "a sum of pieces in zeros is two"),
        (lambda params, x, y: None, "returns None"),
        (lambda params, x, y: (gated_by()(params, x, y), x), "the loss alone is asked"),
        (lambda params, x, y: (x - y) ** 2, "expected one number"),
    ],
    ex10.accumulate: [
        (accumulated(lambda g, k: scattered(g)), "their mean is asked, and the sum over the devices"),
        (accumulated(lambda g, k: scattered(g) / n_of()), "the k gradients are added up; their mean is asked"),
        (accumulated(lambda g, k: scattered(g) / k), "the sum over the devices is asked to be a mean"),
        (accumulated(lambda g, k: scattered(g) / k / n_of() ** 2), "divided by the number of devices twice"),
        (accumulated(lambda g, k: own_piece(g) / k), "nothing is added up over the devices"),
        (
            accumulated(lambda g, k: pmean(scattered(g) / k / n_of()) + 0 * own_piece(g)),
            "each device has another piece",
        ),
        (accumulated(lambda g, k: own_piece(pmean(g) / k)), "sends 3 rounds, not two: the gradients are all-reduced"),
        (one_alone(-1), "the last small batch alone"),
        (each_in_full, "the gradients are added up over the devices in every small batch"),
        (of_pieces, "it takes whole weights"),
        (all_at_a_time, "it takes one small batch"),
        (accumulated(lambda g, k: g / k), "is whole"),
        (accumulated(lambda g, k: scattered(g) / k / 8), "you divide by 8; this mesh has 4"),
        (accumulated(lambda g, k: -scattered(g) / k / n_of()), "its sign is the other one"),
        (accumulated(lambda g, k: jax.lax.psum_scatter(g, "data") / k), "an axis as long as there are devices"),
        (as_one_batch, "it takes one small batch"),
        (lambda of_one, pieces, x, y: pieces["u"], "expected the gradient's pieces in a dict"),
    ],
    ex10.tokens_to_hide: [
        (tokens(lambda f, w, n, a, b, c: (a + b) * (n - 1) / n * f / w / c), "gathered twice, forward and backward"),
        (tokens(lambda f, w, n, a, b, c: 2 * a * (n - 1) / n * f / w / c), "the gradients travel, too"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + 2 * b) * (n - 1) / n * f / w / c), "half of an all-reduce"),
        (tokens(lambda f, w, n, a, b, c: 3 * a * (n - 1) / n * f / w / c), "the gradients have a width of their own"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * f / w / c), "does not send itself its own part"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) * f / w / c), "those on each are asked"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) / n * w / f / c), "in each other's place"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) / n * f / w), "parameter and token are missing"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) / n * f / w / 6), "`work` says how many"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) / n * f / w / (2 * c)), "two of them already"),
        (tokens(lambda f, w, n, a, b, c: 3 * (n - 1) / n * f / w / c), "you count numbers, not bytes"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * n / (n - 1) * f / w / c), "upside down"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * 7 / 8 * f / w / c), "7/8 is that of eight chips"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) / n * f / w / 7), "`work` says how many"),
        (tokens(lambda f, w, n, a, b, c: (2 * a + b) * (n - 1) / n * f / w / c / 8), "the widths are bytes already"),
        (tokens(lambda f, w, n, a, b, c: 1.5 * (a + b) * (n - 1) / n * f / w / c), "and one of gradients"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex10.zero_memory: [
        zero(),
        by_match,
        lambda numbers, n, stage: jnp.float32(numbers) * jnp.array([16, 4 + 12 / n, 2 + 14 / n, 16 / n])[stage],
        lambda numbers, n, stage: np.float64(numbers) * (16 - (1 - 1 / n) * np.cumsum([0, 12, 2, 2])[stage]),
        lambda numbers, n, stage: float(Fraction(int(numbers)) * (16 - [0, 12, 14, 16][stage] * Fraction(n - 1, n))),
    ],
    ex10.gated_loss: [
        gated_by(gather=lambda w: whole(w, side_by_side)),
        gated_by(keep=jax.remat, error=lambda x, y: jnp.square(y - x).sum() / x.size),
        by_policy,
        summed_and_divided,
    ],
    ex10.accumulate: [
        accumulated(lambda g, k: scattered(g / k) / n_of()),
        by_vmap,
        of_the_mean,
        zeros_made_varying,
    ],
    ex10.tokens_to_hide: [
        tokens(lambda f, w, n, a, b, c: (a + a + b) * (1 - 1 / n) / (w * c / f)),
        tokens(lambda f, w, n, a, b, c: np.float32((2 * a + b) * (n - 1) / n * f / w / c)),
        tokens(lambda f, w, n, a, b, c: jnp.asarray((2 * a + b) * (n - 1) / n) * (f / w / c)),
        tokens(lambda f, w, n, a, b, c: Fraction(2 * a + b) * Fraction(n - 1, n) * Fraction(f / w) / c),
    ],
}

SAME = {}

GUESSES = {
    ex10.stages: (
        {"stage 1": 5.5, "stage 2": 3.75, "stage 3": 2.0},
        [
            ((2, 2, 14.25), "later stages' parts are still whole"),
            ((9, 5.5, 3.75), "belongs to the optimizer's 12 bytes"),
            ((4, 14.25, 1.75), "of the 12 an eighth is left"),
        ],
    ),
    ex10.rounds: (
        {"before": 2, "inside": 2, "again": 3},
        [
            ((1, 1, 2), "have to be added up as well"),
            ((3, 3, 4), "need not come again for the backward pass"),
            ((1, 16, 2), "eight layers of an eighth each"),
            ((2, 2, 2), "to gather is part of it"),
        ],
    ),
    ex10.held_inside: (1.3, [(0.125, "who keeps them?"), (1, "pile up"), (2.5, "that is `before`")]),
    ex10.work_again: (7 / 6, [(8 / 6, "used by nobody"), (1, "computes a part"), (1.5, "is a third of the work")]),
    ex10.named: (2, [(3, "the result of the gather itself"), (1, "reduce-scatter is another")]),
    ex10.loss_tells: (
        {"sum": False, "pmean": True},
        [(("yes", "yes"), "Adam divides by the root"), (("no", "no"), "by the gradient of others")],
    ),
    ex10.factors: (
        {"means": 8, "squares": 64, "rounds added": 0.25},
        [
            ((1, 1, 2), "here each device puts in a piece"),
            ((8, 8, 0.125), "8 times 8"),
            ((8, 64, 1), "its piece alone"),
        ],
    ),
    ex10.pod_rounds: (
        {"1024 tokens": "more", "256 tokens": "fewer"},
        [
            (("as many", "as many"), "not how they travel"),
            (("fewer", "more"), "activations in place of weights"),
        ],
    ),
    ex10.hidden_at: (
        1477.5,  # 3 * 2 * 7/8 / 7 * 197e12 / 100e9
        [
            (2298, "that is data parallelism"),
            (3447, "a bfloat16 takes 2 bytes"),
            (985, "sends three rounds"),
            (1724, "7 FLOPs for each parameter and token, not 6"),
            (1293, "7 FLOPs, not 8"),
            (1689, "a round is (n - 1)/n"),
        ],
    ),
}
