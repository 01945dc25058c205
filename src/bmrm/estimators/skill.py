"""The score of a regression: how much of the best constant's loss a prediction saves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import metrics
from sklearn.utils import check_consistent_length, column_or_1d

from bmrm.losses import (
    EpsilonInsensitive,
    LeastAbsolute,
    LeastSquares,
    Loss,
    NuEpsilonInsensitive,
    Quantile,
    SquaredEpsilonInsensitive,
)

Array = npt.NDArray[Any]

_BY_SQUARES = (LeastSquares, SquaredEpsilonInsensitive)
_BY_ABSOLUTE = (LeastAbsolute, EpsilonInsensitive, NuEpsilonInsensitive)
_DOUBLINGS = 1024  # from 1 to the largest double
_HALVINGS = 120  # from 1 to 1e-36; about 53 reach neighboring doubles where the best constant is not near 0


def skill(loss: Loss, y: npt.ArrayLike, scores: Array, weight: Array | None) -> float:
    """Return 1 - (loss of the prediction) / (loss of the best constant): 1 is perfect, 0 as good as a constant.

    The loss is the model's own: least_squares gives R2, least_absolute and quantile scikit-learn's D2 of the absolute
    and of the pinball error, poisson the D2 of the deviance. Where eps or nu makes errors free while fitting, they
    count here: epsilon_insensitive and nu_epsilon_insensitive give the D2 of the absolute error,
    squared_epsilon_insensitive R2. Losses of several numbers give the mean R2. Losses without a lower bound
    (``floor = -inf``) have no such ratio and give R2; other bounds than 0 are subtracted first.

    If the best constant makes no error, the score is 1 for a prediction without one, else 0.
    """
    check_consistent_length(y, scores)
    predicted = loss.decide(scores)
    if loss.task == "multivariate" or isinstance(loss, _BY_SQUARES) or not np.isfinite(loss.floor):
        return float(metrics.r2_score(y, predicted, sample_weight=weight))
    y = column_or_1d(y)
    if isinstance(loss, _BY_ABSOLUTE):
        return float(metrics.d2_absolute_error_score(y, predicted, sample_weight=weight))
    if isinstance(loss, Quantile):
        return float(metrics.d2_pinball_score(y, predicted, sample_weight=weight, alpha=loss.tau))
    p = np.full(scores.size, 1.0 / scores.size) if weight is None else weight / np.sum(weight)
    targets = loss.encode(y)
    ours = loss.evaluate(np.ascontiguousarray(scores), targets, p)[0] - loss.floor
    constant = least_by_constant(loss, targets, p) - loss.floor
    if not constant > 0.0:
        return 0.0 if ours > 0.0 else 1.0
    return float(1.0 - ours / constant)


def least_by_constant(loss: Loss, targets: Any, weight: Array) -> float:
    """Return the smallest loss of a constant score, by bisection of its slope; the limit where it is at infinity."""

    def at(c: float) -> tuple[float, float]:
        value, slopes = loss.evaluate(np.full(weight.size, c), targets, weight)
        return float(value), float(np.sum(slopes))

    best, slope = at(0.0)
    if slope == 0.0:
        return best
    down = -np.sign(slope)
    near, far = 0.0, 1.0
    for _ in range(_DOUBLINGS):
        value, slope = at(down * far)
        best = np.fmin(best, value)
        if not slope * down < 0.0:
            break
        near, far = far, 2.0 * far
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        if middle in (near, far):
            break
        value, slope = at(down * middle)
        best = np.fmin(best, value)
        near, far = (middle, far) if slope * down < 0.0 else (near, middle)
    return float(best)
