"""python fsdp.py plan 51 4096: compare DDP and FSDP for 51 layers of width 4,096.

check 2 32: compare training with one device's. train 2 32: train in mixed precision.
"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("task", choices=["plan", "check", "train"], nargs="?", default="plan")
cli.add_argument("layers", type=int, nargs="?", default=51)
cli.add_argument("width", type=int, nargs="?", default=4096)
TASK, L, D = vars(cli.parse_args()).values()
if min(L, D) < 1:
    cli.error("layers and width must be at least 1")
jax.config.update("jax_enable_x64", TASK == "check")
WORK = jnp.float64 if TASK == "check" else jnp.bfloat16  # for products and transfers
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
n, optimizer, WORDS = mesh.size, optax.adamw(1e-3), 8 * D
leaves = jax.tree.leaves


def init(key):  # YOURS: any tree of arrays
    shapes = {"embed": (WORDS, D), "up": (L, D, 4 * D), "down": (L, 4 * D, D)}
    keys = jax.random.split(key, 3)
    drawn = map(jax.random.uniform, keys, shapes.values())
    embed, up, down = ((2 * a - 1) / D**0.5 for a in drawn)
    return {
        "embed": embed,
        "layers": {"up": up, "down": down, "bias": jnp.zeros((L, D))},
    }


@jax.checkpoint  # keeps only a layer's input
def layer(x, w):  # YOURS: an MLP on every word
    return x + jax.nn.relu(x @ w["up"]) @ w["down"] + w["bias"], None


def loss(params, text, by_text):  # YOURS: next-word prediction
    x = jax.lax.with_sharding_constraint(params["embed"][text[:, :-1]], by_text)
    x, _ = jax.lax.scan(layer, x, params["layers"])
    logits = x @ params["embed"].T
    words = jax.nn.one_hot(text[:, 1:], WORDS)
    return optax.softmax_cross_entropy(logits.astype(words.dtype), words).mean()


def initial_state(key):
    return (params := init(key)), optimizer.init(params)


def step(by_text, state, text):
    params, moments = state
    work = jax.tree.map(lambda p: p.astype(WORK), params)
    value, grads = jax.value_and_grad(loss)(work, text, by_text)
    updates, moments = optimizer.update(grads, moments, params)
    return (optax.apply_updates(params, updates), moments), value


def spec_of(a, small=D * D):  # split a matrix by an axis that divides evenly
    axes = [i for i in range(max(a.ndim - 2, 0), a.ndim) if a.shape[i] % n == 0]
    return P(*[None] * axes[0], "data") if axes and a.size >= small else P()


def train(state_sharding, text_sharding, steps=5):
    create = jax.jit(initial_state, out_shardings=state_sharding)
    state = create(jax.random.key(0))  # in shards: no device ever holds it all
    text = jnp.arange(2 * n * 33).reshape(2 * n, 33) ** 2 % WORDS  # YOURS
    text = jax.device_put(text, text_sharding)
    options = {"donate_argnums": 0, "out_shardings": (state_sharding, None)}
    program = jax.jit(partial(step, text_sharding), **options)
    for _ in range(steps):
        state, value = program(state, text)
        print(f"{value:.3f}", end=" ", flush=True)  # waits for the devices
    print(f"is the loss (devices: {len(text.devices())})")
    return state


shapes = jax.eval_shape(initial_state, jax.random.key(0))  # allocates nothing
if TASK == "plan":  # 12 bytes of float32 state; bfloat16 weights and gradients
    for name, parts in {"DDP": 1, "FSDP": n}.items():
        held = (a.size / (1 if spec_of(a) == P() else parts) for a in leaves(shapes[0]))
        where = f"each of {n} devices" if n > 1 else "the only device"
        print(f"{name}: {16 * sum(held) / 1e9:.0f} GB on {where}")
    sys.exit()
split = jax.tree.map(lambda a: NamedSharding(mesh, spec_of(a)), shapes)
mine = train(split, NamedSharding(mesh, P("data")))
if TASK == "check":
    one = SingleDeviceSharding(jax.devices()[0])
    true = train(one, one)
    mine, true = map(leaves, jax.device_get((mine, true)))
    pairs = zip(mine, true, strict=True)
    gap = np.max([abs(a - b).max() / abs(b).max() for a, b in pairs])  # or NaN
    assert gap < 1e-9, f"weights or moments differ from one device's by {gap:.0e}"
    note = "correct: weights and moments match one device's, to 1e-9"
    print(note if n > 1 else "there is only one device: this compared it with itself")
