"""Execute every lesson and compare its outputs, and check its guesses, exercises and structure."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from nbformat import NotebookNode

from tests import lesson_lint
from tests.conftest import ALL_CORES, execute_notebook, pin_to_cores
from tools.lessons import notebooks
from tools.reader import copies as copies

LESSONS = pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
NOT_ON_WINDOWS = ("16", "17")  # these lessons start and kill processes, and state that they need Linux or macOS


def module_of(path: Path) -> ModuleType:
    return importlib.import_module(f"exercises.ex{notebooks.number(path)}")


@pytest.fixture
def machine(path: Path) -> None:
    """Skip the lesson on a system that it doesn't support."""
    if sys.platform == "win32" and notebooks.number(path) in NOT_ON_WINDOWS:
        pytest.skip("needs Linux or macOS")


def guessed(path: Path) -> NotebookNode:
    """Return the lesson with the right answer filled in for each guess. The answers come from the exercise module."""
    return lesson_lint.with_right_guesses(notebooks.read(path), module_of(path))


@LESSONS
@pytest.mark.doubled
def test_each_cell_runs_twice_on_one_core(
    path: Path, tmp_path: Path, served: dict, machine: None, chip: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run each code cell twice, and each question a third time.

    The first run uses the committed cell, and must show the outputs on the page. The second uses the right guess, and
    must show the same outputs and accept the guess. The third uses the cell of a reader's copy, without a guess, and
    must show only that it waits for one.
    """
    for name, value in served.items():
        monkeypatch.setenv(name, value)
    committed = notebooks.read(path)
    copy = tmp_path / path.name
    notebooks.write(lesson_lint.double_cells(committed, guessed(path), copies.make_copy(committed)), copy)
    with pin_to_cores({min(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else ALL_CORES):
        run = execute_notebook(copy)
    for setup in [cell for cell in run.cells if cell.id in ("setup", "setup-again")]:
        [output] = setup.outputs = notebooks.merge_streams(setup.outputs)
        # the page shows the output in a clone, where the setup cell doesn't print this line
        line, output.text = output.text.split("\n", 1)
        assert line.startswith("Using the course in ")
    first, second = lesson_lint.select_run(run, second=False), lesson_lint.select_run(run, second=True)
    lesson_lint.fail_with(
        lesson_lint.stderr_faults(run)
        + lesson_lint.output_faults(committed, first)
        + lesson_lint.output_faults(first, lesson_lint.without_verdicts(second))
        + lesson_lint.reading_faults(second, module_of(path))
        + lesson_lint.leak_faults(run)
    )


@LESSONS
@pytest.mark.plain
def test_outputs_on_the_page_match_the_execution(path: Path, clone: Path, machine: None, chip: None) -> None:
    """Execute each cell once, on all cores and with the right guesses, and compare the outputs."""
    notebooks.write(guessed(path), clone / path.name)
    with pin_to_cores(ALL_CORES):
        run = execute_notebook(clone / path.name)
    lesson_lint.fail_with(
        lesson_lint.stderr_faults(run)
        + lesson_lint.output_faults(notebooks.read(path), lesson_lint.without_verdicts(run))
        + lesson_lint.reading_faults(run, module_of(path))
    )


@pytest.mark.once
def test_lessons_that_start_several_processes_state_their_requirements() -> None:
    """Test that the README, the lessons' requirements and the tests agree on which lessons Windows can't run."""
    cells = {notebooks.number(path): notebooks.read(path).cells for path in notebooks.lessons()}
    starts = [number for number, lesson in cells.items() if any("run_processes" in cell.source for cell in lesson)]
    assert tuple(starts) == NOT_ON_WINDOWS
    for number in starts:
        [plan] = [cell.source for cell in cells[number] if cell.id == "plan"]
        assert "Linux or macOS" in plan
    assert "every lesson except 16 and 17" in (notebooks.ROOT / "README.md").read_text(encoding="utf-8")


@LESSONS
@pytest.mark.once
def test_structure_badges_exercises_and_predictions(path: Path) -> None:
    """Check the lesson's structure, badges, exercises and predictions without executing it."""
    notebook, module = notebooks.read(path), module_of(path)
    lesson_lint.fail_with(
        lesson_lint.structure_faults(path)
        + lesson_lint.badge_faults(notebook, f"notebooks/{path.name}")
        + lesson_lint.exercise_faults(notebook, module)
        + lesson_lint.prediction_faults(notebook, module)
    )
