"""Describe a plot's numbers in words, for readers who can't see the plot."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import numpy as np

Line = tuple[str, np.ndarray, np.ndarray]  # name, x (n,), y (n,)
Mark = tuple[
    str, np.ndarray | None, np.ndarray | None
]  # name, x (n,), y (n,); x or y is None for lines across the plot
COINCIDE = 0.003  # lines closer than this fraction of the plot's height look like a single line


def format_number(value: float) -> str:
    """Format a number for prose: integers in full, others to three digits, such as 2,048, 0.00098 and 1.5e-17."""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value or 0:,.0f}"  # `or 0` turns -0.0 into 0
    rounded = float(f"{value:.3g}")
    if 1e-4 <= abs(rounded) < 1e9:
        return f"{rounded:,.7f}".rstrip("0").rstrip(".")
    return re.sub(r"e(-?)\+?0*", r"e\1", f"{rounded:.3g}")


def join_words(items: list[str]) -> str:
    """Join items as in 'a', 'a and b', or 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))


def _join_numbers(values: np.ndarray) -> str:
    return join_words([format_number(value) for value in values])


def positions(values: np.ndarray, log: bool) -> np.ndarray:
    """Return the values' coordinates along an axis: their base-10 logarithms if it's logarithmic, else the values."""
    return np.log10(values) if log else values


def height_differences(lines: list[Line], log: str) -> dict[tuple[int, int], np.ndarray]:
    """Map each pair (i, j) of lines with the same x to the height of line j above line i at each point, (n,).

    The differences are fractions of the plot's height. Those smaller than `COINCIDE` are set to 0.
    """
    heights = [positions(y, "y" in log) for _, _, y in lines]
    plot_height = max(map(np.max, heights)) - min(map(np.min, heights)) or 1.0
    differences = {}
    for i, j in combinations(range(len(lines)), 2):
        if np.array_equal(lines[i][1], lines[j][1]):
            difference = (heights[j] - heights[i]) / plot_height
            differences[i, j] = np.where(abs(difference) < COINCIDE, 0.0, difference)
    return differences


def describe_lines(lines: list[Line], marks: list[Mark], labels: tuple[str, str], log: str) -> str:
    """Describe a plot: its axes, each line, which lines coincide, which ones cross and where, and its marks."""
    xlabel, ylabel = labels
    same_x = all(np.array_equal(x, lines[0][1]) for _, x, _ in lines)
    span = f" from {format_number(lines[0][1][0])} to {format_number(lines[0][1][-1])}" if same_x else ""
    scales = {"x": ", x logarithmic", "y": ", y logarithmic", "xy": ", both logarithmic", "": ""}[log]
    differences = height_differences(lines, log)
    # Map each line that coincides with earlier lines to the first of them.
    below = {j: i for (i, j), difference in reversed(differences.items()) if not difference.any()}
    line_descriptions = [_describe_course(line, same_x, log) for j, line in enumerate(lines) if j not in below]
    sentences = [f"{ylabel and ylabel + ' against '}{xlabel}{span}{scales}", "; ".join(line_descriptions)]
    for i in sorted(set(below.values())):
        above = [lines[j][0] for j in sorted(below) if below[j] == i]
        sentences.append(f"{join_words(above)} {'coincides' if len(above) == 1 else 'coincide'} with {lines[i][0]}")
    for (i, j), difference in differences.items():
        if crossings := _crossings(lines[i][1], difference, log):
            crossing_text = (
                f"at {_join_numbers(np.array(crossings))}" if len(crossings) < 4 else f"{len(crossings)} times"
            )
            sentences.append(f"{lines[i][0]} and {lines[j][0]} cross {crossing_text}")
    return ". ".join([*sentences, *map(_describe_mark, marks)]) + "."


def _describe_course(line: Line, same_x: bool, log: str) -> str:
    """Describe a line, as in 'loss falls from 2.5 to 0.1'. Include a minimum or maximum far beyond both ends."""
    name, x, y = line
    first, last = format_number(y[0]), format_number(y[-1])
    if np.ptp(y) <= COINCIDE * abs(y).max():
        return f"{name} stays at {first}"
    level = first
    if not same_x:
        first, last = f"{first} at {format_number(x[0])}", f"{last} at {format_number(x[-1])}"
    heights = positions(y, "y" in log)
    ends, span = (heights[0], heights[-1]), np.ptp(heights)
    extremes = []
    for word, index, excess in (
        ("highest", heights.argmax(), heights.max() - max(ends)),
        ("lowest", heights.argmin(), min(ends) - heights.min()),
    ):
        if excess > 0.1 * span:
            extremes.append(f"{word} {format_number(y[index])} at {format_number(x[index])}")
    if extremes:
        return f"{name} goes from {first} to {last}, {join_words(extremes)}"
    verb = "rises" if y[-1] > y[0] else "falls"
    if (np.diff(y) < 0).any() and (np.diff(y) > 0).any():
        return f"{name} {verb} unsteadily from {first} to {last}"
    across = positions(x, "x" in log)
    leaves = int(np.flatnonzero(abs(heights - heights[0]) <= 0.01 * span).max())
    arrives = int(np.flatnonzero(abs(heights - heights[-1]) <= 0.01 * span).min())
    if across[leaves] - across[0] > np.ptp(across) / 4:
        return f"{name} stays near {level} until {format_number(x[leaves])}, then {verb} to {last}"
    if across[-1] - across[arrives] > np.ptp(across) / 4:
        return f"{name} {verb} from {first}, then stays near {last} from {format_number(x[arrives])} onwards"
    return f"{name} {verb} from {first} to {last}"


def _crossings(x: np.ndarray, difference: np.ndarray, log: str) -> list[float]:
    """Return each x at which the difference (n,) changes sign, interpolating linearly between the points."""
    across, crossings = positions(x, "x" in log), []
    for i, j in pairwise(np.flatnonzero(difference)):
        if difference[i] * difference[j] < 0:
            position = across[i] + (across[j] - across[i]) * difference[i] / (difference[i] - difference[j])
            position = 0.0 if abs(position) < 1e-9 * np.ptp(across) else float(position)
            crossings.append(10**position if "x" in log else position)
    return crossings


def _describe_mark(mark: Mark) -> str:
    name, x, y = mark
    if x is not None and y is None:
        return f"{name}: a vertical line at {_join_numbers(x)}"
    if x is None and y is not None:
        return f"{name}: a horizontal line at {_join_numbers(y)}"
    if x is None or y is None:
        raise ValueError(f"the mark {name!r} has no position")
    return f"{name}: {join_words([f'({format_number(a)}, {format_number(b)})' for a, b in zip(x, y, strict=True)])}"


def describe_bars(parts: dict[str, np.ndarray], names: list[str], marks: list[Mark], label: str, stacked: bool) -> str:
    """Describe a panel: the lengths of each name's bars, with their sum if the bars are stacked, and the marks."""
    bars = []
    for i, name in enumerate(names):
        lengths = {part: lengths[i] for part, lengths in parts.items()}
        text = ", ".join(f"{part} {format_number(length)}" for part, length in lengths.items() if length or not stacked)
        if len(parts) == 1:
            text = format_number(next(iter(lengths.values())))
        elif stacked:
            text = format_number(sum(lengths.values())) + f" ({text})" * bool(text)
        bars.append(f"{name}: {text}")
    return " ".join([f"{label}. {'; '.join(bars)}.", *(f"{_describe_mark(mark)}." for mark in marks)])


def join_panels(title: str, descriptions: dict[str, str]) -> str:
    """Join a figure's title and the descriptions of its panels, each preceded by the panel's title."""
    text = " ".join(f"{panel}: {description}" if panel else description for panel, description in descriptions.items())
    return f"{title}. {text}" if title else text
