"""What `auto` must not stall on: raw and dependent columns, no penalty, bounds, tiny and huge lam."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.sparse

from bmrm import LinearRisk, Problem, Status, solve
from bmrm.bundle.planes import Bundle
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
from bmrm.risks.curvature import RowCurvature
from bmrm.solvers.auto import _chosen, _handed_over, _Units, _Watch
from bmrm.solvers.base import Start, Step
from bmrm.solvers.bounds import FlatBound
from bmrm.solvers.dual_coordinate import DualCoordinate
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.ls_bmrm import _at
from bmrm.solvers.newton import Newton
from bmrm.solvers.newton_system import NewtonSystem
from bmrm.solvers.semismooth_newton import SemismoothNewton
from bmrm.solvers.units import steps_in_units

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
            problem = Problem(LinearRisk(X, y, loss, n_threads=1), regularizer, 1.0)
            units = _Units(problem)
            units.c = np.ones(problem.risk.dim)
            solvers = _chosen(problem, units)
            assert solvers[-1].name == "ls_bmrm"


def test_planes_in_other_units_are_handed_over_in_those_of_the_problem():
    """Newton's method took planes of R(c v) for planes of R: on news20 they proved a bound above the minimum."""
    rng = np.random.default_rng(0)
    X, c = rng.normal(size=(60, 12)), 2.0 ** np.arange(-6, 6)
    problem = Problem(LinearRisk(X, np.sign(X[:, 0] + rng.normal(size=60)), Logistic(), n_threads=1), "l2", 1e-4)
    *_, last = islice(steps_in_units(LBFGS(), problem, c, Start(np.zeros(12))), 9)
    start = _handed_over(problem, [LBFGS(), Newton()], Start(last.w, last.bundle), last.w)
    least = solve(problem, "newton", tol=1e-9).certificate.upper
    assert next(Newton().steps(problem, start)).lower <= least
    for w in rng.normal(size=(20, 12)):
        assert start.bundle.value(w) <= problem.risk.evaluate(w)[0]


def test_points_far_along_a_line_have_scores_of_their_own():
    X = np.random.default_rng(5).normal(size=(50, 3))
    X[:, 2] = X[:, 0] - X[:, 1]
    risk = LinearRisk(X, None, Novelty(rho=1.0), n_threads=1)
    problem = Problem(risk, "zero", 1.0)
    line = risk.at(np.array([0.1, 0.2, 0.3])).toward(1e15 * np.array([1.0, -1.0, -1.0]))
    far, near = _at(problem, line, 1.0), _at(problem, line, 1e-8)
    assert far.value == problem.objective(far.w)
    assert line.at(1.0).value != problem.objective(far.w)
    assert near is line.at(1e-8)


def test_refined_solutions_leave_less_of_the_right_side():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(120, 3)), rng.normal(size=120)
    X[:, 1] = X[:, 0] + 1e-6 * rng.normal(size=120)  # the ridge of 1e-13 is a tenth of the least curvature
    curvature = RowCurvature(LinearRisk(X, y, LeastSquares(), n_threads=1))
    c = np.full(len(y), 1.0 / len(y))
    system = NewtonSystem(curvature, np.zeros(3))
    solve_system, g = system.at(c), curvature.pull_back(c * y)

    def left(accuracy):
        d = solve_system(g, accuracy)
        rest = g - curvature.times(np.arange(len(y)), c, d) - system.r * d
        return np.sqrt(np.sum(rest**2 / system.diagonal))

    assert left(1e-8) < 1e-3 * left(1e-3)


def test_a_flat_plane_bounds_and_a_sloped_one_does_not():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    X[:, 2] = X[:, 0]
    risk = LinearRisk(X, y, LeastSquares(), n_threads=1)
    problem = Problem(risk, L2(weights=np.zeros(3)), 1.0)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    bundle, flat = Bundle(3, 0.0, error=risk.normal_error), FlatBound(problem)
    bounds = []
    for w in (best, best + 1e-6):
        point = risk.at(w)
        b = point.value - float(point.subgradient @ w)
        bounds.append(flat.of(bundle, point.subgradient, b, point.slopes, w, np.inf))
    assert bounds[0] == pytest.approx(problem.objective(best), rel=1e-12)
    assert bounds[1] == 0.0  # the floor: nothing else is proved


def _first(loss, lam, m=200, d=10, entries=10):
    """The solver that auto begins with, for rows of so many ones."""
    columns = np.concatenate([np.arange(i, i + entries) % d for i in range(m)])
    X = scipy.sparse.csr_matrix((np.ones(m * entries), columns, np.arange(0, m * entries + 1, entries)), shape=(m, d))
    y = np.where(np.arange(m) % 3, 1.0, 0.0 if loss == "softmax" else -1.0)
    problem = Problem(LinearRisk(X, y, loss), "l2", lam)
    return _chosen(problem, _Units(problem))[0].name


@pytest.mark.parametrize(
    ("loss", "lam", "shape", "name"),
    [
        ("hinge", 0.1, {}, "dual_coordinate"),
        ("hinge", 1e-3, {}, "semismooth_newton"),
        ("hinge", 3e-3, {"m": 4000, "d": 900, "entries": 300}, "dual_coordinate"),
        ("hinge", 1e-4, {"m": 4000, "d": 900, "entries": 300}, "semismooth_newton"),
        ("hinge", 1e-3, {"d": 5000}, "dual_coordinate"),
        ("logistic", 0.1, {}, "newton"),
        ("squared_hinge", 0.1, {"m": 4000, "d": 900, "entries": 300}, "dual_coordinate"),
        ("squared_hinge", 1e-6, {"m": 4000, "d": 900, "entries": 300}, "newton"),
        ("logistic", 0.1, {"d": 5000}, "lbfgs"),
        ("logistic", 1e-3, {"d": 5000}, "dual_coordinate"),
        ("logistic", 1e-6, {"d": 5000}, "dual_coordinate"),
        ("logistic", 1e-6, {"m": 2000, "d": 5000}, "newton"),
        ("logistic", 1e-2, {"m": 2000, "d": 5000}, "lbfgs"),
        ("squared_hinge", 1e-2, {"m": 2000, "d": 5000}, "dual_coordinate"),
        ("softmax", 1e-2, {"m": 3000}, "newton"),
        ("softmax", 1.0, {"d": 900}, "lbfgs"),
        ("softmax", 1e-2, {"m": 2000, "d": 5000}, "lbfgs"),
        ("softmax", 1e-2, {"d": 5000}, "row_lbfgs"),
    ],
)
def test_the_first_solver_is_the_cheaper_one(loss, lam, shape, name):
    assert _first(loss, lam, **shape) == name


def _watched(bounds):
    """Whether dual coordinate descent is left for Newton steps on few kinks, after each of these bounds of J = 1."""
    X = scipy.sparse.random(40, 3000, density=0.1, format="csr", rng=np.random.default_rng(2))
    problem = Problem(LinearRisk(X, np.resize([1.0, -1.0], 40), "hinge"), "l2", 1e-4)
    watch, slow = _Watch(problem, DualCoordinate(), [SemismoothNewton()]), []
    for lower in bounds:
        watch.see(Step(np.zeros(3000), 1.0, lower, None, None))
        slow.append(watch.slow)
    return slow


def test_epochs_go_on_while_their_bound_rises():
    assert _watched([0.1, 0.12, 0.14, 0.16, 0.18]) == [False] * 5
    assert _watched([0.1, 0.101, 0.102, 0.103, 0.104]) == [False, False, False, True, True]
