"""Spellings that differ between the supported versions of JAX (0.7.2 to the newest), and nothing else."""

from __future__ import annotations

from typing import Any


def spec_text(spec: Any) -> str:
    """Spell a PartitionSpec as people type it: ``P(('x', 'y'))``.

    The repr of 0.7.2 begins with ``PartitionSpec``, and every version's ends a single tuple with ``,)``.
    """
    return f"P({', '.join(repr(entry) for entry in spec)})"


def device_text(device: Any) -> str:
    """Spell a device as ``cpu:3``. Before 0.10.0 its own name is ``TFRT_CPU_3``."""
    return f"{device.platform}:{device.id}"


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """`jax.lax.pcast` of JAX 0.8.2 and later, for `to="varying"`, on every JAX. It is `jax.lax.pvary` before 0.8.2."""
    import jax

    if to != "varying":
        raise ValueError(f"before JAX 0.8.2 there was no way from varying to {to!r}")
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, axis_name, to="varying")
    return jax.lax.pvary(x, axis_name)


def evaluate_equation(equation: Any, *values: Any) -> list[Any]:
    """Run one line of a jaxpr on these values; its results.

    `get_bind_params` returns functions and parameters on 0.7.2, and the parameters alone on 0.10.2.
    """
    found = equation.primitive.get_bind_params(equation.params)
    functions, params = found if isinstance(found, tuple) else ((), found)
    results = equation.primitive.bind(*functions, *values, **params)
    return list(results) if equation.primitive.multiple_results else [results]


def dma_operands(equation: Any, values: Any) -> list[Any]:
    """Of a jaxpr's `dma_start` or `dma_wait`, run on these values: source, target, the semaphore that is told of the
    arrival, the one that is told of the sending (None for a local copy), each a pair of reference and indices; device.

    0.7.2 has references and indices side by side, 0.10.2 a reference that carries its indices.
    """
    import jax

    parts = list(jax.tree.unflatten(equation.params["tree"], values))
    if len(parts) == 9:
        pairs = [*zip(parts[0:8:2], parts[1:8:2], strict=True)]
        return [pair if pair[0] is not None else None for pair in pairs] + [parts[8]]
    pairs = [
        part and (part.ref, part.transforms) if hasattr(part, "transforms") else part and (part, ()) for part in parts
    ]
    return [*pairs[:4], parts[4]]


def scan_counts(equation: Any) -> tuple[int, int]:
    """How many of a scan's arguments are constants, and how many are carried. 0.12 has them as parts of a tree."""
    if "num_carry" in equation.params:
        return equation.params["num_consts"], equation.params["num_carry"]
    constants, carried, _ = equation.params["ft_in"].unpack()
    return len(constants.vals), len(carried.vals)


def race_detection() -> Any:
    """For `pallas_call(..., interpret=race_detection())`: interpret the kernel, and report races.

    0.12 raises an error at the first race unless it is told to warn.
    """
    import inspect

    from jax.experimental.pallas import tpu as pltpu

    warns = {"on_race": "warn"} if "on_race" in inspect.signature(pltpu.InterpretParams).parameters else {}
    return pltpu.InterpretParams(detect_races=True, **warns)
