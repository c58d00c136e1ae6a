"""python train_lm.py 2 2 2 300: train a model of characters, save it, and let it write.

The mesh is data x fsdp x model. Started again, on any other mesh, it goes on; delete
train_lm.npz to begin anew.
"""

import difflib
import inspect
import math
import optparse
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

*SIZES, STEPS = map(int, sys.argv[1:])
SAVED = "train_lm.npz"
TEXT = inspect.getsource(difflib) + inspect.getsource(optparse)  # YOURS
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
jax.config.update("jax_default_matmul_precision", "highest")
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
numbers = np.array([max(CHARACTERS.find(c), 0) for c in TEXT], np.int32)
optimizer = optax.adam(3e-3, b2=0.99)
DIMS = {"batch": 8, "length": 64, "vocab": 96, "layer": 2, "width": 64}
DIMS |= {"qkv": 3, "head": 4, "size": 16, "hidden": 256}
ROWS, LENGTH = DIMS["batch"], DIMS["length"]
NAMES = {  # YOURS: of every array, what each of its dimensions is
    "text": "batch length",
    "embed": "vocab width",
    "qkv": "layer width qkv head size",
    "out": "layer head size width",
    "up": "layer width hidden",
    "down": "layer hidden width",
}
RULES = {"batch": ("data", "fsdp"), "width": "fsdp", "head": "model", "hidden": "model"}
COMPUTING = RULES | {"width": None}  # a layer's weights are gathered along fsdp


def specs(tree, rules=RULES):
    def of(path, a):  # Adam's means have their weight's name; scan takes "layer" away
        names = NAMES.get(getattr(path[-1], "key", None), "").split()
        return P(*map(rules.get, names[len(names) - a.ndim :]))

    return jax.tree.map_with_path(of, tree)


def pin(tree):
    return jax.lax.with_sharding_constraint(tree, specs(tree, COMPUTING))


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def turn(x):  # rotary positions; x: (batch, length, head, size)
    angles = np.arange(x.shape[1])[:, None, None] * 100.0 ** -np.linspace(
        0, 1, DIMS["size"] // 2
    )
    cos, sin = jnp.float32(np.cos(angles)), jnp.float32(np.sin(angles))
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@jax.jit
def network(w, text):  # YOURS -> (batch, length, vocab), scores of what comes next
    @jax.checkpoint
    def layer(x, w):
        w = pin(w)
        q, k, v = jnp.einsum("bld,dche->cblhe", norm(x), w["qkv"])
        heads = jax.nn.dot_product_attention(turn(q), turn(k), v, is_causal=True)
        x = x + jnp.einsum("blhe,hed->bld", heads, w["out"])
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], None

    embed = pin({"embed": w["embed"]})["embed"]
    x, _ = jax.lax.scan(layer, embed[text], w["layers"])
    return norm(x) @ embed.T


def start(rng):
    def draw(scale, *names):
        sizes = {name: [DIMS[n] for n in NAMES[name].split()] for name in names}
        return {
            name: np.float32(scale * rng.normal(size=sizes[name])) for name in names
        }

    layers = draw(0.125, "qkv", "up") | draw(0.02, "out", "down")
    w = draw(0.125, "embed") | {"layers": layers}
    return w, jax.tree.map(np.asarray, optimizer.init(w)), np.int32(0)


def step(state, text):
    def loss(w):
        logs = jax.nn.log_softmax(network(w, text[:, :-1]))
        return -jnp.take_along_axis(logs, text[:, 1:, None], -1).mean()

    w, means, done = state
    value, grads = jax.value_and_grad(loss)(w)
    updates, means = optimizer.update(grads, means, w)
    return (optax.apply_updates(w, updates), means, done + 1), value


def put(mesh, tree):  # every array where its names say
    where = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(tree))
    return jax.device_put(tree, where)


def mesh_of(*sizes):
    some, axes = jax.devices()[: math.prod(sizes)], ("data", "fsdp", "model")
    return jax.make_mesh(sizes, axes, axis_types=(AxisType.Auto,) * 3, devices=some)


def train(mesh, state, steps):
    state, values = put(mesh, state), []
    same = jax.tree.map(lambda a: a.sharding, state)  # the new state lies as the old
    program = jax.jit(step, donate_argnums=0, out_shardings=(same, None))
    with jax.set_mesh(mesh):  # pin's specs are of this mesh
        for number in range(int(state[2]), int(state[2]) + steps):
            first = np.random.default_rng(number).integers(0, len(TEXT) - LENGTH, ROWS)
            text = numbers[first[:, None] + np.arange(LENGTH + 1)]
            state, value = program(state, put(mesh, {"text": text})["text"])
            values.append(float(value))  # waits for the devices
    return jax.device_get(state), np.mean(values)


mesh, state = mesh_of(*SIZES), start(np.random.default_rng(0))
if os.path.exists(SAVED):  # it holds whole arrays, and no mesh
    saved, (leaves, tree) = np.load(SAVED), jax.tree.flatten(state)
    pairs = zip(saved.values(), leaves, strict=True)
    state = jax.tree.unflatten(tree, [old.astype(new.dtype) for old, new in pairs])
trained, _ = train(mesh, state, 1)
true, _ = train(mesh_of(1, 1, 1), state, 1)  # the same step on one device
pairs = zip(jax.tree.leaves(trained[1]), jax.tree.leaves(true[1]), strict=True)
gap = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
assert gap < 1e-3, f"this mesh learns something else: Adam's means off by {gap:.0e}"
print(f"right: after a step on {SIZES} Adam's means are those of one device")
trained, value = train(mesh, trained, STEPS - 1)
np.savez(SAVED, *jax.tree.leaves(trained))  # at scale: Orbax, lesson 17
print(f"step {trained[2]}: mean loss {value:.2f}, saved in {SAVED}")

prompt, rng = "    def ", np.random.default_rng(0)
text = np.zeros((ROWS, LENGTH), np.int32)
text[:, : len(prompt)] = [CHARACTERS.index(c) for c in prompt]
with jax.set_mesh(mesh):
    w = put(mesh, trained[0])
    for at in range(len(prompt), LENGTH):  # without a cache: reads all again
        scores = np.asarray(network(w, put(mesh, {"text": text})["text"])[:, at - 1])
        chance = scores / 0.6 + rng.gumbel(size=scores.shape)
        text[:, at] = chance.argmax(1)  # likely characters more often
for row in text[:3]:
    print("│", "".join(CHARACTERS[n] for n in row).replace("\n", "\n│ "))
