"""Report the cost of a compiled program as numbers and tables."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from shardcost import hlo
from shardcost.between_machines import bytes_leaving
from shardcost.collectives import BYTES_SENT, KERNEL, Collective
from shardcost.groups import Axes, axes_between, axes_of

Measure = Literal["bytes_sent", "input_bytes", "output_bytes"]
MEASURES = get_args(Measure)
HEADERS = ("collective", "along", "operand", "result", "times", "bytes sent")
SOURCE_HEADERS = ("collective", "along", "bytes sent", "operation", "source line")


@dataclass(frozen=True)
class Memory:
    """The memory that the compiler plans to use on each device, in bytes."""

    arguments: int
    outputs: int
    temporaries: int
    donated: int  # bytes of outputs that reuse an argument's buffer
    peak: int = 0  # the largest total at any moment, as reported by the compiler (on CPUs, excluding temporaries)

    @property
    def total(self) -> int:
        """Return the total bytes of arguments, outputs and temporaries, counting donated buffers once."""
        return self.arguments + self.outputs + self.temporaries - self.donated


@dataclass(frozen=True)
class Cost:
    """The cost of a program.

    Iterate over the cost to get its collectives, print it to get a one-line summary, or end a notebook cell with it to
    display a table.
    """

    collectives: tuple[Collective, ...]
    flops: int  # per device, over all loop iterations: 2 per multiply-add in matrix products (not vector products)
    memory: Memory | None  # None if the cost comes from a program text, which has no memory plan
    devices: int
    axes: Axes = ()  # the names and sizes of the mesh axes, if they're known
    assumptions: tuple[str, ...] = ()  # the caller's assumptions that the counts depend on
    unknown: tuple[str, ...] = ()  # constructs that weren't counted, which strict=False allows

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.collectives)

    def __len__(self) -> int:
        return len(self.collectives)

    @property
    def bytes_sent(self) -> int:
        """Return the bytes that the busiest device sends to other devices."""
        return _busiest(self.collectives, "bytes_sent")

    @property
    def input_bytes(self) -> int:
        """Return the bytes that the busiest device contributes to collectives: the size of their operands."""
        return _busiest(self.collectives, "input_bytes")

    @property
    def output_bytes(self) -> int:
        """Return the bytes that the busiest device obtains from collectives: the size of their results."""
        return _busiest(self.collectives, "output_bytes")

    def counts(self) -> dict[str, int]:
        """Return how often each kind of collective runs, over all loop iterations, as ``{"all-gather": 24}``."""
        counts: Counter[str] = Counter()
        for c in self:
            counts[c.kind] += c.execution_count
        return dict(sorted(counts.items()))

    def by_kind(self, measure: Measure = "bytes_sent") -> dict[str, int]:
        """Return the busiest device's bytes for each kind of collective, as ``{"all-gather": 1024}``.

        Args:
            measure: "bytes_sent", "input_bytes" (the size of the operands) or "output_bytes" (the size of the results).
        """
        return self._by(lambda c: c.kind, measure)

    def by_axis(self, measure: Measure = "bytes_sent") -> dict[str, int]:
        """Return the busiest device's bytes for each mesh axis or combination of axes, as ``{"x": 1024, "x, y": 8}``.

        A permute is attributed to the axes along which at least one source and its target differ.

        Args:
            measure: "bytes_sent", "input_bytes" (the size of the operands) or "output_bytes" (the size of the results).
        """

        def axis(c: Collective) -> str:
            return (c.kind == "collective-permute" and axes_between(c.groups, self.axes)) or self.axes_label(c)

        return self._by(axis, measure)

    def by_source(self, kind: str = "", measure: Measure = "bytes_sent") -> dict[str, int]:
        """Return the busiest device's bytes for each line of Python, as ``{"train.py:12": 1024}``.

        A line in a notebook cell is identified by its code. `print_sources` also prints the code of lines in files.

        Args:
            kind: count only this kind of collective, such as "all-gather". An unknown kind raises ValueError.
            measure: "bytes_sent", "input_bytes" (the size of the operands) or "output_bytes" (the size of the results).
        """
        return self._by(_source_label, measure, kind, _by_line)

    def by_device(self) -> list[int]:
        """Return the bytes that each device sends, indexed by its position in the mesh."""
        sent = _by_device(self, "bytes_sent")
        return [sent[device] for device in range(self.devices)]

    def by_machine(self, machine_of: Sequence[int]) -> dict[int, int]:
        """Return the bytes that leave each machine, where `machine_of[i]` is the machine with device i of the mesh.

        `shardcost.between_machines` lists the assumptions. Raises ValueError if `machine_of` doesn't cover every
        device, and UnsupportedHloError for a collective whose route is unknown.
        """
        if len(machine_of) < self.devices:
            raise ValueError(f"the program runs on {self.devices} devices, and machine_of has {len(machine_of)}")
        return bytes_leaving(self, machine_of)

    def steps(self) -> int:
        """Return the number of communication steps if collectives use one-way rings.

        In a group of n devices, an all-reduce takes 2 (n - 1) steps, a permute takes 1, and any other collective takes
        n - 1.
        """
        return sum(c.execution_count * (1 + (c.kind == "all-reduce")) * (c.group_size - 1) for c in self)

    def axes_label(self, collective: Collective) -> str:
        """Return the mesh axes along which a collective communicates: ``x``, or ``x, y``.

        If the groups don't follow the axes of the arguments' mesh, return the number and size of the groups. Return
        the number of pairs for a permute, and "as declared" for a hand-written kernel.
        """
        if collective.kind == KERNEL:
            return "as declared"
        if collective.kind == "collective-permute":
            return f"{len(collective.groups)} pairs"
        axes = axes_of(collective.groups, self.axes)
        return axes or f"{len(collective.groups)} x {collective.group_size} devices"

    def rows(self) -> list[tuple[str, str, str, str, int, int]]:
        """Return a row for each collective: kind, axes, operands, results, runs, and bytes sent by each sender."""
        return [
            (
                c.kind,
                self.axes_label(c),
                hlo.format_shapes(c.operands),
                hlo.format_shapes(c.results),
                c.execution_count,
                c.bytes_sent,
            )
            for c in self
        ]

    def sources(self) -> list[tuple[str, str, int, str, str]]:
        """Return a row for each collective's source: kind, axes, bytes sent, JAX operation, and line of code.

        A collective that the compiler has combined from several lines has one row per line.
        """
        return [
            (
                c.kind,
                self.axes_label(c),
                c.bytes_sent,
                c.source.operation + ", backward" * c.source.backward if c.source else "not recorded",
                str(c.source or ""),
            )
            for combined in self
            for c in _by_line(combined)
        ]

    def print_sources(self) -> None:
        """Print the collectives' sources as a table."""
        print(format_table(SOURCE_HEADERS, self.sources()))

    def compare(self, other: Cost) -> Comparison:
        """Compare this cost with another one, for example from a different compiler, version or commit."""
        return Comparison(self, other)

    def _by(
        self,
        key: Callable[[Collective], str],
        measure: Measure,
        kind: str = "",
        split: Callable[[Collective], Iterable[Collective]] = lambda c: [c],
    ) -> dict[str, int]:
        if measure not in MEASURES:
            raise ValueError(f"the measure {measure!r}: pass one of {', '.join(MEASURES)}")
        if kind not in ("", KERNEL, *BYTES_SENT):  # an empty result for a misspelt kind would satisfy most tests
            raise ValueError(f"the kind {kind!r}: pass one of {', '.join(BYTES_SENT)}")
        groups: dict[str, list[Collective]] = {}
        for c in (single for combined in self for single in split(combined)):
            if kind in ("", c.kind):
                groups.setdefault(key(c), []).append(c)
        return {name: _busiest(collectives, measure) for name, collectives in sorted(groups.items())}

    def _summary_lines(self) -> list[str]:
        lines = [
            f"the busiest device sends {self.bytes_sent:,} bytes; "
            f"each device computes {self.flops:,} FLOPs in matrix products"
        ]
        if self.memory:
            m = self.memory
            lines.append(
                f"memory per device: {m.arguments:,} bytes of arguments, {m.outputs:,} of results, "
                f"{m.temporaries:,} of temporaries"
            )
        if self.assumptions:
            lines.append(f"counted with {', '.join(self.assumptions)}, as you specified")
        return lines + [f"not counted: {construct}" for construct in self.unknown]

    def __str__(self) -> str:
        """Return a one-line summary: the collectives, the bytes sent, and the FLOPs in matrix products."""
        kinds = Counter((c.kind, "" if "pairs" in self.axes_label(c) else f" over {self.axes_label(c)}") for c in self)
        collectives = [f"{n} x {kind}{along}" if n > 1 else kind + along for (kind, along), n in kinds.items()]
        parts = [" + ".join(collectives) or "no collective", f"sends {self.bytes_sent:,} bytes"]
        parts += [f"computes {self.flops:,} FLOPs"] * bool(self.flops)
        parts += [f"{len(self.unknown)} not counted"] * bool(self.unknown)
        return " · ".join(parts)

    def __repr__(self) -> str:
        table = format_table(HEADERS, self.rows()) if self.collectives else "no communication"
        return "\n".join([table, "", *self._summary_lines()])

    def _repr_html_(self) -> str:
        table = _html_table(HEADERS, self.rows()) if self.collectives else "<p>no communication</p>"
        return table + "".join(f"<p>{html.escape(line)}</p>" for line in self._summary_lines())


@dataclass(frozen=True)
class Comparison:
    """The differences in cost between two programs."""

    before: Cost
    after: Cost

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return a row for each kind and axes whose cost changed: kind, axes, runs, bytes sent, and change in bytes."""
        before, after = (_by_kind_and_axes(report) for report in (self.before, self.after))
        rows = []
        for kind, along in sorted(before | after):
            (times, sent), (new_times, new_sent) = (side.get((kind, along), (0, 0)) for side in (before, after))
            if (times, sent) != (new_times, new_sent):
                rows.append(
                    (
                        kind,
                        along,
                        _format_change(times, new_times),
                        _format_change(sent, new_sent),
                        f"{new_sent - sent:+,}",
                    )
                )
        return rows

    def __bool__(self) -> bool:
        """Return whether the two costs differ."""
        return bool(self.rows()) or any(before != after for _, before, after in self._totals())

    def _totals(self) -> list[tuple[str, int, int]]:
        before, after = self.before, self.after
        totals = [
            ("bytes sent by the busiest device", before.bytes_sent, after.bytes_sent),
            ("FLOPs in matrix products per device", before.flops, after.flops),
            ("devices", before.devices, after.devices),
            ("constructs that aren't counted", len(before.unknown), len(after.unknown)),
        ]
        if before.memory and after.memory:
            totals.append(("peak memory per device", before.memory.peak, after.memory.peak))
        return totals

    def __repr__(self) -> str:
        headers = ("collective", "along", "times", "bytes sent", "change")
        rows = self.rows()
        lines = [format_table(headers, rows) if rows else "the same collectives", ""]
        lines += [
            f"{name}: {_format_change(b, a)}" for name, b, a in self._totals() if b != a or name.startswith("bytes")
        ]
        added = {(kind, along) for kind, along, *_ in rows} - _by_kind_and_axes(self.before).keys()
        sources = [row for row in self.after.sources() if row[:2] in added and row[4]]
        if sources:
            lines += ["", "new in the second program:", format_table(SOURCE_HEADERS, sources)]
        return "\n".join(lines)


def _by_kind_and_axes(report: Cost) -> dict[tuple[str, str], tuple[int, int]]:
    """Map each (kind, axes) of collectives to (number of runs, bytes sent by the busiest device)."""
    groups: dict[tuple[str, str], list[Collective]] = {}
    for c in report:
        groups.setdefault((c.kind, report.axes_label(c)), []).append(c)
    return {
        key: (sum(c.execution_count for c in collectives), _busiest(collectives, "bytes_sent"))
        for key, collectives in groups.items()
    }


def _format_change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,} -> {after:,}"


def _by_line(collective: Collective) -> list[Collective]:
    """Split a combined collective into one collective per line of Python."""
    lines = list(dict.fromkeys(collective.sources))
    if len(lines) < 2 or not len(collective.sources) == len(collective.operands) == len(collective.results):
        return [collective]
    parts = []
    for line in lines:
        indices = [i for i, source in enumerate(collective.sources) if source == line]
        operands, results = (tuple(arrays[i] for i in indices) for arrays in (collective.operands, collective.results))
        parts.append(replace(collective, operands=operands, results=results, sources=(line,) * len(indices)))
    return parts


def _source_label(collective: Collective) -> str:
    return (collective.source.label if collective.source else "") or "not recorded"


def _by_device(collectives: Iterable[Collective], measure: Measure) -> Counter[int]:
    total: Counter[int] = Counter()
    for c in collectives:
        for device in c.senders if measure == "bytes_sent" else c.participants:
            total[device] += getattr(c, measure)
    return total


def _busiest(collectives: Iterable[Collective], measure: Measure) -> int:
    return max(_by_device(collectives, measure).values(), default=0)


def format_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as aligned columns. Right-align columns of integers, and add thousands separators."""
    rows = [list(row) for row in rows]
    columns = []
    for i, header in enumerate(headers):
        cells = [row[i] for row in rows]
        numeric = bool(cells) and all(isinstance(cell, int) for cell in cells)
        texts = [header, *(f"{cell:,}" if numeric else str(cell) for cell in cells)]
        width = max(map(len, texts))
        columns.append([text.rjust(width) if numeric else text.ljust(width) for text in texts])
    return "\n".join("   ".join(line).rstrip() for line in zip(*columns, strict=True))


def _html_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def row(cells: Iterable[Any], tag: str) -> str:
        texts = (f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
        return (
            "<tr>" + "".join(f"<{tag} style='text-align:left'>{html.escape(text)}</{tag}>" for text in texts) + "</tr>"
        )

    return f"<table>{row(headers, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"
