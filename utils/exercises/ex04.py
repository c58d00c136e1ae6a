"""Exercises of notebook 04, Steering the compiler with constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.kit.probes import watch
from utils.count.cost import Cost, cost
from utils.exercises import Choice, Prediction, Wrong, exercise, same, spell
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
pays_to_cut = Choice(
    {
        "square": "its partial products are as large as the result's rows, and an all-reduce sends them twice",
        "long": "",
        "both": "for the square one the partial products are larger than what the compiler gathers",
        "neither": "the long one has a small result: its partial products are smaller than what the compiler gathers",
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
    {
        "moves it": "",
        "refuses it": "",
        "ignores it": "a door ignores nothing; a layout that differs is an error or a move",
    },
    own={
        "a": {"moves it": "you have placed it, and a door does not overrule you"},
        "NumPy's": {"refuses it": "it has no place yet, so nobody is overruled"},
        "device_put inside": {
            "moves it": "inside of a compiled program `device_put` lays out nothing; a constraint does",
            "refuses it": "no error: the layout that it asks for is passed over in silence",
        },
        "door inside": {
            "refuses it": "inside of a program no array is placed yet: there a door lays out, as a constraint"
        },
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
pays_from = Choice(
    {
        "16": "with so few examples their partial sums are cheaper to add up than the weights' halves are to move",
        "64": "it is close, and the partial sums of 64 examples are still the cheaper ones",
        "128": "",
        "512": "the partial sums grow with the examples, and at 128 they are already dearer than the weights' halves",
        "1024": "the partial sums grow with the examples, and at 128 they are already dearer than the weights' halves",
    }
)
gradient_bytes = Prediction(
    "bytes",
    {},
    own={
        "whole": {
            2 / 3: "the all-reduce alone; the weights have to be made whole, too",
            1 / 3: "the weights alone; the gradients have to be added up, too",
            4 / 3: "in a group of two an all-reduce sends 2 x 1/2 of its operand",
            5 / 3: "2 x 1/2 of the gradients, and the missing halves once",
            1 / 2: "the sum of one of the two gradients",
        },
        "by x, y": {
            2 / 3: "that is with groups of two; now all eight devices have examples of their own",
            7 / 9: "the all-reduce alone; the weights have to be made whole, too",
            2 / 9: "the weights alone; the gradients have to be added up, too",
            11 / 18: "an all-reduce among eight sends 2 x 7/8 of its operand, not 7/8",
            10 / 9: "in a group of eight an all-reduce sends 2 x 7/8 of its operand",
            8 / 9: "that is with groups of four; all eight devices have examples of their own",
        },
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
        "float32[64@x,64]": "the rows of inner were whole; x cut the axis that is added up",
        "float32[64,64@x]": "the columns come from the second operand, which is whole",
        "an error": "JAX asks where both operands cut the contraction; here one does, and it is gathered",
    },
    free=True,
)
cheapest_mend = Choice(
    {
        "P()": "the axis y is idle: its four devices compute the same",
        "P('x')": "the rows have to change places, since x cuts the contraction",
        "P('y')": "",
        "P(('x', 'y'))": "the finest cut of all comes after the addition of all: only then each device keeps its eighth",
    }
)
sum_has_a_type = Choice(
    YES_NO,
    own={
        "x, y and x": {"no": "what is whole is cut as the other is, and nothing has to be sent"},
        "x, y and y": {"yes": "one of the two would have to move, and JAX does not choose which"},
        "(x, y) and x": {"yes": "both cut the rows, and not alike: only what is whole is cut for you"},
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
    parts = [f"{kind} of {operand[:80]}, {sent:,} bytes" for kind, _, operand, _, _, sent in found.rows()]
    if len(parts) > 6:
        parts[4:] = [f"and {len(parts) - 4} more"]
    return f"Each device sends {found.bytes_sent:,} bytes ({'; '.join(parts) or 'nothing'})"


def _steps(program: Callable, *args: jax.Array) -> list[tuple[str, list]]:
    """The program's steps in order, inner programs' among them: the primitive, and the shardings that it is given."""
    found = []

    def walk(jaxpr):
        for step in jaxpr.eqns:
            given = [step.params.get("sharding"), *step.params.get("devices", [])]
            found.append((step.primitive.name, [one for one in given if isinstance(one, NamedSharding)]))
            for inner in step.params.values():
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    walk(getattr(inner, "jaxpr", inner))

    walk(jax.make_jaxpr(program)(*args).jaxpr)
    return found


def _passed_over(steps: list[tuple[str, list]]) -> str:
    """What is to be said where the program has a `device_put`."""
    inside = any(name == "device_put" and given for name, given in steps)
    return " `jax.device_put` inside of a compiled program lays out nothing, on automatic axes." if inside else ""


def _place(mesh, array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def _judge_spread_row_sums(answer):
    mesh = make_mesh((2, 2, 2), ("x", "y", "z"))
    t = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    placed = _place(mesh, t, "z", ("x", "y"))
    got, found = _run(lambda t: answer(t, mesh), placed)
    if got.shape == (16,) and np.allclose(got, t.sum(axis=0), atol=1e-4):
        raise Wrong("You return the 16 column sums, a sum over axis 0; the row sums are asked, 8 of them.")
    if got.shape == ():
        raise Wrong("You return one number, the sum of all; the row sums are asked, 8 of them.")
    if got.shape == (8, 1):
        raise Wrong("Your result has shape (8, 1); expected (8,): `keepdims` keeps the axis that is added up.")
    if got.shape == (8,) and np.allclose(got, t.mean(axis=1), atol=1e-5):
        raise Wrong("You return the means of the rows; their sums are asked.")
    same(got, t.sum(axis=1), "Your result")
    pieces = len({str(shard.index) for shard in got.addressable_shards})
    if pieces < 8:
        steps = _steps(lambda t: answer(t, mesh), placed)
        cut = [one for name, given in steps if name == "sharding_constraint" for one in given]
        fine = any(
            len({str(index) for index in one.devices_indices_map((8,)).values()}) == 8 for one in cut if _fits(one)
        )
        why = " A constraint returns the array that it lays out: is that the one you return?" if fine else ""
        raise Wrong(
            f"Your sums are laid out as {spell(got.sharding)}, in {pieces} piece{'s' * (pieces > 1)}: several devices "
            f"hold the same. One sum on each device is asked.{why}{_passed_over(steps)}"
        )
    kinds = sorted(c.kind for c in found)
    if found.bytes_sent <= 24:
        return
    if getattr(got.sharding, "mesh", mesh).axis_names != mesh.axis_names:
        raise Wrong(
            f"{_sent(found)}; the addition alone sends 24. Your sums are laid out as {spell(got.sharding)}, which is not "
            "the mesh that is handed in."
        )
    if kinds == ["all-reduce", "collective-permute"]:
        raise Wrong(
            f"{_sent(found)}. After the addition the sums change places: {spell(got.sharding)} gives some device a sum "
            "that it never had. Which four sums does a device have then, and which order of the names leaves it one of them?"
        )
    raise Wrong(
        f"{_sent(found)}; the addition alone sends 24. Some value is laid out anew on the way: look at the shape that "
        "each collective carries. The table may stay as it is."
    )


def _fits(sharding: NamedSharding) -> bool:
    """Whether it can lay out the eight sums."""
    return len(sharding.spec) == 1


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
    "`relu` is applied to the result, too": lambda x, w, v, u: np.maximum((np.maximum(x @ w, 0) * (x @ v)) @ u, 0),
    "`relu` is applied to the result, not to x @ w": lambda x, w, v, u: np.maximum(((x @ w) * (x @ v)) @ u, 0),
    "the factor x @ v is missing": lambda x, w, v, u: np.maximum(x @ w, 0) @ u,
    "the two factors are added, not multiplied": lambda x, w, v, u: (np.maximum(x @ w, 0) + x @ v) @ u,
}


def _near(got, want):
    """The same but for float32's rounding; a half-precision number on the way is more."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return np.sqrt(np.mean((got - want) ** 2)) <= 2e-5 * np.sqrt(np.mean(want**2))


def _judge_lean_gated(answer):
    rng = np.random.default_rng(0)
    for sizes, batch in (((2, 4), 256), ((4, 2), 512)):
        mesh = make_mesh(sizes, ("data", "model"))
        shapes = ((batch, 32), (32, 64), (32, 64), (64, 32))
        host = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        placed = [_place(mesh, array, "data") for array in host]
        got, found = _run(lambda *args, on=mesh: answer(*args, on), *placed)
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
                "rounding would be off by less than 0.001. Look at the formula, and at any change of dtype."
            )
        on = f"On the {sizes[0]} by {sizes[1]} mesh:"
        work, missing = 6 * batch * 32 * 64 // 8, 3 * 32 * 64 * 4 * (sizes[0] - 1) // sizes[0]
        if found.flops <= work and found.bytes_sent <= missing:
            continue
        inside = _passed_over(_steps(lambda *args, on=mesh: answer(*args, on), *placed))
        if found.flops > work:
            raise Wrong(
                f"{on} each device computes {found.flops:,} FLOPs, {found.flops / work:.4g} times an eighth of the work; "
                f"your result is laid out as {spell(got.sharding)}. Devices that have the same examples and the same "
                f"weights compute the same: along which axis?{inside}"
            )
        raise Wrong(
            f"{on} {_sent(found)[0].lower()}{_sent(found)[1:]}, and the missing slices of the weights are {missing:,}. "
            f"Which value does each collective carry, and who has it already?{inside}"
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
    mesh = make_mesh((2, 4), ("x", "y"))
    rows = np.arange(64)
    program = None
    for case in range(2):  # the second has other labels, and the same program
        scores, labels = rng.normal(size=(64, 128)).astype(np.float32), rng.integers(0, 128, 64)
        if case:  # scores that are masked out, at the label and elsewhere, and one as large as the label's
            scores[3, labels[3]] = scores[5, (labels[5] + 9) % 128] = -np.inf
            scores[7, (labels[7] + 9) % 128] = scores[7, labels[7]]
        want = scores.copy()
        want[rows, labels] = 0
        placed = _place(mesh, scores, ("x", "y")), _place(mesh, labels.astype(np.int32), ("x", "y"))
        if program is None:
            program = jax.jit(lambda *args: _array(answer(*args))).lower(*placed).compile()
        got = program(*placed)
        if got.shape == (64,) and np.allclose(got, scores[rows, labels]):
            raise Wrong("You return the scores of the right classes; expected all scores, with a zero in their places.")
        if got.shape == want.shape and np.isnan(got).any():
            raise Wrong(
                "Where a score is -inf, as masked ones are, your result has nan: 0 * inf and inf - inf are no numbers. "
                "Expected a zero at the label's place, and the score elsewhere."
            )
        if case and got.shape == want.shape and np.asarray(got)[7, (labels[7] + 9) % 128] == 0:
            raise Wrong("In your result a score that is as large as the label's, in the same row, is zero as well.")
        if got.shape == want.shape:
            for slip, other in _other_zeros(scores, labels).items():
                if np.allclose(got, other, atol=1e-6):
                    raise Wrong(f"In your result {slip}. Expected a zero at labels[i] in row i, and nowhere else.")
            there = np.asarray(got)[rows, labels]
            if case == 0 and (there == there[0]).all() and there[0] != 0:
                raise Wrong(f"At the label's place your result has {there[0]:g} in each row; expected 0.")
        same(got, want, "Your result")
        if case:
            return
        found, asked = cost(program), _place(mesh, want, ("x", "y"))
        on = f"on the 2 by 4 mesh {_sent(found)[0].lower()}{_sent(found)[1:]}"
        if not got.sharding.is_equivalent_to(asked.sharding, 2):
            why = f": that is what is sent for, {on}" if len(found) else ""
            raise Wrong(
                f"Right values, and your result is laid out as {spell(got.sharding)}; expected {spell(asked.sharding)}, as "
                f"the scores are{why}."
            )
        if len(found):
            raise Wrong(
                f"Right values, and {on}. The compiler does not see that row i needs only label i. Look for a spelling "
                "that says so."
            )


def _other_zeros(scores, labels):
    """What people return in place of it."""
    one = np.eye(128)[labels]
    at = np.where(one, scores, 0)
    return {
        "the columns of all labels are zero in every row": np.where(np.isin(range(128), labels), 0, scores),
        "whole rows are zero": np.where(np.isin(range(64), labels)[:, None], 0, scores),
        "everything is zero": np.zeros_like(scores),
        "the largest score of each row is zero": np.where(scores == scores.max(1)[:, None], 0, scores),
        "all but the label's place is zero": at,
        "there is a 1 at the label's place and no score": one,
        "there is a 0 at the label's place, and a 1 for every score": 1 - one,
        "the zeros stand one place after the labels": np.where(np.roll(one, 1, axis=1), 0, scores),
        "the zeros stand one place before the labels": np.where(np.roll(one, -1, axis=1), 0, scores),
        "nothing is written: the scores are as they were (`.at[...].set(...)` returns a new array)": scores,
        "1 is taken away at the label's place": scores - one,
    }


@exercise(
    _judge_without_right,
    "Write the function of one example, a row of scores and one label. Then jax.vmap it.",
)
def without_right(scores, labels):
    """Return scores with a zero at labels[i] in each row i, without communication."""
    return jax.vmap(lambda row, label: row.at[label].set(0))(scores, labels)


def _judge_typed_product(answer):
    rng = np.random.default_rng(0)
    one, two = (rng.normal(size=shape).astype(np.float32) for shape in ((48, 64), (64, 80)))
    for sizes in ((2, 4), (4, 2)):
        mesh = make_mesh(sizes, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
        a, b = _place(mesh, one, None, "y"), _place(mesh, two, "y")
        got, flops, sent, words = _typed(answer, a, b, mesh)
        if got.shape == (80, 48) and np.allclose(got, (one @ two).T, atol=1e-5):
            raise Wrong("Your product has shape (80, 48): it is b.T @ a.T, the transpose of a @ b.")
        same(got, one @ two, "Your product")
        _lies_on(mesh, got)
        on, work = f"On the {sizes[0]} by {sizes[1]} mesh", 2 * 48 * 64 * 80 // 8
        if flops > work:
            raise Wrong(
                f"{on} your product is {jax.typeof(got)}, and each device computes {flops:,} FLOPs, "
                f"{flops / work:.4g} times an eighth of the work. Some devices compute the same. Which axis does "
                f"not cut the operands, and what could it cut?{_too_late(answer, a, b, mesh)}"
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


def _typed(answer, a, b, mesh):
    """What the answer returns, its FLOPs and bytes, and the bytes in words."""
    try:
        got, found = _run(lambda a, b: answer(a, b, mesh), a, b)
        return got, found.flops, found.bytes_sent, _sent(found)
    except Wrong as wrong:
        got = _called(answer, a, b, mesh)
        _lies_on(mesh, got)
        if "set_mesh" not in str(wrong):
            raise
    jax.clear_caches()  # a function with a `set_mesh` of its own is no program: look at those that it runs, made anew
    programs = watch(answer, a, b, mesh).programs
    return (
        got,
        sum(one.flops for one in programs),
        sum(one.bytes_sent for one in programs),
        "; ".join(map(_sent, programs)),
    )


def _called(answer, a, b, mesh):
    """What the answer returns without `jit`; what is wrong already there is said first."""
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


def _lies_on(mesh, got):
    on = getattr(got.sharding, "mesh", None)
    if on != mesh and on is not None and AxisType.Explicit in on.axis_types:
        raise Wrong(
            f"Your product lies on {spell(got.sharding)}, a mesh of its own; expected one on the mesh that is handed in."
        )
    if on != mesh:
        raise Wrong(
            f"Your product lies on {spell(got.sharding)}, and its layout is not part of its type there: "
            f"{jax.typeof(got)}. Expected an array on the typed mesh that is handed in."
        )


def _too_late(answer, a, b, mesh):
    """What is to be said where the product is laid out anew."""
    try:
        names = [name for name, _ in _steps(lambda a, b: answer(a, b, mesh), a, b)]
    except Wrong:
        return ""
    late = "dot_general" in names and "reshard" in names[names.index("dot_general") :]
    return " (It is laid out anew after it is computed: too late for the work.)" if late else ""


@exercise(
    _judge_typed_product,
    "jnp.matmul takes out_sharding, a NamedSharding of the typed mesh. Bring in the axis that does not cut the operands.",
)
def typed_product(a, b, mesh):
    """Return a @ b, typed, with an eighth of the work on each device; y cuts both."""
    return jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P("x")))
