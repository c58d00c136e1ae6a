"""Write the records of lessons, utils/tpu_plans/NN.json: all that their cells compile for TPUs (`make record`).

Needs libtpu. Lesson 08 takes about four minutes on two cores. The tests compile the same anew and compare.
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


def lessons() -> list[str]:
    """The numbers of the lessons that compile for TPUs."""
    return [notebooks.number(path) for path in notebooks.lessons() if "tpu_compiler.start()" in path.read_text("utf-8")]


def compiled(lesson: str, labels: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """By label, what the compiler plans for the lesson's programs on this machine: for these labels, or for all. Under
    "plans"; under "coordinates", where the chips of the lesson's meshes lie.

    Raises RuntimeError where nothing can be compiled.
    """
    from utils.devices import start_devices

    space: dict[str, Any] = {"__name__": "lesson", "subprocess": subprocess, "sys": sys}  # as the setup cell leaves it
    ask = tpu_compiler.plan

    def plan(label: str, *arguments: Any, recompile: bool = True) -> tpu_compiler.Plan:
        return ask(label, *arguments, recompile=labels is None or label in labels)

    said = io.StringIO()
    with contextlib.redirect_stdout(said), mock.patch.object(tpu_compiler, "plan", plan):
        space["devices"] = start_devices(8)
        for cell in notebooks.read(notebooks.lesson(lesson)).cells:
            if cell.cell_type == "code" and cell.id not in ("setup", "script", "work-run"):
                exec(cell.source, space)
    found = tpu_compiler.as_record()
    if not found["plans"]:
        raise RuntimeError(f"nothing was compiled: {said.getvalue()[:500]}")
    return found


def main() -> None:
    made = {package: importlib.metadata.version(package) for package in ("jax", "libtpu")}
    for lesson in sys.argv[1:] or lessons():
        found = compiled(lesson)
        parts = [f'"made with": {json.dumps(made)}']
        for part, entries in found.items():
            lines = ",\n".join(f"{json.dumps(label)}: {json.dumps(entry)}" for label, entry in entries.items())
            parts.append(f"{json.dumps(part)}: {{\n{lines}\n}}")
        (tpu_compiler.RECORDS / f"{lesson}.json").write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")
        print(f"Recorded {len(found['plans'])} plans of lesson {lesson}.")


if __name__ == "__main__":
    main()
