"""Record how many bytes the lessons' programs send when compiled for CPUs, GPUs and TPUs (`make record-costs`).

Execute each lesson that calls `compare_compilers`, compile its programs with every compiler, and write
`utils/compiled_costs/NN.json`. `make check-costs` writes nothing, and fails if a record is out of date. Both print the
bytes sent, with a column for each compiler.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import sys
from collections.abc import Collection, Mapping
from types import ModuleType
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
        cells = (cell for cell in notebooks.read(notebooks.lesson(lesson)).cells if cell.cell_type == "code")
        # The cells around the lesson's script write files, and compare nothing.
        sources = {c.id: c.source for c in cells if c.id not in ("setup", "script") and not c.id.startswith("work-")}
        execute(sources, devices=start_devices(8))
    return results


def execute(sources: Mapping[str, str], **names: Any) -> dict[str, Any]:
    """Execute a lesson's cells, given by their ids, as the module `lesson`, and return the names that it then defines.

    `inspect.getsource` finds the source of their functions, because lesson 16 sends functions to other processes.
    """
    module = ModuleType("lesson")
    vars(module).update(names)
    with mock.patch.dict(sys.modules, lesson=module):
        for cell, source in sources.items():
            file = f"<cell {cell}>"
            linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
            exec(compile(source, file, "exec"), vars(module))
    return vars(module)


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
