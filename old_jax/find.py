"""Find old JAX in a program: what is gone, warns, or means something else, and what to write instead."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from old_jax.meanings import Meanings
from old_jax.moved import ALONE, BEYOND, KEYWORDS, MOVED, REFUSED, moved
from old_jax.program import Program
from old_jax.read import Unreadable, parse, read
from old_jax.record import Fate, Record

SEVERITIES = ("gone", "warns", "means something else", "could be better", "private")
PRIVATE = re.compile(r"jax\.(?:\w+\.)*?_(?!_)\w*")  # jax._src, jax.core._x; not jax.__version__
KNOWN = {"jax", "jaxlib", "numpy", "scipy", "matplotlib", *sys.stdlib_module_names}  # they import no more of JAX
SILENCED = re.compile(r"#\s*noqa:[\w\s,-]*\bold-jax\b")


@dataclass(frozen=True)
class Finding:
    """One use of an old form."""

    line: int  # of the program
    row: int | None  # of appendix 90; None where it has no row for this
    severity: str  # one of SEVERITIES
    name: str  # what is old, spelled in full: 'jax.tree_map'
    new: str  # what to write instead, or why it is gone
    node: ast.AST = field(compare=False, repr=False)


class NotPython(Unreadable):
    """A program that does not parse; the message names the line."""


def find(source: str, name: str = "source", target: str | None = None) -> list[Finding]:
    """The old forms of a Python program, by line, for a version of JAX (the newest that is recorded).

    Raises NotPython, which names the line; ValueError where nothing is recorded of the target.
    """
    return look(source, name, target)[0]


def look(source: str, name: str = "source", target: str | None = None) -> tuple[list[Finding], list[int]]:
    """As `find`; and the lines that were not looked at, since a guard is before them or they never run."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise NotPython(f"{name}, line {line}: not Python: {getattr(error, 'msg', error)}") from error
    record = Record(target)
    if "jax" not in source and "flax" not in source and ".sharding" not in source:
        return [], []
    program = Program(tree, record)
    return findings(program, source), sorted(program.unseen)


def findings(program: Program, source: str) -> list[Finding]:
    """As `find`, of a program that is parsed already; the findings' nodes are its own."""
    lines = source.split("\n")
    found: dict[tuple, Finding] = {}
    for one in [*_Names(program).findings(), *(Finding(*told) for told in Meanings(program).findings())]:
        last = one.node.end_lineno if isinstance(one.node, (ast.Attribute, ast.ImportFrom)) else one.line
        if not any(SILENCED.search(line) for line in lines[one.line - 1 : last]):
            found.setdefault((one.line, one.row, one.name), one)
    return sorted(found.values(), key=lambda one: (one.line, one.row or 0, one.name))


class _Names:
    """What the record says of each import, dotted name, keyword and option of a program."""

    def __init__(self, program: Program) -> None:
        self.program, self.record = program, program.record
        self.imported: set[str] = set()  # modules, and what may be one
        for node in program.nodes:
            if isinstance(node, ast.Import):
                self.imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                self.imported.update(f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
        self.lacking: set[str] = set()  # modules whose import was missed already

    def findings(self) -> Iterator[Finding]:
        for node in self.program.nodes:
            if node not in self.program.quiet:
                yield from self._of(node)
        yield from self._stars()

    def _of(self, node: ast.AST) -> Iterator[Finding]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._named(alias, alias.name, as_module=True)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = self.record.fate(node.module, as_module=True)
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if whole.state == "gone":
                    yield self._finding(node, Fate("gone", whole.name, whole.said, whole.last, whole.first), full)
                elif alias.name != "*":
                    yield from self._named(node, full)
        elif isinstance(node, ast.Attribute):
            above = self.program.parents.get(node)
            if isinstance(above, ast.Attribute) and self.program.dotted(above):
                return
            name = self.program.dotted(node)
            if name.startswith("jax.config.config."):  # of `from jax.config import config`
                yield from self._named(node, name.replace(".config", "", 1))
            elif isinstance(node.ctx, ast.Load) and (name in MOVED or not self._root_is_known(node)):
                yield from self._named(node, name)
                yield from self._lacks(node, name)
        elif isinstance(node, ast.Call):
            name = self.program.dotted(node.func)
            if isinstance(node.func, ast.Name) and node.func.id == "getattr":
                yield from self._named(node, self.program.dotted(node))
            elif name in ("importlib.import_module", "__import__") and isinstance(node.args[0], ast.Constant):
                yield from self._named(node, str(node.args[0].value), as_module=True)
            yield from self._call(node, name)

    def _root_is_known(self, node: ast.AST) -> bool:
        """Is what a dotted name begins with gone, or private, itself? Its import is reported, and not each use."""
        while isinstance(node, ast.Attribute):
            node = node.value
        private = PRIVATE.match(self.program.dotted(node)) if isinstance(node, ast.Name) else None
        return isinstance(node, ast.Name) and (bool(private) or self.program.is_gone(node))

    def _lacks(self, node: ast.AST, name: str) -> Iterator[Finding]:
        """`jax.flatten_util.ravel_pytree` where nothing imports jax.flatten_util."""
        parts = name.split(".")
        module = next((m for m in (".".join(parts[:end]) for end in (2, 3)) if m in ALONE), None)
        if module is None or module in self.lacking or not self.record.is_module(module):
            return
        if any(one == module or one.startswith(f"{module}.") for one in self.imported):
            return
        self.lacking.add(module)
        others = {one.split(".")[0] for one in self.imported} - KNOWN or self.imported & ALONE
        luck = "; perhaps another import does" if others else ""
        new = f"import {module}, which `import jax` does not bring{luck}"
        yield Finding(node.lineno, None, "could be better" if others else "gone", module, new, node)

    def _named(self, node: ast.AST, name: str, as_module: bool = False) -> Iterator[Finding]:
        if private := PRIVATE.match(name):
            new = "no promise: it may change in any release"
            if there := self.record.elsewhere(name):
                new += f"; perhaps {there}"
            yield Finding(node.lineno, None, "private", name if private[0] == "jax._src" else private[0], new, node)
        elif name.startswith("jax."):
            fate = self.record.fate(name, as_module=as_module)
            if fate.state in ("gone", "warns"):
                yield self._finding(node, fate, name)
        elif name == "flax.optim" or name.startswith(("flax.optim.", "jaxlib.xla_extension.DeviceArray")):
            new, row = moved(name) or ("", None)
            yield Finding(node.lineno, row, "gone", name, new, node)

    def _finding(self, node: ast.AST, fate: Fate, name: str) -> Finding:
        old, new, row = advice(self.record, fate, name)
        severity = "could be better" if node in self.program.annotations else fate.state
        return Finding(node.lineno, row, severity, old, new, node)

    def _call(self, node: ast.Call, name: str) -> Iterator[Finding]:
        args = node.args
        if name in ("functools.partial", "jax.tree_util.Partial") and args:
            name, args = self.program.dotted(args[0]), args[1:]
        if name == "jax.config.update" and args and isinstance(args[0], ast.Constant):
            fate = self.record.option(str(args[0].value))
            if fate.state == "gone":
                yield Finding(
                    node.lineno, BEYOND, "gone", f"jax.config {fate.name}", f"nothing: gone after {fate.last}", node
                )
        if not name.startswith("jax."):
            return
        call = self.record.call(name)
        for keyword in [*node.keywords, *self._in_dictionaries(node)]:
            known = KEYWORDS.get((name, keyword.arg or ""))
            if keyword.arg is None:
                continue
            strange = call is not None and not call.any_keyword and keyword.arg not in call.keywords
            gone = strange or (name, keyword.arg) in REFUSED
            warned = (call is not None and keyword.arg in call.warned) or (known is not None and known[1] == 15)
            if gone or warned:
                new, row = known or (_instead(name, keyword.arg, call), None)
                yield Finding(node.lineno, row, "gone" if gone else "warns", f"{name}({keyword.arg}=)", new, node)
        stars = any(isinstance(arg, ast.Starred) for arg in args)
        if call is not None and not stars and len(args) > call.places and not self._is_class_or_decorator(name):
            few = f"at most {int(call.places)} by position; the others by name"
            yield Finding(node.lineno, 11 if "shard_map" in name else None, "gone", f"{name}()", few, node)

    def _in_dictionaries(self, call: ast.Call) -> Iterator[ast.keyword]:
        """The keywords of `f(**{"check_rep": False})`, and of a dictionary that has a name."""
        for keyword in call.keywords:
            value = self.program.value(keyword.value) if keyword.arg is None else None
            if isinstance(value, ast.Dict):
                for key, one in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield ast.keyword(key.value, one)
            elif isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict":
                yield from value.keywords

    @staticmethod
    def _is_class_or_decorator(name: str) -> bool:
        return name in ("jax.custom_jvp", "jax.custom_vjp")

    def _stars(self) -> Iterator[Finding]:
        """Names that `from jax.x import *` brought once, and does not any more."""
        bound = {name for scope in set(self.program.scopes.values()) for name in scope.bound}
        for module in self.program.stars:
            if not self.record.is_module(module):
                continue
            for node in self.program.nodes:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
                    fate = self.record.fate(f"{module}.{node.id}")
                    if fate.state == "gone" and fate.last:
                        yield self._finding(node, fate, f"{module}.{node.id}")


def advice(record: Record, fate: Fate, name: str) -> tuple[str, str, int | None]:
    """Which part of a name that is gone or warns is old, what to write for it, and the row of appendix 90: from the
    rows, else from JAX's own words, else from where JAX has a thing of this name today."""
    for old in (name, fate.name):
        if old in MOVED:
            return old, *MOVED[old]
    family = moved(name)
    row = family[1] if family else BEYOND if fate.last else None
    use = re.search(r"\b[Uu]sed? `?((?:jax|jnp)\.[\w.]*\w)", fate.said)
    new = use[1].replace("jnp.", "jax.numpy.") if use else ""
    if record.fate(new).state != "works" or new == fate.name:
        new = ""
    if not new and fate.last and not fate.said and (there := record.elsewhere(name)):
        return name, f"perhaps {there}", row
    if new or family:
        return fate.name, new or family[0], row
    if fate.first:
        return fate.name, f"it comes only in {fate.first}", None
    return fate.name, fate.said[:120] or (f"gone after {fate.last}" if fate.last else "no recorded JAX has it"), row


def _instead(name: str, keyword: str, call) -> str:
    if call is None or keyword in call.keywords:
        return "JAX warns of this argument"
    return f"no such argument; there is {', '.join(sorted(call.keywords)[:8]) or 'none by name'}"


def report(path: str | Path, target: str | None = None) -> list[tuple[str, str, int | None, str]]:
    """Each use of an old form in a file: (place, the line's text, row of appendix 90, new form).

    Raises Unreadable where nothing of the file could be read.
    """
    return [(place, code, one.row, one.new) for place, code, one in examine(Path(path), target)[0]]


def examine(path: Path, target: str | None = None) -> tuple[list[tuple[str, str, Finding]], list[str]]:
    """The findings of a file, each with its place and the line's text; and notes on what of it could not be read."""
    texts, notes = read(path)
    rows = []
    for text in texts:
        found, unseen = look(text.source, str(path), target)
        rows += [(text.places[one.line - 1], text.lines[one.line - 1].strip(), one) for one in found]
        if unseen:
            several = "s" * (len(unseen) != 1)
            where = f"{path}: {len(unseen)} line{several} not looked at, the first is {text.places[unseen[0] - 1]}"
            notes.append(f"{where}: a guard asks first, or JAX {Record(target).version} never comes there")
    return rows, notes
