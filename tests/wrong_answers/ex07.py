"""Wrong answers to the exercises of notebook 07: formulas and numbers from which plausible factors are missing."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from operator import mul

import jax.numpy as jnp
import numpy as np

from utils.exercises import ex07


def times(exercise, factor):
    return lambda *args: factor * exercise.function(*args)


GRADIENT, GATHER, EXCHANGE = ex07.gradient_bytes, ex07.gather_seconds, ex07.exchange_crossover
RATE, SMALLEST = ex07.ring_rate, ex07.smallest_d


def steps_of(sizes):
    return sum(sizes) - len(sizes)


def gather(steps, blocks):
    return lambda s, block, a, b: steps(s) * a + blocks(s) * block / b


def others(sizes):
    return math.prod(sizes) - 1


def ring(share):
    return lambda g, n, switched: g * 1e9 / 16 * share(n, switched)


def previous_alone(sizes):
    return sum((size - 1) * (sizes[i - 1] if i else 1) for i, size in enumerate(sizes))


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    GRADIENT: [
        (
            times(GRADIENT, 0.5),
            "For 50,000,000 parameters on 8 x 2 devices you say 43,750,000 bytes, 2 times too small",
        ),
        (
            times(GRADIENT, 0.5),
            "is the 2 of an all-reduce missing, do you count numbers instead of bytes, or one of two",
        ),
        (times(GRADIENT, 2), "did you take 4 bytes, a float32, where a bfloat16 has 2, or add what a device receives"),
        (lambda p, d, m: 2 * p / m * 2, "(n - 1)/n is missing"),
        (lambda p, d, m: 2 * (d - 1) / d * p * 2, "that is the gradient of all weights"),
        (lambda p, d, m: 2 * (d - 1) / d * p / d * 2, "you cut the weights along data"),
        (lambda p, d, m: 2 * (d - 1) / d * p / (d * m) * 2, "you cut the weights along both axes"),
        (lambda p, d, m: 2 * (d - 1) / d * p * m * 2, "you multiply by the pieces"),
        (lambda p, d, m: 2 * (d * m - 1) / (d * m) * p / m * 2, "you take all devices for one group"),
        (
            lambda p, d, m: 2 * (d * m - 1) / (d * m) * p * 2,
            "you take all devices for one group, and that is the gradient",
        ),
        (lambda p, d, m: 2 * (m - 1) / m * p / m * 2, "in groups of data devices, not of model"),
        (lambda p, d, m: 2 * (m - 1) / m * p / d * 2, "not of model, and you cut the weights along data"),
        (lambda p, d, m: 2 * (d - 1) * p / m * 2, "you send the whole piece in each step"),
        (lambda p, d, m: 2 * math.log2(d) * p / m * 2, "is a tree; in a ring n - 1 steps send an n-th each"),
        (lambda p, d, m: 2 * d / (d - 1) * p / m * 2, "(n - 1)/n is upside down"),
        (lambda p, d, m: 2 * (d - 1) / (d + 1) * p / m * 2, "not (n - 1)/(n + 1)"),
        (lambda p, d, m: 2 / d * p / m * 2, "you count one step"),
        (lambda p, d, m: 2 * (d - 1) / d**2 * p / m * 2, "you divide by n twice"),
        (lambda p, d, m: p / m * 2, "the 2 of an all-reduce is missing, and (n - 1)/n is missing"),
        (times(GRADIENT, 8), "your number counts bits"),
        (times(GRADIENT, 1 / 2**20), "your number is in MiB"),
        (lambda p, d, m: (d - 1) * p / m * 2, "with an n-th of the piece in each"),
        (times(GRADIENT, 1e-6), "in millions of the unit asked"),
        (lambda p, d, m: 2 * (d - 1) * p * 2, "you send the whole gradient in each step"),
        (lambda p, d, m: 2 * (d - 1) / m * p * 2 * 1.0 / d * (d * m), "you add up over all devices"),
        (
            lambda p, d, m: 2 * (d - 1) / d * p / m * 2 + 2 * (m - 1) / m * p / m * 2,
            "along model nothing is added up",
        ),
        (lambda p, d, m: 7.7 * p / m, "compare the size of a device's piece in bytes, the size of the group"),
        (lambda p, d, m: 2 * 7 / 8 * p / 2 * 2, "1.75 bytes a parameter are those of 8 x 2 devices"),
        (lambda p, d, m: 87_500_000, "You return 87,500,000 whatever is handed in"),
        (lambda p, d, m: 0, "a size, a rate or a time is above 0"),
        (lambda p, d, m: (1, 2), "expected one number, of bytes"),
    ],
    GATHER: [
        (gather(others, others), "n - 1 steps are those of one ring: an axis of n has n - 1"),
        (gather(sum, others), "an axis of n devices takes n - 1 steps, not n"),
        (gather(lambda s: sum(s) - 1, others), "not all of them together"),
        (gather(lambda s: math.prod(k - 1 for k in s), others), "add their steps"),
        (gather(lambda s: max(s) - 1, others), "you count the longest axis alone"),
        (gather(lambda s: s[0] - 1, others), "of the first axis alone"),
        (gather(len, others), "you count one step for each axis"),
        (gather(lambda s: 1, others), "each step has a start-up of its own"),
        (gather(lambda s: 0, others), "the start-up time is missing"),
        (gather(lambda s: 2 * steps_of(s), others), "twice the steps belong to an all-reduce"),
        (gather(lambda s: sum(k // 2 for k in s), others), "both ways round"),
        (gather(lambda s: math.log2(math.prod(s)), others), "those of a tree"),
        (gather(steps_of, math.prod), "it has one of them already"),
        (gather(steps_of, lambda s: 1), "you count the bytes of one block"),
        (gather(steps_of, lambda s: 0), "the bytes are missing"),
        (gather(steps_of, steps_of), "along a later axis a step sends all blocks that came before"),
        (gather(steps_of, lambda s: others(s) / math.prod(s)), "`block` is what each chip puts in"),
        (gather(lambda s: 2 * steps_of(s), lambda s: 2 * others(s)), "all-reduce"),
        (gather(steps_of, lambda s: others(s) * steps_of(s)), "you send all blocks in each step"),
        (gather(steps_of, lambda s: math.prod(s) * steps_of(s)), "you send all blocks in each step"),
        (gather(steps_of, lambda s: 8 * others(s)), "do not multiply by 8"),
        (gather(steps_of, lambda s: others(s) / 2), "do not double the rate"),
        (gather(steps_of, lambda s: others(s) / len(s)), "the wires of the others rest"),
        (
            lambda s, k, a, b: max(steps_of(s) * a, others(s) * k / b),
            "that is the larger of the two times, as the book",
        ),
        (lambda s, k, a, b: steps_of(s) * max(a, k / b), "that is the larger of the two in each step"),
        (times(GATHER, 2), "twice the time belongs to an all-reduce"),
        (lambda s, k, a, b: GATHER.function(s, k, a, b * 2**30 / 1e9), "G is 1e9, not 2**30"),
        (gather(steps_of, lambda s: sum((k - 1) * math.prod(s[: i + 1]) for i, k in enumerate(s))), "after it"),
        (lambda s, k, a, b: sum(math.ceil((n - 1) / 2) for n in s) * a + others(s) * k / 2 / b, "both ways round"),
        (lambda s, k, a, b: (s[0] + s[1] - 2) * a + (s[0] * s[1] - 1) * k / b, "IndexError"),
        (times(GATHER, 1e6), "your number is in µs"),
        (lambda s, k, a, b: steps_of(s) * a + others(s) * k * b, "you multiply by beta"),
        (gather(lambda s: 2 * (math.prod(s) ** 0.5 - 1), others), "steps are those of a square"),
        (gather(steps_of, previous_alone), "not the one before alone"),
        (gather(sum, math.prod), "not n, and you let a chip receive all n blocks"),
        (gather(lambda s: 3.3 * sum(s), others), "check the steps of each axis, then the blocks"),
        (lambda s, k, a, b: 18e-6, "whatever is handed in"),
        (lambda s, k, a, b: (18e-6, 9e-6), "expected one number, of seconds"),
        (times(GATHER, -1), "above 0"),
    ],
    EXCHANGE: [
        (
            lambda n, a, b: n * a * b,
            "For n = 8, alpha = 1e-06 s, beta = 5e+10 bytes/s you say 400,000 bytes, 4 times too",
        ),
        (lambda n, a, b: n * a * b, "that is a gather's or an all-reduce's"),
        (lambda n, a, b: a * b, "one block drops out each time"),
        (lambda n, a, b: n * a * b / (n - 1), "drops out each time"),
        (lambda n, a, b: (n - 1) * a * b, "b itself is asked"),
        (lambda n, a, b: 2 * a * b / n, "you count blocks; one has b/n bytes"),
        (lambda n, a, b: 2 * a * b * (n - 1) / (n + 1), "the bundles have n - 1, n - 2, ... 1 blocks"),
        (lambda n, a, b: 2 * a * b / (n - 1), "you count the start of one step"),
        (lambda n, a, b: 2 * n * a * b / (n - 1), "there are n - 1 steps, not n"),
        (lambda n, a, b: 2 * math.log2(n) * a * b / (n - 1), "those of a tree"),
        (times(EXCHANGE, 2), "2 (n - 1) steps are those of an all-reduce"),
        (times(EXCHANGE, 2), "or: do not double beta"),
        (times(EXCHANGE, 1 / 8), "do not divide by 8"),
        (times(EXCHANGE, 1e-3), "in thousands of the unit asked"),
        (lambda n, a, b: 2 * a / b, "so beta multiplies the steps"),
        (lambda n, a, b: 2 * (n - 1) / n * a * b, "n - 1, n - 2, ... 1 add up to n (n - 1)/2"),
        (lambda n, a, b: 7.7 * a * b, "add up the bundles, in multiples of b/n, and solve for b"),
        (lambda n, a, b: 100e3, "You return 100,000 whatever is handed in"),
        (lambda n, a, b: 2 * n * a * b, "a gather's in halves"),
        (lambda n, a, b: (n - 1) * a * b * 8 / 28, "28 blocks of an eighth are those of eight devices"),
        (lambda n, a, b: (n - 1) * a * b / 3.5, "3.5 b is what passes with eight devices"),
        (lambda n, a, b: 14 * a * b / (n - 1), "7 steps are those of eight devices"),
        (lambda n, a, b: n // 2 * a * b * 8 / (n + 2), "the shorter way"),
        (lambda n, a, b: (n - 1) * a * b * n / (n / 2 * (n / 2 + 1) / 2), "the shorter way"),
        (lambda n, a, b: n / 2 * a * b, "is an all-reduce"),
        (lambda n, a, b: 2 * 1e-6 * b, "For n = 64"),
        (lambda n, a, b: a * b / 2, "so b is more than what a step sends, not less"),
        (lambda n, a, b: 2 * (n - 1) * a * b, "one bundle of average size"),
        (lambda n, a, b: (n - 1) * a * b / (n // 2), "add up to n (n - 1)/2"),
        (lambda n, a, b: 2 * n / (n - 2) * a * b, "the first bundle has n - 1 blocks, all but your own"),
        (lambda n, a, b: 2 * b / a, "so alpha multiplies, too"),
        (lambda n, a, b: None, "Does the function end with `return`"),
    ],
    RATE: [
        (times(RATE, 8), "Gbit/s are bits: a byte has 8"),
        (times(RATE, 1 / 8), "you divide by 8 twice"),
        (times(RATE, 0.8), "a byte has 8 bits, not 10"),
        (times(RATE, 2), "the sheet adds up both directions: what is sent uses one"),
        (times(RATE, 4), "halve it, do not double it"),
        (times(RATE, 0.5), "you halve for the directions twice"),
        (times(RATE, 2**30 / 1e9), "not with 2**30"),
        (times(RATE, 1 / 2**30), "your number is in GiB/s"),
        (times(RATE, 1e-9), "giga"),
        (ring(lambda n, s: 1), "on a torus a ring uses two links, and you take them all"),
        (ring(lambda n, s: 2 / n), "through a switch a ring uses all links, and you take two"),
        (ring(lambda n, s: 1 / n), "that is one link"),
        (ring(lambda n, s: 1 if s else 1 / n), "to the left and to the right"),
        (ring(lambda n, s: 2 / n if s else 1), "the wrong way round"),
        (ring(lambda n, s: 1 if s else 2), "divide by the links"),
        (ring(lambda n, s: 1 if s else 0.5), "you took 4 links"),
        (ring(lambda n, s: 1 if s else 1 / (2 * n)), "do not divide"),
        (ring(lambda n, s: n if s else 2), "do not multiply by links"),
        (lambda g, n, s: g * 1e9 / 2 * (1 if s else 2 / n) / 1, "For 2,400 Gbit/s, 3 links, switched=False you say"),
        (lambda g, n, s: g * 1e9 * (1 if s else 2 / n), "Gbit/s are bits, and the sheet adds up both directions"),
        (lambda g, n, s: g * 1e9 / 8 * (1 if s else 1 / n), "on a torus you are right; through a switch"),
        (ring(lambda n, s: 1 if s else n / 2), "two of its links have a part of that"),
        (lambda g, n, s: g * 1e9 / 8 * (0.5 if s else 2 / n), "through a switch you are right; on a torus as well"),
        (ring(lambda n, s: 0.5 if s else 2 / n), "through a switch you halve once too often"),
        (ring(lambda n, s: 1 if s else 1 / (n // 2)), "an odd number of links"),
        (ring(lambda n, s: 0.77), "bits to bytes, both directions to one, then the links"),
        (lambda g, n, s: 100e9, "You return 100,000,000,000 whatever is handed in"),
        (lambda g, n, s: "100 GB/s", "That is a text"),
    ],
    SMALLEST: [
        (times(SMALLEST, 0.5), "is the 2 of an all-reduce missing (that is the page's reduce-scatter), or a bfloat16"),
        (times(SMALLEST, 2), "you took 4 bytes, a float32"),
        (times(SMALLEST, 2), "or: a product has 2 B D F FLOPs"),
        (lambda n, c, w: 2 * n * c / w, "(n - 1)/n is missing"),
        (lambda n, c, w: 2 * (n - 1) / n * c / w, "n chips share the work"),
        (lambda n, c, w: 2 * n * (n - 1) * c / w, "a step sends an n-th"),
        (lambda n, c, w: 2 * c / w, "n is missing: in a ring n - 1 steps send"),
        (lambda n, c, w: c / w, "that is the ridge, FLOPs for a byte"),
        (lambda n, c, w: 2 * c / w / (n - 1), "you divide by n - 1, and it multiplies"),
        (lambda n, c, w: 2 * n * math.log2(n) * c / w, "are a tree"),
        (times(SMALLEST, 8), "do not divide by 8"),
        (lambda n, c, w: w / c / 2 / (n - 1), "upside down"),
        (lambda n, c, w: 2 * (n - 1) * w / c, "upside down"),
        (lambda n, c, w: 2 * n * n / (n - 1) * c / w, "(n - 1)/n is upside down"),
        (lambda n, c, w: n * c / w, "(n - 1)/n is missing, and the 2 of an all-reduce"),
        (lambda n, c, w: c / w / 8 * 2 * (n - 1), "do not multiply by 8"),
        (lambda n, c, w: 2 * (n - 1) / n**2 * c / w, "each has less to do"),
        (lambda n, c, w: 5, "You return 5 whatever is handed in"),
        (lambda n, c, w: (n - 1) / n * c / w, "n chips share the work, and the 2 of an all-reduce"),
        (times(SMALLEST, 0.25), "two factors of 2 are amiss"),
        (lambda n, c, w: n * (n - 1) * c / w, "you send n - 1 whole results"),
        (lambda n, c, w: 14 * c / w, "14 is 2 (n - 1) for eight chips"),
        (lambda n, c, w: 5 * n, "solve for D"),
        (lambda n, c, w: 14 * c / w, "For n = 16"),
    ],
}


def by_steps(parameters, data, model):
    """The blocks of a ring, one step after the other."""
    block = Fraction(parameters, model) * 2 / data
    return sum(block for _ in range(2 * (data - 1)))


def two_halves(parameters, data, model):
    piece = np.float64(parameters * 2) / model
    scattered = piece - piece / data
    return scattered + (data - 1) * (piece / data)


def axis_by_axis(sizes, block, alpha, beta):
    """Each axis as a ring of its own, with what was gathered before."""
    seconds = 0.0
    for size in sizes:
        seconds += (size - 1) * (alpha + block / beta)
        block *= size
    return seconds


def last_axis_first(sizes, block, alpha, beta):
    held, time = 1, np.zeros(())
    for size in reversed(list(sizes)):
        for _ in range(size - 1):
            time = time + alpha + held * block / beta
        held *= size
    return time


def by_bundles(n, alpha, beta):
    blocks = sum(range(1, n))
    return (n - 1) * alpha * beta * n / blocks


def by_halving(n, alpha, beta):
    """Look for the size at which the two times are equal."""
    low, high = 0.0, 1e12
    for _ in range(100):
        b = (low + high) / 2
        passing = sum(k * b / n for k in range(n)) / beta
        low, high = (low, b) if passing > (n - 1) * alpha else (b, high)
    return low


def one_link_first(gbit_per_second, links, switched):
    link = gbit_per_second * 125e6 / links / 2
    return link * (links if switched else 2)


def times_equal(n, flops_per_second, bytes_per_second):
    B, F = 3, 5
    seconds = 2 * (n - 1) / n * 2 * B * F / bytes_per_second
    return seconds * flops_per_second * n / (2 * B * F)


# exercise: right answers in unusual forms
RIGHT = {
    GRADIENT: [
        by_steps,
        two_halves,
        lambda parameters, data, model: 4 * parameters * (1 - 1 / data) / model,
        lambda parameters, data, model: jnp.float32(4) * parameters * (data - 1) / (data * model),
    ],
    GATHER: [
        axis_by_axis,
        last_axis_first,
        lambda sizes, block, alpha, beta: alpha * np.sum(np.array(sizes) - 1) + block / beta * (np.prod(sizes) - 1),
        lambda sizes, block, alpha, beta: (sum(sizes) - len(sizes)) * alpha + (reduce(mul, sizes) - 1) * block / beta,
    ],
    EXCHANGE: [
        by_bundles,
        by_halving,
        lambda n, alpha, beta: np.float64(alpha) * beta / 0.5,
        lambda n, alpha, beta: jnp.asarray(alpha * beta + beta * alpha),
    ],
    RATE: [
        one_link_first,
        lambda gbit_per_second, links, switched: gbit_per_second / 16 * (1 if switched else 2 / links) * 10**9,
        lambda gbit_per_second, links, switched: np.where(switched, 62.5e6, 125e6 / links) * gbit_per_second,
        lambda gbit_per_second, links, switched: (
            Fraction(gbit_per_second * 10**9, 16) * Fraction(2, links) ** (not switched)
        ),
    ],
    SMALLEST: [
        times_equal,
        lambda n, flops_per_second, bytes_per_second: (2 * n - 2) / (bytes_per_second / flops_per_second),
        lambda n, flops_per_second, bytes_per_second: np.float32(flops_per_second) / bytes_per_second * 2 * (n - 1),
        lambda n, flops_per_second, bytes_per_second: sum(2 * flops_per_second / bytes_per_second for _ in range(1, n)),
    ],
}
SAME = {}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex07.slots: (
        {"cells": 8, "steps": 3},
        [
            ((64, None), "a reduce-scatter gives away"),
            ((56, None), "so many were given away"),
            ((1, None), "each of the eight devices is left with one"),
            ((None, 4), "the diagonal, 8 cells, is there before the first step"),
            ((None, 3.5), "the diagonal, 8 cells"),
            ((None, 5), "it begins with 8 cells"),
        ],
    ),
    ex07.ring_exchange: (
        3.5,
        [
            (7 / 8, "so much is sent directly"),
            (7, "your own stays, and one drops out"),
            (49 / 8, "one has arrived and drops out"),
            (36 / 8, "the bundles have 7, 6, ... 1 blocks"),
            (28, "you count blocks"),
            (1.75, "2 x 7/8 is an all-reduce"),
            (14336, "you count bytes"),
        ],
    ),
    ex07.wires: (
        {"all to the right": 3.5, "the shorter way": 1.25},
        [
            ((7 / 8, None), "passes over s wires"),
            ((4.5, None), "seven blocks leave, for 1 to 7 places on"),
            ((28, None), "or the wires of all eight devices"),
            ((14_336, None), "you count bytes"),
            ((None, 2), "both directions of a wire together"),
            ((None, 1), "so it would be if the two ways shared them"),
            ((None, 1.75), "the shorter way is not half of it"),
            ((None, 3.5), "goes three to the left"),
            ((None, 7 / 8), "a block passes over up to four wires"),
            ((None, 0.75), "that is the other direction"),
            ((None, 10), "you count blocks"),
        ],
    ),
    ex07.torus: (
        {"steps": 4, "bytes, times the ring's": 1},
        [
            ((6, 1), "an axis of n devices takes n - 1 steps, not n: 3 and 1"),
            ((3, 1), "that is the axis of four"),
            ((8, 1), "the steps of the two axes are added"),
            ((7, 1), "that is the ring"),
            ((2, 1), "the one of four takes 3 steps"),
            ((4, 4 / 7), "in the last one a device sends four blocks"),
            ((4, 2), "none comes twice"),
            ((4, 28_672), "you give bytes"),
            ((4, 0.5), "seven blocks have to come, whichever way"),
            (4, "expected 2 numbers: steps, bytes, times the ring's"),
        ],
    ),
    ex07.crossover: (
        {"kB": 400, "share for half": 0.75},
        [
            ((350, None), "that is 7/8 of the array"),
            ((50, None), "that is one block; the whole array is asked"),
            ((57.14, None), "you count the start of one step"),
            ((2800, None), "you send the whole array in one step"),
            ((800, None), "one way round"),
            ((200, None), "all 7 steps start"),
            ((400_000, None), "you give bytes"),
            ((0.4, None), "you give MB"),
            ((None, 0.5), "and the steps as long as before"),
            ((None, 1), "but the bytes take half the time"),
            ((None, 0.25), "halve the bytes alone"),
            ((None, 1.5), "the sum of the two is asked"),
            ((None, 10.5), "you give µs"),
            ((None, 75), "you give percent"),
        ],
    ),
    ex07.both_ways: (
        {"short way": 400, "halves": 800},
        [
            ((800, 800), "short way: your guess, 800 kB, is 2 times too large: there are fewer steps as well"),
            ((200, 800), "over a wire pass fewer blocks as well"),
            ((700, 800), "there are fewer steps as well"),
            ((228.6, 800), "over a wire pass fewer blocks as well"),
            ((457, 800), "the last step goes to the right alone"),
            ((400, 400), "with half the bytes over a wire"),
            ((400, 200), "half the bytes need twice the array"),
            ((400, 1600), "not a quarter"),
            ((400, 800_000), "you give bytes"),
        ],
    ),
    ex07.star: (
        {"device 0": 7, "the others": 1},
        [
            ((1, 1), "each time it is sent anew"),
            ((8, 1), "its own copy of the sum need not be sent"),
            ((14, 1), "what it sends is asked"),
            ((1.75, 1), "that is the mean over all eight; device 0 sends more"),
            ((7, 1.75), "that is the mean over all eight; these send less"),
            ((7, 2), "each sends once and receives once"),
            ((7, 7 / 8), "each sends its whole array to device 0"),
            ((7, 7), "each sends to device 0 alone"),
            ((7, 0), "device 0 needs their arrays"),
            ((28_672, 1), "you count bytes"),
        ],
    ),
    ex07.of_the_bound: (
        {"sum_and_keep": 2, "gather_and_add": 8, "exchange_and_add": 1},
        [
            ((1, 8, 1), "cutting it afterwards saves nothing"),
            ((1.75, 8, 1), "the bound is 7/8 b"),
            ((8, 8, 1), "an all-reduce is two halves"),
            ((2, 1, 1), "everybody gets all eight arrays"),
            ((2, 7, 1), "7 is in multiples of b"),
            ((2, 2, 1), "here all eight arrays go to everybody"),
            ((2, 4, 1), "every device gets 7 arrays"),
            ((2, 8, 8), "one eighth to each of seven devices"),
            ((2, 8, 7), "one eighth to each of seven devices"),
            ((2, 8, 7 / 8), "7/8 is in multiples of b"),
            ((2, 8, 4), "what passes over a wire of a ring"),
            ((2, 8, 2), "nothing is handed out again"),
            ((2, 8, 1 / 8), "not to one of them"),
        ],
    ),
    ex07.too_many_axes: (
        7168,
        [
            (4096, "that is a group of two"),
            (8192, "(n - 1)/n is missing"),
            (10_240, "not an all-reduce along each"),
            (6144, "that is a group of four, along 'y' alone"),
            (3584, "half of an all-reduce"),
            (57_344, "that is the whole array in each step"),
            (14_336, "not both halves of the batch"),
            (28_672, "as in the naive ring"),
            (1792, "you count numbers"),
        ],
    ),
    ex07.ridge: (
        {"TPU v5e": 1970, "TPU v6e": 4590, "H100 SXM": 2198.9},
        [
            ((3940, None, None), "TPU v5e: your guess, 3,940 FLOPs, is 2 times too large: both ways round the ring"),
            ((985, None, None), "a ring uses two of the four links"),
            ((492, None, None), "that is all four links, both directions"),
            ((1.97, None, None), "divide 1e12s by 1e9s"),
            ((None, 9180, None), "both ways round the ring is two links"),
            ((None, 2295, None), "a ring uses two of the four links"),
            ((None, 36_720, None), "do not divide by 8"),
            ((None, None, 39_580), "a ring can use all 18 links"),
            ((None, None, 19_790), "not two of them"),
            ((None, None, 1099), "a device that sends uses one direction"),
            ((None, None, 4398), "dense"),
            (1970, "expected 3 numbers: TPU v5e, TPU v6e, H100 SXM"),
        ],
    ),
    ex07.travels: (
        {"sums_travel": 57_344, "x_travels": 28_672, "w_travels": 114_688},
        [
            ((65_536, None, None), "(n - 1)/n is missing"),
            ((114_688, None, None), "the 2 belongs to an all-reduce"),
            ((None, 14_336, None), "you took 2 bytes, a bfloat16"),
            ((None, 7168, None), "a float32 takes 4 bytes"),
            ((None, 16_384, None), "(n - 1)/n is missing, and you took 2 bytes, a bfloat16."),
            ((None, None, 917_504), "a step sends an n-th"),
            ((None, None, 16_384), "you count one step of seven"),
            ((7168, None, None), "that is (n - 1)/n of one device's part"),
            ((None, 3584, None), "that is (n - 1)/n of one device's part"),
        ],
    ),
    ex07.corner: (
        {"corner": 13_790, "64 chips": 1.125},
        [
            ((1970, None), "that is C / W"),
            ((15_760, None), "(n - 1), not n"),
            ((27_580, None), "100 GB/s, not 50"),
            ((6895, None), "two links in one direction each"),
            ((3448, None), "not all of 400 GB/s"),
            ((241, None), "the quotient of the chip's memory"),
            ((124_110, None), "the corner of 64 chips"),
            ((None, 1 / 8), "the time is that of sending"),
            ((None, 8), "the time is that of sending"),
            ((None, 1), "sends a little more"),
            ((None, 0.889), "how many times as fast it is"),
            ((None, 9), "by which the corner moves"),
            ((None, 0.753), "here the larger counts"),
        ],
    ),
}
