from __future__ import annotations

import functools
import logging
import os
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from nbformat.v4 import new_output

from tools import notebooks
from utils.compat import double_precision, gather_whole
from utils.mesh import make_mesh
from utils.show.logged import logged
from utils.show.mistake import mistake
from utils.show.table import show_table


def test_table_aligns_words_left_and_numbers_right(capsys):
    show_table(["name", "n", "flag"], [("a", 1, True), ("longer", 12345, False)])
    assert capsys.readouterr().out == "name          n   flag\na             1   True\nlonger   12,345   False\n"


def test_table_without_rows_and_with_a_crooked_one(capsys):
    show_table(["a", "b"], [])
    assert capsys.readouterr().out == "a   b\n"
    with pytest.raises(ValueError, match="a row has 1 columns, the headers 2"):
        show_table(["a", "b"], [(1,)])


def test_mistake_prints_type_and_message(capsys):
    with mistake(ValueError):
        raise ValueError("of this kind " * 20)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ValueError: of this kind")
    assert max(map(len, lines)) <= 110


def test_mistake_needs_one():
    with pytest.raises(AssertionError, match="raised nothing"), mistake():
        pass
    with pytest.raises(KeyError), mistake(ValueError):
        raise KeyError("another")


def test_what_is_said_beside_the_output_is_collected_and_not_printed(capfd):
    """The three ways: a logger of JAX, a warning of Python, the compiler's own lines on stderr."""
    with logged() as lines:
        logging.getLogger("jax._src.any").warning("from JAX")
        warnings.warn("from Python", stacklevel=1)
        warnings.warn("from Python", stacklevel=1)  # each time, not once
        assert lines == ["from JAX", "from Python", "from Python"]
        os.write(2, b"W1122 01:38:46.192399   24348 spmd_partitioner.cc:656] [SPMD] from XLA\nand more\n")
    assert lines[3:] == ["[SPMD] from XLA", "and more"]
    assert capfd.readouterr() == ("", "")
    os.write(2, b"heard again")
    assert capfd.readouterr().err == "heard again"


def test_options_are_on_inside_the_block_alone():
    before = logging.getLogger("jax").handlers, logging.getLogger("jax").propagate
    with pytest.raises(RuntimeError), logged("jax_log_compiles") as lines:
        assert jax.config.jax_log_compiles
        jax.jit(lambda x: x + 1)(jnp.ones(3))
        raise RuntimeError
    assert sum(line.startswith("Compiling jit(<lambda>)") for line in lines) == 1
    assert not jax.config.jax_log_compiles
    assert (logging.getLogger("jax").handlers, logging.getLogger("jax").propagate) == before
    with pytest.raises(AttributeError, match="jax_no_such"), logged("jax_no_such"):
        pass


def test_double_precision_inside_the_block_alone():
    with double_precision():
        assert jnp.ones(2).dtype == "float64"
    assert jnp.ones(2).dtype == "float32"


def test_a_gather_typed_as_one_value_may_leave_whole():
    x = np.arange(48).reshape(2, 24)
    for options, shape, spec in (({"axis": 1, "tiled": True}, (2, 24), P(None, "i")), ({}, (8, 2, 3), P(None, "i"))):
        gather = functools.partial(gather_whole, axis_name="i", **options)
        mapped = jax.shard_map(gather, mesh=make_mesh((8,), ("i",)), in_specs=spec, out_specs=P())
        got = jax.jit(mapped)(x)
        want = x if options else np.stack(np.split(x, 8, axis=1))
        assert (got.shape, got.is_fully_replicated) == (shape, True)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        (["\r 10%|#  |", "\r 90%|## |", "\r           \r"], []),  # a progress bar that leaves nothing
        (["\r 90%|## |", "\r           \rdone\n"], ["done\n"]),
        (["first\n", "abc", "\rd"], ["first\ndbc"]),  # what is not overwritten stays
        (["  two\n", "lines  \n"], ["  two\nlines  \n"]),
    ],
)
def test_carriage_returns_overwrite_as_on_a_terminal(parts, left):
    outputs = [new_output("stream", name="stdout", text=part) for part in parts]
    assert [output.text for output in notebooks.merge_streams(outputs)] == left
