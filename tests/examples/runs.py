"""Run examples/train.py in separate processes, and compute the expected losses with NumPy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

from examples import train
from tests.conftest import double_precision
from tools.lessons import notebooks

EXAMPLES = notebooks.ROOT / "examples"
TIME = 300  # seconds allowed for a run on a busy machine; a run normally takes five


def expected(steps: int = 20) -> list[float]:
    """Compute the losses with NumPy on unsharded batches, using a manually derived gradient."""
    with double_precision():
        w, b, v = (np.asarray(train.init(jax.random.key(0))[name]) for name in "wbv")
    losses = []
    for step in range(steps):
        x, y = train.read(range(128 * step, 128 * (step + 1)))
        hidden = np.tanh(x @ w + b)
        error = hidden @ v - y
        losses.append(np.mean(error**2))
        up = 2 * error / 128
        down = np.outer(up, v) * (1 - hidden**2)
        w, b, v = w - 0.1 * x.T @ down, b - 0.1 * down.sum(axis=0), v - 0.1 * hidden.T @ up
    return losses


def clean_environment(devices: int, *, x64: bool = True) -> dict[str, str]:
    """Return an environment with this Python, `devices` emulated devices per process, and no cluster variables."""
    clusters = "SLURM_", "SBATCH_", "OMPI_", "KUBERNETES_", "TPU_"
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", *clusters))}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    return {**variables, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices), "JAX_ENABLE_X64": str(int(x64))}


def run_together(commands: list[list[str]], *, x64: bool = True) -> list[str]:
    """Run the commands in parallel in examples/, on eight devices in total, and return their outputs."""
    options = {
        "env": clean_environment(8 // len(commands), x64=x64),
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    runs = [subprocess.Popen(command, cwd=EXAMPLES, text=True, **options) for command in commands]
    try:
        outputs = [run.communicate(timeout=TIME)[0] for run in runs]
    finally:
        for run in runs:
            run.kill()
            run.wait()
    assert [run.returncode for run in runs] == [0] * len(runs), "\n".join(outputs)
    return outputs


def losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^step +\d+  loss (\S+)$", "\n".join(own_lines(output)), re.M)]


def own_lines(output: str) -> list[str]:
    """Return the lines that the script itself printed, without Gloo's messages."""
    lines = re.sub(r"\[Gloo\] Rank \d+ is connected to .*? : \d+\n?", "", output).splitlines()  # even within a line
    return [line for line in lines if line or "[Gloo]" not in output]
