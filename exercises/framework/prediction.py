"""Ask readers to guess before a cell shows the answer, and compare the guess with the answer."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from exercises import progress
from exercises.framework.format_values import format_value
from exercises.verdicts import Outcome, print_verdict
from utils import guess_gate


class GuessVerdict(NamedTuple):
    """The outcome of a guess ("not attempted" if its type is wrong), and the sentence to print."""

    outcome: Outcome
    text: str


@dataclass(frozen=True, eq=False)
class Prediction:
    """A question with a single answer. Define it in exNN.py:

        kept = Prediction(8, "the backward pass multiplies by the weights of every layer", {1: "..."}, unit="layers")

    In the lesson, begin the cell with `guess = None  # layers`, and call `ex10.kept.compare(guess, counted)` in it.
    """

    # a number, a word, or a bool for yes or no; calculated on paper, and equal to the cell's result
    answer: Any
    reason: str = ""  # an explanation of the right answer, for readers whose wrong guess isn't among the mistakes
    # Maps wrong guesses to explanations. If the answer is a word, the keys are all the other words to choose from.
    mistakes: dict[Any, str] = field(default_factory=dict)
    unit: str = ""  # a plural noun, or empty if the number identifies something, such as a device
    rel_tol: float = 1e-3  # the relative tolerance for a number
    varies: bool = False  # whether the right answer can differ from run to run

    def compare(self, guess: Any, answer: Any) -> None:
        """Print how a guess compares with the cell's result, and save the outcome in the reader's progress.

        Print nothing if there's no guess (None or `skip`).
        """
        if guess is None or guess is guess_gate.SKIP:
            return None if guess_gate.is_withholding else progress.record_prediction(self, None)
        outcome, text = self.evaluate_guess(guess, answer)
        print_verdict(outcome, textwrap.fill(text, 110, break_on_hyphens=False))
        progress.record_prediction(self, None if outcome == "not attempted" else outcome == "right")

    def evaluate_guess(self, guess: Any, answer: Any) -> GuessVerdict:
        """Compare a guess with the right answer, and explain any guess that's wrong or of the wrong type."""
        guessed, expected = _normalize(guess), _normalize(answer)
        mistakes = {_normalize(wrong): explanation for wrong, explanation in self.mistakes.items()}
        if isinstance(expected, float):
            if not isinstance(guessed, float):
                description = f"a number of {self.unit}" if self.unit else "a number"
                return GuessVerdict("not attempted", f"Your guess is {format_value(guess)}; expected {description}.")
            if math.isclose(guessed, expected, rel_tol=self.rel_tol, abs_tol=1e-9):
                return GuessVerdict("right", f"Your guess, {self._format(guessed)}: right.")
        else:
            answers = ["yes", "no"] if expected in ("yes", "no") else sorted(map(str, {expected, *mistakes}))
            if guessed not in answers:
                return GuessVerdict(
                    "not attempted", f"Your guess is {format_value(guess)}; expected {' or '.join(answers)}."
                )
            if guessed == expected:
                return GuessVerdict("right", f"Your guess, {guessed}: right.")
        matching = (text for wrong, text in mistakes.items() if _is_same_guess(wrong, guessed, self.rel_tol))
        reason = next(matching, "") or self.reason
        factor = _describe_factor(guessed, expected) if self.unit else ""
        line = f"Your guess, {self._format(guessed)}, should be {self._format(expected)}{factor}"
        line += f": {reason}" * bool(reason)
        return GuessVerdict("wrong", line if line.endswith("?") else f"{line}.")

    def _format(self, value: float | str) -> str:
        if isinstance(value, str):
            return value
        unit = self.unit.removesuffix("s") if value == 1 else self.unit
        return f"{f'{value:,.0f}' if abs(value) >= 1e4 else f'{value:,.5g}'} {unit}".rstrip()


def _is_same_guess(first: float | str, second: float | str, rel_tol: float) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=max(rel_tol, 1e-2))
    return first == second


def _describe_factor(guessed: float | str, expected: float | str) -> str:
    """Describe the factor by which a number is wrong; return "" for a word, or for a factor below 2."""
    if not isinstance(guessed, float) or not isinstance(expected, float):
        return ""
    low, high = sorted((guessed, expected))
    if not 0 < 2 * low <= high:
        return ""
    return f" ({high / low:.4g} times too {'large' if guessed > expected else 'small'})"


def _normalize(value: Any) -> float | str:
    """Convert a guess or an answer to a float if possible, or else to lower-case text. A bool becomes "yes" or "no"."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    try:
        return float(value)
    except Exception:  # a word, a shape, or anything else that a reader may write
        text = value if isinstance(value, str) else format_value(value)
        return " ".join(text.lower().split()).replace(", ", ",")
