"""python fsdp.py plan 34 4096: what FSDP of 34 layers, 4,096 wide, leaves on a device.

check 3 64: does it learn what one device learns? train 3 64: in mixed precision.
"""

import sys

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

WHAT, L, D = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
jax.config.update("jax_enable_x64", WHAT == "check")
WORK = jnp.float64 if WHAT == "check" else jnp.bfloat16  # what is multiplied and sent
mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
n, optimizer, WORDS = mesh.size, optax.adamw(1e-3), 8 * D


def init(key):  # YOURS: any tree of arrays
    shapes = {"qkv": (D, 3 * D), "out": (D, D), "up": (D, 4 * D), "down": (4 * D, D)}
    key, *keys = jax.random.split(key, 5)
    drawn = map(jax.random.uniform, keys, [(L, *shape) for shape in shapes.values()])
    layers = dict(zip(shapes, drawn, strict=True))
    tree = {"embed": jax.random.uniform(key, (WORDS, D)), "layers": layers}
    return jax.tree.map(lambda w: (2 * w - 1) / D**0.5, tree) | {"bias": jnp.zeros(D)}


@jax.checkpoint  # or with policy=jax.checkpoint_policies.dots_saveable
def layer(x, w):  # YOURS: causal attention, then an MLP
    q, k, v = jnp.split(x @ w["qkv"], 3, axis=-1)
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), q @ k.mT / D**0.5, -1e9)
    x = x + jax.nn.softmax(scores) @ v @ w["out"]
    return x + jax.nn.relu(x @ w["up"]) @ w["down"], None


def loss(params, text):  # YOURS: how surprising is each next word?
    x, _ = jax.lax.scan(layer, params["embed"][text[:, :-1]], params["layers"])
    logits = (x + params["bias"]) @ params["embed"].T
    words = jax.nn.one_hot(text[:, 1:], WORDS)
    return optax.softmax_cross_entropy(logits.astype(words.dtype), words).mean()


def start(key):
    return (params := init(key)), optimizer.init(params)


def step(state, text):
    params, moments = state
    work = jax.tree.map(lambda p: p.astype(WORK), params)
    value, grads = jax.value_and_grad(loss)(work, text)
    updates, moments = optimizer.update(grads, moments, params)
    return (optax.apply_updates(params, updates), moments), value


def spec_of(a, small=2**13):  # small arrays stay whole; of others an axis that divides
    axes = [i for i in range(max(a.ndim - 2, 0), a.ndim) if a.shape[i] % n == 0]
    return P(*[None] * axes[0], "data") if axes and a.size >= small else P()


def train(state_sharding, text_sharding, steps=5):
    born = jax.jit(start, out_shardings=state_sharding)
    state = born(jax.random.key(0))  # in pieces: no device ever holds the whole
    text = jnp.arange(2 * n * 33).reshape(2 * n, 33) ** 2 % WORDS  # YOURS
    text = jax.device_put(text, text_sharding)
    program = jax.jit(step, donate_argnums=0, out_shardings=(state_sharding, None))
    for _ in range(steps):
        state, value = program(state, text)
        print(f"{value:.3f}", end=" ", flush=True)  # waits for the devices
    print(f"is the loss (devices: {len(text.devices())})")
    return jax.device_get(state)


def numbers(tree, n):  # that each device holds
    return sum(a.size / (1 if spec_of(a) == P() else n) for a in jax.tree.leaves(tree))


shapes = jax.eval_shape(start, jax.random.key(0))  # takes no memory
if WHAT == "plan":  # float32 state; in a step bfloat16 weights and gradients, too
    for name, parts in {"DDP": 1, "FSDP": n}.items():
        gb = (4 * numbers(shapes, parts) + (2 + 2) * numbers(shapes[0], parts)) / 1e9
        print(f"{name}: {gb:.0f} GB on each of {n} devices")
    sys.exit()
cut = jax.tree.map(lambda a: NamedSharding(mesh, spec_of(a)), shapes)
mine = train(cut, NamedSharding(mesh, P("data")))
if WHAT == "check":
    alone = SingleDeviceSharding(jax.devices()[0])
    true = train(alone, alone)
    gaps = jax.tree.map(lambda a, b: abs(a - b).max() / abs(b).max(), mine, true)
    print(f"largest gap in weights and moments: {max(jax.tree.leaves(gaps)):.0e}")
    assert max(jax.tree.leaves(gaps)) < 1e-9, "this learns something else"
    print("right: it learns what one device learns")
