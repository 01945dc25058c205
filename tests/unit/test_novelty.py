"""Novelty detection by kernels: neither origin nor units matter; weights, thresholds, bad parameters."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm import NoveltyDetector
from bmrm.estimators.kernel_map import KernelMap


def two_groups(m: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two groups, and novel ones between them, near the mean of all."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(m, 4)) + np.where(rng.random(m) < 0.5, 6.0, -6.0)[:, None]
    return np.concatenate([normal, rng.normal(size=(m // 20, 4))]), np.repeat([0, 1], [m, m // 20])


def area(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(roc_auc_score(y, -model.fit(X).score_samples(X)))


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_kernels_find_what_the_distance_from_the_mean_does_not(shift: float) -> None:
    X, y = two_groups()
    X = X + shift
    assert roc_auc_score(y, np.linalg.norm(X - X.mean(axis=0), axis=1)) < 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bmrm.ConstantModelWarning)
        assert area(NoveltyDetector(features="linear"), X, y) < 0.7
    assert area(NoveltyDetector(), X, y) > 0.95
    assert area(NoveltyDetector(), StandardScaler().fit_transform(X), y) > 0.95


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 1e6), ([1e-8, 1e8, 1.0, 3.0], 0.0)])
def test_neither_the_origin_nor_the_units_matter(factor: Any, shift: float) -> None:
    X, _ = two_groups()
    moved = X * factor + shift
    here = NoveltyDetector(tol=1e-8).fit(X)
    there = NoveltyDetector(tol=1e-8).fit(moved)
    np.testing.assert_allclose(there.score_samples(moved), here.score_samples(X), rtol=1e-4)


def test_kernels_of_landmarks_are_exact_among_them() -> None:
    X, _ = two_groups(80)
    map_ = KernelMap.learn(X, None, len(X), seed=0)
    phi = map_.transform(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    squares = np.sum((Z[:, None] - Z[None]) ** 2, axis=2) / (2.0 * 4)
    np.testing.assert_allclose(phi @ phi.T, 1.0 / np.sqrt(1.0 + 30.0 * squares), atol=1e-8)
    constant = np.column_stack([X, np.full(len(X), 7.0)])
    np.testing.assert_allclose(KernelMap.learn(constant, None, len(X), seed=0).transform(constant) @ phi.T, phi @ phi.T)


def test_weights_mean_repetition_and_zero_means_absence() -> None:
    X, _ = two_groups(100)
    weight = np.random.default_rng(1).integers(0, 4, size=len(X))
    weighted = NoveltyDetector(tol=1e-9, contamination=0.2).fit(X, sample_weight=weight)
    repeated = NoveltyDetector(tol=1e-9, contamination=0.2).fit(X.repeat(weight, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-4, atol=1e-6)
    assert weight[weighted.predict(X) == -1].sum() <= 0.2 * weight.sum()


@pytest.mark.parametrize("features", ["kernel", "linear"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_the_threshold_is_moved_to_a_share_of_the_rows(features: str, share: float) -> None:
    X = two_groups()[0] + 20.0
    model = NoveltyDetector(features=features, contamination=share).fit(X)
    assert np.sum(model.predict(X) == -1) == int(share * len(X))
    np.testing.assert_allclose(model.decision_function(X), model.score_samples(X) - model.offset_, atol=1e-6)


def test_thresholds_by_default() -> None:
    X = two_groups()[0] + 20.0
    assert np.mean(NoveltyDetector().fit_predict(X) == -1) == pytest.approx(0.1, abs=0.002)
    assert np.mean(NoveltyDetector(features="linear").fit_predict(X) == -1) == pytest.approx(0.1, abs=0.01)
    given = NoveltyDetector(loss_params={"nu": 0.3}, tol=1e-8).fit(X)
    assert given.loss_.nu == 0.3
    assert np.mean(given.predict(X) == -1) <= 0.3
    assert NoveltyDetector().fit(X).loss_.nu == 0.9
    assert NoveltyDetector(loss="novelty").fit(X).offset_ == 1.0


def test_sparse_rows_and_stores_stay_linear_unless_asked() -> None:
    X = np.abs(two_groups(200)[0])
    assert NoveltyDetector().fit(sparse.csr_array(X)).feature_map_ is None
    dense = NoveltyDetector(features="kernel", tol=1e-8).fit(X)
    there = NoveltyDetector(features="kernel", tol=1e-8).fit(sparse.csr_array(X))
    np.testing.assert_allclose(there.score_samples(sparse.csr_array(X)), dense.score_samples(X), rtol=1e-5)
    shards = bmrm.Shards.from_arrays([(X + 1.0,)])
    assert NoveltyDetector().fit(shards).feature_map_ is None
    with pytest.raises(ValueError, match="features='kernel' needs rows in memory, got Shards: take features='linear'"):
        NoveltyDetector(features="kernel").fit(shards)


def test_pickle_clone_and_seeds() -> None:
    X, _ = two_groups()
    model = NoveltyDetector(n_landmarks=50, contamination=0.2, random_state=3).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    same = clone(model).fit(X)
    np.testing.assert_array_equal(same.decision_function(X), model.decision_function(X))
    other = clone(model).set_params(random_state=4).fit(X)
    assert not np.array_equal(other.decision_function(X), model.decision_function(X))
    assert model.coef_.shape == (model.feature_map_.mixing.shape[1],)
    assert len(model.feature_map_.landmarks) == 50


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"features": "rbf"}, "features must be 'auto', 'kernel' or 'linear', got 'rbf'"),
        ({"n_landmarks": 0}, "n_landmarks must be a whole number of at least 1, got 0"),
        ({"n_landmarks": 2.5}, "n_landmarks must be"),
        ({"contamination": 1.0}, "contamination must be a share of the rows, at least 0 and below 1, got 1.0"),
        ({"contamination": "auto"}, "contamination must be"),
        ({"contamination": -0.1}, "contamination must be"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NoveltyDetector(**parameters).fit(two_groups(40)[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite(bad: float) -> None:
    X, _ = two_groups(40)
    model = NoveltyDetector().fit(X)
    X[3, 1] = bad
    with pytest.raises(ValueError, match="NaN"):
        NoveltyDetector().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(X)
