"""Stochastic epochs against the papers' updates written out, and what the solvers promise around them."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LAYOUTS

import bmrm
from bmrm import LinearRisk, Problem, solve
from bmrm.certificate import Status
from bmrm.losses import Exponential, Hinge, LeastSquares, Logistic, Poisson, Quantile, SquaredHinge
from bmrm.regularizers import L1, L2
from bmrm.risks.rows import RowVisits
from bmrm.solvers import SGD, AdaptiveOnline, Folos, Pegasos, ProximalOnline
from bmrm.solvers.stochastic import Stochastic

FAMILY = [cls() for cls in bmrm.solvers.SOLVERS.values() if issubclass(cls, Stochastic)]
every_member = pytest.mark.parametrize("solver", FAMILY, ids=lambda solver: solver.name)
LAM, T0 = 0.1, 7.0


def data(m=30, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.5)).astype(np.float32).astype(np.float64)
    return X, np.where(rng.random(m) < 0.5, -1.0, 1.0), np.tile(rng.permutation(m), 3).astype(np.int64)


def hinge_slope(f, y):
    return -y if y * f < 1.0 else 0.0


def averaged(points, every):
    """The average of every so many points, with weights 1, 2, 3, ..."""
    taken = np.array(points[every - 1 :: every])
    return np.average(taken, axis=0, weights=np.arange(1.0, len(taken) + 1.0))


def begun(X, y, loss=None, weights=1.0, **options):
    risk = LinearRisk(X, y, loss or Hinge(), **options)
    visits = RowVisits(risk, np.atleast_1d(weights))
    return visits, visits.begin(np.zeros(risk.dim), average=True, mixed=False)


def naive(X, y, order, update):
    w, points = np.zeros(X.shape[1]), []
    for t, i in enumerate(order, 1):
        w = update(w, t, X[i], hinge_slope(X[i] @ w, y[i]))
        points.append(w)
    return w, points


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rule", ["sgd", "folos", "pegasos", "adaptive", "proximal"])
def test_scaled_vectors_are_the_plain_updates(rule, layout):
    X, y, order = data()
    radius, clock = 1.0 / np.sqrt(LAM), {"tau": 0.0, "G": 0.0, "R": 0.5 if rule == "proximal" else 3.0, "t": 0}

    def ball(w):
        return w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))

    def update(w, t, x, s):
        if rule == "sgd":
            eta = 1.0 / (LAM * (t + T0))
            return (1.0 - eta * LAM) * w - eta * s * x
        if rule == "folos":
            eta = 1.0 / (LAM * (t + T0))
            return (w - eta * s * x) / (1.0 + eta * LAM)
        if rule == "pegasos":
            return ball(w - (LAM * w + s * x) / (LAM * t))
        clock["t"] += 1
        clock["G"] = max(clock["G"], abs(s) * np.linalg.norm(x))
        c, G = LAM * clock["t"] + clock["tau"], clock["G"] + LAM * radius
        factor = 1.0 if rule == "proximal" else 8.0 / 3.0
        tau = 0.5 * (-c + np.sqrt(c**2 + factor * (G / clock["R"]) ** 2))
        clock["tau"] += tau
        eta = 1.0 / (LAM * clock["t"] + clock["tau"])
        w = ball(w - eta * (LAM * w + s * x + (tau * w if rule == "adaptive" else 0.0)))
        if rule == "proximal" and np.linalg.norm(w) >= clock["R"] and clock["R"] < radius:
            clock.update(R=min(np.sqrt(2.0) * clock["R"], radius), t=0, tau=0.0)
        return w

    w, points = naive(X, y, order, update)
    visits, course = begun(LAYOUTS[layout](X), y)
    course.reach = 0.5 if rule == "proximal" else 3.0
    visits.descend(course, order, rule, lam=LAM, t0=T0, radius=radius)
    np.testing.assert_allclose(course.w, w, atol=1e-9)
    np.testing.assert_allclose(course.average, averaged(points, int(visits.every)), atol=1e-9)
    if rule == "proximal":
        assert course.reach == pytest.approx(clock["R"])
        assert course.reach > 0.5


def test_pegasos_takes_the_mean_over_the_batch():
    X, y, order = data()
    k, w = 4, np.zeros(X.shape[1])
    for t, first in enumerate(range(0, len(order), k), 1):
        rows = order[first : first + k]
        slopes = np.array([hinge_slope(X[i] @ w, y[i]) for i in rows])
        w = (1.0 - 1.0 / t) * w - slopes @ X[rows] / (len(rows) * LAM * t)
        w *= min(1.0, 0.9 / max(np.linalg.norm(w), 1e-300))
    visits, course = begun(X, y)
    visits.descend(course, order, "pegasos", lam=LAM, radius=0.9, batch=k)
    np.testing.assert_allclose(course.w, w, atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lazy_soft_thresholds_are_the_eager_ones(layout):
    X, y, order = data()
    weights = np.array([0.5, 1.0, 2.0, 0.0, 1.0, 1.0])

    def update(w, t, x, s):
        eta = 0.3 / np.sqrt(1.0 + (t - 1) / 30.0)
        v = w - eta * s * x
        return np.sign(v) * np.maximum(0.0, np.abs(v) - eta * LAM * weights)

    w, points = naive(X, y, order, update)
    visits, course = begun(LAYOUTS[layout](X), y, weights=weights)
    visits.shrink(course, order, lam=LAM, eta0=0.3, t0=30.0, power=0.5)
    np.testing.assert_allclose(course.w, w, atol=1e-12)
    np.testing.assert_allclose(course.average, averaged(points, int(visits.every)), atol=1e-12)
    assert (w == 0.0).any()


def test_the_quasi_newton_metric():
    X, y, order = data()
    eta, h, w, rows, pairs = 0.05, np.zeros(6), np.zeros(6), 0, 0
    visits, course = begun(X, y, Logistic())
    course.curvature = np.zeros(6)

    def slope(f, target):
        return -target / (1.0 + np.exp(target * f))

    for number, i in enumerate(order):
        D = 1.0 / (LAM + np.minimum(h, 99.0 * LAM))
        f = X[i] @ w
        w = w - eta * slope(f, y[i]) * D * X[i]
        rows += 1
        if rows == int(visits.every) or number == len(order) - 1:
            pairs += 1
            moved = X[i] @ w
            bent = 0.0 if moved == f else (slope(moved, y[i]) - slope(f, y[i])) / (moved - f)
            h = h + 2.0 / (pairs + 1.0) * (bent * X[i] ** 2 - h)
            w, rows = w / (1.0 + rows * eta * D * LAM), 0
    visits.shrink(course, order, lam=LAM, eta0=eta, t0=np.inf, power=1.0, learns=True)
    np.testing.assert_allclose(course.w, w, atol=1e-9)
    np.testing.assert_allclose(course.curvature, h, atol=1e-9)


@pytest.mark.parametrize("rule", ["sgd", "folos", "pegasos"])
def test_weights_of_the_regularizer_are_a_change_of_variables(rule):
    X, y, order = data()
    weights = np.array([0.5, 1.0, 2.0, 3.0, 1.0, 0.25])
    visits, course = begun(X, y, weights=weights)
    scaled, plain = begun(X / np.sqrt(weights), y)
    for one, where in ((visits, course), (scaled, plain)):
        one.descend(where, order, rule, lam=LAM, t0=T0, radius=2.0)
    np.testing.assert_allclose(course.w * np.sqrt(weights), plain.w, atol=1e-9)


def test_a_constant_that_is_not_penalized_is_not_shrunk():
    X, y, order = data()
    wide = np.column_stack([X, np.ones(len(y))])
    s = np.array([1.0] * 6 + [0.0])

    def update(w, t, x, slope):
        eta = 1.0 / (LAM * (t + T0))
        return (1.0 - eta * LAM * s) * w - eta * slope * x

    w, _ = naive(wide, y, order, update)
    for matrix, options in ((X, {"intercept": True}), (wide, {})):
        visits, course = begun(matrix, y, weights=s, **options)
        visits.descend(course, order, "sgd", lam=LAM, t0=T0)
        np.testing.assert_allclose(course.w, w, atol=1e-9)


def test_offsets_shift_the_scores():
    X, y, order = data()
    shift = np.random.default_rng(5).normal(size=len(y))
    visits, course = begun(X, y, offset=shift)
    visits.descend(course, order[:30], "sgd", lam=LAM, t0=T0)
    w = np.zeros(6)
    for t, i in enumerate(order[:30], 1):
        eta = 1.0 / (LAM * (t + T0))
        w = (1.0 - eta * LAM) * w - eta * hinge_slope(X[i] @ w + shift[i], y[i]) * X[i]
    np.testing.assert_allclose(course.w, w, atol=1e-9)
    a, b, _ = visits.plane(course, LAM)
    assert _lies_below(visits.risk, a, b)


@every_member
def test_rows_of_weight_0_are_ignored(solver):
    X, y, _ = data(40)
    weight = np.where(np.arange(40) % 3 == 0, 0.0, np.linspace(0.5, 2.0, 40))
    kept = weight > 0.0
    problems = [
        Problem(LinearRisk(X, y, Hinge(), weight), "l2", LAM),
        Problem(LinearRisk(X[kept], y[kept], Hinge(), weight[kept]), "l2", LAM),
    ]
    with_zeros, without = (solve(problem, solver, tol=0.0, max_iter=3) for problem in problems)
    np.testing.assert_allclose(with_zeros.w, without.w, atol=1e-9)
    assert with_zeros.certificate.lower == pytest.approx(without.certificate.lower, abs=1e-9)


@every_member
def test_seeds(solver):
    X, y, _ = data(60)
    problem = Problem(LinearRisk(X, y, Logistic()), "l2", LAM)
    one, same, other = (solve(problem, solver, tol=0.0, max_iter=3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.w, same.w)
    assert not np.array_equal(one.w, other.w)


@pytest.mark.parametrize("cls", [SGD, Pegasos, AdaptiveOnline, ProximalOnline])
def test_without_an_average_the_last_point_counts(cls):
    X, y, _ = data(60)
    problem = Problem(LinearRisk(X, y, Logistic()), "l2", LAM)
    last, mean = (solve(problem, cls(average=average), tol=0.0, max_iter=2) for average in (False, True))
    assert not np.array_equal(last.w, mean.w)
    assert solve(problem, cls(average=False), tol=1e-2, max_seconds=30).converged


def _lies_below(risk, a, b, n=50, size=3.0):
    rng = np.random.default_rng(0)
    points = size * rng.normal(size=(n, risk.dim))
    return all(a @ w + b <= risk.at(w).value + 1e-12 for w in points)


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), SquaredHinge(), Exponential()], ids=repr)
def test_the_tangents_make_a_plane_below_the_risk(loss, mixed):
    X, y, _ = data()
    risk = LinearRisk(X, y, loss, sample_weight=np.linspace(0.0, 2.0, 30), intercept=True)
    visits = RowVisits(risk, np.array([1.0] * 6 + [0.0]))
    course = visits.begin(np.zeros(7), average=True, mixed=mixed)
    for _ in range(3):
        visits.descend(course, visits.draw(np.random.default_rng(0)), "sgd", lam=LAM, t0=T0)
        assert _lies_below(risk, *visits.plane(course, LAM)[:2])


def test_mixing_raises_the_dual_from_epoch_to_epoch():
    X, y, _ = data(200)
    problem = Problem(LinearRisk(X, y, Hinge()), "l2", LAM)
    visits, rng = RowVisits(problem.risk, np.ones(1)), np.random.default_rng(0)
    course, bounds = visits.begin(np.zeros(6), average=True, mixed=True), [0.0]
    for _ in range(30):
        visits.descend(course, visits.draw(rng), "sgd", lam=LAM, t0=T0)
        a, b, _ = visits.plane(course, LAM)
        bounds.append(b - a @ a / (2.0 * LAM))
    optimum = solve(problem, "ls_bmrm", tol=1e-9).certificate.upper
    assert np.all(np.diff(bounds) >= -1e-12)
    assert optimum * (1.0 - 1e-3) <= bounds[-1] <= optimum * (1.0 + 1e-8)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0], [-1.0]], [1, -1]),
        ([[2.0]], [1]),
        (np.repeat([[1.0, 0.0], [-1.0, 0.0]], 20, axis=0), np.repeat([1, -1], 20)),
        (np.zeros((5, 3)), [1, -1, 1, -1, 1]),
    ],
    ids=["separable", "one row", "duplicates, zero column", "nothing but zeros"],
)
@every_member
def test_small_and_degenerate_data(solver, X, y):
    problem = Problem(LinearRisk(X, y, Hinge()), "l2", LAM)
    assert solve(problem, solver, tol=5e-2, max_seconds=20).converged


@pytest.mark.parametrize("lam", [1e-10, 1e10])
@pytest.mark.parametrize("loss", [Hinge(), LeastSquares(), Exponential(), Poisson()], ids=repr)
@every_member
def test_extreme_lam_gives_numbers_and_true_bounds(solver, loss, lam):
    X, y, _ = data(40)
    problem = Problem(LinearRisk(X, np.abs(y), loss) if loss.name == "poisson" else LinearRisk(X, y, loss), "l2", lam)
    result = solve(problem, solver, tol=1e-2, max_iter=20)
    exact = solve(problem, "ls_bmrm", tol=1e-4, max_seconds=10).certificate
    assert np.isfinite(result.w).all()
    assert result.certificate.lower <= exact.upper * (1.0 + 1e-9) + 1e-12
    assert result.certificate.upper >= exact.lower * (1.0 - 1e-9) - 1e-12
    if lam > 1.0:
        assert result.status is Status.CONVERGED


@every_member
def test_rows_of_very_different_size_do_not_overflow(solver):
    X, y, _ = data(40)
    X = X * np.where(np.arange(40) % 2 == 0, 1e-4, 1e3)[:, None]
    for loss in (LeastSquares(), Exponential(), Quantile(tau=0.3)):
        result = solve(Problem(LinearRisk(X, y, loss), "l2", LAM), solver, tol=1e-2, max_iter=20)
        assert np.isfinite(result.w).all()
        assert np.isfinite(result.certificate.upper)


def test_folos_with_l1_finds_zeros_without_an_average():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    problem = Problem(LinearRisk(X, y, LeastSquares()), L1(), 0.2)
    result = solve(problem, Folos(average=False), tol=1e-2, max_seconds=20)
    assert result.converged
    assert (result.w[1:] == 0.0).sum() >= 5


@pytest.mark.parametrize("name", ["pegasos", "adaptive_online", "proximal_online", "sgd_qn"])
def test_free_coordinates_are_refused_by_name(name):
    X, y, _ = data()
    with pytest.raises(ValueError, match="coordinates that are not penalized"):
        solve(Problem(LinearRisk(X, y, Hinge(), intercept=True), "l2", LAM), name)


@every_member
def test_bounds_are_refused(solver):
    X, y, _ = data()
    with pytest.raises(ValueError, match="bounds on w"):
        solve(Problem(LinearRisk(X, y, Hinge()), L2(bounds=(-1.0, 1.0)), LAM), solver)


@pytest.mark.parametrize("batch", [0, -1, 1.5, True])
def test_batches_are_checked(batch):
    with pytest.raises(ValueError, match="'batch' of solver 'pegasos'"):
        Pegasos(batch=batch)


def test_a_larger_batch_converges_too():
    X, y, _ = data(100)
    problem = Problem(LinearRisk(X, y, Hinge()), "l2", LAM)
    for cls in (Pegasos, AdaptiveOnline, ProximalOnline):
        assert solve(problem, cls(batch=10), tol=1e-2, max_seconds=20).converged


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=repr)
@every_member
def test_the_certificate_comes_soon_after_the_accuracy(solver, loss):
    """Epochs to a certified 1e-3 are at most three times those to a true 1e-3, but for the first few."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20)) * (rng.random((2000, 20)) < 0.5)
    y = np.where(X @ rng.normal(size=20) + 2.0 * rng.normal(size=2000) > 0.0, 1.0, -1.0)
    problem = Problem(LinearRisk(X, y, loss), "l2", 1e-2)
    optimum = solve(problem, "ls_bmrm", tol=1e-8).certificate.upper
    result = solve(problem, solver, tol=1e-3, max_seconds=30)
    assert result.converged
    true = next(record.iteration for record in result.history if record.upper <= 1.001 * optimum)
    assert result.iterations <= max(3 * true, 10)
