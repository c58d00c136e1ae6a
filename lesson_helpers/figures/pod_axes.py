"""Draw a pod's chips, and the lines along which a mesh axis connects them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from utils.show.notebook_figure import COLORS, Picture


def draw_rings(lines: Mapping[str, np.ndarray]) -> Picture:
    """Draw a panel for each title, with the lines of chips along a mesh axis.

    A line whose ends are neighbours is closed into a ring.

    Args:
        lines: ``{title: coordinates}``, with integers of shape (n, m, 2): x and y of the n chips on each of m lines.

    For each title, the picture's `data` contains the coordinates [x, y] of the chips on each line.

    Raises ValueError if there's nothing to draw, or if an array has a different shape.
    """
    if not lines:
        raise ValueError("nothing to draw: give a title and coordinates, as in {'data': coordinates}")
    figure = Figure(figsize=(4.0 * len(lines), 3.8), layout="constrained")
    descriptions, routes = [], []
    for axes, (title, coordinates) in zip(figure.subplots(1, len(lines), squeeze=False)[0], lines.items(), strict=True):
        coordinates = np.asarray(coordinates)
        if coordinates.ndim != 3 or coordinates.shape[2] != 2 or not coordinates.size:
            raise ValueError(f"the coordinates of {title!r} have shape {coordinates.shape}, not (chips, lines, 2)")
        routes.append(coordinates.swapaxes(0, 1).tolist())
        for i, line in enumerate(coordinates.swapaxes(0, 1)):
            is_closed = len(line) > 2 and abs(line[-1] - line[0]).sum() == 1
            color, path = COLORS[i % len(COLORS)], np.vstack([line, line[:1]]) if is_closed else line
            axes.plot(*path.T, color=color, linewidth=4, zorder=1)
            axes.scatter(*line.T, s=260, color="white", edgecolors=color, linewidth=2.5, clip_on=False)
            for number, (x, y) in enumerate(line):
                axes.text(x, y, str(number), ha="center", va="center_baseline", fontsize=10)
            corners = ", ".join(f"({x}, {y})" for x, y in _corners(line))
            end = ", and back to the first" if is_closed else ""
            descriptions.append(f"{title if i == 0 else 'then'}: {corners}{end}")
        axes.set_title(title, fontsize=10)
        axes.margins(0.12)
        axes.set_aspect("equal")
        axes.set_axis_off()
    alt = f"Lines through a grid of chips, by their corners. {'; '.join(descriptions)}."
    return Picture(figure, alt, data=routes)


def _corners(line: np.ndarray) -> list[tuple[int, int]]:
    """Return the coordinates at which a line of shape (n, 2) begins, turns and ends."""
    turns = [i for i in range(1, len(line) - 1) if (line[i] - line[i - 1] != line[i + 1] - line[i]).any()]
    return [tuple(line[i].tolist()) for i in sorted({0, *turns, len(line) - 1})]
