"""Exercises of notebook 07, Collectives and what they cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from utils.exercises import Wrong, exercise, number, numbers

Slips = dict[str, list[tuple[float, str]]]  # for each factor: plausible wrong values, and the words that name the slip

MULTIPLY_ADD = "the 2 of a multiply and an add: a product of (B, D) by (D, F) has 2 B D F FLOPs"
WIDTH = [(4, "you took 4 bytes, a float32; a bfloat16 has 2"), (1, "you count numbers; a bfloat16 takes 2 bytes")]
PASSES = (1, "the 2 of an all-reduce is missing: the sums go around once to be added up, and once to be handed out")
UNITS = [
    (1e-3, "your number is in thousands of the unit asked"),
    (1e-6, "your number is in millions of the unit asked"),
    (1e-9, "your number is in thousand millions (giga) of the unit asked"),
    (8, "your number counts bits; a byte has 8"),
]


def named_slips(said: float, formula: Callable[..., float], right: dict[str, float], slips: Slips) -> str:
    """Which factors explain the wrong number? The words of all single slips that give it, else of all pairs, else ''.

    `formula` is called with the factors of `right`, one or two of them replaced by a plausible wrong value.
    """
    options = [(name, value, words) for name, values in slips.items() for value, words in values]
    for count in (1, 2):
        found = []
        for chosen in itertools.combinations(options, count):
            changed = {name: value for name, value, _ in chosen}
            got = formula(**{**right, **changed})
            if len(changed) == count and math.isclose(said, got, rel_tol=1e-3):
                found.append("; and ".join(words for _, _, words in chosen))
        if found:
            return "; or: ".join(found[:3])
    return ""


def _judge(said: float, case: str, unit: str, formula: Callable, right: dict, slips: Slips, advice: str) -> None:
    """Nothing where the number is right to 0.1 %; else Wrong with the slip that explains it."""
    want = formula(**right)
    if math.isclose(said, want, rel_tol=1e-3):
        return
    amount = f"{said:,.0f}" if abs(said) >= 1e4 else f"{said:.5g}"
    said_so = f"{case}you say {amount} {unit}" if case else f"You say {amount} {unit}"
    words = named_slips(said, formula, right, slips)
    off = said / want
    times = f"{off:.4g} times too large" if off > 1 else f"{1 / off:.4g} times too small"
    raise Wrong(f"{said_so}, {times}: {words or advice}.")


def _judge_bytes_of_gradient(answer):
    said = number(answer(), "one number, of bytes", positive=True)
    _judge(
        said,
        "",
        "bytes",
        lambda passes, share, numbers, width, unit: passes * share * numbers * width * unit,
        {"passes": 2, "share": 15 / 16, "numbers": 50e6, "width": 2, "unit": 1},
        {
            "passes": [PASSES],
            "share": [
                (1, "(n - 1)/n is missing: on 16 devices 15 of 16 parts are sent, its own part a device keeps"),
                (7.5, "you send the whole array 15 times, the naive ring of lesson 05b; a step sends a 16th of it"),
                (15, "you send the whole array in each of the 15 steps, twice; a step sends a 16th of it"),
                (16, "you send the whole array 16 times; 15 steps send a 16th each"),
                (7 / 8, "you took 8 devices; here are 16"),
                (1 / 16, "you count one step; there are 15 in each half"),
                (
                    15 / 256,
                    "you divide by n twice; a step sends a 16th of the array, and there are 15 steps in each half",
                ),
                (15, "you add up over 16 devices; what one device sends is asked"),
            ],
            "width": WIDTH,
            "unit": UNITS,
        },
        "compare passes x share x numbers x bytes of each",
    )


@exercise(
    _judge_bytes_of_gradient,
    "Size of the array in bytes first. Then: how many times does it go around, and which part of it does a device send each time?",
)
def bytes_of_gradient():
    """Return the bytes that each device sends."""
    size = 50e6 * 2  # bytes
    return 2 * 15 / 16 * size


def _judge_microseconds_of_gather(answer):
    said = numbers(answer(), (2,), "two numbers: µs on the ring, µs on the torus")
    said = [
        number(value, "a time in µs", said=f"{name}: you say", positive=True)
        for name, value in zip(("Ring", "Torus"), said, strict=True)
    ]
    if math.isclose(said[0], 9) and math.isclose(said[1], 18):
        raise Wrong("You have the two in the other order: the ring first, then the torus.")

    def formula(steps, blocks, block, bits, directions, alpha, unit):
        return (steps * alpha + blocks * block * bits / (400e9 * directions)) * unit

    right = {"blocks": 15, "block": 10_000, "bits": 8, "directions": 1, "alpha": 1e-6, "unit": 1e6}
    slips = {
        "blocks": [
            (16, "you let a device receive all 16 blocks; it has one of them already"),
            (1, "you count the bytes of one block; 15 come from elsewhere"),
            (0, "the bytes are missing: 15 blocks have to pass as well"),
            (15 / 16, "10,000 bytes is what each chip puts in, b; an all-gather sends (n - 1) b, not (n - 1)/n b"),
            (30, "the 2 belongs to an all-reduce; an all-gather goes around once"),
            (6, "each step along the second axis sends a row of 4 blocks, not one: 3 + 3 x 4"),
            (24, "along the first axis the blocks are single, along the second rows of 4: 3 x 1 + 3 x 4"),
        ],
        "bits": [(1, "400 Gbit/s are bits: 50 GB/s")],
        "directions": [(2, "400 Gbit/s is one direction already, and you send in one; do not double it")],
        "alpha": [(0, "the start-up time is missing: steps x 1 µs"), (1e-3, "1 µs is 1e-6 s")],
        "unit": [(1, "your number is in seconds; µs are asked"), (1e3, "your number is in ms; µs are asked")],
    }
    for case, value, steps, wrong in (
        (
            "Ring: ",
            said[0],
            15,
            [
                (16, "a ring of 16 has 15 steps: the last would bring your own block"),
                (8, "8 steps are enough if you send both ways; here it is one"),
                (30, "the 2 belongs to an all-reduce"),
                (1, "there are 15 steps, each with its own start-up"),
            ],
        ),
        (
            "Torus: ",
            said[1],
            6,
            [
                (8, "an axis of 4 has 3 steps, not 4"),
                (3, "3 steps are one axis; there are two, one after the other"),
                (4, "an axis of 4 has 3 steps, and there are two axes"),
                (15, "15 steps are those of the ring; an axis of 4 has 3"),
                (12, "the 2 belongs to an all-reduce"),
                (9, "the axes come one after the other: 3 + 3 steps, not 3 x 3"),
            ],
        ),
    ):
        advice = "T = steps x 1 µs + bytes / (50,000 bytes per µs): check the steps, then the bytes"
        _judge(value, case, "µs", formula, {**right, "steps": steps}, {"steps": wrong, **slips}, advice)


@exercise(
    _judge_microseconds_of_gather,
    "400 Gbit/s are 50,000 bytes per µs. On both wirings a device receives 15 blocks. Along an axis of 4 there are 3 steps.",
)
def microseconds_of_gather():
    """Return two estimates in µs: on a ring of 16, on a 4 by 4 torus."""
    passing = 15 * 10_000 / 50_000  # bytes over bytes per µs
    return 15 * 1 + passing, (3 + 3) * 1 + passing


def _judge_crossover_bytes(answer):
    for n, alpha, beta in ((8, 1e-6, 50e9), (64, 2e-6, 100e9)):
        said = number(answer(n, alpha, beta), "one number, of bytes", positive=True)
        _judge(
            said,
            f"For n = {n}, alpha = {alpha:g} s, beta = {beta:g} bytes/s ",
            "bytes",
            lambda steps, sent, alpha, beta, unit: steps * alpha * beta / sent * unit,
            {"steps": 2 * (n - 1), "sent": 2 * (n - 1) / n, "alpha": alpha, "beta": beta, "unit": 1},
            {
                "steps": [
                    (n - 1, "n - 1 steps are one half of an all-reduce; it has 2 (n - 1)"),
                    (2 * n, "a ring has n - 1 steps in each half, not n"),
                    (1, "you count one step; there are 2 (n - 1), each with its own start-up"),
                    (n, "a ring all-reduce has 2 (n - 1) steps"),
                ],
                "sent": [
                    ((n - 1) / n, "(n - 1)/n of the array is sent in one half; an all-reduce sends it twice"),
                    (2, "(n - 1)/n is missing: a device sends 2 (n - 1)/n of the array"),
                    (1, "you send the array once; an all-reduce sends 2 (n - 1)/n of it"),
                    (2 * (n - 1), "you send the whole array in each step; a step sends an n-th"),
                ],
                "beta": [
                    (2 * beta, "the model has one direction; do not double beta"),
                    (beta / 8, "beta is in bytes/s already; do not divide by 8"),
                    (1 / beta, "steps x alpha = bytes / beta, so bytes = steps x alpha x beta"),
                ],
                "unit": UNITS,
            },
            "steps x alpha = bytes sent / beta; solve for the size of the array",
        )


@exercise(
    _judge_crossover_bytes,
    "In one step a device sends size/n bytes and waits alpha. When are the two times of one step equal?",
)
def crossover_bytes(n, alpha, beta):
    """Return the bytes of the array; alpha in seconds a step, beta in bytes/s."""
    return n * alpha * beta  # each step sends an n-th: size / n / beta = alpha


def _judge_link_rate(answer):
    said = number(answer(), "one number, of bytes per second", positive=True)
    _judge(
        said,
        "",
        "bytes/s",
        lambda total, bits, directions, links, giga, unit: total * giga / bits / directions / links * unit,
        {"total": 2400, "bits": 8, "directions": 2, "links": 3, "giga": 1e9, "unit": 1},
        {
            "bits": [(1, "2,400 Gbit/s are bits; a byte has 8")],
            "directions": [
                (1, "the sheet adds up both directions; one of them gets half"),
                (0.5, "the sheet adds up both directions already; halve it, do not double it"),
            ],
            "links": [
                (1, "that is the whole chip, all 3 links; one link is asked"),
                (1 / 3, "2,400 Gbit/s is per chip already; divide by the 3 links, do not multiply"),
                (6, "you divide by the links and the directions once too often: 3 links, each with 2 directions"),
            ],
            "giga": [(2**30, "data sheets count with G = 1e9, not with 2**30 (GB, not GiB)")],
            "unit": UNITS[:3],
        },
        "bits to bytes, both directions to one, chip to link: three divisions",
    )


@exercise(_judge_link_rate, "Divide three times: bits to bytes, both directions to one, the chip to one link.")
def link_rate():
    """Return bytes per second over one link, in one direction."""
    return 2400e9 / 8 / 2 / 3


def _judge_smallest_d(answer):
    for n, flops, rate in ((8, 197e12, 100e9), (16, 989.5e12, 450e9)):
        said = number(answer(n, flops, rate), "one number, a size", positive=True)
        _judge(
            said,
            f"For n = {n}, {flops:g} FLOP/s and {rate:g} bytes/s ",
            "for D",
            lambda passes, share, width, rate, share_of_work, per_element, turned, flops: (
                (passes * share * width * flops / (rate * per_element * share_of_work)) ** turned
            ),
            {
                "passes": 2,
                "share": (n - 1) / n,
                "width": 2,
                "rate": rate,
                "share_of_work": 1 / n,
                "per_element": 2,
                "turned": 1,
                "flops": flops,
            },
            {
                "passes": [PASSES],
                "share": [
                    (1, "(n - 1)/n is missing: a chip sends 2 (n - 1)/n of the result"),
                    (n - 1, "you send the whole result in each step; a step sends an n-th"),
                ],
                "width": WIDTH,
                "rate": [
                    (2 * rate, "bytes_per_second is what a chip sends; do not add the other direction"),
                    (rate / 8, "bytes_per_second is in bytes already; do not divide by 8"),
                ],
                "share_of_work": [(1, "n chips share the work: each does 2 B D F / n FLOPs, and you let each do all")],
                "per_element": [(1, f"{MULTIPLY_ADD}; you count half")],
                "turned": [(-1, "you have the quotient upside down: D grows with FLOP/s over bytes/s")],
            },
            "set 2 (n - 1)/n x 2 B F / W equal to 2 B D F / (n C), and solve for D",
        )


@exercise(
    _judge_smallest_d,
    "A chip sends 2 (n - 1)/n x 2 B F bytes and computes 2 B D F / n FLOPs. Set the two times equal; B and F cancel.",
)
def smallest_d(n, flops_per_second, bytes_per_second):
    """Return the D at which sending takes as long as computing, on n chips."""
    return 2 * (n - 1) * flops_per_second / bytes_per_second
