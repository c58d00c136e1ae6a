"""python NAME.py: TODO, what it does."""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")  # emulated, without a GPU or TPU

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

cli = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
cli.parse_args()  # TODO: add arguments
n = jax.device_count()
mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))
numbers = jnp.arange(2.0 * n)  # YOURS
total = jax.device_put(numbers, NamedSharding(mesh, P("x"))).sum()
assert total == n * (2 * n - 1), "TODO: what is wrong where this fails"
print(f"TODO, the result: {total:.0f}, as by hand")
