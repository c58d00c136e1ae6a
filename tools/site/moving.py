"""Pictures of the site that answer the reader's hand: where in a lesson each stands, and its numbers.

A kind is drawn by site/_static/moving/KIND.js, with the controls of site/_static/moving.js. What a run of the lesson
measured is read off the committed page; the rest follows from the lesson's formulas, computed anew. What would answer
a question of the page is not drawn before the reader's guess: the kind's `asks` names that question.
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
from utils.chips import CHIPS

Cell = nbformat.NotebookNode
Cells = dict[str, Cell]  # of a lesson, by id
QUESTION = "> **Predict.**"


def _held(cells: Cells) -> dict[str, Any]:
    """Bytes of a parameter, by part, of the first bar of lesson 10's figure, for 7e9; and what chips hold, in GB."""
    first = re.search(r"DDP: 112 \((.*?)\);", alt(cells["opening"]))[1]
    parts = {part: float(size) / 7 for part, size in re.findall(r"(.+?) (\d+)(?:, |$)", first)}
    return {"parts": parts, "chips": {name: CHIPS[name].hbm / 1e9 for name in ("TPU v5e", "TPU v6e", "H100 SXM")}}


def _places(cell: Cell) -> list[dict[str, Any]]:
    """Of a figure of utils/show/rings.py: for each title, chip by chip, the places of each line. Raises ValueError."""
    ways: list[dict[str, Any]] = []
    for part in alt(cell).split("by their corners. ")[1].split("; "):
        title, corners = re.fullmatch(r"(.*?): (\(.*\)).*", part).groups()
        told = re.search(r"hops: ([\d ]+)", title)
        hops = iter(map(int, told[1].split())) if told else itertools.repeat(1)
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


def _rates(cells: Cells) -> dict[str, float]:
    """Of the chip whose estimate lesson 09 draws."""
    chip = CHIPS[re.search(r'CHIPS\["(.*?)"\]', cells["overlap-draw"].source)[1]]
    return {"flops": chip.flops, "ringRate": chip.ring_rate}


def _held_and_sent(cells: Cells) -> dict[str, dict[str, float]]:
    """Units sent and A held in between, by program, of lesson 11's figure; FLOPs, of what is printed before it."""
    rows = re.findall(r"^(\w.*?) {2,}[\d.]+ units +([\d.]+) FLOPs", printed(cells["again-run"]), re.M)
    found = {"flops": {name: float(size) for name, size in rows}}
    for part in ("sent", "held in between"):
        bars = re.search(rf"{part}: [^.]+\. (.*?)\.(?: [a-z]|$)", alt(cells["again-draw"]))[1]
        found[part.split()[0]] = {name: float(size) for name, size in re.findall(r"(.+?): ([\d.]+)(?:; |$)", bars)}
    return found


def _seats(cells: Cells) -> dict[str, Any]:
    """Tokens by expert that lesson 14 prints; bytes that a device sends for each seat that an expert has."""
    counts = re.search(r"\[([\d ]+)\]", printed(cells["wanted"]))[1]
    sent = re.search(r"^10 seats: sends ([\d,]+) bytes", printed(cells["bytes-run"]), re.M)[1]
    return {"wanted": [int(count) for count in counts.split()], "bytes": int(sent.replace(",", "")) / 10}


def _plan(_: Cells) -> dict[str, float]:
    """Rates of the chip of lesson 19, and its GB."""
    chip = CHIPS["TPU v6e"]
    return {"flops": chip.flops, "ring": chip.ring_rate, "gb": chip.hbm / 1e9}


def _products(cells: Cells) -> list[dict[str, str]]:
    """The nine rows of lesson 03's table of products, as it prints them."""
    form = r"(x\[.*?\]) +· (w\[.*?\]) +(.*?) · sends ([\d,]+) bytes · computes ([\d,]+) FLOPs"
    heads = ("a", "b", "collectives", "sent", "flops")
    return [dict(zip(heads, row, strict=True)) for row in re.findall(form, printed(cells["nine"]))]


def _parts(cells: Cells) -> dict[str, list[list[int]]]:
    """What the eight devices hold before a collective of lesson 05: one number each, v, and eight each, t."""
    found = {}
    for name, figure in {"v": "move", "t": "eight"}.items():
        before = re.match(r"before: (.*?)\.", alt(cells[figure]))[1]
        found[name] = [[int(n) for n in part.split()] for part in re.findall(r"device \d holds ([\d ]+)", before)]
    return found


def _corner(cells: Cells) -> dict[str, Any]:
    """The chip that lesson 15's figure marks, and its FLOPs for each byte."""
    chip, corner = re.search(r"([\w ]+): a horizontal line at (\d+)", alt(cells["serve-rows"])).groups()
    return {"chip": chip.strip(), "corner": int(corner)}


def _cuts(cells: Cells) -> dict[str, dict[str, Any]]:
    """What lesson 04's network sends, by how its two weights are cut."""
    lines = re.findall(r"w1 by (\w+), w2 by (\w+): (.*?) · sends ([\d,]+) bytes", printed(cells["mlp-count"]))
    return {f"{w1}, {w2}": {"said": said, "sent": int(sent.replace(",", ""))} for w1, w2, said, sent in lines}


# By lesson: the cell where it stands, behind it or, of a text, before its first question; its kind; and what it takes
# from the lesson's cells, if anything.
PLACES: dict[str, list[tuple[str, str, Callable[[Cells], Any] | None]]] = {
    "00": [("grad-third", "tangent", None)],
    "01": [("wait", "queue", None)],
    "02": [("cut", "layout", None)],
    "03": [("one-side", "product", _products)],
    "04": [("further", "middle", _cuts)],
    "05": [("eight-ask", "collective", _parts)],
    "05b": [("overlap-draw", "travelling", None)],
    "06": [("hybrid", "cut_batch", None)],
    "07": [("ring-draw", "ring", None)],
    "08": [
        ("places-run", "places", lambda cells: _places(cells["places-run"])),
        ("clock", "places", lambda cells: _places(cells["rings"])),
    ],
    "09": [("overlap-ask", "hiding", _rates)],
    "10": [("stages", "held", _held)],
    "11": [("pieces-read", "held_and_sent", _held_and_sent)],
    "12": [("schedules", "schedule", None)],
    "13": [("balance", "mask", None)],
    "14": [("wanted", "seats", _seats)],
    "15": [("serve-ask", "cache", _corner)],
    "16": [("fetch", "owners", None)],
    "17": [("further", "saves", None)],
    "18": [("free", "waits", None)],
    "19": [("price", "plan", _plan)],
}


def kinds(number: str) -> list[str]:
    """What a lesson's page shows, each once."""
    return list(dict.fromkeys(kind for _, kind, _ in PLACES.get(number, ())))


def shown(number: str, cell: Cell) -> str:
    """A cell's text with the picture that stands there, or of code what stands behind it: nothing, mostly."""
    text = cell.source if cell.cell_type == "markdown" else ""
    for name, kind, numbers in PLACES.get(number, ()):
        if name == cell.id:
            told = json.dumps(numbers(cells(number)) if numbers else None, ensure_ascii=False).replace("<", "\\u003c")
            asked = html.escape(json.dumps(questions(number)))
            picture = (
                f'<div class="moving" data-kind="{kind}" data-questions="{asked}">'
                f'<script type="application/json">{told}</script></div>'
            )
            before, question, after = text.partition(QUESTION)
            text = f"{before.rstrip()}\n\n{picture}\n\n{question}{after}".strip()
    return text


def cells(number: str) -> Cells:
    return {cell.id: cell for cell in notebooks.read(notebooks.lesson(number)).cells}


def questions(number: str) -> dict[str, int]:
    """The questions of a lesson by the names of their predictions: which of the page each is, from 0."""
    found, count = {}, 0
    for cell in cells(number).values():
        count += cell.source.count(QUESTION) if cell.cell_type == "markdown" else 0
        if name := re.search(rf"^ex{number}\.(\w+)\.compare\(guess, ", cell.source, re.M):
            found.setdefault(name[1], count - 1)
    return found


def alt(cell: Cell) -> str:
    """The description of a cell's figure. Raises ValueError where it has none."""
    for output in cell.outputs:
        if found := output.get("metadata", {}).get("image/png", {}).get("alt"):
            return found
    raise ValueError(f"cell {cell.id} shows no figure")


def printed(cell: Cell) -> str:
    """What a cell prints."""
    return "".join(output.get("text", "") for output in cell.outputs if output.output_type == "stream")


def scripts(name: str) -> list[str]:
    """What a page of the site loads, from _static."""
    for path in notebooks.lessons():
        if name == f"notebooks/{path.stem}" and (found := kinds(notebooks.number(path))):
            return ["moving.js", *(f"moving/{kind}.js" for kind in found)]
    return []
