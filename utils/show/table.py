"""Plain tables with aligned columns, for the terminal, the notebook and a screen reader alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def show_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under headers. Errors as `format_table`."""
    print(format_table(headers, rows))


def format_table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lay out rows under headers; a column that holds only numbers is aligned to the right, with thousands separated.

    Raises ValueError where a row has another number of columns than there are headers.
    """
    rows = [list(row) for row in rows]
    for row in rows:
        if len(row) != len(headers):
            raise ValueError(f"a row has {len(row)} columns, the headers {len(headers)}: {row}")
    columns = []
    for i, header in enumerate(headers):
        cells = [row[i] for row in rows]
        number = bool(cells) and all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in cells)
        texts = [str(header), *(f"{c:,}" if number else str(c) for c in cells)]
        width = max(map(len, texts))
        columns.append([t.rjust(width) if number else t.ljust(width) for t in texts])
    return "\n".join("   ".join(line).rstrip() for line in zip(*columns, strict=True))
