"""Test JupyterHub's settings for a workshop: a new user gets a clone, and a returning user finds their work."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from traitlets.config import Config

from tools.lessons.notebooks import ROOT

SETTINGS = ROOT / "teach" / "jupyterhub_config.py"


def settings(path, monkeypatch, homes, config):
    """Run JupyterHub's settings with the participants' folders in `homes`, and return the configuration."""
    monkeypatch.setenv("HOMES", str(homes))
    monkeypatch.setenv("PASSWORD", "eight devices")
    runpy.run_path(str(path), {"get_config": lambda: config})
    return config


def test_users_need_the_password_and_have_their_own_home(monkeypatch, tmp_path):
    c = settings(SETTINGS, monkeypatch, tmp_path, Config())
    assert c.SharedPasswordAuthenticator.user_password == "eight devices"
    assert c.SimpleLocalProcessSpawner.home_dir_template == f"{tmp_path}/{{username}}"
    [option] = c.Spawner.args
    assert option == f"--LabApp.app_settings_dir={ROOT / 'tools' / 'reader' / 'lab'}"
    monkeypatch.delenv("PASSWORD")
    with pytest.raises(KeyError, match="PASSWORD"):
        runpy.run_path(str(SETTINGS), {"get_config": Config})


def test_a_user_gets_one_clone(monkeypatch, tmp_path):
    """Test that a returning user keeps their clone, in which `tools.reader.copies` runs again.

    The course in this test consists of the settings and a stand-in for `tools.reader.copies` that records each call.
    """
    course, homes = tmp_path / "course", tmp_path / "homes"
    for part in ("teach", "tools/reader", ".venv/bin"):
        (course / part).mkdir(parents=True)
    shutil.copy(SETTINGS, course / "teach")
    (course / "tools" / "reader" / "copies.py").write_text("open('called', 'a').write('.')")
    (course / ".gitignore").write_text("/.venv/\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for step in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "One"]):
        subprocess.run(["git", *step], cwd=course, check=True)
    (course / ".venv" / "bin" / "python").symlink_to(sys.executable)
    hook = settings(course / "teach" / SETTINGS.name, monkeypatch, homes, Config()).Spawner.pre_spawn_hook
    spawner = SimpleNamespace(user=SimpleNamespace(name="ada"))
    hook(spawner)
    (homes / "ada" / "mine").write_text("work")
    hook(spawner)
    assert (homes / "ada" / "mine").read_text() == "work"
    assert (homes / "ada" / "called").read_text() == ".."
    assert (homes / "ada" / ".venv").resolve() == course / ".venv"
