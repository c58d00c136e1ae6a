"""Compile a program for devices that this machine doesn't have: NVIDIA GPUs, TPUs, or more CPU devices.

A target consists of a chip's name and a size:

- ``h100:8`` means one machine with eight GPUs, and ``h100:4x8`` means four machines with eight GPUs each. This package
  includes descriptions of the GPUs in `GPUS`. GPU targets need JAX 0.10 or newer with its CUDA plugin, and the
  assembler ptxas (570 MB in total), but no GPU.
- ``v5e:4x4`` specifies a TPU topology by TPU generation and grid. TPU targets need JAX 0.10 or newer and libtpu (Linux
  on x86-64).
- ``cpu:8`` means eight CPU devices. JAX must have been started with at least that many.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import importlib.util
import math
import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax
    from jax.sharding import Mesh, Sharding
    from jax.stages import Lowered

GPUS = ("a100", "h100", "h200", "b200")
OLDEST_JAX = (0, 10)
# libtpu needs these variables to start quietly without a TPU. They don't limit which topologies can be described.
TPU_ENVIRONMENT = {
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


class TargetError(RuntimeError):
    """Raised if this machine can't compile for a target. The message says what to install or change."""


def devices(target: str) -> list[jax.Device]:
    """Return the devices of a target such as "h100:8", in the order in which a one-dimensional mesh uses them.

    Build a mesh from these devices to compile a program that creates its own shardings. GPUs and TPUs that this machine
    doesn't have can't store arrays, but `cost` accepts `jax.ShapeDtypeStruct`s with shardings on such a mesh.

    Raises ValueError for an unknown target, and TargetError if this machine isn't set up to compile for it.
    """
    chip, sizes = _parse(target)
    if chip == "cpu":
        return _cpus(math.prod(sizes))
    if chip in GPUS:
        return _gpus(chip, sizes)
    return _tpus(chip, sizes)


def _parse(target: str) -> tuple[str, tuple[int, ...]]:
    match = re.fullmatch(r"([a-z]\w*):(\d+(?:x\d+)*)", target)
    sizes = tuple(int(size) for size in match[2].split("x")) if match else ()
    is_tpu = bool(match and re.fullmatch(r"v\d\w*", match[1]))
    if not match or not all(sizes) or not (is_tpu or (match[1] in ("cpu", *GPUS) and len(sizes) < 3)):
        raise ValueError(
            f"the target {target!r}: pass cpu:N, {', '.join(GPUS)} with :GPUS or :MACHINESxGPUS, or a TPU topology "
            "such as v5e:4x4"
        )
    return match[1], sizes


def _cpus(count: int) -> list[jax.Device]:
    import jax

    cpus = jax.devices("cpu")
    if len(cpus) < count:
        raise TargetError(
            f"cpu:{count} needs {count} CPU devices, and JAX has {len(cpus)}: "
            f'call jax.config.update("jax_num_cpu_devices", {count}) before its first use'
        )
    return cpus[:count]


def _gpus(chip: str, sizes: Sequence[int]) -> list[jax.Device]:
    from jax.experimental import topologies

    version = _jax_version()
    plugins = [n for n in (12, 13) if importlib.util.find_spec(f"jax_cuda{n}_plugin")]
    if not plugins:
        raise TargetError(
            f'{chip} needs JAX\'s CUDA plugin, but no GPU: pip install "jax-cuda12-plugin=={version}" '
            f'"jax-cuda12-pjrt=={version}" nvidia-cuda-nvcc-cu12'
        )
    machines, gpus = sizes if len(sizes) == 2 else (1, *sizes)
    description = importlib.resources.files("shardcost.gpu_specs").joinpath(f"{chip}.txtpb").read_text(encoding="utf-8")
    try:
        # The topology is slices x machines x GPUs per machine.
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=description, topology=f"1x{machines}x{gpus}"
        )
    except NotImplementedError as error:
        raise TargetError(
            "JAX did not load its CUDA plugin, because this machine has no CUDA libraries: set the environment "
            "variable JAX_PLATFORMS=cpu before JAX starts, which skips the search for them"
        ) from error
    return list(topology.devices)


def _tpus(generation: str, sizes: Sequence[int]) -> list[jax.Device]:
    from jax.experimental import topologies

    version = _jax_version()
    if not importlib.util.find_spec("libtpu"):
        raise TargetError(
            f'{generation} needs libtpu, which exists for Linux on x86-64: pip install "jax[tpu]=={version}"'
        )
    for name, value in TPU_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    return list(topologies.get_topology_desc(platform="tpu", topology_name=_topology(generation, sizes)).devices)


def _topology(generation: str, sizes: Sequence[int]) -> str:
    return f"{generation}:{'x'.join(map(str, sizes))}"


def _jax_version() -> str:
    import jax

    release = tuple(int(n) for n in re.findall(r"\d+", jax.__version__)[:2])
    if release < OLDEST_JAX:
        raise TargetError(f'JAX {jax.__version__} cannot compile for absent devices: pip install --upgrade "jax>=0.10"')
    return jax.__version__


def lower_for(target: str, step: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Lowered, tuple, dict[str, Any]]:
    """Lower a function for the devices of a target.

    The mesh in the arguments' shardings is rebuilt from the target's devices, with the same axis names, sizes and
    types. If the function itself refers to a mesh, for example in a `shard_map` or in `in_shardings`, the
    function is exported from the old mesh and called on the new one.

    Returns the lowered program, and the arguments and keyword arguments with their new shardings.

    Raises ValueError if the mesh and the target have different numbers of devices, or if the arguments have shardings
    on different meshes.
    """
    import jax

    target_devices = devices(target)
    step = step if hasattr(step, "lower") else jax.jit(step)
    mesh = _mesh_of((args, kwargs))
    if mesh is None:
        sharding = jax.sharding.SingleDeviceSharding(target_devices[0])
        if len(target_devices) > 1:
            return _export(step, args, kwargs, _one_dimensional_mesh(target_devices), target)
        args, kwargs = jax.tree.map(lambda leaf: _with_sharding(leaf, sharding), (args, kwargs))
        return step.lower(*args, **kwargs), args, kwargs
    new_mesh = _rebuild(mesh, target_devices, target)
    new_args, new_kwargs = jax.tree.map(lambda leaf: _onto_mesh(leaf, new_mesh), (args, kwargs))
    try:
        with _replace_context(new_mesh):
            return step.lower(*new_args, **new_kwargs), new_args, new_kwargs
    except ValueError:  # usually because the function refers to the old mesh; if not, _export raises the error again
        return _export(step, args, kwargs, new_mesh, target)


def _export(
    step: Any, args: tuple, kwargs: dict[str, Any], new_mesh: Mesh, target: str
) -> tuple[Lowered, tuple, dict[str, Any]]:
    """Lower a function for new devices by exporting it from its own mesh. Donated arguments remain donated."""
    import jax
    from jax import export
    from jax.sharding import Mesh

    platform = {"cpu": "cpu", "tpu": "tpu"}.get(new_mesh.devices.flat[0].platform, "cuda")
    exported = export.export(step, platforms=[platform])(*args, **kwargs)
    if exported.nr_devices != new_mesh.size:
        raise ValueError(
            f"the program runs on {exported.nr_devices} devices, and {target} has {new_mesh.size}: the number follows "
            "from the shardings of the arguments"
        )
    info, _ = step.trace(*args, **kwargs).args_info
    donated = [i for i, arg in enumerate(info) if all(leaf.donated for leaf in jax.tree.leaves(arg) or [None])]
    leaves, structure = jax.tree.flatten((args, kwargs))
    names = {
        (sharding.mesh.axis_names, sharding.mesh.axis_sizes, sharding.mesh.axis_types)
        for sharding in getattr(exported, "_in_named_shardings", ())
        if sharding is not None
    }
    if _mesh_of((args, kwargs)) is None and len(names) == 1:
        [(axis_names, axis_sizes, axis_types)] = names
        new_mesh = Mesh(new_mesh.devices.reshape(axis_sizes), axis_names, axis_types=axis_types)
    shardings = exported.in_shardings_jax(new_mesh)
    moved = [_onto_mesh(leaf, new_mesh) for leaf in leaves]
    if len(shardings) == len(moved):  # if the numbers differ, some leaves are static arguments
        moved = [
            leaf if hasattr(getattr(leaf, "sharding", None), "mesh") else _with_sharding(leaf, sharding)
            for leaf, sharding in zip(moved, shardings, strict=True)
        ]
    new_args, new_kwargs = jax.tree.unflatten(structure, moved)
    with _replace_context(new_mesh):
        return jax.jit(exported.call, donate_argnums=donated).lower(*new_args, **new_kwargs), new_args, new_kwargs


def _replace_context(new_mesh: Mesh) -> AbstractContextManager[object]:
    """Return a context manager that sets `new_mesh` if a mesh is currently set, and otherwise does nothing."""
    import jax

    return jax.set_mesh(new_mesh) if jax.sharding.get_abstract_mesh().axis_names else contextlib.nullcontext()


def _mesh_of(arguments: Any) -> Mesh | None:
    """Return the mesh in the arguments' shardings, or None if there isn't one.

    Raises ValueError if the arguments' meshes differ in their axis names or sizes.
    """
    import jax

    meshes = []
    for leaf in jax.tree.leaves(arguments):
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        if mesh is not None and mesh.axis_names and mesh not in meshes:
            meshes.append(mesh)
    if len({(mesh.axis_names, tuple(mesh.shape.values())) for mesh in meshes}) > 1:
        raise ValueError(f"the arguments have shardings on different meshes: {', '.join(map(str, meshes))}")
    return meshes[0] if meshes else None


def _rebuild(mesh: Mesh, target_devices: list[jax.Device], target: str) -> Mesh:
    """Return a mesh with the same axes, built from the target's devices."""
    import numpy as np
    from jax.experimental import mesh_utils
    from jax.sharding import Mesh

    sizes = tuple(mesh.shape.values())
    if math.prod(sizes) != len(target_devices):
        raise ValueError(
            f"the arguments' mesh has {math.prod(sizes)} devices, and {target} has {len(target_devices)}; for more "
            "devices than there are here, use shardings on a jax.sharding.AbstractMesh"
        )
    if target_devices[0].platform != "tpu":
        grid = np.array(target_devices).reshape(sizes)
    else:
        try:
            grid = mesh_utils.create_device_mesh(sizes, target_devices)
        except (NotImplementedError, ValueError):  # a mesh axis uses only part of an axis of the TPU grid
            grid = mesh_utils.create_device_mesh(sizes, target_devices, allow_split_physical_axes=True)
    return Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types)


def _one_dimensional_mesh(target_devices: list[jax.Device]) -> Mesh:
    import numpy as np
    from jax.sharding import Mesh

    return Mesh(np.array(target_devices), ("devices",))


def _onto_mesh(leaf: Any, mesh: Mesh) -> Any:
    """Return an argument's `jax.ShapeDtypeStruct` on the new mesh.

    An array without a `NamedSharding` gets no sharding. Anything that isn't an array is returned unchanged.
    """
    import jax
    from jax.sharding import NamedSharding

    sharding = getattr(leaf, "sharding", None)
    if not isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return leaf
    if not isinstance(sharding, NamedSharding):
        return _with_sharding(leaf, None)
    return _with_sharding(leaf, NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind))


def _with_sharding(leaf: Any, sharding: Sharding | None) -> Any:
    """Return an array's `jax.ShapeDtypeStruct` with this sharding. Return anything else unchanged."""
    import jax

    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return leaf
    weak = bool(getattr(leaf, "weak_type", False))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=weak)
