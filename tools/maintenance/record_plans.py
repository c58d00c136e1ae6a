"""Record everything that a lesson's cells compile for TPUs and GPUs in utils/tpu_plans/NN.json: `make record`.

It needs libtpu and, for lesson 08's GPUs, JAX's CUDA plugin. Plans for a chip whose compiler is missing here keep their
record. Lesson 08 takes about five minutes on two cores. The tests compile the same programs and compare.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import subprocess
import sys
from collections.abc import Collection
from dataclasses import asdict
from typing import Any
from unittest import mock

from tools.lessons import notebooks
from utils import tpu_compiler


def lessons_with_plans() -> list[str]:
    """Return the numbers of the lessons that compile for chips that aren't there."""
    return [notebooks.number(path) for path in notebooks.lessons() if "tpu_compiler" in path.read_text("utf-8")]


def compile_plans(lesson: str, labels: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Compile the lesson's programs on this machine, for all labels or for these.

    Return the compilers' plans by label, as values that JSON can represent. Raises RuntimeError if nothing can be
    compiled.
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
    if not tpu_compiler.compiled_plans():
        raise RuntimeError(f"nothing was compiled: {output.getvalue()[:500]}")
    return {label: asdict(compiled) for label, compiled in tpu_compiler.compiled_plans().items()}


def main() -> None:
    for lesson in sys.argv[1:] or lessons_with_plans():
        path = tpu_compiler.RECORDS / f"{lesson}.json"
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"made with": {}, "plans": {}}
        plans = compile_plans(lesson)
        versions = {"jax": importlib.metadata.version("jax")}
        for platform in {tpu_compiler.platform_of(label) for label in plans}:
            package = tpu_compiler.PACKAGES[platform]
            versions[package] = importlib.metadata.version(package)
        for label, fields in record["plans"].items():
            if not tpu_compiler.can_compile(tpu_compiler.platform_of(label)):
                plans.setdefault(label, fields)
        versions = dict(sorted((record["made with"] | versions).items()))
        lines = ",\n".join(f"{json.dumps(label)}: {json.dumps(fields)}" for label, fields in plans.items())
        path.write_text(f'{{"made with": {json.dumps(versions)},\n"plans": {{\n{lines}\n}}}}\n', encoding="utf-8")
        print(f"Recorded {len(plans)} plans of lesson {lesson}.")


if __name__ == "__main__":
    main()
