"""The solver around scipy's L-BFGS-B."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm import Problem, solve
from bmrm._traits import Trait


class Nothing:
    """A risk of 0 that takes numbers only."""

    dim = 4
    traits = frozenset({Trait.SMOOTH_RISK})
    floor = 0.0

    def evaluate(self, w):
        assert np.isfinite(w).all()
        return 0.0, np.zeros(self.dim)


@pytest.mark.parametrize("lam", [1e-300, 1e-160, 2.6e-6, 1.0, 1e300])
def test_only_numbers_are_asked_for(lam: float):
    """Steps that shrink until their squares are 0 make the optimizer divide by it."""
    for seed in range(5):
        start = np.random.default_rng(seed).normal(size=Nothing.dim)
        result = solve(Problem(Nothing(), "l2", lam), "scipy", tol=0.0, max_iter=300, start=start)
        assert np.isfinite(result.w).all()
        assert 0.0 <= result.certificate.upper < np.inf
