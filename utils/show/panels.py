"""Check the input of line plots and bar charts, and draw their panels, marks and legends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke

from utils.show import alt_text
from utils.show.notebook_figure import COLORS

Numbers = Sequence[float] | np.ndarray
PANEL_WIDTHS = {1: 6.0, 2: 8.0, 3: 8.5}  # by number of panels: their combined width in inches


class MarkStyle(NamedTuple):
    color: str
    marker: str  # for points
    dashes: str  # for lines


MARK_STYLES = (MarkStyle("#222222", "o", "--"), MarkStyle(COLORS[5], "s", "-."), MarkStyle(COLORS[3], "^", ":"))


def split_panels(series: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the series of each panel, by title. The title of a single, untitled panel is "".

    Raises ValueError if there's nothing to draw or if there are more than three panels.
    """
    has_titles = bool(series) and all(isinstance(value, dict) for value in series.values())
    panels = series if has_titles else {"": series}
    if not all(panels.values()):
        raise ValueError("nothing to draw: give a name and its numbers, as in {'sent': gigabytes}")
    if len(panels) > 3:
        raise ValueError(f"{len(panels)} panels do not fit side by side; draw up to 3")
    return panels


def split_marks(marks: dict[str, Any] | None, panels: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the marks of each panel, by title. Raises ValueError for a title that no panel has."""
    by_panel = {"": marks or {}} if list(panels) == [""] else marks or {}
    for title in by_panel:
        if title not in panels:
            raise ValueError(f"marks for {title!r}, but the panels are {list(panels)}: give the marks by panel, too")
    return {title: by_panel.get(title, {}) for title in panels}


def split_labels(labels: str | Sequence[str], panels: dict[str, Any]) -> dict[str, str]:
    """Return the axis label of each panel, by title. Raises ValueError unless there's one label or one per panel."""
    each = [labels] * len(panels) if isinstance(labels, str) else list(labels)
    if len(each) != len(panels):
        raise ValueError(f"{len(each)} labels for {len(panels)} panel(s): give one, or a list with one for each panel")
    return dict(zip(panels, each, strict=True))


def unique_names(panels: Iterable[Iterable[str]], limit: int, kind: str) -> list[str]:
    """Return the distinct names in all panels. Raises ValueError if there are more than `limit` of them."""
    names = list(dict.fromkeys(name for names in panels for name in names))
    if len(names) > limit:
        raise ValueError(f"{len(names)} {kind} cannot be told apart; draw up to {limit}")
    return names


def mark_styles(marks: Iterable[Iterable[str]]) -> dict[str, MarkStyle]:
    """Return the style of each mark, which all panels share. Raises ValueError if there are too many marks."""
    return dict(zip(unique_names(marks, len(MARK_STYLES), "marks"), MARK_STYLES, strict=False))


def as_numbers(name: str, values: Numbers, length: int | None = None, log: bool = False) -> np.ndarray:
    """Return the values as floats, (length,). Raises ValueError, with `name` in its message, if they can't be drawn."""
    numbers = np.asarray(values, float)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(f"{name!r} has shape {numbers.shape}: give a list of one or more numbers")
    if length is not None and len(numbers) != length:
        raise ValueError(f"{name!r} has {len(numbers)} numbers, but {length} are needed")
    for invalid, reason in (
        (~np.isfinite(numbers), "which cannot be drawn"),
        ((numbers <= 0) & log, "which a logarithmic axis cannot show"),
    ):
        if invalid.any():
            index = invalid.argmax()
            raise ValueError(f"{name!r} has {numbers[index]:g} at index {index}, {reason}: leave it out")
    return numbers


def make_figure(
    count: int, height: float, legend_entries: list[str], title: str = "", sharex: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure with empty panels in a row, `height` inches high, and space for a legend below them."""
    legend_height = 0.22 * math.ceil(len(legend_entries) / _legend_columns(legend_entries, count))
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    figure = Figure(figsize=(PANEL_WIDTHS[count], height + legend_height), layout=layout)
    if title:
        figure.suptitle(title, fontsize=11)
    all_axes = list(figure.subplots(1, count, squeeze=False, sharex=sharex, sharey=True)[0])
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, all_axes


def add_legend(figure: Figure, all_axes: list[Axes], entries: list[str]) -> None:
    """Add a single legend below the panels, with the entries in this order. Add none if there are no entries."""
    if not entries:
        return
    handles: dict[str, Artist] = {}
    for axes in all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    figure.legend(
        [handles[name] for name in entries],
        entries,
        loc="outside lower center",
        ncols=_legend_columns(entries, len(all_axes)),
        frameon=False,
        fontsize=9.5,
        handlelength=2.8,
    )


def _legend_columns(entries: list[str], panel_count: int) -> int:
    """Return the number of columns that gives the legend the fewest rows."""
    lengths = [len(entry) + 10 for entry in entries]  # a line sample and the gaps are as wide as ten letters
    for rows in range(1, len(entries)):
        columns = math.ceil(len(entries) / rows)
        if sum(max(column) for column in np.array_split(lengths, columns)) < 13.5 * PANEL_WIDTHS[panel_count]:
            return columns
    return 1


def draw_mark(axes: Axes, mark: alt_text.Mark, style: MarkStyle) -> None:
    """Draw a mark as vertical lines, horizontal lines, or points."""
    name, x, y = mark
    lines = [*((axes.axvline, position) for position in x)] if x is not None and y is None else []
    if x is None and y is not None:
        lines = [(axes.axhline, position) for position in y]
    for i, (draw_line, position) in enumerate(lines):
        halo = [withStroke(linewidth=3.6, foreground="white")]  # so that the line can be seen on a bar
        label = None if i else name
        draw_line(position, color=style.color, linestyle=style.dashes, linewidth=1.6, label=label, path_effects=halo)
    if x is not None and y is not None:
        axes.plot(x, y, style.marker, color=style.color, markersize=6.5, markerfacecolor="white", label=name, zorder=5)
