"""Create a virtual environment and install what requirement files name, once: the second time this takes no time.

With uv, where it is on the PATH or can be had: it takes seconds, and environments share files. Else with pip.
Runs on a bare Python: only the standard library, and every failure is one line that says what to do.
usage: environment.py [--newest-python] VENV REQUIREMENTS...
"""

from __future__ import annotations

import glob
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time

OLDEST, NEWEST = (3, 11), (3, 13)  # of the Pythons in pyproject.toml, which this Python may be too old to read
NO_NETWORK = (  # what pip and the system say, in their several versions
    "NewConnectionError",
    "NameResolutionError",
    "Failed to resolve",
    "Name or service not known",
    "Temporary failure in name resolution",
    "nodename nor servname",
    "ConnectTimeout",
    "Connection refused",
    "ProxyError",
)
NOT_FOUND = 3  # exit status: there is no Python newer than the one that runs
STOPPED = 130  # exit status: by Ctrl-C
ROOM = 2.5  # GB of free disk: what the largest of the environments takes, and what is unpacked on the way
PATIENCE = 15  # seconds after which a step says that it is still at work


def version_of(python: str) -> tuple[int, int] | None:
    """The version of an interpreter that really starts (a pyenv shim may exist and not start); None otherwise."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        run = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30)
        major, minor = map(int, run.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return major, minor


def newest_python() -> str | None:
    """The newest Python found on the PATH, among pyenv's, or among uv's; None if none is newer than the oldest."""
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1], -1)]
    found = [path for path in map(shutil.which, names) if path]
    for pattern in ("~/.pyenv/versions/*/bin/python3", "~/.local/share/uv/python/*/bin/python3"):  # elsewhere: the PATH
        found += glob.glob(os.path.expanduser(pattern))
    versions = {path: version_of(path) for path in [*found, sys.executable]}
    # JAX's wheels follow a new Python by some months, so a release that has none yet must not be chosen.
    usable = [path for path, version in versions.items() if version and OLDEST < version <= NEWEST]
    return max(usable, key=lambda path: versions[path], default=None)


def fail(message: str) -> None:
    print(f"Error: {message}", file=sys.stderr)
    raise SystemExit(1)


def followed(command: list[str], **options: object) -> tuple[int, str]:
    """Run a step, with a line now and then while it lasts; its exit status, and what it said."""
    start = time.monotonic()
    step = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    while True:
        try:
            said, _ = step.communicate(timeout=PATIENCE)
            return step.returncode, said.strip()
        except subprocess.TimeoutExpired:
            print(f"... still at work after {time.monotonic() - start:.0f} s", flush=True)
        except BaseException:
            step.kill()
            step.wait()
            raise


def run(command: list[str], problem: str) -> None:
    """Run a step; if it fails, show the line in which it says why."""
    status, output = followed(command)
    if status:
        if "No space left on device" in output or "Disk quota exceeded" in output:
            fail(f"{problem}: the disk is full. The environment takes {ROOM:g} GB.")
        if any(sign in output for sign in NO_NETWORK):
            fail(f"{problem}: the package index cannot be reached. Connect to the network and try again.")
        lines = output.splitlines() or ["no reason given"]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines
        fail(f"{problem}: {errors[-1].strip()}")


def main(arguments: list[str]) -> int:
    python = getattr(sys, "_base_executable", sys.executable)  # not the one of an active environment
    if arguments[0] == "--newest-python":
        arguments = arguments[1:]
        python = newest_python()
        if python is None:
            print(f"Skipped: the newest JAX needs Python 3.{OLDEST[1] + 1} to 3.{NEWEST[1]}, and none was found.")
            return NOT_FOUND
    venv, requirements = arguments[0], arguments[1:]
    if sys.version_info < OLDEST:
        needed = f"the course needs 3.{OLDEST[1]} or newer: make PYTHON=python3.{NEWEST[1]} ..."
        fail(f"this is Python {sys.version.split()[0]}, and {needed}")
    if not all(importlib.util.find_spec(module) for module in ("venv", "ensurepip")):
        fail("this Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv")

    wanted = {name: digest(python, name) for name in requirements}
    stamp = os.path.join(venv, ".installed")
    installed = read(stamp)
    missing = [name for name in requirements if wanted[name] not in installed]
    if not missing:
        return 0
    start = time.monotonic()
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(venv))).free / 1e9
    if not installed and free < ROOM:
        fail(f"{free:.1f} GB of disk are free here, and the environment takes up to {ROOM:g} GB.")
    if digest(python) not in installed:
        version = ".".join(map(str, version_of(python) or ()))
        print(f"Creating {venv} with Python {version} ...", flush=True)
        create(venv, python)
        installed, missing = digest(python), requirements
        write(stamp, installed)  # who is interrupted from here on goes on where they were
    print(
        f"Installing what {', '.join(missing)} name{'s' * (len(missing) == 1)} (minutes, the first time only) ...",
        flush=True,
    )
    install(venv, requirements)
    write(stamp, "\n".join([installed, *(wanted[name] for name in missing)]))
    print(f"Ready after {time.monotonic() - start:.0f} s.", flush=True)
    return 0


def program(venv: str, name: str) -> str:
    """Where an environment keeps a program."""
    return os.path.join(venv, *(("Scripts", f"{name}.exe") if os.name == "nt" else ("bin", name)))


def create(venv: str, python: str) -> None:
    """A new environment, with pip in it for whoever wants it."""
    run([python, "-m", "venv", "--clear", venv], f"{venv} could not be created")


def install(venv: str, requirements: list[str]) -> None:
    """What the files name, by uv where that works; whatever stops uv, pip is asked, and its words are shown."""
    python = program(venv, "python")
    named = [part for name in requirements for part in ("-r", name)]
    settings = as_uv_says(pip_settings(python))
    if settings is not None and (uv := found_uv(venv, python)):
        command = [uv, "pip", "install", "--quiet", "--python", python, *named]
        if followed(command, env={**os.environ, **settings})[0] == 0:
            return
    pip = [python, "-m", "pip", "install", "--quiet", "--retries", "2"]
    run(pip + named, "the packages could not be installed")


def found_uv(venv: str, python: str) -> str | None:
    """The one on the PATH, or one that pip puts into the environment; None where there is none to be had."""
    if uv := shutil.which("uv"):
        return uv
    pip = [python, "-m", "pip", "install", "--quiet", "--retries", "0", "uv"]
    if subprocess.run(pip, capture_output=True).returncode:
        return None
    return program(venv, "uv")


def pip_settings(python: str) -> dict[str, str]:
    """What pip was told, by files or by the environment, such as {'index-url': 'https://...'}."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    return {name: value.strip("'") for name, value in re.findall(r"^[\w:]*[.]([\w-]+)=(.*)$", listed, re.M)}


def as_uv_says(told: dict[str, str]) -> dict[str, str] | None:
    """The same, as uv's environment variables; None where pip was told what uv would understand otherwise."""
    if {"constraint", "pre", "no-index", "trusted-host", "proxy"} & told.keys():
        return None
    variables = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    settings = {variables[name]: value for name, value in told.items() if name in variables and value}
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_HTTP_RETRIES": "1", **settings}  # of all indexes, as pip does


def digest(python: str, name: str | None = None) -> str:
    """What stands for an interpreter, or for a requirements file installed for it.

    The interpreter is the one below any environment that happens to be active, and its exact version counts.
    """
    code = "import os, sys; print(os.path.realpath(sys._base_executable), sys.version)"
    base = subprocess.run([python, "-c", code], capture_output=True, text=True).stdout
    hashed = hashlib.sha256(base.encode())
    if name:
        with open(name, "rb") as file:
            hashed.update(file.read())
    return hashed.hexdigest()


def write(stamp: str, text: str) -> None:
    with open(stamp, "w") as file:
        file.write(text)


def read(stamp: str) -> str:
    if not os.path.exists(stamp):
        return ""
    with open(stamp) as file:
        return file.read()


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        raise SystemExit(STOPPED) from None
