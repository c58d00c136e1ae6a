"""The course as a PDF: one long page, printed by a browser, with bookmarks and the page numbers of its contents."""

from __future__ import annotations

import logging
from pathlib import Path

from tools.site import browser

# The table of contents, whose numbers only the printed pages can tell.
CONTENTS = "nav.contents a"


def write(page: Path, pdf: Path) -> None:
    """Print it twice: the first time tells on which page each chapter begins."""
    logging.getLogger("pikepdf").setLevel(logging.WARNING)  # it announces itself
    import pikepdf

    with browser.launched() as program:
        tab = program.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_load_state("load")
        tab.pdf(path=pdf, prefer_css_page_size=True, outline=True, tagged=True)
        pages = chapters(pdf)
        tab.evaluate(
            """([links, pages]) => document.querySelectorAll(links).forEach(
                link => link.parentElement.dataset.page = pages[link.textContent.trim()])""",
            [CONTENTS, pages],
        )
        tab.pdf(path=pdf, prefer_css_page_size=True, outline=True, tagged=True)
    with pikepdf.open(pdf, allow_overwriting_input=True) as printed:  # a third of the size
        printed.save(pdf, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def chapters(pdf: Path) -> dict[str, int]:
    """The page on which each bookmark of the first two levels leads, counted from 1."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    found: dict[str, int] = {}

    def walk(bookmarks: list, depth: int) -> None:
        for bookmark in bookmarks:
            if isinstance(bookmark, list):
                walk(bookmark, depth + 1)
            elif depth < 2:
                found.setdefault(bookmark.title.strip(), reader.get_destination_page_number(bookmark) + 1)

    walk(reader.outline, 0)
    return found
