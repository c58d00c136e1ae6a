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

from tests.checks import exercises_of, predictions_of
from tools import notebooks
from utils import exercises
from utils.exercises import Choice, Prediction, Wrong, ex02, number, numbers, same
from utils.mesh import make_mesh

pytestmark = pytest.mark.usefixtures("compiled_once")
WRONG, GUESSES, ALL, PREDICTIONS = {}, {}, [], {}
for lesson in map(notebooks.number, notebooks.lessons()):
    tables = importlib.import_module(f"tests.wrong_answers.ex{lesson}")
    WRONG |= tables.WRONG
    GUESSES |= getattr(tables, "GUESSES", {})
    module = importlib.import_module(f"utils.exercises.ex{lesson}")
    ALL += exercises_of(module).values()
    PREDICTIONS |= {f"{lesson}-{name}": prediction for name, prediction in predictions_of(module).items()}


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


@pytest.mark.parametrize("prediction", PREDICTIONS.values(), ids=PREDICTIONS)
def test_wrong_guesses_are_told_what_they_forgot(prediction):
    truth, wrong = GUESSES[prediction]
    assert len(wrong) >= 2
    for guess, message in wrong:
        readings = prediction.readings(guess, truth)
        assert message in " ".join(line for line in readings if not line.endswith("right."))
    right = tuple(truth.values()) if isinstance(truth, dict) else truth
    readings = prediction.readings(right, truth)
    assert len(readings) == (len(truth) if isinstance(truth, dict) else 1)
    assert all(line.endswith(": right.") for line in readings)


@pytest.mark.parametrize("prediction", PREDICTIONS.values(), ids=PREDICTIONS)
def test_whatever_is_guessed_gets_a_reading(prediction, capsys):
    truth, _ = GUESSES[prediction]
    several = len(truth) if isinstance(truth, dict) else 0
    for odd in [*ODD, 0, 10**400, jnp.ones(3)]:
        for guess in (odd, (odd,) * several) if several else (odd,):
            prediction.compare(guess, truth)
            assert bool(capsys.readouterr().out) == (odd is not None), odd


def test_readings_of_a_guess(capsys):
    """By hand: a ring of 8 sends 7/8 of the array."""
    sent = Prediction(
        "bytes", {8 / 7: "its own part; kept", 1 / 4: "numbers: 4 bytes each", 0.5: "half", 1 / 2.0001: "2"}
    )
    for guess, said in [
        (None, ""),
        (7168, "Your guess, 7,168 bytes: right.\n"),
        (np.float32(7168.001), "Your guess, 7,168 bytes: right.\n"),
        (8192, "Your guess, 8,192 bytes, is 1.143 times too large: its own part; kept.\n"),
        (2048, "Your guess, 2,048 bytes, is 3.5 times too small: its own part, and numbers.\n"),
        (123, "Your guess, 123 bytes, is 58.28 times too small.\n"),
        (0, "Your guess, 0 bytes, is too small.\n"),
        ((7168, 1), "Your guess is (7168, 1); expected one number, of bytes.\n"),
    ]:
        sent.compare(guess, 7168)
        assert capsys.readouterr().out == said
    Prediction("", {}, {"a": {2: "twice"}, "b": {3: "thrice"}}).compare((2, 3, 1), {"a": 1, "b": 0, "c": 1})
    assert capsys.readouterr().out.splitlines() == [
        "a: your guess, 2, is 2 times too large: twice.",
        "b: your guess, 3, is too large: thrice.",
        "c: your guess, 1: right.",
    ]
    assert Prediction("FLOPs", {}, within=0.1).readings(2000, 1970) == ["Your guess, 2,000 FLOPs: right."]


def test_one_number_in_each_of_its_forms():
    for three in (3, 3.0, np.float32(3), np.int64(3), np.array(3), jnp.float32(3), jnp.bfloat16(3)):
        assert number(three) == 3.0 and type(number(three)) is float


def test_what_is_no_number_is_told_so():
    for odd, message in [
        (None, "You return None; expected one number, of bytes. Does the function end with `return`"),
        (True, "You return True; expected one number, of bytes."),
        ("3", "You return '3'; expected one number, of bytes. That is a text; leave out the quotes."),
        (len, "That is a function; call it."),
        ((1, 2), "You return (1, 2); expected one number"),
        (
            np.zeros(1),
            "You return an array of shape (1,); expected one number, of bytes. That is an array",
        ),
        (jnp.zeros((4, 8)), "You return an array of shape (4, 8); expected one number"),
        (np.array(None), "expected one number"),
        (np.array(True), "expected one number"),
        (jax.random.key(0), "expected one number"),
        (10**400, "expected one number"),
        (2j, "You return 2j; expected one number"),
        (list(range(1000)), "You return [0, 1, 2, 3, 4, 5, ...]; expected"),
        (float("nan"), "You return nan, which is not a number; expected one number, of bytes."),
        (np.float32("inf"), "You return inf; expected one number, of bytes. Something was divided by 0"),
        (0, "You return 0; expected one number, of bytes, and a size, a rate or a time is above 0."),
        (-2.5, "You return -2.5; expected one number, of bytes, and a size"),
    ]:
        with pytest.raises(Wrong) as wrong:
            number(odd, "one number, of bytes", positive=True)
        assert message in str(wrong.value)


def test_a_whole_number_and_several_numbers():
    assert number(np.int32(3), whole=True) == 3 and number(-3, whole=True) == -3
    with pytest.raises(Wrong, match=r"^Message 2: you say 4.0; expected the number of a row.$"):
        number(4.0, "the number of a row", said="Message 2: you say", whole=True)
    for pair in ((1, 2.5), [1, 2.5], np.array([1, 2.5]), jnp.array([1, 2.5]), [jnp.float32(1), 2.5]):
        assert numbers(pair, (2,), "two numbers").tolist() == [1, 2.5]
    assert numbers([(1, 2), np.array([3, 4])], (2, 2), "rows").tolist() == [[1, 2], [3, 4]]
    for odd in (3, "12", [1], [1, 2, 3], [1, None], [1, "2"], [[1], [2]], {1, 2}, np.zeros((2, 2)), None):
        with pytest.raises(Wrong, match=r"expected two numbers\.$"):
            numbers(odd, (2,), "two numbers")


def test_a_bug_in_a_judge_is_not_the_readers_fault():
    def judge(answer):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        exercises.exercise(judge, "hint")(lambda: None).verdict(lambda: 1)


def test_readings_of_a_choice(capsys):
    slope = Choice({"0": "both ways are computed", "an error": "nothing raises"})
    for guess, said in [
        (None, ""),
        ("nan", "Your guess, nan: right.\n"),
        (float("nan"), "Your guess, nan: right.\n"),
        (0.0, "Your guess, 0, is not so: it is nan: both ways are computed.\n"),
        (" An  Error", "Your guess, an error, is not so: it is nan: nothing raises.\n"),
        ("zero", "Your guess is 'zero'; expected '0', 'an error' or 'nan'.\n"),
    ]:
        slope.compare(guess, jnp.float32("nan"))
        assert capsys.readouterr().out == said
    shape = Choice({"(3,)": "one for each example"}, free=True)
    for guess, said in [
        ((5, 3), ": right."),
        ("(5,3)", ": right."),
        ((3,), "(5, 3): one for each example."),
        (4, "4, i"),
    ]:
        [line] = shape.readings(guess, (5, 3))
        assert said in line
    both = Choice({"yes": "", "no": ""}, own={"b": {"no": "b is"}})
    assert both.readings((False, False), {"a": "no", "b": True}) == [
        "a: your guess, no: right.",
        "b: your guess, no, is not so: it is yes: b is.",
    ]
    assert both.readings("no", {"a": 1, "b": 2}) == ["Your guess is 'no'; expected 2 answers: a, b."]
