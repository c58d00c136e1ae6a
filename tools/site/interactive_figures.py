"""Insert the site's interactive figures into the lessons, with the numbers that they show.

site/_static/moving/KIND.js draws each kind, with the controls of site/_static/moving.js. Measured numbers are read from
the committed notebook, and all others are computed in JavaScript from the lesson's formulas. If a figure
would reveal the answer to a question (named in its `asks`), it stays hidden until the reader has guessed.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import nbformat

from tools.lessons import notebooks
from tools.lessons.notebooks import QUESTION
from utils.chips import CHIPS

Cell = nbformat.NotebookNode
Cells = dict[str, Cell]  # a lesson's cells by id


def _parameter_bytes(cells: Cells) -> dict[str, Any]:
    """Return the bytes per parameter of each part, read off lesson 10's figure, and the chips' memory in GB.

    The figure is for 7e9 parameters.
    """
    first = re.search(r"DDP: 112 \((.*?)\);", alt_text(cells["opening"]))[1]
    parts = {part: float(size) / 7 for part, size in re.findall(r"(.+?) (\d+)(?:, |$)", first)}
    return {"parts": parts, "chips": {name: CHIPS[name].hbm / 1e9 for name in ("TPU v5e", "TPU v6e", "H100 SXM")}}


def _ring_routes(cell: Cell) -> list[dict[str, Any]]:
    """Return the routes in a figure of utils/show/rings.py: the name of each, and the chips that its lines visit.

    Raises ValueError if the lines don't visit each chip once.
    """
    ways: list[dict[str, Any]] = []
    for part in alt_text(cell).split("by their corners. ")[1].split("; "):
        title, corners = re.fullmatch(r"(.*?): (\(.*\)).*", part).groups()
        hop_counts = re.search(r"hops: ([\d ]+)", title)
        hops = iter(map(int, hop_counts[1].split())) if hop_counts else itertools.repeat(1)
        turns = [(int(x), int(y)) for x, y in re.findall(r"\((\d+), (\d+)\)", corners)]
        line = turns[:1]
        for (x, y), (to_x, to_y) in itertools.pairwise(turns):
            far, gone = abs(to_x - x) + abs(to_y - y), 0
            while gone < far:
                gone += next(hops)
                line.append((x + (to_x - x) * gone // far, y + (to_y - y) * gone // far))
        if title == "then":
            ways[-1]["lines"].append(line)
        else:
            ways.append({"name": re.split(r",|: ", title)[0], "lines": [line]})
    for way in ways:
        chips = set(itertools.chain(*way["lines"]))
        x, y = map(max, zip(*chips, strict=True))
        if not len(chips) == sum(map(len, way["lines"])) == (x + 1) * (y + 1):
            raise ValueError(f"the lines of {way['name']!r} do not lead through each chip once")
    return ways


def _chip_rates(cells: Cells) -> dict[str, float]:
    """Return the rates of the chip for which lesson 09 draws its estimate."""
    chip = CHIPS[re.search(r'CHIPS\["(.*?)"\]', cells["overlap-draw"].source)[1]]
    return {"flops": chip.flops, "ringRate": chip.ring_rate}


def _memory_and_traffic(cells: Cells) -> dict[str, dict[str, float]]:
    """Return the units that each program in lesson 11's figure sends and stores, and the FLOPs printed before it."""
    rows = re.findall(r"^(\w.*?) {2,}[\d.]+ units +([\d.]+) FLOPs", printed_text(cells["again-run"]), re.M)
    data = {"flops": {name: float(size) for name, size in rows}}
    for key, panel in {"sent": "sent", "held": "temporaries"}.items():
        bars = re.search(rf"{panel}: [^.]+\. (.*?)\.(?: [a-z]|$)", alt_text(cells["again-draw"]))[1]
        data[key] = {name: float(size) for name, size in re.findall(r"(.+?): ([\d.]+)(?:; |$)", bars)}
    return data


def _expert_load(cells: Cells) -> dict[str, Any]:
    """Return each expert's tokens, from lesson 14, and the bytes that a device sends for each slot of an expert."""
    counts = re.search(r"\[([\d ]+)\]", printed_text(cells["wanted"]))[1]
    sent = re.search(r"^10 seats: sends ([\d,]+) bytes", printed_text(cells["bytes-run"]), re.M)[1]
    return {"wanted": [int(count) for count in counts.split()], "bytes": int(sent.replace(",", "")) / 10}


def _planned_chip(_: Cells) -> dict[str, float]:
    """Return the rates and the memory (in GB) of lesson 19's chip."""
    chip = CHIPS["TPU v6e"]
    return {"flops": chip.flops, "ring": chip.ring_rate, "gb": chip.hbm / 1e9}


def _product_rows(cells: Cells) -> list[dict[str, str]]:
    """Return lesson 03's nine products in the order of its table, with what its cells print about them.

    Explicit axes refuse two of them, whose costs are those on automatic axes.
    """
    form = r"(x\[.*?\]) +· (w\[.*?\]) +(?:(.*?) · sends ([\d,]+) bytes · computes ([\d,]+) FLOPs|\w+Error)"
    heads = ("a", "b", "collectives", "sent", "flops")
    chosen = {row[:2]: row for row in re.findall(form, printed_text(cells["chooses"]))}
    rows = [row if row[2] else chosen[row[:2]] for row in re.findall(form, printed_text(cells["nine"]))]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def _parts_before(cells: Cells) -> dict[str, list[list[int]]]:
    """Return the devices' values before a collective of lesson 05: one number each for v, and eight each for t."""
    parts = {}
    for name, figure in {"v": "move", "t": "eight"}.items():
        before = re.match(r"before: (.*?)\.", alt_text(cells[figure]))[1]
        parts[name] = [[int(n) for n in part.split()] for part in re.findall(r"device \d holds ([\d ]+)", before)]
    return parts


def _roofline_corner(cells: Cells) -> dict[str, Any]:
    """Return the chip that lesson 15's figure marks, and its FLOPs per byte."""
    chip, corner = re.search(r"([\w ]+): a horizontal line at (\d+)", alt_text(cells["serve-rows"])).groups()
    return {"chip": chip.strip(), "corner": int(corner)}


def _mlp_shardings(cells: Cells) -> dict[str, dict[str, Any]]:
    """Return what lesson 04's network sends for each sharding of its two weights."""
    lines = re.findall(r"w1 by (\w+), w2 by (\w+): (.*?) · sends ([\d,]+) bytes", printed_text(cells["mlp-count"]))
    return {f"{w1}, {w2}": {"said": said, "sent": int(sent.replace(",", ""))} for w1, w2, said, sent in lines}


# By lesson: the cell after which a figure is inserted (in a text cell, before its first question), its kind, and the
# function that reads its numbers from the lesson's cells, if any.
FIGURES: dict[str, list[tuple[str, str, Callable[[Cells], Any] | None]]] = {
    "00": [("grad-third", "tangent", None)],
    "01": [("wait", "queue", None)],
    "02": [("cut", "layout", None)],
    "03": [("one-side", "product", _product_rows)],
    "04": [("further", "middle", _mlp_shardings)],
    "05": [("eight-ask", "collective", _parts_before)],
    "05b": [("overlap-draw", "travelling", None)],
    "06": [("hybrid", "cut_batch", None)],
    "07": [("ring-draw", "ring", None)],
    "08": [
        ("places-run", "places", lambda cells_by_id: _ring_routes(cells_by_id["places-run"])),
        ("clock", "places", lambda cells_by_id: _ring_routes(cells_by_id["rings"])),
    ],
    "09": [("overlap-ask", "hiding", _chip_rates)],
    "10": [("stages", "held", _parameter_bytes)],
    "11": [("pieces-read", "held_and_sent", _memory_and_traffic)],
    "12": [("schedules", "schedule", None)],
    "13": [("balance", "mask", None)],
    "14": [("wanted", "seats", _expert_load)],
    "15": [("serve-ask", "cache", _roofline_corner)],
    "16": [("fetch", "owners", None)],
    "17": [("further", "saves", None)],
    "18": [("free", "waits", None)],
    "19": [("price", "plan", _planned_chip)],
}


def kinds_of(number: str) -> list[str]:
    """Return the kinds of figures on a lesson's page, each once."""
    return list(dict.fromkeys(kind for _, kind, _ in FIGURES.get(number, ())))


def with_figures(number: str, cell: Cell) -> str:
    """Return a text cell with its figure inserted or, for a code cell, the figure to insert after it, or ""."""
    text = cell.source if cell.cell_type == "markdown" else ""
    for name, kind, numbers in FIGURES.get(number, ()):
        if name == cell.id:
            data = json.dumps(numbers(cells_by_id(number)) if numbers else None, ensure_ascii=False).replace(
                "<", "\\u003c"
            )
            questions = html.escape(json.dumps(question_numbers(number)))
            picture = (
                f'<div class="moving" data-kind="{kind}" data-questions="{questions}">'
                f'<script type="application/json">{data}</script></div>'
            )
            before, question, after = text.partition(QUESTION)
            text = f"{before.rstrip()}\n\n{picture}\n\n{question}{after}".strip()
    return text


def cells_by_id(number: str) -> Cells:
    return {cell.id: cell for cell in notebooks.read(notebooks.lesson(number)).cells}


def question_numbers(number: str) -> dict[str, int]:
    """Return the position of each question on a lesson's page, from 0, by the name of its prediction."""
    numbers, count = {}, 0
    for cell in cells_by_id(number).values():
        count += cell.source.count(QUESTION) if cell.cell_type == "markdown" else 0
        if name := re.search(rf"^ex{number}\.(\w+)\.compare\(guess, ", cell.source, re.M):
            numbers.setdefault(name[1], count - 1)
    return numbers


def alt_text(cell: Cell) -> str:
    """Return the alt text of a cell's figure. Raises ValueError if there's none."""
    for output in cell.outputs:
        if text := output.get("metadata", {}).get("image/png", {}).get("alt"):
            return text
    raise ValueError(f"cell {cell.id} shows no figure")


def printed_text(cell: Cell) -> str:
    """Return what a cell prints."""
    return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")


def scripts_for(name: str) -> list[str]:
    """Return the scripts in _static that a page of the site loads."""
    for path in notebooks.lessons():
        if name == f"notebooks/{path.stem}" and (kinds := kinds_of(notebooks.number(path))):
            return ["moving.js", *(f"moving/{kind}.js" for kind in kinds)]
    return []
