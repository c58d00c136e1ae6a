"""Print the outcome of a check, and recognize it in the output of a saved notebook."""

from __future__ import annotations

import re
import sys
from typing import Literal

Outcome = Literal["right", "wrong", "not attempted"]
MARKS: dict[Outcome, tuple[str, int]] = {  # with ANSI's green, red and blue
    "right": ("✓", 32),
    "wrong": ("✗", 31),
    "not attempted": ("○", 34),
}


def print_verdict(outcome: Outcome, text: str) -> None:
    """Print a text after the mark for its outcome. In a notebook, the mark has a colour."""
    mark, color = MARKS[outcome]
    in_notebook = type(sys.stdout).__module__.startswith("ipykernel")
    print(f"\x1b[1;{color}m{mark}\x1b[0m {text}" if in_notebook else f"{mark} {text}")


def printed_outcomes(output: str) -> list[Outcome]:
    """Return the outcomes that `print_verdict` printed into a cell's output, in order."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", output).splitlines()
    return [outcome for line in lines for outcome, (mark, _) in MARKS.items() if line.startswith(f"{mark} ")]
