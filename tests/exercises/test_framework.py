"""Test the exercise framework: its messages for each type of result, and its limits on time and memory."""

from __future__ import annotations

import contextlib
import gc
import math
import re
import sys
import threading
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from exercises.framework import (
    Bound,
    Edit,
    MessageHint,
    Mistake,
    Prediction,
    RunResult,
    build_mesh,
    exercise,
    limits,
    run_compiled,
    run_per_device,
)
from exercises.framework.compare import first_difference
from exercises.framework.exercise import apply_edits
from tests.conftest import double_precision


@exercise(
    "Halve it.",
    cases=[(2, 8), (3, 10), (5, 4)],
    mistakes=[Mistake(Edit("n * k / 2", "(n + k) / 2"), "you add; the area is a product")],
    question="Which two numbers are multiplied?",
)
def area(n, k):
    """Return half of n times k."""
    return n * k / 2


def message_of(answer, exercise=area):
    return " ".join(exercise.verdict(answer).message.split())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n, k: n * k / 2, "area: right."),
        (lambda n, k: jnp.float32(n * k) / 2, "area: right."),
        (lambda n, k: (n + k) / 2, "Not yet. area(2, 8) is 5; expected 8. You add; the area is a product."),
        (lambda n, k: n * k, "Not yet. area(2, 8) is 16; expected 8. In all 3 cases it is 2 times too large."),
        (lambda n, k: n * n * k / 2, "Not yet. area(2, 8) is 16; expected 8. In all 3 cases it is n times too large."),
        (lambda n, k: n * k / 2 - 1, "Not yet. area(2, 8) is 7; expected 8. In all 3 cases it is 1 too small."),
        (lambda n, k: -n * k / 2, "Not yet. area(2, 8) is -8; expected 8. The sign is wrong in all 3 cases."),
        (lambda n, k: 8, "Not yet. area(3, 10) is 8; expected 15. Right in 1 of 3 cases. Which two numbers are "
         "multiplied?"),
        (lambda n, k: None, "Not yet. area(2, 8) is None; expected 8. Does every path through the function end with "
         "`return`? Which two numbers are multiplied?"),
        (lambda n, k: "8", "Not yet. area(2, 8) is '8'; expected 8. That's a string; leave out the quotes. Which two "
         "numbers are multiplied?"),
        (lambda n, k: {}["a"], "Not yet. area(2, 8) raises KeyError: 'a'. Which two numbers are multiplied?"),
        (3, "Not yet. Pass the function itself: check(area), not the value that it returns (3)."),
    ],
)  # fmt: skip
def test_message_for_an_answer(answer, message):
    assert message_of(answer) == message


def test_an_edit_must_match_count_times():
    def double(number):
        return number + number

    assert apply_edits(double, Edit("+", "*"), Edit("return", "return 1 +"))(3) == 1 + 3 * 3
    assert apply_edits(double, Edit(" number", " -number", count=2))(3) == -6
    for edit, times in [(Edit("+", "*", count=2), 1), (Edit("-", "*"), 0), (Edit("number", "n"), 3)]:
        with pytest.raises(ValueError, match=f"{re.escape(repr(edit.old))} {times} times, not {edit.count}"):
            apply_edits(double, edit)


def test_numbers_in_the_wrong_order():
    @exercise("", cases=[(2, 3), (5, 7)])
    def in_order(n, k):
        return [n, k]

    assert message_of(lambda n, k: [k, n], in_order).endswith("The numbers are right, but in the wrong order.")
    assert message_of(lambda n, k: [k, k], in_order).endswith("in_order(2, 3)[0] is 3; expected 2.")


def test_the_verdicts_right_wrong_and_not_attempted(capsys):
    def area_(n, k):
        """Return half of n times k."""
        ...  # your code here

    assert area.verdict(area_).outcome == "not attempted"
    area.check(area_)
    area.check(area.function)
    area.solution()
    area.hint()
    printed = capsys.readouterr().out
    assert printed.startswith("○ area: not attempted yet. Fill in the function above and run its cell and this one.\n")
    assert printed.endswith(
        '✓ area: right.\ndef area(n, k):\n    """Return half of n times k."""\n    return n * k / 2\nHint. Halve it.\n'
    )


def test_first_difference(devices):
    mesh = build_mesh({"i": 8})
    sharded = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("i")))
    copies = [jax.device_put(np.arange(3.0) + (d.id == 5), d) for d in devices]
    unequal = jax.make_array_from_single_device_arrays((3,), NamedSharding(mesh, P()), copies)
    for result, expected, path, shown, shown_expected in [
        (np.arange(13.0), sharded, "", "float64[13]", "float32[8]"),
        (jnp.zeros(3), sharded, ".shape", "(3,)", "(8,)"),
        (jnp.arange(8), sharded, ".dtype", "int32", "float32"),
        (jnp.arange(8.0), sharded, ".sharding", "cpu:0", "P('i') on 8 ('i',)"),
        (sharded.at[2].add(1), sharded, "[2]", "3", "2"),
        (
            unequal,
            jax.device_put(np.arange(3.0), unequal.sharding),
            "[0], in the copy on device 5,",
            "1",
            "0",
        ),
        ([1, (2, 4)], (1, [2, 3]), "[1][1]", "4", "3"),
        ({"a": 1}, {"a": 2}, "['a']", "1", "2"),
        ([1, 2], [1, 2, 3], "", "[1, 2]", "[1, 2, 3]"),
        (P("a", None), P(None, "a"), "", "P('a', None)", "P(None, 'a')"),
        ("all_gather", "all-reduce", "", "all_gather", "all-reduce"),
        (1, True, "", "1", "True"),
        (2.001, 2.0, "", "2.001", "2"),
    ]:
        difference = first_difference(result, expected)
        assert difference, (result, expected)
        assert (difference.path, difference.actual, difference.expected) == (path, shown, shown_expected)


def test_results_that_match():
    for result, expected in [
        (np.float32(4), 4), (4.0, 4), (jnp.array(4), 4), (np.float64(4), jnp.float32(4)), ((1, 2), [1, 2]),
        (np.array([1, 2]), [1.0, 2.0]),
        ({0: "a", 1: "b"}, ["a", "b"]), (P(("a",), None), P("a")), ("All Gather", "all-gather"), (np.True_, True),
        (2.0001, 2.0), (range(3), [0, 1, 2]), (jnp.ones(3), np.ones(3)), (None, None), (float("inf"), float("inf")),
        (np.array([1, np.nan]), np.array([1, np.nan])), (np.array([2, np.inf]), np.array([2, np.inf])),
    ]:  # fmt: skip
        assert first_difference(result, expected) is None, (result, expected)


def test_reason_for_a_value_of_the_wrong_type():
    deleted = jnp.ones(3)
    deleted.delete()
    for result, expected, reason in [
        (None, 3, "Does every path through the function end with `return`?"),
        (len, 3, "That's a function; call it."),
        ("3", 3, "That's a string; leave out the quotes."),
        ({1, 2}, [1, 2], "A set has no order."),
        ([1], [1, 2], "It has 1 elements, not 2."),
        (np.ones(3), jnp.ones(3), "That isn't a jax.Array."),
        (deleted, jnp.ones(3), "The array was deleted, because its buffer was donated."),
        (-2.5, 2.5, "The sign is wrong."),
        (float("nan"), 2.5, ""),
    ]:
        assert first_difference(result, expected).reason == reason


def test_costs_are_compared_only_if_the_result_is_right():
    def run(f, n):
        sent = []
        result = f(lambda bytes_: sent.append(bytes_) or bytes_, n)
        return RunResult({"": result, "bytes sent": Bound(sum(sent))})

    @exercise(
        "",
        cases=[(2000,)],
        run=run,
        mistakes=[MessageHint("bytes sent", "send once")],
    )
    def sends(send, n):
        """Send n bytes, and return n."""
        return send(n)

    expensive = "Not yet. The result of sends(2000) is right. But bytes sent: 5,000; 2,000 are enough. Send once."
    assert message_of(lambda send, n: send(n + 1000) and send(n), sends) == expensive
    assert message_of(lambda send, n: send(n) + send(n), sends).startswith(
        "Not yet. sends(2000) is 4000; expected 2000."
    )
    assert message_of(lambda send, n: send(n - 1000) + 1000, sends) == "sends: right."


def test_run_per_device_returns_the_result_and_the_bytes_sent():
    """Test an all-reduce of 4 float32 elements (16 bytes) among 8 devices, in which each sends 2 * 7/8 * 16 bytes."""
    specs = {"mesh": {"i": 8}, "in_specs": P("i"), "out_specs": P("i")}
    observed = run_per_device(lambda x: x + jax.lax.psum(x, "i"), np.arange(32.0, dtype=np.float32), **specs)
    assert observed["bytes that a device sends"].value == 28
    assert np.asarray(observed[""])[:2].tolist() == [0 + 112, 1 + 120]  # 0 + 4 + ... + 28 is 112


def test_the_largest_array_of_any_dtype():
    """Test that 60 elements take up 480 bytes in complex64, 60 in float8 and 120 in bfloat16."""
    for dtype, size in [(jnp.complex64, 480), (jnp.float8_e4m3fn, 60), (jnp.bfloat16, 120)]:
        x = jnp.zeros((5, 12), dtype)
        observed = run_compiled(lambda x: x, x, measure=("largest_array",))
        assert observed["bytes of the largest array on a device"].value == size


def test_run_per_device_replaces_the_mesh_that_a_lesson_has_set():
    specs = {"mesh": {"X": 4}, "in_specs": P("X"), "out_specs": P()}
    with jax.set_mesh(build_mesh({"X": 8})):
        observed = run_per_device(lambda x: jax.lax.psum(x, "X"), np.arange(8, dtype=np.float32), **specs)
        assert np.asarray(observed[""]).tolist() == [0 + 2 + 4 + 6, 1 + 3 + 5 + 7]


def loop_forever(*args):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def test_an_endless_loop_is_stopped():
    quick = exercise("", cases=[(1,)], timeout=0.3)(lambda x: x)
    start = time.monotonic()
    assert message_of(loop_forever, quick).endswith("stopped after 0.3 s. Does it contain an endless loop?")
    assert time.monotonic() - start < 5


def test_a_loop_that_cannot_be_stopped_prints_a_message(monkeypatch, capsys):
    """Test a check in a background thread, which the alarm can't stop."""
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.0)
    sleeper = exercise("", cases=[(1,)], timeout=0.1)(lambda x: x)
    thread = threading.Thread(target=lambda: sleeper.verdict(lambda x: time.sleep(0.5)))
    thread.start()
    thread.join()
    assert "The check is still waiting for your function" in capsys.readouterr().out
    assert message_of(lambda x: x, sleeper) == "<lambda>: right."
    time.sleep(0.3)
    assert capsys.readouterr().out == ""


LENGTH = 80 * 2**20  # the number of float32 elements in 320 MiB


def memory_in_use():
    """Return the size in kB of this process's data segment, which Linux can limit."""
    return int(re.search(r"^VmData:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)[1])


def wait_until_memory_settles():
    """Wait for JAX's threads to free earlier tests' memory, because freeing it later would offset an allocation."""
    gc.collect()
    before = memory_in_use()
    for _ in range(50):
        time.sleep(0.1)
        before, last = memory_in_use(), before
        if before == last:
            return


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit works only on Linux")
@pytest.mark.parametrize(
    "allocate",
    [
        lambda: np.ones(LENGTH, np.float32),
        lambda: jnp.ones(LENGTH).block_until_ready(),
        lambda: jax.jit(lambda x: x[:, None] * x)(jnp.ones(math.isqrt(LENGTH))).block_until_ready(),
        lambda: [0] * (LENGTH // 2),  # 8-byte pointers
    ],
    ids=["NumPy", "JAX", "compiled", "list"],
)
def test_memory_is_limited(allocate, monkeypatch):
    """Test that a request for 320 MiB fails with a limit of 256 MiB, and succeeds with a limit of 1 GiB."""

    def answer(n, k):
        allocate()
        return n * k / 2

    monkeypatch.setattr(limits, "MEMORY_LIMIT_GIB", 0.25)
    wait_until_memory_settles()
    message = message_of(answer)
    assert "asks for more memory than the check allows (0.25 GiB). Is a size wrong?" in message
    monkeypatch.setattr(limits, "MEMORY_LIMIT_GIB", 1.0)
    assert message_of(answer) == "area: right."


def test_no_answer_is_right_if_the_solution_raises():
    ready = False

    def run_when_ready(f, n):
        if not ready:
            raise RuntimeError("no mesh is set")
        return f(n)

    @exercise("Halve it.", cases=[(2,)], run=run_when_ready)
    def half(n):
        return n / 2

    verdict = half.verdict(lambda n: "anything")
    assert verdict.outcome == "not attempted"
    assert "the check could not run: RuntimeError: no mesh is set. Run the setup cell" in verdict.message
    ready = True
    assert half.verdict(lambda n: 0.5 * n).message == "half: right."
    assert half.verdict(lambda n: "anything").outcome == "wrong"


def test_an_error_after_the_answer_returned_shows_what_it_returned():
    """Test an answer that returns a function that fails when `run` calls it."""

    @exercise("", cases=[(2,)], run=lambda f, n: f(n)(5))
    def times(n):
        """Return a function that multiplies by n."""
        return lambda x: n * x

    message = "Not yet. times(2) raises TypeError: 'int' object is not subscriptable. It had returned <lambda>."
    assert message_of(lambda n: lambda x: x[n], times) == message
    message = "It had returned None; expected <lambda>. Does it end with `return`?"
    assert message_of(lambda n: None, times).endswith(message)


def test_an_error_raised_when_jax_lowers_the_program():
    @exercise(
        "",
        cases={"x": (np.arange(8.0),)},
        run=partial(run_per_device, mesh={"i": 8}, in_specs=P("i"), out_specs=P("i")),
    )
    def same(x):
        return x

    assert message_of(lambda x: jax.lax.ppermute(x, "i", [(i, 0) for i in range(8)]), same).startswith(
        "Not yet. same(x) raises "
    )


def test_an_error_is_described_in_one_line():
    def raise_with_three_lines(n, k):
        raise ValueError("The types differ:\n\n  one has 3, the other 4\n  and more")

    def raise_without_message(n, k):
        raise AssertionError

    assert "raises ValueError: The types differ: one has 3, the other 4." in message_of(raise_with_three_lines)
    assert "raises AssertionError, with no message, at `raise AssertionError`." in message_of(raise_without_message)
    assert "raises RecursionError: infinite recursion." in message_of(lambda n, k, f=lambda g: g(g): f(f))
    assert "raises SystemExit" in message_of(lambda n, k: exit())


def test_an_answer_cannot_change_the_arguments_of_later_calls():
    @exercise("", cases=lambda: {"a": (np.arange(3.0), [1], {"a": 1}), "b": (np.ones(3), [2], {"a": 2})})
    def total(x, y, z):
        """Return the sum."""
        return x.sum() + y[0] + z["a"]

    def change_arguments(x, y, z):
        result = x.sum() + y[0] + z["a"]
        x[:], y[0], z["a"] = 7, 7, 7
        return result

    assert [message_of(change_arguments, total) for _ in range(2)] == ["total: right."] * 2


def test_reading_of_a_guess(capsys):
    sent = Prediction(
        7168, "it keeps its own part", {4096: "that is what goes in", 1792: "bytes, not numbers"}, "bytes"
    )
    for guess, line in [
        (None, ""),
        (7168, "✓ Your guess, 7,168 bytes: right.\n"),
        (np.float32(7168.001), "✓ Your guess, 7,168 bytes: right.\n"),
        (4096, "✗ Your guess, 4,096 bytes, should be 7,168 bytes: that is what goes in.\n"),
        (1792, "✗ Your guess, 1,792 bytes, should be 7,168 bytes (4 times too small): bytes, not numbers.\n"),
        (1, "✗ Your guess, 1 byte, should be 7,168 bytes (7168 times too small): it keeps its own part.\n"),
        ("all", "○ Your guess is 'all'; expected a number of bytes.\n"),
    ]:
        sent.compare(guess, 7168)
        assert capsys.readouterr().out == line
    device = Prediction(6, "the second mesh row begins with 4")  # without a unit, no factor is reported
    assert device.evaluate_guess(3, 6) == ("wrong", "Your guess, 3, should be 6: the second mesh row begins with 4.")
    word = Prediction("all-reduce", mistakes={"all-gather": "nothing is missing on a device"})
    assert word.evaluate_guess(" All-Reduce ", "all-reduce") == ("right", "Your guess, all-reduce: right.")
    text = "Your guess is 'sum'; expected all-gather or all-reduce."
    assert word.evaluate_guess("sum", "all-reduce") == ("not attempted", text)
    text = "Your guess, no, should be yes: does it?"
    assert Prediction(True, "does it?").evaluate_guess("no", np.True_) == ("wrong", text)


def test_a_float32_answer_is_right_in_a_lesson_with_float64():
    """Test that a float32 answer is right in lesson 11, which enables float64 but has float32 logits."""
    from exercises import ex11
    from tests.exercises.alternative_solutions.ex11 import ALTERNATIVES

    with double_precision():
        for answer in ALTERNATIVES[ex11.vocabulary_loss]:
            assert ex11.vocabulary_loss.verdict(answer).message == "vocabulary_loss: right."


def test_a_tiny_ratio_is_not_explained_by_a_parameter():
    @exercise("Bytes.", cases=[(7, 3), (11, 5), (13, 4)])
    def bytes_of(numbers, n):
        return 16e9 * numbers / n

    message = " ".join(bytes_of.verdict(lambda numbers, n: 16 * numbers / n).message.split())
    assert "In all 3 cases it is 1e+09 times too small." in message
