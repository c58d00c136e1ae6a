"""Exercises and predictions for lesson 19, Plan a training run."""

import math

from exercises.framework import Bound, Edit, Mistake, Prediction, RunResult, exercise

state = Prediction(
    1.535,
    "it's 12 bytes for each of 8.19e9 parameters, shared by 64 chips",
    {
        98.25: "that would be right with DDP, but here each chip keeps one piece of 64",
        0.512: "that's only the weights, but each of the two moments takes as much",
        1.02: "weights and two moments are three numbers of 4 bytes",
        0.256: "all three numbers are float32, which makes 12 bytes per parameter",
    },
    "GB",
    rel_tol=0.02,
)
remat = Prediction(
    8,
    "2 forward, 4 backward, and 2 for the forward pass that is repeated",
    {6: "the forward pass runs once more", 12: "the backward pass isn't repeated", 10: "a forward pass takes 2"},
    "FLOPs",
)
wire = Prediction(
    48.36,
    "it's three times 63/64 of 2 bytes per parameter",
    {
        32.24: "there are two gathers and one scatter",
        16.12: "there are two gathers and one scatter, each of all weights",
        96.7: "an element in bfloat16 takes 2 bytes",
        0.7676: "a chip sends its piece to the 63 others, so it sends 63/64 of the full array",
    },
    "GB",
    rel_tol=0.02,
)
rounds = Prediction(
    0.967,
    "each of the four microbatches gathers all weights twice, and scatters all of their gradients",
    {
        0.242: "the weights are freed after each microbatch, so the next one gathers them again",
        0.0604: "a microbatch has a quarter of the tokens, but all of the weights",
        0.645: "each microbatch scatters its gradients too",
        0.484: "both the gathers and the scatters happen in each microbatch",
    },
    "seconds",
    rel_tol=0.02,
)
other_chip = Prediction(
    0.5249,
    "it's 187.9 GB at 450e9 bytes/s over NVLink, and 5.4 GB at 50e9 bytes/s between machines",
    {
        0.4296: "the weights' 5.4 GB are sent between machines, at 50e9 bytes/s",
        0.4176: "the weights' 5.4 GB, which are sent between machines, take time too",
        0.1075: "the activations' 187.9 GB, which are sent over NVLink, take time too",
        3.866: "the activations stay inside a machine, where each H100 sends 450e9 bytes/s",
        0.967: "that's at a v6e's rate, but both of an H100's rates are different",
    },
    "seconds",
    rel_tol=0.01,
)
reduced = Prediction(
    32.24,
    "an all-reduce is a reduce-scatter, then an all-gather, so it's twice the bytes",
    {
        16.12: "that's the reduce-scatter, but an all-reduce gathers after it",
        64.5: "the gradients are sent in bfloat16",
    },
    "GB",
    rel_tol=0.02,
)


@exercise(
    "Divide the useful FLOPs of the full run by the FLOPs that all chips do in a second. A chip-hour "
    "is one chip for one hour.",
    cases=[(7e9, 2e12, 48, 300e12, 0.5), (70e9, 15e12, 8960, 459e12, 0.4), (1.3e9, 26e9, 12, 197e12, 0.35)],
    rel_tol=1e-6,
    mistakes=[
        Mistake(
            Edit("6 *", "8 *"),
            "a repeated forward pass isn't useful work: utilization counts 6 FLOPs per parameter and token",
        ),
        Mistake(Edit("6 *", "2 *"), "that's only the forward pass; the backward pass takes twice as much on top"),
        Mistake(
            Edit("chips * flops_per_second * utilization", "flops_per_second * utilization"),
            "all chips work at the same time",
        ),
        Mistake(
            Edit("flops_per_second * utilization", "flops_per_second"),
            "a chip reaches only the share `utilization` of its peak",
        ),
        Mistake(
            Edit("seconds / 3600 * chips", "seconds / 3600"), "that's hours, but a chip-hour is one chip for one hour"
        ),
    ],
)
def run_bill(parameters, tokens, chips, flops_per_second, utilization):
    """Return (days, chip-hours) of a run over this many tokens."""
    seconds = 6 * parameters * tokens / (chips * flops_per_second * utilization)
    return seconds / 86400, seconds / 3600 * chips


@exercise(
    "A chip stores its part of every expert. A token computes with only `active` of them.",
    cases=[
        (2e9, 8, 5e9, 2, 1_000_000, 24),
        (1.5e9, 60, 0.2e9, 4, 3_000_000, 48),
        (9e9, 5, 1e9, 3, 700_000, 7),
    ],
    rel_tol=1e-6,
    mistakes=[
        Mistake(
            Edit("12 * (shared + experts * each)", "12 * (shared + active * each)"),
            "every expert must be stored, even those that a token doesn't choose",
        ),
        Mistake(
            Edit("(shared + active * each) * tokens", "(shared + experts * each) * tokens"),
            "a token computes only with the active experts",
        ),
        Mistake(Edit("tokens / chips", "tokens"), "all chips share the tokens of the step"),
        Mistake(
            Edit("12 * (shared + experts * each) / chips", "12 * (shared + experts * each)"),
            "the state is sharded over all chips",
        ),
        Mistake(Edit("12 *", "4 *"), "weights and two moments take 12 bytes per parameter"),
        Mistake(Edit("6 *", "2 *"), "it's 2 forward and 4 backward"),
    ],
)
def expert_chip(shared, experts, each, active, tokens, chips):
    """Return (bytes of state, FLOPs per step) for each chip."""
    state = 12 * (shared + experts * each) / chips
    return state, 6 * (shared + active * each) * tokens / chips


@exercise(
    "Computing takes 8 N tokens / (n C) seconds, and sending takes 6 N (n - 1) / (n W). N and 1/n cancel. Round down.",
    cases=[
        (524_288, 918e12, 200e9, True),
        (1_000_000, 197e12, 100e9, False),
        (3_000_000, 989.5e12, 50e9, True),
        (700_000, 459e12, 200e9, False),
    ],
    mistakes=[
        Mistake(Edit("1 +", ""), "only n - 1 of n pieces are sent, so one more chip can be kept busy"),
        Mistake(
            Edit("/ 6", "/ 2"),
            "the weights are gathered twice and the gradients scattered once: three times 2 bytes per parameter",
        ),
        Mistake(
            Edit("8 if remat else 6", "6"),
            "with rematerialization a chip computes longer, so the link has more time",
        ),
        Mistake(Edit("8 if remat else 6", "6 if remat else 8"), "`remat` adds the 2 FLOPs of a forward pass"),
        Mistake(Edit("math.floor(", "("), "the number of chips is an integer"),
        Mistake(Edit("math.floor", "math.ceil"), "one more chip would already wait: round down"),
    ],
)
def most_chips(tokens, flops_per_second, bytes_per_second, remat):
    """Return how many chips FSDP over one axis can use before sending takes longer."""
    work = 8 if remat else 6  # FLOPs per parameter and token; 6 bytes per parameter are sent
    return math.floor(1 + work * tokens / 6 * bytes_per_second / flops_per_second)


def _price_on_v5e(data, fsdp, model, micro=1, remat=True):
    """Return the lesson's `price` for 64 TPU v5e chips and 64 sequences: GB, seconds to compute and seconds to send."""
    layers, width, hidden, heads, words, length = 40, 4096, 16384, 32, 32768, 2048
    layer = 4 * width**2 + 2 * width * hidden
    parameters, tokens = layers * layer + words * width, 64 * length / (data * fsdp)
    own, x = parameters / (fsdp * model), 2 * tokens * width
    scores, logits = 4 * tokens * length * heads / model, 4 * tokens * words / model
    kept = x if remat else (4 + 8 / model) * x + scores
    holds = 12 * own + 4 * own * (1 + (micro > 1)) + 4 * layer / model + (layers * kept + scores + logits) / micro
    sends = 3 * micro * 2 * (1 - 1 / fsdp) * parameters / model + 2 * (1 - 1 / data) * 4 * own
    sends += (5 if remat else 4) * layers * 2 * (1 - 1 / model) * x
    return holds / 1e9, (8 if remat else 6) * parameters * tokens / model / 197e12, sends / 100e9


def _observe_plan(f):
    """Return a plan's chips, leftover sequences and heads, excess memory, and the longer of its two times."""
    data, fsdp, model, micro, remat = plan = f()
    *sizes, remat = (*map(int, plan[:4]), bool(remat))
    data, fsdp, model, micro = sizes
    if min(sizes) < 1 or list(plan[:4]) != sizes:
        raise ValueError("data, fsdp, model and micro must be positive integers")
    holds, *times = _price_on_v5e(data, fsdp, model, micro, remat)
    return RunResult(
        {
            "data x fsdp x model": data * fsdp * model,
            "sequences left over": 64 % (data * fsdp * micro),
            "heads left over": 32 % model,
            "GB more than a chip's 16": max(0.0, holds - 16),
            "milliseconds of computing or sending, whichever is longer": Bound(1000 * max(times), 1.05, 0),
        }
    )


@exercise(
    "Give `price` the new numbers, SEQUENCES = 64, C = 197e12 and W = 100e9, and rank all plans that "
    "need less than 16 GB.",
    run=_observe_plan,
    hide_expected=False,
    mistakes=[
        Mistake(
            Edit("1, 8, 8, 4, False", "1, 64, 1, 1, True"),
            "it fits, but it computes every layer twice: 0.68 s instead of 0.59 s",
        ),
        Mistake(
            Edit("1, 8, 8, 4, False", "1, 32, 2, 1, False"),
            "with flash attention this would be the best plan, but here the scores are stored",
        ),
        Mistake(
            Edit("1, 8, 8, 4, False", "1, 64, 1, 1, False"),
            "without `remat`, the chip keeps everything inside a layer, 40 times",
        ),
    ],
)
def another_slice():
    """Return the plan: (data, fsdp, model, micro, remat)."""
    return 1, 8, 8, 4, False
