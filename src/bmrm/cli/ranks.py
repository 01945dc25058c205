"""Measures of an order within queries: NDCG@k and the mean reciprocal rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LARGEST_GRADE = 1000.0  # 2^grade is a number


def graded_queries(y: Array, groups: Array, weight: Array | None) -> tuple[list[Array], Array]:
    """Return the rows of each query that has different grades, one of them above 0, and what the query counts."""
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    queries = [rows for rows in np.split(order, ends) if y[rows].max() > max(0.0, y[rows].min())]
    counts = np.ones(len(queries)) if weight is None else np.array([weight[rows].max() for rows in queries])
    return queries, counts


def mean_ndcg(y: Array, scores: Array, queries: list[Array], weight: Array, k: int) -> float | None:
    """Return the mean NDCG@k with gains 2^grade - 1; equal scores share their gains, as in scikit-learn.

    None without queries that count, or where a grade is below 0 or above 1000.
    """
    from sklearn.metrics import ndcg_score

    if not weight.any() or y.min() < 0.0 or y.max() > _LARGEST_GRADE:
        return None
    found = [ndcg_score([np.exp2(y[rows]) - 1.0], [scores[rows]], k=k) for rows in queries]
    return float(np.average(found, weights=weight))


def mean_reciprocal_rank(y: Array, scores: Array, queries: list[Array], weight: Array) -> float | None:
    """Return the mean of 1 / rank of the first document with a grade above 0; the others come first in a tie."""
    if not weight.any():
        return None
    found = []
    for rows in queries:
        relevant, f = y[rows] > 0.0, scores[rows]
        found.append(1.0 / (1 + np.count_nonzero(f[~relevant] >= f[relevant].max())))
    return float(np.average(found, weights=weight))
