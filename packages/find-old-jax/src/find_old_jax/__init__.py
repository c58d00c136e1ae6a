"""Find removed and deprecated JAX APIs in source code, without importing JAX.

Run `find-old-jax FILE...` or `python -m find_old_jax FILE...`. In a notebook, `%load_ext find_old_jax` prints the
replacement after each error that an old JAX API causes.
"""


def load_ipython_extension(shell) -> None:
    """Start explaining errors in an IPython shell. `%load_ext find_old_jax` calls this function."""
    shell.events.register("post_run_cell", _explain_failure)


def unload_ipython_extension(shell) -> None:
    """Stop explaining errors in an IPython shell."""
    shell.events.unregister("post_run_cell", _explain_failure)


def _explain_failure(result) -> None:
    from find_old_jax.run_and_explain import explain

    error = result.error_in_exec or result.error_before_exec
    if error is not None:
        explain(error)
