"""Test lesson 17's figure, which shows the time lost to saves and to failures."""

from __future__ import annotations

import re

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


def rows() -> list[tuple[str, str, str]]:
    """Return the seconds per save, the minutes between saves, and the loss, for the fast and then the slow storage."""
    return re.findall(
        r"^save +(\S+) s, every +(\S+) minutes: (\S+) lost",
        printed_text(cell_of("17", "young")),
        re.M,
    )


def test_the_slow_storage_is_that_of_the_page(open_figure):
    at = open_figure("checkpoint_interval")
    at.by_label({"a save after": 0, "a save takes": 0})
    save, minutes, lost = rows()[1]
    assert f"With a save after every {minutes} minutes" in at.figure_text()
    assert f" {lost} in all. Young's interval, {minutes} minutes, loses {lost}." in at.figure_text()
    assert f"{float(save):g} s" in at.place.locator(".value").all_inner_texts()


def test_the_fast_storage_is_that_of_the_page(open_figure):
    at = open_figure("checkpoint_interval")
    save, minutes, lost = rows()[0]
    text = at.by_label({"a save after": 0})  # the slow storage's interval; the figure opens with the fast storage's
    shown = at.place.locator(".value").nth(1).inner_text()
    assert shown == "2.43 s" and save == "2.4"
    # Young's interval is a tenth of the slow storage's, which is 38.77 minutes = 2326.3 s. At the slow storage's
    # interval, saves take 2.43 / 2326.3 = 0.1045 % of the time, and failures waste half of 38.77 / 185.58:
    # 10.446 %.
    assert f"interval, 3.88 minutes, loses {lost}." in text and minutes == "3.9"
    assert "0.10% of the work is lost to saves and 10.45% to failures, 10.6% in all" in text


def test_twice_the_best_interval_loses_a_quarter_more(open_figure):
    at = open_figure("checkpoint_interval")
    at.by_label({"a save takes": 0})
    # At twice and at half Young's interval, the formula gives 1.25 * 20.89 % = 26.1 %: 5.22 + 20.89, and 20.89 + 5.22.
    assert "5.22% of the work is lost to saves and 20.89% to failures, 26.1% in all" in at.by_label({"a save after": 4})
    assert "20.89% of the work is lost to saves and 5.22% to failures, 26.1% in all" in at.by_label(
        {"a save after": -4}
    )
    # With a failure every 4 * 3.09 = 12.4 hours, Young's interval doubles and its loss halves.
    assert "Young's interval, 77.5 minutes, loses 10.4%" in at.by_label({"a failure every": 4})
    assert "12.4 h" in at.place.locator(".value").all_inner_texts()


def test_the_minimum_is_seen_on_an_axis_from_zero(open_figure):
    """Test that the axis is long enough for the minimum.

    The axis ends at the first of 2, 4, 8, 20, 40 and 80% that is at least 2.2 times the loss at Young's interval.
    """
    at = open_figure("checkpoint_interval")
    words = at.place.locator("svg text")
    # 2.2 * 2.09 % = 4.6 %, so the axis ends at 8 %. The initial interval, 9.69 minutes, loses 3.0 %.
    opening = words.all_text_contents()
    assert {"0%", "2%", "4%", "6%", "8%"} <= set(opening) and "↑" not in opening
    at.by_label({"a save after": 0})  # a loss of 10.6 %, above the end of the axis
    assert "↑" in words.all_text_contents() and "8%" in words.all_text_contents()
    at.by_label({"a save takes": 0})  # 2.2 * 20.89 % = 46 %, so the axis ends at 80 %
    slow = words.all_text_contents()
    assert "80%" in slow and "↑" not in slow
