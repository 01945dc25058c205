"""partial_fit: batches of rows, one after the other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from bmrm import LinearClassifier, LinearRegressor, NoveltyDetector
from bmrm.regularizers import L2


def two_classes(m=400, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X @ np.linspace(-1.0, 1.0, d) + 0.3 + 0.3 * rng.normal(size=m) > 0.0, "yes", "no")


def batches(X, y, size=100):
    return [(X[k : k + size], y[k : k + size]) for k in range(0, len(y), size)]


@pytest.mark.parametrize("solver", ["auto", "sgd", "folos"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_batches_come_near_the_fit_of_all_rows(loss, solver):
    X, y = two_classes()
    model = LinearClassifier(loss=loss, solver=solver, lam=1e-2)
    for _ in range(30):
        for batch in batches(X, y):
            model.partial_fit(*batch, classes=["no", "yes"])
    exact = LinearClassifier(loss=loss, lam=1e-2, tol=1e-8).fit(X, y)
    cosine = (model.coef_ @ exact.coef_.T).item() / np.linalg.norm(model.coef_) / np.linalg.norm(exact.coef_)
    assert cosine > 0.99
    assert model.intercept_ == pytest.approx(exact.intercept_, abs=0.1)
    assert model.score(X, y) > exact.score(X, y) - 0.02
    assert model.n_iter_ == 120


def test_a_penalized_intercept_suits_pegasos():
    X, y = two_classes()
    model = LinearClassifier(solver="pegasos", lam=1e-2, penalize_intercept=True)
    for _ in range(5):
        model.partial_fit(X, y, classes=["no", "yes"])
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="not penalized"):
        LinearClassifier(solver="pegasos").partial_fit(X, y, classes=["no", "yes"])


def test_the_first_call_needs_the_classes_and_later_ones_may_not_change_them():
    X, y = two_classes()
    with pytest.raises(ValueError, match="classes"):
        LinearClassifier().partial_fit(X, y)
    model = LinearClassifier().partial_fit(X, y, classes=["no", "yes"])
    model.partial_fit(X[y == "no"], y[y == "no"])  # a batch of one class
    with pytest.raises(ValueError, match="maybe"):
        model.partial_fit(X, np.where(y == "no", "maybe", y))
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, y, classes=["no", "yes", "maybe"])
    with pytest.raises(ValueError, match="one class only"):
        LinearClassifier().partial_fit(X[y == "no"], y[y == "no"], classes=["no"])


def test_balanced_weights_are_refused_and_given_ones_count():
    X, y = two_classes()
    with pytest.raises(ValueError, match="balanced"):
        LinearClassifier(class_weight="balanced").partial_fit(X, y, classes=["no", "yes"])
    heavy = LinearClassifier(class_weight={"yes": 50.0}, lam=1e-2).partial_fit(X, y, classes=["no", "yes"])
    plain = LinearClassifier(lam=1e-2).partial_fit(X, y, classes=["no", "yes"])
    assert np.mean(heavy.predict(X) == "yes") > np.mean(plain.predict(X) == "yes")


def test_more_than_two_classes():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    model = LinearClassifier(loss="logistic", lam=1e-3)
    for _ in range(20):
        order = rng.permutation(len(y))
        model.partial_fit(X[order], y[order], classes=[0, 1, 2])
    assert model.coef_.shape == (3, 4)
    assert model.score(X, y) > 0.85
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_regression_with_offset_weights_and_sparse_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)) * (rng.random((300, 4)) < 0.7)
    offset = rng.normal(size=300)
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.7 + offset
    model = LinearRegressor(lam=1e-4)
    for _ in range(40):
        model.partial_fit(sparse.csr_array(X), y, sample_weight=rng.uniform(0.5, 1.5, size=300), offset=offset)
    np.testing.assert_allclose(model.coef_, [1.0, -2.0, 0.5, 0.0], atol=0.02)
    assert model.intercept_ == pytest.approx(0.7, abs=0.02)


def test_l1_goes_by_folos_and_bounds_are_refused():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    model = LinearRegressor(regularizer="l1", lam=0.1)
    for _ in range(20):
        model.partial_fit(X, y)
    assert abs(model.coef_[0]) > 0.7
    assert np.abs(model.coef_[1:]).max() < 0.05
    with pytest.raises(ValueError, match="bounds on w"):
        LinearRegressor(regularizer=L2(bounds=(0.0, 1.0))).partial_fit(X, y)


def test_it_goes_on_from_a_fit_and_removes_its_certificate():
    X, y = two_classes()
    model = LinearClassifier(lam=1e-2).fit(X, y)
    before = model.coef_.copy()
    model.partial_fit(X, y)
    assert not hasattr(model, "certificate_")
    assert not hasattr(model, "status_")
    assert 0.0 < np.linalg.norm(model.coef_ - before) < 0.5 * np.linalg.norm(before)
    assert model.fit(X, y).converged_
    assert model.certificate_.gap >= 0.0


def test_same_seed_same_model_also_after_pickling_in_between():
    X, y = two_classes()
    parts = batches(X, y)
    one, other, third = (LinearClassifier(random_state=seed) for seed in (3, 3, 4))
    for batch in parts:
        one.partial_fit(*batch, classes=["no", "yes"])
        other = pickle.loads(pickle.dumps(other)).partial_fit(*batch, classes=["no", "yes"])
        third.partial_fit(*batch, classes=["no", "yes"])
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert not np.array_equal(one.coef_, third.coef_)


def test_another_number_of_features_is_refused():
    X, y = two_classes()
    model = LinearClassifier().partial_fit(X, y, classes=["no", "yes"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)


def test_the_novelty_detector_has_none():
    assert not hasattr(NoveltyDetector(), "partial_fit")
