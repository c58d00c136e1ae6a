"""Hide the differences between the supported versions of JAX (0.7.2 to the newest), and do nothing else."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax import Array
    from jax.experimental.pallas import tpu as pltpu
    from jax.extend.core import JaxprEqn
    from jax.sharding import PartitionSpec
    from jaxlib._jax import Device  # this is jax.Device, but type checkers take that name for a variable


def spec_text(spec: PartitionSpec) -> str:
    """Return a PartitionSpec as it's written in code, such as ``P(('x', 'y'))``.

    On JAX 0.7.2, its repr begins with ``PartitionSpec``. On every version, a single entry is followed by ``,)``.
    """
    return f"P({', '.join(repr(entry) for entry in spec)})"


def device_text(device: Device) -> str:
    """Return a device's name in the form ``cpu:3``. JAX before 0.10.0 calls the same device ``TFRT_CPU_3``."""
    return f"{device.platform}:{device.id}"


def pcast(x: Array, axis_name: str | tuple[str, ...], *, to: str) -> Array:
    """Return ``jax.lax.pcast(x, axis_name, to="varying")``, which JAX before 0.8.2 calls ``jax.lax.pvary``.

    Raises ValueError for any other `to`.
    """
    import jax

    if to != "varying":
        raise ValueError(f"JAX before 0.8.2 cannot cast from varying to {to!r}")
    lax: Any = jax.lax  # Any, because the module's functions depend on JAX's version
    return lax.pcast(x, axis_name, to="varying") if hasattr(lax, "pcast") else lax.pvary(x, axis_name)


def evaluate_equation(equation: JaxprEqn, *values: Any) -> list[Any]:
    """Evaluate one equation of a jaxpr on these values, and return its results.

    JAX's `get_bind_params` returns functions and parameters on 0.7.2, but only the parameters on 0.10.2.
    """
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    results = equation.primitive.bind(*functions, *values, **params)
    return list(results) if equation.primitive.multiple_results else [results]


def dma_operands(equation: JaxprEqn, values: Sequence[Any]) -> list[Any]:
    """Return the operands of a jaxpr's `dma_start` or `dma_wait` equation, built from its flat list of values.

    The operands are the source, the target, the semaphore that counts arrivals, the semaphore that counts departures
    (None for a local copy), and the target's device. Each of the first four is a pair: a reference and its transforms.

    On JAX 0.7.2, references and transforms are separate operands. On 0.10.2, a reference contains its transforms.
    """
    import jax

    operands = list(jax.tree.unflatten(equation.params["tree"], values))
    if len(operands) == 9:
        pairs = zip(operands[0:8:2], operands[1:8:2], strict=True)
        return [None if ref is None else (ref, transforms) for ref, transforms in pairs] + operands[8:]
    pairs = ((operand.ref, operand.transforms) if hasattr(operand, "transforms") else operand for operand in operands)
    return [pair if pair is None or isinstance(pair, tuple) else (pair, ()) for pair in list(pairs)[:4]] + [operands[4]]


def scan_counts(equation: JaxprEqn) -> tuple[int, int]:
    """Return the number of a scan's constants and the number of its carried values."""
    if "num_carry" in equation.params:
        return equation.params["num_consts"], equation.params["num_carry"]
    constants, carried, _ = equation.params["ft_in"].unpack()  # since JAX 0.12
    return len(constants.vals), len(carried.vals)


def race_detection() -> pltpu.InterpretParams:
    """Return a value for `pallas_call(..., interpret=)` that runs a kernel in the interpreter and reports data races.

    By default, JAX 0.12 raises an error at the first race, so ask it to warn instead.
    """
    from jax.experimental.pallas import tpu as pltpu

    options: dict[str, Any] = {"detect_races": True}
    if "on_race" in inspect.signature(pltpu.InterpretParams).parameters:
        options["on_race"] = "warn"
    return pltpu.InterpretParams(**options)
