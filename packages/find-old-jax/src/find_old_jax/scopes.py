"""Resolve each name in a program to the value or import that it's bound to."""

from __future__ import annotations

import ast

from find_old_jax.release_names import Record

Located = ast.expr | ast.stmt | ast.alias | ast.keyword  # nodes with a line and a column
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Scope:
    """The names bound in a function, class, comprehension or file, each with all the values that it's bound to."""

    def __init__(self, node: ast.AST, outer: Scope | None) -> None:
        self.node, self.outer = node, outer
        self.bound: dict[str, list[tuple[int, object]]] = {}  # (line, dotted name | expression | function | HIDDEN)
        self.declared_outside: set[str] = set()  # names declared global or nonlocal

    def bind(self, name: str, line: int, value: object) -> None:
        """Record that a line binds a name to a value, in an enclosing scope if it's declared global or nonlocal."""
        scope = self
        while name in scope.declared_outside and scope.outer:
            scope = scope.outer
        scope.bound.setdefault(name, []).append((line, value))

    def look_up(self, name: str, line: int) -> object | None:
        """Return the value of a name at a line, or None if the name isn't bound.

        If this scope binds the name, return the last value bound up to that line, or else the first value. If an
        enclosing scope does, return the last value bound anywhere in it.
        """
        scope, is_innermost = self, True
        while scope:
            values = scope.bound.get(name)
            if values and (is_innermost or not isinstance(scope.node, ast.ClassDef)):
                if not is_innermost:
                    return values[-1][1]
                earlier = [value for bound_line, value in values if bound_line <= line]
                return earlier[-1] if earlier else values[0][1]
            is_innermost = is_innermost and isinstance(scope.node, COMPREHENSIONS)
            scope = scope.outer
        return None


class NameResolver:
    """The nodes of a program with their scopes, checked against the record of one JAX version."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.scopes: dict[ast.AST, Scope] = {}
        self.nodes: list[ast.AST] = []  # in source order
        # the cache for `dotted`, used only once the complete program has been read
        self._known: dict[ast.AST, str] | None = None

    def value(self, node: ast.AST) -> ast.AST:
        """Follow a name to the expression that it's bound to. Return any other expression unchanged."""
        for _ in range(9):
            if not isinstance(node, ast.Name) or node not in self.scopes:
                return node
            bound = self.scopes[node].look_up(node.id, node.lineno)
            if not isinstance(bound, ast.AST) or bound is node:
                return node
            node = bound
        return node

    def dotted(self, node: ast.AST, depth: int = 9) -> str:
        """Return the imported name that an expression refers to, such as 'jax.numpy.random' for `jnp.random`, or ""."""
        if self._known is None:
            return self._dotted(node, depth)
        if node not in self._known:
            self._known[node] = self._dotted(node, depth)
        return self._known[node]

    def _dotted(self, node: ast.AST, depth: int) -> str:
        if depth == 0 or node not in self.scopes:
            return ""
        if isinstance(node, ast.Attribute):
            prefix = self.dotted(node.value, depth)
            return f"{prefix}.{node.attr}" if prefix else ""
        if isinstance(node, ast.Name):
            bound = self.scopes[node].look_up(node.id, node.lineno)
            if isinstance(bound, str):
                return bound
            if isinstance(bound, (ast.Name, ast.Attribute, ast.Call)) and bound is not node:
                return self.dotted(bound, depth - 1)
        if isinstance(node, ast.Call) and node.args and not isinstance(node.func, ast.Call):
            texts = [arg.value if isinstance(arg, ast.Constant) else None for arg in node.args]
            if isinstance(node.func, ast.Name) and node.func.id == "getattr" and isinstance(texts[-1], str):
                prefix = self.dotted(node.args[0], depth - 1) if len(texts) == 2 else ""
                return f"{prefix}.{texts[1]}" if prefix else ""
            if isinstance(texts[0], str) and self.dotted(node.func, depth - 1) == "importlib.import_module":
                return texts[0]
        return ""

    def is_gone(self, name: ast.Name) -> bool:
        """Return whether a name was imported from a removed API, which is reported at the import, not at each use."""
        bound = self.scopes[name].look_up(name.id, name.lineno)
        return isinstance(bound, str) and "." in bound and self.record.status(bound).state == "gone"
