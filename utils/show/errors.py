"""Run code that may fail, and show only its messages, without a forty-line traceback."""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

WIDTH = 110  # characters


@contextmanager
def show_error(expected: type[Exception] = Exception) -> Iterator[None]:
    """Run a block that raises an error of the expected type, and print the error's type and message.

    Raises AssertionError if the block raises nothing, because then the lesson's text is wrong. Errors of other types
    propagate.
    """
    try:
        yield
    except expected as error:
        # Remove the path of the cell's temporary file, which readers can't open.
        text = re.sub(r" at \S*ipykernel_\S+", "", f"{type(error).__name__}: {error}")
        print("\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in text.splitlines()))
    else:
        raise AssertionError(f"this block should raise {expected.__name__}, but it raised nothing")


@contextmanager
def show_outcome(label: str = "old") -> Iterator[SimpleNamespace]:
    """Run a block of old code, which may fail, warn or succeed, and print in a few lines what happens.

    Each message begins with the label. The block may assign its result to the attribute `value` of the object that this
    context manager yields. The attribute stays None if the block fails before assigning it.
    """
    outcome = SimpleNamespace(value=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield outcome
            message = "it runs" if caught else "it runs, with no warning"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
    for text in [message, *(f"{warning.category.__name__}: {warning.message}" for warning in caught)]:
        first_line = re.sub(r" \((/|[A-Z]:\\).*\)$", "", text.split("\n")[0])  # drop the path of the installed JAX
        start = f"{label}: "
        indent = " " * len(start)
        lines = textwrap.wrap(first_line, WIDTH, break_on_hyphens=False, initial_indent=start, subsequent_indent=indent)
        print("\n".join(lines))
