"""Compile programs for TPUs that this machine doesn't have, or look up recorded results if it can't compile for them.

The TPU compiler is in the package `libtpu` (PyPI, Linux on x86-64 only, 0.6 GB, under Google's terms), which the course
never installs on its own. Without it, or with a version that this JAX can't use, a lesson gets the same numbers from
its record in `tpu_plans/`, which `tools/maintenance/record_plans.py` writes. The tests compile the programs again and
compare: `make test` those that take little time, and `make test-newest` all of them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from utils.devices import release_numbers

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh
    from jax.stages import Compiled
    from shardcost import Cost

RECORDS = Path(__file__).with_name("tpu_plans")  # NN.json: the plans of lesson NN
OLDEST_JAX = "0.10"  # with Colab's pair, JAX 0.7.2 and libtpu 0.0.21, the kernel dies of signal 11
ENVIRONMENT = {
    "TPU_WORKER_HOSTNAMES": "localhost",  # this and the next variable keep libtpu quiet on a machine without a TPU
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",  # this doesn't limit which topologies can be described
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # otherwise only one process at a time can use libtpu
}
# Check that a compile survives, that its replica groups can be read, and that the part of a program that a v5p gives to
# its SparseCore can be read as well. (JAX 0.10.2 reads all but the last of what libtpu 0.0.52 writes.)
TRIAL = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def compiled(topology, spec, f, *arguments):
    chips = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    sharding = NamedSharding(Mesh(np.array(chips), ("i",)), spec)
    arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for shape, dtype in arguments]
    return jax.jit(f).lower(*arguments).compile().as_text()

text = compiled("v5e:2x2", P("i"), lambda x: x.sum(0), ((8, 128), "float32"))
assert "all-reduce" in text and "replica_groups={}" not in text
picked = lambda x, i: jnp.take_along_axis(x, i, -1)
compiled("v5p:2x2x1", P(), picked, ((16, 1024, 128), "float32"), ((16, 1024, 1), "int32"))
print("it compiles")
"""


@dataclass(frozen=True)
class Plan:
    """What one chip does in a compiled program. If the compiler refused the program, `error` says why."""

    sent: dict[str, tuple[int, int]] = field(default_factory=dict)  # kind of collective: number of runs, bytes sent
    asynchronous: dict[str, int] = field(default_factory=dict)  # kind: the number of runs that overlap with other work
    flops: int = 0  # of matrix products, with every iteration of each loop
    arguments: int = 0  # bytes
    peak: int = 0  # bytes of memory in use at the same time, at most
    error: str = ""
    links: dict[int, int] = field(default_factory=dict)  # number of links used: bytes sent, if the program text says so

    @property
    def times(self) -> int:
        """Return the number of collectives that a chip takes part in."""
        return sum(times for times, _ in self.sent.values())

    @property
    def bytes_sent(self) -> int:
        return sum(size for _, size in self.sent.values())


_can_compile: list[bool] = []  # empty before `start`
_plans: dict[str, Plan] = {}  # by label: the programs compiled since `start`
_coordinates: dict[str, list[list[int]]] = {}  # by topology and sizes: the coordinates looked up since `start`


def start() -> None:
    """Find out whether this machine can compile for TPUs, and print one line with the result.

    The first compile runs in a separate process, because some pairs of JAX and libtpu crash with no message.
    """
    reason = _find_obstacle()
    _can_compile[:] = [not reason]
    _plans.clear()
    _coordinates.clear()
    if reason:
        print(f"{reason} The results below come from the course's record.")
    else:
        print(f"libtpu {importlib.metadata.version('libtpu')}: ready to compile for TPUs.")


def _find_obstacle() -> str:
    """Return why this machine can't compile for TPUs and what to do about it, or "" if it can."""
    import jax

    if not importlib.util.find_spec("libtpu"):
        if sys.platform == "linux" and os.uname().machine == "x86_64":
            return f"No libtpu here: {_install_command()} (0.6 GB, Google's terms), then restart."
        return "No libtpu here: it exists only for Linux on x86-64."
    if release_numbers(jax.__version__) < release_numbers(OLDEST_JAX):
        return f"JAX {jax.__version__} is too old to compile for TPUs here, which takes {OLDEST_JAX} or newer."
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", TRIAL]
    try:
        trial = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        if trial.stdout == "it compiles\n":
            return ""
        last_line = textwrap.shorten((trial.stderr.splitlines() or [""])[-1], 120)
        failure = f"signal {-trial.returncode}" if trial.returncode < 0 else last_line
    except subprocess.TimeoutExpired:
        failure = "no result after 120 s"
    pair = f"libtpu {importlib.metadata.version('libtpu')} and JAX {jax.__version__}"
    return f"{pair} don't work together: a trial compile failed ({failure}). Try {_install_command()}, then restart."


def _install_command() -> str:
    """Return the command that installs the libtpu that this JAX asks for, or a newer pair if that one doesn't work."""
    import jax

    newer_pair = 'pip install --upgrade "jax[tpu]"'
    if release_numbers(jax.__version__) < release_numbers(OLDEST_JAX):
        return newer_pair
    requirements = [line for line in importlib.metadata.requires("jax") or () if line.startswith("libtpu")]
    required = re.match(r"libtpu==([\d.]+)\*", requirements[0]) if requirements else None
    installed = importlib.metadata.version("libtpu") if importlib.util.find_spec("libtpu") else ""
    if required and installed.startswith(required[1]):
        return newer_pair
    return f'pip install "jax[tpu]=={jax.__version__}"'


def mesh(
    topology: str, sizes: Sequence[int], names: Sequence[str], *, allow_split_physical_axes: bool = False
) -> Mesh | AbstractMesh:
    """Return a mesh with automatic axes over all chips of a TPU topology, such as ``v5e:4x4``.

    On a machine that can't compile for TPUs, return an abstract mesh, which has sizes and no devices.

    Args:
        topology: the topology's name, as in `jax.experimental.topologies`.
        sizes, names: the mesh's axes, as in `jax.make_mesh`.
        allow_split_physical_axes: let a mesh axis use part of a physical axis, such as two of a row's four chips.
    """
    from jax.sharding import AbstractMesh, AxisType, Mesh

    if _is_started_and_able():
        from jax.experimental import mesh_utils, topologies

        description = topologies.get_topology_desc(platform="tpu", topology_name=topology)
        if allow_split_physical_axes:
            chips = mesh_utils.create_device_mesh(tuple(sizes), description.devices, allow_split_physical_axes=True)
            return Mesh(chips, tuple(names))
        return topologies.make_mesh(description, tuple(sizes), tuple(names))
    return AbstractMesh(tuple(sizes), tuple(names), axis_types=(AxisType.Auto,) * len(names))


def coordinates(topology: str, sizes: Sequence[int]) -> np.ndarray:
    """Return the coordinates x, y and z in the pod of each chip of `mesh(topology, sizes, ...)`, as shape (*sizes, 3).

    On a machine that can't compile for TPUs, look them up in the record.

    Raises LookupError if the record doesn't have this mesh.
    """
    label = f"{topology}, {' x '.join(map(str, sizes))}"
    if _is_started_and_able():
        chips = mesh(topology, sizes, [f"axis {i}" for i in range(len(sizes))]).devices
        rows = _coordinates[label] = [list(chip.coords) for chip in chips.flat]
    else:
        rows = _read_records()["coordinates"].get(label)
        if rows is None:
            raise LookupError(f"the record has no mesh {label!r}; to use a mesh of your own you need libtpu.")
    return np.array(rows).reshape(*sizes, 3)


def plan(label: str, compile_it: Callable[..., Compiled], *arguments: Any, recompile: bool = True) -> Plan:
    """Return what one chip does in a program, according to the TPU compiler.

    Args:
        label: the program's name in the record. The record doesn't notice if the program changes.
        compile_it: a function that lowers and compiles the program. It's called with `arguments`.
        recompile: compile the program if this machine can. Otherwise look it up in the record.

    Raises JaxRuntimeError, with the compiler's message, if the program doesn't fit into a chip's memory; LookupError if
    the record doesn't have this label; and RuntimeError if this JAX can't read the compiled program.
    """
    if recompile and _is_started_and_able():
        result = _plans[label] = _compile(compile_it, *arguments)
    else:
        recorded = recorded_plans()
        if label not in recorded:
            raise LookupError(f"the record has no {label!r}; to compile programs of your own you need libtpu.")
        result = recorded[label]
    if result.error:
        import jax

        raise jax.errors.JaxRuntimeError(result.error)
    return result


def _read_records(lesson: str = "*") -> dict[str, dict]:
    """Return the plans and coordinates in a lesson's record, or in all records."""
    merged: dict[str, dict] = {"plans": {}, "coordinates": {}}
    for path in sorted(RECORDS.glob(f"{lesson}.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        for part, entries in merged.items():
            entries |= record[part]
    return merged


def recorded_plans(lesson: str = "*") -> dict[str, Plan]:
    """Return the plans in a lesson's record, or in all records, by label."""
    return {label: plan_from_json(fields) for label, fields in _read_records(lesson)["plans"].items()}


def plan_from_json(fields: dict[str, Any]) -> Plan:
    """Return a plan from a record. JSON turned its pairs into lists, and its integer keys into strings."""
    sent = {kind: (times, size) for kind, (times, size) in fields["sent"].items()}
    links = {int(number): size for number, size in fields.get("links", {}).items()}
    return Plan(**{**fields, "sent": sent, "links": links})


def _compile(compile_it: Callable[..., Compiled], *arguments: Any) -> Plan:
    import jax
    from shardcost import cost

    try:
        return summarize(cost(compile_it(*arguments)))
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("INTERNAL"):  # the program has been compiled, but its text can't be read
            pair = f"JAX {jax.__version__} cannot read what libtpu {importlib.metadata.version('libtpu')} wrote"
            advice = f"Another pair may work ({_install_command()}); the record has the lesson's own programs."
            raise RuntimeError(f"{pair}. {advice}") from error
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        # Keep the first sentence, without the long list of buffers that follows.
        return Plan(error=re.split(r" HLO module:|\n", str(error))[0].strip())


def summarize(counted: Cost) -> Plan:
    """Sum up the cost of a program by kind of collective."""
    times, sizes, overlapped, links = Counter(), Counter(), Counter(), Counter()
    for collective in counted:
        times[collective.kind] += collective.times
        sizes[collective.kind] += collective.bytes_sent
        overlapped[collective.kind] += collective.times * collective.asynchronous
        if collective.links:
            links[collective.links] += collective.bytes_sent
    memory = counted.memory
    return Plan(
        {kind: (times[kind], sizes[kind]) for kind in sorted(times)},
        {kind: overlapped[kind] for kind in sorted(overlapped) if overlapped[kind]},
        counted.flops,
        memory.arguments if memory else 0,
        memory.peak if memory else 0,
        links={number: links[number] for number in sorted(links)},
    )


def as_record() -> dict[str, dict]:
    """Return the plans compiled and the coordinates looked up since `start`, as values that JSON can represent."""
    return {"plans": {label: asdict(result) for label, result in _plans.items()}, "coordinates": dict(_coordinates)}


def _is_started_and_able() -> bool:
    """Return whether this machine can compile for TPUs. Raises RuntimeError if `start` hasn't been called."""
    if not _can_compile:
        raise RuntimeError("call tpu_compiler.start() first: it finds out whether this machine can compile for TPUs")
    return _can_compile[0]
