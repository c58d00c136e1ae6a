"""Test the folder for a USB drive, which contains each system's packages so that the course installs offline."""

from __future__ import annotations

import os
import subprocess

import pytest

import start
from tools.teach import offline_folder


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """Prevent `offline_folder` from running commands, and return the list of commands that it would have run."""
    commands = []

    def run(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=b"jax==0.10.2\n")

    monkeypatch.setattr(offline_folder.subprocess, "run", run)
    monkeypatch.setattr(offline_folder.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(offline_folder, "OUT", tmp_path / "handout")
    return commands


def test_uv_resolves_the_packages_and_pip_downloads_them(steps, tmp_path, capsys):
    offline_folder.main(["3.12"], ["linux", "windows"])
    compiled = [step for step in steps if step[1:3] == ["pip", "compile"]]
    fetched = [step for step in steps if "download" in step]
    assert [step[step.index("--python-platform") + 1] for step in compiled] == [
        "x86_64-manylinux_2_28",
        "x86_64-pc-windows-msvc",
    ]
    assert all("--no-deps" in step and "3.12" in step for step in fetched)
    assert "win_amd64" in fetched[1] and "win_amd64" not in fetched[0]
    assert (tmp_path / "handout" / "wheels" / "windows-3.12.txt").read_text() == "jax==0.10.2\n"
    instructions = (tmp_path / "handout" / "START-HERE.txt").read_text()
    assert "Python 3.12 (linux, windows)" in instructions and "python3 course/start.py lab" in instructions


@pytest.mark.parametrize(("pythons", "systems"), [(["3.9"], ["linux"]), (["3.12"], ["amiga"])])
def test_unknown_names_are_refused(steps, pythons, systems):
    with pytest.raises(SystemExit, match=r"choose from 3\.11, .*windows"):
        offline_folder.main(pythons, systems)
    assert steps == []


def test_committed_files_are_copied(tmp_path):
    offline_folder.copy_course(tmp_path / "course")
    assert (tmp_path / "course" / "start.py").is_file() and (tmp_path / "course" / "notebooks").is_dir()
    assert not (tmp_path / "course" / ".git").exists()


def test_with_its_wheels_the_course_installs_offline(monkeypatch, tmp_path):
    for variable in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "wheels").mkdir()
    monkeypatch.setattr(start, "HERE", str(tmp_path / "course"))
    monkeypatch.setattr(start, "run", lambda command, folder="": 0)
    monkeypatch.setattr(start.os, "environ", dict(os.environ))
    start.setup()
    assert start.os.environ["PIP_NO_INDEX"] == "1" and start.os.environ["PIP_FIND_LINKS"] == str(tmp_path / "wheels")
