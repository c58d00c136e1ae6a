"""Test that the comparison of compilers matches a manual calculation, and that an outdated record is refused."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tools.maintenance import record_costs
from utils import compiler_comparison
from utils.standalone_source import standalone_source


def multiply(x, w):
    return x @ w


@pytest.fixture
def programs():
    """Return two programs that multiply float32 [64, 256] by [256, 512].

    In one, both operands are split along the contracting dimension. In the other, only the second operand is split,
    along its columns.
    """
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

    def array(*shape_and_spec):
        *shape, spec = shape_and_spec
        return jax.ShapeDtypeStruct(tuple(shape), jnp.float32, sharding=NamedSharding(mesh, spec))

    return {
        "sum": (multiply, (array(64, 256, P(None, "x")), array(256, 512, P("x")))),
        "columns": (multiply, (array(64, 256, P()), array(256, 512, P(None, "x")))),
    }


# An all-reduce of the result's 64 · 512 · 4 bytes sends 7/8 of them twice.
SUM = {"all-reduce": 2 * 7 * 64 * 512 * 4 // 8}


def write_record(folder, **columns_of_sum):
    """Write a record for lesson 99. `columns_of_sum` overrides the columns of the program `sum`."""
    columns = {"CPU": SUM, "8 H100s": {"all-reduce": 3}, "TPU v5e 2x4": {"all-gather": 4, "all-to-all": 5}}
    record = {
        "versions": {"jax": "1.2"},
        "programs": {"sum": columns | columns_of_sum, "columns": {key: {} for key in columns}},
    }
    (folder / "99.json").write_text(json.dumps(record))


def test_only_the_cpu_column_is_compiled(programs, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler_comparison, "RECORDS", tmp_path)
    write_record(tmp_path)
    comparison = compiler_comparison.compare_compilers("99", programs)
    assert comparison.bytes_sent["sum"]["CPU"] == SUM
    assert str(comparison).splitlines() == [
        "bytes each device sends   CPU                  8 H100s        TPU v5e 2x4",
        "sum                       all-reduce 229,376   all-reduce 3   all-gather 4",
        "                                                              + all-to-all 5",
        "columns                   nothing              nothing        nothing",
        "",
        "Recorded with jax 1.2; compiled only, not run.",
        "For the CPU, this machine's JAX sends the same bytes.",
        "To compile again, on Linux: make check-costs LESSONS=99",
    ]


def test_an_outdated_record_is_refused(programs, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler_comparison, "RECORDS", tmp_path)
    write_record(tmp_path, CPU={"all-reduce": 7})
    with pytest.raises(ValueError, match="'sum', which now sends all-reduce 229,376 on the CPU: the program has"):
        compiler_comparison.compare_compilers("99", programs)
    with pytest.raises(ValueError, match="has nothing for 'new'"):
        compiler_comparison.compare_compilers("99", {"new": programs["sum"]})


def test_only_live_programs_are_compiled(programs, monkeypatch, tmp_path):
    """Test that only the programs in `compile_here` are compiled.

    The record's CPU column is wrong for the program `sum`, but only compiling this program reveals the error.
    """
    monkeypatch.setattr(compiler_comparison, "RECORDS", tmp_path)
    write_record(tmp_path, CPU={"all-reduce": 7})
    comparison = compiler_comparison.compare_compilers("99", programs, compile_here=["columns"])
    assert comparison.bytes_sent["sum"]["CPU"] == {"all-reduce": 7}
    assert "\nFor the CPU, this machine's JAX sends the same bytes in columns.\n" in comparison.note
    with pytest.raises(ValueError, match="the program has changed"):
        compiler_comparison.compare_compilers("99", programs, compile_here=["sum"])


def test_a_table_has_a_column_for_each_kind_and_for_the_temporaries(programs, monkeypatch, tmp_path):
    monkeypatch.setattr(compiler_comparison, "RECORDS", tmp_path)
    write_record(tmp_path, CPU=SUM | {"temporaries": 3}, **{"8 H100s": {"temporaries": 25}})
    comparison = compiler_comparison.compare_compilers("99", {"sum": programs["sum"]}, temporaries=True)
    assert comparison.as_table("parts", SUM["all-reduce"] / 2, temporaries=10).splitlines()[:4] == [
        "parts   compiler      all-gather   all-reduce   all-to-all   all    temporaries",
        "sum     CPU           -            2.00         -            2.00   0.3",
        "        8 H100s       -            -            -            -      2.5",
        "        TPU v5e 2x4   0.00         -            0.00         0.00   0.0",
    ]
    assert compiler_comparison.compile_for(["CPU"], *programs["sum"], True)["CPU"].keys() == {
        "all-reduce",
        "temporaries",
    }


@pytest.mark.skipif(
    jax.__version_info__ < (0, 10) or not importlib.util.find_spec("libtpu"),
    reason="needs libtpu, and a JAX that can compile for absent devices",
)
def test_cpu_and_aot_compilers_send_the_same_bytes(programs):
    assert compiler_comparison.compile_for(["TPU v5e 2x4"], *programs["sum"]) == {"TPU v5e 2x4": SUM}


@pytest.mark.parametrize("lesson", record_costs.lessons_with_costs())
def test_a_record_contains_versions_and_every_column(lesson):
    """Test the record's contents, except for its numbers, which the lessons and the weekly run check."""
    record = json.loads((compiler_comparison.RECORDS / f"{lesson}.json").read_text(encoding="utf-8"))
    assert set(record["versions"]) == {"jax", "jax-cuda12-plugin", "libtpu"}
    assert all(set(columns) == set(compiler_comparison.TARGETS) for columns in record["programs"].values())


def test_the_check_reports_changed_bytes_but_not_temporaries():
    recorded = {"sum": {"CPU": SUM | {"temporaries": 3}}, "removed": {"CPU": {}}}
    assert record_costs.changed_programs(recorded, {"sum": {"CPU": SUM | {"temporaries": 4}}}) == ["removed"]
    more = {"all-reduce": SUM["all-reduce"] + 1}
    assert record_costs.changed_programs(recorded, {"sum": {"CPU": more}, "new": {}}) == ["sum", "removed", "new"]


def test_each_of_several_lessons_is_compiled_in_its_own_process(monkeypatch):
    # In one process, lesson 03 failed because of the mesh that lesson 02 had set.
    commands = []

    def run(command):
        commands.append(command[3:])
        return subprocess.CompletedProcess(command, returncode=int(command[-1] == "14"))

    monkeypatch.setattr(sys, "argv", ["record_costs", "--check", "02", "14"])
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit, match=r"Failed for 14 \(see above\)"):
        record_costs.main()
    assert commands == [["--check", "02"], ["--check", "14"]]


def test_a_cells_functions_can_be_sent_to_other_processes():
    sources = {"define": "def square(x):\n    return x * x\n", "use": "source = standalone_source(square, [three])\n"}
    names = record_costs.execute(sources, three=3, standalone_source=standalone_source)
    assert names["source"] == "def square(x):\n    return x * x\n\n\nsquare(3)\n"
