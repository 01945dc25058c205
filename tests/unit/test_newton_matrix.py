"""Newton steps whose matrix is only near the exact one, and what rounding bounds take the place of dear ones."""

import numpy as np
import pytest
from scipy import sparse

import bmrm
from bmrm import LinearRisk, Problem, _core, solve
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.score_error import growth
from bmrm.solvers.newton_matrix import Formed, StepMatrix
from bmrm.solvers.newton_system import NewtonSystem


def many_rows(m=4000, d=5, loss="logistic", n_threads=1):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.6)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(m) > 0.0, 1, -1)
    return LinearRisk(sparse.csr_array(X), y, loss, n_threads=n_threads)


def system_of(risk, lam):
    curvature = RowCurvature(risk)
    return NewtonSystem(curvature, np.full(risk.dim, lam)), curvature.at(np.zeros(risk.design.n_rows))


def test_a_part_of_many_rows_is_near_the_whole():
    risk = many_rows()
    system, c = system_of(risk, 1e-3)
    g = np.arange(1.0, 1.0 + risk.dim)
    exact, near = system.at(c)(g, 1e-2), system.at(c, rough=True)(g, 1e-2)
    assert 1e-6 < np.linalg.norm(near - exact) / np.linalg.norm(exact) < 0.2
    assert np.allclose(system.diagonal, RowCurvature(risk).diagonal(c) + 1e-3)


@pytest.mark.parametrize(("m", "lam"), [(300, 1e-3), (3000, 1e-7)], ids=["few rows", "small lam"])
def test_the_whole_is_formed_where_a_part_would_not_be_near(m, lam):
    system, c = system_of(many_rows(m), lam)
    g = np.ones(5)
    assert np.array_equal(system.at(c)(g, 1e-2), system.at(c, rough=True)(g, 1e-2))


def test_the_last_matrix_closes_the_gap_and_is_used_for_no_more_than_that():
    risk = many_rows()
    system, _ = system_of(risk, 1e-3)
    matrix = StepMatrix(system, RowCurvature(risk), Formed(), exact=False)
    scores = np.zeros(risk.design.n_rows)
    assert not matrix.choose(scores, 1.0, 0.0, 1e-3)  # far: a part
    matrix.note(1.0)
    assert not matrix.choose(scores + 1.0, 1.0, 0.99, 1e-3)
    assert np.array_equal(matrix.formed.scores, scores)  # near: the last one
    matrix.note(1.0)
    assert not matrix.choose(scores + 1.0, 1.0, 0.99, 1e-3)
    assert np.array_equal(matrix.formed.scores, scores + 1.0)  # it did not close the gap: a new one
    matrix.note(0.1)
    assert matrix.choose(scores, 1.0, 0.5, 1e-3)  # and an exact one after a short step


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_stopping_and_going_on_is_the_same_run(loss, tol):
    problem = Problem(many_rows(loss=loss), "l2", 1e-3)
    whole = solve(problem, "newton", tol=tol)
    first = solve(problem, "newton", tol=tol, max_iter=2)
    rest = solve(problem, "newton", tol=tol, start=first)
    assert whole.converged
    assert np.array_equal(whole.w, rest.w)
    exact = solve(problem, "lbfgs", tol=1e-10).certificate
    assert whole.certificate.lower <= exact.upper
    assert exact.lower <= whole.certificate.upper


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "least_absolute"])
def test_rounding_is_bounded_by_the_norm_of_the_matrix(loss):
    risk = many_rows(60, 4, loss)
    w = np.array([1.0, -2.0, 0.5, 3.0])
    point = risk.at(w)
    e = 1e-3
    sides = [np.abs(risk.loss_and_slopes(point.scores + shift)[1]) for shift in (-e, e)]
    steepest = np.linalg.norm(np.maximum(*sides))
    assert risk.kernel.steepest(point.scores, risk.targets, None, risk.scale, e) == pytest.approx(steepest, rel=1e-12)
    assert growth(point, e) >= steepest * e * (1.0 - 1e-12)
    assert 0.0 < point.rounding < 1e-12
    assert risk.extent == pytest.approx(np.linalg.norm(risk.norms), rel=1e-12)


def test_squares_and_sizes_do_not_depend_on_the_number_of_threads():
    one, two = many_rows(80_000, 5), many_rows(80_000, 5, n_threads=2)
    assert one.extent == two.extent
    assert np.array_equal(one.norms, two.norms)
    assert np.array_equal(one.sizes(), two.sizes())
    weight = np.full(80_000, 2.0)
    squares, counts = np.zeros(5), np.zeros(5, np.int64)
    _core.column_sizes(one.design.matrix, weight, squares, counts)
    assert np.allclose(squares, 2.0 * one.norms**2, rtol=1e-12)


def test_the_last_scores_are_not_computed_again():
    risk = many_rows(60)
    w = np.ones(5)
    before = risk.at(w).value
    products = risk.products
    assert risk.at(w.copy()).value == before
    assert risk.products == products
    w[0] = 2.0
    assert risk.at(w).value != before
    assert risk.products == products + 1
    assert bmrm.LinearRisk(risk.design, risk.targets, "logistic").at(w).value == risk.at(w).value
