"""Test the reader's copies, which collapse the answers to questions and preserve the reader's work."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests import lesson_lint
from tools.lessons import notebooks
from tools.lessons.notebooks import QUESTION, split_blocks
from tools.reader import copies
from utils import guess_gate


def text(source):
    return new_markdown_cell(source)


def tagged(tag, source):
    return new_markdown_cell(source, metadata={"tags": [tag]})


def answer(source):
    return tagged(notebooks.ANSWER_TAG, source)


def leads(source):
    return tagged(notebooks.LEADS_ON_TAG, source)


def ran(source):
    """Return a code cell that has printed 7."""
    return new_code_cell(source, outputs=[new_output("stream", text="7\n")])


ASKED = f"Before.\n\n{QUESTION} How many?"


ASK, COUNT, SEVEN = text(ASKED), ran("count"), text("Seven.")
COLLAPSED = {
    "all of a cell": ([answer("Seven.\n\nBecause."), text("On.")], {(0, 0), (0, 1)}),
    "up to a heading": ([answer("Seven.\n\n```\n# no heading\n```\n\n### Next\n\nOn.")], {(0, 0), (0, 1)}),
    "up to a question": ([answer("Seven.\n\n" + QUESTION + " And eight?\n\nOn.")], {(0, 0)}),
    "nothing without the tag": ([ASK, COUNT, SEVEN, leads("And eight?")], set()),
}


@pytest.mark.parametrize(("cells", "blocks"), COLLAPSED.values(), ids=COLLAPSED)
def test_the_text_of_a_cell_with_the_tag_is_collapsed(cells, blocks):
    assert copies.blocks_to_collapse(cells) == blocks


TASK = new_markdown_cell("### Exercise 2.1\n\nSeven?", id="ex-seven-task")
AFTER_ANSWERS = {  # the indices of the cells that need one of the tags `answer` and `leads`
    "each text": ([ASK, COUNT, SEVEN, ran("on"), text("On.")], [2, 4]),
    "not before an output": ([ASK, new_code_cell("make"), text("Made."), COUNT, SEVEN], [4]),
    "with a heading below": ([ASK, COUNT, text("Seven.\n\n## Next\n\nOn."), ran("on"), text("On.")], [2]),
    "not after a heading": ([ASK, COUNT, text("### Next\n\nOn."), ran("on"), text("On.")], []),
    "all sections of a question": ([ASK, text("### First way"), COUNT, SEVEN, text("### Second way"), COUNT, SEVEN], [3, 6]),
    "not an exercise": ([ASK, text("### First way"), COUNT, TASK, COUNT, SEVEN], []),
    "up to the next question": ([ASK, COUNT, text("Seven.\n\n" + ASKED), text("More."), ran("8"), text("Eight.")], [2, 5]),
    "not without a question": ([text("No question."), COUNT, SEVEN], []),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "after"), AFTER_ANSWERS.values(), ids=AFTER_ANSWERS)
def test_text_after_an_answer_needs_a_tag(cells, after):
    reported = {id(cell) for cell in lesson_lint.texts_after_answers(cells)}
    assert [number for number, cell in enumerate(cells) if id(cell) in reported] == after


def test_the_lint_reports_a_text_after_an_answer_without_a_tag_and_the_tag_elsewhere():
    right = [ASK, COUNT, answer("Seven."), leads("And eight?")]
    assert list(lesson_lint._answer_faults(right)) == []
    [missing] = lesson_lint._answer_faults([ASK, COUNT, SEVEN])
    [elsewhere] = lesson_lint._answer_faults([ASK, answer("A first."), COUNT])
    assert (
        "needs one of the tags `answer` and `leads`" in missing
        and "no output comes between it and a question" in elsewhere
    )


def test_titles_of_collapsible_sections():
    """Test that only the title of the first collapsible section after a question mentions the guess."""
    again = leads("Again?\n\n" + ASKED)
    cells = [text(ASKED), ran("a"), answer("Seven."), ran("b"), answer("More."), again, ran("c")]
    copied = copies.make_copy(new_notebook(cells=[*cells, answer("Eight.")])).cells
    assert copied[2].source == copies.COLLAPSED_ANSWER + "Seven.\n\n</details>" and copied[7].source.startswith(
        copies.COLLAPSED_ANSWER
    )
    assert copied[4].source == copies.COLLAPSED_TEXT + "More.\n\n</details>" and copied[5].source == cells[5].source


def test_code_that_reveals_an_answer_is_hidden():
    cell = ran('picture(fig, "Seven circles.")')
    assert "jupyter" not in copies.make_copy(new_notebook(cells=[cell])).cells[0].metadata
    cell.metadata["tags"] = [notebooks.REVEALS_ANSWER_TAG]
    [copied] = copies.make_copy(new_notebook(cells=[cell])).cells
    assert copied.metadata["jupyter"] == {"source_hidden": True} and copied.metadata["cellView"] == "form"
    assert copied.source == guess_gate.AFTER_GUESS + cell.source
    assert copies.make_copy(new_notebook(cells=[copied])).cells[0].source == copied.source


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_a_copy_shows_no_answer_and_is_complete(path):
    lesson = notebooks.read(path)
    copied = copies.make_copy(notebooks.read(path))
    assert not any(cell.get("outputs") for cell in copied.cells if cell.id != "opening")
    for before, after in zip(lesson.cells, copied.cells, strict=True):
        plain = (
            after.source.replace(copies.COLLAPSED_ANSWER, "")
            .replace(copies.COLLAPSED_TEXT, "")
            .replace("\n\n</details>", "")
        )
        plain = plain.removeprefix(guess_gate.AFTER_GUESS)
        plain = re.sub(r"^(guess = None.*?)(, |  # )or guess = skip$", r"\1", plain, flags=re.M)
        plain = re.sub(r"\A\*\*Next:\*\* .* is optional\.\n\n(?=## Going further)", "", plain)
        kept = before.source.partition("\n\n[![Open in")[0]  # without the badges at the end
        assert (split_blocks(plain) if before.cell_type == "markdown" else plain) == (
            split_blocks(kept) if before.cell_type == "markdown" else kept
        )
    nbformat.validate(copied)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Return a course with a single lesson."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    (tmp_path / "notebooks").mkdir()
    write(tmp_path, "Seven.")
    return tmp_path


def write(course, reading):
    """Write lesson 02, with a question and the text `reading` after its answer."""
    cells = [text("# 02 · Sharding"), text(ASKED), ran("count"), answer(reading)]
    notebooks.write(new_notebook(cells=cells), course / "notebooks" / "02_sharding.ipynb")


def test_a_copy_with_work_is_kept(course):
    assert list(copies.update_copies(course)) == []
    mine = course / "work" / "02_sharding.ipynb"
    assert "<details>" in mine.read_text() and "7\\n" not in mine.read_text()
    mine.write_text(mine.read_text().replace("count", "my answer"))
    assert list(copies.update_copies(course)) == []
    write(course, "Seven, as a new version says.")
    for _ in range(2):  # each update repeats the message
        [line] = copies.update_copies(course)
        assert (
            line
            == "Lesson 02 has changed since you began it. Your copy is kept; make fresh LESSON=02 gives you the new one."
        )
        assert "my answer" in mine.read_text()
        assert f"\n> {line}\n" in (course / "work" / "START.md").read_text()
    assert (
        copies.restart_lesson("02", course)
        == "work/02_sharding.ipynb is new. Your old copy is work/kept/02_sharding.1.ipynb."
    )
    assert "new version" in mine.read_text() and "my answer" in (course / "work/kept/02_sharding.1.ipynb").read_text()
    assert list(copies.update_copies(course)) == []


def test_a_copy_that_was_only_opened_is_updated(course):
    """Test that a copy is updated if the reader only opened it.

    JupyterLab saves a notebook that is only opened, adds the kernel's metadata and sorts the keys.
    """
    list(copies.update_copies(course))
    mine = course / "work" / "02_sharding.ipynb"
    looked_at = json.loads(mine.read_text())
    looked_at["metadata"]["language_info"] = {"name": "python", "version": "3.12.1"}
    mine.write_text(json.dumps(looked_at, sort_keys=True))
    write(course, "Seven, as a new version says.")
    assert list(copies.update_copies(course)) == [] and "new version" in mine.read_text()


def test_a_copy_without_work_is_updated(course):
    list(copies.update_copies(course))
    write(course, "Seven, as a new version says.")
    assert list(copies.update_copies(course)) == []
    assert "new version" in (course / "work" / "02_sharding.ipynb").read_text()


@pytest.mark.parametrize("damage", ["{", "[]", '{"02_sharding.ipynb": 5}', None])
def test_a_copy_is_kept_without_the_list(course, damage):
    list(copies.update_copies(course))
    known, mine = course / "work" / ".copies.json", course / "work" / "02_sharding.ipynb"
    known.unlink() if damage is None else known.write_text(damage)
    mine.write_text(mine.read_text().replace("count", "my answer"))
    assert list(copies.update_copies(course)) == []
    assert "my answer" in mine.read_text()


# An update makes five writes: two lessons, the list of copies after each lesson, and the start page.
@pytest.mark.parametrize("writes", range(6))
def test_a_full_disk_leaves_no_partial_lesson(course, monkeypatch, writes):
    shutil.copy(course / "notebooks" / "02_sharding.ipynb", course / "notebooks" / "03_later.ipynb")
    real, left = Path.write_text, [writes]

    def filling(path, text, **options):
        left[0] -= 1
        if left[0] < 0:
            real(path, text[: len(text) // 2], **options)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, text, **options)

    monkeypatch.setattr(Path, "write_text", filling)
    with contextlib.suppress(OSError):
        list(copies.update_copies(course))
    monkeypatch.setattr(Path, "write_text", real)
    for mine in (course / "work").iterdir():
        json.loads(mine.read_text()) if mine.suffix != ".md" else None  # no file is truncated
    assert list(copies.update_copies(course)) == []
    write(course, "Seven, as a new version says.")
    assert list(copies.update_copies(course)) == []
    names = {mine.name for mine in (course / "work").iterdir()}
    assert names == {"02_sharding.ipynb", "03_later.ipynb", "START.md", ".copies.json"}
    assert "new version" in (course / "work" / "02_sharding.ipynb").read_text()  # the reader hasn't edited this copy


BAD = {
    "no UTF-8": lambda mine: mine.write_bytes(b"\xff\xfe{"),
    "half a lesson": lambda mine: mine.write_text('{"cells": ['),
    "empty": lambda mine: mine.write_text(""),
    "no notebook": lambda mine: mine.write_text("[]"),
    "deep": lambda mine: mine.write_text("[" * 200_000),
    "a folder": lambda mine: mine.mkdir(),
    "a link to nothing": lambda mine: mine.symlink_to("nowhere/at/all"),
    "a link to itself": lambda mine: mine.symlink_to(mine),
    "a pipe": lambda mine: os.mkfifo(mine),
}


@pytest.mark.parametrize(
    ("bad", "begun"), [*((bad, False) for bad in BAD), ("half a lesson", True), ("a folder", True)]
)
def test_a_bad_file_is_set_aside_and_other_lessons_are_copied(course, bad, begun):
    if bad == "a pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    shutil.copy(course / "notebooks" / "02_sharding.ipynb", course / "notebooks" / "03_later.ipynb")
    mine, later = course / "work" / "02_sharding.ipynb", course / "work" / "03_later.ipynb"
    list(copies.update_copies(course)) if begun else mine.parent.mkdir()
    mine.unlink(missing_ok=True)
    BAD[bad](mine)
    messages = ["work/02_sharding.ipynb isn't a readable notebook. It was moved to work/kept/02_sharding.1.ipynb."]
    assert [line.replace(os.sep, "/") for line in copies.update_copies(course)] == messages
    assert os.path.lexists(course / "work/kept/02_sharding.1.ipynb")
    assert mine.read_text() == later.read_text() and list(copies.update_copies(course)) == []


def test_folders_with_the_names_of_the_lists_are_set_aside(course):
    for name in ("START.md", ".copies.json"):
        (course / "work" / name).mkdir(parents=True)
    assert [line.split(" is a folder")[0] for line in copies.update_copies(course)] == [
        "work/.copies.json",
        "work/START.md",
    ]
    assert list(copies.update_copies(course)) == [] and (course / "work" / "START.md").is_file()


@pytest.mark.parametrize("damage", ['{"02_sharding.ipynb": {}}', "[" * 200_000], ids=["part", "deep"])
def test_a_damaged_list_is_ignored(course, damage):
    list(copies.update_copies(course))
    (course / "work" / ".copies.json").write_text(damage)
    assert list(copies.update_copies(course)) == [] and list(copies.update_copies(course)) == []


def test_a_copy_that_is_a_symbolic_link_remains_one(course):
    (course / "work").mkdir()
    mine, link_target = course / "work" / "02_sharding.ipynb", course / "elsewhere.ipynb"
    link_target.write_text(copies.notebooks.to_text(copies.make_copy(notebooks.read(notebooks.lesson("02", course)))))
    mine.symlink_to(link_target)
    write(course, "Seven, as a new version says.")
    (course / "work" / ".copies.json").write_text(
        json.dumps({mine.name: {"copy": copies._fingerprint(link_target.read_text()), "lesson": ""}})
    )
    assert list(copies.update_copies(course)) == [] and mine.is_symlink() and "new version" in link_target.read_text()


def test_a_full_disk_is_reported_in_one_line(course, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "02")

    monkeypatch.setattr(copies, "update_copies", full)
    with pytest.raises(SystemExit, match=r"^Error: \[Errno \d+\] No space left on device: '02'\. "):
        copies.main([])


def test_an_unknown_lesson_is_refused(course):
    for wanted, refusal in [
        ("77", "there is no lesson 77; there are 02"),
        ("", "no lesson without a number; there are 02"),
    ]:
        with pytest.raises(ValueError, match=refusal):
            copies.restart_lesson(wanted, course)


def test_a_lesson_number_without_its_leading_zero(course):
    assert copies.restart_lesson("2", course) == "work/02_sharding.ipynb is new."
    assert copies.restart_lesson("02_sharding", course).startswith("work/02_sharding.ipynb is new.")


def test_the_start_page(course):
    shutil.copytree(notebooks.ROOT / "notebooks", course / "notebooks", dirs_exist_ok=True)
    assert "**Begin with** [00 · " in copies.start_page(course)
    (course / "progress.json").write_text(
        json.dumps({"02": {"exercises": {"holder_of": "right"}, "predictions": {"a": "wrong", "b": "right at once"}}})
    )
    page = copies.start_page(course)
    assert "**Continue with** [02 · Sharding](02_sharding.ipynb)." in page
    assert "| [02 · Sharding](02_sharding.ipynb) | 1 of 4 | 1 of 2 |" in page


def test_the_start_page_continues_with_the_last_saved_lesson(course):
    write(course, "Seven.")
    shutil.copy(course / "notebooks" / "02_sharding.ipynb", course / "notebooks" / "03_later.ipynb")
    list(copies.update_copies(course))
    begun = {"exercises": {"holder_of": "tried"}}
    (course / "progress.json").write_text(json.dumps({"02": begun, "03": {"exercises": {"four": "tried"}}}))
    for name, seconds in [("02_sharding", 2000), ("03_later", 1000)]:
        os.utime(course / "work" / f"{name}.ipynb", (seconds, seconds))
    assert "**Continue with** [02 · Sharding](02_sharding.ipynb)." in copies.start_page(course)


def test_collapsible_sections_contain_no_headings():
    """Test that collapsible sections contain no headings, which JupyterLab would list in its table of contents."""
    for path in notebooks.lessons():
        for cell in copies.make_copy(notebooks.read(path)).cells:
            folded = re.findall(r"<details>.*?</details>", cell.source, re.S)
            assert not any(
                re.search(r"^#+ ", re.sub(r"^```.*?^```", "", fold, flags=re.M | re.S), re.M) for fold in folded
            )


def test_the_workflow_pushes_to_the_branch_of_the_badges():
    workflow = (notebooks.ROOT / ".github" / "workflows" / "copies.yml").read_text()
    for ref in ("main", "v1", "v1.2"):
        assert notebooks.copies_branch(ref) == re.search(r"refs/heads/(\S+)\"", workflow)[1].replace(
            "$GITHUB_REF_NAME", ref
        )
    assert "branches: [main]" in workflow and 'tags: ["v*"]' in workflow
    assert notebooks.copies_branch("2f3a") == "2f3a"  # the workflow doesn't make copies for a single commit


def test_a_copy_has_no_badges_and_leads_on_before_the_optional_part():
    for number in ("00", "02"):
        copy = copies.make_copy(notebooks.read(notebooks.lesson(number)))
        sources = [cell.source for cell in copy.cells]
        assert not [source for source in sources if "[![Open in" in source]
        [optional] = [source for source in sources if "## Going further" in source]
        first, *_ = optional.split("\n\n")
        following = {"00": "](01_devices.ipynb)", "02": "](03_auto_parallel_jit.ipynb)"}[number]
        assert first.startswith("**Next:** ") and following in first and following in sources[-1]


def test_a_copy_of_a_copy_is_the_same():
    """Test that copying a copy changes nothing.

    A copy is copied if the workflow runs twice, or if a reader opens a copy in a clone of the copies' branch.
    """
    once = copies.make_copy(notebooks.read(notebooks.lesson("02")))
    assert notebooks.to_text(copies.make_copy(once)) == notebooks.to_text(once)
