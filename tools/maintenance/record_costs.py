"""Record how many bytes the lessons' programs send when compiled for CPUs, GPUs and TPUs (`make record-costs`).

Execute each lesson that calls `compare_compilers`, compile its programs with every compiler, and write
`utils/compiled_costs/NN.json`. `make check-costs` writes nothing, and fails if a record is out of date.
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
    """Return the numbers of the lessons that compare compiler_comparison."""
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


def main() -> None:
    arguments = sys.argv[1:]
    check = "--check" in arguments
    for lesson in [argument for argument in arguments if argument != "--check"] or lessons_with_costs():
        path = compiler_comparison.RECORDS / f"{lesson}.json"
        programs = compile_costs(lesson)
        if check:
            recorded = json.loads(path.read_text(encoding="utf-8"))["programs"]
            changed = [label for label in recorded | programs if recorded.get(label) != programs.get(label)]
            if changed:
                sys.exit(
                    f"Lesson {lesson}: with {compiler_comparison.versions()}, the bytes sent changed for {changed}."
                )
            print(f"Lesson {lesson}: all {len(programs)} programs send as many bytes as recorded.")
        else:
            record = {"versions": compiler_comparison.versions(), "programs": programs}
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            print(f"Recorded {len(programs)} programs of lesson {lesson}.")


if __name__ == "__main__":
    main()
