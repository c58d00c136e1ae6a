"""A value in few words, as its reader would write it."""

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
    """A case that ended in an error. `after`: what the function had returned before, if it had."""

    error: str
    after: str = ""


class _Short(reprlib.Repr):
    """A value as one would write it, in few words."""

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, Raised):
            return x.error
        if isinstance(x, (bool, np.bool_, int)) or x is None:
            return super().repr1(x, level)
        if isinstance(x, (float, np.number)):
            return f"{x:,.0f}" if 1e4 <= abs(x) < 1e12 and x == round(x) else f"{x:,.5g}"
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


_SHORT = _Short()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 8
_SHORT.maxstring = _SHORT.maxother = 90


def shown(value: Any) -> str:
    return _SHORT.repr(value)


def written(value: Any) -> str:
    """An argument as the reader would write it."""
    return f"{value:g}" if isinstance(value, float) else shown(value)
