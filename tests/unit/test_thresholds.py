"""Thresholds chosen on the rows of a fit, against all thresholds there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn import metrics

import bmrm
from bmrm.outcomes import least_absolute_thresholds, least_mistakes, score_threshold


def brute_force_grades(scores: np.ndarray, y: np.ndarray, weight: np.ndarray, grades: np.ndarray) -> float:
    """The least weighted sum of absolute errors over all thresholds."""
    cuts = [-np.inf, *np.unique(scores)]
    found = np.inf
    for thresholds in product(cuts, repeat=len(grades) - 1):
        if list(thresholds) == sorted(thresholds):
            predicted = grades[np.searchsorted(thresholds, scores, side="left")]
            found = min(found, float(weight @ np.abs(predicted - y)))
    return found


@pytest.mark.parametrize("seed", range(10))
def test_thresholds_of_grades_are_the_best_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grades = np.array([0.0, 1.0, 4.0])
    scores, y = np.round(rng.normal(size=9), 1), rng.choice(grades, size=9)
    weight = rng.integers(0, 3, size=9).astype(float) + (np.arange(9) < 2)
    thresholds = least_absolute_thresholds(scores, y, weight, grades)
    assert (np.diff(thresholds) >= 0.0).all()
    predicted = grades[np.searchsorted(thresholds, scores, side="left")]
    assert weight @ np.abs(predicted - y) == pytest.approx(brute_force_grades(scores, y, weight, grades))


@pytest.mark.parametrize("seed", range(10))
def test_thresholds_of_scores_are_the_best_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, positive = np.round(rng.normal(size=30), 1), rng.random(30) < 0.4
    positive[:2] = [True, False]
    weight = rng.integers(1, 4, size=30).astype(float)
    cuts = [-np.inf, *scores]
    t = score_threshold(bmrm.losses.FBeta(beta=2.0), scores, positive)
    best = max(metrics.fbeta_score(positive, scores > c, beta=2.0, zero_division=0.0) for c in cuts)
    assert metrics.fbeta_score(positive, scores > t, beta=2.0) == pytest.approx(best)
    t = score_threshold(bmrm.losses.RocArea(), scores, positive, weight)
    best = max(metrics.balanced_accuracy_score(positive, scores > c, sample_weight=weight) for c in cuts)
    assert metrics.balanced_accuracy_score(positive, scores > t, sample_weight=weight) == pytest.approx(best)
    t = score_threshold(bmrm.losses.PrecisionAtK(k=7), scores, positive)
    assert abs(np.sum(scores > t) - 7) == min(abs(np.sum(scores > c) - 7) for c in cuts)
    t = least_mistakes(scores, positive, weight)
    least = min(weight @ ((scores > c) != positive) for c in cuts)
    assert weight @ ((scores > t) != positive) == pytest.approx(least)
