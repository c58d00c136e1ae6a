"""A causal mask of tokens that are cut over a ring of devices: who meets whom in which round, and sees what."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from utils.show.picture import COLORS, Picture


def draw_masks(orders: dict[str, Any]) -> Picture:
    """Draw a mask for each `{title: places}`: places, of shape (n, m), says where the m tokens of n devices stand.

    Rows are queries, columns keys, both device after device; number and colour are the round in which device d meets
    the keys of device d - round, and pale is hidden. Raises ValueError for nothing to draw, for another shape, and for
    places that are not 0 to n m - 1, each once.
    """
    if not orders:
        raise ValueError("nothing to draw: give a title and places, as in {'in order': np.arange(64).reshape(8, 8)}")
    figure = Figure(figsize=(4.4 if len(orders) == 1 else 3.3 * len(orders), 4.2), layout="constrained")
    said = []
    for axes, (title, places) in zip(figure.subplots(1, len(orders), squeeze=False)[0], orders.items(), strict=True):
        at = np.asarray(places)
        if at.ndim != 2 or sorted(at.ravel()) != [*range(at.size)]:
            raise ValueError(f"the places of {title!r} are not 0 to {at.size - 1}, each once, as (devices, tokens)")
        n, own = at.shape
        seen = at.ravel()[:, None] >= at.ravel()
        device = np.repeat(np.arange(n), own)
        rounds = (device[:, None] - device) % n
        colors = ListedColormap([COLORS[i % len(COLORS)] for i in range(n)])
        axes.imshow(rounds, cmap=colors, vmin=0, vmax=n - 1, alpha=np.where(seen, 0.75, 0.1), interpolation="nearest")
        middle, edge = (np.arange(n) + 0.5) * own - 0.5, np.arange(1, n) * own - 0.5
        for (d, e), number in np.ndenumerate(rounds[::own, ::own]):
            axes.text(middle[e], middle[d], number, ha="center", va="center", fontsize=9 if own > 2 else 7)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(middle, range(n))
            axis.set_ticks(edge, minor=True)
        axes.tick_params(which="both", length=0)
        axes.grid(visible=False)
        axes.grid(which="minor", color="#bbbbbb", linewidth=0.8)
        axes.set(title=title, xlabel="keys, by device", ylabel="queries, by device" if not said else "")
        pairs = ", ".join(f"{count:,}" for count in seen.reshape(n, -1).sum(1))
        said.append(f"{title}: devices 0 to {n - 1} see {pairs} pairs")
    what = f"{n} devices with {own} tokens each; number and colour are the round, and hidden pairs are pale."
    return Picture(figure, f"Queries down, keys across, {what} {'; '.join(said)}.")
