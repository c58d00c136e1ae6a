"""Print the outcomes of checks, and find printed outcomes in a saved notebook."""

from __future__ import annotations

import re
import sys
from typing import Literal

Outcome = Literal["right", "wrong", "not attempted"]
MARKS: dict[Outcome, tuple[str, int]] = {  # each outcome's mark, and the ANSI code of its colour
    "right": ("✓", 32),
    "wrong": ("✗", 31),
    "not attempted": ("○", 34),
}


def print_verdict(outcome: Outcome, text: str) -> None:
    """Print the mark of an outcome, coloured in a notebook but not in a terminal, followed by a text."""
    mark, color = MARKS[outcome]
    in_notebook = type(sys.stdout).__module__.startswith("ipykernel")
    print(f"\x1b[1;{color}m{mark}\x1b[0m {text}" if in_notebook else f"{mark} {text}")


def printed_outcomes(output: str) -> list[Outcome]:
    """Return the outcomes that `print_verdict` printed in a cell's output, in order."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", output).splitlines()
    return [outcome for line in lines for outcome, (mark, _) in MARKS.items() if line.startswith(f"{mark} ")]
