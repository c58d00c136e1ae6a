"""python same_numbers.py save numbers.npz: keep a step's results, to compare a port.

On the old JAX `save`, with the old step. On the new JAX `compare`, with the new step.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

if hasattr(jax.config, "jax_num_cpu_devices"):  # before JAX 0.5: XLA_FLAGS
    jax.config.update("jax_num_cpu_devices", 8)  # emulated without a GPU or TPU


def step():  # YOURS: a few steps from fixed data; by name, what must not change
    mesh = Mesh(np.array(jax.devices()), ("data",))  # automatic axes on every JAX
    rng = np.random.default_rng(0)
    x = jax.device_put(rng.normal(size=(64, 4)), NamedSharding(mesh, P("data")))
    y = x @ np.array([1, -2, 3, 0.5])

    @jax.jit
    def train(w):
        return w - 0.1 * jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)

    w = jnp.zeros(4)
    for _ in range(100):
        w = train(w).block_until_ready()
    return {"w": w, "rows": x}


def results():
    """Of each array its values, and from where to where each device holds it."""
    found = {}
    for name, array in step().items():
        shards = sorted(array.addressable_shards, key=lambda s: s.device.id)
        cuts = [zip(s.index, array.shape, strict=True) for s in shards]
        bounds = [[cut.indices(n)[:2] for cut, n in one] for one in cuts]
        found[name], found[name + " layout"] = np.asarray(array), np.array(bounds)
    return found


def differences(old, new):
    if missing := set(old) ^ set(new):
        yield f"not in both: {sorted(missing)}"
    for name in sorted(set(old) & set(new)):
        a, b = old[name], new[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f"{name}: {a.dtype}{a.shape} became {b.dtype}{b.shape}"
        elif "layout" in name and not np.array_equal(a, b):
            yield f"{name}: other pieces, or on other devices"
        elif not np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=False):
            yield f"{name}: {abs(a - b).max():.2g} apart"


how, path = sys.argv[1:]
if how == "save":
    np.savez(path, **results())
    print(f"saved {len(np.load(path))} arrays on JAX {jax.__version__}")
else:
    old = dict(np.load(path))
    found = list(differences(old, results()))
    print(*found or [f"{len(old)} arrays: the same"], sep="\n")
    sys.exit(bool(found))
