"""Update the generated parts of lessons and pages: `make stamp`, or `make stamp REPOSITORY=owner/name REVISION=v1`.

The generated parts are each lesson's setup cell and badges, from the constants in setup_cell.py; the ids of new cells;
the canonical form of notebooks; and the README's tables of lessons and routes. With arguments, first stamp the
repository's name and the revision into setup_cell.py, and then into the URLs on all pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.lessons import cell_names, course_routes, embed_scripts, notebooks, readme

PAGES = (  # files other than notebooks that contain the repository's URL
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "packages/find-old-jax/README.md",
    "packages/shardcost/README.md",
    "teach/workshop.md",
    ".github/CONTRIBUTING.md",
)
BADGE = re.compile(  # badge links: the service, the repository's name, and the revision
    r"(?P<place>colab\.research\.google\.com/github/|welcome\?src=https://github\.com/|mybinder\.org/v2/gh/|codespaces\.new/)"
    r"(?P<name>[\w.-]+/[\w.-]+)(?P<between>/blob/|/tree/|/)(?P<revision>[\w.-]+)(?=[/?])"
)


def stamp(root: Path, name: str, revision: str) -> None:
    """Write a repository's name and a revision into all files that contain them, and update the generated content.

    Raises ValueError if `name` isn't of the form owner/name, if the revision contains characters other than letters,
    digits, `_`, `.` and `-`, or if a lesson or the README lacks a line that the tables need.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or not re.fullmatch(r"[\w.-]+", revision):
        raise ValueError(f"expected owner/name and a branch, tag or commit; got {name!r} and {revision!r}")
    cell = root / "tools" / "lessons" / "setup_cell.py"
    text = cell.read_text(encoding="utf-8")
    old_name, _ = notebooks.repository(text)
    text = re.sub(r"^REPOSITORY = .*$", f'REPOSITORY = "{name}"', text, flags=re.M)
    text = re.sub(r"^REVISION = .*$", f'REVISION = "{revision}"', text, flags=re.M)
    cell.write_text(text, encoding="utf-8")

    owner, repository = name.split("/")
    pages = "https://{}.github.io/{}".format(*map(re.escape, old_name.split("/")))

    def update_addresses(page_text: str) -> str:
        updated = re.sub(rf"{pages}(?![\w.-])", f"https://{owner}.github.io/{repository}", page_text)
        updated = re.sub(rf"(https://github\.com/){re.escape(old_name)}(?![\w.-])", rf"\g<1>{name}", updated)
        return BADGE.sub(rf"\g<place>{name}\g<between>{notebooks.copies_branch(revision)}", updated)

    for page in [*(root / page for page in PAGES), *sorted((root / "examples").glob("*.py"))]:
        page.write_text(update_addresses(page.read_text(encoding="utf-8")), encoding="utf-8")
    for path in notebooks.lessons(root):
        badges = notebooks.badges(f"notebooks/{path.name}", text)
        notebook = notebooks.read(path)
        title = notebook.cells[0]
        title.source = re.sub(r"\n*(^\[!\[Open in .*\n?)*\Z", f"\n\n{badges}", title.source, count=1, flags=re.M)
        for cell in notebook.cells:
            if cell.id == "setup":
                cell.source = text.rstrip("\n")
                cell.metadata.update(notebooks.HIDDEN_CODE)
            elif cell.id == "opening":  # hide the code, because only its picture matters
                cell.metadata.update(notebooks.HIDDEN_CODE)
            elif cell.id == "script":
                script = embed_scripts.script_of(path)
                cell.source = update_addresses(embed_scripts.cell_source(script) if script else cell.source)
            elif cell.cell_type == "markdown":
                cell.source = update_addresses(cell.source)
        cell_names.name_cells(notebook)
        notebooks.write(notebook, path)
    page = root / "examples" / "README.md"
    if page.exists():
        page.write_text(embed_scripts.with_script_table(page.read_text(encoding="utf-8"), root), encoding="utf-8")
    page = root / "README.md"
    readme_text = readme.with_lesson_tables(page.read_text(encoding="utf-8"), readme.rows(root), text)
    page.write_text(course_routes.with_route_tables(readme_text, text), encoding="utf-8")


if __name__ == "__main__":
    current = notebooks.repository()
    given = [argument or default for argument, default in zip(sys.argv[1:], current, strict=False)]
    try:
        stamp(notebooks.ROOT, *(given or current))
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    print("Stamped {} at {}.".format(*notebooks.repository()))
