"""Exercises and predictions of notebook 19, Plan a training run."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, ValuesView
from typing import Any

from utils.count import pods
from utils.count.chips import CHIPS
from utils.exercises import Choice, Prediction, Wrong, amount, exercise, explained, number, numbers, off_by, shown

_MOMENTS = "Adam keeps a parameter and two moments, 4 bytes each"
_COPIES = "along `data` the weights are copied: only `fsdp` divides them here"
held = Prediction(
    "GB",
    {},
    {  # by hand: 12 * 1.275e9 / 4, and beside it twice the gradients, 4 * 1.275e9 / 4
        "given": {
            1 / 4: _COPIES,
            4: "`fsdp` cuts the state in four",
            1 / 3: _MOMENTS,
            2 / 3: _MOMENTS,
            1 / 12: f"{_COPIES}; and {_MOMENTS}",
            4 / 3: "16 bytes a parameter have the gradients in them, which a chip is not given but makes",
            10 / 12: "with bfloat16 parameters it would be 10 bytes; these are float32",
        },
        "at the fullest": {
            3.825 / 7.04: "that is what it is given: gradients stand beside it",
            5.1 / 7.04: "the gradients are there twice: the sum of the rounds so far, and those of the next round",
            1.76 / 7.04: _COPIES,
            1.6 / 7.04: _COPIES,
            8.3 / 7.04: "the gradients are there twice, not three times: the sum so far, and those of the next round",
        },
    },
    within=0.06,
)
_PART = "with four in a group three quarters travel, (n - 1)/n"
travels = Prediction(
    "GB",
    {4 / 3: _PART},
    {  # by hand, P = 1.208e9 in layers and 0.067e9 in the table: 3/4 * 2 * (8 P + 4 * 0.067), 3/4 * 2 * 4 (P + 0.067),
        # 2 * 3/4 * 4 * 1.275 / 4
        "all-gather": {
            1 / 2: "with `checkpoint` the layers are gathered again on the way back",
            1 / 4: "each of the four rounds gathers the weights anew",
            1 / 8: "each of the four rounds gathers them anew, and each layer is gathered again on the way back",
            2: "weights travel in bfloat16, 2 bytes",
            3 / 2: "the third pass is of the gradients, and they are scattered",
            1
            / 4
            * 3
            / 2: "each of the four rounds gathers them anew; the third pass is the gradients', and they are scattered",
        },
        "reduce-scatter": {
            1 / 4: "each of the four rounds has gradients of its own, and scatters them",
            2: "they travel in bfloat16; or: a reduce-scatter is half of an all-reduce",
            1 / 2: "gradients, 2 bytes each, in each of four rounds",
        },
        "all-reduce": {
            4: "the sum over `data` stands behind the rounds: once a step; or: each chip adds up its own quarter of the weights",
            16: "it stands behind the rounds, once a step, and each chip adds up its own quarter of the weights",
            1 / 2: "an all-reduce sends 2 (n - 1)/n; or: these are float32, 4 bytes",
            1 / 4: "an all-reduce sends 2 (n - 1)/n, and these are float32, 4 bytes",
        },
    },
    within=0.06,
)
work = Prediction(
    "TFLOPs",
    {
        3 / 4: "that is 6 for each parameter and token: `checkpoint` computes the forward pass again",
        1 / 4: "that is the forward pass alone, 2 for each parameter and token",
        16: "sixteen chips share the tokens",
        4: "sixteen chips share the tokens: four along `data`, and four along `fsdp`, which cuts the batch as well",
        12: "sixteen chips share the tokens; and that is 6 for each parameter and token, without `checkpoint`",
        1 / 16: "there are 64 sequences of 1024 tokens: 4096 tokens for each chip",
    },
    within=0.04,
)
slowest = Choice(
    {"compute": "", "network": "", "memory": "the state is read and written once: 10 ms or less"},
    own={
        "data 4 fsdp 4": {"network": "7.6 GB at 100 GB/s take 76 ms, the FLOPs 212"},
        "data 4 fsdp 4 micro 4": {
            "compute": "four rounds gather and scatter four times: 25 GB take 250 ms, the FLOPs 212 as before"
        },
        "model 16": {
            "compute": "activations of all 64 sequences are added up five times a layer: 61 GB take 614 ms, the FLOPs 212"
        },
    },
)
around = Prediction(
    "GB",
    {
        1 / 2: "that is a reduce-scatter, which you asked for; the compiler makes something else of it",
        3.58 / 4.78: "gradients travel in bfloat16 here",
        1 / 4: "all chips hold pieces of the gradients of *all* weights",
        5 / 4: "a sixteenth need not travel",
        1 / 1.0667: "(n - 1)/n of 16, not more",
    },
    within=0.02,
)
checkpoints = Prediction(
    "times",
    {
        1 / 3: "three results a layer are kept, and two of them are as wide as the hidden layer",
        3 / 6.4: "two of the three are as wide as the hidden layer, 2.7 times the width",
        1 / 6.4: "three results a layer are kept, two of them 2.7 times as wide",
        1 / 40: "each of the 40 layers keeps its own",
        1 / 2: "a bfloat16 takes 2 bytes",
        10 / 12: "the book's parameters are bfloat16: 2 + 4 + 4 bytes",
        10 / 16: "the book's parameters are bfloat16: 2 + 4 + 4 bytes, without gradients",
        5: "parameters and both moments are state: 10 bytes",
    },
    within=0.06,
)
fastest = Choice(
    {
        "data 16 micro 4 bfloat16": "it is refused: state and gradients alone are 10 + 3 * 2 bytes a parameter, 20 GB",
        "fsdp 16": "it computes each layer twice; another does not",
        "fsdp 16 micro 4 none": "four rounds of gathers and sums: the network takes longer than the FLOPs",
        "fsdp 8 model 2 micro 4 none": "",
        "fsdp 4 model 4": "activations of 16 sequences are added up five times a layer: 12 GB, and each layer is computed twice",
        "fsdp 4 pipe 4 micro 16": "19 ticks for 16 microbatches, and each layer is computed three times",
    }
)
fits = Choice(
    {"yes": "", "no": ""},
    own={
        "fsdp, model": {
            "yes": "the inputs of 96 layers, 0.1 GB each, stand beside 7 GB and more of state and gradients"
        },
        "fsdp, pipe": {"yes": "a layer that is not cut has the scores of all 64 heads: 9.7 GB for one sequence"},
        "model, pipe": {"yes": "all 32 sequences go through one pipe, and 0.1 GB waits for each, several times over"},
        "all three": {"no": "fewer layers, fewer heads, fewer sequences: together they fit"},
    },
)


# --- 19.1


def _experts(shared, experts, each, active, tokens, chips, *, held=None, used=None, state=12, per=6, cut=1.0):
    held = shared + experts * each if held is None else held
    used = shared + active * each if used is None else used
    return [state * held / (chips * cut), per * used * tokens / chips]


# shared, experts, of each, active, tokens, chips
_MIXTURES = [(2e9, 64, 0.5e9, 2, 4e6, 64), (3e9, 8, 5e9, 1, 1.5e6, 16), (1e9, 128, 0.2e9, 8, 2e6, 256)]


def _judge_expert_chip(answer):
    got = []
    for case in _MIXTURES:
        said = f"With {case[1]} experts of {case[2] / 1e9:g}e9 and {case[3]} active you return"
        got.append([float(n) for n in numbers(answer(*case), (2,), "two numbers, bytes and FLOPs", said=said)])
    want = [_experts(*case) for case in _MIXTURES]
    for at, what, unit in ((0, "state", "bytes"), (1, "work", "FLOPs")):
        mine = [pair[at] for pair in got]
        if all(math.isclose(g, w[at], rel_tol=1e-3) for g, w in zip(mine, want, strict=True)):
            continue

        def slip(at=at, **changed):
            made = []
            for s, e, each, k, tokens, chips in _MIXTURES:
                own = {n: f(s, e, each, k, chips) if callable(f) else f for n, f in changed.items()}
                made.append(_experts(s, e, each, k, tokens, chips, **own)[at])
            return made

        used_all = slip(used=lambda s, e, each, k, n: s + e * each)
        table = {
            "state": [
                (
                    slip(held=lambda s, e, each, k, n: s + k * each),
                    "the experts that a token does not use are held, too",
                ),
                (slip(held=lambda s, e, each, k, n: s + each), "all experts are held, not one"),
                (slip(held=lambda s, e, each, k, n: e * each), "what all tokens share is held as well"),
                (
                    slip(held=lambda s, e, each, k, n: (s + each) * e),
                    "what is shared is there once, not in each expert",
                ),
                (slip(state=4), "a parameter comes with two moments, 12 bytes"),
                (slip(state=2), "a parameter comes with two moments, 12 bytes"),
                (slip(state=16), "the task counts 12 bytes: without gradients"),
                (slip(state=10), "the task counts 12 bytes: parameters of 4"),
                (slip(state=1), "those are parameters; each is 12 bytes of state"),
                (slip(held=lambda s, e, each, k, n: s + (e - k) * each), "the active experts are held as well"),
                (slip(state=12e-9), "in bytes, please"),
                ([w[1] for w in want], "those are the FLOPs; the bytes come first"),
                (slip(cut=lambda s, e, each, k, n: 1 / n), "the chips share all of it"),
                (slip(held=lambda s, e, each, k, n: s * n + e * each), "what is shared is cut over the chips, too"),
            ],
            "work": [
                (used_all, "a token goes through the active experts alone, not through all"),
                (slip(used=lambda s, e, each, k, n: s + each), "a token uses `active` experts, not one"),
                (slip(used=lambda s, e, each, k, n: k * each), "each token uses what is shared as well"),
                (
                    slip(used=lambda s, e, each, k, n: (s + each) * k),
                    "what is shared is used once, not once for each expert",
                ),
                (slip(per=2), "that is the forward pass; the backward pass has 4 more for each parameter and token"),
                (slip(per=4), "forward 2 and backward 4 FLOPs for each parameter and token"),
                (slip(per=8), "the task counts 6: nothing is computed again"),
                ([w[1] * c[5] for w, c in zip(want, _MIXTURES, strict=True)], "the chips share the tokens"),
                ([w[1] / c[4] for w, c in zip(want, _MIXTURES, strict=True)], "that is the work of one token"),
                ([w[1] / c[5] for w, c in zip(want, _MIXTURES, strict=True)], "divided by the chips twice"),
                (
                    slip(used=lambda s, e, each, k, n: (s + e * each) * k / e),
                    "the active share is of the experts; what is shared is used in whole",
                ),
                (slip(used=lambda s, e, each, k, n: s + k * each / e), "an active expert is used in whole"),
                (
                    slip(used=lambda s, e, each, k, n: s * n + k * each),
                    "the chips share the work of what all tokens use, too",
                ),
                (
                    slip(used=lambda s, e, each, k, n: s + (e - k) * each),
                    "those are the experts that a token does not meet",
                ),
                (slip(per=6e-12), "in FLOPs, please"),
            ],
        }[what]
        words = explained(mine, table, 1e-3) or "which parameters count here, times what, divided by what"
        _, experts, each, active, *_ = _MIXTURES[0]
        raise Wrong(
            f"With {experts} experts of {each / 1e9:g}e9 and {active} active, {what}: you return {amount(mine[0])} {unit}, "
            f"{off_by(mine[0], want[0][at])}: {words}."
        )


@exercise(
    _judge_expert_chip,
    "State is of all parameters that exist, 12 bytes each; work is of the parameters that a token meets, 6 FLOPs each. "
    "Both are divided by the chips.",
)
def expert_chip(shared, experts, each, active, tokens, chips):
    """Return (bytes of state, FLOPs of a step) of each chip."""
    state = 12 * (shared + experts * each)
    work = 6 * (shared + active * each) * tokens
    return state / chips, work / chips


# --- 19.2


def _days(tokens, batch, compute, network, hidden, *, least=min, steps=math.ceil, day=86400.0):
    return steps(tokens / batch) * (compute + network - hidden * least(compute, network)) / day


# tokens, batch, compute, network, hidden
_RUNS = [(1e9, 65536, 0.25, 0.1, 0.5), (3e12, 4e6, 2.0, 3.0, 0.25), (2.5e6, 1e6, 900.0, 1300.0, 0.9)]


def _judge_days(answer):
    got = [
        float(
            number(
                answer(*case), "one number, of days", said=f"For {case[0]:g} tokens, {case[1]:g} in a step, you return"
            )
        )
        for case in _RUNS
    ]
    want = [_days(*case) for case in _RUNS]
    if all(math.isclose(g, w, rel_tol=1e-6) for g, w in zip(got, want, strict=True)):
        return

    def made(formula):
        return [formula(*case) for case in _RUNS]

    words = explained(
        got,
        [
            (made(lambda *c: _days(*c[:4], 0)), "a share of the shorter clock is hidden behind the longer one"),
            (
                made(lambda *c: _days(*c[:4], 1)),
                "of the shorter clock `hidden` runs beside the longer one, and the rest does not",
            ),
            (
                made(lambda t, b, c, n, h: _days(t, b, max(c, n), -h * min(c, n), 0)),
                "what does not hide takes time as well: it comes on top of the longer clock",
            ),
            (
                made(lambda t, b, c, n, h: _days(t, b, min(c, n), 0, 0)),
                "a step takes at least as long as the longer of the two",
            ),
            (made(lambda *c: _days(*c, steps=lambda n: n * c[1])), "a step takes `batch` tokens at once"),
            *(
                (made(lambda *c, whole=whole: whole(_days(*c))), "days may be fractions; the steps are whole")
                for whole in (math.ceil, math.floor, round)
            ),
            (made(lambda *c: _days(*c, steps=round)), "a last step that is half full or less counts, too: round up"),
            (made(lambda *c: _days(*c[:4], 1 - c[4])), "`hidden` is the share that costs nothing; the rest costs"),
            (made(lambda *c: _days(*c, least=max)), "the longer clock cannot hide behind the shorter"),
            (
                made(lambda *c: _days(*c, least=lambda a, b: b)),
                "where the network takes longer, compute hides behind it",
            ),
            (
                made(lambda *c: _days(*c, least=lambda a, b: a)),
                "where compute takes longer, the network hides behind it",
            ),
            (
                made(lambda *c: _days(*c, least=lambda a, b: a + b)),
                "what hides is a share of the shorter clock, not of both",
            ),
            (made(lambda *c: _days(*c, steps=float)), "the last step is counted whole"),
            (made(lambda *c: _days(*c, steps=math.floor)), "the last tokens need a step, too: round up"),
            (
                made(lambda *c: _days(*c, steps=lambda n: math.floor(n) + 1)),
                "where the batch divides the tokens there is no further step",
            ),
            (made(lambda *c: _days(*c, day=1)), "these are seconds; a day has 86,400"),
            (made(lambda *c: _days(*c, day=3600)), "these are hours"),
            (made(lambda *c: _days(*c, day=1440)), "a day has 86,400 seconds, not 1,440"),
            (made(lambda *c: _days(*c) / math.ceil(c[0] / c[1])), "that is one step; how many are there?"),
            (made(lambda t, b, *_: math.ceil(t / b)), "those are steps; each takes seconds, and a day has 86,400"),
            (made(lambda *c: _days(*c, day=86400 * 365)), "those are years"),
            (made(lambda *c: _days(*c[:4], c[4] / 100)), "`hidden` is a share, 0 to 1, and no percentage"),
            (
                made(lambda t, b, c, n, h: _days(t, b, (1 - h) * min(c, n), 0, 0)),
                "that is what is left of the shorter clock; the longer one runs in whole beside it",
            ),
            (
                made(lambda t, b, c, n, h: _days(t, b, h * max(c, n) + (1 - h) * min(c, n), 0, 0)),
                "the longer clock runs in whole; a share of the shorter one is hidden",
            ),
        ],
        1e-6,
    )
    words = words or "how many steps are there, and how long is one"
    tokens, said, right = max(  # the case in which it shows most
        ((case[0], g, w) for case, g, w in zip(_RUNS, got, want, strict=True)), key=lambda c: abs(c[1] / c[2] - 1)
    )
    gap = off_by(said, right).removeprefix("1 times ")  # by a step of many thousands
    stop = "" if words.endswith("?") else "."
    raise Wrong(f"For {tokens:g} tokens you say {amount(said)} days, {gap}: {words}{stop}")


@exercise(
    _judge_days,
    "Steps, rounded up, times the seconds of one. Of the shorter of the two clocks the share `hidden` costs nothing.",
)
def days(tokens, batch, compute, network, hidden):
    """Return the days that the run takes."""
    steps = -(-tokens // batch)
    step = compute + network - hidden * min(compute, network)
    return steps * step / 86400


# --- 19.3: the page's tasks and its model of costs, here with what one may forget

AXES = "data", "fsdp", "model", "pipe"
_BATCHES = {
    1: ("v5e:4x4", 24, 2048, 64, 1024),
    2: ("v6e:8x8", 40, 4096, 256, 2048),
    3: ("v5e:8x16", 96, 8192, 32, 6144),
    4: ("v5e:8x8", 40, 4096, 64, 2048),
}
TASKS = {
    level: {
        "slice": name,
        "layers": layers,
        "width": width,
        "batch": batch,
        "length": length,
        "hidden": 4 * width,
        "heads": width // 128,
        "words": 32768,
        "chip": f"TPU {name.split(':')[0]}",
        "chips": math.prod(map(int, name.split(":")[1].split("x"))),
    }
    for level, (name, layers, width, batch, length) in _BATCHES.items()
}


def spelled(words: str) -> dict[str, Any]:
    """The plan that ``"data 4 fsdp 4 micro 2 bfloat16"`` spells. Raises Wrong for a word that is none."""
    plan = dict.fromkeys((*AXES, "micro"), 1) | {"remat": "layer", "dtype": "float32"}
    rest = words.replace(",", " ").split()
    while rest:
        word = rest.pop(0)
        if word in (*AXES, "micro") and rest and rest[0].removeprefix("-").isdecimal():
            plan[word] = int(rest.pop(0))
            if plan[word] < 1:
                raise Wrong(f"In the plan {shown(words)} {word} is {plan[word]}; it has to be 1 or more.")
        elif word in ("none", "bfloat16"):
            plan["remat" if word == "none" else "dtype"] = word
        elif word not in ("layer", "stage", "float32"):  # these go without saying
            raise Wrong(f"In the plan {shown(words)} the word {word!r} is not known, or has no number behind it.")
    if plan["pipe"] > 1:
        plan["remat"] = "stage"
    return plan


def _label(level: int, plan: dict[str, Any]) -> str:
    words = [f"{name} {plan[name]}" for name in (*AXES, "micro") if plan[name] > 1]
    words += [word for word in (plan["remat"], plan["dtype"]) if word in ("none", "bfloat16")]
    return f"level {level}: {' '.join(words)}"


def parameters(task):
    layer = 4 * task["width"] ** 2 + 2 * task["width"] * task["hidden"]
    return task["layers"] * layer, task["words"] * task["width"]


def rounds(plan):
    return (plan["micro"], plan["micro"]) if plan["pipe"] == 1 else (plan["micro"] + plan["pipe"] - 1, 1)


def flops(task, plan, forget=()):
    layers, words = parameters(task)
    tokens = task["batch"] * task["length"] / (1 if "chips" in forget else task["chips"])
    mixing = 0 if "attention" in forget else 4 * task["length"] * task["width"] * task["layers"]
    down = 2 * task["layers"] * task["width"] * task["hidden"]
    again = 0 if "remat" in forget else {"none": 0, "layer": 1, "stage": 2}[plan["remat"]]
    each = (6 + 2 * again) * layers + (3 + again) * mixing - (again > 0 and "down" not in forget) * down
    turns = 1 if "bubble" in forget else rounds(plan)[0] / plan["micro"]
    return tokens * (each * turns + (6 if "remat" in forget else 8) * words)


def sent(task, plan, forget=()):
    def part(n):
        return float(n > 1) if "part" in forget else (n - 1) / n

    data, fsdp, model, pipe = (plan[axis] for axis in AXES)
    (layers, words), (turns, uses) = parameters(task), rounds(plan)
    if "rounds" in forget:
        turns, uses = turns / plan["micro"], 1
    if "bubble" in forget:
        turns = turns / rounds(plan)[0] * plan["micro"]
    share = 1 if "share" in forget else model * pipe
    layers, words = layers / share, words / (1 if "share" in forget else model)
    x = 2 * task["batch"] / (data * fsdp) * task["length"] * task["width"]
    gathers, sums = {"none": (1, 4), "layer": (2, 5), "stage": (3, 7)}[plan["remat"]]
    if "again" in forget:
        gathers, sums = 1, 4
    sums *= task["layers"] / pipe * turns / (1 if "rounds" in forget else plan["micro"])
    width = 2 if plan["dtype"] == "bfloat16" or "float32" in forget else 4
    copies = part(data) * layers + part(data * pipe) * words
    dealt, way = part(pipe) * x, (4 if "bfloat16" in forget else 2) * part(fsdp)
    gathered = way * (gathers * turns * layers + uses * words) + dealt
    scattered = way * (turns * layers + uses * words) + dealt
    added = 2 * part(model) * x * (sums + 2) + 2 * width * copies / fsdp
    handed = 2 * x * turns / (1 if "rounds" in forget else plan["micro"]) * (pipe > 1)
    of = {"gathers": gathered, "scatters": scattered, "sums": added, "sends": handed}
    return {name: size for name, size in of.items() if name not in forget}


def memory(task, plan, forget=()):
    data, fsdp, model, pipe = (plan[axis] for axis in AXES)
    (layers, words), (turns, uses) = parameters(task), rounds(plan)
    own = (layers / pipe + words) / (fsdp * model * (data if "copies" in forget else 1))
    width = 2 if plan["dtype"] == "bfloat16" else 4
    rows = task["batch"] / (data * fsdp * (1 if "rounds" in forget else plan["micro"]))
    x, deep = 2 * rows * task["length"] * task["width"], task["layers"] / pipe
    scores = 4 * rows * task["heads"] / model * task["length"] ** 2
    kept = {
        "layer": deep * x,
        "none": deep * (x * (3 + 8 / model) + scores) + 2 * layers / model,
        "stage": (2 * turns + 2 * plan["micro"] + deep) * x,
    }
    of = {
        "state": (width + (0 if "moments" in forget else 8)) * own,
        "gradients": width * own * (1 + (uses > 1 and "sums" not in forget)),
        "kept": kept["layer" if "checkpoint" in forget else plan["remat"]],
        "at work": 4 * layers / (task["layers"] * model)
        + scores
        + 4 * rows * task["length"] * task["words"] / (model * pipe),
    }
    return {name: size for name, size in of.items() if name not in forget}


def _sent(task, plan, forget=()):
    return sum(sent(task, plan, forget).values())


def _memory(task, plan, forget=()):
    return sum(memory(task, plan, forget).values())


def clocks(task, flops, sent, state):
    chip = CHIPS[task["chip"]]
    return {"compute": flops / chip.flops, "network": sent / chip.ring_rate, "memory": 2 * state / chip.hbm_rate}


def _clocks(task, flops, sent, plan):
    return clocks(task, flops, sent, memory(task, plan)["state"])


@functools.cache
def _plans() -> dict[str, pods.Plan]:
    return pods._recorded("19")


def _step(level: int, plan: dict[str, Any]) -> dict[str, float]:
    """The clocks of a step: of what was compiled, where the record has the plan, else as predicted."""
    task, found = TASKS[level], _plans().get(_label(level, plan))
    if found and not found.error:
        return _clocks(task, found.flops, found.bytes_sent, plan)
    return _clocks(task, flops(task, plan), _sent(task, plan), plan)


BEST = {
    1: "data 2 fsdp 8 micro 2 none",
    2: "data 4 fsdp 16",
    3: "fsdp 4 model 8 pipe 4 micro 8 bfloat16",
    4: "fsdp 8 model 8 micro 4 none bfloat16",  # of all plans, by the page's functions (tests/helpers/test_plans.py)
}

_OF_ALL = "that is of all chips; a chip's part is asked"
_FORGOT: dict[str, tuple[str, Callable[..., float], float, dict[tuple[str, ...], str]]] = {
    "GB held": (
        "GB",
        _memory,
        1e9,
        {
            ("gradients",): "the gradients are missing",
            (
                "gradients",
                "kept",
                "at work",
            ): "that is the state alone: gradients, what is kept for the way back, and the working set are missing",
            ("kept",): "what the forward pass keeps for the way back is missing",
            ("at work",): "a gathered layer, its scores and the logits stand beside the rest",
            ("kept", "at work"): "activations are missing: those kept, and those at work",
            ("moments",): "Adam's two moments are missing, 8 bytes a parameter",
            ("sums",): "in rounds the gradients are there twice, the sum so far and an addend",
            ("copies",): "along `data` the state is copied, not cut",
            ("rounds",): "only the rows of one round are there at a time: divide by `micro`",
            ("checkpoint",): "without `checkpoint` each layer keeps all that is inside it, and the gathered weights",
        },
    ),
    "GB sent": (
        "GB",
        _sent,
        1e9,
        {
            ("part",): "of a group of n, (n - 1)/n travels",
            ("rounds",): "each round, or tick, gathers and scatters anew: times `micro`",
            ("bubble",): "in the bubble weights travel, too: m + p - 1 ticks",
            ("again",): "what is computed again is gathered and summed again",
            ("gathers",): "the gathers are missing",
            ("scatters",): "the reduce-scatters are missing",
            ("sums",): "the all-reduces are missing",
            ("sends",): "the pipe's sends are missing",
            ("bfloat16",): "weights and their gradients travel in bfloat16, 2 bytes",
            ("float32",): "the sum over `data` is of float32 gradients, 4 bytes",
            ("share",): "`model` and `pipe` cut the weights before `fsdp` gathers them",
        },
    ),
    "TFLOPs": (
        "TFLOPs",
        flops,
        1e12,
        {
            ("remat",): "`checkpoint` computes forward passes again",
            ("attention",): "scores and means are products, too: 4 * length * width for each token and layer, forward",
            (
                "remat",
                "attention",
            ): "6 for each parameter and token is not all: `checkpoint`, and attention's own products",
            ("bubble",): "in the bubble garbage is computed: (m + p - 1)/m",
            ("chips",): _OF_ALL,
            ("down",): "the last product of a layer that is computed again is needed by nobody",
        },
    ),
}


_CLOSE = 0.004  # a promise of three digits; a pipe that sends nothing shows


def _judge_plan_run(answer):
    for level, task in TASKS.items():
        got = answer(level)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise Wrong(
                f"For level {level} you return {shown(got)}; expected two things: a plan in words, and four promises."
            )
        text, promised = got
        if not isinstance(text, str):
            raise Wrong(
                f"For level {level} your plan is {shown(text)}; expected words such as 'data 4 fsdp 4 micro 2'."
            )
        plan = spelled(text)
        _possible(level, task, plan)
        # not np.shape of it all: NumPy makes no array of JAX's scalars and a text
        if isinstance(promised, (tuple, ValuesView)) or getattr(promised, "shape", None) == (4,):
            promised = list(promised)
        if not isinstance(promised, list) or len(promised) != 4:
            raise Wrong(
                f"For level {level} you promise {shown(promised)}; expected four: GB held, GB sent, TFLOPs, the slowest clock."
            )
        for (what, (unit, formula, scale, forgot)), one in zip(_FORGOT.items(), promised[:3], strict=True):
            said = f"Level {level}, {text}: of {what} you promise"
            mine, want = float(number(one, f"one number, of {unit}", said=said)), formula(task, plan) / scale
            if not math.isclose(mine, want, rel_tol=_CLOSE):
                slips = [(formula(task, plan, forget) / scale, words) for forget, words in forgot.items()]
                slips += [
                    (scale * want, f"in {unit}, please"),
                    (want * task["chips"], _OF_ALL),
                    (want * 1e9 / 2**30, "those are GiB, of 2**30 bytes; a GB has 1e9"),
                    (want * 1e3, f"those are thousandths of {unit}"),
                    *((f(task, plan) / by, f"that is of {name}") for name, (_, f, by, _) in _FORGOT.items()),
                ]
                if what == "TFLOPs":
                    eight = 8 * sum(parameters(task)) * task["batch"] * task["length"] / task["chips"] / scale
                    slips.append(
                        (eight, "8 for each parameter and token: what of attention, and of this plan's `remat`?")
                    )
                if (found := _plans().get(_label(level, plan))) and not found.error:
                    compiled = {"GB held": found.peak, "GB sent": found.bytes_sent, "TFLOPs": found.flops}[what]
                    slips.append((compiled / scale, "that is what the compiler says; the page's functions are asked"))
                slips = [(wrong, words) for wrong, words in slips if not math.isclose(wrong, want, rel_tol=_CLOSE)]
                words = explained(mine, slips, 2e-3, most=3) or _of_another(mine, level, plan, formula, scale)
                words = words or "hold it against the page's parts, one by one"
                stop = "" if words.endswith("?") else "."
                raise Wrong(f"{said} {amount(mine)}, {off_by(mine, want)}: {words}{stop}")
        three = _clocks(task, flops(task, plan), _sent(task, plan), plan)
        slowest = max(three, key=three.get)
        if str(promised[3]).strip().lower() != slowest:
            times = ", ".join(f"{name} {1e3 * seconds:,.0f} ms" for name, seconds in three.items())
            raise Wrong(
                f"Level {level}, {text}: you promise that {shown(promised[3])} is slowest. The clocks say: {times}."
            )
        mine, best = (max(_step(level, one).values()) for one in (plan, spelled(BEST[level])))
        if mine > 1.1 * best:
            beside = " A pipe always has `stage`: beside it 'none' changes nothing." * (
                plan["pipe"] > 1 and "none" in text.replace(",", " ").split()
            )
            raise Wrong(
                f"Level {level}, {text}: it fits, and you promise right. But its slowest clock takes {mine:.3g} s a step, and a "
                f"plan is known that takes {best:.3g} s. What is {slowest} spent on that another plan would not need?{beside}"
            )


def _of_another(mine: float, level: int, plan: dict[str, Any], formula: Callable[..., float], scale: float) -> str:
    """Words for a promise that holds for another plan of the level's grid, or for this plan on another level; or ''."""
    grid = [label.split(": ")[1] for label in _plans() if label.startswith(f"level {level}: ") and "," not in label]
    slips = [(formula(TASKS[level], spelled(words)) / scale, f"that is of the plan {words!r}") for words in grid]
    slips += [(formula(task, plan) / scale, f"that is of this plan on level {n}") for n, task in TASKS.items()]
    return explained(mine, slips, 2e-3)


def _possible(level: int, task: dict[str, Any], plan: dict[str, Any]) -> None:
    said = f"Level {level}, {_label(level, plan).split(': ')[1]}:"
    chips = math.prod(plan[axis] for axis in AXES)
    if chips != task["chips"]:
        raise Wrong(f"{said} the axes make {chips} chips of {task['chips']}.")
    rows = plan["data"] * plan["fsdp"] * plan["micro"]
    if task["batch"] % rows:
        raise Wrong(f"{said} {task['batch']} sequences cannot be dealt to data x fsdp x micro = {rows}.")
    if task["layers"] % plan["pipe"]:
        raise Wrong(f"{said} {task['layers']} layers cannot be dealt to {plan['pipe']} stages.")
    if task["length"] % plan["pipe"]:
        raise Wrong(
            f"{said} {task['length']} positions cannot be dealt to {plan['pipe']} stages, which score a part each."
        )
    if task["heads"] % plan["model"]:
        raise Wrong(f"{said} {task['heads']} heads cannot be dealt to model = {plan['model']}.")
    found, room = _plans().get(_label(level, plan)), CHIPS[task["chip"]].hbm
    if found and found.error:
        told = found.error.split("HBM, ")[-1].removesuffix(".")
        raise Wrong(f"{said} it does not fit. The compiler: {told}.")
    if not found and _memory(task, plan) > room:
        held = _memory(task, plan) / 1e9
        raise Wrong(
            f"{said} it does not fit: by the page's own parts it holds {held:.3g} GB, and a chip has {room / 1e9:g}."
        )


@exercise(
    _judge_plan_run,
    "Try the page's grids first: which plans fit, which clock is slowest, and what would make that clock faster? "
    "For the promises the page has a function each. On level 4 let a loop try all sizes that make 64 chips.",
)
def plan_run(level):
    """Return (plan in words, (GB held, GB sent, TFLOPs, the slowest clock))."""
    plan = {
        1: "data 2 fsdp 8 micro 2 none",  # nothing computed again: two smaller rounds fit
        2: "data 4 fsdp 16",  # one round; of those that wait for FLOPs it sends least
        3: "fsdp 4 model 8 pipe 4 micro 8 bfloat16",  # all three, or it does not fit
        4: "fsdp 16 model 4 micro 4 none",  # a slower chip: FLOPs are dear again, and four rounds fit
    }[level]
    task, how = TASKS[level], spelled(plan)
    held, out, work = memory(task, how), sum(sent(task, how).values()), flops(task, how)
    seconds = clocks(task, work, out, held["state"])
    slowest = max(seconds, key=seconds.get)
    return plan, (sum(held.values()) / 1e9, out / 1e9, work / 1e12, slowest)
