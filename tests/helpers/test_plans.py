"""Lesson 19's napkin: as the page has it, as its judge and its script have it, and as the compiler said."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import pytest

from exercises import ex19
from tools import notebooks
from utils.count import pods

RECORDED = pods._recorded("19")


@pytest.fixture(scope="module")
def page():
    """What the cells of the lesson define that only count."""
    space = {"guess": None, "ex19": ex19}
    for cell in notebooks.read(notebooks.lesson("19")).cells:
        if cell.id in ("task-state", "compute-run", "price-define"):
            exec(cell.source, space)
    return space


@pytest.mark.parametrize("label", [label for label, plan in RECORDED.items() if not plan.error])
def test_the_napkin_is_near_what_the_compiler_says(page, label):
    found, sizes = RECORDED[label], [int(n) for n in label.split(": ")[1].split()]
    holds, computes, sends = page["price"](*sizes)
    assert math.isclose(found.arguments, 12 * page["N"] / (sizes[1] * sizes[2]), rel_tol=1e-3)
    assert math.isclose(found.flops / page["C"], computes, rel_tol=0.01)
    assert math.isclose(found.peak / 1e9, holds, rel_tol=0.2)
    sums = 16.1 if sizes == [1, 64, 1] else 0  # gradients that are all-reduced
    assert math.isclose(found.bytes_sent / page["W"], sends + sums * 1e9 / page["W"], rel_tol=0.03)


def test_what_the_napkin_calls_too_large_is_refused(page):
    assert page["price"](64, 1, 1)[0] > page["MEMORY"] and "Ran out of memory" in RECORDED["64 v6e: 64 1 1"].error


def test_the_judge_has_the_page_s_napkin_and_knows_its_best_plan(page):
    own = page | {}
    exec("C, W, SEQUENCES = 197e12, 100e9, 64", own)
    exec(next(c.source for c in notebooks.read(notebooks.lesson("19")).cells if c.id == "price-define"), own)
    sizes, times = [2**n for n in range(7)], {}
    for *plan, again in itertools.product(sizes, sizes, sizes, sizes, (True, False)):
        data, fsdp, model, micro = plan
        if data * fsdp * model == 64 and 64 % (data * fsdp * micro) == 0 and 32 % model == 0:
            holds, *clocks = ex19._on_v5e(*plan, again)
            assert (holds, *clocks) == pytest.approx(own["price"](*plan, again))
            if holds <= 16:
                times[*plan, again] = max(clocks)
    assert min(times, key=times.get) == ex19.another_slice.function()


def test_the_script_stops_where_a_weight_is_cut_otherwise(tmp_path):
    text = (notebooks.ROOT / "examples" / "19_plan.py").read_text(encoding="utf-8")
    (tmp_path / "plan.py").write_text(text.replace('P(None, "fsdp", "model")', 'P(None, "fsdp")'), encoding="utf-8")
    command = [sys.executable, "plan.py", "64", "918e12", "200e9", "32", "40", "4096", "256", "2048"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode and "AssertionError: a weight is cut otherwise" in run.stderr
