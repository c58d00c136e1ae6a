"""Test lesson 04's figure of the arrays between two layers."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of
from tools.site import interactive_figures


@pytest.mark.parametrize("w1", ["columns", "rows"])
@pytest.mark.parametrize("w2", ["columns", "rows"])
def test_what_is_sent_is_what_the_lesson_counted(open_figure, w1, w2):
    at = open_figure("two_layer_collectives")
    text = at.set(w1=w1, w2=w2)
    line = re.search(
        rf"w1 by {w1}, w2 by {w2}: (.*?) · sends ([\d,]+) bytes",
        printed_text(cell_of("04", "mlp-count")),
    )
    assert f"w1 by {w1}, w2 by {w2}: {line[1]}, {line[2]} bytes sent by each device." in text
    # The picture shows the same collectives, and their bytes add up to the same total.
    steps = [re.fullmatch(r"([a-z-]+): ([\d,]+) bytes", words) for words in texts(at)]
    steps = [step for step in steps if step]
    assert [step[1] for step in steps] == re.findall(r"([a-z-]+) over y", line[1])
    assert sum(int(step[2].replace(",", "")) for step in steps) == int(line[2].replace(",", ""))
    # A product gives partial sums if its contracting dimension is sharded, that is, if its weight is sharded by rows.
    assert texts(at).count("partial sums") == [w1, w2].count("rows")


@pytest.mark.parametrize("device, row, column", [(0, 0, 0), (3, 0, 3), (5, 1, 1)])
def test_a_device_holds_the_pieces_of_its_place_in_the_mesh(open_figure, device, row, column):
    # Device 4 i + j is at position i along x and j along y. Along x, the input is sharded by rows. Along y,
    # w1 is sharded by columns and w2 by rows.
    at = open_figure("two_layer_collectives")
    at.set(w1="columns", w2="rows", device=device)
    held = at.page.locator(".interactive-figure svg").evaluate(
        """svg => {
            const boxes = [...svg.querySelectorAll("rect")].map((box) => box.getBBox());
            const found = [];
            for (let i = 0; i < boxes.length; i += 3) { // for each matrix: background, piece, frame
                const [all, piece] = [boxes[i], boxes[i + 1]];
                const part = (at, size, start, whole) => [(at - start) / size, whole / size].map(Math.round);
                const down = part(piece.y, piece.height, all.y, all.height);
                found.push([...down, ...part(piece.x, piece.width, all.x, all.width)]);
            }
            return found;
        }"""
    )
    x, w1, hidden, taken, w2, result = held  # for each array: index and number of pieces by row, then by column
    assert x == result == [row, 2, 0, 1]
    assert w1 == [0, 1, column, 4] and w2 == [column, 4, 0, 1]
    assert hidden == taken == [row, 2, column, 4]


def test_the_bytes_wait_for_the_guess(open_figure):
    at = open_figure("two_layer_collectives")
    answer = f"answer-{interactive_figures.question_numbers('04')['cheapest']}"
    at.page.evaluate("id => document.body.append(Object.assign(document.createElement('i'), { id }))", answer)
    text = at.set(w2="rows")
    assert "w1 by columns, w2 by rows." in text and "guess first" in text and "bytes" not in text
    assert not [words for words in texts(at) if "bytes" in words or "sent" in words]


def texts(at):
    return at.page.locator(".interactive-figure text").all_text_contents()
