"""The estimators: weights, intercepts, labels, agreement with other solvers, and messages for bad input."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import Lasso, LogisticRegression, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm import LinearClassifier, LinearRegressor, NoveltyDetector
from bmrm.estimators.offset import centered
from bmrm.losses.ranking import QueryLoss
from bmrm.losses.scores import WholeSetLoss
from bmrm.losses.vector import ClassLoss

TIGHT = {"lam": 1e-2, "tol": 1e-10}
ESTIMATORS = {
    "classification": LinearClassifier,
    "regression": LinearRegressor,
    "novelty": NoveltyDetector,
}
EVERY_LOSS = [loss for cls in bmrm.losses.LOSSES.values() for loss in cls.examples()]
LOSSES = [loss for loss in EVERY_LOSS if loss.task in ESTIMATORS and loss.couples == "row"]


def rows(m: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 1.0
    return X, X @ np.arange(1.0, d + 1.0) + rng.normal(size=m)


def targets(loss: bmrm.losses.Loss, scores: np.ndarray) -> np.ndarray:
    """Targets of the kind that the loss is for."""
    if isinstance(loss, ClassLoss):  # as many classes as the examples with costs have
        return np.array(["a", "b", "c"])[np.digitize(scores, np.quantile(scores, [0.28, 0.66]))]
    if loss.task == "classification":
        return np.where(scores > np.median(scores), "yes", "no")
    return np.floor(np.abs(scores)) if loss.name == "poisson" else scores


def values(model: Any, X: np.ndarray) -> np.ndarray:
    method = "predict" if isinstance(model, LinearRegressor) else "decision_function"
    return np.asarray(getattr(model, method)(X))


def estimator_for(loss: bmrm.losses.Loss, **parameters: Any) -> Any:
    return ESTIMATORS[loss.task](loss=loss, **parameters)


@pytest.mark.parametrize("loss", [loss for loss in EVERY_LOSS if isinstance(loss, WholeSetLoss | QueryLoss)], ids=str)
@pytest.mark.parametrize("estimator", [LinearClassifier, LinearRegressor])
def test_losses_of_several_rows_are_refused(estimator: Any, loss: bmrm.losses.Loss) -> None:
    X, scores = rows()
    fits = estimator is LinearClassifier and loss.task == "classification"
    message = "ScoreClassifier" if fits else f"is for {loss.task}; {estimator.__name__} takes losses for"
    with pytest.raises(ValueError, match=message):
        estimator(loss=loss).fit(X, scores > 0)


@pytest.mark.filterwarnings("ignore::bmrm.ConstantModelWarning")  # perceptrons ask for no margin
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_weights_mean_repetition_and_zero_means_absence(loss: bmrm.losses.Loss) -> None:
    X, scores = rows()
    y = targets(loss, scores)
    weight = np.random.default_rng(1).integers(0, 4, size=len(X))
    weighted = estimator_for(loss, **TIGHT).fit(X, y, sample_weight=weight)
    repeated = estimator_for(loss, **TIGHT).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert weighted.converged_
    assert repeated.converged_
    np.testing.assert_allclose(values(weighted, X), values(repeated, X), rtol=1e-6, atol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("ignore::bmrm.ConstantModelWarning")  # perceptrons ask for no margin
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.task != "novelty"], ids=str)
def test_shifting_X_leaves_predictions_unchanged(loss: bmrm.losses.Loss) -> None:
    X, scores = rows()
    y = targets(loss, scores)
    here = estimator_for(loss, **TIGHT).fit(X, y)
    there = estimator_for(loss, **TIGHT).fit(X + 3.0, y)
    np.testing.assert_allclose(values(here, X), values(there, X + 3.0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, np.asfortranarray, np.float32])
def test_kinds_of_matrices_give_the_same(container: Any) -> None:
    X, scores = rows()
    X = X.astype(np.float32).astype(np.float64)
    y = scores > 0
    expected = LinearClassifier(**TIGHT).fit(X, y)
    model = LinearClassifier(**TIGHT).fit(container(X), y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(container(X)), expected.predict(X))


def test_balanced_classes_are_weights() -> None:
    X, scores = rows()
    y = (scores > np.quantile(scores, 0.8)).astype(int)
    weight = np.where(y == 1, 40 / (2 * 8), 40 / (2 * 32))
    expected = LinearClassifier(**TIGHT).fit(X, y, sample_weight=weight)
    for class_weight in ("balanced", {1: 2.5, 0: 0.625}):
        model = LinearClassifier(class_weight=class_weight, **TIGHT).fit(X, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    counts = np.random.default_rng(2).integers(0, 3, size=len(y))
    weighted = LinearClassifier(class_weight="balanced", **TIGHT).fit(X, y, sample_weight=counts)
    repeated = LinearClassifier(class_weight="balanced", **TIGHT).fit(X.repeat(counts, 0), y.repeat(counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)


def test_C_is_lam_by_total_weight() -> None:
    X, scores = rows()
    weight = np.linspace(0.5, 2.0, len(X))
    by_c = LinearRegressor(C=5.0, tol=1e-10).fit(X, scores, sample_weight=weight)
    by_lam = LinearRegressor(lam=1.0 / (5.0 * weight.sum()), tol=1e-10).fit(X, scores, sample_weight=weight)
    np.testing.assert_allclose(by_c.coef_, by_lam.coef_, rtol=1e-12)


def test_intercept_free_penalized_or_absent() -> None:
    X, scores = rows()
    ones = np.column_stack([X, np.ones(len(X))])
    y = scores + 10.0
    penalized = LinearRegressor(penalize_intercept=True, **TIGHT).fit(X, y)
    by_hand = LinearRegressor(fit_intercept=False, **TIGHT).fit(ones, y)
    np.testing.assert_allclose([*penalized.coef_, penalized.intercept_], by_hand.coef_, rtol=1e-6)
    assert by_hand.intercept_ == 0.0
    strong = LinearRegressor(lam=1e3).fit(X, y)
    assert strong.intercept_ == pytest.approx(y.mean(), rel=1e-2)


def test_offset_shifts_the_score() -> None:
    X, scores = rows()
    shift = np.linspace(-3.0, 3.0, len(X))
    shifted = LinearRegressor(**TIGHT).fit(X, scores, offset=shift)
    expected = LinearRegressor(**TIGHT).fit(X, scores - shift)
    np.testing.assert_allclose(shifted.coef_, expected.coef_, rtol=1e-6)
    np.testing.assert_allclose(shifted.predict(X, offset=shift), expected.predict(X) + shift, rtol=1e-6)
    counts = LinearRegressor(loss="poisson", **TIGHT).fit(X, np.floor(np.abs(scores)))
    np.testing.assert_allclose(counts.predict(X, offset=np.full(len(X), np.log(2.0))), 2.0 * counts.predict(X))


def test_the_constant_is_the_middle_of_the_optimal_ones() -> None:
    risk = bmrm.LinearRisk([[2.0], [-2.0]], [1, -1], bmrm.losses.Hinge(), intercept=True)
    problem = bmrm.Problem(risk, "l2", lam=0.5)
    for constant in (-1.0, -0.3, 0.9, 1.0):
        w, objective = centered(problem, np.array([1.0, constant]), problem.objective(np.array([1.0, constant])))
        np.testing.assert_allclose(w, [1.0, 0.0], atol=1e-12)
        assert problem.objective(w) == 0.25
        assert 0.25 <= objective < 0.25 + 1e-14
    with pytest.warns(bmrm.ConstantModelWarning, match="no column of X varies"):
        median = LinearRegressor(loss="least_absolute").fit(np.zeros((4, 1)), [0.0, 1.0, 3.0, 9.0])
    assert median.intercept_ == pytest.approx(2.0, abs=1e-9)


def test_iris_one_against_the_rest() -> None:
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    model = LinearClassifier(lam=1e-4).fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.score(X, names) > 0.9
    assert model.objective_ == pytest.approx(sum(c.upper for c in model.certificate_))
    assert model.n_iter_ == max(len(history) for history in model.history_)
    setosa = LinearClassifier(lam=1e-4).fit(X, names == "setosa")
    assert model.certificate_[0].upper == pytest.approx(setosa.objective_)


def test_a_class_of_weight_zero_is_no_class() -> None:
    X, y = load_iris(return_X_y=True)
    model = LinearClassifier().fit(X, y, sample_weight=y > 0)
    assert model.classes_.tolist() == [1, 2]
    assert model.coef_.shape == (1, 4)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    model = LinearClassifier(loss="logistic", lam=1e-2, tol=1e-12).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    if classes == 2:
        other = LogisticRegression(C=1.0 / (1e-2 * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
        np.testing.assert_allclose(probabilities, other.predict_proba(X), atol=1e-5)
    far = LinearClassifier(loss="logistic").fit(X, y).predict_proba(-1e6 * X)
    assert np.isfinite(far).all()


def test_no_probabilities_without_the_logistic_loss() -> None:
    model = LinearClassifier()
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba([[0.0]])
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)


@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_quantile_regression_agrees(tau: float) -> None:
    X, y = rows()
    ours = LinearRegressor(loss="quantile", loss_params={"tau": tau}, regularizer="l1", **TIGHT).fit(X, y)
    other = QuantileRegressor(quantile=tau, alpha=1e-2).fit(X, y)
    risk = bmrm.LinearRisk(X, y, bmrm.losses.Quantile(tau), intercept=True)
    objective = bmrm.Problem(risk, "l1", 1e-2).objective(np.append(other.coef_, other.intercept_))
    assert ours.lower_bound_ - 1e-9 <= objective
    assert ours.objective_ == pytest.approx(objective, rel=1e-6)


def test_ridge_and_lasso_agree() -> None:
    X, y = rows()
    ridge = LinearRegressor(**TIGHT).fit(X, y)
    other = Ridge(alpha=1e-2 * len(y)).fit(X, y)
    np.testing.assert_allclose(ridge.coef_, other.coef_, rtol=1e-6)
    assert ridge.intercept_ == pytest.approx(other.intercept_, rel=1e-6)
    lasso = LinearRegressor(regularizer="l1", lam=0.5, tol=1e-6).fit(X, y)
    other = Lasso(alpha=0.5, tol=1e-12).fit(X, y)
    objective = 0.5 * np.mean((y - other.predict(X)) ** 2) + 0.5 * np.abs(other.coef_).sum()
    assert lasso.lower_bound_ <= objective + 1e-9
    assert lasso.objective_ == pytest.approx(objective, rel=1e-5)


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_share_of_novel_rows(nu: float) -> None:
    X = 3.0 + np.random.default_rng(0).normal(size=(500, 3))
    model = NoveltyDetector(features="linear", loss_params={"nu": nu}, tol=1e-8).fit(X)
    labels = model.predict(X)
    assert np.mean(labels == -1) == pytest.approx(nu, abs=0.01)
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_, atol=1e-6)
    np.testing.assert_array_equal(model.fit_predict(X), labels)


def test_a_given_threshold() -> None:
    X, _ = rows()
    model = NoveltyDetector(loss="novelty", loss_params={"rho": 2.0}).fit(X)
    assert model.offset_ == 2.0


def test_warm_start_saves_iterations() -> None:
    X, scores = rows(m=400, d=20)
    y = scores > np.median(scores)
    model = LinearClassifier(loss="logistic", warm_start=True, tol=1e-6).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    X3, y3 = load_iris(return_X_y=True)
    assert model.fit(X3, y3).coef_.shape == (3, 4)


def test_pickle_clone_search_and_pipeline() -> None:
    X, y = load_iris(return_X_y=True)
    model = LinearClassifier(loss=bmrm.losses.HuberHinge(h=0.3), regularizer=bmrm.regularizers.L1()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert not hasattr(clone(model), "coef_")
    search = GridSearchCV(LinearClassifier(), {"lam": [1e-3, 1e-1], "loss": ["hinge", "logistic"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    pipeline = make_pipeline(StandardScaler(), LinearClassifier()).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    assert len(pickle.dumps(model)) < 100_000  # the data is not kept


def test_data_frames_keep_their_names() -> None:
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = LinearClassifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_metadata_requests() -> None:
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearRegressor().set_fit_request(sample_weight=True, offset=True).set_predict_request(offset=True)
        assert model.get_metadata_routing().fit.requests == {"sample_weight": True, "offset": True}


GOOD = ([[0.0], [1.0], [2.0]], [0, 1, 1])
BAD: list[tuple[type, dict[str, Any], tuple[Any, Any], dict[str, Any], str]] = [
    (LinearClassifier, {"lam": 0.0}, GOOD, {}, "lam must be a finite number above 0, got 0.0"),
    (LinearClassifier, {"lam": "a"}, GOOD, {}, "lam must be a number above 0, got 'a'"),
    (LinearClassifier, {"C": -1.0}, GOOD, {}, "C must be a finite number above 0, got -1.0"),
    (LinearClassifier, {"C": 1.0, "lam": 0.5}, GOOD, {}, "C=1.0 and lam=0.5 were both given"),
    (LinearClassifier, {"loss": "hing"}, GOOD, {}, "unknown loss 'hing'. Did you mean 'hinge'"),
    (LinearClassifier, {"loss": 3}, GOOD, {}, "loss must be a name or a bmrm.losses.Loss, got 3"),
    (LinearClassifier, {"loss": bmrm.losses.Hinge(), "loss_params": {"h": 1}}, GOOD, {}, "loss_params={'h': 1}"),
    (LinearClassifier, {"class_weight": "even"}, GOOD, {}, "class_weight must be a dict, 'balanced' or None, got"),
    (LinearClassifier, {"solver": "lbfg"}, GOOD, {}, "unknown solver 'lbfg'. Did you mean 'lbfgs'"),
    (LinearClassifier, {"tol": -1.0}, GOOD, {}, "tol must be a number of at least 0, got -1.0"),
    (LinearClassifier, {"n_threads": 0}, GOOD, {}, "n_threads must be a whole number of at least 1, or -1"),
    (LinearClassifier, {"fit_intercept": False, "penalize_intercept": True}, GOOD, {}, "needs fit_intercept=True"),
    (LinearClassifier, {}, ([[0.0], [1.0]], ["a", "a"]), {}, "y has one class only, "),
    (LinearClassifier, {}, ([[0.0], [1.0]], [0.3, 0.7]), {}, "Unknown label type: continuous"),
    (LinearClassifier, {}, ([[0.0], [np.nan]], [0, 1]), {}, "row 1, column 0: NaN and infinity"),
    (LinearClassifier, {}, (np.empty((0, 2)), []), {}, "0 sample"),
    (LinearRegressor, {"loss": "hinge"}, GOOD, {}, "loss 'hinge' is for classification; LinearRegressor takes"),
    (LinearRegressor, {"loss": "quantile", "loss_params": {"q": 1}}, GOOD, {}, "has no parameter 'q'; accepted: tau"),
    (LinearRegressor, {"loss": "poisson"}, (GOOD[0], [1, 2, -3]), {}, "target of row 2 is -3"),
    (LinearRegressor, {}, (GOOD[0], [0, 1]), {}, "inconsistent numbers of samples"),
    (LinearRegressor, {}, GOOD, {"sample_weight": [1, -1, 1]}, "sample_weight of row 1 is -1"),
    (LinearRegressor, {}, GOOD, {"sample_weight": [1, 1]}, "sample_weight must have one number for each of the 3"),
    (LinearRegressor, {}, GOOD, {"sample_weight": [0, 0, 0]}, "sample_weight is zero for all rows"),
    (LinearRegressor, {}, GOOD, {"sample_weight": ["a", 0, 0]}, "sample_weight must hold numbers"),
    (LinearRegressor, {}, GOOD, {"offset": [0, np.inf, 0]}, "offset of row 1 is inf"),
    (NoveltyDetector, {"regularizer": "l1"}, GOOD, {}, "strongly convex"),
    (NoveltyDetector, {"loss": "hinge"}, GOOD, {}, "NoveltyDetector takes losses for novelty: "),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "parameters", "data", "extra", "message"), BAD, ids=[case[-1][:40] for case in BAD])
def test_bad_input_is_named(cls: type, parameters: dict, data: tuple, extra: dict, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        cls(**parameters).fit(*data, **extra)
