"""List the replacement for each removed or deprecated name, and its row in appendix 90.

These replacements are only advice; safe_renames.py lists the ones that `--fix` applies. For a name that isn't in these
tables, the checker uses JAX's own message or, if there's none, searches the current names.
"""

from __future__ import annotations

import re

GENERAL_ROW = 24  # the row for APIs that are unrelated to sharding
PLAIN = re.compile(r"[a-z]+(\.\w+)+$")
SHARDINGS = ("Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding")
TREE = ("map", "leaves", "flatten", "unflatten", "structure", "reduce", "transpose", "all")
AXES = "jnp.dot, then jax.lax.psum over the named axis, inside jax.shard_map or jax.vmap"
CONTEXT = "jax.set_mesh(mesh), and jax.sharding.get_abstract_mesh()"
CALLBACK = "jax.pure_callback, jax.experimental.io_callback, jax.debug.callback"
UPDATE = "x.at[index].{}(y)"

REPLACEMENTS: dict[str, tuple[str, int]] = {
    "jax.numpy.random": ("jax.random.uniform(key, (3,))", 1),
    "jax.experimental.maps": ("jax.shard_map; Mesh is in jax.sharding", 2),
    "jax.experimental.maps.thread_resources": (CONTEXT, 12),
    "jax.experimental.maps.ResourceEnv": (CONTEXT, 12),
    "jax.experimental.maps.mesh": ("jax.set_mesh(jax.sharding.Mesh(devices, names))", 12),
    "jax.experimental.PartitionSpec": ("jax.sharding.PartitionSpec", 2),
    **{f"{old}.{name}": (f"jax.sharding.{name}", 2) for name in SHARDINGS for old in (
        "jax.experimental.maps", "jax.experimental.pjit", "jax.experimental.sharding", "jax.interpreters.pxla",
        "jax.interpreters.sharded_jit", "jax.experimental.global_device_array",
    )},
    "jax.interpreters.pxla.thread_resources": (CONTEXT, 12),
    "jax.interpreters.pxla.ShardedDeviceArray": ("jax.Array", GENERAL_ROW),
    "jax.experimental.sharding.MeshPspecSharding": ("jax.sharding.NamedSharding", 2),
    "jax.sharding.MeshPspecSharding": ("jax.sharding.NamedSharding", 2),
    "jax.sharding.OpShardingSharding": ("jax.sharding.NamedSharding(mesh, spec)", 3),
    "jax.sharding.PositionalSharding": ("jax.sharding.NamedSharding(mesh, P(...)); None in P for .replicate(axis)", 3),
    "jax.experimental.shard": ("jax.sharding.reshard, auto_axes, explicit_axes", 4),
    "jax.experimental.shard.reshard": ("jax.sharding.reshard", 4),
    "jax.experimental.shard.auto_axes": ("jax.sharding.auto_axes", 4),
    "jax.experimental.shard.explicit_axes": ("jax.sharding.explicit_axes", 4),
    "jax.device_put_sharded": ("jax.device_put(jnp.stack(parts), NamedSharding(mesh, P('i')))", 5),
    "jax.device_put_replicated": ("jax.device_put(x, NamedSharding(mesh, P())); for pmap, stack the copies first", 5),
    **{f"jax.tree_{name}": (f"jax.tree.{name}", 7) for name in TREE},
    "jax.tree_multimap": ("jax.tree.map", 7),
    "jax.tree_util.tree_multimap": ("jax.tree.map", 7),
    "jax.treedef_is_leaf": ("jax.tree_util.treedef_is_leaf", 7),
    "jax.tools.colab_tpu": ("nothing: JAX finds a TPU by itself", 8),
    "jax.lib.xla_bridge": ("jax.default_backend(), jax.devices(), jax.extend.backend", 9),
    "jax.lib.xla_bridge.get_backend": ("jax.extend.backend.get_backend", 9),
    **{f"jax.lib.xla_bridge.{name}": (f"jax.{name}", 9) for name in (
        "default_backend", "devices", "local_devices", "device_count", "local_device_count", "process_index",
        "process_count",
    )},
    **{f"{old}.{name}": (f"jax.process_{new}", 9) for old in ("jax.lib.xla_bridge", "jax") for name, new in (
        ("host_id", "index"), ("host_count", "count"), ("host_ids", "indices"),
    )},
    "jax.experimental.pjit": ("jax.jit; with_sharding_constraint is in jax.lax", 10),
    "jax.experimental.pjit.pjit": ("jax.jit", 10),
    "jax.experimental.pjit.with_sharding_constraint": ("jax.lax.with_sharding_constraint", 10),
    "jax.experimental.sharded_jit": ("jax.jit(in_shardings=, out_shardings=)", 10),
    "jax.interpreters.sharded_jit": ("jax.jit(in_shardings=, out_shardings=)", 10),
    "jax.interpreters.sharded_jit.with_sharding_constraint": ("jax.lax.with_sharding_constraint", 10),
    "jax.experimental.shard_map": ("jax.shard_map, the function", 11),
    "jax.experimental.shard_map.shard_map": ("jax.shard_map", 11),
    "jax.sharding.use_mesh": ("jax.set_mesh", 12),
    "jax.lax.pvary": ("jax.lax.pcast(x, 'i', to='varying')", 14),
    "jax.sharding.PmapSharding": ("jax.sharding.NamedSharding(mesh, spec)", 18),
    "jax.soft_pmap": ("jax.shard_map over the devices, with jax.vmap inside", 18),
    "jax.core.axis_frame": ("jax.lax.axis_size(name), jax.lax.axis_index(name)", GENERAL_ROW),
    "jax.lax.pdot": (AXES, GENERAL_ROW),
    "jax.config": ("from jax import config", GENERAL_ROW),
    "jax.config.config": ("jax.config", GENERAL_ROW),
    "jax.config.FLAGS": ("jax.config", GENERAL_ROW),
    "jax.config.enable_omnistaging": ("nothing: it is always on", GENERAL_ROW),
    "jax.config.disable_omnistaging": ("nothing: it is always on", GENERAL_ROW),
    "jax.config.omnistaging_enabled": ("nothing: it is always on", GENERAL_ROW),
    **{f"jax.ops.index_{name}": (UPDATE.format(new), GENERAL_ROW) for name, new in (
        ("update", "set"), ("add", "add"), ("mul", "multiply"), ("min", "min"), ("max", "max"),
    )},
    "jax.ops.index": ("jax.numpy.s_", GENERAL_ROW),
    "jax.experimental.optimizers": ("jax.example_libraries.optimizers", GENERAL_ROW),
    "jax.experimental.stax": ("jax.example_libraries.stax", GENERAL_ROW),
    **{f"{old}.DeviceArray": ("jax.Array", GENERAL_ROW) for old in (
        "jax.interpreters.xla", "jax.numpy", "jax.xla", "jax.lib.xla_extension", "jaxlib.xla_extension",
    )},
    "jax.experimental.global_device_array": ("jax.Array, jax.make_array_from_callback", GENERAL_ROW),
    "jax.experimental.gda_serialization": ("jax.experimental.array_serialization", GENERAL_ROW),
    "jax.random.KeyArray": ("jax.Array", GENERAL_ROW),
    "jax.random.PRNGKeyArray": ("jax.Array", GENERAL_ROW),
    "jax.prng.PRNGKeyArray": ("jax.Array", GENERAL_ROW),
    "jax.linear_util": ("jax.extend.linear_util", GENERAL_ROW),
    "jax.experimental.host_callback": (CALLBACK, GENERAL_ROW),
    "jax.xla_computation": ("jax.jit(f).lower(*args).compiler_ir('hlo')", GENERAL_ROW),
    "jax.abstract_arrays": ("ShapedArray is in jax.core", GENERAL_ROW),
    "jax.abstract_arrays.ShapedArray": ("jax.core.ShapedArray", GENERAL_ROW),
    "jax.ShapedArray": ("jax.core.ShapedArray", GENERAL_ROW),
    "jax.api": ("the same name in jax", GENERAL_ROW),
    "jax.partial": ("functools.partial", GENERAL_ROW),
    "jax.util": ("functools, itertools, or your own copy", GENERAL_ROW),
    "jax.util.partial": ("functools.partial", GENERAL_ROW),
    "jax.core": ("jax.extend.core, if it has the same name", GENERAL_ROW),
    "jax.lib.xla_client": ("jax.extend.mlir, jax.jit(f).lower", GENERAL_ROW),
    "jax.lib.xla_extension": ("jax.errors, jax.Array, jax.jit(f).lower", GENERAL_ROW),
    "jax.random.shuffle": ("jax.random.permutation(key, x, independent=True)", GENERAL_ROW),
    "jax.lax.tie_in": ("just its second argument", GENERAL_ROW),
    "jax.custom_transforms": ("jax.custom_jvp, jax.custom_vjp", GENERAL_ROW),
    "jax.experimental.loops": ("jax.lax.fori_loop, jax.lax.while_loop", GENERAL_ROW),
    "jax.experimental.djax": ("nothing", GENERAL_ROW),
    "jax.experimental.callback": ("jax.make_jaxpr, jax.extend.core", GENERAL_ROW),
    "jax.experimental.array_api": ("jax.numpy", GENERAL_ROW),
    "jax.experimental.export": ("jax.export", GENERAL_ROW),
    "jax.experimental.enable_x64": ("jax.enable_x64(True)", GENERAL_ROW),
    "jax.experimental.disable_x64": ("jax.enable_x64(False)", GENERAL_ROW),
    "jax.clear_backends": ("jax.extend.backend.clear_backends", GENERAL_ROW),
    "jax.nn.normalize": ("jax.nn.standardize", GENERAL_ROW),
    **{f"jax.numpy.{old}": (f"jax.numpy.{new}", GENERAL_ROW) for old, new in (
        ("product", "prod"), ("cumproduct", "cumprod"), ("row_stack", "vstack"),
        ("alltrue", "all"), ("sometrue", "any"), ("round_", "round"), ("issubsctype", "issubdtype"),
    )},
    "jax.numpy.in1d": ("jax.numpy.isin(a.ravel(), b)", GENERAL_ROW),
    "jax.numpy.msort": ("jax.numpy.sort(a, axis=0)", GENERAL_ROW),
    "jax.numpy.trapz": ("jax.scipy.integrate.trapezoid", GENERAL_ROW),
    "jax.numpy.asscalar": ("x.item()", GENERAL_ROW),
    "jax.numpy.lax_numpy": ("jax.numpy", GENERAL_ROW),
    "jax.scipy.linalg.polar_unitary": ("jax.scipy.linalg.polar", GENERAL_ROW),
    "jax.profiler.StepTraceContext": ("jax.profiler.StepTraceAnnotation", GENERAL_ROW),
    "jax.profiler.TraceContext": ("jax.profiler.TraceAnnotation", GENERAL_ROW),
    "jax.profiler.trace_function": ("jax.profiler.annotate_function", GENERAL_ROW),
    "jax.experimental.pallas.tpu.CostEstimate": ("jax.experimental.pallas.CostEstimate", GENERAL_ROW),
    "jax.experimental.pallas.tpu.TPUCompilerParams": ("jax.experimental.pallas.tpu.CompilerParams", GENERAL_ROW),
    "jax.experimental.x64_context": ("jax.enable_x64(True)", GENERAL_ROW),
    "jax.experimental.ann": ("jax.lax.approx_max_k, jax.lax.approx_min_k", GENERAL_ROW),
    "jax.experimental.optix": ("optax", GENERAL_ROW),
    "jax.test_util": ("numpy.testing, absl.testing; check_grads is still in jax.test_util", GENERAL_ROW),
    "jax.prng": ("jax.extend.random", GENERAL_ROW),
    "jax.spmd_mode": ("nothing; place the arguments with jax.device_put", GENERAL_ROW),
    **{f"jax.{old}": (f"@jax.custom_{new} and its def{new} method", GENERAL_ROW) for old, new in (
        ("custom_ivjp", "vjp"), ("defjvp", "jvp"), ("defjvp_all", "jvp"), ("defvjp", "vjp"), ("defvjp_all", "vjp"),
    )},
    **{f"jax.{old}": ("nothing", GENERAL_ROW) for old in ("invertible", "mask", "shapecheck")},
    "flax.optim": ("optax", GENERAL_ROW),
}  # fmt: skip

# Maps (function, keyword) to the new keyword or other advice, and to the row of appendix 90.
KEYWORDS: dict[tuple[str, str], tuple[str, int]] = {
    ("jax.shard_map", "check_rep"): ("check_vma=", 11),
    ("jax.shard_map", "auto"): ("axis_names=, with the axes that are not in auto", 11),
    ("jax.experimental.shard_map.shard_map", "check_vma"): ("jax.shard_map(check_vma=)", 11),
    ("jax.experimental.shard_map.shard_map", "axis_names"): ("jax.shard_map(axis_names=)", 11),
    ("jax.experimental.shard_map.shard_map", "auto"): ("jax.shard_map(axis_names=), with the axes not in auto", 11),
    **{(jit, f"{way}_axis_resources"): (f"{way}_shardings=", 10)
       for jit in ("jax.jit", "jax.experimental.pjit.pjit") for way in ("in", "out")},
    ("jax.jit", "backend"): ("jax.device_put of the arguments", 15),
    ("jax.jit", "device"): ("jax.device_put of the arguments", 15),
    ("jax.make_mesh", "axis_shapes"): ("the sizes, passed by position", 13),
    ("jax.make_mesh", "axis_sizes"): ("the sizes, passed by position", 13),
    ("jax.numpy.clip", "a_min"): ("min=", GENERAL_ROW),
    ("jax.numpy.clip", "a_max"): ("max=", GENERAL_ROW),
    ("jax.numpy.reshape", "newshape"): ("shape=", GENERAL_ROW),
    **{(f"jax.numpy.{name}", "interpolation"): ("method=", GENERAL_ROW)
       for name in ("percentile", "quantile", "nanpercentile", "nanquantile")},
    ("jax.scipy.linalg.solve", "sym_pos"): ("assume_a='pos'", GENERAL_ROW),
    **{(f"jax.{name}", "concrete"): ("nothing", GENERAL_ROW) for name in ("checkpoint", "remat")},
    ("jax.pmap", "global_arg_shapes"): ("nothing", GENERAL_ROW),
    ("jax.jit", "abstracted_axes"): ("nothing", GENERAL_ROW),
    ("jax.ShapeDtypeStruct", "named_shape"): ("nothing", GENERAL_ROW),
    ("jax.ShapeDtypeStruct", "vma"): ("manual_axis_type=ManualAxisType(...)", GENERAL_ROW),
}  # fmt: skip

# Keywords that the record lists as deprecated, although passing them raises an error.
REFUSED = {("jax.checkpoint", "concrete"), ("jax.remat", "concrete")}

NEEDS_IMPORT = {  # modules that `import jax` doesn't import in any supported target version
    *(f"jax.{name}" for name in ("ad_checkpoint", "collect_profile", "example_libraries", "extend", "flatten_util")),
    *(f"jax.{name}" for name in ("test_util", "tools", "scipy.optimize", "scipy.spatial")),
    *(f"jax.experimental.{name}" for name in (
        "array_serialization", "buffer_callback", "checkify", "colocated_python", "compute_on", "custom_partitioning",
        "fused", "jax2tf", "jet", "key_reuse", "layout", "mesh_utils", "multihost_utils", "ode", "pallas", "pjit",
        "profiler", "rnn", "roofline", "scheduling_groups", "serialize_executable", "shard_map", "source_mapper",
        "sparse", "topologies", "transfer", "xla_metadata",
    )),
}  # fmt: skip


def find_replacement(name: str) -> tuple[str, int] | None:
    """Return the replacement and row of an old dotted name or of the removed module that contained it, or None."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        entry = REPLACEMENTS.get(".".join(parts[:end]))
        if entry:
            new, row = entry
            rest = parts[end:]
            keeps_name = rest and PLAIN.match(new) and new.startswith("jax.") and new.split(".")[-1] == parts[end - 1]
            return (".".join([new, *rest]) if keeps_name else new), row
    return None
