"""Implement the command line of the migration checker, `python -m old_jax` or `find-old-jax`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from old_jax.find import SEVERITIES, Finding, examine
from old_jax.mend import fixed_file, unified_diff, write_files
from old_jax.message import find_answer
from old_jax.read import Unreadable, files
from old_jax.record import Record
from old_jax.run import run

ABOUT = """Which lines use JAX that is gone, warns, or means something else, and what to write instead.

Reads Python, notebooks and Markdown, and folders of them, without running them; a line that ends in
`# noqa: old-jax` is left out. Row numbers are those of appendix 90, Old code, new JAX."""
STATUS = "exit status: 1 where something is gone or warns, 0 where nothing is, 2 where a path could not be read at all"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("find-old-jax", description=ABOUT, epilog=STATUS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("paths", nargs="*", metavar="FILE", help="a file or a folder")
    parser.add_argument("--target", metavar="0.12", help="the JAX that you want to run on (default: the newest known)")
    parser.add_argument("--fix", action="store_true", help="show as a diff what can be changed with certainty")
    parser.add_argument("--write", action="store_true", help="with --fix: change the files")
    parser.add_argument(
        "--message", metavar="TEXT", help="what to do about a message of JAX's ('-': read it from the input)"
    )
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="SCRIPT", help="run a script; explain what stops it")
    told = parser.parse_args(arguments)
    try:
        record = Record(told.target)
    except ValueError as error:
        parser.error(str(error))
    if told.message is not None:
        return _explain(sys.stdin.read() if told.message == "-" else told.message, told.target)
    if told.run:
        return run(told.run, told.target)
    if not told.paths or (told.write and not told.fix):
        parser.print_usage(sys.stderr)
        return 2
    return _search(told.paths, record.version, told.fix, told.write)


def _explain(message: str, target: str | None) -> int:
    said = find_answer(message, target)
    print(said or "no row of appendix 90 knows this message")
    return 0 if said else 1


def _search(paths: list[str], target: str, fix: bool, put: bool) -> int:
    counts, seen, unread = dict.fromkeys(SEVERITIES, 0), 0, 0
    changed: dict[Path, str] = {}
    for path in paths:
        for file in files(Path(path)):
            try:
                rows, notes = examine(file, target)
            except Unreadable as error:
                print(f"note: {error}", file=sys.stderr)
                unread += str(file) == path and not file.is_file()
                continue
            seen += 1
            for note in notes:
                print(f"note: {note}", file=sys.stderr)
            for *_, finding in rows:
                counts[finding.severity] += 1
            if fix:
                new = _show_fix(file, target)
                if new is not None:
                    changed[file] = new
            elif rows:
                print(findings_table(str(file), rows))
    if put:
        try:
            write_files(changed)
        except (OSError, Unreadable) as error:
            print(f"error: {error}; no file was changed", file=sys.stderr)
            return 2
    if not fix:
        said = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "0 old forms"
        print(f"{seen} file{'s' * (seen != 1)} for JAX {target}: {said}")
    return 2 if unread else int(counts["gone"] + counts["warns"] > 0)


def _show_fix(file: Path, target: str) -> str | None:
    """Print the fix of a file as a diff, and return the file's new text, or None if nothing changes."""
    new, left = fixed_file(file, target)
    diff = unified_diff(file, new)
    print(diff, end="")
    for line in left:
        print(f"left: {file}, {line}", file=sys.stderr)
    return new if diff else None


def findings_table(path: str, rows: list[tuple[str, str, Finding]]) -> str:
    """Format the findings of a file: a line with place, severity, replacement and row for each, then the code."""
    lines = [path]
    for place, code, one in rows:
        row = f" (row {one.row})" if one.row else ""
        lines += [f"  {place}: {one.severity}: {one.name} -> {one.new}{row}", f"      {code}"]
    return "\n".join(lines)
