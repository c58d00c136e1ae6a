"""Convert formulas from LaTeX to MathML, which browsers display without a script.

The site and the PDF use this module as a Sphinx extension, and the slides call `with_mathml`. JupyterLab, Colab and
GitHub render the notebooks' formulas themselves.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

MATHML = "{http://www.w3.org/1998/Math/MathML}"
# code, which is left unchanged, or a formula between dollar signs
CODE_OR_FORMULA = re.compile(
    r"(?P<code>^(?P<fence>```+).*?^(?P=fence)|(?P<ticks>`+).+?(?P=ticks))"
    r"|(?<![\\$])\$\$(?P<display>[^$]+)\$\$"
    r"|(?<![\\$])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\d)",
    re.M | re.S,
)
RELATIONS = frozenset("=<>≤≥≈")
GROUPED_DIGITS = re.compile(r"\d{1,3}(?:\{,\}\d{3})+")  # 384{,}768, the LaTeX for 384,768
FUNCTION = re.compile(r"(?P<before>[\w}] *)?(?P<name>\\(?:exp|ln|log|tanh))(?P<after> +(?=[^ (]))?")


def to_mathml(latex: str, display: bool = False) -> str:
    """Return a formula as an HTML element in which lines can break before each top-level relation, such as ``=``.

    Lines can't break inside a `<math>` element, so each side of a relation becomes an element of its own. Variables
    are ordinary letters in italic style, because many devices have no font with Unicode's mathematical italic letters.
    """
    from latex2mathml.converter import convert  # pyright: ignore[reportMissingImports]  (only in .venv-site)

    ElementTree.register_namespace("", MATHML[1:-1])
    latex = GROUPED_DIGITS.sub(lambda match: rf"\text{{{match[0].replace('{,}', ',')}}}", latex)
    latex = FUNCTION.sub(_with_spaces, latex)
    root = ElementTree.fromstring(convert(latex))
    for identifier in root.iter(f"{MATHML}mi"):
        if len(name := identifier.text or "") == 1 and name.isalpha() and not identifier.attrib:
            identifier.attrib = {"mathvariant": "normal", "style": "font-style:italic"}
    (row,) = root
    parts: list[list[ElementTree.Element]] = [[]]
    for element in row:
        if element.tag == f"{MATHML}mo" and element.text in RELATIONS and parts[-1]:
            element.set("form", "infix")  # keep the space before a relation that begins its element
            parts.append([])
        parts[-1].append(element)
    style = {"displaystyle": "true"} if display else {}
    formulas = []
    for part in parts:
        formula = ElementTree.Element(f"{MATHML}math", style)
        ElementTree.SubElement(formula, f"{MATHML}mrow").extend(part)
        formulas.append(ElementTree.tostring(formula, encoding="unicode"))
    tag = "div" if display else "span"
    return f'<{tag} class="formula">{"<wbr>".join(formulas)}</{tag}>'


def _with_spaces(function: re.Match) -> str:
    """Add the thin spaces that LaTeX, unlike MathML, puts around a function's name, as in "p log p"."""
    space = r"\, "
    before = function["before"] + space if function["before"] else ""
    return f"{before}{function['name']}{space if function['after'] else ''}"


def with_mathml(markdown: str) -> str:
    """Convert the formulas in a Markdown text to MathML, but leave dollar signs in code unchanged."""

    def convert(match: re.Match) -> str:
        if match["code"]:
            return match[0]
        return to_mathml(match["display"] or match["inline"], display=bool(match["display"]))

    return CODE_OR_FORMULA.sub(convert, markdown)


def setup(app: Any) -> dict[str, bool]:
    """Make Sphinx write formulas as MathML, instead of loading MathJax from another site."""
    from docutils import nodes

    def write_inline(self: Any, node: Any) -> None:
        self.body.append(to_mathml(node.astext()))
        raise nodes.SkipNode

    def write_block(self: Any, node: Any) -> None:
        self.body.append(to_mathml(node.astext(), display=True))
        raise nodes.SkipNode

    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
