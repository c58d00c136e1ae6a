"""Wrong and right answers to the exercises of notebook 11, and wrong guesses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from utils.compat import varying
from utils.exercises import ex11


def side_by_side(q, k, v, n, order=(0, 1, 2), cut=lambda matrix, n: np.split(matrix, n, axis=1)):
    three = [(q, k, v)[i] for i in order]
    return np.concatenate(
        [piece for pieces in zip(*(cut(m, n) for m in three), strict=True) for piece in pieces], axis=1
    )


def column_by_column(q, k, v, n):
    return np.stack([q, k, v], axis=2).reshape(len(q), -1)


def strided(matrix, n):
    return [matrix[:, i::n] for i in range(n)]


def by_reshape(q, k, v, n):
    return jnp.stack([m.reshape(len(m), n, -1) for m in (q, k, v)], axis=2).reshape(len(q), -1)


def by_index(q, k, v, n):
    part = q.shape[1] // n
    places = [which * q.shape[1] + i * part + j for i in range(n) for which in range(3) for j in range(part)]
    return np.concatenate([q, k, v], axis=1)[:, places]


def filled(q, k, v, n):
    out, part = np.empty((len(q), 3 * q.shape[1]), np.float32), q.shape[1] // n
    for i in range(n):
        for j, matrix in enumerate((q, k, v)):
            at = (3 * i + j) * part
            out[:, at : at + part] = matrix[:, i * part : (i + 1) * part]
    return out


def mine(device, heads, n):
    return range(device * heads // n, (device + 1) * heads // n)


def keys_by_set(device, heads, key_heads, n):
    return {head // (heads // key_heads) for head in mine(device, heads, n)}


def keys_by_ends(device, heads, key_heads, n):
    group, own = heads // key_heads, mine(device, heads, n)
    return range(own[0] // group, own[-1] // group + 1)


def keys_by_repeat(device, heads, key_heads, n):
    return np.unique(np.repeat(np.arange(key_heads), heads // key_heads).reshape(n, -1)[device])


def psum(value):
    return lax.psum(value, "model")


def own(value):
    return varying(value, "model")


def halves(combine):
    def layer(x, w, norm, attention, mlp):
        return combine(x, norm(x), lambda n: attention(n, w), lambda n: mlp(n, w))

    return layer


def one_behind_the_other(x, w, norm, attention, mlp):
    x = x + psum(attention(norm(x), w))
    return x + psum(mlp(norm(x), w))


def shared(x):
    return lax.psum(x, "model") / 8


def tops(logits):
    return lax.pmax(lax.stop_gradient(logits.max(1)), "model")


def hits(logits, targets):
    place = targets - lax.axis_index("model") * logits.shape[1]
    return psum((jax.nn.one_hot(place, logits.shape[1]) * logits).sum(1))


def of_tokens(total=None, hit=hits, mean=jnp.mean):
    """The mean of total(logits) - hit(logits, targets)."""

    def loss(logits, targets):
        return mean((total or log_sum)(logits) - hit(logits, targets))

    return loss


def log_sum(logits, top=tops, add=psum, back=True):
    largest = top(logits)
    return jnp.log(add(jnp.exp(logits - largest[:, None]).sum(1))) + (largest if back else 0)


def hit_by_clip(logits, targets):
    width = logits.shape[1]
    place = targets - lax.axis_index("model") * width
    inside = (place >= 0) & (place < width)
    found = jnp.take_along_axis(logits, jnp.clip(place, 0, width - 1)[:, None], 1)[:, 0]
    return psum(jnp.where(inside, found, 0))


def hit_without_offset(logits, targets):
    return psum(jnp.take_along_axis(logits, jnp.minimum(targets, logits.shape[1] - 1)[:, None], 1)[:, 0])


def hit_around(logits, targets):
    return psum(jnp.take_along_axis(logits, (targets % logits.shape[1])[:, None], 1)[:, 0])


def hit_outside(logits, targets):
    place = targets - lax.axis_index("model") * logits.shape[1]
    return psum(jnp.take_along_axis(logits, place[:, None], 1, mode="fill")[:, 0])


def hit_of_mean(logits, targets):
    return hits(logits, targets) / 8


def hit_of_own(logits, targets):
    place = targets - lax.axis_index("model") * logits.shape[1]
    return (jax.nn.one_hot(place, logits.shape[1]) * logits).sum(1)


def gathered(logits, targets):
    whole = lax.all_gather(logits, "model", axis=1, tiled=True)
    log_p = jax.nn.log_softmax(whole)
    return lax.pmean(-jnp.take_along_axis(log_p, targets[:, None], 1).mean(), "model")


def put_together(logits, targets):
    """All logits on every device, by a sum of slices in zeros."""
    width = logits.shape[1]
    whole = jnp.zeros((logits.shape[0], 8 * width))
    whole = psum(lax.dynamic_update_slice_in_dim(own(whole), logits, lax.axis_index("model") * width, 1))
    return -jnp.take_along_axis(jax.nn.log_softmax(whole), targets[:, None], 1).mean()


def one_sum(logits, targets):
    """Both sums in one all-reduce."""
    top = tops(logits)
    place = targets - lax.axis_index("model") * logits.shape[1]
    hit = (jax.nn.one_hot(place, logits.shape[1]) * logits).sum(1)
    total, hit = psum(jnp.stack([jnp.exp(logits - top[:, None]).sum(1), hit]))
    return (top + jnp.log(total) - hit).mean()


def by_parts(logits, targets):
    """Log-sum-exps of the devices, gathered."""
    parts = jax.nn.logsumexp(logits, axis=1)
    top = lax.stop_gradient(lax.pmax(lax.stop_gradient(parts), "model"))
    return (top + jnp.log(psum(jnp.exp(parts - top))) - hit_by_clip(logits, targets)).mean()


def shifted(logits, targets):
    top = tops(logits)
    low = logits - top[:, None]
    return jnp.mean(jnp.log(psum(jnp.exp(low).sum(1))) - hits(low, targets))


def subtracted(top=tops, add=psum, start=1):
    """The largest logit taken out of all at once, as one writes it where log_softmax is by hand."""

    def loss(logits, targets):
        low = logits - top(logits)[:, None]
        place = targets - start * lax.axis_index("model") * logits.shape[1]
        hit = add((low * jax.nn.one_hot(place, logits.shape[1])).sum(1))
        return (jnp.log(psum(jnp.exp(low).sum(1))) - hit).mean()

    return loss


def gathered_parts(logits, targets):
    """Eight log-sum-exps a token, gathered."""
    parts = lax.all_gather(jax.nn.logsumexp(logits, axis=1), "model")
    return lax.pmean((jax.nn.logsumexp(parts, axis=0) - hits(logits, targets)).mean(), "model")


def top_without_stop(logits):
    return lax.pmax(logits.max(1), "model")


def top_of_own(logits):
    return logits.max(1)


def top_of_all(logits):
    return lax.pmax(lax.stop_gradient(logits.max()), "model") * jnp.ones(logits.shape[0])


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex11.one_matrix: [
        (
            lambda q, k, v, n: np.concatenate([q, k, v], axis=1),
            "piece 0 of your columns holds q0 q1 q2 q3 q4 q5. Each piece",
        ),
        (column_by_column, "the right columns, in another order than q0 q1 k0 k1 v0 v1"),
        (lambda *a: side_by_side(*a, order=(1, 0, 2)), "in another order"),
        (lambda *a: side_by_side(*a, cut=strided), "You give every n-th column"),
        (lambda q, k, v, n: side_by_side(q, k, v, 2), "piece 0 of your columns holds"),
        (lambda q, k, v, n: np.concatenate([q, k, v], axis=0), "expected (5, 18)"),
        (
            lambda q, k, v, n: [
                np.concatenate(p, axis=1) for p in zip(*(np.split(m, n, axis=1) for m in (q, k, v)), strict=True)
            ],
            "expected one matrix, its pieces side by side",
        ),
        (lambda q, k, v, n: np.stack([q, k, v]), "an array of shape (3, 5, 6)"),
        (lambda q, k, v, n: np.stack([q, k, v], axis=0).reshape(len(q), -1), "is no column of q, k or v"),
        (lambda q, k, v, n: side_by_side(q, q, v, n), "Each piece needs its own columns of all three"),
        (lambda q, k, v, n: side_by_side(q, k, v, n)[:, ::-1], "It needs columns 0 to 1 of each"),
    ],
    ex11.needed_key_heads: [
        (
            lambda device, heads, keys, n: list(range(device * keys // n, (device + 1) * keys // n)),
            "an even share of the key heads",
        ),
        (lambda device, heads, keys, n: list(range(keys)), "all of them"),
        (lambda device, heads, keys, n: sorted({h % keys for h in mine(device, heads, n)}), "`head % key_heads`"),
        (lambda device, heads, keys, n: list(mine(device, heads, n)), "the numbers of its query heads"),
        (
            lambda device, heads, keys, n: [h // (heads // keys) for h in mine(device, heads, n)],
            "each key head is listed once",
        ),
        (
            lambda device, heads, keys, n: sorted({h // keys for h in mine(device, heads, n)}),
            "a group has heads / key_heads heads",
        ),
        (lambda device, heads, keys, n: [mine(device, heads, n)[0] // (heads // keys)], "its first query head"),
        (lambda device, heads, keys, n: [device % keys], "that of `device % key_heads`"),
        (
            lambda device, heads, keys, n: sorted({h // (heads // keys) for h in range(device, heads, n)}),
            "every n-th query head",
        ),
        (
            lambda device, heads, keys, n: sorted(
                {h // (heads // keys) for h in mine(device, heads, n)[:: heads // n - 1]}
            ),
            "its first and last query heads",
        ),
        (
            lambda device, heads, keys, n: sorted(
                {h // (heads // keys) for h in range(device * heads // n, (device + 1) * heads // n + 1)}
            ),
            "one query head too many",
        ),
        (lambda *a: [1 + key for key in keys_by_set(*a)], "the first key head is 0"),
        (lambda device, heads, keys, n: [0], "which key head does each of them use?"),
        (lambda device, heads, keys, n: device, "expected a list of whole numbers"),
        (lambda device, heads, keys, n: [device * keys // n], "its first query head"),
    ],
    ex11.parallel_layer: [
        (halves(lambda x, n, a, m: x + psum(a(n)) + psum(m(n))), "Forward a device sends 2 times"),
        (halves(lambda x, n, a, m: x + psum(a(n) + m(n))), "and 2 times on the way back"),
        (halves(lambda x, n, a, m: x + psum(a(own(n)) + m(own(n)))), "and 2 times on the way back"),
        (halves(lambda x, n, a, m: x + psum(a(own(n))) + psum(m(own(n)))), "Forward a device sends 2 times"),
        (halves(lambda x, n, a, m: psum(own(x) + a(own(n)) + m(own(n)))), "what you add up along `model` has x in it"),
        (halves(lambda x, n, a, m: x + a(n) + m(n)), "typed float32[3,6]{V:model}"),
        (halves(lambda x, n, a, m: own(x) + psum(a(n) + m(n))), "x itself has to stay shared"),
        (halves(lambda x, n, a, m: x + lax.pmean(a(own(n)) + m(own(n)), "model")), "that of a mean over the devices"),
        (one_behind_the_other, "that of the page's layer"),
        (halves(lambda x, n, a, m: x + psum(a(own(x)) + m(own(x)))), "without the norm"),
        (halves(lambda x, n, a, m: psum(a(own(n)) + m(own(n)))), "without x"),
        (halves(lambda x, n, a, m: n + psum(a(own(n)) + m(own(n)))), "they are to be added to x itself"),
        (halves(lambda x, n, a, m: x + psum(a(own(n)))), "without the MLP"),
        (halves(lambda x, n, a, m: x + psum(m(own(n)))), "without the attention"),
        (halves(lambda x, n, a, m: x + psum(m(a(own(n))))), "one behind the other, on each device"),
        (halves(lambda x, n, a, m: x + psum(m(psum(a(own(n)))))), "mlp of attention"),
        (halves(lambda x, n, a, m: x + psum(a(own(n)) + m(own(x)))), "an MLP that reads x itself"),
        (halves(lambda x, n, a, m: x + psum(a(own(x)) + m(own(n)))), "an attention that reads x itself"),
        (
            lambda x, w, norm, attention, mlp: x + norm(psum(attention(own(x), w) + mlp(own(x), w))),
            "the norm of what the halves give",
        ),
        (halves(lambda x, n, a, m: x + lax.all_gather(a(n) + m(n), "model").sum(0)), "typed float32[3,6]{V:model}"),
        (halves(lambda x, n, a, m: lax.pmean(x + psum(a(n) + m(n)), "model")), "times"),
    ],
    ex11.vocabulary_loss: [
        (gathered, "Which collective carries logits?"),
        (put_together, "Which collective carries logits?"),
        (of_tokens(hit=hit_without_offset), "a device's part begins at axis_index times its width"),
        (of_tokens(hit=hit_around), "at `targets % width`"),
        (of_tokens(hit=hit_outside), "Your loss is nan"),
        (of_tokens(hit=hit_of_mean), "with an eighth of the target's logit"),
        (of_tokens(hit=hit_of_own), "each device has a loss of its own"),
        (of_tokens(lambda z: log_sum(z, top=top_without_stop)), "JAX has no derivative for pmax"),
        (of_tokens(lambda z: jnp.log(psum(jnp.exp(z).sum(1)))), "With logits from -4,200 to 1,200"),
        (of_tokens(lambda z: psum(jax.nn.logsumexp(z, axis=1))), "the logarithms of the devices' own sums added up"),
        (
            of_tokens(lambda z: lax.pmean(jax.nn.logsumexp(z, axis=1), "model")),
            "with the mean of the devices' own log-sum-exps",
        ),
        (of_tokens(lambda z: jax.nn.logsumexp(z, axis=1)), "each device has a loss of its own"),
        (of_tokens(lambda z: log_sum(z, top=top_of_own)), "each device has a loss of its own"),
        (of_tokens(lambda z: log_sum(z, back=False)), "without the largest logit"),
        (of_tokens(lambda z: log_sum(z, add=lambda v: lax.pmean(v, "model"))), "too small by log 8"),
        (of_tokens(lambda z: log_sum(z, top=top_of_all)), "With logits from -4,200 to 1,200"),
        (subtracted(top=top_of_own), "from its own largest logit"),
        (subtracted(add=lambda v: psum(v) / 8), "an eighth of the target's logit"),
        (subtracted(add=lambda v: lax.pmax(lax.stop_gradient(v), "model")), "add up, do not compare"),
        (subtracted(start=0), "at its number in the whole vocabulary"),
        (
            lambda z, t: lax.pmean((jax.nn.logsumexp(z, axis=1) - hit_of_own(z, t)).mean(), "model"),
            "each over a device's own words",
        ),
        (of_tokens(mean=jnp.sum), "the sum over the tokens, not their mean"),
        (of_tokens(mean=lambda v: v), "shape (6,); expected (), one loss. Take the mean"),
        (of_tokens(mean=lambda v: -v.mean()), "with its sign turned"),
        (of_tokens(hit=lambda z, t: 0.0 * hits(z, t)), "too large by the target's logit"),
        (of_tokens(mean=lambda v: psum(own(v.mean()))), "8 times too large"),
    ],
    ex11.most_chips: [
        (lambda hidden, ratio: 1 + hidden / ratio / 1, "chips"),
        (lambda hidden, ratio: 1 + hidden / (2 * ratio), "the two products of the forward pass"),
        (lambda hidden, ratio: 1.5 * hidden / ratio, "the factor (n - 1)/n is taken for 1"),
        (lambda hidden, ratio: 1 + 3 * hidden / ratio, "an all-reduce sends its operand nearly twice"),
        (lambda hidden, ratio: 1 + 0.75 * hidden / ratio, "or: a bfloat16 has 2 bytes"),
        (lambda hidden, ratio: hidden / ratio, "chips"),
        (lambda hidden, ratio: 0.0, "above 0"),
        (lambda hidden, ratio: 1 + 1.5 * ratio / hidden, "have changed places"),
        (lambda hidden, ratio: (1 + 1.5 * hidden) / ratio, "the 1 is divided by ratio"),
        (lambda hidden, ratio: 1.5 * (1 + hidden / ratio), "the 1 is multiplied, too"),
        (lambda hidden, ratio: 1.5 * hidden / ratio - 1, "goes to the other side"),
        (lambda hidden, ratio: 1 + 1.5 * hidden // ratio, "n need not be whole"),
        (lambda hidden, ratio: 1 + 1.25 * hidden / ratio, "set the seconds"),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex11.one_matrix: [side_by_side, by_reshape, by_index, filled, jax.jit(by_reshape, static_argnums=3)],
    ex11.needed_key_heads: [
        keys_by_set,
        keys_by_ends,
        keys_by_repeat,
        lambda *a: tuple(sorted(keys_by_set(*a), reverse=True)),
        lambda *a: [float(key) for key in keys_by_repeat(*a)],
    ],
    ex11.parallel_layer: [
        halves(lambda x, n, a, m: x + (lambda v: psum(a(v) + m(v)))(own(n))),
        lambda x, w, norm, attention, mlp: (lambda v: x + psum(attention(v, w) + mlp(v, w)))(norm(own(x))),
        lambda x, w, norm, attention, mlp: (lambda v: x + psum(jnp.stack([attention(v, w), mlp(v, w)]).sum(0)))(
            own(norm(x))
        ),
        jax.jit(ex11.parallel_layer.function, static_argnums=(2, 3, 4)),
        lambda x, w, norm, attention, mlp: (lambda v: psum(attention(v, w) + mlp(v, w)) + x)(own(norm(x))),
    ],
    ex11.vocabulary_loss: [
        of_tokens(hit=hit_by_clip),
        one_sum,
        by_parts,
        gathered_parts,
        shifted,
        jax.jit(of_tokens()),
        of_tokens(mean=lambda v: v.sum() / v.size),
    ],
    ex11.most_chips: [
        lambda hidden, ratio: 1 + 1.5 * hidden / ratio,
        lambda hidden, ratio: np.float64(3 * hidden / (2 * ratio) + 1),
        lambda hidden, ratio: jnp.asarray(1 + 3 * hidden / ratio / 2),
        lambda hidden, ratio: (12 * hidden + 8 * ratio) / (8 * ratio),
    ],
}

# exercise: changes of the solution in one place that compute the same
SAME = {
    ex11.needed_key_heads: [
        (
            "return sorted({head * key_heads // heads for head in mine}) -> "
            "return {head * key_heads // heads for head in mine}",
            "the same numbers, each once: a set has no order, and none is judged",
        ),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex11.sums_a_layer: (
        4,
        [
            (2, "the two that you wrote"),
            (3, "each half of the layer"),
            (6, "q, k and v are one product"),
            (16, "all four layers"),
        ],
    ),
    ex11.apart: (
        {"units": 12, "all-reduces": 16},
        [
            ((8, None), "three cut weights"),
            ((16, None), "the forward pass is as before"),
            ((None, 24), "puts sums that are ready together"),
            ((None, 32), "puts sums that are ready together"),
        ],
    ),
    ex11.unchecked: ("8 times", [("right", "count the losses"), ("neither", "the transpose of the psum")]),
    ex11.lowest_loss: ("wrong", [("whole", "fitted to the targets alone"), ("right", "fits the targets by itself")]),
    ex11.cut_between: ("the same", [("less", "the two halves"), ("more", "the two halves")]),
    ex11.again: (
        {"tensor": 10, "sequence": 11, "gather again": 10},
        [
            ((12, None, None), "who needs the result"),
            ((8, None, None), "contains a psum"),
            ((None, 12, None), "who needs the layer's last reduce-scatter"),
            ((None, 10, None), "one of the two reduce-scatters"),
            ((None, None, 8), "that comes again"),
            ((None, None, 11), "the policy keeps"),
        ],
    ),
    ex11.for_the_pod: ("more", [("the same", "does not find"), ("less", "does not find")]),
    ex11.waits_first: ("attention", [("MLP", "more products"), ("neither", "do both compute the same")]),
}
