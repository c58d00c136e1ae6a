"""Run a script and, if it fails with an error that JAX users often see, print the cause and the fix."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path

from find_old_jax import error_lookup


def run(command: list[str], target: str | None = None) -> int:
    """Run a script with its arguments, as `python` would, and return its exit status.

    If the script raises an exception, print the traceback and any matching problem from problems.toml or row of
    appendix 90, and return 1.
    """
    script, *arguments = command
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        explain(error, target)
        return 1
    return 0


def explain(error: BaseException, target: str | None = None) -> None:
    """Print the entry in the problem index or the row of appendix 90 that explains an error, if there is one.

    `target` is the JAX version that raised the error. None means the imported one.
    """
    message = f"{type(error).__name__}: {error}"
    try:
        known = error_lookup.explain(message, target or _installed_version())
    except ValueError:
        known = error_lookup.explain(message)
    if known:
        print(f"\n{'Old code: ' if isinstance(known, error_lookup.Answer) else ''}{known}", file=sys.stderr)


def _installed_version() -> str | None:
    jax = sys.modules.get("jax")
    return getattr(jax, "__version__", None)
