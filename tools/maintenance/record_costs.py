"""Record how many bytes the lessons' programs send when compiled for CPUs, GPUs and TPUs (`make record-costs`).

Execute each lesson that calls `compare_compilers`, compile its programs with every compiler, and write
`utils/compiled_costs/NN.json`. `make check-costs` writes nothing, and fails if a record is out of date. Both print the
bytes sent, with a column for each compiler.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Collection, Mapping
from typing import Any
from unittest import mock

from tools.lessons import notebooks
from utils import compiler_comparison


def lessons_with_costs() -> list[str]:
    """Return the numbers of the lessons whose programs are compiled by all compilers."""
    return [notebooks.number(path) for path in notebooks.lessons() if "compare_compilers" in path.read_text("utf-8")]


def compile_costs(
    lesson: str, columns: Collection[str] = tuple(compiler_comparison.TARGETS)
) -> dict[str, dict[str, Any]]:
    """Execute a lesson, and return the bytes that each of its compared programs sends, by label and column."""
    from utils.devices import start_devices

    results: dict[str, dict[str, Any]] = {}

    def compile_and_keep(
        record: str, programs: Mapping[str, compiler_comparison.Program], **options: Any
    ) -> compiler_comparison.CompilerComparison:
        temporaries = options.get("temporaries", False)
        compiled = {
            label: compiler_comparison.compile_for(columns, *program, temporaries)
            for label, program in programs.items()
        }
        results.update(compiled)
        all_columns = {
            label: {key: {} for key in compiler_comparison.TARGETS} | kinds for label, kinds in compiled.items()
        }
        return compiler_comparison.CompilerComparison(all_columns, "")

    with (
        contextlib.redirect_stdout(io.StringIO()),
        mock.patch.object(compiler_comparison, "compare_compilers", compile_and_keep),
    ):
        space: dict[str, Any] = {"__name__": "lesson", "devices": start_devices(8)}
        for cell in notebooks.read(notebooks.lesson(lesson)).cells:
            if cell.cell_type == "code" and cell.id not in ("setup", "script", "work-run"):
                exec(cell.source, space)
    return results


def changed_programs(recorded: Mapping[str, Any], programs: Mapping[str, Any]) -> list[str]:
    """Return the labels of the programs that send other bytes than recorded, or that only one side has.

    Temporaries aren't compared, because they differ slightly from version to version.
    """

    def sent(columns: Mapping[str, compiler_comparison.BytesByKind] | None) -> dict[str, Any] | None:
        if columns is None:
            return None
        return {key: compiler_comparison.without_temporaries(kinds) for key, kinds in columns.items()}

    return [label for label in {**recorded, **programs} if sent(recorded.get(label)) != sent(programs.get(label))]


def main() -> None:
    """Record or check the lessons that the command line names. Without any, do so for all lessons with a record."""
    arguments = sys.argv[1:]
    check = "--check" in arguments
    faults = []
    for lesson in [argument for argument in arguments if argument != "--check"] or lessons_with_costs():
        path = compiler_comparison.RECORDS / f"{lesson}.json"
        programs = compile_costs(lesson)
        note = f"Compiled here: {compiler_comparison.join_versions(compiler_comparison.versions())}."
        print(f"Lesson {lesson}\n{compiler_comparison.CompilerComparison(programs, note)}\n", flush=True)
        if check:
            recorded = json.loads(path.read_text(encoding="utf-8"))["programs"]
            if changed := changed_programs(recorded, programs):
                faults.append(f"Lesson {lesson}: the bytes sent differ from the record for {', '.join(changed)}.")
        else:
            record = {"versions": compiler_comparison.versions(), "programs": programs}
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if faults:
        sys.exit("\n".join([*faults, "make record-costs writes a new record."]))
    if check:
        print("All programs send as many bytes as recorded.")


if __name__ == "__main__":
    main()
