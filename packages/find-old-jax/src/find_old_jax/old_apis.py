"""List removed and deprecated APIs of parallel JAX, with their replacements: the rows of appendix 90."""

from __future__ import annotations

from dataclasses import dataclass

from find_old_jax.problem_index import Problem, problems
from find_old_jax.release_names import parse_version
from find_old_jax.replacements import REPLACEMENTS

__all__ = ["EARLIER", "PHRASES", "REPLACEMENTS", "ROWS", "WORDS", "OldApi", "Row"]

EARLIER = "earlier"  # removed or deprecated in an unknown release before JAX 0.7, the oldest supported one


@dataclass(frozen=True)
class OldApi:
    """An old API, as part of a row.

    `warns` is the first release that warns about the API, and `gone` is the first release without it. `name` is the
    API's name in the record, which also contains the release that introduced it.
    """

    text: str
    warns: str | None = None
    gone: str | None = None
    name: str | None = None

    def status(self, release: str) -> str:
        """Return the API's state, 'works', 'warns' or 'gone', in a release of JAX such as '0.10.2'."""
        for state, since in (("gone", self.gone), ("warns", self.warns)):
            if since and (since == EARLIER or parse_version(since)[:3] <= parse_version(release)[:3]):
                return state
        return "works"


@dataclass(frozen=True)
class Row:
    """A row of appendix 90: some old APIs, and the code that replaces them."""

    new: str
    old_apis: tuple[OldApi, ...]
    silent: bool = False  # after the removal, old code still runs, but with a different meaning


# The releases come from JAX's changelog and tags. To verify them, the tests run each API on every supported JAX.
ROWS = {
    1: Row("jax.random.uniform(key, (3,))", (OldApi("jnp.random.rand", gone=EARLIER),)),
    2: Row(
        "jax.shard_map; Mesh is in jax.sharding", (OldApi("xmap", gone="0.4.31", name="jax.experimental.maps.xmap"),)
    ),
    3: Row(
        "NamedSharding(mesh, P(...))",
        (OldApi("PositionalSharding", "0.6.0", "0.7.1", name="jax.sharding.PositionalSharding"),),
    ),
    4: Row(
        "jax.sharding.reshard, auto_axes", (OldApi("experimental.shard", gone="0.7.0", name="jax.experimental.shard"),)
    ),
    5: Row(
        "jax.device_put with a NamedSharding",
        (
            OldApi("device_put_sharded", "0.8.1", "0.10.0", name="jax.device_put_sharded"),
            OldApi("device_put_replicated", "0.8.1", "0.10.0", name="jax.device_put_replicated"),
        ),
    ),
    6: Row(
        "x.devices(), x.addressable_shards",
        (OldApi("x.device()", gone="0.4.27"), OldApi("x.device_buffers", gone="0.4.27")),
    ),
    7: Row("jax.tree.map, jax.tree.leaves", (OldApi("jax.tree_map", "0.4.26", "0.6.0", name="jax.tree_map"),)),
    8: Row("nothing", (OldApi("setup_tpu()", gone=EARLIER),)),
    9: Row(
        "jax.default_backend()",
        (OldApi("jax.lib.xla_bridge", EARLIER, "0.8.0", name="jax.lib.xla_bridge.get_backend"),),
    ),
    10: Row(
        "jax.jit; with_sharding_constraint is in jax.lax", (OldApi("pjit", "0.8.0", name="jax.experimental.pjit.pjit"),)
    ),
    11: Row(
        "jax.shard_map(check_vma=, axis_names=)",
        (
            OldApi("experimental.shard_map", "0.8.0", name="jax.experimental.shard_map.shard_map"),
            OldApi("jax.shard_map(check_rep=)", gone=EARLIER),
            OldApi("auto=", gone="0.8.0", name="jax.experimental.shard_map.shard_map"),
        ),
    ),
    12: Row(
        "with jax.set_mesh(mesh):",
        (OldApi("use_mesh", gone="0.7.1", name="jax.sharding.use_mesh"), OldApi("with mesh:", "0.10.1")),
    ),
    13: Row(
        "jax.make_mesh, with the sizes passed by position",
        (OldApi("axis_shapes=", gone="0.11.2", name="jax.make_mesh"),),
    ),
    14: Row(
        "jax.lax.pcast(x, 'i', to='varying')",
        (
            OldApi("pvary", "0.8.2", "0.10.0", name="jax.lax.pvary"),
            OldApi("jax.typeof(x).vma", gone="0.10.0", name="jax.typeof"),
        ),
    ),
    15: Row("jax.device_put of the arguments", (OldApi("jit(f, backend=)", EARLIER, name="jax.jit"),)),
    16: Row(
        "axis_types=(AxisType.Auto, ...)",
        (OldApi("make_mesh without axis_types", gone="0.9.0", name="jax.make_mesh"),),
        silent=True,
    ),
    17: Row(
        "jax.sharding.reshard first, unless the argument has that sharding",
        (OldApi("in_specs that reshard", gone="0.9.1", name="jax.sharding.AxisType"),),
    ),
    18: Row(
        "one mesh with two axes; NamedSharding",
        (
            OldApi("pmap in pmap", gone="0.8.0", name="jax.pmap"),
            OldApi("PmapSharding", "0.8.1", "0.10.0", name="jax.sharding.PmapSharding"),
        ),
    ),
    19: Row("try: ... except RuntimeError:", (OldApi("jax.devices('gpu') without a GPU", gone=EARLIER),)),
    20: Row("jax.shard_map, or a sum over the full array", (OldApi("psum over an unbound axis", gone=EARLIER),)),
    21: Row("a jit for each stage", (OldApi("device_put in a jit", gone=EARLIER),), silent=True),
    22: Row("P(...) == P(...)", (OldApi("P(...) == tuple", gone="0.10.0"),), silent=True),
    23: Row(
        "jax.sharding.reshard(x, NamedSharding(mesh, P(...)))",
        (OldApi("with_sharding_constraint on an explicit mesh", gone=EARLIER),),
        silent=True,
    ),
    24: Row(
        "the list in row 24",
        (
            OldApi("jax.ops.index_update", gone=EARLIER, name="jax.ops.index_update"),
            OldApi("from jax.config import config", gone=EARLIER, name="jax.config.config"),
            OldApi("experimental.optimizers", gone=EARLIER, name="jax.experimental.optimizers"),
            OldApi("DeviceArray", gone=EARLIER, name="jax.interpreters.xla.DeviceArray"),
            OldApi("jax.random.KeyArray", gone=EARLIER, name="jax.random.KeyArray"),
            OldApi("jax.linear_util", gone=EARLIER, name="jax.linear_util"),
            OldApi("jax.xla_computation", gone=EARLIER, name="jax.xla_computation"),
            OldApi("jax.experimental.host_callback", EARLIER, "0.8.0", name="jax.experimental.host_callback"),
            OldApi("jax.core.Primitive", gone=EARLIER, name="jax.core.Primitive"),
        ),
    ),
}

# Maps each row to phrases of messages that don't name an API, and that are the same in all releases. ` ... ` matches
# any text. If a row covers a problem, the loop below adds the problem's messages from problems.toml.
PHRASES: dict[int, tuple[str, ...]] = {
    6: ("Sharding' object is not callable", "Device' object is not callable", "arr.device_buffer"),
    8: ("setup_tpu() was required for older JAX",),
    12: ("`with mesh:` ... has been deprecated",),
    15: ("backend and device argument on jit is deprecated",),
}
for _problem in problems():
    if _problem.row:
        PHRASES[_problem.row] = (*PHRASES.get(_problem.row, ()), *_problem.messages)

# Maps phrases like those in PHRASES, for APIs without a row of their own, to (old API, replacement, closest row).
WORDS: dict[str, tuple[str, str, int]] = {
    # Auto axes aren't suggested, because they'd only hide the problem: the scan would run, but each device would
    # gather all the arrays.
    "of all xs should be replicated": ("a scan over a split axis", "jax.shard_map, with the scan inside", 16),
    "Sharding' object has no attribute 'replicate'": ("PositionalSharding.replicate(axis)", "a None in P(...)", 3),
    "'Compiled' object has no attribute 'compiler_ir'": (
        "compiled.compiler_ir()",
        "compiled.as_text(), or jax.jit(f).lower(x).compiler_ir()",
        24,
    ),
    "Unrecognized config option": (
        "jax.config.update",
        "nothing, if the option is gone; jax.config.values lists the current options",
        24,
    ),
    "'Config' object has no attribute 'enable_omnistaging'": (
        "jax.config.enable_omnistaging",
        "nothing: it is always on",
        24,
    ),
    "was deprecated in JAX v0.8.2, and removed in JAX v0.10.0. In its place please use `static_argnums`": (
        "jax.remat(concrete=)",
        "nothing",
        24,
    ),
    "The 'concrete' option to jax.checkpoint / jax.remat is deprecated": ("jax.remat(concrete=)", "nothing", 24),
    "AbstractMesh.__ ... missing 1 required positional argument: 'axis_names'": (
        "AbstractMesh of (name, size) pairs",
        "AbstractMesh((8,), ('i',))",
        24,
    ),
}


def row_problems() -> tuple[Problem, ...]:
    """Return the rows of appendix 90 as problems, so that a search finds them, too."""
    return tuple(
        Problem(
            id=f"row-{number}",
            topic="Old code",
            title="Old code: " + ", ".join(f"`{old_api.text}`" for old_api in row.old_apis),
            cause=" ".join(_history(old_api) for old_api in row.old_apis)
            + (" Old code still runs, but with a different meaning." if row.silent else ""),
            fix=row.new,
            lesson="90",
            section=f"Row {number}",
            keywords="old code removed deprecated AttributeError ImportError upgrade new version",
        )
        for number, row in ROWS.items()
    )


def _history(old_api: OldApi) -> str:
    """Return a sentence that states when an API was deprecated, and when it was removed or changed."""
    parts = [
        f"{verb} before JAX 0.7" if since == EARLIER else f"{verb} in JAX {since}"
        for verb, since in (("deprecated", old_api.warns), ("removed or changed", old_api.gone))
        if since
    ]
    return f"`{old_api.text}` was {', and '.join(parts)}."
