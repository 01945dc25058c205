"""Every solver on data that break solvers: the bounds stay true and the status honest, converged or not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from catalogue import all_solvers
from reference import models

from bmrm import LinearRisk, Problem, Status, solve
from bmrm.losses import Hinge, LeastAbsolute, Logistic
from bmrm.problem import missing
from bmrm.regularizers import L1, L2


def plain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    return X, np.where(X[:, 0] + rng.normal(size=20) > 0, 1.0, -1.0), 0.05


def separable():
    X, _, lam = plain()
    return X, np.where(X[:, 0] > 0, 1.0, -1.0), lam


def duplicated_rows():
    X, y, lam = plain()
    return np.repeat(X[:4], 5, axis=0), np.repeat(y[:4], 5), lam


def contradicting_rows():
    X, y, lam = plain()
    return np.vstack([X, X]), np.concatenate([y, -y]), lam


def zero_column():
    X, y, lam = plain()
    X[:, 1] = 0.0
    return X, y, lam


def zero_rows():
    X, y, lam = plain()
    X[::2] = 0.0
    return X, y, lam


def constant_columns():
    X, y, lam = plain()
    X[:, 1:] = 1.0
    return X, y, lam


def one_row():
    X, y, lam = plain()
    return X[:1], y[:1], lam


def one_column():
    X, y, lam = plain()
    return X[:, :1].copy(), y, lam


def tiny_lam():
    X, y, _ = plain()
    return X, y, 1e-10


def huge_lam():
    X, y, _ = plain()
    return X, y, 1e10


def ties_on_hinges():
    """Rows on a lattice: at the optimum many scores are exactly 1 or -1."""
    X = np.array([[a, b] for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)] * 2)
    return X, np.where(np.arange(18) % 3 == 0, -1.0, 1.0), 0.1


def bad_scale():
    X, y, lam = plain()
    return X * np.array([1e-4, 1.0, 1e4]), y, lam


CASES = [
    plain, separable, duplicated_rows, contradicting_rows, zero_column, zero_rows, constant_columns, one_row,
    one_column, tiny_lam, huge_lam, ties_on_hinges, bad_scale,
]  # fmt: skip
MODELS = {
    "hinge-l2": (Hinge(), L2, False),
    "hinge-l2-intercept": (Hinge(), L2, True),
    "logistic-l1": (Logistic(), L1, False),
    "logistic-l2": (Logistic(), L2, False),
    "least_absolute-l2": (LeastAbsolute(), L2, False),
}


@cache
def problem_and_optimum(case, model):
    X, y, lam = case()
    loss, kind, intercept = MODELS[model]
    risk = LinearRisk(X, y, loss, intercept=intercept, n_threads=1)
    problem = Problem(risk, kind(), lam)
    best = solve(problem, "ls_bmrm", tol=1e-9, max_seconds=5.0).certificate.upper
    if lam < 1e6:  # beyond, w = 0 is optimal to all digits shown, and the interior-point method fails
        wide = np.column_stack([X, np.ones(y.size)]) if intercept else X
        best = min(best, models.optimum(loss, wide, y, problem.regularizer, lam))
    return problem, best


@pytest.mark.parametrize("solver", all_solvers(), ids=lambda solver: solver.name)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bounds_are_true(case, model, solver):
    problem, optimum = problem_and_optimum(case, model)
    if missing(solver, problem):
        return
    result = solve(problem, solver, tol=1e-6, max_iter=100, max_seconds=1.0)
    slack = 1e-7 * max(abs(optimum), 1e-3)
    assert result.status is not Status.NON_FINITE
    assert np.isfinite(result.w).all()
    assert max(record.lower for record in result.history) <= optimum + slack
    assert result.certificate.upper == pytest.approx(problem.objective(result.w), rel=1e-12)
    assert optimum - slack <= result.certificate.upper <= problem.objective(np.zeros(problem.risk.dim)) + slack
    if result.converged:
        assert result.certificate.upper - optimum <= 1.1e-6 * abs(optimum) + slack
