"""Provide the command `shardcost`, which shows the cost of a dumped program or compares two dumps."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from shardcost.counter import TripCounts, from_hlo
from shardcost.hlo import UnsupportedHloError
from shardcost.report import Cost

DESCRIPTION = """\
Show what a compiled JAX program sends and computes on each device, from a dump of its text. With two dumps, show what
changes from the first to the second.

To get dumps, set XLA_FLAGS=--xla_dump_to=FOLDER and run or compile the program. Then take the files in FOLDER whose
names end in after_optimizations.txt."""
EPILOG = "exit status: 0 for success, 1 if two dumps differ, 2 if something can't be read or counted"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if len(options.dump) > 2:
        parser.error("pass one dump, or two to compare")
    try:
        reports = [_read(path, options) for path in options.dump]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        hint = " (--partial counts the rest)" if isinstance(error, UnsupportedHloError) and not options.partial else ""
        print(f"shardcost: {error}{hint}", file=sys.stderr)
        return 2
    if len(reports) == 2:
        change = reports[0].compare(reports[1])
        print(change)
        return int(bool(change))
    print(repr(reports[0]))
    if options.sources and len(reports[0]):
        print()
        reports[0].print_sources()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "shardcost", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dump", nargs="+", help="one or two dumps; - reads standard input")
    parser.add_argument("--sources", action="store_true", help="also show the line of Python behind each collective")
    parser.add_argument(
        "--axes", type=_axes, default={}, metavar="NAME=SIZE,...", help="the mesh axes in order, such as data=2,model=4"
    )
    parser.add_argument(
        "--trip-counts",
        type=_trip_counts,
        metavar="N | LINE=N,...",
        help="the trip counts of loops for which the program doesn't give them: 100, or train.py:42=100",
    )
    parser.add_argument(
        "--branches", choices=["max"], help="count the most expensive branch of each conditional, instead of refusing"
    )
    parser.add_argument(
        "--partial", action="store_true", help="list what can't be counted and count the rest, instead of refusing"
    )
    return parser


def _read(path: str, options: argparse.Namespace) -> Cost:
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    try:
        return from_hlo(
            text,
            axes=options.axes,
            trip_counts=options.trip_counts,
            branches=options.branches,
            strict=not options.partial,
        )
    except UnsupportedHloError as error:
        message = re.sub(r"pass trip_counts=\{'(.*?)': n\}", r"pass --trip-counts '\1=N'", str(error))
        message = message.replace("branches='max'", "--branches max")
        raise UnsupportedHloError(f"{path}: {message}") from error


def _pairs(text: str) -> dict[str, int]:
    pairs = (pair.rpartition("=") for pair in text.split(","))
    return {name.strip(): int(number) for name, _, number in pairs}


def _axes(text: str) -> dict[str, int]:
    try:
        axes = _pairs(text)
    except ValueError:
        axes = {"": 0}
    if "" in axes or min(axes.values()) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: pass NAME=SIZE,... as data=2,model=4")
    return axes


def _trip_counts(text: str) -> TripCounts:
    return _pairs(text) if "=" in text else int(text)


if __name__ == "__main__":
    sys.exit(main())
