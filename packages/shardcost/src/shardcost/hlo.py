"""Parse the text of a compiled program (HLO) into computations, instructions and array types."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field

ArrayType = tuple[str, tuple[int, ...]]  # dtype, dimensions

# Matches ``  ROOT %name = type opcode(``, where the type is either one word, or a tuple with spaces and parentheses.
INSTRUCTION = re.compile(r"  (ROOT )?%?([\w.\-]+) = (?:\(.*?\)|[^ (]\S*) ([a-z][\w\-]*)\(")
# Opcodes that can run other computations. (Reductions and sorts also refer to a computation, but it operates on scalars
# and contains nothing that's counted.)
CALLERS = ("while", "conditional", "fusion", "call", "async-start", "custom-call")
CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation|called_computations)="
    r"(?:%([\w.\-]+)|\{([^{}]*)\})"
)
OPERAND = re.compile(r"%([\w.\-]+(?:#\d+)*)")
ARRAY = re.compile(r"\b([a-z]\w*)\[([^\]]*)\](\{[^{}]*\})?")


class UnsupportedHloError(ValueError):
    """Raised for a construct whose cost can't be counted. The message names the construct."""


@dataclass(frozen=True)
class Instruction:
    """An instruction: ``%name = type opcode(%operand, ...), attribute=value, ...``."""

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str

    @property
    def shapes(self) -> tuple[ArrayType, ...]:
        """Return the arrays in the result: one array, or every array in a tuple."""
        return parse_shapes(self.type)

    @property
    def kind(self) -> str:
        """Return the opcode without ``-start``.

        The first half of an asynchronous pair therefore counts as the complete operation.
        """
        return self.opcode.removesuffix("-start")

    def called(self, key: str) -> str:
        """Return the name of the computation that the attribute `key` refers to, or "" if it's missing."""
        return self._search(rf"\b{key}=%([\w.\-]+)") or ""

    def number(self, key: str) -> int | None:
        """Return the integer value of the attribute `key`, or None if it's missing."""
        digits = self._search(rf"\b{key}=(\d+)")
        return int(digits) if digits else None

    def numbers(self, key: str) -> list[int]:
        """Return the integers in the attribute ``key={1,2}``, or an empty list if it's missing."""
        digits = self._search(rf"\b{key}=\{{([\d,]*)\}}")
        return [int(n) for n in digits.split(",")] if digits else []

    def quoted(self, key: str) -> str:
        """Return the value of the attribute ``key="value"``, or "" if it's missing."""
        return self._search(rf'\b{key}="([^"]*)"') or ""

    def _search(self, pattern: str) -> str | None:
        match = re.search(pattern, self.attributes)
        return match and match[1]


@dataclass
class Computation:
    """A named list of instructions.

    Instructions are parsed on access, because most lines of a large program are never needed.
    """

    name: str
    lines: dict[str, str] = field(default_factory=dict)  # instruction name -> the text after its equals sign
    by_opcode: dict[str, list[str]] = field(default_factory=dict)  # opcode -> instruction names
    root: str = ""

    def __getitem__(self, name: str) -> Instruction:
        """Return an instruction by name. ``while.8#1`` is element 1 of the tuple that ``while.8`` returns."""
        if name in self.lines:
            return parse_instruction(name, self.lines[name])
        base, _, index = name.rpartition("#")
        if not base:
            raise KeyError(name)
        element = split_tuple(self[base].type)[int(index)]
        return Instruction(name, element, "get-tuple-element", (base,), f", index={index}")

    def with_opcode(self, *opcodes: str) -> list[Instruction]:
        """Return the instructions that have any of the given opcodes."""
        return [self[name] for opcode in opcodes for name in self.by_opcode.get(opcode, ())]

    def operand(self, instruction: Instruction, i: int) -> Instruction:
        """Return the instruction that computes operand `i` of `instruction`."""
        return self[instruction.operands[i]]

    @functools.cached_property
    def calls(self) -> list[tuple[str, list[str]]]:
        """Return each instruction that runs other computations, paired with those computations, all by name."""
        calls = []
        for name in (name for opcode in CALLERS for name in self.by_opcode.get(opcode, ())):
            attributes = [one or several for one, several in CALLED.findall(self.lines[name])]
            called = [word.strip().removeprefix("%") for text in attributes for word in text.split(",") if word.strip()]
            if called:
                calls.append((name, called))
        return calls

    @functools.cached_property
    def custom_calls(self) -> dict[str, Instruction]:
        """Return the custom calls by target. If several calls have the same target, only the last one is included."""
        return {call.quoted("custom_call_target"): call for call in self.with_opcode("custom-call")}

    @functools.cached_property
    def users(self) -> dict[str, list[str]]:
        """Map each instruction or element (such as ``while.8#1``) to the names of the instructions that use it."""
        users: dict[str, list[str]] = {}
        for user, line in self.lines.items():
            for name in parse_instruction(user, line).operands:
                users.setdefault(name, []).append(user)
                if "#" in name:
                    users.setdefault(name.partition("#")[0], []).append(user)
        return users

    @functools.cached_property
    def async_results(self) -> dict[str, tuple[ArrayType, ...]]:
        """Return the results of each asynchronous operation, by the name of the instruction that starts it."""
        ends = self.with_opcode(*(opcode for opcode in self.by_opcode if opcode.endswith("-done")))
        return {end.operands[0]: end.shapes for end in ends if end.operands}


@dataclass
class Program:
    """A compiled program, with its computations by name. Each computation comes after those that it calls."""

    computations: dict[str, Computation]
    entry: str
    devices: int
    preamble: str  # the text before the first computation

    def __getitem__(self, name: str) -> Computation:
        return self.computations[name]

    @functools.cached_property
    def callers(self) -> dict[str, tuple[Computation, Instruction]]:
        """Map each called computation to its first caller: a computation and the calling instruction in it."""
        callers: dict[str, tuple[Computation, Instruction]] = {}
        for computation in self.computations.values():
            for name, called in computation.calls:
                for below in called:
                    if below not in callers:
                        callers[below] = computation, computation[name]
        return callers

    @functools.cached_property
    def async_chains(self) -> set[str]:
        """Return the chain numbers of the asynchronous collectives that a TPU program starts."""
        starts = [c for c in self.computations.values() if "AsyncCollectiveStart" in c.custom_calls]
        lines = (line for computation in starts for line in computation.lines.values())
        return {number for line in lines for number in re.findall(r'\bchain_id="(\w+)"', line)}

    @functools.cached_property
    def stack_frames(self) -> dict[int, tuple[str, int]]:
        """Map each ``stack_frame_id`` to a file and line. Older JAX versions store both in each instruction instead."""
        files = dict(re.findall(r'^(\d+) "(.*)"$', self._section("FileNames"), re.M))
        locations = {
            number: (files.get(file, ""), int(line))
            for number, file, line in re.findall(
                r"^(\d+) \{file_name_id=(\d+)\b.*?\bline=(\d+)", self._section("FileLocations"), re.M
            )
        }
        frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", self._section("StackFrames"), re.M)
        return {int(number): locations[location] for number, location in frames if location in locations}

    def _section(self, title: str) -> str:
        return self.preamble.partition(f"\n{title}\n")[2].partition("\n\n")[0]


def parse_program(text: str) -> Program:
    """Parse a compiled program's text, in time proportional to the text's length.

    Raises UnsupportedHloError if the text isn't HLO, or if it's HLO that hasn't been fully compiled.
    """
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
        elif match := INSTRUCTION.match(line):
            root, last, opcode = match.groups()
            current.lines[last] = line[line.index(" = ") + 3 :]
            current.by_opcode.setdefault(opcode, []).append(last)
            if root:
                current.root = last
        elif line.startswith(("  %", "  ROOT ")) or not last:
            raise UnsupportedHloError(f"a line that is not an instruction: {line[:80]!r}")
        else:  # a Pallas kernel's metadata can span several lines
            current.lines[last] += "\n" + line
    if not entry:
        raise UnsupportedHloError(f"a text without an entry computation; {_describe(text)}")
    header = "\n".join(preamble).partition("\n")[0]
    devices = math.prod(int(n) for n in re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", header))
    if devices > 1 and "is_scheduled=true" not in header:
        raise UnsupportedHloError(
            "a program that is not fully compiled, so its collectives are not final (no is_scheduled=true in the first "
            "line): take the dump whose name ends in after_optimizations.txt"
        )
    return Program(computations, entry, devices, "\n".join(preamble))


def _describe(text: str) -> str:
    """Describe a text that isn't compiled HLO or, if its kind is unknown, describe compiled HLO."""
    if re.match(r"\s*(#\w+ = .*\n\s*)*module @", text):
        return "this is StableHLO, the compiler's input: call .compile() before .as_text()"
    if text.startswith(("BufferAssignment", "HloLiveRange", "\nTotal bytes", "Memory Space")):
        return "this is the compiler's memory plan: take the dump whose name ends in after_optimizations.txt"
    return "compiled HLO begins with 'HloModule' and has a line that begins with 'ENTRY %'"


def parse_instruction(name: str, text: str) -> Instruction:
    """Parse the text after an instruction's equals sign: ``type opcode(operands), attributes``."""
    end = _closing_parenthesis(text, 0) + 1 if text.startswith("(") else text.index(" ")
    start = text.index("(", end)
    close = _closing_parenthesis(text, start)
    arguments, opcode = text[start + 1 : close], text[end:start].strip()
    operands = tuple(OPERAND.findall(arguments))
    if not operands and arguments.strip() and opcode not in ("parameter", "constant", "iota"):
        raise UnsupportedHloError(f"operands without a percent sign before their names: {text[:80]!r}")
    return Instruction(name, text[:end], opcode, operands, text[close + 1 :])


def _closing_parenthesis(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one at `start`."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.start()
    raise UnsupportedHloError(f"a line without its closing parenthesis: {text[:80]!r}")


def split_tuple(type_: str) -> list[str]:
    """Split a tuple's type into the types of its elements: two for ``(f32[2,4]{1,0}, (s32[], s32[]))``."""
    elements, depth, start = [], 0, 1
    for match in re.finditer(r"[(\[{}\]),]", type_):
        if match[0] in "([{":
            depth += 1
        elif match[0] in "}])":
            depth -= 1
        if (match[0] == "," and depth == 1) or (match[0] == ")" and depth == 0):
            elements.append(type_[start : match.start()].strip())
            start = match.end()
    return [re.sub(r"^/\*index=\d+\*/", "", element) for element in elements]


def parse_shapes(text: str) -> tuple[ArrayType, ...]:
    """Return the arrays in a type such as ``(f32[2,4]{1,0}, s32[])``, without their layouts.

    An element of fewer than 8 bits takes up a byte, unless the layout packs elements, as in ``s4[8]{0:E(4)}``. The
    dtype of an unpacked array is written as ``s4:8``.

    Raises UnsupportedHloError for an array whose size is known only at run time, such as ``f32[<=8]``.
    """
    arrays = ARRAY.findall(text)
    if any("<=" in dims for _, dims, _ in arrays):
        raise UnsupportedHloError(f"an array whose size is known only at run time: {text[:80]}")
    return tuple(
        (_stored_dtype(dtype, layout), tuple(int(n) for n in dims.split(",") if n)) for dtype, dims, layout in arrays
    )


def _stored_dtype(dtype: str, layout: str) -> str:
    narrow = re.match(r"[suf]([1-7])(?!\d)", dtype)
    return f"{dtype}:8" if narrow and f"E({narrow[1]})" not in layout else dtype


def itemsize(dtype: str) -> float:
    """Return the size of an element in bytes. Raises UnsupportedHloError for an unknown dtype."""
    if dtype in ("token", "opaque"):
        return 0
    bits = re.match(r"(?:bf|[sufc])(\d+)", dtype)
    if dtype != "pred" and not bits:
        raise UnsupportedHloError(f"the dtype {dtype}")
    return 1 if not bits or dtype.endswith(":8") else int(bits[1]) / 8


def nbytes(arrays: tuple[ArrayType, ...]) -> float:
    """Return the total size of the arrays in bytes."""
    return sum(itemsize(dtype) * math.prod(dims) for dtype, dims in arrays)


def format_shapes(arrays: tuple[ArrayType, ...]) -> str:
    """Format array types for a table, as in ``f32[2,4] + s32[]``."""
    return " + ".join(f"{dtype}[{','.join(map(str, dims))}]" for dtype, dims in arrays)
