"""Test that the site's page of problems finds the same entries as the command, and works without JavaScript."""

from __future__ import annotations

import re
import runpy

import pytest
from find_old_jax.error_lookup import closest_problems
from find_old_jax.problem_index import find_by_message, problems, stems

from tests.site import page_checks
from tools.lessons import notebooks
from tools.site import problems_page as pages

PAGE = "problems.html"
LESSON = f"notebooks/{notebooks.lesson('05').stem}.html"
DATA = "JSON.parse(document.getElementById('problems-data').textContent)"
QUERIES = runpy.run_path(str(notebooks.ROOT / "packages" / "find-old-jax" / "tests" / "queries.py"))["QUERIES"]


@pytest.fixture
def page(tab, address):
    page = page_checks.open_page(tab(), address + PAGE)
    yield page
    assert page.errors == []


def ask(page, text):
    """Type a text into the page's field, and return the status and the titles of the entries shown."""
    page.get_by_label("An error message").fill(text)
    page.wait_for_function("document.querySelector('#problem-search [role=status]').textContent !== ''")
    status = page.locator("#problem-search [role=status]")
    return status.inner_text(), page.locator("#problems-found h3").all_inner_texts()


def test_the_page_finds_what_the_command_finds(page):
    texts = [query for query, _ in QUERIES]
    texts += [f"Error: {pattern}".replace(" ... ", " of\n this ") for one in problems() for pattern in one.messages]
    answers = page.evaluate(
        f"texts => {{ const {{ stems, byMessage, search }} = window.problems({DATA});"
        " const ids = (some) => some.map((one) => one.id);"
        " return texts.map((text) => [stems(text), ids(byMessage(text)), ids(search(text))]); }",
        texts,
    )
    for text, (words, by_message, by_words) in zip(texts, answers, strict=True):
        assert words == stems(text), text
        assert by_message == [problem.id for problem in find_by_message(text)], text
        assert by_words == [problem.id for problem in closest_problems(text)], text


def test_the_search_of_the_site_finds_what_the_command_finds(tab, address):
    page = page_checks.open_page(tab(), address + LESSON)
    asked = [query for query, _ in QUERIES]
    answers = page.evaluate(
        "async (asked) => { const ids = []; for (const one of asked)"
        " ids.push((await findProblems(one)).map((problem) => problem.id)); return ids; }",
        asked,
    )
    for query, ids in zip(asked, answers, strict=True):
        assert ids == [problem.id for problem in closest_problems(query)], query
    page.keyboard.press("Control+k")
    page.keyboard.type("vmap gathers")
    problem = page.locator("#pst-search-dialog .search-problems a").first
    problem.wait_for()
    assert problem.inner_text() == "vmap over shard_map gathers the batch"
    problem.click()
    page.wait_for_url(re.compile("problems.html#problem-vmap-over-shard-map"))
    assert page.errors == []


def test_entries_are_filtered_while_typing(page):
    topics = page.locator("section > section > h2")
    assert topics.first.is_visible() and page.locator("#problems-found h3").count() == 0
    status, titles = ask(page, "slower on 8 devices")
    assert status == "The 5 closest entries, the best first:" and titles[0].startswith("Eight devices are slower")
    assert not topics.first.is_visible()
    assert page.locator("#problems-found pre").count() == 5
    page.evaluate("location.hash = 'problem-no-mesh-set'")  # as a link in the table of contents does
    topics.first.wait_for()
    assert page.get_by_label("An error message").input_value() == ""
    assert page.locator("#problems-found h3").count() == 0


def test_every_entry_has_a_place(page):
    assert {f"problem-{problem.id}" for problem in pages.all_problems()} <= set(page_checks.element_ids(page))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (page_checks.PHONE, "dark")])
def test_the_page_has_no_barrier(tab, address, width, scheme):
    page = page_checks.open_page(tab(width, scheme), address + PAGE)
    ask(page, "out of memory")
    assert [
        *page.errors,
        *page_checks.accessibility_faults(page),
        *page_checks.overflowing_elements(page),
        *page_checks.small_text(page),
    ] == []


def test_without_a_script_it_is_a_list(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGE)
    assert not page.locator("#problem-search").is_visible()
    assert page.get_by_role("heading", name="No mesh is set", exact=True).is_visible()
    context.close()
