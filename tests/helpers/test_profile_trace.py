"""Test traces, both from fake planes with known numbers and from a real run on eight devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace as Pretended

import jax
import pytest

from lesson_helpers.profiles import trace
from lesson_helpers.profiles.timeline import timeline
from tools.lessons import notebooks


def event(name, start, duration, **stats):
    """Return a fake event of the profiler, with its times in ns."""
    return Pretended(name=name, start_ns=start, duration_ns=duration, stats=list(stats.items()))


def operation(name, start, duration, device, run=7):
    return event(name, start, duration, hlo_op=name, device_ordinal=device, run_id=run)


def plane(name, **lines):
    return Pretended(name=name, lines=[Pretended(name=key, events=events) for key, events in lines.items()])


def emulated():
    """Return a trace of two devices on two threads, from times in ns. Device 1 starts later and computes longer."""
    host = [event("np.asarray(jax.Array)", 0, 10), event("np.asarray(jax.Array)", 20, 10), event("end: x", 0, 1)]
    zero = [operation("dot.1", 1000, 2000, 0), operation("all-reduce.2", 3000, 7000, 0)]
    one = [operation("dot.1", 2000, 6000, 1), operation("all-reduce.2", 8000, 2000, 1), event("Rendezvous", 8000, 9)]
    return trace.from_planes([plane("/host:metadata"), plane("/host:CPU", python=host, a=zero, b=one)])


def test_the_table_of_two_devices():
    result = emulated()
    assert [(e.device, e.name, e.kind, e.start, e.end, e.run) for e in result.events] == [
        (0, "dot.1", "compute", 0.0, 2.0, 0),
        (1, "dot.1", "compute", 1.0, 7.0, 0),
        (0, "all-reduce.2", "communication", 2.0, 9.0, 0),
        (1, "all-reduce.2", "communication", 7.0, 9.0, 0),
    ]
    assert result.host == {"np.asarray(jax.Array)": 2, "Rendezvous": 1}
    assert result.count("dot") == {0: 1, 1: 1} and result.count(kind="waiting") == {0: 0, 1: 0}


def test_waiting_ends_when_the_last_device_joins():
    result = emulated()
    split = [(e.device, e.kind, e.start, e.end) for e in result.split_waiting().events if e.kind != "compute"]
    assert split == [(0, "waiting", 2.0, 7.0), (0, "communication", 7.0, 9.0), (1, "communication", 7.0, 9.0)]


def test_each_iteration_of_a_loop_is_a_separate_collective():
    iterations = [
        [operation("psum.1", start, 1000, device) for start in starts]
        for device, starts in enumerate([(0, 5000), (500, 4000)])
    ]
    result = trace.from_planes([plane("/host:CPU", a=iterations[0], b=iterations[1])])
    waited = [(e.device, e.start, e.end) for e in result.split_waiting().events if e.kind == "waiting"]
    assert waited == [(0, 0.0, 0.5), (1, 4.0, 5.0)]


def test_a_loop_is_not_counted_in_addition_to_its_body():
    line = [operation("while.1", 0, 5000, 0), operation("add.1", 100, 2000, 0), operation("add.1", 2500, 2000, 0)]
    assert trace.from_planes([plane("/host:CPU", a=line)]).count() == {0: 2}


def test_numbers_of_calls_and_zoom():
    read_trace = trace.from_planes(
        [plane("/host:CPU", a=[operation("a", 0, 10, 0, run=-5), operation("a", 20, 10, 0, run=-9)])]
    )
    assert read_trace.runs == [0, 1]
    assert [e.start for e in read_trace.zoom(1).events] == [0.02]
    with pytest.raises(ValueError, match="not 2"):
        read_trace.zoom(2)


def test_planes_of_accelerators():
    """Test fake planes that have the same names as the profiler's.

    There's one plane per device, with a TPU's line of operations or with a GPU's streams.
    """
    text = "%all-reduce.3 = f32[8]{0} all-reduce(%x)"
    tpu = {
        "Steps": [event("0", 0, 99)],
        "XLA Modules": [event("jit_f", 0, 99, run_id=3)],
        "XLA Ops": [event("%fusion.1 = f32[8] fusion(%p)", 0, 5, run_id=3), event(text, 5, 9, run_id=3)],
    }
    gpu = {
        "Stream #7(Compute)": [event("ncclDevKernel_AllReduce", 0, 5, hlo_op="all-reduce.1"), event("MemcpyH2D", 9, 1)]
    }
    for name, lines, want in [
        ("/device:TPU:0", tpu, [("fusion.1", "compute"), ("all-reduce.3", "communication")]),
        ("/device:GPU:0", gpu, [("all-reduce.1", "communication")]),
    ]:
        other = name.replace(":0", ":1")
        read_trace = trace.from_planes(
            [plane(name, **lines), plane(other, **lines), plane("/device:CUSTOM:Megascale Trace")]
        )
        assert read_trace.devices == [0, 1] and not read_trace.host
        assert [(e.name, e.kind) for e in read_trace.events if e.device == 1] == want


KINDS = {
    "communication": "all-reduce.2 psum_invariant.7 all-gather-start ppermute all-to-all",
    "compute": "reduce_sum.9 reduce-window gather_fusion scatter.1 wrapped_tanh copy",
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for kind, names in KINDS.items() for name in names.split()])
def test_kinds(name, kind):
    assert trace.kind_of(name) == kind


RECORD = """
import sys
from collections import Counter
import warnings

from utils.devices import start_devices

start_devices(8)
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from lesson_helpers.profiles import trace
from utils.mesh import make_mesh

mesh = make_mesh((8,), ("i",))


def work(x, turns):
    h = jax.lax.fori_loop(0, turns[0], lambda i, h: jnp.tanh(h @ h), x)
    return jax.lax.psum(h.sum(), "i")


program = jax.jit(jax.shard_map(work, mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P()))
turns = jnp.array([2, 3, 4, 5, 6, 7, 8, 9])
x, turns = (jax.device_put(v, NamedSharding(mesh, P("i"))) for v in (jnp.ones((128, 16)), turns))
program(x, turns).block_until_ready()
warnings.simplefilter("error")
with trace.without_tensorflow_message(), jax.profiler.trace(sys.argv[1]):
    for _ in range(2):
        program(x, turns).block_until_ready()
trace.read(sys.argv[1])  # this must not warn either

warnings.simplefilter("default")
late = jax.jit(lambda x: jnp.tanh(x).sum())  # compiled while the trace is recorded
with trace.without_tensorflow_message(), jax.profiler.trace(sys.argv[2]):
    float(late(jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("i")))))
"""


def test_a_real_trace_of_eight_devices(tmp_path):
    # This runs in its own process, because JAX 0.10.2 crashes when the profiler starts if libtpu is loaded, as it is by
    # shardcost's tests.
    command = [sys.executable, "-c", RECORD, str(tmp_path / "warm"), str(tmp_path / "cold")]
    run = subprocess.run(command, cwd=notebooks.ROOT, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    read_trace = trace.read(tmp_path / "warm")
    assert read_trace.runs == [0, 1] and not read_trace.host_events
    assert read_trace.count("tanh") == {device: 2 * (device + 2) for device in range(8)}
    assert read_trace.count(kind="communication") == dict.fromkeys(range(8), 2)
    assert [sorted(event.device for event in met) for met in read_trace.collectives()] == [list(range(8))] * 2
    assert read_trace.host["backend_compile_and_load"] == 0
    picture = timeline(read_trace.split_waiting(), "two calls")
    assert picture.alt.startswith("two calls: a timeline with a row for each of 8 devices.")

    cold = trace.read(tmp_path / "cold")
    assert [e.kind for e in cold.host_events] == ["to the devices", "compiling", "to the host"]
    put, compiling, fetch = cold.host_events
    # Every device has the sum. The host fetches device 0's copy without waiting for the other seven.
    first, last = cold.events[0].start, max(e.end for e in cold.events if e.device == 0)
    assert put.end <= compiling.start < compiling.end <= first == 0.0 < last <= fetch.end


def with_host():
    """Return a trace like that of `emulated`, but with transfers and a compilation on the host.

    The host first compiles (-30 to -10 µs) and finally fetches a number (12 to 15 µs).
    """
    host = [event("np.asarray(jax.Array)", 13_000, 3000), event("backend_compile_and_load", -29_000, 20_000)]
    zero = [operation("dot.1", 1000, 2000, 0), operation("all-reduce.2", 3000, 7000, 0)]
    one = [operation("dot.1", 5000, 3000, 1, run=7), operation("all-reduce.2", 8000, 2000, 1)]
    return trace.from_planes([plane("/host:CPU", python=host, a=zero, b=one), plane("/device:GPU:0", x=host)])


def test_host_events_have_times():
    read_trace = with_host()
    assert read_trace.host_events == (
        trace.HostEvent("compiling", -30.0, -10.0),
        trace.HostEvent("to the host", 12.0, 15.0),
    )
    assert read_trace.host == {"np.asarray(jax.Array)": 1, "backend_compile_and_load": 1}
    assert read_trace.split_waiting().host_events == read_trace.host_events
    assert read_trace.zoom(0).host_events == ()  # the call lasts only from 0 to 9 µs
    alone = trace.from_planes([plane("/host:CPU", python=[event("DevicePutWithSharding", 5000, 1000)])])
    assert alone.host_events == (trace.HostEvent("to the devices", 0.0, 1.0),)


def test_the_description_of_a_timeline():
    """Compare the longest gap in the description with a manual calculation.

    The drawing begins at -30 µs, and no device has a bar before 0 µs or between 9 and 15 µs, so the longest gap is the
    first 30 µs.
    """
    description = timeline(with_host().split_waiting(), "a step").alt
    assert description == (
        "a step: a timeline with a row for each of 2 devices. The kinds of bars are compute, communication, waiting. "
        "On the host: compiling 1 x, to the host 1 x. "
        "The longest gap without a bar on any device lasts 30 µs, starting at 0 µs."
    )
    calls = [operation("dot", 0, 5_000_000, 0, run=1), operation("dot", 8_000_000, 1_000_000, 0, run=2)]
    description = timeline(trace.from_planes([plane("/host:CPU", a=calls)])).alt
    assert description == (
        "A timeline of device 0. The kinds of bars are compute. "
        "The longest gap without a bar on any device lasts 3.0 ms, starting at 5.0 ms."
    )


def test_missing_and_empty_traces_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no trace"):
        trace.read(tmp_path)
    with pytest.raises(ValueError, match="nothing to draw"):
        timeline(trace.from_planes([]))


@pytest.mark.parametrize(("version", "first"), [((0, 7, 2), ""), ((0, 10, 2), "no tensorflow.python.profiler\n")])
def test_only_the_tensorflow_message_is_suppressed(version, first, monkeypatch, capfd):
    monkeypatch.setattr(jax, "__version_info__", version)
    with trace.without_tensorflow_message():
        os.write(2, b"no tensorflow.python.profiler\nsomething else\n")
    assert capfd.readouterr().err == first + "something else\n"


def test_a_timeline_with_named_rows():
    bars = (
        trace.Event(0, "gather", "communication", 0, 5, 0),
        trace.Event(1, "product", "compute", 3, 9.4, 0),
    )
    picture = timeline(trace.Trace(bars, Counter()), "a chip", row_names=["links", "units"])
    assert picture.alt == "a chip: a timeline. links: communication from 0 to 5 µs; units: compute from 3 to 9 µs."
    assert [label.get_text() for label in picture.figure.axes[0].get_yticklabels()] == ["links", "units"]
