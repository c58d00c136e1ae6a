"""Which devices exchange together: the groups of a collective in all their spellings, and their mesh axes."""

from __future__ import annotations

import functools
import itertools
import math
import re

import numpy as np

from utils.count.hlo import UnknownConstruct

Groups = tuple[tuple[int, ...], ...]  # places in the mesh, row by row
Axes = tuple[tuple[str, int], ...]  # of a mesh: names and sizes

SPELLED = re.compile(r"replica_groups=(\{\{.*?\}\}|\{\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([\d,]+\))?|mesh\[.*?\{[^}]*\})")


def groups(attributes: str, devices: int) -> Groups:
    """The devices (places in the mesh, row by row) that take part together, in any of the spellings of HLO.

    ``{{0,1},{2,3}}``; ``{}`` for all; ``[2,4]<=[8]`` and ``[4,2]<=[2,4]T(1,0)``: numbers in that shape, transposed,
    reshaped; ``mesh['x'=2,'y'=4] {'y'}``: along named axes or parts of them, ``'y':(2)2``, the numbers possibly
    transposed by ``device_ids=``.
    Raises UnknownConstruct for any other.
    """
    found = SPELLED.search(attributes)
    if not found:
        raise UnknownConstruct(f"replica groups spelled {attributes[:120]!r}")
    if found[1] == "{}" and "use_global_device_ids=true" in attributes:
        raise UnknownConstruct("replica groups that this jaxlib cannot print: the libtpu is too new for it")
    return _read(found[1], devices)


@functools.lru_cache(maxsize=1024)
def _read(text: str, devices: int) -> Groups:
    if text == "{}":
        return (tuple(range(devices)),)
    if text.startswith("{{"):
        return tuple(tuple(int(n) for n in part.split(",") if n) for part in re.findall(r"\{([\d,]*)\}", text))
    if text.startswith("["):
        shape, iota = text.split("<=")
        return tuple(map(tuple, _iota(iota).reshape(_ints(shape)).tolist()))
    return _along_named_axes(text)


def _along_named_axes(text: str) -> Groups:
    ids = re.search(r"device_ids=\(([^()]*(?:\([\d,]+\))?)\)", text)
    sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", text.split("]")[0])}
    along = re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", text[text.rindex("{") :])
    if not {name for name, *_ in along} <= set(sizes):
        raise UnknownConstruct(f"replica groups spelled {text!r}")
    # 'y':(2)2 is the part of y of size 2 behind a part of size 2: every axis is cut at all such places.
    wanted = {(name, int(before or 1), int(size or sizes[name])) for name, before, size in along}
    parts = []  # (axis, size of what stands before, size)
    for axis, size in sizes.items():
        places = sorted(
            {1, size, *(b for name, b, _ in wanted if name == axis), *(b * s for name, b, s in wanted if name == axis)}
        )
        parts += [(axis, start, stop // start) for start, stop in itertools.pairwise(places)] or [(axis, 1, 1)]
    if not wanted <= set(parts):
        raise UnknownConstruct(f"replica groups spelled {text!r}")
    order = [parts.index((name, int(before or 1), int(size or sizes[name]))) for name, before, size in along]
    shape = [size for *_, size in parts]
    mesh = (_iota(ids[1]) if ids else np.arange(math.prod(shape))).reshape(shape)
    mesh = mesh.transpose([i for i in range(len(parts)) if i not in order] + order)
    return tuple(map(tuple, mesh.reshape(-1, math.prod(shape[i] for i in order)).tolist()))


def _ints(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _iota(text: str) -> np.ndarray:
    """``[2,4]T(1,0)``: 0, 1, 2 ... in that shape, then transposed."""
    shape, _, order = text.partition("T")
    numbers = np.arange(math.prod(_ints(shape))).reshape(_ints(shape))
    return numbers.transpose(_ints(order)) if order else numbers


@functools.lru_cache(maxsize=1024)
def axes_of(members: Groups, axes: Axes) -> str:
    """The names of the mesh axes along which the groups lie, ``x`` or ``x, y``; or nothing."""
    sizes = [size for _, size in axes]
    wanted = {frozenset(group) for group in members}
    for r in range(1, len(axes) + 1):
        for chosen in itertools.combinations(range(len(axes)), r):
            ids = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
            rest = [i for i in range(len(axes)) if i not in chosen]
            lines = ids.transpose([*rest, *chosen]).reshape(-1, int(np.prod([sizes[i] for i in chosen])))
            if {frozenset(line) for line in lines.tolist()} == wanted:
                return ", ".join(axes[i][0] for i in chosen)
    return ""


@functools.lru_cache(maxsize=1024)
def axes_between(pairs: Groups, axes: Axes) -> str:
    """The names of the mesh axes along which some pair's source and target differ; nothing without such a mesh."""
    if not axes or not pairs or max(map(max, pairs)) >= math.prod(size for _, size in axes):
        return ""
    places = np.array(np.unravel_index(np.array(pairs), [size for _, size in axes]))  # (axis, pair, source or target)
    return ", ".join(name for (name, _), place in zip(axes, places, strict=True) if (place[:, 0] != place[:, 1]).any())
