"""Test the setup of a new machine: an environment is created once, and each failure is reported in one line."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.lessons import notebooks
from tools.reader import environment

pytestmark = pytest.mark.other_versions


def make_environment(folder: Path, *arguments: str, python: str = sys.executable, **variables: str):
    """Run tools/reader/environment.py in a folder, and return the finished process."""
    return subprocess.run(
        [python, str(notebooks.ROOT / "tools" / "reader" / "environment.py"), *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess]:
    """Create an environment in a new folder, and return the folder and the finished process."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "requirements.txt").write_text("# nothing\n")
    return folder, make_environment(folder, "venv", "requirements.txt")


def test_the_environment_is_created_once(made):
    folder, first = made
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[0].startswith("Creating venv with Python 3.")
    assert first.stdout.splitlines()[-1].startswith("Ready after ")
    assert make_environment(folder, "venv", "requirements.txt").stdout == ""
    (folder / "more.txt").write_text("# nothing either\n")
    more = make_environment(folder, "venv", "requirements.txt", "more.txt")
    assert more.stdout.startswith("Installing the packages in more.txt (")
    assert make_environment(folder, "venv", "requirements.txt").stdout == ""


def test_a_missing_network_is_reported_in_one_line(made):
    folder, _ = made
    (folder / "jax.txt").write_text("jax\n")
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_CONFIG_FILE": os.devnull}
    run = make_environment(folder, "venv", "jax.txt", **offline, PIP_RETRIES="0", PIP_FIND_LINKS="")
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert "Connect to the network" in run.stderr


def test_a_nonexistent_package_is_reported_in_one_line(made):
    folder, _ = made
    (folder / "none.txt").write_text("./no-such-folder\n")
    run = make_environment(folder, "venv", "none.txt")
    assert run.returncode == 1
    assert run.stderr.startswith("Error: the packages couldn't be installed: ERROR: ")
    assert len(run.stderr.splitlines()) == 1


def test_an_active_environment_is_ignored(made):
    folder, _ = made
    again = make_environment(folder, "venv", "requirements.txt", python=str(folder / "venv" / "bin" / "python"))
    assert (again.returncode, again.stdout) == (0, "")


@pytest.mark.parametrize(
    ("status", "pip_config", "installers"),
    [
        (0, ":env:.cert='a.pem'", ["uv"]),
        (1, "", ["uv", "pip"]),
        (0, ":env:.index-url='https://a'\nglobal.index-url='https://b'\n:env:.constraint=''", ["uv https://a"]),
        (0, ":env:.constraint='nightly.txt'", ["pip"]),  # uv doesn't install pre-releases that a constraints file names
        (0, "global.pre='1'", ["pip"]),
        (0, "global.setting-that-uv-lacks='1'", ["pip"]),
    ],
)
def test_uv_installs_and_pip_replaces_it_if_it_fails(tmp_path, monkeypatch, status, pip_config, installers):
    log = tmp_path / "log"
    for name, code in (("uv", status), ("venv/bin/python", 0)):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $UV_INDEX_URL" "$@" >> {log}\necho "{pip_config}"\nexit {code}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("UV_INDEX_URL", raising=False)
    environment.install_packages(str(tmp_path / "venv"), ["a.txt", "b.txt"])
    installations = [line for line in log.read_text().splitlines() if " install " in line]
    names = [re.split(" -m| pip", line)[0].replace("venv/bin/python", "pip").strip() for line in installations]
    assert names == installers
    assert all(" -r a.txt -r b.txt " in line for line in installations)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full. The environment needs"),
        (
            "because ensurepip is not available.  On Debian",
            "this Python has no venv module. On Debian and Ubuntu: apt-get install",
        ),
        (
            "/usr/bin/python3: No module named venv",
            "this Python has no venv module. On Debian and Ubuntu: apt-get install",
        ),
        ("ERROR: first\nERROR: No matching distribution\n[notice] more", "it failed: ERROR: No matching distribution"),
        ("", "it failed: no reason given"),
    ],
)
def test_the_reason_for_a_failure_is_one_line(output, message):
    with pytest.raises(SystemExit, match=re.escape(message)) as ended:
        environment.run_or_exit([sys.executable, "-c", f"print({output!r}); raise SystemExit(1)"], "it failed")
    assert str(ended.value).startswith("Error: it failed: ") and "\n" not in str(ended.value)


def test_a_long_step_reports_that_it_is_running(monkeypatch, capsys):
    monkeypatch.setattr(environment, "REPORT_EVERY", 0.2)
    code = "import time; print('begun', flush=True); time.sleep(0.7); print('done')"
    assert environment.run_step([sys.executable, "-c", code]) == (0, "begun\ndone")
    assert capsys.readouterr().out.count("... still running after ") >= 2


def test_an_interrupted_setup_can_be_resumed(tmp_path):
    """Test that a setup interrupted while it installs packages resumes without creating the environment again."""
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    uv, started = tmp_path / "bin" / "uv", tmp_path / "started"
    uv.parent.mkdir()
    uv.write_text(f"#!/bin/sh\ntouch '{started}'\nexec sleep 60\n")
    uv.chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    variables |= {"PIP_CONFIG_FILE": os.devnull, "PATH": f"{uv.parent}{os.pathsep}{os.environ['PATH']}"}
    path = notebooks.ROOT / "tools" / "reader" / "environment.py"
    command = [sys.executable, str(path), "venv", "requirements.txt"]
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.PIPE, text=True) as setup:
        while not started.exists() and setup.poll() is None:
            time.sleep(0.1)
        setup.send_signal(signal.SIGINT)
        _, stderr = setup.communicate(timeout=60)
    assert (setup.returncode, stderr) == (environment.STOPPED, "\nStopped. Run the same command to continue.\n")
    again = make_environment(tmp_path, "venv", "requirements.txt")
    assert again.returncode == 0 and again.stdout.startswith("Installing the packages in requirements.txt (")


def test_make_finds_a_supported_python(tmp_path):
    """Test that make uses a newer Python if python3 is too old, and prints a one-line error if it finds none."""
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3.12").write_text("#!/bin/sh\nexit 0\n")
    for name in ("make", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for program in ("python3", "python3.12"):
        (tmp_path / program).chmod(0o755)

    def setup():
        command = ["make", "-n", "setup", f"SHELL={tmp_path / 'sh'}"]
        return subprocess.run(
            command, cwd=notebooks.ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
        )

    assert setup().stdout == "python3.12 tools/reader/environment.py .venv requirements.txt\n"
    (tmp_path / "python3.12").unlink()
    none = setup()
    assert none.returncode != 0 and len(none.stderr.splitlines()) == 1
    assert "The course needs Python 3.11 or newer, but none of python3 python3.13" in none.stderr


def test_the_newest_python_must_start(tmp_path, monkeypatch):
    shim = tmp_path / f"python3.{environment.NEWEST[1]}"  # pyenv leaves behind such shims, which don't start
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    newest = environment.find_newest_python()
    assert newest != str(shim)
    assert newest is None or re.search(r" 3[.](12|13)[.]", environment.describe_python(newest))


def test_a_missing_newer_python_is_reported_and_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(environment, "find_newest_python", lambda: None)
    assert environment.main(["--newest-python", "venv", "requirements.txt"]) == environment.NOT_FOUND
    assert capsys.readouterr().out.startswith("Skipped: ")
