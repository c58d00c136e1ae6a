"""Chips at their places in a pod's grid, and the lines in which an axis of a mesh leads through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from utils.show.picture import COLORS, Picture


def draw_rings(lines: dict[str, Any]) -> Picture:
    """Draw the lines of a mesh's axis, a panel for each title; a line whose two ends are neighbours is closed.

    `lines` is `{title: places}`. The places, of shape (n, m, 2), are the whole numbers x and y of the n chips along
    the axis in each of its m lines, as `tpu_compiler.coordinates` gives them for a flat pod.

    Raises ValueError for nothing to draw, and for places of another shape.
    """
    if not lines:
        raise ValueError("nothing to draw: give a title and places, as in {'data': places}")
    figure = Figure(figsize=(4.0 * len(lines), 3.8), layout="constrained")
    said = []
    for axes, (title, places) in zip(figure.subplots(1, len(lines), squeeze=False)[0], lines.items(), strict=True):
        places = np.asarray(places)
        if places.ndim != 3 or places.shape[2] != 2 or not places.size:
            raise ValueError(f"the places of {title!r} have shape {places.shape}, not (along the axis, lines, 2)")
        for i, line in enumerate(places.swapaxes(0, 1)):
            closed = len(line) > 2 and abs(line[-1] - line[0]).sum() == 1
            color, path = COLORS[i % len(COLORS)], np.vstack([line, line[:1]]) if closed else line
            axes.plot(*path.T, color=color, linewidth=4, zorder=1)
            axes.scatter(*line.T, s=260, color="white", edgecolors=color, linewidth=2.5, clip_on=False)
            for number, (x, y) in enumerate(line):
                axes.text(x, y, str(number), ha="center", va="center_baseline", fontsize=10)
            turns = ", ".join(f"({x}, {y})" for x, y in _corners(line))
            said.append(f"{title if i == 0 else 'then'}: {turns}{', and back to the first' if closed else ''}")
        axes.set_title(title, fontsize=10)
        axes.margins(0.12)
        axes.set_aspect("equal")
        axes.set_axis_off()
    return Picture(figure, f"Lines through a grid of chips, by their corners. {'; '.join(said)}.")


def _corners(line: np.ndarray) -> list[tuple[int, int]]:
    """The places (n, 2) at which a line begins, turns and ends."""
    turns = [i for i in range(1, len(line) - 1) if (line[i] - line[i - 1] != line[i + 1] - line[i]).any()]
    return [tuple(line[i].tolist()) for i in sorted({0, *turns, len(line) - 1})]
