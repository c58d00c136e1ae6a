"""Replace the theme's 1.5 MB of icons with the dozen icons that the site's pages show.

The theme loads all of Font Awesome Free as a single script. This module replaces that script with one that contains
only the icons named in the built pages. (Font Awesome Free's icons are licensed under CC BY 4.0,
https://fontawesome.com/license/free. The new script keeps the licence notice.)
"""

from __future__ import annotations

import json
import re
from pathlib import Path

SCRIPT = "_static/scripts/fontawesome.js"
# name:[width,height,[other names],"code","path"]. If two families contain an icon, pages show the last one (solid).
ICON_DEFINITION = r'[{,]"?([\w-]+)"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"\]'
SCRIPT_TEMPLATE = """// Icons of Font Awesome Free (CC BY 4.0, fontawesome.com), written by tools/site/trim_icons.py.
const icons = ICONS;
const draw = () => {
  for (const mark of document.querySelectorAll(":is(i, span)[class*='fa-']")) {
    const name = Object.keys(icons).find((each) => mark.classList.contains(`fa-${each}`));
    if (!name) continue;
    const [width, height, path] = icons[name];
    const box = document.createElement("template");
    box.innerHTML = `<svg viewBox="0 0 ${width} ${height}"><path fill="currentColor" d="${path}"/></svg>`;
    const svg = box.content.firstChild;
    for (const { name, value } of mark.attributes) svg.setAttribute(name, value);
    svg.classList.add("svg-inline--fa");
    svg.setAttribute("aria-hidden", "true");
    mark.replaceWith(svg);
  }
};
draw();
new MutationObserver(draw).observe(document.body, { childList: true, subtree: true });
"""


def shrink_icons(pages: Path) -> None:
    """Replace the icon script in the built site. Raises ValueError if a page names an icon that the script lacks."""
    script = pages / SCRIPT
    text = script.read_text(encoding="utf-8")
    if text.startswith("// Icons of"):
        return  # already replaced; Sphinx writes the theme's script again only if the theme changes
    all_icons = {
        name: (int(width), int(height), path) for name, width, height, path in re.findall(ICON_DEFINITION, text)
    }
    on_pages = {name for page in pages.rglob("*.html") for name in icon_names(page.read_text(encoding="utf-8"))}
    if missing := on_pages - all_icons.keys():
        raise ValueError(f"cannot find the icons {', '.join(sorted(missing))} in the theme's script {SCRIPT}")
    theme_icons = {
        name for path in script.parent.glob("*.js") if path != script for name in icon_names(path.read_text("utf-8"))
    }
    icons = {name: all_icons[name] for name in sorted(on_pages | theme_icons & all_icons.keys())}
    script.write_text(SCRIPT_TEMPLATE.replace("ICONS", json.dumps(icons)), encoding="utf-8")
    (script.parent / "fontawesome.js.map").unlink(missing_ok=True)


def icon_names(text: str) -> list[str]:
    """Return the names of the icons that a page or a script uses."""
    return re.findall(r"\bfa[bsr]?(?:-solid|-brands|-regular)? fa-([\w-]+)", text)
