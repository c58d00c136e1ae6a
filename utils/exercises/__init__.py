"""Exercises that check themselves: not attempted, wrong (and why), right. One file for each notebook."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np


class Wrong(Exception):
    """Raised by a judge; its message tells the reader what is wrong, with the reader's own value."""


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


def same(got: Any, want: Any, what: str = "Your result") -> None:
    """Raise Wrong where two arrays differ, naming the first of: type, shape, dtype, sharding, a value.

    `want` is a jax.Array (its sharding counts) or a NumPy array (any sharding will do). Values to 1e-5.
    """
    if got is None:
        raise Wrong(f"{what} is None. Does the function end with `return`?")
    if not hasattr(got, "shape") or not hasattr(got, "dtype"):
        raise Wrong(f"{what} is a {type(got).__name__}, {got!r}; expected an array of shape {want.shape}.")
    if hasattr(want, "sharding") and not hasattr(got, "sharding"):
        raise Wrong(f"{what} is a {type(got).__name__}; expected a jax.Array, which lives on devices.")
    if got.shape != want.shape:
        raise Wrong(f"{what} has shape {got.shape}; expected {want.shape}.")
    if got.dtype != want.dtype:
        raise Wrong(f"{what} has dtype {got.dtype}; expected {want.dtype}.")
    if hasattr(want, "sharding") and not got.sharding.is_equivalent_to(want.sharding, want.ndim):
        raise Wrong(f"{what} is laid out as {spell(got.sharding)}; expected {spell(want.sharding)}.")
    differs = ~np.isclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=1e-5, atol=1e-5)
    if differs.any():
        at = tuple(int(i) for i in np.argwhere(differs)[0])
        raise Wrong(
            f"{what} differs in {differs.sum()} of {differs.size} values; at {list(at)} it is {got[at]}, expected {want[at]}."
        )


def spell(sharding: Any) -> str:
    """A sharding in few words, the same on every supported JAX."""
    from utils.compat import device_text, spec_text

    if hasattr(sharding, "spec"):
        sizes = " x ".join(map(str, sharding.mesh.devices.shape))
        return f"{spec_text(sharding.spec)} on a {sizes} mesh {sharding.mesh.axis_names}"
    return ", ".join(sorted(map(device_text, sharding.device_set)))


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
