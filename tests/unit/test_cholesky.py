"""Factors of matrices without rows: where no row has a bend there is nothing to factor."""

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, solve
from bmrm.solvers.cholesky import factored, factored_in_place


def test_a_matrix_without_rows_has_an_inverse():
    assert factored(np.zeros((0, 0)), 0.0)(np.zeros(0)).shape == (0,)
    assert factored_in_place(np.zeros((0, 0)))(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("loss", ["least_absolute", "quantile"])
def test_wide_data_where_no_row_has_a_bend(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 5000)), np.sign(rng.normal(size=500))
    risk = LinearRisk(X, y, loss, intercept=True, n_threads=1)
    assert solve(Problem(risk, "l2", 1e-4), "semismooth_newton", tol=1e-4, max_iter=20).iterations <= 20
