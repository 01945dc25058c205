"""An entry beyond the square root of the largest number: its square overflows, J(0) does not."""

import numpy as np
import pytest

import bmrm
from bmrm.problem import missing
from bmrm.regularizers import L1, L2
from bmrm.solvers import SOLVERS

X, y = np.array([[1.0, 1e200], [1.0, 2.0], [2.0, -1.0], [0.0, 1.0]]), np.array([1.0, -1.0, 1.0, -1.0])
AT_ZERO = {"logistic": np.log(2.0), "hinge": 1.0, "least_squares": 0.5}


@pytest.mark.parametrize("regularizer", [L1(), L2()], ids=lambda omega: omega.name)
@pytest.mark.parametrize("loss", AT_ZERO)
@pytest.mark.parametrize("solver", SOLVERS)
def test_runs_end_with_the_objective_at_zero_at_least(solver, loss, regularizer):
    problem = bmrm.Problem(bmrm.LinearRisk(X, y, loss), regularizer, 0.1)
    lacks = missing(SOLVERS[solver](), problem)
    if lacks:
        pytest.skip(f"the solver does not fit: it {', '.join(lacks)}")
    certificate = bmrm.solve(problem, solver, max_iter=3, max_seconds=10.0).certificate
    assert not np.isnan(certificate.upper)
    assert certificate.lower <= certificate.upper
    if solver != "folos":  # whose last point may be where scores overflow
        assert certificate.upper <= AT_ZERO[loss] * (1.0 + 1e-12)
