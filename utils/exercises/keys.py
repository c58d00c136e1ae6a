"""Which random keys a function uses, for what, and which of its results come of each use: from its jaxpr."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
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
    """An array of keys, or the type of one."""
    import jax

    return isinstance(value, (jax.Array, jax.core.ShapedArray)) and jax.dtypes.issubdtype(
        value.dtype, jax.dtypes.prng_key
    )


def uses_of_keys(f: Callable[..., Any], key: Any) -> tuple[list[Use], list[set[int]]]:
    """Trace f(key), which returns a flat tuple: all uses of keys in order, and for each result the uses it comes of.

    Only what a key is computed from is run. Raises what tracing f raises.
    """
    import jax

    uses: list[Use] = []
    closed = jax.make_jaxpr(f)(key)
    results = _follow(closed.jaxpr, closed.consts, [(lambda: key, frozenset())], uses)
    return uses, [set(come_of) for _, come_of in results]


def _follow(jaxpr: Any, consts: Any, arguments: list, uses: list[Use]) -> list:
    """Of what goes in and what comes out: a function that computes it, and the uses that it comes of."""
    known = {var: (partial(_itself, const), frozenset()) for var, const in zip(jaxpr.constvars, consts, strict=True)}
    known |= zip(jaxpr.invars, arguments, strict=True)

    def read(atom: Any) -> tuple:
        return (partial(_itself, atom.val), frozenset()) if hasattr(atom, "val") else known[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        inner = next(
            (equation.params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in equation.params), None
        )
        if inner is not None and equation.primitive.name not in LOOPS:
            results = _follow(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands, uses)
        else:
            come_of = frozenset().union(*(uses_ for _, uses_ in operands), _used(equation, operands, uses))
            computed = cache(partial(_compute, equation, operands))
            results = [(partial(_at, computed, i), come_of) for i in range(len(equation.outvars))]
        known |= zip(equation.outvars, results, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _itself(value: Any) -> Any:
    return value


def _compute(equation: Any, operands: list) -> list:
    return run_equation(equation, *(value() for value, _ in operands))


def _at(computed: Callable[[], list], i: int) -> Any:
    return computed()[i]


def _used(equation: Any, operands: list, uses: list[Use]) -> set[int]:
    """Note the uses of keys in this operation; return their places."""
    before, name = len(uses), equation.primitive.name
    if name in BY or name in LOOPS:
        for atom, (value, _) in zip(equation.invars, operands, strict=True):
            if is_key(atom.aval):
                data = np.ravel(operands[1][0]()).tolist() if name == "random_fold_in" else [None]
                for i, row in enumerate(key_numbers(value())):
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
