"""Provide fixtures that write a file and that run the command in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import find_old_jax
import pytest


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file with a given name and text, and returns its path."""

    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def command(tmp_path):
    """Return a function that runs a module (by default, the command) in a separate process with the given arguments."""

    def run(*arguments, module: tuple[str, ...] = ("-m", "find_old_jax")) -> subprocess.CompletedProcess:
        source = Path(find_old_jax.__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command_line = [sys.executable, *module, *map(str, arguments)]
        return subprocess.run(command_line, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run
