"""python moe.py 1.25 0 0.1: train eight experts; count who works, and who is dropped.

1.25 is the capacity factor. Then come weights of the balance loss, a run for each.
"""

import math
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits

FACTOR, *ALPHAS = map(float, sys.argv[1:])
X, K, D, F, BATCH, TEST = 8, 1, 64, 128, 512, 392  # experts, experts of each token, ...
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
jax.config.update("jax_enable_x64", True)  # for the check; at work leave it out
mesh = jax.make_mesh((jax.device_count(),), ("expert",), axis_types=(AxisType.Auto,))
n, cut = mesh.size, P("expert")  # one axis cuts the batch and the experts
assert X % n == BATCH % n == TEST % n == 0, f"{n} devices do not divide all of them"
specs = {"router": P(), "up": cut, "down": cut, "out": P()}


def seats_for(tokens):  # that one expert has for the tokens of one device
    return math.ceil(FACTOR * K * tokens / X)


def route(x, router):  # probabilities, and ones at the chosen: both (tokens, X)
    p = jax.nn.softmax(x @ router)
    return p, jax.nn.one_hot(jax.lax.top_k(p, K)[1], X, dtype=int).sum(axis=1)


def experts(w, slots):  # YOURS: (X, seats, D) -> (X, seats, D)
    hidden = jax.nn.relu(jnp.einsum("xcd,xdf->xcf", slots, w["up"]))
    return jnp.einsum("xcf,xfd->xcd", hidden, w["down"])


def layer(w, x, seats, exchange=True):  # the tokens of one device: (tokens, D)
    p, chosen = route(x, w["router"])
    place = jnp.cumsum(chosen, axis=0) - chosen  # how many before me chose the same
    seat = chosen[:, :, None] * jax.nn.one_hot(place, seats)  # no seat: all zeros
    slots = jnp.einsum("txc,td->xcd", seat, x)
    if exchange:  # mine for all experts -> all devices' for my experts
        slots = jax.lax.all_to_all(slots, "expert", 0, 1, tiled=True)
    slots = experts(w, slots)
    if exchange:  # and back
        slots = jax.lax.all_to_all(slots, "expert", 1, 0, tiled=True)
    share, dropped = chosen.mean(axis=0) / K, 1 - seat.sum() / chosen.sum()
    seen = {"share": share, "dropped": dropped}
    seen["balance"] = X * (share * p.mean(axis=0)).sum()  # 1 where all is even
    return x + jnp.einsum("txc,tx,xcd->td", seat, p * chosen, slots), seen


def nll(w, h, y):
    return optax.softmax_cross_entropy_with_integer_labels(h @ w["out"], y).mean()


def loss(w, x, y, alpha=0.0, seats=None):  # mean over the devices; and the counters
    def of_one(w, x, y, alpha):
        h, seen = layer(w, x, seats or seats_for(len(x)))
        return jax.lax.pmean((nll(w, h, y) + alpha * seen["balance"], seen), "expert")

    rows = specs, cut, cut, P()
    return jax.shard_map(of_one, mesh=mesh, in_specs=rows, out_specs=P())(
        w, x, y, alpha
    )


def everyone(w, x, y):  # on one device: every expert works on every token
    p, chosen = route(x, w["router"])
    results = experts(w, jnp.broadcast_to(x, (X, *x.shape)))
    return nll(w, x + jnp.einsum("tx,xtd->td", p * chosen, results), y)


def put(tree, spec):
    where = jax.tree.map(lambda s: NamedSharding(mesh, s), spec)
    return jax.device_put(tree, where)


digits, draw = load_digits(), np.random.default_rng(0)  # YOURS: the data
order = draw.permutation(len(digits.target))
x, y = digits.data[order] / 16, digits.target[order]
train, test = (x[:1400], y[:1400]), (x[1400:][:TEST], y[1400:][:TEST])
draw = np.random.default_rng(1)
start = {
    "router": draw.normal(size=(D, X)) / D**0.5,
    "up": draw.normal(size=(X, D, F)) * (2 / D) ** 0.5,
    "down": draw.normal(size=(X, F, D)) * (2 / F) ** 0.5 * 0.3,
    "out": draw.normal(size=(D, 10)) / D**0.5,
}
batch = [a[:BATCH] for a in train]
true = jax.jit(jax.grad(everyone))(start, *batch)
roomy = jax.jit(jax.grad(partial(loss, seats=BATCH // n), has_aux=True))
found, seen = roomy(put(start, specs), *put(batch, [cut, cut]))
for name in start:
    gap = abs(np.asarray(found[name]) - true[name]).max() / abs(true[name]).max()
    assert gap < 1e-9, f"{name}: the gradient is off by {gap:.0e}"
assert seen["dropped"] == 0
print(f"right on {n} devices: with seats for all, the gradients are those of one")

rule = optax.adam(5e-3)


@jax.jit
def step(w, state, x, y, alpha):
    grads, seen = jax.grad(loss, has_aux=True)(w, x, y, alpha)
    updates, state = rule.update(grads, state)
    return optax.apply_updates(w, updates), state, seen


@jax.jit
def hits(w, x, y):
    seats = seats_for(TEST // n)
    layers = jax.vmap(lambda x: layer(w, x, seats, exchange=False)[0])
    return (
        (layers(x.reshape(n, -1, D)).reshape(-1, D) @ w["out"]).argmax(1) == y
    ).sum()


for alpha in ALPHAS:
    w, draw = put(start, specs), np.random.default_rng(1)
    state = rule.init(w)
    for _ in range(150):
        rows = draw.choice(len(train[0]), BATCH, replace=False)
        w, state, seen = step(
            w, state, *put([a[rows] for a in train], [cut, cut]), alpha
        )
        seen = jax.device_get(seen)  # this waits for the devices
    idle = (seen["share"] < 0.005).sum()
    print(
        f"alpha {alpha:g}: {seen['dropped']:.0%} dropped, {idle} of {X} experts idle,",
        end=" ",
    )
    print(f"{hits(jax.device_get(w), *test)} of {TEST} test images right")
