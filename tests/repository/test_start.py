"""Test start.py, which runs make's commands on systems without make."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

import start
from tools.lessons import notebooks
from tools.reader import copies

ROOT = notebooks.ROOT


@pytest.fixture
def ran(monkeypatch):
    """Prevent `start` from running commands, and return the list of commands that it would have run."""
    steps = []
    monkeypatch.setattr(start, "run", lambda command, folder=start.HERE: steps.append((command, folder)) or 0)
    return steps


def dry_run(target: str, *arguments: str) -> list[str]:
    """Return the commands that make would run for a target."""
    command = ["make", "--dry-run", "--no-print-directory", target, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_each_command_runs_the_same_commands_as_make(ran):
    for command, arguments in (("lab", ["ARGS=--port=8899"]), ("fresh", ["LESSON=02"]), ("progress", [])):
        [line] = dry_run(command, *arguments)
        assert line.split()[1:] == ["start.py", command, *(word.split("=", 1)[1] for word in arguments)]
    for command, target in (["setup"], "setup"), (["test", "-k", "02_"], "test-environment"):
        ran.clear()
        start.main(command)
        [line] = dry_run(target)
        assert ran[0][0][1:] == line.split()[1:]  # sets up the same environment with the same requirements
    assert ran[1][0][-2:] == ["-k", "02_"]


def test_lab_opens_the_copies(ran, monkeypatch):
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", "")
    start.main(["lab", "--no-browser"])
    _, copies, lab = ran
    assert copies[0][1:] == ["-m", "tools.reader.copies", "--lab"]
    assert lab[0][1:3] == ["-m", "jupyterlab"] and lab[0][-1] == "--no-browser"
    assert lab[1] == str(ROOT / "work")
    assert os.environ["JUPYTERLAB_WORKSPACES_DIR"].startswith(lab[1])  # the tabs of another course must not open


def test_a_failing_step_ends_the_command(monkeypatch):
    monkeypatch.setattr(start, "run", lambda command, folder=start.HERE: 7)
    with pytest.raises(SystemExit, match="7"):
        start.main(["lab"])


def test_an_old_python_is_refused_in_one_sentence(monkeypatch):
    source = (ROOT / "start.py").read_text(encoding="utf-8")
    # Python parses the complete file before it runs a line, so the oldest version still in use must be able to parse it
    ast.parse(source, feature_version=(3, 6))
    monkeypatch.setattr(sys, "version_info", (3, 6, 8))
    with pytest.raises(SystemExit, match=r"this is Python 3\.6, but the course needs Python 3\.11"):
        exec(compile(source, "start.py", "exec"), {"__name__": "start", "__file__": "start.py"})


def test_windows_has_a_different_folder_for_programs(monkeypatch):
    monkeypatch.setattr(start.os, "name", "nt")
    assert start.python().replace("\\", "/").endswith(".venv/Scripts/python.exe")


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--help"], 0), (["lba"], 2)])
def test_the_usage_message(arguments, status):
    run = subprocess.run([sys.executable, ROOT / "start.py", *arguments], capture_output=True, text=True)
    assert run.returncode == status and "python start.py lab" in run.stdout
    assert run.stdout.startswith("Error: there is no command `lba`.") is bool(status)


def test_progress_of_a_folder_relative_to_the_current_one(ran, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    start.main(["progress", "room 3"])
    assert ran[0][0][3:] == [str(tmp_path / "room 3")]


def test_progress_of_a_missing_folder(tmp_path):
    command = [sys.executable, ROOT / "start.py", "progress", "nobody"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1 and f"No folder {tmp_path / 'nobody'}." in run.stdout


def test_a_second_lab_prints_the_url_of_the_first(monkeypatch, capsys, tmp_path):
    serverapp = pytest.importorskip("jupyter_server.serverapp")
    running = [{"root_dir": str(tmp_path), "url": "http://localhost:1/", "token": "t"}]
    monkeypatch.setattr(serverapp, "list_running_servers", lambda: running)
    assert copies.find_running_lab(tmp_path) == "http://localhost:1/lab?token=t"
    assert copies.find_running_lab(tmp_path / "other") == ""
    monkeypatch.setattr(copies, "find_running_lab", lambda folder: "http://localhost:1/lab?token=t")
    with pytest.raises(SystemExit, match=str(copies.ALREADY_OPEN)):
        copies.main(["--lab"])
    assert "Your lessons are already open: http://localhost:1/lab?token=t\n" in capsys.readouterr().out
