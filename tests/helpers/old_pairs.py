"""Old form against new, on the JAX at hand: what old_jax/same.py says of those of which it has both.

Needs that JAX alone, and Python 3.8. Prints a line for each entry that differs; the last line counts.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from old_jax.same import ANNOTATED, CALLED, MODULE, RENAMED, SAME, USED

TREE = "{'a': 1, 'b': (2.5, None, [3])}"
CUT = "(lambda v: v * 2, {mesh}MESH, {i}P('i'), {o}P('i'), {c}=False)(np.arange(8.0))"
CALLS = {  # what is handed to both
    "jax.tree_map": (f"(lambda a, b: a + b, {TREE}, {TREE})", f"(str, {TREE}, is_leaf=lambda x: isinstance(x, tuple))"),
    "jax.tree_leaves": (f"({TREE})", f"({TREE}, is_leaf=lambda x: x is None)", f"({TREE}, lambda x: x is None)"),
    "jax.tree_flatten": (f"({TREE})", f"({TREE}, lambda x: isinstance(x, tuple))"),
    "jax.tree_structure": (f"({TREE})", "(None)"),
    "jax.tree_unflatten": (f"(jax.tree_util.tree_structure({TREE}), [4, 5, 6])",),
    "jax.tree_transpose": (
        "(jax.tree_util.tree_structure([0, 0]), jax.tree_util.tree_structure((0, 0)), [(1, 2), (3, 4)])",
    ),
    "jax.treedef_is_leaf": tuple(f"(jax.tree_util.tree_structure({tree}))" for tree in ("1", "None", TREE)),
    "jax.nn.normalize": ("(np.arange(9.0))", "(np.ones((2, 3)), 0, 1.0, 2.0, 0.5, where=np.eye(2, 3) > 0)"),
    "jax.host_id": ("()",),
    "jax.host_count": ("()",),
}
KEYWORDS = {
    ("jax.experimental.pjit.pjit", "in_axis_resources"): "(lambda v: v * 2, {}=P('i'))(np.arange(8.0))",
    ("jax.experimental.pjit.pjit", "out_axis_resources"): "(lambda v: v * 2, {}=P('i'))(np.arange(8.0))",
    ("jax.numpy.clip", "a_min"): "(np.arange(9), {}=3)",
    ("jax.numpy.clip", "a_max"): "(np.arange(9), {}=3)",
    ("jax.numpy.reshape", "newshape"): "(np.arange(8), {}=(2, 4))",
    **{
        (f"jax.numpy.{name}", "interpolation"): "(np.arange(9.0), " + q + ", {}='lower')"
        for name, q in (("percentile", "33"), ("quantile", "0.33"), ("nanpercentile", "33"), ("nanquantile", "0.33"))
    },
}


def get(dotted: str):
    """What a dotted name stands for; a module is imported first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return got(dotted)


def got(dotted: str):
    if dotted == "jax.config.config":  # a module that hid behind the object of the same name
        return importlib.import_module("jax.config").config
    parts = dotted.split(".")
    value = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:end]))
    return value


def outcome(code: str) -> str:
    """What an expression gives, and how it lies; or what it raises."""
    import jax
    import numpy as np

    names = {"jax": jax, "np": np, "get": get, "P": jax.sharding.PartitionSpec}
    names["MESH"] = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with names["MESH"]:
                value = eval(code, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{value!r} {getattr(value, 'dtype', '')} {getattr(value, 'sharding', '')}"


def agrees(old: str) -> bool | None:
    """Do both forms do the same on the JAX at hand? None where it does not have both."""
    entry = SAME[old]
    try:
        before, after = get(old), get(entry.new)
    except (AttributeError, ImportError):
        return None
    if entry.where == CALLED:
        words = [{"mesh": "", "i": "", "o": "", "c": "check_rep"},
                 {"mesh": "mesh=", "i": "in_specs=", "o": "out_specs=", "c": "check_vma"}]  # fmt: skip
        told = [outcome(f"get({name!r})" + CUT.format(**w)) for name, w in zip((old, entry.new), words)]  # noqa: B905
        return told[0] == told[1] and "Array" in told[0]
    if entry.where == ANNOTATED:  # every array is one of both
        return isinstance(before, type) and isinstance(after, type)
    if entry.where == MODULE:
        return all(getattr(before, name) is getattr(after, name) for name in vars(after)
                   if not name.startswith("_") and hasattr(before, name))  # fmt: skip
    if entry.where == USED and before is not after:
        told = [[outcome(f"get({name!r}){call}") for name in (old, entry.new)] for call in CALLS[old]]
        return all(one == other and "Error" not in one for one, other in told)
    return before is after


def renamed(function: str, keyword: str) -> bool | None:
    """Does a keyword do what its new name does? None where the JAX at hand does not take both."""
    try:
        get(function)
    except (AttributeError, ImportError):
        return None
    if (function, keyword) not in KEYWORDS:
        return agrees("jax.experimental.shard_map.shard_map")  # handed over there
    said = [outcome(f"get({function!r})" + KEYWORDS[function, keyword].format(word))
            for word in (keyword, RENAMED[function, keyword][0])]  # fmt: skip
    return None if "Error" in said[0] else said[0] == said[1]


def main() -> int:
    import jax

    warnings.simplefilter("ignore")
    told = {old: (agrees(old), not one.source and one.on) for old, one in SAME.items()}
    told |= {f"{function}({word}=)": (renamed(function, word), on) for (function, word), (_, on) in RENAMED.items()}
    faults = [name for name, (same, on) in told.items() if same is False or (same is None and on == jax.__version__)]
    for name in faults:
        print(f"{name}: {'differs' if told[name][0] is False else 'there is no such pair'}")
    print(f"JAX {jax.__version__}: {sum(same is True for same, _ in told.values())} of {len(told)} the same")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
