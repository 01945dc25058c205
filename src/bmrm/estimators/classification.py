"""Classification by linear scores: two classes by one score, more by one-vs-rest or by one joint problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call

from bmrm.estimators.base import Sample
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.labels import (
    against_the_rest,
    classes_of,
    codes_of,
    cost_matrix,
    two_classes,
    with_class_weight,
)
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.partial import PartialModel
from bmrm.estimators.stored import takes_store
from bmrm.losses import LOSSES, Logistic, Loss, MulticlassHinge, ScaledMulticlassHinge, Softmax
from bmrm.losses.multiclass import of_all_classes
from bmrm.losses.vector import ClassLoss
from bmrm.outcomes import probabilities_of, rows_of_classes
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver


def _gives_probabilities(estimator: LinearClassifier) -> bool:
    loss = getattr(estimator, "loss_", estimator.loss)
    kind = LOSSES.get(loss) if isinstance(loss, str) else type(loss)
    if kind is not None and issubclass(kind, (Logistic, Softmax)):
        return True
    raise AttributeError(
        f"predict_proba needs loss='logistic' or 'softmax', got {estimator.loss!r}; for other losses wrap the "
        "estimator in sklearn.calibration.CalibratedClassifierCV"
    )


def _learns_by_parts(estimator: LinearClassifier) -> bool:
    loss = LOSSES.get(estimator.loss) if isinstance(estimator.loss, str) else type(estimator.loss)
    if loss is None or not issubclass(loss, ClassLoss):
        return True
    raise AttributeError(f"partial_fit is for losses of one score, got loss={estimator.loss!r}")


class LinearClassifier(ClassifierMixin, PartialModel):  # type: ignore[misc]
    """Linear classification: min over w, b of lam Omega(w) + sum_i p_i l(y_i (<x_i, w> + b)).

    p are the sample weights divided by their sum, y is -1 for the first class and 1 for the second. More than two
    classes are fitted one against the rest, or jointly by a loss of all scores (``loss="multiclass_hinge"`` or
    ``"softmax"``, or ``multiclass="joint"``); the class of the largest score is predicted.
    Weights mean repetition: 2 is the same as the row twice, 0 the same as no row.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        A name of ``bmrm.losses.LOSSES`` or an object, for classification: hinge is the support vector machine,
        logistic is logistic regression.
    loss_params : dict, optional
        Parameters of a loss given by its name, for example ``{"h": 0.5}``.
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
        The most iterations for each problem; no limit by default, because the gap ends the fit.
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
    class_weight : dict or "balanced", optional
        Factors for the weights of the rows of each class; "balanced" gives all classes the same total weight.
    multiclass : {"auto", "joint", "one_vs_rest"}, default="auto"
        What is done with more than two classes where the loss is one of a single score: "joint" takes the loss of all
        scores in its place, `multiclass_hinge` for hinge and `softmax` for logistic; "auto" fits one problem for each
        class against the rest.
    costs : matrix (k, k) or dict, optional
        What it costs to predict one class where another is true, for `multiclass_hinge` and
        `scaled_multiclass_hinge`: ``costs[true][predicted]`` in the order of the sorted labels, or a dict of dicts by
        labels (1 where nothing is said). 1 for every wrong class by default.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels found on rows with a weight above 0.
    coef_ : array of shape (1, d) or (k, d)
    intercept_ : array of shape (1,) or (k,)
    certificate_ : Certificate, or list of Certificate in the order of the classes
        What was proved: ``lower <= min J <= upper``.
    objective_, lower_bound_, gap_, relative_gap_ : float
        The certificate's numbers, summed over one-vs-rest problems.
    converged_ : bool
        Whether the gap is closed of every problem.
    status_ : Status
        Why the fit ended; the worst of one-vs-rest problems; ``status_.advice`` is a sentence.
    history_ : tuple of Record, or list of such tuples
        One record for each iteration.
    n_iter_ : int
        Number of iterations, the largest of one-vs-rest problems.
    loss_ : Loss
        The loss.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.

    See Also
    --------
    LinearRegressor, NoveltyDetector

    Notes
    -----
    Ctrl-C ends the fit: the attributes are set from the best point so far, then KeyboardInterrupt is raised. Of
    one-vs-rest problems, those not yet begun have the coefficients they would have started from.

    Examples
    --------
    >>> import bmrm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = bmrm.LinearClassifier(loss="logistic", lam=1e-3).fit(X, y)
    >>> model.converged_, bool(model.relative_gap_ <= 1e-3), model.coef_.shape
    (True, True, (3, 4))
    >>> model.score(X, y) > 0.9
    True
    """

    _tasks: ClassVar[tuple[str, ...]] = ("classification",)

    def __init__(
        self,
        *,
        loss: str | Loss = "hinge",
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
        class_weight: dict[Any, float] | str | None = None,
        multiclass: str = "auto",
        costs: Any = None,
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
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.costs = costs

    @with_callbacks  # type: ignore[untyped-decorator]
    @takes_store
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> LinearClassifier:
        """Find w and b, and prove how far from optimal they are at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
            float32 and float64, C-ordered or of compressed rows, are used in place.
        y : array-like of shape (m,)
            Labels of any kind.
        sample_weight : array-like of shape (m,), optional
            Numbers of at least 0.
        offset : array-like of shape (m,), optional
            A known shift of each score.

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        X, y = self._checked_data(X, y=y)
        weight = checked_weight(sample_weight, len(y))
        classes, codes = two_classes(y, weight) or classes_of(y, weight)
        weight = with_class_weight(self.class_weight, classes, codes, weight)
        loss = self._of_all_classes(loss, classes)
        sample = self._sample(X, y, loss, sample_weight, offset, weight)
        resume = np.array_equal(getattr(self, "classes_", classes), classes)
        self.classes_ = classes
        if isinstance(loss, ClassLoss):
            k = loss.n_scores(loss.encode(np.zeros(1)))
            if k not in (2, len(classes)):
                raise ValueError(f"loss {loss!r} is for {k} classes, but y has {len(classes)}")
            self._minimize(replace(sample, outputs=len(classes)), lambda _: np.maximum(codes, 0), 1, resume)
            return self
        first, n_problems = (1, 1) if len(classes) == 2 else (0, len(classes))
        self._minimize(sample, lambda k: against_the_rest(codes, first + k), n_problems, resume)
        return self

    def _of_all_classes(self, loss: Loss, classes: npt.NDArray[Any]) -> Loss:
        """Return the loss to minimize: the one of all scores where it is asked for, with the costs."""
        loss = of_all_classes(loss, self.multiclass, len(classes))
        if self.costs is None:
            return loss
        if not isinstance(loss, (MulticlassHinge, ScaledMulticlassHinge)):
            raise ValueError(
                f"costs are for the losses multiclass_hinge and scaled_multiclass_hinge, not for '{loss.name}'"
            )
        return replace(loss, delta=cost_matrix(self.costs, classes))

    @available_if(_learns_by_parts)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> LinearClassifier:
        """Go once through a batch of rows with a stochastic solver, from where the last call (or fit) ended.

        The solver is the estimator's, if it is a stochastic one; else `sgd`, and `folos` for l1. Steps become shorter
        from call to call, and ``coef_`` is the average of the points so far, unless the solver says otherwise. There
        is no certificate: the attributes of one are removed, for it would speak of the last batch only.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        y : array-like of shape (m,)
        classes : array-like of shape (k,)
            All labels there will ever be; needed in the first call, and may be left out later.
        sample_weight : array-like of shape (m,), optional
            Numbers of at least 0, relative to the batch: its weights are divided by their sum.
        offset : array-like of shape (m,), optional
            A known shift of each score.

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' cannot be known from a part of the rows: give a dict, or sample_weight"
            )
        first = _check_partial_fit_first_call(self, classes)
        X, y = self._checked_data(X, y=y, reset=first)
        if len(self.classes_) < 2:
            raise ValueError(f"classes has one class only, {self.classes_.tolist()}; a classifier needs at least two")
        codes = codes_of(y, self.classes_)
        weight = checked_weight(sample_weight, len(y))
        weight = with_class_weight(self.class_weight, self.classes_, codes, weight)
        sample = self._sample(X, y, loss, sample_weight, offset, weight)
        first_code, n_problems = (1, 1) if len(self.classes_) == 2 else (0, len(self.classes_))
        self._carry_on(sample, lambda k: against_the_rest(codes, first_code + k), n_problems)
        return self

    def decision_function(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the scores: shape (m,) for two classes, large for the second; else (m, k).

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        scores = self._scores(X, offset)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any, offset: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        scores = self.decision_function(X, offset)
        codes = np.argmax(scores, axis=1) if scores.ndim == 2 else (scores >= 0.0).astype(np.intp)
        return np.asarray(self.classes_[codes])

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, offset: npt.ArrayLike | None = None) -> Array:
        """Return the probability of each class; for the losses logistic and softmax only.

        It is 1 / (1 + exp(-score)); with more than two classes these are divided by their sum, and for softmax it is
        exp(score), divided by the sum.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        offset : array-like of shape (m,), optional
            A known shift of each score.
        """
        scores = self._scores(X, offset)
        return cast(Array, probabilities_of(self.loss_, scores))

    def _coefficients(self, points: Array) -> dict[str, Any]:
        d = self.n_features_in_
        if isinstance(self.loss_, ClassLoss):
            coef, constants = rows_of_classes(points[0], len(self.classes_), d, not self.penalize_intercept)
            return {"coef_": coef, "intercept_": constants}
        constants = points[:, d] if self.fit_intercept else np.zeros(len(points))
        return {"coef_": points[:, :d].copy(), "intercept_": constants.copy()}

    def _starts(self, sample: Sample, n_problems: int) -> Array | None:
        if sample.outputs > 2:
            points = super()._starts(sample, n_problems)
            if points is not None and sample.design.intercept and not self.penalize_intercept:
                points[0, -sample.outputs :] -= points[0, -1]  # the last one counts in the regularizer
            return points
        if sample.outputs == 1:
            return super()._starts(sample, n_problems)
        margin = super()._starts(replace(sample, outputs=1), 1)
        return None if margin is None else np.outer(margin[0], [-0.5, 0.5]).reshape(1, -1)

    def _linear_parts(self) -> tuple[Array, Array]:
        return self.coef_, self.intercept_
