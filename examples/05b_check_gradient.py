"""python check_gradient.py 8 1: is a sharded gradient the one that one device computes?

Compares what each device of a mesh data x model holds with the whole, in float64.
"""

import sys

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

DATA, MODEL = map(int, sys.argv[1:])
jax.config.update("jax_num_cpu_devices", DATA * MODEL)  # emulated without a GPU or TPU
jax.config.update("jax_enable_x64", True)  # so that "equal" means equal
types = (AxisType.Auto, AxisType.Auto)
mesh = jax.make_mesh((DATA, MODEL), ("data", "model"), axis_types=types)


def loss(w, x, y):  # YOURS: on one device, with the whole batch
    return ((x @ w - y) ** 2).mean()


def sharded_loss(w, x, y):  # YOURS: on one device of the mesh, with its pieces
    predicted = jax.lax.psum(x @ w, "model")  # each device has some of the columns
    return jax.lax.pmean(((predicted - y) ** 2).mean(), "data")


def recipe(w, x, y):  # as in DDP and in pmap: average the gradient, not the loss
    def local(w):
        return ((jax.lax.psum(x @ w, "model") - y) ** 2).mean()

    return jax.lax.pmean(jax.grad(local)(w), "data")


rng = np.random.default_rng(0)  # YOURS: random weights and data; zeros hide faults
x = rng.normal(size=(64, 4))
y, w = x @ [1, -2, 3, 0.5] + 0.3 * rng.normal(size=64), rng.normal(size=4)
batch, W, BATCH = (x, y), P("model"), (P("data", "model"), P("data"))  # who has what


def put(array, spec):
    return jax.device_put(array, NamedSharding(mesh, spec))


def on_mesh(gradient, **options):
    specs = {"in_specs": (W, *BATCH), "out_specs": W}
    run = jax.jit(jax.shard_map(gradient, mesh=mesh, **specs, **options))
    return lambda w: run(jax.tree.map(put, w, W), *jax.tree.map(put, batch, BATCH))


def verdict(gradient, **options):
    """Compare a per-device gradient with one device's: each leaf, on each device."""
    got, said = jax.tree.leaves(on_mesh(gradient, **options)(w)), {}
    want = jax.tree_util.tree_leaves_with_path(jax.grad(loss)(w, *batch))
    for leaf, (path, right) in zip(got, want, strict=True):
        right = np.asarray(right)
        assert np.isfinite(right).all() and right.any(), "this gradient proves nothing"
        pieces = [(right[p.index], np.asarray(p.data)) for p in leaf.addressable_shards]
        square = sum(np.vdot(a, a) for a, _ in pieces)
        times = sum(np.vdot(a, b) for a, b in pieces) / square
        gap = max(abs(b - times * a).max() for a, b in pieces) / abs(right).max()
        if not gap < 1e-9:  # no multiple of the right one, or not a number
            word = "wrong somewhere"
        else:
            word = f"{times:.2f} times the right one"
            word = "right" if abs(times - 1) < 1e-9 else word
        said[jax.tree_util.keystr(path)] = word
    alike = len(set(said.values())) == 1  # then no leaf is named
    return word if alike else ", ".join(f"{name} {say}" for name, say in said.items())


def train(gradient):  # shows that a falling loss proves nothing
    run, v = on_mesh(gradient), jax.tree.map(np.zeros_like, w)
    before = loss(v, *batch)
    for _ in range(40):  # np.asarray waits for the devices
        v = jax.tree.map(lambda a, g: a - 0.02 * np.asarray(g), v, run(v))
    return f"loss {before:.1f} -> {loss(v, *batch):.2g}"


mine = jax.grad(sharded_loss)
print(f"{DATA} x {MODEL} devices")
print("average the loss:    ", verdict(mine), "·", train(mine))
print("average the gradient:", verdict(recipe), "·", train(recipe))
print("check_vma=False:     ", verdict(mine, check_vma=False))
assert verdict(mine) == "right", "your sharded loss is not the loss of one device"
assert DATA == 1 or verdict(recipe) == f"{DATA:.2f} times the right one", (
    "does not tell a wrong one"
)
