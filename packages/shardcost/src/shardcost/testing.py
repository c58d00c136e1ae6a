"""Check the cost of a program in a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardcost.counter import cost
from shardcost.report import SOURCE_HEADERS, Cost, format_table


def assert_cost(
    step: Any,
    *args: Any,
    collectives: Mapping[str, int] | None = None,
    bytes_sent: int | None = None,
    max_bytes_sent: int | None = None,
    flops: int | None = None,
    max_peak_memory: int | None = None,
    **kwargs: Any,
) -> Cost:
    """Check the bytes that a program sends and stores, and its FLOPs, without running it, and return its cost.

    Args:
        step, args, kwargs: the same as for `cost`, including the options `target`, `trip_counts`, `branches` and
            `strict`. If `step` is a `Cost`, it's checked directly.
        collectives: the exact number of runs for each kind of collective, over all loop iterations, as
            {"all-reduce": 2}. No other kind may run, so {} forbids all communication.
        bytes_sent: the exact number of bytes that the busiest device sends.
        max_bytes_sent: the largest number of bytes that any device may send.
        flops: the exact number of FLOPs in matrix products on each device.
        max_peak_memory: the largest permitted peak memory, in bytes per device. On CPUs, the peak excludes temporaries,
            so compile for a GPU or TPU with `target`, or check `report.memory.temporaries`.

    Raises AssertionError, with the cost report and the source lines, if any check fails. Raises TypeError if there's
    nothing to check.
    """
    __tracebackhide__ = True  # makes pytest show the caller's line
    checks = (collectives, bytes_sent, max_bytes_sent, flops, max_peak_memory)
    if all(check is None for check in checks):
        raise TypeError("assert_cost needs something to check: collectives=, bytes_sent=, max_bytes_sent= ...")
    if not (collectives is None or isinstance(collectives, Mapping)):
        raise TypeError(f'collectives={collectives!r}: pass counts by kind, as {{"all-reduce": 2}}')
    report = step if isinstance(step, Cost) else cost(step, *args, **kwargs)
    faults = []
    if collectives is not None and report.counts() != {kind: n for kind, n in collectives.items() if n}:
        faults.append(f"collectives: expected {dict(collectives)}, counted {report.counts()}")
    if bytes_sent is not None and report.bytes_sent != bytes_sent:
        faults.append(f"bytes sent by the busiest device: expected {bytes_sent:,}, counted {report.bytes_sent:,}")
    if max_bytes_sent is not None and report.bytes_sent > max_bytes_sent:
        faults.append(
            f"bytes sent by the busiest device: at most {max_bytes_sent:,} expected, counted {report.bytes_sent:,}"
        )
    if flops is not None and report.flops != flops:
        faults.append(f"FLOPs in matrix products: expected {flops:,}, counted {report.flops:,}")
    if max_peak_memory is not None:
        if report.memory is None:
            raise TypeError("max_peak_memory= needs a compiled program: a program text has no memory plan")
        if report.memory.peak > max_peak_memory:
            faults.append(f"peak memory: at most {max_peak_memory:,} expected, planned {report.memory.peak:,}")
    if faults:
        parts = ["\n".join(faults), repr(report)]
        parts += [format_table(SOURCE_HEADERS, report.sources())] if len(report) else []
        raise AssertionError("\n\n".join(parts))
    return report
