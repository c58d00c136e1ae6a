"""Test lesson 06's figure of the bytes that a device sends, by mesh and number of examples."""

from __future__ import annotations

import re

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of

MESHES = ["8 x 1", "4 x 2", "2 x 4", "1 x 8"]


def test_with_128_examples_it_is_what_the_lesson_counted(open_figure):
    at = open_figure("batch_and_model_axes")
    assert at.figure_text().startswith("2 x 4, 128 examples: ") and at.figure_text().endswith("2 x 4 sends the least.")
    table = printed_text(cell_of("06", "hybrid-count"))
    for i, mesh in enumerate(MESHES):
        along, across, total = re.search(rf"{mesh} +([\d,]+) +([\d,]+) +([\d,]+) +True", table).groups()
        assert f"sends {along} bytes along data and {across} along model, {total} in all" in at.set(data=i)


def test_with_1024_examples_it_is_what_the_lesson_prints(open_figure):
    at = open_figure("batch_and_model_axes")
    at.set(examples=1024)
    for mesh, total in re.findall(r"(\d x \d) +([\d,]+)", printed_text(cell_of("06", "hybrid-formula"))):
        text = at.set(data=MESHES.index(mesh))
        assert (
            f"{mesh}, 1,024 examples" in text and f"{total} in all" in text and text.endswith("8 x 1 sends the least.")
        )


def test_each_mesh_has_batches_for_which_it_sends_least(open_figure):
    # In the lesson's table, each example adds 0, 266, 798 or 1,862 bytes (a 128th of those sent along model). So
    # 1 x 8 and 2 x 4 send the same amount for 58,860 / 1,064 = 55.3 examples, 2 x 4 and 4 x 2 for
    # 116,886 / 532 = 219.7, and 4 x 2 and 8 x 1 for 233,355 / 266 = 877.3.
    at = open_figure("batch_and_model_axes")
    borders = {8: "1 x 8", 48: "1 x 8", 56: "2 x 4", 216: "2 x 4", 224: "4 x 2", 872: "4 x 2", 880: "8 x 1"}
    for examples, mesh in borders.items():
        assert f"Of the four meshes, {mesh} sends the least." in at.set(examples=examples)
    assert "each device processes 110 of 880 examples" in text_of(at.set(data=0) and at)
    assert "a column stores a quarter of each weight" in text_of(at.set(data=2) and at)


def text_of(at):
    return at.page.locator(".interactive-figure text").all_text_contents()
