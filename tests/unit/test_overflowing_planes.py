"""Planes whose products overflow are left out, and solvers that keep one plane end without it."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, solve


@pytest.mark.parametrize("size", [1.0, 1e10, 1e150])
@pytest.mark.parametrize("offset", [1e100, 1e200])
@pytest.mark.parametrize("loss", ["hinge", "least_squares", "poisson"])
def test_the_run_ends(size: float, offset: float, loss: str):
    X = np.array([[size, 1.0], [1.0, -1.0]])
    risk = LinearRisk(X, [1.0, 1.0], loss, offset=[-offset, offset / 3.0], n_threads=1)
    for start in (None, np.array([0.0, 1.0])):
        result = solve(Problem(risk, "l2", 1e-3), "bmrm_line", tol=1e-6, max_iter=20, start=start)
        assert np.isfinite(result.w).all()
        assert not result.certificate.lower > result.certificate.upper
