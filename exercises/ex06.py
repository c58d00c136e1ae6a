"""Exercises and predictions for lesson 06, Data-parallel training: pmap, and what replaced it."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import Edit, MessageHint, Mistake, Prediction, RunResult, build_mesh, exercise, run_compiled

step_bytes = Prediction(
    409_101,
    "it's 2 · 7/8 of 58,442 gradients of 4 bytes each, and the loss adds 7 bytes",
    {
        467_536: "a device doesn't send its own eighth, so it's 7/8, twice",
        233_768: "that's the size of the gradient; an all-reduce sends 7/8 of it, twice",
        204_547: "an all-reduce sends twice: to add up, and to distribute",
        102_274: "you're counting elements, and each float32 element takes 4 bytes",
        818_188: "only the gradient is summed, because the momentum is already the same on every device",
        0: "each device has the gradient of its own 16 rows, but all of them need the gradient of 128",
    },
    "bytes",
    rel_tol=0.005,
)
mean_rows = Prediction(
    128,
    "under `jit`, the program works on global arrays, however they're sharded",
    {16: "that's the number of rows on one device; under `jit`, the program works on global arrays"},
    "rows",
)
different = Prediction(
    64,
    "both hosts draw the same 64 rows",
    {
        128: "both hosts draw the same 64 rows, so every digit is in the batch twice",
        700: "that's the half that both hosts read, but a batch takes only 64 rows of it",
        16: "eight devices hold 16 rows each, and each row is on two of them",
    },
    "digits",
)
accumulated = Prediction(
    4,
    "each iteration of the loop sums its own gradient over the devices",
    {1: "a single sum would be enough, but the CPU's compiler leaves it where the gradient is computed: in the loop"},
    "times",
    rel_tol=0.01,
)
axes_seen = Prediction(
    1,
    "`pmap` removes the first axis, as `vmap` does, so a device sees one row",
    {2: "the first axis counts the devices, and `pmap` removes it", 0: "a device gets a row of three numbers"},
    "axes",
)
chips = Prediction(
    1.116,
    "an H100 computes 5 times as fast and sends 4.5 times as fast",
    {
        5: "an H100 also sends 4.5 times as fast, and only the ratio counts",
        0.22: "an H100 also computes 5 times as fast, and only the ratio counts",
    },
    "times",
    rel_tol=0.03,
)
best_mesh = Prediction(
    "8 x 1",
    "there are as many gradients as before, but eight times as many activations",
    {
        "2 x 4": "the activations grow with the batch, but the gradients don't",
        "4 x 2": "the activations grow with the batch, but the gradients don't",
        "1 x 8": "everything that this mesh sends grows with the batch, to eight times as much as before",
    },
)


def _observe_epochs(answer, length, n):
    """Record which rows n devices read in several epochs. The answer is free to choose the order."""

    def epoch(number):
        return [np.asarray(answer(rank, n, length, number), int).ravel() for rank in range(n)]

    parts, rows = epoch(4), np.concatenate(epoch(4))
    lengths, exists = [len(part) for part in parts], (rows >= 0) & (rows < length)
    read = np.bincount(rows[exists], minlength=length)
    orders = {np.concatenate(epoch(number)).tobytes() for number in (0, 1, *range(4, 18))}
    return RunResult(
        {
            "rows that no device reads": int((read == 0).sum()),
            "rows that are read twice": int((read > 1).sum()),
            "row indices that don't exist": int((~exists).sum()),
            "difference between the most and the fewest rows of a device": max(max(lengths) - min(lengths), 1),
            "different orders in 16 epochs": len(orders),
        }
    )


@exercise(
    "Draw one order of all the rows from the epoch, the same on every device. Then each device takes "
    "every n-th row of it.",
    cases=[(14, 4), (1400, 8), (29, 3)],
    mistakes=[
        Mistake(
            Edit("order[rank::n]", "order[0::n]"),
            "every device takes device 0's share. How should the shares differ?",
        ),
        Mistake(
            Edit("default_rng(epoch)", "default_rng([epoch, rank])"),
            "each device shuffles on its own, so their shares overlap. Use the same order on all, then split it",
        ),
        Mistake(
            Edit("default_rng(epoch)", "default_rng(0)"),
            "every epoch has the same order, as if you forgot to call `set_epoch` in PyTorch",
        ),
        Mistake(
            Edit("default_rng(epoch)", "default_rng(epoch % 7)"),
            "after some epochs the orders repeat, but every epoch should have a different one",
        ),
        Mistake(
            Edit("order[rank::n]", "order[rank * (length // n) : (rank + 1) * (length // n)]"),
            "n doesn't divide the number of rows, and nobody reads the remainder",
        ),
        Mistake(
            Edit("order[rank::n]", "order[rank * -(-length // n) : (rank + 1) * -(-length // n)]"),
            "the last device gets fewer rows than the others; deal the rows out one by one",
        ),
    ],
    run=_observe_epochs,
)
def own_rows(rank, n, length, epoch):
    """Return the indices of the rows that device `rank` of n reads in this epoch."""
    order = np.random.default_rng(epoch).permutation(length)
    return order[rank::n]


def _run_on_tokens(answer, n, parts):
    """Run an answer on n devices, each with a different number of real rows."""
    rng = np.random.default_rng(n)
    w = np.float32(rng.normal(size=(5, 3)))
    x, y = (np.float32(rng.normal(size=(parts, 6 * n, k)) + np.arange(6 * n)[:, None] / n) for k in (5, 3))
    real = (rng.random((parts, 6 * n)) < np.linspace(0.1, 0.95, 6 * n)).astype(np.float32)
    real[:, ::6] = 1  # each device has at least one real row in each part
    mesh, sharded = build_mesh({"data": n}), P(None, "data")
    args = [
        jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip((w, x, y, real), (P(), *[sharded] * 3), strict=True)
    ]
    specs = {"in_specs": (P(), sharded, sharded, sharded), "out_specs": P("data")}

    def each(*args):
        return answer(*args)[None]  # stack the results of all devices

    return run_compiled(jax.shard_map(each, mesh=mesh, check_vma=False, **specs), *args)


def _mean_of_means(w, x, y, real):
    def part(w, x, y, real):
        return (real * ((x @ w - y) ** 2).mean(axis=1)).sum() / real.sum()

    grads = jax.vmap(jax.grad(part), in_axes=(None, 0, 0, 0))(w, x, y, real)
    return jax.lax.pmean(grads.mean(axis=0), "data")


def _counts_the_padding(w, x, y, real):
    return jax.lax.pmean(jax.grad(lambda w: (real * ((x @ w - y) ** 2).mean(-1)).mean())(w), "data")


@exercise(
    "Add up the gradients of *sums* over the real rows, and count those rows. Apply one `psum` to both, then divide.",
    cases={"on 4 devices, 3 parts": (4, 3), "on 8 devices, 5 parts": (8, 5)},
    mistakes=[
        Mistake(
            _mean_of_means,
            "a part with few real rows counts as much as a full one. Sum over all parts and devices first",
        ),
        Mistake(
            Edit("total / count", "total / real.sum()"),
            "you divide by the device's own number of rows, not by that of all devices",
        ),
        Mistake(
            Edit('jax.lax.psum((total, real.sum()), "data")', "(total, real.sum())"),
            "each device has its own gradient, because nothing was added up over 'data'",
        ),
        Mistake(_counts_the_padding, "you divide by the number of all rows, but only the real ones count"),
        MessageHint(
            "bytes that a device sends",
            "Add up on the device, and send one gradient and one count. Do you sum over the devices inside the "
            "loop, or send rows?",
        ),
    ],
    run=_run_on_tokens,
    rel_tol=1e-3,
)
def real_gradient(w, x, y, real):
    """Return dw (5, 3), given x (parts, k, 5), y (parts, k, 3) and real (parts, k)."""

    def loss(w, x, y, real):  # a sum over the real rows
        return (real * ((x @ w - y) ** 2).mean(axis=1)).sum()

    def add(total, part):
        return total + jax.grad(loss)(w, *part), None

    total, _ = jax.lax.scan(add, jnp.zeros_like(w), (x, y, real))
    total, count = jax.lax.psum((total, real.sum()), "data")
    return total / count


def old_step(w, mean, x, y):
    """Return the new w and the new mean, in the per-device part of the pmap training step that readers port."""
    grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    mean = 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")
    return w - 0.1 * jax.lax.pmean(grad, "data"), mean


def _run_on_mesh(answer, axes, order):
    """Run the answer under jit, on a mesh of the devices listed in `order`."""
    rng, mesh = np.random.default_rng(len(order)), build_mesh({"all": 8})
    devices = np.array([mesh.devices[i] for i in order]).reshape(*axes.values())
    mesh = jax.sharding.Mesh(devices, tuple(axes))
    x = np.float32(rng.normal(size=(40, 4)) + np.arange(40)[:, None] / 16)
    y = np.float32(x @ rng.normal(size=(4, 3)) + rng.normal(size=(40, 3)))
    w, mean = np.float32(rng.normal(size=(4, 3))), np.float32(rng.normal(size=4))
    replicated, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    args = [*jax.device_put((w, mean), replicated), *jax.device_put((x, y), sharded)]
    return run_compiled(answer, *args)


def _never_ported(w, mean, x, y):
    program = jax.pmap(old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
    return program(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))


def _still_stacked(w, mean, x, y):
    w, mean = (jnp.stack([a] * 8) for a in (w, mean))
    new = jax.pmap(old_step, axis_name="data")(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))
    return tuple(a[0] for a in new)


_UNPORTED = (
    "that's still the old loop: `pmap` uses eight devices of its own. Here the arrays are already "
    "sharded; what's left to do?"
)


@exercise(
    "What would this step be on a single device? Remove each `pmean`.",
    cases={
        "on a mesh of devices 3, 1, 6, 4": ({"data": 4}, (3, 1, 6, 4)),
        "on a mesh of 2 x 4": ({"data": 2, "model": 4}, (7, 6, 5, 4, 3, 2, 1, 0)),
    },
    mistakes=[
        Mistake(_never_ported, _UNPORTED),
        Mistake(_still_stacked, _UNPORTED),
        Mistake(
            old_step,
            "`pmean` needs an axis that `pmap` or `shard_map` names. Under `jit`, a mean is already over all rows",
        ),
        Mistake(Edit(".mean())(w)", ".sum())(w)"), "that's the sum over all rows, but the old step took the mean"),
    ],
    run=_run_on_mesh,
)
def new_step(w, mean, x, y):
    """Return the new w and the new mean; x and y are already sharded over a mesh."""
    grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    mean = 0.9 * mean + 0.1 * x.mean(axis=0)
    return w - 0.1 * grad, mean
