"""Exercises that check themselves: not attempted, wrong (and why), right. One file for each notebook."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import reprlib
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

Slips = dict[str, list[tuple[float, str]]]  # for each factor: plausible wrong values, and the words that name the slip


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


@dataclass(frozen=True, eq=False)  # by identity, as the key of a table
class Prediction:
    """A number that the reader commits to in the cell that counts it; `compare` says which factor was forgotten.

    In exNN.py:     torus_steps = Prediction("steps", {6 / 4: "an axis of n devices takes n - 1 steps, not n"})
    In the lesson:  guess = None  # your number of steps           the first line of the cell that answers
                    ...
                    ex07.torus_steps.compare(guess, len(found))    below what it prints, above the picture it ends with

    `slips`: by what factor a wrong guess is off, guess / truth (where the truth is 0, the guess itself), and the words
    that name the slip. Two slips at once are found, too. The truth is what the cell counted: it is not written here.
    `within`: how far off, relatively, is still right; of an estimate, 0.1 or so. `ranks`: the numbers are places, of
    which "twice too large" would say nothing.

    Several numbers at once: the truth is a dictionary, the guess a tuple in its order, None in the place of one that
    the reader leaves out; `own` has the slips that are told of one label alone.

    tests/wrong_answers/exNN.py has the plausible wrong guesses: GUESSES = {ex07.torus_steps: (4, [(6, "n - 1")])}.
    """

    unit: str
    slips: dict[float, str]
    own: dict[str, dict[float, str]] = field(default_factory=dict)
    within: float = 1e-3
    ranks: bool = False

    def compare(self, guess: Any, truth: float | dict[str, float]) -> None:
        """Print what is to be said about the guess; nothing where it is None."""
        for line in self.readings(guess, truth):
            print(textwrap.fill(line, 110, break_on_hyphens=False))

    def readings(self, guess: Any, truth: float | dict[str, float]) -> list[str]:
        """The lines that `compare` prints, one for each number that the reader guessed."""
        if guess is None:
            return []
        if not isinstance(truth, dict):
            return [f"Your guess{self._reading(guess, float(truth))}"]
        if not isinstance(guess, (list, tuple)) or len(guess) != len(truth):
            return [f"Your guess is {_shown(guess)}; expected {len(truth)} numbers: {', '.join(truth)}."]
        pairs = zip(guess, truth.items(), strict=True)
        return [
            f"{of}: your guess{self._reading(one, float(value), of)}" for one, (of, value) in pairs if one is not None
        ]

    def _reading(self, guess: Any, truth: float, label: str = "") -> str:
        try:
            said = number(guess, f"one number, of {self.unit}" if self.unit else "one number", said=" is")
        except Wrong as wrong:
            return str(wrong)
        shown = f", {amount(said)} {self.unit.removesuffix('s') if said == 1 else self.unit}".rstrip()
        if math.isclose(said, truth, rel_tol=self.within, abs_tol=1e-9):
            return f"{shown}: right."
        slips: Slips = {}
        for factor, words in {**self.slips, **self.own.get(label, {})}.items():
            slips.setdefault(words, []).append((factor, words))
        words = named_slips(
            said,
            lambda **factors: (truth or 1) * math.prod(factors.values()),
            dict.fromkeys(slips, 1.0),
            slips,
            self.within,
            most=2 if self.within < 0.1 else 1,  # to a tenth, some pair explains any number
        )
        off = f"should be {amount(truth)}" if self.ranks else f"is {off_by(said, truth)}"
        return f"{shown}, {off}{words and ': '}{words}."


def named_slips(
    said: float,
    formula: Callable[..., float],
    right: dict[str, float],
    slips: Slips,
    within: float = 1e-3,
    most: int = 2,
) -> str:
    """Which factors explain the wrong number? The words of the single slips that give it, else of a pair, else ''.

    `formula` is called with the factors of `right`, one or two of them replaced by a plausible wrong value. Of a pair,
    each slip is told in short, up to its first colon or semicolon. `most`: so many slips at once.
    """
    options = [(name, value, words) for name, values in slips.items() for value, words in values]
    for count in range(1, most + 1):
        found = []
        for chosen in itertools.combinations(options, count):
            changed = {name: value for name, value, _ in chosen}
            got = formula(**{**right, **changed})
            if len(changed) == count and math.isclose(said, got, rel_tol=within):
                told = [words if count == 1 else re.split(r"[:;] ", words)[0] for _, _, words in chosen]
                found.append(", and ".join(dict.fromkeys(told)))
        if found:
            return "; or: ".join(found[:2])
    return ""


def by_factors(
    said: float,
    case: str,
    unit: str,
    formula: Callable[..., float],
    right: dict[str, float],
    slips: Slips,
    advice: str,
) -> None:
    """Nothing where the number is `formula(**right)` to 0.1 %; else Wrong, with the slips that explain it or the advice."""
    want = formula(**right)
    if math.isclose(said, want, rel_tol=1e-3):
        return
    said_so = f"{case}you say" if case else "You say"
    words = named_slips(said, formula, right, slips) or advice
    raise Wrong(f"{said_so} {amount(said)} {unit}, {off_by(said, want)}: {words}.")


def off_by(said: float, want: float) -> str:
    """By how much a number is wrong, such as '2 times too large'."""
    high, low = max(said, want), min(said, want)
    times = f"{high / low:.4g} times " if low > 0 else ""
    return f"{times}too {'large' if said > want else 'small'}"


def amount(value: float) -> str:
    """A number as one says it: 28,672 or 3.5."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.5g}"


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


def number(
    got: Any,
    expected: str = "one number",
    *,
    said: str = "You return",
    whole: bool = False,
    positive: bool = False,
) -> float:
    """The number that a reader's answer stands for, a float (an int where it must be `whole`); anything else is Wrong.

    Accepted: Python's and NumPy's numbers, and an array of shape (), of NumPy or JAX. `whole`: of an integer type.
    Wrong, in words of its own: None, a bool, a text, a function, an array of another shape, nan, an infinite number,
    and, where it must be `positive`, 0 or less. The message begins with `said`, shows the value, and ends with
    `expected`, as in "You return None; expected one number, of bytes. Does the function end with `return`?"
    """
    value = _scalar(got)
    if value is None or (whole and not isinstance(value, Integral)):
        why = next((f" {words}" for kind, words in _NO_NUMBER if kind(got)), "")
        raise Wrong(f"{said} {_shown(got)}; expected {expected}.{why}")
    if math.isnan(value):
        raise Wrong(f"{said} nan, which is not a number; expected {expected}. Something was 0 / 0, or inf - inf.")
    if math.isinf(value):
        raise Wrong(f"{said} {value}; expected {expected}. Something was divided by 0, or grew too large.")
    if positive and value <= 0:
        raise Wrong(f"{said} {value:g}; expected {expected}, and a size, a rate or a time is above 0.")
    return int(value) if whole else float(value)


def numbers(got: Any, shape: tuple[int, ...], expected: str, said: str = "You return") -> np.ndarray:
    """As `number`, for a list, a tuple or an array of exactly this shape, each value a number; as floats."""

    def read(value: Any, shape: tuple[int, ...]) -> Any:
        if not shape:
            return number(value)
        if not isinstance(value, (list, tuple)) and not np.shape(value):
            raise Wrong("not a list")
        values = list(value)
        if len(values) != shape[0]:
            raise Wrong("not of this length")
        return [read(value, shape[1:]) for value in values]

    try:
        return np.array(read(got, shape), float)
    except (Wrong, TypeError, ValueError) as error:
        raise Wrong(f"{said} {_shown(got)}; expected {expected}.") from error


def on_eight(f: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """The program in which each of eight devices, along the axis 'i', runs f on its own parts."""
    import jax

    from utils.mesh import make_mesh

    return jax.jit(jax.shard_map(f, mesh=make_mesh((8,), ("i",)), in_specs=in_specs, out_specs=out_specs))


def part(answer: Callable[..., Any], shape: tuple[int, ...]) -> Callable[..., Any]:
    """The reader's per-device program; what it returns must be an array of this shape."""
    import jax

    def program(*parts: Any) -> Any:
        got = answer(*parts)
        if got is None:
            raise Wrong("Your function returns None. Does it end with `return`?")
        if not isinstance(got, jax.Array):
            raise Wrong(f"Your function returns a {type(got).__name__}, {got!r}; expected an array of shape {shape}.")
        if got.shape != shape:
            raise Wrong(
                f"On each device your function returns an array of shape {got.shape}; expected {shape}, the device's part."
            )
        return got

    return program


def spell(sharding: Any) -> str:
    """A sharding in few words, the same on every supported JAX."""
    from utils.compat import device_text, spec_text

    if hasattr(sharding, "spec"):
        sizes = " x ".join(map(str, sharding.mesh.devices.shape))
        return f"{spec_text(sharding.spec)} on a {sizes} mesh {sharding.mesh.axis_names}"
    return ", ".join(sorted(map(device_text, sharding.device_set)))


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_NO_NUMBER: list[tuple[Callable[[Any], bool], str]] = [  # what is handed over for a number, and what to do about it
    (lambda got: got is None, "Does the function end with `return`, on every way through it?"),
    (lambda got: isinstance(got, str), "That is a text; leave out the quotes."),
    (lambda got: callable(got), "That is a function; call it."),
    (lambda got: getattr(got, "shape", ()) == (1,), "That is an array with an axis; take its one value, [0]."),
]


def _scalar(got: Any) -> Any:
    """The Python number that this is, or None."""
    try:
        value = got.item() if getattr(got, "shape", None) == () else got
        if isinstance(value, Real) and not isinstance(value, bool):
            float(value)
            return value
    except Exception:  # a key of JAX, a value that is being traced, a whole number beyond all floats
        pass
    return None


def _shown(got: Any) -> str:
    """An answer in a few words."""
    if getattr(got, "shape", None):
        return f"an array of shape {tuple(got.shape)}"
    return _SHORT.repr(got)


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
