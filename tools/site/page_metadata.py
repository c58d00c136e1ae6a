"""Add a sitemap, a 404 page, and metadata for search engines and link previews to the site that Sphinx builds."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes

from tools.lessons.notebooks import ROOT
from tools.site import glossary, interactive_figures, old_code_page, problems_page, terms

PREDICTIONS = ROOT / "site" / "predictions.json"  # written by tools/lessons/predictions.py
LICENCE = "https://creativecommons.org/licenses/by/4.0/"
NOT_FOUND_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>No such page — {name}</title><meta name="robots" content="noindex">
<style>
:root {{ color-scheme: light dark; font: 1.1rem/1.6 system-ui, sans-serif }}
main {{ max-width: 34rem; margin: 15vh auto; padding: 0 1rem }}
a {{ color: light-dark(#0b5f95, #7cc4f4) }}
</style></head>
<body><main><h1>There is no such page</h1><p>It may have moved. <a href="{base}">The front page</a> lists all lessons of
{name}, and you can <a href="{base}search.html">search</a> them.</p></main></body></html>
"""
SITEMAP = (
    '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>\n'
)


def embeddable_json(value: Any) -> str:
    """Return the value as JSON without any ``<``, so that it can't close the script element around it."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def page_description(doctree: nodes.document | None) -> str:
    """Return a page's first paragraph of more than 30 characters: in a lesson, the bold one below the title."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = " ".join(paragraph.astext().split())
        if len(text) > 30 and not text.startswith("Open in"):
            return text
    return ""


def add_metadata(app: Any, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Add metadata, embedded data and scripts to a page's head. Replace the title of the front page."""
    if app.builder.name != "html" or not doctree:
        return
    config = app.config
    front = name == config.root_doc
    if front:
        context["title"] = "Parallel JAX on eight devices"
    has_description = 'name="description"' in context["metatags"]
    text = page_description(doctree)
    address = config.html_baseurl + ("" if front else f"{name}.html")
    title = f"{context['title']} — {config.project}"
    tags = {
        "og:type": "website" if front else "article",
        "og:site_name": config.project,
        "og:title": title,
        "og:description": text,
        "og:url": address,
        "og:image": f"{config.html_baseurl}layouts.png",
        "og:image:alt": "Four layouts of one array on eight devices",
    }
    lines = [f'<meta name="description" content="{html.escape(text)}">'] if not has_description else []
    lines += [f'<meta property="{name}" content="{html.escape(value)}">' for name, value in tags.items()]
    lines += ['<meta name="twitter:card" content="summary_large_image">']
    about = {
        "@context": "https://schema.org",
        "@type": "Course" if front else "LearningResource",
        "name": context["title"],
        "description": text,
        "url": address,
        "inLanguage": "en",
        "license": LICENCE,
        "isAccessibleForFree": True,
    }
    if front:
        about["provider"] = {"@type": "Organization", "name": config.author, "url": config.html_baseurl}
    else:
        about["isPartOf"] = {"@type": "Course", "name": config.project, "url": config.html_baseurl}
    lines += [f'<script type="application/ld+json">{embeddable_json(about)}</script>']
    questions = json.loads(PREDICTIONS.read_text(encoding="utf-8")).get(Path(name).name, [])
    if questions:
        lines += [f'<script type="application/json" id="predictions">{embeddable_json(questions)}</script>']
    if name == "old_code":
        lines += [
            f'<script type="application/json" id="old-names">{embeddable_json(old_code_page.page_data())}</script>'
        ]
    if name in ("old_code", "problems"):
        lines += [
            f'<script type="application/json" id="problems-data">{embeddable_json(problems_page.page_data())}</script>'
        ]
    if used := terms.uses(app.env).get(name):
        definitions = {entry.term: entry.definition for entry in glossary.read()}
        by_anchor = {anchor: re.sub("[`$]", "", definitions[term]) for term, anchor in used.items()}
        lines += [f'<script type="application/json" id="terms">{embeddable_json(by_anchor)}</script>']
    for script in interactive_figures.scripts_for(name):
        app.add_js_file(script)
    context["metatags"] += "\n".join(lines)


def write_site_files(app: Any, exception: Exception | None) -> None:
    """Write sitemap.xml, robots.txt, 404.html and, for the search, problems.json after a successful build."""
    if exception or app.builder.name != "html":
        return
    base, folder = app.config.html_baseurl, Path(app.outdir)
    names = ["", *(f"{name}.html" for name in sorted(app.env.found_docs - {app.config.root_doc}))]
    url_elements = "".join(f"<url><loc>{html.escape(base + name)}</loc></url>" for name in names)
    (folder / "sitemap.xml").write_text(SITEMAP.format(url_elements), encoding="utf-8")
    (folder / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n")
    problems = json.dumps(problems_page.page_data(), ensure_ascii=False, separators=(",", ":"))
    (folder / "problems.json").write_text(problems, encoding="utf-8")
    (folder / "404.html").write_text(
        NOT_FOUND_PAGE.format(name=html.escape(app.config.project), base=base), encoding="utf-8"
    )


def always_outdated(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Have Sphinx rebuild the pages with embedded data every time, because the data comes from other files."""
    return sorted({"old_code", "problems"} & env.found_docs)


def setup(app: Any) -> dict[str, bool]:
    app.connect("env-get-outdated", always_outdated)
    app.connect("html-page-context", add_metadata)
    app.connect("build-finished", write_site_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
