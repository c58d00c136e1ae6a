"""Provide unusual solutions to the exercises of lesson 00, and list the equivalent mutants."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from exercises import ex00


def mean_in_a_loop(losses, n):
    return jax.lax.fori_loop(0, n, lambda i, total: total + losses[i], 0.0) / n


def mean_by_cumsum(losses, n):
    return jnp.cumsum(losses)[n - 1] / n


def length_by_cond(v):
    return jax.lax.cond((v == 0).all(), lambda v: 0.0 * v.sum(), jnp.linalg.norm, v)


def length_scaled(v):
    largest = jax.lax.stop_gradient(jnp.abs(v).max())
    scale = jnp.where(largest == 0, 1.0, largest)
    s = ((v / scale) ** 2).sum()
    return scale * jnp.where(s == 0, 0.0, jnp.sqrt(jnp.where(s == 0, 1.0, s)))


def clipped_by_optax(loss, params, x, y, most):
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    leaves, structure = jax.tree.flatten(gradients)
    total, _ = optax.per_example_global_norm_clip(leaves, most)
    return jax.tree.unflatten(structure, [leaf / len(x) for leaf in total])


def clipped_in_a_loop(loss, params, x, y, most):
    total = jax.tree.map(jnp.zeros_like, params)
    for one_x, one_y in zip(x, y, strict=True):
        gradient = jax.grad(loss)(params, one_x, one_y)
        size = max(float(optax.tree_utils.tree_norm(gradient)), most)
        total = jax.tree.map(lambda t, p, size=size: t + p * (most / size), total, gradient)
    return jax.tree.map(lambda t: t / len(x), total)


def clipped_in_numpy(*args):
    return jax.tree.map(np.asarray, clipped_in_a_loop(*args))


ALTERNATIVES = {
    ex00.mean_of_real: [
        mean_in_a_loop,
        mean_by_cumsum,
        lambda losses, n: (losses * (jnp.arange(losses.size) < n)).sum() / n,  # XLA compiles this product to a select
        lambda losses, n: jnp.mean(losses, where=jnp.arange(losses.size) < n),
    ],
    ex00.length: [length_by_cond, length_scaled],
    ex00.clipped: [clipped_by_optax, clipped_in_a_loop, clipped_in_numpy],
}

EQUIVALENT_MUTANTS = {
    ex00.length: [
        (
            "harmless = jnp.where(zero, 1.0, v) -> harmless = jnp.where(zero, 2.0, v)",
            "any number that is not 0 is harmless",
        )
    ]
}
