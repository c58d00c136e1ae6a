"""Copy the scripts in examples/ into the lessons: cell `script` of lesson 07 contains examples/07_will_it_wait.py.

The file is the original. `make stamp` copies it into the cell, which writes it to the folder of the reader's notebook.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.lessons import notebooks

BEGIN, END = "<!-- Written by make stamp, from the scripts -->\n", "<!-- Up to here -->"


WITHOUT_NUMBER = {"16": "train.py"}  # a script whose name has no number, because other files start the script by name


def script_of(path: Path) -> Path | None:
    """Return the path of a lesson's script, or None if the lesson has no script."""
    number = notebooks.number(path)
    paths = sorted((path.parent.parent / "examples").glob(WITHOUT_NUMBER.get(number, f"{number}_*.py")))
    return paths[0] if paths else None


def copy_name(script: Path) -> str:
    """Return the file name of a reader's copy of a script, such as will_it_wait.py."""
    return script.name.split("_", 1)[-1]


def cell_source(script: Path) -> str:
    return f"%%writefile {copy_name(script)}\n{script.read_text(encoding='utf-8').rstrip()}"


def with_script_table(text: str, root: Path = notebooks.ROOT) -> str:
    """Return the text of examples/README.md with a row per script: its lesson, file name and summary line."""
    rows = ["| Lesson | Script | What it does |", "|---|---|---|"]
    for path in notebooks.lessons(root):
        if script := script_of(path):
            docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
            summary = docstring.partition("\n")[0]
            lesson = f"[{notebooks.number(path)}](../notebooks/{path.name})"
            rows.append(f"| {lesson} | [`{copy_name(script)}`]({script.name}) | {summary.replace('|', '·')} |")
    return re.sub(rf"(?s){re.escape(BEGIN)}.*{re.escape(END)}", lambda _: BEGIN + "\n".join([*rows, "", END]), text)


def script_faults(path: Path, cells: list) -> Iterator[str]:
    """Yield a message if a lesson lacks its script, has an outdated copy of it, or doesn't run it."""
    script, cells_with_script = script_of(path), [cell for cell in cells if cell.id == "script"]
    if not script or not cells_with_script:
        yield f"no script: add examples/{notebooks.number(path)}_name.py, and a cell `script` in Take it to work"
    elif cells_with_script[0].source != cell_source(script):
        yield f"script: differs from examples/{script.name}: run make stamp"
    elif not any(
        copy_name(script) in cell.source for cell in cells if cell.cell_type == "code" and cell.id != "script"
    ):
        yield f"script: no cell runs {copy_name(script)}"
