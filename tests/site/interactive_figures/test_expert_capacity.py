"""Test lesson 14's figure, which shows the tokens that get a slot and the bytes sent for empty slots."""

from __future__ import annotations

import re

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


def shown(at):
    """Return the numbers beside each expert's bar: tokens served, tokens dropped, and empty slots."""
    words = at.place.locator("svg text").all_text_contents()
    return [[int(word) for word in words[i + 1 : i + 4]] for i, word in enumerate(words) if word.startswith("expert ")]


def test_ten_seats_are_as_the_lesson_counts(open_figure):
    at = open_figure("expert_capacity")
    # With 8 slots each, the experts chosen by 11, 31 and 13 tokens drop 3 + 23 + 5 of them.
    assert (
        "8 seats per expert (factor 1): 31 of 64 tokens are dropped, and 31 of 64 seats are empty." in at.figure_text()
    )
    at.set(seats=10)
    counts = re.findall(r"\[([\d ]+)\]", printed_text(cell_of("14", "seats-run")))
    seated, dropped = ([int(count) for count in row.split()] for row in counts)
    assert len(seated) == len(dropped) == 8
    assert shown(at) == [[s, d, 10 - s] for s, d in zip(seated, dropped, strict=True)]
    # With 10 slots each, 1 + 21 + 3 of the 64 tokens are dropped, and 10 + 7 + 8 + 6 + 10 of the 80 slots are empty.
    assert (
        "10 seats per expert (factor 1.25): 25 of 64 tokens are dropped, and 41 of 80 seats are empty."
        in at.figure_text()
    )


def test_the_bytes_are_those_that_the_lesson_counts(open_figure):
    at = open_figure("expert_capacity")
    rows = re.findall(r"^(10|64) seats: sends ([\d,]+) bytes", printed_text(cell_of("14", "bytes-run")), re.M)
    assert len(rows) == 2
    for seats, sent in rows:
        assert f"Each device sends {sent} bytes per training step" in at.set(seats=seats)
    # Each of a step's four all-to-alls sends 7/8 of a token's 64 numbers of 8 bytes: 4 * 7/8 * 512 = 1,792 bytes.
    # With 64 slots per expert, there are 512 slots for 64 tokens, so each token costs eight times as much.
    assert "14,336 for each seated token, or 1,792 if all seats were taken." in at.figure_text()
    assert "(factor 8): 0 of 64 tokens are dropped, and 448 of 512 seats" in at.figure_text()


def test_an_even_router_and_one_half_way(open_figure):
    at = open_figure("expert_capacity")
    text = at.set(seats=8, unevenness=0)  # at factor 1, an even router finds a slot for every token
    assert "(factor 1): 0 of 64 tokens are dropped, and 0 of 64 seats are empty." in text
    assert "1,792 for each seated token, or 1,792 if all seats were taken." in text
    # Halfway between 8 tokens per expert and 0, 3, 2, 11, 4, 31, 13, 0 are 4, 5.5, 5, 9.5, 6, 19.5, 10.5, 4. Only the
    # first two fractions are rounded up, so that the tokens add up to 64.
    text = at.set(unevenness=50)
    assert [seated + dropped for seated, dropped, _ in shown(at)] == [4, 6, 5, 10, 6, 19, 10, 4]
    assert "15 of 64 tokens are dropped, and 15 of 64 seats are empty." in text  # 2 + 11 + 2 dropped
    text = at.set(seats=1)
    assert "(factor 0.125): 56 of 64 tokens are dropped, and 0 of 8 seats are empty." in text
