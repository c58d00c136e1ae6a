"""Provide unusual solutions to the exercises of lesson 07."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np

from exercises import ex07

ALTERNATIVES = {
    ex07.gradient_bytes: [
        lambda parameters, data, model: float(Fraction(4 * (data - 1), data * model) * Fraction(parameters)),
        lambda parameters, data, model: 4 * jnp.divide(parameters, model) * (1 - 1 / data),
        lambda parameters, data, model: np.float64(parameters) / model * 4 - parameters * 4 / model / data,
    ],
    ex07.ring_rate: [
        lambda gbit, both, links, switched: jnp.float32(gbit) * 125e6 * (links if switched else 2) / links / both,
        lambda gbit, both, links, switched: gbit * 1e9 / (8 * both) * min(1, 2 / links + switched),
    ],
    ex07.smallest_d: [
        lambda n, c, w: np.float32(c / w) * (2 * n - 2),
        lambda n, c, w: Fraction(int(c), int(w)) * 2 * (n - 1),
    ],
}
