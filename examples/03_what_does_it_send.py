"""python what_does_it_send.py: list a function's collectives and the bytes they send.

Compile the function for all devices that JAX finds and read the compiled text, without
running it. --target h100:8 compiles it for eight H100 GPUs that you don't have. This
option needs JAX 0.10 or newer on Linux, jax-cuda12-plugin and jax-cuda12-pjrt in the
same version as JAX, and nvidia-cuda-nvcc-cu12.
A loop whose trip count the text doesn't give is counted once, as is each branch. To
name trip counts, use shardcost:
pip install "git+https://github.com/one-program-many-devices/one-program-many-devices\
#subdirectory=packages/shardcost"
"""

import os
import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from math import prod

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

H100 = """platform_name: "CUDA" device_description_str: "NVIDIA H100 80GB HBM3"
dnn_version_info { major: 9 minor: 10 } gpu_device_info { core_count: 132
threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
shared_memory_per_block: 49152 shared_memory_per_core: 233472 fpus_per_core: 128
shared_memory_per_block_optin: 232448 block_dim_limit_x: 2147483647
block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84942979072
registers_per_core_limit: 65536 registers_per_block_limit: 65536
cuda_compute_capability { major: 9 } }"""  # from XLA's h100_sxm.txtpb
cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("--target", metavar="h100:8", help="the GPUs to compile for")
TARGET = cli.parse_args().target
if TARGET:
    jax.config.update("jax_platforms", "cpu")
    options = {"target_config": H100, "topology": f"1x1x{TARGET.partition(':')[2]}"}
    if not TARGET.startswith("h100:"):
        cli.error(f"the target {TARGET!r} is not h100:N; shardcost has more")
    try:
        devices = topologies.get_topology_desc(platform="cuda", **options).devices
    except Exception as error:  # no plugin, or JAX is too old for it
        need = f"pip install jax-cuda12-plugin=={jax.__version__} "
        need += f"jax-cuda12-pjrt=={jax.__version__} nvidia-cuda-nvcc-cu12"
        cli.error(f"--target {TARGET} needs {need}: {str(error).splitlines()[0]}")
else:
    devices = jax.devices()
COST = {  # bytes that one of n devices sends, as a multiple of the result's bytes
    "all-gather": lambda n: (n - 1) / n,
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1,
}
LINE = re.compile(rf"%?([\w.-]+) = (\S.*?) ({'|'.join(COST)})(-start|-done)?\((.*?)\)")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
CALLED = re.compile(
    r"(?:body|calls|to_apply|\w+_computations?)=\{?(%[\w.-]+(?:, %[\w.-]+)*)"
)


def group_size(line):  # devices in a group; XLA writes groups in three notations
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(match[1])
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(match[1].split(","))
    if match := re.search(r"replica_groups=mesh\[(.*?)\].*?\{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", match[1]))
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", match[2])
        return prod(int(part or sizes[axis]) for axis, part in axes)
    return len(devices)


def size(text):  # bytes of a type such as f32[64,512], or of a tuple of types
    text = text.replace("pred[", "u8[")  # a bool takes up one byte
    types = re.findall(r"\b[a-z]+(\d+)\w*\[([\d,]*)\]", text)
    return sum(
        int(b) / 8 * prod(map(int, filter(None, s.split(",")))) for b, s in types
    )


def show(count):
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count:,.0f} bytes"


def what_it_sends(f, *args):
    """Print each collective of jit(f); return the bytes that one device sends.

    Multiply by the trip counts of loops. Count each branch once.
    """
    sends, calls, groups = {}, {}, {}  # sends and calls: by computation
    for line in jax.jit(f).lower(*args).compile().as_text().splitlines():
        if line.endswith("{"):  # the start of a computation
            here = line.removeprefix("ENTRY ").split()[0]
            sends[here], calls[here] = [], []
        trips = TRIPS.search(line)
        unknown = " while(" in line or " conditional(" in line
        known = bool(trips) or not unknown
        for callees in CALLED.findall(line):
            for callee in callees.split(", "):
                calls[here].append((callee, int(trips[1]) if trips else 1, known))
        if match := LINE.search(line):
            name, result, kind, phase, operand = match.groups()
            groups[name] = group_size(line)
            # An asynchronous collective has two lines; only its -start has the groups.
            if phase != "-start":
                n = groups[operand.split("%")[-1] if phase else name]
                sends[here].append((kind, n, COST[kind](n) * size(result)))
    runs, known = dict.fromkeys(sends, 0) | {here: 1}, dict.fromkeys(sends, True)
    for caller in reversed(sends):  # the entry comes last, and callees before callers
        for callee, times, certain in calls[caller]:
            runs[callee] += times * runs[caller]
            known[callee] &= certain and known[caller]
    total, note = 0, ""
    for here, collectives in sends.items():
        for kind, n, sent in collectives:
            total += runs[here] * sent
            often = f", {runs[here]} times" if runs[here] > 1 else ""
            if not known[here]:
                often += " in a loop of unknown length or a branch"
                note = ", counting each such loop and branch once"
            print(f"  {kind} among {n}: sends {show(sent)}{often}")
    print(f"  in all {show(total)}{note}")
    return total


def step(w, x):  # YOURS: any function of arrays or pytrees
    def loss(w):
        return ((jax.nn.relu(x @ w["up"]) @ w["down"] - x) ** 2).mean()

    return jax.tree.map(lambda w, g: w - 0.1 * g, w, jax.grad(loss)(w))


def abstract(spec, *shape):  # an array without data
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


n, D, F = len(devices), 4096, 16384
mesh = Mesh(np.array(devices), ("X",), axis_types=(AxisType.Auto,))
x = abstract(P("X"), 4096 * n, D)  # YOURS: the arguments of your step

print(f"{n} device{'s' * (n > 1)}. Weights replicated, batch sharded (DDP):")
ddp = {"up": abstract(P(), D, F), "down": abstract(P(), F, D)}
sent = what_it_sends(step, ddp, x)
# YOURS: the bytes your step should send, or delete the check. Here: two gradients.
by_hand = 2 * (n - 1) / n * 4 * 2 * D * F
assert abs(sent - by_hand) <= 0.01 * by_hand, f"{show(by_hand)} by hand"
print("  correct: the all-reduce of both gradients, by hand")

print("Weights and batch sharded along axis 0 (FSDP):")
fsdp = {"up": abstract(P("X"), D, F), "down": abstract(P("X"), F, D)}
what_it_sends(step, fsdp, x)
