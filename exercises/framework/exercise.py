"""Check a reader's answer to an exercise against the solution.

All exercises share one checker, which runs the answer and the solution on the same cases and compares the results.
"""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exercises import progress
from exercises.framework import limits
from exercises.framework.compare import Difference, first_difference
from exercises.framework.error_patterns import describe_common_error
from exercises.framework.format_values import Raised, format_argument, format_value
from exercises.framework.limits import TimeLimitExceeded, limit_time_and_memory
from exercises.verdicts import Outcome, print_verdict

Function = Callable[..., Any]
Cases = Sequence[tuple] | dict[str, tuple]  # tuples of arguments, or {label: arguments}


def call_function(f: Function, *args: Any) -> Any:
    """Call f(*args). Exercises without a `run` option run answers with this function."""
    return f(*args)


@dataclass(frozen=True)
class Edit:
    """A replacement for a text that occurs `count` times in a solution's source."""

    old: str
    new: str
    count: int = 1


@dataclass(frozen=True, eq=False)
class Mistake:
    """A common wrong answer, and the explanation to print for it. The tests submit every mistake as an answer."""

    answer: Function | Edit | Sequence[Edit]  # edits are applied to the solution, one after the other
    explanation: str

    def function(self, solution: Function) -> Function:
        """Return the wrong answer as a function."""
        if callable(self.answer):
            return self.answer
        return apply_edits(solution, *([self.answer] if isinstance(self.answer, Edit) else self.answer))


@dataclass(frozen=True, eq=False)
class MessageHint:
    """An explanation to print for any failure whose description contains `text`, such as "IndivisibleError".

    The explanation must be true for every possible cause of such a failure.
    """

    text: str
    explanation: str


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check, and the message for the reader."""

    outcome: Outcome
    message: str
    is_explained: bool = False  # whether the message names a common mistake, or a pattern shared by all cases


@dataclass(frozen=True, eq=False)
class Exercise:
    """An exercise with its solution, cases and common mistakes. Create one with `exercise`, which documents the fields.

    `function` is the solution. The checker compares answers with it, `solution()` prints it, and the tests run it.
    """

    function: Function
    hint_text: str
    cases: Cases | Callable[[], Cases]
    mistakes: Sequence[Mistake | MessageHint]
    question: str
    run: Function
    hide_expected: bool | None
    rel_tol: float
    timeout: float
    _cache: dict[Any, Any] = field(default_factory=dict)  # results of the solution and the mistakes, by case

    def check(self, answer: Function) -> None:
        """Print the verdict on the reader's function and, if it's right, the score and the next exercise."""
        verdict = self.verdict(answer)
        print_verdict(verdict.outcome, verdict.message)
        was_attempted = verdict.outcome != "not attempted"
        if was_attempted and (next_step := progress.record_exercise(self.function, verdict.outcome == "right")):
            print(next_step)

    def hint(self) -> None:
        """Print the hint."""
        print(f"Hint. {self.hint_text}")

    def solution(self) -> None:
        """Print the source of the solution."""
        print(source_of(self.function))

    def verdict(self, answer: Function) -> Verdict:
        """Check the reader's function with limits on time and memory, and return the verdict."""
        name = self.function.__name__
        if not callable(answer):
            value = format_value(answer)
            return _wrong_verdict(f"Pass the function itself: check({name}), not the value that it returns ({value}).")
        if _is_stub(answer):
            instruction = "Fill in the function above and run its cell and this one."
            return Verdict("not attempted", f"{name}: not attempted yet. {instruction}")
        try:
            with limit_time_and_memory(self.timeout):
                return self._evaluate(answer)
        except TimeLimitExceeded:
            return _wrong_verdict(
                f"Your function was stopped after {self.timeout:g} s. Does it contain an endless loop?"
            )

    def _evaluate(self, answer: Function) -> Verdict:
        """Run the answer and the solution on every case, and explain the first case in which their results differ."""
        cases = self._labelled_cases()
        actual = [self._observe(answer, args) for _, args in cases]
        expected = [self._observe_cached("solution", self.function, i, args) for i, (_, args) in enumerate(cases)]
        for observed, _ in expected:  # if the solution itself raises an error, no answer can be judged
            if isinstance(observed, Raised):
                self._cache.clear()  # the solution may succeed next time
                reason = f"the check could not run: {observed.error}. Run the setup cell, then this one."
                return Verdict("not attempted", f"{self.function.__name__}: {reason}")
        differences = [first_difference(a[0], b[0], self.rel_tol) for a, b in zip(actual, expected, strict=True)]
        failures = [(i, difference) for i, difference in enumerate(differences) if difference]
        if not failures:
            return Verdict("right", f"{self.function.__name__}: right.")
        i, first = failures[0]
        failure = self._describe_failure(cases[i][0], first, actual[i], expected[i])
        matching = (m for m in self.mistakes if self._matches(m, failure, actual, cases, i, first))
        explanation = next((mistake.explanation for mistake in matching), "")
        if not explanation and not first.bound:
            names = list(inspect.signature(self.function).parameters) if self.run is call_function else []
            arguments = [args for _, args in cases]
            explanation = describe_common_error([a[0] for a in actual], [b[0] for b in expected], names, arguments)
            if explanation:  # the explanation covers all cases, so drop the reason that applies only to this one
                failure = self._describe_failure(cases[i][0], first._replace(reason=""), actual[i], expected[i])
        passed = len(cases) - len(failures)
        score = f"Right in {passed} of {len(cases)} cases." if passed and not first.bound else ""
        question = "" if explanation else self.question
        sentences = failure, _as_sentence(explanation), score, _as_sentence(question)
        return _wrong_verdict(" ".join(filter(None, sentences)), bool(explanation))

    def _labelled_cases(self) -> list[tuple[str, tuple]]:
        """Return a pair for each case: the call as text, and the arguments."""
        cases = self.cases() if callable(self.cases) else self.cases
        name = self.function.__name__
        if isinstance(cases, dict):
            return [(f"{name}({label})", args) for label, args in cases.items()]
        return [(f"{name}({', '.join(map(format_argument, args))})", args) for args in cases]

    def _observe(self, function: Function, args: tuple) -> tuple[Any, Any]:
        """Run a function on one case.

        Return the result of `run` (or `Raised` if it failed), and the value that the function's first call returned.
        """
        returned: list[Any] = []

        def recorded(*args: Any, **kwargs: Any) -> Any:
            value = function(*copy_mutable(args), **copy_mutable(kwargs))
            returned.append(list(value) if isinstance(value, (Iterator, type({}.values()))) else value)
            return returned[-1]

        recorded.__name__ = self.function.__name__
        try:
            observed = self.run(recorded, *args)
        except (Exception, SystemExit) as error:
            observed = Raised(describe_error(error, function), format_value(returned[0]) if returned else "")
        return observed, returned[0] if returned else None

    def _observe_cached(self, name: Any, function: Function, i: int, args: tuple) -> tuple[Any, Any]:
        """Return `_observe(function, args)` for case i. The cache uses `name` and i, so the function runs only once."""
        if (name, i) not in self._cache:
            self._cache[name, i] = self._observe(function, args)
        return self._cache[name, i]

    def _matches(
        self, mistake: Mistake | MessageHint, failure: str, actual: list, cases: list, i: int, first: Difference
    ) -> bool:
        """Return whether a mistake explains a wrong answer.

        A `Mistake` explains an answer that has the same results in every case. Case i, the first one that failed, is
        compared first; `first` is the difference that was found there. A `MessageHint` explains an answer if the
        hint's text occurs in `failure`, the description of case i.
        """
        if isinstance(mistake, MessageHint):
            return mistake.text in failure
        function = mistake.function(self.function)
        compare_costs = bool(first.bound)
        for k in [i, *(k for k in range(len(actual)) if k != i)]:
            answer_result = actual[k][0]
            mistake_result = self._observe_cached(mistake, function, k, cases[k][1])[0]
            if first_difference(answer_result, mistake_result, self.rel_tol, check_costs=compare_costs):
                return False
            if compare_costs and first_difference(mistake_result, answer_result, self.rel_tol):
                return False
        return True

    def _describe_failure(self, call: str, difference: Difference, actual: tuple, expected: tuple) -> str:
        """Describe a failed case: the call, its result and the expected result.

        `actual` and `expected` are pairs as returned by `_observe`.
        """
        observed, returned = actual
        parameters = inspect.signature(self.function).parameters
        hide_expected = self.hide_expected if self.hide_expected is not None else not parameters
        if isinstance(observed, Raised):
            if not observed.after:
                return f"{call} raises {observed.error}."
            # the expected value would give away the answer if the function has no parameters
            kind = format_value(expected[1]) if parameters else f"a {type(expected[1]).__name__}"
            expectation = "" if _same_type_and_shape(returned, expected[1]) else f"; expected {kind}"
            question = " Does it end with `return`?" * (observed.after == "None")
            return f"{call} raises {observed.error}. It had returned {observed.after}{expectation}.{question}"
        if difference.bound:
            limit = difference.expected
            enough = f"at least {limit} are needed" if difference.bound.is_minimum else f"{limit} are enough"
            return f"The result of {call} is right. But {difference.label}: {difference.actual}; {enough}."
        expectation = "." if hide_expected else f"; expected {difference.expected}."
        failure = f"{call}{difference.path} is {difference.actual}{expectation}"
        if difference.label:
            location = f"{difference.label}{difference.path}"
            failure = f"{call} is {format_value(returned)}. With it, {location}: {difference.actual}{expectation}"
        hint = " That isn't the answer." if hide_expected else ""
        return f"{failure}{hint} {difference.reason}".rstrip()


def exercise(
    hint_text: str,
    *,
    cases: Cases | Callable[[], Cases] = ((),),
    mistakes: Sequence[Mistake | MessageHint] = (),
    question: str = "",
    run: Function = call_function,
    hide_expected: bool | None = None,
    rel_tol: float = 1e-4,
    timeout: float = 60,
) -> Callable[[Function], Exercise]:
    """Return a decorator that turns a solution into an exercise.

    Args:
        hint_text: the text that `hint()` prints.
        cases: a list of argument tuples, with the smallest case first. If they contain arrays, pass a function that
            returns {label: argument tuple} instead.
        mistakes: common mistakes. The explanation of the first one that matches is printed.
        question: the question to ask the reader if no explanation fits the failure.
        run: a function that takes the answer and a case's arguments, and returns the value to compare. It also runs
            the solution and the mistakes. See cost_runners.py.
        hide_expected: whether to hide the expected value from the reader. By default, it's hidden if the function has
            no parameters, because it would then give the answer away.
        rel_tol: the relative tolerance for numbers.
        timeout: the time limit for the entire check, in seconds.
    """
    return lambda function: Exercise(
        function, hint_text, cases, mistakes, question, run, hide_expected, rel_tol, timeout
    )


def source_of(function: Function) -> str:
    """Return the source of a function without its decorators."""
    text = textwrap.dedent(inspect.getsource(function))
    return re.sub(r"\A.*?(?=^def )", "", text, count=1, flags=re.M | re.S).rstrip()


def apply_edits(function: Function, *edits: Edit) -> Function:
    """Apply edits to a function's source, and return the edited function.

    Raises ValueError if a text to replace doesn't occur exactly `count` times.
    """
    text, namespace = source_of(function), dict(function.__globals__)
    for edit in edits:
        if text.count(edit.old) != edit.count:
            raise ValueError(
                f"{function.__name__} contains {edit.old!r} {text.count(edit.old)} times, not {edit.count}"
            )
        text = text.replace(edit.old, edit.new)
    exec(compile(text, f"<{function.__name__}, edited>", "exec"), namespace)
    return namespace[function.__name__]


def copy_mutable(value: Any) -> Any:
    """Copy the containers and NumPy arrays in an argument, so that changes to them don't affect later cases."""
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(copy_mutable, value))
    return {key: copy_mutable(item) for key, item in value.items()} if type(value) is dict else value


def describe_error(error: BaseException, answer: Function) -> str:
    """Describe an error in one line. If the error has no message, quote the line of the answer that raised it."""
    name, lines = type(error).__name__, [line.strip() for line in str(error).splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1]).rstrip(".")
    if isinstance(error, MemoryError) or "Out of memory allocating" in line:
        return (
            f"{name}: it asks for more memory than the check allows ({limits.MEMORY_LIMIT_GIB:g} GiB). Is a size wrong?"
        )
    if isinstance(error, RecursionError):
        return f"{name}: infinite recursion"
    file = getattr(getattr(inspect.unwrap(answer), "__code__", None), "co_filename", "")
    answer_frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if line or not answer_frames:
        return f"{name}: {line[:300]}" if line else name
    code = linecache.getline(file, answer_frames[-1].lineno or 0).strip() or f"line {answer_frames[-1].lineno}"
    return f"{name}, with no message, at `{code}`"


def _same_type_and_shape(actual: Any, expected: Any) -> bool:
    return type(actual) is type(expected) and getattr(actual, "shape", None) == getattr(expected, "shape", None)


def _wrong_verdict(reason: str, is_explained: bool = False) -> Verdict:
    return Verdict("wrong", textwrap.fill(f"Not yet. {reason}", 110, break_on_hyphens=False), is_explained)


def _as_sentence(text: str) -> str:
    """Capitalize the first letter, and add a full stop unless the text already ends in a full stop or question mark."""
    return f"{text[:1].upper()}{text[1:]}{'' if not text or text[-1] in '.?' else '.'}"


def _is_stub(answer: Function) -> bool:
    """Return whether the function still contains only its docstring and `...`, as it does in the notebook."""

    def unsolved():
        """A docstring."""
        ...

    code = getattr(answer, "__code__", None)
    if code is None or code.co_code != unsolved.__code__.co_code or code.co_names:
        return False
    return all(constant in (None, ..., answer.__doc__) for constant in code.co_consts)
