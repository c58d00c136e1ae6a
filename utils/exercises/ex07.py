"""Exercises of notebook 07, Collectives and what they cost."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from utils.exercises import Prediction, Wrong, amount, exercise, number, off_by

# What the lesson asks before its cells count it.
PARTS = {8 / 7: "(n - 1)/n is missing: of eight parts seven are sent, its own a device keeps"}
NUMBERS = {1 / 4: "you count numbers; a float32 takes 4 bytes"}

slots = Prediction(
    "",
    {},
    {
        "cells": {
            8: "so many an all-gather ends with; a reduce-scatter gives away, and what was given is empty",
            7: "so many were given away, 7 steps x 8 devices; the others are left",
            1 / 8: "each of the eight devices is left with one",
        },
        "steps": {
            4 / 3: "the diagonal, 8 cells, is there before the first step",
            3.5 / 3: "the diagonal, 8 cells, is there before the first step",
            5 / 3: "a step fills a cell on each of the eight devices, and it begins with 8 cells",
        },
    },
)
ring_exchange = Prediction(
    "times b",
    {
        0.25: "so much is sent directly; on the ring each device on the way sends a block once more",
        2: "not all eight blocks go in each of 7 steps: your own stays, and one drops out at each device",
        49 / 28: "not 7 blocks in each of 7 steps: one has arrived and drops out at each device",
        36 / 28: "your own block stays: the bundles have 7, 6, ... 1 blocks",
        8: "you count blocks; one has b/8 bytes",
        1 / 2: "2 x 7/8 is an all-reduce; here bundles of 7, 6, ... 1 blocks travel",
        4096: "you count bytes; b is 4,096 of them",
    },
)
wires = Prediction(
    "times b",
    {
        8: "you count blocks; one has b/8 bytes",
        4096: "you count bytes; b is 4,096 of them",
    },
    {
        "all to the right": {
            1 / 4: "so much a device sends off; a block for the device s places on passes over s wires",
            36 / 28: "seven blocks leave, for 1 to 7 places on: 1 + 2 + ... + 7 passes over wires",
            8: "that counts blocks, or the wires of all eight devices; one wire is asked, in multiples of b",
        },
        "the shorter way": {
            1.6: "that is both directions of a wire together; one is asked",
            0.8: "here all blocks for four places on go to the right; so it would be if the two ways shared them",
            1.4: "the shorter way is not half of it: 1, 2, 3, 4 places to the right, and 3, 2, 1 to the left",
            2.8: "a block for five places on goes three to the left",
            0.7: "so much a device sends off; a block passes over up to four wires",
            0.6: "that is the other direction, 3 + 2 + 1; with the blocks for four places on, the right one is busier",
        },
    },
)
torus = Prediction(
    "",
    {},
    {
        "steps": {
            6 / 4: "an axis of n devices takes n - 1 steps, not n: 3 and 1",
            3 / 4: "that is the axis of four; the axis of two takes one more",
            2: "an axis of n devices takes n - 1 steps, not n, and the steps of the two axes are added: 3 + 1",
            7 / 4: "that is the ring; along an axis only its own devices pass blocks on",
            2 / 4: "there are two axes, but the one of four takes 3 steps",
        },
        "bytes, times the ring's": {
            4 / 7: "there are fewer steps, but in the last one a device sends four blocks: 1 + 1 + 1 + 4 = 7",
            8 / 7: "a device has one block of eight; seven have to come, whichever way",
            2: "seven blocks have to come, whichever way, and none comes twice",
            1 / 2: "seven blocks have to come, whichever way",
            28_672: "you give bytes; a multiple of the ring's is asked",
        },
    },
)
crossover = Prediction(
    "",
    {},
    {
        "kB": {
            7 / 8: "7 x 50 kB is what passes over a wire; that is 7/8 of the array",
            1 / 8: "that is one block; the whole array is asked",
            1 / 7: "you count the start of one step; there are seven",
            7: "you send the whole array in one step; a step sends an eighth of it",
            2: "one way round: a wire in one direction, 50 GB/s",
            1 / 2: "all 7 steps start, and 7 blocks pass: compare 7 x 1 µs with 7/8 of the array over 50 GB/s",
            1000: "you give bytes; a kB has 1,000",
            1 / 1000: "you give MB; a MB has 1,000 kB",
        },
        "share for half": {
            2 / 3: "the bytes take half the time, and the steps as long as before",
            4 / 3: "the steps take as long as before, but the bytes take half the time",
            1 / 3: "of the time at the crossover one half is steps, the other bytes; halve the bytes alone",
            2: "3/2 is of the steps' time, or of the bytes'; the sum of the two is asked",
            14: "you give µs; a share of the 14 µs is asked",
            100: "you give percent; a share of 1 is asked",
        },
    },
    within=0.02,
)
both_ways = Prediction(
    "kB",
    {1000: "you give bytes; a kB has 1,000"},
    {
        "short way": {
            2: "there are fewer steps as well: 4, where one way round has 7",
            1 / 2: "over a wire pass fewer blocks as well: 4, where one way round has 7",
            7 / 4: "there are fewer steps as well: 4, where one way round has 7",
            4 / 7: "over a wire pass fewer blocks as well: 4, where one way round has 7",
            8 / 7: "the last step goes to the right alone; to the right there are 4 steps, with a block in each",
        },
        "halves": {
            1 / 2: "each half goes all the way round: as many steps as before, with half the bytes over a wire",
            1 / 4: "half the bytes need twice the array to take as long as the same steps",
            2: "a wire carries half of the bytes in one direction, not a quarter",
        },
    },
    within=0.02,
)
star = Prediction(
    "times b",
    {4096: "you count bytes; b is 4,096 of them"},
    {
        "device 0": {
            1 / 7: "the sum goes to each of seven devices, and each time it is sent anew",
            8 / 7: "its own copy of the sum need not be sent",
            2: "it receives 7 b and sends 7 b; what it sends is asked",
            1 / 4: "that is the mean over all eight; device 0 sends more",
        },
        "the others": {
            7 / 4: "that is the mean over all eight; these send less",
            2: "each sends once and receives once; what it sends is asked",
            7 / 8: "each sends its whole array to device 0",
            7: "each sends to device 0 alone",
            0: "device 0 needs their arrays",
        },
    },
)
of_the_bound = Prediction(
    "times the bound",
    {},
    {
        "sum_and_keep": {
            1 / 2: "psum brings the whole sum to every device; cutting it afterwards saves nothing",
            7 / 8: "1.75 is in multiples of b; the bound is 7/8 b",
            4: "an all-reduce is two halves, each of which sends (n - 1)/n",
        },
        "gather_and_add": {
            1 / 8: "everybody gets all eight arrays, not its eighth of each",
            7 / 8: "7 is in multiples of b; the bound is 7/8 b",
            1 / 4: "that is the psum; here all eight arrays go to everybody",
            1 / 2: "every device gets 7 arrays of b bytes, and the bound is 7/8 b",
        },
        "exchange_and_add": {
            8: "each sends one eighth to each of seven devices, not all of its array",
            7: "each sends one eighth to each of seven devices, not all of its array",
            7 / 8: "7/8 is in multiples of b; the bound is 7/8 b",
            4: "3.5 b is what passes over a wire of a ring, one way; asked is what a device sends off",
            2: "nothing is handed out again: each device needs its own eighth alone",
            1 / 8: "each sends an eighth to seven devices, not to one of them",
            1 / 7: "each sends an eighth to seven devices, not to one of them",
        },
    },
)
too_many_axes = Prediction(
    "bytes",
    {
        **PARTS,
        **NUMBERS,
        4 / 7: "that is a group of two; over both axes it has eight, so 2 (n - 1)/n is 7/4 instead of 1",
        10 / 7: "the two axes are one group of eight, not an all-reduce along each",
        6 / 7: "that is a group of four, along 'y' alone; over both axes it has eight",
        1 / 2: "that is half of an all-reduce; the mean has to be handed out, too",
        8: "that is the whole array in each step; a step sends an n-th of it",
        2: "b is what one device puts in, 4,096 bytes, not both halves of the batch",
        4: "that is the whole array seven times, as in the naive ring; a step sends an n-th",
    },
)
TWO_LINKS = {
    2: "both ways round the ring is two links",
    1 / 2: "a ring uses two of the four links, one to each side",
    1 / 4: "that is all four links, both directions; a ring sends over two links, in one direction each",
}
ridge = Prediction(
    "FLOPs",
    {
        10: "divide 1e12s by 1e9s: 197 by 100 is 1.97, times 1,000",
        1 / 1000: "divide 1e12s by 1e9s: 197 by 100 is 1.97, times 1,000",
        1 / 100: "divide 1e12s by 1e9s: 197 by 100 is 1.97, times 1,000",
        8: "GB/s are bytes already; do not divide by 8",
        1 / 8: "you count bits, or all eight ways of four links; a ring sends bytes, over two links",
    },
    {
        "TPU v5e": TWO_LINKS,
        "TPU v6e": TWO_LINKS,
        "H100 SXM": {
            18: "through a switch a ring can use all 18 links",
            9: "through a switch a ring can use all 18 links, not two of them",
            1 / 2: "a device that sends uses one direction: 18 x 25 GB/s",
            2: "dense: 989.5 TFLOP/s is half of what NVIDIA prints already",
        },
    },
    within=0.1,
)
travels = Prediction(
    "bytes",
    {
        **PARTS,
        **NUMBERS,
        1 / 2: "you took 2 bytes, a bfloat16; here it is a float32, with 4",
        2: "the 2 belongs to an all-reduce; a gather or a reduce-scatter goes around once",
        8: "you send the whole in each step; a step sends an n-th",
        1 / 7: "you count one step of seven",
        1 / 8: "that is (n - 1)/n of one device's part; it is (n - 1)/n of the whole",
    },
)
corner = Prediction(
    "",
    {},
    {
        "corner": {
            2: "W is the rate of a ring, two links: 100 GB/s, not 50",
            1 / 2: "W is the rate of a ring, two links in one direction each: 100 GB/s",
            1 / 4: "W is the rate of a ring, two links in one direction each, not all of 400 GB/s",
            1 / 7: "that is C / W; the corner lies at (n - 1) C / W",
            8 / 7: "(n - 1), not n",
            241 / 13790: "241 is the quotient of the chip's memory; what travels goes over links",
            9: "that is the corner of 64 chips",
        },
        "64 chips": {
            1 / 9: "each has an eighth of the FLOPs, but 8,192 is below the corner: the time is that of sending",
            64 / 9: "each has an eighth of the FLOPs, but 8,192 is below the corner: the time is that of sending",
            8 / 9: "both wait for the wire, and each chip of 64 sends a little more: (n - 1)/n of what travels",
            64 / 81: "that is the time on 8 by the time on 64; or how many times as fast it is",
            8: "that is (n - 1), by which the corner moves; a chip sends (n - 1)/n",
            0.669: "that is the sum of the two times; here the larger counts",
        },
    },
    within=0.05,
)

Case = tuple[Any, ...]
Of = Callable[..., Any]  # of the arguments of a case


def _judge_formula(
    answer: Of,
    cases: Sequence[Case],
    spelled: str,
    unit: str,
    formula: Callable[..., float],
    right: dict[str, Of],
    slips: dict[str, list[tuple[Of, str]]],
    whole: Sequence[tuple[Of, str]],
    advice: str,
) -> None:
    """Nothing where the answer is `formula(**right)` in every case; else Wrong, with the slips that explain all of it.

    `right`: each factor, of a case's arguments. `slips`: plausible wrong values of a factor. `whole`: wrong answers
    that are no product of them. One slip that gives every number, else two at once, else the `advice`; where more than
    two explain it, the advice as well.
    """
    said = [number(answer(*case), f"one number, of {unit}", positive=True) for case in cases]

    def given(changed: dict[str, Of]) -> list[float]:
        return [formula(**{name: of(*case) for name, of in {**right, **changed}.items()}) for case in cases]

    def is_said(found: Sequence[float]) -> bool:
        return bool(np.allclose(said, found, 1e-4, 0))

    if is_said(want := given({})):
        return
    first = next(i for i, (a, b) in enumerate(zip(said, want, strict=True)) if not math.isclose(a, b, rel_tol=1e-4))
    case = spelled.format(*cases[first])
    if len({round(math.log(value), 9) for value in said}) == 1:
        raise Wrong(f"You return {amount(said[0])} whatever is handed in; return a formula of the arguments.")
    words = [why for of, why in whole if is_said([of(*case) for case in cases])]
    options = [(name, of, why) for name, values in slips.items() for of, why in values]
    for count in (1, 2):
        for chosen in itertools.combinations(options, count) if not words else ():
            changed = {name: of for name, of, _ in chosen}
            if len(changed) == count and is_said(given(changed)):
                told = [why if count == 1 else re.split(r"[:;] ", why)[0] for *_, why in chosen]
                words.append(", and ".join(dict.fromkeys(told)))
        words = list(dict.fromkeys(words))
    why = "; or: ".join(words) if 0 < len(words) <= 2 else advice
    of = f" {unit}" if unit[0].islower() else ""
    raise Wrong(f"{case} you say {amount(said[first])}{of}, {off_by(said[first], want[first])}: {why}.")


def _times(factor: float) -> Of:
    return lambda *case: factor


UNITS = [
    (_times(1e-3), "your number is in thousands of the unit asked"),
    (_times(1e-6), "your number is in millions of the unit asked"),
    (_times(1e-9), "your number is in thousand millions (giga) of the unit asked"),
    (_times(8), "your number counts bits; a byte has 8"),
]


def _judge_gradient_bytes(answer):
    def times(factor):
        return lambda numbers, data, model: factor * 2 * (data - 1) / data * numbers / model * 2

    _judge_formula(
        answer,
        [(50_000_000, 8, 2), (30_000_000, 3, 5), (77_000_000, 16, 11), (12_000_000, 6, 4)],
        "For {:,} parameters on {} x {} devices",
        "bytes",
        lambda passes, share, numbers, pieces, width, unit: passes * share * numbers / pieces * width * unit,
        {
            "passes": lambda p, d, m: 2,
            "share": lambda p, d, m: (d - 1) / d,
            "numbers": lambda p, d, m: p,
            "pieces": lambda p, d, m: m,
            "width": lambda p, d, m: 2,
            "unit": lambda p, d, m: 1,
        },
        {
            "passes": [
                (
                    _times(1),
                    "the 2 of an all-reduce is missing: sums go around once to be added up, once to be handed out",
                ),
                (_times(4), "you count what a device sends and what it receives; asked is what it sends"),
            ],
            "share": [
                (lambda p, d, m: 1, "(n - 1)/n is missing: its own part a device keeps"),
                (lambda p, d, m: d - 1, "you send the whole piece in each step; a step sends an n-th of it"),
                (lambda p, d, m: d, "you send the whole piece n times; n - 1 steps send an n-th each"),
                (lambda p, d, m: (d * m - 1) / (d * m), "you take all devices for one group; along data are fewer"),
                (lambda p, d, m: (m - 1) / m, "the sums go along data, in groups of data devices, not of model"),
                (lambda p, d, m: 1 / d, "you count one step; there are n - 1 in each half"),
                (lambda p, d, m: (d - 1) / d**2, "you divide by n twice: a step sends an n-th, and there are n - 1"),
                (lambda p, d, m: d / (d - 1), "(n - 1)/n is upside down: a device sends less than the whole"),
                (lambda p, d, m: (d - 1) / (d + 1), "of n parts a device sends n - 1: (n - 1)/n, not (n - 1)/(n + 1)"),
                (
                    lambda p, d, m: math.log2(d),
                    "log2(n) times the whole piece is a tree; in a ring n - 1 steps send an n-th each",
                ),
                (lambda p, d, m: (d - 1) / 2, "a ring has n - 1 steps with an n-th of the piece in each"),
            ],
            "pieces": [
                (lambda p, d, m: 1, "that is the gradient of all weights: a device has one piece of `model`"),
                (lambda p, d, m: d, "you cut the weights along data: along it they are copied"),
                (lambda p, d, m: d * m, "you cut the weights along both axes: along data they are copied"),
                (lambda p, d, m: 1 / m, "you multiply by the pieces; `parameters` counts all weights"),
            ],
            "width": [
                (_times(4), "you took 4 bytes, a float32; a bfloat16 has 2"),
                (_times(1), "you count numbers; a bfloat16 takes 2 bytes"),
            ],
            "unit": [*UNITS, (_times(1 / 2**20), "your number is in MiB; bytes are asked")],
        },
        [
            (
                times(0.5),
                "is the 2 of an all-reduce missing, do you count numbers instead of bytes, or one of two directions where "
                "the ring goes one way round",
            ),
            (
                times(2),
                "did you take 4 bytes, a float32, where a bfloat16 has 2, or add what a device receives to what it sends",
            ),
            (lambda p, d, m: 1.75 * p, "1.75 bytes a parameter are those of 8 x 2 devices; here are data x model"),
            (
                lambda p, d, m: 2 * (d - 1) / d * p / m * 2 * d * m,
                "you send the whole gradient in each step, or you add up over all devices; what each one sends is asked",
            ),
            (
                lambda p, d, m: 2 * (d - 1) / d * p / m * 2 * d,
                "you send the whole piece in each step, where a step sends an n-th, or you add up over the devices",
            ),
            (
                lambda p, d, m: 2 * (d - 1) / d * p / m * 2 + 2 * (m - 1) / m * p / d * 2,
                "along model nothing is added up: each device there has another piece",
            ),
            (
                lambda p, d, m: 2 * (d - 1) / d * p / m * 2 + 2 * (m - 1) / m * p / m * 2,
                "along model nothing is added up: each device there has another piece",
            ),
        ],
        "compare the size of a device's piece in bytes, the size of the group that adds it up, and the passes",
    )


@exercise(
    _judge_gradient_bytes,
    "Which part of the gradient does a device have, in bytes? How many devices add it up? Then 2 (n - 1)/n of it.",
)
def gradient_bytes(parameters, data, model):
    """Return the bytes that each device sends, on a mesh of data x model devices."""
    piece = parameters / model * 2  # bytes
    return 2 * (data - 1) / data * piece


def _judge_gather_seconds(answer):
    _judge_formula(
        answer,
        [
            ((16,), 10_000, 1e-6, 50e9),
            ((4, 4), 10_000, 1e-6, 50e9),
            ((2, 3, 5), 70_000, 2e-6, 100e9),
            ((7, 2), 300_000, 3e-6, 40e9),
            ((4, 2, 6), 20_000, 1e-6, 25e9),
        ],
        "For sizes {}, {:,} bytes, alpha = {:g} s, beta = {:g} bytes/s",
        "seconds",
        lambda steps, blocks, block, bits, directions, alpha, beta, unit: (
            (steps * alpha + blocks * block * bits / (beta * directions)) * unit
        ),
        {
            "steps": lambda s, *_: sum(size - 1 for size in s),
            "blocks": lambda s, *_: math.prod(s) - 1,
            "block": lambda s, block, alpha, beta: block,
            "bits": _times(1),
            "directions": _times(1),
            "alpha": lambda s, block, alpha, beta: alpha,
            "beta": lambda s, block, alpha, beta: beta,
            "unit": _times(1),
        },
        {
            "steps": [
                (lambda s, *_: math.prod(s) - 1, "n - 1 steps are those of one ring: an axis of n has n - 1, added up"),
                (lambda s, *_: sum(s), "an axis of n devices takes n - 1 steps, not n"),
                (
                    lambda s, *_: sum(s) - 1,
                    "each axis takes one step less than it has devices, not all of them together",
                ),
                (lambda s, *_: math.prod(size - 1 for size in s), "the axes come one after the other; add their steps"),
                (lambda s, *_: max(s) - 1, "you count the longest axis alone; the axes come one after the other"),
                (lambda s, *_: s[0] - 1, "you count the steps of the first axis alone"),
                (lambda s, *_: s[-1] - 1, "you count the steps of the last axis alone"),
                (lambda s, *_: len(s), "you count one step for each axis; an axis of n takes n - 1"),
                (_times(1), "you count one step; each step has a start-up of its own"),
                (_times(0), "the start-up time is missing: steps x alpha"),
                (lambda s, *_: 2 * sum(size - 1 for size in s), "twice the steps belong to an all-reduce"),
                (lambda s, *_: sum(math.ceil(size / 2) for size in s), "half the steps belong to both ways round"),
                (lambda s, *_: sum(size // 2 for size in s), "half the steps belong to both ways round"),
                (lambda s, *_: sum((size - 1) / 2 for size in s), "half the steps belong to both ways round"),
                (lambda s, *_: math.log2(math.prod(s)), "log2(n) steps are those of a tree"),
                (
                    lambda s, *_: 2 * (math.sqrt(math.prod(s)) - 1),
                    "2 (√n - 1) steps are those of a square; here each axis has a size of its own",
                ),
                (lambda s, *_: sum(math.log2(size) for size in s), "log2(n) steps are those of a tree"),
            ],
            "blocks": [
                (lambda s, *_: math.prod(s), "you let a chip receive all n blocks; it has one of them already"),
                (_times(1), "you count the bytes of one block; all the others come, too"),
                (_times(0), "the bytes are missing"),
                (
                    lambda s, *_: sum(size - 1 for size in s),
                    "along a later axis a step sends all blocks that came before",
                ),
                (lambda s, *_: math.prod(size - 1 for size in s), "all blocks but its own have to come to a chip"),
                (
                    lambda s, *_: sum((size - 1) * before for size, before in zip(s, (1, *s), strict=False)),
                    "a step sends what all axes before it have gathered, not the one before alone",
                ),
                (
                    lambda s, *_: 1 - 1 / math.prod(s),
                    "`block` is what each chip puts in: an all-gather sends (n - 1) b",
                ),
                (lambda s, *_: 2 * (math.prod(s) - 1), "the 2 belongs to an all-reduce"),
                (
                    lambda s, *_: math.prod(s) * sum(size - 1 for size in s),
                    "you send all blocks in each step; a step sends those that one neighbour lacks",
                ),
                (
                    lambda s, *_: (math.prod(s) - 1) * sum(size - 1 for size in s),
                    "you send all blocks in each step; a step sends those that one neighbour lacks",
                ),
                (lambda s, *_: s[-1] - 1, "you count the blocks of the last axis alone"),
                (lambda s, *_: s[0] - 1, "you count the blocks of the first axis alone"),
            ],
            "bits": [
                (_times(8), "beta is in bytes/s, and `block` in bytes; do not multiply by 8"),
                (_times(1 / 8), "beta is in bytes/s, and `block` in bytes; do not divide by 8"),
            ],
            "directions": [
                (_times(2), "do not double the rate; you send one way round"),
                (_times(0.5), "beta is one direction already"),
                (lambda s, *_: len(s), "one axis after the other: the wires of the others rest"),
            ],
            "beta": [
                (lambda s, block, alpha, beta: 1 / beta, "bytes / beta; you multiply by beta"),
                (lambda s, block, alpha, beta: beta * 2**30 / 1e9, "beta is in bytes/s already; G is 1e9, not 2**30"),
                (lambda s, block, alpha, beta: beta / 2**30 * 1e9, "beta is in bytes/s already; G is 1e9, not 2**30"),
            ],
            "unit": [
                (_times(1e6), "your number is in µs; seconds are asked"),
                (_times(1e3), "your number is in ms; seconds are asked"),
            ],
        },
        [
            (
                lambda s, block, alpha, beta: max(
                    sum(size - 1 for size in s) * alpha, (math.prod(s) - 1) * block / beta
                ),
                "that is the larger of the two times, as the book has it; the sum is asked",
            ),
            (
                lambda s, block, alpha, beta: sum(size - 1 for size in s) * max(alpha, block / beta),
                "that is the larger of the two in each step; the sum is asked, and later steps send more",
            ),
            (
                lambda s, block, alpha, beta: (
                    2 * (sum(size - 1 for size in s) * alpha + (math.prod(s) - 1) * block / beta)
                ),
                "twice the time belongs to an all-reduce",
            ),
            (
                lambda s, block, alpha, beta: sum(
                    (size - 1) * (alpha + math.prod(s[: i + 1]) * block / beta) for i, size in enumerate(s)
                ),
                "along an axis a step sends what a chip had before this axis; you send what it has after it",
            ),
            (
                lambda s, block, alpha, beta: (math.prod(s) - 1) * (alpha + block / beta),
                "n - 1 steps are those of one ring: an axis of n has n - 1 steps of its own",
            ),
        ],
        "T = steps x alpha + bytes / beta: check the steps of each axis, then the blocks that a chip receives",
    )


@exercise(
    _judge_gather_seconds,
    "An axis of size n has n - 1 steps; add up over the axes. However many axes, how many blocks must come to a chip?",
)
def gather_seconds(sizes, block, alpha, beta):
    """Return seconds; alpha in seconds a step, beta in bytes/s one way."""
    steps = sum(size - 1 for size in sizes)
    blocks = math.prod(sizes) - 1  # all but its own
    return steps * alpha + blocks * block / beta


def _judge_exchange_crossover(answer):
    _judge_formula(
        answer,
        [(8, 1e-6, 50e9), (64, 2e-6, 100e9), (5, 3e-6, 40e9)],
        "For n = {}, alpha = {:g} s, beta = {:g} bytes/s",
        "bytes",
        lambda steps, share, alpha, beta, unit: steps * alpha * beta / share * unit,
        {
            "steps": lambda n, a, b: n - 1,
            "share": lambda n, a, b: (n - 1) / 2,
            "alpha": lambda n, a, b: a,
            "beta": lambda n, a, b: b,
            "unit": _times(1),
        },
        {
            "steps": [
                (lambda n, a, b: 1, "you count the start of one step; there are n - 1"),
                (lambda n, a, b: n, "there are n - 1 steps, not n"),
                (lambda n, a, b: 2 * (n - 1), "2 (n - 1) steps are those of an all-reduce"),
                (lambda n, a, b: math.log2(n), "log2(n) steps are those of a tree; a ring has n - 1"),
                (lambda n, a, b: n * (n - 1) / 2, "you start each block by itself; a bundle starts once"),
                (lambda n, a, b: n / 2, "half the steps belong to both ways round"),
            ],
            "share": [
                (
                    lambda n, a, b: (n - 1) / n,
                    "(n - 1)/n of b is sent off directly; in bundles every device on the way sends a block once more",
                ),
                (
                    lambda n, a, b: n - 1,
                    "you send a whole bundle in each step; one block drops out each time, down to one",
                ),
                (lambda n, a, b: n * (n - 1) / 2, "you count blocks; one has b/n bytes"),
                (lambda n, a, b: (n - 1) ** 2 / n, "you send n - 1 blocks in each step; one drops out each time"),
                (
                    lambda n, a, b: (n + 1) / 2,
                    "your own block does not travel: the bundles have n - 1, n - 2, ... 1 blocks",
                ),
                (lambda n, a, b: 2 * (n - 1) / n, "2 (n - 1)/n is an all-reduce; here bundles travel"),
                (lambda n, a, b: 1 / n, "you count one block"),
                (lambda n, a, b: 1, "you send b once; bundles of n - 1, n - 2, ... 1 blocks are sent"),
                (lambda n, a, b: n / 2, "n - 1, n - 2, ... 1 add up to n (n - 1)/2"),
                (lambda n, a, b: n // 2, "n - 1, n - 2, ... 1 add up to n (n - 1)/2"),
                (lambda n, a, b: (n - 2) / 2, "the first bundle has n - 1 blocks: all but your own"),
            ],
            "alpha": [(lambda n, a, b: 1 / a, "steps x alpha = bytes / beta, so alpha multiplies, too")],
            "beta": [
                (lambda n, a, b: 2 * b, "do not double beta; the bundles go one way round"),
                (lambda n, a, b: b / 8, "do not divide by 8; beta is in bytes/s already"),
                (lambda n, a, b: 1 / b, "steps x alpha = bytes / beta, so beta multiplies the steps"),
            ],
            "unit": UNITS,
        },
        [
            (
                lambda n, a, b: n * a * b,
                "that is a gather's or an all-reduce's, where a step sends an n-th; here the bundles are larger at first",
            ),
            (
                lambda n, a, b: a * b,
                "a step sends half of b on average, not all of it: one block drops out each time",
            ),
            (
                lambda n, a, b: (n - 1) * a * b,
                "that is what passes over a wire at the crossover, or you send b once; b itself is asked, and "
                "each bundle passes",
            ),
            (lambda n, a, b: 2 * n * a * b, "that is a gather's in halves; here bundles go one way round"),
            (
                lambda n, a, b: a * b / 2,
                "a step sends half of b on average, so b is more than what a step sends, not less",
            ),
            (
                lambda n, a, b: 2 * (n - 1) * a * b,
                "you let one bundle of average size pass, or count 2 (n - 1) steps and b once: n - 1 bundles pass, in "
                "as many steps",
            ),
            (lambda n, a, b: 2 * n / (n - 2) * a * b, "the first bundle has n - 1 blocks, all but your own, not n - 2"),
            (
                lambda n, a, b: (n - 1) * a * b * 8 / 28,
                "28 blocks of an eighth are those of eight devices; here are n",
            ),
            (lambda n, a, b: (n - 1) * a * b / 3.5, "3.5 b is what passes with eight devices; here are n"),
            (lambda n, a, b: 7 * a * b / ((n - 1) / 2), "7 steps are those of eight devices; here are n"),
            (lambda n, a, b: n // 2 * a * b * 8 / (n + 2), "that is about the shorter way; here all go one way round"),
            (lambda n, a, b: (n - 1) * a * b * 8 / (n + 2), "that is about the shorter way; here all go one way round"),
            (lambda n, a, b: n * (n - 1) / 2 * a * b, "you start each block by itself, or take the bytes upside down"),
        ],
        "(n - 1) alpha = bytes over a wire / beta: add up the bundles, in multiples of b/n, and solve for b",
    )


@exercise(
    _judge_exchange_crossover,
    "The bundles have n - 1, n - 2, ... 1 blocks of b/n bytes: how many blocks in all? Then set the two times equal.",
)
def exchange_crossover(n, alpha, beta):
    """Return b in bytes; alpha in seconds a step, beta in bytes/s one way."""
    return 2 * alpha * beta  # (n - 1) alpha = n (n - 1)/2 blocks of b/n bytes, over beta


def _judge_ring_rate(answer):
    def share(links, switched):
        return 1 if switched else 2 / links

    _judge_formula(
        answer,
        [(2400, 3, False), (7200, 18, True), (9600, 6, False), (1000, 5, True), (3360, 7, False)],
        "For {:,} Gbit/s, {} links, switched={}",
        "bytes/s",
        lambda total, giga, bits, directions, used, unit: total * giga / bits / directions * used * unit,
        {
            "total": lambda g, n, s: g,
            "giga": _times(1e9),
            "bits": _times(8),
            "directions": _times(2),
            "used": lambda g, n, s: share(n, s),
            "unit": _times(1),
        },
        {
            "giga": [
                (_times(2**30), "data sheets count with G = 1e9, not with 2**30"),
                (_times(1e6), "G is 1e9"),
                (_times(1e12), "G is 1e9"),
                (_times(1e9 * 1e9 / 2**30), "data sheets count with G = 1e9; your number is in units of 2**30/1e9"),
            ],
            "bits": [
                (_times(1), "Gbit/s are bits: a byte has 8"),
                (_times(1 / 8), "a byte has 8 bits; divide, do not multiply"),
                (_times(64), "you divide by 8 twice"),
                (_times(10), "a byte has 8 bits, not 10"),
            ],
            "directions": [
                (_times(1), "the sheet adds up both directions: what is sent uses one of them"),
                (_times(0.5), "the sheet adds up both directions already; halve it, do not double it"),
                (_times(4), "you halve for the directions twice: both ways round is two links, one direction of each"),
            ],
            "used": [
                (lambda g, n, s: 1, "on a torus a ring uses two links, and you take them all"),
                (lambda g, n, s: 2 / n, "through a switch a ring uses all links, and you take two"),
                (lambda g, n, s: 1 / n, "that is one link; a ring uses two on a torus, and all through a switch"),
                (lambda g, n, s: 1 if s else 1 / n, "on a torus a ring uses two links, to the left and to the right"),
                (lambda g, n, s: 2 / n if s else 1, "you have switch and torus the wrong way round"),
                (lambda g, n, s: 1 if s else n, "the sheet is for the whole chip; divide by the links"),
                (lambda g, n, s: n if s else 2, "the sheet is for the whole chip already; do not multiply by links"),
                (lambda g, n, s: n, "the sheet is for the whole chip already; do not multiply by links"),
                (lambda g, n, s: 1 if s else 2, "the sheet is for the whole chip; divide by the links"),
                (lambda g, n, s: 1 if s else 0.5, "you took 4 links; `links` says how many the chip has"),
                (lambda g, n, s: 1 if s else 1 / (n // 2), "`//` rounds down; a chip may have an odd number of links"),
                (lambda g, n, s: 1 if s else 1 / (2 * n), "two links of a torus: multiply by 2, do not divide"),
                (
                    lambda g, n, s: 1 if s else n / 2,
                    "the sheet is for the whole chip; two of its links have a part of that, the smaller the more links there are",
                ),
            ],
            "unit": [
                *UNITS[:3],
                (_times(1 / 2**30), "your number is in GiB/s; bytes/s are asked"),
            ],
        },
        [
            (
                lambda g, n, s: g * 1e9 / 8 * (1 if s else 1 / n),
                "on a torus you are right; through a switch as well a chip sends in one of the two directions",
            ),
            (
                lambda g, n, s: g * 1e9 / 8 * (0.5 if s else 2 / n),
                "through a switch you are right; on a torus as well a link sends in one of the two directions",
            ),
            (
                lambda g, n, s: g * 1e9 / 16 * (0.5 if s else 2 / n),
                "on a torus you are right; through a switch you halve once too often",
            ),
        ],
        "bits to bytes, both directions to one, then the links that a ring uses",
    )


@exercise(
    _judge_ring_rate,
    "Bits to bytes, both directions to one: that is the whole chip. On a torus a ring has two of its links.",
)
def ring_rate(gbit_per_second, links, switched):
    """Return the bytes per second that the chip sends in a ring, both ways round."""
    whole_chip = gbit_per_second * 1e9 / 8 / 2  # bytes/s, one direction
    return whole_chip if switched else whole_chip * 2 / links


def _judge_smallest_d(answer):
    upside_down = "you have FLOP/s over bytes/s upside down: D grows with it"
    _judge_formula(
        answer,
        [(8, 197e12, 100e9), (16, 989.5e12, 450e9), (5, 918e12, 200e9)],
        "For n = {}, {:g} FLOP/s and {:g} bytes/s",
        "D",
        lambda passes, share, width, rate, work, per_element, turned, flops: (
            (passes * share * width * flops / (rate * per_element * work)) ** turned
        ),
        {
            "passes": _times(2),
            "share": lambda n, c, w: (n - 1) / n,
            "width": _times(2),
            "rate": lambda n, c, w: w,
            "work": lambda n, c, w: 1 / n,
            "per_element": _times(2),
            "turned": _times(1),
            "flops": lambda n, c, w: c,
        },
        {
            "passes": [(_times(1), "the 2 of an all-reduce is missing: a reduce-scatter is half of one")],
            "share": [
                (lambda n, c, w: 1, "(n - 1)/n is missing: a chip sends 2 (n - 1)/n of the result"),
                (lambda n, c, w: n - 1, "you send the whole result in each step; a step sends an n-th"),
                (lambda n, c, w: 1 / n, "you count one step of n - 1"),
                (lambda n, c, w: n / (n - 1), "(n - 1)/n is upside down"),
                (lambda n, c, w: math.log2(n), "log2(n) whole arrays are a tree; a ring sends (n - 1)/n in each half"),
            ],
            "width": [
                (_times(4), "you took 4 bytes, a float32; a bfloat16 has 2"),
                (_times(1), "you count numbers; a bfloat16 takes 2 bytes"),
            ],
            "rate": [
                (lambda n, c, w: 2 * w, "do not add the other direction; bytes_per_second is what a chip sends"),
                (lambda n, c, w: w / 8, "do not divide by 8; bytes_per_second is in bytes already"),
                (lambda n, c, w: 8 * w, "do not multiply by 8; bytes_per_second is in bytes already"),
                (lambda n, c, w: n * w, "each chip sends at bytes_per_second; do not multiply by n"),
            ],
            "work": [
                (_times(1), "n chips share the work: each does 2 B D F / n FLOPs, and you let each do all"),
                (lambda n, c, w: n, "n chips share the work: each has less to do, so D grows with n"),
            ],
            "per_element": [(_times(1), "a product has 2 B D F FLOPs, a multiply and an add each; you count half")],
            "turned": [(_times(-1), upside_down)],
            "flops": [(lambda n, c, w: w**2 / c, upside_down)],
        },
        [
            (
                lambda n, c, w: (n - 1) * c / w,
                "is the 2 of an all-reduce missing (that is the page's reduce-scatter), or a bfloat16 counted with 1 byte",
            ),
            (lambda n, c, w: n * c / w, "(n - 1)/n is missing, and the 2 of an all-reduce (or that of a bfloat16)"),
            (lambda n, c, w: 2 * c / w, "n is missing: in a ring n - 1 steps send, and n chips share the work"),
            (
                lambda n, c, w: c / w,
                "that is the ridge, FLOPs for a byte; n chips share the work, and a ring has n parts",
            ),
            (
                lambda n, c, w: (n - 1) / n * c / w,
                "n chips share the work, and the 2 of an all-reduce (or that of a bfloat16) is missing",
            ),
            (
                lambda n, c, w: (n - 1) / 2 * c / w,
                "two factors of 2 are amiss: of the all-reduce's, a bfloat16's, and a rate that you double",
            ),
            (
                lambda n, c, w: n * (n - 1) * c / w,
                "you send n - 1 whole results, one in each step, or all partial sums; an all-reduce in a ring sends less",
            ),
            (lambda n, c, w: 14 * c / w, "14 is 2 (n - 1) for eight chips; here are n"),
            (
                lambda n, c, w: 2 * c / w / (n - 1),
                "you divide by n - 1, and it multiplies: with more chips each has less to do",
            ),
            (
                lambda n, c, w: 2 * (n - 1) * c / w / n,
                "n chips share the work: you let each do all of it, or give the D of one chip",
            ),
        ],
        "set the time of an all-reduce of the (B, F) result equal to that of a chip's own FLOPs, and solve for D",
    )


@exercise(
    _judge_smallest_d,
    "A chip sends 2 (n - 1)/n x 2 B F bytes and computes 2 B D F / n FLOPs. Set the two times equal; B and F cancel.",
)
def smallest_d(n, flops_per_second, bytes_per_second):
    """Return the D at which sending takes as long as computing, on n chips."""
    return 2 * (n - 1) * flops_per_second / bytes_per_second
