"""python moe.py 1.25 0 0.1: train eight experts; count idle ones and dropped tokens.

1.25 is the capacity factor. Each number after it, such as 0 and 0.1, is a weight of the
balance loss, and trains once with that weight.
"""

import math
import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from functools import partial

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("capacity", type=float, nargs="?", default=1.25)
cli.add_argument("alpha", type=float, nargs="*", default=[0, 0.1])
FACTOR, ALPHAS = vars(cli.parse_args()).values()
if not FACTOR > 0 or not min(ALPHAS) >= 0:
    cli.error("the capacity factor must be positive, and no alpha negative")
SEED = 1  # of the initial weights: try other seeds
E, K, D, F, BATCH, TEST = 8, 1, 64, 128, 512, 392  # E experts, K of them per token
jax.config.update("jax_enable_x64", True)  # for the check below, which float32 fails
mesh = jax.make_mesh((jax.device_count(),), ("expert",), axis_types=(AxisType.Auto,))
n, split = mesh.size, P("expert")  # one axis splits the batch and the experts
if E % n or BATCH % n or TEST % n:
    cli.error(f"{n} devices can't split {E} experts and {BATCH} or {TEST} images")
specs = {"router": P(), "up": split, "down": split, "out": P()}


def route(x, router):  # probabilities, mask of the chosen, gates: each (tokens, E)
    p = jax.nn.softmax(x @ router)
    chosen = jax.nn.one_hot(jax.lax.top_k(p, K)[1], E, dtype=int).sum(axis=1)
    gates = p * chosen
    return p, chosen, gates if K == 1 else gates / gates.sum(axis=1, keepdims=True)


def experts(w, slots):  # YOURS: (E, seats, D) -> (E, seats, D)
    hidden = jax.nn.relu(jnp.einsum("ecd,edf->ecf", slots, w["up"]))
    return jnp.einsum("ecf,efd->ecd", hidden, w["down"])


def layer(w, x, seats):  # per device, with its tokens: (tokens, D)
    p, chosen, gates = route(x, w["router"])
    rank = jnp.cumsum(chosen, axis=0) - chosen  # earlier tokens with the same choice
    seat = chosen[:, :, None] * jax.nn.one_hot(rank, seats)  # no seat: all zeros
    slots = jnp.einsum("tec,td->ecd", seat, x)  # put each token into its seat
    slots = jax.lax.all_to_all(slots, "expert", 0, 1, tiled=True)  # to the experts
    slots = jax.lax.all_to_all(experts(w, slots), "expert", 1, 0, tiled=True)  # back
    # Each token gets its seat's result times its gate. Without a seat it gets zeros.
    back = jnp.einsum("tec,te,ecd->td", seat, gates, slots)
    stats = {"share": chosen.mean(axis=0) / K, "dropped": 1 - seat.sum() / chosen.sum()}
    stats["balance"] = E * (stats["share"] * p.mean(axis=0)).sum()  # 1 if balanced
    return x + back, stats


def nll(w, h, y):
    return optax.softmax_cross_entropy_with_integer_labels(h @ w["out"], y).mean()


def loss(w, x, y, alpha=0.0, seats=None):  # return both the loss and the statistics
    in_specs = specs, split, split, P()

    @partial(jax.shard_map, mesh=mesh, in_specs=in_specs, out_specs=P())
    def per_device(w, x, y, alpha):
        h, stats = layer(w, x, seats or math.ceil(FACTOR * K * len(x) / E))
        stats["right"] = ((h @ w["out"]).argmax(axis=1) == y).mean()
        value = nll(w, h, y) + alpha * stats["balance"]
        return jax.lax.pmean(value, "expert"), jax.lax.pmean(stats, "expert")

    return per_device(w, x, y, alpha)


# The functions above are the lesson's. The rest checks, trains and counts.
def dense_loss(w, x, y):  # on one device: every expert computes every token
    results = experts(w, jnp.broadcast_to(x, (E, *x.shape)))
    gates = route(x, w["router"])[2]
    return nll(w, x + jnp.einsum("te,etd->td", gates, results), y)


digits, draw = load_digits(), np.random.default_rng(0)  # YOURS: the data
order = draw.permutation(len(digits.target))
x, y = digits.data[order] / 16, digits.target[order]
test, draw = (x[1400:][:TEST], y[1400:][:TEST]), np.random.default_rng(SEED)
start = {
    "router": draw.normal(size=(D, E)) / D**0.5,
    "up": draw.normal(size=(E, D, F)) * (2 / D) ** 0.5,
    "down": draw.normal(size=(E, F, D)) * (2 / F) ** 0.5 * 0.3,
    "out": draw.normal(size=(D, 10)) / D**0.5,
}
shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
initial, batch = jax.device_put(start, shardings), (x[:BATCH], y[:BATCH])
roomy = jax.jit(jax.grad(partial(loss, seats=BATCH // n), has_aux=True))
dense = jax.jit(jax.grad(dense_loss))
(mine, stats), true = roomy(initial, *batch), dense(start, *batch)
mine, true = jax.device_get((mine, true))
pairs = [(mine[name], true[name]) for name in true]
gap = np.max([abs(a - b).max() / abs(b).max() for a, b in pairs])  # or NaN
assert gap < 1e-9 and stats["dropped"] == 0, f"the gradients are off by {gap:.0e}"
count = f"{n} device{'s' * (n > 1)}"
print(f"correct on {count}: with a seat for every token, gradients match one device's")
optimizer = optax.adam(5e-3)


@jax.jit
def step(w, state, x, y, alpha):
    grads, stats = jax.grad(loss, has_aux=True)(w, x, y, alpha)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(w, updates), state, stats


for alpha in ALPHAS:
    w, draw = initial, np.random.default_rng(1)
    with jax.set_mesh(mesh):  # replicates Adam's step count over the mesh
        state = optimizer.init(w)
    for _ in range(150):
        rows = draw.choice(1400, BATCH, replace=False)
        w, state, stats = step(w, state, x[rows], y[rows], alpha)
        stats = jax.device_get(stats)  # this waits for the devices
    idle, dropped = (stats["share"] < 0.005).sum(), stats["dropped"]
    right = TEST * jax.jit(loss)(w, *test)[1]["right"]
    print(f"alpha {alpha:g}: {dropped:.0%} dropped, {idle} of {E} experts idle")
    print(f"         {right:.0f} of {TEST} test images right")
