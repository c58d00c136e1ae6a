"""Published peak rates of five accelerators, with their sources, for all of the course's estimates.

These numbers come from data sheets. No program reaches them, and we haven't measured any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

BOOK_TPUS = "https://jax-ml.github.io/scaling-book/tpus/"
BOOK_GPUS = "https://jax-ml.github.io/scaling-book/gpus/"


@dataclass(frozen=True)
class Chip:
    """One chip's published rates. 1 GB is 1e9 bytes."""

    name: str
    flops: float  # FLOP/s of dense bfloat16 matrix products; a multiply-add counts as 2
    hbm: float  # bytes of memory
    hbm_rate: float  # bytes/s between memory and chip
    links: int  # number of interconnect links
    link_rate: float  # bytes/s over one link in one direction
    switched: bool  # True: all links lead to a switch and so to any chip (GPU). False: each leads to a neighbour (TPU)
    sources: tuple[str, ...]  # pages with these numbers
    note: str  # which number was chosen if the sources disagree

    @property
    def network(self) -> float:
        """Return the bytes/s that the chip can send over all its links. Data sheets print twice this, for both ways."""
        return self.links * self.link_rate

    @property
    def ring_rate(self) -> float:
        """Return the bytes/s that the chip can send in a ring: over two links on a torus, or all links to a switch."""
        return self.network if self.switched else 2 * self.link_rate

    @property
    def flops_per_hbm_byte(self) -> float:
        """Return the FLOPs that the chip can do per byte of memory traffic: the ridge point of its memory roofline."""
        return self.flops / self.hbm_rate

    @property
    def flops_per_ring_byte(self) -> float:
        """Return the FLOPs that the chip can do per byte sent in a ring: the ridge point of its network roofline."""
        return self.flops / self.ring_rate


def _nvidia(name: str, hbm: float, hbm_rate: float, page: str) -> Chip:
    note = (
        "NVIDIA gives 1,979 TFLOP/s with sparsity, which is twice the dense rate, and 900 GB/s for both directions of "
        "18 NVLinks."
    )
    sources = (page, BOOK_GPUS)
    return Chip(name, 989.5e12, hbm, hbm_rate, 18, 25e9, True, sources, note)


CHIPS = {
    chip.name: chip
    for chip in (
        Chip(
            "TPU v5e",
            flops=197e12,
            hbm=16e9,
            hbm_rate=819e9,
            links=4,
            link_rate=50e9,
            switched=False,
            sources=("https://docs.cloud.google.com/tpu/docs/v5e", BOOK_TPUS),
            note="Interconnect: Google gives 400 GB/s per chip for both directions of 4 links (older page: 1,600 "
            "Gbit/s, one direction); the book uses 45 GB/s per link and direction. Memory: 819 GB/s on older pages "
            "and, rounded, in the book; 800 GiB/s on Google's newer page.",
        ),
        Chip(
            "TPU v5p",
            flops=459e12,
            hbm=95e9,
            hbm_rate=2765e9,
            links=6,
            link_rate=100e9,
            switched=False,
            sources=("https://docs.cloud.google.com/tpu/docs/v5p", BOOK_TPUS),
            note="Interconnect: Google gives 1,200 GB/s per chip for both directions of 6 links (older page: 4,800 "
            "Gbit/s, one direction); the book uses 90 GB/s per link and direction. Memory: 95 GB on the older page, "
            "95 GiB on the newer one, and 96 GB in the book; 2,575 GiB/s on the newer page is the same rate.",
        ),
        Chip(
            "TPU v6e",
            flops=918e12,
            hbm=32e9,
            hbm_rate=1640e9,
            links=4,
            link_rate=100e9,
            switched=False,
            sources=("https://docs.cloud.google.com/tpu/docs/v6e", BOOK_TPUS),
            note="Interconnect: Google gives 800 GB/s per chip for both directions of 4 links (older page: 3,584 "
            "Gbit/s, one direction); the book uses 90 GB/s per link and direction. Memory: 1,640 GB/s on the older "
            "page, 1,600 on the newer one. The book rounds to 920 TFLOP/s.",
        ),
        _nvidia("H100 SXM", 80e9, 3.35e12, "https://www.nvidia.com/en-us/data-center/h100/"),
        _nvidia("H200 SXM", 141e9, 4.8e12, "https://www.nvidia.com/en-us/data-center/h200/"),
    )
}
