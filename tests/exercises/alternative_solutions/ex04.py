"""Provide unusual solutions to the exercises of lesson 04."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from exercises import ex04


def constrained_everywhere(params, tokens):
    rows = P(("data", "model"))
    tokens = lax.with_sharding_constraint(tokens, rows)
    x = lax.with_sharding_constraint(params["table"][tokens], rows)
    h = lax.with_sharding_constraint(jax.nn.relu(x @ params["up"]), rows)
    return lax.with_sharding_constraint(jnp.einsum("bf,fv->bv", h, params["down"]), rows)


def replicated_weights(params, tokens):
    tokens = lax.with_sharding_constraint(tokens, P(("data", "model")))
    table, up, down = (lax.with_sharding_constraint(params[k], P()) for k in ("table", "up", "down"))
    return jax.nn.relu(jnp.take(table, tokens, axis=0) @ up) @ down


def by_shard_map(params, tokens):
    def one(params, tokens):
        table, up = (lax.all_gather(params[k], "data", axis=0, tiled=True) for k in ("table", "up"))
        table, up = (lax.all_gather(w, "model", axis=1, tiled=True) for w in (table, up))
        down = lax.all_gather(lax.all_gather(params["down"], "model", axis=0, tiled=True), "data", axis=1, tiled=True)
        return jax.nn.relu(table[tokens] @ up) @ down

    specs = {"table": P("data", "model"), "up": P("data", "model"), "down": P("model", "data")}
    both = P(("data", "model"))
    return jax.shard_map(one, in_specs=(specs, both), out_specs=both)(params, tokens)


def masked(cache, positions, new):
    is_position = jnp.arange(cache.shape[1]) == positions[:, None]
    return jnp.where(is_position[:, :, None], new[:, None], cache)


def sliced(cache, positions, new):
    return jax.vmap(lambda c, p, row: lax.dynamic_update_slice(c, row[None], (p, 0)))(cache, positions, new)


def added_up(a, b):
    b = jax.sharding.reshard(b, P("y", None))

    def one(a, b):
        return lax.psum(a @ b, "y")

    replicated = jax.shard_map(one, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)
    return jax.sharding.reshard(replicated, P("x", "y"))


def scattered(a, b):
    def one(a, b):
        return lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)

    b = jax.sharding.reshard(b, P("y", None))
    return jax.shard_map(one, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


ALTERNATIVES = {
    ex04.all_rows: [constrained_everywhere, replicated_weights, by_shard_map],
    ex04.write_rows: [masked, sliced],
    ex04.distributed_mul: [
        added_up,
        scattered,
        lambda a, b: jnp.einsum("mk,kn->mn", a, jax.sharding.reshard(b, P("y")), out_sharding=P("x", "y")),
    ],
}
