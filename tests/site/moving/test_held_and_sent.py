"""Lesson 11: where the collectives of a layer stand, and what it keeps."""

from __future__ import annotations

import re

import pytest

from tests.site.moving.conftest import cell_of
from tools.site import interactive_figures

# By program: steps; all-reduces, all-gathers and reduce-scatters; A that a layer keeps. Of the collectives the lesson
# says 4 all-reduces, or 4 gathers and 4 reduce-scatters; computed again, one all-reduce, or two gathers and a
# reduce-scatter, come again; gathered again, two gathers. Each of these is a step, as are attention and MLP, forward,
# backward, and when they are computed again. Kept: x and norm(x) of two halves, whole or in eighths; of attention
# 4 / 8 + 1 (q, k, v, result, scores and weights: 2 * 8192 of 16,384 numbers), of the MLP 1 / 2 and 1 / 16.
# The JAX programs of the lesson keep the same, as they are traced (checked by hand, with JAX 0.10.2).
FOUND = {
    "tensor": (8, (4, 0, 0), "6.1"),  # 4 + 2.0625
    "sequence": (12, (0, 4, 4), "4.3"),  # 2 * (1 / 8 + 1) + 2.0625
    "tensor, again": (11, (5, 0, 0), "1.0"),  # x
    "sequence, again": (17, (0, 6, 5), "0.125"),
    "sequence, gather again": (14, (0, 6, 4), "2.6"),  # 4 / 8 + 2.0625
}


@pytest.mark.parametrize("program", FOUND)
def test_what_a_program_sends_and_holds_is_what_the_lesson_counts(hand, program):
    steps, times, kept = FOUND[program]
    units, flops = re.search(
        rf"^{program} {{2,}}([\d.]+) units +([\d.]+) FLOPs",
        interactive_figures.printed_text(cell_of("11", "again-run")),
        re.M,
    ).groups()
    sent, held = re.findall(rf"[.;] {program}: ([\d.]+)[;.]", interactive_figures.alt_text(cell_of("11", "again-draw")))
    at = hand("held_and_sent")
    said = at.by_label({"program": program, "step": steps})
    total = f"{float(units):g}"
    assert float(sent) == float(units)
    assert f"{total} of {total} units so far." in said
    assert f"Kept for the way back: about {kept} A a layer" in said
    assert f"room to compute in: {held.rstrip('.')} A a layer. FLOPs: {flops} times tensor's." in said
    assert f"{steps} of {steps}" in at.place.inner_text()
    words = at.place.locator("svg text").all_text_contents()
    assert tuple(words.count(kind) for kind in ("all-reduce", "all-gather", "reduce-scatter")) == times


def test_half_way_the_units_are_those_of_the_steps_so_far(hand):
    at = hand("held_and_sent")
    assert "backward, all-reduce sends 2 units; 8 of 8 units so far." in at.set(program="tensor")
    assert "forward, all-reduce sends 2 units; 4 of 8 units so far." in at.set(step=4)  # attention, sum, MLP, sum
    assert "backward, MLP sends nothing; 4 of 8" in at.set(step=5)
    assert "backward, all-reduce sends 2 units; 6 of 8" in at.set(step=6)  # where the half begins
    # after the first half: x, norm(x), 1.5 of the head
    assert "forward, all-reduce sends 2 units; 2 of 8 units so far. Kept for the way back: about 3.5 A" in at.set(
        step=2
    )
    assert "before the layer; 0 of 8 units so far. Kept for the way back: about 0 A" in at.set(step=0)
    # pieces: gather, attention, reduce-scatter, gather, MLP, reduce-scatter
    assert "forward, reduce-scatter sends 1 unit; 4 of 8" in at.by_label({"program": "sequence", "step": 6})
    assert "backward, all-gather sends 1 unit; 5 of 8" in at.set(step=7)  # the transpose of the reduce-scatter
    # again: gather, attention, reduce-scatter, gather, and the MLP's first product, without the sum at the end
    assert "again, MLP: up sends nothing; 7 of 11" in at.by_label({"program": "sequence, again", "step": 11})
    assert "again, all-gather sends 1 unit; 6 of 10" in at.by_label({"program": "sequence, gather again", "step": 8})
    assert "again, MLP: up sends nothing; 6 of 10" in at.by_label({"program": "tensor, again", "step": 7})


def test_who_stands_at_the_end_stays_there(hand):
    """8 steps in one program are not the end of another."""
    at = hand("held_and_sent")
    at.set(program="tensor")
    assert "8 of 8" in at.place.inner_text()
    at.set(program="sequence, again")
    assert f"{FOUND['sequence, again'][0]} of {FOUND['sequence, again'][0]}" in at.place.inner_text()
    at.set(step=3)
    at.set(program="tensor")
    assert "3 of 8" in at.place.inner_text()
