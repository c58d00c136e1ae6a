"""Test that formulas become MathML, which needs no script, and that they wrap on a phone."""

from __future__ import annotations

import re

import pytest

from tests.site import page_checks
from tools.lessons.mathml import to_mathml, with_mathml

LONG = r"T = \frac{6 N B}{C} \approx \sqrt{2 C M} = w[D_x, F_y] \cdot x[B, D_x] = \frac{a + b + c + d}{e + f}"


def test_only_formulas_are_converted():
    code = "Type `a$b$` or \\$5.\n\n```\ncost = $x$\n```\n"
    assert with_mathml(code) == code
    written = with_mathml("Shard $w[D_x, F_y]$ with `P('x', 'y')`; it costs $$T = \\sqrt{2CM}$$")
    assert "$" not in written and "`P('x', 'y')`" in written
    assert re.search(r"<msub><mi[^>]*>D</mi><mi[^>]*>x</mi></msub>", written)
    assert written.count("<math") == 3  # the equation becomes two formulas, so that it can wrap before its relation


def test_a_name_of_several_letters_stays_upright():
    assert "font-style" not in to_mathml(r"\text{bytes}")


def test_a_number_with_commas_stays_one_number():
    assert "<mtext>384,768</mtext>" in to_mathml("3 \\cdot 128{,}256 = 384{,}768")


def test_a_function_has_space_around_its_name():
    assert to_mathml(r"p \log p").count("<mspace") == 2
    assert "<mspace" not in to_mathml(r"\log(p)")


def test_only_letters_slant():
    assert "font-style" not in to_mathml(r"\lceil 2 \rceil")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_formula_wraps_on_a_phone_in_the_colour_of_the_text(tab, address, scheme):
    page = page_checks.open_page(tab(page_checks.PHONE, scheme), address + "glossary.html")
    page.locator(f"html[data-theme={scheme}]").wait_for()
    put = "(node, formula) => { node.innerHTML = `It takes ${formula} seconds.`; node.id = 'planted'; }"
    page.locator("article p").first.evaluate(put, to_mathml(LONG))
    planted = page.locator("#planted")
    tops = "node => new Set([...node.querySelectorAll('math')].map(part => part.getBoundingClientRect().bottom)).size"
    assert planted.evaluate(tops) > 1
    colour = "node => getComputedStyle(node).color"
    assert planted.locator("mi").first.evaluate(colour) == planted.evaluate(colour)
    assert [*page.errors, *page_checks.overflowing_elements(page)] == []
    assert "T" in planted.locator("math").first.text_content()
