"""Simulate a Pallas kernel on all devices, given its operations' durations, and record each device's sends and waits.

A kernel's copies aren't collectives, so `cost` doesn't count them. This discrete-event simulation evaluates the
kernel's jaxpr on one device at a time, with `evaluator`. It can't hang, and the same program always produces the same
events.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding

from lesson_helpers.kernels.evaluator import Copy, DeviceState, Evaluation, RefView, Signal, Wait, evaluate

if TYPE_CHECKING:
    from jax.extend.core import Jaxpr, JaxprEqn

TICKS = {"remote_copy": 4, "local_copy": 1, "signal": 1, "product": 4}  # all other operations take no time


class Event(NamedTuple):
    """A send, matrix product or wait on one device."""

    kind: str  # "send", "product" or "wait"
    device: int
    start: float
    end: float
    peer: int | None = None  # the target of a send, or the device that ends a wait (None if none does)
    reason: str = ""  # a description of what the device waits for


@dataclass
class Simulation:
    """The result of a simulation."""

    results: list[Any] = field(default_factory=list)  # by device: the program's result (None if the device is stuck)
    events: list[Event] = field(default_factory=list)  # ordered by start
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)  # (source, target): bytes
    copies: Counter[tuple[int, int]] = field(default_factory=Counter)  # (source, target): number of copies
    stuck: dict[int, str] = field(default_factory=dict)  # device: a description of what it waits for forever
    unconsumed: dict[int, list[str]] = field(default_factory=dict)  # device: descriptions of its nonzero semaphores
    early_sends: set[tuple[int, int]] = field(
        default_factory=set
    )  # (source, target) of sends that began before the target device started
    memory: dict[int, int] = field(default_factory=dict)  # device: total size of its kernels' arrays in bytes

    @property
    def end(self) -> float:
        """Return the time at which the last event ends."""
        return max((event.end for event in self.events), default=0)

    def bytes_sent(self, device: int = 0) -> int:
        """Return the number of bytes that this device sends to others."""
        return sum(size for (source, target), size in self.sent.items() if source == device != target)


def simulate(
    program: Callable[..., Any],
    *arguments: jax.typing.ArrayLike,
    late: dict[int, float] | None = None,
    slow: dict[int, float] | None = None,
    arrival_delays: dict[tuple[int, int, int], float] | None = None,
    **ticks: float,
) -> Simulation:
    """Simulate a program that consists of one `shard_map` over TPU kernels without a grid.

    Args:
        program: the program, which is traced but not run.
        arguments: the program's arguments.
        late: ``{device: start time}`` for devices that don't start at time 0.
        slow: ``{device: duration}``, the duration of each product and each local copy on slow devices.
        arrival_delays: ``{(source, target, n): delay}``, the time from the end of the send to the arrival of copy n
            (counted from 0) between two devices. Later copies can overtake a delayed one.
        ticks: durations that override those in TICKS on all devices, such as `signal=0`.

    A copy reads its source at the end of the send, and writes to its target on arrival. Both are the latest times that
    the hardware allows.

    Raises NotImplementedError for a kernel with a grid or for an unknown operation on a reference, and IndexError for
    a device that doesn't exist or for an index outside a reference.
    """
    equations = _equations(jax.make_jaxpr(program)(*arguments).jaxpr)
    [shard_map] = [equation for equation in equations if equation.primitive.name == "shard_map"]
    return _Simulator(shard_map, arguments, late or {}, slow or {}, arrival_delays or {}, TICKS | ticks).run()


def _equations(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """Return the equations of a jaxpr, with each `jit` replaced by the equations inside it."""
    equations: list[JaxprEqn] = []
    for equation in jaxpr.eqns:
        inner = getattr(equation.params.get("jaxpr"), "jaxpr", None)
        equations += [equation] if inner is None or "mesh" in equation.params else _equations(inner)
    return equations


class _Simulator:
    """Evaluate a program on each device, and resume a device when the simulated time or a semaphore allows it."""

    def __init__(
        self,
        shard_map: JaxprEqn,
        arguments: tuple[jax.typing.ArrayLike, ...],
        late: dict[int, float],
        slow: dict[int, float],
        arrival_delays: dict[tuple[int, int, int], float],
        ticks: dict[str, float],
    ) -> None:
        self.ticks, self.late, self.slow, self.arrival_delays = ticks, late, slow, arrival_delays
        self.simulation = Simulation()
        self.queue: list[tuple[float, int, Callable[[], None]]] = []  # (time, sequence number, action)
        self.sequence, self.now = itertools.count(), 0.0
        self.counts: dict[tuple[int, Any], int] = defaultdict(int)  # (device, semaphore): the semaphore's value
        self.reasons: dict[tuple[int, Any], str] = {}  # (device, semaphore): a description of what it counts
        self.waiting: dict[int, tuple[Any, int, float]] = {}  # device: (semaphore, amount, start of the wait)
        self.evaluations: dict[int, Evaluation] = {}
        self.states: list[DeviceState] = []
        mesh = shard_map.params["mesh"]
        self.mesh_shape = dict(mesh.shape)
        slices = [
            NamedSharding(mesh, spec).devices_indices_map(np.shape(array))
            for spec, array in zip(shard_map.params["in_specs"], arguments, strict=True)
        ]
        memory: dict = {}
        for number, device in enumerate(mesh.devices.flat):
            shards = [np.asarray(array)[by_device[device]] for by_device, array in zip(slices, arguments, strict=True)]
            coordinates = map(int, np.unravel_index(number, tuple(self.mesh_shape.values())))
            state = DeviceState(number, dict(zip(self.mesh_shape, coordinates, strict=True)), memory)
            self.states.append(state)
            self.evaluations[number] = evaluate(shard_map.params["jaxpr"], (), shards, state)
            self.simulation.results.append(None)
            self.schedule(late.get(number, 0), self.resume, number)

    def run(self) -> Simulation:
        """Run the simulation to its end, and return its result."""
        while self.queue:
            self.now, _, action = heapq.heappop(self.queue)
            action()
        end = self.now + 2  # draw endless waits so that they extend a little beyond all other events
        for device, (semaphore, _, since) in sorted(self.waiting.items()):
            self.simulation.stuck[device] = self.reasons[semaphore]
            self.simulation.events.append(Event("wait", device, since, end, None, self.simulation.stuck[device]))
        for semaphore, count in sorted(self.counts.items(), key=lambda item: item[0][0]):
            if count:
                self.simulation.unconsumed.setdefault(semaphore[0], []).append(self.reasons[semaphore])
        for (device, _), ref in self.states[0].memory.items():
            if not ref.is_semaphore:
                self.simulation.memory[device] = self.simulation.memory.get(device, 0) + ref.array.nbytes
        self.simulation.events.sort(key=lambda event: (event.start, event.device, event.end))
        return self.simulation

    def schedule(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.queue, (time, next(self.sequence), lambda: action(*arguments)))

    def resume(self, device: int) -> None:
        """Run a device until it has to wait, starts a product or finishes. Schedule it to resume after a product."""
        while True:
            try:
                step = next(self.evaluations[device])
            except StopIteration as stop:
                self.simulation.results[device] = stop.value
                return
            if isinstance(step, Copy):
                self.start_copy(device, step)
            elif isinstance(step, Signal):
                target = self.device_number(step.device, device)
                self.reasons[target, step.semaphore.key] = "a signal"
                time = self.now + self.ticks["signal"]
                self.schedule(time, self.increment, target, step.semaphore.key, step.amount, device)
            elif isinstance(step, Wait):
                semaphore = device, step.semaphore.key
                if self.counts[semaphore] < step.amount:
                    self.reasons.setdefault(semaphore, step.reason)
                    self.waiting[device] = semaphore, step.amount, self.now
                    return
                self.counts[semaphore] -= step.amount
            else:
                end = self.now + self.slow.get(device, self.ticks["product"])
                self.simulation.events.append(Event("product", device, self.now, end))
                return self.schedule(end, self.resume, device)

    def device_number(self, target: Any, own: int) -> int:
        """Return the number of the device that is the target of a copy or a signal.

        `target` may be a device's coordinates on all axes, a dictionary of coordinates by axis name (for any other
        axis, the sender's own coordinate is used), or None (the sender itself).
        """
        sizes = tuple(self.mesh_shape.values())
        if target is None:
            return own
        if isinstance(target, dict):
            target = tuple(target.get(name, self.states[own].coordinates[name]) for name in self.mesh_shape)
        coordinates = tuple(int(c) for c in (target if isinstance(target, (tuple, list)) else (target,)))
        inside = len(coordinates) == len(sizes) and all(0 <= c < n for c, n in zip(coordinates, sizes, strict=True))
        if not inside:
            name = coordinates[0] if len(coordinates) == 1 else coordinates
            raise IndexError(f"there is no device {name} on a mesh of {sizes}")
        return int(np.ravel_multi_index(coordinates, sizes))

    def start_copy(self, device: int, copy: Copy) -> None:
        target = self.device_number(copy.device, device)
        delay = 0.0
        if copy.sent is None:
            end = self.now + self.slow.get(device, self.ticks["local_copy"])
        else:
            end = self.now + self.ticks["remote_copy"]
            delay = self.arrival_delays.get((device, target, self.simulation.copies[device, target]), 0)
            self.simulation.sent[device, target] += copy.source.size
            self.simulation.copies[device, target] += 1
            self.simulation.events.append(Event("send", device, self.now, end, target))
            self.reasons[device, copy.sent.key] = "its own copy to be sent"
            if self.now < self.late.get(target, 0):
                self.simulation.early_sends.add((device, target))
        self.reasons[target, copy.arrived.key] = "a copy to arrive" if copy.sent is not None else "its own copy"
        self.schedule(end, self.end_copy, device, target, copy, delay)

    def end_copy(self, device: int, target: int, copy: Copy, delay: float) -> None:
        """Read the source of a copy that has been sent, and deliver its value now or after the delay."""
        if delay:
            self.schedule(self.now + delay, self.deliver, device, target, copy, copy.source.read())
        else:
            self.deliver(device, target, copy, copy.source.read())
        if copy.sent is not None:
            self.increment(device, copy.sent.key, copy.source.size, device)

    def deliver(self, device: int, target: int, copy: Copy, value: np.ndarray) -> None:
        ref = self.states[device].ref(copy.target.ref.key, copy.target.ref.aval, target)
        RefView(ref, copy.target.index).write(value)
        self.increment(target, copy.arrived.key, copy.target.size, device)

    def increment(self, device: int, key: Any, amount: int, source: int) -> None:
        """Add `amount` to a semaphore, and resume the device that waits for it if the value is now large enough."""
        semaphore = device, key
        self.counts[semaphore] += amount
        awaited, needed, since = self.waiting.get(device, (None, 0, 0.0))
        if awaited == semaphore and self.counts[semaphore] >= needed:
            del self.waiting[device]
            self.counts[semaphore] -= needed
            if self.now > since:
                self.simulation.events.append(Event("wait", device, since, self.now, source, self.reasons[semaphore]))
            self.resume(device)
