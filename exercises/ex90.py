"""Exercises and predictions for appendix 90, Old code, new JAX."""

from contextlib import ExitStack
from typing import Any
from unittest import mock

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, RunResult, exercise
from utils.devices import started_devices

messages = Prediction(
    5,
    "each of the five removed APIs stops the program by itself, and hides those after it",
    {
        1: "the program stops again at the next removed API",
        2: "two imports are gone, and after them two keywords and one name",
        3: "in_axis_resources and out_axis_resources are two keywords, and JAX names them one at a time",
        4: "count both keywords of pjit: JAX names one of them at a time",
        7: "a warning doesn't stop a program, and two of the seven only warn",
        0: "five of the program's seven old APIs are gone",
    },
    "messages",
)
searched = Prediction(
    4,
    "`with mesh:` doesn't name anything in JAX",
    {
        5: "which of them doesn't name anything in JAX that you could search for?",
        7: "that's the number of uses, but they're on five lines",
        3: "two lines are imports, one has tree_map, and one has the keywords",
    },
    "lines",
)
stage = Prediction(
    0,
    "one compiled program runs on one set of devices, and its argument is on device 0",
    {3: "that's what the article says, but the entire jit runs on its argument's device"},
)
pieces_left = Prediction(
    8,
    "on explicit axes the constraint isn't an instruction, so x stays split",
    {1: "that would mean a full copy on each device, but on explicit axes the constraint isn't an instruction"},
    "pieces",
)
specs_equal = Prediction(
    False,
    "specs are compared entry by entry, and one of these has a second entry",
)


@exercise(
    "Search the table for check_rep, Contracting and device_put_replicated. For the fourth, find a row "
    "without a message.",
    run=lambda f: RunResult({f"message {i}": row for i, row in enumerate(f(), 1)}),
    hide_expected=True,
    mistakes=[
        Mistake(Edit("11", "10"), "pjit became jit, but check_rep is a keyword of shard_map"),
        Mistake(Edit("11", "13"), "that row is about a keyword of make_mesh"),
        Mistake(Edit("16", "23"), "that row is about a constraint, but the message is about a product"),
        Mistake(Edit("5", "18"), "pmap still exists, but the function that prepared its arrays is gone"),
        Mistake(Edit("21", "15"), "jit(device=) warns and still moves the work, but here there's no message"),
        Mistake(Edit("21", "22"), "that row gives no message either, but it's about specs"),
    ],
    question="Does the table contain the words of that message?",
)
def rows_of_messages():
    """Return the numbers of four rows, in the order of the messages."""
    return [11, 16, 5, 21]


def _part_cases():
    normal = np.random.default_rng(90).normal
    one, two = (normal(size=(8, *shape)).astype(np.float32) for shape in ((5,), (2, 3)))
    two[5, 1, 2] = -9  # the largest absolute value isn't the largest value
    devices = started_devices()[:8]
    meshes = [Mesh(np.array(d), ("i",)) for d in (devices, devices[::-1])]
    return {
        "eight parts (5,), mesh": (list(one), meshes[0]),
        "eight parts (2, 3), mesh": (list(two), meshes[1]),
    }


def _run_without_pmap(f, parts, mesh):
    with mock.patch.object(jax, "pmap", side_effect=NotImplementedError("jax.pmap is not allowed here")):
        return f(parts, mesh)


@exercise(
    "Place the parts with np.stack and a NamedSharding. Then divide the full array by its largest value, "
    "or write a shard_map with pmax.",
    cases=_part_cases,
    run=_run_without_pmap,
    mistakes=[
        Mistake(
            Edit("stacked.max()", "stacked.max(axis=tuple(range(1, stacked.ndim)), keepdims=True)"),
            "you divide each part by its own largest value, but the pmax was the largest of all eight",
        ),
        Mistake(
            Edit("stacked.max()", "stacked.max(axis=0)"),
            "you divide by the largest value of each column, but it should be a single number",
        ),
        Mistake(
            Edit("stacked.max()", "abs(stacked).max()"),
            "you divide by the largest absolute value, but the old code took the largest value",
        ),
        Mistake(
            Edit("np.stack", "np.concatenate"),
            "you join the parts end to end, but the old code stacked them, and kept their shape",
        ),
        Mistake(Edit('P("i")', "P()"), "each device holds all eight parts, but in the old code each held one"),
        MessageHint("jax.pmap is not", "use jit with the full array, or jax.shard_map over the mesh"),
    ],
)
def normalised(parts, mesh):
    """Stack the arrays, with part k on device k, and divide by the largest value."""
    stacked = jax.device_put(np.stack(parts), NamedSharding(mesh, P("i")))
    return stacked / stacked.max()


def _release_cases():
    devices = started_devices()[:8][::-1]
    return {
        "devices": (devices, ""),
        "devices, where JAX is 0.7.2": (devices, "axis_shapes"),
        "devices, where JAX is 0.12": (devices, "axis_sizes"),
    }


def _make_mesh_of_release(sizes):
    """Imitate a different release's jax.make_mesh: the name of its first argument and its default axis types."""
    real, other_name = jax.make_mesh, {"axis_shapes": "axis_sizes", "axis_sizes": "axis_shapes"}[sizes]
    kind = AxisType.Auto if sizes == "axis_shapes" else AxisType.Explicit

    def make_mesh(*args: Any, **given: Any) -> Mesh:
        if other_name in given:
            raise TypeError(f"make_mesh() got an unexpected keyword argument '{other_name}'")
        args = (given.pop(sizes), *args) if sizes in given else args
        if len(args) < 3 and "axis_types" not in given:
            given["axis_types"] = (kind,) * len(next(iter(args)))
        return real(*args, **given)

    return make_mesh


def _run_in_release(f, devices, sizes):
    with ExitStack() as stack:
        if sizes:
            stack.enter_context(mock.patch.object(jax, "make_mesh", _make_mesh_of_release(sizes)))
        mesh = f(devices)
    return RunResult({"": mesh, "the axes are": ", ".join(str(kind).split(".")[-1] for kind in mesh.axis_types)})


@exercise(
    "jax.make_mesh(sizes, names, axis_types=..., devices=...): pass the sizes and the names by position.",
    cases=_release_cases,
    run=_run_in_release,
    mistakes=[
        Mistake(
            Edit("axis_types=(AxisType.Auto,) * 2,", ""),
            "without axis_types, a mesh is automatic before JAX 0.9.0 and explicit since then",
        ),
        Mistake(Edit("AxisType.Auto", "AxisType.Explicit"), "the axes should be automatic"),
        Mistake(
            Edit(", devices=devices", ""),
            "pass the eight devices: otherwise make_mesh may take others, or use a different order",
        ),
        Mistake(Edit("(4, 2)", "(2, 4)"), "data has 4 devices, and model has 2"),
        MessageHint(
            "unexpected keyword argument 'axis_s",
            "the name of that argument changed in 0.11.2: pass the sizes by position",
        ),
    ],
)
def grid_of(devices):
    """Return a 4 by 2 mesh ('data', 'model') of these devices, with automatic axes."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=devices)
