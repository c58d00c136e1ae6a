"""Honest timing: wait for the result, keep the first call apart, report the spread, and say when it is too large."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NOISY = 0.3  # an interquartile range above this share of the median: no number to rely on
ROUNDS = 5  # fewer rounds have no quartiles to speak of
ALIKE = 1.05  # a smaller quotient is no reason to choose, however often it comes back


def format_seconds(seconds: float) -> str:
    """Spell a duration with three figures and a unit: ``1.23 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * size:  # 999.6 ms is 1 s in three figures
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


@dataclass(frozen=True)
class Timing:
    """Durations of one function in seconds: `first` (it may compile), then `runs`, the calls after the warm-up."""

    first: float
    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def quartiles(self) -> tuple[float, float]:
        """Half of the runs took between these two durations."""
        if len(self.runs) < 2:
            return self.runs[0], self.runs[0]
        low, _, high = statistics.quantiles(self.runs, n=4, method="inclusive")
        return low, high

    @property
    def noisy(self) -> bool:
        """Is the spread (the distance of the quartiles) above 0.3 times the median, which is then worth little?"""
        low, high = self.quartiles
        return high - low > NOISY * self.median

    def __str__(self) -> str:
        low, high = map(format_seconds, self.quartiles)
        text = f"median {format_seconds(self.median)} (half of the runs: {low} to {high})"
        text += f", first call {format_seconds(self.first)}"
        return text + "; with this spread the median is worth little" * self.noisy

    __repr__ = __str__


@dataclass(frozen=True)
class Comparison:
    """Timings of several functions whose runs took turns, by name.

    Its text compares each with the fastest by the quotients of the rounds, and shows between which two numbers half of
    them lie. It names a winner where even the lower of the two is above 1.05. Where it is 1 or less, it says that the
    spread is too large to conclude (in a quarter of the rounds the other one was as fast); between 1 and 1.05, that
    they are too close; and of fewer than five rounds, that they are too few.
    """

    timings: dict[str, Timing]

    def ratio(self, name: str) -> Timing:
        """Quotients `name` / fastest, round by round: drift hits both alike. (A `Timing` without a unit.)"""
        fastest = self.timings[self.fastest]
        return Timing(0.0, tuple(a / b for a, b in zip(self.timings[name].runs, fastest.runs, strict=True)))

    @property
    def fastest(self) -> str:
        return min(self.timings, key=lambda name: self.timings[name].median)

    def __str__(self) -> str:
        lines = [f"{name}: {timing}" for name, timing in self.timings.items()]
        lines += [self._verdict(name) for name in self.timings if name != self.fastest]
        return "\n".join(lines)

    __repr__ = __str__

    def _verdict(self, name: str) -> str:
        ratio = self.ratio(name)
        low, high = ratio.quartiles
        half = f"half of the rounds: {low:,.2f} to {high:,.2f} times as long"
        if len(ratio.runs) < ROUNDS:
            return f"{name} and {self.fastest}: {len(ratio.runs)} rounds are too few to conclude; take {ROUNDS}."
        if low <= 1:
            return f"{name} and {self.fastest}: the spread is too large to conclude ({half})."
        if low <= ALIKE:
            return f"{name} and {self.fastest}: too close to name a winner ({half})."
        return f"{name} takes {ratio.median:,.1f} times as long as {self.fastest} ({half})."


def _clock(function: Callable[..., Any], args: tuple) -> float:
    from jax import block_until_ready

    start = time.perf_counter()
    block_until_ready(function(*args))
    return time.perf_counter() - start


def measure(function: Callable[..., Any], *args: Any, repeats: int = 20, warmup: int = 2) -> Timing:
    """Time `function(*args)`: the first call, `warmup` calls that do not count, then `repeats` runs.

    Every call waits for its result (`jax.block_until_ready`). An error in the function comes through unchanged.
    Raises ValueError for fewer than one repeat or a negative warm-up.
    """
    _check(repeats, warmup)
    first = _clock(function, args)
    for _ in range(warmup):
        _clock(function, args)
    return Timing(first, tuple(_clock(function, args) for _ in range(repeats)))


def compare(functions: dict[str, Callable[[], Any]], *, repeats: int = 20, warmup: int = 2) -> Comparison:
    """Time several functions without arguments in turns, so that whatever slows the machine down hits all alike.

    Each round runs each function once, and begins with another one than the round before. Returns a Comparison, whose
    docstring has the rule by which a winner is named. Errors as `measure`; ValueError also where there is nothing to
    compare.
    """
    _check(repeats, warmup)
    if len(functions) < 2:
        raise ValueError(f"comparing takes at least two functions; got {len(functions)}")
    firsts = {name: _clock(function, ()) for name, function in functions.items()}
    runs: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for i in range(warmup + repeats):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            seconds = _clock(functions[name], ())
            if i >= warmup:
                runs[name].append(seconds)
    return Comparison({name: Timing(firsts[name], tuple(runs[name])) for name in names})


def _check(repeats: int, warmup: int) -> None:
    if repeats < 1 or warmup < 0:
        raise ValueError(
            f"timing takes at least one repeat and no negative warm-up; got repeats={repeats}, warmup={warmup}"
        )
