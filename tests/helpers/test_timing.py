from __future__ import annotations

import time

import pytest

from utils.timing import Timing, format_seconds, measure

pytestmark = pytest.mark.once


class Later:
    """A result that is ready `seconds` after somebody waits for it."""

    def __init__(self, seconds):
        self.seconds = seconds

    def block_until_ready(self):
        time.sleep(self.seconds)
        return self


def test_first_call_apart_and_results_waited_for():
    calls = []

    def function(x):
        calls.append(x)
        if len(calls) == 1:
            time.sleep(0.2)
        return Later(0.02)

    found = measure(function, "x", repeats=5, warmup=2)
    assert calls == ["x"] * 8  # one first, two to warm up, five that count
    assert len(found.runs) == 5
    assert found.first > 0.2
    assert 0.02 <= found.median < 0.2


def test_median_and_quartiles_by_hand():
    found = Timing(9.0, (5.0, 1.0, 2.0, 4.0, 3.0))
    assert found.median == 3.0
    assert found.quartiles == (2.0, 4.0)  # NumPy's percentile([1, 2, 3, 4, 5], [25, 75])
    assert Timing(0.0, (2.0,)).quartiles == (2.0, 2.0)


def test_says_when_the_spread_is_too_large():
    assert Timing(0.1, (1.0, 2.0, 3.0, 4.0, 5.0)).noisy  # interquartile range 2 beside a median of 3
    assert "the median is worth little" in str(Timing(0.1, (1.0, 2.0, 3.0, 4.0, 5.0)))
    assert not Timing(0.1, (1.0, 1.01, 1.02, 1.03)).noisy
    assert "worth little" not in str(Timing(0.1, (1.0, 1.01, 1.02, 1.03)))


def test_errors_come_through_unchanged():
    class Mine(Exception):
        pass

    def broken():
        raise Mine("as it is")

    with pytest.raises(Mine, match="as it is"):
        measure(broken)


def test_bad_numbers():
    with pytest.raises(ValueError, match="repeats=0"):
        measure(lambda: None, repeats=0)
    with pytest.raises(ValueError, match="warmup=-1"):
        measure(lambda: None, warmup=-1)


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.00123, "1.23 ms"), (45.6e-6, "45.6 µs"), (7e-9, "7 ns"), (0.9996, "1 s")]
)
def test_durations_in_words(seconds, text):
    assert format_seconds(seconds) == text


def test_jax_results_in_any_container():
    import jax.numpy as jnp

    assert measure(lambda: {"a": jnp.ones(3), "b": (None, 2.0)}, repeats=1).runs
