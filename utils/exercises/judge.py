"""What every judge needs: `Wrong`, the comparison of arrays, the value that an answer stands for.

A judge gets the reader's function, calls it, and raises Wrong or returns. How to write one:

1. Call the answer with cases that separate the slips: sizes all different and none of 1, 2 or n, fractions, negatives, a
   second mesh. NumPy arrays, lists and dictionaries reach it as copies (`@exercise(..., copies=False)` where changing them
   is the question); jax arrays do not: make them anew for each call.
2. Read what it returns with `number`, `numbers`, `flag`, `one_of` or `several`, which accept every form of a right answer
   and name what is none; compare arrays with `same`, which looks at type, shape, dtype, sharding, values and each copy.
3. Name the slip: `explained(answers to all cases, [(what the slip gives for them, words), ...])`, or `named_slips` for a
   product of factors. A Wrong has the reader's own value (`shown`).
4. Ask `probes` what happened: `watch(answer, ...)` runs it once and tells what stood where on devices and host, what was
   fetched, compiled and sent (arrays from 100 kB on are easily told from the rest); `primitives(f, ...)` what is in the
   jaxpr. `count.cost` tells what a program sends and holds. Nothing is patched.
5. What the answer raises, a loop without an end and a huge array need no care: `exercise` makes messages of them. What the
   judge itself raises is told as its own failure, and stands in the verdict (`bug`), where the tests find it.
6. In tests/wrong_answers/exNN.py: WRONG (answer, words that name the slip), RIGHT (four unusual forms or more), and SAME
   (changes of the solution in one place, by tests/mutants.py, that compute the same, with why; all others are refused).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections import deque
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np


class Wrong(Exception):
    """Raised by a judge; its message tells the reader what is wrong, with the reader's own value."""


def same(got: Any, want: Any, what: str = "Your result") -> None:
    """Raise Wrong where two arrays differ, naming the first of: type, shape, dtype, sharding, a value.

    `want` is a jax.Array (its sharding counts) or a NumPy array (any sharding will do). Values to 1e-5, on each device
    that holds a copy.
    """
    if got is None:
        raise Wrong(f"{what} is None. Does the function end with `return`?")
    import jax

    if not isinstance(got, (np.ndarray, np.generic, jax.Array)):
        raise Wrong(f"{what} is a {type(got).__name__}, {shown(got)}; expected an array of shape {want.shape}.")
    if hasattr(want, "sharding") and not hasattr(got, "sharding"):
        raise Wrong(f"{what} is a {type(got).__name__}; expected a jax.Array, which lives on devices.")
    if getattr(got, "is_deleted", bool)():
        raise Wrong(f"{what} is deleted: its memory was given away (donated) to another array.")
    if got.shape != want.shape:
        raise Wrong(f"{what} has shape {got.shape}; expected {want.shape}.")
    if got.dtype != want.dtype:
        raise Wrong(f"{what} has dtype {got.dtype}; expected {want.dtype}.")
    if hasattr(want, "sharding") and not got.sharding.is_equivalent_to(want.sharding, want.ndim):
        raise Wrong(f"{what} is laid out as {spell(got.sharding)}; expected {spell(want.sharding)}.")
    whole = np.asarray(want, np.float64)
    _differ(np.asarray(got, np.float64), whole, (), what)
    for shard in getattr(got, "addressable_shards", []):
        if shard.replica_id:  # the first copies were read above
            place = tuple(part.start or 0 for part in shard.index)
            where = f"{what}, in the copy on device {shard.device.id},"
            _differ(np.asarray(shard.data, np.float64), whole[shard.index], place, where)


def _differ(got: np.ndarray, want: np.ndarray, place: tuple[int, ...], what: str) -> None:
    differs = ~np.isclose(got, want, rtol=1e-5, atol=1e-5)
    if differs.any():
        first = tuple(np.argwhere(differs)[0])
        at = [int(i + start) for i, start in zip(first, place or (0,) * got.ndim, strict=True)]
        values = f"{np.float32(got[first])}, expected {np.float32(want[first])}"
        raise Wrong(f"{what} differs in {differs.sum()} of {differs.size} values; at {at} it is {values}.")


def number(
    got: Any,
    expected: str = "one number",
    *,
    said: str = "You return",
    whole: bool = False,
    positive: bool = False,
) -> float:
    """The number that a reader's answer stands for, a float (an int where it must be `whole`); anything else is Wrong.

    Accepted: Python's and NumPy's numbers, and an array of shape (), of NumPy or JAX. `whole`: 4.0 is as good as 4.
    Wrong, in words of its own: None, a bool, a text, a function, an array of another shape, nan, an infinite number,
    and, where it must be `positive`, 0 or less. The message begins with `said`, shows the value, and ends with
    `expected`, as in "You return None; expected one number, of bytes. Does the function end with `return`?"
    """
    value = _scalar(got)
    if value is None or (whole and not _is_whole(value)):
        why = next((f" {words}" for kind, words in _NO_NUMBER if kind(got)), "")
        raise Wrong(f"{said} {shown(got)}; expected {expected}.{why}")
    if math.isnan(value):
        raise Wrong(f"{said} nan, which is not a number; expected {expected}. Something was 0 / 0, or inf - inf.")
    if math.isinf(value):
        raise Wrong(f"{said} {value}; expected {expected}. Something was divided by 0, or grew too large.")
    if positive and value <= 0:
        raise Wrong(f"{said} {value:g}; expected {expected}, and a size, a rate or a time is above 0.")
    return round(value) if whole else float(value)


def numbers(
    got: Any, shape: tuple[int, ...], expected: str, said: str = "You return", *, whole: bool = False
) -> np.ndarray:
    """As `number`, for a list, a tuple or an array of exactly this shape, each value a number; floats (`whole`: ints)."""

    def read(value: Any, shape: tuple[int, ...]) -> Any:
        if not shape:
            return number(value, whole=whole)
        if not isinstance(value, (list, tuple)) and not np.shape(value):
            raise Wrong("not a list")
        values = list(value)
        if len(values) != shape[0]:
            raise Wrong("not of this length")
        return [read(value, shape[1:]) for value in values]

    try:
        return np.array(read(got, shape), int if whole else float)
    except (Wrong, TypeError, ValueError) as error:
        raise Wrong(f"{said} {shown(got)}; expected {expected}.") from error


def flag(got: Any, expected: str = "True or False", said: str = "You return") -> bool:
    """The truth value that an answer stands for: a bool of Python or NumPy, or an array of shape () of them."""
    value = got.item() if getattr(got, "shape", None) == () and getattr(got, "dtype", None) == np.bool_ else got
    if isinstance(value, bool):
        return value
    why = " Does the function end with `return`, on every way through it?" if got is None else ""
    raise Wrong(f"{said} {shown(got)}; expected {expected}.{why}")


def one_of(got: Any, words: Iterable[str], said: str = "You return") -> str:
    """Which of these words an answer stands for, however it is written: capitals, spaces, - and _ do not count."""

    def bare(word: str) -> str:
        return re.sub(r"[\s_-]", "", word).lower()

    known = {bare(word): word for word in words}
    text = got.item() if isinstance(got, np.ndarray) and got.shape == () else got
    if isinstance(text, str) and bare(text) in known:
        return known[bare(text)]
    raise Wrong(f"{said} {shown(got)}; expected one of {', '.join(map(repr, known.values()))}.")


def several(got: Any, length: int | None, expected: str, said: str = "You return") -> list:
    """The values of a list, a tuple, a range, the values of a dictionary or an array with an axis, of this length."""
    listed = isinstance(got, (list, tuple, range, type({}.values()), deque)) or bool(getattr(got, "shape", ()))
    values = list(got) if listed else None
    if values is None or length not in (None, len(values)):
        count = f", {len(values)} of them" if values is not None and len(values) != length else ""
        raise Wrong(f"{said} {shown(got)}{count}; expected {expected}.")
    return values


def on_eight(f: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """The program in which each of eight devices, along the axis 'i', runs f on its own parts."""
    import jax

    from utils.mesh import make_mesh

    return jax.jit(jax.shard_map(f, mesh=make_mesh((8,), ("i",)), in_specs=in_specs, out_specs=out_specs))


def part(answer: Callable[..., Any], shape: tuple[int, ...]) -> Callable[..., Any]:
    """The reader's per-device program; what it returns must be an array of this shape."""
    import jax

    def program(*parts: Any) -> Any:
        got = answer(*parts)
        if got is None:
            raise Wrong("Your function returns None. Does it end with `return`?")
        if not isinstance(got, jax.Array):
            raise Wrong(f"Your function returns a {type(got).__name__}, {got!r}; expected an array of shape {shape}.")
        if got.shape != shape:
            raise Wrong(
                f"On each device your function returns an array of shape {got.shape}; expected {shape}, the device's part."
            )
        return got

    return program


def spell(sharding: Any) -> str:
    """A sharding in few words, the same on every supported JAX."""
    from utils.compat import device_text, spec_text

    if hasattr(sharding, "spec"):
        sizes = " x ".join(map(str, sharding.mesh.devices.shape))
        return f"{spec_text(sharding.spec)} on a {sizes} mesh {sharding.mesh.axis_names}"
    return ", ".join(sorted(map(device_text, sharding.device_set)))


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_NO_NUMBER: list[tuple[Callable[[Any], bool], str]] = [  # what is handed over for a number, and what to do about it
    (lambda got: got is None, "Does the function end with `return`, on every way through it?"),
    (lambda got: isinstance(got, str), "That is a text; leave out the quotes."),
    (lambda got: callable(got), "That is a function; call it."),
    (lambda got: getattr(got, "shape", ()) == (1,), "That is an array with an axis; take its one value, [0]."),
]


def _scalar(got: Any) -> Any:
    """The Python number that this is, or None."""
    try:
        value = got.item() if getattr(got, "shape", None) == () else got
        if isinstance(value, Real) and not isinstance(value, bool):
            float(value)
            return value
    except Exception:  # a key of JAX, a value that is being traced, a whole number beyond all floats
        pass
    return None


def _is_whole(value: Any) -> bool:
    """4.0, too; and nan and inf, which have words of their own."""
    return not math.isfinite(value) or math.isclose(value, round(value), rel_tol=0, abs_tol=1e-6)


def shown(got: Any) -> str:
    """An answer in a few words."""
    if getattr(got, "shape", None):
        return f"an array of shape {tuple(got.shape)}"
    return _SHORT.repr(got)
