"""Test that messages and descriptions lead to the right problem."""

from __future__ import annotations

import pytest
from find_old_jax.error_lookup import closest_problems, explain
from find_old_jax.problem_index import Problem, find_by_message, loose_match, problems, search, stem, stems
from messages import OTHER_MESSAGES
from queries import QUERIES


def test_there_are_many_problems_and_no_two_are_alike():
    assert len(problems()) >= 80
    for field in ("id", "title", "cause"):
        values = [getattr(problem, field) for problem in problems()]
        assert len(set(values)) == len(values), field
    patterns = [pattern.lower() for problem in problems() for pattern in problem.messages]
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize("problem", problems(), ids=lambda problem: problem.id)
def test_a_problem_is_complete_and_short(problem):
    assert problem.cause.count(". ") <= 1 and problem.cause.endswith((".", "?"))
    assert 1 <= len(problem.fix.splitlines()) <= 5
    assert problem.messages or len(problem.keywords.split()) >= 8  # without a message, only its words can be matched
    # Every message has a program that produces it, or the entry says why there's none.
    assert bool(problem.messages) == (bool(problem.program) or bool(problem.hardware))
    assert not (problem.program and (problem.hardware or problem.message))
    compile(problem.program, problem.id, "exec")


@pytest.mark.parametrize("problem", [one for one in problems() if one.message], ids=lambda problem: problem.id)
def test_a_quoted_message_leads_to_its_problem(problem):
    traceback = f"Traceback (most recent call last):\n  File 'train.py', line 3\n{problem.message}\n"
    assert explain(traceback) == problem
    assert closest_problems(problem.message)[0] == problem


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_a_description_leads_to_its_problem(query, expected):
    assert expected in [problem.id for problem in closest_problems(query)]


def test_words_are_compared_without_case_endings_and_common_words():
    assert stems("The meshes are Sharded; sharding a mesh") == ["mesh", "shard"]
    assert stems("jax.debug.print gathers") == ["debug", "print", "gather"]
    assert stems("`set_mesh(mesh)`") == ["set_mesh", "set", "mesh"]


def test_the_longest_match_is_first_and_rare_words_count_more():
    common = {"topic": "", "cause": "", "fix": "", "lesson": "", "section": ""}
    one = Problem(id="1", title="mesh", messages=("a b",), **common)
    two = Problem(id="2", title="mesh axis", messages=("a ... d",), **common)
    assert find_by_message("a\n b", [one, two]) == find_by_message("A B", [one, two]) == [one]
    assert find_by_message("x a b c d", [one, two]) == [one, two]  # matches of 3 and 2 characters
    assert search("axis mesh", entries=[one, two]) == [two, one]
    assert search("axis", entries=[one, two]) == [two]
    assert search("axes", entries=[one, two]) == []


def test_a_message_with_missing_words_still_counts():
    pattern = "mesh axis ... sharded twice"
    assert loose_match(pattern, stem("axis was sharded twice")) == 3 / 4
    assert loose_match(pattern, stem("twice sharded axis")) == 0  # only one of the four words is in order
    assert loose_match("mesh", stem("mesh")) == 0
    common = {"topic": "", "title": "", "cause": "", "fix": "", "lesson": "", "section": ""}
    one = Problem(id="1", messages=("twice sharded axis mesh",), **common)
    two = Problem(id="2", messages=(pattern,), **common)
    assert search("axis is sharded twice", entries=[one, two]) == [two, one]
    assert search("twice sharded axis", entries=[one, two]) == [one, two]


def test_other_messages_are_not_explained():
    for message in (*OTHER_MESSAGES, "ValueError: too many values to unpack"):
        assert explain(message) is None


def test_the_command_explains_a_message_or_lists_the_closest_problems(command):
    known = command("--message", "ValueError: 0th dimension of all xs should be replicated. Got P('X', None)")
    assert known.stdout.startswith("scan over a split dimension\n") and "Lesson 05, " in known.stdout
    assert known.returncode == 0
    described = command("--message", "my program is slower on 8 devices")
    assert described.stdout.startswith("No entry has this message. The closest entries:\n\nEight devices are")
    assert described.returncode == 1
    assert command("--message", "zzz").stdout == "No entry is about this.\n"


def test_run_explains_an_error_that_is_not_about_old_code(written, command):
    result = command("--run", written("s.py", "raise ValueError('Please set a mesh via `jax.set_mesh` if')"))
    assert "\nNo mesh is set\n" in result.stderr and "Old code" not in result.stderr and result.returncode == 1
