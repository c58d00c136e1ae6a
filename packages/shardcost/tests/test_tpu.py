"""Check `cost` on programs compiled for eight TPU v5e chips against manually calculated costs."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P
from programs import PROGRAMS, TWO, collective, counted, plan, product
from shardcost import UnsupportedHloError, cost

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu isn't installed")


@functools.cache
def tpu_devices():
    # Without a TPU, libtpu prints messages unless the first two variables are set. They don't limit
    # which topologies can be described.
    os.environ.update(
        TPU_WORKER_HOSTNAMES="localhost", TPU_ACCELERATOR_TYPE="v5litepod-8", ALLOW_MULTIPLE_LIBTPU_LOAD="1"
    )
    from jax.experimental import topologies

    return np.array(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices)


def tpu_mesh(sizes, names):
    return Mesh(tpu_devices().reshape(sizes), names, axis_types=(AxisType.Auto,) * len(sizes))


# These programs send the same number of bytes whether they're compiled for TPUs or for CPUs.
SAME_BYTES_AS_CPU = [
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
    "no communication",
]


@pytest.mark.parametrize("name", SAME_BYTES_AS_CPU)
def test_against_a_manual_calculation(name):
    mesh, build, collectives, flops = PROGRAMS[name]
    program, *arguments = build(tpu_mesh(*mesh))
    report = cost(program, *arguments)
    assert sorted(counted(report)) == sorted(collectives)
    assert report.flops == flops


def test_tpu_gathers_weights_in_bfloat16():
    # By default, a TPU multiplies float32 matrices in bfloat16 and also gathers them in bfloat16, so it sends half as
    # many bytes as a CPU.
    program, *arguments = product(("x", "y"), ("x", "y"))(tpu_mesh(*TWO))
    assert sorted(counted(cost(program, *arguments))) == [("all-gather", "x", 1, 1_024), ("all-gather", "y", 1, 3_072)]


def test_tpu_sums_bfloat16_in_bfloat16():
    report = cost(lambda t: t.sum(0), plan(tpu_mesh(*TWO), (512, 512), "x", "y", dtype=jnp.bfloat16))
    assert counted(report) == [("all-reduce", "x", 1, 256)]


def test_tpu_fuses_a_sum_and_a_slice_to_a_reduce_scatter():
    # The compiler pads each device's (2048, 4096) array to 2,080 rows, and corrects 24 rows afterwards.
    program = collective(lambda t: lax.psum_scatter(t, "y", tiled=True), "y", shape=(8192, 4096))
    f, argument = program(tpu_mesh(*TWO))
    report = cost(f, argument)
    assert ("reduce-scatter", "y", 1, 3 * 2_080 * 4_096 * 4 // 4) in counted(report)
    assert 1 <= report.bytes_sent / (3 * 2_048 * 4_096 * 4 / 4) < 1.05


def test_tpu_scatters_the_gradients_of_sharded_weights():
    """Test that the sum over x of the two (256, 256) gradients on each device becomes a reduce-scatter.

    Weights of (256, 1024) and (1024, 256) are sharded over x and y, and used twice. Each device keeps half
    of each gradient and sends the other half: half of 2 x 262,144 bytes. It also computes eleven products of
    32 x 256 x 256.
    """
    mesh = tpu_mesh(*TWO)
    weights = plan(mesh, (256, 1024), "x", "y"), plan(mesh, (1024, 256), "y", "x")

    def layer(x, w1, w2):
        return x + jnp.tanh(x @ w1) @ w2

    gradient = jax.grad(lambda w, x: (layer(layer(x, *w), *w) ** 2).mean())
    report = cost(
        jax.jit(gradient, out_shardings=tuple(w.sharding for w in weights)), weights, plan(mesh, (64, 256), "x")
    )
    assert [row for row in counted(report) if row[0] == "reduce-scatter"] == [("reduce-scatter", "x", 1, 262_144)]
    assert not [c for c in report if c.kind == "all-reduce" and report.axes_label(c) == "x"]
    assert report.flops == 11 * 2 * 32 * 256 * 256


def test_tpu_multiplies_a_matrix_and_a_vector_with_a_sum():
    # Each device multiplies 32 rows of 128 elements by a vector: 2 x 32 x 128 FLOPs. As on the CPU, dot products of two
    # vectors don't count.
    mesh = tpu_mesh(*TWO)
    assert cost(lambda a, v: a @ v, plan(mesh, (64, 128), "x"), plan(mesh, (128,))).flops == 8_192
    assert cost(jax.vmap(jnp.dot), *[plan(mesh, (64, 128), "x")] * 2).flops == 0


def pallas(kernel, mesh, shape, **options):
    """Return a program that runs `kernel` on each device's rows and a replicated matrix, and its arguments."""
    from jax.experimental import pallas as pl

    def f(a, b):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(shape, jnp.float32), **options)(a, b)

    g = jax.shard_map(f, mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    return g, plan(mesh, (1024, 128), "d"), plan(mesh, (128, 128))


def multiply(a, b, out):
    out[...] = jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)


def send_to_the_right(a, b, out):
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def move(send, receive):
        copy = pltpu.make_async_remote_copy(a, out, send, receive, device_id=(lax.rem(lax.axis_index("d") + 1, 8),))
        copy.start()
        copy.wait()

    pl.run_scoped(move, pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA)


def test_tpu_kernel_that_multiplies():
    from jax.experimental import pallas as pl

    mesh = tpu_mesh((8,), ("d",))
    with pytest.raises(UnsupportedHloError, match=r"a kernel \(.*\) without a cost estimate: .*\(flops=\)"):
        cost(*pallas(multiply, mesh, (128, 128)))
    estimate = pl.CostEstimate(flops=2 * 128**3, transcendentals=0, bytes_accessed=3 * 65_536)
    assert cost(*pallas(multiply, mesh, (128, 128), cost_estimate=estimate)).flops == 2 * 128**3


def test_tpu_kernel_that_sends():
    from jax.experimental import pallas as pl

    mesh = tpu_mesh((8,), ("d",))
    f, *arguments = pallas(send_to_the_right, mesh, (128, 128))
    with pytest.raises(UnsupportedHloError, match=r"\(flops=, remote_bytes_transferred=\)"):
        cost(f, *arguments)
    if "remote_bytes_transferred" not in inspect.signature(pl.CostEstimate).parameters:
        pytest.skip("this JAX's CostEstimate has no remote_bytes_transferred")
    estimate = pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=131_072, remote_bytes_transferred=65_536)
    report = cost(*pallas(send_to_the_right, mesh, (128, 128), cost_estimate=estimate))
    assert counted(report) == [("kernel", "as declared", 1, 65_536)]
    assert report.by_axis() == {"as declared": 65_536}


def test_links_of_a_ring():
    """Test that a large all-reduce over a ring of eight uses two links, one in each direction.

    The program text doesn't show how many links an all-gather uses.
    """
    mesh = tpu_mesh((8,), ("d",))
    [large] = cost(*collective(lambda t: lax.psum(t, "d"), "d", out=P(), shape=(4096, 1024))(mesh))
    assert large.links == 2
    [gather] = cost(*collective(lambda t: lax.all_gather(t, "d", tiled=True).sum(0), "d")(mesh))
    assert gather.links is None


def test_links_of_a_torus():
    """Test that a large all-reduce on 4 x 4 x 4 v5p chips uses six, four or two links.

    It uses six links over all chips, four over a plane of 16, and two over a line of 4. The program text doesn't show
    how many links a small all-reduce uses.
    """
    from jax.experimental import topologies

    tpu_devices()
    chips = topologies.get_topology_desc(platform="tpu", topology_name="v5p:4x4x4")
    mesh = topologies.make_mesh(chips, (4, 16), ("x", "y"))
    for axes, rows, links in ((("x", "y"), 64, 6), ("y", 16, 4), ("x", 4, 2)):
        [large] = cost(lambda t: t.sum(0), plan(mesh, (rows, 4096, 1024), axes))
        assert (large.kind, large.links) == ("all-reduce", links)
        [small] = cost(lambda t: t.sum(0), plan(mesh, (rows, 128), axes))
        assert (small.kind, small.links) == ("all-reduce", None)


def test_slices_of_a_large_system_are_refused():
    from jax.experimental import topologies

    tpu_devices()
    slices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2", num_slices=2).devices
    mesh = Mesh(np.array(slices).reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    with pytest.raises(UnsupportedHloError, match="send"):
        cost(*collective(lambda t: lax.psum(t, "x"), "x", out=P())(mesh))
