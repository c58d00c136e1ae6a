"""Give new cells readable ids, because editors generate random ones, which can't be changed in JupyterLab."""

from __future__ import annotations

import re

import nbformat

from tools.lessons.notebooks import QUESTION

# the ids that JupyterLab and VS Code generate or, in the second alternative, those that Colab generates
GENERATED_ID = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|(?=.*[A-Z_])[\w-]+")


def name_cells(notebook: nbformat.NotebookNode) -> None:
    """Replace generated ids with names derived from the cell's content or from a cell above it.

    notebooks/README.md explains the suffixes.
    """
    used_ids, topic = {cell.id for cell in notebook.cells}, "cell"
    for cell, next_cell in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        if GENERATED_ID.fullmatch(cell.id):
            # Name the text of an exercise after the exercise's stub, which is in the next cell.
            if next_cell and re.match("### Exercise ", cell.source):
                base = re.sub("-stub$", "-task", _name(next_cell, topic))
            else:
                base = _name(cell, topic)
            name = base
            while name in used_ids:
                name = f"{base}-{int(name.removeprefix(base).lstrip('-') or 1) + 1}"
            used_ids.add(name)
            cell.id = name
        if not cell.id.startswith("ex-"):
            topic = re.sub(r"-(read|ask|run)(-\d+)?$", "", cell.id)


def _name(cell: nbformat.NotebookNode, topic: str) -> str:
    if cell.cell_type == "code":
        for ending, pattern in (("stub", r"^def (\w+)\((?s:.*)# your code here"), ("check", r"^ex\w+\.(\w+)\.check\(")):
            if match := re.search(pattern, cell.source, re.M):
                return f"ex-{match[1].strip('_').replace('_', '-')}-{ending}"
        return f"{topic}-run"
    heading = re.search(r"^##+ (.+?)( \(.*)?$", cell.source, re.M)
    if heading and (words := re.findall(r"[a-z0-9]+", heading[1].lower())) and words[0][0].isalpha():
        return "-".join(words[:4])
    return f"{topic}-{'ask' if cell.source.startswith(QUESTION) else 'read'}"
