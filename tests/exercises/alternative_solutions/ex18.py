"""Provide unusual solutions to the exercises of lesson 18, and list the equivalent mutants."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from exercises import ex18


def swap_where(x_ref, o_ref, sent, arrived):
    me = jax.lax.axis_index("i")
    partner = jnp.where(me % 2 == 0, me + 1, me - 1)
    pl.semaphore_signal(pltpu.get_barrier_semaphore(), device_id={"i": partner})
    pl.semaphore_wait(pltpu.get_barrier_semaphore())
    copy = pltpu.async_remote_copy(x_ref, o_ref, sent, arrived, device_id={"i": partner})
    copy.wait_recv()
    copy.wait_send()


def swap_branches(x_ref, o_ref, sent, arrived):
    me = jax.lax.axis_index("i")
    barrier = pltpu.get_barrier_semaphore()

    def to(partner):
        pl.semaphore_signal(barrier, 1, device_id=(partner,))
        pl.semaphore_wait(barrier, 1)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner,))
        copy.start()
        copy.wait_send()
        copy.wait_recv()

    pl.when(me % 2 == 0)(lambda: to(me + 1))
    pl.when(me % 2 == 1)(lambda: to(me - 1))


def sum_by_loop(x_ref, o_ref, buffers, sent, arrived, free):
    n, me = jax.lax.axis_size("i"), jax.lax.axis_index("i")
    left, right = (me + n - 1) % n, (me + 1) % n
    barrier = pltpu.get_barrier_semaphore()
    for side in (left, right):  # signal both sides, although one is enough
        pl.semaphore_signal(barrier, 1, device_id=(side,))
    pl.semaphore_wait(barrier, 2)
    buffers[0] = x_ref[left]
    pl.semaphore_signal(free, 1, device_id=(left,))  # buffer 1 is free at first, so the first iteration can wait too

    @pl.loop(0, n - 1)
    def _(k):
        pl.semaphore_wait(free, 1)
        copy = pltpu.make_async_remote_copy(
            buffers.at[k % 2], buffers.at[(k + 1) % 2], sent, arrived, device_id=(right,)
        )
        copy.start()
        copy.wait_send()
        copy.wait_recv()
        buffers[(k + 1) % 2] = buffers[(k + 1) % 2] + x_ref[(me - 2 - k + n) % n]
        pl.when(k < n - 2)(lambda: pl.semaphore_signal(free, 1, device_id=(left,)))

    o_ref[...] = buffers[(n - 1) % 2]


def sum_last_apart(x_ref, o_ref, buffers, sent, arrived, free):
    n, me = jax.lax.axis_size("i"), jax.lax.axis_index("i")
    pl.semaphore_signal(pltpu.get_barrier_semaphore(), 1, device_id=((me - 1) % n,))
    pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)
    buffers[0] = x_ref[(me + n - 1) % n]
    for k in range(n - 1):
        if k:
            pl.semaphore_wait(free, 1)
        pltpu.async_remote_copy(
            buffers.at[k % 2], buffers.at[1 - k % 2], sent, arrived, device_id=((me + 1) % n,)
        ).wait()
        if k < n - 2:
            buffers[1 - k % 2] += x_ref[(me - k - 2) % n]
            pl.semaphore_signal(free, 1, device_id=((me - 1) % n,))
    o_ref[...] = buffers[(n - 1) % 2] + x_ref[me]


ALTERNATIVES = {
    ex18.swap_pairs: [swap_where, swap_branches],
    ex18.ring_seconds: [
        lambda n, tokens, d, f, flops, rate: (
            np.float64(2 * d * f / n) * (tokens / flops + (n - 1) * np.maximum(tokens / flops, 1 / rate))
        ),
        lambda n, tokens, d, f, flops, rate: sum(
            [max(Fraction(2 * d * f, n) / int(rate), Fraction(2 * tokens * d * f, n) / int(flops))] * (n - 1),
            Fraction(2 * tokens * d * f, n) / int(flops),
        ),
    ],
    ex18.scatter_sum: [sum_by_loop, sum_last_apart],
}

EQUIVALENT_MUTANTS = {
    ex18.swap_pairs: [
        (
            "partner = jax.lax.axis_index('i') ^ 1 -> partner = 1 ^ jax.lax.axis_index('i')",
            "^ is symmetric",
        )
    ],
    ex18.ring_seconds: [
        (
            "return (n - 1) * max(send, multiply) + multiply -> return (n - 1) * max(multiply, send) + multiply",
            "the larger of two numbers doesn't depend on their order",
        )
    ],
    ex18.scatter_sum: [
        (
            "o_ref[...] = buffers[(n - 1) % 2] -> o_ref[...] = buffers[(1 - n) % 2]",
            "n - 1 and 1 - n are both odd or both even",
        ),
        (
            "here, there = (buffers.at[k % 2], buffers.at[(k + 1) % 2]) -> "
            "here, there = (buffers.at[k % 2], buffers.at[(k - 1) % 2])",
            "k + 1 and k - 1 are both odd or both even",
        ),
    ],
}
