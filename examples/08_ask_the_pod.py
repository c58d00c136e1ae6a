"""python ask_the_pod.py FSDP 64 --target v5e:8x8: does this training step fit?

Ask the compiler of chips that this machine doesn't have: h100:8, h100:4x8 (machines x
GPUs) or a TPU slice such as v5e:2x4. It needs JAX's CUDA plugin or libtpu, but no chip.
`--target here` asks the compiler of this machine's devices. --quick optimizes less.
FSDP is the layout, and 64 the number of sequences, each of 1,024 tokens, in a batch.
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
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

ALONG_MODEL = {"data": 1, "FSDP": 1, "tensor": 8, "both": 4}  # chips by layout
cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("layout", choices=ALONG_MODEL, nargs="?", default="FSDP")
cli.add_argument("sequences", type=int, nargs="?", default=64)
cli.add_argument("--target", default="v5e:8x8")
cli.add_argument("--quick", action="store_true", default=not sys.argv[1:])
LAYOUT, SEQUENCES, TARGET, quick = vars(cli.parse_args()).values()
jax.config.update("jax_optimization_level", "O0" if quick else "UNKNOWN")

H100 = """
gpu_device_info {  # from XLA's repository, which describes other GPUs as well
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472 registers_per_core_limit: 65536
  registers_per_block_limit: 65536 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84942979072 cuda_compute_capability { major: 9 }
}
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def describe(target):  # a list of devices, which needn't be here
    if target == "here":
        return jax.devices()
    if jax.__version_info__ < (0, 10):
        raise RuntimeError("JAX 0.10 or newer can compile for devices that aren't here")
    jax.config.update("jax_platforms", "cpu")
    ask = topologies.get_topology_desc
    if match := re.fullmatch(r"h100:(?:(\d+)x)?(\d+)", target):
        gpus = f"1x{match[1] or 1}x{match[2]}"  # slices x machines x GPUs
        return ask(platform="cuda", target_config=H100, topology=gpus).devices
    # These settings keep libtpu quiet on a machine without a TPU.
    os.environ |= {"TPU_WORKER_HOSTNAMES": "localhost"}
    os.environ |= {"TPU_ACCELERATOR_TYPE": "v5litepod-8"}
    os.environ |= {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    return ask(target, platform="tpu").devices


try:
    chips = describe(TARGET)
except (RuntimeError, NotImplementedError) as error:  # no compiler, or no such slice
    cli.error(f"{TARGET}: {str(error).splitlines()[0]}")
MODEL = ALONG_MODEL[LAYOUT]
if SEQUENCES < 1 or len(chips) % MODEL:
    cli.error(f"{LAYOUT} takes one or more sequences, and a multiple of {MODEL} chips")
sizes = len(chips) // MODEL, MODEL
grid = mesh_utils.create_device_mesh(sizes, chips, allow_split_physical_axes=True)
mesh = Mesh(grid, ("data", "model"), axis_types=(AxisType.Auto,) * 2)

LAYERS, N, D, M = 24, None, "data", "model"  # N: this axis isn't split
SHAPES = {  # YOURS: the weights and, below, a spec for each
    "embed": (32768, 2048),
    "qkv": (LAYERS, 2048, 3, 16, 128),
    "out": (LAYERS, 16, 128, 2048),
    "up": (LAYERS, 2048, 8192),
    "down": (LAYERS, 8192, 2048),
}
SPECS = {
    "data": (P(), P(), P(), P(), P()),
    "FSDP": (P(D), P(N, D), P(N, N, N, D), P(N, D), P(N, N, D)),
    "tensor": (P(M), P(N, N, N, M), P(N, M), P(N, N, M), P(N, M)),
    "both": (P(M, D), P(N, D, N, M), P(N, M, N, D), P(N, D, M), P(N, M, D)),
}[LAYOUT]


def shaped(shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def attention(x, qkv, out):
    q, k, v = jnp.einsum("btw,wche->cbthe", x, qkv)
    scores = jnp.einsum("bthe,bshe->bhts", q, k) / 128**0.5
    earlier = jnp.tri(x.shape[1], dtype=bool)
    shares = jax.nn.softmax(jnp.where(earlier, scores, -1e9))
    return jnp.einsum("bhts,bshe,hew->btw", shares, v, out)


def layer(x, weights):  # YOURS: (batch, length, width) -> the same shape
    x = x + attention(norm(x), weights["qkv"], weights["out"])
    return x + jax.nn.relu(norm(x) @ weights["up"]) @ weights["down"]


def split(x):  # keep activations split along the batch
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(D)))


def loss(params, tokens):
    weights = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
    embed = weights.pop("embed")
    one_layer = jax.checkpoint(lambda x, weights: (split(layer(x, weights)), None))
    x, _ = jax.lax.scan(one_layer, split(embed[tokens[:, :-1]]), weights)
    log_p = jax.nn.log_softmax((norm(x) @ embed.T).astype(jnp.float32))
    return -jnp.take_along_axis(log_p, tokens[:, 1:, None], -1).mean()


def step(params, means, squares, tokens):  # Adam, without bias correction
    value, grads = jax.value_and_grad(loss)(params, tokens)
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, grads)
    squares = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, squares, grads)

    def update(p, m, s):
        return p - 1e-3 * m / (jnp.sqrt(s) + 1e-8)

    return jax.tree.map(update, params, means, squares), means, squares, value


params = {n: shaped(SHAPES[n], spec) for n, spec in zip(SHAPES, SPECS, strict=True)}
tokens = shaped((SEQUENCES, 1025), P(D), jnp.int32)
inputs = params, params, params, tokens
try:
    shards = [a.sharding.shard_shape(a.shape) for a in jax.tree.leaves(inputs)]
except ValueError as error:  # a mesh axis doesn't divide a dimension
    cli.error(str(error))
try:
    compiled = jax.jit(step, donate_argnums=(0, 1, 2)).lower(*inputs).compile()
except jax.errors.JaxRuntimeError as error:
    sys.exit(re.split(" HLO module:|\n", str(error))[0])
by_hand = 4 * sum(map(np.prod, shards))  # every element takes up 4 bytes
memory = compiled.memory_analysis()
off = memory.argument_size_in_bytes / by_hand - 1
assert abs(off) < 1e-3, f"a chip receives {off:.1%} more than its shards"
print(f"{LAYOUT} on {len(chips)} chips: given {by_hand / 1e9:.2f} GB each, as by hand")
if TARGET != "here":  # emulated devices report no peak
    print(f"at most {memory.peak_memory_in_bytes / 1e9:.1f} GB at a time")
kinds = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute"
# On TPUs, the start, the end and the steps between them share a chain_id.
pattern = rf'({kinds})(?:-start)?\((?:.*?chain_id="(\d+)")?'
found = re.findall(pattern, compiled.as_text())
collectives = {chain or i: kind for i, (kind, chain) in enumerate(found)}
print("collectives (in a loop, or with a start and an end: counted once):")
print(dict(Counter(collectives.values())))
