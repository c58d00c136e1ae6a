"""Check a finished page's required parts: an opening with numbers, a picture, a script and a realistic duration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.lessons import embed_scripts, readme
from tools.lessons.notebooks import QUESTION
from tools.lessons.reading_time import lesson_minutes

FIRST_CELLS = ["title", "setup", "opening", "plan", "imports"]


def page_faults(path: Path, cells: list) -> Iterator[str]:
    """Yield a message for each part that the page lacks or that breaks a rule."""
    title, plan = cells[0].source, cells[3].source
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    if [cell.id for cell in cells[:5]] != FIRST_CELLS:
        yield f"does not begin with the cells {', '.join(FIRST_CELLS)}"
    if not re.search(r"^\*\*[^*]*\d[^*]*\*\*", title, re.M):
        yield "title: no bold sentence with a number, such as a cost or a failure"
    if not any("image/png" in output.get("data", {}) for output in cells[2].outputs):
        yield "opening: draws no picture"
    if "TODO" in "".join(cell.source for cell in cells):
        yield "contains TODO"
    if "After this lesson you can" not in plan or not 3 <= len(re.findall(r"^- ", plan, re.M)) <= 5:
        yield "plan: needs three to five bullets below 'After this lesson you can'"
    questions = sum(text.count(QUESTION) for text in texts)
    if not 4 <= questions <= 7:
        yield f"{questions} predictions; a page needs four to seven"
    exercises = sum(len(re.findall(r"^### Exercise ", text, re.M)) for text in texts)
    if not 3 <= exercises <= 4:
        yield f"{exercises} exercises; a page needs three or four: further ones go into another part"
    if not re.search(r"^## .*Take it to work", "\n".join(texts), re.M):
        yield "no section 'Take it to work'"
    stated, needed = readme.row(path).minutes, lesson_minutes(cells)
    if stated < needed - 2:
        yield f"plan: states {stated} minutes, but the estimate is {needed}"
    yield from embed_scripts.script_faults(path, cells)
