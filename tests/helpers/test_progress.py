"""What is kept of checks and guesses, and what is told of it."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exercises import ex02, progress
from utils import guess_gate

pytestmark = pytest.mark.once


@pytest.fixture
def kept(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    progress._warn_not_saved.cache_clear()
    return path


def wrong(row, column):
    return 0


def test_a_check_is_kept_and_says_what_is_next(kept, capsys):
    ex02.holder_of.check(wrong)
    assert json.loads(kept.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}
    assert "Lesson 02" not in capsys.readouterr().out
    ex02.holder_of.check(ex02.holder_of.function)
    names = progress.exercise_names("02")
    assert names[0] == "holder_of" and len(names) == 4
    assert capsys.readouterr().out == f"✓ holder_of: right.\nLesson 02: 1 of 4 exercises right. Next: {names[1]}.\n"
    ex02.holder_of.check(wrong)
    assert json.loads(kept.read_text()) == {"02": {"exercises": {"holder_of": "right"}}}  # what was solved stays so


def test_the_last_one(kept, capsys):
    names = progress.exercise_names("02")
    kept.write_text(json.dumps({"02": {"exercises": dict.fromkeys(names[1:], "right")}}))
    ex02.holder_of.check(ex02.holder_of.function)
    assert capsys.readouterr().out.endswith("\nLesson 02: all 4 exercises are right.\n")


def test_a_stub_is_not_kept(kept):
    def holder_of(row, column):
        """As shipped."""
        ...

    ex02.holder_of.check(holder_of)
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
    assert progress.count_results(progress.load_progress(), "02")[2:] == (0, 0)  # no guess was made
    ex02.first_cut.compare(6, 6)
    assert json.loads(kept.read_text()) == {"02": {"predictions": {"first_cut": "right later"}}}


def test_a_guess_may_be_an_array(kept, capsys):
    ex02.first_cut.compare(np.array(6), 6)
    assert capsys.readouterr().out.count(": right.") == 1


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"02": 5}', '{"02": {"exercises": []}}', '{"02": {"exercises": {"a": 1}}}', '{"a":' * 100_000],
    ids=["half", "list", "number", "inner list", "inner number", "deep"],
)
def test_a_damaged_file_is_set_aside(kept, capsys, damage):
    kept.write_text(damage)
    assert progress.load_progress() == {}
    assert capsys.readouterr().out == (
        "(progress.json is damaged. It was renamed to progress.damaged.json, and your progress starts over.)\n"
    )
    assert not kept.exists() and kept.with_name("progress.damaged.json").read_text() == damage
    kept.write_text("again")
    assert progress.load_progress() == {} and kept.with_name("progress.damaged-2.json").read_text() == "again"
    assert kept.with_name("progress.damaged.json").read_text() == damage


def test_a_write_that_fails_leaves_nothing_behind(kept, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(type(kept), "replace", full)
    ex02.holder_of.check(wrong)
    assert [path.name for path in kept.parent.iterdir()] == [".progress.json.lock"]  # empty, for the next note


def test_where_nothing_can_be_written_one_line_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    progress._warn_not_saved.cache_clear()
    for _ in range(2):
        ex02.holder_of.check(wrong)
    assert capsys.readouterr().out.count("isn't saved") == 1


def refuse(monkeypatch, folder, *names):
    """These methods of paths, in this folder, as it goes for who may not."""

    def refused(real, path, *args, **options):
        if path.parent == folder:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *args, **options)

    for name in names:
        monkeypatch.setattr(Path, name, functools.partialmethod(functools.partial(refused, getattr(Path, name))))


def test_a_file_that_cannot_be_read_stays_and_so_does_the_verdict(kept, monkeypatch, capsys):
    before = json.dumps({"02": {"exercises": {"half": "right"}}})
    kept.write_text(before)
    with monkeypatch.context() as meanwhile:
        refuse(meanwhile, kept.parent, "read_text")
        for _ in range(2):
            ex02.holder_of.check(ex02.holder_of.function)
        ex02.first_cut.compare(6, 6)
        assert progress.load_progress() == {}
    said = capsys.readouterr().out
    assert said.count("holder_of: right.\n") == 2 and said.count("\n✓ Your guess, 6: right.\n") == 1
    assert said.count(f"(Your progress isn't saved: {kept}: Permission denied.)\n") == 1
    assert said.endswith(f"\n(Your progress can't be read: {kept}: Permission denied.)\n")
    assert kept.read_text() == before


@pytest.mark.parametrize("content", ["{}", "{"])
def test_in_a_read_only_folder_the_verdict_stands(kept, monkeypatch, capsys, content):
    """Nothing can be written beside the file, nor the damaged one set aside."""
    kept.write_text(content)
    refuse(monkeypatch, kept.parent, "write_text", "replace")
    for _ in range(2):
        ex02.holder_of.check(ex02.holder_of.function)
    progress.show()
    said = capsys.readouterr().out
    assert said.count("holder_of: right.\n") == 2 and kept.read_text() == content
    assert said.count(f"(Your progress isn't saved: {kept}: Permission denied.)\n") == 1


def test_a_byte_order_mark_is_no_damage(kept, capsys):
    kept.write_text(json.dumps({"02": {"exercises": {"half": "right"}}}), encoding="utf-8-sig")
    assert progress.load_progress() == {"02": {"exercises": {"half": "right"}}} and capsys.readouterr().out == ""


def test_a_symbolic_link_stays_one(kept):
    there = kept.parent / "elsewhere" / "mine.json"
    there.parent.mkdir()
    kept.symlink_to(there)
    for damage in ("", "{"):
        there.write_text(damage) if damage else None
        ex02.holder_of.check(wrong)
        assert kept.is_symlink() and json.loads(there.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}


WRITER = """
import sys
from exercises import progress
for number in range(150):
    progress._record("02", "exercises", f"{sys.argv[1]} {number}", lambda before: "right")
"""


def test_two_kernels_that_write_at_once_lose_no_note(kept):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name], cwd=progress.ROOT) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    names = json.loads(kept.read_text())["02"]["exercises"]
    assert [sum(name[0] == writer for name in names) for writer in "ab"] == [150, 150]


def test_who_holds_the_lock_for_ever_stops_nobody(kept, monkeypatch):
    monkeypatch.setattr(progress, "LOCK_TIMEOUT", 0.1)
    with progress._hold_lock(kept):
        ex02.holder_of.check(wrong)
    assert json.loads(kept.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}


def test_where_the_system_has_no_locks_nobody_waits(kept, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr(progress.time, "sleep", lambda seconds: pytest.fail("it waits"))
    ex02.holder_of.check(wrong)
    assert json.loads(kept.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}


def test_off(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    ex02.holder_of.check(ex02.holder_of.function)
    assert capsys.readouterr().out == "✓ holder_of: right.\n"
    progress.show()
    assert capsys.readouterr().out.endswith("Nothing is saved here.\n")


def test_the_table(kept, capsys):
    kept.write_text(
        json.dumps(
            {"02": {"exercises": {"holder_of": "right", "half": "tried"}, "predictions": {"first_cut": "wrong"}}}
        )
    )
    progress.show()
    said = capsys.readouterr().out
    assert "\n02 sharding " in said and " 1 of 4 " in said and " 0 of 1\n" in said
    of = sum(len(progress.exercise_names(lesson)) for lesson in progress.lesson_notebooks())
    assert f" 1 of {of} " in said and "\nNext: spec_from_pieces, in lesson 02.\n" in said
    assert "  02  half (exercise)\n  02  first_cut (prediction)\n" in said and "holder_of" not in said
    assert str(kept) in said


def test_a_room(tmp_path, capsys):
    def cell(source, text):
        return {"cell_type": "code", "source": [source], "outputs": [{"output_type": "stream", "text": [text]}]}

    cells = [
        cell("ex02.holder_of.check(holder_of)\n# ex02.holder_of.hint()", "\x1b[1;32m✓\x1b[0m holder_of: right.\n"),
        cell("ex02.half.check(half)", "✗ Not yet. That is a quarter.\n"),
        cell("guess = 5\nex02.a.compare(guess, 5)", "\x1b[1;32m✓\x1b[0m Your guess, 5 rows: right.\n"),
        cell("guess = 6\nex02.b.compare(guess, 5)", "✗ Your guess, 6 columns, should be 5 columns: no half.\n"),
        cell("guess = None\nex02.c.compare(guess, 5)", ""),
        cell(f"guess = None  # {guess_gate.OR_SKIP}\nex02.d.compare(guess, 5)", f"{guess_gate.MESSAGE}\n"),
    ]
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna" / "02.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "ben.ipynb").write_text("{")
    for part in ("work", "work/kept", "notebooks"):  # of a clone: the copies in which she works count, and not the rest
        (tmp_path / "cleo" / part).mkdir(parents=True)
        (tmp_path / "cleo" / part / "02.ipynb").write_text(json.dumps({"cells": cells[2:]}))
    assert progress.show_group(tmp_path)
    out = capsys.readouterr().out
    assert re.findall(r"^cleo.(\S+).02", out, re.M) == ["work"]
    said = [line.split() for line in out.splitlines()]
    assert ["anna/02.ipynb", "1", "of", "2", "1", "of", "2"] in said
    assert ["ben.ipynb", "cannot", "be", "read", "-"] in said
    assert ["02", "holder_of", "1", "of", "1"] in said and ["02", "half", "0", "of", "1"] in said
    (tmp_path / "empty").mkdir()
    assert not progress.show_group(tmp_path / "empty")
    assert not progress.show_group(tmp_path / "nobody")
    out = capsys.readouterr().out
    assert f"No notebook in {tmp_path / 'empty'}." in out and f"No folder {tmp_path / 'nobody'}." in out


CELL = {"cell_type": "code", "source": "ex02.half.check(half)", "outputs": []}
ODD = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "a link to itself": lambda path: path.symlink_to(path),
    "no UTF-8": lambda path: path.write_bytes(b"\xff{"),
    "deep": lambda path: path.write_text("[" * 200_000),
    "a list": lambda path: path.write_text("[]"),
    "cells that are none": lambda path: path.write_text(json.dumps({"cells": [5]})),
    "a cell that is a list": lambda path: path.write_text(json.dumps({"cells": [[]]})),
    "no source": lambda path: path.write_text(json.dumps({"cells": [{**CELL, "source": None}]})),
    "output that is text": lambda path: path.write_text(json.dumps({"cells": [{**CELL, "outputs": "right"}]})),
    "outputs that are null": lambda path: path.write_text(json.dumps({"cells": [{**CELL, "outputs": None}]})),
    "text that is a number": lambda path: path.write_text(json.dumps({"cells": [{**CELL, "outputs": [{"text": 5}]}]})),
}


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_notebook_does_not_end_a_room(tmp_path, capsys, odd):
    if odd == "a pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("this system has none")
    ODD[odd](tmp_path / "anna.ipynb")
    (tmp_path / "ben.ipynb").write_text(json.dumps({"cells": [CELL]}), encoding="utf-8-sig")
    assert progress.show_group(tmp_path)
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["anna.ipynb", "cannot", "be", "read", "-"] in said
    assert ["ben.ipynb", "0", "of", "1", "0", "of", "0"] in said and ["02", "half", "0", "of", "1"] in said


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such name")
def test_a_name_that_is_no_utf_8_does_not_end_a_room(tmp_path):
    for name, content in [(b"ann\xe9.ipynb", "{"), (b"ben\xe9.ipynb", json.dumps({"cells": [CELL]}))]:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(content)
    command = [sys.executable, "-m", "exercises.progress", str(tmp_path)]
    room = subprocess.run(
        command, cwd=progress.ROOT, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    )
    assert room.returncode == 0 and "ann\ufffd.ipynb  cannot be read" in room.stdout.decode()
