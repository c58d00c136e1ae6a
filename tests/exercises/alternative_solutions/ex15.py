"""Provide unusual solutions to the exercises of lesson 15, and list the equivalent mutants."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises import ex15


def by_index(names, shape, rules, sizes):
    spec = [rules.get(name) for name in names]
    for i, axis in enumerate(spec):
        if axis in spec[:i] or axis not in sizes or shape[i] % sizes[axis]:
            spec[i] = None
    return spec


def as_a_spec(names, shape, rules, sizes):
    left = dict(sizes)
    entries = []
    for name, size in zip(names, shape, strict=True):
        axis = rules.get(name, "")
        entries.append(axis if left.get(axis) and not size % left[axis] and left.pop(axis) else None)
    return P(*entries)


def by_halving(parameters, per_character, rows, group, corner):
    def enough(length):
        cache = rows * per_character * length
        return rows * 2 * parameters + 2 * group * cache >= corner * 2 * (parameters + cache)

    if not enough(0):
        return 0
    if enough(1e15):
        return np.inf
    low, high = 0.0, 1e15
    for _ in range(200):
        low, high = (m, high) if enough(m := (low + high) / 2) else (low, m)
    return low


def exact(parameters, per_character, rows, group, corner):
    corner = Fraction(corner)
    if rows < corner:
        return Fraction(0)
    return (
        math.inf
        if group >= corner
        else Fraction(parameters) * (rows - corner) / (rows * per_character) / (corner - group)
    )


ALTERNATIVES = {
    ex15.spec_of: [by_index, as_a_spec],
    ex15.cache_bytes: [
        lambda layers, heads, size, rows, length, data, model, each: (
            np.zeros((2, layers, rows // data, length, -(-heads // model), size), np.int8).size * each
        ),
        lambda layers, heads, size, rows, length, data, model, each: jnp.float32(
            Fraction(2 * layers * rows * size * length * each, data) * max(Fraction(heads, model), 1)
        ),
    ],
    ex15.longest: [by_halving, exact],
}

EQUIVALENT_MUTANTS = {
    ex15.spec_of: [
        (
            "for name, size in zip(names, shape, strict=True): -> for name, size in zip(names, shape):",
            "an array has as many names as dimensions",
        ),
        ("return tuple(spec) -> return spec", "a list is accepted as well"),
        (
            "for name, size in zip(names, shape, strict=True): -> for name, size in zip(names, shape, strict=False):",
            "an array has as many names as dimensions",
        ),
    ],
    ex15.cache_bytes: [
        (
            "heads = max(key_heads / model, 1) -> heads = max(1, key_heads / model)",
            "the larger of two numbers doesn't depend on their order",
        )
    ],
    ex15.longest: [("if rows < corner: -> if rows <= corner:", "if rows equals corner, the formula gives 0 as well")],
}
