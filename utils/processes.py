"""Run a program in several processes at once, and show what each printed, side by side."""

from __future__ import annotations

import html
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from utils.as_text import as_text

DEVICES = 8
START = """\
import os

import jax

n = int(os.environ["PROCESSES"])  # how many there are
i = int(os.environ["PROCESS"])  # which of them this is
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8 // n)  # in this process
jax.config.update("jax_cpu_collectives_implementation", "gloo")
seconds = int(os.environ["HEARTBEAT"])
jax.distributed.initialize(
    os.environ["COORDINATOR"], n, i, heartbeat_timeout_seconds=seconds
)
"""
# A pipe of which only the parent holds the other end: when that closes, the parent is gone, however it went, and
# nobody else is left to tidy up.
CHILD = """\
import atexit, io, os, runpy, shutil, signal, sys, threading

def watch():
    os.read(int(sys.argv[1]), 1)
    shutil.rmtree(os.path.dirname(sys.argv[2]), ignore_errors=True)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=watch, daemon=True).start()
sys.stdout = io.TextIOWrapper(open(os.dup(1), "wb", 0), "utf-8", write_through=True)  # who hangs has said it
os.dup2(2, 1)  # the runtime's own words (Gloo's) would else stand in the midst of the program's
ended = []
# The first is called last, when JAX has tidied up. What C++ does after Python has hung: in 1 of 135 runs.
atexit.register(lambda: ended and (sys.stderr.flush(), os._exit(0)))
runpy.run_path(sys.argv[2], run_name="__main__")
ended.append(True)
"""
# In what Python writes to stderr: where the report of another error begins (with those that it calls its causes, before
# it), the line in which it says what was raised, and an error that it ignored.
BEGINS = re.compile(
    r"(?<!exception occurred:\n\n)(?<!following exception:\n\n)^(?:Exception in thread .*\n)?Traceback ", re.M
)
PYTHON = re.compile(r"^(?:[EWIF]\d{4} .*?\] )?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)", re.M)
IGNORED = re.compile(r"^Exception ignored .*\n(?:Traceback .*\n(?:[ \t].*\n)*)?\S.*\n?", re.M)


@dataclass(frozen=True)
class Run:
    """What became of the processes, in their order; the last line of a cell shows it as a table."""

    texts: tuple[str, ...]  # printed
    errors: tuple[str, ...]  # written to stderr
    status: tuple[int, ...]  # as `subprocess` has it: 0 is well, -9 is killed by signal 9
    ends: tuple[str, ...]  # the same in words, with the last error

    def __str__(self) -> str:
        blocks = zip(self.ends, self.texts, strict=True)
        return "\n".join(
            f"process {i} · {end.replace(chr(10), ' · ')}\n{textwrap.indent(text.rstrip() or '(prints nothing)', '  ')}"
            for i, (end, text) in enumerate(blocks)
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        left = "text-align: left; vertical-align: top; padding: 0.2em 1.5em 0.2em 0"
        wrap = "white-space: pre-wrap; overflow-wrap: anywhere; word-break: normal; margin: 0"

        def row(cells, tag="td", wrap=wrap):
            return (
                "<tr>"
                + "".join(f'<{tag} style="{left}"><pre style="{wrap}">{cell}</pre></{tag}>' for cell in cells)
                + "</tr>"
            )

        heads = "".join(f'<th scope="col" style="{left}">process {i}</th>' for i in range(len(self.texts)))
        texts = [html.escape(text.rstrip()) or "(prints nothing)" for text in self.texts]
        return f"<table><tr>{heads}</tr>{row(texts)}{row(map(html.escape, self.ends))}</table>"


def run_processes(
    program: str | Callable,
    n: int = 2,
    *,
    args: Sequence[Any] = (),
    limit: float = 60,
    quiet: float | None = None,
    heartbeat: int = 100,
    folder: str | Path | None = None,
    start: str = START,
) -> Run:
    """Run `start`, then the program, in n processes of 8 / n emulated devices each, and wait until all have ended.

    The program is text, or a function of the lesson, called with `args`: its source goes along, and of what it names
    the functions as source, modules as imports, values as copies. Its current folder is `folder`, which stays, or a
    new one, which does not.

    Whoever still runs after `limit` seconds is killed; with `quiet`, also when all have printed a line and then none
    has printed another for so many seconds: they hang. `heartbeat`: after so many silent seconds JAX takes a process
    for dead.

    However this ends (an interrupted cell, a kernel that dies), the processes and what they started end with it.

    Raises ValueError where n does not divide 8, or where the program cannot be sent: it says what to do instead.
    """
    if type(n) is not int or n < 1 or DEVICES % n:
        raise ValueError(f"n must divide the {DEVICES} devices: 1, 2, 4 or 8, not {n!r}")
    text = textwrap.dedent(program) if isinstance(program, str) else as_text(program, args)
    started = f"{n} process{'es' * (n > 1)} of {DEVICES // n} device{'s' * (n < DEVICES)} each"
    alive, holds = os.pipe()
    processes: list[subprocess.Popen] = []
    outs: list[_Heard] = []
    errs: list[_Heard] = []
    with tempfile.TemporaryDirectory(prefix="processes-") as private:
        try:
            script = Path(private, "program.py")
            script.write_text(f"{start}\n{text}", encoding="utf-8")
            at = Path(folder or Path(private, "work"))
            at.mkdir(parents=True, exist_ok=True)
            port = _free_port()
            for i in range(n):
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", CHILD, str(alive), str(script)],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        cwd=at,
                        env=_environment(i, n, port, heartbeat),
                        pass_fds=(alive,),
                        start_new_session=True,
                    )
                )
                outs.append(_Heard(processes[i].stdout))
                errs.append(_Heard(processes[i].stderr))
            late, why = _wait(processes, outs, started, limit, quiet)
        except KeyboardInterrupt:
            _end(processes)
            _say(f"{started}: interrupted, and ended\n")
            raise
        finally:
            _end(processes)
            os.close(alive)
            os.close(holds)
        texts = [_without_chatter(heard.whole()) for heard in (*outs, *errs)]
    status = [process.returncode for process in processes]
    words = [f"killed: {why}" if i in late else _word(s) for i, s in enumerate(status)]
    alike = len(set(words)) == 1 < n and status[0]
    failed = [f"each {words[0]}"] if alike else [f"process {i} {word}" for i, word in enumerate(words) if status[i]]
    _say(f"{started}: {'; '.join(failed) or 'ended well'}\n")
    said = [_last(error, errors_only=i in late) if status[i] else "" for i, error in enumerate(texts[n:])]
    ends = tuple(f"{word}\n{last}".rstrip() for word, last in zip(words, said, strict=True))
    return Run(tuple(texts[:n]), tuple(texts[n:]), tuple(status), ends)


class _Heard(threading.Thread):
    """What comes out of a pipe. (A file would be one that the process writes, and it may be told to write none.)"""

    def __init__(self, pipe: Any) -> None:
        super().__init__(daemon=True)
        self.pipe, self.bytes = pipe, b""
        self.start()

    def run(self) -> None:
        with self.pipe:
            while came := os.read(self.pipe.fileno(), 2**16):
                self.bytes += came

    def whole(self) -> str:
        self.join(5)  # all have ended; whoever left their session may still hold the pipe
        return self.bytes.decode("utf-8", errors="replace")


def _environment(i: int, n: int, port: int, heartbeat: int) -> dict[str, str]:
    root = str(Path(__file__).parents[1])  # where utils is
    return os.environ | {
        "PROCESSES": str(n),
        "PROCESS": str(i),
        "COORDINATOR": f"localhost:{port}",
        "HEARTBEAT": str(heartbeat),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
    }


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def _wait(processes: list, outs: list[_Heard], started: str, limit: float, quiet: float | None) -> tuple[set[int], str]:
    """Until all have ended, or the time is over: then who still ran, and which time it was."""
    begun = said = heard = time.monotonic()
    sizes: list[int] = []
    while running := {i for i, process in enumerate(processes) if process.poll() is None}:
        now = time.monotonic()
        if now - begun > limit:
            return running, f"it still ran after {limit:g} s"
        before, sizes = sizes, [len(out.bytes) for out in outs]
        if sizes != before or not all(sizes):
            heard = now
        if quiet and now - heard > quiet:
            return running, f"nothing was printed for {quiet:g} s"
        if now - said > 0.5:
            said = now
            _say(f"{started}: {now - begun:.0f} s")
        time.sleep(0.05)
    return set(), ""


def _end(processes: list) -> None:
    """Stop all before any dies, so that none has time to write about another's end."""
    for stop in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, stop)
    for process in processes:
        process.wait()


def _say(text: str) -> None:
    """In place of what stands in the line."""
    print(f"\r{text:<60}" if not text.endswith("\n") else f"\r{text[:-1]:<60}", end=text[len(text.rstrip()) :])
    sys.stdout.flush()


def _word(status: int) -> str:
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _without_chatter(text: str) -> str:
    left = re.sub(r"\[Gloo\] Rank \d+ is connected to .*? : \d+\n?", "", text)
    return left if left == text else _without_chatter(left)  # one may stand within another


def _last(error: str, errors_only: bool = False) -> str:
    """The last error that Python told, by its first cause, else the runtime's; else the last line, without its date and
    place. What Python ignored (much is torn down already at a process's end) counts where nothing else was told.
    """
    left = IGNORED.sub("", error)
    error = left if left.strip() else error
    causes: dict[bool, list[str]] = {True: [], False: []}  # of threads, whose errors end no process, and of the rest
    for begin, end in pairwise([0, *(found.start() for found in BEGINS.finditer(error)), len(error)]):
        report = error[begin:end]
        causes[report.startswith("Exception in thread ")] += PYTHON.findall(report)[:1]
    python = causes[False][-1:] or causes[True][:1]
    lines = [re.sub(r"^[EWIF]\d{4} .*?\] ", "", line) for line in error.splitlines() if line.strip()]
    fatal = [line for line in error.splitlines() if re.match(r"F\d{4} ", line)]
    return (python or [re.sub(r"^F\d{4} .*?\] ", "", line) for line in fatal] or lines * (not errors_only) or [""])[-1]
