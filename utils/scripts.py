"""Run a script that a lesson wrote, as a reader would run it in a terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import shardcost


class ScriptError(RuntimeError):
    """The error raised if a script fails. Its message ends with the script's output; a notebook shows no traceback."""

    def _render_traceback_(self) -> list[str]:  # IPython calls this
        return [f"ScriptError: {self}"]


def run_script(command: str, *, folder: str | Path = ".", check: bool = True, **environment: object) -> None:
    """Run ``python COMMAND`` in a separate process, and print the command and its output.

    The process uses emulated CPU devices, because no other process can use an accelerator that this kernel has opened.
    In a terminal, the same script uses any accelerators that it finds. The process can import `shardcost` as if it were
    installed.

    Args:
        command: the script's path, relative to the current folder, and its arguments, as typed in a shell.
        folder: the script's working directory.
        check: raise an error if the script fails. Otherwise, also print its stderr and its exit status.
        environment: additional environment variables, such as ``JAX_NUM_CPU_DEVICES=4``.

    Raises ScriptError, with the script's output, if `check` is set and the exit status isn't 0.
    """
    variables = {name: str(value) for name, value in environment.items()}
    script, *arguments = shlex.split(command)
    print("$", *(f"{name}={value}" for name, value in variables.items()), "python", command)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(Path(shardcost.__file__).parents[1])]))
    process = subprocess.run(
        [sys.executable, Path(script).resolve(), *arguments],
        cwd=folder,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": path} | variables,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if process.returncode and check:
        output = f"{process.stdout}{process.stderr}".rstrip() or "(no output)"
        raise ScriptError(f"{script} ended with status {process.returncode}. It printed:\n\n{output}")
    print(process.stdout)
    if process.returncode:
        print(f"{process.stderr}(exit status {process.returncode})\n")
