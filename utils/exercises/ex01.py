"""Exercises of notebook 01, Devices."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from utils.devices import started_devices
from utils.exercises import Choice, Prediction, Wrong, by_factors, exercise, number, same, several, shown

# ---- predictions ----

DEVICES = {str(i): "" for i in range(8)} | {"an error": ""}
FREE = "an uncommitted array goes where the other one lives"
hundred = Prediction("devices", {8 / 100: "that is this Python; the other one asked for a hundred, and got them"})
absent = Choice({"an empty list": "JAX does not say it so gently", "None": "JAX does not say it so gently"})
late = Choice(
    {"4": "", "8": "", "an error": ""},
    own={
        "config": {
            "4": "the number is fixed since the backend started",
            "8": "it is too late, and JAX says so",
        },
        "here": {
            "4": "JAX reads the variable once, when the backend starts",
            "an error": "nobody looks at the variable any more, so nobody can complain",
        },
        "new Python": {
            "8": "a new Python has a backend of its own, which starts after the variable was set",
            "an error": "a new Python has a backend of its own, which starts after the variable was set",
        },
    },
)
copied = Choice(
    {"yes": "", "no": ""},
    own={
        "on_zero": {"yes": "it is there already, so JAX hands you the same memory under another name"},
        "on_two": {"no": "emulated or not, device 2 has memory of its own"},
    },
)
sums = Choice(
    DEVICES,
    own={
        "on_two + x": {
            "0": FREE,
            "an error": f"`x` was only born on device 0: {FREE}",
        },
        "on_two + on_five": {
            "2": "both are committed, and JAX moves neither",
            "5": "both are committed, and JAX moves neither",
            "0": "both are committed; the default device is for arrays that are not",
        },
        "zeros_like(on_two) + x": {
            "0": "the zeros are made like `on_two`, so they are on device 2, and committed",
            "an error": "the zeros are committed, but `x` was only born on device 0",
        },
    },
)
guarded = Prediction(
    "lines",
    {},
    {
        "between devices": {
            2: "a number of Python comes from the host, not from a device; and what device_put does, you asked for",
            3: "a number of Python comes from the host, not from a device; and what device_put does, you asked for",
            0: "`x` is copied from device 0 to device 2, and nobody asked for it",
        },
        "of any kind": {
            0.5: "the number 1 has to come from the host",
            1.5: "what device_put does, you asked for",
            0: "`x` is copied from device 0 to device 2, and nobody asked for it",
        },
    },
)
warm = Choice(
    {"yes": "", "no": ""},
    own={
        "on_two + x": {"yes": "a program that has run before takes a way on which the guard is not asked"},
        "jnp.ones(4)": {"no": "the number 1 has to come from the host"},
    },
)
births = Choice(
    DEVICES,
    own={
        "born + 1, inside": {"0": "inside the `with`, device 3 is the default one"},
        "born + 1, after": {"3": "to be born there is not to stay there: nobody committed `born`"},
        "on_two + born": {
            "3": "`born` is uncommitted, `on_two` is not",
            "0": "a committed array decides, not the default device",
            "an error": "`born` is uncommitted, so there is no conflict",
        },
        "made + 1": {"0": "`device=` commits, as `device_put` does"},
    },
)
returned = Choice(
    {
        "close": "a call that waits for its result would make them so; this one only hands the work over",
        "half": "handing over takes the same short time, however large the work",
        "tenth": "on a quiet machine it is so; run the cell again",
    }
)
queued = Choice(
    {
        "yes": "a device takes so many orders and no more; then a call waits",
        "no": "on a quiet machine it is so; run the cell again",
    }
)
per_byte = Prediction(
    "FLOPs a byte",
    {
        2: "the result has to come back, too: 8n² bytes, not 4n²",
        1 / 2: "a multiply and an add are two FLOPs",
        4: "you count numbers; a float32 takes 4 bytes",
        8: "you count numbers, and one way; 8n² bytes cross the link",
        2 / 3: "12n² are the bytes between a chip and its own memory, of a product of two arrays",
    },
    {"sine": {1 / 0.125: "that is a FLOP for each element; a byte is asked"}},
)
even = Prediction(
    "",
    {},
    {
        "by the rule": {
            1 / 2: "the result has to come back, too",
            2: "a product has 2n³ FLOPs",
            1 / 4: "you count numbers; a float32 takes 4 bytes",
            8: "the link's 10 GB/s are bytes already",
            10: "at n = 400 the trip takes 128 µs and the work here 1,280",
            100: "at n = 4000 the trip takes 12.8 ms and the work here 1,280",
        },
        "with 50 µs a move": {
            41 / 187: "at n = 41 the work here takes 1.4 µs, and the two moves 100 more",
            152 / 187: "there and back are two moves",
            1000 / 187: "at n = 1000 the work here takes 20 ms, and the two moves 0.1",
        },
    },
    within=0.1,
)
BACK = "the reverse of a move goes back, up to where the signal came from"
backwards = Choice(
    DEVICES,
    own={
        "norm": {"0": "its input was moved to device 1", "2": "its input was moved to device 1"},
        "gradient": {
            "0": BACK,
            "1": BACK,
            "an error": "a move has a reverse, so it has a gradient",
        },
        "loose": {
            "0": BACK,
            "1": BACK,
            "2": "that is where the other signal lives",
            "an error": "a move has a reverse, so it has a gradient",
        },
    },
)
stream = Prediction(
    "signals",
    {
        1 / 4: "so it would be in a loop that waits for each signal",
        1 / 2: "the first stage does not wait for the second; it has been through with all of them long since",
        3 / 4: "the first stage does not wait for the second; it has been through with all of them long since",
    },
)
trap = Choice(
    DEVICES,
    own={
        "device": {
            "1": "a bare device is ignored inside a `jit`",
            "an error": "a bare device is ignored inside a `jit`, and nothing is said",
        },
        "sharding": {
            "0": "a sharding is not ignored: all of the program runs there",
            "an error": "the signal is uncommitted, so all of the program can run there",
        },
    },
)
overlap = Prediction(
    "loads",
    {},
    {
        "in every step": {
            **{n: "before a load this loop has waited until the step is done" for n in (1, 2, 3, 4, 5)},
            6: "before a load this loop has waited until the step is done",
        },
        "at the end": {
            6 / 5: "before the first load there is no step",
            0: "a step is handed over, and runs while the next batch is loaded",
            1 / 5: "a step is handed over, and runs while the next batch is loaded",
        },
    },
)

# ---- 1.1 ----

_NUMBERS = itertools.count(1)  # each check takes new ones; JAX, for one, remembers a platform's name for ever


@contextmanager
def _one_more_platform(count: int) -> Iterator[tuple[str, list]]:
    """For a while JAX has one more platform, which is not the default one: its name, and its devices."""
    from jax.extend.backend import backends

    name = f"slate{next(_NUMBERS)}"
    made = [SimpleNamespace(platform=name, id=i, process_index=0, device_kind=name) for i in range(count)]
    asked = dict.fromkeys(("devices", "local_devices", "_get_all_devices"), lambda: list(made))
    asked |= dict.fromkeys(("device_count", "local_device_count"), lambda: count)
    backends()[name] = SimpleNamespace(platform=name, process_index=lambda: 0, **asked)
    try:
        yield name, made
    finally:
        del backends()[name]


def _judge_find_devices(answer):
    cpus = jax.devices("cpu")
    default = jax.default_backend()
    with _one_more_platform(3) as (more, made):
        has = f"This machine has {len(cpus)} devices of 'cpu' and, for this check, 3 of {more!r}; the default is {default!r}. "
        for platforms, want in [
            (["cpu"], cpus),
            (["rocket"], []),
            (["rocket", "cpu"], cpus),
            ([more], made),
            (["cpu", more], cpus),
            (["rocket", more, "cpu"], made),
            ([], []),
        ]:
            said = f"find_devices({platforms!r}): you return"
            try:
                got = answer(platforms)
            except Wrong as wrong:
                if "RuntimeError" not in str(wrong):
                    raise
                how = "That is how JAX says that a platform is absent; catch it."
                raise Wrong(f"find_devices({platforms!r}): {wrong}. {how}") from wrong
            if got is None:
                raise Wrong(
                    f"{said} None; expected a list, which a caller can count, on every way through the function."
                )
            found = several(got, None, "a list of devices", said)
            if not all(hasattr(one, "process_index") for one in found):
                raise Wrong(f"{said} {shown(got)}; expected the devices themselves, as `jax.devices` gives them.")
            twice = [one for i, one in enumerate(found) if any(one is other for other in found[:i])]
            if twice:
                raise Wrong(f"{said} {_spelled(found)}: some of them twice. {has}")
            if sorted(map(id, found)) != sorted(map(id, want)):
                raise Wrong(f"{said} {_spelled(found)}. {has}{_why_found(platforms, found, want)}")


def _spelled(found: list) -> str:
    """'8 of cpu and 3 of slate1', or 'no device'."""
    names = [device.platform for device in found]
    return " and ".join(f"{names.count(name)} of {name!r}" for name in dict.fromkeys(names)) or "no device"


def _why_found(platforms: list, found: list, want: list) -> str:
    names = {device.platform for device in found}
    if len(names) > 1:
        return "Expected those of one platform."
    if not found and platforms[0] == "rocket":
        return "The first name in the list is absent; go on with the next one."
    if not found:
        return f"{platforms[0]!r} is there, and not the default platform. Where did you look?"
    if not want:
        return "None of the names in the list is there."
    if names != {want[0].platform}:
        return "Which name in the list comes first?"
    return f"Expected all {len(want)} of them."


@exercise(
    _judge_find_devices,
    "A loop over the names; in it, `try` one and return what `jax.devices(name)` gives. What happens where one is absent?",
)
def find_devices(platforms):
    """Return the devices of the first platform in the list that is there, else []."""
    for platform in platforms:
        try:
            return jax.devices(platform)
        except RuntimeError:
            pass
    return []


# ---- 1.2 ----

_MEETS = "Write down each array that meets another one: where it lives, and whether it is committed."
_LANDINGS = [  # of each expression: the devices in it, the default one first, and what is to be said to a wrong answer
    (
        (0, 3),
        {
            3: "`born` lives there, but did anybody commit it?",
            "an error": "JAX refuses where two committed arrays meet. Is either of these committed?",
        },
    ),
    (
        (0, 3, 6),
        {
            0: "Is an array committed that was made with `device=`?",
            3: "Is an array committed that was made with `device=`? Is `born`?",
            "an error": "JAX refuses where two committed arrays meet. Is `born` committed?",
        },
    ),
    (
        (0, 2, 5),
        {
            2: "Is `on_two + 1` committed? Is `on_five`?",
            5: "Is `on_two + 1` committed? Is `on_five`?",
            0: "The default device does not move an array that is committed.",
        },
    ),
    (
        (0, 2, 3, 5),
        {
            3: "The default device does not move an array that is committed.",
            2: "What does `float(...)` return, and on which device does that live?",
            "an error": "What does `float(...)` return, and on which device does that live?",
            0: "What is committed here, and to which device?",
        },
    ),
    (
        (0, 5),
        {
            0: "`x` is uncommitted. What does it meet on the way to the gradient?",
            "an error": "JAX refuses where two committed arrays meet. Is `x` committed?",
        },
    ),
]


def landings():
    """Run the five expressions of exercise 1.2; a list of device numbers, or 'an error' where JAX refuses."""
    devices = started_devices()
    x = jnp.arange(4.0)
    on_two, on_five = jax.device_put(x, devices[2]), jax.device_put(x, devices[5])
    with jax.default_device(devices[3]):
        born = jnp.ones(4)
        fourth = on_five + float(on_two.sum())
    found = []
    for run in (
        lambda: jax.jit(lambda a, b: a + b)(born, x),
        lambda: jnp.ones(4, device=devices[6]) + born,
        lambda: (on_two + 1) + on_five,
        lambda: fourth,
        lambda: jax.grad(lambda w: (w * on_five).sum())(x),
    ):
        try:
            found.append(next(iter(run().devices())).id)
        except ValueError:
            found.append("an error")
    return found


def _judge_predict_landings(answer):
    got = answer()
    got = list(got) if isinstance(got, Iterator) else got
    listed = several(got, 5, "five answers, each a device's number or 'an error'")
    for i, (one, want, (there, words)) in enumerate(zip(listed, landings(), _LANDINGS, strict=True), 1):
        said, asked = f"Expression {i}: you say", "a device's number, or 'an error'"
        if isinstance(one, jax.Device):
            one = one.id
        if isinstance(one, str):
            text = str(one).strip()
            if text.lower() in ("error", "an error"):
                one = "an error"
            elif not text.isdecimal():
                raise Wrong(f"{said} {text!r}; expected {asked}.")
            elif isinstance(one, np.str_):  # an array has one type: NumPy made texts of the numbers
                one = int(text)
        if one is None or isinstance(one, (type, BaseException)):
            raise Wrong(f"{said} {one!r}; expected {asked}.")
        if one != "an error":
            one = number(one, asked, said=said, whole=True)
        if one != want:
            why = words.get(one, _MEETS)
            if one not in (*there, "an error"):
                why = f"None of its arrays lives on device {one}. {_MEETS}"
            raise Wrong(f"{said} {one}. {why}")


@exercise(
    _judge_predict_landings,
    "Of each array that meets another one: did somebody say where it lives (`device_put`, `device=`), or was it only born "
    "somewhere? What is computed from its values inherits that. A number of Python lives nowhere.",
)
def predict_landings():
    """Return a list of five: the device's number of each result, or 'an error'."""
    return [0, 6, "an error", 5, 5]


# ---- 1.3 ----


class _StandIn:
    """What is told of an array that is not there yet. Who reads its value, or computes with it and reads that, waits."""

    value = 0.0

    def block_until_ready(self) -> Any:
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.block_until_ready()
        return np.asarray(self.value, dtype)

    def __float__(self) -> float:
        return float(self.__array__())

    def __repr__(self) -> str:
        return f"Array({float(self)})"

    def item(self) -> float:
        return float(self)

    tolist = item

    def sum(self) -> Any:
        return self

    mean = sum

    def __getitem__(self, index: Any) -> Any:
        return self


def _with_stand_ins(answer: Any, name: str, *args: Any) -> Any:
    """What the answer returns; where Python or JAX refuses what is handed out, it is told that it is no real array."""
    try:
        return answer(*args)
    except Wrong as wrong:
        if "'_Step'" not in (text := str(wrong)) and "_Step'>" not in text and "_Later'" not in text:
            raise
        told = "it can be waited for (`block_until_ready`, `is_ready`, `float`, `np.asarray`), and no more"
        raise Wrong(f"{name} is a stand-in for an array in this check: {told}.") from wrong


class _Later(_StandIn):
    """A result as an asynchronous call returns it: there is something to wait for until `ready`, by the clock."""

    def __init__(self, called: float, ready: float, planned: float) -> None:
        self.called, self.ready, self.planned = called, ready, planned
        self.took: float | None = None  # from the call until somebody had waited for it

    def block_until_ready(self) -> _Later:
        while (rest := self.ready - time.perf_counter()) > 0:
            time.sleep(rest)
        if self.took is None:
            self.took = time.perf_counter() - self.called
        return self

    def is_ready(self) -> bool:
        if there := time.perf_counter() >= self.ready:
            self.block_until_ready()
        return there


class _Work:
    """A function as one device runs it: the first call compiles, each puts its work into the queue, and returns."""

    def __init__(self, x: float, compiles: float, plan: list[float]) -> None:
        self.x, self.compiles, self.plan, self.free = x, compiles, plan, 0.0
        self.calls: list[_Later] = []

    def __call__(self, *args: Any, **kwargs: Any) -> _Later:
        if any(isinstance(arg, jax.core.Tracer) for arg in args):
            raise Wrong(
                "`f` is handed an abstract value, as inside `jax.jit`. It is compiled already: call it as it is."
            )
        if args and isinstance(args[0], _Later):
            raise Wrong(f"You call f with what it returned; expected f(x), with x = {self.x}, each time.")
        if kwargs or args != (self.x,):
            raise Wrong(f"You call f{shown(args)}; expected f(x), with x = {self.x}.")
        called = time.perf_counter()
        if not self.calls:
            time.sleep(self.compiles)
        planned = self.plan[(len(self.calls) - 1) % len(self.plan)]
        self.free = max(time.perf_counter(), self.free) + planned
        self.calls.append(_Later(called, self.free, planned))
        return self.calls[-1]


def _judge_steady_seconds(answer):
    # In units: median 6; the middle as they come 3, mean 9.6, that of the middle three 6.7, the geometric one 5.6, first
    # 11, last 1, median with the call that compiles 8.5.
    plan, compiles = [11, 6, 3, 27, 1], 30
    for unit in (0.005, 0.01, 0.02, 0.05):  # a busy machine lengthens the runs: then once more, with longer ones
        work = _Work(2.5, compiles * unit, [unit * duration for duration in plan])
        said = number(_with_stand_ins(answer, "What f returns", work, work.x, len(plan)), "one number, of seconds")
        surplus = len(work.calls) - len(plan)
        if len(work.calls) < 1 + len(plan):
            raise Wrong(
                f"For repeats = {len(plan)} you call f {len(work.calls)} times; expected one call that compiles it, then "
                f"{len(plan)} that count."
            )
        timed = work.calls[-len(plan) :]
        waited = [call.took for call in timed if call.took is not None]
        if not waited:
            raise Wrong(
                f"You say {_ms(said)}, and waited for none of the {len(plan)} results: so long it takes to hand the work "
                "over. Wait for each result inside the timed stretch (a method is called with brackets)."
            )
        if len(waited) < len(timed):
            raise Wrong(
                f"You say {_ms(said)}. Of the {len(plan)} results that count you waited for {len(waited)}. Time each run "
                "by itself, from its call until its result is there."
            )
        first = work.calls[0].took or work.calls[0].ready - work.calls[0].called
        right = abs(said - statistics.median(waited)) < 0.3 * unit
        words = "" if right else _which_seconds(said, waited, first, 0.3 * unit)
        left = work.calls[-len(plan) - 1].took is None  # the call before may be at work in the first of them
        quiet = all(call.took - call.planned < 0.4 * unit for call in timed[left:])
        if quiet and (right or words):
            break
    if not right:
        took = ", ".join(f"{1e3 * took:.0f}" for took in waited)
        raise Wrong(f"You say {_ms(said)}; one after the other, the runs took {took} ms{words and ': '}{words}.")
    for unit in (0.005, 0.01, 0.02):  # two runs that count, of 2 and 8, and before them one of 30 that compiles
        work = _Work(2.5, 2 * unit, [2 * unit, 8 * unit] * 3 + [30 * unit])
        said = number(answer(work, work.x, 2), "one number, of seconds")
        if len(work.calls) - 2 != surplus:
            raise Wrong(
                f"For repeats = {len(plan)} you call f {surplus + len(plan)} times, for repeats = 2 {len(work.calls)} "
                "times; expected the call that compiles, and `repeats` more."
            )
        timed = work.calls[-2:]
        low, high = sorted(call.planned for call in timed)
        if abs(said - (low + high) / 2) < 1.5 * unit:
            return
        told = f"For repeats = 2 you say {_ms(said)}; the two runs take {_ms(low)} and {_ms(high)}"
        if abs(said - (low + high) / 2 - 15 * unit) < 3 * unit:
            compiled = (
                f"that of the call that compiles takes {_ms(30 * unit)}, and is still at work when your clock starts"
            )
            raise Wrong(f"{told}; {compiled}: let it finish.")
        if all(call.took is not None and call.took - call.planned < 0.4 * unit for call in timed):
            break
    middle = "The median of an even number of runs is the mean of the two in the middle."
    raise Wrong(f"{told}. {middle if min(abs(said - low), abs(said - high)) < 1.5 * unit else ''}".rstrip())


def _which_seconds(said: float, runs: list[float], first: float, within: float) -> str:
    """What a number of seconds is, if it is not the median of the runs."""
    total, n = sum(runs), len(runs)
    ends = list(itertools.accumulate(runs))
    slow = f"{1e3 * max(runs):.0f} ms"
    compiled = "the first call, which compiles, is among what you count"
    slips = [
        (total / n, f"that is the mean, which the one run of {slow} pulls up"),
        (total, f"that is all {n} runs; one call's time is asked"),
        (runs[n // 2], "that is the middle one as they came, not the middle one by size"),
        (
            statistics.median(ends),
            "your clock starts once, so each time holds all the runs before; start it for each run",
        ),
        (statistics.median([first, *runs]), compiled),
        ((first + total) / (n + 1), f"{compiled}; and that is a mean"),
        ((first + total) / n, f"{compiled}; and that is a mean"),
        (first + total, f"{compiled}; and that is a sum"),
        (first, "that is the first call, which compiles"),
        (min(runs), "that is the shortest run, not the middle one"),
        (max(runs), "that is the longest run, not the middle one"),
        (runs[0], "that is the first run that counts, not the middle one by size"),
        (runs[-1], "that is the last run, not the middle one by size"),
        (sorted(runs)[n // 4], f"that is number {n // 4 + 1} by size, not the middle one"),
        (sorted(runs)[-1 - n // 4], f"that is number {n - n // 4} by size, not the middle one"),
        (statistics.mean(sorted(runs)[1:-1]), "that is a mean, of all but the shortest and the longest run"),
        (
            0.0,
            "between your two readings of the clock nothing is waited for; or the clock counts only what the CPU does, as "
            "process_time",
        ),
        (-statistics.median(runs), "you take the later time away from the earlier one"),
    ]
    found = [words for value, words in slips if abs(said - value) < within]
    for factor, words in ((1e3, "your number is in ms"), (1e6, "your number is in µs"), (1e9, "your number is in ns")):
        if abs(said / factor - statistics.median(runs)) < within:
            found.append(words)
    return "; or: ".join(dict.fromkeys(found[:2]))


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3g} ms"


@exercise(
    _judge_steady_seconds,
    "Call once and wait, before any clock. Then, for each repeat: clock, call, jax.block_until_ready, clock. statistics.median.",
)
def steady_seconds(f, x, repeats):
    """Return the median seconds of one call f(x): compiled before, and waited for."""
    import statistics

    f(x).block_until_ready()  # compiles, and is over when the clock starts
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(f(x))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


# ---- 1.4 ----


def _judge_seconds_saved(answer):
    slips = {
        "number": [
            (8, "you took 8 bytes, a float64; a float32 has 4"),
            (2, "you took 2 bytes; a float32 has 4"),
            (1, "you count numbers; a float32 takes 4 bytes"),
            (32, "you count bits; the link's rate is in bytes"),
            (0, "x and the result take time on the way"),
        ],
        "goes": [(0, "x has to go there"), (2, "x goes there once; what comes back is the result, of another shape")],
        "returns": [(0, "the result has to come back"), (2, "the result comes back once")],
        "x_returns": [(1, "x does not come back; the result does, and has another shape")],
        "weights": [(1, "the weights are there already"), (2, "the weights are there already")],
        "multiply_add": [(1, "a product of (batch, d) by (d, k) has 2 batch d k FLOPs: a multiply and an add each")],
        "there": [
            (0, "the product takes its time there, too"),
            (-1, "the time there is added to what you save; it has to be taken away"),
        ],
        "exchanged": [(1, "you have here and there exchanged")],
        "overlaps": [(1, "the product there cannot begin before x has arrived: the times add up")],
        "sign": [(-1, "you have it the other way round: what the trip saves is above 0")],
        "costs": [(-1, "the time on the way is added to what you save; it has to be taken away")],
        "multiplies": [(1, "bytes divided by bytes per second are seconds; you multiply")],
        "product": [(1, "you take batch d k numbers for the way; x has batch d, the result batch k")],
        "one_less": [(1, "for each result you count d multiplications and d - 1 additions; the page counts d of each")],
        "unit": [(1e3, "your number is in ms"), (1e6, "your number is in µs")],
    }
    right = dict.fromkeys(slips, 0) | dict.fromkeys(("goes", "returns", "there", "sign", "costs", "unit"), 1)
    right |= {"number": 4, "multiply_add": 2}
    for batch, d, k, link, here, there in (
        (64, 300, 500, 8e9, 50e9, 5e12),
        (20, 1100, 70, 3e9, 200e9, 900e9),
        (7, 11, 30, 5e9, 40e9, 6e12),  # the trip does not pay
        (5, 600, 90, 9e9, 30e9, 10e9),  # the other device is slower
    ):

        def formula(number, goes, returns, x_returns, weights, multiply_add, there, exchanged, overlaps, sign, costs,
                    multiplies, product, one_less, unit,
                    batch=batch, d=d, k=k, link=link, rates=(here, there)):  # fmt: skip
            numbers = (goes + x_returns) * batch * d + (returns - x_returns) * batch * k + weights * d * k
            numbers = batch * d * k if product else numbers
            near, far = rates[::-1] if exchanged else rates
            trip = costs * number * numbers * (link if multiplies else 1 / link)
            work = multiply_add * batch * d * k - one_less * batch * k
            away = max(trip, work / far) if overlaps else trip + there * work / far
            return unit * sign * (work / near - away)

        case = f"batch {batch}, d {d}, k {k}, link {link:g} bytes/s, {here:g} FLOP/s here, {there:g} there: "
        said = number(answer(batch, d, k, link, here, there), "one number, of seconds")
        work, trip, want = 2 * batch * d * k, 4 * batch * (d + k) / link, formula(**right)
        if not said and want < 0:
            raise Wrong(
                f"{case}you say 0 s. The trip does not pay here, and what is asked is by how much: a number below 0."
            )
        if not said:
            raise Wrong(f"{case}you say 0 s. Each of the three times is above 0, and below 1: does a // cut them off?")
        if math.isclose(said, work / here / (trip + work / there), rel_tol=1e-3):
            raise Wrong(
                f"{case}you say {said:,.5g}: so many times as fast it is with the trip; the seconds saved are asked."
            )
        by_factors(said, case, "s", formula, right, slips, "three times: here, the trip, there")


@exercise(
    _judge_seconds_saved,
    "Three times: here, 2 batch d k FLOPs; the way, 4 bytes for each number of x and of the result; there, the same FLOPs at the other rate.",
)
def seconds_saved(batch, d, k, bytes_per_second, flops_here, flops_there):
    """Return the seconds that the trip saves, below 0 if it does not pay."""
    flops = 2 * batch * d * k
    trip = 4 * (batch * d + batch * k) / bytes_per_second
    return flops / flops_here - (trip + flops / flops_there)


# ---- 1.5 ----


def _judge_run_stages(answer):
    devices = started_devices()
    cases = [  # where x lives (None: uncommitted), the devices, and the stages
        (None, (3, 5), (lambda v: jnp.abs(jnp.fft.fft(v)), lambda v: jnp.sqrt((v**2).sum()))),
        (6, (4, 1, 7, 4), (lambda v: v[:5] ** 2, lambda v: v - v.mean(), jnp.cumsum, lambda v: v[::-1] / 3)),
        (2, (5,), (lambda v: v[1:] - v[:-1],)),
    ]
    for home, where, functions in cases:
        places = [devices[i] for i in where]
        # Other numbers in each check: what is left alive of an earlier one must not be taken for this one's.
        x = jnp.array([3.0, -1.0, 4.5, 1.0, -5.0, 9.5, 2.0]) + next(_NUMBERS) / 16
        x = x if home is None else jax.device_put(x, devices[home])
        wants = [np.asarray(x)]
        for function in functions:
            wants.append(np.asarray(function(jnp.asarray(wants[-1]))))
        ran: list[int] = []
        traced: list[int] = []
        stages = [_stage(i, function, places, wants, ran, traced) for i, function in enumerate(functions)]
        try:
            got = answer(x, stages, places)
        except Wrong as wrong:
            if "incompatible devices" not in str(wrong):
                raise
            if not traced and "convert_element_type" in str(wrong):
                raise Wrong("`device=` is for new arrays; what is committed already, `device_put` moves.") from wrong
            if not traced:
                raise
            raise Wrong(_in_a_jit(traced, places, wants)) from wrong
        if len(ran) < len(stages):
            raise Wrong(f"Of {len(stages)} stages you call {len(ran)}: stages[{len(ran)}] is never called.")
        if isinstance(got, jax.Array) and got.devices() != {places[-1]}:
            on = ", ".join(str(device.id) for device in got.devices())
            raise Wrong(
                f"The last stage ran on device {places[-1].id}, and your result lives on device {on}; expected what the "
                "last stage returns, where it returned it."
            )
        same(got, jax.device_put(wants[-1], places[-1]))


def _stage(i: int, function: Any, places: list, wants: list[np.ndarray], ran: list[int], traced: list[int]) -> Any:
    """A stage that looks where it runs, and raises Wrong where that is another device."""

    def stage(value: Any) -> Any:
        if i != len(ran):
            raise Wrong(f"You call stages[{i}] where stages[{len(ran)}] is next.")
        ran.append(i)
        if isinstance(value, jax.core.Tracer):  # in a jit of the reader's: JAX refuses where the program runs elsewhere
            traced.append(i)
            return jax.device_put(function(value), SingleDeviceSharding(places[i]))
        if i and _alike(value, wants[0]):
            raise Wrong(f"stages[{i}] is given the first x again; expected what stages[{i - 1}] returned.")
        got = function(jnp.asarray(value))
        on = sorted(device.id for device in got.devices())
        if on != [places[i].id]:
            raise Wrong(
                f"stages[{i}] runs on device {', '.join(map(str, on))}; places[{i}] is device {places[i].id}. Where does "
                f"what you give it live? {'It was not moved.' if i and on == [places[i - 1].id] else ''}".rstrip()
            )
        return got

    return stage


def _alike(value: Any, other: np.ndarray) -> bool:
    return np.shape(value) == other.shape and np.array_equal(np.asarray(value), other)


def _in_a_jit(traced: list[int], places: list, wants: list[np.ndarray]) -> str:
    """Why JAX refuses a program that the last of the traced stages is part of."""
    i = traced[-1]
    alive = [array for array in jax.live_arrays() if array.committed and not array.is_deleted()]
    if i - 1 in traced and not any(_alike(array, wants[i]) for array in alive):
        return (
            f"stages[{i}] is traced before stages[{i - 1}] has run: your stages run inside one `jit`, which is one program, "
            "and a program does not move in the middle."
        )
    return (
        f"stages[{i}] is traced inside a `jit` of yours, and that program is given what lives elsewhere; places[{i}] is "
        f"device {places[i].id}. A `jit` moves nothing that is committed elsewhere: move it before the call."
    )


@exercise(
    _judge_run_stages,
    "A loop over the pairs of a stage and a place. A computation runs where its committed input lives: move it, then call.",
)
def run_stages(x, stages, places):
    """Return what the last stage returns: stages[i] runs on the device places[i]."""
    for stage, place in zip(stages, places, strict=True):
        x = stage(jax.device_put(x, place))
    return x


# ---- 1.6 ----


class _Step(_StandIn):
    """What a step of training returns: done once it, or a later step, was waited for."""

    def __init__(self, value: float, before: Any) -> None:
        self.value, self.before, self.done, self.asked = value, before, False, 0

    def block_until_ready(self) -> _Step:
        time.sleep(0.001)  # time for a load in another thread to begin
        step = self
        while isinstance(step, _Step) and not step.done:
            step.done, step = True, step.before
        return self

    def is_ready(self) -> bool:
        self.asked += 1
        if self.asked > 5:  # only a loop that asks again and again waits
            self.block_until_ready()
        return self.done

    def __add__(self, other: Any) -> _Step:
        return _Step(self.value + number(other), self)

    def __mul__(self, other: Any) -> _Step:
        return _Step(self.value * number(other), self)

    __radd__, __rmul__ = __add__, __mul__


class _Training:
    """`load` and `step` for a loop, which say what is wrong with it while it runs."""

    def __init__(self, count: int) -> None:
        self.count, self.loads = count, 0
        self.first = _Step(3.0, None)
        self.first.done = True
        self.steps: list[_Step] = []

    def load(self, i: Any) -> float:
        i = number(i, "the number of a batch", said="You call load with", whole=True)
        if i != self.loads or i >= self.count:
            raise Wrong(
                f"For count = {self.count}, your load number {self.loads} is of batch {i}; expected 0 to {self.count - 1} "
                "in their order, each once."
            )
        if i and not self.unfinished():
            why = f"You waited for step {i - 1} too soon." if self.steps else "Hand step 0 over first."
            raise Wrong(f"While batch {i} is loaded, no step is at work. {why}")
        self.loads += 1
        return self.batch(i)

    def step(self, w: Any, batch: Any) -> _Step:
        i = len(self.steps)
        value, given = (one.value if isinstance(one, _Step) else number(one) for one in (w, batch))
        if i >= self.loads:
            raise Wrong(f"You call step {i} before batch {i} is loaded.")
        if not np.isclose(given, self.batch(i)):
            raise Wrong(f"Step {i} gets {given:g} for a batch; load({i}) returned {self.batch(i):g}.")
        if self.steps and not np.isclose(value, self.steps[-1].value):
            raise Wrong(f"Step {i} gets another w than step {i - 1} returned.")
        self.steps.append(_Step(0.5 * value - given, self.steps[-1] if self.steps else None))
        if self.unfinished() > 2:
            asked = any(step.asked for step in (self.first, *self.steps))
            why = (
                "`is_ready()` asks once, and does not wait."
                if asked
                else "Wait for a step's `w` (a call has brackets)."
            )
            raise Wrong(
                f"When step {i} is handed over, {self.unfinished()} steps are unfinished; two are allowed. {why}"
            )
        return self.steps[-1]

    def batch(self, i: int) -> float:
        return (i + 1) ** 2 / 4

    def unfinished(self) -> int:
        return sum(not step.done for step in self.steps)


def _judge_train(answer):
    for count in (5, 1, 8):
        training = _Training(count)
        got = _with_stand_ins(answer, "`w`", training.first, training.step, training.load, count)
        steps = training.steps
        if len(steps) != count:
            raise Wrong(f"For count = {count} you make {len(steps)} steps.")
        value = got.value if isinstance(got, _Step) else number(got, "the last w")
        if not np.isclose(value, steps[-1].value):
            from_step = [i for i, step in enumerate(steps) if np.isclose(value, step.value)]
            which = f"what step {from_step[0]} returned" if from_step else f"{value:g}"
            raise Wrong(f"For count = {count} you return {which}; expected what step {count - 1} returned.")


@exercise(
    _judge_train,
    "Load, hand over the next step, and only then wait: for the w *before* it, which you have to keep for one line.",
)
def train(w, step, load, count):
    """Return w after `count` steps w = step(w, load(i)); loads and steps overlap."""
    for i in range(count):
        batch = load(i)  # meanwhile step i - 1 is at work
        before, w = w, step(w, batch)
        jax.block_until_ready(before)  # step i - 1 is done; step i goes on
    return w
