"""Grades: an order by one score, then thresholds between the grades."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.joint import JointModel
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.stored import takes_store
from bmrm.losses import Loss
from bmrm.outcomes import least_absolute_thresholds
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
    regularizer, regularizer_params
        As for `LinearClassifier`.
    lam, C, solver, tol, max_iter, max_seconds, n_threads, warm_start, random_state, verbose
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
        regularizer_params: dict[str, Any] | None = None,
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
        self.regularizer_params = regularizer_params
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
    @takes_store
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> OrdinalRegressor:
        """Find w and the thresholds, and prove how far from optimal w is at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
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
        counts = np.ones(len(y)) if weight is None else weight
        self.grades_ = np.unique(y[counts > 0.0])
        if len(self.grades_) < 2:
            raise ValueError(f"y has one grade only, {self.grades_[0]!r} (n_samples={len(y)}); an order needs two")
        self._fit_jointly(X, y, y, loss, sample_weight)
        self.thresholds_ = least_absolute_thresholds(self._scores(X, None)[:, 0], y, counts, self.grades_)
        return self

    def scores(self, X: Any) -> Array:
        """Return the score of each row; a larger one means a higher grade."""
        return self._scores(X, None)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the grade of each row."""
        scores = self.scores(X)
        return np.asarray(self.grades_[np.searchsorted(self.thresholds_, scores, side="left")])
