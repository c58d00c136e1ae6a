"""python same_numbers.py save numbers.npz: save a step's results, to check a port.

On the old JAX, `save` with the old step. On the new JAX, `compare` with the new step.
"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter

# Emulated without a GPU or TPU. Before JAX 0.5, set XLA_FLAGS instead.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("task", choices=["save", "compare"], nargs="?", default="save")
cli.add_argument("path", nargs="?", default="numbers.npz")
TASK, PATH = vars(cli.parse_args()).values()
if not PATH.endswith(".npz"):
    cli.error("the path must end in .npz")
if TASK == "compare" and not os.path.exists(PATH):
    cli.error(f"{PATH} does not exist: save it first, on the old JAX")
if 64 % jax.device_count():
    cli.error(f"{jax.device_count()} devices can't split 64 rows evenly")


def step():  # YOURS: a few steps from fixed data; the results, by name
    mesh = Mesh(np.array(jax.devices()), ("data",))  # automatic axes on every JAX
    rng = np.random.default_rng(0)
    x = jax.device_put(rng.normal(size=(64, 4)), NamedSharding(mesh, P("data")))
    y = x @ np.array([1, -2, 3, 0.5]) + rng.normal(size=64)

    @jax.jit
    def train(w):
        return w - 0.1 * jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)

    w = jnp.zeros(4)
    for _ in range(3):  # few: after many steps, a doubled gradient ends at the same w
        w = train(w).block_until_ready()
    return {"w": w, "rows": x}


def results():
    """Return each array's values and type, and the bounds and device of each shard."""
    arrays = {}
    for name, array in step().items():
        shards = sorted(array.addressable_shards, key=lambda s: s.device.id)
        slices = [zip(s.index, array.shape, strict=True) for s in shards]
        bounds = [[part.indices(n)[:2] for part, n in shard] for shard in slices]
        values = np.asarray(array)
        exact = values.dtype.kind != "V"  # NumPy can't save types such as bfloat16
        arrays[name] = values if exact else values.astype(np.float32)
        arrays[name + " type"] = np.array(str(array.dtype))
        arrays[name + " layout"] = np.array(bounds)
        arrays[name + " devices"] = np.array([s.device.id for s in shards])
    return arrays


def differences(old, new):
    if missing := set(old) ^ set(new):
        yield f"not in both: {sorted(missing)}"
    for name in sorted(set(old) & set(new)):
        a, b = old[name], new[name]
        if name.endswith((" type", " layout", " devices")):
            if not np.array_equal(a, b):
                yield f"{name} differs"
        elif a.shape != b.shape:
            yield f"{name}: {a.shape} became {b.shape}"
        elif not np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=False):
            yield f"{name}: {abs(a - b).max():.2g} apart"


if TASK == "save":
    np.savez(PATH, **results())
    print(f"saved {len(np.load(PATH))} entries on JAX {jax.__version__}")
else:
    old = dict(np.load(PATH))
    lines = list(differences(old, results()))
    print(*lines or [f"{len(old)} entries: the same"], sep="\n")
    sys.exit(bool(lines))
