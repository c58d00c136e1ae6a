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
import subprocess
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
        # Skip the cells around the lesson's script, which write files and compare nothing.
        sources = {c.id: c.source for c in cells if c.id not in ("setup", "script") and not c.id.startswith("work-")}
        execute(sources, devices=start_devices(8))
    return results


def execute(sources: Mapping[str, str], **names: Any) -> dict[str, Any]:
    """Execute a lesson's cells, whose sources are given by id, as the module `lesson`, and return the module's names.

    Let `inspect.getsource` find the cells' functions, because lesson 16 sends functions to other processes.
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
    """Return the labels of the programs that don't send the recorded bytes, or that are in only one of the mappings.

    Temporaries aren't compared, because they differ slightly from version to version.
    """

    def sent(columns: Mapping[str, compiler_comparison.BytesByKind] | None) -> dict[str, Any] | None:
        if columns is None:
            return None
        return {key: compiler_comparison.without_temporaries(kinds) for key, kinds in columns.items()}

    return [label for label in {**recorded, **programs} if sent(recorded.get(label)) != sent(programs.get(label))]


def check_or_record(lesson: str, check: bool) -> str:
    """Compile a lesson's programs and print the bytes sent. Record them, or return how they differ from the record.

    Return "" if they don't differ, or if they were recorded.
    """
    path = compiler_comparison.RECORDS / f"{lesson}.json"
    programs = compile_costs(lesson)
    note = f"Compiled here: {compiler_comparison.join_versions(compiler_comparison.versions())}."
    print(f"Lesson {lesson}\n{compiler_comparison.CompilerComparison(programs, note)}\n", flush=True)
    if not check:
        record = {"versions": compiler_comparison.versions(), "programs": programs}
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        return ""
    changed = changed_programs(json.loads(path.read_text(encoding="utf-8"))["programs"], programs)
    return f"Lesson {lesson}: the bytes sent differ from the record for {', '.join(changed)}." if changed else ""


def main() -> None:
    """Record or check the lessons named on the command line or, by default, all lessons that compare compilers."""
    arguments = sys.argv[1:]
    check = "--check" in arguments
    lessons = [argument for argument in arguments if argument != "--check"] or lessons_with_costs()
    if len(lessons) == 1:
        if fault := check_or_record(lessons[0], check):
            sys.exit(fault)
        return
    # Each lesson has a process of its own, because lessons change JAX's settings: 02 sets a mesh, and 14 sets float64.
    options = ["--check"] if check else []
    faulty = [
        lesson
        for lesson in lessons
        if subprocess.run([sys.executable, "-m", "tools.maintenance.record_costs", *options, lesson]).returncode
    ]
    if faulty:
        sys.exit(f"Failed for {', '.join(faulty)} (see above). make record-costs writes new records.")
    if check:
        print("All programs send as many bytes as recorded.")


if __name__ == "__main__":
    main()
