"""What you have solved: a small file beside the course that `check` and `compare` write, and a table of it.

In a notebook: `from exercises import progress`, `progress.show()`. In a clone: `make progress`. Nothing is sent
anywhere. The file is JSON that a person can read: delete it to begin anew. The environment variable COURSE_PROGRESS
names another, or says `off`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LESSON = re.compile(r"exercises\.ex(\w+)")
# How a guess went, and how it went before: what is kept then. What is not here stays as it was.
AGAIN = {
    "seen": {"": "seen"},
    "wrong": {"": "wrong", "seen": "wrong"},
    "right": {"": "right at once", "wrong": "right later", "seen": "right later"},
}
PATIENCE = 5  # seconds; a note takes a thousandth of one
Kept = dict[str, dict[str, dict[str, str]]]  # lesson: "exercises" or "predictions": name: how it went


def place() -> Path | None:
    """The file, or None where nothing is kept."""
    said = os.environ.get("COURSE_PROGRESS", str(ROOT / "progress.json"))
    return None if said == "off" else Path(os.path.realpath(said))  # not a symbolic link: so it stays one


def read() -> Kept:
    """What is kept. A file that is damaged is set aside, one that cannot be read stays; a line says so."""
    path = place()
    try:
        return _load(path) if path else {}
    except OSError as error:
        print(f"(Your progress cannot be read: {path}: {error.strerror}.)")
        return {}


def _load(path: Path) -> Kept:
    """Raises OSError where the file cannot be read, or is damaged and cannot be set aside."""
    if not path.is_file():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin a file with a byte order mark
        if not all(
            isinstance(state, str) for lesson in kept.values() for kind in lesson.values() for state in kind.values()
        ):
            raise ValueError
        return kept
    except (AttributeError, RecursionError, ValueError):
        names = (path.with_suffix(f".damaged{count}.json") for count in ("", *map("-{}".format, range(2, 10_000))))
        aside = next(name for name in names if not name.exists())
        path.replace(aside)
        print(f"({path.name} could not be read. It is {aside.name} now, and your progress begins anew.)")
        return {}


def put(path: Path, text: str) -> None:
    """Write a file whole or, where a disk is full or a process killed, not at all. A symbolic link stays one."""
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Other kernels wait with their notes meanwhile. Where nothing can be locked, nobody waits for ever."""
    with ExitStack() as stack:
        with suppress(OSError):
            lock = stack.enter_context(path.with_name(f".{path.name}.lock").open("a"))
            end = time.monotonic() + PATIENCE
            while not _locked(lock.fileno()) and time.monotonic() < end:
                time.sleep(0.005)
        yield


def _locked(file: int) -> bool:
    """The system unlocks it with the file's end, and so with the process's. OSError: there are no locks here."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # another has it
        return False
    return True


def _note(lesson: str, kind: str, name: str, state: Callable[[str], str]) -> Kept | None:
    """Write down how it went, given how it went before; None where nothing is kept, or nothing can be read."""
    if not (path := place()):
        return None
    kept = None
    try:
        with _alone(path):
            kept = _load(path)
            of_kind = kept.setdefault(lesson, {}).setdefault(kind, {})
            of_kind[name] = state(of_kind.get(name, ""))
            put(path, json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    except OSError as error:
        _not_kept(str(path), error.strerror or "it cannot be written")
    return kept


@cache  # once a session
def _not_kept(path: str, why: str) -> None:
    print(f"(Your progress is not kept: {path}: {why}.)")


def exercise(function: Callable[..., Any], right: bool) -> str:
    """Keep how a lesson's exercise was checked. Where it is right: a line on how many are, and which is next."""
    lesson = LESSON.fullmatch(function.__module__ or "")
    if not lesson:
        return ""
    kept = _note(lesson[1], "exercises", function.__name__, lambda before: "right" if right else before or "tried")
    if kept is None or not right:
        return ""
    names = exercises(lesson[1])
    left = [name for name in names if kept[lesson[1]]["exercises"].get(name) != "right"]
    if not left:
        return f"Lesson {lesson[1]}: all {len(names)} exercises are right."
    after = names[names.index(function.__name__) :]
    following = next((name for name in after if name in left), left[0])
    return f"Lesson {lesson[1]}: {len(names) - len(left)} of {len(names)} exercises right. Next: {following}."


def prediction(asked: object, right: bool | None) -> None:
    """Keep how a lesson's guess went: the first one counts. None: the answer was seen, and there was no guess yet."""
    for module, found in list(sys.modules.items()):
        if lesson := LESSON.fullmatch(module):
            for name in [name for name, value in vars(found).items() if value is asked]:
                became = AGAIN["seen" if right is None else "right" if right else "wrong"]
                _note(lesson[1], "predictions", name, lambda before, became=became: became.get(before, before))
                return


@cache
def exercises(lesson: str) -> list[str]:
    """The names of a lesson's exercises, in its order, without running anything."""
    path = ROOT / "exercises" / f"ex{lesson}.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    made = [(node.name, call.func) for node in functions for call in node.decorator_list if isinstance(call, ast.Call)]
    return [name for name, maker in made if getattr(maker, "id", "") == "exercise"]


def lessons() -> dict[str, Path]:
    """The course's lessons by number."""
    return {path.name.split("_")[0]: path for path in sorted((ROOT / "notebooks").glob("[0-9]*_*.ipynb"))}


def counts(kept: Kept, lesson: str) -> tuple[int, int, int, int]:
    """Of a lesson: exercises right, and all; guesses right at once, and all that were made."""
    of = kept.get(lesson, {})
    states = of.get("exercises", {})
    guesses = [state for state in of.get("predictions", {}).values() if state != "seen"]
    right = sum(states.get(name) == "right" for name in exercises(lesson))
    return right, len(exercises(lesson)), guesses.count("right at once"), len(guesses)


def show() -> None:
    """Print what is solved and guessed, lesson by lesson, and what to repeat."""
    kept = read()
    rows, again, total, following = [], [], [0, 0, 0, 0], ""
    for lesson, path in lessons().items():
        right, of, at_once, guessed = found = counts(kept, lesson)
        total = [a + b for a, b in zip(total, found, strict=True)]
        if right < of and not following and lesson in kept:
            left = [name for name in exercises(lesson) if kept[lesson].get("exercises", {}).get(name) != "right"]
            following = f"\nNext: {left[0]}, in lesson {lesson}."
        rows.append((path.stem.replace("_", " "), f"{right} of {of}", f"{at_once} of {guessed}" if guessed else "-"))
        for kind, states in kept.get(lesson, {}).items():
            again += [
                (lesson, f"{name} ({kind.removesuffix('s')})")
                for name, state in states.items()
                if state in ("tried", "wrong")
            ]
    right, of, at_once, guessed = total
    rows.append(("all", f"{right} of {of}", f"{at_once} of {guessed}" if guessed else "-"))
    _print([("Lesson", "Exercises right", "Guesses right at once"), *rows])
    print(following or "\nNext: a lesson that you have not begun." * (right < of))
    if again:
        print("\nWorth another try:", *(f"  {lesson}  {name}" for lesson, name in again), sep="\n")
    where = place()
    print(f"\nKept in {where}, on this machine alone; delete it to begin anew." if where else "\nNothing is kept here.")


def show_room(folder: Path) -> bool:
    """Print, for a teacher, what stands in each notebook of a folder, and how many solved each exercise.

    Returns whether there was any notebook.
    """
    rows, solved = [], {}
    for path in sorted(folder.rglob("*.ipynb")):
        theirs = path.parent.name != "notebooks" or not (path.parent.parent / "work").exists()  # of a clone: its copies
        if {".ipynb_checkpoints", "kept"} & {*path.relative_to(folder).parts} or not theirs:
            continue
        shown = os.fsencode(path.relative_to(folder)).decode(errors="replace")
        try:
            checked, guessed = in_notebook(path)
        except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
            rows.append((shown, "cannot be read", "-"))
            continue
        right = [name for name, done in checked.items() if done]
        rows.append((shown, f"{len(right)} of {len(checked)}", f"{sum(guessed)} of {len(guessed)}"))
        for name, done in checked.items():
            there = solved.setdefault(name, [0, 0])
            there[0], there[1] = there[0] + done, there[1] + 1
    if not rows:
        what = f"No notebook in {folder.absolute()}" if folder.is_dir() else f"There is no folder {folder.absolute()}"
        print(f"{what}. Collect the saved notebooks of the room there, in a folder for each person.")
        return False
    _print([("Notebook", "Exercises right", "Guesses right"), *rows])
    by_lesson = sorted(solved.items(), key=lambda each: each[0].split()[0])
    print()
    _print([("Exercise", "Solved by", ""), *((name, f"{a} of {b}", "") for name, (a, b) in by_lesson)])
    return True


def in_notebook(path: Path) -> tuple[dict[str, bool], list[bool]]:
    """Of a saved notebook: the exercises, each with whether its check said right; and the guesses that were made."""
    if not path.is_file():  # a pipe would be waited for
        raise OSError
    checked, guessed = {}, []
    for cell in json.loads(path.read_text(encoding="utf-8-sig"))["cells"]:
        source = "".join(cell["source"])
        said = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
        said = re.sub(r"\x1b\[[\d;]*m", "", said)  # colours
        if found := re.search(r"^ex(\w+)\.(\w+)\.check\(", source, re.M):
            checked[f"{found[1]} {found[2]}"] = f"{found[2]}: right." in said
        if re.search(r"^ex\w+\.\w+\.compare\(guess", source, re.M):
            guessed += [
                line.endswith(": right.") for line in re.findall(r"^(?:. )?Your guess(?:, | is ).*$", said, re.M)
            ]
    return checked, guessed


def _print(rows: list[tuple[str, str, str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        show()
    elif not show_room(Path(sys.argv[1]).expanduser()):
        sys.exit(1)
