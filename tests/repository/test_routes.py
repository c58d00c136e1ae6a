"""Routes through the course: README's, the site's and START.md's are one table, and its sections are there."""

from __future__ import annotations

import re

import pytest

from tools.lessons import clock, notebooks, readme, routes
from tools.reader import copies
from tools.site import build as site

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_has_the_routes():
    assert routes.listed(README) == README, "run make stamp"
    with pytest.raises(ValueError, match=r"README\.md has 0 places"):
        routes.listed(README.replace(routes.END, ""))


def test_minutes_are_those_of_the_lessons_and_sections():
    by_key = {route.key: route for route in routes.ROUTES}
    promised = {row.number: row.minutes for row in readme.rows()}
    assert routes.minutes(by_key["sharding"]) == promised["02"] + promised["03"]
    cells = notebooks.read(notebooks.lesson("10")).cells
    whole = clock.minutes(cells)
    titles = [cell.source.splitlines()[0][3:] for cell in cells if cell.source.startswith("## ")]
    assert clock.minutes_of(cells, titles) <= whole < clock.minutes_of(cells, titles) + 6  # the first screen
    with pytest.raises(ValueError, match=r"no section \['Nowhere'\]; there are"):
        clock.minutes_of(cells, ["Nowhere"])


def test_a_lesson_says_where_it_stands():
    said = list(routes.places("03"))
    assert ["data-route='sharding'" in said[0], "data-route='fsdp'" in said[1]] == [True, True]
    assert "lesson 2 of 2." in said[0] and "Next" not in said[0]
    assert "lesson 2 of 5. Read <em>" in said[1] and "05_shard_map.html?route=fsdp'>05</a>" in said[1]
    page = site.page_notebook(notebooks.lesson("03")).cells[0].source
    assert all(place in page for place in said)
    assert "data-route" not in site.page_notebook(notebooks.lesson("03"), printed=True).cells[0].source


def test_the_copies_lie_beside_their_start_page():
    links = re.findall(r"\]\(([^)]+)\)", routes.table(copies=True))
    assert links and all((notebooks.ROOT / "notebooks" / link).is_file() for link in links)
    assert routes.table(copies=True) in copies.start_page()
