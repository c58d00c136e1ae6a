"""Find out which device holds which piece of a sharded array, and how many bytes resharding transfers."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax

Piece = tuple[tuple[int, int], ...]  # (start, stop) along each axis of the array


def pieces(array: jax.Array | jax.ShapeDtypeStruct) -> dict[Piece, list[int]]:
    """Map each piece of an array, in the order of the elements, to the ids of the devices that hold the piece.

    Raises TypeError if the array has no sharding, and ValueError if it has been deleted or if other processes hold some
    of its shards.
    """
    if getattr(array, "sharding", None) is None:
        raise TypeError(
            f"{type(array).__name__} has no sharding; place it on devices first: jax.device_put(x, sharding)"
        )
    if getattr(array, "is_deleted", lambda: False)():
        raise ValueError("this array was deleted (perhaps donated), so no device holds it; use the result instead")
    if not getattr(array, "is_fully_addressable", True):
        local, total = len(getattr(array, "addressable_shards", ())), len(array.sharding.device_set)
        raise ValueError(
            f"this process can read only {local} of the array's {total} shards. Use its shape and sharding instead: "
            "jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)"
        )
    shards = list(array.sharding.devices_indices_map(array.shape).items())
    devices: dict[Piece, list[int]] = defaultdict(list)
    for device, index in shards:
        devices[tuple(s.indices(n)[:2] for s, n in zip(index, array.shape, strict=True))].append(device.id)
    return {piece: sorted(devices[piece]) for piece in sorted(devices)}


def pieces_by_device(array: jax.Array | jax.ShapeDtypeStruct) -> dict[int, Piece]:
    """Map each device's id to the piece of the array that the device holds. Raises the same errors as `pieces`."""
    return {device: piece for piece, devices in pieces(array).items() for device in devices}


def bytes_arriving(before: jax.Array | jax.ShapeDtypeStruct, after: jax.Array | jax.ShapeDtypeStruct) -> dict[int, int]:
    """Map each device's id to the minimum number of bytes that the device receives when an array is resharded.

    The minimum is the number of elements in the device's new piece that aren't in its old one, times the bytes per
    element.

    Raises ValueError if the two arrays differ in shape, dtype or devices, and the same errors as `pieces`.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        raise ValueError(
            f"the arrays differ by more than their sharding: {before.shape} {before.dtype}, {after.shape} {after.dtype}"
        )
    old, new = pieces_by_device(before), pieces_by_device(after)
    if old.keys() != new.keys():
        raise ValueError(f"the first array is on devices {sorted(old)}, the second on {sorted(new)}")
    return {
        device: (math.prod(piece_shape(new[device])) - math.prod(piece_shape(overlap(old[device], new[device]))))
        * after.dtype.itemsize
        for device in sorted(new)
    }


def piece_shape(piece: Piece) -> tuple[int, ...]:
    """Return the number of elements of a piece along each axis."""
    return tuple(stop - start for start, stop in piece)


def overlap(first: Piece, second: Piece) -> Piece:
    """Return the intersection of two pieces, which is empty along each axis on which they don't overlap."""
    shared = ((max(a, c), min(b, d)) for (a, b), (c, d) in zip(first, second, strict=True))
    return tuple((start, max(start, stop)) for start, stop in shared)


def format_piece(piece: Piece) -> str:
    """Return a piece as an index expression, such as '[0:2, 4:6]'."""
    return f"[{', '.join(f'{start}:{stop}' for start, stop in piece)}]"


def describe(array: jax.Array | jax.ShapeDtypeStruct) -> str:
    """Describe in a sentence which devices hold which piece of an array. Raises the same errors as `pieces`."""
    devices_by_piece = pieces(array)
    parts = []
    for piece, devices in devices_by_piece.items():
        subject = f"device{'s' * (len(devices) > 1)} {', '.join(map(str, devices))}"
        parts.append(f"{subject} hold{'s' * (len(devices) == 1)} {format_piece(piece)}")
    count = f"{len(devices_by_piece)} piece{'s' * (len(devices_by_piece) > 1)}"
    return f"an array of shape {tuple(array.shape)} in {count}: {'; '.join(parts)}."
