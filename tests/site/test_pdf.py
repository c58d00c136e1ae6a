"""Test that the PDF opens, has bookmarks and page numbers for all lessons, and cuts off no text at the right."""

from __future__ import annotations

import re
import unicodedata

import pytest
from pypdf import PdfReader

from tests.site import page_checks
from tests.site.conftest import HTML
from tools.lessons import notebooks
from tools.lessons.hints_and_solutions import answers_of
from tools.site import build as site
from tools.site import pdf

TITLES = [*map(site.lesson_title, notebooks.lessons()), "Glossary", "Hints and solutions"]


@pytest.fixture(scope="module")
def reader():
    return PdfReader(HTML / site.PDF)


def squeezed(text):
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", text))  # NFKC splits ligatures, such as fi, into letters


def test_all_chapters_are_there_where_the_contents_say(reader):
    chapters = pdf.chapter_pages(HTML / site.PDF)
    assert [title for title in chapters if title in TITLES] == TITLES
    contents = squeezed(reader.pages[1].extract_text())
    for title in TITLES:
        assert squeezed(title) in squeezed(reader.pages[chapters[title] - 1].extract_text())
        assert f"{squeezed(title)}{chapters[title]}" in contents


def test_answers_and_glossary_are_printed(reader):
    chapters = pdf.chapter_pages(HTML / site.PDF)
    first = min(chapters[title] for title in TITLES[-2:])
    pages = [squeezed(page.extract_text()) for page in reader.pages[first - 1 :]]
    text = "".join(pages)
    for path in notebooks.lessons():
        for answer in answers_of(notebooks.number(path)).values():
            assert squeezed(answer.solution.splitlines()[0]) in text
    if any("网" in page for page in pages):  # only if a Chinese font was installed when the PDF was made
        assert "网格" in text and "網格" in text


def test_it_has_a_title_and_page_numbers(reader):
    assert reader.metadata.title == "One Program, Many Devices"
    words = reader.pages[9].extract_text().split()
    assert "10" in (words[0], words[-1])  # the margin is extracted before or after the text


def test_nothing_is_cut_off(tab):
    page = tab(width=658)  # the width of A4 paper without its margins, in px
    page.emulate_media(media="print")
    page.goto((site.BUILD / "print" / "index.html").as_uri())
    assert page_checks.clipped_elements(page) == []
