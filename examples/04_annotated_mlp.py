"""python annotated_mlp.py 40: a small byte model, its layouts written into its types.

Every weight is split over all devices, and so is the batch. The types keep it so.
"""

import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
STEPS = int(sys.argv[1])
B, D, F, V = 4096, 384, 768, 256  # tokens, width, hidden width, values of a byte
SLICES, ROWS = P(None, "X"), P("X", None)


def network(params, tokens):  # YOURS: say of each product where its rows live
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
    for name, grad in grads.items():  # a gradient has the type of its weight
        assert jax.typeof(grad) == jax.typeof(params[name]), jax.typeof(grad)
    return jax.tree.map(lambda w, g: w - 2 * g, params, grads), value


def train(devices):
    n, rng = len(devices), np.random.default_rng(0)
    types = (AxisType.Explicit,)
    jax.set_mesh(jax.make_mesh((n,), ("X",), axis_types=types, devices=devices))
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
print(f"{jax.device_count()} devices: loss {losses[0]:.3f}, then {losses[-1]:.3f}")
print("gathered in a forward pass:", *gathered)
assert not any(re.search(rf"\b{B}\b", shape) for shape in gathered), "the batch travels"
alone, _ = train(jax.devices()[:1])
np.testing.assert_allclose(losses, alone, rtol=1e-3)
print("right: the batch stays, and one device learns the same")
