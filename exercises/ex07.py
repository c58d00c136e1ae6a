"""Exercises and predictions of lesson 07, Collectives and what they cost."""

from exercises.framework import Edit, Mistake, Prediction, exercise

eight_devices = Prediction(
    117.44,
    "a device lacks seven eighths of w; that much arrives, and on average that much leaves",
    {
        134.2: "its own eighth need not travel",
        16.78: "its eighth goes to seven others",
        67.1: "with two devices a half was missing; with eight, seven eighths are",
        58.7: "a number in bfloat16 takes 2 bytes",
    },
    "MB",
    within=0.01,
)
paid_twice = Prediction(
    2,
    "an all-reduce is a reduce-scatter and then an all-gather",
    {8: "eight times as much arrives, not travels"},
    "times",
)
star = Prediction(
    7,
    "it sends the sum to each of the seven others",
    {
        1: "one copy leaves for each of the seven others",
        8: "it need not send to itself",
        14: "seven of these it receives",
    },
    "b",
)
crossover = Prediction(
    400,
    "7 steps of 1 µs are 7 µs; 7/8 of the array pass at 50 GB/s",
    {50: "that is one message; the array has eight", 350: "only 7/8 of the array is sent", 56: "count all seven steps"},
    "kB",
    within=0.02,
)
ridge = Prediction(
    2199,
    "989.5 TFLOP/s over 450 GB/s",
    {1099: "900 GB/s adds up both directions", 4398: "1,979 TFLOP/s needs zeros in half of the matrix"},
    "FLOPs",
    within=0.01,
)
corner = Prediction(
    13_790,
    "(n - 1) C/W, with n = 8 and C/W = 1,970",
    {1970: "that is C/W alone, for each of the seven others", 15_760: "n - 1, not n: its own piece need not come"},
    "rows",
    within=0.01,
)
torus = Prediction(
    4,
    "3 steps along the row of four, then 1 along the column of two",
    {
        7: "that is one ring of eight",
        3: "the column takes one more",
        8: "2 times 4 devices, but rings take n - 1 steps",
    },
    "steps",
)


@exercise(
    "Which part of the weights does a device have, in bytes? How many devices add it up? Then 2 (n - 1)/n of it.",
    cases=[(48_000, 2, 4), (7_000_000, 16, 8), (120_000_000, 5, 3)],
    mistakes=[
        Mistake(
            Edit("(data - 1) / data", "(model - 1) / model"),
            "the gradient is added up along data; along model every device has another piece",
        ),
        Mistake(
            Edit("parameters / model", "parameters"),
            "a device holds, and sends, one piece of the weights, not all of them",
        ),
        Mistake(
            Edit("2 * (data - 1)", "(data - 1)"),
            "a factor of 2 is missing: a number takes 2 bytes, and an all-reduce is two passes",
        ),
        Mistake(
            Edit("(data - 1) / data", "(data * model - 1) / (data * model)"),
            "only the devices along data add up the same piece",
        ),
        Mistake(Edit("2 * (data - 1) / data", "2"), "each device's own part of the sum need not travel: (n - 1)/n"),
    ],
)
def gradient_bytes(parameters, data, model):
    """Return the bytes that each device sends, on a mesh of data x model devices."""
    piece = parameters / model * 2  # bytes
    return 2 * (data - 1) / data * piece


@exercise(
    "Turn bits into bytes, and keep one direction: that is the rate of the whole chip. On a torus a ring uses two links.",
    cases=[(1600, 1, 4, False), (4500, 2, 5, False), (7200, 2, 18, True)],
    mistakes=[
        Mistake(Edit("/ 8 / directions", "/ directions"), "a byte has 8 bits"),
        Mistake(
            Edit("/ 8 / directions", "/ 8 / 2"), "this sheet gives one direction already, so there's nothing to halve"
        ),
        Mistake(
            Edit("/ 8 / directions", "/ 8"),
            "this sheet adds up both directions; the bytes that leave the chip are half of that",
        ),
        Mistake(
            Edit("if switched else whole_chip * 2 / links", ""),
            "on a torus a ring uses only two of the links, left and right",
        ),
        Mistake(
            Edit("whole_chip * 2 / links", "whole_chip / links"),
            "a ring that uses both ways round has two links, left and right",
        ),
        Mistake(
            Edit("return whole_chip if switched else", "return"),
            "through a switch every link leads to every chip: a ring uses all",
        ),
    ],
)
def ring_rate(gbit_per_second, directions, links, switched):
    """Return the bytes per second that the chip sends in a ring, both ways round."""
    whole_chip = gbit_per_second * 1e9 / 8 / directions  # bytes/s that leave the chip
    return whole_chip if switched else whole_chip * 2 / links


@exercise(
    "A chip sends 2 (n - 1)/n x 2 B F bytes and computes 2 B D F / n FLOPs. Set the two times equal; B and F cancel.",
    cases=[(8, 197e12, 100e9), (16, 989.5e12, 450e9), (5, 918e12, 200e9)],
    mistakes=[
        Mistake(
            Edit("2 * (n - 1)", "(n - 1)"), "that is the reduce-scatter of the table; an all-reduce sends twice as much"
        ),
        Mistake(
            Edit("2 * (n - 1)", "2 * (n - 1) / n"), "each chip does an n-th of the work, so n stays in the quotient"
        ),
        Mistake(Edit("2 * (n - 1)", "2 * n"), "an all-reduce sends 2 (n - 1)/n of the array, not 2"),
        Mistake(
            Edit("flops_per_second / bytes_per_second", "bytes_per_second / flops_per_second"),
            "D grows with FLOP/s: more work is needed to keep a faster chip busy",
        ),
        Mistake(
            Edit("2 * (n - 1)", "4 * (n - 1)"), "2 bytes a number, and 2 FLOPs a multiply-and-add: these two cancel"
        ),
    ],
)
def smallest_d(n, flops_per_second, bytes_per_second):
    """Return the D at which sending takes as long as computing, on n chips."""
    return 2 * (n - 1) * flops_per_second / bytes_per_second
