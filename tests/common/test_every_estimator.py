"""scikit-learn's own checks, for every estimator and several configurations of each.

None is expected to fail but those of weights for scores that count rows, which take none. Some draw labels at random,
or weigh one class a thousand times: the constant is then all there is to learn, and the fit says so.
"""

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
        {"loss": "softmax", **TIGHT},
        {"loss": "multiclass_hinge", "penalize_intercept": True, **TIGHT},
    ],
    "LinearRegressor": [
        {},
        {"loss": "least_squares", **TIGHT},
        {"loss": "quantile", **TIGHT},
        {"loss": "poisson", "lam": 1e-2, "tol": 1e-8},
        {"loss": "quantile", "regularizer": "l1", **TIGHT},
        {"loss": "least_squares", "regularizer": "l1", "lam": 1e-2, "tol": 1e-8},
    ],
    "ScoreClassifier": [{"score": "roc_area", **TIGHT}, {"score": "f1"}],
    "OrdinalRegressor": [{}, TIGHT],
    "HierarchicalClassifier": [
        {"loss": "hierarchical_softmax", **TIGHT},
        {"loss": "hierarchical_hinge", "penalize_intercept": True, **TIGHT},
    ],
    "NoveltyDetector": [
        {"tol": 1e-6},
        {"solver": "bmrm", "lam": 1.0, "tol": 1e-10},
        {"features": "linear", "solver": "bmrm", "lam": 1.0, "tol": 1e-10},
        {"loss": "novelty", **TIGHT},
        {"features": "linear", "loss": "novelty", **TIGHT},
    ],
}

WITH_WEIGHTS = (
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
# scikit-learn has no checks for these: targets that are label sets, rows of queries, inputs that are no rows.
NOT_PLAIN = ("MultilabelClassifier", "Ranker", "SequenceLabeler", "StructuredPredictor")


def instances() -> list[BaseEstimator]:
    """Every estimator that the package offers; one without configurations here is checked with its defaults."""
    return [
        getattr(estimators, name)(**configuration)
        for name in estimators.__all__
        if name not in NOT_PLAIN
        for configuration in CONFIGURATIONS.get(name, [{}])
    ]


def without_weights(estimator: BaseEstimator) -> dict[str, str]:
    """The checks that give weights to an estimator which refuses them."""
    if not isinstance(estimator, bmrm.ScoreClassifier) or estimator.get_params()["score"] == "roc_area":
        return {}
    return dict.fromkeys(WITH_WEIGHTS, "the score counts rows and takes no weights")


@pytest.mark.filterwarnings("ignore::bmrm.ConstantModelWarning")
@parametrize_with_checks(instances(), expected_failed_checks=without_weights)
def test_sklearn_check(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", estimators.__all__)
def test_is_offered_at_the_top(name: str) -> None:
    assert getattr(bmrm, name) is getattr(estimators, name)
