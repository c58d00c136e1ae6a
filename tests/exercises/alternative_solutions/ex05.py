"""Provide unusual solutions to the exercises of lesson 05."""

import jax
import jax.numpy as jnp

from exercises import ex05


def in_a_ring(x):
    n = jax.lax.axis_size("X")
    last = jax.lax.ppermute(x[-1], "X", [(i, (i + 1) % n) for i in range(n)])
    return jnp.diff(x, prepend=jnp.where(jax.lax.axis_index("X") == 0, 0, last))


def all_last_numbers(x):
    last = jnp.pad(jax.lax.all_gather(x[-1], "X"), (1, 0))
    return x.at[1:].add(-x[:-1]).at[0].add(-last[jax.lax.axis_index("X")])


def passed_on(x):
    n = jax.lax.axis_size("X")
    before = sums = jax.lax.ppermute(x.sum(), "X", [(i, i + 1) for i in range(n - 1)])
    for _ in range(n - 2):
        sums = jax.lax.ppermute(sums, "X", [(i, i + 1) for i in range(n - 1)])
        before += sums
    return jnp.cumsum(x) + before


def by_a_product(x):
    i, n = jax.lax.axis_index("X"), jax.lax.axis_size("X")
    sums = jax.lax.psum(jnp.zeros(n).at[i].set(x.sum()), "X")
    return jnp.cumsum(x.at[0].add(sums @ (jnp.arange(n) < i)))


def one_hot(scores, word):
    index = jnp.arange(scores.size) + scores.size * jax.lax.axis_index("X")
    top = jax.lax.pmax(jnp.max(scores), "X")
    total, score = jax.lax.psum((jnp.exp(scores - top).sum(), jnp.where(index == word, scores, 0).sum()), "X")
    return jnp.log(total) - (score - top)


def by_logsumexp(scores, word):
    own = jax.nn.logsumexp(scores)
    top = jax.lax.pmax(own, "X")
    device, place = word // scores.size, word % scores.size
    score = jnp.where(device == jax.lax.axis_index("X"), scores[place], 0)
    return top + jnp.log(jax.lax.psum(jnp.exp(own - top), "X")) - jax.lax.psum(score, "X")


def row_means_then_column_means(t):
    t = t - jax.lax.pmean(t.mean(axis=1, keepdims=True), "model")
    return t - jax.lax.pmean(t.mean(axis=0, keepdims=True), "data")


def by_sums(t):
    down, across = jax.lax.axis_size("data") * t.shape[0], jax.lax.axis_size("model") * t.shape[1]
    rows = jax.lax.psum(t.sum(1), "model") / across
    return t - rows[:, None] - jax.lax.psum(t.sum(0), "data")[None] / down + jax.lax.pmean(rows.mean(), "data")


def divided_by_counts(t):
    def mean(x, axis):
        return jax.lax.psum(x, axis) / jax.lax.psum(jnp.ones_like(x), axis)

    rows, columns = mean(t.mean(1, keepdims=True), "model"), mean(t.mean(0, keepdims=True), "data")
    return t - rows - columns + mean(mean(t.mean(), "model"), "data")


ALTERNATIVES = {
    ex05.differences: [in_a_ring, all_last_numbers],
    ex05.running_sum: [passed_on, by_a_product],
    ex05.loss: [one_hot, by_logsumexp],
    ex05.centered: [row_means_then_column_means, by_sums, divided_by_counts],
}
