"""python what_does_it_send.py: list a function's collectives and the bytes they send.

Compile the function for all devices that JAX finds and read the compiled text, without
running it. A collective in a loop is counted once: the text may omit the trip count.
"""

import os
import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from math import prod

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.parse_args()
COST = {  # bytes that one of n devices sends, as a multiple of the result's bytes
    "all-gather": lambda n: (n - 1) / n,
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1,
}
LINE = re.compile(rf"%?([\w.-]+) = (\S.*?) ({'|'.join(COST)})(-start|-done)?\((.*?)\)")


def group_size(line):  # devices in a group; XLA writes groups in three notations
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(match[1])
    if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(match[1].split(","))
    if match := re.search(r"replica_groups=mesh\[(.*?)\].*?\{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", match[1]))
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", match[2])
        return prod(int(part or sizes[axis]) for axis, part in axes)
    return jax.device_count()


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

    Count each collective once, even if a loop repeats it or a branch skips it.
    """
    total, groups, nested, note = 0, {}, False, ""
    for line in jax.jit(f).lower(*args).compile().as_text().splitlines():
        if line.endswith("{"):  # the start of a computation
            nested = not line.startswith("ENTRY")
        if match := LINE.search(line):
            name, result, kind, phase, operand = match.groups()
            groups[name] = group_size(line)
            # An asynchronous collective has two lines; only its -start has the groups.
            if phase != "-start":
                n = groups[operand.split("%")[-1] if phase else name]
                sent = COST[kind](n) * size(result)
                total += sent
                where = " each time (in a loop or a branch)" if nested else ""
                note = ", counting each loop and branch once" if nested else note
                print(f"  {kind} among {n}: sends {show(sent)}{where}")
    print(f"  in all {show(total)}{note}")
    return total


def step(w, x):  # YOURS: any function of arrays or pytrees
    def loss(w):
        return ((jax.nn.relu(x @ w["up"]) @ w["down"] - x) ** 2).mean()

    return jax.tree.map(lambda w, g: w - 0.1 * g, w, jax.grad(loss)(w))


def abstract(spec, *shape):  # an array without data
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


n, D, F = jax.device_count(), 4096, 16384
mesh = jax.make_mesh((n,), ("X",), axis_types=(AxisType.Auto,))
x = abstract(P("X"), 4096 * n, D)  # YOURS: the arguments of your step

print(f"{n} device{'s' * (n > 1)}. Weights whole, batch split (DDP):")
ddp = {"up": abstract(P(), D, F), "down": abstract(P(), F, D)}
sent = what_it_sends(step, ddp, x)
by_hand = 2 * (n - 1) / n * 4 * 2 * D * F  # this step all-reduces both gradients
assert abs(sent - by_hand) <= 0.01 * by_hand, f"{show(by_hand)} by hand"
print("  right: the all-reduce of both gradients, by hand")

print("Weights and batch split by rows (FSDP, without its reduce-scatter):")
fsdp = {"up": abstract(P("X"), D, F), "down": abstract(P("X"), F, D)}
what_it_sends(step, fsdp, x)
