"""Provide unusual solutions to the exercises of lesson 11."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from exercises import ex11
from utils.compat import pcast


def in_one_product(x, w):
    both = pcast(x, "model", to="varying") @ jnp.concatenate([w["gate"], w["up"]], axis=1)
    gate, up = jnp.split(both, 2, axis=1)
    return w["bias"] + jax.lax.psum(jnp.einsum("th,hd->td", gate * jax.nn.sigmoid(gate) * up, w["down"]), "model")


def made_own_by_a_zero(x, w):
    own = x + 0 * jax.lax.axis_index("model").astype(x.dtype)
    return jax.lax.psum((jax.nn.silu(own @ w["gate"]) * (own @ w["up"])) @ w["down"], ("model",)) + w["bias"]


def of_log_sums(logits, targets):
    mine = jax.nn.logsumexp(logits, axis=1)
    top = jax.lax.pmax(jax.lax.stop_gradient(mine), "model")
    words = jnp.arange(logits.shape[1]) + jax.lax.axis_index("model") * logits.shape[1]
    hit = jnp.where(words == targets[:, None], logits, 0).sum(1)
    total, hit = jax.lax.psum((jnp.exp(mine - top), hit), "model")
    return jnp.mean(top + jnp.log(total)) - hit.mean()


def of_gathered_tops(logits, targets):
    own = jax.lax.stop_gradient(logits.max(1))
    top = (
        jax.lax.psum(jax.lax.all_gather(own, "model").max(0) / 8, "model") if jax.lax.axis_size("model") == 8 else None
    )
    top = jax.lax.pmax(own, "model") if top is None else jax.lax.stop_gradient(top)
    start = jax.lax.axis_index("model") * logits.shape[1]
    there = (targets >= start) & (targets < start + logits.shape[1])
    picked = jnp.take_along_axis(logits, jnp.clip(targets - start, 0, logits.shape[1] - 1)[:, None], 1)[:, 0]
    total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(1), "model")
    return (jnp.log(total) + top).mean() - jax.lax.psum(jnp.where(there, picked, 0.0).mean(), "model")


ALTERNATIVES = {
    ex11.one_matrix: [
        lambda q, k, v, n: np.stack([q, k, v]).reshape(3, len(q), n, -1).transpose(1, 2, 0, 3).reshape(len(q), -1),
        lambda q, k, v, n: jnp.hstack(
            [m[:, i * m.shape[1] // n :][:, : m.shape[1] // n] for i in range(n) for m in (q, k, v)]
        ),
    ],
    ex11.gated_mlp: [in_one_product, made_own_by_a_zero],
    ex11.most_chips: [
        lambda width, params, ratio: float(1 + Fraction(3, 8) * Fraction(params) / (width * ratio)),
        lambda width, params, ratio: np.float32(params / width) * 0.375 / ratio + 1,
    ],
    ex11.vocabulary_loss: [of_log_sums, of_gathered_tops],
}
