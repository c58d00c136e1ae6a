"""Evaluate a Pallas kernel on one device, one operation at a time, and report the steps that involve other devices.

The evaluator is a generator. It yields a Copy, a Signal, a Wait or a Product whenever time passes or another device is
involved, and resumes when the caller asks for the next step. `simulator` decides when to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from utils.compat import dma_operands, evaluate_equation, scan_counts

if TYPE_CHECKING:
    from jax.extend.core import Jaxpr, JaxprEqn

MAX_ITERATIONS = 10_000  # the maximum number of iterations of a while loop
Value = Any  # the value of a kernel's variable: a Ref, a NumPy array, or a Python or JAX scalar


class Ref:
    """An array or semaphore in one device's memory. Its counterparts on all other devices have the same key."""

    def __init__(self, key: Any, aval: Any) -> None:
        self.key, self.aval, self.shape = key, aval, tuple(aval.shape)
        self.is_semaphore = "semaphore" in str(getattr(aval, "memory_space", "")) or "sem" in str(aval.dtype)
        if not self.is_semaphore:  # fill uninitialized memory with NaN, the smallest integer or False
            dtype = np.dtype(aval.dtype)
            fill = np.iinfo(dtype).min if dtype.kind in "iu" else False if dtype.kind == "b" else np.nan
            self.array = np.full(self.shape, fill, dtype)


@dataclass
class DeviceState:
    """One device's number, its coordinates in the mesh, and the memory of all devices."""

    device: int
    coordinates: dict[str, int]  # by axis name
    memory: dict[tuple[int, Any], Ref]  # by device and the reference's key
    kernels: int = 0  # the number of kernels and scopes that the device has entered

    def ref(self, key: Any, aval: Any, device: int | None = None) -> Ref:
        """Return the reference with this key on a device (by default, this one). Create it if necessary."""
        place = (self.device if device is None else device, key)
        return self.memory.setdefault(place, Ref(key, aval))

    def new_refs(self, variables: Sequence[Any]) -> list[Ref]:
        """Enter a kernel, or a scope within one, and return references for its variables."""
        self.kernels += 1
        return [self.ref((self.kernels, i), variable.aval) for i, variable in enumerate(variables)]


class RefView(NamedTuple):
    """The part of a reference that an index selects."""

    ref: Ref
    index: tuple[Any, ...]

    def read(self) -> np.ndarray:
        return np.array(self.ref.array[self.index])

    def write(self, value: Value) -> None:
        self.ref.array[self.index] = value

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return int(self.ref.array[self.index].nbytes)

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that identifies this semaphore and is the same on every device."""
        return (self.ref.key, *(int(i) for i in self.index if not isinstance(i, slice)))


@dataclass
class Copy:
    """The start of a copy."""

    source: RefView
    target: RefView
    arrived: RefView  # the semaphore on the target device that counts arrivals
    sent: RefView | None  # the semaphore that counts departures, or None for a local copy
    device: Any  # the target device, or None for this one


@dataclass
class Signal:
    """An increment of a semaphore."""

    semaphore: RefView
    amount: int
    device: Any  # the semaphore's device, or None for this one


@dataclass
class Wait:
    """A wait for a semaphore to reach an amount, which is then subtracted from it."""

    semaphore: RefView
    amount: int
    reason: str  # a description of what the device waits for


class Product(NamedTuple):
    """A matrix product."""


Evaluation = Generator[Copy | Signal | Wait | Product, None, list[Value]]
Rule = Callable[["JaxprEqn", list[Value], DeviceState], Evaluation]


def evaluate(jaxpr: Jaxpr, consts: Sequence[Value], arguments: Sequence[Value], state: DeviceState) -> Evaluation:
    """Evaluate a jaxpr on one device, and return its results.

    Raises NotImplementedError for a kernel with a grid or for an unknown operation on a reference, and IndexError for
    an index outside a reference.
    """
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments], strict=True))

    def value_of(atom: Any) -> Value:
        return np.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else values[atom]

    for eqn in jaxpr.eqns:
        inputs = [value_of(atom) for atom in eqn.invars]
        name = eqn.primitive.name
        has_refs = any(isinstance(value, Ref) for value in inputs)
        if name in _RULES:
            results = yield from _RULES[name](eqn, inputs, state)
        elif name in _CALLS or (has_refs and "jaxpr" in eqn.params):
            inner = eqn.params["jaxpr"] if "jaxpr" in eqn.params else eqn.params["call_jaxpr"]
            results = yield from evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs, state)
        elif has_refs:
            raise NotImplementedError(f"the evaluator does not support the operation {name!r} on a reference")
        else:
            results = [_as_numpy(result) for result in evaluate_equation(eqn, *inputs)]
            if name == "dot_general":
                yield Product()
        values.update(zip(eqn.outvars, results, strict=True))
    return [value_of(atom) for atom in jaxpr.outvars]


def _as_numpy(result: Value) -> Value:
    """Convert an array to NumPy, because JAX may cache arrays whose types refer to an earlier program's mesh."""
    return np.asarray(result) if isinstance(getattr(result, "dtype", None), np.dtype) else result


def view(ref: Ref, transforms: Sequence[Any] = ()) -> RefView:
    """Return the part of a reference that `ref.at[...]` selects, from the transforms in the jaxpr.

    Raises NotImplementedError for chained indices, as in `ref.at[0].at[1]`, and IndexError for an index outside the
    reference.
    """
    if len(transforms) > 1:
        raise NotImplementedError("the evaluator does not support ref.at[...].at[...]: combine the two indices")
    index: list[Value] = []
    for entry in transforms[0].indices if transforms else ():
        if hasattr(entry, "size") and hasattr(entry, "stride"):
            start = int(entry.start)
            index.append(slice(start, start + entry.size * entry.stride, entry.stride))
        else:
            index.append(int(entry) if np.ndim(entry) == 0 else np.asarray(entry))
    for entry, length in zip(index, ref.shape, strict=False):
        low, high = (entry.start, entry.stop) if isinstance(entry, slice) else (np.min(entry), np.max(entry) + 1)
        if low < 0 or high > length:
            raise IndexError(f"index {low if low < 0 else high - 1} is outside an axis of length {length}")
    return RefView(ref, tuple(index))


def _refuse_main_memory(ref: Ref) -> None:
    """Raise NotImplementedError for a reference in main memory, which a core can't read or write directly."""
    if str(getattr(ref.aval, "memory_space", "")) in ("any", "hbm"):
        raise NotImplementedError("a ref in pl.ANY can only be copied, for example with pltpu.make_async_copy")


def _immediate(rule: Callable[[JaxprEqn, list[Value], DeviceState], list[Value]]) -> Rule:
    """Turn a function into the rule for an operation that takes no time and involves no other device."""

    def evaluation(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
        yield from ()
        return rule(eqn, inputs, state)

    return evaluation


def _get(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> list[Value]:
    ref, *transforms = inputs
    _refuse_main_memory(ref)
    return [view(ref, jax.tree.unflatten(eqn.params["tree"], transforms)).read()]


def _swap(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> list[Value]:
    ref, value, *transforms = inputs
    _refuse_main_memory(ref)
    target = view(ref, jax.tree.unflatten(eqn.params["tree"], transforms))
    previous = target.read()
    if eqn.primitive.name == "addupdate":
        target.write(np.asarray(value) + previous)
        return []
    target.write(np.asarray(value))
    return [previous]


def _start_copy(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    source, target, arrived, sent, device = dma_operands(eqn, inputs)
    yield Copy(view(*source), view(*target), view(*arrived), view(*sent) if sent else None, device)
    return []


def _wait_for_copy(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    """Wait for a copy's bytes. In the equation for `wait_send`, the source and the target are swapped."""
    _, target, semaphore, *_ = dma_operands(eqn, inputs)
    yield Wait(view(*semaphore), view(*target).size, "a copy to arrive")
    return []


def _signal(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    ref, transforms, amount, device, *_ = jax.tree.unflatten(eqn.params["args_tree"], inputs)
    yield Signal(view(ref, transforms), int(amount), device)
    return []


def _wait(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    ref, transforms, amount, *_ = jax.tree.unflatten(eqn.params["args_tree"], inputs)
    yield Wait(view(ref, transforms), int(amount), "a signal")
    return []


def _cond(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    index, *operands = inputs
    branches = eqn.params["branches"]
    branch = branches[int(np.clip(int(index), 0, len(branches) - 1))]
    return (yield from evaluate(branch.jaxpr, branch.consts, operands, state))


def _scan(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    body, length = eqn.params["jaxpr"], eqn.params["length"]
    const_count, carry_count = scan_counts(eqn)
    consts, carry = inputs[:const_count], inputs[const_count : const_count + carry_count]
    columns = inputs[const_count + carry_count :]
    outputs: list[list[Value]] = [[]] * length
    for i in reversed(range(length)) if eqn.params["reverse"] else range(length):
        results = yield from evaluate(body.jaxpr, body.consts, [*consts, *carry, *(xs[i] for xs in columns)], state)
        carry, outputs[i] = results[:carry_count], results[carry_count:]
    return [*carry, *(np.stack([np.asarray(y) for y in ys]) for ys in zip(*outputs, strict=True))]


def _while(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    cond_consts, body_consts, carry = inputs[:first], inputs[first : first + second], inputs[first + second :]
    for _ in range(MAX_ITERATIONS):
        [proceed] = yield from evaluate(condition.jaxpr, condition.consts, [*cond_consts, *carry], state)
        if not bool(proceed):
            return list(carry)
        carry = yield from evaluate(body.jaxpr, body.consts, [*body_consts, *carry], state)
    raise NotImplementedError(f"the evaluator supports at most {MAX_ITERATIONS:,} iterations of a while loop")


def _run_scoped(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    inner = eqn.params["jaxpr"]
    return (yield from evaluate(inner, inputs, state.new_refs(inner.invars), state))


def _pallas_call(eqn: JaxprEqn, inputs: list[Value], state: DeviceState) -> Evaluation:
    if tuple(eqn.params["grid_mapping"].grid):
        raise NotImplementedError("the evaluator does not support a kernel with a grid")
    inner = eqn.params["jaxpr"]
    refs = state.new_refs(inner.invars)
    for ref, array in zip(refs, inputs, strict=False):
        ref.array[...] = np.asarray(array)
    yield from evaluate(inner, (), refs, state)
    outputs = refs[len(inputs) : len(inputs) + len(eqn.outvars)]
    return [ref.array.copy() for ref in outputs]  # copies, so that later arrivals don't change the results


# Evaluate calls to other functions as well, so that their matrix products are counted.
_CALLS = ("jit", "pjit", "remat2", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call")
_NO_EFFECT = _immediate(lambda eqn, inputs, state: [])
_RULES: dict[str, Rule] = {
    "get": _immediate(_get),
    "swap": _immediate(_swap),
    "addupdate": _immediate(_swap),
    "dma_start": _start_copy,
    "dma_wait": _wait_for_copy,
    "semaphore_signal": _signal,
    "semaphore_wait": _wait,
    "get_barrier_semaphore": _immediate(lambda eqn, inputs, state: [Ref("barrier", eqn.outvars[0].aval)]),
    "axis_index": _immediate(lambda eqn, inputs, state: [np.int32(state.coordinates[eqn.params["axis_name"]])]),
    "cond": _cond,
    "scan": _scan,
    "while": _while,
    "run_scoped": _run_scoped,
    "pallas_call": _pallas_call,
    "debug_print": _NO_EFFECT,
    "debug_callback": _NO_EFFECT,
    "delay": _NO_EFFECT,
}
