"""How many answers are seen beside their questions in a real JupyterLab, before anything was run: `make spoilers`.

The reader's copies are opened in a headless browser, 1440 by 900, and each question is brought to the top of the
window. Seen of its answer: an output, an open fold, a text that reads the outputs after it (reader/work.py), or the
words in which the code describes a picture of them. Other code and titles are not read.
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
from tools.lessons.notebooks import blocks
from tools.reader import work
from tools.site import browser

LONG = 60  # characters: a shorter text in code is a title or a label
LAB = notebooks.ROOT / "tools" / "reader" / "lab" / "overrides.json"
WHOLE = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}  # all cells are there at once
SEEN = """(question) => {
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


def plain(text: str) -> str:
    """Letters and digits alone: what Markdown makes of a text, and the text itself, are then the same."""
    return re.sub(r"\W+", "", re.sub(r"\]\([^)]*\)", "]", text))


def answers(path: Path) -> list[tuple[list[str], list[str]]]:
    """For each question, the texts that read its answer, and the lines of code that describe its pictures."""
    cells = notebooks.read(path).cells
    reads, found = work.readings(cells), []
    for question in work.questions(cells):
        texts = [blocks(cells[number].source)[part] for number, part in question if (number, part) in reads]
        lines = [line for number, part in question if part is None for line in described(cells[number].source)]
        found.append((list(map(plain, texts)), list(map(plain, lines))))
    return found


def described(code: str) -> list[str]:
    """The lines in which a cell describes its picture in words of its own; texts with the run's values tell nothing."""
    lines = code.split("\n")
    words = [
        text
        for node in ast.walk(ast.parse(code))
        for said in [*getattr(node, "keywords", ()), *([node] if _is_description(node) else [])]
        if not isinstance(said, ast.keyword) or said.arg == "told"
        for text in _constants(said)
        if len(text.value) >= LONG
    ]
    return [lines[number] for text in words for number in range(text.lineno - 1, text.end_lineno)]


def _is_description(node: ast.AST) -> bool:
    """A call of `picture`, or a name for what it will be told."""
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "id", "") in ("told", "alt")
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "picture"


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts below a node, but for those with values in them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _constants(child)


@contextmanager
def lab(folder: Path) -> Iterator[str]:
    """JupyterLab in this folder, from the readers' environment; its address."""
    settings = folder / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(json.dumps(json.loads(LAB.read_text()) | WHOLE))
    program = notebooks.ROOT / ".venv" / "bin" / "python"
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=", f"--LabApp.app_settings_dir={settings}"]
    log = folder / "log"
    with log.open("w") as said:
        started = subprocess.Popen(
            [program, "-m", "jupyterlab", *options],
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "COURSE_PROGRESS": "off"},
        )
        try:
            while not (where := re.search(r"(http://(?:localhost|127\.0\.0\.1):\d+)/lab", log.read_text())):
                if started.poll() is not None:
                    raise SystemExit(f"Error: JupyterLab did not start. {log.read_text()[-300:]}")
                time.sleep(0.5)
            yield where[1]
        finally:
            started.terminate()
            started.wait(30)


def look(page: Any, path: Path) -> Iterator[list[str]]:
    """For each question of the open lesson, what is seen of its answer."""
    page.wait_for_selector(".jp-Notebook blockquote")
    page.wait_for_function("document.querySelectorAll('.jp-MarkdownOutput:empty').length === 0")
    questions = [q for q in page.query_selector_all(".jp-Notebook blockquote") if "Predict." in q.text_content()]
    told = answers(path)
    if len(questions) != len(told):
        raise SystemExit(f"Error: {path.name} has {len(told)} questions, and its page {len(questions)}.")
    for question, (texts, lines) in zip(questions, told, strict=True):
        seen = page.evaluate(SEEN, question)
        open_texts = [text for text in seen["texts"] if plain(text) and any(plain(text) in each for each in texts)]
        described_there = [line for line in seen["code"] if plain(line) in lines]
        yield [*["an output"] * seen["outputs"], *["an open fold"] * seen["folds"], *open_texts, *described_there]


def main(numbers: list[str]) -> None:
    total, given = 0, 0
    with tempfile.TemporaryDirectory() as name, browser.launched() as program:
        folder = Path(name)
        paths = [notebooks.lesson(number) for number in numbers] or notebooks.lessons()
        for path in paths:
            (folder / path.name).write_text(notebooks.dumps(work.copy(notebooks.read(path))), encoding="utf-8")
        with lab(folder) as address:
            for path in paths:
                page = program.new_page(viewport={"width": 1440, "height": 900})
                page.goto(f"{address}/lab/tree/{path.name}?reset")
                for number, seen in enumerate(look(page, path), 1):
                    total, given = total + 1, given + bool(seen)
                    for each in seen:
                        print(f"{path.stem}, question {number}: {' '.join(each.split())[:100]}", flush=True)
                page.close()
    print(f"{given} of {total} questions have something of their answer in sight.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
