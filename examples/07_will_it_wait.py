"""python will_it_wait.py 8 1 8192: do 8 x 1 chips wait for the wire, with 8,192 tokens?

Traces a program for a mesh (data, model), runs nothing, and counts for one chip.
"""

import sys
from math import prod

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

DATA, MODEL, TOKENS = map(int, sys.argv[1:])
C, W = 197e12, 100e9  # TPU v5e: FLOP/s, bytes/s in a ring. H100: 989.5e12, 450e9
D, F, LAYERS = 8192, 32768, 4
SIZES, AUTO = {"data": DATA, "model": MODEL}, (AxisType.Auto, AxisType.Auto)
mesh = AbstractMesh(tuple(SIZES.values()), tuple(SIZES), axis_types=AUTO)  # no devices
PRICE = {  # how many times what it puts in does one of n chips send?
    "all_gather": lambda n: n - 1,
    "reduce_scatter": lambda n: (n - 1) / n,
    "psum": lambda n: 2 * (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "ppermute": lambda n: 1,
}


def walk(jaxpr, times=1):  # every operation that JAX traced, and how often it runs
    for eqn in jaxpr.eqns:
        yield eqn, times
        params, rounds = list(eqn.params.values()), eqn.params.get("length", 1)
        for inner in jax.tree.leaves(params, is_leaf=lambda v: hasattr(v, "eqns")):
            if hasattr(inner, "eqns"):  # a loop's body, a checkpoint, a shard_map
                yield from walk(inner, times * rounds)


def judge(what, program, w, w_specs, out_specs):
    specs = {"mesh": mesh, "in_specs": (P("data"), w_specs), "out_specs": out_specs}
    traced = jax.make_jaxpr(jax.shard_map(program, **specs))(of(TOKENS, D), w)
    flops = sent = 0
    for eqn, times in walk(traced):
        name = eqn.primitive.name.removesuffix("_invariant")
        if name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            length = prod(eqn.invars[0].aval.shape[i] for i in contracted)
            flops += times * 2 * length * prod(eqn.outvars[0].aval.shape)
        elif name in PRICE:
            axes = eqn.params.get("axes") or eqn.params["axis_name"]
            n = prod(SIZES[a] for a in ([axes] if isinstance(axes, str) else axes))
            v = sum(a.aval.size * a.aval.dtype.itemsize for a in eqn.invars)
            sent += times * v * PRICE[name](n)
    verdict = "waits for the wire" if sent / W > flops / C else "stays busy"
    computes, sends = f"{1e3 * flops / C:7.2f} ms", f"{1e3 * sent / W:7.2f} ms"
    print(f"{what:16} computes {computes}, sends {sends}: {verdict}")
    return sent


def of(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def product(x, w):  # the rows of both are split, as in the forward pass of FSDP
    return x @ jax.lax.all_gather(w, "data", tiled=True)


def layer(x, w):  # YOURS: what one chip does. Here FSDP over data, Megatron over model
    up = jax.lax.all_gather(w["up"], "data", axis=0, tiled=True)
    down = jax.lax.all_gather(w["down"], "data", axis=1, tiled=True)
    return x + jax.lax.psum(jax.nn.relu(x @ up) @ down, "model"), None


def step(x, weights):  # forward and backward
    def loss(x, weights):
        y, _ = jax.lax.scan(jax.checkpoint(layer), x, weights)
        return jax.lax.pmean((y.astype(jnp.float32) ** 2).mean(), "data")

    return jax.grad(loss, argnums=(0, 1))(x, weights)[1]


sent = judge("one product", product, of(D, D), P("data"), P("data"))
assert sent == (DATA - 1) / DATA * 2 * D * D, "not what the table of lesson 07 says"
cut = {"up": P(None, "data", "model"), "down": P(None, "model", "data")}
judge(
    f"{LAYERS} layers, a step",
    step,
    {"up": of(LAYERS, D, F), "down": of(LAYERS, F, D)},
    cut,
    cut,
)
