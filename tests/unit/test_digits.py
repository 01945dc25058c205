"""Losses keep their digits where large terms cancel, and sums do not lose more than bounds charge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bmrm import LinearRisk, Problem, _core, solve
from bmrm.losses import HierarchicalSoftmax, MulticlassHinge, Poisson, Softmax, SquaredEpsilonInsensitive
from bmrm.testing.hunt_numbers import exp, log, log_sum_exp

EPS = float(np.finfo(np.float64).eps)


def of_softmax(f, y):
    exact = [Fraction(x) for x in f]
    return log_sum_exp(exact) - exact[y]


@pytest.mark.parametrize(
    "f", [[40.0, 0.0, 1.0], [0.0, -30.0, -36.5], [700.0, 0.0, 600.0], [0.1, 0.2, 0.3], [1.0, 1.0, 1.0]]
)
@pytest.mark.parametrize("y", [0, 1, 2])
def test_softmax_has_all_digits(f, y):
    loss = Softmax(n_classes=3)
    value, slopes = loss.evaluate(np.array([f]), loss.encode([y]), np.ones(1))
    exact = of_softmax(f, y)
    assert abs(Fraction(value) - exact) <= 8 * EPS * exact
    shares = [exp(Fraction(x) - Fraction(max(f))) for x in f]
    for c in range(3):
        true = (shares[c] - (sum(shares) if c == y else 0)) / sum(shares)
        assert abs(Fraction(slopes[0, c]) - true) <= 8 * EPS * abs(true)
    line = loss.compiled(loss.encode([y])).line(np.zeros((1, 3)), np.array([f]), None, 1.0)
    assert abs(Fraction(line.evaluate(1.0, 1)[0]) - exact) <= 8 * EPS * exact


def test_an_upper_bound_of_a_small_soft_max_is_one():
    X, y = np.eye(3), np.arange(3)
    for loss in (Softmax(), HierarchicalSoftmax()):
        targets = y if loss.name == "softmax" else loss.classes()
        problem = Problem(LinearRisk(X, targets, loss, n_threads=1), "l1", 1e-18)
        k = problem.risk.n_outputs
        for size in (30.0, 34.0, 36.0, 40.0):
            W = np.zeros((3, k))
            W[y, targets] = size
            rest = log_sum_exp([Fraction(0), Fraction(-size), Fraction(-size)])  # in each row, in the tree as well
            paths = W.sum() * Fraction(1e-18)
            assert Fraction(problem.at_most(W.reshape(-1))) >= rest + paths or loss.name != "softmax"
            assert problem.at_most(W.reshape(-1)) <= float(rest + paths) * (1 + 1e-12) + 1e-15 * (k > 3)


def of_poisson(f, y):
    f, y = Fraction(f), Fraction(y)
    return exp(f) - y * f + (y * log(y) - y if y else 0)


@pytest.mark.parametrize("y", [0.0, 1e-300, 1e-5, 1.0, 3.0, 1e6, 1e15])
def test_poisson_loses_no_more_than_its_slope_times_the_rounding_of_the_score(y):
    loss = Poisson()
    center = float(np.log(y)) if y else 0.0
    for shift in (0.0, 1e-12, -1e-9, 1e-6, -1e-3, 0.5, -0.9, 1.0, 1.5, -30.0, 30.0):
        f = center + shift
        value, slopes = loss.evaluate(np.array([f]), np.array([y]), np.ones(1))
        exact, slope = of_poisson(f, y), exp(Fraction(f)) - Fraction(y)
        known = 4 * EPS * (exact + abs(slope) * (1 + abs(Fraction(f))))
        assert abs(Fraction(value) - exact) <= known + Fraction(1e-300)
        assert abs(Fraction(slopes[0]) - slope) <= 4 * EPS * (abs(slope) + Fraction(y) * (1 + abs(Fraction(f))))


def test_poisson_at_the_ends():
    loss = Poisson()
    for y in (0.0, 2.0, 5e-324):
        value, slopes = loss.evaluate(np.array([800.0, -800.0, 5.0]), np.full(3, y), np.ones(3))
        assert value == np.inf
        assert np.isfinite(slopes).all()
        assert np.isfinite(loss.evaluate(np.array([-800.0, 5.0]), np.full(2, y), np.ones(2))[0])


@pytest.mark.parametrize("y", [0.0, 1.0, 1e6])
def test_the_conjugate_of_poisson_is_one(y):
    kernel = Poisson().kernel()
    for share in (-0.999, -1e-3, -1e-9, 0.0, 1e-9, 0.1, 3.0):
        s = share * max(y, 1.0) if y else abs(share)
        x = Fraction(s) + Fraction(y)
        exact = (x * log(x) if x else 0) - x - (Fraction(y) * log(Fraction(y)) - Fraction(y) if y else 0)
        value, size = _core.conjugate(kernel, np.array([s]), 1.0, np.array([y]), None, 1.0)
        assert abs(Fraction(value) - exact) <= 4 * EPS * Fraction(size)
    assert _core.conjugate(kernel, np.array([-y - 1.0]), 1.0, np.array([y]), None, 1.0)[0] == np.inf


def test_conjugates_say_how_large_the_terms_are_that_cancel():
    kernel = SquaredEpsilonInsensitive(eps=1.0).kernel()
    value, size = _core.conjugate(kernel, np.array([2.0]), 1.0, np.array([-2.0]), None, 1.0)
    assert (value, size) == (0.0, 8.0)


@pytest.mark.parametrize("m", [379, 511, 5000, 70001])
@pytest.mark.parametrize("loss", ["multiclass_hinge", "hinge"])
def test_sums_over_rows_keep_their_digits(loss, m):
    rng = np.random.default_rng(0)
    y = np.arange(m) % 3 if loss == "multiclass_hinge" else np.where(np.arange(m) % 3 > 0, 1.0, -1.0)
    risk = LinearRisk(rng.normal(size=(m, 1)), y, loss, n_threads=1)
    point = risk.at(np.zeros(risk.dim))
    assert abs(point.value - 1.0) <= 4 * EPS
    assert point.plane[1] <= 1.0


def test_products_of_long_vectors_keep_their_digits():
    rng = np.random.default_rng(1)
    for n in (10, 1000, 200000):
        a, b = rng.random(n), rng.random(n)
        exact = float(sum(map(lambda x, z: Fraction(x) * Fraction(z), a[:1000], b[:1000]))) if n <= 1000 else None
        value = _core.inner(a, b)
        expected = exact if exact is not None else float(np.sum(a.astype(np.longdouble) * b))
        assert abs(value - expected) <= 10 * EPS * expected


def test_a_multiclass_hinge_at_zero():
    """A lower bound of 1.0000000000000047 where J(0) is 1."""

    m = 379
    X = np.linspace(-1.0, 1.0, m)[:, None]
    problem = Problem(LinearRisk(X, np.arange(m) % 3, MulticlassHinge(), n_threads=1), "l1", 10.0)
    for solver in ("bmrm", "ls_bmrm", "auto"):
        assert solve(problem, solver, tol=1e-9).certificate.lower <= 1.0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber_hinge", "poisson"])
def test_bounds_charge_what_losses_round_within(loss):
    """Residuals are rounded before eps is taken off; next to eps nothing else is left."""
    from bmrm import losses

    rng = np.random.default_rng(2)
    for _ in range(200):
        y = {"huber_hinge": np.ones(1), "poisson": rng.random(1)}.get(loss, 0.7 + 1e-9 * rng.normal(size=1))
        made = {"epsilon_insensitive": {"eps": 0.7}, "squared_epsilon_insensitive": {"eps": 0.7}}.get(loss, {})
        kernel = losses.get(loss, **made)
        risk = LinearRisk([[1.0]], y, kernel, n_threads=1)
        edge = {"huber_hinge": 1.5, "poisson": np.log(y[0])}.get(loss, 0.0)
        w = np.array([edge + rng.normal() * (1e-12 if edge else 1e-9)])
        f, t = Fraction(w[0]), Fraction(y[0])
        if loss == "huber_hinge":
            exact = max(Fraction(0), 1 + Fraction(0.5) - t * f) ** 2 / 2
        elif loss == "poisson":
            exact = of_poisson(w[0], y[0])
        else:
            exact = max(Fraction(0), abs(f - t) - Fraction(0.7))
            exact = exact if loss == "epsilon_insensitive" else exact**2 / 2
        point = risk.at(w)
        assert Fraction(point.value) + Fraction(point.rounding) >= exact
        a, b = point.plane
        assert Fraction(a[0]) * f + Fraction(b) <= exact


def test_dual_points_at_kinks_between_two_numbers():
    """A slope at y + eps, rounded, belongs to a kink that is no number: the plane must not gain by that."""
    from bmrm import losses

    kernel, lam, rng = losses.EpsilonInsensitive(eps=0.1), 1e-17, np.random.default_rng(3)
    for _ in range(60):
        X, y = rng.normal(size=(5, 6)), rng.normal(size=5)
        exact_fit = np.linalg.lstsq(X, y, rcond=None)[0]
        J = Fraction(lam) * sum(Fraction(w) ** 2 for w in exact_fit) / 2  # all rows lie well within eps
        problem = Problem(LinearRisk(X, y, kernel, n_threads=1), "l2", lam)
        result = solve(problem, "dual_coordinate", tol=0.0, max_iter=40)
        assert Fraction(float(result.certificate.lower)) <= J
