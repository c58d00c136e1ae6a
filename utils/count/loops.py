"""How many rounds a loop of a compiled program runs, where its text tells.

The compiler notes them (CPU), or they are read off ``for (i = start; i < stop; i += step)`` with whole numbers: a
condition that compares lines in i, a body that adds a constant to i. Any other loop (its i doubles, or grows by what
the data say) has rounds that the text does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from utils.count.hlo import Computation, Instruction, Program, itemsize

Line = tuple[int, int]  # (a, b): the value a * i + b, where i is the loop's counter
Given = Callable[[Computation, Instruction], Line]  # the value of what a computation gets from outside


class _Unreadable(Exception):
    """The text does not tell a value, or not as a line in the loop's counter."""


def trip_count(program: Program, around: Computation, loop: Instruction) -> int | None:
    """The rounds of a while loop, or None where its text does not tell."""
    noted = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop.attributes)
    if noted:
        return int(noted[1])
    try:
        return _rounds(program, around, loop)
    except (_Unreadable, KeyError, IndexError):
        return None


def _rounds(program: Program, around: Computation, loop: Instruction) -> int:
    body, condition = program[loop.called("body")], program[loop.called("condition")]
    before, after = around.operand(loop, 0), body[body.root]  # what goes into the first round, and out of each
    if (before.opcode, after.opcode) != ("tuple", "tuple"):
        raise _Unreadable
    counters: set[int] = set()

    def start(i: int) -> int:
        return _line(program, around, before.operands[i], _nothing)[1]

    def carried(inside: Computation, instruction: Instruction) -> Line:
        """What the body and the condition get: the counter, or what stays as it was before the loop."""
        i = _part(inside, instruction)
        if i is None:
            raise _Unreadable
        if _part(body, _origin(body, body[after.operands[i]])) == i:
            return 0, start(i)
        counters.add(i)
        return 1, 0

    direction, (slope, offset) = _comparison(program, condition, condition.root, carried)
    if len(counters) != 1:
        raise _Unreadable
    [counter] = counters
    factor, step = _line(program, body, after.operands[counter], carried)
    if factor != 1 or len(counters) != 1:
        raise _Unreadable
    slope, offset = slope * step, slope * start(counter) + offset  # now of the number of rounds
    rounds = _until(direction, slope, offset)
    last = start(counter) + rounds * step
    if not _fits(last, body[after.operands[counter]].shapes[0][0]) or abs(slope * rounds + offset) >= 2**31:
        raise _Unreadable  # a number overflows and starts again from below
    return rounds


def _until(direction: str, slope: int, offset: int) -> int:
    """The first k = 0, 1, 2 ... for which ``slope * k + offset`` is no longer LT, LE, GT, GE, NE 0."""
    if direction in ("GT", "GE"):
        direction, slope, offset = {"GT": "LT", "GE": "LE"}[direction], -slope, -offset
    if direction == "LE":
        direction, offset = "LT", offset - 1
    if direction == "LT" and offset >= 0:
        return 0
    if direction == "LT" and slope > 0:
        return -(offset // slope)  # rounded up
    if direction == "NE" and (offset == 0 or (slope and offset % slope == 0 and offset // slope < 0)):
        return -(offset // slope) if offset else 0
    raise _Unreadable


def _fits(value: int, dtype: str) -> bool:
    whole = re.fullmatch(r"([su])(\d+)", dtype)
    if not whole:  # a float, of whatever width: whole numbers are exact in it up to here
        return abs(value) < 2**8
    values = 2 ** int(whole[2])
    return 0 <= value < values if whole[1] == "u" else -values <= 2 * value < values


def _line(program: Program, inside: Computation, name: str, given: Given) -> Line:
    """The value of an instruction as a line in the counter. Raises _Unreadable where it is none."""
    instruction = _origin(inside, inside[name])
    if instruction.opcode == "constant":
        found = re.search(r"constant\((-?\d+)\)", inside.lines[instruction.name])
        if not found:
            raise _Unreadable
        return 0, int(found[1])
    unsigned = instruction.shapes[0][0].startswith("u")
    if instruction.opcode in ("add", "multiply") or (instruction.opcode == "subtract" and not unsigned):
        (a, b), (c, d) = (_line(program, inside, operand, given) for operand in instruction.operands)
        if instruction.opcode == "multiply":
            if a and c:
                raise _Unreadable
            return a * d + c * b, b * d
        sign = 1 if instruction.opcode == "add" else -1
        return a + sign * c, b + sign * d
    if instruction.opcode == "fusion":
        within, given = _enter(program, inside, instruction, given)
        return _line(program, within, within.root, given)
    if instruction.opcode == "get-tuple-element" and inside.operand(instruction, 0).opcode == "fusion":
        within, given = _enter(program, inside, inside.operand(instruction, 0), given)
        return _line(program, within, within[within.root].operands[instruction.number("index")], given)
    return given(inside, instruction)


def _comparison(program: Program, inside: Computation, name: str, given: Given) -> tuple[str, Line]:
    """The loop's test as ``line DIRECTION 0``."""
    instruction = _origin(inside, inside[name])
    if instruction.opcode == "fusion":
        within, given = _enter(program, inside, instruction, given)
        return _comparison(program, within, within.root, given)
    if instruction.opcode != "compare":
        raise _Unreadable
    (a, b), (c, d) = (_line(program, inside, operand, given) for operand in instruction.operands)
    return re.search(r"direction=(\w+)", instruction.attributes)[1], (a - c, b - d)


def _enter(program: Program, outside: Computation, fusion: Instruction, given: Given) -> tuple[Computation, Given]:
    """The computation of a fusion, whose parameters are the fusion's operands."""

    def operand(inside: Computation, instruction: Instruction) -> Line:
        if instruction.opcode != "parameter":
            raise _Unreadable
        number = int(re.search(r"parameter\((\d+)\)", inside.lines[instruction.name])[1])
        return _line(program, outside, fusion.operands[number], given)

    return program[fusion.called("calls")], operand


def _nothing(inside: Computation, instruction: Instruction) -> Line:
    raise _Unreadable


def _origin(inside: Computation, instruction: Instruction) -> Instruction:
    """What is copied: a TPU's compiler moves a loop's counter to another memory and back."""
    while instruction.opcode in ("copy", "bitcast", "convert"):
        source = inside.operand(instruction, 0)
        old, new = source.shapes[0][0], instruction.shapes[0][0]
        if old != new and (instruction.opcode != "convert" or itemsize(old) > itemsize(new) or new.startswith("u")):
            raise _Unreadable  # another type may not hold it
        instruction = source
    return instruction


def _part(inside: Computation, instruction: Instruction) -> int | None:
    """Which part of the tuple that a loop carries this is, if it is one."""
    if instruction.opcode == "get-tuple-element" and inside.operand(instruction, 0).opcode == "parameter":
        return instruction.number("index")
    return None
