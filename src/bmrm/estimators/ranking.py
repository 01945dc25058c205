"""Documents in the order of their relevance, query by query."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.metrics import ndcg_score

from bmrm.estimators.callbacks import with_callbacks
from bmrm.estimators.joint import JointModel
from bmrm.estimators.minimizer import LAM, checked_weight
from bmrm.estimators.stored import takes_store
from bmrm.losses import Loss
from bmrm.losses.ranking import for_ranking
from bmrm.losses.sets import query_codes
from bmrm.regularizers import Regularizer
from bmrm.risks.base import Array
from bmrm.solvers import Solver


class Ranker(JointModel):
    """Learning to rank: a linear score that orders the documents of each query by their grades.

    Parameters
    ----------
    loss : str or Loss, default="ndcg_pairs"
        A loss for ranking. `ndcg_pairs` weighs each pair in the wrong order by what it costs in NDCG@k; it takes grades
        from 0 to 1000. `pairwise_rank` counts pairs alike and takes any grades. `ndcg`, `mrr` and
        `expected_rank_utility` bound the measures themselves; on noisy queries their optimum may be w = 0.
    loss_params : dict, optional
        Parameters of a loss given by its name, for example ``{"k": 5}``. Where those of `ndcg`, `mrr` and
        `expected_rank_utility` do not say how documents of equal grade are treated, it is ``{"ties": "together"}``
        here and on the command line.
    regularizer, regularizer_params
        As for `LinearClassifier`.
    lam, C, solver, tol, max_iter, max_seconds, n_threads, warm_start, random_state, verbose
        As for `LinearClassifier`. There is no intercept: it would move all scores alike.

    Attributes
    ----------
    coef_ : array of shape (1, d)
    certificate_ : Certificate
        What was proved: ``lower <= min J <= upper``; with ``objective_``, ``gap_``, ``converged_`` and the other
        attributes of `LinearClassifier`.

    Notes
    -----
    Which query a row belongs to is metadata: within pipelines and searches, enable metadata routing and call
    ``set_fit_request(qid=True)`` and ``set_score_request(qid=True)``; `GroupKFold` by the same numbers keeps queries
    whole.

    Examples
    --------
    >>> import numpy as np, bmrm
    >>> X = np.array([[2.0], [1.0], [0.0], [1.0], [3.0]])
    >>> model = bmrm.Ranker(lam=1e-2).fit(X, [2, 1, 0, 0, 1], qid=[7, 7, 7, 8, 8])
    >>> model.converged_, model.score(X, [2, 1, 0, 0, 1], qid=[7, 7, 7, 8, 8])
    (True, 1.0)
    """

    _tasks: ClassVar[tuple[str, ...]] = ("ranking",)

    def __init__(
        self,
        *,
        loss: str | Loss = "ndcg_pairs",
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    @takes_store
    def fit(
        self, X: Any, y: Any, qid: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> Ranker:
        """Find w, and prove how far from optimal it is at most.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), data frame, Store, Shards, or array or data frame of Dask
        y : array-like of shape (m,)
            Grades: larger is more relevant.
        qid : array-like of shape (m,), optional
            The query of each row, in any order. Without it all rows are one query, with a warning; zeros for all rows
            say so without one.
        sample_weight : array-like of shape (m,), optional
            A weight for each query: its rows have the same.

        Returns
        -------
        self
        """
        loss = self._chosen_loss()
        if isinstance(self.loss, str):
            loss = for_ranking(loss, self.loss_params or {})
        X, y = self._checked_data(X, y=y, y_numeric=True)
        self._fit_jointly(X, y, y, loss, sample_weight, groups=queries(qid, len(y)))
        return self

    def predict(self, X: Any) -> Array:
        """Return the score of each row; within a query, the largest comes first."""
        return self._scores(X, None)[:, 0]

    def score(
        self,
        X: Any,
        y: Any,
        qid: npt.ArrayLike | None = None,
        k: int | None = 10,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG@k (linear gains as scikit-learn has them) of the queries with different grades.

        Parameters
        ----------
        X : array or sparse matrix of shape (m, d), or data frame
        y : array-like of shape (m,)
            Grades of at least 0.
        qid : array-like of shape (m,), optional
            The query of each row; as in `fit`.
        k : int, optional
            Places that count; all for None.
        sample_weight : array-like of shape (m,), optional
            A weight for each query: its rows have the same.
        """
        scores, grades = self.predict(X), np.asarray(y, dtype=np.float64)
        groups = queries(qid, len(scores))
        order = np.argsort(groups, kind="stable")
        ends = np.flatnonzero(np.diff(groups[order])) + 1
        graded = [rows for rows in np.split(order, ends) if np.ptp(grades[rows]) > 0.0]
        weight = checked_weight(sample_weight, len(scores))
        shares = np.ones(len(graded)) if weight is None else np.array([weight[rows].max() for rows in graded])
        if not shares.any():
            raise ValueError("no query has documents of different grades: there is nothing to rank")
        found = [ndcg_score([grades[rows]], [scores[rows]], k=k) for rows in graded]
        return float(np.average(found, weights=shares))


def queries(qid: npt.ArrayLike | None, m: int) -> npt.NDArray[np.int64]:
    """Return a number for the query of each row; without qid, one for all of them and a warning."""
    if qid is None:
        warnings.warn(
            "no qid: all rows are one query. Give qid, the query of each row (zeros for all rows if they are one). "
            "In a pipeline or search, scikit-learn hands it on after sklearn.set_config(enable_metadata_routing=True) "
            "and set_fit_request(qid=True).set_score_request(qid=True) of the ranker; "
            "'groups' go to the splitter only",
            UserWarning,
            stacklevel=3,
        )
        return np.zeros(m, dtype=np.int64)
    shape = np.shape(np.asarray(qid, dtype=object))
    if shape != (m,):
        raise ValueError(f"qid must have one number for each of the {m} rows of X, got shape {shape}")
    return query_codes(qid, m, "pairwise_rank")
