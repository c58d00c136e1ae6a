"""Create a virtual environment and install requirement files in it, unless that has already been done.

usage: environment.py [--newest-python] VENV REQUIREMENTS...

uv, which is ten times as fast as pip, installs the packages if it's on the PATH or pip can install it, and if it can
follow pip's settings. Otherwise, or if uv fails, pip installs them. This script needs only the standard library, and
reports each failure in a single line with advice.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)  # as in pyproject.toml, which Python versions before 3.11 can't parse
NETWORK_ERRORS = (
    "NewConnection|NameResolution|to resolve|service not known|nodename nor|ConnectTimeout|refused|ProxyError"
)
REASONS = {  # advice for patterns in the messages of pip, venv and the system
    "No space left on device|Disk quota exceeded": "the disk is full. The environment needs 2.5 GB.",
    NETWORK_ERRORS: "the package index can't be reached. Connect to the network and try again.",
    "ensurepip is not|No module named .?venv": "this Python has no venv module. "
    "On Debian and Ubuntu: apt-get install python3-venv",
}
# The pip settings that uv has under the same names, as variables such as UV_INDEX_URL.
SHARED_SETTINGS = ("index-url", "extra-index-url", "find-links", "constraint")
# The pip settings that don't affect which packages are chosen. If there are any others, pip installs the packages.
NEUTRAL_SETTINGS = (
    *("cache-dir", "cert", "config-file", "default-timeout", "disable-pip-version-check", "no-input", "progress-bar"),
    *("require-virtualenv", "retries", "root-user-action", "timeout"),
)
# The folder that contains an environment's programs, and their suffix.
BIN, EXE = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
NOT_FOUND, STOPPED = 3, 130  # exit statuses: found no Python newer than OLDEST; stopped by Ctrl-C
REPORT_EVERY = 15  # seconds between messages that a step is still running


def describe_python(python: str) -> str:
    """Return the path and version of a Python's base interpreter, outside any environment, or "" if it doesn't start.

    A pyenv shim, for example, may fail to start.
    """
    code = "import os, sys; print(os.path.realpath(sys._base_executable), sys.version)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def find_newest_python() -> str | None:
    """Return the newest supported Python (this one, one on the PATH or pyenv's), or None if none is newer than 3.11."""
    for minor in range(NEWEST[1], OLDEST[1], -1):
        candidates = glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3"))
        candidates = [sys.executable] * (sys.version_info[1] == minor) + [
            shutil.which(f"python3.{minor}") or "",
            *candidates,
        ]
        if starts := next(filter(describe_python, filter(None, candidates)), None):
            return starts
    return None


def run_step(command: list[str], **variables: str) -> tuple[int, str]:
    """Run a command, report regularly that it's still running, and return its exit status and output."""
    start = time.monotonic()
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as step:
        while True:
            try:
                output, _ = step.communicate(timeout=REPORT_EVERY)
                return step.returncode, output.strip()
            except subprocess.TimeoutExpired:
                print(f"... still running after {time.monotonic() - start:.0f} s", flush=True)


def run_or_exit(command: list[str], problem: str) -> None:
    """Run a command. If it fails, exit with advice or with the reason from its output."""
    status, output = run_step(command)
    if status:
        lines = output.splitlines() or ["no reason given"]
        last_error = ([line for line in lines if line.startswith("ERROR:")] or lines)[-1].strip()
        reason = next((why for signs, why in REASONS.items() if re.search(signs, output)), last_error)
        raise SystemExit(f"Error: {problem}: {reason}")


def find_uv(python: str) -> str | None:
    """Return the path of uv, or None. If uv isn't on the PATH, install it with this Python's pip."""
    if uv := shutil.which("uv"):
        return uv
    status, _ = run_step([python, "-m", "pip", "install", "--quiet", "--retries", "0", "uv"])
    return None if status else os.path.join(os.path.dirname(python), f"uv{EXE}")


def uv_variables(pip_config: str) -> dict[str, str] | None:
    """Convert `pip config list` output to uv's environment variables. Return None if uv can't follow a setting."""
    variables = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # search all indexes, as pip does
    # pip lists the environment's settings first. They override the others, so they're applied last.
    for source, name, value in reversed(re.findall(r"^([\w:]+)[.]([\w-]+)='(.+)'$", pip_config, re.M)):
        # The weekly run's PIP_CONSTRAINT names pre-releases, which only pip installs.
        if name in SHARED_SETTINGS and (source, name) != (":env:", "constraint"):
            variables[f"UV_{name.upper().replace('-', '_')}"] = value
        elif name not in NEUTRAL_SETTINGS:
            return None
    return variables


def install_packages(venv: str, requirements: list[str]) -> None:
    """Install the packages with uv if it can follow pip's settings. If that fails, use pip and show its errors."""
    python = os.path.join(venv, BIN, f"python{EXE}")
    arguments = ["install", "--quiet", *(part for name in requirements for part in ("-r", name))]
    variables = uv_variables(run_step([python, "-m", "pip", "config", "list"])[1])
    uv = None if variables is None else find_uv(python)
    if not uv or run_step([uv, "pip", *arguments, "--python", python], **(variables or {}))[0]:
        run_or_exit([python, "-m", "pip", *arguments, "--retries", "2"], "the packages couldn't be installed")


def main(arguments: list[str]) -> int:
    """Create or update the environment that the arguments specify, and return the exit status."""
    python = getattr(sys, "_base_executable", sys.executable)  # the base interpreter, outside any active environment
    if arguments[0] == "--newest-python":
        python, arguments = find_newest_python(), arguments[1:]
        if python is None:
            print(f"Skipped: the newest JAX needs Python 3.{OLDEST[1] + 1} to 3.{NEWEST[1]}, and none was found.")
            return NOT_FOUND
    venv, *requirements = arguments
    description = describe_python(python)
    stamp = Path(venv, ".installed")  # hashes of the Python and of each installed requirements file
    python_hash = hashlib.sha256(description.encode()).hexdigest()
    file_hashes = {
        name: hashlib.sha256(description.encode() + Path(name).read_bytes()).hexdigest() for name in requirements
    }
    installed = stamp.read_text().split() if stamp.exists() else []
    missing = [name for name in requirements if file_hashes[name] not in installed]
    if not missing:
        return 0
    start = time.monotonic()
    if python_hash not in installed:
        [version] = re.findall(r" (3[.][0-9]+)", description)[:1]
        print(f"Creating {venv} with Python {version} ...", flush=True)
        run_or_exit([python, "-m", "venv", "--clear", venv], f"{python} couldn't create {venv}")
        installed, missing = [python_hash], requirements
        stamp.write_text(python_hash)  # so that an interrupted installation keeps the environment
    print(f"Installing the packages in {', '.join(missing)} (this takes minutes, the first time only) ...", flush=True)
    install_packages(venv, requirements)
    stamp.write_text("\n".join([*installed, *(file_hashes[name] for name in missing)]))
    print(f"Ready after {time.monotonic() - start:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nStopped. Run the same command to continue.", file=sys.stderr)
        raise SystemExit(STOPPED) from None
