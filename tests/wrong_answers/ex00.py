"""Wrong answers to the exercises of notebook 00, right ones in unusual forms, and guesses."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from utils.exercises import ex00

normal, split, fold_in = jax.random.normal, jax.random.split, jax.random.fold_in


# ---- in_few_lengths


def to_length(choose, **options):
    """Filled up to the length that is chosen from n."""

    def answer(total, x):
        return total(np.pad(x, (0, choose(len(x)) - len(x)), **options))

    return answer


def power(n):
    return 1 << (n - 1).bit_length()


def in_front(total, x):
    return total(np.pad(x, (power(len(x)) - len(x), 0)))


def no_total(total, x):
    return jnp.sum(x**2)


def resized(total, x):
    return total(jnp.resize(x, power(len(x))))


def own_jit(total, x):
    return jax.jit(lambda x: total(jnp.pad(x, (0, power(x.size) - x.size))))(x)


def cut(total, x):
    return total(x[: power(len(x) + 1) // 2])


def jitted_again(total, x):
    return jax.jit(total)(x)


def returns_the_vector(total, x):
    x = np.pad(x, (0, power(len(x)) - len(x)))
    total(x)
    return x


def forgets_to_return(total, x):
    total(np.pad(x, (0, power(len(x)) - len(x))))


def shown_to_total(total, x):
    x = np.pad(x, (0, power(len(x)) - len(x)))
    return x if len(x) else total(x)


def from_ladder(*lengths):
    return to_length(lambda n: next(length for length in lengths if length >= n))


def as_it_is_too(total, x):
    total(x)
    return total(np.pad(x, (0, power(len(x)) - len(x))))


def with_at(total, x):
    filled = jnp.zeros(2 ** math.ceil(math.log2(len(x))))
    return total(filled.at[: len(x)].set(x))


def with_lists(total, x):
    values = x.tolist()
    while len(values) not in (1, 2, 4, 8, 16, 32, 64):
        values.append(0.0)
    return float(total(jnp.array(values)))


def from_a_list(total, x):
    length = next(n for n in (1, 2, 4, 8, 16, 32, 64) if n >= len(x))
    return total(np.concatenate([x, np.zeros(length - len(x), np.float32)]))


def thrice(total, x):
    lengths = [2, 4, 7, 13, 23, 40, 64]
    return total(np.pad(x, (0, next(n for n in lengths if n >= len(x)) - len(x))))


# ---- length


def squares(v):
    return (v**2).sum()


def with_if(v):
    return jnp.sqrt(squares(v)) if squares(v) > 0 else 0.0


def not_before(v):
    return jnp.where(squares(v) > 0, jnp.sqrt(squares(v)), 0.0)


def one_for_each_zero(v):
    return jnp.linalg.norm(jnp.where(v == 0, 1.0, v))


def if_this(test):
    """Safe before and after, by a test that other vectors than 0 do not pass, either."""

    def answer(v):
        good = test(v)
        return jnp.where(good, jnp.linalg.norm(jnp.where(good, v, 1.0)), 0.0)

    return answer


def only_before(v):
    return jnp.sqrt(jnp.where(squares(v) > 0, squares(v), 1.0))


def zero_before(v):
    return jnp.where(squares(v) > 0, jnp.sqrt(jnp.where(squares(v) > 0, squares(v), 0.0)), 0.0)


def zero_as_one(v):
    zero = squares(v) == 0
    return jnp.sqrt(squares(v) + zero) - zero


def mask(v):
    return jnp.linalg.norm(v[v != 0])


def stopped(v):
    return jax.lax.stop_gradient(safe(v))


def one_stop(v):
    return squares(v) / jax.lax.stop_gradient(jnp.where(squares(v) > 0, jnp.sqrt(squares(v)), 1.0))


def safe(v, norm=jnp.linalg.norm):
    zero = (v == 0).all()
    return jnp.where(zero, 0.0, norm(jnp.where(zero, 1.0, v)))


def by_cond(v):
    return jax.lax.cond((v == 0).all(), lambda v: 0.0 * v.sum(), jnp.linalg.norm, v)


@jax.custom_jvp
def own_rule(v):
    return jnp.linalg.norm(v)


@own_rule.defjvp
def _(primals, tangents):
    (v,), (t,) = primals, tangents
    size = jnp.linalg.norm(v)
    return size, (v @ t) / jnp.where(size == 0, 1, size)


def scaled(v):
    largest = jnp.abs(v).max()
    by = jax.lax.stop_gradient(jnp.where(largest == 0, 1.0, largest))
    s = ((v / by) ** 2).sum()
    return by * jnp.where(s == 0, 0.0, jnp.sqrt(jnp.where(s == 0, 1.0, s)))


# ---- draw_two


def draws(choose):
    """Two draws and a key, from the function that chooses the three keys."""

    def draw(key, shape):
        one, two, later = choose(key)
        return normal(one, shape), normal(two, shape), later

    return draw


def split_once(key):
    key, one = split(key)
    return one, key, key


def from_the_parent(key):
    later, one = split(key)
    return key, one, later


def split_again(key):
    key, one = split(key)
    _, two = split(key)
    return one, two, key


def other_counts(key):
    return split(key, 2)[0], split(key, 3)[1], split(key, 3)[2]


def child_of_the_noise(key):
    one, two = split(key)
    return one, two, split(two)[0]


def used_and_split(key, shape):
    key, one = split(key)
    weights = normal(one, shape)
    later, two = split(one)
    return weights, normal(two, shape), later


def other_shape(key, shape):
    key, one = split(key)
    return normal(one, shape), normal(one, shape[::-1]).T.reshape(shape), key


def shuffled(key, shape):
    key, one, two = split(key, 3)
    weights = normal(one, shape)
    return weights, jax.random.permutation(two, weights.ravel()).reshape(shape), key


def numpy_seed(key, shape):
    weights, _, later = ex00.draw_two.function(key, shape)
    noise = np.random.default_rng(0).normal(size=shape)
    return weights, jnp.asarray(noise, jnp.float32), later


def hidden(key, shape):
    rng = np.random.default_rng()
    return rng.normal(size=shape), rng.normal(size=shape), split(key)[0]


def of_the_weights(change):
    def draw(key, shape):
        weights, _, later = ex00.draw_two.function(key, shape)
        return weights, change(weights), later

    return draw


def halves_of_a_sum(key, shape):
    key, one, two = split(key, 3)
    weights = normal(one, shape)
    return weights, (weights + 7 * normal(two, shape)) / math.sqrt(50), key


def uniform(key, shape):
    key, one, two = split(key, 3)
    draw = partial(jax.random.uniform, shape=shape, minval=-math.sqrt(3), maxval=math.sqrt(3))
    return draw(one), draw(two), key


def from_zero_to_one(key, shape):
    key, one, two = split(key, 3)
    return normal(one, shape), jax.random.uniform(two, shape), key


def overlapping(key, shape):
    key, one = split(key)
    numbers = normal(one, (math.prod(shape) + 1,))
    return numbers[:-1].reshape(shape), numbers[1:].reshape(shape), key


def rows_alike(key, shape):
    key, one, two = split(key, 3)
    return normal(one, shape), jnp.broadcast_to(normal(two, shape[1:]), shape), key


def plus_one(key, shape):
    return normal(key, shape), normal(key + 1, shape), key


def one_draw(key, shape):
    """Both from one key, but numbers of their own."""
    key, one = split(key)
    both = normal(one, (2, *shape))
    return both[0], both[1], key


def with_vmap(key, shape):
    key, *two = split(key, 3)
    return (*jax.vmap(lambda key: normal(key, shape))(jnp.stack(two)), key)


def with_map(key, shape):
    later, rest = split(key)
    weights, noise = jax.lax.map(lambda key: normal(key, shape), split(rest))
    return [weights, noise, later]


def chained(key, shape):
    key, one = split(key)
    weights = normal(one, shape)
    key, two = split(key)
    return weights, normal(two, shape, jnp.float32), key


def in_numpy(key, shape):
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    return rng.normal(size=shape), rng.normal(size=shape), jax.random.key(int(rng.integers(2**31)))


# ---- clipped


def per_example(loss, params, x, y):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)


def clip_by(factor, mean=lambda leaf: leaf.mean(axis=0)):
    """Each example's gradient times a factor, from its length and from most."""

    def answer(loss, params, x, y, most):
        def one(x, y):
            pull = jax.grad(loss)(params, x, y)
            return jax.tree.map(lambda leaf: leaf * factor(optax.tree_utils.tree_norm(pull), most), pull)

        return jax.tree.map(mean, jax.vmap(one)(x, y))

    return answer


def shorten(size, most):
    return jnp.minimum(1, most / size)


def after_the_mean(loss, params, x, y, most):
    pull = jax.tree.map(lambda leaf: leaf.mean(axis=0), per_example(loss, params, x, y))
    return jax.tree.map(lambda leaf: leaf * shorten(optax.tree_utils.tree_norm(pull), most), pull)


def all_together(loss, params, x, y, most):
    pulls = per_example(loss, params, x, y)
    return jax.tree.map(lambda leaf: leaf.mean(axis=0) * shorten(optax.tree_utils.tree_norm(pulls), most), pulls)


def leaf_by_leaf(loss, params, x, y, most):
    def one(x, y):
        return jax.tree.map(lambda leaf: leaf * shorten(jnp.sqrt((leaf**2).sum()), most), jax.grad(loss)(params, x, y))

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))


def each_number(loss, params, x, y, most):
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -most, most).mean(axis=0), per_example(loss, params, x, y))


def lengths_added(loss, params, x, y, most):
    def one(x, y):
        pull = jax.grad(loss)(params, x, y)
        size = sum(jnp.linalg.norm(leaf) for leaf in jax.tree.leaves(pull))
        return jax.tree.map(lambda leaf: leaf * shorten(size, most), pull)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))


def mean_square(loss, params, x, y, most):
    def one(x, y):
        pull = jax.grad(loss)(params, x, y)
        size = jnp.sqrt(jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(pull)]) ** 2).mean()
        return jax.tree.map(lambda leaf: leaf * shorten(size, most), pull)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))


def root_of_the_mean(loss, params, x, y, most):
    def one(x, y):
        pull = jax.grad(loss)(params, x, y)
        size = jnp.sqrt((jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(pull)]) ** 2).mean())
        return jax.tree.map(lambda leaf: leaf * shorten(size, most), pull)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))


def clip_by_leaves(size):
    """Each example's gradient, shortened by what `size` makes of its leaves."""

    def answer(loss, params, x, y, most):
        def one(x, y):
            pull = jax.grad(loss)(params, x, y)
            return jax.tree.map(lambda leaf: leaf * shorten(size(jax.tree.leaves(pull)), most), pull)

        return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))

    return answer


def of_the_long_ones(every):
    """The mean over the number of long gradients: of the long ones, or of every one."""

    def answer(loss, params, x, y, most):
        pulls = per_example(loss, params, x, y)
        sizes = jax.vmap(optax.tree_utils.tree_norm)(pulls)
        factors = shorten(sizes, most) * (every | (sizes > most)) / (sizes > most).sum()
        return jax.tree.map(lambda leaf: jnp.tensordot(factors, leaf, 1), pulls)

    return answer


def by_all(factor):
    """The mean gradient times one factor, from the lengths of all."""

    def answer(loss, params, x, y, most):
        pulls = jax.tree.map(np.asarray, per_example(loss, params, x, y))
        sizes = np.sqrt(sum((leaf.reshape(len(x), -1) ** 2).sum(axis=1) for leaf in jax.tree.leaves(pulls)))
        return jax.tree.map(lambda leaf: leaf.mean(axis=0) * factor(sizes, most), pulls)

    return answer


def largest_singular(loss, params, x, y, most):
    pulls = jax.tree.map(np.asarray, per_example(loss, params, x, y))
    leaves = [leaf.reshape(len(x), -1, 1) if leaf.ndim < 3 else leaf for leaf in jax.tree.leaves(pulls)]
    sizes = np.sqrt(sum(np.linalg.norm(leaf, ord=2, axis=(1, 2)) ** 2 for leaf in leaves))
    factors = np.minimum(1, most / np.maximum(sizes, 1e-9))
    return jax.tree.map(lambda leaf: np.tensordot(factors, leaf, 1) / len(x), pulls)


def loss_bounded(loss, params, x, y, most):
    pulls = per_example(lambda *args: jnp.minimum(loss(*args), most), params, x, y)
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), pulls)


def a_list_of_layers(loss, params, x, y, most):
    return [{"w": layer["w"]} for layer in params]


def layers_with_items(loss, params, x, y, most):
    return [dict(layer.items()) for layer in params]


def clip_with_if(loss, params, x, y, most):
    return clip_by(lambda size, most: most / size if size > most else 1)(loss, params, x, y, most)


def everything_mapped(loss, params, x, y, most):
    return jax.vmap(jax.grad(loss))(params, x, y)


def no_map(loss, params, x, y, most):
    return jax.grad(loss)(params, x, y)


def only_the_mean(loss, params, x, y, most):
    return jax.grad(lambda params: jax.vmap(loss, (None, 0, 0))(params, x, y).mean())(params)


def in_a_loop(loss, params, x, y, most):
    total = jax.tree.map(np.zeros_like, params)
    for one_x, one_y in zip(x, y, strict=True):
        pull = jax.grad(loss)(params, one_x, one_y)
        size = math.sqrt(sum(float((leaf**2).sum()) for leaf in jax.tree.leaves(pull)))
        factor = most / size if size > most else 1
        total = jax.tree.map(lambda a, b, factor=factor: a + np.asarray(b) * factor / len(x), total, pull)
    return total


def by_optax(loss, params, x, y, most):
    pulls = per_example(loss, params, x, y)
    sizes = jax.vmap(optax.tree_utils.tree_norm)(pulls)
    leaves, form = jax.tree.flatten(pulls)
    short = [jnp.tensordot(jnp.minimum(1, most / sizes), leaf, 1) / len(y) for leaf in leaves]
    return jax.tree.unflatten(form, short)


def in_a_scan(loss, params, x, y, most):
    def step(total, example):
        pull = jax.grad(loss)(params, *example)
        size = optax.tree_utils.tree_norm(pull)
        return jax.tree.map(lambda a, b: a + b / jnp.maximum(1, size / most), total, pull), None

    total, _ = jax.lax.scan(step, jax.tree.map(jnp.zeros_like, params), (x, y))
    return jax.tree.map(lambda leaf: leaf / len(x), total)


def flattened(loss, params, x, y, most):
    flat, back = jax.flatten_util.ravel_pytree(params)
    pulls = jax.vmap(jax.grad(lambda flat, x, y: loss(back(flat), x, y)), (None, 0, 0))(flat, x, y)
    sizes = jnp.linalg.norm(pulls, axis=1, keepdims=True)
    return back((pulls * jnp.where(sizes > most, most / sizes, 1.0)).mean(axis=0))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex00.in_few_lengths: [
        (lambda total, x: total(x), "total is compiled 8 times, for the lengths 1, 2, 3, 4, 5"),
        (jitted_again, "inside of a jit (or vmap, or grad) of your own"),
        (to_length(lambda n: 64), "of length 64: more than twice as long"),
        (to_length(lambda n: math.ceil(n / 8) * 8), "Of a vector of length 1, total gets one of length 8: more than"),
        (to_length(lambda n: n + n % 2), "seven at most"),
        (to_length(lambda n: 2 * n), "seven at most"),
        (to_length(power, constant_values=1.0), "behind x it is filled up with 1; expected zeros"),
        (to_length(power, mode="edge"), "expected zeros"),
        (resized, "expected zeros"),
        (in_front, "zeros stand in front"),
        (own_jit, "inside of a jit"),
        (cut, "numbers are missing"),
        (no_total, "You never call total"),
        (forgets_to_return, "You return None; expected one number, the result of total"),
        (returns_the_vector, "You return a vector, as total gets it"),
        (lambda total, x: total(x[None]), "it takes a vector"),
        (shown_to_total, "You never call total"),
        (to_length(lambda n: 2 ** round(math.log2(n))), "x has 5 numbers here, and the length that you choose is less"),
        (from_ladder(1, 2, 4, 8, 16, 32, 48, 64), "8 times, for the lengths 1, 2, 4, 8, 16, 32, 48, 64"),
        (from_ladder(1, 2, 4, 8, 16, 24, 32, 64), "8 times, for the lengths 1, 2, 4, 8, 16, 24, 32, 64"),
        (from_ladder(1, 2, 3, 6, 12, 24, 48, 64), "for all of 1 to 64, seven at most"),
        (from_ladder(1, 6, 12, 24, 48, 64), "Of a vector of length 2, total gets one of length 6: more than"),
        (to_length(lambda n: power(n) if n <= 32 else 16 * math.ceil(n / 16)), "seven at most"),
        (to_length(lambda n: n if n <= 4 else power(n)), "8 times, for the lengths 1, 2, 3, 4, 8"),
        (to_length(power, constant_values=math.nan), "behind x it is filled up with nan; expected zeros"),
        (as_it_is_too, "You call total 2 times for one x"),
        (to_length(lambda n: 2.0 ** math.ceil(math.log2(n))), "must be an int, and yours is a float"),
    ],
    ex00.length: [
        (jnp.linalg.norm, "it comes by way of the root of 0"),
        (not_before, "the root of 0, whose slope is infinite"),
        (with_if, "Python can neither choose by them"),
        (lambda v: np.linalg.norm(v), "Take jnp's"),
        (lambda v: jnp.sqrt(squares(v) + 1e-12), "something added under the root"),
        (lambda v: jnp.sqrt(squares(v) + 1e-30), "length([6e-18, 0.0, -8e-18]) is 1.00005e-15; expected 1e-17."),
        (lambda v: jnp.sqrt(jnp.maximum(squares(v), 1e-12)), "a bound in the way"),
        (
            lambda v: jnp.maximum(jnp.linalg.norm(v), 1e-20),
            "is 1e-20; expected 0. Is something added under the root, or",
        ),
        (lambda v: jnp.sqrt(squares(v) + 1e-30) - 1e-15, "is something added under the root"),
        (lambda v: jnp.sqrt(squares(v) + 1e-36) - 1e-18, "is something added under the root"),
        (if_this(lambda v: squares(v) > 1e-30), "length([6e-18, 0.0, -8e-18]) is 0; expected 1e-17"),
        (lambda v: jnp.linalg.norm(v) * (squares(v) > 0), "Only the compiler hides it"),
        (lambda v: jnp.sqrt(squares(v)) * (squares(v) > 0), "Only the compiler hides it"),
        (lambda v: jnp.linalg.norm(jnp.where(v > 0, v, 0)), "The numbers of one sign are lost"),
        (lambda v: jnp.sqrt(jnp.where(squares(v) > 0, squares(v), 1e-38)), "choose the result, too"),
        (one_stop, "twice as long as it should be"),
        (lambda v: squares(v), "That is the sum of the squares"),
        (lambda v: jnp.abs(v).sum(), "That is the sum of the sizes"),
        (lambda v: jnp.sqrt((v**2).mean()), "the root of the mean of the squares"),
        (lambda v: jnp.nan_to_num(jnp.linalg.norm(v)), "the root of 0"),
        (mask, "How many elements a mask takes"),
        (stopped, "is a gradient stopped?"),
        (lambda v: safe(v) if v.any() else 0.0, "Let the program choose"),
        (lambda v: jnp.sqrt(v**2), "expected one number"),
        (lambda v: jnp.sqrt(squares(v) + 1e-37), "length of three zeros is 3.16228e-19; expected 0."),
        (if_this(lambda v: v.sum() != 0), "length([1.0, -5.0, 4.0]) is 0; expected 6.48074. 0 is the length where"),
        (if_this(lambda v: v[0] != 0), "length([0.0, 6.0, -8.0]) is 0; expected 10. 0 is the length where all"),
        (if_this(lambda v: v.all()), "and here 2 of 3 are not"),
        (if_this(lambda v: (v > 0).all()), "and here 3 of 3 are not"),
        (one_for_each_zero, "A 1 stands for each single 0"),
        (only_before, "the root of what you put in the place of 0"),
        (lambda v: jnp.abs(v).max(), "That is the largest size"),
        (lambda v: jnp.sqrt(v.sum()), "the root of the sum of the numbers; squares first"),
    ],
    ex00.draw_two: [
        (draws(lambda key: (key, key, split(key)[0])), "you drew both with the same key"),
        (draws(lambda key: (*split(key), key)), "You return the key that came in"),
        (draws(split_once), "The key that you return is used up: you have used it for a draw of the noise"),
        (draws(from_the_parent), "the one that came in, 2 times: for a split, then for a draw of the weights"),
        (draws(lambda key: split(jax.random.key(0), 3)), "come of a key or a seed of your own"),
        (draws(lambda key: (*split(key), split(key, 5))), "expected one key"),
        (draws(split_again), "The key that you return is used up: you have used it for a split"),
        (draws(other_counts), "the one that came in, 3 times: for a split, then for a split"),
        (draws(child_of_the_noise), "one that you made, 2 times: for a split, then for a draw of the noise"),
        (draws(lambda key: (fold_in(key, 1), fold_in(key, 1), fold_in(key, 2))), "with the same key"),
        (
            draws(lambda key: (key, fold_in(key, 1), fold_in(key, 2))),
            "3 times: for a fold_in, then for a fold_in, then for a draw of",
        ),
        (used_and_split, "one that you made, 2 times: for a draw of the weights, then for a split"),
        (other_shape, "2 times: for a draw of the weights, then for a draw of the noise"),
        (shuffled, "Your noise is made of your weights"),
        (of_the_weights(lambda weights: -weights), "Your noise is made of your weights"),
        (of_the_weights(lambda weights: weights[::-1]), "Your noise is made of your weights"),
        (of_the_weights(lambda weights: jnp.roll(weights, 1)), "Your noise is made of your weights"),
        (halves_of_a_sum, "Your noise is made of your weights"),
        (numpy_seed, "give the same noise: they come of a key or a seed of your own"),
        (hidden, "you draw them from a hidden state"),
        (lambda key, shape: ex00.draw_two.function(key, shape)[:2], "2 of them; expected three things"),
        (lambda key, shape: (*ex00.draw_two.function(key, shape)[:2], jax.random.key(0)), "the same key for later"),
        (uniform, "lie between -1 and 1; expected 0, 1 and 68 %"),
        (from_zero_to_one, "They lie evenly between 0.00 and 1.00: that is jax.random.uniform"),
        (of_the_weights(lambda weights: 0.1 * weights), "Your noise is made of your weights"),
        (rows_alike, "Your noise: all rows are equal, or all columns"),
        (overlapping, "100% of the numbers of your weights are in the noise as well"),
        (draws(lambda key: (*split(key), split(key, 1))), "That is an array of one key; take the key, [0]"),
        (plus_one, "add does not accept dtypes key<fry>"),
        (lambda key, shape: ex00.draw_two.function(key, shape)[::-1], "The order is weights, noise, key"),
        (lambda key, shape: (*ex00.draw_two.function(key, shape)[:2], jax.random.PRNGKey(0)), "the numbers of a key"),
    ],
    ex00.clipped: [
        (only_the_mean, "No gradient is shortened"),
        (after_the_mean, "You shorten the mean; shorten each example's"),
        (all_together, "that of all the examples' gradients together"),
        (clip_by(shorten, lambda leaf: leaf.sum(axis=0)), "That is the sum over the batch"),
        (leaf_by_leaf, "You shorten each leaf by its own length"),
        (clip_by(lambda size, most: most / size), "the short ones are stretched"),
        (each_number, "You bound each number by most"),
        (clip_by(lambda size, most: shorten(size**2, most)), "You divide by the sum of the squares"),
        (clip_by(lambda size, most: jnp.where(size**2 > most, most / size, 1.0)), "against most; its root is"),
        (lengths_added, "You add the lengths of the leaves"),
        (root_of_the_mean, "You take the mean of the squares"),
        (mean_square, "Compute one example by hand"),
        (clip_by_leaves(lambda leaves: sum(jnp.abs(leaf).sum() for leaf in leaves)), "You take the sum of the sizes"),
        (
            clip_by_leaves(lambda leaves: jnp.abs(jnp.hstack([leaf.ravel() for leaf in leaves])).max()),
            "the largest number",
        ),
        (clip_by_leaves(lambda leaves: jnp.sqrt((leaves[0] ** 2).sum())), "You take the length of one leaf"),
        (largest_singular, "the largest singular value, as ord=2 does"),
        (by_all(lambda sizes, most: np.minimum(1, most / sizes.max())), "You shorten all by what the longest needs"),
        (by_all(lambda sizes, most: np.minimum(1, most / sizes.mean())), "You shorten all by their mean length"),
        (
            by_all(lambda sizes, most: np.minimum(1, most / np.maximum(sizes, 1e-9)).mean()),
            "multiply each by its own, then take the mean",
        ),
        (clip_by(lambda size, most: -shorten(size, most)), "minus the result"),
        (clip_by(shorten, lambda leaf: leaf[0]), "That is the first example's gradient"),
        (of_the_long_ones(False), "The mean is over all examples, the short ones as well"),
        (of_the_long_ones(True), "You divide by the number of long ones"),
        (clip_by(lambda size, most: most / (most + size)), "the short ones as well: by most / (most + length)"),
        (loss_bounded, "You bound the loss by most"),
        (a_list_of_layers, "Here params is {'b': (), 'w': (3,)}; any pytree may come"),
        (layers_with_items, "'items' Here params is {'b': (), 'w': (3,)}; any pytree may come"),
        (clip_with_if, "Let the program choose"),
        (clip_by(shorten, lambda leaf: leaf.mean(axis=-1)), "The mean is over the examples, axis 0"),
        (clip_by(lambda size, most: 1 / jnp.maximum(1, size)), "You make long gradients 1 long"),
        (clip_by(lambda size, most: jnp.minimum(1, size / most)), "the quotient is the other way round"),
        (clip_by(lambda size, most: size <= most), "You leave the long gradients out"),
        (clip_by(lambda size, most: jnp.maximum(1, most / size)), "minimum and maximum are exchanged"),
        (clip_by(shorten, lambda leaf: leaf), "one gradient for each of 5 examples; expected their mean"),
        (clip_by(shorten, lambda leaf: leaf.mean()), "A leaf of your result has shape (); expected (3,)"),
        (everything_mapped, "The parameters are the same for every example"),
        (no_map, "it got a whole batch"),
        (lambda *args: jax.tree.leaves(ex00.clipped.function(*args)), "You return list; expected a pytree of the form"),
        (
            lambda loss, params, x, y, most: optax.tree_utils.tree_norm(params),
            "expected a pytree of the form of params",
        ),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex00.in_few_lengths: [
        to_length(power),
        with_at,
        with_lists,
        from_a_list,
        thrice,
        to_length(lambda n: 1 << n.bit_length()),
    ],
    ex00.length: [
        safe,
        partial(safe, norm=lambda v: jnp.sqrt(squares(v))),
        by_cond,
        own_rule,
        lambda v: optax.safe_norm(v, 0.0),
        scaled,
        zero_before,
        zero_as_one,
    ],
    ex00.draw_two: [
        with_vmap,
        with_map,
        chained,
        draws(lambda key: [fold_in(key, i) for i in range(3)]),
        draws(lambda key: split(split(key)[1], 3)),
        one_draw,
        in_numpy,
    ],
    ex00.clipped: [in_a_loop, by_optax, in_a_scan, flattened],
}

# exercise: [(change of the solution in one place, why it computes the same)]
SAME = {
    ex00.in_few_lengths: [
        (
            "length = 2 ** (len(x) - 1).bit_length() -> length = 2 ** (1 - len(x)).bit_length()",
            "the sign of a number is not among its bits",
        ),
    ],
    ex00.length: [
        (
            "harmless = jnp.where(squares > 0, squares, 1.0) -> harmless = jnp.where(squares > 0, squares, 2.0)",
            "any positive number is harmless",
        ),
    ],
    ex00.draw_two: [
        ("return (weights, noise, key) -> return (noise, weights, key)", "two draws of one kind, and names of our own"),
    ],
}

# prediction: (the truth, [(wrong guess, what is said to it)])
GUESSES = {
    ex00.past_the_end: (
        4,
        [
            ("an error", "no good way to stop in the middle"),
            ("nan", "that is what jnp.take gives"),
            (0, "nothing is filled in"),
            ("IndexError", "'IndexError', is not so: it is 4"),
        ],
    ),
    ex00.lines: (
        3,
        [
            (5, "which of them look alike?"),
            (1, "one trace serves one shape and one dtype"),
            (2, "shape and dtype both count"),
            (4, "differ in their values alone"),
        ],
    ),
    ex00.in_the_key: (
        {"values": 1, "number": 2, "form": 2, "name": 2, "static": 2},
        [
            (
                (2, None, None, None, None),
                "values: your guess, 2 runs, is 2 times too large: values are not in the key",
            ),
            ((None, 1, None, None, None), "a Python number has no dtype of its own"),
            ((None, None, 1, None, None), "what holds them is not"),
            ((None, None, None, 1, None), "by its place, and then by its name"),
            ((None, None, None, None, 1), "the program is compiled for it"),
            (2, "expected 5 numbers: values, number, form, name, static"),
        ],
    ),
    ex00.in_a_loop: (
        {"jit(same)": 1, "jit(lambda x: same(x))": 3},
        [
            ((3, 3), "`same` is one object"),
            ((1, 1), "each round makes a new lambda"),
        ],
    ),
    ex00.fused: (
        {"gelu(x)": 1, "gelu(x @ x)": 2},
        [
            ((8, 9), "that is one by one"),
            ((2, None), "x is read twice, by one loop"),
            ((0, None), "one is left"),
            ((None, 1), "an operation of its own"),
            ((None, 3), "one before or after the product is enough"),
        ],
    ),
    ex00.third_at_zero: (
        -2,
        [
            (0, "that is the second derivative"),
            (2, "the sign"),
            (1, "1 is the slope itself"),
            (-1, "the sign is right"),
        ],
    ),
    ex00.slope: (
        "nan",
        [
            (0, "the derivative of the root was computed all the same"),
            ("an error", "nothing raises"),
            (0.5, "-1 is not positive"),
            ("undefined", "is not so: it is nan"),
        ],
    ),
    ex00.ways: (2, [(1, "which one should it skip"), (3, "is 1.5 times too large")]),
    ex00.batch_lines: (
        1,
        [
            (121, "the function is traced, once, for one point"),
            (2, "grad needs no run of its own"),
            (0, "Python has to run"),
        ],
    ),
    ex00.each_gradient: (
        "(2, 5, 3)",
        [
            ((5, 3), "that is for one candidate"),
            ((2, 3), "here each of 5 examples has one of its own"),
            ("(5, 2, 3)", "the outer vmap is over the candidates"),
            ((2, 5), "a gradient has one for each weight"),
            ((5, 1), "is not so: it is (2, 5, 3)"),
        ],
    ),
    ex00.different: (
        3,
        [
            (5, "Python runs only while it is traced"),
            (1, "for ever is once for each trace"),
            (2, "and the integer another dtype"),
            (4, "the last 0.0 looks like the first"),
        ],
    ),
    ex00.shared: (6, [(0, "another shape is no new draw"), (3, "not the first row alone"), (12, "has six")]),
    ex00.equal_scores: (
        math.log(10),
        [
            (0.1, "1/10 is the probability"),
            (-2.3, "minus the logarithm"),
            (1, "to the base 10"),
            (3.32, "that is in bits"),
        ],
    ),
    ex00.kept: (
        {"plain": 0, "momentum": 58_442, "Adam": 116_885},
        [
            ((58_442, None, None), "the parameters are not its own"),
            ((None, 116_884, None), "the parameters themselves are not in the rule's state"),
            ((None, 1, None), "each parameter has a velocity of its own"),
            ((None, None, 58_442), "two means"),
            ((None, None, 175_326), "the parameters themselves are not in the rule's state"),
        ],
    ),
    ex00.changed: (
        "model",
        [("both", "arrays do not change"), ("start", "returned new arrays"), ("neither", "in place")],
    ),
}
