"""Test that a figure hides only the cases that its lesson asks about, until the reader has guessed."""

from __future__ import annotations

import pytest

from tests.site.interactive_figures.conftest import lesson_of
from tools.site import interactive_figures

ASKED = [
    ("derivative_tangent", "third_at_zero", [{"tangent": "second", "x": 1}], [{"tangent": "first derivative", "x": 0}]),
    ("async_dispatch", "overlap", [{"second": "at the end", "a load": 3}], [{"second": "in every third step"}]),
    ("mesh_sharding", "first_cut", [{"mesh": "2 by 4"}, {"spec": "P('x', ('y',))"}], [{"spec": "P('y', 'x')"}]),
    (
        "mesh_sharding",
        "half_cut",
        [{"mesh": "2 by 4", "spec": "P('x')"}, {"spec": "P('x', None)"}],
        [{"spec": "P('y')"}],
    ),
    (
        "mesh_sharding",
        "tuple_order",
        [{"mesh": "2 by 4", "spec": "P(None, ('y', 'x'))"}],
        [{"spec": "P(None, ('x', 'y'))"}],
    ),
    (
        "mesh_sharding",
        "ten_over_four",
        [{"spec": "P('x')", "array": "(10, 3)"}],
        [{"array": "(12, 3)"}, {"spec": "P('x"}],
    ),
    ("sharded_matmul", "rows_alone", [{"product": 3}], [{"product": 2}]),
    ("sharded_matmul", "both_split", [{"product": 7}, {"product": 1}], [{"product": 4}]),
    ("sharded_matmul", "gathered", [{"product": 4}], [{"product": 5}]),
    ("two_layer_collectives", "cheapest", [{"w2": "rows"}, {"w1": "rows", "w2": "columns"}], [{"w2": "rows"}]),
    ("collective_result", "scattered", [{"collective": "psum_scatter", "device": 3}], [{"collective": "psum"}]),
    ("batch_and_model_axes", "best_mesh", [{"examples": 1024, "data": 0}, {"examples": 880}], [{"examples": 872}]),
    ("gather_overlap", "hidden", [{"rows": 2048}], [{"rows": 1792}]),
    ("fsdp_memory", "stage_1", [{"devices": 8}], [{"devices": 9}]),
    ("tensor_parallel_layer", "sums_a_layer", [{"program": "tensor"}], [{"program": "sequence"}]),
    ("tensor_parallel_layer", "in_pieces", [{"program": "sequence"}], [{"program": "tensor"}]),
    (
        "tensor_parallel_layer",
        "gather_again",
        [{"program": "sequence, gather again"}],
        [{"program": "sequence, again"}],
    ),
    ("pipeline_schedule", "ticks", [{"stages": 4, "microbatches": 8}], [{"stages": 4, "microbatches": 9}]),
    ("pipeline_schedule", "of_1f1b", [{"schedule": "1F1B", "stages": 5}], [{"schedule": "GPipe"}]),
    ("pipeline_schedule", "live", [{"schedule": "1F1B", "microbatches": 24}], [{"schedule": "1F1B", "stages": 5}]),
    ("expert_capacity", "without_seat", [{"seats": 10}], [{"seats": 11}]),
    ("expert_capacity", "padding", [{"seats": 64}], [{"seats": 63}]),
    ("kv_cache_sharding", "cache_share", [{"rows": 3, "characters": 3}], [{"rows": 3, "characters": 2}]),
    ("kv_cache_sharding", "rows_needed", [{"rows": 4, "characters": 3}], [{"rows": 13, "characters": 0}]),
    ("checkpoint_interval", "slower", [{"a save takes": 0}], [{"a save takes": -1}]),
    ("kernel_ring_waits", "slow_end", [{"µs of": 240}], [{"µs of": 241}]),
    ("training_plan", "state", [{"fsdp": 3, "model": 3}], [{"fsdp": 3, "model": 2}]),
    (
        "training_plan",
        "rounds",
        [{"fsdp": 6, "model": 0, "microbatches": 2}],
        [{"fsdp": 6, "model": 0, "microbatches": 1}],
    ),
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
