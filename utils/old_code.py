"""`%load_ext utils.old_code`: from now on, what JAX says to old code is followed by what to write instead."""

from __future__ import annotations

from utils.old.run import explain


def _after(result) -> None:
    error = result.error_in_exec or result.error_before_exec
    if error is not None:
        explain(error)


def load_ipython_extension(shell) -> None:
    shell.events.register("post_run_cell", _after)


def unload_ipython_extension(shell) -> None:
    shell.events.unregister("post_run_cell", _after)
