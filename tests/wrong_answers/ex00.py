"""Wrong answers to the exercises of notebook 00."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from utils.exercises import ex00


def python_if(x):
    if abs(x) <= 1:
        return 0.5 * x**2
    return abs(x) - 0.5


def where(holds, inside, outside):
    return lambda x: jnp.where(holds(x), inside(x), outside(x))


def half_square(x):
    return 0.5 * x**2


def small(x):
    return jnp.abs(x) <= 1


def late_lambda(f, n):
    g = f
    for _ in range(n):
        g = lambda x: jax.grad(g)(x)  # noqa: E731, B023
    return g


def grads_of(n_more):
    def derivative(f, n):
        for _ in range(n + n_more):
            f = jax.grad(f)
        return f

    return derivative


def one_by_one(loss, w, x, y):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)


def of_the_mean(loss, w, x, y):
    return jnp.linalg.norm(jax.grad(lambda w: jax.vmap(loss, (None, 0, 0))(w, x, y).mean())(w))


def by_x(loss, w, x, y):
    return jnp.linalg.norm(jax.vmap(jax.grad(loss, argnums=1), in_axes=(None, 0, 0))(w, x, y), axis=1)


def draws(choose):
    """Two draws and a key, from the function that chooses the three keys."""

    def draw(key, shape):
        one, two, later = choose(key)
        return jax.random.normal(one, shape), jax.random.normal(two, shape), later

    return draw


def split_once(key):
    key, one = jax.random.split(key)
    return one, key, key


def from_the_parent(key):
    later, one = jax.random.split(key)
    return key, one, later


def hidden(key, shape):
    return np.random.normal(size=shape), np.random.normal(size=shape), jax.random.split(key)[0]


def split_again(key, shape):
    key, one = jax.random.split(key)
    _, two = jax.random.split(key)
    return jax.random.normal(one, shape), jax.random.normal(two, shape), key


def mirrored(key, shape):
    weights, _, later = ex00.draw_two.function(key, shape)
    return weights, -weights, later


def three_by_hand(f, n):
    one = jax.grad(f)
    two = jax.grad(one)
    return [f, one, two, jax.grad(two)][min(n, 3)] if n < 5 else lambda x: 0 * x


def uniform(key, shape):
    key, one, two = jax.random.split(key, 3)
    return jax.random.uniform(one, shape), jax.random.uniform(two, shape), key


def moved(velocity_rule, params_rule):
    def nesterov(params, velocity, grads, rate, fade):
        new = jax.tree.map(lambda v, g: velocity_rule(v, g, rate, fade), velocity, grads)
        return jax.tree.map(lambda p, g, v: params_rule(p, g, v, rate, fade), params, grads, new), new

    return nesterov


def faded(v, g, rate, fade):
    return fade * v + g


def ahead(p, g, v, rate, fade):
    return p - rate * (g + fade * v)


def old_velocity(params, velocity, grads, rate, fade):
    return ex00.nesterov.function(params, velocity, grads, rate, fade)[0], velocity


def exchanged(*args):
    return ex00.nesterov.function(*args)[::-1]


def in_place(params, velocity, grads, rate, fade):
    for p, v, g in zip(params["layers"], velocity["layers"], grads["layers"], strict=True):
        for name in p:
            v[name] = fade * v[name] + g[name]
            p[name] = p[name] - rate * (g[name] + fade * v[name])
    return params, velocity


def only_leaves(*args):
    return tuple(jax.tree.leaves(tree) for tree in ex00.nesterov.function(*args))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex00.huber: [
        (python_if, "Python can neither choose by it"),
        (lambda x: python_if(float(x)), "turn it into a number of its own"),
        (lambda x: np.where(np.abs(x) <= 1, 0.5 * x**2, np.abs(x) - 0.5), "Take jnp's"),
        (where(lambda x: x <= 1, half_square, lambda x: jnp.abs(x) - 0.5), "your condition holds for every negative x"),
        (where(small, half_square, lambda x: x - 0.5), "The linear part has |x|, not x"),
        (where(small, half_square, jnp.abs), "the function jumps at 1"),
        (lambda x: jax.lax.cond(abs(x) <= 1, 0.5 * x**2, abs(x) - 0.5, x), "two functions, and then their argument"),
        (where(small, lambda x: jnp.abs(x) - 0.5, half_square), "Are the two ways exchanged?"),
    ],
    ex00.derivative: [
        (lambda f, n: jax.grad(f), "It is the same for every n"),
        (lambda f, n: lambda x: jax.grad(f)(x) ** n, "a power of the first derivative"),
        (three_by_hand, "Begin with f, and apply jax.grad n times"),
        (grads_of(1), "That is the derivative of order 1. Count the rounds"),
        (grads_of(-1), "That is the derivative of order 0. Count the rounds"),
        (late_lambda, "by then the name holds the lambda itself"),
        (lambda f, n: jax.grad(f)(2.0), "expected a function, as jax.grad returns one"),
    ],
    ex00.gradient_norms: [
        (of_the_mean, "expected one for each of the 4 examples. Gradient first"),
        (one_by_one, "Now the length of each row"),
        (lambda *args: jnp.linalg.norm(one_by_one(*args), axis=0), "one for each weight"),
        (lambda *args: (one_by_one(*args) ** 2).sum(axis=1), "Its square root is the length"),
        (lambda loss, w, x, y: jax.vmap(jax.grad(loss))(w, x, y), "w is the same for every example"),
        (lambda loss, w, x, y: jax.grad(loss)(w, x, y), "You gave the loss of one example a whole batch"),
        (by_x, "that is the gradient by x"),
        (
            lambda loss, w, x, y: jnp.sqrt((one_by_one(loss, w, x, y) ** 2).mean(axis=1)),
            "the mean of the squares instead of their sum",
        ),
        (
            lambda loss, w, x, y: jnp.linalg.norm(2 * (x @ w - y)[:, None] * x, axis=1),
            "you do not use the `loss` that you are given",
        ),
    ],
    ex00.draw_two: [
        (draws(lambda key: (key, key, jax.random.split(key)[0])), "you drew both with the same key"),
        (draws(lambda key: (*jax.random.split(key), key)), "You return the key that came in"),
        (draws(split_once), "the key with which you drew the noise"),
        (draws(from_the_parent), "drawn with the key that came in"),
        (draws(lambda key: jax.random.split(jax.random.key(0), 3)), "a key of your own"),
        (draws(lambda key: (*jax.random.split(key), jax.random.split(key, 5))), "expected one key"),
        (hidden, "you draw from a hidden state"),
        (lambda key, shape: ex00.draw_two.function(key, shape)[:2], "You return 2 things"),
        (uniform, "as of jax.random.normal"),
        (split_again, "The key that you return has been split already"),
        (lambda key, shape: (*ex00.draw_two.function(key, shape)[:2], jax.random.key(0)), "the same key for later"),
        (mirrored, "Your noise is made of your weights"),
    ],
    ex00.nesterov: [
        (moved(faded, lambda p, g, v, rate, fade: p - rate * v), "that is momentum as in the lesson"),
        (moved(faded, lambda p, g, v, rate, fade: p - rate * g), "plain gradient descent"),
        (moved(faded, lambda p, g, v, rate, fade: p + rate * (g + fade * v)), "moved uphill"),
        (moved(faded, lambda p, g, v, rate, fade: fade * p - rate * (g + fade * v)), "The parameters themselves fade"),
        (moved(faded, lambda p, g, v, rate, fade: p - rate * fade * v), "the gradient itself is missing"),
        (moved(lambda v, g, rate, fade: fade * v + rate * g, ahead), "the rate comes in once"),
        (moved(lambda v, g, rate, fade: fade * v + (1 - fade) * g, ahead), "the gradient in full"),
        (moved(lambda v, g, rate, fade: fade * v - g, ahead), "g has the wrong sign"),
        (old_velocity, "is the old one"),
        (exchanged, "return the parameters first"),
        (in_place, "you assigned into the caller's list or dictionary"),
        (lambda p, v, g, rate, fade: (p - rate * (g + fade * v), v), "computes leaf by leaf"),
        (only_leaves, "keeps the form"),
    ],
}
