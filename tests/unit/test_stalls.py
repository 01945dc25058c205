"""Problems on which solvers came to a stand: singular systems, scores that overflow, learned thresholds."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, Status, solve
from bmrm.losses import Huber, Novelty, NuNovelty, Poisson
from bmrm.regularizers import L1, L2, Zero


def raw(rng, m, d):
    return rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-5, 5, size=d)


def assert_converged(problem, solver="auto", max_iter=400):
    result = solve(problem, solver, tol=1e-6, max_iter=max_iter)
    assert result.converged
    assert result.certificate.lower <= problem.at_most(result.w)


@pytest.mark.parametrize("seed", [3, 4, 8])
@pytest.mark.parametrize("solver", ["auto", "interior_point"])
def test_a_learned_threshold_on_raw_columns_with_bounds(seed, solver):
    rng = np.random.default_rng(seed)
    X = raw(rng, 60, 12)
    weights = (rng.random(12) < 0.7) * 10.0 ** rng.uniform(-2, 2, 12)
    lower = np.where((rng.random(12) < 0.5) | (weights == 0.0), -1.0, -np.inf)
    upper = np.where(weights == 0.0, 1.0, np.inf)
    problem = Problem(LinearRisk(X, None, NuNovelty(nu=0.5)), L2(weights, (lower, upper)), 1e-4)
    assert_converged(problem, solver)


@pytest.mark.parametrize("seed", [3, 7])
def test_columns_that_depend_on_each_other_but_for_rounding(seed):
    rng = np.random.default_rng(seed)
    X = raw(rng, 80, 12)
    X[:, 1] = 2.0 * X[:, 0] - X[:, -1]
    y, weights = 1e3 * rng.normal(size=80), (rng.random(12) < 0.6) * 10.0 ** rng.uniform(-2, 2, 12)
    assert_converged(
        Problem(LinearRisk(X.astype(np.float32), y, Huber()), L1(weights), 1e-8), "interior_point", max_iter=60
    )


@pytest.mark.parametrize("seed", [1, 3, 4, 6])
def test_a_minimum_far_away_along_columns_that_nearly_depend(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(22, 6))
    X[:, 1] = 2.0 * X[:, 0] - X[:, -1]
    assert_converged(Problem(LinearRisk(X.astype(np.float32), None, Novelty(rho=0.3)), "zero", 1.0), max_iter=60)


def test_bounds_that_keep_w_where_scores_overflow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(22, 3)) * np.array([2e4, 1.0, 1.0])
    X[:, 2] = X[:, 0]
    bounds = ([8.0, -np.inf, -np.inf], [9.0, np.inf, np.inf])
    problem = Problem(LinearRisk(X, rng.poisson(1.0, 22), Poisson()), L2(bounds=bounds), 0.5)
    assert not np.isfinite(problem.objective(np.array([8.0, 0.0, 0.0])))
    assert_converged(problem)


def test_a_risk_that_falls_for_ever_between_bounds_is_unbounded(rng):
    X = np.abs(rng.normal(size=(16, 3)))
    bounds = ([0.0, -1.0, -1.0], [np.inf, 1.0, 1.0])
    result = solve(Problem(LinearRisk(X, None, NuNovelty(nu=0.5)), Zero(bounds=bounds), 1.0), tol=1e-6, max_iter=400)
    assert result.status is Status.UNBOUNDED


@pytest.mark.parametrize("seed", [2, 7, 8, 9, 10])
def test_many_rows_whose_columns_depend_on_each_other(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(1500, 12)) * 100) * (rng.random((1500, 12)) < 0.5) / (100 if seed % 2 else 1)
    X[:, 5], X[:, 7] = X[:, :5].sum(axis=1), 3.0 * X[:, 4] - X[:, 3]
    X[:, 9] = 1.0  # as the intercept
    risk = LinearRisk(X, rng.poisson(2.0, 1500), Poisson(), intercept=True)
    assert_converged(Problem(risk, "zero", 1.0), max_iter=60)
