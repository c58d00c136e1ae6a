"""Measure each lesson's cost and the speed of the cost counter: `make bench`."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import timeit
from dataclasses import dataclass
from pathlib import Path

import nbformat

from tools.lessons import notebooks
from utils.devices import start_devices
from utils.show.table import show_table

EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
path = sys.argv[1]
NotebookClient(nbformat.read(path, as_version=4), timeout=300, kernel_name="python3").execute()
"""


GOALS = {"seconds": 60, "cpu_seconds": 25, "megabytes": 2000}


@dataclass(frozen=True)
class LessonCost:
    """The cost of one execution of a notebook in a new process."""

    seconds: float  # wall-clock time, which also depends on other processes
    cpu_seconds: float  # CPU time of the kernel and its finished child processes, which the lesson's budget limits
    megabytes: float  # peak memory of the kernel

    @property
    def missed_goals(self) -> list[str]:
        """Return the names of the goals that the lesson misses."""
        return [name for name, goal in GOALS.items() if getattr(self, name) > goal]


def measure_lesson(notebook: nbformat.NotebookNode, folder: Path) -> LessonCost:
    """Execute a notebook in `folder`, with an extra last cell that records the kernel's resource usage."""
    notebook = notebooks.copy_of(notebook)
    path, report = folder / "measured.ipynb", folder / "used.txt"
    # The kernel reports its own usage, in a file, so that nbclient's process isn't included.
    source = f"""import pathlib, resource
own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
pathlib.Path({str(report)!r}).write_text(f"{{cpu}} {{own.ru_maxrss}}")"""
    notebook.cells.append(nbformat.v4.new_code_cell(source, id="used"))
    nbformat.write(notebook, path)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", EXECUTE, str(path)], cwd=folder, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    cpu, peak = map(float, report.read_text().split())
    unit = 1 if sys.platform == "darwin" else 1024  # macOS reports bytes, and Linux KiB
    return LessonCost(seconds, cpu, peak * unit / 1e6)


def main() -> None:
    """Print the costs of an empty notebook and of each lesson, and then the speed of the cost counter."""
    empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(notebooks.setup_source(), id="setup")])
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name)
        for package in notebooks.PACKAGES:
            (clone / package).symlink_to(notebooks.ROOT / package)
        measured = {"(empty: imports jax, starts eight devices)": empty}
        measured |= {path.name: notebooks.read(path) for path in notebooks.lessons()}
        rows = []
        for title, notebook in measured.items():
            cost = measure_lesson(notebook, clone)
            numbers = f"{cost.cpu_seconds:.1f}", f"{cost.seconds:.1f}", f"{cost.megabytes:.0f}"
            rows.append((title, *numbers, "over the goal" if cost.missed_goals else ""))
        heads = ["CPU seconds", "seconds", "peak MB"]
        goals = [GOALS[name] for name in ("cpu_seconds", "seconds", "megabytes")]
        show_table(["notebook", *(f"{head} (goal: {goal})" for head, goal in zip(heads, goals, strict=True)), ""], rows)
    print()
    measure_cost_counter()


def training_step_text(mesh, layers: int) -> str:
    """Compile a training step of an unrolled transformer, sharded over a 4 x 2 mesh, and return its HLO text."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    def plan(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

    def block(x, w):
        q, k, v = (jnp.einsum("bld,dhe->blhe", x, w[name]) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("blhe,bmhe->bhlm", q, k) / 8)
        x = x + jnp.einsum("bhlm,bmhe,hed->bld", scores, v, w["o"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    def loss(weights, x):
        for w in weights:
            x = block(x / (1 + jnp.abs(x)), w)
        return (x**2).mean()

    def step(weights, moments, x):
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, jax.grad(loss)(weights, x))
        return jax.tree.map(lambda w, m: w - 0.01 * m, weights, moments), moments

    d = 256
    layer = {name: plan((d, 4, 64), "data", "model") for name in "qkv"}
    layer |= {"o": plan((4, 64, d), "model", None, "data"), "up": plan((d, 4 * d), "data", "model")}
    layer |= {"down": plan((4 * d, d), "model", "data")}
    arguments = [layer] * layers, [layer] * layers, plan((16, 128, d), "data")
    return jax.jit(step).lower(*arguments).compile().as_text() or ""


def unroll(text: str, copies: int) -> str:
    """Repeat the computations in a program's HLO text, with different names in each copy."""
    start = text.index("\n%")
    preamble, (computations, _, main) = text[:start], text[start:].partition("\nENTRY ")
    head, _, body = main.partition("\n")
    body = body[: body.rindex("\n}")]
    renamed = [re.sub(r"%([\w.\-]+)", rf"%\1.copy{i}", computations) for i in range(copies)]
    bodies = [re.sub(r"%([\w.\-]+)", rf"%\1.copy{i}", body) for i in range(copies)]
    bodies[:-1] = [body.replace("  ROOT ", "  ") for body in bodies[:-1]]
    return "\n".join([preamble, *renamed, f"ENTRY {head}", *bodies, "}", ""])


def measure_cost_counter() -> None:
    """Time the cost counter on long programs, compiled for a TPU v5e-8 if libtpu is installed, else for the CPU."""
    import numpy as np
    from jax.sharding import AxisType, Mesh
    from shardcost import from_hlo

    compile_devices, platform = start_devices(8), "cpu"
    if importlib.util.find_spec("libtpu"):
        os.environ.update(
            TPU_WORKER_HOSTNAMES="localhost", TPU_ACCELERATOR_TYPE="v5litepod-8", ALLOW_MULTIPLE_LIBTPU_LOAD="1"
        )
        from jax.experimental import topologies

        compile_devices, platform = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices, "tpu"
    mesh = Mesh(np.array(compile_devices).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    step, rows = training_step_text(mesh, layers=6), []
    for megabytes in (1, 10, 50):
        text = unroll(step, max(1, round(megabytes * 1e6 / len(step))))
        megabytes = len(text) / 1e6
        seconds = min(timeit.repeat(lambda text=text: from_hlo(text), number=1, repeat=3))
        rows.append((round(megabytes, 1), len(from_hlo(text)), round(seconds, 2), round(1e3 * seconds / megabytes)))
    print(f"Time to read the HLO of unrolled training steps for {platform} (goal: linear, under 2 s for 6 MB):")
    show_table(["MB", "collectives", "seconds", "ms per MB"], rows)


if __name__ == "__main__":
    main()
