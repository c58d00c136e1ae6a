"""Wrong answers that people really give: each must be rejected with a message that names the misconception."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.kit import limits
from tests.checks import exercises_of, predictions_of
from tests.mutants import mutants
from tools import notebooks
from utils import exercises
from utils.exercises import (
    Choice,
    Prediction,
    Wrong,
    explained,
    flag,
    number,
    numbers,
    one_of,
    same,
    several,
)
from utils.mesh import make_mesh

pytestmark = pytest.mark.usefixtures("compiled_once")

# Lessons whose judges do not yet refuse every change of a solution, and have no right answers in unusual forms.
LATER: set[str] = set()
MOST = 24  # changes of one solution: they are evenly chosen where there are more

WRONG, RIGHT, SAME, GUESSES, ALL, DEMANDED, PREDICTIONS = {}, {}, {}, {}, [], [], {}
for lesson in map(notebooks.number, notebooks.lessons()):
    if notebooks.has_moved(lesson):  # tests/exercises
        continue
    tables = importlib.import_module(f"tests.wrong_answers.ex{lesson}")
    WRONG |= tables.WRONG
    RIGHT |= getattr(tables, "RIGHT", {})
    SAME |= getattr(tables, "SAME", {})
    GUESSES |= getattr(tables, "GUESSES", {})
    module = importlib.import_module(f"utils.exercises.ex{lesson}")
    ALL += exercises_of(module).values()
    DEMANDED += [] if lesson in LATER else exercises_of(module).values()
    PREDICTIONS |= {f"{lesson}-{name}": prediction for name, prediction in predictions_of(module).items()}


EACH = pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
EACH_DEMANDED = pytest.mark.parametrize("exercise", DEMANDED, ids=lambda exercise: exercise.function.__name__)


@EACH
def test_wrong_answers_are_told_why(exercise):
    assert len(WRONG[exercise]) >= 2
    for answer, message in WRONG[exercise]:
        verdict = exercise.verdict(answer)
        assert verdict.outcome == "wrong"
        assert verdict.bug is None
        assert message in " ".join(verdict.message.split())
        assert verdict.message.startswith("Not yet. ")


@pytest.mark.elsewhere
@pytest.mark.parametrize("exercise", RIGHT, ids=lambda exercise: exercise.function.__name__)
def test_right_answers_in_unusual_forms_are_right(exercise):
    for number_, answer in enumerate(RIGHT[exercise]):
        assert exercise.verdict(answer).message == f"{exercise.function.__name__}: right.", number_


@EACH_DEMANDED
def test_the_table_of_right_answers_has_enough_of_them(exercise):
    assert len(RIGHT[exercise]) >= 4


@pytest.mark.elsewhere
@EACH_DEMANDED
@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # a change may hand JAX a generator
def test_each_change_of_a_solution_is_refused(exercise):
    """In one place, by `tests.mutants`; but for the changes that compute the same, which the table lists with why."""
    same_, quick = dict(SAME.get(exercise, [])), dataclasses.replace(exercise, seconds=5)
    found = mutants(exercise, MOST)
    for mutant in found:
        answer = mutant.function(exercise.function)
        verdict = quick.verdict(answer)
        assert verdict.bug is None, f"{mutant.change}\n\nThe judge itself failed: {verdict.message}"
        if verdict.outcome == "wrong":
            assert mutant.change not in same_, f"is refused, and listed as computing the same: {mutant.change}"
        elif not _is_one_number(exercise, answer):
            assert mutant.change in same_, (
                f"is accepted as right, and not listed as computing the same: {mutant.change}"
            )
    if len(found) < MOST:
        assert set(same_) <= {mutant.change for mutant in found}, "lists a change that is not made (any more)"


def _is_one_number(exercise, answer):
    """Without arguments, that is all that a function computes."""
    if inspect.signature(exercise.function).parameters:
        return False
    return repr(answer()) == repr(exercise.function())


@EACH
def test_a_function_that_raises_is_wrong_with_the_last_line(exercise):
    def broken(*args):
        return [][1]

    assert exercise.verdict(broken).message == "Not yet. Your function raised IndexError: list index out of range"


@EACH
def test_the_printed_solution_is_the_function_that_runs(exercise, capsys):
    exercise.solution()
    printed = capsys.readouterr().out
    assert printed.startswith(f"def {exercise.function.__name__}(")
    assert printed.rstrip() in inspect.getsource(exercise.function)
    exercise.hint()
    assert capsys.readouterr().out.startswith("Hint. ")


ODD = [None, True, 3, -1.5, float("nan"), "x", [], [1, 2], (None,), {}, object(), P("z")]
ODD += [np.array([1.0, None]), np.zeros(2)]


@EACH
def test_whatever_comes_back_gets_an_answer(exercise):
    for odd in [*ODD, (i for i in range(3)), filter(None, [])]:
        verdict = exercise.verdict(lambda *args, odd=odd: odd)
        assert verdict.outcome == "wrong", odd
        assert verdict.bug is None, odd
        assert "Not yet. " in verdict.message


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


def test_readings_of_what_counts_or_names_things():
    """Device 5 for device 6 is not 1.2 times too small; and a question needs no full stop."""
    names = {"device": {5: "row by row", None: "who stands there?"}, "rows": {3: "no half"}}
    named = Prediction("", {}, names, things=True)
    for guess, said in [
        ((5, 3), ["device: your guess, 5, should be 6: row by row.", "rows: your guess, 3, should be 2: no half."]),
        ((12, 4), ["device: your guess, 12, should be 6: who stands there?", "rows: your guess, 4, should be 2."]),
        ((0, 1), ["device: your guess, 0, should be 6: who stands there?", "rows: your guess, 1, should be 2."]),
        ((np.float32(6), 2.0), ["device: your guess, 6: right.", "rows: your guess, 2: right."]),
    ]:
        assert named.readings(guess, {"device": 6, "rows": 2}) == said
    mean = Prediction("", {1.2: "twelve rows", None: "how many rows?"})
    assert mean.readings(12, 10) == ["Your guess, 12, is 1.2 times too large: twelve rows."]
    assert mean.readings(13, 10) == ["Your guess, 13, is 1.3 times too large: how many rows?"]
    assert Choice({"yes": "does it?", "no": ""}).readings("yes", "no") == [
        "Your guess, yes, is not so: it is no: does it?"
    ]


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
    for three in (3, 3.0, np.int32(3), np.float32(3), jnp.float32(3), jnp.array(3)):
        assert number(three, whole=True) == 3 and type(number(three, whole=True)) is int
    assert number(-3, whole=True) == -3
    with pytest.raises(Wrong, match=r"^Message 2: you say 4.5; expected the number of a row.$"):
        number(4.5, "the number of a row", said="Message 2: you say", whole=True)
    for pair in ((1, 2.5), [1, 2.5], np.array([1, 2.5]), jnp.array([1, 2.5]), [jnp.float32(1), 2.5]):
        assert numbers(pair, (2,), "two numbers").tolist() == [1, 2.5]
    assert numbers([(1, 2), np.array([3, 4])], (2, 2), "rows").tolist() == [[1, 2], [3, 4]]
    assert numbers((1.0, 2), (2,), "two whole numbers", whole=True).dtype.kind == "i"
    for odd in (3, "12", [1], [1, 2, 3], [1, None], [1, "2"], [[1], [2]], {1, 2}, np.zeros((2, 2)), None):
        with pytest.raises(Wrong, match=r"expected two numbers\.$"):
            numbers(odd, (2,), "two numbers")
    with pytest.raises(Wrong, match="expected two whole numbers"):
        numbers((1, 2.5), (2,), "two whole numbers", whole=True)


def test_a_truth_value_a_word_and_several_values():
    for true in (True, np.True_, np.array(True), jnp.array(True)):
        assert flag(true) is True
    for odd in (None, 1, "True", np.zeros(2, bool), [True], jax.random.key(0)):
        with pytest.raises(Wrong, match="expected True or False"):
            flag(odd)
    kinds = ("all-reduce", "all-gather")
    for word in ("all-reduce", "all_reduce", "All Reduce", "allreduce", np.str_("all-reduce"), np.array("all-reduce")):
        assert one_of(word, kinds) == "all-reduce"
    for odd in (None, 3, "reduce", ["all-reduce"]):
        with pytest.raises(Wrong, match=r"expected one of 'all-reduce', 'all-gather'\."):
            one_of(odd, kinds)
    for values in ([0, 1], (0, 1), range(2), np.arange(2), jnp.arange(2), {"a": 0, "b": 1}.values()):
        assert several(values, 2, "two values") == [0, 1]
    for odd in (None, 3, "ab", {0, 1}, [0], np.zeros(()), (i for i in range(2))):
        with pytest.raises(Wrong, match="expected two values"):
            several(odd, 2, "two values")


def judged(judge, **options):
    return exercises.exercise(judge, "hint", **options)(lambda: None)


def test_a_slip_is_named_where_it_gives_all_that_is_said():
    slips = [([1, 2], "one"), ([1, 3], "two"), ([1.0, 2.00001], "three"), (7, "four")]
    assert explained([1, 2], slips) == "one; or: three"
    assert explained([1, 2], slips, most=1) == ""
    assert explained([1, 2], slips, within=1e-9) == "one"
    assert explained((1, 3), slips) == "two"
    assert explained(7, slips) == "four"
    assert explained([7, 7], slips) == explained(np.ones(3), slips) == ""


def test_same_looks_at_each_copy(devices):
    """A value may differ from copy to copy where the compiler is told not to look (check_vma=False)."""
    mesh = make_mesh((8,), ("i",))
    shape = NamedSharding(mesh, P())
    copies = [jax.device_put(np.arange(3.0) + (d.id == 5), d) for d in devices]
    got = jax.make_array_from_single_device_arrays((3,), shape, copies)
    with pytest.raises(Wrong, match=r"in the copy on device 5, differs in 3 of 3 values; at \[0\] it is 1.0"):
        same(got, jax.device_put(np.arange(3.0), shape))


def test_a_bug_in_a_judge_is_not_the_readers_fault():
    def judge(answer):
        answer()
        raise KeyError("a bug")

    verdict = judged(judge).verdict(lambda: 1)
    assert isinstance(verdict.bug, KeyError)
    assert verdict.outcome == "wrong"
    assert "The check itself failed on what your function returns, with KeyError: 'a bug'" in verdict.message


def test_the_error_of_a_function_that_the_answer_returns_is_the_readers():
    def answer():
        return lambda x: x[5]

    verdict = judged(_elsewhere(_calls_what_comes_back)).verdict(answer)
    assert verdict.bug is None
    assert verdict.message == "Not yet. Your function raised IndexError: list index out of range"


def _calls_what_comes_back(answer):
    answer()([1])


def _elsewhere(function):
    """The same function, as if it stood in a file of its own, as judges do."""
    names = {}
    exec(compile(inspect.getsource(function), "a judge", "exec"), globals(), names)
    return names[function.__name__]


def test_the_error_of_a_program_made_of_the_answer_is_the_readers(devices):
    """JAX finds it only when it lowers the program, far from the reader's lines."""

    def judge(answer):
        exercises.on_eight(answer, jax.P("i"), jax.P("i"))(jnp.arange(8.0))

    verdict = judged(judge).verdict(lambda x: jax.lax.ppermute(x, "i", [(i, 0) for i in range(8)]))
    assert verdict.bug is None
    assert verdict.message.startswith("Not yet. Your function raised ")


def test_an_error_that_breaks_off_with_a_colon_is_told_with_its_next_line():
    def of_three_lines(x):
        raise ValueError("The types differ:\n\n  one has 3, the other 4\n  and more")

    message = judged(lambda answer: answer(2)).verdict(of_three_lines).message
    assert message == "Not yet. Your function raised ValueError: The types differ: one has 3, the other 4"


def test_an_error_without_words_is_told_with_its_line():
    def without(x):
        raise AssertionError

    exercise = judged(lambda answer: answer(2))
    assert exercise.verdict(without).message.endswith(
        "raised AssertionError, without a word, at `raise AssertionError`."
    )

    def hands_over(x):
        return strict["check"](x)

    strict = {}
    exec(compile("def check(x):\n    assert x == 3\n", "a library", "exec"), strict)
    told = " ".join(exercise.verdict(hands_over).message.split())
    assert "AssertionError, without a word, inside `check`, which is called on the way from `return strict" in told
    assert exercise.verdict(lambda x: exit()).message.startswith("Not yet. Your function raised SystemExit")
    forever = exercise.verdict(lambda x, again=lambda again: again(again): again(again)).message
    assert "RecursionError" in forever and "calls itself without an end" in " ".join(forever.split())


def test_an_endless_loop_is_stopped():
    def endless(*args):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    began = time.monotonic()
    verdict = judged(lambda answer: answer(), seconds=0.3).verdict(endless)
    assert verdict.outcome == "wrong"
    assert verdict.message == "Not yet. Your function was stopped after 0.3 s. Is there a loop in it that never ends?"
    assert time.monotonic() - began < 5


def test_where_nothing_can_stop_a_loop_the_reader_is_told(monkeypatch, capsys):
    """In a thread there is no alarm; in a compiled program it would come too late."""
    monkeypatch.setattr(limits, "PATIENCE", 0.0)
    verdicts = []
    sleeper = judged(lambda answer: answer(), seconds=0.1)
    thread = threading.Thread(target=lambda: verdicts.append(sleeper.verdict(lambda: time.sleep(0.5))))
    thread.start()
    thread.join()
    assert verdicts[0].outcome == "right"
    assert "The check still waits for your function" in capsys.readouterr().out
    assert judged(lambda answer: answer(), seconds=0.3).verdict(lambda: 1).outcome == "right"
    time.sleep(0.5)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "huge",
    [
        lambda: np.ones((200_000, 200_000)),
        lambda: jnp.ones((200_000, 200_000)),
        lambda: jax.jit(lambda: jnp.ones((200_000, 200_000)) @ jnp.ones((200_000, 3)))(),
        lambda: [0] * 10**12,
    ],
)
def test_a_huge_array_is_refused_and_the_process_lives_on(huge):
    for judge in (lambda answer: jax.block_until_ready(answer()), lambda answer: np.asarray(answer())):
        verdict = judged(judge).verdict(huge)
        assert verdict.bug is None
        assert "asks for more memory than the 4 GiB that the check allows" in " ".join(verdict.message.split())
    assert judged(lambda answer: answer()).verdict(lambda: jnp.ones(8).sum()).outcome == "right"


def test_what_an_answer_prints_or_changes_is_its_own_business(capsys):
    given = np.arange(3.0)

    def judge(answer):
        for _ in range(2):
            if answer(given, [given], {"a": given}) != 3:
                raise Wrong("not 3")

    def answer(x, xs, named):
        print("so far")
        total = x.sum()
        x[:] = xs[0][:] = named["a"][:] = 7
        xs.clear()
        return total

    assert judged(judge).verdict(answer).outcome == "right"
    assert given.tolist() == [0, 1, 2]
    assert judged(judge, copies=False).verdict(answer).outcome == "wrong"
    assert capsys.readouterr().out == "so far\n" * 4


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
