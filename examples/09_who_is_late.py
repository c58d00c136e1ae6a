"""python who_is_late.py my_trace: whom do the other devices wait for, and why?

Without a folder it records steps of its own, in which one device reads 50 documents
where the others read up to 7, and checks itself.
"""

import glob
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict

import jax
import jax.numpy as jnp
import numpy as np
from jax.profiler import ProfileData
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
SENDS = r"all.?reduce|all.?gather|reduce.?scatter|psum|pmax|pmin|permute|all.?to.?all"
HOST = {
    "backend_compile_and_load": "compiles",
    "DevicePutWithSharding": "puts arrays on devices",
    "np.asarray(jax.Array)": "fetches arrays",
}


def read(folder):
    """Rows (start, end, device, name, run) in ns, and how often the host did what."""
    files = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    rows, host = [], Counter()
    for plane in ProfileData.from_file(max(files, key=os.path.getmtime)).planes:
        own = re.match(
            r"/device:(?:TPU|GPU):(\d+)", plane.name
        )  # emulated devices: none
        for line in plane.lines:
            if "TPU" in plane.name and line.name != "XLA Ops":
                continue  # a TPU's other lines repeat the same time, coarser
            for event in line.events:
                stats = {key: value for key, value in event.stats if key}
                name = (
                    str(stats.get("hlo_op") or event.name).split(" = ")[0].lstrip("%")
                )
                device = int(own[1]) if own else stats.get("device_ordinal")
                if "hlo_op" not in stats and line.name != "XLA Ops":
                    host[event.name] += not own
                elif not re.match("while|call|conditional", name):  # they hold others
                    start, run = event.start_ns, stats.get("run_id")
                    rows.append((start, start + event.duration_ns, device, name, run))
    return sorted(rows, key=lambda row: row[:3]), host


def report(folder):
    rows, host = read(folder)
    ran, busy, waits, last = Counter(), Counter(), Counter(), Counter()
    turns, meetings = Counter(), defaultdict(dict)
    for start, end, device, name, run in rows:
        if not re.search(SENDS, name, re.I):
            ran[device] += 1
            busy[device] += end - start
        elif not re.search("done", name):  # the second half of a collective
            turns[device, name, run] += 1  # a loop runs the same collective again
            meetings[name, run, turns[device, name, run]][device] = start
    for starts in meetings.values():  # one collective: when did each device arrive?
        late = max(starts, key=starts.get)
        last[late] += 1
        for device, start in starts.items():
            waits[device] += starts[late] - start
    print("device  operations  busy ms  waits ms  arrives last")
    for d in sorted(ran):
        ms = f"{busy[d] / 1e6:7.1f} {waits[d] / 1e6:9.1f}"
        print(f"{d:6} {ran[d]:11,}  {ms} {last[d]:8} of {len(meetings)}")
    for name, words in HOST.items():
        print(f"the host {words}: {host[name]} x")
    late, times = last.most_common(1)[0]
    others = [d for d in ran if d != late] or [late]
    more, longer = (c[late] / np.median([c[d] for d in others]) for c in (ran, busy))
    if times < 0.7 * len(meetings):
        print(
            "verdict: the last one changes; no device is late for a reason of its own"
        )
    elif more > 1.1:
        print(
            f"verdict: device {late}, {more:.1f} times the operations: look at its data"
        )
    elif longer > 1.1:
        print(f"verdict: device {late}, {longer:.1f} times as busy: look at its chip")
    else:
        print(f"verdict: device {late} begins late or is held up: look at its host")
    return ran


def steps(counts, n):  # YOURS: a loop that ran before, five steps, waiting in each
    mesh = jax.make_mesh((n,), ("X",), axis_types=(AxisType.Auto,))

    def reader(x, count):  # on one device: (256, 128), (1,)
        def document(i, h):
            return jnp.tanh(h @ w)

        h = jax.lax.fori_loop(0, count[0], document, x)
        return jax.lax.psum(h.sum(), "X")

    w = np.eye(128, dtype=np.float32) / 2
    split = NamedSharding(mesh, P("X"))
    x = jax.device_put(np.ones((256 * n, 128), np.float32), split)
    count = jax.device_put(counts.astype(np.int32), split)
    program = jax.jit(jax.shard_map(reader, mesh=mesh, in_specs=P("X"), out_specs=P()))
    program(x, count).block_until_ready()  # warm up
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(5):
                program(x, count).block_until_ready()
        return report(folder)


if len(sys.argv) > 1:
    report(sys.argv[1])
else:
    n = jax.device_count()
    counts = np.insert(np.resize([3, 5, 4, 6, 2, 7, 3], n - 1), n // 2, 50)
    print(f"{counts.sum()} documents, as they came: {counts.tolist()}")
    ran = steps(counts, n)
    each = {(ran[d] - ran[0]) / (counts[d] - 3) for d in range(n) if counts[d] != 3}
    assert len(each) <= 1, "operations do not follow documents"
    even = np.full(n, counts.sum() // n)
    print(f"\ndealt out anew: {even.tolist()}")
    assert len(set(steps(even, n).values())) == 1, "the shares are not equal"
