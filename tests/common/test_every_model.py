"""Every structured model: answers by brute force, and every loss, regularizer and solver that fits it, certified."""

from __future__ import annotations

from functools import cache
from itertools import cycle

import cvxpy as cp
import numpy as np
import pytest
from catalogue import all_regularizers, all_solvers, regularizer_id
from reference import models

from bmrm import Problem, StructuredRisk, losses
from bmrm.problem import missing
from bmrm.structured import MODELS, StructuredModel
from bmrm.testing import check_solver, check_structured_model
from bmrm.testing.structured import dense

LAM = 0.1
N = 4
SLOW = ("bmrm_line", "subgradient", "subgradient_bfgs", "subgradient_lbfgs")  # thousands of steps to 1e-5


def all_models() -> list[StructuredModel]:
    return [model for cls in MODELS.values() if cls.__module__.startswith("bmrm.") for model in cls.examples()]


MODELS_TO_TEST = all_models()
IDS = [f"{model.name}-{i}" for i, model in enumerate(MODELS_TO_TEST)]
every_model = pytest.mark.parametrize("which", range(len(MODELS_TO_TEST)), ids=IDS)


@cache
def sample(which: int):
    model = MODELS_TO_TEST[which]
    return model.draw(np.random.default_rng(which), N)


def losses_of(model: StructuredModel) -> list[losses.StructuredLoss]:
    """Return the losses that the model has an oracle for."""

    def has(method: str) -> bool:
        return method not in model.lacks and getattr(type(model), method) is not getattr(StructuredModel, method)

    made = []
    if has("augmented_argmax"):
        made.append(losses.StructuredHinge(model))
    if has("slack_argmax"):
        made.append(losses.StructuredHinge(model, "slack"))
    if has("log_partition"):
        made.append(losses.StructuredLog(model))
    return made


def affine(loss, w):
    """Return, for each example, the vector of what all outputs make of the loss, affine in w."""
    model = loss.model
    X, y = sample(MODELS_TO_TEST.index(model))
    terms = []
    for x, true in zip(X, y):
        outputs = list(model.outputs(x))
        own = dense(model.joint_feature(x, true), model.dim)
        difference = np.array([dense(model.joint_feature(x, other), model.dim) - own for other in outputs])
        costs = np.array([model.delta(true, other) for other in outputs])
        if isinstance(loss, losses.StructuredLog):
            terms.append(difference @ w)
        elif loss.scaling == "slack":
            terms.append(cp.multiply(costs, 1.0 + difference @ w))
        else:
            terms.append(costs + difference @ w)
    return terms


def optimum(loss, regularizer) -> float:
    """Return min J by an interior-point method over all outputs."""
    w = cp.Variable(loss.model.dim)
    reduce = cp.log_sum_exp if isinstance(loss, losses.StructuredLog) else cp.max
    omega, bounds = models.penalty(regularizer, LAM, w)
    return models.solved(omega + sum(reduce(term) for term in affine(loss, w)) / N, bounds)


@every_model
def test_answers(which):
    check_structured_model(MODELS_TO_TEST[which], *sample(which))


def cases():
    """Return each loss of each model with l2 and one more regularizer, by auto and one more solver: these rotate."""
    turns = cycle(range(1 << 30))
    for which, model in enumerate(MODELS_TO_TEST):
        for loss in losses_of(model):
            risk = StructuredRisk(*sample(which), loss, n_threads=1)
            regularizers = all_regularizers(risk.dim)
            chosen = {next(turns) % len(regularizers), 0}
            for regularizer in (regularizers[i] for i in sorted(chosen)):
                problem = Problem(risk, regularizer, LAM)
                fitting = [s for s in all_solvers() if not missing(s, problem)]
                names = {"auto", fitting[next(turns) % len(fitting)].name}
                for solver in fitting:
                    if solver.name in names:
                        scaling = getattr(loss, "scaling", "")
                        names_of = IDS[which], loss.name, scaling, regularizer_id(regularizer), solver.name
                        yield pytest.param(loss, problem, solver, id="-".join(names_of))


@pytest.mark.parametrize(("loss", "problem", "solver"), list(cases()))
def test_certificates(loss, problem, solver):
    best = optimum(loss, problem.regularizer)
    check_solver(solver, problem, best, tol=0.2 if solver.name in SLOW else 1e-5, error=models.ERROR)


@every_model
def test_weights_are_repetitions(which):
    model = MODELS_TO_TEST[which]
    X, y = sample(which)
    w = 0.3 * np.random.default_rng(5).normal(size=model.dim)
    for loss in losses_of(model):
        one = StructuredRisk(X, y, loss, weight=[2.0, 1.0, 0.0, 1.0], n_threads=1).evaluate(w)
        other = StructuredRisk([X[0], X[0], X[1], X[3]], [y[0], y[0], y[1], y[3]], loss, n_threads=1).evaluate(w)
        assert one[0] == pytest.approx(other[0], rel=1e-12)
        np.testing.assert_allclose(one[1], other[1], atol=1e-12)


@every_model
def test_documentation(which):
    cls = type(MODELS_TO_TEST[which])
    assert MODELS[cls.name] is cls
    assert "Examples\n    --------" in cls.__doc__
