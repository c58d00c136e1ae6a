"""A JAX plugin that behaves like a TPU in one respect: only the first process that starts JAX can use it.

To use it, add the folder `tests/chip` to PYTHONPATH. The first process then locks the file CHIP_LOCK until it ends.
Any other process that starts JAX in the meantime fails, as it would with a real TPU, unless it requests only CPUs
(JAX_PLATFORMS=cpu). The stand-in provides no devices.
"""

import fcntl
import os

_locks = []  # open until the process ends


def initialize() -> None:
    """Register the stand-in. JAX calls this function before it starts its backends."""
    from jax._src import xla_bridge

    if xla_bridge._backend_factories.pop("tpu", None):  # probing for a real TPU is slow, and libtpu prints warnings
        xla_bridge.register_backend_factory("tpu", _refuse, priority=-500, fail_quietly=True)
    lock = open(os.environ["CHIP_LOCK"], "a+")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _locks.append(lock)
    except OSError:
        xla_bridge.register_backend_factory("chip", _refuse, priority=500, fail_quietly=False)


def _refuse() -> None:
    raise RuntimeError("The TPU is already in use by another process (says the stand-in).")
