"""python plan.py 64 918e12 200e9 32 40 4096 256 2048: rank all plans for 64 TPU v6e.

Chips, FLOP/s, bytes/s in a ring, GB; layers, width, sequences in a step, their length.
"""

import sys
from itertools import product

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

CHIPS, C, W, GB, L, D, SEQUENCES, LENGTH = (int(float(a)) for a in sys.argv[1:])
HEADS, F, WORDS = D // 128, 4 * D, 32768  # YOURS: heads, hidden features, words
jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU


def size(L, D, F):  # parameters of a layer, and of all
    layer = 4 * D * D + 2 * D * F
    return layer, L * layer + WORDS * D


def price(
    data, fsdp, model, micro, again
):  # lesson 19: GB held, seconds of both clocks
    layer, n = size(L, D, F)
    tokens = SEQUENCES * LENGTH / (data * fsdp)  # of a row of chips along model
    own, x = n / (fsdp * model), 2 * tokens * D  # parameters; bytes of a layer's input
    scores = 4 * tokens * LENGTH * HEADS / model
    logits = 4 * tokens * WORDS / model
    kept = x if again else (3 + 8 / model) * x + scores
    holds = 12 * own + 4 * own * (2 if micro > 1 else 1)  # state, gradients
    holds += (L * kept + scores + logits) / micro + 4 * layer / model
    sends = 3 * micro * (fsdp - 1) / fsdp * 2 * n / model  # FSDP
    sends += 2 * (data - 1) / data * 4 * own  # DDP
    sends += (5 if again else 4) * L * 2 * (model - 1) / model * x  # Megatron
    computes = (8 if again else 6) * n * tokens / model
    return holds / 1e9, computes / C, sends / W


def plans():  # all that divide; sizes are powers of two
    sizes = [2**i for i in range(CHIPS.bit_length())]
    for data, fsdp, model, micro in product(sizes, repeat=4):
        divides = SEQUENCES % (data * fsdp * micro) == 0 and HEADS % model == 0
        if data * fsdp * model == CHIPS and divides:
            yield from ((data, fsdp, model, micro, again) for again in (True, False))


def state_of(data, fsdp, model):  # bytes of state that a real device is given
    L, D, F = 2, 256, 1024  # small: only the cuts are tried
    types = (AxisType.Auto,) * 3
    mesh = jax.make_mesh((data, fsdp, model), ("data", "fsdp", "model"), types)
    shapes = {  # YOURS: every weight, and its cut
        "embed": ((WORDS, D), P("model", "fsdp")),
        "qkv": ((L, D, 3, D), P(None, "fsdp", None, "model")),
        "out": ((L, D, D), P(None, "model", "fsdp")),
        "up": ((L, D, F), P(None, "fsdp", "model")),
        "down": ((L, F, D), P(None, "model", "fsdp")),
    }
    weights = {
        name: jnp.zeros(shape, device=NamedSharding(mesh, cut))
        for name, (shape, cut) in shapes.items()
    }
    state = weights, jax.tree.map(jnp.zeros_like, weights), weights
    bytes_held = sum(
        a.addressable_shards[0].data.nbytes for a in jax.tree.leaves(state)
    )
    assert bytes_held == 12 * size(L, D, F)[1] / (fsdp * model), (
        "a weight is cut otherwise"
    )


n = jax.device_count()
for sizes in (n, 1, 1), (1, n, 1), (1, 1, n), (1, n // 2, 2):
    if n > 1:
        state_of(*sizes)
ranked = []
for plan in plans():
    holds, computes, sends = price(*plan)
    seconds = float(f"{max(computes, sends):.2g}")  # a pen has two digits
    if holds < GB:  # in a tie the plan is first that waits least without overlap
        ranked.append((seconds, computes + sends, holds, computes, sends, plan))
ranked.sort()
print(f"{len(ranked)} of {len(list(plans()))} plans fit.")
print("data fsdp model micro again |    GB  computes    sends")
for _, _, holds, computes, sends, plan in ranked[:5]:
    sizes = "{:4} {:4} {:5} {:5} {!s:>5}".format(*plan)
    print(f"{sizes} | {holds:5.1f} {computes:8.3f}s {sends:7.3f}s")
if ranked:
    steps = 20 * size(L, D, F)[1] / (SEQUENCES * LENGTH)  # 20 tokens a parameter
    hours = steps * max(ranked[0][3:5]) / 3600
    print(f"The first takes {hours:.0f} h, {hours * CHIPS:,.0f} chip-hours.")
print(f"State: to the byte what {n} devices hold. The rest is a pen's estimate.")
