"""python shard_params.py 50257 50304: how much of a model does each device hold?

Rules on parameter names choose the mesh axes that split each array. An axis that does
not divide a dimension leaves it unsplit. For each vocabulary size, plan 6.9 billion
parameters without creating them. Then create a small model and check its bytes.
"""

import os
import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial
from math import prod

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax import P
from jax.sharding import AxisType, NamedSharding, auto_axes

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("vocabulary", type=int, nargs="*", default=[50257, 50304])
SIZES = cli.parse_args().vocabulary
if min(SIZES) < 1:
    cli.error("each size of the vocabulary must be at least 1")
RULES = [  # YOURS: the first pattern that matches a name decides
    ("embed$", P("model", "data")),
    ("head$", P("data", "model")),
    ("/(qkv|up)$", P(None, "data", None, "model")),
    ("/(out|down)$", P(None, "model", "data")),
    ("norm$", P()),
]


def init(key, V, D, F, L):  # YOURS; V: vocabulary size
    keys = iter(jax.random.split(key, 6))

    def normal(*shape):
        return 0.02 * jax.random.normal(next(keys), shape, jnp.bfloat16)

    layers = {"qkv": normal(L, D, 3, D), "out": normal(L, D, D)}
    layers |= {"up": normal(L, D, 2, F), "down": normal(L, F, D)}
    layers["norm"] = jnp.ones((L, 2, D), jnp.bfloat16)
    return {"embed": normal(V, D), "layers": layers, "head": normal(D, V)}


def rule_for(path, x):
    name = jax.tree_util.keystr(path, simple=True, separator="/")
    spec = next((spec for pattern, spec in RULES if re.search(pattern, name)), None)
    assert spec is not None and len(spec) <= x.ndim, f"no rule for {name} {x.shape}"
    return name, spec


def divides(entry, size):
    names = entry if isinstance(entry, tuple) else (entry,) if entry else ()
    return size % prod(mesh.shape[name] for name in names) == 0


def spec_of(path, x):  # the rule's spec, without the entries that don't divide
    _, spec = rule_for(path, x)
    entries = zip(spec, x.shape, strict=False)
    return P(*(entry if divides(entry, size) else None for entry, size in entries))


def shard_bytes(x, spec):
    return prod(NamedSharding(mesh, spec).shard_shape(x.shape)) * x.dtype.itemsize


def show(path, x, spec):
    name, rule = rule_for(path, x)
    piece = NamedSharding(mesh, spec).shard_shape(x.shape)
    entries = [(e, n) for e, n in zip(rule, x.shape, strict=False) if not divides(e, n)]
    note = ", ".join(f"{entry} does not divide {size}" for entry, size in entries)
    print(f"{name:13} {x.shape!s:20} {piece!s:20} {note}".rstrip())


n = jax.device_count()
sizes = (n // 2, 2) if n % 2 == 0 else (n, 1)
explicit = (AxisType.Explicit, AxisType.Explicit)
mesh = jax.make_mesh(sizes, ("data", "model"), axis_types=explicit)
jax.set_mesh(mesh)

key = jax.random.key(0)
for V in SIZES:
    shapes = jax.eval_shape(partial(init, V=V, D=4096, F=11_008, L=32), key)
    specs = jax.tree.map_with_path(spec_of, shapes)  # nothing is created
    jax.tree.map_with_path(show, shapes, specs)
    gigabytes = sum(jax.tree.leaves(jax.tree.map(shard_bytes, shapes, specs))) / 1e9
    total = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes)) / 1e9
    where = f"each of {n} devices" if n > 1 else "the only device"
    print(f"{total:.2f} GB in all, {gigabytes:.2f} GB on {where}\n")


def small(key):
    return init(key, V=SIZES[-1], D=64, F=172, L=2)


specs = jax.tree.map_with_path(spec_of, jax.eval_shape(small, key))
weights = jax.jit(auto_axes(small, out_sharding=specs))(key)  # creates only the shards
planned = sum(jax.tree.leaves(jax.tree.map(shard_bytes, weights, specs)))
shards = [shard for x in jax.tree.leaves(weights) for shard in x.addressable_shards]
for device in jax.local_devices():
    held = sum(shard.data.nbytes for shard in shards if shard.device == device)
    assert held == planned, f"{device} holds {held:,} bytes instead of {planned:,}"
close = partial(np.testing.assert_allclose, rtol=0.02)
jax.tree.map(close, weights, jax.jit(small)(key))  # replicated
print(f"a small model: {planned:,} bytes on each, as planned; values as replicated")
