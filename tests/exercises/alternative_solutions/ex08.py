"""Provide unusual solutions to the exercises of lesson 08, and list the equivalent mutants."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from exercises import ex08


def with_the_jits_layouts(f, mesh, shapes, specs):
    shardings = tuple(NamedSharding(mesh, spec) for spec in specs)
    shapes = (jax.ShapeDtypeStruct(tuple(shape), "bfloat16") for shape in shapes)
    memory = jax.jit(f, in_shardings=shardings).lower(*shapes).compile().memory_analysis()
    return [memory.argument_size_in_bytes, memory.output_size_in_bytes]


def by_shards(f, mesh, shapes, specs):
    shardings = [NamedSharding(mesh, spec) for spec in specs]
    argument_bytes = sum(2 * math.prod(p.shard_shape(s)) for p, s in zip(shardings, shapes, strict=True))
    arrays = [jax.ShapeDtypeStruct(s, jnp.bfloat16, sharding=p) for s, p in zip(shapes, shardings, strict=True)]
    result = jax.jit(f).lower(*arrays).compile().output_shardings
    return np.int64(argument_bytes), 2 * np.prod(result.shard_shape(jax.eval_shape(f, *arrays).shape), dtype=np.int64)


def by_chip(parameters, layers, width, length, chips, memory):
    left = memory * chips - parameters - parameters
    return 0 if left < 0 else float(left // (4 * layers * width * length))


def in_numpy(weights, sums, n):
    d = 2 ** np.arange(int(np.log2(n)) + 1)
    m = n // d
    sent = 3 * weights / m * (1 - 1 / d) + 2 * sums / d * (1 - 1 / m)
    return np.array([d, m])[:, sent.argmin()]


ALTERNATIVES = {
    ex08.given_and_returned: [with_the_jits_layouts, by_shards],
    ex08.sequences_that_fit: [by_chip, lambda p, a, w, t, n, b: max((n * b - 2 * p) // (4 * a * w * t), 0)],
    ex08.best_mesh: [
        in_numpy,
        lambda w, s, n: min(
            ((d, n // d) for d in range(1, n + 1) if n % d == 0 and d & (d - 1) == 0),
            key=lambda mesh: 3 * w * (mesh[0] - 1) + 2 * s * (mesh[1] - 1),  # n times the cost
        ),
    ],
}

_ARGS = "args = [jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec)) for shape, spec in "
_SENT = "sent = 3 * (weights / m) * (d - 1) / d + 2 * (m - 1) / m * (sums / d)"
EQUIVALENT_MUTANTS = {
    ex08.given_and_returned: [
        (
            f"{_ARGS}zip(shapes, specs, strict=True)] -> {_ARGS}zip(shapes, specs)]",
            "there are as many specs as shapes",
        ),
        (
            f"{_ARGS}zip(shapes, specs, strict=True)] -> {_ARGS}zip(shapes, specs, strict=False)]",
            "there are as many specs as shapes",
        ),
    ],
    ex08.sequences_that_fit: [
        (
            "return max(0, total // cache) -> return max(total // cache, 0)",
            "the larger of two numbers doesn't depend on their order",
        )
    ],
    ex08.best_mesh: [
        (
            "d, m = (2 ** power, n // 2 ** power) -> d, m = (n // 2 ** power, 2 ** power)",
            "it tries the same meshes in reverse order",
        ),
        (
            f"{_SENT} -> {_SENT.replace('(d - 1)', '(d + 1)')}",
            "it adds the same number of bytes to every mesh, because d m is n",
        ),
        (f"{_SENT} -> {_SENT.replace('(m - 1)', '(m + 1)')}", "it adds the same number of bytes to every mesh"),
    ],
}
