"""Exercises of notebook 00, JAX in twenty minutes."""

from __future__ import annotations

from numbers import Real

import jax
import jax.numpy as jnp
import numpy as np

from utils.exercises import Wrong, exercise, number, same


def _judge_huber(answer):
    def program(x):
        value = answer(x)
        if isinstance(value, bool) or not isinstance(value, (Real, jax.Array)):
            raise Wrong(f"You return {value!r}; expected a number. Does every way end with `return`?")
        return value

    def compiled(x):
        try:
            return number(jax.jit(program)(x), said=f"huber({x}) is")
        except Wrong as wrong:
            if "callable" in str(wrong) or "missing 1 required positional argument" in str(wrong):
                raise Wrong(
                    f"{wrong} jax.lax.cond takes the condition, two functions, and then their argument."
                ) from wrong
            if "Tracer" not in str(wrong) and "Concretization" not in str(wrong):
                raise
            if "TracerArrayConversion" in str(wrong):
                raise Wrong(
                    f"{wrong}. NumPy's own functions compute with values, and while JAX traces, x has none. Take jnp's."
                ) from wrong
            raise Wrong(
                f"{wrong} While JAX traces, x has no value, so Python can neither choose by it nor turn it into a number of "
                "its own. Record both ways, and let the program choose."
            ) from wrong

    # By hand: 0.5 x² inside, |x| - 0.5 outside; both are 0.5 at 1 and at -1.
    for x, want in [(0.5, 0.125), (-0.5, 0.125), (3.0, 2.5), (-3.0, 2.5), (1.0, 0.5), (-1.0, 0.5)]:
        got = compiled(x)
        if np.isclose(got, want, atol=1e-5):
            continue
        if x == -3 and np.isclose(got, 4.5):
            why = "That is 0.5 x²: your condition holds for every negative x. It is |x| that must be at most 1."
        elif x == -3 and np.isclose(got, -3.5):
            why = "The linear part has |x|, not x: the function is the same on both sides of 0."
        elif abs(x) == 3 and np.isclose(got, abs(x)):
            why = "Without the - 0.5 the function jumps at 1, where 0.5 x² is 0.5."
        elif abs(x) == 0.5 and np.isclose(got, 0.0):
            why = "That is |x| - 0.5, which belongs where |x| is above 1. Are the two ways exchanged?"
        else:
            why = "0.5 x² where |x| <= 1, |x| - 0.5 elsewhere."
        raise Wrong(f"huber({x}) is {got:g}; expected {want:g}. {why}")


@exercise(_judge_huber, "jnp.where takes a condition, the result where it holds, and the result where it does not.")
def huber(x):
    """Return 0.5 x² where |x| <= 1, else |x| - 0.5; must survive jax.jit."""
    return jnp.where(jnp.abs(x) <= 1, 0.5 * x**2, jnp.abs(x) - 0.5)


# The fifth power at 2, by hand: 32, 5 · 16, 20 · 8, 60 · 4, 120 · 2, 120.
_ORDERS = [32.0, 80.0, 160.0, 240.0, 240.0, 120.0]


def _judge_derivative(answer):
    got = []
    for n in range(len(_ORDERS)):
        function = answer(lambda x: x**5, n)
        if not callable(function):
            raise Wrong(f"derivative(f, {n}) is {function!r}; expected a function, as jax.grad returns one.")
        try:
            value = function(2.0)
        except RecursionError as error:
            raise Wrong(
                f"The function that derivative(f, {n}) returns calls itself without end. A lambda looks a name up when it is "
                "called, and by then the name holds the lambda itself. jax.grad(f) needs no lambda around it."
            ) from error
        except Exception as error:
            line = (str(error).splitlines() or [""])[0]
            raise Wrong(f"derivative(f, {n})(2.0) raised {type(error).__name__}: {line}") from error
        got.append(number(value, said=f"derivative(f, {n})(2.0) is"))
    if np.allclose(got, _ORDERS, rtol=1e-4):
        return
    n = next(n for n in range(len(_ORDERS)) if not np.isclose(got[n], _ORDERS[n], rtol=1e-4))
    if np.allclose(got, got[0]):
        why = "It is the same for every n: how often do you differentiate?"
    elif np.allclose(got[2:], 80.0 ** np.arange(2, len(_ORDERS)), rtol=1e-4):
        why = "That is a power of the first derivative. The second derivative is the derivative of the first: compose."
    elif any(np.isclose(got[n], value, rtol=1e-4) for value in _ORDERS):
        order = int(np.argmin(np.abs(np.array(_ORDERS) - got[n])))
        why = f"That is the derivative of order {order}. Count the rounds, and what n = 0 should give: f itself."
    else:
        why = "Begin with f, and apply jax.grad n times."
    raise Wrong(f"For f(x) = x**5, derivative(f, {n})(2.0) is {got[n]:g}; expected {_ORDERS[n]:g}. {why}")


@exercise(_judge_derivative, "jax.grad returns a function, so you can give it a name and apply jax.grad to it again.")
def derivative(f, n):
    """Return the function that is the n-th derivative of f, which takes one number."""
    for _ in range(n):
        f = jax.grad(f)
    return f


def _judge_gradient_norms(answer):
    w = np.float32([1, -2, 3])
    x = np.float32([[1, 0, 2], [3, 1, 0], [0, 2, 1], [2, 2, 2]])
    y = np.float32([1, 2, 3, 1])

    def loss(w, x, y):
        return (x @ w - y) ** 2

    by_w = 2 * (x @ w - y)[:, None] * x  # by hand, (batch, features)
    want = np.sqrt((by_w**2).sum(axis=1))
    try:
        got = answer(loss, jnp.asarray(w), jnp.asarray(x), jnp.asarray(y))
    except Wrong as wrong:
        if "inconsistent sizes" in str(wrong):
            raise Wrong(
                f"{wrong} w has 3 elements, the batch 4: w is the same for every example, so map only x and y. in_axes says so."
            ) from wrong
        if "scalar-output" in str(wrong):
            raise Wrong(
                f"{wrong} You gave the loss of one example a whole batch. Map the gradient over the batch with jax.vmap."
            ) from wrong
        raise
    shape = np.shape(got) if isinstance(got, (Real, np.ndarray, jax.Array)) else None
    if shape == ():
        raise Wrong(
            f"You return one number, {got}; expected one for each of the 4 examples. Gradient first, example by example; no mean, no sum over the batch."
        )
    if shape == (3,):
        raise Wrong(
            "You return 3 numbers, one for each weight; expected one for each of the 4 examples. The sum of squares runs over the weights, axis 1."
        )
    if shape == (4, 3):
        raise Wrong("You return (4, 3) numbers: the gradient of each example. Now the length of each row.")
    if shape != (4,) or got.dtype.kind != "f":
        same(got, want)
    if np.allclose(got, want**2, rtol=1e-4):
        raise Wrong(
            f"Your first value is {got[0]:g}, expected {want[0]:g}: the sum of squares. Its square root is the length."
        )
    by_x = np.abs(2 * (x @ w - y)) * np.sqrt((w**2).sum())
    if np.allclose(got, by_x, rtol=1e-4):
        raise Wrong(
            f"Your first value is {got[0]:g}, expected {want[0]:g}: that is the gradient by x. jax.grad differentiates by the first argument unless argnums says otherwise."
        )
    if np.allclose(got, want / np.sqrt(3), rtol=1e-4):
        raise Wrong(
            f"Your first value is {got[0]:g}, expected {want[0]:g}: the mean of the squares instead of their sum."
        )
    if not np.allclose(got, want, rtol=1e-4):
        raise Wrong(
            f"Your first value is {got[0]:g}, expected {want[0]:g}. The length is the root of the sum of squares."
        )
    # d/dw of sinh(x w - y) / 8 is cosh(x w - y) x / 8.
    small = np.abs(np.cosh((x @ w - y) / 8) / 8) * np.sqrt((x**2).sum(axis=1))
    got = answer(lambda w, x, y: jnp.sinh((x @ w - y) / 8), jnp.asarray(w), jnp.asarray(x), jnp.asarray(y))
    if np.shape(got) != (4,) or not np.allclose(got, small, rtol=1e-3):
        raise Wrong(
            "Right for the squared error, and wrong for another loss: you do not use the `loss` that you are given."
        )


@exercise(
    _judge_gradient_norms,
    "jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)) gives (batch, features). jnp.linalg.norm(..., axis=1) gives the lengths.",
)
def gradient_norms(loss, w, x, y):
    """Return the length of the gradient by w for each example: (batch,)."""
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)
    return jnp.linalg.norm(gradients, axis=1)


def _is_key(value):
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def _drawn(answer, key, shape):
    got = answer(key, shape)
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        what = f"{len(got)} things" if isinstance(got, (tuple, list)) else repr(got)
        raise Wrong(f"You return {what}; expected three things: weights, noise, key.")
    for name, value in zip(("weights", "noise"), got, strict=False):
        if not isinstance(value, (np.ndarray, jax.Array)) or _is_key(value) or value.shape != shape:
            what = f"an array of shape {value.shape}" if hasattr(value, "shape") else repr(value)
            raise Wrong(f"Your {name}: {what}; expected random numbers of shape {shape}.")
    if not _is_key(got[2]) or got[2].shape:
        what = f"an array of shape {got[2].shape}" if hasattr(got[2], "shape") else repr(got[2])
        raise Wrong(f"The third thing that you return is {what}; expected one key, made by jax.random.split.")
    return got


def _judge_draw_two(answer):
    key, shape = jax.random.key(7), (40, 50)
    weights, noise, later = _drawn(answer, key, shape)
    if np.array_equal(weights, noise):
        raise Wrong(
            "Weights and noise are equal, number by number: you drew both with the same key. One key, one draw."
        )
    if not np.array_equal(weights, _drawn(answer, key, shape)[0]):
        raise Wrong(
            "Called twice with one key, you give two results, so you draw from a hidden state. All that is random must come from the key."
        )
    if np.array_equal(weights, _drawn(answer, jax.random.key(8), shape)[0]):
        raise Wrong(
            "Two different keys give the same weights: you draw with a key of your own instead of the caller's."
        )
    if np.array_equal(jax.random.key_data(later), jax.random.key_data(key)):
        raise Wrong("You return the key that came in, and it is used up. The caller would draw your numbers once more.")
    other = _drawn(answer, jax.random.key(8), shape)[2]
    if np.array_equal(jax.random.key_data(later), jax.random.key_data(other)):
        raise Wrong("Two different keys give the same key for later: make it from the one that came in.")
    if abs(np.corrcoef(np.ravel(weights), np.ravel(noise))[0, 1]) > 0.1:
        raise Wrong(
            "Your noise is made of your weights: know the one and you know the other. Draw each with a key of its own."
        )
    children = [child for count in (2, 3, 4) for child in jax.random.split(later, count)]
    for name, value in (("weights", weights), ("noise", noise)):
        if any(np.array_equal(jax.random.normal(child, shape), value) for child in children):
            raise Wrong(
                f"The key that you return has been split already: when the caller splits it, the key of your {name} comes out again. "
                "Return one that nothing was made from."
            )
    again = jax.random.normal(later, shape)
    for name, value in (("weights", weights), ("noise", noise)):
        if np.array_equal(again, value):
            raise Wrong(
                f"You return the key with which you drew the {name}, so the caller's next draw gives the same numbers. Split into three."
            )
        if np.array_equal(jax.random.normal(key, shape), value):
            raise Wrong(
                f"The {name} are drawn with the key that came in, from which the other keys are made as well. Split it first, then use only what comes out."
            )
        mean, spread = float(np.mean(value)), float(np.std(value))
        if not abs(mean) < 0.1 or not abs(spread - 1) < 0.1:
            raise Wrong(
                f"Your {name} have the mean {mean:.2f} and the standard deviation {spread:.2f}; expected 0 and 1, as of jax.random.normal."
            )


@exercise(_judge_draw_two, "jax.random.split(key, 3) gives three keys: one for each draw, one for the caller.")
def draw_two(key, shape):
    """Return (weights, noise, key): two independent normal arrays, and a fresh key."""
    key, for_weights, for_noise = jax.random.split(key, 3)
    weights = jax.random.normal(for_weights, shape)
    noise = jax.random.normal(for_noise, shape)
    return weights, noise, key


def _tree(scale):
    """A pytree of a list of dictionaries and a tuple; every leaf a multiple of the scale."""
    layers = [{"w": jnp.full((2, 3), 1.0 * scale), "b": jnp.full(3, 2.0 * scale)}]
    return {"layers": layers, "rest": (jnp.full(2, -1.0 * scale),)}


def _equal(got, want):
    return all(np.allclose(a, b, atol=1e-5) for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True))


def _judge_nesterov(answer):
    # In units of a leaf's scale: p = 1, v = 2, g = 3, rate 0.25, fade 0.5. By hand: v = 1 + 3 = 4, p = 1 - 0.25 (3 + 2).
    trees = _tree(1.0), _tree(2.0), _tree(3.0)
    before = jax.tree.leaves(trees)
    try:
        got = answer(*trees, 0.25, 0.5)
    except Wrong as wrong:
        if "TypeError" not in str(wrong):
            raise
        raise Wrong(
            f"{wrong}. The arguments are pytrees, here lists and tuples in a dictionary: jax.tree.map computes leaf by leaf."
        ) from wrong
    after = jax.tree.leaves(trees)
    if len(after) != len(before) or any(a is not b for a, b in zip(after, before, strict=True)):
        raise Wrong(
            "After the call, a pytree that you were given holds other arrays: you assigned into the caller's list or dictionary. Build new ones: jax.tree.map does."
        )
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Wrong(f"You return {type(got).__name__} {got!r}; expected two pytrees, parameters and velocity.")
    for name, tree in zip(("parameters", "velocity"), got, strict=True):
        if jax.tree.structure(tree) != jax.tree.structure(trees[0]):
            raise Wrong(
                f"Your {name} are no pytree of the form of the given ones. jax.tree.map(function, tree, tree, ...) keeps the form."
            )
        for leaf, want in zip(jax.tree.leaves(tree), before, strict=False):
            if np.shape(leaf) != want.shape:
                raise Wrong(f"A leaf of your {name} has shape {np.shape(leaf)}; expected {want.shape}.")
    params, velocity = got
    for wrong, why in [
        ((4.0, -0.25), "Parameters and velocity are exchanged: return the parameters first."),
        ((None, 2.0), "The velocity that you return is the old one, so it never gathers speed."),
        (
            (None, 1.75),
            "The velocity holds rate · g. In this form v gathers the gradients as they are, and the rate comes in once, in p.",
        ),
        (
            (None, 2.5),
            "The velocity holds (1 - fade) · g, an average of gradients. Here v ← fade · v + g, the gradient in full.",
        ),
        ((None, -2.0), "In the velocity, g has the wrong sign: v ← fade · v + g, and p moves against it."),
        ((0.25, None), "The parameters moved by rate · g alone: plain gradient descent, without the velocity."),
        (
            (0.0, None),
            "The parameters moved by rate · v: that is momentum as in the lesson. Looking ahead means g + fade · v, with the new v.",
        ),
        ((2.25, None), "The parameters moved uphill: p ← p - rate · (...), with a minus."),
        ((-0.75, None), "The parameters themselves fade. fade belongs to the velocity; p keeps all of its value."),
        ((0.5, None), "The parameters moved by rate · fade · v; the gradient itself is missing: g + fade · v."),
    ]:
        if all(value is None or _equal(tree, _tree(value)) for tree, value in zip(got, wrong, strict=True)):
            raise Wrong(why)
    for name, tree, want in (("velocity", velocity, 4.0), ("parameters", params, -0.25)):
        if not _equal(tree, _tree(want)):
            leaf = np.ravel(jax.tree.leaves(tree)[0])[0]
            raise Wrong(
                f"With p = 2, v = 4, g = 6, rate 0.25 and fade 0.5, your {name} comes out as {leaf:g}; expected {2 * want:g}."
            )


@exercise(
    _judge_nesterov,
    "Two lines of jax.tree.map: the first makes the velocity from velocity and grads, the second the parameters from params, grads and the new velocity.",
    copies=False,
)
def nesterov(params, velocity, grads, rate, fade):
    """Return (params, velocity) after one step, as new pytrees of the same form."""
    velocity = jax.tree.map(lambda v, g: fade * v + g, velocity, grads)
    params = jax.tree.map(lambda p, g, v: p - rate * (g + fade * v), params, grads, velocity)
    return params, velocity
