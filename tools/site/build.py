"""Build the site and the PDF from the committed notebooks: `make site`. No notebook is executed.

This module writes the sources to site/_build: the lessons with their hints and solutions, and the front page with its
list of lessons. Sphinx turns the sources into pages, as site/conf.py specifies. A browser prints the PDF from a single
long page with the same content.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import nbformat

from tools.lessons import course_routes, notebooks, readme
from tools.lessons.hints_and_solutions import answers_of, code_block, escape_markdown
from tools.lessons.notebooks import QUESTION, ROOT
from tools.site import dark_figures, interactive_figures, problems_page, trim_icons
from utils.show import FIGURE_DATA

SITE = ROOT / "site"
BUILD = SITE / "_build"
PAGES = {  # pages other than lessons, and their sources, in the order of the navigation and the PDF
    "index.md": "site/index.md",
    "problems.md": "site/problems.md",
    "old_code.md": "site/old_code.md",
    "glossary.md": "site/glossary.md",
    "teach/workshop.md": "teach/workshop.md",
}
NOT_PRINTED = {"problems.md", "old_code.md"}  # these pages need input fields, which a PDF lacks
PDF = "one-program-many-devices.pdf"
# The end of an exercise's heading, which must not be split between two lines.
DIFFICULTY = re.compile(r"(?<=\()[●○]+ · \d+ min(?=\)$)", re.M)
# The instruction to type a guess into a cell. It's removed, because pages have input fields and a PDF has no cells.
GUESS_INSTRUCTION = re.compile(
    r"\n*^(?:Replace|Commit to an? \w+ before you run the cell: replace) `None` with .*$", re.M
)
SECTION = re.compile(r'<section id=("[^"]*")[^>]*>\s*(?:<span id="[^"]*"></span>\s*)*<h(\d)>')  # up to its heading
NOT_SEARCHED = (".headerlink", ".launch", ".interactive-figure", "details.hide", "script", "noscript", ".route")
COLLAPSED = ("setup", "opening", "script")  # collapsed on a page if the notebook hides their code
CHECK_CALL = re.compile(r"^ex(\w+)\.(\w+)\.check\(", re.M)  # the call that checks an exercise


def launch_links(path: str) -> list[tuple[str, str]]:
    """Return the names and URLs of the badges that open the notebook at `path`."""
    return re.findall(r"\[!\[(Open in \w+)\]\([^)]*\)\]\(([^)]*)\)", notebooks.badges(path))


def launch_line(path: str) -> str:
    """Return the Markdown of a line with links that open the notebook at `path` on each platform."""
    links = [f"[{name.removeprefix('Open in ')}]({address}){{.launch}}" for name, address in launch_links(path)]
    return f"Open in {' · '.join(links)}"


def collapsible(summary: str, body: str) -> str:
    """Return the Markdown of a collapsible section, which readers can also open with the keyboard."""
    return f'<details class="answer"><summary>{html.escape(summary)}</summary>\n\n{body}\n\n</details>'


def page_notebook(path: Path, printed: bool = False) -> nbformat.NotebookNode:
    """Return a lesson's notebook as the site shows it, with alt texts, interactive figures and collapsed answers.

    In the printed version, nothing is collapsed: the setup cell shows only its output, and the answers are at the end
    of the document.
    """
    notebook, answers = notebooks.read(path), answers_of(notebooks.number(path))
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            where = f"notebooks/{path.name}"
            line = launch_line(where) + "".join(
                f"\n\n{place}" for place in course_routes.route_positions(notebooks.number(path))
            )
            cell.source = cell.source.replace(notebooks.badges(where), "" if printed else line)
            # Jupyter's anchors keep the capitals of a heading, while Sphinx's are lowercase.
            cell.source = re.sub(r"\]\(#[\w-]+\)", lambda link: link[0].lower(), cell.source)
            cell.source = DIFFICULTY.sub(lambda level: level[0].replace(" ", "\N{NO-BREAK SPACE}"), cell.source)
            if not printed:
                cell.source = interactive_figures.with_figures(notebooks.number(path), cell)
            cell.source = GUESS_INSTRUCTION.sub("", cell.source)
            cell.source = cell.source.replace(QUESTION, f"{{.predict}}\n{QUESTION}")
            continue
        if cell.id == "setup" and printed:
            cell.metadata["tags"] = ["remove-input"]
        elif cell.id in COLLAPSED and notebooks.HIDDEN_CODE.items() <= cell.metadata.items() and not printed:
            cell.metadata["tags"] = ["hide-input", cell.id]
            cell.metadata["mystnb"] = _code_prompts(cell)
        for output in cell.outputs:
            output.get("data", {}).pop(FIGURE_DATA, None)  # Sphinx warns about MIME types that it doesn't know
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alt}
        check = CHECK_CALL.search(cell.source)
        if check:
            cell.outputs = []  # remove "not attempted yet", because an exercise can't be attempted on the page
        if check and not printed:
            answer, (_, colab) = answers[check[2]], launch_links(f"notebooks/{path.name}")[0]
            folds = (
                collapsible("Hint", escape_markdown(answer.hint)),
                collapsible("Solution", code_block(answer.solution)),
            )
            text = "\n\n".join([f"[Solve it in Colab]({colab}){{.launch}}", *folds])
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"{cell.id}-answer"))
        if not printed and (text := interactive_figures.with_figures(notebooks.number(path), cell)):
            cells.append(nbformat.v4.new_markdown_cell(text, id=f"{cell.id}-interactive"))
    notebook.cells = cells if printed else _with_picture_first(cells)
    return notebook


def _code_prompts(cell: nbformat.NotebookNode) -> dict[str, str]:
    """Return the labels of the toggle that shows or hides the code of the setup cell, opening picture or script.

    Move the setup cell's output from the cell into these labels.
    """
    if cell.id == "opening":
        return {"code_prompt_show": "Show this picture's code", "code_prompt_hide": "Hide this picture's code"}
    if cell.id == "script":
        return {"code_prompt_show": "Show the script", "code_prompt_hide": "Hide the script"}
    printed = "".join(output.get("text", "") for output in cell.outputs).strip()
    cell.outputs = []
    return {f"code_prompt_{act.lower()}": f"{act} the setup cell ({printed})" for act in ("Show", "Hide")}


def _with_picture_first(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Move the setup cell below the opening picture. (In the notebook, it has to run first.)"""
    names = [cell.id for cell in cells]
    if names[1:3] == ["setup", "opening"]:
        cells[1:3] = cells[2:0:-1]
    return cells


def solutions_chapter() -> str:
    """Return the PDF's last chapter, with all hints and solutions."""
    lines = ["# Hints and solutions"]
    for path in notebooks.lessons():
        notebook, answers = notebooks.read(path), answers_of(notebooks.number(path))
        lines += ["", f"## {lesson_title(path)}"]
        for cell in notebook.cells:
            titles = re.findall(r"^### (Exercise .*)$", cell.source, re.M) if cell.cell_type == "markdown" else []
            lines += [f"\n### {re.sub(r' *[(][^)]*[)]$', '', title)}" for title in titles]
            if cell.cell_type == "code" and (check := CHECK_CALL.search(cell.source)):
                answer = answers[check[2]]
                lines += [f"\n**Hint.** {escape_markdown(answer.hint)}\n", code_block(answer.solution)]
    return "\n".join(lines) + "\n"


def site_url() -> str:
    """Return the URL of the site on GitHub Pages."""
    owner, name = notebooks.repository()[0].split("/")
    return f"https://{owner}.github.io/{name}"


def table_of_contents() -> str:
    """Return the PDF's table of contents. tools/site/pdf.py adds the page numbers."""
    pages = {f"notebooks/{path.stem}": lesson_title(path) for path in notebooks.lessons()}
    pages |= {**other_page_titles(printed=True), "solutions": "Hints and solutions"}
    items = [f"<li><a href='#document-{name}'>{html.escape(text)}</a></li>" for name, text in pages.items()]
    return "\n".join(["<nav class='contents'>", "<ol>", *items, "</ol>", "</nav>"])


def other_page_titles(printed: bool = False) -> dict[str, str]:
    """Return the titles, by name, of all pages except the front page and the lessons."""
    excluded = {"index.md", *(NOT_PRINTED if printed else ())}
    texts = {
        name: (ROOT / source).read_text(encoding="utf-8") for name, source in PAGES.items() if name not in excluded
    }
    return {name.removesuffix(".md"): re.findall(r"^# (.+)$", text, re.M)[0] for name, text in texts.items()}


def lesson_title(path: Path) -> str:
    """Return a lesson's title, including its number."""
    return notebooks.read(path).cells[0].source.splitlines()[0].removeprefix("# ")


def front_page(text: str, printed: bool = False) -> str:
    """Replace the {{placeholders}} in site/index.md or site/print.md with content from the notebooks and the README."""
    rows = readme.rows()
    name, _ = notebooks.repository()
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    [where] = re.findall(r"^## What runs where\n(.*?)(?=^## )", page, re.M | re.S)
    parts = []
    for part, lessons in groupby(rows, lambda row: row.part):
        parts += [f"<h3>{html.escape(part)}</h3>", "<ol class='lessons'>", *map(_list_item, lessons), "</ol>"]
    marks = {
        "routes": course_routes.cards(),
        "lessons": "\n".join(parts),
        "figure": interactive_figures.figure("02", "mesh_sharding"),
        "colab": launch_links(rows[0].path)[0][1],
        "platforms": "".join(f"<option>{name.removeprefix('Open in ')}</option>" for name, _ in launch_links("")),
        "count": str(len(rows)),
        "hours": str(readme.hours(rows)),
        "first": _page_url(rows[0]),
        "where": with_repository_links(where.strip(), "README.md"),
        "pdf": PDF,
        "repository": f"https://github.com/{name}",
        "address": site_url(),
        "contents": table_of_contents(),
        "pages": "\n".join(other_page_titles(printed)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: marks[mark[1]], text)


def _page_url(row: readme.Row) -> str:
    return row.path.removesuffix(".ipynb") + ".html"


def _list_item(row: readme.Row) -> str:
    """Return a lesson's item in the front page's list. page_behavior.js points *Open* at the reader's platform."""
    addresses = {name.removeprefix("Open in "): address for name, address in launch_links(row.path)}
    title, (first, address) = html.escape(row.title), next(iter(addresses.items()))
    opening_sentence = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(row.opening_sentence))
    return (
        f"<li><span class='number'>{row.number}</span>"
        f"<a class='title' href='{_page_url(row)}'>{title}</a>"
        f"<span class='price'>{opening_sentence}</span>"
        f"<span class='minutes'>{row.minutes} min</span>"
        f"<a class='opens' href='{html.escape(address)}' aria-label='Open {row.number}, {title}, in {first}' "
        f"data-addresses='{html.escape(json.dumps(addresses))}'>Open</a></li>"
    )


def with_repository_links(text: str, source: str) -> str:
    """Make relative links lead to the repository if their targets have no page on the site."""
    name, revision = notebooks.repository()
    staged = {*PAGES.values(), *(f"notebooks/{path.name}" for path in notebooks.lessons())}

    def leading(link: re.Match) -> str:
        target, anchor = link[2].partition("#")[0], link[2].partition("#")[2]
        path = (ROOT / source).parent.joinpath(target).resolve()
        if not path.is_relative_to(ROOT) or not path.exists() or str(path.relative_to(ROOT)) in staged:
            return link[0]
        return f"{link[1]}(https://github.com/{name}/blob/{revision}/{path.relative_to(ROOT)}{anchor and '#'}{anchor})"

    return re.sub(r"((?<!!)\[[^\]]*\])\((?!\w+:|#)([^)\s]+)\)", leading, text)


def staged_files(printed: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each source file of the site or, if `printed`, of the PDF."""
    for staged, source in PAGES.items():
        if printed and staged in NOT_PRINTED:
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        if staged == "index.md":
            text = front_page((SITE / "print.md").read_text(encoding="utf-8") if printed else text, printed)
        elif staged == "problems.md":
            text = text.replace("{{problems}}", problems_page.entries())
        yield staged, with_repository_links(text, source)
    for path in notebooks.lessons():
        yield f"notebooks/{path.name}", nbformat.writes(page_notebook(path, printed))
    if printed:
        yield "solutions.md", solutions_chapter()


def stage(folder: Path, target: Path, printed: bool = False) -> None:
    """Write the changed source files to `folder`, and delete files that are no longer among the sources.

    If a file was deleted, delete `target` too, because Sphinx would keep the page that it built from the file.
    """
    files = {folder / name: text.encode() for name, text in staged_files(printed)}
    files[folder / "layouts.png"] = (ROOT / ".github" / "layouts.png").read_bytes()
    stale = {path for path in folder.rglob("*") if path.is_file()} - files.keys()
    changed = {path for path, data in files.items() if not path.exists() or path.read_bytes() != data}
    for path in stale:
        path.unlink()
        shutil.rmtree(target, ignore_errors=True)
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])


def run_sphinx(builder: str, source: Path, target: Path, *options: str) -> None:
    """Run Sphinx, with warnings as errors. If it fails, raise SystemExit after Sphinx has printed the reason."""
    from sphinx.cmd.build import main  # pyright: ignore[reportMissingImports]  (only in .venv-site)

    doctrees = BUILD / f"{target.name}-doctrees"
    arguments = ["-b", builder, "-c", str(SITE), "-d", str(doctrees), "-q", "-W", "--keep-going", "-j", "2", *options]
    if status := main([*arguments, str(source), str(target)]):
        raise SystemExit(status)


def write_search_index(pages: Path) -> None:
    """Write Pagefind's index of the articles, which site/_static/search.js searches.

    The front page is left out, because it only mentions what the articles explain. Pagefind links only to headings that
    have an id, but Sphinx puts the id on the section around a heading. The indexed files are therefore copies of the
    pages in which each id is on the heading itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        for page in pages.rglob("*.html"):
            if "_static" in page.parts or page.name in ("search.html", "404.html", "index.html"):
                continue
            copy = Path(folder) / page.relative_to(pages)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = SECTION.sub(r"<section><h\2 id=\1>", page.read_text(encoding="utf-8"))
            copy.write_text(text, encoding="utf-8")
        shutil.rmtree(pages / "pagefind", ignore_errors=True)
        options = ["--root-selector", "article.bd-article", "--exclude-selectors", ", ".join(NOT_SEARCHED)]
        options += ["--keep-index-url", "--silent", "--output-path", str(pages / "pagefind")]
        subprocess.run([sys.executable, "-m", "pagefind", "--site", folder, *options], check=True)


def build() -> None:
    """Build the pages, their search index and the PDF, and print how long the build took."""
    start = time.monotonic()
    pages = BUILD / "html"
    stage(BUILD / "source", pages)
    run_sphinx("html", BUILD / "source", pages)
    trim_icons.shrink_icons(pages)
    dark_figures.write_dark_figures(pages)
    write_search_index(pages)
    print(f"Pages after {time.monotonic() - start:.0f} s.", flush=True)

    from tools.site import pdf

    stage(BUILD / "print-source", BUILD / "print", printed=True)
    run_sphinx("singlehtml", BUILD / "print-source", BUILD / "print", "-t", "printed")
    pdf.write_pdf(BUILD / "print" / "index.html", BUILD / PDF)
    shutil.copy(BUILD / PDF, pages)
    print(f"Open {pages.relative_to(ROOT)}/index.html in a browser. The build took {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    sys.exit(build())
