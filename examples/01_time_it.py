"""python time_it.py 1200: is a product over all devices faster than on one?

Names a winner only where the spread allows it. Waits for each result, keeps the first
call apart, lets the two take turns, and checks both against NumPy.
"""

import sys
import time

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

N = int(sys.argv[1])  # a multiple of the number of devices
ROUNDS, CLOSE = 15, 0.05  # YOURS: differences below 5 % count as none
devices = jax.devices()
auto = (AxisType.Auto,)
mesh = jax.make_mesh((len(devices),), ("i",), axis_types=auto, devices=devices)
rows, copied = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())  # cut; all on each
x, w = np.random.default_rng(0).standard_normal((2, N, N), np.float32)
expected, FLOPS = x @ w, 2 * N**3  # YOURS


@jax.jit
def program(x, w):  # YOURS
    return x @ w


candidates = {  # YOURS: two functions, and arguments that lie where you want them
    "one device": (program, *jax.device_put((x, w), devices[0])),
    "all devices": (program, jax.device_put(x, rows), jax.device_put(w, copied)),
}


def clock(f, *args):
    start = time.perf_counter()
    result = f(*args)
    returned = time.perf_counter() - start
    jax.block_until_ready(result)
    return result, returned, time.perf_counter() - start


one, other = candidates
first, calls, runs = {}, [], {name: [] for name in candidates}
for name, call in candidates.items():
    result, _, first[name] = clock(*call)
    error = abs(np.asarray(result) - expected).max()
    assert error < 0.02 * abs(expected).max(), f"{name} computes something else"
for turn in range(ROUNDS):
    for name in sorted(candidates, reverse=turn % 2):  # they take turns
        _, returned, seconds = clock(*candidates[name])
        runs[name].append(seconds)
        if name == one:
            calls.append(returned)

print(len(devices), devices[0].device_kind, "devices; both results agree with NumPy")
print(f"the call for {one} returns after {1e3 * np.median(calls):.2f} ms")
for name, seconds in runs.items():
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    print(f"{name}: first call {1e3 * first[name]:.1f} ms, then {1e3 * middle:.1f} ms")
    print(f"  middle half: {1e3 * low:.1f} to {1e3 * high:.1f} ms", end="; ")
    print(f"{FLOPS / middle / 1e9:,.0f} GFLOP/s")
ratio = np.array(runs[one]) / runs[other]  # of the same round
low, high = np.quantile(ratio, [0.25, 0.75])
print(f"{one} takes {low:.2f} to {high:.2f} times as long as {other}:", end=" ")
if low > 1 + CLOSE:
    print(f"{other} is faster")
elif high < 1 - CLOSE:
    print(f"{one} is faster")
else:
    print("no winner")
if devices[0].platform == "cpu":
    print("emulated devices share the cores, so this is no forecast")
