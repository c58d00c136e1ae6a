"""What would answer a question of the page is drawn once its answer has been seen, and all else before."""

from __future__ import annotations

import pytest

from tests.site.moving.conftest import lesson_of
from tools.site import moving

# By kind and question: values that answer it, and near ones that do not.
CASES = {
    ("hiding", "hidden"): ({"rows": 2048}, {"rows": 1792}),
    ("held", "stage_1"): ({"devices": 8}, {"devices": 9}),
    ("held_and_sent", "sums_a_layer"): ({"program": "tensor"}, {"program": "sequence"}),
    ("held_and_sent", "in_pieces"): ({"program": "sequence"}, {"program": "tensor"}),
    ("held_and_sent", "gather_again"): ({"program": "sequence, gather again"}, {"program": "sequence, again"}),
    ("schedule", "ticks"): ({"stages": 4, "microbatches": 8}, {"stages": 4, "microbatches": 9}),
    ("schedule", "of_1f1b"): ({"schedule": "1F1B", "stages": 5}, {"schedule": "GPipe"}),
    ("schedule", "live"): ({"schedule": "1F1B", "microbatches": 24}, {"schedule": "1F1B", "stages": 5}),
    ("seats", "without_seat"): ({"seats": 10}, {"seats": 11}),
    ("seats", "padding"): ({"seats": 64}, {"seats": 63}),
    ("cache", "cache_share"): ({"rows": 3, "characters": 3}, {"rows": 3, "characters": 2}),
    ("cache", "rows_needed"): ({"rows": 4, "characters": 3}, {"rows": 13, "characters": 0}),
    ("saves", "slower"): ({"a save takes": 0}, {"a save takes": -1}),
    ("waits", "slow_end"): ({"µs of": 60}, {"µs of": 61}),
    ("plan", "state"): ({"fsdp": 3, "model": 3}, {"fsdp": 3, "model": 2}),
    ("plan", "rounds"): ({"fsdp": 6, "model": 0, "rounds": 2}, {"fsdp": 6, "model": 0, "rounds": 1}),
}
WAITS = """index => {
    const button = Object.assign(document.createElement("button"), { id: `answer-${index}` });
    document.querySelector("main").append(button);
}"""
SEEN = """index => {
    document.getElementById(`answer-${index}`).remove();
    dispatchEvent(new Event("resize"));
}"""


@pytest.mark.parametrize(("kind", "question"), CASES)
def test_a_case_is_drawn_once_its_answer_has_been_seen(hand, kind, question):
    asked, near = CASES[kind, question]
    index = moving.questions(lesson_of(kind))[question]
    at = hand(kind)
    at.page.evaluate(WAITS, index)
    assert "guess first" in at.by_label(asked)
    assert "Your guess first" in at.place.locator("svg").text_content()
    at.page.evaluate(SEEN, index)
    assert "guess first" not in at.said()
    at.page.evaluate(WAITS, index)
    assert "guess first" not in at.by_label(near)
