"""What a picture does not draw before the reader's guess: the cases that its lesson asks for, and no others."""

from __future__ import annotations

import pytest

from tests.site.moving.conftest import lesson_of
from tools.site import moving

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
]


@pytest.mark.parametrize("kind, name, asked, free", ASKED)
def test_a_case_that_a_question_asks_for_waits_until_its_answer_was_seen(hand, kind, name, asked, free):
    at = hand(kind)
    answer = f"answer-{moving.questions(lesson_of(kind))[name]}"
    at.page.evaluate("id => document.body.append(Object.assign(document.createElement('i'), { id }))", answer)
    for values in asked:
        assert "guess first" in at.by_label(values), values
    at.page.evaluate("id => { document.getElementById(id).remove(); dispatchEvent(new Event('resize')); }", answer)
    assert "guess first" not in at.said()
    at.page.evaluate("id => document.body.append(Object.assign(document.createElement('i'), { id }))", answer)
    for values in free:
        assert "guess first" not in at.by_label(values), values
