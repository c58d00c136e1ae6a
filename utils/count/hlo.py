"""Read the text of a compiled program (HLO): its computations, how often each one runs, and its groups of devices."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

Shape = tuple[str, tuple[int, ...]]  # dtype, dimensions


class UnknownConstruct(ValueError):
    """The program holds something that this reader cannot count; the message names it."""


@dataclass(frozen=True)
class Instruction:
    """One line: ``%name = type opcode(%operand, ...), attribute=value, ...``."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The arrays of the type: one, or a tuple's."""
        return shapes(self.type)

    def called(self, key: str) -> str | None:
        """The computation that the attribute `key` names."""
        found = re.search(rf"\b{key}=%([\w.\-]+)", self.attributes)
        return found and found[1]

    def number(self, key: str) -> int | None:
        found = re.search(rf"\b{key}=(\d+)", self.attributes)
        return int(found[1]) if found else None


@dataclass
class Computation:
    """A named list of instructions, read when asked for: most lines of a large program never are."""

    name: str
    lines: dict[str, str] = field(default_factory=dict)
    root: str = ""

    def __getitem__(self, name: str) -> Instruction:
        return parse(name, self.lines[name])

    def operand(self, instruction: Instruction, i: int) -> Instruction:
        return self[instruction.operands[i]]


def shapes(text: str) -> tuple[Shape, ...]:
    """The arrays named in a type, without the layouts behind them: ``(f32[2,4]{1,0}, s32[])``."""
    found = re.findall(r"\b([a-z]\w*)\[([\d,]*)\]", re.sub(r"\{[^{}]*\}", "", text))
    return tuple((dtype, tuple(int(n) for n in dims.split(",") if n)) for dtype, dims in found)


def itemsize(dtype: str) -> float:
    """Bytes of one element. Raises UnknownConstruct for a dtype that is none."""
    if dtype in ("token", "opaque"):
        return 0
    bits = re.match(r"(?:bf|[sufc])(\d+)", dtype)
    if dtype != "pred" and not bits:
        raise UnknownConstruct(f"the dtype {dtype}")
    return 1 if dtype == "pred" else int(bits[1]) / 8


def nbytes(arrays: tuple[Shape, ...]) -> float:
    return sum(itemsize(dtype) * math.prod(dims) for dtype, dims in arrays)


def _closing(text: str, start: int) -> int:
    """The position of the parenthesis that closes the one at `start`."""
    depth = 0
    for found in re.compile(r"[()]").finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    raise UnknownConstruct(f"a line without its closing parenthesis: {text[:80]}")


def parse(name: str, text: str) -> Instruction:
    """Take apart what stands right of the equals sign."""
    end = _closing(text, 0) + 1 if text.startswith("(") else text.index(" ")
    start = text.index("(", end)
    close = _closing(text, start)
    operands = tuple(re.findall(r"%([\w.\-]+)", text[start:close]))
    return Instruction(name, text[:end], text[end:start].strip(), operands, text[close + 1 :])


def computations(text: str) -> dict[str, Computation]:
    """The program's computations by name, each after those that it calls; the last one is the entry."""
    found: dict[str, Computation] = {}
    current = None
    for line in text.splitlines():
        if line.startswith("  ") and current is not None:
            name, equals, right = line.strip().partition(" = ")
            if equals:
                root = name.startswith("ROOT ")
                name = name.removeprefix("ROOT ").removeprefix("%")
                current.lines[name] = right
                if root:
                    current.root = name
        elif line.endswith("{") and not line.startswith("HloModule"):
            name = line.removeprefix("ENTRY ").split(" ", 1)[0].removeprefix("%")
            current = found[name] = Computation(name)
    if not found:
        raise UnknownConstruct("a program without computations")
    return found


CALLS = re.compile(r" (while|fusion|call|conditional|async-start|custom-call)\(")


def times(found: dict[str, Computation]) -> tuple[dict[str, int], set[str]]:
    """How often each computation runs, and which ones may not run at all: those under a conditional.

    The second also holds what runs in a loop whose rounds cannot be read: an error for the caller, but only if
    something in there has to be counted.
    """
    count: dict[str, int] = defaultdict(int)
    unsure: set[str] = set()
    entry = next(reversed(found))
    count[entry] = 1
    for name in reversed(found):
        if not count[name] and name not in unsure:
            continue
        for line_name, right in found[name].lines.items():
            kind = CALLS.search(right[:4000])
            if not kind:
                continue
            instruction = found[name][line_name]
            rounds, doubtful = 1, name in unsure
            if instruction.opcode == "while":
                rounds = trip_count(found, found[name], instruction)
                below = [instruction.called("body")]
                doubtful = doubtful or rounds is None
                condition = instruction.called("condition")
                count[condition] += count[name] * ((rounds or 0) + 1)
                if doubtful:
                    unsure.add(condition)
            elif instruction.opcode == "conditional":
                branches = re.search(r"branch_computations=\{([^}]*)\}", instruction.attributes)
                below = re.findall(r"%([\w.\-]+)", branches[1]) if branches else []
                below += [instruction.called(key) for key in ("true_computation", "false_computation")]
                doubtful = True
            else:
                below = [instruction.called("calls"), instruction.called("to_apply")]
            for called in below:
                if called:
                    count[called] += count[name] * (rounds or 1)
                    if doubtful:
                        unsure.add(called)
    return count, unsure


def trip_count(found: dict[str, Computation], around: Computation, loop: Instruction) -> int | None:
    """The rounds of a while loop: as the compiler notes them, or read off `for (i = start; i < stop; i += step)`."""
    noted = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop.attributes)
    if noted:
        return int(noted[1])
    condition, body = found[loop.called("condition")], found[loop.called("body")]
    try:
        test = condition[condition.root]
        counter, stop = (condition.operand(test, i) for i in (0, 1))
        compare = test if test.opcode == "compare" else _root(found, test)
        direction = re.search(r"direction=(\w+)", compare.attributes)[1]
        index = counter.number("index")
        start = _constant(around, around[around.operand(loop, 0).operands[index]])
        step = _step(found, body, body.operand(body[body.root], index), index)
        rounds = (_constant(condition, stop) - start) / step
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    if compare.opcode != "compare" or direction not in ("LT", "LE"):
        return None
    return max(0, math.ceil(rounds) if direction == "LT" else math.floor(rounds) + 1)


def _root(found: dict[str, Computation], fusion: Instruction) -> Instruction:
    inside = found[fusion.called("calls")]
    return inside[inside.root]


def _origin(inside: Computation, instruction: Instruction) -> Instruction:
    """What is copied: a TPU's compiler moves a loop's counter to another memory and back."""
    while instruction.opcode in ("copy", "bitcast", "convert"):
        instruction = inside.operand(instruction, 0)
    return instruction


def _constant(inside: Computation, instruction: Instruction) -> int:
    instruction = _origin(inside, instruction)
    if instruction.opcode != "constant":
        raise ValueError("not a constant")
    return int(re.search(r"constant\((-?\d+)\)", inside.lines[instruction.name])[1])


def _step(found: dict[str, Computation], body: Computation, add: Instruction, index: int) -> int:
    """The constant that the body adds to the counter."""
    add = _origin(body, add)
    operands = [_origin(body, body[name]) for name in add.operands]
    if add.opcode == "fusion":
        inside = found[add.called("calls")]
        within = inside[inside.root]
        if within.opcode != "add":
            raise ValueError("not an addition")
        constants = [inside[name] for name in within.operands if inside[name].opcode == "constant"]
        if constants:
            return _constant(inside, constants[0])
    elif add.opcode != "add":
        raise ValueError("not an addition")
    counter = [o for o in operands if o.opcode == "get-tuple-element" and o.number("index") == index]
    others = [o for o in operands if o not in counter]
    if len(counter) != 1 or len(others) != 1:
        raise ValueError("not a counter plus a constant")
    return _constant(body, others[0])


def groups(attributes: str, devices: int) -> tuple[tuple[int, ...], ...]:
    """The devices (places in the mesh, row by row) that take part together, in any of the spellings of HLO.

    ``{{0,1},{2,3}}``; ``{}`` for all; ``[2,4]<=[8]`` and ``[4,2]<=[2,4]T(1,0)``: numbers in that shape, transposed,
    reshaped; ``mesh['x'=2,'y'=4] {'y'}``: along named axes or parts of them, ``'y':(2)2``, the numbers possibly
    transposed by ``device_ids=``.
    Raises UnknownConstruct for any other.
    """
    found = re.search(
        r"replica_groups=(\{\{.*?\}\}|\{\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([\d,]+\))?|mesh\[.*?\{[^}]*\})", attributes
    )
    if not found:
        raise UnknownConstruct(f"replica groups spelled {attributes[:120]!r}")
    text = found[1]
    if text == "{}" and "use_global_device_ids=true" in attributes:
        raise UnknownConstruct("replica groups that this jaxlib cannot print: the libtpu is too new for it")
    if text == "{}":
        return (tuple(range(devices)),)
    if text.startswith("{{"):
        return tuple(tuple(int(n) for n in part.split(",") if n) for part in re.findall(r"\{([\d,]*)\}", text))
    if text.startswith("["):
        shape, iota = text.split("<=")
        return tuple(map(tuple, _iota(iota).reshape(_ints(shape)).tolist()))
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
