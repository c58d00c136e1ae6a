"""Compare the bytes that a program sends when compiled for CPUs, GPUs and TPUs, on a machine that has only CPUs."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from shardcost import cost
from shardcost.report import format_table

RECORDS = Path(__file__).with_name("compiled_costs")
# Map each column's header to its compile target and the packages that compiling for this target requires.
TARGETS = {
    "CPU": ("cpu:8", ()),
    "8 H100s": ("h100:8", ("jax-cuda12-plugin",)),
    "TPU v5e 2x4": ("v5e:2x4", ("libtpu",)),
}
TEMPORARIES = "temporaries"  # the key, among the kinds of collectives, of the bytes of temporaries

Program = tuple[Callable[..., Any], tuple[Any, ...]]
BytesByKind = dict[str, int]


class CompilerComparison:
    """The bytes that each device sends: `bytes_sent[program][column]` maps each kind of collective to its bytes."""

    def __init__(self, bytes_sent: Mapping[str, Mapping[str, BytesByKind]], note: str) -> None:
        self.bytes_sent = bytes_sent
        self.note = note

    def __str__(self) -> str:
        rows = []
        for name, columns in self.bytes_sent.items():
            cells = [_cell(without_temporaries(columns[column])).split(" + ") for column in TARGETS]
            for number, line in enumerate(itertools.zip_longest(*cells, fillvalue="")):  # one line per kind
                rows.append([name if number == 0 else "", *(f"+ {cell}" if number and cell else cell for cell in line)])
        return format_table(["bytes each device sends", *TARGETS], rows) + f"\n\n{self.note}"

    __repr__ = __str__

    def as_table(self, unit: str, size: float, temporaries: float | None = None) -> str:
        """Return a table with a row for each program and compiler, and a column for each kind of collective.

        Args:
            unit: the name of the unit in which the table gives the bytes sent, such as "rounds".
            size: the number of bytes in one unit.
            temporaries: if given, add a column with each program's temporaries, in units of this many bytes. This
                requires a comparison made by `compare_compilers(..., temporaries=True)`.
        """
        all_columns = [by_kind for columns in self.bytes_sent.values() for by_kind in columns.values()]
        kinds = sorted({kind for by_kind in all_columns for kind in by_kind} - {TEMPORARIES})
        heads = [unit, "compiler", *kinds, "all"] + [TEMPORARIES] * (temporaries is not None)
        rows = []
        for name, columns in self.bytes_sent.items():
            for number, (column, by_kind) in enumerate(columns.items()):
                sent = [by_kind.get(kind, 0) for kind in kinds]
                cells = [f"{bytes_sent / size:.2f}" if bytes_sent else "-" for bytes_sent in [*sent, sum(sent)]]
                held = [] if temporaries is None else [f"{by_kind.get(TEMPORARIES, 0) / temporaries:.1f}"]
                rows.append([name if number == 0 else "", column, *cells, *held])
        return format_table(heads, rows) + f"\n\n{self.note}"


def compare_compilers(
    record: str,
    programs: Mapping[str, Program],
    recompile: bool = False,
    compile_here: Collection[str] | None = None,
    temporaries: bool = False,
) -> CompilerComparison:
    """Compare the bytes that each program sends per device when it's compiled for eight CPUs, H100s and TPU chips.

    Compile the programs for the CPU on this machine. Read the other columns from a record, because compiling for those
    chips requires packages that most machines don't have.

    Args:
        record: the number of the lesson whose record is read, such as "03" for `compiled_costs/03.json`.
        programs: `{label: (function, arguments)}`, where the arguments are on a mesh of eight devices.
        recompile: compile for all columns on this machine. This needs JAX 0.10 or newer with libtpu, jax-cuda12-plugin,
            jax-cuda12-pjrt and ptxas (Linux on x86-64), and takes several seconds per program.
        compile_here: the labels of the programs to compile for the CPU on this machine (default: all). Omit programs
            that take many seconds to compile; their CPU column is then read from the record as well.
        temporaries: include each program's temporaries, the peak of the additional memory that it needs, both here
            and in the record. They're never checked, because they differ slightly between versions of JAX.

    Raises ValueError if the CPU column differs from the record, because then the program has changed and
    `make record-costs` must be run. Raises `shardcost.TargetError` if `recompile` is set and a required package is
    missing.
    """
    if recompile:
        compiled = {label: compile_for(TARGETS, *program, temporaries) for label, program in programs.items()}
        return CompilerComparison(compiled, f"Compiled here: {join_versions(versions())}.")
    here = [label for label in programs if compile_here is None or label in compile_here]
    compiled = {label: compile_for(["CPU"], *programs[label]) for label in here}
    saved = json.loads((RECORDS / f"{record}.json").read_text(encoding="utf-8"))
    for label, columns in compiled.items():
        recorded = saved["programs"].get(label)
        sent = without_temporaries(recorded["CPU"]) if recorded else {}
        if not recorded or sent != columns["CPU"]:
            raise ValueError(
                f"the record of lesson {record} has {_cell(sent)} for {label!r}, "
                f"which now sends {_cell(columns['CPU'])} on the CPU: the program has changed; run make record-costs"
            )
    note = f"Recorded with {join_versions(saved['versions'])}; compiled only, not run."
    if here:  # the loop above found the same bytes as in the record
        which = "" if len(here) == len(programs) else f" in {', '.join(here)}"
        note += f"\nFor the CPU, this machine's JAX sends the same bytes{which}."
    note += f"\nTo compile again, on Linux: make check-costs LESSONS={record}"
    return CompilerComparison({label: saved["programs"][label] for label in programs}, note)


def compile_for(
    columns: Iterable[str], function: Callable[..., Any], arguments: tuple[Any, ...], temporaries: bool = False
) -> dict[str, Any]:
    """Return the bytes that a function sends when compiled for these columns of `TARGETS`, by column and kind.

    With `temporaries`, each column also contains the bytes of the program's temporaries.
    """
    result: dict[str, Any] = {}
    for column in columns:
        target = {} if column == "CPU" else {"target": TARGETS[column][0]}
        compiled = cost(function, *arguments, **target)
        result[column] = compiled.by_kind()
        if temporaries and compiled.memory:
            result[column][TEMPORARIES] = compiled.memory.temporaries
    return result


def versions() -> dict[str, str]:
    """Return the installed versions of JAX and of the compilers, by package."""
    packages = ["jax", *(package for _, packages in TARGETS.values() for package in packages)]
    return {package: importlib.metadata.version(package) for package in packages}


def without_temporaries(by_kind: BytesByKind) -> BytesByKind:
    """Return the bytes sent by kind of collective, without the entry for temporaries."""
    return {kind: sent for kind, sent in by_kind.items() if kind != TEMPORARIES}


def _cell(by_kind: BytesByKind) -> str:
    return " + ".join(f"{kind} {sent:,}" for kind, sent in by_kind.items()) or "nothing"


def join_versions(versions: Mapping[str, str]) -> str:
    """Return packages and versions as text, such as "jax 0.12.0, libtpu 0.0.52"."""
    return ", ".join(f"{package} {version}" for package, version in versions.items())
