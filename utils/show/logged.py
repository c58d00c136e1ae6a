"""What JAX and its compiler write beside a cell's output, as a list of lines: log messages and warnings."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def logged(*options: str) -> Iterator[list[str]]:
    """Collect, instead of printing it, what is said within the block: log messages of JAX, Python's warnings, and what
    the compiler (XLA) writes to stderr.

    Gives a list of texts. JAX's stand in it at once; the compiler's are there when the block is left. `options`:
    switches of JAX that make it say more, on within the block, such as "jax_log_compiles".

    Raises AttributeError for an option that this JAX does not have.
    """
    import jax

    lines: list[str] = []
    before = {option: getattr(jax.config, option) for option in options}
    with ExitStack() as stack:
        stack.enter_context(_of_the_compiler(lines))
        stack.enter_context(_of_jax(lines))
        stack.enter_context(_of_python(lines))
        try:
            for option in options:
                jax.config.update(option, True)
            yield lines
        finally:
            for option, value in before.items():
                jax.config.update(option, value)


@contextmanager
def _of_jax(lines: list[str]) -> Iterator[None]:
    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.getLogger("jax")
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [Keep(logging.WARNING)], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before


@contextmanager
def _of_python(lines: list[str]) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *rest: lines.append(str(message))
        yield


@contextmanager
def _of_the_compiler(lines: list[str]) -> Iterator[None]:
    """It is not Python that writes this, so the file behind stderr is exchanged, not `sys.stderr`."""
    before = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            kept.seek(0)
            text = kept.read().decode(errors="replace")
            # A line of XLA's begins with a letter and digits, a process, a place: W1122 01:38:46.19 4711 file.cc:656]
            lines += [re.sub(r"^[IWEF]\d{4} [\d:.]+\s+\d+ \S+\] ", "", line) for line in text.splitlines()]
