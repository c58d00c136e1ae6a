"""Run a program in several processes at once, and show their output side by side."""

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
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from utils.standalone_source import standalone_source

TOTAL_DEVICES = 8
PREAMBLE = """\
import os

import jax

n = int(os.environ["PROCESSES"])  # the number of processes
i = int(os.environ["PROCESS"])  # the index of this process
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8 // n)  # in this process
jax.config.update("jax_cpu_collectives_implementation", "gloo")
seconds = int(os.environ["HEARTBEAT"])
jax.distributed.initialize(
    os.environ["COORDINATOR"], n, i, heartbeat_timeout_seconds=seconds
)
"""
# Each child reads from a pipe whose other end only the parent holds open. The read returns once the parent has ended,
# for whatever reason, and then the child must clean up.
CHILD_PROGRAM = """\
import atexit, io, os, runpy, shutil, signal, sys, threading

def clean_up_after_parent():
    os.read(int(sys.argv[1]), 1)
    shutil.rmtree(os.path.dirname(sys.argv[2]), ignore_errors=True)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=clean_up_after_parent, daemon=True).start()
sys.stdout = io.TextIOWrapper(open(os.dup(1), "wb", 0), "utf-8", write_through=True)  # unbuffered, in case of a hang
os.dup2(2, 1)  # keep the runtime's own messages (Gloo's) out of the program's output
finished = []
# The first handler registered runs last, after JAX has cleaned up. It exits before the C++ runtime shuts down, because
# that shutdown hung in 1 of 135 runs.
atexit.register(lambda: finished and (sys.stderr.flush(), os._exit(0)))
runpy.run_path(sys.argv[2], run_name="__main__")
finished.append(True)
"""
# These patterns match Python's error messages in stderr. REPORT_START matches the start of an error report, but not the
# later tracebacks of a chained exception, because those belong to the report that begins with their cause.
REPORT_START = re.compile(
    r"(?<!exception occurred:\n\n)(?<!following exception:\n\n)^(?:Exception in thread .*\n)?Traceback ", re.M
)
ERROR_LINE = re.compile(r"^(?:[EWIF]\d{4} .*?\] )?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)", re.M)
IGNORED_ERROR = re.compile(r"^Exception ignored .*\n(?:Traceback .*\n(?:[ \t].*\n)*)?\S.*\n?", re.M)


@dataclass(frozen=True)
class Run:
    """The results of all processes, in order. A notebook displays them as a table."""

    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    returncodes: tuple[int, ...]  # as in `subprocess`: 0 means success, and -9 means killed by SIGKILL
    outcomes: tuple[str, ...]  # a description of how each process ended, with its last error

    def __str__(self) -> str:
        blocks = zip(self.outcomes, self.stdout, strict=True)
        return "\n".join(
            f"process {i} · {outcome.replace(chr(10), ' · ')}\n"
            f"{textwrap.indent(text.rstrip() or '(prints nothing)', '  ')}"
            for i, (outcome, text) in enumerate(blocks)
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cell_css = "text-align: left; vertical-align: top; padding: 0.2em 1.5em 0.2em 0"
        pre_css = "white-space: pre-wrap; overflow-wrap: anywhere; word-break: normal; margin: 0"

        def row(cells: Iterable[str]) -> str:
            data = (f'<td style="{cell_css}"><pre style="{pre_css}">{cell}</pre></td>' for cell in cells)
            return f"<tr>{''.join(data)}</tr>"

        headers = "".join(f'<th scope="col" style="{cell_css}">process {i}</th>' for i in range(len(self.stdout)))
        output = [html.escape(text.rstrip()) or "(prints nothing)" for text in self.stdout]
        return f"<table><tr>{headers}</tr>{row(output)}{row(map(html.escape, self.outcomes))}</table>"


def run_processes(
    program: str | Callable,
    n: int = 2,
    *,
    args: Sequence[Any] = (),
    timeout: float = 60,
    silence_timeout: float | None = None,
    heartbeat_timeout: int = 100,
    folder: str | Path | None = None,
    preamble: str = PREAMBLE,
) -> Run:
    """Run a program in n processes with 8 / n emulated devices each, and wait until all of them have ended.

    Args:
        program: source text, or a function from the lesson. A function is sent as source, along with everything that it
            refers to: other functions as source, modules as imports, and values as copies.
        n: the number of processes: 1, 2, 4 or 8.
        args: the arguments for `program`, if it's a function.
        timeout: the number of seconds after which processes that are still running are killed.
        silence_timeout: the number of seconds without output after which running processes are killed, because they
            must be hanging. The clock starts once every process has printed something, and restarts whenever
            there's further output. None: no limit.
        heartbeat_timeout: the number of seconds without a heartbeat after which JAX considers a process dead.
        folder: the working directory, which is kept. By default, it's a temporary directory that's deleted afterwards.
        preamble: source text that runs before the program in each process.

    None of these processes outlives this call, and neither does any process that they have started, even if the cell is
    interrupted or the kernel dies.

    Raises NotImplementedError on Windows, and ValueError if n doesn't divide 8 or if the program can't be sent. The
    message tells readers what to do instead.
    """
    if sys.platform == "win32":  # Windows has no SIGSTOP, no process groups and no pass_fds
        raise NotImplementedError("run_processes needs Linux or macOS: on Windows, open the lesson in WSL or Colab")
    if type(n) is not int or n < 1 or TOTAL_DEVICES % n:
        raise ValueError(f"n must divide the {TOTAL_DEVICES} devices: 1, 2, 4 or 8, not {n!r}")
    source = textwrap.dedent(program) if isinstance(program, str) else standalone_source(program, args)
    label = f"{n} process{'es' * (n > 1)} of {TOTAL_DEVICES // n} device{'s' * (n < TOTAL_DEVICES)} each"
    read_end, write_end = os.pipe()
    processes: list[subprocess.Popen] = []
    out_readers: list[_PipeReader] = []
    err_readers: list[_PipeReader] = []
    with tempfile.TemporaryDirectory(prefix="processes-") as temporary:
        try:
            script = Path(temporary, "program.py")
            script.write_text(f"{preamble}\n{source}", encoding="utf-8")
            working_directory = Path(folder or Path(temporary, "work"))
            working_directory.mkdir(parents=True, exist_ok=True)
            port = _free_port()
            for i in range(n):
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", CHILD_PROGRAM, str(read_end), str(script)],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        cwd=working_directory,
                        env=_environment(i, n, port, heartbeat_timeout),
                        pass_fds=(read_end,),
                        start_new_session=True,
                    )
                )
                out_readers.append(_PipeReader(processes[i].stdout))
                err_readers.append(_PipeReader(processes[i].stderr))
            killed, limit_reached = _wait_for_all(processes, out_readers, label, timeout, silence_timeout)
        except KeyboardInterrupt:
            _kill_all(processes)
            _show_status(f"{label}: interrupted, so all processes were killed\n")
            raise
        finally:
            _kill_all(processes)
            os.close(read_end)
            os.close(write_end)
        texts = [_without_gloo_messages(reader.read_all()) for reader in (*out_readers, *err_readers)]
    stdout, stderr = texts[:n], texts[n:]
    returncodes = [process.returncode for process in processes]
    endings = [f"killed: {limit_reached}" if i in killed else _describe(code) for i, code in enumerate(returncodes)]
    if len(set(endings)) == 1 < n and returncodes[0]:
        failures = [f"each {endings[0]}"]
    else:
        failures = [f"process {i} {ending}" for i, ending in enumerate(endings) if returncodes[i]]
    _show_status(f"{label}: {'; '.join(failures) or 'exited normally'}\n")
    last_errors = [
        _last_error(text, errors_only=i in killed) if returncodes[i] else "" for i, text in enumerate(stderr)
    ]
    outcomes = tuple(f"{ending}\n{error}".rstrip() for ending, error in zip(endings, last_errors, strict=True))
    return Run(tuple(stdout), tuple(stderr), tuple(returncodes), outcomes)


class _PipeReader(threading.Thread):
    """Collect a pipe's output in a background thread.

    A temporary file isn't suitable, because the system may limit the size of the files that a process can write.
    """

    def __init__(self, pipe: Any) -> None:
        super().__init__(daemon=True)
        self.pipe, self.bytes = pipe, b""
        self.start()

    def run(self) -> None:
        with self.pipe:
            while chunk := os.read(self.pipe.fileno(), 2**16):
                self.bytes += chunk

    def read_all(self) -> str:
        """Return all of the output. Call this once the processes have ended."""
        self.join(5)  # don't wait forever, because a process that left its session may keep the pipe open
        return self.bytes.decode("utf-8", errors="replace")


def _environment(i: int, n: int, port: int, heartbeat_timeout: int) -> dict[str, str]:
    """Return the environment of process i, including the variables that `PREAMBLE` reads."""
    root = str(Path(__file__).parents[1])  # so that the program can import utils
    shardcost = os.path.join(root, "packages", "shardcost", "src")
    return os.environ | {
        "PROCESSES": str(n),
        "PROCESS": str(i),
        "COORDINATOR": f"localhost:{port}",
        "HEARTBEAT": str(heartbeat_timeout),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, shardcost, os.environ.get("PYTHONPATH", "")])),
    }


def _free_port() -> int:
    """Return the number of a TCP port that's currently free on this machine."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def _wait_for_all(
    processes: list, readers: list[_PipeReader], label: str, timeout: float, silence_timeout: float | None
) -> tuple[set[int], str]:
    """Wait until all processes have ended or a limit is reached, and show the elapsed time while waiting.

    Return the indices of the processes that are still running, and a description of the limit that was reached.
    """
    started = last_shown = last_output = time.monotonic()
    sizes: list[int] = []
    while running := {i for i, process in enumerate(processes) if process.poll() is None}:
        now = time.monotonic()
        if now - started > timeout:
            return running, f"still running after {timeout:g} s"
        previous_sizes, sizes = sizes, [len(reader.bytes) for reader in readers]
        if sizes != previous_sizes or not all(sizes):
            last_output = now
        if silence_timeout and now - last_output > silence_timeout:
            return running, f"nothing was printed for {silence_timeout:g} s"
        if now - last_shown > 0.5:
            last_shown = now
            _show_status(f"{label}: {now - started:.0f} s")
        time.sleep(0.05)
    return set(), ""


def _kill_all(processes: list) -> None:
    """Kill all processes and their children. Stop them all first, so that none can report that another one died."""
    for signal_number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal_number)
    for process in processes:
        process.wait()


def _show_status(text: str) -> None:
    """Print a status line over the previous one. A line that ends with a newline stays on the screen."""
    print(f"\r{text.rstrip():<60}", end=text[len(text.rstrip()) :], flush=True)


def _describe(returncode: int) -> str:
    """Describe how a process with this return code ended."""
    return f"ended by {signal.Signals(-returncode).name}" if returncode < 0 else f"ended with status {returncode}"


def _without_gloo_messages(text: str) -> str:
    """Remove the messages that Gloo prints when processes connect."""
    remaining = re.sub(r"\[Gloo\] Rank \d+ is connected to .*? : \d+\n?", "", text)
    return remaining if remaining == text else _without_gloo_messages(remaining)  # one message may be inside another


def _last_error(stderr: str, errors_only: bool = False) -> str:
    """Return the last error in a process's stderr, as a single line, or "" if there's none.

    Use the first of these that exists: the last error that Python reports for the main thread, the first one that it
    reports for another thread, the runtime's last fatal message, and (unless `errors_only`) the last line. For a
    chained exception, use the first cause. Omit the date and source location at the start of the runtime's lines.

    Errors that Python ignored count only if stderr contains nothing else, because a process that's shutting down
    reports many of them.
    """
    reported = IGNORED_ERROR.sub("", stderr)
    stderr = reported if reported.strip() else stderr
    # The first cause of each report, by whether it occurred outside the main thread, where errors aren't fatal.
    causes: dict[bool, list[str]] = {True: [], False: []}
    starts = [match.start() for match in REPORT_START.finditer(stderr)]
    for start, end in pairwise([0, *starts, len(stderr)]):
        report = stderr[start:end]
        causes[report.startswith("Exception in thread ")] += ERROR_LINE.findall(report)[:1]
    python_errors = causes[False][-1:] or causes[True][:1]
    lines = [re.sub(r"^[EWIF]\d{4} .*?\] ", "", line) for line in stderr.splitlines() if line.strip()]
    fatal_lines = [line for line in stderr.splitlines() if re.match(r"F\d{4} ", line)]
    fatal_errors = [re.sub(r"^F\d{4} .*?\] ", "", line) for line in fatal_lines]
    return (python_errors or fatal_errors or lines * (not errors_only) or [""])[-1]
