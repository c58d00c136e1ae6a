"""Check whether this machine is ready for the course: `make doctor`, or `check_setup()` in a notebook.

This module needs only the standard library, so it runs before anything is installed, and even on a version of Python
that's too old. It tests JAX in a separate process with a time limit, so that a crash or a hang is reported instead of
ending the check. (In a kernel that has run the setup cell, it tests the kernel's own devices.)
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
# Packages in requirements.txt that have a different import name.
IMPORTED_AS = {"orbax-checkpoint": "orbax", "scikit-learn": "sklearn"}
TRIAL_TIMEOUT = 40  # seconds; JAX starts in two seconds on most machines, but takes longer if its files aren't cached
LESSON_MEMORY, COMFORTABLE_MEMORY = (
    1.0,
    2.0,
)  # GB of free memory: lesson 06 needs 0.9 at its peak; the second value leaves room for a browser
# GB of free disk space for the installation, and for lesson 09's traces.
INSTALLATION_DISK, TRACES_DISK = 3.0, 0.2
OK, NOTE, STOP = "OK", "NOTE", "STOP"


def _libraries() -> list[str]:
    """Return the import names of the packages in requirements.txt, except JAX (tested separately) and JupyterLab."""
    path = ROOT / "requirements.txt"
    packages = re.findall(r"^[\w-]+", path.read_text(encoding="utf-8") if path.exists() else "", re.M)
    return [IMPORTED_AS.get(name) or name for name in packages if name not in ("jax", "jupyterlab")]


# The trial process runs this program, which prints a key and a value on each line. The lines show how far it got.
TRIAL_PROGRAM = f"""
import contextlib, importlib.util, io, sys
print("python", *sys.version_info[:3], flush=True)
print("missing", *[name for name in {_libraries()!r} if not importlib.util.find_spec(name)], flush=True)
import jax
print("jax", jax.__version__, flush=True)
from utils.devices import SetupError, start_devices
description = io.StringIO()
try:
    with contextlib.redirect_stdout(description):
        devices = start_devices(8)
except SetupError as error:
    print("setup", error, flush=True)
    sys.exit(3)
print("devices", description.getvalue().splitlines()[0], flush=True)
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
x = jax.device_put(jnp.arange(8.0), NamedSharding(Mesh(np.array(devices), ("i",)), P("i")))
print("sum", float(jax.jit(jnp.sum)(x)), flush=True)
"""


@dataclass(frozen=True)
class Check:
    """The result of a check, with advice if its status isn't OK."""

    name: str
    status: str
    result: str
    advice: str = ""


@dataclass(frozen=True)
class Trial:
    """The output of the trial process, its exit status (None if it timed out), and the last line of its stderr."""

    python: str
    stdout: str
    status: int | None
    last_line: str = ""

    def value_of(self, word: str) -> str | None:
        """Return the rest of the output line that begins with this word, or None if there's no such line."""
        for line in self.stdout.splitlines():
            if line.split(" ")[0] == word:
                return line[len(word) :].strip()
        return None


def check_setup() -> bool:
    """Print the result of each check, with advice for those that failed. Return whether the machine is ready."""
    with ThreadPoolExecutor() as pool:  # start JAX and test the network at the same time
        trial_run, network_check = pool.submit(run_trial), pool.submit(find_unreachable)
        trial, unreachable = trial_run.result(), network_check.result()
    lines = [check_machine(), check_python(trial), *check_jax(trial)]
    installed = all(line.status == OK for line in lines)
    lines += [check_memory(free_memory()), check_disk(free_disk(), installed), check_network(unreachable, installed)]
    for line in lines:
        print(f"{line.name:<10} {line.status:<5} {line.result}")
        if line.advice:
            print(f"{'':<16} {line.advice}")
    stops = sum(line.status == STOP for line in lines)
    print("Ready." if not stops else f"Not ready: fix the {stops} problem{'s' * (stops > 1)} marked {STOP}.")
    return not stops


def check_machine() -> Check:
    """Describe the operating system, the number of cores and the hosting service. The status is always OK."""
    return Check("machine", OK, f"{platform.platform()}, {os.cpu_count()} cores, {hosting_service() or 'not hosted'}")


def hosting_service() -> str:
    """Return 'Colab' or 'Kaggle' if this process runs there, else ""."""
    if "google.colab" in sys.modules:
        return "Colab"
    return "Kaggle" if "KAGGLE_KERNEL_RUN_TYPE" in os.environ else ""


def alternative_advice() -> str:
    """Return a closing clause for advice, which suggests an alternative to fixing the problem on this machine."""
    return "or start a new runtime" if hosting_service() == "Colab" else "or open the lesson in Colab"


def installation_advice(python: str, packages: str) -> str:
    """Return advice on how to install the packages for the interpreter `python`."""
    if (sys.platform, platform.machine()) == ("darwin", "x86_64"):
        return "JAX has no packages for Macs with an Intel chip: open the lesson in Colab, Binder or Codespaces."
    if hosting_service():
        return f"Run in a cell: !{python} -m pip install {packages}; then restart the kernel."
    return (
        f"Type make lab in the course's folder, which installs the packages in a few minutes, {alternative_advice()}."
    )


def check_python(trial: Trial) -> Check:
    """Check that the version of Python that ran the trial is new enough."""
    version = tuple(map(int, (trial.value_of("python") or "0").split()))
    newest = ".".join(map(str, NEWEST))
    version_text, oldest = ".".join(map(str, version)), ".".join(map(str, OLDEST))
    if version >= OLDEST:
        return Check("Python", OK, version_text)
    advice = f"Install Python {newest} from python.org and type make PYTHON=python{newest} lab, {alternative_advice()}."
    return Check("Python", STOP, f"{version_text}, but the course needs {oldest} or newer", advice)


def course_python() -> str:
    """Return the Python interpreter to test: in a notebook the kernel's, elsewhere .venv's if it exists."""
    environment = ROOT / ".venv" / "bin" / "python"
    return sys.executable if "ipykernel" in sys.modules or not environment.exists() else str(environment)


def run_trial() -> Trial:
    """Run the trial, and return its output and exit status.

    If this process has started JAX's devices, run the trial here, because only one process at a time can use a TPU.
    Otherwise, run it in a separate process.
    """
    if not devices._started:
        return run_trial_process(course_python())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        exec(TRIAL_PROGRAM, {})
    return Trial(sys.executable, printed.getvalue(), 0)


def run_trial_process(python: str, timeout: float = TRIAL_TIMEOUT) -> Trial:
    """Run the trial in a separate process of the interpreter `python`, for at most `timeout` seconds."""
    # Turn preallocation off, because JAX would otherwise reserve most of a GPU's memory.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUTF8": "1"}
    with tempfile.TemporaryDirectory() as folder:  # keep files in the current folder from shadowing an import
        try:
            run = subprocess.run(
                [python, "-c", TRIAL_PROGRAM], cwd=folder, env=environment, capture_output=True, timeout=timeout
            )
        except subprocess.TimeoutExpired as late:
            return Trial(python, _decode(late.stdout), None, _last_line(late.stderr))
    return Trial(python, _decode(run.stdout), run.returncode, _last_line(run.stderr))


def _decode(printed: bytes | None) -> str:
    return (printed or b"").decode(errors="replace")


def _last_line(printed: bytes | None) -> str:
    return (_decode(printed).strip().splitlines() or ["no message"])[-1]


def check_jax(trial: Trial) -> list[Check]:
    """Check JAX's version, the other libraries, and whether eight devices can add up the numbers 0 to 7."""
    version, missing, setup = trial.value_of("jax"), trial.value_of("missing"), trial.value_of("setup")
    if version is None:
        if "No module named 'jax'" in trial.last_line:
            return [
                Check(
                    "JAX",
                    STOP,
                    f"not installed in {trial.python}",
                    installation_advice(trial.python, f'"jax>={OLDEST_JAX}"'),
                )
            ]
        advice = f"Reinstall it: {trial.python} -m pip install --force-reinstall jax jaxlib, {alternative_advice()}."
        return [Check("JAX", STOP, f"can't be imported: {_describe_end(trial)}", advice)]
    if release_numbers(version) < release_numbers(OLDEST_JAX):
        advice = f'{trial.python} -m pip install --upgrade "jax>={OLDEST_JAX}"; then restart the kernel.'
        return [Check("JAX", STOP, f"{version}, but the course needs {OLDEST_JAX} or newer", advice)]
    lines = [Check("JAX", OK, version)]
    if missing:
        packages = {imported: package for package, imported in IMPORTED_AS.items()}
        names = " ".join(packages.get(name, name) for name in missing.split())
        lines.append(Check("libraries", STOP, f"missing: {missing}", installation_advice(trial.python, names)))
    if setup:
        lines.append(Check("devices", STOP, "eight devices don't start", setup))
    elif trial.value_of("sum") != "28.0":
        last_resort = alternative_advice().removeprefix("or ")
        advice = f"Close other programs and try again; {_advice_on_variables()}if that doesn't help, {last_resort}."
        lines.append(Check("devices", STOP, f"eight devices don't work together: {_describe_end(trial)}", advice))
    else:
        lines.append(Check("devices", OK, trial.value_of("devices") or ""))
    return lines


def _describe_end(trial: Trial) -> str:
    if trial.status is None:
        return f"no answer within {TRIAL_TIMEOUT} seconds"
    ending = f"signal {-trial.status}" if trial.status < 0 else f"status {trial.status}"
    return f"the trial ended with {ending}: {trial.last_line}"


def _advice_on_variables() -> str:
    """Return advice to unset environment variables that can keep JAX from starting, or "" if none is set."""
    names = [name for name in ("XLA_FLAGS", "JAX_PLATFORMS") if os.environ.get(name)]
    return f"unset {' and '.join(names)} (now {', '.join(os.environ[name] for name in names)}); " if names else ""


def free_memory() -> float | None:
    """Return the free memory in GB, within the container's limit if there is one, or None if it's unknown."""
    free = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")))
        group = Path("/sys/fs/cgroup")
        free.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    if not free and sys.platform == "darwin":  # use the total memory, because macOS frees memory on demand
        with contextlib.suppress(OSError, ValueError):
            free.append(int(subprocess.run(["sysctl", "-n", "hw.memsize"], capture_output=True).stdout))
    return min(free) / 1e9 if free else None


def check_memory(free: float | None) -> Check:
    """Check that the free memory (in GB, or None if unknown) is enough for lesson 06."""
    if free is None:
        return Check("memory", NOTE, "this system doesn't report free memory", f"Lesson 06 needs {LESSON_MEMORY:g} GB.")
    advice = f"Close other programs and browser tabs, shut down kernels that you don't need, {alternative_advice()}."
    if free < LESSON_MEMORY:
        return Check("memory", STOP, f"{free:.1f} GB free, but lesson 06 needs {LESSON_MEMORY:g} GB", advice)
    if free < COMFORTABLE_MEMORY:
        return Check("memory", NOTE, f"{free:.1f} GB free: enough for one lesson at a time", advice)
    return Check("memory", OK, f"{free:.1f} GB free")


def free_disk() -> float:
    """Return the free disk space in GB."""
    return shutil.disk_usage(ROOT).free / 1e9


def check_disk(free: float, installed: bool) -> Check:
    """Check that the free disk space (in GB) is enough for the installation or, after it, for lesson 09's traces."""
    needed, purpose = (
        (TRACES_DISK, "lesson 09 writes traces of") if installed else (INSTALLATION_DISK, "the installation takes")
    )
    if free < needed:
        advice = f"Delete or move files; pip cache purge empties pip's cache; {alternative_advice()}."
        return Check("disk", STOP, f"{free:.1f} GB free, but {purpose} up to {needed:g} GB", advice)
    return Check("disk", OK, f"{free:.1f} GB free")


def download_urls() -> dict[str, str]:
    """Return the URLs, by name, that the course may have to download from. An index in pip's settings replaces PyPI."""
    cell = (ROOT / "tools" / "lessons" / "setup_cell.py").read_text(encoding="utf-8")
    [name] = re.findall(r'^REPOSITORY = "(.+)"', cell, re.M)
    index = os.environ.get("PIP_INDEX_URL", "")
    if not index:
        run = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True)
        index = _decode(run.stdout).strip() or "https://pypi.org/simple"
    return {"the course's repository": f"https://github.com/{name}", "the package index": f"{index.rstrip('/')}/jax/"}


def find_unreachable(timeout: float = 6) -> dict[str, str]:
    """Return the names of the download sources that can't be reached, each with the reason."""

    def problem(url: str) -> str:
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout).close()
        except urllib.error.HTTPError as error:  # the server is reachable, even if it refuses the request
            return "page not found" if error.code in (404, 410) else ""
        except (OSError, ValueError) as error:
            return str(getattr(error, "reason", error))
        return ""

    urls = download_urls()
    with ThreadPoolExecutor() as pool:
        problems = dict(zip(urls, pool.map(problem, urls.values())))  # noqa: B905 (strict= needs Python 3.10)
    return {name: reason for name, reason in problems.items() if reason}


def check_network(unreachable: dict[str, str], installed: bool) -> Check:
    """Report the unreachable sources. The status is STOP only if the installation needs one of them."""
    if not unreachable:
        return Check("network", OK, "the course's repository and the package index respond")
    problems = "; ".join(f"{name} doesn't respond ({reason})" for name, reason in unreachable.items())
    if hosting_service() == "Kaggle":
        advice = "Turn on the internet: Session options > Internet (Kaggle asks for a verified phone number)."
    else:
        advice = (
            "Connect to the network; behind a proxy, set HTTPS_PROXY to its address; or ask for a copy on a USB drive."
        )
    if not installed and "the package index" in unreachable:
        return Check("network", STOP, problems, advice)
    note = "nothing needs to be downloaded now" if installed else "the installation doesn't need it"
    return Check("network", NOTE, f"{problems}; {note}", advice)


if __name__ == "__main__":
    raise SystemExit(not check_setup())
