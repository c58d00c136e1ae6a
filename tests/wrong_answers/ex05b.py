"""Wrong answers to the exercises of notebook 05b."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from utils.compat import varying
from utils.exercises import ex05b

TABLE = ex05b.predict_gradients.function()


def with_row(i, row):
    return lambda: [*TABLE[:i], row, *TABLE[i + 1 :]]


def squares(w, x, y, real):
    return (real * (x @ w - y) ** 2).sum()


def of_loss(loss, after=lambda g: g, own_copy=False):
    def gradient(w, x, y, real):
        start = varying(w, "i") if own_copy else w
        return after(jax.grad(lambda w: loss(w, x, y, real))(start))

    return gradient


def psum(value):
    return jax.lax.psum(value, "i")


def right_loss(w, x, y, real):
    return psum(squares(w, x, y, real)) / psum(real.sum())


def part_loss(w, x, y, real):
    return squares(w, x, y, real) / psum(real.sum())


def mean_of_means(w, x, y, real):
    return jax.lax.pmean(squares(w, x, y, real) / real.sum(), "i")


def gathering(step_to, index, sends=7, own=True):
    def gather(block):
        me = jax.lax.axis_index("i")
        out = jnp.zeros((8, *block.shape)).at[me].set(block if own else 0 * block)
        for step in range(1, sends + 1):
            block = jax.lax.ppermute(block, "i", [(i, (i + step_to) % 8) for i in range(8)])
            out = out.at[(me + index * step) % 8].set(block)
        return out.reshape(-1)

    return gather


def direct_jumps(block):
    me, start = jax.lax.axis_index("i"), block
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 8):
        block = jax.lax.ppermute(start, "i", [(i, (i - step) % 8) for i in range(8)])
        out = out.at[(me + step) % 8].set(block)
    return out.reshape(-1)


def without_wrap(block):
    me = jax.lax.axis_index("i")
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 8):
        block = jax.lax.ppermute(block, "i", [(i, i - 1) for i in range(1, 8)])
        out = out.at[(me + step) % 8].set(block)
    return out.reshape(-1)


def in_order_of_arrival(block):
    blocks = [block]
    for _ in range(7):
        blocks.append(jax.lax.ppermute(blocks[-1], "i", [(i, (i - 1) % 8) for i in range(8)]))
    return jnp.concatenate(blocks)


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex05b.predict_gradients: [
        (with_row(0, [2, 2, 2]), "grad(local) by default: you say 2. Think: w is shared"),
        (with_row(0, [28, 28, 28]), "grad(local) under check_vma=False: you say 28"),
        (with_row(1, [28, 28, 28]), "grad(psum of local) under check_vma=False: you say 28"),
        (with_row(1, [28, 16, 28]), "pmap follows the rule of check_vma=False"),
        (with_row(2, [28, 28, 28]), "what does psum make of eight times 28?"),
        (with_row(3, [3.5, 3.5, 3.5]), "the mean of eight times 28 is not 3.5"),
        (lambda: [28, 28, 224, 28], "expected a list of four rows of three numbers"),
    ],
    ex05b.masked_gradient: [
        (of_loss(right_loss, after=psum), "8 times too large"),
        (of_loss(part_loss, after=psum), "8 times too large"),
        (of_loss(part_loss, own_copy=True), "the sum over the devices is missing"),
        (of_loss(mean_of_means), "that of the mean of eight means"),
        (of_loss(lambda *a: squares(*a) / a[3].sum()), "the sum of eight means"),
        (of_loss(lambda *a: psum(squares(*a)) / 32), "you divide by the number of rows, padding included"),
        (
            of_loss(lambda w, x, y, real: jax.lax.pmean(((x @ w - y) ** 2).mean(), "i")),
            "the padding is counted as if it were real",
        ),
        (of_loss(lambda *a: psum(squares(*a)) / a[3].sum()), "by the device's own count"),
        (
            of_loss(lambda w, *a: squares(w, *(jax.lax.all_gather(v, "i", tiled=True) for v in a)) / 30),
            "8 times too large",
        ),
        (of_loss(squares), "that of the sum of the squares"),
    ],
    ex05b.gather_to_the_left: [
        (gathering(1, -1), "to the right. The left neighbour of device i is i - 1"),
        (gathering(-1, -1), "they arrive from the right"),
        (gathering(-1, 1, sends=6), "you send 6 times. A block has to reach 7 other devices"),
        (gathering(-1, 1, sends=8), "8 sends of 16 bytes; 7 sends of 16 bytes are enough"),
        (gathering(-1, 1, own=False), "Your own block is missing"),
        (direct_jumps, "which is not its left neighbour"),
        (without_wrap, "No pair sends from device 0 to device 7"),
        (in_order_of_arrival, "in the order of their arrival"),
        (lambda block: jax.lax.all_gather(block, "i", tiled=True), "You use all-gather; only sends"),
        (lambda block: jax.lax.all_gather(block, "i"), "shape (8, 4); expected (32,)"),
    ],
    ex05b.price_of_product: [
        (lambda n, k, m: ((n - 1) * k * m / n, k * m, 2 * k * m / n), "A float32 takes 4"),
        (lambda n, k, m: (4 * k * m, 4 * k * m, 8 * k * m / n), "the last round sends nothing"),
        (lambda n, k, m: (4 * (n - 1) * k * m, 4 * k * m, 8 * k * m / n), "sends one piece, an n-th of b"),
        (lambda n, k, m: (4 * (n - 1) * k * m / n, 4 * k * m, 4 * k * m / n), "the next arrives beside it"),
        (lambda n, k, m: (4 * (n - 1) * k * m / n, 4 * k * m, 12 * k * m / n), "you count the stored piece, too"),
        (lambda n, k, m: (4 * (n - 1) * k * m / n, 4 * k * m / n, 8 * k * m / n), "a device holds all of b"),
    ],
}
