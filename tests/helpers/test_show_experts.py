"""Test lesson 14's figures of dropped tokens and of each expert's share of the tokens."""

from __future__ import annotations

import numpy as np
import pytest

from lesson_helpers.figures.experts import draw_dropped, draw_shares

pytestmark = pytest.mark.once


def test_the_description_counts_dropped_tokens_on_each_device():
    drawn = draw_dropped({"a": [[1, 1, 0], [0, 0, 1]], "b": np.ones((2, 3))})
    assert "a: dropped on devices 0 to 1: 1, 2; b: dropped on devices 0 to 1: 0, 0." in drawn.alt


def test_the_description_gives_the_final_shares():
    drawn = draw_shares({"a": [[0.5, 0.5], [0.25, 0.75]]})
    assert drawn.alt.endswith("a: experts 0 to 1 end with 25%, 75%.")


@pytest.mark.parametrize("given", [{}, {"a": [1, 0]}])
def test_invalid_tokens_are_refused(given):
    with pytest.raises(ValueError, match="shape"):
        draw_dropped(given)


@pytest.mark.parametrize("given", [{}, {"a": [0.5, 0.5]}, {"a": [[0.5, 0.6]]}])
def test_invalid_shares_are_refused(given):
    with pytest.raises(ValueError, match="shape"):
        draw_shares(given)
