"""Run answers to exercises that check costs as well as results, and measure those costs.

An exercise's `run` function calls one of three runners. `run_compiled` compiles an answer with `jax.jit`,
`run_per_device` also wraps it in `jax.shard_map`, and `run_traced` calls it as is and traces the call.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled
from shardcost import cost, hlo

from exercises.framework.compare import Bound, RunResult
from exercises.framework.resource_tracer import Trace, trace
from utils.devices import started_devices


def build_mesh(axes: dict[str, int], explicit: bool = False) -> Mesh:
    """Build a mesh from the first devices, given axes such as {"x": 2, "y": 4}. The axes are Auto unless `explicit`."""
    devices = np.array(started_devices()[: prod(axes.values())]).reshape(*axes.values())
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Explicit if explicit else AxisType.Auto,) * len(axes))


def run_per_device(
    f: Callable,
    *args: Any,
    mesh: dict[str, int],
    in_specs: Any,
    out_specs: Any,
    measure: tuple[str, ...] = ("bytes_sent",),
) -> RunResult:
    """Run `f` as a per-device program on a new mesh, and return its result and costs, as `run_compiled` does.

    Before the run, the arguments are placed on the mesh according to `in_specs`.
    """
    device_mesh = build_mesh(mesh)
    shardings = jax.tree.map(
        lambda spec: NamedSharding(device_mesh, spec), in_specs, is_leaf=lambda x: isinstance(x, PartitionSpec)
    )
    with jax.set_mesh(device_mesh):  # the lesson may have set its own mesh, and JAX rejects programs with two meshes
        args = jax.tree.map(jax.device_put, args, jax.tree.broadcast(shardings, args))
        program = jax.shard_map(f, mesh=device_mesh, in_specs=in_specs, out_specs=out_specs)
        return run_compiled(program, *args, measure=measure)


def run_compiled(f: Callable, *args: Any, measure: tuple[str, ...] = ("bytes_sent",), **options: Any) -> RunResult:
    """Run `jax.jit(f, **options)`, and return its result and the costs of the compiled program.

    Args:
        measure: the costs to measure, as keys of `PROGRAM_COSTS`.
    """
    program = jax.jit(f, **options).lower(*args).compile(compiler_options=_FAST_COMPILATION)
    costs = {label: Bound(count(program), slack) for label, slack, count in map(PROGRAM_COSTS.__getitem__, measure)}
    return RunResult({"": program(*args), **costs})


def run_traced(
    f: Callable, *args: Any, measure: tuple[str, ...] = ("peak_bytes", "elements_fetched")
) -> tuple[RunResult, Trace]:
    """Run `f` without compiling it, and return its result with its costs, and the trace that the costs come from.

    Args:
        measure: the costs to measure, as keys of `TRACED_COSTS`.
    """
    jax.clear_caches()  # otherwise, the trace would miss programs that were compiled earlier
    run = trace(f, *args)
    costs = {label: bound(run) for label, bound in map(TRACED_COSTS.__getitem__, measure)}
    return RunResult({"": run.result, **costs}), run


def _largest_array_bytes(program: Compiled) -> float:
    """Return the bytes that the largest array in a compiled program takes up on one device."""
    computations = hlo.parse_program(program.as_text() or "").computations.values()
    instructions = (computation[name] for computation in computations for name in computation.lines)
    return max(hlo.nbytes((array,)) for instruction in instructions for array in instruction.shapes)


# Maps each cost of a compiled program to its label, the factor by which an answer's cost may exceed the solution's,
# and the function that measures the cost.
PROGRAM_COSTS: dict[str, tuple[str, float, Callable[[Compiled], float]]] = {
    "bytes_sent": ("bytes that a device sends", 1.01, lambda program: cost(program).bytes_sent),
    "flops": ("FLOPs of a device's products", 1.01, lambda program: cost(program).flops),
    "largest_array": ("bytes of the largest array on a device", 1.5, _largest_array_bytes),
}
# Maps each cost of a traced run to its label and a function that returns the cost with its allowance.
TRACED_COSTS: dict[str, tuple[str, Callable[[Trace], Bound]]] = {
    "peak_bytes": ("bytes that one device holds at a time", lambda run: Bound(run.peak_bytes, 2.5)),
    "elements_fetched": (
        "elements copied back to the host",
        lambda run: Bound(max(map(prod, run.fetched), default=0), 1.5),
    ),
    "flops": ("operations that the devices compute", lambda run: Bound(run.flops, 3, is_minimum=True)),
}
# Optimizing the programs isn't worthwhile, because each one runs only once.
_FAST_COMPILATION: dict[str, Any] = {"xla_backend_optimization_level": 0}
