"""Of the theme's 1.5 MB of icons, the dozen that the site's pages show.

The theme loads all of Font Awesome Free as one script. This writes another in its place, with the icons that the built
pages name. (Font Awesome Free's icons: CC BY 4.0, https://fontawesome.com/license/free; its notice stays beside them.)
"""

from __future__ import annotations

import json
import re
from pathlib import Path

SCRIPT = "_static/scripts/fontawesome.js"
# name:[width,height,[other names],"code","path"]; of two families that have it the last, solid, is what pages ask for.
DEFINITION = r'[{,]"?([\w-]+)"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"\]'
SHOWN = """// Icons of Font Awesome Free (CC BY 4.0, fontawesome.com), those that these pages show: tools/site/icons.py.
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


def shrink(pages: Path) -> None:
    """Write the smaller script among the built pages. Raises ValueError for an icon that the theme's script lacks."""
    script = pages / SCRIPT
    text = script.read_text(encoding="utf-8")
    if text.startswith("// Icons of"):
        return  # the theme's own comes back with the next change of the theme
    all_icons = {name: (int(width), int(height), path) for name, width, height, path in re.findall(DEFINITION, text)}
    asked = {name for page in pages.rglob("*.html") for name in named(page.read_text(encoding="utf-8"))}
    if missing := asked - all_icons.keys():
        raise ValueError(f"the theme's icons have no {', '.join(sorted(missing))}; tools/site/icons.py reads {SCRIPT}")
    others = {name for path in script.parent.glob("*.js") if path != script for name in named(path.read_text("utf-8"))}
    wanted = {name: all_icons[name] for name in sorted(asked | others & all_icons.keys())}
    script.write_text(SHOWN.replace("ICONS", json.dumps(wanted)), encoding="utf-8")
    (script.parent / "fontawesome.js.map").unlink(missing_ok=True)


def named(text: str) -> list[str]:
    """The icons that a page or a script names."""
    return re.findall(r"\bfa[bsr]?(?:-solid|-brands|-regular)? fa-([\w-]+)", text)
