"""Check which tests the make targets select, and that no lesson or command uses a compilation cache."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
from argparse import ArgumentParser, Namespace
from itertools import chain, combinations
from pathlib import Path

import pytest
import yaml
from _pytest.mark.expression import Expression

from tools.lessons import notebooks

ROOT = notebooks.ROOT
FOR_EACH_JAX = ("test", "test-oldest", "test-newest")
MARKS = ("other_versions", "once")


def selection(target: str) -> Namespace:
    """Return the paths, the mark expression and the passes that a make target gives to pytest."""
    command = ["make", "--dry-run", "--no-print-directory", target]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    [line] = [line for line in lines if " -m pytest " in line and "--passes " in line]  # skips the tests of packages/
    parser = ArgumentParser()
    parser.add_argument("paths", nargs="*")
    parser.add_argument("-m", dest="marks", default="")
    parser.add_argument("--passes")
    arguments = shlex.split(re.split("[;&]", line.rpartition(" --maxschedchunk 1 ")[2])[0])
    options, _ = parser.parse_known_intermixed_args(arguments)
    options.marks = Expression.compile(options.marks)
    return options


def selects(chosen: Namespace, path: str, marks: tuple[str, ...]) -> bool:
    """Return whether pytest would run a test with these marks in this file or folder."""
    in_paths = any(Path(path).is_relative_to(folder) for folder in chosen.paths or ["tests"])
    return in_paths and chosen.marks.evaluate(lambda name, **_: name in marks)


def module_marks(path: Path) -> tuple[str, ...]:
    """Return the names in a test module's `pytestmark`."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return tuple(mark.name for mark in [getattr(module, "pytestmark", None)] if mark)


def test_every_test_runs_in_some_target():
    """Test that every test runs in at least one of the three targets, for any combination of marks."""
    chosen = [selection(target) for target in FOR_EACH_JAX]
    cases = [
        (f"tests/{folder}", marks)
        for folder in ("lessons", "exercises", "helpers")
        for marks in chain.from_iterable(combinations(MARKS, count) for count in range(len(MARKS) + 1))
    ]
    for path in chain.from_iterable(
        (ROOT / "tests" / folder).glob("test_*.py") for folder in ("repository", "examples")
    ):
        cases.append((str(path.relative_to(ROOT)), module_marks(path)))
    assert [case for case in cases if not any(selects(one, *case) for one in chosen)] == []
    assert all((ROOT / path).exists() for one in chosen for path in one.paths)


@pytest.mark.parametrize(
    ("target", "passes", "on_each_jax"),
    [("test", "plain", False), ("test-oldest", "plain", True), ("test-newest", "doubled", True)],
)
def test_the_table_in_the_readme_describes_the_targets(target, passes, on_each_jax):
    """Compare a target's selection with tests/README.md, whose table says how often a lesson's cells are executed."""
    chosen = selection(target)
    assert chosen.passes == passes
    assert selects(chosen, "tests/lessons", ()) and selects(chosen, "tests/helpers", ())
    assert selects(chosen, "tests/helpers", ("once",)) is not on_each_jax
    [row] = re.findall(rf"^\| `make {target}` \|.*$", (ROOT / "tests" / "README.md").read_text(encoding="utf-8"), re.M)
    assert ("each cell twice" in row) == (passes == "doubled")
    assert ("once" in row) == (passes == "plain")


def test_ci_installs_slurm_for_the_target_that_tests_it():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "slurm-wlm" in step.get("run", "")]
    assert steps
    for step in steps:
        [target] = re.findall(r"matrix\.target == '(.+)'", step["if"])
        assert selects(selection(target), "tests/examples/test_train.py", ("other_versions",))


def test_no_page_and_no_command_uses_a_compilation_cache():
    """Test that lessons and commands leave JAX's compilation cache off.

    With a cache, a lesson would count fewer compilations than in a reader's run. The cache can't store TPU programs.
    Only lesson 01 shows the cache, and its cell that names a folder ends by restoring JAX's defaults.
    """
    shown = notebooks.lesson("01")
    [cell] = [cell.source for cell in notebooks.read(shown).cells if '_cache_dir", folder)' in cell.source]
    assert cell.endswith(
        'jax.config.update("jax_compilation_cache_dir", None)  # the defaults\n'
        'jax.config.update("jax_persistent_cache_min_compile_time_secs", 1)\n'
        "compilation_cache.reset_cache()"
    )
    places = [ROOT / "Makefile", *(path for path in notebooks.lessons() if path != shown)]
    places += [
        path for folder in ("utils", "lesson_helpers", "exercises", "tools") for path in (ROOT / folder).rglob("*.py")
    ]
    for path in places:
        assert "compilation_cache_dir" not in path.read_text(encoding="utf-8").lower(), path.name
