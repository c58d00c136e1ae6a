"""python ask_the_pod.py v5e:8x8 FSDP 64 quick: does this training step fit on 64 chips?

The TPU's compiler answers. It takes libtpu and no TPU. With `here` in place of v5e:8x8
the compiler of this machine's devices answers.
"""

import os
import re
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils, topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SLICE, LAYOUT, SEQUENCES, *quick = sys.argv[1:]
if quick:  # the compiler tries less hard: seconds in place of half a minute
    jax.config.update("jax_optimization_level", "O0")
if SLICE == "here":
    chips = jax.devices()
else:
    jax.config.update("jax_platforms", "cpu")
    os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")  # three lines that keep
    os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-8")  # libtpu quiet where
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")  # there is no TPU
    try:
        chips = topologies.get_topology_desc(SLICE, platform="tpu").devices
    except Exception as error:
        print(f'No compiler for {SLICE} ({error}): pip install "jax[tpu]"')
        sys.exit(1)
LAYERS, D, M = 24, "data", "model"
MODEL = {"data": 1, "FSDP": 1, "tensor": 8, "both": 4}[LAYOUT]  # chips along model
sizes = len(chips) // MODEL, MODEL
grid = mesh_utils.create_device_mesh(sizes, chips, allow_split_physical_axes=True)
mesh = Mesh(grid, (D, M))

SHAPES = {  # YOURS: the weights, and the specs that cut them, one for each
    "embed": (32768, 2048),
    "qkv": (LAYERS, 2048, 3, 16, 128),
    "out": (LAYERS, 16, 128, 2048),
    "up": (LAYERS, 2048, 8192),
    "down": (LAYERS, 8192, 2048),
}
no = None
CUTS = {
    "data": (P(), P(), P(), P(), P()),
    "FSDP": (P(D), P(no, D), P(no, no, no, D), P(no, D), P(no, no, D)),
    "tensor": (P(M), P(no, no, no, M), P(no, M), P(no, no, M), P(no, M)),
    "both": (P(M, D), P(no, D, no, M), P(no, M, no, D), P(no, D, M), P(no, M, D)),
}[LAYOUT]


def shaped(shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def layer(x, w):  # YOURS: (batch, length, width) -> the same
    q, k, v = jnp.einsum("bld,dche->cblhe", norm(x), w["qkv"])
    scores = jnp.einsum("blhe,bmhe->bhlm", q, k) / 128**0.5
    past = jnp.tri(x.shape[1], dtype=bool)
    seen = jax.nn.softmax(jnp.where(past, scores, -1e9))
    x = x + jnp.einsum("bhlm,bmhe,hed->bld", seen, v, w["out"])
    return x + jax.nn.relu(norm(x) @ w["up"]) @ w["down"]


def cut(x):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(D)))


def loss(params, tokens):
    layers = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
    embed = layers.pop("embed")
    one = jax.checkpoint(lambda x, w: (cut(layer(x, w)), None))
    x, _ = jax.lax.scan(one, cut(embed[tokens[:, :-1]]), layers)
    log_p = jax.nn.log_softmax((norm(x) @ embed.T).astype(jnp.float32))
    return -jnp.take_along_axis(log_p, tokens[:, 1:, None], -1).mean()


def step(params, mean, square, tokens):  # Adam, without its correction of first steps
    value, grads = jax.value_and_grad(loss)(params, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    move = lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8)  # noqa: E731
    return jax.tree.map(move, params, mean, square), mean, square, value


params = {k: shaped(SHAPES[k], spec) for k, spec in zip(SHAPES, CUTS, strict=True)}
tokens = shaped((int(SEQUENCES), 1025), P(D), jnp.int32)
given = params, params, params, tokens
lowered = jax.jit(step, donate_argnums=(0, 1, 2)).lower(*given)
try:
    compiled = lowered.compile()
except jax.errors.JaxRuntimeError as error:
    print(str(error).split(" HLO module:")[0].split("\n")[0])
    sys.exit("refused")
memory = compiled.memory_analysis()
by_hand = sum(
    4 * np.prod(a.sharding.shard_shape(a.shape)) for a in jax.tree.leaves(given)
)
off = memory.argument_size_in_bytes - by_hand
assert 0 <= off < 1e-3 * by_hand, "a chip is given something else than its shards"
print(
    f"{LAYOUT} on {len(chips)} chips: given {by_hand / 1e9:.2f} GB a chip, as by hand"
)
if SLICE != "here":
    print(f"fits: at most {memory.peak_memory_in_bytes / 1e9:.1f} GB at a time")
lines = re.findall(
    r" (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)[(-]",
    compiled.as_text(),
)
print("in its text:", dict(Counter(lines)))
