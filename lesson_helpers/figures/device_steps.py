"""Draw the steps that several devices take, from left to right, with the collectives between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from utils.show.notebook_figure import COLORS, Picture


class Exchange(NamedTuple):
    """A collective in which every device sends to every device."""

    name: str
    returns: bool = False  # give an arrow the colour of the device that receives, rather than of the one that sends


def draw_steps(steps: Sequence[str | Exchange], devices: int = 3, *, alt: str) -> Picture:
    """Draw a row for each device, with a box for each step and arrows in between.

    Args:
        steps: the text of each step's box, where ``{}`` is replaced with the device's number, and an `Exchange` between
            two steps if devices send data to each other there.
        devices: the number of devices, at least two.
        alt: the picture's description.

    Raises ValueError if there are fewer than two devices, since one device sends nothing.
    """
    if devices < 2:
        raise ValueError(f"a collective needs two devices or more, not {devices}")
    figure = Figure(figsize=(9, 0.8 * devices + 0.7), layout="constrained")
    axes = figure.subplots()
    x, exchange = 0.0, None
    for i, step in enumerate(steps):
        if isinstance(step, Exchange):
            exchange = step
            continue
        before = x
        x += 0 if i == 0 else 3 if exchange else 2
        for device in range(devices):
            box = {"boxstyle": "round,pad=0.4", "facecolor": "#D9E6F2", "edgecolor": COLORS[device]}
            axes.text(x, device, step.format(device), ha="center", va="center", fontsize=10, bbox=box, zorder=3)
            for other in range(devices) if exchange else [device]:
                color = COLORS[other if exchange and exchange.returns else device]
                if i:
                    arrow = {"arrowstyle": "->", "color": color}
                    axes.annotate("", (x - 0.6, other), (before + 0.6, device), arrowprops=arrow)
        if exchange:
            middle = (before + x) / 2
            axes.text(middle, -0.75, exchange.name, ha="center", va="center", fontsize=11, fontweight="bold")
        exchange = None
    axes.set(xlim=(-0.8, x + 0.9), ylim=(devices - 0.5, -1), yticks=range(devices), xticks=[])
    axes.set_yticklabels([f"device {device}" for device in range(devices)])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return Picture(figure, alt)


def draw_data_parallel_step(devices: int = 3) -> Picture:
    """Draw a data-parallel training step, with a row for each device. Raises ValueError for fewer than two devices."""
    return draw_steps(
        ["its rows", "gradient of\nits rows", Exchange("all-reduce"), "mean\ngradient", "the same\nstep"],
        devices,
        alt=f"One data-parallel step on {devices} devices, from left to right: each device computes the gradient of "
        "its own rows, an all-reduce averages the gradients, and every device takes the same step with the mean.",
    )
