"""Make slides from the lessons' notebooks: `make slides`, or `make slides LESSONS="01 02"`.

`default_slide_type` in tools/lessons/notebooks.py decides which cells begin a slide (notebooks/README.md explains the
rule). This module decides which parts of a cell (questions, code, outputs and pictures) appear on a slide, and at what
size. The prose between them becomes speaker notes. All files, including reveal.js, are written to disk, so that the
slides work without a network.
"""

from __future__ import annotations

import base64
import copy
import importlib.util
import json
import re
import shutil
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat

from tools import NUMBER
from tools.lessons import mathml, notebooks
from tools.lessons.hints_and_solutions import Answer, answers_of, code_block, escape_markdown
from tools.lessons.notebooks import QUESTION, split_blocks

OUT = notebooks.ROOT / "slides"
PREDICTIONS = notebooks.ROOT / "site" / "predictions.json"  # written by tools/lessons/predictions.py
TEMPLATE = Path(__file__).with_name("slides_template")
LONG_TABLE = 13  # a table with this many lines or more can't be read from the back of a room
TYPES = ("slide", "subslide", "fragment", "-", "notes", "skip")
SLIDE_HEIGHT, SLIDE_WIDTH = 696, 1218  # px, without the margins of a slide
ARROWS = 30  # px at the bottom of a slide that pictures leave free for reveal.js's arrows
CONTINUED = 38  # height in px of the heading of a slide that continues a section
ENLARGED = 1.5  # a picture is enlarged by at most this factor, so that it stays sharp
CODE_SIZES = (24, 22, 20)  # font sizes of code in px; a slide uses the first that fits


def slide_type(cell: nbformat.NotebookNode) -> str:
    """Return the slide type in a cell's metadata or, if there's none, the cell's default slide type."""
    return cell.metadata.get("slideshow", {}).get("slide_type") or notebooks.default_slide_type(cell)


def arrange_slides(
    notebook: nbformat.NotebookNode,
    predictions: list[dict | None] | None = None,
    workshop_notes: dict[str, str] | None = None,
    on_demand: dict[str, Answer] | None = None,
) -> nbformat.NotebookNode:
    """Return a notebook from which nbconvert makes the slides: a cell for each part of a slide, and the speaker notes.

    Args:
      predictions: each question's data from site/predictions.json. The speaker notes list its common mistakes.
      workshop_notes: the workshop guide's notes on the first question below each heading, by heading.
      on_demand: the hint and solution of each exercise, by the name of its function.
    """
    slide_cells: list = []
    expected, remaining_notes, headings = iter(predictions or ()), dict(workshop_notes or {}), {}
    for cell in notebook.cells:
        parts = []
        for part in _split_cell(cell):
            parts.append(part)
            if part.cell_type == "markdown" and slide_type(part) != "notes":
                headings.update(re.findall(r"^(##+) (.+)$", part.source, re.M))  # the latest heading of each level
                predicted = [next(expected, None) for _ in range(part.source.count(QUESTION))]
                parts += [_text(cell, "notes", [answer_note(prediction)]) for prediction in predicted if prediction]
                for heading in headings.values() if predicted else ():
                    if workshop_note := remaining_notes.pop(heading, ""):
                        parts.append(_text(cell, "notes", [f"**In the workshop.** {workshop_note}"]))
            elif answer := (on_demand or {}).get(_stub_name(part)):
                solution = f"**Solution.**\n\n{code_block(answer.solution)}"
                parts.append(_text(cell, "notes", [f"**Hint.** {escape_markdown(answer.hint)}", solution]))
        for number, part in enumerate(parts):
            part.id = f"{cell.id}-{number}" if number else cell.id
            # Join consecutive notes, because a slide shows only its first cell of notes.
            if slide_cells and slide_type(part) == slide_type(slide_cells[-1]) == "notes":
                slide_cells[-1].source += f"\n\n{part.source}"
            else:
                slide_cells.append(part)
    slides = notebooks.copy_of(notebook)
    slides.cells = list(_paginate(slide_cells))
    return slides


def _paginate(cells: list) -> Iterator[nbformat.NotebookNode]:
    """Put code and its output on the same slide if they fit, and on separate slides otherwise.

    Begin each slide with a heading. Below the heading, repeat the current question until text follows its answer.
    """
    heading, question, answered, free_height = "", "", False, SLIDE_HEIGHT
    for number, cell in enumerate(cells):
        kind, size = slide_type(cell), CODE_SIZES[-1]
        if kind == "notes":
            question = "" if answered else question
        elif cell.cell_type == "markdown" and (cell.source.startswith("#") or QUESTION in cell.source):
            question = cell.source.partition(QUESTION)[2]
            if found := re.match(r"#+ (.+)", cell.source):
                heading = re.sub(r" \([●○].*\)$", "", found[1])  # don't repeat an exercise's difficulty and minutes
            elif heading:
                cell.source = f"{_continued(heading)}\n\n{cell.source}"
                cell.metadata.tags = ["continued"]
            answered, free_height = False, SLIDE_HEIGHT - estimate_height(cell)
        else:
            if kind == "subslide" or (kind == "fragment" and estimate_height(cell) > free_height):
                kind, free_height = "subslide", SLIDE_HEIGHT
                repeated = {"continued": _continued(heading), "asked": f">{question}" if question else ""}
                if tags := [tag for tag, text in repeated.items() if text]:
                    yield (top := _text(cell, kind, [repeated[tag] for tag in tags], tags))
                    top.id = f"{cell.id}-{tags[-1]}"
                    kind, free_height = "-", SLIDE_HEIGHT - estimate_height(top)
            if cell.cell_type == "code" and cell.source:
                outputs = [
                    estimate_height(output)
                    for output in cells[number + 1 : number + 2]
                    if slide_type(output) == "fragment"
                ]
                fits = (
                    size
                    for output_height in (*outputs, 0)
                    for size in CODE_SIZES
                    if estimate_height(cell, size) + output_height <= free_height
                )
                size = next(fits, size)
                cell.metadata.tags = [f"code-{size}"]
            _fit_pictures(cell, free_height)
            answered |= bool(cell.get("outputs"))
            free_height -= estimate_height(cell, size)
            cell.metadata.slideshow.slide_type = kind
        yield cell


def _continued(heading: str) -> str:
    """Return the heading of a slide that continues a section, or "" before the first heading."""
    return f"## {heading} (continued)" if heading else ""


def _fit_pictures(cell: nbformat.NotebookNode, free_height: float) -> None:
    """Make the pictures in a cell's outputs as large as the slide allows."""
    if not any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
        return
    cell.outputs = copy.deepcopy(cell.outputs)  # leave the size of the notebook's own outputs unchanged
    pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
    text = notebooks.copy_of({**cell, "outputs": [output for output in cell.outputs if output not in pictures]})
    height = (free_height - ARROWS - estimate_height(text)) / len(pictures) - 6
    for output in pictures:
        wide, high = _picture_size(output)
        metadata = output.setdefault("metadata", {}).setdefault("image/png", {})
        metadata["width"] = int(min(SLIDE_WIDTH - 4, ENLARGED * wide, height * wide / high))


def _picture_size(output: nbformat.NotebookNode) -> tuple[int, int]:
    """Return the width and height in px that a PNG file states in its header."""
    return struct.unpack(">II", base64.b64decode(output.data["image/png"])[16:24])


def estimate_height(cell: nbformat.NotebookNode, size: int = CODE_SIZES[-1]) -> float:
    """Estimate the height of a cell in px from the font sizes in slides.css."""

    def lines(text: str, columns: int) -> int:
        return sum(max(1, -(-len(line) // columns)) for line in text.splitlines())

    if cell.cell_type == "markdown":
        tags, blocks = cell.metadata.get("tags", []), split_blocks(cell.source)
        height = CONTINUED if "continued" in tags else 0
        rest = blocks[1:] if "continued" in tags else blocks
        if "asked" in tags:
            return height + sum(26 * lines(block, 118) + 22 for block in rest)
        return height + sum(36 * lines(block, 92) + 12 for block in rest)
    if cell.source:
        width_needed = 0.618 * size * max(map(len, cell.source.splitlines()))  # px, in the widest font of slides.css
        return (
            1.2 * size * lines(cell.source, 99) + 22
            if width_needed <= SLIDE_WIDTH or size == CODE_SIZES[-1]
            else float("inf")
        )
    height = 10
    for output in cell.outputs:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if "image/png" in data:
            width, image_height = _picture_size(output)
            height += min(560, image_height * min(1, SLIDE_WIDTH / width)) + 6
        else:
            height += 26 * lines(re.sub("<.*?>", "", data.get("text/html", data["text/plain"])), 99) + 8
    return height


def _stub_name(cell: nbformat.NotebookNode) -> str:
    """Return the name of the function in an exercise's stub, or "" if the cell isn't a stub."""
    match = re.search(r"^def (\w+)\((?s:.*)# your code here", cell.source, re.M)
    return match[1] if match else ""


def answer_note(prediction: dict) -> str:
    """Return a speaker note with a question's right answer and the feedback on each common mistake."""

    def format_guess(guess: float | str) -> str:
        return f"`{guess}`" if isinstance(guess, str) else f"{guess:,.10g}"

    mistakes = "\n".join(
        f"- {format_guess(guess)}: {explanation or prediction['reason']}"
        for guess, explanation in prediction["mistakes"]
    )
    return f"**Right:** {format_guess(prediction['answer'])}.\n\n**Common mistakes**, and how to respond:\n\n{mistakes}"


def workshop_questions(number: str) -> dict[str, str]:
    """Return the workshop guide's notes on a lesson's questions, by the heading above each question."""
    guide = (notebooks.ROOT / "teach" / "workshop.md").read_text(encoding="utf-8")
    return dict(re.findall(rf"^\*\*{number} · (.+?)\.?\*\* (\*.+?)$(?=\n\n)", guide, re.M | re.S))


def _split_cell(cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    kind = slide_type(cell)
    if kind == "skip":
        return
    if cell.cell_type == "code":
        drawn = any("image/png" in output.get("data", {}) for output in cell.outputs)
        if cell.id == "opening":
            kind = "-"  # show it on the same slide as the title
        elif not drawn or "\n" in cell.source:  # omit the code if it's a single line that draws the picture
            yield _code(cell, kind, source=cell.source)
            kind = "fragment"
        if cell.outputs:
            yield _code(cell, kind, outputs=cell.outputs, tags=[cell.id] * (cell.id == "opening"))
    elif kind == "notes":
        yield _text(cell, "notes", [cell.source])
    else:
        yield from _split_text(cell, kind, leads=notebooks.LEADS_ON_TAG in cell.metadata.get("tags", []))


def _split_text(cell: nbformat.NotebookNode, kind: str, leads: bool) -> Iterator[nbformat.NotebookNode]:
    """Split a Markdown cell into cells for the slides and cells for the speaker notes.

    Each heading begins a slide, and so does a question that isn't the first below a heading.
    """
    text_blocks = split_blocks(cell.source)
    group: list[str] = []  # the blocks of the current slide
    notes: list[str] = []
    # Below a heading, a slide shows one paragraph and the list after it. An exercise is shown in full.
    expected, is_exercise = "", False

    def finish() -> Iterator[nbformat.NotebookNode]:
        nonlocal kind
        if group:
            yield _text(cell, "slide" if group[0].startswith("## ") else kind, group)
            kind = "subslide"
        if notes:
            yield _text(cell, "notes", notes)
        group.clear()
        notes.clear()

    for i, block in enumerate(text_blocks):
        # The block right before a question introduces the question. The first block of a cell, though, discusses the
        # output above, unless the cell has LEADS_ON_TAG.
        introduces_question = (i or leads) and text_blocks[i + 1 : i + 2] and text_blocks[i + 1].startswith(QUESTION)
        has_question = any(text_block.startswith(QUESTION) for text_block in group)
        if re.match(r"#+ ", block):
            yield from finish()
            group.append(block)
            expected, is_exercise = "paragraph", block.startswith("### Exercise")
        elif re.match(r"[|>]|```|\*\*[^*]*[=<>][^*]*\*\*$", block):  # a table, a question, a code block or a formula
            if block.startswith(QUESTION) and (has_question or not group):
                yield from finish()
            (notes if block.startswith("|") and block.count("\n") >= LONG_TABLE else group).append(block)
            expected = "list" if expected and block.startswith("|") else ""
        elif group and group[-1].startswith("# ") and (opening := re.match(r"\*\*.+?\*\*", block, re.S)):
            group.append(opening[0])  # leave the rest of the slide for the picture
            notes.append(block[opening.end() :])
            expected = ""
        elif not block.startswith("[!["):  # show badges only on the web page
            is_list_item = bool(re.match(r"(- |\d+\. )", block))
            if is_exercise or expected == "paragraph" or (expected == "list" and is_list_item):
                group.append(block)
            elif introduces_question:
                if has_question or not group:
                    yield from finish()
                group.append(block)
            else:
                notes.append(block)
            expected = "list" if expected == "paragraph" and not is_list_item else ""
    yield from finish()


def _text(cell: nbformat.NotebookNode, kind: str, texts: list[str], tags: Sequence[str] = ()) -> nbformat.NotebookNode:
    source = re.sub(rf"\(({NUMBER}_\w+)\.ipynb", r"(\1.html", "\n\n".join(texts))
    return nbformat.v4.new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}, "tags": list(tags)})


def _code(
    cell: nbformat.NotebookNode, kind: str, source: str = "", outputs: list | None = None, tags: Sequence[str] = ()
):
    hidden = {} if source else {"transient": {"remove_source": True}}  # makes nbconvert leave out the cell's input
    metadata = {"slideshow": {"slide_type": kind}, "tags": list(tags), **hidden}
    return nbformat.v4.new_code_cell(source, outputs=outputs or [], metadata=metadata)


def to_html(
    notebook: nbformat.NotebookNode,
    title: str,
    predictions: list[dict | None] | None = None,
    workshop_notes: dict[str, str] | None = None,
    answers: dict[str, Answer] | None = None,
) -> str:
    """Return the slides as an HTML page that loads reveal.js from a folder beside the page."""
    from nbconvert.exporters import SlidesExporter

    exporter = SlidesExporter(template_name=TEMPLATE.name, extra_template_basedirs=[str(TEMPLATE.parent)])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    arranged = arrange_slides(notebook, predictions, workshop_notes, answers)
    for cell in arranged.cells:
        if cell.cell_type == "markdown":
            cell.source = mathml.with_mathml(cell.source)
    page, _ = exporter.from_notebook_node(arranged, {"metadata": {"name": title}})
    # slides.css styles questions differently from other block quotes
    page = re.sub(r"<blockquote>(?=\s*<p><strong>Predict\.</strong>)", '<blockquote class="predict">', page)
    # Several slides may continue the same section, and ids must be unique.
    return re.sub(r'(<h2) id="[^"]*\(continued\)"', r"\1", page)


def find_reveal() -> Path:
    """Return the folder of reveal.js in the package sphinx-revealjs. Raises SystemExit if it isn't installed."""
    spec = importlib.util.find_spec("sphinx_revealjs")
    if not spec or not spec.submodule_search_locations:
        raise SystemExit("Error: reveal.js is missing. Type make slides, which installs it.")
    return Path(spec.submodule_search_locations[0]) / "_static" / "revealjs"


def main(numbers: list[str]) -> None:
    source = find_reveal()
    for part in ("dist/reveal.js", "dist/reveal.css", "dist/reset.css", "plugin/notes/notes.js", "LICENSE"):
        target = OUT / "reveal.js" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / part, target)
    written = []
    predictions = json.loads(PREDICTIONS.read_text(encoding="utf-8"))
    for path in notebooks.lessons():
        if numbers and notebooks.number(path) not in numbers:
            continue
        notebook = notebooks.read(path)
        title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
        number = notebooks.number(path)
        page = to_html(notebook, title, predictions[path.stem], workshop_questions(number), answers_of(number))
        (OUT / f"{path.stem}.html").write_text(page, encoding="utf-8")
        written.append(f"{path.stem}.html")
    if not written:
        raise SystemExit(f"Error: there is no lesson {' '.join(numbers)}")
    print(f"{len(written)} files are in {OUT.name}/. Open them in a browser: {', '.join(written)}")
    print(
        "Press the arrow keys to change slides, S for the speaker view, and O for an overview. "
        "To show the slides elsewhere, copy the whole folder."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
