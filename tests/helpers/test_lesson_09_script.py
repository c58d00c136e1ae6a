"""Test lesson 09's script on synthetic traces that use the names of real GPU and TPU traces.

The names of planes and lines, and of the stat hlo_op, are from openxla/xla, xla/tsl/profiler/utils/xplane_schema.cc.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jax.profiler import ProfileData

from tools.lessons import notebooks

pytestmark = pytest.mark.once

SCRIPT = notebooks.ROOT / "examples" / "09_who_is_late.py"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def plane(name: str, zero: int = 0, **lines: list[tuple]) -> str:
    """Return a plane in protobuf's text format.

    Each event is a tuple of its name, its start and its duration in µs, and its stat hlo_op or None.
    """
    names: list[str] = []
    text = ""
    for i, (line, events) in enumerate(lines.items()):
        inside = ""
        for event, start, took, op in events:
            names.append(event)
            stat = f'stats {{ metadata_id: 1 str_value: "{op}" }}' if op else ""
            inside += (
                f"events {{ metadata_id: {len(names)} offset_ps: {start * 10**6} duration_ps: {took * 10**6} {stat} }} "
            )
        text += f'lines {{ id: {i} name: "{line.replace("_", " ")}" timestamp_ns: {zero} {inside} }} '
    for number, event in enumerate(names, 1):
        text += f'event_metadata {{ key: {number} value {{ id: {number} name: "{event}" }} }} '
    return f'planes {{ name: "{name}" {text} stat_metadata {{ key: 1 value {{ id: 1 name: "hlo_op" }} }} }} '


def gpu(number: int, computes: list[int], meets: int, **more) -> str:
    """Return a GPU's trace of one step: consecutive kernels on one stream, then NCCL's kernel on another stream."""
    ends = [sum(computes[:i]) for i in range(len(computes) + 1)]
    kernels = [("loop_fusion", a, took, f"fusion.{i}") for i, (a, took) in enumerate(zip(ends, computes, strict=False))]
    stream, nccl = "Stream #13(Compute)", [(NCCL, ends[-1], meets, "all-reduce-start.1"), ("MemcpyD2H", 900, 5, None)]
    return plane(f"/device:GPU:{number}", **{stream: kernels, "Stream #14(Compute)": nccl}, **more)


def tpu(number: int, computes: list[int], waits: int) -> str:
    """Return a TPU's trace of one step.

    As in real traces, other lines repeat the step's duration, a loop's event spans its operations, and the all-reduce
    has a start and a done event.
    """
    ends = [sum(computes[:i]) for i in range(len(computes) + 1)]
    ops = [(f"%fusion.{i} = f32[8]", a, took, None) for i, (a, took) in enumerate(zip(ends, computes, strict=False))]
    ops += [("%while.1 = (f32[8])", 0, ends[-1], None), ("%all-reduce-start.1 = f32[8]", ends[-1], 1, None)]
    ops += [("%all-reduce-done.1 = f32[8]", ends[-1] + 1, waits, None)]
    whole = [("7", 0, ends[-1] + 1 + waits, None)]
    lines = {"Steps": whole, "XLA_Modules": whole, "XLA_Ops": ops, "Async_XLA_Ops": whole}
    return plane(f"/device:TPU:{number}", **lines) + plane(f"/device:TPU:{number} SparseCore 0", Sparse_Core_Ops=whole)


def script_output(folder: Path, *processes: str) -> list[str]:
    """Return the lines that the script prints for these processes' traces."""
    for i, text in enumerate(processes):
        profile_folder = folder / f"{i}" / "plugins" / "profile" / "now"
        profile_folder.mkdir(parents=True)
        host = plane("/host:CPU", python=[("DevicePutWithSharding", 1, 1, None)] * 2)
        (profile_folder / "host.xplane.pb").write_bytes(ProfileData.text_proto_to_serialized_xspace(text + host))
    command = [sys.executable, str(SCRIPT), *(str(folder / f"{i}") for i in range(len(processes)))]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_gpus_in_two_processes_with_different_clocks(tmp_path):
    ones = [gpu(0, [10, 10], 90), gpu(1, [10, 11], 89)]
    others = [gpu(0, [20, 20, 20, 20, 20], 10, zero=10**12), gpu(1, [12, 10], 88, zero=10**12)]
    table = script_output(tmp_path, "".join(ones), "".join(others))
    assert [line.split()[:2] for line in table[1:5]] == [
        ["0/GPU:0", "2"],
        ["0/GPU:1", "2"],
        ["1/GPU:0", "5"],
        ["1/GPU:1", "2"],
    ]
    assert "DevicePutWithSharding 4 x" in table[5]
    assert table[-1] == "verdict: 1/GPU:0 runs 2.5 times as many operations: look at its data"


@pytest.mark.parametrize(
    ("computes", "verdict"),
    [
        ([130, 130], "0/TPU:1 is busy 2.5 times as long: look at its chip"),
        ([52, 52], "0/TPU:1 does no more than others but starts late or is held up: look at its host"),
    ],
)
def test_tpu_traces(tmp_path, computes, verdict):
    table = script_output(tmp_path, tpu(0, [52, 52], 170) + tpu(1, computes, 2) + tpu(2, [50, 52], 171))
    assert [line.split()[:2] for line in table[1:4]] == [["0/TPU:0", "2"], ["0/TPU:1", "2"], ["0/TPU:2", "2"]]
    assert table[-1] == f"verdict: {verdict}"


def test_a_missing_step_is_reported(tmp_path):
    table = script_output(tmp_path, tpu(0, [50], 9), plane("/device:TPU:0", XLA_Ops=[("%add.1 = f32[]", 0, 5, None)]))
    assert any(line.startswith("careful") for line in table)


def test_no_device_is_late_if_they_take_turns(tmp_path):
    first = [("%add.1 = f32[]", 0, 50, None), ("%all-reduce.1", 50, 2, None), ("%all-reduce.1", 52, 90, None)]
    second = [("%add.1 = f32[]", 0, 50, None), ("%all-reduce.1", 50, 80, None), ("%all-reduce.1", 130, 3, None)]
    table = script_output(tmp_path, plane("/device:TPU:0", XLA_Ops=first), plane("/device:TPU:0", XLA_Ops=second))
    assert table[-1] == "verdict: 1/TPU:0 waits least, but isn't the last to arrive every time"


def test_without_collectives_no_device_is_late(tmp_path):
    ops = [[("%add.1 = f32[]", 0, 50, None)], [("%add.1 = f32[]", 0, 90, None)] * 3]
    table = script_output(tmp_path, *(plane("/device:TPU:0", XLA_Ops=each) for each in ops))
    assert [line.split()[:2] for line in table[1:3]] == [["0/TPU:0", "1"], ["1/TPU:0", "3"]]
    assert table[-1] == "verdict: no device is late, because none waits in a collective"
