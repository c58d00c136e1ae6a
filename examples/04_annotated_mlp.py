"""python annotated_mlp.py 40: train a small byte model with shardings in its types.

Split every weight and the batch over all devices. The types check that they stay split.
"""

import os
import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax import P
from jax.sharding import AxisType

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("steps", type=int, nargs="?", default=40)
STEPS, N = cli.parse_args().steps, jax.device_count()
B, D, F, V = 4096, 384, 768, 256  # tokens, width, hidden width, values of a byte
if STEPS < 1:
    cli.error("the number of steps must be at least 1")
if B % N or D % N or F % N or V % N:
    cli.error(f"{N} devices can't split {B}, {D}, {F} and {V} evenly")
SLICES, ROWS = P(None, "X"), P("X", None)


def network(params, tokens):  # YOURS: the sharding of each product
    x = params["table"].at[tokens].get(out_sharding=ROWS)
    h = jax.nn.relu(jnp.dot(x, params["up"], out_sharding=ROWS))
    return jnp.dot(h, params["down"], out_sharding=ROWS)


def loss(params, tokens, labels):
    logp = jax.nn.log_softmax(network(params, tokens))
    assert jax.typeof(logp).sharding.spec == ROWS, jax.typeof(logp)  # while tracing
    return -jnp.take_along_axis(logp, labels[:, None], axis=1).mean()


@jax.jit
def step(params, tokens, labels):
    value, grads = jax.value_and_grad(loss)(params, tokens, labels)
    for name, grad in grads.items():  # a gradient has its weight's type
        assert jax.typeof(grad) == jax.typeof(params[name]), jax.typeof(grad)
    return jax.tree.map(lambda w, g: w - 2 * g, params, grads), value


def train(devices):
    rng = np.random.default_rng(0)
    types = (AxisType.Explicit,)
    sizes = (len(devices),)
    jax.set_mesh(jax.make_mesh(sizes, ("X",), axis_types=types, devices=devices))
    shapes = {"table": (V, D), "up": (D, F), "down": (F, V)}
    params = {k: rng.normal(size=s) / s[0] ** 0.5 for k, s in shapes.items()}
    params = jax.device_put(jax.tree.map(np.float32, params), SLICES)
    text = np.frombuffer(Path(__file__).read_bytes(), np.uint8)  # YOURS: the data
    losses = []
    for _ in range(STEPS):
        at = rng.integers(len(text) - 1, size=B)
        batch = jax.device_put((np.int32(text[at]), np.int32(text[at + 1])), P("X"))
        params, value = step(params, *batch)
        losses.append(float(value))  # waits for the devices
    compiled = jax.jit(network).lower(params, batch[0]).compile().as_text()
    gathers = re.findall(r"= (.*?) all-gather(?:-start)?\(", compiled)
    return losses, [s for g in gathers for s in re.findall(r"\w+\[[\d,]+\]", g)]


losses, gathered = train(jax.devices())
count = f"{N} device{'s' * (N > 1)}"
print(f"{count}: loss {losses[0]:.3f}, then {losses[-1]:.3f}")
print("gathered in a forward pass:", *gathered or ["nothing"])
assert not any(re.search(rf"\b{B}\b", s) for s in gathered), "the batch is gathered"
alone, _ = train(jax.devices()[:1])
np.testing.assert_allclose(losses, alone, rtol=1e-3)
print("correct: no batch is gathered, and the losses match one device's")
