"""Exercises of notebook 08, Compile for a TPU pod that you do not have."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from utils.exercises import Choice, Prediction, Wrong, amount, exercise, explained, number, numbers, off_by

# What the lesson asks before its cells count it.
EDGE = "seven hops lead around the edge, and the last chip stands beside the first"
hops = Prediction(
    "hops",
    {},
    {
        "v5e:2x4": {
            1: "a ring of neighbours would fit, and JAX lays out another order: follow the numbers in the picture",
            3: "so long were the last step of a row of four; see which chip JAX puts last",
            4: "see which chip JAX puts last, and which first",
            7: "that is a whole round; one step is asked",
        },
        "v5e:4x2": {2: EDGE, 3: EDGE, 4: EDGE, 7: "that is a whole round; one step is asked"},
    },
    things=True,
)
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
precise = Prediction(
    "bytes",
    {
        1 / 2: "what is multiplied in float32 cannot be rounded before it travels",
        2: "a gather of float32 is sent as it is, by either compiler: see the CPU's",
        8 / 7: "a chip does not send itself its own part",
    },
)
adds_up = Choice(
    {
        "reduce-scatter": "",
        "all-reduce": "",
        "all-gather": "it adds nothing up",
        "collective-permute": "a loop comes later",
    },
    own={
        "4001 columns": {"reduce-scatter": "so says the rule of thumb; the compiler does not follow it, nor say why"},
        "4097 columns": {"all-reduce": "as for 4001, one would think; the compiler scatters, and does not say why"},
        "sum, by columns": {
            "reduce-scatter": "so it is by rows; by columns the compiler all-reduces, and does not say why"
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
looped = Prediction(
    "bytes",
    {
        7 / 9: "that is a reduce-scatter's bound, seven pieces; the loop makes nine sends, as the one above",
        8 / 9: "that is eight pieces; the loop makes nine sends, as the one above",
        14 / 9: "that is an all-reduce; a loop sends one piece at a time, nine times",
        28 / 9: "that is the CPU's all-reduce of float32",
        1 / 9: "that is one send of nine",
        2: "a bfloat16 has 2 bytes",
        1 / 2: "a bfloat16 has 2 bytes",
        8: "a piece is an eighth of the weight, 250 rows",
        5 / 9: "that is one direction; four sends go the other way",
        4 / 9: "that is one direction; five sends go the other way",
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
    {2: "the weights and activations that travel are bfloat16, 2 bytes", 1 / 2: "a number of bfloat16 takes 2 bytes"},
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
sends = Prediction(
    "sends",
    {
        1 / 2: "that is one loop; the weight is gathered in one and its gradient scattered in another",
        30 / 34: "fifteen pieces have to arrive in each loop; it sends two more than that, as nine were for seven",
        15 / 34: "fifteen pieces have to arrive in each loop; it sends two more than that, and there are two loops",
        32 / 34: "one send comes before the turns (or after them), and a turn has two",
        16 / 34: "one send comes before the turns, a turn has two, and there are two loops",
        18 / 34: "that is twice nine, as for eight chips; sixteen take more turns",
        9 / 34: "that was for eight chips, and one loop",
        28 / 34: "seven and seven were needed of eight chips",
        14 / 34: "seven and seven were needed of eight chips",
        36 / 34: "twice nine are eighteen; but one send alone comes once, and the turns double",
        17 * 16 / 34: "that is all chips together; each sends as many",
        34 * 16 / 34: "that is all chips together; each sends as many",
    },
)
clocks = Choice(
    {},
    own={
        "both, v5e": {
            "network": "",
            "compute": "4.9 GB over open rows of four, at half the rate, take 97 ms; the work takes 52",
            "memory": "2 GB read or written take 2 ms",
        },
        "data, v5p": {
            "compute": "",
            "network": "its all-reduces use all six links: 5.3 GB at 600 GB/s take 9 ms; the work takes 22",
            "memory": "its state is whole, 15.3 GB, but is read and written in 11 ms; the work takes 22",
        },
        "FSDP, v5p": {
            "network": "",
            "compute": "close: the work takes 22 ms; 15.3 GB at 600 GB/s take 26",
            "memory": "a chip has a 64th of the state here",
        },
        "fastest, v5e": {
            "FSDP": "",
            "tensor": "it sends twice what FSDP does, and its rows are open",
            "both": "it sends least, but over open rows: half the rate",
            "data": "it was refused here",
        },
        "fastest, v5p": {
            "data": "",
            "FSDP": "close: its all-reduces use six links as those of `data`, and send three times as much",
            "tensor": "it sends most",
            "both": "it sends least, but not over all six links",
        },
    },
)


_BYTES = 7_340_032  # of the lesson's first table; on four devices such an array takes 3/4, not 7/8
TPU_CASES = [  # bytes on the CPU, dtype, what for: each asked of the compiler in tests/helpers/test_pods.py
    (sent, dtype, use)
    for sent in (_BYTES, 6_291_456)
    for dtype in ("float32", "bfloat16")
    for use in ("sum", "cut sum", "operand")
]


def _ratio(dtype: str, use: str) -> float:
    """The TPU's bytes over the CPU's."""
    return (1 / 2 if dtype == "bfloat16" or use == "operand" else 1) * (1 / 2 if use == "cut sum" else 1)


_WIDE, _TWO = ("the CPU's compiler widens a bfloat16 before it sends; a TPU sends 2 bytes", ("bfloat16", "operand"))
_RATIO_SLIPS: list[tuple[Callable[[str, str], float], str]] = [
    (lambda t, u: 1, "you return what the emulated devices send; three things differ on a TPU"),
    (lambda t, u: _ratio("float32", u), _WIDE),
    (lambda t, u: 1 / 2 if u == "cut sum" or (t, u) == ("float32", "operand") else 1, _WIDE),
    (
        lambda t, u: _ratio(t, u) / (2 if (t, u) == _TWO else 1),
        "an operand of bfloat16 is half as wide already, and rounding it once more saves nothing",
    ),
    (
        lambda t, u: _ratio(t, "sum" if u == "cut sum" else u),
        "of a cut sum each chip needs its own part alone: the TPU's compiler has a collective for that",
    ),
    (
        lambda t, u: _ratio(t, u) / (4 if u == "cut sum" else 1),
        "a reduce-scatter sends half of what an all-reduce does, not an eighth",
    ),
    (
        lambda t, u: _ratio(t, u) / (2 if u == "cut sum" else 1),
        "a reduce-scatter sends half of what an all-reduce does, not a quarter",
    ),
    (
        lambda t, u: _ratio(t, "sum" if u == "operand" else u),
        "an operand of float32 is multiplied in bfloat16 here, and need not travel wider",
    ),
    (
        lambda t, u: 1 / 4 if u == "cut sum" else 1 / 2,
        "you halve every width: a float32 is added up in float32 on both, and only an operand is rounded",
    ),
    (
        lambda t, u: _ratio(t, "sum"),
        "you ask for the width alone: a sum that is kept in parts, and an operand that is rounded, are halved, too",
    ),
    (
        lambda t, u: _ratio("float32", "cut sum" if u == "cut sum" else "sum"),
        "you ask for the cut alone; the width counts",
    ),
    (
        lambda t, u: _ratio(t, "sum" if (t, u) == ("float32", "cut sum") else u),
        "a cut sum of float32 is a reduce-scatter, too",
    ),
    (
        lambda t, u: max(1 / 2, _ratio(t, u)),
        "two reasons hold for a cut sum of bfloat16, and each halves what is sent",
    ),
    (
        lambda t, u: _ratio(t, u) * (4 if u == "cut sum" else 1),
        "a reduce-scatter sends half of what an all-reduce does, not twice as much",
    ),
    (
        lambda t, u: _ratio(t, u) * (7 / 4 if u == "cut sum" else 1),
        "a reduce-scatter sends half of what an all-reduce does, not (n - 1)/n of it",
    ),
    (lambda t, u: 1 / 2, "you halve every case; they differ"),
    (lambda t, u: 1 / 4, "you take a quarter in every case; they differ"),
    (lambda t, u: 1 / _ratio(t, u), "upside down: nowhere here does the TPU send more than the CPU"),
    (lambda t, u: _ratio(t, {"sum": "cut sum", "cut sum": "sum"}.get(u, u)), "you took a sum for a cut sum"),
    (lambda t, u: _ratio(t, "cut sum" if u == "sum" else u), "a sum that every chip wants whole stays an all-reduce"),
    (lambda t, u: _ratio({"float32": "bfloat16", "bfloat16": "float32"}[t], u), "you took float32 for bfloat16"),
    (lambda t, u: _ratio(t, u) * 8 / 7, "what the CPU sends is counted without a chip's own part already"),
    (lambda t, u: _ratio(t, u) * 7 / 8, "what the CPU sends is counted without a chip's own part already"),
    (lambda t, u: _ratio(t, u) * 8, "the bytes of one chip are asked, not of all"),
]


def _judge_bytes_on_a_tpu(answer):
    said = [
        number(answer(*case), "one number, of bytes", positive=True, said=f"For {case} you return")
        for case in TPU_CASES
    ]
    wanted = [sent * _ratio(dtype, use) for sent, dtype, use in TPU_CASES]
    if np.allclose(said, wanted, 1e-3):
        return
    slips = [([sent * slip(t, u) for sent, t, u in TPU_CASES], words) for slip, words in _RATIO_SLIPS]
    for power in (1, -1):
        slips += [([_ratio(t, u) ** power for _, t, u in TPU_CASES], "that is a ratio; the bytes are asked")]
    words = explained(said, slips, 1e-3)
    for case, got, want in zip(TPU_CASES, said, wanted, strict=True):
        if not math.isclose(got, want, rel_tol=1e-3):
            so = f"For {case} you say {amount(got)} bytes, {off_by(got, want)}"
            raise Wrong(f"{so}: {words or 'put the three questions to this case'}.")


@exercise(
    _judge_bytes_on_a_tpu,
    "Three questions: is it narrower than float32 (or an operand, which may be), and does each chip keep its part alone?",
)
def bytes_on_a_tpu(cpu, dtype, use):
    """Return the bytes that each TPU chip sends."""
    narrow = dtype == "bfloat16" or use == "operand"
    scattered = use == "cut sum"
    return cpu / (1 + narrow) / (1 + scattered)


# rows, columns, chips, bytes/s
LOOPS = [
    (8192, 8192, 8, 50e9),
    (4096, 6000, 16, 90e9),
    (3200, 1000, 32, 45e9),
    (2400, 500, 8, 1e9),
    (960, 100, 16, 1e9),
]
_ROUNDS: list[tuple[Callable[[float], float], str]] = [
    (lambda n: n + 1, "you add up all sends; those to the next chip and those to the one before run at once"),
    (lambda n: n - 1, "that is a ring that runs one way; this one runs both ways"),
    (lambda n: n, "that is a ring that runs one way, with a send too many; this one runs both ways"),
    (lambda n: n / 2, "one send comes before the turns, and the last turn sends, too"),
    (lambda n: n / 2 - 1, "one send comes before n / 2 turns, and the last turn sends, too"),
    (lambda n: (n + 1) / 2, "half of the sends is not a whole number of them: one goes alone, before the turns"),
    (lambda n: (n - 1) / 2, "you halve the sends that are needed; one goes alone, and the last turn sends, too"),
    (lambda n: n / 2 + 2, "one send comes before the turns, not two"),
    (lambda n: 5, "five rounds are those of eight chips; n changes"),
    (lambda n: 9, "nine sends are those of eight chips; n changes, and two directions run at once"),
    (lambda n: 1, "that is one send"),
    (lambda n: 1 + n, "you count a turn for each piece; a turn has two"),
]


def _loop(rows: float, columns: float, n: float, rate: float) -> float:
    return (1 + n / 2) * 2 * rows * columns / n / rate


def _judge_loop_seconds(answer):
    said = [
        number(answer(*case), "a time, in seconds", positive=True, said=f"For {_case(case)} you return")
        for case in LOOPS
    ]
    wanted = [_loop(*case) for case in LOOPS]
    if np.allclose(said, wanted, 1e-3, 0):
        return
    slips = [
        ([want * f(*case) for want, case in zip(wanted, LOOPS, strict=True)], words)
        for f, words in [
            (
                lambda r, c, n, rate: 2,
                "a bfloat16 has 2 bytes, not 4; or you took two hops, and a neighbour is one away",
            ),
            (lambda r, c, n, rate: 1 / 2, "a bfloat16 has 2 bytes; or you gave one send both directions of the links"),
            (lambda r, c, n, rate: 8, "a rate in bytes is given, not in bits"),
            (lambda r, c, n, rate: n, "a send is a piece, an n-th of the weight"),
            (lambda r, c, n, rate: 1 / n, "an n-th is divided by n once, not twice"),
            (lambda r, c, n, rate: n - 1, "a send is a piece, an n-th of the weight"),
            (lambda r, c, n, rate: 1e3, "these are milliseconds"),
            (lambda r, c, n, rate: 1e6, "these are microseconds"),
            (lambda r, c, n, rate: rate, "these are bytes; divide by the rate"),
            (lambda r, c, n, rate: rate / 50e9, "`rate` is given; you took 50 GB/s in every case"),
            (lambda r, c, n, rate: rate**2, "you multiply by the rate; divide by it"),
            (lambda r, c, n, rate: r / c, "rows times columns are asked; you have rows twice"),
            (lambda r, c, n, rate: c / r, "rows times columns are asked; you have columns twice"),
            *[(lambda r, c, n, rate, rounds=rounds: rounds(n) / (1 + n / 2), words) for rounds, words in _ROUNDS],
        ]
    ]
    words = explained(said, slips, 1e-3) or "count the rounds, the bytes of a piece, and its time on one link"
    for case, got, want in zip(LOOPS, said, wanted, strict=True):
        if not math.isclose(got, want, rel_tol=1e-3):
            raise Wrong(f"For {_case(case)} you say {got:.4g} s, {off_by(got, want)}: {words}.")


def _case(case: tuple[float, ...]) -> str:
    rows, columns, n, rate = case
    return f"({rows}, {columns}) numbers on {n} chips at {rate / 1e9:g} GB/s"


@exercise(
    _judge_loop_seconds,
    "How many rounds, one after the other: one send, then the turns, of two pieces each. Each takes the time of one piece "
    "on one link.",
)
def loop_seconds(rows, columns, n, rate):
    """Return for how long the links are busy, in seconds."""
    turns = n / 2
    piece = 2 * rows * columns / n  # bytes
    return (1 + turns) * piece / rate


CHIP_SLIPS = {  # bytes for each parameter, and what was forgotten
    2: "you counted the gradient alone: there are the parameter and two moments, of 4 bytes each",
    4: "you counted the parameters alone: there are two moments and a gradient",
    6: "you counted 6 bytes each; there are two moments, of 4 bytes each",
    8: "you counted 8 bytes each; parameter and two moments are 4 each, the gradient 2",
    10: "you counted 10 bytes each: one moment is missing",
    12: "the gradient is missing: 2 bytes each",
    16: "12 bytes of state and 2 of gradient are asked; a bfloat16 copy of the weights, or a float32 gradient, makes 16",
    18: "12 bytes of state and 2 of gradient are asked; you counted 18",
    14 * 16 / 15.75: "`memory` is what there is; take nothing off it",
    14 / 1.024**3: "you count the need in GiB, 1024 to the third, and the memory in GB",
    14 * 1.024**3: "you count the memory in GiB, 1024 to the third, and the need in GB",
}
CHIP_CASES = [  # parameters, bytes of a chip's memory, chips by hand: 14 bytes each, doubled until they fit
    (1_275_068_416, 16e9, 2),
    (2.5e9, 16e9, 4),
    (8e9, 16e9, 8),
    (8e9, 14e9, 8),  # filled exactly
    (2.5e8, 16e9, 1),
    (1.2e9, 16e9, 2),  # 16.8 GB, or 15.6 GiB
    (70e9, 16e9, 64),
    (70e9, 95e9, 16),
    (1e9, 16e9, 1),
    (1.5e9, 16e9, 2),  # 21 GB; with one moment 15
    (1.13e9, 16e9, 1),  # 15.8 GB
    (1.03e9, 16e9, 1),  # 14.4 GB; with 16 bytes each 16.5, with 15 (GiB) 15.5
    (1.608e9, 16e9, 2),  # 22.5 GB, 1.41 chips; with one moment 16.1
    (2.42e9, 16e9, 4),  # 33.9 GB, a little more than two chips have
]


def _judge_chips_for(answer):
    said = []
    for parameters, memory, _ in CHIP_CASES:
        case = f"{parameters:,.0f} parameters, {memory / 1e9:g} GB a chip: "
        got = answer(parameters, memory)
        said.append(number(got, "a whole number of chips", whole=True, positive=True, said=f"{case}you return"))
    numbers_ = [(n, m) for n, m, _ in CHIP_CASES]
    wanted = [chips for *_, chips in CHIP_CASES]
    if said == wanted:
        return
    slips = [([_chips(each, n, m) for n, m in numbers_], words) for each, words in CHIP_SLIPS.items()]
    slips += [
        (
            [max(1, 2 ** math.floor(math.log2(14 * n / m))) for n, m in numbers_],
            "you rounded down, and the parts do not fit",
        ),
        (
            [max(1, 2 ** round(math.log2(14 * n / m))) for n, m in numbers_],
            "you rounded to the nearest power of two; below it the parts do not fit",
        ),
        ([_chips(1, 14 * n // m, 1) for n, m in numbers_], "you rounded the need down: `//` leaves out what is over"),
        ([math.ceil(14 * n / m) for n, m in numbers_], "a power of two is asked"),
        ([max(1, round(14 * n / m)) for n, m in numbers_], "a power of two is asked"),
        ([max(2, chips) for chips in wanted], "you begin with two chips; one may do"),
        ([_chips(14, n, m, base=4) for n, m in numbers_], "you take squares, 1, 4, 16; 2 and 8 are powers of two, too"),
        ([_chips(14, n, m, filled=False) for n, m in numbers_], "a chip that is filled exactly holds its part"),
    ]
    words = explained(said, slips)
    for (parameters, memory, want), chips in zip(CHIP_CASES, said, strict=True):
        if chips == want:
            continue
        if chips & (chips - 1):
            words = words or "a power of two is asked"
        elif chips < want:
            words = words or f"each chip would have to hold {14 * parameters / chips / 1e9:.1f} GB"
        else:
            words = words or f"half as many would hold {28 * parameters / chips / 1e9:.1f} GB each, which fits"
        told = f"{parameters:,.0f} parameters, {memory / 1e9:g} GB a chip: you say {chips}, and it takes {want}"
        raise Wrong(f"{told}: {words}.")


def _chips(each, parameters, memory, base=2, filled=True):
    chips = 1
    while each * parameters / chips > memory or (not filled and each * parameters / chips == memory):
        chips *= base
    return chips


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


# Bytes of weights, of sums, chips. The first are the lesson's.
MESHES = [
    (2.55e9, 8.05e9, 16),
    (2.55e9, 32.2e9, 64),
    (1e9, 1.1e9, 16),  # not equal: by a wrong count two meshes could be as good
    (3e9, 1e9, 32),
    (1e9, 6.5e9, 8),
    (1e9, 40e9, 16),
    (40e9, 1e9, 16),
    (2e9, 5e9, 4),
    (1e9, 2.2e9, 8),
    (5e9, 2e9, 8),
    (4e9, 4.4e9, 64),
]


def _bytes(weights, sums, d, m):
    return 3 * (d - 1) / d * weights / m + 2 * (m - 1) / m * sums / d


def _best(sent: Callable[..., float], most: Callable = min) -> list[tuple[int, int]]:
    """For each case the mesh that sends least, by this count: of equals the one with the most along `data`."""
    return [most(_meshes(n), key=lambda mesh: sent(w, s, *mesh)) for w, s, n in MESHES]


def _meshes(n: int) -> list[tuple[int, int]]:
    return [(n >> k, 2**k) for k in range(n.bit_length())]


_CUT = "a chip sends an m-th of the weights along `data`, and a d-th of the sums along `model`"
_PASSES, _ONCE = "the weights go around three times", "an all-reduce goes around twice"
_MESH_SLIPS: list[tuple[list[tuple[int, int]], str]] = [
    ([(m, d) for d, m in _best(_bytes)], "you return (m, d); (d, m) is asked"),
    (_best(_bytes, max), "you return the mesh that sends most"),
    (_best(lambda w, s, d, m: (d - 1) / d * w / m + 2 * (m - 1) / m * s / d), _PASSES),
    (_best(lambda w, s, d, m: 2 * (d - 1) / d * w / m + 2 * (m - 1) / m * s / d), _PASSES),
    (_best(lambda w, s, d, m: 3 * (d - 1) / d * w / m + (m - 1) / m * s / d), _ONCE),
    (
        _best(lambda w, s, d, m: (d - 1) / d * w / m + (m - 1) / m * s / d),
        f"{_PASSES}, and {_ONCE}",
    ),
    (
        _best(lambda w, s, d, m: 6 * (d - 1) / d * w / m + 2 * (m - 1) / m * s / d),
        "gathers and reduce-scatters go around once",
    ),
    (_best(lambda w, s, d, m: 3 * (d - 1) / d * w + 2 * (m - 1) / m * s / d), _CUT),
    (_best(lambda w, s, d, m: 3 * (d - 1) / d * w / m + 2 * (m - 1) / m * s), _CUT),
    (_best(lambda w, s, d, m: 3 * (d - 1) / d * w + 2 * (m - 1) / m * s), _CUT),
    (
        _best(lambda w, s, d, m: 3 * (m - 1) / m * w / d + 2 * (d - 1) / d * s / m),
        "weights travel along `data`, sums along `model`",
    ),
    (
        _best(lambda w, s, d, m: 3 * (d - 1) / d * w / m + 10 * (m - 1) / m * s / d),
        "`sums` are those of all layers, all five, already",
    ),
    (
        [min(_meshes(n)[1:-1], key=lambda mesh: _bytes(w, s, *mesh)) for w, s, n in MESHES],
        "one axis may have all the chips, and the other one alone",
    ),
    ([min(_meshes(n)[:-1], key=lambda mesh: _bytes(w, s, *mesh)) for w, s, n in MESHES], "`data` may have one chip"),
    ([min(_meshes(n)[1:], key=lambda mesh: _bytes(w, s, *mesh)) for w, s, n in MESHES], "`model` may have one chip"),
    (_best(lambda w, s, d, m: 3 * (d - 1) / d * w / m), "you count the weights alone"),
    (_best(lambda w, s, d, m: 2 * (m - 1) / m * s / d), "you count the sums alone"),
    (
        _best(lambda w, s, d, m: abs(3 * (d - 1) / d * w / m - 2 * (m - 1) / m * s / d)),
        "where both are equal the sum need not be least",
    ),
    (
        _best(lambda w, s, d, m: max(3 * (d - 1) / d * w / m, 2 * (m - 1) / m * s / d)),
        "the two add up; the larger one is not what counts",
    ),
    (_best(lambda w, s, d, m: abs(d - m) - d / 1e6), "the squarest mesh is not the best in general"),
    (_best(lambda w, s, d, m: abs(d - m) + d / 1e6), "the squarest mesh is not the best in general"),
    (
        [(2 ** round(math.log2(n) / 2), n // 2 ** round(math.log2(n) / 2)) for *_, n in MESHES],
        "the squarest mesh is not the best in general",
    ),
    (
        [min(((n, 1), (1, n)), key=lambda mesh: _bytes(w, s, *mesh)) for w, s, n in MESHES],
        "there are meshes between the two ends",
    ),
    ([(n, 1) for *_, n in MESHES], "that is FSDP in every case"),
    ([(1, n) for *_, n in MESHES], "that is tensor parallelism in every case"),
]


def _judge_best_mesh(answer):
    said = []
    for weights, sums, n in MESHES:
        case = f"{weights / 1e9:g} GB of weights, {sums / 1e9:g} GB of sums, {n} chips: "
        got = numbers(answer(weights, sums, n), (2,), "two whole numbers, (d, m)", f"{case}you return", whole=True)
        d, m = (int(value) for value in got)
        if d < 1 or m < 1 or d * m != n:
            raise Wrong(f"{case}you return ({d}, {m}); expected d and m with d * m = {n}.")
        if d & (d - 1):
            raise Wrong(f"{case}you return ({d}, {m}); powers of two are asked.")
        said.append((d, m))
    wanted = _best(_bytes)
    words = explained(said, {(tuple(slip), words): (slip, words) for slip, words in _MESH_SLIPS}.values())
    for (weights, sums, n), got, want in zip(MESHES, said, wanted, strict=True):
        if got != want:
            case = f"{weights / 1e9:g} GB of weights, {sums / 1e9:g} GB of sums, {n} chips: "
            more = _bytes(weights, sums, *got) / 1e9
            advice = f"another mesh sends less than its {more:.3g} GB"
            raise Wrong(f"{case}you say {got[0]} x {got[1]}: {words or advice}.")


@exercise(
    _judge_best_mesh,
    "Write the bytes of `both` as a formula of d and m: weights / m travel along data, sums / d along model. Then try all "
    "meshes.",
)
def best_mesh(weights, sums, n):
    """Return (d, m), the mesh of n chips that sends the fewest bytes."""

    def sent(mesh):
        d, m = mesh
        return 3 * (d - 1) / d * weights / m + 2 * (m - 1) / m * sums / d

    powers = [2**k for k in range(n.bit_length())]
    return min([(n // m, m) for m in powers], key=sent)
