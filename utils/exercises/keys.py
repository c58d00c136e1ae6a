"""Which random keys a function uses, for what, and which of its results come of each use: by running its jaxpr."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.compat import run_equation

BY = {"random_bits": "a draw", "random_gamma": "a draw", "random_split": "a split", "random_fold_in": "a fold_in"}
LOOPS = {"scan", "while", "cond"}  # not looked into: a key that goes in is used there


@dataclass
class Use:
    """One use of one key. `data`: of a fold_in, what is folded in."""

    key: tuple[int, ...]
    by: str  # "a draw", "a split", "a fold_in" or "a loop"
    data: int | None = None


def key_numbers(keys: Any) -> list[tuple[int, ...]]:
    """The numbers that make up each of these keys."""
    import jax

    numbers = np.asarray(jax.random.key_data(keys))
    return [tuple(map(int, row)) for row in numbers.reshape(-1, numbers.shape[-1])]


def is_key(value: Any) -> bool:
    import jax

    return isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)


def uses_of_keys(f: Callable[..., Any], key: Any) -> tuple[list[Use], list[set[int]]]:
    """Run f(key), which returns a flat tuple: all uses of keys in order, and for each result the uses it comes of.

    Raises what tracing f raises.
    """
    import jax

    uses: list[Use] = []
    closed = jax.make_jaxpr(f)(key)
    results = _run(closed.jaxpr, closed.consts, [(key, frozenset())], uses)
    return uses, [set(come_of) for _, come_of in results]


def _run(jaxpr: Any, consts: Any, arguments: list, uses: list[Use]) -> list:
    """Values and the uses that they come of, in and out."""
    known = dict(zip(jaxpr.constvars, ((const, frozenset()) for const in consts), strict=True))
    known |= zip(jaxpr.invars, arguments, strict=True)

    def read(atom: Any) -> tuple:
        return (atom.val, frozenset()) if hasattr(atom, "val") else known[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        name, params = equation.primitive.name, equation.params
        inner = next((params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params), None)
        if inner is not None and name not in LOOPS:
            results = _run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands, uses)
        else:
            come_of = frozenset().union(*(uses_ for _, uses_ in operands), _used(name, operands, uses))
            results = [(value, come_of) for value in run_equation(equation, *(value for value, _ in operands))]
        known |= zip(equation.outvars, results, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _used(name: str, operands: list, uses: list[Use]) -> set[int]:
    """Note the uses of keys in this operation; return their places."""
    before = len(uses)
    if name in BY or name in LOOPS:
        for keys in (value for value, _ in operands if is_key(value)):
            data = np.ravel(operands[1][0]).tolist() if name == "random_fold_in" else [None]
            for i, row in enumerate(key_numbers(keys)):
                uses.append(Use(row, BY.get(name, "a loop"), data[i % len(data)]))
    return set(range(before, len(uses)))


def used_twice(uses: list[Use]) -> list[int]:
    """The places of the uses of one key that must not stand side by side; empty where each key is used once.

    A key may be folded with different data, and nothing else may be done with it then.
    """
    for use in uses:
        same = [i for i, other in enumerate(uses) if other.key == use.key]
        folded = {uses[i].data for i in same if uses[i].by == "a fold_in"}
        if len(same) > 1 and len(folded) < len(same):
            return same
    return []
