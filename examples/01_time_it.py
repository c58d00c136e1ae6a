"""python time_it.py 1200: is a product over all devices faster than on one? Says so only where the spread allows it.

Waits for each result, keeps the first call apart, lets the candidates take turns, and checks them against NumPy.
"""

import sys
import time

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

N, ROUNDS, FLOPS = (
    int(sys.argv[1]),
    15,
    2 * int(sys.argv[1]) ** 3,
)  # N: a multiple of devices
devices = jax.devices()
mesh = jax.make_mesh((len(devices),), ("i",), devices=devices)
rows, copied = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())  # cut; all on each
x, w = np.random.default_rng(0).standard_normal((2, N, N), np.float32)
expected = x @ w


@jax.jit
def program(x, w):  # YOURS
    return x @ w


candidates = {  # YOURS: a function, and arguments that lie where you want them
    "one device": (program, *jax.device_put((x, w), devices[0])),
    "all devices": (program, jax.device_put(x, rows), jax.device_put(w, copied)),
}


def clock(f, *args):
    start = time.perf_counter()
    result = f(*args)
    returned = time.perf_counter() - start
    jax.block_until_ready(result)
    return returned, time.perf_counter() - start, result


first, runs = {}, {name: [] for name in candidates}
for name, call in candidates.items():
    *_, first[name], result = clock(*call)
    error = abs(np.asarray(result) - expected).max()
    assert error < 0.02 * abs(expected).max(), f"{name} computes something else"
for turn in range(ROUNDS):
    for name in sorted(candidates, reverse=turn % 2):
        runs[name].append(clock(*candidates[name])[:2])

print(len(devices), devices[0].device_kind, "devices; both results agree with NumPy")
for name, seconds in runs.items():
    (returned, ready), (low, high) = (
        np.median(seconds, 0),
        np.quantile(seconds, [0.25, 0.75], 0)[:, 1],
    )
    print(f"{name}: first call {1e3 * first[name]:.1f} ms")
    for what, t in ("returned after", returned), ("result after", ready):
        print(f"  {what} {1e3 * t:.2f} ms: {FLOPS / t / 1e9:,.0f} GFLOP/s")
    print(f"  half of the results: {1e3 * low:.1f} to {1e3 * high:.1f} ms")
one, other = (np.array(seconds)[:, 1] for seconds in runs.values())
low, high = np.quantile(one / other, [0.25, 0.75])
print(f"one / all, round by round: half of them {low:.2f} to {high:.2f}:", end=" ")
print(
    "no winner" if low < 1.05 and high > 0.95 else "all" if low > 1 else "one", end=""
)
print(
    ""
    if devices[0].platform != "cpu"
    else " (emulated devices share the cores: no forecast)"
)
