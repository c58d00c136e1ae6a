"""Read a profiler's trace into a small table: which device did what, from when to when, and what the host did."""

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

# By the names of JAX's functions (psum) and of the compiler's operations (all-reduce, ncclDevKernel_AllReduce).
_COMMUNICATION = re.compile(
    r"all.?reduce|all.?gather|reduce.?scatter|psum|pmean|pmax|pmin|ppermute|collective|all.?to.?all|\bsend\b|\brecv\b",
    re.I,
)
# What the host does that devices wait for: by the event's name, its kind.
HOST_KINDS = {
    "DevicePutWithSharding": "to the devices",
    "np.asarray(jax.Array)": "to the host",
    "backend_compile_and_load": "compiling",
}


@dataclass(frozen=True)
class HostEvent:
    """One transfer or compilation on the host. Times as of `Event`: before the first operation they are below 0."""

    kind: str  # one of HOST_KINDS
    start: float
    end: float


@dataclass(frozen=True)
class Event:
    """One operation on one device. Times in microseconds since the trace's first operation."""

    device: int
    name: str
    kind: str  # "compute", "communication"; after `split_waiting` also "waiting"
    start: float
    end: float
    run: int  # the how-many-th program call of the trace, from 0


@dataclass(frozen=True)
class Trace:
    """`events` on the devices, by start; `host`: how often each thing happened on the host, by its name;
    `host_events`: the transfers and compilations among them, by start.
    """

    events: tuple[Event, ...]
    host: Counter[str] = field(default_factory=Counter)
    host_events: tuple[HostEvent, ...] = ()

    @property
    def devices(self) -> list[int]:
        return sorted({event.device for event in self.events})

    @property
    def runs(self) -> list[int]:
        """The program calls in the trace: 0, 1, 2, ..."""
        return sorted({event.run for event in self.events})

    def zoom(self, run: int) -> Trace:
        """The events of one program call. Raises ValueError for a call that the trace does not hold."""
        if run not in self.runs:
            raise ValueError(f"the trace holds the calls {self.runs}, not {run}")
        events = tuple(event for event in self.events if event.run == run)
        start, end = min(e.start for e in events), max(e.end for e in events)
        overlap = tuple(e for e in self.host_events if e.start < end and e.end > start)
        return replace(self, events=events, host_events=overlap)

    def split(self) -> Trace:
        return split_waiting(self)

    def count(self, words: str = "", kind: str | None = None) -> dict[int, int]:
        """For each device, how many of its operations have `words` in their name and are of this kind."""
        found = {device: 0 for device in self.devices}
        for event in self.events:
            found[event.device] += words in event.name and kind in (None, event.kind)
        return found


def kind_of(name: str) -> str:
    """'communication' or 'compute', by an operation's name."""
    return "communication" if _COMMUNICATION.search(name) else "compute"


def split_waiting(trace: Trace) -> Trace:
    """The same trace, with each collective cut in two: waiting until the last device arrives, then communication."""
    events = [event for event in trace.events if event.kind != "communication"]
    for met in _meetings(trace):
        last = max(event.start for event in met)
        for e in met:
            all_here = min(max(e.start, last), e.end)
            for kind, start, end in (("waiting", e.start, all_here), ("communication", all_here, e.end)):
                if end > start:
                    events.append(Event(e.device, e.name, kind, start, end, e.run))
    return replace(trace, events=tuple(sorted(events, key=lambda event: event.start)))


def _meetings(trace: Trace) -> list[list[Event]]:
    """One collective on all its devices: the same program call, the same name, the same turn in a loop."""
    turns: Counter[tuple] = Counter()
    meetings = defaultdict(list)
    for event in trace.events:
        if event.kind == "communication":
            key = (event.run, event.name)
            meetings[(*key, turns[event.device, *key])].append(event)
            turns[event.device, *key] += 1
    return list(meetings.values())


def record(program: Callable, *args: Any) -> Trace:
    """Run program(*args) under JAX's profiler, and read what it wrote. The program waits for its devices itself."""
    import jax

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # without the calls of Python functions
    with tempfile.TemporaryDirectory() as folder:
        with quiet(), jax.profiler.trace(folder, profiler_options=options):
            program(*args)
        return read(folder)


def read(folder: str | Path) -> Trace:
    """Read what `jax.profiler.trace(folder)` wrote; of several traces in the folder, the newest.

    Raises FileNotFoundError where there is none.
    """
    from jax.profiler import ProfileData

    files = sorted(Path(folder).rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
    if not files:
        raise FileNotFoundError(
            f"no trace (*.xplane.pb) in {folder}. It is written at the end of `with jax.profiler.trace(folder):`."
        )
    with warnings.catch_warnings():  # 0.12: "builtin type event_stats has no __module__ attribute"
        warnings.simplefilter("ignore", DeprecationWarning)
        return from_planes(ProfileData.from_file(str(files[-1])).planes)


def from_planes(planes: Iterable[Any]) -> Trace:
    """Make the table of planes, as `ProfileData` gives them. Emulated devices share the host's plane, and each
    operation names its device; an accelerator has a plane of its own, such as /device:TPU:0.
    """
    found, host, on_host = [], Counter(), []
    for plane in planes:
        own = re.fullmatch(r"/device:(?:TPU|GPU):(\d+)", plane.name.split(" ")[0])
        lines = list(plane.lines)
        if own and any(line.name == "XLA Ops" for line in lines):  # the others repeat the same time, coarser
            lines = [line for line in lines if line.name == "XLA Ops"]
        for line in lines:
            operations = []
            for event in line.events:
                stats = {key: value for key, value in event.stats if key}
                begin, finish = event.start_ns, event.start_ns + event.duration_ns
                device = int(own[1]) if own else stats.get("device_ordinal")
                if device is None or not (stats.get("hlo_op") or line.name == "XLA Ops"):
                    host[event.name] += not own and not event.name.startswith("end: ")
                    if not own and event.name in HOST_KINDS:
                        on_host.append((begin, finish, HOST_KINDS[event.name]))
                    continue
                name = str(stats.get("hlo_op") or event.name).split(" = ")[0].lstrip("%")
                operations.append((begin, finish, device, name, stats.get("run_id")))
            found += _innermost(operations)
    found.sort()
    on_host.sort()
    zero = found[0][0] if found else on_host[0][0] if on_host else 0
    runs = {run: i for i, run in enumerate(dict.fromkeys(run for *_, run in found))}
    events = (
        Event(device, name, kind_of(name), (start - zero) / 1e3, (end - zero) / 1e3, runs[run])
        for start, end, device, name, run in found
    )
    host_events = (HostEvent(kind, (start - zero) / 1e3, (end - zero) / 1e3) for start, end, kind in on_host)
    return Trace(tuple(events), +host, tuple(host_events))


def _innermost(operations: list[tuple]) -> Iterator[tuple]:
    """Without the operations that hold others, such as a loop around its body: else their time counts twice."""
    operations.sort(key=lambda operation: (operation[0], -operation[1]))
    for i, this in enumerate(operations):
        following = operations[i + 1] if i + 1 < len(operations) else None
        if following is None or following[1] > this[1] or following[2] != this[2]:
            yield this


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep one line of 0.7.2 off the page, that it has no TensorFlow; whatever else goes to stderr comes through.

    From 0.10 on there is nothing to keep off, and this does nothing.
    """
    import jax

    if jax.__version_info__ >= (0, 10):
        yield
        return
    with tempfile.TemporaryFile() as caught:
        kept = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            caught.seek(0)
            rest = [line for line in caught if b"tensorflow.python.profiler" not in line]
            os.write(kept, b"".join(rest))
            os.close(kept)
