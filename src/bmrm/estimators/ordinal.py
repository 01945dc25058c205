"""Grades: an order by one score, then thresholds between the grades."""

from __future__ import annotations

import heapq
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from bmrm.estimators.base import LAM, checked_weight
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.joint import JointModel
from bmrm.estimators.multilabel import between
from bmrm.losses import Loss
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver


class OrdinalRegressor(RegressorMixin, JointModel):  # type: ignore[misc]
    """Prediction of grades: w orders the rows as their grades do, thresholds cut the order into grades.

    The direction minimizes lam Omega(w) + R(w), R the share of pairs of rows with different grades that are in the
    wrong order, with a margin (`ordinal`). Then the thresholds are chosen for which the sum of absolute errors of the
    grades is least on the rows of the fit: exactly, in O(m log m).

    Parameters
    ----------
    loss : str or Loss, default="ordinal"
    loss_params : dict, optional
    regularizer, lam, C, solver, tol, max_iter, max_seconds, n_threads, warm_start, random_state, verbose
        As for `LinearClassifier`. There is no intercept: the thresholds take its place.

    Attributes
    ----------
    grades_ : array of shape (g,)
        The grades of the rows of the fit, increasing.
    coef_ : array of shape (1, d)
    thresholds_ : array of shape (g - 1,)
        A row with a score above ``thresholds_[j]`` has a grade above ``grades_[j]``; not decreasing.
    certificate_ : Certificate
        What was proved about w: ``lower <= min J <= upper``; with ``objective_``, ``gap_``, ``converged_`` and the
        other attributes of `LinearClassifier`.

    See Also
    --------
    LinearRegressor

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.linspace(0.0, 1.0, 12)[:, None]
    >>> y = np.repeat([1, 2, 5], 4)
    >>> model = bmrm.OrdinalRegressor().fit(X, y)
    >>> model.predict(X).tolist() == y.tolist()
    True
    """

    _tasks: ClassVar[tuple[str, ...]] = ("ordinal",)

    def __init__(
        self,
        *,
        loss: str | Loss = "ordinal",
        loss_params: dict[str, Any] | None = None,
        regularizer: str | Regularizer = "l2",
        lam: float = LAM,
        C: float | None = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.loss_params = loss_params
        self.regularizer = regularizer
        self.lam = lam
        self.C = C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> OrdinalRegressor:
        """Find w and the thresholds, and prove how far from optimal w is at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        y : array-like of shape (m,)
            Grades: numbers, at least two different ones.
        sample_weight : array-like of shape (m,), optional

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        X, y = self._checked_data(X, y=y, y_numeric=True)
        weight = checked_weight(sample_weight, len(y))
        self._fit_jointly(X, y, y, loss, sample_weight)
        counts = np.ones(len(y)) if weight is None else weight
        self.grades_ = np.unique(y[counts > 0.0])
        self.thresholds_ = least_absolute_thresholds(self._scores(X, None)[:, 0], y, counts, self.grades_)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row; a larger one means a higher grade."""
        return self._scores(X, None)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the grade of each row."""
        return np.asarray(self.grades_[np.searchsorted(self.thresholds_, self.decision_function(X), side="left")])


def least_absolute_thresholds(
    scores: Array, y: npt.NDArray[Any], weight: Array, grades: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
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
