"""Exercises and predictions of notebook 06, Data-parallel training: pmap, and what replaced it."""

from __future__ import annotations

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, Sharding
from jax.sharding import PartitionSpec as P

from utils.count.cost import cost
from utils.devices import started_devices
from utils.exercises import Prediction, Wrong, amount, by_factors, exercise, named_slips, number, spell
from utils.exercises.program import checks_types, is_pmap, mapped, product_flops, traced
from utils.mesh import make_mesh

SHARE = "(n - 1)/n is missing: of eight parts seven are sent, its own a device keeps"
SIZE = "that is the size of the array; an all-reduce sends 2 (n - 1)/n of it"
HALF = "that is half of an all-reduce: adding up. The sums have to be handed out, too"
NUMBERS = "you count numbers; a float32 takes 4 bytes"
ONE_BY_ONE = "so much it is to send all of it to seven devices, one by one"

one_copy = Prediction(
    "values",
    {
        1 / 8: "out_axes=None checks nothing: the array says that it is one, and each device keeps its own",
        0: "nothing is refused, so there is a result, and each device holds one",
    },
)
first_copy = Prediction(
    "bytes",
    {
        0: "a[0] is a program of all eight devices, and its result goes to all eight",
        4 / 7: SIZE,
        8 / 7: SHARE,
        4: f"{ONE_BY_ONE}, or all eight copies around; it goes as one all-reduce of one copy",
        1 / 2: HALF,
        1 / 4: NUMBERS,
        1 / 7: "those are the numbers of one copy; it is sent as an all-reduce, in bytes",
        32 / 7: "that is the size of all eight copies",
    },
)
silent = Prediction(
    "runs",
    {
        0: "eight times a rate of 0.0125 is the right run's rate, and Adam divides by the size of the gradient",
        0.5: "there are two: with an eighth of the rate, and with Adam, which divides by the size of the gradient",
        1.5: "at the rate 0.1 the steps are eight times too long, and this network does not stand that",
    },
)
masks = Prediction(
    "masks",
    {},
    {
        "one key": {
            8: "each device draws for itself, and all from the same key: a key fixes the numbers",
            4: "a band of four rows is one mask; all the devices draw it from the same key",
            32: "each device draws for itself, and all from the same key: a key fixes the numbers",
        },
        "jit": {
            1
            / 8: "under jit there is one program, which draws one mask for all 32 rows; each device has other rows of it",
            4: "a band of four rows is one mask; there are eight bands",
        },
    },
)
_REDUCED = {8 / 7: SHARE, 4 / 7: SIZE, 1 / 4: NUMBERS, 8: "that is what all eight send together", 4: ONE_BY_ONE}
step_bytes = Prediction(
    "bytes",
    {},
    {
        "right": {
            **_REDUCED,
            1 / 2: HALF,
            2: "you took 8 bytes a number, or sent the momenta, too; the gradient alone is averaged, in float32",
            0: "the gradient has to be averaged over the devices",
        },
        "pasted": {
            **_REDUCED,
            1 / 2: "it sums twice: in grad, and in pmean, which averages equal sums",
        },
    },
)
accumulated = Prediction(
    "times",
    {},
    {
        "jit": {
            1
            / 4: "each turn of the loop has a gradient of its own, and this compiler sums each of them over the devices",
            5 / 4: "there are four turns, and after the loop nothing is left to be sent",
        },
        "by hand": {
            4: "nothing is sent in the loop: each device adds up its own four gradients, and their mean comes once",
            5: "nothing is sent in the loop: each device adds up its own four gradients, and their mean comes once",
        },
        "check on": {
            1 / 5: "with the check on a gradient by replicated parameters arrives summed, in each turn of the loop",
            4 / 5: "the four arrive summed, and the pmean after the loop is sent, too",
        },
    },
)
_FASTER = "you compare one rate alone; what counts is FLOP/s over bytes/s, and both are about five times as large"
chips = Prediction(
    "times",
    {
        4.5: _FASTER,
        4: _FASTER,
        0.18: _FASTER,
        2.25: "eight v5e in a ring use two of their four links: 100e9 bytes/s",
        0.56: "an H100's 450e9 is one direction already; do not halve it",
    },
    within=0.1,
)
_PART = "along data a device has only its part of the gradients, about N / m"
_BETWEEN = "what travels along model is missing"
_BACK = "backward something is sent, too: what the second pair passes to the first"
_ALL_ROWS = "a device has B / d of the examples, not all B"
meshes = Prediction(
    "bytes",
    {1 / 4: NUMBERS},
    {  # by hand: along data 409,101, 175,746, 58,860, 0; along model 0, 34,048, 102,144, 238,336
        "8 x 1": {8 / 7: SHARE, 4 / 7: SIZE},
        "4 x 2": {
            (350_659 + 34_048) / 209_794: _PART,
            350_659 / 209_794: f"{_PART}, and {_BETWEEN}",
            175_746 / 209_794: _BETWEEN,
            (175_746 + 136_192) / 209_794: _ALL_ROWS,
            (175_746 + 17_664) / 209_794: _BACK,
        },
        "2 x 4": {
            (233_772 + 102_144) / 161_004: _PART,
            58_860 / 161_004: _BETWEEN,
            (58_860 + 204_288) / 161_004: _ALL_ROWS,
            (58_860 + 52_992) / 161_004: _BACK,
        },
        "1 x 8": {0: _BETWEEN, 123_648 / 238_336: _BACK, 409_101 / 238_336: "here no gradient is shared"},
    },
    within=0.02,
)


def _mesh(n=8):
    return make_mesh((n,), ("data",))


def _put(arrays, mesh, *spec):
    return jax.device_put(arrays, NamedSharding(mesh, P(*spec)))


def _what(value):
    if isinstance(value, (jax.Array, np.ndarray)):
        return f"an array of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}" + ("" if isinstance(value, (list, tuple)) else f", {value!r}"[:80])


def pmap(program, **options):
    """jax.pmap on the course's devices, as the notebook has it."""
    return jax.pmap(program, backend=started_devices()[0].platform, **options)


def old_step(w, mean, x, y):
    """One device's part of the step to port, as the notebook shows it."""
    grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    grad = jax.lax.pmean(grad, "data")
    mean = 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")
    return w - 0.1 * grad, mean


SHAPES = {"w": (4, 3), "mean": (4,)}
SHARED = 2 * 2 * 5 * 4 * 3  # FLOPs of a device that has 5 of the 40 rows: two products of (5, 4) and (4, 3)


def _problem():
    """w, mean, x, y in float32; the rows of x grow, so that every device has another mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4)) + np.arange(40)[:, None] / 16
    y = x @ rng.normal(size=(4, 3)) + rng.normal(size=(40, 3))
    return [np.float32(a) for a in (rng.normal(size=(4, 3)), rng.normal(size=4), x, y)]


def _laid_out(mesh):
    problem = _problem()
    return [*_put(problem[:2], mesh), *_put(problem[2:], mesh, "data")]


def _judge_port_1(answer):
    args = [jnp.asarray(a) for a in _problem()]
    _same_step(_called(answer, args), check=False)
    program = traced(answer, args)
    if program is None:
        return  # it needs real numbers, to print one perhaps: its own business, and the result is right
    found = mapped(program)
    if not any(map(is_pmap, found)):
        raise Wrong("The values are right, but no pmap made them. This step keeps pmap, and drops the copies.")
    for each in found:
        if any(v.aval.shape in [(8, *shape) for shape in SHAPES.values()] for v in (*each.invars, *each.outvars)):
            raise Wrong(
                "The values are right, and w or mean still has eight copies: stacked before, or coming out and thrown "
                "away after. in_axes=None and out_axes=None do without."
            )
        devices = each.params.get("axis_size") or math.prod(each.params["mesh"].shape.values())
        if devices < 8:
            raise Wrong(f"The values are right, and {devices} devices made them; you have 8. Into how many is x split?")
    _shared(sum(map(product_flops, found)))


def _judge_port_2(answer):
    if any(checks_types(each) for each in _judge_shard_map(answer, check=False)):
        raise Wrong("The values are right, under the default check. This step is pmap's own meaning: check_vma=False.")


def _judge_port_3(answer):
    if not all(checks_types(each) for each in _judge_shard_map(answer, check=True)):
        raise Wrong("The values are right, under check_vma=False. This step turns the check on.")


def _judge_shard_map(answer, check):
    """Judge values, layout and work of steps 2 and 3; return the shard_maps of a program that can be traced."""
    mesh = _mesh()

    def run(*args):
        return _pair(answer(*args, mesh))  # before JAX looks at what is none

    args = _laid_out(mesh)
    program, compiled = traced(run, args), run
    if program is not None and not any(map(is_pmap, mapped(program))):  # once, instead of operation by operation
        try:
            compiled = jax.jit(run).lower(*args).compile()
        except Exception:
            compiled = run  # what is wrong shows when it is called
    found = [] if program is None else mapped(program)
    if any(map(is_pmap, found)):
        raise Wrong(
            "You use pmap, or a shard_map of blocks with pmap's axis of eight. This step has neither: x and y stay as they "
            "come, (40, 4) and (40, 3)."
        )
    got = _called(compiled, args)
    try:
        _same_step(got, check)
    except Wrong as wrong:
        other = any(checks_types(each) is not check for each in found)
        raise Wrong(f"{wrong} {OTHER_RULE[check]}" if other else str(wrong)) from wrong
    _everywhere(got)
    if program is None:
        return []
    if not found:
        raise Wrong("The values are right, but no shard_map made them.")
    _shared(sum(map(product_flops, found)))
    return found


OTHER_RULE = {
    False: "And your shard_map has the default check, under which a gradient is another than under check_vma=False.",
    True: "And your shard_map has check_vma=False, under which a gradient is another than under the check.",
}


def _judge_port_4(answer):
    args = _laid_out(_mesh())
    got = _called(answer, args)
    _same_step(got, check=True)
    _everywhere(got)
    program = traced(answer, args)
    if program is None:
        return
    for each in mapped(program):
        name = "pmap" if is_pmap(each) else "shard_map"
        raise Wrong(f"The values are right, and {name} made them. This step leaves the devices to jit.")
    for each in program.eqns:  # the outermost
        if each.primitive.name == "dot_general":
            raise Wrong("The values are right, and nothing was compiled: each operation ran on its own. jax.jit(step).")
        if each.primitive.name == "device_put":
            for out, to in zip(each.outvars, each.params["devices"], strict=True):
                if out.aval.shape[:1] == (40,) and isinstance(to, Sharding) and to.shard_shape(out.aval.shape)[0] == 40:
                    raise Wrong(
                        "The values are right, and x or y was copied whole to every device first: each of them worked on "
                        "all 40 examples. They come laid out; leave them where they are."
                    )
    _shared(cost(answer, *args).flops)


WHY = {  # what a message of JAX means here
    "unbound axis name": "The average runs over an axis called 'data'. What names it? (Under jit nothing does: there are no devices in the program.)",
    "statically infer": "Something that leaves as P() still differs from device to device: what is not averaged yet?",
    "require replication": "Something that leaves as P() still differs from device to device: what is not averaged yet?",
    "evenly divi": "A spec cuts an axis that eight does not divide. Which axis of x counts the examples?",
    "must refer to an axis": "The mesh has one axis, called 'data'.",
    "sub got incompatible shapes": "On a device x and y have another number of examples. Which of the two is not cut?",
    "add got incompatible shapes": "The mean of x has 4 numbers, one for each column.",
    "does not match the sharding on": "x and y come laid out; leave them where they are.",
    "dot_general": "On a device x should have its own 5 examples, each whole: (5, 4). How is it split?",
    "squeeze": "w and mean have no axis for the devices, and x and y have 40 rows: what says so, and what has to be split?",
    "inconsistent sizes": "w and mean have no axis for the devices, and x and y have 40 rows: what says so, and what has to be split?",
    "logical devices": "w and mean have no axis for the devices, and x and y have 40 rows: what says so, and what has to be split?",
}


def _called(answer, args):
    try:
        return answer(*args)
    except Wrong as wrong:
        why = next((f" {words}" for said, words in WHY.items() if said in str(wrong)), "")
        raise Wrong(f"{wrong}{why}") from wrong


def _pair(got):
    """The new w and the new mean; Wrong where it is anything else."""
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Wrong(f"You return {_what(got)}; expected two arrays: the new w and the new mean.")
    if [getattr(value, "shape", None) for value in got] == [(4,), (4, 3)]:
        raise Wrong("You return the two in the other order: first the new w, then the new mean.")
    for (name, shape), value in zip(SHAPES.items(), got, strict=True):
        has = getattr(value, "shape", None)
        if has == (8, *shape):
            raise Wrong(f"Your {name} has shape {has}: still eight copies. Which argument says that one comes out?")
        if has == (8 * shape[0], *shape[1:]):
            raise Wrong(
                f"Your {name} has shape {has}: eight copies, one below the other. What comes out is cut by nothing."
            )
        if has == (1, *shape):
            raise Wrong(
                f"Your {name} has shape {has}: a stacked copy, with the axis of the copies. Here one goes in as it is."
            )
        if name == "mean" and has == (5, 4):
            raise Wrong(
                f"Your mean has shape {has}: it ran over an axis that is not the examples'. x stays as it comes, (40, 4), and "
                "is cut along its rows."
            )
        if not isinstance(value, (jax.Array, np.ndarray)) or has != shape:
            raise Wrong(f"Your {name} is {_what(value)}; expected an array of shape {shape}.")
    return got


def _same_step(got, check):
    """Wrong unless these are the new w and mean, by NumPy; with the slip, where it is a known one."""
    w, mean, x, y = _problem()
    got = _pair(got)
    # By hand: the gradient of the mean of (x w - y)^2 is 2 / (40 * 3) x^T (x w - y), of all 40 rows or of a device's 5.
    parts = np.stack([2 / 15 * a.T @ (a @ w - b) for a, b in zip(np.split(x, 8), np.split(y, 8), strict=True)])
    grad, every, own = parts.mean(axis=0), x.mean(axis=0), x[:5].mean(axis=0)
    dealt = [a.reshape(5, 8, -1).swapaxes(0, 1).reshape(40, -1) for a in (x, y)]  # device i has rows i, i + 8, ...
    strangers = "moved by examples whose x and y do not belong together: you split the two in different ways."
    inside = "" if check else " A mean of the losses inside grad does not do it here, under pmap's rule."
    moved = w - np.asarray(got[0], np.float64)
    times = float((moved * grad).sum() / (0.1 * (grad * grad).sum()))
    if np.allclose(moved, 0.1 * times * grad, rtol=1e-3, atol=1e-4) and not math.isclose(times, 1, rel_tol=1e-3):
        rest = next((words for much, words in MOVED if math.isclose(times, much, rel_tol=1e-2, abs_tol=1e-3)), "")
        raise Wrong(f"Your w moved {rest or f'{times:.4g} times as far as it should.'}")
    _slip("Your w", got[0], w - 0.1 * grad, {
        f"moved by the gradient of device 0's examples alone. Nobody averaged the gradients.{inside}": w - 0.1 * parts[0],
        "moved by 8 times the gradient of device 0's examples alone: a psum inside grad does not average it.": w - 0.8 * parts[0],
        **{strangers + " " * i: w - 0.1 * 2 / 120 * a.T @ (a @ w - b) for i, (a, b) in enumerate([(x, dealt[1]), (dealt[0], y)])},
    })  # fmt: skip
    _slip("Your w is right; your mean", got[1], 0.9 * mean + 0.1 * every, {
        "is that of device 0's examples alone.": 0.9 * mean + 0.1 * own,
        "takes a sum over the devices for a mean: what is new counts 8 times.": 0.9 * mean + 0.8 * every,
        "counts what is new an eighth: somewhere an 8 is divided by that should not be.": 0.9 * mean + every / 80,
        "has 0.9 and 0.1 the other way round.": 0.1 * mean + 0.9 * every,
        "is what came in: nothing was added.": mean,
        "has a mean of all the numbers of x in it; each of its four columns has a mean of its own.": 0.9 * mean + 0.1 * x.mean(),
        "is that of this batch; 0.9 of the old one stays.": every,
        "has all of the old one; 0.9 of it stays.": mean + 0.1 * every,
    })  # fmt: skip


MOVED = [  # how many times as far as it should, and what a reader is told
    (8, "8 times as far as it should: the gradient is a sum over the devices, taken for a mean."),
    (64, "64 times as far as it should: an already summed gradient was summed again."),
    (1 / 8, "an eighth as far as it should: somewhere an 8 is divided by that should not be."),
    (-1, "uphill: the gradient has to be taken away, not added."),
    (10, "by the whole gradient: the rate, 0.1, is missing."),
    (0, "nowhere: it is what came in."),
    (3, "3 times as far as it should: the mean is that of all the numbers, 3 in each row of y."),
    (120, "120 times as far as it should: a sum over all 40 x 3 numbers is taken for their mean."),
    (15, "15 times as far as it should: a sum over a device's 5 x 3 numbers is taken for their mean."),
]


def _slip(name, got, want, slips):
    """Wrong unless the arrays agree: with the words whose value the reader's is, else with both."""
    got = np.asarray(got, np.float64)
    for value, words in [(want, ""), *((value, words) for words, value in slips.items())]:
        if np.allclose(got, value, rtol=1e-3, atol=1e-4):
            if words:
                raise Wrong(f"{name} {words.rstrip()}")
            return
    said, expected = (", ".join(f"{v:.4f}" for v in values.ravel()[:4]) for values in (got, np.asarray(want)))
    raise Wrong(f"{name} begins with {said}; expected {expected}.")


def _everywhere(got):
    for name, value in zip(SHAPES, got, strict=True):
        if not isinstance(value, jax.Array):
            raise Wrong(f"Your {name} is right, and {_what(value)} of NumPy; expected a jax.Array, on every device.")
        if len(value.devices()) < 8 or not value.is_fully_replicated:
            raise Wrong(f"Your {name} is right, and lies on {spell(value.sharding)}; expected a copy on every device.")


def _shared(flops):
    if flops > 4 * SHARED:  # twice would be a program that computes something twice; eight times is no sharing
        raise Wrong(
            f"The values are right, and every device worked on all 40 examples: {flops:,} FLOPs on each, where its own 5 take "
            f"{SHARED}. Who cuts x and y, and do they stay cut?"
        )


@exercise(
    _judge_port_1,
    "pmap takes in_axes, None for what every device gets whole, and out_axes, None for what comes out once. x and y still need the axis of eight.",
)
def port_1(w, mean, x, y):
    """Return the new w and mean by pmap: one copy of each goes in, one comes out."""
    step = pmap(old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
    return step(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))


@exercise(
    _judge_port_2,
    "The function stays as it is. in_specs: P() twice, P('data') twice; out_specs: P(); and pmap's meaning of a gradient, check_vma=False.",
)
def port_2(w, mean, x, y, mesh):
    """Return the new w and mean by shard_map with check_vma=False."""
    specs = (P(), P(), P("data"), P("data"))
    step = jax.shard_map(old_step, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    return jax.jit(step)(w, mean, x, y)


@exercise(
    _judge_port_3,
    "Under the check the gradient of a replicated w arrives summed. Average the loss inside grad, and nothing after it. What is no gradient "
    "does not arrive summed.",
)
def port_3(w, mean, x, y, mesh):
    """Return the new w and mean by shard_map under its default check."""

    def step(w, mean, x, y):
        grad = jax.grad(lambda w: jax.lax.pmean(((x @ w - y) ** 2).mean(), "data"))(w)
        mean = 0.9 * mean + 0.1 * jax.lax.pmean(x.mean(axis=0), "data")
        return w - 0.1 * grad, mean

    specs = (P(), P(), P("data"), P("data"))
    return jax.jit(jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P()))(w, mean, x, y)


@exercise(
    _judge_port_4,
    "Write the step of one device that has all 40 examples. The layout of x and y does the rest.",
)
def port_4(w, mean, x, y):
    """Return the new w and mean by jit; x and y come laid out over the devices."""

    def step(w, mean, x, y):
        grad = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.1 * grad, 0.9 * mean + 0.1 * x.mean(axis=0)

    return jax.jit(step)(w, mean, x, y)


def _judge_drop_units(answer):
    whole = 1 + np.arange(32 * 64, dtype=np.float32).reshape(32, 64) / 1024

    def on(n):
        """The program on n devices, compiled once: the number of a key -> (32, 64)."""

        def check(key, units):
            value = answer(key, units)
            if not isinstance(value, jax.Array) or value.shape != (32 // n, 64):
                raise Wrong(
                    f"You return {_what(value)}; expected the units of one device, {(32 // n, 64)}, some of them 0."
                )
            return value

        mesh, specs = _mesh(n), {"in_specs": (P(), P("data")), "out_specs": P("data")}
        program = jax.jit(jax.shard_map(check, mesh=mesh, check_vma=False, **specs))
        units = _put(whole, mesh, "data")
        return lambda seed: np.asarray(program(jax.random.key(seed), units), np.float64)

    on_eight = on(8)
    got, other = on_eight(0), on_eight(1)
    kept = (got != 0).mean()
    if 0.1 < kept < 0.9 and all(row.all() or not row.any() for row in got != 0):
        raise Wrong("You drop whole examples, all 64 units or none. Each unit is kept or dropped on its own.")
    if not 0.4 < kept < 0.6:
        raise Wrong(f"You keep {kept:.2f} of the units; expected about half.")
    masks = (got != 0).reshape(8, 4, 64)
    bands, rows = len({band.tobytes() for band in masks}), [row.tobytes() for row in masks.reshape(32, 64)]
    if np.array_equal(got != 0, other != 0):
        raise Wrong(
            "Two keys drop the same units: every step would. A number has to go into the key, not replace it."
            if bands == 8
            else "Two keys drop the same units: nothing comes from the key. (NumPy draws once, while JAX traces the program.)"
        )
    if all(len({row.tobytes() for row in band}) == 1 for band in masks):
        raise Wrong(
            "Examples of one device drop the same units. The mask has the shape of the units, a row for each example."
        )
    if bands < 8:
        raise Wrong(
            "Several devices drop the same units: they draw from the same key. What differs from device to device?"
        )
    twin = next(((rows.index(row), i) for i, row in enumerate(rows) if rows.index(row) < i), None)
    if twin:
        raise Wrong(
            f"Examples {twin[0]} and {twin[1]} of the batch, on devices {twin[0] // 4} and {twin[1] // 4}, drop the same units. From which "
            "numbers are the two drawn? Each example has one of its own in the whole batch."
        )
    factor = got[got != 0] / whole[got != 0]
    if not np.allclose(factor, 2):
        times = " to ".join(dict.fromkeys(f"{value:.3g}" for value in (factor.min(), factor.max())))
        raise Wrong(
            f"What you keep is {times} times what it was; expected 2 times, so that the sum stays what it was on average."
        )
    moved = np.flatnonzero(((on(4)(0) != 0) != (got != 0)).any(axis=1))
    if moved.size:
        raise Wrong(
            f"On 4 devices, example {moved[0]} of the batch loses other units than on 8: your mask depends on which device has the "
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


def _examples(size, padding, seed):
    """right, labels, weights: each digit occurs among the real ones; what is filled in, anywhere, is partly called right."""
    rng = np.random.default_rng(seed)
    weights, labels = np.ones(size, np.float32), np.zeros(size, np.int32)  # filled in with zeros, and 0 is a digit, too
    weights[rng.permutation(size)[:padding]] = 0
    real = np.flatnonzero(weights)
    labels[real] = np.concatenate([np.arange(10), rng.integers(0, 10, len(real) - 10)])
    right = (rng.random(size) < 0.6).astype(np.float32)
    right[weights == 0] = np.arange(padding) % 3 == 0
    return right, labels, weights


def _judge_digit_accuracy(answer):
    def check(*parts):
        value = answer(*parts)
        if not isinstance(value, (jax.Array, np.ndarray)) or value.shape != (10,):
            raise Wrong(f"You return {_what(value)}; expected an array of shape (10,), one share for each digit.")
        return value[None]

    for n, size, padding, seed in ((8, 24, 7, 0), (4, 24, 5, 1)):
        batch, mesh = _examples(size, padding, seed), _mesh(n)
        specs = {"in_specs": (P("data"),) * 3, "out_specs": P("data"), "check_vma": False}
        program = jax.jit(jax.shard_map(check, mesh=mesh, **specs))
        got = np.asarray(program(*_put(batch, mesh, "data")), np.float64)  # a row for each device
        apart = np.ptp(np.nan_to_num(got, nan=-1), axis=0)
        if apart.max() > 1e-4:
            says = got[:, apart.argmax()]
            last = next(i for i, v in enumerate(says) if not np.isclose(v, says[0], equal_nan=True))
            nan = " (One that has none of a digit divides 0 by 0.)" if np.isnan(got).any() else ""
            raise Wrong(
                f"For digit {apart.argmax()} device 0 says {says[0]:.3f}, device {last} {says[last]:.3f}: each counted its own "
                f"examples. All of them need the same numbers.{nan}"
            )
        _name_share(got[0], batch, n)


def _name_share(got, batch, n):
    """Wrong unless these are the shares over all real examples, by NumPy."""
    right, labels, weights = batch

    def shares(hits, of, labels=labels):
        with np.errstate(all="ignore"):
            return np.bincount(labels, hits, 10) / np.bincount(labels, of, 10)

    want, hits, ones = shares(right * weights, weights), np.bincount(labels, right * weights, 10), np.ones_like(weights)
    own = np.stack([shares(r * w, w, y) for r, y, w in zip(*(np.split(a, n) for a in batch), strict=True)])
    real = np.bincount(labels, weights, 10)
    every = np.maximum([np.bincount(y, w, 10) for y, w in zip(*(np.split(a, n) for a in batch[1:]), strict=True)], 1)
    ahead = np.concatenate([np.arange(len(w)) < w.sum() for w in np.split(weights, n)])
    no_zero = (
        "Digit 0 loses its real examples: their label is the padding's, too, and only the weights tell the two apart."
    )
    means = "A mean of the devices' shares gives a device with one example of a digit the weight of one with three."
    slips = [
        (want, ""),
        (shares(right, ones), "The padding is counted, as examples and as right ones; its label is 0."),
        (shares(right, weights), "The padding's right answers are counted, too. Multiply by the weights first."),
        (shares(right * weights, ones), "The padding is counted as wrong answers. Divide by the number of real ones."),
        (shares(right - (1 - weights), weights), "You take the padding for right answers; some of it is called wrong."),
        (hits, "That is how many are right. Divide by how many there are of each digit."),
        (want * real / (real + 1), "You divide by one more than there are."),
        (real, "That is how many real examples there are of each digit. Of how many is the answer right?"),
        (1 - want, "That is the share of wrong answers."),
        (100 * want, "That is a percentage. A share lies between 0 and 1."),
        (np.floor(want), "The shares are rounded down to whole numbers."),
        (
            shares(right * ahead, ahead),
            "You take the padding to stand at the end. It may stand anywhere; the weights say where.",
        ),
        *((np.append(value, want[1:]), no_zero) for value in (0, np.nan)),
        (hits / hits.sum(), "You divide by all the right answers. Divide by the real examples of each digit."),
        (hits / every.sum(axis=0), "A device that has none of a digit counts one. Add up first."),
        (hits / weights.sum(), "You divide by all the real examples. Divide by those of each digit."),
        (np.full(10, hits.sum() / weights.sum()), "That is the share over all digits, ten times."),
        (np.nan_to_num(own).sum(axis=0), "The devices' shares are added up. Add up the counts, then divide."),
        (want * n, "One of the two counts runs over the devices; the other does not, or is a mean."),
        (want / n, "One of the two counts runs over the devices; the other does not, or is a mean."),
        (np.nanmean(own, axis=0), means),
        (np.nan_to_num(own).mean(axis=0), means),
        (own.mean(axis=0), f"{means} And one that has none divides 0 by 0."),
    ]
    unknown = "Which examples did you count, and what did you divide by?"
    words = next((words for value, words in slips if np.allclose(got, value, atol=1e-4, equal_nan=True)), unknown)
    if words:
        digit = int(np.flatnonzero(~np.isclose(got, want, atol=1e-4))[0])
        counts = f"{hits[digit]:.0f} of {real[digit]:.0f}"
        raise Wrong(f"For digit {digit} you say {got[digit]:.4f}; expected {counts}, {want[digit]:.4f}. {words}")


@exercise(
    _judge_digit_accuracy,
    "Two arrays of ten for each device: how many of its real examples of each digit are right, and how many it has. psum both, then divide. "
    "jnp.zeros(10).at[labels].add(values) adds up values by label.",
)
def digit_accuracy(right, labels, weights):
    """In shard_map: the share of right answers for each digit, (10,), everywhere."""
    hits = jnp.zeros(10).at[labels].add(weights * right)
    real = jnp.zeros(10).at[labels].add(weights)
    return jax.lax.psum(hits, "data") / jax.lax.psum(real, "data")


def _of_each(answer, cases, expected):
    """What a formula says of each case; a constant is no formula."""
    said = [number(answer(*case), expected) for case in cases]
    if len(set(said)) == 1:
        raise Wrong(f"You return {amount(said[0])} whatever is handed in; return a formula of the arguments.")
    return said


def _judge_bytes_per_step(answer):
    cases = ([48, 20, 36, 7, 12], 6, 2), ([64, 256, 128, 64, 10], 8, 1), ([30, 50, 11], 4, 0)
    for (sizes, n, frozen), said in zip(cases, _of_each(answer, cases, "one number, of bytes"), strict=True):
        layers = list(pairwise(sizes))
        each = [a * b + b for a, b in layers]
        if abs(said - 2 * (n - 1) / n * 4 * sum(each[frozen:])) <= 16:
            continue  # with the loss, one number or two, or without
        counts = {
            "frozen layers have no gradient to send": sum(each),
            "those are the frozen layers; the others are trained": sum(each[:frozen]),
            "you count as many layers as are frozen, from the end": sum(each[-frozen:]),
            "the biases of the frozen layers rest, too": sum(a * b for a, b in layers[frozen:]) + sum(sizes[1:]),
            "a layer has a bias for each output; what goes in first has none": sum(a * b for a, b in layers[frozen:])
            + sum(sizes[frozen:]),
            "the first layers are frozen, not the last": sum(each[: len(each) - frozen]),
            "one frozen layer is counted, too": sum(each[max(frozen - 1, 0) :]),
            "one layer too many is left out: sizes has one entry more than there are layers": sum(each[frozen + 1 :]),
            "the biases are missing: a layer of a inputs and b outputs has b more": sum(
                a * b for a, b in layers[frozen:]
            ),
            "a layer has a bias for each output, not for each input": sum(a * b + a for a, b in layers[frozen:]),
            "a layer has a bias for each output, and none for an input": sum(a * b + a + b for a, b in layers[frozen:]),
            "a layer has a bias for each output, not one": sum(a * b + 1 for a, b in layers[frozen:]),
            "the layers' numbers are added up, not multiplied": math.prod(sizes),
            "a layer has a weight for each pair of an input and an output": sum(sizes[frozen:]),
        }
        layer = f"{frozen} frozen layer{'s' * (frozen != 1)}"
        number(said, "one number, of bytes", positive=True)
        by_factors(
            said,
            f"For sizes {sizes} on {n} devices with {layer} ",
            "bytes",
            lambda passes, share, count, width, together: passes * share * count * width * together,
            {"passes": 2, "share": (n - 1) / n, "count": sum(each[frozen:]), "width": 4, "together": 1},
            {
                "passes": [(1, HALF)],
                "share": [
                    (1, "(n - 1)/n is missing: no device sends to itself"),
                    (1 / 2, "that is the size of the gradient; an all-reduce sends 2 (n - 1)/n of it"),
                    (
                        (n - 1) / 2,
                        "every device gets the whole gradient of every other; a ring sends sums, an n-th a step",
                    ),
                    (n - 1, "you send the whole gradient in each step; a step sends an n-th"),
                    (n / (n - 1), "(n - 1)/n is upside down"),
                    (1 / n, "you count one step of n - 1"),
                    *([(7 / 8, "7/8 is the (n - 1)/n of eight devices")] if n != 8 else []),
                    ((n - 1) / n**2, "you divide by n twice: 2 (n - 1) steps, an n-th of the gradient in each"),
                ],
                "count": [(value, words) for words, value in counts.items()],
                "width": [
                    (1, NUMBERS),
                    (32, "you count bits"),
                    (8, "the gradient alone is sent, not the momenta; and a float32 takes 4 bytes"),
                ],
                "together": [(n, "that is what all the devices send together")],
            },
            "look at what each device puts in, and at how much of it an all-reduce sends",
        )


@exercise(
    _judge_bytes_per_step,
    "Of each trained layer: a times b weights, and b biases. The gradient has one float32 for each. Then the all-reduce of lesson 03.",
)
def bytes_per_step(sizes, n, frozen):
    """Return the bytes that each of n devices sends; the first `frozen` layers rest."""
    layers = [a * b + b for a, b in pairwise(sizes)]
    return 2 * (n - 1) / n * 4 * sum(layers[frozen:])


def _judge_most_devices(answer):
    cases = (1_000_000, 2e14, 1e11), (65_536, 1e15, 9e11), (3_000_000, 4e14, 2e11)
    for (batch, flops, wire), said in zip(cases, _of_each(answer, cases, "one number, of devices"), strict=True):
        ratio = 6 * batch * wire / (8 * flops)
        if said in (math.floor(1 + ratio), math.ceil(1 + ratio)):
            continue  # whole devices
        if math.isclose(said, 1 / (1 - ratio), rel_tol=1e-3):
            raise Wrong(f"You say {amount(said)}; a device does not compute the whole batch, but batch / n of it.")
        number(said, "one number, of devices", positive=True)
        if math.isclose(said, ratio * 8 / 7, rel_tol=1e-4):
            raise Wrong(f"You say {amount(said)}; 7/8 is the (n - 1)/n of eight devices, and n is what you look for.")
        if math.isclose(said, 1 + 0.75 * batch * 100e9 / 197e12, rel_tol=1e-4):
            raise Wrong(f"You say {amount(said)}: by the rates of a TPU v5e. Take those that are handed in.")
        by_factors(
            said,
            f"For {batch:,} examples at {flops:.0e} FLOP/s and {wire:.0e} bytes/s ",
            "devices",
            lambda one, batch, work, passes, width, rates, turned: (
                (one + batch * work / (passes * width) * rates) ** turned
            ),
            {"one": 1, "batch": batch, "work": 6, "passes": 2, "width": 4, "rates": wire / flops, "turned": 1},
            {
                "one": [
                    (0, "the (n - 1)/n of the all-reduce is taken for 1"),
                    (-1, "of 8 (n - 1) = ..., the 1 comes to the other side with a plus"),
                ],
                "work": [
                    (
                        2,
                        "2 FLOPs for each parameter and example are the forward pass; the backward pass takes two more products",
                    ),
                    (4, "4 FLOPs for each parameter and example are the backward pass alone"),
                    (3, "3 products for each parameter and example are 6 FLOPs: a multiplication and an addition each"),
                    (5.4, "5.4 FLOPs are those of the small network above; take 6"),
                    (1, "the 6 FLOPs for each parameter and example are missing"),
                ],
                "passes": [(1, HALF), (2 * 7 / 8, "7/8 is the (n - 1)/n of eight devices, and n is what you look for")],
                "width": [
                    (1, NUMBERS),
                    (2, "the gradients are float32, 4 bytes"),
                    (32, "you count bits; the wire's rate is in bytes"),
                    (1 / 2, "nothing is left of the all-reduce: 2 (n - 1)/n, and 4 bytes"),
                ],
                "rates": [(flops / wire, "FLOP/s and bytes/s are in each other's place")],
                "turned": [(-1, "that is upside down")],
            },
            "set 2 (n - 1)/n x 4 / W equal to 6 (batch / n) / F, and solve for n",
        )


@exercise(
    _judge_most_devices,
    "For each parameter: 2 (n - 1) / n · 4 / W seconds to send, 6 · (batch / n) / F to compute. Set them equal, multiply by n, solve for n.",
)
def most_devices(batch, flops_per_second, bytes_per_second):
    """Return the n at which n devices compute as long as they send, for one batch."""
    # 8 (n - 1) / n / W = 6 (batch / n) / F, so 8 (n - 1) / W = 6 batch / F.
    return 1 + 6 * batch * bytes_per_second / (8 * flops_per_second)


def _judge_clip(answer):
    rng = np.random.default_rng(0)
    gw, gb = np.float32(rng.normal(size=(6, 20))), np.float32(rng.normal(size=7))
    for d, m, limit in ((2, 4, 2.0), (2, 4, 50.0), (4, 2, 5.0)):
        mesh, cut, each = make_mesh((d, m), ("data", "model")), P(None, "model"), P("data", "model")

        def check(gw, gb, limit=limit):
            got = answer(gw, gb, limit)
            if not isinstance(got, (tuple, list)) or len(got) != 2:
                of = f" of {len(got)}" if isinstance(got, (tuple, list)) else ""
                raise Wrong(f"You return {_what(got)}{of}; expected two arrays: both gradients, clipped.")
            for name, value, given in zip(("gw", "gb"), got, (gw, gb), strict=True):
                if not isinstance(value, jax.Array) or value.shape != given.shape:
                    raise Wrong(f"Your {name} is {_what(value)}; expected an array of shape {given.shape}, as it came.")
            return got[0][None, None], got[1][None, None]  # what each device says, as an entry of its own

        specs = {"in_specs": (cut, P()), "out_specs": (each, each), "check_vma": False}
        try:
            new = jax.jit(jax.shard_map(check, mesh=mesh, **specs))(_put(gw, mesh, *cut), _put(gb, mesh))
        except Wrong as wrong:
            why = {
                "unbound axis name": " The mesh has the axes 'data' and 'model'.",
                "racer": " Inside the program a norm has no value yet: jnp.minimum or jnp.where can compare it, Python cannot.",
            }
            raise Wrong(f"{wrong}{next((words for said, words in why.items() if said in str(wrong)), '')}") from wrong
        given = np.stack(np.split(gw, m, axis=1)), np.broadcast_to(gb, (m, 7))
        # By what each device multiplies: (d, m, entries of its part).
        scales = [(np.asarray(a, np.float64) / b).reshape(d, m, -1) for a, b in zip(new, given, strict=True)]
        _name_scale(scales, given[0], gb, limit)


def _name_scale(scales, parts, gb, limit):
    """Wrong unless both gradients are multiplied by min(1, limit / norm), the same on every device."""
    (d, m), squares, bias = scales[0].shape[:2], (parts**2).sum(axis=(1, 2)), float((gb**2).sum())
    norm = math.sqrt(squares.sum() + bias)
    want = min(1.0, limit / norm)
    if all(np.allclose(scale, want, rtol=1e-3) for scale in scales):
        return
    of_w, of_b = (float(scale[0, 0, 0]) for scale in scales)
    begins = f"On {d} x {m} devices, with a norm of {norm:.2f} and a limit of {limit:g}, device 0 multiplies gw by {of_w:.4g}"
    begins += f" and gb by {of_b:.4g}; expected {want:.4g} for both"
    mine, mean = scales[0][0, 0] * parts[0].ravel(), parts.mean(axis=0).ravel()
    if np.allclose(mine, mine @ mean / (mean @ mean) * mean, rtol=1e-3, atol=1e-5):
        raise Wrong(f"{begins}: gw is averaged over 'model', where each device has another part of it.")
    if any(np.ptp(scale, axis=2).max() > 1e-3 * want for scale in scales):
        raise Wrong(
            f"{begins}. Entries of one array are scaled differently, so the direction changes. One factor for all."
        )
    if not math.isclose(of_w, of_b, rel_tol=1e-3):
        raise Wrong(f"{begins}. The global norm is one, of all the gradients together: one factor for both.")
    for value, words in (
        (1, "that leaves a gradient longer than the limit as it is"),
        (limit / norm, "that makes a gradient longer which is below the limit; it should stay"),
        (min(1, norm / limit), "that is norm / limit"),
        (norm / limit, "that is norm / limit"),
        (min(1, limit / norm**2), "that is by the square of the norm; the root is missing"),
        (limit / norm**2, "that is by the square of the norm; the root is missing"),
        (1 / norm, "the limit is missing"),
        (limit, "the norm is missing"),
    ):
        if math.isclose(of_w, value, rel_tol=1e-3):
            raise Wrong(f"{begins}: {words}.")
    every, own = np.append(parts, gb), np.sqrt(squares)
    for value, words in (
        (math.sqrt(squares.sum()) + math.sqrt(bias), "the norms of gw and gb are added up"),
        (own.sum() + math.sqrt(bias), "the norms of the parts and of gb are added up"),
        (np.sqrt(squares + bias).sum(), "the norms that the devices of 'model' have are added up"),
    ):
        if math.isclose(limit / of_w, value, rel_tol=1e-3):
            raise Wrong(f"{begins}: {words}; it is their squares that add up.")
    for value, words in (
        (
            np.abs(every).sum(),
            "you add up the sizes of the numbers, and the norm is the root of the sum of their squares",
        ),
        (np.abs(every).max(), "you take the largest number; the norm is the root of the sum of all the squares"),
        (math.sqrt(squares.max() + bias), "you take the largest part of gw; the squares of all its parts add up"),
    ):
        if math.isclose(limit / of_w, value, rel_tol=1e-3):
            raise Wrong(f"{begins}: {words}.")
    held = "and the devices of 'data' hold copies"
    words = named_slips(
        (limit / of_w) ** 2,  # the squares that the reader's norm has
        lambda gw, gb, all: (gw + gb) * all,
        {"gw": float(squares.sum()), "gb": bias, "all": 1},
        {
            "gw": [
                (float(squares[0]), "the norm is that of the device's own part; the other parts lie along 'model'"),
                (d * float(squares.sum()), f"gw is added up over 'data', {held}"),
                (float(squares.mean()), "the squares of gw are averaged over 'model', not added up"),
                (
                    float(np.sqrt(squares).sum() ** 2),
                    "the norms of the parts are added up; it is their squares that add up",
                ),
                (d * float(squares[0]), f"gw is added up over 'data', {held}; its parts lie along 'model'"),
                (0, "gw is not in your norm"),
            ],
            "gb": [
                (m * bias, "gb is added up over 'model', and each device there has the same"),
                (bias / m, "gb is divided among 'model', and each device has the whole"),
                (d * bias, f"gb is added up over 'data', {held}"),
                (d * m * bias, "gb is added up over all devices, and each of them has the same"),
                (0, "gb is not in your norm"),
            ],
            "all": [
                (d, f"the squares are added up over 'data', {held}"),
                (1 / m, "the squares are averaged over 'model', not added up"),
            ],
        },
    )
    raise Wrong(f"{begins}{words and ': '}{words}.")


@exercise(
    _judge_clip,
    "Squares add up: those of gw over 'model', where its parts are; those of gb are whole on each device already. Then the root, then "
    "jnp.minimum(1, limit / norm).",
)
def clip(gw, gb, limit):
    """In shard_map over 'data' and 'model': both, clipped by their global norm."""
    squares = jax.lax.psum((gw**2).sum(), "model") + (gb**2).sum()
    scale = jnp.minimum(1, limit / jnp.sqrt(squares))
    return scale * gw, scale * gb
