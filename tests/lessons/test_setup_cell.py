"""The one setup cell, wherever a notebook is opened. Its fetch goes to a served copy of the checkout (see conftest)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools import notebooks

CELL = notebooks.setup_source()
NAME, REVISION = notebooks.repository()
FOLDER = f"{NAME.split('/')[1]}-{REVISION}"
LINE = re.compile(r"^8 CPU devices \(emulated\) · jax \d+\.\d+\.\d+", re.M)
FETCHING = "Fetching the course's helpers, once, from https://github.com/"
OURS = "\nimport utils.compat; print('ours', utils.compat.spec_text)"


def test_in_the_clone(python):
    run = python(CELL + OURS, cwd=notebooks.ROOT / "notebooks")
    assert LINE.search(run.stdout), run.stderr
    assert "Fetching" not in run.stdout
    assert run.stderr == ""


def test_alone_it_fetches_once_and_says_so(python, served, tmp_path):
    first = python(CELL + OURS, **served)
    assert first.stdout.count(FETCHING) == 1, first.stderr
    assert LINE.search(first.stdout)
    assert (tmp_path / FOLDER / "utils" / "devices.py").is_file()
    second = python(CELL + OURS)  # without the served copy: nothing is fetched any more
    assert "Fetching" not in second.stdout
    assert second.stdout.startswith(f"Using the helpers in {tmp_path / FOLDER} (delete it to fetch them anew)\n")
    assert LINE.search(second.stdout), second.stderr


def test_after_a_fetch_that_broke_off(python, served, tmp_path):
    (tmp_path / FOLDER).mkdir()
    assert LINE.search(python(CELL, **served).stdout)


@pytest.mark.parametrize("revision", ["main", "v1.2"])
def test_beside_the_unzipped_download(python, tmp_path, revision):
    # GitHub's archive of tag v1.2 of owner/course unpacks to course-1.2, that of branch main to course-main.
    folder = tmp_path / f"{NAME.split('/')[1]}-{revision.removeprefix('v')}"
    folder.mkdir()
    (folder / "utils").symlink_to(notebooks.ROOT / "utils")
    run = python(CELL.replace(f'"{REVISION}"', f'"{revision}"') + OURS)
    assert LINE.search(run.stdout), run.stderr
    assert "Fetching" not in run.stdout


def test_git_works_in_its_own_folder_alone(python, served, tmp_path):
    mine = tmp_path / "mine"
    subprocess.run(["git", "init", "-q", str(mine)], check=True)
    inside = {"GIT_DIR": str(mine / ".git"), "GIT_WORK_TREE": str(mine), "GIT_INDEX_FILE": str(mine / ".git" / "index")}
    run = python(CELL, **served, **inside)
    assert LINE.search(run.stdout), run.stderr
    assert sorted(path.name for path in mine.iterdir()) == [".git"]


@pytest.mark.parametrize("where", ["colab", "kaggle"])
def test_on_a_hosted_notebook(python, served, tmp_path, where):
    (tmp_path / "site" / "google" / "colab").mkdir(parents=True)
    for module in ("__init__.py", "output.py"):  # jax imports the second where it finds the first
        (tmp_path / "site" / "google" / "colab" / module).touch()
    environment = (
        {"PYTHONPATH": str(tmp_path / "site")} if where == "colab" else {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}
    )
    prelude = "import google.colab\n" if where == "colab" else ""
    run = python(prelude + CELL, **served, **environment)
    assert FETCHING in run.stdout
    assert LINE.search(run.stdout), run.stderr
    assert run.stderr == ""


def test_the_jax_that_is_there_is_used_as_it_is(python, served):
    import jax

    code = CELL + "\nimport jax, sys; print(jax.__version__, [name for name in sys.modules if name == 'pip'])"
    assert python(code, **served).stdout.rstrip().endswith(f"{jax.__version__} []")
    assert "pip" not in CELL


@pytest.mark.parametrize("prelude", ["", "import utils, utils.mesh\n"], ids=["installed", "imported"])
def test_another_package_named_utils(python, served, tmp_path, prelude):
    other = tmp_path / "site" / "utils"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("print('a stranger')")
    (other / "mesh.py").write_text("")
    run = python(
        prelude + CELL + "\nfrom utils.mesh import make_mesh; print(make_mesh)", PYTHONPATH=str(other.parent), **served
    )
    assert LINE.search(run.stdout), run.stderr
    assert "function make_mesh" in run.stdout


def test_twice_in_one_kernel(python, served):
    run = python(f"{CELL}\nbefore = start_devices\n{CELL}\nassert before is start_devices", **served)
    assert run.returncode == 0, run.stderr
    assert len(LINE.findall(run.stdout)) == 2
    assert run.stdout.count("Fetching") == 1


@pytest.fixture
def read_only(tmp_path: Path):
    """A folder in which nobody can make another: root may write where it should not, but not in /proc."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    if os.geteuid() == 0:
        return Path("/proc") if Path("/proc/self").exists() else pytest.skip("root can write everywhere here")
    folder.chmod(0o555)
    return folder


def test_in_a_folder_that_cannot_be_written(python, served, tmp_path, read_only):
    home = {"HOME": str(tmp_path)}
    run = python(CELL, cwd=read_only, **served, **home)
    assert LINE.search(run.stdout), run.stderr
    assert (tmp_path / ".cache" / FOLDER / "utils").is_dir()
    again = python(CELL, cwd=read_only, **home)
    assert "Fetching" not in again.stdout
    assert LINE.search(again.stdout)


def test_nothing_can_be_written(python, read_only):
    run = python(CELL, cwd=read_only, HOME="/proc/nowhere")
    assert "could not be fetched (" in run.stderr
    assert "unzip it beside this notebook" in run.stderr


NO_NETWORK = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.proxy", "GIT_CONFIG_VALUE_0": "http://127.0.0.1:9"}


@pytest.mark.parametrize("environment", [NO_NETWORK, {"PATH": ""}], ids=["no network", "no git"])
def test_no_network_is_one_clear_line(tmp_path, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    error = notebook.cells[0].outputs[-1]
    [line] = error.traceback  # no traceback: the message alone
    assert "\n" not in line
    for what in (
        "could not be fetched (",
        "Switch the internet on",
        "Kaggle: Session options > Internet",
        f"/archive/{REVISION}.zip",
    ):
        assert what in line


@pytest.mark.parametrize("fixed", ["tag", "commit"])
def test_a_fixed_revision(python, served, tmp_path, fixed):
    folder = served["GIT_CONFIG_KEY_0"].removeprefix("url.file://").removesuffix(".insteadOf")
    revision = "v0.1" if fixed == "tag" else (Path(folder) / ".git/refs/heads" / REVISION).read_text().strip()
    run = python(CELL.replace(f'"{REVISION}"', f'"{revision}"'), **served)
    assert LINE.search(run.stdout), run.stderr
    assert (tmp_path / f"{NAME.split('/')[1]}-{revision}").is_dir()


def test_fetches_over_https_from_the_one_repository():
    assert re.findall(r"\w+://[^\s\"']+", CELL) == ["https://github.com/{REPOSITORY}"]
