"""python pipeline.py 4 8: compare 4 stages and 8 microbatches with one device.

On 8 devices, 4 stages leave 2 copies of the pipeline, which share each microbatch.
"""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("stages", type=int, nargs="?", default=4)
cli.add_argument("microbatches", type=int, nargs="?", default=8)
p, m = vars(cli.parse_args()).values()
if min(p, m) < 1 or m % p:  # the stages share the output layer's work
    cli.error("the number of stages must divide the number of microbatches")
jax.config.update("jax_enable_x64", True)  # to compare, on GPUs or CPUs
if (n := jax.device_count()) < p:
    cli.error(f"{p} stages need {p} devices, and JAX finds {n}")
copies, kinds = n // p, (AxisType.Auto,) * 2
used = jax.devices()[: copies * p]
mesh = jax.make_mesh((copies, p), ("data", "stage"), axis_types=kinds, devices=used)
L, D, WORDS = 4 * p, 32, 101  # YOURS: all stages are alike, so p divides the layers
SPECS = {"embed": P(), "layers": P("stage"), "out": P()}
text = np.arange(m * copies * 4 * 13).reshape(m, copies * 4, 13) ** 2 % WORDS  # YOURS


def init(rng):  # YOURS: an input layer, L layers of one shape, an output layer
    layers = {
        "up": rng.normal(size=(L, D, 4 * D)) / D**0.5,
        "down": rng.normal(size=(L, 4 * D, D)) / (4 * D * L) ** 0.5,
        "bias": np.zeros((L, D)),
    }
    embed, out = rng.normal(size=(WORDS, D)), rng.normal(size=(D, WORDS)) / D**0.5
    return {"embed": embed, "layers": layers, "out": out}


@jax.checkpoint  # keeps only the stage's input
def run(layers, h):  # YOURS: the layers of one stage
    def layer(h, w):
        return h + jax.nn.gelu(h @ w["up"]) @ w["down"] + w["bias"], None

    return jax.lax.scan(layer, h, layers)[0]


def loss_of(h, out, words):  # YOURS: the loss, from the last layer's activations
    chosen = jnp.take_along_axis(jax.nn.log_softmax(h @ out), words[..., None], -1)
    return -chosen.mean()


def one_device(params, text):
    h = run(params["layers"], params["embed"][text[..., :-1]])
    return loss_of(h, params["out"], text[..., 1:])


def own(w, *axes):  # so that gradients are summed after the loop, not inside it
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda a: jax.lax.pcast(a, axes, to="varying"), w)
    return jax.tree.map(lambda a: jax.lax.pvary(a, axes), w)  # before JAX 0.8.2


def pipeline(params, text):  # per device: its layers and its rows of each microbatch
    stage, layers = jax.lax.axis_index("stage"), own(params["layers"], "data")
    embed, out = (own(params[k], "data", "stage") for k in ("embed", "out"))

    def tick(h, words):
        h = run(layers, h)
        arrived = jax.lax.ppermute(h, "stage", [(s, s + 1) for s in range(p - 1)])
        return jnp.where(stage == 0, embed[words], arrived), h

    later = jnp.pad(text[1:, :, :-1], [(0, p), (0, 0), (0, 0)])
    h = jax.lax.scan(tick, embed[text[0, :, :-1]], later)[1][p - 1 :]
    # scatter the last stage's results: all stages share the output layer's work
    h = jnp.where(stage == p - 1, h, 0)
    h = jax.lax.psum_scatter(h, "stage", tiled=True)
    words = jax.lax.dynamic_slice_in_dim(text[..., 1:], stage * (m // p), m // p)
    return jax.lax.pmean(loss_of(h, out, words), ("data", "stage"))


def train(loss, params, steps=5):
    @jax.jit
    def step(params):
        value, grads = jax.value_and_grad(loss)(params, text)
        return jax.tree.map(lambda w, g: w - 0.03 * g, params, grads), value  # YOURS

    for _ in range(steps):
        params, value = step(params)
        print(f"{value:.3f}", end=" ", flush=True)  # waits for the devices
    print("is the loss")
    return jax.tree.leaves(jax.device_get(params))


bubble = (p - 1) / (m + p - 1)
print(f"{copies} x {p} stages: a bubble of {bubble:.0%}, not {1 - 1 / p:.0%}")
specs = {"in_specs": (SPECS, P(None, "data")), "out_specs": P()}
shardings = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
params = init(np.random.default_rng(0))
placed = jax.device_put(params, shardings)
mine = train(jax.shard_map(pipeline, mesh=mesh, **specs), placed)
true = train(one_device, params)
pairs = zip(mine, true, strict=True)
gap = np.max([abs(a - b).max() / abs(b).max() for a, b in pairs])  # or NaN
assert gap < 1e-9, f"the weights differ from one device's by {gap:.0e}"
print("correct: the weights match one device's, to 1e-9")
