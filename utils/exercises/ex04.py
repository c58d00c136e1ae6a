"""Exercises of notebook 04, Steering the compiler with constraints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from utils.count.cost import Cost, cost
from utils.exercises import Wrong, exercise, same, spell
from utils.mesh import make_mesh


def _mesh():
    return make_mesh((2, 4), ("x", "y"))


def _said(found: Cost) -> str:
    return ", ".join(f"{c.kind} of {c.bytes_sent:,} bytes" for c in found) or "nothing"


def _array(value):
    """What a compiled function returns must be an array; say so before JAX says it in its own way."""
    if not isinstance(value, jax.Array):
        raise Wrong(f"You return a {type(value).__name__}, {value!r}; expected an array.")
    return value


def _plan(mesh, shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def _judge_spread_row_sums(answer):
    mesh = _mesh()
    t = jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, P("x", "y")))

    def program(t):
        return _array(answer(t, mesh))

    got = jax.jit(program)(t)
    # By hand: row i is 8 i + 0 ... 8 i + 7, so its sum is 64 i + 28.
    same(got, np.float32(64 * np.arange(8) + 28), "Your row sums")
    if len({str(shard.index) for shard in got.addressable_shards}) < 8:
        raise Wrong(
            f"Your sums are laid out as {spell(got.sharding)}: several devices hold the same. One sum on each device is asked."
        )
    found = cost(program, t)
    if len(found) > 1 or found.bytes_sent > 24:
        raise Wrong(
            f"Each device sends {_said(found)}. After the sum, the four devices of a mesh row hold the same four sums, and each should keep "
            "one of these. Which order of the two names gives it that one?"
        )


@exercise(
    _judge_spread_row_sums,
    "The rows are cut by 'x' already. One entry with two names, the one that cuts already first: it changes slowest.",
)
def spread_row_sums(t, mesh):
    """Return the row sums of t, one on each device, without another collective."""
    return jax.lax.with_sharding_constraint(t.sum(axis=1), NamedSharding(mesh, P(("x", "y"))))


def _judge_lean_mlp(answer):
    mesh = _mesh()

    def program(x, w1, w2):
        return _array(answer(x, w1, w2, mesh))

    rng = np.random.default_rng(0)
    x, w1, w2 = (rng.normal(size=shape).astype(np.float32) for shape in ((16, 128), (128, 512), (512, 128)))
    want = np.maximum(x @ w1, 0) @ w2
    got = jax.jit(program)(x, w1, w2)
    if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=1e-2):
        raise Wrong(
            "The result is not relu(x @ w1) @ w2. A constraint never changes a value: start with the network as it was."
        )
    plans = _plan(mesh, (1024, 128), "x"), _plan(mesh, (128, 512), "x", None), _plan(mesh, (512, 128), "x", None)
    found = cost(program, *plans)
    if found.bytes_sent <= 262_144:
        return
    kinds = {c.kind for c in found}
    if found.bytes_sent == 524_288:
        why = "as many as without a constraint. Which two values does the compiler move in pieces, and how should they be laid out while they are used?"
    elif "all-reduce" in kinds:
        why = "partial sums are added up. Some value is cut along a contraction; the weights should be whole while they are used."
    elif found.bytes_sent < 524_288:
        why = "one of the two weights is still moved in pieces. Constrain both."
    else:
        why = "more than without. The examples should stay as they are, cut by 'x', and both weights should be whole while they are used."
    raise Wrong(f"Each device sends {found.bytes_sent:,} bytes ({_said(found)}): {why}")


@exercise(
    _judge_lean_mlp,
    "Every device needs both weights whole, for its own examples. with_sharding_constraint(w, NamedSharding(mesh, P())).",
)
def lean_mlp(x, w1, w2, mesh):
    """Return relu(x @ w1) @ w2, sending only the missing halves of the weights."""
    whole = NamedSharding(mesh, P())
    w1 = jax.lax.with_sharding_constraint(w1, whole)
    w2 = jax.lax.with_sharding_constraint(w2, whole)
    return jax.nn.relu(x @ w1) @ w2


def _judge_right_scores(answer):
    mesh = _mesh()
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(64, 128)).astype(np.float32), rng.integers(0, 128, 64)
    want = scores[np.arange(64), labels]
    sharding = NamedSharding(mesh, P(("x", "y")))
    placed = jax.device_put(scores, sharding), jax.device_put(labels, sharding)

    def program(scores, labels):
        return _array(answer(scores, labels))

    got = jax.jit(program)(*placed)
    same(got, want, "Your scores")
    found = cost(program, *placed)
    if len(found):
        raise Wrong(
            f"Right values, and each device sends {_said(found)}. The compiler does not know that row i needs only row i. Say it: "
            "one example at a time, mapped over the batch."
        )


@exercise(
    _judge_right_scores,
    "Write the function of one example, a row of scores and one label. Then jax.vmap it.",
)
def right_scores(scores, labels):
    """Return scores[i, labels[i]] for each row i, without communication."""
    return jax.vmap(lambda row, label: row[label])(scores, labels)


def _judge_typed_product(answer):
    mesh = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    one = jax.device_put(jnp.arange(64.0 * 64).reshape(64, 64) % 7, NamedSharding(mesh, P(None, "x")))
    two = jax.device_put(jnp.eye(64) + 1, NamedSharding(mesh, P("x", None)))
    try:
        got = answer(one, two, mesh)
    except Wrong as wrong:
        if "ShardingTypeError" not in str(wrong):
            raise
        raise Wrong(
            f"{wrong} Both operands cut the contraction, so JAX asks you for the layout of the result."
        ) from wrong
    want = jax.device_put(np.asarray(one) @ np.asarray(two), NamedSharding(mesh, P("x", None)))
    if isinstance(got, jax.Array) and got.shape == (64, 64) and not got.sharding.is_equivalent_to(want.sharding, 2):
        raise Wrong(
            f"Your product has the type {jax.typeof(got)}; expected float32[64@x,64]. out_sharding says so (or reshard what you have)."
        )
    same(got, want, "Your product")


@exercise(
    _judge_typed_product,
    "jnp.matmul takes out_sharding, a NamedSharding of the typed mesh.",
)
def typed_product(a, b, mesh):
    """Return a @ b of the type float32[64@x,64]; both cut the contraction by x."""
    return jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P("x", None)))
