"""What is asked of every exercise and every prediction, whatever the lesson."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from exercises.framework.exercise import changed, is_text
from exercises.framework.formatting import shown
from tests.checks import exercises_of, predictions_of
from tests.mutants import mutants
from tools.lessons import notebooks

pytestmark = pytest.mark.usefixtures("compiled_once")

MOST = 24  # changes of one solution: they are evenly chosen where there are more
NUMBERS = [*map(notebooks.number, notebooks.lessons())]
MODULES = {number: importlib.import_module(f"exercises.ex{number}") for number in NUMBERS}
TABLES = [importlib.import_module(f"tests.exercises.alternative_solutions.ex{number}") for number in NUMBERS]
ALTERNATIVES = {exercise: answers for table in TABLES for exercise, answers in table.ALTERNATIVES.items()}
EQUIVALENT_MUTANTS = {
    exercise: changes for table in TABLES for exercise, changes in getattr(table, "EQUIVALENT_MUTANTS", {}).items()
}
EXERCISES = [exercise for module in MODULES.values() for exercise in exercises_of(module).values()]
PREDICTIONS = {f"{n}-{name}": one for n, module in MODULES.items() for name, one in predictions_of(module).items()}
EACH = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.function.__name__)
EACH_GUESSED = pytest.mark.parametrize("prediction", PREDICTIONS.values(), ids=PREDICTIONS)


@pytest.mark.elsewhere
@EACH
def test_right_answers_are_right_and_each_slip_is_refused_in_its_own_words(exercise):
    """The solution, and two answers or more in unusual forms."""
    assert len(ALTERNATIVES[exercise]) >= 2
    for answer in (exercise.function, *ALTERNATIVES[exercise]):
        assert exercise.verdict(answer).message == f"{exercise.function.__name__}: right."
    slips = {slip: words for slip, words in exercise.slips.items() if not is_text(slip)}
    assert len(slips) <= 6, "six at most: those that the lesson is about"
    for slip, words in slips.items():
        verdict = exercise.verdict(changed(exercise.function, slip) if isinstance(slip, str) else slip)
        assert verdict.outcome == "wrong", slip
        assert words[1:] in " ".join(verdict.message.split()), (slip, verdict.message)


@pytest.mark.elsewhere
@pytest.mark.once
@EACH
@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # a change may hand JAX a generator
def test_each_change_of_a_solution_is_refused(exercise):
    """Change it in one place with `tests.mutants`; EQUIVALENT_MUTANTS lists the changes that don't change the results."""
    same, quick = dict(EQUIVALENT_MUTANTS.get(exercise, [])), dataclasses.replace(exercise, seconds=5)
    found = mutants(exercise, MOST)
    for mutant in found:
        answer = mutant.function(exercise.function)
        right = quick.verdict(answer).outcome == "right"
        if right and not inspect.signature(answer).parameters and repr(answer()) == repr(exercise.function()):
            continue
        assert right == (mutant.change in same), f"{'accepted' if right else 'refused'}: {mutant.change}"
    assert len(found) == MOST or set(same) <= {mutant.change for mutant in found}, "lists a change that is not made"


class _Bad:
    def __eq__(self, other):
        raise RuntimeError("no")

    __array__ = __len__ = __iter__ = __repr__ = __float__ = __eq__


def _broken(*args):
    return [][1]


def _odd() -> list:
    import jax

    deleted = jax.numpy.ones(3)
    deleted.delete()
    odd = [None, True, float("nan"), "x", [], (None,), {}, object(), P("z"), np.zeros(2), [10**400]]
    return [*odd, np.array([1.0, None]), _Bad(), deleted, jax.random.key(0), len, (i for i in range(3))]


@pytest.mark.elsewhere
@pytest.mark.once
@EACH
def test_whatever_comes_back_gets_an_answer(exercise):
    for odd in _odd():
        verdict = exercise.verdict(lambda *args, odd=odd: odd)
        assert verdict.outcome == "wrong" and verdict.message.startswith("Not yet. "), odd
        alone = not inspect.signature(exercise.function).parameters
        assert not (alone and shown(exercise.function()) in verdict.message), "tells the solution"
    told = " ".join(exercise.verdict(_broken).message.split())
    assert told.startswith("Not yet. ") and "IndexError: list index out of range" in told


@pytest.mark.once
@EACH_GUESSED
def test_right_and_wrong_guesses_are_read(prediction):
    assert prediction.reading(prediction.truth, prediction.truth).endswith(": right.")
    words = {**prediction.slips} if isinstance(prediction.truth, str) else {_other(prediction.truth): prediction.why}
    for guess, why in {**words, **prediction.slips}.items():
        reading = prediction.reading(guess, prediction.truth)
        assert (why or prediction.why) in reading and "should be" in reading
    assert prediction.why or all(prediction.slips.values()), "a wrong guess is told why"


def _other(truth):
    return not truth if isinstance(truth, bool) else 3 * truth + math.pi


@pytest.mark.once
@EACH_GUESSED
def test_whatever_is_guessed_gets_a_reading(prediction, capsys):
    for odd in [*_odd(), 0]:
        prediction.compare(odd, prediction.truth)
        assert bool(capsys.readouterr().out) == (odd is not None), odd
