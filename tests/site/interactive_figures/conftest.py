"""Serve each kind of interactive figure on a page of its own, and operate its controls."""

from __future__ import annotations

import html
import json
import re
import shutil

import pytest

from tests.site.conftest import serve
from tools.lessons.notebooks import ROOT
from tools.site import interactive_figures

STATIC = ROOT / "site" / "_static"
KINDS = sorted({kind for places in interactive_figures.FIGURES.values() for _, kind, _ in places})
BARE = """<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{kind}</title><link rel="stylesheet" href="course.css">
<style>html {{ --pst-color-text-base: #222; --pst-color-text-muted: #48566b; --pst-color-background: #fff }}
html {{ font-family: sans-serif }}</style><link rel="icon" href="data:">
<script src="interactive_figures.js"></script><script src="interactive_figures/{kind}.js"></script></head>
<body><main><h1 style="font-size: 1rem">{kind}</h1>
<div class="interactive-figure" data-kind="{kind}" data-questions="{questions}">
<script type="application/json">{numbers}</script></div>
</main></body></html>"""


def cell_of(number, name):
    return interactive_figures.cells_by_id(number)[name]


def lesson_of(kind):
    """Return the first lesson with this kind of figure."""
    return next(
        number for number, places in interactive_figures.FIGURES.items() if kind in {name for _, name, _ in places}
    )


def numbers_of(kind):
    """Return the data that the first lesson with this kind of figure passes to it."""
    number = lesson_of(kind)
    read = next(read for _, name, read in interactive_figures.FIGURES[number] if name == kind)
    return read(interactive_figures.cells_by_id(number)) if read else None


def page_of(kind, numbers):
    """Return an HTML page with a single figure of this kind, which shows the data `numbers`."""
    questions = html.escape(json.dumps(interactive_figures.question_numbers(lesson_of(kind))))
    return BARE.format(kind=kind, questions=questions, numbers=json.dumps(numbers))


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """Write a page for each kind of figure, serve the pages, and yield the server's address."""
    folder = tmp_path_factory.mktemp("interactive_figures")
    shutil.copytree(STATIC / "interactive_figures", folder / "interactive_figures")
    for name in ("interactive_figures.js", "course.css"):
        shutil.copy(STATIC / name, folder)
    for kind in KINDS:
        (folder / f"{kind}.html").write_text(page_of(kind, numbers_of(kind)))
    yield from serve(folder)


class FigureReader:
    """Simulate a reader, who finds a figure's controls by their labels, sets them, and reads the figure's text."""

    def __init__(self, page):
        self.page, self.place = page, page.locator(".interactive-figure")

    def set(self, **values):
        """Set controls to numbers or choices, and return the figure's text.

        `m=8` sets the control whose label begins with m to 8.
        """
        return self.by_label({name.replace("_", " "): value for name, value in values.items()})

    def by_label(self, values):
        """Set the controls whose labels begin with the keys of `values`, and return the figure's text."""
        for label, value in values.items():
            field = self.place.get_by_label(re.compile(f"^{re.escape(label)}"))
            if field.evaluate("field => field.tagName") == "SELECT":
                field.select_option(str(value))
            else:
                field.fill(str(value))
        return self.figure_text()

    def figure_text(self):
        """Return the figure's caption, the notice that asks the reader to guess first, or both."""
        return " ".join(self.place.locator(":is(.caption, .notice):visible").all_inner_texts())


@pytest.fixture
def open_figure(tab, bare):
    """Yield a function that opens a figure's page. After the test, fail if the browser reported errors there."""
    pages = []

    def open_kind(kind, **options):
        page = tab(**options)
        page.goto(f"{bare}{kind}.html")
        pages.append(page)
        return FigureReader(page)

    yield open_kind
    for page in pages:
        assert page.errors == []
