"""How the course is proved: what tests/README.md says of it, and that no page keeps what is compiled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.lessons import notebooks

MAKEFILE = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
TABLE = (notebooks.ROOT / "tests" / "README.md").read_text(encoding="utf-8")


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
    """tests/README.md: a row for each command, with the pass that lessons get there."""
    [rule] = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    variable = f"THE_{target.partition('-')[2].upper() or 'DEFAULT'}"
    assert f"$({variable})" in rule
    [value] = re.findall(rf"^{variable} = (.*)$", MAKEFILE, re.M)
    assert passes in value
    assert all(f"tests/{folder}" in value for folder in filter(None, tests.split(", ")))
    [row] = re.findall(rf"^\| `make {target}` \|.*$", TABLE, re.M)
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


def test_slurm_is_installed_for_the_command_that_starts_it():
    ci = (notebooks.ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    [target] = re.findall(r"Install Slurm.*\n +if: matrix.target == '(.+)'", ci)
    [value] = re.findall(rf"^THE_{target.partition('-')[2].upper()} = (.*)$", MAKEFILE, re.M)
    assert "tests/examples/test_train.py" in value
