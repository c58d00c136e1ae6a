"""Imports run one way: notebooks -> exercises -> utils, and within utils; the finder of old code needs none of them."""

from __future__ import annotations

import ast
from pathlib import Path

from tests import checks
from tools import notebooks

TOP = tuple(f"utils.{path.stem}" for path in (notebooks.ROOT / "utils").glob("*.py"))
MAY = {  # by folder: what its modules may import of the course
    "utils": TOP,
    "utils/models": ("utils.models", *TOP),
    "utils/show": ("utils.show", *TOP),
    "utils/count": ("utils.count", "utils.show.table", *TOP),
    "exercises": ("exercises", "utils"),
    "old_jax": ("old_jax",),
}
OURS = ("exercises", "notebooks", "old_jax", "site", "tests", "tools", "utils")


def imported(path: Path) -> set[str]:
    """What a program imports of the course, wherever in it: `utils.mesh` of `from utils import mesh`, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.split(".")[0] in OURS}


def test_imports_run_one_way():
    faults = []
    for folder, may in MAY.items():
        deeper = tuple(f"{other}/" for other in MAY if other.startswith(f"{folder}/"))
        for path in sorted((notebooks.ROOT / folder).rglob("*.py")):
            name = path.relative_to(notebooks.ROOT).as_posix()
            for other in [] if name.startswith(deeper) else imported(path):
                if not any(f"{other}.".startswith(f"{one}.") for one in may):
                    faults.append(f"{name} imports {other}")
    checks.refuse(faults)
