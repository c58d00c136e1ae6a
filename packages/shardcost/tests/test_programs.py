"""Check `cost` on programs compiled for CPUs against manually calculated costs (see programs.py)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from programs import PROGRAMS, TWO, counted, make_mesh, manual, plan
from shardcost import UnsupportedHloError, cost


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_a_manual_calculation(name):
    mesh, build, collectives, flops = PROGRAMS[name]
    program, *arguments = build(make_mesh(*mesh))
    report = cost(program, *arguments)
    assert sorted(counted(report)) == sorted(collectives)
    assert report.flops == flops
    assert report.devices == 8
    assert report.bytes_sent == sum(sent for *_, sent in collectives)
    assert report.unknown == ()


def test_the_cpu_sends_bfloat16_as_float32():
    # Each device sums its (256, 128) shard to 128 elements. In bfloat16, they'd take up 256 bytes, but the CPU compiler
    # sends them as float32, which takes up 512.
    report = cost(lambda t: t.sum(0), plan(make_mesh(*TWO), (512, 512), "x", "y", dtype=jnp.bfloat16))
    assert counted(report) == [("all-reduce", "x", 1, 512)]
    assert report.collectives[0].operands == (("f32", (128,)),)


def test_a_transposed_layout_in_groups_of_half_an_axis():
    # An (8, 8) array changes from P('y', 'x') to P('x', 'y'), so shards of (2, 4) become (4, 2). The compiler exchanges
    # half of each 32-byte shard within pairs of devices, and then sends the shards of four devices to the devices that
    # store them in the result.
    mesh = make_mesh(*TWO)
    target = NamedSharding(mesh, P("x", "y"))
    report = cost(jax.jit(lambda t: t + 1, out_shardings=target), plan(mesh, (8, 8), "y", "x"))
    assert [(c.kind, c.group_size, c.bytes_sent) for c in report] == [
        ("all-to-all", 2, 16),
        ("collective-permute", 2, 32),
    ]
    assert report.bytes_sent == 48


def test_a_convolution():
    # Each device convolves 4 of the 8 images, from 16 channels to 16, with a 3 x 3 kernel on 32 x 32 pixels. Products
    # with the zero padding don't count, so each side has 3 x 32 - 2 = 94 pairs of an output and a kernel position.
    mesh = make_mesh(*TWO)
    report = cost(
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"), plan(mesh, (8, 16, 32, 32), "x"), plan(mesh, (16, 16, 3, 3))
    )
    assert report.flops == 2 * 4 * 16 * 16 * 94 * 94


def test_a_convolution_with_strides_and_dilations():
    """Check the FLOPs by counting, in a loop, the pairs of an output and a kernel position that read an input."""
    x, w = jax.ShapeDtypeStruct((2, 3, 19, 16), jnp.float32), jax.ShapeDtypeStruct((5, 3, 4, 3), jnp.float32)
    strides, pads, spread = (2, 3), [(1, 2), (3, 0)], (1, 2)

    def f(x, w):
        return lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=spread)

    pairs = 1
    for i, (size, kernel) in enumerate(((19, 4), (16, 3))):
        outputs = (size + sum(pads[i]) - (kernel - 1) * spread[i] - 1) // strides[i] + 1
        positions = [o * strides[i] + k * spread[i] - pads[i][0] for o in range(outputs) for k in range(kernel)]
        pairs *= sum(0 <= position < size for position in positions)
    assert cost(f, x, w).flops == 2 * 2 * 3 * 5 * pairs


def test_pmap():
    x = np.ones((8, 16), np.float32)
    report = cost(jax.pmap(lambda t: lax.psum(t, "i"), axis_name="i"), x)
    assert [(c.kind, c.group_size, c.bytes_sent) for c in report] == [("all-reduce", 8, 2 * 7 * 64 // 8)]


def test_memory_and_donation():
    mesh = make_mesh(*TWO)
    argument = plan(mesh, (64, 64), "x", "y")  # each device's shard is (32, 16), or 2,048 bytes
    plain = cost(jax.jit(lambda t: t + 1), argument).memory
    donated = cost(jax.jit(lambda t: t + 1, donate_argnums=0), argument).memory
    assert plain and donated
    assert (plain.arguments, plain.outputs, plain.donated, plain.total) == (2_048, 2_048, 0, 4_096 + plain.temporaries)
    assert (donated.arguments, donated.donated, donated.total) == (2_048, 2_048, 2_048 + donated.temporaries)
    assert plain.peak >= 4_096 > donated.peak >= 2_048


def test_senders_of_a_permute():
    mesh, build, *_ = PROGRAMS["ppermute, some left out"]
    program, *arguments = build(make_mesh(*mesh))
    [permute] = cost(program, *arguments)
    assert permute.groups == ((0, 1), (1, 2), (4, 5), (5, 6))
    assert (permute.bytes_sent, permute.senders) == (16_384, {0, 1, 4, 5})
    assert permute.participants == {0, 1, 2, 4, 5, 6}


def test_groups_are_positions_in_the_mesh():
    order = [0, 1, 2, 3, 6, 7, 4, 5]
    mesh = Mesh(np.array(jax.devices())[order].reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    [collective] = cost(lambda t: t.sum(1), plan(mesh, (8, 8), "x", "y"))
    assert collective.groups == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_a_function_and_its_lowered_and_compiled_forms_cost_the_same():
    mesh = make_mesh(*TWO)
    a = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("x", "y")))
    f = jax.jit(lambda p: p @ p)
    reports = [cost(f, a), cost(lambda p: p @ p, a), cost(f.lower(a)), cost(f.lower(a).compile())]
    assert {(report.bytes_sent, report.flops, len(report)) for report in reports} == {(8_192, 65_536, 2)}
    assert {report.axes for report in reports} == {(("x", 2), ("y", 4))}
    assert {tuple(report.rows()) for report in reports} == {tuple(reports[0].rows())}
    with pytest.raises(TypeError, match="without arguments"):
        cost(f.lower(a), a)


def test_complex_products():
    """Test a product of 32 x 128 x 64 complex multiply-adds per device, each with 4 real products and 4 additions."""
    mesh = make_mesh(*TWO)
    arguments = plan(mesh, (64, 128), "x", dtype=jnp.complex64), plan(mesh, (128, 64), dtype=jnp.complex64)
    assert cost(lambda p, q: p @ q, *arguments).flops == 8 * 32 * 128 * 64


def test_jax_debug_is_not_counted():
    def f(t):
        total = t.sum(0)
        jax.debug.print("{}", total[0])
        return total

    report = cost(f, plan(make_mesh(*TWO), (4, 8), "x"))
    assert counted(report) == [("all-reduce", "x", 1, 32)]


# Loops and branches.


# With so many arrays of so many dimensions, the loop's line in the program text has 4,000 characters before its opcode.
MANY = [(8, 1, 1, 1, 1, 1)] * 140


def loop_over_many(mesh):
    """Return a program with a loop of three iterations that sum all arrays of MANY over d, and its arguments."""

    def f(arrays):
        def body(arrays, _):
            return [t - total for t, total in zip(arrays, lax.pmean(arrays, "d"), strict=True)], None

        return lax.scan(body, arrays, None, length=3)[0]

    return manual(mesh, f, P("d")), [plan(mesh, shape, "d") for shape in MANY]


def test_a_loop_over_very_many_arrays():
    """Test that three sums of 140 shards of 4 bytes over 8 devices send 3 x 140 x 2 (7/8) 4 bytes per device."""
    assert cost(*loop_over_many(make_mesh((8,), ("d",)))).bytes_sent == 2_940


def while_loop(step, test, start=0):
    """Return a builder for a loop whose counter starts at `start` and is updated by `step` while `test` is true.

    Each iteration sums an (8,) float32 shard over 8 devices, which sends 2 (7/8) 32 = 56 bytes.
    """

    def build(mesh):
        def body(carried):
            i, t = carried
            t = t - lax.pmean(t, "d")
            return step(i, t), jnp.sin(t)

        def f(t):
            return lax.while_loop(lambda carried: test(carried[0]), body, (jnp.int32(start), t))[1]

        g = jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)
        return g, plan(mesh, (64,), "d")

    return build


@pytest.mark.parametrize(
    ("loop", "iterations"),
    [
        (while_loop(lambda i, t: i + 3, lambda i: i < 20), 7),  # 0, 3, ... 18
        (while_loop(lambda i, t: i - 3, lambda i: i > 0, 20), 7),  # 20, 17, ... 2
        (while_loop(lambda i, t: i + 2, lambda i: i != 20), 10),
        (while_loop(lambda i, t: i + 2, lambda i: 2 * i <= 12), 4),  # 0, 2, 4, 6
    ],
    ids=["by three", "down", "not equal", "twice the counter"],
)
def test_a_loop_whose_trip_count_can_be_derived(loop, iterations):
    f, argument = loop(make_mesh((8,), ("d",)))
    assert counted(cost(f, argument)) == [("all-reduce", "d", iterations, iterations * 56)]


def halve_twice(t):
    t = lax.while_loop(lambda t: t.sum() > 1, lambda t: t / 2, t)
    return lax.while_loop(lambda t: t.sum() > 9, lambda t: t / 4, t)


FIRST, SECOND = (f"test_programs.py:{halve_twice.__code__.co_firstlineno + i}" for i in (1, 2))


def test_trip_counts_given_by_the_user():
    """Test loops whose condition sums 4 bytes in pairs of devices, and runs once more than the loop's body."""
    argument = plan(make_mesh(*TWO), (64,), "x")
    report = cost(halve_twice, argument, trip_counts=5)
    assert counted(report) == [("all-reduce", "x", 6, 6 * 4)] * 2
    report = cost(halve_twice, argument, trip_counts={FIRST: 5, SECOND: 2})
    assert sorted(counted(report)) == [("all-reduce", "x", 3, 3 * 4), ("all-reduce", "x", 6, 6 * 4)]
    assert "counted with 2 iterations of the loop at" in repr(report) or "5 iterations of the loop at" in repr(report)
    assert repr(report).endswith(", as you specified")


def test_wrong_trip_counts_are_refused():
    argument = plan(make_mesh(*TWO), (64,), "x")
    with pytest.raises(
        UnsupportedHloError, match=rf"all-reduce in the loop at .*{SECOND}, .* trip_counts={{'.*{SECOND}': n}}"
    ):
        cost(halve_twice, argument, trip_counts={FIRST: 5})
    with pytest.raises(ValueError, match=rf"trip_counts names 'other.py:1', .* counts are at: .*{FIRST}, .*{SECOND}$"):
        cost(halve_twice, argument, trip_counts={FIRST: 5, SECOND: 5, "other.py:1": 5})
    with pytest.raises(ValueError, match="an integer of at least 0"):
        cost(halve_twice, argument, trip_counts=-1)


def test_without_strict_the_rest_is_counted():
    def f(t):
        return halve_twice(t - t.sum(0))

    report = cost(f, plan(make_mesh(*TWO), (64, 2), "x"), strict=False)
    assert counted(report) == [("all-reduce", "x", 1, 8)]
    assert [message.split(", whose")[0].rpartition("/")[2] for message in report.unknown] != []
    assert len(report.unknown) == 2 and all("all-reduce in the loop at" in message for message in report.unknown)
    assert "not counted: all-reduce in the loop at" in repr(report)
    assert str(report).endswith(" · 2 not counted")


def test_the_most_expensive_branch():
    """Test that the most FLOPs and the most bytes may come from different branches.

    One branch multiplies (32, 32) matrices (65,536 FLOPs), another sums 4,096 bytes over x, and a third sums
    half as many.
    """
    mesh = make_mesh((8,), ("x",))

    def f(which, t):
        def half(t):
            return t.at[:16].set(lax.psum(t[:16], "x"))

        return lax.switch(which, [lambda t: t @ t, lambda t: lax.psum(t, "x"), half], t)

    g = jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=False)
    which = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, P()))
    report = cost(g, which, plan(mesh, (256, 32), "x"), branches="max")
    assert counted(report) == [("all-reduce", "x", 1, 2 * 7 * 4_096 // 8)]
    assert report.flops == 65_536
    assert "counted with the most expensive branch of the conditional at " in repr(report)
    with pytest.raises(ValueError, match='pass "max" or None'):
        cost(g, which, plan(mesh, (256, 32), "x"), branches="cheapest")  # type: ignore[arg-type]


# A construct that can't be counted raises an error that names it, unless its cost is known to be zero.


def test_an_endless_loop_without_communication_is_fine():
    def f(x):
        return lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (100.0, x))[1]

    assert len(cost(f, plan(make_mesh(*TWO), (64,), "x"))) == 0


def test_communication_in_a_branch():
    mesh = make_mesh(*TWO)

    def f(flag, x):
        return lax.cond(flag, lambda x: lax.psum(x, "x"), lambda x: lax.pmax(x, "x"), x)

    g = jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)
    flag = jax.ShapeDtypeStruct((), jnp.bool_, sharding=NamedSharding(mesh, P()))
    with pytest.raises(UnsupportedHloError, match=r"all-reduce in a branch of the conditional at .*branches='max'"):
        cost(g, flag, plan(mesh, (64,), "x"))


def test_python_on_the_host():
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    with pytest.raises(UnsupportedHloError, match="pure_callback, which runs Python code on the host"):
        cost(lambda t: jax.pure_callback(np.sin, x, t), x)
