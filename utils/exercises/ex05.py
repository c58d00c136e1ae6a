"""Exercises of notebook 05, Writing the per-device program with shard_map."""

from __future__ import annotations

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.exercises import Wrong, exercise, on_eight, part, same, spell


def _judge_part_of_softmax(answer):
    rng = np.random.default_rng(0)
    x = rng.normal(size=64).astype(np.float32)
    want = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    program = on_eight(part(answer, (8,)), P("i"), P("i"))
    got = np.asarray(program(x))
    e = np.exp(x - x.max()).reshape(8, 8)
    shifted = np.exp(x.reshape(8, 8) - x.reshape(8, 8).max(1, keepdims=True))
    near = lambda other: np.allclose(got, np.ravel(other), rtol=1e-3)  # noqa: E731
    if near(e / e.sum(1, keepdims=True)):
        raise Wrong(
            f"Your whole result adds up to {got.sum():.0f}, not to 1: each device divides by the sum of its own part. "
            "The sum of all parts is missing its psum."
        )
    if near(8 * want):
        raise Wrong("Your whole result adds up to 8: you divide by the mean of the eight sums, not by their sum.")
    if near(shifted / shifted.sum()):
        raise Wrong(
            "Your result adds up to 1, but the parts do not fit together: each device subtracts the largest score of its own "
            "part. All must subtract the same."
        )
    if near(e / e.sum(0)):
        raise Wrong(
            "Your whole result adds up to 8: psum of an array adds across devices, element by element. Add up the part first."
        )
    same(got, want)
    for more, where in ((200 * np.ones(64), "to every score"), (200.0 * (np.arange(64) < 8), "on device 0 alone")):
        y = (x + more).astype(np.float32)
        got = np.asarray(program(y))
        if not np.isfinite(got).all():
            raise Wrong(
                f"Right for small scores. With 200 added {where} your result is not a number: what you subtract is not the largest "
                "score of all, so some exp is infinite (exp(100) is, in float32), or every one is 0."
            )
        if not np.allclose(got, np.exp(y - y.max()) / np.exp(y - y.max()).sum(), rtol=1e-3):
            raise Wrong(
                f"Right for small scores; with 200 added {where} it is not. Do you subtract the largest of all?"
            )
    found = cost(program, x)
    if found.bytes_sent > 28:
        raise Wrong(
            f"Right values, and each device sends {found.bytes_sent} bytes. Two numbers have to be agreed on, which is 2 x 7 bytes. "
            "Reduce on the device first, then across devices."
        )


@exercise(
    _judge_part_of_softmax,
    "Two collectives, each of one number: jax.lax.pmax of the part's largest, jax.lax.psum of the part's sum.",
)
def part_of_softmax(x):
    """Per device: a part (k,) of the scores -> the same part of their softmax, (k,)."""
    e = jnp.exp(x - jax.lax.pmax(x.max(), "i"))
    return e / jax.lax.psum(e.sum(), "i")


def _judge_rows_of_product(answer):
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((32, 64), (64, 16)))
    program = on_eight(part(answer, (4, 16)), (P("i"), P("i")), P("i"))
    try:
        with mock.patch.object(jax.lax, "all_gather", wraps=jax.lax.all_gather) as gather:
            got = np.asarray(program(x, w))
    except Wrong as wrong:
        if "dot_general" not in str(wrong):
            raise
        if any(not call.kwargs.get("tiled") for call in gather.call_args_list):
            raise Wrong(
                f"{wrong} An all_gather without tiled=True stacks the slices along a new axis, (8, 8, 16); joined they are (64, 16)."
            ) from wrong
        if any(call.kwargs.get("axis") for call in gather.call_args_list):
            raise Wrong(
                f"{wrong} You joined the slices side by side, (8, 128). They are rows of w: join along axis 0."
            ) from wrong
        raise Wrong(
            f"{wrong} Your rows have 64 columns, and a slice of w has 8 rows: the device lacks the other slices of w."
        ) from wrong
    mixed = sum(x[:, 8 * k : 8 * k + 8].reshape(8, 4, 8)[k] @ w[8 * k : 8 * k + 8] for k in range(8))
    if np.allclose(got, np.tile(mixed, (8, 1)), atol=1e-3):
        raise Wrong(
            "All devices return the same: psum adds up partial products of different rows. A psum fits where the devices share their rows "
            "and split the contraction; here each has rows of its own."
        )
    if np.allclose(got, np.concatenate([x[4 * k : 4 * k + 4, :8] @ w[8 * k : 8 * k + 8] for k in range(8)]), atol=1e-3):
        raise Wrong(
            "You use 8 of the 64 columns. A slice of w fits only its own columns, and the sum over all slices is asked."
        )
    same(got, x @ w)


@exercise(
    _judge_rows_of_product,
    "What does the device lack before it can multiply? The joined slices, (64, 16): tiled=True.",
)
def rows_of_product(x, w):
    """Per device: own rows x (4, 64), a slice w (8, 16) of (64, 16) -> (4, 16)."""
    return x @ jax.lax.all_gather(w, "i", tiled=True)


def _column_sums(t):
    return t.sum(axis=0)


def _double(x):
    return 2 * x


def _total_of(x):
    return jax.lax.psum(x.sum(), "i")


def _relative(x):
    return x / jax.lax.pmax(x.max(), "i")


def _judge_mended_specs(answer):
    x = np.arange(32.0, dtype=np.float32)
    cases = [  # program, argument, result, by hand
        (_column_sums, x.reshape(4, 8), 48 + 4.0 * np.arange(8)),
        (_double, x, 2 * x),
        (_total_of, x, np.float32(496)),
        (_relative, x, x / 31),
    ]
    pairs = answer()
    if not isinstance(pairs, (list, tuple)) or len(pairs) != 4:
        raise Wrong(f"You return {pairs!r}; expected a list of four pairs (in_specs, out_specs).")
    for (program, argument, want), pair in zip(cases, pairs, strict=True):
        name = program.__name__[1:]
        if isinstance(pair, P) or not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise Wrong(f"{name}: you give {pair!r}; expected a pair (in_specs, out_specs).")
        in_specs, out_specs = (s[0] if isinstance(s, (list, tuple)) and not isinstance(s, P) and len(s) == 1 else s for s in pair)  # fmt: skip
        if not isinstance(in_specs, P) or not isinstance(out_specs, P):
            raise Wrong(f"{name}: you give {pair!r}; expected two PartitionSpecs, as P('i').")
        seen = []

        def counted(part, program=program, seen=seen):
            seen.append(part.size)
            return program(part)

        try:
            got = on_eight(counted, in_specs, out_specs)(argument)
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line]
            clue = next((line for line in lines if "_specs is" in line or "of shape" in line), "")
            said = lines[0][lines[0].index("was given") :] if "was given" in lines[0] else lines[0]
            raise Wrong(f"{name}: JAX still refuses: {said} {clue}") from error
        if seen and seen[0] == argument.size:
            more = (
                f" (and the psum of eight whole sums is {float(got):,.0f}, 8 times too large)"
                if program is _total_of
                else ""
            )
            raise Wrong(
                f"{name}: under in_specs=P() every device gets the whole argument and does the same work{more}. Cut it."
            )
        if got.shape != np.shape(want):
            raise Wrong(
                f"{name}: the result has shape {got.shape}; expected {np.shape(want)}. Does out_specs join parts that are copies?"
            )
        same(got, np.asarray(want, np.float32), f"{name}: the result")
        if program is not _total_of and got.sharding.is_fully_replicated:
            raise Wrong(f"{name}: the result is laid out as {spell(got.sharding)}; it was to stay in parts.")


@exercise(
    _judge_mended_specs,
    "Eight devices cannot share 4 rows, but 8 columns. A spec has at most as many entries as the array has axes. "
    "A number has no axis to join. What differs from device to device must be joined.",
)
def mended_specs():
    """Return four pairs (in_specs, out_specs), in the order of the programs."""
    return [(P(None, "i"), P("i")), (P("i"), P("i")), (P("i"), P()), (P("i"), P("i"))]


def _smoothed(series, start=0.0):
    out = []
    for value in series:
        start = 0.5 * start + 0.5 * value
        out.append(start)
    return np.array(out, np.float32)


def _judge_smooth(answer):
    all_series = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    program = on_eight(part(answer, (16,)), P("i"), P("i"))
    try:
        got = np.asarray(program(all_series.ravel())).reshape(8, 16)
    except Wrong as wrong:
        if "carry" in str(wrong):
            raise Wrong(
                f"{str(wrong).rstrip(':')}. If the carry starts as a plain 0, it is the same everywhere, float32[], and after one round it varies, "
                "float32[]{V:i}. Give the start the type that it will have."
            ) from wrong
        raise
    want = np.stack([_smoothed(series) for series in all_series])
    if np.allclose(got, np.stack([_smoothed(s, s[0]) for s in all_series]), atol=1e-5):
        raise Wrong(
            f"Your first output is {got[0, 0]:.3f}, the first value itself: your carry starts at the first value, not at 0."
        )
    if np.allclose(got, _smoothed(all_series.mean(0)), atol=1e-5) or np.ptp(got, axis=0).max() == 0:
        raise Wrong("All devices return the same series. Each has its own; no collective is needed.")
    if np.allclose(got, 2 * want, atol=1e-5):
        raise Wrong("Your outputs are twice too large: the value is to be halved, too.")
    if np.allclose(got[:, 1:], want[:, :-1], atol=1e-5):
        raise Wrong("Your first output is the start: step is to give the new s as its output, not the old one.")
    if np.allclose(got, 0.5 * np.cumsum(all_series, axis=1), atol=1e-4):
        raise Wrong("Your outputs are half of the running sums: the old s is to be halved in every round, too.")
    same(got, want)


@exercise(
    _judge_smooth,
    "step(s, value) returns the next s twice: as the carry and as the output. jnp.zeros_like(series[0]) is a zero that varies.",
)
def smooth(series):
    """Per device: its own series (16,) -> the smoothed series (16,), by lax.scan."""

    def step(s, value):
        s = 0.5 * s + 0.5 * value
        return s, s

    return jax.lax.scan(step, jnp.zeros_like(series[0]), series)[1]
