"""Recognize a wrong answer that is off in the same way in every case, such as "n times too large"."""

from __future__ import annotations

from typing import Any

import numpy as np

from exercises.framework.compare import RunResult, as_list


def describe_common_error(actual: list, expected: list, names: list[str], cases: list[tuple]) -> str:
    """Describe a single error that explains every number in a wrong answer, or return "" if there's none.

    Args:
        actual: the answer's results, one for each case.
        expected: the solution's results.
        names: parameter names to use in the description; empty if the arguments aren't passed to the function itself.
        cases: the arguments of each case.
    """
    pairs = []
    for result, expected_result in zip(actual, expected, strict=True):
        x, y = _flatten_numbers(result), _flatten_numbers(expected_result)
        if x is None or y is None or x.size != y.size:
            return ""
        pairs.append((x, y))
    a, b = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    if all(np.allclose(np.sort(x), np.sort(y)) for x, y in pairs):
        return "" if np.allclose(a, b) else "the numbers are right, but in the wrong order"
    scope = "each number is" if len(cases) == 1 else f"in all {len(cases)} cases it is"
    has_different_values = len(set(b.tolist())) > 1  # if all values are equal, a factor looks like an offset
    if has_different_values and np.allclose(abs(a - b), 1) and len(set(np.sign(a - b))) == 1:
        return f"{scope} 1 too {'large' if a[0] > b[0] else 'small'}"
    if not has_different_values or not b.all() or not a.all():
        return ""
    ratio, sizes = a / b, [y.size for _, y in pairs]
    for name, values in zip(names, zip(*cases, strict=True), strict=False):
        if all(isinstance(n, (int, float)) and n not in (0, 1) for n in values) and len(set(values)) > 1:
            n = np.repeat(np.array(values, float), sizes)
            for factor_text, factor in {name: n, f"({name} - 1) / {name}": (n - 1) / n, f"({name} - 1)": n - 1}.items():
                for direction, expected_ratio in (("large", factor), ("small", 1 / factor)):
                    if np.allclose(ratio, expected_ratio, 1e-6, 0):
                        return f"{scope} {factor_text} times too {direction}"
    if not np.allclose(ratio, ratio[0], 1e-6, 0) or not 1e-12 < abs(ratio[0]) < 1e12:
        return ""
    if ratio[0] == -1:
        return "each number has the wrong sign" if len(cases) == 1 else f"the sign is wrong in all {len(cases)} cases"
    factor, direction = (ratio[0], "large") if abs(ratio[0]) > 1 else (1 / ratio[0], "small")
    return f"{scope} {factor:.6g} times too {direction}"


def _flatten_numbers(value: Any) -> np.ndarray | None:
    """Return all numbers in a result as one flat array, or None if it contains anything else."""
    value = value.get("") if isinstance(value, RunResult) else value
    try:
        parts = as_list(value) if not hasattr(value, "dtype") else None
        arrays = [array for array in map(_flatten_numbers, parts or []) if array is not None]
        if parts and len(arrays) < len(parts):
            return None
        numbers = np.concatenate(arrays) if parts else np.asarray(value, np.float64).ravel()
        return numbers if numbers.size and np.isfinite(numbers).all() else None
    except Exception:  # the value contains something other than numbers, or can't be read
        return None
