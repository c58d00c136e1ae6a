"""Exercises and predictions for lesson 01, Devices."""

from __future__ import annotations

import statistics
from typing import Any

import jax.numpy as jnp
import numpy as np

from exercises.framework import Bound, Edit, Mistake, Prediction, RunResult, exercise

chain = Prediction(
    0,
    "all three calls return within 1 ms, and the first product alone takes about 20 ms",
    {
        3: "a call returns before its result is ready",
        1: "the first product takes about 20 ms, but all three calls return within 1 ms",
        2: "no call waits for the previous one",
    },
    "results",
    varies=True,
)
copies = Prediction(
    46.08,
    "each of the eight devices holds 5.76 MB",
    {
        5.76: "that's one copy, but each device has memory of its own",
        0.72: "each device holds the full array, not an eighth of it",
    },
    "MB",
    rel_tol=0.01,
)
lands = Prediction(
    2,
    "`a` is uncommitted, so JAX copies it to the device of the committed array",
    {0: "the committed array stays where it is, and `a` is copied to its device"},
    "",
)
even = Prediction(
    40,
    "that's 4 times 100 GFLOP/s, divided by 10 GB/s",
    {
        10: "4 bytes per element each way, divided by 2 FLOPs, gives a factor of 4",
        20: "the result has to come back too",
        80: "a product takes 2n³ FLOPs",
        0.4: "the product here takes 2n³ FLOPs divided by 100 GFLOP/s",
    },
    "",
    rel_tol=0.01,
)
stream = Prediction(
    4,
    "stage two takes ten times as long per batch as stage one",
    {
        1: "that would be right if device 0 waited for device 1",
        2: "device 0 doesn't wait for device 1 but goes on with the next batch",
        3: "device 0 doesn't wait for device 1 but goes on with the next batch",
    },
    "batches",
    varies=True,
)
moved = Prediction(
    0,
    "inside a `jit`, JAX ignores a transfer to a bare device",
    {1: "inside a `jit`, JAX ignores a transfer to a bare device, and gives no warning"},
    "",
)
overlap = Prediction(
    5,
    "no step is running yet during the first load",
    {
        6: "no step is running yet during the first load",
        0: "the loop that doesn't wait loads the next batch while a step is running",
    },
    "loads",
    varies=True,
)


class _FakeDevice:
    """Imitate an asynchronous device with its own clock, in seconds. Its first call compiles."""

    def __init__(self, first_run: float, later_runs: list[float]) -> None:
        self.now, self.free_at, self.runs, self.calls = 0.0, 0.0, [first_run, *later_runs], 0

    def clock(self) -> float:
        return self.now

    def __call__(self, x: Any) -> _PendingResult:
        duration = self.runs[0] if not self.calls else self.runs[1:][(self.calls - 1) % (len(self.runs) - 1)]
        self.now += 0.001 if self.calls else 60
        self.free_at, self.calls = max(self.now, self.free_at) + duration, self.calls + 1
        return _PendingResult(self, self.free_at)


class _PendingResult:
    """Imitate a jax.Array that isn't ready: waiting for it, or reading it, advances the clock."""

    def __init__(self, device: _FakeDevice, ready_at: float) -> None:
        self.device, self.ready_at = device, ready_at

    def block_until_ready(self) -> _PendingResult:
        self.device.now = max(self.device.now, self.ready_at)
        return self

    def is_ready(self) -> bool:
        self.device.now += 0.001
        return self.device.now >= self.ready_at

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.block_until_ready()
        return np.zeros(())

    def __float__(self) -> float:
        return float(self.__array__())

    item = tolist = __float__


def _run_on_fake_device(f: Any, x: float, first_run: float, later_runs: list[float]) -> Any:
    device = _FakeDevice(first_run, later_runs)
    return f(device, x, len(later_runs), device.clock)


@exercise(
    "Call f(x) once and wait for its result before you read the clock. Then, for each repeat: clock(), f(x), "
    "jax.block_until_ready, clock(). Return the median, with statistics.median.",
    cases={
        "f, x, 3, clock; the first call takes 80 s, the later ones 6, 27 and 3 s": (2.5, 20, [6, 27, 3]),
        "f, x, 2, clock; the first call takes 90 s, the later ones 2 and 8 s": (1.5, 30, [2, 8]),
    },
    mistakes=[
        Mistake(
            Edit("jax.block_until_ready(f(x))", "f(x)"),
            "you're timing how fast a call returns; wait for its result before reading the clock again",
        ),
        Mistake(Edit("f(x).block_until_ready()", "None"), "the call that compiles is one of those you time"),
        Mistake(
            Edit("f(x).block_until_ready()", "f(x)"),
            "the first call is still running when your clock starts: let it finish",
        ),
        Mistake(Edit("statistics.median", "statistics.mean"), "that's the mean, and a single slow run pulls it up"),
        Mistake(
            Edit("statistics.median(seconds)", "sum(seconds)"),
            "that's the total for all runs, not the time of one call",
        ),
        Mistake(Edit("statistics.median", "min"), "that's the shortest run, not the middle one"),
    ],
    question="When does your clock start, and which calls count?",
    run=_run_on_fake_device,
    rel_tol=0.01,
)
def steady_seconds(f, x, repeats, clock):
    """Return the median seconds per compiled call of f(x), waiting for each result."""
    import jax

    f(x).block_until_ready()  # compile, and let the call finish before the clock starts
    seconds = []
    for _ in range(repeats):
        start = clock()
        jax.block_until_ready(f(x))
        seconds.append(clock() - start)
    return statistics.median(seconds)


@exercise(
    "How many different devices hold committed operands: none, one or several? JAX copies uncommitted operands to "
    "wherever they're needed.",
    cases=[
        ([(0, False), (2, True)], 0),
        ([(3, False)], 0),
        ([(2, True), (5, True)], 0),
        ([(3, False), (5, False)], 1),
        ([(4, False), (2, True), (2, True)], 0),
        ([], 6),
        ([(1, True), (0, False), (7, True), (1, True)], 0),
    ],
    mistakes=[
        Mistake(Edit("if committed}", "}"), "an uncommitted array has no say: JAX copies it to wherever it's needed"),
        Mistake(
            Edit("homes else default", "homes else operands[0][0] if operands else default"),
            "without a committed array, the operation runs on the default device, wherever the arrays were made",
        ),
        Mistake(
            Edit("len(homes) > 1", "len(homes) > 2"),
            "if two committed arrays are on different devices, JAX moves neither",
        ),
        Mistake(
            Edit("len(homes) > 1", "sum(c for _, c in operands) > 1"),
            "two committed arrays on the same device are fine",
        ),
    ],
)
def lands_on(operands, default):
    """Return the number of the device where the operation runs, or "an error"."""
    homes = {device for device, committed in operands if committed}
    if len(homes) > 1:
        return "an error"
    return homes.pop() if homes else default


@exercise(
    "You need three durations: the product here, 2 batch d k FLOPs; the transfers, 4 bytes per element of x and of the "
    "result; the product there, the same FLOPs at the other rate.",
    cases=[
        (64, 300, 500, 8e9, 50e9, 5e12),
        (7, 11, 30, 5e9, 40e9, 6e12),
        (20, 1100, 70, 3e9, 200e9, 900e9),
    ],
    mistakes=[
        Mistake(Edit("batch * d + batch * k", "batch * d"), "the result has to come back too"),
        Mistake(Edit("batch * d + batch * k", "batch * d + batch * k + d * k"), "the weights are already there"),
        Mistake(
            Edit("batch * d + batch * k", "2 * batch * d"),
            "what comes back is the result, whose shape differs from x's",
        ),
        Mistake(Edit(" + flops / flops_there", ""), "the product takes time there too"),
        Mistake(
            Edit("2 * batch", "batch"),
            "a product of (batch, d) and (d, k) takes 2 batch d k FLOPs: a multiplication and an addition each",
        ),
        Mistake(Edit("4 * (batch", "(batch"), "you're counting elements, and each float32 element takes 4 bytes"),
    ],
)
def seconds_saved(batch, d, k, bytes_per_second, flops_here, flops_there):
    """Return the seconds that the transfer saves; negative if it takes longer."""
    flops = 2 * batch * d * k
    transfer = 4 * (batch * d + batch * k) / bytes_per_second
    return flops / flops_here - (transfer + flops / flops_there)


def _run_tuner(make_run: Any, arrays: list) -> RunResult:
    """Run a tuner on three candidates, each the fastest for one kind of array, and count the calls to `seconds`."""
    times = {"(2, 3) float32": (3, 1, 2), "(2, 3) int32": (1, 2, 3), "(6,) float32": (3, 2, 1)}
    candidates = [lambda x, i=i: (i, float(x.sum())) for i in range(3)]
    timed = []

    def seconds(f: Any, x: Any) -> float:
        timed.append(f)
        return times[f"{x.shape} {x.dtype}"][candidates.index(f)] + len(timed) / 1e3

    run = make_run(candidates, seconds)
    return RunResult({"": [run(x) for x in arrays], "calls to seconds": Bound(len(timed), 1, 0)})


def _tuner_cases() -> dict[str, tuple]:
    x = jnp.arange(6.0).reshape(2, 3)
    return {
        "candidates, seconds; then run(x), run(x + 1)": ([x, x + 1],),
        "candidates, seconds; then run(x), run(x.astype(int)), run(x.reshape(6)), run(2 * x)": (
            [x, x.astype(int), x.reshape(6), x * 2],
        ),
    }


@exercise(
    "Keep a dictionary outside run, keyed by (x.shape, x.dtype). For a new key, store min(candidates, key=...).",
    cases=_tuner_cases,
    mistakes=[
        Mistake(
            Edit("key = x.shape, x.dtype", "key = x.shape"),
            "an array with a different dtype may have a different winner",
        ),
        Mistake(
            Edit("key = x.shape, x.dtype", "key = x.dtype"),
            "an array with a different shape may have a different winner",
        ),
        Mistake(
            Edit("key = x.shape, x.dtype", "key = 0"),
            "the winner for the first array may not be the winner for the next",
        ),
        Mistake(
            Edit("if key not in fastest", "if True"),
            "measure only once for each shape and dtype, and remember the winner",
        ),
        Mistake(Edit("min(candidates", "max(candidates"), "that's the slowest candidate"),
    ],
    run=_run_tuner,
)
def tuner(candidates, seconds):
    """Return run(x), which calls the fastest candidate for x's shape and dtype."""
    fastest = {}

    def run(x):
        key = x.shape, x.dtype
        if key not in fastest:
            fastest[key] = min(candidates, key=lambda f: seconds(f, x))
        return fastest[key](x)

    return run
