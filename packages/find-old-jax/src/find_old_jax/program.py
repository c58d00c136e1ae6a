"""Resolve each name in a program, and find the code that never runs on a version of JAX."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from find_old_jax.guards import TRIED, TYPE_CHECKING, UNREACHED, Guard, Guards, covers
from find_old_jax.release_names import Record
from find_old_jax.scopes import COMPREHENSIONS, NameResolver, Scope

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
BINDING = (
    ast.stmt, ast.arg, ast.NamedExpr, ast.comprehension, ast.withitem, ast.ExceptHandler,
)  # fmt: skip
# Maps each name to its usual meaning, for fragments that don't import the name, such as a snippet in a question or on
# a documentation page. The site's page on old code uses the same dictionary.
CONVENTIONAL = {
    "jax": "jax",
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "partial": "functools.partial",
    "pjit": "jax.experimental.pjit.pjit",
    "shard_map": "jax.shard_map",
    "xmap": "jax.experimental.maps.xmap",
    "PositionalSharding": "jax.sharding.PositionalSharding",
}
HIDDEN = object()  # the value of a name that isn't tracked, such as a parameter or a loop variable


class Program(NameResolver):
    """A program's nodes with their scopes, and the code that doesn't run or can't fail on a version of JAX."""

    def __init__(self, tree: ast.Module, record: Record) -> None:
        super().__init__(record)
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.guarded: set[ast.AST] = set()  # nodes in a `try`, after a `hasattr`, or in code that never runs
        self.unchecked_lines: set[int] = set()  # lines that aren't checked because of a guard
        self.annotations: set[ast.AST] = set()  # nodes in annotations that are never evaluated
        self.stars: list[str] = []  # modules in `from module import *`
        self.top = Scope(tree, None)
        self._lazy = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in tree.body
        )
        self.guards = Guards(self)
        self._walk(tree, self.top)
        self.assumed = CONVENTIONAL.keys() - self._bound_anywhere()
        self.top.outer = Scope(tree, None)  # an outer scope, so that a fix doesn't mistake these names for imports
        for name in self.assumed:
            self.top.outer.bind(name, 0, CONVENTIONAL[name])
        self._known = {}

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        stack = [(node, scope, Guard(), False, [Guard()])]
        while stack:
            node, scope, guard, in_annotation, block = stack.pop()
            guard = guard | block[0]  # the guard of `if hasattr(...): return` also covers the rest of the block
            self.scopes[node] = scope
            self.nodes.append(node)
            if covers(guard, node):
                self.guarded.add(node)
            if isinstance(node, ast.stmt) and guard & {UNREACHED, *TRIED} and TYPE_CHECKING not in guard:
                self.unchecked_lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if in_annotation:
                self.annotations.add(node)
            if isinstance(node, BINDING):
                self._bind(node, scope, bool(guard & {UNREACHED, *TRIED}))
            inner = scope
            if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef)):
                inner = Scope(node, scope)
            field_guards = self.guards.guards_of_fields(node) if isinstance(node, (ast.Try, ast.If, ast.IfExp)) else {}
            block[0] |= self.guards.guard_after(node)
            children = []
            for field, value in ast.iter_fields(node):
                outside = field in ("decorator_list", "returns", "bases", "keywords") and inner is not scope
                child_in_annotation = in_annotation or (self._lazy and field in ("annotation", "returns"))
                child_guard, child_block = guard | field_guards.get(field, Guard()), [Guard()]
                if isinstance(node, FUNCTIONS) and field == "body":
                    child_guard -= {*TRIED}  # the body runs later, outside the `try`
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.parents[child] = node
                        children.append(
                            (child, scope if outside else inner, child_guard, child_in_annotation, child_block)
                        )
            stack += reversed(children)

    def _bound_anywhere(self) -> set[str]:
        """Return all names that the program binds, guarded or not. `import *` may bind all conventional names."""
        used_names = set()
        for node in self.nodes:
            if isinstance(node, ast.alias):
                used_names.update(CONVENTIONAL if node.name == "*" else [(node.asname or node.name).split(".")[0]])
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                used_names.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                used_names.add(node.name)
            elif isinstance(node, ast.arg):
                used_names.add(node.arg)
        return used_names

    def _bind(self, node: ast.AST, scope: Scope, is_guarded: bool) -> None:
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not is_guarded or self.record.status(alias.name).state != "gone":
                    top = alias.name.split(".")[0]
                    scope.bind(alias.asname or top, line, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            if node.names[0].name == "*":
                self.stars += [node.module] if node.module and not node.level and not is_guarded else []
                return
            for alias in node.names:
                full = f"{node.module}.{alias.name}" if node.module and not node.level else HIDDEN
                if not (is_guarded and isinstance(full, str) and self.record.status(full).state == "gone"):
                    scope.bind(alias.asname or alias.name, line, full)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            scope.declared_outside.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope.bind(node.name, line, node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            if is_guarded or node.value is None:
                return
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._assign(target, node.value, scope, line)
        elif isinstance(node, ast.arg):
            scope.bind(node.arg, line, HIDDEN)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension, ast.AugAssign)):
            for name in ast.walk(node.target):
                if isinstance(name, ast.Name):
                    scope.bind(name.id, getattr(name, "lineno", line), HIDDEN)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._assign(node.optional_vars, node.context_expr, scope, node.context_expr.lineno)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            scope.bind(node.name, line, HIDDEN)

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope, line: int) -> None:
        if isinstance(target, ast.Name):
            end = getattr(value, "end_lineno", line) or line
            scope.bind(target.id, end + (1 if self._is_self_referential(target.id, value) else 0), value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
            sequence = value.value if isinstance(value, ast.Subscript) else value
            for i, element_target in enumerate(target.elts):
                element = elements[i] if elements and len(elements) == len(target.elts) else None
                element = element or ast.copy_location(
                    ast.Subscript(sequence, ast.copy_location(ast.Constant(i), value)), value
                )
                self._assign(element_target, element, scope, line)
                self.scopes.setdefault(element, scope)

    @staticmethod
    def _is_self_referential(name: str, value: ast.expr) -> bool:
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the ancestors of a node, innermost first."""
        parent = self.parents.get(node)
        while parent:
            yield parent
            parent = self.parents.get(parent)
