"""Calls into code that a compiled program's text does not show: what it tells of them, and which are harmless."""

from __future__ import annotations

import re

from utils.count.collectives import KERNEL, Collective, source
from utils.count.hlo import Computation, Instruction, Program, UnknownConstruct
from utils.count.products import gemm

# Custom calls that neither communicate nor compute products of matrices: linear algebra, sorting, bookkeeping.
HARMLESS = re.compile(
    r"lapack_\w+|blas_\w+|cublas_\w+_ffi|(__)?cusolver\$?\w*|cu_threefry\w*|__cub\$\w+|(__gpu\$)?TopK\w*|PartialReduce"
    r"|ApproxTopK|AllocateBuffer|AssumeGatherIndicesInBound|GatherScatterIndicesBitpacked|X64\w+|SliceId|BarrierStart"
    r"|AsyncCollective(Start|Done)|ConcatBitcast|Cholesky|(Qr|Lu)\w*Decomposition\w*|Eigh\w*|Householder\w*"
    r"|CompactWyHelper|InvertDiagBlocks\w+|Resize\w+|PadToStatic|SliceToDynamic|Sharding|SPMD\w+|MoveTo\w+"
    r"|annotate_device_placement"
)
GEMM = re.compile(r"__cublas\$\w+(\$\w+)*")  # products by a GPU's library
CALLBACK = re.compile(r"xla(_ffi)?(_partitioned)?_python_(cpu|gpu)_callback")
DEBUG = ("debug_callback", "debug_print")  # jax.debug: what it shows goes to the host, and nothing comes back
PALLAS = "tpu_custom_call"


def custom_call(program: Program, computation: Computation, call: Instruction) -> tuple[Collective | None, int]:
    """What one run of a custom call sends, and its FLOPs. Raises UnknownConstruct where its text does not tell."""
    target = call.quoted("custom_call_target")
    if HARMLESS.fullmatch(target):
        return None, 0
    if GEMM.fullmatch(target):
        return None, gemm(computation, call)
    asked = source(program, computation, call)
    name = asked.operation if asked else target
    if target == PALLAS:
        return _kernel(program, computation, call, name)
    if CALLBACK.fullmatch(target):
        if name in DEBUG:
            return None, 0
        raise UnknownConstruct(f"{name}, which runs Python on the host: no program tells what that sends or multiplies")
    raise UnknownConstruct(f"the custom call {target} ({name}): its text does not tell what it sends or multiplies")


def _kernel(program: Program, computation: Computation, call: Instruction, name: str) -> tuple[Collective | None, int]:
    """A kernel written by hand (Pallas), which sends and computes what its author says of it."""
    told = re.search(r'"cost_estimate":\{"flops":"(\d+)"[^}]*"remote_bytes_transferred":"(-?\d+)"', call.attributes)
    flops, sent = (int(told[1]), int(told[2])) if told else (None, 0)
    sends = '"has_communication":true' in call.attributes
    if flops is None or (sends and sent <= 0):
        lacks = "flops=" * (flops is None) + ", " * (flops is None and sends) + "remote_bytes_transferred=" * sends
        raise UnknownConstruct(
            f"a kernel ({name}) that does not tell its cost: give pallas_call cost_estimate=pl.CostEstimate({lacks})"
        )
    if sent <= 0:
        return None, flops
    operands = tuple(shape for operand in call.operands for shape in computation[operand].shapes)
    everybody = (tuple(range(program.devices)),)
    asked = source(program, computation, call)
    return Collective(KERNEL, operands, call.shapes, everybody, times=1, source=asked, told=sent), flops


def shows_only(program: Program, computation: Computation, transfer: Instruction) -> bool:
    """Is this a transfer to the host for jax.debug? A TPU's looks like one between the slices of a large system."""
    asked = source(program, computation, transfer)
    to_host = "is_host_transfer=true" in transfer.attributes and "megascale" not in transfer.attributes
    return to_host and asked is not None and asked.operation in DEBUG
