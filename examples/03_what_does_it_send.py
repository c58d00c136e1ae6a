"""python what_does_it_send.py: collectives of a jitted function, and what they send.

Compiles for all devices that JAX finds, reads the compiled text, and runs nothing.
"""

import re
from math import prod

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

PRICE = {  # times the bytes of the result, one of n devices sends
    "all-gather": lambda n: (n - 1) / n,
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1,
}
LINE = re.compile(rf"%?([\w.-]+) = (\S.*?) ({'|'.join(PRICE)})(-start|-done)?\((.*?)\)")


def group_size(line):  # how many devices exchange: three spellings of XLA
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(found[1])
    if found := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
        return len(found[1].split(","))
    if found := re.search(r"replica_groups=mesh\[(.*?)\].*?\{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", found[1]))
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", found[2])
        return prod(int(part or sizes[axis]) for axis, part in axes)
    return jax.device_count()


def size(text):  # bytes of f32[64,512], or of a tuple of such
    text = text.replace("pred[", "u8[")  # a bool takes a byte
    found = re.findall(r"\b[a-z]+(\d+)\w*\[([\d,]*)\]", text)
    return sum(
        int(b) / 8 * prod(map(int, filter(None, s.split(",")))) for b, s in found
    )


def what_it_sends(f, *args):
    """Print each collective of jit(f); return the bytes that one device sends."""
    total, groups, inside = 0, {}, ""
    for line in jax.jit(f).lower(*args).compile().as_text().splitlines():
        if line.endswith("{"):
            inside = (
                "" if line.startswith("ENTRY") else " (in a loop: once for each round)"
            )
        if found := LINE.search(line):
            name, result, kind, phase, operand = found.groups()
            groups[name] = group_size(line)
            # An asynchronous collective has two lines. The group stands in its -start.
            if phase != "-start":
                n = groups[operand.split("%")[-1] if phase else name]
                sent = PRICE[kind](n) * size(result)
                total += sent
                print(f"  {kind} among {n}: sends {sent / 1e6:,.1f} MB{inside}")
    print(f"  in all {total / 1e6:,.1f} MB")
    return total


def step(w, x):  # YOURS: any function of arrays, or of trees of arrays
    def loss(w):
        return ((jax.nn.relu(x @ w["up"]) @ w["down"] - x) ** 2).mean()

    return jax.tree.map(lambda w, g: w - 0.1 * g, w, jax.grad(loss)(w))


def of(spec, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


n, D, F = jax.device_count(), 4096, 16384
mesh = jax.make_mesh((n,), ("X",), axis_types=(AxisType.Auto,))
x = of(P("X"), 4096 * n, D)  # YOURS: the arguments of your step

print(f"{n} devices. Weights whole, batch split (DDP):")
sent = what_it_sends(step, {"up": of(P(), D, F), "down": of(P(), F, D)}, x)
by_hand = 2 * (n - 1) / n * 4 * 2 * D * F  # of this step: both gradients, all-reduced
assert abs(sent - by_hand) <= 0.01 * by_hand, f"{by_hand / 1e6:,.1f} MB by hand"
print("  right: the all-reduce of both gradients, by hand")

print("Weights and batch split by rows (FSDP, without its reduce-scatter):")
what_it_sends(step, {"up": of(P("X"), D, F), "down": of(P("X"), F, D)}, x)
