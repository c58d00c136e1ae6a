"""Notebooks as source: read, put into canonical form, write; the setup cell and the badges that each must carry."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from tools import NUMBER

ROOT = Path(__file__).resolve().parents[2]
SETUP = Path(__file__).with_name("setup_cell.py")
PACKAGES = ("exercises", "old_jax", "utils")  # what lessons import of the course
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
QUESTION = "> **Predict.**"  # begins a block of text that asks for a prediction
LEADS = "leads"  # the tag of a text that does not read what was printed, but leads on: to a question, or to code
TELLS = "tells"  # the tag of a cell whose code tells an answer, as a picture's description may
HIDDEN = {"cellView": "form", "jupyter": {"source_hidden": True}}  # code behind a click, in Colab and elsewhere
CELL_METADATA = {"tags", "varies", "cellView", "jupyter", "slideshow"}  # what a cell may carry


def lessons(root: Path = ROOT) -> list[Path]:
    """In the order of the course. A lesson in two parts is 05 and 05b."""
    found = (root / "notebooks").glob("*.ipynb")
    return sorted((path for path in found if re.match(f"{NUMBER}_", path.name)), key=number)


def lesson(wanted: str, root: Path = ROOT) -> Path:
    """The notebook of this number; 2 is 02, and so is 02_sharding. Raises ValueError, with all numbers, without one."""
    found = {number(path): path for path in lessons(root)}
    begin = wanted.lower().split("_")[0]
    meant = begin if begin in found else f"0{begin}"
    if meant not in found:
        raise ValueError(f"there is no lesson {wanted or 'without a number'}; there are {', '.join(found)}")
    return found[meant]


def number(path: Path) -> str:
    """'05' or '05b', the first part of a lesson's name."""
    return path.name.split("_")[0]


def repository(text: str | None = None) -> tuple[str, str]:
    """The one constant: 'owner/name' and the revision, as they stand in the setup cell."""
    found = re.search(r'^REPOSITORY = "([\w.-]+/[\w.-]+)"\nREVISION = "([\w.-]+)"$', text or setup_source(), re.M)
    if not found:
        raise ValueError("the setup cell has no lines REPOSITORY = ... and REVISION = ...")
    return found[1], found[2]


def setup_source() -> str:
    return SETUP.read_text(encoding="utf-8").rstrip("\n")


def copies(revision: str) -> str:
    """The branch where the badges lead, whose lessons have no outputs: .github/workflows/copies.yml makes it.

    It does so of main and of tags. Of another revision nobody makes one, and the badges lead to itself.
    """
    return f"copies-{revision}" if re.fullmatch(r"main|v[\d.]+", revision) else revision


def colab(path: str, setup: str | None = None) -> str:
    """The address that opens the notebook at `path` in Colab."""
    name, revision = repository(setup)
    return f"https://colab.research.google.com/github/{name}/blob/{copies(revision)}/{path}"


def badges(path: str, setup: str | None = None) -> str:
    """The four badges, as Markdown, of the notebook at `path` in the repository that the setup cell names."""
    name, revision = repository(setup)
    revision = copies(revision)
    blob = f"{name}/blob/{revision}/{path}"
    return (
        "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"({colab(path, setup)})\n"
        "[![Open in Kaggle](https://kaggle.com/static/images/open-in-kaggle.svg)]"
        f"(https://kaggle.com/kernels/welcome?src=https://github.com/{blob})\n"
        "[![Open in Binder](https://mybinder.org/badge_logo.svg)]"
        f"(https://mybinder.org/v2/gh/{name}/{revision}?urlpath=lab/tree/{path})\n"
        "[![Open in Codespaces](https://img.shields.io/badge/Open%20in-Codespaces-24292f?logo=github)]"
        f"(https://codespaces.new/{name}/tree/{revision}?quickstart=1)"
    )


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def canonical(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The form that is committed: no counts, no timestamps, only the metadata that the course uses, and needs."""
    notebook = nbformat.from_dict(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in CELL_METADATA})
        if cell.metadata.get("slideshow", {}).get("slide_type", "") in ("", slide_rule(cell)):
            cell.metadata.pop("slideshow", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_canonical_output(output) for output in merge_streams(cell.outputs)]
    return notebook


def merge_streams(outputs: list) -> list:
    """One stream's text arrives in as many parts as the kernel likes; here it becomes one output.

    What a carriage return overwrote (a progress bar) is gone, as on a terminal; a stream that leaves nothing, too.
    """
    merged: list = []
    for output in outputs:
        last = merged[-1] if merged else None
        if (
            last is not None
            and output.output_type == "stream"
            and last.output_type == "stream"
            and last.name == output.name
        ):
            last.text += output.text
        else:
            merged.append(nbformat.from_dict(output))
    for output in merged:
        if output.output_type == "stream" and "\r" in output.text:
            output.text = "\n".join(map(_overwritten, output.text.split("\n")))
    return [output for output in merged if output.output_type != "stream" or output.text.strip()]


def _overwritten(line: str) -> str:
    """What a terminal shows of a line with carriage returns: each part is written over the one before."""
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip()


def _canonical_output(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if "execution_count" in output:
        output.execution_count = None
    if output.output_type == "stream":  # of a script's cell: what a reader's first run says
        output.text = re.sub(r"^Overwriting (?=\w+\.py$)", "Writing ", output.text, flags=re.M)
    return output


def slide_rule(cell: nbformat.NotebookNode) -> str:
    """Where a cell stands on the slides unless its metadata says otherwise. (In words: notebooks/README.md.)"""
    if cell.cell_type == "code":
        if re.fullmatch(r"ex-.*-stub", cell.id):
            return "-"
        return "skip" if re.fullmatch(r"setup|imports|script|ex-.*-check", cell.id) else "subslide"
    text = re.sub(r"^```.*?^```$", "", cell.source, flags=re.M | re.S)  # a listing's comments are no headings
    if re.search(r"^##? ", text, re.M):
        return "slide"
    return "subslide" if re.search(rf"^(### |{re.escape(QUESTION)}|\|)", text, re.M) else "notes"


def blocks(source: str) -> list[str]:
    """A text, parted at its empty lines; a listing between fences stays whole."""
    fences = re.split(r"(^```.*?^```$)", source, flags=re.M | re.S)
    parts = [[part] if part.startswith("```") else re.split(r"\n\s*\n", part) for part in fences]
    return [block.strip("\n") for part in parts for block in part if block.strip()]


def dumps(notebook: nbformat.NotebookNode) -> str:
    return nbformat.writes(canonical(notebook)).rstrip("\n") + "\n"


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.write_text(dumps(notebook), encoding="utf-8")
