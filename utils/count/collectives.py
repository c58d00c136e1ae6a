"""What one collective sends, and who asked for it, from its line in the text of a compiled program.

Bytes that each device sends, in a group of n devices with an operand of b bytes on each, by the bandwidth-optimal
algorithms (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH, 2005):

- all-gather: every device passes on n - 1 pieces of size b, so (n - 1) b, or (n - 1)/n of the result;
- reduce-scatter: the same ring with sums of size b/n: (n - 1)/n b;
- all-reduce: a reduce-scatter, then an all-gather of its result: 2 (n - 1)/n b;
- all-to-all: an n-th of the operand to each of the others: (n - 1)/n b;
- collective-permute: the operand, to one other device: b, or nothing for a device that no pair names as a source.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

from utils.count import hlo
from utils.count.groups import Groups, groups
from utils.count.hlo import Computation, Instruction, Program, Shape, UnknownConstruct

SENT = {  # bytes that one device sends, from the size of its group and the bytes of its operands
    "all-reduce": lambda n, b: 2 * (n - 1) * b / n,
    "all-gather": lambda n, b: (n - 1) * b,
    "reduce-scatter": lambda n, b: (n - 1) * b / n,
    "all-to-all": lambda n, b: (n - 1) * b / n,
    "collective-permute": lambda n, b: b if n > 1 else 0.0,
}
MOVES = ("all-gather", "all-to-all", "collective-permute")  # these compute nothing: they are for what comes next ...
SPELLED_OUT = (  # ... unless the program itself asks for them
    "all_gather",
    "all_to_all",
    "ppermute",
    "sharding_constraint",
    "reshard",
)
KERNEL = "kernel"  # code that sends by itself (Pallas), as many bytes as it says of itself


@dataclass(frozen=True)
class Source:
    """A place in the reader's program."""

    operation: str  # of JAX, as dot_general
    file: str = ""
    line: int = 0
    backward: bool = False  # in the backward pass of a gradient

    @property
    def code(self) -> str:
        """The line itself, of a file or of a notebook's cell; else file and number; nothing where the text has none."""
        return linecache.getline(self.file, self.line).strip() or (f"{self.file}:{self.line}" if self.line else "")


@dataclass(frozen=True)
class Collective:
    """One collective of the program: what each device of a group puts in and gets out, and how often."""

    kind: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    groups: Groups  # places in the mesh; for a permute, (source, target) pairs
    times: int
    asynchronous: bool = False  # begun in one place and waited for in another, with work in between
    source: Source | None = None  # who asked for it
    links: int | None = None  # over which a TPU's compiler spreads it, one direction each, where its text tells
    told: int = 0  # bytes that a kernel says it sends each time

    @property
    def group_size(self) -> int:
        """Devices that take part together; for a permute 2, or 1 if every device sends to itself."""
        if self.kind == "collective-permute":
            return 2 if any(source != target for source, target in self.groups) else 1
        return max(map(len, self.groups), default=1)

    @property
    def bytes_sent(self) -> int:
        """Bytes that a device that takes part sends, over all its runs (see the module's table)."""
        if self.kind == KERNEL:
            return self.times * self.told
        return round(self.times * SENT[self.kind](self.group_size, hlo.nbytes(self.operands)))

    @property
    def senders(self) -> set[int]:
        """The devices that send: those in a group; of a permute, those that send to another."""
        if self.kind == "collective-permute":
            return {source for source, target in self.groups if source != target}
        return {device for group in self.groups for device in group}


def collective(program: Program, computation: Computation, instruction: Instruction) -> Collective | None:
    """One run of a collective; None where the line only goes on with one that another line began."""
    if _goes_on(program, computation, instruction):
        return None
    kind, results = instruction.kind, instruction.shapes
    operands = tuple(shape for name in instruction.operands for shape in computation[name].shapes)
    _, caller = program.callers.get(computation.name, (None, None))
    begin = computation.targets.get("AsyncCollectiveStart")
    if kind == "all-reduce" and caller and caller.opcode == "fusion":
        slices = _slices(computation, instruction, begin or computation[computation.root])
        kind, results = ("reduce-scatter", slices) if slices else (kind, results)
    if instruction.opcode.endswith("-start"):
        results = computation.finished.get(instruction.name, results)
    if kind == "collective-permute":
        members = _pairs(instruction)
    else:
        members = groups(instruction.attributes, program.devices)
        if len(set(map(len, members))) > 1:
            raise UnknownConstruct(f"{kind} in groups of different sizes: {members}")
    wrapped = caller is not None and caller.opcode == "async-start"
    return Collective(
        kind,
        operands,
        results,
        members,
        times=1,
        asynchronous=bool(begin) or wrapped or instruction.opcode.endswith("-start"),
        source=source(program, computation, instruction),
        links=_links(instruction.attributes) or (_links(caller.attributes) if caller else None),
    )


def _goes_on(program: Program, computation: Computation, instruction: Instruction) -> bool:
    """Was this collective begun by another line, which is the one to count?

    A TPU writes an asynchronous collective in the fusion that begins it, again in those that overlap it with work, and
    where it is waited for: a chain, with a number. (Its channel does not tell: a shard_map's collectives share one.)
    """
    if "AsyncCollectiveStart" in computation.targets:
        return False
    if "AsyncCollectiveDone" in computation.targets or computation.name.startswith("async_collective_fusion"):
        if instruction.quoted("chain_id") in program.chains:
            return True
        raise UnknownConstruct(f"{instruction.kind} that goes on with one whose beginning the text does not show")
    return False


def _slices(computation: Computation, reduce: Instruction, end: Instruction) -> tuple[Shape, ...]:
    """What a TPU cuts out of an all-reduce in one fusion with it, which is a reduce-scatter; nothing if it keeps all.

    `end` is what the fusion gives: a piece, or a tuple of pieces.
    """
    ends = [end] if end.opcode == "dynamic-slice" else [computation[name] for name in end.operands]
    if [piece.name for piece in ends] == [reduce.name] or end.name == reduce.name:
        return ()
    for piece in ends:
        whole = computation.operand(piece, 0) if piece.opcode == "dynamic-slice" else piece
        if whole.opcode == "get-tuple-element":
            whole = computation.operand(whole, 0)
        if piece.opcode != "dynamic-slice" or whole.name != reduce.name:
            raise UnknownConstruct(f"an all-reduce fused with {piece.opcode}")
    return tuple(shape for piece in ends for shape in piece.shapes)


def _pairs(permute: Instruction) -> Groups:
    found = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", permute.attributes)
    if not found:
        raise UnknownConstruct(f"a collective-permute without pairs: {permute.attributes[:120]!r}")
    return tuple((int(a), int(b)) for a, b in re.findall(r"(\d+),(\d+)", found[1]))


def source(program: Program, computation: Computation, instruction: Instruction) -> Source | None:
    """Where in the reader's program an instruction comes from, or the fusion that it is part of."""
    while not (name := instruction.quoted("op_name")):
        if computation.name not in program.callers:
            return None
        computation, instruction = program.callers[computation.name]
    operation = name.rpartition("/")[2]
    if instruction.kind in MOVES and operation not in SPELLED_OUT:
        instruction = _taker(program, computation, instruction) or instruction
        name = instruction.quoted("op_name")
        operation = name.rpartition("/")[2]
    file, line = _place(program, instruction)
    return Source(operation.removesuffix("_invariant"), file, line, backward="transpose(" in name)


def _taker(program: Program, computation: Computation, moved: Instruction) -> Instruction | None:
    """What an array is moved for. (JAX 0.12 names a move after what made the array, older ones after what takes it.)"""
    found = moved
    while True:
        users = [computation[name] for name in computation.users.get(found.name, ())]
        named = [user for user in users if _place(program, user)[1] and user.kind not in MOVES]
        if named:
            mine = _place(program, moved)
            return next((user for user in named if _place(program, user) == mine), named[0])
        if users:
            found = users[0]
        else:  # what a fusion gives, its caller's users take
            computation, found = program.callers.get(computation.name, (None, None))
            if found is None or found.opcode != "fusion":
                return None


def _place(program: Program, instruction: Instruction) -> tuple[str, int]:
    """File and line of an instruction: on it, or in the table of the program."""
    file = instruction.quoted("source_file")
    if file:
        return file, instruction.number("source_line") or 0
    return program.frames.get(instruction.number("stack_frame_id"), ("", 0))


def _links(attributes: str) -> int | None:
    """The colours of a strategy in which each goes one way round its ring."""
    found = set(re.findall(r"\bn?(UniDirection\w*)\{colors:(\d+) ", attributes))
    return int(found.pop()[1]) if len(found) == 1 else None
