"""Test the slides in a browser: they load without a network, the arrow keys visit all of them, and everything fits."""

from __future__ import annotations

import pytest

from tests.site.conftest import serve
from tools.lessons import notebooks, readme

LESSONS = [path.stem for path in notebooks.lessons()]
DRAFTS = {path.stem for path in notebooks.lessons() if readme.row(path).is_draft}
WIDTH, HEIGHT = 1280, 720

STATE = """() => {
  const slide = Reveal.getCurrentSlide();
  const seen = e => !e.closest('aside') && e.getClientRects().length && getComputedStyle(e).visibility !== 'hidden';
  const all = [...slide.querySelectorAll('*')].filter(seen).map(e => e.getBoundingClientRect());
  const at = Reveal.getIndices();
  return {
    slide: [at.h, at.v || 0], fragment: at.f, last: Reveal.isLastSlide(),
    bottom: Math.max(...all.map(r => r.bottom)), right: Math.max(...all.map(r => r.right)),
    question: slide.textContent.includes('Predict.') && !!slide.querySelector('blockquote'),
    small: [...slide.querySelectorAll('.jp-CodeCell pre')].some(e => parseFloat(getComputedStyle(e).fontSize) < 20),
    answers: [...slide.querySelectorAll('.jp-OutputArea')].filter(seen).length,
    cut: [...slide.querySelectorAll('pre')].filter(seen).some(e => e.scrollWidth > e.clientWidth + 1),
    left: slide.querySelectorAll('.fragment:not(.visible)').length,
    name: (slide.querySelector('[id]') || {}).id,
  };
}"""

FOLLOWS = """at => {
  const preview = document.querySelector('#current-slide iframe').contentWindow;
  return JSON.stringify(preview.Reveal.getIndices()) === at;
}"""


@pytest.fixture(scope="module")
def address():
    """Serve the slides on this machine, and yield their address."""
    folder = notebooks.ROOT / "slides"
    assert {path.stem for path in folder.glob("*.html")} >= {*LESSONS}, "the slides aren't made: run make slides"
    yield from serve(folder)


@pytest.fixture
def opened(address, chromium):
    """Yield a function that opens a lesson's slides, and returns the page, console errors and requested URLs."""
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    complaints, asked = [], []
    page.on("console", lambda entry: entry.type in ("error", "warning") and complaints.append(entry.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    def open_lesson(stem: str):
        page.goto(f"{address}{stem}.html")
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        return page, complaints, asked

    yield open_lesson
    page.close()


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_from_first_to_last(opened, address, stem):
    page, complaints, asked = opened(stem)
    total = page.evaluate("Reveal.getTotalSlides()")
    visited, faults = [], []
    state = page.evaluate(STATE)
    for _ in range(600):
        if not visited or visited[-1] != state["slide"]:
            visited.append(state["slide"])
            if state["question"] and state["answers"]:
                faults.append(f"{state['name']}: the answer is beside the question")
        if state["bottom"] > HEIGHT or state["right"] > WIDTH or state["cut"]:
            faults.append(f"{state['name']}: ends at {state['right']:.0f}, {state['bottom']:.0f}")
        if state["small"]:
            faults.append(f"{state['name']}: code or output is smaller than 20 px")
        if state["last"] and not state["left"]:
            break
        page.keyboard.press("ArrowRight")
        state = page.evaluate(STATE)
    assert faults == []
    assert len(visited) == total > (2 if stem in DRAFTS else 20)
    assert complaints == []
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_back_to_the_first(opened):
    page, *_ = opened(LESSONS[0])
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    assert page.evaluate(STATE)["slide"] != [0, 0]
    for _ in range(9):
        page.keyboard.press("ArrowLeft")
    assert page.evaluate(STATE)["slide"] == [0, 0]


def test_an_answer_comes_with_the_next_key(opened):
    """Test in lesson 06 that the first key after a question shows its code, and the second key shows the output."""
    page, *_ = opened("06_pmap_data_parallel")
    counted = []
    while not page.evaluate(STATE)["question"]:
        page.keyboard.press("ArrowRight")
    asked = page.evaluate("Reveal.getCurrentSlide().querySelector('blockquote').textContent")
    for _ in range(3):
        above = page.evaluate("Reveal.getCurrentSlide().querySelector('blockquote').textContent.trim()")
        assert asked.strip().endswith(above)
        counted.append(page.evaluate("[...Reveal.getCurrentSlide().querySelectorAll('.fragment.visible')].length"))
        page.keyboard.press("ArrowRight")
    assert counted == [0, 0, 1]


def test_notes_appear_only_in_the_speaker_view(opened):
    """Test that the text that discusses an answer appears in the speaker's window, and not on the slide."""
    page, *_ = opened("06_pmap_data_parallel")
    while not page.evaluate(STATE)["question"]:
        page.keyboard.press("ArrowRight")
    page.evaluate("addEventListener('message', said => window.met ||= /connected/.test(said.data))")
    with page.expect_popup() as opening:
        page.keyboard.press("s")
    page.wait_for_function("window.met")  # until the windows are connected, reveal.js reverts key presses
    # Show the code, then its output. While the preview is updating, reveal.js would revert the second key press.
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        opening.value.wait_for_function(FOLLOWS, arg=page.evaluate("JSON.stringify(Reveal.getIndices())"))
    opening.value.locator(".speaker-controls-notes .value", has_text="the loss accounts for the other 7").wait_for()
    assert "the loss accounts for the other 7" not in page.locator("section.present section.present").inner_text()
    opening.value.close()
