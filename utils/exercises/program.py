"""What a reader's program does, read from the operations that JAX traces it to: for judges that ask who did the work."""

from __future__ import annotations

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
