"""Every solver on every problem: a true certificate within the tolerance, or a refusal before any work."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from catalogue import LAM, Case, all_cases, all_losses, all_solvers, data_for, misfits, reference_optimum, tolerance
from reference import models

from bmrm import LinearRisk, Problem, solve
from bmrm._traits import Trait
from bmrm.losses import (
    Exponential,
    Hinge,
    LeastAbsolute,
    LeastSquares,
    Logistic,
    NuNovelty,
    PiecewiseQuadratic,
    Poisson,
    Quantile,
)
from bmrm.problem import missing
from bmrm.regularizers import L1, L2
from bmrm.solvers import BMRM, LBFGS, SciPy
from bmrm.testing import check_solver

every_solver = pytest.mark.parametrize("solver", all_solvers(), ids=lambda solver: solver.name)


@pytest.mark.parametrize("case", all_cases())
def test_solver_on_problem(case: Case):
    optimum = reference_optimum(case.loss, case.example)
    check_solver(case.solver, case.problem, optimum, tol=tolerance(case.solver), error=models.ERROR)


@every_solver
def test_solver_refuses_what_does_not_fit(solver):
    for problem in misfits(solver):
        check_solver(solver, problem)


SHAPES = {
    "intercept": lambda d: {},
    "weights": lambda d: {"weights": np.linspace(0.3, 3.0, d)},
    "several free": lambda d: {"weights": np.where(np.arange(d) % 2 == 0, 0.0, 1.0)},
    "bounds and free": lambda d: {"bounds": (np.full(d - 1, -0.1), np.full(d - 1, 0.3))},
    "one-sided bounds": lambda d: {"weights": np.ones(d), "bounds": (np.zeros(d), np.full(d, np.inf))},
    "bounded free": lambda d: {
        "weights": np.r_[np.ones(d - 1), 0.0],
        "bounds": (np.full(d, -0.05), np.full(d, 0.4)),
    },
    "fixed coordinate": lambda d: {"bounds": (np.r_[0.1, np.full(d - 2, -1.0)], np.r_[0.1, np.full(d - 2, 1.0)])},
}
SHAPED = [Hinge(), Logistic(), LeastSquares(), Quantile(tau=0.9), Poisson(), NuNovelty(nu=0.5)]


@cache
def shaped(loss, kind, shape):
    """Return a problem with intercept and sample weights; None if it has no lower bound."""
    if Trait.UNBOUNDED_RISK in loss.traits and (kind is L1 or shape == "several free"):
        return None
    X, y = data_for(loss)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, size=y.size)
    risk = LinearRisk(X, y, loss, sample_weight=weight, intercept=True, n_threads=1)
    return Problem(risk, kind(**SHAPES[shape](risk.dim)), LAM)


@cache
def optimum_of_shaped(loss, kind, shape):
    problem, X = shaped(loss, kind, shape), data_for(loss)[0]
    wide = np.column_stack([X, np.ones(len(X))])
    return models.optimum(loss, wide, problem.risk.targets, problem.regularizer, LAM, problem.risk.weight)


def shaped_cases():
    """Return the combinations that fit together."""
    for loss, kind, shape in product(SHAPED, (L2, L1), SHAPES):
        problem = shaped(loss, kind, shape)
        for solver in all_solvers():
            if problem is not None and not missing(solver, problem):
                yield pytest.param(loss, kind, shape, solver, id=f"{loss}-{kind.name}-{shape}-{solver.name}")


@pytest.mark.parametrize(("loss", "kind", "shape", "solver"), list(shaped_cases()))
def test_shapes_of_regularizers(loss, kind, shape, solver):
    optimum = optimum_of_shaped(loss, kind, shape)
    check_solver(solver, shaped(loss, kind, shape), optimum, tol=tolerance(solver), error=models.ERROR)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.floor == -np.inf], ids=repr)
def test_unbounded_risks_need_strong_convexity(loss):
    X, y = data_for(loss)
    with pytest.raises(ValueError, match="strongly convex"):
        Problem(LinearRisk(X, y, loss), "l1", LAM)


def test_a_free_direction_without_a_minimum_is_never_called_converged():
    """A risk that falls for ever along a coordinate which nothing penalizes: the bound stays honest."""
    falling = PiecewiseQuadratic([0.0], [(0, 1, 0), (0, 2, 0)], of="score")
    risk = LinearRisk([[1.0], [2.0]], None, falling, intercept=True)
    result = solve(Problem(risk, "l2", LAM), "ls_bmrm", max_iter=100)
    assert not result.converged


def test_refusals_name_every_trait():
    X, y = data_for(Hinge())
    problem = Problem(LinearRisk(X, y, Hinge()), L1(bounds=(-1.0, 1.0)), LAM)
    before = problem.risk.products
    with pytest.raises(ValueError) as caught:
        solve(problem, "lbfgs")
    for trait in (Trait.SMOOTH_RISK, Trait.SMOOTH_REGULARIZER, Trait.BOUNDS):
        assert trait.value in str(caught.value)
    assert problem.risk.products == before


class BareOracle:
    """The mean of |x_i w - y_i|, known through values and subgradients only."""

    floor = 0.0

    def __init__(self, X, y):
        self.X, self.y, self.dim = X, y, X.shape[1]

    def evaluate(self, w):
        r = self.X @ w - self.y
        return np.abs(r).mean(), self.X.T @ np.sign(r) / r.size


class SmoothOracle(BareOracle):
    traits = (Trait.SMOOTH_RISK,)

    def evaluate(self, w):
        r = self.X @ w - self.y
        return 0.5 * (r**2).mean(), self.X.T @ r / r.size


@every_solver
@pytest.mark.parametrize("kind", [L2, L1])
@pytest.mark.parametrize(("oracle", "loss"), [(BareOracle, LeastAbsolute()), (SmoothOracle, LeastSquares())])
def test_a_bare_oracle(oracle, loss, kind, solver):
    X, y = data_for(loss)
    problem = Problem(oracle(X, y), kind(), LAM)
    optimum = models.optimum(loss, X, y, problem.regularizer, LAM)
    check_solver(solver, problem, optimum, tol=tolerance(solver), error=models.ERROR)


@every_solver
@pytest.mark.parametrize("loss", [Hinge(), LeastSquares(), Logistic()], ids=repr)
def test_a_start_far_away(loss, solver):
    X, y = data_for(loss)
    problem = Problem(LinearRisk(X, y, loss, n_threads=1), "l2", LAM)
    if not missing(solver, problem):
        optimum = models.optimum(loss, X, y, problem.regularizer, LAM)
        result = solve(problem, solver, tol=1e-2, start=np.full(4, 1e3), max_seconds=30)
        assert result.converged
        assert result.certificate.lower <= optimum * (1 + 1e-7)
        assert result.certificate.upper == pytest.approx(optimum, rel=0.0101)


@every_solver
@pytest.mark.parametrize("size", [20.0, 60.0])
def test_bounds_hold_after_a_start_with_a_huge_objective(size, solver):
    """Planes found where the objective is 1e20 carry rounding errors far above the optimum: they must not count."""
    for seed in (0, 2, 11, 23):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(36, 4)), np.where(rng.random(36) < 0.5, -1.0, 1.0)
        problem = Problem(LinearRisk(X, y, Exponential(), n_threads=1), "l2", LAM)
        if missing(solver, problem):
            return
        optimum = models.optimum(Exponential(), X, y, problem.regularizer, LAM)
        result = solve(problem, solver, tol=1e-2, start=np.full(4, size), max_iter=200, max_seconds=1.0)
        assert max(record.lower for record in result.history) <= optimum * (1 + 1e-6)
        assert not result.converged or result.certificate.upper <= optimum * 1.0101


class LooseLBFGS(LBFGS):
    """Claims more than it has proved."""

    def steps(self, problem, start):
        for step in super().steps(problem, start):
            yield type(step)(step.w, step.upper, step.upper, step.bundle)


class Wandering(BMRM):
    """Reports an objective that is not that of its w."""

    def steps(self, problem, start):
        for step in super().steps(problem, start):
            yield type(step)(step.w + 0.1, step.upper, step.lower, step.bundle)


class Impatient(SciPy):
    """Ends after its first step."""

    def steps(self, problem, start):
        yield next(iter(super().steps(problem, start)))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LooseLBFGS(), "exceeds the optimum"),
        (Wandering(), "ended with"),
        (Impatient(inner=1), "ended with STALLED"),
    ],
    ids=["false bound", "false objective", "no convergence"],
)
def test_broken_solvers_are_found_out(broken, message):
    X, y = data_for(Logistic())
    problem = Problem(LinearRisk(X, y, Logistic()), "l2", LAM)
    optimum = models.optimum(Logistic(), X, y, problem.regularizer, LAM)
    with pytest.raises(AssertionError, match=message):
        check_solver(broken, problem, optimum, tol=1e-6)
