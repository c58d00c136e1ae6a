"""An answer that never ends, or that asks for all memory there is, becomes a message instead of a dead kernel."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GIBIBYTES = 4  # an exercise's arrays take megabytes
PATIENCE = 5.0  # seconds beyond the time, until a line is printed


class TooLong(BaseException):
    """The time is over. Not an Exception, so that an answer's own `except Exception` lets it through."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """In this block, raise TooLong after so many seconds, and MemoryError (or JAX's own) beyond so much new memory.

    The clock needs POSIX and the main thread, where a notebook runs its cells; memory needs Linux. Elsewhere, and in a
    compiled program, which Python cannot interrupt, a line is printed that says what to do.
    """
    waits = threading.Timer(seconds + PATIENCE, print, [_STILL_WAITING])
    waits.daemon = True
    waits.start()
    try:
        with _clock(seconds), _memory():
            yield
    finally:
        waits.cancel()


_STILL_WAITING = (
    "The check still waits for your function: is there a loop in it that never ends? Interrupt the kernel; if it does "
    "not stop, the loop is inside a compiled program: restart the kernel."
)


@contextmanager
def _clock(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # again each second: a bare `except:` may swallow the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _memory() -> Iterator[None]:
    status = Path("/proc/self/status")
    found = re.search(r"^VmData:\s+(\d+) kB$", status.read_text(), re.M) if status.exists() else None
    if not found:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = int(found[1]) * 2**10 + GIBIBYTES * 2**30
    bounds = [bound for bound in (most, soft, hard) if bound != resource.RLIM_INFINITY]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
