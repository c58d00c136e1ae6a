"""The counter against answers worked out by hand, on the CPU.

Unless said otherwise: float32, 4 bytes; the mesh is 2 x 4, named x and y; b bytes in a group of n send, per device,
2 (n-1)/n b in an all-reduce, (n-1) b in an all-gather, (n-1)/n b in a reduce-scatter or an all-to-all, b in a permute.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

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


def with_gradient(function, *arrays):
    """A shard_map with the gradient of its mean square, by all arrays: each with its shape and its spec."""

    def build(mesh):
        specs = tuple(P(*spec) for _, spec in arrays)
        f = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=specs[0], check_vma=False)
        g = jax.grad(lambda *a: (f(*a) ** 2).mean(), tuple(range(len(arrays))))
        return g, *[plan(mesh, shape, *spec) for shape, spec in arrays]

    return build


def ring_product(t):
    """Each device's rows against all columns, which travel round."""

    def turn(carried, _):
        total, piece = carried
        return (total + t @ piece.T @ piece, lax.ppermute(piece, "y", [(i, (i + 1) % 4) for i in range(4)])), None

    return lax.scan(turn, (jnp.zeros_like(t), t), None, length=4)[0][0]


def stored_in_pieces(t, w):
    """Layers whose weights lie in pieces and are gathered where they are used."""
    return lax.scan(lambda t, piece: (jnp.tanh(t @ lax.all_gather(piece, "y", tiled=True)), None), t, w)[0]


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
    # Pieces of (8, 12), 384 bytes, four times round and four times back; a turn's two products of 8 x 12 x 8, and two
    # more of each on the way back.
    "ring, with its gradient": (TWO, with_gradient(ring_product, ((16, 48), ("x", "y"))), [("collective-permute", "8 pairs", 4, 4 * 384)] * 2, 4 * 3 * 2 * 2 * 8 * 12 * 8),
    # Three pieces of (4, 16), 256 bytes: 3 x 256 are gathered and scattered; gradients are summed over the axis that
    # holds copies, of w 768 bytes over x, of t, (8, 16), 2 (3/4) 512 over y. Nine products of 8 x 16 x 16.
    "weights in pieces, with gradients": (TWO, with_gradient(stored_in_pieces, ((16, 16), ("x",)), ((3, 16, 16), (None, "y"))),
        [("all-gather", "y", 3, 2_304), ("reduce-scatter", "y", 3, 2_304), ("all-reduce", "x", 1, 768), ("all-reduce", "y", 1, 768)], 9 * 2 * 8 * 16 * 16),
    # Manual collectives on shards of (32, 128), 16,384 bytes (cut by y) or (64, 128), 32,768 (cut by x).
    "psum over y": (TWO, collective(lambda t: lax.psum(t, "y"), "y", out=P()), [("all-reduce", "y", 1, 24_576)], 0),
    "psum over x": (TWO, collective(lambda t: lax.psum(t, "x"), "x", out=P()), [("all-reduce", "x", 1, 32_768)], 0),
    "psum over both": (TWO, collective(lambda t: lax.psum(t, ("x", "y")), ("x", "y"), out=P()), [("all-reduce", "x, y", 1, 14_336)], 0),
    "all_gather over y": (TWO, collective(lambda t: lax.all_gather(t, "y", tiled=True).sum(0), "y", out=P("y")), [("all-gather", "y", 1, 3 * 16_384)], 0),
    "psum_scatter over y": (TWO, collective(lambda t: lax.psum_scatter(t, "y", tiled=True), "y"), [("reduce-scatter", "y", 1, 12_288)], 0),
    "all_to_all over y": (TWO, collective(lambda t: lax.all_to_all(t, "y", 1, 0, tiled=True), "y"), [("all-to-all", "y", 1, 12_288)], 0),
    "ppermute, ring": (TWO, collective(lambda t: lax.ppermute(t, "y", [(i, (i + 1) % 4) for i in range(4)]), "y"), [("collective-permute", "8 pairs", 1, 16_384)], 0),
    "ppermute, nobody": (TWO, collective(lambda t: lax.ppermute(t, "y", []) + 1, "y"), [("collective-permute", "0 pairs", 1, 0)], 0),
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
    assert (permute.bytes_sent, permute.senders) == (16_384, {0, 1, 4, 5})


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
    assert {c.axes for c in found} == {(("x", 2), ("y", 4))}
    assert {tuple(c.rows()) for c in found} == {tuple(found[0].rows())}


def test_as_a_table_and_as_html():
    mesh = make_mesh(*TWO)
    found = cost(lambda t: t.sum(0), plan(mesh, (4, 8), "x", "y"))
    assert repr(found).splitlines()[:2] == [
        "collective   along   operand   result   times   bytes sent",
        "all-reduce   x       f32[2]    f32[2]       1            8",
    ]
    assert "each device sends 8 bytes and computes 0 FLOPs in products" in repr(found)
    assert str(found) == "all-reduce over x · sends 8 bytes"
    assert found.by_device() == [8] * 8 and found.steps() == 2  # a group of two: there, and back
    assert "<td style='text-align:left'>all-reduce</td>" in found._repr_html_()
    assert repr(cost(lambda t: t + 1, plan(mesh, (4, 8), "x", "y"))).startswith("no communication\n")


def test_totals_by_kind_and_by_axis():
    """By hand, with shards of (4, 4) float32, 64 bytes: a gather over x passes on 64; the sum of (8, 4) over y costs
    2 (3/4) 128; a permute of 128 along x, and one that half of the devices send, of 128 along y."""
    mesh = make_mesh(*TWO)

    def f(t):
        t = lax.psum(lax.all_gather(t, "x", tiled=True), "y")
        return lax.ppermute(lax.ppermute(t, "x", [(0, 1), (1, 0)]), "y", [(0, 1), (1, 0)])

    found = cost(
        jax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False), plan(mesh, (8, 16), "x", "y")
    )
    assert found.by_kind() == {"all-gather": 64, "all-reduce": 192, "collective-permute": 256}
    assert found.by_axis() == {"x": 64 + 128, "y": 192 + 128}
    assert found.bytes_sent == 512
    assert cost(lambda t: t + 1, plan(mesh, (8, 16))).by_axis() == {}


def two_layers(x, w1, w2):
    h = jax.nn.relu(x @ w1)
    return h @ w2


def test_who_asked():
    """Weights stored in halves along x are gathered where they are used; the second product's sum is over y."""
    mesh = make_mesh(*TWO)
    weights = plan(mesh, (128, 512), "x", "y"), plan(mesh, (512, 128), "y", "x")
    found = cost(two_layers, plan(mesh, (64, 128), "x"), *weights)
    first, second = "h = jax.nn.relu(x @ w1)", "return h @ w2"
    assert sorted((kind, operation, line) for kind, _, _, operation, line in found.sources()) == [
        ("all-gather", "dot_general", first),
        ("all-gather", "dot_general", second),
        ("all-reduce", "dot_general", second),
    ]
    gradient = cost(jax.grad(lambda *a: two_layers(*a).sum(), (1, 2)), plan(mesh, (64, 128), "x"), *weights)
    asked = {(kind, operation, line) for kind, along, _, operation, line in gradient.sources() if along == "x"}
    assert ("all-reduce", "dot_general, backward", first) in asked
    [sums] = cost(lambda t: t.sum(0), plan(mesh, (4, 8), "x", "y"))
    assert sums.source.operation == "reduce_sum"
    assert sums.source.file.endswith("test_cost.py")


def test_who_asked_as_a_table(capsys):
    mesh = make_mesh(*TWO)
    cost(lambda t: t.sum(0), plan(mesh, (4, 8), "x", "y")).who_asked()
    assert [line.split()[:5] for line in capsys.readouterr().out.splitlines()] == [
        ["collective", "along", "bytes", "sent", "for"],
        ["all-reduce", "x", "8", "reduce_sum", "cost(lambda"],
    ]


def test_complex_products():
    """32 x 128 x 64 products of complex numbers: 4 real ones and 4 sums each."""
    mesh = make_mesh(*TWO)
    arguments = plan(mesh, (64, 128), "x", dtype=jnp.complex64), plan(mesh, (128, 64), dtype=jnp.complex64)
    assert cost(lambda p, q: p @ q, *arguments).flops == 8 * 32 * 128 * 64


def test_what_jax_debug_shows_is_not_counted():
    def f(t):
        total = t.sum(0)
        jax.debug.print("{}", total[0])
        return total

    found = cost(f, plan(make_mesh(*TWO), (4, 8), "x"))
    assert counted(found) == [("all-reduce", "x", 1, 32)]


# A loop's rounds.


# So many arrays of so many dimensions that the loop's line has 4,000 letters before it says that it is one.
MANY = [(8, 1, 1, 1, 1, 1)] * 140


def loop_over_many(mesh):
    """Three rounds, each of which adds up all of the arrays of MANY over d; and these arrays."""

    def f(arrays):
        def body(arrays, _):
            return [t - total for t, total in zip(arrays, lax.pmean(arrays, "d"), strict=True)], None

        return lax.scan(body, arrays, None, length=3)[0]

    return manual(mesh, f, P("d")), [plan(mesh, shape, "d") for shape in MANY]


def test_a_loop_over_very_many_arrays():
    """140 pieces of 1 number, 4 bytes, are added up 3 times over 8 devices: 3 x 140 x 2 (7/8) 4."""
    assert cost(*loop_over_many(make_mesh((8,), ("d",)))).bytes_sent == 2_940


def raised(step, test, start=0):
    """A loop that changes its counter by `step` while `test`, and adds up (8,) float32 over 8 devices: 56 bytes."""

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
    ("loop", "rounds"),
    [
        (raised(lambda i, t: i + 3, lambda i: i < 20), 7),  # 0, 3, ... 18
        (raised(lambda i, t: i - 3, lambda i: i > 0, 20), 7),  # 20, 17, ... 2
        (raised(lambda i, t: i + 2, lambda i: i != 20), 10),
        (raised(lambda i, t: i + 2, lambda i: 2 * i <= 12), 4),  # 0, 2, 4, 6
    ],
    ids=["by three", "down", "until it is", "twice the counter"],
)
def test_a_loop_whose_rounds_can_be_read(loop, rounds):
    f, argument = loop(make_mesh((8,), ("d",)))
    assert counted(cost(f, argument)) == [("all-reduce", "d", rounds, rounds * 56)]


def test_what_the_reader_says_of_a_loop():
    def f(t):
        return lax.while_loop(lambda t: t.sum() > 1, lambda t: t / 2, t)

    found = cost(f, plan(make_mesh(*TWO), (64,), "x"), rounds=5)
    assert counted(found) == [("all-reduce", "x", 6, 6 * 4)]  # the condition is asked once more
    assert repr(found).endswith("counted with 5 rounds of a loop that does not tell, as you say")
    with pytest.raises(ValueError, match="say a whole number"):
        cost(f, plan(make_mesh(*TWO), (64,), "x"), rounds=-1)


def test_the_dearest_branch():
    """A product of (32, 32), 65,536 FLOPs, in one branch, a sum over x of 4,096 bytes in another, half of it in a third."""
    mesh = make_mesh((8,), ("x",))

    def f(which, t):
        def half(t):
            return t.at[:16].set(lax.psum(t[:16], "x"))

        return lax.switch(which, [lambda t: t @ t, lambda t: lax.psum(t, "x"), half], t)

    g = jax.shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=False)
    which = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, P()))
    found = cost(g, which, plan(mesh, (256, 32), "x"), branches="dearest")
    assert counted(found) == [("all-reduce", "x", 1, 2 * 7 * 4_096 // 8)]
    assert found.flops == 65_536
    assert repr(found).endswith("counted with the dearest branch of a conditional, as you say")
    with pytest.raises(ValueError, match="dearest"):
        cost(g, which, plan(mesh, (256, 32), "x"), branches="cheapest")


# What cannot be counted is an error that names it.


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


def test_python_on_the_host():
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    with pytest.raises(UnknownConstruct, match="pure_callback, which runs Python on the host"):
        cost(lambda t: jax.pure_callback(np.sin, x, t), x)
