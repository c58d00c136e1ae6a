"""How the course is proved: which passes run where, who keeps what was compiled, and CONTRIBUTING's table of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from tests import conftest
from tools.lessons import notebooks

MAKEFILE = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
CONTRIBUTING = (notebooks.ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")


def item(name: str, *marks: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, get_closest_marker=lambda mark: mark in marks)


@pytest.mark.parametrize(
    ("passes", "left"),
    [
        ("doubled", ["compiles", "twice", "sums"]),
        ("plain", ["compiles", "once", "sums"]),
        ("all", ["compiles", "twice", "once", "sums"]),
    ],
)
def test_only_the_passes_that_are_asked_for_and_the_long_ones_first(passes, left):
    items = [item("sums"), item("twice", "doubled"), item("once", "plain"), item("compiles", "long")]
    conftest.pytest_collection_modifyitems(SimpleNamespace(getoption=lambda name: passes), items)
    assert [one.name for one in items] == left


def test_a_worker_is_pinned_and_its_kernels_with_it():
    if "PYTEST_XDIST_WORKER" not in os.environ or not hasattr(os, "sched_getaffinity"):
        pytest.skip("no worker")
    assert len(os.sched_getaffinity(0)) == 1
    with conftest.cores(conftest.ALL_CORES):
        assert os.sched_getaffinity(0) == conftest.ALL_CORES
    assert len(os.sched_getaffinity(0)) == 1


def test_judges_alone_keep_what_they_compile(request, tmp_path_factory):
    before = jax.config.jax_compilation_cache_dir
    request.getfixturevalue("compiled_once")
    folder = tmp_path_factory.getbasetemp() / "compiled"
    held = len(list(folder.glob("*"))) if folder.exists() else 0
    jax.jit(lambda x: x * 17 + 4)(jnp.ones(3))
    assert len(list(folder.glob("*"))) > held
    assert (before, os.environ.get("JAX_COMPILATION_CACHE_DIR")) == (None, None)  # nothing for kernels to inherit


def test_after_a_judge_nothing_is_kept(tmp_path_factory):
    assert jax.config.jax_compilation_cache_dir is None


def test_no_page_and_no_command_keeps_what_is_compiled():
    """A page is a reader's run: lessons count compilations, and compile for TPUs, which the cache cannot hold."""
    places = [notebooks.ROOT / "Makefile", *notebooks.lessons(), *(notebooks.ROOT / "utils").rglob("*.py")]
    places += (notebooks.ROOT / "exercises").rglob("*.py")
    for path in [*places, *(notebooks.ROOT / "tools").rglob("*.py")]:
        assert "compilation_cache_dir" not in path.read_text(encoding="utf-8").lower(), path.name


@pytest.mark.parametrize(
    ("target", "passes", "tests"),
    [
        ("test", "plain", ""),
        ("test-oldest", "plain", "lessons, helpers"),
        ("test-newest", "doubled", "lessons, helpers"),
    ],
)
def test_the_table_of_proofs_says_what_the_makefile_does(target, passes, tests):
    """CONTRIBUTING, What is proved where: a row for each command, with the pass that lessons get there."""
    [rule] = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    variable = f"THE_{target.partition('-')[2].upper() or 'DEFAULT'}"
    assert f"$({variable})" in rule
    [value] = re.findall(rf"^{variable} = (.*)$", MAKEFILE, re.M)
    assert passes in value
    assert all(f"tests/{folder}" in value for folder in filter(None, tests.split(", ")))
    [row] = re.findall(rf"^\| `make {target}` \|.*$", CONTRIBUTING, re.M)
    assert ("each cell twice" in row) == (passes == "doubled")
    assert ("once" in row) == (passes == "plain")


def test_what_make_test_leaves_of_the_house_runs_on_the_oldest():
    left = [
        path.name
        for path in Path(__file__).parent.glob("test_*.py")
        if "\npytestmark = pytest.mark.elsewhere\n" in path.read_text()
    ]
    [names] = re.findall(r"^OF_TESTS = .*\.py,(.*)\)\)$", MAKEFILE, re.M)
    assert sorted(left) == [f"test_{name}.py" for name in names.split()]
