"""Honest timing: wait for the result, keep the first call apart, report the spread, and say when it is too large."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NOISY = 0.3  # an interquartile range above this share of the median: no number to rely on


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
    if repeats < 1 or warmup < 0:
        raise ValueError(
            f"timing takes at least one repeat and no negative warm-up; got repeats={repeats}, warmup={warmup}"
        )
    first = _clock(function, args)
    for _ in range(warmup):
        _clock(function, args)
    return Timing(first, tuple(_clock(function, args) for _ in range(repeats)))
