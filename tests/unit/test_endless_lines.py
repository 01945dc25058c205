"""Lines along which a smooth risk falls without end: steps lead to numbers, not to infinities."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, linesearch


@pytest.mark.parametrize("size", [1.0, 1e120, 1e307])
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_steps_lead_to_numbers(loss: str, size: float):
    problem = Problem(LinearRisk([[1.0], [2.0]], [1, 1], loss, n_threads=1), "zero", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = problem.risk.at(np.zeros(1)).toward(np.array([size]))
        point = line.at(linesearch.minimize(problem, line))
    assert 0.0 < point.w[0] ** 2 < np.inf
    assert np.isfinite(point.scores).all()
    assert point.value < 1e-12
