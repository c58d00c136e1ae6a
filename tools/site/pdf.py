"""Print the course to a PDF in a browser. The PDF has bookmarks, and page numbers in its table of contents."""

from __future__ import annotations

import logging
from pathlib import Path

from tools.site import browser

# The CSS selector of the links in the table of contents, whose page numbers are known only after printing.
CONTENTS_LINKS = "nav.contents a"


def write_pdf(page: Path, pdf: Path) -> None:
    """Print the page to a PDF twice: the first PDF gives the page numbers for the table of contents of the second."""
    logging.getLogger("pikepdf").setLevel(logging.WARNING)  # pikepdf logs a line on import
    import pikepdf  # pyright: ignore[reportMissingImports]  (only in .venv-site)

    with browser.launch() as program:
        tab = program.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_load_state("load")
        tab.pdf(path=pdf, prefer_css_page_size=True, outline=True, tagged=True)
        pages = chapter_pages(pdf)
        tab.evaluate(
            """([links, pages]) => document.querySelectorAll(links).forEach(
                link => link.parentElement.dataset.page = pages[link.textContent.trim()])""",
            [CONTENTS_LINKS, pages],
        )
        tab.pdf(path=pdf, prefer_css_page_size=True, outline=True, tagged=True)
    with pikepdf.open(pdf, allow_overwriting_input=True) as printed:  # saving the PDF again makes it a third smaller
        printed.save(pdf, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def chapter_pages(pdf: Path) -> dict[str, int]:
    """Return the page number, counted from 1, of each bookmark in the first two levels, by title."""
    from pypdf import PdfReader  # pyright: ignore[reportMissingImports]  (only in .venv-site)

    reader = PdfReader(pdf)
    pages: dict[str, int] = {}

    def walk(bookmarks: list, depth: int) -> None:
        for bookmark in bookmarks:
            if isinstance(bookmark, list):
                walk(bookmark, depth + 1)
            elif depth < 2:
                pages.setdefault(bookmark.title.strip(), reader.get_destination_page_number(bookmark) + 1)

    walk(reader.outline, 0)
    return pages
