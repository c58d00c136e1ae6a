"""Record or read a profiler trace: the timed operations on each device, and the events on the host."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

# Matches the names of JAX's functions (psum) and of the compiler's operations (all-reduce, ncclDevKernel_AllReduce).
_COMMUNICATION = re.compile(
    r"all.?reduce|all.?gather|reduce.?scatter|psum|pmean|pmax|pmin|ppermute|collective|all.?to.?all|\bsend\b|\brecv\b",
    re.I,
)
# Host events that devices may have to wait for: map the profiler's name for each to its kind.
HOST_KINDS = {
    "DevicePutWithSharding": "to the devices",
    "np.asarray(jax.Array)": "to the host",
    "backend_compile_and_load": "compiling",
}


@dataclass(frozen=True)
class HostEvent:
    """A transfer or compilation on the host. Its times are as in `Event`, but may be negative."""

    kind: str  # one of HOST_KINDS
    start: float
    end: float


@dataclass(frozen=True)
class Event:
    """An operation on a device. Its times are in microseconds since the trace's first operation started."""

    device: int
    name: str
    kind: str  # "compute", "communication" or (after `split_waiting`) "waiting"
    start: float
    end: float
    run: int  # the index of the program call, counted from 0


@dataclass(frozen=True)
class Trace:
    """The events of a trace, sorted by start time."""

    events: tuple[Event, ...]  # the operations on the devices
    host: Counter[str] = field(default_factory=Counter)  # the number of host events, by name
    host_events: tuple[HostEvent, ...] = ()  # the host's transfers and compilations

    @property
    def devices(self) -> list[int]:
        return sorted({event.device for event in self.events})

    @property
    def runs(self) -> list[int]:
        """Return the indices of the program calls in the trace."""
        return sorted({event.run for event in self.events})

    def zoom(self, run: int) -> Trace:
        """Return a trace of one program call only. Raises ValueError if this trace doesn't contain the call."""
        if run not in self.runs:
            raise ValueError(f"the trace contains the calls {self.runs}, not {run}")
        events = tuple(event for event in self.events if event.run == run)
        start, end = min(e.start for e in events), max(e.end for e in events)
        host_events = tuple(e for e in self.host_events if e.start < end and e.end > start)
        return replace(self, events=events, host_events=host_events)

    def count(self, text: str = "", kind: str | None = None) -> dict[int, int]:
        """Return, for each device, the number of operations of this kind (default: any) with this text in the name."""
        counts = {device: 0 for device in self.devices}
        for event in self.events:
            counts[event.device] += text in event.name and kind in (None, event.kind)
        return counts

    def split_waiting(self) -> Trace:
        """Return a trace with each collective split in two: waiting until its last device joins, then communication."""
        events = [event for event in self.events if event.kind != "communication"]
        for group in self.collectives():
            last_arrival = max(event.start for event in group)
            for e in group:
                arrived = min(max(e.start, last_arrival), e.end)
                for kind, start, end in (("waiting", e.start, arrived), ("communication", arrived, e.end)):
                    if end > start:
                        events.append(Event(e.device, e.name, kind, start, end, e.run))
        return replace(self, events=tuple(sorted(events, key=lambda event: event.start)))

    def collectives(self) -> list[list[Event]]:
        """Return one list per collective, with the collective's events on all devices.

        Events belong to the same collective if they have the same program call, name and, in a loop, iteration.
        """
        iterations: Counter[tuple] = Counter()
        groups = defaultdict(list)
        for event in self.events:
            if event.kind == "communication":
                key = (event.run, event.name)
                groups[(*key, iterations[event.device, *key])].append(event)
                iterations[event.device, *key] += 1
        return list(groups.values())


def kind_of(name: str) -> str:
    """Return an operation's kind, "communication" or "compute", based on its name."""
    return "communication" if _COMMUNICATION.search(name) else "compute"


def record(program: Callable[..., object], *args: Any) -> Trace:
    """Run ``program(*args)`` under JAX's profiler, and return its trace.

    The program itself must wait until its results are ready.
    """
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # don't record calls to Python functions
    with tempfile.TemporaryDirectory() as folder:
        with without_tensorflow_message(), jax.profiler.trace(folder, profiler_options=options):
            program(*args)
        return read(folder)


def read(folder: str | Path) -> Trace:
    """Read the newest trace that `jax.profiler.trace` wrote into a folder.

    Raises FileNotFoundError if there is none.
    """
    from jax.profiler import ProfileData

    files = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
    if not files:
        raise FileNotFoundError(
            f"no trace (*.xplane.pb) in {folder}. It is written at the end of `with jax.profiler.trace(folder):`."
        )
    with warnings.catch_warnings():  # JAX 0.12 warns: "builtin type event_stats has no __module__ attribute"
        warnings.simplefilter("ignore", DeprecationWarning)
        return from_planes(ProfileData.from_file(str(files[-1])).planes)


def from_planes(planes: Iterable[Any]) -> Trace:
    """Build a trace from the planes of a `ProfileData`.

    Each accelerator has its own plane, such as /device:TPU:0. Emulated devices share the host's plane, where each
    operation names its device.
    """
    operations, host, host_operations = [], Counter(), []
    for plane in planes:
        accelerator = re.fullmatch(r"/device:(?:TPU|GPU):(\d+)", plane.name.split(" ")[0])
        lines = list(plane.lines)
        if accelerator and any(line.name == "XLA Ops" for line in lines):  # a TPU's other lines only summarize this one
            lines = [line for line in lines if line.name == "XLA Ops"]
        for line in lines:
            line_operations = []
            for event in line.events:
                stats = {key: value for key, value in event.stats if key}
                start, end = event.start_ns, event.start_ns + event.duration_ns
                device = int(accelerator[1]) if accelerator else stats.get("device_ordinal")
                if device is not None and (stats.get("hlo_op") or line.name == "XLA Ops"):
                    name = str(stats.get("hlo_op") or event.name).split(" = ")[0].lstrip("%")
                    line_operations.append((start, end, device, name, stats.get("run_id")))
                elif not accelerator:
                    host[event.name] += not event.name.startswith("end: ")
                    if event.name in HOST_KINDS:
                        host_operations.append((start, end, HOST_KINDS[event.name]))
            operations += _innermost(line_operations)
    operations.sort()
    host_operations.sort()
    zero = operations[0][0] if operations else host_operations[0][0] if host_operations else 0
    runs = {run: i for i, run in enumerate(dict.fromkeys(run for *_, run in operations))}
    events = (
        Event(device, name, kind_of(name), (start - zero) / 1e3, (end - zero) / 1e3, runs[run])
        for start, end, device, name, run in operations
    )
    host_events = (HostEvent(kind, (start - zero) / 1e3, (end - zero) / 1e3) for start, end, kind in host_operations)
    return Trace(tuple(events), +host, tuple(host_events))


def _innermost(operations: list[tuple]) -> Iterator[tuple]:
    """Yield the operations that contain no others, because a loop's time includes that of its body.

    Each operation is a tuple that begins with its start, its end and its device.
    """
    operations.sort(key=lambda operation: (operation[0], -operation[1]))
    for i, (_, end, device, *_) in enumerate(operations):
        following = operations[i + 1] if i + 1 < len(operations) else None
        if following is None or following[1] > end or following[2] != device:
            yield operations[i]


@contextlib.contextmanager
def without_tensorflow_message() -> Iterator[None]:
    """Suppress the line in which JAX before 0.10 reports that TensorFlow is missing; pass on the rest of stderr."""
    import jax

    if jax.__version_info__ >= (0, 10):
        yield
        return
    with tempfile.TemporaryFile() as captured:
        stderr = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            captured.seek(0)
            os.write(stderr, b"".join(line for line in captured if b"tensorflow.python.profiler" not in line))
            os.close(stderr)


@contextlib.contextmanager
def without_compiler_warnings() -> Iterator[None]:
    """Discard the lines that XLA writes to stderr, which contain times and process numbers."""
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
