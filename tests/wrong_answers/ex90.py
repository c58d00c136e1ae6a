"""Wrong answers to the exercises of appendix 90."""

from __future__ import annotations

import jax
import numpy as np
from jax import make_mesh as make_mesh_by_name
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import ex90

AUTO = (AxisType.Auto, AxisType.Auto)


def over(largest, join=np.stack):
    def normalised(parts, mesh):
        placed = jax.device_put(join(parts), NamedSharding(mesh, P("i")))
        return jax.jit(lambda v: v / largest(v))(placed)

    return normalised


def with_pmap(parts, mesh):
    return jax.pmap(lambda v: v / jax.lax.pmax(v.max(), "i"), axis_name="i")(np.stack(parts))


def on_its_own_mesh(parts, mesh):
    mine = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(np.stack(parts), NamedSharding(mine, P("i")))
    return x / x.max()


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex90.rows_of_messages: [
        (lambda: [10, 16, 5, 21], "check_rep is an argument of shard_map"),
        (lambda: [11, 13, 5, 21], "the axes of the mesh are of another kind"),
        (lambda: [11, 4, 5, 21], "Why did the same product run on an older JAX?"),
        (lambda: [11, 16, 18, 21], "the function that fed it is gone"),
        (lambda: [11, 16, 5, 22], "the other silent one"),
        (lambda: [11, 16, 5, 1], "Message 4: you say row 1"),
    ],
    ex90.normalised: [
        (over(lambda v: v.max(axis=tuple(range(1, v.ndim)), keepdims=True)), "by its own largest value"),
        (over(lambda v: v.max(axis=0)), "the largest of each column"),
        (with_pmap, "You call jax.pmap"),
        (over(lambda v: v.reshape(8, -1).max(axis=1).sum()), "that is a psum"),
        (over(lambda v: abs(v).max()), "the largest absolute value"),
        (over(lambda v: v.max(), join=np.concatenate), "joined end to end"),
        (lambda parts, mesh: np.stack(parts) / np.max(parts), "expected a jax.Array"),
        (
            lambda parts, mesh: jax.device_put(np.stack(parts) / np.max(parts), NamedSharding(mesh, P())),
            "is laid out as P()",
        ),
        (
            lambda parts, mesh: jax.device_put(
                np.stack(parts).reshape(8, -1) / np.max(parts), NamedSharding(mesh, P("i"))
            ),
            "each part is flattened",
        ),
        (on_its_own_mesh, "on a mesh of your own"),
        (over(lambda v: v.reshape(8, -1).max(axis=1).mean()), "that is a pmean"),
    ],
    ex90.grid_of: [
        (lambda d: jax.make_mesh((4, 2), ("data", "model"), devices=d), "You leave axis_types out"),
        (
            lambda d: jax.make_mesh(axis_shapes=(4, 2), axis_names=("data", "model"), axis_types=AUTO, devices=d),
            "changed in 0.11.2",
        ),
        (
            lambda d: jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2, devices=d),
            "expected Auto on both",
        ),
        (lambda d: jax.make_mesh((2, 4), ("data", "model"), axis_types=AUTO, devices=d), "expected 'data' of 4"),
        (lambda d: jax.make_mesh((4, 2), ("data", "model"), axis_types=AUTO), "Hand the eight devices over"),
        (lambda d: Mesh(np.array(d[::-1]).reshape(4, 2), ("data", "model")), "in their order"),
    ],
}


def both_names(d):
    """The name that this JAX has, found by trying."""
    try:
        return jax.make_mesh(axis_sizes=(4, 2), axis_names=("data", "model"), axis_types=AUTO, devices=d)
    except TypeError:
        return jax.make_mesh(axis_shapes=(4, 2), axis_names=("data", "model"), axis_types=AUTO, devices=d)


RIGHT = {
    ex90.rows_of_messages: [
        lambda: (11, 16, 5, 21),
        lambda: np.array([11, 16, 5, 21]),
        lambda: [11.0, 16.0, 5.0, 21.0],
        lambda: [np.int32(11), 16, jax.numpy.int32(5), 21],
    ],
    ex90.normalised: [
        over(lambda v: v.max()),
        over(jax.numpy.max),
        lambda parts, mesh: jax.device_put(np.array(parts) / np.max(parts), NamedSharding(mesh, P("i"))),
        lambda parts, mesh: jax.jit(lambda v: v / v.max(), out_shardings=NamedSharding(mesh, P("i")))(np.stack(parts)),
        lambda parts, mesh: jax.vmap(lambda v, m: v / m, in_axes=(0, None))(
            jax.device_put(np.stack(parts), NamedSharding(mesh, P("i"))), np.max(parts)
        ),
    ],
    ex90.grid_of: [
        both_names,
        lambda d: make_mesh_by_name((4, 2), ("data", "model"), axis_types=AUTO, devices=d),
        lambda d: jax.make_mesh((4, 2), ("data", "model"), AUTO, devices=np.array(d)),
        lambda d: Mesh(np.array(d).reshape(4, 2), ("data", "model")),
        lambda d: jax.make_mesh((4, 2), axis_names=("data", "model"), axis_types=AUTO, devices=d),
    ],
}
