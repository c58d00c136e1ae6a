"""FLOPs of matrix products, from the text of a compiled program: 2 for each multiplication and addition.

Complex numbers are multiplied and added with 8 (four real products, four sums), where the compiler has not written it
out itself: a TPU's does, with three real products instead of four.
"""

from __future__ import annotations

import json
import math
import re

import numpy as np

from utils.count.hlo import Computation, Instruction, UnknownConstruct


def flops(computation: Computation, instruction: Instruction) -> int:
    """FLOPs of one run of a dot, a convolution, or a sum of products (`reduce`)."""
    if instruction.opcode == "reduce":
        return _sum_of_products(computation, instruction)
    left, right = (computation.operand(instruction, i).shapes[0] for i in (0, 1))
    [(_, result)] = instruction.shapes
    if instruction.opcode == "dot":
        axes, batch = instruction.numbers("lhs_contracting_dims"), instruction.numbers("lhs_batch_dims")
        found = _dot(left[1], right[1], result, axes, batch)
    else:
        found = _convolution(instruction, left[1], right[1], result)
    return found * (4 if left[0].startswith("c") else 1)


def _dot(left: tuple, right: tuple, result: tuple, contracting: list[int], batch: list[int]) -> int:
    """2 x elements of the result x length of the contraction; 0 for a product of vectors.

    (Some versions write that as a multiplication and a sum, which are not counted, so it must not count elsewhere.)
    """
    if len(contracting) + len(batch) == max(len(left), len(right)):
        return 0
    return 2 * math.prod(result) * math.prod(left[axis] for axis in contracting)


def _sum_of_products(computation: Computation, instruction: Instruction) -> int:
    """The product of a matrix and a vector as a TPU writes it: the vector repeated, a multiplication, a sum."""
    if not instruction.quoted("op_name").endswith("/dot_general"):
        return 0
    product = computation.operand(instruction, 0)
    if product.opcode != "multiply":
        return 0
    [(_, dims)] = product.shapes
    repeated = any(computation[name].opcode == "broadcast" for name in product.operands)
    return 2 * math.prod(dims) if repeated and len(dims) > 1 else 0


def gemm(computation: Computation, call: Instruction) -> int:
    """A product that a GPU's library computes (cuBLAS): its text has the dimensions as JSON."""
    found = re.search(r'"dot_dimension_numbers":(\{[^{}]*\})', call.attributes)
    if not found:
        raise UnknownConstruct(f"the custom call {call.quoted('custom_call_target')} without dimensions")
    numbers = json.loads(found[1])
    axes, batch = ([int(n) for n in numbers.get(f"lhs_{key}_dimensions", ())] for key in ("contracting", "batch"))
    left, right = (computation.operand(call, i).shapes[0] for i in (0, 1))
    return _dot(left[1], right[1], call.shapes[0][1], axes, batch) * (4 if left[0].startswith("c") else 1)


def _convolution(instruction: Instruction, left: tuple, right: tuple, result: tuple) -> int:
    """2 x batch x input features x output features x pairs of an output and a kernel position that meet an input.

    A TPU writes products as convolutions: plain ones without a window, batched ones with the batch as a dimension of
    the window, padded and dilated so that one kernel position meets each output. (XLA's HloCostAnalysis counts so.)
    """
    ins, kernel, outs = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", instruction.attributes).groups()
    size_of = dict(zip(kernel, right, strict=True))
    windows = dict(
        re.findall(r"(\w+)=([\dx_-]+)", (re.search(r"window=\{([^}]*)\}", instruction.attributes) or [""])[0])
    )
    pairs = 1
    for place, label in enumerate(sorted(label for label in kernel if label.isdigit())):
        stride, dilate, spread = (
            int(windows[key].split("x")[place]) if key in windows else 1
            for key in ("stride", "lhs_dilate", "rhs_dilate")
        )
        before = int(windows["pad"].split("x")[place].split("_")[0]) if "pad" in windows else 0
        last = (left[ins.index(label)] - 1) * dilate
        at = np.add.outer(np.arange(result[outs.index(label)]) * stride - before, np.arange(size_of[label]) * spread)
        pairs *= int(((at >= 0) & (at <= last) & (at % dilate == 0)).sum())
    groups = instruction.number("batch_group_count") or 1
    return 2 * left[ins.index("b")] // groups * size_of["i"] * size_of["o"] * pairs
