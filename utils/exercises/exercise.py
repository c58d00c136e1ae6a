"""An exercise that checks itself: not attempted, wrong (and why), right."""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from exercises import progress
from exercises.kit.limits import GIBIBYTES, TooLong, limited
from utils.exercises.judge import Wrong


@dataclass(frozen=True)
class Verdict:
    """What a reader is told. `bug`: the judge itself raised this, so the message is no verdict on the answer."""

    outcome: Literal["not attempted", "wrong", "right"]
    message: str
    bug: Exception | None = None


@dataclass(frozen=True)
class Exercise:
    """One exercise. `solution` is both what `solution()` prints and what the tests run; `judge` raises Wrong or returns."""

    function: Callable[..., Any]
    judge: Callable[[Callable[..., Any]], None]
    text: str
    seconds: float = 60  # for the whole check
    copies: bool = (
        True  # the answer gets NumPy arrays, lists and dictionaries as copies, so that it spoils no later case
    )

    def check(self, answer: Callable[..., Any]) -> None:
        """Print one of the three outcomes for the reader's function; where it is right, what is next."""
        verdict = self.verdict(answer)
        print(verdict.message)
        tried = verdict.outcome != "not attempted" and not verdict.bug
        if tried and (said := progress.exercise(self.function, verdict.outcome == "right")):
            print(said)

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
        reader = _Reader(answer, self.judge, self.copies)
        try:
            with limited(self.seconds):
                self.judge(reader.call())
        except Wrong as wrong:
            return _not_yet(str(wrong))
        except TooLong:
            return _not_yet(
                f"Your function was stopped after {self.seconds:g} s. Is there a loop in it that never ends?"
            )
        except (Exception, SystemExit) as error:
            if reader.caused(error):
                return _not_yet(_raised(error, answer))
            return _not_yet(
                f"The check itself failed on what your function returns, with {type(error).__name__}: {_line(error)}. It "
                "did not expect this, so it is no verdict; compare with what the task asks for. And please report it, "
                "with your function.",
                error if isinstance(error, Exception) else RuntimeError(repr(error)),
            )
        return Verdict("right", f"{name}: right.")


def exercise(
    judge: Callable[[Callable[..., Any]], None], hint: str, **options: Any
) -> Callable[[Callable[..., Any]], Exercise]:
    """Make an exercise of the solution that stands below it. `options`: `seconds` and `copies`, as of an Exercise."""
    return lambda function: Exercise(function, judge, hint, **options)


def _not_yet(why: str, bug: Exception | None = None) -> Verdict:
    return Verdict("wrong", textwrap.fill(f"Not yet. {why}", 110, break_on_hyphens=False), bug)


def _is_stub(answer: Callable[..., Any]) -> bool:
    """Does the function hold nothing but its docstring and `...`, as shipped?"""

    def shipped():
        """A docstring."""
        ...

    code = getattr(answer, "__code__", None)
    if code is None or code.co_code != shipped.__code__.co_code or code.co_names:
        return False
    return all(constant in (None, ..., answer.__doc__) for constant in code.co_consts)  # `return 5` has the same bytes


@dataclass
class _Reader:
    """The reader's function, called by a judge: its errors are told apart from the judge's own."""

    answer: Callable[..., Any]
    judge: Callable[..., Any]
    copies: bool
    traced: bool = False  # a program was made of it

    def call(self) -> Callable[..., Any]:
        """The function on arguments of its own, its errors turned into a Wrong that quotes their first line."""

        @functools.wraps(self.answer)
        def call(*args: Any, **kwargs: Any) -> Any:
            import jax

            self.traced |= any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs)))
            if self.copies:
                args, kwargs = _own(args), _own(kwargs)
            try:
                return self.answer(*args, **kwargs)
            except Wrong:
                raise
            except (Exception, SystemExit) as error:
                raise Wrong(_raised(error, self.answer)) from error

        return call

    def caused(self, error: BaseException) -> bool:
        """Of an error outside of the calls: is a function that the answer returned behind it, or a program made of it?"""
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        cut = any("JAX has removed its internal frames" in note for note in getattr(error, "__notes__", []))
        in_jax = cut or re.search(r"[/\\]jax(lib)?[/\\]", files[-1])
        returned = _file(self.answer) in files and _file(self.answer) != _file(self.judge)
        return bool(returned or (self.traced and in_jax) or _too_large(error))


def _own(value: Any) -> Any:
    """A copy of what an answer could change, so that no later case of the check sees the change."""
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(_own, value))
    if type(value) is dict:
        return {key: _own(item) for key, item in value.items()}
    return value


def _raised(error: BaseException, answer: Callable[..., Any]) -> str:
    """What a reader's function raised, and where if the error has no words of its own."""
    name, line = type(error).__name__, _line(error)
    if _too_large(error):
        return (
            f"Your function asks for more memory than the {GIBIBYTES} GiB that the check allows: {line.rstrip('.') or name}. Is a "
            "size wrong, or something whole that should be in pieces?"
        )
    if isinstance(error, RecursionError):
        return f"Your function raised {name}: {line}. It calls itself without an end."
    if line:
        return f"Your function raised {name}: {line}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == _file(answer)]
    if not own:
        return f"Your function raised {name}, without a word."
    at = f"`{linecache.getline(own[-1].filename, own[-1].lineno).strip() or f'line {own[-1].lineno}'}`"
    if frames[-1] is own[-1]:
        return f"Your function raised {name}, without a word, at {at}."
    return (
        f"Your function raised {name}, without a word, inside `{frames[-1].name}`, which is called on the way from {at}: "
        "look at what you hand over there."
    )


def _line(error: BaseException) -> str:
    """The first line of an error's own words, and where that ends in a colon the next one, too."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])


def _too_large(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "Out of memory allocating" in str(error)


def _file(function: Callable[..., Any]) -> str | None:
    return getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
