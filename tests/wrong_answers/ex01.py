"""Wrong answers to the exercises of notebook 01, right ones in unusual forms, and wrong guesses."""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, perf_counter_ns

import jax
import jax.numpy as jnp
import numpy as np
from jax import devices as all_devices
from jax.sharding import SingleDeviceSharding

from utils.exercises import ex01

# ---- 1.1 ----


def unguarded(platforms):
    return next((jax.devices(platform) for platform in platforms), [])


def gives_up_at_the_first(platforms):
    try:
        for platform in platforms:
            return jax.devices(platform)
    except RuntimeError:
        pass
    return []


def of_the_default(platforms):
    for platform in platforms:
        found = [device for device in jax.devices() if device.platform == platform]
        if found:
            return found
    return []


def twice(platforms):
    for platform in platforms:
        found = [device for device in jax.devices("cpu") + jax.devices() if device.platform == platform]
        if found:
            return found
    return []


def all_of_them(platforms):
    found = []
    for platform in platforms:
        with contextlib.suppress(RuntimeError):
            found += jax.devices(platform)
    return found


def tried(make, nothing=()):
    def answer(platforms):
        for platform in platforms:
            try:
                return make(platform)
            except RuntimeError:
                pass
        return list(nothing) if nothing is not None else None

    return answer


def local(platforms):
    for platform in platforms:
        try:
            return jax.local_devices(backend=platform)
        except RuntimeError:
            continue
    return []


def by_recursion(platforms):
    if not platforms:
        return ()
    try:
        return tuple(all_devices(platforms[0]))
    except Exception:
        return by_recursion(platforms[1:])


def by_registry(platforms):
    from jax.extend.backend import backends

    return next((list(backends()[platform].devices()) for platform in platforms if platform in backends()), [])


def by_count(platforms):
    def is_there(platform):
        try:
            return jax.device_count(platform) > 0
        except RuntimeError:
            return False

    return [device for platform in list(filter(is_there, platforms))[:1] for device in jax.devices(platform)]


def by_default_backend(platforms):
    return next((jax.devices() for platform in platforms if jax.default_backend() == platform), [])


# ---- 1.3 ----


def stopwatch(
    clock=time.perf_counter,
    wait=jax.block_until_ready,
    take=statistics.median,
    compiles=True,
    counts_it=False,
    warmup=0,
):
    """An answer from its parts; `counts_it`: the call that compiles is among the runs."""

    def answer(f, x, repeats):
        if compiles:
            jax.block_until_ready(f(x))
        for _ in range(warmup):
            jax.block_until_ready(f(x))
        seconds = []
        for _ in range(repeats + counts_it):
            start = clock()
            wait(f(x))
            seconds.append(clock() - start)
        return take(seconds)

    return answer


def one_clock_for_all(f, x, repeats):
    jax.block_until_ready(f(x))
    start, seconds = time.perf_counter(), []
    for _ in range(repeats):
        jax.block_until_ready(f(x))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def waits_after_the_clock(f, x, repeats):
    jax.block_until_ready(f(x))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = f(x)
        seconds.append(time.perf_counter() - start)
        jax.block_until_ready(result)
    return statistics.median(seconds)


def lets_the_first_run_on(f, x, repeats):
    f(x)
    return stopwatch(compiles=False)(f, x, repeats)


def around_all(wait_each, divide=True):
    def answer(f, x, repeats):
        jax.block_until_ready(f(x))
        start = time.perf_counter()
        for _ in range(repeats):
            result = f(x)
            if wait_each:
                jax.block_until_ready(result)
        jax.block_until_ready(result)
        return (time.perf_counter() - start) / (repeats if divide else 1)

    return answer


def once(f, x, repeats):
    start = time.perf_counter()
    f(x).block_until_ready()
    return time.perf_counter() - start


def in_nanoseconds_inside(f, x, repeats):
    jax.block_until_ready(f(x))
    seconds = []
    for _ in range(repeats):
        start = perf_counter_ns()
        np.asarray(f(x))
        seconds.append(perf_counter_ns() - start)
    return np.median(seconds) / 1e9


def by_polls_and_print(f, x, repeats):
    str(f(x))
    seconds = []
    while len(seconds) < repeats:
        start, result = monotonic(), f(x)
        while not result.is_ready():
            time.sleep(1e-4)
        seconds.append(monotonic() - start)
    return jnp.array((sorted(seconds)[repeats // 2] + sorted(seconds)[(repeats - 1) // 2]) / 2)


def always_ten(f, x, repeats):
    return stopwatch()(f, x, 10)


def fed_back(f, x, repeats):
    for _ in range(repeats + 1):
        x = f(x)


# ---- 1.4 ----


def saved(trip=None, here=None, there=None, whole=None):
    """An answer from its three times, in terms of batch b, d, k, link, h, t."""

    def answer(b, d, k, link, h, t):
        times = [
            (here or (lambda *_: 2 * b * d * k / h))(b, d, k, h, t),
            (trip or (lambda *_: 4 * b * (d + k) / link))(b, d, k, link),
            (there or (lambda *_: 2 * b * d * k / t))(b, d, k, h, t),
        ]
        return (whole or (lambda here, trip, there: here - trip - there))(*times)

    return answer


# ---- 1.5 ----

put = jax.device_put


def inside_one_jit(x, stages, places):
    @jax.jit
    def run(x):
        for stage, place in zip(stages[1:], places[1:], strict=True):
            x = stage(put(x, place))
        return x

    return run(stages[0](put(x, places[0])))


def in_one_jit_altogether(x, stages, places):
    def run(x):
        for stage, place in zip(stages, places, strict=True):
            x = stage(put(x, place))
        return x

    return jax.jit(run)(put(x, places[0]))


def never_moved(x, stages, places):
    return functools.reduce(lambda x, stage: stage(x), stages, put(x, places[0]))


def only_the_result(x, stages, places):
    return put(never_moved(x, stages, places), places[-1])


def moved_after(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        x = put(stage(x), place)
    return x


def on_the_first_devices(x, stages, places):
    for stage, device in zip(stages, jax.devices(), strict=False):
        x = stage(put(x, device))
    return x


def the_functions_moved(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        x = put(stage, place)(x)
    return x


def backwards(x, stages, places):
    for stage, place in zip(stages[::-1], places[::-1], strict=True):
        x = stage(put(x, place))
    return x


def each_of_the_input(x, stages, places):
    return [stage(put(x, place)) for stage, place in zip(stages, places, strict=True)][-1]


def in_its_own_jit(move):
    def answer(x, stages, places):
        for stage, place in zip(stages, places, strict=True):
            x = jax.jit(lambda x, stage=stage, place=place: stage(move(x, place)))(x)
        return x

    return answer


def in_a_jit_from_the_second_on(x, stages, places):
    x = stages[0](put(x, places[0]))
    for stage in stages[1:]:
        x = jax.jit(stage)(x)
    return x


def by_in_shardings(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        x = jax.jit(stage, in_shardings=SingleDeviceSharding(place))(x)
    return x


def under_default_device(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        with jax.default_device(place):
            x = stage(x)
    return x


def by_asarray(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        x = stage(jnp.asarray(x, device=place))
    return x


def all_but_the_last(x, stages, places):
    for stage, place in zip(stages[:-1], places[:-1], strict=True):
        x = stage(put(x, place))
    return x


def each_in_a_jit(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        x = jax.jit(stage)(put(x, place))
    return x


def by_index_and_sharding(x, stages, places):
    for i in range(len(stages)):
        x = stages[i](put(x, SingleDeviceSharding(places[i])))
    return x


def through_the_host(x, stages, places):
    for stage, place in zip(stages, places, strict=True):
        with jax.default_device(place):
            x = stage(jnp.asarray(np.asarray(x)))
    return put(x, places[-1])


def by_reduce(x, stages, places):
    return functools.reduce(lambda x, pair: pair[0](x.to_device(pair[1])), zip(stages, places, strict=True), x)


def by_recursion_over_stages(x, stages, places):
    if not stages:
        return x
    first, *rest = stages
    return by_recursion_over_stages(first(put(x, places[0])), rest, places[1:])


# ---- 1.6 ----


def loop(wait_before=False, wait_new=False, wait_every=0, at_end=True, first=0):
    """A loop that waits, or not: for the w of the step before, for the new one, for every so many."""

    def answer(w, step, load, count):
        for i in range(first, count):
            batch = load(i)
            before, w = w, step(w, batch)
            if wait_before:
                jax.block_until_ready(before)
            if wait_new or (wait_every and i % wait_every == wait_every - 1):
                jax.block_until_ready(w)
        return jax.block_until_ready(w) if at_end else w

    return answer


def loads_all_first(w, step, load, count):
    for batch in [load(i) for i in range(count)]:
        before, w = w, step(w, batch)
        jax.block_until_ready(before)
    return w


def returns_the_one_before(w, step, load, count):
    before = w
    for i in range(count):
        batch = load(i)
        before, w = w, step(w, batch)
        jax.block_until_ready(before)
    return before


def loads_one_too_many(w, step, load, count):
    batch = load(0)
    for i in range(count):
        before, w = w, step(w, batch)
        batch = load(i + 1)
        jax.block_until_ready(before)
    return w


def from_the_start_each_time(w, step, load, count):
    for i in range(count):
        last = step(w, load(i))
    return last


def batch_of_before(w, step, load, count):
    batch = load(0)
    for i in range(count):
        before, w = w, step(w, batch)
        newer = load(i + 1)
        w, before = step(w, batch), w
        batch = newer
        jax.block_until_ready(before)
    return w


def batch_too_late(w, step, load, count):
    batch = load(0)
    for i in range(count):
        before, w = w, step(w, batch)
        if i:
            batch = load(i)
        jax.block_until_ready(before)
    return w


def waits_after_the_load(w, step, load, count):
    for i in range(count):
        batch = load(i)
        w = step(jax.block_until_ready(w), batch)
    return w


def with_a_queue(w, step, load, count):
    queue = deque()
    for batch in map(load, range(count)):
        w = step(w, batch)
        queue.append(w)
        if len(queue) == 2:
            queue.popleft().block_until_ready()
    return float(w)


def loads_ahead(w, step, load, count):
    batch = load(0)
    for i in range(count):
        w = step(w, batch)
        if i + 1 < count:
            batch = load(i + 1)
        np.asarray(w)
    return w.item()


def reads(read):
    """A loop that waits for the step before by reading something of its w."""

    def answer(w, step, load, count):
        for i in range(count):
            new = step(w, load(i))
            read(w)
            w = new
        return w

    return answer


def asks_first(w, step, load, count):
    for i in range(count):
        batch = load(i)
        w.is_ready()
        w = step(w, batch)
    return w


def loads_in_a_thread(w, step, load, count):
    with ThreadPoolExecutor(1) as pool:
        batch = load(0)
        for i in range(count):
            w = step(w, batch)
            if i + 1 < count:
                future = pool.submit(load, i + 1)
            w.block_until_ready()
            batch = future.result() if i + 1 < count else None
    return w


def polls(w, step, load, count):
    for i in range(count):
        batch = load(i)
        while not w.is_ready():
            pass
        w = step(w, batch)
    return w


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex01.find_devices: [
        (unguarded, "That is how JAX says that a platform is absent; catch it."),
        (gives_up_at_the_first, "find_devices(['rocket', 'cpu']): you return no device."),
        (gives_up_at_the_first, "The first name in the list is absent; go on with the next one."),
        (of_the_default, "you return no device. This machine has 8 devices of 'cpu' and, for this check, 3 of 'slate"),
        (of_the_default, "is there, and not the default platform. Where did you look?"),
        (by_default_backend, "is there, and not the default platform."),
        (twice, "you return 16 of 'cpu': some of them twice."),
        (all_of_them, "you return 8 of 'cpu' and 3 of 'slate"),
        (all_of_them, "Expected those of one platform."),
        (tried(jax.devices, nothing=None), "find_devices(['rocket']): you return None; expected a list"),
        (tried(lambda platform: jax.devices(platform)[0]), "expected a list of devices"),
        (tried(lambda platform: jax.devices(platform)[:1]), "you return 1 of 'cpu'."),
        (tried(lambda platform: jax.devices(platform)[:1]), "Expected all 8 of them."),
        (tried(lambda platform: list(map(str, jax.devices(platform)))), "expected the devices themselves"),
        (tried(lambda platform: jax.devices()), "find_devices(['rocket']): you return 8 of 'cpu'."),
        (tried(jax.devices, nothing=["cpu"]), "find_devices(['rocket']): you return ['cpu']; expected the devices"),
        (lambda platforms: tried(jax.devices)(platforms[::-1]), "Which name in the list comes first?"),
    ],
    ex01.predict_landings: [
        (lambda: [3, 6, "an error", 5, 5], "Expression 1: you say 3. `born` lives there, but did anybody commit it?"),
        (lambda: ["an error", 6, "an error", 5, 5], "Is either of these committed?"),
        (lambda: [4, 6, "an error", 5, 5], "None of its arrays lives on device 4. Write down each array"),
        (lambda: [0, 6, "an error", 5, 2], "Expression 5: you say 2. None of its arrays lives on device 2."),
        (
            lambda: [0, 6, "a error", 5, 5],
            "Expression 3: you say 'a error'; expected a device's number, or 'an error'.",
        ),
        (lambda: [0, 3, "an error", 5, 5], "Is `born`?"),
        (lambda: [0, "an error", "an error", 5, 5], "Expression 2: you say an error."),
        (lambda: [0, 6, 2, 5, 5], "Is `on_two + 1` committed?"),
        (lambda: [0, 6, 5, 5, 5], "Expression 3: you say 5."),
        (lambda: [0, 6, "error", 3, 5], "The default device does not move an array that is committed."),
        (lambda: [0, 6, "error", "error", 5], "What does `float(...)` return"),
        (lambda: [0, 6, "error", 5, 0], "What does it meet on the way to the gradient?"),
        (
            lambda: ["0", "6", "error", "5", "5"],
            "you say '0'; expected a device's number, or 'an error'. That is a text",
        ),
        (lambda: [0, 6, "error", 5], "4 of them; expected five answers"),
        (lambda: 2, "expected five answers"),
        (lambda: [0, 6, None, 5, 5], "Expression 3: you say None; expected a device's number, or 'an error'."),
        (lambda: [0, 6, ValueError, 5, 5], "you say <class 'ValueError'>; expected a device's number, or 'an error'."),
    ],
    ex01.steady_seconds: [
        (stopwatch(wait=lambda result: None), "and waited for none of the 5 results"),
        (stopwatch(wait=lambda result: result.block_until_ready), "a method is called with brackets"),
        (around_all(wait_each=False), "Of the 5 results that count you waited for 1."),
        (waits_after_the_clock, "between your two readings of the clock nothing is waited for; or"),
        (one_clock_for_all, "your clock starts once, so each time holds all the runs before"),
        (lets_the_first_run_on, "is still at work when your clock starts: let it finish."),
        (once, "For repeats = 5 you call f 1 times"),
        (stopwatch(compiles=False), "For repeats = 5 you call f 5 times"),
        (around_all(wait_each=True), "that is the mean, which the one run of"),
        (stopwatch(take=statistics.mean), "which the one run of"),
        (around_all(wait_each=True, divide=False), "that is all 5 runs; one call's time is asked"),
        (stopwatch(compiles=False, counts_it=True), "the first call, which compiles, is among what you count."),
        (stopwatch(compiles=False, counts_it=True, take=statistics.mean), "among what you count; and that is a mean"),
        (stopwatch(take=lambda runs: runs[len(runs) // 2]), "that is the middle one as they came"),
        (stopwatch(take=lambda runs: sorted(runs)[len(runs) // 2]), "is the mean of the two in the middle"),
        (
            stopwatch(take=lambda runs: statistics.mean(sorted(runs)[1:-1] or runs)),
            "of all but the shortest and the longest",
        ),
        (stopwatch(take=lambda runs: sorted(runs)[len(runs) // 4]), "that is number 2 by size"),
        (always_ten, "expected the call that compiles, and `repeats` more"),
        (fed_back, "You call f with what it returned"),
        (stopwatch(wait=lambda result: jnp.sum(result).block_until_ready()), "What f returns is a stand-in"),
        (stopwatch(take=min), "that is the shortest run, not the middle one"),
        (stopwatch(take=max), "that is the longest run, not the middle one"),
        (stopwatch(take=lambda runs: runs[0]), "that is the first run that counts"),
        (stopwatch(clock=time.process_time), "the clock counts only what the CPU does, as process_time."),
        (stopwatch(take=lambda runs: 1e3 * statistics.median(runs)), "your number is in ms"),
        (stopwatch(take=lambda runs: -statistics.median(runs)), "you take the later time away from the earlier"),
        (lambda f, x, repeats: stopwatch()(jax.jit(f), x, repeats), "It is compiled already: call it as it is."),
        (lambda f, x, repeats: stopwatch()(f, 0.0, repeats), "expected f(x), with x = 2.5"),
        (stopwatch(take=lambda runs: 1.5 * statistics.median(runs)), "one after the other, the runs took"),
    ],
    ex01.seconds_saved: [
        (saved(trip=lambda b, d, k, link: 8 * b * (d + k) / link), "you took 8 bytes, a float64"),
        (saved(trip=lambda b, d, k, link: b * (d + k) / link), "you count numbers; a float32 takes 4 bytes"),
        (saved(trip=lambda b, d, k, link: 32 * b * (d + k) / link), "you count bits"),
        (saved(trip=lambda b, d, k, link: 4 * b * d / link), "the result has to come back"),
        (saved(trip=lambda b, d, k, link: 4 * b * k / link), "x has to go there"),
        (saved(trip=lambda b, d, k, link: 8 * b * d / link), "x does not come back; the result does"),
        (saved(trip=lambda b, d, k, link: 4 * (b * d + b * k + d * k) / link), "the weights are there already"),
        (saved(trip=lambda b, d, k, link: 0), "take time on the way"),
        (
            saved(whole=lambda here, trip, there: here - trip + there),
            "the time there is added to what you save",
        ),
        (saved(there=lambda b, d, k, h, t: 0), "the product takes its time there, too"),
        (
            saved(here=lambda b, d, k, h, t: b * d * k / h, there=lambda b, d, k, h, t: b * d * k / t),
            "has 2 batch d k FLOPs",
        ),
        (
            saved(here=lambda b, d, k, h, t: 2 * b * d * k / t, there=lambda b, d, k, h, t: 2 * b * d * k / h),
            "you have here and there exchanged",
        ),
        (saved(whole=lambda here, trip, there: here - max(trip, there)), "the times add up"),
        (saved(whole=lambda here, trip, there: trip + there - here), "the other way round"),
        (saved(whole=lambda here, trip, there: 1e6 * (here - trip - there)), "your number is in µs"),
        (
            saved(whole=lambda here, trip, there: here - there + trip),
            "is added to what you save; it has to be taken away",
        ),
        (
            saved(whole=lambda here, trip, there: max(0, here - trip - there)),
            "what is asked is by how much: a number below 0",
        ),
        (saved(whole=lambda here, trip, there: here // 1 - trip // 1 - there // 1), "does a // cut them off?"),
        (saved(whole=lambda here, trip, there: here / (trip + there)), "so many times as fast it is with the trip"),
        (saved(trip=lambda b, d, k, link: 4 * b * (d + k) * link), "bytes divided by bytes per second are seconds"),
        (saved(trip=lambda b, d, k, link: 4 * b * d * k / link), "x has batch d, the result batch k"),
        (
            lambda b, d, k, link, h, t: b * k * (2 * d - 1) * (1 / h - 1 / t) - 4 * b * (d + k) / link,
            "d multiplications and d - 1 additions",
        ),
        (saved(here=lambda b, d, k, h, t: 2 * d**3 / h), "three times: here, the trip, there"),
        (lambda b, d, k, link, h, t: True, "expected one number, of seconds"),
        (lambda b, d, k, link, h, t: 0.000276, "batch 64, d 300, k 500"),
    ],
    ex01.run_stages: [
        (inside_one_jit, "stages[1] is traced inside a `jit` of yours, and that program is given what lives elsewhere"),
        (inside_one_jit, "places[1] is device 5. A `jit` moves nothing that is committed elsewhere"),
        (in_one_jit_altogether, "stages[1] is traced before stages[0] has run: your stages run inside one `jit`"),
        (
            in_its_own_jit(put),
            "stages[1] is traced inside a `jit` of yours, and that program is given what lives elsewhere",
        ),
        (
            in_its_own_jit(lambda x, place: put(x, SingleDeviceSharding(place))),
            "stages[1] is traced inside a `jit` of yours",
        ),
        (in_a_jit_from_the_second_on, "stages[1] is traced inside a `jit` of yours"),
        (
            never_moved,
            "stages[1] runs on device 3; places[1] is device 5. Where does what you give it live? It was not moved.",
        ),
        (only_the_result, "stages[1] runs on device 3; places[1] is device 5."),
        (moved_after, "stages[0] runs on device 0; places[0] is device 3."),
        (on_the_first_devices, "stages[0] runs on device 0; places[0] is device 3."),
        (the_functions_moved, "Your function raised TypeError"),
        (backwards, "You call stages[1] where stages[0] is next."),
        (each_of_the_input, "stages[1] is given the first x again; expected what stages[0] returned."),
        (by_asarray, "`device=` is for new arrays"),
        (under_default_device, "stages[0] runs on device 6; places[0] is device 4."),
        (all_but_the_last, "Of 2 stages you call 1: stages[1] is never called."),
        (lambda x, stages, places: put(x, places[-1]), "Of 2 stages you call 0"),
        (lambda x, stages, places: np.asarray(by_reduce(x, stages, places)), "expected a jax.Array"),
        (
            lambda x, stages, places: put(by_reduce(x, stages, places), jax.devices()[0]),
            "your result lives on device 0",
        ),
    ],
    ex01.train: [
        (loop(wait_new=True), "While batch 1 is loaded, no step is at work. You waited for step 0 too soon."),
        (loop(), "When step 2 is handed over, 3 steps are unfinished; two are allowed."),
        (reads(lambda w: w.is_ready()), "`is_ready()` asks once, and does not wait."),
        (reads(lambda w: w.is_ready() or time.sleep(1e-3)), "3 steps are unfinished; two are allowed. `is_ready()`"),
        (asks_first, "When step 2 is handed over, 3 steps are unfinished"),
        (reads(lambda w: w.block_until_ready), "Wait for a step's `w` (a call has brackets)."),
        (reads(lambda w: jnp.sum(w).block_until_ready()), "`w` is a stand-in for an array in this check"),
        (reads(lambda w: w.shape), "`w` is a stand-in for an array in this check"),
        (lambda w, step, load, count: loop(True)(w, jax.jit(step), load, count), "`w` is a stand-in for an array"),
        (loop(wait_every=2), "While batch 2 is loaded, no step is at work."),
        (loop(wait_every=3), "When step 2 is handed over, 3 steps are unfinished"),
        (loads_all_first, "While batch 1 is loaded, no step is at work. Hand step 0 over first."),
        (returns_the_one_before, "For count = 5 you return what step 3 returned; expected what step 4 returned."),
        (loads_one_too_many, "your load number 5 is of batch 5; expected 0 to 4"),
        (from_the_start_each_time, "Step 1 gets another w than step 0 returned."),
        (batch_too_late, "You call step 1 before batch 1 is loaded."),
        (batch_of_before, "Step 1 gets 0.25 for a batch; load(1) returned 1."),
        (
            lambda w, step, load, count: loop(True)(w, lambda w, batch: step(batch, w), load, count),
            "Step 0 gets 3 for a",
        ),
        (loop(wait_before=True, first=1), "your load number 0 is of batch 1; expected 0 to 4"),
        (lambda w, step, load, count: w, "For count = 5 you make 0 steps."),
        (lambda w, step, load, count: loop(True)(w, step, load, count - 1), "For count = 5 you make 4 steps."),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex01.find_devices: [local, by_recursion, by_registry, by_count, tried(lambda name: deque(jax.devices(name)))],
    ex01.predict_landings: [
        lambda: (0, 6, "error", 5, 5),
        lambda: [*np.array([0, 6]), "An error", np.float32(5), jnp.array(5)],
        lambda: [0.0, 6.0, " error ", 5.0, 5],
        lambda: dict(enumerate([0, 6, "an error", 5, 5])).values(),
        lambda: (answer for answer in [0, 6, "an error", 5, 5]),
        lambda: np.array([0, 6, "an error", 5, 5]),
        lambda: [all_devices()[0], all_devices()[6], "error", all_devices()[5], 5],
    ],
    ex01.steady_seconds: [
        in_nanoseconds_inside,
        by_polls_and_print,
        stopwatch(warmup=3),
        stopwatch(wait=np.asarray),
        stopwatch(wait=lambda result: float(result.sum()), take=np.median),
        stopwatch(wait=lambda result: result.item(), clock=time.monotonic),
        stopwatch(take=lambda runs: jnp.median(jnp.array(runs))),
    ],
    ex01.seconds_saved: [
        lambda b, d, k, link, h, t: b * (2 * d * k * (1 / h - 1 / t) - 4 * (d + k) / link),
        lambda b, d, k, link, h, t: (
            np.float64(2 * b * d * k / h) - 4 * b * d / link - 4 * b * k / link - 2 * b * d * k / t
        ),
        lambda b, d, k, link, h, t: jnp.float32(2 * b * d * k / h - (4 * b * (d + k) / link + 2 * b * d * k / t)),
        lambda batch, d, k, bytes_per_second, flops_here, flops_there: np.array(
            2 * batch * d * k / flops_here
            - np.zeros((batch, d), np.float32).nbytes / bytes_per_second
            - np.zeros((batch, k), np.float32).nbytes / bytes_per_second
            - 2 * batch * d * k / flops_there
        ),
    ],
    ex01.run_stages: [
        each_in_a_jit,
        by_in_shardings,
        by_index_and_sharding,
        through_the_host,
        by_reduce,
        by_recursion_over_stages,
    ],
    ex01.train: [
        waits_after_the_load,
        with_a_queue,
        loads_ahead,
        polls,
        loads_in_a_thread,
        reads(lambda w: float(w.sum())),
        reads(lambda w: float(w[0])),
        reads(str),
        reads(lambda w: w.tolist()),
        reads(lambda w: (w + 0).block_until_ready()),
        loop(wait_before=True),
        loop(wait_before=True, at_end=False),
    ],
}

# exercise: [(a change of the solution that computes the same, why)]
PAIRS = "for stage, place in zip(stages, places, strict=True):"
SAME = {
    ex01.run_stages: [
        (f"{PAIRS} -> {PAIRS.replace('True', 'False')}", "there are as many places as stages"),
        (f"{PAIRS} -> {PAIRS.replace(', strict=True', '')}", "there are as many places as stages"),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex01.hundred: (100, [(8, "that is this Python"), (2, "50 times too small")]),
    ex01.absent: (
        "an error",
        [("an empty list", "JAX does not say it so gently"), ("None", "is not so: it is an error"), (0, "expected")],
    ),
    ex01.late: (
        {"config": "an error", "here": 8, "new Python": 4},
        [
            ((4, 4, 4), "the number is fixed since the backend started"),
            ((4, 4, 4), "here: your guess, 4, is not so: it is 8: JAX reads the variable once"),
            ((8, 8, 8), "it is too late, and JAX says so"),
            ((8, 8, 8), "a new Python has a backend of its own"),
            (("an error", "an error", "an error"), "nobody looks at the variable any more"),
            ((4, 8), "expected 3 answers"),
        ],
    ),
    ex01.copied: (
        {"on_zero": "no", "on_two": "yes"},
        [(("yes", "yes"), "the same memory under another name"), ((False, False), "memory of its own")],
    ),
    ex01.sums: (
        {"on_two + x": 2, "on_two + on_five": "an error", "zeros_like(on_two) + x": 2},
        [
            ((0, 2, 0), "on_two + x: your guess, 0, is not so: it is 2: an uncommitted array goes"),
            ((0, 2, 0), "both are committed, and JAX moves neither"),
            ((0, 2, 0), "the zeros are made like `on_two`"),
            (("an error", 5, "an error"), "`x` was only born on device 0"),
            (("an error", 5, "an error"), "the zeros are committed, but"),
            ((2, 0, 2), "the default device is for arrays that are not"),
        ],
    ),
    ex01.guarded: (
        {"between devices": 1, "of any kind": 2},
        [
            ((2, 3), "a number of Python comes from the host"),
            ((2, 3), "of any kind: your guess, 3 lines, is 1.5 times too large: what device_put does, you asked for"),
            ((0, 1), "`x` is copied from device 0 to device 2"),
            ((1, 1), "the number 1 has to come from the host"),
        ],
    ),
    ex01.warm: (
        {"on_two + x": "no", "jnp.ones(4)": "yes"},
        [
            (("yes", "no"), "on which the guard is not asked"),
            (("yes", "no"), "the number 1 has to come from the host"),
            ((True, True), "is not so: it is no"),
            ((2, "yes"), "expected"),
        ],
    ),
    ex01.births: (
        {"born + 1, inside": 3, "born + 1, after": 0, "on_two + born": 2, "made + 1": 3},
        [
            ((3, 3, 3, 3), "to be born there is not to stay there"),
            ((3, 3, 3, 3), "`born` is uncommitted, `on_two` is not"),
            ((0, 0, "an error", 0), "inside the `with`, device 3 is the default one"),
            ((0, 0, "an error", 0), "so there is no conflict"),
            ((0, 0, "an error", 0), "`device=` commits"),
            ((3, 0, 0, 3), "a committed array decides"),
        ],
    ),
    ex01.returned: (
        "tenth",
        [("close", "this one only hands the work over"), ("half", "however large the work")],
    ),
    ex01.queued: ("no", [("yes", "so many orders and no more"), (2, "expected")]),
    ex01.per_byte: (
        {"n = 64": 16, "n = 2048": 512, "sine": 1 / 8},
        [
            ((32, 1024, 1 / 4), "the result has to come back, too"),
            ((8, 256, 1), "a multiply and an add are two FLOPs"),
            ((8, 256, 1), "that is a FLOP for each element"),
            ((64, 2048, None), "you count numbers; a float32 takes 4 bytes"),
            ((128, 4096, None), "you count numbers, and one way"),
            ((64 / 6, 2048 / 6, None), "between a chip and its own memory"),
        ],
    ),
    ex01.even: (
        {"by the rule": 41, "with 50 µs a move": 187},
        [
            ((20, 41), "the result has to come back, too"),
            ((20, 41), "at n = 41 the work here takes 1.4 µs"),
            ((80, 150), "a product has 2n³ FLOPs"),
            ((80, 150), "there and back are two moves"),
            ((10, 1000), "you count numbers"),
            ((10, 1000), "at n = 1000 the work here takes 20 ms"),
            ((320, None), "are bytes already"),
            ((400, None), "at n = 400 the trip takes 128 µs"),
            ((4000, None), "at n = 4000"),
        ],
    ),
    ex01.backwards: (
        {"norm": 1, "gradient": 2, "loose": 6},
        [
            ((2, 1, 2), "its input was moved to device 1"),
            ((2, 1, 2), "up to where the signal came from"),
            ((2, 1, 2), "that is where the other signal lives"),
            ((0, 0, 0), "gradient: your guess, 0, is not so: it is 2"),
            ((0, 0, 0), "loose: your guess, 0, is not so: it is 6"),
            ((1, "an error", "an error"), "a move has a reverse"),
        ],
    ),
    ex01.stream: (
        4,
        [(1, "in a loop that waits for each signal"), (2, "does not wait for the second"), (3, "long since")],
    ),
    ex01.trap: (
        {"device": 0, "sharding": 1},
        [
            ((1, 1), "a bare device is ignored inside a `jit`"),
            ((0, 0), "a sharding is not ignored"),
            (("an error", "an error"), "and nothing is said"),
            (("an error", "an error"), "all of the program can run there"),
        ],
    ),
    ex01.overlap: (
        {"in every step": 0, "at the end": 5},
        [
            ((5, 6), "before a load this loop has waited"),
            ((5, 6), "before the first load there is no step"),
            ((6, 0), "runs while the next batch is loaded"),
        ],
    ),
}
