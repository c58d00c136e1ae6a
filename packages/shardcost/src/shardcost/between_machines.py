"""Find out how much a program sends from one machine to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from shardcost.collectives import Collective
from shardcost.hlo import UnknownConstruct

RINGS = {"all-reduce", "all-gather", "reduce-scatter"}


def bytes_leaving(collectives: Iterable[Collective], machine_of: Sequence[int]) -> dict[int, int]:
    """Return the bytes that leave each machine. `machine_of[i]` is the machine of the mesh's device i.

    This is arithmetic, not a measurement. The assumptions are:

    - all-reduces, all-gathers and reduce-scatters go round a ring that visits each machine of the group once, so what
      one device sends leaves each machine. (Other algorithms send more, or less if they first reduce inside a machine.)
    - an all-to-all sends the same amount to each device of the group;
    - a permute sends what its pairs say.

    Raises UnknownConstruct for any other kind of collective.
    """
    leaving = Counter(dict.fromkeys(machine_of, 0))
    for c in collectives:
        if c.kind not in RINGS | {"all-to-all", "collective-permute"}:
            raise UnknownConstruct(f"{c.kind}, whose route isn't known")
        for group in c.groups:
            machines = [machine_of[device] for device in group]
            if c.kind == "collective-permute":
                leaving[machines[0]] += c.bytes_sent * (machines[0] != machines[1])
            elif len(set(machines)) > 1 and c.kind in RINGS:
                leaving.update(dict.fromkeys(machines, c.bytes_sent))
            elif len(set(machines)) > 1:
                for machine in machines:
                    others = sum(other != machine for other in machines)
                    leaving[machine] += c.bytes_sent * others // (len(machines) - 1)
    return dict(leaving)
