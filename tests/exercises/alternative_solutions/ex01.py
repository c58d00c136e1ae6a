"""Provide unusual solutions to the exercises of lesson 01, and list the equivalent mutants."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from exercises import ex01
from utils.devices import started_devices


def by_jax(operands, default):
    """Create the operands as JAX arrays, add them up, and return the device of the result."""
    devices = started_devices()
    with jax.default_device(devices[default]):
        total = jnp.zeros(3)
    arrays = []
    for device, committed in operands:
        with jax.default_device(devices[device]):
            array = jnp.ones(3)
        arrays.append(jax.device_put(array, devices[device]) if committed else array)
    with jax.default_device(devices[default]):
        try:
            [device] = jax.jit(lambda arrays: sum(arrays, total))(arrays).devices()
        except ValueError:
            return "an error"
    return device.id


def by_reading(f, x, repeats, clock):
    float(f(x))
    times = [clock()]
    for _ in range(repeats):
        np.asarray(f(x))
        times.append(clock())
    return np.median(np.diff(times))


def by_polls(f, x, repeats, clock):
    def once():
        start, result = clock(), f(x)
        while not result.is_ready():
            pass
        return clock() - start

    return (
        sorted([once() for _ in range(repeats + 1)][1:])[repeats // 2] if repeats % 2 else warmed(f, x, repeats, clock)
    )


def warmed(f, x, repeats, clock):
    for _ in range(3 * repeats + 1):
        f(x).item()
    runs = []
    for _ in range(repeats):
        start = clock()
        jax.block_until_ready([f(x)])
        runs.append(-start + clock())
    return jnp.median(jnp.array(runs))


def by_cache(candidates, seconds):
    winners = functools.lru_cache(None)(lambda kind: kind.best)

    class Kind:
        def __init__(self, x):
            self.key, self.x = str(jax.ShapeDtypeStruct(x.shape, x.dtype)), x

        def __hash__(self):
            return hash(self.key)

        def __eq__(self, other):
            return self.key == other.key

        @property
        def best(self):
            return sorted((seconds(f, self.x), i) for i, f in enumerate(candidates))[0][1]

    return lambda x: candidates[winners(Kind(x))](x)


class Tuner:
    def __init__(self, candidates, seconds):
        self.candidates, self.seconds, self.known = candidates, seconds, []

    def __call__(self, x):
        kind_of_x = jax.typeof(x)
        if not any(kind_of_x == kind for kind, _ in self.known):
            times = [self.seconds(f, x) for f in self.candidates]
            self.known.append((kind_of_x, self.candidates[int(np.argmin(times))]))
        return next(f for kind, f in self.known if kind == kind_of_x)(x)


ALTERNATIVES = {
    ex01.steady_seconds: [by_reading, by_polls, warmed],
    ex01.lands_on: [
        by_jax,
        lambda operands, default: (
            np.int64(next((d for d, c in operands if c), default))
            if len({d for d, c in operands if c}) < 2
            else "an error"
        ),
    ],
    ex01.seconds_saved: [
        lambda b, d, k, link, h, t: b * (2 * d * k * (1 / h - 1 / t) - 4 * (d + k) / link),
        lambda b, d, k, link, h, t: (
            np.float64(2 * b * d * k / h) - 4 * b * d / link - 4 * b * k / link - 2 * b * d * k / t
        ),
        lambda b, d, k, link, h, t: jnp.float32(2 * b * d * k / h - (4 * b * (d + k) / link + 2 * b * d * k / t)),
    ],
    ex01.tuner: [Tuner, by_cache],
}

EQUIVALENT_MUTANTS = {
    ex01.tuner: [("key = (x.shape, x.dtype) -> key = (x.dtype, x.shape)", "the elements of a key may be in any order")],
}
