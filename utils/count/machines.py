"""What a compiled program sends from one machine to another, where the places of its mesh lie on several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from utils.count.cost import Cost
from utils.count.hlo import UnknownConstruct

RINGS = {"all-reduce", "all-gather", "reduce-scatter"}
EACH_TO_EACH = {"all-to-all", "ragged-all-to-all"}


def leaving(found: Cost, machine_of: Sequence[int]) -> dict[int, int]:
    """Bytes that leave each machine. `machine_of[place]`: where the device at that place of the mesh, row by row, is.

    A group's sums and gathers go round a ring that comes to each machine once, so what one device sends leaves each
    machine of the group once; a group on one machine sends nothing out. An all-to-all sends the same to each device, a
    permute as its pairs say. (On paper: other ways round send more, sums inside each machine first send less.)

    Raises UnknownConstruct for another kind of collective, ValueError where a place has no machine.
    """
    if len(machine_of) < found.devices:
        raise ValueError(f"the program has {found.devices} devices, and you say of {len(machine_of)} where they are")
    left = Counter(dict.fromkeys(machine_of, 0))
    for c in found:
        for group in c.groups:
            at = [machine_of[place] for place in group]
            if c.kind in RINGS and len(set(at)) > 1:
                left.update(dict.fromkeys(at, c.bytes_sent))
            elif c.kind in EACH_TO_EACH and len(set(at)) > 1:
                for machine in at:
                    left[machine] += c.bytes_sent * sum(other != machine for other in at) // (len(at) - 1)
            elif c.kind == "collective-permute":
                left[at[0]] += c.bytes_sent * (at[0] != at[1])
            elif c.kind not in RINGS | EACH_TO_EACH:
                raise UnknownConstruct(f"{c.kind}: where it goes is not known here")
    return dict(left)
