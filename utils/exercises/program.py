"""What a reader's program does, read from the operations that JAX traces it to: for judges that ask who did the work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def traced(answer: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The program's operations (`.eqns`, `.invars` ...), or None where it needs real numbers: it may print one, or set a mesh."""
    import jax

    try:
        return jax.make_jaxpr(answer)(*args).jaxpr
    except Exception:
        return None


def operations(program: Any) -> Iterator[Any]:
    """Every operation of a traced program, those inside of others, too."""
    for each in program.eqns:
        yield each
        for value in each.params.values():
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from operations(inner)


def mapped(program: Any) -> list[Any]:
    """The operations that give each device a program of its own: every `pmap` and `shard_map`."""
    return [each for each in operations(program) if each.primitive.name in ("xla_pmap", "shard_map")]


def body(each: Any) -> Any:
    """One device's program in a `pmap` or a `shard_map`."""
    inner = each.params.get("call_jaxpr") or each.params["jaxpr"]
    return getattr(inner, "jaxpr", inner)


def is_pmap(each: Any) -> bool:
    """Is it a `pmap`? Before 0.8 an operation of its own; since then a `shard_map` that begins by taking the axis of one
    out of each block of its cut arguments."""
    if each.primitive.name == "xla_pmap":
        return True
    cut = [v for v, spec in zip(body(each).invars, each.params["in_specs"], strict=True) if any(tuple(spec))]
    first = body(each).eqns[: len(cut)]
    return bool(cut) and [one.invars[0] for one in first if one.primitive.name == "squeeze"] == cut


def checks_types(each: Any) -> bool:
    """Does a `shard_map` check what varies (`check_vma`)?"""
    return each.params.get("check_vma", each.params.get("check_rep", False))


def product_flops(each: Any) -> int:
    """FLOPs of the products in one device's program: 2 x elements of the result x length of the contraction."""
    found = 0
    for inner in operations(body(each)):
        if inner.primitive.name == "dot_general":
            (contracted, _), _ = inner.params["dimension_numbers"]
            length = math.prod(inner.invars[0].aval.shape[axis] for axis in contracted)
            found += 2 * length * math.prod(inner.outvars[0].aval.shape)
    return found
