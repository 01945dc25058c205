"""The search along a line: exact where scores are kept, a descent step where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import all_losses, data_for, risk_for

from bmrm import LinearRisk, Problem, linesearch
from bmrm._traits import Trait
from bmrm.losses import Hinge, LeastAbsolute, LeastSquares, Logistic
from bmrm.regularizers import L1, L2

LAMS = [1e-4, 0.05, 2.0]


def objective_on_grid(problem, w, d, t):
    return np.array([problem.objective(w + step * d) for step in t])


def problem_for(loss, kind, lam, **options):
    X, y = data_for(loss)
    if Trait.UNBOUNDED_RISK in loss.traits and kind is L1:
        return None
    return Problem(LinearRisk(X, y, loss, n_threads=1), kind(**options), lam)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples == "row"], ids=repr)
@pytest.mark.parametrize("kind", [L2, L1])
@pytest.mark.parametrize("lam", LAMS)
def test_exact_against_a_grid(loss, kind, lam, rng):
    problem = problem_for(loss, kind, lam)
    if problem is None:
        return
    for _ in range(3):
        w, w2 = 0.5 * rng.normal(size=(2, problem.risk.dim))
        line = problem.risk.at(w).toward(w2)
        d = w2 - w
        for guess in (1.0, 1e-3, 50.0):
            t = linesearch.minimize(problem, line, guess)
            assert t >= 0.0
            here = problem.objective(w + t * d)
            near = [s for h in (1e-1, 1e-3, 1e-5) for s in (t * (1 - h), t * (1 + h), t + h)]
            trials = np.r_[0.0, np.linspace(0.0, 3.0, 61), near]
            assert here <= objective_on_grid(problem, w, d, trials).min() + 1e-11 * (1 + abs(here))


@pytest.mark.parametrize("loss", [Hinge(), LeastAbsolute(), LeastSquares(), Logistic()], ids=repr)
@pytest.mark.parametrize("kind", [L2, L1])
def test_the_slope_changes_sign_at_the_minimum(loss, kind, rng):
    problem = problem_for(loss, kind, 0.05)
    w = rng.normal(size=problem.risk.dim)
    line = problem.risk.at(w).toward(np.zeros_like(w))
    t = linesearch.minimize(problem, line)
    along = problem.regularizer.along(w, line.direction)
    h = 1e-9
    before = problem.lam * along.evaluate(t - h)[1] + line.evaluate(t - h)[1]
    after = problem.lam * along.evaluate(t + h)[2] + line.evaluate(t + h)[2]
    assert before <= 1e-7
    assert after >= -1e-7


def test_no_product_with_the_data():
    problem = problem_for(Hinge(), L2, 0.05)
    line = problem.risk.at(np.zeros(4)).toward(np.ones(4))
    before = problem.risk.products
    linesearch.minimize(problem, line)
    assert problem.risk.products == before


def test_uphill_stays_where_it_is(rng):
    problem = problem_for(LeastSquares(), L2, 0.05)
    w = np.zeros(4)
    _, gradient = problem.risk.evaluate(w)
    assert linesearch.minimize(problem, problem.risk.at(w).toward(w + gradient)) == 0.0


def test_a_line_that_goes_nowhere():
    problem = problem_for(Hinge(), L2, 0.05)
    w = np.ones(4)
    t = linesearch.minimize(problem, problem.risk.at(w).toward(w.copy()))
    assert np.isfinite(t)


@pytest.mark.parametrize("kind", [L2, L1])
def test_bounds_are_respected(kind, rng):
    problem = problem_for(LeastSquares(), kind, 1e-4, bounds=(-0.1, 0.1))
    for _ in range(10):
        w, w2 = rng.uniform(-0.1, 0.1, size=(2, 4))
        line = problem.risk.at(w).toward(w2)
        t = linesearch.minimize(problem, line)
        assert np.isfinite(problem.objective(line.at(t).w))
        longest = np.min(np.where(line.direction > 0, 0.1 - w, -0.1 - w) / line.direction)
        trials = np.linspace(0.0, longest, 200) * (1 - 1e-9)
        least = objective_on_grid(problem, w, line.direction, trials).min()
        assert problem.objective(line.at(t).w) <= least + 1e-9


class Oracle:
    """Known by values and subgradients only: no cached line."""

    dim = 4

    def __init__(self, risk):
        self.evaluate = risk.evaluate


@pytest.mark.parametrize("loss", [Hinge(), LeastSquares(), Logistic()], ids=repr)
@pytest.mark.parametrize("guess", [1.0, 1e-3])
def test_search_by_slope_descends_with_few_evaluations(loss, guess, rng):
    exact = problem_for(loss, L2, 0.05)
    problem = Problem(Oracle(exact.risk), L2(), 0.05)
    for _ in range(10):
        w = rng.normal(size=4)
        line = problem.risk.at(w).toward(np.zeros(4))
        before = problem.risk.products
        t = linesearch.minimize(problem, line, guess)
        assert problem.risk.products - before <= 2 * 12
        assert problem.objective(w + t * line.direction) <= problem.objective(w)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.couples != "row"], ids=repr)
def test_search_descends_for_losses_of_several_rows(loss, rng):
    """Also where the risk has no floor and the search ends at a flat place on its way down."""
    problem = Problem(risk_for(loss), L2(), 0.1)
    for size in (0.0, 1.0):
        for guess in (1.0, 1e-2, 30.0):
            w = size * rng.normal(size=problem.risk.dim)
            point = problem.risk.at(w + 1e-6 * rng.normal(size=w.size))
            line = point.toward(point.w - point.subgradient - problem.lam * point.w)
            t = linesearch.minimize(problem, line, guess)
            assert problem.objective(line.at(t).w) < problem.objective(point.w)
