"""Test that exercise 6.3 refuses every form of a pmap loop that hasn't been ported."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from exercises import ex06
from exercises.framework.cost_runners import build_mesh

pytestmark = [
    pytest.mark.usefixtures("compiled_once"),
    pytest.mark.filterwarnings("ignore:The function .* includes a pmap:UserWarning"),  # JAX before 0.8 warns
]


def folded(w, mean, x, y):
    program = jax.pmap(ex06.old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
    return program(w, mean, x.reshape(8, 5, 4), y.reshape(8, 5, 3))


def stacked(w, mean, x, y):
    copies = jnp.stack([w] * 8), jnp.stack([mean] * 8)
    new = jax.pmap(ex06.old_step, axis_name="data")(*copies, x.reshape(8, 5, 4), y.reshape(8, 5, 3))
    return tuple(a[0] for a in new)


def on_numpy_arrays(*args):
    """Convert the arguments to NumPy arrays first, which is impossible under jit."""
    return folded(*map(np.asarray, args))


def on_four_devices(w, mean, x, y):
    program = jax.pmap(ex06.old_step, axis_name="data", in_axes=(None, None, 0, 0), out_axes=None)
    return program(w, mean, x.reshape(4, 10, 4), y.reshape(4, 10, 3))


def on_a_mesh_of_its_own(*args):
    specs = {"in_specs": (P(), P(), P("data"), P("data")), "out_specs": P()}
    return jax.shard_map(ex06.old_step, mesh=build_mesh({"data": 8}), check_vma=False, **specs)(*args)


@pytest.mark.parametrize("loop", [folded, stacked, on_numpy_arrays, on_four_devices, on_a_mesh_of_its_own])
@pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["as it is", "jit"])
def test_an_unported_loop_is_refused(loop, outer):
    verdict = ex06.new_step.verdict(outer(loop))
    assert verdict.outcome == "wrong" and "new_step(on a mesh of" in verdict.message
