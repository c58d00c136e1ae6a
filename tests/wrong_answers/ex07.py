"""Wrong answers to the exercises of notebook 07: numbers from which one or two plausible factors are missing."""

from __future__ import annotations

from utils.exercises import ex07


def says(*numbers):
    return lambda: numbers if len(numbers) > 1 else numbers[0]


def times(exercise, factor):
    return lambda *args: factor * exercise.function(*args)


SIZE = 50e6 * 2
RING, TORUS = ex07.microseconds_of_gather.function()

# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex07.bytes_of_gradient: [
        (says(15 / 16 * SIZE), "2 times too small: the 2 of an all-reduce is missing"),
        (says(15 / 16 * SIZE), "or: you count numbers; a bfloat16 takes 2 bytes"),
        (says(2 * 15 / 16 * 50e6 * 4), "2 times too large: you took 4 bytes, a float32"),
        (says(2 * SIZE), "(n - 1)/n is missing"),
        (says(2 * 15 * SIZE), "a step sends a 16th of it"),
        (says(2 * 16 * SIZE), "15 steps send a 16th each"),
        (says(2 * 7 / 8 * SIZE), "you took 8 devices; here are 16"),
        (says(2 / 16 * SIZE), "you count one step"),
        (says(2 * 15 / 256 * SIZE), "you divide by n twice"),
        (says(187.5), "in millions of the unit asked"),
        (says(0.1875), "giga"),
        (says(187.5e6 * 8), "your number counts bits"),
        (says(SIZE), "the 2 of an all-reduce is missing"),
        (says(SIZE), "and (n - 1)/n is missing"),
        (says(2 * 50e6), "and you count numbers"),
        (says(15 * SIZE), "the naive ring of lesson 05b"),
        (says(123456.0), "compare passes x share x numbers x bytes of each"),
        (says(0), "a size, a rate or a time is above 0"),
        (says(1, 2), "expected one number, of bytes"),
    ],
    ex07.microseconds_of_gather: [
        (says(16 + 3, TORUS), "Ring: you say 19 µs, 1.056 times too large: a ring of 16 has 15 steps"),
        (says(15 + 3.2, TORUS), "it has one of them already"),
        (says(15 + 0.2, TORUS), "you count the bytes of one block"),
        (says(15 + 0.1875, TORUS), "10,000 bytes is what each chip puts in"),
        (says(15 + 0.375, TORUS), "400 Gbit/s are bits"),
        (says(15 + 1.5, TORUS), "do not double the rate"),
        (says(3, TORUS), "the start-up time is missing"),
        (says(1 + 3, TORUS), "there are 15 steps, each with its own start-up"),
        (says(8 + 3, TORUS), "8 steps are enough if you send both ways"),
        (says(30 + 6, TORUS), "2 times too large: the 2 belongs to an all-reduce."),
        (says(18e-6, TORUS), "your number is in seconds"),
        (says(0.018, TORUS), "your number is in ms"),
        (says(RING, 8 + 3), "Torus: you say 11 µs, 1.222 times too large: an axis of 4 has 3 steps, not 4"),
        (says(RING, 3 + 3), "3 steps are one axis; there are two"),
        (says(RING, RING), "15 steps are those of the ring"),
        (says(RING, 9 + 3), "not 3 x 3"),
        (says(RING, 6 + 1.2), "sends a row of 4 blocks, not one"),
        (says(RING, 6 + 2.4), "the 3 single blocks of the first axis are missing"),
        (says(RING, 6 + 0.6), "the second axis is missing: 3 x 1 + 3 x 4"),
        (says(RING, 3), "the start-up time is missing"),
        (says(RING, 7.7), "check the steps, then the bytes"),
        (says(RING), "expected two numbers"),
    ],
    ex07.crossover_bytes: [
        (times(ex07.crossover_bytes, 2), "(n - 1)/n of the array is sent in one half"),
        (times(ex07.crossover_bytes, 2), "or: do not double beta; the model has one direction"),
        (times(ex07.crossover_bytes, 0.5), "n - 1 steps are one half"),
        (lambda n, a, b: 2 * (n - 1) * a * b / 2, "(n - 1)/n is missing"),
        (lambda n, a, b: 2 * (n - 1) * a * b, "that is what each device sends, or you send the array once"),
        (lambda n, a, b: a * b, "you send the whole array in each step"),
        (lambda n, a, b: n * n * a * b / (n - 1), "a ring has n - 1 steps in each half, not n"),
        (lambda n, a, b: n * a / b, "bytes = steps x alpha x beta"),
        (times(ex07.crossover_bytes, 1 / 8), "do not divide by 8"),
        (times(ex07.crossover_bytes, 1e-3), "in thousands of the unit asked"),
        (lambda n, a, b: 7.7 * n * a * b, "solve for the size of the array"),
        (lambda n, a, b: 400e3, "You return 400,000 whatever is handed in"),
        (lambda n, a, b: 8 * a * b, "For n = 64"),
    ],
    ex07.link_rate: [
        (says(400e9), "2,400 Gbit/s are bits"),
        (says(100e9), "the sheet adds up both directions; one of them gets half"),
        (says(200e9), "do not double it"),
        (says(150e9), "3 times too large: that is the whole chip"),
        (says(300e9), "both directions, and that is the whole chip"),
        (says(800e9), "16 times too large: 2,400 Gbit/s are bits, and the sheet adds up both directions."),
        (says(450e9), "do not multiply"),
        (says(2400 * 2**30 / 48), "not with 2**30 (GB, not GiB)"),
        (says(50), "giga"),
        (says(77e9), "three divisions"),
    ],
    ex07.smallest_d: [
        (times(ex07.smallest_d, 0.5), "the 2 of an all-reduce is missing"),
        (times(ex07.smallest_d, 0.5), "or: you count numbers; a bfloat16 takes 2 bytes"),
        (times(ex07.smallest_d, 2), "you took 4 bytes, a float32"),
        (times(ex07.smallest_d, 2), "or: the 2 of a multiply and an add"),
        (lambda n, c, w: 2 * n * c / w, "(n - 1)/n is missing"),
        (lambda n, c, w: 2 * (n - 1) / n * c / w, "n chips share the work"),
        (lambda n, c, w: 2 * n * (n - 1) * c / w, "a step sends an n-th"),
        (lambda n, c, w: 2 * c / w, "7 times too small: (n - 1)/n is missing, and n chips share the work."),
        (times(ex07.smallest_d, 8), "do not divide by 8"),
        (lambda n, c, w: w / c / 2 / (n - 1), "upside down"),
        (lambda n, c, w: 2 * (n - 1) * w / c, "upside down"),
        (lambda n, c, w: 5, "You return 5 whatever is handed in"),
        (lambda n, c, w: 5 * n, "solve for D"),
        (lambda n, c, w: 14 * c / w, "For n = 16"),
    ],
}

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
    ex07.asked_of_jax: (
        {"all-gather": 28_672, "reduce-scatter": 3_584, "all-to-all": 3_584, "all-reduce": 7_168},
        [
            ((8 * 4096, None, None, None), "all-gather: your guess, 32,768 bytes, is 1.143 times too large: (n - 1)/n"),
            ((3584, None, None, None), "b is what a device puts in"),
            ((4096, None, None, None), "that is one block"),
            ((None, 4096, None, None), "its own a device keeps"),
            ((None, 28_672, None, None), "b is cut into eight: a step sends an n-th"),
            ((None, 7168, None, None), "a reduce-scatter is half of one"),
            ((None, 896, None, None), "a float32 takes 4 bytes"),
            ((None, None, 14_336, None), "that is our ring, with its hops"),
            ((None, None, 4096, None), "(n - 1)/n is missing"),
            ((None, None, None, 3584), "the sums have to be handed out, too"),
            ((None, None, None, 8192), "(n - 1)/n is missing"),
            ((None, None, None, 4096), "(n - 1)/n is missing, and that is one half"),
            ((None, None, None, 57_344), "that is the whole array in each step"),
            ((None, None, None, "7168"), "your guess is '7168'; expected one number, of bytes. That is a text"),
        ],
    ),
    ex07.of_the_bound: (
        {
            "our ring": 1,
            "psum_scatter": 1,
            "psum, then a slice": 2,
            "jit: t.sum(axis=0)": 2,
            "psum_scatter, bfloat16": 2,
        },
        [
            ((2, 1, 2, 2, 2), "our ring: your guess, 2 times the bound, is 2 times too large"),
            ((1, 2, 2, 2, 2), "psum_scatter is a reduce-scatter"),
            ((1, 1, 1, 2, 2), "cutting it afterwards saves nothing"),
            ((1, 1, 8, 2, 2), "an all-reduce is two halves"),
            ((1, 1, 2, 1, 2), "the CPU's compiler forms no reduce-scatter"),
            ((1, 1, 2, 2, 1), "the CPU's compiler widens bfloat16"),
            ((1, 1, 2, 2, 0.5), "half the bytes is the bound already"),
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
        1970,
        [
            (200, "that is a byte of the chip's memory"),
            (20_000, "197,000 by 100"),
            (20, "197,000 by 100"),
            (3940, "both ways round the ring is two links"),
            (985, "a ring uses two of the four links"),
            (246, "246 is for a bit"),
            (241, "241 is the quotient of the chip's memory"),
            (492, "400 GB/s are all four links, both directions"),
            (15_760, "do not divide by 8"),
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
}
