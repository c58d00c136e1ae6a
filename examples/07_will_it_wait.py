"""python will_it_wait.py 8 1 8192: do 8 x 1 chips wait for the wire, with 8,192 tokens?

Trace a program for a data x model mesh, without running it. Count one chip's work.
Times are those of a switch, or of a ring that sends both ways round. On a TPU, a
ppermute one way takes twice as long, and an all_to_all takes longer still.
"""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from math import prod

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
for name, default in {"data": 8, "model": 1, "tokens": 8192}.items():
    cli.add_argument(name, type=int, nargs="?", default=default)
DATA, MODEL, TOKENS = vars(cli.parse_args()).values()
C, W = 197e12, 100e9  # TPU v5e: FLOP/s, bytes/s in a ring. H100: 989.5e12, 450e9
D, F, LAYERS = 8192, 32768, 4
if min(DATA, MODEL, TOKENS) < 1 or D % DATA or TOKENS % DATA or F % MODEL:
    cli.error(f"data must divide {D} and the tokens, and model must divide {F}")
SIZES, AUTO = {"data": DATA, "model": MODEL}, (AxisType.Auto, AxisType.Auto)
mesh = AbstractMesh(tuple(SIZES.values()), tuple(SIZES), axis_types=AUTO)  # no devices
COST = {  # bytes that one of n chips sends, as a multiple of its input
    "all_gather": lambda n: n - 1,
    "reduce_scatter": lambda n: (n - 1) / n,
    "psum": lambda n: 2 * (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "ppermute": lambda n: 1,
}


def abstract(*shape):  # an array without data
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def product(x, w):  # both split along axis 0, as in the forward pass of FSDP
    return x @ jax.lax.all_gather(w, "data", tiled=True)


def layer(x, w):  # YOURS: per chip. Here, FSDP over data and Megatron over model
    up = jax.lax.all_gather(w["up"], "data", axis=0, tiled=True)
    down = jax.lax.all_gather(w["down"], "data", axis=1, tiled=True)
    return x + jax.lax.psum(jax.nn.relu(x @ up) @ down, "model"), None


def step(x, weights):  # forward and backward
    def loss(x, weights):
        y, _ = jax.lax.scan(jax.checkpoint(layer), x, weights)
        return jax.lax.pmean((y.astype(jnp.float32) ** 2).mean(), "data")

    return jax.grad(loss, argnums=(0, 1))(x, weights)[1]


# The counter, which you needn't change
def walk(jaxpr, times=1):  # yield each traced operation and its run count
    for eqn in jaxpr.eqns:
        yield eqn, times
        for inner in jax.tree.leaves(eqn.params, is_leaf=lambda v: hasattr(v, "eqns")):
            if hasattr(inner, "eqns"):  # the body of a scan, checkpoint or shard_map
                yield from walk(inner, times * eqn.params.get("length", 1))


def judge(label, program, w, w_specs, out_specs):
    specs = {"mesh": mesh, "in_specs": (P("data"), w_specs), "out_specs": out_specs}
    traced = jax.make_jaxpr(jax.shard_map(program, **specs))(abstract(TOKENS, D), w)
    flops = sent = 0
    for eqn, times in walk(traced):
        # inside shard_map, psum is traced as psum_invariant
        name = eqn.primitive.name.removesuffix("_invariant")
        if name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            length = prod(eqn.invars[0].aval.shape[i] for i in contracted)
            flops += times * 2 * length * prod(eqn.outvars[0].aval.shape)
        elif name in COST:
            axes = eqn.params.get("axes") or eqn.params["axis_name"]
            n = prod(SIZES[a] for a in jax.tree.leaves(axes))
            v = sum(a.aval.size * a.aval.dtype.itemsize for a in eqn.invars)
            sent += times * v * COST[name](n)
    verdict = "waits for the wire" if sent / W > flops / C else "stays busy"
    computes, sends = f"{1e3 * flops / C:7.2f} ms", f"{1e3 * sent / W:7.2f} ms"
    print(f"{label:16} computes {computes}, sends {sends}: {verdict}")
    return sent


sent = judge("one product", product, abstract(D, D), P("data"), P("data"))
assert sent == (DATA - 1) / DATA * 2 * D * D, "lesson 07's table says otherwise"
weights = {"up": abstract(LAYERS, D, F), "down": abstract(LAYERS, F, D)}
specs = {"up": P(None, "data", "model"), "down": P(None, "model", "data")}
judge(f"{LAYERS} layers, a step", step, weights, specs, specs)
