"""Plays a Pallas kernel on all devices, with made-up times: what it sends, who waits for whom, who waits for ever.

A kernel's copies are no collectives, so `cost` counts none of them. Here the kernel's text is run by `kernel_text`, one
device after the other, as a simulation of events. So nothing hangs, and the same text gives the same events.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from utils.count.kernel_text import Copy, Here, Place, Run, Signal, Wait, run

TICKS = {"remote_copy": 4, "local_copy": 1, "signal": 1, "product": 4}  # what takes time; all else takes none


class Event(NamedTuple):
    """What a device does from tick to tick: "send" (to `other`), "product", or "wait" (told by `other`, of `what`)."""

    kind: str
    device: int
    start: float
    end: float
    other: int | None = None
    what: str = ""


@dataclass
class Play:
    """What came of it. `results[k]` are device k's; `sent[a, b]` bytes went from a to b, in `copies[a, b]` copies."""

    results: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)
    copies: Counter[tuple[int, int]] = field(default_factory=Counter)
    stuck: dict[int, str] = field(default_factory=dict)  # device: for what it waits, which never comes
    left: dict[int, list[str]] = field(default_factory=dict)  # device: what its semaphores above 0 were told of
    early: set[tuple[int, int]] = field(default_factory=set)  # (a, b): a copy of a's began before b's kernel did
    memory: dict[int, int] = field(default_factory=dict)  # device: bytes of its kernels' references

    @property
    def end(self) -> float:
        """The time at which all was done."""
        return max((event.end for event in self.events), default=0)

    def bytes_sent(self, device: int = 0) -> int:
        """What this device sent to others."""
        return sum(size for (source, target), size in self.sent.items() if source == device != target)


def play(
    program: Callable[..., Any],
    *arguments: Any,
    late: dict[int, float] | None = None,
    slow: dict[int, float] | None = None,
    behind: dict[tuple[int, int, int], int] | None = None,
    **ticks: float,
) -> Play:
    """Play a program, one `shard_map` of TPU kernels without a grid, on these arguments.

    `late`: by how many ticks a device begins later than tick 0. `slow`: how long a product takes on this
    device, and a copy inside it.
    `behind[a, b, n]`: by how many ticks copy n (from 0) from a to b arrives later than it is sent; others overtake it.
    `ticks`: other times than TICKS for all, as in `signal=0`.
    A copy reads its source when it is sent and writes its target when it arrives, both as late as they may.

    Raises NotImplementedError for a kernel with a grid, or with an operation on references that is not known here.
    """
    import jax

    [mapped] = [eqn for eqn in _inside(jax.make_jaxpr(program)(*arguments).jaxpr) if eqn.primitive.name == "shard_map"]
    return _Player(mapped, arguments, late or {}, slow or {}, behind or {}, TICKS | ticks).run()


def _inside(jaxpr: Any) -> list[Any]:
    """The equations of a jaxpr, and of a `jit` in it."""
    return [inner for eqn in jaxpr.eqns for inner in ([eqn] if "mesh" in eqn.params else _inside_of(eqn))]


def _inside_of(eqn: Any) -> list[Any]:
    return _inside(eqn.params["jaxpr"].jaxpr) if hasattr(eqn.params.get("jaxpr"), "jaxpr") else [eqn]


class _Player:
    def __init__(
        self,
        mapped: Any,
        arguments: Any,
        late: dict[int, int],
        slow: dict[int, int],
        behind: dict[tuple[int, int, int], int],
        ticks: dict[str, int],
    ) -> None:
        from jax.sharding import NamedSharding

        self.ticks, self.late, self.slow, self.behind, self.play = ticks, late, slow, behind, Play()
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.order, self.now = itertools.count(), 0
        self.counts: dict[Any, int] = defaultdict(int)  # (device, semaphore)
        self.names: dict[Any, str] = {}  # (device, semaphore): what it is told of
        self.waiting: dict[int, tuple[Any, int, int]] = {}  # device: its semaphore, how much, since when
        self.runs: dict[int, Run] = {}
        self.here: list[Here] = []
        mesh = mapped.params["mesh"]
        self.shape = dict(mesh.shape)
        maps = [
            NamedSharding(mesh, spec).devices_indices_map(np.shape(array))
            for spec, array in zip(mapped.params["in_specs"], arguments, strict=True)
        ]
        for number, device in enumerate(mesh.devices.flat):
            parts = [np.asarray(array)[places[device]] for places, array in zip(maps, arguments, strict=True)]
            where = dict(zip(self.shape, np.unravel_index(number, tuple(self.shape.values())), strict=True))
            where = {name: int(place) for name, place in where.items()}
            self.here.append(Here(number, where, self.here[0].memory if self.here else {}))
            self.runs[number] = run(mapped.params["jaxpr"], (), parts, self.here[-1])
            self.play.results.append(None)
            self.at(late.get(number, 0), self.go_on, number)

    def run(self) -> Play:
        while self.queue:
            self.now, _, do = heapq.heappop(self.queue)
            do()
        end = self.now + 2
        for device, (semaphore, _, since) in sorted(self.waiting.items()):
            self.play.stuck[device] = self.names[semaphore]
            self.play.events.append(Event("wait", device, since, end, None, self.play.stuck[device]))
        for semaphore, count in sorted(self.counts.items(), key=lambda item: item[0][0]):
            if count:
                self.play.left.setdefault(semaphore[0], []).append(self.names[semaphore])
        for (device, _), ref in self.here[0].memory.items():
            if not ref.semaphore:
                self.play.memory[device] = self.play.memory.get(device, 0) + ref.array.nbytes
        self.play.events.sort(key=lambda event: (event.start, event.device, event.end))
        return self.play

    def at(self, tick: int, do: Callable[..., None], *given: Any) -> None:
        heapq.heappush(self.queue, (tick, next(self.order), lambda: do(*given)))

    def go_on(self, device: int) -> None:
        """Run a device until it has to wait, or to work."""
        while True:
            try:
                asked = next(self.runs[device])
            except StopIteration as end:
                self.play.results[device] = end.value
                return
            if isinstance(asked, Copy):
                self.begin(device, asked)
            elif isinstance(asked, Signal):
                target = self.number(asked.device, device)
                self.names[target, asked.semaphore.key] = "a signal"
                self.at(self.now + self.ticks["signal"], self.give, target, asked.semaphore.key, asked.amount, device)
            elif isinstance(asked, Wait):
                semaphore = device, asked.semaphore.key
                if self.counts[semaphore] < asked.amount:
                    self.names.setdefault(semaphore, asked.what)
                    self.waiting[device] = semaphore, asked.amount, self.now
                    return
                self.counts[semaphore] -= asked.amount
            else:
                ticks = self.slow.get(device, self.ticks["product"])
                self.play.events.append(Event("product", device, self.now, self.now + ticks))
                return self.at(self.now + ticks, self.go_on, device)

    def number(self, target: Any, own: int) -> int:
        """The number of the device that a copy or a signal names: by a place on each axis, by names, or not at all."""
        sizes = tuple(self.shape.values())
        if target is None:
            return own
        if isinstance(target, dict):
            target = tuple(target.get(name, self.here[own].where[name]) for name in self.shape)
        places = tuple(int(place) for place in (target if isinstance(target, (tuple, list)) else (target,)))
        if len(places) != len(sizes) or not all(0 <= place < size for place, size in zip(places, sizes, strict=True)):
            raise IndexError(f"there is no device {places if len(places) > 1 else places[0]} on a mesh of {sizes}")
        return int(np.ravel_multi_index(places, sizes))

    def begin(self, device: int, copy: Copy) -> None:
        target = self.number(copy.device, device)
        remote, behind = copy.sent is not None, 0
        end = self.now + (self.ticks["remote_copy"] if remote else self.slow.get(device, self.ticks["local_copy"]))
        if remote:
            behind = self.behind.get((device, target, self.play.copies[device, target]), 0)
            self.play.sent[device, target] += copy.source.size
            self.play.copies[device, target] += 1
            self.play.events.append(Event("send", device, self.now, end, target))
            self.names[device, copy.sent.key] = "its own copy to be sent"
            if self.now < self.late.get(target, 0):
                self.play.early.add((device, target))
        self.names[target, copy.arrived.key] = "a copy to arrive" if remote else "its own copy"
        self.at(end, self.finish, device, target, copy, behind)

    def finish(self, device: int, target: int, copy: Copy, behind: int) -> None:
        if behind:
            self.at(self.now + behind, self.arrive, device, target, copy, copy.source.read())
        else:
            self.arrive(device, target, copy, copy.source.read())
        if copy.sent is not None:
            self.give(device, copy.sent.key, copy.source.size, device)

    def arrive(self, device: int, target: int, copy: Copy, value: np.ndarray) -> None:
        there = self.here[device].ref(copy.target.ref.number, copy.target.ref.aval, target)
        Place(there, copy.target.index).write(value)
        self.give(target, copy.arrived.key, copy.target.size, device)

    def give(self, device: int, key: Any, amount: int, source: int) -> None:
        """Add to a semaphore; a device that has waited for that goes on."""
        semaphore = device, key
        self.counts[semaphore] += amount
        wanted, needed, since = self.waiting.get(device, (None, 0, 0))
        if wanted == semaphore and self.counts[semaphore] >= needed:
            del self.waiting[device]
            self.counts[semaphore] -= needed
            if self.now > since:
                self.play.events.append(Event("wait", device, since, self.now, source, self.names[semaphore]))
            self.go_on(device)
