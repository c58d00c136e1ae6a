"""Where two results differ first, in the words in which the reader can look: `f(3)[0].shape is (2,); expected (4,)`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from exercises.framework.formatting import Raised, shown


class Seen(dict):
    """What a run observed, by label: {"": what was returned, "bytes that a device sends": Bound(1024)}; costs last."""


@dataclass(frozen=True)
class Bound:
    """A cost. An answer's may exceed the solution's by this factor and a few bytes; `least`: fall below it."""

    value: float
    slack: float = 1.02
    few: float = 64
    least: bool = False

    def allows(self, other: Bound) -> bool:
        most = self.value * self.slack + self.few
        return other.value >= self.value / self.slack if self.least else other.value <= most

    def __str__(self) -> str:
        return f"{self.value:,.0f}"


class Difference(NamedTuple):
    at: str  # what to write behind the call: "", "[2]", ".dtype"
    got: str
    want: str
    why: str = ""
    bound: Bound | None = None
    label: str = ""  # in a Seen


def differs(got: Any, want: Any, within: float = 1e-4, bounds: bool = True) -> Difference | None:
    """Where a result differs first from the one that is wanted, whose type says what counts.

    Whole numbers may come as 4.0, lists as tuples or arrays, names in other capitals; of a jax.Array dtype, sharding
    and each copy count, of a NumPy array shape and values. Numbers to `within` of the
    largest. `bounds=False`: no costs.
    """
    try:
        return _differs(got, want, within, bounds, "")
    except Exception as error:  # what cannot even be compared: a deleted array, an `==` that raises
        return Difference("", shown(got), shown(want), f"It cannot be read: {type(error).__name__}.")


def _differs(got: Any, want: Any, within: float, bounds: bool, at: str) -> Difference | None:

    def no(attribute: str = "", a: Any = got, b: Any = want, why: str = "") -> Difference:
        return Difference(at + attribute, shown(a), shown(b), why or _why(a, b))

    if isinstance(want, Raised) or isinstance(got, Raised):
        alike = isinstance(want, Raised) and isinstance(got, Raised) and want.error == got.error
        return None if alike else no()
    if isinstance(want, Bound):
        alike = not bounds or want.allows(got)
        return None if alike else Difference(at, str(got), str(want), bound=want)
    if isinstance(want, Mapping):
        if not isinstance(got, Mapping) or set(got) != set(want):
            return no()
        if isinstance(want, Seen):
            found = ((key, _differs(got[key], want[key], within, bounds, "")) for key in want)
            return _first(one and one._replace(label=key) for key, one in found)
        return _first(_differs(got[key], want[key], within, bounds, f"{at}[{key!r}]") for key in want)
    if isinstance(want, (list, tuple)) and not isinstance(want, PartitionSpec):
        values = listed(got)
        if values is None or len(values) != len(want):
            return no(why="" if values is None else f"It has {len(values)} elements, not {len(want)}.")
        pairs = enumerate(zip(values, want, strict=True))
        return _first(_differs(a, b, within, bounds, f"{at}[{i}]") for i, (a, b) in pairs)
    if isinstance(want, (jax.Array, np.ndarray)):
        return _arrays(got, want, within, at, no)
    if isinstance(want, (NamedSharding, PartitionSpec)):
        alike = entries(got) == entries(want) and getattr(got, "mesh", None) == getattr(want, "mesh", None)
    elif isinstance(want, Mesh):
        alike = (
            isinstance(got, Mesh)
            and got.axis_names == want.axis_names
            and got.devices.tolist() == want.devices.tolist()
        )
    elif isinstance(want, (bool, np.bool_)):
        alike = _item(got) is bool(want)
    elif isinstance(want, (int, float, np.number)):
        number, whole = _number(got), isinstance(want, (int, np.integer))
        alike = number is not None and math.isclose(number, want, rel_tol=1e-9 if whole else within, abs_tol=1e-12)
        if not alike and number is not None and not whole:
            return no(why=_times(number, float(want)))
    elif isinstance(want, str):
        alike = isinstance(got, str) and _bare(got) == _bare(want)
        if not alike and isinstance(got, str):
            return Difference(at, got, want)
    else:
        alike = bool(np.all(got == want)) if type(got) is type(want) else got is want
    return None if alike else no()


def _arrays(got: Any, want: Any, within: float, at: str, no: Any) -> Difference | None:
    if got is None:
        return no()
    if isinstance(want, np.ndarray):
        try:
            got = np.asarray(got, None if want.dtype == object else np.float64)
        except (TypeError, ValueError):
            return no()
    elif not isinstance(got, jax.Array):
        if want.shape == () and _number(got) is not None:  # one number is a number
            return _differs(got, want.item(), within, True, at)
        return no(why="A jax.Array lives on devices.")
    elif got.is_deleted():
        return no(why="It is deleted: its memory was given away (donated).")
    if got.shape != want.shape:
        return no(".shape", got.shape, want.shape)
    if isinstance(want, jax.Array):
        if got.dtype != want.dtype:
            return no(".dtype", got.dtype, want.dtype)
        if len(want.devices()) > 1 and not got.sharding.is_equivalent_to(want.sharding, want.ndim):
            return no(".sharding", got.sharding, want.sharding)
    if not want.size:
        return None
    whole = np.asarray(want, np.float64)
    largest = np.abs(whole[np.isfinite(whole)]).max(initial=0)
    pieces = [((slice(None),) * want.ndim, got, "")]
    if len(getattr(got, "addressable_shards", ())) > 1:  # copies can differ
        shards = sorted(got.addressable_shards, key=lambda shard: shard.replica_id)
        pieces = [(s.index, s.data, f", in the copy on device {s.device.id}," * (s.replica_id > 0)) for s in shards]
    for index, data, where in pieces:
        values, right = np.asarray(data, np.float64), whole[index]
        off = ~np.isclose(values, right, rtol=within, atol=within * largest + 1e-12, equal_nan=True)
        if off.any():
            first = tuple(np.argwhere(off)[0])
            place = [int(i) + (part.start or 0) for i, part in zip(first, index, strict=True)]
            found = values[first], right[first]
            return Difference(f"{at}{place or ''}{where}", *map(shown, found), why=_times(*found))
    return None


def _first(found: Iterable[Difference | None]) -> Difference | None:
    return next((one for one in found if one), None)


def _item(got: Any) -> Any:
    """The Python value of an array of shape (); anything else as it is."""
    try:
        return got.item() if getattr(got, "shape", None) == () else got
    except Exception:  # a key of JAX, a traced value
        return got


def _number(got: Any) -> float | None:
    value = _item(got)
    try:
        return None if isinstance(value, (bool, str, complex, type(None))) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def listed(got: Any) -> list | None:
    """What stands in a list, a tuple, a range, an array with an axis, or a dictionary with the keys 0, 1, 2 ..."""
    if isinstance(got, Mapping):
        got = [got[i] for i in range(len(got))] if set(got) == set(range(len(got))) else None
    if isinstance(got, (str, bytes, set, Mesh, type(None))) or getattr(got, "shape", None) == ():
        return None
    return list(got) if isinstance(got, Iterable) else None


def plain(value: Any) -> Any:
    """A jax.Array as a NumPy array, of which dtype and layout do not count; anything else as it is."""
    return np.asarray(value) if isinstance(value, jax.Array) else value


def entries(spec: Any) -> Any:
    """A spec's (or a sharding's) entries in one spelling: P(['a'], (), None) is P('a')."""
    spec = getattr(spec, "spec", spec)
    if not isinstance(spec, PartitionSpec):
        return None
    found = [tuple(e) if isinstance(e, (list, tuple)) else () if e is None else (e,) for e in spec]
    while found and not found[-1]:
        found.pop()
    return found


def _bare(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _times(got: float, want: float) -> str:
    """By which factor a number is off, if by a whole one."""
    low, high = sorted((abs(got), abs(want)))
    ratio = high / low if low else math.inf
    if not math.isfinite(ratio) or not math.isclose(ratio, round(ratio), rel_tol=2e-4) or ratio > 1e4:
        return ""
    if round(ratio) == 1:
        return "That is of the other sign." if got * want < 0 else ""
    return f"That is {round(ratio)} times too {'large' if high == abs(got) else 'small'}."


def _why(got: Any, want: Any) -> str:
    """What to do about a value of the wrong kind."""
    if got is None:
        return "Does the function end with `return`, on every way through it?"
    if callable(got) and not callable(want) and not hasattr(got, "shape"):
        return "That is a function; call it."
    if isinstance(got, str) and not isinstance(want, str):
        return "That is a text; leave out the quotes."
    if isinstance(got, set) and isinstance(want, (list, tuple)):
        return "A set has no order."
    return ""
