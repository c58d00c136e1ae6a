"""python who_is_late.py my_trace/*: which device do the others wait for, and why?

Pass the trace folder of each process of your program. Without a folder, record two
loops on eight emulated devices and check the verdict.
"""

import re
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter, defaultdict
from pathlib import Path

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.add_argument("folder", nargs="*", help="one process's trace")
FOLDERS = cli.parse_args().folder
KINDS = "all.?reduce|all.?gather|reduce.?scatter|psum|collective|permute|all.?to.?all"
EVENTS = "backend_compile_and_load", "DevicePutWithSharding", "np.asarray(jax.Array)"


def read(folder):
    """Return a process's operations (start, device, name, ns) and host event counts."""
    files = list(Path(folder).rglob("*.xplane.pb"))
    if len(files) != 1:
        cli.error(f"expected one *.xplane.pb file in {folder}, found {len(files)}")
    operations, host = [], Counter()
    for plane in jax.profiler.ProfileData.from_file(str(files[0])).planes:
        chip = re.fullmatch(r"/device:([TG]PU:\d+)", plane.name)
        lines = list(plane.lines)
        ops = [line for line in lines if line.name == "XLA Ops"]  # on a TPU
        for event in (event for line in ops or lines for event in line.events):
            stats = dict(event.stats)
            name = str(stats.get("hlo_op") or (event.name if ops else ""))
            name = name.split(" = ")[0].lstrip("%")  # a TPU says "%add.1 = f32[8] ..."
            device = chip[1] if chip else f"CPU:{stats.get('device_ordinal')}"
            if not name or "None" in device:
                host[event.name] += not chip
            elif not name.startswith(("while", "call", "conditional")):  # containers
                device = f"{Path(folder).name}/{device}"
                operations.append((event.start_ns, device, name, event.duration_ns))
    return sorted(operations), host


def report(folders):  # print a table and a verdict; return the operation counts
    ran, busy, waits, repetitions, host = (Counter() for _ in range(5))
    durations = defaultdict(Counter)  # of each run of a collective, by device
    for operations, events in map(read, folders):
        host += events
        for _, device, name, duration in operations:
            if re.search(KINDS, name, re.I):
                repetitions[device, name] += 1  # a loop repeats a collective
                base = re.sub("-start|-done", "", name)  # add up both halves on a TPU
                durations[base, repetitions[device, name]][device] += duration
            else:
                ran[device] += 1
                busy[device] += duration
    for times in durations.values():  # the last to arrive waits least
        waits.update({d: time - min(times.values()) for d, time in times.items()})
    print("device     operations  busy ms   wait ms")
    devices = sorted(ran, key=lambda device: (len(device), device))
    for d in devices:
        print(f"{d:10} {ran[d]:10,} {busy[d] / 1e6:8.1f} {waits[d] / 1e6:9.1f}")
    print("host:", ", ".join(f"{name} {host[name]} x" for name in EVENTS))
    if any(len(times) < len(ran) for times in durations.values()):
        print("careful: a trace or a device lacks some of the collectives")
    if not any(waits.values()):
        print("verdict: no device is late, because none waits in a collective")
        return np.array([ran[d] for d in devices])
    late = min(sorted(set().union(*durations.values())), key=lambda d: waits[d])
    more, longer, waited = (  # relative to the other devices' median
        c[late] / max(1, np.median([c[d] for d in ran if d != late] or [0]))
        for c in (ran, busy, waits)
    )
    if waited > 0.3:
        why = "waits least, but isn't the last to arrive every time"
    elif more > 1.1:
        why = f"runs {more:.1f} times as many operations: look at its data"
    elif "CPU" in late:
        why = "waits least, but on emulated devices durations mean nothing"
    elif longer > 1.1:
        why = f"is busy {longer:.1f} times as long: look at its chip"
    else:
        why = "does no more than others but starts late or is held up: look at its host"
    print(f"verdict: {late} {why}")
    return np.array([ran[d] for d in devices])


def steps(counts):  # record five steps: device d reads counts[d] documents
    mesh = jax.make_mesh((8,), ("X",), axis_types=(AxisType.Auto,))

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=P("X"), out_specs=P())
    def program(x, count):  # per device: (1024, 128), (1,)
        w = np.eye(128, dtype=np.float32) / 2
        x = jax.lax.fori_loop(0, count[0], lambda i, x: jax.numpy.tanh(x @ w), x)
        return jax.lax.psum(x.sum(), "X")

    arrays = np.ones((8 * 1024, 128), np.float32), counts
    arrays = jax.device_put(arrays, NamedSharding(mesh, P("X")))
    program(*arrays).block_until_ready()  # warm up
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(f"{folder}/0"):
            for _ in range(5):
                program(*arrays).block_until_ready()
        return report([f"{folder}/0"])


if FOLDERS:
    report(FOLDERS)
else:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    counts = np.array([3, 5, 4, 6, 50, 2, 7, 3])
    print(f"80 documents, shared unevenly: {counts.tolist()}")
    ran = steps(counts)
    per_document = (ran[1] - ran[0]) / (counts[1] - counts[0])
    expected = ran[0] + per_document * (counts - counts[0])
    assert np.array_equal(ran, expected), "operations don't follow documents"
    print("\n80 documents, shared evenly: ten on each device")
    assert len(set(steps(np.full(8, 10)))) == 1, "the shares differ"
    print("checked: the operations follow the documents")
