"""Operations, recorded and compiled: counted by hand."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from utils.count.operations import operations


def sorts(x):
    return jnp.sort(jnp.sort(jnp.sort(x)))


@pytest.mark.parametrize(
    ("f", "recorded", "compiled"),
    [
        (lambda x: x + 1, 1, 1),
        (lambda x: jnp.tanh(x + 1) * x, 3, 1),  # element by element: one fusion
        (lambda x: jnp.tanh((x + 1) @ x) * x, 4, 3),  # before the product, the product, after it
        (sorts, 3, 3),  # nothing fuses
        (lambda x: (jnp.sort(x), jnp.sort(x, axis=0)), 2, 2),  # a tuple is no operation
        (lambda x: x, 0, 1),  # a copy
    ],
)
def test_operations_as_recorded_and_as_compiled(f, recorded, compiled):
    assert operations(f, jnp.ones((64, 64))) == (recorded, compiled)
