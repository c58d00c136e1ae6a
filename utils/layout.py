"""Who holds what: the pieces of a sharded array, the devices that hold them, and the bytes that this takes."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

Piece = tuple[tuple[int, int], ...]  # (start, stop) along each axis of the array


def pieces(array: Any) -> dict[Piece, list[int]]:
    """The ids of the devices that hold each piece of the array, pieces in the array's order.

    Takes an array, or anything else with a shape and a sharding (a `jax.ShapeDtypeStruct`).
    Raises TypeError for what has no sharding, ValueError for an array that was deleted or has shards elsewhere.
    """
    if getattr(array, "sharding", None) is None:
        raise TypeError(
            f"{type(array).__name__} has no sharding; place it on devices first: jax.device_put(x, sharding)"
        )
    if getattr(array, "is_deleted", lambda: False)():
        raise ValueError(
            "this array was deleted (donated, perhaps), so no device holds a piece of it; look at the result instead"
        )
    if not getattr(array, "is_fully_addressable", True):
        here, everywhere = len(array.addressable_shards), len(array.sharding.device_set)
        raise ValueError(
            f"this process can read only {here} of the array's {everywhere} shards. Look at the plan instead: "
            "jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)"
        )
    if hasattr(array, "addressable_shards"):
        held = [(shard.device, shard.index) for shard in array.addressable_shards]
    else:
        held = list(array.sharding.devices_indices_map(array.shape).items())
    found: dict[Piece, list[int]] = defaultdict(list)
    for device, index in held:
        found[tuple(s.indices(n)[:2] for s, n in zip(index, array.shape, strict=True))].append(device.id)
    return {piece: sorted(found[piece]) for piece in sorted(found)}


def piece_shape(piece: Piece) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in piece)


def bytes_arriving(before: Any, after: Any) -> dict[int, int]:
    """By device, the bytes of its piece of `after` that it does not hold in `before`: the fewest that can travel.

    bytes = (elements of the new piece - elements of its overlap with the old piece) x bytes of one element.
    Raises ValueError where the two differ in shape or type, or live on different devices; else errors as `pieces`.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        raise ValueError(
            f"one array in two layouts, please: {before.shape} {before.dtype}, {after.shape} {after.dtype}"
        )
    old, new = pieces_by_device(before), pieces_by_device(after)
    if old.keys() != new.keys():
        raise ValueError(f"the first lives on devices {sorted(old)}, the second on {sorted(new)}")
    return {
        device: (math.prod(piece_shape(new[device])) - math.prod(piece_shape(overlap(old[device], new[device]))))
        * after.dtype.itemsize
        for device in sorted(new)
    }


def pieces_by_device(array: Any) -> dict[int, Piece]:
    """By device, the piece that it holds. Errors as `pieces`."""
    return {device: piece for piece, devices in pieces(array).items() for device in devices}


def overlap(one: Piece, other: Piece) -> Piece:
    """The piece that two pieces share; empty along an axis on which they do not meet."""
    shared = ((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return tuple((start, max(start, stop)) for start, stop in shared)


def format_piece(piece: Piece) -> str:
    """A piece as one writes it in brackets: '[0:2, 4:6]'."""
    return f"[{', '.join(f'{start}:{stop}' for start, stop in piece)}]"


def describe(array: Any) -> str:
    """The sentence that says what a drawing of the array shows."""
    held = pieces(array)
    parts = []
    for piece, devices in held.items():
        several = len(devices) > 1
        parts.append(
            f"device{'s' * several} {', '.join(map(str, devices))} hold{'s' * (not several)} {format_piece(piece)}"
        )
    return f"an array of shape {tuple(array.shape)} in {len(held)} piece{'s' * (len(held) > 1)}: {'; '.join(parts)}."
