"""Make mutants of a solution, each with one change. A check must reject each mutant that gives different results."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


@dataclass(frozen=True)
class Mutant:
    """A solution with one change. `change` shows the first line that differs, as `old -> new`."""

    change: str
    source: str

    def function(self, solution: Callable[..., Any]) -> Callable[..., Any]:
        """Compile the changed function in the namespace of the solution's module."""
        names = dict(solution.__globals__)
        exec(compile(self.source, f"<{solution.__name__}, changed>", "exec"), names)
        return names[solution.__name__]


def make_mutants(exercise: Any, most: int) -> list[Mutant]:
    """Return all mutants of an exercise's solution or, if there are more than `most`, an evenly spaced selection."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(exercise.function)))
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    function.body = function.body[ast.get_docstring(function) is not None :]
    before = ast.unparse(tree)
    texts = sorted({n.value for n in ast.walk(function) if isinstance(n, ast.Constant) and isinstance(n.value, str)})
    mutants: dict[str, Mutant] = {}
    for index, node in enumerate(ast.walk(function)):
        for change in range(len(list(_replacements(node, texts)))):
            changed = copy.deepcopy(tree)
            changed_nodes = list(ast.walk(changed.body[0]))[index]
            _replace(changed, changed_nodes, list(_replacements(changed_nodes, texts))[change])
            after = ast.unparse(ast.fix_missing_locations(changed))
            if after != before:
                mutants.setdefault(after, Mutant(_difference(before, after), after))
    every = list(mutants.values())
    return every if len(every) <= most else [every[i * len(every) // most] for i in range(most)]


def _replacements(node: ast.AST, texts: list[str]) -> Iterator[ast.AST | None]:
    """Yield the nodes that may replace a node, or None to remove a statement.

    A string is replaced with another one from `texts`, the strings in the function.
    """
    if isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _replacement_values(node.value, texts))
    elif isinstance(node, ast.BinOp):
        if type(node.op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        if not isinstance(node.op, (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)):
            yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield ast.UnaryOp(ast.Not(), node)
        if type(node.ops[0]) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call):
        yield from _replacement_calls(node)
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 1:
        if not isinstance(getattr(node, "ctx", None), ast.Store):
            yield from _replacement_elements(node)
    elif isinstance(node, ast.Expr):
        yield None


def _replacement_values(value: Any, texts: list[str]) -> list[Any]:
    """Return the values that may replace a constant. A string is replaced with another one from `texts`."""
    if isinstance(value, str):
        return [texts[texts.index(value) - 1]]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if value > 1 else [value + 1]
    return [2 * value] if isinstance(value, float) else []


def _replacement_elements(node: ast.Tuple | ast.List | ast.Set) -> Iterator[ast.AST]:
    """Yield a collection without each of its elements in turn and, unless it's a set, with its first two swapped."""
    rest = {} if isinstance(node, ast.Set) else {"ctx": ast.Load()}
    for i in range(len(node.elts)):
        yield type(node)(node.elts[:i] + node.elts[i + 1 :], **rest)
    if rest:
        yield type(node)([node.elts[1], node.elts[0], *node.elts[2:]], **rest)


def _replacement_calls(node: ast.Call) -> Iterator[ast.AST]:
    """Yield the nodes that may replace a call.

    The replacements are the call's first argument or, without arguments, its object; the call without each of its
    keywords in turn; and the call with its first two arguments swapped.
    """
    if node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0]
    elif isinstance(node.func, ast.Attribute):
        yield node.func.value
    for i in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, node.keywords[:i] + node.keywords[i + 1 :])
    if len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2]):
        first, second, *rest = node.args
        yield ast.Call(node.func, [second, first, *rest], node.keywords)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST | None) -> None:
    """Replace a node in a tree, or remove it if `new` is None."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(item is old for item in value):
                at = next(i for i, item in enumerate(value) if item is old)
                value[at : at + 1] = [new] if new is not None else ([] if len(value) > 1 else [ast.Pass()])
                return


def _difference(before: str, after: str) -> str:
    """Return the first lines that differ, as `old -> new`."""
    pairs = zip_longest(before.splitlines(), after.splitlines(), fillvalue="")
    old, new = next((a.strip(), b.strip()) for a, b in pairs if a != b)
    return f"{old} -> {new}"
