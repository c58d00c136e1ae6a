"""Answers to the exercises of notebook 08, wrong ones and right ones, and wrong guesses at its predictions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from utils.exercises import ex08


def power_of_two(each):
    return lambda parameters, memory: 2 ** max(0, math.ceil(math.log2(each * parameters / memory)))


def halved(*reasons):
    """Divided by 2 for each of these reasons that holds."""
    return lambda cpu, dtype, use: cpu / 2 ** sum(reason(dtype, use) for reason in reasons)


def narrow(dtype, use):
    return dtype == "bfloat16"


def rounded(dtype, use):
    return (dtype, use) == ("float32", "operand")


def cut(dtype, use):
    return use == "cut sum"


def rounds(count, width=2):
    return lambda r, c, n, rate: count(n) * width * r * c / n / rate


def seconds(f):
    """The right time, changed."""
    return lambda r, c, n, rate: (1 + n / 2) * 2 * r * c / n / rate * f(r, c, n, rate)


def meshes(n):
    return [(n // 2**k, 2**k) for k in range(n.bit_length())]


def best(sent):
    """The mesh that sends least by another count of bytes."""
    return lambda w, s, n: min(meshes(n), key=lambda mesh: sent(w, s, *mesh))


def two_ends(w, s, n):
    return (n, 1) if 3 * w < 2 * s else (1, n)


def by_table(cpu, dtype, use):
    table = {("float32", "sum"): 1, ("bfloat16", "cut sum"): 4}
    return np.float64(cpu) / table.get((dtype, use), 2)


def by_cases(cpu, dtype, use):
    match dtype, use:
        case "float32", "sum":
            return cpu
        case "bfloat16", "cut sum":
            return cpu // 4
    return cpu // 2


def by_widths(cpu, dtype, use):
    numbers = cpu / 4 * {"sum": 2, "cut sum": 1, "operand": 2}[use]  # the CPU's all-reduce sends twice
    wide = 4 if dtype == "float32" and use != "operand" else 2
    return jnp.float32(numbers / 2 * wide)


def by_sends(rows, columns, n, rate):
    """Each round by itself."""
    time, arrived = 0.0, 2
    while arrived < n + 3:
        time += rows / n * columns * 2 / rate
        arrived += 2
    return time


def by_counting_up(parameters, memory):
    return next(float(2**k) for k in itertools.count() if 14 * parameters <= 2**k * memory)


def by_fractions(parameters, memory):
    needed = Fraction(14) * Fraction(parameters) / Fraction(memory)
    return np.int32(1 << (math.ceil(needed) - 1).bit_length())


def by_grid(w, s, n):
    m = 2 ** np.arange(n.bit_length())
    d = n // m
    i = np.argmin(3 * (d - 1) / d * w / m + 2 * (m - 1) / m * s / d)
    return np.array([d[i], m[i]])


def without_constants(w, s, n):
    """(d - 1) / d / m is 1 / m - 1 / n, and the last is the same for all meshes."""
    return list(min(meshes(n), key=lambda mesh: 3 * w / mesh[1] + 2 * s / mesh[0]))


def by_sorting(w, s, n):
    found = []
    for m in range(1, n + 1):
        if n % m == 0 and (m & (m - 1)) == 0:
            d = n / m
            found.append((3 * (1 - 1 / d) * w / m + 2 * (1 - 1 / m) * s / d, d, float(m)))
    return sorted(found)[0][1:]


WRONG = {
    ex08.bytes_on_a_tpu: [
        (lambda cpu, dtype, use: cpu, "three things differ on a TPU"),
        (halved(cut, rounded), "widens a bfloat16 before it sends"),
        (halved(narrow, cut, lambda t, u: u == "operand"), "half as wide already"),
        (halved(narrow, rounded), "its own part alone"),
        (halved(narrow, cut), "need not travel wider"),
        (lambda cpu, t, u: halved(narrow, rounded)(cpu, t, u) / (8 if u == "cut sum" else 1), "not an eighth"),
        (lambda cpu, t, u: halved(narrow, rounded)(cpu, t, u) / (4 if u == "cut sum" else 1), "not a quarter"),
        (halved(lambda t, u: True, cut), "added up in float32 on both"),
        (halved(lambda t, u: True), "you halve every case"),
        (lambda cpu, t, u: cpu / 4, "a quarter in every case"),
        (lambda cpu, t, u: cpu**2 / halved(narrow, rounded, cut)(cpu, t, u), "upside down"),
        (halved(narrow, rounded, lambda t, u: u == "sum"), "a sum for a cut sum"),
        (halved(narrow, rounded, cut, lambda t, u: u == "sum"), "stays an all-reduce"),
        (halved(lambda t, u: t == "float32" or u == "operand", cut), "float32 for bfloat16"),
        (lambda cpu, t, u: halved(narrow, rounded, cut)(cpu, t, u) * 7 / 8, "without a chip's own part"),
        (lambda cpu, t, u: 8 * halved(narrow, rounded, cut)(cpu, t, u), "not of all"),
        (halved(narrow), "for the width alone"),
        (lambda cpu, t, u: cpu * np.dtype(jnp.dtype(t)).itemsize // 4, "for the width alone"),
        (halved(cut), "for the cut alone"),
        (halved(narrow, rounded, lambda t, u: (t, u) == ("bfloat16", "cut sum")), "a cut sum of float32"),
        (halved(lambda t, u: narrow(t, u) or cut(t, u) or rounded(t, u)), "two reasons hold"),
        (lambda cpu, t, u: halved(narrow, rounded)(cpu, t, u) * (2 if u == "cut sum" else 1), "not twice as much"),
        (
            lambda cpu, t, u: halved(narrow, rounded)(cpu, t, u) * (7 / 8 if u == "cut sum" else 1),
            "not (n - 1)/n of it",
        ),
        (lambda cpu, t, u: halved(narrow, rounded, cut)(1, t, u), "that is a ratio"),
        (lambda cpu, t, u: 1 / halved(narrow, rounded, cut)(1, t, u), "that is a ratio"),
        (lambda cpu, t, u: 14e6, "put the three questions to this case"),
        (lambda cpu, t, u: None, "on every way through it"),
        (lambda cpu, t, u: "14 MB", "leave out the quotes"),
    ],
    ex08.loop_seconds: [
        (rounds(lambda n: n + 1), "run at once"),
        (rounds(lambda n: n - 1), "this one runs both ways"),
        (rounds(lambda n: n), "with a send too many"),
        (rounds(lambda n: n / 2), "before the turns, and the last turn sends, too"),
        (rounds(lambda n: n / 2 - 1), "before n / 2 turns"),
        (rounds(lambda n: (n + 1) / 2), "not a whole number"),
        (rounds(lambda n: (n - 1) / 2), "the sends that are needed"),
        (rounds(lambda n: 5), "five rounds are those of eight chips"),
        (rounds(lambda n: 9), "nine sends are those of eight chips"),
        (rounds(lambda n: 1), "that is one send"),
        (rounds(lambda n: 1 + n / 2, 4), "2 bytes, not 4"),
        (rounds(lambda n: 2 * (1 + n / 2)), "or you took two hops"),
        (seconds(lambda r, c, n, rate: rate / 50e9), "50 GB/s in every case"),
        (seconds(lambda r, c, n, rate: 1 / 2), "both directions of the links"),
        (seconds(lambda r, c, n, rate: 8), "not in bits"),
        (seconds(lambda r, c, n, rate: n), "an n-th of the weight"),
        (seconds(lambda r, c, n, rate: 1 / n), "once, not twice"),
        (seconds(lambda r, c, n, rate: 1e3), "milliseconds"),
        (seconds(lambda r, c, n, rate: 1e6), "microseconds"),
        (seconds(lambda r, c, n, rate: rate), "these are bytes"),
        (seconds(lambda r, c, n, rate: rate**2), "you multiply by the rate"),
        (seconds(lambda r, c, n, rate: r / c), "you have rows twice"),
        (lambda r, c, n, rate: 0.00168, "count the rounds"),
        (lambda r, c, n, rate: 0, "above 0"),
        (lambda r, c, n, rate: None, "on every way through it"),
    ],
    ex08.chips_for: [
        (power_of_two(2), "the gradient alone"),
        (power_of_two(18), "you counted 18"),
        (power_of_two(14 * 16 / 15.75), "take nothing off it"),
        (power_of_two(16), "makes 16."),
        (lambda n, m: max(1, 2 ** round(math.log2(14 * n / m))), "takes 2: you rounded to the nearest power of two"),
        (lambda n, m: next(2**k for k in range(60) if 14 * n // m <= 2**k), "you rounded the need down"),
        (power_of_two(4), "the parameters alone"),
        (power_of_two(10), "one moment is missing"),
        (power_of_two(12), "the gradient is missing"),
        (power_of_two(16), "12 bytes of state and 2 of gradient are asked"),
        (power_of_two(6), "you counted 6 bytes each"),
        (power_of_two(14 / 2**30 * 1e9), "the need in GiB"),
        (power_of_two(14 * 2**30 / 1e9), "the memory in GiB"),
        (lambda n, m: math.ceil(14 * n / m), "a power of two is asked"),
        (lambda n, m: 2 * ex08.chips_for.function(n, m), "half as many would hold"),
        (lambda n, m: 1, "each chip would have to hold 17.9 GB"),
        (lambda n, m: max(2, power_of_two(14)(n, m)), "you begin with two chips"),
        (lambda n, m: 4 ** max(0, math.ceil(math.log(14 * n / m, 4))), "you take squares"),
        (lambda n, m: 2 ** math.ceil(math.log2(14 * n / m)), "expected a whole number of chips"),
        (lambda n, m: 1 << int(14 * n / m).bit_length(), "a chip that is filled exactly holds its part"),
        (lambda n, m: max(1, 2 ** math.floor(math.log2(14 * n / m))), "you rounded down"),
        (lambda n, m: 14 * n / m, "expected a whole number of chips"),
    ],
    ex08.best_mesh: [
        (lambda w, s, n: by_grid(w, s, n)[::-1], "(d, m) is asked"),
        (lambda w, s, n: max(meshes(n), key=lambda e: 3 * w / e[1] + 2 * s / e[0]), "sends most"),
        (best(lambda w, s, d, m: w / m + 2 * s / d), "three times"),
        (best(lambda w, s, d, m: 2 * w / m + 2 * s / d), "three times"),
        (best(lambda w, s, d, m: 3 * w / m + s / d), "an all-reduce goes around twice"),
        (best(lambda w, s, d, m: 3 * (d - 1) / d * w + 2 * (m - 1) / m * s), "a d-th of the sums"),
        (best(lambda w, s, d, m: 3 * (m - 1) / m * w / d + 2 * (d - 1) / d * s / m), "weights travel along `data`"),
        (best(lambda w, s, d, m: abs(3 * (d - 1) / d * w / m - 2 * (m - 1) / m * s / d)), "need not be least"),
        (best(lambda w, s, d, m: max(3 * (d - 1) / d * w / m, 2 * (m - 1) / m * s / d)), "the two add up"),
        (best(lambda w, s, d, m: abs(d - m) - d / 1e6), "the squarest mesh"),
        (best(lambda w, s, d, m: abs(d - m) + d / 1e6), "the squarest mesh"),
        (lambda w, s, n: (2 ** round(math.log2(n) / 2), n // 2 ** round(math.log2(n) / 2)), "the squarest mesh"),
        (best(lambda w, s, d, m: w / m + s / d), "an all-reduce goes around twice"),
        (lambda w, s, n: min(meshes(n)[::-1], key=lambda e: w / e[1] + 2 * s / e[0]), "three times"),
        (best(lambda w, s, d, m: 3 * w / m + 10 * s / d), "all five, already"),
        (lambda w, s, n: min(meshes(n)[1:-1], key=lambda e: 3 * w / e[1] + 2 * s / e[0]), "may have all the chips"),
        (lambda w, s, n: min(meshes(n)[:-1], key=lambda e: 3 * w / e[1] + 2 * s / e[0]), "`data` may have one"),
        (lambda w, s, n: min(meshes(n)[1:], key=lambda e: 3 * w / e[1] + 2 * s / e[0]), "`model` may have one"),
        (two_ends, "between the two ends"),
        (lambda w, s, n: (n, 1), "that is FSDP in every case"),
        (lambda w, s, n: (1, n), "that is tensor parallelism in every case"),
        (lambda w, s, n: (4, 4), "expected d and m with d * m = 64"),
        (lambda w, s, n: (n / 2, 2), "another mesh sends less than its"),
        (lambda w, s, n: 8, "expected two whole numbers, (d, m)"),
        (lambda w, s, n: (n**0.5, n**0.5) if n == 16 else (n / 3, 3), "expected two whole numbers"),
    ],
}

RIGHT = {
    ex08.bytes_on_a_tpu: [by_table, by_cases, by_widths, halved(narrow, rounded, cut)],
    ex08.loop_seconds: [
        by_sends,
        lambda rows, columns, n, rate: (n + 2) * rows * columns / (n * rate),
        lambda rows, columns, n, rate: jnp.float32(rows * columns * (1 + 2 / n)) / rate,
        lambda rows, columns, n, rate: float(Fraction(n + 2, n) * rows * columns) / np.float64(rate),
    ],
    ex08.chips_for: [
        by_counting_up,
        by_fractions,
        lambda n, m: 2.0 ** max(0, math.ceil(math.log2(14 * n / m))),
        power_of_two(14),
    ],
    ex08.best_mesh: [
        by_grid,
        without_constants,
        by_sorting,
        best(lambda w, s, d, m: 3 * w * (d - 1) + 2 * s * (m - 1)),
    ],
}
SENT = "return 3 * (d - 1) / d * weights / m + 2 * (m - 1) / m * sums / d"
SAME = {
    ex08.best_mesh: [
        (f"{SENT} -> {SENT.replace('(d - 1)', '(d + 1)')}", "1/n of the weights less or more, for every mesh"),
        (f"{SENT} -> {SENT.replace('(d - 1)', '(d - 2)')}", "1/n of the weights less or more, for every mesh"),
        (f"{SENT} -> {SENT.replace('(m - 1)', '(m + 1)')}", "1/n of the sums less or more, for every mesh"),
    ]
}

# prediction: (truth, worked out by hand, [(wrong guess, what the reading must say)])
PROGRAMS = ("sums, float32", "sums, bfloat16", "sums, bfloat16, cut", "weights, float32", "gradient, lesson 06")
# Parameters: 24 layers of 4 x 2048^2 (attention) and 2 x 2048 x 8192, and 32768 x 2048 for the table of words.
PARAMETERS = 24 * (4 * 2048**2 + 2 * 2048 * 8192) + 32768 * 2048
# Activations of bfloat16, (16, 1024, 2048), all-reduced five times a layer.
ACTIVATIONS = 5 * 24 * 2 * 16 * 1024 * 2048 * 2
GUESSES = {
    # Width 2 where bfloat16 is widened or float32 multiplied in bfloat16; another 2 for a reduce-scatter.
    ex08.ratios: (
        dict(zip(PROGRAMS, (1, 2, 4, 2, 1), strict=True)),
        [
            ((1, 1, 4, 2, 1), "widens bfloat16 to float32 before it sends"),
            ((1, 2, 2, 2, 1), "two things differ"),
            ((1, 2, 4, 1, 1), "multiplies float32 in bfloat16"),
            ((2, 2, 4, 2, 2), "summed in float32 on both"),
            ((1, 0.5, 0.25, 0.5, 1), "upside down"),
        ],
    ),
    ex08.pieces: (9, [(7, "seven is what has to arrive"), (8, "a full round"), (1, "one step of the ring")]),
    # 12 bytes each: float32, and two moments of float32.
    ex08.state: (
        {"data": 12 * PARAMETERS / 1e9, "FSDP": 12 * PARAMETERS / 16e9, "both": 12 * PARAMETERS / 16e9},
        [
            ((5.1, 0.32, 0.32), "the parameters alone"),
            ((15.3, 15.3, 3.8), "each of the 16 chips holds a sixteenth"),
            ((20.4, 0.956, 0.956), "with a float32 gradient"),
            ((0.956, 0.956, 0.956), "every chip holds all of it"),
            ((15.3, 1.91, 1.91), "sixteen chips, not eight"),
        ],
    ),
    # FSDP: weights of bfloat16 three times around. Tensor: activations. Both: a quarter of each, in rings of four.
    ex08.sent: (
        {
            "FSDP": 3 * 15 / 16 * 2 * PARAMETERS / 1e9,
            "tensor": 15 / 16 * ACTIVATIONS / 1e9,
            "both": 3 / 4 / 4 * (3 * 2 * PARAMETERS + ACTIVATIONS) / 1e9,
        },
        [
            ((4.8, 15, 4.5), "gathered again for the backward pass"),
            ((7.2, 12.1, 4.5), "`checkpoint` runs the forward pass again"),
            ((7.2, 18.1, 4.5), "stops before its last product"),
            ((14.4, 15, 4.5), "a bfloat16 has 2 bytes"),
            ((7.2, 15, 17.8), "a quarter each"),
            ((7.2, 15, 5.9), "(n - 1)/n = 3/4 of it"),
            ((14.3, 15, 4.5), "you counted gathers as all-reduces"),
            ((7.2, 15, 2.2), "takes 2 bytes"),
            ((7.2, 15, 2.94), "the 2 of the activations"),
            (
                (7.2, 30.2, 4.5),
                "tensor: your guess, 30.2 GB, is 2 times too large: the weights and activations that travel",
            ),
        ],
    ),
    ex08.places: (
        {"data": 2, "FSDP": 3, "tensor": 4, "both": 1},
        [
            ((4, 3, 2, 1), "only the gradients do"),
            ((2, 1, 4, 3), "three passes of the weights"),
            ((1, 3, 4, 2), "should be 2"),
            ((1, 2, 3, 4), "both kinds of traffic"),
            ((2, 4, 3, 1), "counted, they are nearly equal"),
            ((2, 4, 3, 1), "twice what FSDP does"),
        ],
    ),
}

GUESSES |= {
    ex08.hops: (
        {"v5e:2x4": 2, "v5e:4x2": 1},
        [((1, 1), "another order"), ((3, 1), "row of four"), ((4, 1), "puts last"), ((2, 2), "around the edge")],
    ),
    # (1024, 1024) of float32, an eighth on each of eight chips: seven eighths of 4 MiB.
    ex08.precise: (
        7 * 2**22 // 8,
        [(1835008, "cannot be rounded before"), (7340032, "see the CPU's"), (4194304, "its own part")],
    ),
    ex08.adds_up: (
        {"4001 columns": "all-reduce", "4097 columns": "reduce-scatter", "sum, by columns": "all-reduce"},
        [
            (("reduce-scatter", None, None), "rule of thumb"),
            (("all-gather", None, None), "adds nothing up"),
            ((None, "all-reduce", None), "does not say why"),
            ((None, None, "reduce-scatter"), "by columns the compiler all-reduces"),
            ((None, None, "collective-permute"), "a loop comes later"),
        ],
    ),
    # Nine sends of 250 rows of 4000 bfloat16.
    ex08.looped: (
        9 * 250 * 4000 * 2,
        [
            (14e6, "a reduce-scatter's bound"),
            (16e6, "eight pieces"),
            (28e6, "that is an all-reduce"),
            (56e6, "the CPU's all-reduce"),
            (2e6, "one send of nine"),
            (36e6, "2 bytes"),
            (9e6, "2 bytes"),
            (144e6, "an eighth of the weight"),
        ],
    ),
    # Two loops: one send, then 16 / 2 turns with two each.
    ex08.sends: (
        2 * (1 + 16),
        [
            (17, "that is one loop"),
            (30, "fifteen pieces"),
            (15, "two loops"),
            (32, "a turn has two"),
            (18, "twice nine"),
            (9, "for eight chips"),
        ],
    ),
    # v5e: 10.3 TFLOPs take 52 ms; 7.8 GB at 100 GB/s 78, 15.4 GB at 100 154, 4.9 GB at 50 97.
    # v5p: 22 ms; over six links, 600 GB/s, 5.3 GB take 9 ms, 15.3 GB 26; twice 15.3 GB of state at 2.8 TB/s 11.
    ex08.clocks: (
        {
            "both, v5e": "network",
            "data, v5p": "compute",
            "FSDP, v5p": "network",
            "fastest, v5e": "FSDP",
            "fastest, v5p": "data",
        },
        [
            (("compute", None, None, None, None), "open rows of four"),
            (("memory", None, None, None, None), "take 2 ms"),
            ((None, "network", None, None, None), "all six links"),
            ((None, "memory", None, None, None), "11 ms"),
            ((None, None, "compute", None, None), "close"),
            ((None, None, "memory", None, None), "a 64th of the state"),
            ((None, None, None, "both", None), "over open rows"),
            ((None, None, None, "tensor", None), "twice what FSDP does"),
            ((None, None, None, None, "both"), "not over all six links"),
            ((None, None, None, None, "FSDP"), "three times as much"),
        ],
    ),
}
