"""Predictions: a number that the reader commits to before a cell counts it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Any, ClassVar

from exercises import progress
from utils.exercises.judge import Wrong, number, shown
from utils.exercises.slips import Slips, amount, named_slips, off_by


@dataclass(frozen=True, eq=False)  # by identity, as the key of a table
class Prediction:
    """A number that the reader commits to in the cell that counts it; `compare` says which factor was forgotten.

    In exNN.py:     torus_steps = Prediction("steps", {6 / 4: "an axis of n devices takes n - 1 steps, not n"})
    In the lesson:  guess = None  # your number of steps           the first line of the cell that answers
                    ...
                    ex07.torus_steps.compare(guess, len(found))    below what it prints, above the picture it ends with

    `slips`: by what factor a wrong guess is off, guess / truth (where the truth is 0, the guess itself), and the words
    that name the slip. Two slips at once are found, too. The truth is what the cell counted: it is not written here.
    `within`: how far off, relatively, is still right; of an estimate, 0.1 or so. `ranks`: the numbers are places, of
    which "twice too large" would say nothing. `things`: the numbers count or name things (devices, rows, copies), and
    the keys of the slips are the wrong guesses themselves: {6: "who stands there in the other mesh"}; no ratio is told.
    The key None, in any mode: the words for every wrong guess that has none of its own.

    Several numbers at once: the truth is a dictionary, the guess a tuple in its order, None in the place of one that
    the reader leaves out; `own` has the slips that are told of one label alone.

    tests/wrong_answers/exNN.py has the plausible wrong guesses: GUESSES = {ex07.torus_steps: (4, [(6, "n - 1")])}.
    """

    unit: str
    slips: dict[float | None, str]
    own: dict[str, dict[float | None, str]] = field(default_factory=dict)
    within: float = 1e-3
    ranks: bool = False
    things: bool = False
    kind: ClassVar[str] = "numbers"

    def compare(self, guess: Any, truth: Any) -> None:
        """Print what is to be said about the guess; nothing where it is None."""
        lines = self.readings(guess, truth)
        for line in lines:
            print(textwrap.fill(line, 110, break_on_hyphens=False))
        read = lines and not any("; expected " in line for line in lines)  # given, and in a form that can be read
        progress.prediction(self, all(line.endswith(": right.") for line in lines) if read else None)

    def readings(self, guess: Any, truth: Any) -> list[str]:
        """The lines that `compare` prints, one for each answer that the reader guessed."""
        if guess is None:
            return []
        guess = guess.tolist() if hasattr(guess, "tolist") else guess  # of NumPy or JAX
        if not isinstance(truth, dict):
            return [f"Your guess{self._reading(guess, truth)}"]
        if not isinstance(guess, (list, tuple)) or len(guess) != len(truth):
            return [f"Your guess is {shown(guess)}; expected {len(truth)} {self.kind}: {', '.join(truth)}."]
        pairs = zip(guess, truth.items(), strict=True)
        return [f"{of}: your guess{self._reading(one, value, of)}" for one, (of, value) in pairs if one is not None]

    def _reading(self, guess: Any, truth: Any, label: str = "") -> str:
        truth = float(truth)
        try:
            said = number(guess, f"one number, of {self.unit}" if self.unit else "one number", said=" is")
        except Wrong as wrong:
            return str(wrong)
        shown = f", {amount(said)} {self.unit.removesuffix('s') if said == 1 else self.unit}".rstrip()
        if math.isclose(said, truth, rel_tol=self.within, abs_tol=1e-9):
            return f"{shown}: right."
        told = {**self.slips, **self.own.get(label, {})}
        otherwise = told.pop(None, "")
        words = (told.get(said, "") if self.things else self._factors(said, truth, told)) or otherwise
        off = f"should be {amount(truth)}" if self.ranks or self.things else f"is {off_by(said, truth)}"
        return ended(f"{shown}, {off}{words and ': '}{words}")

    def _factors(self, said: float, truth: float, told: dict[float, str]) -> str:
        """The words of the factors that explain the guess, or ''."""
        slips: Slips = {}
        for factor, words in told.items():
            slips.setdefault(words, []).append((factor, words))
        return named_slips(
            said,
            lambda **factors: (truth or 1) * math.prod(factors.values()),
            dict.fromkeys(slips, 1.0),
            slips,
            self.within,
            most=2 if self.within < 0.1 else 1,  # to a tenth, some pair explains any number
        )


def ended(line: str) -> str:
    """A line with its full stop, unless its last words are a question."""
    return line if line.endswith("?") else f"{line}."
