"""Exercises and predictions of appendix 90, Old code, new JAX."""

from contextlib import ExitStack
from unittest import mock

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Observed, Prediction, WhenMessage, exercise
from utils.devices import started_devices

messages = Prediction(
    5,
    "each of the five that are gone stops the program by itself, and hides those behind it",
    {
        1: "it stops again at the next place that is gone",
        2: "two imports are gone, and behind them two keywords and one name",
        3: "in_axis_resources and out_axis_resources are two keywords: JAX names one, and then the other",
        4: "count both keywords of pjit: JAX names one of them at a time",
        7: "what only warns does not stop a program: two of the seven",
        0: "five of its seven old places are gone",
    },
    "messages",
)
searched = Prediction(
    4,
    "`with mesh:` names nothing of JAX",
    {
        5: "which of them names nothing of JAX that you could search for?",
        7: "that is the places; they stand on five lines",
        3: "two lines are imports, one has tree_map, and one has the keywords",
    },
    "lines",
)
stage = Prediction(
    0,
    "one compiled program has one set of devices, and its argument lies on device 0",
    {3: "so the article says; the whole jit runs where its argument lies"},
)
pieces_left = Prediction(
    8,
    "the axes are explicit, so the constraint is no order: x stays split",
    {1: "that would be a whole copy on each device; the constraint is no order on explicit axes"},
    "pieces",
)
specs_equal = Prediction(
    False,
    "a spec is compared entry by entry, and one of them has a second entry",
)


@exercise(
    "Search the table for check_rep, for Contracting and for device_put_replicated. The last has no message.",
    run=lambda f: Observed({f"message {i}": row for i, row in enumerate(f(), 1)}),
    hide_expected=True,
    mistakes=[
        Mistake(Edit("11", "10"), "pjit became jit; check_rep is a keyword of shard_map"),
        Mistake(Edit("11", "13"), "that is a keyword of make_mesh"),
        Mistake(Edit("16", "23"), "that row is about a constraint; the message is about a product"),
        Mistake(Edit("5", "18"), "pmap is still there; what is gone is the function that fed it"),
        Mistake(Edit("21", "15"), "jit(device=) warns, and still moves the work; here nothing is said"),
        Mistake(Edit("21", "22"), "that is the silent one about specs"),
    ],
    question="Do the words of that message stand in the table?",
)
def rows_of_messages():
    """Return the numbers of four rows, in the order of the messages."""
    return [11, 16, 5, 21]


def _parts():
    normal = np.random.default_rng(90).normal
    one, two = (normal(size=(8, *shape)).astype(np.float32) for shape in ((5,), (2, 3)))
    two[5, 1, 2] = -9  # the largest absolute value is not the largest value
    devices = started_devices()[:8]
    meshes = [Mesh(np.array(d), ("i",)) for d in (devices, devices[::-1])]
    return {
        "eight parts (5,), mesh": (list(one), meshes[0]),
        "eight parts (2, 3), mesh": (list(two), meshes[1]),
    }


def _without_pmap(f, parts, mesh):
    with mock.patch.object(jax, "pmap", side_effect=NotImplementedError("jax.pmap is not to be used here")):
        return f(parts, mesh)


@exercise(
    "np.stack and a NamedSharding place the parts. Then divide the whole array by its largest value, or write a "
    "shard_map with pmax.",
    cases=_parts,
    run=_without_pmap,
    mistakes=[
        Mistake(
            Edit("stacked.max()", "stacked.max(axis=tuple(range(1, stacked.ndim)), keepdims=True)"),
            "each part is divided by its own largest value; the largest of all eight is asked: that was the pmax",
        ),
        Mistake(
            Edit("stacked.max()", "stacked.max(axis=0)"),
            "you divide by the largest of each column; one number is asked",
        ),
        Mistake(
            Edit("stacked.max()", "abs(stacked).max()"),
            "you divide by the largest absolute value; the old code took the largest",
        ),
        Mistake(
            Edit("np.stack", "np.concatenate"),
            "the parts are joined end to end; the old code stacked them, and kept their shape",
        ),
        Mistake(Edit('P("i")', "P()"), "each device holds all eight parts; the old code left one on each"),
        WhenMessage("jax.pmap is not", "today's form is jit of the whole array, or jax.shard_map over the mesh"),
    ],
)
def normalised(parts, mesh):
    """Eight arrays of shape s -> (8, *s), part k on device k, over the largest."""
    stacked = jax.device_put(np.stack(parts), NamedSharding(mesh, P("i")))
    return stacked / stacked.max()


def _releases():
    devices = started_devices()[:8][::-1]
    return {
        "devices": (devices, ""),
        "devices, where JAX is 0.7.2": (devices, "axis_shapes"),
        "devices, where JAX is 0.12": (devices, "axis_sizes"),
    }


def _as_in(sizes):
    """jax.make_mesh of another release: the name of its first argument, and the axes where no type is given."""
    real, other = jax.make_mesh, {"axis_shapes": "axis_sizes", "axis_sizes": "axis_shapes"}[sizes]
    kind = AxisType.Auto if sizes == "axis_shapes" else AxisType.Explicit

    def make_mesh(*args, **given):
        if other in given:
            raise TypeError(f"make_mesh() got an unexpected keyword argument '{other}'")
        args = (given.pop(sizes), *args) if sizes in given else args
        if len(args) < 3 and "axis_types" not in given:
            given["axis_types"] = (kind,) * len(args[0])
        return real(*args, **given)

    return make_mesh


def _mesh(f, devices, sizes):
    with ExitStack() as stack:
        if sizes:
            stack.enter_context(mock.patch.object(jax, "make_mesh", _as_in(sizes)))
        made = f(devices)
    return Observed({"": made, "the axes are": ", ".join(str(kind).split(".")[-1] for kind in made.axis_types)})


@exercise(
    "jax.make_mesh(sizes, names, axis_types=..., devices=...): give the sizes and the names by position.",
    cases=_releases,
    run=_mesh,
    mistakes=[
        Mistake(
            Edit("axis_types=(AxisType.Auto,) * 2,", ""),
            "without axis_types a mesh is automatic before 0.9.0 and explicit since",
        ),
        Mistake(Edit("AxisType.Auto", "AxisType.Explicit"), "automatic axes are asked for"),
        Mistake(
            Edit(", devices=devices", ""),
            "hand the eight devices over: left to itself, make_mesh may take others, or another order",
        ),
        Mistake(Edit("(4, 2)", "(2, 4)"), "data has 4 devices and model 2"),
        WhenMessage(
            "unexpected keyword argument 'axis_s",
            "the name of that argument changed in 0.11.2: give the sizes by position",
        ),
    ],
)
def grid_of(devices):
    """Return a 4 by 2 mesh ('data', 'model') of these eight devices, automatic axes."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=devices)
