"""How often each computation of a compiled program runs: through calls, branches and loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from utils.count.hlo import Computation, Instruction, Program
from utils.count.loops import trip_count

Times = list[tuple[str, int]]  # computations, and how often each runs


@dataclass
class Runs:
    """What `runs` finds, by the name of a computation."""

    times: dict[str, int] = field(default_factory=dict)  # how often it runs; one that nothing calls is not there
    unsure: dict[str, str] = field(default_factory=dict)  # why the text does not tell how often it runs
    told: list[str] = field(default_factory=list)  # what was decided by the reader's word


def runs(program: Program, own: dict[str, float], rounds: int | None = None, dearest: bool = False) -> Runs:
    """How often each computation runs that holds, itself or in what it calls, something to count.

    `own` has what each computation holds itself, in any unit. `rounds` is what the reader says of the loops whose text
    does not tell. With `dearest`, of a conditional's branches only the one counts that holds the most; otherwise all of
    them are unsure.
    """
    found = Runs()
    total: dict[str, float] = {}  # what one run of a computation holds in all, where that is something

    def call(around: Computation, caller: Instruction, below: list[str]) -> tuple[Times, str]:
        """How often an instruction runs each computation, and why that is not sure."""
        if caller.opcode == "conditional" and dearest:
            found.told.append("the dearest branch of a conditional")
            most = max(below, key=total.__getitem__)
            return [(name, int(name == most)) for name in dict.fromkeys(below)], ""
        if caller.opcode != "while":
            return [(name, 1) for name in below], "branch" if caller.opcode == "conditional" else ""
        times = trip_count(program, around, caller)
        if times is None and rounds is not None:
            found.told.append(f"{rounds} rounds of a loop that does not tell")
        unsure = "loop" if times is None and rounds is None else ""
        times = times if times is not None else rounds if rounds is not None else 1
        return [(name, times + (name == caller.called("condition"))) for name in below], unsure

    calls: dict[str, list[tuple[Times, str]]] = {}
    for name, computation in program.computations.items():  # what is called stands before what calls it
        calls[name] = []
        for caller, below in computation.calls:
            if below := [called for called in below if called in total]:
                calls[name].append(call(computation, computation[caller], below))
        if calls[name] or name in own:
            called = sum(total[below] * times for pairs, _ in calls[name] for below, times in pairs)
            total[name] = own.get(name, 0) + called
    found.times[program.entry] = 1
    for name in reversed(program.computations):
        for pairs, unsure in calls[name] if name in found.times else ():
            for below, times in pairs:
                found.times[below] = found.times.get(below, 0) + found.times[name] * times
                if found.times[name] and (reason := unsure or found.unsure.get(name)):
                    found.unsure[below] = reason
    return found
