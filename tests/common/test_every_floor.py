"""Floors: those of this library are true, others are asked for or done without, and wrong ones are found out."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from catalogue import LAM, all_losses, all_solvers, data_for, risk_for, tolerance
from reference import models
from scipy.optimize import minimize

import bmrm
from bmrm import FloorError, LinearRisk, Problem, Status, certify, path, solve
from bmrm._traits import Trait
from bmrm.losses import LOSSES, Hinge, LeastSquares, Logistic, Loss, Poisson, Softmax
from bmrm.losses.structured import STRUCTURED_LOSSES
from bmrm.problem import missing
from bmrm.regularizers import L1, L2, Zero
from bmrm.testing import check_loss, check_risk

LOG_2 = float(np.log(2.0))

every_solver = pytest.mark.parametrize("solver", all_solvers(), ids=lambda solver: solver.name)


class Foreign(Loss):
    """A built-in loss plus a constant, as a user writes it: nothing but values and slopes is known of it."""

    def __init__(self, inner: Loss, constant: float) -> None:
        self.inner, self.constant = inner, constant
        self.traits = inner.traits & {Trait.SMOOTH_RISK}

    def encode(self, y, groups=None):
        return self.inner.encode(y, groups)

    def evaluate(self, scores, targets, weight):
        value, slopes = self.inner.evaluate(scores, targets, weight)
        return value + self.constant * float(weight.sum()), slopes

    def draw(self, rng, m):
        return self.inner.draw(rng, m)


class Declared(Foreign):
    """The same with a floor, a wrong one."""

    task = "classification"

    def __init__(self, inner: Loss, constant: float, floor: float) -> None:
        super().__init__(inner, constant)
        self.floor = floor


class Oracle:
    """A risk without a floor, of a linear one."""

    def __init__(self, risk, **known):
        self.risk, self.dim, self.unpenalized = risk, risk.dim, risk.unpenalized
        self.__dict__ |= known

    def evaluate(self, w):
        return self.risk.evaluate(w)


@pytest.mark.parametrize("cls", [*LOSSES.values(), *STRUCTURED_LOSSES.values()], ids=lambda cls: cls.__name__)
def test_every_loss_declares_its_own_floor(cls):
    assert "floor" in vars(cls)


@pytest.mark.parametrize("loss", [loss for loss in all_losses() if loss.floor > -np.inf], ids=repr)
def test_floors_are_below_what_a_minimizer_finds(loss, rng):
    risk = risk_for(loss)
    for size in (0.0, 1.0, 30.0):
        start = size * rng.normal(size=risk.design.n_scores)
        options = {"maxiter": 200}
        found = minimize(lambda f: risk.loss_and_slopes(np.ascontiguousarray(f))[:2], start, jac=True, options=options)
        assert found.fun >= loss.floor - 1e-12


def test_code_of_others_has_no_floor_unless_it_says_so():
    class Faster(Logistic):
        """Inherits a floor from another formula."""

        def evaluate(self, scores, targets, weight):
            return -1.0, np.zeros_like(scores)

    class Named(Hinge):
        """Another name for the same formula."""

    X, y = data_for(Logistic())
    assert Foreign(Logistic(), 0.0).floor == Faster().floor == -np.inf
    assert Named().floor == 0.0
    assert Problem(Oracle(LinearRisk(X, y, "logistic")), "l2", 1.0).risk.floor == -np.inf
    assert bmrm.Risk.floor == -np.inf


def test_a_negative_loss_of_ones_own_is_minimized():
    """The floor was taken to be 0, which w = 0 reaches: the answer was 0, optimal to rounding."""
    X, y = data_for(Logistic())
    loss = Foreign(Logistic(), -LOG_2)
    model = bmrm.LinearRegressor(loss=loss, lam=LAM, tol=1e-6, fit_intercept=False).fit(X, y)
    right = bmrm.LinearClassifier(loss="logistic", lam=LAM, tol=1e-6, fit_intercept=False).fit(X, y)
    assert model.certificate_.upper == pytest.approx(right.certificate_.upper - LOG_2, abs=2e-6)
    assert np.abs(model.coef_).max() > 0.1


HIDDEN = [Logistic(), Hinge(), LeastSquares(), Poisson()]
SHAPES = {
    "l2": lambda: L2(),
    "weights": lambda: L2(weights=[1.0, 0.1, 10.0, 1.0]),
    "bounds": lambda: L2(bounds=(-0.1, 0.3)),
    "several free": lambda: L2(weights=[0.0, 1.0, 0.0, 1.0]),
    "elastic_net": lambda: bmrm.regularizers.ElasticNet(r=0.5),
    "zero": lambda: Zero(),
}


@cache
def hidden(loss, shape, intercept):
    """Return the problem of a loss with a hidden floor, 5 lower, and its optimum."""
    X, y = data_for(loss)
    options = {"intercept": intercept, "n_threads": 1}
    problem = Problem(LinearRisk(X, y, Foreign(loss, -5.0), **options), SHAPES[shape](), LAM)
    wide = np.column_stack([X, np.ones(len(X))]) if intercept else X
    known = LinearRisk(X, y, loss, **options)
    return problem, models.optimum(loss, wide, known.targets, problem.regularizer, LAM) - 5.0


@every_solver
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", HIDDEN, ids=repr)
def test_bounds_are_true_without_a_floor(loss, shape, intercept, solver):
    problem, optimum = hidden(loss, shape, intercept)
    if missing(solver, problem):
        with pytest.raises(ValueError, match="does not fit"):
            solve(problem, solver)
        return
    result = solve(problem, solver, tol=tolerance(solver), max_iter=1000, max_seconds=5.0)
    slack = models.ERROR * (1.0 + abs(optimum))
    assert result.certificate.lower <= optimum + slack
    assert result.certificate.upper >= optimum - slack
    if solver.name == "auto":
        assert result.converged


def test_several_constants_without_a_floor(rng):
    class Shifted(Softmax):
        traits = frozenset({Trait.SMOOTH_RISK})

        def compiled(self, targets):
            return None

        def evaluate(self, scores, targets, weight):
            slopes = np.empty_like(scores)
            value = Softmax().compiled(targets).evaluate(scores, weight, 1.0, slopes)
            return value - float(weight.sum()), slopes

    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    X[:, 0] += y
    known, own = (
        solve(Problem(LinearRisk(X, y, loss, intercept=True), "l2", 0.01), tol=1e-6) for loss in (Softmax(), Shifted())
    )
    assert own.converged
    assert own.certificate.upper == pytest.approx(known.certificate.upper - 1.0, abs=1e-6)


@pytest.mark.parametrize("kind", [L1, lambda: bmrm.regularizers.ElasticNet(r=1.0)])
def test_absolute_values_ask_for_a_floor(kind):
    X, y = data_for(Logistic())
    cure = r"declares no floor: if its values are never negative, write 'floor = 0.0' in class"
    with pytest.raises(ValueError, match=f"needs a lower bound of the risk: loss 'Foreign' {cure} Foreign"):
        Problem(LinearRisk(X, y, Foreign(Logistic(), 0.0)), kind(), LAM)
    with pytest.raises(ValueError, match=f"needs a lower bound of the risk: risk 'Oracle' {cure} Oracle"):
        Problem(Oracle(LinearRisk(X, y, "logistic")), kind(), LAM)
    assert solve(Problem(Oracle(LinearRisk(X, y, "logistic"), floor=0.0), kind(), LAM)).converged


def test_solvers_that_need_a_floor_say_how_to_declare_it():
    X, y = data_for(Logistic())
    with pytest.raises(ValueError, match=r"known lower bound.*Loss 'Foreign' declares no floor.*floor = 0\.0"):
        solve(Problem(LinearRisk(X, y, Foreign(Logistic(), 0.0)), "l2", LAM), "bmrm_line")
    with pytest.raises(ValueError, match="without a known lower bound") as refused:
        solve(Problem(LinearRisk(X, y, bmrm.losses.NuHinge()), "l2", LAM), "bmrm_line")
    assert "floor = 0.0" not in str(refused.value)  # it has none


def test_a_smooth_loss_without_a_floor_costs_about_the_same(rng):
    class Known(Foreign):
        floor = 0.0

    X = rng.normal(size=(400, 8))
    y = X[:, 0] + rng.normal(size=400)
    without, known = (
        solve(Problem(LinearRisk(X, y, kind(LeastSquares(), 0.0), intercept=True), "l2", 1e-3), tol=1e-6)
        for kind in (Foreign, Known)
    )
    assert without.converged
    assert known.converged
    assert without.passes <= 2.0 * known.passes


@pytest.mark.parametrize("floor", [np.nan, np.inf])
def test_floors_are_numbers(floor):
    X, y = data_for(Logistic())
    with pytest.raises(ValueError, match=f"loss 'Declared' declares the floor {floor}; expected a number"):
        Problem(LinearRisk(X, y, Declared(Logistic(), 0.0, floor)), "l2", LAM)


WRONG = {
    "met at the start": (-LOG_2, 0.0),  # R(0) = 0
    "met later": (0.0, 0.6),  # below R(0) = log 2, above the minimum
    "negative": (-LOG_2, -0.1),
}


@every_solver
@pytest.mark.parametrize("kind", ["l2", "l1"])
@pytest.mark.parametrize("form", ["loss", "risk"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_floor_that_is_too_high_ends_the_run(wrong, form, kind, solver):
    constant, floor = WRONG[wrong]
    X, y = data_for(Logistic())
    X, y = np.column_stack([X, y + 0.1 * X[:, 0]]), y
    risk = LinearRisk(X, y, Declared(Logistic(), constant, floor), n_threads=1)
    problem = Problem(Oracle(risk, floor=floor) if form == "risk" else risk, kind, 1e-3)
    if missing(solver, problem):
        return
    name = "loss 'Declared'" if form == "loss" else "risk 'Oracle'"
    with pytest.raises(FloorError, match=rf"falls to .*, below the floor {floor:g} that {name} declares"):
        solve(problem, solver, tol=1e-3, max_seconds=20.0)


def test_wrong_floors_end_paths_certificates_and_estimators():
    X, y = data_for(Logistic())
    X = np.column_stack([X, y])
    loss = Declared(Logistic(), -LOG_2, 0.0)
    risk = LinearRisk(X, y, loss)
    with pytest.raises(FloorError, match="falls to -"):
        path(risk, "l2", [0.1, 0.01])
    w = np.array([0.0, 0.0, 0.0, 0.0, 3.0])
    with pytest.raises(FloorError, match=f"falls to {risk.evaluate(w)[0]:.6g}, below the floor 0"):
        certify(Problem(risk, "l2", 0.1), w, max_iter=1)
    with pytest.raises(FloorError, match="Set 'floor' in class Declared"):
        bmrm.LinearClassifier(loss=loss, lam=0.01).fit(X, y)
    with pytest.raises(AssertionError, match="falls below its floor 0"):
        check_risk(risk)
    with pytest.raises(AssertionError, match="falls below its floor 0"):
        check_loss(loss)


@pytest.mark.parametrize("kind", ["l2", "l1"])
def test_a_true_floor_that_is_reached_is_no_error(kind, rng):
    """Separable rows and a tiny lam: the risk comes to rest on its floor."""
    X = rng.normal(size=(30, 40))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    risk = LinearRisk(X, y, Declared(Hinge(), 2.0, 2.0))
    result = solve(Problem(risk, kind, 1e-6), tol=1e-3)
    assert result.converged
    assert result.certificate.upper == pytest.approx(2.0, abs=1e-2)


class Exponents(Loss):
    """exp(f) - y f, convex, and negative where y is large."""

    def evaluate(self, scores, targets, weight):
        with np.errstate(over="ignore", invalid="ignore"):
            e = np.exp(scores)
            return float(weight @ (e - targets * scores)), weight * (e - targets)


class CleanExponents(Exponents):
    """Rows of weight 0 count for nothing, even where exp overflows."""

    def evaluate(self, scores, targets, weight):
        value, slopes = 0.0, np.zeros_like(scores)
        on = weight > 0.0
        value, slopes[on] = super().evaluate(scores[on], targets[on], weight[on])
        return value, slopes


class NonnegativeExponents(CleanExponents):
    floor = 0.0


def test_a_convex_loss_that_falls_below_0_is_not_called_concave(rng):
    X = rng.normal(size=(100, 3))
    y = rng.poisson(np.exp(X[:, 0] + 1.0)).astype(float)
    assert bmrm.LinearRegressor(loss=Exponents(), lam=1e-3).fit(X, y).status_ is Status.CONVERGED
    with pytest.raises(FloorError, match="below the floor 0 that loss 'NonnegativeExponents' declares"):
        bmrm.LinearRegressor(loss=NonnegativeExponents(), lam=1e-3).fit(X, y)


def test_losses_that_overflow_are_told_so():
    with pytest.raises(AssertionError, match=r"overflows at a score of 710, and rows of weight 0 then count nan"):
        check_loss(Exponents())
    check_loss(CleanExponents())
