"""Exercises and predictions of lesson 18, Kernels that send."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from exercises.framework import Prediction, build_mesh, exercise
from utils.simulate.dma_copies import Play, play

passed_on = Prediction(
    14,
    "device 0's left neighbour is device 7, whose rows are 14 and 15",
    {
        2: "that is what device 1 had: it sends to device 2, not to device 0",
        0: "those are its own rows, and it sends them away",
        12: "those began on device 6, two places to the left",
        1: "a device has two rows, and device 1 sends to the right",
    },
)
never_sent = Prediction(
    1,
    "device 0 alone: only device 7's copy is missing, and nobody passes on what arrived",
    {
        8: "a device waits for its own copy and for its left neighbour's; nobody passes on what arrived",
        2: "device 7 does not wait for a copy that it never started; what comes for it, device 6 sends",
        7: "devices 1 to 7 get what their left neighbours send",
        0: "who would end device 0's wait?",
    },
    "devices",
)
signal_to = Prediction(
    "left",
    mistakes={
        "right": "then you know that your left neighbour has begun; into whose memory do you write?",
        "either": "a signal says that its sender has begun; you need to hear that from the one you write to",
    },
)
half_tokens = Prediction(
    157.7,
    "7 rounds wait for the copy, 21.0 µs each; the last product, 10.9 µs, comes after them",
    {
        87.2: "that is the products alone; now a copy takes longer than a product",
        234.0: "that is one after the other; the copy travels while the device multiplies",
        167.8: "that is 8 rounds with a copy; in the last one nothing is sent",
        146.8: "that is the copies alone; the last product needs the last piece",
        174.4: "that was with all tokens",
    },
    "µs",
    within=0.01,
)
slow_end = Prediction(
    480.0,
    "device 3 multiplies eight pieces, 60 µs each; the copies and the others' products hide behind that",
    {
        174.4: "that is with equal devices; device 3 alone takes longer for its own eight products",
        420.0: "that is 7 products of device 3; it multiplies its own piece, too",
        441.8: "device 3 multiplies the eighth piece as well, and as slowly",
        501.0: "the copy travels while device 3 multiplies",
        626.8: "that is one after the other; the copies travel while device 3 multiplies",
    },
    "µs",
    within=0.01,
)
pieces_held = Prediction(
    3,
    "its own piece in w_ref, and two buffers",
    {
        2: "those are the buffers; w_ref holds a third",
        1: "one is multiplied and sent, and the next one is arriving meanwhile",
        8: "that is what a gather holds",
    },
    "pieces",
)

DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
TRUTH = "TracerBoolConversionError"
ONE_TEXT = "There is one text for all devices, traced once: compute with me, or branch with pl.when"


def _played(kernel: Callable, parts: np.ndarray, shape: tuple[int, ...], scratch: list, **options: Any) -> Play:
    """The kernel on as many devices as there are parts, one of which each device gets."""
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    call = pl.pallas_call(
        lambda *refs: kernel(*refs) and None,
        jax.ShapeDtypeStruct(shape, jnp.float32),
        in_specs=[vmem],
        out_specs=vmem,
        scratch_shapes=scratch,
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    specs = {"in_specs": P("i"), "out_specs": P("i"), "check_vma": False}
    program = jax.shard_map(call, mesh=build_mesh({"i": len(parts)}), **specs)
    try:
        return play(program, np.concatenate(parts), **options)
    except IndexError as error:  # a copy or a signal to a device that is not there
        if "device" not in str(error):
            raise
        return Play([None] * len(parts), stuck={-1: str(error)})


def _seen(found: Play) -> dict[str, Any]:
    """What counts of a play: who is stuck, what the devices hold, who was too early, what nobody waited for."""
    seen: dict[str, Any] = {
        "who waits for ever": _few(f"device {k}, for {what}" if k >= 0 else what for k, what in found.stuck.items())
    }
    for k, result in enumerate(found.results):
        seen[f"o_ref of device {k}"] = np.asarray(result[0] if result else np.nan)
    seen["copies that begin before their target has"] = _few(f"{a} to {b}" for a, b in sorted(found.early))
    seen["semaphores not back at 0"] = _few(f"on device {k}, of {names[0]}" for k, names in found.unconsumed.items())
    return {**seen, "copies from device 0": {target: n for (a, target), n in found.copies.items() if a == 0}}


def _few(texts: Iterable[str]) -> str:
    """The first of them, and how many others there are."""
    first, *others = [*texts] or ["none"]
    return first + f" (and {len(others)} more)" * bool(others)


def _swapped(kernel: Callable, n: int, late: int | None) -> dict[str, Any]:
    parts = np.round(9 * np.sin(np.arange(1, 3 * n + 1)), 2).reshape(n, 3).astype(np.float32)
    return _seen(_played(kernel, parts, (3,), [DMA, DMA], late={} if late is None else {late: 40}))


@exercise(
    "Your partner is me + 1 where me is even and me - 1 where it is odd: me ^ 1. Signal it at the barrier, wait for its "
    "signal, then copy, and wait for both ends.",
    cases={
        "8 devices, all together": (8, None),
        "8 devices, device 5 late": (8, 5),
        "8 devices, device 2 late": (8, 2),
        "4 devices, device 0 late": (4, 0),
    },
    run=_swapped,
    mistakes={
        '"i") ^ 1 -> "i") - 1': "that sends everything to the left: to whom does device 0 send?",
        "copy.wait() -> copy.wait_send()": "which wait says that your partner's part has arrived?",
        "copy.wait() -> copy.wait_recv()": "the copy's other end counts, too: a semaphore that nobody waits for stays above 0",
        "pl.semaphore_signal(barrier, 1, device_id=(partner,)) -> ... ;; pl.semaphore_wait(barrier, 1) -> ...": "you write "
        "into your partner's memory, so wait at the barrier for your partner's signal first",
        TRUTH: ONE_TEXT,
    },
)
def swap_pairs(x_ref, o_ref, sent, arrived):
    """Per device: its partner's part into o_ref; 0 and 1 are partners, 2 and 3, ..."""
    partner = jax.lax.axis_index("i") ^ 1
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(partner,))
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner,))
    copy.start()
    copy.wait()


@exercise(
    "A piece has (d/n) f numbers of 2 bytes, and its product 2 tokens (d/n) f FLOPs. What does a round with a copy take, "
    "how many are there, and what is left for the last one?",
    cases=[
        (8, 4096, 2048, 2048, 197e12, 50e9),
        (8, 512, 8192, 6144, 197e12, 50e9),
        (5, 20_000, 1000, 3000, 459e12, 90e9),
        (32, 1000, 4096, 14_336, 918e12, 100e9),
    ],
    mistakes={
        "max(send, multiply) -> (send + multiply)": "that is one after the other; the copy travels while the device multiplies",
        "(n - 1) * max -> n * max": "that is n rounds with a copy; in the last one nothing is sent",
        " + multiply -> ": "that is n - 1 rounds; n pieces are multiplied",
        "2 * d / n -> d / n": "a number in bfloat16 takes 2 bytes",
        "2 * tokens -> tokens": "to multiply and to add are 2 FLOPs",
        "d / n * f / -> d * f / ": "a piece is an n-th of the weights",
    },
)
def ring_seconds(n, tokens, d, f, flops, rate):
    """Seconds of the ring product on n chips, on paper: each has `tokens` rows of x."""
    send = 2 * d / n * f / rate
    multiply = 2 * tokens * d / n * f / flops
    return (n - 1) * max(send, multiply) + multiply


def _summed(kernel: Callable, n: int, late: int | None, behind: dict) -> dict[str, Any]:
    parts = np.round(9 * np.sin(np.arange(1, 3 * n * n + 1)), 2).reshape(n, n, 3).astype(np.float32)
    scratch = [pltpu.VMEM((2, 3), jnp.float32), DMA, DMA, REGULAR]
    return _seen(_played(kernel, parts, (3,), scratch, late={} if late is None else {late: 40}, arrival_delays=behind))


@exercise(
    "The sum for device d begins on device d + 1 and travels right, past all others, until it arrives at d. So begin with "
    "row me - 1, and in round k add row me - 2 - k to what has arrived.",
    cases={
        "8 devices, all together": (8, None, {}),
        "8 devices, device 5 late": (8, 5, {}),
        "8 devices, the first copy from 3 to 4 arrives late": (8, None, {(3, 4, 0): 50}),
        "4 devices, the second copy from 0 to 1 arrives late": (4, None, {(0, 1, 1): 50}),
    },
    run=_summed,
    mistakes={
        "pl.semaphore_wait(free, 1) -> ... ;; pl.semaphore_signal(free, 1, device_id=(left,)) -> ...": "what keeps your left "
        "neighbour from writing into a buffer that you still need?",
        "(free, 1, device_id=(left,)) -> (free, 1, device_id=(right,))": "who writes into your buffers, and so waits for "
        "your signal?",
        "(barrier, 1, device_id=(left,)) -> (barrier, 1, device_id=(right,))": "who writes into your memory first, and so "
        "waits for your signal?",
        "buffers[0] = x_ref[(me - 1) % n] -> buffers[0] = x_ref[me]": "the sum that begins here makes n - 1 steps: whose is "
        "it when it arrives?",
        "if k < n - 2 -> if k < n - 1": "the last signal is never waited for: `free` ends above 0",
        TRUTH: ONE_TEXT,
    },
)
def scatter_sum(x_ref, o_ref, buffers, sent, arrived, free):
    """Per device: x (n, m) -> the sum over all devices of their rows `me`, o (m,)."""
    n, me = jax.lax.axis_size("i"), jax.lax.axis_index("i")
    left, right = (me - 1) % n, (me + 1) % n
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(left,))
    pl.semaphore_wait(barrier, 1)
    buffers[0] = x_ref[(me - 1) % n]
    for k in range(n - 1):
        here, there = buffers.at[k % 2], buffers.at[(k + 1) % 2]
        copy = pltpu.make_async_remote_copy(here, there, sent, arrived, device_id=(right,))
        if k > 0:
            pl.semaphore_wait(free, 1)
        copy.start()
        copy.wait()
        there[...] += x_ref[(me - 2 - k) % n]
        if k < n - 2:
            pl.semaphore_signal(free, 1, device_id=(left,))
    o_ref[...] = buffers[(n - 1) % 2]
