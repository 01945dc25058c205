"""Any number of labels for each row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import MultiLabelBinarizer

from bmrm._sparse import rows_of
from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.joint import JointModel
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.stored import takes_store
from bmrm.losses import Loss
from bmrm.losses.multilabel import check_order
from bmrm.outcomes import least_mistakes
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver


class MultilabelClassifier(ClassifierMixin, JointModel):  # type: ignore[misc]
    """Linear multilabel classification: every true label of a row is to score above every other one.

    The scores of a row order its labels. Those above ``threshold_`` are predicted, the threshold that makes the fewest
    mistakes (Hamming loss) on the rows of the fit.

    Parameters
    ----------
    loss : str or Loss, default="multilabel_hinge"
        A loss for label sets.
    loss_params : dict, optional
        Parameters of a loss given by its name, for example ``{"margin": 2.0}``.
    regularizer, regularizer_params
        As for `LinearClassifier`.
    lam, C, fit_intercept, penalize_intercept, solver, tol, max_iter, max_seconds, n_threads, warm_start
        As for `LinearClassifier`.
    random_state, verbose
        As for `LinearClassifier`.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels; the numbers of the columns where y is a matrix.
    coef_ : array of shape (k, d)
    intercept_ : array of shape (k,)
    threshold_ : float
        Scores above it are predicted labels.
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``; with ``objective_``, ``gap_``, ``converged_`` and the other
        attributes of `LinearClassifier`.

    See Also
    --------
    LinearClassifier

    Examples
    --------
    >>> import bmrm
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_classes=8, allow_unlabeled=False, random_state=0)
    >>> model = bmrm.MultilabelClassifier(lam=1e-2).fit(X, Y)
    >>> model.converged_, model.predict(X).shape
    (True, (100, 8))
    """

    _tasks: ClassVar[tuple[str, ...]] = ("multilabel",)

    def __init__(
        self,
        *,
        loss: str | Loss = "multilabel_hinge",
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
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    @takes_store
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> MultilabelClassifier:
        """Find the weights, and prove how far from optimal they are at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
        y : matrix (m, k) of zeros and ones, dense or sparse, or a sequence of m sets of labels
            Rows with no label, or with all of them, order nothing and are named in a warning.
        sample_weight : array-like of shape (m,), optional

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        X = self._checked_data(X)
        classes, Y = _indicator(y)
        if len(Y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(Y)}")
        check_order(loss.encode(Y))
        self.classes_ = classes
        self._fit_jointly(X, Y, Y, loss, sample_weight, outputs=len(classes))
        weight = checked_weight(sample_weight, len(Y))
        self.threshold_ = least_mistakes(self.decision_function(X), Y > 0.0, weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores (m, k) of the labels."""
        return self._scores(X, None)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return a matrix (m, k) with 1 for each label of a row."""
        return (self.decision_function(X) > self.threshold_).astype(np.int64)

    def predict_labels(self, X: Any) -> list[tuple[Any, ...]]:
        """Return the labels of each row, the one with the largest score first."""
        scores = self.decision_function(X)
        order = np.argsort(-scores, axis=1, kind="stable")
        n_labels = np.sum(scores > self.threshold_, axis=1)
        return [tuple(self.classes_[row[:n]].tolist()) for row, n in zip(order, n_labels)]


def _indicator(y: Any) -> tuple[npt.NDArray[Any], Array]:
    """Return the labels and the matrix of zeros and ones."""
    if hasattr(y, "tocsr"):
        y = rows_of(y, "y").toarray()
    if isinstance(y, np.ndarray) and y.dtype.kind == "O" and y.ndim == 1:
        y = y.tolist()
    if isinstance(y, (np.ndarray, list)) and not (len(y) and _is_row(y[0])):
        raise ValueError("y must be a matrix of zeros and ones, or a set of labels for each row; got one label each")
    matrix = y if isinstance(y, np.ndarray) else np.asarray(y) if _is_matrix(y) else None
    if matrix is None:
        binarizer = MultiLabelBinarizer()
        matrix = binarizer.fit_transform(y)
        if len(binarizer.classes_) < 2:
            raise ValueError(f"y has {len(binarizer.classes_)} different labels; there must be at least two")
        return binarizer.classes_, matrix.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise ValueError(f"y must have a column for each of at least two labels, got shape {matrix.shape}")
    return np.arange(matrix.shape[1]), matrix.astype(np.float64)


def _is_row(labels: Any) -> bool:
    return isinstance(labels, (set, frozenset)) or np.ndim(labels) > 0


def _is_matrix(y: Any) -> bool:
    if hasattr(y, "to_numpy"):
        return True
    widths = {len(row) if isinstance(row, (list, tuple)) else -1 for row in y}
    return len(widths) == 1 and widths != {-1} and all(label in (0, 1) for row in y for label in row)
