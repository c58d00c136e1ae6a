"""Right answers in unusual forms to the exercises of lesson NN, and changes that compute the same."""

import numpy as np

from exercises import exNN

ALTERNATIVES = {
    exNN.bytes_of_part: [
        lambda rows, columns: np.zeros((rows // 8, columns), np.float32).nbytes,
        lambda rows, columns: np.float64(rows * columns / 2),
    ],
}
EQUIVALENT_MUTANTS = {}  # exercise: [(change, why)], as the test prints a change that is accepted
