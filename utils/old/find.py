"""Find old forms of parallel JAX in a program: which lines use one, and which row of appendix 90 has the new form.

usage: python -m utils.find_old FILE...     (Python files and notebooks)
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.old.forms import ROWS

NAMES = {
    "jax.numpy.random": 1,
    "jax.experimental.maps": 2,
    "jax.experimental.PartitionSpec": 2,
    "jax.sharding.PositionalSharding": 3,
    "jax.experimental.pjit": 10,
    "jax.experimental.shard_map": 11,
    "jax.sharding.use_mesh": 12,
    "jax.lax.pvary": 14,
    "jax.experimental.shard": 4,
    "jax.sharding.PmapSharding": 18,
    "jax.device_put_sharded": 5,
    "jax.device_put_replicated": 5,
    **{f"jax.tree_{name}": 7 for name in ("map", "multimap", "leaves", "flatten", "unflatten", "structure", "reduce")},
    "jax.tools.colab_tpu": 8,
    "jax.lib.xla_bridge": 9,
}
PJITS = {"jax.jit", "jax.experimental.pjit.pjit"}
SHARD_MAPS = {"jax.shard_map", "jax.experimental.shard_map.shard_map"}
KEYWORDS = {
    **{(name, keyword): 11 for name in SHARD_MAPS for keyword in ("check_rep", "auto")},
    ("jax.make_mesh", "axis_shapes"): 13,
    **{(name, f"{way}_axis_resources"): 10 for name in PJITS for way in ("in", "out")},
    ("jax.jit", "backend"): 15,
    ("jax.jit", "device"): 15,
}
RESHARDS = {"jax.reshard", "jax.sharding.reshard"}
MESHES = {"jax.make_mesh", "jax.sharding.Mesh", "jax.experimental.maps.Mesh", "jax.interpreters.pxla.Mesh"}
COLLECTIVES = {f"jax.lax.{name}" for name in ("psum", "pmean", "pmax", "pmin", "all_gather", "ppermute", "all_to_all")}


@dataclass(frozen=True, order=True)
class Finding:
    line: int  # of the file, or of all code cells of the notebook one after the other
    row: int


class NotPython(Exception):
    """A file or a cell that does not parse; the message names the line."""


def find(source: str, name: str = "source") -> list[Finding]:
    """The lines of a Python program that use an old form. Raises NotPython, which names the line."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise NotPython(f"{name}, line {error.lineno}: not Python: {error.msg}") from error
    return sorted(set(_Program(tree).findings()))


class _Program:
    """A parsed program: what its names stand for, and who calls whom."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.modules: dict[str, str] = {}  # a name in the program: what it was imported as
        self.values: dict[str, ast.expr] = {}  # a name: the expression last assigned to it
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.modules[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.values[node.targets[0].id] = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                whole = node.value.value if isinstance(node.value, ast.Subscript) else node.value
                for i, name in enumerate(node.targets[0].elts):
                    if isinstance(name, ast.Name):
                        self.values[name.id] = ast.Subscript(whole, ast.Constant(i))

    def dotted(self, node: ast.AST) -> str:
        """'jax.numpy.random' for `jnp.random`; '' for what is no imported name."""
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return self.modules.get(node.id, "") if isinstance(node, ast.Name) else ""

    def findings(self) -> Iterator[Finding]:
        for node in ast.walk(self.tree):
            for row in self._rows(node):
                yield Finding(node.lineno, row)

    def _rows(self, node: ast.AST) -> Iterator[int]:
        if isinstance(node, ast.Import):
            yield from (row for alias in node.names for row in _named(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (row for alias in node.names for row in _named(f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Attribute):
            yield from _named(self.dotted(node))
            if node.attr in ("device_buffer", "device_buffers"):
                yield 6
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.With):
            yield from (12 for item in node.items if self._is_mesh(item.context_expr))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            sides = [node.left, node.comparators[0]]
            if any(isinstance(side, ast.Tuple) for side in sides) and any(self._is_spec(side) for side in sides):
                yield 22

    def _call(self, node: ast.Call) -> Iterator[int]:
        name, args = self.dotted(node.func), node.args
        if name == "functools.partial" and args:
            name, args = self.dotted(args[0]), args[1:]
        keywords = {keyword.arg for keyword in node.keywords}
        yield from (row for (callee, keyword), row in KEYWORDS.items() if callee == name and keyword in keywords)
        if name == "jax.make_mesh" and not keywords & {"axis_types", None} and len(args) < 3:
            yield 16
        meshes = [keyword.value for keyword in node.keywords if keyword.arg == "mesh"]
        cuts = name == "jax.shard_map" and "in_specs" in keywords and any(map(self._is_explicit_mesh, meshes))
        if cuts and not self._mentions(self.tree, RESHARDS):
            yield 17
        if name == "jax.pmap" and args and self._is_pmap(args[0]):
            yield 18
        method = node.func.attr if isinstance(node.func, ast.Attribute) and not (args or keywords) else ""
        if method == "device" and self._is_from_jax(node.func.value):
            yield 6
        targets = args[1:2] + [keyword.value for keyword in node.keywords if keyword.arg == "device"]
        platforms = args[:1] + [keyword.value for keyword in node.keywords if keyword.arg == "backend"]
        if name == "jax.devices" and not self._inside(node, ast.Try):
            yield from (19 for p in platforms if isinstance(p, ast.Constant) and p.value != "cpu")
        if name == "jax.device_put" and any(map(self._is_device, targets)) and self._under(node, "jit"):
            yield 21
        if name in COLLECTIVES and self._under(node, "jit") and not self._may_have_axis(node):
            yield 20

    def _value(self, node: ast.AST) -> ast.AST:
        """What a name was assigned; any other expression as it is."""
        return self.values.get(node.id, node) if isinstance(node, ast.Name) else node

    def _is_from_jax(self, node: ast.AST) -> bool:
        value = self._value(node)
        return isinstance(value, ast.Call) and self.dotted(value.func).startswith("jax.")

    def _is_mesh(self, node: ast.AST) -> bool:
        """A mesh by its value; or, where that is not in sight, as a parameter or an attribute is not, by its name."""
        value = self._value(node)
        if isinstance(value, (ast.Name, ast.Attribute)):
            return "jax" in self.modules.values() and getattr(value, "id", getattr(value, "attr", "")) == "mesh"
        return isinstance(value, ast.Call) and self.dotted(value.func) in MESHES

    def _is_spec(self, node: ast.AST) -> bool:
        value = self._value(node)
        if isinstance(value, ast.Call):
            return self.dotted(value.func) in ("jax.P", "jax.sharding.PartitionSpec")
        return isinstance(value, ast.Attribute) and value.attr == "spec"

    def _is_pmap(self, node: ast.AST) -> bool:
        value = self._value(node)
        return isinstance(value, ast.Call) and self.dotted(value.func) == "jax.pmap"

    def _is_device(self, node: ast.AST) -> bool:
        value = self._value(node)
        if not isinstance(value, ast.Subscript):
            return False
        many = self._value(value.value)
        return isinstance(many, ast.Call) and self.dotted(many.func) in ("jax.devices", "jax.local_devices")

    def _is_explicit_mesh(self, node: ast.AST) -> bool:
        value = self._value(node)
        if not isinstance(value, ast.Call):
            return False
        if self.dotted(value.func) == "jax.make_mesh" and not any(k.arg == "axis_types" for k in value.keywords):
            return True
        return any(self.dotted(inner) == "jax.sharding.AxisType.Explicit" for inner in ast.walk(value))

    def _mentions(self, tree: ast.AST, names: set[str]) -> bool:
        return any(self.dotted(node) in names for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute)))

    def _may_have_axis(self, node: ast.AST) -> bool:
        """Does a function around this one, or one that is applied to it, speak of named axes?"""
        if self._under(node, "shard_map", "pmap", "vmap"):
            return True
        while node := self.parents.get(node):
            if isinstance(node, ast.FunctionDef) and self._mentions(node, SHARD_MAPS | {"jax.pmap"}):
                return True
        return False

    def _inside(self, node: ast.AST, kind: type[ast.AST]) -> bool:
        while node := self.parents.get(node):
            if isinstance(node, kind):
                return True
        return False

    def _under(self, node: ast.AST, *names: str) -> bool:
        """Does the node stand in a function that one of jax's transformations of these names is applied to?"""
        wanted = {f"jax.{name}" for name in names} | (SHARD_MAPS if "shard_map" in names else set())
        while node := self.parents.get(node):
            if isinstance(node, ast.Lambda) and any(self._applies(call, node, wanted) for call in self._calls()):
                return True
            if isinstance(node, ast.FunctionDef):
                used = {self.dotted(inner) for d in node.decorator_list for inner in ast.walk(d)}
                if used & wanted or any(self._applies(call, node, wanted) for call in self._calls()):
                    return True
        return False

    def _calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def _applies(self, call: ast.Call, function: ast.AST, wanted: set[str]) -> bool:
        if self.dotted(call.func) not in wanted or not call.args:
            return False
        first = self._value(call.args[0])
        return first is function or (isinstance(first, ast.Name) and first.id == getattr(function, "name", None))


def _named(dotted: str) -> Iterator[int]:
    yield from (row for old, row in NAMES.items() if dotted == old or dotted.startswith(f"{old}."))


def read(path: Path) -> tuple[str, list[str]]:
    """The Python of a file, and for each of its lines where it stands: 'line 3', or 'cell 2, line 1' of a notebook.

    In a notebook, magics and shell commands do not count; `%%time` and its like do not hide their cell, and a cell in
    another language is left out. Raises NotPython, which names cell and line.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text, [f"line {i}" for i in range(1, text.count("\n") + 2)]
    from IPython.core.inputtransformer2 import TransformerManager

    lines: list[str] = []
    places: list[str] = []
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        source = "".join(cell["source"])
        first = source.lstrip().split("\n")[0]
        if first.startswith("%%"):
            if first[2:].split(" ")[0] not in ("time", "timeit", "capture", "prun"):
                continue
            source = source.replace(first, "", 1)
        blank = source[: len(source) - len(source.lstrip())].count("\n")
        plain = "\n" * blank + TransformerManager().transform_cell(source)  # which drops the blank lines at the top
        find(plain, f"{path}, cell {number}")
        lines += (code := plain.rstrip("\n").split("\n"))
        places += [f"cell {number}, line {i}" for i in range(1, len(code) + 1)]
    return "\n".join(lines), places


def report(path: str | Path) -> list[tuple[str, str, int, str]]:
    """Each use of an old form in a file: (place, the line's text, row of appendix 90, new form). Errors as `read`."""
    source, places = read(Path(path))
    lines = source.split("\n")
    return [
        (places[found.line - 1], lines[found.line - 1].strip(), found.row, ROWS[found.row].new)
        for found in find(source, str(path))
    ]


def main(paths: list[str]) -> int:
    from utils.show.table import show_table

    if not paths:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    total = 0
    for path in paths:
        try:
            rows = report(path)
        except (NotPython, OSError, ValueError) as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
        total += len(rows)
        print(f"{path}: {len(rows)} old form{'s' * (len(rows) != 1)}")
        if rows:
            show_table(["where", "code", "row of 90", "new form"], rows)
    return int(total > 0)
