"""Read the printed text and the figure's alt text from the outputs of a notebook cell."""

from __future__ import annotations

import nbformat


def alt_text(cell: nbformat.NotebookNode) -> str:
    """Return the alt text of a cell's figure. Raises ValueError if the cell shows no figure."""
    for output in cell.outputs:
        if text := output.get("metadata", {}).get("image/png", {}).get("alt"):
            return text
    raise ValueError(f"cell {cell.id} shows no figure")


def printed_text(cell: nbformat.NotebookNode) -> str:
    """Return the text that a cell printed."""
    return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")
