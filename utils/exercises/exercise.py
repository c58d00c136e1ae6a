"""An exercise that checks itself: not attempted, wrong (and why), right."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from utils.exercises.judge import Wrong


@dataclass(frozen=True)
class Verdict:
    outcome: Literal["not attempted", "wrong", "right"]
    message: str


@dataclass(frozen=True)
class Exercise:
    """One exercise. `solution` is both what `solution()` prints and what the tests run; `judge` raises Wrong or returns."""

    function: Callable[..., Any]
    judge: Callable[[Callable[..., Any]], None]
    text: str

    def check(self, answer: Callable[..., Any]) -> None:
        """Print one of the three outcomes for the reader's function."""
        print(self.verdict(answer).message)

    def hint(self) -> None:
        print(f"Hint. {self.text}")

    def solution(self) -> None:
        """Print the source of the function that the tests run."""
        source = textwrap.dedent(inspect.getsource(self.function))
        print(source[source.index("def ") :].rstrip())

    def verdict(self, answer: Callable[..., Any]) -> Verdict:
        name = self.function.__name__
        if not callable(answer):
            return Verdict(
                "wrong", f"Not yet. Hand over the function itself: check({name}), not what it returns ({answer!r})."
            )
        if _is_stub(answer):
            return Verdict(
                "not attempted", f"{name}: not attempted yet. Fill in the function above and run its cell and this one."
            )
        try:
            self.judge(_reporting(answer))
        except Wrong as wrong:
            return Verdict("wrong", textwrap.fill(f"Not yet. {wrong}", 110, break_on_hyphens=False))
        return Verdict("right", f"{name}: right.")


def exercise(judge: Callable[[Callable[..., Any]], None], hint: str) -> Callable[[Callable[..., Any]], Exercise]:
    """Make an exercise of the solution that stands below it."""
    return lambda function: Exercise(function, judge, hint)


def _is_stub(answer: Callable[..., Any]) -> bool:
    """Does the function hold nothing but its docstring and `...`, as shipped?"""

    def shipped():
        """A docstring."""
        ...

    code = getattr(answer, "__code__", None)
    if code is None or code.co_code != shipped.__code__.co_code or code.co_names:
        return False
    return all(constant in (None, ..., answer.__doc__) for constant in code.co_consts)  # `return 5` has the same bytes


def _reporting(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The reader's function, its errors turned into a Wrong that quotes their last line."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return answer(*args, **kwargs)
        except Wrong:
            raise
        except Exception as error:
            line = (str(error).splitlines() or [""])[0]
            raise Wrong(f"Your function raised {type(error).__name__}: {line}") from error

    return call
