"""Test running several processes: their outputs, how they end, and that no process or folder is left behind."""

from __future__ import annotations

import functools
import math
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbformat.v4 import new_output

from tools.lessons import notebooks
from utils import processes
from utils.processes import run_processes
from utils.standalone_source import standalone_source

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Linux or macOS")
WITHOUT_JAX = {"preamble": "import os\ni = int(os.environ['PROCESS'])"}
FACTOR = [2, 3]
TABLE = {"a": {4, 5}}
LOCK = open(__file__)  # noqa: SIM115  an open file can't be sent to another process


def ends_within(pid: int, seconds: float = 10) -> bool:
    """Return whether this process ends within this many seconds. A zombie counts as ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
        if not shown.strip() or shown.startswith("Z"):
            return True
        time.sleep(0.1)
    return False


def half(x):
    return x / FACTOR[0] if x > 1 else half(x + 1)


@functools.cache
def decorated(x):
    return half(x) + math.sqrt(max(TABLE["a"]) - 1)


def uses_lesson_functions(text, number):
    LOCK = [decorated(number) for _ in range(1)]  # a local variable, so the global LOCK needn't be sent
    print(text, *LOCK)


def refers_to_an_open_file():
    LOCK.read()


def takes_argument_named_like_a_global(LOCK):
    return [LOCK for half in (LOCK, 1) if half]


def sum_over_processes():
    import jax
    from jax.sharding import PartitionSpec as P

    print(jax.process_index(), "of", jax.process_count(), len(jax.local_devices()), "of", len(jax.devices()))
    mesh = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    total = jax.jit(
        jax.shard_map(lambda: jax.lax.psum(jax.lax.axis_index("d"), "d"), mesh=mesh, in_specs=(), out_specs=P())
    )()
    print(int(total))
    print(os.environ["COORDINATOR"].split(":")[1], file=sys.stderr)


def test_windows_is_refused_with_an_explanation(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(
        NotImplementedError, match="run_processes needs Linux or macOS: on Windows, open the lesson in WSL or Colab"
    ):
        run_processes("print(1)")


def test_the_runtimes_output_is_separated_from_the_programs():
    run = run_processes("import os\nprint('a', end=' ')\nos.write(1, b'greeting\\n')\nprint('b')", 1, preamble="")
    assert run.stdout == ("a b\n",) and run.stderr == ("greeting\n",)


def test_output_before_a_hang_is_kept(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    run = run_processes(
        "import time\nprint('a')\nprint('the sum is', end=' ')\ntime.sleep(60)", 1, silence_timeout=1, preamble=""
    )
    assert run.stdout == ("a\nthe sum is ",)


NO_LONG_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
print("out " * 500)
for _ in range(500):
    print("a line of error", file=sys.stderr)
"""


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_output_does_not_count_towards_a_file_size_limit(monkeypatch, unbuffered):
    # Lesson 17's program limits the size of the files that it writes. When its output also went to a file and Python
    # buffered the output, the program ended with status 120.
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    run = run_processes(NO_LONG_FILES, 1, preamble="")
    assert run.returncodes == (0,)
    assert (len(run.stdout[0]), len(run.stderr[0])) == (2001, 500 * 16)


def test_nested_gloo_messages_are_left_out():
    gloo_line = "[Gloo] Rank {} is connected to 7 peer ranks. Expected number of connected peer ranks is : 7\n"
    within = gloo_line.format("[Gloo] Rank 6" + gloo_line.format(6)[13:] + "5")
    assert processes._without_gloo_messages(f"the largest is {within}15.0\n") == "the largest is 15.0\n"


@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.other_versions)])
def test_devices_of_all_processes_add_up(n, capsys):
    run = run_processes(sum_over_processes, n)
    # The sum 0 + 1 + ... + 7 is 28, and Gloo's messages are left out.
    assert run.stdout == tuple(f"{i} of {n} {8 // n} of 8\n28\n" for i in range(n))
    assert run.returncodes == (0,) * n
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port's last connections may linger
        free.bind(("localhost", int(run.stderr[0].split()[-1])))  # Gloo may print its greeting first
    shown = notebooks.merge_streams([new_output("stream", text=capsys.readouterr().out)])
    assert [output.text for output in shown] == [f"{n} processes of {8 // n} devices each: exited normally\n"]


def test_a_function_is_sent_with_everything_it_refers_to():
    run = run_processes(uses_lesson_functions, 2, args=("it's", 1), **WITHOUT_JAX)
    assert run.stdout == ("it's 3.0\n",) * 2  # half(1) = half(2) = 1; sqrt(5 - 1) = 2
    assert str(run) == "process 0 · ended with status 0\n  it's 3.0\nprocess 1 · ended with status 0\n  it's 3.0"


def test_an_argument_hides_a_global_variable_of_the_same_name():
    assert standalone_source(takes_argument_named_like_a_global, (3,)).startswith(
        "def takes_argument_named_like_a_global(LOCK):"
    )


def test_functions_that_cannot_be_sent_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"LOCK cannot be sent to another process .* create it inside"):
        run_processes(refers_to_an_open_file)
    with pytest.raises(ValueError, match="argument 0 cannot be sent"):
        run_processes(uses_lesson_functions, args=(LOCK,))
    with pytest.raises(ValueError, match="define it there with def"):
        run_processes(lambda: None)

    def inner():
        pass

    with pytest.raises(ValueError, match="inner is not a top-level function of the lesson"):
        run_processes(inner)
    scope = {"__name__": __name__}
    exec("def typed(): pass", scope)
    with pytest.raises(ValueError, match=r"the source of typed .* give the program as text"):
        standalone_source(scope["typed"])
    for n in (0, 3, 16, 2.0, True):
        with pytest.raises(ValueError, match="must divide the 8 devices"):
            run_processes("", n)


def test_a_given_folder_is_shared_and_kept(tmp_path):
    run_processes("open(f'{i}', 'w').close()", folder=tmp_path / "kept", **WITHOUT_JAX)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["0", "1"]


def test_outcomes_describe_how_each_process_ended(capsys):
    program = """
        import sys
        print("<one>" if i == 0 else "")
        if i == 1: sys.exit("no more")
        if i == 2: raise KeyError("name")
        if i == 3: os.abort()
    """
    run = run_processes(program, 4, **WITHOUT_JAX)
    assert run.returncodes == (0, 1, 1, -signal.SIGABRT)
    assert run.outcomes[:3] == (
        "ended with status 0",
        "ended with status 1\nno more",
        "ended with status 1\nKeyError: 'name'",
    )
    assert run.outcomes[3].startswith("ended by SIGABRT")
    assert "process 2 · ended with status 1 · KeyError: 'name'\n  " in str(run)
    assert "&lt;one&gt;" in run._repr_html_() and run._repr_html_().count("(prints nothing)") == 3
    assert capsys.readouterr().out.endswith(
        "\r4 processes of 2 devices each: process 1 ended with status 1; process 2 ended with status 1; "
        "process 3 ended by SIGABRT\n"
    )


def test_a_common_outcome_is_printed_once(capsys):
    assert run_processes("raise KeyError", 2, **WITHOUT_JAX).returncodes == (1, 1)
    last = capsys.readouterr().out.rsplit("\r", 1)[1]  # trailing blanks erase the rest of a longer line
    assert last.rstrip() == "2 processes of 4 devices each: each ended with status 1"


def test_python_errors_take_precedence_over_the_runtimes():
    fatal = "F1122 11:43:10.748085    8759 client.h:75] Terminating process.\nmore of it\n"
    python = "Traceback (most recent call last):\n  File x\njax.errors.JaxRuntimeError: UNKNOWN: no\n"
    assert processes._last_error(python + fatal) == "jax.errors.JaxRuntimeError: UNKNOWN: no"
    assert processes._last_error("W1122 11:43:10.7 1 a.h:75] Careful.\n" + fatal) == "Terminating process."
    assert processes._last_error("one\ntwo\n\n") == "two"
    ignored = "Exception ignored in: <_io.TextIOWrapper name='<stdout>'>\nOSError: [Errno 28] No space left on device\n"
    assert processes._last_error(ignored).startswith("OSError: [Errno 28]")  # nothing else explains status 120
    assert processes._last_error("") == ""
    assert processes._last_error("one\n", errors_only=True) == ""
    assert processes._last_error(python, errors_only=True) == "jax.errors.JaxRuntimeError: UNKNOWN: no"


OF_A_FULL_DISK = """
import threading

def fails():
    raise ValueError("of a thread")

class Writer:
    def __del__(self):
        raise ImportError("sys.meta_path is None, Python is likely shutting down")

def save():
    try:
        raise OSError(28, "No space left on device")
    except OSError as error:
        raise RuntimeError("the checkpoint is not whole") from error

{first}
keep = Writer()
{then}
"""


IN_A_THREAD = "thread = threading.Thread(target=fails); thread.start(); thread.join()"
HANDLED = "try: raise KeyError('tried again')\nexcept KeyError: __import__('traceback').print_exc()"
CAUSES = {
    "at its end": ("", "save()", "OSError: [Errno 28] No space left on device"),
    "a thread before": (IN_A_THREAD, "save()", "OSError: [Errno 28]"),
    "handled before": (HANDLED, "save()", "OSError"),
    "ignored before": ("Writer()", "save()", "OSError: [Errno 28]"),
    "exit": ("", "Writer(); raise SystemExit('no more')", "no more"),
    "a thread alone": (IN_A_THREAD, "os._exit(1)", "ValueError: of a"),
}


@pytest.mark.parametrize(("first", "then", "report"), CAUSES.values(), ids=CAUSES)
def test_the_first_cause_of_a_chained_exception_is_reported(first, then, report):
    run = run_processes(OF_A_FULL_DISK.format(first=first, then=then), 1, **WITHOUT_JAX)
    assert run.outcomes[0].startswith(f"ended with status 1\n{report}")


def test_a_hanging_process_is_killed_with_its_children(capsys):
    program = """
        import subprocess, time
        if i == 1:
            print(os.getpid(), subprocess.Popen(["sleep", "60"]).pid, os.getcwd())
            time.sleep(60)
    """
    run = run_processes(program, timeout=1.5, **WITHOUT_JAX)
    assert run.returncodes == (0, -signal.SIGKILL)
    assert run.outcomes[1] == "killed: still running after 1.5 s"
    assert capsys.readouterr().out.endswith("each: process 1 killed: still running after 1.5 s\n")
    *pids, folder = run.stdout[1].split()
    assert all(ends_within(int(pid)) for pid in pids)
    assert not Path(folder).exists() and not Path(folder).parent.exists()


def test_a_process_that_hangs_in_c_cleanup_is_not_waited_for():
    program = """
        import atexit, ctypes, sys
        libc = ctypes.CDLL(None)
        libc.__cxa_atexit(libc.pause, None, None)  # C++ waits forever in its cleanup
        atexit.register(print, "tidied up")
        print("written", end="", file=sys.stderr)
    """
    run = run_processes(program, timeout=10, **WITHOUT_JAX)
    assert (run.returncodes, run.stdout, run.stderr) == ((0, 0), ("tidied up\n",) * 2, ("written",) * 2)


def test_silence_is_measured_after_every_process_has_printed():
    program = """
        import time
        if i == 1: time.sleep(1)  # silence before the first line isn't a hang
        print("begun")
        if i == 0: time.sleep(60)
    """
    begun = time.monotonic()
    run = run_processes(program, silence_timeout=0.5, **WITHOUT_JAX)
    assert run.returncodes == (-signal.SIGKILL, 0)
    assert run.outcomes[0] == "killed: nothing was printed for 0.5 s"
    assert time.monotonic() - begun < 10


INTERRUPTED = """
import signal
from utils.processes import run_processes
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores SIGINT
program = "open(os.environ['AT'] + str(i), 'w').write(f'{os.getpid()} {os.getcwd()}'); time.sleep(60)"
run_processes(program, preamble="import os, time; i = int(os.environ['PROCESS'])")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_their_parent(tmp_path, how):
    parent = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        cwd=ROOT,
        env={**os.environ, "AT": str(tmp_path / "pid-")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    files = [tmp_path / f"pid-{i}" for i in range(2)]
    end = time.monotonic() + 20
    while not all(path.exists() and path.read_text() for path in files) and time.monotonic() < end:
        time.sleep(0.1)
    process_ids = [path.read_text().split() for path in files]
    parent.send_signal(how)
    out, err = parent.communicate(timeout=20)
    assert all(ends_within(int(pid)) for pid, _ in process_ids)
    if how == signal.SIGINT:
        assert "each: interrupted, so all processes were killed" in out and err.rstrip().endswith("KeyboardInterrupt")
    assert not Path(process_ids[0][1]).parent.exists()
