"""Test the slides: answers don't appear beside questions, cells have slide types, and pages load no external files."""

from __future__ import annotations

import base64
import importlib.util
import re
import struct
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests import lesson_lint
from tools.lessons import notebooks
from tools.lessons.hints_and_solutions import Answer
from tools.lessons.notebooks import QUESTION
from tools.teach import slides

LESSONS = pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)


def marked(cell: NotebookNode, kind: str, *tags: str) -> NotebookNode:
    """Give a cell a slide type and tags, and return it."""
    cell.metadata = {"slideshow": {"slide_type": kind}, **({"tags": list(tags)} if tags else {})}
    return cell


def small(*cells: NotebookNode) -> NotebookNode:
    """Return a notebook with these cells, whose ids become cell-0, cell-1 and so on."""
    notebook = new_notebook(cells=list(cells))
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"
    return notebook


def text(source: str, kind: str, *tags: str) -> NotebookNode:
    return marked(new_markdown_cell(source), kind, *tags)


def code(source: str, kind: str, *tags: str, prints: str = "") -> NotebookNode:
    cell = marked(new_code_cell(source), kind, *tags)
    cell.outputs = [new_output("stream", name="stdout", text=prints)] if prints else []
    return cell


def picture(source: str, kind: str, wide: int = 640, high: int = 480) -> NotebookNode:
    """Return a code cell with a picture of this size, in px, as its output."""
    cell = code(source, kind)
    png = base64.b64encode(bytes(16) + struct.pack(">II", wide, high)).decode()
    cell.outputs = [new_output("display_data", data={"image/png": png})]
    return cell


def cells_on_slides(notebook: NotebookNode) -> list[tuple[str, str]]:
    """Return the cells of the slides as (type, source). For an output, the source is 'output of' and the cell's id."""
    shown = []
    for cell in slides.arrange_slides(notebook).cells:
        output = cell.cell_type == "code" and cell.outputs
        shown.append((slides.slide_type(cell), f"output of {cell.id.rsplit('-', 1)[0]}" if output else cell.source))
    return shown


def slide_faults(notebook: NotebookNode) -> list[str]:
    """List a notebook's faults: unknown slide types, content that doesn't belong on slides, and premature answers."""
    kinds = {cell.id: slides.slide_type(cell) for cell in notebook.cells}
    if faults := [f"{name}: {kind!r} is not a slide type" for name, kind in kinds.items() if kind not in slides.TYPES]:
        return faults
    if slides.slide_type(notebook.cells[0]) != "slide":
        faults.append("the first cell does not begin a slide")
    hidden = [
        cell for cell in notebook.cells if cell.cell_type == "code" and notebooks.default_slide_type(cell) == "skip"
    ]
    faults += [f"{cell.id}: must not be on a slide" for cell in hidden if kinds[cell.id] != "skip"]
    arranged = slides.arrange_slides(notebook).cells
    questions_asked, begun = 0, ""
    for cell in arranged:
        kind = slides.slide_type(cell)
        questions = cell.source.count(QUESTION) if cell.cell_type == "markdown" else 0
        questions_asked += questions
        if kind == "notes" and questions:
            faults.append(f"{cell.id}: a question in the notes")
        if questions and (kind not in ("slide", "subslide") or questions > 1):
            faults.append(f"{cell.id}: a question that does not begin a slide of its own")
        if questions and not slides.split_blocks(cell.source)[-1].startswith(QUESTION):
            faults.append(f"{cell.id}: content follows a question on its slide")
        begun = cell.source if kind in ("slide", "subslide") else begun
        if cell.cell_type == "code" and cell.outputs and kind == "-" and QUESTION in begun:
            faults.append(f"{cell.id}: an output that appears together with the cell above it")
        if kind != "notes" and re.search(r"\.(check|hint|solution)\(", cell.source):
            faults.append(f"{cell.id}: an exercise's check or solution")
    if questions_asked != sum(cell.source.count(QUESTION) for cell in notebook.cells):
        faults.append("a question is missing from the slides")
    return faults


@LESSONS
def test_no_answer_is_beside_its_question(path):
    lesson_lint.fail_with(slide_faults(notebooks.read(path)))


@LESSONS
def test_every_question_is_answered_before_the_next(path):
    """Test that code or notes follow each question before the next one.

    An output, a figure or the text of a later cell answers the question. In appendix 90, a table may answer it.
    """
    cells = slides.arrange_slides(notebooks.read(path)).cells
    asked = [i for i, cell in enumerate(cells) if QUESTION in cell.source]
    assert asked
    for i, following in zip(asked, [*asked[1:], len(cells)], strict=True):
        between = cells[i + 1 : following]
        assert any(cell.cell_type == "code" or slides.slide_type(cell) == "notes" for cell in between), cells[i].id


@LESSONS
def test_a_question_is_on_the_slide_of_its_answer(path):
    """Test that the first output after a question is on the question's slide, unless a heading comes in between."""
    question = begun = ""
    for cell in slides.arrange_slides(notebooks.read(path)).cells:
        if slides.slide_type(cell) in ("slide", "subslide"):
            begun = cell.source
            if QUESTION in begun or begun.startswith("#"):
                question = begun.partition(QUESTION)[2]
        if cell.cell_type == "code" and cell.outputs:
            assert question in begun, cell.id
            question = ""


def test_a_stub_is_below_its_task_and_its_hint_is_in_the_notes():
    task = text("### Exercise 1.1 — Double (●○○ · 5 min)\n\nWrite it.\n\nAll of it.", "subslide")
    stub = new_code_cell("def double(x):\n    ...  # your code here", id="ex-double-stub")
    check = new_code_cell("ex01.double.check(double)", id="ex-double-check")
    answers = {"double": Answer("Twice [x].", "def double(x):\n    return 2 * x")}
    page = new_notebook(cells=[text("# Title", "slide"), task, stub, check])
    cells = slides.arrange_slides(page, on_demand=answers).cells[1:]
    assert [slides.slide_type(cell) for cell in cells] == ["subslide", "-", "notes"]
    assert "5 min" in cells[0].source and "All of it." in cells[0].source and "your code here" in cells[1].source
    assert cells[2].source == (
        "**Hint.** Twice \\[x\\].\n\n**Solution.**\n\n```python\ndef double(x):\n    return 2 * x\n```"
    )


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (new_markdown_cell("# Title"), "slide"),
        (new_markdown_cell("Read.\n\n## Section\n\n### Exercise 1.1"), "slide"),
        (new_markdown_cell("Read.\n\n### The mistake"), "subslide"),
        (new_markdown_cell(f"Take two.\n\n{QUESTION} Many?"), "subslide"),
        (new_markdown_cell("The table:\n\n| a |\n|---|\n| 1 |"), "subslide"),
        (new_markdown_cell("Read. A **Predict.** in bold is no question.\n\n```\n# a comment\n```"), "notes"),
        (new_code_cell("1 + 1", id="sum"), "subslide"),
        (new_code_cell("import jax", id="imports"), "skip"),
        (new_code_cell("devices", id="setup"), "skip"),
        (new_code_cell("def f(): ...", id="ex-two-words-stub"), "-"),
        (new_code_cell("ex01.f.check(f)", id="ex-f-check"), "skip"),
        (new_code_cell("1 + 1", id="ex-f-draw"), "subslide"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_default_slide_types(cell, kind):
    """Test the rule of notebooks/README.md for slide types, and that a type in the metadata takes precedence."""
    assert slides.slide_type(cell) == kind
    kept = notebooks.canonical(small(marked(cell, "fragment"))).cells[0]
    assert slides.slide_type(kept) == "fragment"


@pytest.mark.parametrize("kind", ["notes", ""], ids=["as by the rule", "as JupyterLab leaves it"])
def test_a_redundant_slide_type_is_dropped(kind):
    assert "slideshow" not in notebooks.canonical(small(text("Read.", kind))).cells[0].metadata


GOOD = [
    text("# Title", "slide"),
    text(f"## Ask\n\n{QUESTION} What?", "slide"),
    code("print(2)", "fragment", prints="2"),
]


def test_code_comes_before_its_output():
    assert cells_on_slides(small(code("1 + 1", "subslide", prints="2"))) == [
        ("subslide", "1 + 1"),
        ("fragment", "output of cell-0"),
    ]


def test_a_question_stays_above_code_and_output_until_text_follows():
    asked = small(*GOOD[:2], code("one", "subslide", prints="1"), code("two", "subslide"), text("Read.", "notes"))
    asked.cells += small(code("three", "subslide")).cells
    assert cells_on_slides(asked)[2:] == [
        ("subslide", "## Ask (continued)\n\n> What?"),
        ("-", "one"),
        ("fragment", "output of cell-2"),
        ("subslide", "## Ask (continued)\n\n> What?"),
        ("-", "two"),
        ("notes", "Read."),
        ("subslide", "## Ask (continued)"),
        ("-", "three"),
    ]


@pytest.mark.parametrize(
    ("lines", "columns", "printed", "tag", "where"),
    [
        (3, 82, 1, "code-24", "fragment"),
        (3, 83, 1, "code-22", "fragment"),
        (19, 60, 2, "code-22", "fragment"),
        (20, 60, 2, "code-20", "fragment"),
        (20, 60, 22, "code-24", "-"),
        (25, 60, 12, "code-20", "-"),
    ],
)
def test_code_has_the_largest_size_that_fits(lines, columns, printed, tag, where):
    long = code("\n".join(["x" * columns] * lines), "subslide", prints="1\n" * printed)
    cells = [cell for cell in slides.arrange_slides(small(*GOOD[:2], long)).cells if cell.cell_type == "code"]
    assert [*cells[0].metadata.tags, slides.slide_type(cells[1])] == [tag, where]


@LESSONS
def test_each_slide_has_a_heading(path):
    for cell in slides.arrange_slides(notebooks.read(path)).cells:
        if slides.slide_type(cell) in ("slide", "subslide"):
            assert re.match("#{1,3} .", cell.source), cell.id


def test_a_slide_that_continues_a_section_repeats_its_heading():
    exercise = text("### Exercise 1.1 — That (●○○ · 4 min)\n\nA task.", "subslide")
    sections = small(text("## First", "slide"), code("one", "subslide"), text(ASK, "subslide"), exercise)
    sections.cells += small(code("two", "subslide")).cells
    assert cells_on_slides(sections) == [
        ("slide", "## First"),
        ("subslide", "## First (continued)"),
        ("-", "one"),
        ("subslide", f"## First (continued)\n\n{ASK}"),
        ("subslide", exercise.source),
        ("subslide", "## Exercise 1.1 — That (continued)"),
        ("-", "two"),
    ]


@pytest.mark.parametrize(
    ("wide", "high", "width"),
    [
        (1440, 480, slides.SLIDE_WIDTH - 4),  # as wide as the slide
        (600, 100, 900),  # at most 1.5 times its own width
        (1120, 611, (696 - 48 - 30 - 10 - 6) * 1120 // 611),  # as high as the slide allows
    ],
)
def test_a_picture_is_as_large_as_the_slide_allows(wide, high, width):
    page = small(text("## A picture", "slide"), picture("plot()", "-", wide, high))
    [output] = slides.arrange_slides(page).cells[-1].outputs
    assert output.metadata["image/png"]["width"] == width


def test_cells_with_only_a_picture_or_without_output():
    assert [kind for kind, _ in cells_on_slides(small(picture("plot(\n)", "subslide")))] == ["subslide", "fragment"]
    assert [kind for kind, _ in cells_on_slides(small(picture("plot(\n\n\n\n)", "subslide", high=700)))] == [
        "subslide"
    ] * 2
    assert [kind for kind, _ in cells_on_slides(small(picture("plot()", "subslide")))] == ["subslide"]
    assert cells_on_slides(small(code("import jax", "skip"), text("Read.", "skip"))) == []


ASK = f"{QUESTION} And now?"
TASK = "### Exercise 1.1 — That (●○○ · 4 min)\n\nA task.\n\n1. one\n2. two\n\nUse paper."
LONG = "| a |\n|---|\n" + "\n".join(f"| {i} |" for i in range(20))
LISTS = "- a\n- b", "```\nx\n\ny\n```\n\n| a |\n|---|\n| 1 |"
TEXTS = {  # the source text, and the slides and notes that it becomes
    "prose": (
        [f"Two, as you see.\n\nAnd so on.\n\n## Next\n\nA **mesh** is.\n\nMore of it.\n\nTake two.\n\n{ASK}"],
        ["Two, as you see.\n\nAnd so on."], [f"## Next\n\nA **mesh** is.\n\nTake two.\n\n{ASK}"], ["More of it."],
    ),
    "a question's own words": ([f"It was two.\n\n{ASK}"], ["It was two."], [ASK]),
    "a sentence before the question": ([f"Two.\n\nTake device 5.\n\n{ASK}"], ["Two."], [f"Take device 5.\n\n{ASK}"]),
    "a heading inside": (
        [f"Read.\n\n### The mistake: this\n\nSaid.\n\nMended.\n\n{TASK}"],
        ["Read."], ["### The mistake: this\n\nSaid."], ["Mended."], [TASK],
    ),
    "lists": (
        [f"## Rules\n\nThree:\n\n{LISTS[0]}\n\nAfter.\n\n{LISTS[1]}"],
        [f"## Rules\n\nThree:\n\n{LISTS[0]}\n\n{LISTS[1]}"], ["After."],
    ),
    "a long table": ([f"## Index\n\n{LONG}"], ["## Index"], [LONG]),
    "a bold formula, and a bold title": (
        ["## Price\n\nA send takes time.\n\nFor all:\n\n**T = steps · α**\n\n**Further reading**"],
        ["## Price\n\nA send takes time.\n\n**T = steps · α**"], ["For all:\n\n**Further reading**"],
    ),
    "a verdict, and further reading": (
        ["## Verdict\n\n- **One.** Two.\n\n**Further reading**\n\n- [a](b)\n\n**Next:** [02](02_sharding.ipynb)"],
        ["## Verdict\n\n- **One.** Two."], ["**Further reading**\n\n- [a](b)\n\n**Next:** [02](02_sharding.html)"],
    ),
    "consecutive notes": (["## A", "b", "c\n\n## C", "d"], ["## A"], ["b\n\nc"], ["## C"], ["d"]),
    "other lessons": (["## A\n\n[2](02_x.ipynb#x), [5b](05b_y.ipynb)"], ["## A\n\n[2](02_x.html#x), [5b](05b_y.html)"]),
}  # fmt: skip


@pytest.mark.parametrize(("sources", "becomes"), [(one, rest) for one, *rest in TEXTS.values()], ids=TEXTS)
def test_the_shown_part_of_a_text(sources, becomes):
    cells = [text(one, "subslide" if re.search("^#|Predict", one, re.M) else "notes") for one in sources]
    slide_cells = cells_on_slides(small(*cells))
    assert [[source] for _, source in slide_cells] == becomes
    assert all((kind == "notes") != bool(re.search("^#|Predict", source, re.M)) for kind, source in slide_cells)


def test_notes_contain_the_right_answer_and_common_mistakes():
    """Test that the notes for a question tell the speaker the right answer and the common mistakes."""
    question = {"answer": 1024.0, "reason": "count", "mistakes": [[512.0, "row by row"]]}
    word = {"answer": "yes", "reason": "look again", "mistakes": [["no", ""]]}
    page = small(text(f"{QUESTION} One?", "subslide"), text(QUESTION, "subslide"))
    page.cells.append(text(f"{QUESTION} Three?", "subslide"))
    notes = [
        cell.source
        for cell in slides.arrange_slides(page, [question, None, word]).cells
        if cell.cell_type == "markdown"
    ]
    assert notes == [
        f"{QUESTION} One?",
        "**Right:** 1,024.\n\n**Common mistakes**, and how to respond:\n\n- 512: row by row",
        QUESTION,
        f"{QUESTION} Three?",
        "**Right:** `yes`.\n\n**Common mistakes**, and how to respond:\n\n- `no`: look again",
    ]


def test_badges_are_not_on_slides():
    source = notebooks.read(notebooks.lessons()[0]).cells[0].source
    assert "[![" in source and not any(
        "[![" in shown_text for _, shown_text in cells_on_slides(small(text(source, "slide")))
    )


def test_the_title_slide_has_the_opening_and_the_picture():
    cells = [text("# Title\n\n**It costs 2.** Nothing warns.", "slide"), picture("plot(\n)", "subslide")]
    cells[1].id = "opening"
    slide_cells = slides.arrange_slides(new_notebook(cells=cells)).cells
    assert [(slides.slide_type(cell), cell.source) for cell in slide_cells] == [
        ("slide", "# Title\n\n**It costs 2.**"),
        ("notes", " Nothing warns."),
        ("-", ""),
    ]


if importlib.util.find_spec("nbconvert"):  # JupyterLab requires it, so the default environment includes it

    def test_a_page_loads_no_external_files():
        # This lesson has no formulas, whose conversion needs a package that only make slides installs.
        notebook = notebooks.read(notebooks.ROOT / "notebooks" / "90_old_code_new_jax.ipynb")
        page = slides.to_html(notebook, "90 · Old code, new JAX")
        fetched = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(?!data:)([^\"]*)\"", page)
        assert set(fetched) == {
            "reveal.js/dist/reset.css",
            "reveal.js/dist/reveal.css",
            "reveal.js/dist/reveal.js",
            "reveal.js/plugin/notes/notes.js",
        }
        assert not re.search(r"@import|url\(\s*['\"]?(?:https?:)?//", page)
        kinds = [slides.slide_type(cell) for cell in slides.arrange_slides(notebook).cells]
        begun = kinds.count("slide") + kinds.count("subslide")
        assert len(re.findall(r"<section\b", page)) == begun + kinds.count("slide")  # nbconvert nests the sections
        assert len(re.findall(r'<aside class="notes">', page)) == kinds.count("notes") > 5
        assert "<title>90 · Old code, new JAX</title>" in page
        assert page.count('<blockquote class="predict">') == page.count("<strong>Predict.</strong>") > 0

    @pytest.fixture
    def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a folder for the slides, with a stand-in for reveal.js."""
        for part in ("dist/reveal.js", "dist/reveal.css", "dist/reset.css", "plugin/notes/notes.js", "LICENSE"):
            (tmp_path / "carried" / part).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "carried" / part).write_text(part)
        monkeypatch.setattr(slides, "find_reveal", lambda: tmp_path / "carried")
        monkeypatch.setattr(slides, "OUT", tmp_path / "slides")
        return tmp_path / "slides"

    def test_slides_of_selected_lessons(pretended):
        slides.main(["90"])  # this lesson has no formulas, see above
        assert sorted(path.name for path in pretended.iterdir()) == ["90_old_code_new_jax.html", "reveal.js"]
        assert (pretended / "reveal.js" / "dist" / "reveal.css").read_text() == "dist/reveal.css"

    def test_an_unknown_lesson_is_refused(pretended):
        with pytest.raises(SystemExit, match="there is no lesson 77"):
            slides.main(["77"])


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_the_workshop_notes_follow_their_questions(path):
    notes_by_heading = slides.workshop_questions(notebooks.number(path))
    if path.stem == "02_sharding":
        assert len(notes_by_heading) == 3 and notes_by_heading["What a spec leaves out is copied"].startswith(
            '*`P("x")` on a 2 by 4 mesh'
        )
    cells = slides.arrange_slides(notebooks.read(path), None, notes_by_heading).cells
    for heading, words in notes_by_heading.items():
        [position] = [i for i, cell in enumerate(cells) if words in cell.source]
        assert slides.slide_type(cells[position]) == "notes", heading
        before = [cell for cell in cells[:position] if QUESTION in cell.source]
        assert before, heading
