"""Which keys a function uses, counted by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from utils.exercises.keys import key_numbers, used_twice, uses_of_keys

normal, split, fold_in = jax.random.normal, jax.random.split, jax.random.fold_in


def three(key):
    one, two, later = split(key, 3)
    return normal(one), normal(two), later


def chain(key):
    key, one = split(key)
    key, two = split(key)
    return normal(one), normal(two), key


@pytest.mark.parametrize(
    ("f", "by", "comes_of"),
    [
        (three, "split draw draw", [{0, 1}, {0, 2}, {0}]),
        (chain, "split split draw draw", [{0, 2}, {0, 1, 3}, {0, 1}]),
        (lambda key: (normal(key), key), "draw", [{0}, set()]),
        (lambda key: (fold_in(key, 3), fold_in(key, 4)), "fold_in fold_in", [{0}, {1}]),
        (lambda key: tuple(jax.vmap(normal)(split(key))), "split draw draw", [{0, 1, 2}, {0, 1, 2}]),
        (lambda key: tuple(jax.lax.map(normal, split(key))), "split loop loop", [{0, 1, 2}, {0, 1, 2}]),
        (lambda key: (jax.random.gamma(key, 2.0),), "draw", [{0}]),
        (lambda key: (jax.jit(jnp.sort)(normal(split(key)[0], 5)),), "split draw", [{0, 1}]),
    ],
)
def test_uses_and_what_comes_of_them(f, by, comes_of):
    uses, found = uses_of_keys(f, jax.random.key(1))
    assert [use.by.removeprefix("a ") for use in uses] == by.split()
    assert found == comes_of
    assert not used_twice(uses)


def test_a_key_has_the_numbers_that_jax_gives_it():
    key = jax.random.key(1)
    one, two, _ = split(key, 3)
    uses, _ = uses_of_keys(three, key)
    assert [use.key for use in uses] == [*key_numbers(key), *key_numbers(one), *key_numbers(two)]
    assert len(key_numbers(split(key, 3))) == 3


@pytest.mark.parametrize(
    ("f", "twice"),
    [
        (lambda key: (normal(key, 3), normal(key, 4)), [0, 1]),
        (lambda key: (normal(key), split(key)), [0, 1]),
        (lambda key: (split(key, 2), split(key, 3)), [0, 1]),
        (lambda key: (normal(split(key)[1]), split(split(key)[1])), [0, 2]),
        (lambda key: (fold_in(key, 3), fold_in(key, 3)), [0, 1]),
        (lambda key: (fold_in(key, 3), normal(key)), [0, 1]),
        (lambda key: (jax.vmap(normal)(jnp.stack([key, key])),), [0, 1]),
        (lambda key: (jax.lax.map(normal, key[None]), normal(key)), [0, 1]),
    ],
)
def test_a_key_that_is_used_twice_is_found(f, twice):
    assert used_twice(uses_of_keys(f, jax.random.key(1))[0]) == twice
