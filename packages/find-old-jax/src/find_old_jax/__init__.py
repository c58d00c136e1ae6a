"""Find removed and deprecated JAX APIs in source code, without importing JAX.

Run `find-old-jax FILE...` or `python -m find_old_jax FILE...`. After `%load_ext find_old_jax` in a notebook, each error
message that JAX gives to old code is followed by the replacement.
"""


def load_ipython_extension(shell) -> None:
    """Start to explain errors in an IPython shell. `%load_ext find_old_jax` calls this."""
    shell.events.register("post_run_cell", _after)


def unload_ipython_extension(shell) -> None:
    """Stop explaining errors in an IPython shell."""
    shell.events.unregister("post_run_cell", _after)


def _after(result) -> None:
    from find_old_jax.run import explain

    error = result.error_in_exec or result.error_before_exec
    if error is not None:
        explain(error)
