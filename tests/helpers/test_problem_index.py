"""Test the index of problems: programs raise their messages on this JAX, and lessons have the sections that it names.

If a program's message changes in a new JAX, add the new words to the entry in problems.toml.
"""

from __future__ import annotations

import contextlib
import io
import json
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
from utils.processes import PREAMBLE, run_processes

PROGRAMS = [problem for problem in problems() if problem.program]
IN_TWO_PROCESSES = [problem for problem in PROGRAMS if problem.processes == 2]
# Run each program, and print its id and its message.
RUN_PROGRAMS = """
import json
for identifier, program in json.loads({programs!r}):
    message = ""
    try:
        exec(program, dict(names))
    except Exception as error:
        message = f"{{type(error).__name__}}: {{error}}"
    print(json.dumps([identifier, message]))
"""


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


@pytest.mark.parametrize(
    "problem", [one for one in PROGRAMS if one not in IN_TWO_PROCESSES], ids=lambda problem: problem.id
)
def test_the_program_raises_the_message_and_the_message_leads_to_the_entry(problem, setup):
    message = message_of(problem.program, setup)
    if occurs(problem, jax.__version__):
        assert explain(message) == problem, message
        assert closest_problems(message)[0] == problem, message
    else:
        assert explain(message) != problem, message


def test_programs_of_two_processes_raise_their_messages():
    """Run all programs of two processes in a single session, beginning with those that initialise JAX themselves."""
    starts = [problem for problem in IN_TWO_PROCESSES if "distributed.initialize" in problem.program]
    before, after = (
        RUN_PROGRAMS.format(programs=json.dumps([(one.id, one.program) for one in some]))
        for some in (starts, [one for one in IN_TWO_PROCESSES if one not in starts])
    )
    started = f"names = {{}}\nexec({data()['setup']!r}, names)\n"
    run = run_processes(f"import jax\nnames = {{'jax': jax}}\n{before}\n{PREAMBLE}\n{started}\n{after}", preamble="")
    assert run.returncodes == (0, 0), run.stderr
    first, second = (dict(json.loads(line) for line in stdout.splitlines()) for stdout in run.stdout)
    assert first.keys() == second.keys() == {problem.id for problem in IN_TWO_PROCESSES}
    for problem in IN_TWO_PROCESSES:
        messages = first[problem.id], second[problem.id]  # before JAX 0.8, only one process raises some errors
        assert (problem in map(explain, messages)) == occurs(problem, jax.__version__), (problem.id, messages)


def test_most_messages_have_a_program():
    assert len(PROGRAMS) >= 240


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
