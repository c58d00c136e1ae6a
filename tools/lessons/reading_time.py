"""Estimate how long a page takes to read, from its words and visible lines of code, plus a minute per prediction."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from tools.lessons.notebooks import QUESTION

FURTHER = "## Going further"
WORDS_PER_MINUTE, CODE_LINES_PER_MINUTE = 150, 10  # assumed reading speeds


def lesson_minutes(cells: list) -> int:
    """Return how many minutes a lesson takes to read, excluding its exercises and *Going further*."""
    return math.ceil(_estimate_minutes(cells))


def section_minutes(cells: list, sections: Iterable[str]) -> int:
    """Return how many minutes the sections with these titles take. Raises ValueError for an unknown title."""
    by_title: dict[str, list] = {}
    section: list = []
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            section = by_title.setdefault(cell.source.splitlines()[0].removeprefix("## "), [])
        section.append(cell)
    if missing := set(sections) - set(by_title):
        raise ValueError(f"no section {sorted(missing)}; there are {list(by_title)}")
    return math.ceil(sum(_estimate_minutes(by_title[title]) for title in sections))


def prose_words(text: str) -> list[str]:
    """Split prose into words, ignoring badges and link targets."""
    text = re.sub(r"^\[!\[.*$", "", text, flags=re.M)
    return re.findall(r"[\w·]+(?:['’.,/-]\w+)*", re.sub(r"\]\([^)]*\)", "]", text))


def _estimate_minutes(cells: list) -> float:
    spent = 0.0
    for cell in cells:
        if cell.cell_type == "markdown":
            if cell.source.startswith(FURTHER):
                break
            if "### Exercise " not in cell.source:
                spent += len(prose_words(cell.source)) / WORDS_PER_MINUTE + cell.source.count(QUESTION)
        elif not cell.id.startswith("ex-") and not cell.metadata.get("jupyter", {}).get("source_hidden"):
            spent += sum(bool(line.strip()) for line in cell.source.splitlines()) / CODE_LINES_PER_MINUTE
    return spent
