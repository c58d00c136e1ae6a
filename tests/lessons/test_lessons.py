"""Every lesson: executed, true, alone, each cell twice, its exercises and its structure."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from tests import checks
from tests.conftest import Execute, execute
from tools import notebooks

LESSONS = pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)


@LESSONS
def test_outputs_on_the_page_are_what_execution_gives(path: Path, executed: Execute) -> None:
    run = executed(path)
    checks.refuse(checks.stderr_faults(run) + checks.output_faults(notebooks.read(path), run))


@LESSONS
def test_alone_each_cell_twice_on_one_core(
    path: Path, tmp_path: Path, served: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in served.items():
        monkeypatch.setenv(name, value)
    committed = notebooks.read(path)
    copy = tmp_path / path.name
    notebooks.write(checks.doubled(committed), copy)
    run = _on_one_core(copy)
    for name, says in (("setup", "Fetching the course's helpers, once"), ("setup-again", "Using the helpers in ")):
        setup = next(cell for cell in run.cells if cell.id == name)
        [output] = setup.outputs = notebooks.merge_streams(setup.outputs)
        line, output.text = output.text.split("\n", 1)  # the page shows the setup in the clone, which says less
        assert line.startswith(says)
    first, second = checks.each_once(run, second=False), checks.each_once(run, second=True)
    checks.refuse(checks.output_faults(committed, first) + checks.output_faults(first, second))


def _on_one_core(path: Path) -> Any:
    """Execute with a single core, where the system can pin a process; the kernel inherits it."""
    if not hasattr(os, "sched_setaffinity"):
        return execute(path)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return execute(path)
    finally:
        os.sched_setaffinity(0, cores)


@LESSONS
def test_exercises(path: Path) -> None:
    module = importlib.import_module(f"utils.exercises.ex{notebooks.number(path)}")
    checks.refuse(checks.exercise_faults(notebooks.read(path), module))


@LESSONS
def test_predictions(path: Path, executed: Execute, tmp_path: Path) -> None:
    """The right guesses, worked out by hand, are right by what the cells count."""
    module = importlib.import_module(f"utils.exercises.ex{notebooks.number(path)}")
    committed = notebooks.read(path)
    checks.refuse(checks.prediction_faults(committed, module))
    if not checks.predictions_of(module):
        return
    guesses = importlib.import_module(f"tests.wrong_answers.ex{notebooks.number(path)}").GUESSES
    copy = tmp_path / f"{path.stem}_guessed.ipynb"
    notebooks.write(checks.guessed(committed, module, guesses), copy)
    checks.refuse(checks.reading_faults(executed(copy), module, guesses))


@LESSONS
def test_structure(path: Path) -> None:
    checks.refuse(checks.structure_faults(path))


@LESSONS
def test_badges(path: Path) -> None:
    checks.refuse(checks.badge_faults(notebooks.read(path), f"notebooks/{path.name}"))
