"""Exercises of notebook 04, Steering the compiler with constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from utils.count.cost import Cost, cost
from utils.exercises import Choice, Prediction, Wrong, exercise, same, spell
from utils.exercises.probes import primitives, watch
from utils.mesh import make_mesh

YES_NO = {"yes": "", "no": ""}

spread_orders = Prediction(
    "bytes",
    {},
    own={
        "('x', 'y')": {
            8 / 12: "device 4 holds sums 0 and 1, and in this order it is to have sum 4: it has to come",
            4 / 12: "that is what has to come; the sum along x sends 8 before",
            16 / 12: "one sum has to come, a float32 of 4 bytes",
            24 / 12: "each device changes places with at most one other, and with one sum",
        },
        "('y', 'x')": {
            12 / 8: "each device keeps one of the two sums that it has after the addition",
            4 / 8: "a sum is dropped, and nothing is saved by that",
            16 / 8: "each device keeps one of the two sums that it has after the addition",
        },
    },
)
sends_more = Choice(
    {
        "rows, columns": "that is what the compiler gathers anyway",
        "contraction": "",
        "both": "rows by columns is what the compiler gathers anyway",
        "neither": "the partial products have the size of the result's rows, and an all-reduce sends them twice",
    }
)
same_bits = Choice(
    YES_NO,
    own={
        "rows, columns": {"no": "it is the compiler's own choice, so the additions are the same"},
        "contraction": {"yes": "each device adds up a quarter of the terms, then the four are added"},
    },
)
at_the_door = Choice(
    {"moves it": "", "refuses it": "", "ignores it": "nothing is ignored; a layout that differs is an error or a move"},
    own={
        "a": {"moves it": "you have placed it, and a door does not overrule you"},
        "NumPy's": {"refuses it": "it has no place yet, so nobody is overruled"},
    },
)
cheapest_cut = Choice(
    {
        "columns, columns": "the hidden layer is gathered whole for the second product",
        "columns, rows": "",
        "rows, columns": "relu needs the whole sum, over the four times larger hidden layer",
        "rows, rows": "both products have cut contractions",
    }
)
missing_halves = Prediction(
    "bytes",
    {
        2: "that is both weights; half of each is there already",
        0.5: "that is the half of one weight; there are two",
        0.25: "you count numbers, and of one weight",
        4: "that is both weights, twice",
        6: "only the two devices along x share a weight",
    },
)
pays_at_16 = Choice(
    {
        "yes": "with few examples it is cheaper to add up their partial sums than to move the rest of the weights",
        "no": "",
    }
)
gradient_bytes = Prediction(
    "bytes",
    {
        2 / 3: "the all-reduce alone; the weights have to be made whole, too",
        1 / 3: "the weights alone; the gradients have to be added up, too",
        4 / 3: "in a group of two an all-reduce sends 2 x 1/2 of its operand",
        5 / 3: "2 x 1/2 of the gradients, and the missing halves once",
        1 / 2: "the sum of one of the two gradients",
    },
)
who_sends = Choice(
    YES_NO,
    own={
        "index": {"no": "the compiler does not notice that row i asks for group i"},
        "vmap": {"yes": "it says that each group stays on its own"},
        "take_along_axis": {"yes": "it says that each group stays on its own"},
        "constrained index": {"no": "the result is where it should be, and the groups were gathered before"},
    },
)
top_under_vmap = Choice({"yes": "", "no": "the rows are independent, and this compiler gathers them all the same"})
types = Choice(
    {
        "float32[8]": "the 8 is still cut by y",
        "float32[8@x]": "the axis that x cut is added up; the 8 is cut by y",
        "float32[64,64]": "nothing gathers: the rows stay cut by x, the columns by y",
        "float32[64@x,64]": "the columns of right stay cut by y",
    },
    free=True,
)
cheapest_mend = Choice(
    {
        "P()": "the axis y is idle: its four devices compute the same",
        "P('x')": "the rows have to change places, since x cuts the contraction",
        "P('y')": "",
    }
)
sum_has_a_type = Choice(
    YES_NO,
    own={
        "rows by x": {"no": "what is cut less is cut further, and nothing has to be sent"},
        "rows by y": {"yes": "one of the two would have to move, and JAX does not choose which"},
    },
)
told_of_psum = Choice(
    YES_NO,
    own={
        "P('y')": {"no": "copies along x are promised, and JAX cannot prove them"},
        "P(('x', 'y'))": {"yes": "nothing is promised: each device's sums are pieces of the result"},
    },
)
manual_bytes = Prediction(
    "bytes",
    {
        3 / 2: "that is with an all-reduce; the gradients come back in slices",
        1 / 2: "that is one way; the way back has a collective, too",
        2: "a group of two sends half of what it gathers, and half of what it adds up",
    },
)


def _array(value: Any) -> jax.Array:
    """What a compiled function returns must be an array; say so before JAX says it in its own way."""
    if not isinstance(value, jax.Array):
        end = " Does the function end with `return`?" if value is None else ""
        raise Wrong(f"You return a {type(value).__name__}, {value!r}; expected an array.{end}")
    return value


def _run(program: Callable, *args: jax.Array) -> tuple[jax.Array, Cost]:
    """Compile a program once; what it returns, and what it costs."""
    compiled = jax.jit(lambda *args: _array(program(*args))).lower(*args).compile()
    return compiled(*args), cost(compiled)


def _sent(found: Cost) -> str:
    parts = (f"{kind} of {operand}, {sent:,} bytes" for kind, _, operand, _, _, sent in found.rows())
    return f"Each device sends {found.bytes_sent:,} bytes ({'; '.join(parts) or 'nothing'})"


def _place(mesh, array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def _judge_spread_row_sums(answer):
    mesh = make_mesh((2, 2, 2), ("x", "y", "z"))
    t = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    placed = _place(mesh, t, "z", ("x", "y"))
    got, found = _run(lambda t: answer(t, mesh), placed)
    if got.shape == (16,) and np.allclose(got, t.sum(axis=0), atol=1e-4):
        raise Wrong("You return the 16 column sums, a sum over axis 0; the row sums are asked, 8 of them.")
    same(got, t.sum(axis=1), "Your result")
    if len({str(shard.index) for shard in got.addressable_shards}) < 8:
        unused = primitives(lambda t: answer(t, mesh), placed)["sharding_constraint"]
        why = " A constraint returns the array that it lays out: is that the one you return?" if unused else ""
        raise Wrong(
            f"Your sums are laid out as {spell(got.sharding)}: several devices hold the same. One sum on each device "
            f"is asked.{why}"
        )
    kinds = sorted(c.kind for c in found)
    if found.bytes_sent <= 24:
        return
    if kinds == ["all-reduce", "collective-permute"]:
        raise Wrong(
            f"{_sent(found)}. After the addition the sums change places: {spell(got.sharding)} gives some device a sum "
            "that it never had. Which four sums does a device have then, and which order of the names leaves it one of them?"
        )
    raise Wrong(
        f"{_sent(found)}; the addition alone sends 24. Some value is laid out anew on the way: look at the shape that "
        "each collective carries. The table may stay as it is."
    )


@exercise(
    _judge_spread_row_sums,
    "The rows are cut by 'z' already. One entry with three names, the one that cuts already first: it changes slowest.",
)
def spread_row_sums(t, mesh):
    """Return the row sums of t, one on each device, without another collective."""
    return jax.lax.with_sharding_constraint(t.sum(axis=1), NamedSharding(mesh, P(("z", "x", "y"))))


GATED = {  # other programs that people write in its place
    "`relu` is missing": lambda x, w, v, u: ((x @ w) * (x @ v)) @ u,
    "`relu` is applied to both factors": lambda x, w, v, u: (np.maximum(x @ w, 0) * np.maximum(x @ v, 0)) @ u,
    "`relu` is applied to x @ v in place of x @ w": lambda x, w, v, u: ((x @ w) * np.maximum(x @ v, 0)) @ u,
    "`relu` is applied to the product of the two": lambda x, w, v, u: np.maximum((x @ w) * (x @ v), 0) @ u,
    "the factor x @ v is missing": lambda x, w, v, u: np.maximum(x @ w, 0) @ u,
    "the two factors are added, not multiplied": lambda x, w, v, u: (np.maximum(x @ w, 0) + x @ v) @ u,
}


def _near(got, want):
    """The same but for float32's rounding; a half-precision number on the way is more."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return np.sqrt(np.mean((got - want) ** 2)) <= 2e-5 * np.sqrt(np.mean(want**2))


def _judge_lean_gated(answer):
    rng = np.random.default_rng(0)
    for sizes, batch in (((2, 4), 1024), ((4, 2), 2048)):
        mesh = make_mesh(sizes, ("data", "model"))
        shapes = ((batch, 128), (128, 256), (128, 256), (256, 128))
        host = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        got, found = _run(lambda *args, on=mesh: answer(*args, on), *(_place(mesh, array, "data") for array in host))
        x, w, v, u = host
        want = (np.maximum(x @ w, 0) * (x @ v)) @ u
        if got.shape != want.shape:
            raise Wrong(f"Your result has shape {got.shape}; expected {want.shape}, as x has.")
        if not _near(got, want):
            why = [slip for slip, other in GATED.items() if _near(got, other(x, w, v, u))]
            off = float(np.abs(np.asarray(got, np.float64) - want).max())
            raise Wrong(
                f"The result is not (relu(x @ w) * (x @ v)) @ u: {why[0]}."
                if why
                else f"The result is not (relu(x @ w) * (x @ v)) @ u: it is off by up to {off:.3g}, where float32's "
                "rounding would be off by about 0.01. Look at the formula, and at any change of dtype."
            )
        on = f"On the {sizes[0]} by {sizes[1]} mesh:"
        work, missing = 6 * batch * 128 * 256 // 8, 3 * 128 * 256 * 4 * (sizes[0] - 1) // sizes[0]
        if found.flops > work:
            raise Wrong(
                f"{on} each device computes {found.flops:,} FLOPs, {found.flops / work:.4g} times an eighth of the work. "
                "Devices that have the same examples and the same weights compute the same: along which axis?"
            )
        if found.bytes_sent > missing:
            raise Wrong(
                f"{on} {_sent(found)[0].lower()}{_sent(found)[1:]}, and the missing slices of the weights are {missing:,}. "
                "Which value does each collective carry, and who has it already?"
            )


@exercise(
    _judge_lean_gated,
    "Which axis does nothing? Let it cut what every device along it has a copy of; then see whether the weights still "
    "need a word.",
)
def lean_gated(x, w, v, u, mesh):
    """Return (relu(x @ w) * (x @ v)) @ u, each device doing an eighth of the work."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(("data", "model"))))
    return (jax.nn.relu(x @ w) * (x @ v)) @ u


def _judge_without_right(answer):
    rng = np.random.default_rng(0)
    for sizes in ((2, 4), (4, 2)):
        mesh = make_mesh(sizes, ("x", "y"))
        scores, labels = rng.normal(size=(64, 128)).astype(np.float32), rng.integers(0, 128, 64)
        rows, want = np.arange(64), scores.copy()
        want[rows, labels] = 0
        placed = _place(mesh, scores, ("x", "y")), _place(mesh, labels.astype(np.int32), ("x", "y"))
        got, found = _run(answer, *placed)
        if got.shape == (64,) and np.allclose(got, scores[rows, labels]):
            raise Wrong("You return the scores of the right classes; expected all scores, with a zero in their places.")
        if got.shape == want.shape:
            others = {
                "the columns of all labels are zero in every row": np.where(np.isin(range(128), labels), 0, scores),
                "whole rows are zero": np.where(np.isin(range(64), labels)[:, None], 0, scores),
                "the largest score of each row is zero": np.where(scores == scores.max(1)[:, None], 0, scores),
                "all but the label's place is zero": scores - want,
                "nothing is written: `.at[...].set(...)` returns a new array": scores,
                "1 is taken away at the label's place": scores - np.eye(128)[labels],
            }
            for slip, other in others.items():
                if np.allclose(got, other, atol=1e-6):
                    raise Wrong(f"In your result {slip}. Expected a zero at labels[i] in row i, and nowhere else.")
        same(got, want, "Your result")
        if len(found):
            raise Wrong(
                f"Right values, and on the {sizes[0]} by {sizes[1]} mesh {_sent(found)[0].lower()}{_sent(found)[1:]}. The "
                "compiler does not see that row i needs only label i. Look for a spelling that says so."
            )
        same(got, _place(mesh, want, ("x", "y")), "Your result")


@exercise(
    _judge_without_right,
    "Write the function of one example, a row of scores and one label. Then jax.vmap it.",
)
def without_right(scores, labels):
    """Return scores with a zero at labels[i] in each row i, without communication."""
    return jax.vmap(lambda row, label: row.at[label].set(0))(scores, labels)


def _judge_typed_product(answer):
    rng = np.random.default_rng(0)
    one, two = (rng.integers(-4, 5, shape).astype(np.float32) / 2 for shape in ((48, 64), (64, 80)))
    for sizes in ((2, 4), (4, 2)):
        mesh = make_mesh(sizes, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
        a, b = _place(mesh, one, None, "y"), _place(mesh, two, "y")
        got = _typed(answer, a, b, mesh)
        same(got, one @ two, "Your product")
        if getattr(got.sharding, "mesh", None) != mesh:
            raise Wrong(
                f"Your product lies on {spell(got.sharding)}, and its layout is not part of its type there: "
                f"{jax.typeof(got)}. Expected an array on the typed mesh that is handed in."
            )
        flops, sent, words = _typed_cost(answer, a, b, mesh)
        on, work = f"On the {sizes[0]} by {sizes[1]} mesh", 2 * 48 * 64 * 80 // 8
        if flops > work:
            raise Wrong(
                f"{on} your product is {jax.typeof(got)}, and each device computes {flops:,} FLOPs, "
                f"{flops / work:.4g} times an eighth of the work. Some devices compute the same. Which axis does "
                "not cut the operands, and what could it cut?"
            )
        if flops < work:
            raise Wrong(
                f"{on} the matrix products in your program are {flops:,} FLOPs on each device, and an eighth of the "
                f"work is {work:,}: is the product computed outside of the program, or not as a matrix product?"
            )
        limit = 48 * 80 * 4 // sizes[0] * 2 * (sizes[1] - 1) // sizes[1]
        if sent > limit:
            raise Wrong(
                f"{on} your product is {jax.typeof(got)}. {words}; at most {limit:,} are asked. Which value does "
                "each collective carry, and could it be smaller?"
            )


def _typed_cost(answer, a, b, mesh):
    """FLOPs and bytes of the answer, and the bytes in words."""
    try:
        with jax.set_mesh(mesh):
            _, found = _run(lambda a, b: answer(a, b, mesh), a, b)
        return found.flops, found.bytes_sent, _sent(found)
    except Wrong as wrong:
        if "set_mesh" not in str(wrong):
            raise
    jax.clear_caches()  # a function with a `set_mesh` of its own is no program: look at those that it runs, made anew
    programs = watch(answer, a, b, mesh).programs
    return (
        sum(one.flops for one in programs),
        sum(one.bytes_sent for one in programs),
        "; ".join(map(_sent, programs)),
    )


def _typed(answer, a, b, mesh):
    """What the answer returns, first as it is called."""
    try:
        got = answer(a, b, mesh)
    except Wrong as wrong:
        if "Contracting dimensions are sharded" not in str(wrong):
            raise
        raise Wrong(
            f"{wrong} Both operands cut the contraction, so JAX asks you for the layout of the result."
        ) from wrong
    if not isinstance(got, jax.Array):
        end = " Does the function end with `return`?" if got is None else ""
        raise Wrong(f"Your product is a {type(got).__name__}; expected a jax.Array on the typed mesh.{end}")
    return got


@exercise(
    _judge_typed_product,
    "jnp.matmul takes out_sharding, a NamedSharding of the typed mesh. Bring in the axis that does not cut the operands.",
)
def typed_product(a, b, mesh):
    """Return a @ b, typed, with an eighth of the work on each device; y cuts both."""
    return jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P("x")))
