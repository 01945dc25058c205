"""Two classes, trained for the score that counts in the end."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from bmrm import losses
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.joint import JointModel
from bmrm.estimators.labels import classes_of, two_classes
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.stored import takes_store
from bmrm.losses.scores import number_of
from bmrm.outcomes import score_threshold
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver

_SCORES = ("roc_area", "f1", "fbeta", "precision_at_k", "recall_at_k", "break_even")


class _CallableName(str):
    """The name of a score, which is at the same time the estimator's method `score`."""

    _estimator: ScoreClassifier

    def __call__(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the score of that name on other rows."""
        return self._estimator._score_on(X, y, sample_weight)


class _Score:
    """The parameter `score`: scikit-learn calls a method of that name as well, so the name can be called."""

    def __get__(self, estimator: ScoreClassifier | None, owner: type) -> Any:
        if estimator is None:
            return self
        given = estimator.__dict__["score"]
        if not isinstance(given, str):
            return given
        name = _CallableName(given)
        name._estimator = estimator
        return name

    def __set__(self, estimator: ScoreClassifier, given: Any) -> None:
        estimator.__dict__["score"] = given


class ScoreClassifier(ClassifierMixin, JointModel):  # type: ignore[misc]
    """Linear classification of two classes, trained for a score of the whole set instead of the mean of losses.

    Afterwards a threshold is chosen on the rows of the fit, for the same score: the largest F-beta; as many positive
    rows as precision and recall at k look at; as many as there are for `break_even`; and for the area under the ROC
    curve, which needs none, the largest mean of the shares of both classes that are right.

    Parameters
    ----------
    score : str, default="roc_area"
        One of roc_area (or roc_auc), f1, fbeta, precision_at_k, recall_at_k, break_even. The fitted estimator's method
        of the same name, ``model.score(X, y)``, returns this score on other rows.
    score_params : dict, optional
        Parameters of the loss: ``{"beta": 2.0}`` for fbeta, ``{"k": 100}`` (or a share of the rows, ``{"k": 0.1}``)
        for precision and recall at k.
    regularizer, regularizer_params
        As for `LinearClassifier`.
    lam, C, solver, tol, max_iter, max_seconds, n_threads, warm_start, random_state, verbose
        As for `LinearClassifier`. The threshold takes the place of an intercept; for f1 and fbeta one is learned, too,
        because their loss depends on how many rows have a score above 0.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The second one is the positive one.
    coef_ : array of shape (1, d)
    intercept_ : array of shape (1,)
        Minus the threshold.
    certificate_ : Certificate
        What was proved about w: ``lower <= min J <= upper``; with ``objective_``, ``gap_``, ``converged_`` and the
        other attributes of `LinearClassifier`.

    See Also
    --------
    LinearClassifier

    Examples
    --------
    >>> import bmrm
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = bmrm.ScoreClassifier(score="roc_area", lam=1e-3).fit(X, y)
    >>> model.converged_, bool(roc_auc_score(y, model.decision_function(X)) > 0.99)
    (True, True)
    """

    _tasks: ClassVar[tuple[str, ...]] = ("classification",)

    score = _Score()

    def __init__(
        self,
        *,
        score: str = "roc_area",
        score_params: dict[str, Any] | None = None,
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
        self.score = score
        self.score_params = score_params
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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; that of the score as it was given."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def loss(self) -> Any:  # type: ignore[override]
        """The loss that the score names."""
        given = self.__dict__["score"]
        name = losses.LOSSES.aliases.get(given, given) if isinstance(given, str) else given
        if name not in _SCORES:
            raise ValueError(f"score must be one of {', '.join(_SCORES)}, got {given!r}")
        return name

    @property
    def loss_params(self) -> dict[str, Any] | None:  # type: ignore[override]
        """The parameters of the score."""
        return self.score_params

    @property
    def fit_intercept(self) -> bool:  # type: ignore[override]
        """Whether a constant is learned: where the loss changes with one, which is so for f1 and fbeta."""
        return losses.LOSSES[self.loss].takes_offset

    @with_callbacks  # type: ignore[untyped-decorator]
    @takes_store
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> ScoreClassifier:
        """Find w and a threshold, and prove how far from optimal w is at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
        y : array-like of shape (m,)
            Two labels of any kind; the larger one is positive.
        sample_weight : array-like of shape (m,), optional
            For roc_area only, and for rows that do not count (weight 0).

        Returns
        -------
        self
        """
        loss = losses.get(self.loss, **(self.score_params or {}))
        X, y = self._checked_data(X, y=y)
        weight = checked_weight(sample_weight, len(y))
        if weight is not None and loss.weighted_by == "none":  # it counts rows: those without weight are not there
            X, y, weight = X[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
        classes, codes = two_classes(y, weight) or classes_of(y, weight)
        if len(classes) != 2:
            raise ValueError(
                f"Only binary classification is supported: y has {len(classes)} classes, and score "
                f"'{self.score}' is for two"
            )
        self.classes_ = classes
        positive = codes == 1
        self._fit_jointly(X, y, np.where(positive, 1.0, -1.0), loss, weight)
        scores = self._scores(X, None)[:, 0]
        self.intercept_ = self.intercept_ - score_threshold(loss, scores, positive, weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the score of each row less the threshold: above 0 is the second class."""
        return self._scores(X, None)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row."""
        positive = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def _score_on(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> float:
        from sklearn import metrics

        f, positive = self.decision_function(X), np.asarray(y) == self.classes_[1]
        name, parameters = self.loss, self.score_params or {}
        if name == "roc_area":
            return float(metrics.roc_auc_score(positive, f, sample_weight=sample_weight))
        if name == "fbeta":
            beta = float(parameters.get("beta", 1.0))
            return float(metrics.fbeta_score(positive, f > 0.0, beta=beta, sample_weight=sample_weight))
        total = int(positive.sum())
        n = total if name == "break_even" else number_of(self.loss_.k, f.size)  # type: ignore[attr-defined]
        if n > f.size:
            raise ValueError(f"score '{name}' with k = {n} needs at least as many rows, but there are {f.size}")
        hits = int(positive[np.argsort(-f, kind="stable")[:n]].sum())
        return hits / (total if name == "recall_at_k" else n) if total else 0.0
