"""Test `make lesson` in a copy of the checkout: the draft that it creates passes every test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import finished_lesson_lint, lesson_lint
from tools.lessons import embed_scripts, new, notebooks, readme

pytestmark = pytest.mark.other_versions


def test_drafts_are_reported():
    """Report the missing parts of drafts in pytest's summary, because drafts pass all tests."""
    paths = {row.number: notebooks.ROOT / row.path for row in DRAFTS}
    lacks = {
        number: list(finished_lesson_lint.page_faults(path, notebooks.read(path).cells))
        for number, path in paths.items()
    }
    if lacks:
        pytest.skip("; ".join(f"lesson {number} is a draft: {', '.join(faults)}" for number, faults in lacks.items()))


DRAFTS = [row for row in readme.rows() if row.is_draft]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the checkout's files, without its history, and return the new folder."""
    listed = ["git", "-C", str(notebooks.ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]:
        source, target = notebooks.ROOT / name, tmp_path / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return tmp_path


@pytest.mark.long
def test_a_new_lesson_passes_its_tests(copy):
    def python(*arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        run = subprocess.run(
            [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, timeout=300
        )
        assert run.returncode == 0, run.stdout + run.stderr

    python("-m", "tools.lessons.new", "89", "toy", "A toy's lesson")  # between Part III and the appendix
    houses = [f"tests/repository/test_{name}.py" for name in ("site_sources", "slides")]
    python(
        "-m", "pytest", "tests/lessons", "tests/exercises", *houses, "-k", "(89 or bytes_of_part) and not runs_twice"
    )
    before, made, after = notebooks.lessons(copy)[-3:]
    notebook, text = notebooks.read(made), (copy / "README.md").read_text(encoding="utf-8")
    assert readme.with_lesson_tables(text, readme.rows(copy)) == text
    assert "| 89 | [A toy's lesson](notebooks/89_toy.ipynb)<br>[![Open in Colab](" in text
    lines = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code").splitlines()
    assert max(map(len, lines)) <= 88  # the longest line that make check allows
    assert "- Lesson 89, A toy's lesson.\n" in (copy / "CHANGELOG.md").read_text(encoding="utf-8")
    assert notebooks.read(before).cells[-1].source.endswith("**Next:** [89 · A toy's lesson](89_toy.ipynb)")
    assert notebook.cells[-1].source.endswith(f"**Next:** {new.link_to(after)}")
    assert next(cell for cell in notebook.cells if cell.id == "script").source == embed_scripts.cell_source(
        embed_scripts.script_of(made)
    )


def test_a_later_part_continues_the_numbering_and_must_be_finished(copy):
    """Test adding lesson 05c: lesson 05 has four exercises and 05b has three, so 05c begins with Exercise 5.8."""
    path = new.create_lesson("05c", "more_rings", "More rings", copy)
    assert [row.number for row in readme.rows(copy)][5:9] == ["05", "05b", "05c", "06"]
    assert "### Exercise 5.8 — " in path.read_text(encoding="utf-8")
    assert (
        "(05c_more_rings.ipynb)"
        in notebooks.read(copy / "notebooks" / "05b_gradients_and_rings.ipynb").cells[-1].source
    )
    assert "(06_pmap_data_parallel.ipynb)" in notebooks.read(path).cells[-1].source
    not_run = "its last line is an expression, but the cell has no output: run make refresh"
    ids = ("opening", "sixteen-draw", "ex-bytes-check", "work-run")
    no_output = "sixteen-read: has the tag `answer`, but no output comes between it and a question"
    assert lesson_lint.structure_faults(path) == [no_output, *(f"{name}: {not_run}" for name in ids)]
    path.write_text(path.read_text(encoding="utf-8").replace(readme.DRAFT, "Rings take 7 steps."), encoding="utf-8")
    lacks = lesson_lint.structure_faults(path)[1 + len(ids) :]
    assert {"contains TODO", "opening: draws no picture", "1 predictions; a page needs four to seven"} <= set(lacks)
    assert "1 exercises; a page needs three or four: further ones go into another part" in lacks


def test_the_last_lesson_links_to_the_first_and_the_changelog_may_be_empty(copy):
    changelog = copy / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## [Unreleased]\n\n## [1.0]\n\n### Added\n\n- All.\n", encoding="utf-8")
    path = new.create_lesson("91", "more", "More", copy)
    assert "**Next:** [00 · " in notebooks.read(path).cells[-1].source
    updated = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Lesson 91, More.\n\n## [1.0]\n\n### Added\n\n- All.\n"
    assert changelog.read_text(encoding="utf-8") == updated


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("", "", ""), "NUMBER, NAME and TITLE are required"),
        (("10", "fully_sharded", ""), "NUMBER, NAME and TITLE are required"),
        (("6", "a", "A"), "NUMBER must be two digits, plus a letter for a later part, not '6'"),
        (("10B", "a", "A"), "NUMBER must be two digits, plus a letter for a later part, not '10B'"),
        (("06", "a", "A"), "06 is already used by 06_pmap_data_parallel.ipynb"),
        (("77b", "a", "A"), "77b is a later part of 77, which does not exist"),
        (("77", "Fully-Sharded", "A"), "NAME must be in snake_case, not 'Fully-Sharded'"),
        (("77", "a", "A | B"), "TITLE must not contain | or [ ], which break tables and links: 'A | B'"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(arguments, why):
    with pytest.raises(SystemExit, match=f"^Error: {re.escape(why)}: make lesson NUMBER=10 NAME=") as stopped:
        new.main(*arguments)
    assert "\n" not in str(stopped.value)
