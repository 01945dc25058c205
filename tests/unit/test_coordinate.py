"""The coordinate solver's own parts: kernels, planes from slopes, screening, working sets, warm starts."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LAYOUTS
from reference import models

from bmrm import LinearRisk, Problem, _core, path, solve
from bmrm._traits import Trait
from bmrm.losses import LOSSES, Huber, LeastSquares, Logistic, Poisson, SquaredHinge
from bmrm.regularizers import L1, L2, ElasticNet
from bmrm.risks.columns import ColumnModel, Penalty, Plane
from bmrm.solvers.base import Start
from bmrm.solvers.coordinate import Coordinate

CURVED = [loss for cls in LOSSES.values() for loss in cls.examples() if Trait.CURVATURE in loss.traits]
every_curved = pytest.mark.parametrize("loss", CURVED, ids=repr)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def drawn(loss, m=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.6)
    return X.astype(np.float32).astype(np.float64), loss.draw(rng, m)[0]


def lam_max(risk):
    """The least lam for which w = 0 is optimal, but for the constant."""
    start = solve(Problem(risk, L1(weights=[1e6] * risk.design.n_cols), 1.0), "coordinate", tol=1e-10)
    return float(np.abs(risk.evaluate(start.w)[1][: risk.design.n_cols]).max())


def violation(problem, w):
    """How far w is from the optimality conditions of l1, in units of lam."""
    g, s = problem.risk.evaluate(w)[1], problem.lam * np.broadcast_to(problem.regularizer.s, w.shape)
    at_zero = np.maximum(np.abs(g) - s, 0.0)
    return float(np.max(np.where(w == 0.0, at_zero, np.abs(g + s * np.sign(w))))) / problem.lam


@every_curved
@pytest.mark.parametrize("intercept", [False, True])
def test_optimality_conditions(loss, intercept):
    X, y = drawn(loss)
    risk = LinearRisk(X, y, loss, intercept=intercept, n_threads=1)
    problem = Problem(risk, "l1", 0.02)
    result = solve(problem, "coordinate", tol=1e-12, max_iter=200)
    assert violation(problem, result.w) < 1e-5
    assert result.certificate.relative_gap < 1e-9


@every_layout
def test_layouts_agree(layout):
    X, y = drawn(Logistic())
    risks = [LinearRisk(data, y, "logistic", intercept=True, n_threads=1) for data in (X, LAYOUTS[layout](X))]
    results = [solve(Problem(risk, "l1", 0.02), "coordinate", tol=1e-10) for risk in risks]
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-8)


@every_layout
def test_columns_are_the_rows_transposed(layout, rng):
    """One epoch from 0 without penalty is the Gauss-Seidel step, with H = X'DX formed, and by columns."""
    X, _ = drawn(Logistic())
    matrix = LinearRisk(LAYOUTS[layout](X), np.ones(60), "least_squares").design.matrix
    D, g = rng.uniform(0.0, 1.0, size=60), rng.normal(size=5)
    working = np.array([0, 3, 4, 9, 12])  # the last one is the constant
    chosen = np.column_stack([X, np.ones(60)])[:, working]
    H = np.empty(25)
    _core.selected_gram(matrix, working, D, H)
    np.testing.assert_allclose(H.reshape(5, 5), chosen.T @ (D[:, None] * chosen), rtol=1e-12)
    expected = np.zeros(5)
    for j in range(5):
        expected[j] = -(g[j] + H.reshape(5, 5)[j] @ expected) / H.reshape(5, 5)[j, j]
    zero, wide = np.zeros(5), np.full(5, np.inf)
    formed, by_columns, slope = np.zeros(5), np.zeros(5), g.copy()
    _core.descend_with_matrix(H, slope, zero, zero, -wide, wide, formed, 0.0, 1)
    _core.columns(matrix).descend(working, D, g, zero, zero, -wide, wide, by_columns, np.zeros(len(D)), 0.0, 1)
    np.testing.assert_allclose(formed, expected, rtol=1e-11)
    np.testing.assert_allclose(by_columns, expected, rtol=1e-11)
    np.testing.assert_allclose(slope, g + H.reshape(5, 5) @ formed, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_both_descents_solve_the_subproblem(seed):
    """With absolute values, squares, bounds and a free coordinate, against the optimality conditions."""
    rng = np.random.default_rng(seed)
    X, D = rng.normal(size=(40, 15)), rng.uniform(0.0, 1.0, size=40)
    matrix = LinearRisk(X, np.ones(40), "least_squares").design.matrix
    working, g, start = np.arange(15), 20.0 * rng.normal(size=15), rng.normal(size=15)
    u, v = np.where(np.arange(15) == 3, 0.0, 8.0), rng.uniform(0.0, 1.0, size=15)
    lower, upper = np.full(15, -1.2), np.full(15, 1.5)
    H = X.T @ (D[:, None] * X)
    formed, by_columns = start.copy(), start.copy()
    _core.descend_with_matrix(H.ravel(), g.copy(), u, v, lower, upper, formed, 1e-12, 5000)
    _core.columns(matrix).descend(working, D, g, u, v, lower, upper, by_columns, np.zeros(len(D)), 1e-12, 5000)
    for z in (formed, by_columns):
        slope = g + H @ (z - start) + v * z
        moved = np.clip(np.sign(z - slope) * np.maximum(np.abs(z - slope) - u, 0.0), lower, upper)
        np.testing.assert_allclose(moved, z, atol=1e-9)


@every_curved
def test_conjugates(loss, rng):
    """l(f) + l*(s) >= s f, with equality where s is the slope at f; infinite outside the range of the slopes."""
    m = 200
    f, y = 3.0 * rng.normal(size=m), loss.encode(loss.draw(rng, m)[0])
    kernel, slopes, one = loss.kernel(), np.empty(m), np.ones(1)
    kernel.evaluate(f, y, None, 1.0, slopes)
    for i in range(m):
        at = np.array([f[i]])
        value = kernel.evaluate(at, y[i : i + 1], None, 1.0, np.empty(1))[0]
        touching = _core.conjugate(kernel, slopes[i : i + 1], 1.0, y[i : i + 1], None, 1.0)[0]
        assert value + touching == pytest.approx(slopes[i] * f[i], abs=1e-9 * (1.0 + abs(value) + abs(touching)))
        s = 2.0 * rng.normal() * one
        conjugate = _core.conjugate(kernel, s, 1.0, y[i : i + 1], None, 1.0)[0]
        assert value + conjugate >= s[0] * f[i] - 1e-9
        clipped = s.copy()
        _core.clip_slopes(kernel, clipped, y[i : i + 1])
        inside = _core.conjugate(kernel, clipped, 1.0 - 1e-12, y[i : i + 1], None, 1.0)[0]
        assert np.isfinite(inside)
        assert np.isinf(conjugate) == (clipped[0] != s[0])


@every_curved
def test_the_largest_curvature_is_one(loss, rng):
    f, y = 3.0 * rng.normal(size=500), loss.encode(loss.draw(rng, 500)[0])
    curvature = np.empty(500)
    loss.kernel().curvature(f, y, None, 1.0, curvature)
    assert curvature.max() <= _core.largest_curvature(loss.kernel()) * (1.0 + 1e-12)


def test_losses_without_curvature_have_no_conjugate_here():
    with pytest.raises(ValueError, match="second derivatives"):
        _core.largest_curvature(LOSSES["hinge"]().kernel())


@every_curved
def test_planes_from_any_slopes_lie_below_the_risk(loss, rng):
    X, y = drawn(loss)
    weight, offset = rng.uniform(0.0, 2.0, size=60), 0.1 * rng.normal(size=60)
    risk = LinearRisk(X, y, loss, sample_weight=weight, offset=offset, intercept=True, n_threads=1)
    s = rng.normal(size=60)
    _core.clip_slopes(risk.kernel, s, risk.targets)
    lw = s * risk.full_weight
    plane = Plane(risk, s, risk.pull_back(lw, float(lw.sum())))
    for theta in (1.0, 0.6, 0.0):
        for w in rng.normal(size=(20, 13)):
            assert theta * float(plane.a @ w) + plane.offset(theta) <= risk.evaluate(w)[0] + 1e-12


@pytest.mark.parametrize("loss", [Logistic(), LeastSquares(), Huber()], ids=repr)
@pytest.mark.parametrize("kind", [L1, ElasticNet])
@pytest.mark.parametrize("seed", range(4))
def test_screening_never_drops_an_active_coordinate(loss, kind, seed):
    X, y = drawn(loss, m=80, d=70, seed=seed)
    problem = Problem(LinearRisk(X, y, loss, intercept=True, n_threads=1), kind(), 0.04)
    exact = solve(problem, "coordinate", tol=1e-12)
    dropped = []
    steps = Coordinate().steps(problem, Start(np.zeros(71)))
    for _, step in zip(range(20), steps):
        dropped.append(int((~step.memory["alive"]).sum()))
        assert not np.any((np.abs(exact.w) > 1e-7) & ~step.memory["alive"])
    assert dropped[-1] > 0
    assert dropped == sorted(dropped)


def test_screening_changes_nothing_but_the_work():
    X, y = drawn(Logistic(), m=80, d=40)
    problem = Problem(LinearRisk(X, y, "logistic", n_threads=1), "l1", 0.05)
    results = [solve(problem, Coordinate(screening=choice), tol=1e-10) for choice in (True, False)]
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@every_curved
def test_above_lam_max_the_first_step_proves_zero(loss, intercept):
    X, y = drawn(loss)
    risk = LinearRisk(X, y, loss, intercept=intercept, n_threads=1)
    largest = max(lam_max(risk), 1e-3)  # 0 for the squared perceptron, whose optimum is always 0
    result = solve(Problem(risk, "l1", 1.001 * largest), "coordinate", tol=1e-6)
    assert result.converged
    assert result.iterations == 1
    assert not result.w[:12].any()
    below = solve(Problem(risk, "l1", 0.98 * largest), "coordinate", tol=1e-9)
    assert below.w[:12].any() or largest == 1e-3


def test_zero_and_equal_columns():
    X, y = drawn(Logistic())
    X[:, 3] = 0.0
    X[:, 5] = X[:, 4]
    X[:, 6] = -2.0 * X[:, 4]
    risk = LinearRisk(X, y, "logistic", n_threads=1)
    for kind in (L1, ElasticNet):
        problem = Problem(risk, kind(), 0.01)
        result = solve(problem, "coordinate", tol=1e-10)
        assert result.converged
        assert result.w[3] == 0.0
        exact = models.optimum(Logistic(), X, risk.targets, problem.regularizer, 0.01)
        assert result.certificate.upper == pytest.approx(exact, rel=1e-7)
    assert result.w[4] == pytest.approx(result.w[5], abs=1e-6)


def test_rows_as_weights_and_offsets():
    X, y = drawn(Poisson())
    rng = np.random.default_rng(3)
    counts, offset = rng.integers(0, 4, size=60), 0.2 * rng.normal(size=60)
    weighted = LinearRisk(X, y, Poisson(), sample_weight=counts, offset=offset, intercept=True, n_threads=1)
    repeated = LinearRisk(
        np.repeat(X, counts, axis=0), np.repeat(y, counts), Poisson(), offset=np.repeat(offset, counts),
        intercept=True, n_threads=1,
    )  # fmt: skip
    results = [solve(Problem(risk, "l1", 0.02), "coordinate", tol=1e-11) for risk in (weighted, repeated)]
    np.testing.assert_allclose(results[0].w, results[1].w, atol=1e-7)
    assert results[0].certificate.lower == pytest.approx(results[1].certificate.upper, rel=1e-9)


@pytest.mark.parametrize(("r", "cls"), [(1.0, L1), (0.0, L2)])
@pytest.mark.parametrize("solver", ["coordinate", "ls_bmrm"])
def test_the_ends_of_the_elastic_net_are_the_same_problems(r, cls, solver):
    X, y = drawn(Logistic())
    risk = LinearRisk(X, y, "logistic", intercept=True, n_threads=1)
    one, other = (solve(Problem(risk, kind, 0.03), solver, tol=1e-8) for kind in (ElasticNet(r=r), cls()))
    assert one.certificate.upper == pytest.approx(other.certificate.upper, rel=1e-8)
    np.testing.assert_allclose(one.w, other.w, atol=1e-3)


def test_a_small_working_set_gets_there():
    X, y = drawn(SquaredHinge(), m=100, d=60)
    problem = Problem(LinearRisk(X, y, "squared_hinge", n_threads=1), "l1", 0.01)
    small, large = (solve(problem, Coordinate(working_set=size), tol=1e-9) for size in (1, 1000))
    assert small.converged
    np.testing.assert_allclose(small.w, large.w, atol=1e-7)
    assert small.iterations > large.iterations


def test_by_columns_and_with_the_matrix():
    """The two forms of the descent end at the same point."""
    X, y = drawn(Logistic(), m=100, d=60)
    risk = LinearRisk(X, y, "logistic", n_threads=1)
    model, point = ColumnModel(risk), risk.at(np.zeros(60))
    wide = np.full(60, np.inf)
    penalty = Penalty(np.full(60, 0.01), np.zeros(60), -wide, wide)
    found = []
    for expected in (0.0, 1e9):
        model.epochs = expected
        D = model.curvature(point)
        found.append(model.minimize(D, point.subgradient, point.w, np.arange(60), penalty, 1e-12, 10000))
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)


def test_long_columns_get_a_matrix(rng, monkeypatch):
    """More than 300 columns, but each of them far longer than the matrix is wide, where many epochs are expected."""
    formed = []
    monkeypatch.setattr(
        "bmrm.risks.columns._core.selected_gram",
        lambda *arguments, form=_core.selected_gram: (formed.append(arguments[1].size), form(*arguments)),
    )
    for m, sizes in ((1000, []), (1400, [320])):
        X = rng.normal(size=(m, 320))
        risk = LinearRisk(X, np.sign(X[:, 0]), "logistic", n_threads=1)
        model, point, wide = ColumnModel(risk), risk.at(np.zeros(320)), np.full(320, np.inf)
        model.epochs = 100.0
        penalty = Penalty(np.full(320, 1e-3), np.zeros(320), -wide, wide)
        D = model.curvature(point)
        z = model.minimize(D, point.subgradient, point.w, np.arange(320), penalty, 1e-12, 10000)
        g = point.subgradient + X.T @ (D * (X @ z))
        assert penalty.violation(z, g, slice(None)).max() < 1e-9
        assert formed == sizes


def test_nonzeros_as_many_as_rows():
    """As lam goes to 0, all rows are met, by as many columns: 49 steps (309 where stages are not solved)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2500))
    y = X[:, :5] @ rng.normal(size=5) + rng.normal(size=250)
    result = solve(Problem(LinearRisk(X, y, "least_squares"), "l1", 1e-6), "coordinate", tol=1e-6, max_iter=100)
    assert result.converged


def test_one_model_is_enough_for_least_squares_with_few_columns(rng):
    """The model is the risk itself: it is minimized to rounding, and the plane at its minimum proves that."""
    X = rng.normal(size=(500, 8)) @ np.diag(np.geomspace(1.0, 100.0, 8))
    y = X @ rng.normal(size=8) + rng.normal(size=500)
    result = solve(Problem(LinearRisk(X, y, "least_squares"), "l1", 0.1), "coordinate", tol=1e-6)
    assert result.converged
    assert result.iterations == 1


def test_faces_end_the_descent_where_columns_are_alike(rng):
    """Epochs alone need as many as the condition of H; the steps on faces have to drop what changes its sign."""
    X = rng.normal(size=(100, 1)) + 0.03 * rng.normal(size=(100, 30))
    H, g = X.T @ X / 100.0, -X.T @ (X @ rng.normal(size=30) + rng.normal(size=100)) / 100.0
    u, none, wide, z, slope = np.full(30, 1e-4), np.zeros(30), np.full(30, np.inf), np.zeros(30), g.copy()
    epochs, _ = _core.descend_with_matrix(H.ravel(), slope, u, none, -wide, wide, z, 1e-12, 200)
    assert epochs < 200
    slope = g + H @ z
    assert np.max(np.where(z == 0.0, np.abs(slope) - u, np.abs(slope + u * np.sign(z)))) < 1e-9


def test_a_descent_by_columns_does_not_depend_on_threads(rng):
    X = rng.normal(size=(1000, 100))
    matrix = LinearRisk(X, np.ones(1000), "least_squares").design.matrix
    D, wide = np.full(1000, 1e-3), np.full(100, np.inf)
    g, u, none, found = rng.normal(size=100), np.full(100, 1e-3), np.zeros(100), []
    for n_threads in (1, 2, 3):
        z, q = np.zeros(100), np.zeros(1000)
        _core.columns(matrix).descend(np.arange(100), D, g, u, none, -wide, wide, z, q, 1e-9, 50, n_threads)
        np.testing.assert_allclose(q, D * (X @ z), atol=1e-12)
        found.append(z)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_path_needs_fewer_steps_than_its_parts():
    X, y = drawn(Logistic(), m=200, d=60)
    risk = LinearRisk(X, y, "logistic", intercept=True, n_threads=1)
    lams = lam_max(risk) * np.geomspace(0.9, 0.01, 12)
    warm = path(risk, "l1", lams, "coordinate", tol=1e-6)
    cold = [solve(Problem(risk, "l1", lam), "coordinate", tol=1e-6) for lam in lams]
    assert all(result.converged for result in warm)
    assert sum(result.iterations for result in warm) < 0.8 * sum(result.iterations for result in cold)
    for one, other in zip(warm, cold):
        assert one.certificate.upper == pytest.approx(other.certificate.upper, rel=1e-6)


def test_piecewise_linear_losses_and_oracles_are_refused():
    X, y = drawn(Logistic())

    class Oracle:
        dim, floor, traits = 12, 0.0, (Trait.SMOOTH_RISK, Trait.CURVATURE)
        evaluate = LinearRisk(X, y, "logistic").evaluate

    for risk, trait in ((LinearRisk(X, y, "hinge"), Trait.CURVATURE), (Oracle(), Trait.ROWS)):
        with pytest.raises(ValueError, match=trait.value):
            solve(Problem(risk, "l1", 0.1), "coordinate")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3, 1], 60, 4), "columns must increase"),
        (([0, 14], 60, 4), "columns must increase"),
        (([0, 1], 59, 4), "D has length 59"),
        (([0, 1], 60, 5), "H has length 5"),
    ],
)
def test_the_kernel_checks_its_arguments(arguments, message):
    X, y = drawn(Logistic())
    columns, rows, cells = arguments
    matrix = LinearRisk(X, y, "logistic").design.matrix
    with pytest.raises(ValueError, match=message):
        _core.selected_gram(matrix, np.array(columns), np.ones(rows), np.empty(cells))
