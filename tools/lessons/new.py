"""Create a draft lesson: `make lesson NUMBER=10 NAME=fully_sharded TITLE="Shard the weights"`.

Write the notebook, its exercises, their alternative solutions and its script from tools/lessons/template. Add a line to
the changelog, point the previous lesson's **Next:** link to the new one, run `make stamp`, and execute the notebook.
The result is a draft that passes every test and contains examples for its author to replace.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import NUMBER
from tools.lessons import execute, notebooks, readme, update_generated

TEMPLATE = Path(__file__).with_name("template")
USAGE = 'make lesson NUMBER=10 NAME=fully_sharded TITLE="Shard the weights"'


def create_lesson(number: str, name: str, title: str, root: Path = notebooks.ROOT) -> Path:
    """Write all of a new lesson's files without executing its notebook, and return the notebook's path.

    Raises ValueError, with the command to type, if an argument is missing or invalid, or if the number is taken.
    """
    existing = {notebooks.number(path): path for path in notebooks.lessons(root)}
    for is_invalid, problem in (
        (not (number and name and title), "NUMBER, NAME and TITLE are required"),
        (
            not re.fullmatch(NUMBER, number),
            f"NUMBER must be two digits, plus a letter for a later part, not {number!r}",
        ),
        (number in existing, f"{number} is already used by {existing.get(number, root).name}"),
        (
            len(number) > 2 and number[:2] not in existing,
            f"{number} is a later part of {number[:2]}, which does not exist",
        ),
        (not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name), f"NAME must be in snake_case, not {name!r}"),
        (re.search(r"[|\[\]\n]", title), f"TITLE must not contain | or [ ], which break tables and links: {title!r}"),
    ):
        if is_invalid:
            raise ValueError(f"{problem}: {USAGE}")
    path = root / "notebooks" / f"{number}_{name}.ipynb"
    before = max((other for other in existing if other < number), default=None)
    after = min((other for other in existing if other > number), default=min(existing))
    earlier_parts = [notebooks.read(existing[part]) for part in existing if number[:2] <= part < number]
    exercises = sum(
        len(re.findall(r"^### Exercise ", cell.source, re.M)) for part in earlier_parts for cell in part.cells
    )
    replacements = {
        "NN": number,
        "NAME": name,
        "TITLE": title,
        "DRAFT": readme.DRAFT,
        "BEFORE": link_to(existing[before]) if before else "Python and NumPy",
        "AFTER": link_to(existing[after]),
        "FIRST": f"{int(number[:2])}.{exercises + 1}",
    }

    def fill_template(template: str) -> str:
        text = (TEMPLATE / template).read_text(encoding="utf-8")
        return re.sub(
            r"(?<![A-Z])(?:" + "|".join(replacements) + r")(?![A-Z])", lambda word: replacements[word[0]], text
        )

    notebooks.write(new_notebook(cells=list(template_cells(fill_template("notebook.md")))), path)
    for template, target in (
        ("exercises.py", f"exercises/ex{number}.py"),
        ("alternative_solutions.py", f"tests/exercises/alternative_solutions/ex{number}.py"),
        ("script.py", f"examples/{number}_{name}.py"),
    ):
        (root / target).write_text(fill_template(template), encoding="utf-8")
    if before:
        notebook = notebooks.read(existing[before])
        last = notebook.cells[-1]
        last.source = re.sub(
            r"\*\*Next:\*\*.*?(?=\n\n|\Z)", lambda _: f"**Next:** {link_to(path)}", last.source, flags=re.S
        )
        notebooks.write(notebook, existing[before])
    changelog = root / "CHANGELOG.md"
    text, line = changelog.read_text(encoding="utf-8"), f"- Lesson {number}, {title}.\n"
    head, added, rest = text.partition("### Added\n\n")
    if not added or head.count("\n## [") > 1:  # nothing has been added since the last release
        head, added, rest = text.partition("## [Unreleased]\n")
        added += "\n### Added\n\n"
    changelog.write_text(f"{head}{added}{line}{rest}", encoding="utf-8")
    update_generated.stamp(root, *notebooks.repository())
    return path


def template_cells(text: str) -> Iterator[NotebookNode]:
    """Yield the cells of a template, each of which begins with a line `<!-- id text|code {metadata} -->`."""
    _, *parts = re.split(r"^<!-- ([a-z-]+) (text|code) ?(\{.*\})? -->\n", text, flags=re.M)
    for name, kind, metadata, source in zip(*[iter(parts)] * 4, strict=True):
        make = new_markdown_cell if kind == "text" else new_code_cell
        yield make(source.strip("\n"), id=name, metadata=json.loads(metadata or "{}"))


def link_to(path: Path) -> str:
    """Return a Markdown link to a lesson in the same folder, with the lesson's title as its text."""
    title = notebooks.read(path).cells[0].source.splitlines()[0].removeprefix("# ")
    return f"[{title}]({path.name})"


def main(number: str = "", name: str = "", title: str = "") -> None:
    try:
        path = create_lesson(number, name, title.strip())
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    execute.main([number])
    print(f"Open notebooks/{path.name}, and follow the steps in .github/CONTRIBUTING.md, Add a lesson.")


if __name__ == "__main__":
    main(*sys.argv[1:])
