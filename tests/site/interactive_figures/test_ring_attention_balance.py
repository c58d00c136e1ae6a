"""Test lesson 13's figure of the pairs of queries and keys that each device computes in each round of the ring."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


@pytest.mark.parametrize("order", ["in order", "striped", "zig-zag"])
def test_a_mask_of_512_tokens_is_that_of_the_lessons_table(open_figure, order):
    """Compare the least and most pairs, most / mean and slowest / mean with the lesson's table for eight devices."""
    printed = printed_text(cell_of("13", "balance-table"))
    least, most, share, slowest = re.search(rf"^{order} +(\S+) +(\S+) +(\S+) +(\S+)$", printed, re.M).groups()
    text = open_figure("ring_attention_balance").by_label({"order": order, "tokens per device": "64"})
    has = f"each device computes {most} pairs" if least == most else f"a device computes {least} to {most} pairs"
    assert f"In all 8 rounds, {has}: most / mean {share}, slowest / mean {slowest}." in text
    assert ("Grey marks waiting" in text) == (least != most)


def test_the_pairs_of_a_round_are_those_of_the_piece_that_has_come_round_the_ring(open_figure):
    """Compare each round's pairs with the size of its block, for 8 tokens per device.

    A full block has 64 pairs, and a triangle has 36 with its diagonal or 28 without it.
    """
    at = open_figure("ring_attention_balance")
    assert at.figure_text().startswith(
        "64 tokens in order, 8 devices. The outlines mark round 8 of 8: 0, 0, 0, 0, 0, 0, 0, 64 pairs"
    )
    assert "a device computes 36 to 484 pairs" in at.figure_text()  # 36 + 7 * 64
    # In the third round, device d has the keys of device d - 2. They are earlier than the queries on devices 2 to 7,
    # and later than those on devices 0 and 1.
    text = at.by_label({"rounds done": 3})
    assert "The outlines mark round 3 of 8: 0, 0, 64, 64, 64, 64, 64, 64 pairs on devices 0 to 7." in text
    assert "In the first 3 rounds, a device computes 36 to 164 pairs:" in text
    # After three rounds, a device has at most 36 + 64 + 64 = 164 pairs, and the mean is
    # (8 * 36 + 7 * 64 + 6 * 64) / 8 = 140.
    assert f"slowest / mean {164 / 140:.3f}" in text
    text = at.set(order="striped")  # all blocks are triangles, without a diagonal on devices 0 and 1
    assert "round 3 of 8: 28, 28, 36, 36, 36, 36, 36, 36 pairs" in text
    assert "round 3 of 8: 32, 32, 32, 32, 32, 32, 32, 32 pairs" in at.set(order="zig-zag")  # two quarters of a block


def test_two_devices_counted_by_hand(open_figure):
    """Count the pairs of 16 tokens on two devices, where token t attends to t + 1 tokens."""
    at = open_figure("ring_attention_balance")
    text = at.set(order="striped", devices=2)  # device 0: 1 + 3 + ... + 15 = 64, device 1: 2 + 4 + ... + 16 = 72
    assert "The outlines mark round 2 of 2: 28, 36 pairs" in text
    assert "In all 2 rounds, a device computes 64 to 72 pairs: most / mean 1.059, slowest / mean 1.059." in text
    # In zig-zag order, device 0 has the tokens 0 to 3 and 12 to 15: (1 + 2 + 3 + 4) + (13 + 14 + 15 + 16) = 68 pairs,
    # half of all 136.
    assert "each device computes 68 pairs: most / mean 1.000, slowest / mean 1.000." in at.set(order="zig-zag")
    assert "before round 1" in at.by_label({"rounds done": 0})
