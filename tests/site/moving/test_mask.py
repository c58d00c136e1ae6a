"""Test lesson 13's figure: the pairs of queries and keys, by device and by step of the ring."""

from __future__ import annotations

import re

import pytest

from tests.site.moving.conftest import cell_of
from tools.site import interactive_figures


@pytest.mark.parametrize("order", ["in order", "striped", "zig-zag"])
def test_a_mask_of_512_tokens_is_that_of_the_lessons_table(hand, order):
    """The least and most pairs, most / mean and slowest / mean are those that the lesson prints for eight devices."""
    printed = interactive_figures.printed_text(cell_of("13", "balance-table"))
    least, most, share, slowest = re.search(rf"^{order} +(\S+) +(\S+) +(\S+) +(\S+)$", printed, re.M).groups()
    said = hand("mask").by_label({"order": order, "tokens a device": "64"})
    has = f"each device has {most} pairs" if least == most else f"a device has {least} to {most} pairs"
    assert f"In all 8 rounds, {has}; most / mean {share}, slowest / mean {slowest}." in said
    assert ("Grey is waiting" in said) == (least != most)


def test_the_pairs_of_a_round_are_those_of_the_piece_that_has_come_round_the_ring(hand):
    """By hand, with 8 tokens a device: a full block has 64 pairs, a triangle 36 with its diagonal and 28 without it."""
    at = hand("mask")
    assert at.said().startswith(
        "64 tokens in order, 8 devices. Outlined is round 7 (counted from 0): 0, 0, 0, 0, 0, 0, 0, 64 pairs"
    )
    assert "a device has 36 to 484 pairs" in at.said()  # 36 + 7 * 64
    # round 2: device d meets the piece of device d - 2, all earlier tokens for devices 2 to 7, all later for 0 and 1
    said = at.by_label({"rounds done": 3})
    assert "Outlined is round 2 (counted from 0): 0, 0, 64, 64, 64, 64, 64, 64 pairs on devices 0 to 7." in said
    assert "In the first 3 rounds, a device has 36 to 164 pairs;" in said
    # so far 36 + 64 + 64 at most; the mean is (8 * 36 + 7 * 64 + 6 * 64) / 8 = 140
    assert f"slowest / mean {164 / 140:.3f}" in said
    said = at.set(order="striped")  # triangles; device d sees the diagonal of device d - 2, devices 0 and 1 do not
    assert "counted from 0): 28, 28, 36, 36, 36, 36, 36, 36 pairs" in said
    assert "counted from 0): 32, 32, 32, 32, 32, 32, 32, 32 pairs" in at.set(order="zig-zag")  # two of four quarters


def test_two_devices_counted_by_hand(hand):
    """With 16 tokens, token t attends to t + 1 of them."""
    at = hand("mask")
    said = at.set(order="striped", devices=2)  # device 0: 1 + 3 + ... + 15 = 64, device 1: 2 + 4 + ... + 16 = 72
    assert "Outlined is round 1 (counted from 0): 28, 36 pairs" in said
    assert "In all 2 rounds, a device has 64 to 72 pairs; most / mean 1.059, slowest / mean 1.059." in said
    # zig-zag, device 0: tokens 0 to 3 and 12 to 15, (1 + 2 + 3 + 4) + (13 + 14 + 15 + 16) = 68 = 136 / 2
    assert "each device has 68 pairs; most / mean 1.000, slowest / mean 1.000." in at.set(order="zig-zag")
    assert "before round 0" in at.by_label({"rounds done": 0})
