"""Calculate how many bytes a program sends from each machine to the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from shardcost.collectives import Collective
from shardcost.hlo import UnsupportedHloError

RINGS = {"all-reduce", "all-gather", "reduce-scatter"}


def bytes_leaving(collectives: Iterable[Collective], machine_of: Sequence[int]) -> dict[int, int]:
    """Return the bytes that leave each machine, where `machine_of[i]` is the machine with device i of the mesh.

    The bytes are calculated, not measured, under these assumptions:

    - All-reduces, all-gathers and reduce-scatters use a ring that visits each machine in the group once, so as
      many bytes leave each machine as one device sends. (Algorithms that first reduce within each machine send fewer
      bytes between machines, and other algorithms send more.)
    - In an all-to-all, each device sends the same number of bytes to every other device in the group.
    - In a permute, each source sends its operand directly to its target.

    Raises UnsupportedHloError for any other kind of collective.
    """
    leaving = Counter(dict.fromkeys(machine_of, 0))
    for c in collectives:
        if c.kind not in RINGS | {"all-to-all", "collective-permute"}:
            raise UnsupportedHloError(f"{c.kind}, whose route is unknown")
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
