"""Wrong answers that people really give: each must be rejected with a message that names the misconception."""

from __future__ import annotations

import importlib
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.checks import exercises_of
from tools import notebooks
from utils import exercises
from utils.exercises import Wrong, ex02, same
from utils.mesh import make_mesh

WRONG, ALL = {}, []
for number in map(notebooks.number, notebooks.lessons()):
    WRONG |= importlib.import_module(f"tests.wrong_answers.ex{number}").WRONG
    ALL += exercises_of(importlib.import_module(f"utils.exercises.ex{number}")).values()


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_wrong_answers_are_told_why(exercise):
    assert len(WRONG[exercise]) >= 2
    for answer, message in WRONG[exercise]:
        verdict = exercise.verdict(answer)
        assert verdict.outcome == "wrong"
        assert message in " ".join(verdict.message.split())
        assert verdict.message.startswith("Not yet. ")


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_a_function_that_raises_is_wrong_with_the_last_line(exercise):
    def broken(*args):
        return [][1]

    assert exercise.verdict(broken).message == "Not yet. Your function raised IndexError: list index out of range"


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_the_printed_solution_is_the_function_that_runs(exercise, capsys):
    exercise.solution()
    printed = capsys.readouterr().out
    assert printed.startswith(f"def {exercise.function.__name__}(")
    assert printed.rstrip() in inspect.getsource(exercise.function)
    exercise.hint()
    assert capsys.readouterr().out.startswith("Hint. ")


ODD = [None, True, 3, -1.5, float("nan"), "x", [], [1, 2], (None,), {}, object(), P("z")]
ODD += [np.array([1.0, None]), np.zeros(2)]


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_whatever_comes_back_gets_an_answer(exercise):
    for odd in [*ODD, (i for i in range(3)), filter(None, [])]:
        verdict = exercise.verdict(lambda *args, odd=odd: odd)
        assert verdict.outcome == "wrong", odd
        assert "Not yet. " in verdict.message


def test_the_three_outcomes(capsys):
    exercise = ex02.holder_of

    def holder_of(row, column):
        """A docstring."""
        ...  # your code here

    def forgot_return(row, column):
        4 * (row // 4) + column // 4

    exercise.check(holder_of)
    assert capsys.readouterr().out.startswith("holder_of: not attempted yet.")
    exercise.check(forgot_return)
    assert "you return None" in capsys.readouterr().out
    exercise.check(exercise.function)
    assert capsys.readouterr().out == "holder_of: right.\n"
    exercise.check(6)
    assert "Hand over the function itself" in capsys.readouterr().out


def test_same_names_what_differs(devices):
    want = jax.device_put(jnp.arange(8.0), NamedSharding(make_mesh((8,), ("i",)), P("i")))
    for got, message in [
        (None, "Does the function end with `return`?"),
        (3.0, "is a float, 3.0; expected an array of shape (8,)"),
        (np.arange(8.0), "is a ndarray; expected a jax.Array"),
        (jnp.zeros(3), "has shape (3,); expected (8,)"),
        (jnp.arange(8), "has dtype int32; expected float32"),
        (jnp.arange(8.0), "is laid out as cpu:0; expected P('i') on a 8 mesh ('i',)"),
        (want.at[2].add(1), "differs in 1 of 8 values; at [2] it is 3.0, expected 2.0"),
    ]:
        with pytest.raises(Wrong) as wrong:
            same(got, want)
        assert message in str(wrong.value)
    same(want, want)


def test_a_bug_in_a_judge_is_not_the_readers_fault():
    def judge(answer):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        exercises.exercise(judge, "hint")(lambda: None).verdict(lambda: 1)
