"""Exercises and predictions for lesson 17, When a process dies."""

import copy
import re
from contextlib import suppress

import jax
import numpy as np
from jax import ShapeDtypeStruct
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Prediction, RunResult, build_mesh, exercise

on_disk = Prediction(
    3,
    "it's the weights and Adam's two moments, each as large as the weights, and each element is written once",
    {
        1: "Adam's two moments are part of the run, and each is as large as the weights",
        2: "Adam keeps two moments for each weight, not one",
        8: "eight devices hold the pieces, and each piece is written once",
        24: "eight devices hold the pieces, and each piece is written once",
    },
    "times",
    rel_tol=0.05,
)
cast = Prediction(
    "bfloat16",
    mistakes={
        "float32": "the template determines the type that you get back, and its type isn't float32",
        "error": "shapes must agree, but the type is converted with no warning",
    },
)
first_differs = Prediction(
    5,
    "the loss of step 4 is computed before the moments change a weight",
    {4: "this loss is computed with the restored weights, before the moments change them", 6: "step 5 reads the weights that step 4 changed, using the moments"},
)  # fmt: skip
trusted = Prediction(
    6,
    "process 1 died before it wrote its parts, so the folder of step 9 is incomplete",
    {
        9: "process 1 died before it wrote its parts",
        3: "training waited for the save of step 6",
        8: "only every third step is saved",
    },
)
goodbye = Prediction(
    False,
    "JAX's C++ runtime ends the process, so no `except` or `finally` block runs to its end",
)
fewer = Prediction(
    "close",
    mistakes={
        "equal": "the mean over the batch is added up in a different order, and each addition rounds",
        "different": "the batch, the key and the weights are the same, and only the order of the sums differs",
    },
)
slower = Prediction(
    10,
    "both terms grow with the square root of C, because you save ten times less often",
    {100: "you also save less often: take the square root", 1: "a save takes 100 times as long"},
    "times",
    rel_tol=0.02,
)


def _observe_template(answer, axes, saved):
    """Build the answer's template for this mesh, and describe each entry: its shape, dtype and sharding."""
    template = answer(dict(saved), build_mesh(axes))
    if not isinstance(template, dict):
        return template
    return {name: _describe_leaf(leaf) for name, leaf in template.items()}


def _describe_leaf(leaf):
    if not hasattr(leaf, "sharding") or not hasattr(leaf, "dtype"):
        return leaf
    shape, sharding = tuple(leaf.shape), leaf.sharding
    if isinstance(leaf, jax.Array):
        return "an array with data; a template contains only shapes, types and shardings"
    if sharding is None:
        return shape, np.dtype(leaf.dtype).name, "no sharding"
    pieces = {device.id: index for device, index in sharding.devices_indices_map(shape).items()}
    rows = {i: [list(s.indices(n))[:2] for s, n in zip(piece, shape, strict=True)] for i, piece in pieces.items()}
    return shape, np.dtype(leaf.dtype).name, rows


_SAVED = {
    "embed": ((64, 10), "float32"),
    "up": ((30, 16), "bfloat16"),
    "down": ((24, 48), "float32"),
    "norm": ((5,), "float32"),
    "table": ((3, 20, 96), "float32"),
    "key": ((2,), "uint32"),
    "step": ((), "int32"),
    "heads": ((8, 30), "bfloat16"),
}


@exercise(
    "`mesh.size` is the number of devices, and `P(None, mesh.axis_names)` splits the second axis "
    "over all axes of the mesh. Take the first axis of the shape for which size % mesh.size is 0.",
    cases=[
        ({"data": 8}, {name: _SAVED[name] for name in ("norm", "embed")}),
        ({"data": 8}, _SAVED),
        ({"x": 2, "y": 4}, _SAVED),
        ({"a": 3, "b": 2}, _SAVED),
    ],
    mistakes=[
        Mistake(
            Edit("size % mesh.size == 0", "axis == 0"),
            "the number of devices must divide the axis: take the first axis that it divides",
        ),
        Mistake(
            Edit("mesh.axis_names", "mesh.axis_names[0]"),
            "split over all axes of the mesh together, not only over its first axis",
        ),
        Mistake(
            Edit("ShapeDtypeStruct(shape, dtype,", "ShapeDtypeStruct(shape, 'float32',"),
            "use the type on disk, or the numbers are converted with no warning",
        ),
        Mistake(Edit("break", "pass"), "take the first axis that the number of devices divides, not the last"),
    ],
    run=_observe_template,
)
def template_of(saved, mesh):
    """Turn {name: (shape, dtype)} into {name: ShapeDtypeStruct with a sharding}."""
    wanted = {}
    for name, (shape, dtype) in saved.items():
        spec = P()
        for axis, size in enumerate(shape):
            if size % mesh.size == 0:
                spec = P(*[None] * axis, mesh.axis_names)
                break
        wanted[name] = ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
    return wanted


class Store(dict):  # a class of its own, because the check would copy a plain dict
    pass


class Killed(BaseException):
    """Raised to imitate a kill. It isn't an Exception, so an answer's own `except Exception` can't catch it."""


def _run_lives(answer, last, every, lives):
    """Run an answer, kill it after some steps in each life, and return each life's losses and saved steps."""
    store, observed, losses = Store(), {}, []

    def fresh():
        return {"weights": np.array([1.1, -2.3, 0.7]), "moments": np.zeros(3)}

    def batch(position):
        return np.array([position + 1.0, 0.25 * position, 3.0]), position + 3 + position % 4

    def step(state, examples):
        if len(losses) >= lives[life]:
            raise Killed
        if len(losses) >= 100:
            raise RuntimeError("the loop does not end: it has taken 100 steps")
        state["moments"] *= 0.5
        state["moments"] += examples
        state["weights"] -= 0.125 * state["moments"]
        losses.append(round(float(state["weights"] @ [1, 2, 4]), 6))

    for life in range(len(lives)):
        losses.clear()
        with suppress(Killed):
            answer(last, every, store, fresh, step, batch)
        observed[f"weights · (1, 2, 4) after each step of life {life + 1}"] = list(losses)
        observed[f"steps in the store after life {life + 1}"] = sorted(store, key=lambda key: (str(type(key)), key))
        kept = list(store.items())[::-1]  # the files in a folder are listed in no particular order
        store.clear()
        store.update(kept)
    return RunResult(observed)


@exercise(
    "Use the number of finished steps as the key. Save a deep copy of the state together with the "
    "position of the next batch. `max(store)` is the newest; if the store is empty, use `fresh()` "
    "and position 0.",
    cases=[(10, 3, (4, 2, 99)), (9, 4, (2, 6, 1, 99)), (8, 2, (99, 99)), (14, 3, (13, 99))],
    mistakes=[
        Mistake(
            Edit("deepcopy((state, position))", "(state, position)"),
            "`step` changes the arrays in place, so save a copy",
        ),
        Mistake(
            Edit("deepcopy(store[done]) if done", "store[done] if done"),
            "`step` changes the arrays in place, so continue with a copy of the saved state",
        ),
        Mistake(
            Edit("state, position = deepcopy(store[done])", "state, position = deepcopy(store[done])[0], 0"),
            "the position in the data is part of the run: save it with the state",
        ),
        Mistake(
            Edit("max(store, default=0)", "max(store, key=str, default=0)"),
            "as strings, 9 comes after 12: compare numbers",
        ),
        Mistake(
            Edit("done % every == 0", "done % every == 1"),
            "save after every `every` steps, with the number of finished steps as the key",
        ),
        Mistake(
            Edit("state, position = deepcopy(store[done]) if done else", "state, position ="),
            "you don't read the store, so each life starts over",
        ),
    ],
    run=_run_lives,
    rel_tol=1e-6,
)
def train_on(last, every, store, fresh, step, batch):
    """Take steps until `last` are done; save into `store` after every `every` of them.

    `store` maps the number of steps done to what you saved, and survives a kill.
    """
    deepcopy = copy.deepcopy
    done = max(store, default=0)
    state, position = deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        examples, position = batch(position)
        step(state, examples)
        done += 1
        if done % every == 0:
            store[done] = deepcopy((state, position))


@exercise(
    "For each step and each number of processes, collect the set of parts. A save is complete if its "
    "set is as large as its number of processes. Compare steps as numbers.",
    cases=[
        (["3/part_0_of_2", "3/part_1_of_2", "9/part_1_of_2", "9/part_0_of_2", "12/part_0_of_2"],),
        ([f"{step}/part_{i}_of_2" for step in (90, 100, 8) for i in range(2)],),
        (["5/part_0_of_2", "5/part_1_of_2", "7/part_0_of_2", "7/part_1_of_2.tmp"],),
        (["4/part_0_of_1", "8/part_0_of_4", "8/part_1_of_4", "8/part_3_of_4"],),
        (["2/part_0_of_1", "6/part_0_of_2", "6/part_1_of_4"],),
        (["6/part_0_of_4", "6/part_1_of_2", "2/part_0_of_1"],),
        (["3/part_0_of_1", "5/part_0_of_2", "5/part_0_of_4.tmp", "5/part_1_of_4", "5/part_1_of_2"],),
        ([f"{step}/part_{i}_of_12" for step in (20, 30) for i in range(12) if (step, i) != (30, 11)],),
        (["0/part_0_of_1", "3/part_1_of_2"],),
        (["10/part_0_of_3", "10/part_2_of_3"],),
        ([],),
    ],
    mistakes=[
        Mistake(Edit("re.fullmatch", "re.match"), "a name that ends in .tmp is a part that was still being written"),
        Mistake(
            Edit("(step, of), set()", "(step, 0), set()"),
            "parts of two different saves don't make a complete save: each needs all of its own parts",
        ),
        Mistake(
            Edit("max(complete, default=None)", "max(complete, key=str, default=None)"),
            "as strings, 90 comes after 100: compare numbers",
        ),
        Mistake(
            Edit("max(complete, default=None)", "max(complete, default=None) or None"),
            "step 0 may be complete, and 0 counts as False",
        ),
        Mistake(Edit("len(indices) == of", "indices"), "a step is complete when all of its parts are there"),
    ],
)
def newest_complete(files):
    """Return the newest step that has all files such as "12/part_0_of_2", or None."""
    parts = {}
    for name in files:
        match = re.fullmatch(r"(\d+)/part_(\d+)_of_(\d+)", name)
        if match:
            step, part, of = map(int, match.groups())
            parts.setdefault((step, of), set()).add(part)
    complete = {step for (step, of), indices in parts.items() if len(indices) == of}
    return max(complete, default=None)
