"""Count the bytes that a JAX program sends and stores on each device, and its FLOPs, without running the program.

>>> from shardcost import cost
>>> report = cost(step, params, batch)
>>> report.bytes_sent, report.flops, report.memory.peak
"""

from shardcost.collectives import Collective, Source
from shardcost.counter import cost, from_hlo
from shardcost.hlo import UnsupportedHloError
from shardcost.report import Comparison, Cost, Memory
from shardcost.testing import assert_cost

__all__ = [
    "Collective",
    "Comparison",
    "Cost",
    "Memory",
    "Source",
    "UnsupportedHloError",
    "assert_cost",
    "cost",
    "from_hlo",
]
