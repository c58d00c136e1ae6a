"""What happened while an answer ran: what stood where, what was fetched and computed. Nothing is patched."""

from __future__ import annotations

import math
import os
import sys
import sysconfig
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from utils.devices import started_devices


@dataclass
class Watched:
    """What `watch` saw. `result` is what the answer returned."""

    result: Any = None
    on_device: Counter[int] = field(default_factory=Counter)  # by id: the most bytes of new arrays at any one time
    fetched: set[tuple[int, ...]] = field(default_factory=set)  # shapes of the arrays that were copied to the host
    layouts: set[tuple[tuple[int, ...], Any]] = field(default_factory=set)  # shape and sharding of each new array
    _executables: list = field(default_factory=list)

    @property
    def most(self) -> int:
        """The most bytes of new arrays that one device held at any one time."""
        return max(self.on_device.values(), default=0)

    @property
    def flops(self) -> float:
        """FLOPs of the programs that were compiled on the way (not before, by other code), on all devices together, as
        XLA counts them: those of single elements, too."""
        return sum((one.cost_analysis().get("flops") or 0) * len(one.local_devices()) for one in self._executables)


def watch(answer: Callable[..., Any], *args: Any) -> Watched:
    """Run an answer once, and look at the arrays that live on the devices at each step of it.

    A step is a call or a return in code that belongs neither to Python nor to an installed package. Arrays that were
    alive before do not count; two arrays in one place (a shard and its array, say) count once.
    """
    import jax

    seen, device = Watched(), started_devices()[0]
    before = {id(array): array for array in jax.live_arrays(device.platform)}
    known = {name for name, array in before.items() if was_fetched(array)}
    compiled = {id(program): program for program in device.client.live_executables()}

    held = _Held()

    def look() -> None:
        alive = [array for array in jax.live_arrays(device.platform) if not array.is_deleted()]
        new = [array for array in alive if id(array) not in before]
        held.note(new, seen.on_device)
        seen.layouts |= {(array.shape, array.sharding) for array in new}
        seen.fetched |= {array.shape for array in alive if was_fetched(array) and id(array) not in known}
        for program in device.client.live_executables():
            if id(program) not in compiled:
                compiled[id(program)] = program
                seen._executables.append(program)

    def step(frame: Any, event: str, _: Any) -> None:
        caller = frame.f_back if event in ("call", "return") else None
        if not (_is_library(frame) and (caller is None or _is_library(caller))):
            look()

    profiler = sys.getprofile()
    sys.setprofile(step)
    try:
        seen.result = answer(*args)
    finally:
        sys.setprofile(profiler)
    look()
    return seen


def was_fetched(array: Any) -> bool:
    """Were the values of this array, which lies on several devices, copied to the host since it was made?"""
    # JAX keeps the copy with the array. (Its guard against transfers sees none on the CPU before 0.12.)
    return getattr(array, "_npy_value", None) is not None and len(array.devices()) > 1


class _Held:
    """Which arrays take which places on which devices, each of them looked up once."""

    def __init__(self) -> None:
        self._bytes: dict[int, tuple[Any, dict[int, int]]] = {}  # by id: a weak reference, and bytes by device
        self._places: dict[int, tuple[Any, dict[tuple[int, int], int]]] = {}  # and bytes by device and address

    def note(self, arrays: list, most: Counter[int]) -> None:
        """Raise the most bytes of each device to what these arrays take now."""
        at_most: Counter[int] = Counter()
        for array in arrays:
            at_most.update(_once(self._bytes, array, _bytes_by_device))
        if any(bytes_ > most[device] for device, bytes_ in at_most.items()):  # perhaps: one place may count twice
            places: dict[tuple[int, int], int] = {}
            for array in arrays:
                places |= _once(self._places, array, _bytes_by_place)
            now: Counter[int] = Counter()
            for (device, _), bytes_ in places.items():
                now[device] += bytes_
            for device, bytes_ in now.items():
                most[device] = max(most[device], bytes_)


def _once(known: dict[int, tuple[Any, dict]], array: Any, look_up: Callable[[Any], dict]) -> dict:
    """What was looked up for this array, which is not kept alive by it."""
    if id(array) not in known or known[id(array)][0]() is not array:
        known[id(array)] = weakref.ref(array), look_up(array)
    return known[id(array)][1]


def _bytes_by_device(array: Any) -> dict[int, int]:
    bytes_ = math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
    return {device.id: bytes_ for device in array.devices()}


def _bytes_by_place(array: Any) -> dict[tuple[int, int], int]:
    shards = array.addressable_shards
    return {(shard.device.id, shard.data.unsafe_buffer_pointer()): shard.data.nbytes for shard in shards}


def _is_library(frame: Any) -> bool:
    return _is_library_file(frame.f_code.co_filename)


@cache
def _is_library_file(name: str) -> bool:
    standard = tuple(os.path.join(sysconfig.get_path(key), "") for key in ("stdlib", "platstdlib"))
    return (
        name == __file__
        or name.startswith(("<frozen", *standard))
        or "site-packages" in name
        or "dist-packages" in name
    )
