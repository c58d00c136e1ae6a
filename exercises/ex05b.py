"""Exercises and predictions for lesson 05b, Gradients and rings, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, exercise, run_per_device

shared_weight = Prediction(
    28,
    "there are eight losses and one weight, whose gradient adds up all eight: 0 + 1 + ... + 7",
    {
        2: "that's the gradient of a device's own loss, but the type says that all devices share one number",
        3.5: "nothing divides by eight: the losses are added up",
        16: "the eight losses have eight different x, not eight times a 2",
    },
)
summed_again = Prediction(
    64,
    "the gradient of the shared w is already the sum of eight means, which is 8 times too large, and "
    "then eight of these are added up",
    {
        8: "that's the factor with pmean, which doesn't change eight equal numbers",
        1: "each device's gradient is already the sum over all devices before the psum",
        16: "eight equal numbers are added up, not two",
    },
    "times",
)
unchecked = Prediction(
    16,
    "each of the eight losses is the same sum, and contains device 2's w times 2: 8 x 2",
    {
        2: "that's one loss, but after the psum all eight losses contain device 2's w",
        28: "that's the gradient of a shared w; with the check off, w is the device's own",
        224: "device 2's w is multiplied only by 2, in each of the eight losses",
    },
)
accumulated = Prediction(
    112,
    "each of the four iterations computes a gradient of the shared w, and so ends in an all-reduce of 28 bytes",
    {
        28: "that's a single all-reduce, but JAX puts one into each iteration",
        7: "an iteration with an all-reduce of its own sends more, not less",
        140: "the result is already the same on all devices, so no fifth all-reduce is needed",
        64: "an all-reduce of 16 bytes sends 2 x 7/8 of that, which is 28 bytes",
    },
    "bytes",
)
sent_back = Prediction(
    6,
    "device 3's x is in its own loss, times 2, and in the loss of device 4, times 4",
    {
        2: "that comes from device 3's own loss, but its x was sent on, and is in a second loss too",
        4: "that comes from the loss of device 4, but device 3's x is in its own loss too",
        3: "that's the value of x itself; what is it multiplied by?",
        28: "device 3's x is in two losses, not in all of them",
    },
)
ring = Prediction(
    8,
    "the type says varying, so there are eight losses, and each of them contains this number once",
    {
        1: "that would be right for one shared loss, but the result of sends and additions has a varying type",
        7: "the device's own loss contains the number too",
        64: "each of the eight losses contains it once",
    },
)


@exercise(
    "How many losses does JAX see, and how large is each? And what does the step after the gradient "
"do to n equal numbers?",
    cases=[(8, "", ""), (8, "", "pmean"), (5, "", "psum"), (8, "pmean", ""), (5, "psum", ""), (3, "pmean", "psum"), (3, "psum", "psum")],
    mistakes=[
Mistake(Edit('if inside == "pmean"', 'if not inside'), "a local loss is varying, so there are n losses, and the gradient of a shared weight adds up all "
"of them"),
Mistake(Edit('if inside == "pmean" else n', 'if inside == "pmean" else n * n if inside == "psum" else n'), "after a psum, the loss is one shared number that counts once"),
Mistake(Edit('factor * n if after == "psum" else factor', '{"psum": factor * n, "pmean": factor / n}.get(after, factor)'), "the mean of n equal numbers is that number, so pmean after the gradient doesn't divide anything"),
Mistake(Edit('factor * n if after == "psum" else factor', 'factor'), "psum after the gradient adds up n equal numbers"),
],
question="How many losses are there, and is each of them a mean over all rows, or n times that?",
)  # fmt: skip
def times_too_large(n, inside, after):
    """Return the factor of error. `inside` and `after` are "", "psum" or "pmean"."""
    factor = 1 if inside == "pmean" else n
    return factor * n if after == "psum" else factor


FEATURES = 5


def _run_on_padded_rows(f, counts):
    """Run f on len(counts) devices with six rows each, of which counts[i] are real on device i."""
    rng, rows = np.random.default_rng(sum(counts)), 6 * len(counts)
    w, x, y = (np.float32(rng.normal(size=s)) for s in (FEATURES, (rows, FEATURES), rows))
    real = np.concatenate([rng.permutation(np.arange(6) < count) for count in counts]).astype(np.float32)
    specs = {"in_specs": (P(), P("X"), P("X"), P("X")), "out_specs": P()}
    return run_per_device(f, w, x, y, real, mesh={"X": len(counts)}, **specs)


@exercise(
    "The loss over all rows is one quotient: the squares of all real rows divided by the number of "
"all real rows. Sum both over 'X' inside the loss, and differentiate that.",
    cases={
        "of 4 devices with 5, 2, 6, 3 real rows": ((5, 2, 6, 3),),
        "of 8 devices, one with 1": ((5, 4, 5, 1, 2, 3, 6, 2),),
        "of 8 devices, one with none": ((6, 6, 0, 4, 6, 5, 6, 1),),
    },
    run=_run_on_padded_rows,
    mistakes=[
Mistake(Edit('jax.lax.psum(squares, "X") / jax.lax.psum(real.sum(), "X")', 'jax.lax.pmean(squares / real.sum(), "X")'), "that's the mean of means: a device with one real row counts as much as one with six"),
Mistake(Edit('return jax.grad(loss)(w)', 'return jax.lax.psum(jax.grad(loss)(w), "X")'), "the gradient of the loss over all rows is already complete. What does a psum after it add up?"),
Mistake(Edit('jax.lax.psum(real.sum(), "X")', 'real.sum()'), "each device divides by its own count, so the losses differ"),
Mistake(Edit('(squares', '(squares / real.sum()'), "you divide by each device's own count, and by the total count as well"),
Mistake(Edit(' * real', ''), "your squares include the padded rows"),
Mistake(Edit('jax.lax.psum(real.sum(), "X")', '(6 * jax.lax.axis_size("X"))'), "you divide by the number of all rows, including the padding"),
MessageHint('bytes that a device sends', "One all-reduce of the gradient and two of a single number are enough. "
"Which rows do you send?"),
],
question="Which squares do you add up, over which devices, and what do you divide by?",
)  # fmt: skip
def masked_gradient(w, x, y, real):
    """Return the gradient (5,) of shared w (5,), given x (6, 5), y (6,), real (6,)."""

    def loss(w):
        squares = ((x @ w - y) ** 2 * real).sum()
        return jax.lax.psum(squares, "X") / jax.lax.psum(real.sum(), "X")

    return jax.grad(loss)(w)


def _run_on_pairs(f, devices, rows):
    """Run f on several devices, with `rows` pairs of image and text on each."""
    rng = np.random.default_rng(devices)
    w, images, texts = (np.float32(rng.normal(size=s) / 2) for s in ((5, 4), (devices * rows, 4), (devices * rows, 5)))
    specs = {"in_specs": (P(), P("X"), P("X")), "out_specs": P()}
    return run_per_device(f, w, images, texts, mesh={"X": devices}, measure=(), **specs)


@exercise(
    "Gather the texts over 'X' (tiled=True) inside the loss, score the device's own images against "
"all of them, and average over the devices inside the loss, too.",
    cases={"of 4 devices with 5 pairs each": (4, 5), "of 8 devices with 3 pairs each": (8, 3)},
    run=_run_on_pairs,
    mistakes=[
Mistake(Edit('jax.lax.pmean((every - own).mean(), "X")', '(every - own).mean()'), "that's the gradient of the sum of all devices' losses. How do you turn it into one mean over "
"all images?"),
Mistake(Edit('jax.lax.all_gather(texts @ w, "X", tiled=True)', 'texts @ w'), "you compare an image only with the "
"texts on its own device, but those on the other devices count too"),
Mistake(Edit('jax.lax.all_gather(texts @ w, "X", tiled=True)', 'jax.lax.all_gather(jax.lax.stop_gradient(texts @ w), "X", tiled=True)'), "no gradient comes back through the gathered texts. The transpose of all_gather is a "
"reduce-scatter: let it run"),
Mistake(Edit('axis=1)', 'axis=0)', count=2), "the softmax of an image runs over the texts, not over the images"),
],
question="Which texts is an image compared with, and how many losses does JAX see?",
)  # fmt: skip
def contrastive_gradient(w, images, texts):
    """Return the gradient (5, 4) of shared w, given images (k, 4) and texts (k, 5)."""

    def loss(w):
        gathered = jax.lax.all_gather(texts @ w, "X", tiled=True)  # (n k, 4)
        every = jax.nn.logsumexp(images @ gathered.T, axis=1)  # (k,)
        own = jnp.sum(images * (texts @ w), axis=1)
        return jax.lax.pmean((every - own).mean(), "X")

    return jax.grad(loss)(w)
