"""Slopes as large as numbers are: no bound, and no warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, solve
from bmrm.problem import missing
from bmrm.regularizers import ElasticNet
from bmrm.solvers import SOLVERS

X = np.array([[-1.0, 0.5], [-1.0, 0.0], [-1.0, -0.5]])
CASES = {
    "offsets": ("poisson", {"offset": np.array([708.0, 708.5, 708.9])}, ElasticNet(r=0.5)),
    "bounds": ("exponential", {}, ElasticNet(r=0.5, bounds=(708.5, 708.5))),
    "a box": ("exponential", {"offset": np.array([-708.0, 0.0, 0.0])}, ElasticNet(r=0.5, bounds=(-0.3, 0.4))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", ["auto", "coordinate", "bmrm", "ls_bmrm", "semismooth_newton"])
def test_bounds_are_none_rather_than_wrong(case: str, solver: str):
    loss, options, regularizer = CASES[case]
    y = np.ones(3)
    problem = Problem(LinearRisk(X, y, loss, n_threads=1, **options), regularizer, 0.1)
    if missing(SOLVERS[solver](), problem):
        pytest.skip("does not fit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = solve(problem, solver, tol=1e-6, max_iter=30, max_seconds=2.0)
    assert result.certificate.lower <= result.certificate.upper or not np.isfinite(result.certificate.upper)
