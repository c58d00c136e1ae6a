"""List error messages, each with the old API and row that the checker must find. The site's tests also use them."""

MESSAGES = (
    ("AttributeError: module 'jax' has no attribute 'tree_map'", "jax.tree_map", 7),
    ("ImportError: cannot import name 'Primitive' from 'jax.core' (/x/y.py)", "jax.core.Primitive", 24),
    ("ModuleNotFoundError: No module named 'jax.config'", "jax.config", 24),
    ("ModuleNotFoundError: No module named 'jax.experimental.maps'", "jax.experimental.maps", 2),
    ("TypeError: shard_map() got an unexpected keyword argument 'check_rep'", "jax.shard_map(check_rep=)", 11),
    ("TypeError: clip() got an unexpected keyword argument 'a_min'", "jax.numpy.clip(a_min=)", 24),
    ("AttributeError: jax.device_put_replicated is deprecated; use jax.device_put instead.", "jax.device_put_replicated", 5),
    ("ValueError: 0th dimension of all xs should be replicated. Got P('i', None)", "a scan over a split axis", 16),
    ("has type float32[]{V:i}, so the manual axis types do not match.", "pvary", 14),
    ("TypeError: unexpected keyword argument 'out_axis_resources'", "jax.jit(out_axis_resources=)", 10),
    ("AttributeError: 'Compiled' object has no attribute 'compiler_ir'", "compiled.compiler_ir()", 24),
    ("AttributeError: 'jaxlib._jax.NamedSharding' object has no attribute 'replicate'", "PositionalSharding.replicate(axis)", 3),
    ("AttributeError: Unrecognized config option: jax_array", "jax.config.update", 24),
    ("ShardingTypeError: dot_general requires contracting dimensions to have consistent sharding, got ('i',) and ('j',).", "make_mesh without axis_types", 16),
    ("ShardingTypeError: add got incompatible shardings for broadcasting: ('i', 'j'), ('j', 'i').", "make_mesh without axis_types", 16),
    ("TypeError: AbstractMesh.__new__() missing 1 required positional argument: 'axis_names'", "AbstractMesh of (name, size) pairs", 24),
)  # fmt: skip
OTHER_MESSAGES = (
    "KeyError: 'x'",
    "AttributeError: module 'numpy' has no attribute 'float'",
    "No module named 'flax'",
    "",
)
