"""Spellings that differ between the supported versions of JAX (0.7.2 to the newest), and nothing else."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def spec_text(spec: Any) -> str:
    """Spell a PartitionSpec as people type it: ``P(('x', 'y'))``.

    The repr of 0.7.2 begins with ``PartitionSpec``, and every version's ends a single tuple with ``,)``.
    """
    return f"P({', '.join(repr(entry) for entry in spec)})"


def device_text(device: Any) -> str:
    """Spell a device as ``cpu:3``. Before 0.10.0 its own name is ``TFRT_CPU_3``."""
    return f"{device.platform}:{device.id}"


def double_precision() -> AbstractContextManager:
    """Within the block JAX has float64. Before 0.8 the context stood in `jax.experimental`."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()
