"""The rooms of utils: its README tells what each module brings, and imports between the rooms run one way."""

from __future__ import annotations

import ast
import re

from tests import checks
from tools import notebooks

UTILS = notebooks.ROOT / "utils"
TABLE = {  # by module: what it brings, and the lesson that introduces it
    name: (brings, lesson)
    for name, brings, lesson in re.findall(
        r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]*?) ?\| [^|]+ \|$", (UTILS / "README.md").read_text(encoding="utf-8"), re.M
    )
}
BELOW = {  # by room: the rooms that it may import from, besides itself and the modules at the top
    "": set(),
    "models": set(),
    "show": set(),
    "count": {"show.table"},
    "old": {"show.table"},
    "exercises": {"show", "count", "models", "old"},
}
STARTED = {"room", "find_old", "old_code"}  # what a person starts: may import whatever it runs


def modules() -> dict[str, str]:
    """Each module's name below utils, and its source."""
    found = {}
    for path in sorted(UTILS.rglob("*.py")):
        name = ".".join(path.relative_to(UTILS).with_suffix("").parts)
        if path.name != "__init__.py":
            found[name] = path.read_text(encoding="utf-8")
    return found


def imported(source: str) -> set[str]:
    """The modules of utils that a program imports, wherever in it."""
    names = set(modules())
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "utils":
            room = node.module.removeprefix("utils").removeprefix(".")
            whole = [f"{room}.{alias.name}".removeprefix(".") for alias in node.names]
            found |= {name for name in whole if name in names} or {room}
    return found


def test_the_table_names_every_module():
    lessons_own = re.compile(r"exercises\.\w+")
    assert set(TABLE) == {name for name in modules() if not lessons_own.fullmatch(name)} | {"exercises"}


def test_a_lesson_s_import_line_says_what_the_table_says():
    first: dict[str, str] = {}
    faults = []
    for path in notebooks.lessons():
        [source] = [cell.source for cell in notebooks.read(path).cells if cell.id == "imports"]
        for node in ast.parse(source).body:
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "utils":
                line = source.splitlines()[node.lineno - 1]
                [name] = imported(ast.unparse(node))
                name = re.sub(r"^exercises\.\w+", "exercises", name)
                first.setdefault(name, notebooks.number(path))
                if not line.endswith(f"  # {TABLE[name][0]}"):
                    faults.append(f"{path.stem}: {line!r} does not end with `# {TABLE[name][0]}`")
    checks.refuse(faults)
    assert {name: lesson for name, (_, lesson) in TABLE.items() if lesson} == first


def test_a_helper_is_named_where_it_first_appears():
    """In the prose of the first lesson that imports it, in backticks."""
    seen, faults = set(), []
    for path in notebooks.lessons():
        cells = notebooks.read(path).cells
        prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        [source] = [cell.source for cell in cells if cell.id == "imports"]
        used = "\n".join(cell.source for cell in cells if cell.cell_type == "code" and cell.id != "imports")
        for node in ast.parse(source).body:
            if isinstance(node, ast.ImportFrom) and re.fullmatch(r"utils(\.(?!exercises).*)?", node.module):
                for name in {alias.name for alias in node.names if re.search(rf"\b{alias.name}\b", used)} - seen:
                    if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", prose):
                        faults.append(f"{path.stem}: imports {name}, and its prose does not say what `{name}` is")
                    seen.add(name)
    checks.refuse(faults)


def test_imports_run_one_way():
    faults = []
    for name, source in modules().items():
        room = name.split(".")[0] if "." in name else ""
        if name in STARTED:
            continue
        for other in imported(source):
            theirs = other.split(".")[0] if "." in other or other in BELOW else ""
            if theirs not in ("", room) and not {theirs, other} & BELOW[room]:
                faults.append(f"{name} imports {other}")
    checks.refuse(faults)
