"""Bytes that leave a machine, worked out by hand for each kind of collective."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.count.hlo import UnknownConstruct
from utils.count.machines import leaving
from utils.mesh import make_mesh

HALVES = [0, 0, 0, 0, 1, 1, 1, 1]
TURNS = [0, 1] * 4
SHARED, CUT = P(), P("i")


def sent(f, out=SHARED, axes=((8,), ("i",)), spec=CUT):
    """Of 64 float32, 8 a device."""
    program = jax.shard_map(f, mesh=make_mesh(*axes), in_specs=spec, out_specs=out, check_vma=False)
    return cost(jax.jit(program), jnp.arange(64.0))


def test_a_ring_comes_to_each_machine_once():
    total = sent(lambda x: lax.psum(x, "i"))  # 32 bytes: 2 x 7/8 x 32 = 56
    gathered = sent(lambda x: lax.all_gather(x, "i"))  # 7 x 32 = 224
    for machines in (HALVES, TURNS):
        assert leaving(total, machines) == {0: 56, 1: 56}
        assert leaving(gathered, machines) == {0: 224, 1: 224}
    assert leaving(total, [0, 0, 1, 1, 2, 2, 3, 3]) == dict.fromkeys(range(4), 56)
    assert leaving(total, [5] * 8) == {5: 0}


@pytest.mark.parametrize(("along", "halves", "turns"), [("x", 4 * 32, 0), ("y", 0, 2 * 48)])
def test_groups_on_one_machine_send_nothing_out(along, halves, turns):
    """x, 2: four groups, 2 x 1/2 x 32 = 32 bytes each. y, 4: two groups, 2 x 3/4 x 32 = 48 each."""
    found = sent(lambda x: lax.psum(x, along), P(("x", "y")), ((2, 4), ("x", "y")), P(("x", "y")))
    assert leaving(found, HALVES) == {0: halves, 1: halves}
    assert leaving(found, TURNS) == {0: turns, 1: turns}  # places 0 and 4, the first pair along x, are both on 0


def test_pairs_and_pieces_count_where_they_cross():
    right = sent(lambda x: lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]), P("i"))
    assert leaving(right, HALVES) == {0: 32, 1: 32}  # 3 -> 4 and 7 -> 0
    assert leaving(right, TURNS) == {0: 128, 1: 128}
    pieces = sent(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), P("i"))
    assert leaving(pieces, HALVES) == {0: 64, 1: 64}  # four devices send a piece of 4 bytes to each of four
    uneven = [0] * 6 + [1] * 2
    assert leaving(pieces, uneven) == {0: 48, 1: 48}  # 6 x 2 x 4 and 2 x 6 x 4


def test_what_is_not_known_is_an_error():
    found = sent(lambda x: lax.psum(x, "i"))
    with pytest.raises(ValueError, match="8 devices, and you say of 4"):
        leaving(found, [0] * 4)
    odd = found.__class__((found.collectives[0].__class__("send", (), (), ((0, 1),), 1),), 0, None, 8)
    with pytest.raises(UnknownConstruct, match="send"):
        leaving(odd, HALVES)
