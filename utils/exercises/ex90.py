"""Exercises of appendix 90, Old code, new JAX."""

from __future__ import annotations

from unittest import mock

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import Wrong, exercise, number, same, spell
from utils.mesh import make_mesh

MESSAGES = {  # row: what the reader may have confused it with
    11: {10: "pjit became jit; check_rep is an argument of shard_map.", 13: "that is the argument of make_mesh."},
    16: {
        13: "that message names an argument. Here nothing is misspelled: the axes of the mesh are of another kind.",
        23: "that one speaks of a constraint. Here is a product, and no constraint.",
        4: "reshard is a tool, not the cause. Why did the same product run on an older JAX?",
        17: "that message speaks of in_specs. This one comes from a product, on axes that nobody called explicit.",
    },
    5: {18: "pmap is still there; the function that fed it is gone."},
    21: {
        15: "jit(device=) warns and still moves the work; here nothing is said.",
        20: "that one has a message.",
        22: "that is the other silent one, of specs.",
    },
}


def _judge_rows_of_messages(answer):
    got = answer()
    got = list(got) if isinstance(got, np.ndarray) and got.ndim == 1 else got
    if not isinstance(got, (list, tuple)) or len(got) != 4:
        raise Wrong(f"You return {got!r}; expected four numbers.")
    for i, (said, (row, confused)) in enumerate(zip(got, MESSAGES.items(), strict=True), 1):
        said = number(said, "the number of a row", said=f"Message {i}: you say", whole=True)
        if said != row:
            why = confused.get(said, "look for its words in the table at the top of the page.")
            raise Wrong(f"Message {i}: you say row {said}: {why}")


@exercise(
    _judge_rows_of_messages,
    "Search the table at the top for check_rep, Contracting, device_put_replicated; the last has no message.",
)
def rows_of_messages():
    """Return the numbers of four rows, in the order of the messages."""
    return [11, 16, 5, 21]


def _judge_normalised(answer):
    for shape in ((4,), (2, 3)):
        _judge_one(answer, shape)


def _judge_one(answer, shape):
    mesh = make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
    parts = list(np.random.default_rng(0).normal(size=(8, *shape)).astype(np.float32))
    stacked = np.stack(parts)
    with mock.patch.object(jax, "pmap", wraps=jax.pmap) as pmap:
        got = answer(parts, mesh)
    if pmap.called:
        raise Wrong("You call jax.pmap. Today's form is jax.shard_map over the mesh, or jit of the whole array.")
    if getattr(got, "shape", None) == stacked.shape:
        each = stacked.reshape(8, -1).max(axis=1)
        over = each.reshape(8, *[1] * len(shape))
        if np.allclose(got, stacked / over, rtol=1e-4):
            raise Wrong("Each part is divided by its own largest value; the largest of all eight is asked: a pmax.")
        if np.allclose(got, stacked / stacked.max(axis=0), rtol=1e-4):
            raise Wrong("You divide by the largest of each column; one number, the largest of all, is asked.")
        if np.allclose(got, stacked / each.sum(), rtol=1e-4):
            raise Wrong("You divide by the sum of the eight maxima: that is a psum. A pmax is asked.")
        if np.allclose(got, stacked / each.mean(), rtol=1e-4):
            raise Wrong("You divide by the mean of the eight maxima: that is a pmean. A pmax is asked.")
        if np.allclose(got, stacked / np.abs(stacked).max(), rtol=1e-4):
            raise Wrong("You divide by the largest absolute value; the old code took the largest value.")
    if isinstance(got, jax.Array) and got.shape == (8, stacked[0].size) != stacked.shape:
        raise Wrong(
            f"Your result has shape {got.shape}: each part is flattened. The parts have shape {shape} here; keep it."
        )
    if AxisType.Explicit in getattr(getattr(getattr(got, "sharding", None), "mesh", None), "axis_types", ()):
        raise Wrong("Your result lies on a mesh of your own, with explicit axes. Use the mesh that you are given.")
    want = jax.device_put(stacked / stacked.max(), NamedSharding(mesh, P("i")))
    if isinstance(got, jax.Array) and got.shape == (8 * shape[0], *shape[1:]):
        raise Wrong(
            f"Your result has shape {got.shape}: the parts are joined end to end (or you took `part[0]` inside). The old code stacked them, {stacked.shape}."
        )
    same(got, want)


@exercise(
    _judge_normalised,
    "np.stack and a NamedSharding place the parts; then either a shard_map with pmax, or x / x.max() in global view.",
)
def normalised(parts, mesh):
    """Eight arrays of shape s -> (8, *s), part k on device k, over the largest."""
    stacked = jax.device_put(np.stack(parts), NamedSharding(mesh, P("i")))
    return jax.shard_map(
        lambda part: part / jax.lax.pmax(part.max(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )(stacked)


def _make_mesh_of(sizes, kind):
    """jax.make_mesh as another release has it: the name of its first argument, and the kind of axes if none is said."""
    real, other = jax.make_mesh, {"axis_shapes": "axis_sizes", "axis_sizes": "axis_shapes"}[sizes]

    def make_mesh(*args, **said):
        if other in said:
            raise TypeError(f"make_mesh() got an unexpected keyword argument '{other}'")
        args = (said.pop(sizes), *args) if sizes in said else args
        if len(args) < 3 and "axis_types" not in said:
            said["axis_types"] = (kind,) * len(args[0])
        return real(*args, **said)

    return make_mesh


def _judge_grid_of(answer):
    devices = list(make_mesh((8,), ("i",)).devices)[::-1]
    try:
        _judge_grid(answer(devices), devices)
    except Wrong as wrong:
        if "unexpected keyword argument 'devices'" in str(wrong):
            raise Wrong(f"{wrong}. That is the course's make_mesh; jax.make_mesh is asked for.") from wrong
        if "axis_s" in str(wrong):
            raise Wrong(f"{wrong} The name of that argument changed in 0.11.2: give the sizes by position.") from wrong
        raise
    for sizes, kind in (("axis_shapes", AxisType.Auto), ("axis_sizes", AxisType.Explicit)):
        with mock.patch.object(jax, "make_mesh", _make_mesh_of(sizes, kind)):
            try:
                got = answer(devices)
            except Wrong as wrong:
                raise Wrong(
                    "It runs here, but the name of the argument for the sizes changed in 0.11.2: give them by position."
                ) from wrong
            if set(got.axis_types) != {AxisType.Auto}:
                raise Wrong(
                    f"You leave axis_types out. Here that gives {got.axis_types[0]}; before 0.9.0 it gave Auto, since then Explicit. Say it."
                )


def _judge_grid(got, devices):
    if not isinstance(got, Mesh):
        raise Wrong(f"You return a {type(got).__name__}, {got!r}; expected a Mesh.")
    if got.axis_names != ("data", "model") or got.devices.shape != (4, 2):
        sizes = ", ".join(f"{name!r}: {size}" for name, size in got.shape.items())
        raise Wrong(f"Your mesh is {{{sizes}}}; expected 'data' of 4 and 'model' of 2.")
    if set(got.axis_types) != {AxisType.Auto}:
        raise Wrong(
            f"Your axes are {', '.join(map(str, got.axis_types))}; expected Auto on both. Where axis_types is left out, releases before 0.9.0 take Auto, later ones Explicit: You leave axis_types out, or say another kind."
        )
    if set(got.devices.flat) != set(devices) or list(got.devices.flat) == devices[::-1]:
        raise Wrong("Hand the eight devices over, in their order: a machine may have others, and take those.")
    spell(NamedSharding(got, P("data", "model")))


@exercise(
    _judge_grid_of,
    "jax.make_mesh(sizes, names, axis_types=..., devices=...), the sizes and the names by position.",
)
def grid_of(devices):
    """Return a 4 by 2 mesh ('data', 'model') of these eight devices, automatic axes."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto), devices=devices)
