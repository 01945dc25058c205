"""Regression by a linear score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.partial import PartialModel
from bmrm.estimators.skill import skill
from bmrm.estimators.stored import takes_store
from bmrm.losses import Loss, Poisson
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver


class LinearRegressor(RegressorMixin, PartialModel):  # type: ignore[misc]
    """Linear regression: min over w, b of lam Omega(w) + sum_i p_i l(<x_i, w> + b, y_i).

    p are the sample weights divided by their sum. Weights mean repetition: 2 is the same as the row twice, 0 the
    same as no row.

    Parameters
    ----------
    loss : str or Loss, default="least_squares"
        A name of ``bmrm.losses.LOSSES`` or an object, for regression: least_squares with l2 is ridge regression,
        with l1 the lasso; quantile is quantile regression; poisson is for counts.
    loss_params : dict, optional
        Parameters of a loss given by its name, for example ``{"tau": 0.9}``.
    regularizer : str or Regularizer, default="l2"
        A name of ``bmrm.regularizers.REGULARIZERS`` or an object, which may carry weights and bounds for the
        coordinates.
    regularizer_params : dict, optional
        Parameters of a regularizer given by its name, for example ``{"r": 0.5}`` for elastic_net. Those of an object
        are named ``regularizer__r`` in `set_params` and in searches, as ``loss__tau`` is for a loss.
    lam : float, default=1e-4
        How much the regularizer counts against the mean loss.
    C : float, optional
        Another way to give lam, as support vector machines do: lam = 1 / (C total sample weight). Give one of
        the two.
    fit_intercept : bool, default=True
        Whether to learn a constant b. It is not penalized; where an interval of constants is optimal, b is its
        middle.
    penalize_intercept : bool, default=False
        Whether the constant counts in the regularizer like any other coefficient.
    solver : str or Solver, default="auto"
        A name of ``bmrm.solvers.SOLVERS`` or an object.
    tol : float, default=1e-3
        Relative gap at which the fit is finished: the objective is then proved to be at most 0.1% above the
        smallest possible one. The mean loss of m rows says the loss on new data no better than to about
        1 / sqrt(m) of it, so up to a million rows a smaller gap is lost in the noise of the sample; ask for
        1e-6 and less to compare coefficients.
    max_iter : int, optional
        The most iterations; no limit by default, because the gap ends the fit.
    max_seconds : float, optional
        The longest time for the fit; no limit by default.
    n_threads : int, optional
        All cores by default, or for -1 (all but one for -2). The result is the same for any number.
    warm_start : bool, default=False
        Whether to begin where the last fit ended.
    random_state : int, RandomState or None
        For solvers that draw random numbers.
    verbose : bool, default=False
        Whether to show objective, bound and gap while fitting.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``.
    objective_, lower_bound_, gap_, relative_gap_ : float
        The certificate's numbers.
    converged_ : bool
        Whether the gap is closed.
    status_ : Status
        Why the fit ended; ``status_.advice`` is a sentence.
    history_ : tuple of Record
        One record for each iteration.
    n_iter_ : int
        Number of iterations.
    loss_ : Loss
        The loss.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.

    See Also
    --------
    LinearClassifier, NoveltyDetector

    Notes
    -----
    Ctrl-C ends the fit: the attributes are set from the best point so far, then KeyboardInterrupt is raised.

    Examples
    --------
    Nine tenths of the targets shall lie below the prediction:

    >>> import numpy as np, bmrm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X @ [1.0, 2.0] + rng.normal(size=500)
    >>> model = bmrm.LinearRegressor(loss="quantile", loss_params={"tau": 0.9}).fit(X, y)
    >>> model.converged_, round(float(np.mean(y < model.predict(X))), 2)
    (True, 0.9)
    """

    _tasks: ClassVar[tuple[str, ...]] = ("regression", "multivariate")

    def __init__(
        self,
        *,
        loss: str | Loss = "least_squares",
        loss_params: dict[str, Any] | None = None,
        regularizer: str | Regularizer = "l2",
        regularizer_params: dict[str, Any] | None = None,
        lam: float = LAM,
        C: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
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
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.loss, Poisson) or self.loss == Poisson.name
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    @takes_store
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> LinearRegressor:
        """Find w and b, and prove how far from optimal they are at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
            float32 and float64, C-ordered or of compressed rows, are used in place.
        y : array-like of shape (m,), or (m, k) for `multivariate_regression`
            Numbers.
        sample_weight : array-like of shape (m,), optional
            Numbers of at least 0.
        offset : array-like of shape (m,), optional
            A known shift of each score, for example the log of an exposure.

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        several = loss.task == "multivariate"
        X, y = self._checked_data(X, y=y, y_numeric=True, multi_output=several)
        weight = checked_weight(sample_weight, len(y))
        sample = self._sample(X, y, loss, sample_weight, offset, weight)
        self._outputs = y.shape[1] if several and y.ndim == 2 else 1
        self._minimize(replace(sample, outputs=self._outputs), lambda _: y)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> LinearRegressor:
        """Go once through a batch of rows with a stochastic solver, from where the last call (or fit) ended.

        The solver is the estimator's, if it is a stochastic one; else `sgd`, and `folos` for l1. Steps become shorter
        from call to call, and ``coef_`` is the average of the points so far, unless the solver says otherwise. There
        is no certificate: the attributes of one are removed, for it would speak of the last batch only.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        y : array-like of shape (m,)
        sample_weight : array-like of shape (m,), optional
            Numbers of at least 0, relative to the batch: its weights are divided by their sum.
        offset : array-like of shape (m,), optional
            A known shift of each score.

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        X, y = self._checked_data(X, y=y, y_numeric=True, reset=not hasattr(self, "coef_"))
        weight = checked_weight(sample_weight, len(y))
        sample = self._sample(X, y, loss, sample_weight, offset, weight)
        self._outputs = 1
        self._carry_on(sample, lambda _: y)
        return self

    def predict(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the prediction for each row: the score, or what the loss makes of it (poisson: its exponential).

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        scores = self._all_scores(X, offset)
        return np.asarray(self.loss_.decide(scores))

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> float:
        """Return 1 - (loss of the prediction) / (loss of the best constant): 1 is perfect, a constant has 0 at most.

        ==================================================  ====================================================
        Loss                                                Score
        ==================================================  ====================================================
        least_squares, squared_epsilon_insensitive          R2
        least_absolute, epsilon_insensitive,                D2 of the absolute error
        nu_epsilon_insensitive
        quantile                                            D2 of the pinball error for its tau
        poisson                                             D2 of the Poisson deviance
        huber, piecewise_quadratic, a loss of one's own     the same ratio for this loss
        multivariate_regression                             mean R2 of the columns
        a loss without a lower bound (``floor = -inf``)     R2: it has no such ratio
        ==================================================  ====================================================

        The tolerance eps (or nu) belongs to the fit: here errors below it count, or a wide tube would make all
        predictions perfect. With an offset, too, the comparison is with a constant prediction.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        y : array-like of shape (m,), or (m, k) for `multivariate_regression`
            Numbers.
        sample_weight : array-like of shape (m,), optional
            Numbers of at least 0.
        offset : array-like of shape (m,), optional
            A known shift of each score.

        Notes
        -----
        In `cross_val_score` and searches, enable metadata routing and call
        ``set_score_request(sample_weight=True, offset=True)`` (and `set_fit_request` likewise).

        Examples
        --------
        >>> import numpy as np, bmrm
        >>> rng = np.random.default_rng(0)
        >>> X, exposure = rng.normal(size=(500, 2)), rng.uniform(1.0, 9.0, size=500)
        >>> y = rng.poisson(exposure * np.exp(X @ [0.5, -0.5]))
        >>> model = bmrm.LinearRegressor(loss="poisson").fit(X, y, offset=np.log(exposure))
        >>> round(model.score(X, y, offset=np.log(exposure)), 2)
        0.83
        """
        scores = self._all_scores(X, offset)
        return skill(self.loss_, y, scores, checked_weight(sample_weight, len(scores)))

    def _all_scores(self, X: Any, offset: npt.ArrayLike | None) -> Array:
        scores = self._scores(X, offset)
        return scores if np.ndim(self.coef_) == 2 else scores[:, 0]

    def _coefficients(self, points: Array) -> dict[str, Any]:
        w, d = points[0], self.n_features_in_
        if self._outputs > 1:
            W = w.reshape(-1, self._outputs)
            return {"coef_": W[:d].T.copy(), "intercept_": W[d].copy() if self.fit_intercept else np.zeros(W.shape[1])}
        return {"coef_": w[:d].copy(), "intercept_": float(w[d]) if self.fit_intercept else 0.0}

    def _linear_parts(self) -> tuple[Array, Array]:
        return np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
