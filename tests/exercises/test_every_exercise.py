"""Run the tests that the exercises and predictions of every lesson must pass."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from exercises.framework import Mistake, build_mesh, format_value
from tests.lesson_lint import exercises_of, predictions_of
from tests.mutants import make_mutants
from tools.lessons import notebooks

pytestmark = pytest.mark.usefixtures("compiled_once")

MAX_MUTANTS = 24  # per solution; if there are more, they're sampled evenly
NUMBERS = [*map(notebooks.number, notebooks.lessons())]
MODULES = {number: importlib.import_module(f"exercises.ex{number}") for number in NUMBERS}
TABLES = [importlib.import_module(f"tests.exercises.alternative_solutions.ex{number}") for number in NUMBERS]
ALTERNATIVES = {exercise: answers for table in TABLES for exercise, answers in table.ALTERNATIVES.items()}
EQUIVALENT_MUTANTS = {
    exercise: changes for table in TABLES for exercise, changes in getattr(table, "EQUIVALENT_MUTANTS", {}).items()
}
EXERCISES = [exercise for module in MODULES.values() for exercise in exercises_of(module).values()]
PREDICTIONS = {
    f"{number}-{name}": prediction
    for number, module in MODULES.items()
    for name, prediction in predictions_of(module).items()
}
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.function.__name__)
each_prediction = pytest.mark.parametrize("prediction", PREDICTIONS.values(), ids=PREDICTIONS)


@pytest.mark.other_versions
@each_exercise
def test_right_answers_pass_and_mistakes_are_explained(exercise):
    """Check the reference solution, at least two unusual alternatives, and each common mistake."""
    assert len(ALTERNATIVES[exercise]) >= 2
    for answer in (exercise.function, *ALTERNATIVES[exercise]):
        assert exercise.verdict(answer).message == f"{exercise.function.__name__}: right."
    mistakes = [mistake for mistake in exercise.mistakes if isinstance(mistake, Mistake)]
    assert len(mistakes) <= 6, "list only the mistakes that the lesson is about, six at most"
    for mistake in mistakes:
        verdict = exercise.verdict(mistake.function(exercise.function))
        assert verdict.outcome == "wrong", mistake
        assert mistake.explanation[1:] in " ".join(verdict.message.split()), (mistake, verdict.message)


@pytest.mark.other_versions
@pytest.mark.parametrize(
    "exercise", exercises_of(MODULES["05"]).values(), ids=lambda exercise: exercise.function.__name__
)
def test_lesson_05_checks_answers_while_its_own_mesh_is_set(exercise):
    """Test that right answers pass while the lesson's mesh is set, although an exercise may use a different one."""
    with jax.set_mesh(build_mesh({"X": 8}, explicit=True)):
        assert exercise.verdict(exercise.function).outcome == "right"


@pytest.mark.other_versions
@pytest.mark.once
@each_exercise
@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # a mutant may pass JAX a generator
def test_mutants_of_a_solution_are_refused(exercise):
    """Test that every mutant of a solution fails, unless EQUIVALENT_MUTANTS lists its change."""
    equivalent, quick = dict(EQUIVALENT_MUTANTS.get(exercise, [])), dataclasses.replace(exercise, timeout=5)
    changed_solutions = make_mutants(exercise, MAX_MUTANTS)
    for mutant in changed_solutions:
        answer = mutant.function(exercise.function)
        right = quick.verdict(answer).outcome == "right"
        if right and not inspect.signature(answer).parameters and repr(answer()) == repr(exercise.function()):
            continue
        assert right == (mutant.change in equivalent), f"{'accepted' if right else 'refused'}: {mutant.change}"
    tested = {mutant.change for mutant in changed_solutions}
    assert len(changed_solutions) == MAX_MUTANTS or set(equivalent) <= tested, "a listed change is never made"


class _RaisesOnAnyUse:
    def __eq__(self, other):
        raise RuntimeError("no")

    __array__ = __len__ = __iter__ = __repr__ = __float__ = __eq__


def _raise_index_error(*args):
    return [][1]


def _nonsense() -> list:
    import jax

    deleted = jax.numpy.ones(3)
    deleted.delete()
    values = [None, True, float("nan"), "x", [], (None,), {}, object(), P("z"), np.zeros(2), [10**400]]
    generator = (i for i in range(3))
    return [*values, np.array([1.0, None]), _RaisesOnAnyUse(), deleted, jax.random.key(0), len, generator]


@pytest.mark.other_versions
@pytest.mark.once
@each_exercise
def test_nonsense_is_refused_with_a_message(exercise):
    for value in _nonsense():
        verdict = exercise.verdict(lambda *args, value=value: value)
        assert verdict.outcome == "wrong" and verdict.message.startswith("Not yet. "), value
        if not inspect.signature(exercise.function).parameters:
            assert format_value(exercise.function()) not in verdict.message, "the message gives the solution away"
    message = " ".join(exercise.verdict(_raise_index_error).message.split())
    assert message.startswith("Not yet. ") and "IndexError: list index out of range" in message


@pytest.mark.once
@each_prediction
def test_wrong_guesses_are_explained(prediction):
    assert prediction.evaluate_guess(prediction.answer, prediction.answer).outcome == "right"
    guesses = dict(prediction.mistakes)
    if not isinstance(prediction.answer, str):
        guesses = {_unlisted_guess(prediction.answer): prediction.reason, **guesses}
    for guess, explanation in guesses.items():
        reading = prediction.evaluate_guess(guess, prediction.answer)
        assert reading.outcome == "wrong" and (explanation or prediction.reason) in reading.text
    assert prediction.reason or all(prediction.mistakes.values()), "a wrong guess would get no explanation"


def _unlisted_guess(answer):
    return not answer if isinstance(answer, bool) else 3 * answer + math.pi


@pytest.mark.once
@each_prediction
def test_any_guess_is_evaluated(prediction, capsys):
    for guess in [*_nonsense(), 0]:
        prediction.compare(guess, prediction.answer)
        assert bool(capsys.readouterr().out) == (guess is not None), guess
