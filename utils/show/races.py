"""What the interpreter of Pallas kernels says beside the result: races, and semaphores that are not back at 0."""

from __future__ import annotations

import contextlib
import io
import linecache
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.compat import find_races


@dataclass(frozen=True)
class Said:
    """What a run of an interpreted program said. `races`: the two sides of each, as "write in copy.start()", once."""

    result: Any
    races: tuple[tuple[str, str], ...]
    semaphores_left: int  # how many, over all devices, ended above 0

    def __str__(self) -> str:
        told = [f"{one} <-> {other}" for one, other in self.races]
        return "\n".join(told) or "no race found"


def races(make: Callable[..., Any], *arguments: Any) -> Said:
    """Run the program that `make(interpret=...)` makes, in the interpreter's race detector, on these arguments."""
    return said(make(interpret=find_races()), *arguments)


def said(program: Callable[..., Any], *arguments: Any) -> Said:
    """Run a program with an interpreted kernel, and keep what the interpreter prints or logs.

    A race is told only of a kernel with `interpret=compat.find_races()`.
    """
    import jax

    text = io.StringIO()
    log = logging.getLogger()
    before, log.handlers = log.handlers, [logging.StreamHandler(text)]  # 0.12 logs what older versions print
    try:
        with contextlib.redirect_stdout(text):
            result = jax.block_until_ready(program(*arguments))
            jax.effects_barrier()  # the interpreter looks at the semaphores after the result is there
    finally:
        log.handlers = before
    found = text.getvalue()
    pairs = {tuple(_SIDE.findall(report)[:2]) for report in found.split("RACE DETECTED")[1:]}
    races = sorted({tuple(sorted(f"{kind} in {_text(*at)}" for kind, *at in pair)) for pair in pairs})
    return Said(result, tuple(races), found.count("has non-zero count"))


def _text(path: str, line: str) -> str:
    """The line's own text without its comment, at most WIDTH signs; its number where the text is not at hand."""
    text = linecache.getline(path, int(line)).split("  #")[0].strip() or f"line {line}"
    return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."


WIDTH = 44
_SIDE = re.compile(r"\b(write|read) of [^\n]*?, ([^,\n]+):(\d+):\d+ \(")
