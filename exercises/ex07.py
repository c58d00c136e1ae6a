"""Exercises and predictions for lesson 07, Collectives and what they cost."""

from exercises.framework import Edit, Mistake, Prediction, exercise

eight_devices = Prediction(
    117.44,
    "each device lacks seven eighths of w; it receives that much, so on average it sends that much",
    {
        134.2: "a device already has its own eighth",
        16.78: "a device's eighth goes to the seven others",
        67.1: "with two devices, each lacks half of w, and with eight, each lacks seven eighths",
        58.7: "an element in bfloat16 takes 2 bytes",
    },
    "MB",
    rel_tol=0.01,
)
paid_twice = Prediction(
    2,
    "an all-reduce is a reduce-scatter and then an all-gather",
    {8: "a device gets eight times as much of the sum, but sends only twice as much"},
    "times",
)
star = Prediction(
    7,
    "device 0 sends the sum to each of the seven others",
    {
        1: "device 0 sends one copy to each of the seven others",
        8: "device 0 doesn't send to itself",
        14: "device 0 sends only seven of these, and receives the other seven",
    },
    "b",
)
crossover = Prediction(
    400,
    "7 steps of 1 µs take 7 µs, and 7/8 of the array is sent at 50 GB/s",
    {
        50: "that's one message, an eighth of the array",
        350: "only 7/8 of the array is sent",
        56: "count all seven steps",
    },
    "kB",
    rel_tol=0.02,
)
ridge = Prediction(
    2199,
    "it's 989.5 TFLOP/s divided by 450 GB/s",
    {1099: "900 GB/s is the sum of both directions", 4398: "1,979 TFLOP/s requires that half of the matrix is zeros"},
    "FLOPs",
    rel_tol=0.01,
)
corner = Prediction(
    13_790,
    "it's (n - 1) C/W, with n = 8 and C/W = 1,970",
    {
        1970: "that's C/W, which is needed for each of the seven others",
        15_760: "it's n - 1, not n, because a chip doesn't need to receive its own piece",
    },
    "rows",
    rel_tol=0.01,
)
torus = Prediction(
    4,
    "3 steps along the row of four, then 1 along the column of two",
    {
        7: "that's the number for one ring of eight",
        3: "the column takes one more step",
        8: "that's the number of devices, but a ring takes n - 1 steps",
    },
    "steps",
)


@exercise(
    "How many bytes of the weights does a device hold, and how many devices add up the same piece? Each "
    "of them sends 2 (n - 1)/n of that piece.",
    cases=[(48_000, 2, 4), (7_000_000, 16, 8), (120_000_000, 5, 3)],
    mistakes=[
        Mistake(
            Edit("(data - 1) / data", "(model - 1) / model"),
            "the gradient is added up along data; along model, every device has a different piece",
        ),
        Mistake(
            Edit("parameters / model", "parameters"),
            "a device holds and sends one piece of the weights, not all of them",
        ),
        Mistake(
            Edit("2 * (data - 1)", "(data - 1)"),
            "a factor of 2 is missing: an element takes 2 bytes, and an all-reduce makes two passes",
        ),
        Mistake(
            Edit("(data - 1) / data", "(data * model - 1) / (data * model)"),
            "only the devices along data add up the same piece",
        ),
        Mistake(Edit("2 * (data - 1) / data", "2"), "a device doesn't send its own part of the sum: (n - 1)/n"),
    ],
)
def gradient_bytes(parameters, data, model):
    """Return the bytes that each device sends, on a mesh of data x model devices."""
    piece = parameters / model * 2  # bytes
    return 2 * (data - 1) / data * piece


@exercise(
    "Convert bits to bytes, and count one direction: that's the rate of the whole chip. On a torus, a ring uses two of the links.",
    cases=[(1600, 1, 4, False), (4500, 2, 5, False), (7200, 2, 18, True)],
    mistakes=[
        Mistake(Edit("/ 8 / directions", "/ directions"), "a byte has 8 bits"),
        Mistake(
            Edit("/ 8 / directions", "/ 8 / 2"),
            "this data sheet already gives one direction, so there's nothing to halve",
        ),
        Mistake(
            Edit("/ 8 / directions", "/ 8"),
            "this data sheet adds up both directions; the bytes that leave the chip are half of that",
        ),
        Mistake(
            Edit("if switched else chip_rate * 2 / links", ""),
            "on a torus, a ring uses only two of the links, one to the left and one to the right",
        ),
        Mistake(
            Edit("chip_rate * 2 / links", "chip_rate / links"),
            "a ring that sends both ways round uses two links, one to the left and one to the right",
        ),
        Mistake(
            Edit("return chip_rate if switched else", "return"),
            "through a switch every link leads to every chip, so a ring uses all of them",
        ),
    ],
)
def ring_rate(gbit_per_second, directions, links, switched):
    """Return the bytes per second that the chip sends in a ring, both ways round."""
    chip_rate = gbit_per_second * 1e9 / 8 / directions  # bytes/s that leave the chip
    return chip_rate if switched else chip_rate * 2 / links


@exercise(
    "A chip sends 2 (n - 1)/n x 2 B F bytes and computes 2 B D F / n FLOPs. Set the two times equal; B and F cancel.",
    cases=[(8, 197e12, 100e9), (16, 989.5e12, 450e9), (5, 918e12, 200e9)],
    mistakes=[
        Mistake(
            Edit("2 * (n - 1)", "(n - 1)"),
            "that's the reduce-scatter of the table, but an all-reduce sends twice as much",
        ),
        Mistake(Edit("2 * (n - 1)", "2 * (n - 1) / n"), "each chip does an n-th of the work, so n stays in the result"),
        Mistake(Edit("2 * (n - 1)", "2 * n"), "an all-reduce sends 2 (n - 1)/n of the array, not 2 times the array"),
        Mistake(
            Edit("flops_per_second / bytes_per_second", "bytes_per_second / flops_per_second"),
            "D grows with FLOP/s, because a faster chip needs more work to stay busy",
        ),
        Mistake(
            Edit("2 * (n - 1)", "4 * (n - 1)"),
            "an element takes 2 bytes, and a multiply-add takes 2 FLOPs, so these two cancel",
        ),
    ],
)
def smallest_d(n, flops_per_second, bytes_per_second):
    """Return the D at which sending takes as long as computing, on n chips."""
    return 2 * (n - 1) * flops_per_second / bytes_per_second
