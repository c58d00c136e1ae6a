"""python check_gradient.py 8 1: is a sharded gradient the same as one device's?

Compare each device's shards on a data x model mesh with one device's gradient, in
float64. Without accelerators, emulate as many devices as the mesh needs.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
for name, default in {"data": 8, "model": 1}.items():
    cli.add_argument(name, type=int, nargs="?", default=default)
DATA, MODEL = vars(cli.parse_args()).values()
if min(DATA, MODEL) < 1 or 64 % DATA or 4 % MODEL:
    cli.error("data must divide the 64 rows, and model the 4 columns")
jax.config.update("jax_num_cpu_devices", DATA * MODEL)  # emulated without a GPU or TPU
if (n := jax.device_count()) < DATA * MODEL:
    cli.error(f"{DATA} x {MODEL} needs {DATA * MODEL} devices, and JAX finds {n}")
jax.config.update("jax_enable_x64", True)  # so that "equal" means equal
types = (AxisType.Explicit, AxisType.Explicit)
mesh = jax.make_mesh((DATA, MODEL), ("data", "model"), axis_types=types)


def loss(w, x, y):  # YOURS: on one device, with the whole batch
    return ((x @ w - y) ** 2).mean()


def sharded_loss(w, x, y):  # YOURS: on one device of the mesh, with its shards
    predicted = jax.lax.psum(x @ w, "model")  # each device has a few columns
    return jax.lax.pmean(((predicted - y) ** 2).mean(), "data")


def recipe(w, x, y):  # YOURS, wrong on purpose: average the gradient, as in DDP
    def local(w):
        return ((jax.lax.psum(x @ w, "model") - y) ** 2).mean()

    return jax.lax.pmean(jax.grad(local)(w), "data")


rng = np.random.default_rng(0)  # YOURS: random weights and data; zeros hide bugs
x = rng.normal(size=(64, 4))
y, w = x @ [1, -2, 3, 0.5] + 0.3 * rng.normal(size=64), rng.normal(size=4)
batch, W, BATCH = (x, y), P("model"), (P("data", "model"), P("data"))


def put(array, spec):
    return jax.device_put(array, NamedSharding(mesh, spec))


def on_mesh(gradient, **options):
    specs = {"in_specs": (W, *BATCH), "out_specs": W}
    run = jax.jit(jax.shard_map(gradient, mesh=mesh, **specs, **options))
    return lambda w: run(jax.tree.map(put, w, W), *jax.tree.map(put, batch, BATCH))


def verdict(gradient, **options):
    """Compare a per-device gradient with one device's: each leaf, on each device."""
    got, verdicts = jax.tree.leaves(on_mesh(gradient, **options)(w)), {}
    want = jax.tree_util.tree_leaves_with_path(jax.grad(loss)(w, *batch))
    for leaf, (path, right) in zip(got, want, strict=True):
        right = np.asarray(right)
        assert np.isfinite(right).all() and right.any(), "a zero gradient tests nothing"
        pairs = [(right[s.index], np.asarray(s.data)) for s in leaf.addressable_shards]
        square = sum(np.vdot(a, a) for a, _ in pairs)
        times = sum(np.vdot(a, b) for a, b in pairs) / square
        gap = max(abs(b - times * a).max() for a, b in pairs) / abs(right).max()
        if not gap < 1e-9:  # not a multiple of the right gradient, or NaN
            word = "wrong somewhere"
        else:
            word = f"{times:.2f} times the right one"
            word = "right" if abs(times - 1) < 1e-9 else word
        verdicts[jax.tree_util.keystr(path)] = word
    if len(set(verdicts.values())) == 1:  # no need to name the leaves
        return word
    return ", ".join(f"{name} {word}" for name, word in verdicts.items())


def train(gradient):  # a falling loss proves nothing
    run, v = on_mesh(gradient), jax.tree.map(np.zeros_like, w)
    before = loss(v, *batch)
    for _ in range(40):  # np.asarray waits for the devices
        v = jax.tree.map(lambda a, g: a - 0.02 * np.asarray(g), v, run(v))
    return f"loss {before:.1f} -> {loss(v, *batch):.2g}"


mine = jax.grad(sharded_loss)
print(f"{DATA} x {MODEL} device{'s' * (n > 1)}")
print("average the loss:    ", verdict(mine), "·", train(mine))
print("average the gradient:", verdict(recipe), "·", train(recipe))
print("check_vma=False:     ", verdict(mine, check_vma=False))
assert verdict(mine) == "right", "the sharded loss differs from one device's"
assert DATA == 1 or verdict(recipe) == f"{DATA:.2f} times the right one", (
    "this check misses a wrong gradient"
)
