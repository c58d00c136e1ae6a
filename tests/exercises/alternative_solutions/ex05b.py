"""Provide unusual solutions to the exercises of lesson 05b, and list the equivalent mutants."""

import jax
import jax.numpy as jnp
import numpy as np

from exercises import ex05b


def by_own_sums(w, x, y, real):
    """Differentiate each device's own sum of squares, which varies by device, so the gradient of w includes a psum."""
    return jax.grad(lambda w: jnp.sum(real * (x @ w - y) ** 2))(w) / jax.lax.psum(real.sum(), "X")


def by_formula(w, x, y, real):
    sums = jax.lax.psum((2 * x.T @ ((x @ w - y) * real), real.sum()), "X")
    return sums[0] / sums[1]


def outside_of_the_loss(w, x, y, real):
    share = 1 / jax.lax.psum(real, "X").sum()
    value, back = jax.vjp(lambda w: jax.lax.psum(jnp.vdot(jnp.square(y - x @ w), real), "X"), w)
    return back(jnp.ones_like(value))[0] * share


def all_texts_first(w, images, texts):
    every = jax.lax.all_gather(texts, "X", tiled=True)

    def loss(w):
        scores = images @ (every @ w).T
        me = jax.lax.axis_index("X") * len(texts) + jnp.arange(len(texts))
        return jax.lax.pmean(-jnp.diag(jax.nn.log_softmax(scores)[:, me]).mean(), "X")

    return jax.grad(loss)(w)


def divided_and_summed_by_types(w, images, texts):
    def own_share(w):
        mine = texts @ w
        every = jax.lax.all_gather(mine, "X").reshape(-1, 4)
        loss = jax.nn.logsumexp(jnp.einsum("id,td->it", images, every), axis=-1) - jnp.einsum("id,id->i", images, mine)
        return loss.sum() / len(every)

    return jax.jacrev(own_share)(w)


ALTERNATIVES = {
    ex05b.times_too_large: [
        lambda n, inside, after: float(n) ** ((inside != "pmean") + (after == "psum")),
        lambda n, inside, after: np.int64({"pmean": 1}.get(inside, n)) * (1, n)[after == "psum"],
    ],
    ex05b.masked_gradient: [by_own_sums, by_formula, outside_of_the_loss],
    ex05b.contrastive_gradient: [all_texts_first, divided_and_summed_by_types],
}
COUNTED = "jax.lax.psum(real.sum(), 'X')"
EQUIVALENT_MUTANTS = {
    ex05b.masked_gradient: [
        (
            f"return jax.lax.psum(squares, 'X') / {COUNTED} -> return squares / {COUNTED}",
            "each device's share of the loss is varying, and the gradient of the shared w adds them up",
        ),
        (
            "squares = ((x @ w - y) ** 2 * real).sum() -> squares = ((y - x @ w) ** 2 * real).sum()",
            "the square of a number doesn't depend on its sign",
        ),
    ]
}
