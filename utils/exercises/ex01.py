"""Exercises of notebook 01, Devices."""

from __future__ import annotations

import time
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from utils.devices import started_devices
from utils.exercises import Wrong, exercise, number, same


@contextmanager
def _machine(**platforms: int):
    """Pretend, for a while, that JAX runs on a machine with these numbers of devices, best platform first."""
    made = {name: [SimpleNamespace(platform=name, id=i) for i in range(n)] for name, n in platforms.items()}

    def devices(platform: str | None = None):
        if platform is None:
            return next(iter(made.values()))
        if platform not in made:
            raise RuntimeError(f"Unknown backend: '{platform}' requested")
        return made[platform]

    with mock.patch.object(jax, "devices", devices):
        yield made


def _judge_find_devices(answer):
    with _machine(cpu=8):
        try:
            absent = answer("tpu")
        except Wrong as wrong:
            if "RuntimeError" not in str(wrong):
                raise
            raise Wrong(f"For a platform that is absent: {wrong}. That is how JAX says so; catch it.") from wrong
    if not isinstance(absent, list) or absent:
        raise Wrong(
            f"For a platform that is absent you return {absent!r}. Return an empty list, which a caller can count."
        )
    with _machine(gpu=1, cpu=8) as made:
        for platform in ("gpu", "cpu"):
            got = answer(platform)
            if not isinstance(got, list) or got != made[platform]:
                count = f"{len(got)} devices" if isinstance(got, list) else f"a {type(got).__name__}, not a list"
                raise Wrong(
                    f"On a machine with 1 GPU and 8 CPU devices, find_devices({platform!r}) gives {count}; expected "
                    f"{len(made[platform])}. jax.devices() without an argument lists the default platform alone."
                )


@exercise(
    _judge_find_devices,
    "jax.devices(platform) answers or raises RuntimeError. Catch that one error, and return an empty list instead.",
)
def find_devices(platform):
    """Return the list of a platform's devices ('cpu', 'gpu' ...), empty if absent."""
    try:
        return jax.devices(platform)
    except RuntimeError:
        return []


_REASONS = [
    "jnp.zeros(4) is uncommitted, so the sum goes where `on_two` lives.",
    "both are uncommitted, so the sum goes to the default device, which is device 0.",
    "`born` is uncommitted too: to be born on device 3 is not to stay there. The sum goes to the default device.",
    "the default device does not move an array that is committed: `on_five` wins.",
    "`on_two + 1` inherits the commitment of `on_two`, so two committed arrays on different devices meet; JAX refuses to choose.",
]


def landings():
    """Run the five expressions of exercise 1.2; a list of device ids, or 'error' where JAX refuses."""
    devices = started_devices()
    on_two = jax.device_put(jnp.ones(4), devices[2])
    on_five = jax.device_put(jnp.ones(4), devices[5])
    with jax.default_device(devices[3]):
        born = jnp.ones(4)
        fourth = on_five + born
    found = []
    for run in (
        lambda: on_two + jnp.zeros(4),
        lambda: jnp.zeros(4) + jnp.ones(4),
        lambda: jnp.zeros(4) + born,
        lambda: fourth,
        lambda: (on_two + 1) + on_five,
    ):
        try:
            found.append(next(iter(run().devices())).id)
        except ValueError:
            found.append("error")
    return found


def _judge_predict_landings(answer):
    got, want = answer(), landings()
    if not isinstance(got, (list, tuple)) or len(got) != 5:
        raise Wrong(f"You return {got!r}; expected a list of five: a device's number each, or 'error'.")
    for i, (g, w, why) in enumerate(zip(got, want, _REASONS, strict=True), 1):
        if type(g) is not type(w) or g != w:
            raise Wrong(f"Expression {i}: you say {g!r}. Think again, then run it. The rule: {why}")


@exercise(
    _judge_predict_landings,
    "Ask of each operand: did somebody say where it lives (device_put), or was it only born somewhere? A result inherits that.",
)
def predict_landings():
    """Return a list of five: the device number that each sum lands on, or 'error'."""
    return [2, 0, 0, 5, "error"]


class _Later:
    """A result that is ready only some time after it was returned, as a jax.Array is."""

    def __init__(self, seconds):
        self.seconds = seconds

    def block_until_ready(self):
        time.sleep(self.seconds)
        self.seconds = 0
        return self


def _judge_steady_seconds(answer):
    calls = []

    def slow(x):
        calls.append(x)
        if len(calls) == 1:
            time.sleep(0.4)  # compiles
        return _Later(0.3 if len(calls) == 4 else 0.02)  # once, the machine does something else

    got = number(answer(slow, 1.0, 9), "one number, of seconds")
    if len(calls) < 10:
        raise Wrong(f"You called the function {len(calls)} times; expected one call to compile it, then 9 that count.")
    if got < 0.015:
        raise Wrong(
            f"You measured {got * 1e3:.1f} ms; the work takes 20 ms. You timed the dispatch: the call returns before the "
            "result is there. Wait for it inside the timed stretch."
        )
    if got > 0.15:
        raise Wrong(
            f"You measured {got * 1e3:.0f} ms for one call of 20 ms. Is that the total of all calls? Return one call's time."
        )
    if got > 0.06:
        raise Wrong(
            f"You measured {got * 1e3:.0f} ms; the work takes 20 ms. Either the first call, which compiles, is in it, or one "
            "slow call out of nine pulled the mean up. Leave the first call out, and take the median."
        )


@exercise(
    _judge_steady_seconds,
    "Call once and wait, before any clock. Then, for each repeat: clock, call, jax.block_until_ready, clock. statistics.median.",
)
def steady_seconds(f, x, repeats):
    """Return the median seconds of one call f(x): compiled before, and waited for."""
    import statistics

    jax.block_until_ready(f(x))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(f(x))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _judge_moving_pays(answer):
    # By hand, in µs at 10 GB/s, 100 GFLOP/s here and 10 TFLOP/s there: the trip is 8 n^2 / 10^4, the work here 2 n^3 / 10^5.
    cases = [
        (
            16,
            10e9,
            100e9,
            10e12,
            False,
            "the trip takes 0.20 µs, the work here 0.08. An element of float32 has 4 bytes.",
        ),
        (
            24,
            10e9,
            100e9,
            10e12,
            False,
            "there and back take 0.46 µs, the work here 0.28. The result has to come back too.",
        ),
        (64, 10e9, 100e9, 10e12, True, "there and back take 3.3 µs, the work there 0.05, the work here 5.2."),
        (
            4096,
            10e9,
            100e9,
            100e9,
            False,
            "the other device is no faster, so the trip cannot pay. Count the work there.",
        ),
        (40, 10e9, 100e9, 10e12, False, "with the trip 1.29 µs, here 1.28. A product has 2 n^3 FLOPs."),
        (41, 10e9, 100e9, 10e12, True, "with the trip 1.36 µs, here 1.38. A product has 2 n^3 FLOPs."),
    ]
    for *numbers, want, why in cases:
        got = answer(*numbers)
        if not isinstance(got, (bool, np.bool_)):
            raise Wrong(f"You return {got!r}; expected True or False.")
        if got != want:
            n, link, here, there = numbers
            place = f"n = {n}, {link:.0e} bytes/s, {here:.0e} FLOP/s here, {there:.0e} there"
            raise Wrong(f"{place}: you say {bool(got)}, but {why}")


@exercise(
    _judge_moving_pays,
    "Three times: the trip (2 x 4 n^2 bytes), the work there and the work here (2 n^3 FLOPs each, at two rates).",
)
def moving_pays(n, bytes_per_second, flops_here, flops_there):
    """Return True if the trip there, the product and the trip back are faster."""
    trip = 2 * 4 * n**2 / bytes_per_second
    return trip + 2 * n**3 / flops_there < 2 * n**3 / flops_here


def _judge_two_stages(answer):
    devices = started_devices()
    x = jnp.arange(8.0)
    seen = {}

    def spy(name, function):
        def stage(value):
            if isinstance(value, jax.core.Tracer):
                raise Wrong(
                    f"Your stages run inside one jit ({name} got a tracer). There a device_put to another device is ignored: "
                    "the whole program runs on one device. Call the stages from plain Python."
                )
            seen[name] = {d.id for d in value.devices()}
            return function(value)

        return stage

    first, second = devices[3], devices[5]
    got = answer(
        x,
        spy("spectrum", lambda v: jnp.abs(jnp.fft.fft(v))),
        spy("norm", lambda v: jnp.sqrt((v**2).sum())),
        first,
        second,
    )
    for name, device in (("spectrum", first), ("norm", second)):
        if name not in seen:
            raise Wrong(f"You never called `{name}`, the function that your function was given.")
        if seen[name] != {device.id}:
            raise Wrong(
                f"`{name}` was to run on device {device.id}; its input lived on {sorted(seen[name])}. The input decides: move it first."
            )
    # Parseval: the norm of the spectrum is sqrt(8) times the norm of x, and 0 + 1 + 4 + ... + 49 = 140.
    same(got, jax.device_put(jnp.sqrt(8.0 * 140.0), second))


@exercise(
    _judge_two_stages,
    "A computation runs where its committed input lives. So: device_put, call, device_put, call.",
)
def two_stages(x, spectrum, norm, first, second):
    """Return norm(spectrum(x)): spectrum runs on device `first`, norm on `second`."""
    s = spectrum(jax.device_put(x, first))
    return norm(jax.device_put(s, second))


def _judge_count_measurements(answer):
    got, want = number(answer(), "a whole number", whole=True), 4  # f(a), the (128, 256) slice, the int32 copy, g(a)
    if got != want:
        reasons = {
            6: "that is every call. What is remembered is not measured again.",
            5: "one too many. Does the time depend on an array's values, or has call 6 not been seen before?",
            3: "one too few. Function, shape and dtype are all in the key: which of the calls changes only one of them?",
            2: "too few. A new shape or a new dtype is a new key, even for the same function.",
            1: "too few. A new shape or a new dtype is a new key, even for the same function.",
        }
        raise Wrong(f"You say {got}: {reasons.get(got, 'there are six calls, and the first one has to be measured.')}")


@exercise(
    _judge_count_measurements,
    "Write the key of each call: function, shape, dtype. How many different keys are there?",
)
def count_measurements():
    """Return how many of the six calls make `device_by_clock` measure."""
    keys = {
        ("f", (256, 256), "float32"),
        ("f", (128, 256), "float32"),
        ("f", (256, 256), "int32"),
        ("g", (256, 256), "float32"),
    }
    return len(keys)
