"""Test a report's tables, totals and source lines, and the comparison of two programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from programs import TWO, make_mesh, plan
from shardcost import assert_cost, cost


def sums(t):
    return t.sum(0)


def test_as_text_and_as_html():
    mesh = make_mesh(*TWO)
    report = cost(sums, plan(mesh, (4, 8), "x", "y"))
    assert repr(report).splitlines()[:2] == [
        "collective   along   operand   result   times   bytes sent",
        "all-reduce   x       f32[2]    f32[2]       1            8",
    ]
    assert "the busiest device sends 8 bytes; each device computes 0 FLOPs in matrix products" in repr(report)
    assert "memory per device: 16 bytes of arguments, 8 of results, " in repr(report)
    assert str(report) == "all-reduce over x · sends 8 bytes"
    assert report.by_device() == [8] * 8
    assert report.steps() == 2  # in a group of two, an all-reduce takes one step to reduce and one to gather
    assert "<td style='text-align:left'>all-reduce</td>" in report._repr_html_()
    assert repr(cost(lambda t: t + 1, plan(mesh, (4, 8), "x", "y"))).startswith("no communication\n")
    assert cost(lambda t: t + 1, plan(mesh, (4, 8), "x", "y"))._repr_html_().startswith("<p>no communication</p>")


def test_totals_by_kind_axis_and_source():
    """Check the totals of a gather over x, a sum over y, and a permute along each axis.

    The gather sends a device's (4, 4) float32 shard, which takes up 64 bytes. The sum of the (8, 4) result over y sends
    2 (3/4) 128 bytes. Both permutes send 128 bytes, but only half of the devices send any along y.
    """
    mesh = make_mesh(*TWO)

    def f(t):
        t = lax.psum(lax.all_gather(t, "x", tiled=True), "y")
        return lax.ppermute(lax.ppermute(t, "x", [(0, 1), (1, 0)]), "y", [(0, 1), (1, 0)])

    report = cost(
        jax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False), plan(mesh, (8, 16), "x", "y")
    )
    assert report.by_kind() == {"all-gather": 64, "all-reduce": 192, "collective-permute": 256}
    assert report.by_axis() == {"x": 64 + 128, "y": 192 + 128}
    assert report.counts() == {"all-gather": 1, "all-reduce": 1, "collective-permute": 2}
    assert report.bytes_sent == 512
    assert (report.input_bytes, report.output_bytes) == (64 + 128 + 128 + 128, 128 + 128 + 128 + 128)
    line = f.__code__.co_firstlineno
    by_source = {source.rpartition("/")[2]: sent for source, sent in report.by_source().items()}
    assert by_source == {f"test_report.py:{line + 1}": 256, f"test_report.py:{line + 2}": 256}
    [gather] = report.by_source("all-gather").values()
    assert gather == 64
    assert cost(lambda t: t + 1, plan(mesh, (8, 16))).by_axis() == {}


def two_layers(x, w1, w2):
    h = jax.nn.relu(x @ w1)
    return h @ w2


def test_source_lines():
    """Test that gathers of weights are attributed to the lines that use the weights.

    The weights are sharded over x, and the partial sums of the second product are added up over y.
    """
    mesh = make_mesh(*TWO)
    weights = plan(mesh, (128, 512), "x", "y"), plan(mesh, (512, 128), "y", "x")
    report = cost(two_layers, plan(mesh, (64, 128), "x"), *weights)
    first, second = "h = jax.nn.relu(x @ w1)", "return h @ w2"
    line = two_layers.__code__.co_firstlineno
    assert sorted(
        (kind, operation, source.rpartition("/")[2]) for kind, _, _, operation, source in report.sources()
    ) == [
        ("all-gather", "dot_general", f"test_report.py:{line + 1}: {first}"),
        ("all-gather", "dot_general", f"test_report.py:{line + 2}: {second}"),
        ("all-reduce", "dot_general", f"test_report.py:{line + 2}: {second}"),
    ]
    gradient = cost(jax.grad(lambda *a: two_layers(*a).sum(), (1, 2)), plan(mesh, (64, 128), "x"), *weights)
    over_x = {
        (kind, operation, source.partition(": ")[2])
        for kind, axes, _, operation, source in gradient.sources()
        if axes == "x"
    }
    assert ("all-reduce", "dot_general, backward", first) in over_x
    [reduction] = cost(sums, plan(mesh, (4, 8), "x", "y"))
    assert reduction.source and reduction.source.operation == "reduce_sum"
    assert reduction.source.file.endswith("test_report.py")
    assert reduction.source.code == "return t.sum(0)"


def test_a_gather_hoisted_from_a_loop_belongs_to_the_line_in_the_loop():
    """Test that the gather is attributed to the product, whether or not the compiler hoists the gather."""

    def body(x, _):
        return jnp.tanh(x @ w), None

    def f(w_, x):
        nonlocal w
        w = w_
        return lax.scan(body, x, None, length=5)[0]

    w = None
    mesh = make_mesh((8,), ("x",))
    report = cost(f, plan(mesh, (512, 512), "x"), plan(mesh, (64, 512), "x"))
    [source] = report.by_source("all-gather")
    assert source.endswith(f"test_report.py:{body.__code__.co_firstlineno + 1}")


def test_source_lines_in_a_notebook_cell():
    """Test that the report identifies a cell's line by its code, because cells have meaningless file names."""
    mesh = make_mesh(*TWO)
    cell = "/tmp/ipykernel_123/456.py"
    names: dict = {}
    exec(compile("def f(t):\n    return t.sum(0)", cell, "exec"), names)
    import linecache

    linecache.cache[cell] = (30, None, ["def f(t):\n", "    return t.sum(0)\n"], cell)  # as IPython does
    report = cost(names["f"], plan(mesh, (4, 8), "x"))
    assert report.by_source() == {"return t.sum(0)": 32}
    assert report.sources()[0][-1] == "return t.sum(0)"


def test_source_lines_as_a_table(capsys):
    cost(sums, plan(make_mesh(*TWO), (4, 8), "x", "y")).print_sources()
    header, row = capsys.readouterr().out.splitlines()
    assert header.split("   ")[:3] == ["collective", "along", "bytes sent"]
    assert row.startswith("all-reduce   x                8   reduce_sum   ")
    assert row.endswith(f"test_report.py:{sums.__code__.co_firstlineno + 1}: return t.sum(0)")


# Tests of the comparison of two programs.


def test_a_comparison():
    """Compare two programs that sum 128 bytes over 8 devices, which sends 2 (7/8) 128 bytes.

    The second program also gathers these bytes, which sends 7 x 128 bytes.
    """
    mesh = make_mesh((8,), ("x",))

    def before(t):
        return lax.psum(t, "x")

    def after(t):
        return lax.psum(t, "x") + lax.all_gather(t, "x")[0] @ jnp.ones((4, 4))

    argument = plan(mesh, (64, 4), "x")
    one, two = (
        cost(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False), argument)
        for f in (before, after)
    )
    change = one.compare(two)
    assert change.rows() == [("all-gather", "x", "0 -> 1", "0 -> 896", "+896")]
    assert "bytes sent by the busiest device: 224 -> 1,120" in repr(change)
    assert "FLOPs in matrix products per device: 0 -> 256" in repr(change)
    assert (
        f"test_report.py:{after.__code__.co_firstlineno + 1}: "
        in repr(change).partition("new in the second program:")[2]
    )
    assert change and not one.compare(one)
    assert repr(one.compare(one)).startswith("the same collectives\n")


# Tests of assert_cost.


def test_a_cost_as_expected():
    argument = plan(make_mesh(*TWO), (4, 8), "x", "y")
    report = assert_cost(sums, argument, collectives={"all-reduce": 1}, bytes_sent=8, max_bytes_sent=8, flops=0)
    assert assert_cost(report, collectives={"all-reduce": 1, "all-gather": 0}) is report
    assert report.memory
    assert_cost(report, max_peak_memory=report.memory.peak)
    assert_cost(lambda t: t + 1, argument, collectives={})


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"collectives": {}}, "collectives: expected {}, counted {'all-reduce': 1}"),
        ({"collectives": {"all-reduce": 2}}, "collectives: expected {'all-reduce': 2}, counted {'all-reduce': 1}"),
        ({"bytes_sent": 7_168}, "bytes sent by the busiest device: expected 7,168, counted 8"),
        ({"max_bytes_sent": 7}, "bytes sent by the busiest device: at most 7 expected, counted 8"),
        ({"flops": 10}, "FLOPs in matrix products: expected 10, counted 0"),
        ({"max_peak_memory": 5}, "peak memory: at most 5 expected, planned "),
    ],
)
def test_an_unexpected_cost_shows_the_table_and_the_line(expected, message):
    with pytest.raises(AssertionError) as error:
        assert_cost(sums, plan(make_mesh(*TWO), (4, 8), "x", "y"), **expected)
    text = str(error.value)
    assert text.startswith(message)
    assert "all-reduce   x       f32[2]    f32[2]       1            8" in text
    assert f"test_report.py:{sums.__code__.co_firstlineno + 1}: return t.sum(0)" in text


def test_loop_iterations_count():
    def f(t):
        return lax.scan(lambda t, _: (t - lax.pmean(t, "x"), None), t, None, length=3)[0]

    mesh = make_mesh((8,), ("x",))
    g = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert_cost(g, plan(mesh, (8,), "x"), collectives={"all-reduce": 3})


def test_a_misspelt_kind_or_measure_is_an_error():
    """Test that a misspelt name is refused, because an empty result would satisfy most tests."""
    report = cost(sums, plan(make_mesh(*TWO), (4, 8), "x", "y"))
    with pytest.raises(ValueError, match="the kind 'all_gather': pass one of all-reduce, all-gather,"):
        report.by_source("all_gather")
    with pytest.raises(ValueError, match="the measure 'outputs': pass one of bytes_sent, input_bytes, output_bytes"):
        report.by_kind("outputs")
    with pytest.raises(TypeError, match=r"collectives=\['all-reduce'\]: pass counts by kind"):
        assert_cost(report, collectives=["all-reduce"])


def test_nothing_to_check_is_an_error():
    with pytest.raises(TypeError, match="needs something to check"):
        assert_cost(sums, jnp.ones(4))


# The package needs only Python's standard library.


def test_only_the_standard_library_is_imported():
    source = Path(__file__).parents[1] / "src"
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); before = set(sys.modules)\n"
        "import shardcost, shardcost.cli, shardcost.targets\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before} - {'shardcost'}\n"
        "print(sorted(new - sys.stdlib_module_names))"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")
