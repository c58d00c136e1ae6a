"""Exercises of notebook 08, Compile for a TPU pod that you do not have."""

from __future__ import annotations

import math

from utils.exercises import Prediction, Wrong, amount, by_factors, exercise, number

ratios = Prediction(
    "times",
    {},
    own={
        "sums, float32": {
            2: "float32 is summed as it is on both, 4 bytes each",
            1 / 2: "it is the emulated devices that may send more, never the TPU here",
        },
        "sums, bfloat16": {
            1 / 4: "upside down: the CPU's bytes over the TPU's",
            1 / 2: "the CPU's compiler widens bfloat16 to float32 before it sends: twice the bytes",
            2: "the widening doubles the bytes once; the result is whole on both, so no reduce-scatter saves another half",
        },
        "sums, bfloat16, cut": {
            1 / 16: "upside down: the CPU's bytes over the TPU's",
            1 / 2: "two things differ: the width, and a reduce-scatter where the CPU all-reduces and slices",
            1 / 4: "two things differ: the width, and a reduce-scatter where the CPU all-reduces and slices",
        },
        "weights, float32": {
            1 / 4: "upside down: the CPU's bytes over the TPU's",
            1 / 2: "a TPU multiplies float32 in bfloat16 unless told otherwise: it has only bfloat16 to gather",
            2: "there is nothing to add up in a gather: only the width differs",
        },
        "gradient, lesson 06": {
            2: "gradients of float32 are summed in float32 on both",
            4: "gradients of float32 are summed in float32 on both, and are wanted whole",
        },
    },
)
pieces = Prediction(
    "pieces",
    {
        7 / 9: "seven is what has to arrive; the compiler's loop sends two more than that",
        8 / 9: "eight would be a full round of the ring; seven have to arrive, and the compiler's loop sends nine",
        1 / 9: "that is one step of the ring; count all that a chip sends",
        14 / 9: "an all-reduce goes around twice; a gather once",
    },
)
state = Prediction(
    "GB",
    {
        1 / 3: "that is the parameters alone; Adam keeps two moments of each",
        2 / 3: "Adam keeps two moments of each parameter, not one",
        4 / 3: "that is with a float32 gradient, which is born later: what the step is given is asked",
        7 / 6: "that is with the bfloat16 gradient, which is born later: what the step is given is asked",
        1 / 2: "parameters and moments are float32 here, 4 bytes each",
        1 / 1.024**3: "a GB is 1e9 bytes; the compiler's G is 1024 to the third",
    },
    own={
        "data": {1 / 16: "nothing is cut: every chip holds all of it"},
        "FSDP": {
            16: "each of the 16 chips holds a sixteenth",
            4: "the axis has 16 chips, not 4",
            2: "there are sixteen chips, not eight",
        },
        "both": {
            1 / 4: "4 x 4 chips are sixteen, not 64",
            4: "both axes cut it: 4 x 4 chips, a sixteenth each",
            16: "both axes cut it: a sixteenth each",
            2: "there are sixteen chips, not eight",
        },
    },
    within=0.05,
)
sent = Prediction(
    "GB",
    {
        2: "the weights and activations that travel are bfloat16, 2 bytes",
        1 / 2: "a number of bfloat16 takes 2 bytes",
    },
    own={
        "FSDP": {
            1 / 3: "the weights travel three times: forward, backward, and their gradients",
            2: "a bfloat16 has 2 bytes; or you counted gathers as all-reduces",
            2 / 3: "the weights are gathered again for the backward pass, and then their gradients are scattered",
            4 / 3: "gradients are wanted cut, as the weights are: a reduce-scatter, half of an all-reduce",
            1 / 24: "you counted one layer of 24",
        },
        "tensor": {
            4 / 5: "`checkpoint` runs the forward pass again, and that sends one more all-reduce a layer",
            6 / 5: "the repeated forward pass stops before its last product: one all-reduce, not two",
            2 / 5: "the backward pass sends as well: count its all-reduces, and the one of the second forward pass",
            1 / 2: "an all-reduce goes around twice: 2 (n - 1)/n",
            1 / 24: "you counted one layer of 24",
            4: "every chip of the 16 holds the whole batch here; you have four times as much",
        },
        "both": {
            4 / 3: "in a group of four a chip sends (n - 1)/n = 3/4 of it",
            4: "weights are cut four ways by `model` already, and the batch four ways by `data`: a quarter each",
            5: "each group has four chips, so (n - 1)/n is 3/4, and a quarter of weights or batch travels",
            1 / 3: "two kinds of traffic add up: weights along `data`, activations along `model`",
            2 / 3: "two kinds of traffic add up; or the 2 of the activations' all-reduce is missing",
        },
    },
    within=0.15,
)
places = Prediction(
    "",
    {},
    ranks=True,
    own={
        "data": {
            1 / 2: "it sends each gradient twice around, and no weight; close, but `both` cuts them four ways first",
            3 / 2: "replicated weights need not travel: only the gradients do, once a step",
            2: "replicated weights need not travel: only the gradients do, once a step",
        },
        "FSDP": {
            1 / 3: "by hand it sends 7.5 GB, three passes of the weights; `data` 5.0 and `both` 4.8",
            2 / 3: "by hand it sends 7.5 GB, three passes of the weights; `data` 5.0 and `both` 4.8",
            4 / 3: "by hand it sends 7.5 GB and `tensor` 15.3; counted, they are nearly equal: see the next picture",
        },
        "tensor": {
            1 / 4: "its activations travel five times a layer, and grew with the batch",
            1 / 2: "its activations travel five times a layer, and grew with the batch",
            3 / 4: "by hand it sends 15.3 GB, twice what FSDP does",
        },
        "both": {
            2: "close: data parallelism sends a little more",
            3: "it cuts weights and activations, and so both kinds of traffic",
            4: "it cuts weights and activations, and so both kinds of traffic",
        },
    },
)


def _judge_bytes_on_a_tpu(answer):
    said = number(answer(), "one number, of bytes", positive=True)
    by_factors(
        said,
        "",
        "bytes",
        lambda width, scatter, share: 56e6 * width * scatter * share,
        {"width": 1 / 2, "scatter": 1 / 2, "share": 1},
        {
            "width": [
                (1, "the emulated devices widen a bfloat16 to float32 before they add; a TPU sends 2 bytes a number"),
            ],
            "scatter": [
                (1, "a sum of which each chip keeps its part is a reduce-scatter on a TPU: half of an all-reduce"),
                (1 / 8, "a reduce-scatter sends (n - 1)/n, half of an all-reduce's 2 (n - 1)/n; not an eighth of it"),
            ],
            "share": [
                (8 / 7, "what is counted is sent already, with its (n - 1)/n"),
                (7 / 8, "what is counted is sent already, with its (n - 1)/n"),
            ],
        },
        "ask of the width first, then of the collective",
    )


@exercise(
    _judge_bytes_on_a_tpu,
    "Two things differ, each by a factor of 2: how wide is a bfloat16 on the way, and is the whole sum needed?",
)
def bytes_on_a_tpu():
    """Return the bytes that each TPU chip sends."""
    widened, all_reduced = 2, 2  # what the CPU's compiler does and the TPU's does not
    return 56e6 / widened / all_reduced


CHIP_SLIPS = {  # bytes for each parameter, and what was forgotten
    4: "you counted the parameters alone: there are two moments and a gradient",
    6: "you counted 6 bytes each; there are two moments, of 4 bytes each",
    8: "you counted 8 bytes each; parameter and two moments are 4 each, the gradient 2",
    12: "the gradient is missing: 2 bytes each",
    16: "12 bytes of state and 2 of gradient are asked; a bfloat16 copy of the weights, or a float32 gradient, makes 16",
}


def _judge_chips_for(answer):
    cases = [
        (1_275_068_416, 16e9, 2),
        (2.5e9, 16e9, 4),
        (8e9, 16e9, 8),
        (8e9, 14e9, 8),  # filled exactly
        (2.5e8, 16e9, 1),
        (70e9, 16e9, 64),
        (70e9, 95e9, 16),
        (1e9, 16e9, 1),
    ]
    expected = "a whole number of chips (an int)"
    said = []
    for numbers, memory, _ in cases:
        case = f"{numbers:,.0f} parameters, {memory / 1e9:g} GB a chip: "
        said.append(number(answer(numbers, memory), expected, whole=True, positive=True, said=f"{case}you return"))
    # A slip is named where it explains every answer.
    words = [text for each, text in CHIP_SLIPS.items() if said == [_chips(each, n, m) for n, m, _ in cases]]
    if said == [max(1, 2 ** math.floor(math.log2(14 * n / m))) for n, m, _ in cases]:
        words = ["you rounded down, and the parts do not fit"]
    for (numbers, memory, want), chips in zip(cases, said, strict=True):
        if chips == want:
            continue
        if chips & (chips - 1):
            words = ["a power of two is asked"]
        elif chips < want:
            words = words or [f"each chip would have to hold {14 * numbers / chips / 1e9:.1f} GB"]
        else:
            words = words or [f"half as many would hold {28 * numbers / chips / 1e9:.1f} GB each, which fits"]
        told = f"{numbers:,.0f} parameters, {memory / 1e9:g} GB a chip: you say {chips}, and it takes {want}"
        raise Wrong(f"{told}: {words[0]}.")


def _chips(each, numbers, memory):
    return 2 ** math.ceil(math.log2(max(1, each * numbers / memory)))


@exercise(
    _judge_chips_for,
    "How many bytes for each parameter: 4 for itself, 4 for each of two moments, 2 for its gradient. Then double the chips "
    "until a chip's part fits.",
)
def chips_for(numbers, memory):
    """Return the smallest power of two of chips of `memory` bytes that hold it all."""
    chips = 1
    while 14 * numbers / chips > memory:
        chips *= 2
    return chips


def _judge_fsdp_bytes(answer):
    for numbers, n in ((1_000_000, 8), (1_275_068_416, 16), (8_000_000_000, 256)):
        said = number(answer(numbers, n), "one number, of bytes", positive=True)
        by_factors(
            said,
            f"{numbers:,} parameters on {n} chips: ",
            "bytes",
            lambda passes, width, share, numbers=numbers: passes * width * share * numbers,
            {"passes": 3, "width": 2, "share": (n - 1) / n},
            {
                "passes": [
                    (1, "you counted one of three: a gather forward, a gather backward, a reduce-scatter of gradients"),
                    (2, "you counted two of three: a gather forward, a gather backward, a reduce-scatter of gradients"),
                    (
                        4,
                        "you all-reduce the gradients, or send them as float32; a reduce-scatter of bfloat16 is enough",
                    ),
                    (
                        6,
                        "you counted each as an all-reduce; gathers and reduce-scatters go around once, (n - 1)/n each",
                    ),
                ],
                "width": [(4, "what travels is bfloat16, 2 bytes, not 4"), (1, "you counted numbers, not bytes")],
                "share": [
                    (1, "a chip does not send itself its own part: (n - 1)/n"),
                    (1 / n, "that is one step of the ring; there are n - 1"),
                    (n - 1, "a step sends an n-th, and there are n - 1: together (n - 1)/n of the whole"),
                ],
            },
            "count how often the weights go around, in which width, and which part of them a chip sends",
        )


@exercise(
    _judge_fsdp_bytes,
    "The weights go around for the forward pass, again for the backward pass, and their gradients once as a reduce-scatter. "
    "Each time a chip sends (n - 1)/n of the whole.",
)
def fsdp_bytes(numbers, n):
    """Return the bytes that each of n chips sends in a step, as bfloat16."""
    return 3 * (n - 1) / n * 2 * numbers


def _judge_equal_batch(answer):
    for weights, activations, batch in ((6e9, 3e9, 32), (7.8e9, 15.4e9, 16), (1e9, 8e9, 64)):
        said = number(answer(weights, activations, batch), "a number of sequences", positive=True)
        exact = batch * weights / activations
        if said != exact and said in (math.floor(exact), math.ceil(exact)):
            raise Wrong(f"You say {amount(said)}, a rounded number; it is {amount(exact)}, and need not be whole.")
        by_factors(
            said,
            f"{weights / 1e9:g} GB of weights, {activations / 1e9:g} GB of activations at {batch} sequences: ",
            "sequences",
            lambda ratio, weights=weights, activations=activations, batch=batch: (
                batch * (weights / activations) ** ratio
            ),
            {"ratio": 1},
            {
                "ratio": [
                    (-1, "upside down: where activations send more, a smaller batch makes them equal"),
                    (0, "that is the batch that you were given; there they are not equal"),
                    (2, "squared: the activations grow in proportion to the batch, the weights not at all"),
                    (1 / 2, "a root: the activations grow in proportion to the batch, the weights not at all"),
                ]
            },
            "the weights' bytes stay as they are, and the activations' are proportional to the batch",
        )


@exercise(
    _judge_equal_batch,
    "How many bytes of activations does one sequence send? How many such sequences send as much as the weights?",
)
def equal_batch(weights, activations, batch):
    """Return the batch at which both send the same, from their bytes at `batch`."""
    return batch * weights / activations
