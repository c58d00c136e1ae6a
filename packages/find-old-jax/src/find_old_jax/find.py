"""Find uses of JAX APIs that were removed, now cause warnings or have changed in meaning, and suggest replacements."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from find_old_jax.context_checks import ContextChecks
from find_old_jax.program import CONVENTIONAL, Program
from find_old_jax.read import Unreadable, parse, read
from find_old_jax.release_names import NameStatus, Record
from find_old_jax.replacements import GENERAL_ROW, KEYWORDS, NEEDS_IMPORT, REFUSED, REPLACEMENTS, find_replacement
from find_old_jax.scopes import Located

SEVERITIES = ("gone", "warns", "means something else", "could be better", "private")
PRIVATE = re.compile(r"jax\.(?:\w+\.)*?_(?!_)\w*")  # matches jax._src and jax.core._x, but not jax.__version__
INDEPENDENT_PACKAGES = {
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "matplotlib",
    *sys.stdlib_module_names,
}  # importing these packages doesn't import further JAX modules
SILENCED = re.compile(r"#\s*noqa:[\w\s,-]*\bold-jax\b")


@dataclass(frozen=True)
class Finding:
    """A use of a removed, deprecated or changed API."""

    line: int  # line number in the program, counted from 1
    row: int | None  # row of appendix 90, or None if no row covers it
    severity: str  # one of SEVERITIES
    name: str  # full name of the old API, such as 'jax.tree_map'
    new: str  # the replacement, or the reason for the removal
    node: Located = field(compare=False, repr=False)


class NotPython(Unreadable):
    """Raised for a program that doesn't parse. The message gives the line number."""


def find(source: str, name: str = "source", target: str | None = None) -> list[Finding]:
    """Return the findings in a Python program, sorted by line.

    Args:
        source: the program's text.
        name: the name of the program in error messages.
        target: the JAX version to check for. None means the newest recorded one.

    Raises NotPython if the program doesn't parse, and ValueError if the record doesn't contain the target version.
    """
    return find_with_unchecked_lines(source, name, target)[0]


def find_with_unchecked_lines(
    source: str, name: str = "source", target: str | None = None
) -> tuple[list[Finding], list[int]]:
    """Return a program's findings, as `find` does, and the numbers of the lines that weren't checked.

    A line isn't checked if it never runs or is guarded, for example by a check of the JAX version.
    """
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise NotPython(f"{name}, line {line}: not Python: {getattr(error, 'msg', error)}") from error
    record = Record(target)
    if not any(word in source for word in (*CONVENTIONAL, ".sharding")):
        return [], []
    program = Program(tree, record)
    return findings(program, source), sorted(program.unchecked_lines)


def findings(program: Program, source: str) -> list[Finding]:
    """Return the findings in a parsed program. Each finding's `node` is part of that program's tree."""
    lines = source.split("\n")
    unique: dict[tuple, Finding] = {}
    for finding in [
        *_NameChecker(program).findings(),
        *(Finding(*match) for match in ContextChecks(program).findings()),
    ]:
        last_line = (
            finding.node.end_lineno if isinstance(finding.node, (ast.Attribute, ast.ImportFrom)) else finding.line
        )
        if not any(SILENCED.search(line) for line in lines[finding.line - 1 : last_line]):
            unique.setdefault((finding.line, finding.row, finding.name), finding)
    return sorted(unique.values(), key=lambda finding: (finding.line, finding.row or 0, finding.name))


class _NameChecker:
    """Check each import, dotted name, keyword and config option of a program against the record."""

    def __init__(self, program: Program) -> None:
        self.program, self.record = program, program.record
        self.imported: set[str] = set()  # imported modules, and imported names that may be modules
        for node in program.nodes:
            if isinstance(node, ast.Import):
                self.imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                self.imported.update(f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
        self.reported_imports: set[str] = set()  # modules already reported as used without an import

    def findings(self) -> Iterator[Finding]:
        for node in self.program.nodes:
            if node not in self.program.guarded:
                yield from self._check_node(node)
        yield from self._star_imports()

    def _check_node(self, node: ast.AST) -> Iterator[Finding]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._check_name(alias, alias.name, as_module=True)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = self.record.status(node.module, as_module=True)
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if module.state == "gone":
                    yield self._finding(
                        node, NameStatus("gone", module.name, module.message, module.last, module.first), full
                    )
                elif alias.name != "*":
                    yield from self._check_name(node, full)
        elif isinstance(node, ast.Attribute):
            above = self.program.parents.get(node)
            if isinstance(above, ast.Attribute) and self.program.dotted(above):
                return
            name = self.program.dotted(node)
            if name.startswith("jax.config.config."):  # after `from jax.config import config`
                yield from self._check_name(node, name.replace(".config", "", 1))
            elif isinstance(node.ctx, ast.Load) and (name in REPLACEMENTS or not self._root_is_known(node)):
                yield from self._check_name(node, name)
                yield from self._missing_import(node, name)
        elif isinstance(node, ast.Name) and node.id in self.program.assumed:  # there is no import to report instead
            yield from self._check_name(node, self.program.dotted(node))
        elif isinstance(node, ast.Call):
            name = self.program.dotted(node.func)
            if isinstance(node.func, ast.Name) and node.func.id == "getattr":
                yield from self._check_name(node, self.program.dotted(node))
            elif name in ("importlib.import_module", "__import__") and isinstance(node.args[0], ast.Constant):
                yield from self._check_name(node, str(node.args[0].value), as_module=True)
            yield from self._check_call(node, name)

    def _root_is_known(self, node: ast.AST) -> bool:
        """Return whether a dotted name's root is removed or private, in which case its import was already reported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        private = PRIVATE.match(self.program.dotted(node)) if isinstance(node, ast.Name) else None
        return isinstance(node, ast.Name) and (bool(private) or self.program.is_gone(node))

    def _missing_import(self, node: Located, name: str) -> Iterator[Finding]:
        """Report a module, such as jax.flatten_util, that is used but never imported."""
        parts = name.split(".")
        module = next((m for m in (".".join(parts[:end]) for end in (2, 3)) if m in NEEDS_IMPORT), None)
        if module is None or module in self.reported_imports or not self.record.is_module(module):
            return
        if any(imported == module or imported.startswith(f"{module}.") for imported in self.imported):
            return
        self.reported_imports.add(module)
        other_packages = {
            imported.split(".")[0] for imported in self.imported
        } - INDEPENDENT_PACKAGES or self.imported & NEEDS_IMPORT
        hint = ", unless another import does" if other_packages else ""
        new = f"import {module}, because `import jax` does not import it{hint}"
        yield Finding(node.lineno, None, "could be better" if other_packages else "gone", module, new, node)

    def _check_name(self, node: Located, name: str, as_module: bool = False) -> Iterator[Finding]:
        if private := PRIVATE.match(name):
            new = "it is private, and may change in any release"
            if current_name := self.record.find_elsewhere(name):
                new += f"; perhaps {current_name}"
            yield Finding(node.lineno, None, "private", name if private[0] == "jax._src" else private[0], new, node)
        elif name.startswith("jax."):
            status = self.record.status(name, as_module=as_module)
            if status.state in ("gone", "warns"):
                yield self._finding(node, status, name)
        elif name == "flax.optim" or name.startswith(("flax.optim.", "jaxlib.xla_extension.DeviceArray")):
            new, row = find_replacement(name) or ("", None)
            yield Finding(node.lineno, row, "gone", name, new, node)

    def _finding(self, node: Located, status: NameStatus, name: str) -> Finding:
        old, new, row = advice(self.record, status, name)
        severity = "could be better" if node in self.program.annotations else status.state
        return Finding(node.lineno, row, severity, old, new, node)

    def _check_call(self, node: ast.Call, name: str) -> Iterator[Finding]:
        args = node.args
        if name in ("functools.partial", "jax.tree_util.Partial") and args:
            name, args = self.program.dotted(args[0]), args[1:]
        if name == "jax.config.update" and args and isinstance(args[0], ast.Constant):
            status = self.record.option(str(args[0].value))
            if status.state == "gone":
                yield Finding(
                    node.lineno,
                    GENERAL_ROW,
                    "gone",
                    f"jax.config {status.name}",
                    f"nothing: gone after {status.last}",
                    node,
                )
        if not name.startswith("jax."):
            return
        call = self.record.call(name)
        for keyword in [*node.keywords, *self._in_dictionaries(node)]:
            advised = KEYWORDS.get((name, keyword.arg or ""))
            if keyword.arg is None:
                continue
            is_unknown = call is not None and not call.any_keyword and keyword.arg not in call.keywords
            is_removed = is_unknown or (name, keyword.arg) in REFUSED
            is_deprecated = (call is not None and keyword.arg in call.warned) or (
                advised is not None and advised[1] == 15
            )
            if is_removed or is_deprecated:
                new, row = advised or (_keyword_advice(name, keyword.arg, call), None)
                yield Finding(node.lineno, row, "gone" if is_removed else "warns", f"{name}({keyword.arg}=)", new, node)
        has_starred = any(isinstance(arg, ast.Starred) for arg in args)
        if (
            call is not None
            and not has_starred
            and len(args) > call.max_positional
            and not self._is_class_or_decorator(name)
        ):
            limit = f"pass at most {int(call.max_positional)} arguments by position, and the others by name"
            yield Finding(node.lineno, 11 if "shard_map" in name else None, "gone", f"{name}()", limit, node)

    def _in_dictionaries(self, call: ast.Call) -> Iterator[ast.keyword]:
        """Yield the keywords that a call unpacks, as in `f(**{"check_rep": False})`, even from a dict in a variable."""
        for keyword in call.keywords:
            value = self.program.value(keyword.value) if keyword.arg is None else None
            if isinstance(value, ast.Dict):
                for key, value_node in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield ast.keyword(key.value, value_node)
            elif isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict":
                yield from value.keywords

    @staticmethod
    def _is_class_or_decorator(name: str) -> bool:
        return name in ("jax.custom_jvp", "jax.custom_vjp")

    def _star_imports(self) -> Iterator[Finding]:
        """Report names that `from jax.x import *` no longer imports."""
        bound = {name for scope in set(self.program.scopes.values()) for name in scope.bound}
        for module in self.program.stars:
            if not self.record.is_module(module):
                continue
            for node in self.program.nodes:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
                    status = self.record.status(f"{module}.{node.id}")
                    if status.state == "gone" and status.last:
                        yield self._finding(node, status, f"{module}.{node.id}")


def advice(record: Record, status: NameStatus, name: str) -> tuple[str, str, int | None]:
    """Return the part of a name that was removed or deprecated, its replacement, and the row of appendix 90.

    The replacement comes from the table in replacements.py or, if the table has none, from JAX's own message or from a
    module that currently contains the same name.
    """
    for old in (name, status.name):
        if old in REPLACEMENTS:
            return old, *REPLACEMENTS[old]
    family = find_replacement(name)
    row = family[1] if family else GENERAL_ROW if status.last else None
    suggestion = re.search(r"\b[Uu]sed? `?((?:jax|jnp)\.[\w.]*\w)", status.message)
    new = suggestion[1].replace("jnp.", "jax.numpy.") if suggestion else ""
    if record.status(new).state != "works" or new == status.name:
        new = ""
    if not new and status.last and not status.message and (current_name := record.find_elsewhere(name)):
        return name, f"perhaps {current_name}", row
    if new or family:
        return status.name, new or (family[0] if family else ""), row
    if status.first:
        return status.name, f"it does not exist before {status.first}", None
    reason = f"gone after {status.last}" if status.last else "no recorded JAX version has it"
    return status.name, status.message[:120] or reason, row


def _keyword_advice(name: str, keyword: str, call) -> str:
    if call is None or keyword in call.keywords:
        return "JAX warns about this argument"
    return f"no such argument; the function accepts {', '.join(sorted(call.keywords)[:8]) or 'none by name'}"


def report(path: str | Path, target: str | None = None) -> list[tuple[str, str, int | None, str]]:
    """Return a file's findings as tuples (place, text of the line, row of appendix 90, replacement).

    Raises Unreadable if no part of the file can be read.
    """
    return [(place, code, finding.row, finding.new) for place, code, finding in examine(Path(path), target)[0]]


def examine(path: Path, target: str | None = None) -> tuple[list[tuple[str, str, Finding]], list[str]]:
    """Return a file's findings, each with its place and line of code, and notes on the parts that weren't checked."""
    texts, notes = read(path)
    rows = []
    for text in texts:
        file_findings, unchecked = find_with_unchecked_lines(text.source, str(path), target)
        rows += [
            (text.places[finding.line - 1], text.lines[finding.line - 1].strip(), finding) for finding in file_findings
        ]
        if unchecked:
            plural = "s" * (len(unchecked) != 1)
            start = text.places[unchecked[0] - 1]
            reason = f"guarded, or never run on JAX {Record(target).version}"
            notes.append(f"{path}: {len(unchecked)} line{plural} not checked, starting at {start}: {reason}")
    return rows, notes
