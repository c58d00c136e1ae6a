"""Write site/predictions.json: what the site's pages need to read a guess as the lessons do (part of `make stamp`).

For each lesson, in the order of its questions: the `Prediction` or `Choice` of the cell that answers, as data, with its
truth, which the tests hold against what the lesson counts, and the wrong guesses of their tables; or null, where a
question asks for something that no cell compares.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import notebooks
from tools.notebooks import ROOT

PATH = ROOT / "site" / "predictions.json"
QUESTION = "> **Predict.** "


def written(root: Path = ROOT) -> str:
    """The file's text: a line for each question."""
    lessons = []
    for path in notebooks.lessons(root):
        lines = ",\n".join(json.dumps(question, ensure_ascii=False) for question in questions(path))
        lessons.append(f"{json.dumps(path.stem)}: [\n{lines}\n]")
    return "{" + ",\n".join(lessons) + "}\n"


def questions(path: Path) -> Iterator[dict[str, Any] | None]:
    """What is asked in a lesson, as data."""
    number = notebooks.number(path)
    moved = notebooks.has_moved(number)
    module = importlib.import_module(f"{'' if moved else 'utils.'}exercises.ex{number}")
    guesses = {} if moved else getattr(importlib.import_module(f"tests.wrong_answers.ex{number}"), "GUESSES", {})
    asked: list[dict[str, Any] | None] = []
    for cell in notebooks.read(path).cells:
        if cell.cell_type == "markdown":
            asked += [None] * cell.source.count(QUESTION)
        elif asked and (name := re.search(rf"^ex{number}\.(\w+)\.compare\(guess, ", cell.source, re.M)):
            prediction = getattr(module, name[1])
            if moved and not asked[-1] and not prediction.varies:
                asked[-1] = plain(prediction)
            elif (
                not moved and not asked[-1] and not getattr(prediction, "moment", False)
            ):  # of what the run decides, no page knows
                asked[-1] = told(prediction, *guesses[prediction])
    yield from asked


def plain(prediction: Any) -> dict[str, Any]:
    """A prediction of the one kit: site/_static/readings.js reads a guess by it as exercises/kit/prediction.py does."""
    spell = _word if isinstance(prediction.truth, (bool, str)) else float
    slips = [[spell(slip), words] for slip, words in prediction.slips.items()]
    found = {"plain": True, "labels": None, "truth": [spell(prediction.truth)], "own": {}, "why": prediction.why}
    found |= {"slips": slips, "tried": [[[slip], words or prediction.why] for slip, words in slips]}
    if isinstance(prediction.truth, bool):
        return {**found, "words": [["no", ""], ["yes", ""]], "free": False}
    if isinstance(prediction.truth, str):
        return {**found, "words": slips, "free": False}
    return {**found, "unit": prediction.unit, "within": prediction.within}


def told(prediction: Any, truth: Any, tried: list[tuple[Any, str]]) -> dict[str, Any]:
    """A prediction with its truth, and the guesses of the tests' table with the words of their readings."""
    choice, several = hasattr(prediction, "words"), isinstance(truth, dict)
    spell = _word if choice else float
    found: dict[str, Any] = {
        "labels": list(truth) if several else None,
        "truth": [spell(value) for value in (truth.values() if several else [truth])],
        "own": {label: list(words.items()) for label, words in prediction.own.items()},
        "tried": [
            [[None if one is None else spell(one) for one in (guess if several else [guess])], words]
            for guess, words in tried
            if "expected" not in words  # of a guess in another form than a page's fields take
        ],
    }
    if choice:
        return {**found, "words": list(prediction.words.items()), "free": prediction.free, "moment": prediction.moment}
    return {
        **found,
        "unit": prediction.unit,
        "slips": list(prediction.slips.items()),
        "within": prediction.within,
        "ranks": prediction.ranks,
        "things": prediction.things,
    }


def _word(answer: Any) -> str:
    return {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else str(answer)


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
