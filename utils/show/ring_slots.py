"""A ring at work: what every device holds after each step of a reduce-scatter and of an all-gather."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_rgb

from utils.show.picture import COLORS, Picture, picture

ALT = (
    "Two rows of eight panels; in each panel a column is a device and a row is a block. Reduce-scatter: all 64 cells "
    "start pale; each step empties one block per device and strengthens another, until only the diagonal is left, in "
    "full colour. All-gather: from that diagonal, each step fills one more block per device, until the square is full."
)


def draw_ring_slots(scatter_step: Callable[..., Any], gather_step: Callable[..., Any], mesh: Mesh) -> Picture:
    """Run two kinds of ring steps on the mesh's eight devices, seven of each, and draw what each device holds.

    A step is the program of one device, `step(number, slots)`, which returns the new slots, (8, block size).
    """
    axis = mesh.axis_names[0]

    def panels(step: Callable[..., Any], begin: Any) -> np.ndarray:  # (device, panel, slot)
        def run(x):
            found = [x.reshape(8, 1)]
            for number in range(7):
                found.append(step(number, found[-1]))
            return jnp.stack(found)[None, ..., 0]

        program = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=P(axis), out_specs=P(axis)))
        with jax.set_mesh(mesh):
            return np.asarray(program(jax.device_put(begin, P(axis))))

    found = panels(scatter_step, jnp.ones(64)) / 8, panels(gather_step, jnp.eye(8).reshape(-1)) > 0
    figure, rows = plt.subplots(2, 8, figsize=(9.4, 3.5))
    palette = np.array([to_rgb(color) for color in COLORS])
    for row, strength in zip(rows, found, strict=True):
        for number, axes in enumerate(row):
            shade = strength[:, number].T[..., None]  # (slot, device, 1)
            axes.imshow(1 - shade * (1 - palette[:, None]))
            axes.set(xticks=[0, 7], yticks=[0, 7] if number == 0 else [])
            axes.tick_params(labelsize=8, length=2)
            axes.set_title("start" if number == 0 else f"step {number}", fontsize=9)
            axes.set_xlabel("device", fontsize=8, labelpad=-6)
        row[0].set_ylabel("block", fontsize=9, labelpad=-2)
    drawn = picture(figure, ALT)
    figure.subplots_adjust(left=0.05, right=0.99, top=0.86, bottom=0.1, hspace=0.85, wspace=0.12)
    figure.set_layout_engine("none")
    for row, title in zip(rows, ("reduce-scatter: add what arrives", "all-gather: copy what arrives"), strict=True):
        figure.text(0.05, row[0].get_position().y1 + 0.085, title, fontsize=10, weight="bold")
    return drawn
