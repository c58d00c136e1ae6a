"""Exercises and predictions for lesson 18, Kernels that send."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, build_mesh, exercise
from lesson_helpers.kernels.simulator import Simulation, simulate

passed_on = Prediction(
    14,
    "device 0's left neighbour is device 7, whose rows are 14 and 15",
    {
        2: "that's what device 1 had, but it sends to device 2, not to device 0",
        0: "those are device 0's own rows, which it sends away",
        12: "those started on device 6, two positions to the left",
        1: "a device has two rows, and device 1 sends to the right",
    },
)
never_sent = Prediction(
    1,
    "only device 0: only device 7's copy is missing, and nobody passes on what has arrived",
    {
        8: "a device waits for its own copy and its left neighbour's, and nobody passes on what has arrived",
        2: "device 7 doesn't wait for a copy that it never started, and the copy it receives comes from device 6",
        7: "devices 1 to 7 receive the copies of their left neighbours",
        0: "what would end device 0's wait?",
    },
    "devices",
)
signal_to = Prediction(
    "left",
    mistakes={
        "right": "that tells you that your left neighbour has started, but whose memory do you write to?",
        "either": "a signal says that its sender has started, and you need one from the device that you write to",
    },
)
half_tokens = Prediction(
    630.8,
    "7 rounds wait for the copy, 83.9 µs each, and the last product, 43.6 µs, comes after them",
    {
        348.8: "that's only the products, but a copy now takes longer than a product",
        936.0: "that's one after the other, but the device multiplies during the copy",
        671.1: "that's 8 rounds with a copy, but nothing is sent in the last one",
        587.2: "that's only the copies, but the last product needs the last piece",
        697.6: "that's the time with all tokens",
    },
    "µs",
    rel_tol=0.01,
)
slow_end = Prediction(
    1920.0,
    "device 3 multiplies eight pieces, 240 µs each, which hides the copies and the other devices' products",
    {
        697.6: "that's for equal devices, but device 3 alone takes longer for its own eight products",
        1680.0: "that's 7 products on device 3, but it multiplies its own piece too",
        1767.2: "device 3 also multiplies the eighth piece, just as slowly",
        2003.9: "device 3 multiplies during the copy",
        2507.2: "that's one after the other, but device 3 multiplies during the copies",
    },
    "µs",
    rel_tol=0.01,
)
pieces_held = Prediction(
    3,
    "it's the device's own piece in w_ref, and two buffers",
    {
        2: "those are the buffers, but w_ref holds a third piece",
        1: "one piece is multiplied and sent, and the next one arrives at the same time",
        8: "that's the number for a gather",
    },
    "pieces",
)

DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
BRANCH_ERROR = "TracerBoolConversionError"
ONE_PROGRAM = "There is one program for all devices, traced once: compute with `me`, or branch with pl.when"


def _simulate_kernel(
    kernel: Callable, parts: np.ndarray, shape: tuple[int, ...], scratch: list, **options: Any
) -> Simulation:
    """Simulate the kernel on as many devices as there are parts, and give each device one part."""
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
        return simulate(program, np.concatenate(parts), **options)
    except IndexError as error:  # a copy or a signal to a device that doesn't exist
        if "device" not in str(error):
            raise
        return Simulation([None] * len(parts), stuck={-1: str(error)})


def _observe(run: Simulation) -> dict[str, Any]:
    """Return a run's stuck devices, results, early copies, semaphores above 0, and the copies that device 0 sends."""
    observed: dict[str, Any] = {
        "devices that wait forever": _first_and_count(
            f"device {k}, for {what}" if k >= 0 else what for k, what in run.stuck.items()
        )
    }
    for k, result in enumerate(run.results):
        observed[f"o_ref of device {k}"] = np.asarray(result[0] if result else np.nan)
    observed["copies that start before their target device does"] = _first_and_count(
        f"{a} to {b}" for a, b in sorted(run.early_sends)
    )
    observed["semaphores not back at 0"] = _first_and_count(
        f"on device {k}, of {names[0]}" for k, names in run.unconsumed.items()
    )
    return {**observed, "copies from device 0": {target: n for (a, target), n in run.copies.items() if a == 0}}


def _first_and_count(texts: Iterable[str]) -> str:
    """Return the first text followed by the number of other texts, or "none" if there are no texts."""
    first, *others = [*texts] or ["none"]
    return first + f" (and {len(others)} more)" * bool(others)


def _run_swap(kernel: Callable, n: int, late: int | None) -> dict[str, Any]:
    parts = np.round(9 * np.sin(np.arange(1, 3 * n + 1)), 2).reshape(n, 3).astype(np.float32)
    return _observe(_simulate_kernel(kernel, parts, (3,), [DMA, DMA], late={} if late is None else {late: 40}))


@exercise(
    "Your partner is me + 1 if me is even and me - 1 if it's odd: me ^ 1. Signal it at the barrier, "
    "wait for its signal, then copy, and wait for both ends.",
    cases={
        "8 devices, all together": (8, None),
        "8 devices, device 5 late": (8, 5),
        "8 devices, device 2 late": (8, 2),
        "4 devices, device 0 late": (4, 0),
    },
    run=_run_swap,
    mistakes=[
        Mistake(
            Edit('"i") ^ 1', '"i") - 1'),
            "that sends everything to the left, but which device would device 0 send to?",
        ),
        Mistake(Edit("copy.wait()", "copy.wait_send()"), "which wait tells you that your partner's part has arrived?"),
        Mistake(
            Edit("copy.wait()", "copy.wait_recv()"),
            "the copy's other end counts too: a semaphore that nobody waits for stays above 0",
        ),
        Mistake(
            [
                Edit("pl.semaphore_signal(barrier, 1, device_id=(partner,))", "..."),
                Edit("pl.semaphore_wait(barrier, 1)", "..."),
            ],
            "you write to your partner's memory, so wait at the barrier for your partner's signal first",
        ),
        MessageHint(BRANCH_ERROR, ONE_PROGRAM),
    ],
)
def swap_pairs(x_ref, o_ref, sent, arrived):
    """Copy the partner's part to o_ref; the pairs are 0 and 1, 2 and 3, and so on."""
    partner = jax.lax.axis_index("i") ^ 1
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(partner,))
    pl.semaphore_wait(barrier, 1)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, device_id=(partner,))
    copy.start()
    copy.wait()


@exercise(
    "A piece has (d/n) f elements of 2 bytes, and its product takes 2 tokens (d/n) f FLOPs. How long "
    "is a round with a copy, how many are there, and what is left for the last one?",
    cases=[
        (8, 4096, 2048, 2048, 197e12, 50e9),
        (8, 512, 8192, 6144, 197e12, 50e9),
        (5, 20_000, 1000, 3000, 459e12, 90e9),
        (32, 1000, 4096, 14_336, 918e12, 100e9),
    ],
    mistakes=[
        Mistake(
            Edit("max(send, multiply)", "(send + multiply)"),
            "that's one after the other, but the device multiplies during the copy",
        ),
        Mistake(Edit("(n - 1) * max", "n * max"), "that's n rounds with a copy, but nothing is sent in the last one"),
        Mistake(Edit(" + multiply", ""), "that's n - 1 rounds, but n pieces are multiplied"),
        Mistake(Edit("2 * d / n", "d / n"), "an element in bfloat16 takes 2 bytes"),
        Mistake(Edit("2 * tokens", "tokens"), "a multiplication and an addition are 2 FLOPs"),
        Mistake(Edit("d / n * f", "d * f", count=2), "a piece is an n-th of the weights"),
    ],
)
def ring_seconds(n, tokens, d, f, flops, rate):
    """Return the ring product's time in seconds on n chips of `tokens` rows each."""
    send = 2 * d / n * f / rate
    multiply = 2 * tokens * d / n * f / flops
    return (n - 1) * max(send, multiply) + multiply


def _run_sum(kernel: Callable, n: int, late: int | None, delayed: dict) -> dict[str, Any]:
    parts = np.round(9 * np.sin(np.arange(1, 3 * n * n + 1)), 2).reshape(n, n, 3).astype(np.float32)
    scratch = [pltpu.VMEM((2, 3), jnp.float32), DMA, DMA, REGULAR]
    return _observe(
        _simulate_kernel(kernel, parts, (3,), scratch, late={} if late is None else {late: 40}, arrival_delays=delayed)
    )


@exercise(
    "The sum for device d starts on device d + 1 and moves right, past all the others, until it "
    "arrives at d. So start with row me - 1, and in round k add row me - 2 - k to the sum that has "
    "arrived.",
    cases={
        "8 devices, all together": (8, None, {}),
        "8 devices, device 5 late": (8, 5, {}),
        "8 devices, the first copy from 3 to 4 arrives late": (8, None, {(3, 4, 0): 50}),
        "4 devices, the second copy from 0 to 1 arrives late": (4, None, {(0, 1, 1): 50}),
    },
    run=_run_sum,
    mistakes=[
        Mistake(
            [Edit("pl.semaphore_wait(free, 1)", "..."), Edit("pl.semaphore_signal(free, 1, device_id=(left,))", "...")],
            "what keeps your left neighbour from writing to a buffer that you still need?",
        ),
        Mistake(
            Edit("(free, 1, device_id=(left,))", "(free, 1, device_id=(right,))"),
            "which device writes to your buffers, and so waits for your signal?",
        ),
        Mistake(
            Edit("(barrier, 1, device_id=(left,))", "(barrier, 1, device_id=(right,))"),
            "which device writes to your memory first, and so waits for your signal?",
        ),
        Mistake(
            Edit("buffers[0] = x_ref[(me - 1) % n]", "buffers[0] = x_ref[me]"),
            "the sum that starts here makes n - 1 steps, so which device is it for?",
        ),
        Mistake(Edit("if k < n - 2", "if k < n - 1"), "nobody waits for the last signal, so `free` ends above 0"),
        MessageHint(BRANCH_ERROR, ONE_PROGRAM),
    ],
)
def scatter_sum(x_ref, o_ref, buffers, sent, arrived, free):
    """Write the sum of row `me` of every device's x (n, m) to this device's o (m,)."""
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
