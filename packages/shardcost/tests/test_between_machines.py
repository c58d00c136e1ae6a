"""Check the bytes that leave each machine against manual calculations for each kind of collective."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from programs import make_mesh
from shardcost import UnsupportedHloError, cost

HALVES = [0, 0, 0, 0, 1, 1, 1, 1]
ALTERNATING = [0, 1] * 4
REPLICATED, SHARDED = P(), P("i")


def cost_of(f, out=REPLICATED, axes=((8,), ("i",)), spec=SHARDED):
    """Return the cost of applying a function to 64 float32 elements, with 8 on each device."""
    program = jax.shard_map(f, mesh=make_mesh(*axes), in_specs=spec, out_specs=out, check_vma=False)
    return cost(jax.jit(program), jnp.arange(64.0))


def test_a_ring_visits_each_machine_once():
    total = cost_of(lambda x: lax.psum(x, "i"))  # operands of 32 bytes: 2 x 7/8 x 32 = 56
    gathered = cost_of(lambda x: lax.all_gather(x, "i"))  # 7 x 32 = 224
    for machines in (HALVES, ALTERNATING):
        assert total.by_machine(machines) == {0: 56, 1: 56}
        assert gathered.by_machine(machines) == {0: 224, 1: 224}
    assert total.by_machine([0, 0, 1, 1, 2, 2, 3, 3]) == dict.fromkeys(range(4), 56)
    assert total.by_machine([5] * 8) == {5: 0}


@pytest.mark.parametrize(("along", "halves", "alternating"), [("x", 4 * 32, 0), ("y", 0, 2 * 48)])
def test_groups_inside_a_machine_send_nothing_out(along, halves, alternating):
    """Check all-reduces of 32 bytes along x, in four groups of 2, and along y, in two groups of 4.

    Each device sends 2 x 1/2 x 32 = 32 bytes in a group of 2, and 2 x 3/4 x 32 = 48 bytes in a group of 4.
    """
    report = cost_of(lambda x: lax.psum(x, along), P(("x", "y")), ((2, 4), ("x", "y")), P(("x", "y")))
    assert report.by_machine(HALVES) == {0: halves, 1: halves}
    assert report.by_machine(ALTERNATING) == {
        0: alternating,
        1: alternating,
    }  # for example, machine 0 has both devices of the first pair along x, 0 and 4


def test_permutes_and_all_to_alls_count_where_they_cross():
    right = cost_of(lambda x: lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]), P("i"))
    assert right.by_machine(HALVES) == {0: 32, 1: 32}  # only the pairs 3 -> 4 and 7 -> 0 cross machines
    assert right.by_machine(ALTERNATING) == {0: 128, 1: 128}
    pieces = cost_of(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), P("i"))
    assert pieces.by_machine(HALVES) == {0: 64, 1: 64}  # four devices send 4 bytes to each of four others
    uneven = [0] * 6 + [1] * 2
    assert pieces.by_machine(uneven) == {0: 48, 1: 48}  # the machines send 6 x 2 x 4 bytes and 2 x 6 x 4 bytes


def test_unknown_routes_and_machines_are_errors():
    report = cost_of(lambda x: lax.psum(x, "i"))
    with pytest.raises(ValueError, match="runs on 8 devices, and machine_of has 4"):
        report.by_machine([0] * 4)
    odd = report.__class__((report.collectives[0].__class__("send", (), (), ((0, 1),), 1),), 0, None, 8)
    with pytest.raises(UnsupportedHloError, match="send"):
        odd.by_machine(HALVES)
