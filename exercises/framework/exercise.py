"""An exercise: its solution, its cases, a few slips. One judge for all: it runs the answer as it runs the solution."""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exercises import progress
from exercises.framework.compare import Difference, Raised, differs
from exercises.framework.console import tell
from exercises.framework.formatting import shown, written
from exercises.framework.limits import GIBIBYTES, TooLong, limited
from exercises.framework.near_misses import in_common

Function = Callable[..., Any]


def call(f: Function, *args: Any) -> Any:
    return f(*args)


@dataclass(frozen=True)
class Verdict:
    """What a reader is told. `named`: in the words of a slip, or of what all cases have in common."""

    outcome: str  # "not attempted", "wrong", "right"
    message: str
    named: bool = False


@dataclass(frozen=True, eq=False)
class Exercise:
    """Made by `exercise`, whose docstring has the fields. `function` is the solution: `solution()` prints it, the tests
    run it, and an answer is compared with it."""

    function: Function
    text: str
    cases: Any = ((),)
    slips: dict[Function | str | None, str] = field(default_factory=dict)
    run: Function = call
    secret: bool | None = None
    within: float = 1e-4
    seconds: float = 60
    _known: dict[Any, Any] = field(default_factory=dict)  # what the solution and the slips give, by case

    def check(self, answer: Function) -> None:
        """Print one of the three outcomes for the reader's function; where it is right, what is next."""
        verdict = self.verdict(answer)
        tell(verdict.outcome, verdict.message)
        tried = verdict.outcome != "not attempted"
        if tried and (said := progress.exercise(self.function, verdict.outcome == "right")):
            print(said)

    def hint(self) -> None:
        print(f"Hint. {self.text}")

    def solution(self) -> None:
        print(source(self.function))

    def verdict(self, answer: Function) -> Verdict:
        name = self.function.__name__
        if not callable(answer):
            return _wrong(f"Hand over the function itself: check({name}), not what it returns ({shown(answer)}).")
        if _is_stub(answer):
            how = "Fill in the function above and run its cell and this one."
            return Verdict("not attempted", f"{name}: not attempted yet. {how}")
        try:
            with limited(self.seconds):
                return self._judged(answer)
        except TooLong:
            return _wrong(f"Your function was stopped after {self.seconds:g} s. Is there a loop in it that never ends?")

    def _judged(self, answer: Function) -> Verdict:
        calls = self._calls()
        got = [self._seen(answer, args) for _, args in calls]
        want = [self._known_of("solution", self.function, i, args) for i, (_, args) in enumerate(calls)]
        for seen, _ in want:  # then any answer would be as right as the solution
            if isinstance(seen, Raised):
                self._known.clear()  # it may run the next time
                why = f"the check could not run: {seen.error}. Run the setup cell, then this one."
                return Verdict("not attempted", f"{self.function.__name__}: {why}")
        found = [differs(a[0], b[0], self.within) for a, b in zip(got, want, strict=True)]
        if not any(found):
            return Verdict("right", f"{self.function.__name__}: right.")
        i = next(i for i, one in enumerate(found) if one)
        first, told = found[i], self._told(calls[i][0], found[i], got[i], want[i])
        words = next((words for slip, words in self.slips.items() if self._is(slip, told, got, calls, i, first)), "")
        if not words and not first.bound:
            names = list(inspect.signature(self.function).parameters) if self.run is call else []
            words = in_common([a[0] for a in got], [b[0] for b in want], names, [args for _, args in calls])
            told = told.removesuffix(f" {first.why}") if words else told  # which says it of one case
        right = found.count(None)
        score = f"Right in {right} of {len(got)} cases." if right and not first.bound else ""
        asked = "" if words else self.slips.get(None, "")
        return _wrong(" ".join(filter(None, (told, _sentence(words), score, _sentence(asked)))), bool(words))

    def _calls(self) -> list[tuple[str, tuple]]:
        """Of each case the call in words, and its arguments."""
        cases = self.cases() if callable(self.cases) else self.cases
        name = self.function.__name__
        if isinstance(cases, dict):
            return [(f"{name}({label})", args) for label, args in cases.items()]
        return [(f"{name}({', '.join(map(written, args))})", args) for args in cases]

    def _seen(self, function: Function, args: tuple) -> tuple[Any, Any]:
        """What the run observes, or Raised; and what the function returned itself, when it was first called."""
        returned: list[Any] = []

        def recorded(*given: Any, **named: Any) -> Any:
            value = function(*own(given), **own(named))
            returned.append(list(value) if isinstance(value, (Iterator, type({}.values()))) else value)
            return returned[-1]

        recorded.__name__ = self.function.__name__
        try:
            seen = self.run(recorded, *args)
        except (Exception, SystemExit) as error:
            seen = Raised(raised(error, function), shown(returned[0]) if returned else "")
        return seen, returned[0] if returned else None

    def _known_of(self, name: Any, function: Function, i: int, args: tuple) -> tuple[Any, Any]:
        if (name, i) not in self._known:
            self._known[name, i] = self._seen(function, args)
        return self._known[name, i]

    def _is(self, slip: Any, told: str, got: list, calls: list, i: int, first: Difference) -> bool:
        """Does the slip give what the answer gives, in each case? Case i, which is wrong, is looked at first."""
        if is_text(slip):
            return slip is not None and slip in told
        function, cost = changed(self.function, slip) if isinstance(slip, str) else slip, bool(first.bound)
        for k in [i, *(k for k in range(len(got)) if k != i)]:
            its = self._known_of(slip, function, k, calls[k][1])[0]
            if differs(got[k][0], its, self.within, bounds=cost) or (cost and differs(its, got[k][0], self.within)):
                return False
        return True

    def _told(self, call: str, one: Difference, got: tuple, want: tuple) -> str:
        """The smallest counterexample: the call, what came back, what was expected."""
        seen, returned = got
        given = inspect.signature(self.function).parameters
        secret = self.secret if self.secret is not None else not given
        if isinstance(seen, Raised):
            if not seen.after:
                return f"{call} raises {seen.error}."
            kind = shown(want[1]) if given else f"a {type(want[1]).__name__}"  # without arguments it is the solution
            expected = "" if _like(returned, want[1]) else f"; expected {kind}"
            ended = " Does it end with `return`?" * (seen.after == "None")
            return f"{call} raises {seen.error}. It had returned {seen.after}{expected}.{ended}"
        if one.bound:
            enough = f"at least {one.want} are needed" if one.bound.least else f"{one.want} are enough"
            return f"The result of {call} is right. But {one.label}: {one.got}; {enough}."
        expected = "." if secret else f"; expected {one.want}."
        told = f"{call}{one.at} is {one.got}{expected}"
        if one.label:
            told = f"{call} is {shown(returned)}. With it, {one.label}{one.at}: {one.got}{expected}"
        return f"{told}{' That is not what is asked.' * secret} {one.why}".rstrip()


def exercise(text: str, **options: Any) -> Callable[[Function], Exercise]:
    """Make an exercise of the solution that stands below. `text` is the hint; the options, in the order of their use:

    cases   a list of tuples of arguments, the smallest first; with arrays in them, a function that makes
            {label: arguments}
    slips   {a wrong answer: what its author is to be told}; a wrong answer is a function, or "a -> b": the solution,
            with each `a` in it replaced by `b` (several: "a -> b ;; c -> d"). They are the wrong answers of the tests.
            Any other text: told where the counterexample has it ("IndivisibleError"), whatever the cause, so it must
            hold for every cause. None: a question, where nothing else is told.
    run     run(f, *arguments) -> what is compared, of answer, solution and slips alike; see runners.py
    secret  the value that is expected is not told: so where a function without arguments is its own answer
    within  how far off a number may be, relatively; `seconds`: for the whole check
    """
    return lambda function: Exercise(function, text, **options)


def is_text(slip: Any) -> bool:
    """Is a slip no wrong answer, but words for a counterexample, or the question?"""
    return slip is None or (isinstance(slip, str) and " -> " not in slip)


def source(function: Function) -> str:
    text = textwrap.dedent(inspect.getsource(function))
    return text[re.search(r"^def ", text, re.M).start() :].rstrip()


def changed(function: Function, edit: str) -> Function:
    """The function with its source edited: "a -> b" puts b for each a. Raises ValueError where there is no a."""
    text, names = source(function), dict(function.__globals__)
    for old, new in (one.split(" -> ") for one in edit.split(" ;; ")):
        if old not in text:
            raise ValueError(f"{function.__name__} has no {old!r} to edit")
        text = text.replace(old, new)
    exec(compile(text, f"<{function.__name__}, {edit}>", "exec"), names)
    return names[function.__name__]


def own(value: Any) -> Any:
    """A copy of what an answer could change, so that no later case sees the change."""
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(own, value))
    return {key: own(item) for key, item in value.items()} if type(value) is dict else value


def raised(error: BaseException, answer: Function) -> str:
    """An error in one line, and where if it has no words of its own."""
    name, lines = type(error).__name__, [line.strip() for line in str(error).splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]).rstrip(".")
    if isinstance(error, MemoryError) or "Out of memory allocating" in line:
        return f"{name}: it asks for more than the {GIBIBYTES} GiB that the check allows. Is a size wrong?"
    if isinstance(error, RecursionError):
        return f"{name}: it calls itself without an end"
    file = getattr(getattr(inspect.unwrap(answer), "__code__", None), "co_filename", None)
    own_lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if line or not own_lines:
        return f"{name}: {line[:300]}" if line else name
    at = linecache.getline(file, own_lines[-1].lineno).strip() or f"line {own_lines[-1].lineno}"
    return f"{name}, without a word, at `{at}`"


def _like(got: Any, want: Any) -> bool:
    return type(got) is type(want) and getattr(got, "shape", None) == getattr(want, "shape", None)


def _wrong(why: str, named: bool = False) -> Verdict:
    return Verdict("wrong", textwrap.fill(f"Not yet. {why}", 110, break_on_hyphens=False), named)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}{'' if not words or words[-1] in '.?' else '.'}"


def _is_stub(answer: Function) -> bool:
    """Does the function hold nothing but its docstring and `...`, as shipped?"""

    def shipped():
        """A docstring."""
        ...

    code = getattr(answer, "__code__", None)
    if code is None or code.co_code != shipped.__code__.co_code or code.co_names:
        return False
    return all(constant in (None, ..., answer.__doc__) for constant in code.co_consts)
