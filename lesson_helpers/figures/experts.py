"""Draw the tokens that a mixture of experts drops, and the experts' shares of the tokens during training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from lesson_helpers.figures.device_steps import Exchange, draw_steps
from utils.show.notebook_figure import COLORS, Picture


def draw_dropped(kept: Mapping[str, np.ndarray]) -> Picture:
    """Draw a map of the tokens for each title, with dropped tokens in orange.

    Args:
        kept: ``{title: is_kept}``, with booleans of shape (devices, tokens) that are False for dropped tokens.

    Raises ValueError if there's nothing to draw, or if an array isn't two-dimensional.
    """
    if not kept:
        raise ValueError("nothing to draw: give a title and booleans of shape (devices, tokens)")
    figure = Figure(figsize=(4.5 * len(kept), 2.3), layout="constrained")
    colors, descriptions = ListedColormap([COLORS[5], "#D9E6F2"]), []
    for axes, (title, rows) in zip(figure.subplots(1, len(kept), squeeze=False)[0], kept.items(), strict=True):
        rows = np.asarray(rows, bool)
        if rows.ndim != 2:
            raise ValueError(f"{title!r} has shape {rows.shape}, not (devices, tokens)")
        axes.imshow(rows, cmap=colors, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.set(title=title, xlabel="tokens, in their order", xticks=[], yticks=range(len(rows)))
        axes.set_ylabel("" if descriptions else "device")
        axes.grid(visible=False)
        dropped = ", ".join(str(count) for count in (~rows).sum(1))
        descriptions.append(f"{title}: dropped on devices 0 to {len(rows) - 1}: {dropped}")
    return Picture(
        figure,
        f"Maps of the tokens, with a row for each device and dropped tokens in orange. {'; '.join(descriptions)}.",
    )


def draw_shares(runs: Mapping[str, np.ndarray]) -> Picture:
    """Draw a stacked plot of the experts' shares of the tokens for each training run.

    Args:
        runs: ``{title: shares}``, with shares of shape (steps, experts) that sum to 1 in each step.

    Raises ValueError if there's nothing to draw, if an array isn't two-dimensional, or if shares don't sum to 1.
    """
    if not runs:
        raise ValueError("nothing to draw: give a title and shares of shape (steps, experts)")
    figure = Figure(figsize=(3.2 * len(runs), 3.2), layout="constrained")
    all_axes, descriptions = figure.subplots(1, len(runs), squeeze=False, sharey=True)[0], []
    for axes, (title, shares) in zip(all_axes, runs.items(), strict=True):
        shares = np.asarray(shares)
        if shares.ndim != 2 or not np.allclose(shares.sum(1), 1):
            raise ValueError(f"{title!r} needs shares of shape (steps, experts) that sum to 1 in each step")
        last = shares[-1]
        axes.stackplot(range(len(shares)), shares.T, colors=COLORS, edgecolor="white", linewidth=0.5)
        for expert in np.flatnonzero(last > 0.03):
            middle = last[: expert + 1].sum() - last[expert] / 2
            color = "white" if expert == 0 else "black"
            axes.text(len(shares) - 4, middle, f"{expert}", ha="right", va="center", fontsize=9, color=color)
        axes.set(title=title, xlabel="step", xlim=(0, len(shares) - 1), ylim=(0, 1))
        ends = ", ".join(f"{share:.0%}" for share in last)
        descriptions.append(f"{title}: experts 0 to {len(last) - 1} end with {ends}")
    all_axes[0].set_ylabel("share of the tokens, by expert")
    return Picture(figure, f"The experts' shares of the tokens, stacked, step by step. {'; '.join(descriptions)}.")


def draw_layer(devices: int = 3) -> Picture:
    """Draw the steps of a mixture-of-experts layer from left to right, in one row per device, each with one expert.

    Raises ValueError if there are fewer than two devices, since one device sends nothing.
    """
    steps = ["its tokens", "router,\nseats", Exchange("all-to-all"), "expert {}"]
    return draw_steps(
        [*steps, Exchange("all-to-all", returns=True), "times gate,\nplus input"],
        devices,
        alt=f"The layer on {devices} devices, from left to right: each device's router assigns seats to its own "
        "tokens, an all-to-all sends each seat to the device with that expert, the expert processes the seats, and a "
        "second all-to-all sends the results back to the tokens' own device, which multiplies by the gate and adds "
        "the input.",
    )
