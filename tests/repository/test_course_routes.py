"""Test that README, the site and START.md show the same routes through the course, and that their sections exist."""

from __future__ import annotations

import re

import pytest

from tools.lessons import course_routes, notebooks, reading_time, readme
from tools.reader import copies
from tools.site import build as site

README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_has_the_routes():
    assert course_routes.with_route_tables(README) == README, "run make stamp"
    with pytest.raises(ValueError, match=r"README\.md has 0 places"):
        course_routes.with_route_tables(README.replace(course_routes.END, ""))


def test_minutes_are_those_of_the_lessons_and_sections():
    by_key = {route.key: route for route in course_routes.ROUTES}
    promised = {row.number: row.minutes for row in readme.rows()}
    assert course_routes.minutes(by_key["sharding"]) == promised["02"] + promised["03"]
    cells = notebooks.read(notebooks.lesson("10")).cells
    whole = reading_time.lesson_minutes(cells)
    titles = [cell.source.splitlines()[0][3:] for cell in cells if cell.source.startswith("## ")]
    sections = reading_time.section_minutes(cells, titles)
    assert sections <= whole < sections + 6  # the cells before the first section take less than 6 minutes
    with pytest.raises(ValueError, match=r"no section \['Nowhere'\]; there are"):
        reading_time.section_minutes(cells, ["Nowhere"])


@pytest.mark.parametrize("route", course_routes.ROUTES, ids=lambda route: route.key)
def test_each_lesson_of_a_route_finds_what_it_needs(route):
    """Test that a lesson's prerequisites come earlier on the route or are among the lessons that the route assumes."""
    known, used = set(route.assumes), set()
    for number in route.steps:
        needed = set(course_routes.prerequisites(number))
        assert needed <= known, f"{number} needs {sorted(needed - known)}"
        used |= needed
        known.add(number)
    assert set(route.assumes) <= used - set(route.steps), "assumes a lesson that it contains or doesn't need"
    assert all(f"[{number} " in course_routes.table() for number in route.assumes)


def test_needs_are_read_from_the_page():
    assert course_routes.prerequisites("00") == []
    assert course_routes.prerequisites("02") == ["00"]  # "lesson 00 (...) and 40 minutes"
    assert course_routes.prerequisites("06") == ["00", "03", "05", "05b"]  # "lesson 00, lesson 03, lessons 05 and 05b"
    assert course_routes.prerequisites("19") == ["10", "11", "08"]
    numbers = [row.number for row in readme.rows()]
    for number in numbers:
        assert all(numbers.index(other) < numbers.index(number) for other in course_routes.prerequisites(number)), (
            number
        )


def test_a_route_says_which_lessons_it_assumes():
    [row] = [line for line in course_routes.table().splitlines() if "**Several machines**" in line]
    plain = re.sub(r"\]\([^)]*\)", "]", row)
    steps = "[16 Many processes]<br>[17 When a process dies]"
    names = "[03 Automatic parallelism with jit], [06 Data-parallel training] and [10 Shard the weights]"
    lessons = f"{steps} (if you know {names})<br>and [a script to copy]"
    assert plain.startswith(f"| **Several machines** | {lessons} |")
    [card] = [line for line in course_routes.cards().splitlines() if "Several machines" in line]
    title = "<span class='number'>03</span> <span class='name'>Automatic parallelism with jit</span>"
    assert f"(if you know <a href='notebooks/03_auto_parallel_jit.html'>{title}</a>, " in card
    assert "<span class='number'>17</span> <span class='name'>When a process dies</span></a>" in card
    [text] = [position for position in course_routes.route_positions("17") if "data-route='machines'" in position]
    assert f"Several machines (if you know {title}, " in text and "): lesson 2 of 2." in text


def test_a_lesson_shows_its_route_positions():
    positions = list(course_routes.route_positions("03"))
    assert ["data-route='sharding'" in positions[0], "data-route='fsdp'" in positions[1]] == [True, True]
    assert "lesson 2 of 2." in positions[0] and "Next" not in positions[0]
    assert (
        "lesson 2 of 5. Read <em>" in positions[1]
        and "05_shard_map.html?route=fsdp'><span class='number'>05</span> " in positions[1]
    )
    page = site.page_notebook(notebooks.lesson("03")).cells[0].source
    assert all(place in page for place in positions)
    assert "data-route" not in site.page_notebook(notebooks.lesson("03"), printed=True).cells[0].source


def test_the_copies_lie_beside_their_start_page():
    links = re.findall(r"\]\(([^\s)]+)", course_routes.table(copies=True))
    assert links and all((notebooks.ROOT / "notebooks" / link).is_file() for link in links)
    assert course_routes.table(copies=True) in copies.start_page()
