"""Test the index of problems: the programs raise their messages on this JAX, and the lessons have the sections.

If a program's message changes in a new JAX, add the new words to the entry in problems.toml.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from typing import Any

import jax
import pytest
from find_old_jax.error_lookup import closest_problems, explain
from find_old_jax.old_apis import row_problems
from find_old_jax.problem_index import Problem, data, problems
from find_old_jax.release_names import parse_version

from tools.lessons import notebooks

PROGRAMS = [problem for problem in problems() if problem.program]


@pytest.fixture(scope="module")
def setup(devices: list) -> dict[str, Any]:
    """Return the names that all programs use, after starting eight devices."""
    names: dict[str, Any] = {}
    exec(data()["setup"], names)
    return names


def occurs(problem: Problem, version: str) -> bool:
    """Return whether an entry says that the message occurs in a version of JAX."""
    here = parse_version(version)
    return (not problem.since or here >= parse_version(problem.since)) and (
        not problem.until or here < parse_version(problem.until)
    )


def message_of(program: str, names: dict[str, Any]) -> str:
    """Run a program, and return its error or its warnings as Python prints them, or "" if there's none."""
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("always")
        try:
            exec(program, dict(names))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "\n".join(f"{warning.category.__name__}: {warning.message}" for warning in caught)


@pytest.mark.parametrize("problem", PROGRAMS, ids=lambda problem: problem.id)
def test_the_program_raises_the_message_and_the_message_leads_to_the_entry(problem, setup):
    message = message_of(problem.program, setup)
    if occurs(problem, jax.__version__):
        assert explain(message) == problem, message
        assert closest_problems(message)[0] == problem, message
    else:
        assert explain(message) != problem, message


def test_most_messages_have_a_program():
    assert len(PROGRAMS) >= 80


@pytest.mark.once
@pytest.mark.parametrize("number", sorted({problem.lesson for problem in problems()}))
def test_the_lessons_have_the_sections(number):
    cells = notebooks.read(notebooks.lesson(number)).cells
    headings = {
        heading
        for cell in cells
        if cell.cell_type == "markdown"
        for heading in re.findall(r"^#{2,3} (.+)$", cell.source, re.M)
    }
    sections = {problem.section for problem in (*problems(), *row_problems()) if problem.lesson == number}
    assert sections <= headings, sections - headings
