"""Format values briefly, the way a reader would write them."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from utils.compat import device_text, spec_text


@dataclass(frozen=True)
class Raised:
    """The outcome of a case that raised an error."""

    error: str
    after: str = ""  # the formatted value that the function had returned before the error, if any


class _ShortRepr(reprlib.Repr):
    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, Raised):
            return x.error
        if isinstance(x, (bool, np.bool_, int)) or x is None:
            return super().repr1(x, level)
        if isinstance(x, (float, np.number)):
            return f"{x:,.0f}" if 1e4 <= abs(x) < 1e12 and x == np.round(x) else f"{x:,.5g}"
        if isinstance(x, PartitionSpec):
            return spec_text(x)
        if isinstance(x, NamedSharding):
            return f"{spec_text(x.spec)} on {self.repr1(x.mesh, level)}"
        if isinstance(x, Mesh):
            return f"{' x '.join(map(str, x.devices.shape))} {x.axis_names}"
        if isinstance(x, jax.sharding.Sharding):
            return ", ".join(sorted(map(device_text, x.device_set)))
        if isinstance(x, jax.Device):
            return device_text(x)
        if isinstance(x, np.dtype):
            return str(x)
        if isinstance(x, (jax.Array, np.ndarray)):
            small = isinstance(x, np.ndarray) and x.dtype.kind in "fiub" and x.size <= 12
            return super().repr1(x.tolist(), level) if small else f"{x.dtype}{list(x.shape)}"
        if callable(x) and hasattr(x, "__name__"):
            return x.__name__
        return super().repr1(x, level)


_SHORT_REPR = _ShortRepr()
_SHORT_REPR.maxlist = _SHORT_REPR.maxtuple = _SHORT_REPR.maxdict = 8
_SHORT_REPR.maxstring = _SHORT_REPR.maxother = 90


def format_value(value: Any) -> str:
    """Format any value in one short line. The only arrays shown in full are NumPy arrays of at most 12 numbers."""
    return _SHORT_REPR.repr(value)


def format_argument(value: Any) -> str:
    """Format an argument as the reader would write it in a call."""
    return f"{value:g}" if isinstance(value, float) else format_value(value)
