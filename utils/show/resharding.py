"""A change of sharding, drawn: of its new piece, what a device holds already and what has to arrive."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from utils.layout import bytes_arriving, overlap, piece_shape, pieces_by_device
from utils.show.picture import COLORS, Picture

HELD, ARRIVES, GONE = COLORS[0], COLORS[1], "#dddddd"
LOOKS = {  # label: (colour, hatch)
    "held before, and kept": (HELD, ""),
    "arrives": (ARRIVES, "////"),
    "held before, and dropped": (GONE, ""),
}


def draw_resharding(before: Any, after: Any) -> Picture:
    """A panel for each device, with the array's elements: kept, arriving, dropped. Arrays of rank 1 or 2.

    Raises ValueError for another rank; else errors as `layout.bytes_arriving`.
    """
    if len(after.shape) not in (1, 2):
        raise ValueError(f"rank {len(after.shape)} does not fit on paper; draw an array of rank 1 or 2")
    bytes_of, old, new = bytes_arriving(before, after), pieces_by_device(before), pieces_by_device(after)
    columns = math.ceil(len(new) / 2) if len(new) > 4 else len(new)
    rows, shape = math.ceil(len(new) / columns), ((1,) * (2 - len(after.shape)) + tuple(after.shape))
    panel = 8.6 / columns
    height = panel * max(0.3, min(1.2, shape[0] / shape[1])) + 0.45
    figure = Figure(figsize=(9.0, height * rows + 0.4), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for axes, device in zip(grid, sorted(new), strict=False):
        kept = overlap(old[device], new[device])
        for piece, look in zip((old[device], new[device], kept), list(LOOKS)[::-1], strict=True):
            (top, bottom), (left, right) = ((0, 1),) * (2 - len(piece)) + piece
            color, hatch = LOOKS[look]
            axes.add_patch(
                Rectangle(
                    (left, top), right - left, bottom - top, facecolor=color, hatch=hatch, edgecolor="white", lw=0
                )
            )
        if max(shape) <= 16:  # the elements
            axes.set_xticks(range(shape[1] + 1), minor=True)
            axes.set_yticks(range(shape[0] + 1), minor=True)
            axes.grid(which="minor", color="#888888", linewidth=0.4)
        axes.tick_params(which="both", length=0)
        axes.set(xlim=(0, shape[1]), ylim=(shape[0], 0), aspect="auto", xticks=[], yticks=[])
        axes.set_title(f"device {device}: {bytes_of[device]:,} bytes", fontsize=10)
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=color, hatch=hatch, edgecolor="white") for color, hatch in LOOKS.values()
    ]
    figure.legend(handles, LOOKS, loc="outside lower center", ncols=3, frameon=False, fontsize=10)
    told = (
        f"device {device} keeps {math.prod(piece_shape(overlap(old[device], new[device])))} elements of its new piece, "
        f"and {bytes_of[device]:,} bytes arrive"
        for device in sorted(new)
    )
    return Picture(figure, f"A change of sharding, device by device: {'; '.join(told)}.")
