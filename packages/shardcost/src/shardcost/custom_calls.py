"""Calculate the cost of custom calls from their attributes, because the program text doesn't contain their code."""

from __future__ import annotations

import re

from shardcost.collectives import KERNEL, Collective, source_of
from shardcost.hlo import Computation, Instruction, Program, UnsupportedHloError
from shardcost.matmul_flops import gemm_flops

# Calls that don't communicate and whose FLOPs aren't counted: linear algebra, sorting and bookkeeping.
UNCOUNTED = re.compile(
    r"lapack_\w+|blas_\w+|cublas_\w+_ffi|(__)?cusolver\$?\w*|cu_threefry\w*|__cub\$\w+|(__gpu\$)?TopK\w*|PartialReduce"
    r"|ApproxTopK|AllocateBuffer|AssumeGatherIndicesInBound|GatherScatterIndicesBitpacked|X64\w+|SliceId|BarrierStart"
    r"|AsyncCollective(Start|Done)|ConcatBitcast|Cholesky|(Qr|Lu)\w*Decomposition\w*|Eigh\w*|Householder\w*"
    r"|CompactWyHelper|InvertDiagBlocks\w+|Resize\w+|PadToStatic|SliceToDynamic|Sharding|SPMD\w+|MoveTo\w+"
    r"|annotate_device_placement"
)
GEMM = re.compile(r"__cublas\$\w+(\$\w+)*")  # matrix products computed by cuBLAS
CALLBACK = re.compile(r"xla(_ffi)?(_partitioned)?_python_(cpu|gpu)_callback")
DEBUG = ("debug_callback", "debug_print")  # jax.debug only sends values to the host, which isn't counted
PALLAS = "tpu_custom_call"


def cost_of_custom_call(program: Program, computation: Computation, call: Instruction) -> tuple[Collective | None, int]:
    """Return the collective that a custom call runs, or None, and the FLOPs of one run.

    Raises UnsupportedHloError if the program text doesn't show the call's cost.
    """
    target = call.quoted("custom_call_target")
    if UNCOUNTED.fullmatch(target):
        return None, 0
    if GEMM.fullmatch(target):
        return None, gemm_flops(computation, call)
    source = source_of(program, computation, call)
    name = source.operation if source else target
    if target == PALLAS:
        return _kernel(program, computation, call, name)
    if CALLBACK.fullmatch(target):
        if name in DEBUG:
            return None, 0
        raise UnsupportedHloError(
            f"{name}, which runs Python code on the host: the program does not show what that code sends or multiplies"
        )
    raise UnsupportedHloError(
        f"the custom call {target} ({name}): the program text does not show what it sends or multiplies"
    )


def _kernel(program: Program, computation: Computation, call: Instruction, name: str) -> tuple[Collective | None, int]:
    """Return the declared cost of a Pallas kernel: a collective, or None if it sends nothing, and the FLOPs."""
    estimate = re.search(r'"cost_estimate":\{"flops":"(\d+)"[^}]*"remote_bytes_transferred":"(-?\d+)"', call.attributes)
    flops, sent = (int(estimate[1]), int(estimate[2])) if estimate else (None, 0)
    communicates = '"has_communication":true' in call.attributes
    if flops is None or (communicates and sent <= 0):
        missing = ["flops="] * (flops is None) + ["remote_bytes_transferred="] * communicates
        raise UnsupportedHloError(
            f"a kernel ({name}) without a cost estimate: pass "
            f"cost_estimate=pl.CostEstimate({', '.join(missing)}) to pallas_call"
        )
    if sent <= 0:
        return None, flops
    operands = tuple(shape for operand in call.operands for shape in computation[operand].shapes)
    all_devices = (tuple(range(program.devices)),)
    source = source_of(program, computation, call)
    return Collective(
        KERNEL, operands, call.shapes, all_devices, execution_count=1, sources=(source,), declared_bytes=sent
    ), flops


def is_debug_transfer(program: Program, computation: Computation, transfer: Instruction) -> bool:
    """Return whether an instruction transfers data to the host for jax.debug.

    On a TPU, transfers between the slices of a large system look similar, but their attributes mention megascale.
    """
    source = source_of(program, computation, transfer)
    to_host = "is_host_transfer=true" in transfer.attributes and "megascale" not in transfer.attributes
    return to_host and source is not None and source.operation in DEBUG
