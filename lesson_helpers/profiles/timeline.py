"""Draw the timeline of a profiler trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lesson_helpers.profiles.trace import Trace
from utils.show.notebook_figure import COLORS, Picture

# kind: (colour, hatch)
_DEVICE_STYLES = {"compute": (COLORS[0], ""), "communication": (COLORS[1], "xxx"), "waiting": ("#eeeeee", "////")}
_HOST_STYLES = {
    "compiling": (COLORS[3], "...."),
    "to the devices": (COLORS[2], ""),
    "to the host": (COLORS[5], "\\\\\\\\"),
}
_HOST_ROW = -1


class _Bar(NamedTuple):
    kind: str
    row: int
    start: float
    end: float


def timeline(trace: Trace, title: str = "", row_names: Sequence[str] | None = None) -> Picture:
    """Draw a row for each device, with a bar for each operation. Its colour and hatching show the operation's kind.

    A collective is split into two bars: waiting until the last device joins, and then communication. A row at the top
    shows the transfers and compilations on the host, if there are any.

    Args:
        trace: the trace to draw.
        title: the text above the timeline.
        row_names: the rows' names, in the order of `trace.devices`. By default, "device 0" and so on.

    Raises ValueError if the trace contains no operations.
    """
    if not trace.events:
        raise ValueError("nothing to draw: no device ran an operation while the trace was recorded")
    trace, styles = trace.split_waiting(), _DEVICE_STYLES | _HOST_STYLES
    bars = [_Bar(e.kind, trace.devices.index(e.device), e.start, e.end) for e in trace.events]
    bars += [_Bar(e.kind, _HOST_ROW, e.start, e.end) for e in trace.host_events]
    kinds = [kind for kind in styles if any(bar.kind == kind for bar in bars)]
    names = [*(row_names or [f"device {device}" for device in trace.devices]), "host"]  # the last is for _HOST_ROW
    rows = range(_HOST_ROW if trace.host_events else 0, len(trace.devices))
    start, end = min(bar.start for bar in bars), max(bar.end for bar in bars)
    unit, scale = ("ms", 1e-3) if end - start > 2000 else ("µs", 1.0)
    figure = Figure(figsize=(9.0, 0.32 * len(rows) + 1.1), layout="constrained")
    axes = figure.subplots()
    for kind in kinds:
        color, hatch = styles[kind]
        for row in rows:
            drawn = [bar for bar in bars if (bar.kind, bar.row) == (kind, row)]
            axes.broken_barh(
                [((bar.start - start) * scale, (bar.end - bar.start) * scale) for bar in drawn],
                (row - 0.4, 0.8),
                facecolor=color,
                hatch=hatch,
                edgecolor="#555555" if hatch else color,
                linewidth=0.3 if hatch else 0.8,  # keeps the shortest bars visible
            )
    axes.set_yticks(rows, [names[row] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit} since the first {'event' if trace.host_events else 'operation'}")
    axes.set_title(title, loc="left", fontsize=10)
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=f, hatch=h, edgecolor="#555555") for f, h in map(styles.__getitem__, kinds)
    ]
    figure.legend(handles, kinds, loc="outside upper right", ncols=len(kinds), frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    description = _describe_rows(bars, row_names) if row_names else _describe_devices(trace, start)
    return Picture(figure, f"{title}: {description}" if title else description[0].upper() + description[1:])


def _describe_devices(trace: Trace, start: float) -> str:
    """Describe the kinds of bars and the longest gap. Only the times in the description vary from run to run."""
    kinds = [kind for kind in _DEVICE_STYLES if any(e.kind == kind for e in trace.events)]
    count = len(trace.devices)
    rows = f"with a row for each of {count} devices" if count > 1 else f"of device {trace.devices[0]}"
    text = f"a timeline {rows}. The kinds of bars are {', '.join(kinds)}."
    if trace.host_events:
        times = Counter(event.kind for event in trace.host_events)
        text += f" On the host: {', '.join(f'{kind} {times[kind]} x' for kind in _HOST_STYLES if times[kind])}."
    length, gap_start = _longest_gap(trace, start)
    gap = f"lasts {_format_duration(length)}, starting at {_format_duration(gap_start - start)}"
    return f"{text} The longest gap without a bar on any device {gap}."


def _describe_rows(bars: list[_Bar], row_names: Sequence[str]) -> str:
    """Describe the bars of each named row."""
    rows = [
        f"{name}: {', '.join(f'{b.kind} from {b.start:.0f} to {b.end:.0f} µs' for b in bars if b.row == i)}"
        for i, name in enumerate(row_names)
    ]
    return f"a timeline. {'; '.join(rows)}."


def _longest_gap(trace: Trace, start: float) -> tuple[float, float]:
    """Return the length and the start of the longest period without a bar on any device, up to the last event's end."""
    gaps: list[tuple[float, float]] = []
    latest_end = start
    for event in sorted(trace.events, key=lambda event: event.start):
        gaps.append((event.start - latest_end, latest_end))
        latest_end = max(latest_end, event.end)
    gaps.append((max([latest_end, *(e.end for e in trace.host_events)]) - latest_end, latest_end))
    return max(gaps)


def _format_duration(microseconds: float) -> str:
    return f"{microseconds / 1e3:.1f} ms" if microseconds >= 1e3 else f"{microseconds:.0f} µs"
