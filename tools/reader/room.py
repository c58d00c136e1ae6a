"""Is this machine ready for the course? `make room`, `python -m tools.reader.room`, or in a notebook `check_room()`.

Runs on a bare Python, before anything is installed, and on one that is too old: only the standard library. JAX is tried
in a process of its own with a time limit, so a crash or a hang is reported and not suffered. (In a kernel whose setup
cell has run, its own devices are asked.)
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.reader.environment import NEWEST, OLDEST
from utils import devices
from utils.devices import OLDEST_JAX, release_numbers

ROOT = Path(__file__).resolve().parents[2]
# Packages of requirements.txt that are imported by another name.
IMPORTED_AS = {"orbax-checkpoint": "orbax", "scikit-learn": "sklearn"}
PATIENCE = 40  # seconds for JAX to start: two on most machines, many on a cold disk
LESSON, COMFORT = 1.0, 2.0  # GB of free memory: lesson 06 takes 0.9 at its peak; with a browser beside it
INSTALL, TRACES = 3.0, 0.2  # GB of free disk: to install the environment; for the traces of lesson 09
OK, NOTE, STOP = "OK", "NOTE", "STOP"


def _libraries() -> list[str]:
    """What requirements.txt names, as it is imported; JAX is tried by itself, and not every place needs JupyterLab."""
    path = ROOT / "requirements.txt"
    named = re.findall(r"^[\w-]+", path.read_text(encoding="utf-8") if path.exists() else "", re.M)
    return [IMPORTED_AS.get(name, name) for name in named if name not in ("jax", "jupyterlab")]


# What the trial process runs. Each line that it prints says how far it came.
TRIAL = f"""
import importlib.util, sys
print("python", *sys.version_info[:3], flush=True)
print("missing", *[name for name in {_libraries()!r} if not importlib.util.find_spec(name)], flush=True)
import jax
print("jax", jax.__version__, flush=True)
from utils.devices import SetupError, start_devices
try:
    devices = start_devices(8)
except SetupError as error:
    print("setup", error, flush=True)
    sys.exit(3)
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
x = jax.device_put(jnp.arange(8.0), NamedSharding(Mesh(np.array(devices), ("i",)), P("i")))
print("sum", float(jax.jit(jnp.sum)(x)), flush=True)
"""


@dataclass(frozen=True)
class Line:
    """One thing that was looked at: what, how it stands, what was found, and what to do (empty where it is OK)."""

    what: str
    state: str
    found: str
    do: str = ""


@dataclass(frozen=True)
class Trial:
    """What the trial process printed, how it ended (None: it did not, in time), and its last words on stderr."""

    python: str
    printed: str
    status: int | None
    last: str = ""

    def after(self, word: str) -> str | None:
        """The rest of the printed line that begins with the word; None where there is no such line."""
        for line in self.printed.splitlines():
            if line.split(" ")[0] == word:
                return line[len(word) :].strip()
        return None


def check_room() -> bool:
    """Print a line for each thing that the course needs, with what to do where it is missing. True if ready."""
    with ThreadPoolExecutor() as pool:  # JAX's seconds and the network's at the same time
        trying, reaching = pool.submit(attempt), pool.submit(unreachable)
        trial, silent = trying.result(), reaching.result()
    lines = [machine_line(), python_line(trial), *jax_lines(trial)]
    installed = all(line.state == OK for line in lines)
    lines += [memory_line(free_memory()), disk_line(free_disk(), installed), network_line(silent, installed)]
    for line in lines:
        print(f"{line.what:<10} {line.state:<5} {line.found}")
        if line.do:
            print(f"{'':<16} {line.do}")
    stops = sum(line.state == STOP for line in lines)
    print("Ready." if not stops else f"Not ready: {stops} thing{'s' * (stops > 1)} to mend, marked {STOP}.")
    return not stops


def machine_line() -> Line:
    return Line("machine", OK, f"{platform.platform()}, {os.cpu_count()} cores, {hosted() or 'not hosted'}")


def hosted() -> str:
    """'Colab' or 'Kaggle', where this is a notebook of theirs."""
    if "google.colab" in sys.modules:
        return "Colab"
    return "Kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in os.environ else ""


def elsewhere() -> str:
    return "or start a new runtime" if hosted() == "Colab" else "or open the lesson in Colab"


def how_to_install(python: str, packages: str) -> str:
    if (sys.platform, platform.machine()) == ("darwin", "x86_64"):
        return "JAX has no packages for Macs with an Intel chip: open the lesson in Colab, Binder or Codespaces."
    if hosted():
        return f"Run in a cell: !{python} -m pip install {packages}; then restart the kernel."
    return f"Type make lab in the course's folder: it installs what is missing (some minutes), {elsewhere()}."


def python_line(trial: Trial) -> Line:
    version = tuple(map(int, (trial.after("python") or "0").split()))
    newest = ".".join(map(str, NEWEST))
    found, oldest = ".".join(map(str, version)), ".".join(map(str, OLDEST))
    if version >= OLDEST:
        return Line("Python", OK, found)
    do = f"Install Python {newest} from python.org and type make PYTHON=python{newest} lab, {elsewhere()}."
    return Line("Python", STOP, f"{found}, and the course needs {oldest} or newer", do)


def course_python() -> str:
    """The Python whose JAX counts: in a notebook its kernel's; else that of make lab, where it has been made."""
    made = ROOT / ".venv" / "bin" / "python"
    return sys.executable if "ipykernel" in sys.modules or not made.exists() else str(made)


def attempt() -> Trial:
    """Here, where the devices run already: a TPU belongs to one process, and another could not have it. Else apart."""
    if not devices._started:
        return try_jax(course_python())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        exec(TRIAL, {})
    return Trial(sys.executable, printed.getvalue(), 0)


def try_jax(python: str, patience: float = PATIENCE) -> Trial:
    # Without the last setting JAX takes most of a GPU's memory.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUTF8": "1"}
    with tempfile.TemporaryDirectory() as folder:  # no file of the current folder gets in the way of an import
        try:
            run = subprocess.run(
                [python, "-c", TRIAL], cwd=folder, env=environment, capture_output=True, timeout=patience
            )
        except subprocess.TimeoutExpired as late:
            return Trial(python, _text(late.stdout), None, _last(late.stderr))
    return Trial(python, _text(run.stdout), run.returncode, _last(run.stderr))


def _text(printed: bytes | None) -> str:
    return (printed or b"").decode(errors="replace")


def _last(printed: bytes | None) -> str:
    return (_text(printed).strip().splitlines() or ["no message"])[-1]


def jax_lines(trial: Trial) -> list[Line]:
    """JAX and its version, the other libraries, and whether eight devices add up 0 to 7."""
    version, missing, setup = trial.after("jax"), trial.after("missing"), trial.after("setup")
    if version is None:
        if "No module named 'jax'" in trial.last:
            return [
                Line(
                    "JAX",
                    STOP,
                    f"not installed in {trial.python}",
                    how_to_install(trial.python, f'"jax>={OLDEST_JAX}"'),
                )
            ]
        do = f"Install it anew: {trial.python} -m pip install --force-reinstall jax jaxlib, {elsewhere()}."
        return [Line("JAX", STOP, f"cannot be imported: {_ended(trial)}", do)]
    if release_numbers(version) < release_numbers(OLDEST_JAX):
        do = f'{trial.python} -m pip install --upgrade "jax>={OLDEST_JAX}"; then restart the kernel.'
        return [Line("JAX", STOP, f"{version}, and the course needs {OLDEST_JAX} or newer", do)]
    lines = [Line("JAX", OK, version)]
    if missing:
        packages = {imported: package for package, imported in IMPORTED_AS.items()}
        names = " ".join(packages.get(name, name) for name in missing.split())
        lines.append(Line("libraries", STOP, f"missing: {missing}", how_to_install(trial.python, names)))
    if setup:
        lines.append(Line("devices", STOP, "eight devices do not start", setup))
    elif trial.after("sum") != "28.0":
        do = f"Close other programs and try again; {_variables()}if that does not help, {elsewhere()[3:]}."
        lines.append(Line("devices", STOP, f"eight devices do not work together: {_ended(trial)}", do))
    else:
        lines.append(Line("devices", OK, next(line for line in trial.printed.splitlines() if "device" in line)))
    return lines


def _ended(trial: Trial) -> str:
    if trial.status is None:
        return f"no answer within {PATIENCE} seconds"
    how = f"signal {-trial.status}" if trial.status < 0 else f"status {trial.status}"
    return f"it ended with {how}: {trial.last}"


def _variables() -> str:
    """The settings that can stop JAX and that somebody made here, with what to do."""
    found = [name for name in ("XLA_FLAGS", "JAX_PLATFORMS") if os.environ.get(name)]
    return f"unset {' and '.join(found)} (now {', '.join(os.environ[name] for name in found)}); " if found else ""


def free_memory() -> float | None:
    """GB that a program can still get, also inside a container; None where the system does not say."""
    free = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")))
        group = Path("/sys/fs/cgroup")
        free.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    if not free and sys.platform == "darwin":  # macOS says how much there is, and frees what programs ask for
        with contextlib.suppress(OSError, ValueError):
            free.append(int(subprocess.run(["sysctl", "-n", "hw.memsize"], capture_output=True).stdout))
    return min(free) / 1e9 if free else None


def memory_line(free: float | None) -> Line:
    if free is None:
        return Line("memory", NOTE, "this system does not say", f"Lesson 06 takes {LESSON:g} GB.")
    do = f"Close other programs and browser tabs, shut down kernels that you do not need, {elsewhere()}."
    if free < LESSON:
        return Line("memory", STOP, f"{free:.1f} GB free, and lesson 06 takes {LESSON:g} GB", do)
    if free < COMFORT:
        return Line("memory", NOTE, f"{free:.1f} GB free: enough for one lesson at a time", do)
    return Line("memory", OK, f"{free:.1f} GB free")


def free_disk() -> float:
    return shutil.disk_usage(ROOT).free / 1e9


def disk_line(free: float, installed: bool) -> Line:
    needed, what = (TRACES, "lesson 09 writes traces of") if installed else (INSTALL, "the installation takes")
    if free < needed:
        do = f"Delete or move something; pip cache purge frees what pip keeps; {elsewhere()}."
        return Line("disk", STOP, f"{free:.1f} GB free, and {what} up to {needed:g} GB", do)
    return Line("disk", OK, f"{free:.1f} GB free")


def addresses() -> dict[str, str]:
    """What may have to be fetched, and from where: pip's own setting, if there is one, in place of PyPI."""
    cell = (ROOT / "tools" / "lessons" / "setup_cell.py").read_text(encoding="utf-8")
    name = re.search(r'^REPOSITORY = "(.+)"', cell, re.M)[1]
    index = os.environ.get("PIP_INDEX_URL", "")
    if not index:
        run = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True)
        index = _text(run.stdout).strip() or "https://pypi.org/simple"
    return {"the course's repository": f"https://github.com/{name}", "the package index": f"{index.rstrip('/')}/jax/"}


def unreachable(timeout: float = 6) -> dict[str, str]:
    """By name of what may have to be fetched, why it cannot be; empty where all answer."""

    def problem(url: str) -> str:
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout).close()
        except urllib.error.HTTPError as error:  # it answers, if only to say no
            return "there is no such page" if error.code in (404, 410) else ""
        except (OSError, ValueError) as error:
            return str(getattr(error, "reason", error))
        return ""

    found = addresses()
    with ThreadPoolExecutor() as pool:
        problems = dict(zip(found, pool.map(problem, found.values())))  # noqa: B905 (strict= needs Python 3.10)
    return {name: why for name, why in problems.items() if why}


def network_line(silent: dict[str, str], installed: bool) -> Line:
    if not silent:
        return Line("network", OK, "the course's repository and the package index answer")
    found = "; ".join(f"{name} does not answer ({why})" for name, why in silent.items())
    if hosted() == "Kaggle":
        do = "Switch the internet on: Session options > Internet (Kaggle asks for a verified phone number)."
    else:
        do = "Join the network; behind a proxy, set HTTPS_PROXY to its address; or ask for a copy on a stick."
    if not installed and "the package index" in silent:
        return Line("network", STOP, found, do)
    note = "nothing has to be fetched now" if installed else "the installation does not need it"
    return Line("network", NOTE, f"{found}; {note}", do)


if __name__ == "__main__":
    raise SystemExit(not check_room())
