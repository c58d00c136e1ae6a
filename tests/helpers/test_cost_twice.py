"""The counter against a second opinion: programs run step by step on six devices, with everything they send priced.

The mesh is 2 x 3, so that no two axes, and no axis and a number of rounds, give the same numbers by chance.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.helpers.second_opinion import Opinion
from utils.count.cost import cost

BOTH = ("x", "y")
RING = [(i, (i + 1) % 3) for i in range(3)]


def sums(t, w):
    """Of several arrays at once, over one axis, two, and as a maximum."""
    a, b = lax.psum((jnp.sin(t), t[:, :3]), "x")
    return t + a * lax.pmax(t, BOTH) + lax.pmean(b.sum(), "y")


def gathers(t, w):
    rows = lax.all_gather(t, "y", tiled=True)  # (12, 6)
    return t @ rows.T @ rows + lax.all_gather(jnp.cos(t), BOTH).sum(0)


def scattered(t, w):
    kept = lax.psum_scatter(jnp.concatenate([t, 2 * t, 3 * t]), "y", tiled=True)
    return lax.all_to_all(jnp.sin(kept), "x", 0, 0, tiled=True) + lax.all_to_all(t, "y", 1, 1, tiled=True)


def permutes(t, w):
    """All to the right; one device to another; nobody."""
    right, some, none = (lax.ppermute(t, axis, pairs) for axis, pairs in (("y", RING), ("x", [(1, 0)]), ("x", [])))
    return jnp.sin(right) + some + none


def loops_in_loops(t, w):
    def turn(t, i):
        t = lax.fori_loop(1, 3, lambda j, t: jnp.sin(t + j - lax.pmean(t, "x")), t)
        return t @ w - lax.pmean(t, "y"), lax.psum(t[0, 0], "x")

    t, firsts = lax.scan(turn, t, jnp.arange(4.0), reverse=True)
    return (
        t
        + lax.scan(lambda t, i: (jnp.sin(lax.ppermute(t, "y", RING)), None), t, None, length=5, unroll=2)[0]
        + firsts[0]
    )


def counting_down(t, w):
    def turn(carried):
        i, t = carried
        return i - 3, jnp.sin(t - lax.psum(t @ w, "y") * i / 20)

    return lax.while_loop(lambda carried: carried[0] > -2, turn, (11, t))[1]  # 11, 8, 5, 2, -1


def ring_product(t, w):
    """Each device's rows against all columns, which travel round."""

    def turn(carried, _):
        total, piece = carried
        return (total + t @ piece.T @ piece, lax.ppermute(piece, "y", RING)), None

    return lax.scan(turn, (jnp.zeros_like(t), t), None, length=3)[0][0]


def stored_in_pieces(t, w):
    """Layers whose weights lie in pieces and are gathered where they are used."""

    def layer(t, piece):
        return jnp.tanh(t @ lax.all_gather(piece, "y", tiled=True)), None

    return lax.scan(layer, t, w.reshape(3, 2, 6))[0]


def two_halves(t, w):
    """A layer whose hidden features are cut: one sum after it."""
    return t + lax.psum(jnp.tanh(t @ w[:, :4]) @ w[:4], "y")


def complex_numbers(t, w):
    z = (t + 1j * jnp.cos(t)).astype(jnp.complex64)
    return lax.psum(z @ jnp.conj(z).T @ z, "y").real


def in_a_jit(t, w):
    return jax.jit(two_halves)(jax.jit(two_halves)(t, w), w)


@jax.custom_vjp
def doubled_back(t):
    return lax.psum(t, "y")


doubled_back.defvjp(lambda t: (lax.psum(t, "y"), None), lambda _, g: (2 * lax.all_gather(g, "x").sum(0),))


def own_gradient(t, w):
    return jnp.sin(doubled_back(t @ w))


def on_mesh(devices, function):
    mesh = Mesh(np.array(devices[:6]).reshape(2, 3), BOTH, axis_types=(AxisType.Auto,) * 2)
    return mesh, jax.shard_map(function, mesh=mesh, in_specs=(P("x", "y"), P()), out_specs=P("x", "y"), check_vma=False)


def arguments(mesh):
    """Whole arrays, (8, 18) in pieces of (4, 6) and (6, 6) on each device; and the same laid out."""
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(8, 18)).astype(np.float32), rng.normal(size=(6, 6)).astype(np.float32) / 3
    specs = P("x", "y"), P()
    return whole, [jax.device_put(a, NamedSharding(mesh, spec)) for a, spec in zip(whole, specs, strict=True)]


def agree(mesh, program):
    """Compile once; compare values, bytes of each kind, and FLOPs."""
    whole, laid_out = arguments(mesh)
    compiled = jax.jit(program).lower(*laid_out).compile()
    opinion = Opinion(mesh)
    for ours, theirs in zip(
        jax.tree.leaves(opinion.run(program, *whole)), jax.tree.leaves(compiled(*laid_out)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    found = cost(compiled)
    assert {kind: sent for kind, sent in found.by_kind().items() if sent} == opinion.bytes_by_kind
    assert found.flops == max(opinion.flops.values())


FORWARD = [sums, gathers, scattered, permutes, loops_in_loops, counting_down, ring_product, in_a_jit, complex_numbers]
BACKWARD = [scattered, ring_product, stored_in_pieces, own_gradient]


@pytest.mark.parametrize("function", FORWARD)
def test_forward(function, devices):
    agree(*on_mesh(devices, function))


@pytest.mark.parametrize("function", BACKWARD)
def test_with_its_gradients(function, devices):
    mesh, program = on_mesh(devices, function)
    agree(mesh, jax.grad(lambda t, w: (program(t, w) ** 2).mean(), (0, 1)))


def test_rounds_that_only_the_run_knows(devices):
    """Halved until the sum over all devices is small: the run counts the rounds, and the reader says so."""

    def f(t, w):
        return lax.while_loop(lambda t: lax.psum(jnp.abs(t).sum(), BOTH) > 1, lambda t: lax.pmean(t, "x") / 2, t)

    mesh, program = on_mesh(devices, f)
    whole, laid_out = arguments(mesh)
    opinion = Opinion(mesh)
    opinion.run(program, *whole)
    [rounds] = opinion.rounds
    assert rounds > 3
    assert cost(program, *laid_out, rounds=rounds).by_kind() == opinion.bytes_by_kind


def test_a_branch_that_some_devices_take(devices):
    """Only the second half of the mesh multiplies: the busiest device computes what the dearest branch does."""

    def f(t, w):
        return lax.cond(lax.axis_index("x") == 1, lambda t: t @ w @ w, lambda t: 2 * t, lax.psum(t, "y"))

    mesh, program = on_mesh(devices, f)
    whole, laid_out = arguments(mesh)
    opinion = Opinion(mesh)
    opinion.run(program, *whole)
    found = cost(program, *laid_out, branches="dearest")
    assert found.by_kind() == opinion.bytes_by_kind
    assert set(opinion.flops.values()) == {0, found.flops}
