"""A copy's question without a guess: its cell runs and shows no answer, and no guess is spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from exercises import ex02
from tools.lessons import notebooks
from tools.reader import work
from utils import asked

ASKED = "guess = None  # rows, or guess = skip\nwhole = 6\nprint(whole)\ncompare(guess, whole)"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A reader's, with one question; its notes are in progress.json."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    found = InteractiveShell()
    found.user_ns["compare"] = ex02.first_cut.compare
    for _ in range(2):  # the setup cell runs twice
        asked.wait_for_guesses(found)
    return found


def noted(folder: Path) -> dict:
    path = folder / "progress.json"
    return json.loads(path.read_text()) if path.exists() else {}


def test_without_a_guess_the_cell_runs_and_shows_nothing(shell, tmp_path, capsys):
    shell.run_cell(ASKED)
    assert capsys.readouterr().out == f"{asked.SAID}\n" and noted(tmp_path) == {}
    shell.run_cell("print(whole + 1)")  # what a later cell needs is there
    shell.run_cell(ASKED.replace("None", "6"))
    assert capsys.readouterr().out == "7\n6\n✓ Your guess, 6: right.\n"
    assert noted(tmp_path) == {"02": {"predictions": {"first_cut": "right at once"}}}


def test_skip_shows_the_answer_and_spends_the_guess(shell, tmp_path, capsys):
    shell.run_cell(ASKED.replace("None", "skip"))
    assert capsys.readouterr().out == "6\n"
    assert noted(tmp_path) == {"02": {"predictions": {"first_cut": "seen"}}}


def test_an_error_in_such_a_cell_is_shown(shell, capsys):
    shell.run_cell(f"{ASKED}\nprint(missing)")
    said = capsys.readouterr().out
    assert said.startswith("6\n") and "NameError" in said and asked.SAID not in said


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_each_question_of_a_copy_waits_and_none_of_a_lesson(path):
    lesson = notebooks.read(path)
    asks = [cell.source.startswith("guess = None") for cell in lesson.cells]
    assert not any(asked.ASKS.match(cell.source) for cell in lesson.cells)
    assert [bool(asked.ASKS.match(cell.source)) for cell in work.copy(lesson).cells] == asks
