"""Many columns that are nearly alike: models with a larger lam first, descent by columns, faces that are factored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bmrm import LinearRisk, Problem, solve
from bmrm.regularizers import L1, ElasticNet
from bmrm.risks import columns
from bmrm.risks.faces import to_face
from bmrm.solvers.cholesky import factored
from bmrm.solvers.coordinate import Coordinate

FREE = np.full(6, -np.inf), np.full(6, np.inf)


@pytest.fixture
def alike(rng, monkeypatch):
    """Columns in pairs that hardly differ, one of them twice; only the columns' descent, factored at once."""
    monkeypatch.setattr(columns, "_MOST_COLUMNS", 0)
    monkeypatch.setattr(columns, "_MOST_EPOCHS", 0)
    X = rng.normal(size=(80, 60)) * (rng.random((80, 60)) < 0.3)
    X = np.hstack([X, X + 1e-3 * rng.normal(size=X.shape), X[:, :1]])
    return X, np.where(X @ rng.normal(size=X.shape[1]) > 0.0, 1.0, -1.0)


# The squared hinge with bounds is not among them: by columns it takes more than 500 steps to 1e-9 here.
PAIRS = [(loss, L1()) for loss in ("logistic", "least_squares", "squared_hinge")]
PAIRS += [(loss, ElasticNet(r=0.9)) for loss in ("logistic", "least_squares", "squared_hinge")]
PAIRS += [(loss, L1(bounds=(-0.3, 0.4))) for loss in ("logistic", "least_squares")]


@pytest.mark.parametrize(("loss", "regularizer"), PAIRS, ids=repr)
@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix])
def test_all_ways_reach_the_same_minimum(alike, loss, regularizer, made):
    X, y = alike
    problem = Problem(LinearRisk(made(X), y, loss, intercept=True, n_threads=1), regularizer, 1e-4)
    result = solve(problem, Coordinate(working_set=10, max_epochs=7), tol=1e-9, max_iter=500)
    reference = solve(problem, "coordinate", tol=1e-9, max_iter=500)
    assert result.converged
    assert reference.converged
    assert result.certificate.upper == pytest.approx(reference.certificate.upper, rel=1e-8)
    assert all(record.lower <= reference.certificate.upper * (1.0 + 1e-12) for record in result.history)


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(alike):
    X, y = alike
    problem = Problem(LinearRisk(X, y, "logistic", n_threads=1), "l1", 1e-4)
    solver = Coordinate(working_set=10, max_epochs=7)
    whole = solve(problem, solver, tol=1e-9)
    for steps in (2, 5):
        part = solve(problem, solver, tol=1e-9, max_iter=steps)
        rest = solve(problem, solver, tol=1e-9, start=part)
        np.testing.assert_allclose(rest.w, whole.w, rtol=0.0, atol=1e-9)


def test_faces_are_factored(alike, monkeypatch):
    seen = []
    monkeypatch.setattr(columns, "to_face", lambda *arguments: seen.append(1) or to_face(*arguments))
    X, y = alike
    problem = Problem(LinearRisk(X, y, "logistic", n_threads=1), "l1", 1e-4)
    assert solve(problem, Coordinate(working_set=10, max_epochs=7), tol=1e-9).converged
    assert seen


@pytest.mark.parametrize("seed", range(5))
def test_the_objective_falls_on_a_singular_face(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 6))
    H, slope, z = A.T @ A, A.T @ rng.normal(size=4), rng.normal(size=6)
    u, v = np.full(6, 0.3), np.zeros(6)

    def objective(x):
        return slope @ (x - z) + 0.5 * (x - z) @ H @ (x - z) + u @ np.abs(x)

    to = to_face(H, slope, (u, v, *FREE), z, factored)
    assert objective(to) <= objective(z)
    assert np.all(to * z >= 0.0)


def test_an_inner_minimum_is_exact(rng):
    A = rng.normal(size=(20, 6))
    H, z, u, v = A.T @ A, np.full(6, 5.0), np.full(6, 0.1), np.full(6, 0.2)
    target = np.linspace(4.0, 6.0, 6)
    slope = H @ (z - target) - u - v * target
    np.testing.assert_allclose(to_face(H, slope, (u, v, *FREE), z, factored), target, atol=1e-9)
