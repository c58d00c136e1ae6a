"""Find the trip count of a loop from the text of a compiled program.

The CPU and GPU compilers record the trip counts that they know. Otherwise, the trip count is derived from the loop's
code if it's an integer loop such as ``for (i = start; i < stop; i += step)``: the condition compares linear functions
of i, and the body adds a constant to i. The trip count of any other loop is unknown, for example if i doubles or grows
by an amount that depends on the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from shardcost.hlo import Computation, Instruction, Program, itemsize

Linear = tuple[int, int]  # (a, b) represents the value a * i + b, where i is the loop's counter
Inputs = Callable[[Computation, Instruction], Linear]  # returns the value of a computation's input


class _NotLinear(Exception):
    """Raised for a value that isn't a known linear function of the loop's counter."""


def trip_count(program: Program, computation: Computation, loop: Instruction) -> int | None:
    """Return the trip count of a while loop in a computation, or None if the text doesn't give it."""
    recorded = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop.attributes)
    if recorded:
        return int(recorded[1])
    try:
        return _derive(program, computation, loop)
    except (_NotLinear, KeyError, IndexError):
        return None


def _derive(program: Program, computation: Computation, loop: Instruction) -> int:
    body, condition = program[loop.called("body")], program[loop.called("condition")]
    initial, results = computation.operand(loop, 0), body[body.root]  # the values before and after an iteration
    if (initial.opcode, results.opcode) != ("tuple", "tuple"):
        raise _NotLinear
    counters: set[int] = set()

    def start(i: int) -> int:
        return _linear(program, computation, initial.operands[i], _no_inputs)[1]

    def carried(computation: Computation, instruction: Instruction) -> Linear:
        """Return the value of an element of the loop's tuple, which must be the counter or a loop invariant."""
        i = _element(computation, instruction)
        if i is None:
            raise _NotLinear
        if _element(body, _skip_copies(body, body[results.operands[i]])) == i:
            return 0, start(i)
        counters.add(i)
        return 1, 0

    direction, (slope, offset) = _comparison(program, condition, condition.root, carried)
    if len(counters) != 1:
        raise _NotLinear
    [counter] = counters
    factor, step = _linear(program, body, results.operands[counter], carried)
    if factor != 1 or len(counters) != 1:
        raise _NotLinear
    slope, offset = slope * step, slope * start(counter) + offset  # as a function of the number of iterations
    count = _first_failure(direction, slope, offset)
    final = start(counter) + count * step
    if not _is_exact(final, body[results.operands[counter]].shapes[0][0]) or abs(slope * count + offset) >= 2**31:
        raise _NotLinear  # an integer would overflow and wrap around
    return count


def _first_failure(direction: str, slope: int, offset: int) -> int:
    """Return the first k = 0, 1, 2 ... for which comparing ``slope * k + offset`` with 0 gives False.

    Args:
        direction: the comparison, which is LT, LE, GT, GE or NE.
    """
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
    raise _NotLinear


def _is_exact(value: int, dtype: str) -> bool:
    """Return whether a dtype represents every integer from 0 to `value` exactly."""
    integer = re.fullmatch(r"([su])(\d+)", dtype)
    if not integer:  # every float dtype of at least 16 bits represents the integers up to this limit exactly
        return abs(value) < 2**8
    values = 2 ** int(integer[2])
    return 0 <= value < values if integer[1] == "u" else -values <= 2 * value < values


def _linear(program: Program, computation: Computation, name: str, inputs: Inputs) -> Linear:
    """Return the value of an instruction as a linear function of the counter, or raise _NotLinear if it isn't one."""
    instruction = _skip_copies(computation, computation[name])
    if instruction.opcode == "constant":
        match = re.search(r"constant\((-?\d+)\)", computation.lines[instruction.name])
        if not match:
            raise _NotLinear
        return 0, int(match[1])
    unsigned = instruction.shapes[0][0].startswith("u")
    if instruction.opcode in ("add", "multiply") or (instruction.opcode == "subtract" and not unsigned):
        (a, b), (c, d) = (_linear(program, computation, operand, inputs) for operand in instruction.operands)
        if instruction.opcode == "multiply":
            if a and c:
                raise _NotLinear
            return a * d + c * b, b * d
        sign = 1 if instruction.opcode == "add" else -1
        return a + sign * c, b + sign * d
    if instruction.opcode == "fusion":
        fused, inputs = _enter_fusion(program, computation, instruction, inputs)
        return _linear(program, fused, fused.root, inputs)
    index = instruction.number("index")
    if instruction.opcode == "get-tuple-element" and computation.operand(instruction, 0).opcode == "fusion":
        fused, inputs = _enter_fusion(program, computation, computation.operand(instruction, 0), inputs)
        return _linear(program, fused, fused[fused.root].operands[index or 0], inputs)
    return inputs(computation, instruction)


def _comparison(program: Program, computation: Computation, name: str, inputs: Inputs) -> tuple[str, Linear]:
    """Return the loop's condition as a comparison direction and the linear function that's compared with 0."""
    instruction = _skip_copies(computation, computation[name])
    if instruction.opcode == "fusion":
        fused, inputs = _enter_fusion(program, computation, instruction, inputs)
        return _comparison(program, fused, fused.root, inputs)
    direction = re.search(r"direction=(\w+)", instruction.attributes)
    if instruction.opcode != "compare" or not direction:
        raise _NotLinear
    (a, b), (c, d) = (_linear(program, computation, operand, inputs) for operand in instruction.operands)
    return direction[1], (a - c, b - d)


def _enter_fusion(
    program: Program, outside: Computation, fusion: Instruction, inputs: Inputs
) -> tuple[Computation, Inputs]:
    """Return a fusion's computation, and a function that returns the values of the fusion's operands."""

    def operand(computation: Computation, instruction: Instruction) -> Linear:
        number = re.search(r"parameter\((\d+)\)", computation.lines.get(instruction.name, ""))
        if instruction.opcode != "parameter" or not number:
            raise _NotLinear
        return _linear(program, outside, fusion.operands[int(number[1])], inputs)

    return program[fusion.called("calls")], operand


def _no_inputs(computation: Computation, instruction: Instruction) -> Linear:
    raise _NotLinear


def _skip_copies(computation: Computation, instruction: Instruction) -> Instruction:
    """Follow copies and conversions back to the instruction that computes the value.

    The TPU compiler, for example, copies a loop's counter to another memory and back.
    """
    while instruction.opcode in ("copy", "bitcast", "convert"):
        source = computation.operand(instruction, 0)
        source_dtype, dtype = source.shapes[0][0], instruction.shapes[0][0]
        if source_dtype != dtype and (
            instruction.opcode != "convert" or itemsize(source_dtype) > itemsize(dtype) or dtype.startswith("u")
        ):
            raise _NotLinear  # the new dtype may not be able to represent the value
        instruction = source
    return instruction


def _element(computation: Computation, instruction: Instruction) -> int | None:
    """Return the index that an instruction reads from the loop's tuple, or None if it doesn't read an element."""
    if instruction.opcode == "get-tuple-element" and computation.operand(instruction, 0).opcode == "parameter":
        return instruction.number("index")
    return None
