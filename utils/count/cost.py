"""What a compiled program communicates, computes and holds, counted from its own text (HLO)."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from utils.count import hlo
from utils.count.calls import custom_call, shows_only
from utils.count.collectives import KERNEL, SENT, Collective, collective
from utils.count.groups import axes_between, axes_of
from utils.count.hlo import Computation, Program, UnknownConstruct
from utils.count.products import flops
from utils.count.runs import Runs, runs
from utils.show.table import format_table, show_table

# Opcodes that may have something to count: collectives (the second halves of asynchronous pairs left out), products,
# and what moves data or multiplies without a price here, which is named in an error.
COUNTED = re.compile(
    r"(all-|collective-|ragged-|reduce-scatter)[a-z-]*(?<!-done)(?<!-update)|send|recv|infeed|outfeed"
    r"|dot|scaled-dot|convolution|reduce|custom-call"
)


@dataclass(frozen=True)
class Memory:
    """Bytes on each device, as the compiler plans them."""

    arguments: int
    outputs: int
    temporaries: int
    donated: int  # of the outputs, how many bytes reuse an argument's place
    peak: int = 0  # the most at any moment: what is needed at different times shares its place

    @property
    def total(self) -> int:
        return self.arguments + self.outputs + self.temporaries - self.donated


@dataclass(frozen=True)
class Cost:
    """Iterate over it for the collectives; print it for a line, let a cell show it for a table."""

    collectives: tuple[Collective, ...]
    flops: int  # per device: 2 for each multiply-and-add of matrix products (not of vectors), loops counted in full
    memory: Memory | None
    devices: int
    axes: tuple[tuple[str, int], ...] = ()  # of the arguments' mesh, where they have one
    told: tuple[str, ...] = ()  # what the text does not tell, and was counted as the reader said

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.collectives)

    def __len__(self) -> int:
        return len(self.collectives)

    @property
    def bytes_sent(self) -> int:
        """The most that any one device sends."""
        return _most(self.collectives)

    def by_device(self) -> list[int]:
        """What each device sends, by its number."""
        sent = _by_device(self)
        return [sent[device] for device in range(self.devices)]

    def steps(self) -> int:
        """Steps on one-way rings: n - 1 for a group of n, twice that for an all-reduce, 1 for a permute."""
        return sum(c.times * (1 + (c.kind == "all-reduce")) * (c.group_size - 1) for c in self)

    def by_kind(self) -> dict[str, int]:
        """The same for each kind of collective, as ``{"all-gather": 1024}``."""
        kinds = sorted({c.kind for c in self})
        return {kind: _most(c for c in self if c.kind == kind) for kind in kinds}

    def by_axis(self) -> dict[str, int]:
        """The same for each axis of the mesh, or several, as ``{"x": 1024, "x, y": 8}``.

        A permute counts for the axes along which some device's partner lies.
        """
        axes = {
            c: (c.kind == "collective-permute" and axes_between(c.groups, self.axes)) or self.along(c) for c in self
        }
        return {axis: _most(c for c in self if axes[c] == axis) for axis in sorted(set(axes.values()))}

    def along(self, collective: Collective) -> str:
        """Over which axes of the arguments' mesh the groups lie: ``x``, ``x, y``; else their number and size."""
        if collective.kind == KERNEL:
            return "as it says"
        if collective.kind == "collective-permute":
            return f"{len(collective.groups)} pairs"
        named = axes_of(collective.groups, self.axes)
        return named or f"{len(collective.groups)} x {collective.group_size} devices"

    def rows(self) -> list[tuple[str, str, str, str, int, int]]:
        """The table's rows: collective, along, operand, result, times, bytes that each device sends."""
        return [
            (c.kind, self.along(c), hlo.spell(c.operands), hlo.spell(c.results), c.times, c.bytes_sent) for c in self
        ]

    def sources(self) -> list[tuple[str, str, int, str, str]]:
        """Who asked for each: collective, along, bytes that each device sends, JAX's operation, the line of code."""
        found = []
        for c in self:
            operation = (c.source.operation + ", backward" * c.source.backward) if c.source else "not told"
            found.append((c.kind, self.along(c), c.bytes_sent, operation, c.source.code if c.source else ""))
        return found

    def who_asked(self) -> None:
        """Print `sources`."""
        show_table(("collective", "along", "bytes sent", "for", "in the line"), self.sources())

    def _totals(self) -> list[str]:
        lines = [f"each device sends {self.bytes_sent:,} bytes and computes {self.flops:,} FLOPs in products"]
        if self.memory:
            m = self.memory
            lines.append(
                f"it holds {m.arguments:,} bytes of arguments, {m.outputs:,} of results, {m.temporaries:,} in between"
            )
        if self.told:
            lines.append(f"counted with {', '.join(self.told)}, as you say")
        return lines

    def __str__(self) -> str:
        """In one line: the collectives, what a device sends, what it computes in products."""
        kinds = Counter((c.kind, "" if "pairs" in self.along(c) else f" over {self.along(c)}") for c in self)
        named = [f"{many} x {kind}{over}" if many > 1 else kind + over for (kind, over), many in kinds.items()]
        parts = [" + ".join(named) or "no collective", f"sends {self.bytes_sent:,} bytes"]
        return " · ".join(parts + [f"computes {self.flops:,} FLOPs"] * bool(self.flops))

    def __repr__(self) -> str:
        table = format_table(HEADERS, self.rows()) if self.collectives else "no communication"
        return "\n".join([table, "", *self._totals()])

    def _repr_html_(self) -> str:
        def row(cells, tag):
            return (
                "<tr>"
                + "".join(f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells)
                + "</tr>"
            )

        body = [row([f"{c:,}" if isinstance(c, int) else c for c in cells], "td") for cells in self.rows()]
        table = f"<table>{row(HEADERS, 'th')}{''.join(body)}</table>" if body else "<p>no communication</p>"
        return table + "".join(f"<p>{line}</p>" for line in self._totals())


HEADERS = ("collective", "along", "operand", "result", "times", "bytes sent")


def _by_device(collectives: Iterable[Collective]) -> Counter[int]:
    sent: Counter[int] = Counter()
    for c in collectives:
        for device in c.senders:
            sent[device] += c.bytes_sent
    return sent


def _most(collectives: Iterable[Collective]) -> int:
    return max(_by_device(collectives).values(), default=0)


def cost(
    program: Any, *args: Any, rounds: int | None = None, branches: Literal["dearest"] | None = None, **kwargs: Any
) -> Cost:
    """Count what a program communicates, computes and holds.

    `program` is a function (jitted or not) with its arguments, arrays or `jax.ShapeDtypeStruct`s; or what
    `.lower(...)` or `.compile()` returned, without arguments. Nothing is run.

    `rounds` says how often each loop runs whose text does not tell; `branches="dearest"` counts of every conditional
    the branch that sends the most and, for the FLOPs, the one that multiplies the most: more than this no device does.

    What goes to the host for `jax.debug` is not counted, nor what routines of linear algebra compute.

    Raises UnknownConstruct (a ValueError) that names what cannot be counted: a collective without a known price,
    replica groups in another spelling, code that the text does not show (Pallas kernels that do not tell their cost,
    callbacks, foreign functions), a loop with communication or products inside and rounds that its text does not tell,
    communication or products in a branch that may or may not be taken.
    """
    import jax

    if callable(program) and not hasattr(program, "as_text"):
        program = (program if hasattr(program, "lower") else jax.jit(program)).lower(*args, **kwargs)
    if hasattr(program, "compile"):
        program = program.compile()
    stats = program.memory_analysis()
    memory = stats and Memory(
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.temp_size_in_bytes,
        stats.alias_size_in_bytes,
        stats.peak_memory_in_bytes,
    )
    laid_out = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves((args, kwargs))]
    laid_out += jax.tree.leaves([getattr(program, f"{side}_shardings", None) for side in ("input", "output")])
    meshes = (sharding.mesh for sharding in laid_out if hasattr(sharding, "mesh"))
    axes = next((tuple(mesh.shape.items()) for mesh in meshes), ())
    return read(program.as_text(), memory, axes, rounds, branches)


def read(
    text: str,
    memory: Memory | None = None,
    axes: tuple[tuple[str, int], ...] = (),
    rounds: int | None = None,
    branches: Literal["dearest"] | None = None,
) -> Cost:
    """The same from the text of a compiled program, in time that grows with its length."""
    if branches not in (None, "dearest") or (rounds is not None and rounds < 0):
        raise ValueError(f'rounds={rounds!r}, branches={branches!r}: say a whole number, and "dearest"')
    program = hlo.program(text)
    sent, computed = {}, {}  # by computation: the collectives and the FLOPs of one run, without what it calls
    for name, computation in program.computations.items():
        collectives, products = _own(program, computation)
        sent |= {name: collectives} if collectives else {}
        computed |= {name: products} if products else {}
    size = {name: sum(c.bytes_sent for c in own) for name, own in sent.items()}
    sending = _runs(program, size, {name: own[0].kind for name, own in sent.items()}, rounds, branches)
    computing = _runs(program, computed, dict.fromkeys(computed, "a product"), rounds, branches)
    collectives = [
        replace(c, times=sending.times[name]) for name, own in sent.items() for c in own if sending.times[name]
    ]
    total = sum(computing.times[name] * own for name, own in computed.items())
    told = tuple(dict.fromkeys(sending.told + computing.told))
    return Cost(tuple(collectives), total, memory, program.devices, axes, told)


def _own(program: Program, computation: Computation) -> tuple[list[Collective], int]:
    """The collectives and the FLOPs of one run of a computation, without what it calls."""
    counted = {name for opcode in computation.kinds if COUNTED.fullmatch(opcode) for name in computation.kinds[opcode]}
    collectives, total = [], 0
    for name in computation.lines if counted else ():
        if name not in counted:
            continue
        instruction, found = computation[name], None
        if instruction.kind in SENT:
            found = collective(program, computation, instruction)
        elif instruction.opcode == "custom-call":
            found, products = custom_call(program, computation, instruction)
            total += products
        elif instruction.opcode in ("dot", "convolution", "reduce"):
            total += flops(computation, instruction)
        elif not shows_only(program, computation, instruction):
            raise UnknownConstruct(f"the collective {instruction.kind}, which has no price here")
        collectives += [found] if found else []
    return collectives, total


def _runs(
    program: Program, own: dict[str, int], what: dict[str, str], rounds: int | None, branches: str | None
) -> Runs:
    """How often the computations in `own` run. Raises UnknownConstruct, with `what` they have, if it is not told."""
    found = runs(program, own, rounds, branches == "dearest")
    for name in own:
        if name not in found.times:
            raise UnknownConstruct(f"{what[name]} in {name}, of which the program does not tell what runs it")
        if name in found.unsure:
            say = {"loop": "rounds=", "branch": 'branches="dearest"'}[found.unsure[name]]
            raise UnknownConstruct(
                f"{what[name]} in a loop or branch of which the program does not tell how often it runs: "
                f"if you can say, call cost(..., {say})"
            )
    return found
