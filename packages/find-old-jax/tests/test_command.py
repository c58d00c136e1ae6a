"""Test the command: its output and exit status, error messages, `--run`, and the IPython extension."""

from __future__ import annotations

from pathlib import Path

import find_old_jax
import pytest
from find_old_jax.error_lookup import find_answer
from find_old_jax.release_names import Record
from messages import MESSAGES, OTHER_MESSAGES


def test_the_command(tmp_path, command):
    (tmp_path / "old.py").write_text("import jax\nx = jax.tree_map(id, 1)\n")
    (tmp_path / "new.py").write_text("import jax\n")
    (tmp_path / "broken.py").write_text("def\n")
    old = command(tmp_path / "old.py")
    assert old.returncode == 1
    assert "line 2: gone: jax.tree_map -> jax.tree.map (row 7)\n      x = jax.tree_map(id, 1)" in old.stdout
    assert command(tmp_path / "new.py").stdout == f"1 file for JAX {Record().version}: no old APIs\n"
    assert command(tmp_path / "new.py").returncode == 0
    broken, missing, folder = command(tmp_path / "broken.py"), command(tmp_path / "no.py"), command(tmp_path)
    assert "line 1: not Python" in broken.stderr and broken.returncode == 0
    assert "No such file" in missing.stderr and missing.returncode == 2
    assert "2 files for JAX" in folder.stdout and "broken.py, line 1" in folder.stderr and folder.returncode == 1
    assert command().stderr.startswith("usage: find-old-jax")
    assert "no record of JAX 0.4" in command("--target", "0.4", tmp_path).stderr
    assert command("--message", "module 'jax' has no attribute 'tree_map'").stdout == (
        "jax.tree_map -> jax.tree.map (row 7 of appendix 90)\n"
    )


@pytest.mark.parametrize(("message", "name", "row"), MESSAGES)
def test_a_message_leads_to_its_row(message, name, row):
    answer = find_answer(message)
    assert (answer.name, answer.row) == (name, row)


def test_other_messages_have_no_row():
    for message in OTHER_MESSAGES:
        assert find_answer(message) is None


def test_it_runs_from_a_clone_with_nothing_but_python(written, command):
    """Test a run with -I and -S, so that Python ignores PYTHONPATH, the current folder and installed packages."""
    result = command(
        written("old.py", "import jax\njax.tree_map\n"), module=("-I", "-S", str(Path(find_old_jax.__file__).parent))
    )
    assert "jax.tree_map -> jax.tree.map (row 7)" in result.stdout and result.stderr == "" and result.returncode == 1


def test_run_puts_the_row_under_the_traceback(written, command):
    script = written(
        "s.py",
        "import sys\ndef f():\n    raise AttributeError(\"module 'jax' has no attribute 'tree_map'\")\nprint(sys.argv[1:])\nf()\n",
    )
    result = command("--run", script, "--steps", "3")
    assert result.stdout == "['--steps', '3']\n" and result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and str(script) in lines[1]
    assert lines[-1] == "Old code: jax.tree_map -> jax.tree.map (row 7 of appendix 90)"


@pytest.mark.parametrize(
    ("argument", "status", "message"), [("", 0, ""), ("3", 3, ""), ("'no data'", 1, "no data\n"), ("None", 0, "")]
)
def test_run_ends_as_python_would_after_sys_exit(written, command, argument, status, message):
    result = command("--run", written("s.py", f"import sys\nsys.exit({argument})\n"))
    assert (result.returncode, result.stderr) == (status, message)


def test_the_extension_explains_a_failed_cell(command):
    pytest.importorskip("IPython")
    cells = (
        "from IPython.core.interactiveshell import InteractiveShell as S\ns = S.instance()\n"
        "s.run_line_magic('load_ext', 'find_old_jax')\ns.run_cell('1 / 1')\n"
        "s.run_cell('raise ImportError(\"No module named \\'jax.experimental.maps\\'\")')"
    )
    result = command(module=("-c", cells))
    explanation = "Old code: jax.experimental.maps -> jax.shard_map; Mesh is in jax.sharding (row 2 of appendix 90)"
    assert result.stderr.count(explanation) == 1, result.stderr
