"""What is particular to the second-order solvers: few steps, raw columns, tiny lam, free coordinates to 1e-9."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from catalogue import scalar_losses

from bmrm import LinearRisk, Problem, _core, solve
from bmrm._traits import Trait
from bmrm.losses import (
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Huber,
    LeastAbsolute,
    LeastSquares,
    Logistic,
    Poisson,
    Quantile,
    SquaredHinge,
)
from bmrm.problem import missing
from bmrm.regularizers import L1, L2
from bmrm.risks.curvature import RowCurvature
from bmrm.risks.envelope import Envelope, plane
from bmrm.risks.terms import RowTerms
from bmrm.solvers import DualCoordinate, InteriorPoint, Newton, SemismoothNewton
from bmrm.solvers.base import Start
from bmrm.solvers.elastic_system import by_faces
from bmrm.solvers.newton_system import NewtonSystem, conjugate_gradients, is_sampled, rows_are_few

SOLVERS = [Newton(), SemismoothNewton(), InteriorPoint()]
LOSSES = [Hinge(), SquaredHinge(), Logistic(), LeastAbsolute(), LeastSquares(), Huber(delta=0.5)]
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def raw_columns(m=200, d=6, seed=0):
    """Columns of size 1e-3 to 1e4, two of them nearly equal, and labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 1.0
    X[:, 1] = X[:, 0] + 1e-3 * rng.normal(size=m)
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=m) > 0.0, 1.0, -1.0)
    return X * np.logspace(-3, 4, d), y


@every_solver
@every_loss
@pytest.mark.parametrize("lam", [1e-8, 1e-4, 1.0, 1e6])
@pytest.mark.parametrize("intercept", [False, True])
def test_raw_columns_at_any_lam(loss, lam, intercept, solver):
    X, y = raw_columns()
    problem = Problem(LinearRisk(X, y, loss, intercept=intercept, n_threads=1), "l2", lam)
    if not missing(solver, problem):
        result = solve(problem, solver, tol=1e-6, max_iter=120)
        assert result.converged, str(result)


@every_solver
@every_loss
def test_free_coordinates_to_nine_digits(loss, solver):
    X, y = raw_columns()
    regularizer = L2(weights=np.array([1.0, 0.0, 2.0, 1.0, 1.0, 0.5, 0.0]))
    problem = Problem(LinearRisk(X / X.std(axis=0), y, loss, intercept=True, n_threads=1), regularizer, 1e-3)
    if not missing(solver, problem):
        assert solve(problem, solver, tol=1e-9, max_iter=120).converged


@every_solver
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_targets_of_any_size(size, solver):
    """The intercept lies far outside the interval in which the master looks for it first."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    y = size * (X @ np.ones(3) + 20.0 + rng.normal(size=100))
    loss = Huber(delta=size) if isinstance(solver, Newton) else LeastAbsolute()
    problem = Problem(LinearRisk(X, y, loss, intercept=True, n_threads=1), "l2", 1e-4)
    assert solve(problem, solver, tol=1e-6, max_iter=100).converged


@every_solver
@pytest.mark.parametrize("loss", [SquaredHinge(), Huber(delta=0.5)], ids=repr)
def test_products_do_what_the_matrix_does(loss, solver):
    """Conjugate gradients in place of the factor lead to the same optimum."""
    X, y = raw_columns()
    problem = Problem(LinearRisk(X / X.std(axis=0), y, loss, intercept=True, n_threads=1), "l2", 1e-2)
    one = solve(problem, solver, tol=1e-6)
    two = solve(problem, type(solver)(most_columns=0), tol=1e-6)
    assert one.converged
    assert two.converged
    assert two.certificate.upper == pytest.approx(one.certificate.upper, rel=1e-6)


@every_solver
def test_weights_and_offsets_of_rows(solver):
    """A weight of 2 is the row twice, a weight of 0 no row, and an offset is part of the target."""
    X, y = raw_columns(m=60)
    X, rng = X / X.std(axis=0), np.random.default_rng(3)
    offset, weight = rng.normal(size=60), rng.integers(0, 3, size=60).astype(float)
    times = weight.astype(int)
    weighted = LinearRisk(X, y, Huber(), sample_weight=weight, offset=offset, n_threads=1)
    repeated = LinearRisk(np.repeat(X, times, axis=0), np.repeat(y - offset, times), Huber(), n_threads=1)
    results = [solve(Problem(risk, "l2", 1e-2), solver, tol=1e-8) for risk in (weighted, repeated)]
    assert all(result.converged for result in results)
    assert results[0].certificate.upper == pytest.approx(results[1].certificate.upper, rel=1e-8)


def test_least_squares_needs_one_newton_step():
    X, y = raw_columns()
    result = solve(Problem(LinearRisk(X, y, LeastSquares(), intercept=True), "l2", 1e-3), "newton", tol=1e-9)
    assert result.converged
    assert result.iterations <= 3  # the start, the step, at most one more to clean up


@pytest.mark.parametrize("solver", [Newton(), SemismoothNewton()], ids=lambda solver: solver.name)
@pytest.mark.parametrize("loss", [Exponential(), Poisson()], ids=repr)
def test_overflowing_losses(loss, solver):
    """From a start with scores in the hundreds, where exp overflows a few steps away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = loss.draw(rng, 50)[0]
    problem = Problem(LinearRisk(X, y, loss, n_threads=1), "l2", 1e-3)
    start = 40.0 * np.ones(4)
    assert np.isfinite(problem.objective(start))
    assert solve(problem, solver, tol=1e-6, start=start, max_iter=500).converged


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-6])
def test_interior_point_solves_the_lasso_of_quantiles(tau, lam):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 8))
    y = X[:, 0] - 2.0 * X[:, 3] + rng.standard_t(2, size=300)
    problem = Problem(LinearRisk(X, y, Quantile(tau=tau), intercept=True, n_threads=1), L1(), lam)
    result = solve(problem, "interior_point", tol=1e-7, max_iter=80)
    assert result.converged
    assert result.certificate.upper <= solve(problem, "ls_bmrm", tol=1e-5).certificate.upper * (1 + 1e-6)


@pytest.mark.parametrize("loss", [loss for loss in scalar_losses() if Trait.PIECEWISE in loss.traits], ids=repr)
def test_ramps_are_the_loss(loss):
    """value + slope (z - at) + the ramps is the loss, and any theta in the box gives a plane below it."""
    if loss.tilt:
        return  # the linear term of the offset is not the rows'
    rng = np.random.default_rng(5)
    m = 400
    X, y = 2.0 * rng.normal(size=(m, 2)), loss.draw(rng, m)[0]
    risk = LinearRisk(X, y, loss, offset=rng.normal(size=m))
    terms, ramps = RowTerms(risk), RowTerms(risk).ramps
    w = np.array([0.7, -0.4])
    z = terms.arguments(risk.scores(w))
    a = terms.along(z)
    theta = np.clip(
        np.where(ramps.give > 0.0, a / np.where(ramps.give > 0.0, ramps.give, 1.0), np.inf * a), 0.0, ramps.jump
    )
    value = ramps.value + ramps.slope * (z - ramps.at) + np.sum(theta * a - 0.5 * ramps.give * theta**2, axis=0)
    assert float(np.mean(value)) == pytest.approx(risk.evaluate(w)[0], rel=1e-12, abs=1e-12)
    normal, offset = terms.plane(theta)
    assert float(normal @ w) + offset == pytest.approx(risk.evaluate(w)[0], rel=1e-12, abs=1e-12)
    for _ in range(20):
        other = rng.random(a.shape) * np.minimum(ramps.jump, 5.0)
        normal, offset = terms.plane(other)
        point = rng.normal(size=2)
        assert float(normal @ point) + offset <= risk.evaluate(point)[0]


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(eps=0.1), Logistic(), Poisson()], ids=repr)
def test_slopes_of_the_envelope_are_planes(loss):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(50, 3)), loss.draw(rng, 50)[0]
    risk = LinearRisk(X, y, loss, offset=rng.normal(size=50), intercept=True)
    for q in (1e-3, 1.0, 1e3):
        envelope = Envelope(risk, -0.3 * rng.random(50), q)
        f = risk.scores(rng.normal(size=4))
        rows = envelope.at(f)
        proven = plane(risk, rows, f)
        assert proven.moved == pytest.approx(np.mean(rows.slopes * (f - rows.z)), rel=1e-9, abs=1e-12)
        assert proven.loss == pytest.approx(risk.loss_and_slopes(rows.z)[0], rel=1e-12)
        for _ in range(20):
            w = rng.normal(size=4)
            assert float(proven.a @ w) + proven.b <= risk.evaluate(w)[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [1, 255, 70_000])
def test_derivatives_of_the_envelope(m, weighted):
    rng = np.random.default_rng(16)
    weight = rng.random(m) if weighted else None
    risk = LinearRisk(np.ones((m, 1)), Huber().draw(rng, m)[0], Huber(), sample_weight=weight, n_threads=2)
    f, u = rng.normal(size=(2, m))
    envelope = Envelope(risk, rng.uniform(-0.5, 0.5, m), 0.3)
    slope, bend, rows = envelope.slope_along(f, u, 0.7)
    there = envelope.at(f + 0.7 * u)
    for name in ("z", "slopes", "bends"):
        assert getattr(rows, name) == pytest.approx(getattr(there, name), abs=1e-12)
    assert slope == pytest.approx(float(np.sum(risk.full_weight * rows.slopes * u)), rel=1e-9, abs=1e-12)
    assert bend == pytest.approx(float(np.sum(risk.full_weight * rows.bends * u**2)), rel=1e-9, abs=1e-12)


def test_rows_that_changed():
    rng = np.random.default_rng(17)
    before = rng.random(1000) * (rng.random(1000) < 0.5)
    c = 3.0 * before
    c[[7, 900]] = 0.25, 5.0
    assert np.array_equal(_core.nonzero(before), np.flatnonzero(before))
    times, rows = _core.changes(c, before, 1e-12)
    assert times == pytest.approx(3.0)
    assert rows.tolist() == [7, 900]
    assert _core.changes(np.zeros(3), np.ones(3), 1e-12)[0] == 0.0
    assert _core.changes(np.zeros(0), np.zeros(0), 1e-12)[1].size == _core.nonzero(np.zeros(0)).size == 0


def test_conjugate_gradients():
    rng = np.random.default_rng(7)
    B = rng.normal(size=(30, 12))
    A, g = B.T @ B, rng.normal(size=12)
    x, reached = conjugate_gradients(lambda v: A @ v, g, 1e-10, 100)
    assert reached
    assert A @ x == pytest.approx(g, rel=1e-8, abs=1e-8)
    assert not conjugate_gradients(lambda v: A @ v, np.zeros(12), 1e-3, 100)[0].any()


@pytest.mark.parametrize("alike", [True, False])
def test_newton_system_by_a_sample(alike):
    """Conjugate gradients reach the accuracy; where a few rows weigh more than all others, the matrix is formed."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2000, 12)) * (rng.random((2000, 12)) < 0.5)
    X[:, 3] *= np.arange(2000) < 3  # hardly in the sample
    c = rng.random(2000) if alike else 10.0 ** rng.uniform(-12.0, 6.0, 2000)
    system = NewtonSystem(RowCurvature(LinearRisk(X, np.ones(2000), "logistic")), np.full(12, 1e-6))
    H = X.T @ (c[:, None] * X) + 1e-6 * np.eye(12)
    g = H @ np.ones(12)
    error = system._by_sample(c, np.arange(2000))(g, 1e-6) - 1.0
    assert error @ H @ error <= 1e-4 * H.sum()


@pytest.mark.parametrize("accuracy", [1e-2, 1e-10])
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_system_by_few_rows(intercept, accuracy):
    """The system of the rows with curvature, factored, gives the step of the columns."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(60, 300)) * (rng.random((60, 300)) < 0.3)
    wide = np.column_stack([X, np.ones(60)]) if intercept else X
    c, r = rng.random(60) * (np.arange(60) % 3 == 0), 10.0 ** rng.uniform(-6.0, -3.0, wide.shape[1])
    risk = LinearRisk(X, np.ones(60), "squared_hinge", intercept=intercept)
    system = NewtonSystem(RowCurvature(risk), r, most_columns=0)
    H = wide.T @ (c[:, None] * wide) + np.diag(r)
    d = rng.normal(size=r.size)
    solve_rows = system._by_rows(c, np.flatnonzero(c))
    assert solve_rows(H @ d, accuracy) == pytest.approx(d, rel=1e-6, abs=1e-6 + 1e-2 * accuracy)


def test_systems_of_many_rows_are_left_to_conjugate_gradients():
    assert rows_are_few(1600, 817141)
    assert not rows_are_few(3000, 817141)
    assert rows_are_few(3000, 817141, steps=250)
    assert not rows_are_few(5000, 1e9)


def test_the_matrix_is_sampled_where_it_is_expensive():
    assert is_sampled(60000, 784, 150.0)
    assert not is_sampled(20000, 784, 150.0)
    assert not is_sampled(60000, 123, 14.0)
    assert not is_sampled(60000, 500, 500.0)


def test_refusals_name_the_trait():
    X, y = raw_columns()
    for solver, loss, regularizer, trait in [
        ("newton", Hinge(), L2(), Trait.SMOOTH_RISK),
        ("newton", Logistic(), L1(), Trait.QUADRATIC),
        ("semismooth_newton", Hinge(), L2(bounds=(-1.0, 1.0)), Trait.BOUNDS),
        ("interior_point", Logistic(), L2(), Trait.PIECEWISE),
    ]:
        with pytest.raises(ValueError, match=trait.value):
            solve(Problem(LinearRisk(X, y, loss), regularizer, 0.1), solver)


def test_semismooth_newton_with_absolute_values_takes_few_steps_and_leaves_zeros():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 12))
    y = X[:, :3] @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.standard_t(2.5, size=2000)
    for loss in (Quantile(tau=0.9), EpsilonInsensitive(eps=0.1), LeastAbsolute()):
        for lam in (0.05, 1e-5):
            result = solve(Problem(LinearRisk(X, y, loss), "l1", lam), SemismoothNewton(), tol=1e-7, max_iter=60)
            assert result.converged
            assert lam < 0.01 or np.count_nonzero(result.w) == 3


def test_steps_from_face_to_face_reach_the_minimum():
    rng = np.random.default_rng(5)
    for d in (1, 4, 25):
        B = rng.normal(size=(3 * d, d))
        H, w, u, r = B.T @ B, rng.normal(size=d), rng.uniform(0.0, 3.0, d), rng.uniform(0.0, 1.0, d)
        g = 5.0 * rng.normal(size=d)
        z = by_faces(H, g, w, u, r)
        assert z is not None
        slope = g + H @ (z - w) + r * z
        assert np.all(np.abs(slope[z == 0.0]) <= u[z == 0.0] + 1e-9)
        assert slope[z != 0.0] == pytest.approx(-(u * np.sign(z))[z != 0.0], abs=1e-9)


def test_slopes_of_another_solver_are_a_better_start():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 300))
    risk = LinearRisk(X, np.sign(rng.normal(size=80)), Hinge())
    problem = Problem(risk, "l2", lam=1e-3)
    *_, last = itertools.islice(DualCoordinate().steps(problem, Start(np.zeros(300))), 12)
    taken = []
    for slopes in (None, last.slopes):
        steps = SemismoothNewton().steps(problem, Start(last.w, tol=1e-8, slopes=slopes))
        taken.append(next(k for k, step in enumerate(steps) if step.upper - step.lower <= 1e-8 * step.upper))
    assert taken[1] < taken[0]


def test_slopes_that_a_step_leads_to_bound_where_columns_are_many():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 300)), np.sign(rng.normal(size=60))
    X[30:], y[30:] = X[:30] + 1e-3 * rng.normal(size=(30, 300)), -y[:30]  # rows that contradict each other
    problem = Problem(LinearRisk(X, y, "squared_hinge", n_threads=1), "l2", lam=1e-6)
    best = solve(problem, "newton", tol=1e-10).certificate
    start = Start(1e-2 * rng.normal(size=300), tol=1e-3)
    steps = list(itertools.islice(Newton(most_columns=1).steps(problem, start), 3))
    assert all(step.lower <= best.upper for step in steps)
    assert steps[1].lower > 0.5 * best.upper  # the plane at the point itself proves next to nothing
