"""Replace old JAX APIs automatically if the replacement is certain to be equivalent.

The tables in safe_renames.py list these APIs and the contexts in which it's safe to replace them. Only the old names
are overwritten, at the offsets that Python's parser reports, so comments and formatting are preserved. All other
findings are only reported.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from find_old_jax.find import Finding, findings
from find_old_jax.program import Program
from find_old_jax.read import parse, parses
from find_old_jax.release_names import Record
from find_old_jax.replacements import REPLACEMENTS
from find_old_jax.safe_renames import ANNOTATED, ANYWHERE, CALLED, MODULE, RENAMED_KEYWORDS, SAFE_RENAMES
from find_old_jax.scopes import Located

SHARD_MAP = "jax.experimental.shard_map.shard_map"
PJIT = "jax.experimental.pjit.pjit"
SHARD_MAP_PLACES = ("", "mesh=", "in_specs=", "out_specs=", "check_vma=")
# modules that `import jax` doesn't import
NEEDS_OWN_IMPORT = ("jax.extend", "jax.example_libraries", "jax.experimental", "jax.export", "jax.scipy")
ARRAYS = re.compile(  # calls whose results are JAX arrays, which have `.at`
    r"jax\.(numpy\.(array|asarray|zeros|ones|full|empty|arange|linspace|eye|(zeros|ones|full|empty)_like)"
    r"|random\.(normal|uniform|bernoulli|randint))$"
)


@dataclass(frozen=True)
class Edit:
    """An edit that replaces the text between the offsets `start` and `end` with `new`."""

    start: int
    end: int
    new: str


def fix(source: str, target: str | None = None) -> str:
    """Return the program with all safe replacements made, except for any that would break its syntax."""
    for _ in range(3):  # replacing an import may reveal further old names
        edits = _Fixer(source, target).edits()
        if not edits:
            return source
        new = _apply_edits(source, edits)
        if not parses(new):
            return source
        source = new
    return source


def _apply_edits(source: str, edits: list[Edit]) -> str:
    unedited_end = len(source) + 1
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
        if edit.end <= unedited_end:
            source = source[: edit.start] + edit.new + source[edit.end :]
            unedited_end = edit.start
    return source


class _Fixer:
    """Find a program's old names for which there is a safe replacement, and return the edits that replace them."""

    def __init__(self, source: str, target: str | None) -> None:
        self.source, self.record = source, Record(target)
        self.program = Program(parse(source), self.record)
        self.findings: list[Finding] = findings(self.program, source)
        starts, offset = [0], 0
        for line in source.split("\n"):
            offset += len(line) + 1
            starts.append(offset)
        self.starts, self.lines = starts, source.split("\n")
        self.imports: list[str] = []

    def offset(self, line: int, column: int) -> int:
        """Convert the parser's line and column (in UTF-8 bytes) to an offset in the text."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: Located) -> tuple[int, int]:
        """Return the offset of a node's first character, and the offset just after its last one."""
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def text(self, node: Located) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def edits(self) -> list[Edit]:
        edits: list[Edit] = []
        statements: set[ast.AST] = set()
        for finding in self.findings:
            node = finding.node
            if finding.severity not in ("gone", "warns") or node is None:
                continue
            if isinstance(node, ast.ImportFrom):
                if node not in statements:
                    statements.add(node)
                    edits += self._edit_from_import(node)
            elif isinstance(node, ast.alias):
                edits += self._edit_import(node)
            elif isinstance(node, ast.Attribute):
                edits += self._edit_attribute(node, finding)
            elif isinstance(node, ast.Call):
                edits += self._edit_keyword(node, finding)
        edits += self._edit_shard_map_calls()
        if self.imports:
            edits.append(
                Edit(
                    offset := self._after_imports(),
                    offset,
                    "".join(f"{line}\n" for line in dict.fromkeys(self.imports)),
                )
            )
        return edits

    # Names

    def _edit_attribute(self, node: ast.Attribute, finding: Finding) -> list[Edit]:
        call = self.program.parents.get(node)
        if re.match(r"jax\.ops\.index_\w+$", finding.name):
            return self._index_update(call, node) if isinstance(call, ast.Call) and call.func is node else []
        if finding.name == SHARD_MAP and not self._is_safe_everywhere(SHARD_MAP):
            return []
        new = self._new_name(finding.name, self.program.dotted(node))
        return self._replace_name(node, finding.name, new) if new and self._is_safe_here(node, finding.name) else []

    # Safety checks

    def _new_name(self, old: str, full: str) -> str:
        """Return the replacement for `old`, a prefix of the name `full`, or "" if no equivalent is known."""
        rename = SAFE_RENAMES.get(old)
        if rename is None or (old != full and rename.where not in (MODULE, ANYWHERE)):
            return ""
        renamed = rename.new + full[len(old) :]
        return rename.new if not renamed.startswith("jax.") or self.record.status(renamed).state == "works" else ""

    def _is_safe_here(self, node: ast.AST, old: str) -> bool:
        """Return whether the replacement is equivalent in this context."""
        context, parent = SAFE_RENAMES[old].where, self.program.parents.get(node)
        if context in (ANYWHERE, MODULE):
            return True
        if context == ANNOTATED:
            return self._is_annotation(node)
        is_compared = isinstance(parent, ast.Compare) or (
            isinstance(parent, ast.Call)
            and getattr(parent.func, "id", "") in ("isinstance", "issubclass", "type", "id")
        )
        return self._fits_shard_map(node) if context == CALLED else not is_compared

    def _is_annotation(self, node: ast.AST) -> bool:
        for parent in self.program.ancestors(node):
            if getattr(parent, "annotation", None) is node or getattr(parent, "returns", None) is node:
                return True
            if isinstance(parent, ast.stmt):
                return False
            node = parent
        return False

    def _fits_shard_map(self, node: ast.AST) -> bool:
        """Return whether the name is called, directly or through `partial`, without any unsupported arguments."""
        call = self.program.parents.get(node)
        if not isinstance(call, ast.Call):
            return False
        partial = self.program.dotted(call.func) == "functools.partial" and call.args[:1] == [node]
        args = call.args[1:] if partial else call.args
        return (
            (partial or call.func is node)
            and len(args) <= len(SHARD_MAP_PLACES)
            and not any(isinstance(arg, ast.Starred) for arg in args)
            and not {keyword.arg for keyword in call.keywords} & {None, "auto"}
        )

    def _is_safe_everywhere(self, full: str) -> bool:
        """Return whether the replacement is equivalent at every use of an imported name."""
        uses = [
            node
            for node in self.program.nodes
            if isinstance(node, (ast.Name, ast.Attribute))
            and isinstance(node.ctx, ast.Load)
            and self.program.dotted(node) == full
        ]
        # Another file may import the name from this one.
        may_be_imported = SAFE_RENAMES[full].where in (ANYWHERE, MODULE)
        attributes = [
            self.program.dotted(node)
            for node in self.program.nodes
            if isinstance(node, ast.Attribute) and self.program.dotted(node.value) == full
        ]
        all_exist = all(self._new_name(full, name) for name in attributes)
        return all_exist and (bool(uses) or may_be_imported) and all(self._is_safe_here(node, full) for node in uses)

    def _replace_name(self, node: ast.Attribute, old: str, new: str) -> list[Edit]:
        """Return the edit that replaces an old dotted name, using the names that the program has imported."""
        name: ast.expr = node
        while self.program.dotted(name) != old:
            if not isinstance(name, ast.Attribute):
                return []
            name = name.value
        return [Edit(*self.span(name), self._in_program_names(new, name))]

    def _in_program_names(self, new: str, node: ast.expr) -> str:
        top = new.split(".")[0]
        if top != "jax":
            self.imports.append(f"import {top}")
            return new
        best = ("", "")
        for name, values in self.program.top.bound.items():
            target = values[0][1]
            if len(values) == 1 and isinstance(target, str) and (new == target or new.startswith(f"{target}.")):
                visible = self.program.scopes[node].look_up(name, node.lineno)
                if (
                    visible == target
                    and len(target) > len(best[1])
                    and values[0][0] <= node.lineno
                    and self.record.status(target).state == "works"
                ):
                    best = (name, target)
        module = new
        while not self.record.is_module(module):
            module = module.rpartition(".")[0]
        if module.startswith(NEEDS_OWN_IMPORT) and best[1] != module:
            self.imports.append(f"import {module}")
        if best[1]:
            return best[0] + new[len(best[1]) :]
        self.imports.append("import jax")
        return new

    def _index_update(self, call: ast.Call, node: ast.Attribute) -> list[Edit]:
        """Return the edit that rewrites `jax.ops.index_update(x, jax.ops.index[i], y)` as `x.at[i].set(y)`.

        If x isn't known to be a JAX array, the new code converts it first, as index_update did.
        """
        if len(call.args) != 3 or call.keywords or any(isinstance(arg, ast.Starred) for arg in call.args):
            return []
        method = REPLACEMENTS[self.program.dotted(node)][0].split("].")[1].split("(")[0]
        x, index, y = call.args
        value = self.program.value(x)
        is_array = isinstance(value, ast.Call) and ARRAYS.match(self.program.dotted(value.func))
        inner = self.text(index)
        if isinstance(index, ast.Subscript) and self.program.dotted(index.value) in (
            "jax.ops.index",
            "jax.numpy.index_exp",
            "jax.numpy.s_",
        ):
            inner = self.text(index.slice)
        if "#" in self.text(call) or "jax.ops" in inner:
            return []
        array = self.text(x) if is_array else f"{self._in_program_names('jax.numpy.asarray', node)}({self.text(x)})"
        return [Edit(*self.span(call), f"{array}.at[{inner}].{method}({self.text(y)})")]

    # Imports

    def _new_import(self, full: str) -> str:
        """Return the dotted name that replaces an imported one, or "" if no equivalent is known."""
        status = self.record.status(full)
        module = self.record.status(full.rpartition(".")[0], as_module=True)
        if "gone" not in (status.state, module.state) and status.state != "warns":
            return full
        old = full if full in SAFE_RENAMES else full.rpartition(".")[0]
        new = self._new_name(old, full)
        return new + full[len(old) :] if new and (old != full or self._is_safe_everywhere(full)) else ""

    def _edit_from_import(self, node: ast.ImportFrom) -> list[Edit]:
        new_names = [self._new_import(f"{node.module}.{alias.name}") for alias in node.names]
        unchanged = [
            alias
            for alias, new_name in zip(node.names, new_names, strict=True)
            if new_name in ("", f"{node.module}.{alias.name}")
        ]
        moved = [
            (alias, new_name) for alias, new_name in zip(node.names, new_names, strict=True) if alias not in unchanged
        ]
        if not moved or ("#" in self.text(node) and unchanged):
            return []
        indent = " " * node.col_offset
        by_module: dict[str, list[str]] = {}
        for alias, new_name in moved:
            module, _, name = new_name.rpartition(".")
            bound = alias.asname or alias.name
            by_module.setdefault(module, []).append(name if name == bound else f"{name} as {bound}")
        new = [f"from {module} import {', '.join(names)}" for module, names in by_module.items()]
        if unchanged:
            new.insert(0, f"from {node.module} import {', '.join(self.text(alias) for alias in unchanged)}")
        return [Edit(*self.span(node), f"\n{indent}".join(new))]

    def _edit_import(self, alias: ast.alias) -> list[Edit]:
        new_name = self._new_import(alias.name)
        if not new_name or new_name == alias.name or not self.record.is_module(new_name):
            return []
        start, end = self.span(alias)
        return [Edit(start, end, new_name + (f" as {alias.asname}" if alias.asname else ""))]

    def _after_imports(self) -> int:
        """Return the offset of the first line after the file's docstring and the imports at its top."""
        last_line = 0
        for node in self.program.tree.body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not (docstring or isinstance(node, (ast.Import, ast.ImportFrom))):
                break
            last_line = node.end_lineno or last_line
        return self.starts[last_line]

    # Arguments

    def _edit_keyword(self, call: ast.Call, finding: Finding) -> list[Edit]:
        edits = []
        name = finding.name.partition("(")[0]
        for keyword in call.keywords:
            old = keyword.arg or ""
            new = RENAMED_KEYWORDS.get((name, old))
            if name == PJIT and self._has_bare_none(keyword.value):
                continue  # in pjit, None meant replicated; in jit, it means unspecified
            if new and f"{name}({old}=)" == finding.name and new[0] not in {k.arg for k in call.keywords}:
                start = self.offset(keyword.lineno, keyword.col_offset)
                edits.append(Edit(start, start + len(old), new[0]))
            elif finding.name in ("jax.make_mesh(axis_shapes=)", "jax.make_mesh(axis_sizes=)") and not call.args:
                edits += self._drop_keywords(call)
        return edits

    @staticmethod
    def _has_bare_none(value: ast.expr) -> bool:
        in_calls = {id(node) for call in ast.walk(value) if isinstance(call, ast.Call) for node in ast.walk(call)}
        return any(
            isinstance(node, ast.Constant) and node.value is None and id(node) not in in_calls
            for node in ast.walk(value)
        )

    def _drop_keywords(self, call: ast.Call) -> list[Edit]:
        first = [keyword.arg for keyword in call.keywords[:2]]
        if first not in (["axis_shapes", "axis_names"], ["axis_sizes", "axis_names"]):
            return []
        return [Edit(self.offset(k.lineno, k.col_offset), self.span(k.value)[0], "") for k in call.keywords[:2]]

    def _edit_shard_map_calls(self) -> list[Edit]:
        """Return edits that turn `shard_map`'s positional arguments into keywords, and `check_rep` into `check_vma`."""
        edits = []
        for node in self.program.nodes:
            if not isinstance(node, ast.Call) or node in self.program.guarded:
                continue
            name, args = self.program.dotted(node.func), node.args
            if name == "functools.partial" and args:
                name, args = self.program.dotted(args[0]), args[1:]
            if name not in (SHARD_MAP, "jax.shard_map") or len(args) > len(SHARD_MAP_PLACES):
                continue
            if name == SHARD_MAP and (self._new_import(SHARD_MAP) != "jax.shard_map" or node in self.program.guarded):
                continue
            for word, arg in zip(SHARD_MAP_PLACES, args, strict=False):
                if word:
                    start = self.span(arg)[0]
                    edits.append(Edit(start, start, word))
            for keyword in node.keywords:
                if keyword.arg == "check_rep":
                    start = self.offset(keyword.lineno, keyword.col_offset)
                    edits.append(Edit(start, start + len("check_rep"), "check_vma"))
        return edits
