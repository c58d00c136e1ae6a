"""What all the numbers of a wrong answer have in common: n times too large, in another order, one too small."""

from __future__ import annotations

from typing import Any

import numpy as np

from exercises.framework.compare import Seen, listed


def in_common(got: list, want: list, names: list[str], cases: list[tuple]) -> str:
    """In words; '' if nothing. `got` and `want` by case, `cases` their arguments, which have these `names`, if any."""
    said, right = [_numbers(a) for a in got], [_numbers(b) for b in want]
    if any(a is None or b is None or a.size != b.size for a, b in zip(said, right, strict=True)):
        return ""
    a, b = np.concatenate(said), np.concatenate(right)
    if all(np.allclose(np.sort(x), np.sort(y)) for x, y in zip(said, right, strict=True)):
        return "" if np.allclose(a, b) else "the numbers are right, and in another order"
    many = "each number is" if len(cases) == 1 else f"in all {len(cases)} cases it is"
    if len(b) > 1 and np.allclose(abs(a - b), 1) and len(set(np.sign(a - b))) == 1 and len(set(b.tolist())) > 1:
        return f"{many} 1 too {'large' if a[0] > b[0] else 'small'}"
    if len(b) < 2 or not b.all() or not a.all() or len(set(b.tolist())) < 2:
        return ""
    ratio, sizes = a / b, [len(x) for x in right]
    for name, values in zip(names, zip(*cases, strict=True), strict=False):
        if all(isinstance(n, (int, float)) and n not in (0, 1) for n in values) and len(set(values)) > 1:
            n = np.repeat(np.array(values, float), sizes)
            for words, factor in {name: n, f"({name} - 1) / {name}": (n - 1) / n, f"({name} - 1)": n - 1}.items():
                for way, times in (("large", factor), ("small", 1 / factor)):
                    if np.allclose(ratio, times, 1e-6, 0):
                        return f"{many} {words} times too {way}"
    if not np.allclose(ratio, ratio[0], 1e-6, 0) or not 1e-12 < abs(ratio[0]) < 1e12:
        return ""
    if ratio[0] == -1:
        return f"{many} of the other sign"
    much, way = (ratio[0], "large") if abs(ratio[0]) > 1 else (1 / ratio[0], "small")
    return f"{many} {much:.6g} times too {way}"


def _numbers(value: Any) -> np.ndarray | None:
    """All numbers in a result, one after the other; None if there is anything else in it."""
    value = value.get("") if isinstance(value, Seen) else value
    try:
        parts = listed(value) if not hasattr(value, "dtype") else None
        found = np.concatenate([*map(_numbers, parts)]) if parts else np.asarray(value, np.float64).ravel()
        return found if found.size and np.isfinite(found).all() else None
    except Exception:  # no numbers, or nothing that can be read
        return None
