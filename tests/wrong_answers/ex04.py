"""Wrong and right answers to the exercises of notebook 04, and wrong guesses."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

from utils.exercises import ex04
from utils.mesh import make_mesh


def on(mesh, value, *spec):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


def spread(*spec):
    return lambda t, mesh: on(mesh, t.sum(axis=1), *spec)


def placed_inside(t, mesh):
    return jax.device_put(t.sum(axis=1), NamedSharding(mesh, P(("z", "x", "y"))))


def on_a_mesh_of_two_axes(t, mesh):
    return on(make_mesh((2, 4), ("x", "y")), t.sum(axis=1), ("x", "y"))


def unused(t, mesh):
    sums = t.sum(axis=1)
    on(mesh, sums, ("z", "x", "y"))
    return sums


def gated(x, w, v, u):
    return (jax.nn.relu(x @ w) * (x @ v)) @ u


BOTH, WHOLE = ("data", "model"), (P(),) * 3


def lean(first=BOTH, weights=WHOLE, last=None):
    """The gated network with these specs for the examples, the three weights and the result; None for no constraint."""

    def network(x, w, v, u, mesh):
        x = x if first is None else on(mesh, x, first)
        w, v, u = (one if spec is None else on(mesh, one, *spec) for one, spec in zip((w, v, u), weights, strict=True))
        y = gated(x, w, v, u)
        return y if last is None else on(mesh, y, *last)

    return network


def formula(f):
    """A network of another formula, laid out well."""
    return lambda x, w, v, u, mesh: f(on(mesh, x, BOTH), w, v, u)


def hidden_both(x, w, v, u, mesh):
    return on(mesh, jax.nn.relu(x @ on(mesh, w)) * (x @ on(mesh, v)), BOTH) @ on(mesh, u)


def examples_put(x, w, v, u, mesh):
    return gated(jax.device_put(x, NamedSharding(mesh, P(BOTH))), w, v, u)


def half_in_transit(x, w, v, u, mesh):
    weights = (on(mesh, one.astype(jnp.bfloat16)).astype(jnp.float32) for one in (w, v, u))
    return gated(on(mesh, x, BOTH), *weights)


def by_hand(x, w, v, u, mesh):
    def local(x, w, v, u):
        return gated(x, *(lax.all_gather(one, "data", tiled=True) for one in (w, v, u)))

    specs = P(BOTH), P("data"), P("data"), P("data")
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(BOTH))(x, w, v, u)


def joined(x, w, v, u, mesh):
    """Both first weights as one product."""
    x = on(mesh, x, BOTH)
    first, second = jnp.split(x @ jnp.concatenate([on(mesh, w), on(mesh, v)], axis=1), 2, axis=1)
    return jnp.maximum(first, 0) * second @ on(mesh, u)


def zeroed(*spec):
    """Right zeros, laid out by this spec."""

    def program(scores, labels):
        zeros = jnp.where(jnp.arange(128) == labels[:, None], 0, scores)
        return on(make_mesh((2, 4), ("x", "y")), zeros, *spec)

    return program


def labelled(scores, labels):
    return scores.at[jnp.arange(64), labels]


def matmul(spec):
    return lambda a, b, mesh: jnp.matmul(a, b, out_sharding=NamedSharding(mesh, spec))


def mended_late(a, b, mesh):
    product = jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P()))
    return reshard(product, NamedSharding(mesh, P("x")))


def gathered(a, b, mesh):
    return reshard(a, NamedSharding(mesh, P())) @ reshard(b, NamedSharding(mesh, P()))


def rows_first(a, b, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", "y")))
    return jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P("x", None)))


def on_the_host(a, b, mesh):
    return jax.device_put(np.asarray(a) @ np.asarray(b), NamedSharding(mesh, P("x", None)))


def on_another_mesh(a, b, mesh):
    auto = make_mesh(mesh.devices.shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.device_put(np.asarray(a) @ np.asarray(b), NamedSharding(auto, P("x", None)))


def under_set_mesh(a, b, mesh):
    with jax.set_mesh(mesh):
        return jnp.matmul(a, b, out_sharding=P("x", "y"))


def product_by_hand(a, b, mesh):
    def local(a, b):
        return lax.psum(a @ b, "y")

    a = reshard(a, NamedSharding(mesh, P("x", "y")))
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))(a, b)


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex04.spread_row_sums: [
        (spread(("x", "y", "z")), "the sums change places: P(('x', 'y', 'z'))"),
        (spread(("y", "x", "z")), "which order of the names leaves it one of them"),
        (spread("z"), "in 2 pieces: several devices hold the same. One sum on each device is asked."),
        (
            spread(("z", "x")),
            "P(('z', 'x')) on a 2 x 2 x 2 mesh ('x', 'y', 'z'), in 4 pieces: several devices hold the same",
        ),
        (placed_inside, "`jax.device_put` inside of a compiled program lays out nothing"),
        (on_a_mesh_of_two_axes, "Each device sends 28 bytes (all-reduce of f32[4], 24 bytes; collective-permute"),
        (lambda t, mesh: t.sum(axis=1), "several devices hold the same. One sum on each device is asked."),
        (unused, "A constraint returns the array that it lays out: is that the one you return?"),
        (lambda t, mesh: t.sum(axis=0), "You return the 16 column sums"),
        (lambda t, mesh: on(mesh, t.sum(axis=1).reshape(2, 2, 2), "z", "x", "y"), "has shape (2, 2, 2); expected (8,)"),
        (lambda t, mesh: on(mesh, t, ("x", "y", "z")).sum(axis=1), "Some value is laid out anew on the way"),
        (lambda t, mesh: on(mesh, t, ("z", "x", "y")).sum(axis=1), "Some value is laid out anew on the way"),
        (lambda t, mesh: on(mesh, on(mesh, t).sum(axis=1), ("z", "x", "y")), "Some value is laid out anew on the way"),
        (lambda t, mesh: on(mesh, t.mean(axis=1), ("z", "x", "y")), "the means of the rows; their sums are asked"),
        (lambda t, mesh: on(mesh, t.sum(1, keepdims=True), ("z", "x", "y")), "`keepdims` keeps the axis"),
        (lambda t, mesh: t.sum(), "one number, the sum of all"),
        (lambda t, mesh: on(mesh, 2 * t.sum(axis=1), ("z", "x", "y")), "differs in 8 of 8 values"),
        (lambda t, mesh: None, "Does the function end with `return`?"),
    ],
    ex04.lean_gated: [
        (lean(None, (None,) * 3), "4 times an eighth of the work"),
        (lean(None), "On the 2 by 4 mesh: each device computes 1,572,864 FLOPs"),
        (lean("data"), "compute the same: along which axis?"),
        (lean(("model", "data")), "Which value does each collective carry, and who has it already?"),
        (lean(last=("data",)), "2 times an eighth of the work; your result is laid out as P('data') on a 2 x 4 mesh"),
        (lean(last=()), "your result is laid out as P() on a 2 x 4 mesh"),
        (examples_put, "`jax.device_put` inside of a compiled program lays out nothing"),
        (
            lean(None, (P(None, "model"), P(None, "model"), P("model"))),
            "and the missing slices of the weights are 12,288",
        ),
        (formula(lambda x, w, v, u: ((x @ w) * (x @ v)) @ u), "`relu` is missing"),
        (formula(lambda x, w, v, u: jax.nn.relu(x @ w) @ u), "the factor x @ v is missing"),
        (formula(lambda x, w, v, u: jax.nn.relu((x @ w) * (x @ v)) @ u), "applied to the product of the two"),
        (formula(lambda x, w, v, u: (jax.nn.relu(x @ v) * (x @ w)) @ u), "applied to x @ v in place of x @ w"),
        (formula(lambda x, w, v, u: (jax.nn.relu(x @ w) + x @ v) @ u), "are added, not multiplied"),
        (formula(lambda x, w, v, u: jax.nn.relu(gated(x, w, v, u))), "`relu` is applied to the result, too"),
        (formula(lambda x, w, v, u: 2 * gated(x, w, v, u)), "it is off by up to"),
        (half_in_transit, "at any change of dtype"),
        (lambda x, w, v, u, mesh: x @ w, "has shape (256, 64); expected (256, 32)"),
        (lambda x, w, v, u, mesh: None, "Does the function end with `return`?"),
    ],
    ex04.without_right: [
        (
            lambda s, k: jnp.where(s == jnp.take_along_axis(s, k[:, None], 1), 0, s),
            "a score that is as large as the label's, in the same row, is zero as well",
        ),
        (lambda s, k: s * (1 - jax.nn.one_hot(k, 128)), "0 * inf and inf - inf are no numbers"),
        (lambda s, k: s - jnp.take_along_axis(s, k[:, None], 1) * jax.nn.one_hot(k, 128), "your result has nan"),
        (lambda s, k: jax.vmap(lambda row, at: row.at[at].multiply(0))(s, k), "your result has nan"),
        (lambda s, k: jax.vmap(lambda row, at: row.at[at].add(0))(s, k), "the scores are as they were"),
        (lambda s, k: jax.vmap(lambda row, at: row.at[at - 1].set(0))(s, k), "the zeros stand one place before"),
        (
            lambda scores, labels: labelled(scores, labels).set(0),
            "Right values, and on the 2 by 4 mesh each device sends 448",
        ),
        (
            lambda scores, labels: jnp.put_along_axis(scores, labels[:, None], 0.0, 1, inplace=False),
            "Right values, and on the 2 by 4 mesh each device sends",
        ),
        (lambda scores, labels: scores.at[:, labels].set(0), "the columns of all labels are zero in every row"),
        (lambda scores, labels: scores.at[labels].set(0), "whole rows are zero"),
        (
            lambda scores, labels: jnp.take_along_axis(scores, labels[:, None], 1)[:, 0],
            "the scores of the right classes",
        ),
        (lambda scores, labels: scores - jax.nn.one_hot(labels, 128), "1 is taken away at the label's place"),
        (lambda scores, labels: scores * jax.nn.one_hot(labels, 128), "all but the label's place is zero"),
        (lambda scores, labels: scores, "returns a new array"),
        (
            lambda scores, labels: jnp.where(scores == scores.max(1, keepdims=True), 0, scores),
            "the largest score of each row is zero",
        ),
        (lambda scores, labels: lax.map(lambda one: one[0].at[one[1]].set(0), (scores, labels)), "Right values, and"),
        (zeroed(), "your result is laid out as P() on a 2 x 4 mesh ('x', 'y'); expected P(('x', 'y'))"),
        (zeroed("x"), "your result is laid out as P('x') on a 2 x 4"),
        (zeroed(("y", "x")), "that is what is sent for, on the 2 by 4 mesh each device sends"),
        (
            lambda scores, labels: jnp.where(jnp.arange(128) == labels[:, None], -jnp.inf, scores),
            "has -inf in each row",
        ),
        (
            lambda scores, labels: jnp.where(jnp.arange(128) == labels[:, None] + 1, 0, scores),
            "one place after the labels",
        ),
        (lambda scores, labels: jax.nn.one_hot(labels, 128), "a 1 at the label's place and no score"),
        (lambda scores, labels: np.asarray(scores), "raised TracerArrayConversionError"),
    ],
    ex04.typed_product: [
        (
            lambda a, b, mesh: matmul(P("x"))(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), mesh).astype(jnp.float32),
            "Your product differs in",
        ),
        (lambda a, b, mesh: a @ b, "so JAX asks you for the layout of the result"),
        (matmul(P()), "your product is float32[48,80], and each device computes 122,880 FLOPs, 2 times an eighth"),
        (matmul(P("y")), "float32[48@y,80], and each device computes 122,880 FLOPs, 2 times an eighth"),
        (matmul(P(("x", "y"))), "2 times an eighth of the work"),
        (matmul(P(None, "y")), "Which axis does not cut the operands"),
        (mended_late, "It is laid out anew after it is computed"),
        (gathered, "8 times an eighth of the work"),
        (lambda a, b, mesh: np.asarray(a) @ np.asarray(b), "is a ndarray; expected a jax.Array"),
        (on_the_host, "raised TracerArrayConversionError"),
        (on_another_mesh, "its layout is not part of its type there"),
        (
            lambda a, b, mesh: jnp.matmul(b.T, a.T, out_sharding=NamedSharding(mesh, P("x"))),
            "it is b.T @ a.T, the transpose of a @ b",
        ),
        (lambda a, b, mesh: a * b, "Your function raised "),
        (lambda a, b, mesh: jnp.matmul(a, b, out_sharding=P("x")), "Your function raised "),
        (lambda a, b, mesh: None, "Does the function end with `return`?"),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex04.spread_row_sums: [
        spread(("z", "y", "x")),
        lambda t, mesh: on(mesh, jnp.einsum("ij->i", t), ("z", "x", "y")),
        lambda t, mesh: on(mesh, on(mesh, t.sum(1), "z"), ("z", "x", "y")),
        lambda t, mesh: on(mesh, t.sum(1, keepdims=True), ("z", "x", "y"))[:, 0],
        lambda t, mesh: jax.jit(jax.vmap(jnp.sum), out_shardings=NamedSharding(mesh, P(("z", "x", "y"))))(t),
        lambda t, mesh: on(mesh, t @ jnp.ones(16), ["z", "x", "y"]),
    ],
    ex04.lean_gated: [
        lean(),
        hidden_both,
        lean(None, last=(BOTH,)),
        by_hand,
        joined,
        functools.partial(lambda x, w, v, u, mesh: jax.jit(lean(), static_argnums=4)(x, w, v, u, mesh)),
    ],
    ex04.without_right: [
        lambda scores, labels: jnp.where(jnp.arange(128) == labels[:, None], 0, scores),
        lambda scores, labels: jnp.where(jax.nn.one_hot(labels, 128, dtype=bool), 0, scores),
        lambda scores, labels: jax.vmap(lambda r, i: lax.dynamic_update_slice(r, jnp.zeros(1), (i,)))(scores, labels),
        lambda scores, labels: jax.vmap(lambda row, at: row.at[at].set(0))(scores, labels),
        jax.jit(jax.vmap(lambda row, label: jnp.where(jnp.arange(row.size) == label, 0.0, row))),
    ],
    ex04.typed_product: [
        matmul(P("x", "y")),
        matmul(P(None, "x")),
        matmul(P("y", "x")),
        rows_first,
        under_set_mesh,
        product_by_hand,
        lambda a, b, mesh: jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P("x", None))),
        lambda a, b, mesh: jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x"))),
    ],
}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex04.spread_orders: (  # 2 x 1/2 of two float32; a permute of one float32 more where the sums change places
        {"('x', 'y')": 12, "('y', 'x')": 8},
        [
            ((8, 8), "device 4 holds sums 0 and 1"),
            ((4, 8), "that is what has to come"),
            ((16, 8), "one sum has to come"),
            ((24, 8), "changes places with at most one other"),
            ((12, 12), "('y', 'x'): your guess, 12 bytes, is 1.5 times too large: each device keeps one"),
            ((12, 4), "nothing is saved by that"),
            ((12, 16), "each device keeps one"),
        ],
    ),
    ex04.pays_to_cut: (
        "long",
        [("square", "sends them twice"), ("both", "larger than what"), ("neither", "smaller than what")],
    ),
    ex04.same_bits: (
        {"rows, columns": True, "contraction": False},
        [(("no", "no"), "the compiler's own choice"), (("yes", "yes"), "a quarter of the terms")],
    ),
    ex04.at_the_door: (
        {"a": "refuses it", "NumPy's": "moves it", "device_put inside": "ignores it", "door inside": "moves it"},
        [
            (("moves it", None, None, None), "you have placed it"),
            (("ignores it", None, None, None), "ignores nothing"),
            ((None, "refuses it", None, None), "no place yet"),
            ((None, "ignores it", None, None), "ignores nothing"),
            ((None, None, "moves it", None), "lays out nothing"),
            ((None, None, "refuses it", None), "passed over in silence"),
            ((None, None, None, "refuses it"), "no array is placed yet"),
        ],
    ),
    ex04.cheapest_cut: (
        "columns, rows",
        [
            ("rows, columns", "relu needs the whole sum"),
            ("columns, columns", "gathered whole"),
            ("rows, rows", "cut contractions"),
        ],
    ),
    ex04.missing_halves: (  # half of 128 x 512 float32, twice
        262_144,
        [
            (524_288, "half of each is there already"),
            (131_072, "there are two"),
            (65_536, "you count numbers"),
            (1_048_576, "that is both weights, twice"),
        ],
    ),
    ex04.pays_from: (
        "128",
        [
            ("16", "cheaper to add up"),
            (64, "still the cheaper"),
            ("512", "dearer"),
            (1024, "dearer"),
            ("no", "expected '16'"),
        ],
    ),
    ex04.gradient_bytes: (  # 262,144 of weights; 2 x 1/2 x 524,288 of gradients, or 2 x 7/8 x 524,288
        {"whole": 786_432, "by x, y": 1_179_648},
        [
            ((524_288, None), "the weights have to be made whole, too"),
            ((262_144, None), "the gradients have to be added up, too"),
            ((1_048_576, None), "2 x 1/2 of its operand"),
            ((1_310_720, None), "the missing halves once"),
            ((393_216, None), "one of the two gradients"),
            ((None, 786_432), "that is with groups of two"),
            ((None, 917_504), "the weights have to be made whole, too"),
            ((None, 262_144), "the gradients have to be added up, too"),
            ((None, 720_896), "not 7/8"),
            ((None, 1_310_720), "2 x 7/8 of its operand"),
            ((None, 1_048_576), "that is with groups of four"),
        ],
    ),
    ex04.who_sends: (
        {"index": "yes", "vmap": "no", "take_along_axis": "no", "constrained index": "yes"},
        [
            (("no", None, None, None), "does not notice"),
            ((None, "yes", None, None), "stays on its own"),
            ((None, None, "yes", None), "stays on its own"),
            ((None, None, None, "no"), "gathered before"),
        ],
    ),
    ex04.top_under_vmap: (
        "yes",
        [("no", "gathers them all the same"), (False, "gathers them all the same"), (0, "expected 'yes'")],
    ),
    ex04.types: (
        {"column sums": "float32[8@y]", "inner @ whole": "float32[64,64]"},
        [
            (("float32[8]", None), "still cut by y"),
            (("float32[8@x]", None), "the axis that x cut is added up"),
            ((None, "float32[64@x,64]"), "the rows of inner were whole"),
            ((None, "float32[64,64@x]"), "the second operand, which is whole"),
            ((None, "an error"), "here one does, and it is gathered"),
        ],
    ),
    ex04.cheapest_mend: (
        "P('y')",
        [("P()", "compute the same"), ("P('x')", "change places"), ("P(('x', 'y'))", "only then each device keeps")],
    ),
    ex04.sum_has_a_type: (
        {"x, y and x": "yes", "x, y and y": "no", "(x, y) and x": "no"},
        [
            (("no", "no", "no"), "is cut as the other is"),
            (("yes", "yes", "no"), "does not choose which"),
            (("yes", "no", "yes"), "both cut the rows, and not alike"),
        ],
    ),
    ex04.told_of_psum: (
        {"P('y')": "yes", "P(('x', 'y'))": "no"},
        [(("no", "no"), "cannot prove"), (("yes", "yes"), "nothing is promised")],
    ),
    ex04.manual_bytes: (  # 262,144 of weights, 1/2 x 524,288 of gradients
        524_288,
        [(786_432, "with an all-reduce"), (262_144, "one way"), (1_048_576, "half of what it gathers")],
    ),
}
