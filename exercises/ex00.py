"""Exercises and predictions for lesson 00, JAX for people who know NumPy (or PyTorch)."""

import jax
import jax.numpy as jnp

from exercises.framework import Edit, MessageHint, Mistake, Prediction, exercise

outside = Prediction(
    9,
    "an index outside the array is clamped to the nearest valid one: here that's 9, the last",
    {10: "there is no score for 10", 0: "that's the score at the other end"},
)
knows_nothing = Prediction(
    2.3026,
    "that's minus the natural logarithm of 1/10",
    {
        -2.3026: "the loss is minus the logarithm, so that a worse prediction has a higher loss",
        0.1: "1/10 is the probability; the loss is minus its logarithm",
        1: "that's the logarithm to base 10; log is the natural logarithm",
        3.3219: "that's in bits; log is the natural logarithm",
    },
    rel_tol=0.01,
)
runs = Prediction(
    3,
    "JAX traces again for a new shape or dtype, but not for new values",
    {
        5: "Python doesn't run in every call; which of the calls look the same to JAX?",
        1: "one trace serves only one shape and one dtype",
        2: "shape and dtype both count: 200 images need a new trace, and so do integers",
        4: "100 different images differ only in their values, which x doesn't have during tracing",
    },
    "runs",
)
programs = Prediction(
    7,
    "the padded sizes are 1, 2, 4, 8, 16, 32 and 64",
    {
        6: "1 is a power of two as well",
        8: "the largest size that's needed is 64",
        64: "that's the number of programs without padding",
    },
    "programs",
)
third_at_zero = Prediction(
    -2,
    "the second derivative is -2 t (1 - t²); differentiate again, and set t = 0",
    {
        0: "that's the second derivative: the slope is at its peak there",
        2: "check the sign: the slope 1 - t² has its peak at 0, so it bends downwards",
        1: "that's the first derivative",
    },
)
a_number = Prediction(False, "`where` chooses a result, but the other branch is differentiated all the same")
raise_at_if = Prediction(
    2,
    "an `if` needs a single value: jit has none, vmap has three, and grad has one",
    {
        3: "only grad runs your Python code with a concrete value",
        1: "vmap holds three values, and one `if` can't take three branches",
    },
    "of three",
)


def run_in_jit(f, *args):
    return jax.jit(f)(*args)


@exercise(
    "Shapes mustn't depend on n, so use a mask: jnp.arange(len(losses)) < n. Select with jnp.where instead of "
    "multiplying, because 0 times nan is nan.",
    cases=lambda: {
        "[1, 2, 6, 5], n = 3": (jnp.array([1.0, 2.0, 6.0, 5.0]), 3),
        "[1, 2, 6, nan], n = 1": (jnp.array([1.0, 2.0, 6.0, jnp.nan]), 1),
        "[4, 2, 7, 3, inf, nan, 9, -1], n = 4": (jnp.array([4.0, 2.0, 7.0, 3.0, jnp.inf, jnp.nan, 9.0, -1.0]), 4),
    },
    run=run_in_jit,
    mistakes=[
        Mistake(
            Edit("/ n", "/ len(losses)"),
            "your denominator counts the padded rows, but the mean is over the n real ones",
        ),
        Mistake(Edit("jnp.where(real, losses, 0)", "losses"), "your sum includes the padded rows"),
        Mistake(Edit("< n", "<= n"), "row n is the first row of the padding, because rows are counted from 0"),
        Mistake(lambda losses, n: losses[:n].mean(), "the shape of losses[:n] would depend on a traced value"),
    ],
)
def mean_of_real(losses, n):
    """Return the mean of the first n elements of losses (size,); n is traced."""
    real = jnp.arange(len(losses)) < n
    return jnp.where(real, losses, 0).sum() / n


def value_and_slope(f, v):
    value, gradient = jax.jit(jax.value_and_grad(f))(v)
    plain = jax.grad(f)(v)  # also without jit, because the compiler can hide a nan
    return {"length": value, "gradient": gradient, "gradient without jit": plain, "length is 0": bool(value == 0)}


@exercise(
    "If all elements are 0, replace each one with 1 before you take the square root, and select 0 afterwards.",
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
            Edit("jnp.where(zero, 1.0, v)", "v"),
            "JAX still differentiates the square root at 0, where its slope is infinite",
        ),
        Mistake(Edit(".sum())", ".sum() + 1e-6)"), "a term added under the root changes the length of a short vector"),
        Mistake(
            Edit("return jnp.where(zero, 0.0, jnp.sqrt((harmless**2).sum()))", "return jnp.sqrt((harmless**2).sum())"),
            "at 0, that's the length of your replacement vector; select the result too",
        ),
        Mistake(Edit("(v == 0).all()", "(v == 0).any()"), "a vector with some zeros isn't necessarily the zero vector"),
        Mistake(Edit("(v == 0).all()", "jnp.abs(v).max() < 1e-6"), "a short vector isn't the zero vector"),
        Mistake(
            lambda v: jnp.sqrt((v**2).sum()) if (v != 0).any() else 0.0,
            "during tracing, v has no values to branch on",
        ),
    ],
)
def length(v):
    """Return the length of v (n,). At v = 0, both the length and its gradient are 0."""
    zero = (v == 0).all()
    harmless = jnp.where(zero, 1.0, v)
    return jnp.where(zero, 0.0, jnp.sqrt((harmless**2).sum()))


def batches_to_clip():
    """Make losses, parameters and batches. Some gradients are longer than `most`, some are shorter, and one is 0."""

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


def clip_the_mean(loss, params, x, y, most):
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    mean = jax.tree.map(lambda leaf: leaf.mean(axis=0), gradients)
    size = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(mean)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, most / size), mean)


def clip_each_leaf(loss, params, x, y, most):
    def one(x, y):
        def shorten(leaf):
            return leaf * jnp.minimum(1, most / jnp.sqrt((leaf**2).sum()))

        return jax.tree.map(shorten, jax.grad(loss)(params, x, y))

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))


def as_arrays(f, *args):
    """Call `f` and convert its result to JAX arrays, so that an answer may also return NumPy arrays."""
    return jax.tree.map(jnp.asarray, f(*args))


@exercise(
    "Write it for one example first, with jax.grad, the root of the sum of squares over jax.tree.leaves, and "
    "jax.tree.map. Then apply jax.vmap, and take the mean of each leaf over axis 0.",
    cases=batches_to_clip,
    run=as_arrays,
    mistakes=[
        Mistake(clip_the_mean, "you clip the mean; clip each example's gradient, then take the mean"),
        Mistake(clip_each_leaf, "you clip each leaf by its own length, but the length is that of all leaves together"),
        Mistake(
            Edit("jnp.minimum(1, most / size)", "(most / size)"),
            "you stretch the short gradients; change only those that are longer than `most`",
        ),
        Mistake(Edit("jnp.sqrt(", "("), "that's the sum of the squares; the length is its root"),
        Mistake(Edit(".mean(axis=0)", ".sum(axis=0)"), "that's the sum over the batch, not the mean"),
        Mistake(Edit("jnp.minimum(1, most / size)", "1"), "no gradient is shortened"),
        MessageHint("inconsistent sizes", "the parameters are the same for every example: map only x and y"),
    ],
)
def clipped(loss, params, x, y, most):
    """Return the mean of all examples' gradients, each clipped to length `most`."""

    def one(x, y):
        gradient = jax.grad(loss)(params, x, y)
        size = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, most / size), gradient)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))
