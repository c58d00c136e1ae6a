"""python who_is_late.py my_trace: whom do the other devices wait for, and why?

Without a folder it records five steps of its own, in which one device reads 50
documents and each other one up to 7, and checks itself.
"""

import glob
import re
import sys
import tempfile
from collections import Counter, defaultdict

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
SENDS = r"all.?reduce|all.?gather|reduce.?scatter|psum|pmax|pmin|permute|all.?to.?all"
HOST = "backend_compile_and_load", "DevicePutWithSharding", "np.asarray(jax.Array)"


def read(folder):
    """Rows (start, end, device, name, run) in ns, and how often the host did what."""
    file = max(glob.glob(f"{folder}/**/*.xplane.pb", recursive=True))  # the newest
    rows, host = [], Counter()
    for plane in jax.profiler.ProfileData.from_file(file).planes:
        own = re.match(r"/device:(?:TPU|GPU):(\d+)", plane.name)  # emulated ones: none
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
                    end = event.start_ns + event.duration_ns
                    rows.append(
                        (event.start_ns, end, device, name, stats.get("run_id"))
                    )
    return sorted(rows, key=lambda row: row[0]), host


def report(folder):
    rows, host = read(folder)
    ran, busy, waits, last, turns = (Counter() for _ in range(5))
    meetings = defaultdict(dict)  # of each collective: when did each device arrive?
    for start, end, device, name, run in rows:
        if not re.search(SENDS, name, re.I):
            ran[device] += 1
            busy[device] += end - start
        elif "done" not in name:  # which is the second half of a collective
            turns[device, name, run] += 1  # a loop runs the same collective again
            meetings[name, run, turns[device, name, run]][device] = start
    for starts in meetings.values():
        late = max(starts, key=starts.get)
        last[late] += 1
        waits.update({d: starts[late] - start for d, start in starts.items()})
    print("device  operations  busy ms  waits ms  arrives last")
    for d in sorted(ran):
        ms = f"{busy[d] / 1e6:7.1f} {waits[d] / 1e6:9.1f}"
        print(f"{d:6} {ran[d]:11,}  {ms} {last[d]:8} of {len(meetings)}")
    print("host:", ", ".join(f"{name} {host[name]} x" for name in HOST))
    late, times = max(last.items(), key=lambda item: item[1], default=(None, 0))
    if times < 0.7 * len(meetings) or len(ran) < 2 or not meetings:
        print("verdict: nobody is late again and again")
        return ran
    more, longer = (
        c[late] / np.median([c[d] for d in ran if d != late]) for c in (ran, busy)
    )
    why = "begins late or is held up: its host"
    if more > 1.1:
        why = f"runs {more:.1f} times the operations: its data"
    elif longer > 1.1:
        why = f"is busy {longer:.1f} times as long: its chip"
    print(f"verdict: device {late} {why}")
    return ran


def steps(counts):  # YOURS: a loop that ran once before, and waits in each step
    kinds = (AxisType.Auto,)
    mesh = jax.make_mesh((len(counts),), ("X",), axis_types=kinds)

    def read_all(x, count):  # on one device: (1024, 128), (1,)
        w = jnp.eye(128) / 2
        x = jax.lax.fori_loop(0, count[0], lambda i, x: jnp.tanh(x @ w), x)
        return jax.lax.psum(x.sum(), "X")

    arrays = np.ones((1024 * len(counts), 128), np.float32), counts
    arrays = jax.device_put(arrays, NamedSharding(mesh, P("X")))
    program = jax.jit(
        jax.shard_map(read_all, mesh=mesh, in_specs=P("X"), out_specs=P())
    )
    program(*arrays).block_until_ready()  # warm up
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(5):
                program(*arrays).block_until_ready()
        return report(folder)


if len(sys.argv) > 1:
    report(sys.argv[1])
elif (n := jax.device_count()) < 2:
    print("one device waits for nobody")
else:
    counts = np.insert(np.resize([3, 5, 4, 6, 2, 7, 3], n - 1), n // 2, 50)
    print(f"{counts.sum()} documents, as they came: {counts.tolist()}")
    ran = steps(counts)
    each = {(ran[d] - ran[0]) / (counts[d] - 3) for d in range(n) if counts[d] != 3}
    assert len(each) == 1 and min(each) > 0, "operations do not follow documents"
    even = np.full(n, counts.sum() // n)
    print(f"\ndealt out anew: {even.tolist()}")
    assert len(set(steps(even).values())) == 1, "the shares are not equal"
    print("checked: the operations follow the documents")
