"""Published rates: units, and both directions against one."""

from __future__ import annotations

import pytest

from utils.chips import CHIPS

pytestmark = pytest.mark.once


def test_rates_are_those_of_the_data_sheets():
    # name: TFLOP/s of dense bfloat16, GB of memory, GB/s of memory, GB/s of all links in both directions
    printed = {
        "TPU v5e": (197, 16, 819, 400),
        "TPU v5p": (459, 95, 2765, 1200),
        "TPU v6e": (918, 32, 1640, 800),
        "H100 SXM": (1979 / 2, 80, 3350, 900),
        "H200 SXM": (1979 / 2, 141, 4800, 900),
    }
    assert list(CHIPS) == list(printed)
    for name, (tflops, memory, rate, both) in printed.items():
        chip = CHIPS[name]
        assert chip.name == name
        got = (chip.flops / 1e12, chip.hbm / 1e9, chip.hbm_rate / 1e9, 2 * chip.network / 1e9)
        assert got == pytest.approx((tflops, memory, rate, both))


def test_a_ring_on_a_torus_has_two_links_and_a_switch_gives_all():
    assert CHIPS["TPU v5e"].ring_rate == 100e9
    assert CHIPS["TPU v5p"].ring_rate == 200e9
    assert CHIPS["H100 SXM"].ring_rate == CHIPS["H100 SXM"].network == 450e9


def test_ridges_by_hand():
    assert CHIPS["TPU v5e"].flops_per_hbm_byte == pytest.approx(240.5, abs=0.1)
    assert CHIPS["TPU v5e"].flops_per_ring_byte == pytest.approx(1970)
    assert CHIPS["H100 SXM"].flops_per_hbm_byte == pytest.approx(295.4, abs=0.1)
    assert CHIPS["H200 SXM"].flops_per_ring_byte == pytest.approx(2198.9, abs=0.1)
