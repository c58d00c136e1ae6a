"""A prediction: what the reader commits to in the cell that shows it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exercises import progress
from exercises.framework.console import tell
from exercises.framework.formatting import shown
from utils import asked


@dataclass(frozen=True, eq=False)
class Prediction:
    """One question with one answer. In exNN.py:

        kept = Prediction(8, "the backward pass multiplies by the weights of every layer", {1: "..."}, unit="layers")

    and in the lesson's cell, which begins with `guess = None  # layers`: `ex10.kept.compare(guess, counted)`.
    """

    truth: Any  # by hand; the cell's must agree. A number, True or False for yes and no, or a word
    why: str = ""  # told with a wrong guess that has no words of its own
    slips: dict[Any, str] = field(default_factory=dict)  # {a wrong guess: its words}; of words: the other answers
    unit: str = ""  # in the plural; a number without one names something, such as a device
    within: float = 1e-3  # how far off a number may be, relatively
    varies: bool = False  # what is right depends on the run

    def compare(self, guess: Any, truth: Any) -> None:
        """Print what is to be said about the guess, given what the cell counted; nothing where it is None or `skip`."""
        if guess is None or guess is asked.SKIP:
            return None if asked.waiting else progress.prediction(self, None)
        line = self.reading(guess, truth)
        right = None if "; expected " in line else line.endswith(": right.")
        tell(
            {None: "not attempted", False: "wrong", True: "right"}[right],
            textwrap.fill(line, 110, break_on_hyphens=False),
        )
        progress.prediction(self, right)

    def reading(self, guess: Any, truth: Any) -> str:
        """The line about a guess: right, wrong and why, or of the wrong kind."""
        said, right = _plain(guess), _plain(truth)
        words = {_plain(slip): words for slip, words in self.slips.items()}
        if isinstance(right, float):
            if not isinstance(said, float):
                return f"Your guess is {shown(guess)}; expected a number{f' of {self.unit}' * bool(self.unit)}."
            if math.isclose(said, right, rel_tol=self.within, abs_tol=1e-9):
                return f"Your guess, {self._amount(said)}: right."
        else:
            answers = ["yes", "no"] if right in ("yes", "no") else sorted({right, *words})
            if said not in answers:
                return f"Your guess is {shown(guess)}; expected {' or '.join(answers)}."
            if said == right:
                return f"Your guess, {said}: right."
        why = next((w for slip, w in words.items() if _near(slip, said, self.within)), "") or self.why
        times = _times(said, right) if self.unit else ""
        line = f"Your guess, {self._amount(said)}, should be {self._amount(right)}{times}"
        line += f": {why}" * bool(why)
        return line if line.endswith("?") else f"{line}."

    def _amount(self, value: Any) -> str:
        if not isinstance(value, float):
            return value
        unit = self.unit.removesuffix("s") if value == 1 else self.unit
        return f"{f'{value:,.0f}' if abs(value) >= 1e4 else f'{value:,.5g}'} {unit}".rstrip()


def _near(one: Any, other: Any, within: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=max(within, 1e-2))
    return one == other


def _times(said: Any, right: Any) -> str:
    """By which factor a number is off, from twice on."""
    if not isinstance(said, float) or not 0 < 2 * min(said, right) <= max(said, right):
        return ""
    return f" ({max(said, right) / min(said, right):.4g} times too {'large' if said > right else 'small'})"


def _plain(value: Any) -> Any:
    """A guess or a truth in the one form in which they are compared: a float, or a text in small letters."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    try:
        return float(value)
    except Exception:  # a word, a shape, whatever a reader writes
        text = value if isinstance(value, str) else shown(value)
        return " ".join(text.lower().split()).replace(", ", ",")
