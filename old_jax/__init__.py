"""Find removed and deprecated JAX APIs in source code, without importing JAX.

Run `python -m old_jax FILE...`, or `find-old-jax` if the package is installed. After `%load_ext old_jax` in a notebook,
each error message that JAX gives to old code is followed by the replacement.
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
