"""Plot lines and bars that readers can tell apart without colour, with a description generated from their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from utils.show import alt_text, panels
from utils.show.notebook_figure import COLORS, Picture
from utils.show.panels import Numbers

_DASHES = ("-", "--", "-.", ":", (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (10, 3, 2, 3)))
_MARKERS = "os^DvP<>"
_MAX_MARKERS = 24  # lines with more points than this have no markers
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo", "++")


def lines(
    series: dict[str, Any],
    x: Numbers | None = None,
    *,
    xlabel: str,
    ylabel: str = "",
    log: str = "",
    marks: dict[str, Any] | None = None,
    ylim: tuple[float, float] | None = None,
    alt: str = "",
) -> Picture:
    """Plot named lines. A line that other lines cover is drawn wider, so that all lines are visible.

    Args:
        series: ``{name: y}`` with y of shape (n,), or ``{name: (x, y)}`` for a line with its own x.
        x: the x values of the lines, (n,), in increasing order. By default, they're 0, 1, 2 and so on.
        xlabel, ylabel: the axes' labels.
        log: the axes that are logarithmic: "x", "y" or "xy". By default, none.
        marks: points to mark: ``{name: (x, y)}``, with two numbers or two arrays. ``(x, None)`` is a vertical line, and
            ``(None, y)`` is a horizontal one.
        ylim: the limits of the y-axis, which are widened if a mark is outside them.
        alt: a description to use instead of the one generated from the numbers (ends, extremes, crossings). Pass it if
            the numbers vary from run to run.

    Raises ValueError if there's nothing to draw, or for more than 8 lines or 3 marks, arrays of different lengths, an x
    that doesn't increase, or a number that isn't finite or that a logarithmic axis can't show.
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"log must be 'x', 'y', 'xy' or '', not {log!r}")
    if not series:
        raise ValueError("nothing to draw: give a name and its numbers, as in {'loss': losses}")
    names, styles = panels.unique_names([series], 8, "lines"), panels.mark_styles([marks or {}])
    all_lines = [_as_line(name, value, x, log) for name, value in series.items()]
    all_marks = [_as_mark(name, point, log) for name, point in (marks or {}).items()]
    figure, [axes] = panels.make_figure(1, 3.1, [*names, *styles])
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    _draw_lines(axes, all_lines, log)
    for mark in all_marks:
        panels.draw_mark(axes, mark, styles[mark[0]])
    if ylim:
        marked = [value for _, _, y in all_marks if y is not None for value in y]
        low, high = alt_text.positions(np.array(ylim, float), "y" in log)
        heights, margin = alt_text.positions(np.array(marked, float), "y" in log), 0.05 * (high - low)
        ends = np.array([min([low, *(heights - margin)]), max([high, *(heights + margin)])])
        axes.set_ylim(*(10**ends if "y" in log else ends))
    _set_log_ticks(axes, log)
    panels.add_legend(figure, [axes], [*names, *styles])
    return Picture(figure, alt or alt_text.describe_lines(all_lines, all_marks, (xlabel, ylabel), log))


def bars(
    series: dict[str, Any],
    names: Sequence[str],
    *,
    xlabel: str | Sequence[str],
    title: str = "",
    stacked: bool = False,
    begin: Numbers | None = None,
    numbers: bool = False,
    marks: dict[str, Any] | None = None,
    xticks: dict[float, str] | None = None,
    alt: str = "",
) -> Picture:
    """Plot horizontal bars in one to three panels.

    Args:
        series: ``{part: lengths}`` with lengths of shape (n,), one for each name. For several panels, give
            ``{title: {part: lengths}}``, and group `marks` by title as well.
        names: the n names, from top to bottom.
        xlabel: the label of the x-axis, which all panels share, or a list with one label for each panel's own axis.
        stacked: draw a name's parts end to end instead of one below the other.
        begin: the position at which each name's stacked bar begins, (n,), instead of 0. This requires `alt`.
        numbers: write the length of each bar at its end. For stacked bars, write only the sum (including `begin`).
        marks: ``{name: number}``, each drawn as a vertical line for comparison.
        xticks: ``{position: text}``, to label positions on the axis with text instead of numbers.
        alt: a description to use instead of the one generated from the numbers. Pass it if the numbers vary from run to
            run.

    Raises ValueError if there's nothing to draw, or for more than 8 parts, 3 panels or 3 marks, arrays of different
    lengths, a number that isn't finite, a bar of negative length, `begin` without `stacked` and `alt`, or an unknown
    panel title.
    """
    if begin is not None and not (stacked and alt):
        raise ValueError("bars with begin= need stacked=True, and a description in alt=")
    names, series_by_panel = list(names), panels.split_panels(series)
    parts = panels.unique_names(series_by_panel.values(), 8, "parts")
    marks_by_panel, xlabels = panels.split_marks(marks, series_by_panel), panels.split_labels(xlabel, series_by_panel)
    styles = panels.mark_styles(marks_by_panel.values())
    has_labelled_line = len(series_by_panel) == 1 and len(styles) == 1 and not title  # there's space above the axes
    entries = [*parts, *({} if has_labelled_line else styles)]
    if len(entries) == 1 and (len(xlabels) > 1 or entries[0] in "".join(xlabels.values())):
        entries = []  # a legend would only repeat a panel's title or its axis's label
    height_per_name = 0.21 if len(names) > 12 else 0.4 if stacked else 0.12 + 0.16 * len(parts)  # inches
    height, sharex = 0.9 + height_per_name * len(names), isinstance(xlabel, str)
    figure, all_axes = panels.make_figure(len(series_by_panel), height, entries, title, sharex)
    start = np.zeros(len(names)) if begin is None else panels.as_numbers("begin", begin, len(names))
    descriptions = {}
    for axes, (panel, values) in zip(all_axes, series_by_panel.items(), strict=True):
        lengths = {part: panels.as_numbers(part, value, len(names)) for part, value in values.items()}
        for part, part_lengths in lengths.items():
            if part_lengths.min() < 0:
                raise ValueError(f"{part!r} has {part_lengths.min():g}: a bar cannot have a negative length")
        panel_marks: list[alt_text.Mark] = [
            (name, panels.as_numbers(name, [value]), None) for name, value in marks_by_panel[panel].items()
        ]
        axes.set(title=panel, xlabel=xlabels[panel])
        _draw_bars(axes, lengths, parts, stacked, numbers, start)
        for mark in panel_marks:
            panels.draw_mark(axes, mark, styles[mark[0]])
            if has_labelled_line:
                top = {"xycoords": axes.get_xaxis_transform(), "xytext": (0, 3), "textcoords": "offset points"}
                axes.annotate(mark[0], (marks_by_panel[panel][mark[0]], 1), **top, ha="center", fontsize=9.5)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        if xticks:
            axes.set_xticks(list(xticks), list(xticks.values()))
        descriptions[panel] = alt_text.describe_bars(lengths, names, panel_marks, xlabels[panel], stacked)
    for axes in all_axes:  # set this limit last, because panels may share their axis
        axes.set_xlim(left=0)
    panels.add_legend(figure, all_axes, entries)
    return Picture(figure, alt or alt_text.join_panels(title, descriptions))


def _as_line(name: str, value: Any, x: Numbers | None, log: str) -> alt_text.Line:
    if isinstance(value, tuple) and len(value) != 2:
        raise ValueError(f"{name!r} is a tuple of {len(value)}: give y, or the pair (x, y)")
    x, y = value if isinstance(value, tuple) else (x, value)
    y = panels.as_numbers(name, y, log="y" in log)
    x = panels.as_numbers(f"x of {name}", range(len(y)) if x is None else x, len(y), "x" in log)
    if (np.diff(x) <= 0).any():
        raise ValueError(f"the x values of {name!r} must increase from each point to the next")
    return name, x, y


def _as_mark(name: str, point: Any, log: str) -> alt_text.Mark:
    if not isinstance(point, tuple | list | np.ndarray) or len(point) != 2 or all(value is None for value in point):
        raise ValueError(f"the mark {name!r} is {point!r}: give the pair (x, y); for a line, one of the two is None")
    x, y = (
        None if value is None else panels.as_numbers(name, np.atleast_1d(value), log=axis in log)
        for value, axis in zip(point, "xy", strict=True)
    )
    if x is not None and y is not None and len(x) != len(y):
        raise ValueError(f"the mark {name!r} has {len(x)} values of x and {len(y)} of y")
    return name, x, y


def _draw_lines(axes: Axes, lines: list[alt_text.Line], log: str) -> None:
    differences = alt_text.height_differences(lines, log)
    coinciding = [pair for pair, difference in differences.items() if not difference.any()]
    for i, (name, x, y) in enumerate(lines):
        coincides = any(i in pair for pair in coinciding)
        covering_count = sum(below == i for below, _ in coinciding)  # the number of lines that cover this one
        has_markers = len(x) <= _MAX_MARKERS and not coincides
        axes.plot(
            x,
            y,
            color=COLORS[i],
            linestyle="-" if coincides else _DASHES[i],
            linewidth=1.8 + 3.4 * covering_count,
            zorder=2 - 0.1 * covering_count,
            marker=_MARKERS[i] if has_markers else "",
            label=name,
        )
    x = lines[0][1]
    if "x" in log and len(x) <= 8 and all(np.array_equal(x, other) for _, other, _ in lines):
        axes.set_xticks(x, [alt_text.format_number(value) for value in x])  # the measured points, not powers of ten
        axes.set_xticks([], minor=True)


def _set_log_ticks(axes: Axes, log: str) -> None:
    """Label log axes with plain numbers, and put the ticks of a log x-axis with a small range at powers of two."""
    for name, axis, (low, high) in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        if name in log and len(axis.get_ticklocs(minor=True)):  # otherwise the ticks are the measured points
            if name == "x" and low > 0.5 and high < 2000:
                axis.set_major_locator(LogLocator(base=2, numticks=12))
                axis.set_minor_locator(NullLocator())
            if high < 1e5:
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _draw_bars(
    axes: Axes, lengths: dict[str, np.ndarray], parts: list[str], stacked: bool, numbers: bool, start: np.ndarray
) -> None:
    rows, thickness = np.arange(len(start)), 0.7 if stacked else 0.8 / len(parts)
    for part, part_lengths in lengths.items():
        style = parts.index(part)
        drawn = axes.barh(
            rows if stacked else rows + thickness * (style - (len(parts) - 1) / 2),
            part_lengths,
            thickness,
            left=start,
            color=COLORS[style],
            hatch=_HATCHES[style],
            edgecolor="white",
            linewidth=0.6,
            label=part,
        )
        start = start + part_lengths if stacked else start
        if numbers and (not stacked or part == list(lengths)[-1]):
            labels = [alt_text.format_number(end) for end in (start if stacked else part_lengths)]
            background = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # hide a mark's line behind the number
            axes.bar_label(drawn, labels, padding=4, fontsize=9, bbox=background)
    axes.margins(x=0.12 if numbers else 0.05)
    axes.use_sticky_edges = False  # otherwise a bar of length 0 would suppress the axis's margin
