"""Wrong answers to the exercises of notebook 17, and right ones in unusual forms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from utils.exercises import ex17

# exercise: [(wrong answer, what the message must say)]
WRONG = {
    ex17.bytes_of_part: [
        (lambda rows, columns: 4 * rows * columns, "That is the whole array"),
        (lambda rows, columns: rows * columns // 8, "how many bytes has a float32?"),
    ],
}

# exercise: [right answers in unusual forms]
RIGHT = {
    ex17.bytes_of_part: [
        lambda rows, columns: np.zeros((rows // 8, columns), np.float32).nbytes,
        lambda rows, columns: np.float64(rows * columns / 2),
        lambda rows, columns: np.array(4 * rows * columns) // 8,
        lambda rows, columns: jnp.zeros((rows, columns)).nbytes / 8,
    ],
}
