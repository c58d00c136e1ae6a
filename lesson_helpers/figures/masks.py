"""Draw a causal attention mask for tokens that are sharded over a ring of devices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from utils.show.notebook_figure import COLORS, Picture


def draw_masks(orders: Mapping[str, np.ndarray]) -> Picture:
    """Draw a mask for each ordering of the tokens, with queries as rows and keys as columns, both grouped by device.

    A block's number and colour show the ring step, counted from 1, in which device d processes the keys of device
    (d - step + 1) mod n. Masked pairs are pale.

    Args:
        orders: ``{title: positions}``, with arrays of shape (n, m): for each of n devices, the positions in the text
            of its m tokens.

    Raises ValueError if there's nothing to draw, or if the positions aren't the integers from 0 to n m - 1, each once.
    """
    if not orders:
        raise ValueError("nothing to draw: give a title and positions, as in {'in order': np.arange(64).reshape(8, 8)}")
    figure = Figure(figsize=(4.4 if len(orders) == 1 else 3.3 * len(orders), 4.2), layout="constrained")
    descriptions = []
    for axes, (title, positions) in zip(figure.subplots(1, len(orders), squeeze=False)[0], orders.items(), strict=True):
        positions = np.asarray(positions)
        if positions.ndim != 2 or sorted(positions.ravel()) != [*range(positions.size)]:
            expected = f"0 to {positions.size - 1}, each once, as (devices, tokens)"
            raise ValueError(f"the positions of {title!r} are not {expected}")
        n, m = positions.shape
        visible = positions.ravel()[:, None] >= positions.ravel()
        device = np.repeat(np.arange(n), m)
        steps = (device[:, None] - device) % n
        colors = ListedColormap([COLORS[i % len(COLORS)] for i in range(n)])
        alpha = np.where(visible, 0.75, 0.1)
        axes.imshow(steps, cmap=colors, vmin=0, vmax=n - 1, alpha=alpha, interpolation="nearest")
        centres, edges = (np.arange(n) + 0.5) * m - 0.5, np.arange(1, n) * m - 0.5
        for (row, column), step in np.ndenumerate(steps[::m, ::m]):
            axes.text(centres[column], centres[row], step + 1, ha="center", va="center", fontsize=9 if m > 2 else 7)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(centres, range(n))
            axis.set_ticks(edges, minor=True)
        axes.tick_params(which="both", length=0)
        axes.grid(visible=False)
        axes.grid(which="minor", color="#bbbbbb", linewidth=0.8)
        axes.set(title=title, xlabel="keys, by device", ylabel="" if descriptions else "queries, by device")
        pairs = ", ".join(f"{count:,}" for count in visible.reshape(n, -1).sum(1))
        descriptions.append(f"{title}: devices 0 to {n - 1} see {pairs} pairs")
    explanation = "numbers and colours show the step of the ring, and masked pairs are pale"
    sizes = f"on {n} devices with {m} tokens each"
    return Picture(figure, f"Queries run down and keys across, {sizes}; {explanation}. {'; '.join(descriptions)}.")
