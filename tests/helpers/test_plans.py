"""Lesson 19's model of costs: as the page has it, as its judge has it, and as the compiler said."""

from __future__ import annotations

import contextlib
import itertools
import math

import pytest

from tools import notebooks
from utils.count import pods
from utils.exercises import ex19

RECORDED = {label: plan for label, plan in pods._recorded("19").items() if "in full" not in label}


@pytest.fixture(scope="module")
def page():
    """What the cells of the lesson define that only count."""
    space = {"__name__": "lesson"}
    for cell in notebooks.read(notebooks.lesson("19")).cells:
        wanted = cell.id in ("imports", "tasks-list", "program-layout", "spelled")
        if wanted or cell.id.startswith(("count-", "grids-")):
            exec(cell.source, space)
    return space


def test_there_are_plans_for_three_levels(page):
    assert len(RECORDED) >= 60
    for level, plans in page["GRID"].items():
        assert {f"level {level}: {words.strip()}" for words in plans.replace("\n", "/").split("/")} == {
            label for label in RECORDED if label.startswith(f"level {level}")
        }


@pytest.mark.parametrize("label", RECORDED)
def test_page_judge_and_compiler_agree(page, label):
    level, words = int(label[6]), label.split(": ")[1]
    task, plan = page["TASKS"][level], page["spelled"](words)
    assert task == ex19.TASKS[level] and plan == ex19.spelled(words)
    assert ex19._label(level, plan) == label
    held, sent, flops = (page[name](task, plan) for name in ("memory", "sent", "flops"))
    assert math.isclose(sum(held.values()), ex19._memory(task, plan))
    assert math.isclose(sum(sent.values()), ex19._sent(task, plan))
    assert math.isclose(flops, ex19.flops(task, plan))
    found = RECORDED[label]
    if not found.error:
        assert held["state"] <= found.arguments <= held["state"] * 1.001 + 1e6
        assert 0.999 <= found.flops / flops <= 1.08  # where it is short of memory the compiler adds some of its own


def test_the_best_known_plans_are_the_fastest_recorded():
    """By the slowest clock; to a hundredth, as several wait for the same FLOPs."""
    for level, best in ex19.BEST.items():
        if level == 4:  # nothing is recorded of it
            continue
        known = [label.split(": ")[1] for label, plan in RECORDED.items() if label[6] == str(level) and not plan.error]
        least = min(max(ex19._step(level, ex19.spelled(words)).values()) for words in known)
        assert max(ex19._step(level, ex19.spelled(best)).values()) <= 1.01 * least


def test_the_best_plan_of_level_4_is_the_best_of_all_that_fit():
    task, fit = ex19.TASKS[4], {}
    powers = [2**n for n in range(7)]
    for sizes in itertools.product(powers, repeat=4):
        for micro, remat, dtype in itertools.product(powers, ("", " none"), ("", " bfloat16")):
            words = " ".join(f"{axis} {n}" for axis, n in zip((*ex19.AXES, "micro"), (*sizes, micro), strict=True))
            plan = ex19.spelled(words + remat + dtype)
            with contextlib.suppress(ex19.Wrong):
                ex19._possible(4, task, plan)
                fit[ex19._label(4, plan)] = max(ex19._step(4, plan).values())
    assert math.isclose(min(fit.values()), max(ex19._step(4, ex19.spelled(ex19.BEST[4])).values()))
    on_page = {f"level 4: {label.split(': ')[1]}" for label in RECORDED} & set(fit)
    assert on_page and min(fit[label] for label in on_page) > 1.1 * min(fit.values())  # no table of the page has it


def test_parameters_by_hand():
    """LLaMA 2 13B and 3 70B, as their authors print them: 13.0e9 and 70.6e9."""
    assert ex19.parameters(ex19.TASKS[1]) == (24 * 12 * 2048**2, 32768 * 2048)
