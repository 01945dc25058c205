"""Fitted estimators are stored by pickle, joblib and skops, and come back whole."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import skops.io
from catalogue import all_losses, all_regularizers, all_solvers

import bmrm
from bmrm.estimators.trusted import trusted_types
from bmrm.losses import PiecewiseQuadratic, Quantile
from bmrm.regularizers import L2, ElasticNet
from bmrm.solvers import SOLVERS
from bmrm.structured import ChainModel, FoldingModel, MatchingModel, SemiMarkovModel

X = np.random.default_rng(0).normal(size=(60, 3))
SIGNS = np.where(X[:, 0] > 0.0, "yes", "no")
GRADES = np.arange(60) % 3
TOKENS = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
CHAIN = [np.array([[1.0], [-1.0]]), np.array([[-2.0]])]

FITTED = {
    "two classes": lambda: bmrm.LinearClassifier().fit(X, SIGNS),
    "one against the rest": lambda: bmrm.LinearClassifier(loss="logistic").fit(X, GRADES),
    "joint": lambda: bmrm.LinearClassifier(
        loss="multiclass_hinge", costs=[[0, 1, 2], [1, 0, 1], [1, 1, 0]], lam=0.1
    ).fit(X, GRADES),
    "by parts": lambda: bmrm.LinearClassifier().partial_fit(X, SIGNS, classes=["no", "yes"]),
    "regressor": lambda: bmrm.LinearRegressor().fit(X, X[:, 0]),
    "objects": lambda: bmrm.LinearRegressor(
        loss=Quantile(tau=0.3), regularizer=L2(weights=np.ones(3), bounds=(-1.0, 1.0)), solver=bmrm.solvers.LsBMRM()
    ).fit(X, X[:, 0]),
    "pieces": lambda: bmrm.LinearRegressor(
        loss=PiecewiseQuadratic([0.0], [(0, -1, 0), (0, 1, 0)]), regularizer=ElasticNet(r=0.5)
    ).fit(X, X[:, 0]),
    "novelty": lambda: bmrm.NoveltyDetector(lam=0.1).fit(X + 3.0),
    "multilabel": lambda: bmrm.MultilabelClassifier(lam=1e-3).fit(X, (np.sort(X, axis=1)[:, 1:2] <= X).astype(int)),
    "hierarchical": lambda: bmrm.HierarchicalClassifier(lam=0.1).fit(X[:3], ["a/b", "a/c", "d"]),
    "score": lambda: bmrm.ScoreClassifier(lam=0.1).fit(X, SIGNS),
    "ordinal": lambda: bmrm.OrdinalRegressor(lam=0.1).fit(X, GRADES),
    "ranker": lambda: bmrm.Ranker(lam=0.1).fit(X, GRADES, qid=np.repeat(np.arange(6), 10)),
    "sequences": lambda: bmrm.SequenceLabeler(lam=0.1).fit(TOKENS, [["D", "N"], ["D", "N"]]),
    "structured": lambda: bmrm.StructuredPredictor(ChainModel(n_labels=2, n_attributes=1), lam=0.1).fit(
        CHAIN, [[0, 1], [1]]
    ),
}


def by_skops(thing):
    return skops.io.loads(skops.io.dumps(thing), trusted=trusted_types())


def by_joblib(thing, path):
    joblib.dump(thing, path)
    return joblib.load(path)


@pytest.mark.parametrize("kind", FITTED)
def test_estimators_come_back_whole(kind, tmp_path):
    model = FITTED[kind]()
    for again in (by_skops(model), pickle.loads(pickle.dumps(model)), by_joblib(model, tmp_path / "m.joblib")):
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert vars(again).keys() == vars(model).keys()
        assert again.get_params().keys() == model.get_params().keys()
        if kind == "by parts":
            assert not hasattr(again, "status_")
        else:
            assert again.status_ is model.status_ is bmrm.Status.CONVERGED
            assert again.status_.advice == model.status_.advice
            assert repr(again.certificate_) == repr(model.certificate_)
        rows = TOKENS if kind == "sequences" else CHAIN if kind == "structured" else X
        assert repr(again.predict(rows)) == repr(model.predict(rows))


@pytest.mark.parametrize("thing", [*all_losses(), *all_regularizers(4), *all_solvers()], ids=repr)
def test_parameters_come_back(thing):
    again = by_skops(thing)
    assert repr(again) == repr(thing)
    assert getattr(again, "traits", None) == getattr(thing, "traits", None)


@pytest.mark.parametrize("kind", [ChainModel, FoldingModel, MatchingModel, SemiMarkovModel])
def test_models_come_back(kind):
    for model in kind.examples():
        assert by_skops(model).dim == model.dim


def test_no_type_is_trusted_for_nothing():
    """Each one on the list is part of something that is stored here."""
    models = [model for kind in (ChainModel, FoldingModel, MatchingModel, SemiMarkovModel) for model in kind.examples()]
    solvers = [*all_solvers(), *(solver() for solver in SOLVERS.values())]  # the latter has those for noise as well
    things = [*all_losses(), *all_regularizers(4), *solvers, *models, *(make() for make in FITTED.values())]
    found = {name for thing in things for name in skops.io.get_untrusted_types(data=skops.io.dumps(thing))}
    assert found == set(trusted_types())
