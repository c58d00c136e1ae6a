"""Write site/predictions.json, which the site's pages use to evaluate guesses (part of `make stamp`).

The file has an entry for each question in a lesson, in order: the data of the `Prediction` that a cell compares with
the guess, or null if no cell checks the guess or if the answer varies between runs.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exercises.framework import Prediction
from tools.lessons import notebooks
from tools.lessons.notebooks import QUESTION, ROOT

PATH = ROOT / "site" / "predictions.json"


def predictions_json(root: Path = ROOT) -> str:
    """Return the text of site/predictions.json, with one line per question."""
    lessons = []
    for path in notebooks.lessons(root):
        lines = ",\n".join(json.dumps(question, ensure_ascii=False) for question in questions(path))
        lessons.append(f"{json.dumps(path.stem)}: [\n{lines}\n]")
    return "{" + ",\n".join(lessons) + "}\n"


def questions(path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the prediction's data, or None, for each question in a lesson."""
    number = notebooks.number(path)
    module = importlib.import_module(f"exercises.ex{number}")
    entries: list[dict[str, Any] | None] = []
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "markdown":
            entries += [None] * cell.source.count(QUESTION)
        elif entries and (name := re.search(rf"^ex{number}\.(\w+)\.compare\(guess, ", cell.source, re.M)):
            prediction = getattr(module, name[1], None)
            if not prediction:
                raise SystemExit(f"Error: {path.name}, cell {cell.id}: exercises/ex{number}.py has no {name[1]}")
            if not entries[-1] and not prediction.varies:
                entries[-1] = to_json_data(prediction)
    yield from entries


def to_json_data(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as data for site/_static/guess_verdict.js, which evaluates guesses as `compare` does."""
    convert = _answer_text if isinstance(prediction.answer, (bool, str)) else float
    mistakes = [[convert(mistake), explanation] for mistake, explanation in prediction.mistakes.items()]
    data = {"answer": convert(prediction.answer), "reason": prediction.reason, "mistakes": mistakes}
    if convert is float:
        return {**data, "unit": prediction.unit, "rel_tol": prediction.rel_tol}
    yes_or_no = data["answer"] in ("yes", "no")
    return {
        **data,
        "answers": ["yes", "no"] if yes_or_no else sorted({data["answer"], *(mistake for mistake, _ in mistakes)}),
    }


def _answer_text(answer: bool | str) -> str:
    return {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else str(answer)


if __name__ == "__main__":
    PATH.write_text(predictions_json(), encoding="utf-8")
