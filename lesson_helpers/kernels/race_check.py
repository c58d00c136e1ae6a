"""Run a Pallas kernel in the interpreter, and collect the data races and the nonzero semaphores that it reports."""

from __future__ import annotations

import contextlib
import io
import linecache
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

import jax

from utils.compat import race_detection

MAX_WIDTH = 44  # the maximum number of characters to show of a source line
_ACCESS = re.compile(r"\b(write|read) of [^\n]*?, ([^,\n]+):(\d+):\d+ \(")


@dataclass(frozen=True)
class RaceReport:
    """The result of an interpreted program, and the problems that the interpreter reported."""

    result: jax.Array
    # The two accesses in each race, such as "write in copy.start()", without duplicates.
    races: tuple[tuple[str, str], ...]
    nonzero_semaphores: int  # the number of semaphores, on all devices, that didn't end at 0

    def __str__(self) -> str:
        return "\n".join(f"{first} <-> {second}" for first, second in self.races) or "no race found"


def check_races(make: Callable[..., Callable[..., jax.Array]], *arguments: jax.typing.ArrayLike) -> RaceReport:
    """Run a program with the interpreter's race detector.

    Args:
        make: a function that takes `interpret=`, passes it to the kernel, and returns the program.
        arguments: the program's arguments.
    """
    return run_interpreted(make(interpret=race_detection()), *arguments)


def run_interpreted(program: Callable[..., jax.Array], *arguments: jax.typing.ArrayLike) -> RaceReport:
    """Run a program with an interpreted kernel, and collect the problems that the interpreter prints or logs.

    The interpreter reports races only if the kernel was built with `interpret=compat.race_detection()`.
    """
    output = io.StringIO()
    logger = logging.getLogger()
    # JAX 0.12 logs the reports, and older versions print them.
    handlers = logger.handlers
    logger.handlers = [logging.StreamHandler(output)]
    try:
        with contextlib.redirect_stdout(output):
            result = jax.block_until_ready(program(*arguments))
            jax.effects_barrier()  # the interpreter checks the semaphores only after the result is ready
    finally:
        logger.handlers = handlers
    text = output.getvalue()
    races: set[tuple[str, str]] = set()
    for report in text.split("RACE DETECTED")[1:]:
        first, second = (f"{kind} in {_source_line(*location)}" for kind, *location in _ACCESS.findall(report)[:2])
        races.add((min(first, second), max(first, second)))
    return RaceReport(result, tuple(sorted(races)), text.count("has non-zero count"))


def _source_line(path: str, number: str) -> str:
    """Return a source line without its comment, shortened to MAX_WIDTH, or "line 7" if line 7 can't be read."""
    text = linecache.getline(path, int(number)).split("  #")[0].strip() or f"line {number}"
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 4] + " ..."
