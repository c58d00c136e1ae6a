"""Exercises of notebook 05b, Gradients and rings, by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.exercises import Wrong, exercise, numbers, on_eight, part, same

PROGRAMS = "grad(local)", "grad(psum of local)", "psum(grad(local))", "pmean(grad(local))"
MODES = "by default", "under check_vma=False", "under pmap"
# By hand: device 2 has x = 2, all devices together 28.
GRADIENTS = [[28, 2, 2], [28, 16, 16], [224, 28, 28], [28, 3.5, 3.5]]
WHY = [
    [
        "w is shared, float32[], so its gradient must be the same on all devices: what does JAX add up?",
        "each device differentiates for itself: which x has device 2?",
    ],
    [
        "the loss is the sum of all, and its gradient by the shared w is the true one; JAX sums once, not twice.",
        "each device starts its own derivative of the sum, and the derivative of psum is psum: eight of them are added, times the device's own x.",
    ],
    [
        "grad(local) is 28 on every device already; what does psum make of eight times 28?",
        "grad(local) is the device's own here, and psum adds up 0 + 1 + ... + 7.",
    ],
    [
        "grad(local) is 28 on every device already, and the mean of eight times 28 is not 3.5.",
        "grad(local) is the device's own here; the mean of 0 ... 7 is asked.",
    ],
]


def _judge_predict_gradients(answer):
    got = numbers(answer(), (4, 3), "a list of four rows of three numbers")
    for program, row, want, why in zip(PROGRAMS, got, GRADIENTS, WHY, strict=True):
        for mode, said, right in zip(range(3), row, want, strict=True):
            if said != right:
                like = " (pmap follows the rule of check_vma=False)" if mode == 2 else ""
                raise Wrong(f"{program} {MODES[mode]}: you say {said:g}. Think: {why[min(mode, 1)]}{like}")


@exercise(
    _judge_predict_gradients,
    "First column: every gradient by w is the same on all devices. Other columns: 'local' is 2 on device 2; psum adds 0 to 7; "
    "and a psum inside the loss multiplies the device's own gradient by 8.",
)
def predict_gradients():
    """Return what device 2 holds: a row for each program, [default, off, pmap]."""
    return [
        [28, 2, 2],  # 1. grad(local)
        [28, 16, 16],  # 2. grad(psum of local)
        [224, 28, 28],  # 3. psum(grad(local))
        [28, 3.5, 3.5],  # 4. pmean(grad(local))
    ]


def _squares_gradient(w, x, y, weights):
    """By hand: d/dw of the sum of weights (x w - y)^2."""
    return 2 * ((x @ w - y) * weights) @ x


def _judge_masked_gradient(answer):
    rng = np.random.default_rng(1)
    w, x, y = (rng.normal(size=shape) for shape in (4, (32, 4), 32))
    real = np.ones(32)
    real[30:], x[30:], y[30:] = 0, 0.5, 3  # padding that shows if it is counted
    arguments = [value.astype(np.float32) for value in (w, x, y, real)]
    program = on_eight(part(answer, (4,)), (P(), P("i"), P("i"), P("i")), P())
    want = _squares_gradient(w, x, y, real / 30)
    try:
        got = np.asarray(program(*arguments))
    except Exception as error:
        if "require replication" not in str(error):
            raise
        raise Wrong(
            "The result differs from device to device, and out_specs=P() promises one gradient for all: the sum over the devices is missing. "
            "Did you make a varying copy of w and forget its psum?"
        ) from error
    counts = np.repeat(real.reshape(8, 4).sum(axis=1), 4)
    others = {
        "8 times too large: by default the gradient by a shared w is summed over the devices. Either you sum or average it again, or each "
        "device's loss is already that of all (gathered).": 8 * want,
        "that of the mean of eight means. The last device has two real examples and counts as much as the others with four: add up the "
        "squares of all, and divide by the number of all.": _squares_gradient(w, x, y, real / counts / 8),
        "the sum of eight means, because the gradient by a shared w is summed over the devices. Where do you divide by the number of all real examples?": _squares_gradient(
            w, x, y, real / counts
        ),
        "that of a mean over 32: you divide by the number of rows, padding included.": want * 30 / 32,
        "that of all 32 rows: the padding is counted as if it were real.": _squares_gradient(w, x, y, np.ones(32) / 32),
        "that of the sum of the squares, not of their mean: divide by the number of real examples.": want * 30,
        "67.5 times too large: you divide the sum of all squares by the device's own count, not by that of all.": want
        * 30
        * (7 / 4 + 1 / 2),
    }
    for what, other in others.items():
        if np.allclose(got, other, rtol=1e-3, atol=1e-4):
            raise Wrong(f"Your gradient is {what}")
    same(got, want.astype(np.float32), "Your gradient")
    if cost(program, *arguments).bytes_sent > 56:
        raise Wrong(
            f"Right values, and each device sends {cost(program, *arguments).bytes_sent} bytes; a gradient of 16 bytes needs 28."
        )


@exercise(
    _judge_masked_gradient,
    "Write the loss of all devices: the psum of the masked squares, divided by the psum of real. Then differentiate that by w.",
)
def masked_gradient(w, x, y, real):
    """Per device: w (4,) whole; x (4, 4), y (4,), real (4,) -> the gradient (4,)."""

    def loss(w):
        squares = (real * (x @ w - y) ** 2).sum()
        return jax.lax.psum(squares, "i") / jax.lax.psum(real.sum(), "i")

    return jax.grad(loss)(w)


def _judge_gather_to_the_left(answer):
    x = np.arange(32.0, dtype=np.float32) + 1
    program = on_eight(part(answer, (32,)), P("i"), P("i"))
    rows = np.asarray(program(x)).reshape(8, 8, 4)
    blocks, found = x.reshape(8, 4), cost(program, x)
    place = {float(block[0]): k for k, block in enumerate(blocks)}
    if any(c.kind != "collective-permute" for c in found):
        raise Wrong(f"You use {', '.join(sorted({c.kind for c in found}))}; only sends, jax.lax.ppermute, are allowed.")
    sends = sum(c.times for c in found)
    pairs = {pair for c in found for pair in c.groups}
    left, right = ({(i, (i + step) % 8) for i in range(8)} for step in (-1, 1))
    if pairs <= right:
        raise Wrong(
            f"Your sends go from device {min(pairs)[0]} to device {min(pairs)[1]}, to the right. The left neighbour of device i is i - 1."
        )
    if pairs - left:
        source, target = min(pairs - left)
        raise Wrong(
            f"Device {source} sends to device {target}, which is not its left neighbour, device {(source - 1) % 8}."
        )
    if left - pairs:
        source, target = min(left - pairs)
        raise Wrong(
            f"No pair sends from device {source} to device {target}, so device {target} gets zeros. A ring has eight pairs."
        )
    if not rows[0, 0].any():
        raise Wrong("Your own block is missing (zeros): put it in before the first send.")
    missing = [k for k in range(8) if not rows[0, k].any()]
    if missing:
        raise Wrong(
            f"Block {missing[0]} is missing on device 0 (zeros); you send {sends} times. A block has to reach 7 other devices."
        )
    if all(np.array_equal(rows[d, (d - k) % 8], blocks[(d + k) % 8]) for d in range(8) for k in range(8)):
        raise Wrong(
            f"On device 0, block {place.get(float(rows[0, 1, 0]), '?')} stands where block 1 belongs: you count as if blocks came from the left. "
            "Sent to the left, they arrive from the right."
        )
    if np.array_equal(rows[1], blocks[[1, 2, 3, 4, 5, 6, 7, 0]]):
        raise Wrong("Device 1 has the blocks in the order of their arrival, 1 2 ... 7 0. Block j belongs at place j.")
    same(rows.reshape(-1), np.tile(x, 8))
    if sends != 7 or found.bytes_sent != 7 * 16:
        raise Wrong(
            f"Right values, but {sends} sends of {found.bytes_sent // max(sends, 1)} bytes; 7 sends of 16 bytes are enough. "
            "What does the last one carry?"
        )


@exercise(
    _judge_gather_to_the_left,
    "The pairs are (i, i - 1) modulo 8. After `step` sends you hold the block that began `step` devices to your right.",
)
def gather_to_the_left(block):
    """Per device: its block (k,) -> all eight, (8 * k,), by sends to the left."""
    me = jax.lax.axis_index("i")
    out = jnp.zeros((8, *block.shape)).at[me].set(block)
    for step in range(1, 8):
        block = jax.lax.ppermute(block, "i", [(i, (i - 1) % 8) for i in range(8)])
        out = out.at[(me + step) % 8].set(block)
    return out.reshape(-1)


def _judge_price_of_product(answer):
    for n, k, m in ((8, 1024, 512), (64, 4096, 4096)):
        case = f"For n = {n}, k = {k}, m = {m}"
        sent, gathered, rotating = numbers(answer(n, k, m), (3,), "three numbers of bytes")
        whole = 4 * k * m
        if [4 * sent, 4 * gathered, 4 * rotating] == [whole * (n - 1) / n, whole, 2 * whole / n]:
            raise Wrong(f"{case}: a quarter of the bytes. A float32 takes 4.")
        if sent != whole * (n - 1) / n:
            why = "a device sends n - 1 pieces: the last round sends nothing." if sent == whole else ""
            why = why or "each of the n - 1 rounds sends one piece, an n-th of b."
            raise Wrong(f"{case} you say that {sent:,.0f} bytes are sent: {why}")
        if gathered == whole * (n + 1) / n or rotating == 3 * whole / n:
            raise Wrong(f"{case} you count the stored piece, too; what comes besides it is asked.")
        if gathered != whole:
            raise Wrong(f"{case} you say {gathered:,.0f} bytes gathered: after an all-gather a device holds all of b.")
        if rotating != 2 * whole / n:
            why = "while the product uses one piece, the next arrives beside it."
            raise Wrong(f"{case} you say {rotating:,.0f} bytes rotating: {why}")


@exercise(
    _judge_price_of_product,
    "A piece has 4 k m / n bytes. How many pieces are sent, how many are held by each program at once?",
)
def price_of_product(n, k, m):
    """Return (bytes sent, bytes of b held gathered, bytes of b held rotating)."""
    piece = 4 * k * m / n
    return (n - 1) * piece, n * piece, 2 * piece
