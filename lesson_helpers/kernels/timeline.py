"""Draw simulated kernels: each device's matrix products, the copies that it sends, and its waits for other devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lesson_helpers.kernels.simulator import Event, Simulation
from utils.show.notebook_figure import COLORS, Picture


class _Style(NamedTuple):
    color: str
    hatch: str
    ink: str
    top: float  # the offset of a box's top edge from the middle of its row
    height: float


_STYLES = {
    "product": _Style(COLORS[0], "", "white", -0.42, 0.42),
    "wait": _Style("#eeeeee", "////", "black", -0.42, 0.42),
    "send": _Style(COLORS[1], "", "black", 0.02, 0.38),
}


def draw_kernels(
    simulations: Mapping[str, Simulation], devices: Sequence[int] | None = None, unit: str = "ticks"
) -> Picture:
    """Draw a panel for each titled simulation, with each device's products and waits above the copies that it sends.

    The label of a copy is an arrow and the number of the target device. The label of a wait is the number of the device
    that ends it, "own" if the device's own copy does, or a question mark if the wait never ends.

    Args:
        simulations: ``{title: simulate(program, x)}``.
        devices: the devices to draw, in this order. By default, all of them.
        unit: the unit of the simulated times.

    Raises ValueError if there's nothing to draw.
    """
    if not simulations or not any(simulation.events for simulation in simulations.values()):
        raise ValueError("nothing to draw: give a title and a simulation, as in {'a ring': simulate(program, x)}")
    rows = {
        title: list(range(len(simulation.results)) if devices is None else devices)
        for title, simulation in simulations.items()
    }
    heights = [len(row_devices) for row_devices in rows.values()]
    figure = Figure(figsize=(9.0, 0.36 * sum(heights) + 0.75 * len(simulations) + 0.35), layout="constrained")
    panels = figure.subplots(len(simulations), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    descriptions: list[str] = []
    drawn_kinds: set[str] = set()
    end = max(simulation.end for simulation in simulations.values())
    for axes, (title, simulation) in zip(panels, simulations.items(), strict=True):
        events = {device: [event for event in simulation.events if event.device == device] for device in rows[title]}
        for row, device in enumerate(rows[title]):
            for event in events[device]:
                drawn_kinds.add(event.kind)
                _draw(axes, row, event, end)
        axes.set_yticks(range(len(rows[title])), [f"device {device}" for device in rows[title]])
        axes.set_ylim(len(rows[title]) - 0.5, -0.5)
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        by_device = "; ".join(f"device {device} {_describe(events[device], unit)}" for device in rows[title])
        descriptions.append(f"{title}: {by_device}; everything is done after {simulation.end:.4g} {unit}")
    panels[-1].set_xlabel(unit)
    panels[-1].set_xlim(0, 1.01 * end)
    kinds = [kind for kind in _STYLES if kind in drawn_kinds]
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=_STYLES[kind].color, hatch=_STYLES[kind].hatch, edgecolor="#555555")
        for kind in kinds
    ]
    figure.legend(handles, kinds, loc="outside upper right", ncols=len(kinds), frameon=False, fontsize=9)
    return Picture(figure, f"A timeline in {unit}. {'. '.join(descriptions)}.")


def _draw(axes: Axes, row: int, event: Event, end: float) -> None:
    color, hatch, ink, top, height = _STYLES[event.kind]
    length = event.end - event.start
    box = Rectangle((event.start, row + top), length, height, facecolor=color, hatch=hatch, edgecolor="#555555", lw=0.5)
    axes.add_patch(box)
    text = ""
    if event.kind == "send":
        text = f"→ {event.peer}"
    elif event.kind == "wait":
        text = "own" if event.peer == event.device else f"for {'?' if event.peer is None else event.peer}"
    if text and length > 0.03 * end:  # the text fits in the box
        background = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if event.kind == "wait" else None
        position = event.start + length / 2, row + top + height / 2
        axes.text(*position, text, ha="center", va="center", fontsize=8, color=ink, bbox=background)


def _describe(events: list[Event], unit: str) -> str:
    """Describe how often a device sends and multiplies, how long it waits, and its longest wait."""
    parts = []
    for kind, verb in (("send", "sends"), ("product", "multiplies")):
        if count := sum(event.kind == kind for event in events):
            parts.append(f"{verb} {'once' if count == 1 else f'{count} times'}")
    if waits := [event for event in events if event.kind == "wait"]:
        total = sum(event.end - event.start for event in waits)
        # An endless wait counts as the longest one.
        longest = max(waits, key=lambda event: (event.peer is None, event.end - event.start))
        if longest.peer is None:
            peer = "a device that never answers"
        else:
            peer = "its own copy" if longest.peer == longest.device else f"device {longest.peer}"
        parts.append(f"waits {total:.4g} {unit}, longest for {peer}, from {longest.start:.4g} to {longest.end:.4g}")
    return ", ".join(parts) or "does nothing"
