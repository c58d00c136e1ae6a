"""Test that utils/example_models/digits.py contains the functions that lesson 00 teaches, line by line."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from tools.lessons import notebooks
from utils.example_models import digits

TAUGHT = {"init", "predict", "loss"}  # the lesson imports the module's other functions
LESSON = notebooks.ROOT / "notebooks" / "00_jax_for_numpy_people.ipynb"


def functions_of(sources: Iterable[str]) -> dict[str, list[str]]:
    """Return, by name, the source text of each top-level definition of a function in TAUGHT."""
    sources_by_name: dict[str, list[str]] = {}
    for source in sources:
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name in TAUGHT:
                sources_by_name.setdefault(node.name, []).append(ast.get_source_segment(source, node))
    return sources_by_name


def test_the_module_matches_the_lesson():
    cells = [cell for cell in notebooks.read(LESSON).cells if cell.cell_type == "code" and cell.id != "script"]
    mine = functions_of([inspect.getsource(digits)])
    assert set(mine) == TAUGHT and functions_of(cell.source for cell in cells) == mine


def test_sizes_of_the_digits_and_the_network():
    """Test that the network has 64 · 256 + 256 + 256 · 128 + 128 + 128 · 64 + 64 + 64 · 10 + 10 parameters.

    Lesson 00 shows that the network learns, so this test doesn't train it.
    """
    (train_x, _), (test_x, test_y) = digits.load()
    assert train_x.shape == (1400, 64) and test_x.shape == (397, 64)
    assert (train_x.min(), train_x.max()) == (0, 1) and set(test_y) == set(range(10))
    assert sum(leaf.size for leaf in jax.tree.leaves(digits.init(jax.random.key(1)))) == 58_442


def test_the_loss_of_equal_scores_is_log_10():
    params = jax.tree.map(jnp.zeros_like, digits.init(jax.random.key(0)))
    got = digits.loss(params, np.ones((5, 64), np.float32), np.arange(5))
    assert np.isclose(got, np.log(10), atol=1e-6)


def test_batches_are_complete_and_each_epoch_is_shuffled():
    drawn = list(digits.batches(np.zeros(10), seed=0, epochs=2, size=4))
    assert [len(rows) for rows in drawn] == [4, 4, 4, 4]
    first, second = np.concatenate(drawn[:2]), np.concatenate(drawn[2:])
    assert len(set(first)) == len(set(second)) == 8 and list(first) != list(second)
    again = list(digits.batches(np.zeros(10), seed=0, epochs=2, size=4))
    assert np.array_equal(drawn, again)
