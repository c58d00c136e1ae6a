"""Test that the site's page on old code gives the same answers for code and messages as the migration checker."""

from __future__ import annotations

import runpy

import pytest
from find_old_jax.error_lookup import closest_problems, explain, find_answer
from find_old_jax.find import advice, find
from find_old_jax.old_apis import PHRASES, WORDS
from find_old_jax.problem_index import Problem
from find_old_jax.release_names import Record
from find_old_jax.replacements import KEYWORDS, REPLACEMENTS

from tests.site import page_checks
from tools.lessons import notebooks
from tools.site import old_code_page

PACKAGE_TESTS = notebooks.ROOT / "packages" / "find-old-jax" / "tests"
MESSAGES, OTHER_MESSAGES = (
    runpy.run_path(str(PACKAGE_TESTS / "messages.py"))[name] for name in ("MESSAGES", "OTHER_MESSAGES")
)
QUERIES = runpy.run_path(str(PACKAGE_TESTS / "queries.py"))["QUERIES"]

PAGE = "old_code.html"
DATA = "JSON.parse(document.getElementById('old-names').textContent)"
CODE = """\
import functools, jax, numpy as np
from jax.experimental.maps import (
    Mesh, xmap)
from jax.config import config
import jax.numpy as jnp
from jax import tree_util as tu, linear_util
# jax.tree_map in a comment
text = "jax.tree_map"
b = tu.tree_multimap(f, a); c = jnp.clip(a,
    a_min=g(a_max=3))
try:
    from jax.experimental.pjit import pjit
except ImportError:
    from jax import jit as pjit
d = jax.tree_map(f, a)  # noqa: old-jax
if hasattr(jax, "tree_leaves"):
    e = jax.tree_leaves(a)
g = functools.partial(jax.shard_map, check_rep=False)
h = np.random.jax.tree_map + jnp.sin(jax.tree.map(f, a))
"""
FOUND = [  # determined manually: (line, old API, row)
    (2, "jax.experimental.maps", 2),
    (2, "jax.experimental.maps.Mesh", 2),
    (4, "jax.config.config", 24),
    (6, "jax.linear_util", 24),
    (9, "jax.numpy.clip(a_min=)", 24),
    (9, "jax.tree_util.tree_multimap", 7),
    (18, "jax.shard_map(check_rep=)", 11),
]


@pytest.fixture
def page(tab, address):
    page = page_checks.open_page(tab(), address + PAGE)
    yield page
    assert page.errors == []


def paste(page, text):
    """Paste a text into the page, and return the status message and a locator for the listed old names."""
    page.get_by_label("An error message").fill(text)
    status = page.locator("#old-code [role=status]")
    page.wait_for_function("said => said.textContent !== ''", arg=status.element_handle())
    return status.inner_text(), page.locator("#old-code li")


def messages():
    """Yield the messages in the checker's tests, and error messages with every phrase, keyword and name in its data.

    The error messages are worded as Python words them.
    """
    yield from (message for message, *_ in MESSAGES)
    yield from OTHER_MESSAGES
    for phrases in PHRASES.values():
        yield from ("ValueError: It says " + phrase.replace(" ... ", " of\n  this ") for phrase in phrases)
    yield from (f"TypeError: {phrase}".replace(" ... ", " this ") for phrase in WORDS)
    yield "TypeError: unexpected keyword argument 'out_axis_resources'"
    for name, keyword in KEYWORDS:
        yield f"TypeError: {name.split('.')[-1]}() got an unexpected keyword argument '{keyword}'"
    yield "TypeError: ShapeDtypeStruct.__init__() got an unexpected keyword argument 'named_shape'"
    yield "TypeError: sin() got an unexpected keyword argument 'check_rep'"
    for name in [*REPLACEMENTS, "jax.tree_map.x", "jax.interpreters.xla.xla_call", "jax.numpy.sin", "numpy.random"]:
        module, _, leaf = name.rpartition(".")
        yield f"AttributeError: module '{module}' has no attribute '{leaf}'"
        yield f"ImportError: cannot import name '{leaf}' from '{module}' (/x/y.py)"
        if name in REPLACEMENTS:
            yield f"ModuleNotFoundError: No module named '{name}'"
        yield f"DeprecationWarning: {name.replace('jax.numpy', 'jnp')} is deprecated: use\nanother."


def test_a_message_is_read_as_the_finder_reads_it(page):
    asked = list(messages())
    answers = page.evaluate(f"all => {{ const {{ answer }} = oldCode({DATA}); return all.map(answer); }}", asked)
    assert len(asked) > 500
    for message, answer in zip(asked, answers, strict=True):
        known = find_answer(message)
        expected = known and (known.name, known.new, known.row)
        assert (answer and (answer["name"], answer["instead"], answer["row"])) == expected, message


def test_each_name_has_the_fate_that_the_record_tells(page):
    """Test that the page reports the recorded state of each old name, and reports no other JAX name as old.

    The page's data contains only the old names of 21 JAX releases.
    """
    record = Record()
    names = sorted(old_code_page.all_names(record))
    answers = page.evaluate(
        f"all => {{ const {{ lookUp }} = oldCode({DATA}); return all.map(one => lookUp(one)); }}", names
    )
    for name, answer in zip(names, answers, strict=True):
        status = record.status(name)
        if status.state in ("gone", "warns"):
            assert [answer["state"], answer["name"], answer["instead"], answer["row"]] == [
                status.state,
                *advice(record, status, name),
            ]
        elif name.startswith("jax."):
            assert answer is None, name


def test_code_is_read_line_by_line(page):
    """Test that the page and the checker find the same imports, dotted names, keywords and guards in code."""
    status, items = paste(page, CODE)
    findings = page.evaluate(f"code => oldCode({DATA}).examine(code)", CODE)
    assert sorted((one["line"], one["name"], one["row"]) for one in findings) == FOUND
    assert sorted((one.line, one.name, one.row) for one in find(CODE)) == FOUND
    assert status.startswith(f"{len(findings)} old APIs for JAX") and "find-old-jax FILE" in status
    assert items.count() == len(findings)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = jax.tree_map(f, a)\ny = jnp.product(a)", ["Line 1: jax.tree_map", "Line 2: jax.numpy.product"]),
        ("g = shard_map(f, mesh=mesh, in_specs=s,\n    check_rep=False)", ["Line 1: jax.shard_map(check_rep=)"]),
        ("def pjit(f): ...\npjit(f, in_axis_resources=None)", []),
        ("from jax import pmap\ny = jax.tree_map(f, x)", ["Line 2: jax.tree_map"]),
        ("@partial(xmap, in_axes=0)\ndef f(x): ...", ["Line 1: jax.experimental.maps"]),
        ("from mine import xmap\nxmap(f)", []),
        ("try:\n    from jax.experimental.maps import xmap\nexcept ImportError:\n    xmap = None\nxmap(f)", []),
        (">>> import jax.numpy as n\n>>> n.msort(\n...     a)\nn.msort printed", ["Line 2: jax.numpy.msort"]),
        ("%time jax.tree_leaves(a)", ["Line 1: jax.tree_leaves"]),
        ("from jax import sharding as s\ns.use_mesh(mesh)\nmy.jax.tree_map(s.Mesh)", ["Line 2: jax.sharding.use_mesh"]),
        ("from jax.experimental import stax\nstax.Dense(3)", ["Line 1: jax.experimental.stax"]),
        ("if x: import jax.api\nelse: jax.tree_map", ["Line 1: jax.api", "Line 2: jax.tree_map"]),
        ("import jax\n# jax.tree_map was removed, so:\njax.tree.map(f, a)", []),
        ("from jax import numpy as jnp\ndef jnp():\n    jnp.msort", []),
        ('{"cells": [{"source": "jax.tree_map"}]}', []),
        ("print('hello')", []),
        ("a: int = 3\nfor i in range(a):\n    if i not in b and c is None: raise ValueError('not so nice') from d", []),
    ],
)  # fmt: skip
def test_pieces_of_code(page, code, expected):
    status, items = paste(page, code)
    texts = items.all_inner_texts()
    assert len(texts) == len(expected) and all(
        text.startswith(start) for text, start in zip(texts, expected, strict=True)
    )
    assert status.endswith("The command sees more: find-old-jax FILE.")
    assert status.startswith(
        (f"{len(expected)} old API",) if expected else ("Nothing old for JAX", "A notebook's file is not")
    )


def test_a_message_leads_to_the_row(page):
    """Test that the page examines pasted text without a button press, and that the next tab stop is the link."""
    page.get_by_label("An error message").focus()
    page.keyboard.insert_text(
        "Traceback (most recent call last):\nAttributeError: module 'jax' has no attribute 'tree_map'"
    )
    page.locator("#old-code li").wait_for()
    assert page.locator("#old-code [role=status]").inner_text() == "This message is about jax.tree_map:"
    assert "Now: jax.tree.map." in page.locator("#old-code li").inner_text()
    page.keyboard.press("Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("notebooks/90_old_code_new_jax.html#row-7")
    assert page.locator("#row-7").get_by_role("heading").first.inner_text().startswith("Row 7")


@pytest.mark.parametrize(
    ("text", "status_start", "title"),
    [
        ("ValueError: Please set a mesh via `jax.set_mesh` if", "This message has an entry:", "No mesh is set"),
        ("my program is slower on 8 devices than on one", "No entry has this message.", "Eight devices are slower"),
        ("grad(psum(loss)) is wrong under pmap", "No entry has this message.", "The gradient of a psum"),
    ],
)
def test_what_is_not_old_code_leads_to_an_entry(page, text, status_start, title):
    status, items = paste(page, text)
    assert status.startswith(status_start) and items.first.inner_text().startswith(title)
    with page.expect_navigation():
        items.first.get_by_role("link").click()
    assert page.url.split("#")[0].endswith("problems.html")
    assert page.evaluate("document.getElementById(location.hash.slice(1)).closest('section').innerText").startswith(
        title
    )


def test_every_description_is_recognized(page):
    """Test that the page finds the same entries as the command, even for the shortest descriptions."""
    asked = [query for query, _ in QUERIES]
    explained = page.evaluate(
        "asked => { const data = (id) => JSON.parse(document.getElementById(id).textContent);"
        " const explain = explainPasted(oldCode(data('old-names')), problems(data('problems-data')));"
        " return asked.map(explain).map(({ problem, old, message, closest }) =>"
        " [problem?.id, Boolean(message && old), closest.map((one) => one.id)]); }",
        asked,
    )
    for query, (problem, old, closest) in zip(asked, explained, strict=True):
        known = explain(query)
        if isinstance(known, Problem):
            assert problem == known.id, query
        elif not old:
            assert closest == [one.id for one in closest_problems(query)], query


def test_each_row_has_a_place_to_lead_to(tab, address):
    data = old_code_page.page_data()
    page = page_checks.open_page(tab(), address + data["appendix"])
    assert {f"row-{row}" for row in data["rows"]} <= set(page_checks.element_ids(page))


def test_an_unknown_message(page):
    status, items = paste(page, "ValueError: zzz")
    assert (status, items.count()) == ("No entry and no row of appendix 90 has this message.", 0)
    page.get_by_label("An error message").fill("")
    page.wait_for_function("document.querySelector('#old-code [role=status]').textContent === ''")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (page_checks.PHONE, "dark")])
def test_results_have_no_barrier(tab, address, width, scheme):
    page = page_checks.open_page(tab(width, scheme), address + PAGE)
    paste(page, CODE + "jax.interpreters.ad.linear_jvp\njax.numpy.DeviceArray\n" + "jnp.lax_numpy." + "long" * 40)
    assert [
        *page.errors,
        *page_checks.accessibility_faults(page),
        *page_checks.overflowing_elements(page),
        *page_checks.small_text(page),
    ] == []


def test_without_a_script_a_sentence_leads_to_the_command(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGE)
    assert not page.locator("#old-code").is_visible()
    assert page.locator("noscript p").is_visible()
    assert page.get_by_text("find-old-jax FILE").is_visible()
    context.close()
