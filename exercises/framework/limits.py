"""Limit an answer's time and memory, so that an endless loop or a huge array ends in a message, not a dead kernel."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEMORY_LIMIT_GIB = 4.0  # more than enough, because an exercise's arrays take up only megabytes
GRACE_SECONDS = 5.0  # the delay between the timeout and the advice to interrupt the kernel

_STILL_WAITING = (
    "The check is still waiting for your function. Does it contain an endless loop? Interrupt the kernel. If that "
    "doesn't help, the loop is inside a compiled program: restart the kernel."
)


class TimeLimitExceeded(BaseException):
    """Raised when the time is up. It isn't an Exception, so an answer's own `except Exception` can't catch it."""


@contextmanager
def limit_time_and_memory(seconds: float) -> Iterator[None]:
    """Stop the block after `seconds`, and don't let it allocate more than `MEMORY_LIMIT_GIB` of additional memory.

    The time limit works only on POSIX systems, and only in the main thread, where notebooks run their cells. It can't
    interrupt a compiled program. If the block keeps running, a message tells the reader what to do. The memory limit
    works only on Linux.

    Raises TimeLimitExceeded if the time is up, and MemoryError or JAX's own out-of-memory error if the block
    allocates too much memory.
    """
    reminder = threading.Timer(seconds + GRACE_SECONDS, print, [_STILL_WAITING])
    reminder.daemon = True
    reminder.start()
    try:
        with _limit_time(seconds), _limit_memory():
            yield
    finally:
        reminder.cancel()


@contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TimeLimitExceeded

    previous = signal.signal(signal.SIGALRM, stop)
    # Repeat the signal, because a bare `except:` may swallow the first one.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def _limit_memory() -> Iterator[None]:
    status = Path("/proc/self/status")
    in_use = re.search(r"^VmData:\s+(\d+) kB$", status.read_text(), re.M) if status.exists() else None
    if not in_use:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = int(in_use[1]) * 2**10 + int(MEMORY_LIMIT_GIB * 2**30)
    lowest = min(limit for limit in (allowed, soft, hard) if limit != resource.RLIM_INFINITY)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (lowest, hard))
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
