"""Implement the migration checker's command-line interface, `find-old-jax` or `python -m find_old_jax`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from find_old_jax.error_lookup import closest_problems, explain
from find_old_jax.find import SEVERITIES, Finding, examine
from find_old_jax.fix_files import fixed_file, unified_diff, write_files
from find_old_jax.read import Unreadable, files
from find_old_jax.release_names import Record
from find_old_jax.run_and_explain import run

ABOUT = """Find the lines that use removed, deprecated or changed JAX APIs, and print the replacements.

Reads Python, notebooks, Markdown and reStructuredText, and folders of them, without running any code. A line that
ends in `# noqa: old-jax` is ignored. Row numbers refer to the course's appendix 90, Old code, new JAX."""
STATUS = "exit status: 0 if no API is removed or deprecated, 1 if any is, 2 if a path can't be read"


def main(arguments: list[str] | None = None) -> int:
    """Run the command with the given arguments, or else with the process's own, and return its exit status."""
    parser = argparse.ArgumentParser("find-old-jax", description=ABOUT, epilog=STATUS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("paths", nargs="*", metavar="FILE", help="a file or a folder")
    parser.add_argument("--target", metavar="0.12", help="the JAX version to check for (default: the newest known)")
    parser.add_argument("--fix", action="store_true", help="show the safe replacements as a diff")
    parser.add_argument("--write", action="store_true", help="with --fix: change the files")
    parser.add_argument(
        "--message",
        metavar="TEXT",
        help="explain an error message from JAX, or a problem in your own words ('-' reads the text from stdin)",
    )
    parser.add_argument(
        "--run", nargs=argparse.REMAINDER, metavar="SCRIPT", help="run a script, and explain the error if it fails"
    )
    options = parser.parse_args(arguments)
    try:
        record = Record(options.target)
    except ValueError as error:
        parser.error(str(error))
    if options.message is not None:
        return _explain(sys.stdin.read() if options.message == "-" else options.message, options.target)
    if options.run:
        return run(options.run, options.target)
    if not options.paths or (options.write and not options.fix):
        parser.print_usage(sys.stderr)
        return 2
    return _search(options.paths, record.version, options.fix, options.write)


def _explain(message: str, target: str | None) -> int:
    """Print the entry or row that explains a message and return 0, or else print the closest entries and return 1."""
    if known := explain(message, target):
        print(known)
        return 0
    entries = closest_problems(message)
    print("No entry has this message. The closest entries:" if entries else "No entry is about this.")
    for problem in entries:
        print(f"\n{problem}")
    return 1


def _search(paths: list[str], target: str, fix: bool, write: bool) -> int:
    counts: dict[str, int] = dict.fromkeys(SEVERITIES, 0)
    read, unread = 0, 0
    changed: dict[Path, str] = {}
    for path in paths:
        for file in files(Path(path)):
            try:
                rows, notes = examine(file, target)
            except Unreadable as error:
                print(f"note: {error}", file=sys.stderr)
                unread += str(file) == path and not file.is_file()
                continue
            read += 1
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
    if write:
        try:
            write_files(changed)
        except (OSError, Unreadable) as error:
            print(f"error: {error}; no file was changed", file=sys.stderr)
            return 2
    if not fix:
        summary = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no old APIs"
        print(f"{read} file{'s' * (read != 1)} for JAX {target}: {summary}")
    return 2 if unread else int(counts["gone"] + counts["warns"] > 0)


def _show_fix(file: Path, target: str) -> str | None:
    """Print the fix for a file as a diff, and return the file's new text, or None if nothing changes."""
    new, remaining = fixed_file(file, target)
    diff = unified_diff(file, new)
    print(diff, end="")
    for line in remaining:
        print(f"not fixed: {file}, {line}", file=sys.stderr)
    return new if diff else None


def findings_table(path: str, rows: list[tuple[str, str, Finding]]) -> str:
    """Format each of a file's findings in two lines: location, severity, name, replacement and row; then its code."""
    lines = [path]
    for place, code, finding in rows:
        row = f" (row {finding.row})" if finding.row else ""
        lines += [f"  {place}: {finding.severity}: {finding.name} -> {finding.new}{row}", f"      {code}"]
    return "\n".join(lines)
