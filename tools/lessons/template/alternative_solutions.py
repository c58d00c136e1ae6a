"""Provide unusual solutions to the exercises of lesson NN, and list the equivalent mutants."""

import numpy as np

from exercises import exNN

ALTERNATIVES = {
    exNN.bytes_of_part: [
        lambda rows, columns: np.zeros((rows // 8, columns), np.float32).nbytes,
        lambda rows, columns: np.float64(rows * columns / 2),
    ],
}
EQUIVALENT_MUTANTS = {}  # exercise: [(change, why the mutant is equivalent)]; a failing test prints the change
