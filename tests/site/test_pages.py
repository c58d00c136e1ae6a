"""Test every page of the site in a browser: loading, links, pictures, keyboard, phone, dark mode, accessibility."""

from __future__ import annotations

import gzip
import io
import json
import re

import pytest
from PIL import Image

from tests.site import page_checks
from tests.site.conftest import HTML, NOT_THERE, PAGES
from tools.lessons import notebooks, readme
from tools.lessons.hints_and_solutions import answers_of
from tools.lessons.notebooks import QUESTION
from tools.site import build as site
from tools.site import glossary

LESSONS = [f"notebooks/{path.stem}.html" for path in notebooks.lessons()]


def test_there_is_a_page_for_each_lesson():
    assert {"index.html", "glossary.html", "search.html", *LESSONS} <= set(PAGES)


def none(faults):
    """Fail if there are any faults, and list them one per line."""
    assert not faults, "\n".join(map(str, faults))


@pytest.fixture(scope="session")
def known(chromium, address):
    """Return the ids of the anchors in each of the site's files, by file name."""
    ids_by_page = {str(path.relative_to(HTML)): [] for path in HTML.rglob("*") if path.is_file()}
    context = chromium.new_context()
    page = context.new_page()
    for name in PAGES:
        page.goto(address + name, wait_until="domcontentloaded")
        ids_by_page[name] = page_checks.element_ids(page)
    context.close()
    return ids_by_page


def show_all(page):
    """Show all answers, if the page has questions, and return the page."""
    for box in page.get_by_label("Show the answers").all():
        box.check()
    page.wait_for_timeout(500)  # the theme measures scrolling elements again after a delay
    return page


@pytest.mark.parametrize("name", PAGES)
def test_light_and_wide(tab, address, known, name):
    page = show_all(page_checks.open_page(tab(), address + name, "networkidle"))
    dead = page_checks.dead_links(page_checks.link_targets(page), address, known)
    faults = [*page.errors, *page_checks.broken_images(page), *dead, *page_checks.small_code(page)]
    faults += [*page_checks.accessibility_faults(page), *page_checks.broken_words(page)]
    page.locator("details.answer").evaluate_all("all => all.forEach(fold => { fold.open = true })")
    none([*faults, *page_checks.clipped_elements(page)])
    assert page.locator("main h1:visible").count() == 1


@pytest.mark.parametrize("name", PAGES)
def test_dark_and_as_narrow_as_a_phone(tab, address, name):
    page = page_checks.open_page(tab(page_checks.PHONE, "dark"), address + name, "networkidle")
    page.locator("html[data-theme=dark]").wait_for()
    # Look for these faults before the answers are shown.
    faults = [*page.errors, *page_checks.accessibility_faults(page), *page_checks.wide_gaps(page)]
    show_all(page)
    faults += [*page_checks.overflowing_elements(page), *page_checks.small_text(page), *page_checks.broken_words(page)]
    page.emulate_media(color_scheme="light")
    page.locator("html[data-theme=light]").wait_for()
    none([*faults, *page_checks.accessibility_faults(page, page_checks.CONTRAST)])


@pytest.mark.parametrize("name", LESSONS)
def test_an_opening_picture_is_whole_on_a_phone_and_can_be_enlarged(tab, address, name):
    page = page_checks.open_page(tab(page_checks.PHONE), address + name, "networkidle")
    box = page.locator(".tag_opening .wide-figure")
    image, wide = box.locator("img"), "box => box.scrollWidth > box.clientWidth"
    assert not box.evaluate(wide)
    size = image.bounding_box()
    assert size["x"] >= 0 and size["x"] + size["width"] <= page_checks.PHONE
    page.get_by_role("button", name="Enlarge the picture").click()
    assert box.evaluate(wide) and box.get_attribute("role") == "group"
    assert image.bounding_box()["width"] == 560
    page.get_by_role("button", name="Show the whole picture").click()
    assert not box.evaluate(wide) and box.get_attribute("role") is None
    none([*page.errors, *page_checks.overflowing_elements(page)])
    page.set_viewport_size({"width": 1280, "height": 900})
    assert not page.locator(".enlarge").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", LESSONS[2]])
def test_what_stands_beside_a_wide_page_has_contrast(tab, address, name, scheme):
    page = show_all(page_checks.open_page(tab(1920, scheme), address + name))
    none(page_checks.accessibility_faults(page, page_checks.CONTRAST))


@pytest.mark.parametrize(("selector", "colour"), [("article p", "#aaa"), ("div.cell_input pre .kn", "#ddd")])
def test_a_single_faint_text_is_found(tab, address, selector, colour):
    page = show_all(page_checks.open_page(tab(), address + LESSONS[2]))
    none(page_checks.accessibility_faults(page, page_checks.CONTRAST))
    faint = page.locator(f"{selector}:visible").last
    faint.evaluate("(node, colour) => { node.id = 'faint'; node.style.color = colour; }", colour)
    faults = page_checks.accessibility_faults(page, page_checks.CONTRAST)
    assert faults and all("#faint" in fault for fault in faults)


def test_a_faint_text_is_found_on_a_background_of_its_own(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    box = "node => { node.id = 'box'; node.style.background = '#666'; }"
    page.locator("article p:visible").last.evaluate(box)
    assert any("#box" in fault for fault in page_checks.accessibility_faults(page, page_checks.CONTRAST))


def test_no_row_has_a_single_card(tab, address):
    page = page_checks.open_page(tab(), address)
    for width in (390, 600, 768, 900, 1100, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        none(page_checks.lone_cards(page))


def test_the_contents_of_a_page_are_beside_it_from_1280_pixels(tab, address):
    page = page_checks.open_page(tab(1200), address + LESSONS[2])
    contents, link = page.locator("#pst-secondary-sidebar"), page.locator(".page-toc a").first
    assert not contents.is_visible()
    page.locator("button.secondary-toggle").last.click()
    link.click()
    assert "#" in page.url
    page.set_viewport_size({"width": 1280, "height": 900})
    page.reload()
    assert contents.is_visible() and not page.locator("button.secondary-toggle").last.is_visible()


def test_text_and_code_have_one_right_edge(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    edges = "all => [...new Set(all.map(node => Math.round(node.getBoundingClientRect().right)))]"
    assert len(page.locator("article section section > :is(p, div.cell):not([hidden])").evaluate_all(edges)) == 1


@pytest.mark.parametrize("name", [LESSONS[2], LESSONS[8]])
def test_figures_match_the_background_of_the_page(tab, address, name):
    """Test that a figure's corners have the page's colour, and that its ink stands out, in light and in dark mode."""
    for scheme, ground in (("light", 255), ("dark", 18)):
        page = page_checks.open_page(tab(scheme=scheme), address + name)
        page.add_style_tag(content=".bd-header-article { display: none !important; }")  # the header covers figures
        figure = page.locator(":is(div.cell_output, p) > img, .wide-figure > img").first
        drawn = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
        assert {max(drawn.getpixel((x, y))) for x in (1, 3) for y in (1, 3)} == {ground}
        darkest, lightest = drawn.convert("L").getextrema()
        assert darkest < 50 and lightest > 200
        assert (0, 0x72, 0xB2) in {color for _, color in drawn.getcolors(drawn.width * drawn.height)}


def test_the_front_page_opens_lessons_on_the_chosen_platform(tab, address):
    page = page_checks.open_page(tab(), address)
    third = page.locator("ol.lessons a.opens").nth(2)
    assert third.get_attribute("href").startswith("https://colab.research.google.com/")
    page.get_by_label("Open lessons in").select_option("Binder")
    assert third.get_attribute("href").endswith("notebooks/02_sharding.ipynb")
    assert third.get_attribute("href").startswith("https://mybinder.org/")
    assert third.get_attribute("aria-label") == "Open 02, Sharding, in Binder"
    none(page.errors)


def test_the_front_page_splits_an_array_by_any_spec(tab, address):
    """Test that no case is locked on this page, not even P('x') on a 2 by 4 mesh, which lesson 02 asks about."""
    page = page_checks.open_page(tab(), address)
    figure = page.locator(".interactive-figure")
    figure.get_by_label("mesh").select_option("2 by 4")
    figure.get_by_label("spec").fill("P('x', None)")
    assert "2 pieces of (2, 8), 4 copies of each" in figure.locator(".caption").inner_text()


def test_the_minutes_of_an_exercise_stay_together(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    titles = page.locator("h3", has_text="Exercise").all_inner_texts()
    assert titles and all(re.search(r"\([●○]+\xa0·\xa0\d+\xa0min\)", title) for title in titles)


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_what_the_notebook_shows_is_on_the_page(tab, address, path):
    notebook, answers = notebooks.read(path), answers_of(notebooks.number(path))
    page = page_checks.open_page(tab(), f"{address}notebooks/{path.stem}.html")
    described = [
        output.metadata["image/png"]["alt"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert page.locator("div.cell_output img").evaluate_all("all => all.map(img => img.alt)") == described
    assert page.locator("details.answer").count() == 2 * len(answers)
    for answer in answers.values():
        assert page.locator("details.answer", has_text=answer.solution.splitlines()[0]).count() == 1
    hidden = [cell for cell in notebook.cells if notebooks.HIDDEN_CODE.items() <= cell.metadata.items()]
    assert page.locator("details.hide").count() == len([cell for cell in hidden if cell.id in site.COLLAPSED])
    assert page.locator("details.hide[open]").count() == 0
    assert page.locator("details.hide > summary[aria-label]").count() == 0  # the summary's text is its accessible name
    assert readme.row(path).is_draft or page.locator("span[id^='use-'] > a").count() > 5


def focused(page, selector):
    return page.evaluate("selector => document.activeElement.matches(selector)", selector)


def press_until(page, selector, key="Tab", limit=600):
    """Press a key until the focused element matches the selector. Fail after `limit` presses."""
    for _ in range(limit):
        if focused(page, selector):
            return
        page.keyboard.press(key)
    pytest.fail(f"{key} does not reach {selector} on {page.url}")


def test_from_page_to_page_by_keyboard(tab, address):
    page = page_checks.open_page(tab(), address)
    for name in LESSONS[:5]:
        page.keyboard.press("Tab")
        press_until(page, "#pst-skip-link a", limit=3)
        page.keyboard.press("Enter")  # skip the navigation
        press_until(page, "a.right-next")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url == address + name


def test_a_collapsible_section_opens_by_keyboard(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[1])
    fold = page.locator("details.answer", has_text="Solution").first
    source = fold.locator("pre")
    assert not source.is_visible()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert source.is_visible()
    assert source.inner_text().startswith("def ")


def test_page_metadata(tab, address):
    """Test that shared links show the sentence below the page's title, and a picture that exists."""
    for name, title, words in (
        (LESSONS[2], "02 · Sharding — One Program, Many Devices", "The weights of a model with 6.9 billion parameters"),
        (
            "",
            "Parallel JAX on eight devices — One Program, Many Devices",
            "An open course of notebooks on parallel JAX",
        ),
    ):
        page = page_checks.open_page(tab(), address + name)
        assert page.title() == title
        [description] = page.locator("meta[name=description]").evaluate_all("all => all.map(one => one.content)")
        assert description.startswith(words)
        card = {
            each: page.locator(f"meta[property='og:{each}']").get_attribute("content")
            for each in ("title", "image", "url")
        }
        assert card["title"] == title
        assert card["url"] == page.locator("link[rel=canonical]").get_attribute("href").removesuffix("index.html")
        assert (HTML / card["image"].removeprefix(site.site_url())[1:]).is_file()
        about = json.loads(page.locator("script[type='application/ld+json']").text_content())
        assert about["@type"] == ("LearningResource" if name else "Course") and "by/4.0" in about["license"]
        assert "CC BY 4.0" in page.locator("p.copyright").inner_text()


def test_the_map_has_every_page():
    named = re.findall(r"<loc>([^<]*)</loc>", (HTML / "sitemap.xml").read_text(encoding="utf-8"))
    pages = {name for name in PAGES if name not in ("search.html", "index.html")}
    assert {name.removeprefix(site.site_url() + "/") for name in named} == {"", *pages}
    assert "/sitemap.xml" in (HTML / "robots.txt").read_text(encoding="utf-8")


def test_an_address_that_leads_nowhere(tab, address):
    page = page_checks.open_page(tab(), address + NOT_THERE)
    none([*page.errors, *page_checks.accessibility_faults(page)])
    links = page_checks.link_targets(page)
    # GitHub shows the 404 page for URLs in any folder, so its links must be absolute
    assert links and all(link.startswith(f"{site.site_url()}/") for link in links)


@pytest.mark.parametrize("name", ["index.html", *LESSONS])
def test_a_page_is_light(tab, address, name):
    """Test that a page takes up less than 250 kB, compressed and without pictures.

    With all of the theme's icons, pages took up 740 kB to 1 MB.
    """
    page, got = tab(), []
    page.on("response", lambda response: got.append(response))
    page_checks.open_page(page, address + name, "networkidle")
    sizes = {each.url: len(gzip.compress(each.body())) for each in got if each.request.resource_type != "image"}
    assert sum(sizes.values()) < 250_000, sizes
    marks = page.locator("svg.svg-inline--fa")
    assert marks.count() > 8 and page.locator(":is(i, span)[class*='fa-']").count() == 0


WAITS = "button.show-answer"


def answered(notebook):
    """Yield, for each question, the position of the first cell with output after it, among all cells with output."""
    outputs = [cell for cell in notebook.cells if cell.get("outputs")]
    places = {cell.id: place for place, cell in enumerate(notebook.cells)}
    for cell in notebook.cells:
        for _ in range(cell.source.count(QUESTION) if cell.cell_type == "markdown" else 0):
            yield next(i for i, output in enumerate(outputs) if places[output.id] > places[cell.id])


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_no_answer_shows_before_it_is_asked_for(tab, address, path):
    notebook = site.page_notebook(path)  # as on the page, where exercise checks have no output
    first = list(answered(notebook))
    assert first or readme.row(path).is_draft
    page = page_checks.open_page(tab(), f"{address}notebooks/{path.stem}.html")
    outputs, waits = page.locator("div.cell_output"), page.locator(WAITS)
    assert outputs.count() == sum(bool(cell.get("outputs")) for cell in notebook.cells)
    assert waits.count() == len(first)
    assert [place for place in first if outputs.nth(place).is_visible()] == []
    for place in first:  # a click removes its button, so the next one is the first
        waits.first.click()
        assert outputs.nth(place).is_visible()
    hidden = page.locator("article [hidden]:not(.route, .notice, .meaning)")
    assert hidden.all_inner_texts() == []


def test_answers_are_asked_for_by_keyboard_and_stay(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    before = page.locator(WAITS).count()
    page.locator(WAITS).nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator(WAITS).count() == before - 1
    assert focused(page, "div.cell_output")
    assert page.errors == []
    page.reload()
    assert page.locator(WAITS).count() == before - 1
    # The box shows all answers on every page, until the reader unchecks it.
    page.get_by_label("Show the answers").check()
    assert page.locator(WAITS).count() == 0
    page_checks.open_page(page, address + LESSONS[3])
    assert page.locator(WAITS).count() == 0
    page.get_by_label("Show the answers").uncheck()
    assert page.locator(WAITS).count() > 0


ASKED = json.loads((site.SITE / "predictions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_a_guess_is_read_as_the_lesson_reads_it(tab, address, path):
    """Test that the right answer is accepted, and that each mistake gets its own explanation or the general reason."""
    page = page_checks.open_page(tab(), f"{address}notebooks/{path.stem}.html")
    asked = ASKED[path.stem]
    assert page.locator("form.guess").count() == len(asked)
    for question in filter(None, asked):
        mistakes = [(guess, words or question["reason"]) for guess, words in question["mistakes"]]
        for guess, words in [(question["answer"], ": right."), *mistakes]:
            verdict = page.evaluate("([prediction, text]) => guessVerdict(prediction, text)", [question, str(guess)])
            assert words in verdict["message"] and verdict["right"] == (words == ": right."), (guess, verdict)
    none(page.errors)


def test_a_number_as_people_type_it(tab, address):
    """Test guesses with fractions, thousands separators and decimal commas, and guesses that aren't numbers."""
    page = page_checks.open_page(tab(), address + LESSONS[2])
    asked = {"answer": 11.25, "reason": "", "mistakes": [], "unit": "rows", "rel_tol": 0.01}
    right = "([prediction, text]) => guessVerdict(prediction, text).right"
    for guess, so in {"11.25": True, "11,25": True, "45/4": True, "1,125": False, "1/0": False, "1e400": False}.items():
        assert page.evaluate(right, [asked, guess]) == so, guess
    for guess in ("Infinity", "1/0", "1e400", "two"):
        assert "; expected a number of rows." in page.evaluate(
            "([prediction, text]) => guessVerdict(prediction, text).message", [asked, guess]
        )
    thousands = {**asked, "answer": 16_000}
    assert page.evaluate(right, [thousands, "16,000"]) and not page.evaluate(right, [thousands, "16,00"])


@pytest.mark.parametrize(("guess", "words", "kind"), [("5", "5, should be 6: ", "wrong"), ("6.0", ": right.", "right")])
def test_any_guess_shows_the_answer(tab, address, guess, words, kind):
    """Test lesson 02's first question: which of 2 x 4 devices stores [2, 5] of a (4, 8) array sharded by P("x", "y")?

    It's device 6, not 5.
    """
    page = page_checks.open_page(tab(page_checks.PHONE), address + LESSONS[2])
    form, waits = page.locator("form.guess").first, page.locator(WAITS)
    before, field = waits.count(), form.locator("input")
    field.fill("two")
    field.press("Enter")
    assert "expected a number" in form.locator("[role=status]").inner_text()
    assert waits.count() == before
    field.fill(guess)
    form.get_by_role("button", name="Check").click()
    verdict = form.locator(f".{kind}[role=status]")
    assert words in verdict.inner_text()
    marked = "node => [getComputedStyle(node, '::before').content[1], getComputedStyle(node).color]"
    assert (
        verdict.evaluate(marked)
        == {"right": ["\u2713", "rgb(0, 102, 77)"], "wrong": ["\u2717", "rgb(147, 74, 0)"]}[kind]
    )
    assert waits.count() == before - 1
    page.reload()
    assert waits.count() == before - 1
    page.get_by_role("button", name="Forget").click()
    page.wait_for_function(f"document.querySelectorAll('{WAITS}').length === {before}")
    none([*page.errors, *page_checks.overflowing_elements(page)])


def test_a_locked_figure_leads_to_its_question(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    figure = page.locator(".interactive-figure")
    figure.get_by_label("mesh").select_option("2 by 4")
    figure.get_by_role("link", name="Go to the question").click()
    assert page.url.endswith("#question-0")
    assert "Which device holds row 2, column 5?" in page.locator("#question-0").inner_text()
    page.locator("#question-0").get_by_label("Your guess").fill("6")
    page.keyboard.press("Enter")
    assert "Device 6 is at x = 1, y = 2" in figure.locator(".caption").inner_text()


def test_a_term_shows_its_meaning(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    link = page.locator("#use-02-mesh a")
    meaning = page.locator("#use-02-mesh [role=tooltip]")
    [entry] = [entry for entry in glossary.read() if entry.term == "mesh"]
    for show in (link.hover, link.focus):
        assert not meaning.is_visible()
        show()
        assert meaning.inner_text() == entry.definition.replace("`", "")
        page.mouse.move(0, 0)
        page.keyboard.press("Escape")
        link.blur()
    assert link.get_attribute("aria-describedby") == meaning.get_attribute("id")


def test_answers_are_there_on_paper_without_a_script_and_for_a_link(tab, address, chromium):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    output = page.locator("div.cell_output[hidden]").first
    assert output.bounding_box() is None or output.bounding_box()["height"] == 0
    page.emulate_media(media="print")
    assert not page.locator(WAITS).first.is_visible()
    assert output.bounding_box()["height"] > 20
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(address + LESSONS[2])
    assert plain.locator("article [hidden]:not(.route)").count() == 0
    context.close()
    term = page.locator("article [hidden] [id]").first.get_attribute("id")
    page_checks.open_page(page, f"{address}{LESSONS[2]}#{term}")
    page.reload()
    assert page.locator(f"[id='{term}']").is_visible()


@pytest.mark.parametrize(
    ("words", "start", "place"),
    [
        ("FSDP", "10 ·", 1),
        ("straggler", "09 ·", 2),
        ("网格", "Glossary", 1),
        ("out of memory", "08 ·", 4),
        ("OOM", "02 ·", 4),
        ("OOM", "What goes wrong", 5),
    ],
)
def test_search_finds_the_right_page(tab, address, words, start, place):
    """Test that the page is among the first results, and that each excerpt contains the words."""
    page = page_checks.open_page(tab(), f"{address}search.html?q={words}")
    results = page.locator(".search-page .search-results > li")
    results.first.wait_for()
    texts = results.all_inner_texts()[:place]
    assert any(text.startswith(start) for text in texts), texts
    phrase = {"OOM": "out of memory"}.get(words, words)
    excerpts = page.locator(".search-results p").all_inner_texts()[:place]
    assert all(phrase.lower() in " ".join(text.lower().split()) for text in excerpts), excerpts
    none(page.errors)


def test_search_shows_results_while_one_types_and_leads_to_a_section(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[1])
    page.keyboard.press("Control+k")
    page.keyboard.type("collective-permute")
    section = page.locator("#pst-search-dialog .search-results a.section").first
    section.wait_for()
    title = section.inner_text()
    section.click()
    page.wait_for_url(re.compile("#"))
    assert page.locator(":target > :is(h2, h3)").inner_text().startswith(title)
    none(page.errors)


def test_code_is_copied_without_its_surroundings(tab, address):
    page = tab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page_checks.open_page(page, address + LESSONS[1])
    cell = page.locator("div.cell_input", has_text="os.cpu_count").first
    cell.hover()
    cell.locator("button.copybtn").click()
    assert page.evaluate("navigator.clipboard.readText()").strip() == cell.locator("pre").inner_text().strip()


def test_the_lessons_stand_in_the_order_of_the_course(tab, address):
    page = page_checks.open_page(tab(), address)
    titles = [site.lesson_title(path) for path in notebooks.lessons()]
    beside = page.locator("nav.bd-docs-nav a").all_inner_texts()
    assert [text.strip() for text in beside][: len(titles)] == titles
    rows = page.locator("ol.lessons li")
    assert rows.locator(".number").all_inner_texts() == [title.split()[0] for title in titles]
    assert [href.split("/")[-1] for href in rows.locator(".title").evaluate_all("all => all.map(a => a.href)")] == [
        name.split("/")[-1] for name in LESSONS
    ]


def test_each_entry_of_the_glossary_leads_to_a_lesson(tab, address):
    page = page_checks.open_page(tab(), f"{address}glossary.html")
    sections = page.locator("section#glossary > section")
    assert sections.count() == len(glossary.read())
    without = "all => all.filter(entry => !entry.querySelector('.uses a')).map(entry => entry.id)"
    assert sections.evaluate_all(without) == []


def test_terms_lead_to_the_glossary_and_back(tab, address):
    page = page_checks.open_page(tab(), address + LESSONS[2])
    page.locator("#use-02-mesh a").click()
    assert page.url == f"{address}glossary.html#mesh"
    entry = page.locator("section#mesh")
    assert entry.locator("[lang=zh-hans]").inner_text() == "网格"
    assert entry.locator("[lang=zh-hant]").inner_text() == "網格"
    entry.locator(".uses a", has_text="02").click()
    assert page.url == f"{address}{LESSONS[2]}#use-02-mesh"
