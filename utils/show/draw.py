"""Figures of meshes and shardings, drawn from the real thing: colour is a piece of the array, a circle is a device."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from utils.compat import spec_text
from utils.layout import Piece, describe, piece_shape, pieces
from utils.show.picture import COLORS, Picture


def sharding(array: Any, title: str | None = None) -> Picture:
    """Draw who holds what of one array of rank 0 to 3. Errors as `shardings`."""
    spec = getattr(getattr(array, "sharding", None), "spec", None)
    return shardings({title or ("one device" if spec is None else spec_text(spec)): array})


def shardings(arrays: dict[str, Any]) -> Picture:
    """Draw several arrays side by side, by title: before and after, or several layouts of one array. More than three
    stand in rows of two.

    Raises ValueError for rank above 3, for no array at all, and whatever `layout.pieces` raises.
    """
    if not arrays:
        raise ValueError("nothing to draw: give a title and an array, as in {'before': x}")
    found = {title: pieces(array) for title, array in arrays.items()}
    for array in arrays.values():
        if len(array.shape) > 3:
            raise ValueError(
                f"rank {len(array.shape)} does not fit on paper; draw x[0] or x.reshape(...), of rank 3 or less"
            )
    columns = len(arrays) if len(arrays) < 4 else 2
    rows = math.ceil(len(arrays) / columns)
    small = len(arrays) > 2  # so that letters stay large where the figure is shrunk: on a phone
    size = (
        {1: 6.0, 2: 2.7 if small else 4.5, 3: 3.1}[columns],
        1.7 if all(len(array.shape) == 1 for array in arrays.values()) else 2.3 if small else 3.0,
    )
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    grid = figure.subfigures(rows, columns, squeeze=False, wspace=0.04).flat
    for (title, array), part in zip(arrays.items(), grid, strict=False):
        piece, devices = next(iter(found[title].items()))
        copies = f"{len(devices)} cop{'y' if len(devices) == 1 else 'ies'}"
        summary = (
            f"{piece_shape(piece)} each, {copies}"
            if small
            else f"{piece_shape(piece)} on each device, {copies} of each piece"
        )
        part.suptitle(f"{title}\n{summary}", fontsize=11.5 if rows > 1 else 10)
        _draw_pieces(part, size, tuple(array.shape), found[title])
    return Picture(figure, " ".join(f"{title}: {describe(array)}" for title, array in arrays.items()))


def mesh(mesh: Any) -> Picture:
    """Draw a mesh of one to three axes: the devices' numbers at their places, the axes' names along the sides.

    Raises ValueError for more than three axes.
    """
    names, ids = mesh.axis_names, np.vectorize(lambda device: device.id)(mesh.devices)
    if ids.ndim > 3:
        raise ValueError(f"a mesh of {ids.ndim} axes does not fit on paper; draw one of up to three")
    planes = ids.reshape((1,) * (3 - ids.ndim) + ids.shape)
    width, height = 0.75 * planes.shape[0] * planes.shape[2] + 1, 0.75 * planes.shape[1] + 0.7
    figure = Figure(figsize=(min(9.0, width), height), layout="constrained")
    for i, (axes, plane) in enumerate(zip(figure.subplots(1, len(planes), squeeze=False)[0], planes, strict=True)):
        for (row, column), device in np.ndenumerate(plane):
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor="#f4f4f4", edgecolor="#333333"))
            _circle(axes, column + 0.5, row + 0.5, 0.32, device, "#555555", 12)
        _frame(axes, plane.shape)
        axes.set_xticks(np.arange(plane.shape[1]) + 0.5, range(plane.shape[1]))
        axes.set_yticks(np.arange(plane.shape[0]) + 0.5, range(plane.shape[0]) if ids.ndim > 1 else [""])
        for name, label in zip(names[::-1], (axes.set_xlabel, axes.set_ylabel), strict=False):
            label(name, fontsize=11, family="monospace")
        if ids.ndim > 2:
            axes.set_title(f"{names[0]} = {i}", fontsize=10, family="monospace")
    sizes = " by ".join(f"{name!r} of {size}" for name, size in mesh.shape.items())
    return Picture(figure, f"A mesh, {sizes}; device numbers {ids.tolist()}.")


def values(arrays: dict[str, Any]) -> Picture:
    """Draw the numbers that each device holds, one band for each array, by title: before and after a collective.

    A number has the colour of the device that holds it in the first array, if one alone does; else it has none: a new
    number. A device's own part has rank 2 at most and 8 rows at most; a part of rank 1 stands as a column.

    Raises ValueError for no array, for a larger part, and for arrays that do not live on the same devices.
    """
    if not arrays:
        raise ValueError("nothing to draw: give a title and an array, as in {'before': x}")
    bands = {title: {s.device.id: np.asarray(s.data) for s in a.addressable_shards} for title, a in arrays.items()}
    devices = sorted(next(iter(bands.values())))
    for title, band in bands.items():
        if sorted(band) != devices:
            raise ValueError(f"{title!r} lives on devices {sorted(band)}, the first array on {devices}")
        shape = band[devices[0]].shape
        if len(shape) > 2 or max(shape, default=1) > 8:
            raise ValueError(f"{title!r} has {shape} on each device; up to (8, 8) is legible")
        bands[title] = {d: part.reshape(len(part) if part.ndim else 1, -1) for d, part in band.items()}
    heights = [band[devices[0]].shape[0] for band in bands.values()]
    figure = Figure(figsize=(9.0, 0.28 * sum(heights) + 0.25 * len(bands) + 0.4), layout="constrained")
    axes = figure.subplots()
    color, top = _origins(next(iter(bands.values()))), 0.0
    for title, band in bands.items():
        rows, columns = band[devices[0]].shape
        for place, device in enumerate(devices):
            for (row, column), value in np.ndenumerate(band[device]):
                x, y, w = place + 0.06 + column * 0.88 / columns, top + row, 0.88 / columns
                face = color.get(value.item())
                axes.add_patch(
                    Rectangle((x, y), w, 1, facecolor=face or "white", alpha=0.4 if face else 1, edgecolor="none")
                )
                axes.add_patch(Rectangle((x, y), w, 1, fill=False, edgecolor="#666666", linewidth=0.6))
                size = 10 if columns < 3 else 6
                axes.text(x + w / 2, y + 0.52, f"{value:g}", ha="center", va="center", fontsize=size)
            axes.add_patch(Rectangle((place + 0.06, top), 0.88, rows, fill=False, edgecolor="#222222", linewidth=1.4))
        axes.text(-0.08, top + rows / 2, title, ha="right", va="center", fontsize=10)
        top += rows + 0.9
    for place, device in enumerate(devices):
        tone = COLORS[place % len(COLORS)]
        axes.text(place + 0.5, -0.35, f"device {device}", ha="center", fontsize=9, color="#222222")
        axes.add_patch(Rectangle((place + 0.06, -0.2), 0.88, 0.12, facecolor=tone, edgecolor="none"))
    axes.set(xlim=(-1.1, len(devices)), ylim=(top - 0.8, -1.0))
    axes.set_axis_off()
    said = (f"{' '.join(title.split())}: {_holdings(band)}." for title, band in bands.items())
    return Picture(figure, f"{' '.join(said)} A number has the colour of the device that it comes from.")


def _origins(band: dict[int, np.ndarray]) -> dict[Any, str]:
    """The colour of each number that one device alone holds."""
    owners: dict[Any, set[int]] = {}
    for place, part in enumerate(band[device] for device in sorted(band)):
        for value in part.flat:
            owners.setdefault(value.item(), set()).add(place)
    return {value: COLORS[min(places) % len(COLORS)] for value, places in owners.items() if len(places) == 1}


def _holdings(band: dict[int, np.ndarray]) -> str:
    """In words, for the description: 'device 0 holds 3; device 1 holds 1', or 'every device holds 38'."""
    said = {d: " ".join(f"{value:g}" for value in part.flat) for d, part in band.items()}
    if len(set(said.values())) == 1:
        return f"every device holds {next(iter(said.values()))}"
    return "; ".join(f"device {device} holds {said[device]}" for device in sorted(said))


def _draw_pieces(part: Any, inches: tuple[float, float], shape: tuple[int, ...], held: dict[Piece, list[int]]) -> None:
    """One panel for each stretch of the first axis of a rank-3 array; one panel for any lower rank."""
    shape3 = (1,) * (3 - len(shape)) + shape
    held3 = {((0, 1),) * (3 - len(shape)) + piece: devices for piece, devices in held.items()}
    planes = sorted({piece[0] for piece in held3})
    color = {piece: COLORS[i % len(COLORS)] for i, piece in enumerate(held3)}
    # Drawn as wide beside its height as the array is, within what stays legible.
    width, height = 1.0, 1.0
    if len(shape) == 1:
        width = 7.0
    elif shape and 0 not in shape3:
        width = min(max(shape3[2] / shape3[1], 0.7), 2.4)
    columns = math.ceil(math.sqrt(len(planes))) if len(planes) > 3 else len(planes)
    rows = math.ceil(len(planes) / columns)
    panels = part.subplots(rows, columns, squeeze=False).flat
    scale = min((inches[0] - 0.3) / columns / width, (inches[1] - 0.6 - 0.25 * rows * (len(shape) > 2)) / rows / height)
    fx, fy = width / max(shape3[2], 1), height / max(shape3[1], 1)
    for axes, plane in zip(panels, planes, strict=False):
        _frame(axes, (height, width))
        for piece, devices in held3.items():
            if piece[0] != plane:
                continue
            (top, bottom), (left, right) = piece[1:]
            x, y, w, h = left * fx, top * fy, (right - left) * fx, (bottom - top) * fy
            axes.add_patch(Rectangle((x, y), w, h, facecolor=color[piece], alpha=0.35, edgecolor="none"))
            axes.add_patch(Rectangle((x, y), w, h, fill=False, edgecolor="#222222", linewidth=1.4, zorder=2))
            _circles(axes, (x, y, w, h), devices, color[piece], scale)
        if max(shape3[1:]) <= 16:  # the array's elements, faintly
            axes.vlines(np.arange(1, shape3[2]) * fx, 0, height, color="#00000022", linewidth=0.8, zorder=1)
            axes.hlines(np.arange(1, shape3[1]) * fy, 0, width, color="#00000022", linewidth=0.8, zorder=1)
        if len(shape) == 3:
            axes.set_title(f"[{plane[0]}:{plane[1]}, :, :]", fontsize=9, family="monospace")
    for axes in panels:  # what the grid has left over
        axes.set_axis_off()


def _circles(axes: Axes, box: tuple[float, float, float, float], devices: list[int], color: str, scale: float) -> None:
    """Devices side by side in the piece that they hold, in as many rows as makes the circles largest."""
    x, y, w, h = box
    even = [r for r in range(1, len(devices) + 1) if len(devices) % r == 0]  # eight as 2 by 4, not as 3, 3 and 2
    rows = max(even, key=lambda r: min(h / r, w * r / len(devices)))
    columns = len(devices) // rows
    step = min(h / rows, w / columns, 0.42 / scale)  # at most 0.42 inch from circle to circle
    for i, device in enumerate(devices):
        row, column = divmod(i, columns)
        cx, cy = x + w / 2 + (column - (columns - 1) / 2) * step, y + h / 2 + (row - (rows - 1) / 2) * step
        _circle(axes, cx, cy, 0.43 * step, device, color, min(11, 0.43 * step * scale * 72 * 1.25))


def _circle(axes: Axes, x: float, y: float, radius: float, device: int, color: str, size: float) -> None:
    axes.add_patch(
        Circle((x, y), radius, facecolor="white", edgecolor=color, linewidth=2 if size > 9 else 1.4, zorder=3)
    )
    axes.text(x, y, str(device), ha="center", va="center_baseline", fontsize=size, fontweight="bold", zorder=4)


def _frame(axes: Axes, extent: tuple[float, float]) -> None:
    height, width = extent
    axes.set(
        xlim=(-0.02 * width, 1.02 * width), ylim=(1.02 * height, -0.02 * height), aspect="equal", xticks=[], yticks=[]
    )
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


_LOOKS = {"compute": (COLORS[0], ""), "communication": (COLORS[1], "xxx"), "waiting": ("#eeeeee", "////")}
_HOST_LOOKS = {
    "compiling": (COLORS[3], "...."),
    "to the devices": (COLORS[2], ""),
    "to the host": (COLORS[5], "\\\\\\\\"),
}


def timeline(trace: Any, title: str | None = None, row_names: Sequence[str] | None = None) -> Picture:
    """Draw a `trace.Trace`: a row for each device, a bar for each operation, by kind in colour and hatching;
    above them a row for the host, where it moved data or compiled. A collective is cut in two: waiting until its last
    device arrives, then communication. `row_names`: what the rows are, if no devices.

    Raises ValueError where the trace holds no operation.
    """
    if not trace.events:
        raise ValueError("nothing to draw: no device did anything while the trace was recorded")
    trace, looks = trace.split(), _LOOKS | _HOST_LOOKS
    bars = [(e.kind, trace.devices.index(e.device), e.start, e.end) for e in trace.events]
    bars += [(e.kind, -1, e.start, e.end) for e in trace.host_events]
    found = [kind for kind in looks if any(bar[0] == kind for bar in bars)]
    names = ["host", *(row_names or [f"device {device}" for device in trace.devices])]
    rows = range(-1 if trace.host_events else 0, len(trace.devices))
    start, end = min(bar[2] for bar in bars), max(bar[3] for bar in bars)
    unit, scale = ("ms", 1e-3) if end - start > 2000 else ("µs", 1.0)
    figure = Figure(figsize=(9.0, 0.32 * len(rows) + 1.1), layout="constrained")
    axes = figure.subplots()
    for kind in found:
        color, hatch = looks[kind]
        for row in rows:
            axes.broken_barh(
                [((b - start) * scale, (e - b) * scale) for k, r, b, e in bars if (k, r) == (kind, row)],
                (row - 0.4, 0.8),
                facecolor=color,
                hatch=hatch,
                edgecolor="#555555" if hatch else color,
                linewidth=0.3 if hatch else 0.8,  # which is how wide the shortest bar is
            )
    axes.set_yticks(rows, [names[row + 1] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit} since the first {'event' if trace.host_events else 'operation'}")
    axes.set_title(title or "", loc="left", fontsize=10)
    handles = [Rectangle((0, 0), 1, 1, facecolor=f, hatch=h, edgecolor="#555555") for f, h in map(looks.get, found)]
    figure.legend(handles, found, loc="outside upper right", ncols=len(found), frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    said = _bars_in_words(bars, row_names) if row_names else _timeline_in_words(trace, start)
    return Picture(figure, f"{title}: {said}" if title else said[0].upper() + said[1:])


def _timeline_in_words(trace: Any, zero: float) -> str:
    """For the description: what is drawn, and where the longest stretch is in which no device has a bar."""

    kinds = [kind for kind in _LOOKS if any(e.kind == kind for e in trace.events)]
    rows = f"{len(trace.devices)} devices, a row each" if len(trace.devices) > 1 else f"device {trace.devices[0]}"
    said = f"a timeline of {rows}, with bars of {', '.join(kinds)}."
    if trace.host_events:
        times = Counter(event.kind for event in trace.host_events)
        said += f" On the host: {', '.join(f'{kind} {times[kind]} x' for kind in _HOST_LOOKS if times[kind])}."
    length, at = _longest_gap(trace, zero)
    # Nothing that depends on the moment but durations: the same program has the same words on every machine.
    return f"{said} The longest time in which no device has a bar: {_duration(length)}, from {_duration(at - zero)} on."


def _bars_in_words(bars: list[tuple], row_names: Sequence[str]) -> str:
    """The same where the rows have names: which bars each has, and when."""
    told = [
        f"{name}: {', '.join(f'{kind} from {a:.0f} to {b:.0f} µs' for kind, row, a, b in bars if row == i)}"
        for i, name in enumerate(row_names)
    ]
    return f"a timeline. {'; '.join(told)}."


def _longest_gap(trace: Any, zero: float) -> tuple[float, float]:
    """Of the time that is drawn: the length, and the begin. From `zero` to the last event's end."""
    gaps: list[tuple[float, float]] = []
    reached = zero
    for event in sorted(trace.events, key=lambda event: event.start):
        gaps.append((event.start - reached, reached))
        reached = max(reached, event.end)
    gaps.append((max([reached, *(e.end for e in trace.host_events)]) - reached, reached))
    return max(gaps)


def _duration(microseconds: float) -> str:
    return f"{microseconds / 1e3:.1f} ms" if microseconds >= 1e3 else f"{microseconds:.0f} µs"
