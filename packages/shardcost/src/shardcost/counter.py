"""Count the bytes that a program sends, and its FLOPs, from the text that the compiler produces."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from shardcost import hlo
from shardcost.collectives import BYTES_SENT, Collective, collective_of
from shardcost.custom_calls import cost_of_custom_call, is_debug_transfer
from shardcost.execution_counts import Runs, count_runs
from shardcost.groups import Axes
from shardcost.hlo import Computation, Program, UnsupportedHloError
from shardcost.matmul_flops import flops_of
from shardcost.report import Cost, Memory

# Opcodes that can contribute to the count: collectives (only the first half of an asynchronous pair), matrix products,
# and other instructions that might transfer data or multiply. If their cost is unknown, the error names them.
COUNTED = re.compile(
    r"(all-|collective-|ragged-|reduce-scatter)[a-z-]*(?<!-done)(?<!-update)|send|recv|infeed|outfeed"
    r"|dot|scaled-dot|convolution|reduce|custom-call"
)
Branches = Literal["max"] | None
TripCounts = int | Mapping[str, int] | None


def from_hlo(
    text: str,
    *,
    memory: Memory | None = None,
    axes: Axes | Mapping[str, int] = (),
    trip_counts: TripCounts = None,
    branches: Branches = None,
    strict: bool = True,
) -> Cost:
    """Calculate the cost of a compiled program from its text, without JAX, in time proportional to the text's length.

    Loops whose trip counts the compiler didn't record take a few microseconds more per iteration.

    Args:
        text: the result of `.compile().as_text()`, or the contents of a dump whose name ends in
            after_optimizations.txt, which XLA writes if XLA_FLAGS contains --xla_dump_to=FOLDER.
        memory: the memory plan to include in the result. (The text doesn't contain one.)
        axes: the names and sizes of the mesh axes in order, such as {"data": 2, "model": 4}, for labelling collectives.
        trip_counts: the trip counts of loops for which the text gives none: one number for all of these loops, or a
            dictionary keyed by source line, such as {"train.py:42": 100}. The error for such a loop names its line.
        branches: "max" counts the most expensive branch of each conditional: for bytes, the branch that sends the most;
            for FLOPs, the branch that computes the most. The totals are then upper bounds for every device.
        strict: raise an error for anything that can't be counted. Otherwise, count the rest and list the omissions in
            the result's `unknown`.

    Raises UnsupportedHloError (a ValueError) for a construct that can't be counted, which the message names, and
    ValueError for invalid arguments, such as a trip count for a line that has no loop with an unknown trip count.
    """
    if branches not in (None, "max"):
        raise ValueError(f'branches={branches!r}: pass "max" or None')
    assume = _Assumptions(trip_counts)
    program = hlo.parse_program(text)
    if isinstance(axes, Mapping):  # the caller of `from_hlo` passed the axes, which might not fit the program
        if axes and math.prod(axes.values()) != program.devices:
            raise ValueError(f"the axes {dict(axes)} do not multiply to the program's {program.devices} devices")
        axes = tuple(axes.items())
    unknown: list[str] = []

    def report_uncountable(message: str) -> None:
        if strict:
            raise UnsupportedHloError(message)
        unknown.append(message)

    collectives, flops = {}, {}  # per run of each computation, excluding the computations that it calls
    for name, computation in program.computations.items():
        communication, products = _count_computation(program, computation, report_uncountable)
        collectives |= {name: communication} if communication else {}
        flops |= {name: products} if products else {}
    sent = {name: sum(c.bytes_sent for c in in_computation) for name, in_computation in collectives.items()}
    kinds = {name: in_computation[0].kind for name, in_computation in collectives.items()}
    sending = _count_runs(program, sent, kinds, assume, branches, report_uncountable)
    computing = _count_runs(
        program, flops, dict.fromkeys(flops, "a matrix product"), assume, branches, report_uncountable
    )
    assume.check()
    return Cost(
        tuple(
            replace(c, execution_count=sending.times[name])
            for name, in_computation in collectives.items()
            for c in in_computation
            if sending.times.get(name)
        ),
        sum(computing.times.get(name, 0) * products for name, products in flops.items()),
        memory,
        program.devices,
        tuple(axes),
        tuple(dict.fromkeys(sending.assumptions + computing.assumptions)),
        tuple(dict.fromkeys(unknown)),
    )


class _CostFunction:
    """The type of `shardcost.cost`: a callable with the function `from_hlo` as an attribute."""

    from_hlo = staticmethod(from_hlo)

    def __call__(
        self,
        step: Any,
        *args: Any,
        target: str | None = None,
        trip_counts: TripCounts = None,
        branches: Branches = None,
        strict: bool = True,
        **kwargs: Any,
    ) -> Cost:
        """Count the bytes that a program sends and stores on each device, and its FLOPs, without running the program.

        Args:
            step: a function, jitted or not, or a program that `.lower(...)` or `.compile()` returned.
            args, kwargs: the function's arguments, as arrays or `jax.ShapeDtypeStruct`s with shardings. Omit them if
                `step` is a lowered or compiled program.
            target: the devices to compile for: "cpu:8", "h100:8" (GPUs), "h100:8x8" (machines x GPUs) or "v5e:4x4" (a
                TPU topology). This machine needn't have the GPUs or TPUs. `shardcost.targets` explains the format.
                The arguments' mesh is rebuilt from the target's devices, with the same axes.
            trip_counts: the trip counts of loops for which the program gives none: one number for all of these
                loops, or a dictionary keyed by source line, such as {"train.py:42": 100}.
            branches: "max" counts the most expensive branch of each conditional: for bytes, the branch that sends the
                most; for FLOPs, the branch that computes the most. The totals are then upper bounds for every device.
            strict: raise an error for anything that can't be counted. Otherwise, count the rest and list the omissions
                in the result's `unknown`.

        Data sent to the host for `jax.debug` isn't counted, and neither are the FLOPs of linear algebra routines.

        Raises UnsupportedHloError (a ValueError) for a construct that can't be counted, which the message names:

        - a collective whose cost is unknown, or replica groups in an unknown notation;
        - code that the program text doesn't show: Pallas kernels without a cost estimate, callbacks, FFI calls;
        - communication or matrix products in a loop whose trip count is unknown, unless `trip_counts` specifies it;
        - communication or matrix products in a branch that may or may not run, unless `branches` is specified.

        Raises TypeError if a lowered or compiled program is passed with a target or arguments, ValueError for an
        invalid option, and `shardcost.targets.TargetError` if this machine can't compile for the target.
        """
        import jax

        if callable(step) and not hasattr(step, "as_text"):
            if target:
                from shardcost.targets import lower_for

                step, args, kwargs = lower_for(target, step, args, kwargs)
            else:
                step = (step if hasattr(step, "lower") else jax.jit(step)).lower(*args, **kwargs)
        elif target or args or kwargs:
            raise TypeError("pass a function and its arguments, or a lowered or compiled program without arguments")
        compiled = step.compile() if hasattr(step, "compile") else step
        stats = compiled.memory_analysis()
        memory = stats and Memory(
            stats.argument_size_in_bytes,
            stats.output_size_in_bytes,
            stats.temp_size_in_bytes,
            stats.alias_size_in_bytes,
            stats.peak_memory_in_bytes,
        )
        return from_hlo(
            compiled.as_text(),
            memory=memory,
            axes=_mesh_axes((args, kwargs), compiled),
            trip_counts=trip_counts,
            branches=branches,
            strict=strict,
        )


cost = _CostFunction()


def _mesh_axes(arguments: Any, compiled: Any) -> Axes:
    """Return the axis names and sizes of the first mesh in the shardings of the arguments and results."""
    import jax

    shardings = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(arguments)]
    shardings += jax.tree.leaves([getattr(compiled, f"{side}_shardings", None) for side in ("input", "output")])
    meshes = (getattr(sharding, "mesh", None) for sharding in shardings)
    return next((tuple(mesh.shape.items()) for mesh in meshes if mesh is not None), ())


class _Assumptions:
    """The trip counts that the user specifies, and a record of which ones were used."""

    def __init__(self, trip_counts: TripCounts) -> None:
        self.trip_counts = trip_counts
        self.used: set[str] = set()
        self.loops: set[str] = set()
        counts = trip_counts.values() if isinstance(trip_counts, Mapping) else [trip_counts or 0]
        if any(not isinstance(count, int) or count < 0 for count in counts):
            raise ValueError(f"trip_counts={trip_counts!r}: a trip count must be an integer of at least 0")

    def __call__(self, label: str, name: str) -> int | None:
        """Return the trip count that the user specified for a loop, or None. Record the loop and the matching entry."""
        self.loops.add(label)
        if not isinstance(self.trip_counts, Mapping):
            return self.trip_counts
        for key, count in self.trip_counts.items():
            if key in (label, name) or label.endswith(f"/{key}"):
                self.used.add(key)
                return count
        return None

    def check(self) -> None:
        """Raise ValueError if a trip count was specified for a line that has no loop with an unknown trip count."""
        unused = (
            [key for key in self.trip_counts if key not in self.used] if isinstance(self.trip_counts, Mapping) else []
        )
        if unused:
            loops = ", ".join(sorted(self.loops)) or "none"
            raise ValueError(f"trip_counts names {unused[0]!r}, but the loops with unknown trip counts are at: {loops}")


def _count_computation(
    program: Program, computation: Computation, report_uncountable: Callable[[str], None]
) -> tuple[list[Collective], int]:
    """Return the collectives and FLOPs in one run of a computation, excluding the computations that it calls."""
    counted = {name for opcode, names in computation.by_opcode.items() if COUNTED.fullmatch(opcode) for name in names}
    collectives, flops = [], 0
    for name in computation.lines if counted else ():
        if name not in counted:
            continue
        try:
            collective, products = _count_instruction(program, computation, name)
        except UnsupportedHloError as error:
            report_uncountable(str(error))
            continue
        collectives += [collective] if collective else []
        flops += products
    return collectives, flops


def _count_instruction(program: Program, computation: Computation, name: str) -> tuple[Collective | None, int]:
    """Return the collective that an instruction runs, or None, and the FLOPs of one run."""
    instruction = computation[name]
    if instruction.kind in BYTES_SENT:
        collective = collective_of(program, computation, instruction)
        if collective:
            hlo.nbytes(collective.operands + collective.results)  # raises UnsupportedHloError for an unknown dtype
        return collective, 0
    if instruction.opcode == "custom-call":
        return cost_of_custom_call(program, computation, instruction)
    if instruction.opcode in ("dot", "convolution", "reduce"):
        return None, flops_of(program, computation, instruction)
    if instruction.kind == "ragged-all-to-all":
        raise UnsupportedHloError("ragged-all-to-all, whose sizes are known only at run time")
    if not is_debug_transfer(program, computation, instruction):
        raise UnsupportedHloError(f"the operation {instruction.kind}, whose cost is unknown")
    return None, 0


def _count_runs(
    program: Program,
    costs: Mapping[str, int],
    contents: Mapping[str, str],
    assume: _Assumptions,
    branches: Branches,
    report_uncountable: Callable[[str], None],
) -> Runs:
    """Return how often each computation in `costs` runs, and report those whose number of runs is unknown.

    Args:
        costs: the bytes or FLOPs of one run, by computation.
        contents: a description of each computation's contents for the error message.
    """
    runs = count_runs(program, costs, assume, branches == "max")
    for name in costs:
        if name not in runs.times:
            report_uncountable(f"{contents[name]} in the computation {name}, which no instruction in the text calls")
        elif name in runs.uncertain:
            report_uncountable(f"{contents[name]} in {runs.uncertain[name]}")
            runs.times[name] = 0
    return runs
