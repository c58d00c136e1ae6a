"""Meshes over the course's devices, spelled the same on every supported JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jax.sharding import AxisType, Mesh

from utils.devices import started_devices


def make_mesh(sizes: Sequence[int], names: Sequence[str], *, axis_types: Sequence[AxisType] | None = None) -> Mesh:
    """Arrange the first `prod(sizes)` of the course's devices in a mesh: sizes and names as in `jax.make_mesh`.

    `axis_types` is automatic for every axis unless given. `jax.make_mesh` differs in three ways: its default became
    explicit in 0.9.0, it takes the default platform's devices, and on a TPU it may reorder them to suit the wiring.
    Here device i stands at position i, row by row, on every machine.

    Raises ValueError where sizes and names differ in number, a size is below one, a name stands twice, or the
    product of the sizes exceeds the number of devices.
    """
    sizes, names, devices = tuple(sizes), tuple(names), started_devices()
    if not sizes or len(sizes) != len(names):
        raise ValueError(
            f"a mesh needs one name for each size; got {len(sizes)} sizes {sizes} and {len(names)} names {names}"
        )
    if min(sizes) < 1:
        raise ValueError(f"every axis of a mesh has at least one device; got sizes {sizes}")
    if len(set(names)) < len(names):
        raise ValueError(f"every axis of a mesh has a name of its own; got {names}")
    if math.prod(sizes) > len(devices):
        product = " x ".join(map(str, sizes))
        raise ValueError(f"a mesh of {product} needs {math.prod(sizes)} devices, and there are {len(devices)}")
    types = (AxisType.Auto,) * len(sizes) if axis_types is None else tuple(axis_types)
    if len(types) != len(sizes):
        raise ValueError(f"a mesh needs one axis type for each size; got {len(types)} for sizes {sizes}")
    return Mesh(np.array(devices[: math.prod(sizes)]).reshape(sizes), names, axis_types=types)
