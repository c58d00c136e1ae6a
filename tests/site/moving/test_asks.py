"""Test that a figure hides only the cases that its lesson asks about, until the reader has guessed."""

from __future__ import annotations

import pytest

from tests.site.moving.conftest import lesson_of
from tools.site import interactive_figures

ASKED = [
    ("tangent", "third_at_zero", [{"tangent": "second", "x": 1}], [{"tangent": "first derivative", "x": 0}]),
    ("queue", "overlap", [{"second": "at the end", "a load": 3}], [{"second": "in every third step"}]),
    ("layout", "first_cut", [{"mesh": "2 by 4"}, {"spec": "P('x', ('y',))"}], [{"spec": "P('y', 'x')"}]),
    ("layout", "half_cut", [{"mesh": "2 by 4", "spec": "P('x')"}, {"spec": "P('x', None)"}], [{"spec": "P('y')"}]),
    ("layout", "tuple_order", [{"mesh": "2 by 4", "spec": "P(None, ('y', 'x'))"}], [{"spec": "P(None, ('x', 'y'))"}]),
    ("layout", "ten_over_four", [{"spec": "P('x')", "array": "(10, 3)"}], [{"array": "(12, 3)"}, {"spec": "P('x"}]),
    ("product", "rows_alone", [{"product": 3}], [{"product": 2}]),
    ("product", "both_split", [{"product": 7}, {"product": 1}], [{"product": 4}]),
    ("product", "gathered", [{"product": 4}], [{"product": 5}]),
    ("middle", "cheapest", [{"w2": "rows"}, {"w1": "rows", "w2": "columns"}], [{"w2": "rows"}]),
    ("collective", "scattered", [{"collective": "psum_scatter", "device": 3}], [{"collective": "psum"}]),
    ("cut_batch", "best_mesh", [{"examples": 1024, "data": 0}, {"examples": 880}], [{"examples": 872}]),
    ("hiding", "hidden", [{"rows": 2048}], [{"rows": 1792}]),
    ("held", "stage_1", [{"devices": 8}], [{"devices": 9}]),
    ("held_and_sent", "sums_a_layer", [{"program": "tensor"}], [{"program": "sequence"}]),
    ("held_and_sent", "in_pieces", [{"program": "sequence"}], [{"program": "tensor"}]),
    ("held_and_sent", "gather_again", [{"program": "sequence, gather again"}], [{"program": "sequence, again"}]),
    ("schedule", "ticks", [{"stages": 4, "microbatches": 8}], [{"stages": 4, "microbatches": 9}]),
    ("schedule", "of_1f1b", [{"schedule": "1F1B", "stages": 5}], [{"schedule": "GPipe"}]),
    ("schedule", "live", [{"schedule": "1F1B", "microbatches": 24}], [{"schedule": "1F1B", "stages": 5}]),
    ("seats", "without_seat", [{"seats": 10}], [{"seats": 11}]),
    ("seats", "padding", [{"seats": 64}], [{"seats": 63}]),
    ("cache", "cache_share", [{"rows": 3, "characters": 3}], [{"rows": 3, "characters": 2}]),
    ("cache", "rows_needed", [{"rows": 4, "characters": 3}], [{"rows": 13, "characters": 0}]),
    ("saves", "slower", [{"a save takes": 0}], [{"a save takes": -1}]),
    ("waits", "slow_end", [{"µs of": 60}], [{"µs of": 61}]),
    ("plan", "state", [{"fsdp": 3, "model": 3}], [{"fsdp": 3, "model": 2}]),
    ("plan", "rounds", [{"fsdp": 6, "model": 0, "microbatches": 2}], [{"fsdp": 6, "model": 0, "microbatches": 1}]),
]


@pytest.mark.parametrize("kind, name, asked, free", ASKED)
def test_a_case_that_a_question_asks_for_waits_until_its_answer_was_seen(open_figure, kind, name, asked, free):
    at = open_figure(kind)
    answer = f"answer-{interactive_figures.question_numbers(lesson_of(kind))[name]}"
    at.page.evaluate("id => document.body.append(Object.assign(document.createElement('i'), { id }))", answer)
    for values in asked:
        assert "guess first" in at.by_label(values), values
    at.page.evaluate("id => { document.getElementById(id).remove(); dispatchEvent(new Event('resize')); }", answer)
    assert "guess first" not in at.figure_text()
    at.page.evaluate("id => document.body.append(Object.assign(document.createElement('i'), { id }))", answer)
    for values in free:
        assert "guess first" not in at.by_label(values), values
