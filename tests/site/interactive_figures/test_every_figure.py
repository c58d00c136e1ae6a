"""Test every interactive figure: all its settings, its frame, its text and its questions."""

from __future__ import annotations

import pytest

from tests.site.interactive_figures.conftest import KINDS, STATIC, cell_of
from tools.site import interactive_figures


def test_each_place_is_a_cell_and_each_kind_has_its_script():
    for number, places in interactive_figures.FIGURES.items():
        for name, kind, _ in places:
            assert cell_of(number, name)
            assert (STATIC / "interactive_figures" / f"{kind}.js").is_file()
    assert {path.stem for path in (STATIC / "interactive_figures").glob("*.js")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [390, 1280])
def test_every_setting_draws_inside_its_frame_and_says_something(open_figure, kind, width):
    """Test that no shape leaves the frame with any choice, at the ends of any slider or one step before its end."""
    at = open_figure(kind, width=width)
    outside = """svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.children].filter((shape) => {
            const box = shape.getBoundingClientRect();
            return box.left < frame.left - 1 || box.right > frame.right + 1
                || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
        }).map((shape) => shape.outerHTML.slice(0, 150));
    }"""

    def fine():
        text = at.figure_text()
        assert len(text) > 30 and "NaN" not in text and "undefined" not in text and "Infinity" not in text, text
        assert at.page.locator(".interactive-figure svg > *").count() > 3
        assert "NaN" not in at.page.locator(".interactive-figure svg").inner_html()
        assert at.page.locator(".interactive-figure svg").evaluate(outside) == []
        assert at.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the page"

    fine()
    fields = at.place.locator("select, input")
    for i in range(fields.count()):
        field = fields.nth(i)
        if field.evaluate("field => field.tagName") == "SELECT":
            for word in field.locator("option").all_inner_texts():
                field.select_option(word)
                fine()
        elif field.get_attribute("type") == "range":
            for end in ("Home", "End"):
                field.press(end)
                fine()
            field.press("ArrowLeft")
            fine()
    at.place.locator("select, input, button").last.press("Tab")
    assert at.page.evaluate("document.activeElement.closest('.interactive-figure') === null"), (
        "the focus cannot leave the figure"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_status_is_announced_after_a_pause(open_figure, kind):
    at = open_figure(kind)
    heard = at.place.locator("[role=status]")
    at.page.wait_for_function("heard => heard.textContent !== ''", arg=heard.element_handle())
    assert heard.inner_text() == at.figure_text()
    assert at.place.locator(".caption").get_attribute("aria-hidden") == "true"  # screen readers must not read it twice


@pytest.mark.parametrize("kind", KINDS)
def test_the_initial_settings_reveal_no_answer(open_figure, kind):
    """Test that a figure's initial settings reveal no answer while all answers on the page are hidden.

    interactive_figures.js raises an error if the figure's `asks` names a question that isn't on the page.
    """
    at = open_figure(kind)
    at.page.evaluate("""() => {
        const { questions } = document.querySelector(".interactive-figure").dataset;
        for (const index of Object.values(JSON.parse(questions))) {
            document.body.append(Object.assign(document.createElement("i"), { id: `answer-${index}` }));
        }
        dispatchEvent(new Event("resize"));
    }""")
    assert "guess first" not in at.figure_text()
