"""Test that lesson 09 shows the TPU compiler's plan for the lesson's program."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcost import targets

from tools.lessons import notebooks

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("libtpu"), reason="libtpu is not installed here")


@pytest.mark.skipif(
    importlib.util.find_spec("libtpu") and importlib.metadata.version("libtpu") != "0.0.52",
    reason="lesson 09 shows the plan of libtpu 0.0.52",
)
def test_tpu_plan_of_lesson_09():
    """Compile the lesson's two layers and find its five operations in the program.

    They must be in the lesson's order, and the third must fuse the first product with a part of the second gather.
    """
    os.environ.update(targets.TPU_ENVIRONMENT)
    chips = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
    mesh, rows = Mesh(np.array(chips), ("i",), axis_types=(AxisType.Auto,)), P("i")

    def layers(x, w1, w2):
        h = jnp.tanh(x @ lax.all_gather(w1, "i", tiled=True))
        return jnp.tanh(h @ lax.all_gather(w2, "i", tiled=True))

    program = jax.shard_map(layers, mesh=mesh, in_specs=(rows,) * 3, out_specs=rows)
    sharding = NamedSharding(mesh, rows)
    arguments = [jax.ShapeDtypeStruct((n, 2048), jnp.bfloat16, sharding=sharding) for n in (16384, 2048, 2048)]
    text = jax.jit(program).lower(*arguments).compile().as_text()
    [lesson] = [path for path in notebooks.lessons() if notebooks.number(path) == "09"]
    [cell] = [cell for cell in notebooks.read(lesson).cells if cell.id == "overlap-plan"]
    operations = re.findall(r'^    \("([\w.-]+)"', cell.source, re.M)
    main = text[text.index("\nENTRY") :]
    places = [main.index(f"%{name} = ") for name in operations]
    assert len(operations) == 5 and places == sorted(places)
    fused = re.search(rf"%{re.escape(operations[2])} = .*calls=%([\w.-]+)", main)[1]
    body = text[text.index(f"%{fused} (") :].partition("\n}")[0]
    assert all(f" {opcode}(" in body for opcode in ("convolution", "tanh", "all-gather"))
