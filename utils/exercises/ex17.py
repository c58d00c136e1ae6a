"""Exercises of notebook 17, When a process dies."""

from __future__ import annotations

import copy
import functools
import math
import os
import re
import subprocess
import sys
from contextlib import suppress

import numpy as np

from utils.as_text import as_text
from utils.exercises import (
    Choice,
    Prediction,
    Wrong,
    by_factors,
    exercise,
    explained,
    number,
    shown,
    spell,
)

on_disk = Prediction(
    "bytes",
    {
        295_040 / 143_600: "that is what eight devices hold together; of equal copies the disk gets one",
        36_880 / 143_600: "that is what one device holds; the folder has the parts of all eight",
        8 * 151_568 / 143_600: "eight devices hold it, and it is written once",
        151_568 / 8 / 143_600: "that is an eighth of the arrays; the folder has all parts",
        75_784 / 143_600: "do you leave out the momenta? They are as large as the weights",
        37_892 / 143_600: "these are numbers; a float32 takes 4 bytes",
        2 * 151_568 / 143_600: "a float32 takes 4 bytes, not 8",
    },
    within=0.1,
)
first_differs = Prediction(
    "steps",
    {None: "look for what a loss is computed from, and for what only changes the weights after it"},
    own={
        "params": {5: "the loss is computed with the weights, before they change"},
        "momenta": {4: "the loss of this step is computed before the momenta move the weights"},
        "step": {4: "the step sets the learning rate, and that is used after the loss"},
        "position": {5: "other examples give another loss at once"},
        "key": {5: "the key drops other hidden units, and those are in the loss"},
    },
    things=True,
)
survivor = Choice(
    {
        "catches": "there may be an exception on the way; JAX ends the process all the same, before its sleep is over",
        "waits": "it may wait at first; the heartbeat ends that",
        "goes on": "each step needs sums over all devices, and half of the parts never come",
        "aborts": "",
    }
)
in_all = Prediction(
    "steps",
    {
        11: "the process that was to finish the save of step 9 is dead, and so its folder never got its name",
        9: "steps that were done after the newest whole checkpoint are done again",
        12: "the first three were done in the notebook, and some of the others twice or three times",
        17: "the newest whole checkpoint is that of step 6, for the second life and for the third",
        10: "the second life does step 9, and its checkpoint is not whole",
    },
    things=True,
)
fewer = Choice(
    {
        "the same": "the sums are taken in another order, and each addition rounds",
        "nearly": "",
        "other": "the batch, the examples and the dropped units are the same: only the order of sums differs",
    }
)
slower = Prediction(
    "times",
    {
        10: "a save takes 100 times as long, and one also saves less often",
        0.1: "a save takes 100 times as long",
        5: "both terms grow by the same factor",
        1 / math.sqrt(10): "take the root of 100",
        math.sqrt(2) / 10: "both terms grow by the same factor",
    },
    within=0.01,
)
full_disk = Choice(
    {
        "True": "",
        "False": "it has not tried yet: the writing goes on in the background",
        "error": "the error comes, but later: the writing goes on in the background",
    }
)
one_bit = Choice(
    {
        "error": "nothing that Orbax wrote here lets it see that a byte is another one",
        "another value": "",
        "the same": "the changed byte lies in an array's data",
    }
)
second_run = Choice(
    {
        "overwritten": "what is saved under a number is not replaced",
        "error": "nothing is raised; look at what `save` returns",
        "nothing": "",
    }
)
cast = Choice(
    {
        "float32": "the template says what comes back, and it says another type",
        "bfloat16": "",
        "error": "shapes must agree; the type of the numbers may be another",
    }
)


# 17.1 The template for another mesh


@functools.cache
def _meshes():
    from utils.mesh import make_mesh

    return (
        make_mesh((8,), ("data",)),
        make_mesh((2, 4), ("x", "y")),
        make_mesh((3, 2), ("a", "b")),
    )


_SAVED = {  # divisible by 8 and by 6: in one axis, in the other, in both, in none; as large as 8
    "embed": ((64, 10), "float32"),
    "up": ((30, 16), "bfloat16"),
    "down": ((24, 48), "float32"),
    "norm": ((5,), "float32"),
    "table": ((3, 20, 96), "float32"),
    "key": ((2,), "uint32"),
    "step": ((), "int32"),
    "heads": ((8, 30), "bfloat16"),
}


def _judge_template(answer):
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    for mesh in _meshes():
        sizes = " x ".join(map(str, mesh.devices.shape))
        where = f"On the {sizes} mesh {mesh.axis_names}"
        got = _asked(answer, mesh, where)
        if not isinstance(got, dict):
            raise Wrong(f"You return {shown(got)}; expected a dictionary with the names of `saved`.")
        if set(got) != set(_SAVED):
            raise Wrong(f"Your dictionary has the names {sorted(map(str, got))}; expected {sorted(_SAVED)}.")
        for name, (shape, dtype) in _SAVED.items():
            asked, what = got[name], f"{where}, for {name!r}, {dtype} of shape {shape}"
            if isinstance(asked, jax.Array | np.ndarray):
                raise Wrong(
                    f"{what}, you return an array. To say what is wanted takes no memory: jax.ShapeDtypeStruct has the "
                    "shape, the type and the sharding, and no numbers."
                )
            if not isinstance(asked, jax.ShapeDtypeStruct):
                raise Wrong(f"{what}, you return {shown(asked)}; expected a jax.ShapeDtypeStruct.")
            if tuple(asked.shape) != shape:
                raise Wrong(
                    f"{what}, your shape is {tuple(asked.shape)}. A template has the shape of the whole array; "
                    "the sharding says what a device gets."
                )
            if np.dtype(asked.dtype) != np.dtype(jax.numpy.dtype(dtype)):
                raise Wrong(f"{what}, your dtype is {asked.dtype}; the numbers would be converted, without a word.")
            if asked.sharding is None:
                raise Wrong(f"{what}, your template has no sharding; then Orbax takes the mesh that the array had.")
            want = NamedSharding(mesh, _spec(shape, mesh, P))
            if asked.sharding.device_set != want.device_set:
                raise Wrong(
                    f"{what}, your sharding has {len(asked.sharding.device_set)} devices; the mesh has {mesh.size}."
                )
            if not asked.sharding.is_equivalent_to(want, len(shape)):
                raise Wrong(f"{what}, you say {spell(asked.sharding)}. {_template_slip(asked, shape, mesh, P)}")


def _asked(answer, mesh, where):
    """What the answer returns; where it raises on some of the arrays alone, the first of them is told."""
    try:
        return answer(dict(_SAVED), mesh)
    except Wrong:
        raised = {}
        for name in _SAVED:
            try:
                answer({name: _SAVED[name]}, mesh)
            except Wrong as wrong:
                raised[name] = wrong
        if not 0 < len(raised) < len(_SAVED):
            raise
        name, wrong = next(iter(raised.items()))
        shape, dtype = _SAVED[name]
        raise Wrong(f"{where}, for {name!r}, {dtype} of shape {shape}: {wrong}") from wrong


def _spec(shape, mesh, P):
    for axis, size in enumerate(shape):
        if size % mesh.size == 0:
            return P(*[None] * axis, mesh.axis_names)
    return P()


def _template_slip(asked, shape, mesh, P):
    try:
        part = asked.sharding.shard_shape(shape)
    except ValueError:
        named = {axis: names for axis, names in enumerate(getattr(asked.sharding, "spec", ())) if names}
        if len(named) > 1:
            return f"It is cut along the axes {list(named)}, each in parts of its own; one axis is asked, over all devices."
        return f"{mesh.size} devices do not divide that axis."
    parts = [size // piece for size, piece in zip(shape, part, strict=True)]
    cut = [axis for axis, count in enumerate(parts) if count > 1]
    divisible = [axis for axis, size in enumerate(shape) if size % mesh.size == 0]
    if not divisible:
        return f"No axis of it is a multiple of {mesh.size}: it is to be whole on each device."
    if not cut:
        once = f": {mesh.size} itself is one, too" if shape[divisible[0]] == mesh.size else ""
        return f"It is whole on each device, and its axis {divisible[0]} is a multiple of {mesh.size}{once}."
    if len(cut) > 1:
        return f"It is cut along the axes {cut}; one is asked, the first that all {mesh.size} devices divide."
    if math.prod(parts) != mesh.size:
        return f"It is cut in {math.prod(parts)}; all {mesh.size} devices are to have a part of their own."
    if cut[0] != divisible[0]:
        return f"Its axis {cut[0]} is cut, and axis {divisible[0]} is the first that {mesh.size} devices divide."
    return "The parts lie on other devices than those of the mesh in its order of axes."


@exercise(
    _judge_template,
    "mesh.size is the number of devices, and P(None, mesh.axis_names) cuts the second axis over all axes of the mesh. "
    "Go through the axes of the shape; take the first whose size % mesh.size is 0.",
)
def template(saved, mesh):
    """Return {name: ShapeDtypeStruct with a sharding} of {name: (shape, dtype)}."""
    from jax import ShapeDtypeStruct
    from jax.sharding import NamedSharding, PartitionSpec

    wanted = {}
    for name, (shape, dtype) in saved.items():
        spec = PartitionSpec()
        for axis, size in enumerate(shape):
            if size % mesh.size == 0:
                spec = PartitionSpec(*[None] * axis, mesh.axis_names)
                break
        wanted[name] = ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
    return wanted


# 17.2 A loop that may be killed


class _Killed(BaseException):
    """Not an Exception: an answer that catches those must not survive it."""


class _World:
    """A run as the judge sees it: what each call of `step` got, and when it kills."""

    def __init__(self):
        self.calls, self.kill_at = [], None

    def fresh(self):
        return {"weights": np.array([1.1, -2.3, 0.7]), "momenta": np.zeros(3)}  # no float32 has these

    def batch(self, position):
        position = number(position, "a position, as batch gave it, or 0", said="You ask for the batch at", whole=True)
        return np.array([position + 1.0, 0.25 * position, 3.0]), position + 3 + position % 4

    def step(self, state, examples):
        if self.kill_at is not None and len(self.calls) >= self.kill_at:
            raise _Killed
        if not isinstance(state, dict) or set(state) != {"weights", "momenta"}:
            why = " `step` changes the arrays of the state and returns nothing." if state is None and self.calls else ""
            raise Wrong(
                f"step gets {shown(state)} as its state; expected what fresh() gives, or what was saved of it.{why}"
            )
        self.calls.append((copy.deepcopy(state), np.array(examples)))
        if len(self.calls) > 200:
            raise Wrong("Your loop does not end: it has taken 200 steps.")
        state["momenta"] *= 0.5
        state["momenta"] += examples
        state["weights"] -= 0.125 * state["momenta"]


@functools.cache
def _never_killed(steps=40):
    world, position = _World(), 0
    state = world.fresh()
    for _ in range(steps):
        examples, position = world.batch(position)
        world.step(state, examples)
    return world.calls


def _judge_train_on(answer):
    # last, every, and after how many steps of each life it is killed; the last life is not.
    for last, every, lives in (
        (10, 3, (4, 2, None)),
        (9, 4, (2, 6, 1, None)),
        (8, 2, (None, None)),
        (14, 3, (13, None)),  # 9 and 12: as text the 9 is the last
    ):
        world, store, done = _World(), {}, 0
        for life, kill in enumerate(lives):
            world.calls, world.kill_at = [], kill
            saved = list(range(every, done + 1, every))
            begin = max(saved, default=0)
            try:
                answer(last, every, store, world.fresh, world.step, world.batch)
                killed = False
            except _Killed:
                killed = True
            told = f"With last={last}, every={every}, in life {life + 1}"
            _check_calls(world.calls, saved, told)
            if kill is None and begin + len(world.calls) != last:
                raise Wrong(
                    f"{told}, which begins with {begin} steps done, you take {len(world.calls)} steps; {last} are to be "
                    f"done in all, so {last - begin} more."
                )
            if kill is not None and not killed:
                raise Wrong(f"{told}, you stop after {len(world.calls)} steps; {last} are to be done in all.")
            done = max(done, begin + len(world.calls))
            want = list(range(every, done + 1, every))
            if sorted(store, key=str) != sorted(want, key=str):
                raise Wrong(
                    f"{told}, after {done} steps, the store has the keys {list(store)}; expected {want}."
                    f"{_keys_slip(list(store), want, done)}"
                )
            kept = list(store.items())[::-1]  # as a folder, which lists its files in any order
            store.clear()
            store.update(kept)


def _keys_slip(keys, want, done):
    if set(keys) < set(want) and want[-1] in keys:
        return " The older ones are to stay."
    if set(keys) == set(want[:-1]) and len(want) > 1:
        return f" The newest is missing: is it saved when {want[-1]} steps are done?"
    if 0 in keys and set(keys) - {0} == set(want):
        return " With 0 steps done there is nothing to save."
    if keys and [key + 1 if isinstance(key, int) else key for key in sorted(keys, key=str)] == sorted(want, key=str):
        return " The key is the number of steps done, with the one before the save."
    if set(keys) == {*want, done + 1}:
        return (
            f" With {done} steps done, {done + 1} is there already: is it saved too early, or the count one too high "
            "after a checkpoint was taken up?"
        )
    if all(isinstance(key, str) for key in keys) and sorted(keys) == sorted(map(str, want)):
        return " These are texts; the number itself is the key."
    return ""


def _check_calls(calls, saved, told):
    truth, begin = _never_killed(), max(saved, default=0)
    for i, (state, examples) in enumerate(calls):
        right_state, right_examples = truth[begin + i]
        where = f"{told}, at step {begin + i} ({begin} were saved)" if begin else f"{told}, at step {i}"
        same = {name: np.array_equal(state[name], right_state[name]) for name in state}
        if all(same.values()) and np.array_equal(examples, right_examples):
            continue
        at = next((n for n, (s, _) in enumerate(truth) if all(np.array_equal(s[k], state[k]) for k in s)), None)
        seen = next((n for n, (_, e) in enumerate(truth) if np.array_equal(e, examples)), None)
        if all(same.values()):
            raise Wrong(
                f"{where}, the state is right, and the examples are {f'those of step {seen}' if seen is not None else 'none that the run ever saw there'}. "
                "Is the position saved with the state, and the one of the next batch?"
            )
        if at == 0 and begin:
            raise Wrong(f"{where}, the state is that of fresh(): the checkpoint in the store is not used.")
        if all(np.allclose(state[name], right_state[name], rtol=1e-2, atol=1e-2) for name in state):
            raise Wrong(
                f"{where}, the state is that of {begin + i} steps to a few digits, and not exactly: is it rounded on its "
                "way into the store, or out of it?"
            )
        if same["weights"] and not same["momenta"]:
            raise Wrong(f"{where}, the weights are right and the momenta are not: are they saved, too?")
        if at is not None and at == seen and at < begin:
            text = f": as text, '{at}' comes after '{begin}'" if at == max(saved, key=str) else ""
            raise Wrong(
                f"{where}, you go on with the state of {at} steps: that is the checkpoint of {at} steps, and there is "
                f"a newer one{text}."
            )
        if at is not None:
            raise Wrong(
                f"{where}, you go on with the state of {at} steps. `step` changes the arrays in place: what is saved, and "
                "what is taken out of the store, must be a copy."
            )
        raise Wrong(
            f"{where}, the state is none that the run without a kill ever had; at the first step of this life "
            f"the weights were {np.array2string(calls[0][0]['weights'], precision=4)}."
        )


@exercise(
    _judge_train_on,
    "The number of steps done is the key; what is saved is a deep copy of the state and the position of the next batch. "
    "max(store) is the newest; an empty store means fresh() and position 0.",
    copies=False,
)
def train_on(last, every, store, fresh, step, batch):
    """Go on from the newest checkpoint, or from the start, to `last` steps done.

    store: a dictionary, {steps done: whatever you save}; it survives a kill
    fresh() -> state, a dictionary of NumPy arrays; step(state, examples) changes them
    batch(position) -> (examples, position of the next batch); the first position is 0
    """
    from copy import deepcopy

    done = max(store, default=0)
    state, position = deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        examples, position = batch(position)
        step(state, examples)
        done += 1
        if done % every == 0:
            store[done] = deepcopy((state, position))


# 17.3 Which step is whole

_LISTINGS = [  # files, newest whole step
    (["3/part_0_of_2", "3/part_1_of_2", "9/part_1_of_2", "9/part_0_of_2", "12/part_0_of_2"], 9),
    ([f"{step}/part_{i}_of_2" for step in (90, 100, 8) for i in range(2)], 100),
    (["4/part_0_of_1", "8/part_0_of_4", "8/part_1_of_4", "8/part_3_of_4"], 4),
    (["5/part_0_of_2", "5/part_1_of_2", "7/part_0_of_2", "7/part_1_of_2.tmp"], 5),
    (["2/part_0_of_1", "6/part_0_of_2", "6/part_1_of_4"], 2),
    (["10/part_0_of_3", "10/part_2_of_3"], None),
    ([f"{step}/part_{i}_of_12" for step in (20, 30) for i in range(12) if (step, i) != (30, 11)], 20),
    (["1/part_1_of_2", "1/part_0_of_2", "2/part_0_of_4", "2/part_0_of_1"], 2),
    (["6/part_0_of_4", "6/part_1_of_2", "2/part_0_of_1"], 2),
    (["3/part_0_of_1", "5/part_0_of_2", "5/part_0_of_4.tmp", "5/part_1_of_4", "5/part_1_of_2"], 5),
    (["0/part_0_of_1", "3/part_1_of_2"], 0),
    ([], None),
]


_NO_RETURN = " Does the function end with `return`, on every way through it?"


def _parts(files):
    found = {}
    for name in files:
        if match := re.fullmatch(r"(\d+)/part_(\d+)_of_(\d+)", name):
            step, part, of = map(int, match.groups())
            found.setdefault((step, of), set()).add(part)
    return found


def _judge_newest_whole(answer):
    for files, want in _LISTINGS:
        listed = shown(files) if len(files) > 6 else files
        try:
            got = answer(list(files))
        except Wrong as wrong:
            if files is _LISTINGS[0][0]:
                raise
            asked = f"{want} is expected" if want is not None else "no step is whole there, so None is expected"
            raise Wrong(f"Of {listed}: {wrong}. Here {asked}.") from wrong
        told = f"Of {listed} you return"
        if want is None and got is None:
            continue
        if want is None:
            raise Wrong(f"{told} {shown(got)}; no step is whole there, so None is expected.")
        if got is None:
            of = max(of for (at, of), had in _parts(files).items() if at == want and len(had) == of)
            parts = "its one part" if of == 1 else f"all of its parts, 0 to {of - 1} of {of}"
            why = "" if want else " Mind that 0 counts as False."
            if files is _LISTINGS[0][0]:
                some = any(answer(list(others)) is not None for others, step in _LISTINGS[1:] if step is not None)
                why = " The newest step is not whole: then look at older ones." if some else _NO_RETURN
            raise Wrong(f"{told} None; step {want} has {parts}.{why}")
        step = number(got, f"the number of a step, {want}", said=told, whole=True)
        if step == want:
            continue
        parts = {of: had for (at, of), had in _parts(files).items() if at == step}
        every = {int(name.split("/")[0]) for name in files}
        if step not in every:
            raise Wrong(f"{told} {step}; there is no such step.")
        if any(len(had) == of for of, had in parts.items()):
            why = "It is whole, and a newer one is whole, too"
            if max(map(str, every)) == str(step):
                why += ": as text, '90' comes after '100'."
            elif any(name.endswith(".tmp") and name.startswith(f"{want}/") for name in files):
                why += f": of step {want} one save has all of its parts, and what another one left does not spoil it."
            elif len({of for at, of in _parts(files) if at == want}) > 1:
                why += f": step {want} was begun by two saves, of which one has all of its parts."
            else:
                why += "."
        elif any(name.endswith(".tmp") and name.startswith(f"{step}/") for name in files):
            why = "One of its parts ends in .tmp: it was still being written."
        elif len(parts) > 1:
            why = "Its parts belong to two saves, by other numbers of processes, and neither is whole."
        else:
            [(of, had)] = parts.items()
            why = f"It has {len(had)} of {of} parts: {sorted(set(range(of)) - had)} is missing."
        raise Wrong(f"{told} {step}. {why}")


@exercise(
    _judge_newest_whole,
    "Collect, for each step and each number of processes, the set of parts that are there; whole is a set as large as "
    "its number of processes. Compare the steps as numbers.",
)
def newest_whole(files):
    """Return the newest step with all its parts, or None. "12/part_0_of_2": a file."""
    import re

    parts, whole = {}, set()
    for name in files:
        found = re.fullmatch(r"(\d+)/part_(\d+)_of_(\d+)", name)
        if found:
            step, part, of = map(int, found.groups())
            parts.setdefault((step, of), set()).add(part)
            if len(parts[step, of]) == of:
                whole.add(step)
    return max(whole, default=None)


# 17.4 A fingerprint


def _state():
    import jax.numpy as jnp

    rng = np.random.default_rng(4)
    return {
        "first": rng.normal(size=(8, 16)).astype(np.float32),
        "second": rng.normal(size=(8, 16)).astype(np.float32),
        "table": rng.normal(size=(96, 40)),  # float64: more values than are printed
        "flags": np.array([True, False, True]),
        "zeros": np.zeros(6, np.float32),
        "odd": np.array([np.nan, np.inf, -1.5], np.float32),
        "step": np.int32(12),
        "tiny": np.array([1, 2, 3, 5], np.uint8).view(jnp.float8_e4m3fn),
        "a": np.array([*b"bc"], np.uint8),
        "de": np.array([*b"f"], np.uint8),
    }


def _flip(a, at, bit=0):
    changed = np.array(a)
    flat = changed.reshape(-1).view(np.uint8)
    flat[at] ^= 1 << bit
    return changed


def _changed():
    """(what was changed, the state with the change)."""
    import jax.numpy as jnp

    s = _state()
    swapped = s["first"].copy()
    swapped[2], swapped[5] = s["first"][5], s["first"][2]
    return [
        ("the highest bit of one number's exponent", s | {"first": _flip(s["first"], 4 * 37 + 3, 6)}),
        ("two rows, which have changed places", s | {"first": swapped}),
        ("the sign of a zero (its bits differ)", s | {"zeros": _flip(s["zeros"], 11, 7)}),
        ("the lowest bit of one float32", s | {"first": _flip(s["first"], 4 * 40)}),
        ("the lowest bit of one float64, in the middle of a large array", s | {"table": _flip(s["table"], 8 * 2001)}),
        ("two arrays of the same shape, which have changed names", s | {"first": s["second"], "second": s["first"]}),
        ("the shape, with the same bytes", s | {"first": s["first"].reshape(16, 8)}),
        ("the dtype, with the same bytes", s | {"first": s["first"].view(np.int32)}),
        ("the step, 12 and then 13", s | {"step": np.int32(13)}),
        ("one of three flags", s | {"flags": np.array([True, True, True])}),
        ("a name", {("other" if name == "first" else name): a for name, a in s.items()}),
        ("a name, in the same place of the order", {("steps" if name == "step" else name): a for name, a in s.items()}),
        ("one array, which is not there any more", {name: a for name, a in s.items() if name != "second"}),
        ("the lowest bit of a NaN, which stays one", s | {"odd": _flip(s["odd"], 0)}),
        (
            "a dtype, float8_e4m3fn and then int4, with the same bytes; their `dtype.str` and `dtype.kind` are alike",
            s | {"tiny": s["tiny"].view(jnp.int4)},
        ),
        (
            "two names and their bytes, a with bc and de with f, then ab with cd and e with f: joined, they are alike",
            {name: a for name, a in s.items() if name not in ("a", "de")}
            | {"ab": np.array([*b"cd"], np.uint8), "e": np.array([*b"f"], np.uint8)},
        ),
    ]


def _print_of(answer, state, what):
    got = answer(state)
    if isinstance(got, np.generic) or (isinstance(got, np.ndarray) and got.shape == ()):
        got = got.item()
    if not isinstance(got, int | str | bytes) or isinstance(got, bool):
        hint = " Does the function end with `return`?" if got is None else ""
        raise Wrong(f"Of {what} you return {shown(got)}; expected a whole number, a text or bytes.{hint}")
    return got


def _judge_fingerprint(answer):
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    line, grid, _ = _meshes()
    state = _state()
    want = _print_of(answer, state, "a state")
    if _print_of(answer, _state(), "a state") != want:
        raise Wrong(
            "Of two equal states your fingerprints differ. Is there something in it that is made anew each time?"
        )
    if _print_of(answer, dict(reversed(state.items())), "a state") != want:
        raise Wrong("Of one state, with its names in another order, your fingerprints differ; go through them sorted.")
    small = {name: state[name] for name in ("first", "second", "zeros", "step")}
    layouts = {
        "cut over 8 devices": {"first": NamedSharding(line, P("data")), "second": NamedSharding(line, P(None, "data"))},
        "cut over 2 x 4 devices": {"first": NamedSharding(grid, P("y", "x")), "second": NamedSharding(grid, P("x"))},
    }
    plain = _print_of(answer, small, "a state of NumPy arrays")
    for name, shardings in layouts.items():
        laid = {k: jax.device_put(v, shardings.get(k, NamedSharding(line, P()))) for k, v in small.items()}
        if _print_of(answer, laid, f"a state {name}") != plain:
            raise Wrong(
                f"Of one state as NumPy arrays and {name}, your fingerprints differ. Layout is not content: "
                "np.asarray brings both into one form."
            )
    for what, other in _changed():
        if _print_of(answer, other, "a state") == want:
            raise Wrong(f"Two states differ, and your fingerprints are the same. What differs is {what}.")
    kinds = len({_print_of(answer, {"step": np.int32(step)}, "a state") for step in range(300)})
    if kinds < 300:
        raise Wrong(
            f"Of 300 states, which differ in the step alone, you make {kinds} fingerprints: too few bits are kept."
        )
    if _elsewhere(answer, small) not in (None, repr(answer(small))):
        raise Wrong(
            "In another process the same state has another fingerprint, and there it is to be compared, after a crash. "
            "(Python's own `hash` of a text or of bytes begins with another number in each process.)"
        )


def _elsewhere(answer, state):
    """The fingerprint that another process makes, as text; None where the function cannot be sent there."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    own = {"PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with suppress(ValueError, KeyError, OSError, subprocess.SubprocessError):
        above, call = as_text(answer, [state]).rsplit("\n\n", 1)
        program = f"{above}\n\nprint(repr({call.strip()}))\n"
        run = subprocess.run(
            [sys.executable, "-"],
            input=program,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env=os.environ | own,
        )
        return run.stdout.splitlines()[-1]
    return None


@exercise(
    _judge_fingerprint,
    "Go through the names, sorted. np.asarray(a).tobytes() has the bytes of all numbers; the name, the shape and the dtype "
    "are text, and text.encode() has its bytes. zlib.crc32(bytes, before) takes up where `before` ended. (Python's own "
    "hash of a text differs from process to process.)",
)
def fingerprint(state):
    """Return a number, a text or bytes of {name: array}: of content, not layout."""
    import zlib

    import numpy as np

    found = 0
    for name in sorted(state):
        a = np.asarray(state[name])
        found = zlib.crc32(f"{name} {a.shape} {a.dtype}".encode(), found)
        found = zlib.crc32(a.tobytes(), found)
    return found


# 17.5 How often to save


def _young(size=1.0, rate=1.0, hours=1.0, chips=1.0, two=1.0, unit=1.0, root=0.5):
    return unit * (2 * two * (size / rate) * (hours * 3600 / chips)) ** root / 60


def _judge_minutes_between_saves(answer):
    # By hand: 1e9 x 12 bytes at 2e8 bytes a second are 60 s; 64,000 h / 320 chips are 200 h, 720,000 s;
    # the root of 2 x 60 x 720,000 is 9,295 s, 154.9 minutes.
    for parameters, each, rate, hours, chips in (
        (1e9, 12, 2e8, 64_000, 320),
        (4.05e11, 14, 2e12, 50_700, 16_384),
        (7e9, 10, 5e9, 20_000, 48),
    ):
        told = f"For {parameters:g} parameters of {each} bytes, {rate:g} bytes a second, {hours:,} hours and {chips:,} chips"
        said = number(
            answer(parameters, each, rate, hours, chips),
            "one number, of minutes",
            said=f"{told}, you return",
            positive=True,
        )
        save, between = parameters * each / rate, hours * 3600 / chips
        best, small = (2 * save * between) ** 0.5, save / (2 * between)
        daly = best * (1 + small**0.5 / 3 + small / 9) - save
        words = explained(
            said,
            [
                ((best + save) / 60, "that is T and the time of a save; T is the work between two saves"),
                ((best - save) / 60, "nothing is taken off: T is the work between two saves"),
                (daly / 60, "that is Daly's formula; Young's is asked"),
            ],
        )
        if words:
            raise Wrong(f"{told}, you say {said:.6g} minutes: {words}.")
        by_factors(
            said,
            f"{told}, ",
            "minutes",
            _young,
            {
                "size": parameters * each,
                "rate": rate,
                "hours": hours,
                "chips": chips,
                "two": 1.0,
                "unit": 1.0,
                "root": 0.5,
            },
            {
                "size": [
                    (parameters, "a save has bytes, not parameters: times the bytes of each"),
                    (
                        parameters * each / chips,
                        "the rate is that of all chips together: do not divide the bytes by them",
                    ),
                    (parameters * each * chips, "each parameter is saved once, not once a chip"),
                    (parameters * each * 8, "the rate is in bytes, not bits: there is a factor of 8 too many"),
                    (parameters * each // rate * rate, "`//` drops the fraction of a second"),
                ],
                "chips": [
                    (1, "that is the time between failures of one chip; of so many, one fails more often"),
                    (1 / chips, "more chips fail more often, not less"),
                    (
                        math.sqrt(chips),
                        "failures add up: the time between them goes down with the number of chips, not its root",
                    ),
                ],
                "two": [
                    (0.5, "Young's formula has a 2 under the root: on average half an interval is lost"),
                    (2, "there is a factor of 2 too many under the root"),
                    (0.25, "on average half an interval is lost: the 2 stands above, not below"),
                ],
                "unit": [
                    (60, "these are seconds"),
                    (1 / 60, "these are hours"),
                    (
                        math.sqrt(60),
                        "the 60 that makes minutes of seconds stands under the root, or the time between failures is in "
                        "minutes and that of a save in seconds",
                    ),
                ],
                "hours": [
                    (hours / 3600, "an hour has 3,600 seconds: the two times need one unit"),
                    (hours / 60, "an hour has 3,600 seconds, not 60"),
                    (hours / 3600**2, "hours times 3,600 are seconds, not hours divided by it"),
                    (hours // chips * chips, "`//` drops the fraction of an hour"),
                ],
                "root": [(1, "the root is missing")],
            },
            "the time of a save is bytes / rate, the time between failures is that of one chip / chips, and Young's "
            "interval is the root of 2 x the one x the other",
        )
        want = _young(parameters * each, rate, hours, chips)
        if not math.isclose(said, want, rel_tol=2e-5):
            raise Wrong(
                f"{told}, you say {said:.6g} minutes; expected {want:.6g}. Is a factor rounded, or slightly off?"
            )


@exercise(
    _judge_minutes_between_saves,
    "The time of a save, in seconds: parameters x bytes_each / rate. The time between failures, in seconds: 3600 x "
    "chip_hours / chips. Young: the root of 2 x one x other; and 60 seconds are a minute.",
)
def minutes_between_saves(parameters, bytes_each, rate, chip_hours, chips):
    """Return Young's interval in minutes.

    rate: bytes a second, of all chips together
    chip_hours: mean hours between failures of one chip
    """
    save = parameters * bytes_each / rate
    failure = 3600 * chip_hours / chips
    return (2 * save * failure) ** 0.5 / 60
