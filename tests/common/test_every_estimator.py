"""scikit-learn's own checks, for every estimator and several configurations of each; none is expected to fail."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import bmrm
from bmrm import estimators

# Weighted and repeated rows are compared to seven digits: that takes a tight gap and a curved objective.
TIGHT = {"lam": 1e-2, "tol": 1e-10}

CONFIGURATIONS: dict[str, list[dict[str, Any]]] = {
    "LinearClassifier": [
        {},
        {"loss": "hinge", **TIGHT},
        {"loss": "logistic", **TIGHT},
        {"loss": "squared_hinge", "penalize_intercept": True, **TIGHT},
        {"loss": "hinge", "regularizer": "l1", **TIGHT},
        {"loss": "logistic", "regularizer": "l1", **TIGHT},
    ],
    "LinearRegressor": [
        {},
        {"loss": "least_squares", **TIGHT},
        {"loss": "quantile", **TIGHT},
        {"loss": "poisson", "lam": 1e-2, "tol": 1e-8},
        {"loss": "quantile", "regularizer": "l1", **TIGHT},
        {"loss": "least_squares", "regularizer": "l1", "lam": 1e-2, "tol": 1e-8},
    ],
    "NoveltyDetector": [
        {"tol": 1e-6},
        {"solver": "bmrm", "lam": 1.0, "tol": 1e-10},
        {"loss": "novelty", **TIGHT},
    ],
}


def instances() -> list[BaseEstimator]:
    """Every estimator that the package offers; one without configurations here is checked with its defaults."""
    return [
        getattr(estimators, name)(**configuration)
        for name in estimators.__all__
        for configuration in CONFIGURATIONS.get(name, [{}])
    ]


@parametrize_with_checks(instances())
def test_sklearn_check(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", estimators.__all__)
def test_is_offered_at_the_top(name: str) -> None:
    assert getattr(bmrm, name) is getattr(estimators, name)
