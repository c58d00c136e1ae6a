"""Runs one device's text of a Pallas kernel, operation by operation, and hands over what concerns other devices.

A generator: it yields a Copy, a Signal, a Wait or Work where time passes or another device takes part, and goes on when
it is asked to. `copies` decides when that is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from utils.compat import copy_parts, run_equation, scan_counts


class Ref:
    """An array in one device's memory, or a semaphore. The same kernel has it under the same number on every device."""

    def __init__(self, number: Any, aval: Any) -> None:
        self.number, self.aval, self.shape = number, aval, tuple(aval.shape)
        self.semaphore = "semaphore" in str(getattr(aval, "memory_space", "")) or "sem" in str(aval.dtype)
        if not self.semaphore:  # what nobody has written is nan, or a very small whole number
            kind = np.dtype(aval.dtype)
            empty = np.iinfo(kind).min if kind.kind in "iu" else False if kind.kind == "b" else np.nan
            self.array = np.full(self.shape, empty, kind)


@dataclass
class Here:
    """One device: its number, its places along the axes of the mesh, and all that the devices hold (`memory`)."""

    device: int
    where: dict[str, int]
    memory: dict[Any, Ref]
    kernels: int = 0

    def ref(self, number: Any, aval: Any, device: int | None = None) -> Ref:
        """The reference of this number on this device, or on another: the one that is there, or a new one."""
        key = (self.device if device is None else device, number)
        return self.memory.setdefault(key, Ref(number, aval))


class Place(NamedTuple):
    """A part of a reference."""

    ref: Ref
    index: tuple[Any, ...]

    def read(self) -> np.ndarray:
        return np.array(self.ref.array[self.index])

    def write(self, value: Any) -> None:
        self.ref.array[self.index] = value

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.ref.array[self.index].nbytes)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.ref.number, *(int(i) for i in self.index if not isinstance(i, slice)))


@dataclass
class Copy:
    """A copy begins. To the own device where `device` is None."""

    source: Place
    target: Place
    arrived: Place
    sent: Place | None
    device: Any


@dataclass
class Signal:
    semaphore: Place
    amount: int
    device: Any  # None: the own


@dataclass
class Wait:
    semaphore: Place
    amount: int
    what: str  # it waits for


class Work(NamedTuple):
    """A matrix product."""


Asked = Copy | Signal | Wait | Work
Run = Generator[Asked, None, list[Any]]


def run(jaxpr: Any, consts: Sequence[Any], values: Sequence[Any], here: Here) -> Run:
    """Run a jaxpr on one device; returns its results.

    Raises NotImplementedError for a kernel with a grid or blocks, and for an operation on references not known here.
    """
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))

    def value(atom: Any) -> Any:
        return np.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else known[atom]

    for eqn in jaxpr.eqns:
        given = [value(atom) for atom in eqn.invars]
        name = eqn.primitive.name
        if name in _KNOWN:
            got = yield from _KNOWN[name](eqn, given, here)
        elif name in _AROUND or (any(isinstance(one, Ref) for one in given) and "jaxpr" in eqn.params):
            inner = eqn.params["jaxpr"] if "jaxpr" in eqn.params else eqn.params["call_jaxpr"]
            got = yield from run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given, here)
        elif any(isinstance(one, Ref) for one in given):
            raise NotImplementedError(f"what {name!r} does to a reference is not known here")
        else:
            got = [_plain(one) for one in run_equation(eqn, *given)]
            if name == "dot_general":
                yield Work()
        known.update(zip(eqn.outvars, got, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _plain(result: Any) -> Any:
    """As NumPy: an array of JAX's may name the mesh of another program whose line was the same and had run before."""
    return np.asarray(result) if isinstance(getattr(result, "dtype", None), np.dtype) else result


def place(ref: Ref, transforms: Sequence[Any] = ()) -> Place:
    """The part of a reference that is meant by what stands in the brackets of `ref.at[...]`, one pair of them."""
    if len(transforms) > 1:
        raise NotImplementedError("ref.at[...].at[...]: write one index in the place of the two")
    index: list[Any] = []
    for entry in transforms[0].indices if transforms else ():
        if hasattr(entry, "size") and hasattr(entry, "stride"):
            start = int(entry.start)
            index.append(slice(start, start + entry.size * entry.stride, entry.stride))
        else:
            index.append(int(entry) if np.ndim(entry) == 0 else np.asarray(entry))
    for entry, length in zip(index, ref.shape, strict=False):
        top = entry.stop if isinstance(entry, slice) else np.max(entry) + 1
        low = entry.start if isinstance(entry, slice) else np.min(entry)
        if low < 0 or top > length:
            raise IndexError(f"the kernel takes place {low if low < 0 else top - 1} of an axis of {length}")
    return Place(ref, tuple(index))


def _refuse_far(ref: Ref) -> None:
    """The core has no access to large memory, on a chip, in JAX's interpreter, and here."""
    if str(getattr(ref.aval, "memory_space", "")) in ("any", "hbm"):
        raise NotImplementedError("a ref in pl.ANY is read or written by copies alone, such as pltpu.make_async_copy")


def _get(eqn: Any, given: list[Any], here: Here) -> Run:
    import jax

    ref, *rest = given
    _refuse_far(ref)
    yield from ()
    return [place(ref, jax.tree.unflatten(eqn.params["tree"], rest)).read()]


def _swap(eqn: Any, given: list[Any], here: Here) -> Run:
    import jax

    ref, new, *rest = given
    _refuse_far(ref)
    at = place(ref, jax.tree.unflatten(eqn.params["tree"], rest))
    old = at.read()
    at.write(np.asarray(new) + (old if eqn.primitive.name == "addupdate" else 0))
    yield from ()
    return [] if eqn.primitive.name == "addupdate" else [old]


def _start(eqn: Any, given: list[Any], here: Here) -> Run:
    source, target, arrived, sent, device = copy_parts(eqn, given)
    yield Copy(place(*source), place(*target), place(*arrived), place(*sent) if sent else None, device)
    return []


def _wait_copy(eqn: Any, given: list[Any], here: Here) -> Run:
    """A wait for so many bytes. In `wait_send` source and target, and the semaphores, have changed places."""
    _, target, semaphore, *_ = copy_parts(eqn, given)
    yield Wait(place(*semaphore), place(*target).size, "a copy to arrive")
    return []


def _signal(eqn: Any, given: list[Any], here: Here) -> Run:
    import jax

    ref, transforms, amount, device, *_ = jax.tree.unflatten(eqn.params["args_tree"], given)
    yield Signal(place(ref, transforms), int(amount), device)
    return []


def _wait(eqn: Any, given: list[Any], here: Here) -> Run:
    import jax

    ref, transforms, amount, *_ = jax.tree.unflatten(eqn.params["args_tree"], given)
    yield Wait(place(ref, transforms), int(amount), "a signal")
    return []


def _barrier(eqn: Any, given: list[Any], here: Here) -> Run:
    yield from ()
    return [Ref("barrier", eqn.outvars[0].aval)]


def _axis_index(eqn: Any, given: list[Any], here: Here) -> Run:
    yield from ()
    return [np.int32(here.where[eqn.params["axis_name"]])]


def _cond(eqn: Any, given: list[Any], here: Here) -> Run:
    which, *rest = given
    branches = eqn.params["branches"]
    branch = branches[int(np.clip(int(which), 0, len(branches) - 1))]
    return (yield from run(branch.jaxpr, branch.consts, rest, here))


def _scan(eqn: Any, given: list[Any], here: Here) -> Run:
    params = eqn.params
    consts, carry = scan_counts(eqn)
    fixed, state, rows = given[:consts], given[consts : consts + carry], given[consts + carry :]
    rounds = range(params["length"])
    out = []
    for i in reversed(rounds) if params["reverse"] else rounds:
        body = params["jaxpr"]
        got = yield from run(body.jaxpr, body.consts, [*fixed, *state, *(row[i] for row in rows)], here)
        state = got[:carry]
        out.append(got[carry:])
    out = out[::-1] if params["reverse"] else out
    return [*state, *(np.stack([np.asarray(one) for one in column]) for column in zip(*out, strict=True))]


def _while(eqn: Any, given: list[Any], here: Here) -> Run:
    params = eqn.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    asks, body, state = given[:first], given[first : first + second], given[first + second :]
    for _ in range(10_000):
        test = params["cond_jaxpr"]
        [going] = yield from run(test.jaxpr, test.consts, [*asks, *state], here)
        if not bool(going):
            return list(state)
        inner = params["body_jaxpr"]
        state = yield from run(inner.jaxpr, inner.consts, [*body, *state], here)
    raise NotImplementedError("a loop of more than 10,000 rounds")


def _run_scoped(eqn: Any, given: list[Any], here: Here) -> Run:
    inner = eqn.params["jaxpr"]
    here.kernels += 1
    refs = [here.ref((here.kernels, i), invar.aval) for i, invar in enumerate(inner.invars)]
    return (yield from run(inner, given, refs, here))


def _kernel(eqn: Any, given: list[Any], here: Here) -> Run:
    if tuple(eqn.params["grid_mapping"].grid):
        raise NotImplementedError("a kernel with a grid")
    inner = eqn.params["jaxpr"]
    here.kernels += 1
    refs = [here.ref((here.kernels, i), invar.aval) for i, invar in enumerate(inner.invars)]
    for ref, array in zip(refs, given, strict=False):
        ref.array[...] = np.asarray(array)
    yield from run(inner, (), refs, here)
    outputs = refs[len(given) : len(given) + len(eqn.outvars)]
    return [ref.array.copy() for ref in outputs]  # what arrives later is not in it


def _nothing(eqn: Any, given: list[Any], here: Here) -> Run:
    yield from ()
    return []


# Of references or of values alone: what is inside costs what it costs outside.
_AROUND = ("jit", "pjit", "remat2", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call")
_KNOWN = {
    "get": _get,
    "swap": _swap,
    "addupdate": _swap,
    "dma_start": _start,
    "dma_wait": _wait_copy,
    "semaphore_signal": _signal,
    "semaphore_wait": _wait,
    "get_barrier_semaphore": _barrier,
    "axis_index": _axis_index,
    "cond": _cond,
    "scan": _scan,
    "while": _while,
    "run_scoped": _run_scoped,
    "pallas_call": _kernel,
    "debug_print": _nothing,
    "debug_callback": _nothing,
    "delay": _nothing,
}
