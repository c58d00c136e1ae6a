"""Insert the site's interactive figures into the lessons, with the numbers that they show.

site/_static/interactive_figures/KIND.js draws each kind, with the controls of site/_static/interactive_figures.js.
Measured numbers come from the data that a cell of the committed notebook stores beside its picture
(utils/show/notebook_figure.py), and all others are computed in JavaScript from the lesson's formulas. A figure that
would reveal the answer to a question, named in its `asks`, stays hidden until the reader has guessed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import nbformat

from tools.lessons import notebooks
from tools.lessons.notebooks import QUESTION
from utils.chips import CHIPS
from utils.show import FIGURE_DATA

Cell = nbformat.NotebookNode
Cells = dict[str, Cell]  # a lesson's cells by id


# Lesson 03's table of products and lesson 04's table of shardings, as their cells `nine` and `mlp-count` print them.
# tests/repository/test_site_sources.py compares them with the lessons.
PRODUCTS = [
    ("x[B, D]", "w[D, F]", "no collective", 0, 16_777_216),
    ("x[B, D]", "w[D_X, F]", "all-reduce over X", 229_376, 2_097_152),
    ("x[B, D]", "w[D, F_X]", "no collective", 0, 2_097_152),
    ("x[B_X, D]", "w[D, F]", "no collective", 0, 2_097_152),
    ("x[B_X, D]", "w[D_X, F]", "all-gather over X", 458_752, 2_097_152),
    ("x[B_X, D]", "w[D, F_X]", "all-gather over X", 57_344, 2_097_152),
    ("x[B, D_X]", "w[D, F]", "all-gather over X", 57_344, 16_777_216),
    ("x[B, D_X]", "w[D_X, F]", "all-reduce over X", 229_376, 2_097_152),
    ("x[B, D_X]", "w[D, F_X]", "all-gather over X", 57_344, 2_097_152),
]
MLP_SHARDINGS = [
    ("columns", "columns", "all-gather over y", 49_152),
    ("columns", "rows", "all-reduce over y", 24_576),
    ("rows", "columns", "all-reduce over y", 98_304),
    ("rows", "rows", "all-to-all over y + all-reduce over y", 73_728),
]


def _products(_: Cells) -> list[dict[str, Any]]:
    """Return the rows of lesson 03's table, with numbers formatted as on the page.

    `split` indicates which dimensions of x and w are split by X, and `summed` whether partial sums are added up.
    """
    return [
        {
            "a": x,
            "b": w,
            "split": {"a": _split_dimensions(x), "b": _split_dimensions(w)},
            "collectives": collectives,
            "summed": collectives == "all-reduce over X",
            "sent": f"{sent:,}",
            "flops": f"{flops:,}",
        }
        for x, w, collectives, sent, flops in PRODUCTS
    ]


def _split_dimensions(array: str) -> list[bool]:
    """Return, for each dimension of an array such as `x[B_X, D]`, whether X splits the dimension."""
    return [name.endswith("_X") for name in re.findall(r"[A-Z]\w*", array)]


def _mlp_shardings(_: Cells) -> dict[str, dict[str, Any]]:
    """Return the collectives and the bytes sent for each sharding of the two weights in lesson 04's network."""
    return {f"{w1}, {w2}": {"collectives": collectives, "sent": sent} for w1, w2, collectives, sent in MLP_SHARDINGS}


def _values_before(cells: Cells) -> dict[str, list[list[float]]]:
    """Return each device's values before a collective in lesson 05: one number in v, and eight in t."""
    return {"v": figure_data(cells["move"]), "t": figure_data(cells["eight"])}


def _ring_routes(cell: Cell, *names: str) -> list[dict[str, Any]]:
    """Return the name and the chips of each route in a figure that lesson_helpers/figures/pod_axes.py draws."""
    return [{"name": name, "lines": lines} for name, lines in zip(names, figure_data(cell), strict=True)]


def _chip_rates(_: Cells) -> dict[str, float]:
    """Return the FLOP/s and the ring's bytes/s of the chip in lesson 09's estimate."""
    chip = CHIPS["TPU v5e"]
    return {"flops": chip.flops, "ringRate": chip.ring_rate}


def _parameter_bytes(cells: Cells) -> dict[str, Any]:
    """Return the bytes per parameter of each part in lesson 10's figure, and the memory of three chips in GB."""
    memory = {name: CHIPS[name].hbm / 1e9 for name in ("TPU v5e", "TPU v6e", "H100 SXM")}
    return {"parts": dict(figure_data(cells["opening"])), "chips": memory}


def _roofline_corner(_: Cells) -> dict[str, Any]:
    """Return the chip that lesson 15's figure marks, and the FLOPs per byte at its roofline's corner."""
    chip = CHIPS["TPU v5e"]
    return {"chip": chip.name, "corner": round(chip.flops / chip.hbm_rate)}


def _planned_chip(_: Cells) -> dict[str, float]:
    """Return the FLOP/s, the ring's bytes/s and the memory in GB of lesson 19's chip."""
    chip = CHIPS["TPU v6e"]
    return {"flops": chip.flops, "ring": chip.ring_rate, "gb": chip.hbm / 1e9}


# By lesson: the cell after which a figure is inserted (in a text cell, before its first question), its kind, and the
# function that reads its numbers from the lesson's cells, if any.
FIGURES: dict[str, list[tuple[str, str, Callable[[Cells], Any] | None]]] = {
    "00": [("grad-third", "derivative_tangent", None)],
    "01": [("wait", "async_dispatch", None)],
    "02": [("cut", "mesh_sharding", None)],
    "03": [("one-side", "sharded_matmul", _products)],
    "04": [("further", "two_layer_collectives", _mlp_shardings)],
    "05": [("eight-ask", "collective_result", _values_before)],
    "05b": [("overlap-draw", "overlapped_ring_matmul", None)],
    "06": [("hybrid", "batch_and_model_axes", None)],
    "07": [("ring-draw", "ring_collective", None)],
    "08": [
        ("places-run", "pod_ring_routes", lambda cells: _ring_routes(cells["places-run"], "v5e:2x4", "v5e:4x2")),
        ("clock", "pod_ring_routes", lambda cells: _ring_routes(cells["rings"], "data = 16", "data = 4")),
    ],
    "09": [("overlap-ask", "gather_overlap", _chip_rates)],
    "10": [("stages", "fsdp_memory", _parameter_bytes)],
    "11": [("pieces-read", "tensor_parallel_layer", lambda cells: figure_data(cells["again-draw"]))],
    "12": [("live", "pipeline_schedule", None)],
    "13": [("balance", "ring_attention_balance", None)],
    "14": [("bytes-run", "expert_capacity", lambda cells: figure_data(cells["groups-draw"]))],
    "15": [("serve-ask", "kv_cache_sharding", _roofline_corner)],
    "16": [("fetch", "process_shards", None)],
    "17": [("further", "checkpoint_interval", None)],
    "18": [("free", "kernel_ring_waits", None)],
    "19": [("price", "training_plan", _planned_chip)],
}


def kinds_of(number: str) -> list[str]:
    """Return the kinds of figures on a lesson's page, without duplicates."""
    return list(dict.fromkeys(kind for _, kind, _ in FIGURES.get(number, ())))


def with_figures(number: str, cell: Cell) -> str:
    """Return a text cell's source with its figure or, for a code cell, the figure to insert after it ("" if none)."""
    text = cell.source if cell.cell_type == "markdown" else ""
    for name, kind, read_data in FIGURES.get(number, ()):
        if name == cell.id:
            data = read_data(cells_by_id(number)) if read_data else None
            picture = _element(kind, data, question_numbers(number))
            before, question, after = text.partition(QUESTION)
            text = f"{before.rstrip()}\n\n{picture}\n\n{question}{after}".strip()
    return text


def figure(number: str, kind: str) -> str:
    """Return a lesson's figure for a page that asks no questions, so nothing in the figure is locked."""
    [read_data] = [read for _, name, read in FIGURES[number] if name == kind]
    return _element(kind, read_data(cells_by_id(number)) if read_data else None, None)


def _element(kind: str, data: Any, questions: dict[str, int] | None) -> str:
    """Return the HTML in which site/_static/interactive_figures.js draws a figure."""
    encoded = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="interactive-figure" data-kind="{kind}" data-questions="{html.escape(json.dumps(questions))}">'
        f'<script type="application/json">{encoded}</script></div>'
    )


def cells_by_id(number: str) -> Cells:
    return {cell.id: cell for cell in notebooks.read(notebooks.lesson(number)).cells}


def question_numbers(number: str) -> dict[str, int]:
    """Return the position of each question on a lesson's page, counted from 0, by the name of its prediction."""
    numbers, count = {}, 0
    for cell in cells_by_id(number).values():
        count += cell.source.count(QUESTION) if cell.cell_type == "markdown" else 0
        if name := re.search(rf"^ex{number}\.(\w+)\.compare\(guess, ", cell.source, re.M):
            numbers.setdefault(name[1], count - 1)
    return numbers


def figure_data(cell: Cell) -> Any:
    """Return the data that a cell stores beside its picture. Raises ValueError if it stores none."""
    for output in cell.outputs:
        if FIGURE_DATA in output.get("data", {}):
            return output.data[FIGURE_DATA]
    raise ValueError(f"cell {cell.id} stores no data beside a picture: run make refresh")


def scripts_for(name: str) -> list[str]:
    """Return the scripts in _static that a page loads for its interactive figures."""
    if name == "index":
        return ["interactive_figures.js", "interactive_figures/mesh_sharding.js"]
    for path in notebooks.lessons():
        if name == f"notebooks/{path.stem}" and (kinds := kinds_of(notebooks.number(path))):
            return ["interactive_figures.js", *(f"interactive_figures/{kind}.js" for kind in kinds)]
    return []
