"""Parameters as users of scikit-learn write them: searched, nested, by other names, for all cores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import bmrm
from bmrm import estimators
from bmrm._registry import UnknownName
from bmrm.data.threads import default_threads
from bmrm.losses import LOSSES, FBeta, LeastAbsolute, LeastSquares, Logistic, Quantile, RocArea
from bmrm.regularizers import L1, L2, ElasticNet

ESTIMATORS = [getattr(estimators, name) for name in estimators.__all__]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X @ [1.0, 0.5, 0.0] + 0.1 * rng.normal(size=80)


def made(cls, **parameters):
    if cls is bmrm.StructuredPredictor:
        parameters["model"] = bmrm.ChainModel(n_labels=2, n_attributes=1)
    return cls(**parameters)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_estimator_takes_parameters_of_its_regularizer(cls):
    named = made(cls, regularizer="elastic_net", regularizer_params={"r": 0.25})
    assert named._chosen_regularizer().r == 0.25
    given = made(cls, regularizer=ElasticNet(r=0.5))
    again = clone(given).set_params(regularizer__r=0.75)
    assert (given.regularizer.r, again.regularizer.r, again.get_params()["regularizer__r"]) == (0.5, 0.75, 0.75)
    with pytest.raises(ValueError, match=r"regularizer_params=.* are for a regularizer given by its name"):
        made(cls, regularizer=L1(), regularizer_params={"r": 0.5})._chosen_regularizer()
    with pytest.raises(ValueError, match="regularizer 'l2' has no parameter 'r'"):
        made(cls, regularizer_params={"r": 0.5})._chosen_regularizer()


def test_parameters_of_a_regularizer_are_searched(data):
    grid = {"regularizer_params": [{"r": 0.0}, {"r": 1.0}]}
    model = bmrm.LinearRegressor(regularizer="elastic_net", lam=0.5)
    by_name = GridSearchCV(model, grid, cv=3).fit(*data)
    by_object = GridSearchCV(
        clone(model).set_params(regularizer=ElasticNet()), {"regularizer__r": [0.0, 1.0]}, cv=3
    ).fit(*data)
    scores = by_name.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, by_object.cv_results_["mean_test_score"])
    assert scores[0] != scores[1]
    assert by_name.best_params_["regularizer_params"]["r"] == by_object.best_params_["regularizer__r"]


def test_parameters_of_a_loss_are_searched(data):
    by_name = GridSearchCV(
        bmrm.LinearRegressor(loss="quantile"), {"loss_params": [{"tau": 0.1}, {"tau": 0.5}]}, cv=3
    ).fit(*data)
    by_object = GridSearchCV(bmrm.LinearRegressor(loss=Quantile()), {"loss__tau": [0.1, 0.5]}, cv=3).fit(*data)
    np.testing.assert_array_equal(by_name.cv_results_["mean_test_score"], by_object.cv_results_["mean_test_score"])
    assert by_object.best_estimator_.loss_ == Quantile(tau=0.5)


def test_a_new_object_and_its_parameter_are_set_together():
    model = bmrm.LinearRegressor(loss="quantile").set_params(loss__tau=0.2, loss=Quantile(tau=0.9), lam=0.1)
    assert (model.loss, model.lam) == (Quantile(tau=0.2), 0.1)


def test_nested_parameters_that_are_not_there():
    with pytest.raises(ValueError, match="a name has none: set loss_params, or give the loss as an object"):
        bmrm.LinearRegressor(loss="quantile").set_params(loss__tau=0.2)
    with pytest.raises(ValueError, match=r"no parameter .q. .* it has tau"):
        bmrm.LinearRegressor(loss=Quantile()).set_params(loss__q=0.2)
    with pytest.raises(ValueError, match="'r' of regularizer 'elastic_net' must lie between 0 and 1"):
        bmrm.LinearRegressor(regularizer=ElasticNet()).set_params(regularizer__r=2.0)


ALIASES = {
    "absolute_error": LeastAbsolute(),
    "f1": FBeta(),
    "log_loss": Logistic(),
    "pinball": Quantile(),
    "roc_auc": RocArea(),
    "squared_error": LeastSquares(),
}


@pytest.mark.parametrize("alias", ALIASES)
def test_names_of_metrics_are_understood(alias):
    assert bmrm.losses.get(alias) == ALIASES[alias]
    assert bmrm.LinearRisk([[1.0], [2.0]], [0.0, 1.0], alias).loss == ALIASES[alias]
    assert alias in LOSSES
    assert alias not in list(LOSSES)


def test_estimators_understand_names_of_metrics(data):
    X, y = data
    assert bmrm.LinearRegressor(loss="pinball", loss_params={"tau": 0.9}).fit(X, y).loss_ == Quantile(tau=0.9)
    model = bmrm.LinearClassifier(loss="log_loss")
    assert hasattr(model, "predict_proba")
    assert model.fit(X, y > 0.0).predict_proba(X).shape == (80, 2)
    one, other = (bmrm.ScoreClassifier(score=name, lam=0.1).fit(X, y > 0.0) for name in ("roc_auc", "roc_area"))
    assert one.score(X, y > 0.0) == other.score(X, y > 0.0)
    assert one.get_params()["score"] == "roc_auc"
    with pytest.raises(ValueError, match="score must be one of roc_area"):
        bmrm.ScoreClassifier(score="log_loss").fit(X, y > 0.0)


def test_unknown_names_are_answered_with_those_near():
    with pytest.raises(UnknownName, match=r"Did you mean 'squared_error'.*Available: .*hinge"):
        bmrm.losses.get("squared_eror")


def test_as_many_threads_as_there_are_cores(data, tmp_path):
    X, y = data
    assert bmrm.LinearRisk(X, y, "least_squares", n_threads=-1).n_threads == default_threads()
    assert bmrm.LinearRisk(X, y, "least_squares", n_threads=-2).n_threads == max(1, default_threads() - 1)
    path = tmp_path / "a.svm"
    bmrm.write(path, X, y)
    assert bmrm.read(path, n_threads=-1).X.shape == (80, 3)
    bmrm.LinearRegressor(n_threads=-1).fit(X, y)
    labeler = bmrm.SequenceLabeler(n_threads=-1).fit([[{"a": 1.0}], [{"b": 1.0}]], [["x"], ["y"]])
    assert labeler.predict([[{"a": 1.0}]]) == [["x"]]
    for wrong in (0, 1.5, True, "all"):
        with pytest.raises(ValueError, match="n_threads must be a whole number of at least 1, or -1 for all cores"):
            bmrm.LinearRisk(X, y, "least_squares", n_threads=wrong)
    with pytest.raises(ValueError, match="n_threads must be a whole number"):
        bmrm.read(path, n_threads=0)


def test_bounds_of_another_length_are_compared_with_the_columns():
    X = np.ones((4, 21))
    with pytest.raises(ValueError, match=r"has 20 lower bounds, expected 21, .*\(or 22, with the 1 unpenalized at"):
        bmrm.LinearRegressor(regularizer=L2(bounds=(np.full(20, -1.0), np.full(20, 1.0)))).fit(X, np.arange(4.0))
    with pytest.raises(ValueError, match=r"as many lower as upper ends, got shapes \(21,\) and \(20,\)"):
        L2(bounds=(np.full(21, -1.0), np.full(20, 1.0)))
    with pytest.raises(ValueError, match=r"has 20 weights, expected 21, one for each coefficient$"):
        bmrm.LinearRegressor(regularizer=L2(weights=np.ones(20)), fit_intercept=False).fit(X, np.arange(4.0))


def test_a_loss_of_ones_own_is_told_how_to_say_that_it_is_for_classes(data):
    class Own(bmrm.losses.Loss):
        floor = 0.0

        def evaluate(self, scores, targets, weight):
            margin = 1.0 - targets * scores
            return float(weight @ np.maximum(margin, 0.0)), -weight * targets * (margin > 0.0)

    X, y = data
    with pytest.raises(ValueError, match=r"loss 'Own' is for regression; .*write task = 'classification' in its class"):
        bmrm.LinearClassifier(loss=Own()).fit(X, y > 0.0)
    with pytest.raises(ValueError, match="loss 'least_squares' is for regression") as built_in:
        bmrm.LinearClassifier(loss="least_squares").fit(X, y > 0.0)
    assert "of your own" not in str(built_in.value)
    Own.task = "classification"
    assert bmrm.LinearClassifier(loss=Own()).fit(X, y > 0.0).score(X, y > 0.0) > 0.9
