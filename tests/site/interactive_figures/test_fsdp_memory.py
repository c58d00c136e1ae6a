"""Test lesson 10's figure of the part of a model's state that each device stores."""

from __future__ import annotations

import re

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


def test_eight_devices_hold_what_the_lesson_prints(open_figure):
    text = open_figure("fsdp_memory").set(devices=8, parameters="1e9")
    printed = printed_text(cell_of("10", "stages-run"))
    for stage in (1, 2, 3):
        assert f"{float(re.search(rf'ZeRO-{stage}.*? ([.0-9]+) bytes', printed)[1]):g} at stage {stage}" in text
    assert "Each of 8 devices stores, in GB: 16 with all copied, 5.5 at stage 1, 3.75 at stage 2, 2 at stage 3." in text


def test_the_papers_own_example(open_figure):
    at = open_figure("fsdp_memory")
    # Figure 1 of the ZeRO paper and exercise 10.1 give 120, 31.4, 16.6 and 1.9 GB for 7.5e9 parameters on 64 chips.
    text = at.figure_text()
    assert "120 with all copied, 31.4 at stage 1, 16.6 at stage 2, 1.88 at stage 3" in text
    # At stage 2, the weights stay replicated: 7.5e9 * 2 bytes = 15 GB. So 14 / (16 / 7.5 - 2) = 105 devices of 16 GB
    # are exactly full, and 106 are enough.
    assert "all copied never, stage 1 never, stage 2 on 106 or more devices, stage 3 on 8 or more devices" in text
    assert "1,120 with all copied, 293 at stage 1, 155 at stage 2, 17.5 at stage 3" in at.set(parameters="70e9")
    # 70e9 * 16 / 16e9 = 70 chips would be exactly full, so 71 are enough.
    assert "stage 2 never, stage 3 on 71 or more devices" in at.figure_text()
    bars = at.page.locator(".interactive-figure svg text")
    at.set(devices=70)
    assert "16 GB, full" in bars.all_text_contents()
    at.set(devices=71)
    assert "15.8 GB, fits" in bars.all_text_contents()


def test_what_fills_a_chip_does_not_fit(open_figure):
    at = open_figure("fsdp_memory")
    words = at.page.locator(".interactive-figure svg text")
    at.set(devices=8, parameters="1e9")
    # 1e9 parameters, at 16 bytes each, take up 16 GB.
    assert "16 GB, full" in words.all_text_contents() and "5.5 GB, fits" in words.all_text_contents()
    assert (
        "all copied never, stage 1 on 2 or more devices, stage 2 on 2 or more devices, stage 3 on 2 or more devices"
        in at.figure_text()
    )
    at.set(memory="TPU v6e, 32 GB")
    assert "all copied always, stage 1 always, stage 2 always, stage 3 always" in at.figure_text()
    # 7.5e9 parameters, at 16 bytes each, take up 120 GB, so each of 8 devices stores 15 of its 16 GB. 80 GB is
    # 10.67 bytes per parameter, and at stage 1, each of two devices needs 4 + 12 / 2 = 10.
    assert "stage 3 on 8 or more devices" in at.set(memory="TPU v5e, 16 GB", parameters="7.5e9", devices=1)
    assert "The one device stores, in GB: 120 with all copied, 120 at stage 1" in at.figure_text()
    assert "120 GB, doesn't fit" in words.all_text_contents()
    assert (
        "all copied never, stage 1 on 2 or more devices, stage 2 on 2 or more devices, stage 3 on 2 or more devices"
        in at.set(memory="H100 SXM, 80 GB")
    )
