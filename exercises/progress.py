"""Record which exercises and predictions the reader has solved, and print them as a table.

`check` and `compare` write a small file, progress.json, in the course's folder; nothing is sent anywhere.
`progress.show()` prints the table in a notebook (after `from exercises import progress`), and `make progress` prints it
in a clone.

The file is readable JSON; delete it to start over. Set the environment variable COURSE_PROGRESS to use a
different path, or to "off" to save nothing.
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

from exercises.verdicts import printed_outcomes
from utils.atomic_write import write_atomically

ROOT = Path(__file__).resolve().parents[1]
LESSON = re.compile(r"exercises\.ex(\w+)")
# Maps each outcome of a guess to a prediction's new state, by old state. States that aren't listed don't change.
NEXT_STATE = {
    "seen": {"": "seen"},
    "wrong": {"": "wrong", "seen": "wrong"},
    "right": {"": "right at once", "wrong": "right later", "seen": "right later"},
}
LOCK_TIMEOUT = 5  # seconds; saving takes about a millisecond
Progress = dict[str, dict[str, dict[str, str]]]  # {lesson: {"exercises" or "predictions": {name: state}}}


def progress_file() -> Path | None:
    """Return the path of the progress file, or None if progress isn't saved.

    Symbolic links are resolved, so that replacing the file doesn't replace a link to it.
    """
    setting = os.environ.get("COURSE_PROGRESS", str(ROOT / "progress.json"))
    return None if setting == "off" else Path(os.path.realpath(setting))


def load_progress() -> Progress:
    """Load the saved progress. If the file can't be read, print a message; if it's damaged, also rename it."""
    path = progress_file()
    try:
        return _load_file(path) if path else {}
    except OSError as error:
        print(f"(Your progress can't be read: {path}: {error.strerror}.)")
        return {}


def _load_file(path: Path) -> Progress:
    """Load a progress file; if it's damaged, rename it and return no progress.

    Raises OSError if the file can't be read, or if it's damaged and can't be renamed.
    """
    if not path.is_file():
        return {}
    try:
        saved = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors add a byte order mark
        if not all(
            isinstance(state, str) for lesson in saved.values() for kind in lesson.values() for state in kind.values()
        ):
            raise ValueError
        return saved
    except (AttributeError, RecursionError, ValueError):
        names = (path.with_suffix(f".damaged{count}.json") for count in ("", *map("-{}".format, range(2, 10_000))))
        backup = next(name for name in names if not name.exists())
        path.replace(backup)
        print(f"({path.name} is damaged. It was renamed to {backup.name}, and your progress starts over.)")
        return {}


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Lock the progress file within the context, so that other kernels don't write to it.

    Continue without the lock if locks aren't supported, or if it isn't acquired within LOCK_TIMEOUT seconds.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            lock = stack.enter_context(path.with_name(f".{path.name}.lock").open("a"))
            deadline = time.monotonic() + LOCK_TIMEOUT
            while not _try_lock(lock.fileno()) and time.monotonic() < deadline:
                time.sleep(0.005)
        yield


def _try_lock(file: int) -> bool:
    """Try to lock an open file, and return False if another process has already locked it.

    The system unlocks it when the file is closed or the process ends.

    Raises OSError where locks aren't supported.
    """
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # another process holds the lock
        return False
    return True


def _record(lesson: str, kind: str, name: str, next_state: Callable[[str], str]) -> Progress | None:
    """Save the new state of an exercise or a prediction, and return all progress.

    Return None if progress isn't saved, or can't be read.

    Args:
        kind: "exercises" or "predictions".
        next_state: returns the new state, given the old one ("" if there's none).
    """
    if not (path := progress_file()):
        return None
    saved = None
    try:
        with _hold_lock(path):
            saved = _load_file(path)
            states = saved.setdefault(lesson, {}).setdefault(kind, {})
            states[name] = next_state(states.get(name, ""))
            write_atomically(path, json.dumps(dict(sorted(saved.items())), indent=1) + "\n")
    except OSError as error:
        _warn_not_saved(str(path), error.strerror or "it can't be written")
    return saved


@cache  # print it only once in a session
def _warn_not_saved(path: str, reason: str) -> None:
    print(f"(Your progress isn't saved: {path}: {reason}.)")


def record_exercise(function: Callable[..., Any], right: bool) -> str:
    """Save the outcome of an exercise's check. If it's right, return a line with the score and the next exercise."""
    lesson = LESSON.fullmatch(function.__module__ or "")
    if not lesson:
        return ""
    saved = _record(lesson[1], "exercises", function.__name__, lambda before: "right" if right else before or "tried")
    if saved is None or not right:
        return ""
    names = exercise_names(lesson[1])
    unsolved = [name for name in names if saved[lesson[1]]["exercises"].get(name) != "right"]
    if not unsolved:
        return f"Lesson {lesson[1]}: all {len(names)} exercises are right."
    later = names[names.index(function.__name__) :]
    following = next((name for name in later if name in unsolved), unsolved[0])
    return f"Lesson {lesson[1]}: {len(names) - len(unsolved)} of {len(names)} exercises right. Next: {following}."


def record_prediction(prediction: object, right: bool | None) -> None:
    """Save the outcome of a guess. A right guess counts as "right at once" only if it's the first guess.

    `right` is None if the answer was shown before the reader guessed.
    """
    for name, module in list(sys.modules.items()):
        if lesson := LESSON.fullmatch(name):
            for attribute in [attribute for attribute, value in vars(module).items() if value is prediction]:
                states = NEXT_STATE["seen" if right is None else "right" if right else "wrong"]
                _record(lesson[1], "predictions", attribute, lambda before, states=states: states.get(before, before))
                return


@cache
def exercise_names(lesson: str) -> list[str]:
    """Return the names of a lesson's exercises in order, read from its module's source because importing it is slow."""
    path = ROOT / "exercises" / f"ex{lesson}.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    calls = [(node.name, call.func) for node in functions for call in node.decorator_list if isinstance(call, ast.Call)]
    return [name for name, decorator in calls if getattr(decorator, "id", "") == "exercise"]


def lesson_notebooks() -> dict[str, Path]:
    """Return the paths of the lessons' notebooks, by lesson number, such as "05b"."""
    return {path.name.split("_")[0]: path for path in sorted((ROOT / "notebooks").glob("[0-9]*_*.ipynb"))}


def count_results(saved: Progress, lesson: str) -> tuple[int, int, int, int]:
    """Return four counts for a lesson: solved exercises, exercises, guesses right on the first try, and guesses."""
    states = saved.get(lesson, {}).get("exercises", {})
    guesses = [state for state in saved.get(lesson, {}).get("predictions", {}).values() if state != "seen"]
    right = sum(states.get(name) == "right" for name in exercise_names(lesson))
    return right, len(exercise_names(lesson)), guesses.count("right at once"), len(guesses)


def show() -> None:
    """Print the results of each lesson, the next exercise, and the exercises and predictions to try again."""
    saved = load_progress()
    rows, retry, totals, following = [], [], [0, 0, 0, 0], ""
    for lesson, path in lesson_notebooks().items():
        right, total, at_once, guessed = counts = count_results(saved, lesson)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        if right < total and not following and lesson in saved:
            solved = saved[lesson].get("exercises", {})
            unsolved = next(name for name in exercise_names(lesson) if solved.get(name) != "right")
            following = f"\nNext: {unsolved}, in lesson {lesson}."
        rows.append((path.stem.replace("_", " "), f"{right} of {total}", f"{at_once} of {guessed}" if guessed else "-"))
        for kind, states in saved.get(lesson, {}).items():
            missed = [name for name, state in states.items() if state in ("tried", "wrong")]
            retry += [f"  {lesson}  {name} ({kind.removesuffix('s')})" for name in missed]
    right, total, at_once, guessed = totals
    rows.append(("all", f"{right} of {total}", f"{at_once} of {guessed}" if guessed else "-"))
    _print_table([("Lesson", "Exercises right", "Guesses right first time"), *rows])
    print(following or "\nNext: a lesson that you haven't started." * (right < total))
    if retry:
        print("\nWorth another try:", *retry, sep="\n")
    path = progress_file()
    print(f"\nSaved in {path}, only on this machine; delete it to start over." if path else "\nNothing is saved.")


def show_group(folder: Path) -> bool:
    """Print the results in each notebook of a folder, and how many people solved each exercise, for a teacher.

    Return whether the folder contains any notebooks.
    """
    rows, solved = [], {}
    for path in sorted(folder.rglob("*.ipynb")):
        # If somebody sent a whole clone, their work is in the copies in work/, not in notebooks/.
        is_original = path.parent.name == "notebooks" and (path.parent.parent / "work").exists()
        if is_original or {".ipynb_checkpoints", "kept"} & {*path.relative_to(folder).parts}:
            continue
        name = os.fsencode(path.relative_to(folder)).decode(errors="replace")
        try:
            checked, guesses = read_notebook(path)
        except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
            rows.append((name, "cannot be read", "-"))
            continue
        rows.append((name, f"{sum(checked.values())} of {len(checked)}", f"{sum(guesses)} of {len(guesses)}"))
        for exercise, right in checked.items():
            before = solved.get(exercise, (0, 0))
            solved[exercise] = before[0] + right, before[1] + 1
    if not rows:
        problem = f"No notebooks in {folder.absolute()}" if folder.is_dir() else f"No folder {folder.absolute()}"
        print(f"{problem}. Collect the group's saved notebooks there, with one folder for each person.")
        return False
    _print_table([("Notebook", "Exercises right", "Guesses right"), *rows])
    by_lesson = sorted(solved.items(), key=lambda item: item[0].split()[0])
    print()
    _print_table([("Exercise", "Solved by", ""), *((name, f"{a} of {b}", "") for name, (a, b) in by_lesson)])
    return True


def read_notebook(path: Path) -> tuple[dict[str, bool], list[bool]]:
    """Read the outcomes from a saved notebook: whether each checked exercise, and each guess, is right.

    Raises OSError if the file can't be read. If the notebook is malformed, raises ValueError, AttributeError, KeyError,
    RecursionError or TypeError.
    """
    if not path.is_file():  # reading a pipe would never end
        raise OSError
    checked, guesses = {}, []
    for cell in json.loads(path.read_text(encoding="utf-8-sig"))["cells"]:
        source = "".join(cell["source"])
        outcomes = printed_outcomes("".join("".join(output.get("text", "")) for output in cell.get("outputs", [])))
        if check := re.search(r"^ex(\w+)\.(\w+)\.check\(", source, re.M):
            checked[f"{check[1]} {check[2]}"] = "right" in outcomes
        if re.search(r"^ex\w+\.\w+\.compare\(guess", source, re.M):
            guesses += [outcome == "right" for outcome in outcomes]
    return checked, guesses


def _print_table(rows: list[tuple[str, str, str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        show()
    elif not show_group(Path(sys.argv[1]).expanduser()):
        sys.exit(1)
