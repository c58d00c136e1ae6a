"""Test that the repository's imports run in one direction, without cycles."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

from tests import lesson_lint
from tools.lessons import notebooks

# The layers, from the bottom up. A module may import from its own layer and from those listed before it. Its layer is
# the one with the longest matching name.
LAYERS = (
    *("find_old_jax", "shardcost", "examples", "start", "utils", "utils.example_models"),
    *("utils.show", "utils.aot_compiler", "lesson_helpers", "exercises"),
    *(
        "tools",
        "tools.lessons",
        "tools.reader",
        "tools.teach",
        "tools.site",
        "tools.maintenance",
        "site",
        "teach",
        "tests",
    ),
)


def modules(root: Path) -> dict[str, Path]:
    """Return the paths of the modules in a folder, and in its packages/*/src, by dotted name.

    The key of an `__init__.py` is the name of its package.
    """
    paths = {}
    for top in (root, *root.glob("packages/*/src")):
        for path in top.rglob("*.py"):
            parts = path.relative_to(top).with_suffix("").parts
            if parts[0] in LAYERS and "_build" not in parts:
                paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


def imported(path: Path, course_modules: dict[str, Path]) -> set[str]:
    """Return the course's modules that a module imports anywhere, such as `utils.mesh` in `from utils import mesh`."""
    names_imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names_imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            names_imported |= {name if name in course_modules else node.module for name in names}
    return names_imported & course_modules.keys()


def layer(module: str) -> int:
    """Return the position of a module's layer in LAYERS."""
    return max((len(name), at) for at, name in enumerate(LAYERS) if f"{module}.".startswith(f"{name}."))[1]


def faults(root: Path) -> list[str]:
    """Return a message for each import from a higher layer, and for an import cycle."""
    paths = modules(root)
    graph = {module: imported(path, paths) for module, path in paths.items()}
    messages = [
        f"{module} imports {other} from a higher layer"
        for module, others in graph.items()
        for other in others
        if layer(other) > layer(module)
    ]
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        messages.append(f"an import cycle: {' <- '.join(error.args[1])}")
    return sorted(messages)


def test_imports_run_in_one_direction():
    lesson_lint.fail_with(faults(notebooks.ROOT))


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"utils/a.py": "def f():\n    from tools.site import b"}, "utils.a imports tools.site.b from a higher layer"),
        ({"tools/teach/a.py": "from tools.site import b"}, "tools.teach.a imports tools.site.b from a higher layer"),
        ({"utils/a.py": "import utils.show.b"}, "utils.a imports utils.show.b from a higher layer"),
        ({"utils/a.py": "import lesson_helpers.c"}, "utils.a imports lesson_helpers.c from a higher layer"),
        (
            {"packages/find-old-jax/src/find_old_jax/a.py": "from utils.show.b import c"},
            "find_old_jax.a imports utils.show.b from a higher layer",
        ),
        (
            {"packages/shardcost/src/shardcost/a.py": "from utils import b", "utils/b.py": ""},
            "shardcost.a imports utils.b from a higher layer",
        ),
        ({"tests/a.py": "from tests.b import c", "tests/b.py": "from tests import a"}, "an import cycle: tests."),
    ],
)
def test_a_wrong_import_is_reported(tmp_path, files, fault):
    for name in ("tools/site/b.py", "utils/show/b.py", "lesson_helpers/c.py", *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(files.get(name, ""))
    [message] = faults(tmp_path)
    assert message.startswith(fault)
