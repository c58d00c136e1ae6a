"""The scripts that readers take to work: the cell `script` of lesson 07 shows examples/07_will_it_wait.py, whole.

The file is the source. `make stamp` copies it into the cell, which writes it beside the reader's notebook.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.lessons import notebooks

BEGIN, END = "<!-- Written by make stamp, from the scripts -->\n", "<!-- Up to here -->"


WITHOUT_NUMBER = {"16": "train.py"}  # the files that start it name it, too


def of(path: Path) -> Path | None:
    """A lesson's script, or None."""
    number = notebooks.number(path)
    found = sorted((path.parent.parent / "examples").glob(WITHOUT_NUMBER.get(number, f"{number}_*.py")))
    return found[0] if found else None


def name(script: Path) -> str:
    """What a reader's copy is called: will_it_wait.py."""
    return script.name.split("_", 1)[-1]


def cell(script: Path) -> str:
    return f"%%writefile {name(script)}\n{script.read_text(encoding='utf-8').rstrip()}"


def listed(text: str, root: Path = notebooks.ROOT) -> str:
    """The text of examples/README.md with a row for each script: its lesson, and what its first line says."""
    rows = ["| Lesson | Script | What it does |", "|---|---|---|"]
    for path in notebooks.lessons(root):
        if script := of(path):
            says = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()[0]
            lesson = f"[{notebooks.number(path)}](../notebooks/{path.name})"
            rows.append(f"| {lesson} | [`{name(script)}`]({script.name}) | {says.replace('|', '·')} |")
    return re.sub(rf"(?s){re.escape(BEGIN)}.*{re.escape(END)}", lambda _: BEGIN + "\n".join([*rows, "", END]), text)


def faults(path: Path, cells: list) -> Iterator[str]:
    """Where a page does not show its script, or another."""
    script, shown = of(path), [cell for cell in cells if cell.id == "script"]
    if not script or not shown:
        yield f"no script: examples/{notebooks.number(path)}_name.py, and a cell `script` in Take it to work"
    elif shown[0].source != cell(script):
        yield f"script: is not examples/{script.name}: run make stamp"
    elif not any(name(script) in cell.source for cell in cells if cell.cell_type == "code" and cell.id != "script"):
        yield f"script: no cell runs {name(script)}"
