"""Exercises and predictions of lesson 00, JAX for people who know NumPy (or PyTorch)."""

import jax
import jax.numpy as jnp

from exercises.framework import Edit, Mistake, Prediction, WhenMessage, exercise

outside = Prediction(
    9,
    "the index is moved to the nearest element: the last, which is the score of 9",
    {10: "there is no score of 10", 0: "0 is at the other end"},
)
knows_nothing = Prediction(
    2.3026,
    "minus the natural logarithm of 1/10",
    {
        -2.3026: "minus the logarithm, so that being wrong counts up",
        0.1: "1/10 is the probability; the loss is minus its logarithm",
        1: "that is the logarithm to the base 10; log is the natural one",
        3.3219: "that is in bits; log is the natural logarithm",
    },
    within=0.01,
)
runs = Prediction(
    3,
    "a new shape or dtype is traced anew; new values are not",
    {
        5: "Python does not run in each call; which of them look alike?",
        1: "one trace serves one shape and one dtype",
        2: "shape and dtype both count: 8 images are new, and so are integers",
        4: "five other images differ in their values alone, and while it is traced x has none",
    },
    "runs",
)
programs = Prediction(
    7,
    "1, 2, 4, 8, 16, 32, 64",
    {6: "1 is a power of two as well", 8: "64 is the last that is needed", 64: "that is without padding"},
    "programs",
)
third_at_zero = Prediction(
    -2,
    "the second is -2 t (1 - t²); differentiate again, and put t = 0",
    {
        0: "that is the second derivative: the slope is at its peak there",
        2: "the sign: the slope 1 - t² has its peak at 0, so it bends downwards",
        1: "that is the first derivative",
    },
)
a_number = Prediction(False, "`where` chooses a result; the other way is differentiated all the same")
raise_at_if = Prediction(
    2,
    "an `if` needs one value: jit has none, vmap three, grad one",
    {3: "grad alone runs your Python with a value", 1: "vmap holds three values, and one `if` cannot go three ways"},
    "of three",
)


def in_jit(f, *args):
    return jax.jit(f)(*args)


@exercise(
    "Shapes must not depend on n. jnp.arange(len(losses)) < n is a mask. Choose with jnp.where: 0 times nan is nan.",
    cases=lambda: {
        "[1, 2, 6, 5], n = 3": (jnp.array([1.0, 2.0, 6.0, 5.0]), 3),
        "[1, 2, 6, nan], n = 1": (jnp.array([1.0, 2.0, 6.0, jnp.nan]), 1),
        "[4, 2, 7, 3, inf, nan, 9, -1], n = 4": (jnp.array([4.0, 2.0, 7.0, 3.0, jnp.inf, jnp.nan, 9.0, -1.0]), 4),
    },
    run=in_jit,
    mistakes=[
        Mistake(
            Edit("/ n", "/ len(losses)"), "the padded rows count in the denominator; the mean is over the n real ones"
        ),
        Mistake(Edit("jnp.where(real, losses, 0)", "losses"), "the padded rows are added up as well"),
        Mistake(Edit("< n", "<= n"), "row n is the first of the padding: rows are counted from 0"),
        Mistake(lambda losses, n: losses[:n].mean(), "a slice by n has a shape that depends on a value"),
    ],
)
def mean_of_real(losses, n):
    """Return the mean of the first n of losses (size,), where n is traced."""
    real = jnp.arange(len(losses)) < n
    return jnp.where(real, losses, 0).sum() / n


def value_and_slope(f, v):
    value, gradient = jax.jit(jax.value_and_grad(f))(v)
    plain = jax.grad(f)(v)  # the compiler can hide a nan
    return {"length": value, "gradient": gradient, "gradient without jit": plain, "length is 0": bool(value == 0)}


@exercise(
    "Put 1 in the place of every number if all of them are 0, take the root, and choose 0 after that.",
    cases=lambda: {
        str(v): (jnp.array(v),)
        for v in (
            [3.0, -4.0, 12.0],
            [0.3, 0.0, -0.4],
            [0.0, 6.0, -8.0],
            [3e-12, 0.0, -4e-12],
            [1.0, -5.0, 4.0],
            [0.0, 0.0, 0.0],
        )
    },
    run=value_and_slope,
    mistakes=[
        Mistake(
            Edit("jnp.where(zero, 1.0, v)", "v"), "the root of 0 is computed all the same, and its slope is infinite"
        ),
        Mistake(Edit(".sum())", ".sum() + 1e-6)"), "what is added under the root changes the length of a short vector"),
        Mistake(
            Edit("return jnp.where(zero, 0.0, jnp.sqrt((harmless**2).sum()))", "return jnp.sqrt((harmless**2).sum())"),
            "that is the root of what you put in the place of 0; choose the result, too",
        ),
        Mistake(Edit("(v == 0).all()", "(v == 0).any()"), "a single 0 makes no vector 0"),
        Mistake(Edit("(v == 0).all()", "jnp.abs(v).max() < 1e-6"), "a short vector is not 0"),
        Mistake(
            lambda v: jnp.sqrt((v**2).sum()) if (v != 0).any() else 0.0,
            "while JAX traces, v has no values to choose by",
        ),
    ],
)
def length(v):
    """Return the length of v (n,), a number; at 0 it is 0 and so is its gradient."""
    zero = (v == 0).all()
    harmless = jnp.where(zero, 1.0, v)
    return jnp.where(zero, 0.0, jnp.sqrt((harmless**2).sum()))


def batches_to_clip():
    """Losses, parameters and batches; of the gradients some are longer than `most`, some shorter, one is 0."""

    def line(params, x, y):
        return (x @ params["w"] + params["b"] - y) ** 2

    def nested(params, x, y):
        return y * (x @ params[0] @ jnp.array([1.0, -2.0, 0.5])) ** 2 + (params[1][0] * x).sum() * y

    lines_x = jnp.array([[1.0, 0, 2], [3, 1, 0], [0, 2, 1], [2, 2, 2], [0.5, 0.25, 0]])
    lines_y = jnp.array([1.0, 2, 0.25, -3, -2])
    x, y = jnp.array([[1.0, 2], [0, 0], [-0.5, 0.25], [3, -1]]), jnp.array([0.5, 2, 1, -2])
    tree = [jnp.array([[1.0, 0, 2], [0.5, 1, 0]]), (jnp.array([0.5, -1]),)]
    return {
        "a line, params {'b': (), 'w': (3,)}, most = 6.5": (
            line,
            {"b": jnp.array(0.5), "w": jnp.array([1.0, -1, 2])},
            lines_x,
            lines_y,
            6.5,
        ),
        "params [(2, 3), ((2,),)], most = 2": (nested, tree, x, y, 2.0),
    }


def after_the_mean(loss, params, x, y, most):
    pulls = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    mean = jax.tree.map(lambda leaf: leaf.mean(axis=0), pulls)
    size = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(mean)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, most / size), mean)


def leaf_by_leaf(loss, params, x, y, most):
    def one(x, y):
        def shorten(leaf):
            return leaf * jnp.minimum(1, most / jnp.sqrt((leaf**2).sum()))

        return jax.tree.map(shorten, jax.grad(loss)(params, x, y))

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))


def as_arrays(f, *args):
    """NumPy's numbers are as good as JAX's here; where they live is not asked."""
    return jax.tree.map(jnp.asarray, f(*args))


@exercise(
    "Write it for one example first: jax.grad, the root of the sum over jax.tree.leaves, jax.tree.map. Then jax.vmap that, "
    "and take the mean of each leaf over axis 0.",
    cases=batches_to_clip,
    run=as_arrays,
    mistakes=[
        Mistake(after_the_mean, "you shorten the mean; shorten each example's gradient, then take the mean"),
        Mistake(leaf_by_leaf, "you shorten each leaf by its own length; the length is that of all leaves"),
        Mistake(
            Edit("jnp.minimum(1, most / size)", "(most / size)"),
            "the short gradients are stretched; only what is longer is to change",
        ),
        Mistake(Edit("jnp.sqrt(", "("), "that is the sum of the squares; its root is the length"),
        Mistake(Edit(".mean(axis=0)", ".sum(axis=0)"), "that is the sum over the batch; expected the mean"),
        Mistake(Edit("jnp.minimum(1, most / size)", "1"), "no gradient is shortened"),
        WhenMessage("inconsistent sizes", "the parameters are the same for every example: map x and y only"),
    ],
)
def clipped(loss, params, x, y, most):
    """Return the mean of the examples' gradients, each of length `most` at most."""

    def one(x, y):
        pull = jax.grad(loss)(params, x, y)
        size = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(pull)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, most / size), pull)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))
