"""Test lesson 14's figures of dropped tokens and of each expert's share of the tokens."""

from __future__ import annotations

import numpy as np
import pytest

from lesson_helpers.figures.device_steps import Exchange, draw_data_parallel_step, draw_steps
from lesson_helpers.figures.experts import draw_dropped, draw_layer, draw_shares

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


def test_layer_draws_every_transfer():
    drawn = draw_layer(3)
    axes = drawn.figure.axes[0]
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) == 3 + 2 * 3 * 3  # one to each router, and two all-to-alls
    assert "The layer on 3 devices" in drawn.alt
    with pytest.raises(ValueError, match="not 1"):
        draw_layer(1)


def test_arrows_cross_between_devices_only_in_an_exchange():
    drawn = draw_steps(["{}: rows", "gradient", Exchange("all-reduce"), "mean"], 2, alt="A step.")
    texts = drawn.figure.axes[0].texts
    arrows = [text for text in texts if getattr(text, "arrow_patch", None)]
    assert [(arrow.xyann[1], arrow.xy[1]) for arrow in arrows] == [(0, 0), (1, 1), (0, 0), (0, 1), (1, 0), (1, 1)]
    assert [text.get_text() for text in texts if text not in arrows] == [
        "0: rows", "1: rows", "gradient", "gradient", "mean", "mean", "all-reduce"
    ]  # fmt: skip
    assert drawn.alt == "A step."


def test_a_data_parallel_step_crosses_once():
    drawn = draw_data_parallel_step(4)
    arrows = [text for text in drawn.figure.axes[0].texts if getattr(text, "arrow_patch", None)]
    assert len(arrows) == 4 + 4 * 4 + 4 and "step on 4 devices" in drawn.alt
