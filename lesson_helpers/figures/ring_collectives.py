"""Draw the blocks that each device holds after each step of a ring reduce-scatter and a ring all-gather."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_rgb

from utils.show.notebook_figure import COLORS, Picture, picture

Step = Callable[[int, jax.Array], jax.Array]
ALT = (
    "Two rows of eight panels; in each panel a column is a device and a row is a block. Reduce-scatter: all 64 cells "
    "start pale; each step empties one block per device and strengthens another, until only the diagonal is left, in "
    "full colour. All-gather: from that diagonal, each step fills one more block per device, until the square is full."
)


def draw_ring_slots(scatter_step: Step, gather_step: Step, mesh: Mesh) -> Picture:
    """Run seven steps of each collective on the mesh's eight devices, and draw the blocks that each device holds.

    Args:
        scatter_step, gather_step: per-device functions ``step(number, slots)`` that take the step's number, counted
            from 0, and the device's slots, of shape (8, n), and return the new slots.
        mesh: a mesh with one axis of size 8.
    """
    axis = mesh.axis_names[0]

    def run_steps(step: Step, start: jax.Array) -> np.ndarray:
        """Return the first element of each slot, at the start and after each step, indexed by (device, step, slot)."""

        def per_device(x: jax.Array) -> jax.Array:
            states = [x.reshape(8, 1)]
            for number in range(7):
                states.append(step(number, states[-1]))
            return jnp.stack(states)[None, ..., 0]

        program = jax.jit(jax.shard_map(per_device, mesh=mesh, in_specs=P(axis), out_specs=P(axis)))
        with jax.set_mesh(mesh):
            return np.asarray(program(jax.device_put(start, P(axis))))

    strengths = run_steps(scatter_step, jnp.ones(64)) / 8, run_steps(gather_step, jnp.eye(8).reshape(-1)) > 0
    figure, rows = plt.subplots(2, 8, figsize=(9.4, 3.5))
    palette = np.array([to_rgb(color) for color in COLORS])
    for row, strength in zip(rows, strengths, strict=True):
        for number, axes in enumerate(row):
            shade = strength[:, number].T[..., None]  # (slot, device, 1)
            axes.imshow(1 - shade * (1 - palette[:, None]))
            axes.set(xticks=[0, 7], yticks=[0, 7] if number == 0 else [])
            axes.tick_params(labelsize=8, length=2)
            axes.set_title("start" if number == 0 else f"step {number}", fontsize=9)
            axes.set_xlabel("device", fontsize=8, labelpad=-6)
        row[0].set_ylabel("block", fontsize=9, labelpad=-2)
    shown = picture(figure, ALT)
    figure.subplots_adjust(left=0.05, right=0.99, top=0.86, bottom=0.1, hspace=0.85, wspace=0.12)
    figure.set_layout_engine("none")  # keep the layout that was just adjusted
    for row, title in zip(rows, ("reduce-scatter: add what arrives", "all-gather: copy what arrives"), strict=True):
        figure.text(0.05, row[0].get_position().y1 + 0.085, title, fontsize=10, weight="bold")
    return shown
