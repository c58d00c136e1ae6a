"""What is kept of checks and guesses, and what is told of it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from exercises import ex02, progress
from utils.exercises import ex12
from utils.exercises.exercise import Verdict


@pytest.fixture
def kept(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    progress._not_kept.cache_clear()
    return path


def wrong(row, column):
    return 0


def test_a_check_is_kept_and_says_what_is_next(kept, capsys):
    ex02.holder_of.check(wrong)
    assert json.loads(kept.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}
    assert "Lesson 02" not in capsys.readouterr().out
    ex02.holder_of.check(ex02.holder_of.function)
    names = progress.exercises("02")
    assert names[0] == "holder_of" and len(names) == 4
    assert capsys.readouterr().out == f"holder_of: right.\nLesson 02: 1 of 4 exercises right. Next: {names[1]}.\n"
    ex02.holder_of.check(wrong)
    assert json.loads(kept.read_text()) == {"02": {"exercises": {"holder_of": "right"}}}  # what was solved stays so


def test_the_last_one(kept, capsys):
    names = progress.exercises("02")
    kept.write_text(json.dumps({"02": {"exercises": dict.fromkeys(names[1:], "right")}}))
    ex02.holder_of.check(ex02.holder_of.function)
    assert capsys.readouterr().out.endswith("\nLesson 02: all 4 exercises are right.\n")


def test_a_stub_and_a_judge_s_fault_are_not_kept(kept, monkeypatch):
    def holder_of(row, column):
        """As shipped."""
        ...

    ex02.holder_of.check(holder_of)
    monkeypatch.setattr(type(ex12.enough), "verdict", lambda *_: Verdict("wrong", "The check failed.", RuntimeError()))
    ex12.enough.check(wrong)  # of a lesson that has not moved
    assert not kept.exists()


def test_of_a_guess_the_first_counts(kept):
    for guess, state in [(5, "wrong"), (6, "right later"), (5, "right later")]:
        ex02.first_cut.compare(guess, 6)
        assert json.loads(kept.read_text()) == {"02": {"predictions": {"first_cut": state}}}
    kept.unlink()
    ex02.first_cut.compare(6, 6)
    ex02.first_cut.compare(5, 6)
    assert json.loads(kept.read_text()) == {"02": {"predictions": {"first_cut": "right at once"}}}


@pytest.mark.parametrize("before", [None, "six"], ids=["no guess", "in a form that cannot be read"])
def test_what_was_seen_before_a_guess_is_not_right_at_once(kept, before):
    """The cell shows its output either way."""
    ex02.first_cut.compare(before, 6)
    assert progress.counts(progress.read(), "02")[2:] == (0, 0)  # no guess was made
    ex02.first_cut.compare(6, 6)
    assert json.loads(kept.read_text()) == {"02": {"predictions": {"first_cut": "right later"}}}


def test_a_guess_may_be_an_array(kept, capsys):
    ex02.first_cut.compare(np.array(6), 6)
    assert capsys.readouterr().out.count(": right.") == 1


@pytest.mark.parametrize(
    "damage", ["{", "[]", '{"02": 5}', '{"02": {"exercises": []}}', '{"02": {"exercises": {"a": 1}}}']
)
def test_a_damaged_file_is_set_aside(kept, capsys, damage):
    kept.write_text(damage)
    assert progress.read() == {}
    assert capsys.readouterr().out == (
        "(progress.json could not be read. It is progress.damaged.json now, and your progress begins anew.)\n"
    )
    assert not kept.exists() and kept.with_name("progress.damaged.json").read_text() == damage
    kept.write_text("again")
    assert progress.read() == {} and kept.with_name("progress.damaged-2.json").read_text() == "again"
    assert kept.with_name("progress.damaged.json").read_text() == damage


def test_a_write_that_fails_leaves_nothing_behind(kept, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(type(kept), "replace", full)
    ex02.holder_of.check(wrong)
    assert list(kept.parent.iterdir()) == []


def test_where_nothing_can_be_written_one_line_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    progress._not_kept.cache_clear()
    for _ in range(2):
        ex02.holder_of.check(wrong)
    assert capsys.readouterr().out.count("is not kept") == 1


def test_off(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    ex02.holder_of.check(ex02.holder_of.function)
    assert capsys.readouterr().out == "holder_of: right.\n"
    progress.show()
    assert capsys.readouterr().out.endswith("Nothing is kept here.\n")


def test_the_table(kept, capsys):
    kept.write_text(
        json.dumps(
            {"02": {"exercises": {"holder_of": "right", "half": "tried"}, "predictions": {"first_cut": "wrong"}}}
        )
    )
    progress.show()
    said = capsys.readouterr().out
    assert "\n02 sharding " in said and " 1 of 4 " in said and " 0 of 1\n" in said
    assert "  02  half (exercise)\n  02  first_cut (prediction)\n" in said and "holder_of" not in said
    assert str(kept) in said


def test_a_room(tmp_path, capsys):
    def cell(source, text):
        return {"cell_type": "code", "source": [source], "outputs": [{"output_type": "stream", "text": [text]}]}

    cells = [
        cell("ex02.holder_of.check(holder_of)\n# ex02.holder_of.hint()", "holder_of: right.\n"),
        cell("ex02.half.check(half)", "Not yet. That is a quarter.\n"),
        cell("guess = 5\nex02.a.compare(guess, 5)", "Your guess, 5 rows: right.\n"),
        cell(
            "guess = (5, 6)\nex02.b.compare(guess, truth)",
            "rows: your guess, 5: right.\ncolumns: your guess, 6, is twice too large.\n",
        ),
        cell("guess = None\nex02.c.compare(guess, 5)", ""),
    ]
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "02.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "ben.ipynb").write_text("{")
    for part in ("work", "work/kept", "notebooks"):  # of a clone: the copies in which she works count, and not the rest
        (tmp_path / "cleo" / part).mkdir(parents=True)
        (tmp_path / "cleo" / part / "02.ipynb").write_text(json.dumps({"cells": cells[2:]}))
    assert progress.show_room(tmp_path)
    out = capsys.readouterr().out
    assert re.findall(r"^cleo.(\S+).02", out, re.M) == ["work"]
    said = [line.split() for line in out.splitlines()]
    assert ["anna/02.ipynb", "1", "of", "2", "1", "of", "2"] in said
    assert ["ben.ipynb", "cannot", "be", "read", "-"] in said
    assert ["02", "holder_of", "1", "of", "1"] in said and ["02", "half", "0", "of", "1"] in said
    (tmp_path / "empty").mkdir()
    assert not progress.show_room(tmp_path / "empty")
    assert not progress.show_room(tmp_path / "nobody")
    out = capsys.readouterr().out
    assert f"No notebook in {tmp_path / 'empty'}." in out and f"There is no folder {tmp_path / 'nobody'}." in out
