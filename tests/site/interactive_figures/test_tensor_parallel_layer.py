"""Test lesson 11's figure of a layer's collectives and of the activations that it keeps."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import alt_text, printed_text
from tests.site.interactive_figures.conftest import cell_of

# For each program: the number of steps, the numbers of all-reduces, all-gathers and reduce-scatters, and the
# activations that a layer keeps, in units of A. In the lesson, a layer needs 4 all-reduces, or 4 all-gathers and 4
# reduce-scatters. Recomputation adds an all-reduce, or two all-gathers and a reduce-scatter; repeating only the
# gathers adds two all-gathers. Each collective is a step, and so are attention and the MLP in the forward pass, in the
# backward pass and in the recomputation. A layer keeps x and norm(x) for each of its halves, replicated or sharded
# eight ways; 4 / 8 + 1 for attention (q, k, v and the result, then scores and weights: 2 * 8192 of 16,384 numbers); and
# 1 / 2 and 1 / 16 for the MLP. The lesson's JAX programs keep the same amounts (compared manually with traces of JAX
# 0.10.2).
FOUND = {
    "tensor": (8, (4, 0, 0), "6.1"),  # 4 + 2.0625
    "sequence": (12, (0, 4, 4), "4.3"),  # 2 * (1 / 8 + 1) + 2.0625
    "tensor, again": (11, (5, 0, 0), "1.0"),  # only x
    "sequence, again": (17, (0, 6, 5), "0.125"),
    "sequence, gather again": (14, (0, 6, 4), "2.6"),  # 4 / 8 + 2.0625
}


@pytest.mark.parametrize("program", FOUND)
def test_what_a_program_sends_and_holds_is_what_the_lesson_counts(open_figure, program):
    steps, times, kept = FOUND[program]
    units, flops = re.search(
        rf"^{program} {{2,}}([\d.]+) units +([\d.]+) FLOPs",
        printed_text(cell_of("11", "again-run")),
        re.M,
    ).groups()
    sent, held = re.findall(rf"[.;] {program}: ([\d.]+)[;.]", alt_text(cell_of("11", "again-draw")))
    at = open_figure("tensor_parallel_layer")
    text = at.by_label({"program": program, "step": steps})
    total = f"{float(units):g}"
    assert float(sent) == float(units)
    assert f"{total} of {total} units so far." in text
    assert f"Each layer keeps about {kept} A for the backward pass." in text
    assert f"take up {held.rstrip('.')} A. It computes {flops} times the FLOPs of the program tensor." in text
    assert f"{steps} of {steps}" in at.place.inner_text()
    words = at.place.locator("svg text").all_text_contents()
    assert tuple(words.count(kind) for kind in ("all-reduce", "all-gather", "reduce-scatter")) == times


def test_half_way_the_units_are_those_of_the_steps_so_far(open_figure):
    at = open_figure("tensor_parallel_layer")
    assert "backward, all-reduce sends 2 units; 8 of 8 units so far." in at.set(program="tensor")
    assert "forward, all-reduce sends 2 units; 4 of 8 units so far." in at.set(step=4)  # the second all-reduce
    assert "backward, MLP sends nothing; 4 of 8" in at.set(step=5)
    assert "backward, all-reduce sends 2 units; 6 of 8" in at.set(step=6)  # sums the gradient of the half's input
    # The first half keeps x, norm(x) and 1.5 A for its attention head.
    assert "forward, all-reduce sends 2 units; 2 of 8 units so far. Each layer keeps about 3.5 A" in at.set(step=2)
    assert "before the layer; 0 of 8 units so far. Each layer keeps about 0 A" in at.set(step=0)
    # The forward steps are all-gather, attention, reduce-scatter, all-gather, MLP and reduce-scatter.
    assert "forward, reduce-scatter sends 1 unit; 4 of 8" in at.by_label({"program": "sequence", "step": 6})
    assert "backward, all-gather sends 1 unit; 5 of 8" in at.set(step=7)  # the transpose of the reduce-scatter
    # The recomputation ends with the MLP's first product, so it doesn't repeat the last collective.
    assert "again, MLP: up sends nothing; 7 of 11" in at.by_label({"program": "sequence, again", "step": 11})
    assert "again, all-gather sends 1 unit; 6 of 10" in at.by_label({"program": "sequence, gather again", "step": 8})
    assert "again, MLP: up sends nothing; 6 of 10" in at.by_label({"program": "tensor, again", "step": 7})


def test_last_step_stays_selected(open_figure):
    """Test that a figure at its last step stays at the last step if the reader chooses a program with more steps.

    At an earlier step, the figure keeps the step's number.
    """
    at = open_figure("tensor_parallel_layer")
    at.set(program="tensor")
    assert "8 of 8" in at.place.inner_text()
    at.set(program="sequence, again")
    assert f"{FOUND['sequence, again'][0]} of {FOUND['sequence, again'][0]}" in at.place.inner_text()
    at.set(step=3)
    at.set(program="tensor")
    assert "3 of 8" in at.place.inner_text()
