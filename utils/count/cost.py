"""What a compiled program communicates, computes and holds, counted from its own text (HLO).

Bytes that each device sends, in a group of n devices with an operand of b bytes on each, by the bandwidth-optimal
algorithms (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005):

- all-gather: every device passes on n - 1 pieces of size b, so (n - 1) b, or (n - 1)/n of the result;
- reduce-scatter: the same ring with sums of size b/n: (n - 1)/n b;
- all-reduce: a reduce-scatter, then an all-gather of its result: 2 (n - 1)/n b;
- all-to-all: an n-th of the operand to each of the others: (n - 1)/n b;
- collective-permute: the operand, to one other device: b, or nothing for a device that no pair names as a source.
"""

from __future__ import annotations

import html
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.count import hlo
from utils.count.hlo import Shape, UnknownConstruct
from utils.show.table import format_table

SENT = {  # bytes that one device sends, from the size of its group and the bytes of its operands
    "all-reduce": lambda n, b: 2 * (n - 1) * b / n,
    "all-gather": lambda n, b: (n - 1) * b,
    "reduce-scatter": lambda n, b: (n - 1) * b / n,
    "all-to-all": lambda n, b: (n - 1) * b / n,
    "collective-permute": lambda n, b: b if n > 1 else 0.0,
}
# What moves data between devices and is not priced above: named in an error wherever it stands.
UNPRICED = ("ragged-all-to-all", "collective-broadcast", "send", "recv", "infeed", "outfeed")
COUNTED = re.compile(r" ((?:" + "|".join(map(re.escape, (*SENT, *UNPRICED))) + r")(?:-start)?|dot|convolution)\(")


@dataclass(frozen=True)
class Collective:
    """One collective of the program: what each device of a group puts in and gets out, and how often."""

    kind: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    groups: tuple[tuple[int, ...], ...]  # places in the mesh; for a permute, (source, target) pairs
    times: int
    asynchronous: bool = False  # begun in one place and waited for in another, with work in between

    @property
    def group_size(self) -> int:
        """Devices that take part together; for a permute 2, or 1 if every device sends to itself."""
        if self.kind == "collective-permute":
            return 2 if any(source != target for source, target in self.groups) else 1
        return max(map(len, self.groups), default=1)

    @property
    def bytes_sent(self) -> int:
        """Bytes that a device that takes part sends, over all its runs (see the module's table)."""
        return round(self.times * SENT[self.kind](self.group_size, hlo.nbytes(self.operands)))

    def sent_by(self, device: int) -> int:
        """Bytes that the device at this place of the mesh sends: none if no group has it, and no pair as a source."""
        if self.kind == "collective-permute":
            return self.bytes_sent * any(source == device != target for source, target in self.groups)
        return self.bytes_sent * any(device in group for group in self.groups)


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
    """Iterate over it for the collectives; print it for a table."""

    collectives: tuple[Collective, ...]
    flops: int  # per device: 2 for each multiply-and-add of matrix products (not of vectors), loops counted in full
    memory: Memory | None
    devices: int
    axes: tuple[tuple[str, int], ...] = ()  # of the arguments' mesh, where they have one

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.collectives)

    def __len__(self) -> int:
        return len(self.collectives)

    @property
    def bytes_sent(self) -> int:
        """The most that any one device sends."""
        return max((sum(c.sent_by(d) for c in self.collectives) for d in range(self.devices)), default=0)

    def along(self, collective: Collective) -> str:
        """Over which axes of the arguments' mesh the groups lie: ``x``, ``x, y``; else their number and size."""
        if collective.kind == "collective-permute":
            return f"{len(collective.groups)} pairs"
        named = _axes_of(collective.groups, self.axes)
        return named or f"{len(collective.groups)} x {collective.group_size} devices"

    def rows(self) -> list[tuple[str, str, str, str, int, int]]:
        """The table's rows: collective, along, operand, result, times, bytes that each device sends."""
        return [
            (c.kind, self.along(c), _spell(c.operands), _spell(c.results), c.times, c.bytes_sent)
            for c in self.collectives
        ]

    def _totals(self) -> list[str]:
        lines = [f"each device sends {self.bytes_sent:,} bytes and computes {self.flops:,} FLOPs in products"]
        if self.memory:
            m = self.memory
            lines.append(
                f"it holds {m.arguments:,} bytes of arguments, {m.outputs:,} of results, {m.temporaries:,} in between"
            )
        return lines

    def __str__(self) -> str:
        table = format_table(HEADERS, self.rows()) if self.collectives else "no communication"
        return "\n".join([table, "", *self._totals()])

    __repr__ = __str__

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


def cost(program: Any, *args: Any, **kwargs: Any) -> Cost:
    """Count what a program communicates, computes and holds.

    `program` is a function (jitted or not) with its arguments, arrays or `jax.ShapeDtypeStruct`s; or what
    `.lower(...)` or `.compile()` returned, without arguments. Nothing is run.

    Raises UnknownConstruct (a ValueError) that names what cannot be counted: a collective without a known price,
    replica groups in another spelling, a loop with communication or products inside and rounds that its text does not
    tell, communication in a branch that may or may not be taken.
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
    meshes = [
        leaf.sharding.mesh
        for leaf in jax.tree.leaves((args, kwargs))
        if hasattr(getattr(leaf, "sharding", None), "mesh")
    ]
    axes = tuple(meshes[0].shape.items()) if meshes else ()
    return read(program.as_text(), memory, axes)


def read(text: str, memory: Memory | None = None, axes: tuple[tuple[str, int], ...] = ()) -> Cost:
    """The same from the text of a compiled program, in time that grows with its length."""
    header = text[: text.index("\n")]
    sizes = [int(n) for n in re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", header)]
    devices = math.prod(sizes)
    found = hlo.computations(text)
    count, unsure = hlo.times(found)
    flops, collectives = 0, []
    for name, computation in found.items():
        if not count[name] and name not in unsure:
            continue
        repeated = None
        for line, right in computation.lines.items():
            if not COUNTED.search(right.partition(" metadata=")[0]):
                continue
            instruction = computation[line]
            kind = instruction.opcode.removesuffix("-start")
            if kind not in (*SENT, *UNPRICED, "dot", "convolution"):
                continue
            if kind in UNPRICED:
                raise UnknownConstruct(f"the collective {kind}, which has no price here")
            if name in unsure:
                raise UnknownConstruct(
                    f"{kind} in a loop or branch of which the program does not tell how often it runs"
                )
            if kind in SENT:
                repeated = _repeats(computation) if repeated is None else repeated
                if not repeated:
                    collectives.append(_collective(found, computation, instruction, count[name], devices))
            else:
                flops += count[name] * _flops(computation, instruction)
    return Cost(tuple(collectives), flops, memory, devices, axes)


def _repeats(computation: hlo.Computation) -> bool:
    """Does the computation only go on with a collective that another one began?

    A TPU writes an asynchronous collective again in the fusions that overlap it with work, and where it is waited for.
    (Its channel does not tell: all collectives of a shard_map share one.)
    """
    targets = _custom_calls(computation)
    if "AsyncCollectiveStart" in targets:
        return False
    return "AsyncCollectiveDone" in targets or computation.name.startswith("async_collective_fusion")


def _asynchronous(computation: hlo.Computation, instruction: hlo.Instruction) -> bool:
    return instruction.opcode.endswith("-start") or "AsyncCollectiveStart" in _custom_calls(computation)


def _custom_calls(computation: hlo.Computation) -> str:
    return " ".join(right for right in computation.lines.values() if "custom_call_target=" in right)


def _collective(found, computation, instruction, times, devices) -> Collective:
    kind = instruction.opcode.removesuffix("-start")
    operands = tuple(shape for name in instruction.operands for shape in computation[name].shapes)
    results = instruction.shapes
    entry = next(reversed(found))
    root = computation[computation.root]
    sliced = root.opcode == "dynamic-slice" and root.operands[0] == instruction.name
    if kind == "all-reduce" and sliced and computation.name != entry:
        # A TPU fuses an all-reduce and the slice of its result: inside the fusion they are a reduce-scatter.
        kind, results = "reduce-scatter", root.shapes
    if instruction.opcode.endswith("-start"):
        done = [
            n for n, right in computation.lines.items() if f"{kind}-done(" in right and f"%{instruction.name})" in right
        ]
        results = computation[done[0]].shapes if done else results
    if kind == "collective-permute":
        pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", instruction.attributes)
        groups = tuple((int(a), int(b)) for a, b in re.findall(r"(\d+),(\d+)", pairs[1] if pairs else ""))
        if not groups:
            raise UnknownConstruct(f"a collective-permute without pairs: {instruction.attributes[:120]!r}")
    else:
        groups = hlo.groups(instruction.attributes, devices)
        if len(set(map(len, groups))) > 1:
            raise UnknownConstruct(f"{kind} in groups of different sizes: {groups}")
    return Collective(kind, operands, results, groups, times, _asynchronous(computation, instruction))


def _flops(computation: hlo.Computation, instruction: hlo.Instruction) -> int:
    """2 x elements of the result x length of the contraction; 0 for a product of vectors.

    (Some versions write that as a multiplication and a sum, which are not counted, so it must not count elsewhere.)
    """
    [(_, result)] = instruction.shapes
    left, right = (computation.operand(instruction, i).shapes[0][1] for i in (0, 1))
    if instruction.opcode == "dot":
        axes = _numbers("lhs_contracting_dims", instruction)
        if len(axes) + len(_numbers("lhs_batch_dims", instruction)) == max(len(left), len(right)):
            return 0
        contracted = [left[axis] for axis in axes]
        return 2 * math.prod(result) * math.prod(contracted)
    return _convolution_flops(instruction, left, right, result)


def _convolution_flops(instruction: hlo.Instruction, left: tuple, right: tuple, result: tuple) -> int:
    """2 x batch x input features x output features x pairs of an output and a kernel position that meet an input.

    A TPU writes products as convolutions: plain ones without a window, batched ones with the batch as a dimension of
    the window, padded and dilated so that one kernel position meets each output. (XLA's HloCostAnalysis counts so.)
    """
    ins, kernel, outs = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", instruction.attributes).groups()
    size_of = dict(zip(kernel, right, strict=True))
    windows = dict(
        re.findall(r"(\w+)=([\dx_-]+)", (re.search(r"window=\{([^}]*)\}", instruction.attributes) or [""])[0])
    )
    pairs = 1
    for place, label in enumerate(sorted(label for label in kernel if label.isdigit())):
        stride, dilate, spread = (
            int(windows[key].split("x")[place]) if key in windows else 1
            for key in ("stride", "lhs_dilate", "rhs_dilate")
        )
        before = int(windows["pad"].split("x")[place].split("_")[0]) if "pad" in windows else 0
        last = (left[ins.index(label)] - 1) * dilate
        at = np.add.outer(np.arange(result[outs.index(label)]) * stride - before, np.arange(size_of[label]) * spread)
        pairs *= int(((at >= 0) & (at <= last) & (at % dilate == 0)).sum())
    groups = instruction.number("batch_group_count") or 1
    return 2 * left[ins.index("b")] // groups * size_of["i"] * size_of["o"] * pairs


def _numbers(key: str, instruction: hlo.Instruction) -> list[int]:
    found = re.search(rf"\b{key}=\{{([\d,]*)\}}", instruction.attributes)
    return [int(n) for n in found[1].split(",") if n] if found else []


def _axes_of(groups: tuple[tuple[int, ...], ...], axes: tuple[tuple[str, int], ...]) -> str:
    """The names of the mesh axes along which the groups lie, or nothing."""
    sizes = [size for _, size in axes]
    wanted = {frozenset(group) for group in groups}
    for r in range(1, len(axes) + 1):
        for chosen in itertools.combinations(range(len(axes)), r):
            ids = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
            rest = [i for i in range(len(axes)) if i not in chosen]
            lines = ids.transpose([*rest, *chosen]).reshape(-1, int(np.prod([sizes[i] for i in chosen])))
            if {frozenset(line) for line in lines.tolist()} == wanted:
                return ", ".join(axes[i][0] for i in chosen)
    return ""


def _spell(arrays: tuple[Shape, ...]) -> str:
    return " + ".join(f"{dtype}[{','.join(map(str, dims))}]" for dtype, dims in arrays)
