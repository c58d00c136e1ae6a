"""Test that every file agrees with the supported versions of JAX and Python in pyproject.toml, under [tool.course]."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from find_old_jax.release_names import Record

from tests import lesson_lint
from tools.lessons import notebooks


def places(jax: str, pythons: list[str]) -> list[tuple[str, str, set]]:
    """Return (file, pattern, set of expected matches) for each file that names the oldest JAX or a Python version."""
    first, last = pythons[0], pythons[-1]
    minors = first.removeprefix("3."), last.removeprefix("3.")
    jobs = {
        *(("test", python) for python in pythons),
        ("test-oldest", first),
        ("test-oldest", last),
        ("test-newest", last),
    }
    return [
        ("requirements.txt", r"^jax>=(.+)$", {jax}),
        ("tests/requirements-oldest.txt", r"^(jax\w*)==(.+)$", {("jax", jax), ("jaxlib", jax)}),
        ("tests/requirements-newest.txt", r"^jax(.*)$", {""}),
        ("utils/devices.py", r'^OLDEST_JAX = "(.+)"', {jax}),
        ("utils/compat.py", r"\((\S+) to the newest\)", {jax}),
        ("README.md", r"\b0\.\d+\.\d+\b", {jax}),
        ("README.md", r"python3 (\S+) or newer", {first}),
        ("pyproject.toml", r'target-version = "py3(\d+)"', {minors[0]}),
        ("tools/reader/environment.py", r"^OLDEST, NEWEST = \(3, (\d+)\), \(3, (\d+)\)", {minors}),
        # Binder is slow to support new Python versions
        (".binder/runtime.txt", r"^python-(\S+)$", {pythons[-2] if len(pythons) > 1 else last}),
        (".devcontainer/devcontainer.json", r"python:1-(\d\.\d+)-", {last}),
        (".github/workflows/ci.yml", r'target: ([\w-]+), python: "(.+)" ', jobs),
        (".github/workflows/weekly.yml", r'python-version: "(.+)"', {last}),
        (".github/workflows/site.yml", r'python-version: "(.+)"', {last}),
    ]


def faults(root: Path) -> list[str]:
    """Return the files that contradict pyproject.toml, or no longer name a version."""
    course = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["course"]
    messages = []
    for name, pattern, wanted in places(course["oldest-jax"], course["pythons"]):
        stated = set(re.findall(pattern, (root / name).read_text(encoding="utf-8"), re.M))
        if stated != wanted:
            messages.append(
                f"{name}: says {stated or 'nothing'}, but [tool.course] in pyproject.toml requires {wanted}"
            )
    return messages


def package_faults(root: Path) -> list[str]:
    """Return a fault for each package of requirements.txt that the list for the oldest or the newest JAX lacks."""

    def named(file: str) -> set[str]:
        return set(re.findall(r"^[\w-]+", (root / file).read_text(encoding="utf-8"), re.M))

    lists = {"tests/requirements-oldest.txt": "==the version in Colab", "tests/requirements-newest.txt": ""}
    return [
        f"{file} lacks a package of requirements.txt: add the line {name}{version}"
        for file, version in lists.items()
        # JupyterLab isn't needed for the tests
        for name in sorted(named("requirements.txt") - named(file) - {"jupyterlab"})
    ]


def test_requirement_lists_for_other_versions_are_complete():
    lesson_lint.fail_with(package_faults(notebooks.ROOT))


def minors(versions: list[str]) -> list[str]:
    """Return the minor versions, such as 0.10, once each and in increasing order."""
    return sorted(
        {".".join(version.split(".")[:2]) for version in versions}, key=lambda minor: int(minor.split(".")[1])
    )


def test_the_weekly_run_covers_each_minor_version_before_the_newest():
    """Test that the weekly run covers every minor version of JAX from the oldest supported one up to the second newest.

    The released versions come from the record of names, to which each release is added (see CONTRIBUTING).
    """
    course = tomllib.loads((notebooks.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["course"]
    released = minors(Record().versions)
    weekly = (notebooks.ROOT / ".github" / "workflows" / "weekly.yml").read_text(encoding="utf-8")
    versions_run = re.findall(r'what: "(.+)", target: test-jax', weekly)
    assert versions_run == released[released.index(minors([course["oldest-jax"]])[0]) : -1]
    assert 'JAX="$WHAT"' in weekly and "jax==$(JAX).*" in (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_file_agrees_with_pyproject():
    lesson_lint.fail_with(faults(notebooks.ROOT))
