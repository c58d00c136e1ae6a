"""Compare lesson 19's estimate with its checker, its script, its opening figure and the compiler's record."""

from __future__ import annotations

import itertools
import math
import re
import sys

import pytest

from exercises import ex19
from tools.lessons import notebooks
from utils import aot_compiler

pytestmark = pytest.mark.once

RECORDED = aot_compiler.recorded_plans("19")
ESTIMATE = ("price-memory", "price-sent", "price-define")  # the cells that define the estimate


@pytest.fixture(scope="module")
def page():
    """Return the names that the lesson's cells define to calculate the estimate."""
    space = {"guess": None, "ex19": ex19}
    for cell in notebooks.read(notebooks.lesson("19")).cells:
        if cell.id in ("task-state", "compute-run", *ESTIMATE):
            exec(cell.source, space)
    return space


@pytest.mark.parametrize("label", [label for label, plan in RECORDED.items() if not plan.error])
def test_the_estimate_is_close_to_the_compilers_plan(page, label):
    compiled, sizes = RECORDED[label], [int(n) for n in label.split(": ")[1].split()]
    holds, computes, sends = page["price"](*sizes)
    assert math.isclose(compiled.arguments, 12 * page["N"] / (sizes[1] * sizes[2]), rel_tol=1e-3)
    assert math.isclose(compiled.flops / page["C"], computes, rel_tol=0.01)
    assert math.isclose(compiled.peak / 1e9, holds, rel_tol=0.2)
    sums = 16.1 if label == "64 v6e: 1 64 1" else 0  # GB of gradients that this compiler also all-reduces
    assert math.isclose(compiled.bytes_sent / page["W"], sends + sums * 1e9 / page["W"], rel_tol=0.03)


def test_the_compiler_rejects_plans_that_the_estimate_calls_too_large(page):
    assert page["price"](64, 1, 1)[0] > page["MEMORY"] and "Ran out of memory" in RECORDED["64 v6e: 64 1 1"].error


def test_the_exercise_uses_the_lessons_estimate_and_best_plan(page):
    own = page | {}
    exec("C, W, SEQUENCES = 197e12, 100e9, 64", own)
    for cell in notebooks.read(notebooks.lesson("19")).cells:
        if cell.id in ESTIMATE:
            exec(cell.source, own)
    sizes, times = [2**n for n in range(7)], {}
    for *plan, remat in itertools.product(sizes, sizes, sizes, sizes, (True, False)):
        data, fsdp, model, micro = plan
        if data * fsdp * model == 64 and 64 % (data * fsdp * micro) == 0 and 32 % model == 0:
            holds, *clocks = ex19._price_on_v5e(*plan, remat)
            assert (holds, *clocks) == pytest.approx(own["price"](*plan, remat))
            if holds <= 16:
                times[*plan, remat] = max(clocks)
    assert min(times, key=times.get) == ex19.another_slice.function()


def test_the_opening_figure_matches_the_estimate(page):
    cells = {cell.id: cell.source for cell in notebooks.read(notebooks.lesson("19")).cells}
    exec(cells["price-run"], page)
    estimates = [page["price"](*sizes) for sizes in page["PLANS"].values()]
    drawn = [[float(n) for n in row.split(",")] for row in re.findall(r"\[([\d., ]+)\]", cells["opening"])]
    assert drawn[0] == pytest.approx([holds for holds, *_ in estimates], abs=0.05)
    for clock, hours in enumerate(drawn[1:], 1):
        assert hours == pytest.approx([page["STEPS"] * plan[clock] / 3600 for plan in estimates], abs=0.05)
    assert list(page["PLANS"]) == re.findall(r'"((?:data|fsdp) [^"]+)"', cells["opening"])
    hours = [f"{page['STEPS'] * max(plan[1:]) / 3600:.0f}" for plan in estimates]
    assert [f"{estimates[0][0]:.0f} GB", f"{hours[1]} hours", f"takes {hours[2]}."] == re.findall(
        r"138 GB|84 hours|takes 51\.", cells["title"]
    )


@pytest.mark.parametrize("flash", [False, True])
def test_the_script_uses_the_lessons_estimate(page, flash):
    text = (notebooks.ROOT / "examples" / "19_plan.py").read_text(encoding="utf-8")
    command = ["plan.py", "64", "918e12", "200e9", "32", "40", "4096", "256", "2048", *["flash"] * flash]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        exec(text, script := {})
    for plan in script["plans"]():
        assert script["price"](*plan) == pytest.approx(page["price"](*plan, flash=flash))
