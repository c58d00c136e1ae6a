"""python moe.py 1.25 0 0.1: train eight experts; count who works, and who is dropped.

1.25 is the capacity factor; 0 and 0.1 are weights of the balance loss, a run for each.
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
SEED = 1  # of the first weights: try others
E, K, D, F, BATCH, TEST = 8, 1, 64, 128, 512, 392  # E experts, of which K a token
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
jax.config.update("jax_enable_x64", True)  # for the check; at work leave it out
mesh = jax.make_mesh((jax.device_count(),), ("expert",), axis_types=(AxisType.Auto,))
n, cut = mesh.size, P("expert")  # one axis cuts the batch and the experts
assert E % n == BATCH % n == TEST % n == 0, f"{n} devices do not divide all of them"
specs = {"router": P(), "up": cut, "down": cut, "out": P()}


def route(x, router):  # probabilities, and ones at the chosen: both (tokens, E)
    p = jax.nn.softmax(x @ router)
    return p, jax.nn.one_hot(jax.lax.top_k(p, K)[1], E, dtype=int).sum(axis=1)


def experts(w, slots):  # YOURS: (E, seats, D) -> (E, seats, D)
    hidden = jax.nn.relu(jnp.einsum("ecd,edf->ecf", slots, w["up"]))
    return jnp.einsum("ecf,efd->ecd", hidden, w["down"])


def layer(w, x, seats):  # the program of one device, with its tokens: (tokens, D)
    p, chosen = route(x, w["router"])
    place = jnp.cumsum(chosen, axis=0) - chosen  # how many before me chose the same
    seat = chosen[:, :, None] * jax.nn.one_hot(place, seats)  # no seat: all zeros
    slots = jnp.einsum("tec,td->ecd", seat, x)  # each token into its seat
    slots = jax.lax.all_to_all(slots, "expert", 0, 1, tiled=True)  # to the experts
    slots = jax.lax.all_to_all(experts(w, slots), "expert", 1, 0, tiled=True)  # home
    # Each token reads its seat, times its gate. Without a seat it gets zeros.
    back = jnp.einsum("tec,te,ecd->td", seat, p * chosen, slots)
    seen = {"share": chosen.mean(axis=0) / K, "dropped": 1 - seat.sum() / chosen.sum()}
    seen["balance"] = E * (seen["share"] * p.mean(axis=0)).sum()  # 1 if all is even
    return x + back, seen


def nll(w, h, y):
    return optax.softmax_cross_entropy_with_integer_labels(h @ w["out"], y).mean()


def loss(w, x, y, alpha=0.0, seats=None):  # over all devices; and the counters
    @partial(jax.shard_map, mesh=mesh, in_specs=(specs, cut, cut, P()), out_specs=P())
    def of_one(w, x, y, alpha):
        h, seen = layer(w, x, seats or math.ceil(FACTOR * K * len(x) / E))
        seen["right"] = ((h @ w["out"]).argmax(axis=1) == y).mean()
        value = nll(w, h, y) + alpha * seen["balance"]
        return jax.lax.pmean(value, "expert"), jax.lax.pmean(seen, "expert")

    return of_one(w, x, y, alpha)


def everyone(w, x, y):  # on one device: every expert works on every token
    p, chosen = route(x, w["router"])
    results = experts(w, jnp.broadcast_to(x, (E, *x.shape)))
    return nll(w, x + jnp.einsum("te,etd->td", p * chosen, results), y)


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
where = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)
begin, batch = jax.device_put(start, where), (x[:BATCH], y[:BATCH])
roomy = jax.jit(jax.grad(partial(loss, seats=BATCH // n), has_aux=True))
(mine, seen), true = roomy(begin, *batch), jax.jit(jax.grad(everyone))(start, *batch)
mine, true = jax.device_get((mine, true))
gap = max(abs(mine[name] - true[name]).max() / abs(true[name]).max() for name in true)
assert gap < 1e-9 and seen["dropped"] == 0, f"the gradients are off by {gap:.0e}"
print(f"right on {n} devices: with seats for all, the gradients are those of one")
rule = optax.adam(5e-3)


@jax.jit
def step(w, state, x, y, alpha):
    grads, seen = jax.grad(loss, has_aux=True)(w, x, y, alpha)
    updates, state = rule.update(grads, state)
    return optax.apply_updates(w, updates), state, seen


for alpha in ALPHAS:
    w, draw = begin, np.random.default_rng(1)
    with jax.set_mesh(mesh):  # Adam's count starts on all devices
        state = rule.init(w)
    for _ in range(150):
        rows = draw.choice(1400, BATCH, replace=False)
        w, state, seen = step(w, state, x[rows], y[rows], alpha)
        seen = jax.device_get(seen)  # this waits for the devices
    idle = (seen["share"] < 0.005).sum()
    right = TEST * jax.jit(loss)(w, *test)[1]["right"]
    print(f"alpha {alpha:g}: {seen['dropped']:.0%} dropped, {idle} of {E} experts idle")
    print(f"         {right:.0f} of {TEST} test images right")
