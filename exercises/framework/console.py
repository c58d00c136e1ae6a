"""What a reader is told, with a mark, which has a colour in a notebook; the text behind it is plain."""

from __future__ import annotations

import sys

MARKS = {"right": ("✓", 32), "wrong": ("✗", 31), "not attempted": ("○", 34)}  # with ANSI's green, red and blue


def tell(outcome: str, text: str) -> None:
    """Print it. Where the output goes to no notebook, as in a terminal or a file, the mark stays plain."""
    mark, color = MARKS[outcome]
    in_notebook = type(sys.stdout).__module__.startswith("ipykernel")
    print(f"\x1b[1;{color}m{mark}\x1b[0m {text}" if in_notebook else f"{mark} {text}")
