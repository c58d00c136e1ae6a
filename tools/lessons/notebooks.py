"""Read notebooks, write them in canonical form, and generate their setup cells and badges."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

from tools import NUMBER

ROOT = Path(__file__).resolve().parents[2]
SETUP = Path(__file__).with_name("setup_cell.py")
PACKAGES = ("exercises", "lesson_helpers", "packages", "utils", ".one-program")  # the course's files that lessons need
IMPORTED = ("exercises", "find_old_jax", "lesson_helpers", "shardcost", "utils")  # the packages that lessons can import
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
QUESTION = "> **Predict.**"  # starts a block of text that asks for a prediction
ANSWER_TAG = "answer"  # tags text that reveals an answer, up to the next question or heading
LEADS_ON_TAG = "leads"  # tags text after an answer that only introduces the next question or cell
REVEALS_ANSWER_TAG = "reveals-answer"  # tags a cell whose code reveals an answer, for example in a picture's alt text
HIDDEN_CODE = {"cellView": "form", "jupyter": {"source_hidden": True}}  # hides a cell's code in Colab and elsewhere
CELL_METADATA = {
    "tags",
    "output_varies",
    "output_varies_in",
    "cellView",
    "jupyter",
    "slideshow",
}  # the metadata that cells keep


def lessons(root: Path = ROOT) -> list[Path]:
    """Return the paths of all lessons, in order. A split lesson's parts are numbered 05 and 05b."""
    paths = (root / "notebooks").glob("*.ipynb")
    return sorted((path for path in paths if re.match(f"{NUMBER}_", path.name)), key=number)


def lesson(name: str, root: Path = ROOT) -> Path:
    """Return the path of a lesson by its name or number, such as 02_sharding, 02 or 2.

    Raises ValueError, with a list of all numbers, if there's no such lesson.
    """
    paths = {number(path): path for path in lessons(root)}
    prefix = name.lower().split("_")[0]
    lesson_number = prefix if prefix in paths else f"0{prefix}"
    if lesson_number not in paths:
        raise ValueError(f"there is no lesson {name or 'without a number'}; there are {', '.join(paths)}")
    return paths[lesson_number]


def number(path: Path) -> str:
    """Return the number in a lesson's file name, such as '05' or '05b'."""
    return path.name.split("_")[0]


def repository(text: str | None = None) -> tuple[str, str]:
    """Return the repository's 'owner/name' and the revision, from the constants in the setup cell `text`.

    Without `text`, read the constants in setup_cell.py. Raises ValueError if a constant is missing.
    """
    match = re.search(r'^REPOSITORY = "([\w.-]+/[\w.-]+)"\nREVISION = "([\w.-]+)"$', text or setup_source(), re.M)
    if not match:
        raise ValueError("the setup cell has no lines REPOSITORY = ... and REVISION = ...")
    return match[1], match[2]


def setup_source() -> str:
    """Return the source of the setup cell."""
    return SETUP.read_text(encoding="utf-8").rstrip("\n")


def copies_branch(revision: str) -> str:
    """Return the branch that the badges link to, in which the lessons have no outputs.

    The workflow copies.yml pushes such a branch for main and for each version tag. For other revisions, return the
    revision itself.
    """
    return f"copies-{revision}" if re.fullmatch(r"main|v[\d.]+", revision) else revision


def colab_url(path: str, setup: str | None = None) -> str:
    """Return the URL that opens the notebook at `path` in Colab."""
    name, revision = repository(setup)
    return f"https://colab.research.google.com/github/{name}/blob/{copies_branch(revision)}/{path}"


def badges(path: str, setup: str | None = None) -> str:
    """Return the Markdown of the four badges that open the notebook at `path`, from the setup cell's repository."""
    name, revision = repository(setup)
    revision = copies_branch(revision)
    blob = f"{name}/blob/{revision}/{path}"
    return (
        "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"({colab_url(path, setup)})\n"
        "[![Open in Kaggle](https://kaggle.com/static/images/open-in-kaggle.svg)]"
        f"(https://kaggle.com/kernels/welcome?src=https://github.com/{blob})\n"
        "[![Open in Binder](https://mybinder.org/badge_logo.svg)]"
        f"(https://mybinder.org/v2/gh/{name}/{revision}?urlpath=lab/tree/{path})\n"
        "[![Open in Codespaces](https://img.shields.io/badge/Open%20in-Codespaces-24292f?logo=github)]"
        f"(https://codespaces.new/{name}/tree/{revision}?quickstart=1)"
    )


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def copy_of(node: nbformat.NotebookNode | dict[str, Any]) -> nbformat.NotebookNode:
    """Return a deep copy of a notebook, a cell or its metadata."""
    node_copy = nbformat.from_dict(node)
    assert isinstance(node_copy, nbformat.NotebookNode)  # from_dict returns a list only for a list
    return node_copy


def canonical(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the notebook in its committed form: no execution counts, no timestamps, and only necessary metadata."""
    notebook = copy_of(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = copy_of(METADATA)
    for cell in notebook.cells:
        cell.metadata = copy_of({k: v for k, v in cell.metadata.items() if k in CELL_METADATA})
        if cell.metadata.get("slideshow", {}).get("slide_type", "") in ("", default_slide_type(cell)):
            cell.metadata.pop("slideshow", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_canonical_output(output) for output in merge_streams(cell.outputs)]
    return notebook


def merge_streams(outputs: list) -> list:
    """Return copies of the outputs, with consecutive outputs of the same stream merged.

    Drop text that was overwritten after a carriage return, as in a progress bar, and drop streams that become empty.
    """
    merged: list = []
    for output in outputs:
        previous = merged[-1] if merged else None
        if (
            previous is not None
            and output.output_type == "stream"
            and previous.output_type == "stream"
            and previous.name == output.name
        ):
            previous.text += output.text
        else:
            merged.append(nbformat.from_dict(output))
    for output in merged:
        if output.output_type == "stream" and "\r" in output.text:
            output.text = "\n".join(map(_overwritten, output.text.split("\n")))
    return [output for output in merged if output.output_type != "stream" or output.text.strip()]


def _overwritten(line: str) -> str:
    """Return the visible text of a line, in which the text after a carriage return overwrites the text before it."""
    visible = ""
    for part in line.split("\r"):
        visible = part + visible[len(part) :]
    return visible.rstrip()


def _canonical_output(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if "execution_count" in output:
        output.execution_count = None
    if output.output_type == "stream":  # keep %%writefile's output the same as on a first run
        output.text = re.sub(r"^Overwriting (?=\w+\.py$)", "Writing ", output.text, flags=re.M)
    return output


def default_slide_type(cell: nbformat.NotebookNode) -> str:
    """Return the slide type of a cell whose metadata doesn't specify one. notebooks/README.md explains the rule."""
    if cell.cell_type == "code":
        if re.fullmatch(r"ex-.*-stub", cell.id):
            return "-"
        return "skip" if re.fullmatch(r"setup|imports|script|ex-.*-check", cell.id) else "subslide"
    text = re.sub(r"^```.*?^```$", "", cell.source, flags=re.M | re.S)  # comments in a code block aren't headings
    if re.search(r"^##? ", text, re.M):
        return "slide"
    return "subslide" if re.search(rf"^(### |{re.escape(QUESTION)}|\|)", text, re.M) else "notes"


def split_blocks(source: str) -> list[str]:
    """Split a text at its empty lines, except inside fenced code blocks."""
    fences = re.split(r"(^```.*?^```$)", source, flags=re.M | re.S)
    parts = [[part] if part.startswith("```") else re.split(r"\n\s*\n", part) for part in fences]
    return [block.strip("\n") for part in parts for block in part if block.strip()]


def to_text(notebook: nbformat.NotebookNode) -> str:
    """Return the text of a notebook's file in its committed form."""
    return nbformat.writes(canonical(notebook)).rstrip("\n") + "\n"


def write(notebook: nbformat.NotebookNode, path: Path) -> None:
    path.write_text(to_text(notebook), encoding="utf-8")
