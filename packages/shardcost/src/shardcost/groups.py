"""Parse a collective's device groups from any HLO notation, and find the mesh axes that the groups follow."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Sequence

from shardcost.hlo import UnsupportedHloError

Groups = tuple[tuple[int, ...], ...]  # positions in the mesh, in row-major order
Axes = tuple[tuple[str, int], ...]  # names and sizes of a mesh's axes

NOTATION = re.compile(r"replica_groups=(\{\{.*?\}\}|\{\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([\d,]+\))?|mesh\[.*?\{[^}]*\})")


def parse_groups(attributes: str, devices: int) -> Groups:
    """Return the groups of a collective, as positions in the mesh in row-major order.

    HLO has these notations:

    - ``{{0,1},{2,3}}`` lists the groups, and ``{}`` means one group of all devices;
    - ``[2,4]<=[8]`` and ``[4,2]<=[2,4]T(1,0)`` arrange 0, 1, 2 ... in the last shape, transpose the array if T is
      given, and reshape it to the first shape, whose rows are the groups;
    - ``mesh['x'=2,'y'=4] {'y'}`` gives the axes, or parts of axes such as ``'y':(2)2``, that the groups follow.
      ``device_ids=`` may permute the devices.

    Raises UnsupportedHloError for any other notation.
    """
    match = NOTATION.search(attributes)
    if not match:
        raise UnsupportedHloError(f"replica groups in an unknown notation: {attributes[:120]!r}")
    if match[1] == "{}" and "use_global_device_ids=true" in attributes:
        raise UnsupportedHloError("replica groups that this jaxlib cannot print, because libtpu is too new for it")
    return _parse(match[1], devices)


@functools.lru_cache(maxsize=1024)
def _parse(text: str, devices: int) -> Groups:
    if text == "{}":
        return (tuple(range(devices)),)
    if text.startswith("{{"):
        return tuple(tuple(int(n) for n in part.split(",") if n) for part in re.findall(r"\{([\d,]*)\}", text))
    if text.startswith("["):
        shape, iota = text.split("<=")
        return _in_rows(_iota(iota), _integers(shape)[-1])
    return _along_named_axes(text)


def _along_named_axes(text: str) -> Groups:
    ids = re.search(r"device_ids=\(([^()]*(?:\([\d,]+\))?)\)", text)
    sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", text.split("]")[0])}
    along = re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", text[text.rindex("{") :])
    if not {name for name, *_ in along} <= set(sizes):
        raise UnsupportedHloError(f"replica groups in an unknown notation: {text!r}")
    # 'y':(2)2 is the part of y that has size 2 and follows a part of size 2. Split each axis at all such boundaries.
    wanted = {(name, int(before or 1), int(size or sizes[name])) for name, before, size in along}
    parts = []  # (axis, product of the preceding parts' sizes, size)
    for axis, size in sizes.items():
        boundaries = sorted(
            {1, size, *(b for name, b, _ in wanted if name == axis), *(b * s for name, b, s in wanted if name == axis)}
        )
        parts += [(axis, start, stop // start) for start, stop in itertools.pairwise(boundaries)] or [(axis, 1, 1)]
    if not wanted <= set(parts):
        raise UnsupportedHloError(f"replica groups in an unknown notation: {text!r}")
    order = [parts.index((name, int(before or 1), int(size or sizes[name]))) for name, before, size in along]
    shape = [size for *_, size in parts]
    devices = _iota(ids[1]) if ids else list(range(math.prod(shape)))
    devices = _transpose(devices, shape, [i for i in range(len(parts)) if i not in order] + order)
    return _in_rows(devices, math.prod(shape[i] for i in order))


def _integers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _iota(text: str) -> list[int]:
    """Return the numbers 0, 1, 2 ... in the order that a text such as ``[2,4]T(1,0)`` specifies."""
    shape, _, order = text.partition("T")
    numbers = list(range(math.prod(_integers(shape))))
    return _transpose(numbers, _integers(shape), _integers(order)) if order else numbers


def _transpose(values: Sequence[int], shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Transpose a flattened row-major array so that axis `order[i]` becomes axis i, and return it flattened."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    offsets = [0]
    for axis in order:
        offsets = [offset + i * strides[axis] for offset in offsets for i in range(shape[axis])]
    return [values[offset] for offset in offsets]


def _in_rows(values: Sequence[int], length: int) -> Groups:
    return tuple(tuple(values[i : i + length]) for i in range(0, len(values), length))


@functools.lru_cache(maxsize=1024)
def axes_of(groups: Groups, axes: Axes) -> str:
    """Return the mesh axes that these groups follow, such as ``x`` or ``x, y``, or "" if they follow no axes."""
    shape = [size for _, size in axes]
    if not groups:
        return ""
    expected = {frozenset(group) for group in groups}
    for r in range(1, len(axes) + 1):
        for chosen in itertools.combinations(range(len(axes)), r):
            length = math.prod(shape[i] for i in chosen)
            if length != len(groups[0]):
                continue
            other_axes = [i for i in range(len(axes)) if i not in chosen]
            rows = _in_rows(_transpose(range(math.prod(shape)), shape, [*other_axes, *chosen]), length)
            if {frozenset(row) for row in rows} == expected:
                return ", ".join(axes[i][0] for i in chosen)
    return ""


@functools.lru_cache(maxsize=1024)
def axes_between(pairs: Groups, axes: Axes) -> str:
    """Return the mesh axes along which at least one pair's devices differ, or "" if the pairs don't fit the mesh."""
    if not axes or not pairs or max(map(max, pairs)) >= math.prod(size for _, size in axes):
        return ""
    differing = []
    for i, (name, size) in enumerate(axes):
        stride = math.prod(size for _, size in axes[i + 1 :])
        if any(source // stride % size != target // stride % size for source, target in pairs):
            differing.append(name)
    return ", ".join(differing)
