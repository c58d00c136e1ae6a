"""Predictions that are no number: one of several answers, a shape, a device, a kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from utils.exercises.judge import shown
from utils.exercises.prediction import Prediction, ended


class Choice(Prediction):
    """What the reader commits to in the cell that shows it; `compare` says what speaks against a wrong answer.

    In exNN.py:     slope = Choice({"0": "both ways are computed", "nan": ""})
    In the lesson:  guess = None  # "0" or "nan"                       the first line of the cell that answers
                    ...
                    ex00.slope.compare(guess, found)                   below what it prints

    `words`: the answers that a reader can give, each with the words that are told where it is wrong. Capitals, spaces and
    the difference between 4, 4.0 and "4" do not count; True is "yes", False is "no". With `free`, any other answer (a
    shape, say) is read as well, and told that it is not so. `moment`: what is right depends on the run.

    Several answers at once, and the table of wrong guesses in the tests: as for `Prediction`.
    """

    kind = "answers"

    def __init__(
        self,
        words: dict[str, str],
        own: dict[str, dict[str, str]] | None = None,
        free: bool = False,
        moment: bool = False,
    ) -> None:
        super().__init__(unit="", slips={}, own=own or {})
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "free", free)
        object.__setattr__(self, "moment", moment)

    def _reading(self, guess: Any, truth: Any, label: str = "") -> str:
        words = {**self.words, **self.own.get(label, {})}
        told = {_bare(answer): why for answer, why in words.items()}
        spelled = {_bare(answer): answer for answer in words}
        said, right = _bare(guess), _bare(truth)
        if said == right:
            return f", {spelled.get(said, guess)}: right."
        if said not in told and not self.free:
            *most, last = map(repr, dict.fromkeys((*words, *([] if right in told else [str(truth)]))))
            return f" is {shown(guess)}; expected {', '.join(most)} or {last}."
        why = told.get(said, "")
        said_so = f", {spelled.get(said) or shown(guess)}, is not so: it is {spelled.get(right, truth)}"
        return ended(f"{said_so}{why and ': '}{why}")


def _bare(answer: Any) -> str:
    """An answer in the one form in which answers are compared."""
    if isinstance(answer, (bool, np.bool_)):
        return "yes" if answer else "no"
    try:
        if getattr(answer, "shape", ()):
            return str(answer)
        return f"{float(answer):g}"
    except Exception:  # a word, a shape, an array, whatever a reader writes
        return "".join(str(answer).lower().split())
