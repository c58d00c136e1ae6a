"""Changes of a solution in one place: which ones are made, by hand."""

from __future__ import annotations

from exercises.kit import Exercise
from tests.mutants import mutants


def share(parts, axis=0):
    """A docstring, which is not changed."""
    whole = sum(parts, start=0)
    if axis > 3 and not parts:
        print("none")
    return parts[0] / whole, "x"


EXERCISE = Exercise(share, "hint")


def test_each_place_is_changed_once_a_mutant():
    assert {mutant.change for mutant in mutants(EXERCISE, 1000)} == {
        "def share(parts, axis=0): -> def share(parts, axis=1):",
        "whole = sum(parts, start=0) -> whole = parts",
        "whole = sum(parts, start=0) -> whole = sum(parts)",
        "whole = sum(parts, start=0) -> whole = sum(parts, start=1)",
        "if axis > 3 and (not parts): -> if axis > 3 or not parts:",
        "if axis > 3 and (not parts): -> if axis >= 3 and (not parts):",
        "if axis > 3 and (not parts): -> if not axis > 3 and (not parts):",
        "if axis > 3 and (not parts): -> if axis > 4 and (not parts):",
        "if axis > 3 and (not parts): -> if axis > 2 and (not parts):",
        "if axis > 3 and (not parts): -> if axis > 3 and parts:",
        "print('none') -> pass",
        "print('none') -> 'none'",
        "print('none') -> print('x')",
        "return (parts[0] / whole, 'x') -> return (parts[1] / whole, 'x')",
        "return (parts[0] / whole, 'x') -> return (parts[0] * whole, 'x')",
        "return (parts[0] / whole, 'x') -> return (whole / parts[0], 'x')",
        "return (parts[0] / whole, 'x') -> return ('x', parts[0] / whole)",
        "return (parts[0] / whole, 'x') -> return ('x',)",
        "return (parts[0] / whole, 'x') -> return (parts[0] / whole,)",
        "return (parts[0] / whole, 'x') -> return (parts[0] / whole, 'none')",
    }


def test_a_mutant_runs_and_few_are_the_same_few_each_time():
    [swapped] = [
        mutant for mutant in mutants(EXERCISE, 1000) if mutant.change.endswith("return ('x', parts[0] / whole)")
    ]
    assert swapped.function(share)([1, 3]) == ("x", 0.25)
    few = mutants(EXERCISE, 5)
    assert len(few) == 5 and few == mutants(EXERCISE, 5)
