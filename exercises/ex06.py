"""Exercises and predictions of lesson 06, Data-parallel training: pmap, and what replaced it."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, Mistake, Observed, Prediction, WhenMessage, build_mesh, exercise, run_compiled

step_bytes = Prediction(
    409_101,
    "2 · 7/8 of 58,442 gradients of 4 bytes; the loss adds 7 bytes",
    {
        467_536: "its own eighth need not travel: 7/8, twice",
        233_768: "that is the gradient; an all-reduce sends 7/8 of it, twice",
        204_547: "an all-reduce sends twice: to add up, and to hand out",
        102_274: "you count numbers; a float32 takes 4 bytes",
        818_188: "the gradient alone is summed: the momentum is the same on every device already",
        0: "each device has the gradient of its own 16 rows; all need that of 128",
    },
    "bytes",
    within=0.005,
)
mean_rows = Prediction(
    128,
    "under `jit` the program speaks of whole arrays, whatever a device holds of them",
    {16: "that is what a device holds; under `jit` the program speaks of whole arrays"},
    "rows",
)
different = Prediction(
    64,
    "both hosts draw the same 64 rows",
    {
        128: "both hosts draw the same 64 rows: every digit of the batch is in it twice",
        700: "that is the half which both read; a batch takes 64 rows of it",
        16: "eight devices hold 16 rows each, and each row is held by two of them",
    },
    "digits",
)
accumulated = Prediction(
    4,
    "each round of the loop sums its own gradient over the devices",
    {1: "one sum would do, but the sum stands where the gradient is made: in the loop"},
    "times",
    within=0.01,
)
axes_seen = Prediction(
    1,
    "`pmap` takes the first axis away, as `vmap` does: a device sees one row",
    {2: "the first axis counts the devices, and `pmap` takes it away", 0: "a device gets a row of three numbers"},
    "axes",
)
chips = Prediction(
    1.116,
    "it computes 5 times as fast and sends 4.5 times as fast",
    {
        5: "it also sends 4.5 times as fast; only the quotient counts",
        0.22: "it also computes 5 times as fast; only the quotient counts",
    },
    "times",
    within=0.03,
)
best_mesh = Prediction(
    "8 x 1",
    "the gradients are as many as before, and the values between the layers are eight times as many",
    {
        "2 x 4": "the values between the layers grow with the batch, the gradients do not",
        "4 x 2": "the values between the layers grow with the batch, the gradients do not",
        "1 x 8": "all it sends grows with the batch: eight times as much as before",
    },
)


def _epochs(answer, length, n):
    """What n devices read in some epochs; which rows they are is the answer's own choice."""

    def epoch(number):
        return [np.asarray(answer(rank, n, length, number), int).ravel() for rank in range(n)]

    parts, rows = epoch(4), np.concatenate(epoch(4))
    lengths, there = [len(part) for part in parts], (rows >= 0) & (rows < length)
    read = np.bincount(rows[there], minlength=length)
    orders = {np.concatenate(epoch(number)).tobytes() for number in (0, 1, *range(4, 18))}
    return Observed(
        {
            "rows that no device reads": int((read == 0).sum()),
            "rows that are read twice": int((read > 1).sum()),
            "row numbers that do not exist": int((~there).sum()),
            "most rows of a device, less the fewest": max(max(lengths) - min(lengths), 1),
            "different orders in 16 epochs": len(orders),
        }
    )


@exercise(
    "Draw one order of all the rows from the epoch; every device draws the same. Then each takes every n-th row of it.",
    cases=[(14, 4), (1400, 8), (29, 3)],
    mistakes=[
        Mistake(
            Edit("order[rank::n]", "order[0::n]"), "every device takes the share of device 0. What tells them apart?"
        ),
        Mistake(
            Edit("default_rng(epoch)", "default_rng([epoch, rank])"),
            "each device shuffles by itself, so their shares overlap. Shuffle alike, then split",
        ),
        Mistake(
            Edit("default_rng(epoch)", "default_rng(0)"),
            "every epoch has the same order: PyTorch's forgotten `set_epoch`",
        ),
        Mistake(
            Edit("default_rng(epoch)", "default_rng(epoch % 7)"),
            "after some epochs the orders begin anew. Every epoch has another",
        ),
        Mistake(
            Edit("order[rank::n]", "order[rank * (length // n) : (rank + 1) * (length // n)]"),
            "the rows do not divide by n, and what remains is read by nobody",
        ),
        Mistake(
            Edit("order[rank::n]", "order[rank * -(-length // n) : (rank + 1) * -(-length // n)]"),
            "the last device gets fewer rows than the others; deal them out one by one",
        ),
    ],
    run=_epochs,
)
def own_rows(rank, n, length, epoch):
    """Return the numbers of the rows that device `rank` of n reads in this epoch."""
    order = np.random.default_rng(epoch).permutation(length)
    return order[rank::n]


def _tokens(answer, n, parts):
    """On n devices, each with a number of real rows of its own: the gradient, and what is sent for it."""
    rng = np.random.default_rng(n)
    w = np.float32(rng.normal(size=(5, 3)))
    x, y = (np.float32(rng.normal(size=(parts, 6 * n, k)) + np.arange(6 * n)[:, None] / n) for k in (5, 3))
    real = np.float32(rng.random((parts, 6 * n)) < np.linspace(0.1, 0.95, 6 * n))
    real[:, ::6] = 1  # a device has one real row at least in each part
    mesh, cut = build_mesh({"data": n}), P(None, "data")
    args = [jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip((w, x, y, real), (P(), *[cut] * 3), strict=True)]
    specs = {"in_specs": (P(), cut, cut, cut), "out_specs": P("data")}

    def each(*args):
        return answer(*args)[None]  # what each device says, as an entry of its own

    return run_compiled(jax.shard_map(each, mesh=mesh, check_vma=False, **specs), *args)


def _mean_of_means(w, x, y, real):
    def part(w, x, y, real):
        return (real * ((x @ w - y) ** 2).mean(axis=1)).sum() / real.sum()

    grads = jax.vmap(jax.grad(part), in_axes=(None, 0, 0, 0))(w, x, y, real)
    return jax.lax.pmean(grads.mean(axis=0), "data")


def _counts_the_padding(w, x, y, real):
    return jax.lax.pmean(jax.grad(lambda w: (real * ((x @ w - y) ** 2).mean(-1)).mean())(w), "data")


@exercise(
    "Add up the gradients of *sums* over the real rows, and count those rows. One `psum` of both, then divide.",
    cases={"on 4 devices, 3 parts": (4, 3), "on 8 devices, 5 parts": (8, 5)},
    mistakes=[
        Mistake(
            _mean_of_means,
            "a part with few real rows weighs as much as a full one. Sums first, over all parts and devices",
        ),
        Mistake(
            Edit("total / count", "total / real.sum()"),
            "you divide by the device's own rows, not by those of all devices",
        ),
        Mistake(
            Edit('jax.lax.psum((total, real.sum()), "data")', "(total, real.sum())"),
            "each device has its own gradient; nothing was added up over 'data'",
        ),
        Mistake(_counts_the_padding, "you divide by all rows; only the real ones count"),
        WhenMessage(
            "bytes that a device sends",
            "Add up on the device, and send one gradient and one count: is a sum in the loop, or are rows sent?",
        ),
    ],
    run=_tokens,
    within=1e-3,
)
def real_gradient(w, x, y, real):
    """Per device: w (5, 3), x (parts, k, 5), y (parts, k, 3), real (parts, k)."""

    def loss(w, x, y, real):  # a sum over the real rows
        return (real * ((x @ w - y) ** 2).mean(axis=1)).sum()

    def add(total, part):
        return total + jax.grad(loss)(w, *part), None

    total, _ = jax.lax.scan(add, jnp.zeros_like(w), (x, y, real))
    total, count = jax.lax.psum((total, real.sum()), "data")
    return total / count


def old_step(w, mean, x, y):
    """One device's part of the step to port, as the lesson shows it."""
    grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    mean = 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")
    return w - 0.1 * jax.lax.pmean(grad, "data"), mean


def _laid_out(answer, axes, order):
    """The answer under jit, on a mesh that is not the first eight devices in their order."""
    rng, mesh = np.random.default_rng(len(order)), build_mesh({"all": 8})
    devices = np.array([mesh.devices[i] for i in order]).reshape(*axes.values())
    mesh = jax.sharding.Mesh(devices, tuple(axes))
    x = np.float32(rng.normal(size=(40, 4)) + np.arange(40)[:, None] / 16)
    y = np.float32(x @ rng.normal(size=(4, 3)) + rng.normal(size=(40, 3)))
    w, mean = np.float32(rng.normal(size=(4, 3))), np.float32(rng.normal(size=4))
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    args = [*jax.device_put((w, mean), whole), *jax.device_put((x, y), cut)]
    return run_compiled(answer, *args)


def _never_ported(w, mean, x, y):
    program = jax.pmap(old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
    return program(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))


def _still_stacked(w, mean, x, y):
    w, mean = (jnp.stack([a] * 8) for a in (w, mean))
    new = jax.pmap(old_step, axis_name="data")(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))
    return tuple(a[0] for a in new)


_UNPORTED = (
    "that is the loop as it was: `pmap` brings its own eight devices. Here the arrays come laid out; what is left?"
)


@exercise(
    "What would this step be on one device? Take away each `pmean`.",
    cases={
        "on a mesh of devices 3, 1, 6, 4": ({"data": 4}, (3, 1, 6, 4)),
        "on a mesh of 2 x 4": ({"data": 2, "model": 4}, (7, 6, 5, 4, 3, 2, 1, 0)),
    },
    mistakes=[
        Mistake(_never_ported, _UNPORTED),
        Mistake(_still_stacked, _UNPORTED),
        Mistake(
            old_step,
            "`pmean` needs an axis that `pmap` or `shard_map` names. Under `jit` a mean is over all rows already",
        ),
        Mistake(Edit(".mean())(w)", ".sum())(w)"), "a sum over all rows, and the old step took a mean"),
    ],
    run=_laid_out,
)
def new_step(w, mean, x, y):
    """Return the new w and the new mean; x and y come laid out over a mesh."""
    grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    mean = 0.9 * mean + 0.1 * x.mean(axis=0)
    return w - 0.1 * grad, mean
