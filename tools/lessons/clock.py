"""How long a page takes to read: words, visible lines of code, a minute for each prediction."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from tools.lessons.notebooks import QUESTION

FURTHER = "## Going further"
WORDS, LINES = 150, 10  # that a reader reads in a minute


def minutes(cells: list) -> int:
    """Of the core without its exercises, by an honest clock."""
    return math.ceil(_spent(cells))


def minutes_of(cells: list, sections: Iterable[str]) -> int:
    """Of these sections, by their titles. Raises ValueError where there is no such section."""
    by_title: dict[str, list] = {}
    own: list = []
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            own = by_title.setdefault(cell.source.splitlines()[0].removeprefix("## "), [])
        own.append(cell)
    if missing := set(sections) - set(by_title):
        raise ValueError(f"no section {sorted(missing)}; there are {list(by_title)}")
    return math.ceil(sum(_spent(by_title[title]) for title in sections))


def words(text: str) -> list[str]:
    """Of prose, without badges and the addresses of links."""
    text = re.sub(r"^\[!\[.*$", "", text, flags=re.M)
    return re.findall(r"[\w·]+(?:['’.,/-]\w+)*", re.sub(r"\]\([^)]*\)", "]", text))


def _spent(cells: list) -> float:
    spent = 0.0
    for cell in cells:
        if cell.cell_type == "markdown":
            if cell.source.startswith(FURTHER):
                break
            if "### Exercise " not in cell.source:
                spent += len(words(cell.source)) / WORDS + cell.source.count(QUESTION)
        elif cell.id not in ("setup", "opening") and not cell.id.startswith("ex-"):
            spent += sum(bool(line.strip()) for line in cell.source.splitlines()) / LINES
    return spent
