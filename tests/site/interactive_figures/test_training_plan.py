"""Test lesson 19's figure, which shows a plan's memory and how long each step computes and sends."""

from __future__ import annotations

import math
import re
from unittest import mock

import pytest

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of

ASKED = {"data 64": (64, 1, 1), "fsdp 8 model 8": (1, 8, 8), "fsdp 64": (1, 64, 1)}


def settings(data, fsdp, model, micro=1, remat=True):
    """Return a plan's settings by label. `data` has no control: it gets the remaining devices."""
    sizes = {"fsdp": fsdp, "model": model, "microbatches": micro}
    return {label: int(math.log2(n)) for label, n in sizes.items()} | {"layers": "remat" if remat else "kept"}


def test_the_plan_that_leads(open_figure):
    leads = re.search(
        r"\n +(\d+) +(\d+) +(\d+) +(\d+) +True +([\d.]+)\n",
        printed_text(cell_of("19", "choose-run")),
    )
    data, fsdp, model, micro, _ = leads.groups()
    text = open_figure("training_plan").by_label(settings(int(data), int(fsdp), int(model), int(micro)))
    assert text.startswith("data {} fsdp {} model {} micro {} remat: ".format(*leads.groups()[:4]))
    total = float(re.search(r": ([\d.]+) GB", text)[1])
    assert f"{total:.1f}" == leads[5]


@pytest.mark.parametrize("name", ASKED)
def test_the_three_plans_of_the_page(open_figure, name):
    form = rf"^{name} +([\d.]+) GB, computes ([\d.]+) s, sends ([\d.]+) s"
    page = re.search(form, printed_text(cell_of("19", "price-run")), re.M).groups()
    text = open_figure("training_plan").by_label(settings(*ASKED[name]))
    holds = float(re.search(r": ([\d.]+) GB \(", text)[1])
    clocks = dict(re.findall(r"(computing|sending)(?:, which takes|:) ([\d.]+)", text))
    assert holds == pytest.approx(float(page[0]), abs=0.6)
    assert [f"{float(clocks[c]):.2f}" for c in ("computing", "sending")] == list(page[1:])
    assert ("more than a chip's 32" in text) == (name == "data 64")


@pytest.mark.parametrize("plan", [(2, 4, 8, 2, False), (1, 32, 2, 8, True), (16, 1, 4, 1, False), (4, 16, 1, 4, True)])
def test_it_is_what_the_lessons_price_says(open_figure, plan):
    space = {"guess": None, "ex19": mock.MagicMock()}
    for name in ("task-state", "compute-run", "price-memory", "price-sent", "price-define"):
        exec(cell_of("19", name).source, space)
    text = open_figure("training_plan").by_label(settings(*plan))
    total = float(re.search(r": ([\d,.]+) GB \(", text)[1].replace(",", ""))
    clocks = dict(re.findall(r"(computing|sending)(?:, which takes|:) ([\d.]+)", text))
    holds, *seconds = space["price"](*plan)
    assert total == pytest.approx(holds, rel=6e-3)
    assert [float(clocks[c]) for c in ("computing", "sending")] == pytest.approx(seconds, rel=6e-3)


def test_by_hand(open_figure):
    # With fsdp 64, the state takes up 12 bytes for each of 8.187e9 parameters. Each of the 64 chips stores a 64th of
    # that: 1.54 GB. With 4 microbatches, a chip sends 4 * 3 * 63/64 * 2 bytes per parameter: 0.967 s at 200 GB/s.
    text = open_figure("training_plan").by_label(settings(1, 64, 1, 4))
    assert (
        "state 1.54, gradients 1.02" in text
        and "slower part is sending, which takes 0.967 s (computing: 0.584 s)" in text
    )


def test_invalid_plans_are_rejected(open_figure):
    at = open_figure("training_plan")
    assert "would need 128 chips, but there are only 64" in at.by_label({"fsdp": 6, "model": 1})
    assert "has 4 of the 256 sequences, too few for 16 microbatches" in at.by_label({"model": 0, "microbatches": 4})
    assert "micro 4 remat: 4.84 GB" in at.by_label({"microbatches": 2})
