"""Find the first difference between two results, and describe it in terms that the reader can check.

A typical message is `f(3)[0].shape is (2,); expected (4,)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from exercises.framework.format_values import Raised, format_value


class RunResult(dict):
    """Map labels to a run's result and costs, as in {"": the result, "bytes that a device sends": Bound(1024)}.

    Put the costs last, so that a wrong result is reported before an excessive cost.
    """


@dataclass(frozen=True)
class Bound:
    """A solution's cost, and the amount by which an answer may exceed it (or fall short of it, if `is_minimum`)."""

    value: float
    slack: float = 1.02  # the factor by which an answer's cost may differ from `value`
    margin: float = 64  # an additional absolute allowance, in the same unit as `value`; ignored if `is_minimum`
    is_minimum: bool = False

    def allows(self, other: Bound) -> bool:
        """Return whether an answer whose cost is `other` passes."""
        upper_limit = self.value * self.slack + self.margin
        return other.value >= self.value / self.slack if self.is_minimum else other.value <= upper_limit

    def __str__(self) -> str:
        return f"{self.value:,.0f}"


class Difference(NamedTuple):
    """A difference between two results, with the texts that describe it to the reader."""

    path: str  # the text to append to the call, such as "", "[2]" or ".dtype"
    actual: str
    expected: str
    reason: str = ""  # a sentence that explains the difference, or ""
    bound: Bound | None = None  # the bound that the answer's cost violates, if that's the difference
    label: str = ""  # the key in `RunResult` whose values differ


def first_difference(actual: Any, expected: Any, rel_tol: float = 1e-4, check_costs: bool = True) -> Difference | None:
    """Return the first difference between a result and the expected one, or None if they match.

    The type of `expected` determines what must match:

    - An integer also matches an equal float, and a list matches a tuple or an array with equal elements. In strings,
      case and punctuation don't matter.
    - A jax.Array must match in shape, dtype, sharding (if it's on several devices) and the values of every copy.
    - A NumPy array only has to match in shape and values.

    Args:
        rel_tol: the relative tolerance for numbers; in an array, it's relative to the largest absolute value.
        check_costs: whether to compare costs (see `Bound`), too.

    No errors are raised: a value that can't be compared, such as a deleted array, counts as a difference.
    """
    try:
        return _compare(actual, expected, rel_tol, check_costs, "")
    except Exception as error:  # for example, because an array was deleted, or because `==` raises an error
        reason = f"That value can't be compared: {type(error).__name__}."
        return Difference("", format_value(actual), format_value(expected), reason)


def _compare(actual: Any, expected: Any, rel_tol: float, check_costs: bool, path: str) -> Difference | None:
    """Compare two values as `first_difference` does. `path` locates them in the result, for example "[2]"."""

    def mismatch(attribute: str = "", a: Any = actual, b: Any = expected, reason: str = "") -> Difference:
        return Difference(path + attribute, format_value(a), format_value(b), reason or _explain_type(a, b))

    if isinstance(expected, Raised) or isinstance(actual, Raised):
        equal = isinstance(expected, Raised) and isinstance(actual, Raised) and expected.error == actual.error
        return None if equal else mismatch()
    if isinstance(expected, Bound):
        equal = not check_costs or expected.allows(actual)
        return None if equal else Difference(path, str(actual), str(expected), bound=expected)
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) != set(expected):
            return mismatch()
        if isinstance(expected, RunResult):
            differences = ((key, _compare(actual[key], expected[key], rel_tol, check_costs, "")) for key in expected)
            return _first(difference and difference._replace(label=key) for key, difference in differences)
        return _first(
            _compare(actual[key], expected[key], rel_tol, check_costs, f"{path}[{key!r}]") for key in expected
        )
    if isinstance(expected, (list, tuple)) and not isinstance(expected, PartitionSpec):
        values = as_list(actual)
        if values is None or len(values) != len(expected):
            return mismatch(reason="" if values is None else f"It has {len(values)} elements, not {len(expected)}.")
        pairs = enumerate(zip(values, expected, strict=True))
        return _first(_compare(a, b, rel_tol, check_costs, f"{path}[{i}]") for i, (a, b) in pairs)
    if isinstance(expected, (jax.Array, np.ndarray)):
        return _compare_arrays(actual, expected, rel_tol, path, mismatch)
    if isinstance(expected, (NamedSharding, PartitionSpec)):
        same_mesh = getattr(actual, "mesh", None) == getattr(expected, "mesh", None)
        equal = spec_entries(actual) == spec_entries(expected) and same_mesh
    elif isinstance(expected, Mesh):
        equal = (
            isinstance(actual, Mesh)
            and actual.axis_names == expected.axis_names
            and actual.devices.tolist() == expected.devices.tolist()
        )
    elif isinstance(expected, (bool, np.bool_)):
        equal = _unwrap_scalar(actual) is bool(expected)
    elif isinstance(expected, (int, float, np.number)):
        number, is_integer = _as_float(actual), isinstance(expected, (int, np.integer))
        tolerance = 1e-9 if is_integer else rel_tol
        equal = number is not None and math.isclose(number, expected, rel_tol=tolerance, abs_tol=1e-12)
        if not equal and number is not None and not is_integer:
            return mismatch(reason=_describe_factor(number, float(expected)))
    elif isinstance(expected, str):
        equal = isinstance(actual, str) and _letters_and_digits(actual) == _letters_and_digits(expected)
        if not equal and isinstance(actual, str):
            return Difference(path, actual, expected)
    else:
        equal = bool(np.all(actual == expected)) if type(actual) is type(expected) else actual is expected
    return None if equal else mismatch()


def _compare_arrays(
    actual: Any, expected: Any, rel_tol: float, path: str, mismatch: Callable[..., Difference]
) -> Difference | None:
    """Compare a value with an expected array in this order: type, shape, dtype, sharding and each shard's values."""
    if actual is None:
        return mismatch()
    if isinstance(expected, np.ndarray):
        try:
            actual = np.asarray(actual, None if expected.dtype == object else np.float64)
        except (TypeError, ValueError):
            return mismatch()
    elif not isinstance(actual, jax.Array):
        if expected.shape == () and _as_float(actual) is not None:  # accept a plain number instead of a scalar array
            return _compare(actual, expected.item(), rel_tol, True, path)
        return mismatch(reason="That isn't a jax.Array.")
    elif actual.is_deleted():
        return mismatch(reason="The array was deleted, because its buffer was donated.")
    if actual.shape != expected.shape:
        return mismatch(".shape", actual.shape, expected.shape)
    if isinstance(expected, jax.Array):
        if actual.dtype != expected.dtype:
            return mismatch(".dtype", actual.dtype, expected.dtype)
        if len(expected.devices()) > 1 and not actual.sharding.is_equivalent_to(expected.sharding, expected.ndim):
            return mismatch(".sharding", actual.sharding, expected.sharding)
    if not expected.size:
        return None
    expected_values = np.asarray(expected, np.float64)
    largest = np.abs(expected_values[np.isfinite(expected_values)]).max(initial=0)
    pieces = [((slice(None),) * expected.ndim, actual, "")]
    if len(getattr(actual, "addressable_shards", ())) > 1:  # check every shard, because copies can differ
        shards = sorted(actual.addressable_shards, key=lambda shard: shard.replica_id)
        pieces = [(s.index, s.data, f", in the copy on device {s.device.id}," * (s.replica_id > 0)) for s in shards]
    for index, data, copy_note in pieces:
        values, correct = np.asarray(data, np.float64), expected_values[index]
        wrong = ~np.isclose(values, correct, rtol=rel_tol, atol=rel_tol * largest + 1e-12, equal_nan=True)
        if wrong.any():
            first = tuple(np.argwhere(wrong)[0])
            position = [int(i) + (part.start or 0) for i, part in zip(first, index, strict=True)]
            pair = float(values[first]), float(correct[first])
            shown_pair = map(format_value, pair)
            return Difference(f"{path}{position or ''}{copy_note}", *shown_pair, reason=_describe_factor(*pair))
    return None


def _first(differences: Iterable[Difference | None]) -> Difference | None:
    return next((difference for difference in differences if difference), None)


def _unwrap_scalar(value: Any) -> Any:
    """Convert an array of shape () to a Python value, and return any other value unchanged."""
    try:
        return value.item() if getattr(value, "shape", None) == () else value
    except Exception:  # for example, because it's a JAX key or a tracer
        return value


def _as_float(value: Any) -> float | None:
    """Convert a number, or an array of shape (), to a float; return None for anything else."""
    scalar = _unwrap_scalar(value)
    try:
        return None if isinstance(scalar, (bool, str, complex, type(None))) else float(scalar)
    except (TypeError, ValueError, OverflowError):
        return None


def as_list(value: Any) -> list | None:
    """Convert a list, a tuple, a range, an array or a dictionary with the keys 0, 1, 2 ... to a list.

    Return None for a string, a set, an array of shape () and anything else without ordered elements.
    """
    if isinstance(value, Mapping):
        value = [value[i] for i in range(len(value))] if set(value) == set(range(len(value))) else None
    if isinstance(value, (str, bytes, set, Mesh, type(None))) or getattr(value, "shape", None) == ():
        return None
    return list(value) if isinstance(value, Iterable) else None


def as_numpy(value: Any) -> Any:
    """Convert a jax.Array to NumPy, so that its dtype and sharding aren't compared; return anything else unchanged."""
    return np.asarray(value) if isinstance(value, jax.Array) else value


def spec_entries(spec: Any) -> Any:
    """Return the normalized entries of a PartitionSpec or of a sharding's spec, or None for anything else.

    For example, P(["a"], (), None) and P("a") are both normalized to [("a",)].
    """
    spec = getattr(spec, "spec", spec)
    if not isinstance(spec, PartitionSpec):
        return None
    entries = [tuple(e) if isinstance(e, (list, tuple)) else () if e is None else (e,) for e in spec]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def _letters_and_digits(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _describe_factor(actual: float, expected: float) -> str:
    """Describe an error that is an integer factor or a wrong sign; return "" for any other error."""
    low, high = sorted((abs(actual), abs(expected)))
    ratio = high / low if low else math.inf
    if not math.isfinite(ratio) or not math.isclose(ratio, round(ratio), rel_tol=2e-4) or ratio > 1e4:
        return ""
    if round(ratio) == 1:
        return "The sign is wrong." if actual * expected < 0 else ""
    return f"That's {round(ratio)} times too {'large' if high == abs(actual) else 'small'}."


def _explain_type(actual: Any, expected: Any) -> str:
    """Return advice on how to fix a value of the wrong type, or "" if there's none to give."""
    if actual is None:
        return "Does every path through the function end with `return`?"
    if callable(actual) and not callable(expected) and not hasattr(actual, "shape"):
        return "That's a function; call it."
    if isinstance(actual, str) and not isinstance(expected, str):
        return "That's a string; leave out the quotes."
    if isinstance(actual, set) and isinstance(expected, (list, tuple)):
        return "A set has no order."
    return ""
