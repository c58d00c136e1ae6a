"""The guide for workshops: its minutes add up, and what it names is in the lessons."""

from __future__ import annotations

import re

import pytest

from tests import checks
from tools import notebooks

GUIDE = (notebooks.ROOT / "teach" / "workshop.md").read_text(encoding="utf-8")
# A paragraph that ends in or holds "NNN minutes", then a table with the column Minutes first.
PLAN = re.compile(r"\b(\d+) minutes\b[^\n|]*\n\n\| Minutes \|.*\n\|[-|]+\|\n((?:\|.*\n)+)")


def lesson(number: str) -> dict:
    """By lesson: its headings, the minutes of its exercises, its own minutes, as the notebook says."""
    [path] = [path for path in notebooks.lessons() if notebooks.number(path) == number]
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "markdown"]
    text = "\n".join(cell.source for cell in cells)
    exercises = re.findall(r"^### Exercise (\S+) — .*· (\d+) min\)$", text, re.M)
    return {
        "sections": set(re.findall(r"^## (.+)$", text, re.M)),
        "headings": set(re.findall(r"^##+ (.+)$", text, re.M)),
        "exercises": {name: int(minutes) for name, minutes in exercises},
        "minutes": int(re.search(r"\*\*You need\*\*.*?(\d+) minutes", cells[1].source, re.S)[1]),
    }


LESSONS = {notebooks.number(path): lesson(notebooks.number(path)) for path in notebooks.lessons()}


def plan_faults(total: int, rows: str) -> list[str]:
    """What is wrong with a plan: sums, names, an exercise that gets less time than it asks for."""
    faults, spent, order = [], {}, []
    for row in rows.splitlines():
        minutes, number, what, _ = (part.strip() for part in row.strip("|").split("|"))
        spent[number] = spent.get(number, 0) + int(minutes)
        if number == "–":
            continue
        order.append(number)
        exercise = re.fullmatch(r"Exercise (\S+)", what)
        if number not in LESSONS:
            faults.append(f"there is no lesson {number}")
        elif exercise and int(minutes) < LESSONS[number]["exercises"].get(exercise[1], 10**6):
            faults.append(f"{what} is not in lesson {number}, or asks for more than {minutes} minutes")
        elif not exercise and what not in LESSONS[number]["sections"]:
            faults.append(f"lesson {number} has no section {what!r}")
    if sum(spent.values()) != total:
        faults.append(f"the minutes add up to {sum(spent.values())}, not to {total}")
    for number, minutes in spent.items():
        if number in LESSONS and minutes > LESSONS[number]["minutes"]:
            faults.append(f"lesson {number} gets {minutes} minutes, and takes {LESSONS[number]['minutes']}")
    if order != sorted(order):
        faults.append("the lessons are out of order")
    return faults


PLANS = [(int(total), rows) for total, rows in PLAN.findall(GUIDE)]


def test_every_plan_is_read():
    assert len(PLANS) == GUIDE.count("\n| Minutes |") >= 5


@pytest.mark.parametrize(("total", "rows"), PLANS, ids=[str(total) for total, _ in PLANS])
def test_minutes_add_up_and_names_exist(total, rows):
    checks.refuse(plan_faults(total, rows))


def test_two_days_are_two_equal_days():
    [(total, rows)] = [plan for plan in PLANS if plan[0] == 780]
    first, _ = rows.split("| 10 | – | The cards |")
    assert sum(map(int, re.findall(r"^\| (\d+) ", first, re.M))) == total / 2 == 390
    assert f"{total} minutes with lunches: {total // 2} on each day" in GUIDE


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| 20 | 02 | Compare four layouts | |", "the minutes add up to 20, not to 10"),
        ("| 10 | 77 | Compare four layouts | |", "there is no lesson 77"),
        ("| 10 | 02 | Compare five layouts | |", "lesson 02 has no section 'Compare five layouts'"),
        ("| 10 | 02 | Exercise 2.9 | |", "Exercise 2.9 is not in lesson 02, or asks for more than 10 minutes"),
        ("| 10 | 03 | Exercise 3.2 | |", "Exercise 3.2 is not in lesson 03, or asks for more than 10 minutes"),
        (
            "| 4 | 02 | Exercise 2.1 | |\n| 6 | – | Break | |",
            "Exercise 2.1 is not in lesson 02, or asks for more than 4",
        ),
        (
            "| 5 | 03 | Find what no message mentions | |\n| 5 | 02 | Compare four layouts | |",
            "the lessons are out of order",
        ),
    ],
)
def test_a_plan_that_is_wrong_is_found(row, fault):
    [found] = plan_faults(10, row)
    assert found.startswith(fault)


def test_a_lesson_gets_no_more_than_it_takes():
    assert plan_faults(90, "| 90 | 01 | Wait inside loops | |") == ["lesson 01 gets 90 minutes, and takes 75"]


def test_what_to_ask_the_room_stands_in_the_lessons():
    asked = re.findall(r"^\*\*(\d\db?) · (.+?)\.\*\* \*", GUIDE, re.M)
    assert len(asked) > 15
    for number, heading in asked:
        assert heading in LESSONS[number]["headings"], (number, heading)


def test_commands_that_the_guide_names_exist():
    makefile = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^|wheels )make ([a-z]+)\b", GUIDE, re.M))
    assert {"room", "setup", "slides", "stamp", "lab", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target
