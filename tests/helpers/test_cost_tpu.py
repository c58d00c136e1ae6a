"""The same counter on what the TPU compiler writes, where libtpu is installed: for a v5e-8, answers worked out by hand."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import inspect
import os
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

from tests.helpers.test_cost import PROGRAMS, TWO, collective, counted, plan, product
from tools.lessons import notebooks
from utils.count.cost import cost
from utils.count.hlo import UnknownConstruct

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu is not installed here")


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


@pytest.mark.parametrize("name", SAME)
def test_by_hand_for_a_tpu(name):
    mesh, build, collectives, flops = PROGRAMS[name]
    program, *arguments = build(tpu_mesh(*mesh))
    found = cost(program, *arguments)
    assert sorted(counted(found)) == sorted(collectives)
    assert found.flops == flops


def test_tpu_gathers_weights_as_bf16():
    # A TPU multiplies float32 in bfloat16 unless told otherwise, and gathers the operands so: half of the CPU's bytes.
    program, *arguments = product(("x", "y"), ("x", "y"))(tpu_mesh(*TWO))
    assert sorted(counted(cost(program, *arguments))) == [("all-gather", "x", 1, 1_024), ("all-gather", "y", 1, 3_072)]


def test_tpu_sums_bf16_as_it_is():
    found = cost(lambda t: t.sum(0), plan(tpu_mesh(*TWO), (512, 512), "x", "y", dtype=jnp.bfloat16))
    assert counted(found) == [("all-reduce", "x", 1, 256)]


def test_tpu_fuses_a_sum_and_a_slice_to_a_reduce_scatter():
    # (2048, 4096) on each device, padded by the compiler to 2,080 rows; 24 rows are put right afterwards.
    program = collective(lambda t: lax.psum_scatter(t, "y", tiled=True), "y", shape=(8192, 4096))
    f, argument = program(tpu_mesh(*TWO))
    found = cost(f, argument)
    assert ("reduce-scatter", "y", 1, 3 * 2_080 * 4_096 * 4 // 4) in counted(found)
    assert 1 <= found.bytes_sent / (3 * 2_048 * 4_096 * 4 / 4) < 1.05


def test_tpu_keeps_the_gradients_of_cut_weights_in_pieces():
    """Weights of (256, 1024) and (1024, 256) stored over x and y, used twice: their gradients are (256, 256) on each
    device, added up over x, of which half is kept: half of 2 x 262,144 bytes. Eleven products of 32 x 256 x 256."""
    mesh = tpu_mesh(*TWO)
    weights = plan(mesh, (256, 1024), "x", "y"), plan(mesh, (1024, 256), "y", "x")

    def layer(x, w1, w2):
        return x + jnp.tanh(x @ w1) @ w2

    gradient = jax.grad(lambda w, x: (layer(layer(x, *w), *w) ** 2).mean())
    found = cost(
        jax.jit(gradient, out_shardings=tuple(w.sharding for w in weights)), weights, plan(mesh, (64, 256), "x")
    )
    assert [row for row in counted(found) if row[0] == "reduce-scatter"] == [("reduce-scatter", "x", 1, 262_144)]
    assert not [c for c in found if c.kind == "all-reduce" and found.along(c) == "x"]
    assert found.flops == 11 * 2 * 32 * 256 * 256


def test_tpu_multiplies_a_matrix_and_a_vector_with_a_sum():
    # 32 rows of 128 on each device, 2 x 32 x 128; a sum of products of vectors is none, here as on the CPU.
    mesh = tpu_mesh(*TWO)
    assert cost(lambda a, v: a @ v, plan(mesh, (64, 128), "x"), plan(mesh, (128,))).flops == 8_192
    assert cost(jax.vmap(jnp.dot), *[plan(mesh, (64, 128), "x")] * 2).flops == 0


def pallas(kernel, mesh, shape, **options):
    """A kernel on each device's part of two arrays: the first cut in rows, the second on all devices."""
    from jax.experimental import pallas as pl

    def f(a, b):
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(shape, jnp.float32), **options)(a, b)

    g = jax.shard_map(f, mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    return g, plan(mesh, (1024, 128), "d"), plan(mesh, (128, 128))


def multiply(a, b, out):
    out[...] = jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)


def to_the_right(a, b, out):
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
    with pytest.raises(UnknownConstruct, match=r"kernel .* does not tell its cost: .*\(flops=\)"):
        cost(*pallas(multiply, mesh, (128, 128))[:1], *pallas(multiply, mesh, (128, 128))[1:])
    told = pl.CostEstimate(flops=2 * 128**3, transcendentals=0, bytes_accessed=3 * 65_536)
    assert cost(*pallas(multiply, mesh, (128, 128), cost_estimate=told)).flops == 2 * 128**3


def test_tpu_kernel_that_sends():
    from jax.experimental import pallas as pl

    mesh = tpu_mesh((8,), ("d",))
    f, *arguments = pallas(to_the_right, mesh, (128, 128))
    with pytest.raises(UnknownConstruct, match=r"\(flops=, remote_bytes_transferred=\)"):
        cost(f, *arguments)
    if "remote_bytes_transferred" not in inspect.signature(pl.CostEstimate).parameters:
        pytest.skip("this JAX has no word for what a kernel sends")
    told = pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=131_072, remote_bytes_transferred=65_536)
    found = cost(*pallas(to_the_right, mesh, (128, 128), cost_estimate=told))
    assert counted(found) == [("kernel", "as it says", 1, 65_536)]
    assert found.by_axis() == {"as it says": 65_536}


def test_tpu_tells_its_links():
    """A large sum over a ring of eight goes both ways round: two links. A gather does not say."""
    mesh = tpu_mesh((8,), ("d",))
    [large] = cost(*collective(lambda t: lax.psum(t, "d"), "d", out=P(), shape=(4096, 1024))(mesh))
    assert large.links == 2
    [gather] = cost(*collective(lambda t: lax.all_gather(t, "d", tiled=True).sum(0), "d")(mesh))
    assert gather.links is None


def test_tpu_tells_the_links_of_a_torus():
    """On a v5p of 4 x 4 x 4: over all chips six links, over a plane of 16 four, over a line of 4 two. A small one does not
    say: it is sent in one way that the text does not call one-directional."""
    from jax.experimental import topologies

    tpu_devices()
    chips = topologies.get_topology_desc(platform="tpu", topology_name="v5p:4x4x4")
    mesh = topologies.make_mesh(chips, (4, 16), ("x", "y"))
    for axes, rows, links in ((("x", "y"), 64, 6), ("y", 16, 4), ("x", 4, 2)):
        [large] = cost(lambda t: t.sum(0), plan(mesh, (rows, 4096, 1024), axes))
        assert (large.kind, large.links) == ("all-reduce", links)
        [small] = cost(lambda t: t.sum(0), plan(mesh, (rows, 128), axes))
        assert (small.kind, small.links) == ("all-reduce", None)


def test_tpu_slices_of_a_large_system_are_named():
    from jax.experimental import topologies

    tpu_devices()
    slices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2", num_slices=2).devices
    mesh = Mesh(np.array(slices).reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    with pytest.raises(UnknownConstruct, match="send"):
        cost(*collective(lambda t: lax.psum(t, "x"), "x", out=P())(mesh))


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") and importlib.metadata.version("libtpu") != "0.0.52",
    reason="lesson 09 shows what libtpu 0.0.52 made",
)
def test_tpu_plan_of_lesson_09():
    """Its two layers: in the text's order, with the first product between the halves of the second gather."""
    mesh, rows = tpu_mesh((8,), ("i",)), P("i")

    def layers(x, w1, w2):
        h = jnp.tanh(x @ lax.all_gather(w1, "i", tiled=True))
        return jnp.tanh(h @ lax.all_gather(w2, "i", tiled=True))

    program = jax.shard_map(layers, mesh=mesh, in_specs=(rows,) * 3, out_specs=rows)
    arguments = [plan(mesh, (n, 2048), "i", dtype=jnp.bfloat16) for n in (16384, 2048, 2048)]
    text = jax.jit(program).lower(*arguments).compile().as_text()
    [lesson] = [path for path in notebooks.lessons() if notebooks.number(path) == "09"]
    [cell] = [cell for cell in notebooks.read(lesson).cells if cell.id == "overlap-plan"]
    operations = re.findall(r'^    \("([\w.-]+)"', cell.source, re.M)
    main = text[text.index("\nENTRY") :]
    places = [main.index(f"%{name} = ") for name in operations]
    assert len(operations) == 5 and places == sorted(places)
    fused = re.search(rf"%{re.escape(operations[2])} = .*calls=%([\w.-]+)", main)[1]
    body = text[text.index(f"%{fused} (") :].partition("\n}")[0]
    assert all(f" {opcode}(" in body for opcode in ("convolution", "tanh", "all-gather"))
