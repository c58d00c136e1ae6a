"""Wrong answers to the exercises of notebook 19, right ones in unusual forms, and wrong guesses at its predictions."""

from __future__ import annotations

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from utils.exercises import ex19

# --- expert_chip


def mixture(held, used, state=12, per=6):
    def expert_chip(shared, experts, each, active, tokens, chips):
        case = {"s": shared, "e": experts, "x": each, "k": active, "n": chips}
        return state * eval(held, case) / chips, per * eval(used, case) * tokens / chips

    return expert_chip


ALL, USED = "s + e * x", "s + k * x"


def by_arrays(shared, experts, each, active, tokens, chips):
    met = jnp.array([12.0, 6.0]) * jnp.array([shared + experts * each, shared + active * each])
    return np.asarray(met, np.float64) * np.array([1, tokens]) / chips


def exactly(shared, experts, each, active, tokens, chips):
    state = Fraction(12, chips) * int(shared + experts * each)
    return [float(state), float(Fraction(6, chips) * int(shared + active * each) * int(tokens))]


# --- days


def run(of_step, steps=math.ceil, day=86400):
    return lambda tokens, batch, compute, network, hidden: (
        steps(tokens / batch) * of_step(compute, network, hidden) / day
    )


def overlapped(c, n, h):
    return c + n - h * min(c, n)


# --- plan_run


def planned(plans=None, forget=(), change=lambda level, promised: promised):
    """The best known plans, or these, with promises that forget something."""

    def plan_run(level):
        words = {**ex19.BEST, **(plans or {})}[level]
        task, plan = ex19.TASKS[level], ex19.spelled(words)
        held, sent, work = (f(task, plan, forget) for f in (ex19._memory, ex19._sent, ex19.flops))
        right = ex19._clocks(task, ex19.flops(task, plan), ex19._sent(task, plan), plan)
        return words, change(level, (held / 1e9, sent / 1e9, work / 1e12, max(right, key=right.get)))

    return plan_run


def shouted(level, promised):
    return (*map(np.float64, promised[:3]), promised[3].upper())


def rounded(level, promised):
    return [*(round(number, 2) for number in promised[:3]), f" {promised[3]} "]


def in_bytes(level, promised):
    return (promised[0] * 1e9, *promised[1:])


def of_all(level, promised):
    return (*promised[:2], promised[2] * ex19.TASKS[level]["chips"], promised[3])


def compiled(level, promised):
    if level == 4:
        return promised
    found = ex19._plans()[f"level {level}: {ex19.BEST[level]}"]
    return found.peak / 1e9, found.bytes_sent / 1e9, found.flops / 1e12, promised[3]


def in_jax(level, promised):
    return (*map(jnp.float32, promised[:3]), promised[3])


def one_in_jax(level, promised):
    return [jnp.asarray(promised[0]), *promised[1:]]


def by_name(level, promised):
    return dict(zip(("held", "sent", "work", "clock"), promised, strict=True)).values()


def of_another(level, promised):
    return promises(1, "fsdp 16")(level, promised)


def of_level_1(level, promised):
    return promised if level == 1 else promises(1, ex19.BEST[level])(level, promised)


def promises(level, words):
    task, plan = ex19.TASKS[level], ex19.spelled(words)
    made = ex19._memory(task, plan) / 1e9, ex19._sent(task, plan) / 1e9, ex19.flops(task, plan) / 1e12
    return lambda _, promised: (*made, promised[3])


def eight(level, promised):
    task = ex19.TASKS[level]
    work = 8 * sum(ex19.parameters(task)) * task["batch"] * task["length"] / task["chips"]
    return (*promised[:2], work / 1e12, promised[3])


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex19.expert_chip: [
        (mixture(USED, USED), "the experts that a token does not use are held, too"),
        (mixture(ALL, ALL), "not through all"),
        (mixture("s + x", USED), "all experts are held, not one"),
        (mixture("e * x", USED), "what all tokens share is held as well"),
        (mixture("(s + x) * e", USED), "there once, not in each expert"),
        (mixture(ALL, "s + x"), "a token uses `active` experts"),
        (mixture(ALL, "k * x"), "each token uses what is shared as well"),
        (mixture(ALL, "(s + x) * k"), "used once, not once for each expert"),
        (mixture(ALL, USED, state=4), "comes with two moments"),
        (mixture(ALL, USED, state=16), "without gradients"),
        (mixture(ALL, USED, per=2), "that is the forward pass"),
        (mixture(ALL, USED, per=8), "nothing is computed again"),
        (mixture("(s + e * x) * n", USED), "the chips share all of it"),
        (mixture("s * n + e * x", USED), "cut over the chips, too"),
        (mixture(ALL, "(s + k * x) * n"), "the chips share the tokens"),
        (lambda s, e, x, k, t, n: (12 * (s + e * x) / n, 6 * (s + k * x) / n), "the work of one token"),
        (mixture(ALL, USED, state=10), "parameters of 4"),
        (mixture(ALL, USED, state=1), "those are parameters"),
        (mixture("s + (e - k) * x", USED), "active experts are held as well"),
        (mixture(ALL, USED, state=12e-9), "in bytes, please"),
        (mixture(ALL, USED, per=6e-12), "in FLOPs, please"),
        (lambda *given: mixture(ALL, USED)(*given)[::-1], "the bytes come first"),
        (mixture(ALL, "(s + k * x) / n"), "divided by the chips twice"),
        (mixture(ALL, "(s + e * x) * k / e"), "what is shared is used in whole"),
        (mixture(ALL, "s + k * x / e"), "an active expert is used in whole"),
        (mixture(ALL, "s * n + k * x"), "share the work of what all tokens use, too"),
        (mixture(ALL, "s + (e - k) * x"), "that a token does not meet"),
    ],
    ex19.days: [
        (run(lambda c, n, h: c + n), "a share of the shorter clock is hidden"),
        (run(lambda c, n, h: max(c, n)), "and the rest does not"),
        (run(lambda c, n, h: c + n - (1 - h) * min(c, n)), "the share that costs nothing"),
        (run(lambda c, n, h: c + n - h * max(c, n)), "cannot hide behind the shorter"),
        (run(lambda c, n, h: c + n - h * n), "where the network takes longer, compute hides"),
        (run(lambda c, n, h: c + n - h * c), "where compute takes longer, the network hides"),
        (run(lambda c, n, h: (c + n) * (1 - h)), "not of both"),
        (run(overlapped, steps=float), "the last step is counted whole"),
        (run(overlapped, steps=math.floor), "the last tokens need a step, too"),
        (run(overlapped, steps=lambda n: int(n) + 1), "there is no further step"),
        (run(overlapped, day=1), "these are seconds"),
        (run(overlapped, day=3600), "these are hours"),
        (run(overlapped, steps=lambda n: 1), "that is one step"),
        (run(overlapped, steps=round), "half full or less counts, too"),
        (run(overlapped, steps=float), "2.5e+06 tokens you say 0.04022 days, 1.2 times too small"),
        (run(lambda c, n, h: max(c, n) - h * min(c, n)), "on top of the longer clock"),
        (run(lambda c, n, h: min(c, n)), "at least as long as the longer"),
        (lambda t, b, c, n, h: t * overlapped(c, n, h) / 86400, "`batch` tokens at once"),
        (lambda *given: math.ceil(run(overlapped)(*given)), "days may be fractions"),
        (lambda *given: int(run(overlapped)(*given)), "days may be fractions"),
        (run(lambda c, n, h: c + n - h / 100 * min(c, n)), "no percentage"),
        (run(lambda c, n, h: (1 - h) * min(c, n)), "what is left of the shorter clock"),
        (run(lambda c, n, h: h * max(c, n) + (1 - h) * min(c, n)), "the longer clock runs in whole; a share"),
        (lambda t, b, *_: math.ceil(t / b), "those are steps"),
        (run(overlapped, day=86400 * 365), "those are years"),
        (run(overlapped, steps=lambda n: int(n) + 1), "39.063 days, too large: "),
        (run(overlapped, steps=lambda n: 1), "how many are there?"),
    ],
    ex19.plan_run: [
        (planned({1: "fsdp 8"}), "the axes make 8 chips of 16"),
        (planned({2: "fsdp 64 micro 8"}), "256 sequences cannot be dealt to data x fsdp x micro = 512"),
        (planned({1: "fsdp 1 pipe 16 micro 16"}), "24 layers cannot be dealt to 16 stages"),
        (planned({3: "model 128"}), "64 heads cannot be dealt to model = 128"),
        (planned({1: "data 16"}), "it does not fit. The compiler:"),
        (planned({3: "fsdp 16 model 8 micro 2 bfloat16"}), "it does not fit. The compiler:"),
        (planned({1: "fsdp 16 micro 4 none"}), "What is network spent on"),
        (planned({1: "fsdp 4 pipe 4 micro 4"}), "What is compute spent on"),
        (planned(forget=("gradients",)), "the gradients are missing"),
        (planned(forget=("moments",)), "Adam's two moments are missing"),
        (planned(forget=("kept",)), "what the forward pass keeps"),
        (planned(forget=("part",)), "(n - 1)/n travels"),
        (planned(forget=("scatters",)), "the reduce-scatters are missing"),
        (planned(forget=("attention",)), "scores and means are products, too"),
        (planned({1: "fsdp 8 model 2"}, forget=("remat",)), "`checkpoint` computes forward passes again"),
        (planned(forget=("bubble",)), "in the bubble"),
        (planned({1: "data 2 fsdp 8 micro 2 none"}, forget=("rounds",)), "divide by `micro`"),
        (planned(change=in_bytes), "in GB, please"),
        (planned(change=of_all), "too large: that is of all chips; a chip's part is asked."),
        (planned(forget=("sends",)), "the pipe's sends are missing"),
        (planned(change=compiled), "that is what the compiler says"),
        (planned(change=lambda level, p: (p[0] * 1e9 / 2**30, *p[1:])), "those are GiB"),
        (planned(change=lambda level, p: (*p[:2], p[2] * 1e3, p[3])), "thousandths of TFLOPs"),
        (planned(change=lambda level, p: (p[1], p[0], *p[2:])), "that is of GB sent"),
        (planned(change=eight), "what of attention, and of this plan's `remat`"),
        (planned({4: "data 4 fsdp 16 bfloat16"}), "What is compute spent on"),
        (planned({4: "fsdp 64 none"}), "by the page's own parts it holds"),
        (planned({1: "fsdp 8, model 2, none, fast"}), "the word 'fast' is not known"),
        (planned(change=lambda level, p: (*p[:3], "memory")), "The clocks say"),
        (planned(change=lambda level, p: p[:3]), "expected four"),
        (planned({1: "fsdp 16 micro 0"}), "micro is 0; it has to be 1 or more"),
        (planned({1: "fsdp -16"}), "fsdp is -16; it has to be 1 or more"),
        (planned({1: "data 4 pipe 4 none micro 16"}), "A pipe always has `stage`"),
        (planned(change=of_another), "that is of the plan 'fsdp 16'"),
        (planned(change=of_level_1), "that is of this plan on level 1"),
        (planned(change=lambda level, p: (p[0] * 1.3, *p[1:])), "one by one."),
        (planned(change=lambda level, p: set(p)), "expected four"),
        (planned({1: "fsdp sixteen"}), "the word 'fsdp' is not known, or has no number"),
        (lambda level: ex19.BEST[level], "expected two things"),
        (lambda level: (ex19.spelled(ex19.BEST[level]), (1, 2, 3, "compute")), "expected words such as"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex19.expert_chip: [
        by_arrays,
        exactly,
        lambda shared, experts, each, active, tokens, chips: (
            np.array([12 * (shared + experts * each), 6 * tokens * (shared + active * each)]) / chips
        ),
        lambda *given: tuple(map(np.float64, mixture(ALL, USED)(*given))),
    ],
    ex19.days: [
        run(lambda c, n, h: max(c, n) + (1 - h) * min(c, n)),
        run(lambda c, n, h: np.float64(c + n) - np.minimum(c, n) * h, steps=np.ceil),
        lambda tokens, batch, compute, network, hidden: np.array(
            (int(tokens) + int(batch) - 1) // int(batch) * overlapped(compute, network, hidden) / 24 / 3600
        ),
        lambda tokens, batch, compute, network, hidden: float(
            Fraction(math.ceil(tokens / batch)) * Fraction(overlapped(compute, network, hidden)) / 86400
        ),
    ],
    ex19.plan_run: [
        planned(change=shouted),
        planned(change=rounded),
        planned(change=in_jax),
        planned(change=one_in_jax),
        planned(change=by_name),
        planned({1: "fsdp 8, model 2, micro 4, none"}),
        planned({1: "fsdp 16 none"}),
        planned({1: "none micro 4 model 2 fsdp 8 pipe 1 data 1"}),
        planned({1: "fsdp 8 model 2 micro 4 none float32", 2: "data 4 fsdp 16 layer"}),
        planned({4: "data 4 fsdp 2 model 8 micro 8 none bfloat16"}),
        planned(change=lambda level, promised: np.array(promised, dtype=object)),
    ],
}

# exercise: [(change of the solution that computes the same, why)]
SAME = {
    ex19.days: [
        (
            "step = compute + network - hidden * min(compute, network) -> "
            "step = compute + network - hidden * min(network, compute)",
            "the smaller of two in any order",
        ),
    ],
}

# prediction: (truth, [(wrong guess, the words of the answer)])
GUESSES = {
    ex19.held: (
        {"given": 3.825, "at the fullest": 7.04},
        [
            ((0.956, None), "only `fsdp` divides them"),
            ((15.3, None), "cuts the state in four"),
            ((1.275, None), "two moments"),
            ((5.1, None), "gradients in them"),
            ((3.19, None), "10 bytes"),
            ((None, 3.825), "gradients stand beside it"),
            ((None, 5.1), "the gradients are there twice"),
            ((None, 8.3), "not three times"),
            ((None, 1.76), "only `fsdp` divides them"),
        ],
    ),
    ex19.travels: (
        {"all-gather": 14.9, "reduce-scatter": 7.88, "all-reduce": 1.913},
        [
            ((19.86, None, None), "three quarters travel"),
            ((7.45, None, None), "gathered again on the way back"),
            ((3.725, None, None), "each of the four rounds gathers"),
            ((1.86, None, None), "each of the four rounds gathers"),
            ((22.35, None, None), "they are scattered"),
            ((None, 1.97, None), "each of the four rounds has gradients"),
            ((None, 15.76, None), "half of an all-reduce"),
            ((None, None, 7.65), "once a step"),
            ((None, None, 0.957), "2 (n - 1)/n"),
        ],
    ),
    ex19.work: (
        41.78,
        [
            (31.3, "computes the forward pass again"),
            (10.4, "the forward pass alone"),
            (668.5, "sixteen chips share the tokens"),
            (167.1, "sixteen chips share the tokens"),
            (501.4, "without `checkpoint`"),
            (2.61, "4096 tokens for each chip"),
        ],
    ),
    ex19.slowest: (
        {"data 4 fsdp 4": "compute", "data 4 fsdp 4 micro 4": "network", "model 16": "network"},
        [
            (("network", None, None), "take 76 ms"),
            (("memory", None, None), "read and written once"),
            ((None, "compute", None), "four rounds gather and scatter"),
            ((None, None, "compute"), "five times a layer"),
        ],
    ),
    ex19.around: (
        4.78,
        [(2.39, "which you asked for"), (3.58, "bfloat16"), (1.195, "all* weights"), (5.98, "need not travel")],
    ),
    ex19.checkpoints: (
        322.0,
        [
            (107.4, "three results a layer"),
            (151.0, "2.7 times the width"),
            (50.3, "three results a layer"),
            (8.05, "keeps its own"),
            (161.0, "2 bytes"),
            (268.4, "2 + 4 + 4"),
            (201.3, "without gradients"),
            (1611.0, "both moments are state"),
        ],
    ),
    ex19.fastest: (
        "fsdp 8 model 2 micro 4 none",
        [
            ("data 16 micro 4 bfloat16", "it is refused"),
            ("fsdp 16", "computes each layer twice"),
            ("fsdp 16 micro 4 none", "four rounds of gathers"),
            ("fsdp 4 model 4", "five times a layer"),
            ("fsdp 4 pipe 4 micro 16", "three times"),
        ],
    ),
    ex19.fits: (
        {"fsdp, model": "no", "fsdp, pipe": "no", "model, pipe": "no", "all three": "yes"},
        [
            (("yes", None, None, None), "the inputs of 96 layers"),
            ((None, "yes", None, None), "all 64 heads"),
            ((None, None, "yes", None), "all 32 sequences"),
            ((None, None, None, "no"), "together they fit"),
        ],
    ),
}
