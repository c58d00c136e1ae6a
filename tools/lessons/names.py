"""Names for cells that an editor left without one: JupyterLab makes up an id, and shows no place to change it."""

from __future__ import annotations

import re

import nbformat

from tools.lessons.notebooks import QUESTION

MADE_UP = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|(?=.*[A-Z_])[\w-]+")  # by JupyterLab and VS Code; by Colab


def give(notebook: nbformat.NotebookNode) -> None:
    """Rename these cells after what they hold or stand below. (What endings mean: notebooks/README.md.)"""
    taken, topic = {cell.id for cell in notebook.cells}, "cell"
    for cell, after in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        if MADE_UP.fullmatch(cell.id):
            is_task = after and re.match("### Exercise ", cell.source)  # named after its stub, which comes next
            name = wanted = re.sub("-stub$", "-task", _name(after, topic)) if is_task else _name(cell, topic)
            while name in taken:
                name = f"{wanted}-{int(name.removeprefix(wanted).lstrip('-') or 1) + 1}"
            taken.add(name)
            cell.id = name
        if not cell.id.startswith("ex-"):
            topic = re.sub(r"-(read|ask|run)(-\d+)?$", "", cell.id)


def _name(cell: nbformat.NotebookNode, topic: str) -> str:
    if cell.cell_type == "code":
        for ending, pattern in (("stub", r"^def (\w+)\((?s:.*)# your code here"), ("check", r"^ex\w+\.(\w+)\.check\(")):
            if found := re.search(pattern, cell.source, re.M):
                return f"ex-{found[1].strip('_').replace('_', '-')}-{ending}"
        return f"{topic}-run"
    heading = re.search(r"^##+ (.+?)( \(.*)?$", cell.source, re.M)
    if heading and (words := re.findall(r"[a-z0-9]+", heading[1].lower())) and words[0][0].isalpha():
        return "-".join(words[:4])
    return f"{topic}-{'ask' if cell.source.startswith(QUESTION) else 'read'}"
