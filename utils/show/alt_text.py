"""What a plot shows, in words made of its numbers: the description for people who cannot see it."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import numpy as np

Line = tuple[str, np.ndarray, np.ndarray]  # name, x, y
Mark = tuple[str, np.ndarray | None, np.ndarray | None]
SAME = 0.003  # of the plotted height: two lines nearer than this everywhere are seen as one


def format_number(value: float) -> str:
    """As people write it: a whole number in full, else three digits, as in 2,048 or 0.00098 or 1.5e-17."""
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value or 0:,.0f}"  # not -0
    short = float(f"{value:.3g}")
    if 1e-4 <= abs(short) < 1e9:
        return f"{short:,.7f}".rstrip("0").rstrip(".")
    return re.sub(r"e(-?)\+?0*", r"e\1", f"{short:.3g}")


def listed(items: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))


def increasing(x: np.ndarray) -> bool:
    return bool((np.diff(x) > 0).all())


def scaled(values: np.ndarray, log: bool) -> np.ndarray:
    """Where the values stand on the paper."""
    return np.log10(values) if log else values


def apart(lines: list[Line], log: str) -> dict[tuple[int, int], np.ndarray]:
    """For each two lines over one x: how far the second is above the first, as a part of the plot's height (n,).

    What is nearer than `SAME` counts as 0.
    """
    heights = [scaled(y, "y" in log) for _, _, y in lines]
    whole = max(map(np.max, heights)) - min(map(np.min, heights)) or 1.0
    found = {}
    for i, j in combinations(range(len(lines)), 2):
        if np.array_equal(lines[i][1], lines[j][1]):
            difference = (heights[j] - heights[i]) / whole
            found[i, j] = np.where(abs(difference) < SAME, 0.0, difference)
    return found


def of_lines(lines: list[Line], marks: list[Mark], notes: list[str], labels: tuple[str, str], log: str) -> str:
    """One panel: its axes, the course of each line, which lie on another and which cross where, then what is marked."""
    xlabel, ylabel = labels
    shared = all(np.array_equal(x, lines[0][1]) and increasing(x) for _, x, _ in lines)
    span = f" from {format_number(lines[0][1][0])} to {format_number(lines[0][1][-1])}" if shared else ""
    scales = {"x": ", x logarithmic", "y": ", y logarithmic", "xy": ", both logarithmic", "": ""}[log]
    differences = apart(lines, log)
    on = {j: i for (i, j), difference in reversed(differences.items()) if not difference.any()}  # the first below it
    courses = [_course(line, shared, log) for j, line in enumerate(lines) if j not in on]
    said = [f"{ylabel and ylabel + ' against '}{xlabel}{span}{scales}", "; ".join(courses)]
    for i in sorted(set(on.values())):
        above = [lines[j][0] for j in sorted(on) if on[j] == i]
        said.append(f"{listed(above)} {'lies' if len(above) == 1 else 'lie'} on {lines[i][0]}")
    for (i, j), difference in differences.items():
        at = _crossings(lines[i][1], difference, log) if increasing(lines[i][1]) else []
        if at:
            where = f"at {listed([format_number(place) for place in at])}" if len(at) < 4 else f"{len(at)} times"
            said.append(f"{lines[i][0]} and {lines[j][0]} cross {where}")
    said += [_place(mark) for mark in marks]
    if notes:
        said.append("Written in it: " + ", ".join(notes))
    return ". ".join(said) + "."


def _course(line: Line, shared: bool, log: str) -> str:
    """'loss falls from 2.5 to 0.1', and how high or low it stands in between, where that is beyond both ends."""
    name, x, y = line
    first, last = format_number(y[0]), format_number(y[-1])
    if not increasing(x):
        return f"{name} leads from ({format_number(x[0])}, {first}) to ({format_number(x[-1])}, {last})"
    if not shared:
        first, last = f"{first} at {format_number(x[0])}", f"{last} at {format_number(x[-1])}"
    if np.ptp(y) <= SAME * abs(y).max():
        return f"{name} stays at {format_number(y[0])}"
    heights = scaled(y, "y" in log)
    ends, beyond = (heights[0], heights[-1]), 0.1 * np.ptp(heights)
    extremes = []
    for word, at, far in (
        ("highest", heights.argmax(), heights.max() - max(ends)),
        ("lowest", heights.argmin(), min(ends) - heights.min()),
    ):
        if far > beyond:
            extremes.append(f"{word} {format_number(y[at])} at {format_number(x[at])}")
    if extremes:
        return f"{name} goes from {first} to {last}, {listed(extremes)}"
    verb = "rises" if y[-1] > y[0] else "falls"
    if (np.diff(y) < 0).any() and (np.diff(y) > 0).any():
        return f"{name} {verb} unsteadily from {first} to {last}"
    at, level = scaled(x, "x" in log), 0.01 * np.ptp(heights)
    leaves = np.flatnonzero(abs(heights - heights[0]) <= level).max()
    arrives = np.flatnonzero(abs(heights - heights[-1]) <= level).min()
    if at[leaves] - at[0] > np.ptp(at) / 4:
        return f"{name} stays near {format_number(y[0])} until {format_number(x[leaves])}, then {verb} to {last}"
    if at[-1] - at[arrives] > np.ptp(at) / 4:
        return f"{name} {verb} from {first}, and from {format_number(x[arrives])} on stays near {last}"
    return f"{name} {verb} from {first} to {last}"


def _crossings(x: np.ndarray, difference: np.ndarray, log: str) -> list[float]:
    """The places where the difference (n,) changes its sign, between the points by a straight line on the paper."""
    at, places = scaled(x, "x" in log), []
    apart = np.flatnonzero(difference)
    for i, j in pairwise(apart):
        if difference[i] * difference[j] < 0:
            place = at[i] + (at[j] - at[i]) * difference[i] / (difference[i] - difference[j])
            place = 0.0 if abs(place) < 1e-9 * np.ptp(at) else float(place)
            places.append(10**place if "x" in log else place)
    return places


def _place(mark: Mark) -> str:
    name, x, y = mark
    if y is None:
        return f"{name}: an upright line at {listed([format_number(place) for place in x])}"
    if x is None:
        return f"{name}: a line across at {listed([format_number(place) for place in y])}"
    if len(x) > 6:
        return f"{name}: {len(x)} points"
    return f"{name}: {listed([f'({format_number(a)}, {format_number(b)})' for a, b in zip(x, y, strict=True)])}"


def of_bars(parts: dict[str, np.ndarray], names: list[str], marks: list[Mark], label: str, stacked: bool) -> str:
    """One panel: for each name the lengths of its bars, and where its marks are. `stacked`: with the sum."""
    values = []
    for i, name in enumerate(names):
        found = {part: lengths[i] for part, lengths in parts.items()}
        each = ", ".join(f"{part} {format_number(length)}" for part, length in found.items() if length or not stacked)
        if len(parts) == 1:
            each = format_number(next(iter(found.values())))
        elif stacked:
            each = format_number(sum(found.values())) + f" ({each})" * bool(each)
        own = [f", {mark} {format_number(x[i])}" for mark, x, y in marks if y is not None]
        values.append(f"{name}: {each}{''.join(own)}")
    return " ".join([f"{label}. {'; '.join(values)}.", *(f"{_place(mark)}." for mark in marks if mark[2] is None)])


def together(title: str, panels: dict[str, str]) -> str:
    """The whole: the title, then what each panel shows, by its own title."""
    said = " ".join(f"{panel}: {text}" if panel else text for panel, text in panels.items())
    return f"{title}. {said}" if title else said
