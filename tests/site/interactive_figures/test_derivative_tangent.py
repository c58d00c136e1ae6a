"""Test lesson 00's figure, in which the slope of a tangent is the value of the next derivative."""

from __future__ import annotations

import re

import pytest

from tests.cell_outputs import printed_text
from tests.site.interactive_figures.conftest import cell_of


def test_it_begins_with_the_lessons_numbers(open_figure):
    at = open_figure("derivative_tangent")
    table = printed_text(cell_of("00", "derivatives"))
    first, second, third = re.findall(r"at 0.5: +(-?[\d.]+), by hand", table)
    text = at.figure_text()
    assert "At x = 0.50, the tangent to tanh rises by 0.7864 per unit of x" in text
    assert text.endswith(f" tanh 0.4621, first {first}.")  # tanh(0.5) = 0.46212
    text = at.set(tangent="second")
    assert f"first {first}, second {second}, third {third}." in text


def test_each_tangent_has_the_slope_of_the_next(open_figure):
    at = open_figure("derivative_tangent")
    # At 0, tanh and its derivatives are 0, 1, 0 and -2. The lesson prints the last three.
    text = at.set(x=0, tangent="second")
    assert (
        "the tangent to the second derivative falls by 2.0000" in text
        and "the third derivative there is -2.0000" in text
    )
    assert "tanh 0.0000, first 1.0000, second 0.0000, third -2.0000." in text
    text = at.set(tangent="first derivative")
    assert (
        "the tangent to the first derivative rises by 0.0000" in text
        and "the second derivative there is 0.0000" in text
    )
    assert text.endswith("tanh 0.0000, first 1.0000, second 0.0000.")  # this tangent doesn't need the third derivative
    # With t = tanh(1) = 0.76159: 1 - t^2 = 0.41997; -2 t (1 - t^2) = -0.63970; (1 - t^2)(6 t^2 - 2) = 0.62163.
    assert "falls by 0.6397 per unit of x, so the second derivative there is -0.6397." in at.set(x=1)
    text = at.set(tangent="second")
    assert "tanh 0.7616, first 0.4200, second -0.6397, third 0.6216." in text
    # At -1, tanh and its second derivative have the opposite sign, and the first and third derivatives are unchanged.
    assert "tanh -0.7616, first 0.4200, second 0.6397, third 0.6216." in at.set(x=-1)


@pytest.mark.parametrize("x", [-3, 0.5, 2, 2.6])
def test_the_rise_is_as_long_as_the_next_curve_is_high(open_figure, x):
    at = open_figure("derivative_tangent")
    at.set(x=x, tangent="tanh")
    heights = at.page.locator(".interactive-figure polyline[stroke-width='5']").evaluate_all(
        "all => all.map((line) => line.getBBox().height)"
    )
    assert len(heights) == 2 and heights[0] == pytest.approx(heights[1], abs=1e-3)
