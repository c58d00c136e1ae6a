"""Right answers in unusual forms to the exercises of lesson 02, and changes that compute the same."""

from math import prod

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises import ex02
from utils.mesh import make_mesh


def _asked(row, column):
    """Of JAX itself."""
    sharding = NamedSharding(make_mesh((2, 4), ("x", "y")), P("y", "x"))
    held = sharding.devices_indices_map((8, 12))
    one = [i for i, index in held.items() if row in range(8)[index[0]] and column in range(12)[index[1]]]
    return one[0].id


def _moments(rows, sharding):
    """In a compiled program, with a mask placed beside the rows, and squares of what is masked before."""
    n, more = len(rows), -len(rows) % sharding.mesh.size
    placed = jax.device_put(np.concatenate([rows, np.zeros((more, rows.shape[1]), rows.dtype)]), sharding)
    real = jax.device_put((np.arange(n + more) < n)[:, None], sharding)

    @jax.jit
    def variance(placed, real):
        mean = jnp.sum(placed, axis=0, where=real) / n
        return jnp.mean(jnp.square(placed - mean), axis=0, where=real)

    return variance(placed, real)


def _far(rows, sharding):
    """Padded with the first row's copies, whose squares are taken away again."""
    n, more = len(rows), -len(rows) % sharding.mesh.size
    placed = jax.device_put(np.vstack([rows, np.repeat(rows[:1], more, axis=0)]), sharding)
    mean = (placed.sum(axis=0) - more * rows[0]) / n
    return (((placed - mean) ** 2).sum(axis=0) - more * (rows[0] - mean) ** 2) / n


def _with_jax(shape, spec, sizes):
    mesh = jax.sharding.AbstractMesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(jax.sharding.AxisType.Auto,) * len(sizes)
    )
    kept = [None] * len(shape)
    for i, entry in enumerate(spec):
        try:
            NamedSharding(mesh, P(entry)).shard_shape((shape[i],))
        except ValueError:
            continue
        kept[i] = entry
    return P(*kept)


ALTERNATIVES = {
    ex02.holder_of: [_asked, lambda row, column: np.arange(8).reshape(2, 4)[column // 6, row // 2]],
    ex02.spec_from_pieces: [
        lambda: P(("c", "a"), (), ("b",)),
        lambda: NamedSharding(make_mesh((2, 2, 2), ("a", "b", "c")), P(("c", "a"), None, "b")),
    ],
    ex02.variance_of_rows: [_moments, _far],
    ex02.fitting_spec: [
        _with_jax,
        lambda shape, spec, sizes: P(
            *(
                None if n % prod(sizes.get(a, 1) for a in np.atleast_1d(e)) else e
                for n, e in zip(shape, spec, strict=False)
            )
        ),
    ],
}
EQUIVALENT_MUTANTS = {}
