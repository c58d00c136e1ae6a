"""Test the workshop guide: its minutes add up, and everything that it names is in the lessons."""

from __future__ import annotations

import ast
import re

import pytest

from tests import lesson_lint
from tools import NUMBER
from tools.lessons import notebooks, readme

GUIDE = (notebooks.ROOT / "teach" / "workshop.md").read_text(encoding="utf-8")
# Matches a paragraph with "NNN minutes" and the table after it, whose first column is Minutes.
PLAN = re.compile(r"\b(\d+) minutes\b[^\n|]*\n\n\| Minutes \|.*\n\|[-|]+\|\n((?:\|.*\n)+)")


# In the column How, these words mean that all participants run the cells, and not only the teacher.
RUN_BY_ALL = re.compile(r"\b(run|alone|pairs)\b")


def lesson(number: str) -> dict:
    """Return a lesson's sections and headings, its minutes in total and by exercise, and its code by part."""
    every = notebooks.read(notebooks.lesson(number)).cells
    cells = [cell for cell in every if cell.cell_type == "markdown"]
    [plan] = [cell.source for cell in cells if cell.id == "plan"]
    text = "\n".join(cell.source for cell in cells)
    exercises = re.findall(r"^### Exercise (\S+) — .*· (\d+) min\)$", text, re.M)
    minutes = int(re.search(r"\*\*You need\*\*.*?(\d+) minutes", plan, re.S)[1])
    return {
        "sections": set(re.findall(r"^## (.+)$", text, re.M)),
        "headings": set(re.findall(r"^##+ (.+)$", text, re.M)),
        "exercises": {name: int(minutes) for name, minutes in exercises},
        "minutes": minutes + readme.row(notebooks.lesson(number)).exercise_minutes,
        "code": code_by_part(every),
    }


def code_by_part(cells: list) -> dict[str, list[ast.stmt]]:
    """Return the statements of a lesson's cells by section, or by "Exercise N.M" for a stub and its check.

    The statements before the first section have the key "".
    """
    section, exercise, code = "", "", {"": []}
    for cell in cells:
        if cell.cell_type == "markdown":
            section = (re.findall(r"^## (.+)$", cell.source, re.M) or [section])[-1]
            exercise = (re.findall(r"^### (Exercise \S+) ", cell.source, re.M) or [exercise])[-1]
        elif cell.id != "script":  # the script isn't part of the notebook's program
            part = exercise if cell.id.startswith("ex-") else section
            code.setdefault(part, []).extend(ast.parse(cell.source).body)
    return code


def names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Return the names that a statement of a cell defines, and those that it needs from earlier cells."""
    made, used, own = set(), set(), set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.alias):
            made.add((node.asname or node.name).split(".")[0])
    # `w = f(w)` needs an earlier `w`, while a loop, a function or a comprehension defines its own variables.
    scopes = ast.For | ast.With | ast.FunctionDef | ast.ClassDef | ast.comprehension
    inside = made if any(isinstance(node, scopes) for node in ast.walk(statement)) else set()
    needs = used - own - inside
    return ({statement.name} if isinstance(statement, ast.FunctionDef | ast.ClassDef) else made), needs


LESSONS = {notebooks.number(path): lesson(notebooks.number(path)) for path in notebooks.lessons()}


def plan_faults(total: int, rows: str) -> list[str]:
    """Return the faults of a plan: wrong sums, unknown names, and exercises with too little time."""
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
            faults.append(f"lesson {number} gets {minutes} minutes, but takes {LESSONS[number]['minutes']}")
    if order != sorted(order):
        faults.append("the lessons are out of order")
    return faults


def not_run(rows: str) -> list[str]:
    """Return the sections that participants skip, although a cell that all of them run needs names defined there."""
    faults, there = {}, {}
    for row in rows.splitlines():
        _, number, what, how = (part.strip() for part in row.strip("|").split("|"))
        if number == "–" or not RUN_BY_ALL.search(how) or "do not run" in how:
            continue
        code = LESSONS[number]["code"]
        have = there.setdefault(number, set().union(*(names(statement)[0] for statement in code[""])))
        before = list(code)[: list(code).index(what)]
        for statement in code[what]:
            made, needs = names(statement)
            for name in sorted(needs - have):
                makers = [part for part in before if any(name in names(one)[0] for one in code[part])]
                if makers:
                    faults[f"{what!r} of lesson {number} needs {makers[-1]!r}, which participants haven't run"] = name
            have |= made
    return [f"{fault}: {name}" for fault, name in faults.items()]


PLANS = [(int(total), rows) for total, rows in PLAN.findall(GUIDE)]


def test_every_plan_is_parsed():
    assert len(PLANS) == GUIDE.count("\n| Minutes |") >= 5


@pytest.mark.parametrize(("total", "rows"), PLANS, ids=[str(total) for total, _ in PLANS])
def test_minutes_add_up_and_names_exist(total, rows):
    lesson_lint.fail_with(plan_faults(total, rows))


@pytest.mark.parametrize(("total", "rows"), PLANS, ids=[str(total) for total, _ in PLANS])
def test_cells_run_by_all_have_the_names_they_need(total, rows):
    lesson_lint.fail_with(not_run(rows))


def test_the_two_days_have_equal_length():
    [(total, rows)] = [plan for plan in PLANS if plan[0] == 800]
    first, _ = rows.split("| 10 | – | The cards |")
    assert sum(map(int, re.findall(r"^\| (\d+) ", first, re.M))) == total / 2 == 400
    assert f"{total} minutes with lunches: {total // 2} on each day" in GUIDE


def test_questions_of_the_guide_are_in_the_lessons():
    questions = re.findall(rf"^\*\*({NUMBER}) · (.+?)\.\*\* \*", GUIDE, re.M)
    assert len(questions) > 15
    for number, heading in questions:
        assert heading in LESSONS[number]["headings"], (number, heading)


def test_commands_that_the_guide_names_exist():
    makefile = (notebooks.ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^|wheels )make ([a-z]+)\b", GUIDE, re.M))
    assert {"doctor", "setup", "slides", "stamp", "lab", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target


@pytest.mark.parametrize(("total", "rows"), PLANS, ids=[str(total) for total, _ in PLANS])
def test_no_session_exceeds_eighty_minutes(total, rows):
    stretches = re.split(r"^\| \d+ \| – \| (?:Break|Lunch|Close of the first day) .*$", rows, flags=re.M)
    assert max(sum(map(int, re.findall(r"^\| (\d+) ", part, re.M))) for part in stretches) <= 80
