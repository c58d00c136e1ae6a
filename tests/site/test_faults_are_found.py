"""Pages with a fault of each kind, and the check that finds it; a sound page, on which each finds nothing."""

from __future__ import annotations

import pytest

from tests.site import faults
from tests.site.conftest import serve

SOUND = """<!doctype html><html lang="en"><head><title>A page</title></head>
<body><main><article><h1 id="top">A page</h1>
<p>Some words, <a href="#top">and a link</a>. <img src="dot.svg" alt="a dot" width="9" height="9"></p>{}
</article></main></body></html>"""
DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="4" cx="4" cy="4"/></svg>'


@pytest.fixture
def look(tab, tmp_path):
    """Open the sound page with something added to it."""
    (tmp_path / "dot.svg").write_text(DOT)
    served = serve(tmp_path)
    base = next(served)

    def with_this(addition=""):
        (tmp_path / "index.html").write_text(SOUND.format(addition))
        page = tab(faults.PHONE)
        page.base = base
        return faults.visit(page, base + "index.html")

    yield with_this
    next(served, None)


def everything(page):
    known = {"index.html": faults.anchors(page), "dot.svg": []}
    dead = faults.dead(faults.links(page), page.base, known)
    found = [faults.images(page), dead, faults.overflow(page), faults.small_print(page), faults.barriers(page)]
    found += [faults.broken_words(page), faults.lone_cards(page), faults.gaps(page)]
    favicon = [error for error in page.errors if "favicon" not in error and "404 (File not found)" not in error]
    return [fault for faults_ in [*found, favicon] for fault in faults_]


def test_a_sound_page_has_none(look):
    assert everything(look()) == []


@pytest.mark.parametrize(
    ("addition", "words"),
    [
        ('<p><img src="gone.png" alt="gone" width="9" height="9"></p>', "broken: "),
        ('<p><img src="dot.svg" alt="" width="9" height="9"></p>', "no alt: "),
        ('<p><a href="gone.html">away</a></p>', "no page: "),
        ('<p><a href="index.html#gone">away</a></p>', "no anchor: "),
        ('<div style="width: 500px; height: 9px">wide</div>', "the page is 5"),
        ('<p style="font-size: 13px">small</p>', "13px: small"),
        ('<p style="color: #aaa">pale</p>', "color-contrast"),
        ("<p><button></button></p>", "button-name"),
        (
            '<table><tr><td style="overflow-wrap: anywhere"><code>' + "word" * 30 + "</code></td></tr></table>",
            "broken in two: wordword",
        ),
        (
            '<ol class="ways" style="display: flex; flex-wrap: wrap">' + '<li style="width: 40%">a</li>' * 3 + "</ol>",
            "alone: a",
        ),
        (
            '<button class="answer-waits">show</button><hr style="margin: 40px 0"><h2 style="margin: 0">x</h2>',
            "px before x",
        ),
        ("<script>console.error('oh')</script>", "oh"),
        ("<script>undefined.x</script>", "Cannot read"),
        ('<script src="https://cdn.example/x.js"></script>', "asks for https://cdn.example/x.js"),
    ],
)
def test_each_fault_is_found(look, addition, words):
    assert any(words in fault for fault in everything(look(addition)))


def test_what_scrolls_in_its_own_box_is_no_overflow(look):
    page = look('<pre tabindex="0" style="overflow-x: auto">' + "wide " * 200 + "</pre>")
    assert faults.overflow(page) == []


def test_what_is_cut_off_on_paper_is_found(look):
    assert faults.cut(look()) == []
    assert faults.cut(look("<pre>" + "wide " * 200 + "</pre>"))
