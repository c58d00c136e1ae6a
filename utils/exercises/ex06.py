"""Exercises of notebook 06, Data-parallel training: pmap, and what replaced it."""

from __future__ import annotations

from itertools import pairwise
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import Wrong, exercise, number, spell
from utils.mesh import make_mesh


def old_step(w, mean, x, y):
    """One device's part of the step to port, as the notebook shows it."""
    grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    grad = jax.lax.pmean(grad, "data")
    mean = 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")
    return w - 0.1 * grad, mean


def _mesh():
    return make_mesh((8,), ("data",))


def _problem():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 4)).astype(np.float32) + np.arange(64, dtype=np.float32)[:, None] / 32
    y = (x @ np.float32([1, -2, 3, 0.5]) + rng.normal(size=64)).astype(np.float32)
    return np.float32([0.1, 0.2, -0.3, 0.4]), np.float32([1, 2, 3, 4]), x, y


def _judge_port(answer, step):
    w, mean, x, y = _problem()
    mesh, by_rows, whole = _mesh(), NamedSharding(_mesh(), P("data")), NamedSharding(_mesh(), P())
    # By hand: the gradient of the mean of (x w - y)^2 is 2/64 x^T (x w - y), of all 64 examples or of each device's 8.
    errors = (2 * x * (x @ w - y)[:, None]).reshape(8, 8, 4).mean(axis=1)
    means = x.reshape(8, 8, 4).mean(axis=1)
    args = (
        tuple(map(jnp.asarray, (w, mean, x, y)))
        if step == 1
        else (*jax.device_put((w, mean), whole), *jax.device_put((x, y), by_rows))
    )
    more = (mesh,) if step in (2, 3) else ()
    called: list[tuple[str, dict]] = []  # which of the two were called, with which keywords

    def spy(name, **usual):
        real = getattr(jax, name)
        return mock.patch.object(jax, name, lambda *a, **k: called.append((name, k)) or real(*a, **{**usual, **k}))

    # pmap takes the default platform's devices, which beside a single GPU are not the course's.
    platform = mesh.devices.flat[0].platform
    with spy("pmap", backend=platform), spy("shard_map"):
        try:
            got = answer(*args, *more)
        except Wrong as wrong:
            raise Wrong(f"{wrong}{_why_raised(str(wrong), step)}") from wrong
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Wrong(f"You return {type(got).__name__}; expected two arrays: the new w and the new mean.")
    for name, value in zip(("w", "mean"), got, strict=True):
        shape = getattr(value, "shape", None)
        if shape == (8, 4):
            raise Wrong(
                f"Your {name} has shape (8, 4): still eight copies. Which argument of pmap says that one comes out?"
            )
        if not isinstance(value, jax.Array) or shape != (4,):
            raise Wrong(f"Your {name} is {_what(value)}; expected a jax.Array of shape (4,).")
    moved, averaged = (w - np.asarray(got[0])) / 0.1, (np.asarray(got[1]) - 0.9 * mean) / 0.1
    for wrong, reason in (
        (errors.sum(axis=0), "8 times as far as it should: the gradient is a sum over the devices, taken for a mean."),
        (
            errors.sum(axis=0) * 8,
            "64 times as far as it should: an already summed gradient was summed again, or a sum over the examples was taken for "
            "their mean.",
        ),
        (
            errors.mean(axis=0) / 8,
            "an eighth as far as it should: nothing was summed over devices here, and you divide by 8.",
        ),
        (errors[0], "by the gradient of device 0's examples alone. Nobody averaged over the devices."),
    ):
        if np.allclose(moved, wrong, rtol=1e-3, atol=1e-3):
            raise Wrong(f"Your w moved {reason}")
    if not np.allclose(moved, errors.mean(axis=0), rtol=1e-3, atol=1e-3):
        raise Wrong(f"Your w is {np.asarray(got[0]).round(4)}; expected {(w - 0.1 * errors.mean(axis=0)).round(4)}.")
    if np.allclose(averaged, means[0], rtol=1e-3, atol=1e-3):
        raise Wrong("Your w is right; your mean is that of device 0's examples alone.")
    if not np.allclose(averaged, means.mean(axis=0), rtol=1e-3, atol=1e-3):
        raise Wrong(
            f"Your w is right; your mean is {np.asarray(got[1]).round(4)}, expected {(0.9 * mean + 0.1 * means.mean(axis=0)).round(4)}."
        )
    # jax.jit keeps what it traced before: the text of the program tells what the calls may not.
    with spy("pmap", backend=platform), spy("shard_map"):
        traced = jax.make_jaxpr(lambda *a: answer(*a, *more))(*args)
    program, names = str(traced), {name for name, _ in called}
    if step == 1 and "pmap" not in names and ("shard_map" in names or "map" not in program):
        raise Wrong("The values are right, but no pmap made them. This step keeps pmap, and drops the copies.")
    outermost = [v for e in traced.jaxpr.eqns for v in (*e.invars, *e.outvars)]
    if step == 1 and any(v.aval.shape == (8, 4) for v in outermost):
        raise Wrong(
            "The values are right, and w or mean still has eight copies: stacked before, or coming out and thrown away after. "
            "in_axes=None and out_axes=None do without."
        )
    if step > 1 and ("pmap" in names or "xla_pmap" in program):
        raise Wrong("The values are right, and pmap made them. This step has none.")
    if step in (2, 3):
        if "shard_map" not in program:
            raise Wrong("The values are right, but no shard_map made them.")
        cuts = [
            str(keywords["in_specs"]) for name, keywords in called if name == "shard_map" and "in_specs" in keywords
        ]
        if cuts and not any("data" in specs for specs in cuts):
            raise Wrong("The values are right, and every device worked on all 64 examples. Which spec cuts x and y?")
        if step == 2 and "check_vma=False" not in program:
            raise Wrong(
                "The values are right, under the default check. This step is pmap's own meaning: check_vma=False."
            )
        if step == 3 and "check_vma=False" in program:
            raise Wrong("The values are right, under check_vma=False. This step turns the check on.")
    if step == 4 and ("shard_map" in program or "psum" in program):
        raise Wrong("The values are right, and shard_map made them. This step leaves the devices to jit.")
    if step > 1 and not got[0].is_fully_replicated:
        raise Wrong(f"Your w is laid out as {spell(got[0].sharding)}; expected a copy on every device.")


def _why_raised(text, step):
    if "unbound axis name" in text and step < 4:
        return " The average runs over an axis called 'data'. Which argument names it?"
    if "unbound axis name" in text:
        return " Under jit there are no devices in the program, so there is no axis to average over."
    if "statically infer" in text or "require replication" in text:
        return " Something that leaves as P() still differs from device to device: what is not averaged yet?"
    if step == 1 and any(word in text for word in ("squeeze", "rank", "axis 0", "sizes")):
        return " w and mean come as one copy, without an axis for the devices. Which argument of pmap says so?"
    return ""


@exercise(
    lambda answer: _judge_port(answer, 1),
    "pmap takes in_axes, None for what every device gets whole, and out_axes, None for what comes out once. x and y still need the axis of eight.",
)
def port_1(w, mean, x, y):
    """Return the new w and mean by pmap: one copy of each goes in, one comes out."""
    step = jax.pmap(old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
    return step(w, mean, x.reshape(8, -1, 4), y.reshape(8, -1))


@exercise(
    lambda answer: _judge_port(answer, 2),
    "The function stays as it is. in_specs: P() twice, P('data') twice; out_specs: P(); and pmap's meaning of a gradient, check_vma=False.",
)
def port_2(w, mean, x, y, mesh):
    """Return the new w and mean by shard_map with check_vma=False."""
    specs = (P(), P(), P("data"), P("data"))
    return jax.shard_map(old_step, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(w, mean, x, y)


@exercise(
    lambda answer: _judge_port(answer, 3),
    "Under the check the gradient of a replicated w arrives summed. Average the loss inside grad, and nothing after it.",
)
def port_3(w, mean, x, y, mesh):
    """Return the new w and mean by shard_map under its default check."""

    def step(w, mean, x, y):
        grad = jax.grad(lambda w: jax.lax.pmean(((x @ w - y) ** 2).mean(), "data"))(w)
        mean = 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")
        return w - 0.1 * grad, mean

    specs = (P(), P(), P("data"), P("data"))
    return jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P())(w, mean, x, y)


@exercise(
    lambda answer: _judge_port(answer, 4),
    "Write the step of one device that has all 64 examples. The layout of x and y does the rest.",
)
def port_4(w, mean, x, y):
    """Return the new w and mean by jit; x and y come laid out over the devices."""

    def step(w, mean, x, y):
        grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.1 * grad, 0.9 * mean + 0.1 * x.mean(axis=0)

    return jax.jit(step)(w, mean, x, y)


def _what(value):
    return (
        f"an array of shape {value.shape}" if isinstance(value, jax.Array) else f"a {type(value).__name__}, {value!r}"
    )


def _judge_drop_units(answer):
    whole = 1 + np.arange(32 * 64, dtype=np.float32).reshape(32, 64) / 1024

    def dropped(seed, n=8):
        def check(value):
            if not isinstance(value, jax.Array) or value.shape != (32 // n, 64):
                raise Wrong(
                    f"You return {_what(value)}; expected the units of one device, {(32 // n, 64)}, some of them 0."
                )
            return value

        mesh = make_mesh((n,), ("data",))
        program = jax.shard_map(
            lambda key, units: check(answer(key, units)),
            mesh=mesh,
            in_specs=(P(), P("data")),
            out_specs=P("data"),
            check_vma=False,
        )
        units = jax.device_put(whole, NamedSharding(mesh, P("data")))
        return np.asarray(jax.jit(program)(jax.random.key(seed), units))

    got, again, other = dropped(0), dropped(0), dropped(1)
    if not np.array_equal(got, again):
        raise Wrong("The same key gave other units. All randomness must come from the key.")
    kept = (got != 0).mean()
    if not 0.4 < kept < 0.6:
        raise Wrong(f"You keep {kept:.2f} of the units; expected about half.")
    masks = (got != 0).reshape(8, 4, 64)
    if len({block.tobytes() for block in masks}) < 8:
        raise Wrong(
            "Several devices drop the same units: they draw from the same key. What differs from device to device?"
        )
    if len({row.tobytes() for row in masks.reshape(32, 64)}) < 32:
        raise Wrong(
            "Examples of one device drop the same units. The mask has the shape of the units, a row for each example."
        )
    if np.array_equal(got, other):
        raise Wrong(
            "Two keys drop the same units: every step would. The device's number has to go into the key, not replace it."
        )
    factor = got[got != 0] / whole[got != 0]
    if not np.allclose(factor, 2):
        raise Wrong(
            f"What you keep is {factor[-1]:.3g} times what it was; expected 2 times, so that the sum stays what it was on average."
        )
    for n in (4, 2):
        moved = np.flatnonzero(((dropped(0, n) != 0) != (got != 0)).any(axis=1))
        if moved.size:
            raise Wrong(
                f"On {n} devices, example {moved[0]} of the batch loses other units than on 8: your mask depends on which device has the "
                "example, and on its row there. What number does an example keep, however the batch is dealt out?"
            )


@exercise(
    _judge_drop_units,
    "The number of an example in the whole batch: rows here times jax.lax.axis_index('data'), and its row here. Fold that into the key, for each "
    "row: jax.vmap does it for all of them.",
)
def drop_units(key, units):
    """In shard_map: drop half, double the rest; the same on any number of devices."""
    rows, width = units.shape
    numbers = rows * jax.lax.axis_index("data") + jnp.arange(rows)  # in the whole batch
    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)
    kept = jax.vmap(lambda key: jax.random.bernoulli(key, 0.5, (width,)))(keys)
    return jnp.where(kept, 2 * units, 0)


def _judge_padded_accuracy(answer):
    # 13 examples padded to 16, two a device: devices 0 to 5 have two real ones, 6 has one, 7 has none.
    right = np.float32([1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1])  # what the padding "gets right" must not count
    weights = np.float32([1] * 13 + [0] * 3)

    def check(value):
        if getattr(value, "shape", None) != () or not isinstance(value, jax.Array):
            raise Wrong(f"You return {_what(value)}; expected one number, an array of shape ().")
        return value.reshape(1)

    place = NamedSharding(_mesh(), P("data"))
    program = jax.jit(
        jax.shard_map(
            lambda r, w: check(answer(r, w)), mesh=_mesh(), in_specs=P("data"), out_specs=P("data"), check_vma=False
        )
    )
    got = np.asarray(program(*jax.device_put((right, weights), place)))
    # By hand: 8 of the 13 real ones are right.
    want = 8 / 13
    if np.isnan(got).any() and np.unique(got).size > 1:
        raise Wrong(
            f"Device 7 says {got[7]}: it divides by its own count, and it has no real example. Add up first, then divide."
        )
    if np.ptp(got) > 1e-6:
        raise Wrong(
            f"The devices say {got[0]:.3f}, {got[1]:.3f}, ...: each counted its own examples. All of them need the same number."
        )
    said = float(got[0])
    reasons = {
        11 / 16: "that is 11 / 16: the padding is counted, as examples and as right ones.",
        8 / 16: "that is 8 / 16: the padding is counted as wrong answers. Divide by the number of real examples.",
        8 * 8 / 13: "that is larger than 1: one of the two sums runs over the devices, the other does not.",
        11 / 13: "that is 11 / 13: the padding's right answers are counted, too. Multiply by the weights first.",
        7 / 12: "that is 7 / 12: the example that has no partner is dropped.",
    }
    for value, why in reasons.items():
        if abs(said - value) < 1e-4:
            raise Wrong(f"You say {said:.4f}; {why}")
    if not abs(said - want) < 1e-4:  # also where it is not a number
        blame = (
            "A mean of the devices' means gives a device with one real example the weight of two."
            if np.isnan(said)
            or abs(said - np.mean([0.5, 0, 1, 0.5, 1, 0.5, 1, 0])) < 1e-4
            or abs(said - np.mean([0.5, 0, 1, 0.5, 1, 0.5, 1])) < 1e-4
            else "Eight of the 13 real examples are right."
        )
        raise Wrong(f"You say {said:.4f}; expected 8 / 13 = {want:.4f}. {blame}")


@exercise(
    _judge_padded_accuracy,
    "Two numbers per device: how many of its real examples are right, and how many it has. psum both, then divide.",
)
def padded_accuracy(right, weights):
    """In shard_map: the share of right answers among all the real examples."""
    return jax.lax.psum((right * weights).sum(), "data") / jax.lax.psum(weights.sum(), "data")


def _parameters(sizes):
    return sum(n * m + m for n, m in pairwise(sizes))


def _judge_bytes_per_step(answer):
    for sizes, n in (((64, 256, 128, 64, 10), 8), ((64, 32, 10), 4)):
        got = number(answer(sizes, n), "one number, of bytes")
        count = _parameters(sizes)
        want = 2 * (n - 1) / n * 4 * count
        weights = sum(a * b for a, b in pairwise(sizes))
        reasons = {
            4 * count: "that is the size of the gradient. An all-reduce sends 2 (n - 1) / n times that.",
            2 * 4 * count: "the factor (n - 1) / n is missing: no device sends to itself.",
            want / 2: "that is half of an all-reduce: adding up. The sums have to be handed out too.",
            want / 4: "that counts numbers. A float32 takes 4 bytes.",
            want
            * n: "that is what all the devices send together. One device sends an n-th of the gradient in each step of the ring.",
            2 * (n - 1) / n * 4 * weights: "the biases are missing: a layer of n inputs and m outputs has m more.",
        }
        for value, why in reasons.items():
            if abs(got - value) <= 1e-6 * want and abs(value - want) > 1:
                raise Wrong(f"For sizes {sizes} on {n} devices you say {got:,.0f} bytes; {why}")
        if abs(got - want) > 64:  # the loss, one number or two, may be counted or not
            raise Wrong(
                f"For sizes {sizes} on {n} devices you say {got:,.0f} bytes, {got / want:.3g} times what is sent. "
                f"The network has {count:,} parameters; what does each device put in, and what does an all-reduce send?"
            )


@exercise(
    _judge_bytes_per_step,
    "Parameters: n times m weights and m biases for each layer. The gradient has one float32 for each. Then the all-reduce of lesson 03.",
)
def bytes_per_step(sizes, n):
    """Return the bytes that each of n devices sends per step, to average a gradient."""
    parameters = sum(a * b + b for a, b in pairwise(sizes))
    return 2 * (n - 1) / n * 4 * parameters


def _judge_smallest_batch(answer):
    for flops, wire, n in ((1e15, 1e12, 6), (2e14, 1e11, 4)):
        got = number(answer(flops, wire, n), "one number, of examples")
        want = 2 * (n - 1) / n * 4 / wire * flops / 6  # the number of parameters is in both times, and cancels
        reasons = {
            want
            * 3: "you count 2 FLOPs for each parameter and example. That is the forward pass; the backward pass takes two more products.",
            want * 6: "the 6 FLOPs for each parameter and example are missing.",
            want * 1.5: "you count 4 FLOPs for each parameter and example, the backward pass alone.",
            want * n / (n - 1): "the factor (n - 1) / n is missing: no device sends to itself.",
            want / 2: "you price half of an all-reduce, or 2 bytes for a number. 2 (n - 1) / n, and 4 bytes.",
            want / 4: "you count numbers, and the wire carries bytes. A float32 has 4.",
            want * 8: "you count bits, and the wire's rate is in bytes.",
            want * n: "that is the whole batch. The examples of one device are asked.",
            1 / want: "that is the inverse: at a small batch computing is short, and sending is not.",
        }
        for value, why in reasons.items():
            if abs(got - value) <= 1e-4 * value:
                raise Wrong(f"For {flops:.0e} FLOP/s and {wire:.0e} bytes/s on {n} devices you say {got:,.4g}; {why}")
        if abs(got - want) > 1.0:
            raise Wrong(
                f"For {flops:.0e} FLOP/s and {wire:.0e} bytes/s on {n} devices you say {got:,.4g}; set the two times equal: "
                "bytes sent / (bytes/s) = 6 FLOPs · parameters · examples / (FLOP/s)."
            )


@exercise(
    _judge_smallest_batch,
    "Seconds to send: 2 (n - 1) / n · 4 N / bandwidth. Seconds to compute: 6 N · examples / rate. Set them equal; N drops out.",
)
def smallest_batch(flops_per_second, bytes_per_second, n):
    """Return the examples per device at which computing takes as long as sending."""
    sending = 2 * (n - 1) / n * 4 / bytes_per_second  # seconds for each parameter
    computing = 6 / flops_per_second  # seconds for each parameter and example
    return sending / computing
