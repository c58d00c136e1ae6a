"""Plot lines and bars that readers can tell apart without colour, with a description made from their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from utils.show import alt_text, panels
from utils.show.panels import Numbers
from utils.show.picture import COLORS, Picture

_DASHES = ("-", "--", "-.", ":", (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (10, 3, 2, 3)))
_MARKERS = "os^DvP<>"
_MAX_MARKERS = 24  # a line with no more points than this has a marker at each of them
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo", "++")


def lines(
    series: dict[str, Any],
    x: Numbers | None = None,
    *,
    xlabel: str | Sequence[str],
    ylabel: str | Sequence[str] = "",
    title: str = "",
    log: str = "",
    marks: dict[str, Any] | None = None,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    alt: str = "",
) -> Picture:
    """Plot named lines, in one panel or in up to three.

    A line that others cover is drawn wider, so that all of them can be seen.

    Args:
        series: ``{name: y}`` with y of shape (n,), or ``{name: (x, y)}`` for a line with an x of its own. For several
            panels: ``{title: {name: y}}``, and then `marks` by title as well.
        x: the lines' x, (n,). By default, 0, 1, 2 and so on.
        xlabel, ylabel: the axes' labels. Panels share an axis if it has one label, but not if it has a list of them.
        log: the axes that are logarithmic: "x", "y" or "xy".
        marks: points to mark, such as the reader's guess: ``{name: (x, y)}``, with two numbers or two arrays.
            ``(x, None)`` is a vertical line, and ``(None, y)`` a horizontal one.
        xlim, ylim: the axes' limits, which are widened if a mark is outside. If they're equal, the plot is square.
        alt: the description, instead of one made from the numbers (ends, extremes, crossings). Give it if the numbers
            vary from run to run.

    Raises ValueError if there's nothing to draw, for more than 8 lines, 3 panels or 3 marks, for arrays of different
    lengths, for a number that isn't finite or that a logarithmic axis can't show, and for an unknown panel title.
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"log is 'x', 'y', 'xy' or nothing, not {log!r}")
    series_by_panel = panels.split_panels(series, "{'loss': losses}")
    names = panels.unique_names(series_by_panel, 8, "lines")
    marks_by_panel = panels.split_marks(marks, series_by_panel)
    xlabels, ylabels = panels.split_labels(xlabel, series_by_panel), panels.split_labels(ylabel, series_by_panel)
    styles = panels.mark_styles(marks_by_panel)
    is_square = bool(xlim) and xlim == ylim
    sharex, sharey = isinstance(xlabel, str), isinstance(ylabel, str)
    height = 4.6 if is_square else 3.6
    figure, all_axes = panels.make_figure(len(series_by_panel), height, [*names, *styles], title, sharex, sharey)
    descriptions = {}
    for axes, (panel, values) in zip(all_axes, series_by_panel.items(), strict=True):
        panel_lines = [_as_line(name, value, x, log) for name, value in values.items()]
        panel_marks = [_as_mark(name, place, log) for name, place in marks_by_panel[panel].items()]
        axes.set(title=panel, xlabel=xlabels[panel])
        axes.set_ylabel(ylabels[panel] if axes is all_axes[0] or not sharey else "")
        axes.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
        _draw_lines(axes, panel_lines, names, log)
        for mark in panel_marks:
            panels.draw_mark(axes, mark, styles[mark[0]])
        _set_limits(axes, xlim, ylim, panel_marks, log)
        _set_log_ticks(axes, log)
        axes.set_box_aspect(1 if is_square else None)
        labels = xlabels[panel], ylabels[panel]
        descriptions[panel] = alt_text.describe_lines(panel_lines, panel_marks, labels, log)
    panels.add_legend(figure, all_axes, [*names, *styles])
    return Picture(figure, alt or alt_text.join_panels(title, descriptions))


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
    xlim: tuple[float, float] | None = None,
    alt: str = "",
) -> Picture:
    """Plot horizontal bars, in one panel or in up to three.

    Args:
        series: ``{part: lengths}`` with lengths of shape (n,), one for each name. For several panels:
            ``{title: {part: lengths}}``, and then `marks` by title as well.
        names: the n names, from top to bottom.
        xlabel: the axis label. Panels share the axis if it has one label, but not if it has a list of them.
        stacked: draw a name's parts end to end instead of one below the other.
        begin: where each name's stacked bar begins, (n,), instead of at 0. This needs `alt`.
        numbers: write the length of each bar at its end. For stacked bars, write their sum.
        marks: values to compare with. ``{name: number}`` is a vertical line, and ``{name: numbers}``, (n,), is a point
            on each name's bar, such as an estimate or the reader's guess.
        xticks: ``{position: text}``, to label positions on the axis with something else than numbers.
        xlim: the axis limits. By default, from 0 to beyond the longest bar and mark.
        alt: the description, instead of one made from the numbers. Give it if the numbers vary from run to run.

    Raises ValueError if there's nothing to draw, for more than 8 parts, 3 panels or 3 marks, for arrays of different
    lengths, for a number that isn't finite, for stacked bars of negative length, for `begin` without `stacked` and
    `alt`, and for an unknown panel title.
    """
    if begin is not None and not (stacked and alt):
        raise ValueError("bars with begin= need stacked=True, and a description in alt=")
    names, series_by_panel = list(names), panels.split_panels(series, "{'sent': gigabytes}")
    parts = panels.unique_names(series_by_panel, 8, "parts")
    marks_by_panel, xlabels = panels.split_marks(marks, series_by_panel), panels.split_labels(xlabel, series_by_panel)
    styles = panels.mark_styles(marks_by_panel)
    height_per_name = 0.21 if len(names) > 12 else 0.4 if stacked else 0.12 + 0.16 * len(parts)  # inches
    height, sharex = 0.9 + height_per_name * len(names), isinstance(xlabel, str)
    figure, all_axes = panels.make_figure(len(series_by_panel), height, [*parts, *styles], title, sharex, sharey=True)
    start = np.zeros(len(names)) if begin is None else panels.as_numbers("begin", begin, len(names))
    descriptions, has_negative = {}, {}
    for axes, (panel, values) in zip(all_axes, series_by_panel.items(), strict=True):
        lengths = {part: panels.as_numbers(part, value, len(names)) for part, value in values.items()}
        has_negative[axes] = min(map(np.min, lengths.values())) < 0
        for part, part_lengths in lengths.items():
            if stacked and part_lengths.min() < 0:
                raise ValueError(f"{part!r} has {part_lengths.min():g}: a stacked bar cannot have a negative length")
        panel_marks = [_as_bar_mark(name, value, len(names)) for name, value in marks_by_panel[panel].items()]
        axes.set(title=panel, xlabel=xlabels[panel])
        _draw_bars(axes, lengths, parts, stacked, numbers, start)
        for mark in panel_marks:
            panels.draw_mark(axes, mark, styles[mark[0]], emphasize=True)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        if xticks:
            axes.set_xticks(list(xticks), list(xticks.values()))
        descriptions[panel] = alt_text.describe_bars(lengths, names, panel_marks, xlabels[panel], stacked)
    for axes in all_axes:  # only now, because panels may share their axis
        if xlim:
            axes.set_xlim(*xlim)
        elif not has_negative[axes]:
            axes.set_xlim(left=0)
    panels.add_legend(figure, all_axes, [*parts, *styles])
    return Picture(figure, alt or alt_text.join_panels(title, descriptions))


def _as_line(name: str, value: Any, x: Numbers | None, log: str) -> alt_text.Line:
    if isinstance(value, tuple) and len(value) != 2:
        raise ValueError(f"{name!r} is a tuple of {len(value)}: give y, or the pair (x, y)")
    x, y = value if isinstance(value, tuple) else (x, value)
    y = panels.as_numbers(name, y, log="y" in log)
    return name, panels.as_numbers(f"x of {name}", range(len(y)) if x is None else x, len(y), "x" in log), y


def _as_mark(name: str, place: Any, log: str) -> alt_text.Mark:
    if not isinstance(place, tuple | list | np.ndarray) or len(place) != 2 or all(value is None for value in place):
        raise ValueError(f"the mark {name!r} is {place!r}: give the pair (x, y); for a line, one of the two is None")
    x, y = (
        None if value is None else panels.as_numbers(name, np.atleast_1d(value), log=axis in log)
        for value, axis in zip(place, "xy", strict=True)
    )
    if x is not None and y is not None and len(x) != len(y):
        raise ValueError(f"the mark {name!r} has {len(x)} values of x and {len(y)} of y")
    return name, x, y


def _as_bar_mark(name: str, value: Any, count: int) -> alt_text.Mark:
    """Return a vertical line for a number, or a point on each of `count` bars for an array of them."""
    if np.ndim(value) == 0:
        return name, panels.as_numbers(name, [value]), None
    return name, panels.as_numbers(name, value, count), np.arange(count)


def _draw_lines(axes: Axes, lines: list[alt_text.Line], names: list[str], log: str) -> None:
    differences = alt_text.height_differences(lines, log)
    coinciding = [pair for pair, difference in differences.items() if not difference.any()]
    for i, (name, x, y) in enumerate(lines):
        style = names.index(name)
        coincides = any(i in pair for pair in coinciding)
        covers = sum(below == i for below, _ in coinciding)  # the number of lines that cover this one
        has_markers = alt_text.is_increasing(x) and len(x) <= _MAX_MARKERS and not coincides
        axes.plot(
            x,
            y,
            color=COLORS[style],
            linestyle="-" if coincides else _DASHES[style],
            linewidth=1.8 + 3.4 * covers,
            zorder=2 - 0.1 * covers,
            marker=_MARKERS[style] if has_markers else "",
            label=name,
        )
    x = lines[0][1]
    if "x" in log and len(x) <= 8 and all(np.array_equal(x, other) for _, other, _ in lines):
        axes.set_xticks(x, [alt_text.format_number(value) for value in x])  # the measured points, not powers of ten
        axes.set_xticks([], minor=True)


def _set_log_ticks(axes: Axes, log: str) -> None:
    """Label logarithmic axes with plain numbers, and a short x-axis with the powers of two."""
    for name, axis, (low, high) in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        if name in log and len(axis.get_ticklocs(minor=True)):  # otherwise the ticks are the measured points
            if name == "x" and low > 0.5 and high < 2000:
                axis.set_major_locator(LogLocator(base=2, numticks=12))
                axis.set_minor_locator(NullLocator())
            if high < 1e5:
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _set_limits(
    axes: Axes,
    xlim: tuple[float, float] | None,
    ylim: tuple[float, float] | None,
    marks: list[alt_text.Mark],
    log: str,
) -> None:
    """Set the limits that were given, widened to include all marks."""
    marked = [[value for mark in marks if mark[axis] is not None for value in mark[axis]] for axis in (1, 2)]
    if xlim == ylim:
        marked = [marked[0] + marked[1]] * 2  # keep the plot square
    for set_limit, limits, values, axis in zip((axes.set_xlim, axes.set_ylim), (xlim, ylim), marked, "xy", strict=True):
        if limits:
            low, high = (alt_text.positions(np.array(end, float), axis in log) for end in (min(limits), max(limits)))
            at = alt_text.positions(np.array(values, float), axis in log)
            margin = 0.05 * (high - low)
            ends = np.array([np.min([low, *(at - margin)]), np.max([high, *(at + margin)])])
            set_limit(*(10**ends if axis in log else ends))


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
    axes.use_sticky_edges = False  # otherwise a bar of length 0 would keep the axis from having a margin
