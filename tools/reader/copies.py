"""Make the reader's copies of the lessons, in work/: `make lab`, and `make fresh LESSON=02` to start a lesson again.

A copy has no outputs, and text that discusses an output is in a collapsible section, so that readers don't see an
answer beside its question. A copy that contains somebody's work is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat

from exercises import progress
from tools.lessons import notebooks, routes
from tools.lessons.notebooks import QUESTION, split_blocks
from utils.files import write_atomically
from utils.guess_gate import AFTER_GUESS, OR_SKIP

COLLAPSED_ANSWER = "<details>\n<summary>After your guess: what it shows</summary>\n\n"
COLLAPSED_TEXT = COLLAPSED_ANSWER.replace(
    "After your guess: what it shows", "What this shows"
)  # for text after the first collapsed section, which no question precedes
LESSON_CHANGED = "Lesson {0} has changed since you began it. Yours stays; make fresh LESSON={0} gives the new one."
ALREADY_OPEN = 3  # exit status: JupyterLab is already running in this folder
START_PAGE = """# One Program, Many Devices

These are your copies of the lessons. Guess, run, change what you like; the course's own files stay as they are.

{where}{news}

{routes}

| Lesson | Exercises right | Guesses right at once |
|---|---|---|
{rows}

- **Stop**: save, close the browser's tab, and press Ctrl-C in the terminal. **Come back**: `make lab` again. Run a
  lesson from its first cell, since the variables are gone; your text and code are there.
- **A question waits**: until you put your guess in place of `None`, its cell runs and shows nothing. `guess = skip`
  shows the answer without one. In the menu *Run*, *Run All Above Selected Cell* brings you back to where you were.
- **A lesson anew**: `make fresh LESSON=02` in the terminal. The old copy stays, in `work/kept`.
- **A new version of the course**: `git pull`, then `make lab`. It says which of your lessons have changed.
- What you solved and guessed stands in `progress.json`, on this machine alone. The table is from when `make lab` began;
  `make progress` prints it at any time.
"""


def make_copy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a lesson as a reader should first see it: without outputs, and with the answers collapsed."""
    waiting = blocks_to_collapse(notebook.cells)
    copied = notebooks.canonical(notebook)
    fold = COLLAPSED_TEXT
    for number, cell in enumerate(copied.cells):
        asks = cell.cell_type == "markdown" and QUESTION in cell.source
        if cell.cell_type == "code":
            cell.outputs = cell.outputs if cell.id == "opening" else []  # the first picture doesn't reveal an answer
            cell.source = re.sub(r"^guess = None(  #.*)?", _add_skip, cell.source)
            if notebooks.REVEALS_ANSWER_TAG in cell.metadata.get("tags", ()):
                cell.metadata.update(notebooks.HIDDEN_CODE)
                cell.source = AFTER_GUESS + cell.source.removeprefix(AFTER_GUESS)
        elif parts := {part for at, part in waiting if at == number}:
            cell.source = "\n\n".join(_collapse(split_blocks(cell.source), parts, fold))
            fold = COLLAPSED_TEXT
        fold = COLLAPSED_ANSWER if asks else fold
    return copied


def _add_skip(line: re.Match) -> str:
    """Append `or guess = skip` to the line of an empty guess, in the form that utils/guess_gate.py recognises."""
    if line[0].endswith(OR_SKIP):
        return line[0]
    return f"{line[0]}, {OR_SKIP}" if line[1] else f"{line[0]}  # {OR_SKIP}"


def _collapse(found: list[str], folded: set[int], fold: str) -> Iterator[str]:
    """Put each run of consecutive blocks that reveal an answer into a collapsible section."""
    group: list[str] = []
    for part, block in enumerate([*found, ""]):
        if part in folded:  # render headings there as bold text, to keep them out of the table of contents
            group.append(re.sub(r"^#+ (.*)", r"**\1**", block))
            continue
        if group:
            yield fold + "\n\n".join(group) + "\n\n</details>"
            group, fold = [], COLLAPSED_TEXT
        if block:
            yield block


def blocks_to_collapse(cells: list[nbformat.NotebookNode]) -> set[tuple[int, int]]:
    """Return the blocks of text that may reveal an answer, as pairs (index of the cell, index of the block).

    They are between the first output after a question and the next question or heading, as on the site.
    """
    found: set[tuple[int, int]] = set()
    for question in cells_after_questions(cells):
        outputs = [i for i, (number, part) in enumerate(question) if part is None and cells[number].outputs]
        found |= {(number, part) for number, part in question[outputs[0] :] if part is not None} if outputs else set()
    return {
        (number, part) for number, part in found if notebooks.LEADS_ON_TAG not in cells[number].metadata.get("tags", ())
    }


def cells_after_questions(cells: list[nbformat.NotebookNode]) -> Iterator[list[tuple[int, int | None]]]:
    """Yield, for each question, the code cells and blocks of text up to the next question or heading.

    Each is a pair (index of the cell, index of the block), with None instead of the block for a code cell. A section
    about a common mistake still discusses the question before it. If that section leads to the next question, its
    heading and its last paragraph are left out. If subheadings come before the first output, the question covers all
    their sections. site/_static/questions.js follows the same rules.
    """
    found: list[tuple[int, int | None]] | None = None
    answered, deepest, mistake = False, 2, -1
    for number, cell in enumerate(cells):
        for part, block in enumerate(split_blocks(cell.source) if cell.cell_type == "markdown" else [""]):
            level = len(heading[1]) if (heading := re.match(r"(#+) ", block)) else 0
            asks, task = block.startswith(QUESTION), block.startswith("### Exercise")
            goes_on = block.startswith("### The mistake")
            ends = level and (task or level < 3 or (answered and deepest == 2 and not goes_on))
            if found is not None and (asks or ends):
                yield [*found[:mistake], *found[mistake + 1 : -1]] if asks and mistake >= 0 else found
                found = None
            if asks:
                found, answered, deepest, mistake = [], False, 2, -1
            elif found is not None and level:
                deepest = deepest if answered else 3
                if answered and goes_on:
                    mistake = len(found)
                    found.append((number, part))
            elif found is not None:
                answered |= cell.cell_type == "code" and bool(cell.outputs)
                mistake = -1 if cell.cell_type == "code" else mistake
                found.append((number, None if cell.cell_type == "code" else part))
    if found is not None:
        yield found


def update_copies(root: Path = notebooks.ROOT) -> Iterator[str]:
    """Copy each lesson that has no copy yet, and update the unchanged copies.

    Yields a message for each lesson that has changed since the reader began it, and for each file that was renamed.
    """
    work = root / "work"
    work.mkdir(exist_ok=True)
    for ours in (work / ".copies.json", work / "START.md"):
        if ours.is_dir():
            yield f"work/{ours.name} is a folder. It is {_set_aside(ours, root)} now."
    known, news = _load_fingerprints(work), []
    for path in notebooks.lessons(root):
        mine, text = work / path.name, notebooks.to_text(make_copy(notebooks.read(path)))
        new = {"copy": _fingerprint(text), "lesson": _fingerprint(text)}
        there = _fingerprint_file(mine) if os.path.lexists(mine) else ""
        if there is None:
            yield f"work/{mine.name} is no notebook that can be read. It is {_set_aside(mine, root)} now."
        if there and there not in (known.get(mine.name, new)["copy"], new["copy"]):
            marks = known.get(mine.name, {**new, "copy": ""})
            if marks["lesson"] != new["lesson"]:
                news.append(LESSON_CHANGED.format(notebooks.number(path)))
        else:
            marks = new
            if there != new["copy"]:
                write_atomically(mine, text)
        if known.get(mine.name) != marks:  # save the list after each lesson, so that an interruption loses nothing
            known[mine.name] = marks
            write_atomically(work / ".copies.json", json.dumps(known, indent=1) + "\n")
    write_atomically(work / "START.md", start_page(root, news))
    yield from news


def _set_aside(mine: Path, root: Path) -> Path:
    """Move a file to work/kept, and return its new path, relative to the course."""
    kept = root / "work" / "kept"
    kept.mkdir(exist_ok=True)
    names = (kept / f"{mine.stem}.{count}{mine.suffix}" for count in range(1, 10_000))
    aside = next(name for name in names if not os.path.lexists(name))
    mine.rename(aside)
    return aside.relative_to(root)


def restart_lesson(number: str, root: Path = notebooks.ROOT) -> str:
    """Replace the reader's copy of a lesson by a new one, and keep the old one.

    Raises ValueError for an unknown lesson.
    """
    path = notebooks.lesson(number, root)
    mine, said = root / "work" / path.name, ""
    if os.path.lexists(mine):
        said = f" Your copy is {_set_aside(mine, root)} now."
    for line in update_copies(root):
        print(line)
    return f"work/{path.name} is new.{said}"


def start_page(root: Path = notebooks.ROOT, news: Sequence[str] = ()) -> str:
    """Return the text of the start page: where to continue, which lessons have changed, and what is solved."""
    kept, rows, untouched = progress.load_progress(), [], ""
    going = (0.0, "", "")  # the lesson in progress that was saved last: (time, number, link)
    for path in notebooks.lessons(root):
        number = notebooks.number(path)
        title = next(line[2:] for line in notebooks.read(path).cells[0].source.split("\n") if line.startswith("# "))
        right, of, at_once, guessed = progress.count_results(kept, number)
        link = f"[{title}]({path.name})"
        rows.append(f"| {link} | {right} of {of} | {f'{at_once} of {guessed}' if guessed else ''} |")
        if number not in kept:
            untouched = untouched or link
        elif right < of:
            saved = (root / "work" / path.name).stat().st_mtime if (root / "work" / path.name).exists() else 0
            going = max(going, (saved, number, link))
    where = (
        f"**Go on with** {going[2]}." if going[2] else f"**Begin with** {untouched}." if untouched else "All is solved."
    )
    return START_PAGE.format(
        where=where,
        routes=routes.table(copies=True),
        rows="\n".join(rows),
        news="".join(f"\n\n> {line}" for line in news),
    )


def _load_fingerprints(work: Path) -> dict[str, dict[str, str]]:
    """Load the fingerprints of each copy and of the lesson it was made from, or {} if the list isn't usable."""
    try:
        listed = json.loads((work / ".copies.json").read_text(encoding="utf-8"))
        return {name: {"copy": marks["copy"], "lesson": marks["lesson"]} for name, marks in listed.items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return {}


def _fingerprint_file(mine: Path) -> str | None:
    """Return the fingerprint of a notebook file, or None if it can't be read as a notebook."""
    try:
        return _fingerprint(mine.read_text(encoding="utf-8")) if mine.is_file() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _fingerprint(text: str) -> str:
    """Return a hash of a notebook's cells only, because JupyterLab adds metadata when it saves an unchanged lesson."""
    return hashlib.sha256(json.dumps(json.loads(text)["cells"], sort_keys=True).encode()).hexdigest()[:16]


def find_running_lab(work: Path) -> str:
    """Return the address of a JupyterLab that is running in this folder, or ""."""
    from jupyter_server.serverapp import list_running_servers

    here = [server for server in list_running_servers() if Path(server["root_dir"]).resolve() == work.resolve()]
    return f"{here[0]['url']}lab?token={here[0]['token']}" if here else ""


def main(arguments: list[str]) -> None:
    try:
        _main(arguments)
    except OSError as error:
        raise SystemExit(f"Error: {error}. Your copies in work/ are as they were; the same command goes on.") from error


def _main(arguments: list[str]) -> None:
    if not arguments or arguments[0] == "--lab":
        if address := find_running_lab(notebooks.ROOT / "work") if arguments else "":
            print(f"Your lessons are open already: {address}")
            print("Two at once would write over each other. Ctrl-C, there, stops that one.")
            raise SystemExit(ALREADY_OPEN)
        for line in update_copies():
            print(line)
        print("Opening work/START.md. Save, and press Ctrl-C here to stop; the same command comes back to it.")
    elif arguments[0] == "--over":  # the lessons themselves, for .github/workflows/copies.yml
        for path in notebooks.lessons():
            notebooks.write(make_copy(notebooks.read(path)), path)
    elif arguments[0] == "--fresh":
        try:
            print(restart_lesson(arguments[1] if len(arguments) > 1 else ""))
        except ValueError as error:
            raise SystemExit(f"Error: {error}. Type make fresh LESSON=02, or python start.py fresh 02.") from error


if __name__ == "__main__":
    main(sys.argv[1:])
