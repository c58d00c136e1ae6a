"""What a lesson costs beside an empty notebook, and what the timing helper adds: `make bench`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from tools import notebooks
from utils.table import show_table
from utils.timing import measure

EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
path = sys.argv[1]
NotebookClient(nbformat.read(path, as_version=4), timeout=300, kernel_name="python3").execute()
"""


def lesson_cost(notebook: nbformat.NotebookNode, folder: Path) -> tuple[float, float]:
    """Wall seconds of a fresh process that executes the notebook, and the kernel's peak memory in MB."""
    notebook = nbformat.from_dict(notebook)
    path = folder / "measured.ipynb"
    # The kernel reports its own peak, into a file: the process that drives it does not count.
    report = folder / "peak.txt"
    peak = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    source = f"import pathlib, resource\npathlib.Path({str(report)!r}).write_text(str({peak}))"
    notebook.cells.append(nbformat.v4.new_code_cell(source, id="peak"))
    nbformat.write(notebook, path)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", EXECUTE, str(path)], cwd=folder, check=True, capture_output=True)
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return seconds, int(report.read_text()) * unit / 1e6


def main() -> None:
    empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(notebooks.setup_source(), id="setup")])
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name)
        (clone / "utils").symlink_to(notebooks.ROOT / "utils")
        measured = {"(empty: imports jax, starts eight devices)": empty}
        measured |= {path.name: notebooks.read(path) for path in notebooks.lessons()}
        rows = []
        for title, notebook in measured.items():
            seconds, memory = lesson_cost(notebook, clone)
            rows.append(
                (title, f"{seconds:.1f}", f"{memory:.0f}", "" if seconds < 60 and memory < 2000 else "over the goal")
            )
        show_table(["notebook", "seconds (goal: 60)", "peak MB (goal: 2000)", ""], rows)
    print()
    overhead()


def overhead() -> None:
    """A function that takes 1 ms by its own clock, timed by the helper and by a bare loop."""

    def one_millisecond() -> None:
        end = time.perf_counter() + 1e-3
        while time.perf_counter() < end:
            pass

    helper, bare = [], []
    for _ in range(5):
        helper.append(measure(one_millisecond, repeats=200).median)
        start = time.perf_counter()
        for _ in range(200):
            one_millisecond()
        bare.append((time.perf_counter() - start) / 200)
    added = min(helper) / min(bare) - 1
    print(f"The timing helper adds {added:+.2%} to a function of 1 ms (goal: under 1 %).")


if __name__ == "__main__":
    main()
