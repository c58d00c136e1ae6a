"""How many operations a program is: as JAX recorded it, and as the compiler made it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# What a compiled program names without computing: its arguments and constants, and other views of the same bytes.
NO_WORK = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}


def operations(f: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """The operations of f(*args), as traced (the lines of its jaxpr) and as compiled. Nothing is run.

    A function that JAX jits by itself, such as `jnp.where`, is one of the first. Operations that the compiler has fused
    are one of the second.
    """
    import jax

    text = jax.jit(f).lower(*args).compile().as_text()
    [main] = re.findall(r"^ENTRY .*?^}", text, re.M | re.S)
    found = re.findall(r"^ +(?:ROOT )?%?[\w.-]+ = .*?[\])}] ([a-z][\w-]*)\(", main, re.M)
    return len(jax.make_jaxpr(f)(*args).eqns), sum(opcode not in NO_WORK for opcode in found)
