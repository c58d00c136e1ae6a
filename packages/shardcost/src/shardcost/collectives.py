"""Read a collective from its line in a compiled program: what it sends, and which line of Python asked for it.

In a group of n devices, each with an operand of b bytes, every device sends at least this many bytes. The algorithms
that reach these bounds are in Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in
MPICH" (2005).

- all-gather: each device passes on n - 1 shards of b bytes, so (n - 1) b, or (n - 1)/n of the result;
- reduce-scatter: the same ring with sums of b/n bytes: (n - 1)/n b;
- all-reduce: a reduce-scatter, then an all-gather of its result: 2 (n - 1)/n b;
- all-to-all: 1/n of the operand to each of the other devices: (n - 1)/n b;
- collective-permute: the operand, to one other device: b, or 0 from a device that's not the source of any pair.
"""

from __future__ import annotations

import linecache
import os
import re
from dataclasses import dataclass

from shardcost import hlo
from shardcost.groups import Groups, parse_groups
from shardcost.hlo import Computation, Instruction, Program, Shape, UnknownConstruct

BYTES_SENT = {  # by one device, from the size n of its group and the bytes b of its operands
    "all-reduce": lambda n, b: 2 * (n - 1) * b / n,
    "all-gather": lambda n, b: (n - 1) * b,
    "reduce-scatter": lambda n, b: (n - 1) * b / n,
    "all-to-all": lambda n, b: (n - 1) * b / n,
    "collective-permute": lambda n, b: b if n > 1 else 0.0,
}
KERNEL = "kernel"  # hand-written code (Pallas) that declares how many bytes it sends
# These compute nothing, so the operation that takes their result asked for them ...
MOVES = ("all-gather", "all-to-all", "collective-permute")
# ... unless it only passes the result on ...
PASSES_ON = ("tuple", "get-tuple-element", "bitcast", "copy")
# ... or the Python program asks for the move itself.
EXPLICIT = ("all_gather", "all_to_all", "ppermute", "sharding_constraint", "reshard")
SEARCHED = 100  # the search for the operation that takes a result ends after this many instructions


@dataclass(frozen=True)
class Source:
    """The operation and the line of a Python program that an instruction comes from."""

    operation: str  # JAX's name, as dot_general
    file: str = ""
    line: int = 0
    backward: bool = False  # in the backward pass of a gradient

    @property
    def code(self) -> str:
        """The line of code, if its file or notebook cell can be read here; otherwise "file:line", or ""."""
        return linecache.getline(self.file, self.line).strip() or self.location

    @property
    def location(self) -> str:
        """The file, relative to the current directory if it's inside, and the line: ``train.py:12``; or ""."""
        inside = self.file.startswith(os.getcwd() + os.sep)
        return f"{os.path.relpath(self.file) if inside else self.file}:{self.line}" if self.line else ""

    @property
    def label(self) -> str:
        """A short name for the line: ``train.py:12``, or the code itself if it's in a notebook cell."""
        in_cell = "ipykernel_" in self.file or self.file.startswith("<")
        return self.code if in_cell else self.location

    def __str__(self) -> str:
        return self.label if self.label == self.code else f"{self.label}: {self.code}"


@dataclass(frozen=True)
class Collective:
    """A collective: what each device contributes and receives, in which groups, and how often it runs."""

    kind: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    groups: Groups  # positions in the mesh; for a permute, pairs of a source and a target
    times: int
    asynchronous: bool = False  # starts at one point and is waited for at another, with work in between
    sources: tuple[Source | None, ...] = ()  # one for each operand: the compiler combines collectives of several lines
    links: int | None = None  # one-way links that a TPU's compiler spreads it over, if the program text gives them
    declared_bytes: int = 0  # bytes that a kernel declares to send each time

    @property
    def source(self) -> Source | None:
        """The line of Python behind the first operand."""
        return self.sources[0] if self.sources else None

    @property
    def group_size(self) -> int:
        """The number of devices that communicate; for a permute 2, or 1 if no device sends to another."""
        if self.kind == "collective-permute":
            return 2 if any(source != target for source, target in self.groups) else 1
        return max(map(len, self.groups), default=1)

    @property
    def bytes_sent(self) -> int:
        """The bytes that each sender sends to other devices, in all runs together (see this module's list)."""
        if self.kind == KERNEL:
            return self.times * self.declared_bytes
        return round(self.times * BYTES_SENT[self.kind](self.group_size, hlo.nbytes(self.operands)))

    @property
    def input_bytes(self) -> int:
        """The bytes that each participating device contributes, in all runs together: the size of the operands."""
        return round(self.times * hlo.nbytes(self.operands))

    @property
    def output_bytes(self) -> int:
        """The bytes that each participating device ends up with, in all runs together: the size of the results."""
        return round(self.times * hlo.nbytes(self.results))

    @property
    def participants(self) -> set[int]:
        """The devices in a group; for a permute, all sources and targets."""
        return {device for group in self.groups for device in group}

    @property
    def senders(self) -> set[int]:
        """The devices that send: those in a group; for a permute, those that send to another device."""
        if self.kind == "collective-permute":
            return {source for source, target in self.groups if source != target}
        return self.participants


def collective_of(program: Program, computation: Computation, instruction: Instruction) -> Collective | None:
    """Return one run of a collective, or None if this line only continues one that another line starts."""
    if _continues(program, computation, instruction):
        return None
    kind, results = instruction.kind, instruction.shapes
    operands = tuple(shape for name in instruction.operands for shape in computation[name].shapes)
    start = computation.custom_calls.get("AsyncCollectiveStart")
    callers = _enclosing_calls(program, computation)
    if kind == "all-reduce" and callers and callers[0].opcode == "fusion":
        slices = _scattered(computation, instruction, start or computation[computation.root])
        kind, results = ("reduce-scatter", slices) if slices else (kind, results)
    if instruction.opcode.endswith("-start"):
        results = computation.async_results.get(instruction.name, results)
    if kind == "collective-permute":
        groups = _pairs(instruction)
    else:
        groups = parse_groups(instruction.attributes, program.devices)
        if len(set(map(len, groups))) > 1:
            raise UnknownConstruct(f"{kind} in groups of different sizes: {groups}")
    split = instruction.opcode.endswith("-start") and '"is_sync":true' not in instruction.attributes
    links = [_links(line.attributes) for line in (instruction, *callers[:1])]
    return Collective(
        kind,
        operands,
        results,
        groups,
        times=1,
        asynchronous=bool(start) or split or any(caller.opcode == "async-start" for caller in callers),
        sources=_sources(program, computation, instruction),
        links=next(filter(None, links), None),
    )


def _enclosing_calls(program: Program, computation: Computation) -> list[Instruction]:
    """Return the calls around a computation, innermost first, up to a loop or a conditional."""
    calls = []
    while computation.name in program.callers:
        computation, caller = program.callers[computation.name]
        if caller.opcode in ("while", "conditional"):
            break
        calls.append(caller)
    return calls


def _continues(program: Program, computation: Computation, instruction: Instruction) -> bool:
    """Return whether another line starts this collective, so that this one must not be counted.

    A TPU program writes an asynchronous collective in the fusion that starts it, again in those that overlap it with
    work, and once more where it's waited for. All have the same chain number. (The channel doesn't identify the
    collective, because all those of a shard_map can share one.)
    """
    if "AsyncCollectiveStart" in computation.custom_calls:
        return False
    if "AsyncCollectiveDone" in computation.custom_calls or computation.name.startswith("async_collective_fusion"):
        if instruction.quoted("chain_id") in program.async_chains:
            return True
        raise UnknownConstruct(f"{instruction.kind} that continues one whose start isn't in the program text")
    return False


def _scattered(computation: Computation, reduce: Instruction, output: Instruction) -> tuple[Shape, ...]:
    """Return the slices that a fusion keeps of its all-reduce, or () if it keeps everything.

    An all-reduce of which each device keeps only a slice is a reduce-scatter: the TPU compiler writes it so.

    Args:
        output: the fusion's result: a slice, or a tuple of slices.
    """
    reached, new = {reduce.name}, [reduce.name]
    while new:
        new = [user for name in new for user in computation.users.get(name, ()) if user not in reached]
        reached.update(new)
    if not any(computation[name].opcode == "dynamic-slice" for name in reached):
        return ()
    outputs = [output] if output.opcode == "dynamic-slice" else [computation[name] for name in output.operands]
    for piece in outputs:
        sliced = computation.operand(piece, 0) if piece.opcode == "dynamic-slice" else piece
        if sliced.opcode == "get-tuple-element":
            sliced = computation.operand(sliced, 0)
        if piece.opcode != "dynamic-slice" or sliced.name != reduce.name:
            raise UnknownConstruct(f"an all-reduce fused with {piece.opcode}")
    return tuple(shape for piece in outputs for shape in piece.shapes)


def _pairs(permute: Instruction) -> Groups:
    match = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", permute.attributes)
    if not match:
        raise UnknownConstruct(f"a collective-permute without pairs: {permute.attributes[:120]!r}")
    return tuple((int(a), int(b)) for a, b in re.findall(r"(\d+),(\d+)", match[1]))


def source_of(program: Program, computation: Computation, instruction: Instruction) -> Source | None:
    """Return the line of Python that an instruction, or the call around it, comes from; None if it isn't recorded.

    The line for a collective that only moves data is the one that uses the data.
    """
    is_move = instruction.kind in MOVES
    computation, instruction = _named(program, computation, instruction, through_loops=False)
    if is_move and instruction.quoted("op_name").rpartition("/")[2] not in EXPLICIT:
        computation, instruction = _consumer(program, computation, instruction) or (computation, instruction)
    _, instruction = _named(program, computation, instruction, through_loops=True)
    name = instruction.quoted("op_name")
    if not name:
        return None
    file, line = _location(program, instruction)
    operation = name.rpartition("/")[2].removesuffix("_invariant")
    return Source(operation, file, line, backward="transpose(" in name)


def _sources(program: Program, computation: Computation, instruction: Instruction) -> tuple[Source | None, ...]:
    """Return the line of Python that each operand of a collective comes from.

    If the compiler has combined several collectives, each operand has its own line: for a collective that only moves
    data, the one that uses the element of the result, and for another one the one that computes the operand.
    """
    whole = source_of(program, computation, instruction)
    if len(instruction.operands) < 2:
        return (whole,)
    sources: list[Source | None] = []
    for i in range(len(instruction.operands)):
        if instruction.kind in MOVES:
            element = _element(computation, instruction, i)
            found = _consumer(program, computation, element) if element else None
            sources.append(source_of(program, *found) if found else None)
        else:
            sources.append(source_of(program, computation, computation.operand(instruction, i)))
    return tuple(source if source and source.line else whole for source in sources)


def _element(computation: Computation, instruction: Instruction, index: int) -> Instruction | None:
    """Return the instruction for one element of a collective's result, if there is one."""
    users = computation.users.get(instruction.name, [])
    result = next((name for name in users if computation[name].opcode.endswith("-done")), instruction.name)
    if f"{result}#{index}" in computation.users:
        return computation[f"{result}#{index}"]
    elements = (computation[name] for name in computation.users.get(result, ()))
    return next((e for e in elements if e.opcode == "get-tuple-element" and e.number("index") == index), None)


def _named(
    program: Program, computation: Computation, instruction: Instruction, through_loops: bool
) -> tuple[Computation, Instruction]:
    """Return the innermost instruction with a name among this one and the calls around it, with its computation."""
    while not instruction.quoted("op_name") and computation.name in program.callers:
        outside, caller = program.callers[computation.name]
        if caller.opcode in ("while", "conditional") and not through_loops:
            break
        computation, instruction = outside, caller
    return computation, instruction


def _consumer(program: Program, computation: Computation, move: Instruction) -> tuple[Computation, Instruction] | None:
    """Return the instruction that an array is moved for, and its computation.

    JAX 0.12 names a move after the operation that computed the array, older versions after the one that uses it. So
    follow the array through copies, tuples, loops and fusions to the first instruction with a line that computes.
    """
    line = _location(program, move)
    queue, entered = [(computation, move)], set()  # and the fusions that the array goes into
    for _ in range(SEARCHED):
        if not queue:
            break
        place, moved = queue.pop(0)
        located = []
        for user in (place[name] for name in place.users.get(moved.name, ())):
            if user.opcode == "fusion":
                entered.add(user.called("calls"))
                queue += _parameters(program[user.called("calls")], _position(user, moved.name))
            elif user.opcode == "tuple" and (body := _loop_body(program, place, user, moved.name)):
                queue.append(body)
            elif _location(program, user)[1] and not _only_passes_on(user):
                located.append(user)
            else:
                queue.append((place, user))
        if located:
            return place, next((user for user in located if _location(program, user) == line), located[0])
        if moved.name == place.root and place.name in program.callers:
            outside, caller = program.callers[place.name]
            copies = set(place.by_opcode) <= {*PASSES_ON, "parameter"}
            if place.name in entered and _location(program, caller)[1] and not copies:
                return outside, caller
            if caller.opcode == "fusion":
                queue.append((outside, caller))
    return None


def _position(user: Instruction, name: str) -> int:
    """Return the position of the operand with this name, or of an element of it."""
    return next(i for i, operand in enumerate(user.operands) if operand == name or operand.startswith(f"{name}#"))


def _parameters(computation: Computation, number: int) -> list[tuple[Computation, Instruction]]:
    """Return the instruction for a parameter of a computation, with the computation, as a list of at most one."""
    names = [
        name for name in computation.by_opcode.get("parameter", ()) if f"parameter({number})" in computation.lines[name]
    ]
    return [(computation, computation[name]) for name in names]


def _only_passes_on(instruction: Instruction) -> bool:
    """Return whether an instruction only returns its operand, so that it isn't what an array is moved for."""
    return instruction.kind in (*MOVES, *PASSES_ON) or instruction.opcode.endswith("-done")


def _loop_body(
    program: Program, computation: Computation, carried: Instruction, name: str
) -> tuple[Computation, Instruction] | None:
    """Return the body of the loop that takes this tuple, and the body's instruction for the tuple's element `name`."""
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
    """Return the file and line of an instruction, from the instruction itself or from the program's table."""
    file = instruction.quoted("source_file")
    if file:
        return file, instruction.number("source_line") or 0
    return program.stack_frames.get(instruction.number("stack_frame_id") or 0, ("", 0))


def _links(attributes: str) -> int | None:
    """Return the number of one-way rings in a TPU's strategy for a collective."""
    strategies = set(re.findall(r"\bn?(UniDirection\w*)\{colors:(\d+) ", attributes))
    return int(strategies.pop()[1]) if len(strategies) == 1 else None
