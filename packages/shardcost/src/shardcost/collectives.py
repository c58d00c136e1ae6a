"""Parse the collectives in a compiled program, count the bytes that they send, and find the Python lines behind them.

In a group of n devices, each with an operand of b bytes, each sender must send at least this many bytes:

- all-gather: (n - 1) b, or (n - 1)/n of the result, because each device forwards n - 1 shards of b bytes;
- reduce-scatter: (n - 1)/n b, because each device forwards n - 1 partial sums of b/n bytes;
- all-reduce: 2 (n - 1)/n b, for a reduce-scatter followed by an all-gather of its result;
- all-to-all: (n - 1)/n b, because each device sends 1/n of its operand to every other device;
- collective-permute: b, because a source sends its operand to one target. A device that isn't a source sends nothing.

Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005), describe the
algorithms that reach these bounds.
"""

from __future__ import annotations

import linecache
import os
import re
from dataclasses import dataclass

from shardcost import hlo
from shardcost.groups import Groups, parse_groups
from shardcost.hlo import ArrayType, Computation, Instruction, Program, UnsupportedHloError

BYTES_SENT = {  # the bytes that one device sends, given its group's size n and its operands' size b in bytes
    "all-reduce": lambda n, b: 2 * (n - 1) * b / n,
    "all-gather": lambda n, b: (n - 1) * b,
    "reduce-scatter": lambda n, b: (n - 1) * b / n,
    "all-to-all": lambda n, b: (n - 1) * b / n,
    "collective-permute": lambda n, b: b if n > 1 else 0.0,
}
KERNEL = "kernel"  # a hand-written kernel (Pallas) that declares how many bytes it sends
# Collectives that only transfer data. Each is attributed to the operation that uses its result.
TRANSFERS = ("all-gather", "all-to-all", "collective-permute")
# Operations that return their operand unchanged. The search for the operation that uses a result skips them.
PASSES_ON = ("tuple", "get-tuple-element", "bitcast", "copy")
# JAX operations that request a transfer explicitly. Their transfers are attributed to the lines that call them.
EXPLICIT = ("all_gather", "all_to_all", "ppermute", "sharding_constraint", "reshard")
SEARCH_LIMIT = 100  # stop searching for the operation that uses a result after this many instructions


@dataclass(frozen=True)
class Source:
    """The JAX operation and the line of Python code that an instruction was compiled from."""

    operation: str  # JAX's name for the operation, such as dot_general
    file: str = ""
    line: int = 0
    backward: bool = False  # whether the operation belongs to the backward pass

    @property
    def code(self) -> str:
        """Return the line's code if its file or cell can be read, otherwise "file:line", or "" if there's no line."""
        return linecache.getline(self.file, self.line).strip() or self.location

    @property
    def location(self) -> str:
        """Return the file and line, such as ``train.py:12``, or "" if there's no line.

        The path is relative if the file is inside the current directory.
        """
        inside = self.file.startswith(os.getcwd() + os.sep)
        return f"{os.path.relpath(self.file) if inside else self.file}:{self.line}" if self.line else ""

    @property
    def label(self) -> str:
        """Return the line's code if it's in a notebook cell, otherwise its location, such as ``train.py:12``."""
        in_cell = "ipykernel_" in self.file or self.file.startswith("<")
        return self.code if in_cell else self.location

    def __str__(self) -> str:
        return self.label if self.label == self.code else f"{self.label}: {self.code}"


@dataclass(frozen=True)
class Collective:
    """A collective, with its operands and results on each device, its groups, and the number of its runs."""

    kind: str
    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    groups: Groups  # positions in the mesh; for a permute, (source, target) pairs
    execution_count: int
    asynchronous: bool = False  # whether separate instructions start and await it, with other work in between
    sources: tuple[Source | None, ...] = ()  # one per operand: the compiler can combine collectives from several lines
    links: int | None = (
        None  # how many one-way rings the TPU compiler uses for the collective, or None if the text doesn't show it
    )
    declared_bytes: int = 0  # the bytes sent per run, as declared by a kernel

    @property
    def source(self) -> Source | None:
        """Return the line of Python code to which the first operand is attributed, or None if it's unknown."""
        return self.sources[0] if self.sources else None

    @property
    def group_size(self) -> int:
        """Return the number of devices in a group. For a permute, return 2, or 1 if devices only send to themselves."""
        if self.kind == "collective-permute":
            return 2 if any(source != target for source, target in self.groups) else 1
        return max(map(len, self.groups), default=1)

    @property
    def bytes_sent(self) -> int:
        """Return the bytes that each sender sends over all runs, using the formulas in the module docstring."""
        if self.kind == KERNEL:
            return self.execution_count * self.declared_bytes
        return round(self.execution_count * BYTES_SENT[self.kind](self.group_size, hlo.nbytes(self.operands)))

    @property
    def input_bytes(self) -> int:
        """Return the bytes that each participating device contributes over all runs: the size of the operands."""
        return round(self.execution_count * hlo.nbytes(self.operands))

    @property
    def output_bytes(self) -> int:
        """Return the bytes that each participating device ends up with, over all runs: the size of the results."""
        return round(self.execution_count * hlo.nbytes(self.results))

    @property
    def participants(self) -> set[int]:
        """Return the devices in all groups. For a permute, these are all sources and targets."""
        return {device for group in self.groups for device in group}

    @property
    def senders(self) -> set[int]:
        """Return the devices that send data: all participants or, for a permute, those that send to another device."""
        if self.kind == "collective-permute":
            return {source for source, target in self.groups if source != target}
        return self.participants


def collective_of(program: Program, computation: Computation, instruction: Instruction) -> Collective | None:
    """Return the collective that an instruction runs, or None if another instruction started that collective.

    The returned collective describes a single run.
    """
    if _is_continuation(program, computation, instruction):
        return None
    kind, results = instruction.kind, instruction.shapes
    operands = tuple(shape for name in instruction.operands for shape in computation[name].shapes)
    start = computation.custom_calls.get("AsyncCollectiveStart")
    callers = _enclosing_calls(program, computation)
    if kind == "all-reduce" and callers and callers[0].opcode == "fusion":
        slices = _kept_slices(computation, instruction, start or computation[computation.root])
        kind, results = ("reduce-scatter", slices) if slices else (kind, results)
    if instruction.opcode.endswith("-start"):
        results = computation.async_results.get(instruction.name, results)
    if kind == "collective-permute":
        groups = _pairs(instruction)
    else:
        groups = parse_groups(instruction.attributes, program.devices)
        if len(set(map(len, groups))) > 1:
            raise UnsupportedHloError(f"{kind} in groups of different sizes: {groups}")
    split = instruction.opcode.endswith("-start") and '"is_sync":true' not in instruction.attributes
    links = [_links(line.attributes) for line in (instruction, *callers[:1])]
    return Collective(
        kind,
        operands,
        results,
        groups,
        execution_count=1,
        asynchronous=bool(start) or split or any(caller.opcode == "async-start" for caller in callers),
        sources=_sources(program, computation, instruction),
        links=next(filter(None, links), None),
    )


def _enclosing_calls(program: Program, computation: Computation) -> list[Instruction]:
    """Return the chain of calls that leads to a computation, innermost first, up to a loop or a conditional."""
    calls = []
    while computation.name in program.callers:
        computation, caller = program.callers[computation.name]
        if caller.opcode in ("while", "conditional"):
            break
        calls.append(caller)
    return calls


def _is_continuation(program: Program, computation: Computation, instruction: Instruction) -> bool:
    """Return whether another instruction starts this collective, in which case only that instruction counts.

    In a TPU program, an asynchronous collective appears in the fusion that starts it, in those that overlap it with
    other work, and in the one that waits for it. All of them have the same chain number. (The channel doesn't identify
    a collective, because all collectives in a shard_map can share one channel.)
    """
    if "AsyncCollectiveStart" in computation.custom_calls:
        return False
    if "AsyncCollectiveDone" in computation.custom_calls or computation.name.startswith("async_collective_fusion"):
        if instruction.quoted("chain_id") in program.async_chains:
            return True
        raise UnsupportedHloError(f"{instruction.kind} that continues one whose start is not in the program text")
    return False


def _kept_slices(computation: Computation, reduce: Instruction, output: Instruction) -> tuple[ArrayType, ...]:
    """Return the types of the all-reduce slices that a fusion keeps, or () if the fusion keeps the full result.

    The TPU compiler expresses a reduce-scatter as an all-reduce of which each device keeps only a slice.

    Args:
        output: the fusion's result, which is a slice or a tuple of slices.
    """
    users, frontier = {reduce.name}, [reduce.name]
    while frontier:
        frontier = [user for name in frontier for user in computation.users.get(name, ()) if user not in users]
        users.update(frontier)
    if not any(computation[name].opcode == "dynamic-slice" for name in users):
        return ()
    outputs = [output] if output.opcode == "dynamic-slice" else [computation[name] for name in output.operands]
    for slice_ in outputs:
        sliced = computation.operand(slice_, 0) if slice_.opcode == "dynamic-slice" else slice_
        if sliced.opcode == "get-tuple-element":
            sliced = computation.operand(sliced, 0)
        if slice_.opcode != "dynamic-slice" or sliced.name != reduce.name:
            raise UnsupportedHloError(f"an all-reduce fused with {slice_.opcode}")
    return tuple(shape for slice_ in outputs for shape in slice_.shapes)


def _pairs(permute: Instruction) -> Groups:
    match = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", permute.attributes)
    if not match:
        raise UnsupportedHloError(f"a collective-permute without pairs: {permute.attributes[:120]!r}")
    return tuple((int(a), int(b)) for a, b in re.findall(r"(\d+),(\d+)", match[1]))


def source_of(program: Program, computation: Computation, instruction: Instruction) -> Source | None:
    """Return the line of Python code that an instruction was compiled from, or None if it's unknown.

    If the instruction has no op_name, use the innermost enclosing call that has one. For a collective that only
    transfers data, return the line that uses the data.
    """
    is_transfer = instruction.kind in TRANSFERS
    computation, instruction = _named_instruction(program, computation, instruction, through_loops=False)
    if is_transfer and instruction.quoted("op_name").rpartition("/")[2] not in EXPLICIT:
        computation, instruction = _consumer(program, computation, instruction) or (computation, instruction)
    _, instruction = _named_instruction(program, computation, instruction, through_loops=True)
    name = instruction.quoted("op_name")
    if not name:
        return None
    file, line = _location(program, instruction)
    operation = name.rpartition("/")[2].removesuffix("_invariant")
    return Source(operation, file, line, backward="transpose(" in name)


def _sources(program: Program, computation: Computation, instruction: Instruction) -> tuple[Source | None, ...]:
    """Return the line of Python code to which each operand of a collective is attributed.

    If the compiler has combined several collectives, each operand has its own line: the one that uses the
    corresponding element of the result if the collective only transfers data, and otherwise the one that computes the
    operand.
    """
    instruction_source = source_of(program, computation, instruction)
    if len(instruction.operands) < 2:
        return (instruction_source,)
    sources: list[Source | None] = []
    for i in range(len(instruction.operands)):
        if instruction.kind in TRANSFERS:
            element = _element(computation, instruction, i)
            consumer = _consumer(program, computation, element) if element else None
            sources.append(source_of(program, *consumer) if consumer else None)
        else:
            sources.append(source_of(program, computation, computation.operand(instruction, i)))
    return tuple(source if source and source.line else instruction_source for source in sources)


def _element(computation: Computation, instruction: Instruction, index: int) -> Instruction | None:
    """Return the instruction that extracts one element of a collective's result, or None if there isn't one."""
    users = computation.users.get(instruction.name, [])
    result = next((name for name in users if computation[name].opcode.endswith("-done")), instruction.name)
    if f"{result}#{index}" in computation.users:
        return computation[f"{result}#{index}"]
    elements = (computation[name] for name in computation.users.get(result, ()))
    return next((e for e in elements if e.opcode == "get-tuple-element" and e.number("index") == index), None)


def _named_instruction(
    program: Program, computation: Computation, instruction: Instruction, through_loops: bool
) -> tuple[Computation, Instruction]:
    """Find the given instruction or, if it has no op_name, the innermost enclosing call that has one.

    Return the instruction's computation and the instruction. Unless `through_loops` is set, don't search beyond a loop
    or conditional.
    """
    while not instruction.quoted("op_name") and computation.name in program.callers:
        outside, caller = program.callers[computation.name]
        if caller.opcode in ("while", "conditional") and not through_loops:
            break
        computation, instruction = outside, caller
    return computation, instruction


def _consumer(
    program: Program, computation: Computation, transfer: Instruction
) -> tuple[Computation, Instruction] | None:
    """Return the first instruction that uses a transferred array, with its computation, or None if none is found.

    JAX 0.12 names a transfer after the operation that computed the array; older versions name it after the operation
    that uses the array. So follow the array through copies, tuples, loops and fusions to the first instruction that
    computes something and has a source line.
    """
    line = _location(program, transfer)
    queue, entered_fusions = [(computation, transfer)], set()
    for _ in range(SEARCH_LIMIT):
        if not queue:
            break
        current, transferred = queue.pop(0)
        located = []
        for user in (current[name] for name in current.users.get(transferred.name, ())):
            if user.opcode == "fusion":
                entered_fusions.add(user.called("calls"))
                queue += _parameters(program[user.called("calls")], _position(user, transferred.name))
            elif user.opcode == "tuple" and (body := _loop_body(program, current, user, transferred.name)):
                queue.append(body)
            elif _location(program, user)[1] and not _is_pass_through(user):
                located.append(user)
            else:
                queue.append((current, user))
        if located:
            return current, next((user for user in located if _location(program, user) == line), located[0])
        if transferred.name == current.root and current.name in program.callers:
            outside, caller = program.callers[current.name]
            copies = set(current.by_opcode) <= {*PASSES_ON, "parameter"}
            if current.name in entered_fusions and _location(program, caller)[1] and not copies:
                return outside, caller
            if caller.opcode == "fusion":
                queue.append((outside, caller))
    return None


def _position(user: Instruction, name: str) -> int:
    """Return the position of the operand that has this name or is an element of the tuple with this name."""
    return next(i for i, operand in enumerate(user.operands) if operand == name or operand.startswith(f"{name}#"))


def _parameters(computation: Computation, number: int) -> list[tuple[Computation, Instruction]]:
    """Return [(computation, its parameter with this number)], or an empty list if there's no such parameter."""
    names = [
        name for name in computation.by_opcode.get("parameter", ()) if f"parameter({number})" in computation.lines[name]
    ]
    return [(computation, computation[name]) for name in names]


def _is_pass_through(instruction: Instruction) -> bool:
    """Return whether an instruction only copies or transfers its operand, and so can't be the reason for a transfer."""
    return instruction.kind in (*TRANSFERS, *PASSES_ON) or instruction.opcode.endswith("-done")


def _loop_body(
    program: Program, computation: Computation, carried: Instruction, name: str
) -> tuple[Computation, Instruction] | None:
    """Return the body of the loop that a tuple is passed to, and the body's instruction for the tuple's element `name`.

    Return None if no loop uses the tuple or the body doesn't use that element.
    """
    users = [computation[user] for user in computation.users.get(carried.name, ())]
    if not users or users[0].opcode != "while":
        return None
    body, index = program[users[0].called("body")], _position(carried, name)
    elements = [
        element
        for element in body.with_opcode("get-tuple-element")
        if element.number("index") == index and body.operand(element, 0).opcode == "parameter"
    ]
    if elements:
        return body, elements[0]
    parameters = body.with_opcode("parameter")
    return (body, body[f"{parameters[0].name}#{index}"]) if parameters else None


def _location(program: Program, instruction: Instruction) -> tuple[str, int]:
    """Return an instruction's file and line, from its own metadata or from the program's stack frame table."""
    file = instruction.quoted("source_file")
    if file:
        return file, instruction.number("source_line") or 0
    return program.stack_frames.get(instruction.number("stack_frame_id") or 0, ("", 0))


def _links(attributes: str) -> int | None:
    """Return the number of one-way rings that the TPU compiler uses for a collective, or None if it's unknown."""
    strategies = set(re.findall(r"\bn?(UniDirection\w*)\{colors:(\d+) ", attributes))
    return int(strategies.pop()[1]) if len(strategies) == 1 else None
