"""Find the trip count of a loop from the text of a compiled program.

The CPU and GPU compilers record the trip counts that they know. Otherwise, this module evaluates the loop's condition
iteration by iteration. That's possible if the condition reads only integer counters that start at known values and
whose updates, such as ``i = i + 3``, depend only on constants and on other such counters. (If JAX's 64-bit types are
enabled, the TPU compiler splits a counter into two 32-bit integers, and carries from one to the other.) The trip count
of any other loop is unknown, for example if it depends on the data.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable

from shardcost.hlo import Computation, Instruction, Program

MAX_ITERATIONS = 250_000  # this many take a few seconds to evaluate; the trip count of a longer loop is unknown
COMPARISONS = {name: getattr(operator, name.lower()) for name in ("EQ", "NE", "LT", "LE", "GT", "GE")}
OPERATIONS: dict[str, Callable[..., int]] = {  # ignoring overflow, which `_operation` handles
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "select": lambda condition, if_true, if_false: if_true if condition else if_false,
    **dict.fromkeys(("copy", "bitcast", "bitcast-convert", "convert"), operator.pos),
}
Evaluator = Callable[[str], int]  # evaluates a named instruction, and returns the index of its value in `values`
Inputs = Callable[[int], int]  # does the same for the fusion parameter or element of a loop's tuple with a given number


class _UnknownValue(Exception):
    """Raised for a value that can't be computed from constants and the loop's counters."""


def trip_count(program: Program, computation: Computation, loop: Instruction) -> int | None:
    """Return the trip count of a while loop in a computation, or None if the text doesn't give it."""
    recorded = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop.attributes)
    if recorded:
        return int(recorded[1])
    try:
        return _Loop(program, computation, loop).run()
    except (_UnknownValue, KeyError, IndexError, RecursionError):
        return None


class _Loop:
    """A loop's condition and its counters' updates, as operations on a list of integers."""

    def __init__(self, program: Program, computation: Computation, loop: Instruction) -> None:
        self.program = program
        self.values: list[int] = []  # constants, counters, and the results of operations on them
        # In order of execution, each operation as (index of its result in `values`, function, indices of its operands).
        self.operations: list[tuple[int, Callable[..., int], list[int]]] = []
        body, condition = program[loop.called("body")], program[loop.called("condition")]
        initial, results = computation.operand(loop, 0), body[body.root]  # the first and next tuples
        if (initial.opcode, results.opcode) != ("tuple", "tuple"):
            raise _UnknownValue
        start = self._evaluator(computation, _no_input)
        counters: list[int] = []  # their positions in the loop's tuple

        @functools.cache
        def counter(element: int) -> int:
            counters.append(element)
            return self._append(self.values[start(initial.operands[element])])

        self.condition = self._evaluator(condition, counter)(condition.root)
        update = self._evaluator(body, counter)
        # An update may read further counters. `counter` appends them to `counters` during this iteration over the list.
        self.updates = [(counter(element), update(results.operands[element])) for element in counters]

    def run(self) -> int:
        """Update the counters until the condition is false, and return the number of iterations."""
        for iteration in range(MAX_ITERATIONS):
            if not self.values[self.condition]:
                return iteration
            for counter, value in [(counter, self.values[update]) for counter, update in self.updates]:
                self.values[counter] = value
            for result, operation, operands in self.operations:
                self.values[result] = operation(*[self.values[operand] for operand in operands])
        raise _UnknownValue

    def _append(self, value: int) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _evaluator(self, computation: Computation, inputs: Inputs) -> Evaluator:
        """Return a function that evaluates a computation's instructions, given its inputs."""

        @functools.cache
        def evaluate(name: str) -> int:
            instruction = computation[name]
            opcode, dtype, index = instruction.opcode, _integer_dtype(instruction), instruction.number("index") or 0
            if opcode == "constant":
                return self._append(int(_argument(computation, name).replace("true", "1").replace("false", "0")))
            if opcode == "parameter":
                return inputs(int(_argument(computation, name)))
            if opcode == "fusion":
                return evaluate_fused(instruction, lambda fused: fused.root)
            if opcode == "get-tuple-element":
                source = computation.operand(instruction, 0)
                if source.opcode == "parameter":
                    return inputs(index)
                if source.opcode == "fusion":
                    return evaluate_fused(source, lambda fused: fused[fused.root].operands[index])
                raise _UnknownValue
            operation = _operation(instruction, dtype)
            operands = [evaluate(operand) for operand in instruction.operands]
            result = self._append(operation(*[self.values[operand] for operand in operands]))
            self.operations.append((result, operation, operands))
            return result

        def evaluate_fused(fusion: Instruction, name: Callable[[Computation], str]) -> int:
            fused = self.program[fusion.called("calls")]
            return self._evaluator(fused, lambda number: evaluate(fusion.operands[number]))(name(fused))

        return evaluate


def _no_input(number: int) -> int:
    raise _UnknownValue


def _argument(computation: Computation, name: str) -> str:
    """Return the value of a constant, such as -1 or true, or the number of a parameter, as text."""
    match = re.search(r" (?:constant|parameter)\((-?\d+|true|false)\)", computation.lines[name])
    if not match:
        raise _UnknownValue
    return match[1]


def _integer_dtype(instruction: Instruction) -> str:
    """Return the dtype of an instruction whose result is a single integer or Boolean."""
    [(dtype, dimensions), *others] = instruction.shapes or [("", ())]
    if dimensions or others or not re.match(r"pred|[su]\d", dtype):
        raise _UnknownValue
    return dtype


def _operation(instruction: Instruction, dtype: str) -> Callable[..., int]:
    """Return the function that computes an instruction's result from its operands, and wraps around on overflow."""
    if instruction.opcode == "compare":
        direction = re.search(r"direction=(\w+)", instruction.attributes)
        return COMPARISONS[direction[1] if direction else ""]
    operation = OPERATIONS[instruction.opcode]
    if dtype == "pred":
        return lambda *operands: bool(operation(*operands))
    modulus = 2 ** int(re.findall(r"\d+", dtype)[0])
    smallest = -modulus // 2 if dtype.startswith("s") else 0
    return lambda *operands: (operation(*operands) - smallest) % modulus + smallest
