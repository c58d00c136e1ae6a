"""Compile for TPUs that are not there, in peace; and a record of what was compiled, for machines that cannot.

The TPU's compiler is in the package `libtpu` (PyPI, Linux on x86-64 only, 0.6 GB, under Google's terms), which is
never installed behind anybody's back. Where it is missing, or does not get on with this JAX, a lesson reads the same
numbers from its record in `plans/` beside this file, which `tools/maintenance/record_plans.py` writes. The tests
compile it again and compare: `make test` what is quick, `make test-newest` all.
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

    from utils.count.cost import Cost

RECORDS = Path(__file__).with_name("tpu_plans")  # NN.json: the plans of lesson NN
OLDEST = "0.10"  # JAX. With Colab's pair, 0.7.2 and libtpu 0.0.21, the kernel dies (signal 11).
ENVIRONMENT = {
    "TPU_WORKER_HOSTNAMES": "localhost",  # this one and the next keep libtpu quiet where there is no TPU
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",  # it does not limit what can be described
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # else one process at a time, and an error about a lock file for the others
}
# Does a compile survive, can its replica groups be read, and what a v5p hands to its SparseCore? (JAX 0.10.2 reads all
# but the last of what libtpu 0.0.52 writes.) Asked in a process of its own, which may die of it.
TRIAL = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def compiled(topology, spec, f, *arguments):
    chips = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    cut = NamedSharding(Mesh(np.array(chips), ("i",)), spec)
    arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=cut) for shape, dtype in arguments]
    return jax.jit(f).lower(*arguments).compile().as_text()

text = compiled("v5e:2x2", P("i"), lambda x: x.sum(0), ((8, 128), "float32"))
assert "all-reduce" in text and "replica_groups={}" not in text
picked = lambda x, i: jnp.take_along_axis(x, i, -1)
compiled("v5p:2x2x1", P(), picked, ((16, 1024, 128), "float32"), ((16, 1024, 1), "int32"))
print("it compiles")
"""


@dataclass(frozen=True)
class Plan:
    """What the compiler plans for each chip: bytes, FLOPs and how often; or, in `error`, why it refuses."""

    sent: dict[str, tuple[int, int]] = field(default_factory=dict)  # by collective: times, bytes that a chip sends
    asynchronous: dict[str, int] = field(default_factory=dict)  # of these times, how many run beside other work
    flops: int = 0  # in products, loops counted in full
    arguments: int = 0  # bytes
    peak: int = 0  # bytes, the most at any moment
    error: str = ""
    links: dict[int, int] = field(default_factory=dict)  # bytes by the links that they use, where the text tells

    @property
    def times(self) -> int:
        """How many collectives a chip takes part in."""
        return sum(times for times, _ in self.sent.values())

    @property
    def bytes_sent(self) -> int:
        return sum(size for _, size in self.sent.values())


_here: list[bool] = []  # can this process compile? Empty before `start`.
_plans: dict[str, Plan] = {}  # what was compiled since `start`, by label
_coordinates: dict[str, list[list[int]]] = {}  # and which chips were asked for, by topology and sizes


def start() -> None:
    """Find out whether this machine can compile for TPUs, and print one line that says so, or why not and what then.

    It is tried in a process of its own first: an unlucky pair of JAX and libtpu dies without a word.
    """
    reason = _why_not()
    _here[:] = [not reason]
    _plans.clear()
    _coordinates.clear()
    if reason:
        print(f"{reason} What follows comes from the course's record.")
    else:
        print(f"libtpu {importlib.metadata.version('libtpu')}: ready to compile for TPUs.")


def _why_not() -> str:
    import jax

    if not importlib.util.find_spec("libtpu"):
        able = sys.platform == "linux" and os.uname().machine == "x86_64"
        mend = f"{_install()} (0.6 GB, Google's terms), then restart" if able else "it exists for Linux on x86-64"
        return f"No libtpu here: {mend}."
    if release_numbers(jax.__version__) < release_numbers(OLDEST):
        return f"JAX {jax.__version__} is too old to compile for TPUs here: {OLDEST} or newer does."
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    quiet = {**os.environ, "JAX_PLATFORMS": "cpu"}
    try:
        found = subprocess.run([sys.executable, "-c", TRIAL], env=quiet, capture_output=True, text=True, timeout=120)
        works = found.stdout == "it compiles\n"
        last = textwrap.shorten((found.stderr.splitlines() or [""])[-1], 120)
        how = f"with signal {-found.returncode}" if found.returncode < 0 else last
    except subprocess.TimeoutExpired:
        works, how = False, "it did not end"
    if works:
        return ""
    pair = f"libtpu {importlib.metadata.version('libtpu')} and JAX {jax.__version__}"
    return f"{pair} do not get on: a trial compile failed ({how}). Try {_install()}, then restart."


def _install() -> str:
    """What brings the libtpu that goes with this JAX, as its own package says; where that does not do, a newer pair."""
    import jax

    newer = 'pip install --upgrade "jax[tpu]"'
    if release_numbers(jax.__version__) < release_numbers(OLDEST):
        return newer
    wanted = [line for line in importlib.metadata.requires("jax") or () if line.startswith("libtpu")]
    named = re.match(r"libtpu==([\d.]+)\*", wanted[0]) if wanted else None
    here = importlib.metadata.version("libtpu") if importlib.util.find_spec("libtpu") else ""
    if named and here.startswith(named[1]):
        return newer
    return f'pip install "jax[tpu]=={jax.__version__}"'


def mesh(
    topology: str, sizes: Sequence[int], names: Sequence[str], *, allow_split_physical_axes: bool = False
) -> Mesh | AbstractMesh:
    """A mesh, of automatic axes, over all chips of a described TPU topology such as ``v5e:4x4``.

    An axis takes whole rows of the grid; with `allow_split_physical_axes` it may take a part of one, too.
    Where nothing can be compiled it is a mesh without devices: its sizes are enough to lay arrays out on paper.
    """
    from jax.sharding import AbstractMesh, AxisType, Mesh

    if _can_compile():
        from jax.experimental import mesh_utils, topologies

        found = topologies.get_topology_desc(platform="tpu", topology_name=topology)
        if allow_split_physical_axes:
            chips = mesh_utils.create_device_mesh(tuple(sizes), found.devices, allow_split_physical_axes=True)
            return Mesh(chips, tuple(names))
        return topologies.make_mesh(found, tuple(sizes), tuple(names))
    return AbstractMesh(tuple(sizes), tuple(names), axis_types=(AxisType.Auto,) * len(names))


def coordinates(topology: str, sizes: Sequence[int]) -> np.ndarray:
    """Where the chips of `mesh(topology, sizes, ...)` lie in the pod's grid: (*sizes, 3) whole numbers, x, y and z.

    Where nothing can be compiled they are taken from the record. Raises LookupError for a mesh that it does not have.
    """
    label = f"{topology}, {' x '.join(map(str, sizes))}"
    if _can_compile():
        chips = mesh(topology, sizes, [f"axis {i}" for i in range(len(sizes))]).devices
        found = _coordinates[label] = [list(chip.coords) for chip in chips.flat]
    else:
        found = _read()["coordinates"].get(label)
        if found is None:
            raise LookupError(f"the record has no mesh {label!r}; to ask for one of your own you need libtpu.")
    return np.array(found).reshape(*sizes, 3)


def plan(label: str, compile_it: Callable[..., Any], *arguments: Any, recompile: bool = True) -> Plan:
    """What the compiler plans for a program: `compile_it(*arguments)` lowers and compiles it.

    With `recompile=False`, and where nothing can be compiled, the plan of this label is taken from the record, which
    knows labels and not programs.

    Raises JaxRuntimeError, in the compiler's words, for a program that does not fit into the memory of a chip,
    LookupError for a label that is not in the record, and RuntimeError where this JAX cannot read the program.
    """
    if not (recompile and _can_compile()):
        found = _recorded().get(label)
        if found is None:
            raise LookupError(f"the record has no {label!r}; to compile programs of your own you need libtpu.")
    else:
        found = _plans[label] = _compiled(compile_it, *arguments)
    if found.error:
        import jax

        raise jax.errors.JaxRuntimeError(found.error)
    return found


def _read(lesson: str = "*") -> dict[str, dict]:
    """A lesson's record, or what all of them hold."""
    found: dict[str, dict] = {"plans": {}, "coordinates": {}}
    for path in sorted(RECORDS.glob(f"{lesson}.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        for part, entries in found.items():
            entries |= record[part]
    return found


def _recorded(lesson: str = "*") -> dict[str, Plan]:
    plans = _read(lesson)["plans"]
    return {label: plan_from_json(fields) for label, fields in plans.items()}


def plan_from_json(fields: dict[str, Any]) -> Plan:
    """A plan of `as_record`, or of a record: JSON has lists for pairs, and texts for keys."""
    sent = {kind: (times, size) for kind, (times, size) in fields["sent"].items()}
    links = {int(number): size for number, size in fields.get("links", {}).items()}
    return Plan(**{**fields, "sent": sent, "links": links})


def _compiled(compile_it: Callable[..., Any], *arguments: Any) -> Plan:
    import jax

    from utils.count.cost import cost

    try:
        return summarize(cost(compile_it(*arguments)))
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("INTERNAL"):  # the program is compiled, and its text cannot be had
            pair = f"JAX {jax.__version__} cannot read what libtpu {importlib.metadata.version('libtpu')} wrote"
            why = f"{pair}. Another pair may ({_install()}); the record has the lesson's own programs."
            raise RuntimeError(why) from error
        if not str(error).startswith("RESOURCE_EXHAUSTED"):
            raise
        # Its first sentence, without the many lines that list what takes the place.
        return Plan(error=re.split(r" HLO module:|\n", str(error))[0].strip())


def summarize(found: Cost) -> Plan:
    """The same program in fewer numbers, by kind of collective."""
    times, sizes, beside, links = Counter(), Counter(), Counter(), Counter()
    for collective in found:
        times[collective.kind] += collective.times
        sizes[collective.kind] += collective.bytes_sent
        beside[collective.kind] += collective.times * collective.asynchronous
        if collective.links:
            links[collective.links] += collective.bytes_sent
    memory = found.memory
    return Plan(
        {kind: (times[kind], sizes[kind]) for kind in sorted(times)},
        {kind: beside[kind] for kind in sorted(beside) if beside[kind]},
        found.flops,
        memory.arguments if memory else 0,
        memory.peak if memory else 0,
        links={number: links[number] for number in sorted(links)},
    )


def as_record() -> dict[str, dict]:
    """The plans that were compiled since `start` and the coordinates that were asked for, as JSON can hold them."""
    return {"plans": {label: asdict(found) for label, found in _plans.items()}, "coordinates": dict(_coordinates)}


def _can_compile() -> bool:
    if not _here:
        raise RuntimeError("call tpu_compiler.start() first: it finds out whether this machine can compile for TPUs")
    return _here[0]
