"""Test lesson 15's figure of the bytes in the cache and the FLOPs per byte read."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import alt_text, printed_text
from tests.site.interactive_figures.conftest import cell_of
from tools.site import interactive_figures

LENGTHS = [0, 16, 32, 64, 128, 256, 512, 1024]


def test_eight_rows_of_sixty_four_are_what_the_lesson_counted(open_figure):
    at = open_figure("kv_cache_sharding")
    at.set(rows=3, characters=LENGTHS.index(64))
    printed = printed_text(cell_of("15", "serve-count"))
    each = re.search(r"^ 1 characters at once: [\d,]+ FLOPs, ([\d.]+) per byte", printed, re.M)[1]
    read = re.search(r"([\d,]+) bytes to read", printed)[1]
    assert f"a single device reads {read} bytes" in at.figure_text() and f"{each} FLOPs per byte" in at.figure_text()
    # The lesson's cache takes up 1,048,576 bytes, at 8 bytes per number. At 2 bytes per number it takes up a quarter of
    # that, of which each device stores an eighth.
    stored = re.search(r"cache: ([\d,]+)", printed_text(cell_of("15", "write-cache")))[1]
    bytes_ = int(stored.replace(",", "")) // 4
    assert (
        f"a cache of {bytes_:,} bytes at 2 bytes per number, {bytes_ // 8:,} on each of eight devices"
        in at.figure_text()
    )


@pytest.mark.parametrize("length", [16, 64, 1024])
def test_with_many_rows_it_comes_to_the_lessons_levels(open_figure, length):
    description = alt_text(cell_of("15", "serve-rows"))
    course = rf"\b{length} characters rises from 1, then stays near ([\d.]+) from \d+ onwards[;.]"
    level = float(re.search(course, description)[1])
    at = open_figure("kv_cache_sharding")
    text = at.set(rows=13, characters=LENGTHS.index(length))
    assert float(re.search(r"([\d.]+) FLOPs per byte", text)[1]) == pytest.approx(level, abs=0.06 + 0.01 * level)
    assert "less than the 241 at which a TPU v5e" in text


def test_without_a_cache_the_rows_share_all_that_is_read(open_figure):
    at = open_figure("kv_cache_sharding")
    # The 104,448 weights take up 2 bytes each, and each row does 2 FLOPs per weight: one FLOP per row and byte.
    text = at.set(rows=7, characters=0)
    assert (
        "a cache of 0 bytes" in text and "208,896 bytes" in text and "128.0 FLOPs per byte, less than the 241" in text
    )
    assert "256.0 FLOPs per byte, at least the 241 at which a TPU v5e is limited by computing" in at.set(rows=8)
    # Two rows of 16 characters read 2 * (104,448 + 2 * 256 * 16) bytes, and do 4 * (104,448 + 4,096) FLOPs.
    text = at.set(rows=1, characters=1)
    assert "225,280 bytes" in text and f": {4 * 108_544 / 225_280:.1f} FLOPs" in text
    assert "16,384 bytes at 2 bytes per number, 2,048 on each" in text


def test_the_rate_waits_for_the_guess(open_figure):
    at = open_figure("kv_cache_sharding")
    answer = f"answer-{interactive_figures.question_numbers('15')['rows_needed']}"
    at.page.evaluate("id => document.body.append(Object.assign(document.createElement('i'), { id }))", answer)
    text = at.set(rows=4)
    assert "16 rows of 16 characters" in text and "guess first" in text and "FLOPs per byte" not in text
    assert at.page.locator(".interactive-figure svg circle").count() == 0
