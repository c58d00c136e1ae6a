"""Apply the safe replacements of `fix` to Python files and to the cells of notebooks."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from find_old_jax.find import find
from find_old_jax.fix import fix
from find_old_jax.read import Text, Unreadable, notebook, parses, read, to_plain_python

CELL_END = "# --- the end of a cell: {} ---\n"


def fixed_file(path: Path, target: str | None = None) -> tuple[str, list[str]]:
    """Return the fixed text of a file, and the remaining findings, such as 'line 3: name -> replacement'.

    In a notebook, only the source of cells changes, and all other JSON is preserved. Cells with magics are skipped.

    Raises Unreadable if no part of the file can be read.
    """
    texts, _ = read(path)
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "", ["it is not UTF-8, so nothing was changed"]
    if "\r" in text or text.startswith("\ufeff"):
        return text, ["it has a byte order mark or lines that end in \\r, so nothing was changed"]
    if path.suffix == ".py":
        text = fix(text, target)
        texts = [Text(text.split("\n"), [f"line {i}" for i in range(1, text.count("\n") + 2)])]
    elif path.suffix == ".ipynb":
        text = _fix_cells(text, path, target)
        texts, _ = notebook(text, str(path))
    remaining = [(finding, program) for program in texts for finding in find(program.source, str(path), target)]
    return text, [
        f"{program.places[finding.line - 1]}: {finding.name} -> {finding.new}" for finding, program in remaining
    ]


def unified_diff(path: Path, new: str) -> str:
    """Return the changes to a file as a unified diff, or "" if there are none."""
    old = path.read_bytes().decode("utf-8", errors="replace")
    if not new or old == new:
        return ""
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def write_files(changed: dict[Path, str]) -> None:
    """Replace the contents of several files, or of none of them if there's an error.

    Each new text is written to a temporary file beside the original, and checked, before any original is replaced.
    Raises Unreadable if a new text isn't valid Python, and OSError if a file can't be written.
    """
    temporary: list[tuple[str, Path]] = []
    try:
        for path, text in changed.items():
            target = path.resolve()  # write through a symbolic link instead of replacing it
            handle, name = tempfile.mkstemp(dir=target.parent, suffix=target.suffix)
            temporary.append((name, target))
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            shutil.copymode(target, name)
            try:
                read(Path(name))
            except Unreadable as error:
                raise Unreadable(str(error).replace(name, str(path))) from error
        originals = [(target, target.read_bytes()) for _, target in temporary]
        try:
            for name, target in temporary:
                os.replace(name, target)
        except OSError:
            for target, original in originals:
                target.write_bytes(original)
            raise
    finally:
        for name, _ in temporary:
            Path(name).unlink(missing_ok=True)


def _fix_cells(text: str, path: Path, target: str | None) -> str:
    """Return the fixed JSON of a notebook.

    The cells that contain only Python are joined with separators, fixed together and split again.
    """
    try:
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{path}: not a notebook that can be changed: {error}") from error
    usable = [
        i
        for i, source in enumerate(sources)
        if to_plain_python(source) == (source.split("\n"), False) and parses(source)
    ]
    new = fix("".join(f"{sources[i]}\n{CELL_END.format(i)}" for i in usable), target)
    for i in usable:
        fixed, new = new.split(f"\n{CELL_END.format(i)}", 1)
        if fixed != sources[i]:
            text = _replace_in_source(text, cells[i]["source"], fixed)
    return text


def _replace_in_source(text: str, old: str | list[str], new: str) -> str:
    """Replace a cell's source in the JSON text, or return the text unchanged if it doesn't contain that source."""
    for ascii_only in (False, True):

        def to_json(line: str, ascii_only: bool = ascii_only) -> str:
            return json.dumps(line, ensure_ascii=ascii_only)

        if isinstance(old, str):
            if to_json(old) in text:
                return text.replace(to_json(old), to_json(new), 1)
            continue
        match = re.search(r",\s*".join(re.escape(to_json(line)) for line in old), text)
        if match:
            space = re.search(r"\n\s*", match[0])
            separator = f",{space[0] if space else ' '}"
            return text[: match.start()] + separator.join(map(to_json, new.splitlines(True))) + text[match.end() :]
    return text
