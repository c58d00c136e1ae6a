"""Published peak rates of five accelerators, with their sources: what every estimate of the course divides by.

These are data-sheet numbers. No program reaches them, and none of them was measured here.
"""

from __future__ import annotations

from dataclasses import dataclass

BOOK_TPUS = "https://jax-ml.github.io/scaling-book/tpus/"
BOOK_GPUS = "https://jax-ml.github.io/scaling-book/gpus/"


@dataclass(frozen=True)
class Chip:
    """One chip's published rates. GB is 1e9 bytes, a direction is one way over a link."""

    name: str
    flops: float  # FLOP/s of products of bfloat16, dense (without sparsity); a multiply-and-add counts as 2
    hbm: float  # bytes of memory
    hbm_rate: float  # bytes/s between memory and chip
    links: int  # interconnect links of the chip
    link_rate: float  # bytes/s over one link, in one direction
    switched: bool  # do the links go to a switch, so that all of them reach any chip (GPU), or to neighbours (TPU)?
    sources: tuple[str, ...]  # pages that print these numbers
    note: str  # where sources disagree, which one was taken

    @property
    def network(self) -> float:
        """Bytes/s that the chip sends, over all its links, in one direction. Data sheets print twice this."""
        return self.links * self.link_rate

    @property
    def ring_rate(self) -> float:
        """Bytes/s that the chip sends in a ring: to both neighbours on a torus, over all links through a switch."""
        return self.network if self.switched else 2 * self.link_rate

    @property
    def flops_per_hbm_byte(self) -> float:
        """FLOPs that the chip can do while it reads or writes one byte of memory: the ridge of its memory roofline."""
        return self.flops / self.hbm_rate

    @property
    def flops_per_ring_byte(self) -> float:
        """FLOPs that the chip can do while it sends one byte in a ring: the ridge of its network roofline."""
        return self.flops / self.ring_rate


def _nvidia(name: str, hbm: float, hbm_rate: float, page: str) -> Chip:
    note = "NVIDIA prints 1,979 TFLOP/s with sparsity, half without; NVLink 900 GB/s, both directions of 18 links."
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
            note="Interconnect: Google 400 GB/s per chip, both directions of 4 links (older page: 1,600 Gbit/s, one "
            "direction); the book takes 45 GB/s a link and direction. Memory: 819 GB/s on older pages and, rounded, in "
            "the book; 800 GiB/s on Google's newer page.",
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
            note="Interconnect: Google 1,200 GB/s per chip, both directions of 6 links (older page: 4,800 Gbit/s, one "
            "direction); the book takes 90 GB/s a link and direction. Memory: 95 GB on the older page, 95 GiB on the "
            "newer, 96 GB in the book; 2,575 GiB/s on the newer page is the same rate.",
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
            note="Interconnect: Google 800 GB/s per chip, both directions of 4 links (older page: 3,584 Gbit/s, one "
            "direction); the book takes 90 GB/s a link and direction. Memory: 1,640 GB/s on the older page, 1,600 on "
            "the newer. The book rounds to 920 TFLOP/s.",
        ),
        _nvidia("H100 SXM", 80e9, 3.35e12, "https://www.nvidia.com/en-us/data-center/h100/"),
        _nvidia("H200 SXM", 141e9, 4.8e12, "https://www.nvidia.com/en-us/data-center/h200/"),
    )
}
