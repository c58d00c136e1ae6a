"""Wrong answers to the exercises of notebook 04."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import ex04


def constrained(*specs):
    """The network with these specs for w1, w2 and the hidden layer; None for no constraint."""

    def network(x, w1, w2, mesh):
        def put(value, spec):
            return value if spec is None else jax.lax.with_sharding_constraint(value, NamedSharding(mesh, spec))

        return put(jax.nn.relu(x @ put(w1, specs[0])), specs[2]) @ put(w2, specs[1])

    return network


def spread(*spec):
    return lambda t, mesh: jax.lax.with_sharding_constraint(t.sum(axis=1), NamedSharding(mesh, P(*spec)))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex04.spread_row_sums: [
        (spread(("y", "x")), "Which order of the two names"),
        (spread("x"), "several devices hold the same"),
        (lambda t, mesh: t.sum(axis=1), "several devices hold the same"),
        (lambda t, mesh: t.sum(axis=0), "differs in"),
    ],
    ex04.lean_mlp: [
        (constrained(None, None, None), "as many as without a constraint"),
        (constrained(P(), None, None), "one of the two weights"),
        (constrained(P(None, "y"), P("y", None), None), "partial sums are added up"),
        (lambda x, w1, w2, mesh: (x @ w1) @ w2, "The result is not relu"),
    ],
    ex04.right_scores: [
        (
            lambda scores, labels: scores[jnp.arange(64), labels],
            "does not know that row i needs only row i",
        ),
        (lambda scores, labels: scores[:, labels], "has shape (64, 64); expected (64,)"),
        (lambda scores, labels: scores.max(axis=1), "differs in"),
    ],
    ex04.typed_product: [
        (lambda a, b, mesh: a @ b, "so JAX asks you for the layout of the result"),
        (lambda a, b, mesh: jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P())), "expected float32[64@x,64]"),
        (lambda a, b, mesh: np.asarray(a) @ np.asarray(b), "is a ndarray; expected a jax.Array"),
    ],
}
