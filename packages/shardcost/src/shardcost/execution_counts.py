"""Count how often each computation in a compiled program runs, by following calls, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shardcost.collectives import source_of
from shardcost.hlo import Computation, Instruction, Program
from shardcost.loops import trip_count

# Takes a loop's label and instruction name, and returns the trip count that the user specified for the loop, or None.
TripCountLookup = Callable[[str, str], int | None]


@dataclass
class Runs:
    """The number of runs of each computation, by name."""

    times: dict[str, int] = field(default_factory=dict)  # omits computations that have no cost or are never called
    uncertain: dict[str, str] = field(default_factory=dict)  # computation name -> why its number of runs is unknown
    assumptions: list[str] = field(default_factory=list)  # user-supplied assumptions that the counts depend on


def count_runs(program: Program, costs: Mapping[str, float], assume: TripCountLookup, max_branch: bool = False) -> Runs:
    """Count the runs of each computation that has a cost of its own, or that calls one with a cost.

    Args:
        costs: the cost, in any unit, of one run of each computation, excluding the computations that it calls.
        assume: returns the trip count to use for a loop if the program text doesn't give it.
        max_branch: count only the most expensive branch of each conditional. Otherwise, mark the counts of all branches
            as uncertain.
    """
    runs = Runs()
    total: dict[str, float] = {}  # the cost of one run including callees, for computations that have a cost

    def runs_of_call(
        computation: Computation, caller: Instruction, called: list[str]
    ) -> tuple[list[tuple[str, int]], str]:
        """Return how often `caller` runs each called computation, and why that number is uncertain, or "" if it isn't.

        Args:
            computation: the computation that contains the instruction `caller`.
        """
        if caller.opcode not in ("conditional", "while"):
            return [(name, 1) for name in called], ""
        source = source_of(program, computation, caller)
        label = source.label if source else ""
        label = label or caller.name
        if caller.opcode == "conditional":
            if max_branch:
                runs.assumptions.append(f"the most expensive branch of the conditional at {label}")
                most_expensive = max(called, key=total.__getitem__)
                return [(name, int(name == most_expensive)) for name in dict.fromkeys(called)], ""
            reason = f"a branch of the conditional at {label}, which may or may not run: pass branches='max'"
            return [(name, 1) for name in called], f"{reason} to count the most expensive branch"
        times, reason = trip_count(program, computation, caller), ""
        if times is None:
            times = assume(label, caller.name)
            if times is None:
                times = 1
                reason = (
                    f"the loop at {label}, whose trip count the program text does not give: "
                    f"pass trip_counts={{{label!r}: n}} if you know it"
                )
            else:
                runs.assumptions.append(f"{times} iterations of the loop at {label}")
        return [(name, times + (name == caller.called("condition"))) for name in called], reason

    calls: dict[str, list[tuple[list[tuple[str, int]], str]]] = {}
    for name, computation in program.computations.items():  # callees come before their callers
        calls[name] = []
        for caller, called in computation.calls:
            if called := [below for below in called if below in total]:
                calls[name].append(runs_of_call(computation, computation[caller], called))
        if calls[name] or name in costs:
            below = sum(total[below] * times for pairs, _ in calls[name] for below, times in pairs)
            total[name] = costs.get(name, 0) + below
    runs.times[program.entry] = 1
    for name in reversed(program.computations):
        for pairs, uncertain in calls[name] if name in runs.times else ():
            for below, times in pairs:
                runs.times[below] = runs.times.get(below, 0) + runs.times[name] * times
                if runs.times[name] and (reason := uncertain or runs.uncertain.get(name)):
                    runs.uncertain[below] = reason
    return runs
