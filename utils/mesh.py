"""Make the same meshes of the course's devices on every machine and every supported version of JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jax.sharding import AxisType, Mesh

from utils.devices import started_devices


def make_mesh(sizes: Sequence[int], names: Sequence[str], *, axis_types: Sequence[AxisType] | None = None) -> Mesh:
    """Arrange the first `prod(sizes)` of the course's devices in a mesh, in row-major order.

    `jax.make_mesh` differs in three ways: its axes are explicit by default since JAX 0.9.0, it uses the default
    platform's devices, and on a TPU, it may reorder them to suit the physical topology.

    Args:
        sizes, names: the sizes and names of the mesh's axes, as in `jax.make_mesh`.
        axis_types: the type of each axis. By default, all axes are automatic.

    Raises ValueError if sizes, names and axis types differ in number, if a size is below one, if two axes have the same
    name, or if there aren't enough devices.
    """
    sizes, names, devices = tuple(sizes), tuple(names), started_devices()
    if min(sizes, default=0) < 1:
        raise ValueError(f"every axis of a mesh needs at least one device; got sizes {sizes}")
    if len(set(names)) < len(names):
        raise ValueError(f"every axis of a mesh needs a name of its own; got {names}")
    if math.prod(sizes) > len(devices):
        product = " x ".join(map(str, sizes))
        raise ValueError(f"a mesh of {product} needs {math.prod(sizes)} devices, and there are {len(devices)}")
    types = (AxisType.Auto,) * len(sizes) if axis_types is None else tuple(axis_types)
    return Mesh(np.array(devices[: math.prod(sizes)]).reshape(sizes), names, axis_types=types)
