"""Test the Sphinx extension that links the first use of each term to the glossary, with small documents."""

from __future__ import annotations

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from sphinx import addnodes

from tools.site import glossary, terms

MESH = glossary.Entry("mesh", "网格", "網格", ("mesh", "meshes"), None, "A grid.")
RING = glossary.Entry("ring", "环", "環", ("ring", "rings"), frozenset({"07"}), "A circle.")


def linked(text, lesson="07", entries=(MESH, RING)):
    """Link the terms in a text. Return the text, with each link as [words](target), and the anchors by term."""
    document = publish_doctree(text, settings_overrides={"report_level": 5})
    anchors = terms.link_first_uses(document, lesson, list(entries))
    for link in list(document.findall(addnodes.pending_xref)):
        link.replace_self(nodes.Text(f"[{link.astext()}]({link['reftarget']})"))
    return document.astext(), anchors


def test_the_first_use_and_no_other():
    text, anchors = linked("A mesh, a ring, two meshes.\n\nA mesh again.")
    assert text == "A [mesh](term-mesh), a [ring](term-ring), two meshes.\n\nA mesh again."
    assert anchors == {"mesh": "use-07-mesh", "ring": "use-07-ring"}


def test_an_entry_is_linked_only_in_its_lessons():
    assert linked("A ring on a mesh.", lesson="08") == (
        "A ring on a [mesh](term-mesh).",
        {"mesh": "use-08-mesh"},
    )


@pytest.mark.parametrize(
    "before",
    [
        "A mesh\n======",
        "The code ``mesh``.",
        "The formula :math:`mesh`.",
        "A `mesh <https://jax.dev>`_ elsewhere.",
        "::\n\n    mesh = 1",
        ".. image:: x.png\n   :alt: a mesh",
        "=====  =====\na      mesh\n=====  =====",
        ".. raw:: html\n\n   <b>mesh</b>",
    ],
    ids=["heading", "code", "formula", "link", "block of code", "picture", "table", "raw"],
)
def test_only_prose_is_linked(before):
    text, _ = linked(f"{before}\n\nAt last a mesh.")
    assert text.endswith("At last a [mesh](term-mesh).")
    assert text.count("](term-mesh)") == 1


def test_what_a_cell_prints_is_passed_over():
    document = publish_doctree("")
    document += nodes.container("", nodes.paragraph("", "a mesh"), classes=["cell_output"])
    assert terms.link_first_uses(document, "07", [MESH]) == {}


def test_a_folded_answer_is_passed_over():
    document = publish_doctree("")
    document += nodes.raw("", '<details class="answer"><summary>Hint</summary>', format="html")
    document += nodes.paragraph("", "a mesh")
    document += nodes.raw("", "</details>", format="html")
    assert terms.link_first_uses(document, "07", [MESH]) == {}
    document += nodes.paragraph("", "a mesh")
    assert terms.link_first_uses(document, "07", [MESH]) == {"mesh": "use-07-mesh"}


def test_a_term_on_two_lines_is_found():
    axis = glossary.Entry("mesh axis", "网格轴", "網格軸", ("mesh axis",), None, "An axis.")
    document = publish_doctree("")
    document += nodes.paragraph("", "", nodes.Text("a mesh"), nodes.Text("\n"), nodes.Text("axis"))
    assert terms.link_first_uses(document, "07", [axis]) == {"mesh axis": "use-07-mesh-axis"}
