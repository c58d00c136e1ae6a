"""How an answer is run where its result is not all that counts: on each device, compiled, watched."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from exercises.framework.compare import Bound, Seen
from exercises.framework.tracer import watch
from utils.count.cost import cost
from utils.devices import started_devices


def mesh_of(axes: dict[str, int], explicit: bool = False) -> Mesh:
    """The course's first devices as a mesh, {"x": 2, "y": 4}."""
    devices = np.array(started_devices()[: prod(axes.values())]).reshape(*axes.values())
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Explicit if explicit else AxisType.Auto,) * len(axes))


def on_devices(
    f: Callable, *args: Any, mesh: dict[str, int], in_specs: Any, out_specs: Any, demand: str = "sends"
) -> Seen:
    """f as the program of each device of the mesh: what it returns together, and what it costs."""
    made = mesh_of(mesh)
    lies = jax.tree.map(
        lambda spec: NamedSharding(made, spec), in_specs, is_leaf=lambda x: isinstance(x, PartitionSpec)
    )
    with jax.set_mesh(made):  # a lesson may have set another, and JAX refuses two
        args = jax.tree.map(jax.device_put, args, jax.tree.broadcast(lies, args))
        return compiled(jax.shard_map(f, mesh=made, in_specs=in_specs, out_specs=out_specs), *args, demand=demand)


def compiled(f: Callable, *args: Any, demand: str = "sends", **options: Any) -> Seen:
    """f in jax.jit: what it returns, and of the compiled program what is demanded, words of COSTS."""
    program = jax.jit(f, **options).lower(*args).compile(compiler_options=_QUICKLY)
    costs = {label: Bound(count(program), slack) for label, slack, count in map(COSTS.get, demand.split())}
    return Seen({"": program(*args), **costs})


def watched(f: Callable, *args: Any, demand: str = "held fetched") -> Seen:
    """f as it is, watched from outside; what is demanded, words of WATCHED. `.watched` is what probes.watch saw."""
    jax.clear_caches()  # what ran before is compiled again, and seen
    seen = watch(f, *args)
    found = Seen({"": seen.result} | {label: count(seen) for label, count in map(WATCHED.get, demand.split())})
    found.watched = seen
    return found


def _in_between(program: Any) -> int:
    return program.memory_analysis().temp_size_in_bytes


def _largest(program: Any) -> int:
    sizes = {"pred": 1, "bf16": 2, **{f"{kind}{bits}": bits // 8 for kind in "fsu" for bits in (8, 16, 32, 64)}}
    found = re.findall(r"\b(pred|bf16|[fsu]\d+)\[([\d,]*)\]", program.as_text())
    return max(sizes.get(kind, 0) * prod(int(n) for n in shape.split(",") if n) for kind, shape in found)


WATCHED = {
    "held": ("bytes that one device holds at a time", lambda seen: Bound(seen.most, 2.5)),
    "fetched": ("elements copied back to the host", lambda seen: Bound(max(map(prod, seen.fetched), default=0), 1.5)),
    "computed": ("operations that the devices compute", lambda seen: Bound(seen.flops, 3, least=True)),
}
# What can be demanded of a compiled program: label, factor by which the solution's own may be exceeded, count.
COSTS = {
    "sends": ("bytes that a device sends", 1.01, lambda program: cost(program).bytes_sent),
    "computes": ("FLOPs of a device's products", 1.01, lambda program: cost(program).flops),
    "holds": ("bytes that a device holds in between", 1.5, _in_between),
    "largest": ("bytes of the largest array on a device", 1.5, _largest),
}  # fmt: skip
_QUICKLY = {"xla_backend_optimization_level": 0}  # on a CPU; each runs once
