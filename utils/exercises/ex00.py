"""Exercises and predictions of notebook 00, JAX for people who know NumPy (or PyTorch)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from utils.exercises import Choice, Prediction, Wrong, exercise, number, several, shown
from utils.exercises.keys import is_key, key_numbers, used_twice, uses_of_keys

past_the_end = Choice(
    {
        "an error": "nothing raises; a compiled program has no good way to stop in the middle",
        "nan": "that is what jnp.take gives",
        "0": "nothing is filled in; the index is moved",
        "10": "nothing is there to hold it",
        "4": "",
    },
    free=True,
)
lines = Prediction(
    "lines",
    {
        5 / 3: "Python does not run in each call; which of them look alike?",
        1 / 3: "one trace serves one shape and one dtype",
        2 / 3: "shape and dtype both count: five numbers are another case, and so are integers",
        4 / 3: "three ones and three zeros differ in their values alone, and while it is traced x has none",
    },
)
in_the_key = Prediction(
    "runs",
    {},
    own={
        "values": {2: "values are not in the key: while tracing, there are none"},
        "number": {0.5: "a Python number has no dtype of its own, and jnp.float32 has one"},
        "form": {0.5: "the two arrays are alike; what holds them is not"},
        "name": {0.5: "the values are alike; one of them comes by its place, and then by its name"},
        "static": {0.5: "a static argument is handed over as it is, and the program is compiled for it"},
    },
)
in_a_loop = Prediction(
    "runs",
    {},
    own={
        "jit(same)": {3: "`same` is one object, and the cache is asked for it, not for what `jit` returned"},
        "jit(lambda x: same(x))": {1 / 3: "each round makes a new lambda; the cache knows objects, not their text"},
    },
)
fused = Prediction(
    "operations",
    {},
    own={
        "gelu(x)": {
            8: "that is one by one",
            2: "x is read twice, by one loop",
            3: "all eight go element by element",
            0: "one is left to do them all",
        },
        "gelu(x @ x)": {
            0.5: "the CPU's compiler leaves a product of matrices an operation of its own",
            4.5: "that is one by one",
            1.5: "one before or after the product is enough: it is the first of the nine",
        },
    },
)
third_at_zero = Prediction(
    "",
    {
        0.0: "that is the second derivative: at 0 the slope is at its peak, neither growing nor shrinking",
        -1.0: "the sign: the slope has its peak at 0, so it bends downwards",
        -0.5: "1 is the slope itself",
        0.5: "the sign is right; (1 - t²)(6 t² - 2) at t = 0",
    },
)
slope = Choice(
    {
        "an error": "nothing raises, which is what makes it hard to find",
        "0": "`where` chooses a result; the derivative of the root was computed all the same",
        "0.5": "-1 is not positive",
        "nan": "",
    },
    free=True,
)
batch_lines = Prediction(
    "lines",
    {
        121: "that would be a loop over the points; the function is traced, once, for one point",
        2: "grad needs no run of its own: it works on what was recorded",
        0: "to record the operations, Python has to run",
    },
)
ways = Prediction("functions", {0.5: "one batch is one program; which one should it skip, when the elements disagree?"})
each_gradient = Choice(
    {
        "(3,)": "that is the gradient of the mean, for one candidate",
        "(5, 3)": "that is for one candidate; here there are two",
        "(2, 3)": "that is each candidate's gradient of the mean; here each of 5 examples has one of its own",
        "(5, 2, 3)": "the outer vmap is over the candidates, and its axis comes first",
        "(2, 5)": "that is one number for each pair; a gradient has one for each weight",
        "(10, 3)": "each vmap adds an axis of its own; nothing is flattened",
        "(3, 5, 2)": "a mapped axis comes first, and the outer one before the inner one",
        "(2, 5, 3)": "",
    },
    free=True,
)
different = Prediction(
    "numbers",
    {
        5 / 3: "Python draws, and Python runs only while it is traced",
        1 / 3: "for ever is once for each trace: another shape or dtype is traced anew, and draws anew",
        2 / 3: "two zeros have another shape, and the integer another dtype",
        4 / 3: "the last 0.0 looks like the first",
    },
)
shared = Prediction(
    "numbers",
    {
        0: "another shape is no new draw",
        0.5: "not the first row alone: all of the smaller layer",
        1 / 6: "not the first number alone",
        2: "the smaller layer has six",
    },
)
equal_scores = Prediction(
    "",
    {
        -1: "minus the logarithm, so that being wrong counts up",
        0.1 / math.log(10): "1/10 is the probability, the loss is minus its logarithm",
        1 / math.log(10): "that is the logarithm to the base 10; log is the natural one",
        math.log2(10) / math.log(10): "that is in bits, to the base 2; log is the natural one",
        10 / math.log(10): "the loss is a logarithm",
    },
    within=0.01,
)
kept = Prediction(
    "numbers",
    {},
    own={
        "plain": {
            58_442: "the rule adds -0.1 g and forgets it; the parameters are not its own",
            1: "the rate is part of the rule, not of its state",
        },
        "momentum": {
            2: "the parameters themselves are not in the rule's state",
            1 / 58_442: "each parameter has a velocity of its own",
        },
        "Adam": {
            1 / 2: "two means: of the gradient, and of its square",
            3 / 2: "the parameters themselves are not in the rule's state",
            2 / 116_885: "each parameter has two means of its own",
        },
    },
    within=1e-4,
)
changed = Choice(
    {
        "start": "each step of plain JAX and of Optax returned new arrays",
        "both": "`start` holds arrays, and arrays do not change; the model took them over and then got others",
        "neither": "`optimizer.update(model, grads)` returns nothing: it changes the model in place",
        "model": "",
    }
)


IN_FULL = (1, 2, 3, 5, 6, 9, 11, 17, 24, 33, 64)


def _judge_in_few_lengths(answer):
    compiled, vectors, tracing, traceable = set(), [], False, True

    def total(x):
        if isinstance(x, jax.core.Tracer):
            if tracing:
                vectors.append(x)
                return jnp.sum(x)
            raise Wrong(
                "You call total inside of a jit (or vmap, or grad) of your own, and that is compiled anew for each length."
            )
        vectors.append(np.asarray(x))
        if vectors[-1].ndim != 1:
            raise Wrong(f"total gets {shown(x)}; it takes a vector.")
        compiled.add((len(vectors[-1]), jnp.result_type(x)))
        return jnp.asarray(_total(vectors[-1]), jnp.float32)

    def traced(n):
        """Whether the answer can be traced, which compiles nothing; if so, what total gets is in `vectors`."""
        nonlocal tracing, traceable
        tracing = True
        try:
            jax.eval_shape(lambda x: answer(total, x), jax.ShapeDtypeStruct((n,), np.float32))
            compiled.update((len(x), x.dtype) for x in vectors)
        except Exception:  # NumPy's functions, say
            traceable = False
        finally:
            tracing = False
        return traceable and bool(vectors)

    for n in range(1, 65):  # all: an eighth length can stand in one place alone
        vectors.clear()
        if n in IN_FULL or not traceable or not traced(n):
            vectors.clear()
            _judge_in_full(answer, total, vectors, n)
        if len(vectors[-1]) > 2 * n:
            raise Wrong(
                f"Of a vector of length {n}, total gets one of length {len(vectors[-1])}: more than twice as long."
            )
        if len(compiled) > 7:
            lengths = ", ".join(str(length) for length, _ in sorted(compiled, key=lambda one: one[0]))
            raise Wrong(
                f"For vectors of 1 to {n} numbers total is compiled {len(compiled)} times, for the lengths {lengths}; "
                f"for all of 1 to 64, seven at most.{_often(vectors)}"
            )


def _judge_in_full(answer, total, vectors, n):
    """Raise Wrong where the answer is another than total gives for x (n,); `vectors` is what total got."""
    x = np.float32(np.random.default_rng(n).normal(size=n))
    try:
        got = answer(total, jnp.asarray(x))
    except Wrong as wrong:
        if "negative values" in str(wrong):
            raise Wrong(f"{wrong}. x has {n} numbers here, and the length that you choose is less.") from wrong
        if "integral type" in str(wrong) or "'float' object" in str(wrong):
            raise Wrong(f"{wrong} How many zeros there are must be an int, and yours is a float.") from wrong
        raise
    if not vectors:
        raise Wrong("You never call total.")
    vector = vectors[-1]
    if np.shape(got) == vector.shape:
        raise Wrong("You return a vector, as total gets it; expected one number, the result of total.")
    finite = np.isfinite(vector).all()  # else the result of total is nan, which names no slip
    if not finite or not math.isclose(number(got, "one number, the result of total"), _total(x), rel_tol=1e-4):
        raise Wrong(
            f"Of a vector of length {n}, total gets one of length {len(vector)}, and {_what_differs(vector, x)}"
            f"{_often(vectors)}"
        )


def _often(vectors):
    return f" You call total {len(vectors)} times for one x; once is enough." if len(vectors) > 1 else ""


def _total(x):
    """Something that zeros at the end do not change, and other numbers or places do."""
    return float((np.arange(1, 1 + len(x)) * x**2).sum())


def _what_differs(vector, x):
    n = len(x)
    if len(vector) < n:
        return "numbers are missing."
    if np.allclose(vector[:n], x):
        if not vector[n:].any():
            return "that is the right vector. Return what total returns."
        return f"behind x it is filled up with {', '.join(f'{v:g}' for v in vector[n : n + 3])}; expected zeros."
    if any(np.allclose(vector[i : i + n], x) for i in range(1, 1 + len(vector) - n)):
        return "zeros stand in front; at the end they do not change the result."
    return "its numbers are others than those of x."


@exercise(
    _judge_in_few_lengths,
    "1, 2, 4, 8, 16, 32, 64 are seven lengths. np.pad(x, (0, zeros)) adds zeros at the end; (n - 1).bit_length() is the "
    "number of doublings.",
)
def in_few_lengths(total, x):
    """Return total(x), with x (n,) filled up with zeros to one of seven lengths."""
    length = 2 ** (len(x) - 1).bit_length()
    return total(np.pad(x, (0, length - len(x))))


def _traceable(answer):
    """The answer, with what is to be said where it asks a tracer for its value."""

    def call(*args):
        try:
            return answer(*args)
        except Wrong as wrong:
            said = str(wrong)
            if "TracerArrayConversion" in said:
                raise Wrong(
                    f"{said} NumPy's own functions compute with values, and while JAX traces there are none. Take jnp's."
                ) from wrong
            if "TracerBool" in said or "Concretization" in said:
                raise Wrong(
                    f"{said} While JAX traces, v has no values, so Python can neither choose by them nor make numbers of its own "
                    "of them. Let the program choose."
                ) from wrong
            if "NonConcreteBoolean" in said:
                raise Wrong(
                    f"{said} How many elements a mask takes is a value, and shapes must be known while tracing."
                ) from wrong
            raise

    return call


_VECTORS = (  # by hand: the vector, its length
    ([3.0, -4.0, 12.0], 13.0),
    ([0.3, 0.0, -0.4], 0.5),
    ([0.0, 6.0, -8.0], 10.0),
    ([1.0, -5.0, 4.0], math.sqrt(42)),  # of numbers that add up to 0
    ([3e-12, 0.0, -4e-12], 5e-12),
    ([6e-18, 0.0, -8e-18], 1e-17),
    ([-2e16, 1e16, 2e16], 3e16),
)


_ADDED = "is something added under the root, or is a bound in the way?"


def _why_another_length(got, vector, want):
    """The slip that gives this length, or ''."""
    sizes, zeros = list(map(abs, vector)), vector.count(0)

    def is_(value):
        return math.isclose(got, value, rel_tol=1e-3)

    slips = [
        (is_(want**2), "That is the sum of the squares; the length is its root."),
        (is_(sum(sizes)), "That is the sum of the sizes, |v|; squares first."),
        (is_(max(sizes)), "That is the largest size; all the numbers count."),
        (
            want > 1e-9 and sum(vector) and is_(math.sqrt(abs(sum(vector)))),
            "That is the root of the sum of the numbers; squares first.",
        ),
        (is_(want / math.sqrt(3)), "That is the root of the mean of the squares; expected their sum."),
        (zeros and is_(math.hypot(want, math.sqrt(zeros))), "A 1 stands for each single 0, and counts."),
        (
            want < 1e-9,
            f"What is far smaller than 1 is not 0: {_ADDED}",
        ),
        (
            is_(math.hypot(*(v for v in vector if v > 0))) or is_(math.hypot(*(v for v in vector if v < 0))),
            "The numbers of one sign are lost.",
        ),
        (got == 0, f"0 is the length where all the numbers are 0, and here {3 - zeros} of 3 are not."),
    ]
    return next((f" {words}" for given, words in slips if given), "")


_CHOOSE = "That is the root of what you put in the place of 0; choose the result, too."


def _judge_length(answer):
    answer = _traceable(answer)
    zero = jnp.zeros(3)
    for vector, want in _VECTORS:
        got = number(answer(jnp.array(vector)), said=f"length({vector}) is")
        if not math.isclose(got, want, rel_tol=1e-3):
            why = _why_another_length(got, vector, want)
            raise Wrong(f"length({vector}) is {got:g}; expected {want:g}.{why}")
    at_zero = number(answer(zero), said="length of three zeros is")
    if at_zero:
        why = f"{_ADDED[0].upper()}{_ADDED[1:]}"
        if at_zero > 1e-3:  # so much would have spoiled the tiny vector
            why = _CHOOSE
        raise Wrong(f"length of three zeros is {at_zero:g}; expected 0. {why}")
    both = jax.jit(jax.vmap(jax.value_and_grad(answer)))
    lengths = [want for _, want in _VECTORS]
    batch = np.float32([*(vector for vector, _ in _VECTORS), [0, 0, 0]])
    values, gradients = both(jnp.asarray(batch))
    by_hand = np.append(batch[:-1] / np.array(lengths)[:, None], np.zeros((1, 3)), axis=0)
    for vector, gradient, want in zip(batch, np.asarray(gradients), by_hand, strict=True):
        if np.allclose(gradient, want, atol=1e-3):
            continue
        why = ""
        if np.isnan(gradient).any() and not vector.any():
            why = " The length is right there, but it comes by way of the root of 0, whose slope is infinite."
        elif not gradient.any():
            why = " Nothing of v reaches the result: is a gradient stopped?"
        elif np.allclose(gradient, 2 * want, atol=1e-3):
            why = " That is twice as long as it should be: is the gradient stopped in one place?"
        spelled = ", ".join(f"{float(g):g}" for g in gradient)
        raise Wrong(
            f"At [{', '.join(f'{float(v):g}' for v in vector)}] the gradient of your length is [{spelled}]; expected "
            f"[{', '.join(f'{float(w):g}' for w in want)}].{why}"
        )
    if values[-1] > 0:  # so small that it is 0 where each operation runs by itself
        raise Wrong(f"Compiled, the length of three zeros is {float(values[-1]):g}; expected 0. {_CHOOSE}")
    if not np.allclose(values, [*lengths, 0], rtol=1e-3, atol=0):
        raise Wrong(f"Compiled over a batch, your lengths are {np.asarray(values)}; one by one they were right.")
    # As jax.grad gives it by itself: the compiler, allowed to simplify, makes 0 of 0 * nan.
    zero = jax.device_put(zero, jax.devices("cpu")[0])
    literally = jax.jit(jax.grad(answer)).lower(zero).compile({"xla_disable_hlo_passes": "algsimp"})
    at_zero = np.asarray(literally(zero))
    if at_zero.any():
        raise Wrong(
            f"jax.grad of your length is {at_zero} at three zeros; expected zeros. Only the compiler hides it, by leaving out a "
            "product with 0: the slope of the root of 0 is infinite, and 0 times that is nan."
        )


@exercise(
    _judge_length,
    "The root must never see a 0 that counts: put something harmless in its place with one jnp.where, and choose the result with another.",
)
def length(v):
    """Return the length of v (n,), a number; at 0 it is 0 and so is its gradient."""
    squares = (v**2).sum()
    harmless = jnp.where(squares > 0, squares, 1.0)
    return jnp.where(squares > 0, jnp.sqrt(harmless), 0.0)


def _drawn(answer, key, shape):
    got = several(answer(key, shape), 3, "three things: weights, noise, key")
    for name, value in zip(("weights", "noise"), got, strict=False):
        if not isinstance(value, (np.ndarray, jax.Array)) or is_key(value) or value.shape != shape:
            why = " The order is weights, noise, key." if is_key(value) else ""
            raise Wrong(f"Your {name}: {shown(value)}; expected random numbers of shape {shape}.{why}")
        if value.dtype.kind != "f":
            raise Wrong(f"Your {name} are of dtype {value.dtype}; expected float32, as jax.random.normal draws them.")
    if not is_key(got[2]) or got[2].shape:
        why = ""
        if getattr(got[2], "dtype", None) == np.uint32:
            why = " Those are the numbers of a key, not the key."
        elif is_key(got[2]) and got[2].shape == (1,):
            why = " That is an array of one key; take the key, [0]."
        raise Wrong(
            f"The third thing that you return is {shown(got[2])}; expected one key, made by jax.random.split.{why}"
        )
    return got


def _judge_draw_two(answer):
    key, shape = jax.random.key(7), (40, 50)
    one, same, other = (_drawn(answer, jax.random.key(seed), shape) for seed in (7, 7, 8))
    for i, name in enumerate(("weights", "noise")):
        if not np.array_equal(one[i], same[i]):
            raise Wrong(
                f"Called twice with one key, you return other {name}, so you draw them from a hidden state. All that is random must come from the key."
            )
        rows = np.asarray(one[i])
        if rows.std() and ((rows == rows[:1]).all() or (rows == rows[:, :1]).all()):
            raise Wrong(f"Your {name}: all rows are equal, or all columns. Draw all the numbers, of shape {shape}.")
        if np.array_equal(one[i], other[i]):
            raise Wrong(
                f"Two different keys give the same {name}: they come of a key or a seed of your own instead of the caller's key."
            )
    if key_numbers(one[2]) == key_numbers(other[2]):
        raise Wrong("Two different keys give the same key for later: make it from the one that came in.")
    if np.array_equal(one[0], one[1]):
        raise Wrong(
            "Weights and noise are equal, number by number: you drew both with the same key. One key, one draw."
        )
    if key_numbers(one[2]) == key_numbers(key):
        raise Wrong("You return the key that came in, and it is used up. The caller would draw your numbers once more.")
    flat = [np.asarray(value).ravel() for value in one[:2]]
    together = abs(np.corrcoef(*flat)[0, 1]) if all(values.std() for values in flat) else 0
    if together < 0.9:  # else noise of another size is made of the weights: that it is not normal is not the slip
        for name, values in zip(("weights", "noise"), flat, strict=True):
            _refuse_unless_normal(values, name)
    _refuse_reuse(answer, key, shape, key_numbers(one[2])[0])
    same = np.allclose(*(np.sort(np.abs(values)) for values in flat))
    if same or together > 0.1:
        raise Wrong(
            "Your noise is made of your weights: know the one and you know the other. Draw each with a key of its own."
        )
    common = np.isin(*flat).mean()
    if common > 0.2 and flat[0].itemsize >= 4:  # of 16 bits, many numbers are equal by chance
        raise Wrong(f"{common:.0%} of the numbers of your weights are in the noise as well. Draw each by itself.")


def _refuse_unless_normal(values, name):
    mean, spread = float(values.mean()), float(values.std())
    inside = float((np.abs(values) < 1).mean())  # 0.683 of a normal distribution
    if not abs(mean) < 0.1 or not abs(spread - 1) < 0.1 or not abs(inside - 0.683) < 0.05:
        low, high = float(values.min()), float(values.max())
        even = math.isclose(spread, (high - low) / math.sqrt(12), rel_tol=0.05) and spread > 0
        why = f" They lie evenly between {low:.2f} and {high:.2f}: that is jax.random.uniform." if even else ""
        raise Wrong(
            f"Your {name} {'has' if name == 'noise' else 'have'} the mean {mean:.2f} and the standard deviation {spread:.2f}, and "
            f"{inside:.0%} of the numbers lie between -1 and 1; expected 0, 1 and 68 %, as of jax.random.normal.{why}"
        )


def _refuse_reuse(answer, key, shape, later):
    """Refuse a key that is used twice, and one that is used and handed back."""
    try:
        uses, (weights, noise, _) = uses_of_keys(lambda key: tuple(_drawn(answer, key, shape)), key)
    except Wrong:
        return  # right so far, and nothing that JAX can trace

    def told(i):
        names = [name for name, of in (("weights", weights), ("noise", noise)) if i in of and uses[i].by == "a draw"]
        return f"{uses[i].by}{' of the ' * bool(names)}{' and the '.join(names)}"

    twice = used_twice(uses)
    if twice:
        which = "the one that came in" if uses[twice[0]].key == key_numbers(key)[0] else "one that you made"
        raise Wrong(
            f"You use one key, {which}, {len(twice)} times: for {', then for '.join(map(told, twice))}. A key is good for one "
            "draw or one split."
        )
    used = [i for i, use in enumerate(uses) if use.key == later]
    if used:
        raise Wrong(
            f"The key that you return is used up: you have used it for {told(used[0])}. What the caller makes of it comes out "
            "again; return one that nothing was made from."
        )


@exercise(_judge_draw_two, "jax.random.split(key, 3) gives three keys: one for each draw, one for the caller.")
def draw_two(key, shape):
    """Return (weights, noise, key): two independent normal arrays, and a fresh key."""
    key, for_weights, for_noise = jax.random.split(key, 3)
    weights = jax.random.normal(for_weights, shape)
    noise = jax.random.normal(for_noise, shape)
    return weights, noise, key


def _pulls_of_a_line(params, x, y):
    """By hand, of (x w + b - y)²: 2 (x w + b - y) times x, and times 1. Each leaf (batch, ...)."""
    residual = 2 * (x @ params["w"] + params["b"] - y)
    return {"b": residual, "w": residual[:, None] * x}


def _pulls_of_nested(params, x, y):
    """By hand, of y · (x W u + x' W v) + c · x, x' the reverse of x: y times the tables of x by u and x' by v, and x."""
    return [y[:, None, None] * (x[:, :, None] * _U + x[:, ::-1, None] * _V), (x,)]


_U, _V = np.float32([[1, -2, 0.5], [2, 1, 0]])
_CASES = (  # a loss, its parameters, its gradients by hand, x, y, and a length that some gradients exceed and some do not
    (
        lambda params, x, y: (x @ params["w"] + params["b"] - y) ** 2,
        {"b": np.float32(0.5), "w": np.float32([1, -1, 2])},
        _pulls_of_a_line,
        np.float32([[1, 0, 2], [3, 1, 0], [0, 2, 1], [2, 2, 2], [0.5, 0.25, 0]]),
        np.float32([1, 2, 0.25, -3, -2]),  # of the last, the loss exceeds 6.5 and the gradient does not
        6.5,
    ),
    (
        lambda params, x, y: y * (x @ params[0] @ _U + x[::-1] @ params[0] @ _V) + (params[1][0] * x).sum(),
        [np.zeros((2, 3), np.float32), (np.zeros(2, np.float32),)],
        _pulls_of_nested,
        np.float32([[1, 2], [0, 0], [-0.5, 0.25], [3, -1]]),
        np.float32([0.5, 2, 1, -2]),
        2.0,
    ),
)


def _lengths(leaves, axis=None):
    """The length of each example's gradient, of leaves (batch, ...)."""
    return np.sqrt(sum((leaf.reshape(len(leaf), -1) ** 2).sum(axis=1) for leaf in leaves))


def _times(leaves, factors):
    return [leaf * np.reshape(factors, (-1,) + (1,) * (leaf.ndim - 1)) for leaf in leaves]


def _slips(leaves, most, losses):
    """What plausible slips give, from each example's gradient and loss: (leaves of the result, the words)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = _lengths(leaves)
        shorten = np.minimum(1, most / lengths)
        mean = [leaf.mean(axis=0) for leaf in leaves]
        of_mean = min(1, most / math.sqrt(sum((leaf**2).sum() for leaf in mean)))
        whole = min(1, most / math.sqrt(sum((leaf**2).sum() for leaf in leaves)))
        short = _times(leaves, shorten)
        own = [_times([leaf], np.minimum(1, most / _lengths([leaf])))[0] for leaf in leaves]
        added = sum(_lengths([leaf]) for leaf in leaves)
        averaged = np.sqrt(lengths**2 / sum(leaf[0].size for leaf in leaves))
        flat = np.abs(np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1))
        long = lengths > most
        largest = [np.linalg.norm(leaf, ord=2, axis=(1, 2)) if leaf.ndim == 3 else _lengths([leaf]) for leaf in leaves]

        def by(factors):
            return [leaf.mean(axis=0) for leaf in _times(leaves, factors)]

        return [
            (mean, "No gradient is shortened."),
            (
                [leaf * of_mean for leaf in mean],
                "You shorten the mean; shorten each example's gradient, then take the mean.",
            ),
            (
                [leaf.mean(axis=0) * whole for leaf in leaves],
                "You take one length, that of all the examples' gradients together.",
            ),
            ([leaf.sum(axis=0) for leaf in short], "That is the sum over the batch; expected the mean."),
            (
                [leaf.mean(axis=0) for leaf in own],
                "You shorten each leaf by its own length; the length is that of all leaves.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, most / lengths)],
                "Each gradient gets the length most, and the short ones are stretched; only what is longer is to be changed.",
            ),
            (
                [np.clip(leaf, -most, most).mean(axis=0) for leaf in leaves],
                "You bound each number by most; the length of the whole gradient is to be bounded.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, np.minimum(1, most / lengths**2))],
                "You divide by the sum of the squares; its root is the length.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, np.where(lengths**2 > most, most / lengths, 1))],
                "You hold the sum of the squares against most; its root is the length.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, np.minimum(1, most / added))],
                "You add the lengths of the leaves; add their squares, and take the root of all.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, np.minimum(1, most / averaged))],
                "You take the mean of the squares; the length has their sum.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, 1 / np.maximum(1, lengths))],
                "You make long gradients 1 long: shortened to most, they keep that length.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, np.minimum(1, lengths / most))],
                "You multiply by length / most, which makes the short ones shorter; the quotient is the other way round.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, lengths <= most)],
                "You leave the long gradients out; shorten them.",
            ),
            (
                [leaf.mean(axis=0) for leaf in _times(leaves, np.maximum(1, most / lengths))],
                "You lengthen the short gradients and leave the long ones: minimum and maximum are exchanged.",
            ),
            (
                by(np.minimum(1, most / flat.sum(axis=1))),
                "You take the sum of the sizes, |g|, for the length; it is the root of the sum of the squares.",
            ),
            (by(np.minimum(1, most / flat.max(axis=1))), "You take the largest number for the length; all count."),
            *(
                (
                    by(np.minimum(1, most / _lengths([leaf]))),
                    "You take the length of one leaf; that of all leaves counts.",
                )
                for leaf in leaves
            ),
            (
                by(long * shorten * len(long) / max(1, long.sum())),
                "The mean is over all examples, the short ones as well.",
            ),
            (
                by(shorten * len(long) / max(1, long.sum())),
                "You divide by the number of long ones; the mean is over all examples.",
            ),
            (
                by(np.minimum(1, most / np.sqrt(sum(size**2 for size in largest)))),
                "Of a matrix you take the largest singular value, as ord=2 does; all its numbers count.",
            ),
            (
                by(np.minimum(1, most / lengths.max())),
                "You shorten all by what the longest needs; each gradient has a length of its own.",
            ),
            (
                by(np.minimum(1, most / lengths.mean())),
                "You shorten all by their mean length; each gradient has a length of its own.",
            ),
            (
                [leaf * shorten.mean() for leaf in mean],
                "You multiply the mean gradient by the mean factor; multiply each by its own, then take the mean.",
            ),
            (by(-shorten), "That is minus the result: a gradient, not a step."),
            ([leaf[0] for leaf in short], "That is the first example's gradient; expected the mean of all."),
            (
                by(most / (most + lengths)),
                "You shorten every gradient, the short ones as well: by most / (most + length).",
            ),
            (
                by(losses <= most),
                "You bound the loss by most, and where it is bounded its slope is 0; bound the gradient.",
            ),
        ]


def _judge_clipped(answer):
    for loss, params, pulls, x, y, most in _CASES:
        leaves, form = jax.tree.flatten(pulls(params, x, y))
        given = jax.tree.map(jnp.asarray, params)
        try:
            got = answer(loss, given, jnp.asarray(x), jnp.asarray(y), most)
        except Wrong as wrong:
            if "inconsistent sizes" in str(wrong) or "its rank should be at least 1" in str(wrong):
                raise Wrong(f"{wrong} The parameters are the same for every example: map x and y only.") from wrong
            if "scalar-output" in str(wrong):
                raise Wrong(
                    f"{wrong} The loss is that of one example, and it got a whole batch. Map the gradient over the batch."
                ) from wrong
            if "TracerBool" in str(wrong):
                raise Wrong(
                    f"{wrong} Under vmap a length has no value for Python to choose by. Let the program choose."
                ) from wrong
            if any(
                words in str(wrong)
                for words in ("string indices", "list indices", "KeyError", "not subscriptable", "has no attribute")
            ):
                raise Wrong(f"{wrong} Here params is {_form(params)}; any pytree may come.") from wrong
            raise
        if isinstance(got, Iterator) or jax.tree.structure(got) != form:
            what = (
                shown(got) if isinstance(got, (int, float, np.ndarray, jax.Array, type(None))) else type(got).__name__
            )
            raise Wrong(f"You return {what}; expected a pytree of the form of params, here {_form(params)}.")
        found = jax.tree.leaves(got)
        for leaf, want in zip(found, leaves, strict=True):
            if np.shape(leaf) == want.shape and len(want):
                raise Wrong(
                    f"A leaf of your result has shape {np.shape(leaf)}, one gradient for each of {len(x)} examples; expected their mean."
                )
            if np.shape(leaf) != want.shape[1:]:
                why = " The mean is over the examples, axis 0." if np.shape(leaf)[:1] == (len(x),) else ""
                raise Wrong(
                    f"A leaf of your result has shape {np.shape(leaf)}; expected {want.shape[1:]}, as in params.{why}"
                )
        right = [leaf.mean(axis=0) for leaf in _times(leaves, np.minimum(1, most / np.maximum(_lengths(leaves), 1e-9)))]
        if _close(found, right):
            continue
        if not all(np.isfinite(np.asarray(leaf, float)).all() for leaf in found):
            raise Wrong(
                f"Your result holds {np.asarray(found[0]).ravel()[0]}: one of the gradients is 0, and its length as well. What is divided by it?"
            )
        losses = np.array([loss(params, *example) for example in zip(x, y, strict=True)])
        why = next((words for slip, words in _slips(leaves, most, losses) if _close(found, slip)), "")
        first, want = (float(np.ravel(tree[-1])[0]) for tree in (found, right))
        said = f"With most = {most:g}, for params of the form {_form(params)}, the first number of your last leaf is {first:.4g}; expected {want:.4g}."
        raise Wrong(
            f"{said} {why or 'Compute one example by hand: its gradient, its length, by what it is shortened.'}"
        )


def _form(params):
    return "{'b': (), 'w': (3,)}" if isinstance(params, dict) else "[(2, 3), ((2,),)]"


def _close(found, want):
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(found, want, strict=True))


@exercise(
    _judge_clipped,
    "Write it for one example first: jax.grad, the root of the sum over jax.tree.leaves, jax.tree.map. Then jax.vmap that, and take the mean of each leaf over axis 0.",
)
def clipped(loss, params, x, y, most):
    """Return the mean of the examples' gradients, each of length `most` at most."""

    def one(x, y):
        pull = jax.grad(loss)(params, x, y)
        length = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(pull)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1, most / length), pull)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, y))
