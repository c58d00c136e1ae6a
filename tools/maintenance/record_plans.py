"""Record everything that a lesson's cells compile for TPUs in utils/tpu_plans/NN.json: `make record`.

It needs libtpu, and lesson 08 takes about four minutes on two cores. The tests compile the same programs and compare.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import subprocess
import sys
from collections.abc import Collection
from typing import Any
from unittest import mock

from tools.lessons import notebooks
from utils import tpu_compiler


def lessons_with_plans() -> list[str]:
    """Return the numbers of the lessons that compile for TPUs."""
    return [notebooks.number(path) for path in notebooks.lessons() if "tpu_compiler.start()" in path.read_text("utf-8")]


def compile_plans(lesson: str, labels: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Compile the lesson's programs for TPUs on this machine, for all labels or for these.

    Return the compiler's plans by label, under "plans", and the coordinates of the lesson's meshes, under
    "coordinates". Raises RuntimeError if nothing can be compiled.
    """
    from utils.devices import start_devices

    space: dict[str, Any] = {"__name__": "lesson", "subprocess": subprocess, "sys": sys}  # what the setup cell defines
    ask = tpu_compiler.plan

    def plan(label: str, *arguments: Any, recompile: bool = True) -> tpu_compiler.Plan:
        return ask(label, *arguments, recompile=labels is None or label in labels)

    output = io.StringIO()
    with contextlib.redirect_stdout(output), mock.patch.object(tpu_compiler, "plan", plan):
        space["devices"] = start_devices(8)
        for cell in notebooks.read(notebooks.lesson(lesson)).cells:
            if cell.cell_type == "code" and cell.id not in ("setup", "script", "work-run"):
                exec(cell.source, space)
    results = tpu_compiler.as_record()
    if not results["plans"]:
        raise RuntimeError(f"nothing was compiled: {output.getvalue()[:500]}")
    return results


def main() -> None:
    versions = {package: importlib.metadata.version(package) for package in ("jax", "libtpu")}
    for lesson in sys.argv[1:] or lessons_with_plans():
        results = compile_plans(lesson)
        parts = [f'"made with": {json.dumps(versions)}']
        for part, entries in results.items():
            lines = ",\n".join(f"{json.dumps(label)}: {json.dumps(entry)}" for label, entry in entries.items())
            parts.append(f"{json.dumps(part)}: {{\n{lines}\n}}")
        (tpu_compiler.RECORDS / f"{lesson}.json").write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")
        print(f"Recorded {len(results['plans'])} plans of lesson {lesson}.")


if __name__ == "__main__":
    main()
