"""Test a question's cell in a reader's copy: without a guess, it runs, but withholds the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from exercises import ex02
from tools.lessons import notebooks
from tools.reader import copies
from utils import guess_gate

QUESTION = "guess = None  # rows, or guess = skip\nwhole = 6\nprint(whole)\ncompare(guess, whole)"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Return a shell in which `compare` checks guesses at one question and saves progress in progress.json."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()  # IPython's `display` sends its output to this instance
    shell.user_ns["compare"] = ex02.first_cut.compare
    for _ in range(2):  # as if a reader ran the setup cell twice
        guess_gate.wait_for_guesses(shell)
    yield shell
    InteractiveShell.clear_instance()


def saved_progress(folder: Path) -> dict:
    path = folder / "progress.json"
    return json.loads(path.read_text()) if path.exists() else {}


def test_without_a_guess_a_cell_runs_and_its_output_is_withheld(shell, tmp_path, capsys):
    shell.run_cell(QUESTION)
    assert capsys.readouterr().out == f"{guess_gate.MESSAGE}\n" and saved_progress(tmp_path) == {}
    shell.run_cell("print(whole + 1)")  # later cells can use the variables
    shell.run_cell(QUESTION.replace("None", "6"))
    assert capsys.readouterr().out == "7\n6\n✓ Your guess, 6: right.\n"
    assert saved_progress(tmp_path) == {"02": {"predictions": {"first_cut": "right at once"}}}


def test_skip_shows_the_answer_and_uses_up_the_guess(shell, tmp_path, capsys):
    shell.run_cell(QUESTION.replace("None", "skip"))
    assert capsys.readouterr().out == "6\n"
    assert saved_progress(tmp_path) == {"02": {"predictions": {"first_cut": "seen"}}}


@pytest.mark.parametrize("last_line", ["whole", "display(whole)", "whole;", "[print(whole), whole][1]"])
def test_the_value_of_the_last_line_is_withheld(shell, capsys, last_line):
    shell.run_cell(f"from IPython.display import display\n{QUESTION}")
    capsys.readouterr()
    shell.run_cell(f"{QUESTION}\n{last_line}")
    assert capsys.readouterr().out == f"{guess_gate.MESSAGE}\n"
    shell.run_cell("whole")  # other cells still show their last line
    assert capsys.readouterr().out.endswith("6\n")


@pytest.mark.parametrize("answer", ["6  # rows, or guess = skip", "6", "skip"])
def test_a_picture_of_the_answer_is_withheld_until_the_question_is_answered(shell, capsys, answer):
    picture = f"{guess_gate.AFTER_GUESS}print('a picture')"
    for before in ("", QUESTION):  # in the first iteration, no question has run yet
        shell.run_cell(before)
        capsys.readouterr()
        shell.run_cell(picture)
        assert capsys.readouterr().out == f"{guess_gate.MESSAGE_AFTER}\n"
    shell.run_cell(f"guess = {answer}\ncompare(guess, 6)")
    capsys.readouterr()
    shell.run_cell(picture)
    assert capsys.readouterr().out == "a picture\n"


def test_an_error_is_shown_without_a_guess(shell, capsys):
    shell.run_cell(f"{QUESTION}\nprint(missing)")
    output = capsys.readouterr().out
    assert output.startswith("6\n") and "NameError" in output and guess_gate.MESSAGE not in output


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_every_question_waits_in_a_copy_but_not_in_a_lesson(path):
    lesson = notebooks.read(path)
    asks = [cell.source.startswith("guess = None") for cell in lesson.cells]
    assert not any(guess_gate.UNANSWERED.match(cell.source) for cell in lesson.cells)
    assert [bool(guess_gate.UNANSWERED.match(cell.source)) for cell in copies.make_copy(lesson).cells] == asks
