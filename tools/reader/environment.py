"""Create a virtual environment and install what requirement files name, once: the second time this takes no time.

uv installs, ten times as fast as pip, where it is on the PATH or pip can fetch it; else, and where it fails, pip does.
Runs on a bare Python: only the standard library, and every failure is one line that says what to do.
usage: environment.py [--newest-python] VENV REQUIREMENTS...
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

OLDEST, NEWEST = (3, 11), (3, 13)  # of the Pythons in pyproject.toml, which this Python may be too old to read
OFFLINE = "NewConnection|NameResolution|to resolve|service not known|nodename nor|ConnectTimeout|refused|ProxyError"
WHY = {  # by what pip, venv and the system say, in their several versions
    "No space left on device|Disk quota exceeded": "the disk is full. The environment takes 2.5 GB.",
    OFFLINE: "the package index cannot be reached. Connect to the network and try again.",
    "ensurepip is not|No module named .?venv": "no venv module. On Debian and Ubuntu: apt-get install python3-venv",
}
FOR_UV = {  # what pip was told, by files or by the environment, as uv's variables
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
}
# What uv would read otherwise: PIP_CONSTRAINT admits the pre-releases that it names, which the weekly run needs.
FOR_PIP = r"[.](no-index|pre|proxy|trusted-host)=|:env:[.]constraint='[^']"
BIN, EXE = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")  # of an environment
NOT_FOUND, STOPPED = 3, 130  # exit status: no Python is newer than the oldest; Ctrl-C
PATIENCE = 15  # seconds after which a step says that it is still at work


def base(python: str) -> str:
    """Which interpreter lies below any active environment, and its version; '' if it does not start (pyenv's shims)."""
    code = "import os, sys; print(os.path.realpath(sys._base_executable), sys.version)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def newest_python() -> str | None:
    """The newest Python that JAX has wheels for: this one, or on the PATH, or pyenv's. None if only the oldest is."""
    for minor in range(NEWEST[1], OLDEST[1], -1):
        found = glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3"))
        found = [sys.executable] * (sys.version_info[1] == minor) + [shutil.which(f"python3.{minor}") or "", *found]
        if starts := next(filter(base, filter(None, found)), None):
            return starts
    return None


def run(command: list[str], **variables: str) -> tuple[int, str]:
    """Run a step, with a line now and then while it lasts; its exit status, and what it said."""
    start = time.monotonic()
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env={**os.environ, **variables}, **both) as step:
        while True:
            try:
                said, _ = step.communicate(timeout=PATIENCE)
                return step.returncode, said.strip()
            except subprocess.TimeoutExpired:
                print(f"... still at work after {time.monotonic() - start:.0f} s", flush=True)


def must(command: list[str], problem: str) -> None:
    """Run a step; if it fails, end with why, or with the line in which it says so."""
    status, said = run(command)
    if status:
        lines = said.splitlines() or ["no reason given"]
        last = ([line for line in lines if line.startswith("ERROR:")] or lines)[-1].strip()
        why = next((why for signs, why in WHY.items() if re.search(signs, said)), last)
        raise SystemExit(f"Error: {problem}: {why}")


def found_uv(python: str) -> str | None:
    """The one on the PATH, or one that pip puts beside this Python; None where there is none to be had."""
    if uv := shutil.which("uv"):
        return uv
    status, _ = run([python, "-m", "pip", "install", "--quiet", "--retries", "0", "uv"])
    return None if status else os.path.join(os.path.dirname(python), f"uv{EXE}")


def install(venv: str, requirements: list[str]) -> None:
    """By uv, told what pip was told; whatever stops it, pip is asked, and its words are shown."""
    python = os.path.join(venv, BIN, f"python{EXE}")
    named = ["install", "--quiet", *(part for name in requirements for part in ("-r", name))]
    _, told = run([python, "-m", "pip", "config", "list"])
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # of all indexes, as pip does
    for name, value in reversed(re.findall(r"^[\w:]+[.]([\w-]+)='(.+)'$", told, re.M)):  # the environment's come first
        settings |= {FOR_UV[name]: value} if name in FOR_UV else {}
    uv = None if re.search(FOR_PIP, told) else found_uv(python)
    if not uv or run([uv, "pip", *named, "--python", python], **settings)[0]:
        must([python, "-m", "pip", *named, "--retries", "2"], "the packages could not be installed")


def main(arguments: list[str]) -> int:
    python = getattr(sys, "_base_executable", sys.executable)  # not the one of an active environment
    if arguments[0] == "--newest-python":
        python, arguments = newest_python(), arguments[1:]
        if python is None:
            print(f"Skipped: the newest JAX needs Python 3.{OLDEST[1] + 1} to 3.{NEWEST[1]}, and none was found.")
            return NOT_FOUND
    venv, *requirements = arguments
    below, stamp = base(python), Path(venv, ".installed")  # the stamp: what made it, and each file installed by that
    made = hashlib.sha256(below.encode()).hexdigest()
    wanted = {name: hashlib.sha256(below.encode() + Path(name).read_bytes()).hexdigest() for name in requirements}
    installed = stamp.read_text().split() if stamp.exists() else []
    missing = [name for name in requirements if wanted[name] not in installed]
    if not missing:
        return 0
    start = time.monotonic()
    if made not in installed:
        print(f"Creating {venv} with Python {re.search(r' (3[.][0-9]+)', below)[1]} ...", flush=True)
        must([python, "-m", "venv", "--clear", venv], f"{python} could not create {venv}")
        installed, missing = [made], requirements
        stamp.write_text(made)  # who is interrupted from here on goes on where they were
    print(f"Installing what stands in {', '.join(missing)} (minutes, the first time only) ...", flush=True)
    install(venv, requirements)
    stamp.write_text("\n".join([*installed, *(wanted[name] for name in missing)]))
    print(f"Ready after {time.monotonic() - start:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        raise SystemExit(STOPPED) from None
