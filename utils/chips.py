"""Provide the published peak rates of five accelerators, with sources, for every time estimate in the course.

These numbers come from data sheets. No program reaches them, and we haven't measured any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

BOOK_TPUS = "https://jax-ml.github.io/scaling-book/tpus/"
BOOK_GPUS = "https://jax-ml.github.io/scaling-book/gpus/"


@dataclass(frozen=True)
class PrintedRate:
    """An interconnect rate as printed on a data sheet, always for all the links of one chip combined.

    Data sheets differ in the unit, and in whether they add up both directions of each link.
    """

    number: int
    unit: str  # "GB/s" or "Gbit/s"
    directions: int  # 2 if the rate is the sum of sending and receiving, 1 if it's for one direction

    def __str__(self) -> str:
        return f"{self.number:,} {self.unit}"

    @property
    def units_per_gb(self) -> int:
        """Return how many of the printed units make 1 GB/s: 1 for GB/s, 8 for Gbit/s."""
        return {"GB/s": 1, "Gbit/s": 8}[self.unit]

    @property
    def one_direction(self) -> float:
        """Return the bytes/s that the chip can send over all its links combined."""
        return self.number * 1e9 / self.units_per_gb / self.directions


@dataclass(frozen=True)
class Chip:
    """The published rates of one chip. A GB is 1e9 bytes.

    Every interconnect rate except `printed` counts one direction: the bytes that leave the chip each second.
    """

    name: str
    flops: float  # dense bfloat16 FLOP/s (without sparsity); a multiply-add counts as 2
    hbm: float  # bytes of memory
    hbm_rate: float  # bytes/s between this memory and the chip
    links: int  # number of interconnect links
    printed: tuple[PrintedRate, ...]  # interconnect rates on the manufacturer's pages, newest page first
    switched: bool  # True: links go to a switch that reaches every chip (GPU); False: to fixed neighbours (TPU)
    sources: tuple[str, ...]  # pages that list these numbers
    note: str  # which numbers the sources disagree on, and which source the course uses

    @property
    def network(self) -> float:
        """Return the bytes/s that the chip can send over all its links combined."""
        return self.printed[0].one_direction

    @property
    def link_rate(self) -> float:
        """Return the bytes/s that the chip can send over one link."""
        return self.network / self.links

    @property
    def ring_links(self) -> int:
        """Return how many links a ring can use: all of them through a switch, or two on a torus, one per neighbour."""
        return self.links if self.switched else 2

    @property
    def ring_rate(self) -> float:
        """Return the bytes/s that the chip can send in a ring that uses both directions."""
        return self.ring_links * self.link_rate

    @property
    def flops_per_hbm_byte(self) -> float:
        """Return the FLOPs per byte read or written at which computation takes as long as memory access."""
        return self.flops / self.hbm_rate

    @property
    def flops_per_ring_byte(self) -> float:
        """Return the FLOPs per byte sent in a ring at which computation takes as long as communication."""
        return self.flops / self.ring_rate


def _nvidia(name: str, hbm: float, hbm_rate: float, page: str) -> Chip:
    note = (
        "Interconnect: NVIDIA's page doesn't say that its 900 GB/s (NVLink) is the sum of both directions; the book "
        "gives 25 GB/s each way for each of 18 links. Compute: NVIDIA prints 1,979 TFLOP/s with sparsity; the rate "
        "without sparsity is half of that."
    )
    printed = (PrintedRate(900, "GB/s", directions=2),)  # NVLink
    return Chip(name, 989.5e12, hbm, hbm_rate, 18, printed, True, (page, BOOK_GPUS), note)


CHIPS = {
    chip.name: chip
    for chip in (
        Chip(
            "TPU v5e",
            flops=197e12,
            hbm=16e9,
            hbm_rate=819e9,
            links=4,
            printed=(PrintedRate(400, "GB/s", directions=2), PrintedRate(1600, "Gbit/s", directions=1)),
            switched=False,
            sources=("https://docs.cloud.google.com/tpu/docs/v5e", BOOK_TPUS),
            note="Interconnect: Google's page says 'bidirectional'; its older versions print 1,600 Gbit/s without a "
            "direction, which agrees with the newer rate only if it counts one direction. The book uses 45 GB/s per "
            "link and direction. Memory: 819 GB/s on Google's older pages and, rounded, in the book; 800 GiB/s on the "
            "newer page.",
        ),
        Chip(
            "TPU v5p",
            flops=459e12,
            hbm=95e9,
            hbm_rate=2765e9,
            links=6,
            printed=(PrintedRate(1200, "GB/s", directions=2), PrintedRate(4800, "Gbit/s", directions=1)),
            switched=False,
            sources=("https://docs.cloud.google.com/tpu/docs/v5p", BOOK_TPUS),
            note="Interconnect: as for the TPU v5e; the book uses 90 GB/s per link and direction. Memory: 95 GB on "
            "Google's older page, 95 GiB on the newer one, 96 GB in the book; 2,575 GiB/s on the newer page is the "
            "same rate.",
        ),
        Chip(
            "TPU v6e",
            flops=918e12,
            hbm=32e9,
            hbm_rate=1640e9,
            links=4,
            printed=(PrintedRate(800, "GB/s", directions=2), PrintedRate(3200, "Gbit/s", directions=1)),
            switched=False,
            sources=("https://docs.cloud.google.com/tpu/docs/v6e", BOOK_TPUS),
            note="Interconnect: as for the TPU v5e, and a still older version of Google's page printed 3,584 Gbit/s; "
            "the book uses 90 GB/s per link and direction. Memory: 1,640 GB/s on the older page, 1,600 GB/s on the "
            "newer one. Compute: the book rounds to 920 TFLOP/s.",
        ),
        _nvidia("H100 SXM", 80e9, 3.35e12, "https://www.nvidia.com/en-us/data-center/h100/"),
        _nvidia("H200 SXM", 141e9, 4.8e12, "https://www.nvidia.com/en-us/data-center/h200/"),
    )
}
