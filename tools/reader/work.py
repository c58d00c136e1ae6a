"""The reader's copies of the lessons, in work/: part of `make lab`; `make fresh LESSON=02` gives one anew.

A copy has no outputs, and what reads an output after a question is folded: no answer stands beside its question. A copy
that holds somebody's work is never written over.
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
from tools.lessons.notebooks import QUESTION, blocks
from utils.guess_gate import AFTER_GUESS, OR_SKIP

FOLD = "<details>\n<summary>After your guess: what it shows</summary>\n\n"
LATER = FOLD.replace("After your guess: what it shows", "What this shows")  # nothing was asked since the last fold
CHANGED = "Lesson {0} has changed since you began it. Yours stays; make fresh LESSON={0} gives the new one."
OPEN = 3  # exit status: somebody works here
START = """# One Program, Many Devices

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


def copy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A lesson as its reader should meet it: nothing was run, and what tells an answer waits behind a fold."""
    waiting = readings(notebook.cells)
    copied = notebooks.canonical(notebook)
    fold = LATER
    for number, cell in enumerate(copied.cells):
        asks = cell.cell_type == "markdown" and QUESTION in cell.source
        if cell.cell_type == "code":
            cell.outputs = cell.outputs if cell.id == "opening" else []  # the first screen's picture tells no answer
            cell.source = re.sub(r"^guess = None(  #.*)?", _or_skip, cell.source)
            if notebooks.TELLS in cell.metadata.get("tags", ()):
                cell.metadata.update(notebooks.HIDDEN)
                cell.source = AFTER_GUESS + cell.source.removeprefix(AFTER_GUESS)
        elif parts := {part for at, part in waiting if at == number}:
            cell.source = "\n\n".join(_folds(blocks(cell.source), parts, fold))
            fold = LATER
        fold = FOLD if asks else fold
    return copied


def _or_skip(line: re.Match) -> str:
    """The line that waits for a guess, as utils/guess_gate.py knows it in a copy."""
    if line[0].endswith(OR_SKIP):
        return line[0]
    return f"{line[0]}, {OR_SKIP}" if line[1] else f"{line[0]}  # {OR_SKIP}"


def _folds(found: list[str], folded: set[int], fold: str) -> Iterator[str]:
    """A text's blocks, each run of those that wait in a fold of its own."""
    group: list[str] = []
    for part, block in enumerate([*found, ""]):
        if part in folded:  # a title there is none of the table of contents, which shows all
            group.append(re.sub(r"^#+ (.*)", r"**\1**", block))
            continue
        if group:
            yield fold + "\n\n".join(group) + "\n\n</details>"
            group, fold = [], LATER
        if block:
            yield block


def readings(cells: list[nbformat.NotebookNode]) -> set[tuple[int, int]]:
    """The blocks of text that may tell an answer, each as its cell and its place there.

    They stand between the first output after a question and the next question or heading, as on the site.
    """
    found: set[tuple[int, int]] = set()
    for question in questions(cells):
        outputs = [i for i, (number, part) in enumerate(question) if part is None and cells[number].outputs]
        found |= {(number, part) for number, part in question[outputs[0] :] if part is not None} if outputs else set()
    return {(number, part) for number, part in found if notebooks.LEADS not in cells[number].metadata.get("tags", ())}


def questions(cells: list[nbformat.NotebookNode]) -> Iterator[list[tuple[int, int | None]]]:
    """What stands between each question and the next question or heading: cells of code, and blocks of text.

    Each as its cell and its place there, None for code. A section on a mistake reads what was asked, title and all;
    where it leads to the next question, the title and the last paragraph do not. Where subtitles stand before the first
    output, the question is about all that they head. As on the site: site/_static/questions.js.
    """
    found: list[tuple[int, int | None]] | None = None
    answered, deepest, mistake = False, 2, -1
    for number, cell in enumerate(cells):
        for part, block in enumerate(blocks(cell.source) if cell.cell_type == "markdown" else [""]):
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


def bring(root: Path = notebooks.ROOT) -> Iterator[str]:
    """Copy each lesson once. Yields a line on each that the course has changed since, and on what was set aside."""
    work = root / "work"
    work.mkdir(exist_ok=True)
    for ours in (work / ".copies.json", work / "START.md"):
        if ours.is_dir():
            yield f"work/{ours.name} is a folder. It is {_set_aside(ours, root)} now."
    known, news = _known(work), []
    for path in notebooks.lessons(root):
        mine, text = work / path.name, notebooks.dumps(copy(notebooks.read(path)))
        new = {"copy": _mark(text), "lesson": _mark(text)}
        there = _mark_of(mine) if os.path.lexists(mine) else ""
        if there is None:
            yield f"work/{mine.name} is no notebook that can be read. It is {_set_aside(mine, root)} now."
        if there and there not in (known.get(mine.name, new)["copy"], new["copy"]):
            marks = known.get(mine.name, {**new, "copy": ""})
            if marks["lesson"] != new["lesson"]:
                news.append(CHANGED.format(notebooks.number(path)))
        else:
            marks = new
            if there != new["copy"]:
                progress.write_atomically(mine, text)
        if known.get(mine.name) != marks:  # lesson by lesson: whoever is killed has those that are whole
            known[mine.name] = marks
            progress.write_atomically(work / ".copies.json", json.dumps(known, indent=1) + "\n")
    progress.write_atomically(work / "START.md", start(root, news))
    yield from news


def _set_aside(mine: Path, root: Path) -> Path:
    """Where it is then, seen from the course."""
    kept = root / "work" / "kept"
    kept.mkdir(exist_ok=True)
    names = (kept / f"{mine.stem}.{count}{mine.suffix}" for count in range(1, 10_000))
    aside = next(name for name in names if not os.path.lexists(name))
    mine.rename(aside)
    return aside.relative_to(root)


def fresh(number: str, root: Path = notebooks.ROOT) -> str:
    """Give a lesson anew and put the reader's copy aside. Raises ValueError where there is no such lesson."""
    path = notebooks.lesson(number, root)
    mine, said = root / "work" / path.name, ""
    if os.path.lexists(mine):
        said = f" Your copy is {_set_aside(mine, root)} now."
    for line in bring(root):
        print(line)
    return f"work/{path.name} is new.{said}"


def start(root: Path = notebooks.ROOT, news: Sequence[str] = ()) -> str:
    """The page on which JupyterLab opens: where to go on, which lessons have changed, what is solved."""
    kept, rows, untouched = progress.load_progress(), [], ""
    going = (0.0, "", "")  # of the lessons that are begun, the one that was saved last
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
    return START.format(
        where=where,
        routes=routes.table(copies=True),
        rows="\n".join(rows),
        news="".join(f"\n\n> {line}" for line in news),
    )


def _known(work: Path) -> dict[str, dict[str, str]]:
    """What each copy was made from and how it looked then; nothing, where the list is missing or damaged."""
    try:
        listed = json.loads((work / ".copies.json").read_text(encoding="utf-8"))
        return {name: {"copy": marks["copy"], "lesson": marks["lesson"]} for name, marks in listed.items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return {}


def _mark_of(mine: Path) -> str | None:
    """None: it is no notebook that can be read."""
    try:
        return _mark(mine.read_text(encoding="utf-8")) if mine.is_file() else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _mark(text: str) -> str:
    """Of a notebook's cells: JupyterLab saves a lesson that is only looked at, with the kernel in its metadata."""
    return hashlib.sha256(json.dumps(json.loads(text)["cells"], sort_keys=True).encode()).hexdigest()[:16]


def open_already(work: Path) -> str:
    """The address of a JupyterLab that somebody opened here and did not stop; '' without one."""
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
        if address := open_already(notebooks.ROOT / "work") if arguments else "":
            print(f"Your lessons are open already: {address}")
            print("Two at once would write over each other. Ctrl-C, there, stops that one.")
            raise SystemExit(OPEN)
        for line in bring():
            print(line)
        print("Opening work/START.md. Save, and press Ctrl-C here to stop; the same command comes back to it.")
    elif arguments[0] == "--over":  # the lessons themselves: .github/workflows/copies.yml
        for path in notebooks.lessons():
            notebooks.write(copy(notebooks.read(path)), path)
    elif arguments[0] == "--fresh":
        try:
            print(fresh(arguments[1] if len(arguments) > 1 else ""))
        except ValueError as error:
            raise SystemExit(f"Error: {error}. Type make fresh LESSON=02, or python start.py fresh 02.") from error


if __name__ == "__main__":
    main(sys.argv[1:])
