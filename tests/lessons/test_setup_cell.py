"""Run the setup cell in each environment in which a notebook may be opened.

The cell fetches the course from a local repository (the fixture `served`).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.lessons import notebooks

CELL = notebooks.setup_source()
NAME, REVISION = notebooks.repository()
LINE = re.compile(r"^8 CPU devices \(emulated\) · jax \d+\.\d+\.\d+", re.M)
PRINT_OURS = "\nimport utils.compat, exercises.framework; print('ours', utils.compat.spec_text.__name__)"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder to which the cell fetches the course, in a temporary home directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home" / ".cache" / f"{NAME.replace('/', '-')}-{REVISION}"


@pytest.mark.once
def test_it_has_at_most_fifteen_lines_and_fetches_from_the_one_repository():
    assert sum(bool(line) and not line.startswith("#") for line in CELL.splitlines()) <= 15
    assert re.findall(r"\w+://[^\s\"']+", CELL) == ["https://github.com/{REPOSITORY}"]


@pytest.mark.once
def test_in_the_clone(python, cache):
    run = python(CELL + PRINT_OURS, cwd=notebooks.ROOT / "notebooks")
    assert LINE.match(run.stdout) and "ours" in run.stdout, run.stderr
    assert run.stderr == "" and not cache.exists()


def test_without_a_clone_it_fetches_once_and_prints_the_folder(python, served, cache):
    first = python(CELL + PRINT_OURS, **served)
    assert first.stdout.startswith(f"Using the course in {cache} (delete it to fetch the course again)\n"), first.stderr
    assert LINE.search(first.stdout) and first.stderr == ""
    second = python(CELL + PRINT_OURS)  # without the served copy, so it can't fetch anything
    assert second.stdout == first.stdout, second.stderr


@pytest.mark.once
def test_an_interrupted_fetch_can_be_repeated(python, served, cache):
    """Test that a partial clone, which git leaves if it's killed, doesn't stop the next fetch.

    The cell fetches to a temporary name and renames the complete clone.
    """
    slow = {**served, "GIT_CONFIG_VALUE_0": "https://nowhere.invalid/"}
    assert python(CELL, **slow).returncode and not cache.exists()
    cache.with_name(f"{cache.name}.77").mkdir(parents=True)
    assert LINE.search(python(CELL, **served).stdout)
    assert (cache / "utils" / "devices.py").is_file()


@pytest.mark.parametrize("where", ["colab", "kaggle"])
def test_on_a_hosted_notebook(python, served, tmp_path, cache, where):
    (tmp_path / "site" / "google" / "colab").mkdir(parents=True)
    for module in ("__init__.py", "output.py"):  # JAX imports google.colab.output if it finds google.colab
        (tmp_path / "site" / "google" / "colab" / module).touch()
    hosts = {"colab": {"PYTHONPATH": str(tmp_path / "site")}, "kaggle": {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}}
    run = python("import google.colab\n" * (where == "colab") + CELL, **served, **hosts[where])
    assert LINE.search(run.stdout), run.stderr
    assert cache.is_dir() and run.stderr == ""


def test_the_installed_jax_is_used(python, served, cache):
    import jax

    code = CELL + "\nimport jax, sys; print(jax.__version__, [name for name in sys.modules if name == 'pip'])"
    assert python(code, **served).stdout.rstrip().endswith(f"{jax.__version__} []")
    assert "pip" not in CELL


@pytest.mark.once
@pytest.mark.parametrize("prelude", ["", "import utils, utils.mesh, exercises\n"], ids=["installed", "imported"])
def test_the_courses_packages_take_precedence(python, served, tmp_path, cache, prelude):
    for name in ("utils", "exercises"):
        other = tmp_path / "site" / name
        other.mkdir(parents=True)
        (other / "__init__.py").write_text("print('a stranger')")
        (other / "mesh.py").write_text("")
    code = "\nfrom utils.mesh import make_mesh; from exercises.framework import Exercise; print(make_mesh)"
    run = python(prelude + CELL + code, PYTHONPATH=str(tmp_path / "site"), **served)
    assert LINE.search(run.stdout), run.stderr
    assert "function make_mesh" in run.stdout


@pytest.mark.once
def test_twice_in_one_kernel(python, served, cache):
    twice = f"{CELL}\nimport utils.devices as before\n{CELL}\nimport utils.devices\nassert before is utils.devices"
    run = python(twice, **served)
    assert run.returncode == 0, run.stderr
    assert len(LINE.findall(run.stdout)) == 2


NO_NETWORK = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.proxy", "GIT_CONFIG_VALUE_0": "http://127.0.0.1:9"}


@pytest.mark.once
def test_without_a_network_the_error_explains_what_to_do(python, cache):
    run = python(CELL, **NO_NETWORK)
    assert f"fatal: unable to access 'https://github.com/{NAME}/'" in run.stderr
    assert run.stderr.endswith("Is the internet on? Run this cell again.\n")
    assert "No such file or directory: 'git'" in python(CELL, PATH="").stderr


@pytest.mark.once
def test_a_tag_as_the_revision(python, served, cache):
    run = python(CELL.replace(f'"{REVISION}"', '"v0.1"'), **served)
    assert LINE.search(run.stdout), run.stderr
    assert cache.with_name(f"{NAME.replace('/', '-')}-v0.1").is_dir()
