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
        (says(15 + 1.5, TORUS), "400 Gbit/s is one direction already"),
        (says(3, TORUS), "the start-up time is missing"),
        (says(1 + 3, TORUS), "there are 15 steps, each with its own start-up"),
        (says(8 + 3, TORUS), "8 steps are enough if you send both ways"),
        (says(30 + 6, TORUS), "the 2 belongs to an all-reduce"),
        (says(18e-6, TORUS), "your number is in seconds"),
        (says(0.018, TORUS), "your number is in ms"),
        (says(RING, 8 + 3), "Torus: you say 11 µs, 1.222 times too large: an axis of 4 has 3 steps, not 4"),
        (says(RING, 3 + 3), "3 steps are one axis; there are two"),
        (says(RING, RING), "15 steps are those of the ring"),
        (says(RING, 9 + 3), "not 3 x 3"),
        (says(RING, 6 + 1.2), "sends a row of 4 blocks, not one"),
        (says(RING, 3), "the start-up time is missing"),
        (says(RING, 7.7), "check the steps, then the bytes"),
        (says(RING), "expected two numbers"),
    ],
    ex07.crossover_bytes: [
        (times(ex07.crossover_bytes, 2), "(n - 1)/n of the array is sent in one half"),
        (times(ex07.crossover_bytes, 2), "or: the model has one direction; do not double beta"),
        (times(ex07.crossover_bytes, 0.5), "n - 1 steps are one half"),
        (lambda n, a, b: 2 * (n - 1) * a * b / 2, "(n - 1)/n is missing"),
        (lambda n, a, b: 2 * (n - 1) * a * b, "you send the array once"),
        (lambda n, a, b: a * b, "you send the whole array in each step"),
        (lambda n, a, b: n * n * a * b / (n - 1), "a ring has n - 1 steps in each half, not n"),
        (lambda n, a, b: n * a / b, "bytes = steps x alpha x beta"),
        (times(ex07.crossover_bytes, 1 / 8), "do not divide by 8"),
        (times(ex07.crossover_bytes, 1e-3), "in thousands of the unit asked"),
        (lambda n, a, b: 7.7, "solve for the size of the array"),
        (lambda n, a, b: 400e3, "For n = 64"),
    ],
    ex07.link_rate: [
        (says(400e9), "2,400 Gbit/s are bits"),
        (says(100e9), "the sheet adds up both directions; one of them gets half"),
        (says(200e9), "do not double it"),
        (says(150e9), "3 times too large: that is the whole chip"),
        (says(300e9), "; and that is the whole chip"),
        (says(800e9), "2,400 Gbit/s are bits; a byte has 8; and the sheet adds up both directions"),
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
        (lambda n, c, w: 2 * c / w, "is missing: a chip sends 2 (n - 1)/n of the result; and n chips share the work"),
        (times(ex07.smallest_d, 8), "do not divide by 8"),
        (lambda n, c, w: w / c / 2 / (n - 1), "upside down"),
        (lambda n, c, w: 5, "solve for D"),
        (lambda n, c, w: 27580, "For n = 16"),
    ],
}
