"""Test the site's sources: the glossary and first uses of its terms, collapsed answers, and the front page's tables.

tests/site tests the pages themselves in a browser.
"""

from __future__ import annotations

import gzip
import html
import importlib
import re
import sys

import nbformat
import pytest
from find_old_jax.old_apis import PHRASES, ROWS

from tests.cell_outputs import alt_text, printed_text
from tests.lesson_lint import exercises_of
from tools.lessons import notebooks, predictions
from tools.lessons.hints_and_solutions import answers_of
from tools.site import browser, glossary, old_code_page
from tools.site import build as site
from tools.site import interactive_figures as figures
from tools.site.interactive_figures import FIGURES
from utils.show import FIGURE_DATA

ENTRIES = glossary.read()
README = (notebooks.ROOT / "README.md").read_text(encoding="utf-8")
MESH = glossary.Entry("mesh", "网格", "網格", ("mesh", "meshes"), None, "A grid.")
AXIS = glossary.Entry("mesh axis", "网格轴", "網格軸", ("mesh axis",), None, "An axis.")
REDUCE = glossary.Entry("reduce", "归约", "歸約", ("reduce",), None, "A sum.")


def prose(source: str) -> str:
    """Return a lesson's Markdown without headings, code, links, tables and pictures."""
    source = re.sub(r"```.*?```|`[^`]*`|!?\[[^\]]*\]\([^)]*\)", " ; ", source, flags=re.S)
    return re.sub(r"^(#|\|).*$", "", source, flags=re.M)


@pytest.fixture(scope="module")
def read_lessons() -> dict[str, str]:
    return {
        notebooks.number(path): "\n\n".join(
            prose(cell.source) for cell in notebooks.read(path).cells if cell.cell_type == "markdown"
        )
        for path in notebooks.lessons()
    }


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.term)
def test_each_entry_is_complete_and_used_in_a_lesson(entry, read_lessons):
    found = [lesson for lesson, text in read_lessons.items() if entry.counts_in(lesson)]
    assert any(glossary.first_uses(read_lessons[lesson], [entry]) for lesson in found), "no lesson's prose uses it"
    assert glossary.HAN.search(entry.simplified) and glossary.HAN.search(entry.traditional)
    sentences = re.findall(r"[.!](?= |$)", entry.definition)
    assert 1 <= len(sentences) <= 3 and entry.definition.endswith(".")


# Pairs of a simplified character and its traditional counterpart, neither of which occurs in the other script.
PAIRS = (
    "归歸约約换換术術强強动動后後带帶宽寬环環闭閉编編译譯计計随隨数數据據缩縮维維认認设設备備缓緩冲衝区區赠贈机機类類拟擬训訓练練轮輪"
    "显顯运運标標视視图圖隐隱层層钥鑰迟遲叶葉节節链鏈损損码碼网網纯純树樹结結构構汇匯复複制製顶頂线線规規静靜态態队隊张張时時间間词詞"
    "踪蹤记記录錄传傳输輸变變异異调調点點参參"
)


def test_simplified_and_traditional_terms_are_not_exchanged():
    for entry in ENTRIES:
        assert not set(entry.simplified) & set(PAIRS[1::2]), entry
        assert not set(entry.traditional) & set(PAIRS[::2]), entry


def test_entries_are_sorted_and_distinct():
    terms = [entry.term.lower() for entry in ENTRIES]
    assert terms == sorted(terms)
    assert len({glossary.identifier(term) for term in terms}) == len(terms)
    for lesson in map(notebooks.number, notebooks.lessons()):
        forms = [form.lower() for entry in ENTRIES if entry.counts_in(lesson) for form in entry.forms]
        assert sorted(forms) == sorted(set(forms)), f"one form leads to two entries in lesson {lesson}"


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("ring\n\n环 · 環\n", "'ring' needs a line of Chinese terms and one paragraph"),
        ("ring\n\n环\n\nA circle.\n", "'ring' needs its Chinese term in both scripts"),
        ("ring\n\nhuan · huan\n\nA circle.\n", "'ring' needs its Chinese term in both scripts"),
        ("ring\n\n环 · 環 · rings\n\nA circle.\n", "'ring': expected *other forms* or 'in 01, 02'; got 'rings'"),
    ],
)
def test_an_incomplete_entry_is_refused(tmp_path, section, words):
    page = tmp_path / "glossary.md"
    page.write_text(f"# Glossary\n\n## {section}", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(words)):
        glossary.read(page)


def test_parsing_an_entry(tmp_path):
    page = tmp_path / "glossary.md"
    line = "环 · 環 · *rings, ringed* · in 05b, 07"
    page.write_text(f"# Glossary\n\n## ring\n\n{line}\n\nA circle,\nclosed.\n", encoding="utf-8")
    lessons = frozenset({"05b", "07"})
    entry = glossary.Entry("ring", "环", "環", ("ring", "rings", "ringed"), lessons, "A circle, closed.")
    assert glossary.read(page) == [entry]
    assert entry.counts_in("07") and not entry.counts_in("01")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One mesh, two meshes.", [("mesh", MESH)]),
        ("Meshes are grids.", [("Meshes", MESH)]),
        ("The mesh\naxis and the mesh.", [("mesh\naxis", AXIS), ("mesh", MESH)]),
        ("A meshwork, an all-reduce, a mesh-like thing.", []),
        ("You reduce (over a mesh).", [("reduce", REDUCE), ("mesh", MESH)]),
        ("MESH", []),
    ],
)
def test_first_uses(text, found):
    uses = glossary.first_uses(text, [MESH, AXIS, REDUCE])
    assert [(text[start:end], entry) for start, end, entry in uses] == found


# Terms that also have an everyday sense or a different technical sense, and the lessons whose first use of the term has
# the glossary's sense. Before you add a lesson here and in the glossary, read its first use of the term.
READ = {
    "backend": {"01"},
    "latency": {"07"},
    "live microbatch": {"12"},
    "lower bound": {"02"},
    "pipeline": {"01", "12", "15", "90"},
    "pipeline schedule": {"12"},
    "pipeline stage": {"01", "12", "15", "90"},
    "random key": {"00", "06", "16", "17"},
    "training plan": {"08", "19"},
}


def test_an_ambiguous_word_is_linked_only_in_its_entrys_sense(read_lessons):
    linked = {term: set() for term in READ}
    for lesson, text in read_lessons.items():
        entries = [entry for entry in ENTRIES if entry.counts_in(lesson)]
        for _, _, entry in glossary.first_uses(text, entries):
            linked.get(entry.term, set()).add(lesson)
    assert linked == READ


@pytest.mark.parametrize(
    ("lesson", "text"),
    [
        ("01", "The rule is a lower bound for n."),
        ("02", "shard a whole tree of weights, and make each piece where it will live"),
        ("02", "another sharding: a plan that says which device holds which piece"),
        ("03", "Attention multiplies queries and keys for each example."),
        ("08", "gathered when its turn comes. Also stage 3 of that method"),
        ("09", "Read Optax on schedules. The plan of a TPU's compiler does."),
        ("10", "DeepSpeed removes the copies in three stages."),
        ("13", "Each query meets all keys. The FlashAttention backend does this."),
        ("15", "latency against throughput, queries and keys"),
        ("17", "A learning-rate schedule needs the number of steps. That is no plan."),
        ("17", "asynchronous saves, and three runs that live through them"),
        ("18", "Both plans send in one direction, a pipeline inside each round."),
        ("90", "They live in another module."),
    ],
)
def test_a_word_in_a_different_sense_is_not_linked(lesson, text):
    uses = glossary.first_uses(text, [entry for entry in ENTRIES if entry.counts_in(lesson)])
    general = {"attention", "device", "shard", "sharding"}
    assert {entry.term for _, _, entry in uses} <= general


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_answers_match_the_exercises(path, capsys):
    number = notebooks.number(path)
    given, exercises = answers_of(number), exercises_of(importlib.import_module(f"exercises.ex{number}"))
    assert given.keys() == exercises.keys()
    for name, exercise in exercises.items():
        exercise.solution()
        assert capsys.readouterr().out.rstrip("\n") == given[name].solution
        assert exercise.hint_text == given[name].hint


@pytest.mark.parametrize("path", notebooks.lessons(), ids=notebooks.number)
def test_a_page_keeps_the_notebooks_content(path):
    notebook, page = notebooks.read(path), site.page_notebook(path)
    answers = [cell.id for cell in page.cells if cell.id.endswith("-answer")]
    moving = [cell.id for cell in page.cells if cell.id.endswith("-interactive")]
    left = [cell for cell in page.cells if cell.id not in (*answers, *moving)]
    cells = list(notebook.cells)
    if [cell.id for cell in cells[1:3]] == ["setup", "opening"]:  # the site shows the picture first
        cells[1:3] = cells[2], cells[1]
    assert [cell.id for cell in left] == [cell.id for cell in cells]
    assert len(answers) == len(answers_of(notebooks.number(path)))
    pictures = [
        cell.id.removesuffix("-interactive") for cell in page.cells if '<div class="interactive-figure"' in cell.source
    ]
    assert sorted(pictures) == sorted(name for name, *_ in FIGURES.get(notebooks.number(path), ()))
    for output in [output for cell in notebook.cells for output in cell.get("outputs", ())]:
        output.get("data", {}).pop(FIGURE_DATA, None)  # Sphinx would warn about this MIME type
    for before, after in zip(cells, left, strict=True):
        if before.cell_type == "code":
            shows_nothing = before.id == "setup" or site.CHECK_CALL.search(before.source)
            outputs = [] if shows_nothing else before.outputs
            assert (after.source, after.outputs) == (before.source, outputs)
    printed = site.page_notebook(path, printed=True)
    assert FIGURE_DATA not in nbformat.writes(printed)
    assert [cell.id for cell in printed.cells] == [cell.id for cell in notebook.cells]
    assert not any("badge" in cell.source for cell in [*page.cells, *printed.cells] if cell.cell_type == "markdown")


def test_the_figures_tables_match_the_lessons_output():
    cells = figures.cells_by_id("03")
    automatic = printed_text(cells["chooses"])  # includes the two products that explicit axes reject
    nine = printed_text(cells["nine"]).splitlines()
    for line, (x, w, collectives, sent, flops) in zip(nine, figures.PRODUCTS, strict=True):
        cost = f"{collectives} · sends {sent:,} bytes · computes {flops:,} FLOPs "
        assert line.startswith(f"{x:9} · {w:9} {cost}") or (
            line.endswith("Error") and f"{x} · {w} {cost}" in automatic
        ), line
    four = printed_text(figures.cells_by_id("04")["mlp-count"]).splitlines()
    for line, (w1, w2, collectives, sent) in zip(four, figures.MLP_SHARDINGS, strict=True):
        assert line.startswith(f"w1 by {w1}, w2 by {w2}: {collectives} · sends {sent:,} bytes · ")


def test_the_figures_chips_match_the_lessons():
    assert 'chip = CHIPS["TPU v5e"]' in figures.cells_by_id("09")["overlap-draw"].source
    assert alt_text(figures.cells_by_id("15")["serve-rows"]).endswith("TPU v5e: a horizontal line at 241.")
    assert figures._roofline_corner({}) == {"chip": "TPU v5e", "corner": 241}


def numbers_of_figures(number: str) -> list:
    """Return the data of each interactive figure in a lesson."""
    return [numbers(figures.cells_by_id(number)) for _, _, numbers in FIGURES[number]]


def test_figures_show_the_data_stored_in_lessons():
    """Compare the figures' data with values copied from the lessons' sources and outputs."""
    [five] = numbers_of_figures("05")
    assert five["v"] == [[3], [1], [4], [8], [5], [9], [2], [6]]
    assert five["t"] == [[10 * device + place for place in range(8)] for device in range(8)]
    [ten] = numbers_of_figures("10")
    assert list(ten["parts"].items()) == [("weights", 2), ("gradients", 2), ("optimizer", 12)]
    [eleven] = numbers_of_figures("11")
    assert list(eleven["sent"].values()).count(8) == 2 and eleven["flops"]["sequence, again"] == 1.23
    [fourteen] = numbers_of_figures("14")
    assert fourteen == {"wanted": [0, 3, 2, 11, 4, 31, 13, 0], "bytes": 14_336}


def test_the_routes_through_a_grid_match_the_pictures():
    """Compare the routes with the chips' coordinates as read off lesson 08's pictures."""
    (two, four), (around, lines) = numbers_of_figures("08")
    assert (two["name"], four["name"]) == ("v5e:2x4", "v5e:4x2")
    assert two["lines"] == [[[0, 0], [1, 0], [0, 1], [1, 1], [1, 3], [0, 3], [1, 2], [0, 2]]]
    assert four["lines"] == [[[0, 0], [1, 0], [2, 0], [3, 0], [3, 1], [2, 1], [1, 1], [0, 1]]]
    assert (around["name"], lines["name"]) == ("data = 16", "data = 4")
    turns = {4: [3, 1], 7: [1, 2], 9: [3, 2], 10: [3, 3], 13: [0, 3], 15: [0, 1]}
    assert {k: around["lines"][0][k] for k in turns} == turns
    assert lines["lines"] == [[[x, y] for y in range(4)] for x in range(4)]


def test_a_figure_without_stored_data_stops_the_build():
    cells = figures.cells_by_id("07")
    with pytest.raises(ValueError, match="cell ring-draw stores no data beside a picture: run make refresh"):
        figures.figure_data(cells["ring-draw"])


def test_the_front_page_lists_the_same_lessons_as_the_readme():
    page = site.front_page((site.SITE / "index.md").read_text(encoding="utf-8"))
    listed = re.findall(r"<span class='number'>(\w+)</span><a class='title' href='(.+?)\.html'>", page)
    assert listed == re.findall(r"^\| (\d\w+) \| \[.+?\]\((.+?)\.ipynb\)", README, re.M)
    assert re.findall(r"<h3>(.+)</h3>", page) == re.findall(r"^### (.+)", README, re.M)
    count, hours = re.search(r"has (\d+) lessons and takes about (\d+) hours", page).groups()
    assert (int(count), f"| {hours} hours in all |" in README) == (len(listed), True)
    for promise in re.findall(r"^\| \d\w+ \| \[.+?\]\(.+?\) \| (.+?) \| ", README, re.M):
        assert re.sub(r"`(.+?)`", r"<code>\1</code>", promise) in html.unescape(page)
    assert "{{" not in page
    assert "| Laptop or server with Linux, or a Mac with Apple silicon |" in page


def test_links_from_the_readme_lead_to_the_repository():
    name, revision = notebooks.repository()
    [text] = [text for staged, text in site.staged_files(printed=False) if staged == "index.md"]
    assert f"](https://github.com/{name}/blob/{revision}/examples/README.md)" in text
    relative = re.findall(r"\]\((?!\w+:|#)([^)\s]+)\)", text)
    assert relative and all((notebooks.ROOT / page).is_file() for page in relative if page.startswith("notebooks/"))
    assert not [page for page in relative if page.startswith((".github/", "examples/"))]


def test_links_to_files_without_a_page_lead_to_the_repository():
    name, revision = notebooks.repository()
    lesson = f"notebooks/{notebooks.lessons()[0].name}"
    blob = f"https://github.com/{name}/blob/{revision}/"
    assert site.with_repository_links("[a](../LICENSE#x)", "site/index.md") == f"[a]({blob}LICENSE#x)"
    kept = f"[b]({lesson}) [c](https://jax.dev) [d](#here) ![e](layouts.png) [f](glossary.md)"
    assert site.with_repository_links(kept, "README.md") == kept


def test_a_deleted_page_is_removed_from_the_site(tmp_path):
    source, target = tmp_path / "source", tmp_path / "html"
    site.stage(source, target)
    times = {path: path.stat().st_mtime_ns for path in source.rglob("*.ipynb")}
    (target / "kept.html").parent.mkdir()
    (target / "kept.html").touch()
    site.stage(source, target)
    # the modification times stay the same, so Sphinx doesn't rebuild the pages
    assert {path: path.stat().st_mtime_ns for path in source.rglob("*.ipynb")} == times
    assert (target / "kept.html").exists()
    (source / "notebooks" / "99_gone.ipynb").write_text("{}")
    site.stage(source, target)
    assert not (source / "notebooks" / "99_gone.ipynb").exists() and not target.exists()


def test_a_missing_browser_is_reported_with_advice(monkeypatch):
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"need Chromium or Chrome. On Debian: apt-get install chromium") as stopped:
        browser.ensure_browser()
    assert len(str(stopped.value).splitlines()) == 1


def test_browser_path_selects_the_browser(monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", sys.executable)
    assert browser.find_browser() == sys.executable
    monkeypatch.delenv("BROWSER_PATH")
    monkeypatch.setattr(browser.shutil, "which", lambda name: f"/bin/{name}" if name == "google-chrome" else None)
    assert browser.find_browser() == "/bin/google-chrome"


def test_the_pages_questions_match_the_lessons():
    assert predictions.PATH.read_text(encoding="utf-8") == predictions.predictions_json(), "run make stamp"


def test_questions_as_data():
    """Check the first question of lesson 02, about a device's number, and that of lesson 16, about a length."""
    assert next(predictions.questions(notebooks.lesson("02")))["answer"] == 6
    first = next(predictions.questions(notebooks.lesson("16")))
    assert first["answer"] == 16 and first["unit"] == "numbers"
    for path in notebooks.lessons():
        cells = notebooks.read(path).cells
        assert len(list(predictions.questions(path))) == sum(cell.source.count(notebooks.QUESTION) for cell in cells)


def test_the_data_of_the_page_on_old_code():
    """Compare a few names with JAX's changelog: one was removed, one is deprecated, and two are current."""
    data = old_code_page.page_data()
    assert data["newest"].startswith("0.12") and data["appendix"] == "notebooks/90_old_code_new_jax.html"
    state, last, new, row = data["names"]["jax"]["tree_map"]
    assert (state, new, row) == ("gone", "jax.tree.map", 7) and last.startswith("0.5")  # JAX 0.6.0 removed tree_map
    assert data["names"]["jax.experimental.shard_map"]["shard_map"][::3] == ["warns", 11]
    assert ["jax.shard_map", "check_rep", "check_vma=", 11, "gone"] in data["keywords"]
    assert "map" not in data["names"].get("jax.tree", {}) and "jit" not in data["names"]["jax"]
    assert {int(row) for row in data["rows"]} == set(ROWS)
    assert [(row, " ... ".join(parts)) for row, parts, *named in data["phrases"] if not named] == [
        (row, phrase) for row, phrases in PHRASES.items() for phrase in phrases
    ]
    compiled = ["compiled.compiler_ir()", "compiled.as_text(), or jax.jit(f).lower(x).compiler_ir()"]
    assert [24, ["'Compiled' object has no attribute 'compiler_ir'"], *compiled] in data["phrases"]
    assert (
        len(gzip.compress(old_code_page.page_json().encode())) < 40_000
    )  # bytes, compressed as a server would send them; the complete record takes up 290 kB


@pytest.mark.parametrize("printed", [False, True])
def test_no_page_asks_for_a_guess_in_a_cell(printed):
    pages = [site.page_notebook(path, printed) for path in notebooks.lessons()]
    assert not [cell.id for page in pages for cell in page.cells if "replace `None`" in cell.source.lower()]
