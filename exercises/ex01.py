"""Exercises and predictions of lesson 01, Devices."""

from __future__ import annotations

import statistics
from typing import Any

import jax.numpy as jnp
import numpy as np

from exercises.framework import Bound, Prediction, Seen, exercise

chain = Prediction(
    0,
    "three calls return within 1 ms, and the first product alone takes about 20",
    {
        3: "a call returns before its result is there",
        1: "the first product takes about 20 ms, and three calls return within 1",
        2: "no call waits for the one before",
    },
    "results",
    varies=True,
)
copies = Prediction(
    46.08,
    "eight devices hold 5.76 MB each",
    {
        5.76: "that is one copy; each of the eight devices has memory of its own",
        0.72: "a device holds all of it, not an eighth",
    },
    "MB",
    within=0.01,
)
lands = Prediction(
    2,
    "`a` is uncommitted, so it is copied to where the committed array lives",
    {0: "the committed array stays, and `a` is copied to it"},
    "",
)
even = Prediction(
    40,
    "4 times 100 GFLOP/s over 10 GB/s",
    {
        10: "4 bytes a number, there and back, over 2 FLOPs leave a factor of 4",
        20: "the result has to come back, too",
        80: "a product has 2n³ FLOPs",
        0.4: "the product here takes 2n³ over 100 GFLOP/s",
    },
    "",
    within=0.01,
)
stream = Prediction(
    4,
    "the second stage does one product in the time of ten of the first",
    {
        1: "so it would be if device 0 waited for device 1",
        2: "device 0 does not wait for device 1; it goes on with the next batch",
        3: "device 0 does not wait for device 1; it goes on with the next batch",
    },
    "batches",
    varies=True,
)
moved = Prediction(
    0,
    "inside a `jit` the move to a device is ignored",
    {1: "inside a `jit` the move to a device is ignored, without a word"},
    "",
)
overlap = Prediction(
    5,
    "before the first load there is no step",
    {6: "before the first load there is no step", 0: "the loop that does not wait loads while the step is at work"},
    "loads",
    varies=True,
)


class _Device:
    """By a clock of its own: the first call compiles, each is queued and returns at once, its result is there later."""

    def __init__(self, compiled: float, runs: list[float]) -> None:
        self.now, self.free, self.runs, self.calls = 0.0, 0.0, [compiled, *runs], 0

    def clock(self) -> float:
        return self.now

    def __call__(self, x: Any) -> _Later:
        takes = self.runs[0] if not self.calls else self.runs[1:][(self.calls - 1) % (len(self.runs) - 1)]
        self.now += 0.001 if self.calls else 60
        self.free, self.calls = max(self.now, self.free) + takes, self.calls + 1
        return _Later(self, self.free)


class _Later:
    """A result that can be waited for, or read, which waits."""

    def __init__(self, device: _Device, ready: float) -> None:
        self.device, self.ready = device, ready

    def block_until_ready(self) -> _Later:
        self.device.now = max(self.device.now, self.ready)
        return self

    def is_ready(self) -> bool:
        self.device.now += 0.001
        return self.device.now >= self.ready

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.zeros(()) if self.block_until_ready() else None

    def __float__(self) -> float:
        return float(self.__array__())

    item = tolist = __float__


def _by_its_clock(f: Any, x: float, compiled: float, runs: list[float]) -> Any:
    device = _Device(compiled, runs)
    return f(device, x, len(runs), device.clock)


@exercise(
    "Call once and wait, before any clock. Then, for each repeat: clock, call, jax.block_until_ready, clock. "
    "statistics.median.",
    cases={
        "f, x, 3, clock; the first call takes 80 s, the runs 6, 27 and 3 s": (2.5, 20, [6, 27, 3]),
        "f, x, 2, clock; the first call takes 90 s, the runs 2 and 8 s": (1.5, 30, [2, 8]),
    },
    slips={
        "jax.block_until_ready(f(x)) -> f(x)": "you time how fast a call returns; wait for its result before you read "
        "the clock again",
        "f(x).block_until_ready() -> None": "the call that compiles is among those that count",
        "f(x).block_until_ready() -> f(x)": "the first call is still at work when your clock starts: let it finish",
        "statistics.median -> statistics.mean": "that is the mean, which one slow run pulls up",
        "statistics.median(seconds) -> sum(seconds)": "that is all runs together; one call's time is asked",
        "statistics.median -> min": "that is the shortest run, not the middle one",
        None: "Where does your clock start, and which calls count?",
    },
    run=_by_its_clock,
    within=0.01,
)
def steady_seconds(f, x, repeats, clock):
    """Return the median seconds of one call f(x): compiled before, and waited for."""
    import jax

    f(x).block_until_ready()  # compiles, and is over when the clock starts
    seconds = []
    for _ in range(repeats):
        start = clock()
        jax.block_until_ready(f(x))
        seconds.append(clock() - start)
    return statistics.median(seconds)


@exercise(
    "Which devices are named by committed operands: none, one, or two? Uncommitted ones go where they are needed.",
    cases=[
        ([(0, False), (2, True)], 0),
        ([(3, False)], 0),
        ([(2, True), (5, True)], 0),
        ([(3, False), (5, False)], 1),
        ([(4, False), (2, True), (2, True)], 0),
        ([], 6),
        ([(1, True), (0, False), (7, True), (1, True)], 0),
    ],
    slips={
        "if committed} -> }": "an uncommitted array has no say: JAX copies it to where it is needed",
        "homes else default -> homes else operands[0][0] if operands else default": "without a committed array the default device decides, wherever the "
        "others were made",
        "len(homes) > 1 -> len(homes) > 2": "two committed arrays on two devices: JAX moves neither",
        "len(homes) > 1 -> sum(c for _, c in operands) > 1": "two committed arrays on one device get along",
    },
)
def lands_on(operands, default):
    """Return the number of the device where the operation runs, or "an error"."""
    homes = {device for device, committed in operands if committed}
    if len(homes) > 1:
        return "an error"
    return homes.pop() if homes else default


@exercise(
    "Three times: here, 2 batch d k FLOPs; the way, 4 bytes for each number of x and of the result; there, the same "
    "FLOPs at the other rate.",
    cases=[
        (64, 300, 500, 8e9, 50e9, 5e12),
        (7, 11, 30, 5e9, 40e9, 6e12),
        (20, 1100, 70, 3e9, 200e9, 900e9),
    ],
    slips={
        "batch * d + batch * k -> batch * d": "the result has to come back, too",
        "batch * d + batch * k -> batch * d + batch * k + d * k": "the weights are there already",
        "batch * d + batch * k -> 2 * batch * d": "what comes back is the result, which has another shape than x",
        " + flops / flops_there -> ": "the product takes its time there, too",
        "2 * batch -> batch": "a product of (batch, d) by (d, k) has 2 batch d k FLOPs: a multiply and an add each",
        "4 * (batch -> (batch": "you count numbers; a float32 takes 4 bytes",
    },
)
def seconds_saved(batch, d, k, bytes_per_second, flops_here, flops_there):
    """Return the seconds that the trip saves, below 0 if it does not pay."""
    flops = 2 * batch * d * k
    trip = 4 * (batch * d + batch * k) / bytes_per_second
    return flops / flops_here - (trip + flops / flops_there)


def _tuned(make: Any, arrays: list) -> Seen:
    """Three candidates, of which another is the fastest for each kind of array; how often the stopwatch was asked."""
    times = {"(2, 3) float32": (3, 1, 2), "(2, 3) int32": (1, 2, 3), "(6,) float32": (3, 2, 1)}
    candidates = [lambda x, i=i: (i, float(x.sum())) for i in range(3)]
    asked = []

    def seconds(f: Any, x: Any) -> float:
        asked.append(f)
        return times[f"{x.shape} {x.dtype}"][candidates.index(f)] + len(asked) / 1e3

    run = make(candidates, seconds)
    return Seen({"": [run(x) for x in arrays], "calls of seconds": Bound(len(asked), 1, 0)})


def _arrays() -> dict[str, tuple]:
    x = jnp.arange(6.0).reshape(2, 3)
    return {
        "candidates, seconds; then run(x), run(x + 1)": ([x, x + 1],),
        "candidates, seconds; then run(x), run(x.astype(int)), run(x.reshape(6)), run(2 * x)": (
            [x, x.astype(int), x.reshape(6), x * 2],
        ),
    }


@exercise(
    "A dictionary outside of run, with (x.shape, x.dtype) as its key, and min(candidates, key=...) where the key is new.",
    cases=_arrays,
    slips={
        "key = x.shape, x.dtype -> key = x.shape": "an array of another dtype may have another winner",
        "key = x.shape, x.dtype -> key = x.dtype": "an array of another shape may have another winner",
        "key = x.shape, x.dtype -> key = 0": "the winner of the first array need not be the next one's",
        "if key not in fastest -> if True": "measure once for each shape and dtype, and remember",
        "min(candidates -> max(candidates": "that is the slowest",
    },
    run=_tuned,
)
def tuner(candidates, seconds):
    """Return run(x): what the fastest candidate gives for x, timed once a kind."""
    fastest = {}

    def run(x):
        key = x.shape, x.dtype
        if key not in fastest:
            fastest[key] = min(candidates, key=lambda f: seconds(f, x))
        return fastest[key](x)

    return run
