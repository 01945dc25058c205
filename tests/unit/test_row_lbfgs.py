"""L-BFGS in the space of the rows: the same numbers as in the space of the columns."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, solve
from bmrm.losses import Logistic, Softmax, SquaredHinge
from bmrm.regularizers import L2
from bmrm.solvers.row_pairs import Pairs, SlopePlanes


def wide(m=30, d=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.2)
    return X, np.where(rng.normal(size=m) > 0.0, 1.0, -1.0), rng


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize("lam", [1e-1, 1e-4, 1e-7])
def test_a_start_outside_the_rows_with_weights_and_offsets(loss, lam):
    X, y, rng = wide()
    risk = LinearRisk(X, y, loss, sample_weight=rng.random(30), offset=rng.normal(size=30), n_threads=1)
    problem = Problem(risk, L2(weights=rng.uniform(0.5, 2.0, size=100)), lam)
    result = solve(problem, "row_lbfgs", tol=1e-6, start=rng.normal(size=100))
    exact = solve(problem, "newton", tol=1e-9).certificate
    assert result.converged, str(result)
    assert result.certificate.lower <= exact.upper
    assert exact.lower <= result.certificate.upper <= exact.upper * (1.0 + 1e-6) + 1e-12


@pytest.mark.parametrize("lam", [1e-1, 1e-4])
def test_several_scores_for_each_row(lam):
    X, _, rng = wide()
    risk = LinearRisk(X, rng.integers(0, 4, size=30), Softmax(), sample_weight=rng.random(30), n_threads=1)
    problem = Problem(risk, L2(weights=rng.uniform(0.5, 2.0, size=400)), lam)
    result = solve(problem, "row_lbfgs", tol=1e-6, start=rng.normal(size=400))
    exact = solve(problem, "newton", tol=1e-9).certificate
    assert result.converged, str(result)
    assert exact.lower <= result.certificate.upper <= exact.upper * (1.0 + 1e-6) + 1e-12
    assert result.certificate.lower <= exact.upper


def test_a_copy_of_pairs_and_planes_goes_on_by_itself():
    X, _, rng = wide()
    H, pairs, planes = X @ X.T, Pairs(3, 30), SlopePlanes(3)
    for _ in range(2):
        gamma, slopes = rng.normal(size=30), rng.normal(size=30)
        u, image = pairs.direction(gamma, H @ gamma)
        pairs.propose(u, image, gamma, H @ gamma)
        planes.add(slopes, H @ slopes, 0.5)
    other, others = copy.deepcopy(pairs), copy.deepcopy(planes)
    gamma, slopes = rng.normal(size=30), rng.normal(size=30)
    expected = copy.deepcopy(pairs).direction(gamma, H @ gamma), copy.deepcopy(planes).solve(0.1)
    other.direction(slopes, H @ slopes)
    others.add(slopes, H @ slopes, 1.0)
    np.testing.assert_array_equal(pairs.direction(gamma, H @ gamma), expected[0])
    assert planes.solve(0.1) == expected[1]


def test_the_recursion_in_coefficients_is_the_one_in_columns():
    X, _, rng = wide()
    H = X @ X.T
    pairs, kept, gamma = Pairs(3, 30), [], rng.normal(size=30)
    for _ in range(6):
        u, image = pairs.direction(gamma, H @ gamma)
        np.testing.assert_allclose(image, H @ u, atol=1e-9 * np.abs(image).max())
        q, alphas = X.T @ gamma, []
        for s, y in reversed(kept):
            alphas.append(s @ q / (s @ y))
            q = q - alphas[-1] * y
        if kept:
            q = q * (kept[-1][0] @ kept[-1][1]) / (kept[-1][1] @ kept[-1][1])
        for (s, y), alpha in zip(kept, reversed(alphas)):
            q = q + (alpha - y @ q / (s @ y)) * s
        np.testing.assert_allclose(X.T @ u, -q, atol=1e-9 * np.abs(q).max())
        after = gamma + H @ u / np.linalg.norm(H) + 0.3 * u  # as a quadratic function's gradient would change
        pairs.propose(u, image, gamma, H @ gamma)
        kept = [*kept, (X.T @ u, X.T @ (after - gamma))][-3:]
        gamma = after


def test_the_combination_of_planes_is_the_best_one():
    X, _, rng = wide()
    planes = SlopePlanes(3)
    for _ in range(7):
        slopes = rng.normal(size=30)
        planes.add(slopes, X @ X.T @ slopes, float(rng.normal()))
        bound = planes.solve(0.1)
        slopes, offset = planes.combined()
        assert bound == pytest.approx(offset - 5.0 * float(np.sum((X.T @ slopes) ** 2)))
    for slopes, _, offset in planes._planes:
        assert bound >= offset - 5.0 * float(np.sum((X.T @ slopes) ** 2)) - 1e-9
