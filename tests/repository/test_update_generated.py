"""Test that the repository's name comes from one constant, and that generated tables and pictures are up to date."""

from __future__ import annotations

import base64
import re
import shutil

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from tests import lesson_lint
from tools.lessons import embed_scripts, notebooks, readme, update_generated

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_lists_the_lessons():
    assert readme.with_lesson_tables(README, readme.rows()) == README, (
        "README's tables of lessons are out of date: run make stamp"
    )


def test_the_readmes_tables_are_written_by_part(tmp_path):
    """Test the README's tables for three lessons of 40 + 10, 65 + 10 and 40 minutes: 2.75 hours, rounded to 3."""
    task = new_markdown_cell("### Exercise 6.1 — A (●○○ · 10 min)\n\nNot the 4 of · 3 min).", id="task")
    (tmp_path / "notebooks").mkdir()
    for name, title, plan in (
        ("06_a", "# 06 · A: `a`\n\n**One\nthing.** More.", "**You need** 05, 40 minutes."),
        ("12c_b", "# 12c · B\n\n**Two, 2.5 each.**", "**Not this.**\n\n**You need** 06; 65 minutes (40 to read)."),
        ("90_c", "# 90 · C\n\n**A third.**", "**You need**\nnothing, 40 minutes."),
    ):
        cells = [new_markdown_cell(title, id="title"), new_markdown_cell(plan, id="plan")]
        cells += [] if name == "90_c" else [task]
        notebooks.write(new_notebook(cells=cells), tmp_path / "notebooks" / f"{name}.ipynb")
    first, second, third = found = readme.rows(tmp_path)
    assert first == readme.Row("06", "A: `a`", "notebooks/06_a.ipynb", "One thing.", 40, 10)
    assert (second.opening_sentence, second.minutes, second.part) == (
        "Two, 2.5 each.",
        65,
        "Part III: training at scale",
    )
    assert (first.part, third.part, third.exercise_minutes) == ("Part I: eight devices", "Appendix", 0)
    assert readme.hours(found) == readme.hours([*found, readme.Row("07", "D", "d", readme.DRAFT, 60, 60)]) == 3
    text = f"{readme.BEGIN}old{readme.END}\n\nEach lesson takes 1 to 2 minutes.\n"
    text = readme.with_lesson_tables(text, found)
    assert text.endswith(f"{readme.END}\n\nEach lesson takes 40 to 75 minutes.\n") and "old" not in text
    assert re.findall(r"^### (.+)", text, re.M) == ["Part I: eight devices", "Part III: training at scale", "Appendix"]
    [row] = re.findall(r"^\| 06 .*", text, re.M)
    colab, *others = notebooks.badges("notebooks/06_a.ipynb").split("\n")
    assert row == f"| 06 | [A: `a`](notebooks/06_a.ipynb)<br>{colab} | One thing. | 40 + 10 |"
    assert text.count(" ".join(others)) == 1 and first.short_title == "A"
    assert readme.with_lesson_tables(text, found) == text


def test_the_table_of_examples_is_up_to_date():
    text = (notebooks.ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert embed_scripts.with_script_table(text) == text, "run make stamp"
    assert all(f"({path.name})" in text for path in (notebooks.ROOT / "examples").glob("[0-9]*_*.py"))


def test_a_readme_without_a_place_for_the_lessons_is_refused():
    for place in (readme.BEGIN, "Each lesson takes"):
        with pytest.raises(ValueError, match=r"README.md has 0 places instead of one for: "):
            readme.with_lesson_tables(README.replace(place, ""), readme.rows())


@pytest.mark.parametrize("page", [".github/CONTRIBUTING.md", "notebooks/README.md", "tests/README.md"])
def test_files_named_for_contributors_exist(page):
    text = (notebooks.ROOT / page).read_text(encoding="utf-8")
    code = "\n".join(first or second for first, second in re.findall(r"(?s)```sh\n(.+?)```|`([^`\n]+)`", text))
    makefile = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z-]+)", code)):
        assert re.search(rf"^{target}:", makefile, re.M), f"there is no make {target}"
    paths = set(re.findall(r"\b(?:notebooks|utils|lesson_helpers|tests|tools|site|teach)/[\w/.*-]*", code))
    made = re.compile("NN|20_")  # files that the described steps create
    assert not [path for path in paths if not made.search(path) and not list(notebooks.ROOT.glob(path))]


def test_the_repository_has_one_name_everywhere():
    name, revision = notebooks.repository()
    pages = [notebooks.ROOT / page for page in update_generated.PAGES] + notebooks.lessons()
    owner, repo = name.split("/")
    assert set(re.findall(r"https://([\w-]+)\.github\.io/([\w.-]+)", README)) == {(owner, repo)}  # links to the site
    for page in pages:
        for found in update_generated.BADGE.finditer(page.read_text(encoding="utf-8")):
            assert (found["name"], found["revision"]) == (name, notebooks.copies_branch(revision)), page.name
    citation = (notebooks.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^repository-code: (.+)$", citation, re.M) == [f"https://github.com/{name}"]


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_a_badge_leads_to_the_lesson(path):
    places = [found["place"] for found in update_generated.BADGE.finditer(notebooks.badges(f"notebooks/{path.name}"))]
    assert places == [
        "colab.research.google.com/github/",
        "welcome?src=https://github.com/",
        "mybinder.org/v2/gh/",
        "codespaces.new/",
    ]
    # three badges open the lesson, but the Codespaces badge can't open a file
    assert notebooks.badges(f"notebooks/{path.name}").count(f"/notebooks/{path.name})") == 3


def test_every_notebook_is_a_lesson():
    assert sorted((notebooks.ROOT / "notebooks").glob("*.ipynb")) == notebooks.lessons()


@pytest.mark.parametrize("another", ["another-{owner}/{repo}-2026", "a/b"])
def test_stamp_changes_the_name_everywhere_and_back(tmp_path, monkeypatch, another):
    for part in ("notebooks", "tools", ".github", "examples"):
        shutil.copytree(notebooks.ROOT / part, tmp_path / part)
    for page in update_generated.PAGES:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebooks.ROOT / page, tmp_path / page)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    name, revision = notebooks.repository()
    owner, repo = name.split("/")
    another = another.format(owner=owner, repo=repo)
    update_generated.stamp(tmp_path, another, "v1.2")
    monkeypatch.setattr(notebooks, "SETUP", tmp_path / "tools" / "lessons" / "setup_cell.py")
    assert notebooks.repository() == (another, "v1.2")
    for path in notebooks.lessons(tmp_path):
        notebook = notebooks.read(path)
        assert lesson_lint.badge_faults(notebook, f"notebooks/{path.name}") == []
        assert [cell.source for cell in notebook.cells if cell.id == "setup"] == [notebooks.setup_source()]
        assert path.read_text(encoding="utf-8") == notebooks.to_text(notebook)
    examples = (tmp_path / "examples").glob("*.py")
    for page in [*(tmp_path / page for page in update_generated.PAGES), *notebooks.lessons(tmp_path), *examples]:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(rf"github\.com/{another}/blob/([\w.-]+)", text)) <= {"v1.2", "copies-v1.2"}
        assert not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text), page.name  # the old name must be gone
    if repo not in another:  # the name of the clone's folder must be gone, too
        assert repo not in (tmp_path / "teach" / "workshop.md").read_text(encoding="utf-8")
    site = "https://{}.github.io/{}/".format(*another.split("/"))
    assert site in (tmp_path / "README.md").read_text(encoding="utf-8")
    update_generated.stamp(tmp_path, name, revision)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(("name", "revision"), [("fork", "main"), ("a/b/c", "main"), ("a/b", "x y"), ("a/b", "")])
def test_stamp_refuses_invalid_names_and_revisions(tmp_path, name, revision):
    with pytest.raises(ValueError, match="expected owner/name"):
        update_generated.stamp(tmp_path, name, revision)


def test_the_readmes_picture_is_drawn_by_the_course():
    [cell] = [
        cell
        for cell in notebooks.read(notebooks.ROOT / "notebooks" / "02_sharding.ipynb").cells
        if cell.id == "layouts"
    ]
    picture = base64.b64decode(cell.outputs[0].data["image/png"])
    assert (notebooks.ROOT / ".github" / "layouts.png").read_bytes() == picture
    assert re.search(r"!\[[^\]]{20,}\]\(\.github/layouts\.png\)|alt=\"[^\"]{20,}\"", README)
