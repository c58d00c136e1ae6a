"""python ring_attention.py 1000000: plan the memory to attend to a million tokens.

Check ring attention against one device. Then compile it for that many tokens, without
running it, and report the memory that each device needs.
"""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("tokens", type=int, nargs="?", default=1_000_000)
TOKENS, BLOCK = cli.parse_args().tokens, 100  # keys at a time; in practice, 512 or more
jax.config.update("jax_default_matmul_precision", "highest")  # for the check
mesh = jax.make_mesh((jax.device_count(),), ("seq",), axis_types=(AxisType.Auto,))
n, spec = mesh.size, P(None, None, "seq")  # (batch, heads, tokens, features)
if TOKENS < 1 or TOKENS % (n * BLOCK):
    cli.error(f"the number of tokens must be a positive multiple of {n * BLOCK}")


def scores_of(q, k, q_pos, k_pos):  # YOURS: the mask
    scores = q @ k.T / q.shape[-1] ** 0.5
    return jnp.where(q_pos[:, None] >= k_pos, scores, -jnp.inf)


def positions(shard, device):  # YOURS, if you shard the tokens in a different order
    return device * len(shard) + jnp.arange(len(shard))


def send(x):  # to the right neighbour
    return jax.lax.ppermute(x, "seq", [(i, (i + 1) % n) for i in range(n)])


def blocks(*arrays):
    return [a.reshape(-1, BLOCK, *a.shape[1:]) for a in arrays]


def forward(q, k, v):
    me = jax.lax.axis_index("seq")

    def update(state, block):
        (largest, total, out), (k, v, k_pos) = state, block
        scores = scores_of(q, k, positions(q, me), k_pos)
        new = jnp.maximum(largest, scores.max(-1))
        rescale, p = jnp.exp(largest - new), jnp.exp(scores - new[:, None])
        return (new, rescale * total + p.sum(-1), rescale[:, None] * out + p @ v), None

    def step(carry, r):
        state, k, v = carry
        block = blocks(k, v, positions(k, (me - r) % n))
        return (jax.lax.scan(update, state, block)[0], send(k), send(v)), None

    largest = jnp.full_like(q[:, 0], -1e30)
    carry = (largest, jnp.zeros_like(largest), jnp.zeros_like(q)), k, v
    (state, *last), _ = jax.lax.scan(step, carry, jnp.arange(n - 1))
    block = blocks(*last, positions(k, (me + 1) % n))  # the last block isn't sent on
    (largest, total, out), _ = jax.lax.scan(update, state, block)
    out = out / total[:, None]
    return out, (q, k, v, out, largest + jnp.log(total))


def backward(saved, g):
    q, k, v, out, level = saved
    me, delta = jax.lax.axis_index("seq"), (g * out).sum(-1)

    def update(dq, block):
        k, v, k_pos = block
        p = jnp.exp(scores_of(q, k, positions(q, me), k_pos) - level[:, None])
        ds = p * (g @ v.T - delta[:, None]) / q.shape[-1] ** 0.5
        return dq + ds @ k, (ds.T @ q, p.T @ g)

    def step(carry, r):
        dq, k, v, dk, dv = carry
        block = blocks(k, v, positions(k, (me - r) % n))
        dq, (dk_here, dv_here) = jax.lax.scan(update, dq, block)
        dk, dv = dk + dk_here.reshape(k.shape), dv + dv_here.reshape(v.shape)
        return (dq, *map(send, (k, v, dk, dv))), None

    zero = jnp.zeros_like(q)
    carry = (zero, k, v, zero, zero)
    (dq, _, _, dk, dv), _ = jax.lax.scan(step, carry, jnp.arange(n))
    return dq, dk, dv


ring = jax.custom_vjp(lambda q, k, v: forward(q, k, v)[0])  # one head
ring.defvjp(forward, backward)
heads = jax.vmap(jax.vmap(ring))
attend = jax.shard_map(heads, mesh=mesh, in_specs=spec, out_specs=spec)


def one_device(q, k, v):  # JAX's own attention, on one device
    q, k, v = (a.swapaxes(1, 2) for a in (q, k, v))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True).swapaxes(1, 2)


def training(attend):  # the result and its gradients
    def both(q, k, v, g):
        out, back = jax.vjp(attend, q, k, v)
        return out, *back(g)

    return jax.jit(both)


x = np.random.default_rng(0).normal(size=(4, 2, 3, 2 * n * BLOCK, 16)).astype("f4")
expected = training(one_device)(*x)
x = jax.device_put(x, NamedSharding(mesh, P(None, *spec)))
for a, b in zip(training(attend)(*x), expected, strict=True):
    gap = abs(jax.device_get(a) - jax.device_get(b)).max() / abs(b).max()
    assert gap < 1e-4, f"the attention differs from one device's by {gap:.0e}"
count = f"{n} device{'s' * (n > 1)}"
print(f"correct on {count}: the result and its gradients match one device's")

long = NamedSharding(mesh, spec)
long = jax.ShapeDtypeStruct((1, 1, TOKENS, 128), jnp.float32, sharding=long)
plan = training(attend).lower(*[long] * 4).compile().memory_analysis()
print(f"{TOKENS:,} tokens: one head's scores would take {4e-9 * TOKENS**2:,.0f} GB")
print(f"each device needs {1e-9 * plan.temp_size_in_bytes:.2f} GB, forward and back")
