"""What lines and bars share: numbers that are checked, panels side by side, marks and a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from utils.show import alt_text
from utils.show.picture import COLORS

# By mark: its colour, its sign where it is one point and where it is several, and its dashes where it is a line.
MARKS = (("#222222", "X", "o", "--"), (COLORS[5], "*", "s", "-."), (COLORS[3], "D", "^", ":"))

WIDTHS = {1: 7.0, 2: 9.0, 3: 10.0}  # inches, by the number of panels


def by_title(series: dict[str, Any], example: str) -> dict[str, dict[str, Any]]:
    """The panels, by title: of a plain `{name: numbers}` one without a title. Raises ValueError for none or over 3."""
    several = bool(series) and all(isinstance(value, dict) for value in series.values())
    panels = series if several else {"": series}
    if not all(panels.values()):
        raise ValueError(f"nothing to draw: give a name and its numbers, as in {example}")
    if len(panels) > 3:
        raise ValueError(f"{len(panels)} panels do not fit beside each other; draw up to 3")
    return panels


def beside(given: dict[str, Any] | None, panels: dict[str, Any], what: str) -> dict[str, dict[str, Any]]:
    """Marks or notes, for each panel. Raises ValueError where they name a panel that is not there."""
    found = {"": given or {}} if list(panels) == [""] else given or {}
    for title in found:
        if title not in panels:
            raise ValueError(f"{what} for {title!r}, but the panels are {list(panels)}: give them by panel, too")
    return {title: found.get(title, {}) for title in panels}


def labels(given: str | Sequence[str], panels: dict[str, Any]) -> dict[str, str]:
    """The label of each panel's axis. Raises ValueError where there are neither one nor as many as panels."""
    each = [given] * len(panels) if isinstance(given, str) else list(given)
    if len(each) != len(panels):
        raise ValueError(f"{len(each)} labels for {len(panels)} panel(s): give one, or a list with one for each panel")
    return dict(zip(panels, each, strict=True))


def names(panels: dict[str, Any], most: int, what: str) -> list[str]:
    """The names in all panels, each once. Raises ValueError for more than can be told apart."""
    found = list(dict.fromkeys(name for own in panels.values() for name in own))
    if len(found) > most:
        raise ValueError(f"{len(found)} {what} cannot be told apart; draw up to {most}")
    return found


def looks(marks: dict[str, Any]) -> dict[str, tuple[str, str, str, str]]:
    """The look of each mark, the same in all panels. Raises ValueError for more than can be told apart."""
    return dict(zip(names(marks, len(MARKS), "marks"), MARKS, strict=False))


def numbers(name: str, values: Any, length: int | None = None, log: bool = False) -> np.ndarray:
    """The values as an array (length,) of floats. Raises ValueError, with the name, for what cannot be drawn."""
    found = np.asarray(values, float)
    if found.ndim != 1 or not found.size:
        raise ValueError(f"{name!r} has shape {found.shape}: give a list of one number or more")
    if length is not None and len(found) != length:
        raise ValueError(f"{name!r} has {len(found)} numbers where {length} are needed, one for each place")
    for bad, why in ((~np.isfinite(found), "which is no place"), (found <= 0, "which a logarithmic axis cannot show")):
        if bad.any() and (log or "no place" in why):
            raise ValueError(f"{name!r} holds {found[bad][0]:g} at index {bad.argmax()}, {why}: leave it out")
    return found


def figure(
    count: int, height: float, entries: list[str], title: str, sharex: bool, sharey: bool
) -> tuple[Figure, list[Axes]]:
    """An empty figure of some panels in a row, each `height` inches high, and room below for a legend of `entries`."""
    room = 0.22 * math.ceil(len(entries) / _columns(entries, count))
    drawn = Figure(figsize=(WIDTHS[count], height + room), layout="constrained")
    drawn.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    if title:
        drawn.suptitle(title, fontsize=11)
    plots = list(drawn.subplots(1, count, squeeze=False, sharex=sharex, sharey=sharey)[0])
    for axes in plots:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.set_axisbelow(True)
    return drawn, plots


def legend(drawn: Figure, plots: list[Axes], entries: list[str]) -> None:
    """One legend for all panels, in the order of `entries`; below them, where it covers nothing."""
    handles: dict[str, Any] = {}
    for axes in plots:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    drawn.legend(
        [handles[name] for name in entries],
        entries,
        loc="outside lower center",
        ncols=_columns(entries, len(plots)),
        frameon=False,
        fontsize=9.5,
        handlelength=2.8,
    )


def _columns(entries: list[str], count: int) -> int:
    """Columns of a legend below `count` panels, in as few rows as fit; a sample and its gaps take ten letters."""
    lengths = [len(entry) + 10 for entry in entries]
    for rows in range(1, len(entries)):
        columns = math.ceil(len(entries) / rows)
        if sum(max(column) for column in np.array_split(lengths, columns)) < 13.5 * WIDTHS[count]:
            return columns
    return 1


def draw_mark(axes: Axes, found: alt_text.Mark, look: tuple[str, str, str, str], each: bool = False) -> None:
    """Draw one mark: upright lines, lines across, or points; `each`: every point in the sign of a single one."""
    name, x, y = found
    color, single, several, dash = look
    if x is None or y is None:
        for i, place in enumerate(y if x is None else x):
            line = axes.axhline if x is None else axes.axvline
            line(place, color=color, linestyle=dash, linewidth=1.6, label=name if i == 0 else None)
    elif each or len(x) == 1:
        size = 15 if single == "*" else 11
        axes.plot(x, y, single, color=color, markersize=size, markeredgecolor="white", label=name, zorder=5)
    else:
        axes.plot(x, y, several, color=color, markersize=6.5, markerfacecolor="white", label=name, zorder=5)
