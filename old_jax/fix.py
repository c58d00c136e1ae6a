"""Write the new form where it is certain: names that moved, imports, arguments that were renamed.

Only the old words are replaced, at the place where Python's own parser found them: all else, comments and the layout of
the lines, stays letter for letter. What is not certain is left, and said.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from old_jax.find import Finding, advice, findings
from old_jax.moved import KEYWORDS, MOVED, PLAIN
from old_jax.program import Program
from old_jax.read import parse, parses
from old_jax.record import Fate, Record

SHARD_MAP = "jax.experimental.shard_map.shard_map"
SHARD_MAP_PLACES = ("", "mesh=", "in_specs=", "out_specs=", "check_vma=")
NOT_WITH_JAX = ("jax.extend", "jax.example_libraries", "jax.experimental", "jax.export", "jax.scipy")  # own imports
OTHER = {"functools.partial": "functools"}


@dataclass(frozen=True)
class Edit:
    """Put `new` in the place of what stands from one offset of the text to another."""

    start: int
    end: int
    new: str


def fix(source: str, target: str | None = None) -> str:
    """A Python program with the certain changes made; as it was where the change would not parse."""
    for _ in range(3):  # an import's change shows what else is old
        edits = _Fixer(source, target).edits()
        if not edits:
            return source
        new = _applied(source, edits)
        if not parses(new):
            return source
        source = new
    return source


def _applied(source: str, edits: list[Edit]) -> str:
    last = len(source) + 1
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
        if edit.end <= last:
            source = source[: edit.start] + edit.new + source[edit.end :]
            last = edit.start
    return source


class _Fixer:
    def __init__(self, source: str, target: str | None) -> None:
        self.source, self.record = source, Record(target)
        self.program = Program(parse(source), self.record)
        self.found: list[Finding] = findings(self.program, source)
        starts, at = [0], 0
        for line in source.split("\n"):
            at += len(line) + 1
            starts.append(at)
        self.starts, self.lines = starts, source.split("\n")
        self.imports: list[str] = []

    def place(self, line: int, column: int) -> int:
        """The offset in the text of a place that the parser gives, which counts in bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def edits(self) -> list[Edit]:
        made: list[Edit] = []
        statements: set[ast.AST] = set()
        for one in self.found:
            node = one.node
            if one.severity not in ("gone", "warns") or node is None:
                continue
            if isinstance(node, ast.ImportFrom):
                if node not in statements:
                    statements.add(node)
                    made += self._from(node)
            elif isinstance(node, ast.alias):
                made += self._import(node)
            elif isinstance(node, ast.Attribute):
                made += self._attribute(node, one)
            elif isinstance(node, ast.Call):
                made += self._keyword(node, one)
            elif isinstance(node, ast.With) and one.row == 12:
                made += self._with(node)
        made += self._calls_of_shard_map()
        if self.imports:
            made.append(
                Edit(at := self._after_imports(), at, "".join(f"{line}\n" for line in dict.fromkeys(self.imports)))
            )
        return made

    # names

    def _attribute(self, node: ast.Attribute, one: Finding) -> list[Edit]:
        call = self.program.parents.get(node)
        if one.name.startswith("jax.ops.index_"):
            return self._index_update(call, node) if isinstance(call, ast.Call) and call.func is node else []
        if not self._is_plain(one.new) or one.name == SHARD_MAP or ("xla_bridge" in one.name and "extend" in one.new):
            return [] if one.name != SHARD_MAP else self._swap(node, one.name, "jax.shard_map")
        return self._swap(node, one.name, one.new)

    def _swap(self, node: ast.Attribute, old: str, new: str) -> list[Edit]:
        """Put a new dotted name where the old one stands, spelled from the names that the program has."""
        while self.program.dotted(node) != old:
            if not isinstance(node, ast.Attribute):
                return []
            node = node.value
        return [Edit(*self.span(node), self._spelled(new, node))]

    def _spelled(self, new: str, node: ast.AST) -> str:
        top = new.split(".")[0]
        if top != "jax":
            self.imports.append(f"import {top}")
            return new
        best = ("", "")
        for name, values in self.program.whole.bound.items():
            one = values[0][1]
            if len(values) == 1 and isinstance(one, str) and (new == one or new.startswith(f"{one}.")):
                seen = self.program.scopes[node].look(name, node.lineno)
                if (
                    seen == one
                    and len(one) > len(best[1])
                    and values[0][0] <= node.lineno
                    and self.record.fate(one).state == "works"
                ):
                    best = (name, one)
        module = new
        while not self.record.is_module(module):
            module = module.rpartition(".")[0]
        if module.startswith(NOT_WITH_JAX) and best[1] != module:
            self.imports.append(f"import {module}")
        if best[1]:
            return best[0] + new[len(best[1]) :]
        self.imports.append("import jax")
        return new

    def _is_plain(self, new: str) -> bool:
        return bool(PLAIN.match(new)) and (new in OTHER or self.record.fate(new) == Fate("works", new))

    def _index_update(self, call: ast.Call, node: ast.Attribute) -> list[Edit]:
        """`jax.ops.index_update(x, jax.ops.index[i], y)` becomes `x.at[i].set(y)`."""
        if len(call.args) != 3 or call.keywords or any(isinstance(arg, ast.Starred) for arg in call.args):
            return []
        method = MOVED[self.program.dotted(node)][0].split("].")[1].split("(")[0]
        x, index, y = call.args
        simple = isinstance(x, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        before = "" if simple else "("
        inner = self.text(index)
        if isinstance(index, ast.Subscript) and self.program.dotted(index.value) in (
            "jax.ops.index",
            "jax.numpy.index_exp",
            "jax.numpy.s_",
        ):
            inner = self.text(index.slice)
        if "#" in self.text(call) or "jax.ops" in inner:
            return []
        return [
            Edit(
                *self.span(call), f"{before}{self.text(x)}{')' if before else ''}.at[{inner}].{method}({self.text(y)})"
            )
        ]

    # imports

    def _new_home(self, full: str) -> str:
        """The dotted name that takes the place of an imported one; '' where that is not certain."""
        fate = self.record.fate(full)
        module = self.record.fate(full.rpartition(".")[0], as_module=True)
        fate = module if module.state == "gone" else fate
        if fate.state not in ("gone", "warns"):
            return full
        if full.startswith("jax.api.") and self.record.fate(short := full.replace(".api.", ".")) == Fate(
            "works", short
        ):
            return short
        if full == "jax.experimental.pjit.pjit" and self._pjit_by_position():
            return ""
        if full.startswith("jax.lib.xla_bridge.get_") or full.startswith("jax.ops."):
            return ""
        old, new, _ = advice(self.record, fate, full)
        if old not in MOVED or not self._is_plain(new):
            return ""
        new = new + full[len(old) :]
        return new if new in OTHER or self.record.fate(new) == Fate("works", new) else ""

    def _pjit_by_position(self) -> bool:
        """Does a call hand `pjit` its specs by position? `jit` takes them by name only."""
        calls = [node for node in self.program.nodes if isinstance(node, ast.Call)]
        return any(
            len(call.args) > 1 and self.program.dotted(call.func) == "jax.experimental.pjit.pjit" for call in calls
        )

    def _from(self, node: ast.ImportFrom) -> list[Edit]:
        homes = [self._new_home(f"{node.module}.{alias.name}") for alias in node.names]
        kept = [
            alias for alias, home in zip(node.names, homes, strict=True) if home in ("", f"{node.module}.{alias.name}")
        ]
        moves = [(alias, home) for alias, home in zip(node.names, homes, strict=True) if alias not in kept]
        if not moves or ("#" in self.text(node) and kept):
            return []
        indent = " " * node.col_offset
        by: dict[str, list[str]] = {}
        for alias, home in moves:
            module, _, name = home.rpartition(".")
            bound = alias.asname or alias.name
            by.setdefault(module, []).append(name if name == bound else f"{name} as {bound}")
        new = [f"from {module} import {', '.join(names)}" for module, names in by.items()]
        if kept:
            new.insert(0, f"from {node.module} import {', '.join(self.text(alias) for alias in kept)}")
        return [Edit(*self.span(node), f"\n{indent}".join(new))]

    def _import(self, alias: ast.alias) -> list[Edit]:
        home = self._new_home(alias.name)
        if not home or home == alias.name or not self.record.is_module(home):
            return []
        start, end = self.span(alias)
        return [Edit(start, end, home + (f" as {alias.asname}" if alias.asname else ""))]

    def _after_imports(self) -> int:
        """The start of the line after the imports at the top of the file, or after its docstring."""
        last = 0
        for node in self.program.tree.body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not (docstring or isinstance(node, (ast.Import, ast.ImportFrom))):
                break
            last = node.end_lineno
        return self.starts[last]

    # arguments

    def _keyword(self, call: ast.Call, one: Finding) -> list[Edit]:
        made = []
        name = one.name.partition("(")[0]
        for keyword in call.keywords:
            known = KEYWORDS.get((name, keyword.arg or ""))
            means_other = (
                known and known[1] == 10 and self._bare_none(keyword.value)
            )  # it meant whole, and is unsaid now
            if known and f"{name}({keyword.arg}=)" == one.name and re.fullmatch(r"\w+=", known[0]) and not means_other:
                start = self.place(keyword.lineno, keyword.col_offset)
                made.append(Edit(start, start + len(keyword.arg), known[0][:-1]))
            elif one.name in ("jax.make_mesh(axis_shapes=)", "jax.make_mesh(axis_sizes=)") and not call.args:
                made += self._by_position(call)
        return made

    @staticmethod
    def _bare_none(value: ast.expr) -> bool:
        inside = {id(one) for call in ast.walk(value) if isinstance(call, ast.Call) for one in ast.walk(call)}
        return any(
            isinstance(one, ast.Constant) and one.value is None and id(one) not in inside for one in ast.walk(value)
        )

    def _by_position(self, call: ast.Call) -> list[Edit]:
        first = [keyword.arg for keyword in call.keywords[:2]]
        if first not in (["axis_shapes", "axis_names"], ["axis_sizes", "axis_names"]):
            return []
        return [Edit(self.place(k.lineno, k.col_offset), self.span(k.value)[0], "") for k in call.keywords[:2]]

    def _calls_of_shard_map(self) -> list[Edit]:
        """The old `shard_map` took its arguments by position, too, and called one of them `check_rep`."""
        made = []
        for node in self.program.nodes:
            if not isinstance(node, ast.Call) or node in self.program.quiet:
                continue
            name, args = self.program.dotted(node.func), node.args
            if name == "functools.partial" and args:
                name, args = self.program.dotted(args[0]), args[1:]
            if name not in (SHARD_MAP, "jax.shard_map") or len(args) > 5:
                continue
            if name == SHARD_MAP and self._new_home(SHARD_MAP) != "jax.shard_map":
                continue
            for word, arg in zip(SHARD_MAP_PLACES, args, strict=False):
                if word:
                    start = self.span(arg)[0]
                    made.append(Edit(start, start, word))
            for keyword in node.keywords:
                if keyword.arg == "check_rep":
                    start = self.place(keyword.lineno, keyword.col_offset)
                    made.append(Edit(start, start + len("check_rep"), "check_vma"))
        return made

    def _with(self, node: ast.With) -> list[Edit]:
        """`with mesh:` where the program itself shows that it is a mesh."""
        made = []
        for item in node.items:
            value = self.program.value(item.context_expr)
            known = isinstance(value, ast.Call) and self.program.dotted(value.func) in (
                "jax.make_mesh", "jax.sharding.Mesh", "jax.experimental.maps.Mesh", "jax.interpreters.pxla.Mesh",
            )  # fmt: skip
            if known and item.optional_vars is None and self._is_plain("jax.set_mesh"):
                start, end = self.span(item.context_expr)
                set_mesh = self._spelled("jax.set_mesh", item.context_expr)
                made.append(Edit(start, end, f"{set_mesh}({self.source[start:end]})"))
        return made
