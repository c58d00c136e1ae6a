"""Count the FLOPs of matrix products: 2 for each multiply-add.

A complex multiply-add counts as 8 FLOPs (four real multiplications and four additions), unless the compiler has already
replaced it with real operations. The TPU compiler does so, with three real products instead of four.
"""

from __future__ import annotations

import json
import math
import re

from shardcost.hlo import Computation, Instruction, Program, UnsupportedHloError


def flops_of(program: Program, computation: Computation, instruction: Instruction) -> int:
    """Return the FLOPs of one run of a `dot`, a `convolution`, or a `reduce` that sums products."""
    if instruction.opcode == "reduce":
        return _sum_of_products(program, computation, instruction)
    left, right = (computation.operand(instruction, i).shapes[0] for i in (0, 1))
    [(_, result)] = instruction.shapes
    if instruction.opcode == "dot":
        contracting, batch = instruction.numbers("lhs_contracting_dims"), instruction.numbers("lhs_batch_dims")
        flops = _dot(left[1], right[1], result, contracting, batch)
    else:
        flops = _convolution(instruction, left[1], right[1], result)
    return flops * (4 if left[0].startswith("c") else 1)


def _dot(left: tuple, right: tuple, result: tuple, contracting: list[int], batch: list[int]) -> int:
    """Return the FLOPs of a matrix product: 2 x the elements in the result x the size of the contracting dimensions.

    Return 0 for a product of two vectors, because some compilers turn it into a multiplication and a sum, which aren't
    counted. The result then doesn't depend on the compiler.
    """
    if len(contracting) + len(batch) == max(len(left), len(right)):
        return 0
    return 2 * math.prod(result) * math.prod(left[axis] for axis in contracting)


def _sum_of_products(program: Program, computation: Computation, instruction: Instruction) -> int:
    """Return the FLOPs of a matrix-vector product that was compiled into a broadcast, a multiplication and this sum.

    GPU and TPU programs express matrix-vector products in this form. Return 0 for any other sum.
    """
    if not instruction.quoted("op_name").endswith("/dot_general"):
        return 0
    product_computation, product = _producer(program, computation, instruction.operands[0])
    if product.opcode != "multiply":
        return 0
    [(_, dims)] = product.shapes
    factors = [_producer(program, product_computation, name)[1] for name in product.operands]
    has_vector = any(factor.opcode == "broadcast" and factor.numbers("dimensions") for factor in factors)
    return 2 * math.prod(dims) if has_vector and len(dims) > 1 else 0


def _producer(program: Program, computation: Computation, name: str) -> tuple[Computation, Instruction]:
    """Follow a value back through conversions and fusions to the instruction that computes it.

    Return the instruction's computation and the instruction.
    """
    while True:
        instruction = computation[name]
        if instruction.opcode in ("convert", "bitcast", "copy", "reshape", "transpose"):
            name = instruction.operands[0]
        elif instruction.opcode == "fusion":
            computation = program[instruction.called("calls")]
            name = computation.root
        elif instruction.opcode == "get-tuple-element" and computation.operand(instruction, 0).opcode == "fusion":
            computation, index = (
                program[computation.operand(instruction, 0).called("calls")],
                instruction.number("index"),
            )
            root = computation[computation.root]
            if root.opcode != "tuple" or index is None:
                return computation, root
            name = root.operands[index]
        elif instruction.opcode == "parameter" and computation.name in program.callers:
            outside, caller = program.callers[computation.name]
            number = re.search(r"parameter\((\d+)\)", computation.lines[name])
            if caller.opcode != "fusion" or not number:
                return computation, instruction
            computation, name = outside, caller.operands[int(number[1])]
        else:
            return computation, instruction


def gemm_flops(computation: Computation, call: Instruction) -> int:
    """Return the FLOPs of a cuBLAS matrix product, based on the dimensions in the call's JSON configuration."""
    match = re.search(r'"dot_dimension_numbers":(\{[^{}]*\})', call.attributes)
    if not match:
        raise UnsupportedHloError(f"the custom call {call.quoted('custom_call_target')} without dimensions")
    numbers = json.loads(match[1])
    contracting, batch = (
        [int(n) for n in numbers.get(f"lhs_{key}_dimensions", ())] for key in ("contracting", "batch")
    )
    left, right = (computation.operand(call, i).shapes[0] for i in (0, 1))
    return _dot(left[1], right[1], call.shapes[0][1], contracting, batch) * (4 if left[0].startswith("c") else 1)


def _convolution(instruction: Instruction, left: tuple, right: tuple, result: tuple) -> int:
    """Return the FLOPs of a convolution: 2 x batch size x input features x output features x matching positions.

    A matching position is an output position and a kernel position that together read an input rather than padding.
    XLA's HloCostAnalysis counts convolutions in the same way. TPU programs express matrix products as convolutions:
    plain products without a window, and batched ones with the batch as a window dimension, which is padded and dilated
    so that exactly one kernel position applies to each output.
    """
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", instruction.attributes)
    if not labels:
        raise UnsupportedHloError("a convolution without dim_labels")
    input_labels, kernel_labels, output_labels = labels.groups()
    kernel_sizes = dict(zip(kernel_labels, right, strict=True))
    match = re.search(r"window=\{([^}]*)\}", instruction.attributes)
    window = dict(re.findall(r"(\w+)=([\dx_-]+)", match[1] if match else ""))
    pairs = 1
    for i, label in enumerate(sorted(label for label in kernel_labels if label.isdigit())):
        stride, dilation, kernel_dilation = (
            int(window[key].split("x")[i]) if key in window else 1 for key in ("stride", "lhs_dilate", "rhs_dilate")
        )
        padding = int(window["pad"].split("x")[i].split("_")[0]) if "pad" in window else 0
        outputs, inputs = result[output_labels.index(label)], left[input_labels.index(label)]
        pairs *= sum(
            _count_input_positions(outputs, stride, k * kernel_dilation - padding, inputs, dilation)
            for k in range(kernel_sizes[label])
        )
    groups = instruction.number("batch_group_count") or 1
    return 2 * left[input_labels.index("b")] // groups * kernel_sizes["i"] * kernel_sizes["o"] * pairs


def _count_input_positions(outputs: int, stride: int, shift: int, inputs: int, dilation: int) -> int:
    """Return the number of outputs o = 0, 1 ... for which ``stride * o + shift`` is the position of an input.

    Input i is at position ``dilation * i``. So count the outputs that read between the first and last inputs
    and for which ``stride * o = -shift`` modulo `dilation`.
    """
    common = math.gcd(stride, dilation)
    if shift % common or inputs < 1:
        return 0
    period = dilation // common
    first = (-shift // common) * pow(stride // common, -1, period) % period if period > 1 else 0
    low = max(0, -(shift // stride))  # -shift / stride, rounded up
    high = min(outputs - 1, ((inputs - 1) * dilation - shift) // stride)
    low += (first - low) % period
    return max(0, (high - low) // period + 1)
