"""Make the reader's copies of the lessons in work/. `make lab` runs this; `make fresh LESSON=02` replaces a copy.

In a copy, outputs are removed and text that reveals an answer is in a collapsible section, so that readers don't see an
answer beside its question. A copy that the reader has changed is never overwritten.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat

from exercises import progress
from tools.lessons import course_routes, notebooks
from tools.lessons.notebooks import QUESTION, split_blocks
from utils.atomic_write import write_atomically
from utils.guess_gate import AFTER_GUESS, OR_SKIP

COLLAPSED_ANSWER = "<details>\n<summary>After your guess: what it shows</summary>\n\n"
# The start of later collapsed sections, which don't directly follow a question.
COLLAPSED_TEXT = COLLAPSED_ANSWER.replace("After your guess: what it shows", "What this shows")
BADGES = re.compile(r"\n*(^\[!\[Open in .*\n?)+\Z", re.M)  # at the end of a lesson's title cell
OPTIONAL_PART = "## Going further"
LESSON_CHANGED = (
    "Lesson {0} has changed since you began it. Your copy is kept; make fresh LESSON={0} gives you the new one."
)
ALREADY_OPEN = 3  # exit status: JupyterLab is already running in this folder
START_PAGE = """# One Program, Many Devices

These are your copies of the lessons. Make guesses, run cells and change anything you like: the course's own files
stay as they are. **To run a cell, press Shift+Enter.**

{where}{news}

{routes}

| Lesson | Exercises right | Guesses right first time |
|---|---|---|
{rows}

- **To stop**, save your notebooks, close the browser tab, and press Ctrl-C in the terminal. **To come back**, type
  `make lab` again. Your text and code are still there, but the variables are gone, so start a lesson from its first
  cell. In the menu *Run*, *Run All Above Selected Cell* brings you back to where you were.
- **A question waits for your guess.** Until you replace `None` with it, the cell runs but shows nothing. `guess = skip`
  shows the answer without a guess.
- **To start a lesson again**, type `make fresh LESSON=02` in the terminal. Your old copy is kept in `work/kept`.
- **To get a new version of the course**, type `git pull` and then `make lab`, which lists the lessons that have changed
  since you began them.
- Your results are stored in `progress.json`, only on this machine. The table shows them as they were when `make lab`
  started, and `make progress` prints them at any time.
"""


def make_copy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a lesson as readers should first see it, without outputs and badges, and with collapsed answers.

    The link to the next lesson also appears before the optional part.
    """
    to_collapse = blocks_to_collapse(notebook.cells)
    copy = notebooks.canonical(notebook)
    copy.cells[0].source = BADGES.sub("", copy.cells[0].source)
    next_lesson = re.search(r"^\*\*Next:\*\* .*", copy.cells[-1].source, re.M)
    opening = COLLAPSED_TEXT
    for cell_index, cell in enumerate(copy.cells):
        asks = cell.cell_type == "markdown" and QUESTION in cell.source
        if cell.cell_type == "code":
            cell.outputs = cell.outputs if cell.id == "opening" else []  # the first picture doesn't reveal an answer
            cell.source = re.sub(r"^guess = None(  #.*)?", _add_skip, cell.source)
            if notebooks.REVEALS_ANSWER_TAG in cell.metadata.get("tags", ()):
                cell.metadata.update(notebooks.HIDDEN_CODE)
                cell.source = AFTER_GUESS + cell.source.removeprefix(AFTER_GUESS)
        elif block_indices := {block for at, block in to_collapse if at == cell_index}:
            cell.source = "\n\n".join(_collapse(split_blocks(cell.source), block_indices, opening))
            cell.metadata["tags"].remove(notebooks.ANSWER_TAG)  # so that a copy of this copy isn't collapsed again
            opening = COLLAPSED_TEXT
        opening = COLLAPSED_ANSWER if asks else opening
        if next_lesson and cell.source.startswith(OPTIONAL_PART):
            cell.source = f"{next_lesson[0]} The rest of this lesson is optional.\n\n{cell.source}"
    return copy


def _add_skip(line: re.Match) -> str:
    """Append `or guess = skip` to the comment on an empty guess, in the form that utils/guess_gate.py recognises."""
    if line[0].endswith(OR_SKIP):
        return line[0]
    return f"{line[0]}, {OR_SKIP}" if line[1] else f"{line[0]}  # {OR_SKIP}"


def _collapse(text_blocks: list[str], to_collapse: set[int], opening: str) -> Iterator[str]:
    """Put each run of consecutive blocks that reveal an answer into a collapsible section."""
    group: list[str] = []
    for block_index, block in enumerate([*text_blocks, ""]):
        if block_index in to_collapse:
            group.append(block)
            continue
        if group:
            yield opening + "\n\n".join(group) + "\n\n</details>"
            group, opening = [], COLLAPSED_TEXT
        if block:
            yield block


def blocks_to_collapse(cells: list[nbformat.NotebookNode]) -> set[tuple[int, int]]:
    """Return the blocks of text that reveal an answer, as pairs (cell index, block index).

    These are the blocks of cells with the tag `answer`, up to the cell's first question or heading.
    """
    return {
        (cell_index, block_index)
        for cell_index, cell in enumerate(cells)
        if notebooks.ANSWER_TAG in cell.metadata.get("tags", ())
        for block_index, _ in enumerate(
            itertools.takewhile(
                lambda block: not re.match(rf"{re.escape(QUESTION)}|#+ ", block), split_blocks(cell.source)
            )
        )
    }


def update_copies(root: Path = notebooks.ROOT) -> Iterator[str]:
    """Copy each lesson that has no copy yet, and update the unchanged copies.

    Yields a message for each lesson that has changed since the reader began it, and for each file moved to work/kept.
    """
    work = root / "work"
    work.mkdir(exist_ok=True)
    for own_file in (work / ".copies.json", work / "START.md"):
        if own_file.is_dir():
            yield f"work/{own_file.name} is a folder. It was moved to {_set_aside(own_file, root)}."
    saved, news = _load_fingerprints(work), []
    for path in notebooks.lessons(root):
        target, text = work / path.name, notebooks.to_text(make_copy(notebooks.read(path)))
        new = {"copy": _fingerprint(text), "lesson": _fingerprint(text)}
        current = _fingerprint_file(target) if os.path.lexists(target) else ""
        if current is None:
            yield f"work/{target.name} isn't a readable notebook. It was moved to {_set_aside(target, root)}."
        if current and current not in (saved.get(target.name, new)["copy"], new["copy"]):
            fingerprints = saved.get(target.name, {**new, "copy": ""})
            if fingerprints["lesson"] != new["lesson"]:
                news.append(LESSON_CHANGED.format(notebooks.number(path)))
        else:
            fingerprints = new
            if current != new["copy"]:
                write_atomically(target, text)
        if saved.get(target.name) != fingerprints:
            saved[target.name] = fingerprints  # saved after each lesson, so that an interruption loses nothing
            write_atomically(work / ".copies.json", json.dumps(saved, indent=1) + "\n")
    write_atomically(work / "START.md", start_page(root, news))
    yield from news


def _set_aside(path: Path, root: Path) -> Path:
    """Move a file to work/kept, and return its new path relative to the course's folder."""
    folder = root / "work" / "kept"
    folder.mkdir(exist_ok=True)
    names = (folder / f"{path.stem}.{count}{path.suffix}" for count in range(1, 10_000))
    new_path = next(name for name in names if not os.path.lexists(name))
    path.rename(new_path)
    return new_path.relative_to(root)


def restart_lesson(number: str, root: Path = notebooks.ROOT) -> str:
    """Replace the reader's copy of a lesson with a new one, and move the old one to work/kept.

    Raises ValueError for an unknown lesson.
    """
    path = notebooks.lesson(number, root)
    target, message = root / "work" / path.name, ""
    if os.path.lexists(target):
        message = f" Your old copy is {_set_aside(target, root)}."
    for line in update_copies(root):
        print(line)
    return f"work/{path.name} is new.{message}"


def start_page(root: Path = notebooks.ROOT, news: Sequence[str] = ()) -> str:
    """Return the start page's text, which shows where to continue, the lessons that have changed, and the results."""
    results, rows, untouched = progress.load_progress(), [], ""
    latest = (0.0, "", "")  # the most recently saved lesson in progress: (time, number, link)
    for path in notebooks.lessons(root):
        number = notebooks.number(path)
        title = next(line[2:] for line in notebooks.read(path).cells[0].source.split("\n") if line.startswith("# "))
        right, of, at_once, guessed = progress.count_results(results, number)
        link = f"[{title}]({path.name})"
        rows.append(f"| {link} | {right} of {of} | {f'{at_once} of {guessed}' if guessed else ''} |")
        if number not in results:
            untouched = untouched or link
        elif right < of:
            saved = (root / "work" / path.name).stat().st_mtime if (root / "work" / path.name).exists() else 0
            latest = max(latest, (saved, number, link))
    where = (
        f"**Continue with** {latest[2]}."
        if latest[2]
        else f"**Begin with** {untouched}."
        if untouched
        else "You have solved everything."
    )
    return START_PAGE.format(
        where=where,
        routes=course_routes.table(copies=True),
        rows="\n".join(rows),
        news="".join(f"\n\n> {line}" for line in news),
    )


def _load_fingerprints(work: Path) -> dict[str, dict[str, str]]:
    """Return the fingerprints of each copy and of the lesson it was made from, or {} if their file is unusable."""
    try:
        saved = json.loads((work / ".copies.json").read_text(encoding="utf-8"))
        return {name: {"copy": entry["copy"], "lesson": entry["lesson"]} for name, entry in saved.items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return {}


def _fingerprint_file(path: Path) -> str | None:
    """Return the fingerprint of a notebook file, or None if it can't be read as a notebook."""
    try:
        return _fingerprint(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _fingerprint(text: str) -> str:
    """Return a hash of a notebook's cells only, because JupyterLab adds metadata when it saves an unchanged lesson."""
    return hashlib.sha256(json.dumps(json.loads(text)["cells"], sort_keys=True).encode()).hexdigest()[:16]


def find_running_lab(work: Path) -> str:
    """Return the URL of a JupyterLab that is running in this folder, or "" if there's none."""
    from jupyter_server.serverapp import list_running_servers

    here = [server for server in list_running_servers() if Path(server["root_dir"]).resolve() == work.resolve()]
    return f"{here[0]['url']}lab?token={here[0]['token']}" if here else ""


def main(arguments: list[str]) -> None:
    try:
        _main(arguments)
    except OSError as error:
        raise SystemExit(
            f"Error: {error}. Your copies in work/ are unchanged. Run the same command to continue."
        ) from error


def _main(arguments: list[str]) -> None:
    if not arguments or arguments[0] == "--lab":
        if address := find_running_lab(notebooks.ROOT / "work") if arguments else "":
            print(f"Your lessons are already open: {address}")
            print(
                "Two JupyterLabs would overwrite each other's changes. "
                "To stop the one that is running, press Ctrl-C in its terminal."
            )
            raise SystemExit(ALREADY_OPEN)
        for line in update_copies():
            print(line)
        print("Opening work/START.md. To stop, save and press Ctrl-C here. The same command opens it again.")
    elif arguments[0] == "--over":  # replace the lessons themselves, for .github/workflows/copies.yml
        for path in notebooks.lessons():
            notebooks.write(make_copy(notebooks.read(path)), path)
    elif arguments[0] == "--fresh":
        try:
            print(restart_lesson(arguments[1] if len(arguments) > 1 else ""))
        except ValueError as error:
            raise SystemExit(f"Error: {error}. Type make fresh LESSON=02, or python start.py fresh 02.") from error


if __name__ == "__main__":
    main(sys.argv[1:])
