"""Provide unusual solutions to the exercises of lesson 19."""

from fractions import Fraction

import numpy as np

from exercises import ex19


def _one_by_one(tokens, c, w, remat):
    n = 1
    while 6 * n / w <= (8 if remat else 6) * tokens / c:  # with n + 1 chips, the formula's n - 1 equals this n
        n += 1
    return float(n)


ALTERNATIVES = {
    ex19.run_bill: [
        lambda parameters, tokens, chips, c, share: [
            parameters * tokens / chips / c / share / 14400,
            np.float64(parameters * tokens) / c / share / 600,
        ],
        lambda n, t, chips, c, u: tuple(
            float(Fraction(6) * int(n) * int(t) / Fraction(u) / int(c) / f) for f in (86400 * chips, 3600)
        ),
    ],
    ex19.expert_chip: [
        lambda shared, experts, each, active, tokens, chips: (
            np.array([12 * shared + 12 * experts * each, 6 * tokens * shared + 6 * tokens * active * each]) / chips
        ),
        lambda s, e, p, a, t, n: [(s + e * p) / n * 4 * 3, (2 + 4) * (s + a * p) / n * t],
    ],
    ex19.most_chips: [
        _one_by_one,
        lambda tokens, c, w, remat: np.int64(np.trunc(tokens * w / c * (4 / 3 if remat else 1))) + 1,
    ],
    ex19.another_slice: [
        lambda: [1, 8, 8, 4, 0],
        lambda: (2, 8, 4, 4, False),
        lambda: (np.int64(1), 8.0, 8, 4, np.bool_(False)),
    ],
}
