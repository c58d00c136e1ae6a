"""What stood where, and what was sent, while a function ran. The expected bytes are worked out by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework.tracer import trace, was_fetched
from utils.mesh import make_mesh

WHOLE = 1024 * 512 * 4
PIECE = WHOLE // 8


@pytest.fixture
def cut(devices):
    return NamedSharding(make_mesh((2, 4), ("x", "y")), P("x", "y"))


def make(key):
    return jax.random.normal(key, (1024, 512))


def read(index):
    return np.ones((1024, 512), np.float32)[index].copy()


@pytest.mark.parametrize(
    "answer",
    [
        lambda key, cut: jax.device_put(make(key), cut),
        lambda key, cut: jax.jit(lambda w: w, out_shardings=cut)(make(key)),
        lambda key, cut: jax.lax.with_sharding_constraint(make(key), cut),
        lambda key, cut: jnp.zeros((1024, 512), device=cut) + make(key),
    ],
)
def test_the_whole_on_one_device_is_seen(answer, cut):
    assert trace(answer, jax.random.key(0), cut).peak_bytes >= WHOLE


def test_pieces_made_in_place_are_no_more_than_pieces(cut):
    seen = trace(lambda key: jax.jit(make, out_shardings=cut)(key), jax.random.key(0))
    assert seen.peak_by_device == dict.fromkeys(range(8), PIECE)
    assert seen.result.sharding == cut
    assert seen.peak_bytes == PIECE and not seen.fetched


def test_a_shard_and_its_array_are_one(cut):
    def singles(cut):
        held = [jax.device_put(read(index), device) for device, index in cut.devices_indices_map((1024, 512)).items()]
        array = jax.make_array_from_single_device_arrays((1024, 512), cut, held)
        return array, [shard.data for shard in array.addressable_shards]

    assert trace(singles, cut).peak_bytes == PIECE


def test_a_change_of_layout_through_the_host_is_seen(cut):
    other = NamedSharding(cut.mesh, P(None, ("x", "y")))
    array = jax.jit(lambda: jnp.zeros((1024, 512)), out_shardings=cut)()
    compiled = trace(lambda: jax.jit(lambda w: w, out_shardings=other)(array))
    assert not compiled.fetched and not was_fetched(array)
    assert trace(lambda: jax.device_put(array, other)).fetched == {(1024, 512)}
    assert was_fetched(array)


def test_what_was_computed(cut):
    """By hand: a square and a sum are two for each value; placing computes nothing, and an old program is not seen."""
    host, sums = read(...), jax.jit(lambda array: (array * array).sum())
    assert trace(lambda: jax.device_put(host, cut)).flops == 0
    assert 2 * host.size <= trace(lambda: sums(jax.device_put(host, cut))).flops < 2.1 * host.size
    assert trace(lambda: sums(jax.device_put(host, cut))).flops == 0


def test_what_an_answer_raises_goes_through_and_watching_ends():
    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        trace(broken)
    assert trace(lambda: 3).result == 3
