"""Wrong and right answers to the exercises of notebook 03, and wrong guesses of its predictions."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from utils.exercises import ex03
from utils.mesh import make_mesh


def of_sum(passes=2, count=lambda n: (n - 1) / n, held=None, width=4):
    """bytes_of_sum with another factor in one place."""

    def answer(shape, cuts, axis):
        own = [size // pieces for size, pieces in zip(shape, cuts, strict=True)]
        sums = held(shape, cuts, axis) if held else math.prod(own) // own[axis]
        return passes * count(cuts[axis]) * sums * width

    return answer


def over_all(shape, cuts, axis):
    n = math.prod(cuts)
    return 2 * (n - 1) / n * math.prod(shape) / n * cuts[axis] / shape[axis] * 4


def next_axis(shape, cuts, axis):
    n = cuts[(axis + 1) % len(cuts)]
    return of_sum(count=lambda _: (n - 1) / n)(shape, cuts, axis)


def with_numpy(shape, cuts, axis):
    own = np.array(shape) // np.array(cuts)
    own[axis] = 1
    return np.float32(8 * (1 - 1 / np.array(cuts)[axis]) * own.prod())


def as_a_fraction(shape, cuts, axis):
    sums = math.prod(size // pieces for i, (size, pieces) in enumerate(zip(shape, cuts, strict=True)) if i != axis)
    return 8 * sums * Fraction(cuts[axis] - 1, cuts[axis])


def in_two_halves(shape, cuts, axis):
    b = of_sum(passes=1, count=lambda n: 1)(shape, cuts, axis)
    scattered = b / cuts[axis]
    return (b - scattered) + (cuts[axis] - 1) * scattered


def on_jax(shape, cuts, axis):
    own = jnp.array(shape) // jnp.array(cuts)
    return 8.0 * (cuts[axis] - 1) * jnp.prod(own.at[axis].set(1)) / cuts[axis]


def gradients(*factors, passes=2, share=7 / 8, width=4):
    """Four numbers from sizes: one function of (batch, features, out) for each, None for nothing."""
    return lambda *sizes: [passes * share * width * f(*sizes) if f else 0 for f in factors]


def of_w(batch, features, out):
    return features * out


def of_x(batch, features, out):
    return batch * features


def of_r(batch, features, out):
    return batch * out


def gradients_as_an_array(batch, features, out):
    return np.array([7 * features * out, 0, 0, 7 * batch * features], np.float32)


def gradients_by_loops(batch, features, out):
    found = []
    for contraction_is_cut, shape in (
        (1, (features, out)),
        (0, (batch, features)),
        (0, (features, out)),
        (1, (batch, features)),
    ):
        found.append(contraction_is_cut * 2 * (8 - 1) * math.prod(shape) * 4 // 8)
    return tuple(found)


def gradients_on_jax(batch, features, out):
    return jnp.array([features * out, 0.0, 0, batch * features]) * 7


def whole(key, i):
    return jax.random.normal(jax.random.fold_in(key, i), (64, 128))


def layers(make):
    """make_layers from a function that makes one: of the key, its number and its sharding."""
    return lambda key, shardings: [make(key, i, s) for i, s in enumerate(shardings)]


def from_a_callback(key, i, s):
    return jax.make_array_from_callback((64, 128), s, lambda index: np.asarray(whole(key, i))[index])


def the_same_piece_everywhere(key, i, s):
    key = jax.random.fold_in(key, i)
    piece = s.shard_shape((64, 128))
    return jax.make_array_from_callback((64, 128), s, lambda index: jax.random.normal(key, piece))


def a_key_for_each_piece(key, i, s):
    shape, n = s.shard_shape((64, 128)), iter(range(8))
    return jax.make_array_from_callback(
        (64, 128), s, lambda index: jax.random.normal(jax.random.fold_in(key, next(n)), shape)
    )


def in_layout(make, **options):
    """Of a function of the key and the number that makes a layer, one that compiles it with out_shardings."""
    return layers(lambda key, i, s: jax.jit(lambda key: make(key, i), out_shardings=s, **options)(key))


def constrained(key, shardings):
    @jax.jit
    def make(key):
        return tuple(jax.lax.with_sharding_constraint(whole(key, i), s) for i, s in enumerate(shardings))

    return make(key)


def from_split_keys(key, shardings):
    n = len(shardings)
    make = jax.jit(
        lambda keys: {i: jax.random.normal(keys[i], (64, 128)) for i in range(n)},
        out_shardings=dict(enumerate(shardings)),
    )
    return make(jax.random.split(key, n)).values()


def with_static_shape(key, shardings):
    normal = functools.partial(jax.jit, jax.random.normal, static_argnums=(1, 2))
    keys = (jax.random.fold_in(key, i) for i in range(len(shardings)))
    return [normal(out_shardings=s)(k, (64, 128), jnp.float32) for k, s in zip(keys, shardings, strict=True)]


def folded_again(key, i):
    for k in range(i + 1):
        key = jax.random.fold_in(key, k)
    return jax.random.normal(key, (64, 128))


def two_at_any_rate(key, shardings):
    return jax.jit(lambda key: [whole(key, i) for i in range(2)], out_shardings=shardings)(key)


def one_program_of_a_batch_of_keys(key, shardings):
    n = len(shardings)

    @functools.partial(jax.jit, out_shardings=tuple(shardings))
    def make():
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(n))
        return tuple(jax.random.normal(keys[i], (64, 128)) for i in range(n))

    return make()


def anew_in_each_step(update, w):
    layout = w.sharding
    return lambda w, x: jax.jit(lambda w, x: update(w, x), out_shardings=layout)(w, x)


def eager_and_placed(update, w):
    layout = w.sharding
    return lambda w, x: jax.device_put(update(w, x), layout)


def of_the_first_weights(update, w):
    return jax.jit(lambda _, x: update(w, x), out_shardings=w.sharding)


def for_this_update_alone(update, w):
    return jax.jit(lambda w, x: w - 0.125 * (x.T @ (x @ w)) / 16, out_shardings=w.sharding)


def compiled_and_thrown_away(update, w):
    jax.jit(update, out_shardings=w.sharding)
    return update


def constrained_inside(update, w):
    layout = w.sharding

    @jax.jit
    def step(w, x):
        return jax.lax.with_sharding_constraint(update(w, x), layout)

    return step


def placed_inside(update, w):
    layout = w.sharding
    return jax.jit(lambda w, x: jax.device_put(update(w, x), layout))


def placed_behind(update, w):
    layout, compiled = w.sharding, jax.jit(update)
    return lambda w, x: jax.device_put(compiled(w, x), layout)


def compiled_once_for_all(update, w):
    layout, made = w.sharding, {}

    def step(w, x):
        if "program" not in made:
            made["program"] = jax.jit(update, out_shardings=layout).lower(w, x).compile()
        return made["program"](w, x)

    return step


def through_numpy(update, w):
    step = jax.jit(update)
    return lambda a, x: jax.device_put(np.asarray(step(a, x)), w.sharding)


def with_the_first_batch(update, w):
    program, kept = jax.jit(update, out_shardings=w.sharding), []

    def step(w, x):
        kept.append(x)
        return program(w, next(x for x in kept if not isinstance(x, jax.core.Tracer)) if len(kept) > 1 else x)

    return step


def run_twice(update, w):
    program = jax.jit(update, out_shardings=w.sharding, donate_argnums=0)

    def step(w, x):
        program(w, x)
        return program(w, x)

    return step


def whole_inside(key, i, s):
    everywhere = NamedSharding(s.mesh, P())
    return jax.jit(lambda key: jax.lax.with_sharding_constraint(whole(key, i), everywhere), out_shardings=s)(key)


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex03.bytes_of_sum: [
        (of_sum(count=lambda n: (n - 1) / n / n), "you divide by n once more"),
        (of_sum(width=8), "a float32 takes 4 bytes, not 8"),
        (of_sum(count=math.log2), "that is a tree's"),
        (of_sum(passes=1), "the 2 of an all-reduce is missing"),
        (of_sum(count=lambda n: 1), "(n - 1)/n is missing"),
        (
            of_sum(passes=1, count=lambda n: 1),
            "that is what a device puts in: 2 (n - 1)/n is 1 for n = 2, or if // rounds",
        ),
        (of_sum(count=lambda n: (n - 1) // n), "(n - 1) // n is 0"),
        (of_sum(passes=1, count=lambda n: 2 * (n - 1) // n), "or if // rounds"),
        (
            of_sum(count=lambda n: n - 1),
            "in a step a device sends an n-th of what it puts in, not all of it; or: that is",
        ),
        (lambda shape, cuts, axis: math.prod(cuts) * of_sum()(shape, cuts, axis), "what all 35 devices send together"),
        (
            of_sum(held=lambda shape, cuts, axis: shape[axis] // cuts[axis]),
            "you count along the axis that you add up; the other axes are left",
        ),
        (
            of_sum(passes=1, count=lambda n: n - 1),
            "1,680 bytes, 3.5 times too large: that is what an all-gather sends, (n - 1) times what a device puts in",
        ),
        (of_sum(width=1), "that counts numbers"),
        (of_sum(held=lambda shape, cuts, axis: math.prod(shape) // shape[axis]), "that is the whole result"),
        (of_sum(held=lambda shape, cuts, axis: math.prod(shape)), "that is the whole array"),
        (of_sum(held=lambda shape, cuts, axis: math.prod(shape) // math.prod(cuts)), "that is a device's block"),
        (
            of_sum(held=lambda shape, cuts, axis: math.prod(shape) // shape[axis] // cuts[axis]),
            "you cut the result by the axis that is gone",
        ),
        (over_all, "the devices along the axis that you add up, not all of them"),
        (next_axis, "you took the cuts of another axis"),
        (
            lambda shape, cuts, axis: of_sum()(shape, cuts, len(shape) - 1 - axis),
            "bytes_of_sum((42, 350), (7, 5), 0): you say 38.4 bytes",
        ),
        (lambda shape, cuts, axis: of_sum()(shape, cuts, axis) or 8, "whom would a device have to ask?"),
        (lambda shape, cuts, axis: 8, "you say 8 bytes, 60 times too small"),
        (lambda shape, cuts, axis: [of_sum()(shape, cuts, axis)], "expected one number, of bytes"),
    ],
    ex03.bytes_of_gradients: [
        (
            gradients(None, None, None, None),
            "data parallel, by w: you say 0 bytes. In x.T @ r the contraction is the batch: who cuts it?",
        ),
        (
            gradients(of_w, of_x, of_w, of_x),
            "data parallel, by x: you say 6,720 bytes. In r @ w.T the contraction is out",
        ),
        (
            gradients(of_w, None, of_w, None),
            "model parallel, by w: you say 9,408 bytes. In x.T @ r the contraction is the batch",
        ),
        (gradients(of_w, None, None, None), "model parallel, by x: you say 0 bytes"),
        (gradients(of_w, None, None, of_w), "so large is w; the gradient has the shape of x"),
        (gradients(of_x, None, None, of_x), "so large is x; the gradient has the shape of w"),
        (gradients(of_r, None, None, of_r), "so large is r; the gradient has the shape of w"),
        (gradients(of_w, None, None, of_x, passes=1), "the 2 of an all-reduce is missing"),
        (gradients(of_w, None, None, of_x, share=1), "(n - 1)/n is missing"),
        (gradients(of_w, None, None, of_x, share=1 / 2), "2 (n - 1)/n is 1 for n = 2, and n is 8"),
        (gradients(of_w, None, None, of_x, passes=1, share=1), "that is what a device puts in"),
        (gradients(of_w, None, None, of_x, share=3 / 4), "n is 8, not 4"),
        (gradients(of_w, None, None, of_x, passes=4), "changes its values, not their bytes"),
        (gradients(of_w, None, None, of_x, passes=1, share=7), "that is what an all-gather sends"),
        (lambda *sizes: [[7 * of_w(*sizes), 0, 0], [7 * of_x(*sizes)]], "expected four numbers of bytes"),
        (gradients(of_w, None, None, of_x, share=7), "a step sends an n-th"),
        (gradients(of_w, None, None, of_x, width=1), "that counts numbers"),
        (gradients(of_w, None, None, of_x, width=1 / 2), "for all of w"),
        (gradients(of_w, None, None), "expected four numbers of bytes"),
        (lambda batch, features, out: 7 * features * out, "expected four numbers of bytes"),
    ],
    ex03.silent_spec: [
        (lambda: P("x", "y"), "cuts heads into 4 pieces, and there are 6. What can cut heads?"),
        (lambda: P(None, ("x", "y")), "cuts heads into 8 pieces, and there are 6"),
        (lambda: P("x"), "each device holds (2, 6, 16, 32), half of the array, not an eighth"),
        (lambda: P("y"), "a quarter of the array, not an eighth. Which axes of the array may 'x' cut?"),
        (lambda: P(None, "x"), "half of the array, not an eighth. Which axes of the array may 'y' cut?"),
        (lambda: P("y", "x", None, None, None), "has 5 entries; the array has 4 axes"),
        (lambda: NamedSharding(jax.make_mesh((2, 4), ("x", "y")), P("y", "x")), "expected a PartitionSpec"),
        (lambda: P(), "all of the array, not an eighth. Which axes of the array may 'x' and 'y' cut?"),
        (
            lambda: P("x", None, "y"),
            "cuts batch and positions; each device sends 18,432 bytes. A score belongs to a position of q and one of k",
        ),
        (lambda: P("x", None, None, "y"), "a device would have partial sums"),
        (lambda: P(None, None, "x", "y"), "A score belongs to a position of q and one of k"),
        (lambda: P("y", None, None, "x"), "cuts batch and features"),
        (lambda: P(None, None, None, ("x", "y")), "partial sums"),
        (lambda: P(("x", "y")), "cuts batch into 8 pieces, and there are 4"),
        (lambda: P("batch", "heads"), "names 'batch'. A spec names axes of the mesh"),
        (lambda: P("x", "x"), "names one mesh axis twice"),
        (lambda: P(None, None, None, None, "x"), "has 5 entries; the array has 4 axes"),
        (lambda: ("x", "y"), "You return ('x', 'y'), a tuple; expected a PartitionSpec"),
    ],
    ex03.make_layers: [
        (layers(whole_inside), "inside of your program each device makes a whole one"),
        (layers(lambda key, i, s: jax.device_put(whole(key, i), s)), "Its own pieces of all 2 layers take 12,288"),
        (layers(lambda key, i, s: jax.jit(lambda w: w, out_shardings=s)(whole(key, i))), "a whole layer takes 32,768"),
        (
            layers(lambda key, i, s: jax.lax.with_sharding_constraint(whole(key, i), s)),
            "Is something made first, and cut afterwards?",
        ),
        (
            layers(lambda key, i, s: jnp.asarray(whole(key, i), device=s)),
            "Is something made first, and cut afterwards?",
        ),
        (
            layers(lambda key, i, s: jnp.zeros((64, 128), device=s) + whole(key, i)),
            "Is something made first, and cut afterwards?",
        ),
        (layers(from_a_callback), "Is something made first, and cut afterwards?"),
        (
            lambda key, shardings: [
                jax.device_put(w, s)
                for w, s in zip(
                    jax.jit(lambda key: [whole(key, i) for i in range(len(shardings))])(key), shardings, strict=True
                )
            ],
            "Is something made first",
        ),
        (layers(the_same_piece_everywhere), "two of its blocks hold the same numbers"),
        (layers(a_key_for_each_piece), "Layer 0 differs in"),
        (in_layout(lambda key, i: jax.random.normal(key, (64, 128))), "Layer 0 holds the numbers of the key itself"),
        (in_layout(lambda key, i: whole(key, i + 1)), "Layer 0 holds the numbers of fold_in(key, 1)"),
        (in_layout(lambda key, i: whole(jax.random.key(0, impl="rbg"), i)), "holds the numbers of jax.random.key(0)"),
        (in_layout(lambda key, i: whole(key, i).T), "Layer 0 has shape (128, 64)"),
        (
            lambda key, shardings: jax.jit(lambda key: [whole(key, i) for i in range(len(shardings))])(key),
            "Layer 0 is laid out as cpu:0; expected P(None, 'y') on a 2 x 4 mesh ('x', 'y'). It is whole, on one device",
        ),
        (
            lambda key, shardings: jax.jit(lambda key: whole(key, 0), in_shardings=shardings[0])(key),
            "in_shardings speaks of what comes in",
        ),
        (lambda key, shardings: in_layout(whole)(key, shardings[:1]), "1 of them; expected a list of 2 arrays"),
        (lambda key, shardings: in_layout(whole)(key, shardings[::-1]), "That is the layout of layer 1"),
        (
            layers(lambda key, i, s: jax.jit(lambda key: jax.device_put(whole(key, i), s))(key)),
            "A jax.device_put inside a compiled program does not bind the layout",
        ),
        (
            in_layout(lambda key, i: jax.random.uniform(jax.random.fold_in(key, i), (64, 128))),
            "Layer 0 holds uniform numbers",
        ),
        (in_layout(folded_again), "Layer 1 holds the numbers of a key that was folded in once for each layer"),
        (two_at_any_rate, "lists of different lengths. In this case there is 1 in `shardings`"),
        (
            lambda key, shardings: jnp.stack(in_layout(whole)(key, shardings)),
            "an array of shape (2, 64, 128), which has one layout",
        ),
    ],
    ex03.steady: [
        (placed_behind, "all weights were copied to the host"),
        (through_numpy, "all weights were copied to the host"),
        (with_the_first_batch, "After step 3"),
        (
            lambda update, w: jax.jit(update, out_shardings=w.sharding, donate_argnums=1),
            "Your step donates x, the batch",
        ),
        (run_twice, "an array is donated and then used again"),
        (
            lambda update, w: jax.jit(
                update, out_shardings=NamedSharding(make_mesh((2, 4), ("x", "y")), w.sharding.spec)
            ),
            "lies on a 2 x 4 mesh; it came in on a 4 x 2 one",
        ),
        (lambda update, w: update, "ran on the arrays themselves, operation by operation"),
        (
            lambda update, w: jax.jit(update),
            "w is laid out as P('x', 'y') on a 2 x 4 mesh ('x', 'y'); expected P(None, 'y') on a 2 x 4 mesh ('x', 'y'), as "
            "it came in. So the compiler lays out what `update` returns, where nothing binds it.",
        ),
        (lambda update, w: jax.jit(update, in_shardings=(w.sharding, None)), "where nothing binds it"),
        (lambda update, w: jax.jit(update, donate_argnums=0), "where nothing binds it"),
        (
            lambda update, w: jax.jit(update, out_shardings=w.sharding.spec),
            "A spec does not say of which mesh it speaks",
        ),
        (
            lambda update, w: jax.jit(update, in_shardings=w.sharding, out_shardings=w.sharding),
            "That is in_shardings: it refuses w or x as they are laid out here",
        ),
        (
            lambda update, w: jax.jit(update, out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0])),
            "w and x lie on eight devices",
        ),
        (
            lambda update, w: jax.jit(lambda x, w: update(w, x), out_shardings=w.sharding),
            "`update` gets an array of shape (16, 32) as w",
        ),
        (
            lambda update, w: jax.jit(lambda w, x: update(update(w, x), x), out_shardings=w.sharding),
            "has been updated 2 times",
        ),
        (
            lambda update, w: jax.jit(update, out_shardings=NamedSharding(w.sharding.mesh, P())),
            "as it came in. So each device holds all of it.",
        ),
        (
            lambda update, w: jax.jit(update, out_shardings=NamedSharding(w.sharding.mesh, P(None, "y"))),
            "expected P() on a 4 x 2 mesh ('x', 'y'), as it came in. So was the w of an earlier case",
        ),
        (anew_in_each_step, "In step 2 the Python code of `update` ran again"),
        (eager_and_placed, "ran on the arrays themselves, operation by operation"),
        (placed_inside, "where nothing binds it"),
        (compiled_and_thrown_away, "ran on the arrays themselves, operation by operation"),
        (of_the_first_weights, "After step 2, with w laid out by P(None, 'y') and x by P(None, 'x'), w is what it was"),
        (for_this_update_alone, "Your step never calls `update`"),
        (
            lambda update, w: jax.jit(lambda w, x: w, out_shardings=w.sharding),
            "After step 1, with w laid out by P(None, 'y') and x by P(None, 'x'), w differs in",
        ),
        (lambda update, w: None, "expected a function step(w, x)"),
        (
            lambda update, w: jax.jit(update, out_shardings=w.sharding)(w, w[:2].T),
            "Your function raised TypeError: dot_general",
        ),
        (lambda update, w: w.sharding, "expected a function step(w, x)"),
    ],
}

# exercise: right answers in unusual forms
RIGHT = {
    ex03.bytes_of_sum: [with_numpy, as_a_fraction, in_two_halves, on_jax],
    ex03.bytes_of_gradients: [
        gradients(of_w, None, None, of_x),
        gradients_as_an_array,
        gradients_by_loops,
        gradients_on_jax,
        lambda *sizes: ((7 * of_w(*sizes), 0), (0, 7.0 * of_x(*sizes))),
    ],
    ex03.silent_spec: [
        lambda: P("y", "x"),
        lambda: P(("y",), ("x",)),
        lambda: P(["y"], "x", None),
        lambda: P("y", "x", None, None),
        lambda: jax.sharding.PartitionSpec(*"yx"),
    ],
    ex03.make_layers: [
        in_layout(whole),
        constrained,
        from_split_keys,
        with_static_shape,
        one_program_of_a_batch_of_keys,
    ],
    ex03.steady: [
        constrained_inside,
        compiled_once_for_all,
        lambda update, w: jax.jit(update, out_shardings=w.sharding, donate_argnums=0),
        lambda update, w: functools.partial(jax.jit, out_shardings=w.sharding)(update),
        lambda update, w: jax.jit(update, in_shardings=(w.sharding, None), out_shardings=w.sharding),
        lambda update, w: jax.jit(jax.jit(update), out_shardings=NamedSharding(w.sharding.mesh, w.sharding.spec)),
    ],
}

# exercise: [(a change of the solution, why it computes the same)]
SAME = {}

# prediction: (what the cell counts, [(plausible wrong guess, what must be said)])
GUESSES = {
    ex03.disagree: (
        {
            "P('x') + P()": "no",
            "P('x') + P(None, 'y')": "no",
            "P(None, 'y') + P(None, ('y', 'x'))": "no",
            "P('x') + P('y')": "yes",
        },
        [
            (("yes", None, None, None), "each device holds a block of both operands"),
            (
                (None, True, None, None),
                "P('x') + P(None, 'y'): your guess, yes, is not so: it is no: each device holds a block",
            ),
            ((None, None, "yes", None), "each device holds a block of both operands"),
            ((None, None, None, "no"), "device 5 holds rows 2 and 3 of one operand and row 1 of the other"),
            ("yes", "expected 4 answers"),
        ],
    ),
    ex03.holders: (
        {"pieces": 4, "devices": 2, "partner": 2},
        [
            ((8, None, None), "should be 4: the rows are gone"),
            ((2, None, None), "x cut the rows, and these are added up"),
            ((1, None, None), "the columns stay cut"),
            ((None, 1, None), "both devices that add up"),
            ((None, 4, None), "parts of the same columns"),
            ((None, None, 7), "who has the rest of these columns?"),
            ((None, None, 5), "should be 2: device 6 has rows 2 and 3 of columns 4 and 5"),
        ],
    ),
    ex03.ring: (
        1.5,
        [
            (3, "a half takes n - 1 = 3 steps"),
            (6, "you count steps"),
            (0.75, "that is the first half alone"),
            (2, "a half takes n - 1 steps, not n"),
            (1, "and there are two halves"),
            (1.75, "that would be eight devices"),
        ],
    ),
    ex03.row_sums: (
        {"row sums": 12, "variances": 16},
        [
            ((8, None), "the partners of a row lie along y"),
            ((6, None), "that is the first half of the ring alone"),
            ((3, None), "a float32 takes 4 bytes"),
            ((24, None), "not its whole block"),
            ((14, None), "not all eight"),
            ((16, None), "(n - 1)/n is missing"),
            ((192, None), "not the whole table"),
            ((None, 8), "a distance needs the mean, so the means go around first"),
            ((None, 24), "there are two rounds, for the means and for the squares"),
            ((None, 32), "two numbers in each round"),
            ((None, 12), "along x, and there are two rounds"),
            ((None, 4), "a float32 takes 4 bytes"),
        ],
    ),
    ex03.spread: (
        8,
        [
            (4, "so little would do, but this compiler makes an all-reduce"),
            (1, "a float32 takes 4 bytes"),
            (12, "nothing moves after the all-reduce"),
            (0, "half of each column is on another device"),
        ],
    ),
    ex03.inner: (
        {"sent": 16_384, "held": 16_384},
        [
            ((8_192, None), "a device puts in partial sums of the whole result"),
            ((32_768, None), "2 (n - 1)/n is 1 for n = 2"),
            ((0, None), "each device has only half of every sum"),
            ((None, 2_048), "no axis of the result is cut"),
            ((None, 8_192), "no axis of the result is cut"),
        ],
    ),
    ex03.products: (
        {
            "row 2": "all-reduce",
            "row 3": "all-gather",
            "row 4": "all-gather",
            "row 5": "nothing",
            "row 6": "nothing",
            "row 7": "collective-permute",
        },
        [
            (("all-gather", None, None, None, None, None), "y cuts the contraction of both"),
            ((None, "nothing", None, None, None, None), "only a stretch of its rows"),
            ((None, "All-Reduce", None, None, None, None), "It could be done, and what it costs comes later"),
            ((None, None, "all-reduce", None, None, None), "the stretches of a device do not match"),
            ((None, None, None, "all-reduce", None, None), "who cuts the contraction?"),
            ((None, None, None, None, "all-gather", None), "x cuts the columns of b"),
            ((None, None, None, None, None, "all-gather"), "so the second rule says, and it would do"),
            ((None, None, None, None, None, "all-reduce"), "that comes second"),
            ((None, None, None, None, None, "nothing"), "x cuts the contraction of b"),
            (
                (None, None, None, None, "psum", None),
                "expected 'nothing', 'all-reduce', 'all-gather', 'reduce-scatter'",
            ),
        ],
    ),
    ex03.turn: (
        {"same": 128, "adds up from": 80},
        [
            ((64, None), "half of what the sum sends"),
            ((256, None), "set 96 k equal to 192 n"),
            ((32, None), "set 96 k equal to 192 n"),
            ((None, 128), "should be 80: from there on it would pay"),
            ((None, 96), "this compiler adds up already"),
            ((None, 64), "there it gathers"),
        ],
    ),
    ex03.worth: (
        16,
        [
            (24, "only the longer one counts on each side"),
            (32, "the other way still sends 16,384"),
            (4, "the gather still computes four times as long"),
            (1, "both ways compute longer than they send"),
        ],
    ),
    ex03.batch: (
        {"P('batch')": 0, "P(None, 'features')": 32, "P('batch', 'features')": 8},
        [
            ((32, None, None), "each dot product is whole on its device"),
            ((None, 8, None), "you count numbers"),
            ((None, 16, None), "a device has parts of all eight products"),
            ((None, 0, None), "each dot product is in two parts"),
            ((None, None, 32), "a device has parts of two products"),
            ((None, None, 2), "you count numbers"),
        ],
    ),
    ex03.doors: (
        {"NumPy": "laid out anew", "nobody": "laid out anew", "blocks": "refused"},
        [
            (("refused", None, None), "so the program gives it one"),
            ((None, "taken as it is", None), "an uncommitted array may be moved"),
            ((None, None, "laid out anew"), "a committed array is where somebody has put it"),
            ((None, None, "an error"), "expected 'laid out anew', 'taken as it is' or 'refused'"),
        ],
    ),
    ex03.moved: (
        64,
        [
            (16, "so much has to arrive"),
            (96, "that would be along y"),
            (112, "what a device lacks of the whole is 64 bytes"),
            (0, "of four rows a device holds two"),
        ],
    ),
    ex03.donated: (
        {"kept": 16_384, "donated": 8_192, "for bfloat16": 12_288, "for P('y')": 24_576},
        [
            ((8_192, None, None, None), "there are an argument and a result"),
            ((131_072, None, None, None), "w is cut into eight"),
            ((None, 16_384, None, None), "the result lies where the argument was"),
            ((None, 0, None, None), "the result has to be somewhere"),
            ((None, None, 8_192, None), "there would be room for it in w"),
            ((None, None, 4_096, None), "but it is not reused"),
            ((None, None, 16_384, None), "takes 2 bytes"),
            ((None, None, None, 8_192), "a quarter of w does not fit where an eighth was"),
            ((None, None, None, 16_384), "so the argument stays"),
        ],
    ),
    ex03.programs: (
        {"entries": 5, "compiled": 4},
        [
            ((6, None), "values do not count"),
            ((4, None), "P('x', None) is written differently from P('x')"),
            ((3, None), "whether an array is committed counts as well"),
            ((None, 5), "means the same as P('x')"),
            ((None, 3), "an uncommitted table and one committed to the same device are two programs"),
            ((None, 6), "values do not count"),
        ],
    ),
    ex03.captured: (
        4_194_304,
        [
            (524_288, "a constant comes without its layout"),
            (0, "it stands in the program"),
            (1_048_576, "you count numbers"),
            (33_554_432, "the program is one"),
        ],
    ),
}
