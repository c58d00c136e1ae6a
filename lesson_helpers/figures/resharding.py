"""Draw the elements that each device keeps, receives and drops when an array is resharded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils.shard_placement import bytes_arriving, overlap, piece_shape, pieces_by_device
from utils.show.notebook_figure import COLORS, Picture

if TYPE_CHECKING:
    import jax

_STYLES = {  # label: (colour, hatch)
    "kept": (COLORS[0], ""),
    "received": (COLORS[1], "////"),
    "dropped": ("#dddddd", ""),
}


def draw_resharding(before: jax.Array | jax.ShapeDtypeStruct, after: jax.Array | jax.ShapeDtypeStruct) -> Picture:
    """Draw a panel for each device that shows which elements it keeps, receives and drops when an array is resharded.

    Raises ValueError if the array's rank isn't 1 or 2, and any error that `shard_placement.bytes_arriving` raises.
    """
    if len(after.shape) not in (1, 2):
        raise ValueError(f"an array of rank {len(after.shape)} cannot be drawn; use one of rank 1 or 2")
    received, old, new = bytes_arriving(before, after), pieces_by_device(before), pieces_by_device(after)
    columns = math.ceil(len(new) / 2) if len(new) > 4 else len(new)
    rows, shape = math.ceil(len(new) / columns), ((1,) * (2 - len(after.shape)) + tuple(after.shape))
    panel_width = 8.6 / columns
    panel_height = panel_width * max(0.3, min(1.2, shape[0] / shape[1])) + 0.45
    figure = Figure(figsize=(9.0, panel_height * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flat
    descriptions = []
    for axes, device in zip(grid, sorted(new), strict=False):
        kept = overlap(old[device], new[device])
        # Draw the kept part last, on top of the old and new pieces.
        for piece, (color, hatch) in zip((old[device], new[device], kept), reversed(_STYLES.values()), strict=True):
            (top, bottom), (left, right) = ((0, 1),) * (2 - len(piece)) + piece
            box = (left, top), right - left, bottom - top
            axes.add_patch(Rectangle(*box, facecolor=color, hatch=hatch, edgecolor="white", lw=0))
        if max(shape) <= 16:  # draw lines between the elements
            axes.set_xticks(range(shape[1] + 1), minor=True)
            axes.set_yticks(range(shape[0] + 1), minor=True)
            axes.grid(which="minor", color="#888888", linewidth=0.4)
        axes.tick_params(which="both", length=0)
        axes.set(xlim=(0, shape[1]), ylim=(shape[0], 0), aspect="auto", xticks=[], yticks=[])
        axes.set_title(f"device {device}: {received[device]:,} bytes", fontsize=10)
        elements = math.prod(piece_shape(kept))
        descriptions.append(
            f"device {device} keeps {elements} elements of its new piece and receives {received[device]:,} bytes"
        )
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=color, hatch=hatch, edgecolor="white") for color, hatch in _STYLES.values()
    ]
    figure.legend(handles, _STYLES, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    return Picture(figure, f"A change of sharding, device by device: {'; '.join(descriptions)}.")
