"""python tensor_parallel.py 8 8192 4096: check a block that is split over all devices.

Then estimate what share of the time 8 chips compute, at width 8,192 with 4,096 tokens.
"""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial
from math import prod

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("chips", type=int, nargs="?", default=8)
cli.add_argument("width", type=int, nargs="?", default=8192)
cli.add_argument("tokens", type=int, nargs="*", default=[4096])
CHIPS, WIDTH, BATCHES = vars(cli.parse_args()).values()
C, W = 197e12, 100e9  # TPU v5e: FLOP/s, bytes/s in a ring. H100: 989.5e12, 450e9
jax.config.update("jax_default_matmul_precision", "highest")
n, E = jax.device_count(), 16  # devices; features of a head
if min(CHIPS, WIDTH, *BATCHES) < 1 or WIDTH % E or any(b % CHIPS for b in BATCHES):
    cli.error(f"chips must divide the tokens, and {E} must divide the width")
mesh = jax.make_mesh((n,), ("model",), axis_types=(AxisType.Auto,))


def shapes(D):  # YOURS: every array of a block, with its spec
    return {
        "gain": ((2, D), P()),  # before f: replicated, like the activations
        "qkv": ((D, 3, D // E, E), P(None, None, "model")),  # columns, by heads
        "out": ((D // E, E, D), P("model")),  # rows
        "up": ((D, 4 * D), P(None, "model")),  # columns
        "up_bias": ((4 * D,), P("model")),  # like the columns of up
        "down": ((4 * D, D), P("model")),  # rows
        "bias": ((2, D), P()),  # after g: replicated, added once
    }


def block(x, w, g):  # YOURS: on one device and per device; g adds up partial sums
    def norm(x, gain):
        return gain * x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    q, k, v = jnp.einsum("bld,dche->cblhe", norm(x, w["gain"][0]), w["qkv"])
    heads = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + g(jnp.einsum("blhe,hed->bld", heads, w["out"])) + w["bias"][0]
    h = jax.nn.relu(norm(x, w["gain"][1]) @ w["up"] + w["up_bias"])
    return x + g(h @ w["down"]) + w["bias"][1]


def step(w, x, y, g=lambda partial_sum: partial_sum):
    def loss(w, x):
        return ((block(x, w, g) - y) ** 2).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(w, x)


rng = np.random.default_rng(0)
specs = {name: spec for name, (_, spec) in shapes(E * n).items()}
w = {
    name: np.float32(rng.normal(size=shape) / (E * n) ** 0.5)
    for name, (shape, _) in shapes(E * n).items()
}
x, y = np.float32(rng.normal(size=(2, 3, 40, E * n)))
typed = jax.shard_map(  # the types insert f, the sums of the backward pass
    partial(step, g=lambda a: jax.lax.psum(a, "model")),
    mesh=mesh,
    in_specs=(specs, P(), P()),
    out_specs=(P(), (specs, P())),
)
mine, true = (jax.device_get(jax.jit(f)(w, x, y)) for f in (typed, step))
pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(true), strict=True)
gap = np.max([abs(a - b).max() / abs(b).max() for a, b in pairs])  # or NaN
assert gap < 1e-4, f"the loss or a gradient differs from one device's by {gap:.0e}"
sums = str(jax.make_jaxpr(typed)(w, x, y)).count("psum_invariant[")
print(f"correct: {sums} sums; loss and gradients match one device's (devices: {n})")
try:
    from shardcost import cost

    print(f"each device sends {cost(typed, w, x, y).bytes_sent:,} bytes")
except ImportError:
    print("to count the bytes sent, install shardcost, as in what_does_it_send.py")

weights = sum(prod(shape) for shape, _ in shapes(WIDTH).values())
part = (CHIPS - 1) / CHIPS
for tokens in BATCHES:
    computing = 6 * weights * tokens / CHIPS / C  # seconds, for both layouts
    tensor = sums * 2 * part * 2 * WIDTH * tokens / W  # all-reduces, not hidden
    fsdp = 3 * part * 2 * weights / W  # three transfers, hidden if possible
    chips = f"{CHIPS} chip{'s' * (CHIPS > 1)}"
    print(f"{chips}, layers {WIDTH:,} wide, {tokens // CHIPS:,} tokens a chip:")
    print(f"  tensor parallelism: they compute {computing / (computing + tensor):.0%}")
    print(f"  FSDP:               they compute {computing / max(computing, fsdp):.0%}")
