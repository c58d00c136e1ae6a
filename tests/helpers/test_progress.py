"""Test the saved progress, and the messages and tables about it."""

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
def progress_path(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    progress._warn_not_saved.cache_clear()
    return path


def wrong(row, column):
    return 0


def test_a_check_is_saved_and_prints_the_next_exercise(progress_path, capsys):
    ex02.holder_of.check(wrong)
    assert json.loads(progress_path.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}
    assert "Lesson 02" not in capsys.readouterr().out
    ex02.holder_of.check(ex02.holder_of.function)
    names = progress.exercise_names("02")
    assert names[0] == "holder_of" and len(names) == 4
    assert capsys.readouterr().out == f"✓ holder_of: right.\nLesson 02: 1 of 4 exercises right. Next: {names[1]}.\n"
    ex02.holder_of.check(wrong)
    solved = {"02": {"exercises": {"holder_of": "right"}}}
    assert json.loads(progress_path.read_text()) == solved  # a solved exercise stays solved


def test_the_last_exercise(progress_path, capsys):
    names = progress.exercise_names("02")
    progress_path.write_text(json.dumps({"02": {"exercises": dict.fromkeys(names[1:], "right")}}))
    ex02.holder_of.check(ex02.holder_of.function)
    assert capsys.readouterr().out.endswith("\nLesson 02: all 4 exercises are right.\n")


def test_a_stub_is_not_saved(progress_path):
    def holder_of(row, column):
        """A stub."""
        ...

    ex02.holder_of.check(holder_of)
    assert not progress_path.exists()


def test_only_the_first_guess_counts(progress_path):
    for guess, state in [(5, "wrong"), (6, "right later"), (5, "right later")]:
        ex02.first_cut.compare(guess, 6)
        assert json.loads(progress_path.read_text()) == {"02": {"predictions": {"first_cut": state}}}
    progress_path.unlink()
    ex02.first_cut.compare(6, 6)
    ex02.first_cut.compare(5, 6)
    assert json.loads(progress_path.read_text()) == {"02": {"predictions": {"first_cut": "right at once"}}}


@pytest.mark.parametrize("before", [None, "six"], ids=["no guess", "of the wrong type"])
def test_a_guess_after_seeing_the_answer_is_right_later(progress_path, before):
    """Test that a guess doesn't count as right on the first try if the answer has already been shown."""
    ex02.first_cut.compare(before, 6)
    assert progress.count_results(progress.load_progress(), "02")[2:] == (0, 0)  # `before` doesn't count as a guess
    ex02.first_cut.compare(6, 6)
    assert json.loads(progress_path.read_text()) == {"02": {"predictions": {"first_cut": "right later"}}}


def test_a_guess_may_be_an_array(progress_path, capsys):
    ex02.first_cut.compare(np.array(6), 6)
    assert capsys.readouterr().out.count(": right.") == 1


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"02": 5}', '{"02": {"exercises": []}}', '{"02": {"exercises": {"a": 1}}}', '{"a":' * 100_000],
    ids=["half", "list", "number", "inner list", "inner number", "deep"],
)
def test_a_damaged_file_is_renamed(progress_path, capsys, damage):
    progress_path.write_text(damage)
    assert progress.load_progress() == {}
    assert capsys.readouterr().out == (
        "(progress.json is damaged. It was renamed to progress.damaged.json, and your progress starts over.)\n"
    )
    assert not progress_path.exists() and progress_path.with_name("progress.damaged.json").read_text() == damage
    progress_path.write_text("again")
    assert progress.load_progress() == {} and progress_path.with_name("progress.damaged-2.json").read_text() == "again"
    assert progress_path.with_name("progress.damaged.json").read_text() == damage


def test_a_failed_write_leaves_no_file(progress_path, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(type(progress_path), "replace", full)
    ex02.holder_of.check(wrong)
    assert [path.name for path in progress_path.parent.iterdir()] == [".progress.json.lock"]  # the lock file remains


def test_an_unwritable_file_is_reported_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    progress._warn_not_saved.cache_clear()
    for _ in range(2):
        ex02.holder_of.check(wrong)
    assert capsys.readouterr().out.count("isn't saved") == 1


def deny_access(monkeypatch, folder, *names):
    """Make these methods of Path raise PermissionError for files in a folder."""

    def raise_if_in_folder(real, path, *args, **options):
        if path.parent == folder:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *args, **options)

    for name in names:
        monkeypatch.setattr(
            Path, name, functools.partialmethod(functools.partial(raise_if_in_folder, getattr(Path, name)))
        )


def test_an_unreadable_file_is_left_alone_and_the_verdict_printed(progress_path, monkeypatch, capsys):
    before = json.dumps({"02": {"exercises": {"half": "right"}}})
    progress_path.write_text(before)
    with monkeypatch.context() as meanwhile:
        deny_access(meanwhile, progress_path.parent, "read_text")
        for _ in range(2):
            ex02.holder_of.check(ex02.holder_of.function)
        ex02.first_cut.compare(6, 6)
        assert progress.load_progress() == {}
    output = capsys.readouterr().out
    assert output.count("holder_of: right.\n") == 2 and output.count("\n✓ Your guess, 6: right.\n") == 1
    assert output.count(f"(Your progress isn't saved: {progress_path}: Permission denied.)\n") == 1
    assert output.endswith(f"\n(Your progress can't be read: {progress_path}: Permission denied.)\n")
    assert progress_path.read_text() == before


@pytest.mark.parametrize("content", ["{}", "{"])
def test_the_verdict_is_printed_in_a_read_only_folder(progress_path, monkeypatch, capsys, content):
    """Test that a check works in a read-only folder, where no file can be written or renamed."""
    progress_path.write_text(content)
    deny_access(monkeypatch, progress_path.parent, "write_text", "replace")
    for _ in range(2):
        ex02.holder_of.check(ex02.holder_of.function)
    progress.show()
    output = capsys.readouterr().out
    assert output.count("holder_of: right.\n") == 2 and progress_path.read_text() == content
    assert output.count(f"(Your progress isn't saved: {progress_path}: Permission denied.)\n") == 1


def test_a_byte_order_mark_is_accepted(progress_path, capsys):
    progress_path.write_text(json.dumps({"02": {"exercises": {"half": "right"}}}), encoding="utf-8-sig")
    assert progress.load_progress() == {"02": {"exercises": {"half": "right"}}} and capsys.readouterr().out == ""


def test_a_symbolic_link_is_kept(progress_path):
    target = progress_path.parent / "elsewhere" / "mine.json"
    target.parent.mkdir()
    progress_path.symlink_to(target)
    for damage in ("", "{"):
        target.write_text(damage) if damage else None
        ex02.holder_of.check(wrong)
        assert progress_path.is_symlink() and json.loads(target.read_text()) == {
            "02": {"exercises": {"holder_of": "tried"}}
        }


WRITER = """
import sys
from exercises import progress
for number in range(150):
    progress._record("02", "exercises", f"{sys.argv[1]} {number}", lambda before: "right")
"""


def test_two_kernels_can_write_at_once(progress_path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name], cwd=progress.ROOT) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    names = json.loads(progress_path.read_text())["02"]["exercises"]
    assert [sum(name[0] == writer for name in names) for writer in "ab"] == [150, 150]


def test_a_lock_is_not_waited_for_forever(progress_path, monkeypatch):
    monkeypatch.setattr(progress, "LOCK_TIMEOUT", 0.1)
    with progress._hold_lock(progress_path):
        ex02.holder_of.check(wrong)
    assert json.loads(progress_path.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}


def test_nothing_waits_where_locks_are_not_supported(progress_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def raise_error(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", raise_error)
    monkeypatch.setattr(progress.time, "sleep", lambda seconds: pytest.fail("progress waits for the lock"))
    ex02.holder_of.check(wrong)
    assert json.loads(progress_path.read_text()) == {"02": {"exercises": {"holder_of": "tried"}}}


def test_saving_can_be_switched_off(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_PROGRESS", "off")
    ex02.holder_of.check(ex02.holder_of.function)
    assert capsys.readouterr().out == "✓ holder_of: right.\n"
    progress.show()
    assert capsys.readouterr().out.endswith("Nothing is saved.\n")


def test_the_table_of_results(progress_path, capsys):
    progress_path.write_text(
        json.dumps(
            {"02": {"exercises": {"holder_of": "right", "half": "tried"}, "predictions": {"first_cut": "wrong"}}}
        )
    )
    progress.show()
    output = capsys.readouterr().out
    assert "\n02 sharding " in output and " 1 of 4 " in output and " 0 of 1\n" in output
    total = sum(len(progress.exercise_names(lesson)) for lesson in progress.lesson_notebooks())
    assert f" 1 of {total} " in output and "\nNext: spec_from_pieces, in lesson 02.\n" in output
    assert "  02  half (exercise)\n  02  first_cut (prediction)\n" in output and "holder_of" not in output
    assert str(progress_path) in output


def test_the_results_of_a_group(tmp_path, capsys):
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
    for part in ("work", "work/kept", "notebooks"):  # in a clone, only the copies in work/ count
        (tmp_path / "cleo" / part).mkdir(parents=True)
        (tmp_path / "cleo" / part / "02.ipynb").write_text(json.dumps({"cells": cells[2:]}))
    assert progress.show_group(tmp_path)
    out = capsys.readouterr().out
    assert re.findall(r"^cleo.(\S+).02", out, re.M) == ["work"]
    output = [line.split() for line in out.splitlines()]
    assert ["anna/02.ipynb", "1", "of", "2", "1", "of", "2"] in output
    assert ["ben.ipynb", "cannot", "be", "read", "-"] in output
    assert ["02", "holder_of", "1", "of", "1"] in output and ["02", "half", "0", "of", "1"] in output
    (tmp_path / "empty").mkdir()
    assert not progress.show_group(tmp_path / "empty")
    assert not progress.show_group(tmp_path / "nobody")
    out = capsys.readouterr().out
    assert f"No notebooks in {tmp_path / 'empty'}." in out and f"No folder {tmp_path / 'nobody'}." in out


CELL = {"cell_type": "code", "source": "ex02.half.check(half)", "outputs": []}
MALFORMED = {
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


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_notebook_is_skipped(tmp_path, capsys, malformed):
    if malformed == "a pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    MALFORMED[malformed](tmp_path / "anna.ipynb")
    (tmp_path / "ben.ipynb").write_text(json.dumps({"cells": [CELL]}), encoding="utf-8-sig")
    assert progress.show_group(tmp_path)
    output = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["anna.ipynb", "cannot", "be", "read", "-"] in output
    assert ["ben.ipynb", "0", "of", "1", "0", "of", "0"] in output and ["02", "half", "0", "of", "1"] in output


@pytest.mark.skipif(sys.platform != "linux", reason="other systems don't allow such a file name")
def test_a_file_name_that_is_not_utf_8_is_printed(tmp_path):
    for name, content in [(b"ann\xe9.ipynb", "{"), (b"ben\xe9.ipynb", json.dumps({"cells": [CELL]}))]:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(content)
    command = [sys.executable, "-m", "exercises.progress", str(tmp_path)]
    room = subprocess.run(
        command, cwd=progress.ROOT, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    )
    assert room.returncode == 0 and "ann\ufffd.ipynb  cannot be read" in room.stdout.decode()
