"""Compile the programs of the corpus for one target, and write their texts beside this file.

    python compile_corpus.py cpu|h100|v5e

`test_corpus.py` has the expected costs, which are worked out by hand from the programs below. The mesh has eight devices
along the axis d; arrays named `rows` are sharded along axis 0.
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
CHIP = {"cpu": "cpu:8", "h100": "h100:8", "v5e": "v5e:2x4"}


def program(*arrays):
    """Add a function to the corpus. Each array is (shape, dtype, *spec)."""

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
    def turn(t, _):
        return jnp.sin(lax.all_to_all(t, "d", 1, 0, tiled=True)).reshape(8, 64), None

    return on_shards(lambda t: lax.scan(turn, t, None, length=3)[0])(rows)


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


if __name__ == "__main__":
    target = sys.argv[1]
    jax.config.update("jax_num_cpu_devices", 8)
    MESH = Mesh(np.array(targets.devices(CHIP[target])), ("d",), axis_types=(AxisType.Auto,))
    for name, (function, arrays) in PROGRAMS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        arguments = [
            jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=NamedSharding(MESH, P(*spec)))
            for shape, dtype, *spec in arrays
        ]
        try:
            text = jax.jit(function).lower(*arguments).compile().as_text()
        except (jax.errors.JaxRuntimeError, ValueError, TypeError) as error:
            print(f"{name}: not compiled: {str(error).splitlines()[0][:120]}")
            continue
        text = text.replace(str(Path(__file__)), "compile_corpus.py")
        path = Path(__file__).with_name(f"{name}.{target}.jax-{jax.__version__}.txt")
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text):,} characters")
