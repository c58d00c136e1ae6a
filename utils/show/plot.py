"""Lines and bars of plain numbers, told apart without colour, each with a description made of the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from utils.show import alt_text, panels
from utils.show.picture import COLORS, Picture

_DASHES = ("-", "--", "-.", ":", (0, (8, 2)), (0, (4, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (10, 3, 2, 3)))
_SIGNS = "os^DvP<>"
_MEASURED = 24  # a line of at most so many points has a sign at each
_HATCHES = ("", "//", "..", "xx", "\\\\", "--", "oo", "++")


def lines(
    series: dict[str, Any],
    x: Any = None,
    *,
    xlabel: str | Sequence[str],
    ylabel: str | Sequence[str] = "",
    title: str = "",
    log: str = "",
    marks: dict[str, Any] | None = None,
    notes: dict[str, Any] | None = None,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    alt: str = "",
) -> Picture:
    """Draw named lines: `series` is `{name: y}`, y of shape (n,), over `x` (n,) or else over 0, 1, 2 ...

    A pair in place of y, `{name: (x, y)}`, is a line with an x of its own. A line on which later ones lie is drawn
    wider, so that all are seen. Two or three panels: `{title: {name: y}}`, and `marks` and `notes` by title as well;
    with one label they share an axis, with a list of labels, one each, they do not.

    Args:
        log: the axes that are logarithmic, "x", "y" or "xy".
        marks: places to point out, such as the reader's guess: `{name: (x, y)}`, of two numbers or two arrays;
            `(x, None)` is an upright line, `(None, y)` a line across.
        notes: words in the plot, `{text: (x, y)}`, which begin at that place.
        xlim, ylim: what the axes show, widened where a mark lies beyond. If they are the same, the plot is a square.
        alt: the description, in place of the one made of the numbers (ends, extremes, crossings). Give it where the
            numbers depend on the moment, or where there is more to say.

    Raises ValueError for nothing to draw, more than 8 lines, 3 panels or 3 marks, lengths that differ, a number that
    is not finite or that a logarithmic axis cannot show, and names that are not there.
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"log is 'x', 'y', 'xy' or nothing, not {log!r}")
    given = panels.by_title(series, "{'loss': losses}")
    names = panels.names(given, 8, "lines")
    pointed, written = panels.beside(marks, given, "marks"), panels.beside(notes, given, "notes")
    below, left, looks = panels.labels(xlabel, given), panels.labels(ylabel, given), panels.looks(pointed)
    found = {panel: [_line(name, value, x, log) for name, value in own.items()] for panel, own in given.items()}
    placed = {panel: [_mark(name, place, log) for name, place in own.items()] for panel, own in pointed.items()}
    square = bool(xlim) and xlim == ylim
    share = isinstance(xlabel, str), isinstance(ylabel, str)
    figure, plots = panels.figure(len(given), 4.6 if square else 3.6, [*names, *looks], title, *share)
    for axes, (panel, own) in zip(plots, found.items(), strict=True):
        axes.set(title=panel, xlabel=below[panel], ylabel=left[panel] if axes is plots[0] or not share[1] else "")
        axes.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
        _draw_lines(axes, own, names, log)
        for mark in placed[panel]:
            panels.draw_mark(axes, mark, looks[mark[0]])
        for text, place in written[panel].items():
            axes.text(*place, text)
        _limit(axes, xlim, ylim, placed[panel], log)
        _tick(axes, log)
        axes.set_box_aspect(1 if square else None)
    panels.legend(figure, plots, [*names, *looks])
    said = {p: alt_text.of_lines(found[p], placed[p], list(written[p]), (below[p], left[p]), log) for p in given}
    return Picture(figure, alt or alt_text.together(title, said))


def bars(
    series: dict[str, Any],
    names: Sequence[str],
    *,
    xlabel: str | Sequence[str],
    title: str = "",
    stacked: bool = False,
    begin: Any = None,
    numbers: bool = False,
    marks: dict[str, Any] | None = None,
    xticks: dict[float, str] | None = None,
    xlim: tuple[float, float] | None = None,
    alt: str = "",
) -> Picture:
    """Draw horizontal bars: `series` is `{part: lengths}`, lengths of shape (n,), one for each of the n `names`.

    The parts of a name stand below each other or, `stacked`, one behind the other. Two or three panels:
    `{title: {part: lengths}}`, and `marks` by title as well; with one label they share an axis, with a list of labels,
    one each, they do not.

    Args:
        begin: where each name's stacked bar begins, shape (n,), in place of 0. The words for it are yours: `alt`.
        numbers: write at the end of each bar how long it is; of stacked bars, the sum.
        marks: what to compare with: `{name: number}` is an upright line, `{name: places}`, of shape (n,), a sign on
            the bar of each name, such as an estimate or the reader's guess.
        xticks: `{place: text}`, where the axis says other words than its numbers.
        xlim: what the axis shows; else from 0 to beyond the longest bar and mark.
        alt: the description, in place of the one made of the numbers. Give it where the numbers depend on the moment,
            or where there is more to say.

    Raises ValueError for nothing to draw, more than 8 parts, 3 panels or 3 marks, lengths that differ, a number that
    is not finite, stacked bars of negative length, a beginning without `stacked` and `alt`, and titles that are not
    there.
    """
    if begin is not None and not (stacked and alt):
        raise ValueError("bars that begin elsewhere than at 0 are stacked, and told in your own words: give alt=")
    names, given = list(names), panels.by_title(series, "{'sent': gigabytes}")
    parts, pointed = panels.names(given, 8, "parts"), panels.beside(marks, given, "marks")
    below, looks = panels.labels(xlabel, given), panels.looks(pointed)
    found = {p: {part: panels.numbers(part, v, len(names)) for part, v in own.items()} for p, own in given.items()}
    for part, lengths in [item for own in found.values() for item in own.items()]:
        if stacked and lengths.min() < 0:
            raise ValueError(f"{part!r} holds {lengths.min():g}: a stacked bar has no negative length")
    placed = {p: [_beside(name, at, len(names)) for name, at in own.items()] for p, own in pointed.items()}
    room = 0.21 if len(names) > 12 else 0.4 if stacked else 0.12 + 0.16 * len(parts)  # inches a name
    share = isinstance(xlabel, str), True
    figure, plots = panels.figure(len(given), 0.9 + room * len(names), [*parts, *looks], title, *share)
    for axes, panel in zip(plots, given, strict=True):
        axes.set(title=panel, xlabel=below[panel])
        first = np.zeros(len(names)) if begin is None else panels.numbers("begin", begin, len(names))
        _draw_bars(axes, found[panel], parts, stacked, numbers, first)
        for mark in placed[panel]:
            panels.draw_mark(axes, mark, looks[mark[0]], each=True)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        if xticks:
            axes.set_xticks(list(xticks), list(xticks.values()))
    for axes, panel in zip(plots, given, strict=True):
        if xlim:
            axes.set_xlim(*xlim)
        elif min(lengths.min() for lengths in found[panel].values()) >= 0:
            axes.set_xlim(left=0)
    panels.legend(figure, plots, [*parts, *looks])
    said = {p: alt_text.of_bars(found[p], names, placed[p], below[p], stacked) for p in given}
    return Picture(figure, alt or alt_text.together(title, said))


def _line(name: str, value: Any, x: Any, log: str) -> alt_text.Line:
    if isinstance(value, tuple) and len(value) != 2:
        raise ValueError(f"{name!r} is a tuple of {len(value)}: give y, or the pair (x, y)")
    x, y = value if isinstance(value, tuple) else (x, value)
    y = panels.numbers(name, y, log="y" in log)
    return name, panels.numbers(f"x of {name}", range(len(y)) if x is None else x, len(y), "x" in log), y


def _mark(name: str, place: Any, log: str) -> alt_text.Mark:
    if not isinstance(place, tuple | list | np.ndarray) or len(place) != 2 or all(at is None for at in place):
        raise ValueError(f"the mark {name!r} is {place!r}: give the pair (x, y); for a line, one of the two is None")
    x, y = (
        None if at is None else panels.numbers(name, np.atleast_1d(at), log=axis in log)
        for at, axis in zip(place, "xy", strict=True)
    )
    if x is not None and y is not None and len(x) != len(y):
        raise ValueError(f"the mark {name!r} has {len(x)} places of x and {len(y)} of y")
    return name, x, y


def _beside(name: str, at: Any, count: int) -> alt_text.Mark:
    """A mark of bars: an upright line, or one sign for each of the `count` names."""
    if np.ndim(at) == 0:
        return name, panels.numbers(name, [at]), None
    return name, panels.numbers(name, at, count), np.arange(count)


def _draw_lines(axes: Axes, own: list[alt_text.Line], names: list[str], log: str) -> None:
    differences = alt_text.apart(own, log)
    for i, (name, x, y) in enumerate(own):
        style = names.index(name)
        lie = [pair for pair, difference in differences.items() if i in pair and not difference.any()]
        above = sum(below == i for below, _ in lie)  # lines on each other are told apart by their widths
        measured = alt_text.increasing(x) and len(x) <= _MEASURED and not lie
        axes.plot(
            x,
            y,
            color=COLORS[style],
            linestyle="-" if lie else _DASHES[style],
            linewidth=1.8 + 3.4 * above,
            zorder=2 - 0.1 * above,
            marker=_SIGNS[style] if measured else "",
            label=name,
        )
    x = own[0][1]
    if "x" in log and len(x) <= 8 and all(np.array_equal(x, other) for _, other, _ in own):
        axes.set_xticks(
            x, [alt_text.format_number(place) for place in x]
        )  # what was measured, rather than powers of ten
        axes.set_xticks([], minor=True)


def _tick(axes: Axes, log: str) -> None:
    """A logarithmic axis in numbers that people read: 1, 2, 4, 8 ... where it is short, and 0.1, 1, 10."""
    plain = FuncFormatter(lambda value, _: f"{value:,.6g}")
    for name, axis, ends in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        if name in log and len(axis.get_ticklocs(minor=True)):  # not what was measured
            if name == "x" and ends[0] > 0.5 and ends[1] < 2000:
                axis.set_major_locator(LogLocator(base=2, numticks=12))
                axis.set_minor_locator(NullLocator())
            if ends[1] < 1e5:
                axis.set_major_formatter(plain)


def _limit(axes: Axes, xlim: Any, ylim: Any, marks: list[alt_text.Mark], log: str) -> None:
    places = [[place for mark in marks if mark[axis] is not None for place in mark[axis]] for axis in (1, 2)]
    if xlim == ylim:
        places = [places[0] + places[1]] * 2  # the square stays one
    for limit, given, marked, axis in zip((axes.set_xlim, axes.set_ylim), (xlim, ylim), places, "xy", strict=True):
        if given:
            low, high = (alt_text.scaled(np.array(ends, float), axis in log) for ends in (min(given), max(given)))
            at = alt_text.scaled(np.array(marked, float), axis in log)
            room = 0.05 * (high - low)
            ends = np.min([low, *(at - room)]), np.max([high, *(at + room)])
            limit(*(10 ** np.array(ends) if axis in log else ends))


def _draw_bars(
    axes: Axes, own: dict[str, np.ndarray], parts: list[str], stacked: bool, numbers: bool, start: np.ndarray
) -> None:
    at, thick = np.arange(len(next(iter(own.values())))), 0.7 if stacked else 0.8 / len(parts)
    for part, lengths in own.items():
        style = parts.index(part)
        drawn = axes.barh(
            at if stacked else at + thick * (style - (len(parts) - 1) / 2),
            lengths,
            thick,
            left=start,
            color=COLORS[style],
            hatch=_HATCHES[style],
            edgecolor="white",
            linewidth=0.6,
            label=part,
        )
        start = start + lengths if stacked else start
        if numbers and (not stacked or part == list(own)[-1]):
            ends = start if stacked else lengths
            over = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # a mark's line, which may stand there
            axes.bar_label(drawn, [alt_text.format_number(end) for end in ends], padding=4, fontsize=9, bbox=over)
    axes.margins(x=0.12 if numbers else 0.05)
    axes.use_sticky_edges = False  # else a part of no length is an edge that the margin does not pass
