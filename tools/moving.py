"""Pictures of the site that answer the reader's hand: behind which cell of a lesson each stands, and its numbers.

A kind is drawn by site/_static/moving/KIND.js, with the controls of site/_static/moving.js. What a picture needs of the
lesson is read off the committed page, so that it shows the same numbers as the figure above it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import nbformat

from tools import notebooks

Cell = nbformat.NotebookNode

# By lesson: the cell behind which it stands, after the last question whose answer it would give away; its kind; and
# what it takes from that cell, if anything.
PLACES: dict[str, list[tuple[str, str, Callable[[Cell], Any] | None]]] = {
    "12": [("live", "schedule", None)],
}


def kinds(number: str) -> list[str]:
    """What a lesson's page shows, each once."""
    return list(dict.fromkeys(kind for _, kind, _ in PLACES.get(number, ())))


def behind(number: str, cell: Cell) -> str:
    """Markdown of what stands behind a cell: nothing, mostly."""
    parts = []
    for name, kind, numbers in PLACES.get(number, ()):
        if name == cell.id:
            text = json.dumps(numbers(cell) if numbers else None, ensure_ascii=False).replace("<", "\\u003c")
            parts.append(
                f'<div class="moving" data-kind="{kind}"><script type="application/json">{text}</script></div>'
            )
    return "\n\n".join(parts)


def alt(cell: Cell) -> str:
    """The description of a cell's figure. Raises ValueError where it has none."""
    for output in cell.outputs:
        if found := output.get("metadata", {}).get("image/png", {}).get("alt"):
            return found
    raise ValueError(f"cell {cell.id} shows no figure")


def printed(cell: Cell) -> str:
    """What a cell prints."""
    return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")


def scripts(name: str) -> list[str]:
    """What a page of the site loads, from _static."""
    for path in notebooks.lessons():
        if name == f"notebooks/{path.stem}" and (found := kinds(notebooks.number(path))):
            return ["moving.js", *(f"moving/{kind}.js" for kind in found)]
    return []
