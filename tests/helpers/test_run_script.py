"""Test running a lesson's script: its command and output, its folder, and the messages about a failure."""

from __future__ import annotations

import os

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.conftest import CHIP
from utils.scripts import ScriptError, run_script


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Return a function that writes script.py in the current folder, which is temporary."""
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "script.py").write_text


def test_the_command_and_the_output_are_printed(script, capsys):
    script("import sys\nprint(sys.argv[1:])\nprint('a warning', file=sys.stderr)")
    run_script("script.py 8 'two words'")
    assert capsys.readouterr().out == "$ python script.py 8 'two words'\n['8', 'two words']\n\n"


def test_settings_are_printed_and_passed_on_and_the_script_runs_in_its_folder(script, capsys, tmp_path):
    script("import os, pathlib\nprint(os.environ['COLOUR'], pathlib.Path.cwd().name)")
    (tmp_path / "elsewhere").mkdir()
    run_script("script.py", folder=tmp_path / "elsewhere", COLOUR="blue")
    assert capsys.readouterr().out == "$ COLOUR=blue python script.py\nblue elsewhere\n\n"


FAILS = "import sys\nprint('before')\nprint('the cause', file=sys.stderr)\nsys.exit(3)"


def test_a_failure_shows_everything_that_the_script_printed(script, capsys):
    script(FAILS)
    with pytest.raises(ScriptError, match=r"script\.py ended with status 3\. It printed:\n\nbefore\nthe cause$"):
        run_script("script.py")
    run_script("script.py", check=False)
    assert capsys.readouterr().out.endswith("before\n\nthe cause\n(exit status 3)\n\n")


def test_a_notebook_shows_the_failure_without_a_traceback(script, capsys):
    script(FAILS)
    InteractiveShell().run_cell("from utils.scripts import run_script\nrun_script('script.py')")
    shown = capsys.readouterr()
    assert "the cause" in shown.out + shown.err and "Traceback" not in shown.out + shown.err


# On a machine with one chip, a lesson's kernel opens the chip, and then a script starts JAX as well.
LESSON = """
from pathlib import Path
Path("script.py").write_text("import jax; print(jax.devices()[0].platform, jax.device_count())")
from utils.devices import start_devices
start_devices()
"""


def test_a_script_runs_while_the_kernel_has_the_chip(python, tmp_path):
    from tools.lessons.notebooks import ROOT

    chip = {"PYTHONPATH": os.pathsep.join([str(CHIP), str(ROOT)]), "CHIP_LOCK": str(tmp_path / "chip.lock")}
    run = python(LESSON + "from utils.scripts import run_script; run_script('script.py')", **chip)
    assert run.stdout.endswith("$ python script.py\ncpu 8\n\n"), run.stderr
    second = "os.environ['JAX_PLATFORMS'] = ''; subprocess.run([sys.executable, 'script.py'])"
    run = python(f"{LESSON}import os, subprocess, sys; {second}", **chip)
    assert "TPU is already in use" in run.stderr  # the simulated chip does refuse a second process
