"""Generate the README's tables of lessons from the notebooks (part of `make stamp`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tools.lessons import notebooks

PARTS = {  # keyed by the number of each part's first lesson
    "00": "Part I: eight devices",
    "07": "Part II: knowing the cost before you run",
    "10": "Part III: training at scale",
    "90": "Appendix",
}
# The opening sentence of a draft lesson, which may be incomplete.
DRAFT = "This lesson is a draft: 0 of its sections are done."
BEGIN, END = "<!-- Written by make stamp, from the notebooks -->\n", "<!-- Up to here -->"
HEAD = "| No. | Lesson | What it is about | Minutes |\n|---|---|---|---|"


@dataclass(frozen=True)
class Row:
    """A lesson's row in the README and on the site's front page."""

    number: str
    title: str
    path: str
    opening_sentence: str
    minutes: int  # without the exercises
    exercise_minutes: int  # minutes for the exercises

    @property
    def part(self) -> str:
        return PARTS[max(first for first in PARTS if first <= self.number)]

    @property
    def short_title(self) -> str:
        """Return the title without its subtitle, for links in a table or a card."""
        return re.split(r": | \(", self.title)[0]

    @property
    def is_draft(self) -> bool:
        return self.opening_sentence == DRAFT


def row(path: Path) -> Row:
    """Return a lesson's row, from its cells `title` and `plan`.

    Raises ValueError, with an example of the missing line, if one of these cells lacks a line that the row needs.
    """
    cells = notebooks.read(path).cells
    title, plan = (next((cell.source for cell in cells if cell.id == name), "") for name in ("title", "plan"))
    number = notebooks.number(path)
    parts = []
    for text, pattern, form in (
        (title, rf"^# {number} · (.+?)$", f"# {number} · Title"),
        (title, r"^\*\*(.+?)\*\*", "**A price, 42 ms.**"),
        (
            plan,
            r"^\*\*You need\*\*.*?\b(\d+) minutes",
            "**You need** another lesson, 60 minutes, and no special hardware.",
        ),
    ):
        match = re.search(pattern, text, re.M | re.S)
        if not match:
            raise ValueError(f"{path.name} lacks a line of the form: {form}")
        parts.append(" ".join(match[1].split()))
    practice = [cell.source for cell in cells if re.match(r"### Exercise ", cell.source)]
    minutes = [int(n) for text in practice for n in re.findall(r"· (\d+) min\)", text)[:1]]
    return Row(number, parts[0], f"notebooks/{path.name}", parts[1], int(parts[2]), sum(minutes))


def rows(root: Path = notebooks.ROOT) -> list[Row]:
    return [row(path) for path in notebooks.lessons(root)]


def hours(rows: list[Row]) -> int:
    """Return the total hours that all finished lessons take, including their exercises."""
    return round(sum(row.minutes + row.exercise_minutes for row in rows if not row.is_draft) / 60)


def with_lesson_tables(text: str, rows: list[Row], setup: str | None = None) -> str:
    """Return the README's text with updated tables of lessons and an updated range of minutes per lesson.

    Each row has a Colab badge for the repository named in `setup`, the text of a setup cell (None: the course's).
    The other badges are above the first table. Raises ValueError if the text has no place for the tables or the range.
    """
    _, *others = notebooks.badges(rows[0].path, setup).split("\n")
    tables = [BEGIN, f"A badge opens its lesson in Colab. To open the first lesson elsewhere: {' '.join(others)}\n"]
    for part, lessons in groupby(rows, lambda row: row.part):
        tables += [f"### {part}\n", HEAD]
        for row in lessons:
            colab = notebooks.badges(row.path, setup).split("\n")[0]
            time = f"{row.minutes} + {row.exercise_minutes}"
            # Put the badge below the title, where it's visible on a phone.
            tables.append(f"| {row.number} | [{row.title}]({row.path})<br>{colab} | {row.opening_sentence} | {time} |")
        tables[-1] += "\n"
    minutes = [row.minutes + row.exercise_minutes for row in rows]
    for pattern, replacement in (
        (rf"(?s){re.escape(BEGIN)}.*{re.escape(END)}", "\n".join([*tables, END])),
        (r"Each lesson takes \d+ to \d+ minutes", f"Each lesson takes {min(minutes)} to {max(minutes)} minutes"),
    ):
        text = replace_once(text, pattern, replacement)
    return text


def replace_once(text: str, pattern: str, replacement: str) -> str:
    """Replace the only match of a pattern in the README's text. Raises ValueError if there isn't exactly one match."""
    text, places = re.subn(pattern, lambda _: replacement, text)
    if places != 1:
        raise ValueError(f"README.md has {places} places instead of one for: {replacement.splitlines()[0]}")
    return text
