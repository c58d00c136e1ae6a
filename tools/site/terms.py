"""Link each lesson's first use of a glossary term to the term's entry, and each entry to the lessons that use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

from tools import NUMBER
from tools.site import glossary

# Terms become links only in prose, not in headings, code, formulas, existing links, tables, captions or raw HTML.
NOT_PROSE = (
    nodes.title,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.reference,
    addnodes.pending_xref,
    nodes.table,
    nodes.caption,
    nodes.raw,
    nodes.comment,
)
LESSON = re.compile(rf"notebooks/({NUMBER})_")


def prose(document: nodes.Node) -> Iterator[nodes.Text]:
    """Yield the document's prose as text nodes, in order, excluding cell outputs and collapsed answers."""
    folded = False
    for child in document.children:
        if isinstance(child, nodes.raw):
            folded = ("answer" in child.astext() or folded) and "</details>" not in child.astext()
        elif folded:
            continue
        elif isinstance(child, nodes.Text):
            yield child
        elif not isinstance(child, NOT_PROSE) and "cell_output" not in getattr(child, "attributes", {}).get(
            "classes", ()
        ):
            yield from prose(child)


def merge_text_nodes(document: nodes.Node) -> None:
    """Merge adjacent text nodes, because the parser splits text into lines and a term may span two of them."""
    for element in document.findall(nodes.TextElement):
        joined: list[nodes.Node] = []
        for child in element.children:
            if joined and isinstance(child, nodes.Text) and isinstance(joined[-1], nodes.Text):
                joined[-1] = nodes.Text(joined[-1] + child)
            else:
                joined.append(child)
        if len(joined) < len(element.children):
            element.children = []
            element += joined


def link_first_uses(document: nodes.document, lesson: str, entries: list[glossary.Entry]) -> dict[str, str]:
    """Turn the first use of each glossary entry into a link, and return the anchors of these uses, by term."""
    remaining = {entry.term: entry for entry in entries if entry.counts_in(lesson)}
    anchors = {}
    merge_text_nodes(document)
    for text in list(prose(document)):
        uses = glossary.first_uses(text, remaining.values())
        parts, end = [], 0
        for start, stop, entry in uses:
            anchor = anchors[entry.term] = f"use-{lesson}-{glossary.identifier(entry.term)}"
            del remaining[entry.term]
            target = f"term-{glossary.identifier(entry.term)}"
            xref = addnodes.pending_xref(
                "", refdomain="std", reftype="ref", reftarget=target, refexplicit=True, refwarn=True
            )
            xref += nodes.inline("", text[start:stop])
            parts += [nodes.Text(text[end:start]), nodes.inline("", "", xref, ids=[anchor])]
            end = stop
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])
    return anchors


class FirstUses(SphinxTransform):
    """Link the first use of each term in a lesson. On the glossary page, label the entries as link targets."""

    default_priority = 850

    def apply(self, **kwargs: Any) -> None:
        docname = self.env.docname
        if lesson := LESSON.match(docname):
            # Reread the lesson if any of these files changes.
            for file in (str(glossary.GLOSSARY), glossary.__file__, __file__):
                self.env.note_dependency(file)
            uses(self.env)[docname] = link_first_uses(self.document, lesson[1], glossary.read())
        elif docname == "glossary":
            for entry, section in zip(glossary.read(), sections(self.document), strict=True):
                label_entry(self.env, docname, entry, section)


def sections(document: nodes.document) -> list[nodes.section]:
    """Return the sections of the glossary's entries, which are nested in the page's own section."""
    return [node for node in document.findall(nodes.section) if isinstance(node.parent, nodes.section)]


def label_entry(env: BuildEnvironment, docname: str, entry: glossary.Entry, section: nodes.section) -> None:
    """Register the entry as a cross-reference target, and mark the language of each translation in its second line."""
    labels, label = env.get_domain("std"), f"term-{glossary.identifier(entry.term)}"
    labels.labels[label] = (docname, section["ids"][0], entry.term)
    labels.anonlabels[label] = (docname, section["ids"][0])
    paragraph = next(iter(section.findall(nodes.paragraph)))
    line = nodes.paragraph(classes=["chinese"])
    line += nodes.inline("", entry.simplified, classes=["language-zh-hans"])
    line += nodes.Text(" · ")
    line += nodes.inline("", entry.traditional, classes=["language-zh-hant"])
    if entry.forms[1:]:
        line += [nodes.Text(" · "), nodes.emphasis("", ", ".join(entry.forms[1:]))]
    paragraph.parent.replace(paragraph, line)


def uses(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """Return the anchors of each lesson's first uses, by document name and by term."""
    if not hasattr(env, "course_uses"):
        env.course_uses = {}
    return env.course_uses


def purge_uses(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Delete a document's anchors, because Sphinx is about to reread or remove the document."""
    uses(env).pop(docname, None)


def merge_uses(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Copy the anchors of these documents from the environment of a parallel process."""
    uses(env).update({docname: anchors for docname, anchors in uses(other).items() if docname in docnames})


def pages_to_rewrite(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Have Sphinx rewrite the glossary page in every build, because it lists the lessons that use each term."""
    return ["glossary"]


def list_uses(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Add a list of lessons to each glossary entry: those that use the term, with links to the first uses."""
    if docname != "glossary":
        return
    for entry, section in zip(glossary.read(), sections(document), strict=True):
        line = nodes.paragraph("", "Lessons ", classes=["uses"])
        for lesson, anchors in sorted(uses(app.env).items()):
            if entry.term in anchors:
                address = app.builder.get_relative_uri(docname, lesson) + "#" + anchors[entry.term]
                [number] = LESSON.findall(lesson)
                line += [nodes.reference("", number, refuri=address, internal=True), nodes.Text(" ")]
        section += line


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(FirstUses)
    app.connect("env-purge-doc", purge_uses)
    app.connect("env-merge-info", merge_uses)
    app.connect("env-updated", pages_to_rewrite)
    app.connect("doctree-resolved", list_uses)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
