"""The sequential dual method for the multiclass hinge loss, and Newton's method for losses of several scores."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from reference import models
from scipy import sparse

from bmrm import LinearRisk, Problem, _core, solve
from bmrm._traits import Trait
from bmrm.losses import HierarchicalSoftmax, MulticlassHinge, MultivariateRegression, Softmax, Tree
from bmrm.regularizers import L2
from bmrm.risks.class_dual import ClassDual
from bmrm.risks.wide_curvature import WideCurvature
from bmrm.solvers.newton_wide import WideSystem

LAM = 0.02
COSTS = ((0.0, 1.0, 2.0, 0.5), (0.5, 0.0, 1.0, 3.0), (3.0, 1.0, 0.0, 1.0), (1.0, 0.0, 1.0, 0.0))
HINGES = [MulticlassHinge(), MulticlassHinge(COSTS)]
SMOOTH = [Softmax(), HierarchicalSoftmax(Tree((-1, 0, 0, -1))), MultivariateRegression(((2.0, -1.0), (-1.0, 1.0)))]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 6)) * (rng.random((90, 6)) < 0.7)
    return X, np.argmax(X[:, :4] + [0.5, 0.0, 0.0, -0.7] + 0.7 * rng.normal(size=(90, 4)), axis=1)


def targets_for(loss, data, rng):
    return rng.normal(size=(90, 2)) if isinstance(loss, MultivariateRegression) else loss.draw(rng, 90)[0]


def optimum(risk, X, regularizer, lam=LAM):
    wide = np.column_stack([X, np.ones(len(X))]) if risk.design.intercept else X
    bound = Problem(risk, regularizer, lam).regularizer
    return models.optimum(risk.loss, wide, risk.targets, bound, lam, risk.weight)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_step_on_the_simplex(k, rng):
    """Against an interior-point method, with equal and with different steps of the classes."""
    for trial in range(6):
        g, theta = rng.normal(size=k) * 10.0 ** rng.integers(-2, 3), rng.dirichlet(np.ones(k))
        q = np.full(k, rng.uniform(0.1, 5.0)) if trial % 2 else rng.uniform(0.1, 5.0, size=k)
        t = np.empty(k)
        _core.simplex_step(g, theta, q, t)
        assert t.min() >= 0.0
        assert t.sum() == pytest.approx(1.0, abs=1e-15)
        x = cp.Variable(k)
        value = g @ x - 0.5 * cp.sum(cp.multiply(q, cp.square(x - theta)))
        best = -models.solved(-value, [x >= 0, cp.sum(x) == 1])
        assert g @ t - 0.5 * np.sum(q * (t - theta) ** 2) == pytest.approx(best, rel=1e-8, abs=1e-8)


def test_the_step_without_curvature_is_a_vertex():
    t = np.empty(3)
    _core.simplex_step(np.array([1.0, 3.0, 2.0]), np.full(3, 1 / 3), np.zeros(3), t)
    np.testing.assert_array_equal(t, [0.0, 1.0, 0.0])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 10, 26, 32, 33, 35, 36, 70])
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_wide_products(k, sparse_rows, rng):
    """Blocks of scores that overlap, and what is left of them, for any number of scores."""
    X = rng.normal(size=(37, 9)) * (rng.random((37, 9)) < 0.5)
    W, L = rng.normal(size=(9, k)), rng.normal(size=(37, k))
    risk = LinearRisk(sparse.csr_array(X) if sparse_rows else X, np.zeros((37, k)), MultivariateRegression())
    F, G = np.empty((37, k)), np.empty((9, k))
    risk.design.matrix.dot_wide(W, F, 1)
    risk.design.matrix.tdot_wide(L, G, 1)
    np.testing.assert_allclose(F, X @ W, atol=1e-12)
    np.testing.assert_allclose(G, X.T @ L, atol=1e-12)


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_wide_products_do_not_depend_on_threads(sparse_rows, rng):
    X = rng.normal(size=(3000, 40))
    matrix = LinearRisk(sparse.csr_array(X) if sparse_rows else X, np.zeros(3000), "least_squares").design.matrix
    W, L = rng.normal(size=(40, 10)), rng.normal(size=(3000, 10))
    results = []
    for n_threads in (1, 2, 5):
        F, G = np.empty((3000, 10)), np.empty((40, 10))
        matrix.dot_wide(W, F, n_threads)
        matrix.tdot_wide(L, G, n_threads)
        results.append((F, G))
    for F, G in results[1:]:
        np.testing.assert_array_equal(F, results[0][0])
        np.testing.assert_array_equal(G, results[0][1])


@pytest.mark.parametrize("loss", HINGES, ids=["plain", "costs"])
@pytest.mark.parametrize("intercept", [False, True])
def test_dual_method_against_an_interior_point_method(loss, intercept, data, rng):
    X, y = data
    risk = LinearRisk(X, y, loss, sample_weight=rng.uniform(0.0, 2.0, size=90), intercept=intercept, n_threads=1)
    best = optimum(risk, X, "l2")
    result = solve(Problem(risk, "l2", LAM), "dual_coordinate", tol=1e-7, max_seconds=30)
    assert result.converged
    assert max(record.lower for record in result.history) <= best * (1 + 1e-8)
    assert result.certificate.upper == pytest.approx(best, rel=2e-7)


@pytest.mark.parametrize("loss", HINGES, ids=["plain", "costs"])
def test_weights_that_differ_between_classes(loss, data):
    X, y = data
    risk = LinearRisk(X, y, loss, n_threads=1)
    regularizer = L2(weights=np.linspace(0.3, 3.0, risk.dim))
    result = solve(Problem(risk, regularizer, LAM), "dual_coordinate", tol=1e-7, max_seconds=30)
    assert result.converged
    assert result.certificate.upper == pytest.approx(optimum(risk, X, regularizer), rel=2e-7)


def dual(data, loss, intercept=False):
    risk = LinearRisk(*data, loss, intercept=intercept, n_threads=1)
    return ClassDual(risk, np.ones(risk.dim), LAM)


@pytest.mark.parametrize("loss", HINGES, ids=["plain", "costs"])
def test_the_sum_of_terms_is_the_gap(loss, data):
    rows = dual(data, loss)
    point = rows.flat()
    before = rows.value(point)
    for key in range(5):
        rows.epoch(point, key, reach=np.inf)
        after = rows.value(point)
        assert after >= before - 1e-12
        before = after
    check = rows.check(point, np.inf)
    half = 0.5 * LAM * rows.norm(point.w) ** 2
    assert check.gap == pytest.approx(check.value + half - (check.offset - half), rel=1e-9, abs=1e-12)


def test_w_is_that_of_theta(data):
    rows = dual(data, MulticlassHinge())
    point = rows.flat()
    for key in range(50):
        rows.epoch(point, key, reach=np.inf)
    kept, error = point.w.copy(), point.error
    rows.renew(point, np.zeros_like(kept))
    assert rows.norm(kept - point.w) <= error + point.error
    assert error < 1e-9


def test_settled_rows_are_at_vertices(data):
    rows = dual(data, MulticlassHinge())
    point = rows.flat()
    for key in range(60):
        rows.epoch(point, key, reach=0.01)
    assert 0 < point.n_active < 90
    assert np.array_equal(np.sort(point.active), np.arange(90))
    assert (point.s.reshape(90, -1)[point.active[point.n_active :]].max(axis=1) == 1.0).all()


def test_level_planes_lie_below_the_risk(data, rng):
    """No slope in the constants, and below R everywhere, however far theta is from level."""
    rows = dual(data, MulticlassHinge(COSTS), intercept=True)
    point = rows.flat()
    for key in range(6):
        level = rows.levelled(point)
        assert np.abs(level.a[-4:]).max() <= 1e-15
        for size in (0.1, 1.0, 10.0):
            w = size * rng.normal(size=rows.risk.dim)
            assert level.a @ w + level.b <= rows.risk.at(w).value + 1e-12
        rows.epoch(point, key, reach=np.inf)


@pytest.mark.parametrize("loss", [MulticlassHinge(), Softmax()], ids=lambda loss: loss.name)
def test_labels_that_mean_nothing(loss, rng):
    """Where w = 0 is best, planes of single points are steep in the constants."""
    risk = LinearRisk(rng.normal(size=(300, 6)), rng.integers(0, 4, 300), loss, intercept=True, n_threads=1)
    assert solve(Problem(risk, "l2", LAM), tol=1e-6, max_seconds=30).converged


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_second_derivatives_are_those_of_the_gradient(loss, data, rng):
    risk = LinearRisk(data[0], targets_for(loss, data, rng), loss, intercept=True, n_threads=1)
    curvature = WideCurvature(risk)
    w, step = rng.normal(size=risk.dim), 1e-5
    bend = curvature.at(risk.scores(w))
    H = np.stack([curvature.times(bend, unit) for unit in np.eye(risk.dim)])
    for unit, column in zip(np.eye(risk.dim), H):
        difference = risk.evaluate(w + step * unit)[1] - risk.evaluate(w - step * unit)[1]
        np.testing.assert_allclose(column, difference / (2 * step), atol=1e-7)
    np.testing.assert_allclose(curvature.diagonal(bend), np.diag(H), atol=1e-12)
    k = curvature.k
    np.testing.assert_allclose(bend.total(), H[-k:, -k:], atol=1e-12)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_against_an_interior_point_method(loss, intercept, data, rng):
    X = data[0]
    risk = LinearRisk(X, targets_for(loss, data, rng), loss, intercept=intercept, n_threads=1)
    best = optimum(risk, X, "l2")
    result = solve(Problem(risk, "l2", LAM), "newton", tol=1e-8, max_seconds=30)
    assert result.converged
    assert result.iterations <= 12
    assert max(record.lower for record in result.history) <= best * (1 + 1e-7)
    assert result.certificate.upper == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_preconditioned_steps_solve_the_system(loss, data, rng):
    risk = LinearRisk(data[0], targets_for(loss, data, rng), loss, n_threads=1)
    curvature, r = WideCurvature(risk), np.full(risk.dim, LAM)
    bend = curvature.at(risk.scores(rng.normal(size=risk.dim)))
    H = np.stack([curvature.times(bend, unit) for unit in np.eye(risk.dim)]) + np.diag(r)
    g = risk.evaluate(rng.normal(size=risk.dim))[1]
    exact = np.linalg.solve(H, g)
    error = WideSystem(curvature, r).solve(bend, g) - exact
    assert error @ H @ error <= 0.05 * (exact @ H @ exact)


def test_traits_tell_who_fits(data):
    X, y = data
    assert Trait.DUAL_ROWS in LinearRisk(X, y, MulticlassHinge()).traits
    assert Trait.CURVED_ROWS in LinearRisk(X, y, Softmax()).traits
    with pytest.raises(ValueError, match=Trait.DUAL_ROWS.value):
        solve(Problem(LinearRisk(X, y, Softmax()), "l2", LAM), "dual_coordinate")
    with pytest.raises(ValueError, match=Trait.CURVED_ROWS.value):
        solve(Problem(LinearRisk(X, y, MulticlassHinge()), "l2", LAM), "newton")
