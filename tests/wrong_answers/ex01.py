"""Wrong answers to the exercises of notebook 01."""

from __future__ import annotations

import time

import jax

from utils.exercises import ex01


def once(f, x, repeats):
    start = time.perf_counter()
    f(x)
    return time.perf_counter() - start


def without_waiting(f, x, repeats):
    f(x)
    start = time.perf_counter()
    for _ in range(repeats):
        f(x)
    return (time.perf_counter() - start) / repeats


def mean_of_all(f, x, repeats):
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(f(x))
        seconds.append(time.perf_counter() - start)
    return sum(seconds) / len(seconds)


def total(f, x, repeats):
    jax.block_until_ready(f(x))
    start = time.perf_counter()
    for _ in range(repeats):
        jax.block_until_ready(f(x))
    return time.perf_counter() - start


def inside_one_jit(x, spectrum, norm, first, second):
    return jax.jit(lambda x: norm(jax.device_put(spectrum(x), second)))(jax.device_put(x, first))


def stays_on_first(x, spectrum, norm, first, second):
    return norm(spectrum(jax.device_put(x, first)))


def moves_only_the_result(x, spectrum, norm, first, second):
    return jax.device_put(norm(spectrum(jax.device_put(x, first))), second)


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex01.find_devices: [
        (
            lambda platform: jax.devices(platform),
            "Unknown backend: 'tpu' requested. That is how JAX says so; catch it.",
        ),
        (lambda platform: [d for d in jax.devices() if d.platform == platform], "lists the default platform alone"),
        (lambda platform: None if platform == "tpu" else jax.devices(platform), "Return an empty list"),
    ],
    ex01.predict_landings: [
        (lambda: [0, 0, 0, 5, "error"], "Expression 1: you say 0"),
        (lambda: [2, 0, 3, 5, "error"], "to be born on device 3 is not to stay there"),
        (lambda: [2, 0, 0, 3, "error"], "does not move an array that is committed"),
        (lambda: [2, 0, 0, 5, 5], "inherits the commitment"),
        (lambda: 2, "expected a list of five"),
    ],
    ex01.moving_pays: [
        (lambda n, link, here, there: 2 * n**2 / link + 2 * n**3 / there < 2 * n**3 / here, "float32 has 4 bytes"),
        (lambda n, link, here, there: 4 * n**2 / link + 2 * n**3 / there < 2 * n**3 / here, "has to come back too"),
        (lambda n, link, here, there: 8 * n**2 / link < 2 * n**3 / here, "Count the work there"),
        (
            lambda n, link, a, b: 8 * n**2 / link + 2.1 * n**3 / b < 2.1 * n**3 / a,
            "A product has 2 n^3 FLOPs",
        ),
        (lambda n, link, here, there: 8 * n**2 / link + n**3 / there < n**3 / here, "the work here 5.2"),
        (lambda n, link, here, there: n > 1000, "you say False, but there and back take 3.3 µs"),
        (lambda n, link, here, there: 1, "expected True or False"),
    ],
    ex01.steady_seconds: [
        (without_waiting, "timed the dispatch"),
        (once, "You called the function 1 times"),
        (mean_of_all, "pulled the mean up"),
        (total, "total of all calls"),
    ],
    ex01.two_stages: [
        (inside_one_jit, "inside one jit"),
        (stays_on_first, "`norm` was to run on device 5; its input lived on [3]"),
        (moves_only_the_result, "`norm` was to run on device 5"),
        (lambda x, spectrum, norm, first, second: jax.device_put(0.0, second), "You never called `spectrum`"),
    ],
    ex01.count_measurements: [
        (lambda: 6, "that is every call"),
        (lambda: 3, "one too few"),
        (lambda: 2, "A new shape or a new dtype"),
        (lambda: "4", "expected a whole number"),
    ],
}
