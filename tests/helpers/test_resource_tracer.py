"""Test the tracer on arrays and programs whose bytes and FLOPs are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework.resource_tracer import trace, was_fetched
from utils.mesh import make_mesh

FULL = 1024 * 512 * 4
SHARD = FULL // 8


@pytest.fixture
def sharding(devices):
    return NamedSharding(make_mesh((2, 4), ("x", "y")), P("x", "y"))


def make(key):
    return jax.random.normal(key, (1024, 512))


def read(index):
    return np.ones((1024, 512), np.float32)[index].copy()


@pytest.mark.parametrize(
    "answer",
    [
        lambda key, sharding: jax.device_put(make(key), sharding),
        lambda key, sharding: jax.jit(lambda w: w, out_shardings=sharding)(make(key)),
        lambda key, sharding: jax.lax.with_sharding_constraint(make(key), sharding),
        lambda key, sharding: jnp.zeros((1024, 512), device=sharding) + make(key),
    ],
)
def test_a_full_array_on_one_device_is_traced(answer, sharding):
    assert trace(answer, jax.random.key(0), sharding).peak_bytes >= FULL


def test_an_array_made_in_its_sharding_takes_up_only_its_shards(sharding):
    record = trace(lambda key: jax.jit(make, out_shardings=sharding)(key), jax.random.key(0))
    assert record.peak_by_device == dict.fromkeys(range(8), SHARD)
    assert record.result.sharding == sharding
    assert record.peak_bytes == SHARD and not record.fetched


def test_an_array_and_its_shards_count_once(sharding):
    def singles(sharding):
        held = [
            jax.device_put(read(index), device) for device, index in sharding.devices_indices_map((1024, 512)).items()
        ]
        array = jax.make_array_from_single_device_arrays((1024, 512), sharding, held)
        return array, [shard.data for shard in array.addressable_shards]

    assert trace(singles, sharding).peak_bytes == SHARD


def test_resharding_through_the_host_is_traced(sharding):
    other = NamedSharding(sharding.mesh, P(None, ("x", "y")))
    array = jax.jit(lambda: jnp.zeros((1024, 512)), out_shardings=sharding)()
    compiled = trace(lambda: jax.jit(lambda w: w, out_shardings=other)(array))
    assert not compiled.fetched and not was_fetched(array)
    assert trace(lambda: jax.device_put(array, other)).fetched == {(1024, 512)}
    assert was_fetched(array)


def test_flops(sharding):
    """Test that only the FLOPs of newly compiled programs count.

    Squaring and summing take two FLOPs per element, and transferring an array to the devices takes none.
    """
    host, sums = read(...), jax.jit(lambda array: (array * array).sum())
    assert trace(lambda: jax.device_put(host, sharding)).flops == 0
    assert 2 * host.size <= trace(lambda: sums(jax.device_put(host, sharding))).flops < 2.1 * host.size
    assert trace(lambda: sums(jax.device_put(host, sharding))).flops == 0


def test_errors_propagate_and_tracing_ends():
    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        trace(broken)
    assert trace(lambda: 3).result == 3
