"""Wrong answers that people really give: each must be rejected with a message that names the misconception."""

from __future__ import annotations

import inspect
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.checks import exercises_of
from utils import exercises
from utils.exercises import Wrong, ex01, ex02, ex03, ex04, same
from utils.mesh import make_mesh


def once(f, x, repeats):
    start = time.perf_counter()
    f(x)
    return time.perf_counter() - start


def without_waiting(f, x, repeats):
    f(x)
    start = time.perf_counter()
    for _ in range(repeats):
        f(x)
    return (time.perf_counter() - start) / repeats


def mean_of_all(f, x, repeats):
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(f(x))
        seconds.append(time.perf_counter() - start)
    return sum(seconds) / len(seconds)


def total(f, x, repeats):
    jax.block_until_ready(f(x))
    start = time.perf_counter()
    for _ in range(repeats):
        jax.block_until_ready(f(x))
    return time.perf_counter() - start


def inside_one_jit(x, spectrum, norm, first, second):
    return jax.jit(lambda x: norm(jax.device_put(spectrum(x), second)))(jax.device_put(x, first))


def stays_on_first(x, spectrum, norm, first, second):
    return norm(spectrum(jax.device_put(x, first)))


def moves_only_the_result(x, spectrum, norm, first, second):
    return jax.device_put(norm(spectrum(jax.device_put(x, first))), second)


def adds_copies(shards, shape):
    whole = np.zeros(shape)
    for index, data in shards:
        whole[index] += data
    return whole


def in_device_order(shards, shape):
    whole = np.concatenate([data.ravel() for _, data in shards])
    return whole[: shape[0] * shape[1]].reshape(shape)


def mean_with_padding(rows, sharding):
    return jax.device_put(np.pad(rows, ((0, -len(rows) % 4), (0, 0))), sharding).mean(axis=0)


def drops_the_rest(rows, sharding):
    keep = len(rows) // 4 * 4
    return jax.device_put(rows[:keep], sharding).mean(axis=0) if keep else rows.mean(axis=0)


def no_padding(rows, sharding):
    return jax.device_put(rows, sharding).mean(axis=0)


def weights_then_cut(key, sharding):
    return jax.device_put(jax.random.normal(key, (64, 128)), sharding)


def weights_from_a_callback(key, sharding):
    return jax.make_array_from_callback(
        (64, 128), sharding, lambda index: np.asarray(jax.random.normal(key, (64, 128)))[index]
    )


def weights_anywhere(key, sharding):
    return jax.jit(lambda key: jax.random.normal(key, (64, 128)))(key)


def constrained(*specs):
    """The network with these specs for w1, w2 and the hidden layer; None for no constraint."""

    def network(x, w1, w2, mesh):
        def put(value, spec):
            return value if spec is None else jax.lax.with_sharding_constraint(value, NamedSharding(mesh, spec))

        return put(jax.nn.relu(x @ put(w1, specs[0])), specs[2]) @ put(w2, specs[1])

    return network


def spread(*spec):
    return lambda t, mesh: jax.lax.with_sharding_constraint(t.sum(axis=1), NamedSharding(mesh, P(*spec)))


TABLE = ex03.collectives_of_products.function()


def with_row(i, row):
    return lambda: [*TABLE[:i], row, *TABLE[i + 1 :]]


# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex01.find_devices: [
        (
            lambda platform: jax.devices(platform),
            "Unknown backend: 'tpu' requested. That is how JAX says so; catch it.",
        ),
        (lambda platform: [d for d in jax.devices() if d.platform == platform], "lists the default platform alone"),
        (lambda platform: None if platform == "tpu" else jax.devices(platform), "Return an empty list"),
    ],
    ex01.predict_landings: [
        (lambda: [0, 0, 0, 5, "error"], "Expression 1: you say 0"),
        (lambda: [2, 0, 3, 5, "error"], "to be born on device 3 is not to stay there"),
        (lambda: [2, 0, 0, 3, "error"], "does not move an array that is committed"),
        (lambda: [2, 0, 0, 5, 5], "inherits the commitment"),
        (lambda: 2, "expected a list of five"),
    ],
    ex01.moving_pays: [
        (lambda n, link, here, there: 2 * n**2 / link + 2 * n**3 / there < 2 * n**3 / here, "float32 has 4 bytes"),
        (lambda n, link, here, there: 4 * n**2 / link + 2 * n**3 / there < 2 * n**3 / here, "has to come back too"),
        (lambda n, link, here, there: 8 * n**2 / link < 2 * n**3 / here, "Count the work there"),
        (
            lambda n, link, a, b: 8 * n**2 / link + 2.1 * n**3 / b < 2.1 * n**3 / a,
            "A product has 2 n^3 FLOPs",
        ),
        (lambda n, link, here, there: 8 * n**2 / link + n**3 / there < n**3 / here, "the work here 5.2"),
        (lambda n, link, here, there: n > 1000, "you say False, but there and back take 3.3 µs"),
        (lambda n, link, here, there: 1, "expected True or False"),
    ],
    ex01.steady_seconds: [
        (without_waiting, "timed the dispatch"),
        (once, "You called the function 1 times"),
        (mean_of_all, "pulled the mean up"),
        (total, "total of all calls"),
    ],
    ex01.two_stages: [
        (inside_one_jit, "inside one jit"),
        (stays_on_first, "`norm` was to run on device 5; its input lived on [3]"),
        (moves_only_the_result, "`norm` was to run on device 5"),
        (lambda x, spectrum, norm, first, second: jax.device_put(0.0, second), "You never called `spectrum`"),
    ],
    ex01.count_measurements: [
        (lambda: 6, "that is every call"),
        (lambda: 3, "one too few"),
        (lambda: 2, "A new shape or a new dtype"),
        (lambda: "4", "expected a whole number"),
    ],
    ex02.holder_of: [
        (lambda row, column: 4 * (column // 4) + row // 2, "'x' has 2 devices"),
        (lambda row, column: 2 * (column // 2) + row // 4, "the devices count along 'y' first"),
        (lambda row, column: 2 * (row // 4) + column // 2, "A mesh row has 4 devices"),
        (lambda row, column: 6, "Which block row and which block column"),
        (lambda row, column: row / 4, "expected a whole number"),
    ],
    ex02.spec_for_half: [
        (lambda: P("x"), "P('x'): each device holds (4, 8); that is half, but it is the upper or the lower half"),
        (lambda: P(None, "y"), "a quarter: the mesh axis 'y' has 4 devices"),
        (lambda: P(), "cuts nothing"),
        (lambda: P(None, None, "x"), "does not fit an (8, 8) array"),
        (lambda: (None, "x"), "You return a tuple"),
    ],
    ex02.rebuild: [
        (adds_copies, "4 times too large"),
        (in_device_order, "right values at the wrong places"),
        (lambda shards, shape: np.stack([data for _, data in shards]), "shape (8, 2, 2); expected (4, 8)"),
    ],
    ex02.mean_of_rows: [
        (mean_with_padding, "you divide by 12"),
        (drops_the_rest, "you drop the last 2"),
        (no_padding, "Your function raised"),
        (lambda rows, sharding: rows.mean(axis=0), "You never place the rows"),
    ],
    ex02.read_sharded: [
        (lambda read, sharding: jax.device_put(read(slice(0, 64)), sharding), "You had 64 rows in one place"),
        (
            lambda read, sharding: np.concatenate([read(slice(i, i + 8)) for i in range(0, 64, 8)]),
            "expected a jax.Array",
        ),
        (
            lambda read, sharding: jnp.concatenate([jnp.asarray(read(slice(i, i + 8))) for i in range(0, 64, 8)]),
            "laid out as cpu:0; expected P(('x', 'y'))",
        ),
        (
            lambda read, sharding: jax.device_put(
                np.concatenate([read(slice(i, i + 8)) for i in range(0, 64, 8)]), sharding
            ),
            "You had 64 rows in one place",
        ),
        (
            lambda read, sharding: jax.make_array_from_callback((64, 4), sharding, lambda index: read(index)),
            "read takes a slice of rows",
        ),
    ],
    ex02.price_of_change: [
        (lambda: 64 * 32 * 4, "How much of it did the device hold before?"),
        (lambda: 64 * 64 * 4, "that is the whole array"),
        (lambda: 64 * 32 - 16 * 32, "A float32 takes 4 bytes"),
        (lambda: 8 * 6_144, "the sum over eight devices"),
        (lambda: 5, "new piece - bytes of its overlap"),
    ],
    ex03.price_of_sums: [
        (lambda: (2_048, 3_072), "you let a device put in the whole result"),
        (lambda: (512, 2_048), "An all-reduce sends 2 (n - 1) / n times that"),
        (lambda: (512, 1_536), "a reduce-scatter"),
        (lambda: (128, 768), "A float32 takes 4 bytes"),
        (lambda: (896, 3_584), "you took a group of 8"),
        (lambda: (3_072, 512), "Column sums: you say 3,072, 6 times what is sent"),
        (lambda: 512, "expected two numbers"),
    ],
    ex03.collectives_of_products: [
        (with_row(0, ["all-gather"]), "Who cuts the contraction?"),
        (with_row(1, []), "What does a device hold after its own product?"),
        (with_row(3, []), "What does a device lack before it can multiply?"),
        (with_row(5, ["all-reduce"]), "data parallelism"),
        (with_row(7, []), "7 of 8 rows are right"),
        (with_row(2, ["psum"]), "'psum' is not one of"),
        (lambda: [["all-reduce"]] * 7, "a list of eight lists"),
    ],
    ex03.silent_spec: [
        (lambda: P("batch"), "0.25 of the examples, not an eighth"),
        (lambda: P("batch", "features"), "each dot product is in parts"),
        (lambda: P(), "Which axis of the mesh is idle"),
        (lambda: P("batch", "batch"), "does not fit"),
        (lambda: ("batch", "features"), "expected a PartitionSpec"),
    ],
    ex03.make_weights: [
        (weights_then_cut, "on one device and cut them afterwards"),
        (weights_from_a_callback, "you make the whole array first"),
        (weights_anywhere, "laid out as cpu:0; expected P('x', 'y')"),
        (lambda key, sharding: jax.jit(lambda: jnp.zeros((64, 128)), out_shardings=sharding)(), "values; at [0, 0]"),
        (
            lambda key, sharding: jax.jit(lambda k: jax.random.normal(k, (128, 64)), out_shardings=sharding)(key),
            "shape (128, 64)",
        ),
    ],
    ex03.count_programs: [
        (lambda: 7, "that is every call"),
        (lambda: 5, "Do values count?"),
        (lambda: 3, "Shape, dtype and sharding are all part of the key"),
        (lambda: 4.0, "expected a whole number"),
    ],
    ex04.spread_row_sums: [
        (spread(("y", "x")), "Which order of the two names"),
        (spread("x"), "several devices hold the same"),
        (lambda t, mesh: t.sum(axis=1), "several devices hold the same"),
        (lambda t, mesh: t.sum(axis=0), "differs in"),
    ],
    ex04.lean_mlp: [
        (constrained(None, None, None), "as many as without a constraint"),
        (constrained(P(), None, None), "one of the two weights"),
        (constrained(P(None, "y"), P("y", None), None), "partial sums are added up"),
        (lambda x, w1, w2, mesh: (x @ w1) @ w2, "The result is not relu"),
    ],
    ex04.right_scores: [
        (
            lambda scores, labels: scores[jnp.arange(64), labels],
            "does not know that row i needs only row i",
        ),
        (lambda scores, labels: scores[:, labels], "has shape (64, 64); expected (64,)"),
        (lambda scores, labels: scores.max(axis=1), "differs in"),
    ],
    ex04.typed_product: [
        (lambda a, b, mesh: a @ b, "so JAX asks you for the layout of the result"),
        (lambda a, b, mesh: jnp.matmul(a, b, out_sharding=NamedSharding(mesh, P())), "expected float32[64@x,64]"),
        (lambda a, b, mesh: np.asarray(a) @ np.asarray(b), "is a ndarray; expected a jax.Array"),
    ],
}
ALL = [exercise for module in (ex01, ex02, ex03, ex04) for exercise in exercises_of(module).values()]


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_wrong_answers_are_told_why(exercise):
    assert len(WRONG[exercise]) >= 2
    for answer, message in WRONG[exercise]:
        verdict = exercise.verdict(answer)
        assert verdict.outcome == "wrong"
        assert message in " ".join(verdict.message.split())
        assert verdict.message.startswith("Not yet. ")


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_a_function_that_raises_is_wrong_with_the_last_line(exercise):
    def broken(*args):
        return [][1]

    assert exercise.verdict(broken).message == "Not yet. Your function raised IndexError: list index out of range"


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_the_printed_solution_is_the_function_that_runs(exercise, capsys):
    exercise.solution()
    printed = capsys.readouterr().out
    assert printed.startswith(f"def {exercise.function.__name__}(")
    assert printed.rstrip() in inspect.getsource(exercise.function)
    exercise.hint()
    assert capsys.readouterr().out.startswith("Hint. ")


ODD = [None, True, 3, -1.5, float("nan"), "x", [], [1, 2], (None,), {}, object(), P("z")]
ODD += [np.array([1.0, None]), np.zeros(2)]


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.function.__name__)
def test_whatever_comes_back_gets_an_answer(exercise):
    for odd in [*ODD, (i for i in range(3)), filter(None, [])]:
        verdict = exercise.verdict(lambda *args, odd=odd: odd)
        assert verdict.outcome == "wrong", odd
        assert "Not yet. " in verdict.message


def test_the_three_outcomes(capsys):
    exercise = ex02.holder_of

    def holder_of(row, column):
        """A docstring."""
        ...  # your code here

    def forgot_return(row, column):
        4 * (row // 4) + column // 4

    exercise.check(holder_of)
    assert capsys.readouterr().out.startswith("holder_of: not attempted yet.")
    exercise.check(forgot_return)
    assert "you return None" in capsys.readouterr().out
    exercise.check(exercise.function)
    assert capsys.readouterr().out == "holder_of: right.\n"
    exercise.check(6)
    assert "Hand over the function itself" in capsys.readouterr().out


def test_same_names_what_differs(devices):
    want = jax.device_put(jnp.arange(8.0), NamedSharding(make_mesh((8,), ("i",)), P("i")))
    for got, message in [
        (None, "Does the function end with `return`?"),
        (3.0, "is a float, 3.0; expected an array of shape (8,)"),
        (np.arange(8.0), "is a ndarray; expected a jax.Array"),
        (jnp.zeros(3), "has shape (3,); expected (8,)"),
        (jnp.arange(8), "has dtype int32; expected float32"),
        (jnp.arange(8.0), "is laid out as cpu:0; expected P('i') on a 8 mesh ('i',)"),
        (want.at[2].add(1), "differs in 1 of 8 values; at [2] it is 3.0, expected 2.0"),
    ]:
        with pytest.raises(Wrong) as wrong:
            same(got, want)
        assert message in str(wrong.value)
    same(want, want)


def test_a_bug_in_a_judge_is_not_the_readers_fault():
    def judge(answer):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        exercises.exercise(judge, "hint")(lambda: None).verdict(lambda: 1)
