"""Check the rules that every lesson must follow. The functions named `*_faults` return the faults."""

from __future__ import annotations

import ast
import inspect
import json
import re
import symtable
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode

from exercises import framework
from exercises.verdicts import printed_outcomes
from tests import finished_lesson_lint
from tools import NUMBER
from tools.lessons import cell_names, notebooks, readme
from utils import guess_gate
from utils.show import FIGURE_DATA

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WAITING_SUFFIX = "-waiting"  # ends the id of a cell that runs without a guess, as in a reader's copy
MASKS = [  # parts of any cell's output that differ between runs or machines
    (re.compile(r"\bjax \d\S*"), "jax <version>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"\S*ipykernel_\S+"), "<kernel>"),
    # %%writefile prints a different word if the script already exists
    (re.compile(r"\b(?:Writing|Overwriting) (\w+\.py)"), r"Writing \1"),
]
# If a cell's outputs differ between runs, `output_varies` in its metadata gives the reason, and `output_varies_in`
# names the part that differs: a key of this dictionary. The default is "words", with which only the kinds of outputs
# are compared.
OUTPUT_VARIES_IN = {
    "durations": (re.compile(r" *\d+(?:[.,]\d+)*(?:e-?\d+)? ?(?:ns|µs|ms|s)\b"), " <duration>"),
    # includes the padding, whose width depends on the number of digits
    "numbers": (re.compile(r" *[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?: ?(?:ns|µs|ms|s)\b)?"), " <number>"),
    "words": (re.compile(r"(?s).+"), "<some text>"),
}


def fail_with(faults: list[str]) -> None:
    """Fail with these faults, one per line, in the weekly report's format. Do nothing if there are none."""
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def mask_text(text: str) -> str:
    """Remove colours and trailing spaces from a text, and replace the parts that match MASKS."""
    text = ANSI.sub("", text)
    for pattern, stand_in in MASKS:
        text = pattern.sub(stand_in, text)
    return text.rstrip()


def output_texts(cell: NotebookNode) -> list[tuple[str, str]]:
    """Return each output of a cell as (kind, text), with streams merged. A figure's text is its alt text and data."""
    texts = []
    for output in notebooks.merge_streams(cell.outputs):
        if output.output_type == "stream":
            texts.append((output.name, mask_text(output.text)))
        elif output.output_type == "error":
            texts.append(("error", mask_text(f"{output.ename}: {output.evalue}")))
        else:
            texts.append((output.output_type, mask_text(output.data.get("text/plain", ""))))
            if FIGURE_DATA in output.data:
                texts.append(("figure data", json.dumps(output.data[FIGURE_DATA], indent=1, sort_keys=True)))
            if "text/html" in output.data:
                texts.append(("text/html", mask_text(output.data["text/html"]).replace(">", ">\n")))
    return texts


def output_faults(committed: NotebookNode, executed: NotebookNode) -> list[str]:
    """Return a fault for each cell whose outputs on the page differ from those of its execution."""
    faults = []
    for page, run in zip(committed.cells, executed.cells, strict=True):
        if page.cell_type != "code":
            continue
        on_page, from_run = output_texts(page), output_texts(run)
        if "output_varies" in page.metadata:
            pattern, stand_in = OUTPUT_VARIES_IN[page.metadata.get("output_varies_in", "words")]
            on_page, from_run = [
                [(kind, pattern.sub(stand_in, text)) for kind, text in outputs] for outputs in (on_page, from_run)
            ]
        if on_page != from_run:
            page_line, run_line = first_difference(on_page, from_run)
            faults.append(f"{page.id}: the page shows {page_line}, execution gives {run_line}")
    return faults


def first_difference(on_page: list[tuple[str, str]], from_run: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the first pair of lines that differ, each with its output's kind. A missing line is 'nothing'.

    If all lines agree, return how many outputs each side has.
    """
    lines = [
        [f"{kind} {line!r}" for kind, text in outputs for line in text.split("\n")] for outputs in (on_page, from_run)
    ]
    differ = (pair for pair in zip_longest(*lines, fillvalue="nothing") if pair[0] != pair[1])
    return next(differ, (f"{len(on_page)} outputs", f"{len(from_run)} outputs"))


def stderr_faults(notebook: NotebookNode) -> list[str]:
    """Return a fault for each cell that writes to stderr, because no lesson should produce warnings."""
    faults = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                faults.append(f"{cell.id}: writes to stderr: {output.text[:200]!r}")
    return faults


def double_cells(
    notebook: NotebookNode, again: NotebookNode | None = None, copy: NotebookNode | None = None
) -> NotebookNode:
    """Return the notebook with each code cell repeated. The repetition takes its source from `again`, if given.

    A cell that waits for a guess in a reader's `copy` appears a third time, with its source from `copy`.
    """
    twice = nbformat.from_dict(notebook)
    twice.cells = []
    for cell, *others in zip(notebook.cells, (again or notebook).cells, (copy or notebook).cells, strict=True):
        twice.cells.append(nbformat.from_dict(cell))
        if cell.cell_type == "code":
            waits = guess_gate.UNANSWERED.match(others[1].source) or others[1].source.startswith(guess_gate.AFTER_GUESS)
            for other, ending in zip(others, ("-again", WAITING_SUFFIX)[: 1 + bool(waits)], strict=False):
                more = nbformat.from_dict(other)
                more.id = cell.id + ending
                twice.cells.append(more)
    return twice


def select_run(executed: NotebookNode, second: bool) -> NotebookNode:
    """Return an executed doubled notebook with only the first (or only the second) run of each cell."""
    half = nbformat.from_dict(executed)
    half.cells = [cell for cell in executed.cells if not cell.id.endswith(WAITING_SUFFIX)]
    code = [cell.id for cell in half.cells if cell.cell_type == "code" and not cell.id.endswith("-again")]
    drop = set(code) if second else {f"{name}-again" for name in code}
    half.cells = [cell for cell in half.cells if cell.id not in drop]
    return half


def leak_faults(executed: NotebookNode) -> list[str]:
    """List the cells of an executed doubled notebook that, without a guess, show more than the request for one."""
    faults = []
    for cell in executed.cells:
        if cell.id.endswith(WAITING_SUFFIX):
            message = guess_gate.MESSAGE if cell.source.startswith("guess = ") else guess_gate.MESSAGE_AFTER
            if output_texts(cell) != [("stdout", message)]:
                faults.append(f"{cell.id}: before a guess, shows {output_texts(cell)}")
    return faults


def structure_faults(path: Path) -> list[str]:
    """Return the faults in a notebook's structure: its format, headings, links, names and code."""
    raw = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(raw, as_version=4)
    faults = [] if raw == notebooks.to_text(notebook) else ["not in canonical form: run make stamp"]
    if path.stat().st_size > 600_000:
        faults.append("larger than 600 kB")
    cells = notebook.cells
    ids = [cell.get("id", "") for cell in json.loads(raw)["cells"]]  # as in the file: nbformat replaces invalid ids
    if len(set(ids)) < len(ids):
        faults.append("two cells have the same id")
    kebab = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
    faults += [f"id {name!r} is not kebab-case" for name in ids if not kebab.fullmatch(name)]
    faults += [
        f"an editor made up the id {name!r}: run make stamp" for name in ids if cell_names.GENERATED_ID.fullmatch(name)
    ]
    faults += [*_numbering_faults(path, cells), *_text_faults(cells, path.parent), *_answer_faults(cells)]
    try:
        draft = readme.row(path).is_draft
    except ValueError as error:
        draft, faults = True, [*faults, str(error)]  # skip finished_lesson_lint, which needs the row
    faults += stderr_faults(notebook) + list(_name_faults(cells))
    for cell in cells:
        if cell.cell_type == "code":
            faults += list(_code_cell_faults(cell))
    if not draft:
        faults += finished_lesson_lint.page_faults(path, cells)
    return faults


def _numbering_faults(path: Path, cells: list) -> Iterator[str]:
    """Check the title, the numbers of the exercises and the link to the next lesson."""
    if [heading for heading in _headings(cells) if heading.startswith("# ")] != cells[0].source.splitlines()[:1]:
        yield "needs exactly one H1, at the top"
    number, order = notebooks.number(path), notebooks.lessons(path.parent.parent)
    # Exercises are numbered across the parts of a lesson: if 05 has four exercises, 05b begins with 5.5.
    parts = [other for other in order if number[:2] <= notebooks.number(other) < number]
    before = sum(len(_exercises(notebooks.read(part).cells)) for part in parts)
    for i, heading in enumerate(_exercises(cells), before + 1):
        name = f"### Exercise {int(number[:2])}.{i} — "
        if not re.match(rf"{re.escape(name)}.+ \((●○○|●●○|●●●) · \d+ min\)$", heading):
            yield f"{heading!r} is not of the form: {name}Title (●●○ · 5 min)"
    after = [other.name for other in order if notebooks.number(other) > number]
    # the last lesson may link to any other lesson
    after = after[:1] or [other.name for other in order if other.name != path.name]
    leads = re.search(rf"\*\*Next:\*\*.*?\(({NUMBER}_\w+\.ipynb)\)", cells[-1].source, re.S)
    if not leads or leads[1] not in after:
        yield f"**Next:** leads to {leads[1] if leads else 'no lesson'}, but the next one is {after[0]}"


def _exercises(cells: list) -> list[str]:
    return [line for line in _headings(cells) if line.startswith("### Exercise ")]


def _headings(cells: list) -> list[str]:
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^#+ .*$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)


def _text_faults(cells: list, folder: Path) -> Iterator[str]:
    """Check the links, alt text and wording in text cells."""
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        for alt, target in re.findall(r"(!?\[[^\]]*\])\(([^)\s]+)\)", cell.source):
            if alt == "![]":
                yield f"{cell.id}: a picture without alt text"
            if not re.match(r"https?://|#", target) and not (folder / target.split("#")[0]).exists():
                yield f"{cell.id}: the link to {target} is broken"
        for word in re.findall(r"\b(?:simply|just(?!-in-time)|obviously)\b", re.sub(r"`[^`]*`", "", cell.source), re.I):
            yield f"{cell.id}: belittling word {word!r}"


def texts_after_answers(cells: list) -> list:
    """Return the text cells between the first output after a question and the next question or heading.

    If subheadings come between a question and its first output, the question covers all their sections.
    site/_static/hidden_answers.js hides the same texts.
    """
    has_question = answered = has_sections = False
    texts = []
    for cell in cells:
        if cell.cell_type == "code":
            answered |= has_question and bool(cell.outputs)
            continue
        for part, block in enumerate(notebooks.split_blocks(cell.source)):
            if heading := re.match(r"#+(?= )", block):
                if len(heading[0]) < 3 or cell.id.startswith("ex-") or (answered and not has_sections):
                    has_question = answered = False
                has_sections |= has_question and not answered
            elif block.startswith(notebooks.QUESTION):
                has_question, answered, has_sections = True, False, False
            elif answered and part == 0:
                texts.append(cell)
    return texts


def _answer_faults(cells: list) -> Iterator[str]:
    """Check that text after an answer has one of the tags `answer` and `leads`, and that no other text has `answer`."""
    after = texts_after_answers(cells)
    for cell in cells:
        tags = {notebooks.ANSWER_TAG, notebooks.LEADS_ON_TAG}.intersection(cell.metadata.get("tags", ()))
        if cell in after and len(tags) != 1:
            yield f"{cell.id}: follows an answer, so it needs one of the tags `answer` and `leads`"
        if cell not in after and notebooks.ANSWER_TAG in tags:
            yield f"{cell.id}: has the tag `answer`, but no output comes between it and a question"


def _code_cell_faults(cell: NotebookNode) -> Iterator[str]:
    """Check a code cell's length, commands, metadata and outputs."""
    if cell.id == "setup":
        if cell.source != notebooks.setup_source():
            yield "the setup cell differs from the shared one: run make stamp"
        if not notebooks.HIDDEN_CODE.items() <= cell.metadata.items():
            yield "the setup cell's code is not hidden: run make stamp"
    elif cell.id not in ("script", "imports") and sum(bool(line.strip()) for line in cell.source.splitlines()) > 20:
        yield f"{cell.id}: more than 20 lines of code"
    if cell.id == "script":
        pass  # the cell begins with a magic command, and its code is in examples/
    elif re.search(r"^\s*[!%]", cell.source, re.M):
        yield f"{cell.id}: a shell or magic command"
    elif not cell.outputs and any(isinstance(last, ast.Expr) for last in ast.parse(cell.source).body[-1:]):
        yield f"{cell.id}: its last line is an expression, but the cell has no output: run make refresh"
    if not str(cell.metadata.get("output_varies", "because")).strip():
        yield f"{cell.id}: `output_varies` doesn't give a reason"
    if "output_varies_in" in cell.metadata and (
        "output_varies" not in cell.metadata or cell.metadata["output_varies_in"] not in OUTPUT_VARIES_IN
    ):
        parts = ", ".join(OUTPUT_VARIES_IN)
        yield f"{cell.id}: `output_varies_in` must be one of {parts}, in a cell that has `output_varies`"
    for output in cell.outputs:
        if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", []):
            yield f"{cell.id}: ends in an error: {output.ename}"
        if "image/png" in output.get("data", {}) and not output.metadata.get("image/png", {}).get("alt", "").strip():
            yield f"{cell.id}: a figure without alt text"
        if re.search(r"<(Axes|Figure|matplotlib)\b", output.get("data", {}).get("text/plain", "")):
            yield f"{cell.id}: shows the repr {output.data['text/plain']!r}"


def _name_faults(cells: list) -> Iterator[str]:
    """Report each cell that reassigns a name that a function in an earlier cell reads.

    If readers went back and called that function again, it would use the new value.
    """
    defined, read = set(), {}
    for cell in cells:
        if cell.cell_type != "code" or cell.id == "setup" or re.search(r"^\s*[!%]", cell.source, re.M):
            continue
        top = symtable.symtable(cell.source, cell.id, "exec")
        own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned()}
        for name in sorted(own & read.keys()):
            yield f"{cell.id}: reassigns {name!r}, which a function in the cell {read[name]} reads"
        inner = top.get_children()
        for scope in inner:
            inner.extend(scope.get_children())
            if scope.get_name().endswith(("comp", "genexpr")) and scope in top.get_children():
                continue  # a comprehension runs only once, so it can't read a later value
            names = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()}
            read.update(dict.fromkeys((names & defined) - own, cell.id))
        defined |= own


def badge_faults(notebook: NotebookNode, path: str) -> list[str]:
    """Report the notebook if its first cell lacks the badges that link to this path."""
    if notebooks.badges(path) in notebook.cells[0].source:
        return []
    return [f"{path}: lacks the badges of {notebooks.repository()[0]}"]


def exercises_of(module: ModuleType) -> dict[str, framework.Exercise]:
    return {name: value for name, value in vars(module).items() if isinstance(value, framework.Exercise)}


def predictions_of(module: ModuleType) -> dict[str, framework.Prediction]:
    return {name: value for name, value in vars(module).items() if isinstance(value, framework.Prediction)}


def prediction_faults(notebook: NotebookNode, module: ModuleType) -> list[str]:
    """Return a fault for each prediction that isn't compared in exactly one cell that begins with an empty guess."""
    faults, compared = [], []
    alias = module.__name__.split(".")[-1]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        names = re.findall(rf"^{alias}\.(\w+)\.compare\(guess, ", cell.source, re.M)
        compared += names
        if len(names) != len(re.findall(r"^guess = ", cell.source, re.M)) or len(names) > 1:
            faults.append(f"{cell.id}: needs exactly one guess and its comparison")
        elif names and not re.match(r'guess = None  # [\w("]', cell.source):
            faults.append(f"{cell.id}: must begin with `guess = None  # the unit or kind of answer`")
    if sorted(compared) != sorted(predictions_of(module)):
        faults.append(f"compares {sorted(compared)}, but the module has {sorted(predictions_of(module))}")
    return faults


def with_right_guesses(notebook: NotebookNode, module: ModuleType) -> NotebookNode:
    """Return the notebook with all guesses filled in correctly."""
    filled = nbformat.from_dict(notebook)
    for cell, prediction in _compared(filled, module):
        cell.source = re.sub(r"^guess = None", f"guess = {prediction.answer!r}", cell.source)
    return filled


def reading_faults(executed: NotebookNode, module: ModuleType) -> list[str]:
    """List the cells that don't accept the right guess, because their result differs from the prediction's answer.

    If the right answer varies between runs, a cell may also judge the guess wrong.
    """
    faults = []
    for cell, prediction in _compared(executed, module):
        outcomes = printed_outcomes("".join(text for _, text in output_texts(cell)))
        if len(outcomes) != 1:
            faults.append(f"{cell.id}: prints {len(outcomes)} verdicts on the guess, not one")
        allowed = {"right", "wrong"} if prediction.varies else {"right"}
        faults += [f"{cell.id}: judges a right guess as {outcome}" for outcome in outcomes if outcome not in allowed]
    return faults


def without_verdicts(executed: NotebookNode) -> NotebookNode:
    """Return the notebook without the lines that evaluate guesses, so that it can be compared with the page."""
    plain = nbformat.from_dict(executed)
    for cell in plain.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs = notebooks.merge_streams(cell.outputs)
        for output in cell.outputs if cell.source.startswith("guess = ") else []:
            if output.output_type == "stream":
                output.text = "".join(line for line in output.text.splitlines(True) if not printed_outcomes(line))
    return plain


def _compared(notebook: NotebookNode, module: ModuleType) -> list[tuple[NotebookNode, framework.Prediction]]:
    """Return the cells that compare a guess, each with its prediction."""
    call = re.compile(rf"^{module.__name__.split('.')[-1]}\.(\w+)\.compare\(guess, ", re.M)
    matches = [(cell, call.search(cell.source)) for cell in notebook.cells if cell.cell_type == "code"]
    return [(cell, predictions_of(module)[name[1]]) for cell, name in matches if name]


def exercise_faults(notebook: NotebookNode, module: ModuleType) -> list[str]:
    """Return the differences between a notebook's stubs and checks and the exercises in its module."""
    faults, stubs, checked = [], {}, set()
    alias = module.__name__.split(".")[-1]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = re.search(rf"^{alias}\.(\w+)\.check\(\1\)$", cell.source, re.M)
        if name and f"# {alias}.{name[1]}.hint()\n# {alias}.{name[1]}.solution()" not in cell.source:
            faults.append(f"{name[1]}: the commented-out hint and solution are not below the check")
        if name:
            checked.add(name[1])
        for node in ast.parse(cell.source).body if cell.id.endswith("-stub") else []:
            if isinstance(node, ast.FunctionDef):
                stubs[node.name] = (node, cell.source)
    exercises = exercises_of(module)
    if not set(stubs) == checked == set(exercises):
        faults.append(
            f"the notebook has stubs {sorted(stubs)} and checks {sorted(checked)}, and its module {sorted(exercises)}"
        )
    for name, exercise in exercises.items():
        if name not in stubs:
            continue
        node, source = stubs[name]
        namespace: dict[str, Any] = {}
        exec(source, namespace)
        stub = namespace[name]
        if exercise.verdict(stub).outcome != "not attempted":
            faults.append(f"{name}: its stub is solved, or isn't empty")
        if exercise.verdict(exercise.function).outcome != "right":
            faults.append(f"{name}: its solution does not pass its check")
        if inspect.signature(stub) != inspect.signature(exercise.function):
            faults.append(f"{name}: stub and solution have different signatures")
        if ast.get_docstring(node) != inspect.getdoc(exercise.function) or not ast.get_docstring(node):
            faults.append(f"{name}: stub and solution have no docstrings, or different ones")
        if not exercise.hint_text.strip():
            faults.append(f"{name}: its hint is empty")
    return faults
