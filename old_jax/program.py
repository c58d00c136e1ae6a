"""A parsed program: what each name in it stands for, and which parts never run on a version of JAX."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from old_jax.guards import NEVER, TRIED, TYPES, Guard, Guards, hushes
from old_jax.record import Record

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
BINDING = (
    ast.stmt, ast.arg, ast.NamedExpr, ast.comprehension, ast.withitem, ast.ExceptHandler,
)  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
HIDDEN = object()  # bound to what is not looked at: a parameter, a loop's variable, a sum


class Scope:
    """The names of a function, a class, a comprehension, or the whole file, each with all that is bound to it."""

    def __init__(self, node: ast.AST, outer: Scope | None) -> None:
        self.node, self.outer = node, outer
        self.bound: dict[str, list[tuple[int, object]]] = {}  # (line, dotted name | expression | function | HIDDEN)
        self.elsewhere: set[str] = set()  # declared global or nonlocal

    def bind(self, name: str, line: int, value: object) -> None:
        scope = self
        while name in scope.elsewhere and scope.outer:
            scope = scope.outer
        scope.bound.setdefault(name, []).append((line, value))

    def look(self, name: str, line: int) -> object | None:
        """What a name stands for where it is used: bound last before that line, or last of all in a scope around."""
        scope, own = self, True
        while scope:
            values = scope.bound.get(name)
            if values and (own or not isinstance(scope.node, ast.ClassDef)):
                if not own:
                    return values[-1][1]
                before = [value for at, value in values if at <= line]
                return before[-1] if before else values[0][1]
            own = own and isinstance(scope.node, COMPREHENSIONS)
            scope = scope.outer
        return None


class Program:
    """The parts of a program that run, each with its scope, for a version of JAX."""

    def __init__(self, tree: ast.Module, record: Record) -> None:
        self.tree, self.record = tree, record
        self.parents: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        self.nodes: list[ast.AST] = []  # in the order of the text
        self.quiet: set[ast.AST] = set()  # guarded: tried, asked for, or never run
        self.unseen: set[int] = set()  # lines that a guard silences
        self.annotations: set[ast.AST] = set()  # never evaluated
        self.stars: list[str] = []  # modules whose names were all imported
        self.whole = Scope(tree, None)
        self._lazy = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"
            for node in tree.body
        )
        self._known: dict[ast.AST, str] | None = None  # what `dotted` found, once all is read
        self.guards = Guards(self)
        self._walk(tree, self.whole)
        self._known = {}

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        stack = [(node, scope, Guard(), False, [Guard()])]
        while stack:
            node, scope, guard, note, block = stack.pop()
            guard = guard | block[0]  # after `if hasattr(...): return`, what follows in the block is guarded, too
            self.scopes[node] = scope
            self.nodes.append(node)
            if hushes(guard, node):
                self.quiet.add(node)
            if isinstance(node, ast.stmt) and guard & {NEVER, *TRIED} and TYPES not in guard:
                self.unseen.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if note:
                self.annotations.add(node)
            if isinstance(node, BINDING):
                self._bind(node, scope, bool(guard & {NEVER, *TRIED}))
            inner = scope
            if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef)):
                inner = Scope(node, scope)
            silent = self.guards.silenced(node) if isinstance(node, (ast.Try, ast.If, ast.IfExp)) else {}
            block[0] |= self.guards.ends(node)
            children = []
            for field, value in ast.iter_fields(node):
                outside = field in ("decorator_list", "returns", "bases", "keywords") and inner is not scope
                lazy = note or (self._lazy and field in ("annotation", "returns"))
                hushed, below = guard | silent.get(field, Guard()), [Guard()]
                if isinstance(node, FUNCTIONS) and field == "body":
                    hushed -= {*TRIED}  # it runs later, when nobody tries
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.parents[child] = node
                        children.append((child, scope if outside else inner, hushed, lazy, below))
            stack += reversed(children)

    def _bind(self, node: ast.AST, scope: Scope, quiet: bool) -> None:
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not quiet or self.record.fate(alias.name).state != "gone":
                    top = alias.name.split(".")[0]
                    scope.bind(alias.asname or top, line, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            if node.names[0].name == "*":
                self.stars += [node.module] if node.module and not node.level and not quiet else []
                return
            for alias in node.names:
                full = f"{node.module}.{alias.name}" if node.module and not node.level else HIDDEN
                if not (quiet and isinstance(full, str) and self.record.fate(full).state == "gone"):
                    scope.bind(alias.asname or alias.name, line, full)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            scope.elsewhere.update(node.names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope.bind(node.name, line, node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            if quiet or node.value is None:
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
            scope.bind(target.id, end + (1 if self._names_itself(target.id, value) else 0), value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
            whole = value.value if isinstance(value, ast.Subscript) else value
            for i, one in enumerate(target.elts):
                same = parts[i] if parts and len(parts) == len(target.elts) else None
                made = same or ast.copy_location(ast.Subscript(whole, ast.copy_location(ast.Constant(i), value)), value)
                self._assign(one, made, scope, line)
                self.scopes.setdefault(made, scope)

    @staticmethod
    def _names_itself(name: str, value: ast.expr) -> bool:
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))

    def value(self, node: ast.AST) -> object:
        """What a name stands for, followed to its end; any other expression as it is."""
        for _ in range(9):
            if not isinstance(node, ast.Name) or node not in self.scopes:
                return node
            found = self.scopes[node].look(node.id, node.lineno)
            if not isinstance(found, ast.AST) or found is node:
                return node
            node = found
        return node

    def dotted(self, node: ast.AST, depth: int = 9) -> str:
        """'jax.numpy.random' for `jnp.random`; '' for what is no imported name."""
        if self._known is None:
            return self._dotted(node, depth)
        if node not in self._known:
            self._known[node] = self._dotted(node, depth)
        return self._known[node]

    def _dotted(self, node: ast.AST, depth: int) -> str:
        if depth == 0 or node not in self.scopes:
            return ""
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value, depth)
            return f"{before}.{node.attr}" if before else ""
        if isinstance(node, ast.Name):
            found = self.scopes[node].look(node.id, node.lineno)
            if isinstance(found, str):
                return found
            if isinstance(found, (ast.Name, ast.Attribute, ast.Call)) and found is not node:
                return self.dotted(found, depth - 1)
        if isinstance(node, ast.Call) and node.args and not isinstance(node.func, ast.Call):
            texts = [arg.value if isinstance(arg, ast.Constant) else None for arg in node.args]
            if isinstance(node.func, ast.Name) and node.func.id == "getattr" and isinstance(texts[-1], str):
                before = self.dotted(node.args[0], depth - 1) if len(texts) == 2 else ""
                return f"{before}.{texts[1]}" if before else ""
            if isinstance(texts[0], str) and self.dotted(node.func, depth - 1) == "importlib.import_module":
                return texts[0]
        return ""

    def is_gone(self, name: ast.Name) -> bool:
        """Is a name bound by an import that is gone itself? The import is reported, and not each use of it."""
        found = self.scopes[name].look(name.id, name.lineno)
        return isinstance(found, str) and "." in found and self.record.fate(found).state == "gone"

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node := self.parents.get(node):
            yield node
