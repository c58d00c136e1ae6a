"""python train_lm.py 2 2 2 300: train a model of characters, save it, and let it write.

The mesh is data x fsdp x model. Started again, on any other mesh, it goes on; delete
train_lm.npz to begin anew.
"""

import difflib
import inspect
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
SAVED, ROWS, LENGTH = "train_lm.npz", 8, 64  # YOURS: text, network, rows
TEXT = inspect.getsource(difflib) + inspect.getsource(optparse)
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
jax.config.update("jax_default_matmul_precision", "highest")
L, D, H, E, F = 2, 64, 4, 16, 256  # layers, width, heads, their size, hidden features
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
numbers = np.array([max(CHARACTERS.find(c), 0) for c in TEXT], np.int32)
NAMES = {  # of every array, what each of its dimensions is
    "text": "batch length",
    "embed": "vocab width",
    "qkv": "layer width qkv head size",
    "out": "layer head size width",
    "up": "layer width hidden",
    "down": "layer hidden width",
    "keys": "layer batch length head size",
    "values": "layer batch length head size",
}
RULES = {"batch": ("data", "fsdp"), "width": "fsdp", "head": "model", "hidden": "model"}
COMPUTING = RULES | {"width": None}  # a layer's weights are gathered along fsdp


def specs(tree, rules=RULES):  # scan has taken the first name away, pin sees the rest
    def of(path, a):
        names = NAMES.get(getattr(path[-1], "key", None), "").split()
        return P(*map(rules.get, names[len(names) - a.ndim :]))

    return jax.tree.map_with_path(of, tree)


def pin(tree):
    return jax.lax.with_sharding_constraint(tree, specs(tree, COMPUTING))


def norm(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def turn(x, at):  # rotary positions
    angles = at[:, None, None] * 100.0 ** -np.linspace(0, 1, E // 2)
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def network(w, text, at, cache=None):  # -> scores of what comes next, and the cache
    def layer(x, own):
        w, cache = pin(own)
        q, k, v = jnp.einsum("bld,dche->cblhe", norm(x), w["qkv"])
        q, k = turn(q, at), turn(k, at)
        if cache is not None:  # to write: k and v of the earlier characters
            for name, new in {"keys": k, "values": v}.items():
                old = cache[name]
                cache[name] = jax.lax.dynamic_update_slice_in_dim(old, new, at[0], 1)
            k, v = pin(cache).values()
        scores = jnp.einsum("blhe,bmhe->bhlm", q, k) / E**0.5
        seen = at[:, None] >= jnp.arange(k.shape[1])
        share = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
        x = x + jnp.einsum("bhlm,bmhe,hed->bld", share, v, w["out"])
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], cache

    embed = pin({"embed": w["embed"]})["embed"]
    x, cache = jax.lax.scan(jax.checkpoint(layer), embed[text], (w["layers"], cache))
    return norm(x) @ embed.T, cache


def loss(w, text):  # YOURS
    scores, _ = network(w, text[:, :-1], jnp.arange(text.shape[1] - 1))
    losses = optax.softmax_cross_entropy_with_integer_labels
    return losses(scores, text[:, 1:]).mean()


def start(rng):
    def draw(scale, *shape):
        return np.float32(scale * rng.normal(size=shape))

    layers = {
        "qkv": draw(0.125, L, D, 3, H, E),
        "out": draw(0.02, L, H, E, D),
        "up": draw(0.125, L, D, F),
        "down": draw(0.02, L, F, D),
    }
    w = {"embed": draw(0.125, len(CHARACTERS), D), "layers": layers}
    return w, jax.tree.map(np.asarray, optimizer.init(w)), np.int32(0)


optimizer = optax.adam(3e-3, b2=0.99)


def step(state, text):
    w, means, done = state
    value, grads = jax.value_and_grad(loss)(w, text)
    updates, means = optimizer.update(grads, means, w)
    return (optax.apply_updates(w, updates), means, done + 1), value


def mesh_of(*sizes):
    some = jax.devices()[: int(np.prod(sizes))]
    names, auto = ("data", "fsdp", "model"), (AxisType.Auto,) * 3
    return jax.make_mesh(sizes, names, axis_types=auto, devices=some)


def put(mesh, tree):
    where = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(tree))
    return jax.device_put(tree, where)


def train(mesh, state, steps):
    state = put(mesh, state)
    same = jax.tree.map(lambda a: a.sharding, state)
    program = jax.jit(step, donate_argnums=0, out_shardings=(same, None))
    with jax.set_mesh(mesh):  # pin's specs are of this mesh
        for _ in range(steps):
            rng = np.random.default_rng(int(state[2]))  # the data follow the step
            first = rng.integers(0, len(numbers) - LENGTH, ROWS)
            text = numbers[first[:, None] + np.arange(LENGTH + 1)]
            state, value = program(state, put(mesh, {"text": text})["text"])
            value.block_until_ready()
    return jax.device_get(state), float(value)


@jax.jit
def extend(w, cache, text, at):
    scores, cache = network(w, text, at + jnp.arange(text.shape[1]), cache)
    return scores[:, -1], cache


def write(mesh, w, prompt, rng):
    text = new = np.tile([CHARACTERS.index(c) for c in prompt], (ROWS, 1))
    pages = np.zeros((L, ROWS, LENGTH, H, E), np.float32)
    w, cache = put(mesh, (w, {"keys": pages, "values": pages}))
    with jax.set_mesh(mesh):
        while text.shape[1] < LENGTH:
            at = text.shape[1] - new.shape[1]
            scores, cache = extend(w, cache, put(mesh, {"text": new})["text"], at)
            chance = np.asarray(scores) / 0.6 + rng.gumbel(size=scores.shape)
            new = chance.argmax(1)[:, None]  # likely characters more often
            text = np.concatenate([text, new], 1)
    return ["".join(CHARACTERS[n] for n in row) for row in text]


mesh, state = mesh_of(*SIZES), start(np.random.default_rng(0))
if os.path.exists(SAVED):
    saved, (leaves, tree) = np.load(SAVED), jax.tree.flatten(state)
    pairs = zip(saved.values(), leaves, strict=True)
    state = jax.tree.unflatten(tree, [old.astype(new.dtype) for old, new in pairs])
trained, first = train(mesh, state, 1)
true, _ = train(mesh_of(1, 1, 1), state, 1)  # the same step on one device
pairs = zip(jax.tree.leaves(trained[1]), jax.tree.leaves(true[1]), strict=True)
gap = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
assert gap < 1e-3, f"this mesh learns something else: Adam's means off by {gap:.0e}"
print(f"right: after a step on {SIZES} Adam's means are those of one device")
trained, last = train(mesh, trained, STEPS - 1)
np.savez(SAVED, *jax.tree.leaves(trained))
print(f"step {trained[2]}: loss {first:.2f} to {last:.2f}; saved in {SAVED}")
print(write(mesh, trained[0], "    def ", np.random.default_rng(0))[0])
