"""Exercises of notebook 07, Collectives and what they cost."""

from __future__ import annotations

import math

from utils.exercises import Prediction, Wrong, amount, by_factors, exercise, number, numbers

MULTIPLY_ADD = "the 2 of a multiply and an add: a product of (B, D) by (D, F) has 2 B D F FLOPs"
WIDTH = [(4, "you took 4 bytes, a float32; a bfloat16 has 2"), (1, "you count numbers; a bfloat16 takes 2 bytes")]
PASSES = (1, "the 2 of an all-reduce is missing: the sums go around once to be added up, and once to be handed out")
PARTS = {8 / 7: "(n - 1)/n is missing: of eight parts seven are sent, its own a device keeps"}
NUMBERS = {1 / 4: "you count numbers; a float32 takes 4 bytes"}
UPSIDE_DOWN = "you have FLOP/s over bytes/s upside down: D grows with it"
UNITS = [
    (1e-3, "your number is in thousands of the unit asked"),
    (1e-6, "your number is in millions of the unit asked"),
    (1e-9, "your number is in thousand millions (giga) of the unit asked"),
    (8, "your number counts bits; a byte has 8"),
]


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
asked_of_jax = Prediction(
    "bytes",
    {**PARTS, **NUMBERS},
    {
        "all-gather": {
            1 / 8: "b is what a device puts in, and it ends with n b: (n - 1) b come from elsewhere",
            1 / 7: "that is one block; seven come from elsewhere",
        },
        "reduce-scatter": {
            8: "b is cut into eight: a step sends an n-th of it",
            2: "that is an all-reduce; a reduce-scatter is half of one",
        },
        "all-to-all": {
            4: "that is our ring, with its hops; JAX's is counted as if each block took one hop",
            8: "b is cut into eight, one block for each device",
        },
        "all-reduce": {
            1 / 2: "that is one half; the sums have to be handed out, too",
            8: "that is the whole array in each step; a step sends an n-th of it",
        },
    },
)
of_the_bound = Prediction(
    "times the bound",
    {},
    {
        "our ring": {2: "it is the half of our all-reduce that reaches the bound; see the table above"},
        "psum_scatter": {2: "psum_scatter is a reduce-scatter, half of an all-reduce"},
        "psum, then a slice": {
            1 / 2: "psum brings the whole sum to every device; cutting it afterwards saves nothing",
            4: "an all-reduce is two halves, each of which sends (n - 1)/n",
        },
        "jit: t.sum(axis=0)": {
            1 / 2: "the CPU's compiler forms no reduce-scatter; it all-reduces, and cuts",
        },
        "psum_scatter, bfloat16": {
            1 / 2: "the CPU's compiler widens bfloat16 to float32 before it sends",
            1 / 4: "half the bytes is the bound already",
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
ridge = Prediction(
    "FLOPs",
    {
        1 / 10: "that is a byte of the chip's memory; one that leaves the chip is ten times as dear",
        10: "divide 1e12s by 1e9s: 197,000 by 100",
        1 / 100: "divide 1e12s by 1e9s: 197,000 by 100",
        2: "both ways round the ring is two links, 2 x 50 GB/s",
        1 / 2: "a ring uses two of the four links, one to each side",
        1 / 4: "400 GB/s are all four links, both directions; a ring sends over two links, in one direction each",
        1 / 8: "241 is the quotient of the chip's memory, 246 is for a bit; asked is a byte that leaves the chip",
        8: "the links' 50 GB/s are bytes already; do not divide by 8",
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


def _judge_bytes_of_gradient(answer):
    said = number(answer(), "one number, of bytes", positive=True)
    by_factors(
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
        ],
        "bits": [(1, "400 Gbit/s are bits: 50 GB/s")],
        "directions": [(2, "do not double the rate; 400 Gbit/s is one direction already, and you send in one")],
        "alpha": [(0, "the start-up time is missing: steps x 1 µs"), (1e-3, "1 µs is 1e-6 s")],
        "unit": [(1, "your number is in seconds; µs are asked"), (1e3, "your number is in ms; µs are asked")],
    }
    rows = [
        (6, "each step along the second axis sends a row of 4 blocks, not one: 3 + 3 x 4"),
        (24, "along the first axis the blocks are single, along the second rows of 4: 3 x 1 + 3 x 4"),
        (12, "the 3 single blocks of the first axis are missing: 3 x 1 + 3 x 4"),
        (3, "the second axis is missing: 3 x 1 + 3 x 4"),
    ]
    for case, value, steps, wrong, blocks in (
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
            [],
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
            rows,
        ),
    ):
        advice = "T = steps x 1 µs + bytes / (50,000 bytes per µs): check the steps, then the bytes"
        told = {"steps": wrong, **slips, "blocks": slips["blocks"] + blocks}
        by_factors(value, case, "µs", formula, {**right, "steps": steps}, told, advice)


@exercise(
    _judge_microseconds_of_gather,
    "400 Gbit/s are 50,000 bytes per µs. On both wirings a device receives 15 blocks. Along an axis of 4 there are 3 steps.",
)
def microseconds_of_gather():
    """Return two estimates in µs: on a ring of 16, on a 4 by 4 torus."""
    passing = 15 * 10_000 / 50_000  # bytes over bytes per µs
    return 15 * 1 + passing, (3 + 3) * 1 + passing


def _of_each(answer, cases, expected):
    """What a formula says of each case; a constant is no formula."""
    said = [number(answer(*case), expected, positive=True) for case in cases]
    if len(set(said)) == 1:
        raise Wrong(f"You return {amount(said[0])} whatever is handed in; return a formula of the arguments.")
    return said


def _judge_crossover_bytes(answer):
    cases = (8, 1e-6, 50e9), (64, 2e-6, 100e9)
    for (n, alpha, beta), said in zip(cases, _of_each(answer, cases, "one number, of bytes"), strict=True):
        by_factors(
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
                    (
                        1,
                        "that is what each device sends, or you send the array once; the size of the array is asked, and 2 (n - 1)/n of it is sent",
                    ),
                    (2 * (n - 1), "you send the whole array in each step; a step sends an n-th"),
                ],
                "beta": [
                    (2 * beta, "do not double beta; the model has one direction"),
                    (beta / 8, "do not divide by 8; beta is in bytes/s already"),
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
    by_factors(
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
    cases = (8, 197e12, 100e9), (16, 989.5e12, 450e9)
    for (n, flops, rate), said in zip(cases, _of_each(answer, cases, "one number, a size"), strict=True):
        by_factors(
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
                    (2 * rate, "do not add the other direction; bytes_per_second is what a chip sends"),
                    (rate / 8, "do not divide by 8; bytes_per_second is in bytes already"),
                ],
                "share_of_work": [(1, "n chips share the work: each does 2 B D F / n FLOPs, and you let each do all")],
                "per_element": [(1, f"{MULTIPLY_ADD}; you count half")],
                "turned": [(-1, UPSIDE_DOWN)],
                "flops": [(rate**2 / flops, UPSIDE_DOWN)],
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
