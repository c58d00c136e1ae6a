"""Who sends to whom and who waits for whom: the events of kernels that `simulate.dma_copies` has played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils.show.picture import COLORS, Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {  # kind: color, hatch, colour of its words, where in the row, how high
    "product": (COLORS[0], "", "white", -0.42, 0.42),
    "wait": ("#eeeeee", "////", "black", -0.42, 0.42),
    "send": (COLORS[1], "", "black", 0.02, 0.38),
}


def draw_kernels(plays: dict[str, Any], devices: Sequence[int] | None = None, unit: str = "ticks") -> Picture:
    """Draw plays (`copies.Play`), a panel for each title: a device's products and waits, and below them its sends.

    `devices`: those that are drawn, in this order; all by default. `unit`: of the times that were played. An arrow is
    to a copy's target, and a word names the device that ends a wait ("own": its own copy); one that
    nobody ends has a question mark.

    Raises ValueError for nothing to draw.
    """
    if not plays or not any(play.events for play in plays.values()):
        raise ValueError("nothing to draw: give a title and a play, as in {'a ring': play(program, x)}")
    shown = {title: range(len(play.results)) if devices is None else devices for title, play in plays.items()}
    rows = sum(map(len, shown.values()))
    figure = Figure(figsize=(9.0, 0.36 * rows + 0.75 * len(plays) + 0.35), layout="constrained")
    heights = [len(names) for names in shown.values()]
    panels = figure.subplots(len(plays), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    said: list[str] = []
    found: set[str] = set()
    end = max(play.end for play in plays.values())
    for axes, (title, play) in zip(panels, plays.items(), strict=True):
        names = list(shown[title])
        drawn = [event for event in play.events if event.device in names]
        found |= {event.kind for event in drawn}
        for event in drawn:
            _draw(axes, names.index(event.device), event, end)
        axes.set_yticks(range(len(names)), [f"device {name}" for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_title(title, loc="left", fontsize=10)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        told = [f"device {name} {_told([event for event in drawn if event.device == name], unit)}" for name in names]
        said.append(f"{title}: {'; '.join(told)}; all done after {play.end:.4g} {unit}")
    panels[-1].set_xlabel(unit)
    panels[-1].set_xlim(0, 1.01 * end)
    kinds = [kind for kind in _LOOKS if kind in found]
    handles = [Rectangle((0, 0), 1, 1, facecolor=_LOOKS[k][0], hatch=_LOOKS[k][1], edgecolor="#555555") for k in kinds]
    figure.legend(handles, kinds, loc="outside upper right", ncols=len(kinds), frameon=False, fontsize=9)
    return Picture(figure, f"A timeline in {unit}. {'. '.join(said)}.")


def _draw(axes: Axes, row: int, event: Any, end: int) -> None:
    color, hatch, ink, top, height = _LOOKS[event.kind]
    length = event.end - event.start
    box = Rectangle((event.start, row + top), length, height, facecolor=color, hatch=hatch, edgecolor="#555555", lw=0.5)
    axes.add_patch(box)
    words = ""
    if event.kind == "send":
        words = f"→ {event.peer}"
    elif event.kind == "wait":
        words = "own" if event.peer == event.device else f"for {'?' if event.peer is None else event.peer}"
    if words and length > 0.03 * end:
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if event.kind == "wait" else None
        middle = event.start + length / 2
        axes.text(middle, row + top + height / 2, words, ha="center", va="center", fontsize=8, color=ink, bbox=paper)


def _told(events: list[Any], unit: str) -> str:
    """For the description: how long it sends, multiplies and waits, and the longest wait."""
    waited = [event for event in events if event.kind == "wait"]
    parts = [f"sends {count} x" for count in [sum(event.kind == "send" for event in events)] if count]
    parts += [f"multiplies {count} x" for count in [sum(event.kind == "product" for event in events)] if count]
    if waited:
        total, longest = (
            sum(e.end - e.start for e in waited),
            max(waited, key=lambda e: (e.peer is None, e.end - e.start)),
        )
        whom = "nobody" if longest.peer is None else f"device {longest.peer}"
        whom = "its own copy" if longest.peer == longest.device else whom
        parts.append(f"waits {total:.4g} {unit}, longest for {whom}, from {longest.start:.4g} to {longest.end:.4g}")
    return ", ".join(parts) or "does nothing"
