"""Show a mistake and what JAX says to it, without the traceback's forty lines."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def show_error(expected: type[Exception] = Exception) -> Iterator[None]:
    """Run the block, which must raise `expected`, and print the error's type and message, wrapped to the page.

    Raises AssertionError where the block raises nothing: a lesson must not show a mistake that is none any more.
    An error of another type comes through unchanged.
    """
    try:
        yield
    except expected as error:
        text = re.sub(r" at \S*ipykernel_\S+", "", f"{type(error).__name__}: {error}")  # a cell has no file to go to
        print("\n".join(textwrap.fill(line, 110, break_on_hyphens=False) for line in text.splitlines()))
    else:
        raise AssertionError(f"this block was to raise {expected.__name__} and raised nothing")


@contextmanager
def show_outcome(label: str = "old") -> Iterator[SimpleNamespace]:
    """Run old code, which may fail, warn, or pass: print in a few lines, after the label, what this JAX says to it.

    Gives an object whose `value` is the block's to set, and stays None where the block fails before that.
    """
    old = SimpleNamespace(value=None)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield old
            said = "it runs" + ("" if heard else ", and says nothing")
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    lines = [said, *(f"{warning.category.__name__}: {warning.message}" for warning in heard)]
    for line in lines:
        first = re.sub(r" \((/|[A-Z]:\\).*\)$", "", line.split("\n")[0])  # not where JAX is installed
        start = f"{label}: "
        print(
            textwrap.fill(first, 110, break_on_hyphens=False, initial_indent=start, subsequent_indent=" " * len(start))
        )
