"""Which factor was forgotten? What explains a wrong number, for judges and for predictions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from utils.exercises.judge import Wrong

Slips = dict[str, list[tuple[float, str]]]  # for each factor: plausible wrong values, and the words that name the slip


def named_slips(
    said: float,
    formula: Callable[..., float],
    right: dict[str, float],
    slips: Slips,
    within: float = 1e-3,
    most: int = 2,
) -> str:
    """Which factors explain the wrong number? The words of the single slips that give it, else of a pair, else ''.

    `formula` is called with the factors of `right`, one or two of them replaced by a plausible wrong value. Of a pair,
    each slip is told in short, up to its first colon or semicolon. `most`: so many slips at once.
    """
    options = [(name, value, words) for name, values in slips.items() for value, words in values]
    for count in range(1, most + 1):
        found = []
        for chosen in itertools.combinations(options, count):
            changed = {name: value for name, value, _ in chosen}
            got = formula(**{**right, **changed})
            if len(changed) == count and math.isclose(said, got, rel_tol=within):
                told = [words if count == 1 else re.split(r"[:;] ", words)[0] for _, _, words in chosen]
                found.append(", and ".join(dict.fromkeys(told)))
        if found:
            return "; or: ".join(found[:2])
    return ""


def by_factors(
    said: float,
    case: str,
    unit: str,
    formula: Callable[..., float],
    right: dict[str, float],
    slips: Slips,
    advice: str,
) -> None:
    """Nothing where the number is `formula(**right)` to 0.1 %; else Wrong, with the slips that explain it or the advice."""
    want = formula(**right)
    if math.isclose(said, want, rel_tol=1e-3):
        return
    said_so = f"{case}you say" if case else "You say"
    words = named_slips(said, formula, right, slips) or advice
    raise Wrong(f"{said_so} {amount(said)} {unit}, {off_by(said, want)}: {words}.")


def explained(said: Any, slips: Iterable[tuple[Any, str]], within: float = 1e-4, most: int = 2) -> str:
    """The words of the slips that give what is said in every case (numbers, lists or arrays of them), or ''.

    `within`: the relative difference that does not count. Where two slips give the same, both are told; where more
    than `most` do, none is.
    """
    found = [
        words for wrong, words in slips if np.shape(wrong) == np.shape(said) and np.allclose(wrong, said, within, 1e-9)
    ]
    return "; or: ".join(dict.fromkeys(found)) if len(found) <= most else ""


def off_by(said: float, want: float) -> str:
    """By how much a number is wrong, such as '2 times too large'."""
    high, low = max(said, want), min(said, want)
    times = f"{high / low:.4g} times " if low > 0 else ""
    return f"{times}too {'large' if said > want else 'small'}"


def amount(value: float) -> str:
    """A number as one says it: 28,672 or 3.5."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.5g}"
