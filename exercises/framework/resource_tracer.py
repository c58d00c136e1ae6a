"""Trace a function call: record the arrays on each device, the copies to the host, and the FLOPs."""

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
from types import FrameType
from typing import Any

import jax

from utils.devices import started_devices


@dataclass
class Trace:
    """A record of a traced call. Arrays that existed before the call count only in `fetched`."""

    result: Any = None
    peak_by_device: Counter[int] = field(default_factory=Counter)  # peak bytes of arrays, by device id
    fetched: set[tuple[int, ...]] = field(default_factory=set)  # shapes of the arrays that were copied to the host
    shardings: set[tuple[tuple[int, ...], Any]] = field(default_factory=set)  # shape and sharding of each array
    _executables: list = field(default_factory=list)

    @property
    def peak_bytes(self) -> int:
        """Return the largest peak of any device, in bytes."""
        return max(self.peak_by_device.values(), default=0)

    @property
    def flops(self) -> float:
        """Return the FLOPs of all programs that were compiled during the call, summed over all devices.

        These are XLA's estimates for one run of each program, and they include element-wise operations.
        """
        programs = self._executables
        return sum((program.cost_analysis().get("flops") or 0) * len(program.local_devices()) for program in programs)


def trace(function: Callable[..., Any], *args: Any) -> Trace:
    """Call a function once, and return a record of the arrays on the devices at each step.

    A step is a call or a return that isn't entirely within Python's standard library or installed packages. Arrays
    that share a buffer, such as an array and its shards, count once.
    """
    record, device = Trace(), started_devices()[0]
    arrays_before = {id(array): array for array in jax.live_arrays(device.platform)}
    fetched_before = {key for key, array in arrays_before.items() if was_fetched(array)}
    executables = {id(executable): executable for executable in device.client.live_executables()}
    memory = _MemoryMeter()

    def inspect() -> None:
        live = [array for array in jax.live_arrays(device.platform) if not array.is_deleted()]
        new = [array for array in live if id(array) not in arrays_before]
        memory.update_peaks(record.peak_by_device, new)
        record.shardings |= {(array.shape, array.sharding) for array in new}
        record.fetched |= {array.shape for array in live if was_fetched(array) and id(array) not in fetched_before}
        for executable in device.client.live_executables():
            if id(executable) not in executables:
                executables[id(executable)] = executable
                record._executables.append(executable)

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        caller = frame.f_back if event in ("call", "return") else None
        if not (_is_library(frame) and (caller is None or _is_library(caller))):
            inspect()

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        record.result = function(*args)
    finally:
        sys.setprofile(previous)
    inspect()
    return record


def was_fetched(array: jax.Array) -> bool:
    """Return whether an array on several devices has been copied to the host since it was created."""
    # JAX caches the host copy in the array. JAX's transfer guard wouldn't work here, because before 0.12 it doesn't
    # notice such copies on a CPU.
    return getattr(array, "_npy_value", None) is not None and len(array.devices()) > 1


class _MemoryMeter:
    """Add up the sizes of the arrays' buffers on each device, looking up each array's buffers only once."""

    def __init__(self) -> None:
        # Map each array's id to a weak reference to it, and to its sizes in bytes by device or by (device, address).
        self._by_device: dict[int, tuple[Any, dict[int, int]]] = {}
        self._by_buffer: dict[int, tuple[Any, dict[tuple[int, int], int]]] = {}

    def update_peaks(self, peaks: Counter[int], arrays: list[jax.Array]) -> None:
        """Raise each device's peak to the total size of these arrays on the device, if that's larger."""
        upper_bounds: Counter[int] = Counter()  # upper bounds, because they count a shared buffer several times
        for array in arrays:
            upper_bounds.update(_look_up_once(self._by_device, array, _bytes_by_device))
        if all(size <= peaks[device] for device, size in upper_bounds.items()):
            return
        buffers: dict[tuple[int, int], int] = {}
        for array in arrays:
            buffers |= _look_up_once(self._by_buffer, array, _bytes_by_buffer)
        totals: Counter[int] = Counter()
        for (device, _), size in buffers.items():
            totals[device] += size
        peaks |= totals  # keep the larger size for each device


def _look_up_once(cached: dict[int, tuple[Any, dict]], array: jax.Array, look_up: Callable[[jax.Array], dict]) -> dict:
    """Return look_up(array), cached by the array's id without keeping the array alive."""
    if id(array) not in cached or cached[id(array)][0]() is not array:
        cached[id(array)] = weakref.ref(array), look_up(array)
    return cached[id(array)][1]


def _bytes_by_device(array: jax.Array) -> dict[int, int]:
    size = math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize
    return {device.id: size for device in array.devices()}


def _bytes_by_buffer(array: jax.Array) -> dict[tuple[int, int], int]:
    shards = array.addressable_shards
    return {(shard.device.id, shard.data.unsafe_buffer_pointer()): shard.data.nbytes for shard in shards}


def _is_library(frame: FrameType) -> bool:
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
