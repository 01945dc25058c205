"""A diagonal change of variables: exact, undone in the result, and of use where columns differ in size."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from reference import models

from bmrm import LinearRisk, Problem
from bmrm.losses import Hinge, Logistic, NuNovelty, Quantile
from bmrm.regularizers import L1, L2
from bmrm.risks.scaled import powers_of_two
from bmrm.solvers import LBFGS, LsBMRM
from bmrm.solvers.base import Start
from bmrm.solvers.units import steps_in_units
from bmrm.testing import check_risk

SIZES = np.array([1e-3, 1.0, 3e4])


def data(seed=0, m=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X * SIZES, np.where(X @ [1.0, -1.0, 0.5] + rng.normal(size=m) > 0, 1.0, -1.0)


def problem(loss, regularizer, lam=1e-2, **options):
    X, y = data()
    return Problem(LinearRisk(X, y, loss, n_threads=1, **options), regularizer, lam)


REGULARIZERS = [
    L2(),
    L1(),
    L2(weights=[0.3, 0.0, 2.0]),
    L2(bounds=([-1e3, -0.1, 0.0], [1e6, 0.2, 1e-6])),
    L1(weights=[2.0, 1.0, 0.5], bounds=(-1.0, 1.0)),
]


def test_powers_of_two_bring_every_column_near_one():
    c = powers_of_two(np.array([3e-7, 1.0, 5e8, 0.0]))
    assert np.all(np.frexp(c)[0] == 0.5)
    assert np.all((c[:3] * [3e-7, 1.0, 5e8] > 0.7) & (c[:3] * [3e-7, 1.0, 5e8] < 1.5))
    assert c[3] == 1.0


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_the_scaled_problem_is_the_same_to_the_last_digit(regularizer):
    original = problem(Hinge(), regularizer)
    c = powers_of_two(SIZES)
    scaled = original.rescaled(c)
    rng = np.random.default_rng(1)
    for w in rng.normal(size=(20, 3)) / SIZES:
        w = original.regularizer.clip(w)
        value, a = original.risk.evaluate(w)
        scaled_value, scaled_a = scaled.risk.evaluate(w / c)
        assert scaled_value == value
        assert np.array_equal(scaled_a, c * a)
        assert scaled.regularizer.value(w / c) == pytest.approx(original.regularizer.value(w), rel=1e-15)


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), NuNovelty(nu=0.5)], ids=repr)
def test_a_scaled_risk_is_a_risk(loss):
    scaled = problem(loss, L2(), intercept=True).rescaled(np.array([2.0, 0.25, 2.0**-20, 1.0]))
    check_risk(scaled.risk)


@pytest.mark.parametrize("solver", [LsBMRM(), LBFGS()], ids=repr)
@pytest.mark.parametrize("kind", [L2, L1])
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Quantile(tau=0.9)], ids=repr)
def test_steps_in_units_are_steps_of_the_original_problem(loss, kind, solver):
    original = problem(loss, kind())
    if isinstance(solver, LBFGS) and (kind is L1 or not isinstance(loss, Logistic)):
        return
    X, y = data()
    # The reference solves the scaled problem: the interior-point method fails on the raw one.
    weights = SIZES**-2 if kind is L2 else 1.0 / SIZES
    optimum = models.optimum(loss, X / SIZES, y, kind(weights=weights).bind(3), 1e-2)
    steps = list(islice(steps_in_units(solver, original, powers_of_two(SIZES), Start(np.zeros(3))), 60))
    for step in steps:
        assert step.lower <= optimum * (1 + 1e-7)
        assert step.upper == pytest.approx(original.objective(step.w), rel=1e-9)
    assert steps[-1].upper - max(step.lower for step in steps) <= 1e-3 * optimum
    bundle = steps[-1].bundle.copy()
    for a, b in zip(bundle.normals, bundle.offsets):
        assert a @ steps[-1].w + b <= original.risk.evaluate(steps[-1].w)[0] + 1e-12
