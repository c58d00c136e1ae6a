"""Define programs for the CPU compiler, with manually calculated costs.

Unless stated otherwise, elements are float32 (4 bytes), and the mesh is 2 x 4 with the axes x and y. In a group
of n devices with an operand of b bytes on each, every device sends 2 (n-1)/n b bytes in an all-reduce, (n-1) b in an
all-gather, (n-1)/n b in a reduce-scatter or an all-to-all, and b in a permute. A builder takes a mesh, and returns a
program and its arguments.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

TWO = ((2, 4), ("x", "y"))
THREE = ((2, 2, 2), ("x", "y", "z"))
GRID = ((4, 2), ("batch", "features"))


def make_mesh(sizes, names):
    """Build a mesh with Auto axes from the first devices, arranged in row-major order."""
    devices = np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes)
    return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(sizes))


def plan(mesh, shape, *spec, dtype=jnp.float32):
    """Describe an array by its shape, dtype and sharding, so that a program can be compiled without data."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def manual(mesh, function, spec, out=None):
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec if out is None else out)


def column_sums(*out):
    def build(mesh):
        f = jax.jit(lambda t: t.sum(0), out_shardings=NamedSharding(mesh, P(*out)) if out else None)
        return f, plan(mesh, (4, 8), "x", "y")

    return build


def product(a, b, n=64):
    """Return a builder for the product of two (n, n) matrices, sharded by the specs `a` and `b`."""
    return lambda mesh: (lambda p, q: p @ q, plan(mesh, (n, n), *a), plan(mesh, (n, n), *b))


def descent(iterations, outer=None):
    """Return a builder for a program that repeats w <- w - 0.1 x.T @ (x @ w), where x is (64, 16) and sharded by rows.

    The rows are split over two devices, and each iteration needs an all-reduce of shape (16, 16). With `outer`, an
    outer loop repeats the first one `outer` times.
    """

    def build(mesh):
        def loop(w, x, n=iterations):
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
    """Return a builder for a shard_map of `function` on an array that is sharded by `spec`."""

    def build(mesh):
        return manual(mesh, function, P(*spec), out), plan(mesh, shape, *spec, dtype=dtype)

    return build


def with_gradient(function, *arrays):
    """Return a builder for the gradient of a shard_map's mean square with respect to `arrays`: (shape, spec)."""

    def build(mesh):
        specs = tuple(P(*spec) for _, spec in arrays)
        f = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=specs[0], check_vma=False)
        g = jax.grad(lambda *a: (f(*a) ** 2).mean(), tuple(range(len(arrays))))
        return g, *[plan(mesh, shape, *spec) for shape, spec in arrays]

    return build


def ring_product(t):
    """Sum t @ s.T @ s over the shards s of all devices along y, passing the shards around a ring."""

    def iteration(carried, _):
        total, piece = carried
        return (total + t @ piece.T @ piece, lax.ppermute(piece, "y", [(i, (i + 1) % 4) for i in range(4)])), None

    return lax.scan(iteration, (jnp.zeros_like(t), t), None, length=4)[0][0]


def stored_in_pieces(t, w):
    """Apply layers whose sharded weights are gathered just before they're used."""
    return lax.scan(lambda t, piece: (jnp.tanh(t @ lax.all_gather(piece, "y", tiled=True)), None), t, w)[0]


def bounded_while(mesh):
    def f(x):
        return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] - c[1].mean()), (0, x))[1]

    return f, plan(mesh, (64,), "x")


# name: (mesh, builder, [(kind, axes, times, bytes sent by each device)], FLOPs in matrix products on each device)
PROGRAMS = {
    # A 4 x 8 array, sharded 2 x 4: each device sums its (2, 2) shard to 2 elements, 8 bytes, and sends 2 (1/2) 8 bytes.
    "column sums": (TWO, column_sums(), [("all-reduce", "x", 1, 8)], 0),
    # Storing one of the 8 sums on each device, in the order of ('x', 'y'), takes a further transfer of 1 element.
    "column sums over x, y": (TWO, column_sums(("x", "y")), [("all-reduce", "x", 1, 8), ("collective-permute", "8 pairs", 1, 4)], 0),
    "column sums over y, x": (TWO, column_sums(("y", "x")), [("all-reduce", "x", 1, 8)], 0),
    # Products of two 64 x 64 matrices: 2 x 64^3 = 524,288 FLOPs, divided by the number of devices that share the work.
    "product, rows by columns": (TWO, product(("x", None), (None, "y")), [], 524_288 // 8),
    # Each device contracts half of the dimension, then exchanges (64, 64) partial sums, 16,384 bytes, with one partner.
    "product, inner by inner": (TWO, product((None, "x"), ("x", None)), [("all-reduce", "x", 1, 16_384)], 524_288 // 2),
    # Each device sends its (32, 16) shard of a, 2,048 bytes, to 3 others along y, and its shard of b to 1 along x.
    "product, both by both": (TWO, product(("x", "y"), ("x", "y")), [("all-gather", "x", 1, 2_048), ("all-gather", "y", 1, 6_144)], 524_288 // 8),
    # The compiler transfers 16 of b's 32 local rows, (16, 64), then sums (32, 64) arrays over y: 2 (3/4) 8,192 bytes.
    "product, rows by rows": (TWO, product(("x", None), ("x", None)), [("collective-permute", "8 pairs", 1, 4_096), ("all-reduce", "y", 1, 12_288)], 524_288 // 8),
    "product, both by inner": (TWO, product(("x", "y"), ("y", None)), [("all-reduce", "y", 1, 12_288)], 524_288 // 8),
    "product, both by replicated": (TWO, product(("x", "y"), ()), [("all-gather", "y", 1, 6_144)], 524_288 // 2),
    "product, replicated": (TWO, product((), ()), [], 524_288),
    # Each device computes 8 of the 16 products, with 2 x 128 x 64 x 128 FLOPs each.
    "products in a batch": (TWO, lambda mesh: (lambda p, q: p @ q, plan(mesh, (16, 128, 64), "x"), plan(mesh, (16, 64, 128), "x")), [], 16_777_216),
    # vmap(dot) of (8, 16) arrays, sharded 4 x 2: each device exchanges the partial sums of its 2 rows, 8 bytes, with
    # one partner. (Products of two vectors don't count as FLOPs.)
    "vmap dot": (GRID, lambda mesh: (jax.vmap(jnp.dot), *[plan(mesh, (8, 16), "batch", "features")] * 2), [("all-reduce", "features", 1, 8)], 0),
    # Each device sends 2 (3/4) 2,048 bytes to add (8, 64) partial sums over y, and computes 2 products of 8 x 64 x 32.
    "two-layer MLP": (TWO, mlp, [("all-reduce", "y", 1, 3_072)], 2 * 2 * 8 * 64 * 32),
    # Each of 7 iterations exchanges 1,024 bytes with one partner, and computes 2 products of 32 x 16 x 16.
    "scan": (TWO, descent(7), [("all-reduce", "x", 7, 7 * 1_024)], 7 * 2 * 2 * 32 * 16 * 16),
    "scan in scan": (TWO, descent(7, 3), [("all-reduce", "x", 21, 21 * 1_024)], 21 * 2 * 2 * 32 * 16 * 16),
    "counted while": (TWO, bounded_while, [("all-reduce", "x", 5, 5 * 4)], 0),
    # One all-reduce of a tuple with 2,048 + 32 + 256 elements, 9,344 bytes, over 8 devices sends 2 (7/8) 9,344 bytes.
    "gradients, a tuple": (TWO, gradients, [("all-reduce", "x, y", 1, 16_352)], 2 * 2 * 32 * 64 * 32 + 3 * 2 * 32 * 32 * 8),
    # Each device sends an (8, 12) shard, 384 bytes, four times in the forward pass and four times in the backward pass.
    # Each forward iteration computes two products of 8 x 12 x 8, and each backward iteration computes four.
    "ring, with its gradient": (TWO, with_gradient(ring_product, ((16, 48), ("x", "y"))), [("collective-permute", "8 pairs", 4, 4 * 384)] * 2, 4 * 3 * 2 * 2 * 8 * 12 * 8),
    # Each of the three (4, 16) shards, 256 bytes, is gathered, and its gradient is scattered; both send 3 x 256 bytes.
    # A gradient is summed over the axis along which its array is replicated: that of w, 768 bytes, over x, and that of
    # t, 512 bytes, over y, which sends 2 (3/4) 512 bytes. There are nine products of 8 x 16 x 16.
    "sharded weights, with gradients": (TWO, with_gradient(stored_in_pieces, ((16, 16), ("x",)), ((3, 16, 16), (None, "y"))),
        [("all-gather", "y", 3, 2_304), ("reduce-scatter", "y", 3, 2_304), ("all-reduce", "x", 1, 768), ("all-reduce", "y", 1, 768)], 9 * 2 * 8 * 16 * 16),
    # Arrays sharded over y have shards of (32, 128), 16,384 bytes; those sharded over x have (64, 128), 32,768 bytes.
    "psum over y": (TWO, collective(lambda t: lax.psum(t, "y"), "y", out=P()), [("all-reduce", "y", 1, 24_576)], 0),
    "psum over x": (TWO, collective(lambda t: lax.psum(t, "x"), "x", out=P()), [("all-reduce", "x", 1, 32_768)], 0),
    "psum over both": (TWO, collective(lambda t: lax.psum(t, ("x", "y")), ("x", "y"), out=P()), [("all-reduce", "x, y", 1, 14_336)], 0),
    "all_gather over y": (TWO, collective(lambda t: lax.all_gather(t, "y", tiled=True).sum(0), "y", out=P("y")), [("all-gather", "y", 1, 3 * 16_384)], 0),
    "psum_scatter over y": (TWO, collective(lambda t: lax.psum_scatter(t, "y", tiled=True), "y"), [("reduce-scatter", "y", 1, 12_288)], 0),
    "all_to_all over y": (TWO, collective(lambda t: lax.all_to_all(t, "y", 1, 0, tiled=True), "y"), [("all-to-all", "y", 1, 12_288)], 0),
    "ppermute, ring": (TWO, collective(lambda t: lax.ppermute(t, "y", [(i, (i + 1) % 4) for i in range(4)]), "y"), [("collective-permute", "8 pairs", 1, 16_384)], 0),
    "ppermute, no pairs": (TWO, collective(lambda t: lax.ppermute(t, "y", []) + 1, "y"), [("collective-permute", "0 pairs", 1, 0)], 0),
    "ppermute, some left out": (TWO, collective(lambda t: lax.ppermute(t, "y", [(0, 1), (1, 2)]), "y"), [("collective-permute", "4 pairs", 1, 16_384)], 0),
    # On a 2 x 2 x 2 mesh, shards are (64, 128) if the array is sharded over one axis, and (32, 128) if over two.
    "2x2x2, psum over x": (THREE, collective(lambda t: lax.psum(t, "x"), "x", out=P()), [("all-reduce", "x", 1, 32_768)], 0),
    "2x2x2, psum over z": (THREE, collective(lambda t: lax.psum(t, "z"), "z", out=P()), [("all-reduce", "z", 1, 32_768)], 0),
    "2x2x2, psum over x and z": (THREE, collective(lambda t: lax.psum(t, ("x", "z")), ("x", "z"), out=P()), [("all-reduce", "x, z", 1, 24_576)], 0),
    "2x2x2, psum_scatter over y and z": (THREE, collective(lambda t: lax.psum_scatter(t, ("y", "z"), tiled=True), ("y", "z")), [("reduce-scatter", "y, z", 1, 12_288)], 0),
    "no communication": (TWO, lambda mesh: (lambda t: 2 * jnp.sin(t) + 1, plan(mesh, (64, 64), "x", "y")), [], 0),
}  # fmt: skip


def counted(report):
    """Return a report's collectives in the form that PROGRAMS uses."""
    return [(c.kind, report.axes_label(c), c.execution_count, c.bytes_sent) for c in report]
