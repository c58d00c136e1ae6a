"""Wrong answers to the exercises of notebook 17, and right ones in unusual forms."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import pickle
import re
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import ex17


def templates(spec, dtype=None, make=jax.ShapeDtypeStruct, shape=None):
    """A template whose specs are `spec(shape, mesh)`."""

    def template(saved, mesh):
        return {
            name: make(shape(s, mesh) if shape else s, dtype or d, sharding=NamedSharding(mesh, spec(s, mesh)))
            for name, (s, d) in saved.items()
        }

    return template


def first_axis(s, mesh, names=None):
    """The right spec, or one along other mesh axes."""
    at = next((i for i, size in enumerate(s) if size % mesh.size == 0), None)
    return P() if at is None else P(*[None] * at, names or mesh.axis_names)


def last_axis(s, mesh):
    at = next((i for i in reversed(range(len(s))) if s[i] % mesh.size == 0), None)
    return P() if at is None else P(*[None] * at, mesh.axis_names)


def divided_by(count):
    def spec(s, mesh):
        at = next((i for i, size in enumerate(s) if size % count == 0), None)
        return P() if at is None else P(*[None] * at, mesh.axis_names)

    return spec


def each_axis(s, mesh):
    """Axis by axis of the mesh, where it divides."""
    if len(mesh.axis_names) == 1:
        return first_axis(s, mesh)
    return P(*(name if size % mesh.shape[name] == 0 else None for size, name in zip(s, mesh.axis_names, strict=False)))


def both_axes(s, mesh):
    return P(*mesh.axis_names) if s == (24, 48) else first_axis(s, mesh)


def larger_than(s, mesh):
    at = next((i for i, size in enumerate(s) if size % mesh.size == 0 and size > mesh.size), None)
    return P() if at is None else P(*[None] * at, mesh.axis_names)


def an_axis_each(s, mesh):
    """Each axis of the mesh on an axis of its own, whether it divides or not."""
    return P(*mesh.axis_names) if first_axis(s, mesh) != P() and len(mesh.axis_names) > 1 else first_axis(s, mesh)


def finds_one(s, mesh):
    """Takes for granted that some axis can be cut."""
    at = min(i for i, size in enumerate(s) if size % mesh.size == 0)
    return P(*[None] * at, mesh.axis_names)


def by_leaves(saved, mesh):
    wanted = {name: jax.eval_shape(lambda s=s, d=d: jnp.zeros(s, d)) for name, (s, d) in saved.items()}
    return jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, first_axis(a.shape, mesh))),
        wanted,
    )


def with_trailing(s, mesh):
    spec = first_axis(s, mesh)
    return P(*spec, *[None] * (len(s) - len(spec)))


def reversed_names(s, mesh):
    return first_axis(s, mesh, mesh.axis_names[::-1])


def loop(
    save=copy.deepcopy,
    load=copy.deepcopy,
    when=lambda done, every: done % every == 0,
    key=lambda done: done,
    keep="both",
):
    """Exercise 17.2 with one thing that can be changed."""

    def train_on(last, every, store, fresh, step, batch):
        done = max(store, default=0)
        state, position = fresh(), 0
        if store:
            kept = load(store[done])
            if keep == "both":
                state, position = kept
            elif keep == "state":
                state = kept
            elif keep == "position":
                position = kept
            else:
                state["weights"], position = kept
        while done < last:
            examples, following = batch(position)
            step(state, examples)
            done += 1
            if when(done, every):
                store[key(done)] = save(
                    {
                        "both": (state, following),
                        "state": state,
                        "position": following,
                        "weights": (state["weights"], following),
                    }[keep]
                )
            position = following

    return train_on


def from_the_start(last, every, store, fresh, step, batch):
    state, position = fresh(), 0
    for done in range(1, last + 1):
        examples, position = batch(position)
        step(state, examples)
        if done % every == 0:
            store[done] = copy.deepcopy((state, position))


def so_many_more(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    for now in range(done + 1, done + last + 1):
        examples, position = batch(position)
        step(state, examples)
        if now % every == 0:
            store[now] = copy.deepcopy((state, position))


def position_of_this_batch(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        examples, following = batch(position)
        step(state, examples)
        done += 1
        if done % every == 0:
            store[done] = copy.deepcopy((state, position))
        position = following


def saves_before(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        if (done + 1) % every == 0:
            store[done + 1] = copy.deepcopy((state, position))
        examples, position = batch(position)
        step(state, examples)
        done += 1


def going_on_from(chosen):
    """Right, but for the checkpoint from which it goes on."""

    def train_on(last, every, store, fresh, step, batch):
        done = chosen(store)
        state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
        while done < last:
            examples, position = batch(position)
            step(state, examples)
            done += 1
            if done % every == 0:
                store[done] = copy.deepcopy((state, position))

    return train_on


oldest = going_on_from(lambda store: min(store, default=0))
listed_last = going_on_from(lambda store: [*store][-1] if store else 0)
newest_as_text = going_on_from(lambda store: max(store, key=str, default=0))


def same_batch(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        examples, _ = batch(position)
        step(state, examples)
        done += 1
        if done % every == 0:
            store[done] = copy.deepcopy((state, position))


def by_bytes(last, every, store, fresh, step, batch):
    """Saves a text, and finds its place again by asking for all batches before."""
    done = max(store) if store else 0
    state, position = fresh(), 0
    if done:
        state = {name: np.array(values) for name, values in json.loads(store[done]).items()}
    for _ in range(done):
        position = batch(position)[1]
    for now in range(done + 1, last + 1):
        examples, position = batch(position)
        step(state, examples)
        if not now % every:
            store[now] = json.dumps({name: values.tolist() for name, values in state.items()})


def recursive(last, every, store, fresh, step, batch):
    done, (state, position) = max(store.items(), default=(0, pickle.dumps((fresh(), 0)))), (None, None)
    done, (state, position) = done[0], pickle.loads(done[1])
    for now in range(done, min(last, (done // every + 1) * every)):
        examples, position = batch(position)
        step(state, examples)
        if (now + 1) % every == 0:
            store[now + 1] = pickle.dumps((state, position))
            recursive(last, every, store, fresh, step, batch)


def drops_older(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        examples, position = batch(position)
        step(state, examples)
        done += 1
        if done % every == 0:
            store.clear()
            store[done] = copy.deepcopy((state, position))


def one_too_high(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    done += bool(store)
    while done < last:
        examples, position = batch(position)
        step(state, examples)
        done += 1
        if done % every == 0:
            store[done] = copy.deepcopy((state, position))


def step_returns(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    while done < last:
        examples, position = batch(position)
        state = step(state, examples)
        done += 1
        if done % every == 0:
            store[done] = copy.deepcopy((state, position))


def saves_at_the_top(last, every, store, fresh, step, batch):
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    for now in range(done, last):
        if now and now % every == 0:
            store[now] = copy.deepcopy((state, position))
        examples, position = batch(position)
        step(state, examples)


def saves_nothing_done(last, every, store, fresh, step, batch):
    store.setdefault(0, (fresh(), 0))
    loop()(last, every, store, fresh, step, batch)


def from_this_life(last, every, store, fresh, step, batch):
    """Right: every life begins at a multiple of `every`."""
    done = max(store, default=0)
    state, position = copy.deepcopy(store[done]) if done else (fresh(), 0)
    for i in range(1, last - done + 1):
        examples, position = batch(position)
        step(state, examples)
        if i % every == 0:
            store[done + i] = copy.deepcopy((state, position))


def narrowed(dtype):
    def save(kept):
        return {name: a.astype(dtype) for name, a in kept[0].items()}, kept[1]

    def load(kept):
        return {name: a.astype(np.float64) for name, a in kept[0].items()}, kept[1]

    return loop(save=save, load=load)


def last_number(files):
    """Counts a step's parts whatever save they belong to, against the `of` that came last."""
    had, of = {}, {}
    for (step, n), parts in parts_of(files).items():
        had.setdefault(step, set()).update(parts)
        of[step] = n
    return max((step for step in had if len(had[step]) >= of[step]), default=None)


def first_number(files):
    found, of = parts_of(files), {}
    for step, n in found:
        of.setdefault(step, n)
    return max((step for (step, n), had in found.items() if n == of[step] and len(had) == n), default=None)


def without_tmp_steps(files):
    out = {name.split("/")[0] for name in files if name.endswith(".tmp")}
    return by_count([name for name in files if name.split("/")[0] not in out])


def one_digit(files):
    return by_count([name for name in files if re.fullmatch(r"\d+/part_\d_of_\d", name)])


def parts_of(files):
    found = {}
    for name in files:
        if match := re.fullmatch(r"(\d+)/part_(\d+)_of_(\d+)", name):
            found.setdefault((int(match[1]), int(match[3])), set()).add(int(match[2]))
    return found


def as_text(files):
    return max((str(step) for (step, of), had in parts_of(files).items() if len(had) == of), default=None)


def as_number_of_text(files):
    best = as_text(files)
    return None if best is None else int(best)


def latest_of_all(files):
    return max((int(name.split("/")[0]) for name in files), default=None)


def pairs_of_two(files):
    count = {}
    for name in files:
        count[int(name.split("/")[0])] = count.get(int(name.split("/")[0]), 0) + 1
    return max((step for step, n in count.items() if n >= 2), default=None)


def with_tmp(files):
    return by_count([name.removesuffix(".tmp") for name in files])


def by_count(files):
    found = parts_of(files)
    return max((step for (step, of), had in found.items() if len(had) == of), default=None)


def any_save(files):
    """Counts a step's parts whatever save they belong to, against the `of` of the last one."""
    count, of = {}, {}
    for name in files:
        if match := re.fullmatch(r"(\d+)/part_(\d+)_of_(\d+)", name):
            count[int(match[1])] = count.get(int(match[1]), 0) + 1
            of[int(match[1])] = min(of.get(int(match[1]), 99), int(match[3]))
    return max((step for step in count if count[step] >= of[step]), default=None)


def has_last_part(files):
    return max(
        (step for (step, of), had in parts_of(files).items() if of - 1 in had),
        default=None,
    )


def newest_alone(files):
    newest = latest_of_all(files)
    return newest if newest == by_count(files) else None


def from_one(files):
    found = parts_of(files)
    return max((step for (step, of), had in found.items() if had == set(range(1, of + 1))), default=None)


def none_is_no_case(files):
    return max(step for (step, of), had in parts_of(files).items() if len(had) == of)


def zero_for_none(files):
    return by_count(files) or 0


def oldest_whole(files):
    return min((step for (step, of), had in parts_of(files).items() if len(had) == of), default=None)


def by_sorting(files):
    for step in sorted({int(name.partition("/")[0]) for name in files}, reverse=True):
        sizes = {int(name.rsplit("_", 1)[1]) for name in files if name.startswith(f"{step}/") and name[-1].isdigit()}
        if any(all(f"{step}/part_{i}_of_{n}" in files for i in range(n)) for n in sizes):
            return step
    return None


def crc(parts, text=lambda name, a: f"{name} {a.shape} {a.dtype}", order=sorted):
    def fingerprint(state):
        found = 0
        for name in order(state):
            a = np.asarray(state[name])
            found = zlib.crc32(text(name, a).encode(), found)
            found = zlib.crc32(parts(a), found)
        return found

    return fingerprint


def whole_bytes(a):
    return np.ascontiguousarray(a).tobytes()


def total(state):
    return int(1e6 * sum(float(np.nan_to_num(np.asarray(a, float), posinf=0).sum()) for a in state.values()))


def printed(state):
    return str({name: np.asarray(state[name]) for name in sorted(state)})


def rounded(state):
    return json.dumps({n: [np.asarray(a).tolist(), str(np.asarray(a).dtype)] for n, a in sorted(state.items())})


def by_hash(state):
    named = [(name, np.asarray(state[name])) for name in sorted(state)]
    return hash(tuple((name, a.shape, str(a.dtype), a.tobytes()) for name, a in named))


def by_hash_of_text(state):
    return sum(hash(f"{name} {np.shape(a)} {a.dtype} {np.asarray(a).tobytes()}") for name, a in state.items())


def shapes_at_the_end(state):
    arrays = [(name, np.asarray(state[name])) for name in sorted(state)]
    ends = repr([(a.shape, str(a.dtype)) for _, a in arrays])
    return zlib.crc32(b"".join(name.encode() + a.tobytes() for name, a in arrays) + ends.encode())


def identity(state):
    return hash(tuple(id(a) for a in state.values()))


def summed_bytes(state):
    return sum(zlib.crc32(whole_bytes(np.asarray(a))) for a in state.values())


def digest(state):
    found = hashlib.sha256()
    for name in sorted(state):
        a = np.asarray(state[name])
        found.update(repr((name, a.shape, str(a.dtype))).encode() + whole_bytes(a))
    return found.hexdigest()


def by_pickle(state):
    named = {name: np.asarray(state[name]) for name in sorted(state)}
    return np.int64(
        zlib.crc32(
            b"".join(pickle.dumps((n, a.shape, str(a.dtype), a.tobytes()), protocol=4) for n, a in named.items())
        )
    )


def minutes(size=None, chips=None, two=2.0, hours=3600.0, unit=60.0, power=0.5):
    def minutes_between_saves(parameters, bytes_each, rate, chip_hours, of):
        save = (size(parameters, bytes_each, of) if size else parameters * bytes_each) / rate
        failure = hours * chip_hours / (chips(of) if chips else of)
        return (two * save * failure) ** power / unit

    return minutes_between_saves


def kept_work(change):
    """Young's interval in seconds, changed with the time of a save and that between failures."""

    def minutes_between_saves(parameters, bytes_each, rate, chip_hours, chips):
        save, between = parameters * bytes_each / rate, 3600 * chip_hours / chips
        return change((2 * save * between) ** 0.5, save, between) / 60

    return minutes_between_saves


def daly(young, save, between):
    small = save / (2 * between)
    return young * (1 + small**0.5 / 3 + small / 9) - save


def cube_root(parameters, bytes_each, rate, chip_hours, chips):
    return (2 * parameters * bytes_each / rate * 3600 * chip_hours / chips) ** (1 / 3) / 60


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex17.template: [
        (templates(lambda s, mesh: P()), "It is whole on each device, and its axis 0 is a multiple of 8"),
        (
            templates(lambda s, mesh: P(mesh.axis_names[0]) if s and s[0] % 24 == 0 else first_axis(s, mesh)),
            "all 8 devices",
        ),
        (
            templates(lambda s, mesh: first_axis(s, mesh, mesh.axis_names[0])),
            "all 8 devices are to have a part of their own",
        ),
        (templates(last_axis), "Its axis 1 is cut, and axis 0 is the first that 8 devices divide"),
        (templates(each_axis), "It is cut in 2; all 8 devices are to have a part of their own"),
        (templates(both_axes), "It is cut along the axes [0, 1]; one is asked"),
        (templates(divided_by(8)), "6 devices do not divide that axis"),
        (templates(larger_than), "'heads', bfloat16 of shape (8, 30), you say P() on a 8 mesh ('data',). It is whole"),
        (templates(larger_than), "its axis 0 is a multiple of 8: 8 itself is one, too"),
        (templates(an_axis_each), "It is cut along the axes [0, 1], each in parts of its own; one axis is asked"),
        (templates(finds_one), "for 'norm', float32 of shape (5,): Your function raised ValueError"),
        (templates(first_axis, dtype="float32"), "the numbers would be converted"),
        (templates(first_axis, make=lambda s, d, sharding: jax.ShapeDtypeStruct(s, d)), "has no sharding"),
        (templates(first_axis, make=lambda s, d, sharding: sharding), "expected a jax.ShapeDtypeStruct"),
        (templates(first_axis, make=lambda s, d, sharding: np.zeros(s, d)), "To say what is wanted takes no memory"),
        (
            templates(first_axis, shape=lambda s, mesh: tuple(n // 8 or 1 for n in s)),
            "has the shape of the whole array",
        ),
        (templates(reversed_names), "other devices than those of the mesh in its order"),
        (lambda saved, mesh: list(saved), "expected a dictionary with the names of `saved`"),
        (lambda saved, mesh: {}, "Your dictionary has the names []"),
    ],
    ex17.train_on: [
        (from_the_start, "the checkpoint in the store is not used"),
        (loop(keep="state"), "the state is right, and the examples are those of step 0"),
        (loop(keep="weights"), "the weights are right and the momenta are not"),
        (loop(keep="position"), "the checkpoint in the store is not used"),
        (loop(save=lambda kept: kept), "must be a copy"),
        (loop(load=lambda kept: kept), "must be a copy"),
        (loop(save=copy.copy), "must be a copy"),
        (position_of_this_batch, "the examples are those of step 2"),
        (saves_before, "the state of 2 steps"),
        (oldest, "that is the checkpoint of 2 steps, and there is a newer one"),
        (same_batch, "the examples are those of step 0"),
        (so_many_more, "10 are to be done in all, so 7 more"),
        (loop(when=lambda done, every: True), "the store has the keys [1, 2, 3, 4]; expected [3]"),
        (loop(when=lambda done, every: False), "the store has the keys []; expected [3]"),
        (loop(when=lambda done, every: (done - 1) % every == 0), "the store has the keys"),
        (loop(key=lambda done: done - 1), "the store has the keys [2]; expected [3]"),
        (loop(key=str), "the store has the keys ['3']; expected [3]. These are texts"),
        (loop(key=lambda done: done - 1), "the number of steps done, with the one before the save"),
        (drops_older, "expected [3, 6, 9]. The older ones are to stay"),
        (listed_last, "that is the checkpoint of 2 steps, and there is a newer one"),
        (newest_as_text, "there is a newer one: as text, '9' comes after '12'"),
        (one_too_high, "expected [3]. With 5 steps done, 6 is there already"),
        (step_returns, "changes the arrays of the state and returns nothing"),
        (saves_at_the_top, "The newest is missing: is it saved when 8 steps are done?"),
        (saves_nothing_done, "With 0 steps done there is nothing to save"),
        (narrowed(np.float16), "to a few digits, and not exactly"),
        (narrowed(np.float32), "to a few digits, and not exactly"),
    ],
    ex17.newest_whole: [
        (latest_of_all, "It has 1 of 2 parts: [1] is missing"),
        (as_number_of_text, "as text, '90' comes after '100'"),
        (as_text, "expected the number of a step"),
        (pairs_of_two, "It has 3 of 4 parts: [2] is missing"),
        (with_tmp, "One of its parts ends in .tmp"),
        (any_save, "Its parts belong to two saves"),
        (has_last_part, "It has 3 of 4 parts"),
        (zero_for_none, "no step is whole there, so None is expected"),
        (oldest_whole, "It is whole, and a newer one is whole, too"),
        (lambda files: [by_count(files)], "expected the number of a step"),
        (last_number, "Its parts belong to two saves"),
        (first_number, "step 2 was begun by two saves, of which one has all of its parts"),
        (without_tmp_steps, "what another one left does not spoil it"),
        (lambda files: by_count(files) or None, "step 0 has its one part. Mind that 0 counts as False"),
        (one_digit, "you return None; step 20 has all of its parts, 0 to 11 of 12"),
        (lambda files: None, "Does the function end with `return`"),
        (newest_alone, "step 9 has all of its parts, 0 to 1 of 2. The newest step is not whole: then look at older"),
        (from_one, "step 9 has all of its parts, 0 to 1 of 2. Does the function end with `return`"),
        (none_is_no_case, "Of ['10/part_0_of_3', '10/part_2_of_3']: Your function raised ValueError"),
    ],
    ex17.fingerprint: [
        (total, "What differs is two rows, which have changed places"),
        (by_hash, "In another process the same state has another fingerprint"),
        (by_hash_of_text, "Python's own `hash` of a text or of bytes"),
        (rounded, "the lowest bit of a NaN"),
        (crc(whole_bytes, text=lambda name, a: f"{name} {a.shape} {a.dtype.str}"), "float8_e4m3fn and then int4"),
        (crc(whole_bytes, text=lambda name, a: f"{name} {a.shape} {a.dtype.kind}"), "float8_e4m3fn and then int4"),
        (shapes_at_the_end, "two names and their bytes"),
        (lambda state: zlib.crc32(digest(state).encode()) % 256, "too few bits are kept"),
        (printed, "in the middle of a large array"),
        (identity, "Is there something in it that is made anew each time?"),
        (summed_bytes, "two arrays of the same shape, which have changed names"),
        (crc(whole_bytes, order=list), "with its names in another order"),
        (crc(whole_bytes, text=lambda name, a: f"{a.shape} {a.dtype}"), "What differs is a name"),
        (crc(whole_bytes, text=lambda name, a: f"{name} {a.dtype}"), "the shape, with the same bytes"),
        (crc(whole_bytes, text=lambda name, a: f"{name} {a.shape}"), "the dtype, with the same bytes"),
        (crc(lambda a: a.astype(np.float32).tobytes()), "What differs is the lowest bit of one float64"),
        (crc(lambda a: np.sort(a, axis=None).tobytes()), "two rows, which have changed places"),
        (crc(lambda a: (a + 0).tobytes()), "the sign of a zero"),
        (
            lambda state: {n: np.asarray(a).tobytes() for n, a in state.items()},
            "expected a whole number, a text or bytes",
        ),
        (lambda state: os.urandom(4), "Is there something in it that is made anew each time?"),
        (lambda state: digest({"first": state["first"]}), "What differs is"),
    ],
    ex17.minutes_between_saves: [
        (minutes(chips=lambda of: 1), "that is the time between failures of one chip"),
        (minutes(chips=lambda of: 1 / of), "more chips fail more often, not less"),
        (minutes(two=1.0), "Young's formula has a 2 under the root"),
        (minutes(two=4.0), "a factor of 2 too many"),
        (minutes(two=0.5), "the 2 stands above, not below"),
        (minutes(size=lambda n, each, of: n), "a save has bytes, not parameters"),
        (minutes(size=lambda n, each, of: n * each / of), "the rate is that of all chips together"),
        (minutes(unit=1.0), "these are seconds"),
        (minutes(unit=3600.0), "these are hours"),
        (minutes(hours=1.0), "the two times need one unit"),
        (minutes(hours=60.0), "an hour has 3,600 seconds, not 60"),
        (minutes(power=1.0), "the root is missing"),
        (minutes(chips=lambda of: math.sqrt(of)), "failures add up"),
        (minutes(two=1.0, unit=1.0), "these are seconds"),
        (cube_root, "Young's interval is the root of"),
        (lambda *given: minutes()(*given) * 60**0.5, "the 60 that makes minutes of seconds stands under the root, or"),
        (kept_work(lambda young, save, between: young + save), "that is T and the time of a save"),
        (kept_work(lambda young, save, between: young - save), "nothing is taken off"),
        (kept_work(daly), "that is Daly's formula; Young's is asked"),
        (minutes(size=lambda n, each, of: 8 * n * each), "in bytes, not bits"),
        (minutes(hours=1 / 3600, chips=lambda of: 1 / of), "and hours times 3,600 are seconds"),
        (lambda n, each, rate, hours, of: (2 * (n * each // rate) * 3600 * hours / of) ** 0.5 / 60, "`//` drops"),
        (lambda *args: None, "expected one number, of minutes"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex17.template: [
        by_leaves,
        templates(with_trailing),
        templates(
            first_axis, make=lambda s, d, sharding: jax.ShapeDtypeStruct(list(s), jnp.dtype(d), sharding=sharding)
        ),
        lambda saved, mesh: {n: t.update() for n, t in ex17.template.function(saved, mesh).items()},
    ],
    ex17.train_on: [
        by_bytes,
        recursive,
        from_this_life,
        loop(save=pickle.dumps, load=pickle.loads),
        loop(save=lambda kept: (copy.deepcopy(kept[0]), np.int64(kept[1]))),
    ],
    ex17.newest_whole: [
        by_count,
        by_sorting,
        lambda files: None if by_count(files) is None else float(by_count(files)),
        lambda files: None if by_count(files) is None else np.int32(by_count(files)),
    ],
    ex17.fingerprint: [
        digest,
        by_pickle,
        crc(whole_bytes),
        lambda state: digest(state).encode(),
        lambda state: digest(jax.device_get(state)),
    ],
    ex17.minutes_between_saves: [
        lambda n, each, rate, hours, chips: math.sqrt(2 * n * each / rate * hours / chips / 3600) * 60,
        lambda n, each, rate, hours, chips: np.float32(np.sqrt(2.0 * n * each / rate * hours * 3600 / chips) / 60),
        lambda n, each, rate, hours, chips: jnp.sqrt(2 * (n * each / rate / 60) * (hours * 60 / chips)),
        lambda *args: np.array(minutes()(*args)),
    ],
}

# exercise: changes of the solution in one place that compute the same
SAME = {
    ex17.fingerprint: [
        ("found = 0 -> found = 1", "the number that the first sum takes up is free"),
        ("a = np.asarray(state[name]) -> a = state[name]", "jax.Array has tobytes as well"),
        ("found = zlib.crc32(a.tobytes(), found) -> found = zlib.crc32(a, found)", "an array hands over its own bytes"),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex17.on_disk: (
        143_600,
        [
            (295_040, "of equal copies the disk gets one"),
            (1_212_544, "it is written once"),
            (36_880, "the parts of all eight"),
            (18_946, "an eighth of the arrays"),
            (75_784, "leave out the momenta"),
            (37_892, "a float32 takes 4 bytes"),
            (303_136, "a float32 takes 4 bytes, not 8"),
        ],
    ),
    ex17.cast: (
        "bfloat16",
        [("float32", "it says another type"), ("error", "shapes must agree")],
    ),
    ex17.first_differs: (
        {"params": 4, "momenta": 5, "step": 5, "position": 4, "key": 4},
        [
            ((5, None, None, None, None), "before they change"),
            ((None, 4, None, None, None), "before the momenta move the weights"),
            ((None, None, 4, None, None), "used after the loss"),
            ((None, None, None, 5, None), "other examples"),
            ((None, None, None, None, 5), "those are in the loss"),
            ((None, 6, None, None, None), "look for what a loss is computed from"),
        ],
    ),
    ex17.survivor: (
        "aborts",
        [
            ("catches", "all the same"),
            ("waits", "the heartbeat ends that"),
            ("goes on", "half of the parts never come"),
        ],
    ),
    ex17.in_all: (
        14,
        [
            (11, "never got its name"),
            (9, "are done again"),
            (12, "the first three were done in the notebook"),
            (17, "the newest whole checkpoint is that of step 6"),
            (10, "its checkpoint is not whole"),
        ],
    ),
    ex17.fewer: (
        "nearly",
        [("the same", "in another order"), ("other", "only the order of sums differs")],
    ),
    ex17.slower: (
        10,
        [
            (100, "one also saves less often"),
            (1, "a save takes 100 times as long"),
            (50, "both terms grow"),
            (10 / math.sqrt(10), "take the root of 100"),
        ],
    ),
    ex17.one_bit: ("another value", [("error", "a byte is another one"), ("the same", "in an array's data")]),
    ex17.full_disk: (
        "True",
        [("False", "in the background"), ("error", "comes, but later")],
    ),
    ex17.second_run: (
        "nothing",
        [("overwritten", "is not replaced"), ("error", "look at what `save` returns")],
    ),
}
