"""How many answers are seen beside their questions in a real JupyterLab, before anything was run: `make spoilers`.

The reader's copies are opened in a headless browser, 1440 by 900, and each question is brought to the top of the
window. Seen of its answer: an output, an open fold, or a text that stands in the lesson between the first output after
the question and the next question or heading (tools/work.py). Code and titles are not read.
"""

from __future__ import annotations

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

from tools import browser, notebooks, work
from tools.slides import blocks

LAB = notebooks.ROOT / "tools" / "lab" / "overrides.json"
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
  };
}"""


def plain(text: str) -> str:
    """Letters and digits alone: what Markdown makes of a text, and the text itself, are then the same."""
    return re.sub(r"\W+", "", re.sub(r"\]\([^)]*\)", "]", text))


def answers(path: Path) -> list[list[str]]:
    """For each question, the blocks of text between its first output and the next question or heading."""
    cells = notebooks.read(path).cells
    found = []
    for question in work.questions(cells):
        first = next((i for i, (number, part) in enumerate(question) if part is None and cells[number].outputs), None)
        told = question[first:] if first is not None else []
        found.append([plain(blocks(cells[number].source)[part]) for number, part in told if part is not None])
    return found


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
    for question, texts in zip(questions, told, strict=True):
        seen = page.evaluate(SEEN, question)
        open_texts = [text for text in seen["texts"] if plain(text) and any(plain(text) in each for each in texts)]
        yield [*["an output"] * seen["outputs"], *["an open fold"] * seen["folds"], *open_texts]


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
