"""Who works in a mixture of experts: which tokens find a seat, and how the experts share the tokens in training."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from utils.show.picture import COLORS, Picture


def draw_dropped(seated: dict[str, Any]) -> Picture:
    """Draw a map for each `{title: seated}`, of shape (devices, tokens): which tokens have a seat, which are dropped.

    Raises ValueError for nothing to draw and for another shape.
    """
    if not seated:
        raise ValueError("nothing to draw: give a title and who is seated, of shape (devices, tokens)")
    figure = Figure(figsize=(4.5 * len(seated), 2.3), layout="constrained")
    colors, said = ListedColormap([COLORS[5], "#D9E6F2"]), []
    for axes, (title, one) in zip(figure.subplots(1, len(seated), squeeze=False)[0], seated.items(), strict=True):
        one = np.asarray(one, bool)
        if one.ndim != 2:
            raise ValueError(f"{title!r} has shape {one.shape}, not (devices, tokens)")
        axes.imshow(one, cmap=colors, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.set(title=title, xlabel="tokens, in their order", xticks=[], yticks=range(len(one)))
        axes.set_ylabel("device" if not said else "")
        axes.grid(visible=False)
        lost = ", ".join(str(count) for count in (~one).sum(1))
        said.append(f"{title}: dropped on devices 0 to {len(one) - 1}: {lost}")
    return Picture(figure, f"Maps of the tokens, a row for each device, dropped ones in orange. {'; '.join(said)}.")


def draw_shares(runs: dict[str, Any]) -> Picture:
    """Draw for each `{title: shares}`, of shape (steps, experts), the experts' shares of the tokens, stacked.

    Raises ValueError for nothing to draw, another shape, and shares that do not sum to 1.
    """
    if not runs:
        raise ValueError("nothing to draw: give a title and shares, of shape (steps, experts)")
    figure = Figure(figsize=(3.2 * len(runs), 3.2), layout="constrained")
    plots, said = figure.subplots(1, len(runs), squeeze=False, sharey=True)[0], []
    for axes, (title, shares) in zip(plots, runs.items(), strict=True):
        shares = np.asarray(shares)
        if shares.ndim != 2 or not np.allclose(shares.sum(1), 1):
            raise ValueError(f"{title!r} holds no shares of shape (steps, experts) that sum to 1 in each step")
        last = shares[-1]
        axes.stackplot(range(len(shares)), shares.T, colors=COLORS, edgecolor="white", linewidth=0.5)
        for e in np.flatnonzero(last > 0.03):
            middle = last[: e + 1].sum() - last[e] / 2
            ink = "white" if e == 0 else "black"
            axes.text(len(shares) - 4, middle, f"{e}", ha="right", va="center", fontsize=9, color=ink)
        axes.set(title=title, xlabel="step", xlim=(0, len(shares) - 1), ylim=(0, 1))
        ends = ", ".join(f"{share:.0%}" for share in last)
        said.append(f"{title}: experts 0 to {len(last) - 1} end with {ends}")
    plots[0].set_ylabel("share of the tokens, by expert")
    return Picture(figure, f"The experts' shares of the tokens, stacked, step by step. {'; '.join(said)}.")
