"""Draw meshes, shardings and per-device values. In a sharding, each colour is a piece, and each circle a device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Circle, Rectangle

from utils.compat import spec_text
from utils.shard_placement import Piece, describe, piece_shape, pieces
from utils.show.notebook_figure import COLORS, Picture

if TYPE_CHECKING:
    import jax

_NOTHING = "nothing to draw: give a title and an array, as in {'before': x}"


def sharding(array: jax.Array | jax.ShapeDtypeStruct, title: str | None = None) -> Picture:
    """Draw which devices hold which piece of an array. Raises the same errors as `shardings`."""
    spec = getattr(getattr(array, "sharding", None), "spec", None)
    return shardings({title or ("one device" if spec is None else spec_text(spec)): array})


def shardings(arrays: Mapping[str, jax.Array | jax.ShapeDtypeStruct]) -> Picture:
    """Draw which devices hold which piece of each titled array. More than three arrays are drawn in rows of two.

    Raises ValueError if there's no array or if a rank is above 3, and the same errors as `shard_placement.pieces`.
    """
    if not arrays:
        raise ValueError(_NOTHING)
    devices_by_piece = {title: pieces(array) for title, array in arrays.items()}
    for array in arrays.values():
        if len(array.shape) > 3:
            raise ValueError(
                f"an array of rank {len(array.shape)} cannot be drawn; draw x[0] or x.reshape(...), of rank 3 or less"
            )
    columns = len(arrays) if len(arrays) < 4 else 2
    rows = math.ceil(len(arrays) / columns)
    small = len(arrays) > 2  # so that letters stay legible when the figure is scaled down, as on a phone
    size = (
        {1: 6.0, 2: 2.7 if small else 4.5, 3: 3.1}[columns],
        1.7 if all(len(array.shape) == 1 for array in arrays.values()) else 2.3 if small else 3.0,
    )
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    grid = figure.subfigures(rows, columns, squeeze=False, wspace=0.04).flat
    for (title, array), subfigure in zip(arrays.items(), grid, strict=False):
        piece, devices = next(iter(devices_by_piece[title].items()))
        copies = f"{len(devices)} cop{'y' if len(devices) == 1 else 'ies'}"
        summary = f"each, {copies}" if small else f"on each device, {copies} of each piece"
        subfigure.suptitle(f"{title}\n{piece_shape(piece)} {summary}", fontsize=11.5 if rows > 1 else 10)
        _draw_pieces(subfigure, size, tuple(array.shape), devices_by_piece[title])
    return Picture(figure, " ".join(f"{title}: {describe(array)}" for title, array in arrays.items()))


def mesh(mesh: jax.sharding.Mesh) -> Picture:
    """Draw a mesh with one to three axes: its device numbers and the names of its axes.

    Raises ValueError if the mesh has more than three axes.
    """
    names, ids = mesh.axis_names, np.vectorize(lambda device: device.id)(mesh.devices)
    if ids.ndim > 3:
        raise ValueError(f"a mesh with {ids.ndim} axes cannot be drawn; draw one with at most three")
    planes = ids.reshape((1,) * (3 - ids.ndim) + ids.shape)
    width, height = 0.75 * planes.shape[0] * planes.shape[2] + 1, 0.75 * planes.shape[1] + 0.7
    figure = Figure(figsize=(min(9.0, width), height), layout="constrained")
    for i, (axes, plane) in enumerate(zip(figure.subplots(1, len(planes), squeeze=False)[0], planes, strict=True)):
        for (row, column), device in np.ndenumerate(plane):
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor="#f4f4f4", edgecolor="#333333"))
            _draw_circle(axes, column + 0.5, row + 0.5, 0.32, device, "#555555", 12)
        _hide_frame(axes, plane.shape)
        axes.set_xticks(np.arange(plane.shape[1]) + 0.5, range(plane.shape[1]))
        axes.set_yticks(np.arange(plane.shape[0]) + 0.5, range(plane.shape[0]) if ids.ndim > 1 else [""])
        for name, set_label in zip(names[::-1], (axes.set_xlabel, axes.set_ylabel), strict=False):
            set_label(name, fontsize=11, family="monospace")
        if ids.ndim > 2:
            axes.set_title(f"{names[0]} = {i}", fontsize=10, family="monospace")
    sizes = " by ".join(f"{name!r} of {size}" for name, size in mesh.shape.items())
    return Picture(figure, f"A mesh, {sizes}; device numbers {ids.tolist()}.")


def values(arrays: Mapping[str, jax.Array]) -> Picture:
    """Draw the values on each device, with a band for each array: for example, one before and one after a collective.

    If exactly one device holds a value in the first array, the value appears in that device's colour everywhere. Other
    values have no colour. A shard may have a rank of at most 2, and at most 8 elements along an axis. A shard of rank 1
    is drawn as a column.

    The picture's `data` is a list with each device's values in the first array.

    Raises ValueError if there's no array, if a shard is too large, or if the arrays are on different devices.
    """
    if not arrays:
        raise ValueError(_NOTHING)
    bands = {title: {s.device.id: np.asarray(s.data) for s in a.addressable_shards} for title, a in arrays.items()}
    devices = sorted(next(iter(bands.values())))
    for title, band in bands.items():
        if sorted(band) != devices:
            raise ValueError(f"{title!r} is on devices {sorted(band)}, the first array on {devices}")
        shape = band[devices[0]].shape
        if len(shape) > 2 or max(shape, default=1) > 8:
            raise ValueError(f"{title!r} has shards of shape {shape}; at most (8, 8) is legible")
        bands[title] = {d: shard.reshape(len(shard) if shard.ndim else 1, -1) for d, shard in band.items()}
    heights = [band[devices[0]].shape[0] for band in bands.values()]
    figure = Figure(figsize=(9.0, 0.28 * sum(heights) + 0.25 * len(bands) + 0.4), layout="constrained")
    axes = figure.subplots()
    colors, top = _owner_colors(next(iter(bands.values()))), 0.0
    for title, band in bands.items():
        rows, columns = band[devices[0]].shape
        for position, device in enumerate(devices):
            for (row, column), value in np.ndenumerate(band[device]):
                x, y, w = position + 0.06 + column * 0.88 / columns, top + row, 0.88 / columns
                color = colors.get(value.item())
                axes.add_patch(
                    Rectangle((x, y), w, 1, facecolor=color or "white", alpha=0.4 if color else 1, edgecolor="none")
                )
                axes.add_patch(Rectangle((x, y), w, 1, fill=False, edgecolor="#666666", linewidth=0.6))
                size = 10 if columns < 3 else 6
                axes.text(x + w / 2, y + 0.52, f"{value:g}", ha="center", va="center", fontsize=size)
            outline = Rectangle((position + 0.06, top), 0.88, rows, fill=False, edgecolor="#222222", linewidth=1.4)
            axes.add_patch(outline)
        axes.text(-0.08, top + rows / 2, title, ha="right", va="center", fontsize=10)
        top += rows + 0.9
    for position, device in enumerate(devices):
        color = COLORS[position % len(COLORS)]
        axes.text(position + 0.5, -0.35, f"device {device}", ha="center", fontsize=9, color="#222222")
        axes.add_patch(Rectangle((position + 0.06, -0.2), 0.88, 0.12, facecolor=color, edgecolor="none"))
    axes.set(xlim=(-1.1, len(devices)), ylim=(top - 0.8, -1.0))
    axes.set_axis_off()
    descriptions = " ".join(f"{' '.join(title.split())}: {_describe_band(band)}." for title, band in bands.items())
    first = next(iter(bands.values()))
    alt = f"{descriptions} A number that only one device holds at first has that device's colour."
    return Picture(figure, alt, data=[first[device].ravel().tolist() for device in devices])


def _owner_colors(band: dict[int, np.ndarray]) -> dict[int | float | bool, str]:
    """Map each value that exactly one device holds to that device's colour."""
    owners: dict[int | float | bool, set[int]] = {}
    for position, device in enumerate(sorted(band)):
        for value in band[device].flat:
            owners.setdefault(value.item(), set()).add(position)
    return {
        value: COLORS[min(owner_devices) % len(COLORS)]
        for value, owner_devices in owners.items()
        if len(owner_devices) == 1
    }


def _describe_band(band: dict[int, np.ndarray]) -> str:
    """Describe the values on each device, as in 'device 0 holds 3; device 1 holds 1' or 'every device holds 38'."""
    texts = {device: " ".join(f"{value:g}" for value in shard.flat) for device, shard in band.items()}
    if len(set(texts.values())) == 1:
        return f"every device holds {next(iter(texts.values()))}"
    return "; ".join(f"device {device} holds {texts[device]}" for device in sorted(texts))


def _draw_pieces(
    figure: SubFigure, inches: tuple[float, float], shape: tuple[int, ...], devices_by_piece: dict[Piece, list[int]]
) -> None:
    """Draw a panel for each range of a rank-3 array's first axis, or one panel for an array of lower rank."""
    shape3 = (1,) * (3 - len(shape)) + shape
    pieces3 = {((0, 1),) * (3 - len(shape)) + piece: devices for piece, devices in devices_by_piece.items()}
    planes = sorted({piece[0] for piece in pieces3})
    colors = {piece: COLORS[i % len(COLORS)] for i, piece in enumerate(pieces3)}
    # Keep the array's proportions, within the limits of what's legible.
    width, height = 1.0, 1.0
    if len(shape) == 1:
        width = 7.0
    elif shape and 0 not in shape3:
        width = min(max(shape3[2] / shape3[1], 0.7), 2.4)
    columns = math.ceil(math.sqrt(len(planes))) if len(planes) > 3 else len(planes)
    rows = math.ceil(len(planes) / columns)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    title_height = 0.25 * rows * (len(shape) > 2)
    scale = min((inches[0] - 0.3) / columns / width, (inches[1] - 0.6 - title_height) / rows / height)
    fx, fy = width / max(shape3[2], 1), height / max(shape3[1], 1)
    for plane, axes in zip(planes, panels, strict=False):  # planes first, so that zip doesn't consume an extra panel
        _hide_frame(axes, (height, width))
        for piece, devices in pieces3.items():
            if piece[0] != plane:
                continue
            (top, bottom), (left, right) = piece[1:]
            x, y, w, h = left * fx, top * fy, (right - left) * fx, (bottom - top) * fy
            axes.add_patch(Rectangle((x, y), w, h, facecolor=colors[piece], alpha=0.35, edgecolor="none"))
            axes.add_patch(Rectangle((x, y), w, h, fill=False, edgecolor="#222222", linewidth=1.4, zorder=2))
            _draw_devices(axes, (x, y, w, h), devices, colors[piece], scale)
        if max(shape3[1:]) <= 16:  # separate the elements with thin lines
            axes.vlines(np.arange(1, shape3[2]) * fx, 0, height, color="#00000022", linewidth=0.8, zorder=1)
            axes.hlines(np.arange(1, shape3[1]) * fy, 0, width, color="#00000022", linewidth=0.8, zorder=1)
        if len(shape) == 3:
            axes.set_title(f"[{plane[0]}:{plane[1]}, :, :]", fontsize=9, family="monospace")
    for axes in panels:  # hide the unused panels at the end of the grid
        axes.set_axis_off()


def _draw_devices(
    axes: Axes, box: tuple[float, float, float, float], devices: list[int], color: str, scale: float
) -> None:
    """Draw a piece's devices as circles in the piece's box, in the number of rows that allows the largest circles."""
    x, y, w, h = box
    # Make all rows equally long: draw eight devices as 2 rows of 4, for example, not as rows of 3, 3 and 2.
    equal_rows = [r for r in range(1, len(devices) + 1) if len(devices) % r == 0]
    rows = max(equal_rows, key=lambda r: min(h / r, w * r / len(devices)))
    columns = len(devices) // rows
    step = min(h / rows, w / columns, 0.42 / scale)  # at most 0.42 inches between the centres of circles
    for i, device in enumerate(devices):
        row, column = divmod(i, columns)
        cx, cy = x + w / 2 + (column - (columns - 1) / 2) * step, y + h / 2 + (row - (rows - 1) / 2) * step
        _draw_circle(axes, cx, cy, 0.43 * step, device, color, min(11, 0.43 * step * scale * 72 * 1.25))


def _draw_circle(axes: Axes, x: float, y: float, radius: float, device: int, color: str, size: float) -> None:
    axes.add_patch(
        Circle((x, y), radius, facecolor="white", edgecolor=color, linewidth=2 if size > 9 else 1.4, zorder=3)
    )
    axes.text(x, y, str(device), ha="center", va="center_baseline", fontsize=size, fontweight="bold", zorder=4)


def _hide_frame(axes: Axes, extent: tuple[float, float]) -> None:
    """Set the axes' limits to fit an extent of (height, width), and hide the ticks and the frame."""
    height, width = extent
    axes.set(
        xlim=(-0.02 * width, 1.02 * width), ylim=(1.02 * height, -0.02 * height), aspect="equal", xticks=[], yticks=[]
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
