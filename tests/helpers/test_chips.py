"""Test the chips' published rates: their units, and whether they count one direction or both."""

from __future__ import annotations

import re

import pytest

from utils.chips import CHIPS

pytestmark = pytest.mark.once


def test_rates_match_the_data_sheets():
    # By chip: dense bfloat16 TFLOP/s, GB of memory, memory GB/s, and the GB/s of all links in both directions.
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
        rates = (chip.flops / 1e12, chip.hbm / 1e9, chip.hbm_rate / 1e9, 2 * chip.network / 1e9)
        assert rates == pytest.approx((tflops, memory, rate, both))


def test_links_match_the_data_sheets():
    # By chip: the number of links, and the GB/s of one link in one direction. For NVLink 4, NVIDIA prints twice this
    # rate. For TPUs, this rate is a tenth higher than the one in How to Scale Your Model.
    links = {"TPU v5e": (4, 50), "TPU v5p": (6, 100), "TPU v6e": (4, 100), "H100 SXM": (18, 25), "H200 SXM": (18, 25)}
    assert {name: (chip.links, chip.link_rate / 1e9) for name, chip in CHIPS.items()} == links


def test_all_pages_of_a_manufacturer_give_the_same_rate():
    for chip in CHIPS.values():
        assert {rate.one_direction for rate in chip.printed} == {chip.network}, chip.name
    v5e = CHIPS["TPU v5e"].printed
    assert [(str(rate), rate.directions) for rate in v5e] == [("400 GB/s", 2), ("1,600 Gbit/s", 1)]
    # 1,600 Gbit/s is 200 GB/s, and 400 GB/s in both directions is 200 GB/s in each.
    assert [rate.one_direction for rate in v5e] == [200e9, 200e9]


def test_a_ring_uses_two_links_of_a_torus_and_all_links_to_a_switch():
    assert CHIPS["TPU v5e"].ring_rate == 100e9
    assert CHIPS["TPU v5p"].ring_rate == 200e9
    assert CHIPS["H100 SXM"].ring_rate == CHIPS["H100 SXM"].network == 450e9


def test_flops_per_byte_against_a_manual_calculation():
    assert CHIPS["TPU v5e"].flops_per_hbm_byte == pytest.approx(240.5, abs=0.1)
    assert CHIPS["TPU v5e"].flops_per_ring_byte == pytest.approx(1970)
    assert CHIPS["H100 SXM"].flops_per_hbm_byte == pytest.approx(295.4, abs=0.1)
    assert CHIPS["H200 SXM"].flops_per_ring_byte == pytest.approx(2198.9, abs=0.1)


def test_lesson_07_and_its_exercise_turn_a_printed_rate_into_the_same_ring_rate():
    from exercises import ex07
    from tools.lessons import notebooks

    rows = {}
    for chip in CHIPS.values():
        for rate in chip.printed:
            gbit = rate.number * 8 / rate.units_per_gb
            ring = ex07.ring_rate.function(gbit, rate.directions, chip.links, chip.switched)
            assert ring == pytest.approx(chip.ring_rate), (chip.name, rate)
            rows[chip.name, str(rate)] = rate.number, chip.ring_rate / 1e9
    # Each row of the lesson's table gives a chip, its printed rate, three factors, their product, and the rate to use.
    cells = {cell.id: cell for cell in notebooks.read(notebooks.lesson("07")).cells}
    row = r"^(\w+ \w+) +([\d,]+ \S+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$"
    table_rows = re.findall(row, cells["sheet-table"].outputs[0].text, re.M)
    assert {(name, printed) for name, printed, *_ in table_rows} >= {
        ("TPU v5e", "400 GB/s"),
        ("TPU v5e", "1,600 Gbit/s"),
        ("H100 SXM", "900 GB/s"),
    }
    for name, printed, bits, directions, links, product, ring in table_rows:
        number, expected = rows[name, printed]
        assert int(bits) * int(directions) * int(links) == int(product), (name, printed)
        assert number / int(product) == int(ring) == expected, (name, printed)
