"""Compile the corpus's programs for one target, and write their program texts beside this file.

    python compile_corpus.py cpu|h100|v5e [PROGRAM ...]

`test_corpus.py` contains the expected costs, calculated manually from the programs below. The mesh has eight devices
along d, or 2 x 4 along x and y. Arrays named `rows` are sharded along axis 0, and those named `tiles` along both axes.
"""

import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcost import targets

PROGRAMS = {}
ROWS = P("d")
TARGETS = {"cpu": "cpu:8", "h100": "h100:8", "v5e": "v5e:2x4"}


def program(*arrays):
    """Return a decorator that adds a function of `arrays`, each given as (shape, dtype, *spec), to the corpus."""

    def add(function):
        PROGRAMS[function.__name__] = function, arrays
        return function

    return add


def on_shards(function, out=ROWS):
    return jax.shard_map(function, mesh=MESH, in_specs=ROWS, out_specs=out, check_vma=False)


@program(((64, 16), "float8_e4m3fn", "d"))
def gather_float8(rows):
    return on_shards(lambda t: lax.all_gather(t, "d", tiled=True), P())(rows)


@program(((64, 16), "int4", "d"))
def gather_int4(rows):
    return on_shards(lambda t: lax.all_gather(t, "d", tiled=True), P())(rows)


@program(((64, 16), "bool", "d"))
def gather_bool(rows):
    return on_shards(lambda t: lax.all_gather(t, "d", tiled=True), P())(rows)


@program(((64, 16), "complex64", "d"))
def sum_complex(rows):
    return on_shards(lambda t: lax.psum(t, "d"), P())(rows)


@program(((64, 16), "bfloat16", "d"))
def permute_bfloat16(rows):
    return on_shards(lambda t: lax.ppermute(t, "d", [(i, (i + 1) % 8) for i in range(7)]))(rows)


@program(((64, 64), "float32", "d"))
def all_to_all_in_a_scan(rows):
    def iteration(t, _):
        return jnp.sin(lax.all_to_all(t, "d", 1, 0, tiled=True)).reshape(8, 64), None

    return on_shards(lambda t: lax.scan(iteration, t, None, length=3)[0])(rows)


@program(((512, 256), "bfloat16", "d"), ((256, 1024), "bfloat16", None, "d"), ((1024, 256), "bfloat16", "d"))
def tensor_parallel(rows, up, down):
    x = lax.with_sharding_constraint(rows, NamedSharding(MESH, P()))
    return lax.with_sharding_constraint(jax.nn.relu(x @ up) @ down, NamedSharding(MESH, P()))


@program(((4, 512, 512), "bfloat16", None, "d"), ((4096, 512), "bfloat16", "d"))
def fully_sharded(weights, rows):
    def layer(x, w):
        return jnp.tanh(x @ w), None

    def loss(weights):
        return (lax.scan(layer, rows, weights)[0] ** 2).sum()

    return weights - jax.grad(loss)(weights)


@program(((512, 256), "float8_e4m3fn", "d"), ((256, 128), "float8_e4m3fn"))
def product_float8(rows, w):
    return jnp.matmul(rows, w, preferred_element_type=jnp.float32)


@program(((512, 256), "bfloat16", "d"), ((256,), "bfloat16"))
def matrix_vector(rows, v):
    return rows @ v


@program(((64,), "float32", "d"))
def unknown_trip_count(rows):
    return lax.while_loop(lambda t: t.sum() > 1, lambda t: t / 2, rows)


@program(((8, 16, 32, 32), "float32", "d"), ((16, 16, 3, 3), "float32"))
def convolution(images, kernel):
    return lax.conv(images, kernel, (1, 1), "SAME")


@program(((64, 16), "float32", "d"), *[((64,), "int32", "d")] * 4)
def ragged_all_to_all(rows, *sizes):
    def send(t, *sizes):
        return lax.ragged_all_to_all(t, jnp.zeros((64, 16)), *sizes, axis_name="d")

    return jax.shard_map(send, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)(rows, *sizes)


@program(((64, 16), "float32", "d"))
def gather_float32(rows):
    return on_shards(lambda t: lax.all_gather(t, "d", tiled=True), P())(rows)


@program(((64, 16), "bfloat16", "d"))
def gather_bfloat16(rows):
    return on_shards(lambda t: lax.all_gather(t, "d", tiled=True), P())(rows)


@program(((64, 16), "float16", "d"))
def gather_float16(rows):
    return on_shards(lambda t: lax.all_gather(t, "d", tiled=True), P())(rows)


@program(((64, 16), "float32", "d"))
def scatter_sum(rows):
    return on_shards(lambda t: lax.psum_scatter(t, "d", tiled=True))(rows)


@program(((4096, 256), "bfloat16", "d"))
def scatter_sum_bfloat16(rows):
    return on_shards(lambda t: lax.psum_scatter(t, "d", tiled=True))(rows)


@program(((64, 16), "float64", "d"))
def sum_float64(rows):
    return on_shards(lambda t: lax.psum(t, "d"), P())(rows)


@program(((64, 64), "int8", "d"))
def all_to_all_int8(rows):
    return on_shards(lambda t: lax.all_to_all(t, "d", 1, 0, tiled=True))(rows)


def ring(size):
    return [(i, (i + 1) % size) for i in range(size)]


@program(((64, 16), "int4", "d"))
def permute_int4(rows):
    return on_shards(lambda t: lax.ppermute(t, "d", ring(8)))(rows)


def on_tiles(function, out):
    return jax.shard_map(function, mesh=GRID, in_specs=P("x", "y"), out_specs=out, check_vma=False)


@program(((64, 64), "float32", "x", "y"))
def permute_along_y(tiles):
    return on_tiles(lambda t: lax.ppermute(t, "y", ring(4)), P("x", "y"))(tiles)


@program(((64, 64), "float32", "x", "y"))
def sum_along_y(tiles):
    return on_tiles(lambda t: lax.psum(t, "y"), P("x"))(tiles)


@program(((64, 64), "float32", "x", "y"))
def sum_along_both(tiles):
    return on_tiles(lambda t: lax.psum(t, ("x", "y")), P())(tiles)


@program(((64, 16), "float32", "d"))
def largest_and_smallest(rows):
    return on_shards(lambda t: (lax.pmax(t, "d"), lax.pmin(t, "d")), P())(rows)


@program(((64, 16), "float32", "d"))
def combined_sums(rows):
    def sums(t):
        return lax.psum(jnp.sin(t), "d"), lax.psum(t.sum(0), "d"), lax.psum(t.sum(1), "d")

    return on_shards(sums, P())(rows)


@program(((64, 16), "float32", "d"))
def nested_scans(rows):
    def iteration(t, _):
        return jnp.sin(lax.psum(t, "d")), None

    def turns(t, _):
        return lax.scan(iteration, t + 1, None, length=4)[0], None

    return on_shards(lambda t: lax.scan(turns, t, None, length=3)[0])(rows)


@program(((64, 16), "float32", "d"))
def two_collectives_in_a_scan(rows):
    def iteration(t, _):
        return lax.ppermute(jnp.sin(t), "d", ring(8)) * lax.psum(jnp.cos(t), "d"), None

    return on_shards(lambda t: lax.scan(iteration, t, None, length=3)[0])(rows)


@program(((64, 16), "float32", "d"))
def counted_while(rows):
    def iteration(carried):
        return carried[0] + 3, jnp.sin(lax.psum(carried[1], "d"))

    return on_shards(lambda t: lax.while_loop(lambda carried: carried[0] < 10, iteration, (0, t))[1])(rows)


@program(((64, 16), "float32", "d"), ((5,), "int64"))
def ring_with_int64(rows, rounds):
    def turn(t, r):
        return jnp.sin(lax.ppermute(t, "d", ring(8)) + r.astype("float32")), None

    def turns(t, rounds):
        return lax.scan(turn, t, rounds)[0]

    return jax.shard_map(turns, mesh=MESH, in_specs=(ROWS, P()), out_specs=ROWS, check_vma=False)(rows, rounds)


@program(((64, 16), "float32", "d"), ((16, 16), "float32"), ((), "bool"))
def branches(rows, w, flag):
    def choose(t, w, flag):
        return lax.cond(flag, lambda: lax.psum(t, "d"), lambda: lax.ppermute(t @ w, "d", ring(8)))

    return jax.shard_map(choose, mesh=MESH, in_specs=(ROWS, P(), P()), out_specs=ROWS, check_vma=False)(rows, w, flag)


@program(((4, 16, 16), "bfloat16", None, "d"), ((64, 16), "bfloat16", "d"))
def checkpointed(weights, rows):
    @jax.checkpoint
    def layer(t, w):
        return jnp.tanh(t @ lax.all_gather(w, "d", tiled=True)), None

    def layers(weights, t):
        return lax.scan(layer, t, weights)[0]

    specs = P(None, "d"), ROWS
    network = jax.shard_map(layers, mesh=MESH, in_specs=specs, out_specs=ROWS, check_vma=False)
    return jax.grad(lambda weights: (network(weights, rows) ** 2).sum())(weights)


@program(((64, 32), "float32", "d"), ((32, 64), "float32"), ((64, 16), "float32"))
def data_parallel(rows, *weights):
    def loss(weights):
        return ((jnp.tanh(rows @ weights[0]) @ weights[1]) ** 2).sum()

    return lax.with_sharding_constraint(jax.grad(loss)(weights), NamedSharding(MESH, P()))


@program(((16, 16), "float32"), ((64, 16), "float32", "d"))
@lambda step: jax.jit(step, donate_argnums=0)
def donated(w, rows):
    return lax.with_sharding_constraint(w - rows.T @ jnp.tanh(rows @ w), NamedSharding(MESH, P()))


@program(((512, 256), "bfloat16", "d"), ((1024, 1024), "bfloat16"))
def overlapped(rows, w):
    return lax.with_sharding_constraint((rows, w @ w), NamedSharding(MESH, P()))


@program(((64, 256), "float8_e4m3fn", None, "d"), ((256, 128), "float8_e4m3fn", "d"))
def sum_of_products_float8(columns, rows):
    product = jnp.matmul(columns, rows, preferred_element_type=jnp.float32)
    return lax.with_sharding_constraint(product, NamedSharding(MESH, P()))


@program(((64, 32), "complex64", "d"), ((32, 16), "complex64"))
def product_complex(rows, w):
    return rows @ w


@program(((16, 32, 64), "float32", "d"), ((16, 64, 32), "float32", "d"))
def product_batched(left, right):
    return jnp.einsum("bij,bjk->bik", left, right)


@program(((64, 32), "float32", "d"))
def product_transposed(rows):
    return lax.with_sharding_constraint(rows.T @ rows, NamedSharding(MESH, P()))


if __name__ == "__main__":
    target = sys.argv[1]
    jax.config.update("jax_num_cpu_devices", 8)
    devices = np.array(targets.devices(TARGETS[target]))
    MESH = Mesh(devices, ("d",), axis_types=(AxisType.Auto,))
    GRID = Mesh(devices.reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    for name, (function, arrays) in PROGRAMS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        jax.config.update("jax_enable_x64", any(dtype in ("float64", "int64") for _, dtype, *_ in arrays))
        arguments = [
            jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=NamedSharding(mesh, P(*spec)))
            for shape, dtype, *spec in arrays
            for mesh in [GRID if "y" in spec else MESH]
        ]
        try:
            step = function if hasattr(function, "lower") else jax.jit(function)
            text = step.lower(*arguments).compile().as_text()
        except (jax.errors.JaxRuntimeError, ValueError, TypeError) as error:
            print(f"{name}: not compiled: {str(error).splitlines()[0][:120]}")
            continue
        text = text.replace(str(Path(__file__)), "compile_corpus.py")
        path = Path(__file__).with_name(f"{name}.{target}.jax-{jax.__version__}.txt")
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text):,} characters")
