"""Provide unusual solutions to the exercises of lesson 10."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises import ex10


def _gathered(p):
    return jax.lax.all_gather(p, "data", axis=-1, tiled=True)


def by_policy(params, x, y):
    def layer(x, w):
        a, b, c = map(_gathered, (w["a"], w["b"], w["c"]))
        return x + (jnp.tanh(x @ a) * (x @ b)) @ c, None

    keep = jax.checkpoint(layer, policy=lambda operation, *_, **__: operation.name != "all_gather")
    return jax.lax.pmean(jnp.square(y - jax.lax.scan(keep, x, params)[0]).mean(), "data")


def summed_and_divided(params, x, y):
    def layer(x, w):
        a, b, c = (_gathered(w[k]) for k in "abc")
        return x + jnp.einsum("rh,rh,hd->rd", jnp.tanh(x @ a), x @ b, c), None

    x, _ = jax.lax.scan(jax.remat(layer), x, params)
    return jax.lax.psum(jnp.sum((y - x) ** 2), "data") / jax.lax.psum(x.size, "data")


def in_one_buffer(params, x, y):
    def layer(x, w):
        flat = _gathered(jnp.concatenate([w["a"], w["b"], w["c"].T.reshape(len(w["a"]), -1)], axis=1)[None])
        parts = flat.reshape(len(w["a"]), -1, 2 * w["a"].shape[1] + w["c"].size // len(w["a"]))
        k = w["a"].shape[1]
        a, b = (parts[:, :, i * k : i * k + k].reshape(len(w["a"]), -1) for i in (0, 1))
        rest = jnp.moveaxis(parts[:, :, 2 * k :], 1, 0)
        c = jnp.concatenate([piece.reshape(w["c"].T.shape).T for piece in rest], axis=1)
        return x + (jnp.tanh(x @ a) * (x @ b)) @ c, None

    x, _ = jax.lax.scan(jax.checkpoint(layer), x, params)
    return jax.lax.pmean(((x - y) ** 2).mean(), "data")


def _byte_loss(params, text, at):
    """Return the loss of the byte model, with a constraint at one of four places."""

    def constrain(x, place):
        return jax.lax.with_sharding_constraint(x, P("data")) if place == at else x

    def layer(x, w):
        if at == "weights":
            w = jax.tree.map(lambda a: jax.lax.with_sharding_constraint(a, P()), w)
        h = constrain(jax.nn.relu(constrain(x, "input") @ w["up"]), "hidden")
        return constrain(x + h @ w["down"], "output"), None

    layers = {"up": params["up"], "down": params["down"]}
    x, _ = jax.lax.scan(jax.remat(layer), jnp.take(params["embed"], text[:, :-1], axis=0), layers)
    logp = jax.nn.log_softmax(jnp.einsum("btd,vd->btv", x, params["embed"]))
    return -jnp.mean(jnp.take_along_axis(logp, text[:, 1:, None], axis=-1)[..., 0])


ALTERNATIVES = {
    ex10.zero_memory: [
        lambda numbers, n, stage: jnp.float32(numbers) * jnp.array([16, 4 + 12 / n, 2 + 14 / n, 16 / n])[stage],
        lambda numbers, n, stage: float(Fraction(int(numbers)) * (16 - [0, 12, 14, 16][stage] * Fraction(n - 1, n))),
    ],
    ex10.gated_loss: [by_policy, summed_and_divided, in_one_buffer],
    ex10.keep_batch_split: [
        lambda params, text: _byte_loss(params, text, "input"),
        lambda params, text: _byte_loss(params, text, "hidden"),
        lambda params, text: _byte_loss(params, text, "output"),
        lambda params, text: _byte_loss(params, text, "weights"),
    ],
    ex10.tokens_to_hide: [
        lambda f, w, n, a, b, c: np.float32((2 * a + b) * (n - 1) / n * f / w / c),
        lambda f, w, n, a, b, c: Fraction(2 * a + b) * Fraction(n - 1, n) * Fraction(f / w) / c,
    ],
}

EQUIVALENT_MUTANTS = {
    ex10.keep_batch_split: [
        (
            "return -jnp.take_along_axis(logp, text[:, 1:, None], axis=-1).mean() -> "
            "return -jnp.take_along_axis(logp, text[:, 1:, None]).mean()",
            "the last axis is the default",
        ),
    ],
}
