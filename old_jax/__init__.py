"""The finder of old JAX: `python -m old_jax FILE...`, and `find-old-jax` where it is installed. It needs Python alone.

`%load_ext old_jax` in a notebook: from then on, what JAX says to old code is followed by what to write instead.
"""


def load_ipython_extension(shell) -> None:
    shell.events.register("post_run_cell", _after)


def unload_ipython_extension(shell) -> None:
    shell.events.unregister("post_run_cell", _after)


def _after(result) -> None:
    from old_jax.run import explain

    error = result.error_in_exec or result.error_before_exec
    if error is not None:
        explain(error)
