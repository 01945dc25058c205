"""What `auto` must not stall on: raw and dependent columns, no penalty, bounds, tiny and huge lam."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, Status, solve
from bmrm.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    LeastAbsolute,
    LeastSquares,
    Logistic,
    Novelty,
    NuNovelty,
    Quantile,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from bmrm.regularizers import L1, L2, ElasticNet, Zero
from bmrm.solvers.auto import Auto, _chosen

LOSSES = [Hinge(), SquaredHinge(), Logistic(), LeastAbsolute(), LeastSquares(), Huber(delta=0.5), Quantile(tau=0.9)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def raw(m=120, d=12, seed=0):
    """Columns of size 1e-6 to 1e6, one of them twice and one the difference of two others; labels not separable."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * 10.0 ** rng.permutation(np.linspace(-6, 6, d))
    X[:, 0], X[:, 1] = X[:, -1], 2.0 * X[:, 2] - X[:, 3]
    return X, np.where(rng.normal(size=m) + X[:, 2] / np.abs(X[:, 2]).max() > 0.0, 1.0, -1.0)


def solved(problem, **options):
    result = solve(problem, tol=1e-6, max_seconds=60.0, **options)
    assert result.certificate.lower <= result.certificate.upper
    assert result.converged, str(result)
    return result


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
def test_no_penalty_on_raw_columns(loss, intercept):
    X, y = raw()
    problem = Problem(LinearRisk(X, y, loss, intercept=intercept, n_threads=1), "zero", 1.0)
    result = solved(problem)
    assert result.iterations < 150


@every_loss
def test_many_free_coordinates(loss):
    X, y = raw()
    weights = np.where(np.arange(12) < 8, 0.0, 1.0)
    solved(Problem(LinearRisk(X, y, loss, n_threads=1), L2(weights=weights), 1e-7))


@pytest.mark.parametrize("loss", [Hinge(), LeastAbsolute(), EpsilonInsensitive(eps=0.1), Quantile(tau=0.9)], ids=repr)
@pytest.mark.parametrize("regularizer", [L2, L1, ElasticNet, Zero], ids=lambda kind: kind.name)
@pytest.mark.parametrize("lam", [1e-8, 1e-2, 1e4])
def test_bounds_on_raw_columns(loss, regularizer, lam):
    X, y = raw(d=6)
    rng = np.random.default_rng(1)
    upper = np.where(rng.random(6) < 0.5, np.inf, 1.0 / np.abs(X).max(axis=0))
    bounded = regularizer(bounds=(np.zeros(6), upper))
    result = solved(Problem(LinearRisk(X, y, loss, intercept=True, n_threads=1), bounded, lam))
    assert np.all(result.w[:6] >= 0.0)
    assert np.all(result.w[:6] <= upper)


@pytest.mark.parametrize("lam", [1e-9, 1e7])
def test_huge_targets_and_an_extreme_lam(lam):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    X[:, 0] = X[:, 1]
    risk = LinearRisk(X, 1e6 * rng.normal(size=30), SquaredEpsilonInsensitive(), intercept=True, n_threads=1)
    solved(Problem(risk, "l1", lam))


def test_a_risk_that_falls_for_ever_is_unbounded():
    X = np.random.default_rng(3).normal(size=(9, 4))
    problem = Problem(LinearRisk(X, None, NuNovelty(nu=0.1), n_threads=1), "zero", 1.0)
    assert solve(problem, tol=1e-6).status is Status.UNBOUNDED


def test_a_least_risk_of_0_between_bounds():
    """Combined scores claim 0 where w has grown to 1e16; the interior-point method does not go there."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(81, 28)) * 10.0 ** rng.uniform(-2, 2, size=28)
    X[::3] = 0.0
    bounds = (np.where(rng.random(28) < 0.5, -np.inf, 0.0), np.full(28, np.inf))
    result = solved(
        Problem(LinearRisk(X, None, Novelty(rho=1.0), intercept=True, n_threads=1), Zero(bounds=bounds), 1.0)
    )
    assert np.abs(result.w).max() < 1e6


def test_a_stopped_run_without_a_penalty_goes_on_as_if_it_had_not_stopped():
    X, y = raw()
    problem = Problem(LinearRisk(X, y, Hinge(), n_threads=1), "zero", 1.0)
    whole = solve(problem, tol=1e-6)
    rest = solve(problem, tol=1e-6, start=solve(problem, tol=1e-6, max_iter=4))
    assert rest.converged
    np.testing.assert_allclose([r.upper for r in rest.history[:5]], [r.upper for r in whole.history[4:9]], rtol=1e-6)


def test_the_bundle_method_stays_behind_every_choice():
    X, y = raw()
    for loss in LOSSES:
        for regularizer in (L2(), L1(), Zero(), L2(bounds=(0.0, 1.0))):
            solvers = _chosen(Problem(LinearRisk(X, y, loss, n_threads=1), regularizer, 1.0), uneven=True)
            assert solvers[-1].name == "ls_bmrm"
    assert Auto().name == "auto"
