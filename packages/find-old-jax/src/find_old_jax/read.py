"""Read Python from files, notebooks (with magics), Markdown and reStructuredText (code blocks and >>> sessions)."""

from __future__ import annotations

import ast
import io
import json
import re
import textwrap
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUFFIXES = (".py", ".ipynb", ".md", ".markdown", ".rst")
SKIPPED = {"node_modules", "site-packages", "__pycache__", "build", "dist", "venv", "env"}
PYTHON_CELL_MAGICS = (
    "time",
    "timeit",
    "capture",
    "prun",
    "memit",
    "mprun",
    "bigquery",
)  # cell magics whose cells contain Python
PYTHON_LINE_MAGICS = ("time", "timeit", "prun", "memit")  # line magics that are followed by Python
FENCE = re.compile(r"^( *)(```+|~~~+) *\{?(?:code-cell|code|eval_rst)?\}? *(\w*)")


class Unreadable(Exception):
    """Raised for a file, or part of a file, that can't be read as Python. The message states where and why."""


@dataclass
class Text:
    """A program in a file, with the place of each line, such as 'line 3' or 'cell 2, line 1'."""

    lines: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    @property
    def source(self) -> str:
        return "\n".join(self.lines)

    def add(self, lines: list[str], place: str, first: int = 1) -> None:
        """Append consecutive lines. `place` is a prefix such as 'cell 2, ', and `first` is the first line's number."""
        self.lines += lines
        self.places += [f"{place}line {i}" for i in range(first, first + len(lines))]


def parse(source: str) -> ast.Module:
    """Parse a program, as `ast.parse` does, but without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example, about invalid escapes in the user's strings
        return ast.parse(source)


def files(path: Path) -> Iterator[Path]:
    """Yield every visible file in a folder that may contain Python, or the path itself if it isn't a folder."""
    if not path.is_dir():
        yield path
        return
    for entry in sorted(path.iterdir()):
        if entry.is_symlink() or entry.name.startswith(".") or entry.name in SKIPPED or (entry / "pyvenv.cfg").exists():
            continue
        if entry.is_dir():
            yield from files(entry)
        elif entry.suffix in SUFFIXES:
            yield entry


def read(path: Path) -> tuple[list[Text], list[str]]:
    """Return the programs in a file, and notes on unreadable parts. Raises Unreadable if no part can be read."""
    text = decode(path)
    if path.suffix == ".ipynb":
        return notebook(text, str(path))
    if path.suffix in (".md", ".markdown", ".rst"):
        return markdown(text, str(path))
    program = Text()
    program.add(text.split("\n"), "")
    try:
        parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(_not_python(str(path), "", error)) from error
    return [program], []


def decode(path: Path) -> str:
    """Decode a file with the encoding that it declares, else as UTF-8 (with or without a BOM), else as Latin-1.

    Raises Unreadable if the file can't be opened.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from error
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(raw).readline)[0] if path.suffix == ".py" else "utf-8-sig"
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        text = raw.decode("latin-1")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _not_python(path: str, cell: str, error: Exception, first: int = 1) -> str:
    """Return a note about code that doesn't parse. `first` is the number of the code's first line."""
    line, message = getattr(error, "lineno", None) or 1, getattr(error, "msg", None) or str(error)
    return f"{path}, {cell}line {line + first - 1}: not Python: {message}"


def notebook(text: str, path: str) -> tuple[list[Text], list[str]]:
    """Return a notebook's cells as one program, each %%writefile cell as another, and notes on unreadable cells.

    Raises Unreadable if the text isn't a notebook.
    """
    try:
        content = json.loads(text)
        sheets = content.get("worksheets") or [content]  # before nbformat 4, cells were in worksheets
        cells = [cell for sheet in sheets for cell in sheet["cells"] if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{path}: not a notebook: {error}") from error
    program, file_programs, notes = Text(), [], []
    for number, cell in enumerate(cells, 1):
        source = cell.get("source", cell.get("input", ""))
        source = "".join(source) if isinstance(source, list) else str(source)
        lines, is_file = to_plain_python(source)
        try:
            parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError) as error:
            notes.append(_not_python(path, f"cell {number}, ", error))
            continue
        target = Text() if is_file else program
        target.add(lines, f"cell {number}, ")
        file_programs += [target] if is_file else []
    return [program, *file_programs], notes


def to_plain_python(source: str) -> tuple[list[str], bool]:
    """Return a cell's lines, with magics replaced by Python or blank lines, and whether it writes a Python file."""
    lines = source.split("\n")
    first_line = next((line for line in lines if line.strip()), "")
    indent = first_line[: len(first_line) - len(first_line.lstrip())]
    lines = [line.removeprefix(indent) for line in lines]
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    head = re.match(r"\s*%%(\w+)\s*(.*)", lines[first]) if lines else None
    if head:
        name, arguments = head.groups()
        if name in ("writefile", "file"):
            if not arguments.strip().endswith(".py"):
                return [""] * len(lines), False
            return [*[""] * (first + 1), *lines[first + 1 :]], True
        if name not in PYTHON_CELL_MAGICS:
            return [""] * len(lines), False
        lines[first] = ""
    if parses("\n".join(lines)):
        return lines, False
    in_strings, shell = _lines_in_strings("\n".join(lines)), False
    for i, line in enumerate(lines):
        if i + 1 in in_strings:
            continue
        lines[i] = "" if shell else _plain_line(line)
        shell = (shell or lines[i] != line) and line.rstrip().endswith("\\")
    return lines, False


def parses(source: str) -> bool:
    """Return whether a program can be parsed."""
    try:
        parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _lines_in_strings(source: str) -> set[int]:
    """Return the numbers of a cell's lines that begin inside a multi-line string, and so can't be magics."""
    lines: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(re.sub(r"(?m)^\s*[%!].*$", "", source)).readline):
            if token.type == tokenize.STRING:
                lines.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return lines


def _plain_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    bare = line.strip()
    if not bare or bare.startswith("#"):
        return line
    magic = re.match(r"%(\w+)((?: -\w+(?: \d+)?)*) +(.+)", bare)
    if magic and magic[1] in PYTHON_LINE_MAGICS:
        return "" if magic[3][0] in "!%" else indent + magic[3]
    if re.match(r"%%?[A-Za-z]|[!?]", bare) or re.match(r"[\w.\[\]'\"()]+\?\??$", bare):
        return f"{indent}pass" if indent else ""
    if re.match(r"[\w, ]+=\s*[!%]\s*\w", bare) or re.match(r"[\w, ]+=\s*!", bare):
        return f"{indent}{bare.split('=')[0].rstrip()} = None"
    return line


def markdown(text: str, path: str) -> tuple[list[Text], list[str]]:
    """Return a page's Python blocks and >>> sessions as one program, and notes on unreadable parts."""
    program, notes, lines, i = Text(), [], text.split("\n"), 0

    def add(block: list[str], first: int) -> None:
        if any(re.match(r"\s*>>> ?", line) for line in block):
            for index, line in enumerate(block):
                if prompt := re.match(r"\s*(?:>>>|\.\.\.) ?(.*)", line):
                    session.append((first + index, prompt[1]))
            return
        block = textwrap.dedent("\n".join(block)).split("\n")
        block = to_plain_python("\n".join(_blank_options(block)))[0]
        try:
            parse("\n".join(block))
        except (SyntaxError, ValueError) as error:
            notes.append(_not_python(path, "", error, first))
            return
        program.add(block, "", first)

    session: list[tuple[int, str]] = []
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if fence:
            end = next((j for j in range(i + 1, len(lines)) if lines[j].strip().startswith(fence[2])), len(lines))
            if fence[3].lower() in ("python", "python3", "py", "ipython", "ipython3", "pycon"):
                add(lines[i + 1 : end], i + 2)
            i = end + 1
            continue
        if path.endswith(".rst") and re.match(r"\s*\.\. (code-block|code|testcode)::\s*(python)?\s*$", lines[i]):
            end = next(
                (j for j in range(i + 1, len(lines)) if lines[j].strip() and not lines[j].startswith((" ", "\t"))),
                len(lines),
            )
            add(["" if re.match(r"\s+:\w+:", line) else line for line in lines[i + 1 : end]], i + 2)
            i = end
            continue
        if re.match(r"\s*>>> ?", lines[i]):
            add([lines[i]], i + 1)
        elif session and (continuation := re.match(r"\s*\.\.\. ?(.*)", lines[i])):
            session.append((i + 1, continuation[1]))
        i += 1
    _add_session(program, session, path, notes)
    return [program], notes


def _blank_options(block: list[str]) -> list[str]:
    """Replace the options at the start of a MyST cell (`:tags: [...]`, or lines between ---) with blank lines."""
    end = 0
    if block and block[0].strip() == "---":
        end = next((i + 1 for i, line in enumerate(block[1:], 1) if line.strip() == "---"), 0)
    while end < len(block) and re.match(r":\w[\w-]*:", block[end]):
        end += 1
    return [""] * end + block[end:]


def _add_session(program: Text, session: list[tuple[int, str]], path: str, notes: list[str]) -> None:
    """Add to the program each statement of a >>> session that parses, with its continuation lines."""
    pending: list[tuple[int, str]] = []
    for statement_number, line in [*session, (0, "")]:
        if pending and not line.startswith((" ", "\t", ")", "]", "}")):
            source = "\n".join(text for _, text in pending)
            try:
                parse(source)
            except (SyntaxError, ValueError):
                if statement_number:
                    pending.append((statement_number, line))
                    continue
                notes.append(f"{path}, line {pending[0][0]}: not Python: an unfinished >>> statement")
            else:
                for pending_number, text in pending:
                    program.add([text], "", pending_number)
            pending = []
        pending.append((statement_number, line))
