"""Exercises of notebook 12, Cut the depth: pipelines."""

from __future__ import annotations

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.compat import varying
from utils.count.cost import cost
from utils.exercises import Choice, Prediction, Wrong, exercise, explained, number, part, several, shown
from utils.mesh import make_mesh

_PERCENT = {100: "a share of all is at most 1: 0.27, say, for 27 %"}
bubble = Prediction(
    "",
    _PERCENT,
    own={
        "4, 1": {4: "that is the bubble over the useful time; the whole is both", 1 / 3: "so much of it is work"},
        "4, 8": {
            11 / 8: "that is the bubble over the useful time, 3/8; the whole has the 3 ticks in it, too",
            8 / 3: "so much of it is work",
            11 / 6: "four of eight would be half: a stage waits 3 ticks of 11",
            11 / 9: "a stage waits while the other 3 are filled: p - 1 ticks, not p",
            (6 / 14)
            / (3 / 11): "a stage waits 3 ticks: the first ones wait at the end, the last ones at the beginning",
        },
        "8, 8": {
            15 / 8: "that is the bubble over the useful time, 7/8; the whole has the 7 ticks in it, too",
            8 / 7: "so much of it is work",
            90 / 77: "not twice that of 4 stages: there are more ticks, too",
            45 / 77: "that is for 4 stages; with 8, it takes 7 ticks until the last one has something to do",
        },
    },
    within=0.02,
)
first_tick = Choice(
    {
        "nothing": "a program has no way to do nothing: each device runs the same tick, on what it has",
        "zeros": "it begins with zeros, but its layers have biases",
        "numbers": "",
    }
)
fill = Choice(
    {"falls": "", "rises": ""},
    own={
        "watched": {"rises": "each step goes down the gradient of just this loss, right or wrong"},
        "true": {
            "falls": "the loss that is differentiated compares each microbatch with the labels of another one, and what "
            "the network learns for that it unlearns here"
        },
    },
)
flops = Prediction(
    "times",
    {
        8 / 11: "that would be a device that computes only what is useful; here each computes in each of the 11 ticks",
        112 / 121: "3/11 is the bubble's share of the whole; over the useful 8 ticks it is 3/8",
        8 / 11 * 8 / 11: "less than what is useful would not do",
        12 / 11: "it fills for p - 1 ticks, 3",
        4 * 8 / 11: "each device has a quarter of the layers, so a quarter is what it computes of the useful",
        4: "that is over all that one device computes, not over a quarter of it",
    },
)
three_cuts = Prediction(
    "",
    {},
    own={
        "depth cut: pipeline": {None: "only one microbatch's activations cross a border, once a tick and way"},
        "weights cut: FSDP": {
            None: "each device gathers three quarters of all weights twice, 129 A in all, and sends as much of the gradients"
        },
        "layers cut: tensor": {
            None: "each of the 16 layers all-reduces the activations of all rows, forward and backward"
        },
    },
    ranks=True,
)
of_1f1b = Choice(
    {
        "smaller": "stage 0 still has to wait until microbatch 0 has been through all stages, and back",
        "larger": "a stage does the same jobs, in another order, and none of them later than it must",
        "the same": "",
    }
)
live = Prediction(
    "microbatches",
    {},
    own={
        "GPipe, 0": {
            4: "it takes in all of them before the first comes back",
            1: "the backward pass needs what the forward pass has kept",
        },
        "1F1B, 0": {
            32: "it takes in no more than it gives back, once microbatch 0 is back",
            3: "it begins with three, and takes in one more before the first backward pass",
            1: "microbatch 0 has to go to the last stage and back; what comes in meanwhile is live",
            8: "it begins with three, and from then on one forward and one backward pass take turns",
        },
        "1F1B, 3": {
            4: "nothing stands behind it: its first microbatch goes back at once",
            32: "nothing stands behind it: its first microbatch goes back at once",
            0: "between its forward and its backward pass it is live",
        },
    },
    things=True,
)
passes = Prediction(
    "times",
    {
        4.125 / 7: "that is GPipe's; this one runs the layers twice forward, and in more ticks",
        5.5 / 7: "four passes are right, but not in 11 ticks: a microbatch goes 3 ticks to the right, and 3 back",
        5.25 / 7: "14 ticks are right, but of four passes: `vjp` runs the layers forward once more",
        4 / 7: "that is without a bubble; each stage computes both halves of each tick, useful or not",
        3 / 7: "that is without a bubble, and without the second forward pass",
    },
)
growth = Prediction(
    "times",
    {},
    own={
        "GPipe": {None: "it keeps something for each tick, and there are 35 instead of 11; other things do not grow"},
        "GPipe, checkpoint": {None: "it keeps little for each tick, beside much that does not grow"},
        "1F1B": {None: "its buffer has 7 places at any m"},
    },
    within=0.2,
)
twice_round = Prediction(
    "",
    {
        **_PERCENT,
        19 / 22: "not half of 3/11: the waiting is half as long, and the whole is shorter, too",
        19 / 11: "that was with one part a device; while the line fills, a tick is now half as long",
        19 / 16: "that is the bubble over the useful time",
        (6 / 22) / (3 / 19): "that was with one part a device; while the line fills, a tick is now half as long",
        (7 / 23) / (3 / 19): "four devices fill in 3 ticks, of a half each: the ring is not longer",
        (7 / 15) / (3 / 19): "eight parts stand on four devices: the line is full after 3 ticks",
    },
    within=0.02,
)
picked = Choice(
    {
        "before": "",
        "inside": "a checkpoint keeps what goes in: here arrays that are there anyway, and a number",
        "the same": "a checkpoint keeps what goes in: picked before, a new copy of the part's weights in each tick",
    }
)


def _least(wait, share, whole):
    """The least m at which `wait(p) / (m + whole(p))` is at most the share."""
    return lambda p: math.ceil(wait(p) / share - whole(p))


def _judge_enough(answer):
    cases = (6, 0.13), (3, 0.3), (12, 0.06), (2, 0.035), (5, 0.81)
    said = [
        number(
            answer(p, share),
            "one whole number, of microbatches",
            said=f"For {p} stages and {share} you return",
            whole=True,
        )
        for p, share in cases
    ]
    # (p - 1)/(m + p - 1) <= share: 5 · 0.87/0.13 = 33.5, 2 · 0.7/0.3 = 4.7, 11 · 0.94/0.06 = 172.3, 0.965/0.035 = 27.6, 0.9
    want = [34, 5, 173, 28, 1]
    if said == want:
        return

    def slip(value):
        return [value(p, share) for p, share in cases]

    slips = [
        (
            slip(lambda p, s: math.ceil((p - 1) / s)),
            "that is for (p - 1)/m, the bubble over the useful time; the share is of all",
        ),
        (
            slip(lambda p, s: math.floor((p - 1) / s)),
            "that is for (p - 1)/m, the bubble over the useful time; the share is of all",
        ),
        (
            slip(lambda p, s: math.floor((p - 1) * (1 - s) / s)),
            "one microbatch fewer than is enough: the bubble is then above the share",
        ),
        (slip(lambda p, s: math.floor((p - 1) * (1 - s) / s) + 2), "one microbatch more than is needed"),
        (slip(lambda p, s: math.ceil((p - 1) * (1 - s) / s) + p - 1), "that is the number of ticks, m + p - 1"),
        (slip(lambda p, s: math.ceil(p * (1 - s) / s)), "a stage waits p - 1 ticks, not p"),
        (slip(lambda p, s: math.ceil((p - 1) / s - p)), "there are m + p - 1 ticks, not m + p"),
        (
            slip(lambda p, s: math.ceil(2 * (p - 1) * (1 - s) / s)),
            "twice p - 1 are counted: the way back has a bubble of its own, but work of its own as well, so the share is the same",
        ),
        (
            slip(lambda p, s: math.ceil((p - 1) * s / (1 - s))),
            "share and 1 - share have changed places: with so few, the work is a share",
        ),
        (
            slip(lambda p, s: round((p - 1) * (1 - s) / s)),
            "rounded to the nearest: with fewer than are enough, the bubble is above the share",
        ),
        ([4 * p for p, _ in cases], "4 p is a rule of thumb, for one share; ask for m in (p - 1)/(m + p - 1)"),
    ]
    i = next(i for i in range(len(cases)) if said[i] != want[i])
    p, share = cases[i]
    if words := explained(said, slips, within=1e-9):
        raise Wrong(f"For {p} stages and a share of {share} you return {said[i]}: {words}.")
    if said[i] < 1:
        raise Wrong(
            f"For {p} stages and a share of {share} you return {said[i]}: without a microbatch there is no bubble, and no work."
        )
    got = (p - 1) / (said[i] + p - 1)
    why = "which is more" if got > share else f"and {said[i] - 1} would be enough"
    raise Wrong(
        f"For {p} stages and a share of {share} you return {said[i]}. Then the bubble is {got:.4f} of all, {why}."
    )


@exercise(
    _judge_enough, "(p - 1)/(m + p - 1) has to be at most the share. Solve for m, and round up to a whole number."
)
def enough(p, share):
    """Return the least m with which the bubble of p stages is at most this share."""
    return math.ceil((p - 1) * (1 - share) / share)


WASTES = ([1.0, 1.5, 0.5, 2.0], 6), ([0.3, 0.7, 0.2], 11), ([3.0, 1.0, 2.0, 1.0, 1.25], 2)


def _judge_waste(answer):
    said, wants = [], []
    for times, m in WASTES:
        told = f"For stages of {times} seconds and {m} microbatches you return"
        said.append(number(answer(list(times), m), "one number, a share", said=told))
        wants.append(1 - m * sum(times) / (len(times) * (m + len(times) - 1) * max(times)))
    if np.allclose(said, wants, rtol=1e-3):
        return

    def slip(value):
        return [value(len(t), m, np.array(t)) for t, m in WASTES]

    bubble_only = slip(lambda p, m, t: (p - 1) / (m + p - 1))
    slips = [
        (
            bubble_only,
            "that is the bubble, (p - 1)/(m + p - 1), as if all stages took the same time. In each tick the faster ones wait for the slowest",
        ),
        (
            slip(lambda p, m, t: 1 - t.mean() / t.max()),
            "that is the waiting within a tick alone: the ticks that fill and empty the line are missing",
        ),
        (slip(lambda p, m, t: m * t.sum() / (p * (m + p - 1) * t.max())), "that is the share that is useful"),
        (
            slip(lambda p, m, t: 1 - m * t.sum() / (p * (t.sum() + (m - 1) * t.max()))),
            "that is of stages that send as soon as they are done: sum(times) + (m - 1) max(times). Here every tick is as long as the slowest stage, also while the line fills",
        ),
        (
            slip(lambda p, m, t: (p - 1) / (m + p - 1) + 1 - t.mean() / t.max()),
            "the bubble and the waiting within a tick are added up; in the bubble the whole tick is wasted already, so a part counts twice",
        ),
        (
            slip(lambda p, m, t: p * (m + p - 1) * t.max() / (m * t.sum()) - 1),
            "that is what is wasted over what is useful; the share is of all",
        ),
        (
            slip(lambda p, m, t: 1 - m * t.sum() / ((m + p - 1) * t.max())),
            "all p devices take the time, and only one is in the whole",
        ),
        (
            slip(lambda p, m, t: 1 - t.sum() / (p * (m + p - 1) * t.max())),
            "of each stage the work for one microbatch is counted; there are m",
        ),
        (slip(lambda p, m, t: 1 - m * t.sum() / (p * (m + p) * t.max())), "there are m + p - 1 ticks, not m + p"),
        (slip(lambda p, m, t: 1 - m * t.sum() / (p * (m + p - 1) * t[-1])), "the last stage is not always the slowest"),
        (slip(lambda p, m, t: 1 - m * t.sum() / (p * (m + p - 1) * t[0])), "the first stage is not always the slowest"),
        (
            slip(lambda p, m, t: 1 - m * t.sum() / (p * (m + p - 1) * t.min())),
            "a tick lasts as long as the slowest stage, not as the fastest",
        ),
        (slip(lambda p, m, t: (p - 1) * t.max() / ((m + p - 1) * t.max())), "the waiting within a tick is missing"),
        ([100 * want for want in wants], "a share of all is at most 1, not 100"),
    ]
    i = int(np.argwhere(~np.isclose(said, wants, rtol=1e-3))[0][0])
    times, m = WASTES[i]
    words = explained(said, slips, within=1e-3)
    if not words:
        words = "how long are all ticks together, for all devices, and how much of it is work on a microbatch?"
        if not 0 <= said[i] <= 1:
            words = f"a share is between 0 and 1; {words}"
    raise Wrong(
        f"For stages of {times} seconds and {m} microbatches you say {said[i]:.4g}: {words if words[-1] == '?' else words + '.'}"
    )


@exercise(
    _judge_waste,
    "The whole: p devices, m + p - 1 ticks, each of max(times). Useful: m microbatches through every stage.",
)
def waste(times, m):
    """Return the share of device time that is not useful; times: seconds by stage."""
    whole = len(times) * (m + len(times) - 1) * max(times)
    return 1 - m * sum(times) / whole


def _order(got, s, p, m):
    """The reader's jobs of a stage, as [(kind, microbatch)]."""
    where = f"For stage {s} of {p}, with {m} microbatches, you return"
    jobs = []
    for job in several(got, None, "a list of pairs such as ('F', 0)", said=where):
        try:
            kind, i = job
            i = number(i, whole=True)
        except (TypeError, ValueError, Wrong):
            raise Wrong(f"{where} {shown(job)} as a job; expected a pair such as ('F', 0).") from None
        if kind not in ("F", "B", "W") or not 0 <= i < m:
            raise Wrong(f"{where} the job {shown(job)}; the kinds are 'F', 'B' and 'W', the microbatches 0 to {m - 1}.")
        jobs.append((str(kind), int(i)))
    for kind in "FBW":
        for i in range(m):
            if jobs.count((kind, i)) != 1:
                raise Wrong(
                    f"{where} a list with {(kind, i)} in it {jobs.count((kind, i))} times; each job stands there once."
                )
    return jobs


def _run(orders):
    """Simulate jobs of a second: ends, and what each stage waits for where none can go on."""
    p, ends, free, at = len(orders), {}, [0] * len(orders), [0] * len(orders)
    while any(at[s] < len(orders[s]) for s in range(p)):
        moved, waits = False, []
        for s, order in enumerate(orders):
            if at[s] == len(order):
                continue
            kind, i = order[at[s]]
            needs = {
                "F": [(s - 1, "F", i)] if s else [],
                "B": [(s, "F", i), *([(s + 1, "B", i)] if s + 1 < p else [])],
                "W": [(s, "B", i)],
            }[kind]
            missing = [need for need in needs if need not in ends]
            if missing:
                waits.append((s, (kind, i), missing[0]))
                continue
            free[s] = ends[s, kind, i] = max([free[s], *(ends[need] for need in needs)]) + 1
            at[s], moved = at[s] + 1, True
        if not moved:
            s, job, (there, *needed) = next((w for w in waits if w[0] == w[2][0]), waits[0])
            begins = [[kind for kind, _ in order].index("B") for order in orders]
            why = ""
            if begins == sorted(begins) and begins[0] < begins[-1]:
                why = " The first stage begins with the fewest F, and the last with the most: turn that round."
            raise Wrong(
                f"With {p} stages all of them wait for each other. Stage {s} stands at {job}, which needs {tuple(needed)} "
                f"of {'its own, further down in its list' if s == there else f'stage {there}'}.{why}"
            )
    return ends


def _judge_order_of(answer):
    for p, m in ((4, 8), (3, 7), (5, 5), (2, 6)):
        orders = [_order(answer(s, p, m), s, p, m) for s in range(p)]
        ends = _run(orders)
        end, want = max(ends.values()), 3 * m + p - 1
        told = f"With {p} stages and {m} microbatches"
        most = []
        for s in range(p):
            events = sorted(
                (ends[s, kind, i] - (kind == "F"), kind == "F", kind) for kind, i in orders[s] if kind != "B"
            )
            most.append(int(np.cumsum([1 if kind == "F" else -1 for *_, kind in events]).max()))
        s = int(np.argmax(most))
        first = [[kind for kind, _ in order] for order in orders]
        if most[s] > p:
            why = "does it take in a new one before an old one has had its W?"
            if all(kinds.index("B") >= m for kinds in first):
                why = "all forward passes come before the first backward pass, as in GPipe."
            elif all(set(kinds[-m:]) == {"W"} for kinds in first):
                why = "every W waits until the end, and its microbatch is live until then."
            elif all(kinds.index("B") <= p - s for s, kinds in enumerate(first)):
                why = "forward and backward are as in 1F1B; how long may a W wait, on this stage?"
            raise Wrong(f"{told} stage {s} has {most[s]} live ones at a time, at most {p} are asked: {why}")
        if end > want:
            behind = all(order.index(("W", i)) == order.index(("B", i)) + 1 for order in orders for i in range(m))
            same_lag = all(order.index(("B", 0)) == 1 for order in orders)
            why = f"{_longest_wait(orders, ends)} Which W could stand there?"
            if behind:
                why = "Each W stands right behind its B. The stage before waits for the next B, and for no W."
            elif same_lag:
                why = "Each stage has its first B after one F, and waits for it; it could take in others meanwhile."
            raise Wrong(f"{told} all is done after {end} seconds, {want} are asked. {why}")


def _longest_wait(orders, ends):
    """Where a stage waits longest between two of its jobs, in words."""
    found = []
    for s, order in enumerate(orders):
        for before, after in itertools.pairwise(order):
            found.append((ends[s, *after] - 1 - ends[s, *before], -s, after))
    wait, s, job = max(found)
    return f"Stage {-s} waits longest, {wait} s, before {job}."


@exercise(
    _judge_order_of,
    "Begin as 1F1B does, then F, B and a W by turns. The later the stage, the more B come before its first W: it has room.",
)
def order_of(s, p, m):
    """Return stage s's jobs in order: ("F", i), ("B", i), ("W", i), each i once."""
    begin = p - 1 - s
    jobs = [("F", i) for i in range(begin)]
    for i in range(m):
        if begin + i < m:
            jobs.append(("F", begin + i))
        jobs.append(("B", i))
        if i >= s:
            jobs.append(("W", i - s))
    return jobs + [("W", i) for i in range(m - s, m)]


ROUNDS, ROWS, WIDTH = (3, 2), 3, 5


@functools.cache
def _again_case():
    rng = np.random.default_rng(12)
    w = rng.normal(size=(4, WIDTH, WIDTH)).astype(np.float32)
    return w, rng.normal(size=(4, ROWS, WIDTH)).astype(np.float32)


def _ring(rounds, to=1, fed=4, take=lambda t: t % 4, stage=3, first=None):
    """The results of four ticks on one stage, (4, ROWS, WIDTH), with the program changed in one place.

    `fed`: for so many ticks stage 0 takes microbatch `take(t)`; `first`: the tick of the first result.
    """
    w, x = (value.astype(np.float64) for value in _again_case())
    first = 4 * rounds - 1 if first is None else first
    arrived, seen = np.zeros((4, ROWS, WIDTH)), []
    for t in range(first + 4):
        if t < fed:
            arrived[0] = x[take(t)]
        h = np.tanh(arrived @ w)
        seen.append(h[stage])
        arrived = np.roll(h, to, axis=0)
    return np.stack(seen[first:])


@functools.cache
def _again_slips(rounds):
    """[(what every device returns, words)], the right one first, without words."""
    right, end = _ring(rounds), 4 * rounds - 1
    found = [(right, ""), (_again_case()[1].astype(np.float64), "you return x as it came")]
    for n in range(1, 2 * rounds + 2):
        why = ". Does stage 0 take x again in each round?" if n == 1 else ""
        if n != rounds:
            found.append((_ring(n), f"each microbatch has been through the network {n} times, not {rounds}{why}"))
    found.append((_ring(rounds, to=-1), "the sends go to the left: a microbatch goes through the stages 0, 3, 2, 1"))
    for n in range(1, 4 * rounds):
        if n != 4:
            words = f"stage 0 takes x for {n} tick{'s' * (n > 1)}, where there are 4 microbatches"
            found += [(_ring(rounds, fed=n), words), (_ring(rounds, fed=n, take=lambda t: min(t, 3)), words)]
    always = "stage 0 takes x in all ticks; what comes back from stage 3 has to go in again"
    found.append((_ring(rounds, fed=999, take=lambda t: min(t, 3)), always))
    for stage in range(3):
        for first in (end, end - 3 + stage):
            found.append(
                (
                    _ring(rounds, stage=stage, first=first),
                    f"the results are those of stage {stage}; the network ends with stage 3",
                )
            )
    for first in (*range(end), *range(end + 1, end + 5)):
        words = f"these are results of stage 3, of ticks {first} to {first + 3}: in which tick does microbatch 0 end its last round there?"
        found.append((_ring(rounds, first=first), words))
    found += [
        (4 * right, "four times the right ones: the results are on all devices already where you add up"),
        (right / 4, "a quarter of the right ones: a mean over the devices, of which three give zeros"),
        (right[::-1], "the right ones, but in another order: at place 0 stands microbatch 3"),
    ]
    found += [
        (np.roll(right, -by, axis=0), f"the right ones, but in another order: at place 0 stands microbatch {by}")
        for by in (1, 2, 3)
    ]
    return found


def _judge_again(answer):
    w, x = _again_case()
    mesh = make_mesh((4,), ("stage",))
    for rounds in ROUNDS:

        def program(w, x, rounds=rounds):
            return part(answer, x.shape)(w[0], x, rounds)[None]

        mapped = jax.jit(jax.shard_map(program, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P("stage")))
        cpu = jax.devices()[0].platform == "cpu"
        compiled = mapped.lower(w, x).compile({"xla_backend_optimization_level": 0} if cpu else None)
        got = np.asarray(compiled(w, x), np.float64)  # (4 devices, 4, ROWS, WIDTH)
        slips = _again_slips(rounds)
        right = slips[0][0]
        if not np.allclose(got, right, atol=1e-4):
            _refuse_again(got, right, slips, rounds)
        products = cost(compiled).flops / (2 * ROWS * WIDTH * WIDTH)
        if products > 4 * rounds + 3:
            raise Wrong(
                f"Right values, for {rounds} rounds, and a device computes {products:g} products; {4 * rounds + 3} are asked at "
                "most. Does a microbatch wait for the ones before it to end a round?"
            )


def _refuse_again(got, right, slips, rounds):
    """Say what the devices return, or where it differs."""
    told = f"For {rounds} rounds"
    for wrong, words in slips[1:]:
        if np.allclose(got, wrong, atol=1e-4):
            raise Wrong(f"{told}, {words if words[-1] == '?' else words + '.'}")
    for device in (3, 0, 1, 2):
        others = [d for d in range(4) if d != device]
        if np.allclose(got[device], right, atol=1e-4):
            what = "zeros" if not got[others].any() else "something else"
            raise Wrong(
                f"{told}, device {device} returns the right results and the others {what}: every device is to return them."
            )
    equal = "the same on all devices" if np.allclose(got, got[:1], atol=1e-6) else "not the same on all devices"
    at = tuple(int(i) for i in np.argwhere(~np.isclose(got, right, atol=1e-4))[0])
    fits = [i for i in range(4) if np.allclose(got[0, i], right[i], atol=1e-4)]
    some = f"Right are the microbatches {fits}. " if fits else ""
    raise Wrong(
        f"{told} your results are {equal}. {some}Microbatch {at[1]} is wrong: on device {at[0]} its first numbers are "
        f"{np.round(got[at[0], at[1], 0, :2], 4).tolist()}, expected {np.round(right[at[1], 0, :2], 4).tolist()}. In which tick does "
        "it come to stage 0 again, and what does stage 0 take then?"
    )


@exercise(
    _judge_again,
    "In tick 4 microbatch 0 comes back to stage 0, right when its place is free: stage 0 takes x for four ticks, then what arrives.",
)
def again(w, x, rounds):
    """Per device: (d, d), (4, b, d), an int -> (4, b, d), shared by all devices."""
    stage = jax.lax.axis_index("stage")
    right = [(s, (s + 1) % 4) for s in range(4)]

    def tick(arrived, t):
        h = jnp.where((stage == 0) & (t < 4), x[t % 4], arrived)
        h = jnp.tanh(h @ w)
        return jax.lax.ppermute(h, "stage", right), h

    start = varying(jnp.zeros_like(x[0]), "stage")
    results = jax.lax.scan(tick, start, jnp.arange(4 * rounds + 3))[1][-4:]
    return jax.lax.psum(jnp.where(stage == 3, results, 0), "stage")
