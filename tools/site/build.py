"""Build the site and the PDF from the committed notebooks: `make site`. Nothing is executed: a page is what was tested.

The sources are staged in site/_build (the lessons with their hints and solutions, the front page with its table), and
Sphinx makes pages of them as site/conf.py says. The PDF is one long page of the same, printed by a browser.
"""

from __future__ import annotations

import ast
import base64
import html
import io
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import nbformat

from tools.lessons import notebooks, readme, routes
from tools.lessons.notebooks import ROOT
from tools.site import icons, moving

SITE = ROOT / "site"
BUILD = SITE / "_build"
PAGES = {  # beside the lessons: where a page is staged, and where it lies; in this order in the navigation and the PDF
    "index.md": "site/index.md",
    "old_code.md": "site/old_code.md",
    "glossary.md": "site/glossary.md",
    "teach/workshop.md": "teach/workshop.md",
}
NOT_PRINTED = {"old_code.md"}  # paper takes nothing that is pasted
PDF = "one-program-many-devices.pdf"
LEVEL = re.compile(r"(?<=\()[●○]+ · \d+ min(?=\)$)", re.M)  # stays together at the end of an exercise's heading
SMALL = (352, 192)  # of a lesson's picture in the list: twice what it is shown at
CHECK = re.compile(r"^ex(\w+)\.(\w+)\.check\(", re.M)  # the cell that checks an exercise


@dataclass(frozen=True)
class Answer:
    """What an exercise says on demand."""

    hint: str
    solution: str


def answers(number: str) -> dict[str, Answer]:
    """By name, the hint and the printed solution of a lesson's exercises, read off their source: no JAX is needed."""
    source = (ROOT / "exercises" / f"ex{number}.py").read_text(encoding="utf-8")
    found, lines = {}, source.splitlines()
    for function in ast.parse(source).body:
        for decorator in getattr(function, "decorator_list", []):
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "exercise":
                hint = ast.literal_eval(decorator.args[0])
                found[function.name] = Answer(hint, "\n".join(lines[function.lineno - 1 : function.end_lineno]))
    return found


def launchers(path: str) -> list[tuple[str, str]]:
    """Colab and the others, each with the address that opens the notebook at `path`: those of the badges."""
    return re.findall(r"\[!\[(Open in \w+)\]\([^)]*\)\]\(([^)]*)\)", notebooks.badges(path))


def escaped(text: str) -> str:
    """Plain text as Markdown that shows it as it is; `code` stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if i % 2 else re.sub(r"([\\*_\[\]<>$#|~`])", r"\\\1", part) for i, part in enumerate(parts))


def fold(summary: str, body: str) -> str:
    """Markdown of something to be opened on demand, by keyboard too."""
    return f'<details class="answer"><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>'


def code(source: str) -> str:
    return f"```python\n{source}\n```"


def lesson(path: Path, printed: bool = False) -> nbformat.NotebookNode:
    """The notebook as the site wants it: figures described, the setup and the first picture's code folded, answers too.

    On paper nothing folds: the setup cell leaves its output alone, and the answers stand at the end of the document.
    """
    notebook, given = notebooks.read(path), answers(notebooks.number(path))
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            where = f"notebooks/{path.name}"
            buttons = " ".join(f"[{name}]({address}){{.launch}}" for name, address in launchers(where))
            buttons += "".join(f"\n\n{place}" for place in routes.places(notebooks.number(path)))
            cell.source = cell.source.replace(notebooks.badges(where), "" if printed else buttons)
            # Jupyter's anchors keep a heading's capitals, Sphinx's do not.
            cell.source = re.sub(r"\]\(#[\w-]+\)", lambda link: link[0].lower(), cell.source)
            cell.source = LEVEL.sub(lambda level: level[0].replace(" ", "\N{NO-BREAK SPACE}"), cell.source)
            if not printed:
                cell.source = moving.shown(notebooks.number(path), cell)
            continue
        if cell.id == "setup" and printed:
            cell.metadata["tags"] = ["remove-input"]
        elif cell.id in ("setup", "opening") and not printed:
            cell.metadata["tags"] = ["hide-input"]
        for output in cell.outputs:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
        check = CHECK.search(cell.source)
        if check:
            cell.outputs = []  # that nothing was attempted yet; here nothing can be run
        if check and not printed:
            answer, (_, colab) = given[check[2]], launchers(f"notebooks/{path.name}")[0]
            folds = fold("Hint", escaped(answer.hint)), fold("Solution", code(answer.solution))
            text = "\n\n".join([f"[Solve it in Colab]({colab}){{.launch}}", *folds])
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"{cell.id}-answer"))
        if not printed and (text := moving.shown(notebooks.number(path), cell)):
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"{cell.id}-moving"))
    notebook.cells = cells
    return notebook


def solutions() -> str:
    """All hints and solutions, as the last chapter of the PDF."""
    lines = ["# Hints and solutions"]
    for path in notebooks.lessons():
        notebook, given = notebooks.read(path), answers(notebooks.number(path))
        lines += ["", f"## {title(path)}"]
        for cell in notebook.cells:
            titles = re.findall(r"^### (Exercise .*)$", cell.source, re.M) if cell.cell_type == "markdown" else []
            lines += [f"\n### {re.sub(r' *[(][^)]*[)]$', '', title)}" for title in titles]
            if cell.cell_type == "code" and (check := CHECK.search(cell.source)):
                answer = given[check[2]]
                lines += [f"\n**Hint.** {escaped(answer.hint)}\n", code(answer.solution)]
    return "\n".join(lines) + "\n"


def address() -> str:
    """Where GitHub Pages serves the site."""
    owner, name = notebooks.repository()[0].split("/")
    return f"https://{owner}.github.io/{name}"


def contents() -> str:
    """The PDF's table of contents; tools/site/pdf.py adds the page numbers."""
    pages = {f"notebooks/{path.stem}": title(path) for path in notebooks.lessons()}
    pages |= {**beside(printed=True), "solutions": "Hints and solutions"}
    items = [f"<li><a href='#document-{name}'>{html.escape(text)}</a></li>" for name, text in pages.items()]
    return "\n".join(["<nav class='contents'>", "<ol>", *items, "</ol>", "</nav>"])


def beside(printed: bool = False) -> dict[str, str]:
    """Names and titles of the pages beside the lessons."""
    left = {"index.md", *(NOT_PRINTED if printed else ())}
    texts = {name: (ROOT / source).read_text(encoding="utf-8") for name, source in PAGES.items() if name not in left}
    return {name.removesuffix(".md"): re.search(r"^# (.+)$", text, re.M)[1] for name, text in texts.items()}


def title(path: Path) -> str:
    """A lesson's title, with its number."""
    return notebooks.read(path).cells[0].source.splitlines()[0].removeprefix("# ")


def front_page(text: str, printed: bool = False) -> str:
    """site/index.md, or site/print.md, with what it takes from the notebooks and README at its {{marks}}."""
    found = readme.rows()
    name, _ = notebooks.repository()
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    where = re.search(r"^## What runs where\n(.*?)(?=^## )", page, re.M | re.S)
    parts = []
    for part, lessons in groupby(found, lambda row: row.part):
        parts += [f"<h3>{html.escape(part)}</h3>", "<ol class='lessons'>", *map(_item, lessons), "</ol>"]
    marks = {
        "routes": routes.cards(),
        "lessons": "\n".join(parts),
        "count": str(len(found)),
        "hours": str(readme.hours(found)),
        "first": _page(found[0]),
        "where": linked(where[1].strip(), "README.md"),
        "pdf": PDF,
        "repository": f"https://github.com/{name}",
        "address": address(),
        "contents": contents(),
        "pages": "\n".join(beside(printed)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: marks[mark[1]], text)


def _page(row: readme.Row) -> str:
    return row.path.removesuffix(".ipynb") + ".html"


def _small(row: readme.Row) -> str:
    """Where its picture lies, made small."""
    return f"_images/small/{row.number}.webp"


def _figure(row: readme.Row) -> str | None:
    """A lesson's first, as base64; a draft may have none."""
    outputs = (output for cell in notebooks.read(ROOT / row.path).cells for output in cell.get("outputs", ()))
    return next((output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})), None)


def small_pictures(pages: Path) -> None:
    """The first figure of each lesson, for the list on the front page."""
    from PIL import Image

    (pages / "_images" / "small").mkdir(parents=True, exist_ok=True)
    for row in readme.rows():
        if figure := _figure(row):
            picture = Image.open(io.BytesIO(base64.b64decode(figure))).convert("RGB")
            picture.thumbnail(SMALL)
            picture.save(pages / _small(row), quality=70)


def _item(row: readme.Row) -> str:
    opens = " ".join(
        f"<a href='{html.escape(address)}' aria-label='{name}: {html.escape(row.title)}'>{name.split()[-1]}</a>"
        for name, address in launchers(row.path)
    )
    small = f"<img src='{_small(row)}' alt='' loading='lazy' width='176' height='96'>"
    picture = small if _figure(row) else ""
    price = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(row.price))
    return (
        f"<li>{picture}<span class='number'>{row.number}</span>"
        f"<a class='title' href='{_page(row)}'>{html.escape(row.title)}</a>"
        f"<span class='price'>{price}</span>"
        f"<span class='minutes'>{row.minutes} min</span><span class='opens'>{opens}</span></li>"
    )


def linked(text: str, source: str) -> str:
    """A page's relative links to files that have no page of their own lead to the repository instead."""
    name, revision = notebooks.repository()
    staged = {*PAGES.values(), *(f"notebooks/{path.name}" for path in notebooks.lessons())}

    def leading(link: re.Match) -> str:
        target, anchor = link[2].partition("#")[0], link[2].partition("#")[2]
        path = (ROOT / source).parent.joinpath(target).resolve()
        if not path.is_relative_to(ROOT) or not path.exists() or str(path.relative_to(ROOT)) in staged:
            return link[0]
        return f"{link[1]}(https://github.com/{name}/blob/{revision}/{path.relative_to(ROOT)}{anchor and '#'}{anchor})"

    return re.sub(r"((?<!!)\[[^\]]*\])\((?!\w+:|#)([^)\s]+)\)", leading, text)


def sources(printed: bool) -> Iterator[tuple[str, str]]:
    """Name and text of everything that is staged."""
    for staged, source in PAGES.items():
        if printed and staged in NOT_PRINTED:
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        if staged == "index.md":
            text = front_page((SITE / "print.md").read_text(encoding="utf-8") if printed else text, printed)
        yield staged, linked(text, source)
    for path in notebooks.lessons():
        yield f"notebooks/{path.name}", nbformat.writes(lesson(path, printed))
    if printed:
        yield "solutions.md", solutions()


def stage(folder: Path, target: Path, printed: bool = False) -> None:
    """Write what has changed. Where a page is no more, the target begins anew: Sphinx would leave the old one."""
    wanted = {folder / name: text.encode() for name, text in sources(printed)}
    wanted[folder / "layouts.png"] = (ROOT / ".github" / "layouts.png").read_bytes()
    stale = {path for path in folder.rglob("*") if path.is_file()} - wanted.keys()
    changed = {path for path, data in wanted.items() if not path.exists() or path.read_bytes() != data}
    for path in stale:
        path.unlink()
        shutil.rmtree(target, ignore_errors=True)
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wanted[path])


def sphinx(builder: str, source: Path, target: Path, *options: str) -> None:
    """Run Sphinx; a warning is an error. Raises SystemExit, after Sphinx has said why."""
    from sphinx.cmd.build import main

    doctrees = BUILD / f"{target.name}-doctrees"
    arguments = ["-b", builder, "-c", str(SITE), "-d", str(doctrees), "-q", "-W", "--keep-going", "-j", "2", *options]
    if status := main([*arguments, str(source), str(target)]):
        raise SystemExit(status)


def build() -> None:
    start = time.monotonic()
    pages = BUILD / "html"
    stage(BUILD / "source", pages)
    sphinx("html", BUILD / "source", pages)
    icons.shrink(pages)
    small_pictures(pages)
    print(f"Pages after {time.monotonic() - start:.0f} s.", flush=True)

    from tools.site import pdf

    stage(BUILD / "print-source", BUILD / "print", printed=True)
    sphinx("singlehtml", BUILD / "print-source", BUILD / "print", "-t", "printed")
    pdf.write(BUILD / "print" / "index.html", BUILD / PDF)
    shutil.copy(BUILD / PDF, pages)
    print(f"The site is in {pages.relative_to(ROOT)}: open index.html. {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    sys.exit(build())
