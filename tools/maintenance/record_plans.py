"""Record the compilers' plans for a lesson's TPU and GPU programs in utils/compiled_plans/NN.json (`make record`).

This requires libtpu and, for the GPU programs of lesson 08, JAX's CUDA plugin. If a chip's compiler isn't installed,
the chip's recorded plans are kept. Lesson 08 takes about five minutes on two cores. The tests compile the same
programs, and compare their plans with the record.
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
from utils import aot_compiler


def lessons_with_plans() -> list[str]:
    """Return the numbers of the lessons that compile programs for chips that this machine doesn't have."""
    return [notebooks.number(path) for path in notebooks.lessons() if "aot_compiler" in path.read_text("utf-8")]


def compile_plans(lesson: str, labels: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Compile a lesson's programs with these labels (all programs if None), and return the plans by label.

    The plans are JSON-serializable. Raises RuntimeError if nothing was compiled.
    """
    from utils.devices import start_devices

    space: dict[str, Any] = {"__name__": "lesson", "subprocess": subprocess, "sys": sys}  # as in the setup cell
    original_plan = aot_compiler.compiled_plan

    def compiled_plan(label: str, *arguments: Any, recompile: bool = True) -> aot_compiler.CompiledPlan:
        recompile = labels is None or label in labels
        if recompile:
            try:
                aot_compiler.can_compile(aot_compiler.platform_of(label))
            except RuntimeError:  # the lesson doesn't start a compiler unless its reader asks for one
                aot_compiler.check_compilers("tpu", "cuda")
        return original_plan(label, *arguments, recompile=recompile)

    output = io.StringIO()
    with contextlib.redirect_stdout(output), mock.patch.object(aot_compiler, "compiled_plan", compiled_plan):
        space["devices"] = start_devices(8)
        for cell in notebooks.read(notebooks.lesson(lesson)).cells:
            if cell.cell_type == "code" and cell.id not in ("setup", "script", "work-run"):
                exec(cell.source.replace("COMPILE_ALL = False", "COMPILE_ALL = True"), space)
    if not aot_compiler.compiled_plans():
        raise RuntimeError(f"nothing was compiled: {output.getvalue()[:500]}")
    return {label: asdict(compiled) for label, compiled in aot_compiler.compiled_plans().items()}


def main() -> None:
    for lesson in sys.argv[1:] or lessons_with_plans():
        path = aot_compiler.RECORDS / f"{lesson}.json"
        record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"made with": {}, "plans": {}}
        plans = compile_plans(lesson)
        versions = {"jax": importlib.metadata.version("jax")}
        for platform in {aot_compiler.platform_of(label) for label in plans}:
            package = aot_compiler.PACKAGES[platform]
            versions[package] = importlib.metadata.version(package)
        for label, fields in record["plans"].items():
            if not aot_compiler.can_compile(aot_compiler.platform_of(label)):
                plans.setdefault(label, fields)
        versions = dict(sorted((record["made with"] | versions).items()))
        lines = ",\n".join(f"{json.dumps(label)}: {json.dumps(fields)}" for label, fields in plans.items())
        path.write_text(f'{{"made with": {json.dumps(versions)},\n"plans": {{\n{lines}\n}}}}\n', encoding="utf-8")
        print(f"Recorded {len(plans)} plans for lesson {lesson}.")


if __name__ == "__main__":
    main()
