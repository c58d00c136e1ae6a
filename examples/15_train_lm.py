"""python train_lm.py 2 2 2 200: train a character model on a data x fsdp x model mesh.

Compare the first step with the same step on one device, count the bytes that it and
data parallelism send (if shardcost is installed), and then train. To install it:
pip install "git+https://github.com/one-program-many-devices/one-program-many-devices\
#subdirectory=packages/shardcost"
"""

import difflib
import inspect
import math
import optparse
import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

try:
    from shardcost import cost
except ImportError:
    cost = None
cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
for name, default in {"data": 2, "fsdp": 2, "model": 2, "steps": 200}.items():
    cli.add_argument(name, type=int, nargs="?", default=default)
*SIZES, STEPS = vars(cli.parse_args()).values()
TEXT = inspect.getsource(difflib) + inspect.getsource(optparse)  # YOURS
jax.config.update("jax_default_matmul_precision", "highest")
numbers = np.array([max(ord(c) - 31, 0) % 96 for c in TEXT], np.int32)  # newline: 0
train_set, test_set = np.split(numbers, [len(numbers) * 9 // 10])
optimizer = optax.adam(3e-3, b2=0.99)
DIMS = {"batch": 8, "length": 64, "vocab": 96, "layer": 2, "width": 64}
DIMS |= {"qkv": 3, "head": 4, "size": 16, "hidden": 256}
DATA, FSDP, MODEL = SIZES
if min(*SIZES, STEPS) < 1 or DIMS["batch"] % (DATA * FSDP) or DIMS["head"] % MODEL:
    cli.error("data x fsdp must divide the 8 rows of a batch, and model the 4 heads")
if (n := jax.device_count()) < math.prod(SIZES):
    cli.error(f"{SIZES} needs {math.prod(SIZES)} devices, and JAX finds {n}")
NAMES = {  # YOURS: a name for each dimension of every array
    "text": "batch length",
    "embed": "vocab width",
    "qkv": "layer width qkv head size",
    "out": "layer head size width",
    "up": "layer width hidden",
    "down": "layer hidden width",
}
RULES = {"batch": ("data", "fsdp"), "width": "fsdp", "head": "model", "hidden": "model"}
COMPUTING = RULES | {"width": None}  # a layer's weights are gathered along fsdp


def tree_specs(tree, rules=RULES):  # Adam's moments have the names of their weights
    def array_spec(path, array):  # for each dimension a mesh axis, or None
        names = NAMES.get(getattr(path[-1], "key", None), "").split()
        if len(names) < array.ndim:  # without an error, it would be replicated
            raise ValueError(f"no names in NAMES for {jax.tree_util.keystr(path)}")
        names = names[len(names) - array.ndim :]  # in the scan over layers, no "layer"
        return P(*[rules.get(name) for name in names])

    return jax.tree.map_with_path(array_spec, tree)


def constrain(tree, rules=RULES):  # inside jit: split every array by its names
    return jax.lax.with_sharding_constraint(tree, tree_specs(tree, rules))


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def rotate(x):  # rotary positions; x: (batch, length, head, size)
    rates = 100.0 ** -np.linspace(0, 1, x.shape[-1] // 2)
    angles = np.arange(x.shape[1])[:, None, None] * rates
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def loss(w, text):  # YOURS
    @jax.checkpoint
    def layer(x, w):
        w = constrain(w, COMPUTING)
        q, k, v = jnp.einsum("bld,dche->cblhe", norm(x), w["qkv"])
        heads = jax.nn.dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + jnp.einsum("blhe,hed->bld", heads, w["out"])
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], None

    embed = constrain({"embed": w["embed"]}, COMPUTING)["embed"]
    x, _ = jax.lax.scan(layer, embed[text[:, :-1]], w["layers"])
    losses = optax.softmax_cross_entropy_with_integer_labels
    return losses(norm(x) @ embed.T, text[:, 1:]).mean()


@partial(jax.jit, donate_argnums=0)
def step(state, text):
    w, moments = state
    value, grads = jax.value_and_grad(loss)(w, text)
    updates, moments = optimizer.update(grads, moments, w)
    return constrain((optax.apply_updates(w, updates), moments)), value


def initial_state(rng):
    def draw(scale, *names):
        sizes = [[DIMS[n] for n in NAMES[name].split()] for name in names]
        drawn = [np.float32(scale * rng.normal(size=size)) for size in sizes]
        return dict(zip(names, drawn, strict=True))

    layers = draw(0.125, "qkv", "up") | draw(0.02, "out", "down")
    w = draw(0.125, "embed") | {"layers": layers}
    return w, jax.tree.map(np.asarray, optimizer.init(w))


def shard(mesh, tree):  # put every array on the mesh, split by its names
    shardings = jax.tree.map(partial(NamedSharding, mesh), tree_specs(tree))
    return jax.device_put(tree, shardings)


def make_mesh(*sizes):
    used, axes = jax.devices()[: math.prod(sizes)], ("data", "fsdp", "model")
    return jax.make_mesh(sizes, axes, axis_types=(AxisType.Auto,) * 3, devices=used)


def get_batch(mesh, number):  # random pieces of the training text
    rng, length = np.random.default_rng(number), DIMS["length"]
    first = rng.integers(0, len(train_set) - length, (DIMS["batch"], 1))
    return shard(mesh, {"text": train_set[first + np.arange(length + 1)]})["text"]


def train(mesh, state, steps):
    state = shard(mesh, state)
    with jax.set_mesh(mesh):  # the specs refer to this mesh
        for number in steps:
            state, value = step(state, get_batch(mesh, number))
            value.block_until_ready()
    return jax.device_get(state)


def count_bytes(state):  # sent by each device in a step, with and without your split
    if cost is None:
        print("to count the bytes that a step sends, install shardcost (see --help)")
        return
    n, weights = math.prod(SIZES), sum(w.nbytes for w in jax.tree.leaves(state[0]))
    layouts = [SIZES, [n, 1, 1]] if DIMS["batch"] % n == 0 else [SIZES]
    for sizes in layouts[: 1 + (layouts[-1] != SIZES)]:
        mesh = make_mesh(*sizes)
        with jax.set_mesh(mesh):
            lowered = step.lower(shard(mesh, state), get_batch(mesh, 0))
        sent = cost(lowered.compile({"xla_backend_optimization_level": 0})).bytes_sent
        print(f"{sizes}: a device sends {sent / weights:.2f} times the weights a step")


mesh, one_device = make_mesh(*SIZES), make_mesh(1, 1, 1)
state = initial_state(np.random.default_rng(0))
actual, expected = (train(used, state, range(1)) for used in (mesh, one_device))
pairs = zip(jax.tree.leaves(actual[1]), jax.tree.leaves(expected[1]), strict=True)
gap = np.max([np.abs(a - b).max() / np.abs(b).max() for a, b in pairs])
assert gap < 1e-3, f"Adam's moments differ from one device's by {gap:.0e}"
print(f"correct: after a step on {SIZES}, Adam's moments equal those of one device")
count_bytes(state)
w, _ = train(mesh, actual, range(1, STEPS))
with jax.set_mesh(one_device):
    text = test_set[: len(test_set) // DIMS["length"] * DIMS["length"]]
    value = jax.jit(loss)(w, text.reshape(-1, DIMS["length"]))
print(f"step {STEPS}: loss {value:.2f} on held-out text")
