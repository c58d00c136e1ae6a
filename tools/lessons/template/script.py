"""python NAME.py: TODO, what it does for whom."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)  # emulated, where there is no GPU or TPU
n = jax.device_count()
mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,))
numbers = jnp.arange(2.0 * n)  # YOURS
total = jax.device_put(numbers, NamedSharding(mesh, P("x"))).sum()
assert total == n * (2 * n - 1), "TODO: what is wrong where this fails"
print(f"TODO, the result: {total:.0f}, as by hand")
