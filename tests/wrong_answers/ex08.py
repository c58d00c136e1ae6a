"""Wrong answers to the exercises of notebook 08, and wrong guesses at its predictions."""

from __future__ import annotations

import math

from utils.exercises import ex08


def power_of_two(each):
    return lambda numbers, memory: 2 ** math.ceil(math.log2(max(1, each * numbers / memory)))


WRONG = {
    ex08.bytes_on_a_tpu: [
        (lambda: 56e6, "the emulated devices widen a bfloat16 to float32 before they add"),
        (lambda: 28e6, "2 times too large"),
        (lambda: 56e6 / 8 * 4, "a reduce-scatter on a TPU: half of an all-reduce"),
        (lambda: 56e6 / 8, "2 times too small"),
        (lambda: 3.5e6, "not an eighth of it"),
        (lambda: 56e6 / 4 * 7 / 8, "what is counted is sent already"),
        (lambda: None, "Does the function end with `return`"),
    ],
    ex08.chips_for: [
        (power_of_two(4), "the parameters alone"),
        (power_of_two(12), "the gradient is missing"),
        (lambda n, m: math.ceil(14 * n / m), "a power of two is asked"),
        (lambda n, m: 2 * ex08.chips_for.function(n, m), "half as many would hold"),
        (lambda n, m: 1, "each chip would have to hold 17.9 GB"),
        (power_of_two(16), "12 bytes of state and 2 of gradient are asked"),
        (power_of_two(6), "you counted 6 bytes each"),
        (lambda n, m: 2 ** math.ceil(math.log2(14 * n / m)), "expected a whole number of chips"),
        (lambda n, m: 1 << int(14 * n / m).bit_length(), "you say 16, and it takes 8"),
        (lambda n, m: max(1, 2 ** math.floor(math.log2(14 * n / m))), "you rounded down"),
        (lambda n, m: 14 * n / m, "expected a whole number of chips (an int)"),
    ],
    ex08.fsdp_bytes: [
        (lambda p, n: 2 * (n - 1) / n * p, "one of three"),
        (lambda p, n: 2 * 2 * (n - 1) / n * p, "two of three"),
        (lambda p, n: 4 * 2 * (n - 1) / n * p, "you all-reduce the gradients"),
        (lambda p, n: 3 * 4 * (n - 1) / n * p, "bfloat16, 2 bytes, not 4"),
        (lambda p, n: 3 * 2 * p, "a chip does not send itself its own part"),
        (lambda p, n: 3 * 2 * (n - 1) * p, "a step sends an n-th"),
    ],
    ex08.equal_batch: [
        (lambda w, a, b: b * a / w, "upside down"),
        (lambda w, a, b: b, "the batch that you were given"),
        (lambda w, a, b: w / a, "proportional to the batch"),
        (lambda w, a, b: b * math.sqrt(w / a), "a root"),
        (lambda w, a, b: b * w // a, "need not be whole"),
    ],
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
