"""Count the questions whose answers are visible in JupyterLab before any cell is run: `make spoilers`.

The reader's copies are opened in a headless browser of 1440 by 900 px, and each question is scrolled to the top of the
window. An output, an expanded collapsible section, a text with the tag `answer`, and a picture's alt text in the code
count as visible answers. Other code and headings aren't checked.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.lessons import notebooks
from tools.lessons.notebooks import QUESTION, split_blocks
from tools.reader import copies
from tools.site import browser

SHORTEST_DESCRIPTION = 60  # characters; shorter strings in code are titles or labels
LAB = notebooks.ROOT / "tools" / "reader" / "lab" / "overrides.json"
# Make JupyterLab render all cells, not only the visible ones.
RENDER_ALL_CELLS = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
VISIBLE_CONTENT = """(question) => {
  question.scrollIntoView({ block: "start" });
  const pane = question.closest(".jp-WindowedPanel-outer, .jp-Notebook").getBoundingClientRect();
  const seen = (node) => {
    const box = node.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && box.bottom > pane.top && box.top < pane.bottom && node.checkVisibility();
  };
  const all = (what) => [...document.querySelectorAll(`.jp-Notebook ${what}`)].filter(seen);
  return {
    outputs: all(".jp-OutputArea-output").length,
    folds: all("details[open]").length,
    texts: all(".jp-RenderedMarkdown :is(p, li)").map((node) => node.textContent),
    code: all(".cm-line").map((node) => node.textContent),
  };
}"""


def letters_and_digits(text: str) -> str:
    """Return only the letters and digits of a text, which are the same in Markdown and in the rendered text."""
    return re.sub(r"\W+", "", re.sub(r"\]\([^)]*\)", "]", text))


def answers_by_question(path: Path) -> list[tuple[list[str], list[str]]]:
    """Return, for each question, the texts that reveal its answer, and the code lines that contain alt texts.

    Both are taken from the cells between the question and the next one.
    """
    cells = notebooks.read(path).cells
    collapsed, answers = copies.blocks_to_collapse(cells), []
    for number, cell in enumerate(cells):
        if cell.cell_type == "code" and answers:
            answers[-1][1].extend(map(letters_and_digits, description_lines(cell.source)))
        for part, block in enumerate(split_blocks(cell.source) if cell.cell_type == "markdown" else []):
            if block.startswith(QUESTION):
                answers.append(([], []))
            elif (number, part) in collapsed:
                answers[-1][0].append(letters_and_digits(block))
    return answers


def description_lines(code: str) -> list[str]:
    """Return a cell's lines that contain constant alt texts. Strings with computed values reveal nothing."""
    lines = code.split("\n")
    strings = [
        text
        for node in ast.walk(ast.parse(code))
        for source_node in [*getattr(node, "keywords", ()), *([node] if _is_description(node) else [])]
        if not isinstance(source_node, ast.keyword) or source_node.arg == "alt"
        for text in _constants(source_node)
        if len(str(text.value)) >= SHORTEST_DESCRIPTION
    ]
    return [lines[number] for text in strings for number in range(text.lineno - 1, text.end_lineno or text.lineno)]


def _is_description(node: ast.AST) -> bool:
    """Return whether a node calls `picture` or assigns an alt text."""
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "id", "") == "alt"
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "picture"


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the string constants below a node, except those in f-strings."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _constants(child)


@contextmanager
def run_lab(folder: Path) -> Iterator[str]:
    """Start JupyterLab from the readers' environment in this folder, and yield its URL."""
    settings = folder / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(json.dumps(json.loads(LAB.read_text()) | RENDER_ALL_CELLS))
    program = notebooks.ROOT / ".venv" / "bin" / "python"
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=", f"--LabApp.app_settings_dir={settings}"]
    log = folder / "log"
    with log.open("w") as log_file:
        process = subprocess.Popen(
            [program, "-m", "jupyterlab", *options],
            cwd=folder,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COURSE_PROGRESS": "off"},
        )
        try:
            while not (match := re.search(r"(http://(?:localhost|127\.0\.0\.1):\d+)/lab", log.read_text())):
                if process.poll() is not None:
                    raise SystemExit(f"Error: JupyterLab did not start. {log.read_text()[-300:]}")
                time.sleep(0.5)
            yield match[1]
        finally:
            process.terminate()
            process.wait(30)


def visible_answers(page: Any, path: Path) -> Iterator[list[str]]:
    """Yield, for each question in the open lesson, the visible content that reveals its answer."""
    page.wait_for_selector(".jp-Notebook blockquote")
    page.wait_for_function("document.querySelectorAll('.jp-MarkdownOutput:empty').length === 0")
    questions = [q for q in page.query_selector_all(".jp-Notebook blockquote") if "Predict." in q.text_content()]
    answers = answers_by_question(path)
    if len(questions) != len(answers):
        raise SystemExit(f"Error: {path.name} has {len(answers)} questions, but its page shows {len(questions)}.")
    for question, (texts, lines) in zip(questions, answers, strict=True):
        visible = page.evaluate(VISIBLE_CONTENT, question)
        open_texts = [
            text
            for text in visible["texts"]
            if letters_and_digits(text) and any(letters_and_digits(text) in answer for answer in texts)
        ]
        visible_descriptions = [line for line in visible["code"] if letters_and_digits(line) in lines]
        yield [
            *["an output"] * visible["outputs"],
            *["an open collapsible section"] * visible["folds"],
            *open_texts,
            *visible_descriptions,
        ]


def main(numbers: list[str]) -> None:
    total, revealing = 0, 0
    with tempfile.TemporaryDirectory() as name, browser.launch() as program:
        folder = Path(name)
        paths = [notebooks.lesson(number) for number in numbers] or notebooks.lessons()
        for path in paths:
            (folder / path.name).write_text(notebooks.to_text(copies.make_copy(notebooks.read(path))), encoding="utf-8")
        with run_lab(folder) as address:
            for path in paths:
                page = program.new_page(viewport={"width": 1440, "height": 900})
                page.goto(f"{address}/lab/tree/{path.name}?reset")
                for number, visible in enumerate(visible_answers(page, path), 1):
                    total, revealing = total + 1, revealing + bool(visible)
                    for answer in visible:
                        print(f"{path.stem}, question {number}: {' '.join(answer.split())[:100]}", flush=True)
                page.close()
    print(f"{revealing} of {total} questions show part of their answer.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
