"""python time_it.py 1200: is a product faster on all devices than on one?

Name a winner only if the spread allows it. Wait for each result, report the first call
separately, let the two candidates take turns, and check both against NumPy.
"""

import os
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("n", type=int, nargs="?", default=1200, help="rows of a square matrix")
N, devices = cli.parse_args().n, jax.devices()
if N < 1 or N % len(devices):
    cli.error(f"n must be a positive multiple of the number of devices, {len(devices)}")
ROUNDS, TIE = 15, 0.05  # YOURS: differences below 5% count as a tie
types = (AxisType.Explicit,)
mesh = jax.make_mesh((len(devices),), ("i",), axis_types=types, devices=devices)
rows = NamedSharding(mesh, P("i"))  # split by rows
copied = NamedSharding(mesh, P())  # a full copy on each device
x, w = np.random.default_rng(0).standard_normal((2, N, N), np.float32)
expected, FLOPS = x @ w, 2 * N**3  # YOURS


@jax.jit
def program(x, w):  # YOURS
    return x @ w


candidates = {  # YOURS: two functions, and their arguments on the devices you want
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
    assert error < 0.02 * abs(expected).max(), f"{name} gives a different result"
for turn in range(ROUNDS):
    for name in sorted(candidates, reverse=turn % 2):  # take turns
        _, returned, seconds = clock(*candidates[name])
        runs[name].append(seconds)
        if name == one:
            calls.append(returned)

kind = f"{devices[0].device_kind} device{'s' * (len(devices) > 1)}"
print(f"{len(devices)} {kind}; both results agree with NumPy")
print(f"the call for {one} returns after {1e3 * np.median(calls):.2f} ms")
for name, seconds in runs.items():
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    print(f"{name}: first call {1e3 * first[name]:.1f} ms, then {1e3 * middle:.1f} ms")
    print(f"  middle half: {1e3 * low:.1f} to {1e3 * high:.1f} ms", end="; ")
    print(f"{FLOPS / middle / 1e9:,.0f} GFLOP/s")
ratio = np.array(runs[one]) / runs[other]  # round by round
low, high = np.quantile(ratio, [0.25, 0.75])
print(f"{one} takes {low:.2f} to {high:.2f} times as long as {other}:", end=" ")
if low > 1 + TIE:
    print(f"{other} is faster")
elif high < 1 - TIE:
    print(f"{one} is faster")
else:
    print("no winner")
if len(devices) == 1:
    print("with a single device, both candidates run the same program")
elif devices[0].platform == "cpu":
    print("emulated devices share the cores, so this doesn't predict real chips")
