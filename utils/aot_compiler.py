"""Compile programs for TPUs and GPUs that this machine doesn't have, or look up recorded results instead.

The TPU compiler is in the package `libtpu` (PyPI, Linux on x86-64 only, 0.6 GB, under Google's terms). The compiler for
NVIDIA GPUs is in JAX's CUDA plugin, which also needs ptxas (570 MB in total). The course never installs either compiler
by itself. Without them, or with versions that this JAX can't use, a lesson reads the same numbers from its record in
`compiled_plans/`, which `tools/maintenance/record_plans.py` writes. The tests compile the programs again and compare
the results with the record: `make test` checks the quick programs, `make test-newest` checks more of them, and the
weekly check covers all of them, including those for GPUs.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardcost import Cost, cost, targets

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh
    from jax.stages import Compiled

RECORDS = Path(__file__).with_name("compiled_plans")  # NN.json: the plans of lesson NN
TRIALS = {"tpu": "v5e:2x2", "cuda": "h100:8"}  # the target of the trial compile, by platform
PACKAGES = {"tpu": "libtpu", "cuda": "jax-cuda12-plugin"}
# Check that compiling doesn't crash, and that JAX can read the compiled program. (JAX 0.10.2 can't read everything that
# libtpu 0.0.52 writes, and some older pairs crash.)
TRIAL = """
import sys, jax
from jax.sharding import NamedSharding, PartitionSpec as P
from shardcost import cost, targets
mesh = jax.sharding.AbstractMesh((len(targets.devices(sys.argv[1])),), ("i",))
x = jax.ShapeDtypeStruct((8, 128), "float32", sharding=NamedSharding(mesh, P("i")))
assert cost(lambda x: x.sum(0), x, target=sys.argv[1]).bytes_sent
"""


@dataclass(frozen=True)
class CompiledPlan:
    """The work of one chip in a compiled program. If the compiler rejected the program, `error` is its message."""

    sent: dict[str, tuple[int, int]] = field(default_factory=dict)  # by kind of collective: number of runs, bytes sent
    asynchronous: dict[str, int] = field(default_factory=dict)  # by kind: number of runs that overlap other work
    flops: int = 0  # of matrix products, counting every iteration of each loop
    arguments: int = 0  # bytes
    peak: int = 0  # maximum number of bytes of memory in use at any time
    error: str = ""
    links: dict[int, int] = field(default_factory=dict)  # bytes sent, by number of links used (if it's known)

    @property
    def times(self) -> int:
        """Return the number of collectives that a chip runs, counting every loop iteration."""
        return sum(times for times, _ in self.sent.values())

    @property
    def bytes_sent(self) -> int:
        """Return the bytes that a chip sends in all collectives."""
        return sum(size for _, size in self.sent.values())


_can_compile: dict[str, bool] = {}  # by platform, "tpu" or "cuda"; empty before `check_compilers`
_plans: dict[str, CompiledPlan] = {}  # by label: the programs compiled since `check_compilers`


def check_compilers(*platforms: str) -> None:
    """Check whether this machine can compile for these platforms ("tpu" by default), and print a line for each.

    The trial compile runs in a separate process, because some pairs of JAX and libtpu crash without a message.
    """
    _can_compile.clear()
    _plans.clear()
    for name, value in targets.TPU_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Restrict JAX to the CPU, because otherwise the plugin looks for CUDA's libraries.
    path = str(Path(targets.__file__).parents[1])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    for platform in platforms or ("tpu",):
        obstacle = _find_obstacle(platform, environment)
        _can_compile[platform] = not obstacle
        chips = {"tpu": "TPUs", "cuda": "GPUs"}[platform]
        package = PACKAGES[platform]
        if obstacle:
            print(f"{obstacle}. The results for {chips} below come from the course's record.")
        else:
            print(f"{package} {importlib.metadata.version(package)}: ready to compile for {chips}.")


def _find_obstacle(platform: str, environment: dict[str, str]) -> str:
    """Explain why this machine can't compile for a platform and how to fix that. Return "" if it can compile."""
    command = [sys.executable, "-c", TRIAL, TRIALS[platform]]
    try:
        trial = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        failure = "no result after 120 s"
    else:
        if trial.returncode == 0:
            return ""
        last_line = (trial.stderr.splitlines() or [""])[-1]
        if "TargetError: " in last_line:  # the message explains what to install
            return last_line.partition("TargetError: ")[2]
        failure = f"signal {-trial.returncode}" if trial.returncode < 0 else textwrap.shorten(last_line, 120)
    return f"A trial compile for {TRIALS[platform]} failed ({failure}). Try {_upgrade(platform)}, then restart"


def _upgrade(platform: str) -> str:
    """Return the command that installs JAX together with a compiler that works with it."""
    return f'pip install --upgrade "jax[{"tpu" if platform == "tpu" else "cuda12"}]"'


def mesh(topology: str, sizes: Sequence[int], names: Sequence[str]) -> Mesh | AbstractMesh:
    """Return a mesh with automatic axes over all chips of a TPU topology, such as ``v5e:4x4``.

    On a machine that can't compile for TPUs, return an abstract mesh, which has sizes but no devices.

    Args:
        topology: the topology's name, as in `jax.experimental.topologies`.
        sizes, names: the sizes and names of the mesh's axes, as in `jax.make_mesh`.

    Raises RuntimeError if `check_compilers` hasn't checked whether this machine can compile for TPUs.
    """
    from jax.experimental import mesh_utils
    from jax.sharding import AbstractMesh, AxisType, Mesh

    if can_compile("tpu"):
        return Mesh(mesh_utils.create_device_mesh(tuple(sizes), targets.devices(topology)), tuple(names))
    return AbstractMesh(tuple(sizes), tuple(names), axis_types=(AxisType.Auto,) * len(names))


def compiled_plan(
    label: str, compile_it: Callable[..., Compiled | Cost], *arguments: Any, recompile: bool = True
) -> CompiledPlan:
    """Return the work of one chip in a program, according to the chip's compiler.

    Args:
        label: the program's name in the record. The record doesn't reveal whether the program has changed. A label that
            contains the name of a GPU, such as ``FSDP, h100:8``, is for a GPU program; any other is for a TPU program.
        compile_it: a function that takes `arguments`, and returns the compiled program or its cost.
        recompile: compile the program if this machine can. Otherwise, or if this is False, look it up in the record.

    Raises JaxRuntimeError, with the compiler's message, if the program doesn't fit into a chip's memory; LookupError if
    the label isn't in the record; and RuntimeError if this JAX can't read the compiled program.
    """
    if recompile and can_compile(platform_of(label)):
        result = _plans[label] = _compile(platform_of(label), compile_it, *arguments)
    else:
        recorded = recorded_plans()
        if label not in recorded:
            package = PACKAGES[platform_of(label)]
            raise LookupError(f"the record has no {label!r}; to compile your own programs, install {package}.")
        result = recorded[label]
    if result.error:
        import jax

        raise jax.errors.JaxRuntimeError(result.error)
    return result


def can_compile(platform: str) -> bool:
    """Return whether this machine can compile for a platform. Raises RuntimeError before `check_compilers`."""
    if platform not in _can_compile:
        raise RuntimeError(
            "call aot_compiler.check_compilers() first: it finds out whether this machine can compile for a chip"
        )
    return _can_compile[platform]


def platform_of(label: str) -> str:
    """Return the platform of a recorded program: "cuda" if its label contains the name of a GPU, otherwise "tpu"."""
    return "cuda" if any(f"{gpu}:" in label for gpu in targets.GPUS) else "tpu"


def recorded_plans(lesson: str = "*") -> dict[str, CompiledPlan]:
    """Return the plans in a lesson's record, or in all records, by label."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob(f"{lesson}.json"))]
    return {label: plan_from_json(fields) for record in records for label, fields in record["plans"].items()}


def plan_from_json(fields: dict[str, Any]) -> CompiledPlan:
    """Build a plan from parsed JSON, in which pairs have become lists and integer keys have become strings."""
    sent = {kind: (times, size) for kind, (times, size) in fields["sent"].items()}
    links = {int(number): size for number, size in fields.get("links", {}).items()}
    return CompiledPlan(**{**fields, "sent": sent, "links": links})


def _compile(platform: str, compile_it: Callable[..., Compiled | Cost], *arguments: Any) -> CompiledPlan:
    """Compile a program for a platform and summarize its cost. If it doesn't fit into memory, keep only the error."""
    import jax

    try:
        result = compile_it(*arguments)
        return summarize(result if isinstance(result, Cost) else cost(result))
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("INTERNAL"):  # the program was compiled, but JAX can't read its text
            package = PACKAGES[platform]
            pair = f"JAX {jax.__version__} cannot read what {package} {importlib.metadata.version(package)} wrote"
            advice = f"Another pair may work ({_upgrade(platform)}); the record has the lesson's own programs."
            raise RuntimeError(f"{pair}. {advice}") from error
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        # Keep the first sentence, without the long list of buffers that follows.
        return CompiledPlan(error=re.split(r" HLO module:|\n", str(error))[0].strip())


def summarize(counted: Cost) -> CompiledPlan:
    """Summarize the cost of a program as a plan, with one total per kind of collective."""
    times, sizes, overlapped, links = Counter(), Counter(), Counter(), Counter()
    for collective in counted:
        times[collective.kind] += collective.execution_count
        sizes[collective.kind] += collective.bytes_sent
        overlapped[collective.kind] += collective.execution_count * collective.asynchronous
        if collective.links:
            links[collective.links] += collective.bytes_sent
    memory = counted.memory
    return CompiledPlan(
        {kind: (times[kind], sizes[kind]) for kind in sorted(times)},
        {kind: overlapped[kind] for kind in sorted(overlapped) if overlapped[kind]},
        counted.flops,
        memory.arguments if memory else 0,
        memory.peak if memory else 0,
        links={number: links[number] for number in sorted(links)},
    )


def compiled_plans() -> dict[str, CompiledPlan]:
    """Return the plans compiled since `check_compilers`, by label."""
    return dict(_plans)
