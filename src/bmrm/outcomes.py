"""From scores to what they mean: thresholds that suit the rows of a fit, and probabilities."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from bmrm.losses import HierarchicalSoftmax, Logistic, Loss, Softmax
from bmrm.losses.scores import number_of

Array = npt.NDArray[np.float64]


def between(below: float, above: float) -> float:
    """Return a threshold t with below <= t < above, in the middle if that can be told from above."""
    middle = below + 0.5 * (above - below)
    return middle if middle < above else below


def least_mistakes(scores: Array, wanted: npt.NDArray[np.bool_], weight: Array | None = None) -> float:
    """Return the threshold t for which `scores > t` differs from what is wanted in the fewest places.

    Parameters
    ----------
    scores : array of any shape
    wanted : array of bool of the same shape
    weight : array (m,), optional
        What a mistake in each row costs; rows of weight 0 do not count.
    """
    cost = np.ones(len(scores)) if weight is None else weight
    costs = np.repeat(cost, scores.size // len(scores))
    f, w = scores.reshape(-1)[costs > 0.0], wanted.reshape(-1)[costs > 0.0]
    costs = costs[costs > 0.0]
    order = np.argsort(f, kind="stable")
    f, w, costs = f[order], w[order], costs[order]
    mistakes = np.concatenate([[0.0], np.cumsum(np.where(w, costs, -costs))])  # with the first i scores not above t
    ends = np.concatenate([[True], f[1:] > f[:-1], [True]])  # equal scores stay together
    i = int(np.flatnonzero(ends)[np.argmin(mistakes[ends])])
    if i == 0:
        return float(f[0] - 1.0)
    return float(f[-1]) if i == f.size else between(float(f[i - 1]), float(f[i]))


def score_threshold(loss: Loss, scores: Array, positive: npt.NDArray[np.bool_], weight: Array | None = None) -> float:
    """Return the threshold t for which `scores > t` suits the score that the loss stands for.

    The largest F-beta; as many rows as precision and recall at k look at, and as many as are positive for
    `break_even`; else the largest sum of the shares of both classes that are right.

    Parameters
    ----------
    loss : Loss
        One of all rows together.
    scores : array (m,)
    positive : array (m,) of bool
    weight : array (m,), optional
        For `roc_area`; the others count rows.
    """
    counted = np.ones(scores.size) if weight is None else weight
    order = np.argsort(-scores, kind="stable")
    order = order[counted[order] > 0.0]
    f, p = scores[order], counted[order]
    hits, n = np.cumsum(p * positive[order]), np.cumsum(p)  # true positives and rows above the threshold
    m, total = n[-1], hits[-1]
    if loss.name == "fbeta":
        square = float(getattr(loss, "beta", 1.0)) ** 2
        quality = (1.0 + square) * hits / (square * total + n)
    elif loss.name in ("precision_at_k", "recall_at_k", "break_even"):
        wanted = total if loss.name == "break_even" else number_of(loss.k, f.size)  # type: ignore[attr-defined]
        quality = -np.abs(n - wanted)
    else:
        quality = hits / total - (n - hits) / (m - total)
    ends = np.append(f[1:] < f[:-1], True)  # equal scores stay together
    last = int(np.flatnonzero(ends)[np.argmax(quality[ends])])
    return float(f[-1] - 1.0) if last == f.size - 1 else between(float(f[last + 1]), float(f[last]))


def least_absolute_thresholds(scores: Array, y: npt.NDArray[Any], weight: Array, grades: npt.NDArray[Any]) -> Array:
    """Return the thresholds between grades for which the weighted sum of |predicted - y| is least.

    Rows in the order of their scores get grades that do not fall, equal scores equal ones. With D_i(g) the least cost
    of the first i rows, the last of which has at most grade g, D_i(g) = min over g' <= g of D_{i-1}(g') + |g' - y_i|
    is convex and falls to a flat end. It is kept by the places where its slope changes, on a heap: O(m log m) in all.
    """
    order = np.argsort(scores, kind="stable")
    order = order[weight[order] > 0.0]
    f = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], f[1:] > f[:-1]]))
    ends: list[float] = []
    heap: list[tuple[float, float]] = []  # (-place, change of slope there)
    for group in np.split(order, starts[1:]):
        for i in group:
            heapq.heappush(heap, (-float(y[i]), 2.0 * float(weight[i])))
        rising = float(weight[group].sum())
        while rising > 0.0:  # what rises is cut off: later grades may be larger
            place, change = heapq.heappop(heap)
            if change > rising:
                heapq.heappush(heap, (place, change - rising))
            rising -= change
        ends.append(-heap[0][0])
    fitted = np.minimum.accumulate(ends[::-1])[::-1]
    lower, upper = f[np.concatenate([starts[1:], [f.size]]) - 1], f[starts]
    thresholds = np.empty(len(grades) - 1)
    for j, grade in enumerate(grades[:-1]):
        i = int(np.searchsorted(fitted, grade, side="right"))  # the first group above this grade
        if i == 0:
            thresholds[j] = upper[0] - 1.0
        else:
            thresholds[j] = lower[-1] if i == len(fitted) else between(float(lower[i - 1]), float(upper[i]))
    return thresholds


def rows_of_classes(w: Array, n_classes: int, n_cols: int, free_constants: bool) -> tuple[Array, Array]:
    """Return the coefficients and constants of w, a matrix with a column for each class, flat, row by row.

    Two classes become one row, the difference of both. Of more, constants that are not penalized are moved to a mean of
    0: a number added to all of them changes nothing.

    Parameters
    ----------
    w : array (n_cols n_classes,), or with one more row, the constants
    n_classes, n_cols : int
    free_constants : bool
    """
    W = w.reshape(-1, n_classes).T
    if n_classes == 2:
        W = W[1:] - W[:1]
    constants = W[:, n_cols].copy() if W.shape[1] > n_cols else np.zeros(len(W))
    if free_constants and len(W) > 1:
        constants -= constants.mean()
    return W[:, :n_cols].copy(), constants


def probabilities_of(loss: Loss, scores: Array) -> Array | None:
    """Return the probability (m, k) of each class, or None if the loss yields none.

    1 / (1 + exp(-score)) for logistic, divided by the sum where there are more than two classes; exp(score), divided by
    the sum, for the losses of soft-max.

    Parameters
    ----------
    loss : Loss
    scores : array (m,) or (m, k)
        One for each row where there are two classes; one for each node of a hierarchy.
    """
    if isinstance(loss, HierarchicalSoftmax):
        return loss.probabilities(scores)
    if not isinstance(loss, Logistic | Softmax):
        return None
    if scores.ndim == 1 or scores.shape[1] == 1:
        margin = scores.reshape(-1)
        return np.column_stack([expit(-margin), expit(margin)])
    if isinstance(loss, Softmax):
        return loss.probabilities(scores)
    top = np.minimum(scores.max(axis=1, keepdims=True), 0.0)  # keeps the largest from vanishing
    odds = np.exp(np.minimum(scores, 0.0) - top) / (1.0 + np.exp(-np.abs(scores)))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
