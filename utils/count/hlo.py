"""Read the text of a compiled program (HLO): its computations, their instructions, and their types."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field

Shape = tuple[str, tuple[int, ...]]  # dtype, dimensions

# ``  ROOT %name = type opcode(``, where the type is one word, or a tuple with blanks and parentheses inside.
LINE = re.compile(r"  (ROOT )?%?([\w.\-]+) = (?:\(.*?\)|[^ (]\S*) ([a-z][\w\-]*)\(")
# What may run a computation, and where it names it. (Sums and sorts name tiny ones, without anything to count.)
CALLERS = ("while", "conditional", "fusion", "call", "async-start", "custom-call")
NAMED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation|called_computations)="
    r"(?:%([\w.\-]+)|\{([^{}]*)\})"
)


class UnknownConstruct(ValueError):
    """The program holds something that this reader cannot count; the message names it."""


@dataclass(frozen=True)
class Instruction:
    """One line: ``%name = type opcode(%operand, ...), attribute=value, ...``."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The arrays of the type: one, or a tuple's."""
        return shapes(self.type)

    @property
    def kind(self) -> str:
        """The opcode; for the first half of an asynchronous pair, that of the whole."""
        return self.opcode.removesuffix("-start")

    def called(self, key: str) -> str | None:
        """The computation that the attribute `key` names."""
        return self._find(rf"\b{key}=%([\w.\-]+)")

    def number(self, key: str) -> int | None:
        found = self._find(rf"\b{key}=(\d+)")
        return int(found) if found else None

    def numbers(self, key: str) -> list[int]:
        found = self._find(rf"\b{key}=\{{([\d,]*)\}}")
        return [int(n) for n in found.split(",")] if found else []

    def quoted(self, key: str) -> str:
        """The value of ``key="..."``, or nothing."""
        return self._find(rf'\b{key}="([^"]*)"') or ""

    def _find(self, pattern: str) -> str | None:
        found = re.search(pattern, self.attributes)
        return found and found[1]


@dataclass
class Computation:
    """A named list of instructions, read when asked for: most lines of a large program never are."""

    name: str
    lines: dict[str, str] = field(default_factory=dict)  # by instruction: what stands right of its equals sign
    kinds: dict[str, list[str]] = field(default_factory=dict)  # by opcode: its instructions
    root: str = ""

    def __getitem__(self, name: str) -> Instruction:
        return parse(name, self.lines[name])

    def of_kind(self, *opcodes: str) -> list[Instruction]:
        return [self[name] for opcode in opcodes for name in self.kinds.get(opcode, ())]

    def operand(self, instruction: Instruction, i: int) -> Instruction:
        return self[instruction.operands[i]]

    @functools.cached_property
    def calls(self) -> list[tuple[str, list[str]]]:
        """The instructions that run other computations, with the names of these."""
        found = []
        for name in (name for opcode in CALLERS for name in self.kinds.get(opcode, ())):
            named = [one or several for one, several in NAMED.findall(self.lines[name])]
            below = [word.strip().removeprefix("%") for text in named for word in text.split(",") if word.strip()]
            if below:
                found.append((name, below))
        return found

    @functools.cached_property
    def targets(self) -> dict[str, Instruction]:
        """Its custom calls by name (of several, the last)."""
        return {call.quoted("custom_call_target"): call for call in self.of_kind("custom-call")}

    @functools.cached_property
    def users(self) -> dict[str, list[str]]:
        """By instruction, those that take what it gives."""
        found: dict[str, list[str]] = {}
        for user, line in self.lines.items():
            for name in parse(user, line).operands:
                found.setdefault(name, []).append(user)
        return found

    @functools.cached_property
    def finished(self) -> dict[str, tuple[Shape, ...]]:
        """What asynchronous pairs give, by the name of their first half."""
        halves = self.of_kind(*(opcode for opcode in self.kinds if opcode.endswith("-done")))
        return {half.operands[0]: half.shapes for half in halves if half.operands}


@dataclass
class Program:
    """A compiled program: its computations by name, each after those that it calls."""

    computations: dict[str, Computation]
    entry: str
    devices: int
    preamble: str  # what stands before the first computation

    def __getitem__(self, name: str) -> Computation:
        return self.computations[name]

    @functools.cached_property
    def callers(self) -> dict[str, tuple[Computation, Instruction]]:
        """By computation, the (first) instruction that runs it, and where that stands."""
        found: dict[str, tuple[Computation, Instruction]] = {}
        for computation in self.computations.values():
            for name, below in computation.calls:
                for called in below:
                    if called not in found:
                        found[called] = computation, computation[name]
        return found

    @functools.cached_property
    def chains(self) -> set[str]:
        """The numbers of the asynchronous collectives that a TPU's program begins."""
        begun = [c for c in self.computations.values() if "AsyncCollectiveStart" in c.targets]
        lines = (line for computation in begun for line in computation.lines.values())
        return {number for line in lines for number in re.findall(r'\bchain_id="(\w+)"', line)}

    @functools.cached_property
    def frames(self) -> dict[int, tuple[str, int]]:
        """File and line by the numbers that ``stack_frame_id`` refers to (older versions write them in each line)."""
        files = dict(re.findall(r'^(\d+) "(.*)"$', self._section("FileNames"), re.M))
        places = {
            number: (files.get(file, ""), int(line))
            for number, file, line in re.findall(
                r"^(\d+) \{file_name_id=(\d+)\b.*?\bline=(\d+)", self._section("FileLocations"), re.M
            )
        }
        frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", self._section("StackFrames"), re.M)
        return {int(number): places[place] for number, place in frames if place in places}

    def _section(self, title: str) -> str:
        return self.preamble.partition(f"\n{title}\n")[2].partition("\n\n")[0]


def program(text: str) -> Program:
    """Take a program's text apart, in time that grows with its length."""
    computations: dict[str, Computation] = {}
    entry, current, last, preamble = "", None, "", []
    for line in text.split("\n"):
        if current is None:
            if line.endswith("{") and line.startswith(("%", "ENTRY ")):
                name = line.removeprefix("ENTRY ").split(" ", 1)[0].removeprefix("%")
                current = computations[name] = Computation(name)
                entry = name if line.startswith("ENTRY ") else entry
            elif not computations:
                preamble.append(line)
        elif line == "}" or line.startswith("}, execution_thread="):
            current = None
        elif found := LINE.match(line):
            root, last, opcode = found.groups()
            current.lines[last] = line[line.index(" = ") + 3 :]
            current.kinds.setdefault(opcode, []).append(last)
            if root:
                current.root = last
        elif line.startswith(("  %", "  ROOT ")) or not last:
            raise UnknownConstruct(f"a line that is no instruction: {line[:80]!r}")
        else:  # a Pallas kernel's metadata may go over several lines
            current.lines[last] += "\n" + line
    if not entry:
        raise UnknownConstruct("a program without computations")
    header = "\n".join(preamble).partition("\n")[0]
    sizes = [int(n) for n in re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", header)]
    return Program(computations, entry, math.prod(sizes), "\n".join(preamble))


def parse(name: str, text: str) -> Instruction:
    """Take apart what stands right of the equals sign."""
    end = _closing(text, 0) + 1 if text.startswith("(") else text.index(" ")
    start = text.index("(", end)
    close = _closing(text, start)
    operands = tuple(re.findall(r"%([\w.\-]+)", text[start:close]))
    return Instruction(name, text[:end], text[end:start].strip(), operands, text[close + 1 :])


def _closing(text: str, start: int) -> int:
    """The position of the parenthesis that closes the one at `start`."""
    depth = 0
    for found in re.compile(r"[()]").finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    raise UnknownConstruct(f"a line without its closing parenthesis: {text[:80]}")


def shapes(text: str) -> tuple[Shape, ...]:
    """The arrays named in a type, without the layouts behind them: ``(f32[2,4]{1,0}, s32[])``.

    Raises UnknownConstruct for an array whose size is not known before it runs: ``f32[<=8]``.
    """
    found = re.findall(r"\b([a-z]\w*)\[([^\]]*)\]", re.sub(r"\{[^{}]*\}", "", text))
    if any("<=" in dims for _, dims in found):
        raise UnknownConstruct(f"an array of a size that the program finds out while it runs: {text[:80]}")
    return tuple((dtype, tuple(int(n) for n in dims.split(",") if n)) for dtype, dims in found)


def itemsize(dtype: str) -> float:
    """Bytes of one element. Raises UnknownConstruct for a dtype that is none."""
    if dtype in ("token", "opaque"):
        return 0
    bits = re.match(r"(?:bf|[sufc])(\d+)", dtype)
    if dtype != "pred" and not bits:
        raise UnknownConstruct(f"the dtype {dtype}")
    return 1 if dtype == "pred" else int(bits[1]) / 8


def nbytes(arrays: tuple[Shape, ...]) -> float:
    return sum(itemsize(dtype) * math.prod(dims) for dtype, dims in arrays)


def spell(arrays: tuple[Shape, ...]) -> str:
    """As a table has it: ``f32[2,4] + s32[]``."""
    return " + ".join(f"{dtype}[{','.join(map(str, dims))}]" for dtype, dims in arrays)
