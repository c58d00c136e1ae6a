"""python ring_matmul_kernel.py 4096 4096: multiply while the next weights arrive.

A Pallas kernel for TPUs. Without a TPU, interpret it on eight emulated devices.
"""

import contextlib
import io
import math
import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("tokens", type=int, nargs="?", default=4096, help="for each chip")
cli.add_argument("width", type=int, nargs="?", default=4096, help="of the weights")
TOKENS, D = vars(cli.parse_args()).values()
F = D  # the weights are (D, F)
FLOPS, LINK, HBM = 197e12, 50e9, 819e9  # TPU v5e: FLOP/s; bytes/s: a link, one way; HBM
tpus = [d for d in jax.devices() if d.platform == "tpu"]
devices = tpus or jax.devices("cpu")
n, kind = len(devices), AxisType.Auto
if TOKENS < 1 or D < 1 or D % n:
    cli.error(f"tokens must be at least 1, and width a multiple of {n}")
mesh = jax.make_mesh((n,), ("i",), axis_types=(kind,), devices=devices)


def use(y_ref, x_ref, piece, owner):  # YOURS: use the owner's shard of the weights
    rows = piece.shape[0]
    columns = pl.ds(owner * rows, rows)  # the columns of x for these rows of w
    block = math.gcd(y_ref.shape[0], 256)  # a larger one compiles for many minutes

    def add(i, _):
        some = pl.ds(i * block, block)  # a block of tokens
        x = x_ref[some, columns]
        y_ref[some] += jnp.dot(x, piece, preferred_element_type=jnp.float32)

    jax.lax.fori_loop(0, y_ref.shape[0] // block, add, None)


def kernel(x_ref, w_ref, y_ref, buffers, sent, arrived, free):
    me = jax.lax.axis_index("i")
    left, right = (me - 1) % n, (me + 1) % n
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1, device_id=(left,))  # you may write to me
    pl.semaphore_wait(barrier, 1)  # I may write to the right
    buffers[0] = w_ref[...]
    y_ref[...] = jnp.zeros_like(y_ref)
    for k in range(n):  # in step k, this buffer has the shard of device me - k
        here, there = buffers.at[k % 2], buffers.at[(k + 1) % 2]
        if 0 < k < n - 1:
            pl.semaphore_wait(free, 1)  # the right neighbour no longer needs `there`
        if k < n - 1:
            ends = {"send_sem": sent, "recv_sem": arrived, "device_id": (right,)}
            copy = pltpu.make_async_remote_copy(here, there, **ends)
            copy.start()
        use(y_ref, x_ref, here[...], (me - k) % n)
        if k < n - 1:
            copy.wait()  # my shard has been sent, and the next has arrived
        if k < n - 2:
            pl.semaphore_signal(free, 1, device_id=(left,))  # I no longer need `here`


def product(tokens, d, f, interpret=False):  # x (n * tokens, d) and w (d, f), by rows
    vmem, dma = pl.BlockSpec(memory_space=pltpu.VMEM), pltpu.SemaphoreType.DMA
    buffers = pltpu.VMEM((2, d // n, f), jnp.bfloat16)
    # x, w and y must fit into fast memory: 128 MiB on a v5e; only 16 by default
    params = pltpu.CompilerParams(collective_id=0, vmem_limit_bytes=120 * 2**20)
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((tokens, f), jnp.float32),
        in_specs=[vmem, vmem],
        out_specs=vmem,
        scratch_shapes=[buffers, dma, dma, pltpu.SemaphoreType.REGULAR],
        compiler_params=params,
        interpret=interpret,
    )
    specs = {"in_specs": P("i"), "out_specs": P("i"), "check_vma": False}
    return jax.jit(jax.shard_map(call, mesh=mesh, **specs))


tokens, d, f = (TOKENS, D, F) if tpus else (16, 16 * n, 24)  # an interpreter is slow
rng = np.random.default_rng(0)
x, w = rng.integers(-3, 4, (n * tokens, d)), rng.integers(-3, 4, (d, f))
interpret = False if tpus else pltpu.InterpretParams(detect_races=True)
races = io.StringIO()
with contextlib.redirect_stdout(races):  # JAX 0.12 raises at a race; older JAX prints
    y = product(tokens, d, f, interpret)(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))
    jax.block_until_ready(y)
    jax.effects_barrier()
assert not races.getvalue(), races.getvalue()
assert np.array_equal(y, x @ w), "the product is wrong"  # integers, so exact
where = f"{n} TPU" if tpus else f"{n} emulated device"
where += "s" * (n > 1) + ", no race found" * (not tpus)
print(f"right on {where}, ({n * tokens}, {d}) x {w.shape}")
shapes = (n * TOKENS, D), (D, F)
shapes = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
product(TOKENS, D, F).trace(*shapes).lower(lowering_platforms=("tpu",))
print(f"lowered for TPUs: {TOKENS} tokens on each, ({D}, {F}) weights in bfloat16")
send, multiply = 1e6 * 2 * D // n * F / LINK, 1e6 * 2 * TOKENS * D // n * F / FLOPS
gathered = (n - 1) * send / 2 + n * multiply  # half of each shard in each direction
overlapped = (n - 1) * max(send, multiply) + multiply
fill = 1e6 * (2 * TOKENS * D + 2 * D // n * F + 4 * TOKENS * F) / HBM  # x, w in; y out
print(f"on paper, v5e: gather in both directions, then multiply: {gathered:.0f} µs")
total = f"{overlapped + fill:.0f} µs, {fill:.0f} of them for fast memory"
print(f"multiply while sending: {total}")
