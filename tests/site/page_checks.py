"""Open the site's pages, and check them. Each function that checks a rule returns a list of faults."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urldefrag

from axe_playwright_python.sync_playwright import Axe

PHONE = 390


def open_page(tab: Any, url: str, until: str = "load") -> Any:
    """Open a page. With `until="networkidle"`, wait until it hasn't used the network for half a second."""
    tab.goto(url, wait_until=until)
    return tab


def broken_images(tab: Any) -> list[str]:
    """Return the pictures that don't load or have no alt text.

    Decorative pictures, outside the text, may have an empty alt text.
    """
    return tab.evaluate(
        """async () => {
            const all = [...document.querySelectorAll('img')].filter(img => img.checkVisibility());
            const there = img => img.complete && img.naturalWidth > 0;
            for (const img of all) if (img.loading === 'lazy') img.loading = 'eager';
            await Promise.all(all.map(img => there(img) || img.decode().catch(() => 0)));
            const ornament = img => img.hasAttribute('alt') && (!img.closest('main'));
            return all.flatMap(img => [
                ...(there(img) ? [] : [`broken: ${img.src}`]),
                ...(img.alt.trim() || ornament(img) ? [] : [`no alt: ${img.src}`])]);
        }"""
    )


def link_targets(tab: Any) -> list[str]:
    """Return the targets of all links on the page."""
    return tab.evaluate("() => [...document.querySelectorAll('a[href]')].map(a => a.href)")


def element_ids(tab: Any) -> list[str]:
    return tab.evaluate("() => [...document.querySelectorAll('[id]')].map(node => node.id)")


def dead_links(links: list[str], base: str, known: dict[str, list[str]]) -> list[str]:
    """Return the internal links to a missing file or anchor. `known` maps each file to its anchors."""
    faults = []
    for link in links:
        if not link.startswith(base):
            continue
        page, anchor = urldefrag(link.removeprefix(base))
        page = page.split("?")[0] or "index.html"
        if page not in known:
            faults.append(f"no page: {link}")
        elif anchor and page.endswith(".html") and unquote(anchor) not in known[page]:
            faults.append(f"no anchor: {link}")
    return faults


def overflowing_elements(tab: Any) -> list[str]:
    """Report a page that scrolls sideways, and elements that extend beyond its edge outside a scrolling box."""
    return tab.evaluate(
        """() => {
            const faults = [], width = innerWidth, root = document.documentElement;
            if (root.scrollWidth > width) faults.push(`the page is ${root.scrollWidth} px wide`);
            const scrolls = node => node && node !== document.body && (
                /auto|scroll|hidden|clip/.test(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
            for (const node of document.querySelectorAll('main *')) {
                const box = node.getBoundingClientRect();
                if (box.width && box.right > width + 1 && !scrolls(node.parentElement) && !scrolls(node))
                    faults.push(`${node.tagName} ${node.className} ends at ${Math.round(box.right)}`);
            }
            return faults;
        }"""
    )


def small_text(tab: Any) -> list[str]:
    """Return paragraphs, list items, table cells and summaries in a font smaller than 14 px."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('main article :is(p, li, td, summary)')].filter(node =>
            node.innerText.trim() && parseFloat(getComputedStyle(node).fontSize) < 14
        ).map(node => `${getComputedStyle(node).fontSize}: ${node.innerText.slice(0, 60)}`)"""
    )


CONTRAST = "color-contrast"  # an axe rule that would take four fifths of the time if it checked every element
STYLE_SAMPLE = "data-style-sample"


def accessibility_faults(tab: Any, *only: str) -> list[str]:
    """Return the violations that axe rates as serious or critical, for all rules or for those in `only`.

    Contrast is checked only on the elements that `mark_style_samples` marks, and all other rules on the whole page.
    """
    mark_style_samples(tab)
    if not tab.evaluate("() => 'axe' in window"):
        tab.evaluate(Axe().axe_script)
        selector = {"rules": [{"id": CONTRAST, "selector": f"[{STYLE_SAMPLE}]"}]}
        tab.evaluate("changes => axe.configure(changes)", selector)
    chosen = {"runOnly": {"type": "rule", "values": only}} if only else {}
    violations = tab.evaluate("options => axe.run(options)", {"resultTypes": ["violations"], **chosen})["violations"]
    return [
        f"{fault['id']}: {node['target']} {node.get('failureSummary', '').splitlines()[-1:]}"
        for fault in violations
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def mark_style_samples(tab: Any) -> int:
    """Mark up to three elements of each text style on the page, and return how many are marked.

    Two elements have the same style if they agree in the colour, size, weight and shadow of their text, in all
    backgrounds and opacities behind it, and in whether they're disabled or positioned. Texts of a single character are
    left out, because axe doesn't check their contrast.
    """
    return tab.evaluate(
        """mark => {
            document.querySelectorAll(`[${mark}]`).forEach(node => node.removeAttribute(mark));
            const styles = new Map(), grounds = new Map();
            const ground = node => {
                if (!node) return '';
                if (!grounds.has(node)) {
                    const css = getComputedStyle(node);
                    const own = [css.backgroundColor, css.backgroundImage, css.opacity, css.filter,
                        /fixed|sticky|absolute/.test(css.position), node.matches(':disabled, [aria-disabled=true]')];
                    const plain = own.join() === 'rgba(0, 0, 0, 0),none,1,none,false,false';
                    grounds.set(node, (plain ? '' : `${own};`) + ground(node.parentElement));
                }
                return grounds.get(node);
            };
            for (const node of document.body.querySelectorAll('*')) {
                const texts = [...node.childNodes].filter(child => child.nodeType === 3);
                const text = texts.map(child => child.data).join('').trim();
                if (text.length < 2 && !node.matches('input, select, textarea')) continue;
                if (!node.checkVisibility({ visibilityProperty: true })) continue;
                const css = getComputedStyle(node);
                const style = [css.color, css.fontSize, css.fontWeight, css.textShadow, ground(node)].join('|');
                if (!styles.has(style)) styles.set(style, []);
                styles.get(style).push(node);
            }
            for (const nodes of styles.values())
                for (const node of [nodes[0], nodes[nodes.length >> 1], nodes.at(-1)]) node.setAttribute(mark, '');
            return document.querySelectorAll(`[${mark}]`).length;
        }""",
        STYLE_SAMPLE,
    )


def small_code(tab: Any) -> list[str]:
    """Return code in a font smaller than 14 px, except code wider than 88 columns."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('div.cell_input pre:not([style*=columns])')].filter(pre =>
            parseFloat(getComputedStyle(pre).fontSize) < 14).map(pre => `small: ${pre.innerText.slice(0, 60)}`)"""
    )


def clipped_elements(tab: Any) -> list[str]:
    """Return elements wider than their container, which are cut off in print and need scrolling on a wide screen."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('pre, table, img, p, h2, h3, h4')].filter(node => {
            const box = node.getBoundingClientRect();
            return box.width && node.checkVisibility() && (
                node.scrollWidth > node.clientWidth + 1 && node.tagName === 'PRE'
                || box.right > document.documentElement.clientWidth + 1);
        }).map(node => `${node.tagName}: ${node.innerText.slice(0, 60)}`)"""
    )


def broken_words(tab: Any) -> list[str]:
    """Return words in tables that are broken across lines, except after a hyphen."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('main :is(th, td)')].flatMap(cell => {
            const found = [], texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = new Range();
            while (texts.nextNode()) {
                const text = texts.currentNode, code = text.parentElement.closest('code');
                if (text.parentElement.closest('pre')) continue;
                for (const word of text.data.matchAll(code ? /\\S+/g : /[^\\s\\-–—]+/g)) {
                    range.setStart(text, word.index);
                    range.setEnd(text, word.index + word[0].length);
                    const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
                    if (lines.size > 1) found.push(`broken in two: ${word[0]}`);
                }
            }
            return found;
        })"""
    )


def lone_cards(tab: Any) -> list[str]:
    """Return cards that are alone in a row while another row has several."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('ol.ways')].flatMap(list => {
            const tops = [...list.children].map(card => Math.round(card.getBoundingClientRect().top));
            const lone = [...list.children].filter((_, i) => tops.filter(top => top === tops[i]).length === 1);
            return lone.length < tops.length ? lone.map(card => `alone: ${card.innerText}`) : [];
        })"""
    )


def wide_gaps(tab: Any) -> list[str]:
    """Return the gaps after a "show the answer" button that are larger than the margin of a heading."""
    return tab.evaluate(
        """() => [...document.querySelectorAll('button.show-answer')].flatMap(button => {
            const below = button.getBoundingClientRect().bottom;
            const seen = 'article :is(p, pre, h2, h3, h4, blockquote, form, li, .interactive-figure)';
            const next = [...document.querySelectorAll(seen)]
                .filter(node => node.checkVisibility({ contentVisibilityAuto: true }) && !node.closest('[hidden]'))
                .map(node => [node.getBoundingClientRect().top - below, node]).filter(([gap]) => gap >= 0)
                .sort(([a], [b]) => a - b)[0];
            const most = Math.max(parseFloat(getComputedStyle(next[1]).marginTop), 24);
            return next[0] > most + 2 ? [`${Math.round(next[0])} px before ${next[1].innerText.slice(0, 40)}`] : [];
        })"""
    )
