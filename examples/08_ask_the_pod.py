"""python ask_the_pod.py v5e:8x8 FSDP 64 quick: does this training step fit on 64 chips?

Ask the TPU's compiler, which needs libtpu but no TPU. With `here` instead of v5e:8x8,
ask the compiler for this machine's devices. With `quick`, the compiler optimizes less.
"""

import os
import re
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils, topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("slice", nargs="?", default="v5e:8x8")
layouts = {"data": 1, "FSDP": 1, "tensor": 8, "both": 4}  # and chips along model
cli.add_argument("layout", choices=layouts, nargs="?", default="FSDP")
cli.add_argument("sequences", type=int, nargs="?", default=64)
default = None if sys.argv[1:] else "quick"
cli.add_argument("quick", choices=["quick"], nargs="?", default=default)
SLICE, LAYOUT, SEQUENCES, quick = vars(cli.parse_args()).values()
jax.config.update("jax_optimization_level", "O0" if quick else "UNKNOWN")
if SLICE == "here":
    chips = jax.devices()
else:  # the settings keep libtpu quiet where there is no TPU
    jax.config.update("jax_platforms", "cpu")
    quiet = "TPU_WORKER_HOSTNAMES=localhost TPU_ACCELERATOR_TYPE=v5litepod-8"
    os.environ.update(pair.split("=") for pair in quiet.split())
    os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
    try:
        chips = topologies.get_topology_desc(SLICE, platform="tpu").devices
    except RuntimeError as error:  # no libtpu, or no such slice
        cli.error(str(error).splitlines()[0])
MODEL = layouts[LAYOUT]
if SEQUENCES < 1 or len(chips) % MODEL:
    cli.error(f"{LAYOUT} takes one or more sequences, and a multiple of {MODEL} chips")
sizes = len(chips) // MODEL, MODEL
grid = mesh_utils.create_device_mesh(sizes, chips, allow_split_physical_axes=True)
mesh = Mesh(grid, ("data", "model"))

LAYERS, D, M = 24, "data", "model"
SHAPES = {  # YOURS: the weights and, below, a spec for each
    "embed": (32768, 2048),
    "qkv": (LAYERS, 2048, 3, 16, 128),
    "out": (LAYERS, 16, 128, 2048),
    "up": (LAYERS, 2048, 8192),
    "down": (LAYERS, 8192, 2048),
}
SPECS = {
    "data": (P(), P(), P(), P(), P()),
    "FSDP": (P(D), P(None, D), P(None, None, None, D), P(None, D), P(None, None, D)),
    "tensor": (P(M), P(None, None, None, M), P(None, M), P(None, None, M), P(None, M)),
    "both": (
        P(M, D),
        P(None, D, None, M),
        P(None, M, None, D),
        P(None, D, M),
        P(None, M, D),
    ),
}[LAYOUT]


def shaped(shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def layer(x, w):  # YOURS: (batch, length, width) -> the same
    q, k, v = jnp.einsum("bld,dche->cblhe", norm(x), w["qkv"])
    scores = jnp.einsum("blhe,bmhe->bhlm", q, k) / 128**0.5
    causal = jnp.tri(x.shape[1], dtype=bool)
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    x = x + jnp.einsum("bhlm,bmhe,hed->bld", weights, v, w["out"])
    return x + jax.nn.relu(norm(x) @ w["up"]) @ w["down"]


def split(x):  # by sequences
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(D)))


def loss(params, tokens):
    layers = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
    embed = layers.pop("embed")
    one = jax.checkpoint(lambda x, w: (split(layer(x, w)), None))
    x, _ = jax.lax.scan(one, split(embed[tokens[:, :-1]]), layers)
    log_p = jax.nn.log_softmax((norm(x) @ embed.T).astype(jnp.float32))
    return -jnp.take_along_axis(log_p, tokens[:, 1:, None], -1).mean()


def step(params, mean, square, tokens):  # Adam, without bias correction
    value, grads = jax.value_and_grad(loss)(params, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    update = lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8)  # noqa: E731
    return jax.tree.map(update, params, mean, square), mean, square, value


specs = zip(SHAPES, SPECS, strict=True)
params = {name: shaped(SHAPES[name], spec) for name, spec in specs}
tokens = shaped((SEQUENCES, 1025), P(D), jnp.int32)
inputs = params, params, params, tokens
try:
    shards = [a.sharding.shard_shape(a.shape) for a in jax.tree.leaves(inputs)]
except ValueError as error:  # a mesh axis does not divide a dimension
    cli.error(str(error))
try:
    lowered = jax.jit(step, donate_argnums=(0, 1, 2)).lower(*inputs)
    compiled = lowered.compile()
except jax.errors.JaxRuntimeError as error:
    sys.exit(re.split(" HLO module:|\n", str(error))[0])
by_hand = 4 * sum(map(np.prod, shards))  # every element takes up 4 bytes
memory = compiled.memory_analysis()
off = memory.argument_size_in_bytes / by_hand - 1
assert abs(off) < 1e-3, f"a chip receives {off:.1%} more than its shards"
print(f"{LAYOUT} on {len(chips)} chips: given {by_hand / 1e9:.2f} GB each, as by hand")
if SLICE != "here":  # emulated devices report no peak
    print(f"fits: at most {memory.peak_memory_in_bytes / 1e9:.1f} GB at a time")
kinds = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute"
collectives = re.findall(rf"({kinds})(?:-start)?\(", compiled.as_text())
print("collectives, a loop's counted once:", dict(Counter(collectives)))
