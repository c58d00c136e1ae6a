"""List the names that `--fix` may replace, because the new name is equivalent in the given context.

The new name also accepts the same arguments. Each pair was compared on the oldest JAX version that has both names, by
running both. If `source` is set, that version can't be installed, because it predates the first jaxlib on PyPI
(0.4.13), but its source code shows that both names refer to the same object. Other old names are only reported.
"""

from __future__ import annotations

from typing import NamedTuple

ANYWHERE = "anywhere"  # both names refer to the same object
USED = "used"  # called, or passed to a function that calls it, but not compared with `is`, `==` or isinstance
CALLED = "called"  # called with arguments that the new name accepts, and without `*args` or `**kwargs`
ANNOTATED = "annotated"  # only in an annotation, because isinstance would give a different result
MODULE = "module"  # a module, if every name that the program uses from it still exists


class SafeRename(NamedTuple):
    """A name's equivalent, the contexts in which it's equivalent, and the JAX version on which both were compared."""

    new: str
    where: str
    on: str  # the JAX version on which both names were compared
    source: bool = False
    via: str = ""  # an intermediate name, itself in this table, if no JAX version has both names


TREE = ("map", "leaves", "flatten", "unflatten", "structure", "transpose")

SAFE_RENAMES: dict[str, SafeRename] = {
    **{f"jax.experimental.{old}": SafeRename(f"jax.sharding.{old.split('.')[-1]}", ANYWHERE, "0.4.1", True) for old in (
        "PartitionSpec", "pjit.PartitionSpec", "global_device_array.PartitionSpec", "maps.Mesh",
    )},
    **{f"jax.experimental.{old}": SafeRename(f"jax.sharding.{old.split('.')[-1]}", ANYWHERE, "0.3.25", True)
       for old in ("maps.NamedSharding", "pjit.NamedSharding", "pjit.Sharding")},
    "jax.interpreters.pxla.Mesh": SafeRename("jax.sharding.Mesh", ANYWHERE, "0.4.1", True),
    "jax.interpreters.pxla.PartitionSpec": SafeRename("jax.sharding.PartitionSpec", ANYWHERE, "0.4.1", True),
    "jax.interpreters.sharded_jit.PartitionSpec": SafeRename(
        "jax.sharding.PartitionSpec", ANYWHERE, "0.2.28", True, "jax.experimental.PartitionSpec"),
    "jax.sharding.MeshPspecSharding": SafeRename("jax.sharding.NamedSharding", ANYWHERE, "0.3.25", True),
    **{f"jax.tree_{name}": SafeRename(f"jax.tree.{name}", USED, "0.4.25") for name in TREE},
    "jax.tree_multimap": SafeRename("jax.tree.map", USED, "0.2.28", True, "jax.tree_map"),
    "jax.tree_util.tree_multimap": SafeRename("jax.tree.map", USED, "0.2.28", True, "jax.tree_map"),
    "jax.treedef_is_leaf": SafeRename("jax.tree_util.treedef_is_leaf", USED, "0.4.13"),
    "jax.lib.xla_bridge.get_backend": SafeRename("jax.extend.backend.get_backend", ANYWHERE, "0.4.35"),
    **{f"jax.lib.xla_bridge.{name}": SafeRename(f"jax.{name}", ANYWHERE, on, True) for name, on in (
        ("default_backend", "0.2.28"), ("devices", "0.2.9"), ("local_devices", "0.2.9"), ("device_count", "0.2.9"),
        ("local_device_count", "0.2.9"), ("process_index", "0.2.28"),
    )},
    "jax.lib.xla_bridge.host_id": SafeRename("jax.process_index", USED, "0.2.9", True, "jax.host_id"),
    "jax.lib.xla_bridge.host_count": SafeRename("jax.process_count", USED, "0.2.9", True, "jax.host_count"),
    "jax.host_id": SafeRename("jax.process_index", USED, "0.4.13"),
    "jax.host_count": SafeRename("jax.process_count", USED, "0.4.13"),
    "jax.experimental.pjit.with_sharding_constraint": SafeRename(
        "jax.lax.with_sharding_constraint", ANYWHERE, "0.4.1", True),
    "jax.experimental.shard_map.shard_map": SafeRename("jax.shard_map", CALLED, "0.6.2"),
    "jax.config.config": SafeRename("jax.config", ANYWHERE, "0.4.13"),
    "jax.ops.index": SafeRename("jax.numpy.s_", USED, "0.2.28", True),
    "jax.experimental.optimizers": SafeRename("jax.example_libraries.optimizers", MODULE, "0.2.28", True),
    "jax.experimental.stax": SafeRename("jax.example_libraries.stax", MODULE, "0.2.28", True),
    "jax.linear_util": SafeRename("jax.extend.linear_util", MODULE, "0.4.20"),
    **{old: SafeRename("jax.Array", ANNOTATED, on, source) for old, on, source in (
        ("jax.interpreters.xla.DeviceArray", "0.3.25", True), ("jax.numpy.DeviceArray", "0.4.13", False),
        ("jax.interpreters.pxla.ShardedDeviceArray", "0.4.13", False), ("jax.random.KeyArray", "0.4.13", False),
        ("jax.random.PRNGKeyArray", "0.4.13", False),
    )},
    "jax.abstract_arrays.ShapedArray": SafeRename("jax.core.ShapedArray", ANYWHERE, "0.4.13"),
    "jax.ShapedArray": SafeRename("jax.core.ShapedArray", ANYWHERE, "0.4.13"),
    "jax.partial": SafeRename("functools.partial", ANYWHERE, "0.2.9", True),
    "jax.util.partial": SafeRename("functools.partial", ANYWHERE, "0.2.9", True),
    "jax.clear_backends": SafeRename("jax.extend.backend.clear_backends", ANYWHERE, "0.4.30"),
    "jax.nn.normalize": SafeRename("jax.nn.standardize", USED, "0.4.13"),
    **{f"jax.numpy.{old}": SafeRename(f"jax.numpy.{new}", ANYWHERE, "0.4.13") for old, new in (
        ("product", "prod"), ("cumproduct", "cumprod"), ("row_stack", "vstack"),
        ("alltrue", "all"), ("sometrue", "any"), ("round_", "round"),
    )},
    "jax.experimental.pallas.tpu.TPUCompilerParams": SafeRename(
        "jax.experimental.pallas.tpu.CompilerParams", ANYWHERE, "0.6.2"),
}  # fmt: skip

# Maps (function, keyword) to the new keyword and the JAX version on which both keywords were tried with the same value.
RENAMED_KEYWORDS: dict[tuple[str, str], tuple[str, str]] = {
    **{("jax.experimental.pjit.pjit", f"{way}_axis_resources"): (f"{way}_shardings", "0.4.13")
       for way in ("in", "out")},
    ("jax.shard_map", "check_rep"): ("check_vma", "0.6.2"),
    ("jax.numpy.clip", "a_min"): ("min", "0.4.30"),
    ("jax.numpy.clip", "a_max"): ("max", "0.4.30"),
    ("jax.numpy.reshape", "newshape"): ("shape", "0.4.30"),
    **{(f"jax.numpy.{name}", "interpolation"): ("method", "0.4.13")
       for name in ("percentile", "quantile", "nanpercentile", "nanquantile")},
}  # fmt: skip
