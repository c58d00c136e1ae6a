"""Find the parts of a program that are guarded by `try`, `hasattr`, a version check or TYPE_CHECKING."""

from __future__ import annotations

import ast
import operator
import re

from find_old_jax.release_names import parse_version
from find_old_jax.scopes import NameResolver

UNREACHED = "never"  # code that never runs on this JAX version, or only under conditions that can't be evaluated
TYPE_CHECKING = "types"  # code that only type checkers see, so it can't fail
IMPORT, NAME, CALL, OTHER = TRIED = ("import", "name", "call", "other")  # the kinds of failure that a handler can catch
CAUGHT = {
    "ImportError": {IMPORT}, "ModuleNotFoundError": {IMPORT}, "AttributeError": {NAME}, "TypeError": {CALL},
    "Exception": {*TRIED}, "BaseException": {*TRIED}, "": {*TRIED},
}  # fmt: skip
SHORT_BODY = 3  # `except Exception` counts as a guard only if it covers at most this many statements
EXITS = (ast.Return, ast.Continue, ast.Break)  # ast.Raise is left out, because it doesn't provide an alternative
LOGGING_NAMES = {"print", "log", "logger", "logging", "warn", "warnings"}
# A set that may contain UNREACHED, TYPE_CHECKING, members of TRIED, and pairs such as ('x', 'device_buffers') for the
# attributes that `hasattr` tests.
Guard = frozenset
COMPARED = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


def caught_failures(node: ast.Try) -> set[str]:
    """Return the kinds of failure in a `try` body for which a handler provides an alternative.

    A handler that ends in `raise`, or only ignores or prints the error, doesn't provide one. For a failed import,
    however, ignoring or printing the error is enough, because the program may not need the module.
    """
    caught_kinds: set[str] = set()
    for handler in node.handlers:
        if isinstance(handler.body[-1], ast.Raise):
            continue
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = [kind.id if isinstance(kind, ast.Name) else "" if kind is None else "?" for kind in kinds]
        caught = {kind for name in names for kind in CAUGHT.get(name, ())}
        if OTHER in caught and len(node.body) > SHORT_BODY:
            caught = set().union(*(CAUGHT.get(name, ()) for name in names if OTHER not in CAUGHT.get(name, ())))
        caught_kinds |= caught & {IMPORT} if all(map(_does_nothing, handler.body)) else caught
    return caught_kinds


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        while isinstance(called, ast.Attribute):
            called = called.value
        return getattr(called, "id", "") in LOGGING_NAMES
    return isinstance(node, (ast.Pass, ast.Continue)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def covers(guard: Guard, node: ast.AST) -> bool:
    """Return whether a guard keeps a removed API in this node from running, or handles its failure."""
    if UNREACHED in guard:
        return True
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.alias)):
        return IMPORT in guard
    if isinstance(node, (ast.Attribute, ast.Name)):
        return NAME in guard or (isinstance(node, ast.Attribute) and (ast.unparse(node.value), node.attr) in guard)
    return (CALL if isinstance(node, ast.Call) else OTHER) in guard


def _guard_of_test(test: ast.expr, denied: bool = False) -> Guard:
    """Return a guard with the attributes that must exist if a test is true or, with `denied`, if it's false.

    Only calls to `hasattr` in the test count.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _guard_of_test(test.operand, not denied)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or if denied else ast.And):
        return Guard().union(*(_guard_of_test(value, denied) for value in test.values))
    if not denied and isinstance(test, ast.Call) and getattr(test.func, "id", "") == "hasattr" and len(test.args) == 2:
        return Guard({(ast.unparse(test.args[0]), getattr(test.args[1], "value", None))})
    return Guard()


class Guards:
    """Decide which branches run on a version of JAX."""

    def __init__(self, names: NameResolver) -> None:
        self.names = names

    def guards_of_fields(self, node: ast.Try | ast.If | ast.IfExp) -> dict[str, Guard]:
        """Return the guards for a node's fields: 'body', 'orelse' or 'handlers'."""
        never = Guard({UNREACHED})
        if isinstance(node, ast.Try):
            kinds = caught_failures(node)
            return {"body": Guard(kinds), "handlers": never if kinds and self._names_exist(node) else Guard()}
        if self.tests_type_checking(node.test):
            return {"body": Guard({UNREACHED, TYPE_CHECKING})}
        truth = self.evaluate(node.test)
        if truth is None:
            guard = never if self._tests_version(node.test) else Guard()
            return {"body": guard | _guard_of_test(node.test), "orelse": guard | _guard_of_test(node.test, denied=True)}
        return {"orelse" if truth else "body": never}

    def _names_exist(self, node: ast.Try) -> bool:
        """Return whether a `try` body uses JAX names and all of them exist in this version, so that no handler runs."""
        status, dotted, states = self.names.record.status, self.names.dotted, []
        for inner_node in (inner for statement in node.body for inner in ast.walk(statement)):
            self._assign_scope(inner_node, node)
            if isinstance(inner_node, ast.Import):
                states += [status(alias.name, as_module=True).state for alias in inner_node.names]
            elif isinstance(inner_node, ast.ImportFrom) and inner_node.module:
                states += [status(f"{inner_node.module}.{alias.name}").state for alias in inner_node.names]
                states.append(status(inner_node.module, as_module=True).state)
            elif isinstance(inner_node, ast.Attribute):
                states.append(status(dotted(inner_node)).state)
            elif isinstance(inner_node, ast.Call) and (call := self.names.record.call(dotted(inner_node.func))):
                unknown = {keyword.arg for keyword in inner_node.keywords} - call.keywords - {None}
                states.append("gone" if unknown and not call.any_keyword else "works")
        return "gone" not in states and ("works" in states or "warns" in states)

    def guard_after(self, node: ast.AST) -> Guard:
        """Return the guard of the statements after an `if` that ends early, such as `if not hasattr(...): return`."""
        if not isinstance(node, ast.If) or self.tests_type_checking(node.test):
            return Guard()
        guards = self.guards_of_fields(node)
        body, orelse = guards.get("body", Guard()), guards.get("orelse", Guard())
        ends_early = [bool(block) and isinstance(block[-1], EXITS) for block in (node.body, node.orelse)]
        return (orelse if ends_early[0] else Guard()) | (body if ends_early[1] else Guard())

    @staticmethod
    def tests_type_checking(test: ast.expr) -> bool:
        """Return whether a test is `TYPE_CHECKING` or an attribute of that name, as in `typing.TYPE_CHECKING`."""
        return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"

    def _tests_version(self, test: ast.expr, depth: int = 3) -> bool:
        for node in ast.walk(test):
            if isinstance(node, (ast.Name, ast.Attribute)):
                self._assign_scope(node, test)
                if "jax" in (name := self.names.dotted(node)) and "version" in name:
                    return True
                value = self.names.value(node) if isinstance(node, ast.Name) else node
                if (
                    value is not node
                    and isinstance(value, ast.expr)
                    and depth
                    and self._tests_version(value, depth - 1)
                ):
                    return True
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                if "version" in called and "jax" in texts:
                    return True
        return False

    def _assign_scope(self, node: ast.AST, statement_or_test: ast.AST) -> None:
        """Assign a node and its descendants to a statement's scope.

        Guards need it, because they're evaluated before `Program` visits these nodes.
        """
        scope = self.names.scopes.get(statement_or_test) or self.names.scopes[self.names.nodes[-1]]
        for inner in ast.walk(node):
            self.names.scopes.setdefault(inner, scope)

    def evaluate(self, test: ast.expr) -> bool | None:
        """Return whether a test is true on this JAX version, or None if that depends on anything else."""
        self._assign_scope(test, test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            operand = self.evaluate(test.operand)
            return None if operand is None else not operand
        if isinstance(test, ast.BoolOp):
            operand = [self.evaluate(value) for value in test.values]
            deciding_value = isinstance(test.op, ast.Or)
            if deciding_value in operand:
                return deciding_value
            return None if None in operand else not deciding_value
        if isinstance(test, ast.Name):
            value = self.names.value(test)
            return self.evaluate(value) if isinstance(value, (ast.Compare, ast.Call, ast.BoolOp, ast.UnaryOp)) else None
        if isinstance(test, ast.Call) and getattr(test.func, "id", "") == "hasattr" and len(test.args) == 2:
            name, text = self.names.dotted(test.args[0]), getattr(test.args[1], "value", None)
            if isinstance(text, str):
                status = self.names.record.status(f"{name}.{text}")
                if status.state == "gone":
                    return False
                return True if status.state in ("works", "warns") and status.name == f"{name}.{text}" else None
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compare(test)
        return None

    def _compare(self, test: ast.Compare) -> bool | None:
        """Evaluate a comparison of JAX's version with a string or a tuple. Return None if that isn't possible."""
        left, right = self._version(test.left), self._version(test.comparators[0])
        compare = COMPARED.get(type(test.ops[0]))
        if left is None or right is None or compare is None or type(left) is not type(right):
            return None
        return compare(left, right)

    def _version(self, node: ast.expr) -> str | tuple[int, ...] | None:
        names, version = self.names, self.names.record.version
        value = names.value(node)
        if not isinstance(value, ast.expr):
            return None
        node = value
        name = names.dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if name in ("jax.__version__", "jax.version.__version__", "jaxlib.__version__"):
            return version
        if name in ("jax.__version_info__", "jax.version.__version_info__"):
            return parse_version(version)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(r"\d+\.", node.value):
            return node.value
        if isinstance(node, ast.Tuple):
            numbers = [element.value for element in node.elts if isinstance(element, ast.Constant)]
            integers = tuple(number for number in numbers if isinstance(number, int))
            return integers if len(integers) == len(node.elts) else None
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("parse", "Version", "LooseVersion", "StrictVersion", "parse_version"):
                text = self._version(node.args[0])
                return parse_version(text) if isinstance(text, str) else None
        return None
