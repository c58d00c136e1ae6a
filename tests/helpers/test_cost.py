"""The counter against answers worked out by hand, on the CPU and (where libtpu is installed) for a TPU v5e-8.

Unless said otherwise: float32, 4 bytes; the mesh is 2 x 4, named x and y; b bytes in a group of n send, per device,
2 (n-1)/n b in an all-reduce, (n-1) b in an all-gather, (n-1)/n b in a reduce-scatter or an all-to-all, b in a permute.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from utils.count import cost as counter
from utils.count import hlo
from utils.count.cost import cost
from utils.count.hlo import UnknownConstruct
from utils.mesh import make_mesh

TWO = ((2, 4), ("x", "y"))
THREE = ((2, 2, 2), ("x", "y", "z"))
GRID = ((4, 2), ("batch", "features"))


def plan(mesh, shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def manual(mesh, function, spec, out=None):
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec if out is None else out)


def column_sums(*out):
    def build(mesh):
        f = jax.jit(lambda t: t.sum(0), out_shardings=NamedSharding(mesh, P(*out)) if out else None)
        return f, plan(mesh, (4, 8), "x", "y")

    return build


def product(a, b, n=64):
    return lambda mesh: (lambda p, q: p @ q, plan(mesh, (n, n), *a), plan(mesh, (n, n), *b))


def descent(rounds, outer=None):
    """w <- w - x.T @ (x @ w), x of (64, 16) cut by rows in two: an all-reduce of (16, 16) each round."""

    def build(mesh):
        def loop(w, x, n=rounds):
            return lax.scan(lambda w, _: (w - 0.1 * (x.T @ (x @ w)), None), w, None, length=n)[0]

        def twice(w, x):
            return lax.scan(lambda w, _: (loop(w, x), None), w, None, length=outer)[0]

        return (twice if outer else loop), plan(mesh, (16, 16)), plan(mesh, (64, 16), "x")

    return build


def mlp(mesh):
    f = lambda x, w1, w2: jax.nn.relu(x @ w1) @ w2  # noqa: E731
    return f, plan(mesh, (16, 64), "x"), plan(mesh, (64, 128), None, "y"), plan(mesh, (128, 64), "y")


def gradients(mesh):
    loss = lambda p, x: jnp.tanh(jnp.tanh(x @ p["a"] + p["b"]) @ p["c"]).sum()  # noqa: E731
    p = {"a": plan(mesh, (64, 32)), "b": plan(mesh, (32,)), "c": plan(mesh, (32, 8))}
    return jax.grad(loss), p, plan(mesh, (256, 64), ("x", "y"))


def collective(function, *spec, out=None, shape=(128, 128), dtype=jnp.float32):
    def build(mesh):
        return manual(mesh, function, P(*spec), out), plan(mesh, shape, *spec, dtype=dtype)

    return build


def bounded_while(mesh):
    def f(x):
        return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] - c[1].mean()), (0, x))[1]

    return f, plan(mesh, (64,), "x")


# name: (mesh, program, [(kind, along, times, bytes that each device sends)], FLOPs in products on each device)
PROGRAMS = {
    # 4 x 8 cut 2 x 4: each device sums its (2, 2) to 2 numbers, 8 bytes, with one partner: 2 (1/2) 8.
    "column sums": (TWO, column_sums(), [("all-reduce", "x", 1, 8)], 0),
    # ... then each of the 8 numbers has to stand on one device, in the order of ('x', 'y'): 1 number moves.
    "column sums over x, y": (TWO, column_sums(("x", "y")), [("all-reduce", "x", 1, 8), ("collective-permute", "8 pairs", 1, 4)], 0),
    "column sums over y, x": (TWO, column_sums(("y", "x")), [("all-reduce", "x", 1, 8)], 0),
    # Products of 64 x 64: 2 x 64^3 = 524,288 FLOPs, over the devices among which the work is cut.
    "product, rows by columns": (TWO, product(("x", None), (None, "y")), [], 524_288 // 8),
    # Each device adds up a half of the contraction: a whole (64, 64), 16,384 bytes, with one partner.
    "product, inner by inner": (TWO, product((None, "x"), ("x", None)), [("all-reduce", "x", 1, 16_384)], 524_288 // 2),
    # (32, 16) of a from 3 others in y: 3 x 2,048; (32, 16) of b from 1 other in x.
    "product, both by both": (TWO, product(("x", "y"), ("x", "y")), [("all-gather", "x", 1, 2_048), ("all-gather", "y", 1, 6_144)], 524_288 // 8),
    # The compiler moves 16 of 32 rows of b, (16, 64), then adds up (32, 64) over y: 2 (3/4) 8,192.
    "product, rows by rows": (TWO, product(("x", None), ("x", None)), [("collective-permute", "8 pairs", 1, 4_096), ("all-reduce", "y", 1, 12_288)], 524_288 // 8),
    "product, both by inner": (TWO, product(("x", "y"), ("y", None)), [("all-reduce", "y", 1, 12_288)], 524_288 // 8),
    "product, both by replicated": (TWO, product(("x", "y"), ()), [("all-gather", "y", 1, 6_144)], 524_288 // 2),
    "product, replicated": (TWO, product((), ()), [], 524_288),
    # 8 of 16 products on each device, 2 x 128 x 64 x 128 FLOPs each.
    "products in a batch": (TWO, lambda mesh: (lambda p, q: p @ q, plan(mesh, (16, 128, 64), "x"), plan(mesh, (16, 64, 128), "x")), [], 16_777_216),
    # vmap(dot) of (8, 16) cut 4 x 2: 2 rows, 2 numbers, 8 bytes, one partner. (Products of vectors are not counted.)
    "vmap dot": (GRID, lambda mesh: (jax.vmap(jnp.dot), *[plan(mesh, (8, 16), "batch", "features")] * 2), [("all-reduce", "features", 1, 8)], 0),
    # (8, 64) of partial sums, 2,048 bytes over y: 2 (3/4) 2,048. 2 products of 8 x 64 x 32.
    "two-layer MLP": (TWO, mlp, [("all-reduce", "y", 1, 3_072)], 2 * 2 * 8 * 64 * 32),
    # 7 rounds of 1,024 bytes with one partner; 2 products of 32 x 16 x 16 a round.
    "scan": (TWO, descent(7), [("all-reduce", "x", 7, 7 * 1_024)], 7 * 2 * 2 * 32 * 16 * 16),
    "scan in scan": (TWO, descent(7, 3), [("all-reduce", "x", 21, 21 * 1_024)], 21 * 2 * 2 * 32 * 16 * 16),
    "counted while": (TWO, bounded_while, [("all-reduce", "x", 5, 5 * 4)], 0),
    # One all-reduce of a tuple of 2,048 + 32 + 256 numbers, 9,344 bytes, over 8 devices: 2 (7/8) 9,344.
    "gradients, a tuple": (TWO, gradients, [("all-reduce", "x, y", 1, 16_352)], 2 * 2 * 32 * 64 * 32 + 3 * 2 * 32 * 32 * 8),
    # Manual collectives on shards of (32, 128), 16,384 bytes (cut by y) or (64, 128), 32,768 (cut by x).
    "psum over y": (TWO, collective(lambda t: lax.psum(t, "y"), "y", out=P()), [("all-reduce", "y", 1, 24_576)], 0),
    "psum over x": (TWO, collective(lambda t: lax.psum(t, "x"), "x", out=P()), [("all-reduce", "x", 1, 32_768)], 0),
    "psum over both": (TWO, collective(lambda t: lax.psum(t, ("x", "y")), ("x", "y"), out=P()), [("all-reduce", "x, y", 1, 14_336)], 0),
    "all_gather over y": (TWO, collective(lambda t: lax.all_gather(t, "y", tiled=True).sum(0), "y", out=P("y")), [("all-gather", "y", 1, 3 * 16_384)], 0),
    "psum_scatter over y": (TWO, collective(lambda t: lax.psum_scatter(t, "y", tiled=True), "y"), [("reduce-scatter", "y", 1, 12_288)], 0),
    "all_to_all over y": (TWO, collective(lambda t: lax.all_to_all(t, "y", 1, 0, tiled=True), "y"), [("all-to-all", "y", 1, 12_288)], 0),
    "ppermute, ring": (TWO, collective(lambda t: lax.ppermute(t, "y", [(i, (i + 1) % 4) for i in range(4)]), "y"), [("collective-permute", "8 pairs", 1, 16_384)], 0),
    "ppermute, some left out": (TWO, collective(lambda t: lax.ppermute(t, "y", [(0, 1), (1, 2)]), "y"), [("collective-permute", "4 pairs", 1, 16_384)], 0),
    # 2 x 2 x 2: shards of (64, 128) along one axis, (32, 128) along two.
    "2x2x2, psum over x": (THREE, collective(lambda t: lax.psum(t, "x"), "x", out=P()), [("all-reduce", "x", 1, 32_768)], 0),
    "2x2x2, psum over z": (THREE, collective(lambda t: lax.psum(t, "z"), "z", out=P()), [("all-reduce", "z", 1, 32_768)], 0),
    "2x2x2, psum over x and z": (THREE, collective(lambda t: lax.psum(t, ("x", "z")), ("x", "z"), out=P()), [("all-reduce", "x, z", 1, 24_576)], 0),
    "2x2x2, psum_scatter over y and z": (THREE, collective(lambda t: lax.psum_scatter(t, ("y", "z"), tiled=True), ("y", "z")), [("reduce-scatter", "y, z", 1, 12_288)], 0),
    "nothing to say": (TWO, lambda mesh: (lambda t: 2 * jnp.sin(t) + 1, plan(mesh, (64, 64), "x", "y")), [], 0),
}  # fmt: skip


def counted(found):
    return [(c.kind, found.along(c), c.times, c.bytes_sent) for c in found]


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_hand(name, devices):
    mesh, build, collectives, flops = PROGRAMS[name]
    program, *arguments = build(make_mesh(*mesh))
    found = cost(program, *arguments)
    assert sorted(counted(found)) == sorted(collectives)
    assert found.flops == flops
    assert found.devices == 8
    assert found.bytes_sent == sum(sent for *_, sent in collectives)


def test_bf16_is_widened_on_the_cpu():
    # (512, 512) cut 2 x 4: 128 sums. As bfloat16 256 bytes would travel; the CPU sends float32, 512.
    found = cost(lambda t: t.sum(0), plan(make_mesh(*TWO), (512, 512), "x", "y", dtype=jnp.bfloat16))
    assert counted(found) == [("all-reduce", "x", 1, 512)]
    assert found.collectives[0].operands == (("f32", (128,)),)


def test_a_transposed_layout_in_groups_of_half_an_axis():
    # (8, 8) from ('y', 'x') to ('x', 'y'): pieces of (2, 4) become (4, 2). By hand the device at (i, j) held rows
    # 2j, 2j + 1 and columns 4i to 4i + 3; whatever way is taken, at least the part it lacks arrives somewhere.
    mesh = make_mesh(*TWO)
    target = NamedSharding(mesh, P("x", "y"))
    found = cost(jax.jit(lambda t: t + 1, out_shardings=target), plan(mesh, (8, 8), "y", "x"))
    assert {c.group_size for c in found} == {2}
    assert found.bytes_sent >= 16


def test_a_convolution():
    # 4 of 8 images on each device, 16 by 16 features, 3 x 3 kernel on 32 x 32 with a border of zeros: along each side a
    # kernel of 3 meets 3 x 32 - 2 = 94 inputs.
    mesh = make_mesh(*TWO)
    found = cost(
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"), plan(mesh, (8, 16, 32, 32), "x"), plan(mesh, (16, 16, 3, 3))
    )
    assert found.flops == 2 * 4 * 16 * 16 * 94 * 94


def test_pmap():
    x = np.ones((8, 16), np.float32)
    found = cost(jax.pmap(lambda t: lax.psum(t, "i"), axis_name="i"), x)
    assert [(c.kind, c.group_size, c.bytes_sent) for c in found] == [("all-reduce", 8, 2 * 7 * 64 // 8)]


def test_memory_and_donation():
    mesh = make_mesh(*TWO)
    whole = plan(mesh, (64, 64), "x", "y")  # (32, 16) on each device: 2,048 bytes
    plain = cost(jax.jit(lambda t: t + 1), whole).memory
    donated = cost(jax.jit(lambda t: t + 1, donate_argnums=0), whole).memory
    assert (plain.arguments, plain.outputs, plain.donated, plain.total) == (2_048, 2_048, 0, 4_096 + plain.temporaries)
    assert (donated.arguments, donated.donated, donated.total) == (2_048, 2_048, 2_048 + donated.temporaries)


def test_who_sends_and_who_is_left_out():
    mesh, build, *_ = PROGRAMS["ppermute, some left out"]
    program, *arguments = build(make_mesh(*mesh))
    [permute] = cost(program, *arguments)
    assert permute.groups == ((0, 1), (1, 2), (4, 5), (5, 6))
    assert [permute.sent_by(device) for device in range(8)] == [16_384, 16_384, 0, 0] * 2


def test_members_are_places_in_the_mesh(devices):
    order = [0, 1, 2, 3, 6, 7, 4, 5]
    mesh = Mesh(np.array(devices)[order].reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    [found] = cost(lambda t: t.sum(1), plan(mesh, (8, 8), "x", "y"))
    assert found.groups == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_arrays_lowered_and_compiled_are_the_same():
    mesh = make_mesh(*TWO)
    a = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("x", "y")))
    f = jax.jit(lambda p: p @ p)
    found = [cost(f, a), cost(lambda p: p @ p, a), cost(f.lower(a)), cost(f.lower(a).compile())]
    assert {(c.bytes_sent, c.flops, len(c)) for c in found} == {(8_192, 65_536, 2)}


def test_as_a_table_and_as_html():
    mesh = make_mesh(*TWO)
    found = cost(lambda t: t.sum(0), plan(mesh, (4, 8), "x", "y"))
    assert str(found).splitlines()[:2] == [
        "collective   along   operand   result   times   bytes sent",
        "all-reduce   x       f32[2]    f32[2]       1            8",
    ]
    assert "each device sends 8 bytes and computes 0 FLOPs in products" in str(found)
    assert "<td style='text-align:left'>all-reduce</td>" in found._repr_html_()
    assert str(cost(lambda t: t + 1, plan(mesh, (4, 8), "x", "y"))).startswith("no communication\n")


# What cannot be counted is an error that names it.


def test_a_loop_without_an_end_in_sight():
    def f(x):
        return lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    with pytest.raises(UnknownConstruct, match=r"all-reduce in a loop or branch"):
        cost(f, plan(make_mesh(*TWO), (64,), "x"))


def test_a_loop_without_an_end_and_without_communication_is_fine():
    def f(x):
        return lax.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (100.0, x))[1]

    assert len(cost(f, plan(make_mesh(*TWO), (64,), "x"))) == 0


def test_communication_in_a_branch():
    mesh = make_mesh(*TWO)

    def f(flag, x):
        return lax.cond(flag, lambda x: lax.psum(x, "x"), lambda x: lax.pmax(x, "x"), x)

    g = jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)
    with pytest.raises(UnknownConstruct, match="all-reduce in a loop or branch"):
        cost(g, jax.ShapeDtypeStruct((), jnp.bool_, sharding=NamedSharding(mesh, P())), plan(mesh, (64,), "x"))


TEXT = """HloModule m, num_partitions=8

ENTRY %main (p: f32[8,4]) -> f32[8,4] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %r = f32[8,4]{1,0} LINE
}
"""


LOOP = """HloModule m, num_partitions=8

%body (b: (s32[], f32[4])) -> (s32[], f32[4]) {
  %b = (s32[]{:T(128)}, f32[4]{0:T(256)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%b), index=0
  %j = s32[]{:T(128)S(6)} copy(%i)
  %x = f32[4]{0:T(256)} get-tuple-element(%b), index=1
  %one = s32[]{:T(128)} constant(1)
  %next = s32[]{:T(128)} add(%j, %one)
  %sum = f32[4]{0:T(256)} all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
  ROOT %t = (s32[]{:T(128)}, f32[4]{0:T(256)}) tuple(%next, %sum)
}

%condition (c: (s32[], f32[4])) -> pred[] {
  %c = (s32[]{:T(128)}, f32[4]{0:T(256)}) parameter(0)
  %k = s32[]{:T(128)} get-tuple-element(%c), index=0
  %stop = s32[]{:T(128)} constant(24)
  ROOT %lt = pred[]{:T(512)} compare(%k, %stop), direction=LT
}

ENTRY %main (p: f32[4]) -> (s32[], f32[4]) {
  %p = f32[4]{0:T(256)} parameter(0)
  %zero = s32[]{:T(128)} constant(0)
  %start = s32[]{:T(128)} copy(%zero)
  %both = (s32[]{:T(128)}, f32[4]{0:T(256)}) tuple(%start, %p)
  ROOT %w = (s32[]{:T(128)}, f32[4]{0:T(256)}) while(%both), condition=%condition, body=%body
}
"""


def test_a_loop_whose_counter_the_tpu_keeps_elsewhere():
    """24 rounds; each adds up 16 bytes on eight devices: 2 (7/8) 16."""
    [found] = counter.read(LOOP)
    assert (found.times, found.bytes_sent) == (24, 24 * 28)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("collective-broadcast(%p), channel_id=1, replica_groups={{0,1}}", "collective-broadcast"),
        ("ragged-all-to-all(%p, %p), replica_groups={{0,1}}", "ragged-all-to-all"),
        ("all-reduce(%p), replica_groups=@somewhere, to_apply=%add", "replica groups spelled"),
        ("all-reduce(%p), replica_groups={{0,1},{2,3,4}}, to_apply=%add", "groups of different sizes"),
        ("collective-permute(%p), channel_id=1", "without pairs"),
    ],
)
def test_what_has_no_price_is_named(line, message):
    with pytest.raises(UnknownConstruct, match=message):
        counter.read(TEXT.replace("LINE", line))


def test_an_unknown_dtype_is_named():
    found = counter.read(TEXT.replace("f32", "q8x").replace("LINE", "all-reduce(%p), replica_groups={}, to_apply=%add"))
    with pytest.raises(UnknownConstruct, match="dtype q8"):
        print(found)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=2,'y'=4] {'y'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['x'=2,'y'=4] {'x'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        # Devices 0..7 in a 2 x 4 grid, transposed: 0 4 1 5 2 6 3 7 fill the mesh a = 1, b = 4, c = 2.
        ("mesh['a'=1,'b'=4,'c'=2], device_ids=([2,4]T(1,0)) {'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['a'=2,'b'=2,'c'=2] {'a','c'}", ((0, 1, 4, 5), (2, 3, 6, 7))),
        # y = 4 seen as 2 x 2: along the second part 0 1, 2 3; along the first 0 2, 1 3.
        ("mesh['x'=2,'y'=4] {'y':(2)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['x'=2,'y'=4] {'y':(1)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=2,'y'=4] {'x','y':(1)2}", ((0, 2, 4, 6), (1, 3, 5, 7))),
    ],
)
def test_all_spellings_of_groups(text, groups):
    assert hlo.groups(f" channel_id=1, replica_groups={text}, use_global_device_ids=true", 8) == groups


def test_no_groups_are_all_devices_or_lost_ones():
    assert hlo.groups(" channel_id=1, replica_groups={}, to_apply=%add", 8) == (tuple(range(8)),)
    # What jaxlib 0.7.2 prints of groups that libtpu 0.0.37 spelled in a way it does not know.
    with pytest.raises(UnknownConstruct, match="the libtpu is too new"):
        hlo.groups(" channel_id=1, replica_groups={}, use_global_device_ids=true", 8)


def test_time_grows_with_the_text():
    body = "\n".join(f'  %a{i} = f32[8,4]{{1,0}} add(%p, %p), metadata={{op_name="jit(f)/add"}}' for i in range(40_000))
    text = TEXT.replace("  ROOT", body + "\n  ROOT").replace("LINE", "all-reduce(%p), replica_groups={}, to_apply=%add")
    assert len(text) > 2_500_000
    start = time.process_time()  # not the clock on the wall: the machine may be busy
    assert counter.read(text).bytes_sent == 2 * 7 * 128 // 8
    assert time.process_time() - start < 2


# The same counter on what the TPU compiler writes.

TPU = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu is not installed here")


@functools.cache
def tpu_devices():
    # Both are needed for libtpu to stay quiet without a TPU; any topology can be described all the same.
    os.environ.update(
        TPU_WORKER_HOSTNAMES="localhost", TPU_ACCELERATOR_TYPE="v5litepod-8", ALLOW_MULTIPLE_LIBTPU_LOAD="1"
    )
    from jax.experimental import topologies

    return np.array(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices)


def tpu_mesh(sizes, names):
    return Mesh(tpu_devices().reshape(sizes), names, axis_types=(AxisType.Auto,) * len(sizes))


# On a TPU these are what the CPU's compiler does too, to the byte ...
SAME = [
    "column sums",
    "product, rows by columns",
    "product, inner by inner",
    "products in a batch",
    "two-layer MLP",
    "scan",
    "scan in scan",
    "counted while",
    "gradients, a tuple",
    "psum over both",
    "all_to_all over y",
    "ppermute, some left out",
    "2x2x2, psum over x and z",
    "nothing to say",
]


@TPU
@pytest.mark.parametrize("name", SAME)
def test_by_hand_for_a_tpu(name):
    mesh, build, collectives, flops = PROGRAMS[name]
    program, *arguments = build(tpu_mesh(*mesh))
    found = cost(program, *arguments)
    assert sorted(counted(found)) == sorted(collectives)
    assert found.flops == flops


@TPU
def test_tpu_gathers_weights_as_bf16():
    # A TPU multiplies float32 in bfloat16 unless told otherwise, and gathers the operands so: half of the CPU's bytes.
    program, *arguments = product(("x", "y"), ("x", "y"))(tpu_mesh(*TWO))
    assert sorted(counted(cost(program, *arguments))) == [("all-gather", "x", 1, 1_024), ("all-gather", "y", 1, 3_072)]


@TPU
def test_tpu_sums_bf16_as_it_is():
    found = cost(lambda t: t.sum(0), plan(tpu_mesh(*TWO), (512, 512), "x", "y", dtype=jnp.bfloat16))
    assert counted(found) == [("all-reduce", "x", 1, 256)]


@TPU
def test_tpu_fuses_a_sum_and_a_slice_to_a_reduce_scatter():
    # (2048, 4096) on each device, padded by the compiler to 2,080 rows; 24 rows are put right afterwards.
    program = collective(lambda t: lax.psum_scatter(t, "y", tiled=True), "y", shape=(8192, 4096))
    f, argument = program(tpu_mesh(*TWO))
    found = cost(f, argument)
    assert ("reduce-scatter", "y", 1, 3 * 2_080 * 4_096 * 4 // 4) in counted(found)
    assert 1 <= found.bytes_sent / (3 * 2_048 * 4_096 * 4 / 4) < 1.05


@TPU
def test_tpu_turns_a_gather_into_a_loop_of_permutes():
    # (8192, 8192) in bf16, rows over 8 devices: seven pieces of 16,777,216 bytes have to arrive at each.
    mesh = tpu_mesh(*TWO)
    a = plan(mesh, (8192, 8192), ("x", "y"), dtype=jnp.bfloat16)
    found = cost(lambda p, q: p @ q, a, a)
    assert {c.kind for c in found} == {"collective-permute"}
    assert found.flops == 2 * 8192**3 // 8  # so the loop's rounds were read right
    assert 7 * 16_777_216 <= found.bytes_sent <= 9 * 16_777_216


@TPU
def test_tpu_asynchronous_collectives_count_once():
    # Two gathers of (2048, 2048) in bf16, overlapped with products: 7 pieces of 1,048,576 bytes each.
    mesh = tpu_mesh(*TWO)

    def f(x, v, w):
        h = jnp.tanh(x @ x.T) @ x
        h = jnp.tanh(h @ lax.all_gather(v, ("x", "y"), tiled=True))
        return jnp.tanh(h @ lax.all_gather(w, ("x", "y"), tiled=True))

    rows = P(("x", "y"))
    g = jax.shard_map(f, mesh=mesh, in_specs=(rows, rows, rows), out_specs=rows)
    arguments = [
        plan(mesh, shape, ("x", "y"), dtype=jnp.bfloat16) for shape in ((16384, 2048), (2048, 2048), (2048, 2048))
    ]
    assert jax.jit(g).lower(*arguments).compile().as_text().count(" all-gather(") > 2
    found = cost(g, *arguments)
    assert counted(found) == [("all-gather", "x, y", 1, 7 * 1_048_576)] * 2
    assert any(c.asynchronous for c in found)
    assert not any(c.asynchronous for c in cost(lambda t: t.sum(0), plan(mesh, (512, 512), "x")))
