"""Show a mistake and what JAX says to it, without the traceback's forty lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def mistake(expected: type[Exception] = Exception) -> Iterator[None]:
    """Run the block, which must raise `expected`, and print the error's type and message, wrapped to the page.

    Raises AssertionError where the block raises nothing: a lesson must not show a mistake that is none any more.
    An error of another type comes through unchanged.
    """
    try:
        yield
    except expected as error:
        text = f"{type(error).__name__}: {error}"
        print("\n".join(textwrap.fill(line, 110, break_on_hyphens=False) for line in text.splitlines()))
    else:
        raise AssertionError(f"this block was to raise {expected.__name__} and raised nothing")
