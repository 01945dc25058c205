"""What rounding does far away: planes and objectives at points with huge coordinates that cancel."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import bmrm
from bmrm.bundle import Bundle
from bmrm.risks.scaled import ScaledRisk

LOSSES = [
    bmrm.losses.Huber(),
    bmrm.losses.Logistic(),
    bmrm.losses.Hinge(),
    bmrm.losses.LeastAbsolute(),
    bmrm.losses.LeastSquares(),
]


def far_point(rng):
    """Columns x, 3x and x, and a w whose huge parts cancel but for the last digits."""
    x = rng.normal(size=(int(rng.integers(2, 12)), 1))
    w = 10.0 ** rng.uniform(6, 13) * rng.normal(size=3)
    w[2] = -(w[0] + 3.0 * w[1])
    return np.hstack([x, 3.0 * x, x]), np.where(rng.random(x.size) < 0.5, 1.0, -1.0), w


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("units", [None, 2.0 ** np.array([3.0, -2.0, 0.0])], ids=["plain", "scaled"])
def test_planes_touched_far_away_lie_below_the_risk(loss, units, rng):
    for _ in range(60):
        X, y, w = far_point(rng)
        risk = bmrm.LinearRisk(X, y, loss, n_threads=1)
        if units is not None:
            risk, w = ScaledRisk(risk, units), w / units
        bundle = Bundle(3, -np.inf)
        bundle.add_point(risk.touch(w))
        for t in np.linspace(-3.0, 3.0, 61):
            v = np.array([0.0, 0.0, t])
            assert bundle.value(v) <= risk.evaluate(v)[0] * (1.0 + 1e-14)


def exact_objective(X, y, w, loss):
    scores = [sum(Fraction(a) * Fraction(b) for a, b in zip(row, w)) for row in X.tolist()]
    return sum(loss(f, Fraction(t)) for f, t in zip(scores, y.tolist())) / len(scores)


@pytest.mark.parametrize(
    ("loss", "exactly"),
    [
        (bmrm.losses.Hinge(), lambda f, y: max(Fraction(0), 1 - y * f)),
        (bmrm.losses.LeastAbsolute(), lambda f, y: abs(f - y)),
        (bmrm.losses.LeastSquares(), lambda f, y: (f - y) ** 2 / 2),
    ],
    ids=["hinge", "absolute", "squares"],
)
def test_the_upper_bound_is_above_the_true_objective(loss, exactly, rng):
    below = 0
    for _ in range(100):
        X, y, w = far_point(rng)
        problem = bmrm.Problem(bmrm.LinearRisk(X, y, loss, n_threads=1), "zero", 1.0)
        truth = exact_objective(X, y, w.tolist(), exactly)
        assert Fraction(problem.at_most(w)) >= truth
        below += Fraction(problem.objective(w)) < truth * (1 - Fraction(1, 10**12))
    assert below  # else the test says nothing


def test_rounding_is_nothing_at_ordinary_points(rng):
    X, y = rng.normal(size=(200, 10)), np.sign(rng.normal(size=200))
    problem = bmrm.Problem(bmrm.LinearRisk(X, y, "logistic"), "l2", 0.1)
    w = rng.normal(size=10)
    assert problem.objective(w) <= problem.at_most(w) <= problem.objective(w) * (1.0 + 1e-13)


@pytest.mark.parametrize("solver", ["auto", "ls_bmrm", "lbfgs"])
@pytest.mark.parametrize("seed", [3, 20, 26, 36])
def test_solvers_do_not_take_rounding_for_progress(solver, seed):
    rng = np.random.default_rng(seed)
    X = 1e6 * rng.normal(size=(32, 3))
    X[:, 0] = 3.0 * X[:, 2]
    X[:, 1] = 2.0 * X[:, 0] - X[:, 2]
    problem = bmrm.Problem(bmrm.LinearRisk(X, rng.normal(size=32), bmrm.losses.Huber()), "zero", 1.0)
    alone = bmrm.Problem(bmrm.LinearRisk(X[:, 2:], problem.risk.targets, bmrm.losses.Huber()), "zero", 1.0)
    optimum = bmrm.solve(alone, "auto", tol=1e-9).certificate
    result = bmrm.solve(problem, solver, tol=1e-9, max_iter=80)
    assert result.converged or solver != "auto"
    assert optimum.lower <= result.certificate.upper
    assert max(record.lower for record in result.history) <= optimum.upper
    assert min(record.upper for record in result.history) >= optimum.lower * (1.0 - 1e-9)
