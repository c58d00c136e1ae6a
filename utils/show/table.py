"""Format plain-text tables, which read well in a terminal, in a notebook and with a screen reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def show_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Raises the same errors as `format_table`."""
    print(format_table(headers, rows))


def format_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with aligned columns. A column of numbers is right-aligned, with thousands separators.

    Raises ValueError if a row doesn't have one cell for each header.
    """
    rows = [list(row) for row in rows]
    for row in rows:
        if len(row) != len(headers):
            raise ValueError(f"a row has {len(row)} cells, but there are {len(headers)} headers: {row}")
    columns = []
    for i, header in enumerate(headers):
        cells = [row[i] for row in rows]
        numeric = bool(cells) and all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in cells)
        texts = [str(header), *(f"{c:,}" if numeric else str(c) for c in cells)]
        width = max(map(len, texts))
        columns.append([text.rjust(width) if numeric else text.ljust(width) for text in texts])
    return "\n".join("   ".join(line).rstrip() for line in zip(*columns, strict=True))
