"""Test the command on the program texts in this file and on one that the compiler dumps."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardcost.cli import main

DUMP = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %r = f32[8,4]{1,0} all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add, metadata={op_name="jit(f)/psum" source_file="train.py" source_line=12}
}
"""
LOOP = """HloModule m, is_scheduled=true, num_partitions=8

%body (q: f32[]) -> f32[] {
  %q = f32[] parameter(0)
  ROOT %s = f32[] all-reduce(%q), replica_groups={}, to_apply=%add
}

%condition (c: f32[]) -> pred[] {
  %c = f32[] parameter(0)
  ROOT %t = pred[] is-finite(%c)
}

ENTRY %main (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %w = f32[] while(%p), condition=%condition, body=%body, metadata={op_name="jit(f)/while" source_file="train.py" source_line=7}
}
"""


@pytest.fixture
def dump(tmp_path):
    def write(text, name="dump.txt"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


def test_one_dump(dump, capsys):
    """Test an all-reduce of 128 bytes in groups of four, in which each device sends 2 * 3/4 * 128 = 192 bytes."""
    assert main([dump(DUMP), "--axes", "data=2,model=4", "--sources"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "collective   along   operand    result     times   bytes sent",
        "all-reduce   model   f32[8,4]   f32[8,4]       1          192",
        "",
        "the busiest device sends 192 bytes; each device computes 0 FLOPs in matrix products",
        "",
        "collective   along   bytes sent   operation   source line",
        "all-reduce   model          192   psum        train.py:12",
    ]


def test_axes_that_do_not_fit(dump, capsys):
    assert main([dump(DUMP), "--axes", "data=4"]) == 2
    assert "the axes {'data': 4} do not multiply to the program's 8 devices" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([dump(DUMP), "--axes", "data"])
    assert "'data': pass NAME=SIZE,... as data=2,model=4" in capsys.readouterr().err


def test_two_dumps(dump, capsys):
    """Test that the comparison shows that the same program in bfloat16 sends 96 bytes instead of 192."""
    before, after = dump(DUMP, "before.txt"), dump(DUMP.replace("f32", "bf16"), "after.txt")
    assert main([before, after]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        "collective   along           times   bytes sent   change",
        "all-reduce   2 x 4 devices   1       192 -> 96    -96",
    ]
    assert main([before, before]) == 0
    assert capsys.readouterr().out.startswith("the same collectives\n")


def test_the_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(DUMP))
    assert main(["-"]) == 0
    assert "192" in capsys.readouterr().out


def test_an_unknown_trip_count(dump, capsys):
    """Test an all-reduce of 4 bytes over eight devices in 100 iterations, which sends 100 * 2 * 7/8 * 4 = 700 bytes."""
    path = dump(LOOP)
    assert main([path]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"shardcost: {path}: all-reduce in the loop at train.py:7, whose trip count ")
    assert error.endswith("pass --trip-counts 'train.py:7=N' if you know it (--partial counts the rest)\n")
    for option in ("100", "train.py:7=100"):
        assert main([path, "--trip-counts", option]) == 0
        assert "the busiest device sends 700 bytes" in capsys.readouterr().out
    assert main([path, "--partial"]) == 0
    assert "not counted: all-reduce in the loop at train.py:7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [("module @jit_f {\n}", "this is StableHLO"), (DUMP.replace("is_scheduled=true, ", ""), "is not fully compiled")],
)
def test_a_wrong_text(dump, capsys, text, message):
    assert main([dump(text)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_file_and_wrong_options(dump, capsys, tmp_path):
    assert main([str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err
    path = dump(DUMP)
    for wrong in ([path, "--axes", "data"], [path, "--trip-counts", "many"], [path] * 3, []):
        with pytest.raises(SystemExit) as exit_:
            main(wrong)
        assert exit_.value.code == 2


def test_the_dump_of_a_compiler(tmp_path):
    """Test that the command reads a dump that the compiler wrote, even if JAX can't be imported."""
    program = (
        "import os; os.environ['JAX_PLATFORMS'] = 'cpu'\n"
        "import jax; jax.config.update('jax_num_cpu_devices', 8)\n"
        "from jax.sharding import *\n"
        "mesh = jax.make_mesh((8,), ('x',), axis_types=(AxisType.Auto,))\n"
        "x = jax.ShapeDtypeStruct((8, 4), 'float32', sharding=NamedSharding(mesh, PartitionSpec('x')))\n"
        "jax.jit(lambda x: x.sum(0)).lower(x).compile()\n"
    )
    environment = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={tmp_path}"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    [dump] = tmp_path.glob("*after_optimizations.txt")
    source = Path(__file__).parents[1] / "src"
    run = subprocess.run(
        [sys.executable, "-S", "-m", "shardcost", dump], capture_output=True, text=True, env={"PYTHONPATH": str(source)}
    )
    assert "all-reduce   1 x 8 devices   f32[4]    f32[4]       1           28" in run.stdout
    assert (run.stderr, run.returncode) == ("", 0)
