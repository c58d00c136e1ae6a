"""Test compilation for absent devices. Skip the tests for GPUs or TPUs if their compiler isn't installed."""

from __future__ import annotations

import importlib.util
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from programs import counted, make_mesh, plan
from shardcost import assert_cost, cost, targets

RELEASE = tuple(int(n) for n in re.findall(r"\d+", jax.__version__)[:2])
HAS_CUDA = any(importlib.util.find_spec(f"jax_cuda{n}_plugin") for n in (12, 13)) and RELEASE >= (0, 10)
HAS_TPU = bool(importlib.util.find_spec("libtpu")) and RELEASE >= (0, 10)
on_gpu = pytest.mark.skipif(not HAS_CUDA, reason="JAX's CUDA plugin isn't installed, or it's too old")
on_tpu = pytest.mark.skipif(not HAS_TPU, reason="libtpu isn't installed, or JAX is too old")
EVERY_TARGET = [
    pytest.param("cpu:8"),
    pytest.param("h100:8", marks=on_gpu),
    pytest.param("h100:2x4", marks=on_gpu),
    pytest.param("v5e:2x4", marks=on_tpu),
]


def layer(w, x):
    return jnp.tanh(x @ w).sum()


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_the_mesh_of_the_arguments_is_rebuilt(target):
    """Test that only the sum of a 4-byte scalar over 8 devices communicates, and that it sends 2 (7/8) 4 bytes."""
    mesh = make_mesh((2, 4), ("x", "y"))
    report = cost(layer, plan(mesh, (16, 16)), plan(mesh, (64, 16), ("x", "y")), target=target)
    assert counted(report) == [("all-reduce", "x, y", 1, 7)]
    assert (report.devices, report.axes) == (8, (("x", 2), ("y", 4)))
    assert report.flops == 2 * 8 * 16 * 16
    assert report.memory and report.memory.arguments >= 4 * (16 * 16 + 8 * 16)
    [source] = report.by_source()
    assert source.endswith(f"test_targets.py:{layer.__code__.co_firstlineno + 1}")


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_a_function_that_refers_to_its_own_mesh(target):
    """Test a sum of 64 bytes over x, which sends 2 (1/2) 64 bytes, after a sharding constraint that sends nothing."""
    mesh = make_mesh((2, 4), ("x", "y"))

    @jax.jit
    def f(t):
        t = lax.with_sharding_constraint(t * 2, NamedSharding(mesh, P("x")))
        return jax.shard_map(lambda t: lax.psum(t, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(t)

    report = cost(f, plan(mesh, (8, 4), "x"), target=target)
    assert counted(report) == [("all-reduce", "x", 1, 64)]
    assert report.collectives[0].source.operation == "psum"  # type: ignore[union-attr]


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_shardings_in_the_signature(target):
    """Test that gathering rows of 64 bytes sends 7 x 64 bytes, and that a donated argument remains donated."""
    mesh = make_mesh((8,), ("x",))
    rows, full = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    f = jax.jit(lambda t: t + 1, in_shardings=rows, out_shardings=full)
    report = cost(f, jax.ShapeDtypeStruct((8, 16), jnp.float32), target=target)
    assert [(c.kind, c.bytes_sent) for c in report] == [("all-gather", 448)]
    g = jax.jit(lambda t: t + 1, in_shardings=rows, out_shardings=rows, donate_argnums=0)
    report = cost(g, jax.ShapeDtypeStruct((8, 16), jnp.float32), target=target)
    assert report.memory and report.memory.donated >= 64


@pytest.mark.parametrize("target", EVERY_TARGET)
def test_real_arrays_keys_and_plain_numbers(target):
    mesh = make_mesh((8,), ("x",))
    x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("x")))

    def f(x, scale, key, bias):
        return (x * scale + bias + jax.random.normal(key, (4,))).sum()

    report = cost(f, x, 2.0, jax.random.key(0), np.ones(4, np.float32), target=target)
    assert counted(report) == [("all-reduce", "x", 1, 7)]


@on_gpu
def test_explicit_axes():
    mesh = Mesh(np.array(jax.devices()).reshape(8), ("x",), axis_types=(AxisType.Explicit,))
    x = plan(mesh, (8, 4), "x")
    with jax.set_mesh(mesh):
        report = cost(lambda x: x.sum(), x, target="h100:8")
    assert counted(report) == [("all-reduce", "x", 1, 7)]


@on_gpu
def test_a_function_that_refers_to_the_mesh_that_is_set():
    """Test a gather in which each device sends a 16-byte row to the seven others: 7 x 16 bytes."""
    mesh = Mesh(np.array(jax.devices()).reshape(8), ("x",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        first = jax.shard_map(lambda x: x[:1], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        report = cost(lambda x: jax.sharding.reshard(first(x), P()), plan(mesh, (16, 4), "x"), target="h100:8")
    assert counted(report) == [("all-gather", "x", 1, 112)]


@on_gpu
def test_more_devices_than_this_machine_has():
    """Test that summing 4 bytes over 64 GPUs in eight machines sends 2 (63/64) 4 bytes."""
    mesh = AbstractMesh((64,), ("x",), axis_types=(AxisType.Auto,))
    report = cost(lambda x: x.sum(), plan(mesh, (64, 4), "x"), target="h100:8x8")
    assert counted(report) == [("all-reduce", "x", 1, 8)]
    assert report.devices == 64
    assert report.by_machine([i // 8 for i in range(64)]) == dict.fromkeys(range(8), 8)


@on_gpu
@pytest.mark.parametrize("gpu", targets.GPUS)
def test_every_gpu(gpu):
    """Test a program in which each device multiplies a row by a 32 x 32 matrix, and 8 devices sum a bfloat16 scalar.

    The compiler may send the scalar as 2 or as 4 bytes, so the sum sends 2 (7/8) 2 or 2 (7/8) 4 bytes.
    """
    mesh = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))
    x = plan(mesh, (8, 32), "x", dtype=jnp.bfloat16)
    w = plan(mesh, (32, 32), None, dtype=jnp.bfloat16)
    report = cost(lambda x, w: (x @ w).sum(), x, w, target=f"{gpu}:8")
    assert report.flops == 2 * 32 * 32
    assert report.counts() == {"all-reduce": 1}
    assert report.bytes_sent in (round(2 * 7 / 8 * 2), round(2 * 7 / 8 * 4))


@on_gpu
def test_one_gpu_needs_no_mesh():
    report = cost(layer, jnp.ones((16, 16)), np.ones((64, 16), np.float32), target="h100:1")
    assert (len(report), report.flops, report.devices) == (0, 2 * 64 * 16 * 16, 1)


@on_gpu
def test_a_program_built_on_the_target_itself():
    mesh = Mesh(np.array(targets.devices("h100:8")), ("x",), axis_types=(AxisType.Auto,))
    assert_cost(lambda x: x.sum(), plan(mesh, (8, 4), "x"), collectives={"all-reduce": 1}, bytes_sent=7)


@on_gpu
def test_a_cudnn_convolution_is_refused_by_name():
    x, w = jnp.ones((8, 16, 32, 32)), jnp.ones((16, 16, 3, 3))
    with pytest.raises(ValueError, match=r"the custom call __cudnn\$convForward \(conv_general_dilated\)"):
        cost(lambda x, w: lax.conv(x, w, (1, 1), "SAME"), x, w, target="h100:1")


# Mistakes in the target or in the arguments.


@pytest.mark.parametrize("target", ["h100", "h100:0", "h100:1x2x3", "k80:8", "cpu:2x2x2", "H100:8", "v5e", "8"])
def test_an_unknown_target(target):
    with pytest.raises(ValueError, match=f"the target '{target}': pass cpu:N, a100, h100, h200, b200 with :GPUS"):
        cost(layer, 1.0, 2.0, target=target)


def test_too_few_cpu_devices():
    with pytest.raises(targets.TargetError, match=r"cpu:16 needs 16 CPU devices, and JAX has 8: call jax.config"):
        cost(layer, 1.0, 2.0, target="cpu:16")


def test_a_different_number_of_devices():
    x = plan(make_mesh((2, 2), ("x", "y")), (8, 4), "x")
    with pytest.raises(ValueError, match="the arguments' mesh has 4 devices, and cpu:8 has 8"):
        cost(lambda x: x + 1, x, target="cpu:8")
    with pytest.raises(ValueError, match="the program runs on 1 devices, and cpu:8 has 8"):
        cost(lambda x: x + 1, jnp.ones(4), target="cpu:8")


def test_several_meshes():
    x, y = plan(make_mesh((8,), ("x",)), (8, 4), "x"), plan(make_mesh((8,), ("y",)), (8, 4), "y")
    with pytest.raises(ValueError, match="shardings on different meshes"):
        cost(lambda x, y: x + y, x, y, target="cpu:8")


def test_errors_of_the_function_propagate():
    mesh = make_mesh((8,), ("x",))
    with pytest.raises((ValueError, TypeError), match=r"incompatible shapes|dot_general requires"):
        cost(lambda x, y: x @ y, plan(mesh, (8, 4), "x"), plan(mesh, (8, 4), "x"), target="cpu:8")


@pytest.mark.parametrize(
    ("target", "package", "message"),
    [
        ("h100:8", "jax_cuda1", r'h100 needs JAX\'s CUDA plugin, but no GPU: pip install "jax-cuda12-plugin==[\d.]+" '),
        ("v5e:2x4", "libtpu", r'v5e needs libtpu, .*: pip install "jax\[tpu\]==[\d.]+"'),
    ],
)
@pytest.mark.skipif(RELEASE < (0, 10), reason="older versions have a different message")
def test_a_missing_package_is_named(monkeypatch, target, package, message):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.startswith(package) else find(name))
    with pytest.raises(targets.TargetError, match=message):
        cost(layer, 1.0, 2.0, target=target)


def test_an_old_jax_is_named(monkeypatch):
    monkeypatch.setattr(jax, "__version__", "0.7.2")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    for target in ("h100:8", "v5e:2x4"):
        with pytest.raises(targets.TargetError, match=r"JAX 0\.7\.2 cannot compile for absent devices"):
            cost(layer, 1.0, 2.0, target=target)


@pytest.mark.parametrize(
    "target", ["cpu:8", pytest.param("h100:8", marks=on_gpu), pytest.param("v5e:2x4", marks=on_tpu)]
)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize(
    ("f", "left", "right", "flops"),
    [
        (jnp.matmul, (512, 256), (256,), 2 * 64 * 256),
        (jnp.matmul, (8, 256), (256, 128), 2 * 256 * 128),
        (jax.vmap(jnp.matmul), (16, 64, 32), (16, 32), 2 * 2 * 64 * 32),
        (jax.vmap(jnp.dot), (16, 64), (16, 64), 0),
    ],
    ids=["matrix, vector", "row, matrix", "batch of matrix, vector", "vectors"],
)
def test_products_with_a_vector(target, dtype, f, left, right, flops):
    """Test products that GPU and TPU compilers turn into a multiplication and a sum, often in two fusions.

    The rows of the left matrix, or the products in a batch, are divided among 8 devices.
    """
    mesh = make_mesh((8,), ("x",))
    weights = (
        plan(mesh, right, "x", dtype=dtype) if len(left) == 3 or f is not jnp.matmul else plan(mesh, right, dtype=dtype)
    )
    assert cost(f, plan(mesh, left, "x", dtype=dtype), weights, target=target).flops == flops
